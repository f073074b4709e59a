//! What NOTIFY tells.

use alloc::sync::Arc;
use base::{SqlError, SqlState};
use serde::{Deserialize, Serialize};

/// Bytes from which on the text of a notification is too long.
const PAYLOAD_BYTES: usize = 8000;
/// Bytes from which on the name of a channel is too long.
const CHANNEL_BYTES: usize = 64;

/// A text for the sessions that listen to a channel.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct Notification {
    /// Name of the channel.
    pub channel: Arc<str>,
    /// The text; may be empty.
    pub payload: Arc<str>,
}

impl Notification {
    /// Checks both.
    ///
    /// # Errors
    /// 22023.
    pub fn new(channel: &str, payload: &str) -> Result<Notification, SqlError> {
        let problem = if channel.is_empty() {
            "channel name cannot be empty"
        } else if channel.len() >= CHANNEL_BYTES {
            "channel name too long"
        } else if payload.len() >= PAYLOAD_BYTES {
            "payload string too long"
        } else {
            return Ok(Notification {
                channel: channel.into(),
                payload: payload.into(),
            });
        };
        Err(SqlError::new(SqlState::INVALID_PARAMETER, problem))
    }

    /// Bytes of memory, about.
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        size_of::<Notification>() + self.channel.len() + self.payload.len()
    }
}

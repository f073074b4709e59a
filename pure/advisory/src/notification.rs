//! What NOTIFY tells.

use alloc::sync::Arc;
use base::{SqlError, SqlState};
use serde::{Deserialize, Serialize};

/// Bytes from which on the text of a notification is too long.
const PAYLOAD_BYTES: usize = 8000;
/// Bytes from which on the name of a channel is too long.
const CHANNEL_BYTES: usize = 64;

/// Bytes of the notifications that travel in one message, about: far fewer than a frame carries.
const PART_BYTES: usize = 256 << 10;

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

    /// Parts of a list of which each fits into a message to another node.
    pub fn parts(all: &[Notification]) -> impl Iterator<Item = &[Notification]> {
        let mut rest = all;
        core::iter::from_fn(move || {
            let mut bytes = 0;
            let fits = |told: &&Notification| {
                bytes += told.size_bytes();
                bytes <= PART_BYTES
            };
            let count = rest.iter().take_while(fits).count().max(1);
            let (part, behind) = rest.split_at_checked(count)?;
            rest = behind;
            Some(part)
        })
    }

    /// Bytes of memory, about.
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        size_of::<Notification>() + self.channel.len() + self.payload.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::String;
    use alloc::vec::Vec;

    #[test]
    fn a_list_is_cut_and_nothing_is_lost() {
        let payload: String = "x".repeat(PAYLOAD_BYTES - 1);
        let told = Notification::new("jobs", &payload).expect("it is short enough");
        for count in [0, 1, 32, 33, 1_000] {
            let all: Vec<Notification> = (0..count).map(|_| told.clone()).collect();
            let parts: Vec<&[Notification]> = Notification::parts(&all).collect();
            assert_eq!(parts.concat(), all);
            let bytes = |part: &&[Notification]| part.iter().map(Notification::size_bytes).sum();
            let largest: usize = parts.iter().map(bytes).max().unwrap_or(0);
            assert!(largest <= PART_BYTES, "{largest} bytes");
            assert!(parts.iter().all(|part| !part.is_empty()));
            assert!(parts.len() <= count / 30 + 1);
        }
    }
}

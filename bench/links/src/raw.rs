//! Messages one by one, for a client that shows everything that a server says.

use crate::link::{LinkError, ready};
use crate::postgres::{Postgres, frame};
use crate::url::Endpoint;
use std::io::Write;
use std::net::TcpStream;

/// Names a session to the server that it asks to cancel a statement: process and secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CancelKey(pub [u8; 8]);

/// Code of a cancel request, in the place of a protocol version.
const CANCEL_REQUEST: u32 = 80_877_102;

impl Postgres {
    /// Sends one message of type `kind`.
    ///
    /// # Errors
    /// [`LinkError::Io`]; the connection is of no more use.
    pub fn send_message(&mut self, kind: u8, body: &[u8]) -> Result<(), LinkError> {
        frame(self.out(), kind, |out| out.extend_from_slice(body));
        ready(self.flush())
    }

    /// Waits for the next message: its type and its body.
    ///
    /// After a query the caller takes messages up to ReadyForQuery (`Z`) before it asks the next
    /// thing. [`Postgres::status`] does not follow messages that are taken in this way.
    ///
    /// # Errors
    /// [`LinkError::Io`], [`LinkError::Protocol`]; the connection is of no more use.
    pub fn next_message(&mut self) -> Result<(u8, &[u8]), LinkError> {
        let (kind, body) = ready(self.receive())?;
        Ok((kind, self.bytes(body)))
    }

    /// What [`cancel`] needs to interrupt this session; `None` if the server gave no key.
    pub fn cancel_key(&self) -> Option<CancelKey> {
        self.backend_key.map(CancelKey)
    }
}

/// Asks the server to cancel what the session of `key` is doing. The session itself hears of it; a
/// session that does nothing is left alone.
///
/// # Errors
/// [`LinkError::Io`]: the server cannot be reached.
pub fn cancel(endpoint: &Endpoint, key: CancelKey) -> Result<(), LinkError> {
    let mut stream = TcpStream::connect((endpoint.host.as_str(), endpoint.port))?;
    let mut request = Vec::with_capacity(16);
    request.extend_from_slice(&16u32.to_be_bytes());
    request.extend_from_slice(&CANCEL_REQUEST.to_be_bytes());
    request.extend_from_slice(&key.0);
    stream.write_all(&request)?;
    Ok(())
}

//! What stops a load, a run or a check as a whole. Outcomes of single transactions are values.

use crate::link::LinkError;
use crate::url::UrlError;
use std::fmt;
use std::io::ErrorKind;

/// What to do where there is no reader.
const NO_SERVER: &str = "; no server listens there (`trellis start --nodes 3 --data DIR` starts a \
    cluster)";

/// Why a command of the benchmark did not finish.
#[derive(Debug)]
pub enum DriveError {
    /// The URL cannot be read.
    Url(UrlError),
    /// No connection, or one that broke where nothing can be retried; with what was being done.
    Link(&'static str, LinkError),
    /// The database holds no TPC-C data, or not what this command needs.
    NotLoaded(String),
    /// Data of another scale or seed is already there.
    OtherData(String),
    /// A file cannot be read or written, or holds what it should not.
    File(String),
    /// An option has a value that cannot work.
    Option(String),
    /// A fault could not be put in, proven or undone.
    Fault(String),
    /// A worker cannot take part, or is lost.
    Worker(String),
}

impl fmt::Display for DriveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DriveError::Url(error) => error.fmt(f),
            DriveError::Link(doing, error) => {
                write!(f, "{doing}: {error}")?;
                match error {
                    LinkError::Io(ErrorKind::ConnectionRefused, _) => f.write_str(NO_SERVER),
                    LinkError::Io(..)
                    | LinkError::Server(_)
                    | LinkError::Tls(_)
                    | LinkError::Protocol(_) => Ok(()),
                }
            }
            DriveError::NotLoaded(text) | DriveError::OtherData(text) => f.write_str(text),
            DriveError::File(text)
            | DriveError::Option(text)
            | DriveError::Fault(text)
            | DriveError::Worker(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for DriveError {}

impl From<UrlError> for DriveError {
    fn from(error: UrlError) -> DriveError {
        DriveError::Url(error)
    }
}

/// Says what was being done when a connection failed.
pub trait While<T> {
    /// The error names what was being done, in the form "cannot ...".
    fn during(self, doing: &'static str) -> Result<T, DriveError>;
}

impl<T> While<T> for Result<T, LinkError> {
    fn during(self, doing: &'static str) -> Result<T, DriveError> {
        self.map_err(|error| DriveError::Link(doing, error))
    }
}

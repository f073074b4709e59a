//! Why a node cannot start or go on.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// An operating error of the host, with what it is about.
#[derive(Debug)]
pub enum RuntimeError {
    /// A file operation failed.
    File {
        /// What was tried, for example "create".
        action: &'static str,
        /// Which file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A socket operation failed.
    Socket {
        /// What was tried.
        action: &'static str,
        /// Which address.
        address: String,
        /// Why.
        source: io::Error,
    },
    /// What is on disk cannot be used.
    Storage(storage::StorageError),
    /// The cluster file is wrong: file, line (0: unknown), what.
    Cluster {
        /// The file.
        path: PathBuf,
        /// What is wrong, with line and key.
        message: String,
    },
    /// The data directory is in use by another process.
    InUse(PathBuf),
    /// The data directory belongs to something else.
    Foreign(String),
}

impl RuntimeError {
    pub(crate) fn file(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| RuntimeError::File {
            action,
            path,
            source,
        }
    }
    pub(crate) fn socket(
        action: &'static str,
        address: impl fmt::Display,
    ) -> impl FnOnce(io::Error) -> Self {
        let address = address.to_string();
        move |source| RuntimeError::Socket {
            action,
            address,
            source,
        }
    }
}

impl From<storage::StorageError> for RuntimeError {
    fn from(error: storage::StorageError) -> Self {
        RuntimeError::Storage(error)
    }
}

impl From<storage::DiskError> for RuntimeError {
    fn from(error: storage::DiskError) -> Self {
        RuntimeError::Storage(error.into())
    }
}

impl fmt::Display for RuntimeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RuntimeError::File {
                action,
                path,
                source,
            } => {
                write!(f, "cannot {action} {}: {source}", path.display())
            }
            RuntimeError::Socket {
                action,
                address,
                source,
            } => {
                write!(f, "cannot {action} {address}: {source}")
            }
            RuntimeError::Storage(error) => write!(f, "{error}"),
            RuntimeError::Cluster { path, message } => {
                write!(f, "{}: {message}", path.display())
            }
            RuntimeError::InUse(path) => {
                write!(f, "{} is in use by another trellis process", path.display())
            }
            RuntimeError::Foreign(message) => f.write_str(message),
        }
    }
}

impl std::error::Error for RuntimeError {}

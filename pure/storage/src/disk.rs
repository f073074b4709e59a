//! What a disk can do: one directory of files.

use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

/// One directory. A clone is another handle of the same directory.
///
/// Durability is POSIX's: what was written is durable after [`Disk::sync`] of its file; a file
/// that was created, renamed or removed is (or is gone) after [`Disk::sync_directory`]; before
/// that, a crash may leave any of it.
pub trait Disk: Clone {
    /// An open file.
    type File;

    /// Names of all files, in any order.
    ///
    /// # Errors
    /// The directory cannot be read.
    fn list(&self) -> Result<Vec<String>, DiskError>;

    /// Hands the content of a file to `take`, piece by piece.
    ///
    /// # Errors
    /// [`DiskFault::NotFound`] or a failure; `take`'s pieces are to be forgotten then.
    fn read(&self, name: &str, take: &mut dyn FnMut(&[u8])) -> Result<(), DiskError>;

    /// Opens a file for reading and writing.
    ///
    /// # Errors
    /// It is not there, or a failure.
    fn open(&self, name: &str) -> Result<Self::File, DiskError>;

    /// Creates an empty file, or empties one.
    ///
    /// # Errors
    /// [`DiskFault::NoRoom`] or a failure.
    fn create(&self, name: &str) -> Result<Self::File, DiskError>;

    /// Writes at `offset`, as many bytes as there is room for; returns their number, at least 1.
    ///
    /// # Errors
    /// [`DiskFault::NoRoom`] or a failure.
    fn write_at(&self, file: &Self::File, offset: u64, bytes: &[u8]) -> Result<usize, DiskError>;

    /// Cuts or extends a file to `length` bytes.
    ///
    /// # Errors
    /// A failure.
    fn set_length(&self, file: &Self::File, length: u64) -> Result<(), DiskError>;

    /// Makes the content of a file durable, and its length if it has grown.
    ///
    /// # Errors
    /// A failure: what was written may be gone for good. No caller may try again.
    fn sync(&self, file: &Self::File) -> Result<(), DiskError>;

    /// Gives a file another name, in place of what has that name.
    ///
    /// # Errors
    /// A failure.
    fn rename(&self, from: &str, to: &str) -> Result<(), DiskError>;

    /// Removes a file.
    ///
    /// # Errors
    /// It is not there, or a failure.
    fn remove(&self, name: &str) -> Result<(), DiskError>;

    /// Makes creations, renames and removals durable.
    ///
    /// # Errors
    /// A failure.
    fn sync_directory(&self) -> Result<(), DiskError>;

    /// The name of a file for people: with its directory, if it has one.
    fn describe(&self, name: &str) -> String {
        name.to_owned()
    }

    /// Writes all of `bytes` at `offset`.
    ///
    /// # Errors
    /// [`DiskFault::NoRoom`] or a failure; any part may be written.
    fn write_all_at(&self, file: &Self::File, offset: u64, bytes: &[u8]) -> Result<(), DiskError> {
        let mut done = 0;
        while done < bytes.len() {
            done += self.write_at(file, offset + done as u64, &bytes[done..])?;
        }
        Ok(())
    }

    /// The whole content of a file.
    ///
    /// # Errors
    /// As [`Disk::read`].
    fn read_all(&self, name: &str) -> Result<Vec<u8>, DiskError> {
        let mut content = Vec::new();
        self.read(name, &mut |piece| content.extend_from_slice(piece))?;
        Ok(content)
    }
}

/// An operation on a disk that has failed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DiskError {
    /// What was tried, for example "create".
    pub action: &'static str,
    /// Which file, as [`Disk::describe`] names it.
    pub file: String,
    /// Why.
    pub fault: DiskFault,
}

/// Why an operation on a disk has failed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DiskFault {
    /// There is no such file.
    NotFound,
    /// The disk, a quota or a limit of file sizes is full.
    NoRoom,
    /// Anything else, in the words of the system.
    Failed(Box<str>),
}

impl fmt::Display for DiskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot {} {}: ", self.action, self.file)?;
        match &self.fault {
            DiskFault::NotFound => f.write_str("no such file"),
            DiskFault::NoRoom => f.write_str("no room left"),
            DiskFault::Failed(why) => f.write_str(why),
        }
    }
}

impl core::error::Error for DiskError {}

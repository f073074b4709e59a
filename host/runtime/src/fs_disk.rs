//! The real disk: a directory of the file system.

use crate::removal::Remover;
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use storage::{Disk, DiskError, DiskFault};

const READ_BYTES: usize = 1 << 20;

/// A directory of the file system.
#[derive(Clone, Debug)]
pub struct FsDisk {
    directory: PathBuf,
    remover: Remover,
}

/// An open file with its name for errors.
#[derive(Debug)]
pub struct FsFile {
    file: File,
    path: PathBuf,
}

impl FsDisk {
    /// The disk that is `directory`, which is there.
    pub fn new(directory: &Path) -> FsDisk {
        FsDisk {
            directory: directory.to_path_buf(),
            remover: Remover::default(),
        }
    }

    fn with(
        &self,
        name: &str,
        open: &OpenOptions,
        action: &'static str,
    ) -> Result<FsFile, DiskError> {
        let path = self.directory.join(name);
        let file = open.open(&path).map_err(failed(action, &path))?;
        Ok(FsFile { file, path })
    }
}

/// Makes a [`DiskError`] of what the system says.
fn failed<'a>(action: &'static str, path: &'a Path) -> impl FnOnce(io::Error) -> DiskError + 'a {
    use io::ErrorKind::{FileTooLarge, NotFound, QuotaExceeded, StorageFull};
    move |error| DiskError {
        action,
        file: path.display().to_string(),
        fault: match error.kind() {
            NotFound => DiskFault::NotFound,
            // Room on the disk, in a quota, under a limit of file sizes.
            StorageFull | QuotaExceeded | FileTooLarge => DiskFault::NoRoom,
            _ => DiskFault::Failed(error.to_string().into_boxed_str()),
        },
    }
}

impl Disk for FsDisk {
    type File = FsFile;

    fn list(&self) -> Result<Vec<String>, DiskError> {
        let entries =
            std::fs::read_dir(&self.directory).map_err(failed("list", &self.directory))?;
        let mut names = Vec::new();
        for entry in entries {
            let entry = entry.map_err(failed("list", &self.directory))?;
            // A name that is no text is none of ours.
            names.extend(entry.file_name().into_string());
        }
        Ok(names)
    }

    fn read(&self, name: &str, take: &mut dyn FnMut(&[u8])) -> Result<(), DiskError> {
        let mut file = self.with(name, OpenOptions::new().read(true), "read")?;
        let mut buffer = vec![0; READ_BYTES];
        loop {
            match file.file.read(&mut buffer) {
                Ok(0) => return Ok(()),
                Ok(count) => take(&buffer[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(failed("read", &file.path)(error)),
            }
        }
    }

    fn read_all(&self, name: &str) -> Result<Vec<u8>, DiskError> {
        let mut file = self.with(name, OpenOptions::new().read(true), "read")?;
        let length = file.file.metadata().map(|found| found.len());
        // One piece of the right size: a buffer that doubles would need twice as much memory.
        let mut content = Vec::with_capacity(length.unwrap_or_default() as usize);
        let read = file.file.read_to_end(&mut content);
        read.map_err(failed("read", &file.path))?;
        Ok(content)
    }

    fn open(&self, name: &str) -> Result<FsFile, DiskError> {
        self.with(name, OpenOptions::new().read(true).write(true), "open")
    }

    fn create(&self, name: &str) -> Result<FsFile, DiskError> {
        let mut open = OpenOptions::new();
        open.read(true).write(true).create(true).truncate(true);
        self.with(name, &open, "create")
    }

    fn write_at(&self, file: &FsFile, offset: u64, bytes: &[u8]) -> Result<usize, DiskError> {
        let written = loop {
            match file.file.write_at(bytes, offset) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(0) => break Err(io::ErrorKind::WriteZero.into()),
                other => break other,
            }
        };
        written.map_err(failed("write", &file.path))
    }

    fn set_length(&self, file: &FsFile, length: u64) -> Result<(), DiskError> {
        file.file.set_len(length).map_err(failed("cut", &file.path))
    }

    fn sync(&self, file: &FsFile) -> Result<(), DiskError> {
        // A changed length is written too, as far as it is needed to read the content.
        file.file.sync_data().map_err(failed("sync", &file.path))
    }

    fn rename(&self, from: &str, to: &str) -> Result<(), DiskError> {
        let path = self.directory.join(from);
        std::fs::rename(&path, self.directory.join(to)).map_err(failed("rename", &path))
    }

    fn remove(&self, name: &str) -> Result<(), DiskError> {
        let path = self.directory.join(name);
        self.remover.remove(&path).map_err(failed("remove", &path))
    }

    fn sync_directory(&self) -> Result<(), DiskError> {
        let synced = File::open(&self.directory).and_then(|file| file.sync_all());
        synced.map_err(failed("sync", &self.directory))
    }

    fn describe(&self, name: &str) -> String {
        self.directory.join(name).display().to_string()
    }
}

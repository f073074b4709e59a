//! Clocks that are wrong: a library that is preloaded into a server shifts the clock by which it
//! tells the date, by an offset in a file that the library maps (`clock/shim.c`).
//!
//! | byte | holds |
//! |---|---|
//! | 0 | `trelclk1` |
//! | 8 | which of the two offsets is in use: 0 or 1 |
//! | 16, 24 | two offsets in nanoseconds |
//! | 32 | how often a clock was read while the offset was not 0 |
//!
//! A new offset is written where none is in use, and selected by one byte: no reading of the clock
//! sees half of it.

use super::process::{Process, during};
use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The library, as it was compiled with this program.
const LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libtrellis_clock.so"));
/// Its name in a folder.
const LIBRARY_NAME: &str = "libtrellis_clock.so";
/// The variable by which a server's library is told the file.
pub const CLOCK_VARIABLE: &str = "TRELLIS_CLOCK";

const MAGIC: &[u8; 8] = b"trelclk1";
const SELECTED_AT: u64 = 8;
const OFFSETS_AT: [u64; 2] = [16, 24];
const ANSWERED_AT: u64 = 32;
const NS_PER_MS: i64 = 1_000_000;

/// Writes the library into a folder, for `LD_PRELOAD`; answers where it is, from the root.
///
/// # Errors
/// There is no such folder, or it cannot be written.
pub fn write_clock_library(folder: &Path) -> std::io::Result<PathBuf> {
    let path = folder.canonicalize()?.join(LIBRARY_NAME);
    if std::fs::read(&path).is_ok_and(|bytes| bytes == LIBRARY) {
        return Ok(path);
    }
    // Servers may have the old one loaded: its file must not change.
    let new = path.with_extension(format!("{}.new", std::process::id()));
    std::fs::write(&new, LIBRARY)?;
    std::fs::set_permissions(&new, PermissionsExt::from_mode(0o755))?;
    std::fs::rename(&new, &path)?;
    Ok(path)
}

/// The file of a server's clock.
#[derive(Debug)]
pub(super) struct Clock {
    file: File,
}

#[allow(
    clippy::host_endian_bytes,
    reason = "the library in the server's process reads the file as its own memory"
)]
impl Clock {
    /// # Errors
    /// It is no file of a clock, or may not be written.
    pub(super) fn open(path: &Path) -> Result<Clock, String> {
        let opened = OpenOptions::new().read(true).write(true).open(path);
        let file = opened.map_err(|error| during(&path.display().to_string(), &error))?;
        let clock = Clock { file };
        match clock.read(0) {
            Ok(bytes) if bytes == *MAGIC => Ok(clock),
            _ => Err(format!("{} is no file of a clock", path.display())),
        }
    }

    fn read(&self, at: u64) -> Result<[u8; 8], String> {
        let mut bytes = [0; 8];
        let read = self.file.read_exact_at(&mut bytes, at);
        read.map_err(|error| during("the file of the clock", &error))?;
        Ok(bytes)
    }

    fn write(&self, bytes: &[u8], at: u64) -> Result<(), String> {
        let written = self.file.write_all_at(bytes, at);
        written.map_err(|error| during("the file of the clock", &error))
    }

    fn selected(&self) -> Result<usize, String> {
        Ok(usize::from(self.read(SELECTED_AT)?[0] & 1))
    }

    /// By how much the clock is wrong, in milliseconds.
    pub(super) fn offset_ms(&self) -> Result<i64, String> {
        let bytes = self.read(OFFSETS_AT[self.selected()?])?;
        Ok(i64::from_ne_bytes(bytes) / NS_PER_MS)
    }

    /// Makes it wrong by so many milliseconds; 0: right.
    pub(super) fn set(&self, offset_ms: i64) -> Result<(), String> {
        let next = 1 - self.selected()?;
        let offset_ns = offset_ms.saturating_mul(NS_PER_MS);
        self.write(&offset_ns.to_ne_bytes(), OFFSETS_AT[next])?;
        self.write(&[next as u8], SELECTED_AT)
    }

    /// How often a wrong time was told so far.
    pub(super) fn answered(&self) -> Result<u64, String> {
        Ok(u64::from_ne_bytes(self.read(ANSWERED_AT)?))
    }
}

/// Whether a process has this file of a clock mapped, as the library does.
pub(super) fn is_loaded(process: &Process, path: &Path) -> bool {
    let Ok(path) = path.canonicalize() else {
        return false;
    };
    let maps = std::fs::read_to_string(format!("/proc/{}/maps", process.pid));
    let path = format!(" {}", path.display());
    maps.is_ok_and(|text| text.lines().any(|line| line.ends_with(&path)))
}

//! Removing large files: their names go at once, their bytes piece by piece on a thread of its own.
//!
//! To give 8 GB back to the file system in one call holds every sync up for some
//! tenths of a second. A file without a name is gone after a crash, too.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// Bytes that are given back at once; a file that has not more is removed as it is.
const PIECE_BYTES: u64 = 16 << 20;
/// Pause behind each piece: 8 GB take five seconds.
const PAUSE: Duration = Duration::from_millis(10);

/// Removes files of a directory; copies share one thread, which begins with the first large file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Remover {
    nameless: Arc<OnceLock<Sender<File>>>,
}

impl Remover {
    /// Removes a file. The room of a large one is free a little later.
    ///
    /// # Errors
    /// The system's, for the name.
    pub(crate) fn remove(&self, path: &Path) -> io::Result<()> {
        // A file that cannot be opened or asked for its length goes in one piece.
        let file = OpenOptions::new().write(true).open(path).ok();
        let length = file.as_ref().and_then(|file| file.metadata().ok());
        let large = length.is_some_and(|found| found.len() > PIECE_BYTES);
        std::fs::remove_file(path)?;
        if let (Some(file), true) = (file, large) {
            // Without the thread the file is closed here, in one piece.
            let _ = self.nameless.get_or_init(start).send(file);
        }
        Ok(())
    }
}

fn start() -> Sender<File> {
    let (sender, files) = channel();
    let thread = std::thread::Builder::new().name("removal".into());
    if let Err(error) = thread.spawn(move || run(&files)) {
        tracing::warn!(%error, "large files are removed in one piece");
    }
    sender
}

fn run(files: &Receiver<File>) {
    while let Ok(file) = files.recv() {
        let mut length = file.metadata().map_or(0, |found| found.len());
        while length > PIECE_BYTES {
            length -= PIECE_BYTES;
            if file.set_len(length).is_err() {
                break;
            }
            std::thread::sleep(PAUSE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;
    use std::time::Instant;

    #[test]
    fn a_large_file_loses_its_name_at_once_and_its_bytes_in_pieces() {
        let directory = std::env::temp_dir().join(format!("removal-{}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("a directory");
        let path = directory.join("large");
        let pieces = 8;
        std::fs::write(&path, vec![7; (pieces * PIECE_BYTES) as usize]).expect("a file");
        let watch = File::open(&path).expect("it is there");
        let remover = Remover::default();
        remover.remove(&path).expect("it can be removed");
        assert!(!path.exists());
        assert!(remover.remove(&path).is_err(), "there is none any more");
        // A new file of that name is another one.
        std::fs::write(&path, b"new").expect("a file");
        let began = Instant::now();
        let mut lengths = vec![pieces * PIECE_BYTES];
        while lengths.last() != Some(&PIECE_BYTES) {
            assert!(began.elapsed() < Duration::from_secs(60), "{lengths:?}");
            lengths.push(watch.metadata().expect("it is open").size());
            lengths.dedup();
            std::thread::sleep(Duration::from_millis(1));
        }
        assert!(lengths.len() > 2, "in several pieces: {lengths:?}");
        assert_eq!(std::fs::read(&path).expect("it is there"), b"new");
        std::fs::remove_dir_all(&directory).expect("it is ours");
    }
}

//! The node's journal on disk: one buffer that all shards append to, one thread that writes and
//! syncs it.
//!
//! Segments are filled with zeros ahead of the writing position, so that a sync as a rule changes
//! no file size; that room is also the reserve with which open work ends when the disk is full.

use crate::error::RuntimeError;
use crate::mailbox::{Mail, Mailboxes};
use base::{NodeId, Position};
use journal::{SegmentHeader, frame, segment::segment_name};
use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;
use txn::JournalPort;

/// A new segment begins when the current one has this many bytes.
const SEGMENT_BYTES: u64 = 64 << 20;
/// Zeros are kept this far ahead of the writing position; also the reserve on a full disk.
const AHEAD_BYTES: u64 = 8 << 20;
/// Zeros are added in steps of this size.
const FILL_BYTES: u64 = 2 << 20;
/// Records that nobody waits for are flushed at least this often.
const LAZY_FLUSH: Duration = Duration::from_millis(100);

struct Buffer {
    bytes: Vec<u8>,
    /// Position behind the last appended record.
    end: Position,
    /// Somebody waits for what is in `bytes`.
    urgent: bool,
    stopping: bool,
    /// Per handle: position before the first part whose record has not been appended yet.
    parts: Vec<Option<Position>>,
}

impl Buffer {
    fn append(&mut self, payload: &[u8]) -> Position {
        let before = self.bytes.len();
        frame(payload, &mut self.bytes);
        let added = (self.bytes.len() - before) as u64;
        self.end = Position(self.end.0 + added);
        self.end
    }
}

struct Shared {
    buffer: Mutex<Buffer>,
    wake: Condvar,
    durable: AtomicU64,
    flushes: AtomicU64,
    full: AtomicBool,
}

/// The shards' and the host's handle of the journal.
pub struct Journal {
    shared: Arc<Shared>,
    /// Number of this handle.
    handle: usize,
}

impl Clone for Journal {
    fn clone(&self) -> Journal {
        let mut buffer = self.lock();
        buffer.parts.push(None);
        Journal {
            shared: self.shared.clone(),
            handle: buffer.parts.len() - 1,
        }
    }
}

impl Journal {
    fn lock(&self) -> MutexGuard<'_, Buffer> {
        self.shared
            .buffer
            .lock()
            .expect("no thread panics while it holds the buffer")
    }
    /// Everything below is on disk.
    pub fn durable(&self) -> Position {
        Position(self.shared.durable.load(Ordering::Acquire))
    }
    /// Position behind the last appended record.
    pub fn end(&self) -> Position {
        self.lock().end
    }
    /// Number of syncs so far.
    pub fn flushes(&self) -> u64 {
        self.shared.flushes.load(Ordering::Relaxed)
    }
    /// Asks the flusher to write what has been appended.
    pub fn flush_soon(&self) {
        let mut buffer = self.lock();
        if !buffer.urgent && !buffer.bytes.is_empty() {
            buffer.urgent = true;
            self.shared.wake.notify_one();
        }
    }
    /// Ends the flusher after it has written everything.
    pub fn stop(&self) {
        self.lock().stopping = true;
        self.shared.wake.notify_one();
    }
}

impl JournalPort for Journal {
    fn append(&mut self, payload: &[u8]) -> Position {
        let mut buffer = self.lock();
        buffer.parts[self.handle] = None;
        buffer.append(payload)
    }
    fn append_part(&mut self, payload: &[u8]) -> Position {
        let mut buffer = self.lock();
        let start = buffer.end;
        buffer.parts[self.handle].get_or_insert(start);
        buffer.append(payload)
    }
    fn oldest_part(&self) -> Option<Position> {
        self.lock().parts.iter().flatten().min().copied()
    }
    fn durable(&self) -> Position {
        Journal::durable(self)
    }
}

/// The open end of the journal.
pub struct JournalWriter {
    directory: PathBuf,
    cluster: u64,
    node: NodeId,
    file: File,
    /// Length of the header and records in the current segment.
    offset: u64,
    /// Length of the current segment file, zeros included.
    filled: u64,
    /// Position of `offset`.
    position: Position,
}

impl JournalWriter {
    /// Continues at `end`, which lies in the segment `last` with `offset` bytes of records and
    /// header; without a segment a new one begins.
    ///
    /// # Errors
    /// The file cannot be opened, cut or created.
    pub fn open(
        directory: &Path,
        cluster: u64,
        node: NodeId,
        end: Position,
        last: Option<(PathBuf, u64)>,
    ) -> Result<JournalWriter, RuntimeError> {
        let (file, offset) = match last {
            Some((path, offset)) => {
                let open = OpenOptions::new().read(true).write(true).open(&path);
                let mut file = open.map_err(RuntimeError::file("open", &path))?;
                let cut = file.set_len(offset).and_then(|()| file.sync_all());
                cut.map_err(RuntimeError::file("cut the torn end of", &path))?;
                file.seek(SeekFrom::End(0))
                    .map_err(RuntimeError::file("seek in", &path))?;
                (file, offset)
            }
            None => create_segment(directory, cluster, node, end)?,
        };
        let directory = directory.to_path_buf();
        let filled = offset;
        Ok(JournalWriter {
            directory,
            cluster,
            node,
            file,
            offset,
            filled,
            position: end,
        })
    }

    /// Writes records (framed) and syncs them: the position behind them is durable on return.
    ///
    /// # Errors
    /// Whatever the disk says; the journal must not be used any more then.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), RuntimeError> {
        if self.offset >= SEGMENT_BYTES {
            // Zeros behind the last record of a segment that is not the last would look like
            // damage, so they go before the next segment exists.
            let path = self.directory.clone();
            let end = self
                .file
                .set_len(self.offset)
                .and_then(|()| self.file.sync_all());
            end.map_err(RuntimeError::file("end a segment in", &path))?;
            (self.file, self.offset) =
                create_segment(&self.directory, self.cluster, self.node, self.position)?;
            self.filled = self.offset;
        }
        let path = self.directory.clone();
        let write = self
            .file
            .write_all(bytes)
            .and_then(|()| self.file.sync_data());
        write.map_err(RuntimeError::file("write the journal in", &path))?;
        self.offset += bytes.len() as u64;
        self.filled = self.filled.max(self.offset);
        self.position = Position(self.position.0 + bytes.len() as u64);
        Ok(())
    }

    /// Keeps zeros ahead of the writing position. Returns whether there is room for them.
    ///
    /// # Errors
    /// A failure other than a full disk.
    pub fn fill_ahead(&mut self) -> io::Result<bool> {
        let wanted = self.offset + AHEAD_BYTES;
        if self.filled >= wanted || self.offset >= SEGMENT_BYTES {
            return Ok(true);
        }
        self.file.seek(SeekFrom::Start(self.filled))?;
        let zeros = vec![0u8; FILL_BYTES as usize];
        let mut full = false;
        while self.filled < wanted + FILL_BYTES && !full {
            match self.file.write(&zeros) {
                Ok(count) => self.filled += count as u64,
                Err(error) if is_no_room(&error) => full = true,
                Err(error) => return Err(error),
            }
        }
        self.file.sync_all()?;
        self.file.seek(SeekFrom::Start(self.offset))?;
        Ok(self.filled >= wanted)
    }

    /// Starts the flusher: `notify` hears of durable positions and of a full disk.
    pub(crate) fn start(mut self, mailboxes: Mailboxes) -> (Journal, std::thread::JoinHandle<()>) {
        let shared = Arc::new(Shared {
            buffer: Mutex::new(Buffer {
                bytes: Vec::new(),
                end: self.position,
                urgent: false,
                stopping: false,
                parts: vec![None],
            }),
            wake: Condvar::new(),
            durable: AtomicU64::new(self.position.0),
            flushes: AtomicU64::new(0),
            full: AtomicBool::new(false),
        });
        let journal = Journal { shared, handle: 0 };
        let handle = journal.clone();
        let thread = std::thread::Builder::new().name("journal".into());
        let thread = thread.spawn(move || flush_loop(&mut self, &handle, &mailboxes));
        (journal, thread.expect("the process can start a thread"))
    }
}

fn flush_loop(writer: &mut JournalWriter, journal: &Journal, mailboxes: &Mailboxes) {
    let mut spare = Vec::new();
    loop {
        let (bytes, stopping) = next_batch(journal, &mut spare);
        if !bytes.is_empty() {
            if let Err(error) = writer.write(&bytes) {
                fatal(&error.to_string());
            }
            let shared = &journal.shared;
            shared.flushes.fetch_add(1, Ordering::Relaxed);
            shared.durable.store(writer.position.0, Ordering::Release);
            mailboxes.notify_durable();
            spare = bytes;
        } else if stopping {
            return;
        }
        keep_room(writer, journal, mailboxes);
    }
}

/// Waits for records that somebody waits for, or for the lazy flush; takes them.
fn next_batch(journal: &Journal, spare: &mut Vec<u8>) -> (Vec<u8>, bool) {
    let mut buffer = journal.lock();
    if !buffer.urgent && !buffer.stopping {
        let wait = journal.shared.wake.wait_timeout(buffer, LAZY_FLUSH);
        buffer = wait.expect("no thread panics while it holds the buffer").0;
    }
    buffer.urgent = false;
    spare.clear();
    let bytes = std::mem::replace(&mut buffer.bytes, std::mem::take(spare));
    (bytes, buffer.stopping)
}

fn keep_room(writer: &mut JournalWriter, journal: &Journal, mailboxes: &Mailboxes) {
    match writer.fill_ahead() {
        Ok(room) => {
            let was_full = journal.shared.full.swap(!room, Ordering::Relaxed);
            if was_full == room {
                tracing::warn!(full = !room, "free space for the journal");
                mailboxes.all(|| Mail::DiskFull(!room));
            }
        }
        Err(error) => fatal(&format!("cannot extend the journal: {error}")),
    }
}

/// Whether a write failed for want of room: on the disk, in a quota, under a limit of file sizes.
fn is_no_room(error: &io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge)
}

/// Ends the process: what is in memory can no longer be made durable, so no promise may be given.
pub(crate) fn fatal(message: &str) -> ! {
    tracing::error!("{message}; this node stops");
    std::process::abort()
}

/// Creates, heads and syncs a segment that starts at `start`.
fn create_segment(
    directory: &Path,
    cluster: u64,
    node: NodeId,
    start: Position,
) -> Result<(File, u64), RuntimeError> {
    let path = directory.join(segment_name(start));
    let open = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(true)
        .open(&path);
    let mut file = open.map_err(RuntimeError::file("create", &path))?;
    let header = SegmentHeader {
        cluster,
        node,
        start,
    }
    .encode();
    let write = file.write_all(&header).and_then(|()| file.sync_all());
    write.map_err(RuntimeError::file("write", &path))?;
    sync_directory(directory)?;
    Ok((file, header.len() as u64))
}

/// Makes creations, renames and removals in `directory` durable.
pub(crate) fn sync_directory(directory: &Path) -> Result<(), RuntimeError> {
    let open = File::open(directory).and_then(|file| file.sync_all());
    open.map_err(RuntimeError::file("sync", directory))
}

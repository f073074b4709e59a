//! The node's journal while it runs: one buffer that all shards append to, one thread that writes
//! and syncs it.

use crate::fs_disk::FsDisk;
use crate::gauges::Work;
use crate::mailbox::{Mail, Mailboxes};
use crate::memory::Room;
use base::{Position, Ts};
use node::HostStage;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;
use storage::{DiskFault, JournalBuffer, JournalWriter, MarkWriter};
use txn::JournalPort;

/// Longest time until a record is flushed for which no effect waits.
const LAZY_FLUSH: Duration = Duration::from_millis(100);

/// Number of flushes for one that is timed.
const TIMED_EVERY: u64 = 8;

/// Bytes of records without a place on disk beyond which large commits wait.
const BACKLOG_BYTES: usize = 32 << 20;

/// Where it stands how far the journal was durable. The flusher leaves hints, the main thread makes
/// them durable once in a while.
pub(crate) type SharedMark = Arc<Mutex<MarkWriter<FsDisk>>>;

struct Buffer {
    records: JournalBuffer,
    /// Number of records in it.
    count: u64,
    stopping: bool,
}

struct Shared {
    buffer: Mutex<Buffer>,
    wake: Condvar,
    durable: AtomicU64,
    flushes: AtomicU64,
    /// Largest timestamp that a shard has noted of what it answers.
    answered: AtomicU64,
    full: AtomicBool,
    /// Memory that the node has left.
    room: Room,
    /// Records, and how long it takes to make some of them durable.
    work: Work,
}

/// The shards' and the host's handle of the journal.
#[derive(Clone)]
pub struct Journal {
    shared: Arc<Shared>,
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
        self.lock().records.end()
    }
    /// Bytes of records that are not handed to the disk yet.
    pub fn pending_bytes(&self) -> u64 {
        self.lock().records.pending_bytes() as u64
    }
    /// What SHOW STAGES tells of the journal.
    pub(crate) fn stage(&self) -> HostStage {
        let mut stage = self.shared.work.stage("journal", true);
        stage.queue += self.lock().count;
        stage
    }
    /// Number of syncs so far.
    pub fn flushes(&self) -> u64 {
        self.shared.flushes.load(Ordering::Relaxed)
    }
    /// Asks the flusher to write what has been appended.
    pub fn flush_soon(&self) {
        if self.lock().records.hurry() {
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
        let end = buffer.records.append(payload);
        buffer.count += 1;
        if buffer.records.pending_bytes() > BACKLOG_BYTES / 2 && buffer.records.hurry() {
            self.shared.wake.notify_one();
        }
        end
    }
    fn hold(&mut self) -> Position {
        self.lock().records.hold()
    }
    fn free(&mut self, held: Position) {
        self.lock().records.free(held);
    }
    fn oldest_held(&self) -> Option<Position> {
        self.lock().records.oldest_held()
    }
    fn durable(&self) -> Position {
        Journal::durable(self)
    }
    fn is_behind(&self) -> bool {
        self.lock().records.end().0 - self.durable().0 > BACKLOG_BYTES as u64
    }
    fn note_answered(&mut self, ts: Ts) {
        self.shared.answered.fetch_max(ts.0, Ordering::SeqCst);
    }
    fn answered(&self) -> Option<Ts> {
        Some(Ts(self.shared.answered.load(Ordering::SeqCst)))
    }
    fn claim_memory(&mut self, bytes: u64) -> bool {
        self.shared.room.has(bytes)
    }
}

/// Starts the flusher: the shards hear of durable positions and of a full disk.
pub(crate) fn start(
    mut writer: JournalWriter<FsDisk>,
    mark: MarkWriter<FsDisk>,
    mailboxes: Mailboxes,
    room: Room,
) -> (Journal, std::thread::JoinHandle<()>, SharedMark) {
    let position = writer.position();
    let records = JournalBuffer::new(position);
    let shared = Arc::new(Shared {
        buffer: Mutex::new(Buffer {
            records,
            count: 0,
            stopping: false,
        }),
        wake: Condvar::new(),
        durable: AtomicU64::new(position.0),
        flushes: AtomicU64::new(0),
        answered: AtomicU64::new(0),
        full: AtomicBool::new(false),
        room,
        work: Work::default(),
    });
    let journal = Journal { shared };
    let own = journal.clone();
    let mark: SharedMark = Arc::new(Mutex::new(mark));
    let hints = mark.clone();
    let thread = std::thread::Builder::new().name("journal".into());
    let thread = thread.spawn(move || flush_loop(&mut writer, &hints, &own, &mailboxes));
    let thread = thread.expect("the process can start a thread");
    (journal, thread, mark)
}

fn flush_loop(
    writer: &mut JournalWriter<FsDisk>,
    mark: &SharedMark,
    journal: &Journal,
    mailboxes: &Mailboxes,
) {
    let mut spare = Vec::new();
    loop {
        let (bytes, count, stopping) = next_batch(journal, &mut spare);
        if !bytes.is_empty() {
            let shared = &journal.shared;
            shared.work.give(count);
            let timed = journal.flushes().is_multiple_of(TIMED_EVERY);
            let mut flush = || writer.write(&bytes).and_then(|()| writer.sync());
            let durable = match timed {
                true => shared.work.time(flush),
                false => flush(),
            };
            let durable = durable.unwrap_or_else(|error| fatal(&error.to_string()));
            shared.work.done(count);
            shared.flushes.fetch_add(1, Ordering::Relaxed);
            shared.durable.store(durable.0, Ordering::Release);
            mailboxes.notify_durable();
            leave_hint(mark, durable);
            if bytes.capacity() <= 2 * BACKLOG_BYTES {
                spare = bytes;
            }
        } else if stopping {
            return;
        }
        keep_room(writer, journal, mailboxes);
    }
}

/// Writes down how far the journal is durable, unless the main thread is making that durable.
fn leave_hint(mark: &SharedMark, durable: Position) {
    if let Ok(mut mark) = mark.try_lock() {
        match mark.hint(durable) {
            Ok(()) => {}
            Err(error) if error.fault == DiskFault::NoRoom => tracing::warn!("{error}"),
            Err(error) => fatal(&error.to_string()),
        }
    }
}

/// Sleeps until an effect waits for records, or the lazy flush is due; takes the records.
fn next_batch(journal: &Journal, spare: &mut Vec<u8>) -> (Vec<u8>, u64, bool) {
    let mut buffer = journal.lock();
    if !buffer.records.is_urgent() && !buffer.stopping {
        let wait = journal.shared.wake.wait_timeout(buffer, LAZY_FLUSH);
        buffer = wait.expect("no thread panics while it holds the buffer").0;
    }
    spare.clear();
    let bytes = buffer.records.take(std::mem::take(spare));
    (bytes, std::mem::take(&mut buffer.count), buffer.stopping)
}

fn keep_room(writer: &mut JournalWriter<FsDisk>, journal: &Journal, mailboxes: &Mailboxes) {
    match writer.fill_ahead() {
        Ok(room) => {
            let was_full = journal.shared.full.swap(!room, Ordering::Relaxed);
            if was_full == room {
                tracing::warn!(full = !room, "free space for the journal");
                mailboxes.all(|| Mail::DiskFull(!room));
            }
        }
        Err(error) => fatal(&error.to_string()),
    }
}

/// Ends the process: what is in memory can no longer be made durable, so no promise may be given.
pub(crate) fn fatal(message: &str) -> ! {
    tracing::error!("{message}; this node stops");
    std::process::abort()
}

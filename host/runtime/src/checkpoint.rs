//! Checkpoints of a running node, on its main thread: `storage::Checkpointer` with the mail to
//! the shards and the waits.
//!
//! The main thread sets the pace: it asks the shards for one small piece after the other, at a
//! rate at which the checkpoint is done in half of the time that its journal took to grow. So a
//! shard has little to do for it in each turn, and little is between the journal and the disk.

use crate::fs_disk::FsDisk;
use crate::journal_file::Journal;
use crate::mailbox::{Mail, Mailboxes};
use base::{Position, ShardId, Ts};
use catalog::Catalog;
use node::CheckpointPart;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use storage::{Checkpointer, Completion, DiskError, Ended};

/// News of a shard for the checkpointer.
pub(crate) enum CheckpointNews {
    /// Next bytes of the file of the shard with this index.
    Bytes { index: u16, bytes: Vec<u8> },
    /// The file is complete.
    End {
        shard: ShardId,
        start: Position,
        journal_from: Position,
        catalog: Arc<Catalog>,
        clock_bound: Ts,
    },
    /// Nothing runs on a shard any more after it was told to drain.
    Drained,
    /// A signal or a caller wants the node to end.
    Stop,
}

impl CheckpointNews {
    /// What `shard` has made of its part of a checkpoint.
    pub(crate) fn of(part: CheckpointPart, shard: ShardId) -> CheckpointNews {
        match part {
            CheckpointPart::Bytes(bytes) => {
                let index = shard.index();
                CheckpointNews::Bytes { index, bytes }
            }
            CheckpointPart::End {
                start,
                journal_from,
                catalog,
                clock_bound,
            } => CheckpointNews::End {
                shard,
                start,
                journal_from,
                catalog,
                clock_bound,
            },
        }
    }
}

/// A checkpoint begins when this many bytes of journal would have to be replayed, or half of the
/// bytes of the last checkpoint: else a large one would be written for a few changes.
const JOURNAL_BYTES: u64 = 256 << 20;
/// Bytes of rows that a shard writes in one turn: about 100 microseconds.
const PIECE_BYTES: usize = 64 << 10;
/// Lowest rate of a checkpoint, in bytes per second of all shards together.
const RATE_MIN: f64 = (8 << 20) as f64;
/// Highest rate, in bytes per second of each shard: about a seventh of its time.
const RATE_MAX: f64 = (96 << 20) as f64;

/// The checkpoints of this node.
pub(crate) struct Checkpoints {
    pub(crate) checkpointer: Checkpointer<FsDisk>,
    pub(crate) journal: Journal,
    pub(crate) mailboxes: Mailboxes,
    /// Bytes of the last whole checkpoint.
    last_bytes: u64,
    /// When the last one began, or the node started.
    began: Instant,
    /// Shards that have written a piece and may be asked for the next one.
    ready: VecDeque<u16>,
    /// When the next piece is due.
    next_at: Instant,
    /// Bytes per second; none: as fast as it goes.
    rate: Option<f64>,
    pub(crate) gauges: Arc<CheckpointGauges>,
}

/// What others may know of checkpoints.
#[derive(Default)]
pub(crate) struct CheckpointGauges {
    pub(crate) completed: AtomicU64,
    pub(crate) running: AtomicBool,
    pub(crate) last_bytes: AtomicU64,
}

impl Checkpoints {
    /// `last_bytes`: size of the checkpoint in use.
    pub(crate) fn new(
        checkpointer: Checkpointer<FsDisk>,
        journal: Journal,
        mailboxes: Mailboxes,
        last_bytes: u64,
    ) -> Checkpoints {
        let gauges = Arc::<CheckpointGauges>::default();
        gauges.last_bytes.store(last_bytes, Ordering::Relaxed);
        Checkpoints {
            checkpointer,
            journal,
            mailboxes,
            last_bytes,
            began: Instant::now(),
            ready: VecDeque::new(),
            next_at: Instant::now(),
            rate: None,
            gauges,
        }
    }

    /// Bytes of journal at which the next checkpoint begins.
    fn due_bytes(&self) -> u64 {
        JOURNAL_BYTES.max(self.last_bytes / 2)
    }

    /// Whether a checkpoint is due.
    pub(crate) fn is_due(&self) -> bool {
        let journal_bytes = self.checkpointer.journal_bytes(self.journal.end());
        !self.is_running() && journal_bytes > self.due_bytes()
    }

    /// Whether a checkpoint is being written.
    pub(crate) fn is_running(&self) -> bool {
        self.checkpointer.is_running()
    }

    /// Starts a checkpoint of all shards, unless its files cannot be created: then the old one
    /// stays in use, and this is said in the log. `hurry`: no client is served.
    pub(crate) fn begin(&mut self, hurry: bool) {
        let now = Instant::now();
        let journal_bytes = self.checkpointer.journal_bytes(self.journal.end());
        let bytes = self.last_bytes.max(journal_bytes);
        self.rate = (!hurry).then(|| rate(bytes, now - self.began, self.rate_max()));
        self.began = now;
        self.next_at = now;
        match self.checkpointer.begin(self.journal.end()) {
            Ok(number) => {
                self.gauges.running.store(true, Ordering::Relaxed);
                self.mailboxes.all(|| Mail::Checkpoint(number));
                self.ready.extend(0..self.mailboxes.len() as u16);
            }
            Err(error) => given_up(&error),
        }
    }

    /// From now on it goes as fast as it can.
    pub(crate) fn hurry(&mut self) {
        self.rate = None;
    }

    /// Asks for the pieces that are due; when the next one is.
    pub(crate) fn ask(&mut self) -> Option<Instant> {
        let now = Instant::now();
        while let Some(index) = self.ready.front() {
            if self.rate.is_some() && self.next_at > now {
                return Some(self.next_at);
            }
            let mail = Mail::CheckpointPiece(PIECE_BYTES);
            self.mailboxes.send(usize::from(*index), mail);
            self.ready.pop_front();
            let rate = self.present_rate();
            let pause = rate.map_or(0.0, |rate| PIECE_BYTES as f64 / rate);
            // What was late is not made up for: that would be a burst.
            self.next_at = self.next_at.max(now) + Duration::from_secs_f64(pause);
        }
        None
    }

    /// The rate, raised once the journal has grown so much meanwhile that the next one is due.
    fn present_rate(&self) -> Option<f64> {
        let late = self.checkpointer.journal_bytes(self.journal.end()) > self.due_bytes();
        self.rate
            .map(|rate| if late { self.rate_max() } else { rate })
    }

    /// Bytes per second of all shards together.
    fn rate_max(&self) -> f64 {
        RATE_MAX * self.mailboxes.len() as f64
    }

    /// Takes bytes of a file. A checkpoint that cannot be written is given up.
    pub(crate) fn on_bytes(&mut self, index: u16, bytes: &[u8]) {
        if let Err(error) = self.checkpointer.on_bytes(index, bytes) {
            given_up(&error);
        }
        self.ready.push_back(index);
    }

    /// Takes the end of a file; when all are complete, puts the checkpoint into use.
    ///
    /// # Errors
    /// The manifest cannot be replaced, or what it replaces cannot be removed; whatever is on disk
    /// is consistent all the same.
    pub(crate) fn on_end(
        &mut self,
        shard: ShardId,
        start: Position,
        journal_from: Position,
    ) -> Result<(), DiskError> {
        self.ready.retain(|index| *index != shard.index());
        let bytes = self.checkpointer.written_bytes();
        if self.checkpointer.on_end(shard, start, journal_from) != Ended::Whole {
            return Ok(());
        }
        self.wait_durable(self.journal.end());
        self.gauges.running.store(false, Ordering::Relaxed);
        match self.checkpointer.complete()? {
            Completion::InUse(number) => {
                self.last_bytes = bytes;
                self.gauges.last_bytes.store(bytes, Ordering::Relaxed);
                self.gauges.completed.fetch_add(1, Ordering::Relaxed);
                let seconds = self.began.elapsed().as_secs_f64();
                tracing::info!(number, bytes, seconds, "checkpoint complete");
            }
            Completion::GivenUp(error) => given_up(&error),
        }
        Ok(())
    }

    fn wait_durable(&self, position: Position) {
        while self.journal.durable() < position {
            self.journal.flush_soon();
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

fn given_up(error: &DiskError) {
    tracing::error!(%error, "cannot write a checkpoint; the old one stays in use");
}

/// Bytes per second at which a checkpoint of `bytes` is done in half of the time that the journal
/// behind it took to grow, `rate_max` at most.
fn rate(bytes: u64, interval: Duration, rate_max: f64) -> f64 {
    let seconds = interval.as_secs_f64().max(0.001) / 2.0;
    (bytes as f64 / seconds).clamp(RATE_MIN, rate_max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checkpoint_takes_half_of_the_time_that_there_is() {
        let mib = |rate: f64| (rate / f64::from(1 << 20)).round();
        let rate = |bytes, seconds| rate(bytes, Duration::from_secs(seconds), RATE_MAX);
        assert_eq!(mib(rate(550 << 20, 40)), 28.0);
        assert_eq!(mib(rate(8 << 30, 600)), 27.0);
        assert_eq!(rate(1 << 20, 600), RATE_MIN);
        assert_eq!(rate(8 << 30, 0), RATE_MAX);
    }
}

//! Checkpoints of a running node, on its main thread: `storage::CheckpointKeeper` with the mail to
//! the shards and the waits.

use crate::fs_disk::FsDisk;
use crate::journal_file::Journal;
use crate::mailbox::{Mail, Mailboxes};
use base::{Position, ShardId, Ts};
use catalog::Catalog;
use std::sync::Arc;
use storage::{CheckpointKeeper, Completion, DiskError, Ended};

/// News of a shard for the keeper.
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

/// The checkpoints of this node.
pub(crate) struct Checkpoints {
    pub(crate) keeper: CheckpointKeeper<FsDisk>,
    pub(crate) journal: Journal,
    pub(crate) mailboxes: Mailboxes,
}

impl Checkpoints {
    /// Bytes of journal since the last checkpoint began.
    pub(crate) fn journal_bytes(&self) -> u64 {
        self.keeper.journal_bytes(self.journal.end())
    }

    /// Whether a checkpoint is being written.
    pub(crate) fn is_running(&self) -> bool {
        self.keeper.is_running()
    }

    /// Starts a checkpoint of all shards, unless its files cannot be created: then the old one
    /// stays in use, and this is said in the log.
    pub(crate) fn begin(&mut self) {
        match self.keeper.begin(self.journal.end()) {
            Ok(number) => self.mailboxes.all(|| Mail::Checkpoint(number)),
            Err(error) => given_up(&error),
        }
    }

    /// Takes bytes of a file. A checkpoint that cannot be written is given up.
    pub(crate) fn on_bytes(&mut self, index: u16, bytes: &[u8]) {
        if let Err(error) = self.keeper.on_bytes(index, bytes) {
            given_up(&error);
        }
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
        if self.keeper.on_end(shard, start, journal_from) != Ended::Whole {
            return Ok(());
        }
        self.wait_durable(self.journal.end());
        match self.keeper.complete()? {
            Completion::InUse(number) => tracing::info!(number, "checkpoint complete"),
            Completion::GivenUp(error) => given_up(&error),
        }
        Ok(())
    }

    fn wait_durable(&self, position: Position) {
        while self.journal.durable() < position {
            self.journal.flush_soon();
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }
}

fn given_up(error: &DiskError) {
    tracing::error!(%error, "cannot write a checkpoint; the old one stays in use");
}

//! Tells a system that watches the node what there is to tell: [`metrics`].

use crate::checkpoint::CheckpointGauges;
use crate::error::RuntimeError;
use crate::journal_file::Journal;
use crate::mailbox::{Mail, Mailboxes};
use base::ShardId;
use metrics::NodeFacts;
use node::Report;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::sync_channel;
use std::time::{Duration, Instant};

/// Time for the answers of the shards to a question.
const ANSWER_TIME: Duration = Duration::from_secs(1);

/// Where the facts of a node are.
pub(crate) struct Watched {
    pub(crate) first_shard: ShardId,
    pub(crate) incarnation: u32,
    pub(crate) connections_max: u32,
    pub(crate) seats_taken: Arc<AtomicU32>,
    pub(crate) journal: Journal,
    pub(crate) checkpoints: Arc<CheckpointGauges>,
    pub(crate) mailboxes: Mailboxes,
}

impl Watched {
    /// Answers at this address, on a thread that ends with the process.
    ///
    /// # Errors
    /// The address cannot be listened on.
    pub(crate) fn serve(self, address: SocketAddr) -> Result<(), RuntimeError> {
        let failed = || RuntimeError::socket("listen on", address);
        let listener = TcpListener::bind(address).map_err(failed())?;
        let run = move || metrics::serve(&listener, || self.page());
        let thread = std::thread::Builder::new().name("metrics".into());
        thread.spawn(run).map_err(failed())?;
        Ok(())
    }

    fn page(&self) -> String {
        let shards = self.mailboxes.len();
        let (sender, answers) = sync_channel(shards);
        (self.mailboxes).all(|| Mail::Report(sender.clone()));
        drop(sender);
        let name = |index| ShardId::new(self.first_shard.node(), index as u16).to_string();
        let mut found: Vec<(String, Option<Box<Report>>)> =
            (0..shards).map(|index| (name(index), None)).collect();
        let until = Instant::now() + ANSWER_TIME;
        for _ in 0..shards {
            let left = until.saturating_duration_since(Instant::now());
            let Ok((index, report)) = answers.recv_timeout(left) else {
                break;
            };
            found[index].1 = Some(report);
        }
        metrics::page(&self.facts(), &found)
    }

    fn facts(&self) -> NodeFacts {
        let checkpoints = &self.checkpoints;
        NodeFacts {
            node: self.first_shard.node().0,
            incarnation: self.incarnation,
            connections: self.seats_taken.load(Ordering::Relaxed),
            connections_max: self.connections_max,
            journal_end: self.journal.end().0,
            journal_durable: self.journal.durable().0,
            journal_flushes: self.journal.flushes(),
            checkpoints: checkpoints.completed.load(Ordering::Relaxed),
            checkpoint_running: checkpoints.running.load(Ordering::Relaxed),
            checkpoint_bytes: checkpoints.last_bytes.load(Ordering::Relaxed),
        }
    }
}

//! The thread beside a shard on which long statements are parsed and planned
//! ([`node::Preparation`]), one after the other. It starts and ends with the shard.

use crate::gauges::Work;
use crate::mailbox::{Mail, Mailboxes};
use crate::node_process::SHARD_STACK_BYTES;
use base::ShardId;
use node::Preparation;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

/// Gives work to the thread; its results come as [`Mail::Prepared`].
pub(crate) struct Preparer {
    sender: Sender<Preparation>,
    pub(crate) work: Arc<Work>,
}

impl Preparer {
    /// # Panics
    /// If the process can have no more threads.
    pub(crate) fn start(shard: ShardId, mailboxes: Mailboxes) -> Preparer {
        let (sender, given) = channel();
        let work = Arc::<Work>::default();
        let done = work.clone();
        let thread = std::thread::Builder::new().name(format!("prepare-{}", shard.index()));
        let thread = thread.stack_size(SHARD_STACK_BYTES);
        let spawned = thread.spawn(move || run(shard, &mailboxes, &given, &done));
        spawned.expect("the process can start a thread");
        Preparer { sender, work }
    }

    pub(crate) fn give(&self, preparation: Preparation) {
        // The thread goes on as long as this end is held.
        self.work.give(1);
        let _ = self.sender.send(preparation);
    }
}

fn run(shard: ShardId, mailboxes: &Mailboxes, given: &Receiver<Preparation>, work: &Work) {
    while let Ok(preparation) = given.recv() {
        let result = work.time(|| preparation.run());
        work.done(1);
        if let Some(result) = result {
            let mail = Mail::Prepared(Box::new(result));
            mailboxes.send(usize::from(shard.index()), mail);
        }
    }
}

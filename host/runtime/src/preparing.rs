//! The thread beside a shard on which long statements are parsed and planned
//! ([`node::Preparation`]), one after the other. It starts and ends with the shard.

use crate::mailbox::{Mail, Mailboxes};
use crate::node_process::SHARD_STACK_BYTES;
use base::ShardId;
use node::Preparation;
use std::sync::mpsc::{Receiver, Sender, channel};

/// Gives work to the thread; its results come as [`Mail::Prepared`].
pub(crate) struct Preparer(Sender<Preparation>);

impl Preparer {
    /// # Panics
    /// If the process can have no more threads.
    pub(crate) fn start(shard: ShardId, mailboxes: Mailboxes) -> Preparer {
        let (sender, work) = channel();
        let thread = std::thread::Builder::new().name(format!("prepare-{}", shard.index()));
        let thread = thread.stack_size(SHARD_STACK_BYTES);
        let spawned = thread.spawn(move || run(shard, &mailboxes, &work));
        spawned.expect("the process can start a thread");
        Preparer(sender)
    }

    pub(crate) fn give(&self, preparation: Preparation) {
        // The thread goes on as long as this end is held.
        let _ = self.0.send(preparation);
    }
}

fn run(shard: ShardId, mailboxes: &Mailboxes, work: &Receiver<Preparation>) {
    while let Ok(preparation) = work.recv() {
        if let Some(result) = preparation.run() {
            let mail = Mail::Prepared(Box::new(result));
            mailboxes.send(usize::from(shard.index()), mail);
        }
    }
}

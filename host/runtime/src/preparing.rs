//! The thread beside a shard on which long statements are parsed and planned
//! ([`node::Preparation`]), one after the other. It starts with the first one and ends with the
//! shard.

use crate::mailbox::{Mail, Mailboxes};
use crate::node_process::SHARD_STACK_BYTES;
use base::ShardId;
use node::Preparation;
use std::sync::mpsc::{Receiver, Sender, channel};

/// Gives work to the thread; its results come as [`Mail::Prepared`].
pub(crate) struct Preparer {
    shard: ShardId,
    mailboxes: Mailboxes,
    thread: Option<Sender<Preparation>>,
}

impl Preparer {
    pub(crate) fn new(shard: ShardId, mailboxes: Mailboxes) -> Preparer {
        Preparer {
            shard,
            mailboxes,
            thread: None,
        }
    }

    pub(crate) fn give(&mut self, preparation: Preparation) {
        let (shard, mailboxes) = (self.shard, &self.mailboxes);
        let thread = self
            .thread
            .get_or_insert_with(|| start(shard, mailboxes.clone()));
        // The thread goes on as long as this end is held.
        let _ = thread.send(preparation);
    }
}

fn start(shard: ShardId, mailboxes: Mailboxes) -> Sender<Preparation> {
    let (sender, work) = channel();
    let thread = std::thread::Builder::new().name(format!("prepare-{}", shard.index()));
    let thread = thread.stack_size(SHARD_STACK_BYTES);
    let spawned = thread.spawn(move || run(shard, &mailboxes, &work));
    spawned.expect("the process can start a thread");
    sender
}

fn run(shard: ShardId, mailboxes: &Mailboxes, work: &Receiver<Preparation>) {
    while let Ok(preparation) = work.recv() {
        if let Some(result) = preparation.run() {
            let mail = Mail::Prepared(Box::new(result));
            mailboxes.send(usize::from(shard.index()), mail);
        }
    }
}

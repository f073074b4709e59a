//! The thread of a node on which long programs of other nodes' messages are decoded, one after the
//! other: the condition of a statement of some megabytes takes a tenth of a second.

use crate::gauges::Work;
use crate::mailbox::{Mail, Mailboxes};
use crate::node_process::SHARD_STACK_BYTES;
use node::frame::Arrived;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;
use txn::RowProgram;

/// Pause between two searches for programs that are not needed any more.
const SWEEP: Duration = Duration::from_millis(100);

/// A message with a long program, of the connection `token` of the shard with this index.
pub(crate) struct LongMessage {
    pub(crate) shard: usize,
    pub(crate) token: usize,
    pub(crate) arrived: Arrived,
}

/// Gives messages to the thread; they come back as [`Mail::Decoded`]. The thread ends with the
/// last of these.
#[derive(Clone)]
pub(crate) struct Decoder {
    sender: Sender<LongMessage>,
    pub(crate) work: Arc<Work>,
}

impl Decoder {
    /// # Panics
    /// If the process can have no more threads.
    pub(crate) fn start(mailboxes: Mailboxes) -> Decoder {
        let (sender, given) = channel();
        let work = Arc::<Work>::default();
        let done = work.clone();
        let thread = std::thread::Builder::new().name("decode".into());
        let thread = thread.stack_size(SHARD_STACK_BYTES);
        let spawned = thread.spawn(move || run(&mailboxes, &given, &done));
        spawned.expect("the process can start a thread");
        Decoder { sender, work }
    }

    pub(crate) fn give(&self, message: LongMessage) {
        // The thread goes on as long as this end is held.
        self.work.give(1);
        let _ = self.sender.send(message);
    }
}

fn run(mailboxes: &Mailboxes, given: &Receiver<LongMessage>, work: &Work) {
    // What the shards do not need any more is freed here: that takes half as long as making it.
    let mut programs: Vec<Arc<dyn RowProgram>> = Vec::new();
    loop {
        let message = match programs.is_empty() {
            true => given.recv().map_err(|_| RecvTimeoutError::Disconnected),
            false => given.recv_timeout(SWEEP),
        };
        match message {
            Ok(mut message) => {
                programs.extend(work.time(|| message.arrived.make_live()));
                work.done(1);
                mailboxes.send(message.shard, Mail::Decoded(Box::new(message)));
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        programs.retain(|program| Arc::strong_count(program) > 1);
    }
}

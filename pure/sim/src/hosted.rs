//! One node as the simulator hosts it: what `host/runtime` does with threads, sockets and files,
//! without them.

use crate::disk::SimDisk;
use crate::queue::{Event, Life};
use base::steady::SteadyClock;
use base::{NodeId, Position, Time, Ts};
use node::{ConnId, Effects, Input, Message, Shard};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use storage::{Checkpointer, JournalBuffer, JournalWriter, Recovered};
use txn::JournalPort;
use txn::contract::Outgoing;
use wire::Reply;

/// A shard's handle of the node's journal.
pub(crate) struct SimJournal {
    pub(crate) buffer: Rc<RefCell<JournalBuffer>>,
    pub(crate) durable: Rc<Cell<Position>>,
    /// Largest timestamp that a shard of the node has noted of what it answers.
    pub(crate) answered: Rc<Cell<Ts>>,
}

impl JournalPort for SimJournal {
    fn append(&mut self, payload: &[u8]) -> Position {
        self.buffer.borrow_mut().append(payload)
    }
    fn hold(&mut self) -> Position {
        self.buffer.borrow_mut().hold()
    }
    fn free(&mut self, held: Position) {
        self.buffer.borrow_mut().free(held);
    }
    fn oldest_held(&self) -> Option<Position> {
        self.buffer.borrow().oldest_held()
    }
    fn durable(&self) -> Position {
        self.durable.get()
    }
    fn note_answered(&mut self, ts: Ts) {
        self.answered.set(self.answered.get().max(ts));
    }
    fn answered(&self) -> Option<Ts> {
        Some(self.answered.get())
    }
    fn is_behind(&self) -> bool {
        // Transactions are small here: so that some large ones wait.
        self.buffer.borrow().end().0 - self.durable.get().0 > 2_000
    }
}

/// The server's end of a client's connection.
pub(crate) struct ServerConn {
    /// The client's number of it.
    pub(crate) client: u32,
    held: VecDeque<(Reply, Position)>,
    /// Released and not yet sent.
    pub(crate) out: Vec<Reply>,
    /// Rows were sent since the session last heard that its output is drained.
    pub(crate) rows_sent: bool,
}

impl ServerConn {
    pub(crate) fn new(client: u32) -> ServerConn {
        ServerConn {
            client,
            held: VecDeque::new(),
            out: Vec::new(),
            rows_sent: false,
        }
    }

    /// Takes a reply; whether it is held.
    pub(crate) fn reply(&mut self, reply: Reply, wait: Position, durable: Position) -> bool {
        if !self.held.is_empty() || wait > durable {
            self.held.push_back((reply, wait));
            return true;
        }
        self.pass(reply);
        false
    }

    /// Lets go what no longer waits.
    pub(crate) fn release(&mut self, durable: Position) {
        while self.held.front().is_some_and(|(_, wait)| *wait <= durable) {
            let (reply, _) = self.held.pop_front().expect("just seen");
            self.pass(reply);
        }
    }

    fn pass(&mut self, reply: Reply) {
        self.rows_sent |= matches!(reply, Reply::Rows(..) | Reply::CopyData(_));
        self.out.push(reply);
    }

    pub(crate) fn is_holding(&self) -> bool {
        !self.held.is_empty()
    }
}

/// State of a shard's outgoing connection to another node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LinkState {
    Idle,
    Opening,
    /// To this life of the other node.
    Up(Life),
}

/// A shard's outgoing connection to another node.
pub(crate) struct Link {
    pub(crate) state: LinkState,
    pub(crate) epoch: u32,
    pub(crate) retry_us: u64,
    /// Frames that a cut holds back: they arrive when it ends, or never if the connection breaks
    /// first.
    pub(crate) stalled: VecDeque<Vec<u8>>,
    /// Nothing that keeps its order arrives before this.
    pub(crate) last_ns: u64,
}

/// First and longest pause before a connection is tried again, as in the server.
pub(crate) const RETRY_US_MIN: u64 = 50_000;
pub(crate) const RETRY_US_MAX: u64 = 100_000;
/// A node that does not answer for so long is taken to be down: heartbeats of the server.
pub(crate) const SILENCE_US: u64 = 800_000;
/// Heartbeats come so far apart.
pub(crate) const BEAT_US: u64 = 100_000;

impl Link {
    pub(crate) fn new() -> Link {
        Link {
            state: LinkState::Idle,
            epoch: 0,
            retry_us: RETRY_US_MIN,
            stalled: VecDeque::new(),
            last_ns: 0,
        }
    }
}

/// A shard with what its thread would keep.
pub(crate) struct ShardHost {
    pub(crate) machine: Shard,
    pub(crate) effects: Effects,
    pub(crate) conns: BTreeMap<ConnId, ServerConn>,
    pub(crate) next_conn: u32,
    /// Messages that wait for the journal, per receiver in order.
    pub(crate) held: BTreeMap<base::ShardId, VecDeque<Outgoing<Message>>>,
    /// To the other nodes, by index.
    pub(crate) links: BTreeMap<usize, Link>,
    /// Messages to the other shards of the node keep their order: nothing arrives before this.
    pub(crate) local_last_ns: u64,
    /// Time and number of the tick that is on its way.
    pub(crate) tick: Option<(u64, u64)>,
    pub(crate) tick_number: u64,
    /// The core works until then; what comes meanwhile waits.
    pub(crate) busy_until_ns: u64,
    pub(crate) inbox: VecDeque<Input>,
    pub(crate) steps: u64,
}

/// A node between a start and its end.
pub(crate) struct Running {
    pub(crate) life: Life,
    pub(crate) incarnation: u32,
    pub(crate) shards: Vec<ShardHost>,
    pub(crate) buffer: Rc<RefCell<JournalBuffer>>,
    pub(crate) durable: Rc<Cell<Position>>,
    pub(crate) writer: JournalWriter<SimDisk>,
    pub(crate) flushing: bool,
    pub(crate) full: bool,
    pub(crate) checkpointer: Checkpointer<SimDisk>,
    /// A whole checkpoint waits for the journal.
    pub(crate) checkpoint_wait: Option<Position>,
    /// Round robin of clients over shards.
    pub(crate) next_shard: usize,
}

impl Running {
    /// Whether all shards serve clients.
    pub(crate) fn is_accepting(&self) -> bool {
        self.shards.iter().all(|shard| shard.machine.is_accepting())
    }

    /// Whether some effect waits for the journal.
    pub(crate) fn is_holding(&self) -> bool {
        let conns = |shard: &ShardHost| shard.conns.values().any(ServerConn::is_holding);
        self.shards
            .iter()
            .any(|shard| !shard.held.is_empty() || conns(shard))
    }
}

/// The clocks of a node's machine.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NodeClock {
    offset_us: i64,
    /// Of the clock that is never set.
    monotonic_off_us: i64,
    drift_ppm: i64,
    /// Virtual time since which the drift holds.
    since_ns: u64,
    steady: SteadyClock,
}

impl NodeClock {
    pub(crate) fn new(offset_us: i64) -> NodeClock {
        NodeClock {
            offset_us,
            ..NodeClock::default()
        }
    }

    fn passed_us(&self, now_ns: u64) -> i64 {
        let passed = ((now_ns - self.since_ns) / 1_000) as i64;
        passed * self.drift_ppm / 1_000_000
    }

    /// What the machines of the node are told. `epoch_us` is virtual time 0.
    pub(crate) fn read(&mut self, epoch_us: u64, now_ns: u64) -> Time {
        let off = self.offset_us + self.passed_us(now_ns);
        let wall = Time((epoch_us + now_ns / 1_000).saturating_add_signed(off));
        // The monotonic clock drifts as well, but is not set.
        let off = self.monotonic_off_us + self.passed_us(now_ns);
        let monotonic = (now_ns / 1_000).saturating_add_signed(off);
        self.steady.read(monotonic, wall)
    }

    pub(crate) fn jump(&mut self, by_us: i64) {
        self.offset_us += by_us;
    }

    pub(crate) fn drift(&mut self, now_ns: u64, ppm: i64) {
        self.offset_us += self.passed_us(now_ns);
        self.monotonic_off_us += self.passed_us(now_ns);
        self.since_ns = now_ns;
        self.drift_ppm = ppm;
    }
}

/// One node, up or down.
pub(crate) struct Hosted {
    pub(crate) id: NodeId,
    pub(crate) disk: SimDisk,
    pub(crate) clock: NodeClock,
    /// Starts in this run.
    pub(crate) starts: u32,
    pub(crate) running: Option<Running>,
    /// Recovered, and not to serve clients before this virtual time.
    pub(crate) waiting: Option<(u64, Recovered<SimDisk>)>,
    pub(crate) paused_until_ns: u64,
    /// What came during the pause, in order.
    pub(crate) held: Vec<Event>,
    pub(crate) slow_disk: u64,
    /// The power goes during the next flush: for how many microseconds, and how many times longer
    /// than others that flush takes.
    pub(crate) power_at_flush: Option<(u64, u64)>,
    /// Microseconds for which nothing that the node sends arrives, from the next flush on.
    pub(crate) mute_at_flush: Option<u64>,
    /// Microseconds without power, from when the next checkpoint is in use.
    pub(crate) power_at_checkpoint: Option<u64>,
    /// The next start is to find a flipped bit.
    pub(crate) flip: bool,
}

//! The modelled machine: cores, links and disks, by a table of measured costs.

use crate::costs::{AMOUNTS, Work};
use base::ShardId;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// What a machine takes for what. Measured by `trellis sim calibrate`, or set by hand.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct CostTable {
    /// Nanoseconds of a step, by [`Work::kind`], whatever it does. A kind that is not here takes
    /// the mean of those that are.
    pub kinds: BTreeMap<String, f64>,
    /// Nanoseconds more for each unit of what [`AMOUNTS`] names.
    pub amounts: [f64; AMOUNTS.len()],
    /// Nanoseconds that a core has to do for a frame, at each of its two ends: coding and system.
    pub frame_ns: f64,
    /// Nanoseconds more for each further message in a frame, at each of its two ends: coding.
    pub coding_ns: f64,
    /// Nanoseconds that a core has to do to take a batch of a client and to send its answer.
    pub client_round_ns: f64,
    /// Nanoseconds of a flush of nothing.
    pub flush_ns: f64,
    /// Nanoseconds more for each byte that is flushed.
    pub flush_byte_ns: f64,
    /// One-way delay between nodes, nanoseconds.
    pub link_ns: u64,
    /// Bytes per second of a node's link, in and out apart; 0: no limit.
    pub link_bytes_per_s: u64,
    /// Delay of a message between shards of a node, nanoseconds.
    pub local_ns: u64,
    /// One-way delay between a client and its node, nanoseconds.
    pub client_ns: u64,
}

impl CostTable {
    /// Nanoseconds of a core for a step.
    pub fn step_ns(&self, work: &Work) -> f64 {
        let fixed = |kind: &str| match self.kinds.get(kind) {
            Some(fixed) => *fixed,
            None => self.kinds.values().sum::<f64>() / self.kinds.len().max(1) as f64,
        };
        let further: f64 = work.further.iter().map(|kind| fixed(kind)).sum();
        let fixed = fixed(work.kind) + further;
        let amounts = work.amounts.iter().zip(&self.amounts);
        let variable: f64 = amounts.map(|(count, each)| *count as f64 * each).sum();
        let frames = (work.frames_in + work.frames_out) as f64 * self.frame_ns
            + work.messages_behind as f64 * self.coding_ns;
        fixed + variable + frames + work.client_rounds as f64 * self.client_round_ns
    }
}

/// Reads a real clock around what the model weighs. The simulator itself knows none.
pub trait Stopwatch {
    /// A step, or the coding of a frame, begins.
    fn begins(&mut self);
    /// The step has ended.
    fn step_ended(&mut self);
    /// What the step that has ended was.
    fn step_was(&mut self, work: &Work);
    /// Coding of a frame with so many messages has ended.
    fn coding_ended(&mut self, messages: usize);
}

/// Framing of Ethernet, IP and TCP around a frame, bytes.
const WRAPPING_BYTES: usize = 66;

/// What the machines did since it was last cleared.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Usage {
    /// Nothing takes time, and nothing is counted, while this is false.
    pub(crate) on: bool,
    /// Nanoseconds of all cores of each node.
    pub busy_ns: Vec<u64>,
    /// Frames between nodes.
    pub frames: u64,
    /// Their bytes.
    pub frame_bytes: u64,
    /// Flushes.
    pub flushes: u64,
    /// Their bytes.
    pub flush_bytes: u64,
    /// Steps and their nanoseconds, by kind.
    pub kinds: BTreeMap<&'static str, (u64, u64)>,
}

impl Usage {
    pub(crate) fn clear(&mut self) {
        let nodes = self.busy_ns.len();
        let on = self.on;
        *self = Usage {
            on,
            busy_ns: vec![0; nodes],
            ..Usage::default()
        };
    }
}

/// A table at work.
pub(crate) struct Model {
    table: CostTable,
    usage: Rc<RefCell<Usage>>,
    watch: Option<Box<dyn Stopwatch>>,
    out_free_ns: Vec<u64>,
    in_free_ns: Vec<u64>,
}

impl Model {
    pub(crate) fn new(
        table: CostTable,
        usage: Rc<RefCell<Usage>>,
        watch: Option<Box<dyn Stopwatch>>,
    ) -> Model {
        let nodes = usage.borrow().busy_ns.len();
        Model {
            table,
            usage,
            watch,
            out_free_ns: vec![0; nodes],
            in_free_ns: vec![0; nodes],
        }
    }

    /// The real clock, if it is to run now.
    pub(crate) fn watch(&mut self) -> Option<&mut Box<dyn Stopwatch>> {
        let on = self.usage.borrow().on;
        self.watch.as_mut().filter(|_| on)
    }

    fn wire_ns(&self, bytes: usize) -> u64 {
        let bytes = (bytes + WRAPPING_BYTES) as u64;
        let rate = self.table.link_bytes_per_s;
        (bytes * 1_000_000_000).checked_div(rate).unwrap_or(0)
    }

    /// How long the shard's core is busy with a step. Its effects appear when it is over.
    pub(crate) fn step_ns(&mut self, shard: ShardId, work: &Work) -> u64 {
        if let Some(watch) = self.watch() {
            watch.step_was(work);
        }
        let mut usage = self.usage.borrow_mut();
        if !usage.on {
            return 0;
        }
        let took = self.table.step_ns(work).round() as u64;
        usage.busy_ns[usize::from(shard.node().0) - 1] += took;
        let kind = usage.kinds.entry(work.kind).or_default();
        kind.0 += 1;
        kind.1 += took;
        took
    }

    /// How long a frame of `bytes` bytes takes from node to node (indices from 0), queueing behind
    /// others included. `now_ns` is when it is handed over.
    pub(crate) fn link_ns(&mut self, now_ns: u64, from: usize, to: usize, bytes: usize) -> u64 {
        {
            let mut usage = self.usage.borrow_mut();
            if !usage.on {
                return 0;
            }
            usage.frames += 1;
            usage.frame_bytes += bytes as u64;
        }
        let wire_ns = self.wire_ns(bytes);
        let sent = now_ns.max(self.out_free_ns[from]) + wire_ns;
        self.out_free_ns[from] = sent;
        // The receiving side takes frames of several senders one after the other; the first bit of
        // an undisturbed frame is there before the last has left.
        let arrives = (sent + self.table.link_ns).max(self.in_free_ns[to] + wire_ns);
        self.in_free_ns[to] = arrives;
        arrives - now_ns
    }

    /// How long a message takes between two shards of a node.
    pub(crate) fn local_ns(&mut self) -> u64 {
        match self.usage.borrow().on {
            true => self.table.local_ns,
            false => 0,
        }
    }

    /// How long a flush of this many bytes takes.
    pub(crate) fn flush_ns(&mut self, bytes: usize) -> u64 {
        let mut usage = self.usage.borrow_mut();
        if !usage.on {
            return 0;
        }
        usage.flushes += 1;
        usage.flush_bytes += bytes as u64;
        (self.table.flush_ns + self.table.flush_byte_ns * bytes as f64).round() as u64
    }

    /// How long something takes between a client and a node.
    pub(crate) fn client_ns(&mut self) -> u64 {
        match self.usage.borrow().on {
            true => self.table.client_ns,
            false => 0,
        }
    }
}

//! What is going to happen, in order of virtual time.

use crate::executor::TaskId;
use base::ShardId;
use node::{ConnId, Message};
use std::collections::BTreeMap;
use wire::{ClientMessage, Reply};

/// A life of a node: counts its starts in this run, so that what was meant for one life does not
/// reach the next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Life(pub(crate) u32);

/// One shard's outgoing connection to another node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct LinkName {
    /// Index of the node.
    pub(crate) node: usize,
    pub(crate) life: Life,
    /// Index of the shard.
    pub(crate) shard: usize,
    /// Index of the other node.
    pub(crate) peer: usize,
    /// Counts connections, so that news of an old one are known as such.
    pub(crate) epoch: u32,
}

/// What happens at a point in time.
pub(crate) enum Event {
    /// The node starts if it is down.
    Start { node: usize },
    /// Something at a node, unless this life of the node is over by then.
    Node(usize, Life, NodeEvent),
    /// A shard tries to connect to another node.
    LinkTry(LinkName),
    /// The other node has answered; it lives this life.
    LinkUp(LinkName, Life),
    /// A connection is found to be broken.
    LinkDown(LinkName),
    /// A client's connection request arrives.
    Connect { conn: u32, startup: ClientMessage },
    /// Messages of a client arrive.
    ClientIn {
        conn: u32,
        messages: Vec<ClientMessage>,
    },
    /// Answers arrive at a client.
    ClientOut { conn: u32, replies: Vec<Reply> },
    /// The client sees that its connection is gone.
    ClientLost { conn: u32 },
    /// The server sees that the client is gone.
    ClientGone { conn: u32 },
    /// A cancel request arrives.
    Cancel { node: usize, pid: i32, secret: i32 },
    /// A task has slept enough.
    Wake(TaskId),
    /// The pause of a node is over, unless it has become longer.
    Resume { node: usize },
    /// A fault of the plan begins.
    Fault(usize),
    /// A cut ends. The number tells it from a later one.
    CutEnd { from: usize, to: usize, number: u64 },
    /// A slow link is itself again.
    SlowEnd { from: usize, to: usize },
    /// A disk has room, or its speed, again.
    DiskEnd { node: usize },
    /// The judge of waits looks who waits.
    Look,
}

/// What happens at a node during one of its lives.
pub(crate) enum NodeEvent {
    /// A shard wanted to be woken.
    Tick { shard: usize, number: u64 },
    /// A busy shard can take its next input.
    Run { shard: usize },
    /// A message between shards of the node.
    Local {
        from: ShardId,
        to: ShardId,
        message: Box<Message>,
    },
    /// A frame arrives.
    Frame(Vec<u8>),
    /// The sync that was begun is over.
    FlushDone,
    /// Records for which no effect waits are flushed too; checkpoints that are due begin.
    Housekeeping,
    /// The next piece of a shard's checkpoint is asked for.
    CheckpointPiece { shard: usize },
    /// A client has taken what it was sent.
    Drained { shard: usize, conn: ConnId },
    /// The power goes, for this many microseconds.
    PowerCut { down_us: u64 },
}

impl Event {
    /// The node at which it happens, if it is one: nothing happens at a node that stands still.
    pub(crate) fn node(&self) -> Option<usize> {
        match self {
            Event::Node(_, _, NodeEvent::PowerCut { .. }) => None,
            Event::Node(node, ..) | Event::Cancel { node, .. } => Some(*node),
            Event::LinkTry(link) | Event::LinkUp(link, _) | Event::LinkDown(link) => {
                Some(link.node)
            }
            _ => None,
        }
    }

    /// Whether it comes from nothing but the passing of time.
    fn is_timer(&self) -> bool {
        match self {
            Event::Node(_, _, event) => event.is_timer(),
            Event::LinkTry(_) | Event::Wake(_) | Event::Fault(_) | Event::Look => true,
            Event::Resume { .. } => true,
            Event::CutEnd { .. } | Event::SlowEnd { .. } | Event::DiskEnd { .. } => true,
            _ => false,
        }
    }

    /// A number per kind, for the trace.
    pub(crate) fn code(&self) -> u64 {
        match self {
            Event::Start { .. } => 1,
            Event::Node(_, _, event) => event.code(),
            Event::LinkTry(_) => 8,
            Event::LinkUp(..) => 9,
            Event::LinkDown(_) => 10,
            Event::Connect { .. } => 11,
            Event::ClientIn { .. } => 12,
            Event::ClientOut { .. } => 13,
            Event::ClientLost { .. } => 14,
            Event::ClientGone { .. } => 15,
            Event::Cancel { .. } => 17,
            Event::Wake(_) => 18,
            Event::Fault(_) => 19,
            Event::CutEnd { .. } => 20,
            Event::SlowEnd { .. } => 21,
            Event::DiskEnd { .. } => 22,
            Event::Look => 25,
            Event::Resume { .. } => 26,
        }
    }
}

impl NodeEvent {
    fn is_timer(&self) -> bool {
        matches!(
            self,
            NodeEvent::Tick { .. }
                | NodeEvent::CheckpointPiece { .. }
                | NodeEvent::Housekeeping
                | NodeEvent::PowerCut { .. }
        )
    }

    fn code(&self) -> u64 {
        match self {
            NodeEvent::Tick { .. } => 2,
            NodeEvent::Run { .. } => 3,
            NodeEvent::Local { .. } => 4,
            NodeEvent::Frame(_) => 5,
            NodeEvent::FlushDone => 6,
            NodeEvent::Housekeeping => 7,
            NodeEvent::Drained { .. } => 16,
            NodeEvent::PowerCut { .. } => 23,
            NodeEvent::CheckpointPiece { .. } => 24,
        }
    }
}

/// A wake-up this near counts as something that is going on: pauses between retries are such.
const NEAR_NS: u64 = 60_000_000;

/// Events in order of time; of one time in order of arrival.
#[derive(Default)]
pub(crate) struct Queue {
    /// By time and number; whether each counts as a timer.
    events: BTreeMap<(u64, u64), (bool, Event)>,
    number: u64,
    /// Events that are no timers.
    busy: usize,
}

impl Queue {
    /// `now_ns` tells near from far.
    pub(crate) fn push(&mut self, now_ns: u64, at_ns: u64, event: Event) {
        let near = matches!(event, Event::Node(_, _, NodeEvent::Tick { .. }));
        let near = near && at_ns < now_ns + NEAR_NS;
        let timer = event.is_timer() && !near;
        self.busy += usize::from(!timer);
        self.number += 1;
        let place = (at_ns.max(now_ns), self.number);
        self.events.insert(place, (timer, event));
    }

    /// When the next event happens.
    pub(crate) fn next_ns(&self) -> Option<u64> {
        self.events.keys().next().map(|(at_ns, _)| *at_ns)
    }

    pub(crate) fn pop(&mut self) -> Option<Event> {
        let (_, (timer, event)) = self.events.pop_first()?;
        self.busy -= usize::from(!timer);
        Some(event)
    }

    /// Whether nothing but timers is left.
    pub(crate) fn is_quiet(&self) -> bool {
        self.busy == 0
    }
}

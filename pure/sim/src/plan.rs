//! What a run is made of: everything that is drawn from its seed before it begins.

use crate::disk::SyncStop;
use base::Prng;
pub use catalog::ProtocolKind;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A kind of fault that `--faults` can name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the table below says what they are")]
pub enum Kind {
    Kill,
    Power,
    Pause,
    Cut,
    Slow,
    Loss,
    Duplicate,
    Reorder,
    Sync,
    Full,
    SlowDisk,
    Clock,
    Flip,
    Client,
}

/// The workload of a model of speed (`scale`), which has no faults.
pub(crate) const SCALE: &str = "scale";

/// All kinds with their names and what they do.
pub const KINDS: &[(Kind, &str, &str)] = &[
    (
        Kind::Kill,
        "kill",
        "a node's process ends; what it wrote stays",
    ),
    (
        Kind::Power,
        "power",
        "a node loses its power; unsynced writes are lost or torn",
    ),
    (Kind::Pause, "pause", "a node stands still for a while"),
    (
        Kind::Cut,
        "cut",
        "a link is cut in one direction, or nodes are parted in two groups",
    ),
    (Kind::Slow, "slow", "a link becomes much slower"),
    (Kind::Loss, "loss", "messages of the protocol are lost"),
    (
        Kind::Duplicate,
        "duplicate",
        "messages of the protocol arrive twice",
    ),
    (
        Kind::Reorder,
        "reorder",
        "messages of the protocol overtake one another",
    ),
    (Kind::Sync, "sync", "a sync fails, which ends the node"),
    (Kind::Full, "full", "a disk has no room for a while"),
    (Kind::SlowDisk, "slow-disk", "a disk becomes much slower"),
    (
        Kind::Clock,
        "clock",
        "a node's clock jumps, forwards or back, or drifts",
    ),
    (
        Kind::Flip,
        "flip",
        "a bit of a file is wrong: recovery must say so",
    ),
    (Kind::Client, "client", "a client's connection breaks"),
];

impl Kind {
    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        let row = KINDS.iter().find(|(kind, ..)| *kind == self);
        row.expect("every kind is in the table").1
    }

    /// The kind of this name.
    pub fn find(name: &str) -> Option<Kind> {
        let row = KINDS.iter().find(|(_, known, _)| *known == name);
        row.map(|(kind, ..)| *kind)
    }
}

/// Which kinds a run may draw from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Wanted {
    /// Each kind is on or off by a coin (swarm).
    All,
    /// None.
    Nothing,
    /// Exactly these.
    Only(Vec<Kind>),
}

/// A fault with a place in time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault {
    /// Virtual microseconds after the safety phase began.
    pub at_us: u64,
    /// What happens.
    pub what: What,
}

/// When the power goes, once its time has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Moment {
    /// At once.
    Now,
    /// During the next flush, which takes this many times as long as others.
    Flush(u64),
    /// When the next checkpoint has just come into use: the next start relies on it.
    Checkpoint,
}

/// What happens; nodes from 1, times in microseconds.
#[derive(Clone, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "names of fields say it")]
pub enum What {
    Kill {
        node: u16,
        down_us: u64,
    },
    /// From the next flush on nothing that the node sends arrives for `mute_us`.
    Power {
        node: u16,
        down_us: u64,
        moment: Moment,
        mute_us: u64,
    },
    /// The power of all nodes at once.
    Blackout {
        down_us: u64,
    },
    /// Node 1 ends inside a schema change that has closed something, `steps` steps of its first
    /// shard after that; or it is cut off from all others for as long and goes on. Nothing happens
    /// if no change closes something soon.
    InChange {
        steps: u64,
        down_us: u64,
        lives: bool,
    },
    Pause {
        node: u16,
        for_us: u64,
    },
    Cut {
        from: u16,
        to: u16,
        for_us: u64,
    },
    Part {
        group: u64,
        for_us: u64,
    },
    Slow {
        from: u16,
        to: u16,
        factor: u64,
        for_us: u64,
    },
    Sync {
        node: u16,
        down_us: u64,
    },
    Full {
        node: u16,
        room: u64,
        for_us: u64,
    },
    SlowDisk {
        node: u16,
        factor: u64,
        for_us: u64,
    },
    Jump {
        node: u16,
        by_us: i64,
    },
    Drift {
        node: u16,
        ppm: i64,
    },
    Flip {
        node: u16,
        down_us: u64,
    },
    Client {
        pick: u64,
    },
}

impl What {
    /// Its kind.
    pub fn kind(&self) -> Kind {
        match self {
            What::Kill { .. } => Kind::Kill,
            What::InChange { lives: true, .. } => Kind::Cut,
            What::Power { .. } | What::Blackout { .. } | What::InChange { .. } => Kind::Power,
            What::Pause { .. } => Kind::Pause,
            What::Cut { .. } | What::Part { .. } => Kind::Cut,
            What::Slow { .. } => Kind::Slow,
            What::Sync { .. } => Kind::Sync,
            What::Full { .. } => Kind::Full,
            What::SlowDisk { .. } => Kind::SlowDisk,
            What::Jump { .. } | What::Drift { .. } => Kind::Clock,
            What::Flip { .. } => Kind::Flip,
            What::Client { .. } => Kind::Client,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}us {:?}", self.at_us, self.what)
    }
}

/// The parameters of one run. Everything else follows from them.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The seed that it was drawn from; it also seeds what happens during the run.
    pub seed: u64,
    /// Name of the workload.
    pub workload: &'static str,
    /// What the database `postgres` runs.
    pub protocol: ProtocolKind,
    /// Nodes.
    pub nodes: u16,
    /// Shards per node.
    pub shards: u16,
    /// Clients.
    pub clients: u32,
    /// Length of the safety phase, microseconds.
    pub run_us: u64,
    /// Clocks of nodes are at most so far from the truth when they start, microseconds.
    pub skew_us: u64,
    /// Median delay of a message between nodes, microseconds.
    pub delay_us: u64,
    /// Longest delay of a message between shards of a node, microseconds: shards are threads that
    /// the system lets wait.
    pub local_us: u64,
    /// Median time of a sync, microseconds.
    pub sync_us: u64,
    /// Messages of the protocol in a million that are lost.
    pub loss: u64,
    /// Messages of the protocol in a million that arrive twice.
    pub duplicate: u64,
    /// Messages of the protocol in a million that overtake or are overtaken.
    pub reorder: u64,
    /// After a power cut, changes of a directory may survive without those before them.
    pub any_names: bool,
    /// Journal bytes after which a checkpoint begins.
    pub checkpoint_bytes: u64,
    /// Bytes of a journal segment.
    pub segment_bytes: u64,
    /// The faults, in order.
    pub faults: Vec<Fault>,
    /// The power of a node goes at this sync of its disk.
    pub stop_at: Option<(u16, u64, SyncStop)>,
}

/// What is asked for; `None` is drawn.
#[derive(Clone, Debug)]
pub struct Ask {
    /// Name of the workload.
    pub workload: &'static str,
    /// Transaction protocol of the workload's database.
    pub protocol: ProtocolKind,
    /// Nodes.
    pub nodes: Option<u16>,
    /// Shards per node.
    pub shards: Option<u16>,
    /// Clients.
    pub clients: Option<u32>,
    /// Length of the safety phase, microseconds.
    pub run_us: Option<u64>,
    /// Faults.
    pub wanted: Wanted,
}

impl Ask {
    /// Everything drawn, for this workload.
    pub fn new(workload: &'static str) -> Ask {
        Ask {
            workload,
            protocol: ProtocolKind::TwoPhase,
            nodes: None,
            shards: None,
            clients: None,
            run_us: None,
            wanted: Wanted::All,
        }
    }
}

impl Plan {
    /// Units of a slice of a large transaction. In three of seven runs transactions of several rows
    /// are large ones: the clients write few rows. A model of speed has the server's slices.
    pub(crate) fn slice_units(&self) -> u64 {
        match self.seed % 7 {
            _ if self.workload == SCALE => txn::bulk::SLICE_UNITS,
            2 | 5 => 1,
            3 => 2,
            _ => txn::bulk::SLICE_UNITS,
        }
    }

    /// Whether the clocks of all nodes are the same, always.
    pub fn clocks_agree(&self) -> bool {
        let moves = |fault: &Fault| fault.what.kind() == Kind::Clock;
        self.skew_us == 0 && !self.faults.iter().any(moves)
    }

    /// Draws a run.
    pub fn draw(seed: u64, ask: &Ask) -> Plan {
        let mut prng = Prng::new(seed);
        let nodes = drawn(&mut prng, &[1, 2, 3, 3, 3, 4], ask.nodes);
        let shards = drawn(&mut prng, &[1, 2, 2, 3], ask.shards);
        let clients = drawn(&mut prng, &[2, 4, 6, 8, 8, 12], ask.clients);
        let run_us = prng.between(1_000_000, 6_000_000) as u64;
        let run_us = ask.run_us.unwrap_or(run_us);
        let on = switches(&mut prng, &ask.wanted);
        let mut rate = |kind: Kind| {
            let drawn = 1 << prng.between(6, 17);
            if on.contains(&kind) { drawn } else { 0 }
        };
        let (loss, duplicate, reorder) =
            (rate(Kind::Loss), rate(Kind::Duplicate), rate(Kind::Reorder));
        let mut plan = Plan {
            seed,
            workload: ask.workload,
            protocol: ask.protocol,
            nodes,
            shards,
            clients,
            run_us,
            skew_us: if on.contains(&Kind::Clock) { 20_000 } else { 0 },
            delay_us: 1 << prng.between(5, 13),
            local_us: 1 << prng.between(4, 12),
            sync_us: 1 << prng.between(5, 13),
            loss,
            duplicate,
            reorder,
            any_names: prng.below(2) == 0,
            checkpoint_bytes: 1 << prng.between(checkpoint_least(ask.workload), 17),
            segment_bytes: 1 << prng.between(12, 17),
            faults: Vec::new(),
            stop_at: None,
        };
        if plan.crosses_shards() {
            plan.become_crossed(ask.run_us);
        }
        if plan.has_outages() {
            plan.become_calm(ask.run_us);
            plan.faults = outages(&mut prng, &plan, &on, &ask.wanted);
        } else {
            plan.faults = faults(&mut prng, &plan, &on);
        }
        plan
    }
}

impl Plan {
    /// Whether its faults are long outages on calm links, in which waits are judged.
    pub fn has_outages(&self) -> bool {
        matches!(self.workload, "waits" | "waits-switch")
    }

    /// Whether schema changes close something in it.
    fn closes(&self) -> bool {
        matches!(self.workload, "ddl" | "switch" | "waits-switch")
    }

    /// Whether its transactions are to write on several shards of one node.
    fn crosses_shards(&self) -> bool {
        self.workload == "groups"
    }

    /// Most transactions write on several shards of one node, and messages between those take
    /// longer than a piece of a checkpoint: many commits are under way when one begins.
    fn become_crossed(&mut self, asked_us: Option<u64>) {
        self.nodes = self.nodes.min(2);
        self.shards = self.shards.max(2);
        self.clients = self.clients.max(6);
        self.local_us = CROSSED_LOCAL_US;
        self.run_us = asked_us.unwrap_or(self.run_us.min(CROSSED_RUN_US));
    }

    /// Nothing takes long but what waits for an outage.
    fn become_calm(&mut self, asked_us: Option<u64>) {
        self.nodes = self.nodes.max(3);
        self.clients = self.clients.clamp(4, 6);
        self.run_us = asked_us.unwrap_or(OUTAGES_RUN_US);
        self.skew_us = 0;
        (self.loss, self.duplicate, self.reorder) = (0, 0, 0);
        self.delay_us = self.delay_us.min(1_000);
        self.local_us = self.local_us.min(1_000);
        self.sync_us = self.sync_us.min(1_000);
    }
}

/// Steps of node 1's first shard, at most, inside a change before it ends.
const IN_CHANGE_STEPS: u64 = 64;
/// Longest delay between shards of a node, and length of the safety phase, where most transactions
/// cross shards.
const CROSSED_LOCAL_US: u64 = 8_192;
const CROSSED_RUN_US: u64 = 2_000_000;
/// Length of the safety phase of a run with outages.
const OUTAGES_RUN_US: u64 = 9_000_000;

/// One outage after the other, each long enough to be noticed and waited for, with time to recover
/// between them.
fn outages(prng: &mut Prng, plan: &Plan, on: &[Kind], wanted: &Wanted) -> Vec<Fault> {
    let all = [Kind::Kill, Kind::Pause, Kind::Cut];
    let mut kinds: Vec<Kind> = all.into_iter().filter(|kind| on.contains(kind)).collect();
    if kinds.is_empty() && *wanted == Wanted::All {
        kinds = all.into();
    }
    let mut faults = Vec::new();
    let mut at_us = 500_000;
    while !kinds.is_empty() && at_us < plan.run_us {
        let for_us = 4_000_000 + prng.below(2_000_000);
        let node = 1 + prng.below(u64::from(plan.nodes)) as u16;
        let to = 1 + (node - 1 + 1 + prng.below(u64::from(plan.nodes) - 1) as u16) % plan.nodes;
        let what = match kinds[prng.below(kinds.len() as u64) as usize] {
            Kind::Kill if plan.closes() && !for_us.is_multiple_of(3) => {
                vec![in_change(for_us / 3, for_us)]
            }
            Kind::Kill => vec![What::Kill {
                node,
                down_us: for_us,
            }],
            Kind::Pause => vec![What::Pause { node, for_us }],
            _ => [(node, to), (to, node)]
                .map(|(from, to)| What::Cut { from, to, for_us })
                .into(),
        };
        faults.extend(what.into_iter().map(|what| Fault { at_us, what }));
        at_us += for_us + 1_000_000 + prng.below(1_000_000);
    }
    faults
}

/// Logarithm of the least journal bytes between two checkpoints. Most runs write less than 100 kB;
/// TPC-C writes more, and a checkpoint of all its rows takes the simulator a millisecond.
fn checkpoint_least(workload: &str) -> i64 {
    if workload == "tpcc" { 14 } else { 9 }
}

fn drawn<T: Copy>(prng: &mut Prng, choices: &[T], asked: Option<T>) -> T {
    // Drawn in any case, so that asking for one thing leaves the others what they were.
    let choice = choices[prng.below(choices.len() as u64) as usize];
    asked.unwrap_or(choice)
}

/// Which kinds are on in this run.
fn switches(prng: &mut Prng, wanted: &Wanted) -> Vec<Kind> {
    // Some runs have none at all; of the others each kind is in half.
    let calm = prng.below(16) == 0;
    let mut on = Vec::new();
    for (kind, ..) in KINDS {
        let coin = prng.below(2) == 0;
        let takes = match wanted {
            Wanted::All => coin && !calm,
            Wanted::Nothing => false,
            Wanted::Only(kinds) => kinds.contains(kind),
        };
        if takes {
            on.push(*kind);
        }
    }
    on
}

fn faults(prng: &mut Prng, plan: &Plan, on: &[Kind]) -> Vec<Fault> {
    let rates = [Kind::Loss, Kind::Duplicate, Kind::Reorder];
    let placed: Vec<Kind> = on
        .iter()
        .copied()
        .filter(|kind| !rates.contains(kind))
        .collect();
    let mut faults = Vec::new();
    if placed.is_empty() {
        return faults;
    }
    // From one fault in two seconds to a dozen in one.
    let mean_us = 1 << prng.between(16, 21);
    let mut at_us = 0;
    loop {
        at_us += prng.below(2 * mean_us) + 1;
        if at_us >= plan.run_us {
            return faults;
        }
        let kind = placed[prng.below(placed.len() as u64) as usize];
        if let Some(what) = what(prng, plan, kind) {
            faults.push(Fault { at_us, what });
        }
    }
}

/// Draws a fault of this kind; `None` if the cluster is too small for it.
fn what(prng: &mut Prng, plan: &Plan, kind: Kind) -> Option<What> {
    let nodes = u64::from(plan.nodes);
    let node = prng.below(nodes) as u16 + 1;
    let other = (u64::from(node - 1) + 1 + prng.below(nodes.max(2) - 1)) % nodes;
    let to = other as u16 + 1;
    // From a millisecond to four seconds.
    let for_us = (1 << prng.between(10, 21)) + prng.below(1 << 10);
    let down_us = for_us;
    let from = node;
    Some(match kind {
        // Not drawn, so that other faults stay what they were.
        Kind::Kill if plan.closes() && for_us % 2 == 1 => in_change(for_us / 2, down_us),
        Kind::Kill => What::Kill { node, down_us },
        Kind::Power => power(prng, node, down_us),
        Kind::Pause => What::Pause { node, for_us },
        Kind::Cut if nodes == 1 => return None,
        Kind::Cut if prng.below(3) == 0 => What::Part {
            group: prng.next_u64(),
            for_us,
        },
        Kind::Cut => What::Cut { from, to, for_us },
        Kind::Slow if nodes == 1 => return None,
        Kind::Slow => What::Slow {
            from,
            to,
            factor: 1 << prng.between(2, 8),
            for_us,
        },
        Kind::Sync => What::Sync { node, down_us },
        Kind::Full => What::Full {
            node,
            room: prng.below(1 << 14),
            for_us,
        },
        Kind::SlowDisk => What::SlowDisk {
            node,
            factor: 1 << prng.between(2, 8),
            for_us,
        },
        Kind::Clock if prng.below(3) == 0 => What::Drift {
            node,
            ppm: prng.between(-200_000, 200_000),
        },
        Kind::Clock => {
            let by_us = 1 << prng.between(10, 35);
            let back = prng.below(2) == 0;
            What::Jump {
                node,
                by_us: if back { -by_us } else { by_us },
            }
        }
        Kind::Flip => What::Flip { node, down_us },
        Kind::Client => What::Client {
            pick: prng.next_u64(),
        },
        Kind::Loss | Kind::Duplicate | Kind::Reorder => return None,
    })
}

/// The fault inside a schema change that a number chooses.
fn in_change(choice: u64, down_us: u64) -> What {
    What::InChange {
        steps: choice % IN_CHANGE_STEPS,
        down_us,
        lives: (choice / IN_CHANGE_STEPS).is_multiple_of(2),
    }
}

fn power(prng: &mut Prng, node: u16, down_us: u64) -> What {
    // A node that is mute before it ends has told nobody what it has decided last. A checkpoint
    // takes until the next housekeeping.
    let mute_us = (1 << prng.between(17, 20)) * prng.below(2);
    let moment = match prng.below(6) {
        0 => return What::Blackout { down_us },
        1 => Moment::Now,
        2 | 3 => Moment::Flush(1 << prng.between(0, 6)),
        _ => Moment::Checkpoint,
    };
    What::Power {
        node,
        down_us,
        moment,
        mute_us: if moment == Moment::Now { 0 } else { mute_us },
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "seed {} workload {} nodes {} shards {} clients {} run {}ms delay {}us sync {}us \
             local {}us loss {} duplicate {} reorder {} per \
             million, checkpoint {} segment {} faults {}",
            self.seed,
            self.workload,
            self.nodes,
            self.shards,
            self.clients,
            self.run_us / 1_000,
            self.delay_us,
            self.sync_us,
            self.local_us,
            self.loss,
            self.duplicate,
            self.reorder,
            self.checkpoint_bytes,
            self.segment_bytes,
            self.faults.len()
        )?;
        if self.protocol != ProtocolKind::TwoPhase {
            write!(f, " protocol {}", self.protocol.name())?;
        }
        if let Some((node, sync, how)) = self.stop_at {
            write!(f, " power of node {node} goes {how:?} sync {sync}")?;
        }
        Ok(())
    }
}

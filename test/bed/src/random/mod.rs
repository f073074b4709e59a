//! Random transactions over several nodes with loss, repetition, reordering, outages and crashes.
//! In the end the committed ones, run one after the other in the order of their timestamps, must
//! have seen and left exactly what was seen and left; and a row that may move has one owner.
//!
//! A [`Mix`] says what clients do: [`Accounts`] of every shard, or [`Flags`] that come and go at
//! their homes. All of a run follows from its seed.

mod accounts;
mod client;
mod clients;
mod faults;
mod flags;
mod judge;
mod savepoints;

pub use accounts::Accounts;
pub use client::{Act, Client, Step, Told};
pub use flags::Flags;

use crate::{Subject, World};
use base::{Key, NodeId, Prng, ShardId, Ts};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::panic::AssertUnwindSafe;
use txn::Outcome;

/// Clients at work at the same time, at most.
const CLIENTS_MAX: usize = 6;

/// What happens in a step of a run.
#[derive(Clone, Copy, Debug)]
enum Move {
    /// A client begins, perhaps, and one goes on.
    Client,
    /// A message arrives, or is lost, or comes twice.
    Deliver,
    /// A journal becomes durable.
    Flush,
    /// Time goes on by this many microseconds.
    Tick(u64),
    /// Time goes on by fewer microseconds than this.
    Pause(u64),
    /// A checkpoint begins or goes on.
    Checkpoint,
    /// A node ends, and all others notice, or none.
    Crash,
    /// A node ends, or all do, and each of the others notices or not.
    Blackout,
    /// A node lives and cannot be reached.
    Cut,
    /// A connection breaks, in one direction or both.
    Break,
}

/// How a run goes.
#[derive(Debug)]
struct Profile {
    /// Number of 100 steps for each move; in the others time goes on.
    weights: Vec<(Move, u64)>,
    /// Messages between nodes get lost or come twice.
    loses: bool,
    /// One of this many moves is that a client gives up.
    cancel_one_in: u64,
    /// Steps that a crashed node stays down, at most, beyond the first five.
    down_steps: u64,
    /// In half of the runs one node is gone for a while, and all clients of others must end.
    goes_without: bool,
    /// Rows whose owners are looked at.
    watched: Vec<Key>,
    /// Transactions that died come again.
    retries: bool,
}

/// What clients do.
pub trait Mix<P: Subject>: Sized {
    /// The world of the run `seed` with its rows.
    fn draw(seed: u64, prng: &mut Prng, fault: Option<P::Fault>) -> Drawn<P, Self>;

    /// Begins a transaction, if its shard is up.
    fn begin(run: &mut Run<P, Self>);
}

/// What a [`Mix`] has drawn.
pub struct Drawn<P: Subject, M> {
    world: World<P>,
    profile: Profile,
    mix: M,
}

/// One random run.
pub struct Run<P: Subject, M> {
    seed: u64,
    prng: Prng,
    /// The cluster.
    pub world: World<P>,
    /// All transactions.
    pub clients: Vec<Client>,
    profile: Profile,
    /// What the mix keeps.
    mix: M,
    /// Transactions that died, with their first timestamps.
    retries: Vec<(ShardId, Ts)>,
    /// Nodes that are down, and for how many steps more.
    down: BTreeMap<NodeId, u32>,
    /// Nodes that live and cannot be reached, and for how many steps more.
    cut: BTreeMap<NodeId, u32>,
    /// Those of them that the others know to be down.
    noticed: BTreeSet<NodeId>,
    /// Connections that are down, from a node to another, and for how many steps more.
    unseen: BTreeMap<(NodeId, NodeId), u32>,
    /// Statements that met the end of a column's range.
    pub overflows: usize,
    /// Snapshots that were raised.
    pub raises: usize,
}

impl<P: Subject, M: Mix<P>> Run<P, M> {
    /// The beginning of a run.
    pub fn new(seed: u64, fault: Option<P::Fault>) -> Run<P, M> {
        let mut prng = Prng::new(seed);
        let drawn = M::draw(seed, &mut prng, fault);
        let mut world = drawn.world;
        world.traced = number("SEED").is_some();
        Run {
            seed,
            prng,
            world,
            clients: Vec::new(),
            profile: drawn.profile,
            mix: drawn.mix,
            retries: Vec::new(),
            down: BTreeMap::new(),
            cut: BTreeMap::new(),
            noticed: BTreeSet::new(),
            unseen: BTreeMap::new(),
            overflows: 0,
            raises: 0,
        }
    }

    /// A whole run. Panics if something is wrong; the message names the seed.
    pub fn whole(seed: u64, fault: Option<P::Fault>) -> Run<P, M> {
        let mut run = Run::new(seed, fault);
        let steps = 300 + run.prng.below(900) as u32;
        run.chaos(steps);
        let nodes = run.world.nodes.len() as u64;
        if run.profile.goes_without && nodes > 1 && run.prng.below(2) == 0 {
            let node = run.pick_node();
            run.go_on_without(node);
        }
        run.heal();
        run.check_owners();
        run.check();
        run
    }

    /// Whether the run of a seed notices a fault.
    pub fn notices(seed: u64, fault: P::Fault) -> bool {
        let run = || drop(Self::whole(seed, Some(fault)));
        std::panic::catch_unwind(AssertUnwindSafe(run)).is_err()
    }

    /// Transactions whose clients know that they have committed.
    pub fn committed(&self) -> usize {
        let committed = |c: &&Client| matches!(c.outcome, Some(Outcome::Committed { .. }));
        self.clients.iter().filter(committed).count()
    }

    /// Transactions that have gone back to a savepoint and have committed.
    pub fn went_back(&self) -> usize {
        let committed = |c: &&Client| matches!(c.outcome, Some(Outcome::Committed { .. }));
        let all = self.clients.iter().filter(committed);
        all.filter(|client| client.went_back()).count()
    }

    /// What the mix has drawn.
    pub fn mix(&self) -> &M {
        &self.mix
    }

    fn pick_shard(&mut self) -> ShardId {
        let at = self.prng.below(self.world.placement.shards().len() as u64) as usize;
        self.world.placement.shards()[at]
    }

    /// Where a transaction runs.
    fn pick_coordinator(&mut self) -> ShardId {
        let ids = self.world.ids();
        ids[self.prng.below(ids.len() as u64) as usize]
    }

    fn pick_node(&mut self) -> NodeId {
        NodeId(1 + self.prng.below(self.world.nodes.len() as u64) as u16)
    }

    fn active(&self) -> Vec<usize> {
        let active = |client: &Client| client.outcome.is_none() && !client.lost;
        let all = 0..self.clients.len();
        all.filter(|at| active(&self.clients[*at])).collect()
    }

    fn draw_move(&mut self) -> Move {
        let mut drawn = self.prng.below(100);
        for (next, weight) in &self.profile.weights {
            if drawn < *weight {
                return *next;
            }
            drawn -= weight;
        }
        Move::Tick(100)
    }

    fn chaos(&mut self, steps: u32) {
        for _ in 0..steps {
            self.world.now = self.world.now.after(10);
            self.revive(false);
            match self.draw_move() {
                Move::Client => {
                    if self.active().len() < CLIENTS_MAX {
                        M::begin(self);
                    }
                    let active = self.active();
                    if !active.is_empty() {
                        let at = active[self.prng.below(active.len() as u64) as usize];
                        self.act(at);
                    }
                }
                Move::Deliver => self.deliver_some(),
                Move::Flush => {
                    let node = self.pick_node();
                    if self.world.nodes[&node].up {
                        self.world.flush(node);
                    }
                }
                Move::Tick(micros) => self.world.tick(micros),
                Move::Pause(most) => {
                    let micros = self.prng.below(most);
                    self.world.tick(micros);
                }
                Move::Checkpoint => {
                    let shard = self.pick_coordinator();
                    if self.world.nodes[&shard.node()].up {
                        self.world.checkpoint(shard);
                    }
                }
                Move::Crash => self.crash_some(),
                Move::Blackout => self.black_out(),
                Move::Cut => self.cut_some(),
                Move::Break => self.break_some(),
            }
            self.collect();
            self.check_owners();
        }
    }

    /// Repairs everything and lets all clients finish.
    fn heal(&mut self) {
        self.profile.loses = false;
        self.revive(true);
        for round in 0..400 {
            self.let_all_act();
            self.world.settle();
            self.collect();
            if self.active().is_empty() && self.world.is_idle() {
                return;
            }
            self.world.tick(if round < 50 { 1_000 } else { 1_000_000 });
        }
        panic!("{}", self.stuck("somebody is stuck"));
    }

    /// Delivers all there is, and every client makes a move.
    fn let_all_act(&mut self) {
        self.world.settle();
        self.collect();
        for at in self.active() {
            self.act(at);
        }
    }

    fn stuck(&self, what: &str) -> String {
        let clients: Vec<&Client> = self.active().iter().map(|at| &self.clients[*at]).collect();
        let (seed, states) = (self.seed, self.world.states());
        format!("seed {seed}: {what}\n{states}{clients:?}")
    }

    /// Never two owners.
    fn check_owners(&self) {
        if !P::MOVES_ROWS {
            return;
        }
        for key in &self.profile.watched {
            let owners = self.world.owners(key);
            let (seed, states) = (self.seed, || self.world.states());
            assert!(
                owners.len() <= 1,
                "seed {seed}: {key:?}: {owners:?}\n{}",
                states()
            );
        }
    }
}

/// A number in the environment.
fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// The seeds of a test that runs `count` of them: `SEED=n` runs one and prints what happened,
/// `SEEDS=n` so many, `FROM=n` from there on.
pub fn seeds(count: u64) -> Range<u64> {
    if let Some(seed) = number("SEED") {
        return seed..seed + 1;
    }
    let from = number("FROM").unwrap_or(0);
    from..from + number("SEEDS").unwrap_or(count)
}

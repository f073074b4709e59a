//! Every shard has the same few accounts. Transactions add to them, read and sum them, and leave
//! new rows behind; in some runs most of them meet at one row.

use super::client::{Act, Step, some_change};
use super::{Drawn, Mix, Move, Profile, Run};
use crate::{Subject, TABLE, TRAIL, World, key};
use base::{Key, NodeId, Prng, ShardId, Ts, Type};
use store::FormulaOp;
use txn::{LockMode, Outcome, Read, Snapshot};

const NAMES: [&str; 4] = ["a", "b", "c", "d"];
const INITIAL: i64 = 100;
/// A row whose formulas are those of an int2, near the end of its range.
const EDGE: &str = "e";
const EDGE_INITIAL: i64 = 32_700;

const SHARED: Read = Read::Lock(LockMode::Shared);

/// See the module.
#[derive(Debug)]
pub struct Accounts {
    /// New rows so far.
    trails: u64,
    /// Most transactions add to the same few rows.
    hot: bool,
    /// Transactions that compute a value again and again.
    pub repeated: u64,
    /// See `narrow_steps`; and clients give up easily.
    pub narrow: bool,
}

impl Accounts {
    fn profile(&self, loses: bool, crashes: bool, slow: bool) -> Profile {
        let hasty = self.narrow && crashes;
        let (deliver, wait) = if slow { (10, 45) } else { (55, 0) };
        let (pause, crash) = if hasty { (2, 3) } else { (5, 0) };
        let rare = match crashes && !self.narrow {
            true => Move::Cut,
            false => Move::Checkpoint,
        };
        Profile {
            weights: vec![
                (Move::Client, 25),
                (Move::Deliver, deliver),
                (Move::Tick(50), wait),
                (Move::Flush, 10),
                (Move::Pause(300_000), pause),
                (Move::Crash, crash),
                (rare, 1),
                (Move::Pause(4_000_000), 1),
                (Move::Crash, u64::from(crashes)),
            ],
            loses,
            cancel_one_in: if self.narrow { 10 } else { 60 },
            down_steps: if self.narrow { 6 } else { 60 },
            goes_without: false,
            watched: Vec::new(),
            retries: false,
        }
    }
}

impl<P: Subject> Mix<P> for Accounts {
    fn draw(seed: u64, prng: &mut Prng, fault: Option<P::Fault>) -> Drawn<P, Accounts> {
        assert!(!P::MOVES_ROWS, "rows of one name are at every shard");
        let nodes = 1 + prng.below(3) as u16;
        let shards = 1 + prng.below(if nodes == 1 { 3 } else { 2 }) as u16;
        let loses = prng.below(3) > 0;
        let crashes = prng.below(2) > 0;
        let mut world = World::new(nodes, shards);
        world.plant(fault);
        world.serial = prng.below(8) == 0;
        let hot = prng.below(3) == 0;
        let narrow =
            nodes > 1 && prng.below(4) == 0 && world.placement.shards().len() == world.shards.len();
        let slow = prng.below(if narrow { 2 } else { 4 }) == 0;
        for shard in world.placement.shards().to_vec() {
            for name in NAMES {
                world.load_at(shard, key(TABLE, name), INITIAL);
            }
            world.load_at(shard, key(TABLE, EDGE), EDGE_INITIAL);
        }
        world.settings(P::draw(seed, prng, fault).0);
        world.early_answer = !seed.is_multiple_of(4);
        world.locks_reads = seed % 8 == 5;
        world.keeps_bound = !(narrow && P::PASSES_BOUNDS);
        // Drawn aside, so that the rest of a seed stays what it was.
        let mut skew = Prng::new(seed ^ 0x5eed);
        if skew.below(2) == 0 {
            // Where commits are entrusted, clocks of other nodes are beyond a node's bound.
            let most_us = if narrow { 4_000_000 } else { 3_000 };
            for node in (1..=nodes).map(NodeId) {
                world.ahead.insert(node, skew.below(most_us));
            }
        }
        let trails = 0;
        let mix = Accounts {
            trails,
            repeated: 0,
            hot,
            narrow,
        };
        Drawn {
            world,
            profile: mix.profile(loses, crashes, slow),
            mix,
        }
    }

    fn begin(run: &mut Run<P, Accounts>) {
        let coordinator = run.pick_coordinator();
        if !run.world.nodes[&coordinator.node()].up {
            return;
        }
        let txn = run.world.begin(coordinator);
        let kind = run.prng.below(6);
        let steps: Vec<Step> = if run.mix.narrow {
            run.narrow_steps(coordinator)
        } else if kind == 0 {
            let ts = run.world.call(coordinator, |_, cx| cx.clock.tick(cx.now));
            let read = Read::Snapshot(Snapshot::recent(ts, ts));
            let sum = |shard: &ShardId| Step::new(*shard, Act::Sum { read });
            run.world.placement.shards().iter().map(sum).collect()
        } else {
            let steps = (0..1 + run.prng.below(4)).map(|_| run.any_step()).collect();
            run.repeated(steps)
        };
        let before = |at: usize, step: &Step| steps[..at].iter().all(|b| b.shard != step.shard);
        let apart = steps.iter().enumerate().all(|(at, step)| before(at, step));
        let floor = run.answered();
        run.add_client(txn, steps, apart, floor);
    }
}

impl<P: Subject> Run<P, Accounts> {
    /// Readers at home that write elsewhere, where their commit is entrusted, and transactions that
    /// might see or change what they have read; all on one row of each shard.
    fn narrow_steps(&mut self, home: ShardId) -> Vec<Step> {
        let row = key(TABLE, NAMES[0]);
        let (get, read) = (row.clone(), SHARED);
        let get = Act::Get { key: get, read };
        let add = Act::Add { key: row, delta: 1 };
        match self.prng.below(4) {
            0..=1 => {
                let shards = self.world.placement.shards().iter().copied();
                let away: Vec<ShardId> = shards.filter(|s| s.node() != home.node()).collect();
                let node = away[self.prng.below(away.len() as u64) as usize].node();
                let there = away.into_iter().filter(|shard| shard.node() == node);
                let adds = there.map(|shard| Step::new(shard, add.clone()));
                core::iter::once(Step::new(home, get)).chain(adds).collect()
            }
            2 => vec![Step::new(home, add)],
            _ => {
                let shards = [self.pick_shard(), self.pick_shard()];
                shards.map(|shard| Step::new(shard, get.clone())).into()
            }
        }
    }

    /// Computes a value again and again, sometimes: more often than a formula has changes.
    fn repeated(&mut self, mut steps: Vec<Step>) -> Vec<Step> {
        let computes = |step: &Step| match &step.act {
            Act::Formula { op, .. } => matches!(op, FormulaOp::Compute(_)),
            _ => false,
        };
        if let Some(at) = steps.iter().position(computes)
            && self.prng.below(8) == 0
        {
            let again = core::iter::repeat_n(steps[at].clone(), 33);
            steps.splice(at..at, again);
            self.mix.repeated += 1;
        }
        steps
    }

    fn any_step(&mut self) -> Step {
        let shard = self.pick_shard();
        let name = NAMES[self.prng.below(NAMES.len() as u64) as usize];
        let (key, delta) = (key(TABLE, name), self.prng.between(-9, 9));
        let hot = self.mix.hot && self.prng.below(10) > 0;
        let act = match self.prng.below(10) {
            0..=6 if hot => formula(NAMES[0], delta, Type::Int8),
            _ if hot => formula(EDGE, delta * 8, Type::Int2),
            0..=3 => Act::Add { key, delta },
            4 => formula(name, delta, Type::Int8),
            5..=6 => Act::Get { key, read: SHARED },
            7 => Act::Sum { read: SHARED },
            9 if self.prng.below(2) == 0 => self.new_rows(),
            other => {
                self.mix.trails += 1;
                let key = crate::key(TRAIL, &format!("{:06}", self.mix.trails));
                match other {
                    8 => Act::Insert { key, value: 1 },
                    _ => Act::Put { key },
                }
            }
        };
        Step::new(shard, act)
    }

    fn new_rows(&mut self) -> Act {
        let mut keys: Vec<Key> = Vec::new();
        for _ in 0..2 + self.prng.below(12) {
            let number = match self.prng.below(6) {
                0 => self.prng.below(self.mix.trails + 1),
                _ => {
                    self.mix.trails += 1;
                    self.mix.trails
                }
            };
            // By their first digits they lie in several slots, and are none of the other trails.
            let name = format!("{}{number:05}", 4 + number / 5 % 3);
            keys.push(key(TRAIL, &name));
        }
        self.mix.trails += 1;
        keys.push(key(TRAIL, &format!("3{:05}", self.mix.trails)));
        keys.sort();
        Act::Rows { keys }
    }

    /// Largest timestamp of the transactions that wrote rows which readers add up, and whose
    /// clients know that they have committed.
    fn answered(&self) -> Ts {
        let clients = self.clients.iter().filter(|client| !client.held);
        let writers = clients.filter(|c| c.kept().iter().any(|step| step.act.changes_sums()));
        let committed = writers.filter_map(|client| match client.outcome {
            Some(Outcome::Committed { commit_ts }) => Some(commit_ts),
            _ => None,
        });
        committed.max().unwrap_or_default()
    }
}

fn formula(name: &str, delta: i64, ty: Type) -> Act {
    let initial = if name == EDGE { EDGE_INITIAL } else { INITIAL };
    let op = some_change(delta, initial);
    let key = key(TABLE, name);
    Act::Formula { key, op, ty }
}

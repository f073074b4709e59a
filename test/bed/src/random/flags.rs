//! Accounts at their homes, and rows that come and go. Transactions that died come again.

use super::client::{Act, Step, some_change};
use super::{Drawn, Mix, Move, Profile, Run};
use crate::{Subject, World, placed};
use base::{Key, Prng, ShardId, Ts, Type};
use txn::{LockMode, Read, Snapshot};

const NAMES: [&str; 6] = ["a0", "b0", "a1", "b1", "a2", "b2"];
/// Rows that come and go.
const FLAGS: [&str; 4] = ["x0", "y0", "x1", "x2"];
const INITIAL: i64 = 100;

const SHARED: Read = Read::Lock(LockMode::Shared);

/// See the module.
#[derive(Debug)]
pub struct Flags {
    /// Most of the changes are blind.
    blind: bool,
}

impl<P: Subject> Mix<P> for Flags {
    fn draw(seed: u64, prng: &mut Prng, fault: Option<P::Fault>) -> Drawn<P, Flags> {
        let nodes = 1 + prng.below(4) as u16;
        let shards = 1 + prng.below(if nodes == 1 { 3 } else { 2 }) as u16;
        let loses = prng.below(3) > 0;
        let crashes = u64::from(prng.below(2) > 0);
        let mut world = World::new(nodes, shards);
        world.plant(fault);
        for name in NAMES {
            world.load(placed(name), INITIAL);
        }
        let (settings, blind) = P::draw(seed, prng, fault);
        world.settings(settings);
        world.early_answer = !seed.is_multiple_of(4);
        world.locks_reads = seed % 8 == 5;
        world.keeps_bound = P::BOUNDS_CLOCKS;
        let watched = NAMES.iter().chain(&FLAGS).map(|name| placed(name));
        let profile = Profile {
            weights: vec![
                (Move::Client, 25),
                (Move::Deliver, 53),
                (Move::Flush, 11),
                (Move::Pause(300_000), 4),
                (Move::Checkpoint, 2),
                (Move::Pause(4_000_000), 2),
                (Move::Blackout, crashes),
                (Move::Break, crashes),
            ],
            loses,
            cancel_one_in: 60,
            down_steps: 60,
            goes_without: P::MOVES_ROWS,
            watched: watched.collect(),
            retries: true,
        };
        let mix = Flags { blind };
        Drawn {
            world,
            profile,
            mix,
        }
    }

    fn begin(run: &mut Run<P, Flags>) {
        let again = if run.retries.is_empty() || run.prng.below(2) == 0 {
            None
        } else {
            let at = run.prng.below(run.retries.len() as u64) as usize;
            Some(run.retries.remove(at))
        };
        let coordinator = again.map_or_else(|| run.pick_coordinator(), |(shard, _)| shard);
        if !run.world.nodes[&coordinator.node()].up {
            return;
        }
        let txn = run.world.begin_as(coordinator, again.map(|(_, ts)| ts));
        let steps: Vec<Step> = if run.prng.below(6) == 0 {
            run.snapshot_steps(coordinator)
        } else if run.prng.below(4) == 0 {
            let key = placed(NAMES[run.prng.below(3) as usize]);
            vec![run.bump(key)]
        } else {
            (0..1 + run.prng.below(4))
                .map(|_| run.flag_step())
                .collect()
        };
        let apart = apart(&steps);
        run.add_client(txn, steps, apart, Ts::ZERO);
    }
}

impl<P: Subject> Run<P, Flags> {
    fn at_home(&self, key: Key, act: impl FnOnce(Key) -> Act) -> Step {
        Step::new(self.world.home(&key), act(key))
    }

    fn bump(&mut self, key: Key) -> Step {
        if self.prng.below(4) == 0 {
            let amount = self.prng.between(1, 9);
            return self.at_home(key, |key| Act::Stock { key, amount });
        }
        let (delta, ty) = (self.prng.between(-9, 9), Type::Int8);
        let op = some_change(delta, 0);
        self.at_home(key, |key| Act::Formula { key, op, ty })
    }

    /// One moment of all homes.
    fn snapshot_steps(&mut self, coordinator: ShardId) -> Vec<Step> {
        let ts = self.world.call(coordinator, |_, cx| cx.clock.tick(cx.now));
        let read = Read::Snapshot(Snapshot::exactly(ts));
        let sum = |shard: &ShardId| Step::new(*shard, Act::Sum { read });
        let mut steps: Vec<Step> = self.world.placement.shards().iter().map(sum).collect();
        let key = placed(NAMES[self.prng.below(6) as usize]);
        steps.push(self.at_home(key, |key| Act::Get { key, read }));
        steps
    }

    fn flag_step(&mut self) -> Step {
        let key = placed(NAMES[self.prng.below(6) as usize]);
        let flag = placed(FLAGS[self.prng.below(4) as usize]);
        match self.prng.below(13) {
            12 => self.bump(key),
            0..=4 if self.mix.blind && self.prng.below(3) > 0 => self.bump(key),
            0..=4 => {
                let delta = self.prng.between(-9, 9);
                self.at_home(key, |key| Act::Add { key, delta })
            }
            5..=6 => self.at_home(key, |key| Act::Get { key, read: SHARED }),
            7 => {
                let shard = self.pick_shard();
                let read = match self.prng.below(3) {
                    0 => Read::Lock(LockMode::Exclusive),
                    _ => SHARED,
                };
                Step::new(shard, Act::Sum { read })
            }
            8..=9 => {
                let value = self.prng.between(1, 9);
                self.at_home(flag, |key| Act::Insert { key, value })
            }
            10 => self.at_home(flag, |key| Act::Get { key, read: SHARED }),
            _ => self.at_home(flag, |key| Act::Remove { key }),
        }
    }
}

/// Whether no two steps meet: operations side by side have no order.
fn apart(steps: &[Step]) -> bool {
    let mut keys = Vec::new();
    for step in steps {
        match &step.act {
            Act::Add { key, .. }
            | Act::Formula { key, .. }
            | Act::Stock { key, .. }
            | Act::Get { key, .. }
            | Act::Insert { key, .. }
            | Act::Put { key }
            | Act::Remove { key } => keys.push(key),
            Act::Sum { .. } | Act::Rows { .. } | Act::Save(_) => return false,
        }
    }
    keys.sort_unstable();
    keys.windows(2).all(|pair| pair[0] != pair[1])
}

//! Savepoints in the steps of a transaction.

use super::client::{Act, Client, Step};
use base::Prng;
use txn::Savepoint;

/// Seeds whose transactions have savepoints: the others stay what they were.
pub(super) fn has_savepoints(seed: u64) -> bool {
    seed % 5 == 3
}

/// Sets savepoints between the steps and goes back to some of them.
pub(super) fn weave(prng: &mut Prng, steps: Vec<Step>) -> Vec<Step> {
    let (mut woven, mut live, mut count): (Vec<Step>, Vec<u32>, u32) = (Vec::new(), Vec::new(), 0);
    let home = steps[0].shard;
    let mut maybe = |woven: &mut Vec<Step>, sets: bool| {
        let savepoint = match prng.below(5) {
            0 | 1 if sets => {
                count += 1;
                let within = live.last().copied().unwrap_or(0);
                live.push(count);
                let number = count;
                Savepoint::Set { number, within }
            }
            2 if live.len() > 1 && sets => {
                // RELEASE tells nobody anything.
                live.pop();
                return;
            }
            3 if !live.is_empty() => {
                live.truncate(1 + prng.below(live.len() as u64) as usize);
                Savepoint::RollBackTo(live[live.len() - 1])
            }
            _ => return,
        };
        woven.push(Step::new(home, Act::Save(savepoint)));
    };
    for step in steps {
        maybe(&mut woven, true);
        woven.push(step);
    }
    maybe(&mut woven, false);
    woven
}

impl Client {
    /// Savepoints that can be gone back to before step `at`.
    fn live(&self, at: usize) -> Vec<(u32, usize)> {
        let mut live: Vec<(u32, usize)> = Vec::new();
        for (place, step) in self.steps[..at].iter().enumerate() {
            match step.act {
                Act::Save(Savepoint::Set { number, within }) => {
                    live.retain(|(other, _)| *other <= within);
                    live.push((number, place));
                }
                Act::Save(Savepoint::RollBackTo(to)) => live.retain(|(other, _)| *other <= to),
                _ => {}
            }
        }
        live
    }

    /// Step `at` has failed: goes back to the last savepoint instead, if there is one, and ends.
    pub(super) fn goes_back(&mut self, at: usize) -> bool {
        let Some((number, _)) = self.live(at).last().copied() else {
            return false;
        };
        let back = Act::Save(Savepoint::RollBackTo(number));
        let shard = self.steps[at].shard;
        self.steps.truncate(at);
        self.steps.push(Step::new(shard, back));
        self.next = at;
        true
    }

    /// Whether it has gone back to a savepoint, so that perhaps nothing is left to record.
    pub(super) fn went_back(&self) -> bool {
        let mut acts = self.steps.iter().map(|step| &step.act);
        acts.any(|act| matches!(act, Act::Save(Savepoint::RollBackTo(_))))
    }

    /// The steps whose writes it has not undone.
    pub(super) fn kept(&self) -> Vec<&Step> {
        let mut kept: Vec<(usize, &Step)> = Vec::new();
        for (at, step) in self.steps.iter().enumerate() {
            if let Act::Save(Savepoint::RollBackTo(to)) = step.act {
                let live = self.live(at);
                let back = live.iter().find(|(number, _)| *number == to);
                let (_, place) = back.expect("it is there");
                kept.retain(|(other, _)| other < place);
            } else {
                kept.push((at, step));
            }
        }
        kept.into_iter().map(|(_, step)| step).collect()
    }
}

//! What one transaction does, drawn from the seed and its number.

use super::{Kind, Shape, TABLES};
use crate::stream;
use crate::wire::Isolation;
use alloc::vec::Vec;
use base::Prng;

/// One operation before it has happened: its values are not known yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Appends to a list, or sets a register.
    Write {
        /// Which.
        key: u32,
    },
    /// Reads a list, a register or a counter.
    Read {
        /// Which.
        key: u32,
    },
    /// Reads the lists or registers of a range by one statement.
    Range {
        /// First key.
        low: u32,
        /// Last key.
        high: u32,
    },
    /// Adds to a counter without reading it.
    Add {
        /// Which.
        key: u32,
        /// Not 0.
        delta: i64,
    },
    /// Takes from a stock if so much is left.
    Take {
        /// Which.
        key: u32,
        /// 1 or more.
        amount: i64,
    },
    /// Moves money.
    Transfer {
        /// From this account.
        from: u32,
        /// To this one.
        to: u32,
        /// 1 or more.
        amount: i64,
        /// Without reading the balances first.
        is_blind: bool,
    },
    /// Takes the place behind `at` out of the ring and puts it in one place later.
    Relink {
        /// Which place.
        at: u32,
    },
    /// Reads all accounts, places or counters by one statement.
    All,
}

/// One transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Its number; part of no statement.
    pub number: u64,
    /// Its operations, one or more.
    pub steps: Vec<Step>,
    /// BEGIN and COMMIT around it. A plan without is a single statement.
    pub is_block: bool,
    /// The block says READ ONLY.
    pub is_read_only: bool,
    /// Statements with literals by the simple protocol, not prepared ones.
    pub is_simple: bool,
    /// Everything travels together up to one Sync, or in one query string.
    pub is_pipelined: bool,
    /// Does everything, then ROLLBACK. What it wrote must never be seen.
    pub rolls_back: bool,
    /// Reads that are written to afterwards lock their rows.
    pub locks_reads: bool,
}

/// Number of blocks of which one rolls back.
const ROLLBACK_ONE_IN: u64 = 25;

impl Plan {
    /// The transaction with this number.
    pub fn draw(shape: &Shape, number: u64) -> Plan {
        let mut prng = stream(shape.seed, &[0x6869_7374, number]);
        let prng = &mut prng;
        let steps = match shape.kind {
            Kind::ListAppend | Kind::Register => rows(shape, number, prng),
            Kind::Phantom => phantom(shape, number, prng),
            Kind::Bank => bank(shape, prng),
            Kind::Ring => ring(shape, prng),
            Kind::Counter | Kind::HotCounter => counters(shape, prng),
            Kind::Stock => stock(shape, prng),
            Kind::HotPair => hot_pair(shape, prng),
        };
        Plan::styled(shape, number, steps, prng)
    }

    fn styled(shape: &Shape, number: u64, steps: Vec<Step>, prng: &mut Prng) -> Plan {
        let is_only_read = !steps.iter().any(Step::writes);
        let is_single = steps.len() == 1 && steps[0].is_statement();
        let is_block = !is_single || prng.below(3) == 0;
        // A transaction of unknown outcome has done all that is recorded of it, or nothing. If the
        // answers of one round are lost, a take in it may have been refused, and other writes not.
        let writes = steps.iter().filter(|step| step.writes()).count();
        let takes = |step: &Step| matches!(step, Step::Take { .. });
        let can_pipeline = steps
            .iter()
            .all(|step| !step.needs_answers() && (writes == 1 || !takes(step)));
        Plan {
            number,
            is_block,
            is_read_only: is_block && is_only_read && prng.below(2) == 0 && shape.has_read_only,
            is_simple: prng.below(3) == 0,
            is_pipelined: can_pipeline && is_block && prng.below(4) == 0,
            rolls_back: is_block && !is_only_read && prng.below(ROLLBACK_ONE_IN) == 0,
            // What READ COMMITTED has read without a lock may be old when it writes.
            locks_reads: shape.isolation == Isolation::ReadCommitted || prng.below(2) == 0,
            steps,
        }
    }

    /// Whether it writes.
    pub fn writes(&self) -> bool {
        self.steps.iter().any(Step::writes)
    }
}

impl Step {
    /// Whether it changes something.
    pub fn writes(&self) -> bool {
        match self {
            Step::Write { .. } | Step::Add { .. } | Step::Take { .. } => true,
            Step::Transfer { .. } | Step::Relink { .. } => true,
            Step::Read { .. } | Step::Range { .. } | Step::All => false,
        }
    }

    /// Whether its answer belongs to the history. What only writes is answered with nothing new.
    pub(super) fn shows(&self) -> bool {
        !self.writes() || matches!(self, Step::Take { .. })
    }

    /// Whether one statement does all of it.
    fn is_statement(&self) -> bool {
        !matches!(self, Step::Transfer { .. } | Step::Relink { .. })
    }

    /// Whether a later statement of it depends on the answer of an earlier one.
    fn needs_answers(&self) -> bool {
        matches!(
            self,
            Step::Relink { .. }
                | Step::Transfer {
                    is_blind: false,
                    ..
                }
        )
    }
}

/// A slot below `count`: the first of them gets a third, the rest falls off slowly.
fn hot(prng: &mut Prng, count: u32) -> u32 {
    if prng.below(4) == 0 {
        return 0;
    }
    let below = prng.below(u64::from(count)) + 1;
    prng.below(below) as u32
}

/// Lists and registers: any mix of writes, reads and ranges. A third of the transactions read first
/// and then write what they have read, which is what loses updates and skews writes.
fn rows(shape: &Shape, number: u64, prng: &mut Prng) -> Vec<Step> {
    let length = 1 + prng.below(u64::from(shape.txn_len_max)) as usize;
    let key = |prng: &mut Prng| shape.key(hot(prng, shape.keys), number);
    let mut steps = Vec::with_capacity(length);
    if length >= 2 && prng.below(3) == 0 {
        let read: Vec<u32> = (0..length.div_ceil(2)).map(|_| key(prng)).collect();
        steps.extend(read.iter().map(|&key| Step::Read { key }));
        let written = read[prng.below(read.len() as u64) as usize];
        steps.push(Step::Write { key: written });
        return steps;
    }
    for _ in 0..length {
        steps.push(match prng.below(10) {
            0 => {
                let (low, high) = shape.range(prng.below(u64::from(TABLES)) as u32, number);
                Step::Range { low, high }
            }
            1..=4 => Step::Read { key: key(prng) },
            _ => Step::Write { key: key(prng) },
        });
    }
    steps
}

/// Reads one range, or half of it, and inserts into the same or another one: write skew on
/// predicates. Some only read several ranges.
fn phantom(shape: &Shape, number: u64, prng: &mut Prng) -> Vec<Step> {
    let table = |prng: &mut Prng| prng.below(u64::from(TABLES.min(shape.keys))) as u32;
    let length = 1 + prng.below(u64::from(shape.txn_len_max)) as usize;
    let only_reads = prng.below(4) == 0;
    let mut steps = Vec::with_capacity(length);
    for at in 0..length {
        let (low, high) = shape.range(table(prng), number);
        if only_reads || at % 2 == 0 && prng.below(4) > 0 {
            let middle = low + (high - low) / 2;
            let (low, high) = match prng.below(4) {
                0 => (low, middle),
                1 => (middle, high),
                _ => (low, high),
            };
            steps.push(Step::Range { low, high });
        } else {
            let key = low + prng.below(u64::from(high - low) + 1) as u32;
            steps.push(Step::Write { key });
        }
    }
    steps
}

fn bank(shape: &Shape, prng: &mut Prng) -> Vec<Step> {
    if prng.below(5) < 2 {
        return Vec::from([Step::All]);
    }
    let mut steps = Vec::new();
    for _ in 0..1 + prng.below(u64::from(shape.txn_len_max).div_ceil(2)) {
        let from = hot(prng, shape.keys);
        let apart = 1 + prng.below(u64::from(shape.keys) - 1) as u32;
        steps.push(Step::Transfer {
            from,
            to: (from + apart) % shape.keys,
            amount: prng.between(1, 5),
            is_blind: shape.isolation == Isolation::ReadCommitted || prng.below(2) == 0,
        });
    }
    if prng.below(4) == 0 {
        steps.push(Step::All);
    }
    steps
}

fn ring(shape: &Shape, prng: &mut Prng) -> Vec<Step> {
    let mut steps = Vec::new();
    if prng.below(4) > 0 {
        steps.push(Step::Relink {
            at: hot(prng, shape.keys),
        });
    }
    if steps.is_empty() || prng.below(4) == 0 {
        steps.push(Step::All);
    }
    steps
}

fn counters(shape: &Shape, prng: &mut Prng) -> Vec<Step> {
    let length = 1 + prng.below(u64::from(shape.txn_len_max)) as usize;
    let mut steps = Vec::with_capacity(length);
    for _ in 0..length {
        let key = hot(prng, shape.keys);
        let sign = if prng.below(4) == 0 { -1 } else { 1 };
        let delta = sign * prng.between(1, 100);
        steps.push(match prng.below(10) {
            0 => Step::All,
            1..=2 => Step::Read { key },
            _ => Step::Add { key, delta },
        });
    }
    steps
}

/// Takes of little and of much, of which many are refused: more is asked for than is put back, so
/// that all rows are always nearly empty. A third of the longer ones take of several rows.
fn stock(shape: &Shape, prng: &mut Prng) -> Vec<Step> {
    let length = 1 + prng.below(u64::from(shape.txn_len_max)) as usize;
    let amount = |prng: &mut Prng| match prng.below(4) {
        0 => prng.between(4, 9),
        _ => prng.between(1, 3),
    };
    if length > 1 && prng.below(3) == 0 {
        let first = hot(prng, shape.keys);
        let rows = length.min(shape.keys as usize) as u32;
        let take = |row: u32| Step::Take {
            key: (first + row) % shape.keys,
            amount: amount(prng),
        };
        return (0..rows).map(take).collect();
    }
    let mut steps = Vec::with_capacity(length);
    for _ in 0..length {
        let key = hot(prng, shape.keys);
        steps.push(match prng.below(16) {
            0 => Step::All,
            1..=3 => Step::Read { key },
            4..=7 => Step::Add {
                key,
                delta: prng.between(1, 12),
            },
            _ => Step::Take {
                key,
                amount: amount(prng),
            },
        });
    }
    steps
}

/// Moves an amount between account 0 and another one, either way, and reads all or one of them now
/// and then. Which of the two is first is drawn as well.
fn hot_pair(shape: &Shape, prng: &mut Prng) -> Vec<Step> {
    let other = 1 + prng.below(u64::from(shape.keys) - 1) as u32;
    match prng.below(10) {
        0..=1 => return Vec::from([Step::All]),
        2 => {
            let key = [0, other][prng.below(2) as usize];
            return Vec::from([Step::Read { key }]);
        }
        _ => {}
    }
    let (from, to) = match prng.below(2) {
        0 => (0, other),
        _ => (other, 0),
    };
    let mut steps = Vec::from([Step::Transfer {
        from,
        to,
        amount: prng.between(1, 5),
        is_blind: true,
    }]);
    if prng.below(8) == 0 {
        steps.push(Step::All);
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plans(kind: Kind, isolation: Isolation) -> Vec<Plan> {
        let shape = Shape::new(kind, 7, isolation);
        (0..3_000)
            .map(|number| Plan::draw(&shape, number))
            .collect()
    }

    #[test]
    fn every_style_occurs_and_none_contradicts_itself() {
        for kind in Kind::ALL {
            let plans = plans(kind, Isolation::Serializable);
            let count = |is: fn(&Plan) -> bool| plans.iter().filter(|plan| is(plan)).count();
            let styles = [
                ("blocks", count(|p| p.is_block)),
                ("statements", count(|p| !p.is_block)),
                ("simple", count(|p| p.is_simple)),
                ("pipelined", count(|p| p.is_pipelined)),
                ("read only", count(|p| p.is_read_only)),
                ("rolled back", count(|p| p.rolls_back)),
            ];
            for (style, count) in styles {
                assert!(count > 15, "{}: {count} {style}", kind.name());
            }
            assert_eq!(count(|p| p.is_read_only && p.writes()), 0);
            assert_eq!(count(|p| !p.is_block && p.steps.len() != 1), 0);
            assert!(count(Plan::writes) > 1_000 && count(|p| !p.writes()) > 100);
        }
    }

    #[test]
    fn takes_are_many_and_travel_beside_no_other_write() {
        let plans = plans(Kind::Stock, Isolation::Serializable);
        let takes = |plan: &Plan| {
            let take = |step: &&Step| matches!(step, Step::Take { .. });
            plan.steps.iter().filter(take).count()
        };
        let count = |is: &dyn Fn(&Plan) -> bool| plans.iter().filter(|plan| is(plan)).count();
        assert!(count(&|plan| takes(plan) > 0) > 2_000);
        assert!(count(&|plan| takes(plan) > 1) > 1_000);
        assert!(count(&|plan| takes(plan) == 1 && plan.is_pipelined) > 15);
        for plan in &plans {
            let writes = plan.steps.iter().filter(|step| step.writes()).count();
            assert!(!plan.is_pipelined || takes(plan) == 0 || writes == 1);
        }
        // More is asked for than is put back and was there.
        let sum = |of: fn(&Step) -> i64| -> i64 {
            let steps = plans.iter().flat_map(|plan| &plan.steps);
            steps.map(of).sum()
        };
        let asked = sum(|step| match step {
            Step::Take { amount, .. } => *amount,
            _ => 0,
        });
        let back = sum(|step| match step {
            Step::Add { delta, .. } => *delta,
            _ => 0,
        });
        assert!(back > 1_000 && 2 * asked > 3 * back, "{asked} {back}");
    }

    #[test]
    fn the_first_account_is_in_every_transfer() {
        for plan in plans(Kind::HotPair, Isolation::Serializable) {
            let transfers = plan.steps.iter().filter_map(|step| match *step {
                Step::Transfer {
                    from, to, is_blind, ..
                } => Some((from, to, is_blind)),
                _ => None,
            });
            for (from, to, is_blind) in transfers {
                assert!(is_blind && from != to && (from == 0 || to == 0));
            }
        }
    }

    #[test]
    fn same_number_same_transaction() {
        for kind in Kind::ALL {
            assert_eq!(
                plans(kind, Isolation::Serializable),
                plans(kind, Isolation::Serializable)
            );
        }
    }

    #[test]
    fn weak_levels_never_write_what_an_unlocked_read_said() {
        for plan in plans(Kind::Bank, Isolation::ReadCommitted) {
            let blind = |step: &Step| {
                !matches!(
                    step,
                    Step::Transfer {
                        is_blind: false,
                        ..
                    }
                )
            };
            assert!(plan.steps.iter().all(blind));
        }
        let ring = plans(Kind::Ring, Isolation::ReadCommitted);
        assert!(ring.iter().all(|plan| plan.locks_reads));
    }
}

//! Whole-table workloads: a bank whose total is constant, a ring that stays one cycle.
//!
//! Both judge each [`Op::ReadTable`] of a committed transaction by itself. Such a read is one
//! statement, which sees one state from READ COMMITTED on in PostgreSQL and here. Writes are only
//! counted, and serve to tell who was busy while a wrong read was made: record them as `Add` (bank)
//! or `Write` (ring; values need not be unique here).

use crate::found::{Found, Name};
use crate::history::{History, Op, Outcome};
use crate::level::{Kind, Level};
use crate::order::{Span, is_write, overlaps};
use crate::verdict::{Demand, Exercised, Verdict};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// So many transactions that were busy during a wrong read are told.
const BUSY_MAX: usize = 6;

/// What must hold of a bank.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bank {
    /// What all accounts hold together, always.
    pub total: i64,
    /// How many accounts there are.
    pub accounts: u64,
    /// Whether an account may be below 0.
    pub may_owe: bool,
}

/// What must hold of a ring: from any place, following the links leads through all of them once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ring {
    /// How many places there are.
    pub places: u64,
}

/// Judges the reads of a bank: every one must show all accounts and the constant total.
pub fn check_bank(history: &History, bank: &Bank, level: Level, demand: &Demand) -> Verdict {
    check_tables(history, level, demand, Kind::WrongTotal, |rows| {
        bank.wrong(rows)
    })
}

/// Judges the reads of a ring: every one must show a permutation that is one cycle.
pub fn check_ring(history: &History, ring: &Ring, level: Level, demand: &Demand) -> Verdict {
    check_tables(history, level, demand, Kind::BrokenRing, |rows| {
        ring.wrong(rows)
    })
}

impl Bank {
    /// What is wrong with a state, if something is.
    fn wrong(&self, rows: &[(u64, i64)]) -> Option<String> {
        let keys: BTreeSet<u64> = rows.iter().map(|(key, _)| *key).collect();
        if keys.len() != rows.len() || keys.len() as u64 != self.accounts {
            return Some(format!(
                "saw {} rows of {} accounts, there are {}",
                rows.len(),
                keys.len(),
                self.accounts
            ));
        }
        let sum: i128 = rows.iter().map(|(_, value)| i128::from(*value)).sum();
        let total = i128::from(self.total);
        if sum != total {
            return Some(format!(
                "saw {sum} in {} accounts, {:+} beside the {total} that they always hold",
                rows.len(),
                sum - total
            ));
        }
        let owes = rows.iter().find(|(_, value)| *value < 0 && !self.may_owe)?;
        Some(format!("saw account {} at {}", owes.0, owes.1))
    }
}

impl Ring {
    /// What is wrong with a state, if something is.
    fn wrong(&self, rows: &[(u64, i64)]) -> Option<String> {
        let links: BTreeMap<u64, i64> = rows.iter().copied().collect();
        if links.len() != rows.len() || links.len() as u64 != self.places {
            return Some(format!(
                "saw {} rows of {} places, there are {}",
                rows.len(),
                links.len(),
                self.places
            ));
        }
        let first = *links.keys().next()?;
        let mut way: Vec<u64> = Vec::new();
        let mut visited = BTreeSet::new();
        let mut place = first;
        while visited.insert(place) {
            way.push(place);
            let link = links[&place];
            place = match u64::try_from(link).ok().filter(|to| links.contains_key(to)) {
                Some(next) => next,
                None => {
                    return Some(format!(
                        "saw place {place} lead to {link}, which is no place"
                    ));
                }
            };
        }
        if place == first && visited.len() as u64 == self.places {
            return None;
        }
        let begin = way.iter().position(|at| *at == place).unwrap_or(0);
        let circle: Vec<String> = way[begin..].iter().map(|at| format!("{at}")).collect();
        Some(format!(
            "saw a cycle of {} of {} places: {} and again {place}",
            circle.len(),
            self.places,
            circle.join(" to ")
        ))
    }
}

/// Judges all reads of whole tables.
fn check_tables(
    history: &History,
    level: Level,
    demand: &Demand,
    kind: Kind,
    wrong: impl Fn(&[(u64, i64)]) -> Option<String>,
) -> Verdict {
    let mut found = Found::default();
    for (txn, recorded) in history.txns.iter().enumerate() {
        if recorded.outcome != Outcome::Committed {
            continue;
        }
        for op in &recorded.ops {
            if let Op::ReadTable { rows } = op
                && let Some(what) = wrong(rows)
            {
                let name = Name::plain(kind);
                found.note(name, &[txn as u32], || tell(history, txn, &what));
            }
        }
    }
    let exercised = exercised(history);
    let doubts = exercised.doubts(demand);
    Verdict::new(level, found.into_anomalies(), doubts, exercised)
}

/// The story of one wrong read: what it saw and who wrote meanwhile.
fn tell(history: &History, txn: usize, what: &str) -> String {
    let reader = &history.txns[txn];
    let end = reader.completed.unwrap_or(u64::MAX);
    let mut story = format!(
        "T{txn} (process {}, {} to {end}) {what}",
        reader.process, reader.invoked
    );
    let busy = history.txns.iter().enumerate().filter(|(_, other)| {
        let other_end = other.completed.unwrap_or(u64::MAX);
        other.outcome != Outcome::Aborted
            && other.ops.iter().any(is_write)
            && other.invoked <= end
            && reader.invoked <= other_end
    });
    let mut count = 0;
    for (place, other) in busy {
        count += 1;
        if count > BUSY_MAX {
            continue;
        }
        let writes: Vec<String> = other.ops.iter().filter_map(write_text).collect();
        story.push_str(&format!(
            "\n  meanwhile T{place} (process {}, from {}): {}",
            other.process,
            other.invoked,
            writes.join("; ")
        ));
    }
    if count > BUSY_MAX {
        story.push_str(&format!("\n  and {} more", count - BUSY_MAX));
    }
    story
}

fn write_text(op: &Op) -> Option<String> {
    match op {
        Op::Add { key, delta } => Some(format!("add {delta:+} to {key}")),
        Op::Write { key, value } => Some(format!("write {key} = {value}")),
        Op::Append { key, value } => Some(format!("append {value} to {key}")),
        Op::Delete { key } => Some(format!("delete {key}")),
        _ => None,
    }
}

/// Counts what there was to see. Every read of the table conflicts with every writer.
fn exercised(history: &History) -> Exercised {
    let mut counts = Exercised::default();
    let mut keys = BTreeSet::new();
    let (mut all, mut readers, mut writers) = (Vec::new(), Vec::new(), 0u64);
    for txn in &history.txns {
        counts.writes += txn.ops.iter().filter(|op| is_write(op)).count() as u64;
        match txn.outcome {
            Outcome::Committed => counts.committed += 1,
            Outcome::Aborted => counts.aborted += 1,
            Outcome::Unknown => counts.unknown += 1,
        }
        if txn.outcome != Outcome::Committed {
            continue;
        }
        let span = Span {
            begin: txn.invoked,
            end: txn.completed.unwrap_or(u64::MAX),
        };
        all.push(span);
        if txn.ops.iter().any(is_write) {
            writers += 1;
        }
        for op in &txn.ops {
            if let Op::ReadTable { rows } = op {
                counts.reads += 1;
                keys.extend(rows.iter().map(|(key, _)| *key));
            }
        }
        if !txn.ops.iter().any(is_write) {
            readers.push(span);
        }
    }
    counts.keys = keys.len() as u64;
    let reads = readers.len() as u64;
    counts.conflicting_pairs = writers * reads + writers * writers.saturating_sub(1) / 2;
    counts.concurrent_pairs = overlaps(&all);
    counts.concurrent_conflicts = counts.concurrent_pairs - overlaps(&readers);
    counts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::Txn;
    use crate::verdict::Judgement;

    fn read(rows: &[(u64, i64)]) -> Txn {
        let mut txn = Txn::begin(1, 10);
        txn.ops.push(Op::ReadTable {
            rows: rows.to_vec(),
        });
        txn.end(Outcome::Committed, 20);
        txn
    }

    fn transfer() -> Txn {
        let mut txn = Txn::begin(2, 12);
        txn.ops.push(Op::Add { key: 1, delta: -5 });
        txn.ops.push(Op::Add { key: 2, delta: 5 });
        txn.end(Outcome::Committed, 22);
        txn
    }

    fn bank(rows: &[(u64, i64)], may_owe: bool) -> Verdict {
        let history = History {
            txns: vec![read(rows), transfer()],
            ..History::default()
        };
        let bank = Bank {
            total: 20,
            accounts: 2,
            may_owe,
        };
        check_bank(&history, &bank, Level::ReadCommitted, &Demand::NONE)
    }

    #[test]
    fn a_bank_keeps_its_total_and_its_accounts() {
        assert_eq!(bank(&[(1, 10), (2, 10)], false).judgement, Judgement::Pass);
        assert_eq!(bank(&[(1, -5), (2, 25)], true).judgement, Judgement::Pass);
        for rows in [
            &[(1, 5), (2, 10)][..],
            &[(1, 20)],
            &[(1, 10), (1, 10)],
            &[(1, -5), (2, 25)],
        ] {
            let verdict = bank(rows, false);
            assert_eq!(verdict.judgement, Judgement::Fail, "{rows:?}");
            assert_eq!(verdict.anomalies[0].kind, Kind::WrongTotal);
        }
        let story = &bank(&[(1, 5), (2, 10)], false).anomalies[0].story;
        assert_eq!(
            story,
            "wrong-total: T0 (process 1, 10 to 20) saw 15 in 2 accounts, -5 beside the 20 that \
             they always hold\n  meanwhile T1 (process 2, from 12): add -5 to 1; add +5 to 2"
        );
    }

    #[test]
    fn a_ring_is_one_cycle() {
        let ring = |rows: &[(u64, i64)]| {
            let history = History {
                txns: vec![read(rows)],
                ..History::default()
            };
            let ring = Ring { places: 4 };
            check_ring(&history, &ring, Level::ReadCommitted, &Demand::NONE)
        };
        assert_eq!(
            ring(&[(1, 3), (2, 1), (3, 4), (4, 2)]).judgement,
            Judgement::Pass
        );
        for (rows, what) in [
            (&[(1, 2), (2, 1), (3, 4), (4, 3)][..], "cycle of 2 of 4"),
            (&[(1, 2), (2, 3), (3, 4), (4, 2)], "cycle of 3 of 4"),
            (&[(1, 2), (2, 3), (3, 1)], "saw 3 rows of 3 places"),
            (&[(1, 2), (2, 3), (3, 4), (4, 9)], "which is no place"),
            (&[(1, 2), (2, 3), (3, 4), (4, -1)], "which is no place"),
        ] {
            let verdict = ring(rows);
            assert_eq!(verdict.judgement, Judgement::Fail, "{rows:?}");
            let story = &verdict.anomalies[0].story;
            assert!(story.contains(what), "{story}");
        }
    }

    #[test]
    fn too_little_is_inconclusive() {
        let history = History {
            txns: vec![read(&[(1, 20)])],
            ..History::default()
        };
        let bank = Bank {
            total: 20,
            accounts: 1,
            may_owe: false,
        };
        let verdict = check_bank(&history, &bank, Level::Serializable, &Demand::default());
        assert_eq!(verdict.judgement, Judgement::Inconclusive);
        assert_eq!(verdict.doubts.len(), 3);
    }
}

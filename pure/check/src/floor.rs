//! Counters that are never below a least value: stocks that are taken from where enough is left.
//!
//! Two things show that one was below it: a read, and the increments themselves. At any moment what
//! had been acknowledged is in, and of what raises the counter only what had begun can be. If that
//! is below the least value the counter was below it too, whether anybody looked or not.

use crate::found::{Found, Name};
use crate::history::Outcome;
use crate::ledger::{Access, Ledger};
use crate::level::{Basis, Kind};
use crate::story;
use crate::timed::{Add, Timed};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// Notes all counters that were below `least`.
pub(crate) fn judge(ledger: &Ledger<'_>, least: i64, found: &mut Found) {
    let mut counters: BTreeMap<u32, Vec<Add>> = BTreeMap::new();
    for txn in 0..ledger.history.txns.len() as u32 {
        if ledger.outcome(txn) == Outcome::Aborted {
            continue;
        }
        let mut own: BTreeMap<u32, i128> = BTreeMap::new();
        ledger.each_access(txn, |access| match access {
            Access::Add { key, delta } => *own.entry(key).or_default() += i128::from(delta),
            Access::ReadCounter { key, value } if value < least && ledger.is_committed(txn) => {
                let name = Name::plain(Kind::BelowLeast);
                let tell = || story::read_below(ledger, txn, key, value, least);
                found.note(name, &[txn], tell);
            }
            _ => {}
        });
        for (key, delta) in own {
            counters.entry(key).or_default().push(Add { txn, delta });
        }
    }
    for (key, adds) in counters {
        judge_sums(ledger, key, &adds, least, found);
    }
}

/// Looks at one counter at the end of each transaction that lowers it, until it was too low, and
/// behind all of them.
fn judge_sums(ledger: &Ledger<'_>, key: u32, adds: &[Add], least: i64, found: &mut Found) {
    let initial = ledger.history.initial_counters.get(&ledger.real_key(key));
    let initial = initial.map_or(0, |value| i128::from(*value));
    let timed = Timed::new(ledger, adds);
    let lowering = adds.iter().filter(|add| add.delta < 0);
    let ends = lowering.filter_map(|add| Some((ledger.committed_by(add.txn)?, add.txn)));
    let mut ends: Vec<(u64, u32)> = ends.collect();
    ends.sort_unstable();
    let Some((_, last)) = ends.last().copied() else {
        return;
    };
    let mut is_below = |txn: u32, time: u64, basis: Basis| {
        let most = initial + timed.most_at(time);
        let is_below = most < i128::from(least);
        if is_below {
            let name = Name {
                basis,
                ..Name::plain(Kind::BelowLeast)
            };
            let tell = || story::sum_below(ledger, txn, key, most, least);
            found.note(name, &[txn], tell);
        }
        is_below
    };
    let mut moments = ends.iter();
    moments.any(|(end, txn)| is_below(*txn, *end, Basis::RealTime));
    is_below(last, u64::MAX, Basis::Values);
}

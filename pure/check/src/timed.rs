//! The increments of a counter by time: which are certainly in, which may be.

use crate::ledger::Ledger;
use alloc::vec::Vec;

/// What one transaction adds to a counter in all.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Add {
    pub(crate) txn: u32,
    pub(crate) delta: i128,
}

/// The increments of one counter by time.
#[derive(Debug)]
pub(crate) struct Timed {
    /// Running sums, negative and positive apart, by when increments were certainly in.
    ended: Vec<(u64, i128, i128)>,
    /// The same by when they may have begun to be.
    begun: Vec<(u64, i128, i128)>,
    /// Increments whose end is known, by their begin: (begin, end, add).
    known: Vec<(u64, u64, Add)>,
    /// Increments whose end is not known, by their begin.
    endless: Vec<(u64, Add)>,
}

/// Largest number of open increments of which every subset is tried.
const OPEN_MAX: usize = 10;
/// So far back increments are looked for that overlap with a reader.
const BACK_MAX: usize = 200;

impl Timed {
    pub(crate) fn new(ledger: &Ledger<'_>, adds: &[Add]) -> Timed {
        let begin = |add: &Add| ledger.history.txns[add.txn as usize].invoked;
        let end = |add: &Add| ledger.committed_by(add.txn);
        let known = adds
            .iter()
            .filter_map(|add| Some((begin(add), end(add)?, *add)));
        let mut known: Vec<(u64, u64, Add)> = known.collect();
        known.sort_by_key(|(begin, _, add)| (*begin, add.txn));
        let endless = adds.iter().filter(|add| end(add).is_none());
        let mut endless: Vec<(u64, Add)> = endless.map(|add| (begin(add), *add)).collect();
        endless.sort_by_key(|(begin, add)| (*begin, add.txn));
        Timed {
            ended: running(adds, end),
            begun: running(adds, |add| Some(begin(add))),
            known,
            endless,
        }
    }

    /// The sum of what was certainly in before `begin`.
    pub(crate) fn certain(&self, begin: u64) -> i128 {
        let (neg, pos) = sums_below(&self.ended, begin);
        neg + pos
    }

    /// What others may have added for a reader of this time that adds `own` itself. Its increments
    /// began before it ended and are not among the certain ones.
    pub(crate) fn bounds(&self, begin: u64, until: u64, own: i128) -> (i128, i128) {
        let (certain_neg, certain_pos) = sums_below(&self.ended, begin);
        let (possible_neg, possible_pos) = sums_below(&self.begun, until.saturating_add(1));
        let low = certain_pos + possible_neg - own.min(0);
        let high = certain_neg + possible_pos - own.max(0);
        (low, high)
    }

    /// The most that all increments together can have made at `time`: what had ended by then is in,
    /// and what had not begun is not.
    pub(crate) fn most_at(&self, time: u64) -> i128 {
        let bound = time.saturating_add(1);
        sums_below(&self.ended, bound).0 + sums_below(&self.begun, bound).1
    }

    /// The increments of others that may or may not be in, if they are few and easily found.
    pub(crate) fn open(&self, begin: u64, until: u64, reader: u32) -> Option<Vec<i128>> {
        let begun = self.known.partition_point(|(at, _, _)| *at <= until);
        let ended = self.ended.partition_point(|(at, _, _)| *at < begin);
        let endless = self.endless.partition_point(|(at, _)| *at <= until);
        let mut missing = begun - ended;
        if missing + endless > OPEN_MAX + 1 {
            return None;
        }
        let mut open: Vec<Add> = self.endless[..endless].iter().map(|(_, a)| *a).collect();
        let back = self.known[..begun].iter().rev().take(BACK_MAX);
        for (_, _, add) in back.filter(|(_, end, _)| *end >= begin) {
            missing -= 1;
            open.push(*add);
        }
        let others = open.iter().filter(|add| add.txn != reader);
        (missing == 0).then(|| others.map(|add| add.delta).collect())
    }
}

/// Whether some of `deltas` add up to `sum`.
pub(crate) fn sums_to(sum: i128, deltas: &[i128]) -> bool {
    match deltas.split_first() {
        None => sum == 0,
        Some((delta, rest)) => sums_to(sum, rest) || sums_to(sum - delta, rest),
    }
}

/// Running sums by time: what was added until then, negative and positive increments apart.
fn running(adds: &[Add], when: impl Fn(&Add) -> Option<u64>) -> Vec<(u64, i128, i128)> {
    let timed = adds.iter().filter_map(|add| Some((when(add)?, add.delta)));
    let mut timed: Vec<(u64, i128)> = timed.collect();
    timed.sort_unstable();
    let (mut neg, mut pos) = (0, 0);
    let sums = timed.into_iter().map(|(time, delta)| {
        neg += delta.min(0);
        pos += delta.max(0);
        (time, neg, pos)
    });
    sums.collect()
}

fn sums_below(running: &[(u64, i128, i128)], bound: u64) -> (i128, i128) {
    let count = running.partition_point(|(time, _, _)| *time < bound);
    match running[..count].last() {
        None => (0, 0),
        Some((_, neg, pos)) => (*neg, *pos),
    }
}

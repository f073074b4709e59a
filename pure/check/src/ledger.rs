//! A history made ready for questions: dense keys, who wrote which value, who counts as committed.

use crate::history::{History, Op, Outcome};
use crate::verdict::Doubt;
use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;
use base::LookupMap;
use core::ops::Range;

/// A history with its indexes. Keys are dense: `0..keys.len()`, in the order of the real ones.
#[derive(Debug)]
pub(crate) struct Ledger<'h> {
    pub(crate) history: &'h History,
    /// The real keys, ascending.
    keys: Vec<u64>,
    uses: Vec<Use>,
    key_places: LookupMap<u64, u32>,
    /// Who wrote a value, by dense key and value.
    writes: LookupMap<(u32, u64), Written>,
    /// Whether a transaction counts as committed, by its index.
    pub(crate) committed: Vec<bool>,
    /// The longest state of each list that a committed transaction saw, and who.
    pub(crate) lists: Vec<Longest<'h>>,
    /// Whether a transaction deletes the key, or may have deleted it.
    deleted: Vec<bool>,
    /// What makes keys useless.
    pub(crate) doubts: Vec<Doubt>,
}

/// What a key is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Use {
    List,
    Register,
    Counter,
    /// Used in two ways, or written twice with one value: it is left out.
    Spoiled,
}

/// Who wrote a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Written {
    pub(crate) txn: u32,
    /// No later operation of the same transaction wrote the same key.
    pub(crate) last: bool,
}

/// The longest state of a list that anybody saw.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Longest<'h> {
    pub(crate) values: &'h [u64],
    pub(crate) reader: u32,
}

/// One operation on one key; a read of a range is one for each key in it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Access<'h> {
    Append {
        key: u32,
        value: u64,
    },
    /// `None`: a delete.
    Write {
        key: u32,
        value: Option<u64>,
    },
    ReadList {
        key: u32,
        values: &'h [u64],
        range: bool,
    },
    Read {
        key: u32,
        value: Option<u64>,
        range: bool,
    },
    Add {
        key: u32,
        delta: i64,
    },
    ReadCounter {
        key: u32,
        value: i64,
    },
    Compare {
        key: u32,
        bound: i64,
        at_least: bool,
    },
}

impl Access<'_> {
    pub(crate) fn key(&self) -> u32 {
        match self {
            Access::Append { key, .. }
            | Access::Write { key, .. }
            | Access::ReadList { key, .. }
            | Access::Read { key, .. }
            | Access::Add { key, .. }
            | Access::ReadCounter { key, .. }
            | Access::Compare { key, .. } => *key,
        }
    }

    pub(crate) fn is_write(&self) -> bool {
        matches!(
            self,
            Access::Append { .. } | Access::Write { .. } | Access::Add { .. }
        )
    }
}

/// How the values of a list that a transaction saw divide into what others and what it had written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Sight {
    /// So many values at the front are of others (or would be, if all is well).
    pub(crate) others: usize,
    /// Values of others follow behind its own.
    pub(crate) mingled: bool,
    /// All that it had appended before is there, in its order.
    pub(crate) own_seen: bool,
}

impl Sight {
    /// Splits `values`, given what the reader had appended before.
    pub(crate) fn of(values: &[u64], own: &[u64]) -> Sight {
        if own.is_empty() || values.ends_with(own) {
            return Sight {
                others: values.len() - own.len(),
                mingled: false,
                own_seen: true,
            };
        }
        let is_own = |value: &u64| own.contains(value);
        let others = values.iter().position(is_own).unwrap_or(values.len());
        let seen = values.iter().filter(|value| is_own(value));
        Sight {
            others,
            mingled: values[others..].iter().any(|value| !is_own(value)),
            own_seen: seen.eq(own.iter()),
        }
    }

    /// How many values of the list are evidence of its order.
    pub(crate) fn evidence(&self, values: &[u64]) -> usize {
        if self.mingled {
            values.len()
        } else {
            self.others
        }
    }
}

/// What one transaction has appended so far, by key.
pub(crate) type Appended = BTreeMap<u32, Vec<u64>>;

impl<'h> Ledger<'h> {
    pub(crate) fn new(history: &'h History) -> Ledger<'h> {
        let mut ledger = Ledger {
            history,
            keys: Vec::new(),
            uses: Vec::new(),
            key_places: LookupMap::new(),
            writes: LookupMap::new(),
            committed: Vec::new(),
            lists: Vec::new(),
            deleted: Vec::new(),
            doubts: Vec::new(),
        };
        ledger.number_keys();
        ledger.record_writes();
        ledger.settle();
        ledger
    }

    /// The real key behind a dense one.
    pub(crate) fn real_key(&self, key: u32) -> u64 {
        self.keys[key as usize]
    }

    pub(crate) fn key_count(&self) -> usize {
        self.keys.len()
    }

    pub(crate) fn use_of(&self, key: u32) -> Use {
        self.uses[key as usize]
    }

    /// Who wrote `value` to `key`.
    pub(crate) fn writer(&self, key: u32, value: u64) -> Option<Written> {
        self.writes.get(&(key, value)).copied()
    }

    /// Whether a transaction deletes `key`, or may have: absent is then the state before the first
    /// write or behind a deletion.
    pub(crate) fn deleted(&self, key: u32) -> bool {
        self.deleted[key as usize]
    }

    pub(crate) fn outcome(&self, txn: u32) -> Outcome {
        self.history.txns[txn as usize].outcome
    }

    pub(crate) fn is_committed(&self, txn: u32) -> bool {
        self.committed[txn as usize]
    }

    /// The transactions that count as committed.
    pub(crate) fn members(&self) -> impl Iterator<Item = u32> + '_ {
        let all = self.committed.iter().enumerate();
        all.filter(|(_, committed)| **committed)
            .map(|(txn, _)| txn as u32)
    }

    /// When `txn` had certainly committed, if it is known.
    pub(crate) fn committed_by(&self, txn: u32) -> Option<u64> {
        let txn = &self.history.txns[txn as usize];
        txn.completed.filter(|_| txn.outcome == Outcome::Committed)
    }

    /// The dense keys of a range of real ones.
    fn range(&self, low: u64, high: u64) -> Range<usize> {
        let begin = self.keys.partition_point(|key| *key < low);
        begin..self.keys.partition_point(|key| *key <= high).max(begin)
    }

    /// Every operation of `txn` on a key that can be judged, in its order.
    pub(crate) fn each_access(&self, txn: u32, mut each: impl FnMut(Access<'h>)) {
        for op in &self.history.txns[txn as usize].ops {
            self.accesses_of(op, &mut each);
        }
    }

    fn accesses_of(&self, op: &'h Op, each: &mut impl FnMut(Access<'h>)) {
        match op {
            Op::ReadLists { low, high, seen } => {
                let seen: BTreeMap<u64, &Vec<u64>> = seen.iter().map(|(k, v)| (*k, v)).collect();
                for place in self.range(*low, *high) {
                    let values = seen.get(&self.keys[place]).map_or(&[][..], |list| list);
                    if self.uses[place] == Use::List {
                        let (key, range) = (place as u32, true);
                        each(Access::ReadList { key, values, range });
                    }
                }
            }
            Op::ReadRange { low, high, seen } => {
                let seen: BTreeMap<u64, u64> = seen.iter().copied().collect();
                for place in self.range(*low, *high) {
                    let value = seen.get(&self.keys[place]).copied();
                    if self.uses[place] == Use::Register {
                        let (key, range) = (place as u32, true);
                        each(Access::Read { key, value, range });
                    }
                }
            }
            Op::ReadTable { .. } => {}
            Op::Append { key, .. }
            | Op::ReadList { key, .. }
            | Op::Write { key, .. }
            | Op::Delete { key }
            | Op::Read { key, .. }
            | Op::Add { key, .. }
            | Op::ReadCounter { key, .. }
            | Op::Compare { key, .. } => {
                let key = self.key_places.get(key).copied();
                let key = key.filter(|key| self.use_of(*key) != Use::Spoiled);
                if let Some(access) = key.and_then(|key| access(op, key)) {
                    each(access);
                }
            }
        }
    }

    fn number_keys(&mut self) {
        let mut touched: Vec<(u64, Use)> = Vec::new();
        for op in self.history.txns.iter().flat_map(|txn| &txn.ops) {
            match op {
                Op::Append { key, .. } | Op::ReadList { key, .. } => {
                    touched.push((*key, Use::List))
                }
                Op::Write { key, .. } | Op::Delete { key } | Op::Read { key, .. } => {
                    touched.push((*key, Use::Register));
                }
                Op::Add { key, .. } | Op::ReadCounter { key, .. } | Op::Compare { key, .. } => {
                    touched.push((*key, Use::Counter));
                }
                Op::ReadLists { seen, .. } => {
                    touched.extend(seen.iter().map(|(key, _)| (*key, Use::List)));
                }
                Op::ReadRange { seen, .. } => {
                    touched.extend(seen.iter().map(|(key, _)| (*key, Use::Register)));
                }
                Op::ReadTable { .. } => {}
            }
            // Most keys are touched often: the list stays as short as that allows.
            if touched.len() > 1 << 16 && touched.len() > 4 * self.keys.len() {
                self.merge_keys(&mut touched);
            }
        }
        self.merge_keys(&mut touched);
        for (place, key) in self.keys.iter().enumerate() {
            let place = u32::try_from(place).expect("fewer than 4 billion keys");
            self.key_places.insert(*key, place);
            if self.uses[place as usize] == Use::Spoiled {
                self.doubts.push(Doubt::MixedUse { key: *key });
            }
        }
    }

    /// Merges what was touched into the sorted keys.
    fn merge_keys(&mut self, touched: &mut Vec<(u64, Use)>) {
        let known = self.keys.drain(..).zip(self.uses.drain(..));
        touched.extend(known);
        touched.sort_by_key(|(key, _)| *key);
        for (key, touched_as) in touched.drain(..) {
            if self.keys.last() != Some(&key) {
                self.keys.push(key);
                self.uses.push(touched_as);
                continue;
            }
            let before = self.uses.last_mut().expect("as many as keys");
            if *before != touched_as {
                *before = Use::Spoiled;
            }
        }
    }

    fn record_writes(&mut self) {
        let mut last: BTreeMap<u32, Option<u64>> = BTreeMap::new();
        let mut twice = Vec::new();
        self.deleted = vec![false; self.keys.len()];
        for txn in 0..self.history.txns.len() as u32 {
            last.clear();
            let mut written = Vec::new();
            self.each_access(txn, |access| match access {
                Access::Append { key, value } => written.push((key, Some(value))),
                Access::Write { key, value } => written.push((key, value)),
                _ => {}
            });
            for (key, value) in written {
                self.deleted[key as usize] |=
                    value.is_none() && self.outcome(txn) != Outcome::Aborted;
                if let Some(value) = value {
                    let entry = Written { txn, last: true };
                    if self.writes.insert((key, value), entry).is_some() {
                        twice.push((key, value));
                    }
                }
                if let Some(Some(before)) = last.insert(key, value)
                    && let Some(entry) = self.writes.get_mut(&(key, before))
                {
                    entry.last = false;
                }
            }
        }
        for (key, value) in twice {
            if self.uses[key as usize] != Use::Spoiled {
                self.uses[key as usize] = Use::Spoiled;
                let key = self.real_key(key);
                self.doubts.push(Doubt::WrittenTwice { key, value });
            }
        }
    }

    /// Finds the longest state of each list and which unknown transactions have committed: those of
    /// which a committed one saw something.
    fn settle(&mut self) {
        let txns = &self.history.txns;
        let empty = Longest {
            values: &[],
            reader: u32::MAX,
        };
        self.lists = vec![empty; self.keys.len()];
        self.committed = vec![false; txns.len()];
        let mut scanned = vec![0usize; self.keys.len()];
        let mut settled: Vec<u32> = Vec::new();
        for (txn, recorded) in txns.iter().enumerate() {
            if recorded.outcome == Outcome::Committed {
                self.committed[txn] = true;
                settled.push(txn as u32);
            }
        }
        let mut appended = Appended::new();
        while !settled.is_empty() {
            let mut seen: Vec<(u32, u64)> = Vec::new();
            for txn in core::mem::take(&mut settled) {
                self.note_reads(txn, &mut appended, &mut seen);
            }
            for (key, list) in self.lists.iter().enumerate() {
                let new = &list.values[scanned[key].min(list.values.len())..];
                seen.extend(new.iter().map(|value| (key as u32, *value)));
                scanned[key] = list.values.len();
            }
            for (key, value) in seen {
                if let Some(written) = self.writer(key, value)
                    && !self.is_committed(written.txn)
                    && self.outcome(written.txn) == Outcome::Unknown
                {
                    self.committed[written.txn as usize] = true;
                    settled.push(written.txn);
                }
            }
        }
    }

    /// Takes what `txn` read into account: `seen` gets the values that are not in a longest list.
    fn note_reads(&mut self, txn: u32, appended: &mut Appended, seen: &mut Vec<(u32, u64)>) {
        appended.clear();
        let mut longer: Vec<(u32, &'h [u64])> = Vec::new();
        self.each_access(txn, |access| match access {
            Access::Append { key, value } => appended.entry(key).or_default().push(value),
            Access::ReadList { key, values, .. } => {
                let own = appended.get(&key).map_or(&[][..], |own| own);
                let values = &values[..Sight::of(values, own).evidence(values)];
                let known = self.lists[key as usize].values;
                if values.len() > known.len() {
                    longer.push((key, values));
                } else if !known.starts_with(values) {
                    seen.extend(values.iter().map(|value| (key, *value)));
                }
            }
            Access::Read { key, value, .. } => seen.extend(value.map(|value| (key, value))),
            _ => {}
        });
        for (key, values) in longer {
            let known = &mut self.lists[key as usize];
            if values.len() <= known.values.len() {
                continue;
            }
            if !values.starts_with(known.values) {
                // What was scanned of the other list says nothing of this one.
                seen.extend(values.iter().map(|value| (key, *value)));
                seen.extend(known.values.iter().map(|value| (key, *value)));
            }
            *known = Longest {
                values,
                reader: txn,
            };
        }
    }
}

fn access(op: &Op, key: u32) -> Option<Access<'_>> {
    match op {
        Op::Append { value, .. } => Some(Access::Append { key, value: *value }),
        Op::ReadList { values, .. } => {
            let range = false;
            Some(Access::ReadList { key, values, range })
        }
        Op::Write { value, .. } => {
            let value = Some(*value);
            Some(Access::Write { key, value })
        }
        Op::Delete { .. } => Some(Access::Write { key, value: None }),
        Op::Read { value, .. } => {
            let (value, range) = (*value, false);
            Some(Access::Read { key, value, range })
        }
        Op::Add { delta, .. } => Some(Access::Add { key, delta: *delta }),
        Op::ReadCounter { value, .. } => Some(Access::ReadCounter { key, value: *value }),
        Op::Compare {
            bound, at_least, ..
        } => {
            let (bound, at_least) = (*bound, *at_least);
            Some(Access::Compare {
                key,
                bound,
                at_least,
            })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::Txn;

    fn txn(outcome: Outcome, ops: Vec<Op>) -> Txn {
        Txn {
            process: 0,
            invoked: 0,
            completed: Some(1),
            outcome,
            ops,
        }
    }

    #[test]
    fn a_sight_tells_own_values_from_those_of_others() {
        let sight = |values: &[u64], own: &[u64]| {
            let sight = Sight::of(values, own);
            (sight.others, sight.mingled, sight.own_seen)
        };
        assert_eq!(sight(&[1, 2], &[]), (2, false, true));
        assert_eq!(sight(&[1, 2], &[2]), (1, false, true));
        assert_eq!(sight(&[1, 2, 3], &[2]), (1, true, true));
        assert_eq!(sight(&[1], &[2]), (1, false, false));
        assert_eq!(sight(&[2, 1], &[1, 2]), (0, false, false));
        assert_eq!(sight(&[], &[]), (0, false, true));
    }

    #[test]
    fn what_a_committed_transaction_saw_has_committed() {
        let append = |key, value| Op::Append { key, value };
        let read = |key, values: &[u64]| Op::ReadList {
            key,
            values: values.to_vec(),
        };
        let history = History {
            txns: vec![
                txn(Outcome::Unknown, vec![append(7, 1), append(9, 1)]),
                txn(Outcome::Unknown, vec![read(9, &[1]), append(7, 2)]),
                txn(Outcome::Unknown, vec![append(7, 3)]),
                txn(Outcome::Committed, vec![read(7, &[1, 2])]),
            ],
            ..History::default()
        };
        let ledger = Ledger::new(&history);
        assert_eq!(ledger.committed, [true, true, false, true]);
        assert_eq!(ledger.lists[0].values, [1, 2]);
        // Known through a transaction that was itself unknown.
        assert_eq!(ledger.lists[1].values, [1]);
    }

    #[test]
    fn keys_that_cannot_be_judged_are_told_and_left_out() {
        let history = History {
            txns: vec![
                txn(
                    Outcome::Committed,
                    vec![
                        Op::Append { key: 1, value: 1 },
                        Op::Append { key: 1, value: 1 },
                    ],
                ),
                txn(
                    Outcome::Committed,
                    vec![
                        Op::Append { key: 2, value: 1 },
                        Op::Write { key: 2, value: 2 },
                    ],
                ),
            ],
            ..History::default()
        };
        let ledger = Ledger::new(&history);
        assert_eq!(
            ledger.doubts,
            [
                Doubt::MixedUse { key: 2 },
                Doubt::WrittenTwice { key: 1, value: 1 }
            ]
        );
        let mut count = 0;
        ledger.each_access(0, |_| count += 1);
        ledger.each_access(1, |_| count += 1);
        assert_eq!(count, 0);
    }
}

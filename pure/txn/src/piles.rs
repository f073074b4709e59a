//! Formulas that pile up on rows, as SHOW PENDING prints them.
//!
//! A protocol names each formula that is held and not applied yet; the rows with the most of them
//! come out. The lock table says how old the transactions are, because each holds a lock on the
//! rows of its formulas.

use crate::contract::Op;
use crate::lock::{Item, LockTable};
use crate::pending::Pendings;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use base::{Key, NodeId, Time, Ts, TxnId};

/// A row with formulas that are not applied yet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PendingRow {
    /// Key of the row.
    pub key: Key,
    /// Formulas that are held on it, at least 1.
    pub formulas: u64,
    /// Of these, formulas of transactions that have committed. They wait for others that may still
    /// commit below them.
    pub committed: u64,
    /// The oldest transaction whose formula is not decided; `None`: all have committed.
    pub oldest: Option<OpenFormula>,
    /// Operations that wait for the row.
    pub waiters: u64,
}

/// A transaction whose formula is not decided.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OpenFormula {
    /// The transaction.
    pub txn: TxnId,
    /// Node that decides it.
    pub coordinator: NodeId,
    /// When its first attempt began; `None`: it is work of the server without a place in that
    /// order, or holds no lock on the row.
    pub since: Option<Time>,
}

/// The formulas of one row.
#[derive(Debug, Default)]
struct Pile {
    committed: u64,
    open: Vec<(TxnId, NodeId)>,
}

impl Pile {
    fn len(&self) -> u64 {
        self.committed + self.open.len() as u64
    }
}

/// Collects the formulas of the rows that are asked for.
pub struct Piles<'a> {
    wants: &'a dyn Fn(&Key) -> bool,
    rows: BTreeMap<&'a Key, Pile>,
}

impl<'a> Piles<'a> {
    /// Nothing yet. Of other rows than `wants` names, nothing is collected.
    pub fn new(wants: &'a dyn Fn(&Key) -> bool) -> Piles<'a> {
        Piles {
            wants,
            rows: BTreeMap::new(),
        }
    }

    /// A formula of a transaction that `coordinator` has not decided.
    pub fn add_open(&mut self, key: &'a Key, txn: TxnId, coordinator: NodeId) {
        if (self.wants)(key) {
            let pile = self.rows.entry(key).or_default();
            pile.open.push((txn, coordinator));
        }
    }

    /// As [`Piles::add_open`], for several rows.
    pub fn add_all_open(
        &mut self,
        keys: impl Iterator<Item = &'a Key>,
        txn: TxnId,
        coordinator: NodeId,
    ) {
        keys.for_each(|key| self.add_open(key, txn, coordinator));
    }

    /// The formulas that are held for other transactions; `coordinator` tells from a note which
    /// node decides.
    pub fn add_pending<N>(
        &mut self,
        formulas: &'a Pendings<Key, N>,
        coordinator: impl Fn(&N) -> NodeId,
    ) {
        for (key, pending) in formulas.each() {
            match (formulas.decided(pending.txn), formulas.note(pending.txn)) {
                (None, Some(note)) => self.add_open(key, pending.txn, coordinator(note)),
                (Some(_), _) | (None, None) => self.add_committed(key),
            }
        }
    }

    /// A formula of a transaction that has committed.
    pub fn add_committed(&mut self, key: &'a Key) {
        if (self.wants)(key) {
            self.rows.entry(key).or_default().committed += 1;
        }
    }

    /// The `count` rows with the most formulas, of equal ones the smaller keys. `others` are the
    /// operations that wait for something else than locks.
    pub fn highest(self, count: usize, locks: &LockTable, others: &[&Op]) -> Vec<PendingRow> {
        let mut rows: Vec<(&Key, Pile)> = self.rows.into_iter().collect();
        rows.sort_by(|(a, one), (b, other)| other.len().cmp(&one.len()).then_with(|| a.cmp(b)));
        rows.truncate(count);
        let row = |(key, pile): (&Key, Pile)| PendingRow {
            key: key.clone(),
            formulas: pile.len(),
            committed: pile.committed,
            oldest: oldest(locks, key, &pile.open),
            waiters: (locks.waiting_on(&Item::of(key)).len()
                + others.iter().filter(|op| op.wants(key)).count()) as u64,
        };
        rows.into_iter().map(row).collect()
    }
}

/// The first of the transactions, by the start of their first attempts and then by their names.
fn oldest(locks: &LockTable, key: &Key, open: &[(TxnId, NodeId)]) -> Option<OpenFormula> {
    let aged = open.iter().map(|(txn, coordinator)| {
        let began = locks.began(*txn, key).filter(|began| *began != Ts::MAX);
        (began.is_none(), began, *txn, *coordinator)
    });
    let (_, began, txn, coordinator) = aged.min()?;
    Some(OpenFormula {
        txn,
        coordinator,
        since: began.map(Ts::time),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Columns;
    use crate::lock::{Acquired, Claim, LockMode, LockRequest, Priority};
    use alloc::vec;
    use base::{IndexId, ShardId, Slot};

    fn key(name: u8) -> Key {
        Key::new(IndexId(1), Slot(0), vec![name])
    }

    fn txn(counter: u64) -> TxnId {
        TxnId {
            shard: ShardId::new(NodeId(2), 0),
            incarnation: 1,
            counter,
        }
    }

    /// Asks for a lock on a row. Returns whether the request waits.
    fn ask(locks: &mut LockTable, counter: u64, began_us: u64, key: &Key, claim: Claim) -> bool {
        let priority = Priority {
            urgent: false,
            ts: Ts::from_time(Time(1_800_000_000_000_000 + began_us)),
            txn: txn(counter),
        };
        let request = LockRequest::new(priority, Item::of(key), claim, Time(0), counter);
        match locks.acquire(request) {
            Acquired::Granted => false,
            Acquired::Waiting => true,
            Acquired::Died(_) => panic!("the older one waits"),
        }
    }

    #[test]
    fn the_rows_with_the_most_formulas_come_first_with_their_oldest_transaction() {
        let (a, b, c, other) = (
            key(1),
            key(2),
            key(3),
            Key::new(IndexId(2), Slot(0), vec![1]),
        );
        let adds = Claim::adds(Columns::ALL);
        let mut locks = LockTable::new();
        // Names do not follow age: a second attempt has a new name and its first place.
        ask(&mut locks, 5, 700, &b, adds);
        ask(&mut locks, 9, 300, &b, adds);
        ask(&mut locks, 6, 900, &c, adds);
        assert!(ask(&mut locks, 2, 100, &b, LockMode::Shared.into()));
        let wants = |key: &Key| key.index == IndexId(1);
        let mut piles = Piles::new(&wants);
        let node = NodeId(2);
        piles.add_open(&b, txn(5), node);
        piles.add_open(&b, txn(9), node);
        piles.add_committed(&b);
        piles.add_open(&c, txn(6), node);
        piles.add_committed(&a);
        piles.add_open(&other, txn(5), node);
        let waits = Op::Write {
            key: a.clone(),
            write: store::Write::Delete,
        };
        let rows = piles.highest(2, &locks, &[&waits]);
        let told = |row: &PendingRow| {
            let oldest = row.oldest.map(|open| (open.txn.counter, open.since));
            (
                row.key.clone(),
                row.formulas,
                row.committed,
                row.waiters,
                oldest,
            )
        };
        let since = Some(Time(1_800_000_000_000_300));
        let expected = vec![(b, 3, 1, 1, Some((9, since))), (a, 1, 1, 1, None)];
        assert_eq!(rows.iter().map(told).collect::<Vec<_>>(), expected);
    }
}

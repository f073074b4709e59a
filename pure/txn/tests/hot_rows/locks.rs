//! Locks by age: the lock table itself.

use super::world::{Answer, Attempt, Discipline, NODES, Stamp, node as node_of};
use base::{IndexId, NodeId, ShardId, Slot, Time, Ts, TxnId};
use std::collections::{BTreeMap, BTreeSet};
use txn::lock::{Acquired, Item, LockRequest, Settled};
use txn::{LockMode, LockTable, Priority};

/// Attempts after which a transaction is urgent (rule R6).
const URGENT_FROM: u32 = 5;

/// Beside the rules that are built.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Way {
    /// Nothing.
    Built,
    /// An attempt begins with the row of which the former one has died.
    ConflictFirst,
    /// A request is alone until somebody who holds locks waits for one of its transaction's.
    AloneUntilAwaited,
}

/// A table for each node.
pub(super) struct Locks {
    way: Way,
    tables: [LockTable; NODES as usize],
    /// By row: who has it.
    holders: BTreeMap<u64, u64>,
    /// Who waits while holding something, and for which row.
    waiters: BTreeMap<u64, u64>,
    /// Of those that are open: somebody who holds locks has waited for them.
    awaited: BTreeSet<u64>,
    /// Rows that are waited for by those who hold nothing.
    waits: BTreeMap<u64, u64>,
}

fn txn(id: u64) -> TxnId {
    TxnId {
        shard: ShardId::new(NodeId(1), 0),
        incarnation: 1,
        counter: id,
    }
}

impl Locks {
    pub(super) fn new(way: Way) -> Locks {
        Locks {
            way,
            tables: Default::default(),
            holders: BTreeMap::new(),
            waiters: BTreeMap::new(),
            awaited: BTreeSet::new(),
            waits: BTreeMap::new(),
        }
    }

    /// Takes what tables say, and exposes those who are awaited, until nothing changes.
    fn settle(&mut self, told: &mut Vec<(u64, Answer)>) {
        loop {
            let tables = self.tables.iter_mut();
            let events: Vec<_> = tables.flat_map(LockTable::take_events).collect();
            for event in &events {
                let id = event.txn.counter;
                let row = self.waiters.remove(&id).or_else(|| self.waits.remove(&id));
                let row = row.expect("it waited");
                if event.settled == Settled::Granted {
                    self.holders.insert(row, id);
                    told.push((id, Answer::Granted));
                } else {
                    told.push((id, Answer::Dies));
                }
            }
            let awaited = self
                .waiters
                .values()
                .filter_map(|row| self.holders.get(row));
            let awaited: Vec<u64> = awaited.copied().collect();
            let mut news = awaited.into_iter().filter(|id| self.awaited.insert(*id));
            let news: Vec<u64> = news.by_ref().collect();
            if events.is_empty() && news.is_empty() {
                return;
            }
            if self.way == Way::AloneUntilAwaited {
                for table in &mut self.tables {
                    news.iter().for_each(|id| table.expose(txn(*id)));
                }
            }
        }
    }
}

impl Discipline for Locks {
    fn ask(&mut self, attempt: &Attempt, told: &mut Vec<(u64, Answer)>) -> Answer {
        let row = attempt.rows[attempt.has];
        let item = Item::Point {
            index: IndexId(1),
            slot: Slot(0),
            key: &row.to_be_bytes(),
        };
        let priority = Priority {
            urgent: attempt.deaths >= URGENT_FROM,
            ts: Ts(attempt.first),
            txn: txn(attempt.id),
        };
        let is_free = self.way == Way::AloneUntilAwaited && !self.awaited.contains(&attempt.id);
        let request = LockRequest {
            alone: attempt.has == 0 || is_free,
            ..LockRequest::new(priority, item, LockMode::Exclusive, Time(0), attempt.id)
        };
        let answer = match self.tables[node_of(row) as usize].acquire(request) {
            Acquired::Granted => {
                self.holders.insert(row, attempt.id);
                Answer::Granted
            }
            Acquired::Waiting => {
                let list = match attempt.has {
                    0 => &mut self.waits,
                    _ => &mut self.waiters,
                };
                list.insert(attempt.id, row);
                Answer::Waits
            }
            Acquired::Died(_) => Answer::Dies,
        };
        self.settle(told);
        answer
    }

    fn release(&mut self, attempt: &Attempt, node: u64, told: &mut Vec<(u64, Answer)>) {
        for row in attempt.rows.iter().filter(|row| node_of(**row) == node) {
            if self.holders.get(row) == Some(&attempt.id) {
                self.holders.remove(row);
            }
        }
        self.tables[node as usize].release(txn(attempt.id));
        self.settle(told);
    }

    fn begins_at_conflict(&self) -> bool {
        self.way == Way::ConflictFirst
    }

    /// It is drawn at the vote, and so above all that was read.
    fn stamp(&self, _: &Attempt) -> Option<Stamp> {
        None
    }
}

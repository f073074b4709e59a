//! Readers in the way of writers: the table names them, and the idle ones give way.
//!
//! A writer waits for a younger reader, or dies of an older one, as long as that transaction is
//! open. If its client does nothing, that may be for ever, while PostgreSQL, whose readers block
//! nothing, would have answered. So the table names each transaction whose *shared* lock keeps a
//! request waiting for [`GIVE_WAY_US`], and again every [`NAME_AGAIN_US`]; also one of which
//! requests die again and again for that long.
//!
//! A name is a question, not a verdict. Locks are never taken away here: the transaction's
//! coordinator knows whether it is idle and has not begun to commit, and ends it as COMMIT or
//! ROLLBACK would ([`crate::contract::Outbox::in_the_way`]). So the rule needs no proof of its own:
//! a transaction that gives way has ended, and strict two-phase locking holds.

use super::table::{LockRequest, LockTable, PointEntry};
use super::wait::{OwnedItem, Waiter};
use super::{Claim, LockMode};
use crate::columns::Columns;
use crate::reason::InTheWay;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use base::{Key, Planted, Time, TxnId, is_planted};

/// Microseconds that a writer waits for a reader before the reader is named. Well above a round
/// trip between a client and its server, so that a transaction at work is not idle. Well below what
/// a person notices as a hang.
pub const GIVE_WAY_US: u64 = 200_000;
/// Microseconds until a reader is named again: it may have been busy.
pub const NAME_AGAIN_US: u64 = 100_000;

impl Waiter {
    /// When the table first looks for readers in the way of the request; `None`: none can be.
    pub(super) fn first_look(&self) -> Option<Time> {
        let writes = self.claim.adds != Columns::NONE;
        writes.then(|| self.since.after(GIVE_WAY_US))
    }
}

/// A request that waits for a lock of another transaction.
#[derive(Clone, Debug)]
pub struct LockWait {
    /// Number of the request.
    pub request: u64,
    /// Transaction that holds a lock in its way.
    pub holder: TxnId,
    /// Key that is wanted (for a range: its lower bound).
    pub key: Key,
    /// When the wait began.
    pub since: Time,
}

impl LockTable {
    /// Calls `f` with every request that waits and each transaction that keeps it waiting.
    pub fn each_wait(&self, f: &mut dyn FnMut(LockWait)) {
        for waiter in self.waiters.values() {
            let item = waiter.item.as_item();
            let mut told = BTreeSet::new();
            self.each_holder(&item, waiter.claim, waiter.txn.txn, &mut |holder| {
                // It may hold many rows of a range, and is told once.
                if !told.insert(holder.txn.txn) {
                    return;
                }
                f(LockWait {
                    request: waiter.request,
                    holder: holder.txn.txn,
                    key: item.example(),
                    since: waiter.since,
                });
            });
        }
    }

    /// Transactions whose shared locks are in the way of others, named since the last call.
    #[must_use]
    pub fn take_in_the_way(&mut self) -> Vec<InTheWay> {
        core::mem::take(&mut self.in_the_way)
    }

    /// Whether [`LockTable::take_in_the_way`] would return anything.
    pub fn has_in_the_way(&self) -> bool {
        !self.in_the_way.is_empty()
    }

    /// Names the readers in the way of requests that have waited long enough.
    pub(super) fn look_for_readers(&mut self, now: Time) {
        let mut dropped = Vec::new();
        while let Some(&(at, arrival)) = self.looks.first() {
            if at > now {
                break;
            }
            self.looks.pop_first();
            let waiter = &self.waiters[&arrival];
            let readers = self.readers_in_the_way(&waiter.item, waiter.claim, waiter.txn.txn);
            if is_planted(Planted::GivenWayGoesOn)
                && let OwnedItem::Point(_) = &waiter.item
            {
                let readers = readers.iter().filter(|reader| self.only_reads(**reader));
                dropped.extend(readers.map(|reader| (*reader, waiter.item.clone())));
            }
            let (key, writer) = (waiter.item.as_item().example(), waiter.txn.txn);
            for reader in readers {
                self.name(reader, &key, writer);
            }
            let again = now.after(NAME_AGAIN_US);
            let waiter = self.waiters.get_mut(&arrival).expect("just seen");
            waiter.look_at = Some(again);
            self.looks.insert((again, arrival));
        }
        for (reader, item) in dropped {
            self.release_item(reader, &item.as_item());
        }
    }

    /// A request has died. Readers in its way that have been in the way of others before are named.
    pub(super) fn note_death(&mut self, request: &LockRequest<'_, Claim>) {
        if request.mode.adds == Columns::NONE {
            return;
        }
        let mut readers = Vec::new();
        let txn = request.txn.txn;
        self.each_holder(&request.item, request.mode, txn, &mut |holder| {
            if holder.claim.mode() == LockMode::Shared {
                readers.push(holder.txn.txn);
            }
        });
        for reader in readers {
            let owner = self.owner(reader);
            let since = *owner.deaths_since.get_or_insert(request.now);
            if request.now.since(since) >= GIVE_WAY_US {
                owner.deaths_since = Some(Time(since.0 + NAME_AGAIN_US));
                self.name(reader, &request.item.example(), txn);
            }
        }
    }

    fn readers_in_the_way(&self, item: &OwnedItem, claim: Claim, txn: TxnId) -> Vec<TxnId> {
        let mut readers = Vec::new();
        self.each_holder(&item.as_item(), claim, txn, &mut |holder| {
            if holder.claim.mode() == LockMode::Shared && !readers.contains(&holder.txn.txn) {
                readers.push(holder.txn.txn);
            }
        });
        readers
    }

    /// Whether the transaction holds only shared locks here.
    fn only_reads(&self, txn: TxnId) -> bool {
        let owner = self.owners.get(&txn);
        owner.is_some_and(|owner| {
            let shared = |point| {
                let entry: Option<&PointEntry> = self.points.get(point);
                let mut holders = entry.map_or(&[][..], |e| e.holders.as_slice()).iter();
                holders.all(|h| h.txn.txn != txn || h.claim.mode() == LockMode::Shared)
            };
            owner.runs.is_empty() && owner.waiting.is_empty() && owner.points.iter().all(shared)
        })
    }

    fn name(&mut self, reader: TxnId, key: &Key, writer: TxnId) {
        if self.in_the_way.iter().all(|named| named.reader != reader) {
            let key = key.clone();
            self.in_the_way.push(InTheWay {
                reader,
                key,
                writer,
            });
        }
    }
}

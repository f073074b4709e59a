//! Rows whose lock stands for a request at another shard that waits whatever its age.
//!
//! Under a protocol whose rows move, a transaction locks a row here and then waits for the row to
//! come. If it is alone, that wait may be for an older transaction (rule R4), as long as only
//! requests that are alone wait behind its lock here. So the row is *patient* until another request
//! waits for it: then the row is *exposed*, and the wait elsewhere must be judged by age.

use super::point::PointKey;
use super::table::{Item, LockTable};
use super::{Claim, LockMode};
use alloc::vec::Vec;
use base::{Key, TxnId};

impl LockTable {
    /// From now on the row is patient. Returns `false`, and nothing changes, if a request of
    /// another transaction than `txn` that is not alone waits for it.
    pub fn begin_patience(&mut self, key: &Key, txn: TxnId) -> bool {
        let item = Item::of(key);
        let mut alone = true;
        let claim = Claim::from(LockMode::Exclusive);
        self.each_waiter(&item, claim, txn, &mut |_, waiter| alone &= waiter.alone);
        if alone {
            self.patient
                .insert(PointKey::new(key.index, key.slot, &key.bytes));
        }
        alone
    }

    /// The row is patient no more.
    pub fn end_patience(&mut self, key: &Key) {
        if !self.patient.is_empty() {
            let point = PointKey::new(key.index, key.slot, &key.bytes);
            self.patient.remove(&point);
        }
    }

    /// A row that was patient when a request that is not alone began to wait for it.
    pub fn take_exposed(&mut self) -> Option<Key> {
        Some(self.exposed.pop()?.to_key())
    }

    /// A request that is not alone waits for `item`.
    pub(super) fn expose_rows(&mut self, item: &Item<'_>) {
        if self.patient.is_empty() {
            return;
        }
        if let Item::Point { index, slot, key } = *item {
            let point = PointKey::new(index, slot, key);
            self.exposed.extend(self.patient.take(&point));
            return;
        }
        let rows = self.patient.iter();
        let rows = rows.filter(|point| point.item().overlaps(item)).cloned();
        let rows: Vec<PointKey> = rows.collect();
        for point in rows {
            self.patient.remove(&point);
            self.exposed.push(point);
        }
    }

    /// Panics if a request that is not alone waits for a row that is patient.
    pub(super) fn validate_patience(&self) {
        for point in &self.patient {
            let claim = Claim::from(LockMode::Exclusive);
            let holders = self.points.get(point);
            let holders = holders.map_or(&[][..], |entry| entry.holders.as_slice());
            let own = holders.first().map_or(TxnId::default(), |it| it.txn.txn);
            self.each_waiter(&point.item(), claim, own, &mut |_, waiter| {
                assert!(waiter.alone, "{waiter:?} waits for {point:?}");
            });
        }
    }
}

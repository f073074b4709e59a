//! Transactions with a state of their own on one shard.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::collections::btree_map::Entry;
use alloc::vec::Vec;
use base::TxnId;
use core::ops::{Deref, DerefMut};
use txn::TxnOptions;

/// States of ended transactions whose memory is kept for the next ones.
const SPARES_MAX: usize = 256;

/// What a protocol keeps of a transaction.
pub trait State: Default {
    /// Makes it that of a new transaction. Lists keep their memory.
    fn reset(&mut self, options: TxnOptions);
}

/// States by transaction.
#[derive(Debug, Default)]
pub struct Txns<T> {
    open: BTreeMap<TxnId, Box<T>>,
    spares: Vec<Box<T>>,
}

impl<T: State> Txns<T> {
    /// The state of a transaction that is not in the map.
    pub fn fresh(&mut self, options: TxnOptions) -> Box<T> {
        reset(&mut self.spares, options)
    }

    /// Keeps the memory of a state that is not wanted any more.
    pub fn spare(&mut self, state: Box<T>) {
        if self.spares.len() < SPARES_MAX {
            self.spares.push(state);
        }
    }

    /// A transaction begins. Panics if it is known.
    pub fn begin(&mut self, txn: TxnId, options: TxnOptions) -> &mut T {
        let state = self.fresh(options);
        match self.open.entry(txn) {
            Entry::Vacant(place) => place.insert(state),
            Entry::Occupied(_) => panic!("{txn} begins once"),
        }
    }

    /// The state of a transaction, which begins now if it is not known.
    pub fn obtain(&mut self, txn: TxnId, options: TxnOptions) -> &mut T {
        let spares = &mut self.spares;
        let entry = self.open.entry(txn);
        entry.or_insert_with(|| reset(spares, options))
    }
}

fn reset<T: State>(spares: &mut Vec<Box<T>>, options: TxnOptions) -> Box<T> {
    let mut state = spares.pop().unwrap_or_default();
    state.reset(options);
    state
}

impl<T> Txns<T> {
    /// The state of a transaction that is known. Panics if it is not.
    #[inline]
    pub fn of(&mut self, txn: TxnId) -> &mut T {
        let state = self.open.get_mut(&txn);
        state.unwrap_or_else(|| panic!("{txn} is known"))
    }
}

impl<T> Deref for Txns<T> {
    type Target = BTreeMap<TxnId, Box<T>>;

    fn deref(&self) -> &BTreeMap<TxnId, Box<T>> {
        &self.open
    }
}

impl<T> DerefMut for Txns<T> {
    fn deref_mut(&mut self) -> &mut BTreeMap<TxnId, Box<T>> {
        &mut self.open
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::{NodeId, ShardId};

    #[derive(Debug, Default)]
    struct Notes(Vec<u64>, u32);

    impl State for Notes {
        fn reset(&mut self, options: TxnOptions) {
            self.0.clear();
            self.1 = options.attempt;
        }
    }

    #[test]
    fn memory_is_used_again_and_nothing_else() {
        let mut txns = Txns::<Notes>::default();
        let txn = |counter| TxnId {
            shard: ShardId::new(NodeId(1), 0),
            incarnation: 1,
            counter,
        };
        let second = TxnOptions {
            attempt: 2,
            ..TxnOptions::default()
        };
        txns.begin(txn(1), second).0.extend([1, 2, 3]);
        assert_eq!(txns.obtain(txn(1), TxnOptions::default()).1, 2);
        let over = txns.remove(&txn(1)).expect("it has begun");
        txns.spare(over);
        txns.obtain(txn(2), TxnOptions::default());
        let state = txns.of(txn(2));
        assert!(state.0.is_empty() && state.0.capacity() >= 3);
        assert_eq!((state.1, txns.len()), (1, 1));
    }
}

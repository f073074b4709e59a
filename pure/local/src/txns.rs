//! Transactions with a state of their own on one shard.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::collections::btree_map::Entry;
use alloc::vec::Vec;
use base::TxnId;
use core::ops::{Deref, DerefMut};
use txn::TxnOptions;

/// Number of states of ended transactions whose memory is kept for new ones.
const SPARES_MAX: usize = 256;

/// What a protocol keeps of a transaction.
pub trait State: Default {
    /// Makes this the state of a new transaction with default options. Lists keep their memory.
    fn reset(&mut self);

    /// How the transaction runs.
    fn options(&mut self) -> &mut TxnOptions;
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
        renewed(&mut self.spares, options)
    }

    /// Keeps the memory of the lists of a state that is not needed any more.
    pub fn spare(&mut self, mut state: Box<T>) {
        if self.spares.len() < SPARES_MAX {
            state.reset();
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

    /// The state of a transaction, which begins now if it is not known yet.
    pub fn obtain(&mut self, txn: TxnId, options: TxnOptions) -> &mut T {
        let spares = &mut self.spares;
        let entry = self.open.entry(txn);
        entry.or_insert_with(|| renewed(spares, options))
    }
}

fn renewed<T: State>(spares: &mut Vec<Box<T>>, options: TxnOptions) -> Box<T> {
    let mut state = spares.pop().unwrap_or_else(|| {
        let mut state = Box::<T>::default();
        state.reset();
        state
    });
    *state.options() = options;
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
    struct Notes(Vec<u64>, TxnOptions, Option<Box<u64>>);

    impl State for Notes {
        fn reset(&mut self) {
            self.0.clear();
            self.1 = TxnOptions::default();
            self.2 = None;
        }

        fn options(&mut self) -> &mut TxnOptions {
            &mut self.1
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
        let first = txns.begin(txn(1), second);
        first.0.extend([1, 2, 3]);
        first.2 = Some(Box::new(4));
        assert_eq!(txns.obtain(txn(1), TxnOptions::default()).1.attempt, 2);
        let over = txns.remove(&txn(1)).expect("it has begun");
        txns.spare(over);
        let spare = &txns.spares[0];
        assert!(
            spare.0.is_empty() && spare.2.is_none(),
            "spares hold nothing"
        );
        txns.obtain(txn(2), TxnOptions::default());
        let state = txns.of(txn(2));
        assert!(state.0.is_empty() && state.0.capacity() >= 3);
        assert_eq!((state.1.attempt, txns.len()), (1, 1));
    }
}

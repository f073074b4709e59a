//! What clients saw: transactions with their operations, outcomes and times.
//!
//! A history holds nothing that the database knows and a client does not. The recorder of a history
//! keeps three promises, on which every conclusion rests:
//!
//! 1. *Written values are unique per key*: no two `Append` or `Write` of one key carry the same
//!    value, in aborted and repeated transactions too. A retry is a new transaction with new
//!    values.
//! 2. *All times are of one clock* (nanoseconds, virtual time or a plain counter). `invoked` is
//!    taken before the first statement is sent, `completed` after the last answer has arrived.
//! 3. *An outcome is never guessed*: `Aborted` only if the database said so or the client rolled
//!    back before it asked for the commit. A lost connection at the commit is `Unknown`.
//!
//! One key is used as one thing: a list, a register or a counter. Tables share the space of keys;
//! give each its own range.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;

/// What the clients of one run saw.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct History {
    /// All transactions, in any order. Their index is their name in verdicts and stories.
    pub txns: Vec<Txn>,
    /// Counters that did not begin at 0.
    pub initial_counters: BTreeMap<u64, i64>,
    /// Names of keys that were not plain numbers in the text that the history was read from.
    pub key_names: BTreeMap<u64, String>,
    /// Transactions, by index, that real time orders against the transactions outside of this set
    /// only, and not among themselves. Not a part of the text of a history.
    pub loose: BTreeSet<u32>,
}

/// One attempt to run one transaction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Txn {
    /// Who ran it. One process runs one transaction at a time, and its order is the session order.
    pub process: u32,
    /// When it was begun.
    pub invoked: u64,
    /// When its outcome was known, at or after `invoked`; `None`: the client never had an answer.
    pub completed: Option<u64>,
    /// How it ended, as far as its client knows.
    pub outcome: Outcome,
    /// What it did, in its own order. Reads that were never answered are left out; writes that were
    /// sent are not, whatever became of them.
    pub ops: Vec<Op>,
}

/// How a transaction ended, as far as its client knows.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Outcome {
    /// The database confirmed the commit.
    Committed,
    /// It certainly did not commit and never will.
    Aborted,
    /// It may have committed, or may yet.
    Unknown,
}

/// One operation of a transaction with what it wrote or saw.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Op {
    /// Adds `value` at the end of the list `key`.
    Append {
        /// Which list.
        key: u64,
        /// Unique per key.
        value: u64,
    },
    /// Saw the whole list `key`; a list that does not exist is empty.
    ReadList {
        /// Which list.
        key: u64,
        /// What it held, oldest first.
        values: Vec<u64>,
    },
    /// A predicate read: all lists with keys in `low..=high` that are not empty.
    ReadLists {
        /// First key of the range.
        low: u64,
        /// Last key of the range.
        high: u64,
        /// The lists that were found. A key of the range that is not here was empty.
        seen: Vec<(u64, Vec<u64>)>,
    },
    /// Sets the register `key`; also the insert of a row.
    Write {
        /// Which register.
        key: u64,
        /// Unique per key.
        value: u64,
    },
    /// Removes the register `key`. Registers that are deleted support fewer conclusions: absent may
    /// then be before the first write or after a delete.
    Delete {
        /// Which register.
        key: u64,
    },
    /// Saw the register `key`.
    Read {
        /// Which register.
        key: u64,
        /// `None`: absent.
        value: Option<u64>,
    },
    /// A predicate read: all registers with keys in `low..=high` that exist.
    ReadRange {
        /// First key of the range.
        low: u64,
        /// Last key of the range.
        high: u64,
        /// Keys and values that were found. A key of the range that is not here was absent.
        seen: Vec<(u64, u64)>,
    },
    /// Adds `delta` to the counter `key` without reading it.
    Add {
        /// Which counter.
        key: u64,
        /// Not 0.
        delta: i64,
    },
    /// Saw the counter `key`.
    ReadCounter {
        /// Which counter.
        key: u64,
        /// What it held.
        value: i64,
    },
    /// Compared the counter `key` with a bound: the condition under which something was added to it
    /// or not, which the statement looked at before it added. It saw nothing but the side.
    Compare {
        /// Which counter.
        key: u64,
        /// With what.
        bound: i64,
        /// Whether the counter was `bound` or more just then. Otherwise it was less.
        at_least: bool,
    },
    /// Saw a whole table in one statement: the accounts of a bank with their balances, or the
    /// places of a ring with the place that follows each.
    ReadTable {
        /// Keys and values, in any order.
        rows: Vec<(u64, i64)>,
    },
}

impl History {
    /// An empty history.
    pub fn new() -> History {
        History::default()
    }

    /// Adds a transaction and returns its index.
    pub fn push(&mut self, txn: Txn) -> usize {
        self.txns.push(txn);
        self.txns.len() - 1
    }

    /// Number of operations in all transactions.
    pub fn op_count(&self) -> usize {
        self.txns.iter().map(|txn| txn.ops.len()).sum()
    }
}

impl Txn {
    /// A transaction that has just begun: no operation, outcome unknown, no answer.
    pub fn begin(process: u32, invoked: u64) -> Txn {
        Txn {
            process,
            invoked,
            completed: None,
            outcome: Outcome::Unknown,
            ops: Vec::new(),
        }
    }

    /// Records how and when it ended.
    pub fn end(&mut self, outcome: Outcome, completed: u64) {
        assert!(self.invoked <= completed, "it ends after it began");
        self.outcome = outcome;
        self.completed = Some(completed);
    }
}

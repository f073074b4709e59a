//! Workloads whose histories a checker judges: what each transaction does, from a seed.
//!
//! | kind | a transaction | what is checked |
//! |---|---|---|
//! | list-append | appends to lists, reads lists and ranges | every anomaly of Adya's |
//! | register | writes rows, reads rows and ranges | the same, where the order can be inferred |
//! | phantom | reads ranges, inserts into them and others | anti-dependencies on predicates |
//! | bank | moves money between accounts, reads all | the total; balances are sums of transfers |
//! | ring | moves a place of a cycle of rows, reads all | the rows are one cycle |
//! | counter, hot-counter | adds without reading, reads | reads are sums of additions |
//! | stock | takes where enough is left, puts back, reads | never below 0, no needless refusal |
//! | hot-pair | moves money between account 0 and another, reads | as bank |
//!
//! A transaction is a pure function of the seed and its number ([`plan::Plan::draw`]); the values
//! that it writes are given to it at each attempt, because a retry is a new transaction. Lists and
//! registers move on to new keys after a while, so that they stay short; the order of keys is such
//! that ranges hold keys that are written now and keys that are not there yet.
//!
//! Tables 0 and 1 of lists and registers are found by their primary key, table 2 by a secondary
//! index. Table 1 of lists has a copy of each list, and what is read is computed from the copy.
//! Style is drawn as well: blocks or single statements, simple or extended protocol, one round for
//! all or one for each statement, now and then a ROLLBACK of all that was done.

pub mod plan;
pub mod run;
pub mod tables;

use crate::wire::Isolation;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use check::{Bank, Demand, History, Judgement, Level, Op, Outcome, Ring, Txn, Verdict};

/// Tables that keys are spread over.
pub const TABLES: u32 = 3;
/// Keys of one table lie in `table * TABLE_SPAN ..`, so that no key is in two tables. Three spans
/// fit into an `integer`.
pub const TABLE_SPAN: u32 = 100_000_000;
/// Balance of each account at the beginning.
pub const OPENING: i64 = 100;
/// What is in stock of each row at the beginning: two or three takes, so that many come near the
/// end of it at once.
pub const OPENING_STOCK: i64 = 12;
/// Keys of one range of the phantom workload.
pub const RANGE_KEYS: u32 = 64;

/// Which history is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Lists of unique values.
    ListAppend,
    /// Rows with unique values.
    Register,
    /// Ranges of rows.
    Phantom,
    /// A constant total.
    Bank,
    /// A cycle of rows.
    Ring,
    /// Sums of increments.
    Counter,
    /// One counter to which all clients add.
    HotCounter,
    /// Counters from which is taken where enough is left.
    Stock,
    /// A constant total, of which one account is in every transaction.
    HotPair,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Kind; 9] = [
        Kind::ListAppend,
        Kind::Register,
        Kind::Phantom,
        Kind::Bank,
        Kind::Ring,
        Kind::Counter,
        Kind::HotCounter,
        Kind::Stock,
        Kind::HotPair,
    ];

    /// As a person types it.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::ListAppend => "list-append",
            Kind::Register => "register",
            Kind::Phantom => "phantom",
            Kind::Bank => "bank",
            Kind::Ring => "ring",
            Kind::Counter => "counter",
            Kind::HotCounter => "hot-counter",
            Kind::Stock => "stock",
            Kind::HotPair => "hot-pair",
        }
    }

    /// Keys that are in use at the same time, unless somebody asks for another number: few enough
    /// for conflicts, enough for concurrency.
    pub fn default_keys(self) -> u32 {
        match self {
            Kind::ListAppend | Kind::Register => 9,
            Kind::Phantom => 3,
            Kind::Bank => 10,
            Kind::Ring => 12,
            Kind::Counter => 6,
            Kind::HotCounter => 1,
            Kind::Stock => 4,
            Kind::HotPair => 6,
        }
    }

    /// Fewest keys that the kind can work with.
    pub fn keys_min(self) -> u32 {
        match self {
            Kind::ListAppend | Kind::Register | Kind::Phantom => TABLES,
            Kind::Bank | Kind::HotPair => 2,
            Kind::Ring => 5,
            Kind::Counter | Kind::HotCounter | Kind::Stock => 1,
        }
    }
}

/// Everything that decides what transactions do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Which history.
    pub kind: Kind,
    /// Decides every transaction.
    pub seed: u64,
    /// Keys in use at the same time, at least [`Kind::keys_min`]. Of phantom: ranges.
    pub keys: u32,
    /// Most operations of one transaction, 1 or more.
    pub txn_len_max: u32,
    /// Transactions after which a key is given up for a new one. Lists hold about a third as many
    /// values. 1 or more.
    pub txns_per_key: u32,
    /// Level of every transaction.
    pub isolation: Isolation,
    /// Whether some blocks say READ ONLY, which servers may answer from a snapshot without locks.
    pub has_read_only: bool,
}

impl Shape {
    /// The usual sizes of a kind.
    pub fn new(kind: Kind, seed: u64, isolation: Isolation) -> Shape {
        Shape {
            kind,
            seed,
            keys: kind.default_keys(),
            txn_len_max: 5,
            txns_per_key: 90,
            isolation,
            has_read_only: true,
        }
    }

    /// Whether the shape can be used, and if not, why.
    pub fn validate(&self) -> Result<(), ShapeError> {
        if !(self.kind.keys_min()..=1_000).contains(&self.keys) {
            return Err(ShapeError::Keys);
        }
        if !(1..=100).contains(&self.txn_len_max) {
            return Err(ShapeError::Length);
        }
        if self.txns_per_key == 0 {
            return Err(ShapeError::Rotation);
        }
        Ok(())
    }

    /// Keys of one table that are in use at the same time.
    fn table_keys(&self) -> u32 {
        match self.kind {
            Kind::Phantom => RANGE_KEYS,
            _ => self.keys.div_ceil(TABLES),
        }
    }

    /// How often the keys have been given up before transaction `number`.
    fn generation(&self, number: u64) -> u32 {
        let generations = u64::from((TABLE_SPAN - 1) / self.table_keys() - 2);
        ((number / u64::from(self.txns_per_key)) % generations) as u32
    }

    /// The key of slot `slot` (below `keys`) at transaction `number`. Slots change their keys at
    /// different times.
    fn key(&self, slot: u32, number: u64) -> u32 {
        let apart = u64::from(slot * self.txns_per_key / self.keys);
        let in_table = self.generation(number + apart) * self.table_keys() + slot / TABLES;
        slot % TABLES * TABLE_SPAN + in_table
    }

    /// First and last key of a range of table `table` that is in use at transaction `number`: the
    /// keys of now and those that come next.
    fn range(&self, table: u32, number: u64) -> (u32, u32) {
        let width = self.table_keys();
        let low = table * TABLE_SPAN + self.generation(number) * width;
        match self.kind {
            Kind::Phantom => (low, low + width - 1),
            _ => (low, low + 2 * width - 1),
        }
    }

    /// Ranges of keys that hold all that transactions with numbers below `end` may have written.
    /// Each is read by one statement at the end.
    pub fn ranges(&self, end: u64) -> Vec<(u32, u32)> {
        let mut ranges = Vec::new();
        let apart = u64::from(self.txns_per_key);
        let width = (self.generation(end + apart) + 2) * self.table_keys();
        for table in 0..TABLES {
            let first = table * TABLE_SPAN;
            for low in (first..first + width).step_by(RANGE_KEYS as usize) {
                ranges.push((low, (low + RANGE_KEYS).min(first + width) - 1));
            }
        }
        ranges
    }

    /// Whether keys are given up for new ones, and found by ranges.
    pub fn has_ranges(&self) -> bool {
        matches!(self.kind, Kind::ListAppend | Kind::Register | Kind::Phantom)
    }
}

/// Why a shape cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShapeError {
    /// Too few keys for the kind, or above 1,000.
    Keys,
    /// Transactions of 0 or more than 100 operations.
    Length,
    /// Keys that are given up at once.
    Rotation,
}

impl ShapeError {
    /// What to tell a person.
    pub fn describe(self, shape: &Shape) -> String {
        let least = shape.kind.keys_min();
        match self {
            ShapeError::Keys => format!("{} needs {least} to 1000 keys", shape.kind.name()),
            ShapeError::Length => String::from("a transaction has 1 to 100 operations"),
            ShapeError::Rotation => String::from("a key lives for at least one transaction"),
        }
    }
}

/// The process of the transaction that filled the tables. Clients are processes from 1.
pub const SETUP_PROCESS: u32 = 0;

/// A history in which nothing has happened but the filling of the tables, at time 0: the values of
/// accounts and places are additions to 0.
pub fn empty(shape: &Shape) -> History {
    let mut history = History::new();
    let value = |row: u32| match shape.kind {
        Kind::Bank | Kind::HotPair => OPENING,
        Kind::Stock => OPENING_STOCK,
        Kind::Ring => i64::from((row + 1) % shape.keys),
        Kind::ListAppend | Kind::Register | Kind::Phantom => 0,
        Kind::Counter | Kind::HotCounter => 0,
    };
    let mut txn = Txn::begin(SETUP_PROCESS, 0);
    for row in (0..shape.keys).filter(|&row| value(row) != 0) {
        txn.ops.push(Op::Add {
            key: u64::from(row),
            delta: value(row),
        });
    }
    if !txn.ops.is_empty() {
        txn.end(Outcome::Committed, 0);
        history.push(txn);
    }
    history
}

/// Judges a history that was recorded of a shape. Whole tables are judged beside single rows; the
/// worse judgement counts.
pub fn judge(shape: &Shape, history: &History, level: Level, demand: &Demand) -> Verdict {
    let table = match shape.kind {
        Kind::Bank | Kind::HotPair => {
            let bank = Bank {
                total: i64::from(shape.keys) * OPENING,
                accounts: u64::from(shape.keys),
                may_owe: true,
            };
            check::check_bank(history, &bank, level, demand)
        }
        Kind::Ring => {
            let places = u64::from(shape.keys);
            check::check_ring(history, &Ring { places }, level, demand)
        }
        Kind::ListAppend | Kind::Register | Kind::Phantom => {
            return check::check_with(history, level, demand);
        }
        Kind::Counter | Kind::HotCounter => return check::check_with(history, level, demand),
        Kind::Stock => return check::check_floor(history, 0, level, demand),
    };
    if table.judgement == Judgement::Fail {
        return table;
    }
    let rows = check::check_with(history, level, &Demand::NONE);
    match rows.judgement {
        Judgement::Fail => rows,
        Judgement::Pass | Judgement::Inconclusive => table,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_hold_every_key_once() {
        let shape = Shape::new(Kind::ListAppend, 1, Isolation::Serializable);
        let ranges = shape.ranges(5_000);
        for number in 0..5_000 {
            for slot in 0..shape.keys {
                let key = shape.key(slot, number);
                let holders = ranges
                    .iter()
                    .filter(|(low, high)| (*low..=*high).contains(&key));
                assert_eq!(holders.count(), 1, "key {key}");
            }
        }
    }

    #[test]
    fn keys_move_on_at_different_times() {
        let shape = Shape::new(Kind::Register, 1, Isolation::Serializable);
        let keys = |number| (0..shape.keys).map(move |slot| shape.key(slot, number));
        let moved: Vec<usize> = (1..90)
            .map(|n| keys(n).zip(keys(n - 1)).filter(|(a, b)| a != b).count())
            .collect();
        assert!(moved.iter().all(|&count| count <= 1), "{moved:?}");
        assert!(moved.iter().sum::<usize>() >= 8);
        // A range now holds keys that are written, and some that are not yet.
        let (low, high) = shape.range(1, 45);
        let now: Vec<u32> = keys(45).filter(|key| (low..=high).contains(key)).collect();
        assert_eq!(now.len(), 3);
        assert!(now.len() < (high - low + 1) as usize);
    }
}

//! What the statements of a shard's sessions have cost: the shard's part of `pg_stat_statements`.
//!
//! Executions that differ in their values alone are counted together ([`parse::normal`]), for each
//! role and database. A planned statement knows its counters, so that an execution of a prepared
//! statement compares one number and adds; the text is read when a plan is counted for the first
//! time.
//!
//! Both the number of entries and the bytes of their texts have a bound. Above it the entries that
//! were used least go, a twentieth of all at a time. What plans know is then of an older
//! *generation*, and they look for their entries again.

use super::Session;
use crate::SessionCx;
use crate::plans::Prepared;
use base::{Datum, LookupMap, RowBatch};
use parse::normal::{first_word, normal};
use parse::show::Show;
use rights::RoleId;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// Entries that a node keeps: `pg_stat_statements.max`.
pub const ENTRIES_MAX: usize = 5000;
/// Bytes of one text that are kept.
const TEXT_BYTES_MAX: usize = 8 << 10;
/// Bytes of all texts that a shard keeps for each of its entries, on average: one step hands them
/// all out.
const TEXT_BYTES_MEAN_MAX: usize = 1 << 10;
/// Number of rows of a statement that is not counted: it has failed, or counting is off.
pub(super) const UNCOUNTED: u64 = u64::MAX;

/// Whose executions an entry counts, and of which statement.
type Key = (u32, u32, u64);

/// The executions of a statement.
struct Entry {
    key: Key,
    text: Box<str>,
    calls: Cell<u64>,
    rows: Cell<u64>,
    total_us: Cell<u64>,
    /// Sum of the squares of the times, in square microseconds.
    squares: Cell<u128>,
    min_us: Cell<u64>,
    max_us: Cell<u64>,
    /// Executions, of which older ones count less.
    used: Cell<u64>,
}

/// What a planned statement knows of its counters.
#[derive(Default)]
pub(crate) struct Counting(RefCell<Known>);

/// The generation and the role for which the entry was found; the entry.
#[derive(Default)]
struct Known {
    mark: u64,
    /// `None`: the statement is not counted.
    entry: Option<Rc<Entry>>,
}

/// The statements of one shard.
pub struct Statements {
    entries: Vec<Rc<Entry>>,
    index: LookupMap<Key, Rc<Entry>>,
    text_bytes: usize,
    entries_max: usize,
    generation: u32,
}

impl Statements {
    /// Room for `entries_max` statements, at least 20.
    pub fn new(entries_max: usize) -> Statements {
        Statements {
            entries: Vec::new(),
            index: LookupMap::new(),
            text_bytes: 0,
            entries_max: entries_max.max(20),
            // 0 is what plans know that were not counted yet.
            generation: 1,
        }
    }

    /// Forgets all counts.
    pub fn reset(&mut self) {
        self.entries.clear();
        self.index = LookupMap::new();
        self.text_bytes = 0;
        self.generation += 1;
    }

    #[inline]
    fn mark(&self, role: RoleId) -> u64 {
        u64::from(self.generation) << 32 | u64::from(role.0)
    }

    /// The rows of [`Show::Statements`].
    pub fn rows(&self) -> RowBatch {
        let mut batch = RowBatch::new(Show::Statements.columns().len());
        let int = |value: u64| Datum::Int(i64::try_from(value).unwrap_or(i64::MAX));
        for entry in &self.entries {
            let (role, database, id) = entry.key;
            let (calls, total) = (entry.calls.get(), entry.total_us.get());
            let total = u128::from(total);
            // The sum of the squares of what each time differs from the mean.
            let spread = entry.squares.get() as f64 - (total * total) as f64 / calls as f64;
            batch.push([
                int(role.into()),
                int(database.into()),
                Datum::Int(id as i64),
                Datum::Text(entry.text.clone()),
                int(calls),
                int(entry.rows.get()),
                int(entry.total_us.get()),
                int(entry.min_us.get()),
                int(entry.max_us.get()),
                Datum::Float(spread.max(0.0)),
            ]);
        }
        batch
    }

    /// The entry of a key, made if it is not there.
    fn entry(&mut self, key: Key, text: impl FnOnce() -> Box<str>) -> Rc<Entry> {
        if let Some(entry) = self.index.get(&key) {
            return entry.clone();
        }
        if self.entries.len() >= self.entries_max {
            self.drop_least_used();
        }
        let text = text();
        while self.text_bytes + text.len() > self.entries_max * TEXT_BYTES_MEAN_MAX {
            self.drop_least_used();
        }
        self.text_bytes += text.len();
        let entry = Rc::new(Entry {
            key,
            text,
            calls: Cell::new(0),
            rows: Cell::new(0),
            total_us: Cell::new(0),
            squares: Cell::new(0),
            min_us: Cell::new(u64::MAX),
            max_us: Cell::new(0),
            used: Cell::new(1),
        });
        self.entries.push(entry.clone());
        self.index.insert(key, entry.clone());
        entry
    }

    fn drop_least_used(&mut self) {
        self.entries.sort_by_key(|entry| entry.used.get());
        let count = (self.entries.len() / 20).max(1);
        for entry in self.entries.drain(..count.min(self.entries.len())) {
            self.index.remove(&entry.key);
            self.text_bytes -= entry.text.len();
        }
        for entry in &self.entries {
            let used = entry.used.get();
            entry.used.set(used - used / 32);
        }
        self.generation += 1;
    }
}

impl Entry {
    #[inline]
    fn count(&self, duration_us: u64, rows: u64) {
        let add = |cell: &Cell<u64>, more: u64| cell.set(cell.get().wrapping_add(more));
        add(&self.calls, 1);
        add(&self.used, 1);
        add(&self.rows, rows);
        add(&self.total_us, duration_us);
        let square = u128::from(duration_us) * u128::from(duration_us);
        self.squares.set(self.squares.get().wrapping_add(square));
        self.min_us.set(self.min_us.get().min(duration_us));
        self.max_us.set(self.max_us.get().max(duration_us));
    }
}

impl Session {
    /// The statement has ended well and is counted.
    #[inline]
    pub(super) fn count_statement(&mut self, cx: &mut SessionCx<'_>, duration_us: u64) {
        let rows = std::mem::take(&mut self.statement_rows);
        let Some(statement) = self.statement.as_ref().filter(|_| rows != UNCOUNTED) else {
            return;
        };
        let statements = &mut cx.plans.statements;
        let mark = statements.mark(self.acting.by.current);
        if statement.counting.0.borrow().mark != mark {
            let entry = self.counters(statement, statements);
            statement.counting.0.replace(Known { mark, entry });
        }
        if let Some(entry) = &statement.counting.0.borrow().entry {
            entry.count(duration_us, rows);
        }
    }

    /// The entry of the statement; `None`: it is not counted, as it runs another one that is.
    #[cold]
    fn counters(&self, statement: &Prepared, statements: &mut Statements) -> Option<Rc<Entry>> {
        let text = match &statement.statement {
            Some(parsed) if parsed.has_password() => statement.shown(),
            _ => self.statement_text(),
        };
        if matches!(
            &*first_word(text),
            "" | "prepare" | "execute" | "deallocate"
        ) {
            return None;
        }
        let found = normal(text, TEXT_BYTES_MAX);
        let role = self.acting.by.current.0;
        let key = (role, statement.database.0, found.hash);
        Some(statements.entry(key, || found.text.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(statements: &mut Statements, text: &str, times: u64) {
        let found = normal(text, TEXT_BYTES_MAX);
        let entry = statements.entry((10, 1, found.hash), || found.text.into());
        (1..=times).for_each(|us| entry.count(us, 2));
    }

    #[test]
    fn entries_add_up_and_the_least_used_go() {
        let mut statements = Statements::new(40);
        count(&mut statements, "select 1", 2);
        count(&mut statements, "select 2", 3);
        let rows = statements.rows();
        let ints = [5, 10, 9, 1, 3].map(Datum::Int);
        assert_eq!(rows.row(0)[3..4], [Datum::from("select $1")]);
        assert_eq!(rows.row(0)[4..9], ints);
        let Datum::Float(spread) = rows.row(0)[9] else {
            panic!("a sum of squares")
        };
        assert!((spread - 2.8).abs() < 1e-9, "{spread}");
        count(&mut statements, "select hot", 1000);
        let before = statements.generation;
        for number in 0..1000 {
            count(&mut statements, &format!("set a = {number}"), 1);
            assert!(statements.entries.len() <= 40);
        }
        assert!(statements.generation > before);
        let rows = statements.rows();
        let mut texts = rows.iter().map(|row| row[3].as_str());
        assert!(texts.any(|text| text == Some("select hot")));
        statements.reset();
        assert_eq!(statements.rows().rows, 0);
    }

    #[test]
    fn long_texts_are_bounded() {
        let mut statements = Statements::new(40);
        for number in 0..100 {
            let text = format!("set a{number} = '{}'", "x".repeat(10_000));
            count(&mut statements, &text, 1);
            let bytes: usize = statements.entries.iter().map(|it| it.text.len()).sum();
            assert_eq!(bytes, statements.text_bytes);
            assert!(bytes <= 40 << 10);
        }
    }
}

//! Foreign keys: the parents of new rows must be there.

use super::deferred::{Owed, Owes};
use super::long::Long;
use super::request::get;
use super::scan::rows_of;
use super::write::Changes;
use super::{BATCH_ROWS, Cx, WINDOW};
use crate::port::OpFuture;
use base::key::{encode_datum, slot_of};
use base::{Datum, Key, SqlError, SqlState};
use catalog::{Deferral, Table};
use expr::program::{Body, ProgramPlan};
use expr::rows::{GroupKey, shown_key};
use plan::step::{ParentKey, Writer, table_index};
use std::collections::{BTreeMap, VecDeque};
use txn::{LockMode, OpError, Read};

pub(super) fn values(row: &[Datum], columns: &[u16]) -> Vec<Datum> {
    columns
        .iter()
        .map(|column| row[usize::from(*column)].clone())
        .collect()
}

pub(super) fn shown_key_of(table: &Table, columns: &[u16], row: &[Datum]) -> String {
    let names: Vec<&str> = columns
        .iter()
        .map(|column| table.column_at(*column).name.as_str())
        .collect();
    let values: Vec<_> = columns
        .iter()
        .map(|column| (table.column_at(*column).ty, &row[usize::from(*column)]))
        .collect();
    shown_key(&names, &values)
}

/// Checks that the parents of new rows exist, under shared locks.
pub(super) async fn check_parents(
    cx: &Cx<'_>,
    writer: &Writer,
    changes: Changes<'_>,
) -> Result<(), OpError> {
    for parent in &writer.parents {
        let mut wanted = Wanted::new(cx, writer, parent);
        for (i, change) in changes.iter().enumerate() {
            if let Some(new) = &change.new {
                wanted.add(i, new, change.old.as_deref())?;
            }
            if i % BATCH_ROWS == BATCH_ROWS - 1 {
                cx.breathe(BATCH_ROWS).await;
            }
        }
        let row = |number| changes.get(number).new.as_deref();
        wanted.ask(cx, &row).await?;
    }
    Ok(())
}

/// As [`check_parents`] for rows that are there.
pub(super) async fn have_parents(
    cx: &Cx<'_>,
    writer: &Writer,
    rows: &[&[Datum]],
) -> Result<(), OpError> {
    for parent in &writer.parents {
        let mut wanted = Wanted::new(cx, writer, parent);
        for (i, row) in rows.iter().enumerate() {
            wanted.add(i, row, None)?;
        }
        wanted.ask(cx, &|number| Some(rows[number])).await?;
    }
    Ok(())
}

/// The parents that rows want by one foreign key. Rows with one parent ask once.
struct Wanted<'a> {
    table: &'a Table,
    parent: &'a ParentKey,
    /// With the number of the first row that wants each.
    keys: Long<'a, BTreeMap<Vec<u8>, (Key, usize)>>,
}

impl<'a> Wanted<'a> {
    fn new(cx: &Cx<'a>, writer: &'a Writer, parent: &'a ParentKey) -> Wanted<'a> {
        Wanted {
            table: &writer.table,
            parent,
            keys: Long::new(cx.port, BTreeMap::new()),
        }
    }

    /// Adds what a row wants that was `old` before.
    ///
    /// # Errors
    /// 23503 for a key that is NULL in part, if it is MATCH FULL.
    fn add(&mut self, number: usize, row: &[Datum], old: Option<&[Datum]>) -> Result<(), SqlError> {
        let key = values(row, &self.parent.columns);
        let nulls = key.iter().filter(|value| value.is_null()).count();
        if nulls > 0 {
            if self.parent.match_full && nulls < key.len() {
                let detail = "MATCH FULL does not allow mixing of null and nonnull key values.";
                return Err(violation(self.table, self.parent).detail(detail));
            }
            return Ok(());
        }
        // What has not changed need not be asked for.
        if old.is_none_or(|old| values(old, &self.parent.columns) != key) {
            let key = parent_key(self.parent, &key);
            let bytes = key.bytes.clone();
            self.keys.entry(bytes).or_insert((key, number));
        }
        Ok(())
    }

    /// Asks for all of them; `row` gives the row with a number.
    async fn ask<'r>(
        mut self,
        cx: &Cx<'_>,
        row: &dyn Fn(usize) -> Option<&'r [Datum]>,
    ) -> Result<(), OpError> {
        if self.keys.is_empty() {
            return Ok(());
        }
        // A parent that was committed after the statement's snapshot is a parent.
        let read = Read::Lock(LockMode::Shared);
        let program = ProgramPlan::new(Body::Rows {
            filter: None,
            projection: Vec::new(),
        })
        .bind(&[]);
        let mut started: VecDeque<(usize, OpFuture<'_>)> = VecDeque::new();
        loop {
            while started.len() < WINDOW
                && let Some((_, (key, number))) = self.keys.pop_first()
            {
                let future = get(cx, 0, &self.parent.parent, key, read, program.clone());
                started.push_back((number, future));
            }
            let Some((number, future)) = started.pop_front() else {
                return Ok(());
            };
            if rows_of(future.await)?.rows == 0 {
                let row = row(number).expect("a row that wants a parent is there");
                if defers(cx, &self.parent.name, self.parent.deferral) {
                    let key = values(row, &self.parent.declared);
                    owe(cx, self.table, &self.parent.name, Owes::Child, key)?;
                    continue;
                }
                return Err(missing_parent(self.table, self.parent, row).into());
            }
            cx.breathe(1).await;
        }
    }
}

/// Whether the check of a constraint is put off to the end of the transaction.
pub(super) fn defers(cx: &Cx<'_>, name: &str, deferral: Deferral) -> bool {
    deferral != Deferral::Never
        && cx
            .port
            .deferred()
            .is_some_and(|state| state.borrow().defers(name, deferral))
}

/// Puts the check of a key off.
pub(super) fn owe(
    cx: &Cx<'_>,
    table: &Table,
    constraint: &str,
    owes: Owes,
    key: Vec<Datum>,
) -> Result<(), SqlError> {
    let Some(state) = cx.port.deferred() else {
        return Ok(());
    };
    cx.port.note_owed();
    state.borrow_mut().owe(Owed {
        table: table.id,
        constraint: constraint.to_owned(),
        key: GroupKey(key),
        owes,
    })
}

/// Asks for the parent of a row, which is locked if it is there.
pub(super) fn ask_parent<'a>(cx: &Cx<'a>, parent: &ParentKey, row: &[Datum]) -> OpFuture<'a> {
    let key = parent_key(parent, &values(row, &parent.columns));
    let program = ProgramPlan::new(Body::Rows {
        filter: None,
        projection: Vec::new(),
    });
    let read = Read::Lock(LockMode::Shared);
    get(cx, 0, &parent.parent, key, read, program.bind(&[]))
}

fn parent_key(parent: &ParentKey, key: &[Datum]) -> Key {
    let index = table_index(&parent.parent, parent.index);
    let mut bytes = Vec::with_capacity(crate::keys::key_capacity(key.len()));
    for (column, value) in index.columns.iter().zip(key) {
        encode_datum(&mut bytes, value, column.descending);
    }
    let mut partition = Vec::with_capacity(16);
    for place in &parent.slot {
        encode_datum(&mut partition, &key[*place], false);
    }
    Key::new(index.id, slot_of(&partition), bytes)
}

fn violation(table: &Table, parent: &ParentKey) -> SqlError {
    // While a type changes, rows must meet a copy of the key as well.
    let name = catalog::without_mark(&parent.name);
    let message = format!(
        "insert or update on table \"{}\" violates foreign key constraint \"{name}\"",
        table.name
    );
    SqlError::new(SqlState::FOREIGN_KEY, message)
        .table(&table.name)
        .constraint(&name)
}

fn missing_parent(table: &Table, parent: &ParentKey, row: &[Datum]) -> SqlError {
    let key = shown_key_of(table, &parent.declared, row);
    let detail = format!("{key} is not present in table \"{}\".", parent.parent.name);
    violation(table, parent).detail(detail)
}

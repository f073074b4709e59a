//! Foreign keys whose check is put off to the end of the transaction.
//!
//! A statement that finds no parent, or leaves rows behind without one, notes the key. Before the
//! commit each key that was noted is looked at again: it must have a parent, or no row may refer to
//! it. What a savepoint has undone is found to be gone by the same look.

use super::batch::idle;
use super::fill::plan_cx;
use super::foreign::{parent_there, shown_key_of};
use super::source::collect;
use super::{Charge, Slots};
use crate::port::Port;
use base::{Datum, SqlError, SqlState, TableId};
use catalog::{Deferral, Table};
use expr::rows::{GroupKey, datum_heap_bytes};
use plan::{KeyCheck, key_check};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;
use txn::OpError;

/// Bytes of keys that a transaction may put off.
const OWED_BYTES_MAX: usize = 64 << 20;

/// A key whose parent is to be looked for before the commit.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Owed {
    /// The table that refers.
    pub table: TableId,
    /// Its foreign key.
    pub constraint: String,
    /// Whether the parent went away, not a row that refers to it came.
    pub of_parent: bool,
    /// Values of the foreign key's columns, as declared.
    pub key: GroupKey,
}

/// What a transaction has put off, and what SET CONSTRAINTS has said in it; most have neither.
#[derive(Default, Debug)]
pub struct Deferred(Option<Box<State>>);

#[derive(Default, Debug)]
struct State {
    all: Option<bool>,
    named: BTreeMap<String, bool>,
    owed: BTreeSet<Owed>,
    bytes: usize,
}

impl Deferred {
    /// Whether a foreign key is checked at the end of the transaction.
    pub fn defers(&self, constraint: &str, deferral: Deferral) -> bool {
        let state = self.0.as_ref();
        let set = state.and_then(|state| state.named.get(constraint).copied().or(state.all));
        match deferral {
            Deferral::Never => false,
            Deferral::Possible => set.unwrap_or(false),
            Deferral::Initial => set.unwrap_or(true),
        }
    }

    /// Notes a key.
    ///
    /// # Errors
    /// 54000 if there are too many.
    pub fn owe(&mut self, owed: Owed) -> Result<(), SqlError> {
        let values = owed.key.0.iter().map(datum_heap_bytes).sum::<usize>();
        let bytes = size_of::<Owed>() + owed.constraint.len() + values;
        let state = self.0.get_or_insert_default();
        if state.owed.insert(owed) {
            state.bytes += bytes;
        }
        if state.bytes > OWED_BYTES_MAX {
            let message = "too many deferred checks of foreign keys";
            return Err(SqlError::new(SqlState::PROGRAM_LIMIT, message)
                .hint("Have them checked from time to time by SET CONSTRAINTS ALL IMMEDIATE."));
        }
        Ok(())
    }

    /// SET CONSTRAINTS.
    fn set(&mut self, names: Option<&[String]>, deferred: bool) {
        let state = self.0.get_or_insert_default();
        match names {
            None => {
                state.all = Some(deferred);
                state.named.clear();
            }
            Some(names) => {
                let names = names.iter().cloned();
                state.named.extend(names.map(|name| (name, deferred)));
            }
        }
    }

    /// The keys of these constraints, which are not owed any more.
    fn take(&mut self, names: Option<&[String]>) -> Vec<Owed> {
        let state = self.0.get_or_insert_default();
        let wanted = |owed: &Owed| names.is_none_or(|names| names.contains(&owed.constraint));
        let mut taken = Vec::new();
        for owed in core::mem::take(&mut state.owed) {
            match wanted(&owed) {
                true => taken.push(owed),
                false => _ = state.owed.insert(owed),
            }
        }
        if state.owed.is_empty() {
            state.bytes = 0;
        }
        taken
    }
}

/// Runs SET CONSTRAINTS: what is not put off any more is checked.
///
/// # Errors
/// 23503.
pub async fn set_constraints(
    port: Rc<dyn Port>,
    names: Option<&[String]>,
    deferred: bool,
) -> Result<(), OpError> {
    let taken = {
        let Some(state) = port.deferred() else {
            return Ok(());
        };
        let mut state = state.borrow_mut();
        state.set(names, deferred);
        match deferred {
            true => Vec::new(),
            false => state.take(names),
        }
    };
    let zone = port.setting("timezone");
    let plan_cx = plan_cx(&*port, zone.as_deref());
    let mut known: Option<(Arc<Table>, String, Option<KeyCheck>)> = None;
    for owed in taken {
        let same = |(table, name, _): &(Arc<Table>, String, _)| {
            table.id == owed.table && *name == owed.constraint
        };
        if !known.as_ref().is_some_and(same) {
            let mut tables = port.database().tables.values();
            let Some(table) = tables.find(|table| table.id == owed.table) else {
                continue;
            };
            let check = key_check(&plan_cx, table, &owed.constraint)?;
            known = Some((table.clone(), owed.constraint.clone(), check));
        }
        if let Some((table, _, Some(check))) = &known {
            look(&*port, table, check, &owed).await?;
        }
    }
    Ok(())
}

/// Looks for the parent of a key, or for rows that refer to it.
async fn look(
    port: &dyn Port,
    table: &Table,
    check: &KeyCheck,
    owed: &Owed,
) -> Result<(), OpError> {
    let cx = idle(port, check.slots);
    let mut row = vec![Datum::Null; table.columns.len()];
    for (column, value) in check.parent.declared.iter().zip(&owed.key.0) {
        row[usize::from(*column)] = value.clone();
    }
    if parent_there(&cx, &check.parent, &row).await? {
        return Ok(());
    }
    let mut values = vec![Datum::Null; check.slots as usize];
    for (slot, value) in check.child.slots.iter().zip(&owed.key.0) {
        values[*slot as usize] = value.clone();
    }
    let slots: Slots = Rc::new(values);
    let mut charge = Charge::new(port);
    if collect(&cx, &check.child.rows, &slots, &mut charge)
        .await?
        .is_empty()
    {
        return Ok(());
    }
    let (parent, name) = (&check.parent.parent, &owed.constraint);
    let (message, detail) = match owed.of_parent {
        true => {
            let mut parent_row = vec![Datum::Null; parent.columns.len()];
            for (column, value) in check.child.parent_columns.iter().zip(&owed.key.0) {
                parent_row[usize::from(*column)] = value.clone();
            }
            let key = shown_key_of(parent, &check.child.parent_columns, &parent_row);
            (
                format!(
                    "update or delete on table \"{}\" violates foreign key constraint \
                     \"{name}\" on table \"{}\"",
                    parent.name, table.name
                ),
                format!("{key} is still referenced from table \"{}\".", table.name),
            )
        }
        false => {
            let key = shown_key_of(table, &check.parent.declared, &row);
            (
                format!(
                    "insert or update on table \"{}\" violates foreign key constraint \"{name}\"",
                    table.name
                ),
                format!("{key} is not present in table \"{}\".", parent.name),
            )
        }
    };
    Err(SqlError::new(SqlState::FOREIGN_KEY, message)
        .detail(detail)
        .table(&table.name)
        .constraint(name)
        .into())
}

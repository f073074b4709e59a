//! Foreign keys and unique constraints whose check is put off to the end of the transaction.
//!
//! A statement that finds no parent, or leaves rows behind without one, notes the key. Before the
//! commit each key that was noted is looked at again: it must have a parent, or no row may refer to
//! it. What a savepoint has undone is found to be gone by the same look. Rows that come with a key
//! that is taken are noted as well (`doubles`), also if their constraint is
//! checked at the end of the statement.
//!
//! A key that SET CONSTRAINTS has had checked behind a savepoint is kept: ROLLBACK TO that
//! savepoint may undo what made it good, so it is owed again then. What SET CONSTRAINTS has said
//! goes back, too.

use super::batch::idle;
use super::doubles;
use super::fill::{plan_cx, settings_of};
use super::foreign::{ask_parent, shown_key_of};
use super::long::Long;
use super::scan::rows_of;
use super::source::collect;
use super::{Charge, Cx, Slots, WINDOW};
use crate::port::{OpFuture, Port};
use base::{Datum, SqlError, SqlState, TableId};
use catalog::{Deferral, Table};
use expr::rows::{GroupKey, datum_heap_bytes};
use plan::step::KeyRows;
use plan::{KeyCheck, key_check};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;
use txn::{OpError, Savepoint};

/// Bytes of keys that a transaction may put off.
const OWED_BYTES_MAX: usize = 64 << 20;

/// Keys that are asked for together in an index.
const KEYS_BY_INDEX: usize = 1_000;
/// Keys that are looked for in one reading of the table.
const KEYS_BY_SCAN: usize = 10_000;

/// Keys of which the rows that refer to them are read together.
pub(super) fn keys_at_once(many: Option<&KeyRows>) -> usize {
    match many {
        Some(many) if many.keyed => KEYS_BY_INDEX,
        Some(_) => KEYS_BY_SCAN,
        None => 1,
    }
}

/// A key that is to be looked at before the commit, or at the end of the statement.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Owed {
    /// The table that refers, or has the key.
    pub table: TableId,
    /// Its constraint.
    pub constraint: String,
    /// Values of the constraint's columns, as declared.
    pub key: GroupKey,
    /// Why.
    pub owes: Owes,
}

/// Why a key is to be looked at.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Owes {
    /// A row came that refers to it, and there was no parent.
    Child,
    /// The parent went away.
    Parent,
    /// A row with this primary key came, and the key was taken.
    Double(GroupKey),
}

impl Owed {
    fn bytes(&self) -> usize {
        let row: &[Datum] = match &self.owes {
            Owes::Double(row) => &row.0,
            Owes::Child | Owes::Parent => &[],
        };
        let values = self.key.0.iter().chain(row);
        let values = values.map(datum_heap_bytes).sum::<usize>();
        size_of::<Owed>() + self.constraint.len() + values
    }
}

/// What a transaction has put off, and what SET CONSTRAINTS has said in it; most have neither.
#[derive(Default, Debug)]
pub struct Deferred(Option<Box<State>>);

#[derive(Default, Debug)]
struct State {
    said: Rc<Said>,
    owed: BTreeSet<Rc<Owed>>,
    /// Keys that were checked behind a savepoint, with the number of the newest one then.
    checked: BTreeMap<Rc<Owed>, u32>,
    /// Of both.
    bytes: usize,
    /// Unique constraints that are checked at the end of the statement, and have keys in `owed`.
    now: BTreeSet<(TableId, String)>,
    /// Savepoints, the newest last. One that is not here was set when nothing was put off or said.
    marks: Vec<(u32, Rc<Said>)>,
}

/// What SET CONSTRAINTS has said.
#[derive(Clone, Default, Debug)]
struct Said {
    all: Option<bool>,
    named: BTreeMap<String, bool>,
}

impl State {
    /// Takes keys off `owed`; behind a savepoint they are kept as checked.
    fn take(&mut self, wanted: impl Fn(&Rc<Owed>) -> bool) -> Vec<Rc<Owed>> {
        let (taken, rest) = core::mem::take(&mut self.owed)
            .into_iter()
            .partition::<Vec<_>, _>(wanted);
        self.owed = rest.into_iter().collect();
        match self.marks.last() {
            Some((number, _)) => {
                let checked = taken.iter().map(|owed| (owed.clone(), *number));
                self.checked.extend(checked);
            }
            None => self.bytes -= taken.iter().map(|owed| owed.bytes()).sum::<usize>(),
        }
        taken
    }

    /// No savepoint is left to which the transaction could go back.
    fn forget_checked(&mut self) {
        let checked = core::mem::take(&mut self.checked);
        self.bytes -= checked.keys().map(|owed| owed.bytes()).sum::<usize>();
    }
}

impl Deferred {
    /// Whether a constraint is checked at the end of the transaction.
    pub fn defers(&self, constraint: &str, deferral: Deferral) -> bool {
        let said = self.0.as_ref().map(|state| &state.said);
        let set = said.and_then(|said| said.named.get(constraint).copied().or(said.all));
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
        let bytes = owed.bytes();
        let state = self.0.get_or_insert_default();
        let owed = Rc::new(owed);
        let known = state.checked.remove(&owed).is_some();
        if state.owed.insert(owed) && !known {
            state.bytes += bytes;
        }
        if state.bytes > OWED_BYTES_MAX {
            let message = "too many deferred checks of constraints";
            return Err(SqlError::new(SqlState::PROGRAM_LIMIT, message)
                .hint("Have them checked from time to time by SET CONSTRAINTS ALL IMMEDIATE."));
        }
        Ok(())
    }

    /// Notes a row whose key is taken. Unless it is looked at `later`, it is at the end of the
    /// statement.
    ///
    /// # Errors
    /// 54000 if there are too many.
    pub(super) fn owe_double(&mut self, owed: Owed, later: bool) -> Result<(), SqlError> {
        if !later {
            let now = &mut self.0.get_or_insert_default().now;
            now.insert((owed.table, owed.constraint.clone()));
        }
        self.owe(owed)
    }

    /// Whether nothing was put off or said.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Whether this was noted and not looked at since.
    pub(super) fn has(&self, owed: &Owed) -> bool {
        let state = self.0.as_ref();
        state.is_some_and(|state| state.owed.contains(owed))
    }

    /// What is to be looked at when a statement ends, and is not owed any more.
    fn take_now(&mut self) -> Vec<Rc<Owed>> {
        let Some(state) = self.0.as_mut().filter(|state| !state.now.is_empty()) else {
            return Vec::new();
        };
        let now = core::mem::take(&mut state.now);
        let of_now = |owed: &Rc<Owed>| {
            matches!(owed.owes, Owes::Double(_))
                && now.contains(&(owed.table, owed.constraint.clone()))
        };
        state.take(of_now)
    }

    /// SET CONSTRAINTS.
    fn set(&mut self, names: Option<&[String]>, deferred: bool) {
        let said = Rc::make_mut(&mut self.0.get_or_insert_default().said);
        match names {
            None => {
                said.all = Some(deferred);
                said.named.clear();
            }
            Some(names) => {
                let names = names.iter().cloned();
                said.named.extend(names.map(|name| (name, deferred)));
            }
        }
    }

    /// The keys of these constraints, which are not owed any more.
    fn take(&mut self, names: Option<&[String]>) -> Vec<Rc<Owed>> {
        let wanted = |owed: &Rc<Owed>| names.is_none_or(|names| names.contains(&owed.constraint));
        let state = self.0.as_mut();
        state.map_or_else(Vec::new, |state| state.take(wanted))
    }

    /// The transaction sets a savepoint or goes back to one.
    pub fn save(&mut self, savepoint: Savepoint) {
        let Some(state) = &mut self.0 else {
            return;
        };
        match savepoint {
            Savepoint::Set { number, within } => {
                // The ones between have been released.
                state.marks.retain(|(mark, _)| *mark <= within);
                if state.marks.is_empty() {
                    state.forget_checked();
                }
                state.marks.push((number, state.said.clone()));
            }
            Savepoint::Renew { .. } => {}
            Savepoint::RollBackTo(number) => {
                state.now.clear();
                state.marks.retain(|(mark, _)| *mark <= number);
                let mark = state.marks.last().filter(|(mark, _)| *mark == number);
                state.said = mark.map(|(_, said)| said.clone()).unwrap_or_default();
                let checked = core::mem::take(&mut state.checked);
                for (owed, under) in checked {
                    match under < number {
                        true => _ = state.checked.insert(owed, under),
                        false => _ = state.owed.insert(owed),
                    }
                }
            }
        }
    }
}

/// Runs SET CONSTRAINTS: what is not put off any more is checked.
///
/// # Errors
/// 23503, 23505.
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
    look_at(&*port, taken).await
}

/// Looks at what the end of a statement owes.
///
/// # Errors
/// 23505.
pub(super) async fn end_statement(cx: &Cx<'_>) -> Result<(), OpError> {
    let state = cx.port.doubles();
    let taken = state.map_or_else(Vec::new, |state| state.borrow_mut().take_now());
    match taken.is_empty() {
        true => Ok(()),
        false => Box::pin(look_at(cx.port, taken)).await,
    }
}

/// Looks at keys that are not owed any more.
async fn look_at(port: &dyn Port, taken: Vec<Rc<Owed>>) -> Result<(), OpError> {
    let taken = Long::new(port, taken);
    let zone = settings_of(port);
    let plan_cx = plan_cx(port, &zone);
    // The keys of one constraint stand together.
    let of_one = |a: &Rc<Owed>, b: &Rc<Owed>| a.table == b.table && a.constraint == b.constraint;
    for owed in taken.chunk_by(of_one) {
        let mut tables = port.database().tables.values();
        let Some(table) = tables.find(|table| table.id == owed[0].table) else {
            continue;
        };
        let constraint = &owed[0].constraint;
        let mut indexes = table.indexes();
        let index = indexes.position(|index| index.is_deferrable() && index.name == *constraint);
        if let Some(number) = index {
            doubles::look(port, table, number, owed).await?;
        } else if let Some(check) = key_check(&plan_cx, table, constraint)? {
            look(port, table, &check, owed).await?;
        }
    }
    Ok(())
}

/// Looks for the parents of keys, and for rows that refer to those that have none.
async fn look(
    port: &dyn Port,
    table: &Table,
    check: &KeyCheck,
    owed: &[Rc<Owed>],
) -> Result<(), OpError> {
    let cx = idle(port, check.slots);
    let missing = without_parent(&cx, table, check, owed).await?;
    let at_once = keys_at_once(check.child.many.as_deref());
    for owed in missing.chunks(at_once) {
        let referred = match (&check.child.many, owed) {
            (Some(many), [_, _, ..]) => referred_to(&cx, check, many, owed).await?,
            _ => is_referred_to(&cx, check, &owed[0])
                .await?
                .then(|| owed[0].clone()),
        };
        if let Some(owed) = referred {
            return Err(violation(table, check, &owed).into());
        }
    }
    Ok(())
}

/// A row of the child with this key.
fn row_of(table: &Table, check: &KeyCheck, owed: &Owed) -> Vec<Datum> {
    let mut row = vec![Datum::Null; table.columns.len()];
    for (column, value) in check.parent.declared.iter().zip(&owed.key.0) {
        row[usize::from(*column)] = value.clone();
    }
    row
}

/// The keys that have no parent. The parents of the others are locked.
async fn without_parent<'a>(
    cx: &'a Cx<'a>,
    table: &Table,
    check: &KeyCheck,
    owed: &[Rc<Owed>],
) -> Result<Long<'a, Vec<Rc<Owed>>>, OpError> {
    let mut missing = Long::new(cx.port, Vec::new());
    let mut waiting = owed.iter();
    let mut started: VecDeque<(&Rc<Owed>, OpFuture<'_>)> = VecDeque::new();
    loop {
        while started.len() < WINDOW
            && let Some(owed) = waiting.next()
        {
            let row = row_of(table, check, owed);
            started.push_back((owed, ask_parent(cx, &check.parent, &row)));
        }
        let Some((owed, future)) = started.pop_front() else {
            return Ok(missing);
        };
        if rows_of(future.await)?.rows == 0 {
            missing.push(owed.clone());
        }
        cx.breathe(1).await;
    }
}

/// The slots of a check with these values.
fn slots_with(check: &KeyCheck, slots: &[u32], values: impl Iterator<Item = Datum>) -> Slots {
    let mut all = vec![Datum::Null; check.slots as usize];
    for (slot, value) in slots.iter().zip(values) {
        all[*slot as usize] = value;
    }
    Rc::new(all)
}

/// Whether a row refers to the key.
async fn is_referred_to(cx: &Cx<'_>, check: &KeyCheck, owed: &Owed) -> Result<bool, OpError> {
    let slots = slots_with(check, &check.child.slots, owed.key.0.iter().cloned());
    let mut charge = Charge::new(cx.port);
    let rows = collect(cx, &check.child.rows, &slots, &mut charge).await?;
    Ok(!rows.is_empty())
}

/// The first of the keys to which a row refers.
async fn referred_to(
    cx: &Cx<'_>,
    check: &KeyCheck,
    many: &KeyRows,
    owed: &[Rc<Owed>],
) -> Result<Option<Rc<Owed>>, OpError> {
    let arrays = (0..check.child.slots.len()).map(|place| {
        let values = owed.iter().map(|owed| owed.key.0[place].clone());
        Datum::Array(values.collect())
    });
    let slots = slots_with(check, &check.child.slots, arrays);
    let mut charge = Charge::new(cx.port);
    let rows = collect(cx, &many.rows, &slots, &mut charge).await?;
    let mut keys = BTreeSet::new();
    for row in rows.iter() {
        let columns = check.child.child_columns.iter();
        let key = columns.map(|column| row[usize::from(*column)].clone());
        keys.insert(GroupKey(key.collect()));
    }
    let referred = owed.iter().find(|owed| keys.contains(&owed.key));
    Ok(referred.cloned())
}

/// The error for a key without a parent to which a row refers.
fn violation(table: &Table, check: &KeyCheck, owed: &Owed) -> SqlError {
    let row = row_of(table, check, owed);
    let (parent, name) = (
        &check.parent.parent,
        catalog::without_mark(&owed.constraint),
    );
    let (message, detail) = match owed.owes {
        Owes::Parent => {
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
        Owes::Child | Owes::Double(_) => {
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
    SqlError::new(SqlState::FOREIGN_KEY, message)
        .detail(detail)
        .table(&table.name)
        .constraint(&name)
}

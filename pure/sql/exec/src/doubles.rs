//! Rows that have one key of a constraint that can be deferred.
//!
//! ```text
//! key            -> row    the place of the key: the entry of any unique index
//! key, row's key -> row    a second entry, for a row that came while the place was taken
//! ```
//!
//! A transaction notes its second entries ([`Deferred`]). At the end of the statement, or of the
//! transaction if the constraint is deferred, each key that was noted is looked at. Of the row in
//! its place and those with a second entry at most one may be left (else 23505), and gets the
//! place. So no second entry outlives its transaction, what is committed is a unique index, and two
//! transactions that want one key meet in its place, as under any unique index
//! (docs/adr/0047-deferrable-keys.md).
//!
//! [`Deferred`]: super::deferred::Deferred

use super::batch::idle;
use super::children::all;
use super::deferred::{Owed, Owes};
use super::foreign::{defers, values};
use super::request::get;
use super::scan::rows_of;
use super::write::{checked_key, duplicate, op_slot};
use super::{Cx, Local, WINDOW};
use crate::keys::{entry_key, entry_row};
use crate::port::{OpFuture, Port};
use base::key::encode_datum;
use base::{Datum, Key, Planted, Type, is_planted};
use catalog::{Index, Table};
use expr::program::{Body, ModifyBody, ProgramPlan, TableShape};
use expr::rows::GroupKey;
use expr::{Compare, Expr, Func};
use plan::step::{Writer, table_index};
use std::collections::VecDeque;
use std::rc::Rc;
use txn::{LockMode, Op, OpError, OpResult, Program, Read, Write};

/// Keys that are looked at together.
const KEYS_AT_ONCE: usize = 32;

/// The key of the second entry of a row; `None`: rows with one key would be one row.
fn second_key(table: &Table, index: &Index, row: &[Datum]) -> Option<Key> {
    let own = index.columns.len();
    let stored = index.stored_columns(table);
    if stored.len() == own {
        return None;
    }
    let mut key = entry_key(table, index, row);
    for behind in &stored[own..] {
        let value = &row[usize::from(behind.column)];
        encode_datum(&mut key.bytes, value, behind.descending);
    }
    Some(key)
}

fn owed(table: &Table, index: &Index, row: &[Datum]) -> Owed {
    let columns = |keys: &[catalog::IndexColumn]| {
        let columns: Vec<u16> = keys.iter().map(|key| key.column).collect();
        GroupKey(values(row, &columns))
    };
    Owed {
        table: table.id,
        constraint: index.name.clone(),
        key: columns(&index.columns),
        owes: Owes::Double(columns(&table.primary.columns)),
    }
}

/// Whether a row whose key in an index is taken may have a second entry.
pub(super) fn may_double(index: &Index, row: &[Datum]) -> bool {
    index.is_deferrable() && !index.is_open(row)
}

/// Gives second entries to rows, each with the number of an index in which its key is taken.
///
/// # Errors
/// 23505 if the constraint cannot wait.
pub(super) async fn add<'r>(
    cx: &Cx<'_>,
    table: &Table,
    doubles: &[(usize, usize)],
    row_of: &dyn Fn(usize) -> &'r [Datum],
) -> Result<(), OpError> {
    let mut waiting = doubles.iter();
    let mut started: VecDeque<(usize, &[Datum], OpFuture<'_>)> = VecDeque::new();
    loop {
        while started.len() < WINDOW
            && let Some((place, number)) = waiting.next()
        {
            let (index, row) = (table_index(table, *number), row_of(*place));
            let key = second_key(table, index, row);
            let (Some(state), Some(key)) = (cx.port.doubles(), key) else {
                return Err(duplicate(table, *number, row).into());
            };
            let key = checked_key(key, &index.name)?;
            let later = defers(cx, &index.name, index.deferral);
            state
                .borrow_mut()
                .owe_double(owed(table, index, row), later)?;
            if later {
                cx.port.note_owed();
            }
            let insert = Op::Insert {
                key,
                row: entry_row(table, row).into(),
            };
            let sent = send(cx, table, insert).into_iter();
            started.extend(sent.map(|future| (*number, row, future)));
        }
        let Some((number, row, future)) = started.pop_front() else {
            return Ok(());
        };
        if future.await? == OpResult::Exists {
            return Err(duplicate(table, number, row).into());
        }
        cx.breathe(1).await;
    }
}

/// Starts an operation on every copy of an entry.
fn send<'a>(cx: &Cx<'a>, table: &Table, op: Op) -> Vec<OpFuture<'a>> {
    let start = |to| OpFuture::start(cx.port, to, cx.planned, op.clone(), false);
    match table.replicated {
        true => cx.port.shards().iter().map(|to| start(*to)).collect(),
        false => vec![start(cx.port.home(op_slot(&op)))],
    }
}

/// What removes the entry of a row that may have a second one; `None`: it is in its place.
pub(super) fn removals(
    cx: &Cx<'_>,
    writer: &Writer,
    index: &Index,
    old: &[Datum],
) -> Option<[Op; 2]> {
    let table = &*writer.table;
    let state = cx.port.doubles().filter(|_| may_double(index, old))?;
    let noted = {
        let state = state.borrow();
        !state.is_empty() && state.has(&owed(table, index, old))
    };
    let second = second_key(table, index, old).filter(|_| noted)?;
    let program = own_removal(table, &writer.shape, old);
    let remove = |key| Op::Modify {
        key,
        program: program.clone(),
    };
    Some([remove(entry_key(table, index, old)), remove(second)])
}

/// The program that removes an entry if it is that of this row.
pub(super) fn own_removal(table: &Table, shape: &TableShape, row: &[Datum]) -> Program {
    let keys = table.primary.columns.iter().enumerate();
    let same = keys.map(|(at, key)| {
        let ty = table.column_at(key.column).ty;
        let own = row[usize::from(key.column)].clone();
        let sides = vec![Expr::Column(at as u32, ty), Expr::Const(own, ty)];
        Expr::Call(Func::Compare(Compare::Eq), sides, Type::Bool)
    });
    let body = ModifyBody {
        filter: Some(Expr::And(same.collect())),
        assignments: None,
        checks: Vec::new(),
        shape: shape.clone(),
        returning: Vec::new(),
        cases: Vec::new(),
    };
    ProgramPlan::new(Body::Modify(Box::new(body))).bind(&[])
}

/// Looks at the keys of an index of which rows have second entries, given key by key.
///
/// # Errors
/// 23505 for a key that two rows have.
pub(super) async fn look(
    port: &dyn Port,
    table: &Table,
    number: usize,
    owed: &[Rc<Owed>],
) -> Result<(), OpError> {
    if is_planted(Planted::DoublesKept) {
        return Ok(());
    }
    let cx = &idle(port, 0);
    let keys: Vec<&[Rc<Owed>]> = owed.chunk_by(|a, b| a.key == b.key).collect();
    for some in keys.chunks(KEYS_AT_ONCE) {
        let looks = some.iter().map(|owed| -> Local<'_, _> {
            Box::pin(async move { settle(cx, table, number, owed).await })
        });
        for done in all(looks.collect()).await {
            done?;
        }
        cx.breathe(some.len()).await;
    }
    Ok(())
}

/// What is known of a row with a second entry, in the columns of the row.
fn row_of(table: &Table, index: &Index, owed: &Owed) -> Vec<Datum> {
    let mut row = vec![Datum::Null; table.columns.len()];
    let Owes::Double(own) = &owed.owes else {
        unreachable!("keys of a unique constraint have no parents");
    };
    let keys = index.columns.iter().zip(&owed.key.0);
    for (column, value) in keys.chain(table.primary.columns.iter().zip(&own.0)) {
        row[usize::from(column.column)] = value.clone();
    }
    row
}

/// Gives the place of a key to the one row that is left with it.
async fn settle(
    cx: &Cx<'_>,
    table: &Table,
    number: usize,
    owed: &[Rc<Owed>],
) -> Result<(), OpError> {
    let index = table_index(table, number);
    let read = Read::Lock(LockMode::Exclusive);
    let program = ProgramPlan::new(Body::Rows {
        filter: None,
        projection: Vec::new(),
    })
    .bind(&[]);
    let ask = |key| get(cx, 0, table, key, read, program.clone());
    let first = row_of(table, index, &owed[0]);
    let place = entry_key(table, index, &first);
    let taken = rows_of(ask(place.clone()).await)?.rows > 0;
    let mut left: Option<Vec<Datum>> = None;
    let mut waiting = owed.iter();
    let mut started: VecDeque<(Vec<Datum>, OpFuture<'_>)> = VecDeque::new();
    loop {
        while started.len() < WINDOW
            && let Some(owed) = waiting.next()
        {
            let row = row_of(table, index, owed);
            let key = second_key(table, index, &row).expect("it was made");
            let future = ask(key);
            started.push_back((row, future));
        }
        let Some((row, future)) = started.pop_front() else {
            break;
        };
        if rows_of(future.await)?.rows > 0 {
            if taken || left.is_some() {
                return Err(duplicate(table, number, &row).into());
            }
            left = Some(row);
        }
        cx.breathe(1).await;
    }
    let Some(row) = left else { return Ok(()) };
    let remove = Op::Write {
        key: second_key(table, index, &row).expect("it was made"),
        write: Write::Delete,
    };
    let insert = Op::Insert {
        key: place,
        row: entry_row(table, &row).into(),
    };
    let mut sent = send(cx, table, remove);
    sent.extend(send(cx, table, insert));
    for future in sent {
        if future.await? == OpResult::Exists {
            return Err(duplicate(table, number, &row).into());
        }
    }
    Ok(())
}

//! Writing rows: table rows, index entries, uniqueness; UPDATE and DELETE.
//!
//! The rows of a statement are read and locked first, then all old entries are removed, then all
//! new ones are written: an update may shift keys onto each other's old places.

use super::long::Long;
use super::request::get;
use super::scan::rows_of;
use super::source::{RowList, collect};
use super::{BATCH_ROWS, Charge, Cx, Slots, WINDOW, bulk, children, doubles, foreign};
use crate::keys::{entry_differs, entry_key, entry_row};
use crate::port::OpFuture;
use base::limits::{KEY_BYTES_MAX, ROW_BYTES_MAX};
use base::{Datum, Key, Pieces, Planted, RowBatch, SqlError, SqlState, is_planted};
use catalog::{Index, Table};
use expr::program::{Body, ProgramPlan};
use expr::rows::{entry_bytes, heap_bytes, row_bytes, shown_key};
use expr::{Expr, eval};
use plan::step::{WritePlan, Writer, table_index};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use txn::{LockMode, Op, OpError, OpResult, Read, Write};

/// A row before and after a statement.
pub(super) struct Change {
    pub(super) old: Option<Vec<Datum>>,
    pub(super) new: Option<Vec<Datum>>,
}

/// Changes of rows of one table: a few, or as many as a statement has.
#[derive(Clone, Copy)]
pub(super) struct Changes<'c> {
    few: &'c [Change],
    /// Those from one place to another one.
    many: Option<(&'c Pieces<Change>, usize, usize)>,
}

impl<'c> Changes<'c> {
    pub(super) fn few(few: &'c [Change]) -> Changes<'c> {
        Changes { few, many: None }
    }

    pub(super) fn many(many: &'c Pieces<Change>) -> Changes<'c> {
        Changes::some(many, 0, many.len())
    }

    /// The changes from `from` to `to`.
    pub(super) fn some(many: &'c Pieces<Change>, from: usize, to: usize) -> Changes<'c> {
        Changes {
            few: &[],
            many: Some((many, from, to)),
        }
    }

    pub(super) fn iter(self) -> impl Iterator<Item = &'c Change> {
        let many = self.many.into_iter();
        let many = many.flat_map(|(many, from, to)| (from..to).map(move |at| &many[at]));
        self.few.iter().chain(many)
    }

    pub(super) fn get(self, number: usize) -> &'c Change {
        match self.many {
            Some((many, from, _)) => &many[from + number],
            None => &self.few[number],
        }
    }

    fn len(self) -> usize {
        self.few.len() + self.many.map_or(0, |(_, from, to)| to - from)
    }
}

/// Operations under way, answered in order.
struct Pending<'p, 'a> {
    cx: &'p Cx<'a>,
    writer: &'p Writer,
    started: VecDeque<(usize, usize, OpFuture<'a>)>,
    /// Rows whose key in an index that can be deferred is taken, with the number of the index.
    doubles: Vec<(usize, usize)>,
}

impl<'p, 'a> Pending<'p, 'a> {
    fn new(cx: &'p Cx<'a>, writer: &'p Writer) -> Pending<'p, 'a> {
        Pending {
            cx,
            writer,
            started: VecDeque::new(),
            doubles: Vec::new(),
        }
    }

    /// Starts an operation on an entry of index `index` of row `row`, on every shard if the table
    /// is replicated.
    async fn start(
        &mut self,
        row: usize,
        index: usize,
        op: Op,
        changes: Changes<'_>,
    ) -> Result<(), OpError> {
        while self.started.len() >= WINDOW {
            self.settle_one(changes).await?;
        }
        let cx = self.cx;
        let mut send = |to, op| {
            let future = OpFuture::start(cx.port, to, cx.planned, op, false);
            self.started.push_back((row, index, future));
        };
        if self.writer.table.replicated {
            for shard in cx.port.shards().iter() {
                send(*shard, op.clone());
            }
        } else {
            let misplaced = index > 0 && is_planted(Planted::IndexMisplaced);
            let home = if misplaced {
                cx.port.here()
            } else {
                cx.port.home(op_slot(&op))
            };
            send(home, op);
        }
        Ok(())
    }

    async fn settle_one(&mut self, changes: Changes<'_>) -> Result<(), OpError> {
        let Some((row, index, future)) = self.started.pop_front() else {
            return Ok(());
        };
        if future.await? == OpResult::Exists {
            let table = &*self.writer.table;
            let new = new_of(changes, row);
            if !doubles::may_double(table_index(table, index), new) {
                return Err(duplicate(table, index, new).into());
            }
            // Each copy of an entry answers.
            if self.doubles.last() != Some(&(row, index)) {
                self.doubles.push((row, index));
            }
        }
        Ok(())
    }

    async fn settle(&mut self, changes: Changes<'_>) -> Result<(), OpError> {
        while !self.started.is_empty() {
            self.settle_one(changes).await?;
        }
        Ok(())
    }
}

/// The new row of a change that has one.
fn new_of(changes: Changes<'_>, row: usize) -> &[Datum] {
    let new = changes.get(row).new.as_deref();
    new.expect("only new rows are inserted")
}

pub(super) fn op_slot(op: &Op) -> base::Slot {
    match op {
        Op::Get { key, .. }
        | Op::Modify { key, .. }
        | Op::Insert { key, .. }
        | Op::Formula { key, .. }
        | Op::Write { key, .. } => key.slot,
        Op::InsertMany(_) | Op::Scan(_) | Op::Clock(_) | Op::Savepoint(_) => {
            unreachable!("it is no write")
        }
    }
}

/// 23505 for a row whose entry in an index exists.
pub(super) fn duplicate(table: &Table, index: usize, row: &[Datum]) -> SqlError {
    let index = table_index(table, index);
    let names: Vec<String> = index
        .columns
        .iter()
        .map(|key| catalog::told(&table.key_text(key.column)))
        .collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let values: Vec<_> = index
        .columns
        .iter()
        .map(|key| {
            (
                table.column_at(key.column).ty,
                &row[usize::from(key.column)],
            )
        })
        .collect();
    let message = format!(
        "duplicate key value violates unique constraint \"{}\"",
        index.name
    );
    SqlError::new(SqlState::UNIQUE, message)
        .detail(format!("{} already exists.", shown_key(&names, &values)))
        .table(&table.name)
        .constraint(&index.name)
}

/// The key, if it is not too long.
pub(super) fn checked_key(key: Key, name: &str) -> Result<Key, SqlError> {
    match key.bytes.len() > KEY_BYTES_MAX {
        true => Err(key_too_long(key.bytes.len(), name)),
        false => Ok(key),
    }
}

pub(super) fn key_too_long(size_bytes: usize, name: &str) -> SqlError {
    let message =
        format!("index row size {size_bytes} exceeds maximum {KEY_BYTES_MAX} for index \"{name}\"");
    SqlError::new(SqlState::PROGRAM_LIMIT, message)
}

/// The encoding of a full row.
pub(super) fn encoded_row(table: &str, row: &[Datum]) -> Result<Vec<u8>, SqlError> {
    let encoded = base::row::to_vec(row);
    match encoded.len() > ROW_BYTES_MAX {
        true => Err(too_big(table, encoded.len())),
        false => Ok(encoded),
    }
}

pub(super) fn too_big(table: &str, size_bytes: usize) -> SqlError {
    let message = format!("row is too big: size {size_bytes}, maximum size {ROW_BYTES_MAX}");
    SqlError::new(SqlState::PROGRAM_LIMIT, message).table(table)
}

/// Computes the generated columns of a new row.
pub(super) fn complete_row(
    cx: &Cx<'_>,
    writer: &Writer,
    row: &mut [Datum],
) -> Result<(), SqlError> {
    for (column, value) in &writer.generated {
        let value = eval(value, &&*row, &cx.env(&[]))?;
        row[usize::from(*column)] = value;
    }
    Ok(())
}

/// Checks the constraints that concern a new row alone.
pub(super) fn check_row(cx: &Cx<'_>, writer: &Writer, row: &[Datum]) -> Result<(), SqlError> {
    for column in &writer.shape.not_null {
        if row[usize::from(*column)].is_null() {
            return Err(writer.shape.null_violation(*column, row));
        }
    }
    for (name, check) in &writer.checks {
        if eval(check, &row, &cx.env(&[]))? == Datum::Bool(false) {
            return Err(writer.shape.check_violation(name, row));
        }
    }
    Ok(())
}

/// As [`check_row`] for all changes.
async fn check_rows(cx: &Cx<'_>, writer: &Writer, changes: Changes<'_>) -> Result<(), OpError> {
    for (i, change) in changes.iter().enumerate() {
        if let Some(new) = &change.new {
            check_row(cx, writer, new)?;
        }
        if i % BATCH_ROWS == BATCH_ROWS - 1 {
            cx.breathe(BATCH_ROWS).await;
        }
    }
    cx.breathe(changes.len() % BATCH_ROWS).await;
    Ok(())
}

/// Removes the entry of a row from an index. One that is being built may not have it yet, but that
/// of another row with its key: a program removes what is the row's.
fn removed(writer: &Writer, index: &Index, old: &[Datum]) -> Op {
    let table = &*writer.table;
    let key = entry_key(table, index, old);
    match index.building {
        true => Op::Modify {
            key,
            program: doubles::own_removal(table, &writer.shape, old),
        },
        false => Op::Write {
            key,
            write: Write::Delete,
        },
    }
}

/// Writes the entry of a new row to an index, given with its number; `None` if it has not changed.
fn written(
    table: &Table,
    (number, index): (usize, &Index),
    old: Option<&[Datum]>,
    new: &[Datum],
) -> Result<Option<Op>, SqlError> {
    if number > 0 && !index.has_entry(new) {
        return Ok(None);
    }
    let key = checked_key(entry_key(table, index, new), &index.name)?;
    Ok(Some(match (old, number) {
        (Some(old), 0) if entry_key(table, index, old) == key => Op::Write {
            key,
            write: Write::Put(encoded_row(&table.name, new)?),
        },
        (_, 0) => Op::Insert {
            key,
            row: encoded_row(&table.name, new)?.into(),
        },
        (Some(old), _) if !entry_differs(table, index, old, new) => return Ok(None),
        (_, _) => Op::Insert {
            key,
            row: entry_row(table, new).into(),
        },
    }))
}

/// Writes changes of the rows of one table and what follows from them in other tables.
pub(super) async fn apply(
    cx: &Cx<'_>,
    writers: &[Writer],
    number: usize,
    changes: Changes<'_>,
    slots: &Slots,
) -> Result<(), OpError> {
    let writer = &writers[number];
    entries(cx, writer, changes).await?;
    foreign::check_parents(cx, writer, changes).await?;
    children::follow_children(cx, writers, number, changes, slots).await
}

/// Writes changes of the rows of one table, and nothing else.
pub(super) async fn entries(
    cx: &Cx<'_>,
    writer: &Writer,
    changes: Changes<'_>,
) -> Result<(), OpError> {
    let table = &*writer.table;
    check_rows(cx, writer, changes).await?;
    if let Some(rows) = all_new(changes) {
        return insert_all(cx, table, &rows).await;
    }
    lock_copies(cx, table, changes).await?;
    let mut pending = Pending::new(cx, writer);
    for (i, change) in changes.iter().enumerate() {
        if i % BATCH_ROWS == BATCH_ROWS - 1 {
            cx.breathe(BATCH_ROWS).await;
        }
        let Some(old) = &change.old else { continue };
        for (number, index) in table.indexes().enumerate() {
            if number > 0 && !index.has_entry(old) {
                continue;
            }
            let gone = match &change.new {
                None => true,
                Some(new) if number == 0 => {
                    entry_key(table, index, old) != entry_key(table, index, new)
                }
                Some(new) => entry_differs(table, index, old, new),
            };
            if !gone {
                continue;
            }
            if let Some(either) = doubles::removals(cx, writer, index, old) {
                for op in either {
                    pending.start(i, number, op, changes).await?;
                }
                continue;
            }
            let op = removed(writer, index, old);
            pending.start(i, number, op, changes).await?;
        }
    }
    pending.settle(changes).await?;
    for (i, change) in changes.iter().enumerate() {
        if i % BATCH_ROWS == BATCH_ROWS - 1 {
            cx.breathe(BATCH_ROWS).await;
        }
        let Some(new) = &change.new else { continue };
        for (number, index) in table.indexes().enumerate() {
            if let Some(op) = written(table, (number, index), change.old.as_deref(), new)? {
                pending.start(i, number, op, changes).await?;
            }
        }
    }
    pending.settle(changes).await?;
    let row = |row| new_of(changes, row);
    doubles::add(cx, table, &pending.doubles, &row).await
}

async fn insert_all(cx: &Cx<'_>, table: &Table, rows: &[&[Datum]]) -> Result<(), OpError> {
    let inserted = bulk::insert(cx, table, rows).await;
    inserted.map_err(|failed| failed.error)?;
    cx.breathe(rows.len()).await;
    Ok(())
}

/// The rows of a statement that inserts several and does nothing else.
fn all_new(changes: Changes<'_>) -> Option<Vec<&[Datum]>> {
    let new = |change: &Change| change.old.is_none() && change.new.is_some();
    if changes.len() < 2 || !changes.iter().all(new) {
        return None;
    }
    Some(
        changes
            .iter()
            .filter_map(|change| change.new.as_deref())
            .collect(),
    )
}

/// Locks the old rows in the copies of a replicated table that were not read; nothing if it is not
/// replicated.
async fn lock_copies(cx: &Cx<'_>, table: &Table, changes: Changes<'_>) -> Result<(), OpError> {
    if !table.replicated {
        return Ok(());
    }
    let program = ProgramPlan::new(Body::Rows {
        filter: None,
        projection: Vec::new(),
    })
    .bind(&[]);
    // Found and locked here already: what counts is the newest version.
    let read = Read::Lock(LockMode::Exclusive);
    for (i, change) in changes.iter().enumerate() {
        if i % BATCH_ROWS == BATCH_ROWS - 1 {
            cx.breathe(BATCH_ROWS).await;
        }
        let Some(old) = &change.old else { continue };
        let key = entry_key(table, &table.primary, old);
        let mut started = Vec::new();
        for shard in cx
            .port
            .shards()
            .iter()
            .filter(|shard| **shard != cx.port.here())
        {
            let op = Op::Get {
                key: key.clone(),
                read,
                program: program.clone(),
            };
            started.push(OpFuture::start(cx.port, *shard, cx.planned, op, false));
        }
        for future in started {
            future.await?;
        }
        cx.breathe(1).await;
    }
    Ok(())
}

/// Runs an UPDATE or DELETE; returns the number of rows.
pub(super) async fn run<'a>(
    cx: &'a Cx<'a>,
    plan: &'a WritePlan,
    slots: &Slots,
    emit: bool,
) -> Result<u64, OpError> {
    let mut charge = Charge::new(cx.port);
    let (changes, mut returned) = changes(cx, plan, slots, None, &mut charge).await?;
    apply(cx, &plan.writers, 0, Changes::many(&changes), slots).await?;
    if let Some(returning) = &plan.returning {
        let mut out = RowBatch::new(returning.len());
        let others = returned.iter_mut().map(core::mem::take);
        for (change, others) in changes.iter().zip(others) {
            let row = change.new.as_ref().or(change.old.as_ref());
            let row = row.expect("a row was changed");
            let full: Vec<Datum> = row.iter().cloned().chain(others).collect();
            project(cx, returning, &full, slots, &mut out)?;
            cx.breathe(1).await;
            if out.rows as usize >= BATCH_ROWS && emit {
                cx.emit(core::mem::replace(&mut out, RowBatch::new(returning.len())))
                    .await;
            }
        }
        if emit {
            cx.emit(out).await;
        }
    }
    Ok(changes.len() as u64)
}

/// The rows that the parts of a statement have changed so far, with the number of the part.
pub(super) struct Claimed<'k> {
    pub(super) keys: &'k RefCell<BTreeMap<(u32, Vec<u8>), usize>>,
    pub(super) part: usize,
}

impl Claimed<'_> {
    /// Whether this part may change the row: no other one has.
    pub(super) fn take(
        &self,
        table: &Table,
        key: Vec<u8>,
        charge: &mut Charge<'_>,
    ) -> Result<bool, SqlError> {
        charge.add(heap_bytes(key.capacity()) + entry_bytes(size_of::<(u32, Vec<u8>)>()))?;
        let mut keys = self.keys.borrow_mut();
        Ok(*keys.entry((table.id.0, key)).or_insert(self.part) == self.part)
    }
}

/// Computes the changes of an UPDATE or DELETE, and, if it returns rows, what it has read of other
/// tables for each.
pub(super) async fn changes<'a>(
    cx: &'a Cx<'a>,
    plan: &'a WritePlan,
    slots: &Slots,
    claimed: Option<&Claimed<'_>>,
    charge: &mut Charge<'_>,
) -> Result<(Long<'a, Pieces<Change>>, Long<'a, RowList>), OpError> {
    let table = &*plan.writers[0].table;
    let mut rows = collect(cx, &plan.rows, slots, charge).await?;
    let width = table.columns.len();
    // A row that joins with several others is changed once.
    let mut seen = Long::new(cx.port, BTreeSet::new());
    let joined = plan.rows.width as usize > width || has_join(plan);
    charge.add(rows.len() * size_of::<Change>())?;
    let mut changes = Long::new(cx.port, Pieces::new());
    let mut returned = Long::new(cx.port, RowList::new());
    for (i, row) in rows.iter_mut().map(core::mem::take).enumerate() {
        if i % BATCH_ROWS == BATCH_ROWS - 1 {
            cx.breathe(BATCH_ROWS).await;
        }
        if joined && !is_first(table, &row[..width], &mut seen, charge)? {
            continue;
        }
        if let Some(claimed) = claimed {
            let key = entry_key(table, &table.primary, &row[..width]).bytes;
            if !claimed.take(table, key, charge)? {
                continue;
            }
        }
        let env = cx.env(slots);
        let mut old = row;
        let others = old.split_off(width);
        let new = match &plan.assignments {
            None => None,
            Some(assignments) => {
                let full: Vec<Datum> = old.iter().chain(&others).cloned().collect();
                let mut new = old.clone();
                for (column, value) in assignments {
                    new[usize::from(*column)] = eval(value, &full.as_slice(), &env)?;
                }
                complete_row(cx, &plan.writers[0], &mut new)?;
                charge.add(row_bytes(&new))?;
                Some(new)
            }
        };
        if plan.returning.is_some() {
            charge.add(row_bytes(&others) + 2 * size_of::<Vec<Datum>>())?;
            returned.push(others);
        }
        changes.push(Change {
            old: Some(old),
            new,
        });
    }
    Ok((changes, returned))
}

/// Whether a row has not been seen yet.
fn is_first(
    table: &Table,
    row: &[Datum],
    seen: &mut BTreeSet<Vec<u8>>,
    charge: &mut Charge<'_>,
) -> Result<bool, SqlError> {
    is_first_of(entry_key(table, &table.primary, row).bytes, seen, charge)
}

/// As [`is_first`] for the row's key.
pub(super) fn is_first_of(
    key: Vec<u8>,
    seen: &mut BTreeSet<Vec<u8>>,
    charge: &mut Charge<'_>,
) -> Result<bool, SqlError> {
    charge.add(heap_bytes(key.capacity()) + entry_bytes(size_of::<Vec<u8>>()))?;
    Ok(seen.insert(key))
}

/// Whether the rows come from more than the table itself.
fn has_join(plan: &WritePlan) -> bool {
    use plan::step::StepOp;
    !matches!(plan.rows.op, StepOp::Scan(_))
}

/// Appends one projected row.
pub(super) fn project(
    cx: &Cx<'_>,
    exprs: &[Expr],
    row: &[Datum],
    slots: &[Datum],
    out: &mut RowBatch,
) -> Result<(), SqlError> {
    let env = cx.env(slots);
    for expr in exprs {
        out.datums.push(eval(expr, &row, &env)?);
    }
    out.rows += 1;
    Ok(())
}

/// Reads one full row of a table under a lock.
pub(super) async fn locked_row(
    cx: &Cx<'_>,
    table: &Table,
    key: Key,
) -> Result<Option<Vec<Datum>>, OpError> {
    let layout: Vec<u32> = (0..table.columns.len() as u32).collect();
    let projection = layout
        .iter()
        .map(|c| Expr::Column(*c, table.columns[*c as usize].ty))
        .collect();
    let program = ProgramPlan::new(Body::Rows {
        filter: None,
        projection,
    })
    .bind(&[]);
    let read = Read::Lock(LockMode::Exclusive);
    let batch = rows_of(get(cx, 0, table, key, read, program).await)?;
    Ok((batch.rows > 0).then_some(batch.datums))
}

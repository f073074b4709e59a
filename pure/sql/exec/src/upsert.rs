//! INSERT ... ON CONFLICT of many rows: the rows of a batch are looked for together, then written
//! together. [`conflict`](super::conflict) says the same of one row.

use super::conflict::{
    Met, Touched, arbiters, ask, found_key, has_entry, insert, met_again, met_by, started_change,
    updated,
};
use super::foreign::check_parents;
use super::request::get;
use super::scan::rows_of;
use super::write::{Change, Changes, apply, check_row, checked_key};
use super::{Cx, Slots, WINDOW, bulk};
use crate::keys::{entry_differs, entry_key};
use crate::port::OpFuture;
use base::{Datum, Key, SqlError};
use expr::Expr;
use expr::program::{Body, FormulaChange, ProgramPlan};
use plan::step::{ConflictPlan, Writer, table_index};
use std::collections::{BTreeSet, VecDeque};
use txn::{LockMode, OpError, Read};

/// An INSERT with ON CONFLICT.
pub(super) struct Upsert<'u, 'a, 't> {
    cx: &'u Cx<'a>,
    writers: &'u [Writer],
    plan: &'u ConflictPlan,
    slots: &'u Slots,
    /// The unique indexes that decide.
    arbiters: Vec<usize>,
    touched: &'u mut Touched<'t>,
}

/// The existing row that a new one conflicts with.
#[derive(Clone)]
struct Existing {
    key: Key,
    /// `None`: it was not asked for, or is not there any more.
    row: Option<Vec<Datum>>,
}

/// What becomes of the rows of a batch, each change with the number of its row.
#[derive(Default)]
struct Decided {
    new: Vec<(usize, Change)>,
    updated: Vec<(usize, Change)>,
}

/// An entry that was asked for: the numbers of its row and of its index.
type Asked<'a> = (usize, usize, Key, OpFuture<'a>);

impl<'u, 'a, 't> Upsert<'u, 'a, 't> {
    pub(super) fn new(
        cx: &'u Cx<'a>,
        writers: &'u [Writer],
        plan: &'u ConflictPlan,
        slots: &'u Slots,
        touched: &'u mut Touched<'t>,
    ) -> Upsert<'u, 'a, 't> {
        Upsert {
            cx,
            writers,
            plan,
            slots,
            arbiters: arbiters(&writers[0].table, plan.arbiter),
            touched,
        }
    }

    /// Inserts rows, or does what the statement says of those that exist. Gives the rows that were
    /// written, in their order.
    pub(super) async fn insert(
        &mut self,
        rows: Vec<Vec<Datum>>,
    ) -> Result<Vec<Vec<Datum>>, OpError> {
        let table = &*self.writers[0].table;
        let mut arbiters = self.arbiters.iter();
        let late = arbiters.any(|number| table_index(table, *number).is_deferrable());
        if rows.len() < 2 || self.touched.moved || late {
            return self.one_by_one(rows.into_iter()).await;
        }
        let writer = &self.writers[0];
        for row in &rows {
            check_row(self.cx, writer, row)?;
        }
        let update = self.plan.update.as_ref();
        if let (None, [arbiter]) = (update, &self.arbiters[..]) {
            let index = table_index(&writer.table, *arbiter);
            if rows.iter().all(|row| has_entry(index, row)) {
                return self.absent(*arbiter, rows).await;
            }
        }
        let met = match update.and_then(|update| update.changes.as_ref()) {
            Some(changes) => self.change(changes, &rows).await?,
            None => vec![Met::Unknown; rows.len()],
        };
        let existing = self.existing(&rows, &met).await?;
        self.decide(rows, &met, existing).await
    }

    async fn one_by_one(
        &mut self,
        rows: impl Iterator<Item = Vec<Datum>>,
    ) -> Result<Vec<Vec<Datum>>, OpError> {
        let mut written = Vec::new();
        for row in rows {
            let (plan, slots) = (self.plan, self.slots);
            let result = insert(self.cx, self.writers, plan, row, slots, self.touched);
            written.extend(result.await?);
        }
        Ok(written)
    }

    /// DO NOTHING with one arbiter: its shards insert the entries that are absent, and tell which
    /// are not. Of equal ones the first is inserted.
    async fn absent(
        &self,
        arbiter: usize,
        mut rows: Vec<Vec<Datum>>,
    ) -> Result<Vec<Vec<Datum>>, OpError> {
        let (cx, writer) = (self.cx, &self.writers[0]);
        let table = &*writer.table;
        let all: Vec<&[Datum]> = rows.iter().map(Vec::as_slice).collect();
        let present = bulk::insert_entries(cx, table, arbiter, &all).await;
        let present = present.map_err(|failed| failed.error)?;
        cx.breathe(rows.len()).await;
        let mut present = present.into_iter().peekable();
        let mut number = 0;
        rows.retain(|_| {
            number += 1;
            present.next_if_eq(&(number - 1)).is_none()
        });
        let new: Vec<&[Datum]> = rows.iter().map(Vec::as_slice).collect();
        let others = bulk::insert_but(cx, table, Some(arbiter), &new).await;
        others.map_err(|failed| failed.error)?;
        if writer.parents.is_empty() {
            return Ok(rows);
        }
        let changes: Vec<Change> = rows.into_iter().map(inserted).collect();
        check_parents(cx, writer, Changes::few(&changes)).await?;
        Ok(changes
            .into_iter()
            .filter_map(|change| change.new)
            .collect())
    }

    /// Changes the rows that exist by formulas, without reading them.
    async fn change(
        &mut self,
        changes: &[FormulaChange],
        rows: &[Vec<Datum>],
    ) -> Result<Vec<Met>, OpError> {
        let table = &*self.writers[0].table;
        let mut met = vec![Met::Unknown; rows.len()];
        let mut keys = BTreeSet::new();
        let mut started: VecDeque<(usize, Vec<u8>, OpFuture<'_>)> = VecDeque::new();
        let mut waiting = rows.iter().enumerate();
        loop {
            while started.len() < WINDOW
                && let Some((at, row)) = waiting.next()
            {
                let key = entry_key(table, &table.primary, row);
                let key = checked_key(key, &table.primary.name)?;
                let bytes = key.bytes.clone();
                if self.touched.contains(&bytes) || !keys.insert(bytes.clone()) {
                    return Err(met_again().into());
                }
                if let Some(future) = started_change(self.cx, key, changes, row, self.slots)? {
                    started.push_back((at, bytes, future));
                }
            }
            let Some((at, bytes, future)) = started.pop_front() else {
                return Ok(met);
            };
            met[at] = met_by(future.await?);
            if matches!(met[at], Met::Changed) {
                self.touched.insert(bytes)?;
            }
            self.cx.breathe(1).await;
        }
    }

    /// The rows that rows of which nothing is known conflict with. Their entries are locked.
    async fn existing(
        &self,
        rows: &[Vec<Datum>],
        met: &[Met],
    ) -> Result<Vec<Option<Existing>>, OpError> {
        let table = &*self.writers[0].table;
        let whole = self.plan.update.is_some();
        let mut found: Vec<Option<Existing>> = vec![None; rows.len()];
        let mut started: VecDeque<Asked<'_>> = VecDeque::new();
        for (at, row) in rows.iter().enumerate() {
            if !matches!(met[at], Met::Unknown) {
                continue;
            }
            for number in &self.arbiters {
                if started.len() >= WINDOW {
                    self.settle(&mut started, &mut found).await?;
                }
                let asked = ask(self.cx, table, *number, row, whole);
                started.extend(asked.map(|(key, future)| (at, *number, key, future)));
            }
        }
        while !started.is_empty() {
            self.settle(&mut started, &mut found).await?;
        }
        if whole {
            self.read_rows(&mut found).await?;
        }
        Ok(found)
    }

    /// Waits for the first answer: the first arbiter in which a row has an entry decides.
    async fn settle(
        &self,
        started: &mut VecDeque<Asked<'_>>,
        found: &mut [Option<Existing>],
    ) -> Result<(), OpError> {
        let Some((at, number, key, future)) = started.pop_front() else {
            return Ok(());
        };
        let mut batch = rows_of(future.await)?;
        if batch.rows > 0 && found[at].is_none() {
            let key = found_key(&self.writers[0].table, number, key, batch.row(0));
            let whole = self.plan.update.is_some() && number == 0;
            let row = whole.then(|| core::mem::take(&mut batch.datums));
            found[at] = Some(Existing { key, row });
        }
        self.cx.breathe(1).await;
        Ok(())
    }

    /// Reads and locks the rows of which only the keys are known.
    async fn read_rows(&self, found: &mut [Option<Existing>]) -> Result<(), OpError> {
        let table = &*self.writers[0].table;
        let columns = table.columns.iter().enumerate();
        let projection = columns.map(|(i, column)| Expr::Column(i as u32, column.ty));
        let program = ProgramPlan::new(Body::Rows {
            filter: None,
            projection: projection.collect(),
        })
        .bind(&[]);
        let read = Read::Lock(LockMode::Exclusive);
        let wanted = found.iter_mut().flatten();
        let mut wanted = wanted.filter(|existing| existing.row.is_none());
        let mut started: VecDeque<(&mut Existing, OpFuture<'_>)> = VecDeque::new();
        loop {
            while started.len() < WINDOW
                && let Some(existing) = wanted.next()
            {
                let key = existing.key.clone();
                let future = get(self.cx, 0, table, key, read, program.clone());
                started.push_back((existing, future));
            }
            let Some((existing, future)) = started.pop_front() else {
                return Ok(());
            };
            let batch = rows_of(future.await)?;
            existing.row = (batch.rows > 0).then_some(batch.datums);
            self.cx.breathe(1).await;
        }
    }

    /// Decides row by row, and writes what was decided.
    async fn decide(
        &mut self,
        rows: Vec<Vec<Datum>>,
        met: &[Met],
        existing: Vec<Option<Existing>>,
    ) -> Result<Vec<Vec<Datum>>, OpError> {
        let count = rows.len();
        let mut decided = Decided::default();
        let mut entries = BTreeSet::new();
        let mut kept: Vec<Option<Vec<Datum>>> = Vec::new();
        let mut rest = rows.into_iter().zip(existing).enumerate();
        for (at, (row, existing)) in rest.by_ref() {
            kept.push(None);
            match (existing, met[at]) {
                (_, Met::Changed) => kept[at] = Some(row),
                (None, _) => {
                    if self.is_new(&row, &mut entries)? {
                        decided.new.push((at, inserted(row)));
                    }
                }
                (Some(existing), _) => {
                    let change = self.updated(existing, &row)?;
                    decided.updated.extend(change.map(|change| (at, change)));
                }
            }
            // Formulas move no keys, and those of the rows that follow are under way already.
            if self.touched.moved {
                break;
            }
        }
        let known = kept.len();
        let mut written = self.write(decided, kept).await?;
        if known < count {
            let rest = rest.map(|(_, (row, _))| row);
            written.extend(self.one_by_one(rest).await?);
        }
        Ok(written)
    }

    /// Whether a row that exists nowhere is the first one of the batch with its entries.
    fn is_new(
        &mut self,
        row: &[Datum],
        entries: &mut BTreeSet<(usize, Vec<u8>)>,
    ) -> Result<bool, SqlError> {
        let table = &*self.writers[0].table;
        let own = self.arbiters.iter();
        let own = own.filter(|number| has_entry(table_index(table, **number), row));
        let own = own.map(|number| {
            let key = entry_key(table, table_index(table, *number), row);
            (*number, key.bytes)
        });
        let own: Vec<_> = own.collect();
        if own.iter().any(|entry| entries.contains(entry)) {
            return match self.plan.update {
                Some(_) => Err(met_again()),
                None => Ok(false),
            };
        }
        entries.extend(own);
        if self.plan.update.is_some() {
            let key = entry_key(table, &table.primary, row);
            self.touched.insert(key.bytes)?;
        }
        Ok(true)
    }

    /// The change of an existing row.
    fn updated(&mut self, existing: Existing, row: &[Datum]) -> Result<Option<Change>, SqlError> {
        let Some(update) = &self.plan.update else {
            return Ok(None);
        };
        let Existing { key, row: old } = existing;
        if self.touched.contains(&key.bytes) {
            return Err(met_again());
        }
        let Some(old) = old else { return Ok(None) };
        let writer = &self.writers[0];
        let change = updated(
            self.cx,
            writer,
            (&update.assignments, update.condition.as_ref()),
            (key.bytes, old),
            row,
            self.slots,
            self.touched,
        )?;
        let table = &*writer.table;
        if let Some(Change {
            old: Some(old),
            new: Some(new),
        }) = &change
        {
            let mut numbers = self.arbiters.iter();
            let moves =
                |number: &usize| entry_differs(table, table_index(table, *number), old, new);
            self.touched.moved |= numbers.any(moves);
        }
        Ok(change)
    }

    /// Writes what was decided; gives all rows that were written in their order.
    async fn write(
        &self,
        decided: Decided,
        mut written: Vec<Option<Vec<Datum>>>,
    ) -> Result<Vec<Vec<Datum>>, OpError> {
        for list in [decided.updated, decided.new] {
            let (places, changes): (Vec<usize>, Vec<Change>) = list.into_iter().unzip();
            if changes.is_empty() {
                continue;
            }
            let some = Changes::few(&changes);
            apply(self.cx, self.writers, 0, some, self.slots).await?;
            for (at, change) in places.into_iter().zip(changes) {
                written[at] = change.new;
            }
        }
        Ok(written.into_iter().flatten().collect())
    }
}

fn inserted(row: Vec<Datum>) -> Change {
    Change {
        old: None,
        new: Some(row),
    }
}

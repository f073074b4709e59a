//! Samples of the rows of a shard: what is in the columns of its tables, for the planner.
//!
//! A table is looked through in slices, a few rows a turn, when it is asked for (ANALYZE), and when
//! row counts are asked for and it has changed by [`CHANGED`] since the last time. What is found is
//! in memory only; after a restart it is found again.

use crate::core::Core;
use crate::show_rows::{is_counted, tables_of};
use base::{Datum, IndexId, RowBatch, RowRef, Slot, TableId, Ts, Type};
use catalog::Table;
use core::ops::ControlFlow;
use statistics::{Digest, Sampler, WIRE_WIDTH};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use store::Window;

/// Part of the rows of a table of which that many are new, or gone, when it is looked at again.
const CHANGED: u64 = 5;
/// Rows from which on a table is looked at without being asked for.
const ROWS_MIN: u64 = 200;
/// Rows that are looked at in one turn, and rows that are passed by.
const SLICE_LOOKED_AT: usize = 250;
const SLICE_PASSED: usize = 2_000;
/// A longer row counts as several.
const ROW_BYTES: usize = 4_096;
/// Bytes of digests that a shard tells of a database; further columns are left out.
const TOLD_BYTES: usize = 4 << 20;
/// Columns of a table that are looked at.
const COLUMNS_MAX: usize = 100;

/// What is known, and what is still to be looked at.
#[derive(Default)]
pub(crate) struct Sampling {
    waiting: VecDeque<TableId>,
    job: Option<Job>,
    found: BTreeMap<TableId, Found>,
}

/// What was found in a table.
struct Found {
    /// Rows then.
    rows: u64,
    /// How often it was looked at.
    version: u64,
    /// Catalog version at which the table had last changed.
    schema: u64,
    digests: Vec<Digest>,
}

/// A table that is being looked through.
struct Job {
    table: TableId,
    schema: u64,
    index: IndexId,
    types: BTreeMap<u16, Type>,
    rows: u64,
    sampler: Sampler,
    slot: Slot,
    /// The last key of the slot that was visited.
    after: Option<Vec<u8>>,
}

impl Sampling {
    /// Whether there is something to look at.
    pub(crate) fn is_busy(&self) -> bool {
        self.job.is_some() || !self.waiting.is_empty()
    }

    /// How often a table was looked at.
    pub(crate) fn version(&self, table: TableId) -> u64 {
        self.found.get(&table).map_or(0, |found| found.version)
    }

    /// Wants a table to be looked at, once.
    fn want(&mut self, table: TableId) {
        let is_now = self.job.as_ref().is_some_and(|job| job.table == table);
        if !is_now && !self.waiting.contains(&table) {
            self.waiting.push_back(table);
        }
    }
}

impl Core {
    /// Wants the tables of a database to be looked at that have changed much, or `all` of them.
    pub(crate) fn want_samples(&mut self, database: &str, all: bool) {
        let mut wanted = Vec::new();
        for table in tables_of(self, database).filter(|table| is_counted(self, table)) {
            let rows = self.store.rows_about(table.primary.id) as u64;
            let known = self.sampling.found.get(&table.id);
            let changed = match known {
                None => rows >= ROWS_MIN,
                Some(known) => {
                    let share = rows.abs_diff(known.rows) * CHANGED;
                    share > known.rows.max(ROWS_MIN) || known.schema != table.changed
                }
            };
            if all || changed {
                wanted.push(table.id);
            }
        }
        wanted
            .into_iter()
            .for_each(|table| self.sampling.want(table));
    }

    /// Looks at some rows.
    pub(crate) fn sample(&mut self) {
        if !self.sampling.is_busy() {
            return;
        }
        let mut job = match self.sampling.job.take() {
            Some(job) => job,
            None => {
                let next = self.sampling.waiting.pop_front();
                let Some(job) = next.and_then(|table| self.sampling_job(table)) else {
                    return;
                };
                job
            }
        };
        let (mut looked_at, mut passed) = (0, 0);
        while looked_at < SLICE_LOOKED_AT && passed < SLICE_PASSED {
            let Some(slot) = self.store.next_slot(job.index, job.slot) else {
                self.sampled(job);
                return;
            };
            if slot != job.slot {
                (job.slot, job.after) = (slot, None);
            }
            let after = job.after.take();
            let window = Window {
                low: after.as_deref().unwrap_or_default(),
                after: after.is_some(),
                ..Window::all()
            };
            let mut last = None;
            let (sampler, types) = (&mut job.sampler, &job.types);
            let end = self
                .store
                .scan_keys(job.index, slot, window, Ts::MAX, &mut |key, row, _| {
                    passed += 1;
                    if let Some(row) = row
                        && sampler.wants()
                    {
                        looked_at += 1 + row.len() / ROW_BYTES;
                        look_at(sampler, types, row);
                    }
                    if looked_at >= SLICE_LOOKED_AT || passed >= SLICE_PASSED {
                        last = Some(key.to_vec());
                        return ControlFlow::Break(());
                    }
                    ControlFlow::Continue(())
                });
            match end {
                ControlFlow::Break(()) => job.after = last,
                ControlFlow::Continue(()) => match slot.0.checked_add(1) {
                    Some(next) => job.slot = Slot(next),
                    None => {
                        self.sampled(job);
                        return;
                    }
                },
            }
        }
        self.counters.units += (looked_at + passed / 8) as u64;
        self.sampling.job = Some(job);
    }

    /// The job for a table; `None`: it is gone.
    fn sampling_job(&self, id: TableId) -> Option<Job> {
        let mut databases = self.catalog.databases.values();
        let table = databases.find_map(|database| {
            let mut tables = database.tables.values();
            tables.find(|table| table.id == id)
        })?;
        let types = types_of(table);
        let rows = self.store.rows_about(table.primary.id) as u64;
        Some(Job {
            table: id,
            schema: table.changed,
            index: table.primary.id,
            sampler: Sampler::new(types.keys().copied(), rows),
            types,
            rows,
            slot: Slot(0),
            after: None,
        })
    }

    /// Keeps what was found.
    fn sampled(&mut self, job: Job) {
        let version = self.sampling.version(job.table) + 1;
        let found = Found {
            rows: job.rows,
            version,
            schema: job.schema,
            digests: job.sampler.finish(),
        };
        self.sampling.found.insert(job.table, found);
        let databases = self.catalog.databases.values();
        let tables = databases.flat_map(|database| database.tables.values());
        let there: BTreeSet<TableId> = tables.map(|table| table.id).collect();
        self.sampling.found.retain(|table, _| there.contains(table));
    }
}

/// The columns of a table that are looked at.
fn types_of(table: &Table) -> BTreeMap<u16, Type> {
    let columns = (0u16..).zip(&table.columns);
    let shown = columns.filter(|(_, column)| !column.hidden);
    let types = shown.map(|(number, column)| (number, column.ty));
    types.take(COLUMNS_MAX).collect()
}

fn look_at(sampler: &mut Sampler, types: &BTreeMap<u16, Type>, row: &[u8]) {
    let row = RowRef::new(row);
    sampler.add(&|column| {
        let ty = types.get(&column).copied().unwrap_or(Type::Unknown);
        row.col(usize::from(column), ty).unwrap_or_default()
    });
}

/// (table, column, what, value, number): what the shard has found, and a row of NULLs.
pub(crate) fn values(core: &Core, database: &str) -> RowBatch {
    let mut batch = RowBatch::new(WIRE_WIDTH);
    let mut bytes = 0;
    for table in tables_of(core, database) {
        // Columns may have other places and types since.
        let found = core.sampling.found.get(&table.id);
        let found = found.filter(|found| found.schema == table.changed);
        for digest in found.iter().flat_map(|found| &found.digests) {
            bytes += digest.size_bytes();
            if bytes <= TOLD_BYTES {
                digest.push_to(table.id, &mut batch);
            }
        }
    }
    batch.push((0..WIRE_WIDTH).map(|_| Datum::Null));
    batch
}

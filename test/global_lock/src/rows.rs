//! Operations on the rows of the guard: everything in one step, because the lock is held.

use crate::Context;
use base::{Key, RowBatch, Slot, Ts};
use journal::Writes;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use txn::bulk::Wanted;
use txn::{Modified, Op, OpError, OpResult, Program, Read, Savepoint, ScanOp, Slots, Write};

/// What one transaction has written, and had written at each savepoint.
#[derive(Debug, Default)]
pub(crate) struct WriteSet(BTreeMap<Key, Write>, Vec<(u32, BTreeMap<Key, Write>)>);

impl WriteSet {
    pub(crate) fn take(&mut self) -> Writes {
        std::mem::take(&mut self.0).into_iter().collect()
    }

    fn add(&mut self, key: Key, write: Write) -> Result<(), OpError> {
        let both = match self.0.remove(&key) {
            None => Some(write),
            Some(before) => before.then(write).map_err(OpError::Sql)?,
        };
        if let Some(write) = both {
            self.0.insert(key, write);
        }
        Ok(())
    }

    /// The row as the transaction sees it at `at`.
    fn row(&self, cx: &Context<'_>, key: &Key, at: Ts) -> Result<Option<Vec<u8>>, OpError> {
        let stored = cx.store.get(key, at).map(|version| version.value.to_vec());
        match (self.0.get(key), stored) {
            (None, stored) => Ok(stored),
            (Some(Write::Insert(row) | Write::Put(row)), _) => Ok(Some(row.clone())),
            (Some(Write::Delete), _) | (Some(Write::Formula(_)), None) => Ok(None),
            (Some(Write::Formula(formula)), Some(row)) => {
                let mut out = Vec::new();
                formula.fold(&row, &mut out).map_err(OpError::Sql)?;
                Ok(Some(out))
            }
        }
    }

    /// Runs an operation of the transaction that holds the lock.
    pub(crate) fn run(&mut self, cx: &mut Context<'_>, op: Op) -> Result<OpResult, OpError> {
        match op {
            Op::Get { key, read, program } => {
                let at = moment(cx, Wanted::Row(&key), read)?;
                let mut batch = RowBatch::new(width(cx, &program));
                if let Some(row) = self.row(cx, &key, at)? {
                    let program = live(cx, &program);
                    program.point(&row, &mut batch).map_err(OpError::Sql)?;
                }
                let resume = None;
                Ok(OpResult::Rows { batch, resume })
            }
            Op::Modify { key, program } => self.modify(cx, key, &program),
            Op::Insert { key, row } => match self.row(cx, &key, Ts::MAX)? {
                Some(_) => Ok(OpResult::Exists),
                None => {
                    self.add(key, Write::Insert(row.into()))?;
                    Ok(OpResult::Done)
                }
            },
            Op::InsertMany(rows) => {
                let mut exist = Vec::new();
                for (at, row) in rows.iter().enumerate() {
                    let key = Key::new(rows.index(), row.slot, row.key.to_vec());
                    match self.row(cx, &key, Ts::MAX)? {
                        Some(_) => exist.push(at as u32),
                        None => self.add(key, Write::Insert(row.row.to_vec()))?,
                    }
                }
                match exist.is_empty() {
                    true => Ok(OpResult::Done),
                    false => Ok(OpResult::SomeExist(exist)),
                }
            }
            Op::Formula { key, formula } => {
                let found = self.row(cx, &key, Ts::MAX)?;
                if let Some(row) = &found {
                    formula.fold(row, &mut Vec::new()).map_err(OpError::Sql)?;
                    self.add(key, Write::Formula(formula))?;
                }
                let (found, written) = (found.is_some(), found.is_some());
                let returning = RowBatch::new(0);
                Ok(OpResult::Modified {
                    found,
                    written,
                    returning,
                })
            }
            Op::Write { key, write } => {
                self.add(key, write)?;
                Ok(OpResult::Done)
            }
            Op::Scan(scan) => self.scan(cx, &scan),
            Op::Clock(snapshot) => {
                cx.clock.merge(snapshot.at);
                Ok(OpResult::Clock(cx.clock.last()))
            }
            Op::Savepoint(Savepoint::Set { number, .. }) => {
                self.1.push((number, self.0.clone()));
                Ok(OpResult::Done)
            }
            Op::Savepoint(Savepoint::Renew { .. }) => Ok(OpResult::Done),
            Op::Savepoint(Savepoint::RollBackTo(number)) => {
                self.1.retain(|(other, _)| *other <= number);
                let then = self.1.last().filter(|(other, _)| *other == number);
                self.0 = then.map_or_else(BTreeMap::new, |(_, writes)| writes.clone());
                Ok(OpResult::Done)
            }
        }
    }

    fn modify(
        &mut self,
        cx: &mut Context<'_>,
        key: Key,
        program: &Program,
    ) -> Result<OpResult, OpError> {
        let mut returning = RowBatch::new(width(cx, program));
        let row = self.row(cx, &key, Ts::MAX)?;
        let mut written = true;
        if let Some(row) = &row {
            let modified = live(cx, program).modify(row, &mut returning);
            match modified.map_err(OpError::Sql)? {
                Modified::Skipped => written = false,
                Modified::Put(row) => self.add(key, Write::Put(row))?,
                Modified::Formula(formula) => {
                    let mut folded = Vec::new();
                    formula.fold(row, &mut folded).map_err(OpError::Sql)?;
                    self.add(key, Write::Put(folded))?;
                }
                Modified::Delete => self.add(key, Write::Delete)?,
            }
        }
        let found = row.is_some();
        Ok(OpResult::Modified {
            found,
            written: found && written,
            returning,
        })
    }

    /// All rows of the scan in one batch.
    fn scan(&self, cx: &mut Context<'_>, scan: &ScanOp) -> Result<OpResult, OpError> {
        let wanted = Wanted::Rows(scan.index, scan.slot(), &scan.range);
        let at = moment(cx, wanted, scan.read)?;
        let program = live(cx, &scan.program);
        let mut batch = RowBatch::new(program.width());
        let mut task = program.task();
        for key in self.keys(cx, scan, at) {
            let Some(row) = self.row(cx, &key, at)? else {
                continue;
            };
            match &mut task {
                Some(task) => task.row(&key.bytes, &row).map_err(OpError::Sql)?,
                None => {
                    program.point(&row, &mut batch).map_err(OpError::Sql)?;
                    if batch.rows as u64 >= scan.row_limit {
                        break;
                    }
                }
            }
        }
        if let Some(task) = task {
            task.finish(&mut batch).map_err(OpError::Sql)?;
        }
        let resume = None;
        Ok(OpResult::Rows { batch, resume })
    }

    /// Keys of rows that may be there, in the order of the scan.
    fn keys(&self, cx: &Context<'_>, scan: &ScanOp, at: Ts) -> Vec<Key> {
        let mut keys = BTreeSet::new();
        let mut from = Slot(0);
        while let Some(slot) = cx.store.next_slot(scan.index, from) {
            let window = store::Window::of(&scan.range, false);
            let _ = cx
                .store
                .scan_next(scan.index, slot, window, at, &mut |key, _, _| {
                    keys.insert(Key::new(scan.index, slot, key.to_vec()));
                    ControlFlow::Continue(())
                });
            from = Slot(slot.0 + 1);
        }
        let own = self.0.keys().filter(|key| key.index == scan.index);
        keys.extend(own.filter(|key| scan.range.contains(&key.bytes)).cloned());
        let wanted = |key: &Key| match scan.slots {
            Slots::All => true,
            Slots::One(slot) => key.slot == slot,
        };
        let mut keys: Vec<Key> = keys.into_iter().filter(wanted).collect();
        if scan.reverse {
            keys.reverse();
        }
        keys
    }
}

/// The moment that an operation reads. Later commits lie above it.
fn moment(cx: &mut Context<'_>, wanted: Wanted<'_>, read: Read) -> Result<Ts, OpError> {
    let Read::Snapshot(snapshot) = read else {
        return Ok(Ts::MAX);
    };
    cx.admit_snapshot(wanted, snapshot.at)
        .map_err(OpError::Aborted)?;
    cx.clock.merge(snapshot.at);
    // All that was answered lies at or below the clock of the guard.
    let misses = snapshot.bound != Ts::ZERO && cx.clock.last() > snapshot.at;
    match misses {
        true => Err(OpError::Raise(cx.clock.last())),
        false => Ok(snapshot.at),
    }
}

fn live(cx: &Context<'_>, program: &Program) -> std::sync::Arc<dyn txn::RowProgram> {
    let live = program.live(cx.decode);
    live.expect("programs of our own nodes decode")
}

fn width(cx: &Context<'_>, program: &Program) -> usize {
    live(cx, program).width()
}

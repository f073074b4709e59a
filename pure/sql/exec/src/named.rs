//! Queries of WITH: those that are computed once for a statement, and recursive ones.

use super::filter::retain;
use super::long::Long;
use super::parts::Deferred;
use super::source::{RowList, Rows, Source, append_rows, open};
use super::{BATCH_BYTES, BATCH_ROWS, Charge, Cx, Slots};
use crate::port::Port;
use base::{Datum, RowBatch};
use core::cell::{Cell, OnceCell, RefCell};
use expr::hashed::Groups;
use expr::rows::datum_heap_bytes;
use plan::step::{Step, StepOp};
use std::collections::BTreeMap;
use std::rc::Rc;
use txn::OpError;

/// Rows that several steps of a statement read. Most statements have none.
pub(super) struct Kept<'a> {
    port: &'a dyn Port,
    rows: OnceCell<Box<KeptRows>>,
}

#[derive(Default)]
struct KeptRows {
    /// Rows of the queries that are computed once, by their numbers.
    shared: RefCell<BTreeMap<u32, Rc<RowList>>>,
    /// What they are charged.
    bytes: Cell<i64>,
    /// The rows that the last round of a recursive query has found, by the number of its run.
    working: RefCell<BTreeMap<i64, Rc<RowList>>>,
    /// Runs so far.
    runs: Cell<i64>,
    /// The rows that parts of the statement have returned.
    returned: RefCell<BTreeMap<usize, Rc<RowList>>>,
    /// What they change.
    deferred: RefCell<Vec<Deferred>>,
    /// Which part changes a row: its table and key.
    claims: RefCell<BTreeMap<(u32, Vec<u8>), usize>>,
}

impl<'a> Kept<'a> {
    pub(super) fn new(port: &'a dyn Port) -> Kept<'a> {
        Kept {
            port,
            rows: OnceCell::new(),
        }
    }

    fn rows(&self) -> &KeptRows {
        self.rows.get_or_init(Box::default)
    }

    /// The rows that a part has returned, if it has run.
    pub(super) fn returned(&self, part: usize) -> Option<Rc<RowList>> {
        self.rows().returned.borrow().get(&part).cloned()
    }

    pub(super) fn keep_returned(&self, part: usize, rows: Rc<RowList>) {
        self.rows().returned.borrow_mut().insert(part, rows);
    }

    /// The statement holds what was charged, to its end.
    pub(super) fn keep_charge(&self, charge: &mut Charge<'_>) {
        let bytes = &self.rows().bytes;
        bytes.set(bytes.get() + core::mem::take(&mut charge.bytes));
    }

    /// Keeps changes for the end of the statement.
    pub(super) fn defer(&self, deferred: Deferred) {
        self.rows().deferred.borrow_mut().push(deferred);
    }

    /// The changes that were kept, in the order in which their parts ran.
    pub(super) fn take_deferred(&self) -> DeferredList<'a> {
        DeferredList {
            port: self.port,
            list: self.rows().deferred.take(),
        }
    }

    pub(super) fn claims(&self) -> &RefCell<BTreeMap<(u32, Vec<u8>), usize>> {
        &self.rows().claims
    }

    /// Rows for the steps that read those of a round.
    pub(super) fn begin_run(&self, rows: RowList) -> Run<'_, 'a> {
        let runs = &self.rows().runs;
        runs.set(runs.get() + 1);
        let number = runs.get();
        let mut working = self.rows().working.borrow_mut();
        working.insert(number, Rc::new(rows));
        Run { kept: self, number }
    }
}

/// Rows that are there as long as this is.
pub(super) struct Run<'k, 'a> {
    kept: &'k Kept<'a>,
    pub(super) number: i64,
}

impl Drop for Run<'_, '_> {
    fn drop(&mut self) {
        let rows = self.kept.rows().working.borrow_mut().remove(&self.number);
        if let Some(Ok(rows)) = rows.map(Rc::try_unwrap) {
            drop(Long::new(self.kept.port, rows));
        }
    }
}

/// Changes that are freed bit by bit.
pub(super) struct DeferredList<'a> {
    port: &'a dyn Port,
    pub(super) list: Vec<Deferred>,
}

impl Drop for DeferredList<'_> {
    fn drop(&mut self) {
        for Deferred { changes, .. } in self.list.drain(..) {
            drop(Long::new(self.port, changes));
        }
    }
}

impl Drop for Kept<'_> {
    fn drop(&mut self) {
        let Some(kept) = self.rows.take() else {
            return;
        };
        let shared = kept.shared.take().into_values();
        for rows in shared.chain(kept.returned.take().into_values()) {
            if let Ok(rows) = Rc::try_unwrap(rows) {
                drop(Long::new(self.port, rows));
            }
        }
        let (port, list) = (self.port, kept.deferred.take());
        drop(DeferredList { port, list });
        drop(Long::new(self.port, kept.claims.take()));
        let given_back = self.port.charge(-kept.bytes.get());
        debug_assert!(given_back.is_ok(), "giving memory back cannot fail");
    }
}

/// Batches of rows that are in memory.
pub(super) struct Reader {
    pub(super) rows: Rc<RowList>,
    pub(super) at: usize,
}

impl Reader {
    pub(super) fn next(&mut self, width: u32) -> Option<RowBatch> {
        let mut out = RowBatch::new(width as usize);
        let mut bytes = 0;
        while let Some(row) = self.rows.get(self.at)
            && (out.rows as usize) < BATCH_ROWS
            && bytes < BATCH_BYTES
        {
            self.at += 1;
            bytes += row.iter().map(datum_heap_bytes).sum::<usize>();
            out.datums.extend_from_slice(row);
            out.rows += 1;
        }
        (out.rows > 0).then_some(out)
    }
}

/// A query that is computed when the first of its readers asks for rows.
pub(super) struct SharedRows<'a> {
    cx: &'a Cx<'a>,
    id: u32,
    query: &'a Step,
    slots: Slots,
    reader: Option<Reader>,
}

impl<'a> SharedRows<'a> {
    pub(super) fn new(cx: &'a Cx<'a>, id: u32, query: &'a Step, slots: &Slots) -> SharedRows<'a> {
        let (slots, reader) = (slots.clone(), None);
        SharedRows {
            cx,
            id,
            query,
            slots,
            reader,
        }
    }

    async fn rows(&self) -> Result<Rc<RowList>, OpError> {
        let kept = self.cx.kept.rows();
        let known = kept.shared.borrow().get(&self.id).cloned();
        if let Some(rows) = known {
            return Ok(rows);
        }
        let mut source = open(self.cx, self.query, &self.slots);
        let mut rows = Long::new(self.cx.port, RowList::new());
        let mut charge = Charge::new(self.cx.port);
        while let Some(batch) = source.next().await? {
            append_rows(batch, &mut rows, &mut charge)?;
        }
        // From here on the statement holds them.
        kept.bytes.set(kept.bytes.get() + charge.bytes);
        charge.bytes = 0;
        let rows = Rc::new(core::mem::take(&mut *rows));
        kept.shared.borrow_mut().insert(self.id, rows.clone());
        Ok(rows)
    }
}

impl Rows for SharedRows<'_> {
    async fn pull(&mut self) -> Result<Option<RowBatch>, OpError> {
        if self.reader.is_none() {
            let rows = self.rows().await?;
            self.reader = Some(Reader { rows, at: 0 });
        }
        let batch = self
            .reader
            .as_mut()
            .and_then(|reader| reader.next(self.query.width));
        let count = batch.as_ref().map_or(0, |batch| batch.rows as usize);
        self.cx.breathe(count).await;
        Ok(batch)
    }
}

/// A recursive query: round by round, until one finds no new row.
pub(super) struct RecursiveRows<'a> {
    cx: &'a Cx<'a>,
    /// What each round does.
    step: &'a Step,
    /// The rows of the present round; `None`: it has ended.
    source: Option<Source<'a>>,
    /// With the number of this run in its slot.
    slots: Slots,
    run: i64,
    /// What this round has found so far.
    found: Long<'a, RowList>,
    found_charge: Charge<'a>,
    /// For what the round reads.
    working_charge: Charge<'a>,
    /// All rows so far, if equal ones count once.
    seen: Option<Long<'a, Groups<()>>>,
    seen_charge: Charge<'a>,
}

impl<'a> RecursiveRows<'a> {
    pub(super) fn new(cx: &'a Cx<'a>, step: &'a Step, slots: &Slots) -> RecursiveRows<'a> {
        let StepOp::Recursive {
            slot,
            distinct,
            base,
            step,
        } = &step.op
        else {
            unreachable!("opened for a recursive query");
        };
        let run = cx.kept.rows().runs.get() + 1;
        cx.kept.rows().runs.set(run);
        let mut values = (**slots).clone();
        values[*slot as usize] = Datum::Int(run);
        let slots = Rc::new(values);
        RecursiveRows {
            cx,
            step,
            source: Some(open(cx, base, &slots)),
            slots,
            run,
            found: Long::new(cx.port, RowList::new()),
            found_charge: Charge::new(cx.port),
            working_charge: Charge::new(cx.port),
            seen: distinct.then(|| Long::new(cx.port, Groups::of_width(base.width as usize, 0))),
            seen_charge: Charge::new(cx.port),
        }
    }

    /// What was found is what the next round reads.
    fn turn(&mut self) {
        self.source = None;
        let found = Rc::new(core::mem::take(&mut *self.found));
        let mut working = self.cx.kept.rows().working.borrow_mut();
        if let Some(Ok(old)) = working.insert(self.run, found).map(Rc::try_unwrap) {
            drop(Long::new(self.cx.port, old));
        }
        let found_charge = core::mem::replace(&mut self.found_charge, Charge::new(self.cx.port));
        self.working_charge = found_charge;
    }
}

impl Rows for RecursiveRows<'_> {
    async fn pull(&mut self) -> Result<Option<RowBatch>, OpError> {
        loop {
            let Some(source) = &mut self.source else {
                return Ok(None);
            };
            let Some(mut batch) = source.next().await? else {
                if self.found.is_empty() {
                    self.source = None;
                    return Ok(None);
                }
                self.turn();
                self.source = Some(open(self.cx, self.step, &self.slots));
                self.cx.breathe(1).await;
                continue;
            };
            if let Some(seen) = &mut self.seen {
                let charge = &mut self.seen_charge;
                retain(&mut batch, |row| {
                    let (_, grown) = seen.enter_copy(row, || []);
                    if grown > 0 {
                        charge.add(grown)?;
                    }
                    Ok(grown > 0)
                })?;
            }
            append_rows(batch.clone(), &mut self.found, &mut self.found_charge)?;
            self.cx.breathe(batch.rows as usize).await;
            if batch.rows > 0 {
                return Ok(Some(batch));
            }
        }
    }
}

impl Drop for RecursiveRows<'_> {
    fn drop(&mut self) {
        self.source = None;
        let working = self.cx.kept.rows().working.borrow_mut().remove(&self.run);
        if let Some(Ok(rows)) = working.map(Rc::try_unwrap) {
            drop(Long::new(self.cx.port, rows));
        }
    }
}

/// The rows of the last round of a recursive query.
pub(super) struct WorkingRows<'a> {
    cx: &'a Cx<'a>,
    run: i64,
    width: u32,
    reader: Option<Reader>,
}

impl<'a> WorkingRows<'a> {
    pub(super) fn new(cx: &'a Cx<'a>, slot: u32, width: u32, slots: &Slots) -> WorkingRows<'a> {
        let run = slots[slot as usize].as_int().unwrap_or(0);
        WorkingRows {
            cx,
            run,
            width,
            reader: None,
        }
    }
}

impl Rows for WorkingRows<'_> {
    async fn pull(&mut self) -> Result<Option<RowBatch>, OpError> {
        if self.reader.is_none() {
            let working = self.cx.kept.rows().working.borrow().get(&self.run).cloned();
            let rows = working.unwrap_or_default();
            self.reader = Some(Reader { rows, at: 0 });
        }
        let width = self.width;
        Ok(self.reader.as_mut().and_then(|reader| reader.next(width)))
    }
}

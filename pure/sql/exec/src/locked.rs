//! The step that locks rows at once or not at all (NOWAIT, SKIP LOCKED).
//!
//! Its input finds rows in a snapshot. Each is locked and read again, in the order of the input,
//! and no more than are wanted: a row that is not given is not locked, so it is left to others.

use super::request::get;
use super::scan::{primary_key, rows_of};
use super::source::{Rows, Source, open};
use super::{BATCH_BYTES, BATCH_ROWS, Cx, Slots, WINDOW};
use crate::port::OpFuture;
use base::{Key, RowBatch, SqlError, SqlState};
use expr::rows::datums_heap_bytes;
use expr::{Expr, eval_bool, list};
use plan::step::{Scan, Step, StepOp};
use std::borrow::Cow;
use std::collections::VecDeque;
use txn::{OpError, Program, Read};

pub(super) struct LockedRows<'a> {
    cx: &'a Cx<'a>,
    step: u32,
    /// `None`: at its end.
    input: Option<Source<'a>>,
    scan: &'a Scan,
    /// The first column of the primary key in rows of the input.
    first: usize,
    filter: Option<Cow<'a, Expr>>,
    skips: bool,
    slots: Slots,
    state: Option<State<'a>>,
}

/// Rows that are being locked.
struct State<'a> {
    read: Read,
    program: Program,
    waiting: VecDeque<Key>,
    /// Never more than are wanted.
    started: VecDeque<OpFuture<'a>>,
    /// Rows that are still wanted.
    wanted: u64,
}

impl<'a> LockedRows<'a> {
    pub(super) fn new(cx: &'a Cx<'a>, step: &'a Step, slots: &Slots) -> LockedRows<'a> {
        let StepOp::Locked {
            input,
            scan,
            first,
            filter,
            skips,
        } = &step.op
        else {
            unreachable!("opened for rows that are locked")
        };
        let filter = filter.as_ref().map(|filter| {
            let mut filter = Cow::Borrowed(filter);
            if list::has_open_lists(&filter) {
                list::with_constants(filter.to_mut(), &cx.env(slots));
            }
            filter
        });
        LockedRows {
            cx,
            step: step.id,
            input: Some(open(cx, input, slots)),
            scan,
            first: *first as usize,
            filter,
            skips: *skips,
            slots: slots.clone(),
            state: None,
        }
    }

    fn start(&self) -> Result<State<'a>, SqlError> {
        let wanted = match &self.scan.limit {
            None => u64::MAX,
            Some(limit) => {
                let value = self.cx.value(limit, &self.slots)?.as_int();
                value.map_or(u64::MAX, |count| u64::try_from(count).unwrap_or(0))
            }
        };
        let mode = self.scan.lock.expect("its rows are locked");
        Ok(State {
            read: self.cx.port.try_lock(mode, self.skips),
            program: self.scan.program.bind(&self.slots),
            waiting: VecDeque::new(),
            started: VecDeque::new(),
            wanted,
        })
    }

    fn passes(&self, batch: &RowBatch) -> Result<bool, SqlError> {
        let Some(filter) = &self.filter else {
            return Ok(true);
        };
        let env = self.cx.env(&self.slots);
        Ok(eval_bool(filter, &batch.row(0), &env)? == Some(true))
    }

    /// Fetches the keys of further rows; false at the end of the input.
    async fn find(&mut self, waiting: &mut VecDeque<Key>) -> Result<bool, OpError> {
        let Some(input) = &mut self.input else {
            return Ok(false);
        };
        let Some(batch) = input.next().await? else {
            self.input = None;
            return Ok(false);
        };
        let (table, first) = (&self.scan.table, self.first);
        waiting.extend(batch.iter().map(|row| primary_key(table, &row[first..])));
        Ok(true)
    }

    async fn fill(&mut self, state: &mut State<'a>) -> Result<RowBatch, OpError> {
        let mut out = RowBatch::new(self.scan.width as usize);
        let mut bytes = 0;
        while state.wanted > 0 && (out.rows as usize) < BATCH_ROWS && bytes < BATCH_BYTES {
            let window = state.wanted.min(WINDOW as u64) as usize;
            while state.started.len() < window {
                let Some(key) = state.waiting.pop_front() else {
                    if !self.find(&mut state.waiting).await? {
                        break;
                    }
                    continue;
                };
                let (read, program) = (state.read, state.program.clone());
                let future = get(self.cx, self.step, &self.scan.table, key, read, program);
                state.started.push_back(future);
            }
            let Some(future) = state.started.pop_front() else {
                break;
            };
            let answer = future.await.map_err(|error| named(error, self.scan));
            let mut batch = rows_of(answer)?;
            self.cx.breathe(1).await;
            if batch.rows == 0 || !self.passes(&batch)? {
                continue;
            }
            state.wanted -= 1;
            out.rows += 1;
            bytes += datums_heap_bytes(&batch.datums);
            out.datums.append(&mut batch.datums);
        }
        Ok(out)
    }
}

impl Rows for LockedRows<'_> {
    async fn pull(&mut self) -> Result<Option<RowBatch>, OpError> {
        let mut state = match self.state.take() {
            Some(state) => state,
            None => self.start()?,
        };
        let batch = self.fill(&mut state).await?;
        self.state = Some(state);
        Ok((batch.rows > 0).then_some(batch))
    }
}

/// The error about a row that is locked names its table.
fn named(error: OpError, scan: &Scan) -> OpError {
    match error {
        OpError::Sql(error) if error.state() == SqlState::LOCK_NOT_AVAILABLE => {
            let table = &scan.table.name;
            let message = format!("could not obtain lock on row in relation \"{table}\"");
            OpError::Sql(SqlError::new(SqlState::LOCK_NOT_AVAILABLE, message))
        }
        error => error,
    }
}

//! Reading tables: point reads in parallel, ranges on one or all shards, secondary indexes.

use super::merged::Merged;
use super::request::{Target, get, scans, start_scan, targets};
use super::source::Rows;
use super::{BATCH_BYTES, BATCH_ROWS, Charge, Cx, Slots, WINDOW};
use crate::port::{OpAnswer, OpFuture};
use base::key::{Key, encode_datum, slot_of};
use base::{Datum, RowBatch, ShardId, SqlError};
use catalog::{Index, Table};
use core::future::{Future, poll_fn};
use core::pin::Pin;
use core::task::{Context, Poll};
use expr::program::{Body, ProgramPlan};
use expr::rows::datums_heap_bytes;
use expr::{Columns, Expr, NoColumns, eval_bool};
use plan::step::{Scan, Step, StepOp};
use std::collections::VecDeque;
use txn::{LockMode, OpError, OpResult, Program, Read, ScanOp};

/// How a scan reads rows.
pub(super) fn read_mode(cx: &Cx<'_>, lock: Option<LockMode>) -> Read {
    match lock {
        None => cx.port.read(),
        Some(mode) => cx.port.read_locking(mode),
    }
}

/// How the rows of a scan are read.
fn scan_mode(cx: &Cx<'_>, scan: &Scan) -> Read {
    match scan.lock {
        Some(mode) if scan.newest => Read::Lock(mode),
        None if scan.candidates => cx.port.read_snapshot(),
        lock => read_mode(cx, lock),
    }
}

/// How the index entries of a scan are read: the rows behind them are locked, and checked again.
fn entry_mode(cx: &Cx<'_>, scan: &Scan) -> Read {
    if scan.newest {
        Read::Lock(LockMode::Shared)
    } else if scan.candidates {
        cx.port.read_snapshot()
    } else {
        cx.port.read()
    }
}

/// The rows of an answer to a reading operation.
pub(super) fn rows_of(answer: OpAnswer) -> Result<RowBatch, OpError> {
    match answer? {
        OpResult::Rows { batch, .. } => Ok(batch),
        other => panic!("a read was answered by {other:?}"),
    }
}

/// A scan as a source of rows.
pub(super) struct ScanRows<'a> {
    cx: &'a Cx<'a>,
    step: u32,
    scan: &'a Scan,
    slots: Slots,
    state: State<'a>,
}

enum State<'a> {
    New,
    /// Single rows by key, in order.
    Points(Points<'a>),
    /// Ranges of the primary index.
    Ranges(Ranges<'a>),
    /// Ranges of a secondary index, then the rows by key.
    Entries {
        entries: Ranges<'a>,
        points: Points<'a>,
    },
    /// The same in the order of a secondary index's keys.
    Merged {
        entries: Merged,
        points: Points<'a>,
    },
}

/// Single-row reads under way, answered in order.
struct Points<'a> {
    read: Read,
    program: Program,
    waiting: VecDeque<Key>,
    started: VecDeque<OpFuture<'a>>,
    /// Rows still wanted.
    limit: u64,
}

/// Range reads under way. Several ranges, or several shards, answer in any order.
struct Ranges<'a> {
    program: Program,
    read: Read,
    limit: u64,
    waiting: VecDeque<Target>,
    parts: Vec<Part<'a>>,
}

pub(super) struct Part<'a> {
    to: ShardId,
    op: ScanOp,
    future: OpFuture<'a>,
    /// What the future has given, until it is looked at.
    answer: Option<OpAnswer>,
}

impl<'a> Part<'a> {
    pub(super) fn start(cx: &Cx<'a>, step: u32, to: ShardId, op: ScanOp) -> Part<'a> {
        let future = start_scan(cx, step, to, op.clone());
        Part {
            to,
            op,
            future,
            answer: None,
        }
    }

    /// Asks for the rows after `after`.
    pub(super) fn go_on(&mut self, cx: &Cx<'a>, step: u32, after: (base::Slot, Vec<u8>)) {
        self.op.after = Some(after);
        self.future = start_scan(cx, step, self.to, self.op.clone());
    }

    /// What the shard has answered.
    pub(super) async fn answer(&mut self) -> OpAnswer {
        match self.answer.take() {
            Some(answer) => answer,
            None => (&mut self.future).await,
        }
    }

    /// Whether there is an answer.
    fn poll(&mut self, context: &mut Context<'_>) -> bool {
        if self.answer.is_none()
            && let Poll::Ready(answer) = Pin::new(&mut self.future).poll(context)
        {
            self.answer = Some(answer);
        }
        self.answer.is_some()
    }
}

impl<'a> ScanRows<'a> {
    pub(super) fn new(cx: &'a Cx<'a>, step: &'a Step, slots: &Slots) -> ScanRows<'a> {
        let StepOp::Scan(scan) = &step.op else {
            unreachable!("opened for a scan")
        };
        ScanRows {
            cx,
            step: step.id,
            scan,
            slots: slots.clone(),
            state: State::New,
        }
    }

    fn start(&mut self) -> Result<State<'a>, SqlError> {
        let (cx, scan) = (self.cx, self.scan);
        let env = cx.env(&self.slots);
        let closed = match &scan.gate {
            None => false,
            Some(gate) => eval_bool(gate, &NoColumns, &env)? != Some(true),
        };
        let limit = match &scan.limit {
            None => u64::MAX,
            Some(limit) => {
                let value = cx.value(limit, &self.slots)?;
                value
                    .as_int()
                    .map_or(u64::MAX, |n| u64::try_from(n).unwrap_or(0))
            }
        };
        let targets = match closed {
            true => Vec::new(),
            false => targets(&scan.table, scan.index(), &scan.access, &NoColumns, &env)?,
        };
        let read = scan_mode(cx, scan);
        let program = scan.program.bind(&self.slots);
        if limit == 0 || closed {
            return Ok(State::Points(Points::new(
                read,
                program,
                VecDeque::new(),
                0,
            )));
        }
        if scan.access.index == 0 && scan.access.point {
            let keys = targets
                .into_iter()
                .map(|target| point_key(scan.index(), target));
            return Ok(State::Points(Points::new(
                read,
                program,
                keys.collect(),
                limit,
            )));
        }
        let program = match program {
            Program::Live(live) => Program::Live(live.for_many_rows().unwrap_or(live)),
            other => other,
        };
        if scan.is_direct() {
            let aggregates = !matches!(scan.program.body(), Body::Rows { .. });
            let limit = if aggregates { u64::MAX } else { limit };
            return Ok(State::Ranges(Ranges::new(program, read, limit, targets)));
        }
        if scan.merges {
            let entries = Merged::new(entry_mode(cx, scan), limit, targets);
            let points = Points::new(read, program, VecDeque::new(), limit);
            return Ok(State::Merged { entries, points });
        }
        // The condition may remove rows behind the entries, so the limit counts rows.
        let entries = Ranges::new(entry_program(scan), entry_mode(cx, scan), u64::MAX, targets);
        let points = Points::new(read, program, VecDeque::new(), limit);
        Ok(State::Entries { entries, points })
    }
}

impl Rows for ScanRows<'_> {
    async fn pull(&mut self) -> Result<Option<RowBatch>, OpError> {
        if matches!(self.state, State::New) {
            self.state = self.start()?;
        }
        let (cx, scan, step) = (self.cx, self.scan, self.step);
        let batch = match &mut self.state {
            State::New => unreachable!("started above"),
            State::Points(points) => points.pull(cx, scan, step).await?,
            State::Ranges(ranges) => ranges.pull(cx, scan, step).await?,
            State::Entries { entries, points } => loop {
                if let Some(batch) = points.pull(cx, scan, step).await? {
                    break Some(batch);
                }
                if points.limit == 0 {
                    break None;
                }
                match entries.pull(cx, scan, step).await? {
                    None => break None,
                    Some(batch) => {
                        points
                            .waiting
                            .extend(batch.iter().map(|e| primary_key(&scan.table, e)));
                    }
                }
            },
            State::Merged { entries, points } => loop {
                if let Some(batch) = points.pull(cx, scan, step).await? {
                    break Some(batch);
                }
                if points.limit == 0 || !entries.pull(cx, scan, step, &mut points.waiting).await? {
                    break None;
                }
            },
        };
        if let Some(batch) = &batch {
            cx.breathe(batch.rows as usize).await;
        }
        Ok(batch)
    }
}

impl<'a> Points<'a> {
    fn new(read: Read, program: Program, waiting: VecDeque<Key>, limit: u64) -> Points<'a> {
        Points {
            read,
            program,
            waiting,
            started: VecDeque::new(),
            limit,
        }
    }

    /// The next rows, or `None` when all keys have been read.
    async fn pull(
        &mut self,
        cx: &Cx<'a>,
        scan: &Scan,
        step: u32,
    ) -> Result<Option<RowBatch>, OpError> {
        let mut out = RowBatch::new(scan.width as usize);
        // Few rows wanted: do not read far ahead.
        let window = (self.limit.min(WINDOW as u64) as usize).max(1);
        let mut bytes = 0;
        while self.limit > 0 && (out.rows as usize) < BATCH_ROWS && bytes < BATCH_BYTES {
            while self.started.len() < window
                && let Some(key) = self.waiting.pop_front()
            {
                let (read, program) = (self.read, self.program.clone());
                self.started
                    .push_back(get(cx, step, &scan.table, key, read, program));
            }
            let Some(future) = self.started.pop_front() else {
                break;
            };
            let mut batch = rows_of(future.await)?;
            self.limit -= u64::from(batch.rows);
            out.rows += batch.rows;
            bytes += datums_heap_bytes(&batch.datums);
            out.datums.append(&mut batch.datums);
        }
        Ok((out.rows > 0).then_some(out))
    }
}

impl<'a> Ranges<'a> {
    fn new(program: Program, read: Read, limit: u64, targets: Vec<Target>) -> Ranges<'a> {
        Ranges {
            program,
            read,
            limit,
            waiting: targets.into(),
            parts: Vec::new(),
        }
    }

    /// The next batch from any range, or `None` when all are read.
    async fn pull(
        &mut self,
        cx: &Cx<'a>,
        scan: &Scan,
        step: u32,
    ) -> Result<Option<RowBatch>, OpError> {
        loop {
            let mut started = false;
            while self.parts.len() < WINDOW
                && self.limit > 0
                && let Some(target) = self.waiting.pop_front()
            {
                for (to, op) in scans(cx, scan, &target, self.read, &self.program, self.limit) {
                    self.parts.push(Part::start(cx, step, to, op));
                    started = true;
                }
            }
            if started && self.read.snapshot().is_some() {
                first_answers(&mut self.parts).await?;
            }
            if self.parts.is_empty() || self.limit == 0 {
                return Ok(None);
            }
            let (at, answer) = first_of(&mut self.parts).await;
            let OpResult::Rows { batch, resume } = answer? else {
                panic!("a scan was not answered by rows");
            };
            self.limit = self.limit.saturating_sub(u64::from(batch.rows));
            match resume {
                Some(after) if self.limit > 0 => {
                    let part = &mut self.parts[at];
                    let left = part.op.row_limit;
                    part.op.row_limit = left.saturating_sub(u64::from(batch.rows)).max(1);
                    part.go_on(cx, step, after);
                }
                _ => {
                    self.parts.remove(at);
                }
            }
            if batch.rows > 0 {
                return Ok(Some(batch));
            }
        }
    }
}

/// The first part that has an answer.
async fn first_of(parts: &mut [Part<'_>]) -> (usize, OpAnswer) {
    poll_fn(|context| {
        for (i, part) in parts.iter_mut().enumerate() {
            if part.poll(context) {
                return Poll::Ready((i, part.answer.take().expect("just polled")));
            }
        }
        Poll::Pending
    })
    .await
}

/// Waits until every part has an answer: a shard that refuses the snapshot is known before a row
/// of another one is used.
///
/// # Errors
/// The first that was answered.
pub(super) async fn first_answers(parts: &mut [Part<'_>]) -> Result<(), OpError> {
    poll_fn(|context| {
        let waiting = parts
            .iter_mut()
            .filter_map(|part| (!part.poll(context)).then_some(()));
        if waiting.count() > 0 {
            Poll::Pending
        } else {
            Poll::Ready(())
        }
    })
    .await;
    for part in parts {
        if let Some(Err(error)) = &part.answer {
            return Err(error.clone());
        }
    }
    Ok(())
}

fn point_key(index: &Index, target: Target) -> Key {
    let slot = target.slot.expect("a full key holds the slot columns");
    Key::new(index.id, slot, target.bytes)
}

/// The keys of a scan that reads rows of the primary index by key.
pub(super) fn point_keys(cx: &Cx<'_>, scan: &Scan, slots: &Slots) -> Result<Vec<Key>, SqlError> {
    let env = cx.env(slots);
    let targets = targets(&scan.table, scan.index(), &scan.access, &NoColumns, &env)?;
    let keys = targets.into_iter();
    Ok(keys.map(|target| point_key(scan.index(), target)).collect())
}

/// The table row that an index entry names.
pub(super) fn primary_key(table: &Table, entry: &[Datum]) -> Key {
    let mut bytes = Vec::with_capacity(crate::keys::key_capacity(entry.len()));
    for (key, value) in table.primary.columns.iter().zip(entry) {
        encode_datum(&mut bytes, value, key.descending);
    }
    let mut partition = Vec::with_capacity(16);
    for column in &table.primary.slot_columns {
        let place = table
            .primary
            .columns
            .iter()
            .position(|key| key.column == *column);
        let place = place.expect("partition columns are key columns");
        encode_datum(&mut partition, &entry[place], false);
    }
    Key::new(table.primary.id, slot_of(&partition), bytes)
}

/// The primary key of an index entry, as expressions over its row.
pub(super) fn entry_columns(scan: &Scan) -> Vec<Expr> {
    let keys = scan.table.primary.columns.iter().enumerate();
    keys.map(|(i, key)| Expr::Column(i as u32, scan.table.columns[usize::from(key.column)].ty))
        .collect()
}

/// The program that gives the primary key of an index entry.
pub(super) fn entry_program(scan: &Scan) -> Program {
    ProgramPlan::new(Body::Rows {
        filter: None,
        projection: entry_columns(scan),
    })
    .bind(&[])
}

/// Reads the rows of several lookups at once: those of `scan`'s access for each of `outer`. The
/// answer has one batch per outer row.
pub(super) async fn lookups<'a>(
    cx: &'a Cx<'a>,
    step: u32,
    scan: &'a Scan,
    outer: &[&dyn Columns],
    slots: &Slots,
    charge: &mut Charge<'_>,
) -> Result<Vec<RowBatch>, OpError> {
    let env = cx.env(slots);
    let program = scan.program.bind(slots);
    let read = scan_mode(cx, scan);
    let empty = |_: &&dyn Columns| RowBatch::new(scan.width as usize);
    let mut found: Vec<RowBatch> = outer.iter().map(empty).collect();
    let mut keys: VecDeque<(usize, Key)> = VecDeque::new();
    if scan.access.index == 0 && scan.access.point {
        for (i, row) in outer.iter().enumerate() {
            for target in targets(&scan.table, scan.index(), &scan.access, *row, &env)? {
                keys.push_back((i, point_key(scan.index(), target)));
            }
        }
    } else {
        let secondary = !scan.is_direct();
        let (mode, first) = match secondary {
            true => (entry_mode(cx, scan), entry_program(scan)),
            false => (read, program.clone()),
        };
        let mut parts: Vec<(usize, Part<'a>)> = Vec::new();
        for (i, row) in outer.iter().enumerate() {
            for target in targets(&scan.table, scan.index(), &scan.access, *row, &env)? {
                for (to, op) in scans(cx, scan, &target, mode, &first, u64::MAX) {
                    parts.push((i, Part::start(cx, step, to, op)));
                }
            }
        }
        for (i, mut part) in parts {
            loop {
                let OpResult::Rows { mut batch, resume } = (&mut part.future).await? else {
                    panic!("a scan was not answered by rows");
                };
                let more = resume.is_some();
                if let Some(after) = resume {
                    part.go_on(cx, step, after);
                }
                if secondary {
                    charge.add(batch.rows as usize * KEY_BYTES)?;
                    keys.extend(batch.iter().map(|e| (i, primary_key(&scan.table, e))));
                } else {
                    append(&mut found[i], &mut batch, charge)?;
                }
                if !more {
                    break;
                }
            }
        }
    }
    let mut started: VecDeque<(usize, OpFuture<'a>)> = VecDeque::new();
    loop {
        while started.len() < WINDOW
            && let Some((i, key)) = keys.pop_front()
        {
            started.push_back((i, get(cx, step, &scan.table, key, read, program.clone())));
        }
        let Some((i, future)) = started.pop_front() else {
            break;
        };
        let mut batch = rows_of(future.await)?;
        append(&mut found[i], &mut batch, charge)?;
    }
    Ok(found)
}

/// Memory of a key that waits for its turn, about.
const KEY_BYTES: usize = 96;

/// Appends rows whose memory is charged.
fn append(to: &mut RowBatch, from: &mut RowBatch, charge: &mut Charge<'_>) -> Result<(), SqlError> {
    let before = to.datums.capacity();
    to.rows += from.rows;
    charge.add(datums_heap_bytes(&from.datums))?;
    to.datums.append(&mut from.datums);
    charge.add((to.datums.capacity() - before) * size_of::<Datum>())
}

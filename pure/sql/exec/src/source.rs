//! Sources of rows: one per kind of step.

use super::aggregate::AggregateRows;
use super::calls::{self, InCache};
use super::expand::ExpandRows;
use super::filter::{FilterRows, retain};
use super::function_rows::FunctionRows;
use super::hash_join::HashRows;
use super::join::{LateralRows, LookupRows};
use super::locked::LockedRows;
use super::long::Long;
use super::matched::MatchRows;
use super::named::{RecursiveRows, SharedRows, WorkingRows};
use super::parts::PartRows;
use super::scan::ScanRows;
use super::sort::SortRows;
use super::windowed::WindowRows;
use super::{BATCH_BYTES, BATCH_ROWS, Charge, Cx, Local, Slots};
use base::{Datum, Pieces, RowBatch, SqlError, SqlState};
use bind::rel::Call;
use expr::hashed::Groups;
use expr::list::{self, units_of_row};
use expr::rows::{datum_heap_bytes, row_bytes};
use expr::{Env, Expr, NoColumns, eval};
use parse::show::Show;
use pg_catalog::{Asked, VirtualTable};
use plan::step::{Step, StepOp};
use txn::OpError;

/// Bytes of values from which on rows are charged while a batch is made of them.
const LONG_BYTES: usize = 64 << 10;

/// Gives batches of rows until it answers `None`. A batch may be small, but not empty.
pub(super) trait Rows {
    async fn pull(&mut self) -> Result<Option<RowBatch>, OpError>;
}

/// [`Rows`] of any kind.
pub(super) trait AnyRows {
    fn next(&mut self) -> Local<'_, Result<Option<RowBatch>, OpError>>;
}

impl<R: Rows> AnyRows for R {
    fn next(&mut self) -> Local<'_, Result<Option<RowBatch>, OpError>> {
        Box::pin(self.pull())
    }
}

/// A source that is under way.
pub(super) type Source<'a> = Box<dyn AnyRows + 'a>;

/// Starts a step with these values of the parameter slots.
pub(super) fn open<'a>(cx: &'a Cx<'a>, step: &'a Step, slots: &Slots) -> Source<'a> {
    let source: Source<'a> = match &step.op {
        StepOp::One => Box::new(Fixed(Some(one_row()))),
        StepOp::Values { rows, calls } => Box::new(ValuesRows {
            cx,
            rows,
            calls,
            at: 0,
            slots: slots.clone(),
        }),
        StepOp::Virtual(table) => Box::new(VirtualRows {
            cx,
            table: Some(table),
        }),
        StepOp::Function {
            function,
            args,
            types,
        } => Box::new(FunctionRows::new(cx, function, args, types, slots)),
        StepOp::Scan(_) => Box::new(ScanRows::new(cx, step, slots)),
        StepOp::Lookup { .. } => Box::new(LookupRows::new(cx, step, slots)),
        StepOp::Hash { .. } => Box::new(HashRows::new(cx, step, slots)),
        StepOp::Lateral { .. } => Box::new(LateralRows::new(cx, step, slots)),
        StepOp::Match { .. } => Box::new(MatchRows::new(cx, step, slots)),
        StepOp::Shared { id, query } => Box::new(SharedRows::new(cx, *id, query, slots)),
        StepOp::Recursive { .. } => Box::new(RecursiveRows::new(cx, step, slots)),
        StepOp::Working { slot } => Box::new(WorkingRows::new(cx, *slot, step.width, slots)),
        StepOp::Part { number } => Box::new(PartRows::new(cx, *number, step.width, slots)),
        StepOp::Aggregate { .. } => Box::new(AggregateRows::new(cx, step, slots)),
        StepOp::Expand { .. } => Box::new(ExpandRows::new(cx, step, slots)),
        StepOp::Window { .. } => Box::new(WindowRows::new(cx, step, slots)),
        StepOp::Locked { .. } => Box::new(LockedRows::new(cx, step, slots)),
        StepOp::Union { inputs } => Box::new(UnionRows {
            cx,
            inputs: inputs.iter(),
            current: None,
            slots: slots.clone(),
        }),
        _ => open_over(cx, step, slots),
    };
    match &cx.stats {
        None => source,
        Some(stats) => {
            stats.borrow_mut()[step.id as usize].loops += 1;
            Box::new(Measured {
                cx,
                step: step.id,
                inner: source,
            })
        }
    }
}

/// As [`open`] for the steps that do something with the rows of one input.
fn open_over<'a>(cx: &'a Cx<'a>, step: &'a Step, slots: &Slots) -> Source<'a> {
    match &step.op {
        StepOp::Filter { input, filter } => {
            let input = open(cx, input, slots);
            Box::new(FilterRows::new(cx, input, filter, slots))
        }
        StepOp::Project { input, exprs } => Box::new(ProjectRows {
            cx,
            input: open(cx, input, slots),
            exprs,
            units: units_of_row(exprs.iter().map(list::nodes).sum()),
            slots: slots.clone(),
            rest: None,
        }),
        StepOp::Apply { input, calls } => Box::new(ApplyRows {
            cx,
            input: open(cx, input, slots),
            caches: calls.iter().map(|_| InCache::default()).collect(),
            calls,
            slots: slots.clone(),
            rest: None,
            given: 0,
        }),
        StepOp::Distinct { input, keys } => Box::new(DistinctRows {
            cx,
            input: open(cx, input, slots),
            keys,
            seen: Long::new(cx.port, Groups::of_width(keys.len(), 0)),
            charge: Charge::new(cx.port),
        }),
        StepOp::Sort { .. } => Box::new(SortRows::new(cx, step, slots)),
        StepOp::Limit {
            input,
            limit,
            offset,
            ties,
        } => Box::new(LimitRows {
            ties,
            last: None,
            cx,
            input: Some(open(cx, input, slots)),
            window: None,
            limit: limit.as_ref(),
            offset: offset.as_ref(),
            slots: slots.clone(),
        }),
        _ => unreachable!("steps of other kinds are opened by `open`"),
    }
}

fn one_row() -> RowBatch {
    RowBatch {
        width: 0,
        rows: 1,
        datums: Vec::new(),
    }
}

/// Counts what a source gives.
struct Measured<'a> {
    cx: &'a Cx<'a>,
    step: u32,
    inner: Source<'a>,
}

impl Rows for Measured<'_> {
    async fn pull(&mut self) -> Result<Option<RowBatch>, OpError> {
        let start = self.cx.port.stopwatch_ns();
        let batch = self.inner.next().await?;
        if let Some(stats) = &self.cx.stats {
            let mut stats = stats.borrow_mut();
            let stats = &mut stats[self.step as usize];
            stats.rows += batch.as_ref().map_or(0, |batch| u64::from(batch.rows));
            stats.nanos += self.cx.port.stopwatch_ns().saturating_sub(start);
        }
        Ok(batch)
    }
}

/// One batch that is there already.
struct Fixed(Option<RowBatch>);

impl Rows for Fixed {
    async fn pull(&mut self) -> Result<Option<RowBatch>, OpError> {
        Ok(self.0.take().filter(|batch| batch.rows > 0))
    }
}

struct ValuesRows<'a> {
    cx: &'a Cx<'a>,
    rows: &'a [Vec<Expr>],
    calls: &'a [Call<Step>],
    at: usize,
    slots: Slots,
}

impl Rows for ValuesRows<'_> {
    async fn pull(&mut self) -> Result<Option<RowBatch>, OpError> {
        let Some(first) = self.rows.get(self.at) else {
            return Ok(None);
        };
        let mut out = RowBatch::new(first.len());
        let mut made = vec![Datum::Null; self.calls.len()];
        while let Some(row) = self.rows.get(self.at)
            && (out.rows as usize) < BATCH_ROWS
        {
            self.at += 1;
            // Each call stands in one row only.
            for number in call_numbers(row, self.calls) {
                let call = &self.calls[number as usize];
                let env = Env {
                    subqueries: &made,
                    ..self.cx.env(&self.slots)
                };
                made[number as usize] =
                    calls::value(self.cx, call, &NoColumns, &env, &self.slots).await?;
            }
            let env = Env {
                subqueries: &made,
                ..self.cx.env(&self.slots)
            };
            for value in row {
                out.datums.push(eval(value, &NoColumns, &env)?);
            }
            out.rows += 1;
        }
        self.cx.breathe(out.rows as usize).await;
        Ok(Some(out))
    }
}

/// Calls that the expressions of a row read, behind those that they read themselves.
fn call_numbers(row: &[Expr], calls: &[Call<Step>]) -> Vec<u32> {
    let mut found = Vec::new();
    if !calls.is_empty() {
        row.iter()
            .for_each(|value| add_calls(value, calls, &mut found));
    }
    found
}

fn add_calls(value: &Expr, calls: &[Call<Step>], found: &mut Vec<u32>) {
    expr::walk::walk(value, &mut |node| {
        if let Expr::Subquery(number, _) = node
            && !found.contains(number)
        {
            for expr in calls[*number as usize].kind.outer_exprs() {
                add_calls(expr, calls, found);
            }
            found.push(*number);
        }
    });
}

struct VirtualRows<'a> {
    cx: &'a Cx<'a>,
    table: Option<&'a VirtualTable>,
}

impl Rows for VirtualRows<'_> {
    async fn pull(&mut self) -> Result<Option<RowBatch>, OpError> {
        let Some(table) = self.table.take() else {
            return Ok(None);
        };
        let told = match table.asks() {
            Some(Asked::Sessions) => Some(super::show::fetch(self.cx, Show::Activity).await?),
            Some(Asked::Locks) => Some(super::show::fetch(self.cx, Show::Locks).await?),
            Some(Asked::Statements) => Some(super::show::fetch(self.cx, Show::Statements).await?),
            Some(Asked::Values) => Some(super::show::fetch(self.cx, Show::Values).await?),
            None => None,
        };
        let batch = self
            .cx
            .facts
            .with_catalog(told.as_ref(), |cx| table.rows(cx));
        self.cx.breathe(batch.rows as usize).await;
        Ok((batch.rows > 0).then_some(batch))
    }
}

struct ProjectRows<'a> {
    cx: &'a Cx<'a>,
    input: Source<'a>,
    exprs: &'a [Expr],
    /// Units of work for a row.
    units: u32,
    slots: Slots,
    /// Input rows that have not been dealt with.
    rest: Option<(RowBatch, usize)>,
}

impl Rows for ProjectRows<'_> {
    async fn pull(&mut self) -> Result<Option<RowBatch>, OpError> {
        let (batch, mut at) = match self.rest.take() {
            Some(rest) => rest,
            None => match self.input.next().await? {
                Some(batch) => (batch, 0),
                None => return Ok(None),
            },
        };
        let mut out = RowBatch::new(self.exprs.len());
        let left = batch.rows as usize - at;
        out.datums.reserve(self.exprs.len() * left);
        // Values may be much longer than what they are made of.
        let mut charge = Charge::new(self.cx.port);
        let mut bytes = 0;
        while at < batch.rows as usize && bytes < BATCH_BYTES {
            let row = batch.row(at);
            at += 1;
            let env = self.cx.env(&self.slots);
            let mut size = 0;
            for expr in self.exprs {
                let value = match expr {
                    Expr::Column(column, _) => row[*column as usize].clone(),
                    other => eval(other, &row, &env)?,
                };
                size += datum_heap_bytes(&value);
                out.datums.push(value);
            }
            out.rows += 1;
            bytes += size;
            if size > LONG_BYTES {
                self.cx.facts.release();
                charge.add(size)?;
            }
            if self.units > 1 {
                self.cx.breathe(self.units as usize).await;
            }
        }
        if at < batch.rows as usize {
            self.rest = Some((batch, at));
        }
        self.cx.breathe(out.rows as usize).await;
        Ok(Some(out))
    }
}

struct ApplyRows<'a> {
    cx: &'a Cx<'a>,
    input: Source<'a>,
    calls: &'a [Call<Step>],
    caches: Vec<InCache<'a>>,
    slots: Slots,
    /// Input rows that have not been dealt with.
    rest: Option<(RowBatch, usize)>,
    /// Rows that have been given.
    given: usize,
}

/// The first rows are given one by one and the next in batches of this part of what was given, for
/// a limit above may want no more: each row can cost a query, or draw from a sequence.
const GIVEN_PART: usize = 16;

impl Rows for ApplyRows<'_> {
    async fn pull(&mut self) -> Result<Option<RowBatch>, OpError> {
        let (batch, mut at) = match self.rest.take() {
            Some(rest) => rest,
            None => match self.input.next().await? {
                Some(batch) => (batch, 0),
                None => return Ok(None),
            },
        };
        let mut out = RowBatch::new(batch.width as usize + self.calls.len());
        let most = (self.given / GIVEN_PART).max(1);
        while at < batch.rows as usize && (out.rows as usize) < most {
            let row = batch.row(at);
            at += 1;
            let start = out.datums.len();
            out.datums.extend_from_slice(row);
            for (call, cache) in self.calls.iter().zip(&mut self.caches) {
                // A call may read the values of those before it.
                let row = &out.datums[start..];
                let env = self.cx.env(&self.slots);
                let value = calls::cached_value(self.cx, call, &row, &env, &self.slots, cache);
                let value = value.await?;
                out.datums.push(value);
            }
            out.rows += 1;
        }
        if at < batch.rows as usize {
            self.rest = Some((batch, at));
        }
        self.given += out.rows as usize;
        self.cx.breathe(out.rows as usize).await;
        Ok(Some(out))
    }
}

struct DistinctRows<'a> {
    cx: &'a Cx<'a>,
    input: Source<'a>,
    keys: &'a [u32],
    seen: Long<'a, Groups<()>>,
    charge: Charge<'a>,
}

impl Rows for DistinctRows<'_> {
    async fn pull(&mut self) -> Result<Option<RowBatch>, OpError> {
        while let Some(mut batch) = self.input.next().await? {
            let (keys, seen, charge) = (self.keys, &mut self.seen, &mut self.charge);
            let rows = batch.rows as usize;
            let mut key = Vec::new();
            retain(&mut batch, |row| {
                key.clear();
                key.extend(keys.iter().map(|key| row[*key as usize].clone()));
                let (_, grown) = seen.enter(&mut key, || []);
                if grown > 0 {
                    charge.add(grown)?;
                }
                Ok(grown > 0)
            })?;
            self.cx.breathe(rows).await;
            if batch.rows > 0 {
                return Ok(Some(batch));
            }
        }
        Ok(None)
    }
}

struct LimitRows<'a> {
    cx: &'a Cx<'a>,
    /// Dropped when no more rows are wanted, so that nothing is read ahead any more.
    input: Option<Source<'a>>,
    /// Rows to skip and rows to give.
    window: Option<(u64, u64)>,
    limit: Option<&'a Expr>,
    offset: Option<&'a Expr>,
    /// Columns in which further rows may be equal to the last one.
    ties: &'a [u32],
    /// The last row's values in these columns, while rows are equal to it.
    last: Option<Vec<Datum>>,
    slots: Slots,
}

impl LimitRows<'_> {
    /// Rows from `from` on that are equal to the last one that was wanted, which may stand before
    /// them. When there is another one, no more are wanted.
    fn tied(&mut self, batch: &RowBatch, from: u64, is_new: bool) -> u64 {
        if is_new && !self.ties.is_empty() {
            let row = batch.row(from as usize - 1);
            let values = self.ties.iter().map(|column| row[*column as usize].clone());
            self.last = Some(values.collect());
        }
        let Some(last) = &self.last else { return 0 };
        let same = |row: &[Datum]| {
            let mut pairs = self.ties.iter().zip(last);
            pairs.all(|(column, value)| row[*column as usize].compare(value).is_eq())
        };
        let rows = u64::from(batch.rows);
        let equal = (from..rows).take_while(|at| same(batch.row(*at as usize)));
        let count = equal.count() as u64;
        if from + count < rows {
            self.last = None;
        }
        count
    }

    fn count(
        &self,
        expr: Option<&Expr>,
        none: u64,
        state: SqlState,
        clause: &str,
    ) -> Result<u64, SqlError> {
        let Some(expr) = expr else { return Ok(none) };
        match self.cx.value(expr, &self.slots)?.as_int() {
            None => Ok(none),
            Some(count) => u64::try_from(count)
                .map_err(|_| SqlError::new(state, format!("{clause} must not be negative"))),
        }
    }
}

impl Rows for LimitRows<'_> {
    async fn pull(&mut self) -> Result<Option<RowBatch>, OpError> {
        let (mut skip, mut left) = match self.window {
            Some(window) => window,
            None => (
                self.count(self.offset, 0, SqlState::NEGATIVE_OFFSET, "OFFSET")?,
                self.count(self.limit, u64::MAX, SqlState::NEGATIVE_LIMIT, "LIMIT")?,
            ),
        };
        while (left > 0 || self.last.is_some())
            && let Some(input) = &mut self.input
        {
            let Some(mut batch) = input.next().await? else {
                break;
            };
            let skipped = skip.min(u64::from(batch.rows));
            skip -= skipped;
            let mut kept = (u64::from(batch.rows) - skipped).min(left);
            left -= kept;
            if left == 0 {
                kept += self.tied(&batch, skipped + kept, kept > 0);
            }
            if kept == 0 {
                continue;
            }
            let width = batch.width as usize;
            batch.datums.drain(..skipped as usize * width);
            batch.datums.truncate(kept as usize * width);
            batch.rows = kept as u32;
            self.window = Some((skip, left));
            return Ok(Some(batch));
        }
        self.window = Some((skip, 0));
        self.input = None;
        Ok(None)
    }
}

struct UnionRows<'a> {
    cx: &'a Cx<'a>,
    inputs: std::slice::Iter<'a, Step>,
    current: Option<Source<'a>>,
    slots: Slots,
}

impl Rows for UnionRows<'_> {
    async fn pull(&mut self) -> Result<Option<RowBatch>, OpError> {
        loop {
            if let Some(current) = &mut self.current
                && let Some(batch) = current.next().await?
            {
                return Ok(Some(batch));
            }
            match self.inputs.next() {
                Some(step) => self.current = Some(open(self.cx, step, &self.slots)),
                None => {
                    self.current = None;
                    return Ok(None);
                }
            }
        }
    }
}

/// All rows of a step, in memory that is charged.
pub(super) async fn collect<'a>(
    cx: &'a Cx<'a>,
    step: &'a Step,
    slots: &Slots,
    charge: &mut Charge<'_>,
) -> Result<Long<'a, RowList>, OpError> {
    let mut source = open(cx, step, slots);
    let mut rows = Long::new(cx.port, RowList::new());
    while let Some(batch) = source.next().await? {
        append_rows(batch, &mut rows, charge)?;
    }
    Ok(rows)
}

/// Rows in memory, however many.
pub(super) type RowList = Pieces<Vec<Datum>>;

/// Appends the rows of a batch to rows whose memory is charged.
pub(super) fn append_rows(
    batch: RowBatch,
    rows: &mut RowList,
    charge: &mut Charge<'_>,
) -> Result<(), SqlError> {
    let before = rows.capacity_bytes();
    let width = batch.width as usize;
    let mut datums = batch.datums.into_iter();
    let mut bytes = 0;
    for _ in 0..batch.rows {
        let row: Vec<Datum> = datums.by_ref().take(width).collect();
        bytes += row_bytes(&row);
        rows.push(row);
    }
    charge.add(bytes + rows.capacity_bytes() - before)
}

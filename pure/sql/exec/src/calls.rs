//! Values that are computed for a row before its expressions: subqueries, sequences, waiting.

use super::long::Long;
use super::source::{RowList, append_rows, open};
use super::{Charge, Cx, Local, Slots};
use base::{Datum, SqlError, SqlState};
use bind::rel::{Binds, Call, CallKind, Quantifier, QueryUse, Signal};
use catalog::Sequence;
use core::future::poll_fn;
use expr::rows::{GroupKey, datum_heap_bytes, entry_bytes, heap_bytes};
use expr::{Columns, Env, Expr, eval, eval_bool};
use functions::array::Stack;
use plan::step::Step;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use txn::OpError;

/// Rows that are compared before others of the shard have their turn.
const QUANTIFIED_ROWS: usize = 1_000;

/// What is known of a call from rows before.
#[derive(Default)]
pub(super) enum InCache<'a> {
    #[default]
    Empty,
    /// Results of a query that depends on the row.
    Memo(Memo<'a>),
    /// The rows of a query that does not.
    Set(InSet<'a>),
    Rows {
        rows: Long<'a, RowList>,
        /// Their memory.
        _charge: Charge<'a>,
    },
}

/// Results of a call by the values that it reads of the row, as bytes: equal values can look
/// different (1.0 and 1.00).
pub(super) struct Memo<'a> {
    results: BTreeMap<Vec<u8>, Datum>,
    bytes: usize,
    charge: Charge<'a>,
}

/// Results are forgotten when they hold more.
const MEMO_BYTES: usize = 1 << 20;

impl<'a> Memo<'a> {
    fn new(cx: &Cx<'a>) -> Memo<'a> {
        Memo {
            results: BTreeMap::new(),
            bytes: 0,
            charge: Charge::new(cx.port),
        }
    }

    fn add(&mut self, key: Vec<u8>, result: &Datum) -> Result<(), SqlError> {
        let entry = entry_bytes(size_of::<(Vec<u8>, Datum)>());
        let bytes = heap_bytes(key.len()) + datum_heap_bytes(result) + entry;
        if self.bytes + bytes > MEMO_BYTES {
            self.results.clear();
            self.charge.sub(core::mem::take(&mut self.bytes));
        }
        if bytes <= MEMO_BYTES {
            self.charge.add(bytes)?;
            self.bytes += bytes;
            self.results.insert(key, result.clone());
        }
        Ok(())
    }
}

pub(super) struct InSet<'a> {
    rows: Long<'a, BTreeSet<GroupKey>>,
    /// Rows that hold a NULL.
    with_null: Long<'a, RowList>,
    /// The memory of both.
    charge: Charge<'a>,
}

/// The value of a call for a row.
pub(super) fn value<'b>(
    cx: &'b Cx<'_>,
    call: &'b Call<Step>,
    row: &'b dyn Columns,
    env: &'b Env<'b>,
    slots: &'b Slots,
) -> Local<'b, Result<Datum, OpError>> {
    Box::pin(async move {
        let mut cache = InCache::default();
        cached_value(cx, call, row, env, slots, &mut cache).await
    })
}

/// As [`value`], keeping what other rows can use. `env` is what the call's own expressions see.
pub(super) async fn cached_value<'a>(
    cx: &Cx<'a>,
    call: &Call<Step>,
    row: &dyn Columns,
    env: &Env<'_>,
    slots: &Slots,
    cache: &mut InCache<'a>,
) -> Result<Datum, OpError> {
    if !call.repeats || !call.kind.binds_row() {
        return computed(cx, call, row, env, slots, cache).await;
    }
    let read = call.kind.outer_exprs();
    let read = read.map(|expr| eval(expr, row, env));
    let key = base::row::to_vec(&read.collect::<Result<Vec<Datum>, _>>()?);
    if let InCache::Memo(memo) = cache
        && let Some(known) = memo.results.get(&key)
    {
        return Ok(known.clone());
    }
    let mut own = InCache::default();
    let result = computed(cx, call, row, env, slots, &mut own).await?;
    if !matches!(cache, InCache::Memo(_)) {
        *cache = InCache::Memo(Memo::new(cx));
    }
    if let InCache::Memo(memo) = cache {
        memo.add(key, &result)?;
    }
    Ok(result)
}

/// Values of expressions over the row.
fn values(exprs: &[Expr], row: &dyn Columns, env: &Env<'_>) -> Result<Vec<Datum>, SqlError> {
    exprs.iter().map(|expr| eval(expr, row, env)).collect()
}

pub(super) fn currval(cx: &Cx<'_>, sequence: &Sequence) -> Result<Datum, SqlError> {
    cx.port.currval(sequence).map(Datum::Int).ok_or_else(|| {
        let message = format!(
            "currval of sequence \"{}\" is not yet defined in this session",
            sequence.name
        );
        SqlError::new(SqlState::OBJECT_NOT_READY, message)
    })
}

/// `pg_sleep`; negative times are none.
pub(super) async fn sleep(cx: &Cx<'_>, seconds: f64) {
    let end = cx.port.now().after((seconds.max(0.0) * 1e6) as u64);
    let mut asked = false;
    poll_fn(|_| cx.port.poll_sleep(end, &mut asked)).await;
}

/// Whether there was a session of that number to be told.
async fn signalled(cx: &Cx<'_>, pid: Datum, signal: Signal) -> Result<Datum, OpError> {
    let Datum::Int(pid) = pid else {
        return Ok(Datum::Null);
    };
    let mut ticket = None;
    let heard = poll_fn(|_| cx.port.poll_signal(pid as i32, signal, &mut ticket)).await?;
    Ok(Datum::Bool(heard))
}

/// `pg_stat_statements_reset`: of all statements alone.
async fn forget_statements(cx: &Cx<'_>, args: &[Datum]) -> Result<Datum, OpError> {
    if args.iter().any(Datum::is_null) {
        return Ok(Datum::Null);
    }
    if args.iter().any(|arg| !matches!(arg, Datum::Int(0))) {
        let message = "pg_stat_statements_reset of single statements is not supported";
        let error = SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message);
        return Err(error
            .hint("Call it without arguments: it forgets all.")
            .into());
    }
    super::show::fetch(cx, parse::show::Show::ForgetStatements).await?;
    Ok(Datum::Text("".into()))
}

/// A call that concerns sessions.
async fn of_sessions(
    cx: &Cx<'_>,
    kind: &CallKind<Step>,
    row: &dyn Columns,
    slots: &Slots,
) -> Result<Datum, OpError> {
    let args = |args: &[Expr]| values(args, row, &cx.env(slots));
    match kind {
        CallKind::Signal(pid, signal) => {
            signalled(cx, eval(pid, row, &cx.env(slots))?, *signal).await
        }
        CallKind::Advisory(call, exprs) => {
            super::together::advisory(cx, *call, &args(exprs)?).await
        }
        CallKind::ForgetStatements(exprs) => forget_statements(cx, &args(exprs)?).await,
        CallKind::Notify(exprs) => Ok(super::together::notify(cx, &args(exprs)?)?),
        CallKind::Object(call, exprs) => super::objects::call(cx, *call, &args(exprs)?).await,
        CallKind::Sequence(call, asks, exprs) => {
            super::sequences::call(cx, (*call, *asks), &args(exprs)?).await
        }
        _ => unreachable!("the caller has dealt with all others"),
    }
}

/// Makes the call.
async fn computed<'a>(
    cx: &Cx<'a>,
    call: &Call<Step>,
    row: &dyn Columns,
    env: &Env<'_>,
    slots: &Slots,
    cache: &mut InCache<'a>,
) -> Result<Datum, OpError> {
    let (usage, query, binds) = match &call.kind {
        CallKind::Query {
            usage,
            query,
            binds,
        } => (usage, query, binds),
        CallKind::Nextval(sequence) => return Ok(Datum::Int(nextval(cx, sequence).await?)),
        CallKind::Currval(sequence) => return Ok(currval(cx, sequence)?),
        CallKind::Sleep(seconds) => {
            let seconds = eval(seconds, row, env)?.as_float().unwrap_or(0.0);
            sleep(cx, seconds).await;
            return Ok(Datum::Text("".into()));
        }
        others => return of_sessions(cx, others, row, slots).await,
    };
    let bound = || bound(cx, binds, row, slots);
    match usage {
        QueryUse::Scalar => {
            let mut charge = Charge::new(cx.port);
            let rows = limited(cx, query, &bound()?, 2, &mut charge).await?;
            only_one(&rows)?;
            Ok(rows.iter().flatten().next().cloned().unwrap_or(Datum::Null))
        }
        QueryUse::Exists => Ok(open(cx, query, &bound()?).next().await?.is_some().into()),
        QueryUse::Array { of_arrays } => {
            let mut charge = Charge::new(cx.port);
            let mut rows = limited(cx, query, &bound()?, usize::MAX, &mut charge).await?;
            charge.room(rows.len() * size_of::<Datum>())?;
            if *of_arrays {
                return Ok(stacked(&rows)?);
            }
            let items = rows.iter_mut().flat_map(core::mem::take);
            Ok(Datum::Array(items.collect()))
        }
        QueryUse::In(left) => {
            let left = values(left, row, env)?;
            if !(matches!(cache, InCache::Set(_)) && binds.is_empty()) {
                *cache = InCache::Set(InSet::read(cx, query, &bound()?).await?);
            }
            let InCache::Set(set) = cache else {
                unreachable!("it was just read");
            };
            Ok(set.contains(cx, left).await)
        }
        QueryUse::Quantified {
            left,
            condition,
            quantifier,
        } => {
            let compared = (values(left, row, env)?, condition, *quantifier);
            if !(matches!(cache, InCache::Rows { .. }) && binds.is_empty()) {
                *cache = rows_of_query(cx, query, &bound()?, *quantifier).await?;
            }
            let InCache::Rows { rows, .. } = cache else {
                unreachable!("they were just read");
            };
            Ok(quantified(cx, rows, compared, env).await?)
        }
    }
}

/// The arrays in the rows as one of one more dimension.
fn stacked(rows: &RowList) -> Result<Datum, SqlError> {
    let mut stack = Stack::default();
    for array in rows.iter().flatten() {
        stack.accumulate(array)?;
    }
    Ok(match stack.finish()? {
        Datum::Null => Datum::Array(Box::default()),
        array => array,
    })
}

/// The rows of a subquery of which only one may be.
fn only_one(rows: &RowList) -> Result<(), SqlError> {
    if rows.len() > 1 {
        let message = "more than one row returned by a subquery used as an expression";
        return Err(SqlError::new(SqlState::CARDINALITY_VIOLATION, message));
    }
    Ok(())
}

/// The rows that a condition is looked at for.
async fn rows_of_query<'a>(
    cx: &Cx<'a>,
    query: &Step,
    slots: &Slots,
    quantifier: Quantifier,
) -> Result<InCache<'a>, OpError> {
    let one = quantifier == Quantifier::One;
    let most = if one { 2 } else { usize::MAX };
    let mut charge = Charge::new(cx.port);
    let rows = limited(cx, query, slots, most, &mut charge).await?;
    if one {
        only_one(&rows)?;
    }
    Ok(InCache::Rows {
        rows,
        _charge: charge,
    })
}

/// Whether the condition holds for the values on the left and the rows of a query.
async fn quantified(
    cx: &Cx<'_>,
    rows: &RowList,
    (left, condition, quantifier): (Vec<Datum>, &Expr, Quantifier),
    env: &Env<'_>,
) -> Result<Datum, SqlError> {
    cx.breathe(rows.len().min(QUANTIFIED_ROWS)).await;
    let all = quantifier == Quantifier::All;
    let mut unknown = quantifier == Quantifier::One && rows.is_empty();
    let mut both = left;
    let width = both.len();
    for (i, row) in rows.iter().enumerate() {
        both.truncate(width);
        both.extend_from_slice(row);
        match eval_bool(condition, &both.as_slice(), env)? {
            Some(holds) if holds != all => return Ok(Datum::Bool(holds)),
            Some(_) => {}
            None => unknown = true,
        }
        if i % QUANTIFIED_ROWS == QUANTIFIED_ROWS - 1 {
            cx.breathe(QUANTIFIED_ROWS).await;
        }
    }
    Ok(match unknown {
        true => Datum::Null,
        false => Datum::Bool(all),
    })
}

impl<'a> InSet<'a> {
    /// The rows of a query, each once.
    async fn read(cx: &Cx<'a>, query: &Step, slots: &Slots) -> Result<InSet<'a>, OpError> {
        const ENTRY: usize = entry_bytes(size_of::<GroupKey>());
        let mut set = InSet {
            rows: Long::new(cx.port, BTreeSet::new()),
            with_null: Long::new(cx.port, RowList::new()),
            charge: Charge::new(cx.port),
        };
        let mut source = open(cx, query, slots);
        while let Some(batch) = source.next().await? {
            for row in batch.iter() {
                let key = GroupKey(row.to_vec());
                let bytes = key.bytes();
                if row.iter().any(Datum::is_null) {
                    set.charge.add(bytes + 2 * size_of::<Vec<Datum>>())?;
                    set.with_null.push(key.0);
                } else if set.rows.insert(key) {
                    set.charge.add(bytes + ENTRY)?;
                }
            }
            cx.breathe(batch.rows as usize).await;
        }
        Ok(set)
    }

    async fn contains(&self, cx: &Cx<'_>, left: Vec<Datum>) -> Datum {
        if self.rows.is_empty() && self.with_null.is_empty() {
            return Datum::Bool(false);
        }
        let left_null = left.iter().any(Datum::is_null);
        let key = GroupKey(left);
        if !left_null && self.rows.contains(&key) {
            return Datum::Bool(true);
        }
        // A row that differs nowhere for certain makes the answer unknown.
        let may_equal = |row: &[Datum]| {
            row.iter().zip(&key.0).all(|(a, b)| {
                a.is_null() || b.is_null() || a.compare(b) == core::cmp::Ordering::Equal
            })
        };
        let whole = self.rows.iter().filter(|_| left_null).map(|row| &row.0);
        let mut compared = 0;
        for row in self.with_null.iter().chain(whole) {
            if may_equal(row) {
                return Datum::Null;
            }
            compared += 1;
            if compared % QUANTIFIED_ROWS == 0 {
                cx.breathe(QUANTIFIED_ROWS).await;
            }
        }
        cx.breathe(compared % QUANTIFIED_ROWS).await;
        Datum::Bool(false)
    }
}

/// The slots with the values that a query reads of the row.
pub(super) fn bound(
    cx: &Cx<'_>,
    binds: &Binds,
    row: &dyn Columns,
    slots: &Slots,
) -> Result<Slots, SqlError> {
    if binds.is_empty() {
        return Ok(slots.clone());
    }
    let env = cx.env(slots);
    let mut values = (**slots).clone();
    for (slot, expr) in binds {
        values[*slot as usize] = match expr {
            Expr::Column(column, ty) => row.column(*column, *ty)?,
            other => eval(other, row, &env)?,
        };
    }
    Ok(Rc::new(values))
}

/// The first rows of a query.
async fn limited<'a>(
    cx: &Cx<'a>,
    query: &Step,
    slots: &Slots,
    limit: usize,
    charge: &mut Charge<'_>,
) -> Result<Long<'a, RowList>, OpError> {
    let mut source = open(cx, query, slots);
    let mut rows = Long::new(cx.port, RowList::new());
    while rows.len() < limit
        && let Some(batch) = source.next().await?
    {
        append_rows(batch, &mut rows, charge)?;
    }
    Ok(rows)
}

/// Draws from a sequence.
pub(super) async fn nextval(cx: &Cx<'_>, sequence: &Sequence) -> Result<i64, OpError> {
    let mut ticket = None;
    poll_fn(|_| cx.port.poll_nextval(sequence, &mut ticket)).await
}

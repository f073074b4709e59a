//! Runs planned statements.
//!
//! ```text
//! text -- parse --> Statement -- bind --> relations -- plan --> Plan (steps, or one operation)
//!                                                                 |
//!                       rows of all shards <-- Port <-- exec -----+
//!                                              |
//!                                    row programs travel to the rows
//! ```
//!
//! A plan runs as an `async fn` that the node's machine polls; no waker is used. It reaches rows
//! only through [`Port`]. A statement that is one operation on one row takes [`execute_fast`],
//! which has no future. Steps pull batches of rows from the steps below; a future is boxed per step
//! and batch, never per row. Operations on several shards are started together and awaited
//! afterwards.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

extern crate alloc;

mod aggregate;
mod batch;
mod bulk;
mod calls;
mod children;
mod conflict;
mod copy;
mod counted;
pub mod deferred;
mod doubles;
mod expand;
mod explain;
mod explain_object;
mod fast;
pub mod fill;
mod filter;
mod foreign;
mod function_rows;
mod hash_join;
mod insert;
mod join;
mod keys;
mod locked;
mod long;
mod matched;
mod merged;
mod named;
pub mod objects;
mod ordered;
mod parts;
mod point;
pub mod port;
mod request;
mod routine;
mod scan;
mod sequences;
mod session;
mod show;
mod sort;
mod source;
mod together;
mod upkeep;
mod upsert;
mod windowed;
mod write;

pub use fast::{Fast, FastEnd, FastWait, execute_fast, home_slot};
pub use port::Port;
pub use show::RowCounts;

use crate::port::Params;
use base::{Datum, RowBatch, SqlError, Tag};
use bind::rel::InitValue;
use core::cell::{Cell, RefCell};
use core::future::{Future, poll_fn};
use core::pin::Pin;
use expr::{Env, Expr, NoColumns, eval};
use plan::step::{Action, PartsPlan, Run, Step};
use plan::{Plan, PlanKind};
use session::Facts;
use std::rc::Rc;
use std::sync::Arc;
use txn::OpError;

/// A future on the shard's own thread.
type Local<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// Values of the parameter slots.
type Slots = Rc<Vec<Datum>>;

/// Rows after which a step lets other work run.
const YIELD_ROWS: u32 = 1000;
/// Rows of a batch, about.
const BATCH_ROWS: usize = 1000;
/// Bytes that the values of a batch hold, about.
const BATCH_BYTES: usize = 1 << 20;
/// Operations that one statement has under way at a time.
const WINDOW: usize = 256;
/// The same of a join by keys at its beginning, which may be wanted for a row or two. Eight times
/// as many each time that all have been taken, up to [`WINDOW`].
const WINDOW_FIRST: usize = 32;

/// What one step has done, for EXPLAIN ANALYZE.
#[derive(Clone, Default)]
struct StepStats {
    /// Times that it was started.
    loops: u64,
    rows: u64,
    /// Operations that it sent.
    ops: u64,
    /// Shards that it sent operations to.
    shards: std::collections::BTreeSet<base::ShardId>,
    /// Time from its start to its end, children included.
    nanos: u64,
}

/// What all steps of one execution share.
struct Cx<'a> {
    port: &'a dyn Port,
    /// Catalog version of the plan.
    planned: u64,
    facts: Facts<'a>,
    since_yield: Cell<u32>,
    stats: Option<RefCell<Vec<StepStats>>>,
    /// The parts of the statement, if it has any.
    parts: Option<&'a PartsPlan>,
    kept: named::Kept<'a>,
    /// The statement is all that its transaction may be: not one of the body of a function.
    alone: bool,
    /// Takes the first row in place of the client.
    first: Option<&'a RefCell<Option<Vec<Datum>>>>,
}

impl<'a> Cx<'a> {
    fn new(port: &'a dyn Port, run: &Run, measure: bool) -> Cx<'a> {
        Cx {
            port,
            planned: run.planned,
            facts: Facts::new(port),
            since_yield: Cell::new(0),
            parts: None,
            kept: named::Kept::new(port),
            alone: true,
            first: None,
            stats: measure.then(|| RefCell::new(vec![StepStats::default(); run.steps as usize])),
        }
    }

    /// The same for a statement that may have parts.
    fn with_parts(mut self, run: &'a Run) -> Cx<'a> {
        if let Action::Parts(plan) = &run.action {
            self.parts = Some(plan);
        }
        self
    }

    /// What expressions over one row see. Long values that were made for the row before are not
    /// accounted for any more.
    fn env<'e>(&'e self, slots: &'e [Datum]) -> Env<'e> {
        self.facts.release();
        Env {
            params: slots,
            subqueries: &[],
            session: &self.facts,
        }
    }

    /// Value of an expression without columns.
    fn value(&self, expr: &Expr, slots: &[Datum]) -> Result<Datum, SqlError> {
        eval(expr, &NoColumns, &self.env(slots))
    }

    /// Counts rows of work and lets other work of the shard run when there were many.
    async fn breathe(&self, rows: usize) {
        let count = self.since_yield.get().saturating_add(rows as u32);
        if count < YIELD_ROWS {
            self.since_yield.set(count);
            return;
        }
        self.since_yield.set(0);
        let mut yielded = false;
        poll_fn(|_| self.port.poll_yield(&mut yielded)).await;
    }

    /// Notes an operation of a step.
    fn note_op(&self, step: u32, to: base::ShardId) {
        if let Some(stats) = &self.stats {
            let mut stats = stats.borrow_mut();
            let stats = &mut stats[step as usize];
            stats.ops += 1;
            stats.shards.insert(to);
        }
    }

    async fn emit(&self, batch: RowBatch) {
        if batch.rows == 0 {
            return;
        }
        if let Some(first) = self.first {
            let mut first = first.borrow_mut();
            if first.is_none() {
                *first = Some(batch.datums[..batch.width as usize].to_vec());
            }
            return;
        }
        let mut batch = Some(batch);
        poll_fn(|_| self.port.poll_emit(&mut batch)).await;
    }
}

/// Memory taken from the statement's budget, given back when dropped.
struct Charge<'a> {
    port: &'a dyn Port,
    bytes: i64,
}

impl<'a> Charge<'a> {
    fn new(port: &'a dyn Port) -> Charge<'a> {
        Charge { port, bytes: 0 }
    }

    fn add(&mut self, bytes: usize) -> Result<(), SqlError> {
        self.port.charge(bytes as i64)?;
        self.bytes += bytes as i64;
        Ok(())
    }

    /// Gives this number of bytes back.
    fn sub(&mut self, bytes: usize) {
        let bytes = bytes as i64;
        assert!(bytes <= self.bytes, "what is given back was charged");
        self.bytes -= bytes;
        let given_back = self.port.charge(-bytes);
        debug_assert!(given_back.is_ok(), "giving memory back cannot fail");
    }

    /// What took `before` bytes takes `after` bytes now.
    fn change(&mut self, before: usize, after: usize) -> Result<(), SqlError> {
        if after >= before {
            return self.add(after - before);
        }
        self.sub(before - after);
        Ok(())
    }

    /// Whether this number of bytes could be charged, asked before they are taken.
    fn room(&self, bytes: usize) -> Result<(), SqlError> {
        self.port.charge(bytes as i64)?;
        self.port.charge(-(bytes as i64))
    }
}

impl Drop for Charge<'_> {
    fn drop(&mut self) {
        if self.bytes > 0 {
            let given_back = self.port.charge(-self.bytes);
            debug_assert!(given_back.is_ok(), "giving memory back cannot fail");
        }
    }
}

/// A statement that runs: the machine polls it when there is news for it.
pub type Running = Pin<Box<dyn Future<Output = Result<Tag, OpError>>>>;

/// Runs a plan of kind [`PlanKind::Run`] inside the transaction that `port` stands for.
///
/// Rows go to the client through [`Port::poll_emit`]. After an error the transaction can only be
/// rolled back.
pub fn execute(plan: Arc<Plan>, params: Params, port: Rc<dyn Port>) -> Running {
    Box::pin(async move {
        let PlanKind::Run(run) = &plan.kind else {
            panic!("only plans of kind Run are executed");
        };
        if let Action::Fill(work) = &run.action {
            return fill::whole(port, work).await;
        }
        let cx = Cx::new(&*port, run, false).with_parts(run);
        statement(&cx, run, &params, true).await
    })
}

/// Runs a statement; its rows are sent to the client if `emit`.
async fn statement<'a>(
    cx: &'a Cx<'a>,
    run: &'a Run,
    params: &[Datum],
    emit: bool,
) -> Result<Tag, OpError> {
    if run.sizes {
        let sizes = show::fetch(cx, parse::show::Show::Sizes).await?;
        cx.facts.take_sizes(&sizes);
    }
    let slots = first_values(cx, run, params).await?;
    let tag = match &run.action {
        Action::Query(step) => Tag::Count("SELECT", query(cx, step, &slots, emit).await?),
        Action::Point(point) => point::run(cx, point, &slots, emit).await?,
        Action::Insert(plan) => {
            let count = insert::run(cx, plan, &slots, emit).await?;
            deferred::end_statement(cx).await?;
            Tag::Insert(count)
        }
        Action::Write(plan) => {
            let count = match &plan.each {
                Some(each) => point::run_each(cx, each, &plan.rows, &slots).await?,
                None => write::run(cx, plan, &slots, emit).await?,
            };
            deferred::end_statement(cx).await?;
            match plan.assignments {
                Some(_) => Tag::Count("UPDATE", count),
                None => Tag::Count("DELETE", count),
            }
        }
        Action::Parts(plan) => {
            let tag = Box::pin(parts::run(cx, plan, &slots, emit)).await?;
            deferred::end_statement(cx).await?;
            tag
        }
        Action::Truncate(plans, restarted) => {
            for plan in plans {
                write::run(cx, plan, &slots, false).await?;
            }
            for sequence in restarted {
                sequences::restart(cx, sequence).await?;
            }
            Tag::Word("TRUNCATE TABLE")
        }
        Action::CopyFrom(plan) => {
            let count = copy::from(cx, plan, &slots).await?;
            deferred::end_statement(cx).await?;
            Tag::Count("COPY", count)
        }
        Action::CopyTo(plan) => Tag::Count("COPY", copy::to(cx, plan, &slots).await?),
        Action::Upkeep(upkeep) => upkeep::run(cx, upkeep).await?,
        Action::Fill(_) => unreachable!("part of no other statement"),
        Action::Show(show) => Tag::Count("SELECT", show::run(cx, *show).await?),
        Action::Routine(plan) => Box::pin(routine::run(cx, plan, &slots, emit)).await?,
        Action::Explain {
            run,
            again,
            options,
        } => Box::pin(explain::run(cx, run, again.as_ref(), *options, params)).await?,
    };
    Ok(tag)
}

/// The slots of a statement: parameters, and what is computed when it starts.
async fn first_values(cx: &Cx<'_>, run: &Run, params: &[Datum]) -> Result<Slots, OpError> {
    let mut values = params.to_vec();
    values.resize(run.slots as usize, Datum::Null);
    for init in &run.inits {
        let slots = Rc::new(core::mem::take(&mut values));
        let value = match &init.value {
            InitValue::Expr(expr) => cx.value(expr, &slots)?,
            InitValue::Call(call) => {
                let env = cx.env(&slots);
                calls::value(cx, call, &NoColumns, &env, &slots).await?
            }
        };
        values = Rc::try_unwrap(slots).unwrap_or_else(|shared| (*shared).clone());
        values[init.slot as usize] = value;
    }
    Ok(Rc::new(values))
}

/// Runs a query to its end.
async fn query(cx: &Cx<'_>, step: &Step, slots: &Slots, emit: bool) -> Result<u64, OpError> {
    let mut rows = source::open(cx, step, slots);
    let mut count = 0;
    while let Some(batch) = rows.next().await? {
        count += u64::from(batch.rows);
        if emit {
            cx.emit(batch).await;
        }
    }
    Ok(count)
}

//! Point statements without a future: one operation, and the answer at once if it is there.

use super::{Cx, point};
use crate::port::{OpAnswer, Params, Port, Started};
use base::key::{encode_datum, slot_of};
use base::{Datum, RowBatch, Slot, Tag};
use core::future::{Future, poll_fn};
use core::pin::Pin;
use core::task::Poll;
use expr::{Env, Expr, NoColumns, eval, walk};
use plan::step::{Action, PointPlan, Run, Step, StepOp};
use plan::{Plan, PlanKind};
use std::rc::Rc;
use std::sync::Arc;
use txn::{OpError, OpId};

/// A point statement that has been started.
pub enum Fast {
    /// Done: its rows, if it returns any, and how it ended.
    Done(Option<RowBatch>, Tag),
    /// Its operation is pending.
    Pending(FastWait),
}

/// The rows of a point statement, if it returns any, and how it ended.
pub type FastEnd = Result<(Option<RowBatch>, Tag), OpError>;

/// A pending point statement; poll it when the machine has news for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FastWait {
    op: OpId,
}

impl FastWait {
    /// The rows and the end of the statement, once the operation is answered.
    ///
    /// `plan` and `params` are those that [`execute_fast`] was called with.
    ///
    /// # Errors
    /// As [`super::execute`].
    pub fn poll(&self, plan: &Plan, params: &[Datum], port: &dyn Port) -> Poll<FastEnd> {
        let Poll::Ready(answer) = port.poll_op(self.op) else {
            return Poll::Pending;
        };
        let (run, point) = point_of(plan).expect("it was started for this plan");
        Poll::Ready(finished(run, point, params, port, answer))
    }

    /// The same as a future.
    pub fn wait(
        self,
        plan: Arc<Plan>,
        params: Params,
        port: Rc<dyn Port>,
    ) -> Pin<Box<dyn Future<Output = FastEnd>>> {
        Box::pin(async move { poll_fn(|_| self.poll(&plan, &params, &*port)).await })
    }
}

fn point_of(plan: &Plan) -> Option<(&Run, &PointPlan)> {
    match &plan.kind {
        PlanKind::Run(run) if run.inits.is_empty() => match &run.action {
            Action::Point(point) => Some((run, point)),
            _ => None,
        },
        _ => None,
    }
}

fn finished(
    run: &Run,
    plan: &PointPlan,
    params: &[Datum],
    port: &dyn Port,
    answer: OpAnswer,
) -> FastEnd {
    let cx = Cx::new(port, run, false);
    Ok(point::finish(&cx, plan, params, answer?)?)
}

/// Starts a statement that is one operation on one row: point SELECT, UPDATE and DELETE by full
/// primary key, and plain single-row INSERT. `None`: it is not one; run it with
/// [`super::execute`].
///
/// Rows of the result are handed over, not emitted.
pub fn execute_fast(
    plan: &Plan,
    params: &[Datum],
    port: &dyn Port,
) -> Option<Result<Fast, OpError>> {
    let (run, point) = point_of(plan)?;
    let cx = Cx::new(port, run, false);
    Some(start(&cx, run, point, params))
}

fn start(cx: &Cx<'_>, run: &Run, plan: &PointPlan, params: &[Datum]) -> Result<Fast, OpError> {
    let Some(prepared) = point::prepare(cx, plan, params)? else {
        let (batch, tag) = point::nothing(plan);
        return Ok(Fast::Done(batch, tag));
    };
    match cx.port.submit(prepared.to, run.planned, prepared.op, true) {
        Started::Ready(answer) | Started::Late(answer, _) => {
            let answer = answer.expect("an answer that was not taken yet");
            let (batch, tag) = point::finish(cx, plan, params, answer?)?;
            Ok(Fast::Done(batch, tag))
        }
        Started::Pending(op) => Ok(Fast::Pending(FastWait { op })),
    }
}

/// The slot of the first keyed access of a plan, from which the coordinator is chosen; `None` if
/// the plan names no slot or the value is not known before it runs.
pub fn home_slot(plan: &Plan, params: &[Datum]) -> Option<Slot> {
    let PlanKind::Run(run) = &plan.kind else {
        return None;
    };
    let env = Env::of_program(params);
    run_slot(run, &env)
}

fn run_slot(run: &Run, env: &Env<'_>) -> Option<Slot> {
    match &run.action {
        Action::Point(point) if point.table.replicated => None,
        Action::Point(point) => {
            let exprs: Vec<&Expr> = point.slot.iter().map(|place| &point.key[*place]).collect();
            slot_from(&exprs, env)
        }
        Action::Query(step) => step_slot(step, env),
        Action::Write(write) => step_slot(&write.rows, env),
        Action::Insert(insert) => {
            let StepOp::Values { rows, .. } = &insert.source.op else {
                return step_slot(&insert.source, env);
            };
            if insert.writers[0].table.replicated {
                return None;
            }
            let primary = &insert.writers[0].table.primary;
            let row = rows.first()?;
            let exprs: Vec<&Expr> = primary
                .slot_columns
                .iter()
                .map(|column| &row[usize::from(*column)])
                .collect();
            slot_from(&exprs, env)
        }
        Action::Parts(plan) => match (&plan.query, plan.parts.as_slice()) {
            (Some(query), _) => step_slot(query, env),
            (None, _) => None,
        }
        .or_else(|| {
            let mut parts = plan.parts.iter();
            parts.find_map(|part| step_slot(part.rows(), env))
        }),
        Action::Routine(plan) => {
            let known = |arg: &Expr| is_known(arg, env);
            if !plan.args.iter().all(known) {
                return None;
            }
            let args = plan.args.iter().map(|arg| eval(arg, &NoColumns, env));
            let args = args.collect::<Result<Vec<Datum>, _>>().ok()?;
            let env = Env::of_program(&args);
            plan.runs.iter().find_map(|run| run_slot(run, &env))
        }
        Action::Explain { run, .. } => run_slot(run, env),
        Action::Truncate(..)
        | Action::CopyFrom(_)
        | Action::CopyTo(_)
        | Action::Show(_)
        | Action::Upkeep(_)
        | Action::Fill(_) => None,
    }
}

fn step_slot(step: &Step, env: &Env<'_>) -> Option<Slot> {
    match &step.op {
        StepOp::Scan(scan) => {
            if scan.table.replicated {
                return None;
            }
            let exprs: Option<Vec<&Expr>> = scan
                .access
                .slot
                .as_ref()?
                .iter()
                .map(|part| slot_expr(scan, part))
                .collect();
            slot_from(&exprs?, env)
        }
        StepOp::Filter { input, .. }
        | StepOp::Project { input, .. }
        | StepOp::Apply { input, .. }
        | StepOp::Aggregate { input, .. }
        | StepOp::Expand { input, .. }
        | StepOp::Window { input, .. }
        | StepOp::Distinct { input, .. }
        | StepOp::Sort { input, .. }
        | StepOp::Limit { input, .. }
        | StepOp::Locked { input, .. }
        | StepOp::Shared { query: input, .. }
        | StepOp::Lookup { left: input, .. } => step_slot(input, env),
        StepOp::Hash { left, right, .. }
        | StepOp::Lateral { left, right, .. }
        | StepOp::Match { left, right, .. }
        | StepOp::Recursive {
            base: left,
            step: right,
            ..
        } => step_slot(left, env).or_else(|| step_slot(right, env)),
        StepOp::Union { inputs } => inputs.iter().find_map(|input| step_slot(input, env)),
        StepOp::One
        | StepOp::Values { .. }
        | StepOp::Virtual(_)
        | StepOp::Function { .. }
        | StepOp::Part { .. }
        | StepOp::Working { .. } => None,
    }
}

fn slot_expr<'s>(scan: &'s plan::step::Scan, part: &'s plan::step::SlotPart) -> Option<&'s Expr> {
    use plan::step::{KeyPart, SlotPart};
    match part {
        SlotPart::Value(value) => Some(value),
        SlotPart::Prefix(place) => match &scan.access.prefix[*place] {
            KeyPart::One(value) => Some(value),
            KeyPart::List(values) => values.first(),
            KeyPart::Array(_) => None,
            KeyPart::Row(place) => scan.access.rows.first().map(|row| &row[*place]),
        },
    }
}

/// Whether a value is known before the statement runs.
fn is_known(expr: &Expr, env: &Env<'_>) -> bool {
    !walk::any(expr, &|node| match node {
        Expr::Column(..) | Expr::Subquery(..) | Expr::Outer(..) => true,
        Expr::Param(slot, _) => *slot as usize >= env.params.len(),
        Expr::Call(func, _, _) => func.volatility() != expr::Volatility::Immutable,
        _ => false,
    })
}

fn slot_from(exprs: &[&Expr], env: &Env<'_>) -> Option<Slot> {
    let mut bytes = Vec::with_capacity(16);
    for expr in exprs {
        if !is_known(expr, env) {
            return None;
        }
        let value = eval(expr, &NoColumns, env)
            .ok()
            .filter(|value| *value != Datum::Null)?;
        encode_datum(&mut bytes, &value, false);
    }
    Some(slot_of(&bytes))
}

//! Bodies of functions and procedures: one statement after the other, in the transaction of the
//! call. Each sees what those before it have written.

use super::{Cx, Slots, statement};
use base::{Datum, RowBatch, Tag};
use core::cell::RefCell;
use expr::eval;
use plan::step::{RoutineGives, RoutinePlan};
use txn::OpError;

/// Runs a body. Its result goes to the client if `emit`.
pub(super) async fn run(
    cx: &Cx<'_>,
    plan: &RoutinePlan,
    slots: &Slots,
    emit: bool,
) -> Result<Tag, OpError> {
    let args = plan.args.iter().map(|arg| cx.value(arg, slots));
    let args = args.collect::<Result<Vec<Datum>, _>>()?;
    let skipped = plan.strict && args.iter().any(Datum::is_null);
    let first = RefCell::new(None);
    let runs = if skipped { &[] } else { plan.runs.as_slice() };
    for (at, run) in runs.iter().enumerate() {
        let last = at + 1 == runs.len();
        let wanted = last && matches!(plan.gives, RoutineGives::First(_));
        let mut inner = Cx::new(cx.port, run, false).with_parts(run);
        inner.alone = false;
        inner.first = wanted.then_some(&first);
        let done = Box::pin(statement(&inner, run, &args, wanted)).await;
        done.map_err(|error| in_context(error, &plan.name, at + 1))?;
    }
    let row = match (&plan.gives, first.take()) {
        (RoutineGives::Nothing, _) if plan.called => return Ok(Tag::Word("CALL")),
        (RoutineGives::Nothing, _) => vec![Datum::Text("".into())],
        (RoutineGives::First(_), None) => vec![Datum::Null; plan.width as usize],
        (RoutineGives::First(exprs), Some(row)) => {
            let row: Vec<Datum> = row;
            let env = cx.env(slots);
            let values = exprs.iter().map(|expr| eval(expr, &row.as_slice(), &env));
            values.collect::<Result<_, _>>()?
        }
    };
    if emit {
        cx.emit(RowBatch {
            width: plan.width,
            rows: 1,
            datums: row,
        })
        .await;
    }
    Ok(match plan.called {
        true => Tag::Word("CALL"),
        false => Tag::Count("SELECT", 1),
    })
}

/// The error with the place in the body.
fn in_context(error: OpError, name: &str, number: usize) -> OpError {
    match error {
        OpError::Sql(error) if error.fields().context.is_empty() => {
            let text = format!("SQL function \"{name}\" statement {number}");
            OpError::Sql(error.context(text))
        }
        OpError::Sql(error) => {
            let inner = error.fields().context.clone();
            let text = format!("{inner}\nSQL function \"{name}\" statement {number}");
            OpError::Sql(error.context(text))
        }
        other => other,
    }
}

//! Functions and procedures whose bodies are run, statement by statement: CALL, and a function of
//! several statements as all of a query.

use super::{Planner, dispatch, run_plan};
use crate::plan::{Plan, PlanKind, Reads};
use crate::step::{Action, RoutineGives, RoutinePlan, Run};
use base::{OutColumn, SqlError, SqlState, Type};
use bind::body::{check_statement, columns_of, results, statements, wrong_result};
use bind::routine::RoutineCall;
use bind::{Binder, Paths, PlanCx, unsupported};
use catalog::{Body, Database, Function, Returns};
use expr::{Expr, walk};
use parse::Statement;
use std::sync::Arc;

/// The plans of a body.
struct Planned {
    plans: Vec<Plan>,
    /// Numbers of the functions that it calls.
    called: Vec<u32>,
    /// The statements with full names, if the body is new and of the SQL standard.
    shown: Vec<String>,
}

/// What is found out of a new body.
pub(crate) struct NewBody {
    /// Numbers of what it uses.
    pub uses: Vec<u32>,
    /// Its statements with full names.
    pub shown: Vec<String>,
}

/// Names and types of the columns of what is run.
fn given(function: &Function, database: &Database) -> Vec<(String, Type)> {
    if !function.is_procedure {
        return columns_of(function, database);
    }
    let outputs = function.outputs();
    outputs
        .map(|output| (output.name.clone(), output.ty))
        .collect()
}

/// Plans the statements of a body, with the arguments as parameters.
fn planned(
    function: &Function,
    all: &[Statement],
    path: &[u32],
    binder: &Binder<'_>,
    is_new: bool,
) -> Result<Planned, SqlError> {
    let types = function.input_types();
    let cx = PlanCx {
        catalog: binder.cx.catalog,
        database: binder.cx.database,
        param_types: &types,
        param_names: &[],
        zone: binder.cx.zone,
        path,
        rows: binder.cx.rows,
        values: binder.cx.values,
        viewer: binder.cx.viewer,
        paths: Paths::default(),
    };
    let mut planned = Planned {
        plans: Vec::new(),
        called: Vec::new(),
        shown: Vec::new(),
    };
    let is_parsed = is_new && matches!(function.body, Body::Parsed { .. });
    for statement in all {
        check_statement(statement, &function.body)?;
        let mut inner = Binder::of_routine(&cx, statement, function, binder);
        if is_new {
            inner.making(function);
        } else {
            inner.running(function);
        }
        if is_parsed {
            inner.note_names();
        }
        let plan = dispatch(statement, &mut inner);
        // Places of the body mean nothing in the text of the statement.
        let mut plan = plan.map_err(|error| error.at(0))?;
        if is_parsed {
            planned.shown.push(inner.noted_text(statement));
        }
        inner.settle_needs();
        plan.needs = core::mem::take(&mut inner.needs);
        planned.called.extend(inner.called_routines());
        planned.plans.push(plan);
    }
    Ok(planned)
}

/// What becomes of the rows of the last statement.
///
/// # Errors
/// 42P13 if they are not what the function says.
fn gives(
    function: &Function,
    database: &Database,
    last: Option<&Plan>,
) -> Result<RoutineGives, SqlError> {
    let columns = given(function, database);
    if function.returns == Returns::Void && columns.is_empty() {
        return Ok(RoutineGives::Nothing);
    }
    let Some(last) = last.filter(|last| last.returns_rows) else {
        let detail = "Function's final statement must be SELECT or INSERT/UPDATE/DELETE RETURNING.";
        return Err(wrong_result(function, database, detail));
    };
    let types: Vec<Type> = columns.iter().map(|(_, ty)| *ty).collect();
    let exprs = results(function, database, &last.columns, &types)?;
    Ok(RoutineGives::First(exprs))
}

/// Whether a body is right, and what it uses.
///
/// # Errors
/// Those of its statements; 42P13 for another result than the function says.
pub(crate) fn check_body(
    function: &Function,
    path: &[u32],
    binder: &Binder<'_>,
) -> Result<NewBody, SqlError> {
    let all = statements(&function.body)?;
    let planned = planned(function, &all, path, binder, true)?;
    gives(function, binder.cx.database, planned.plans.last())?;
    let (mut uses, shown) = (planned.called, planned.shown);
    for plan in &planned.plans {
        let relations = plan.needs.relations.iter();
        uses.extend(
            relations
                .filter(|need| need.by.is_none())
                .map(|need| need.relation),
        );
    }
    uses.sort_unstable();
    uses.dedup();
    Ok(NewBody { uses, shown })
}

/// # Errors
/// 0A000 for calls whose body cannot be run.
fn refuse(function: &Function, called: bool, binder: &mut Binder<'_>) -> Result<(), SqlError> {
    if !binder.take_calls().is_empty() {
        return Err(unsupported(
            "a subquery or a function with effects as an argument of this call",
        )
        .hint("Compute the value first, and give it as a parameter."));
    }
    if function.gives_rows() {
        return Err(
            unsupported("rows of a function of several statements, or that changes rows")
                .hint("Return one row, or make the body one query."),
        );
    }
    if matches!(function.returns, Returns::Row) && !called {
        let what = "a function of several OUT arguments outside of FROM";
        return Err(unsupported(what).hint("Make it a procedure, and use CALL."));
    }
    Ok(())
}

/// The columns that a call gives.
fn columns(
    (function, database): (&Function, &Database),
    gives: &RoutineGives,
    called: bool,
) -> Vec<OutColumn> {
    let columns = match (gives, called) {
        // As PostgreSQL shows void: an empty text.
        (RoutineGives::Nothing, false) => vec![(String::new(), Type::Text)],
        _ => given(function, database),
    };
    let name = base::full_name::own(&function.name);
    let named = columns.into_iter().map(|(column, ty)| OutColumn {
        name: if column.is_empty() {
            name.into()
        } else {
            column
        },
        ty,
        table: 0,
        attribute: 0,
    });
    named.collect()
}

/// Plans CALL.
///
/// # Errors
/// Those of [`run`], and of finding the procedure.
pub(super) fn call(
    function: &sqlparser::ast::Function,
    binder: &mut Binder<'_>,
) -> Result<Plan, SqlError> {
    let call = binder.called(function)?;
    run(call, true, binder)
}

/// Plans a call whose body is run. `called`: by CALL.
///
/// # Errors
/// Those of the body and of the arguments.
pub(super) fn run(
    call: RoutineCall,
    called: bool,
    binder: &mut Binder<'_>,
) -> Result<Plan, SqlError> {
    let RoutineCall { function, args } = call;
    refuse(&function, called, binder)?;
    binder.count_routine(&function)?;
    let mut planner = Planner::new(binder);
    let args = args.into_iter().map(|arg| planner.settled_expr(arg));
    let args = args.collect::<Result<Vec<Expr>, _>>()?;
    if args
        .iter()
        .any(|arg| walk::any(arg, &|node| matches!(node, Expr::Column(..))))
    {
        return Err(unsupported("a column as an argument of this call"));
    }
    let inits = planner.inits()?;
    let steps = planner.next_step;
    let path = binder.path_of(&function).to_vec();
    let all = statements(&function.body)?;
    let planned = planned(&function, &all, &path, binder, false)?;
    let gives = gives(&function, binder.cx.database, planned.plans.last())?;
    let mut runs: Vec<Run> = Vec::new();
    let (mut writes, mut locks) = (false, false);
    let mut locked: Vec<base::TableId> = Vec::new();
    for plan in planned.plans {
        writes |= plan.writes;
        locks |= plan.locks;
        locked.extend(&plan.locked);
        binder.by_rows |= plan.by_rows;
        binder.work += plan.work;
        if !plan.zone.is_empty() {
            binder.zone = plan.zone;
        }
        binder.take_needs(plan.needs);
        match plan.kind {
            PlanKind::Run(run) => runs.push(run),
            _ => return Err(unsupported("this statement in a function or procedure")),
        }
    }
    let columns = columns((&function, binder.cx.database), &gives, called);
    let name = base::full_name::own(&function.name);
    let returns_rows = !columns.is_empty();
    let action = Action::Routine(Box::new(RoutinePlan {
        name: name.into(),
        args,
        strict: function.strict,
        runs,
        gives,
        called,
        width: columns.len() as u32,
    }));
    let mut plan = run_plan(binder, action, inits, steps)?;
    plan.columns = Arc::from(columns);
    plan.returns_rows = returns_rows;
    plan.writes |= writes;
    plan.locks |= locks;
    locked.extend(&plan.locked);
    plan.locked = locked.into();
    plan.reads = Reads::Keys;
    Ok(plan)
}

/// The error of a call that cannot be part of an EXPLAIN.
pub(super) fn not_explained() -> SqlError {
    SqlError::new(
        SqlState::FEATURE_NOT_SUPPORTED,
        "EXPLAIN of a call that runs several statements is not supported",
    )
    .hint("EXPLAIN the statements of its body.")
}

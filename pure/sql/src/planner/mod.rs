//! Statements to plans.

mod access;
mod copy;
mod join;
mod point;
mod query;
mod write;

use crate::bind::rel::{Init, InitValue, Rel};
use crate::bind::{Binder, BoundQuery, PlanCx};
use crate::exec::step::{Action, Run, Step, StepOp};
use crate::expr::{Expr, walk};
use crate::parse::{Kind, ShowWhat, Statement};
use crate::plan::{OutColumn, Plan, PlanKind, SessionCommand};
use base::{SqlError, SqlState, Type};
use query::Need;

pub use copy::CopyShape;
use sqlparser::ast;
use std::sync::Arc;

/// Binds and plans one statement.
///
/// # Errors
/// Those of names, types and privileges, with PostgreSQL's SQLSTATE and, where it is known, the
/// position in the text; 0A000 for what later releases will do.
pub fn plan(statement: &Statement, cx: &PlanCx<'_>) -> Result<Arc<Plan>, SqlError> {
    let mut binder = Binder::new(cx, statement);
    let planned = dispatch(statement, &mut binder)?;
    Ok(Arc::new(planned))
}

fn dispatch(statement: &Statement, binder: &mut Binder<'_>) -> Result<Plan, SqlError> {
    let version = binder.cx.catalog.version;
    let plain = |kind: PlanKind| Plan {
        kind,
        params: Vec::new(),
        columns: Arc::from([]),
        returns_rows: false,
        catalog_version: version,
        writes: false,
        locks: false,
    };
    Ok(match statement.kind() {
        Kind::Session(command) => {
            let shows = matches!(command, SessionCommand::ShowSetting(_));
            let mut plan = plain(PlanKind::Session(command.clone()));
            plan.returns_rows = shows;
            plan
        }
        Kind::Nothing(tag) => plain(PlanKind::Nothing(tag)),
        Kind::Show(ShowWhat::Setting(name)) => {
            let mut plan = plain(PlanKind::Session(SessionCommand::ShowSetting(name.clone())));
            let names: &[&str] = match name {
                Some(name) => &[name],
                None => &["name", "setting", "description"],
            };
            plan.columns = names.iter().map(|name| text_column(name)).collect();
            plan.returns_rows = true;
            plan
        }
        Kind::Show(ShowWhat::Cluster(show)) => {
            let columns = crate::exec::show_columns(*show);
            let mut plan = run_plan(binder, Action::Show(*show), Vec::new(), 0)?;
            plan.columns = columns.into();
            plan.returns_rows = true;
            plan
        }
        Kind::Prepare {
            name,
            types,
            statement,
        } => {
            let types = types
                .iter()
                .map(crate::bind::types::bind_type)
                .collect::<Result<Vec<_>, _>>()?;
            let (name, text) = (name.clone(), statement.text().to_string());
            plain(PlanKind::Session(SessionCommand::Prepare {
                name,
                types,
                text,
            }))
        }
        Kind::Execute { name, args } => {
            let mut values = Vec::new();
            for arg in args {
                let bound = binder.expr(arg)?;
                let constant = |node: &Expr| !matches!(node, Expr::Param(..) | Expr::Subquery(..));
                if walk::any(&bound, &|node| !constant(node)) {
                    return Err(crate::bind::unsupported(
                        "an argument that is not a constant",
                    ));
                }
                values.push(crate::expr::fold::constant(&bound)?);
            }
            let name = name.clone();
            plain(PlanKind::Session(SessionCommand::Execute {
                name,
                args: values,
            }))
        }
        Kind::Explain { analyze, statement } => explain(statement, *analyze, binder)?,
        Kind::Copy(copy) => copy::plan(copy, binder)?,
        Kind::CreateDatabase { .. } | Kind::DropDatabase { .. } | Kind::CreateTable(_) => {
            plain(PlanKind::Ddl(crate::ddl::plan(statement.kind(), binder)?))
        }
        Kind::InsertOverriding(ast, overriding) => match ast.as_ref() {
            ast::Statement::Insert(insert) => write::insert(insert, Some(*overriding), binder)?,
            _ => {
                return Err(SqlError::new(
                    SqlState::SYNTAX,
                    "syntax error at or near \"OVERRIDING\"",
                ));
            }
        },
        Kind::Sql(ast) => match ast.as_ref() {
            ast::Statement::Query(query) => query_plan(query, binder)?,
            ast::Statement::Insert(insert) => write::insert(insert, None, binder)?,
            ast::Statement::Update {
                table,
                assignments,
                from,
                selection,
                returning,
                or: None,
            } => {
                let bound = binder.update(
                    table,
                    assignments,
                    from.as_ref(),
                    selection.as_ref(),
                    returning.as_deref(),
                )?;
                write::write(bound, binder)?
            }
            ast::Statement::Delete(delete) => {
                let bound = binder.delete(delete)?;
                write::write(bound, binder)?
            }
            ast::Statement::Truncate {
                table_names,
                cascade,
                ..
            } => {
                let names: Vec<&ast::ObjectName> =
                    table_names.iter().map(|target| &target.name).collect();
                let cascade = matches!(cascade, Some(ast::CascadeOption::Cascade));
                write::truncate(&names, cascade, binder)?
            }
            _ => plain(PlanKind::Ddl(crate::ddl::plan(statement.kind(), binder)?)),
        },
    })
}

fn text_column(name: &str) -> OutColumn {
    OutColumn {
        name: name.into(),
        ty: Type::Text,
        table: 0,
        attribute: 0,
    }
}

/// A Run plan around an action whose parts have been planned with `binder`.
fn run_plan(
    binder: &mut Binder<'_>,
    action: Action,
    inits: Vec<Init<Step>>,
    steps: u32,
) -> Result<Plan, SqlError> {
    binder.check_params()?;
    let version = binder.cx.catalog.version;
    let writes = matches!(
        action,
        Action::Insert(_) | Action::Write(_) | Action::Truncate(_) | Action::CopyFrom(_)
    ) || matches!(&action, Action::Point(point) if point.writes())
        || inits.iter().any(|init| {
            matches!(&init.value, InitValue::Call(call)
            if matches!(call.kind, crate::bind::rel::CallKind::Nextval(_)))
        });
    let slots = binder.slots();
    let run = Run {
        inits,
        slots,
        planned: version,
        action,
        steps,
    };
    Ok(Plan {
        kind: PlanKind::Run(run),
        params: binder.params.clone(),
        columns: Arc::from([]),
        returns_rows: false,
        catalog_version: version,
        writes,
        locks: binder.locks,
    })
}

fn query_plan(query: &ast::Query, binder: &mut Binder<'_>) -> Result<Plan, SqlError> {
    let bound = binder.query(query)?;
    let columns: Arc<[OutColumn]> = bound.columns.clone().into();
    let (step, inits, steps) = bound_query(bound, binder)?;
    let action = match point::query(&step) {
        Some(point) => Action::Point(point),
        None => Action::Query(step),
    };
    let mut plan = run_plan(binder, action, inits, steps)?;
    plan.columns = columns;
    plan.returns_rows = true;
    Ok(plan)
}

/// Plans a bound query and the values it needs first.
fn bound_query(
    bound: BoundQuery,
    binder: &mut Binder<'_>,
) -> Result<(Step, Vec<Init<Step>>, u32), SqlError> {
    let mut planner = Planner::new(binder);
    let wanted: Vec<u32> = (0..bound.columns.len() as u32).collect();
    let rel = planner.settled(bound.rel);
    let step = planner.rows(rel, &wanted)?;
    let inits = planner.inits()?;
    Ok((step, inits, planner.next_step))
}

fn explain(
    statement: &Statement,
    analyze: bool,
    binder: &mut Binder<'_>,
) -> Result<Plan, SqlError> {
    let inner = dispatch(statement, binder)?;
    let PlanKind::Run(run) = inner.kind else {
        return Err(SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            "EXPLAIN of this kind of statement is not supported",
        ));
    };
    let steps = run.steps;
    let outer = Run {
        inits: Vec::new(),
        slots: run.slots,
        planned: run.planned,
        steps,
        action: Action::Explain {
            run: Box::new(run),
            analyze,
        },
    };
    Ok(Plan {
        kind: PlanKind::Run(outer),
        columns: Arc::from([text_column("QUERY PLAN")]),
        returns_rows: true,
        writes: inner.writes && analyze,
        locks: inner.locks && analyze,
        ..inner
    })
}

/// Plans relations; numbers the steps.
pub(crate) struct Planner<'b, 'a> {
    pub(crate) binder: &'b mut Binder<'a>,
    pub(crate) next_step: u32,
}

impl<'b, 'a> Planner<'b, 'a> {
    pub(crate) fn new(binder: &'b mut Binder<'a>) -> Planner<'b, 'a> {
        Planner {
            binder,
            next_step: 0,
        }
    }

    fn step(&mut self, width: u32, rows: f64, op: StepOp) -> Step {
        let id = self.next_step;
        self.next_step += 1;
        Step {
            id,
            width,
            rows,
            op,
        }
    }

    /// The relation with all parameter types known and constants computed.
    pub(crate) fn settled(&self, mut rel: Rel) -> Rel {
        rel.each_expr_mut(&mut |expr| {
            self.binder.settle(expr);
            crate::expr::fold::fold(expr);
        });
        rel
    }

    /// As [`Planner::settled`] for a single expression.
    pub(crate) fn settled_expr(&self, mut expr: Expr) -> Expr {
        self.binder.settle(&mut expr);
        crate::expr::fold::fold(&mut expr);
        expr
    }

    /// Plans the values that are computed when the statement starts.
    fn inits(&mut self) -> Result<Vec<Init<Step>>, SqlError> {
        let inits = core::mem::take(&mut self.binder.inits);
        let mut planned = Vec::new();
        for Init { slot, value } in inits {
            let value = match value {
                InitValue::Expr(expr) => InitValue::Expr(self.settled_expr(expr)),
                InitValue::Call(call) => {
                    let mut boxed = Rel::One.applied(vec![call]);
                    boxed = self.settled(boxed);
                    let Rel::Apply { mut calls, .. } = boxed else {
                        unreachable!("made with a call");
                    };
                    InitValue::Call(self.call(calls.pop().expect("one call"))?)
                }
            };
            planned.push(Init { slot, value });
        }
        Ok(planned)
    }
}

/// Columns that expressions read.
fn columns_of<'e>(exprs: impl IntoIterator<Item = &'e Expr>) -> Need {
    exprs.into_iter().flat_map(walk::columns).collect()
}

/// Renumbers columns to their places in a layout.
fn remap(expr: &mut Expr, layout: &[u32]) {
    walk::map(expr, &mut |node| {
        if let Expr::Column(column, _) = node {
            *column = query::position(layout, *column);
        }
    });
}

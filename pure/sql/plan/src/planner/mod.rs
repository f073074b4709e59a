//! Statements to plans.

mod access;
mod aggregate;
mod computed;
mod constant;
mod copy;
mod estimate;
mod expected;
mod few;
mod fill;
mod grouped;
mod item;
mod join;
mod locked;
mod named;
mod normal;
mod order;
mod parts;
mod point;
mod query;
pub(crate) mod routine;
mod search;
mod secured;
mod semi;
mod set;
mod shares;
mod size;
mod upkeep;
mod window;
mod write;

use crate::plan::{Plan, PlanKind, Reads};
use crate::step::{Action, Run, Step, StepOp};
use base::{Datum, OutColumn, SqlError, SqlState, TableId, Type};
use bind::rel::{Init, InitValue, Rel};
use bind::{Binder, BoundQuery, PlanCx};
use catalog::{Names, Table};
use computed::Computed;
use expr::{Expr, walk};
use parse::session::SessionCommand;
use parse::show::Show;
use parse::{ExplainOptions, InsertWords, Kind, LONG_BYTES, ShowWhat, Statement};
use query::Need;

pub use copy::CopyShape;
pub use fill::{DefaultValues, default_values, generated_values};
use sqlparser::ast;
use statistics::TableValues;
use std::rc::Rc;
use std::sync::Arc;
pub use write::{KeyCheck, constraint_writer, key_check};

/// Binds and plans one statement.
///
/// # Errors
/// Those of names, types and privileges, with PostgreSQL's SQLSTATE and, where it is known, the
/// position in the text; 0A000 for what later releases will do.
pub fn plan(statement: &Statement, cx: &PlanCx<'_>) -> Result<Arc<Plan>, SqlError> {
    let mut binder = Binder::new(cx, statement);
    let planned = dispatch(statement, &mut binder);
    let mut planned = planned.map_err(|error| {
        let names = Names {
            database: cx.database,
            path: cx.path,
        };
        names.shown_error(cx.database.named_error(error))
    })?;
    binder.settle_needs();
    if !binder.reordered.is_empty() {
        planned.columns = as_shown(&planned.columns, &binder.reordered);
    }
    planned.alone = statement.alone();
    planned.zone = binder.zone;
    planned.path = cx.path.into();
    planned.viewer = cx.viewer;
    planned.needs = binder.needs;
    Ok(Arc::new(planned))
}

/// Columns of results with the numbers that the catalog shows.
fn as_shown(columns: &[OutColumn], reordered: &[Arc<Table>]) -> Arc<[OutColumn]> {
    let shown = columns.iter().map(|column| {
        let mut tables = reordered.iter();
        let table = tables.find(|table| table.id.0 == column.table);
        let place = usize::try_from(column.attribute - 1);
        let attribute = match (table, place) {
            (Some(table), Ok(place)) => table.shown_at(place) as i16 + 1,
            _ => column.attribute,
        };
        OutColumn {
            attribute,
            ..column.clone()
        }
    });
    shown.collect()
}

/// A plan of a statement without parameters and result.
fn plain(binder: &Binder<'_>, kind: PlanKind) -> Plan {
    Plan::plain(kind, binder.cx.catalog.version)
}

fn dispatch(statement: &Statement, binder: &mut Binder<'_>) -> Result<Plan, SqlError> {
    Ok(match statement.kind() {
        Kind::Session(command) => plain(binder, PlanKind::Session(command.clone())),
        Kind::Nothing(tag) => nothing(tag, binder),
        kind @ (Kind::Lock(_) | Kind::Upkeep(_) | Kind::Reindex(_)) => upkeep::plan(kind, binder)?,
        Kind::Constraints(set) => plain(binder, PlanKind::Constraints(binder.constraints(set)?)),
        Kind::Show(what) => show(what, binder)?,
        Kind::Prepare {
            name,
            types,
            statement,
        } => {
            let types = types
                .iter()
                .map(|ty| bind::types::bind_type(ty, &binder.names()));
            let command = SessionCommand::Prepare {
                name: name.clone(),
                types: types.collect::<Result<_, _>>()?,
                statement: statement.clone(),
            };
            plain(binder, PlanKind::Session(command))
        }
        Kind::Execute { name, args } => {
            let (name, args) = (name.clone(), constants(args, binder)?);
            let command = SessionCommand::Execute { name, args };
            plain(binder, PlanKind::Session(command))
        }
        Kind::Explain { options, statement } => explain(statement, *options, binder)?,
        Kind::Copy(copy) => copy::plan(copy, binder)?,
        Kind::CreateDatabase { .. }
        | Kind::DropDatabase { .. }
        | Kind::AlterDatabase { .. }
        | Kind::AlterRelation(_)
        | Kind::Comment(_)
        | Kind::Rights(_)
        | Kind::Policy(_)
        | Kind::Absent(_)
        | Kind::Schema(_)
        | Kind::CreateTable(_)
        | Kind::AlterTable(_)
        | Kind::CreateView(_)
        | Kind::RenameView(_)
        | Kind::DropViews(_)
        | Kind::Enum(_)
        | Kind::Domain(_)
        | Kind::Routine(_)
        | Kind::CreateIndex(_) => schema_change(statement, binder)?,
        Kind::Call(function) => routine::call(function, binder)?,
        Kind::Stored(stored) => match crate::ddl::stored::refresh(stored, binder)? {
            Some(kind) => plain(binder, kind),
            None => schema_change(statement, binder)?,
        },
        Kind::CreateTableAs(statement) => {
            changes(crate::ddl::table_as::plan(statement, binder)?, binder)
        }
        Kind::Insert(ast, words) => match ast.as_ref() {
            ast::Statement::Insert(insert) => write::insert(insert, words, binder)?,
            _ => {
                let message = "syntax error at or near \"OVERRIDING\"";
                return Err(SqlError::new(SqlState::SYNTAX, message));
            }
        },
        kind @ (Kind::With(_) | Kind::Merge(_)) => parts::statement(kind, binder)?,
        Kind::Sql(ast) => match rows_statement(ast, binder)? {
            Some(plan) => plan,
            None => schema_change(statement, binder)?,
        },
    })
}

fn schema_change(statement: &Statement, binder: &mut Binder<'_>) -> Result<Plan, SqlError> {
    let change = crate::ddl::plan(statement.kind(), binder)?;
    Ok(changes(PlanKind::Ddl(change), binder))
}

/// Whoever makes a view or a default, or a table without the rows of its query, needs no privilege
/// on what is in it: whoever uses it does.
fn changes(kind: PlanKind, binder: &mut Binder<'_>) -> Plan {
    if matches!(kind, PlanKind::Ddl(_)) {
        binder.needs = core::mem::take(&mut binder.needs_of_change);
    }
    plain(binder, kind)
}

/// What does nothing.
fn nothing(tag: &'static str, binder: &mut Binder<'_>) -> Plan {
    if tag == "CHECKPOINT" {
        binder.need_superuser("must be superuser to do CHECKPOINT");
    }
    plain(binder, PlanKind::Nothing(tag))
}

/// Plans a statement over rows; `None` for other statements.
fn rows_statement(ast: &ast::Statement, binder: &mut Binder<'_>) -> Result<Option<Plan>, SqlError> {
    Ok(Some(match ast {
        ast::Statement::Query(query) => query_plan(query, binder)?,
        ast::Statement::Insert(insert) => write::insert(insert, &InsertWords::default(), binder)?,
        ast::Statement::Update {
            table,
            assignments,
            from,
            selection,
            returning,
            or,
        } => {
            binder.no(or.is_some(), "OR")?;
            let (from, selection) = (from.as_ref(), selection.as_ref());
            let returning = returning.as_deref();
            let bound = binder.update(table, assignments, from, selection, returning)?;
            write::write(bound, binder)?
        }
        ast::Statement::Delete(delete) => {
            let bound = binder.delete(delete)?;
            write::write(bound, binder)?
        }
        ast::Statement::Truncate {
            table_names,
            partitions,
            // The word is PostgreSQL's, too, and no table has children.
            table: _,
            only: _,
            identity,
            cascade,
            on_cluster,
        } => {
            binder.no(partitions.is_some(), "PARTITION")?;
            binder.no(on_cluster.is_some(), "ON")?;
            let restarts = matches!(identity, Some(ast::TruncateIdentityOption::Restart));
            let names: Vec<_> = table_names
                .iter()
                .map(|ast::TruncateTableTarget { name }| name)
                .collect();
            let cascade = matches!(cascade, Some(ast::CascadeOption::Cascade));
            write::truncate(&names, (cascade, restarts), binder)?
        }
        _ => return Ok(None),
    }))
}

fn show(what: &ShowWhat, binder: &mut Binder<'_>) -> Result<Plan, SqlError> {
    let mut plan = match what {
        ShowWhat::Setting(name) => {
            let command = SessionCommand::ShowSetting(name.clone());
            let known = name.as_deref().and_then(pg_catalog::settings::lookup);
            let names: &[&str] = match name {
                Some(_) if known.is_some() => &[known.map_or("", |setting| setting.name)],
                Some(name) => &[name],
                None => &["name", "setting", "description"],
            };
            let mut plan = plain(binder, PlanKind::Session(command));
            plan.columns = names.iter().map(|name| text_column(name)).collect();
            plan
        }
        ShowWhat::Cluster(show) => {
            let mut plan = match *show {
                Show::TransactionCost => plain(
                    binder,
                    PlanKind::Session(SessionCommand::ShowTransactionCost),
                ),
                show => {
                    let words = show.words().join(" ");
                    binder.need_superuser(&format!("permission denied to show {words}"));
                    run_plan(binder, Action::Show(show), Vec::new(), 0)?
                }
            };
            plan.columns = show.columns().into();
            plan
        }
    };
    plan.returns_rows = true;
    Ok(plan)
}

/// Values of the arguments of EXECUTE.
fn constants(args: &[ast::Expr], binder: &mut Binder<'_>) -> Result<Vec<Datum>, SqlError> {
    let mut values = Vec::with_capacity(args.len());
    for arg in args {
        let mut bound = binder.expr(arg)?;
        binder.settle(&mut bound);
        let open = |node: &Expr| matches!(node, Expr::Param(..) | Expr::Subquery(..));
        if walk::any(&bound, &open) {
            return Err(bind::unsupported("an argument that is not a constant"));
        }
        values.push(expr::fold::constant(&bound)?);
    }
    Ok(values)
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
        Action::Insert(_)
            | Action::Write(_)
            | Action::Parts(_)
            | Action::Truncate(..)
            | Action::CopyFrom(_)
    ) || matches!(&action, Action::Point(point) if point.writes())
        || inits.iter().any(|init| {
            matches!(&init.value, InitValue::Call(call)
            if match &call.kind {
                bind::rel::CallKind::Nextval(_) => true,
                bind::rel::CallKind::Sequence(call, _, _) => call.writes(),
                _ => false,
            })
        });
    let slots = binder.slots();
    let run = Run {
        inits,
        slots,
        planned: version,
        action,
        steps,
        sizes: binder.sizes,
    };
    let reads = if writes || binder.locks {
        Reads::Keys
    } else {
        run.reads()
    };
    Ok(Plan {
        kind: PlanKind::Run(run),
        params: binder.params.clone(),
        columns: Arc::from([]),
        returns_rows: false,
        catalog_version: version,
        writes,
        locks: binder.locks,
        locked: binder.locked.as_slice().into(),
        reads,
        zone: Box::default(),
        path: Box::default(),
        objects: binder.objects,
        alone: None,
        work: binder.work,
        by_rows: binder.by_rows,
        reads_session: binder.reads_session,
        by_values: binder.by_values,
        needs: rights::Needs::default(),
        viewer: rights::Viewer::default(),
    })
}

fn query_plan(query: &ast::Query, binder: &mut Binder<'_>) -> Result<Plan, SqlError> {
    if let Some(call) = binder.run_by(query)? {
        return routine::run(call, false, binder);
    }
    let bound = binder.query(query)?;
    finished_query(bound, binder)
}

fn finished_query(bound: BoundQuery, binder: &mut Binder<'_>) -> Result<Plan, SqlError> {
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
    options: ExplainOptions,
    binder: &mut Binder<'_>,
) -> Result<Plan, SqlError> {
    let inner = dispatch(statement, binder)?;
    let PlanKind::Run(run) = inner.kind else {
        return Err(SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            "EXPLAIN of this kind of statement is not supported",
        ));
    };
    if matches!(run.action, Action::Routine(_)) {
        return Err(routine::not_explained());
    }
    let steps = run.steps;
    let types = inner.params.clone().into();
    let outer = Run {
        inits: Vec::new(),
        slots: run.slots,
        planned: run.planned,
        steps,
        sizes: false,
        action: Action::Explain {
            run: Box::new(run),
            again: (statement.text().len() < LONG_BYTES).then(|| (statement.clone(), types)),
            options,
        },
    };
    let analyze = options.analyze;
    let reads = if analyze { inner.reads } else { Reads::Keys };
    Ok(Plan {
        kind: PlanKind::Run(outer),
        columns: Arc::from([text_column("QUERY PLAN")]),
        returns_rows: true,
        writes: inner.writes && analyze,
        locks: inner.locks && analyze,
        locked: match analyze {
            true => inner.locked,
            false => Box::default(),
        },
        reads,
        ..inner
    })
}

/// Plans relations; numbers the steps.
pub(crate) struct Planner<'b, 'a> {
    pub(crate) binder: &'b mut Binder<'a>,
    pub(crate) next_step: u32,
    /// Relations that are being planned, one inside the other.
    depth: u32,
    /// How many rows the parts of the statement have, about.
    part_rows: Vec<f64>,
    /// What the indexes of tables compute.
    computed: Vec<(TableId, Rc<Computed>)>,
}

/// Deepest nesting of relations: planning and running them recurse.
const DEPTH_MAX: u32 = 250;

impl<'b, 'a> Planner<'b, 'a> {
    pub(crate) fn new(binder: &'b mut Binder<'a>) -> Planner<'b, 'a> {
        Planner {
            binder,
            next_step: 0,
            depth: 0,
            part_rows: Vec::new(),
            computed: Vec::new(),
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

    /// Rows of a table, about.
    pub(super) fn rows_of(&self, table: &Table) -> f64 {
        let known = (self.binder.cx.rows)(table.id);
        known.map_or(estimate::UNKNOWN_ROWS, |rows| rows as f64)
    }

    /// What is known of the values of a table.
    pub(super) fn values_of(&self, table: &Table) -> Option<Arc<TableValues>> {
        (self.binder.cx.values)(table.id)
    }

    /// The relation with all parameter types known and constants computed.
    pub(crate) fn settled(&self, mut rel: Rel) -> Rel {
        rel.each_expr_mut(&mut |expr| {
            self.binder.settle(expr);
            expr::fold::fold(expr);
        });
        rel
    }

    /// As [`Planner::settled`] for a single expression, which a row will reach.
    ///
    /// # Errors
    /// Those of computing constants.
    pub(crate) fn settled_expr(&self, mut expr: Expr) -> Result<Expr, SqlError> {
        self.binder.settle(&mut expr);
        expr::fold::fold(&mut expr);
        expr::fold::check(&expr)?;
        Ok(expr)
    }

    /// Plans the values that are computed when the statement starts.
    fn inits(&mut self) -> Result<Vec<Init<Step>>, SqlError> {
        let inits = core::mem::take(&mut self.binder.inits);
        let mut planned = Vec::new();
        for Init { slot, value } in inits {
            let value = match value {
                InitValue::Expr(expr) => InitValue::Expr(self.settled_expr(expr)?),
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

//! Row programs: filters, projections, partial aggregates and single-row updates that run where
//! the rows are.
//!
//! A program is a body, made once per plan, and the values of the parameters that the body reads.
//! Bodies number those parameters from 0 without gaps, so a program carries no others.

mod aggregated;
mod computed;
mod first;
mod formula;
mod top;

use crate::aggregate::AggFunc;
use crate::rows::failing_row;
use crate::{Columns as RowColumns, EncodedRow, Env, Expr, NoColumns, eval, eval_bool, list};
use aggregated::AggregateTask;
use base::codec::{self, CodecError};
use base::limits::PROGRAM_BYTES_MAX;
use base::row::RowRef;
use base::{Datum, Range, RowBatch, SqlError, SqlState, Type};
pub use computed::{is_computable, makes_null, uncomputable};
pub use first::FIRST_ROWS_MAX;
use first::FirstTask;
pub use formula::{ChangeKind, FormulaChange, formula};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use top::TopTask;
use txn::{Columns, Formula, Modified, Program, RowProgram, RowTask};

/// What a program does, without its parameters.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum Body {
    /// Rows that pass the filter, projected.
    Rows {
        filter: Option<Expr>,
        projection: Vec<Expr>,
    },
    /// Partial aggregates: group columns, then the partial states of each aggregate.
    Aggregate {
        filter: Option<Expr>,
        group: Vec<Expr>,
        aggregates: Vec<PartialAggregate>,
    },
    /// The first rows in an order, projected; ties are broken by arrival.
    Top {
        filter: Option<Expr>,
        projection: Vec<Expr>,
        keys: Vec<TopKey>,
        count: Expr,
    },
    /// The first rows in the order of their keys in the index (the last ones if `reverse`),
    /// projected; behind each its key, if it is `keyed`.
    First {
        filter: Option<Expr>,
        projection: Vec<Expr>,
        count: Expr,
        reverse: bool,
        keyed: bool,
    },
    /// One row changed in place.
    Modify(Box<ModifyBody>),
}

/// A sort key of [`Body::Top`]: a column of the projection.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct TopKey {
    /// Its place in the projection, from 0.
    pub column: u32,
    /// The largest values come first.
    pub descending: bool,
    /// NULLs come before all values.
    pub nulls_first: bool,
}

/// An aggregate as the shards compute it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct PartialAggregate {
    /// What is computed.
    pub func: AggFunc,
    /// Its arguments over the row.
    pub args: Vec<Expr>,
    /// Equal arguments count once.
    pub distinct: bool,
    /// Only rows for which this is true count.
    pub filter: Option<Expr>,
}

/// UPDATE or DELETE of one row by its key.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ModifyBody {
    /// The row is changed only if this is true of it.
    pub filter: Option<Expr>,
    /// New values over the old row; `None`: the row goes.
    pub assignments: Option<Vec<(u16, Expr)>>,
    /// Conditions over the new row, with the constraints' names.
    pub checks: Vec<(String, Expr)>,
    /// What errors say of the table.
    pub shape: TableShape,
    /// Over the new row (the old one of a deletion).
    pub returning: Vec<Expr>,
    /// The assignments as changes that commute, with the guards that stand for `filter`, `checks`
    /// and the conditions of CASE: one list for each case. Of the guards of several lists, those of
    /// one at most hold on a row. Where none hold, the other fields say what is done. Empty: the
    /// program is no formula.
    pub cases: Vec<Vec<FormulaChange>>,
}

/// What errors about a row need to know of its table.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct TableShape {
    /// Its name.
    pub table: String,
    /// Names and types of its columns, hidden ones included.
    pub columns: Vec<(String, Type)>,
    /// Columns that cannot be NULL.
    pub not_null: Vec<u16>,
    /// Places of the columns in the order in which statements see them; empty: as they are.
    pub shown: Vec<u16>,
}

/// A body and the statement parameters that it reads, in the order of its own numbers.
#[derive(Clone)]
pub struct ProgramPlan {
    body: Arc<Body>,
    used: Box<[u32]>,
    facts: Facts,
    /// The program itself if it has no parameters.
    ready: Option<Arc<dyn RowProgram>>,
}

/// The program that gives all columns of rows of these types as they are: for rows that no
/// statement reads (counters of sequences).
pub fn whole_row(types: &[Type]) -> Program {
    let columns = types
        .iter()
        .enumerate()
        .map(|(at, ty)| Expr::Column(at as u32, *ty));
    ProgramPlan::new(Body::Rows {
        filter: None,
        projection: columns.collect(),
    })
    .bind(&[])
}

impl ProgramPlan {
    /// Renumbers the parameters of `body`.
    pub fn new(mut body: Body) -> ProgramPlan {
        let mut used: Vec<u32> = Vec::new();
        let mut bytes = 0;
        body.each_expr_mut(&mut |expr| {
            crate::walk::map(expr, &mut |node| {
                bytes += match node {
                    Expr::Const(value, _) => datum_bytes(value),
                    _ => NODE_BYTES,
                };
                if let Expr::Param(slot, _) = node {
                    let index = used
                        .iter()
                        .position(|known| known == slot)
                        .unwrap_or_else(|| {
                            used.push(*slot);
                            used.len() - 1
                        });
                    *slot = index as u32;
                }
            });
            list::prepare(expr);
        });
        let facts = Facts {
            reads: body.reads(),
            cost: body.cost(),
            bytes,
            encoded: (bytes >= LONG_BODY_BYTES).then(|| codec::to_vec(&body).into()),
        };
        let body = Arc::new(body);
        let ready = used.is_empty().then(|| {
            let program = Bound::new(body.clone(), Box::default(), facts.clone());
            Arc::new(program) as Arc<dyn RowProgram>
        });
        ProgramPlan {
            body,
            used: used.into(),
            facts,
            ready,
        }
    }

    /// What the program does, with parameters numbered as the program has them.
    pub fn body(&self) -> &Body {
        &self.body
    }

    /// The program for these values of the statement's parameters.
    pub fn bind(&self, params: &[Datum]) -> Program {
        Program::Live(match &self.ready {
            Some(ready) => ready.clone(),
            None => {
                let params = self
                    .used
                    .iter()
                    .map(|slot| params[*slot as usize].clone())
                    .collect();
                Arc::new(Bound::new(self.body.clone(), params, self.facts.clone()))
            }
        })
    }

    /// A copy of the body with the statement's own parameter numbers.
    pub fn unbound(&self) -> Body {
        let mut body = (*self.body).clone();
        body.each_expr_mut(&mut |expr| {
            crate::walk::map(expr, &mut |node| {
                if let Expr::Param(index, _) = node {
                    *index = self.used[*index as usize];
                }
            });
        });
        body
    }
}

impl Body {
    /// Visits each of its expressions.
    pub fn each_expr_mut(&mut self, visit: &mut dyn FnMut(&mut Expr)) {
        match self {
            Body::Rows { filter, projection } => {
                filter.iter_mut().chain(projection).for_each(visit);
            }
            Body::Top {
                filter,
                projection,
                count,
                ..
            }
            | Body::First {
                filter,
                projection,
                count,
                ..
            } => {
                filter.iter_mut().chain(projection).for_each(&mut *visit);
                visit(count);
            }
            Body::Aggregate {
                filter,
                group,
                aggregates,
            } => {
                filter.iter_mut().chain(group).for_each(&mut *visit);
                for aggregate in aggregates {
                    aggregate.args.iter_mut().for_each(&mut *visit);
                    aggregate.filter.iter_mut().for_each(&mut *visit);
                }
            }
            Body::Modify(modify) => {
                modify.filter.iter_mut().for_each(&mut *visit);
                for (_, value) in modify.assignments.iter_mut().flatten() {
                    visit(value);
                }
                modify.checks.iter_mut().for_each(|(_, check)| visit(check));
                for change in modify.cases.iter_mut().flatten() {
                    visit(&mut change.operand);
                }
                modify.returning.iter_mut().for_each(visit);
            }
        }
    }

    /// The columns that its expressions look at.
    fn reads(&mut self) -> Columns {
        let mut reads = Columns::NONE;
        self.each_expr_mut(&mut |expr| {
            reads = reads.union(crate::walk::columns(expr).into_iter().collect());
        });
        reads
    }

    /// What it costs for one row.
    fn cost(&mut self) -> Cost {
        let (mut nodes, mut open_lists) = (0, false);
        self.each_expr_mut(&mut |expr| {
            nodes += list::nodes(expr);
            open_lists |= list::has_open_lists(expr);
        });
        let units = list::units_of_row(nodes);
        Cost { units, open_lists }
    }

    fn width(&self) -> usize {
        match self {
            Body::Rows { projection, .. } | Body::Top { projection, .. } => projection.len(),
            Body::First {
                projection, keyed, ..
            } => projection.len() + usize::from(*keyed),
            Body::Aggregate {
                group, aggregates, ..
            } => {
                let states = aggregates.iter().map(|a| a.func.partial_width(a.distinct));
                group.len() + states.sum::<usize>()
            }
            Body::Modify(modify) => modify.returning.len(),
        }
    }
}

/// What a body costs for one row.
#[derive(Clone, Copy, Default)]
struct Cost {
    /// Units of work.
    units: u32,
    /// It has long lists or arrays that are quick with the values of the parameters.
    open_lists: bool,
}

/// What follows from a body.
#[derive(Clone, Default)]
struct Facts {
    reads: Columns,
    cost: Cost,
    /// Of the encoded body, at most; only where the program is made.
    bytes: usize,
    /// The encoded body, if it is long: it is encoded where it is planned or decoded, beside the
    /// shard, and not on the shard for each one that it goes to.
    encoded: Option<Arc<[u8]>>,
}

/// A body of this many bytes or more is kept encoded. Most statements that are planned on a
/// shard's thread have shorter ones.
const LONG_BODY_BYTES: usize = 128 << 10;

/// A program ready to run. `encode` repeats which fields travel, and in which order.
#[derive(Serialize, Deserialize)]
struct Bound {
    body: Arc<Body>,
    params: Box<[Datum]>,
    #[serde(skip)]
    facts: Facts,
    /// The body with constants for its open lists, if it is to run over many rows; it does not
    /// travel.
    #[serde(skip)]
    quick: Option<Arc<Body>>,
    /// What [`Body::Modify`] does to a row: the one of these whose guards hold. They travel with
    /// the rest, so that nothing is evaluated before a shard runs the program.
    formulas: Box<[Formula]>,
}

impl Bound {
    fn new(body: Arc<Body>, params: Box<[Datum]>, facts: Facts) -> Bound {
        let formulas = match &*body {
            Body::Modify(modify) => {
                let env = Env::of_program(&params);
                // The ordinary way raises the error of an operand.
                let cases = modify.cases.iter();
                let formulas = cases.map(|case| formula(case, &env).ok().flatten());
                formulas.collect::<Option<Box<[Formula]>>>()
            }
            Body::Rows { .. } | Body::Aggregate { .. } | Body::Top { .. } | Body::First { .. } => {
                None
            }
        };
        Bound {
            body,
            params,
            facts,
            quick: None,
            formulas: formulas.unwrap_or_default(),
        }
    }

    /// The body that is run.
    fn running(&self) -> &Arc<Body> {
        self.quick.as_ref().unwrap_or(&self.body)
    }

    fn env(&self) -> Env<'_> {
        Env::of_program(&self.params)
    }
}

fn passes(filter: &Option<Expr>, row: &dyn RowColumns, env: &Env<'_>) -> Result<bool, SqlError> {
    match filter {
        None => Ok(true),
        Some(filter) => Ok(eval_bool(filter, row, env)? == Some(true)),
    }
}

fn project(
    exprs: &[Expr],
    row: &dyn RowColumns,
    env: &Env<'_>,
    out: &mut RowBatch,
) -> Result<(), SqlError> {
    let before = out.datums.len();
    for expr in exprs {
        let value = match expr {
            Expr::Column(index, ty) => row.column(*index, *ty),
            other => eval(other, row, env),
        };
        match value {
            Ok(value) => out.datums.push(value),
            Err(error) => {
                out.datums.truncate(before);
                return Err(error);
            }
        }
    }
    let bytes: usize = out.datums[before..].iter().map(datum_bytes).sum();
    if bytes > PROGRAM_BYTES_MAX {
        out.datums.truncate(before);
        let message = format!("row is too big: size {bytes}, maximum size {PROGRAM_BYTES_MAX}");
        return Err(SqlError::new(SqlState::PROGRAM_LIMIT, message));
    }
    out.rows += 1;
    Ok(())
}

/// Most bytes of an encoded expression without what is below it, and of a value that is not text.
const NODE_BYTES: usize = 16;

/// Bytes of an encoded value, about, rather more.
fn datum_bytes(value: &Datum) -> usize {
    match value {
        Datum::Text(text) => NODE_BYTES + text.len(),
        Datum::Bytes(bytes) => NODE_BYTES + bytes.len(),
        Datum::Bits(bits) => NODE_BYTES + bits.encoded().len(),
        Datum::Array(items) => NODE_BYTES + items.iter().map(datum_bytes).sum::<usize>(),
        Datum::Record(record) => {
            let values = record.values().iter().map(datum_bytes).sum::<usize>();
            NODE_BYTES * (1 + record.values().len()) + values
        }
        Datum::Range(range) => NODE_BYTES + range.values().iter().map(datum_bytes).sum::<usize>(),
        Datum::Multirange(value) => {
            let values = value.ranges().iter().flat_map(Range::values);
            NODE_BYTES * (1 + value.ranges().len()) + values.map(datum_bytes).sum::<usize>()
        }
        Datum::Large(value) => NODE_BYTES + value.heap_bytes(),
        Datum::Grid(grid) => 4 * NODE_BYTES + grid.items().iter().map(datum_bytes).sum::<usize>(),
        _ => NODE_BYTES,
    }
}

impl RowProgram for Bound {
    fn encode(&self, out: &mut Vec<u8>) {
        match &self.facts.encoded {
            None => codec::encode(self, out),
            Some(body) => {
                out.extend_from_slice(body);
                codec::encode(&self.params, out);
                codec::encode(&self.formulas, out);
            }
        }
    }

    fn bytes_at_most(&self) -> usize {
        let changes = self.formulas.iter().flat_map(|formula| &formula.0);
        let changes = changes.map(|change| NODE_BYTES + change.op.size_bytes());
        let params = self.params.iter().map(datum_bytes);
        self.facts.bytes + params.chain(changes).sum::<usize>()
    }

    fn width(&self) -> usize {
        self.body.width()
    }

    fn reads(&self) -> Columns {
        self.facts.reads
    }

    fn units(&self) -> u32 {
        self.facts.cost.units
    }

    fn for_many_rows(&self) -> Option<Arc<dyn RowProgram>> {
        self.facts.cost.open_lists.then(|| {
            let mut body = (*self.body).clone();
            let env = self.env();
            body.each_expr_mut(&mut |expr| list::with_constants(expr, &env));
            let cost = Cost {
                open_lists: false,
                ..body.cost()
            };
            Arc::new(Bound {
                body: self.body.clone(),
                params: self.params.clone(),
                facts: Facts {
                    cost,
                    ..self.facts.clone()
                },
                quick: Some(Arc::new(body)),
                formulas: self.formulas.clone(),
            }) as Arc<dyn RowProgram>
        })
    }

    fn formulas(&self) -> &[Formula] {
        &self.formulas
    }

    fn point(&self, row: &[u8], out: &mut RowBatch) -> Result<bool, SqlError> {
        let Body::Rows { filter, projection } = &**self.running() else {
            panic!("an aggregating or changing program is run row by row");
        };
        let row = EncodedRow(RowRef::new(row));
        let env = self.env();
        if !passes(filter, &row, &env)? {
            return Ok(false);
        }
        project(projection, &row, &env, out)?;
        Ok(true)
    }

    fn modify(&self, row: &[u8], out: &mut RowBatch) -> Result<Modified, SqlError> {
        let Body::Modify(body) = &**self.running() else {
            panic!("a reading program is run to change a row");
        };
        let env = self.env();
        let old = RowRef::new(row);
        if !passes(&body.filter, &EncodedRow(old), &env)? {
            return Ok(Modified::Skipped);
        }
        let Some(assignments) = &body.assignments else {
            if !body.returning.is_empty() {
                project(&body.returning, &EncodedRow(old), &env, out)?;
            }
            return Ok(Modified::Delete);
        };
        let mut new = Vec::with_capacity(row.len() + 16);
        let formula = self.formulas.iter().find(|formula| formula.holds(row));
        if let Some(formula) = formula {
            formula.fold(row, &mut new)?;
        } else if let [(column, value)] = assignments.as_slice() {
            let value = eval(value, &EncodedRow(old), &env)?;
            old.replace(usize::from(*column), &value, &mut new)
                .map_err(corrupt)?;
        } else {
            let mut changes = Vec::with_capacity(assignments.len());
            for (column, value) in assignments {
                changes.push((usize::from(*column), eval(value, &EncodedRow(old), &env)?));
            }
            old.replace_columns(&changes, &mut new).map_err(corrupt)?;
        }
        let row = RowRef::new(&new);
        let changed = |column: &u16| assignments.iter().any(|(c, _)| c == column);
        for column in body.shape.not_null.iter().filter(|column| changed(column)) {
            if row.is_null(usize::from(*column)) {
                return Err(body.shape.null_error(*column, &row));
            }
        }
        for (name, check) in &body.checks {
            let holds = eval(check, &EncodedRow(row), &env)?;
            if holds == Datum::Bool(false) {
                return Err(body.shape.check_error(name, &row));
            }
        }
        if !body.returning.is_empty() {
            project(&body.returning, &EncodedRow(row), &env, out)?;
        }
        Ok(match formula {
            Some(formula) => Modified::Formula(formula.clone()),
            None => Modified::Put(new),
        })
    }

    fn task(&self) -> Option<Box<dyn RowTask>> {
        match &**self.running() {
            Body::Rows { .. } | Body::Modify(_) => None,
            Body::Aggregate { .. } => Some(Box::new(AggregateTask::new(
                self.running().clone(),
                self.params.clone(),
            ))),
            Body::Top { projection, .. } => {
                let (body, params) = (self.running().clone(), self.params.clone());
                Some(Box::new(TopTask::new(body, params, projection.len())))
            }
            Body::First { .. } => Some(Box::new(FirstTask::new(
                self.running().clone(),
                self.params.clone(),
            ))),
        }
    }
}

/// The number that a row count stands for; NULL is no limit.
fn wanted_rows(count: &Expr, params: &[Datum]) -> Result<usize, SqlError> {
    let count = eval(count, &NoColumns, &Env::of_program(params))?.as_int();
    Ok(count.map_or(usize::MAX, |count| usize::try_from(count).unwrap_or(0)))
}

fn corrupt(error: CodecError) -> SqlError {
    SqlError::new(SqlState::DATA_CORRUPTED, format!("malformed row: {error}"))
}

impl TableShape {
    fn decoded(&self, row: &RowRef<'_>) -> Vec<Datum> {
        let columns = self.columns.iter().enumerate();
        columns
            .map(|(i, (_, ty))| row.col(i, *ty).unwrap_or(Datum::Null))
            .collect()
    }

    fn failing_row(&self, row: &[Datum]) -> String {
        if self.shown.is_empty() {
            return failing_row(&self.columns, row);
        }
        let places = self.shown.iter().map(|at| usize::from(*at));
        let columns: Vec<_> = places.clone().map(|at| self.columns[at].clone()).collect();
        let row: Vec<_> = places.map(|at| row[at].clone()).collect();
        failing_row(&columns, &row)
    }

    fn null_error(&self, column: u16, row: &RowRef<'_>) -> SqlError {
        self.null_violation(column, &self.decoded(row))
    }

    /// 23502 for a row.
    pub fn null_violation(&self, column: u16, row: &[Datum]) -> SqlError {
        let name = &self.columns[usize::from(column)].0;
        let message = format!(
            "null value in column \"{name}\" of relation \"{}\" violates not-null constraint",
            self.table
        );
        SqlError::new(SqlState::NOT_NULL, message)
            .detail(self.failing_row(row))
            .table(&self.table)
            .column(name)
    }

    fn check_error(&self, constraint: &str, row: &RowRef<'_>) -> SqlError {
        self.check_violation(constraint, &self.decoded(row))
    }

    /// 23514 for a row.
    pub fn check_violation(&self, constraint: &str, row: &[Datum]) -> SqlError {
        let message = format!(
            "new row for relation \"{}\" violates check constraint \"{constraint}\"",
            self.table
        );
        SqlError::new(SqlState::CHECK, message)
            .detail(self.failing_row(row))
            .table(&self.table)
            .constraint(constraint)
    }
}

/// Makes a program from its encoded form, for [`txn::Cx::decode`].
///
/// # Errors
/// If the bytes are not a program, or one that is nested more than [`codec::DEPTH_MAX`] deep.
pub fn decode_program(bytes: &[u8]) -> Result<Arc<dyn RowProgram>, CodecError> {
    let mut bound = codec::decode_bounded::<Bound>(bytes)?;
    let body = Arc::make_mut(&mut bound.body);
    body.each_expr_mut(&mut |expr| list::prepare(expr));
    (bound.facts.reads, bound.facts.cost) = (body.reads(), body.cost());
    // It may be sent on.
    bound.facts.encoded = (bytes.len() >= LONG_BODY_BYTES).then(|| codec::to_vec(body).into());
    Ok(Arc::new(bound))
}

#[cfg(test)]
mod tests;

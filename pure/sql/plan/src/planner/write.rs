//! INSERT, UPDATE, DELETE, TRUNCATE: sources of rows and how tables are written.

use super::{Planner, point, run_plan};
use crate::formula::{self, Obstacle};
use crate::plan::Plan;
use crate::step::{
    Action, ChildKey, ConflictPlan, ConflictUpdate, InsertPlan, KeyRows, ParentKey, Step, StepOp,
    WritePlan, Writer, table_index,
};
use base::{Datum, OutColumn, SqlError, SqlState, Type};
use bind::PlanCx;
use bind::rel::Rel;
use bind::scope::object_name;
use bind::{
    Binder, BoundAssignment, BoundInsert, BoundWrite, Conflict, ConflictAction, unsupported,
};
use catalog::{Column, ColumnState, DOMAINS, ForeignKey, Table, Validity};
use expr::program::TableShape;
use expr::{Compare, Expr, Func, walk};
use parse::{InsertWords, Statement};
use pg_catalog::names::known_schema;
use sqlparser::ast;
use std::sync::Arc;
use txn::LockMode;

/// What a statement does with its table; decides which constraints can be concerned.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    Insert,
    Change,
}

/// The name of a column in errors about rows, which leave out those that begin with a dollar sign.
fn shown_name(column: &Column) -> String {
    match column.state {
        ColumnState::Ready | ColumnState::Checking => column.name.clone(),
        ColumnState::Filling | ColumnState::Dropped => format!("${}", column.name),
    }
}

pub(super) fn shape(table: &Table) -> TableShape {
    TableShape {
        table: table.name.clone(),
        columns: table
            .columns
            .iter()
            .map(|column| (shown_name(column), column.ty))
            .collect(),
        not_null: table
            .columns
            .iter()
            .enumerate()
            .filter(|(_, column)| match column.state {
                ColumnState::Ready => column.not_null && !column.hidden,
                ColumnState::Checking => true,
                // It is computed whenever the row is written.
                ColumnState::Filling => column.not_null && column.shown_at.is_some(),
                ColumnState::Dropped => false,
            })
            .map(|(i, _)| i as u16)
            .collect(),
        shown: match table.is_reordered() {
            true => table.shown(),
            false => Vec::new(),
        },
    }
}

/// A condition over the columns of a table. A row that was not filled yet is checked when it is.
fn if_filled(table: &Table, mut condition: Expr) -> Expr {
    for (at, column) in table.columns.iter().enumerate() {
        let reads = |node: &Expr| matches!(node, Expr::Column(i, _) if *i as usize == at);
        let drawn = column.default.is_some() || column.generated.is_some();
        let defaults = column.state == ColumnState::Filling && drawn;
        if defaults && walk::any(&condition, &reads) {
            let unfilled = Expr::IsNull(Box::new(Expr::Column(at as u32, column.ty)), false);
            condition = Expr::Case {
                arms: vec![(unfilled, Expr::Const(Datum::Bool(true), Type::Bool))],
                otherwise: Box::new(condition),
                ty: Type::Bool,
            };
        }
    }
    condition
}

impl Planner<'_, '_> {
    /// How the rows of `table` are written, and the tables that follow from it.
    pub(super) fn writers(
        &mut self,
        table: &Arc<Table>,
        purpose: Purpose,
    ) -> Result<Arc<[Writer]>, SqlError> {
        let mut writers: Vec<Writer> = Vec::new();
        let mut names = vec![table.clone()];
        while writers.len() < names.len() {
            let table = names[writers.len()].clone();
            let change = purpose == Purpose::Change || !writers.is_empty();
            let writer = self.writer(&table, change, &mut names)?;
            writers.push(writer);
        }
        Ok(writers.into())
    }

    fn writer(
        &mut self,
        table: &Arc<Table>,
        change: bool,
        names: &mut Vec<Arc<Table>>,
    ) -> Result<Writer, SqlError> {
        // New rows have no value for a column that is to be NOT NULL before rows can give one.
        let lacks_value = table.columns.iter().any(|column| {
            let default = column.default.is_some() || column.generated.is_some();
            let drawn = column.identity.is_some() || default;
            column.state == ColumnState::Filling && column.not_null && !drawn
        });
        if table.frozen || lacks_value {
            let message = format!("table \"{}\" is being changed", table.name);
            return Err(SqlError::new(SqlState::SERIALIZATION, message)
                .hint("The transaction may be tried again."));
        }
        let mut checks = self.domain_checks(table, "")?;
        for check in &table.checks {
            let name = catalog::without_mark(&check.name);
            checks.push((name, self.check(table, &check.expression)?));
        }
        let generated = self.generated(table)?;
        let cx = self.binder.cx;
        let checks_keys = cx.viewer.checks_keys;
        let keys = table.foreign_keys.iter();
        let keys = keys.filter(|key| checks_keys && !key.child_off);
        let parents = keys
            .map(|key| self.parent(key))
            .collect::<Result<Vec<_>, _>>()?;
        let mut children = Vec::new();
        if change && checks_keys {
            for (child, name) in &table.referenced_by {
                let child = self.binder.table_of(child)?;
                let key = child.foreign_keys.iter().find(|key| key.name == *name);
                let key = key.expect("both tables know the foreign key").clone();
                if key.parent_off {
                    continue;
                }
                let writer = match names.iter().position(|known| known.id == child.id) {
                    Some(number) => number,
                    None => {
                        names.push(child.clone());
                        names.len() - 1
                    }
                };
                children.push(self.child(&child, &key, writer)?);
            }
        }
        Ok(Writer {
            shape: shape(table),
            table: table.clone(),
            generated,
            checks,
            all_valid: table
                .checks
                .iter()
                .all(|check| check.validity == Validity::Valid),
            parents,
            children,
        })
    }

    /// What checks rows of `table` for one check or foreign key, and for nothing else.
    fn constraint_writer(
        &mut self,
        table: &Arc<Table>,
        constraint: &str,
    ) -> Result<Writer, SqlError> {
        let (mut checks, mut parents) = (Vec::new(), Vec::new());
        if constraint == DOMAINS {
            checks = self.domain_checks(table, "$")?;
        }
        for check in table.checks.iter().filter(|check| check.name == constraint) {
            checks.push((check.name.clone(), self.check(table, &check.expression)?));
        }
        for key in table
            .foreign_keys
            .iter()
            .filter(|key| key.name == constraint)
        {
            parents.push(self.parent(key)?);
        }
        if checks.is_empty() && parents.is_empty() && constraint != DOMAINS {
            return Err(table.no_constraint(constraint));
        }
        Ok(Writer {
            shape: shape(table),
            table: table.clone(),
            generated: Vec::new(),
            checks,
            all_valid: false,
            parents,
            children: Vec::new(),
        })
    }

    /// The columns of a table that are computed, and their values over its row.
    pub(super) fn generated(&mut self, table: &Arc<Table>) -> Result<Vec<(u16, Expr)>, SqlError> {
        let mut generated = Vec::new();
        for (at, column) in table.columns.iter().enumerate() {
            if column.generated.is_some() {
                let value = self.binder.generated(table, column)?;
                generated.push((at as u16, self.settled_expr(value)?));
            }
        }
        Ok(generated)
    }

    /// A check's condition over the table's columns.
    pub(super) fn check(&mut self, table: &Arc<Table>, text: &str) -> Result<Expr, SqlError> {
        let ast = parse::expression(text)?;
        let outer = self.binder.set_scope(bind::scope_of(table));
        let over = |binder: &mut Binder<'_>| binder.condition(&ast, "CHECK");
        let binder = &mut self.binder;
        let bound = binder.without_needs(|binder| binder.kept(|binder| binder.of_rows(over)));
        self.binder.set_scope(outer);
        let condition = if_filled(table, bound?);
        self.settled_expr(condition)
    }

    /// The conditions of the domains of columns, each with the column's name behind `mark`.
    fn domain_checks(
        &mut self,
        table: &Arc<Table>,
        mark: &str,
    ) -> Result<Vec<(String, Expr)>, SqlError> {
        let mut checks = Vec::new();
        for (at, column) in table.columns.iter().enumerate() {
            let database = self.binder.cx.database;
            let domain = column.domain.and_then(|id| database.domain_by_id(id));
            let Some(domain) = domain else { continue };
            let value = Expr::Column(at as u32, column.ty);
            for condition in self.binder.domain_conditions(domain, &value)? {
                let condition = if_filled(table, condition);
                checks.push((
                    format!("{mark}{}", column.name),
                    self.settled_expr(condition)?,
                ));
            }
        }
        Ok(checks)
    }

    fn parent(&mut self, key: &ForeignKey) -> Result<ParentKey, SqlError> {
        let parent = self.binder.table_of(&key.parent)?;
        let index = parent
            .indexes()
            .position(|index| index.is_immediate() && index.covers_exactly(&key.parent_columns))
            .ok_or_else(|| {
                let message = format!(
                    "there is no unique constraint matching given keys for referenced table \"{}\"",
                    key.parent
                );
                SqlError::new(SqlState::INVALID_FOREIGN_KEY, message)
            })?;
        let described = table_index(&parent, index);
        let columns: Vec<u16> = described
            .columns
            .iter()
            .map(|column| {
                let place = key.parent_columns.iter().position(|c| *c == column.column);
                key.columns[place.expect("the index covers exactly these columns")]
            })
            .collect();
        let slot = described
            .slot_columns
            .iter()
            .map(|column| {
                let place = described
                    .columns
                    .iter()
                    .position(|key| key.column == *column);
                place.expect("slot columns are key columns")
            })
            .collect();
        Ok(ParentKey {
            name: key.name.clone(),
            index,
            columns,
            declared: key.columns.clone(),
            slot,
            deferral: key.deferral,
            match_full: key.match_full,
            has_mixed: key.match_full && key.validity != Validity::Valid,
            parent,
        })
    }

    fn child(
        &mut self,
        child: &Arc<Table>,
        key: &ForeignKey,
        writer: usize,
    ) -> Result<ChildKey, SqlError> {
        let mut slots = Vec::new();
        let mut conditions = Vec::new();
        for column in &key.columns {
            let slot = self.binder.new_slot();
            slots.push(slot);
            let ty = child.columns[usize::from(*column)].ty;
            let sides = vec![Expr::Column(u32::from(*column), ty), Expr::Param(slot, ty)];
            conditions.push(Expr::Call(Func::Compare(Compare::Eq), sides, Type::Bool));
        }
        let rows = self.child_rows(child, conditions)?;
        let many = self.children(child, key, (&rows, &slots))?;
        Ok(ChildKey {
            name: key.name.clone(),
            writer,
            parent_columns: key.parent_columns.clone(),
            child_columns: key.columns.clone(),
            on_delete: key.on_delete,
            on_update: key.on_update,
            defaults: self.key_defaults(child, key)?,
            deferral: key.deferral,
            slots,
            rows,
            many: many.map(Box::new),
        })
    }

    /// What SET DEFAULT puts into the columns of a foreign key.
    ///
    /// # Errors
    /// 0A000 for a default that is more than an expression.
    fn key_defaults(&mut self, child: &Table, key: &ForeignKey) -> Result<Vec<Expr>, SqlError> {
        if ![key.on_delete, key.on_update].contains(&catalog::Action::SetDefault) {
            return Ok(Vec::new());
        }
        let mut defaults = Vec::new();
        for column in &key.columns {
            let column = child.column_at(*column);
            let inits = self.binder.inits.len();
            let default = |binder: &mut Binder<'_>| binder.default_value(child, column);
            let value = self.binder.without_needs(default)?;
            if !self.binder.take_calls().is_empty() || self.binder.inits.len() > inits {
                let what = "SET DEFAULT of a foreign key to a default that is drawn or queried";
                return Err(unsupported(what));
            }
            defaults.push(self.settled_expr(value)?);
        }
        Ok(defaults)
    }

    /// The newest versions of rows that refer to a parent.
    fn child_rows(&mut self, child: &Arc<Table>, conditions: Vec<Expr>) -> Result<Step, SqlError> {
        let table = Rel::Table {
            table: child.clone(),
            lock: Some(LockMode::Exclusive),
        };
        let wanted: Vec<u32> = (0..child.columns.len() as u32).collect();
        let mut rows = self.rows(table.filtered(conditions), &wanted)?;
        let StepOp::Scan(scan) = &mut rows.op else {
            unreachable!("comparisons with parameters are part of the scan");
        };
        scan.newest = true;
        Ok(rows)
    }

    /// The rows of [`Planner::child`] for many keys at once. `None`: they are better asked for one
    /// by one, for an index over several columns would be asked for every combination of their
    /// values.
    fn children(
        &mut self,
        child: &Arc<Table>,
        key: &ForeignKey,
        (one, slots): (&Step, &[u32]),
    ) -> Result<Option<KeyRows>, SqlError> {
        let keyed = match &one.op {
            StepOp::Scan(scan) => !scan.access.prefix.is_empty(),
            _ => true,
        };
        if keyed && key.columns.len() > 1 {
            return Ok(None);
        }
        let mut conditions = Vec::new();
        for (column, slot) in key.columns.iter().zip(slots) {
            let ty = child.columns[usize::from(*column)].ty;
            let array = ty.without_modifiers().array_of();
            let Some(array) = array.filter(|_| !matches!(ty, Type::Char(_))) else {
                return Ok(None);
            };
            let column = Box::new(Expr::Column(u32::from(*column), ty));
            let values = Box::new(Expr::Param(*slot, array));
            conditions.push(Expr::AnyArray(column, Compare::Eq, values, false));
        }
        let rows = self.child_rows(child, conditions)?;
        Ok(Some(KeyRows { rows, keyed }))
    }
}

/// What a check that was put off reads: the parent of a key, and the rows that refer to it.
pub struct KeyCheck {
    /// The parent.
    pub parent: ParentKey,
    /// The rows of the child.
    pub child: ChildKey,
    /// Number of slots that their plan has.
    pub slots: u32,
}

/// What looks whether a key of the foreign key `constraint` of `table` has its parent; `None`: the
/// table has no such foreign key any more.
pub fn key_check(
    cx: &PlanCx<'_>,
    table: &Arc<Table>,
    constraint: &str,
) -> Result<Option<KeyCheck>, SqlError> {
    let mut keys = table.foreign_keys.iter();
    let Some(key) = keys.find(|key| key.name == constraint) else {
        return Ok(None);
    };
    let mut binder = Binder::new(cx, &Statement::none());
    let mut planner = Planner::new(&mut binder);
    let (parent, child) = (planner.parent(key)?, planner.child(table, key, 0)?);
    Ok(Some(KeyCheck {
        parent,
        child,
        slots: binder.slots(),
    }))
}

/// What looks whether rows of `table` meet one of its checks or foreign keys.
pub fn constraint_writer(
    cx: &PlanCx<'_>,
    table: &Arc<Table>,
    constraint: &str,
) -> Result<Writer, SqlError> {
    let mut binder = Binder::new(cx, &Statement::none());
    Planner::new(&mut binder).constraint_writer(table, constraint)
}

pub(super) fn out_columns(targets: Option<&Vec<bind::Target>>) -> Arc<[OutColumn]> {
    targets
        .into_iter()
        .flatten()
        .map(bind::Target::column)
        .collect()
}

/// Whether a relation reads a table.
fn reads(rel: &Rel, table: &Table) -> bool {
    let own = match rel {
        Rel::Table { table: read, .. } => read.id == table.id,
        Rel::Apply { calls, .. } => {
            let mut queries = calls.iter().filter_map(|call| call.kind.query());
            queries.any(|query| reads(query, table))
        }
        _ => false,
    };
    own || rel.inputs().into_iter().any(|input| reads(input, table))
}

pub(super) fn insert(
    insert: &ast::Insert,
    words: &InsertWords,
    binder: &mut Binder<'_>,
) -> Result<Plan, SqlError> {
    let bound = binder.insert(insert, words)?;
    inserted(bound, binder)
}

/// As [`insert`] for what is bound.
pub(super) fn inserted(mut bound: BoundInsert, binder: &mut Binder<'_>) -> Result<Plan, SqlError> {
    let columns = out_columns(bound.returning.as_ref());
    let returns_rows = bound.returning.is_some();
    let mut planner = Planner::new(binder);
    let writers = planner.writers(&bound.table, insert_purpose(&bound))?;
    bound.source = planner.settled(bound.source);
    let plain = bound.conflict.is_none() && !returns_rows;
    let single = match &bound.source {
        Rel::Values { rows, calls, .. } if plain && calls.is_empty() => match rows.as_slice() {
            [row] => point::insert(&writers[0], row),
            _ => None,
        },
        _ => None,
    };
    let action = match single {
        Some(point) => Action::Point(point),
        None => Action::Insert(Box::new(planner.insert_plan(bound, writers)?)),
    };
    let inits = planner.inits()?;
    let steps = planner.next_step;
    let mut plan = run_plan(binder, action, inits, steps)?;
    plan.columns = columns;
    plan.returns_rows = returns_rows;
    Ok(plan)
}

/// What an INSERT does with its table.
pub(super) fn insert_purpose(bound: &BoundInsert) -> Purpose {
    let conflict = bound.conflict.as_ref();
    match conflict.map(|conflict| &conflict.action) {
        Some(ConflictAction::Update { .. }) => Purpose::Change,
        Some(ConflictAction::Nothing) | None => Purpose::Insert,
    }
}

impl Planner<'_, '_> {
    /// An INSERT in its general form; its source is settled.
    pub(super) fn insert_plan(
        &mut self,
        bound: BoundInsert,
        writers: Arc<[Writer]>,
    ) -> Result<InsertPlan, SqlError> {
        let BoundInsert {
            table,
            source,
            conflict,
            returning,
        } = bound;
        let materialize = reads(&source, &table);
        let wanted: Vec<u32> = (0..table.columns.len() as u32).collect();
        let source = self.rows(source, &wanted)?;
        let returns_rows = returning.is_some();
        let conflict =
            conflict.map(|conflict| on_conflict(self, conflict, &writers[0], returns_rows));
        let conflict = conflict.transpose()?;
        let returning = returning.map(|targets| {
            let exprs = targets.into_iter().map(|t| self.settled_expr(t.expr));
            exprs.collect::<Result<_, _>>()
        });
        Ok(InsertPlan {
            writers,
            source,
            materialize,
            conflict,
            returning: returning.transpose()?,
        })
    }

    /// An UPDATE or DELETE in its general form.
    pub(super) fn write_plan(&mut self, bound: BoundWrite) -> Result<WritePlan, SqlError> {
        let writers = self.writers(&bound.table, Purpose::Change)?;
        let width = bound.table.columns.len() as u32;
        let assignments = bound.assignments.map(|list| self.settled_assignments(list));
        let mut assignments = assignments.transpose()?;
        let returning = bound.returning.map(|list| {
            let exprs = list.into_iter().map(|t| self.settled_expr(t.expr));
            exprs.collect::<Result<Vec<Expr>, SqlError>>()
        });
        let mut returning = returning.transpose()?;
        // The target's columns, then what assignments and RETURNING read of other tables.
        let mut wanted: Vec<u32> = (0..width).collect();
        let exprs = assignments.iter().flatten().map(|(_, value)| value);
        let exprs = exprs.chain(returning.iter().flatten());
        wanted.extend(
            super::columns_of(exprs)
                .into_iter()
                .filter(|column| *column >= width),
        );
        let rows = self.settled(bound.rows);
        let rows = self.rows(rows, &wanted)?;
        let place = |expr: &mut Expr| super::remap(expr, &wanted);
        let values = assignments.iter_mut().flatten().map(|(_, value)| value);
        values.chain(returning.iter_mut().flatten()).for_each(place);
        Ok(WritePlan {
            writers,
            rows,
            assignments,
            formulas: None,
            each: None,
            returning,
        })
    }

    pub(super) fn settled_assignments(
        &self,
        list: Vec<BoundAssignment>,
    ) -> Result<Vec<(u16, Expr)>, SqlError> {
        let settled = list.into_iter();
        let settled = settled.map(|a| Ok((a.column, self.settled_expr(a.value)?)));
        settled.collect()
    }
}

/// What ON CONFLICT does.
fn on_conflict(
    planner: &Planner<'_, '_>,
    conflict: Conflict,
    writer: &Writer,
    returns_rows: bool,
) -> Result<ConflictPlan, SqlError> {
    let update = match conflict.action {
        ConflictAction::Nothing => None,
        ConflictAction::Update {
            assignments,
            condition,
        } => {
            let assignments = planner.settled_assignments(assignments)?;
            let condition = condition.map(|condition| planner.settled_expr(condition));
            let condition = condition.transpose()?;
            let reads = if conflict.arbiter != Some(0) {
                Some(Obstacle::Arbiter)
            } else if condition.is_some() {
                Some(Obstacle::Condition)
            } else {
                returns_rows.then_some(Obstacle::Returning)
            };
            let (formulas, changes) = formula::judge_conflict(writer, &assignments, reads);
            Some(ConflictUpdate {
                assignments,
                condition,
                formulas,
                changes,
            })
        }
    };
    Ok(ConflictPlan {
        arbiter: conflict.arbiter,
        update,
    })
}

pub(super) fn write(bound: BoundWrite, binder: &mut Binder<'_>) -> Result<Plan, SqlError> {
    let columns = out_columns(bound.returning.as_ref());
    let returns_rows = bound.returning.is_some();
    let mut planner = Planner::new(binder);
    let mut plan = planner.write_plan(bound)?;
    let point = point::write(
        &plan.rows,
        &plan.writers[0],
        plan.assignments.as_deref(),
        plan.returning.as_deref(),
    );
    let action = match point {
        Ok(point) => Action::Point(point),
        Err(general) => {
            (plan.formulas, plan.each) = (general.formulas, general.each);
            Action::Write(Box::new(plan))
        }
    };
    let inits = planner.inits()?;
    let steps = planner.next_step;
    let mut plan = run_plan(binder, action, inits, steps)?;
    plan.columns = columns;
    plan.returns_rows = returns_rows;
    Ok(plan)
}

/// TRUNCATE deletes row by row: it can be rolled back and read around like any change. Sequences
/// that the tables own begin anew if it `restarts` them.
pub(super) fn truncate(
    names: &[&ast::ObjectName],
    (cascade, restarts): (bool, bool),
    binder: &mut Binder<'_>,
) -> Result<Plan, SqlError> {
    let mut tables = names
        .iter()
        .map(|name| {
            known_schema(binder.cx.database, object_name(name).0.as_deref())?;
            binder.find_table(name)
        })
        .collect::<Result<Vec<_>, SqlError>>()?;
    let mut at = 0;
    while at < tables.len() {
        let table = tables[at].clone();
        for (child, _) in &table.referenced_by {
            if tables.iter().any(|known| known.name == *child) {
                continue;
            }
            if !cascade {
                return Err(SqlError::new(
                    SqlState::FEATURE_NOT_SUPPORTED,
                    "cannot truncate a table referenced in a foreign key constraint",
                )
                .detail(format!("Table \"{child}\" references \"{}\".", table.name))
                .hint(format!(
                    "Truncate table \"{child}\" at the same time, or use TRUNCATE ... CASCADE."
                )));
            }
            tables.push(binder.table_of(child)?);
        }
        at += 1;
    }
    for table in &tables {
        binder.need_table(table, rights::Privileges::TRUNCATE);
    }
    let mut planner = Planner::new(binder);
    let mut plans = Vec::new();
    for table in &tables {
        let writers = planner.writers(table, Purpose::Insert)?;
        let rel = Rel::Table {
            table: table.clone(),
            lock: Some(LockMode::Exclusive),
        };
        let wanted: Vec<u32> = (0..table.columns.len() as u32).collect();
        let rows = planner.rows(rel, &wanted)?;
        plans.push(WritePlan {
            writers,
            rows,
            assignments: None,
            formulas: None,
            each: None,
            returning: None,
        });
    }
    let steps = planner.next_step;
    let restarted = match restarts {
        true => need_owned(&tables, binder),
        false => Vec::new(),
    };
    let action = Action::Truncate(plans, restarted);
    run_plan(binder, action, Vec::new(), steps)
}

/// The sequences that columns of the tables own; the statement needs to own them as well.
fn need_owned(tables: &[Arc<Table>], binder: &mut Binder<'_>) -> Vec<String> {
    let all = binder.cx.database.sequences.values();
    let owned = all.filter(|sequence| {
        let owner = sequence.owned_by.as_ref();
        owner.is_some_and(|(table, _)| tables.iter().any(|known| known.name == *table))
    });
    let owned: Vec<_> = owned.cloned().collect();
    let names = owned.iter().map(|sequence| {
        binder.need_own_sequence(sequence);
        sequence.name.clone()
    });
    names.collect()
}

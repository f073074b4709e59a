//! Rows that lie elsewhere than before: a primary key that goes, other values for its columns. The
//! table is written anew in another key space, and takes no writes meanwhile.

use super::actions::{Actions, cascades};
use super::alter::{frozen, moved, primary_key};
use super::table::{Constraint, constraint_of, key_columns};
use super::unique::Key;
use super::{class, index};
use crate::plan::{DdlPlan, Fill, FillStage};
use base::full_name::beside;
use base::{IndexId, SqlError};
use bind::scope::ident;
use bind::{Binder, PlanCx, unsupported};
use catalog::{Column, ColumnState, Command, Deferral, ForeignKey, Index, IndexColumn};
use catalog::{Table, TableAction, Validity};
use parse::{Marks, OperatorClass};
use sqlparser::ast::{self, AlterTableOperation as Operation, DropBehavior};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Plans a statement that takes the primary key of a table away, alone, with a column, or for
/// another key; `None`: it is another statement.
///
/// # Errors
/// Those of its actions.
pub(super) fn plan(
    table: &Arc<Table>,
    operations: &[Operation],
    marks: &Marks,
    binder: &mut Binder<'_>,
) -> Result<Option<DdlPlan>, SqlError> {
    let is_key = |name: &ast::Ident| {
        marks.idle(name).is_none()
            && !marks.validate
            && table.primary_constraint == Some(ident(name))
    };
    Ok(match operations {
        [
            Operation::DropConstraint {
                name,
                if_exists: _,
                drop_behavior,
            },
        ] if is_key(name) => Some(drop_key(table, None, *drop_behavior, binder)?),
        [
            Operation::DropColumn {
                column_name,
                if_exists: _,
                drop_behavior,
            },
        ] if has_key_on(table, &ident(column_name)) => {
            let column = Some(ident(column_name));
            Some(drop_key(table, column, *drop_behavior, binder)?)
        }
        [
            Operation::DropConstraint {
                name,
                if_exists: _,
                drop_behavior,
            },
            Operation::AddConstraint(constraint),
        ]
        | [
            Operation::AddConstraint(constraint),
            Operation::DropConstraint {
                name,
                if_exists: _,
                drop_behavior,
            },
        ] if is_key(name) => match constraint_of(constraint, marks, binder)? {
            Constraint::Primary(key) if key.deferral == Deferral::Never => {
                let plan = primary_key(table, key, Some(cascades(*drop_behavior)), binder)?;
                Some(checked(plan, binder.cx)?)
            }
            _ => None,
        },
        _ => None,
    })
}

/// Whether the rows of a table lie by a primary key that has this column.
fn has_key_on(table: &Table, column: &str) -> bool {
    let mut keys = table.primary.columns.iter();
    let at = table.own_column(column);
    table.primary_constraint.is_some()
        && at.is_ok_and(|at| keys.any(|key| usize::from(key.column) == at))
}

/// The columns by which PARTITION BY spreads a table. Without it the first column of the key does.
pub(super) fn partition(table: &Table) -> Vec<u16> {
    let first = table.primary.columns[0].column;
    match table.primary_constraint.is_some() && table.partition == [first] {
        true => Vec::new(),
        false => table.partition.clone(),
    }
}

/// The primary key of a table goes, perhaps with a column of it: the rows are numbered.
///
/// # Errors
/// 2BP01 if other objects need what goes; 0A000 for a column of PARTITION BY.
fn drop_key(
    table: &Table,
    column: Option<String>,
    behavior: Option<DropBehavior>,
    binder: &Binder<'_>,
) -> Result<DdlPlan, SqlError> {
    let database = &binder.cx.database.name;
    let rowid = table.columns.len() as u16;
    let mut partition = partition(table);
    if partition.is_empty() {
        partition.push(rowid);
    }
    let keys = partition.iter().copied().filter(|column| *column != rowid);
    let keys = keys.chain([rowid]).map(|column| IndexColumn {
        column,
        descending: false,
        nulls_first: false,
    });
    let primary = Index {
        slot_columns: partition.clone(),
        ..index(String::new(), keys.collect(), true, false)
    };
    let mut columns = table.columns.clone();
    columns.push(Column::row_number());
    let at = column.as_ref().and_then(|name| table.own_column(name).ok());
    let gone = table.secondary.iter();
    let gone = gone.filter(|index| at.is_some_and(|at| table.index_reads(index, at as u16)));
    let gone: Vec<String> = gone.map(|index| beside(&table.name, &index.name)).collect();
    let after = Command::SetPrimaryKey {
        database: database.clone(),
        table: table.name.clone(),
        constraint: String::new(),
        primary,
        secondary: moved(table, &partition),
        columns,
        partition,
        drops: column,
        replaces: table.primary.id,
        cascade: cascades(behavior),
        looked_at: Vec::new(),
    };
    let fill = Fill::PrimaryKey {
        table: table.name.clone(),
    };
    let mut plan = frozen(database, table, fill, after);
    if !gone.is_empty() {
        // Statements stop reading them before the first writer leaves them alone.
        let drop = Command::DropIndex {
            database: database.clone(),
            names: gone,
            if_exists: false,
        };
        plan.after.insert(1, drop);
    }
    checked(plan, binder.cx)
}

/// The plan, if what it does with the catalog can be done in it as it is now: so that no rows are
/// copied in vain.
///
/// # Errors
/// Those of the commands.
fn checked(plan: DdlPlan, cx: &PlanCx<'_>) -> Result<DdlPlan, SqlError> {
    let mut catalog = (**cx.catalog).clone();
    let of_stages = plan.fill.iter().flat_map(Fill::commands);
    for command in plan.before.iter().chain(of_stages).chain(&plan.after) {
        let mut command = command.clone();
        while let Some(index) = command.unplaced() {
            let (next, applied) = catalog.apply(&Command::Reserve)?;
            index.id = IndexId(applied.reserved);
            catalog = next;
        }
        catalog = catalog.apply(&command)?.0;
    }
    Ok(plan)
}

/// The table with the types of `target`.
fn shown(table: &Table, target: &Table) -> Arc<Table> {
    let mut shown = table.clone();
    for (column, new) in shown.columns.iter_mut().zip(&target.columns) {
        (column.ty, column.collation) = (new.ty, new.collation);
    }
    Arc::new(shown)
}

impl Actions<'_, '_, '_> {
    /// The statement, which gives the table a primary key, too: when new columns have their values,
    /// the rows are copied, and all of it takes effect with the key.
    ///
    /// # Errors
    /// 0A000 for changes that cannot go with the key.
    pub(super) fn keyed(mut self, key: Key) -> Result<DdlPlan, SqlError> {
        let may_go = |action: &TableAction| {
            matches!(
                action,
                TableAction::AddColumn { .. }
                    | TableAction::AddSequence(_)
                    | TableAction::AddCheck(_)
                    | TableAction::AddForeignKey(_)
            )
        };
        let others = self.stages.len() + self.late.len() + self.retypes.replaced().count();
        if others > 0 || !self.early.iter().all(may_go) {
            return Err(unsupported("adding a primary key beside these changes")
                .hint("Add the primary key with a statement of its own."));
        }
        let table = self.now();
        for column in key_columns(&table, &key.columns)? {
            let name = &table.column_at(column.column).name;
            if !self.fill.not_null.contains(name) {
                self.fill.not_null.push(name.clone());
            }
        }
        let copy = primary_key(&table, key, None, self.binder)?;
        let cx = self.binder.cx;
        let mut plan = self.planned();
        let first = plan.fill.take().map(FillStage::from);
        let then = copy.fill.map(|fill| FillStage {
            commands: copy.before,
            fill: Some(fill),
        });
        plan.fill = Some(Fill::Stages(first.into_iter().chain(then).collect()));
        plan.after = copy.after;
        plan.undo.splice(0..0, copy.undo);
        checked(plan, cx)
    }

    /// Whether a column of the primary key gets other values.
    pub(super) fn changes_key(&self) -> bool {
        let table = self.now();
        let mut keys = table.primary.columns.iter();
        table.primary_constraint.is_some()
            && keys.any(|key| self.retypes.new_at(key.column).is_some())
    }

    /// The statement if it does nothing else: all rows are written with the new values in the
    /// places of the old ones.
    ///
    /// # Errors
    /// 0A000 for other changes in the statement, and for columns that something else reads.
    pub(super) fn rekeyed(self, changes_more: bool) -> Result<DdlPlan, SqlError> {
        if changes_more || !self.late.is_empty() {
            let what = "changing the type of a column of the primary key beside other changes";
            let hint = "Change it with a statement of its own.";
            return Err(unsupported(what).hint(hint));
        }
        let table = self.now();
        let database = self.binder.cx.database;
        let mut target = (*table).clone();
        for (at, new) in self.retypes.replaced() {
            let column = &mut target.columns[usize::from(at)];
            *column = Column {
                name: new.name.clone(),
                ty: new.ty,
                collation: new.collation,
                generated: new.generated.clone(),
                zone: new.zone.clone(),
                state: ColumnState::Filling,
                ..column.clone()
            };
        }
        for index in target.indexes() {
            for (i, key) in index.columns.iter().enumerate() {
                class::check_ordered(target.column_at(key.column).ty)?;
                if let Some(Some(name)) = index.classes.get(i) {
                    let class = OperatorClass {
                        schema: None,
                        name: name.clone(),
                    };
                    class::check(database, &target, key.column, &class)?;
                }
            }
        }
        let keys = self.keys_to_look_at(&table)?;
        let named = keys.iter();
        let named = named.map(|(child, key)| (child.name.clone(), key.clone()));
        let shown = shown(&table, &target);
        for check in &table.checks {
            let read = table.columns_of_check(check);
            if self.retypes.replaced().any(|(at, _)| read.contains(&at)) {
                let check = parse::expression(&check.expression)?;
                super::shown::check_text(&shown, &check, self.binder)?;
            }
        }
        let unplaced = |index: &Index| Index {
            id: IndexId(0),
            ..index.clone()
        };
        let after = Command::SetPrimaryKey {
            database: database.name.clone(),
            table: table.name.clone(),
            constraint: table.primary_constraint.clone().unwrap_or_default(),
            primary: unplaced(&table.primary),
            secondary: table.secondary.iter().map(unplaced).collect(),
            columns: target.columns,
            partition: table.partition.clone(),
            drops: None,
            replaces: table.primary.id,
            cascade: false,
            looked_at: named.collect(),
        };
        let fill = Fill::PrimaryKey {
            table: table.name.clone(),
        };
        let mut plan = frozen(&database.name, &table, fill, after);
        look_at_keys(&mut plan, &database.name, &table, &keys);
        checked(plan, self.binder.cx)
    }
}

/// A copy with other values is followed by looks at the foreign keys that name them. Rows that
/// would need other parents must not come meanwhile.
fn look_at_keys(
    plan: &mut DdlPlan,
    database: &str,
    table: &Table,
    keys: &[(Arc<Table>, ForeignKey)],
) {
    let sides = keys.iter();
    let sides = sides.flat_map(|(child, key)| [&child.name, &key.parent]);
    let others: BTreeSet<&String> = sides.filter(|name| **name != table.name).collect();
    let freeze = |frozen| {
        others.iter().map(move |name| Command::Freeze {
            database: database.into(),
            table: name.to_string(),
            frozen,
        })
    };
    plan.after.extend(freeze(false));
    plan.undo.extend(freeze(false));
    let copy = FillStage {
        commands: freeze(true).collect(),
        fill: plan.fill.take(),
    };
    let mut valid = keys.to_vec();
    valid.retain(|(_, key)| key.validity == Validity::Valid);
    let looks = valid.into_iter().map(|(child, key)| {
        FillStage::from(Fill::Refers {
            table: table.name.clone(),
            child: child.name.clone(),
            constraint: key.name,
        })
    });
    plan.fill = Some(Fill::Stages([copy].into_iter().chain(looks).collect()));
}

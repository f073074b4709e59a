//! ALTER TABLE: lists of actions that keep the rows of the table.
//!
//! Actions are bound one after the other against the catalog that those before give, in
//! PostgreSQL's order: what is dropped, types, new columns, properties of columns, constraints.
//! If rows must be filled or looked through, what is new comes in a first command, and everything
//! else with its publication in a second one, so that the statement takes effect as a whole.

use super::added::{Added, added_column};
use super::alter::TAG;
use super::default::default_text;
use super::table::{
    Constraint, Foreign, check_storable, constraint_of, foreign_key, identity_kind,
    identity_sequence, key_columns,
};
use super::{generated, index, names, other_name, simple};
use crate::plan::{AlterFill, DdlPlan, Fill};
use base::full_name::beside;
use base::{SqlError, SqlState, Type};
use bind::scope::ident;
use bind::types::{NamedType, named_type};
use bind::{Binder, unsupported};
use catalog::{Catalog, Check, Column, ColumnState, Command, Table, TableAction, Validity};
use expr::resolve::{self, Context};
use parse::Marks;
use pg_catalog::names::{parts, qualified};
use sqlparser::ast::{self, AlterColumnOperation, AlterTableOperation, DropBehavior};
use std::sync::Arc;

/// What becomes of the actions of a statement.
struct Actions<'s, 'b, 'c> {
    binder: &'s mut Binder<'b>,
    marks: &'c Marks,
    /// The catalog after the actions so far, new columns and constraints being complete.
    catalog: Catalog,
    /// Name of the table.
    table: String,
    /// What writers must know before rows are looked through.
    early: Vec<TableAction>,
    late: Vec<TableAction>,
    fill: AlterFill,
    /// Indexes that no statement reads any more when the statement has taken effect.
    retired: Vec<String>,
    /// Names of columns and constraints that are dropped.
    dropped: Vec<String>,
}

pub(super) fn plan(
    table: &Table,
    operations: &[AlterTableOperation],
    marks: &Marks,
    binder: &mut Binder<'_>,
) -> Result<DdlPlan, SqlError> {
    let catalog = (**binder.cx.catalog).clone();
    let mut actions = Actions {
        binder,
        marks,
        catalog,
        table: table.name.clone(),
        early: Vec::new(),
        late: Vec::new(),
        fill: AlterFill {
            table: table.name.clone(),
            columns: Vec::new(),
            not_null: Vec::new(),
            constraints: Vec::new(),
            indexes: Vec::new(),
        },
        retired: Vec::new(),
        dropped: Vec::new(),
    };
    let mut ordered: Vec<&AlterTableOperation> = operations.iter().collect();
    ordered.sort_by_key(|operation| pass(operation));
    for operation in ordered {
        actions.add(operation)?;
    }
    Ok(actions.planned())
}

/// PostgreSQL's order of actions.
fn pass(operation: &AlterTableOperation) -> u8 {
    use AlterTableOperation as Operation;
    match operation {
        Operation::DropColumn {
            column_name: _,
            if_exists: _,
            drop_behavior: _,
        }
        | Operation::DropConstraint {
            name: _,
            if_exists: _,
            drop_behavior: _,
        } => 0,
        Operation::AlterColumn { column_name: _, op } => match op {
            AlterColumnOperation::SetDataType {
                data_type: _,
                using: _,
            } => 1,
            _ => 3,
        },
        Operation::AddColumn {
            column_keyword: _,
            if_not_exists: _,
            column_def: _,
            column_position: _,
        } => 2,
        Operation::AddConstraint(constraint) if is_key(constraint) => 4,
        _ => 5,
    }
}

fn is_key(constraint: &ast::TableConstraint) -> bool {
    !matches!(
        constraint,
        ast::TableConstraint::Check { name: _, expr: _ }
            | ast::TableConstraint::ForeignKey {
                name: _,
                columns: _,
                foreign_table: _,
                referred_columns: _,
                on_delete: _,
                on_update: _,
                characteristics: _,
            }
    )
}

fn cascades(behavior: Option<DropBehavior>) -> bool {
    matches!(behavior, Some(DropBehavior::Cascade))
}

impl Actions<'_, '_, '_> {
    /// The table after the actions so far.
    fn now(&self) -> Arc<Table> {
        let database = self.catalog.database(&self.binder.cx.database.name);
        let table = database.and_then(|database| database.table(&self.table));
        table.expect("actions keep the table").clone()
    }

    /// Notes what an action does to the catalog.
    fn apply(&mut self, action: TableAction) -> Result<(), SqlError> {
        let command = Command::AlterTable {
            database: self.binder.cx.database.name.clone(),
            table: self.table.clone(),
            actions: vec![action],
        };
        self.catalog = self.catalog.apply(&command)?.0;
        Ok(())
    }

    fn late(&mut self, action: TableAction) -> Result<(), SqlError> {
        self.apply(action.clone())?;
        self.late.push(action);
        Ok(())
    }

    fn add(&mut self, operation: &AlterTableOperation) -> Result<(), SqlError> {
        match operation {
            AlterTableOperation::DropColumn {
                column_name,
                if_exists,
                drop_behavior,
            } => self.drop_column(ident(column_name), *if_exists, *drop_behavior),
            AlterTableOperation::DropConstraint {
                if_exists,
                name,
                drop_behavior,
            } => {
                if self.marks.validate {
                    return Err(unsupported("VALIDATE CONSTRAINT beside other changes"));
                }
                self.drop_constraint(ident(name), *if_exists, *drop_behavior)
            }
            AlterTableOperation::AddColumn {
                column_keyword: _,
                if_not_exists,
                column_def,
                column_position,
            } => {
                self.binder.no(column_position.is_some(), "FIRST")?;
                self.add_column(column_def, *if_not_exists)
            }
            AlterTableOperation::AlterColumn { column_name, op } => {
                self.alter_column(column_name, op)
            }
            AlterTableOperation::AddConstraint(constraint) => {
                let constraint = constraint_of(constraint, self.marks, self.binder)?;
                self.add_constraint(constraint)
            }
            // There is one role, so owners do not matter.
            // Alone it is a statement about rights.
            AlterTableOperation::OwnerTo { new_owner: _ } => {
                Err(unsupported("OWNER TO among other actions")
                    .hint("Give the table its owner in a statement of its own."))
            }
            other => {
                let text = other.to_string();
                let words: Vec<&str> = text.split_whitespace().take(2).collect();
                Err(unsupported(&format!("ALTER TABLE ... {}", words.join(" "))))
            }
        }
    }

    fn drop_column(
        &mut self,
        name: String,
        if_exists: bool,
        behavior: Option<DropBehavior>,
    ) -> Result<(), SqlError> {
        let table = self.now();
        if let Ok(at) = table.own_column(&name) {
            let mut gone = vec![at as u16];
            if cascades(behavior) {
                gone.extend(table.generated_from(at as u16));
            }
            let reads = |index: &&catalog::Index| {
                let mut gone = gone.iter();
                gone.any(|at| table.index_reads(index, *at))
            };
            let indexes = table.secondary.iter().filter(reads);
            self.retired.extend(indexes.map(|index| index.name.clone()));
            self.dropped.push(name.clone());
        }
        self.late(TableAction::DropColumn {
            name,
            if_exists,
            cascade: cascades(behavior),
        })
    }

    fn drop_constraint(
        &mut self,
        name: String,
        if_exists: bool,
        behavior: Option<DropBehavior>,
    ) -> Result<(), SqlError> {
        let table = self.now();
        let backed = table.secondary.iter();
        let mut backed = backed.filter(|index| index.constraint && index.name == name);
        self.retired.extend(backed.next().map(|_| name.clone()));
        self.dropped.push(name.clone());
        self.late(TableAction::DropConstraint {
            name,
            if_exists,
            cascade: cascades(behavior),
        })
    }

    fn add_column(&mut self, ast: &ast::ColumnDef, if_not_exists: bool) -> Result<(), SqlError> {
        let table = self.now();
        let Added {
            mut column,
            sequence,
            uniques,
            foreign,
            checks,
            generated,
        } = {
            // The default is computed for the rows that there are.
            let (marks, binder) = (self.marks, &mut self.binder);
            binder.need_for_change(|binder| added_column(&table, ast, marks, binder))?
        };
        column.default = column.default.filter(|text| text != "NULL");
        if !generated.is_empty() {
            let mut with = (*table).clone();
            with.columns.retain(|known| known.name != column.name);
            with.columns.push(column.clone());
            generated::add(&mut with, &generated, self.binder)?;
            column.generated = with.columns.pop().and_then(|column| column.generated);
        }
        let place = table.columns.len() as u16;
        let exists = if_not_exists && table.own_column(&column.name).is_ok();
        if self.dropped.contains(&column.name) {
            return Err(together(&column.name));
        }
        if let (Some(mut sequence), false) = (sequence, exists) {
            let columns = [column.name.clone()];
            let database = self.catalog.database(&self.binder.cx.database.name);
            let database = database.expect("it is the session's");
            let free = names::free_name(database, &table.name, &columns, "seq");
            sequence.name = beside(&table.name, &free);
            if column.identity.is_none() {
                column.default = Some(catalog::next_of(&sequence.name));
            }
            let action = TableAction::AddSequence(sequence);
            self.apply(action.clone())?;
            self.early.push(action);
        }
        let action = TableAction::AddColumn {
            column: column.clone(),
            place,
            if_not_exists,
        };
        self.apply(action.clone())?;
        self.early.push(action);
        if exists {
            return Ok(());
        }
        let computed = column.generated.is_some();
        if computed || column.default.is_some() || column.identity.is_some() {
            self.fill.columns.push(column.name.clone());
        }
        if column.not_null {
            self.fill.not_null.push(column.name.clone());
        }
        let named = |name: String| (!name.is_empty()).then_some(name);
        for (name, columns) in uniques {
            self.add_constraint(Constraint::Unique(named(name), columns))?;
        }
        for (name, check) in checks {
            self.add_constraint(Constraint::Check(named(name), Box::new(check)))?;
        }
        for key in foreign {
            self.add_constraint(Constraint::Foreign(key))?;
        }
        Ok(())
    }

    fn alter_column(
        &mut self,
        column_name: &ast::Ident,
        op: &AlterColumnOperation,
    ) -> Result<(), SqlError> {
        let name = ident(column_name);
        let table = self.now();
        let at = table.own_column(&name)?;
        let column = &table.columns[at];
        match op {
            AlterColumnOperation::SetNotNull => {
                if column.not_null {
                    return Ok(());
                }
                let added = self.early.iter_mut().find_map(|action| match action {
                    TableAction::AddColumn { column, .. } if column.name == name => Some(column),
                    _ => None,
                });
                match added {
                    Some(added) => added.not_null = true,
                    None => self.early.push(TableAction::CheckNotNull {
                        column: name.clone(),
                    }),
                }
                self.fill.not_null.push(name);
                Ok(())
            }
            AlterColumnOperation::DropNotNull => {
                self.late(TableAction::DropNotNull { column: name })
            }
            AlterColumnOperation::SetDefault { value } => {
                let default = default_text(column, value, self.binder)?;
                self.late(TableAction::SetDefault {
                    column: name,
                    default: Some(default).filter(|text| text != "NULL"),
                })
            }
            AlterColumnOperation::DropDefault
                if self.marks.drops_expression(column_name).is_some() =>
            {
                let if_exists = self.marks.drops_expression(column_name) == Some(true);
                self.late(TableAction::DropExpression {
                    column: name,
                    if_exists,
                })
            }
            AlterColumnOperation::DropDefault => self.late(TableAction::SetDefault {
                column: name,
                default: None,
            }),
            AlterColumnOperation::SetDataType { data_type, using } => {
                let NamedType::Plain(ty) = named_type(data_type, &self.binder.names())? else {
                    let message = format!("type \"{data_type}\" does not exist").to_lowercase();
                    return Err(SqlError::new(SqlState::UNDEFINED_OBJECT, message));
                };
                check_storable(&name, ty)?;
                check_retyped(column, ty, using.as_ref(), &self.binder.names())?;
                self.late(TableAction::SetType { column: name, ty })
            }
            AlterColumnOperation::AddGenerated {
                generated_as,
                sequence_options,
            } => self.add_identity(column, generated_as.as_ref(), sequence_options.as_deref()),
        }
    }

    fn add_identity(
        &mut self,
        column: &Column,
        written: Option<&ast::GeneratedAs>,
        options: Option<&[ast::SequenceOptions]>,
    ) -> Result<(), SqlError> {
        let identity = identity_kind(written.unwrap_or(&ast::GeneratedAs::Always))?;
        let mut sequence = identity_sequence(column.ty, options)?;
        let database = self.catalog.database(&self.binder.cx.database.name);
        let database = database.expect("it is the session's");
        sequence.name = match &self.marks.sequence {
            Some(name) => {
                let (schema, name) = qualified(&database.name, parts(name)?)?;
                match schema {
                    Some(_) => self.binder.new_name(schema.as_deref(), &name)?,
                    None => beside(&self.table, &name),
                }
            }
            None => {
                let columns = core::slice::from_ref(&column.name);
                let free = names::free_name(database, &self.table, columns, "seq");
                beside(&self.table, &free)
            }
        };
        sequence.owned_by = Some((self.table.clone(), column.name.clone()));
        let set = TableAction::SetIdentity {
            column: column.name.clone(),
            identity,
        };
        // The column is looked at first, as in PostgreSQL.
        self.apply(set.clone())?;
        self.late.push(set);
        self.late(TableAction::AddSequence(sequence))
    }

    fn add_constraint(&mut self, constraint: Constraint) -> Result<(), SqlError> {
        match constraint {
            Constraint::Primary(..) => {
                Err(unsupported("adding a primary key beside other changes")
                    .hint("Add the primary key with a statement of its own."))
            }
            Constraint::Unique(name, columns) => self.add_unique(name, &columns),
            Constraint::Foreign(written) => self.add_foreign(&written),
            Constraint::Check(name, check) => self.add_check(name, &check),
        }
    }

    fn check_new(&self, name: &str) -> Result<(), SqlError> {
        match self.dropped.iter().any(|dropped| dropped == name) {
            true => Err(together(name)),
            false => Ok(()),
        }
    }

    fn add_unique(&mut self, name: Option<String>, columns: &[String]) -> Result<(), SqlError> {
        let table = self.now();
        let keys = key_columns(&table, columns)?;
        let name = name.unwrap_or_else(|| {
            let database = self.catalog.database(&self.binder.cx.database.name);
            let database = database.expect("it is the session's");
            names::free_name(database, &table.name, columns, "key")
        });
        self.check_new(&name)?;
        let action = TableAction::AddIndex(index(name.clone(), keys, true, true));
        self.apply(action.clone())?;
        self.early.push(action);
        self.fill.indexes.push(name);
        Ok(())
    }

    fn validity(&mut self, name: &str) -> Validity {
        match self.marks.not_valid {
            true => Validity::NotValid,
            false => {
                self.fill.constraints.push(name.to_string());
                Validity::Adding
            }
        }
    }

    fn add_foreign(&mut self, written: &Foreign) -> Result<(), SqlError> {
        let table = self.now();
        let mut key = foreign_key(&table, written, self.binder)?;
        if key.name.is_empty() {
            key.name = names::constraint_name(&table, &written.columns, "fkey");
        }
        self.check_new(&key.name)?;
        key.validity = self.validity(&key.name.clone());
        let action = TableAction::AddForeignKey(key);
        self.apply(action.clone())?;
        self.early.push(action);
        Ok(())
    }

    fn add_check(&mut self, name: Option<String>, check: &ast::Expr) -> Result<(), SqlError> {
        let table = self.now();
        let expression = super::shown::check_text(&table, check, self.binder)?;
        let name = name.unwrap_or_else(|| table.check_name(&expression));
        self.check_new(&name)?;
        let action = TableAction::AddCheck(Check {
            validity: self.validity(&name),
            name,
            expression,
        });
        self.apply(action.clone())?;
        self.early.push(action);
        Ok(())
    }

    fn planned(self) -> DdlPlan {
        let Actions {
            binder,
            table,
            mut early,
            mut late,
            fill,
            retired,
            ..
        } = self;
        let database = binder.cx.database.name.clone();
        let alter = |actions| Command::AlterTable {
            database: database.clone(),
            table: table.clone(),
            actions,
        };
        let rest = match retired.is_empty() {
            true => None,
            false => Some(Command::DropIndex {
                database: database.clone(),
                names: retired,
                if_exists: false,
            }),
        };
        let AlterFill {
            columns,
            not_null,
            constraints,
            indexes,
            ..
        } = &fill;
        let is_full = [columns, not_null, constraints, indexes];
        if is_full.iter().all(|names| names.is_empty()) {
            late.extend(early);
            if late.is_empty() {
                return simple(TAG, Vec::new());
            }
            let commands = [alter(late)].into_iter().chain(rest);
            return simple(TAG, commands.collect());
        }
        for action in &mut early {
            if let TableAction::AddColumn { column, .. } = action {
                column.hidden = true;
                column.state = ColumnState::Filling;
            }
        }
        late.insert(0, TableAction::Publish);
        let after = [alter(late)].into_iter().chain(rest);
        DdlPlan {
            tag: TAG,
            before: vec![alter(early)],
            after: after.collect(),
            undo: vec![alter(vec![TableAction::Undo])],
            fill: Some(Fill::Alter(Box::new(fill))),
            notices: Vec::new(),
        }
    }
}

/// One statement drops something and adds another of the same name.
fn together(name: &str) -> SqlError {
    unsupported(&format!("dropping and adding \"{name}\" in one statement"))
        .hint("Drop it in a statement before.")
}

/// A column gets another type: only where its values stay as they are.
///
/// # Errors
/// 42804 as PostgreSQL where no cast leads there; 0A000 where rows would have to be rewritten.
fn check_retyped(
    column: &Column,
    ty: Type,
    using: Option<&ast::Expr>,
    known: &catalog::Names<'_>,
) -> Result<(), SqlError> {
    let name = &column.name;
    let itself = |expr: &ast::Expr| matches!(expr, ast::Expr::Identifier(id) if ident(id) == *name);
    let plain = match using {
        None => true,
        Some(ast::Expr::Cast {
            kind: _,
            expr,
            data_type,
            format: None,
        }) => {
            itself(expr)
                && matches!(named_type(data_type, known)?, NamedType::Plain(to) if to == ty)
        }
        Some(expr) => itself(expr),
    };
    if using.is_none() && !resolve::can_coerce(column.ty, ty, Context::Assignment) {
        let to = ty.base_name();
        let message = format!("column \"{name}\" cannot be cast automatically to type {to}");
        return Err(
            SqlError::new(SqlState::DATATYPE_MISMATCH, message).hint(format!(
                "You might need to specify \"USING {name}::{}\".",
                ty.name()
            )),
        );
    }
    if plain && keeps_values(column.ty, ty) {
        return Ok(());
    }
    let change = format!("{} to {}", column.ty.name(), ty.name());
    let text = format!("changing the type of a column from {change}, which rewrites its values,");
    Err(unsupported(&text).hint(
        "Add a column of the new type, fill it with UPDATE, drop the old one, rename the new one.",
    ))
}

/// Whether values of the first type are stored and ordered as those of the second are.
fn keeps_values(from: Type, to: Type) -> bool {
    let wider = |from: Option<u32>, to: Option<u32>| match (from, to) {
        (_, None) => true,
        (None, Some(_)) => false,
        (Some(from), Some(to)) => from <= to,
    };
    let finer = |from: Option<u8>, to: Option<u8>| wider(from.map(u32::from), to.map(u32::from));
    match (from, to) {
        (Type::Int2, Type::Int4 | Type::Int8) | (Type::Int4, Type::Int8) => true,
        (Type::Varchar(_) | Type::Text, Type::Text | Type::Varchar(None)) => true,
        (Type::Varchar(from), Type::Varchar(to)) => wider(from, to),
        (Type::Numeric(_), Type::Numeric(None)) => true,
        (Type::Numeric(Some((digits, scale))), Type::Numeric(Some((more, same)))) => {
            scale == same && digits <= more
        }
        (Type::Time(from), Type::Time(to)) => finer(from, to),
        (Type::Timestamp(from), Type::Timestamp(to)) => finer(from, to),
        (Type::Timestamptz(from), Type::Timestamptz(to)) => finer(from, to),
        (from, to) => from == to,
    }
}

/// RENAME, which stands alone in its statement; `None`: it is another change.
pub(super) fn rename(
    table: &Table,
    operation: &AlterTableOperation,
    binder: &Binder<'_>,
) -> Result<Option<DdlPlan>, SqlError> {
    let action = match operation {
        AlterTableOperation::RenameColumn {
            old_column_name,
            new_column_name,
        } => TableAction::RenameColumn {
            from: ident(old_column_name),
            to: ident(new_column_name),
        },
        AlterTableOperation::RenameConstraint { old_name, new_name } => {
            TableAction::RenameConstraint {
                from: ident(old_name),
                to: ident(new_name),
            }
        }
        AlterTableOperation::RenameTable { table_name } => TableAction::RenameTable {
            to: other_name(table_name, binder)?,
        },
        _ => return Ok(None),
    };
    let command = Command::AlterTable {
        database: binder.cx.database.name.clone(),
        table: table.name.clone(),
        actions: vec![action],
    };
    Ok(Some(simple(TAG, vec![command])))
}

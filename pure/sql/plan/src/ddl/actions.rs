//! ALTER TABLE: lists of actions that keep the rows of the table.
//!
//! Actions are bound one after the other against the catalog that those before give, in
//! PostgreSQL's order: what is dropped, types, new columns, properties of columns, constraints.
//! If rows must be filled or looked through, what is new comes in a first command, and everything
//! else with its publication in a second one, so that the statement takes effect as a whole.

use super::added::{Added, added_column};
use super::alter::TAG;
use super::default::default_text;
use super::retype::{self, Retypes};
use super::table::{
    Constraint, Foreign, constraint_of, foreign_key, key_columns, refers_to_itself,
};
use super::unique::{Key, Unique};
use super::{generated, names, other_name, simple, with_notices};
use crate::plan::{AlterFill, DdlPlan, Fill, FillStage};
use base::full_name::beside;
use base::{SqlError, SqlState};
use bind::scope::ident;
use bind::{Binder, unsupported};
use catalog::{
    Catalog, Check, Column, ColumnState, Command, DOMAINS, Deferral, Index, Table, TableAction,
    Validity,
};
use parse::{IdentityAction, Idle, IdleOf, Marks};
use sqlparser::ast::{self, AlterColumnOperation, AlterTableOperation, DropBehavior};
use std::sync::Arc;

/// What becomes of the actions of a statement.
pub(super) struct Actions<'s, 'b, 'c> {
    pub(super) binder: &'s mut Binder<'b>,
    pub(super) marks: &'c Marks,
    /// The catalog after the actions so far, new columns and constraints being complete.
    pub(super) catalog: Catalog,
    /// Name of the table.
    pub(super) table: String,
    /// What writers must know before rows are looked through.
    pub(super) early: Vec<TableAction>,
    pub(super) late: Vec<TableAction>,
    pub(super) fill: AlterFill,
    /// The primary key that the table gets.
    pub(super) key: Option<Key>,
    /// Work that follows.
    pub(super) stages: Vec<FillStage>,
    notices: Vec<String>,
    /// Indexes that no statement reads any more when the statement has taken effect.
    pub(super) retired: Vec<String>,
    /// Names of columns and constraints that are dropped.
    dropped: Vec<String>,
    pub(super) retypes: Retypes,
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
        key: None,
        stages: Vec::new(),
        notices: Vec::new(),
        retired: Vec::new(),
        dropped: Vec::new(),
        retypes: Retypes::new(table),
    };
    let mut ordered: Vec<&AlterTableOperation> = operations.iter().collect();
    ordered.sort_by_key(|operation| pass(operation, marks));
    let typed = ordered.partition_point(|operation| pass(operation, marks) <= TYPES);
    for operation in &ordered[..typed] {
        actions.add(operation)?;
    }
    if actions.changes_key() {
        return actions.rekeyed(ordered.len() > typed);
    }
    actions.replace_columns()?;
    for operation in &ordered[typed..] {
        actions.add(operation)?;
    }
    match actions.key.take() {
        None => Ok(actions.planned()),
        Some(key) => actions.keyed(key),
    }
}

/// The pass in which types are changed.
const TYPES: u8 = 1;

/// PostgreSQL's order of actions.
fn pass(operation: &AlterTableOperation, marks: &Marks) -> u8 {
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
        Operation::AlterColumn { column_name, op } => match op {
            AlterColumnOperation::DropDefault
                if matches!(
                    marks.identity(column_name),
                    Some(IdentityAction::Change { .. })
                ) =>
            {
                3
            }
            AlterColumnOperation::DropDefault | AlterColumnOperation::DropNotNull => 0,
            AlterColumnOperation::SetDataType {
                data_type: _,
                using: _,
            } => TYPES,
            AlterColumnOperation::SetNotNull => 3,
            AlterColumnOperation::SetDefault { value: _ }
            | AlterColumnOperation::AddGenerated {
                generated_as: _,
                sequence_options: _,
            } => 5,
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

pub(super) fn cascades(behavior: Option<DropBehavior>) -> bool {
    matches!(behavior, Some(DropBehavior::Cascade))
}

impl Actions<'_, '_, '_> {
    /// The table after the actions so far.
    pub(super) fn now(&self) -> Arc<Table> {
        let database = self.catalog.database(&self.binder.cx.database.name);
        let table = database.and_then(|database| database.table(&self.table));
        table.expect("actions keep the table").clone()
    }

    /// Notes what an action does to the catalog.
    pub(super) fn apply(&mut self, action: TableAction) -> Result<(), SqlError> {
        let command = Command::AlterTable {
            database: self.binder.cx.database.name.clone(),
            table: self.table.clone(),
            actions: vec![action],
        };
        self.catalog = self.catalog.apply(&command)?.0;
        Ok(())
    }

    pub(super) fn late(&mut self, action: TableAction) -> Result<(), SqlError> {
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
                if let Some(idle) = self.marks.idle(name) {
                    return self.idle(idle);
                }
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
            let reads = |index: &&Index| {
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

    /// Notes an action that has nothing to change.
    fn idle(&mut self, idle: &Idle) -> Result<(), SqlError> {
        let Idle { named, notice } = idle;
        let table = self.now();
        let missing = |what: &str, name: &str| {
            let message = format!(
                "{what} \"{name}\" for table \"{}\" does not exist",
                table.name
            );
            Err(SqlError::new(SqlState::UNDEFINED_OBJECT, message))
        };
        match named {
            IdleOf::Nothing => {}
            IdleOf::Column(name) => drop(table.own_column(name)?),
            IdleOf::Index(name) if table.index(name).is_some() => {}
            IdleOf::Index(name) => return missing("index", name),
            IdleOf::Trigger(name) => return missing("trigger", name),
            IdleOf::Rule(name) => {
                let table = &table.name;
                let message = format!("rule \"{name}\" for relation \"{table}\" does not exist");
                return Err(SqlError::new(SqlState::UNDEFINED_OBJECT, message));
            }
        }
        if !notice.is_empty() {
            self.notices.push(notice.clone());
        }
        Ok(())
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
            primary,
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
        self.of_domain(&mut column);
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
        let primary = primary.into_iter().map(Constraint::Primary);
        let uniques = uniques.into_iter().map(Constraint::Unique);
        let checks = checks.into_iter();
        let checks = checks.map(|(name, check)| Constraint::Check(named(name), Box::new(check)));
        let foreign = foreign.into_iter().map(Constraint::Foreign);
        let mut all = primary.chain(uniques).chain(checks).chain(foreign);
        all.try_for_each(|constraint| self.add_constraint(constraint))
    }

    /// What a new column has of its domain: rows that are there get its default, and are looked at.
    fn of_domain(&mut self, column: &mut Column) {
        let database = self.binder.cx.database;
        let Some(domain) = column.domain.and_then(|id| database.domain_by_id(id)) else {
            return;
        };
        let computed = column.identity.is_some() || column.generated.is_some();
        if column.default.is_none() && !computed {
            column.default.clone_from(&domain.default);
        }
        let known = self.fill.constraints.iter().any(|name| name == DOMAINS);
        if database.has_conditions(domain.id) && !known {
            self.fill.constraints.push(DOMAINS.into());
        }
    }

    fn alter_column(
        &mut self,
        column_name: &ast::Ident,
        op: &AlterColumnOperation,
    ) -> Result<(), SqlError> {
        let name = ident(column_name);
        let table = self.now();
        let at = retype::place_of(&table, &name, op)?;
        let column = &table.columns[at];
        match op {
            AlterColumnOperation::SetNotNull => {
                if !column.not_null {
                    self.set_not_null(name);
                }
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
            AlterColumnOperation::DropDefault if self.marks.identity(column_name).is_some() => {
                let action = self.marks.identity(column_name);
                self.change_identity(column, action.expect("just seen"))
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
                let collation = self.marks.collation(column_name);
                self.set_type(at, (data_type, collation), using.as_ref())
            }
            AlterColumnOperation::AddGenerated {
                generated_as,
                sequence_options,
            } => self.add_identity(column, generated_as.as_ref(), sequence_options.as_deref()),
        }
    }

    fn add_constraint(&mut self, constraint: Constraint) -> Result<(), SqlError> {
        match constraint {
            Constraint::Primary(key) => self.add_key(key),
            Constraint::Unique(unique) => self.add_unique(&unique),
            Constraint::Foreign(written) => self.add_foreign(&written),
            Constraint::Check(name, check) => self.add_check(name, &check),
        }
    }

    /// A primary key that can be deferred is a constraint of numbered rows. Another one comes when
    /// all else is done.
    fn add_key(&mut self, key: Key) -> Result<(), SqlError> {
        let table = self.now();
        if table.key_index().is_some() || self.key.is_some() {
            return Err(table.second_key());
        }
        if key.deferral == Deferral::Never {
            self.key = Some(key);
            return Ok(());
        }
        for key in key_columns(&table, &key.columns)? {
            let column = table.column_at(key.column);
            if !column.not_null {
                self.set_not_null(column.name.clone());
            }
        }
        self.add_unique(&key.over_numbers())
    }

    /// New rows are refused a NULL; those that are there are looked at.
    fn set_not_null(&mut self, name: String) {
        let hidden = self.retypes.hidden(&name);
        let name = hidden.unwrap_or(name);
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
    }

    fn check_new(&self, name: &str) -> Result<(), SqlError> {
        match self.dropped.iter().any(|dropped| dropped == name) {
            true => Err(together(name)),
            false => Ok(()),
        }
    }

    fn add_unique(&mut self, unique: &Unique) -> Result<(), SqlError> {
        let table = self.now();
        let index = unique.index(&table, unique.name.clone())?;
        let name = match unique.name.as_str() {
            "" => {
                let database = self.catalog.database(&self.binder.cx.database.name);
                let database = database.expect("it is the session's");
                match unique.of_key {
                    true => names::free_name(database, &table.name, &[], "pkey"),
                    false => names::free_name(database, &table.name, &unique.columns, "key"),
                }
            }
            name => name.into(),
        };
        self.check_new(&name)?;
        let action = TableAction::AddIndex(Index {
            name: name.clone(),
            ..index
        });
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
        if self.key.is_some() && refers_to_itself(&table, written, self.binder) {
            return Err(
                unsupported("a foreign key beside the primary key that it may refer to")
                    .hint("Add the primary key first, with a statement of its own."),
            );
        }
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
        let expression = super::shown::new_check_text(&table, check, self.binder)?;
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

    pub(super) fn planned(self) -> DdlPlan {
        let Actions {
            binder,
            table,
            mut early,
            mut late,
            fill,
            stages,
            retired,
            notices,
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
                names: retired.iter().map(|name| beside(&table, name)).collect(),
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
                return with_notices(simple(TAG, Vec::new()), notices);
            }
            let commands = [alter(late)].into_iter().chain(rest);
            return with_notices(simple(TAG, commands.collect()), notices);
        }
        for action in &mut early {
            if let TableAction::AddColumn { column, .. } = action {
                column.hidden = true;
                column.state = ColumnState::Filling;
            }
        }
        late.insert(0, TableAction::Publish);
        let fill = Fill::Alter(Box::new(fill));
        let after = [alter(late)].into_iter().chain(rest);
        DdlPlan {
            tag: TAG,
            before: vec![alter(early)],
            after: after.collect(),
            undo: vec![alter(vec![TableAction::Undo])],
            fill: Some(match stages.is_empty() {
                true => fill,
                false => Fill::Stages([fill.into()].into_iter().chain(stages).collect()),
            }),
            notices,
            temporary: None,
        }
    }
}

/// One statement drops something and adds another of the same name.
fn together(name: &str) -> SqlError {
    unsupported(&format!("dropping and adding \"{name}\" in one statement"))
        .hint("Drop it in a statement before.")
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

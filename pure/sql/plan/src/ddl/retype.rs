//! ALTER COLUMN .. TYPE.
//!
//! Where values are stored and ordered as before, the catalog alone changes. Else a hidden column
//! is filled with the new values, and takes the place of the old one (`catalog::retyped`).

use super::actions::Actions;
use super::class;
use super::table::{check_refers, check_storable};
use crate::plan::{Fill, FillStage};
use base::full_name::beside;
use base::{SqlError, SqlState, Type};
use bind::scope::ident;
use bind::types::{NamedType, named_type};
use bind::{Kept, unsupported};
use catalog::{Check, Column, ColumnState, Command, ForeignKey, Table, TableAction, Validity};
use catalog::{quoted, renamed_column, retyped, retyped_key};
use expr::resolve::{self, Context};
use expr::zoned;
use parse::OperatorClass;
use sqlparser::ast;
use std::sync::Arc;

/// The columns of a statement whose values are computed anew.
pub(super) struct Retypes {
    /// The table before the statement: USING reads its columns.
    before: Arc<Table>,
    /// Names of all columns that get a type.
    named: Vec<String>,
    /// Places of those that are replaced, and what replaces them.
    new: Vec<(u16, Column)>,
}

impl Retypes {
    pub(super) fn new(before: &Table) -> Retypes {
        Retypes {
            before: Arc::new(before.clone()),
            named: Vec::new(),
            new: Vec::new(),
        }
    }

    /// The name of what replaces this column.
    pub(super) fn hidden(&self, name: &str) -> Option<String> {
        let hidden = retyped(name);
        let is_replaced = self.new.iter().any(|(_, column)| column.name == hidden);
        is_replaced.then_some(hidden)
    }

    /// What replaces the column at this place.
    pub(super) fn new_at(&self, place: u16) -> Option<&Column> {
        let mut all = self.new.iter();
        all.find_map(|(at, column)| (*at == place).then_some(column))
    }

    /// Places of columns that are replaced, and what replaces them.
    pub(super) fn replaced(&self) -> impl Iterator<Item = (u16, &Column)> {
        self.new.iter().map(|(at, column)| (*at, column))
    }

    /// The text with the names of what replaces columns instead of theirs.
    fn renamed(&self, text: &str) -> String {
        let mut text = text.to_string();
        for (at, column) in &self.new {
            let name = &self.before.column_at(*at).name;
            text = renamed_column(&text, name, &column.name);
        }
        text
    }
}

impl Actions<'_, '_, '_> {
    pub(super) fn set_type(
        &mut self,
        at: usize,
        (data_type, collation): (&ast::DataType, Option<&ast::ObjectName>),
        using: Option<&ast::Expr>,
    ) -> Result<(), SqlError> {
        let table = self.now();
        let column = &table.columns[at];
        let named = named_type(data_type, &self.binder.names())?;
        if matches!(named, NamedType::Domain(..)) {
            let error = unsupported("changing the type of a column to a domain");
            return Err(error.hint("Add a CHECK to the table."));
        }
        let NamedType::Plain(ty) = named else {
            let message = format!("type \"{data_type}\" does not exist").to_lowercase();
            return Err(SqlError::new(SqlState::UNDEFINED_OBJECT, message));
        };
        check_storable(&column.name, ty)?;
        let collation = match collation {
            Some(name) => self.binder.column_collation(ty, name)?,
            None => 0,
        };
        if self.retypes.named.contains(&column.name) {
            let message = format!("cannot alter type of column \"{}\" twice", column.name);
            return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
        }
        self.retypes.named.push(column.name.clone());
        check_cast(column, ty, using)?;
        if self.is_plain(column, ty, using)? && keeps_values(column.ty, ty) {
            let column = column.name.clone();
            return self.late(TableAction::SetType {
                column,
                ty,
                collation,
            });
        }
        let mut numbered = table.secondary.iter().filter(|index| index.of_key);
        if numbered.any(|key| key.columns.iter().any(|key| usize::from(key.column) == at)) {
            let what = "other values for a column of a deferrable primary key";
            let hint = "Drop the key before, and add it again behind.";
            return Err(unsupported(what).hint(hint));
        }
        let mut new = self.new_column(&table, at, ty, using)?;
        new.collation = collation;
        self.retypes.new.push((at as u16, new));
        Ok(())
    }

    /// Whether the new values are the old ones, cast to the type.
    fn is_plain(
        &self,
        column: &Column,
        ty: Type,
        using: Option<&ast::Expr>,
    ) -> Result<bool, SqlError> {
        let itself = |expr: &ast::Expr| match expr {
            ast::Expr::Identifier(id) => ident(id) == column.name,
            _ => false,
        };
        Ok(match using {
            None => true,
            Some(ast::Expr::Cast {
                kind: _,
                expr,
                data_type,
                format: None,
            }) => {
                let named = named_type(data_type, &self.binder.names())?;
                itself(expr) && matches!(named, NamedType::Plain(to) if to == ty)
            }
            Some(expr) => itself(expr),
        })
    }

    fn new_column(
        &mut self,
        table: &Table,
        at: usize,
        ty: Type,
        using: Option<&ast::Expr>,
    ) -> Result<Column, SqlError> {
        let column = &table.columns[at];
        let (name, to) = (&column.name, ty.base_name());
        if column.identity.is_some() && !matches!(ty, Type::Int2 | Type::Int4 | Type::Int8) {
            let message = "identity column type must be smallint, integer, or bigint";
            return Err(SqlError::new(SqlState::INVALID_PARAMETER, message));
        }
        let itself = parse::expression(&quoted(name))?;
        let using = using.unwrap_or(&itself);
        let wanted = Column::new(name, ty);
        let before = self.retypes.before.clone();
        let binder = &mut self.binder;
        binder
            .need_for_change(|binder| binder.kept_expr(&before, using, Kept::Transform(&wanted)))?;
        let is_drawn = column.identity.is_some() || column.default.is_none();
        if !is_drawn && !resolve::can_coerce(column.ty, ty, Context::Assignment) {
            let message =
                format!("default for column \"{name}\" cannot be cast automatically to type {to}");
            return Err(SqlError::new(SqlState::DATATYPE_MISMATCH, message));
        }
        Ok(Column {
            not_null: column.not_null,
            generated: Some(super::shown::kept(&super::shown::text(using), self.binder)),
            hidden: true,
            state: ColumnState::Filling,
            shown_at: Some(table.shown_at(at)),
            zone: Some(zoned::written_out(&self.binder.zone)),
            ..Column::new(&retyped(name), ty)
        })
    }

    /// Notes the hidden columns, with what takes the places of indexes and checks.
    pub(super) fn replace_columns(&mut self) -> Result<(), SqlError> {
        if self.retypes.new.is_empty() {
            return Ok(());
        }
        let table = self.now();
        let first = table.columns.len();
        let new = self.retypes.new.iter().map(|(_, column)| column.clone());
        for (column, place) in new.collect::<Vec<_>>().into_iter().zip(first..) {
            self.fill.columns.push(column.name.clone());
            if column.not_null {
                self.fill.not_null.push(column.name.clone());
            }
            self.begin(TableAction::AddColumn {
                column,
                place: place as u16,
                if_not_exists: false,
            })?;
        }
        let checks = self.replace_checks(&table)?;
        let indexes = self.replace_indexes(&table, first as u16)?;
        self.replace_keys(&table, first as u16)?;
        self.apply(TableAction::Publish)?;
        if !indexes.is_empty() {
            let names = indexes.iter().map(|name| beside(&self.table, name));
            let drop = Command::DropIndex {
                database: self.binder.cx.database.name.clone(),
                names: names.collect(),
                if_exists: false,
            };
            self.catalog = self.catalog.apply(&drop)?.0;
            self.retired.extend(indexes);
        }
        let now = self.now();
        for check in checks {
            super::shown::check_text(&now, &parse::expression(&check)?, self.binder)?;
        }
        Ok(())
    }

    fn begin(&mut self, action: TableAction) -> Result<(), SqlError> {
        self.apply(action.clone())?;
        self.early.push(action);
        Ok(())
    }

    /// Copies the checks that read columns which are replaced. Gives the texts of these checks.
    fn replace_checks(&mut self, table: &Table) -> Result<Vec<String>, SqlError> {
        let mut texts = Vec::new();
        for check in &table.checks {
            let read = table.columns_of_check(check);
            if !self.retypes.new.iter().any(|(at, _)| read.contains(at)) {
                continue;
            }
            texts.push(check.expression.clone());
            let copy = Check {
                name: retyped(&check.name),
                expression: self.retypes.renamed(&check.expression),
                validity: Validity::Adding,
            };
            if check.validity == Validity::Valid {
                self.fill.constraints.push(copy.name.clone());
            }
            self.begin(TableAction::AddCheck(copy))?;
        }
        Ok(texts)
    }

    /// Copies the indexes of columns that are replaced. Gives the names of the copies, which the
    /// old ones have in the end.
    fn replace_indexes(&mut self, table: &Table, first: u16) -> Result<Vec<String>, SqlError> {
        let new: Vec<u16> = self.retypes.new.iter().map(|(at, _)| *at).collect();
        let mut names = Vec::new();
        for index in &table.secondary {
            if !new.iter().any(|at| table.index_reads(index, *at)) {
                continue;
            }
            let mut copy = index.clone();
            copy.name = retyped(&index.name);
            let keys = copy.columns.iter_mut().map(|key| &mut key.column);
            for place in keys.chain(&mut copy.included) {
                if let Some(at) = new.iter().position(|at| at == place) {
                    *place = first + at as u16;
                }
            }
            let now = self.now();
            for (i, key) in copy.columns.iter().enumerate() {
                class::check_ordered(now.column_at(key.column).ty)?;
                if let Some(Some(name)) = copy.classes.get(i) {
                    let class = OperatorClass {
                        schema: None,
                        name: name.clone(),
                    };
                    class::check(self.binder.cx.database, &now, key.column, &class)?;
                }
            }
            self.fill.indexes.push(copy.name.clone());
            names.push(copy.name.clone());
            self.begin(TableAction::AddIndex(copy))?;
        }
        Ok(names)
    }
}

impl Actions<'_, '_, '_> {
    /// Copies the foreign keys that name columns which are replaced, on either side. One that
    /// refers to such a column follows when the rows have their new values: until then its writers
    /// would not find them.
    fn replace_keys(&mut self, table: &Table, first: u16) -> Result<(), SqlError> {
        let places: Vec<u16> = self.retypes.replaced().map(|(at, _)| at).collect();
        let moved = |columns: &[u16]| -> Vec<u16> {
            let new = |at: &u16| places.iter().position(|place| place == at);
            let moved = columns.iter().map(|at| match new(at) {
                Some(number) => first + number as u16,
                None => *at,
            });
            moved.collect()
        };
        for (child, key) in self.keys_to_look_at(table)? {
            let (of_table, to_table) = (child.name == table.name, key.parent == table.name);
            let columns = match of_table {
                true => moved(&key.columns),
                false => key.columns.clone(),
            };
            let parent_columns = match to_table {
                true => moved(&key.parent_columns),
                false => key.parent_columns.clone(),
            };
            let is_valid = key.validity == Validity::Valid;
            let follows = parent_columns != key.parent_columns;
            let copy = retyped_key(&key, columns, parent_columns);
            if !follows {
                if is_valid {
                    self.fill.constraints.push(copy.name.clone());
                }
                self.begin(TableAction::AddForeignKey(copy))?;
                continue;
            }
            let constraint = copy.name.clone();
            let commands = self.add_later(&child.name, copy)?;
            let fill = Fill::Validate {
                table: child.name.clone(),
                constraint,
            };
            let fill = is_valid.then_some(fill);
            self.stages.push(FillStage { commands, fill });
        }
        Ok(())
    }

    /// The commands that add the copy of a foreign key to columns whose new index is complete.
    fn add_later(&mut self, child: &str, copy: ForeignKey) -> Result<Vec<Command>, SqlError> {
        let database = &self.binder.cx.database.name;
        let now = self.now();
        let needed = now.secondary.iter();
        let mut needed = needed.filter(|index| {
            index.building && index.is_immediate() && index.covers_exactly(&copy.parent_columns)
        });
        let finish = needed.next().map(|index| Command::FinishIndex {
            database: database.clone(),
            table: now.name.clone(),
            index: index.name.clone(),
        });
        let add = Command::AddForeignKey {
            database: database.clone(),
            table: child.into(),
            foreign_key: copy,
        };
        let commands: Vec<Command> = finish.into_iter().chain([add]).collect();
        for command in &commands {
            self.catalog = self.catalog.apply(command)?.0;
        }
        Ok(commands)
    }

    /// The foreign keys that name columns which get other values, on either side, each with the
    /// table that has it.
    ///
    /// # Errors
    /// 42804 if the new types do not fit.
    pub(super) fn keys_to_look_at(
        &self,
        table: &Table,
    ) -> Result<Vec<(Arc<Table>, ForeignKey)>, SqlError> {
        let database = self.catalog.database(&self.binder.cx.database.name);
        let database = database.expect("it is the session's");
        let places: Vec<u16> = self.retypes.replaced().map(|(at, _)| at).collect();
        let after = |side: &Table, at: u16| {
            let mut column = side.column_at(at).clone();
            if let Some(new) = self.retypes.new_at(at).filter(|_| side.name == table.name) {
                column.ty = new.ty;
            }
            column
        };
        let found = database.keys_to_look_at(table, &places);
        for (child, key) in &found {
            let Some(parent) = database.table(&key.parent) else {
                continue;
            };
            for (own, other) in key.columns.iter().zip(&key.parent_columns) {
                let (own, other) = (after(child, *own), after(parent, *other));
                check_refers(&key.name, &own, &other)?;
                catalog::check_reference(&key.name, &own, &other)?;
            }
        }
        Ok(found)
    }
}

/// The place of a column that ALTER COLUMN names.
pub(super) fn place_of(
    table: &Table,
    name: &str,
    op: &ast::AlterColumnOperation,
) -> Result<usize, SqlError> {
    table.own_column(name).map_err(|error| match op {
        ast::AlterColumnOperation::SetDataType {
            data_type: _,
            using: _,
        } => of_system(name).unwrap_or(error),
        _ => error,
    })
}

/// The error for a column that every table has.
fn of_system(name: &str) -> Option<SqlError> {
    let system = ["ctid", "xmin", "xmax", "cmin", "cmax", "tableoid"];
    system.contains(&name).then(|| {
        let message = format!("cannot alter system column \"{name}\"");
        SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message)
    })
}

/// 42804 where no cast leads from the old values to the new ones.
fn check_cast(column: &Column, ty: Type, using: Option<&ast::Expr>) -> Result<(), SqlError> {
    if using.is_some() || resolve::can_coerce(column.ty, ty, Context::Assignment) {
        return Ok(());
    }
    let (name, to) = (&column.name, ty.base_name());
    let message = format!("column \"{name}\" cannot be cast automatically to type {to}");
    let hint = format!(
        "You might need to specify \"USING {}::{}\".",
        quoted(name),
        ty.name()
    );
    Err(SqlError::new(SqlState::DATATYPE_MISMATCH, message).hint(hint))
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
        (Type::Varbit(from), Type::Varbit(to)) => wider(from, to),
        (Type::Bit(_), Type::Varbit(None)) => true,
        (Type::Timetz(from), Type::Timetz(to)) => finer(from, to),
        (Type::Time(from), Type::Time(to)) => finer(from, to),
        (Type::Timestamp(from), Type::Timestamp(to)) => finer(from, to),
        (Type::Timestamptz(from), Type::Timestamptz(to)) => finer(from, to),
        (from, to) => from == to,
    }
}

//! INSERT, UPDATE, DELETE: bound forms.

use super::change::{Change, Changed};
use super::conflict::Conflict;
use super::from::Locking;
use super::rel::{CallKind, Rel};
use super::scope::{Scope, ident, object_name};
use super::target::Target;
use super::{Binder, ELSEWHERE, Untyped, place_calls, unsupported};
use base::{SqlError, SqlState, Type};
use catalog::{Column, Identity, Table};
use expr::Expr;
use expr::resolve::{self, Context};
use parse::{InsertWords, Overriding, expression};
use rights::Privileges;
use sqlparser::ast::{
    self, Assignment, AssignmentTarget, Expr as Ast, FromTable, SelectItem, SqliteOnConflict,
    TableFactor, TableObject, TableWithJoins, UpdateTableFromKind,
};
use std::sync::Arc;

/// INSERT: the source gives full rows of the table; a hidden row number is NULL in it.
#[allow(missing_docs)]
pub struct BoundInsert {
    pub table: Arc<Table>,
    pub source: Rel,
    pub conflict: Option<Conflict>,
    /// Over the new row.
    pub returning: Option<Vec<Target>>,
}

/// What an INSERT says of its columns.
struct Given<'a> {
    columns: &'a [u16],
    /// There was no list of them.
    implicit: bool,
    overriding: Option<Overriding>,
}

/// New value of a column.
#[allow(missing_docs)]
pub struct BoundAssignment {
    pub column: u16,
    pub value: Expr,
}

/// UPDATE (with assignments) or DELETE (without).
#[allow(missing_docs)]
pub struct BoundWrite {
    pub table: Arc<Table>,
    /// The target's columns first, then those of other tables and calls.
    pub rows: Rel,
    /// Over `rows`; `None`: delete.
    pub assignments: Option<Vec<BoundAssignment>>,
    /// Over `rows`, with the target's columns replaced by their new values.
    pub returning: Option<Vec<Target>>,
}

impl Binder<'_> {
    /// Binds an INSERT.
    ///
    /// # Errors
    /// Those of names and types; 428C9 for a value of a GENERATED ALWAYS column.
    pub fn insert(
        &mut self,
        insert: &ast::Insert,
        words: &InsertWords,
    ) -> Result<BoundInsert, SqlError> {
        let ast::Insert {
            or,
            ignore,
            into,
            table,
            table_alias,
            columns,
            overwrite,
            source,
            assignments,
            partitioned,
            after_columns,
            has_table_keyword,
            on,
            returning,
            replace_into,
            priority,
            insert_alias,
            settings,
            format_clause,
        } = insert;
        let TableObject::TableName(name) = table else {
            return Err(self.source.misplaced("FUNCTION"));
        };
        if let Some(or) = or {
            self.no(*or != SqliteOnConflict::Replace, "OR")?;
            return Err(self.source.misplaced("REPLACE"));
        }
        self.no(*ignore, "IGNORE")?;
        self.no(!*into && !*overwrite, &object_name(name).1)?;
        self.no(*overwrite, "OVERWRITE")?;
        self.no(!assignments.is_empty(), "SET")?;
        self.no(partitioned.is_some(), "PARTITION")?;
        self.no(!after_columns.is_empty(), "(")?;
        self.no(*has_table_keyword, "TABLE")?;
        self.no(*replace_into, "REPLACE")?;
        self.no(priority.is_some() || insert_alias.is_some(), "AS")?;
        self.no(settings.is_some(), "SETTINGS")?;
        self.no(format_clause.is_some(), "FORMAT")?;
        let alias = table_alias.as_ref().map(ident);
        let changed = self.inserted(name, alias, on.as_ref())?;
        let (table, alias) = (changed.table, changed.alias);
        let given = self.insert_columns(&table, columns)?;
        self.need_columns(&table, Privileges::INSERT, &given);
        let values = Given {
            columns: &given,
            implicit: columns.is_empty(),
            overriding: words.overriding,
        };
        let source = self.insert_source(&table, source.as_deref(), &values)?;
        let conflict = self.on_conflict((&table, &alias), on.as_ref(), words)?;
        let returning = self.returning(returning.as_deref(), changed.scope)?;
        Ok(BoundInsert {
            table,
            source,
            conflict,
            returning,
        })
    }

    pub(super) fn insert_columns(
        &self,
        table: &Table,
        names: &[ast::Ident],
    ) -> Result<Vec<u16>, SqlError> {
        if names.is_empty() {
            if let Some(columns) = self.view_columns() {
                return columns;
            }
            let visible = table.columns.iter().enumerate().filter(|(_, c)| !c.hidden);
            return Ok(visible.map(|(i, _)| i as u16).collect());
        }
        let mut given = Vec::new();
        for name in names {
            let column = self.column_position(table, name)?;
            if given.contains(&column) {
                let message = format!("column \"{}\" specified more than once", ident(name));
                return Err(SqlError::new(SqlState::DUPLICATE_COLUMN, message));
            }
            given.push(column);
        }
        Ok(given)
    }

    pub(super) fn column_position(
        &self,
        table: &Table,
        name: &ast::Ident,
    ) -> Result<u16, SqlError> {
        if let Some(found) = self.view_column(name) {
            return found;
        }
        let folded = ident(name);
        let found = table
            .columns
            .iter()
            .position(|c| c.name == folded && !c.hidden);
        found.map(|i| i as u16).ok_or_else(|| {
            let message = format!(
                "column \"{folded}\" of relation \"{}\" does not exist",
                table.name
            );
            SqlError::new(SqlState::UNDEFINED_COLUMN, message).at(self.position(name.span))
        })
    }

    fn insert_source(
        &mut self,
        table: &Arc<Table>,
        source: Option<&ast::Query>,
        values: &Given<'_>,
    ) -> Result<Rel, SqlError> {
        let Given {
            columns: given,
            implicit,
            overriding,
        } = *values;
        let Some(query) = source else {
            return self.value_rows(table, &[], &[Vec::new()], overriding);
        };
        if let Some(rows) = self.plain_values(query)? {
            return self.checked_rows(table, given, rows, implicit, overriding);
        }
        let columns = given.iter().map(|column| table.column_at(*column).ty);
        self.untyped = Untyped::Assigned(columns.collect());
        let (bound, binds, _) = self.nested(|binder| binder.query(query))?;
        assert!(binds.is_empty(), "an INSERT has no enclosing row");
        let count = bound.columns.len();
        self.check_count(given, count, implicit)?;
        let width = bound.rel.width();
        let mut row = Vec::new();
        for (i, column) in table.columns.iter().enumerate() {
            let place = given[..count.min(given.len())]
                .iter()
                .position(|c| usize::from(*c) == i);
            row.push(match place {
                Some(place) if !overridden(column, overriding) => {
                    check_generated(column, overriding)?;
                    let value = Expr::Column(place as u32, bound.columns[place].ty);
                    self.assigned(value, column)?
                }
                _ => self.default_value(table, column)?,
            });
        }
        row.iter_mut().for_each(|value| place_calls(value, width));
        let calls = self.take_calls();
        Ok(bound.rel.applied(calls).projected(row))
    }

    pub(super) fn check_count(
        &self,
        given: &[u16],
        count: usize,
        implicit: bool,
    ) -> Result<(), SqlError> {
        if count > given.len() {
            let message = "INSERT has more expressions than target columns";
            return Err(SqlError::new(SqlState::SYNTAX, message));
        }
        if count < given.len() && !implicit {
            let message = "INSERT has more target columns than expressions";
            return Err(SqlError::new(SqlState::SYNTAX, message));
        }
        Ok(())
    }

    fn checked_rows(
        &mut self,
        table: &Arc<Table>,
        given: &[u16],
        rows: &[Vec<Ast>],
        implicit: bool,
        overriding: Option<Overriding>,
    ) -> Result<Rel, SqlError> {
        let width = rows[0].len();
        if rows.iter().any(|row| row.len() != width) {
            let message = "VALUES lists must all be the same length";
            return Err(SqlError::new(SqlState::SYNTAX, message));
        }
        self.check_count(given, width, implicit)?;
        self.value_rows(table, &given[..width], rows, overriding)
    }

    /// Full rows from VALUES, with defaults in place.
    fn value_rows(
        &mut self,
        table: &Arc<Table>,
        given: &[u16],
        rows: &[Vec<Ast>],
        overriding: Option<Overriding>,
    ) -> Result<Rel, SqlError> {
        self.level().aggregates_in = Some("VALUES");
        let mut bound = Vec::with_capacity(rows.len());
        for values in rows {
            let row = self.value_row(table, given, values, overriding)?;
            bound.push(row);
        }
        self.level().aggregates_in = ELSEWHERE;
        let types = table.columns.iter().map(|column| column.ty).collect();
        Ok(Rel::Values {
            rows: bound,
            types,
            calls: self.take_calls(),
        })
    }

    /// A full row from values of some columns, with defaults in place.
    pub(super) fn value_row(
        &mut self,
        table: &Table,
        given: &[u16],
        values: &[Ast],
        overriding: Option<Overriding>,
    ) -> Result<Vec<Expr>, SqlError> {
        let mut row = Vec::with_capacity(table.columns.len());
        for (i, column) in table.columns.iter().enumerate() {
            let value = given
                .iter()
                .position(|c| usize::from(*c) == i)
                .map(|place| &values[place])
                .filter(|value| !is_default(value) && !overridden(column, overriding));
            row.push(match value {
                Some(value) => {
                    check_generated(column, overriding)?;
                    let value = self.expr(value)?;
                    self.assigned(value, column)?
                }
                None => self.default_value(table, column)?,
            });
        }
        Ok(row)
    }

    /// A value converted to a column's type.
    ///
    /// # Errors
    /// 42804 with PostgreSQL's wording and hint.
    pub fn assigned(&mut self, value: Expr, column: &Column) -> Result<Expr, SqlError> {
        let from = value.ty();
        let value = resolve::coerce(value, column.ty, Context::Assignment).map_err(|error| {
            if !matches!(
                error.state(),
                SqlState::CANNOT_COERCE | SqlState::DATATYPE_MISMATCH
            ) {
                return error;
            }
            SqlError::new(
                SqlState::DATATYPE_MISMATCH,
                format!(
                    "column \"{}\" is of type {} but expression is of type {}",
                    column.name,
                    column.ty.base_name(),
                    from.base_name()
                ),
            )
            .hint("You will need to rewrite or cast the expression.")
        })?;
        self.note(&value);
        Ok(value)
    }

    /// The default of a column: its sequence, its default expression or NULL.
    pub fn default_value(&mut self, table: &Table, column: &Column) -> Result<Expr, SqlError> {
        if column.identity.is_some() {
            let owner = (table.name.clone(), column.name.clone());
            let sequences = self.cx.database.sequences.values();
            let found = sequences
                .into_iter()
                .find(|s| s.owned_by.as_ref() == Some(&owner));
            let sequence = found.expect("an identity column owns a sequence").clone();
            let kind = CallKind::Nextval(Arc::new(sequence));
            let drawn = self.volatile_call(kind, Type::Int8);
            return self.assigned(drawn, column);
        }
        match &column.default {
            None => Ok(Expr::null(column.ty)),
            Some(text) => {
                let ast = expression(text)?;
                let outer = self.set_scope(Scope::default());
                let bound = self.kept(|binder| binder.expr(&ast));
                self.set_scope(outer);
                let bound = bound?;
                self.assigned(bound, column)
            }
        }
    }

    pub(super) fn assignments(
        &mut self,
        table: &Arc<Table>,
        assignments: &[Assignment],
    ) -> Result<Vec<BoundAssignment>, SqlError> {
        let mut bound: Vec<BoundAssignment> = Vec::new();
        for assignment in assignments {
            let Assignment { target, value } = assignment;
            let pairs: Vec<(&ast::ObjectName, &Ast)> = match target {
                AssignmentTarget::ColumnName(name) => vec![(name, value)],
                AssignmentTarget::Tuple(names) => match strip(value) {
                    Ast::Tuple(values) if values.len() == names.len() => {
                        names.iter().zip(values).collect()
                    }
                    Ast::Tuple(_) => {
                        let message = "number of columns does not match number of values";
                        return Err(SqlError::new(SqlState::SYNTAX, message));
                    }
                    _ => return Err(unsupported("assignment of a subquery to several columns")),
                },
            };
            for (name, value) in pairs {
                let mut parts = name.0.iter();
                let ast::ObjectNamePart::Identifier(part) =
                    parts.next().expect("a name has a part");
                let column = self.column_position(table, part)?;
                // `SET a.b` is a field of the column a, whatever the table's alias is.
                if let Some(ast::ObjectNamePart::Identifier(field)) = parts.next() {
                    let message = format!(
                        "cannot assign to field \"{}\" of column \"{}\" because its type {} is not \
                         a composite type",
                        ident(field),
                        ident(part),
                        table.column_at(column).ty.base_name(),
                    );
                    return Err(SqlError::new(SqlState::DATATYPE_MISMATCH, message));
                }
                if bound.iter().any(|earlier| earlier.column == column) {
                    let message =
                        format!("multiple assignments to same column \"{}\"", ident(part));
                    return Err(SqlError::new(SqlState::SYNTAX, message));
                }
                let described = &table.columns[usize::from(column)];
                let value = if is_default(value) {
                    self.default_value(table, described)?
                } else {
                    check_updatable(described)?;
                    let value = self.expr(value)?;
                    self.assigned(value, described)?
                };
                self.need_columns(table, Privileges::UPDATE, &[column]);
                bound.push(BoundAssignment { column, value });
            }
        }
        Ok(bound)
    }

    fn returning(
        &mut self,
        items: Option<&[SelectItem]>,
        scope: Scope,
    ) -> Result<Option<Vec<Target>>, SqlError> {
        let Some(items) = items else { return Ok(None) };
        let outer = self.set_scope(scope);
        self.level().aggregates_in = Some("RETURNING");
        let bound = self.targets(items);
        self.level().aggregates_in = ELSEWHERE;
        self.set_scope(outer);
        let mut targets = bound?;
        self.settle_targets(&mut targets, &Untyped::Text)?;
        if !self.take_calls().is_empty() {
            return Err(unsupported("a correlated subquery in RETURNING"));
        }
        Ok(Some(targets))
    }

    /// What UPDATE or DELETE changes.
    pub(super) fn written(
        &mut self,
        item: &TableWithJoins,
        change: Change,
    ) -> Result<Changed, SqlError> {
        let TableWithJoins { relation, joins } = item;
        let TableFactor::Table {
            name,
            alias,
            args,
            with_hints,
            version,
            with_ordinality,
            partitions,
            json_path,
            sample,
            index_hints,
        } = relation
        else {
            return Err(self.source.misplaced("("));
        };
        self.no(!joins.is_empty(), "JOIN")?;
        self.no(args.is_some(), "(")?;
        self.no(!with_hints.is_empty() || *with_ordinality, "WITH")?;
        self.no(version.is_some(), "FOR")?;
        self.no(!partitions.is_empty(), "PARTITION")?;
        self.no(json_path.is_some(), "[")?;
        self.no(sample.is_some(), "TABLESAMPLE")?;
        self.no(!index_hints.is_empty(), "INDEX")?;
        let alias = match alias {
            None => None,
            Some(ast::TableAlias { name, columns }) => {
                self.no(!columns.is_empty(), "(")?;
                Some(self.relation_name(name)?)
            }
        };
        self.changed(name, alias, change)
    }

    /// Binds an UPDATE.
    ///
    /// # Errors
    /// Those of names and types.
    pub fn update(
        &mut self,
        table: &TableWithJoins,
        assignments: &[Assignment],
        from: Option<&UpdateTableFromKind>,
        selection: Option<&Ast>,
        returning: Option<&[SelectItem]>,
    ) -> Result<BoundWrite, SqlError> {
        let from: &[TableWithJoins] = match from {
            None => &[],
            Some(UpdateTableFromKind::AfterSet(list)) => list,
            Some(UpdateTableFromKind::BeforeSet(_)) => return Err(self.source.misplaced("FROM")),
        };
        let changed = self.written(table, Change::Update)?;
        let table = changed.table.clone();
        let (rows, scope) = self.target_rows(changed, from, selection)?;
        let before = self.set_scope(scope);
        self.level().aggregates_in = Some("UPDATE");
        let mut bound = self.assignments(&table, assignments)?;
        self.level().aggregates_in = ELSEWHERE;
        let scope = self.set_scope(before);
        let width = rows.width();
        bound
            .iter_mut()
            .for_each(|assignment| place_calls(&mut assignment.value, width));
        let calls = self.take_calls();
        let rows = rows.applied(calls);
        let returning = self.returning(returning, scope)?;
        Ok(BoundWrite {
            table,
            rows,
            assignments: Some(bound),
            returning,
        })
    }

    /// Binds a DELETE.
    ///
    /// # Errors
    /// Those of names and types.
    pub fn delete(&mut self, delete: &ast::Delete) -> Result<BoundWrite, SqlError> {
        let ast::Delete {
            tables: names,
            from,
            using,
            selection,
            returning,
            order_by,
            limit,
        } = delete;
        let tables = match from {
            FromTable::WithFromKeyword(tables) => tables,
            FromTable::WithoutKeyword(tables) => {
                let first = tables.first().map(|table| table.relation.to_string());
                return Err(self.source.misplaced(&first.unwrap_or_default()));
            }
        };
        if let Some(name) = names.first() {
            return Err(self.source.misplaced(&name.to_string()));
        }
        self.no(!order_by.is_empty(), "ORDER")?;
        self.no(limit.is_some(), "LIMIT")?;
        let [item] = tables.as_slice() else {
            return Err(self.source.misplaced(","));
        };
        let changed = self.written(item, Change::Delete)?;
        let table = changed.table.clone();
        let using = using.as_deref().unwrap_or(&[]);
        let (rows, scope) = self.target_rows(changed, using, selection.as_ref())?;
        let returning = self.returning(returning.as_deref(), scope)?;
        Ok(BoundWrite {
            table,
            rows,
            assignments: None,
            returning,
        })
    }

    /// The rows of the target, joined with other tables and filtered; the target is locked.
    fn target_rows(
        &mut self,
        changed: Changed,
        others: &[TableWithJoins],
        selection: Option<&Ast>,
    ) -> Result<(Rel, Scope), SqlError> {
        let (mut rel, mut scope) = (changed.rows, changed.scope);
        for item in others {
            (rel, scope) = self.bind_from_item(Some((rel, scope)), item, &Locking::default())?;
        }
        if let Some(condition) = selection {
            let outer = self.set_scope(scope);
            self.level().aggregates_in = Some("WHERE");
            let bound = self.condition(condition, "WHERE");
            self.level().aggregates_in = ELSEWHERE;
            scope = self.set_scope(outer);
            rel = self.filter(rel, bound?);
        }
        Ok((rel, scope))
    }
}

fn strip(mut ast: &Ast) -> &Ast {
    while let Ast::Nested(inner) = ast {
        ast = inner;
    }
    ast
}

/// The word DEFAULT in place of a value.
fn is_default(ast: &Ast) -> bool {
    matches!(ast, Ast::Identifier(name)
        if name.quote_style.is_none() && name.value.eq_ignore_ascii_case("default"))
}

/// 428C9 for a column whose values a statement cannot give.
fn check_updatable(column: &Column) -> Result<(), SqlError> {
    let name = &column.name;
    let message = format!("column \"{name}\" can only be updated to DEFAULT");
    if column.generated.is_some() {
        return Err(is_generated(name, message));
    }
    if column.identity == Some(Identity::Always) {
        let detail =
            format!("Column \"{name}\" is an identity column defined as GENERATED ALWAYS.");
        return Err(SqlError::new(SqlState(*b"428C9"), message).detail(detail));
    }
    Ok(())
}

/// 428C9.
fn is_generated(column: &str, message: String) -> SqlError {
    let detail = format!("Column \"{column}\" is a generated column.");
    SqlError::new(SqlState(*b"428C9"), message).detail(detail)
}

/// Whether OVERRIDING USER VALUE replaces a given value by the default.
fn overridden(column: &Column, overriding: Option<Overriding>) -> bool {
    column.identity.is_some() && overriding == Some(Overriding::User)
}

fn check_generated(column: &Column, overriding: Option<Overriding>) -> Result<(), SqlError> {
    if column.generated.is_some() {
        let name = &column.name;
        let message = format!("cannot insert a non-DEFAULT value into column \"{name}\"");
        return Err(is_generated(name, message));
    }
    if column.identity == Some(Identity::Always) && overriding != Some(Overriding::System) {
        return Err(SqlError::new(
            SqlState(*b"428C9"),
            format!(
                "cannot insert a non-DEFAULT value into column \"{}\"",
                column.name
            ),
        )
        .detail(format!(
            "Column \"{}\" is an identity column defined as GENERATED ALWAYS.",
            column.name
        ))
        .hint("Use OVERRIDING SYSTEM VALUE to override."));
    }
    Ok(())
}

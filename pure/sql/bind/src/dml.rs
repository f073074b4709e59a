//! INSERT, UPDATE, DELETE: bound forms.

use super::change::{Change, Changed};
use super::conflict::Conflict;
use super::from::Locking;
use super::rel::{CallKind, Rel};
use super::scope::{Scope, ident, object_name};
use super::target::Target;
use super::{Binder, ELSEWHERE, Untyped, place_calls, unsupported};
use base::record::ANONYMOUS;
use base::{SqlError, SqlState, Type};
use catalog::{Column, Identity, Table};
use expr::resolve::{self, Context};
use expr::{Expr, Func};
use functions::{ArrayFunc, JsonFunc};
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
    /// What of each is set.
    parts: &'a [Vec<ast::AccessExpr>],
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
        let changed = self.inserted(name, table_alias.as_ref().map(ident), on.as_ref())?;
        let (table, alias) = (changed.table, changed.alias);
        let given = self.insert_columns(&table, columns, &words.parts)?;
        self.need_columns(&table, Privileges::INSERT, &given);
        let values = Given {
            columns: &given,
            parts: &words.parts,
            implicit: columns.is_empty(),
            overriding: words.overriding,
        };
        let source = self.insert_source(&table, source.as_deref(), &values)?;
        let targets = self.read_targets(&table);
        let ((mut conflict, returning), reads) = self.reading(&targets, |binder| {
            let conflict = binder.on_conflict((&table, &alias), on.as_ref(), words)?;
            let returning = binder.returning(returning.as_deref(), changed.scope)?;
            Ok((conflict, returning))
        })?;
        self.guarded_conflict(&table, conflict.as_mut(), reads)?;
        let source = self.writable(&table, (changed.by, &changed.checks), source, reads)?;
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
        parts: &[Vec<ast::AccessExpr>],
    ) -> Result<Vec<u16>, SqlError> {
        if names.is_empty() {
            if let Some(columns) = self.view_columns() {
                return columns;
            }
            return Ok(table.shown());
        }
        let mut given: Vec<u16> = Vec::new();
        let is_part = |at: usize| parts.get(at).is_some_and(|chain| !chain.is_empty());
        for (at, name) in names.iter().enumerate() {
            let column = self.column_position(table, name)?;
            let mut same = given.iter().enumerate().filter(|(_, one)| **one == column);
            if same.any(|(before, _)| !is_part(before) || !is_part(at)) {
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
            parts,
            implicit,
            overriding,
        } = *values;
        let Some(query) = source else {
            return self.value_rows(table, (&[], &[]), &[Vec::new()], overriding);
        };
        if let Some(rows) = self.plain_values(query)? {
            return self.checked_rows(table, values, rows);
        }
        let columns = given.iter().enumerate().map(|(at, column)| {
            let chain = parts.get(at).map_or(&[][..], Vec::as_slice);
            self.part_type(table.column_at(*column).ty, chain)
        });
        self.untyped = Untyped::Assigned(columns.collect());
        let (bound, binds, _) = self.nested(|binder| binder.query(query))?;
        assert!(binds.is_empty(), "an INSERT has no enclosing row");
        let count = bound.columns.len();
        self.check_count(given, count, implicit)?;
        let width = bound.rel.width();
        let mut row = Vec::new();
        let given = &given[..count.min(given.len())];
        for (i, column) in table.columns.iter().enumerate() {
            let place = given.iter().position(|c| usize::from(*c) == i);
            if let Some(places) = places_of_parts(i, given, parts) {
                check_generated(column, overriding)?;
                let mut whole = Expr::null(column.ty);
                for place in places {
                    let value = Expr::Column(place as u32, bound.columns[place].ty);
                    whole = self.with_part(whole, &column.name, &parts[place], value)?;
                }
                row.push(self.assigned(whole, column)?);
                continue;
            }
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
        values: &Given<'_>,
        rows: &[Vec<Ast>],
    ) -> Result<Rel, SqlError> {
        let Given {
            columns: given,
            parts,
            implicit,
            overriding,
        } = *values;
        let width = rows[0].len();
        if rows.iter().any(|row| row.len() != width) {
            let message = "VALUES lists must all be the same length";
            return Err(SqlError::new(SqlState::SYNTAX, message));
        }
        self.check_count(given, width, implicit)?;
        self.value_rows(table, (&given[..width], parts), rows, overriding)
    }

    /// Full rows from VALUES, with defaults in place.
    fn value_rows(
        &mut self,
        table: &Arc<Table>,
        (given, parts): (&[u16], &[Vec<ast::AccessExpr>]),
        rows: &[Vec<Ast>],
        overriding: Option<Overriding>,
    ) -> Result<Rel, SqlError> {
        self.level().aggregates_in = Some("VALUES");
        let mut bound = Vec::with_capacity(rows.len());
        for values in rows {
            let row = self.value_row(table, (given, parts), values, overriding)?;
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
        (given, parts): (&[u16], &[Vec<ast::AccessExpr>]),
        values: &[Ast],
        overriding: Option<Overriding>,
    ) -> Result<Vec<Expr>, SqlError> {
        let mut row = Vec::with_capacity(table.columns.len());
        for (i, column) in table.columns.iter().enumerate() {
            if let Some(places) = places_of_parts(i, given, parts) {
                check_generated(column, overriding)?;
                let mut whole = Expr::null(column.ty);
                for place in places {
                    whole = self.with_part_of(whole, column, &parts[place], &values[place])?;
                }
                row.push(self.assigned(whole, column)?);
                continue;
            }
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
        let value = self
            .composed(value, column.ty, Context::Assignment)
            .map_err(|error| {
                let is_row = from == Type::Composite(ANONYMOUS);
                if is_row && error.state() == SqlState::CANNOT_COERCE
                    || !matches!(
                        error.state(),
                        SqlState::CANNOT_COERCE | SqlState::DATATYPE_MISMATCH
                    )
                {
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
        let domain = column
            .domain
            .and_then(|id| self.cx.database.domain_by_id(id));
        let default = domain.and_then(|domain| domain.default.as_ref());
        match column.default.as_ref().or(default) {
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
                if name.0.len() > 1 {
                    self.set_field(table, (column, &name.0[1..]), value, &mut bound)?;
                    continue;
                }
                if let Some((chain, value)) = parse::parts::taken(value) {
                    let before = bound.iter().position(|earlier| earlier.column == column);
                    let set =
                        self.part_set(table, column, (chain, value), before.map(|at| &bound[at]))?;
                    match before {
                        Some(at) => bound[at] = set,
                        None => bound.push(set),
                    }
                    continue;
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

    /// `SET column.field = value`.
    fn set_field(
        &mut self,
        table: &Arc<Table>,
        (column, path): (u16, &[ast::ObjectNamePart]),
        value: &Ast,
        bound: &mut Vec<BoundAssignment>,
    ) -> Result<(), SqlError> {
        let described = &table.columns[usize::from(column)];
        if is_default(value) {
            let message = "cannot set a subfield to DEFAULT";
            return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
        }
        let fields = path.iter().filter_map(|part| part.as_ident());
        let fields = fields.map(|name| ast::AccessExpr::Dot(Ast::Identifier(name.clone())));
        let mut chain: Vec<ast::AccessExpr> = fields.collect();
        let mut value = value;
        if let Some((behind, assigned)) = parse::parts::taken(value) {
            chain.extend_from_slice(behind);
            value = assigned;
        }
        check_updatable(described)?;
        let earlier = bound.iter().position(|earlier| earlier.column == column);
        let before = earlier.map(|at| &bound[at].value);
        let value = self.field_set(table, (column, &chain), value, before)?;
        let value = self.assigned(value, described)?;
        self.need_columns(table, Privileges::UPDATE, &[column]);
        let set = BoundAssignment { column, value };
        match earlier {
            Some(at) => bound[at] = set,
            None => bound.push(set),
        }
        Ok(())
    }

    /// `SET column[...] = value`, after the parts of the column that were set before it.
    fn part_set(
        &mut self,
        table: &Arc<Table>,
        column: u16,
        (chain, value): (&[ast::AccessExpr], &Ast),
        before: Option<&BoundAssignment>,
    ) -> Result<BoundAssignment, SqlError> {
        let described = &table.columns[usize::from(column)];
        if is_default(value) {
            let message = "cannot set an array element to DEFAULT";
            return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
        }
        check_updatable(described)?;
        let container = match before {
            None => Expr::Column(column.into(), described.ty),
            Some(before) if is_part_set(&before.value) => before.value.clone(),
            Some(_) => {
                let message = format!("multiple assignments to same column \"{}\"", described.name);
                return Err(SqlError::new(SqlState::SYNTAX, message));
            }
        };
        let places = self.places(chain, (functions::OPEN_LOW, functions::OPEN_HIGH))?;
        let value = self.expr(value)?;
        let value = resolve::assign_part(container, places, value, &described.name)?;
        let value = self.assigned(value, described)?;
        self.need_columns(table, Privileges::UPDATE, &[column]);
        Ok(BoundAssignment { column, value })
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
        let mut changed = self.written(table, Change::Update)?;
        let checks = core::mem::take(&mut changed.checks);
        let (table, by) = (changed.table.clone(), changed.by.clone());
        let targets = self.read_targets(&table);
        let ((rows, mut bound, returning), reads) = self.reading(&targets, |binder| {
            let (rows, scope) = binder.target_rows(changed, from, selection)?;
            let before = binder.set_scope(scope);
            binder.level().aggregates_in = Some("UPDATE");
            let mut bound = binder.assignments(&table, assignments)?;
            binder.level().aggregates_in = ELSEWHERE;
            let scope = binder.set_scope(before);
            let width = rows.width();
            bound
                .iter_mut()
                .for_each(|assignment| place_calls(&mut assignment.value, width));
            let calls = binder.take_calls();
            let rows = rows.applied(calls);
            let returning = binder.returning(returning, scope)?;
            Ok((rows, bound, returning))
        })?;
        let rows = self.guarded_write(&table, by, rows, Some(&mut bound), reads)?;
        let rows = self.seen_update(&table, &checks, rows, &mut bound)?;
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
        let (table, by) = (changed.table.clone(), changed.by.clone());
        let using = using.as_deref().unwrap_or(&[]);
        let targets = self.read_targets(&table);
        let ((rows, returning), reads) = self.reading(&targets, |binder| {
            let (rows, scope) = binder.target_rows(changed, using, selection.as_ref())?;
            let returning = binder.returning(returning.as_deref(), scope)?;
            Ok((rows, returning))
        })?;
        let rows = self.guarded_write(&table, by, rows, None, reads)?;
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

/// The places of the values that are set in parts of a column; `None`: no part of it is set.
fn places_of_parts(
    column: usize,
    given: &[u16],
    parts: &[Vec<ast::AccessExpr>],
) -> Option<Vec<usize>> {
    if parts.is_empty() {
        return None;
    }
    let of_column = |place: &usize| usize::from(given[*place]) == column;
    let places: Vec<usize> = (0..given.len()).filter(of_column).collect();
    let first = places.first()?;
    let is_part = parts.get(*first).is_some_and(|chain| !chain.is_empty());
    is_part.then_some(places)
}

/// Whether parts of a column were set.
fn is_part_set(value: &Expr) -> bool {
    matches!(
        value,
        Expr::Call(
            Func::Array(ArrayFunc::SetItem | ArrayFunc::SetSlice) | Func::Json(JsonFunc::Assign),
            ..
        )
    )
}

/// The word DEFAULT in place of a value.
pub(super) fn is_default(ast: &Ast) -> bool {
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

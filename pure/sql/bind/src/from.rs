//! FROM: tables, catalog tables, functions, derived tables and joins.

use super::join::shared_column;
use super::rel::{Binds, JoinKind, Rel};
use super::scope::{
    Scope, ScopeColumn, catalog_scope, check_database, check_reserved, ident, name_position,
    not_lateral, object_name, table_scope,
};
use super::table_function::{FunctionShape, is_value_word};
use super::view::not_a_table;
use super::{Binder, BoundQuery, conjuncts, unsupported};
use base::{SqlError, SqlState};
use catalog::objects::{OWN_PATH, is_list_of_objects, is_own_table};
use catalog::{PolicyCommand, Table};
use expr::Expr;
use expr::resolve::{self, Context};
use pg_catalog::path::Meant;
use rights::Privileges;
use sqlparser::ast::{
    self, Join, JoinConstraint, JoinOperator, Spanned, TableAlias, TableFactor, TableWithJoins,
};
use std::sync::Arc;
use txn::LockMode;

/// Which tables of a query are locked as they are read.
#[derive(Clone, Default)]
pub(crate) struct Locking {
    pub(crate) mode: Option<LockMode>,
    /// The clause, for errors.
    pub(crate) clause: Option<&'static str>,
    /// Aliases; empty: all.
    pub(crate) of: Vec<String>,
    /// NOWAIT or SKIP LOCKED.
    pub(crate) at_once: Option<super::locked::AtOnce>,
}

impl Locking {
    pub(super) fn of_table(&self, alias: &str) -> Option<LockMode> {
        let named = self.of.is_empty() || self.of.iter().any(|name| name == alias);
        if named { self.mode } else { None }
    }
}

/// A relation with the names of its columns.
type Named = (Rel, Scope);

/// A FROM entry and the slots of earlier entries' columns that it reads.
pub(super) struct Factor {
    pub(super) rel: Rel,
    pub(super) scope: Scope,
    pub(super) binds: Binds,
}

impl Binder<'_> {
    /// Binds a FROM list; without entries one row of no columns.
    ///
    /// # Errors
    /// 42P01 and other errors of names, 42712 for an alias that occurs twice.
    pub(crate) fn bind_from(
        &mut self,
        items: &[TableWithJoins],
        locking: &Locking,
    ) -> Result<Named, SqlError> {
        let mut all: Option<Named> = None;
        for item in items {
            all = Some(self.bind_from_item(all, item, locking)?);
        }
        Ok(all.unwrap_or((Rel::One, Scope::default())))
    }

    /// Adds the FROM entry `item` to the entries before it.
    pub(crate) fn bind_from_item(
        &mut self,
        before: Option<Named>,
        item: &TableWithJoins,
        locking: &Locking,
    ) -> Result<Named, SqlError> {
        let TableWithJoins { relation, joins } = item;
        // Rows of earlier entries must not take part in right and full joins: those are bound
        // before they meet the entries.
        let leaning = |join: &Join| {
            !matches!(
                join.join_operator,
                JoinOperator::Right(_) | JoinOperator::RightOuter(_) | JoinOperator::FullOuter(_)
            )
        };
        let apart = joins.iter().rposition(|join| !leaning(join));
        let (Some(last), Some((left, before))) = (apart, &before) else {
            return self.chain(before, relation, joins, locking);
        };
        let (first, rest) = joins.split_at(last + 1);
        let (alone, binds) = self.inside(before, |binder| {
            binder.chain(None, relation, first, locking)
        })?;
        let scope = alone.1.shifted(left.width());
        let rel = self.attach(JoinKind::Inner, left.clone(), alone.0, binds, Vec::new())?;
        self.joined(rel, before.clone(), scope, rest, locking)
    }

    /// Binds a part of FROM as a level of its own; its LATERAL items see `around`. Gives also the
    /// slots that they read.
    fn inside(
        &mut self,
        around: &Scope,
        bind: impl FnOnce(&mut Self) -> Result<Named, SqlError>,
    ) -> Result<(Named, Binds), SqlError> {
        let around = around.clone();
        let (named, binds, _) = self.nested(|binder| {
            binder.level().around = Some(around);
            bind(binder)
        })?;
        Ok((named, binds))
    }

    /// `before, a JOIN b ON .. JOIN c ON ..` as one chain that leans left. Conditions see only
    /// the names of their own entry.
    fn chain(
        &mut self,
        before: Option<Named>,
        relation: &TableFactor,
        joins: &[Join],
        locking: &Locking,
    ) -> Result<Named, SqlError> {
        let (left, before) = match before {
            Some((rel, scope)) => (Some(rel), scope),
            None => (None, Scope::default()),
        };
        let factor = self.factor(relation, &before, locking)?;
        let width = left.as_ref().map_or(0, Rel::width);
        let scope = factor.scope.shifted(width);
        let rel = match left {
            None => factor.rel,
            Some(left) => self.attach(JoinKind::Inner, left, factor.rel, factor.binds, vec![])?,
        };
        self.joined(rel, before, scope, joins, locking)
    }

    /// Goes on with the joins of an entry of which `scope` has the names so far.
    fn joined(
        &mut self,
        mut rel: Rel,
        mut before: Scope,
        mut scope: Scope,
        joins: &[Join],
        locking: &Locking,
    ) -> Result<Named, SqlError> {
        for join in joins {
            let Join {
                relation,
                global,
                join_operator,
            } = join;
            self.no(*global, "GLOBAL")?;
            // A table reads no names; a copy of all of them for each one takes long.
            let mut visible = Scope::default();
            if !is_table(relation) {
                self.work += (before.columns.len() + scope.columns.len()) as u64;
                visible = before.clone();
                visible.append(scope.clone())?;
            }
            let factor = self.factor(relation, &visible, locking)?;
            let right_scope = factor.scope.shifted(rel.width());
            let (kind, constraint) = self.join_kind(join_operator)?;
            if matches!(constraint, JoinConstraint::None)
                && !matches!(join_operator, JoinOperator::CrossJoin)
            {
                return Err(self.source.misplaced_after(relation.span().end));
            }
            if matches!(kind, JoinKind::Right | JoinKind::Full)
                && let Some((_, read)) = factor.binds.first()
            {
                return Err(not_lateral(&visible, read));
            }
            let on;
            (scope, on) = self.join_scope(kind, scope, right_scope, constraint)?;
            rel = self.attach(kind, rel, factor.rel, factor.binds, on)?;
        }
        before.append(scope)?;
        Ok((rel, before))
    }

    pub(super) fn attach(
        &mut self,
        kind: JoinKind,
        left: Rel,
        right: Rel,
        binds: Binds,
        on: Vec<Expr>,
    ) -> Result<Rel, SqlError> {
        let calls = self.take_calls();
        if !calls.is_empty() {
            return self.attach_calls(kind, (left, right), binds, on, calls);
        }
        if binds.is_empty() {
            return Ok(joined(kind, left, right, on));
        }
        let outer = match kind {
            JoinKind::Inner => false,
            JoinKind::Left => true,
            _ => return Err(unsupported("LATERAL in a right or full join")),
        };
        let (left, right) = (Box::new(left), Box::new(right));
        Ok(Rel::Lateral {
            outer,
            left,
            right,
            binds,
            on,
        })
    }

    /// The names visible after a join, and its condition.
    fn join_scope(
        &mut self,
        kind: JoinKind,
        mut left: Scope,
        mut right: Scope,
        constraint: &JoinConstraint,
    ) -> Result<(Scope, Vec<Expr>), SqlError> {
        let shared: Vec<String> = match constraint {
            JoinConstraint::On(condition) => {
                left.append(right)?;
                let outer = self.set_scope(left);
                let clause = self.level().aggregates_in.replace("JOIN conditions");
                let bound = self.condition(condition, "JOIN/ON");
                self.level().aggregates_in = clause;
                let scope = self.set_scope(outer);
                let bound = bound?;
                let mut on = Vec::new();
                conjuncts(bound, &mut on);
                return Ok((scope, on));
            }
            JoinConstraint::None => {
                left.append(right)?;
                return Ok((left, Vec::new()));
            }
            JoinConstraint::Using(names) => names.iter().map(|name| object_name(name).1).collect(),
            JoinConstraint::Natural => {
                let visible = |scope: &Scope, name: &str| {
                    scope
                        .columns
                        .iter()
                        .any(|c| !c.shadowed && !c.hidden && c.name == name)
                };
                let names = left.columns.iter().filter(|c| !c.shadowed && !c.hidden);
                names
                    .map(|c| c.name.clone())
                    .filter(|name| visible(&right, name))
                    .collect()
            }
        };
        let (mut merged, mut on) = (Vec::new(), Vec::new());
        for name in &shared {
            let l = shared_column(&mut left, name, "left")?;
            let r = shared_column(&mut right, name, "right")?;
            self.note_column(l.origin);
            self.note_column(r.origin);
            on.push(self.binary("=", l.expr.clone(), r.expr.clone())?);
            let expr = match kind {
                JoinKind::Right => r.expr.clone(),
                JoinKind::Full => {
                    let ty = resolve::common_type(&[l.expr.ty(), r.expr.ty()])?;
                    let sides = [l.expr.clone(), r.expr.clone()].into_iter();
                    let sides = sides.map(|side| resolve::coerce(side, ty, Context::Implicit));
                    Expr::Coalesce(sides.collect::<Result<_, _>>()?, ty)
                }
                _ => l.expr.clone(),
            };
            merged.push(ScopeColumn {
                relation: String::new(),
                name: name.clone(),
                expr,
                shadowed: false,
                hidden: false,
                origin: l.origin,
            });
        }
        left.append(right)?;
        merged.append(&mut left.columns);
        left.columns = merged;
        Ok((left, on))
    }

    /// A subquery in FROM; `lateral`, it may read the names that are visible.
    fn derived(
        &mut self,
        (lateral, subquery): (bool, &ast::Query),
        alias: Option<&TableAlias>,
        visible: &Scope,
        locking: &Locking,
    ) -> Result<Factor, SqlError> {
        let seen = if lateral {
            visible.clone()
        } else {
            Scope::default()
        };
        let name = match alias {
            None => String::new(),
            Some(alias) => self.relation_name(&alias.name)?,
        };
        let mode = locking.of_table(&name);
        self.inherited = mode.zip(locking.clause);
        let outer = self.set_scope(seen);
        if lateral {
            self.swap_around();
        }
        let bound = self.nested(|binder| binder.query(subquery));
        if lateral {
            self.swap_around();
        }
        self.set_scope(outer);
        let (BoundQuery { rel, columns }, binds, _) = bound?;
        let columns = columns
            .into_iter()
            .map(|c| (c.name, c.ty, (c.table, c.attribute)));
        let mut scope = Scope::of_relation(&name, columns, 0);
        self.rename(&mut scope, alias)?;
        Ok(Factor { rel, scope, binds })
    }

    /// One FROM item; `visible` are the names that it may read if it is lateral.
    fn factor(
        &mut self,
        factor: &TableFactor,
        visible: &Scope,
        locking: &Locking,
    ) -> Result<Factor, SqlError> {
        match factor {
            TableFactor::Table {
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
            } => {
                self.no(!with_hints.is_empty(), "WITH")?;
                self.no(version.is_some(), "FOR")?;
                self.no(!partitions.is_empty(), "PARTITION")?;
                self.no(json_path.is_some(), "[")?;
                self.no(!index_hints.is_empty(), "INDEX")?;
                refuse_sample(sample.is_some())?;
                let shape = FunctionShape::of(alias, *with_ordinality);
                if let Some(ast::TableFunctionArgs { args, settings }) = args {
                    self.no(settings.is_some(), "SETTINGS")?;
                    return self.function_factor(name, args, shape, visible);
                }
                if is_value_word(name) {
                    return self.function_factor(name, &[], shape, visible);
                }
                self.no(*with_ordinality, "WITH")?;
                self.table_factor(name, alias.as_ref(), locking)
            }
            // Functions see the entries before them with LATERAL and without.
            TableFactor::Function {
                lateral: _,
                name,
                args,
                alias,
            } => self.function_factor(name, args, FunctionShape::of(alias, false), visible),
            TableFactor::UNNEST {
                alias,
                array_exprs,
                with_offset,
                with_offset_alias,
                with_ordinality,
            } => {
                self.no(*with_offset || with_offset_alias.is_some(), "WITH")?;
                let [array] = array_exprs.as_slice() else {
                    return Err(unsupported("unnest of several arrays"));
                };
                let shape = FunctionShape::of(alias, *with_ordinality);
                self.table_function("unnest", &[array], shape, visible)
            }
            TableFactor::Derived {
                lateral,
                subquery,
                alias,
            } => self.derived((*lateral, subquery), alias.as_ref(), visible, locking),
            TableFactor::NestedJoin {
                table_with_joins,
                alias,
            } => self.nested_join(table_with_joins, alias.as_ref(), visible, locking),
            TableFactor::TableFunction { expr: _, alias: _ } => Err(self.source.misplaced("TABLE")),
            other => Err(unsupported(&format!("the FROM item {other}"))),
        }
    }

    /// Joins in parentheses.
    fn nested_join(
        &mut self,
        table_with_joins: &TableWithJoins,
        alias: Option<&TableAlias>,
        visible: &Scope,
        locking: &Locking,
    ) -> Result<Factor, SqlError> {
        let ((rel, mut scope), binds) = self.inside(visible, |binder| {
            binder.bind_from_item(None, table_with_joins, locking)
        })?;
        if let Some(alias) = alias {
            let name = self.relation_name(&alias.name)?;
            scope.relations = vec![name.clone()];
            scope.columns.retain(|column| !column.shadowed);
            for column in &mut scope.columns {
                column.relation.clone_from(&name);
            }
            self.rename(&mut scope, Some(alias))?;
        }
        Ok(Factor { rel, scope, binds })
    }

    /// The name that an alias gives to a relation, or of a new column.
    ///
    /// # Errors
    /// 42601 for a reserved word, which the parser lets pass behind AS.
    pub fn relation_name(&self, name: &ast::Ident) -> Result<String, SqlError> {
        let folded = ident(name);
        let bare = name.quote_style.is_none();
        self.no(
            bare && functions::keywords::is_reserved(&folded),
            &name.value,
        )?;
        Ok(folded)
    }

    /// Finds a table of the user's schema.
    ///
    /// # Errors
    /// 42P01; 42809 if it is an index or a sequence.
    pub fn find_table(&self, name: &ast::ObjectName) -> Result<Arc<Table>, SqlError> {
        let (schema, table) = object_name(name);
        let position = name_position(&self.source, name);
        check_reserved(name)
            .and_then(|()| check_database(&self.cx.database.name, name))
            .map_err(|error| error.at(position))?;
        self.find_table_named(schema.as_deref(), &table)
            .map_err(|error| error.at(position))
    }

    /// The table of that name, to be written or described.
    ///
    /// # Errors
    /// 42P01 if there is none, 42501 if it belongs to the system catalog.
    pub fn find_table_named(
        &self,
        schema: Option<&str>,
        name: &str,
    ) -> Result<Arc<Table>, SqlError> {
        let database = self.cx.database;
        match self.meant(schema, name) {
            Some(Meant::Own(full)) if is_own_table(&full) && self.path != OWN_PATH => {
                let message = format!("permission denied for table {name}");
                return Err(SqlError::new(SqlState::INSUFFICIENT_PRIVILEGE, message));
            }
            Some(Meant::Own(full)) => {
                self.check_session(&full)?;
                if database.stored_view(&full).is_some() {
                    let message = format!("cannot change materialized view \"{name}\"");
                    return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message));
                }
                if let Some(table) = database.tables.get(&full) {
                    return Ok(table.clone());
                }
                if database.views.contains_key(&full) {
                    return Err(not_a_table(name));
                }
                if database.sequences.contains_key(&full) {
                    let message = format!("cannot change sequence \"{name}\"");
                    return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message));
                }
            }
            Some(Meant::System(_)) => {
                let message = format!("permission denied for table {name}");
                return Err(SqlError::new(SqlState::INSUFFICIENT_PRIVILEGE, message));
            }
            None => {}
        }
        let shown = match schema {
            Some(schema) => format!("{schema}.{name}"),
            None => name.to_string(),
        };
        let message = format!("relation \"{shown}\" does not exist");
        Err(SqlError::new(SqlState::UNDEFINED_TABLE, message))
    }

    /// As [`Binder::find_table`], also if it is a materialized view.
    ///
    /// # Errors
    /// As [`Binder::find_table`].
    pub fn find_rows(&self, name: &ast::ObjectName) -> Result<Arc<Table>, SqlError> {
        let (schema, table) = object_name(name);
        match self.stored(schema.as_deref(), &table) {
            Some(table) => Ok(table),
            None => self.find_table(name),
        }
    }

    /// The table of a materialized view.
    pub fn stored(&self, schema: Option<&str>, name: &str) -> Option<Arc<Table>> {
        let database = self.cx.database;
        let full = self.own_relation(schema, name)?;
        database.stored_view(&full)?;
        database.table(&full).cloned()
    }

    /// # Errors
    /// 55000 for a materialized view without rows, 42809 if its rows are to be locked.
    fn check_stored(&self, table: &Table, shown: &str, locked: bool) -> Result<(), SqlError> {
        let Some(stored) = self.cx.database.stored_view(&table.name) else {
            return Ok(());
        };
        let name = base::full_name::own(&table.name);
        if locked {
            let message = format!("cannot lock rows in materialized view \"{shown}\"");
            return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message));
        }
        if !stored.filled && !self.is_new_view() {
            let message = format!("materialized view \"{name}\" has not been populated");
            return Err(SqlError::new(SqlState::OBJECT_NOT_READY, message)
                .hint("Use the REFRESH MATERIALIZED VIEW command."));
        }
        Ok(())
    }

    /// The table of a full name, which another description gives.
    ///
    /// # Errors
    /// 42P01 if there is none.
    pub fn table_of(&self, full: &str) -> Result<Arc<Table>, SqlError> {
        let found = self.cx.database.tables.get(full);
        found.cloned().ok_or_else(|| {
            let message = format!("relation \"{full}\" does not exist");
            SqlError::new(SqlState::UNDEFINED_TABLE, message)
        })
    }

    /// A table of the server's own, to be read.
    fn own_table(&self, full: &str, locking: &Locking) -> Result<Arc<Table>, SqlError> {
        let name = base::full_name::own(full);
        if self.is_new_view() {
            return Err(unsupported(&format!("a view of {name}")));
        }
        let own = self.path == OWN_PATH;
        if !own && locking.of_table(name).is_some() {
            let message = format!("permission denied for table {name}");
            return Err(SqlError::new(SqlState::INSUFFICIENT_PRIVILEGE, message));
        }
        self.table_of(full)
    }

    /// Notes that rows of the table may be locked.
    fn note_locked(&mut self, table: &Table, shown: &str, locking: &Locking) {
        if locking.of_table(shown).is_some() || locking.at_once.is_some() {
            self.locked.push(table.id);
        }
    }

    fn table_factor(
        &mut self,
        name: &ast::ObjectName,
        alias: Option<&TableAlias>,
        locking: &Locking,
    ) -> Result<Factor, SqlError> {
        if let Some(index) = self.find_named(name) {
            return self.named_factor(index, alias, locking);
        }
        check_database(&self.cx.database.name, name)
            .map_err(|error| error.at(name_position(&self.source, name)))?;
        let (schema, table) = object_name(name);
        let shown = match alias {
            None => table.clone(),
            Some(alias) => self.relation_name(&alias.name)?,
        };
        let meant = self.meant(schema.as_deref(), &table);
        if let Some(Meant::Own(full)) = &meant {
            self.check_session(full)
                .map_err(|error| error.at(name_position(&self.source, name)))?;
            self.note_name(name, full);
        }
        let named = if let Some(Meant::System(found)) = meant {
            if matches!(found.name, "pg_authid" | "pg_shadow") {
                let noun = if found.is_view() { "view" } else { "table" };
                self.need_superuser(&format!("permission denied for {noun} {}", found.name));
            }
            self.reads_session |= matches!(found.name, "pg_cursors" | "pg_prepared_statements");
            (Rel::Virtual(found), catalog_scope(found, &shown))
        } else if let Some(view) = self.find_view(schema.as_deref(), &table) {
            let Factor { rel, scope, binds } = self.view_factor(&view, &shown, locking)?;
            assert!(binds.is_empty(), "a view reads no row of another");
            (rel, scope)
        } else if let Some(row) = self.sequence_rows(schema.as_deref(), &table) {
            if self.is_new_view() {
                return Err(unsupported("a view of a sequence"));
            }
            let Factor { rel, scope, .. } = self.view_factor(&row, &shown, locking)?;
            (rel, scope)
        } else {
            self.rows_of_table(name, meant.as_ref(), &shown, locking)?
        };
        let (rel, mut scope) = named;
        self.rename(&mut scope, alias)?;
        let binds = Vec::new();
        Ok(Factor { rel, scope, binds })
    }

    /// The rows of a table that have to be shown, and their names.
    fn rows_of_table(
        &mut self,
        name: &ast::ObjectName,
        meant: Option<&Meant>,
        shown: &str,
        locking: &Locking,
    ) -> Result<(Rel, Scope), SqlError> {
        let table = match meant {
            Some(Meant::Own(full)) if is_own_table(full) => self.own_table(full, locking)?,
            _ => self.find_rows(name)?,
        };
        self.check_stored(&table, shown, locking.of_table(shown).is_some())?;
        self.note_table(&table);
        self.note_order(&table);
        if !is_list_of_objects(&table.name) {
            self.need_table(&table, Privileges::SELECT);
        }
        self.note_locked(&table, shown, locking);
        if locking.of_table(shown).is_some() {
            self.need_table(&table, Privileges::UPDATE);
        }
        let mut scope = table_scope(&table, shown);
        self.restrict(&mut scope, &table.name);
        let lock = locking.of_table(shown);
        let commands: &[PolicyCommand] = match lock.is_some() || locking.at_once.is_some() {
            true => &[PolicyCommand::Update, PolicyCommand::Select],
            false => &[PolicyCommand::Select],
        };
        let rows = Rel::Table {
            table: table.clone(),
            lock,
        };
        Ok((self.guarded(&table, rows, commands)?, scope))
    }
}

fn joined(kind: JoinKind, left: Rel, right: Rel, on: Vec<Expr>) -> Rel {
    Rel::Join {
        kind,
        left: Box::new(left),
        right: Box::new(right),
        on,
    }
}

fn refuse_sample(there: bool) -> Result<(), SqlError> {
    match there {
        true => Err(unsupported("TABLESAMPLE")),
        false => Ok(()),
    }
}

/// Whether a FROM item is a table, which reads no other item's columns.
fn is_table(factor: &TableFactor) -> bool {
    matches!(
        factor,
        TableFactor::Table {
            name: _,
            alias: _,
            args: None,
            with_hints: _,
            version: _,
            with_ordinality: _,
            partitions: _,
            json_path: _,
            sample: _,
            index_hints: _,
        }
    )
}

impl Binder<'_> {
    fn join_kind<'j>(
        &self,
        operator: &'j JoinOperator,
    ) -> Result<(JoinKind, &'j JoinConstraint), SqlError> {
        Ok(match operator {
            JoinOperator::Join(constraint) | JoinOperator::Inner(constraint) => {
                (JoinKind::Inner, constraint)
            }
            JoinOperator::Left(constraint) | JoinOperator::LeftOuter(constraint) => {
                (JoinKind::Left, constraint)
            }
            JoinOperator::Right(constraint) | JoinOperator::RightOuter(constraint) => {
                (JoinKind::Right, constraint)
            }
            JoinOperator::FullOuter(constraint) => (JoinKind::Full, constraint),
            JoinOperator::CrossJoin => (JoinKind::Inner, &JoinConstraint::None),
            JoinOperator::CrossApply | JoinOperator::OuterApply => {
                return Err(self.source.misplaced("APPLY"));
            }
            JoinOperator::AsOf {
                match_condition: _,
                constraint: _,
            } => return Err(self.source.misplaced("ASOF")),
            JoinOperator::Semi(_) | JoinOperator::LeftSemi(_) | JoinOperator::RightSemi(_) => {
                return Err(self.source.misplaced("SEMI"));
            }
            JoinOperator::Anti(_) | JoinOperator::LeftAnti(_) | JoinOperator::RightAnti(_) => {
                return Err(self.source.misplaced("ANTI"));
            }
        })
    }

    /// Applies the column names of an alias.
    pub(super) fn rename(
        &self,
        scope: &mut Scope,
        alias: Option<&TableAlias>,
    ) -> Result<(), SqlError> {
        let Some(TableAlias { name, columns }) = alias else {
            return Ok(());
        };
        let visible = scope.columns.iter_mut().filter(|column| !column.hidden);
        let count = visible.count();
        if columns.len() > count {
            return Err(SqlError::new(
                SqlState::INVALID_COLUMN_REFERENCE,
                format!(
                    "table \"{}\" has {count} columns available but {} columns specified",
                    ident(name),
                    columns.len()
                ),
            ));
        }
        let visible = scope.columns.iter_mut().filter(|column| !column.hidden);
        for (column, ast::TableAliasColumnDef { name, data_type }) in visible.zip(columns) {
            if let Some(data_type) = data_type {
                let first = data_type.to_string().to_lowercase();
                return Err(self.source.misplaced(&first));
            }
            column.name = ident(name);
        }
        Ok(())
    }
}

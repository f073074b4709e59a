//! Views: queries that go by the name of a relation, and what depends on what.
//!
//! A view is kept as text and bound anew for each statement that names it. Its own columns were
//! fixed when it was made, and so was what it sees of the relations that it uses: columns that
//! they got later are not visible to it, so no later change can give its text another meaning.

use crate::apply::{Removal, already_exists, no_relation};
use crate::command::{Applied, CatalogError};
use crate::desc::*;
use crate::functions::{Body, Function};
use crate::names;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use base::{SqlError, SqlState, TableId, Type};
use serde::{Deserialize, Serialize};

/// One view.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct View {
    /// Its number; also its oid.
    pub id: TableId,
    /// Its name.
    pub name: String,
    /// Its query, with all columns in place of `*`.
    pub query: String,
    /// Its columns have other names than those of the query.
    pub renamed: bool,
    /// Its rows are those of one table, and can be changed through it.
    pub updatable: bool,
    /// Its columns, as they were when it was made.
    pub columns: Vec<ViewColumn>,
    /// Tables and views that its query names, each once.
    pub uses: Vec<ViewUse>,
    /// WITH CHECK OPTION: rows that are written through it must be seen by it; `true`: and by the
    /// views below it (CASCADED).
    pub check: Option<bool>,
}

/// A column of a view.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ViewColumn {
    /// Its name.
    pub name: String,
    /// Its type.
    pub ty: Type,
}

/// What a view has of a relation in its query.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ViewUse {
    /// The table or view.
    pub relation: String,
    /// The columns that it had when the view was made; the view sees no others.
    pub visible: Vec<String>,
    /// Those among them that the view reads: they cannot go while it is there.
    pub columns: Vec<String>,
}

impl View {
    /// What its query has of this relation.
    pub fn use_of(&self, relation: &str) -> Option<&ViewUse> {
        self.uses.iter().find(|used| used.relation == relation)
    }
}

/// A step of the walk over what depends on what.
enum Visit<'a> {
    Enter(&'a Arc<View>, String),
    Leave(&'a Arc<View>, String),
}

impl Database {
    /// The view `name`.
    pub fn view(&self, name: &str) -> Option<&Arc<View>> {
        self.views.get(name)
    }

    /// The views whose query names this table or view, by age. With a column: those that read it.
    /// A change that takes away what a view uses, or gives it another name or type, must be
    /// refused, or take the views along.
    pub fn views_using(&self, relation: &str, column: Option<&str>) -> Vec<&Arc<View>> {
        let reads = |used: &ViewUse| match column {
            None => true,
            Some(column) => used.columns.iter().any(|own| own == column),
        };
        let stored = self.stored.values().map(|stored| &stored.view);
        let views = self.views.values().chain(stored);
        let mut found: Vec<&Arc<View>> = views
            .filter(|view| view.use_of(relation).is_some_and(reads))
            .collect();
        found.sort_by_key(|view| view.id.0);
        found
    }

    /// # Errors
    /// 0A000: a view reads the column, whose type is to change.
    pub(crate) fn keep_type(&self, table: &str, column: &str) -> Result<(), CatalogError> {
        match self.views_using(table, Some(column)).first() {
            None => self.keep_type_of_policies(table, column),
            Some(view) => {
                let message = "cannot alter type of a column used by a view or rule";
                let detail = format!(
                    "rule _RETURN on view {} depends on column \"{column}\"",
                    view.name
                );
                let error = SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message);
                Err(error.detail(detail))
            }
        }
    }

    fn enter<'a>(&self, views: Vec<&'a Arc<View>>, of: &str) -> Vec<Visit<'a>> {
        let noun = |view: &View| self.view_noun(&view.name);
        let line = |view: &View| format!("{} {} depends on {of}", noun(view), view.name);
        let entered = views.into_iter();
        entered.map(|view| Visit::Enter(view, line(view))).collect()
    }

    /// The views that go with a relation (or with one column of it): those that use it, and those
    /// that use these. Each with the sentence that PostgreSQL says of it.
    pub fn views_with(&self, relation: &str, column: Option<&str>) -> Vec<(Arc<View>, String)> {
        let kind = match self.stored.contains_key(relation) || self.views.contains_key(relation) {
            true => self.view_noun(relation),
            false => "table",
        };
        let root = match column {
            None => format!("{kind} {relation}"),
            Some(column) => format!("column {column} of {kind} {relation}"),
        };
        // Depth first from the youngest, then turned around: the order of PostgreSQL's DETAIL.
        let mut seen: Vec<TableId> = Vec::new();
        let enter = |views, of: &str| self.enter(views, of);
        let mut stack = enter(self.views_using(relation, column), &root);
        let mut found = Vec::new();
        while let Some(visit) = stack.pop() {
            match visit {
                Visit::Enter(view, _) if seen.contains(&view.id) => {}
                Visit::Enter(view, line) => {
                    seen.push(view.id);
                    stack.push(Visit::Leave(view, line));
                    let of = format!("{} {}", self.view_noun(&view.name), view.name);
                    stack.extend(enter(self.views_using(&view.name, None), &of));
                }
                Visit::Leave(view, line) => found.push((view.clone(), line)),
            }
        }
        found.reverse();
        found
    }

    /// Removes the views that depend on a relation that goes, except `others`, which go by name.
    ///
    /// # Errors
    /// 2BP01 without `cascade`.
    pub fn drop_views_with(
        &mut self,
        (kind, relation): (&str, &str),
        column: Option<&str>,
        others: &[String],
        cascade: bool,
    ) -> Result<Vec<String>, CatalogError> {
        let mut gone = self.views_with(relation, column);
        gone.retain(|(view, _)| !others.contains(&view.name));
        let functions = self.functions_with((kind, relation), column, &gone);
        let policies = self.policies_with((kind, relation), column, &gone, others);
        if gone.is_empty() && functions.is_empty() && policies.is_empty() {
            return Ok(Vec::new());
        }
        if !cascade {
            let what = match column {
                None => format!("{kind} {relation}"),
                Some(column) => format!("column {column} of {kind} {relation}"),
            };
            let message = format!("cannot drop {what} because other objects depend on it");
            let lines = gone.iter().map(|(_, line)| line.as_str());
            let lines = lines.chain(functions.iter().map(|(_, line)| line.as_str()));
            let lines = lines.chain(policies.iter().map(|(_, _, line)| line.as_str()));
            let lines: Vec<&str> = lines.collect();
            return Err(SqlError::new(SqlState::DEPENDENT_OBJECTS, message)
                .detail(lines.join("\n"))
                .hint("Use DROP ... CASCADE to drop the dependent objects too."));
        }
        let noun = gone.first().map(|(view, _)| self.view_noun(&view.name));
        let noun = noun.unwrap_or_default();
        for (view, _) in &gone {
            self.remove_view(&view.name);
        }
        for (function, _) in &functions {
            self.drop_function(function.id, &[], true)?;
        }
        self.remove_policies(&policies);
        let told = gone.iter().map(|(view, _)| format!("{noun} {}", view.name));
        let told = told.chain(functions.iter().map(|(function, _)| {
            let (noun, signature) = (function.noun(), function.signature());
            format!("{noun} {signature}")
        }));
        let told = told.chain(policies.iter().map(|(_, _, line)| {
            let policy = line.split(" depends on ").next().unwrap_or_default();
            policy.to_string()
        }));
        let told: Vec<String> = told.collect();
        Ok(Vec::from([match told.as_slice() {
            [one] => format!("drop cascades to {one}"),
            several => {
                let count = several.len();
                format!("drop cascades to {count} other objects")
            }
        }]))
    }

    /// The functions that go with a relation (or with one column of it) and with these views. Each
    /// with the sentence that PostgreSQL says of it.
    fn functions_with(
        &self,
        (kind, relation): (&str, &str),
        column: Option<&str>,
        views: &[(Arc<View>, String)],
    ) -> Vec<(Arc<Function>, String)> {
        let root = self.relation(relation).map(|(_, id)| {
            let what = match column {
                None => format!("{kind} {relation}"),
                Some(column) => format!("column {column} of {kind} {relation}"),
            };
            (id, what, column)
        });
        let views = views
            .iter()
            .map(|(view, _)| (view.id.0, format!("view {}", view.name), None));
        let mut found: Vec<(Arc<Function>, String)> = Vec::new();
        for (id, what, column) in root.into_iter().chain(views) {
            let names = |function: &Function| match (&function.body, column) {
                (_, Some(_)) if function.row_of == Some(id) => false,
                (Body::Parsed { statements, .. }, Some(column)) => {
                    let mut texts = statements.iter();
                    texts.any(|text| names::has_word(text, column))
                }
                _ => true,
            };
            for function in self.functions_using(id) {
                let known = found.iter().any(|(known, _)| known.id == function.id);
                if names(&function) && !known {
                    let (noun, signature) = (function.noun(), function.signature());
                    found.push((function, format!("{noun} {signature} depends on {what}")));
                }
            }
        }
        found
    }
}

impl Catalog {
    pub(crate) fn create_view(
        &mut self,
        database: &str,
        view: &View,
        replace: bool,
    ) -> Result<Applied, CatalogError> {
        self.ensure_temporary(database, &view.name)?;
        let owner = self.database_mut(database)?;
        let old = owner.views.get(&view.name);
        if old.is_some() && !replace {
            return already_exists(&view.name, false);
        }
        if old.is_none() && owner.has_relation(&view.name) {
            if replace {
                return Err(not_a_view(&view.name));
            }
            return already_exists(&view.name, false);
        }
        // What the query names may have changed since it was bound.
        for used in &view.uses {
            owner.check_use(used)?;
        }
        let mut view = view.clone();
        match old {
            Some(old) => {
                check_replaced(old, &view)?;
                let later = owner.views_with(&view.name, None);
                let itself = view.use_of(&view.name).is_some();
                if itself
                    || later
                        .iter()
                        .any(|(user, _)| view.use_of(&user.name).is_some())
                {
                    let message = format!(
                        "infinite recursion detected in rules for relation \"{}\"",
                        view.name
                    );
                    return Err(SqlError::new(SqlState::INVALID_OBJECT_DEFINITION, message));
                }
                view.id = old.id;
                owner.views.insert(view.name.clone(), Arc::new(view));
            }
            None => {
                view.id = TableId(self.next_number());
                let owner = self.database_mut(database)?;
                owner.views.insert(view.name.clone(), Arc::new(view));
            }
        }
        Ok(Applied::default())
    }

    pub(crate) fn drop_views(
        &mut self,
        database: &str,
        names: &[String],
        if_exists: bool,
        cascade: bool,
    ) -> Result<Applied, CatalogError> {
        let database = self.database_mut(database)?;
        let mut removal = Removal::new("view", SqlState::UNDEFINED_TABLE, if_exists);
        let (mut notices, mut gone) = (Vec::new(), 0);
        for name in names {
            if !database.views.contains_key(name) {
                removal.missing(database, name)?;
                continue;
            }
            notices.extend(database.drop_views_with(("view", name), None, names, cascade)?);
            gone += 1;
        }
        for name in names {
            database.views.remove(name);
        }
        let mut applied = removal.applied();
        if gone > 0
            && let Some(skipped) = applied.skipped.take()
        {
            applied.notices = skipped.lines().map(str::to_string).collect();
        }
        applied.notices.extend(notices);
        Ok(applied)
    }

    pub(crate) fn rename_view(
        &mut self,
        database: &str,
        name: &str,
        to: &str,
        if_exists: bool,
    ) -> Result<Applied, CatalogError> {
        let database = self.database_mut(database)?;
        let Some(view) = database.views.get(name).cloned() else {
            if database.has_relation(name) {
                return Err(not_a_view(name));
            }
            let missing = no_relation(name);
            if !if_exists {
                return Err(missing);
            }
            let skipped = Some(format!("{}, skipping", missing.fields().message));
            return Ok(Applied {
                skipped,
                ..Applied::default()
            });
        };
        if database.has_relation(to) {
            return already_exists(to, false);
        }
        if let Some(user) = database.views_using(name, None).first() {
            return Err(kept_name(("view", name), None, &user.name));
        }
        database.keep_named(name, base::full_name::own(name))?;
        database.rename_in_policies(name, None, to)?;
        let renamed = View {
            name: to.into(),
            ..(*view).clone()
        };
        database.views.remove(name);
        database.views.insert(to.into(), Arc::new(renamed));
        Ok(Applied::default())
    }
}

impl Database {
    /// Whether what a view uses is there.
    pub(crate) fn check_use(&self, used: &ViewUse) -> Result<(), CatalogError> {
        let has = |column: &String| match self.tables.get(&used.relation) {
            Some(table) => table.column(column).is_some(),
            None => {
                let view = self.views.get(&used.relation);
                view.is_some_and(|view| view.columns.iter().any(|own| own.name == *column))
            }
        };
        if !self.tables.contains_key(&used.relation) && !self.views.contains_key(&used.relation) {
            return Err(no_relation(&used.relation));
        }
        match used.columns.iter().find(|column| !has(column)) {
            None => Ok(()),
            Some(column) => {
                let message = format!("column \"{column}\" does not exist");
                Err(SqlError::new(SqlState::UNDEFINED_COLUMN, message))
            }
        }
    }
}

/// 0A000 for a new name of a relation, or of a column of it, that the text of a view names.
pub fn kept_name((kind, relation): (&str, &str), column: Option<&str>, view: &str) -> SqlError {
    let what = match column {
        None => format!("{kind} \"{relation}\""),
        Some(column) => format!("column \"{column}\" of {kind} \"{relation}\""),
    };
    let message = format!("renaming {what}, which view \"{view}\" uses, is not supported");
    SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message)
        .hint("Drop the view first, and create it again.")
}

fn not_a_view(name: &str) -> SqlError {
    SqlError::new(
        SqlState::WRONG_OBJECT_TYPE,
        format!("\"{name}\" is not a view"),
    )
}

/// What CREATE OR REPLACE VIEW may change: it may add columns behind those that there are.
fn check_replaced(old: &View, new: &View) -> Result<(), CatalogError> {
    let wrong = |message: String| SqlError::new(SqlState::INVALID_TABLE_DEFINITION, message);
    if new.columns.len() < old.columns.len() {
        return Err(wrong("cannot drop columns from view".into()));
    }
    for (old, new) in old.columns.iter().zip(&new.columns) {
        if old.name != new.name {
            let message = format!(
                "cannot change name of view column \"{}\" to \"{}\"",
                old.name, new.name
            );
            return Err(wrong(message).hint(
                "Use ALTER VIEW ... RENAME COLUMN ... to change name of view column instead.",
            ));
        }
        if old.ty != new.ty {
            return Err(wrong(format!(
                "cannot change data type of view column \"{}\" from {} to {}",
                old.name,
                old.ty.name(),
                new.ty.name()
            )));
        }
    }
    Ok(())
}

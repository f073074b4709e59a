//! Views: their queries take their place wherever they are named, and what is noted of the query
//! of a new one.

use super::change::ChangedView;
use super::from::{Factor, Locking};
use super::scope::{Scope, ScopeColumn};
use super::{Binder, BoundQuery};
use ::functions::keywords::quote_ident;
use base::full_name::split;
use base::limits::{VIEW_USES_MAX, VIEWS_BYTES_MAX};
use base::{SqlError, SqlState, TableId};
use catalog::{Condition, Policy, Table, View, ViewUse};
use parse::{Edit, Kind, Statement};
use rights::Privileges;
use sqlparser::ast;
use sqlparser::tokenizer::{Location, Span};
use std::sync::Arc;

/// The views in a statement.
#[derive(Default)]
pub(crate) struct Views {
    /// The view whose query is being bound.
    pub(super) inside: Option<Arc<View>>,
    /// How many queries have been put in so far, and how long they are.
    count: usize,
    bytes: usize,
    /// What is noted of the query of a new view.
    noted: Option<Box<Noted>>,
    /// The view through which the statement changes rows.
    pub(super) changed: Option<Box<ChangedView>>,
    /// The policy whose condition is being bound.
    pub(super) policy: Option<Bound>,
    /// The tables whose policies are being bound, one inside the other.
    pub(super) guarding: Vec<TableId>,
    /// The relations of which it is asked whether a column is read, and whether one was.
    pub(super) watched: Vec<u32>,
    pub(super) is_read: bool,
}

/// A condition of a policy.
pub(super) struct Bound {
    pub(super) policy: Arc<Policy>,
    /// WITH CHECK.
    pub(super) is_check: bool,
}

impl Bound {
    /// The condition.
    pub(super) fn condition(&self) -> Option<&Condition> {
        match self.is_check {
            true => self.policy.check.as_ref(),
            false => self.policy.using.as_ref(),
        }
    }
}

/// The view around a body of a function.
pub(super) struct Suspended {
    inside: Option<Arc<View>>,
    noted: Option<Box<Noted>>,
}

/// What is noted while the query of a new view is bound.
#[derive(Default)]
struct Noted {
    /// Oids of the relations in FROM, with what the query may see of them.
    relations: Vec<(u32, ViewUse)>,
    /// Columns that are read: oid of their relation, and their numbers.
    columns: Vec<(u32, i16)>,
    /// Where other words must stand: the columns for which `*` stands, the schemas of names.
    edits: Vec<(Location, Edit)>,
}

/// The query of a new view.
#[allow(missing_docs)]
pub struct ViewQuery {
    pub bound: BoundQuery,
    /// The text with all columns in place of `*`.
    pub text: String,
    pub uses: Vec<ViewUse>,
    /// Whether rows can be changed through it.
    pub updatable: bool,
}

/// The query of a statement that is nothing else.
pub fn query_of(statement: &Statement) -> Option<&ast::Query> {
    match statement.kind() {
        Kind::Sql(ast) => match ast.as_ref() {
            ast::Statement::Query(query) => Some(query),
            _ => None,
        },
        _ => None,
    }
}

impl Binder<'_> {
    /// The view of that name, if it is one.
    pub fn find_view(&self, schema: Option<&str>, name: &str) -> Option<Arc<View>> {
        let full = self.own_relation(schema, name)?;
        self.cx.database.view(&full).cloned()
    }

    /// A view in FROM.
    pub(super) fn view_factor(
        &mut self,
        view: &Arc<View>,
        shown: &str,
        locking: &Locking,
    ) -> Result<Factor, SqlError> {
        self.need_view(view, Privileges::SELECT);
        if locking.of_table(shown).is_some() {
            self.need_view(view, Privileges::UPDATE);
        }
        self.inherited = locking.of_table(shown).zip(locking.clause);
        self.note_relation(view.id.0, &view.name, view.columns.iter().map(|c| &c.name));
        let rel = self.view_query(view)?.rel;
        let columns = view.columns.iter().enumerate();
        let columns = columns.map(|(i, c)| (c.name.clone(), c.ty, (view.id.0, i as i16 + 1)));
        let mut scope = Scope::of_relation(shown, columns, 0);
        let (schema, name) = split(&view.name);
        scope.note_home(schema, name, shown);
        self.restrict(&mut scope, &view.name);
        let binds = Vec::new();
        Ok(Factor { rel, scope, binds })
    }

    /// Takes from a scope what the view that is being bound did not see when it was made.
    pub(super) fn restrict(&self, scope: &mut Scope, relation: &str) {
        let used = match &self.views.policy {
            Some(bound) => bound.condition().and_then(|text| text.use_of(relation)),
            None => {
                let view = self.views.inside.as_ref();
                view.and_then(|view| view.use_of(relation))
            }
        };
        if let Some(used) = used {
            let seen = |name: &String| used.visible.contains(name);
            scope.columns.retain(|c| c.hidden || seen(&c.name));
        }
    }

    /// Counts one more use of a view.
    pub(super) fn count_view(&mut self, view: &View) -> Result<(), SqlError> {
        self.count_text("views", &view.query)
    }

    /// Counts one more text of the catalog that is bound as part of the statement.
    pub(super) fn count_text(&mut self, kind: &str, text: &str) -> Result<(), SqlError> {
        self.views.count += 1;
        self.views.bytes += text.len();
        self.work += text.len() as u64;
        if self.views.count <= VIEW_USES_MAX && self.views.bytes <= VIEWS_BYTES_MAX {
            return Ok(());
        }
        let message = format!("the {kind} of a statement are too large");
        Err(
            SqlError::new(SqlState::PROGRAM_LIMIT, message).detail(format!(
                "A statement may name up to {VIEW_USES_MAX} views, with the views in them and the \
                 policies of their tables, of {VIEWS_BYTES_MAX} bytes together."
            )),
        )
    }

    /// The rows of a view: its query, as if it stood alone.
    fn view_query(&mut self, view: &Arc<View>) -> Result<BoundQuery, SqlError> {
        self.count_view(view)?;
        let changed = || {
            let message = format!("view \"{}\" does not fit its tables any more", view.name);
            SqlError::new(SqlState::OBJECT_NOT_READY, message)
                .hint("Replace it by CREATE OR REPLACE VIEW.")
        };
        let parsed = parse::parse(&view.query)?;
        let [statement] = parsed.as_slice() else {
            return Err(changed());
        };
        let query = query_of(statement).ok_or_else(changed)?;
        let bound = self.alone(view, statement, |binder| {
            binder.nested(|binder| binder.query(query))
        });
        let (bound, binds, _) = bound?;
        let types = |(a, b): (&base::OutColumn, &catalog::ViewColumn)| a.ty == b.ty;
        let same = bound.columns.len() == view.columns.len()
            && bound.columns.iter().zip(&view.columns).all(types);
        if !same || !binds.is_empty() {
            return Err(changed());
        }
        Ok(bound)
    }

    /// Binds a part of a view, which knows nothing of the statement around it.
    pub(super) fn alone<T>(
        &mut self,
        view: &Arc<View>,
        statement: &Statement,
        bind: impl FnOnce(&mut Self) -> T,
    ) -> T {
        let source = core::mem::replace(&mut self.source, statement.source().clone());
        let outer = self.set_scope(Scope::default());
        let named = core::mem::take(&mut self.named);
        let inside = self.views.inside.replace(view.clone());
        let policy = self.views.policy.take();
        let result = self.kept(bind);
        self.views.policy = policy;
        self.views.inside = inside;
        self.named = named;
        self.set_scope(outer);
        self.source = source;
        result
    }
}

impl Binder<'_> {
    /// What is bound next is no part of a view, and is noted for none.
    pub(super) fn suspend_views(&mut self) -> Suspended {
        Suspended {
            inside: self.views.inside.take(),
            noted: self.views.noted.take(),
        }
    }

    pub(super) fn resume_views(&mut self, suspended: Suspended) {
        self.views.inside = suspended.inside;
        self.views.noted = suspended.noted;
    }

    /// Binds the query of a new view.
    ///
    /// # Errors
    /// Those of the query; 42P02 if it has parameters.
    pub fn new_view(
        &mut self,
        statement: &Statement,
        query: &ast::Query,
    ) -> Result<ViewQuery, SqlError> {
        if statement.parameters() > 0 {
            let message = "there is no parameter $1";
            return Err(SqlError::new(SqlState::UNDEFINED_PARAMETER, message));
        }
        self.views.noted = Some(Box::default());
        let bound = self.query(query)?;
        let noted = self.views.noted.take().unwrap_or_default();
        let Noted {
            mut relations,
            columns,
            mut edits,
        } = *noted;
        for (relation, attribute) in columns {
            let found = relations.iter_mut().find(|(oid, _)| *oid == relation);
            let place = usize::try_from(attribute - 1).unwrap_or(usize::MAX);
            let name = self.column_of(relation, place);
            if let (Some((_, used)), Some(name)) = (found, name)
                && !used.columns.contains(&name)
            {
                used.columns.push(name);
            }
        }
        edits.sort_by_key(|(place, _)| *place);
        // A query in WITH is bound once for each use.
        edits.dedup_by_key(|(place, _)| *place);
        Ok(ViewQuery {
            updatable: self.is_updatable(query, &bound),
            bound,
            text: statement.edited(&edits),
            uses: relations.into_iter().map(|(_, used)| used).collect(),
        })
    }

    /// A new body of the SQL standard is bound next: its names are noted.
    pub fn note_names(&mut self) {
        self.views.noted = Some(Box::default());
    }

    /// The text of the statement that was bound, with full names in it.
    pub fn noted_text(&mut self, statement: &Statement) -> String {
        let mut edits = self.views.noted.take().unwrap_or_default().edits;
        edits.retain(|(_, edit)| !matches!(edit, Edit::Star(_)));
        edits.sort_by_key(|(place, _)| *place);
        edits.dedup_by_key(|(place, _)| *place);
        statement.edited(&edits)
    }

    fn column_of(&self, relation: u32, place: usize) -> Option<String> {
        let database = &self.cx.database;
        let mut tables = database.tables.values();
        if let Some(table) = tables.find(|table| table.id.0 == relation) {
            return Some(table.columns.get(place)?.name.clone());
        }
        let view = database.views.values().find(|view| view.id.0 == relation)?;
        Some(view.columns.get(place)?.name.clone())
    }

    /// The query of a new view is being bound.
    pub(super) fn is_new_view(&self) -> bool {
        self.views.noted.is_some()
    }

    fn noting(&mut self) -> Option<&mut Noted> {
        match (&self.views.inside, &self.views.policy) {
            (None, None) => self.views.noted.as_deref_mut(),
            _ => None,
        }
    }

    /// Notes a table whose columns have other numbers than their places say.
    pub(super) fn note_order(&mut self, table: &Arc<Table>) {
        if table.is_reordered() {
            self.reordered.push(table.clone());
        }
    }

    /// A new view names this table.
    pub(super) fn note_table(&mut self, table: &Table) {
        let visible = table.columns.iter().filter(|column| !column.hidden);
        self.note_relation(table.id.0, &table.name, visible.map(|column| &column.name));
    }

    fn note_relation<'n>(
        &mut self,
        oid: u32,
        name: &str,
        columns: impl Iterator<Item = &'n String>,
    ) {
        let Some(noted) = self.noting() else { return };
        if noted.relations.iter().any(|(known, _)| *known == oid) {
            return;
        }
        let used = ViewUse {
            relation: name.into(),
            visible: columns.cloned().collect(),
            columns: Vec::new(),
        };
        noted.relations.push((oid, used));
    }

    /// A new view reads this column.
    pub(super) fn note_column(&mut self, origin: (u32, i16)) {
        if origin.0 > 0 {
            self.need_column(origin);
        }
        if let Some(noted) = self.noting()
            && origin.0 > 0
            && !noted.columns.contains(&origin)
        {
            noted.columns.push(origin);
        }
    }

    /// A new view has other words at a place.
    pub(super) fn note_edit(&mut self, span: Span, edit: Edit) {
        if let Some(noted) = self.noting() {
            noted.edits.push((span.start, edit));
        }
    }

    /// A new view has `*` at a place, which stands for these columns.
    pub(super) fn note_star(&mut self, place: Location, columns: &[ScopeColumn], qualified: bool) {
        if self.noting().is_none() {
            let read = columns.iter().filter(|column| column.origin.0 > 0);
            read.for_each(|column| self.need_column(column.origin));
            return;
        }
        let mut shown = Vec::new();
        for column in columns {
            self.note_column(column.origin);
            let name = quote_ident(&column.name);
            shown.push(match column.relation.as_str() {
                // The first one stands behind the relation's name already.
                _ if qualified && shown.is_empty() => name.into_owned(),
                "" => name.into_owned(),
                relation => format!("{}.{name}", quote_ident(relation)),
            });
        }
        if let Some(noted) = self.noting() {
            noted.edits.push((place, Edit::Star(shown.join(", "))));
        }
    }
}

/// The relation is a view where only a table will do.
pub(super) fn not_a_table(name: &str) -> SqlError {
    SqlError::new(
        SqlState::WRONG_OBJECT_TYPE,
        format!("\"{name}\" is not a table"),
    )
}

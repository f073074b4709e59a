//! WITH: queries that have a name. Each use of the name is bound as a subquery in FROM would be.
//!
//! PostgreSQL computes a query once that is used several times. Here it is computed for each use
//! if it gives the same rows each time. What might not (LIMIT without all of an order, random
//! values, locks) is computed once, and its rows are kept for the other uses.

use super::from::{Factor, Locking};
use super::rel::{Aggregate, Binds, Call, InitValue, Rel};
use super::scope::{Scope, ident};
use super::{Binder, BoundQuery, unsupported};
use ::expr::Volatility;
use ::expr::aggregate::AggFunc;
use ::expr::walk::volatility;
use base::{OutColumn, SqlError, SqlState, Type};
use sqlparser::ast::{self, TableAlias};
use std::sync::Arc;

/// Uses of names in one statement. Each is bound anew, and a chain of queries that each use the
/// one before twice doubles with every link.
const USES_MAX: u32 = 100;
/// Queries that have names at one place.
const NAMED_MAX: usize = 1000;

/// A query that has a name.
#[derive(Clone)]
pub(crate) struct NamedQuery {
    name: String,
    columns: Vec<ast::TableAliasColumnDef>,
    query: Arc<ast::Query>,
    /// The query level that it belongs to.
    level: usize,
    uses: u32,
    /// WITH RECURSIVE: it may name itself.
    recursive: bool,
    /// MATERIALIZED.
    materialized: bool,
    /// SEARCH and CYCLE.
    recursion: Option<Arc<parse::Recursion>>,
    /// It is computed once: what each use is.
    shared: Option<Arc<Shared>>,
    /// It is a recursive query that is being bound, named by its own step.
    itself: Option<Arc<Itself>>,
}

/// A query that is computed once.
struct Shared {
    rel: Rel,
    columns: Vec<OutColumn>,
    /// It is a query, or has a RETURNING clause.
    returns: bool,
}

/// What its own name means in a query of WITH RECURSIVE.
pub(super) enum Itself {
    /// The rows that it gave last.
    Rows {
        slot: u32,
        columns: Vec<(String, Type)>,
    },
    /// It must not stand here.
    Refused(SqlError),
}

impl Binder<'_> {
    /// Binds a query whose WITH clause names others.
    pub(crate) fn with(
        &mut self,
        with: &ast::With,
        bind: impl FnOnce(&mut Self) -> Result<BoundQuery, SqlError>,
    ) -> Result<BoundQuery, SqlError> {
        let ast::With {
            with_token: _,
            recursive,
            cte_tables,
        } = with;
        let first = self.named.len();
        for cte in cte_tables {
            if matches!(
                *cte.query.body,
                ast::SetExpr::Insert(_) | ast::SetExpr::Update(_)
            ) {
                let place = self.source.position(cte.alias.name.span.start);
                return Err(parse::not_at_top().at(place));
            }
            self.name_query(cte, *recursive, first)?;
        }
        let bound = bind(self)?;
        self.end_names(first)?;
        Ok(bound)
    }

    /// A query is named from now on, beside those from `first` on.
    pub(super) fn name_query(
        &mut self,
        cte: &ast::Cte,
        recursive: bool,
        first: usize,
    ) -> Result<(), SqlError> {
        let named = self.named_query(cte, recursive)?;
        self.add_named(named, &cte.alias, first)
    }

    /// The rows that a part of the statement returns are named from now on; without `columns` it
    /// returns none.
    pub(super) fn name_rows(
        &mut self,
        alias: &TableAlias,
        rel: Rel,
        columns: Option<Vec<OutColumn>>,
        first: usize,
    ) -> Result<(), SqlError> {
        let returns = columns.is_some();
        let columns = columns.unwrap_or_default();
        let named = NamedQuery {
            name: self.relation_name(&alias.name)?,
            columns: alias.columns.clone(),
            query: Arc::new(nothing()),
            level: self.levels.len(),
            uses: 0,
            recursive: false,
            materialized: false,
            recursion: None,
            shared: Some(Arc::new(Shared {
                rel,
                columns,
                returns,
            })),
            itself: None,
        };
        self.add_named(named, alias, first)
    }

    fn add_named(
        &mut self,
        named: NamedQuery,
        alias: &TableAlias,
        first: usize,
    ) -> Result<(), SqlError> {
        let mut others = self.named[first..].iter();
        if others.any(|other| other.name == named.name) {
            let message = format!(
                "WITH query name \"{}\" specified more than once",
                named.name
            );
            let place = self.source.position(alias.name.span.start);
            return Err(SqlError::new(SqlState::DUPLICATE_ALIAS, message).at(place));
        }
        self.named.push(named);
        if self.named.len() > NAMED_MAX {
            let message = format!("WITH can have at most {NAMED_MAX} queries");
            return Err(SqlError::new(SqlState::PROGRAM_LIMIT, message));
        }
        Ok(())
    }

    /// The names from `first` on mean nothing any more.
    pub(super) fn end_names(&mut self, first: usize) -> Result<(), SqlError> {
        for index in first..self.named.len() {
            if self.named[index].uses == 0 {
                self.check_unused(index)?;
            }
        }
        self.named.truncate(first);
        Ok(())
    }

    fn named_query(&mut self, cte: &ast::Cte, recursive: bool) -> Result<NamedQuery, SqlError> {
        let ast::Cte {
            alias,
            query,
            from,
            materialized,
            closing_paren_token: _,
        } = cte;
        let clauses = from.as_ref().map(parse::recursion).transpose()?.flatten();
        self.no(from.is_some() && clauses.is_none(), "FROM")?;
        if clauses.is_some() && !recursive {
            return Err(super::carried::not_recursive());
        }
        Ok(NamedQuery {
            name: self.relation_name(&alias.name)?,
            columns: alias.columns.clone(),
            query: Arc::new((**query).clone()),
            level: self.levels.len(),
            uses: 0,
            recursive,
            materialized: matches!(materialized, Some(ast::CteAsMaterialized::Materialized)),
            recursion: clauses.map(Arc::new),
            shared: None,
            itself: None,
        })
    }

    /// Where the query stands that a name in FROM means, if it means one.
    pub(crate) fn find_named(&self, name: &ast::ObjectName) -> Option<usize> {
        let [part] = name.0.as_slice() else {
            return None;
        };
        let name = ident(part.as_ident()?);
        self.named.iter().rposition(|named| named.name == name)
    }

    /// A use of a named query in FROM.
    pub(crate) fn named_factor(
        &mut self,
        index: usize,
        alias: Option<&TableAlias>,
        locking: &Locking,
    ) -> Result<Factor, SqlError> {
        self.named_uses += 1;
        if self.named_uses > USES_MAX {
            let message = "the statement uses the queries of its WITH clauses too often";
            let detail = format!("They can be used {USES_MAX} times.");
            return Err(SqlError::new(SqlState::PROGRAM_LIMIT, message).detail(detail));
        }
        let shown = match alias {
            None => self.named[index].name.clone(),
            Some(alias) => self.relation_name(&alias.name)?,
        };
        if locking.of.contains(&shown) {
            let clause = locking.clause.unwrap_or("FOR UPDATE");
            let message = format!("{clause} cannot be applied to a WITH query");
            return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
        }
        self.named[index].uses += 1;
        let named = self.named[index].clone();
        if let Some(itself) = &named.itself {
            let mut scope = itself.scope(&shown)?;
            let rel = itself.rel();
            self.rename(&mut scope, alias)?;
            let binds = Vec::new();
            return Ok(Factor { rel, scope, binds });
        }
        let (BoundQuery { rel, columns }, binds) = match &named.shared {
            Some(shared) if !shared.returns => {
                let message = format!(
                    "WITH query \"{}\" does not have a RETURNING clause",
                    named.name
                );
                return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
            }
            Some(shared) => {
                let (rel, columns) = (shared.rel.clone(), shared.columns.clone());
                (BoundQuery { rel, columns }, Vec::new())
            }
            None => self.used(index, &named)?,
        };
        let columns = columns
            .into_iter()
            .map(|c| (c.name, c.ty, (c.table, c.attribute)));
        let mut scope = Scope::of_relation(&shown, columns, 0);
        self.name_columns(&mut scope, &named)?;
        self.rename(&mut scope, alias)?;
        Ok(Factor { rel, scope, binds })
    }

    /// The rows of one more use. A query that may give other rows each time is computed once if
    /// it may be used again; so is one that is MATERIALIZED.
    fn used(&mut self, index: usize, named: &NamedQuery) -> Result<(BoundQuery, Binds), SqlError> {
        let (inits, effects) = (self.inits.len(), self.effects);
        let outer_locks = core::mem::replace(&mut self.locks, false);
        let (mut bound, binds, dependent) = self.bind_named(index)?;
        let locks = core::mem::replace(&mut self.locks, outer_locks);
        self.locks |= locks;
        let elsewhere = named.uses > 1 || self.levels.len() != named.level;
        let same = !locks && effects == self.effects && self.repeats(&bound.rel, inits);
        let once = match same {
            true => named.materialized,
            // The name stands where the query is defined, and where it is used.
            false => elsewhere || named.materialized || self.occurrences(&named.name) > 2,
        };
        if once && !dependent {
            bound.rel = Rel::Shared {
                id: self.named_uses,
                query: Box::new(bound.rel),
            };
            self.named[index].shared = Some(Arc::new(Shared {
                rel: bound.rel.clone(),
                columns: bound.columns.clone(),
                returns: true,
            }));
        } else if elsewhere && !same {
            return Err(unsupported(&format!(
                "the WITH query \"{}\", which may give other rows each time and reads the row \
                 around it, more than once or inside of another query,",
                named.name
            ))
            .hint("Store its rows in a table first."));
        }
        Ok((bound, binds))
    }

    /// How often a name stands in the text, at least.
    fn occurrences(&self, name: &str) -> usize {
        let text = self.source.0.to_lowercase();
        text.matches(&name.to_lowercase()).count()
    }

    /// Its own name means this from now on.
    pub(super) fn begin_recursion(&mut self, name: &str, itself: Itself) {
        let named = NamedQuery {
            name: name.into(),
            columns: Vec::new(),
            query: Arc::new(nothing()),
            level: self.levels.len(),
            uses: 0,
            recursive: false,
            materialized: false,
            recursion: None,
            shared: None,
            itself: Some(Arc::new(itself)),
        };
        self.named.push(named);
    }

    /// Its own name means nothing any more; how often it was used.
    pub(super) fn end_recursion(&mut self) -> u32 {
        self.named.pop().map_or(0, |named| named.uses)
    }

    /// Binds the query of WITH RECURSIVE.
    fn maybe_recursive(&mut self, named: &NamedQuery) -> Result<BoundQuery, SqlError> {
        let columns: Vec<String> = named.columns.iter().map(|c| ident(&c.name)).collect();
        if self.occurrences(&named.name) > 1 {
            let inits = self.inits.len();
            let clauses = named.recursion.as_deref();
            if let Some(bound) = self.recursion(&named.name, &columns, &named.query, clauses)? {
                return Ok(bound);
            }
            self.inits.truncate(inits);
            // It is bound a second time, which must not double at every level.
            self.named_uses += 1;
        }
        if named.recursion.is_some() {
            return Err(super::carried::not_recursive());
        }
        self.query(&named.query)
    }

    /// Binds a named query as if it stood where it is named: it sees the queries named before it,
    /// and what its level's query sees from outside.
    fn bind_named(&mut self, index: usize) -> Result<(BoundQuery, Binds, bool), SqlError> {
        let later = self.named.split_off(index);
        let named = &later[0];
        let (named, level) = (named.clone(), named.level);
        let inside = self.levels[level - 1..].iter_mut();
        let hidden: Vec<Scope> = inside
            .map(|level| core::mem::take(&mut level.scope))
            .collect();
        let bound = self.nested(|binder| match named.recursive {
            true => binder.maybe_recursive(&named),
            false => binder.query(&named.query),
        });
        for (level, scope) in self.levels[level - 1..].iter_mut().zip(hidden) {
            level.scope = scope;
        }
        self.named.extend(later);
        bound
    }

    /// A query that is not used is not run, but its errors count.
    fn check_unused(&mut self, index: usize) -> Result<(), SqlError> {
        if let Some(shared) = self.named[index].shared.clone() {
            return self.check_names(index, shared.columns.clone());
        }
        let (inits, effects, locks) = (self.inits.len(), self.effects, self.locks);
        let (bound, ..) = self.bind_named(index)?;
        self.inits.truncate(inits);
        (self.effects, self.locks) = (effects, locks);
        self.check_names(index, bound.columns)
    }

    fn check_names(&self, index: usize, columns: Vec<OutColumn>) -> Result<(), SqlError> {
        let columns = columns
            .into_iter()
            .map(|c| (c.name, c.ty, (c.table, c.attribute)));
        let named = self.named[index].clone();
        let mut scope = Scope::of_relation(&named.name, columns, 0);
        self.name_columns(&mut scope, &named)
    }

    /// Whether this is the WITH of the whole statement.
    pub(super) fn is_at_top(&self) -> bool {
        self.levels.len() == 1
    }

    /// Gives the columns of a use the names that the WITH clause has for them.
    fn name_columns(&self, scope: &mut Scope, named: &NamedQuery) -> Result<(), SqlError> {
        let count = scope.columns.iter().filter(|column| !column.hidden).count();
        if named.columns.len() > count {
            let message = format!(
                "WITH query \"{}\" has {count} columns available but {} columns specified",
                named.name,
                named.columns.len()
            );
            return Err(SqlError::new(SqlState::INVALID_COLUMN_REFERENCE, message));
        }
        let visible = scope.columns.iter_mut().filter(|column| !column.hidden);
        for (column, named) in visible.zip(&named.columns) {
            self.no(named.data_type.is_some(), "AS")?;
            column.name = ident(&named.name);
        }
        Ok(())
    }

    /// Whether a query gives the same rows each time that a statement runs it. `inits`: from where
    /// on values at the statement's start belong to it.
    fn repeats(&self, rel: &Rel, inits: usize) -> bool {
        let started = self.inits[inits..].iter().all(|init| match &init.value {
            InitValue::Call(call) => call_repeats(call),
            InitValue::Expr(expr) => volatility(expr) < Volatility::Volatile,
        });
        let mut all = rel.clone();
        let mut same = true;
        all.each_expr_mut(&mut |expr| same &= volatility(expr) < Volatility::Volatile);
        started && same && rel_repeats(rel)
    }
}

impl Itself {
    fn scope(&self, shown: &str) -> Result<Scope, SqlError> {
        match self {
            Itself::Refused(error) => Err(error.clone()),
            Itself::Rows { columns, .. } => {
                let columns = columns.iter().map(|(name, ty)| (name.clone(), *ty, (0, 0)));
                Ok(Scope::of_relation(shown, columns, 0))
            }
        }
    }

    fn rel(&self) -> Rel {
        match self {
            Itself::Refused(_) => Rel::One,
            Itself::Rows { slot, columns } => Rel::Working {
                slot: *slot,
                types: columns.iter().map(|(_, ty)| *ty).collect(),
            },
        }
    }
}

/// A query without rows, for a name that stands for no query.
fn nothing() -> ast::Query {
    ast::Query {
        with: None,
        body: Box::new(ast::SetExpr::Values(ast::Values {
            explicit_row: false,
            rows: Vec::new(),
        })),
        order_by: None,
        limit: None,
        limit_by: Vec::new(),
        offset: None,
        fetch: None,
        locks: Vec::new(),
        for_clause: None,
        settings: None,
        format_clause: None,
    }
}

fn call_repeats(call: &Call<Rel>) -> bool {
    call.repeats && call.kind.query().is_none_or(rel_repeats)
}

/// As [`Binder::repeats`], apart from the functions in expressions.
fn rel_repeats(rel: &Rel) -> bool {
    match rel {
        Rel::One
        | Rel::Virtual(_)
        | Rel::Function { .. }
        | Rel::Shared { .. }
        | Rel::Part { .. }
        | Rel::Working { .. } => true,
        Rel::Table { lock, .. } => lock.is_none(),
        Rel::Values { calls, .. } => calls.iter().all(call_repeats),
        Rel::Join { left, right, .. }
        | Rel::Lateral { left, right, .. }
        | Rel::Match { left, right, .. }
        | Rel::Recursive {
            base: left,
            step: right,
            ..
        } => rel_repeats(left) && rel_repeats(right),
        Rel::Filter { input, .. }
        | Rel::Project { input, .. }
        | Rel::Expand { input, .. }
        | Rel::Sort { input, .. } => rel_repeats(input),
        Rel::Apply { input, calls } => rel_repeats(input) && calls.iter().all(call_repeats),
        Rel::Aggregate {
            input, aggregates, ..
        } => aggregates.iter().all(is_exact) && rel_repeats(input),
        // DISTINCT ON keeps the first row of several.
        Rel::Distinct { input, keys } => keys.len() == input.width() as usize && rel_repeats(input),
        // Rows that are equal in the order of a window come in any.
        Rel::Window { .. } | Rel::Limit { .. } | Rel::Locked { .. } => false,
        Rel::Union { inputs } => inputs.iter().all(rel_repeats),
    }
}

/// Lists and sums of floats depend on the order of rows.
fn is_exact(aggregate: &Aggregate) -> bool {
    let is_float = matches!(aggregate.ty, Type::Float4 | Type::Float8);
    match aggregate.func {
        AggFunc::Min | AggFunc::Max => true,
        AggFunc::StringAgg | AggFunc::ArrayAgg | AggFunc::ArrayOfArrays => false,
        _ => !is_float,
    }
}

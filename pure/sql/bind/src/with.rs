//! WITH: queries that have a name. Each use of the name is bound as a subquery in FROM would be.
//!
//! PostgreSQL computes a query once that is used several times. Here it is computed for each use,
//! so it must give the same rows each time: what might not (LIMIT without all of an order, random
//! values, locks) is refused then.

use super::from::{Factor, Locking};
use super::rel::{Aggregate, Binds, Call, InitValue, Rel};
use super::scope::{Scope, ident};
use super::{Binder, BoundQuery, unsupported};
use ::expr::Volatility;
use ::expr::aggregate::AggFunc;
use ::expr::walk::volatility;
use base::{SqlError, SqlState, Type};
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
        if *recursive {
            return Err(unsupported("WITH RECURSIVE"));
        }
        let first = self.named.len();
        for cte in cte_tables {
            let named = self.named_query(cte)?;
            if self.named[first..]
                .iter()
                .any(|other| other.name == named.name)
            {
                let message = format!(
                    "WITH query name \"{}\" specified more than once",
                    named.name
                );
                let place = self.source.position(cte.alias.name.span.start);
                return Err(SqlError::new(SqlState::DUPLICATE_ALIAS, message).at(place));
            }
            self.named.push(named);
            if self.named.len() > NAMED_MAX {
                let message = format!("WITH can have at most {NAMED_MAX} queries");
                return Err(SqlError::new(SqlState::PROGRAM_LIMIT, message));
            }
        }
        let bound = bind(self)?;
        for index in first..self.named.len() {
            if self.named[index].uses == 0 {
                self.check_unused(index)?;
            }
        }
        self.named.truncate(first);
        Ok(bound)
    }

    fn named_query(&mut self, cte: &ast::Cte) -> Result<NamedQuery, SqlError> {
        let ast::Cte {
            alias,
            query,
            from,
            materialized,
            closing_paren_token: _,
        } = cte;
        self.no(from.is_some(), "FROM")?;
        if let Some(ast::CteAsMaterialized::Materialized) = materialized {
            return Err(unsupported("MATERIALIZED")
                .hint("Leave the word out: the query is computed where it is used."));
        }
        Ok(NamedQuery {
            name: self.relation_name(&alias.name)?,
            columns: alias.columns.clone(),
            query: Arc::new((**query).clone()),
            level: self.levels.len(),
            uses: 0,
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
        let (inits, effects) = (self.inits.len(), self.effects);
        let outer_locks = core::mem::replace(&mut self.locks, false);
        let bound = self.bind_named(index)?;
        let locks = core::mem::replace(&mut self.locks, outer_locks);
        self.locks |= locks;
        let (BoundQuery { rel, columns }, binds) = bound;
        let elsewhere = named.uses > 1 || self.levels.len() != named.level;
        if elsewhere && (locks || effects != self.effects || !self.repeats(&rel, inits)) {
            return Err(unsupported(&format!(
                "the WITH query \"{}\", which may give other rows each time, more than once or \
                 inside of another query,",
                named.name
            ))
            .hint("Store its rows in a table first."));
        }
        let columns = columns
            .into_iter()
            .map(|c| (c.name, c.ty, (c.table, c.attribute)));
        let mut scope = Scope::of_relation(&shown, columns, 0);
        self.name_columns(&mut scope, &named)?;
        self.rename(&mut scope, alias)?;
        Ok(Factor { rel, scope, binds })
    }

    /// Binds a named query as if it stood where it is named: it sees the queries named before it,
    /// and what its level's query sees from outside.
    fn bind_named(&mut self, index: usize) -> Result<(BoundQuery, Binds), SqlError> {
        let later = self.named.split_off(index);
        let named = &later[0];
        let (query, level) = (named.query.clone(), named.level);
        let inside = self.levels[level - 1..].iter_mut();
        let hidden: Vec<Scope> = inside
            .map(|level| core::mem::take(&mut level.scope))
            .collect();
        let bound = self.nested(|binder| binder.query(&query));
        for (level, scope) in self.levels[level - 1..].iter_mut().zip(hidden) {
            level.scope = scope;
        }
        self.named.extend(later);
        let (bound, binds, _) = bound?;
        Ok((bound, binds))
    }

    /// A query that is not used is not run, but its errors count.
    fn check_unused(&mut self, index: usize) -> Result<(), SqlError> {
        let (inits, effects, locks) = (self.inits.len(), self.effects, self.locks);
        let (bound, _) = self.bind_named(index)?;
        self.inits.truncate(inits);
        (self.effects, self.locks) = (effects, locks);
        let columns = bound
            .columns
            .into_iter()
            .map(|c| (c.name, c.ty, (c.table, c.attribute)));
        let named = self.named[index].clone();
        let mut scope = Scope::of_relation(&named.name, columns, 0);
        self.name_columns(&mut scope, &named)
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

fn call_repeats(call: &Call<Rel>) -> bool {
    call.repeats && call.kind.query().is_none_or(rel_repeats)
}

/// As [`Binder::repeats`], apart from the functions in expressions.
fn rel_repeats(rel: &Rel) -> bool {
    match rel {
        Rel::One | Rel::Virtual(_) | Rel::Function { .. } => true,
        Rel::Table { lock, .. } => lock.is_none(),
        Rel::Values { calls, .. } => calls.iter().all(call_repeats),
        Rel::Join { left, right, .. }
        | Rel::Lateral { left, right, .. }
        | Rel::Match { left, right, .. } => rel_repeats(left) && rel_repeats(right),
        Rel::Filter { input, .. } | Rel::Project { input, .. } | Rel::Sort { input, .. } => {
            rel_repeats(input)
        }
        Rel::Apply { input, calls } => rel_repeats(input) && calls.iter().all(call_repeats),
        Rel::Aggregate {
            input, aggregates, ..
        } => aggregates.iter().all(is_exact) && rel_repeats(input),
        // DISTINCT ON keeps the first row of several.
        Rel::Distinct { input, keys } => keys.len() == input.width() as usize && rel_repeats(input),
        Rel::Limit { .. } | Rel::Locked { .. } => false,
        Rel::Union { inputs } => inputs.iter().all(rel_repeats),
    }
}

/// Lists and sums of floats depend on the order of rows.
fn is_exact(aggregate: &Aggregate) -> bool {
    let is_float = matches!(aggregate.ty, Type::Float4 | Type::Float8);
    match aggregate.func {
        AggFunc::Min | AggFunc::Max => true,
        AggFunc::StringAgg | AggFunc::ArrayAgg => false,
        _ => !is_float,
    }
}

//! The clauses of a query: what PostgreSQL's grammar has is used, the rest is refused.

use super::from::Locking;
use super::locked::AtOnce;
use super::rel::SortKey;
use super::scope::Scope;
use super::select::Window;
use super::{Binder, unsupported};
use base::{SqlError, SqlState, Type};
use expr::Expr;
use expr::resolve::{self, Context};
use sqlparser::ast::{
    self, Distinct, Expr as Ast, GroupByExpr, LockType, NamedWindowDefinition, NonBlock,
    OrderByExpr, Query, Select, SelectFlavor, SelectItem, SetExpr, Spanned, TableWithJoins,
};
use txn::LockMode;

/// What a SELECT says in PostgreSQL's grammar.
pub(super) struct SelectClauses<'a> {
    pub(super) distinct: &'a Option<Distinct>,
    pub(super) projection: &'a [SelectItem],
    pub(super) from: &'a [TableWithJoins],
    pub(super) selection: Option<&'a Ast>,
    pub(super) group_by: &'a [Ast],
    pub(super) having: Option<&'a Ast>,
    pub(super) windows: &'a [NamedWindowDefinition],
}

impl Binder<'_> {
    pub(super) fn select_clauses<'a>(
        &self,
        select: &'a Select,
    ) -> Result<SelectClauses<'a>, SqlError> {
        let Select {
            select_token: _,
            distinct,
            top,
            top_before_distinct: _,
            projection,
            into,
            from,
            lateral_views,
            prewhere,
            selection,
            group_by,
            cluster_by,
            distribute_by,
            sort_by,
            having,
            named_window,
            qualify,
            window_before_qualify: _,
            value_table_mode,
            connect_by,
            flavor,
        } = select;
        self.no(top.is_some(), "TOP")?;
        self.no(!lateral_views.is_empty(), "LATERAL")?;
        self.no(prewhere.is_some(), "PREWHERE")?;
        self.no(!cluster_by.is_empty(), "CLUSTER")?;
        self.no(!distribute_by.is_empty(), "DISTRIBUTE")?;
        self.no(!sort_by.is_empty(), "SORT")?;
        self.no(qualify.is_some(), "QUALIFY")?;
        self.no(value_table_mode.is_some(), "AS")?;
        self.no(connect_by.is_some(), "CONNECT")?;
        self.no(*flavor != SelectFlavor::Standard, "FROM")?;
        if into.is_some() {
            return Err(unsupported("SELECT INTO"));
        }
        let group_by: &[Ast] = match group_by {
            GroupByExpr::Expressions(exprs, modifiers) => {
                self.no(!modifiers.is_empty(), "GROUPING")?;
                exprs
            }
            // PostgreSQL wants a list behind it.
            GroupByExpr::All(_) => return Err(self.source.unexpected(None)),
        };
        Ok(SelectClauses {
            distinct,
            projection,
            from,
            selection: selection.as_ref(),
            group_by,
            having: having.as_ref(),
            windows: named_window,
        })
    }

    pub(super) fn window(
        &mut self,
        limit: Option<&Ast>,
        offset: Option<&ast::Offset>,
        fetch: Option<&ast::Fetch>,
    ) -> Result<Window, SqlError> {
        let mut ties = false;
        let first = match fetch {
            None => None,
            Some(ast::Fetch {
                with_ties,
                percent,
                quantity,
            }) => {
                self.no(*percent, "PERCENT")?;
                ties = *with_ties;
                Some(quantity.clone().unwrap_or_else(|| {
                    Ast::Value(ast::Value::Number("1".into(), false).with_empty_span())
                }))
            }
        };
        let limit = limit.or(first.as_ref());
        let offset = offset.map(|ast::Offset { value, rows: _ }| value);
        Ok(Window {
            limit: self.count(limit, "LIMIT")?,
            offset: self.count(offset, "OFFSET")?,
            with_ties: ties,
        })
    }

    fn count(&mut self, ast: Option<&Ast>, clause: &str) -> Result<Option<Expr>, SqlError> {
        let Some(ast) = ast else { return Ok(None) };
        let hidden = self.set_scope(Scope::default());
        let outer = self.level().aggregates_in.replace("LIMIT");
        let bound = self.expr(ast);
        self.level().aggregates_in = outer;
        self.set_scope(hidden);
        let bound = resolve::coerce(bound?, Type::Int8, Context::Assignment).map_err(|_| {
            let message = format!("argument of {clause} must be type bigint");
            SqlError::new(SqlState::DATATYPE_MISMATCH, message)
        })?;
        self.note(&bound);
        Ok(Some(bound))
    }

    /// The key for a column of this type that ORDER BY names.
    pub(super) fn sort_key(
        &self,
        (column, ty): (u32, Type),
        key: &OrderByExpr,
    ) -> Result<SortKey, SqlError> {
        if !resolve::has_order(ty) {
            let name = ty.name();
            let message = format!("could not identify an ordering operator for type {name}");
            let error = SqlError::new(SqlState::UNDEFINED_FUNCTION, message);
            let hint = "Use an explicit ordering operator or modify the query.";
            return Err(error.hint(hint).at(self.position(key.expr.span())));
        }
        let (descending, nulls_first) = self.sort_order(key)?;
        Ok(SortKey {
            column,
            descending,
            nulls_first,
        })
    }

    /// Whether a key of ORDER BY asks for descending order, and for NULLs first.
    pub fn sort_order(&self, key: &OrderByExpr) -> Result<(bool, bool), SqlError> {
        let OrderByExpr {
            expr: _,
            options: ast::OrderByOptions { asc, nulls_first },
            with_fill,
        } = key;
        self.no(with_fill.is_some(), "WITH")?;
        let descending = *asc == Some(false);
        Ok((descending, nulls_first.unwrap_or(descending)))
    }

    /// The rows of a query that is nothing but VALUES.
    pub(super) fn plain_values<'q>(
        &self,
        query: &'q Query,
    ) -> Result<Option<&'q [Vec<Ast>]>, SqlError> {
        let Query {
            with: None,
            body,
            order_by: None,
            limit: None,
            limit_by: _,
            offset: None,
            fetch: None,
            locks,
            for_clause: None,
            settings: None,
            format_clause: None,
        } = query
        else {
            return Ok(None);
        };
        match body.as_ref() {
            SetExpr::Values(ast::Values { explicit_row, rows }) if locks.is_empty() => {
                self.no(*explicit_row, "ROW")?;
                Ok(Some(rows))
            }
            _ => Ok(None),
        }
    }

    pub(super) fn locking(&mut self, locks: &[ast::LockClause]) -> Result<Locking, SqlError> {
        let mut locking = Locking::default();
        for clause in locks {
            let ast::LockClause {
                lock_type,
                of,
                nonblock,
            } = clause;
            let at_once = nonblock.as_ref().map(|wait| match wait {
                NonBlock::Nowait => AtOnce::Fail,
                NonBlock::SkipLocked => AtOnce::Skip,
            });
            locking.at_once = locking.at_once.max(at_once);
            let (mode, name) = match lock_type {
                LockType::Share => (LockMode::Shared, "FOR SHARE"),
                LockType::Update => (LockMode::Exclusive, "FOR UPDATE"),
            };
            locking.clause.get_or_insert(name);
            locking.mode = Some(locking.mode.map_or(mode, |other| other.max(mode)));
            if let Some(of) = of {
                if of.0.len() > 1 {
                    let message = format!("{name} must specify unqualified relation names");
                    return Err(SqlError::new(SqlState::SYNTAX, message));
                }
                locking.of.push(super::scope::object_name(of).1);
            }
            self.locks = true;
        }
        Ok(locking)
    }
}

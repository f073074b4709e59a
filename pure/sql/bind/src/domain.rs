//! Values of domains: those of the type below, once they meet the conditions of the domain.

use super::Binder;
use super::body::is_cheap;
use super::rel::{CallKind, QueryUse, Rel};
use super::scope::{Scope, ScopeColumn};
use base::full_name::{own, schema_of};
use base::{Datum, SqlError, Type};
use catalog::{Domain, DomainCheck};
use expr::{Expr, Func, Volatility, walk, zoned};
use functions::keywords::quote_ident;
use sqlparser::ast;
use std::sync::Arc;

/// What a condition of a domain sees: its value.
fn value_scope(value: &Expr) -> Scope {
    Scope {
        columns: vec![ScopeColumn {
            relation: String::new(),
            name: "value".into(),
            expr: value.clone(),
            shadowed: false,
            hidden: false,
            origin: (0, 0),
        }],
        ..Scope::default()
    }
}

/// Nodes of a value that may be computed for each condition: a subquery costs more.
const SMALL: usize = 16;

/// Whether a value may be computed several times. So it can stand in defaults and checks, too.
fn is_small(value: &Expr) -> bool {
    fn nodes(expr: &Expr, left: &mut usize) {
        *left = left.saturating_sub(1);
        if *left > 0 {
            expr.each_child(&mut |child| nodes(child, left));
        }
    }
    let mut left = SMALL;
    nodes(value, &mut left);
    left > 0 && walk::volatility(value) < Volatility::Volatile
}

impl Binder<'_> {
    /// A condition over the value of a domain.
    ///
    /// # Errors
    /// Those of its names and types.
    pub fn over_value(&mut self, check: &ast::Expr, value: &Expr) -> Result<Expr, SqlError> {
        let outer = self.set_scope(value_scope(value));
        let bound = self.condition(check, "CHECK");
        self.set_scope(outer);
        bound
    }

    /// The name of a domain for people.
    fn shown_domain(&self, domain: &Domain) -> String {
        let name = quote_ident(own(&domain.name));
        let names = self.names();
        let has = |database: &catalog::Database, full: &str| database.domains.contains_key(full);
        match names.is_visible(&domain.name, has) || self.path == catalog::KEPT_PATH {
            true => name.into_owned(),
            false => {
                let schema = self.cx.database.schema_name(schema_of(&domain.name));
                format!("{}.{name}", quote_ident(schema))
            }
        }
    }

    /// The conditions of a domain over a value. Each is true, or fails.
    ///
    /// # Errors
    /// Those of binding them.
    pub fn domain_conditions(
        &mut self,
        domain: &Domain,
        value: &Expr,
    ) -> Result<Vec<Expr>, SqlError> {
        let shown = self.shown_domain(domain);
        let text = |text: &str| Expr::Const(Datum::Text(text.into()), Type::Text);
        let meets = |condition: Expr, name: Expr| {
            let args = vec![condition, text(&shown), name, text(&domain.name)];
            Expr::Call(Func::Meets, args, Type::Bool)
        };
        // The value has the style of intervals of where it is made, the conditions have their own.
        let mut value = value.clone();
        zoned::fix_style(&mut value, zoned::style_of(&self.zone), &self.zone);
        let mut all = Vec::new();
        let database = self.cx.database;
        let mut stack: Vec<&Domain> = vec![domain];
        let below = domain.over.into_iter();
        stack.extend(
            below
                .flat_map(|id| database.domain_and_below(id))
                .map(|one| &**one),
        );
        if stack.iter().any(|one| one.not_null) {
            let there = Expr::IsNull(Box::new(value.clone()), true);
            all.push(meets(there, Expr::null(Type::Text)));
        }
        // As in PostgreSQL: the lowest domain first, by name.
        let mut checks: Vec<&DomainCheck> = Vec::new();
        for one in stack.into_iter().rev() {
            let first = checks.len();
            checks.extend(&one.checks);
            checks[first..].sort_by(|left, right| left.name.cmp(&right.name));
        }
        for check in checks {
            let ast = parse::expression(&check.expression)?;
            let over = |binder: &mut Self| binder.over_value(&ast, &value);
            let bound = self.without_needs(|binder| binder.kept(|binder| binder.of_rows(over)))?;
            all.push(meets(bound, text(&check.name)));
        }
        Ok(all)
    }

    /// The value if it meets the conditions.
    fn checked(&mut self, domain: &Domain, value: Expr) -> Result<Expr, SqlError> {
        let ty = value.ty();
        let conditions = self.domain_conditions(domain, &value)?;
        let arms = conditions
            .into_iter()
            .map(|condition| (Expr::Not(Box::new(condition)), Expr::null(ty)));
        Ok(Expr::Case {
            arms: arms.collect(),
            otherwise: Box::new(value),
            ty,
        })
    }

    /// A value that is cast to a domain. It is computed once, however many conditions read it.
    ///
    /// # Errors
    /// Those of binding the conditions.
    pub(super) fn domain_value(&mut self, id: u32, value: Expr) -> Result<Expr, SqlError> {
        let Some(domain) = self.cx.database.domain_by_id(id).map(Arc::clone) else {
            return Ok(value);
        };
        if !self.cx.database.has_conditions(id) {
            return Ok(value);
        }
        if is_cheap(&value) || is_small(&value) {
            return self.checked(&domain, value);
        }
        let ty = value.ty();
        let slot = self.new_slot();
        let checked = self.checked(&domain, Expr::Param(slot, ty))?;
        let repeats = walk::volatility(&value) < Volatility::Volatile;
        let kind = CallKind::Query {
            usage: QueryUse::Scalar,
            query: Rel::One.projected(vec![checked]),
            binds: vec![(slot, value)],
        };
        Ok(self.routine_value(kind, ty, true, repeats))
    }
}

//! WITH RECURSIVE: a query that reads its own rows. `a UNION [ALL] b`: the rows of `a` first, and
//! then those that `b` makes of the rows that came last, until there are no new ones.

use super::carried::Carried;
use super::rel::{Call, InitValue, JoinKind, Rel};
use super::with::Itself;
use super::{Binder, BoundQuery};
use base::{OutColumn, SqlError, SqlState, Type};
use expr::Expr;
use expr::resolve::{self, Context};
use sqlparser::ast::{Query, SetExpr, SetOperator, SetQuantifier};

const WRONG: SqlState = SqlState(*b"42P19");

/// The parts of a query that may be recursive.
pub(super) struct Parts<'q> {
    pub(super) base: &'q SetExpr,
    pub(super) step: &'q SetExpr,
    distinct: bool,
}

/// Takes a query apart that has the form of a recursive one.
pub(super) fn parts(query: &Query) -> Option<Parts<'_>> {
    match query.body.as_ref() {
        SetExpr::SetOperation {
            op: SetOperator::Union,
            set_quantifier,
            left,
            right,
        } if query.with.is_none() => {
            let distinct = match set_quantifier {
                SetQuantifier::All => false,
                SetQuantifier::None | SetQuantifier::Distinct => true,
                _ => return None,
            };
            Some(Parts {
                base: left,
                step: right,
                distinct,
            })
        }
        _ => None,
    }
}

impl Binder<'_> {
    /// Binds a query that names itself; `None`: it does not.
    pub(super) fn recursion(
        &mut self,
        name: &str,
        columns: &[String],
        query: &Query,
        clauses: Option<&parse::Recursion>,
    ) -> Result<Option<BoundQuery>, SqlError> {
        let refused = |binder: &mut Self, error, query: &dyn Fn(&mut Self) -> _| {
            binder.begin_recursion(name, Itself::Refused(error));
            let bound: Result<BoundQuery, SqlError> = query(binder);
            binder.end_recursion();
            bound
        };
        let Some(parts) = parts(query) else {
            let bound = refused(self, no_form(name), &|binder| binder.query(query))?;
            return plain(bound, clauses);
        };
        let misplaced_here = misplaced(name, "within its non-recursive term");
        let base = refused(self, misplaced_here, &|binder| binder.set_expr(parts.base))?;
        let BoundQuery {
            mut rel,
            columns: mut own,
        } = base;
        self.settle_base(&mut rel, &mut own)?;
        let types: Vec<Type> = own.iter().map(|column| column.ty).collect();
        let slot = self.new_slot();
        let names = own.iter().enumerate();
        let names = names.map(|(i, c)| columns.get(i).unwrap_or(&c.name).clone());
        let names: Vec<String> = names.collect();
        let carried = clauses.map(|all| self.carried_by(&parts, all, (&names, &types)));
        let carried = carried.transpose()?;
        let mut names: Vec<(String, Type)> = names.into_iter().zip(types.clone()).collect();
        let mut all = types.clone();
        let mut step = None;
        if let Some(carried) = &carried {
            rel = carried.begun(rel, &types);
            names.extend(carried.hidden());
            all.extend(carried.hidden().map(|(_, ty)| ty));
            own.extend(carried.columns());
            step = Some(carried.step(parts.step, name)?);
        }
        let itself = Itself::Rows {
            slot,
            columns: names,
        };
        self.begin_recursion(name, itself);
        let inits = self.inits.len();
        let step = self.set_expr(step.as_ref().unwrap_or(parts.step));
        let uses = self.end_recursion();
        let step = step?;
        if uses == 0 {
            return Ok(None);
        }
        if uses > 1 {
            return Err(misplaced(name, "more than once"));
        }
        self.check_recursion(name, slot, &step.rel, inits)?;
        no_clauses(query)?;
        let mut step = self.alike_step(name, step, &all)?;
        if let Some(carried) = &carried {
            step = carried.carried_on(step, &types)?;
        }
        let rel = Rel::Recursive {
            slot,
            distinct: parts.distinct,
            base: Box::new(rel),
            step: Box::new(step),
        };
        Ok(Some(BoundQuery { rel, columns: own }))
    }

    /// The columns that SEARCH and CYCLE add.
    fn carried_by(
        &mut self,
        parts: &Parts<'_>,
        clauses: &parse::Recursion,
        (names, types): (&[String], &[Type]),
    ) -> Result<Carried, SqlError> {
        if !matches!(parts.base, SetExpr::Select(_) | SetExpr::Values(_)) {
            let message =
                "with a SEARCH or CYCLE clause, the left side of the UNION must be a SELECT";
            return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
        }
        self.carried(clauses, names, types)
    }

    /// Gives the columns of the first rows their types: what is open is text.
    fn settle_base(&mut self, rel: &mut Rel, own: &mut [OutColumn]) -> Result<(), SqlError> {
        for (i, column) in own.iter_mut().enumerate() {
            (column.table, column.attribute) = (0, 0);
            if column.ty == Type::Unknown {
                column.ty = Type::Text;
                if let Some(value) = rel.untyped(i as u32, Type::Text) {
                    self.give_type(value, Type::Text, Context::Implicit)?;
                }
            }
        }
        Ok(())
    }

    /// The rows of a round with the types of the first rows.
    fn alike_step(
        &mut self,
        name: &str,
        mut step: BoundQuery,
        types: &[Type],
    ) -> Result<Rel, SqlError> {
        if step.columns.len() != types.len() {
            let message = "each UNION query must have the same number of columns";
            return Err(SqlError::new(SqlState::SYNTAX, message));
        }
        let mut exprs = Vec::with_capacity(types.len());
        for (i, (column, ty)) in step.columns.iter_mut().zip(types).enumerate() {
            if column.ty == Type::Unknown {
                column.ty = *ty;
                if let Some(value) = step.rel.untyped(i as u32, *ty) {
                    self.give_type(value, *ty, Context::Implicit)?;
                }
            }
            let all = resolve::common_type(&[*ty, column.ty]).map_err(|_| {
                let (a, b) = (ty.name(), column.ty.name());
                let message = format!("UNION types {a} and {b} cannot be matched");
                SqlError::new(SqlState::DATATYPE_MISMATCH, message)
            })?;
            let same = column.ty == *ty || all == *ty && all.without_modifiers() == all;
            if !same {
                let message = format!(
                    "recursive query \"{name}\" column {} has type {} in non-recursive term but \
                     type {} overall",
                    i + 1,
                    ty.name(),
                    all.without_modifiers().name()
                );
                return Err(SqlError::new(SqlState::DATATYPE_MISMATCH, message)
                    .hint("Cast the output of the non-recursive term to the correct type."));
            }
            let value = Expr::Column(i as u32, column.ty);
            exprs.push(resolve::coerce(value, *ty, Context::Implicit)?);
        }
        Ok(step.rel.projected(exprs))
    }

    /// Whether the query names itself only where each of its rows is taken once.
    fn check_recursion(
        &self,
        name: &str,
        slot: u32,
        step: &Rel,
        inits: usize,
    ) -> Result<(), SqlError> {
        let started = self.inits[inits..].iter().any(|init| match &init.value {
            InitValue::Call(call) => call.kind.query().is_some_and(|query| names(query, slot)),
            InitValue::Expr(_) => false,
        });
        if started {
            return Err(misplaced(name, "within a subquery"));
        }
        check(name, slot, step)
    }
}

/// A query that does not name itself has no clauses of recursive ones.
fn plain(
    bound: BoundQuery,
    clauses: Option<&parse::Recursion>,
) -> Result<Option<BoundQuery>, SqlError> {
    match clauses {
        None => Ok(Some(bound)),
        Some(_) => Err(super::carried::not_recursive()),
    }
}

/// Clauses that PostgreSQL does not have behind a recursive query.
fn no_clauses(query: &Query) -> Result<(), SqlError> {
    let clauses = [
        (query.order_by.is_some(), "ORDER BY"),
        (query.offset.is_some(), "OFFSET"),
        (query.limit.is_some() || query.fetch.is_some(), "LIMIT"),
        (!query.locks.is_empty(), "FOR UPDATE/SHARE"),
    ];
    match clauses.into_iter().find(|(there, _)| *there) {
        None => Ok(()),
        Some((_, clause)) => Err(SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            format!("{clause} in a recursive query is not implemented"),
        )),
    }
}

pub(super) fn no_form(name: &str) -> SqlError {
    let message = format!(
        "recursive query \"{name}\" does not have the form non-recursive-term UNION [ALL] \
         recursive-term"
    );
    SqlError::new(WRONG, message)
}

pub(super) fn misplaced(name: &str, place: &str) -> SqlError {
    let message = format!("recursive reference to query \"{name}\" must not appear {place}");
    SqlError::new(WRONG, message)
}

fn calls(rel: &Rel) -> &[Call<Rel>] {
    match rel {
        Rel::Values { calls, .. } | Rel::Apply { calls, .. } => calls,
        _ => &[],
    }
}

fn called(rel: &Rel, slot: u32) -> bool {
    let mut queries = calls(rel).iter().filter_map(|call| call.kind.query());
    queries.any(|query| names(query, slot))
}

/// Whether a relation reads the rows of the recursive query with this slot.
pub(super) fn names(rel: &Rel, slot: u32) -> bool {
    let own = matches!(rel, Rel::Working { slot: own, .. } if *own == slot);
    own || called(rel, slot) || rel.inputs().into_iter().any(|input| names(input, slot))
}

fn check(name: &str, slot: u32, rel: &Rel) -> Result<(), SqlError> {
    if called(rel, slot) {
        return Err(misplaced(name, "within a subquery"));
    }
    match rel {
        Rel::Join {
            kind, left, right, ..
        } => {
            let outer = match kind {
                JoinKind::Left => names(right, slot),
                JoinKind::Right => names(left, slot),
                JoinKind::Full => names(left, slot) || names(right, slot),
                JoinKind::Inner | JoinKind::Semi | JoinKind::Anti => false,
            };
            if outer {
                return Err(misplaced(name, "within an outer join"));
            }
        }
        Rel::Lateral {
            outer: true, right, ..
        } if names(right, slot) => {
            return Err(misplaced(name, "within an outer join"));
        }
        Rel::Aggregate { input, .. } if names(input, slot) => {
            let message = "aggregate functions are not allowed in a recursive query's recursive \
                           term";
            return Err(SqlError::new(WRONG, message));
        }
        Rel::Match {
            matching,
            left,
            right,
        } if names(left, slot) || names(right, slot) => {
            // Without ALL, more rows of the left side of EXCEPT, and of both sides of INTERSECT,
            // never give fewer.
            let shrinks = matching.all || matching.except && names(right, slot);
            if shrinks {
                let place = match matching.except {
                    true => "within EXCEPT",
                    false => "within INTERSECT",
                };
                return Err(misplaced(name, place));
            }
        }
        _ => {}
    }
    rel.inputs()
        .into_iter()
        .try_for_each(|input| check(name, slot, input))
}

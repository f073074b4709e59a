//! Aggregates and grouping: how a grouped query's expressions refer to groups.

use super::rel::{Aggregate, Call, Rel};
use super::{AGGREGATE, Binder, unsupported};
use crate::expr::aggregate::AggFunc;
use crate::expr::{Expr, walk};
use base::{SqlError, SqlState};
use sqlparser::ast::{
    self, DuplicateTreatment, FunctionArg, FunctionArgExpr, FunctionArgumentClause,
    FunctionArguments,
};

impl Binder<'_> {
    /// An aggregate call: noted at this level, with a placeholder in its place.
    pub(super) fn aggregate(
        &mut self,
        name: &str,
        function: &ast::Function,
    ) -> Result<Expr, SqlError> {
        if let Some(clause) = self.level().aggregates_in {
            let message = format!("aggregate functions are not allowed in {clause}");
            return Err(SqlError::new(SqlState::GROUPING, message));
        }
        if !function.within_group.is_empty() {
            return Err(unsupported("WITHIN GROUP"));
        }
        let FunctionArguments::List(list) = &function.args else {
            return Err(SqlError::new(
                SqlState::UNDEFINED_FUNCTION,
                format!("function {name}() does not exist"),
            ));
        };
        // Calls inside belong below the aggregation.
        let outer_calls = self.take_calls();
        let inner_calls = core::mem::take(&mut self.level().inner_calls);
        self.level().calls = inner_calls;
        self.level().aggregates_in = Some("aggregate function calls");
        let parts = self.aggregate_parts(list, function);
        self.level().aggregates_in = None;
        let inner_calls = self.take_calls();
        self.level().inner_calls = inner_calls;
        self.level().calls = outer_calls;
        let Parts {
            args,
            star,
            filter,
            order,
        } = parts.map_err(nested_aggregate)?;
        let (func, args, ty) = AggFunc::resolve(name, args, star)?;
        args.iter().for_each(|arg| self.note(arg));
        let distinct = matches!(list.duplicate_treatment, Some(DuplicateTreatment::Distinct));
        let aggregate = Aggregate {
            func,
            args,
            distinct,
            filter,
            order,
            ty,
        };
        let aggregates = &mut self.level().aggregates;
        let number = match aggregates.iter().position(|known| *known == aggregate) {
            Some(number) => number,
            None => {
                aggregates.push(aggregate);
                aggregates.len() - 1
            }
        };
        Ok(Expr::Outer(AGGREGATE, number as u32, ty))
    }

    fn aggregate_parts(
        &mut self,
        list: &ast::FunctionArgumentList,
        function: &ast::Function,
    ) -> Result<Parts, SqlError> {
        let mut args = Vec::new();
        let mut star = false;
        for arg in &list.args {
            match arg {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(arg)) => args.push(self.expr(arg)?),
                FunctionArg::Unnamed(FunctionArgExpr::Wildcard) => star = true,
                _ => return Err(unsupported("this form of aggregate argument")),
            }
        }
        let filter = function
            .filter
            .as_ref()
            .map(|filter| self.condition(filter, "FILTER"))
            .transpose()?;
        let mut order = Vec::new();
        for clause in &list.clauses {
            match clause {
                FunctionArgumentClause::OrderBy(keys) => {
                    for key in keys {
                        let expr = self.expr(&key.expr)?;
                        let descending = key.options.asc == Some(false);
                        let nulls_first = key.options.nulls_first.unwrap_or(descending);
                        order.push((expr, descending, nulls_first));
                    }
                }
                _ => return Err(unsupported("this clause of an aggregate")),
            }
        }
        Ok(Parts {
            args,
            star,
            filter,
            order,
        })
    }
}

/// What stands between the parentheses of an aggregate and behind them.
struct Parts {
    args: Vec<Expr>,
    star: bool,
    filter: Option<Expr>,
    order: Vec<(Expr, bool, bool)>,
}

fn nested_aggregate(error: SqlError) -> SqlError {
    let text = "aggregate functions are not allowed in aggregate function calls";
    if error.fields().message == text {
        return SqlError::new(
            SqlState::GROUPING,
            "aggregate function calls cannot be nested",
        );
    }
    error
}

/// A grouped query: the relation of its groups and how expressions over the ungrouped row are
/// expressed over it.
pub(super) struct Grouping {
    group: Vec<Expr>,
    aggregates: Vec<Aggregate>,
    /// Columns that follow from the grouped ones (their table's primary key is grouped).
    implied: Vec<Expr>,
}

impl Grouping {
    pub(super) fn new(group: Vec<Expr>, aggregates: Vec<Aggregate>) -> Grouping {
        Grouping {
            group,
            aggregates,
            implied: Vec::new(),
        }
    }

    /// Rewrites an expression so that it reads the grouped relation.
    ///
    /// `determined` tells whether a column follows from the grouped columns; `name` is its name
    /// for the error.
    pub(super) fn rewrite(
        &mut self,
        expr: &mut Expr,
        determined: &dyn Fn(u32, &[Expr]) -> bool,
        name: &dyn Fn(u32) -> String,
    ) -> Result<(), SqlError> {
        if let Some(index) = self.group.iter().position(|key| key == expr) {
            *expr = Expr::Column(index as u32, expr.ty());
            return Ok(());
        }
        match expr {
            Expr::Outer(AGGREGATE, _, _) => Ok(()),
            Expr::Column(column, _) => {
                if !determined(*column, &self.group) {
                    return Err(SqlError::new(
                        SqlState::GROUPING,
                        format!(
                            "column \"{}\" must appear in the GROUP BY clause or be used in an \
                             aggregate function",
                            name(*column)
                        ),
                    ));
                }
                let index = match self.implied.iter().position(|known| known == expr) {
                    Some(index) => index,
                    None => {
                        self.implied.push(expr.clone());
                        self.implied.len() - 1
                    }
                };
                // Marked by an aggregate number behind the real ones until all are known.
                let number = u32::MAX / 2 + index as u32;
                *expr = Expr::Outer(AGGREGATE, number, expr.ty());
                Ok(())
            }
            other => {
                let mut result = Ok(());
                other.each_child_mut(&mut |child| {
                    if result.is_ok() {
                        result = self.rewrite(child, determined, name);
                    }
                });
                result
            }
        }
    }

    /// Puts positions for the placeholders, when all expressions have been rewritten.
    pub(super) fn place(&self, expr: &mut Expr) {
        let groups = self.group.len() as u32;
        let implied = self.implied.len() as u32;
        walk::map(expr, &mut |node| {
            if let Expr::Outer(AGGREGATE, number, ty) = node {
                let column = match number.checked_sub(u32::MAX / 2) {
                    Some(index) => groups + index,
                    None => groups + implied + *number,
                };
                *node = Expr::Column(column, *ty);
            }
        });
    }

    /// The relation: group columns, implied columns, aggregates.
    pub(super) fn relation(self, input: Rel) -> Rel {
        let mut group = self.group;
        group.extend(self.implied);
        Rel::Aggregate {
            input: Box::new(input),
            group,
            aggregates: self.aggregates,
        }
    }

    /// Rewrites the expressions over the outer row that calls hold.
    pub(super) fn rewrite_calls(
        &mut self,
        calls: &mut [Call<Rel>],
        determined: &dyn Fn(u32, &[Expr]) -> bool,
        name: &dyn Fn(u32) -> String,
    ) -> Result<(), SqlError> {
        for call in calls {
            for expr in call.kind.outer_exprs_mut() {
                self.rewrite(expr, determined, name)?;
            }
        }
        Ok(())
    }
}

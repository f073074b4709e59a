//! Aggregates with WITHIN GROUP, made of others.
//!
//! `percentile_cont`, `percentile_disc` and `mode` are functions of the array of the sorted values.
//! What rank a row would have is told by the numbers of rows before it and beside it.

use super::aggregate::AggregateCall;
use super::{Binder, unsupported};
use base::types::ArrayKind;
use base::{SqlError, SqlState, Type};
use expr::resolve::{self, Context};
use expr::{ArrayFunc, Expr, Func};
use parse::ranked::Ranked;
use sqlparser::ast::{
    DuplicateTreatment, Expr as Ast, FunctionArg, FunctionArgExpr, FunctionArgumentClause,
    FunctionArgumentList, FunctionArguments, OrderByExpr,
};

/// Times in a continuous distribution are taken as intervals.
const SPANS: Type = Type::Array(ArrayKind::Interval(None));

/// An aggregate with WITHIN GROUP.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Within {
    Continuous,
    Discrete,
    Mode,
    /// The place of a row that is not there.
    Ranked(Ranked),
}

impl Within {
    /// The aggregate of this name.
    fn named(name: &str) -> Option<Within> {
        Some(match name {
            "percentile_cont" => Within::Continuous,
            "percentile_disc" => Within::Discrete,
            "mode" => Within::Mode,
            "rank" => Within::Ranked(Ranked::Rank),
            "dense_rank" => Within::Ranked(Ranked::Dense),
            "percent_rank" => Within::Ranked(Ranked::Percent),
            "cume_dist" => Within::Ranked(Ranked::Share),
            _ => return None,
        })
    }
}

impl Binder<'_> {
    /// A call with WITHIN GROUP.
    pub(super) fn within(&mut self, name: &str, call: AggregateCall<'_>) -> Result<Expr, SqlError> {
        let FunctionArguments::List(FunctionArgumentList {
            duplicate_treatment,
            args: given,
            clauses,
        }) = call.arguments
        else {
            return Err(unsupported("this form of an aggregate with WITHIN GROUP"));
        };
        let refused = match (duplicate_treatment, clauses.as_slice()) {
            (Some(DuplicateTreatment::Distinct), _) => "cannot use DISTINCT with WITHIN GROUP",
            (_, [_, ..]) => "cannot use multiple ORDER BY clauses with WITHIN GROUP",
            _ => "",
        };
        if !refused.is_empty() {
            return Err(SqlError::new(SqlState::SYNTAX, refused));
        }
        let mut args = Vec::new();
        for arg in given {
            match arg {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(arg)) => args.push(arg),
                _ => return Err(unsupported("this form of an aggregate with WITHIN GROUP")),
            }
        }
        match Within::named(name) {
            None => Err(self.no_such(name, &args, call.within_group)),
            Some(Within::Ranked(ranked)) => self.hypothetical(ranked, name, &args, call),
            Some(within) => self.of_sorted(within, name, &args, call),
        }
    }

    /// The error for arguments that no such aggregate has.
    fn no_such(&mut self, name: &str, args: &[&Ast], keys: &[OrderByExpr]) -> SqlError {
        let all = args.iter().copied().chain(keys.iter().map(|key| &key.expr));
        let mut types = Vec::new();
        for ast in all {
            match self.expr(ast) {
                Ok(bound) => types.push(bound.ty().base_name().into_owned()),
                Err(error) => return error,
            }
        }
        let message = format!("function {name}({}) does not exist", types.join(", "));
        SqlError::new(SqlState::UNDEFINED_FUNCTION, message).hint(
            "No function matches the given name and argument types. You might need to add \
             explicit type casts.",
        )
    }

    fn of_sorted(
        &mut self,
        within: Within,
        name: &str,
        args: &[&Ast],
        call: AggregateCall<'_>,
    ) -> Result<Expr, SqlError> {
        let wanted = usize::from(within != Within::Mode);
        let ([key], true) = (call.within_group, args.len() == wanted) else {
            return Err(self.no_such(name, args, call.within_group));
        };
        let there = Ast::IsNotNull(Box::new(Ast::Nested(Box::new(key.expr.clone()))));
        let filter = match call.filter {
            Some(filter) => parse::ranked::both(filter.clone(), there),
            None => there,
        };
        let list = FunctionArguments::List(FunctionArgumentList {
            duplicate_treatment: None,
            args: vec![FunctionArg::Unnamed(FunctionArgExpr::Expr(
                key.expr.clone(),
            ))],
            clauses: vec![FunctionArgumentClause::OrderBy(vec![key.clone()])],
        });
        let sorted = AggregateCall {
            arguments: &list,
            filter: Some(&filter),
            within_group: &[],
        };
        let mut array = self.aggregate("array_agg", sorted)?;
        if let (Within::Continuous, Some(Type::Time(_))) = (within, array.ty().element()) {
            array = resolve::coerce(array, SPANS, Context::Implicit)?;
        }
        let Some(element) = array.ty().element() else {
            return Err(unsupported(&format!("{name} of these values")));
        };
        if within == Within::Mode {
            let func = Func::Array(ArrayFunc::Mode);
            return Ok(Expr::Call(func, vec![array], element));
        }
        let share = self.expr(args[0])?;
        let many = share.ty().element().is_some();
        let listed = |ty: Type| {
            if many {
                ty.array_of().unwrap_or(ty)
            } else {
                ty
            }
        };
        let to = listed(Type::Float8);
        let numbers = element.is_numeric() || matches!(element, Type::Interval(_));
        if !resolve::can_coerce(share.ty(), to, Context::Implicit)
            || within == Within::Continuous && !numbers
        {
            return Err(self.no_such(name, args, call.within_group));
        }
        let share = resolve::coerce(share, to, Context::Implicit)?;
        self.note(&share);
        let (func, ty) = match within {
            Within::Continuous if matches!(element, Type::Interval(_)) => {
                (ArrayFunc::PercentileCont, Type::Interval(None))
            }
            Within::Continuous => (ArrayFunc::PercentileCont, Type::Float8),
            _ => (ArrayFunc::PercentileDisc, element),
        };
        Ok(Expr::Call(
            Func::Array(func),
            vec![array, share],
            listed(ty),
        ))
    }

    fn hypothetical(
        &mut self,
        ranked: Ranked,
        name: &str,
        args: &[&Ast],
        call: AggregateCall<'_>,
    ) -> Result<Expr, SqlError> {
        let keys = call.within_group;
        if keys.len() != args.len() || keys.is_empty() {
            let hint = format!(
                "To use the hypothetical-set aggregate {name}, the number of hypothetical direct \
                 arguments (here {}) must match the number of ordering columns (here {}).",
                args.len(),
                keys.len()
            );
            return Err(self.no_such(name, args, keys).hint(hint));
        }
        let ordered = keys
            .iter()
            .map(|key| Ok((&key.expr, self.sort_order(key)?)));
        let ordered = ordered.collect::<Result<Vec<_>, SqlError>>()?;
        let ranked = ranked.call(&ordered, args, call.filter);
        let ranked = self.expr(&ranked)?;
        // The arguments are never computed here: they are looked at, for columns that are not
        // grouped.
        let ty = ranked.ty();
        let mut all = vec![ranked];
        for arg in args {
            let bound = self.expr(arg)?;
            if bound.ty() != Type::Unknown {
                all.push(bound);
            }
        }
        Ok(Expr::Coalesce(all, ty))
    }
}

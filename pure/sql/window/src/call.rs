//! Calls of window functions.

use crate::frame::Frame;
use base::{SqlError, SqlState, Type};
use expr::Expr;
use expr::aggregate::AggFunc;
use expr::resolve::{self, Context};

/// A window function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WindowFunc {
    /// `row_number()`
    RowNumber,
    /// `rank()`
    Rank,
    /// `dense_rank()`
    DenseRank,
    /// `percent_rank()`
    PercentRank,
    /// `cume_dist()`
    CumeDist,
    /// `ntile(buckets)`
    Ntile,
    /// `lag(x, offset, default)`
    Lag,
    /// `lead(x, offset, default)`
    Lead,
    /// `first_value(x)`
    FirstValue,
    /// `last_value(x)`
    LastValue,
    /// `nth_value(x, n)`
    NthValue,
    /// An aggregate of the rows of the frame.
    Aggregate(AggFunc),
}

/// Window functions that are no aggregates, by their names.
const NAMED: [(&str, WindowFunc); 11] = [
    ("row_number", WindowFunc::RowNumber),
    ("rank", WindowFunc::Rank),
    ("dense_rank", WindowFunc::DenseRank),
    ("percent_rank", WindowFunc::PercentRank),
    ("cume_dist", WindowFunc::CumeDist),
    ("ntile", WindowFunc::Ntile),
    ("lag", WindowFunc::Lag),
    ("lead", WindowFunc::Lead),
    ("first_value", WindowFunc::FirstValue),
    ("last_value", WindowFunc::LastValue),
    ("nth_value", WindowFunc::NthValue),
];

/// Whether `name` is a window function and no aggregate.
pub fn is_window_function(name: &str) -> bool {
    NAMED.iter().any(|(known, _)| *known == name)
}

/// A call. Its expressions are over the rows of the partition.
#[derive(Clone, PartialEq, Debug)]
pub struct WindowCall {
    /// What is called.
    pub func: WindowFunc,
    /// Its arguments.
    pub args: Vec<Expr>,
    /// Which rows an aggregate takes in.
    pub filter: Option<Expr>,
    /// The rows that it is over.
    pub frame: Frame,
    /// The type of its value.
    pub ty: Type,
}

impl WindowCall {
    /// Its name in plans.
    pub fn name(&self) -> String {
        let text = match self.func {
            WindowFunc::Aggregate(func) => format!("{func:?}"),
            func => NAMED
                .iter()
                .find(|(_, known)| *known == func)
                .map_or_else(String::new, |(name, _)| (*name).into()),
        };
        let text = text.split(['(', ' ']).next().unwrap_or_default();
        text.to_lowercase()
    }

    /// Its expressions over rows.
    pub fn exprs(&self) -> impl Iterator<Item = &Expr> {
        self.args
            .iter()
            .chain(&self.filter)
            .chain(self.frame.exprs())
    }

    /// As [`WindowCall::exprs`], to change.
    pub fn exprs_mut(&mut self) -> impl Iterator<Item = &mut Expr> {
        let own = self.args.iter_mut().chain(&mut self.filter);
        own.chain(self.frame.exprs_mut())
    }
}

/// The window function `name` over these arguments, converted to what it takes, and the type of
/// its value.
///
/// # Errors
/// 42883 if there is no such function for these types.
pub fn resolve(
    name: &str,
    args: Vec<Expr>,
    star: bool,
) -> Result<(WindowFunc, Vec<Expr>, Type), SqlError> {
    let Some((_, func)) = NAMED.iter().find(|(known, _)| *known == name) else {
        let (func, args, ty) = AggFunc::resolve(name, args, star)?;
        return Ok((WindowFunc::Aggregate(func), args, ty));
    };
    let types: Vec<Type> = args.iter().map(Expr::ty).collect();
    let wanted = if star { None } else { signature(*func, &types) };
    let Some((wanted, ty)) = wanted else {
        let shown: Vec<_> = types.iter().map(|ty| ty.base_name()).collect();
        let message = format!("function {name}({}) does not exist", shown.join(", "));
        return Err(SqlError::new(SqlState::UNDEFINED_FUNCTION, message).hint(
            "No function matches the given name and argument types. You might need to add \
             explicit type casts.",
        ));
    };
    let pairs = args.into_iter().zip(wanted);
    let args = pairs.map(|(arg, to)| resolve::coerce(arg, to, Context::Implicit));
    Ok((*func, args.collect::<Result<_, _>>()?, ty))
}

/// The types that a function takes its arguments as, and the type of its value.
fn signature(func: WindowFunc, types: &[Type]) -> Option<(Vec<Type>, Type)> {
    let number = |ty: &Type| resolve::can_coerce(*ty, Type::Int4, Context::Implicit);
    let known = |ty: Type| match ty.without_modifiers() {
        Type::Unknown => Type::Text,
        other => other,
    };
    match (func, types) {
        (WindowFunc::RowNumber | WindowFunc::Rank | WindowFunc::DenseRank, []) => {
            Some((Vec::new(), Type::Int8))
        }
        (WindowFunc::PercentRank | WindowFunc::CumeDist, []) => Some((Vec::new(), Type::Float8)),
        (WindowFunc::Ntile, [buckets]) if number(buckets) => Some((vec![Type::Int4], Type::Int4)),
        (WindowFunc::FirstValue | WindowFunc::LastValue, [of])
        | (WindowFunc::Lag | WindowFunc::Lead, [of]) => Some((vec![known(*of)], known(*of))),
        (WindowFunc::NthValue | WindowFunc::Lag | WindowFunc::Lead, [of, place])
            if number(place) =>
        {
            Some((vec![known(*of), Type::Int4], known(*of)))
        }
        (WindowFunc::Lag | WindowFunc::Lead, [of, place, otherwise]) if number(place) => {
            let ty = known(resolve::common_type(&[*of, *otherwise]).ok()?);
            Some((vec![ty, Type::Int4, ty], ty))
        }
        _ => None,
    }
}

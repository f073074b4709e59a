//! Bound expressions: typed trees over the columns of one input row, ready to be evaluated here or
//! on the shard that holds the row.
//!
//! The binder makes them with [`resolve`] (PostgreSQL's rules for operators, functions and
//! conversions), the planner looks through them with [`walk`] and simplifies them with [`fold`],
//! [`eval()`] computes them, [`aggregate`] folds their values over rows.
//!
//! | module | what |
//! |---|---|
//! | [`mod@env`] | what evaluation may ask: columns, parameters, the session |
//! | `eval` | the evaluator; what functions compute is in [`functions`] |
//! | [`resolve`] | which function an operator or name means for given argument types |
//! | [`list`] | the right side of IN, and what a row costs |
//! | [`zoned`] | what depends on the session's time zone |
//! | [`aggregate`] | aggregate functions in partial and final steps |
//! | [`program`] | filters, projections, aggregates and changes that run where the rows are |
//! | [`hashed`] | rows in memory that are found by their values; groups |
//! | [`rows`] | rows in memory: order, size, and how errors show them |
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod aggregate;
pub mod env;
mod eval;
pub mod fold;
pub mod hashed;
pub mod list;
pub mod program;
pub mod resolve;
pub mod rows;
mod session;
pub mod styled;
pub mod walk;
pub mod zoned;

pub use env::{Columns, EncodedRow, Ends, Env, NoColumns, NoSession, SessionFacts};
pub use eval::{compare, eval, eval_bool, passes, value_of};
pub use functions::cast::cast_datum;
pub use functions::json::RowsCursor;
pub use functions::{
    ArrayFunc, Compare, DateFunc, FloatFunc, Func, JsonFunc, SessionFunc, TextFunc, Volatility,
};
pub use list::List;

use base::{Datum, Type};
use serde::{Deserialize, Serialize};

/// A bound, typed expression. Serialisable, because it travels to the rows.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Expr {
    /// A literal.
    Const(Datum, Type),
    /// Column `0..` of the input row.
    Column(u32, Type),
    /// Column `1` of the row of the enclosing query `0` levels out (0 is the next enclosing one).
    /// Replaced by constants before the subquery runs.
    Outer(u32, u32, Type),
    /// Parameter `$1` is 0. Replaced by constants before an expression travels.
    Param(u32, Type),
    /// Function or operator with arguments already coerced to what it wants.
    Call(Func, Vec<Expr>, Type),
    /// Conversion; `explicit` casts truncate where assignment casts raise 22001.
    Cast {
        /// What is converted.
        arg: Box<Expr>,
        /// Its new type, with modifier.
        to: Type,
        /// Written by the user as CAST or `::`.
        explicit: bool,
    },
    /// Three-valued conjunction.
    And(Vec<Expr>),
    /// Three-valued disjunction.
    Or(Vec<Expr>),
    /// Three-valued negation.
    Not(Box<Expr>),
    /// `IS [NOT] NULL`.
    IsNull(Box<Expr>, bool),
    /// `IS [NOT] TRUE/FALSE/UNKNOWN`: (argument, wanted value (`None`: unknown), negated).
    IsBool(Box<Expr>, Option<bool>, bool),
    /// `IS [NOT] DISTINCT FROM`: (left, right, negated).
    IsDistinct(Box<Expr>, Box<Expr>, bool),
    /// Searched CASE.
    Case {
        /// Condition and result.
        arms: Vec<(Expr, Expr)>,
        /// ELSE, NULL if absent.
        otherwise: Box<Expr>,
        /// Result type.
        ty: Type,
    },
    /// `arg [NOT] IN (list)`.
    InList(Box<Expr>, List, bool),
    /// First argument that is not NULL.
    Coalesce(Vec<Expr>, Type),
    /// `arg op ANY|ALL (array)`: (argument, comparison, array, all).
    AnyArray(Box<Expr>, Compare, Box<Expr>, bool),
    /// `ARRAY[...]`.
    MakeArray(Vec<Expr>, Type),
    /// Value of subquery number `0` of the plan, computed by the executor for the current row
    /// before evaluation (scalar value; boolean for EXISTS, IN and ANY/ALL).
    Subquery(u32, Type),
}

impl Expr {
    /// The type of the value, with modifier where it is known.
    pub fn ty(&self) -> Type {
        match self {
            Expr::Const(_, ty)
            | Expr::Column(_, ty)
            | Expr::Outer(_, _, ty)
            | Expr::Param(_, ty)
            | Expr::Call(_, _, ty)
            | Expr::Cast { to: ty, .. }
            | Expr::Case { ty, .. }
            | Expr::Coalesce(_, ty)
            | Expr::MakeArray(_, ty)
            | Expr::Subquery(_, ty) => *ty,
            Expr::And(_)
            | Expr::Or(_)
            | Expr::Not(_)
            | Expr::IsNull(..)
            | Expr::IsBool(..)
            | Expr::IsDistinct(..)
            | Expr::InList(..)
            | Expr::AnyArray(..) => Type::Bool,
        }
    }

    /// The boolean constant.
    pub fn bool(value: bool) -> Expr {
        Expr::Const(Datum::Bool(value), Type::Bool)
    }

    /// NULL of a type.
    pub fn null(ty: Type) -> Expr {
        Expr::Const(Datum::Null, ty)
    }

    /// A string literal of which the type is still open.
    pub fn literal(text: &str) -> Expr {
        Expr::Const(Datum::Text(text.into()), Type::Unknown)
    }
}

#[cfg(test)]
mod tests;

//! Bound expressions: typed trees over the columns of one input row, ready to be evaluated here or
//! on the shard that holds the row.

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
    InList(Box<Expr>, Vec<Expr>, bool),
    /// First argument that is not NULL.
    Coalesce(Vec<Expr>, Type),
    /// `arg op ANY|ALL (array)`: (argument, comparison, array, all).
    AnyArray(Box<Expr>, Compare, Box<Expr>, bool),
    /// `ARRAY[...]`.
    MakeArray(Vec<Expr>, Type),
    /// Value of subquery number `0` of the plan, computed by the executor for the current row before
    /// evaluation (scalar value; boolean for EXISTS, IN and ANY/ALL).
    Subquery(u32, Type),
}

/// Comparison operators.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum Compare {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    Like,
    NotLike,
    ILike,
    NotILike,
    Regex,
    NotRegex,
}

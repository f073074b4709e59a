//! Aggregate functions, in two steps: states on the shards where the rows are, whose partial
//! results are merged at the coordinator.
//!
//! Sums are exact: integers are summed in 128 bits, numerics as numerics; only floats depend on
//! the order of rows. `DISTINCT` keeps the set of values seen and computes at the end, because
//! shards may have seen the same values.

mod json;
mod pairs;
mod seen;
mod state;
mod statistics;

pub use pairs::PairFunc;
pub use state::AggState;

use super::Expr;
use super::resolve::{Context, absent_function, can_coerce, coerce};
use base::{SqlError, SqlState, Type};
use serde::{Deserialize, Serialize};

/// An aggregate function over arguments of known types.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum AggFunc {
    /// `count(*)`
    CountAll,
    /// `count(x)`
    Count,
    /// `sum(x)`
    Sum(SumKind),
    /// `avg(x)`
    Avg(SumKind),
    /// `min(x)`
    Min,
    /// `max(x)`
    Max,
    /// `bool_and(x)`, `every(x)`
    BoolAnd,
    /// `bool_or(x)`
    BoolOr,
    /// `bit_and(x)`
    BitAnd,
    /// `bit_or(x)`
    BitOr,
    /// `string_agg(x, separator)` of text or bytea
    StringAgg,
    /// `array_agg(x)`
    ArrayAgg,
    /// `variance`, `stddev` and their forms; `float`: of floats, otherwise exact.
    Spread {
        /// The square root of the variance.
        root: bool,
        /// Of a sample (divided by n - 1), otherwise of the population.
        sample: bool,
        /// Arguments and result are floats, otherwise numeric.
        float: bool,
    },
    /// `json_agg(x)`, `jsonb_agg(x)`
    JsonArray {
        /// The type of what is taken in.
        from: Type,
        /// The result is `jsonb`.
        binary: bool,
        /// Values stand on lines of their own.
        lines: bool,
    },
    /// `json_object_agg(key, x)`, `jsonb_object_agg(key, x)`
    JsonObject {
        /// The type of the values taken in.
        from: Type,
        /// The result is `jsonb`.
        binary: bool,
    },
    /// `array_agg(x)` of arrays: one with a dimension more.
    ArrayOfArrays,
    /// `bit_xor(x)`
    BitXor,
    /// `corr(y, x)`, `regr_count(y, x)` and so on
    Pair(PairFunc),
    /// `range_agg(x)` of ranges and multiranges
    RangeUnion,
    /// `range_intersect_agg(x)` of ranges and multiranges
    RangeIntersect,
}

/// What a sum is computed in.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum SumKind {
    /// `smallint` and `integer`: the sum is a `bigint`.
    Int,
    /// `bigint`: the sum is a `numeric`.
    BigInt,
    /// `numeric`
    Decimal,
    /// `real`: the sum is rounded to one.
    Real,
    /// `double precision`
    Float,
    /// `interval`
    Interval,
}

/// The names of all aggregate functions.
pub const AGGREGATES: &[&str] = &[
    "count",
    "sum",
    "avg",
    "min",
    "max",
    "bool_and",
    "bool_or",
    "every",
    "bit_and",
    "bit_or",
    "bit_xor",
    "string_agg",
    "array_agg",
    "stddev",
    "stddev_samp",
    "stddev_pop",
    "variance",
    "var_samp",
    "var_pop",
    json::NAMES[0],
    json::NAMES[1],
    json::NAMES[2],
    json::NAMES[3],
    pairs::NAMES[0],
    pairs::NAMES[1],
    pairs::NAMES[2],
    pairs::NAMES[3],
    pairs::NAMES[4],
    pairs::NAMES[5],
    pairs::NAMES[6],
    pairs::NAMES[7],
    pairs::NAMES[8],
    pairs::NAMES[9],
    pairs::NAMES[10],
    pairs::NAMES[11],
    "range_agg",
    "range_intersect_agg",
];

/// Whether `name` (lower case, without schema) is an aggregate function.
pub fn is_aggregate(name: &str) -> bool {
    AGGREGATES.contains(&name)
}

/// Whether `name` is an aggregate function that makes JSON of its arguments.
pub fn makes_json(name: &str) -> bool {
    json::NAMES.contains(&name)
}

/// The kind of a sum over `ty`, the type of the sum and of the average.
fn sum_kind(ty: Type) -> Option<(SumKind, Type, Type)> {
    let numeric = Type::Numeric(None);
    Some(match ty {
        Type::Int2 | Type::Int4 => (SumKind::Int, Type::Int8, numeric),
        Type::Int8 => (SumKind::BigInt, numeric, numeric),
        Type::Numeric(_) => (SumKind::Decimal, numeric, numeric),
        Type::Float4 => (SumKind::Real, Type::Float4, Type::Float8),
        // Unknown arguments become the preferred type of numbers.
        Type::Float8 | Type::Unknown => (SumKind::Float, Type::Float8, Type::Float8),
        Type::Interval(_) | Type::Time(_) => (
            SumKind::Interval,
            Type::Interval(None),
            Type::Interval(None),
        ),
        _ => return None,
    })
}

/// The type as which `min` and `max` take a value, if they do. There is no minimum of varchar or
/// name: they are taken as text.
fn extreme_type(ty: Type) -> Option<Type> {
    match ty {
        Type::Varchar(_) | Type::Name => Some(Type::Text),
        Type::Cidr => Some(Type::Inet),
        Type::Bool | Type::Uuid | Type::Bytea | Type::InternalChar | Type::Xid => None,
        Type::Json
        | Type::Jsonb
        | Type::JsonPath
        | Type::Macaddr
        | Type::Bit(_)
        | Type::Varbit(_)
        | Type::Range(_)
        | Type::Multirange(_) => None,
        other => Some(other),
    }
}

impl AggFunc {
    /// The aggregate `name` over these arguments (`star`: `count(*)`), the arguments converted to
    /// what it takes, and the type of its result.
    ///
    /// # Errors
    /// 42883 if there is no such aggregate for these types.
    pub fn resolve(
        name: &str,
        mut args: Vec<Expr>,
        star: bool,
    ) -> Result<(AggFunc, Vec<Expr>, Type), SqlError> {
        if makes_json(name)
            && !star
            && let Some(found) = json::resolve(name, &args)?
        {
            return Ok(found);
        }
        let types: Vec<Type> = args.iter().map(Expr::ty).collect();
        let Some((func, wanted, ty)) = AggFunc::find(name, &types, star) else {
            if let Some(error) = absent_function(name) {
                return Err(error);
            }
            let types: Vec<_> = types.iter().map(|ty| ty.base_name()).collect();
            let list = if star {
                "*".to_string()
            } else {
                types.join(", ")
            };
            let message = format!("function {name}({list}) does not exist");
            return Err(SqlError::new(SqlState::UNDEFINED_FUNCTION, message).hint(
                "No function matches the given name and argument types. You might need to add \
                 explicit type casts.",
            ));
        };
        for (arg, wanted) in args.iter_mut().zip(wanted) {
            if arg.ty().without_modifiers() != wanted {
                *arg = coerce(arg.clone(), wanted, Context::Implicit)?;
            }
        }
        Ok((func, args, ty))
    }

    /// The function, the types its arguments must have, its result type.
    fn find(name: &str, types: &[Type], star: bool) -> Option<(AggFunc, Vec<Type>, Type)> {
        if star {
            return (name == "count").then_some((AggFunc::CountAll, Vec::new(), Type::Int8));
        }
        let first = types.first()?.without_modifiers();
        let known = if first == Type::Unknown {
            Type::Text
        } else {
            first
        };
        if name == "string_agg" {
            return AggFunc::find_string_agg(types);
        }
        if types.len() != 1 {
            return pairs::find(name, types);
        }
        let one = |func, wanted: Type, ty: Type| Some((func, vec![wanted], ty));
        match name {
            "count" => one(AggFunc::Count, known, Type::Int8),
            "sum" | "avg" => {
                let (kind, sum, average) = sum_kind(first)?;
                let wanted = match first {
                    Type::Unknown => Type::Float8,
                    Type::Time(_) => Type::Interval(None),
                    _ => first,
                };
                if name == "sum" {
                    one(AggFunc::Sum(kind), wanted, sum)
                } else {
                    one(AggFunc::Avg(kind), wanted, average)
                }
            }
            "min" | "max" => {
                let ty = extreme_type(known)?;
                one(
                    if name == "min" {
                        AggFunc::Min
                    } else {
                        AggFunc::Max
                    },
                    ty,
                    ty,
                )
            }
            "bool_and" | "every" | "bool_or"
                if can_coerce(first, Type::Bool, Context::Implicit) =>
            {
                let func = if name == "bool_or" {
                    AggFunc::BoolOr
                } else {
                    AggFunc::BoolAnd
                };
                one(func, Type::Bool, Type::Bool)
            }
            "bit_and" => AggFunc::find_bits(AggFunc::BitAnd, first),
            "bit_or" => AggFunc::find_bits(AggFunc::BitOr, first),
            "bit_xor" => AggFunc::find_bits(AggFunc::BitXor, first),
            "array_agg" if known.element().is_some() => one(AggFunc::ArrayOfArrays, known, known),
            "array_agg" => one(AggFunc::ArrayAgg, known, known.array_of()?),
            "range_agg" => {
                let kind = first.range_kind()?;
                one(AggFunc::RangeUnion, first, Type::Multirange(kind))
            }
            "range_intersect_agg" if first.range_kind().is_some() => {
                one(AggFunc::RangeIntersect, first, first)
            }
            _ => AggFunc::find_spread(name, first),
        }
    }

    /// Bitwise aggregates of integers and bit strings.
    fn find_bits(func: AggFunc, of: Type) -> Option<(AggFunc, Vec<Type>, Type)> {
        let ty = match of {
            Type::Bit(_) | Type::Varbit(_) | Type::Unknown => Type::Bit(None),
            integer if integer.is_integer() => integer,
            _ => return None,
        };
        Some((func, vec![ty], ty))
    }

    /// `string_agg(text, text)` and `string_agg(bytea, bytea)`.
    fn find_string_agg(types: &[Type]) -> Option<(AggFunc, Vec<Type>, Type)> {
        let [value, separator] = types else {
            return None;
        };
        let ty = match value.without_modifiers() {
            Type::Bytea => Type::Bytea,
            _ => Type::Text,
        };
        let fits = |from: &Type| can_coerce(*from, ty, Context::Implicit);
        (fits(value) && fits(separator)).then(|| (AggFunc::StringAgg, vec![ty, ty], ty))
    }

    /// Standard deviations and variances of numbers.
    fn find_spread(name: &str, of: Type) -> Option<(AggFunc, Vec<Type>, Type)> {
        let root = name.starts_with("stddev");
        let spread = root || name.starts_with("var");
        if !spread || !is_aggregate(name) || !(of.is_numeric() || of == Type::Unknown) {
            return None;
        }
        let float = of.is_float() || of == Type::Unknown;
        let ty = if float {
            Type::Float8
        } else {
            Type::Numeric(None)
        };
        let func = AggFunc::Spread {
            root,
            sample: !name.ends_with("_pop"),
            float,
        };
        Some((func, vec![ty], ty))
    }

    /// Number of values in the partial result of a state.
    pub fn partial_width(self, distinct: bool) -> usize {
        if distinct {
            return 1;
        }
        match self {
            AggFunc::CountAll
            | AggFunc::Count
            | AggFunc::Sum(_)
            | AggFunc::Min
            | AggFunc::Max
            | AggFunc::BoolAnd
            | AggFunc::BoolOr
            | AggFunc::BitAnd
            | AggFunc::BitOr
            | AggFunc::BitXor
            | AggFunc::RangeUnion
            | AggFunc::RangeIntersect
            | AggFunc::ArrayAgg
            | AggFunc::ArrayOfArrays
            | AggFunc::JsonArray { .. }
            | AggFunc::JsonObject { .. } => 1,
            AggFunc::Avg(_) | AggFunc::StringAgg => 2,
            AggFunc::Spread { .. } => 3,
            AggFunc::Pair(_) => 6,
        }
    }

    /// Whether repeated values change nothing, so that DISTINCT can be ignored.
    pub fn ignores_repetition(self) -> bool {
        matches!(
            self,
            AggFunc::Min
                | AggFunc::Max
                | AggFunc::BoolAnd
                | AggFunc::BoolOr
                | AggFunc::BitAnd
                | AggFunc::BitOr
                | AggFunc::RangeUnion
                | AggFunc::RangeIntersect
        )
    }

    /// Whether the result is the same whatever the order of the values. Such functions have one
    /// argument at most.
    pub fn ignores_order(self) -> bool {
        let exact = |kind| matches!(kind, SumKind::Int | SumKind::BigInt | SumKind::Decimal);
        match self {
            AggFunc::CountAll | AggFunc::Count => true,
            AggFunc::Sum(kind) | AggFunc::Avg(kind) => exact(kind),
            _ => false,
        }
    }

    /// Whether a value that was taken in can be taken out again, as if it had never been there.
    pub fn takes_out(self) -> bool {
        matches!(
            self,
            AggFunc::CountAll
                | AggFunc::Count
                | AggFunc::Sum(SumKind::Int | SumKind::BigInt)
                | AggFunc::Avg(SumKind::Int | SumKind::BigInt)
        )
    }

    /// Whether the result has all values that were taken in, so that it takes as much memory.
    pub fn keeps_values(self) -> bool {
        matches!(
            self,
            AggFunc::StringAgg
                | AggFunc::ArrayAgg
                | AggFunc::ArrayOfArrays
                | AggFunc::RangeUnion
                | AggFunc::JsonArray { .. }
                | AggFunc::JsonObject { .. }
        )
    }

    /// Whether rows with a NULL argument are passed over.
    fn skips_nulls(self) -> bool {
        !matches!(
            self,
            AggFunc::CountAll
                | AggFunc::ArrayAgg
                | AggFunc::ArrayOfArrays
                | AggFunc::JsonArray { .. }
                | AggFunc::JsonObject { .. }
        )
    }
}

#[cfg(test)]
mod tests;

//! The rank that a row would have, as an expression of the numbers of rows before it and beside it.

use sqlparser::ast::{
    self, BinaryOperator as Op, DuplicateTreatment, Expr as Ast, FunctionArg, FunctionArgExpr,
    FunctionArgumentList, FunctionArguments, Ident, ObjectName,
};

/// A key of ORDER BY, whether it descends, and whether NULLs come first.
pub type Key<'a> = (&'a Ast, (bool, bool));

/// What is told of a row that is not there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ranked {
    /// `rank`
    Rank,
    /// `dense_rank`
    Dense,
    /// `percent_rank`
    Percent,
    /// `cume_dist`
    Share,
}

/// Both conditions.
pub fn both(left: Ast, right: Ast) -> Ast {
    two(left, Op::And, right)
}

fn called(name: &str, args: Vec<Ast>, distinct: bool, filter: Option<Ast>) -> Ast {
    let star = args.is_empty();
    let args = args.into_iter().map(FunctionArgExpr::Expr);
    let args = args.chain(star.then_some(FunctionArgExpr::Wildcard));
    Ast::Function(ast::Function {
        name: ObjectName::from(vec![Ident::new(name)]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList {
            duplicate_treatment: distinct.then_some(DuplicateTreatment::Distinct),
            args: args.map(FunctionArg::Unnamed).collect(),
            clauses: Vec::new(),
        }),
        filter: filter.map(Box::new),
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    })
}

fn two(left: Ast, op: Op, right: Ast) -> Ast {
    Ast::Nested(Box::new(Ast::BinaryOp {
        left: Box::new(left),
        op,
        right: Box::new(right),
    }))
}

fn any(mut all: impl Iterator<Item = Ast>, op: &Op) -> Option<Ast> {
    let first = all.next()?;
    Some(all.fold(first, |left, right| two(left, op.clone(), right)))
}

/// Whether a row with the value `key` comes before one with `value`.
fn is_before(key: &Ast, value: &Ast, (descending, nulls_first): (bool, bool)) -> Ast {
    let boxed = |ast: &Ast| Box::new(ast.clone());
    let op = if descending { Op::Gt } else { Op::Lt };
    let less = Ast::IsTrue(Box::new(two(key.clone(), op, value.clone())));
    let nulls = match nulls_first {
        true => [Ast::IsNull(boxed(key)), Ast::IsNotNull(boxed(value))],
        false => [Ast::IsNotNull(boxed(key)), Ast::IsNull(boxed(value))],
    };
    let [left, right] = nulls;
    two(less, Op::Or, two(left, Op::And, right))
}

fn count(filter: Option<Ast>) -> Ast {
    called("count", Vec::new(), false, filter)
}

fn one() -> Ast {
    Ast::Value(ast::Value::Number("1".into(), false).with_empty_span())
}

fn float(value: Ast) -> Ast {
    Ast::Cast {
        kind: ast::CastKind::Cast,
        expr: Box::new(value),
        data_type: ast::DataType::DoublePrecision,
        format: None,
    }
}

/// Whether a row comes before the one with the values `args`, and whether it is equal to it.
fn places(keys: &[Key<'_>], args: &[&Ast]) -> [Option<Ast>; 2] {
    let (mut before, mut equal) = (Vec::new(), Vec::new());
    for ((key, order), value) in keys.iter().zip(args) {
        let own = is_before(key, value, *order);
        let ahead = equal.iter().cloned().chain([own]);
        before.extend(any(ahead, &Op::And));
        equal.push(Ast::Nested(Box::new(Ast::IsNotDistinctFrom(
            Box::new((*key).clone()),
            Box::new((*value).clone()),
        ))));
    }
    [
        any(before.into_iter(), &Op::Or),
        any(equal.into_iter(), &Op::And),
    ]
}

impl Ranked {
    /// The expression, of aggregates over rows for which `filter` is true.
    pub fn call(self, keys: &[Key<'_>], args: &[&Ast], filter: Option<&Ast>) -> Ast {
        let [before, equal] = places(keys, args);
        let filtered = |condition: Option<Ast>| match (filter, condition) {
            (Some(filter), Some(condition)) => Some(both(filter.clone(), condition)),
            (filter, condition) => condition.or(filter.cloned()),
        };
        match self {
            Ranked::Rank => two(count(filtered(before)), Op::Plus, one()),
            Ranked::Dense => {
                let values = keys.iter().map(|(key, _)| (*key).clone()).collect();
                let row = called("jsonb_build_array", values, false, None);
                let groups = called("count", vec![row], true, filtered(before));
                two(groups, Op::Plus, one())
            }
            Ranked::Percent => {
                let all = count(filter.cloned());
                let divisor = called("greatest", vec![all, one()], false, None);
                let before = count(filtered(before));
                two(float(before), Op::Divide, float(divisor))
            }
            Ranked::Share => {
                let upto = any(before.into_iter().chain(equal), &Op::Or);
                let upto = two(count(filtered(upto)), Op::Plus, one());
                let all = two(count(filter.cloned()), Op::Plus, one());
                two(float(upto), Op::Divide, float(all))
            }
        }
    }
}

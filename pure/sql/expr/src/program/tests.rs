//! Programs on their way to other nodes.

use super::*;
use crate::{Compare, Func, TextFunc};
use base::{Decimal, Prng};

fn column() -> Expr {
    Expr::Column(0, Type::Int4)
}

/// `v = $7 OR v = 0 OR v = 1 ...`: rows of a table with one column.
fn long_condition(terms: i64) -> ProgramPlan {
    let equal = |value: Expr| {
        Expr::Call(
            Func::Compare(Compare::Eq),
            vec![column(), value],
            Type::Bool,
        )
    };
    let constants = (0..terms).map(|i| equal(Expr::Const(Datum::Int(i), Type::Int4)));
    let parameter = equal(Expr::Param(6, Type::Int4));
    ProgramPlan::new(Body::Rows {
        filter: Some(Expr::Or([parameter].into_iter().chain(constants).collect())),
        projection: vec![column()],
    })
}

#[test]
fn a_long_body_is_encoded_once_and_travels_as_any_other() {
    for (terms, is_long) in [(10, false), (20_000, true)] {
        let plan = long_condition(terms);
        assert_eq!(plan.facts.encoded.is_some(), is_long);
        let mut params = vec![Datum::Null; 7];
        params[6] = Datum::Int(-5);
        let bound = Bound::new(
            plan.body.clone(),
            [Datum::Int(-5)].into(),
            plan.facts.clone(),
        );
        let mut sent = Vec::new();
        let Program::Live(program) = plan.bind(&params) else {
            panic!("a bound program is live")
        };
        program.encode(&mut sent);
        assert_eq!(sent, codec::to_vec(&bound), "as its fields are encoded");
        let arrived = decode_program(&sent).expect("it can be decoded");
        for (value, found) in [(-5, true), (terms - 1, true), (terms, false)] {
            let mut row = Vec::new();
            base::row::encode(&[Datum::Int(value)], &mut row);
            let mut out = RowBatch::new(1);
            assert_eq!(arrived.point(&row, &mut out), Ok(found), "{value}");
        }
    }
}

/// The formulas of a program travel beside its parameters: a frame must hold them, too.
#[test]
fn formulas_count_in_the_bytes_of_a_program() {
    let change = |kind| FormulaChange {
        column: 0,
        ty: Type::Text,
        kind,
        operand: Expr::Param(0, Type::Text),
    };
    let case = vec![change(ChangeKind::Set), change(ChangeKind::Append)];
    let plan = ProgramPlan::new(Body::Modify(Box::new(ModifyBody {
        filter: None,
        assignments: Some(Vec::new()),
        checks: Vec::new(),
        shape: TableShape {
            shown: Vec::new(),
            table: "t".into(),
            columns: Vec::new(),
            not_null: Vec::new(),
        },
        returning: Vec::new(),
        cases: vec![case; 8],
    })));
    let Program::Live(program) = plan.bind(&[Datum::Text("x".repeat(10_000).into())]) else {
        panic!("a program that was bound is live");
    };
    let mut sent = Vec::new();
    program.encode(&mut sent);
    assert!(sent.len() > 160_000 && sent.len() <= program.bytes_at_most());
}

/// Types of the columns that values are computed from.
const TYPES: [Type; 5] = [
    Type::Int4,
    Type::Int8,
    Type::Numeric(Some((9, 2))),
    Type::Text,
    Type::Bool,
];

fn drawn_datum(prng: &mut Prng, ty: Type) -> Datum {
    let decimal = |prng: &mut Prng| {
        Decimal::from_parts(prng.between(-99_999, 99_999).into(), 2).expect("it is small")
    };
    match ty {
        Type::Int4 => Datum::Int(prng.between(-9, 9)),
        Type::Int8 => Datum::Int(prng.between(-5_000_000_000, 5_000_000_000)),
        Type::Numeric(_) => Datum::Decimal(decimal(prng)),
        Type::Bool => Datum::Bool(prng.below(2) == 0),
        _ => Datum::Text("äbc äöü".chars().take(prng.below(8) as usize).collect()),
    }
}

fn drawn_expr(prng: &mut Prng, ty: Type, depth: u32) -> Expr {
    let number = !matches!(ty, Type::Text | Type::Bool);
    let inner = |prng: &mut Prng, ty: Type| drawn_expr(prng, ty, depth.saturating_sub(1));
    if depth == 0 {
        let column = TYPES.iter().position(|it| *it == ty).expect("it is there");
        return match prng.below(4) {
            0 => Expr::Const(drawn_datum(prng, ty), ty),
            1 => Expr::Param(column as u32, ty),
            _ => Expr::Column(column as u32, ty),
        };
    }
    let two = vec![inner(prng, ty), inner(prng, ty)];
    match prng.below(12) {
        _ if ty == Type::Bool => match prng.below(6) {
            5 => {
                let texts = vec![inner(prng, Type::Text), inner(prng, Type::Text)];
                Expr::Call(Func::Text(TextFunc::StartsWith), texts, ty)
            }
            0 => Expr::And(two),
            1 => Expr::Or(two),
            2 => Expr::Not(Box::new(inner(prng, ty))),
            3 => Expr::IsNull(Box::new(inner(prng, Type::Text)), prng.below(2) == 0),
            _ => {
                let of = TYPES[prng.below(5) as usize];
                let compare = [
                    Compare::Eq,
                    Compare::Ne,
                    Compare::Lt,
                    Compare::Le,
                    Compare::Gt,
                    Compare::Ge,
                ][prng.below(6) as usize];
                let sides = vec![inner(prng, of), inner(prng, of)];
                Expr::Call(Func::Compare(compare), sides, ty)
            }
        },
        0..=4 if number => {
            let func = [Func::Add, Func::Sub, Func::Mul, Func::Div, Func::Rem];
            Expr::Call(func[prng.below(5) as usize].clone(), two, ty)
        }
        0..=4 if ty == Type::Text => drawn_text(prng, two, depth - 1),
        5 if ty == Type::Int4 => {
            let func = [
                TextFunc::Length,
                TextFunc::OctetLength,
                TextFunc::BitLength,
                TextFunc::Ascii,
                TextFunc::Position,
            ][prng.below(5) as usize];
            let count = if func == TextFunc::Position { 2 } else { 1 };
            let texts = (0..count).map(|_| inner(prng, Type::Text)).collect();
            Expr::Call(Func::Text(func), texts, ty)
        }
        5 if matches!(ty, Type::Numeric(_)) => {
            let func = [Func::Round, Func::Trunc, Func::Ceil, Func::Floor];
            let func = func[prng.below(4) as usize].clone();
            let mut args = vec![inner(prng, ty)];
            if matches!(func, Func::Round | Func::Trunc) && prng.below(2) == 0 {
                let digits = Datum::Int(match prng.below(8) {
                    0 => prng.between(-45, 45),
                    1 => [i64::from(i32::MIN), i32::MAX.into()][prng.below(2) as usize],
                    _ => prng.between(-2, 3),
                });
                args.push(Expr::Const(digits, Type::Int4));
            }
            Expr::Call(func, args, ty)
        }
        6 if number => {
            let func = [Func::Neg, Func::Abs];
            let func = func[prng.below(2) as usize].clone();
            Expr::Call(func, vec![inner(prng, ty)], ty)
        }
        7 if number => {
            let from = TYPES[prng.below(3) as usize];
            Expr::Cast {
                arg: Box::new(inner(prng, from)),
                to: ty,
                explicit: prng.below(2) == 0,
            }
        }
        8 => Expr::Call(Func::Least, two, ty),
        9 => Expr::Call(Func::Greatest, two, ty),
        10 => Expr::Coalesce(two, ty),
        _ if ty == Type::Text && prng.below(2) == 0 => {
            Expr::Call(Func::Text(TextFunc::Concat), two, ty)
        }
        _ => Expr::Case {
            arms: vec![(inner(prng, Type::Bool), inner(prng, ty))],
            otherwise: Box::new(inner(prng, ty)),
            ty,
        },
    }
}

/// A function of texts, or the text form of something else.
fn drawn_text(prng: &mut Prng, mut texts: Vec<Expr>, depth: u32) -> Expr {
    let text = Type::Text;
    if prng.below(4) == 0 {
        let from = TYPES[prng.below(5) as usize];
        let arg = drawn_expr(prng, from, depth);
        let to = [text, Type::Varchar(None), Type::Varchar(Some(5))][prng.below(3) as usize];
        return match from {
            Type::Bool => Expr::Call(Func::Output(from), vec![arg], text),
            from if from != text && prng.below(2) == 0 => {
                Expr::Call(Func::Output(from), vec![arg], text)
            }
            _ => Expr::Cast {
                arg: Box::new(arg),
                to,
                explicit: from == text && prng.below(2) == 0,
            },
        };
    }
    let (func, wants) = [
        (TextFunc::ConcatAll, "ttt"),
        (TextFunc::ConcatWs, "ttt"),
        (TextFunc::Lower, "t"),
        (TextFunc::Upper, "t"),
        (TextFunc::InitCap, "t"),
        (TextFunc::TrimLeft, "tt"),
        (TextFunc::TrimRight, "t"),
        (TextFunc::TrimBoth, "tt"),
        (TextFunc::Substring, "tn"),
        (TextFunc::Substring, "tnn"),
        (TextFunc::Left, "tn"),
        (TextFunc::Right, "tn"),
        (TextFunc::PadLeft, "tn"),
        (TextFunc::PadRight, "tnt"),
        (TextFunc::Repeat, "tn"),
        (TextFunc::Replace, "ttt"),
        (TextFunc::Reverse, "t"),
    ][prng.below(17) as usize];
    let args = wants.chars().map(|want| match want {
        't' => texts.pop().unwrap_or_else(|| drawn_expr(prng, text, depth)),
        _ => drawn_expr(prng, Type::Int4, 0),
    });
    Expr::Call(Func::Text(func), args.collect(), text)
}

/// What a formula computes is what the evaluator of SQL computes, errors included.
#[test]
fn computed_values_are_those_of_the_evaluator() {
    let mut prng = Prng::new(41);
    let (mut same, mut failed, mut null, mut refused) = (0, 0, 0, 0);
    for _ in 0..20_000 {
        let ty = TYPES[prng.below(5) as usize];
        let depth = prng.below(4) as u32;
        let expr = drawn_expr(&mut prng, ty, depth);
        let params: Vec<Datum> = TYPES.map(|ty| drawn_datum(&mut prng, ty)).into();
        let values = TYPES.map(|ty| match prng.below(8) {
            0 => Datum::Null,
            _ => drawn_datum(&mut prng, ty),
        });
        let row = base::row::to_vec(&values);
        let env = Env::of_program(&params);
        let expected = eval(&expr, &EncodedRow(RowRef::new(&row)), &env);
        let Some(value) = computed::computed(&expr, Some(&env)) else {
            // A part over no columns fails, or the digits are too many.
            refused += 1;
            continue;
        };
        assert!(is_computable(&expr), "{expr:?}");
        let found = value.value(&|column, _| Ok(values[usize::from(column)].clone()));
        match (&found, &expected) {
            (Ok(found), Ok(expected)) => {
                // Zeros behind the point count.
                assert_eq!(
                    format!("{found:?}"),
                    format!("{expected:?}"),
                    "{expr:?} {values:?}"
                );
                same += 1;
                null += u32::from(found.is_null());
            }
            (Err(found), Err(expected)) => {
                assert_eq!(found.state(), expected.state(), "{expr:?} {values:?}");
                failed += 1;
            }
            _ => panic!("{found:?} for {expected:?}: {expr:?} {values:?}"),
        }
    }
    assert!(
        same > 10_000 && failed > 500 && null > 500,
        "{same} {failed} {null}"
    );
    assert!(refused < 2_000, "{refused}");
}

/// `abs(x)` has its operand twice, so many inside one another must end before they are made.
#[test]
fn what_would_be_too_long_is_not_computed() {
    let mut value = Expr::Column(0, Type::Int4);
    for depth in 1..=1_000 {
        value = Expr::Call(Func::Abs, vec![value], Type::Int4);
        if depth == 2 {
            assert!(is_computable(&value));
        }
    }
    assert!(!is_computable(&value));
    let sum = |terms: i64| {
        (0..terms).fold(Expr::Column(0, Type::Int4), |sum, term| {
            let term = Expr::Const(Datum::Int(term), Type::Int4);
            Expr::Call(Func::Mul, vec![sum, term], Type::Int4)
        })
    };
    assert!(is_computable(&sum(31)) && !is_computable(&sum(40)));
}

/// What `repeat` and the like make may be in memory at once, so they are few.
#[test]
fn functions_that_make_long_texts_are_few() {
    let repeated = |count: usize| {
        (0..count).fold(Expr::Column(0, Type::Text), |text, _| {
            let count = Expr::Const(Datum::Int(2), Type::Int4);
            Expr::Call(Func::Text(TextFunc::Repeat), vec![text, count], Type::Text)
        })
    };
    assert!(is_computable(&repeated(4)) && !is_computable(&repeated(5)));
    // Looking for bytes in bytes takes the time of the product of both.
    let found = |ty: Type| {
        let args = vec![Expr::Column(0, ty), Expr::Column(1, ty)];
        Expr::Call(Func::Text(TextFunc::Position), args, Type::Int4)
    };
    assert!(is_computable(&found(Type::Text)) && !is_computable(&found(Type::Bytea)));
}

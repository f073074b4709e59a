//! Evaluation by every route gives the same: over values, over an encoded row, folded, frozen,
//! and after travelling.

use super::resolve::{binary, case, coalesce, function, in_list};
use super::{Columns, Compare, EncodedRow, Env, Expr, Func, NoColumns, SessionFacts};
use super::{eval, eval_bool, fold, walk};
use base::row::{self, RowRef};
use base::{Datum, Prng, SqlError, Time, Type, codec};

/// Columns of the test row.
const TYPES: [Type; 5] = [
    Type::Int4,
    Type::Int8,
    Type::Text,
    Type::Numeric(Some((8, 2))),
    Type::Bool,
];

pub(super) struct Session;

impl SessionFacts for Session {
    fn txn_time(&self) -> Time {
        Time(1_000_000)
    }
    fn now(&self) -> Time {
        Time(2_000_000)
    }
    fn user(&self) -> String {
        "ann".to_string()
    }
    fn database(&self) -> String {
        "db".to_string()
    }
    fn pid(&self) -> i32 {
        1
    }
    fn set_config(&self, _: &str, value: Option<&str>, _: bool) -> Result<String, SqlError> {
        Ok(value.unwrap_or_default().to_string())
    }
    fn setting(&self, _: &str) -> Option<String> {
        None
    }
    fn random(&self) -> u64 {
        5
    }
    fn unique(&self) -> u64 {
        6
    }
    fn catalog_function(&self, name: &str, args: &[Datum]) -> Result<Datum, SqlError> {
        let text: Datum = format!("{name}/{}", args.len()).into();
        Ok(match name {
            "current_schemas" => Datum::Array([text].into()),
            _ => text,
        })
    }
    fn room(&self, bytes: usize) -> Result<(), SqlError> {
        match bytes > 1 << 20 {
            true => Err(SqlError::new(
                base::SqlState::OUT_OF_MEMORY,
                "too much for a test",
            )),
            false => Ok(()),
        }
    }
}

fn random_row(prng: &mut Prng) -> Vec<Datum> {
    let texts = ["", "a", "abc", "äöü", "100%"];
    let values = [
        Datum::Int(prng.between(-3, 3)),
        Datum::Int(prng.between(-1 << 40, 1 << 40)),
        texts[prng.below(5) as usize].into(),
        base::Decimal::from_parts(i128::from(prng.between(-999, 999)), 2)
            .expect("small")
            .into(),
        Datum::Bool(prng.below(2) == 0),
    ];
    let keep = |value| {
        if prng.below(5) == 0 {
            Datum::Null
        } else {
            value
        }
    };
    values.map(keep).to_vec()
}

fn column(index: u32) -> Expr {
    Expr::Column(index, TYPES[index as usize])
}

/// A random number: columns, constants, parameters, arithmetic.
fn number(prng: &mut Prng, depth: u32) -> Expr {
    match prng.below(if depth == 0 { 4 } else { 8 }) {
        0 => column(0),
        1 => column(1),
        2 => Expr::Const(Datum::Int(prng.between(-5, 5)), Type::Int4),
        3 => Expr::Param(0, Type::Int4),
        4 => column(3),
        5 => {
            let arms = vec![(condition(prng, depth - 1), number(prng, depth - 1))];
            case(arms, Some(number(prng, depth - 1))).expect("numbers have a common type")
        }
        6 => coalesce(vec![number(prng, depth - 1), number(prng, depth - 1)])
            .expect("numbers have a common type"),
        _ => {
            let op = ["+", "-", "*", "/", "%"][prng.below(5) as usize];
            binary(op, number(prng, depth - 1), number(prng, depth - 1)).expect("numbers")
        }
    }
}

fn condition(prng: &mut Prng, depth: u32) -> Expr {
    match prng.below(if depth == 0 { 3 } else { 7 }) {
        0 => column(4),
        1 => binary("=", column(2), Expr::literal("abc")).expect("texts"),
        2 => binary("~~", column(2), Expr::literal("%b_")).expect("texts"),
        3 => {
            let op = ["=", "<>", "<", "<=", ">", ">="][prng.below(6) as usize];
            binary(op, number(prng, depth - 1), number(prng, depth - 1)).expect("numbers")
        }
        4 => Expr::And(vec![condition(prng, depth - 1), condition(prng, depth - 1)]),
        5 => Expr::Or(vec![
            condition(prng, depth - 1),
            Expr::Not(Box::new(column(4))),
        ]),
        _ => {
            let list = vec![number(prng, depth - 1), Expr::null(Type::Unknown)];
            in_list(number(prng, depth - 1), list, prng.below(2) == 0).expect("numbers")
        }
    }
}

#[test]
fn every_route_gives_the_same() {
    let mut prng = Prng::new(11);
    let params = [Datum::Int(2)];
    let env = Env {
        params: &params,
        subqueries: &[],
        session: &Session,
    };
    let (mut errors, mut values) = (0, 0);
    for _ in 0..3_000 {
        let expr = if prng.below(2) == 0 {
            number(&mut prng, 3)
        } else {
            condition(&mut prng, 3)
        };
        let mut folded = expr.clone();
        fold::fold(&mut folded);
        let mut frozen = expr.clone();
        fold::freeze(&mut frozen, &env).expect("nothing stable in it");
        assert!(walk::travels(&frozen));
        let travelled: Expr = codec::decode(&codec::to_vec(&frozen)).expect("our own bytes");
        assert_eq!(travelled, frozen);
        for _ in 0..4 {
            let row = random_row(&mut prng);
            let bytes = row::to_vec(&row);
            let encoded = EncodedRow(RowRef::new(&bytes));
            let plain: &[Datum] = &row;
            let expected = eval(&expr, &plain, &env);
            assert_eq!(
                eval(&expr, &encoded, &env),
                expected,
                "{expr:?} over {row:?}"
            );
            if expected.is_ok() {
                values += 1;
                // Folding may drop a part that fails, never change a value.
                assert_eq!(
                    eval(&folded, &encoded, &env),
                    expected,
                    "{expr:?} over {row:?}"
                );
                assert_eq!(eval(&travelled, &encoded, &Env::NONE), expected, "{expr:?}");
            } else {
                errors += 1;
            }
        }
    }
    assert!(
        values > 1_000 && errors > 20,
        "{values} values, {errors} errors"
    );
}

#[test]
fn frozen_expressions_ask_no_session() {
    let env = Env {
        params: &["x".into()],
        subqueries: &[],
        session: &Session,
    };
    let text = Expr::Cast {
        arg: Box::new(function("now", Vec::new()).expect("a function")),
        to: Type::Text,
        explicit: true,
    };
    let user = function("current_user", Vec::new()).expect("a function");
    let mut expr =
        function("concat", vec![text, user, Expr::Param(0, Type::Text)]).expect("a function");
    fold::freeze(&mut expr, &env).expect("no errors");
    assert_eq!(
        expr,
        Expr::Const("1970-01-01 00:00:01+00annx".into(), Type::Text)
    );
    let random = function("random", Vec::new()).expect("a function");
    assert!(!walk::travels(&random));
    assert!(!walk::is_row_independent(&random));
}

#[test]
fn unreached_errors_are_not_raised() {
    let divided = binary(
        "/",
        Expr::Const(Datum::Int(1), Type::Int4),
        Expr::Const(Datum::Int(0), Type::Int4),
    )
    .expect("numbers");
    let mut expr = case(vec![(column(4), divided)], None).expect("one type");
    fold::fold(&mut expr);
    let row: &[Datum] = &[
        Datum::Null,
        Datum::Null,
        Datum::Null,
        Datum::Null,
        Datum::Bool(false),
    ];
    assert_eq!(eval(&expr, &row, &Env::NONE), Ok(Datum::Null));
    let row: &[Datum] = &[
        Datum::Null,
        Datum::Null,
        Datum::Null,
        Datum::Null,
        Datum::Bool(true),
    ];
    assert!(eval(&expr, &row, &Env::NONE).is_err());
}

#[test]
fn walks_see_every_node() {
    let expr = Expr::And(vec![
        binary("=", column(0), Expr::Const(Datum::Int(1), Type::Int4)).expect("numbers"),
        Expr::IsNull(Box::new(column(2)), true),
        Expr::InList(Box::new(column(0)), vec![column(1)].into(), false),
    ]);
    assert_eq!(walk::columns(&expr), [0, 1, 2]);
    let mut shifted = expr.clone();
    walk::map(&mut shifted, &mut |node| {
        if let Expr::Column(index, _) = node {
            *index += 10;
        }
    });
    assert_eq!(walk::columns(&shifted), [10, 11, 12]);
    assert!(walk::any(&expr, &|node| matches!(
        node,
        Expr::Call(Func::Compare(Compare::Eq), ..)
    )));
    let truth = eval_bool(
        &Expr::IsBool(Box::new(Expr::null(Type::Bool)), None, false),
        &NoColumns,
        &Env::NONE,
    );
    assert_eq!(truth, Ok(Some(true)));
    assert_eq!(Compare::Lt.mirrored(), Some(Compare::Gt));
    assert_eq!(Compare::Lt.negated(), Compare::Ge);
}

#[test]
fn lent_columns_are_those_of_the_row() {
    let row = [Datum::Int(-70_000), Datum::Int(1 << 50), "text".into()];
    let bytes = row::to_vec(&row);
    let encoded = EncodedRow(RowRef::new(&bytes));
    assert_eq!(encoded.int(0), Some(-70_000));
    assert_eq!(encoded.int(1), Some(1 << 50));
    assert_eq!(encoded.text(2), Some("text".as_bytes()));
    assert_eq!(row.int(0), Some(-70_000));
    assert_eq!(row.text(2), Some("text".as_bytes()));
    assert_eq!(row.int(2), None);
}

//! Programs on their way to other nodes.

use super::*;
use crate::{Compare, Func};

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

//! Formulas and the coalescing of writes, against doing things one after the other.

use base::{Datum, Decimal, IndexId, Key, Prng, Slot, SqlState, Ts, Type, row};
use store::computed::{Arithmetic, Computed, Condition};
use store::{ColumnFormula, Formula, FormulaOp, Store, Write};

const TYPES: [Type; 4] = [
    Type::Int4,
    Type::Numeric(Some((6, 2))),
    Type::Int2,
    Type::Varchar(Some(400)),
];

fn decimal(unscaled: i128, scale: u8) -> Datum {
    Datum::Decimal(Decimal::from_parts(unscaled, scale).expect("small"))
}

fn draw_row(prng: &mut Prng) -> Vec<u8> {
    let int = |prng: &mut Prng| Datum::Int(prng.between(-1000, 1000));
    let mut values = vec![
        int(prng),
        decimal(i128::from(prng.between(-10_000, 10_000)), 2),
        int(prng),
        Datum::Text("x".repeat(prng.below(300) as usize).into()),
    ];
    if prng.below(5) == 0 {
        values[prng.below(3) as usize] = Datum::Null;
    }
    row::to_vec(&values)
}

fn draw_change(prng: &mut Prng, one_class: bool) -> ColumnFormula {
    let column = prng.below(if one_class { 3 } else { 4 }) as u16;
    if column == 3 {
        let text = Datum::Text("yz".repeat(prng.below(4) as usize).into());
        let op = match prng.below(3) {
            0 => FormulaOp::Set(text),
            _ => FormulaOp::Append(text),
        };
        return ColumnFormula::new(3, TYPES[3], op).expect("text");
    }
    let amount = prng.between(-500, 500);
    let operand = match column {
        1 => decimal(i128::from(amount), prng.below(3) as u8),
        _ => Datum::Int(amount),
    };
    // With one class per column, formulas commute.
    let class = if one_class {
        u64::from(column)
    } else {
        prng.below(7)
    };
    let op = match class {
        0 => FormulaOp::Min(operand),
        1 => FormulaOp::Add(operand),
        2 => FormulaOp::Max(operand),
        3 => FormulaOp::Set(operand),
        4 => FormulaOp::AtLeast(operand),
        5 => FormulaOp::AtMost(operand),
        _ => FormulaOp::Compute(half_of_another(column)),
    };
    ColumnFormula::new(column, TYPES[usize::from(column)], op).expect("exact")
}

/// Whole numbers from each other, decimal ones from themselves.
fn half_of_another(column: u16) -> Computed {
    let (ty, two) = match column {
        1 => (TYPES[1], decimal(2, 0)),
        _ => (TYPES[usize::from(2 - column)], Datum::Int(2)),
    };
    let from = Computed::Column(2 - column, ty);
    let both = Box::new([from, Computed::Const(two)]);
    Computed::Calculate(Arithmetic::Divide, both, ty)
}

fn draw_formula(prng: &mut Prng, one_class: bool) -> Formula {
    Formula(
        (0..1 + prng.below(3))
            .map(|_| draw_change(prng, one_class))
            .collect(),
    )
}

fn fold(formula: &Formula, row: &[u8]) -> Vec<u8> {
    let mut out = vec![7];
    formula
        .fold(row, &mut out)
        .expect("small amounts stay in range");
    assert_eq!(out.remove(0), 7, "fold appends");
    out
}

fn values(row: &[u8]) -> Vec<Datum> {
    row::RowRef::new(row).decode(&TYPES).expect("own encoding")
}

#[test]
fn merged_formulas_equal_one_after_the_other() {
    let mut prng = Prng::new(1);
    for _ in 0..3000 {
        let row = draw_row(&mut prng);
        let (a, b) = (
            draw_formula(&mut prng, false),
            draw_formula(&mut prng, false),
        );
        let apart = fold(&b, &fold(&a, &row));
        let merged = a.clone().then(b.clone());
        assert_eq!(
            values(&fold(&merged, &row)),
            values(&apart),
            "{a:?} then {b:?}"
        );
    }
}

#[test]
fn what_commutes_gives_the_same_in_both_orders() {
    let mut prng = Prng::new(3);
    let mut computed = [0; 2];
    for _ in 0..20_000 {
        let row = draw_row(&mut prng);
        let (a, b) = (
            draw_formula(&mut prng, false),
            draw_formula(&mut prng, false),
        );
        let same = values(&fold(&a, &fold(&b, &row))) == values(&fold(&b, &fold(&a, &row)));
        let commutes = a.commutes_with(&b);
        assert!(same || !commutes, "{a:?} and {b:?}");
        assert_eq!(commutes, b.commutes_with(&a));
        if a.computes() {
            computed[usize::from(commutes)] += 1;
        }
    }
    assert!(computed[0] > 1_000 && computed[1] > 500, "{computed:?}");
}

#[test]
fn formulas_of_one_class_per_column_commute() {
    let mut prng = Prng::new(2);
    for _ in 0..3000 {
        let row = draw_row(&mut prng);
        let (a, b) = (draw_formula(&mut prng, true), draw_formula(&mut prng, true));
        assert!(a.commutes_with(&b));
        assert_eq!(
            values(&fold(&a, &fold(&b, &row))),
            values(&fold(&b, &fold(&a, &row)))
        );
    }
    let change = |op| Formula(vec![ColumnFormula::new(0, Type::Int4, op).expect("exact")]);
    let one = || Datum::Int(1);
    let (add, min) = (change(FormulaOp::Add(one())), change(FormulaOp::Min(one())));
    let (set, guard) = (
        change(FormulaOp::Set(one())),
        change(FormulaOp::AtLeast(one())),
    );
    assert!(!add.commutes_with(&min));
    assert!(!set.commutes_with(&set) && !set.commutes() && !set.commutes_with(&add));
    assert!(guard.commutes_with(&add) && guard.commutes_with(&guard));
    assert!(!guard.commutes_with(&min) && !guard.commutes_with(&set));
    assert!(guard.clone().then(add.clone()).commutes() && !min.then(add).commutes());
    assert!(guard.is_guarded() && !set.is_guarded());
}

#[test]
fn texts_are_appended_up_to_the_length_of_their_column() {
    let row = row::to_vec(&[Datum::Text("abc".into()), Datum::Bytes([1].into())]);
    let append = |column, ty, value| {
        let change = ColumnFormula::new(column, ty, FormulaOp::Append(value));
        Formula(vec![change.expect("text")])
    };
    let text = |ty, value: &str| append(0, ty, Datum::Text(value.into()));
    for (formula, ty, wanted) in [
        (text(Type::Text, "de"), Type::Text, "abcde"),
        (
            text(Type::Varchar(Some(4)), "d"),
            Type::Varchar(Some(4)),
            "abcd",
        ),
        // Blanks that are too many are cut off.
        (
            text(Type::Varchar(Some(4)), "   "),
            Type::Varchar(Some(4)),
            "abc ",
        ),
    ] {
        let folded = fold(&formula, &row);
        let value = row::RowRef::new(&folded).col(0, ty);
        assert_eq!(value, Ok(Datum::Text(wanted.into())));
    }
    let folded = fold(&append(1, Type::Bytea, Datum::Bytes([2, 3].into())), &row);
    let value = row::RowRef::new(&folded).col(1, Type::Bytea);
    assert_eq!(value, Ok(Datum::Bytes([1, 2, 3].into())));
    let error = |formula: &Formula| formula.fold(&row, &mut Vec::new()).expect_err("too long");
    let long = error(&text(Type::Varchar(Some(4)), "de"));
    assert_eq!(long.state(), SqlState::STRING_TRUNCATION);
    let big = error(&text(Type::Text, &"x".repeat(base::limits::ROW_BYTES_MAX)));
    assert_eq!(big.state(), SqlState::PROGRAM_LIMIT);
    let null = row::to_vec(&[Datum::Null]);
    assert_eq!(fold(&text(Type::Text, "x"), &null), null);
}

#[test]
fn values_are_kept_as_the_column_stores_them() {
    let numeric = Type::Numeric(Some((6, 2)));
    let row = row::to_vec(&[decimal(100, 2)]);
    for (op, wanted) in [
        (FormulaOp::Max(decimal(25, 1)), decimal(250, 2)),
        (FormulaOp::Set(decimal(3, 0)), decimal(300, 2)),
    ] {
        let change = ColumnFormula::new(0, numeric, op).expect("it fits");
        let folded = fold(&Formula(vec![change]), &row);
        let value = row::RowRef::new(&folded).col(0, numeric);
        assert_eq!(format!("{value:?}"), format!("{:?}", Ok::<_, ()>(wanted)));
    }
}

#[test]
fn what_does_not_commute_exactly_is_refused() {
    let refused = [
        (Type::Float8, FormulaOp::Add(Datum::Float(1.0))),
        (Type::Int4, FormulaOp::Add(Datum::Null)),
        (Type::Int4, FormulaOp::Add(decimal(15, 1))),
        (
            Type::Numeric(Some((6, 2))),
            FormulaOp::Add(decimal(1005, 3)),
        ),
        (Type::Numeric(None), FormulaOp::Min(decimal(10, 1))),
        (Type::Date, FormulaOp::Add(Datum::Date(1))),
        (Type::Text, FormulaOp::Max(Datum::Text("a".into()))),
        (Type::Int2, FormulaOp::Max(Datum::Int(40_000))),
        (Type::Int2, FormulaOp::Set(Datum::Int(40_000))),
        (
            Type::Varchar(Some(1)),
            FormulaOp::Set(Datum::Text("ab".into())),
        ),
        (Type::Char(3), FormulaOp::Append(Datum::Text("a".into()))),
        (Type::Text, FormulaOp::Append(Datum::Null)),
        (Type::Int4, FormulaOp::AtLeast(Datum::Null)),
    ];
    for (ty, op) in refused {
        assert_eq!(ColumnFormula::new(0, ty, op.clone()), None, "{ty:?} {op:?}");
    }
}

#[test]
fn results_out_of_range_are_22003() {
    let cases = [
        (
            Type::Int2,
            Datum::Int(32_767),
            Datum::Int(1),
            "smallint out of range",
        ),
        (
            Type::Int4,
            Datum::Int(-2_147_483_648),
            Datum::Int(-1),
            "integer out of range",
        ),
        (
            Type::Int8,
            Datum::Int(i64::MAX),
            Datum::Int(1),
            "bigint out of range",
        ),
        (
            Type::Numeric(Some((4, 2))),
            decimal(9999, 2),
            decimal(1, 2),
            "numeric field overflow",
        ),
    ];
    for (ty, value, operand, message) in cases {
        let change = ColumnFormula::new(0, ty, FormulaOp::Add(operand)).expect("exact");
        let error = Formula(vec![change])
            .fold(&row::to_vec(&[value]), &mut Vec::new())
            .expect_err("out of range");
        assert_eq!(error.state(), SqlState::NUMERIC_OUT_OF_RANGE);
        assert_eq!(error.fields().message, message);
    }
}

/// One after the other, the first of both is an error; so it is where a value is set afterwards.
#[test]
fn a_set_value_does_not_hide_an_error_before_it() {
    let change = |ty, op| Formula(vec![ColumnFormula::new(0, ty, op).expect("exact")]);
    let small = Datum::Int(7);
    let sum = both(
        Arithmetic::Add,
        Type::Int8,
        Computed::Column(0, Type::Int8),
        Computed::Const(Datum::Int(30_000)),
    );
    for first in [
        change(Type::Int2, FormulaOp::Add(Datum::Int(30_000))),
        change(Type::Int2, FormulaOp::Multiply(Datum::Int(3_000))),
        computing(Type::Int2, sum),
    ] {
        let set = change(Type::Int2, FormulaOp::Set(small.clone()));
        let all = first
            .clone()
            .then(set.clone())
            .then(first.clone())
            .then(set);
        let mut out = Vec::new();
        let large = row::to_vec(&[Datum::Int(20_000)]);
        let error = all.fold(&large, &mut out).expect_err("it leaves the range");
        assert_eq!(error.state(), SqlState::NUMERIC_OUT_OF_RANGE, "{first:?}");
        let kept = fold(&all, &row::to_vec(&[Datum::Int(1)]));
        assert_eq!(kept, row::to_vec(core::slice::from_ref(&small)));
        assert!(all.0.len() <= 4, "{all:?}");
    }
    // What cannot fail is forgotten.
    let least = change(Type::Int2, FormulaOp::Min(Datum::Int(3)));
    let set = change(Type::Int2, FormulaOp::Set(small));
    assert_eq!(least.then(set.clone()), set);
}

#[test]
fn null_stays_null_under_add_and_takes_the_operand_of_min_and_max() {
    let row = row::to_vec(&[Datum::Null]);
    for (op, expected) in [
        (FormulaOp::Add(Datum::Int(1)), Datum::Null),
        (FormulaOp::Min(Datum::Int(1)), Datum::Int(1)),
        (FormulaOp::Max(Datum::Int(1)), Datum::Int(1)),
    ] {
        let change = ColumnFormula::new(0, Type::Int4, op).expect("exact");
        let folded = fold(&Formula(vec![change]), &row);
        assert_eq!(row::RowRef::new(&folded).col(0, Type::Int4), Ok(expected));
    }
}

/// What a write makes of a row.
fn effect(write: Option<&Write>, row: Option<&[u8]>) -> Option<Vec<u8>> {
    match write {
        None => row.map(<[u8]>::to_vec),
        Some(Write::Insert(new)) => {
            assert_eq!(row, None, "an insert meets no row");
            Some(new.clone())
        }
        Some(Write::Put(new)) => Some(new.clone()),
        Some(Write::Delete) => {
            assert!(row.is_some(), "a delete meets a row");
            None
        }
        Some(Write::Formula(formula)) => Some(fold(formula, row.expect("a formula meets a row"))),
    }
}

#[test]
fn coalesced_writes_equal_one_after_the_other() {
    let mut prng = Prng::new(3);
    for _ in 0..5000 {
        let start = (prng.below(2) == 0).then(|| draw_row(&mut prng));
        let mut row = start.clone();
        let mut total: Option<Write> = None;
        for _ in 0..1 + prng.below(5) {
            let write = match (row.is_some(), prng.below(3)) {
                (false, _) => Write::Insert(draw_row(&mut prng)),
                (true, 0) => Write::Put(draw_row(&mut prng)),
                (true, 1) => Write::Delete,
                (true, _) => Write::Formula(draw_formula(&mut prng, false)),
            };
            row = effect(Some(&write), row.as_deref());
            total = match total {
                Some(earlier) => earlier.then(write).expect("in range"),
                None => Some(write),
            };
        }
        let once = effect(total.as_ref(), start.as_deref());
        assert_eq!(once.as_deref().map(values), row.as_deref().map(values));
    }
}

#[test]
fn writes_round_trip_and_bytes_equal_those_of_a_plain_vector() {
    let mut prng = Prng::new(4);
    for write in [
        Write::Insert(draw_row(&mut prng)),
        Write::Put(vec![]),
        Write::Delete,
        Write::Formula(draw_formula(&mut prng, false)),
    ] {
        let bytes = base::codec::to_vec(&write);
        assert_eq!(base::codec::decode::<Write>(&bytes), Ok(write));
    }
    let row = vec![1u8, 2, 3];
    assert_eq!(
        base::codec::to_vec(&Write::Insert(row.clone()))[1..],
        base::codec::to_vec(&row)
    );
}

/// Statements of one transaction, one after the other, on a row with each value: all their guards
/// hold exactly if those of the one formula do, which has one of each kind.
#[test]
fn guards_of_many_statements_become_one_of_each_kind() {
    let change = |op| ColumnFormula::new(0, Type::Int4, op).expect("exact");
    for seed in 0..300 {
        let mut prng = Prng::new(seed);
        let mut statements = Vec::new();
        for _ in 0..1 + prng.below(8) {
            let mut value = |most: u64| Datum::Int(prng.below(most) as i64 - most as i64 / 2);
            let (delta, bound) = (value(20), value(60));
            let add = change(FormulaOp::Add(delta));
            let guard = change(match prng.below(2) {
                0 => FormulaOp::AtLeast(bound),
                _ => FormulaOp::AtMost(bound),
            });
            statements.push(Formula(match prng.below(3) {
                0 => vec![add],
                1 => vec![guard, add],
                _ => vec![add, guard],
            }));
        }
        let mut all = statements.iter().cloned();
        let first = all.next().expect("at least one");
        let one = all.fold(first, Formula::then);
        assert!(statements.len() == 1 || one.0.len() <= 3, "{one:?}");
        for start in -60..60 {
            let holds = |changes: Vec<&ColumnFormula>| {
                let mut value: i64 = start;
                changes.into_iter().all(|change| match &change.op {
                    FormulaOp::Add(Datum::Int(delta)) => {
                        value += delta;
                        true
                    }
                    FormulaOp::AtLeast(Datum::Int(bound)) => value >= *bound,
                    FormulaOp::AtMost(Datum::Int(bound)) => value <= *bound,
                    other => panic!("not made here: {other:?}"),
                })
            };
            let apart = holds(statements.iter().flat_map(|formula| &formula.0).collect());
            assert_eq!(
                holds(one.0.iter().collect()),
                apart,
                "seed {seed} at {start}: {one:?}"
            );
        }
    }
}

#[test]
fn appends_of_many_statements_become_one() {
    let text = |ty, value: &str| {
        let op = FormulaOp::Append(Datum::Text(value.into()));
        Formula(vec![ColumnFormula::new(0, ty, op).expect("texts append")])
    };
    let both = |ty| text(ty, "ab").then(text(ty, "cd"));
    assert_eq!(both(Type::Text), text(Type::Text, "abcd"));
    assert_eq!(both(Type::Varchar(Some(9))).0.len(), 2);
}

/// Several may be pending on a row, each without the others, so none can know its size.
#[test]
fn an_addition_does_not_look_at_the_size_of_the_row() {
    let pad = "x".repeat(base::limits::ROW_BYTES_MAX);
    let row = row::to_vec(&[Datum::Int(0), Datum::Text(pad.into())]);
    let add = ColumnFormula::new(0, Type::Int8, FormulaOp::Add(Datum::Int(100_000)));
    let mut out = Vec::new();
    let folded = Formula(vec![add.expect("exact")]).fold(&row, &mut out);
    assert_eq!(folded, Ok(()));
}

/// The journal has the formulas of a row in any order, and some of them twice.
#[test]
fn redo_folds_formulas_in_the_order_of_timestamps() {
    for seed in 0..500 {
        let mut prng = Prng::new(seed);
        let key = Key::new(IndexId(1), Slot(0), vec![1]);
        let first = draw_row(&mut prng);
        let count = 1 + prng.below(6);
        let formulas: Vec<_> = (0..count).map(|_| draw_formula(&mut prng, false)).collect();
        let wanted = formulas
            .iter()
            .fold(first.clone(), |row, it| fold(it, &row));

        let mut store: Store = Store::new();
        assert!(store.redo_in_any_order(&key, &Write::Put(first), Ts(1)));
        let mut journal: Vec<usize> = (0..formulas.len()).collect();
        for at in (1..journal.len()).rev() {
            journal.swap(at, prng.below(at as u64 + 1) as usize);
        }
        journal.push(journal[0]);
        for at in journal {
            let write = Write::Formula(formulas[at].clone());
            store.redo_in_any_order(&key, &write, Ts(2 + at as u64));
        }
        store.end_redo();
        let found = store.get(&key, Ts::MAX).expect("it was written");
        assert_eq!(values(found.value), values(&wanted), "seed {seed}");
    }
}

fn computing(ty: Type, value: Computed) -> Formula {
    let change = ColumnFormula::new(0, ty, FormulaOp::Compute(value));
    Formula(vec![change.expect("anything can be computed")])
}

fn both(what: Arithmetic, ty: Type, left: Computed, right: Computed) -> Computed {
    Computed::Calculate(what, Box::new([left, right]), ty)
}

/// What does not merge is kept as a row from some size on, unless one statement is as large.
#[test]
fn formulas_are_outgrown_by_changes_and_by_bytes() {
    let (ty, two) = (Type::Int4, Computed::Const(Datum::Int(2)));
    let half = both(Arithmetic::Divide, ty, Computed::Column(0, ty), two);
    let half = computing(ty, half);
    let mut all = half.clone();
    for _ in 2..=32 {
        all = all.then(half.clone());
        assert!(!all.outgrows(&half));
    }
    assert!(all.then(half.clone()).outgrows(&half));

    let set = |column: u16, value: Datum, ty: Type| {
        ColumnFormula::new(column, ty, FormulaOp::Set(value)).expect("it fits")
    };
    let wide = Formula(
        (0..40)
            .map(|column| set(column, Datum::Int(1), ty))
            .collect(),
    );
    assert!(!wide.clone().then(wide.clone()).outgrows(&wide));

    let text = |column: u16| set(column, Datum::Text("x".repeat(5 << 20).into()), Type::Text);
    let long = Formula(vec![text(0)]);
    assert!(!long.clone().then(long.clone()).outgrows(&long));
    assert!(long.then(Formula(vec![text(1)])).outgrows(&half));
}

#[test]
fn a_formula_that_no_frame_carries_says_so() {
    let of = |bytes: usize| {
        let text = || Computed::Const(Datum::Text("x".repeat(bytes).into()));
        computing(Type::Text, Computed::Coalesce(vec![text(), text()]))
    };
    assert_eq!(of(7 << 20).too_long(), None);
    assert!(
        of(9 << 20)
            .too_long()
            .is_some_and(|bytes| bytes >= 18 << 20)
    );
    // In memory it is larger than in a frame.
    let many = Datum::Array(vec![Datum::Int(1); 1_000_000].into());
    let array = FormulaOp::Compute(Computed::Coalesce(vec![Computed::Const(many)]));
    let array = ColumnFormula::new(0, Type::Array(base::ArrayKind::Int4), array);
    let array = Formula(vec![array.expect("anything can be computed")]);
    assert!(array.size_bytes() > 16 << 20);
    assert_eq!(array.too_long(), None);
}

/// Neither what is computed in between nor what is read for it may be of any size.
#[test]
fn values_in_between_have_a_limit() {
    let row = row::to_vec(&[Datum::Text("x".repeat(6 << 20).into())]);
    let text = || Computed::Column(0, Type::Text);
    let twice = || both(Arithmetic::Append, Type::Text, text(), text());
    let thrice = both(Arithmetic::Append, Type::Text, twice(), text());
    let short = |value: Computed| {
        let known = Condition::Not(Box::new(Condition::IsNull(Box::new(value))));
        let short = Computed::Const(Datum::Text("short".into()));
        computing(
            Type::Text,
            Computed::Case(vec![(known, short.clone())], Box::new(short)),
        )
    };
    let fold = |formula: &Formula| formula.fold(&row, &mut Vec::new());
    assert_eq!(fold(&short(twice())), Ok(()));
    let limit = Err(SqlState::PROGRAM_LIMIT);
    assert_eq!(fold(&short(thrice)).map_err(|error| error.state()), limit);
    let all = |count: usize| Computed::Greatest((0..count).map(|_| text()).collect());
    assert_eq!(fold(&short(all(10))), Ok(()));
    assert_eq!(fold(&short(all(11))).map_err(|error| error.state()), limit);
}

#[test]
fn what_contradicts_is_what_cannot_follow() {
    let row = row::to_vec(&[Datum::Int(1)]);
    let change = ColumnFormula::new(0, Type::Int4, FormulaOp::Add(Datum::Int(1)));
    let writes = [
        Write::Insert(row.clone()),
        Write::Put(row),
        Write::Delete,
        Write::Formula(Formula([change.expect("exact")].into())),
    ];
    for (first, second) in writes
        .iter()
        .flat_map(|a| writes.iter().map(move |b| (a, b)))
    {
        let followed = std::panic::catch_unwind(|| first.clone().then(second.clone()));
        assert_eq!(
            first.contradicts(second),
            followed.is_err(),
            "{first:?} and {second:?}"
        );
    }
}

//! Operators by symbol.

use super::super::super::Compare;
use super::super::comparison;
use super::*;
use functions::{ArrayFunc, TextFunc};

/// Two operand types and the result type.
type Row = ([Arg; 2], Type);

/// Integers of any two widths: the result has the larger one.
static INTEGERS: [Row; 9] = [
    ([I2, I2], Type::Int2),
    ([I2, I4], Type::Int4),
    ([I4, I2], Type::Int4),
    ([I4, I4], Type::Int4),
    ([I2, I8], Type::Int8),
    ([I8, I2], Type::Int8),
    ([I4, I8], Type::Int8),
    ([I8, I4], Type::Int8),
    ([I8, I8], Type::Int8),
];

static FLOATS: [Row; 4] = [
    ([F4, F4], Type::Float4),
    ([F4, F8], Type::Float8),
    ([F8, F4], Type::Float8),
    ([F8, F8], Type::Float8),
];

static NUMERICS: [Row; 1] = [([NUM, NUM], NUMERIC)];

/// Types that compare with each other.
static COMPARED: [[Arg; 2]; 22] = [
    [BOOL, BOOL],
    [NUM, NUM],
    [TXT, TXT],
    [CHAR, CHAR],
    [NAME, NAME],
    [NAME, TXT],
    [TXT, NAME],
    [BYTEA, BYTEA],
    [DATE, DATE],
    [TS, TS],
    [TSTZ, TSTZ],
    [DATE, TS],
    [TS, DATE],
    [DATE, TSTZ],
    [TSTZ, DATE],
    [TS, TSTZ],
    [TSTZ, TS],
    [UUID, UUID],
    [SPAN, SPAN],
    [OID, OID],
    [ICHAR, ICHAR],
    [TID, TID],
];

/// Types that are equal or not, without an order.
static EQUATED: [[Arg; 2]; 2] = [[XID, XID], [XID, I4]];

fn entries(name: &'static str, rows: &'static [Row], func: &Func) -> Vec<Entry> {
    let entry = |(args, ret): &'static Row| Entry {
        name,
        args: Args::Any(args),
        variadic: false,
        ret: Ret::Is(*ret),
        func: func.clone(),
    };
    rows.iter().map(entry).collect()
}

fn comparisons(name: &'static str, op: Compare) -> Vec<Entry> {
    static ARRAYS: [Arg; 2] = [ARRAY, ARRAY];
    let numbers = INTEGERS.iter().chain(&FLOATS).map(|(args, _)| args);
    let entry = |args: &'static [Arg; 2]| f(name, args, Type::Bool, Func::Compare(op));
    let equated: &'static [[Arg; 2]] = match op {
        Compare::Eq | Compare::Ne => &EQUATED,
        _ => &[],
    };
    numbers
        .chain(&COMPARED)
        .chain(equated)
        .chain([&ARRAYS])
        .map(entry)
        .collect()
}

fn patterns(name: &'static str, op: Compare) -> Vec<Entry> {
    let text = |args: &'static [Arg]| f(name, args, Type::Bool, Func::Compare(op));
    let mut found = vec![text(&[TXT, TXT]), text(&[NAME, TXT])];
    found.push(text(&[PADDED, TXT]));
    if matches!(op, Compare::Like | Compare::NotLike) {
        found.push(text(&[BYTEA, BYTEA]));
    }
    found
}

/// Arithmetic over all kinds of numbers.
fn arithmetic(name: &'static str, func: &Func) -> Vec<Entry> {
    let mut found = entries(name, &INTEGERS, func);
    found.extend(entries(name, &FLOATS, func));
    found.extend(entries(name, &NUMERICS, func));
    found
}

/// The dates and intervals that can be added.
static ADDED: [Row; 9] = [
    ([DATE, I4], Type::Date),
    ([I4, DATE], Type::Date),
    ([DATE, SPAN], Type::Timestamp(None)),
    ([SPAN, DATE], Type::Timestamp(None)),
    ([TS, SPAN], Type::Timestamp(None)),
    ([SPAN, TS], Type::Timestamp(None)),
    ([TSTZ, SPAN], Type::Timestamptz(None)),
    ([SPAN, TSTZ], Type::Timestamptz(None)),
    ([SPAN, SPAN], Type::Interval),
];

static SUBTRACTED: [Row; 8] = [
    ([DATE, I4], Type::Date),
    ([DATE, DATE], Type::Int4),
    ([DATE, SPAN], Type::Timestamp(None)),
    ([TS, SPAN], Type::Timestamp(None)),
    ([TSTZ, SPAN], Type::Timestamptz(None)),
    ([TS, TS], Type::Interval),
    ([TSTZ, TSTZ], Type::Interval),
    ([SPAN, SPAN], Type::Interval),
];

static MULTIPLIED: [Row; 2] = [([SPAN, F8], Type::Interval), ([F8, SPAN], Type::Interval)];
static DIVIDED: [Row; 1] = [([SPAN, F8], Type::Interval)];
static REMAINDERS: [Row; 4] = [
    ([I2, I2], Type::Int2),
    ([I4, I4], Type::Int4),
    ([I8, I8], Type::Int8),
    ([NUM, NUM], NUMERIC),
];
static POWERS: [Row; 2] = [([F8, F8], Type::Float8), ([NUM, NUM], NUMERIC)];
static BITWISE: [Row; 3] = [
    ([I2, I2], Type::Int2),
    ([I4, I4], Type::Int4),
    ([I8, I8], Type::Int8),
];
static SHIFTS: [Row; 3] = [
    ([I2, I4], Type::Int2),
    ([I4, I4], Type::Int4),
    ([I8, I4], Type::Int8),
];

fn concatenations() -> Vec<Entry> {
    let name = "||";
    let text = || Func::Text(TextFunc::Concat);
    let array = |args: &'static [Arg], func| poly(name, args, Ret::Array, Func::Array(func));
    vec![
        f(name, &[TXT, TXT], Type::Text, text()),
        f(name, &[TXT, Arg::NonArray], Type::Text, text()),
        f(name, &[Arg::NonArray, TXT], Type::Text, text()),
        f(name, &[BYTEA, BYTEA], Type::Bytea, text()),
        array(&[ARRAY, ARRAY], ArrayFunc::Cat),
        array(&[ARRAY, ELEM], ArrayFunc::Append),
        array(&[ELEM, ARRAY], ArrayFunc::Prepend),
    ]
}

/// The operators of this symbol with two operands.
pub(in super::super) fn operators(symbol: &str) -> Vec<Entry> {
    if let Some(op) = comparison(symbol) {
        return if op <= Compare::Ge {
            comparisons("", op)
        } else {
            patterns("", op)
        };
    }
    let array = |func| {
        let func = Func::Array(func);
        vec![poly("", &[ARRAY, ARRAY], Ret::Is(Type::Bool), func)]
    };
    let mut found = match symbol {
        "+" => arithmetic("+", &Func::Add),
        "-" => arithmetic("-", &Func::Sub),
        "*" => arithmetic("*", &Func::Mul),
        "/" => arithmetic("/", &Func::Div),
        "%" => entries("%", &REMAINDERS, &Func::Rem),
        "^" => entries("^", &POWERS, &Func::Pow),
        "&" => entries("&", &BITWISE, &Func::BitAnd),
        "|" => entries("|", &BITWISE, &Func::BitOr),
        "#" => entries("#", &BITWISE, &Func::BitXor),
        "<<" => entries("<<", &SHIFTS, &Func::ShiftLeft),
        ">>" => entries(">>", &SHIFTS, &Func::ShiftRight),
        "||" => concatenations(),
        "@>" => array(ArrayFunc::Contains),
        "<@" => array(ArrayFunc::ContainedBy),
        "&&" => array(ArrayFunc::Overlaps),
        "^@" => vec![f(
            "^@",
            &[TXT, TXT],
            Type::Bool,
            Func::Text(TextFunc::StartsWith),
        )],
        _ => Vec::new(),
    };
    match symbol {
        "+" => found.extend(entries("+", &ADDED, &Func::Add)),
        "-" => found.extend(entries("-", &SUBTRACTED, &Func::Sub)),
        "*" => found.extend(entries("*", &MULTIPLIED, &Func::Mul)),
        "/" => found.extend(entries("/", &DIVIDED, &Func::Div)),
        _ => {}
    }
    found
}

/// The operators of this symbol before one operand.
pub(in super::super) fn prefix_operators(symbol: &str) -> Vec<Entry> {
    let numbers = |name: &'static str, func: Func| {
        let types: [(&'static [Arg], Type); 6] = [
            (&[I2], Type::Int2),
            (&[I4], Type::Int4),
            (&[I8], Type::Int8),
            (&[F4], Type::Float4),
            (&[F8], Type::Float8),
            (&[NUM], NUMERIC),
        ];
        types
            .map(|(args, ret)| f(name, args, ret, func.clone()))
            .into_iter()
            .collect::<Vec<_>>()
    };
    match symbol {
        "-" => {
            let mut found = numbers("-", Func::Neg);
            found.push(f("-", &[SPAN], Type::Interval, Func::Neg));
            found
        }
        "+" => numbers("+", Func::Abs),
        "@" => numbers("@", Func::Abs),
        "~" => {
            let mut found = numbers("~", Func::BitNot);
            found.truncate(3);
            found
        }
        "|/" => vec![f("|/", &[F8], Type::Float8, Func::Sqrt)],
        "||/" => vec![f("||/", &[F8], Type::Float8, Func::Cbrt)],
        _ => Vec::new(),
    }
}

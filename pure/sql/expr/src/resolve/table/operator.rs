//! Operators by symbol.

use super::super::super::Compare;
use super::super::comparison;
use super::*;
use functions::{ArrayFunc, TextFunc};

/// Arithmetic over all kinds of numbers: the result has the larger width.
static ARITHMETIC: &[Overload] = overloads![
    (I2, I2) I2, (I2, I4) I4, (I4, I2) I4, (I4, I4) I4, (I2, I8) I8, (I8, I2) I8, (I4, I8) I8,
    (I8, I4) I8, (I8, I8) I8, (F4, F4) F4, (F4, F8) F8, (F8, F4) F8, (F8, F8) F8, (NUM, NUM) NUM
];

/// Types that compare with each other.
static COMPARED: &[Overload] = overloads![
    (I2, I2) BOOL, (I2, I4) BOOL, (I4, I2) BOOL, (I4, I4) BOOL, (I2, I8) BOOL, (I8, I2) BOOL,
    (I4, I8) BOOL, (I8, I4) BOOL, (I8, I8) BOOL, (F4, F4) BOOL, (F4, F8) BOOL, (F8, F4) BOOL,
    (F8, F8) BOOL, (BOOL, BOOL) BOOL, (NUM, NUM) BOOL, (TXT, TXT) BOOL, (CHAR, CHAR) BOOL,
    (NAME, NAME) BOOL, (NAME, TXT) BOOL, (TXT, NAME) BOOL, (BYTEA, BYTEA) BOOL, (DATE, DATE) BOOL,
    (TS, TS) BOOL, (TSTZ, TSTZ) BOOL, (DATE, TS) BOOL, (TS, DATE) BOOL, (DATE, TSTZ) BOOL,
    (TSTZ, DATE) BOOL, (TS, TSTZ) BOOL, (TSTZ, TS) BOOL, (UUID, UUID) BOOL, (SPAN, SPAN) BOOL,
    (OID, OID) BOOL, (ICHAR, ICHAR) BOOL, (TID, TID) BOOL, (ARRAY, ARRAY) BOOL,
    (JSONB, JSONB) BOOL, (TIME, TIME) BOOL, (INET, INET) BOOL,
    (MAC, MAC) BOOL, (TIMETZ, TIMETZ) BOOL, (BIT, BIT) BOOL, (VARBIT, VARBIT) BOOL,
    (RANGE, RANGE) BOOL, (RANGES, RANGES) BOOL
];

/// Types that are equal or not, without an order.
static EQUATED: &[Overload] = overloads![(XID, XID) BOOL, (XID, I4) BOOL];

/// Texts that a pattern is held against, for LIKE and for regular expressions.
static MATCHED: &[Overload] = overloads![(TXT, TXT) BOOL, (NAME, TXT) BOOL, (PADDED, TXT) BOOL];

/// What only LIKE takes besides.
static LIKE_BYTES: &[Overload] = overloads![(BYTEA, BYTEA) BOOL];

/// Operators over numbers whose operands may differ in width.
static ARITHMETICS: &[Function] = &[
    arithmetic(&["+"], Func::Add),
    arithmetic(&["-"], Func::Sub),
    arithmetic(&["*"], Func::Mul),
    arithmetic(&["/"], Func::Div),
];

const fn arithmetic(names: &'static [&'static str], func: Func) -> Function {
    Function {
        names,
        func,
        overloads: ARITHMETIC,
    }
}

/// All other operators with two operands but comparisons.
static INFIX: &[Function] = table! {
    "+": Func::Add => (DATE, I4) DATE, (I4, DATE) DATE, (DATE, SPAN) TS, (SPAN, DATE) TS,
        (TS, SPAN) TS, (SPAN, TS) TS, (TSTZ, SPAN) TSTZ, (SPAN, TSTZ) TSTZ, (SPAN, SPAN) SPAN,
        (DATE, TIMETZ) TSTZ, (TIMETZ, DATE) TSTZ, (TIMETZ, SPAN) TIMETZ, (SPAN, TIMETZ) TIMETZ,
        (DATE, TIME) TS, (TIME, DATE) TS, (TIME, SPAN) TIME, (SPAN, TIME) TIME;
    "-": Func::Sub => (DATE, I4) DATE, (DATE, DATE) I4, (DATE, SPAN) TS, (TS, SPAN) TS,
        (TSTZ, SPAN) TSTZ, (TS, TS) SPAN, (TSTZ, TSTZ) SPAN, (SPAN, SPAN) SPAN,
        (TIME, SPAN) TIME, (TIME, TIME) SPAN, (TIMETZ, SPAN) TIMETZ;
    "*": Func::Mul => (SPAN, F8) SPAN, (F8, SPAN) SPAN;
    "/": Func::Div => (SPAN, F8) SPAN;
    "%": Func::Rem => (I2, I2) I2, (I4, I4) I4, (I8, I8) I8, (NUM, NUM) NUM;
    "^": Func::Pow => (F8, F8) F8, (NUM, NUM) NUM;
    "&": Func::BitAnd => (I2, I2) I2, (I4, I4) I4, (I8, I8) I8;
    "|": Func::BitOr => (I2, I2) I2, (I4, I4) I4, (I8, I8) I8;
    "#": Func::BitXor => (I2, I2) I2, (I4, I4) I4, (I8, I8) I8;
    "<<": Func::ShiftLeft => (I2, I4) I2, (I4, I4) I4, (I8, I4) I8;
    ">>": Func::ShiftRight => (I2, I4) I2, (I4, I4) I4, (I8, I4) I8;
    "||": Func::Text(TextFunc::Concat) => (TXT, TXT) TXT, (TXT, NON_ARRAY) TXT,
        (NON_ARRAY, TXT) TXT, (BYTEA, BYTEA) BYTEA;
    "||": Func::Array(ArrayFunc::Cat) => (ARRAY, ARRAY) ARRAY;
    "||": Func::Array(ArrayFunc::Append) => (ARRAY, ELEM) ARRAY;
    "||": Func::Array(ArrayFunc::Prepend) => (ELEM, ARRAY) ARRAY;
    "@>": Func::Array(ArrayFunc::Contains) => (ARRAY, ARRAY) BOOL;
    "<@": Func::Array(ArrayFunc::ContainedBy) => (ARRAY, ARRAY) BOOL;
    "&&": Func::Array(ArrayFunc::Overlaps) => (ARRAY, ARRAY) BOOL;
    "^@": Func::Text(TextFunc::StartsWith) => (TXT, TXT) BOOL;
};

/// The operators with one operand.
static PREFIX: &[Function] = table! {
    "-": Func::Neg => (I2) I2, (I4) I4, (I8) I8, (F4) F4, (F8) F8, (NUM) NUM, (SPAN) SPAN;
    "+" "@": Func::Abs => (I2) I2, (I4) I4, (I8) I8, (F4) F4, (F8) F8, (NUM) NUM;
    "~": Func::BitNot => (I2) I2, (I4) I4, (I8) I8;
    "|/": Func::Sqrt => (F8) F8;
    "||/": Func::Cbrt => (F8) F8;
};

/// The operators of this symbol with two operands.
pub(in super::super) fn operators(symbol: &str) -> Vec<Entry> {
    let Some(op) = comparison(symbol) else {
        let all = ARITHMETICS.iter().chain(INFIX);
        let all = all.chain(json::INFIX).chain(network::INFIX);
        let all = all.chain(bits::INFIX).chain(range::INFIX);
        return named(all, symbol);
    };
    let (compared, more) = match op {
        Compare::Eq | Compare::Ne => (COMPARED, EQUATED),
        Compare::Like | Compare::NotLike => (MATCHED, LIKE_BYTES),
        op if op <= Compare::Ge => (COMPARED, &[][..]),
        _ => (MATCHED, &[][..]),
    };
    let entries = |overloads| Function {
        names: &[],
        func: Func::Compare(op),
        overloads,
    };
    let mut found: Vec<Entry> = entries(compared).entries().collect();
    found.extend(entries(more).entries());
    found
}

/// The operators of this symbol before one operand.
pub(in super::super) fn prefix_operators(symbol: &str) -> Vec<Entry> {
    let all = PREFIX.iter().chain(network::PREFIX);
    named(all.chain(bits::PREFIX), symbol)
}

//! Every function, operator, conversion and aggregate with arguments at the ends of their ranges:
//! the answer is a value of the result's type or an error, never a panic, which would end a node.

use super::table::{Arg, Entry, all, operators, prefix_operators};
use super::{Context, assemble, coerce};
use crate::aggregate::{AggFunc, AggState, is_aggregate};
use crate::tests::Session;
use crate::{Env, Expr, NoColumns, eval, fold};
use base::calendar::{DATE_MAX, DATE_MIN, MICROS_PER_DAY, TIMESTAMP_END, TIMESTAMP_MIN};
use base::grid::{Dimension, Shape};
use base::{
    Datum, Decimal, Interval, Jsonb, Multirange, Prng, Range, RangeKind, Type, types::ArrayKind,
};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Calls of one test run: about three seconds without optimisation.
const CALLS: u64 = 60_000;

const OPERATORS: [&str; 46] = [
    "=", "<>", "<", "<=", ">", ">=", "~~", "!~~", "~~*", "!~~*", "~", "!~", "~*", "!~*", "+", "-",
    "*", "/", "%", "^", "&", "|", "#", "<<", ">>", "||", "@>", "<@", "&&", "^@", "@", "|/", "||/",
    "-", "+", "->", "->>", "#>", "#>>", "?", "?|", "?&", "#-", "&<", "&>", "-|-",
];

const TYPES: [Type; 36] = [
    Type::Bool,
    Type::Int2,
    Type::Int4,
    Type::Int8,
    Type::Float4,
    Type::Float8,
    Type::Numeric(None),
    Type::Numeric(Some((38, 37))),
    Type::Text,
    Type::Varchar(Some(3)),
    Type::Char(2),
    Type::Bytea,
    Type::Date,
    Type::Timestamp(None),
    Type::Timestamptz(None),
    Type::Uuid,
    Type::Interval(None),
    Type::Name,
    Type::Oid,
    Type::InternalChar,
    Type::Array(ArrayKind::Int4),
    Type::Array(ArrayKind::Text),
    Type::Json,
    Type::Jsonb,
    Type::JsonPath,
    Type::Time(None),
    Type::Inet,
    Type::Cidr,
    Type::Macaddr,
    Type::Timetz(None),
    Type::Bit(None),
    Type::Varbit(Some(3)),
    Type::Range(RangeKind::Int4),
    Type::Range(RangeKind::Timestamptz),
    Type::Multirange(RangeKind::Date),
    Type::Multirange(RangeKind::Numeric),
];

const PATHS: [&str; 5] = [
    "$",
    "$.\"a\"",
    "strict $[*]?(@ > 1)",
    "$.**.datetime()",
    "($ + $\"x\").double() == -(1).keyvalue()",
];

/// Pieces of JSON.
const DOCUMENTS: [&str; 12] = [
    "null",
    "true",
    "-1.50e3",
    "1e-300",
    "\"a\\u0000\"",
    "\"\\n\"",
    "[]",
    "{}",
    "[1, \"a\", null]",
    "{\"a\": 1, \"b\": {\"a\": []}}",
    "[[[]], {\"\": null}]",
    " [ 1 ,2 ] ",
];

/// Pieces of formats, numbers, dates, zones, patterns and of what is none of them.
const PIECES: [&str; 92] = [
    "",
    " ",
    "a",
    "ä",
    "\u{10ffff}",
    "0",
    "1",
    "9",
    "-",
    "+",
    ".",
    ",",
    "e",
    "E308",
    "e-400",
    ":",
    "/",
    "_",
    "%",
    "\\",
    "'",
    "\"",
    "$",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "^",
    "*",
    "?",
    "|",
    "(?i)",
    "(?:",
    "[^",
    "[[:alpha:]]",
    "\\d",
    "\\1",
    "{0,255}",
    "{256}",
    "x*?",
    "YYYY",
    "Y,YYY",
    "IYYY",
    "MM",
    "DD",
    "DDD",
    "HH24",
    "HH12",
    "MI",
    "SS",
    "MS",
    "US",
    "SSSS",
    "AM",
    "BC",
    "TZ",
    "OF",
    "J",
    "Q",
    "WW",
    "IW",
    "CC",
    "RM",
    "Month",
    "Day",
    "FM",
    "TH",
    "SP",
    "FX",
    "999",
    "000",
    "V",
    "EEEE",
    "RN",
    "PL",
    "SG",
    "MI",
    "S",
    "PR",
    "L",
    "G",
    "infinity",
    "-infinity",
    "NaN",
    "epoch",
    "century",
    "%1$s",
    "%-2147483648s",
    "2147483648",
    "%*s",
];

const TEXTS: [&str; 40] = [
    "294276-12-31 23:59:59.999999",
    "4714-11-24 BC",
    "5874897-12-31",
    "0001-01-01",
    "178956970 years 7 mons 2147483647 days 2562047788:00:54.775807",
    "-178956970 years -8 mons -2147483648 days -2562047788:00:54.775808",
    "P178956970Y",
    "2147483647 decades",
    "9223372036854775807",
    "-9223372036854775808",
    "99999999999999999999999999999999999999",
    "1e400",
    "+99:59:59",
    "UTC+59:59",
    "Europe/Berlin",
    "century",
    "millennium",
    "isoyear",
    "julian",
    "timezone_hour",
    "microseconds",
    "quarter",
    "week",
    "epoch",
    "base64",
    "hex",
    "escape",
    "utf8",
    "{1,NULL,-2147483648}",
    "{\"a\",b}",
    "\\x00ff",
    "ffffffff-ffff-ffff-ffff-ffffffffffff",
    "YYYY-MM-DD HH24:MI:SS.US TZ",
    "999999999999999999999999999999999999999999.99999999",
    "9.99EEEE",
    "FMRN",
    "(((((((((a*)*)*)*)*)*)*)*)*)",
    "[z-a]",
    "a{255}{255}{255}",
    "%s %I %L %%",
];

fn pick<T: Copy>(prng: &mut Prng, list: &[T]) -> T {
    list[prng.below(list.len() as u64) as usize]
}

fn text(prng: &mut Prng) -> String {
    match prng.below(4) {
        0 => pick(prng, &TEXTS).into(),
        1 => "ab€".repeat(prng.below(40) as usize),
        _ => (0..prng.below(7)).map(|_| pick(prng, &PIECES)).collect(),
    }
}

fn int(prng: &mut Prng, bits: u32) -> i64 {
    let (low, high) = (i64::MIN >> (64 - bits), i64::MAX >> (64 - bits));
    match prng.below(5) {
        0 => pick(prng, &[low, low + 1, low / 2, high / 2, high - 1, high]),
        1 => low.max(1i64 << prng.below(62)).min(high),
        _ => prng.between(-12, 40).clamp(low, high),
    }
}

fn float(prng: &mut Prng) -> f64 {
    let special = [
        f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::MAX,
        f64::MIN,
        f64::MIN_POSITIVE,
        5e-324,
        -0.0,
        0.5,
        1e15,
        -9.223_372_036_854_776e18,
        9.223_372_036_854_776e18,
        2_147_483_647.5,
        1e308,
        -1.0,
        100.0,
    ];
    match prng.below(3) {
        0 => f64::from_bits(prng.next_u64()),
        _ => pick(prng, &special),
    }
}

fn decimal(prng: &mut Prng) -> Decimal {
    let most = 10i128.pow(38) - 1;
    let unscaled = match prng.below(4) {
        0 => pick(prng, &[most, -most, most / 2, most - 1]),
        1 => 10i128.pow(prng.below(38) as u32),
        2 => i128::from(int(prng, 64)),
        _ => i128::from(prng.between(-30, 30)),
    };
    let scale = pick(prng, &[0, 0, 1, 2, 20, 37, 38]);
    Decimal::from_parts(unscaled, scale).expect("38 digits")
}

fn interval(prng: &mut Prng) -> Interval {
    let mut narrow = || int(prng, 32) as i32;
    let (months, days) = (narrow(), narrow());
    Interval {
        months,
        days,
        micros: int(prng, 64),
    }
}

fn timestamp(prng: &mut Prng) -> i64 {
    let edges = [i64::MIN, i64::MAX, TIMESTAMP_MIN, TIMESTAMP_END - 1, 0, -1];
    match prng.below(2) {
        0 => pick(prng, &edges),
        _ => prng.between(TIMESTAMP_MIN, TIMESTAMP_END - 1),
    }
}

/// A value of a type, often at an end of its range; sometimes NULL.
fn value(prng: &mut Prng, ty: Type) -> Datum {
    if prng.below(16) == 0 {
        return Datum::Null;
    }
    match ty {
        Type::Bool => Datum::Bool(prng.below(2) == 0),
        Type::Int2 => Datum::Int(int(prng, 16)),
        Type::Int4 => Datum::Int(int(prng, 32)),
        Type::Int8 => Datum::Int(int(prng, 64)),
        Type::Oid | Type::Reg(_) | Type::Enum(_) | Type::Xid | Type::Tid => Datum::Int(pick(
            prng,
            &[0, 1, 16, 23, 1259, 16_384, i64::from(u32::MAX)],
        )),
        Type::Float4 => Datum::Float(f64::from(float(prng) as f32)),
        Type::Float8 => Datum::Float(float(prng)),
        Type::Numeric(None) if prng.below(6) == 0 => {
            let edges = [
                "NaN",
                "Infinity",
                "-Infinity",
                "1e45",
                "-1.5e-45",
                "-99999999999999999999999999999999999999.5",
                "1e131071",
                "1e-16383",
            ];
            base::numeric::parse(pick(prng, &edges)).expect("a number")
        }
        Type::Numeric(None) => decimal(prng).into(),
        Type::Bytea => text(prng).into_bytes().into(),
        Type::Date => {
            let edges = [i32::MIN, i32::MAX, DATE_MIN, DATE_MAX, 0, -1];
            Datum::Date(match prng.below(2) {
                0 => pick(prng, &edges),
                _ => prng.between(i64::from(DATE_MIN), i64::from(DATE_MAX)) as i32,
            })
        }
        Type::Time(_) => {
            let any = prng.between(0, MICROS_PER_DAY);
            Datum::Time(pick(prng, &[0, 1, MICROS_PER_DAY - 1, MICROS_PER_DAY, any]))
        }
        Type::Timestamp(_) | Type::Timestamptz(_) => Datum::Timestamp(timestamp(prng)),
        Type::Uuid => Datum::Uuid([prng.next_u64() as u8; 16]),
        Type::Timetz(_) => {
            let edges = [
                "00:00+00",
                "24:00-15:59:59",
                "12:30+05:30",
                "23:59:59.999999+15:59:59",
            ];
            base::text::parse(ty, pick(prng, &edges)).expect("a time")
        }
        Type::Bit(_) | Type::Varbit(_) => {
            let edges = ["", "0", "1", "101", "110"];
            base::text::parse(ty, pick(prng, &edges)).expect("bits")
        }
        Type::Macaddr => Datum::Mac([prng.next_u64() as u8; 6]),
        Type::Inet | Type::Cidr => {
            let edges = [
                "0.0.0.0/0",
                "255.255.255.255",
                "10.0.0.0/9",
                "::/0",
                "::1",
                "ffff::/16",
            ];
            base::text::parse(ty, pick(prng, &edges)).expect("an address")
        }
        Type::Composite(_) => Datum::Null,
        Type::Range(kind) => range(prng, kind).into(),
        Type::Multirange(kind) => {
            let ranges = (0..prng.below(4)).map(|_| range(prng, kind));
            Multirange::of(ranges.collect()).into()
        }
        Type::Interval(_) => interval(prng).into(),
        Type::InternalChar => pick(prng, &["", "a", "r"]).into(),
        Type::Json => pick(prng, &DOCUMENTS).into(),
        Type::JsonPath => pick(prng, &PATHS).into(),
        Type::Jsonb => Jsonb::parse(pick(prng, &DOCUMENTS)).map_or(Datum::Null, Datum::Jsonb),
        Type::Array(kind) => {
            let lower = prng.between(-1, 2) as i32;
            let of = |length: i32, lower: i32| Dimension { length, lower };
            let shape = match prng.below(7) {
                0 => Shape::new(&[of(2, lower), of(2, 1)]),
                1 => Shape::new(&[of(3, i32::MAX - 3)]),
                count => Ok(Shape::flat(count as usize - 2)),
            };
            let shape = shape.expect("it is small");
            let items = (0..shape.items()).map(|_| value(prng, kind.element()));
            Datum::shaped(shape, items.collect())
        }
        Type::Text | Type::Varchar(None) | Type::Unknown => text(prng).into(),
        Type::Varchar(_) | Type::Char(_) | Type::Name | Type::Numeric(_) => {
            let plain = match ty {
                Type::Numeric(_) => value(prng, Type::Numeric(None)),
                _ => text(prng).into(),
            };
            base::text::fit_explicit(ty, plain).unwrap_or(Datum::Null)
        }
    }
}

/// A range between two values of the kind; empty if there is none.
fn range(prng: &mut Prng, kind: RangeKind) -> Range {
    let bounds = [value(prng, kind.bound()), value(prng, kind.bound())];
    let inclusive = [prng.below(2) == 0, prng.below(2) == 0];
    Range::new(kind, bounds, inclusive).unwrap_or(Range::EMPTY)
}

/// An argument for a place of a call: a constant, or the result of another call.
fn argument(prng: &mut Prng, entries: &[Entry], arg: Arg, depth: u32) -> Expr {
    let ty = match arg {
        Arg::Is(ty) => ty,
        Arg::AnyArray => pick(
            prng,
            &[TYPES[20], TYPES[21], Type::Array(ArrayKind::Float8)],
        ),
        Arg::AnyElement => pick(prng, &[Type::Int4, Type::Text, Type::Float8]),
        // Of one kind, or nothing would fit.
        Arg::AnyRange => Type::Range(RangeKind::Date),
        Arg::AnyMultirange => Type::Multirange(RangeKind::Date),
        Arg::Bound => Type::Date,
        Arg::Any | Arg::Output | Arg::Padded | Arg::NonArray => pick(prng, &TYPES),
    };
    if depth > 0 && prng.below(3) == 0 {
        let fits = |entry: &&Entry| entry.ret == super::table::Ret::Is(ty);
        let fitting: Vec<&Entry> = entries.iter().filter(fits).collect();
        if !fitting.is_empty() {
            let entry = pick(prng, &fitting);
            if let Some(expr) = call(prng, entries, entry, depth - 1) {
                return expr;
            }
        }
    }
    Expr::Const(value(prng, ty), ty)
}

/// A call of a function, if its arguments can be made to fit.
fn call(prng: &mut Prng, entries: &[Entry], entry: &Entry, depth: u32) -> Option<Expr> {
    let arities: Vec<usize> = (0..8).filter(|count| entry.takes(*count)).collect();
    let count = pick(prng, &arities);
    let args = (0..count).map(|i| argument(prng, entries, entry.arg(i), depth));
    let args = args.collect();
    assemble(entry, args).ok()
}

/// Whether a value may stand where its type says.
fn is_of(ty: Type, value: &Datum) -> bool {
    let within = |low: i64, high: i64| value.as_int().is_some_and(|n| (low..=high).contains(&n));
    match (ty, value) {
        (_, Datum::Null) => true,
        (Type::Int2, _) => within(i64::from(i16::MIN), i64::from(i16::MAX)),
        (Type::Int4, _) => within(i64::from(i32::MIN), i64::from(i32::MAX)),
        (Type::Int8, _) => value.as_int().is_some(),
        (Type::Oid | Type::Reg(_) | Type::Xid, _) => within(0, i64::from(u32::MAX)),
        (Type::Float4 | Type::Float8, _) => matches!(value, Datum::Float(_)),
        (Type::Numeric(_), _) => {
            matches!(value, Datum::Decimal(_) | Datum::Int(_) | Datum::Large(_))
        }
        (Type::Date, Datum::Date(days)) => {
            matches!(*days, i32::MIN | i32::MAX) || (DATE_MIN..=DATE_MAX).contains(days)
        }
        (Type::Timestamp(_) | Type::Timestamptz(_), Datum::Timestamp(at)) => {
            matches!(*at, i64::MIN | i64::MAX) || (TIMESTAMP_MIN..TIMESTAMP_END).contains(at)
        }
        (Type::Time(_), Datum::Time(micros)) => base::calendar::is_time(*micros),
        (Type::Array(kind), array) if let Some(items) = array.as_array() => {
            items.iter().all(|item| is_of(kind.element(), item))
        }
        (Type::Date | Type::Time(_) | Type::Timestamp(_) | Type::Timestamptz(_), _) => false,
        (Type::Array(_), _) => false,
        (Type::Bool, _) => value.as_bool().is_some(),
        (Type::Bytea, _) => value.as_bytes().is_some(),
        (Type::Uuid, _) => matches!(value, Datum::Uuid(_)),
        (Type::Interval(_), _) => matches!(value, Datum::Interval(_)),
        (Type::Timetz(_), _) => matches!(value, Datum::Timetz(_)),
        (Type::Bit(_) | Type::Varbit(_), _) => matches!(value, Datum::Bits(_)),
        (Type::Macaddr, _) => matches!(value, Datum::Mac(_)),
        (Type::Inet, _) => matches!(value, Datum::Inet(_)),
        (Type::Cidr, _) => matches!(value, Datum::Inet(value) if value.is_network()),
        (Type::Jsonb, _) => matches!(value, Datum::Jsonb(_)),
        (Type::Range(kind), Datum::Range(range)) => {
            let mut bounds = range.values().iter();
            bounds.all(|bound| is_of(kind.bound(), bound))
        }
        (Type::Multirange(kind), Datum::Multirange(value)) => {
            let mut bounds = value.ranges().iter().flat_map(Range::values);
            bounds.all(|bound| is_of(kind.bound(), bound))
        }
        _ => value.as_str().is_some(),
    }
}

/// Everything that is done with a value: sent as text and binary, stored, made a key.
fn use_value(ty: Type, value: &Datum) {
    assert!(is_of(ty, value), "{value:?} is no {}", ty.name());
    let mut bytes = Vec::new();
    base::row::encode(core::slice::from_ref(value), &mut bytes);
    if value.is_null() {
        return;
    }
    base::text::format(ty, value, &mut bytes);
    base::wire::encode(ty, value, &mut bytes);
    base::key::encode_datum(&mut bytes, value, false);
    let _ = value.compare(value);
}

/// Computes as a statement would: folded and not.
fn compute(expr: &Expr) -> bool {
    let env = Env {
        session: &Session,
        ..Env::NONE
    };
    let mut folded = expr.clone();
    fold::fold(&mut folded);
    match eval(&folded, &NoColumns, &env) {
        Ok(value) => {
            use_value(expr.ty(), &value);
            true
        }
        Err(_) => false,
    }
}

/// Runs `work` many times; says which inputs made it panic. Gives how often it succeeded.
fn every(calls: u64, seed: u64, mut work: impl FnMut(&mut Prng, &mut String) -> bool) -> u64 {
    let mut prng = Prng::new(seed);
    let (mut succeeded, mut panics) = (0, Vec::new());
    for _ in 0..calls {
        let mut input = String::new();
        let outcome = catch_unwind(AssertUnwindSafe(|| work(&mut prng, &mut input)));
        match outcome {
            Ok(done) => succeeded += u64::from(done),
            Err(_) => panics.push(input),
        }
    }
    assert!(panics.is_empty(), "panics:\n{}", panics.join("\n"));
    succeeded
}

/// Calls every second function and operator, from the first or the second one on.
fn functions_and_operators_do_not_panic(first: usize) {
    let mut entries = all();
    for symbol in OPERATORS {
        entries.extend(operators(symbol));
        entries.extend(prefix_operators(symbol));
    }
    let calls = CALLS / 2;
    let mut turn = first;
    let succeeded = every(calls, 5 + first as u64, |prng, input| {
        turn += 2;
        let entry = &entries[turn % entries.len()];
        let Some(expr) = call(prng, &entries, entry, 2) else {
            return false;
        };
        *input = format!("{expr:?}");
        compute(&expr)
    });
    assert!(succeeded > calls / 4, "{succeeded} of {calls} have a value");
}

// Two tests, so that they run side by side.
#[test]
fn no_function_or_operator_panics() {
    functions_and_operators_do_not_panic(0);
}

#[test]
fn no_other_function_or_operator_panics() {
    functions_and_operators_do_not_panic(1);
}

#[test]
fn no_conversion_panics() {
    let succeeded = every(CALLS / 2, 6, |prng, input| {
        let (from, to) = (pick(prng, &TYPES), pick(prng, &TYPES));
        let from = if prng.below(3) == 0 { Type::Text } else { from };
        let arg = Expr::Const(value(prng, from), from);
        *input = format!("{arg:?} as {}", to.name());
        let cast = coerce(arg, to, Context::Explicit);
        cast.is_ok_and(|expr| compute(&expr))
    });
    assert!(succeeded > CALLS / 20, "{succeeded} have a value");
}

#[test]
fn no_aggregate_panics() {
    let names: Vec<&str> =
        "count sum avg min max bool_and bool_or every bit_and bit_or string_agg \
                            array_agg stddev stddev_samp stddev_pop variance var_samp var_pop \
                            json_agg jsonb_agg json_object_agg jsonb_object_agg regr_count \
                            range_agg range_intersect_agg \
                            regr_sxx regr_syy regr_sxy regr_avgx regr_avgy regr_r2 regr_slope \
                            regr_intercept covar_pop covar_samp corr"
            .split_whitespace()
            .collect();
    assert!(names.iter().all(|name| is_aggregate(name)));
    let succeeded = every(CALLS / 10, 7, |prng, input| {
        let (name, ty) = (pick(prng, &names), pick(prng, &TYPES));
        let columns = |prng: &mut Prng| {
            let pairs = ["string_agg", "corr"].contains(&name)
                || name.ends_with("object_agg")
                || ["regr_", "covar_"]
                    .iter()
                    .any(|start| name.starts_with(start));
            let count = if pairs { 2 } else { 1 };
            (0..count)
                .map(|_| Expr::Const(value(prng, ty), ty))
                .collect()
        };
        let Ok((func, _, ret)) = AggFunc::resolve(name, columns(prng), false) else {
            return false;
        };
        let distinct = prng.below(4) == 0;
        let mut states = [AggState::new(func, distinct), AggState::new(func, distinct)];
        for state in &mut states {
            for _ in 0..prng.below(6) {
                let (_, args, _) = AggFunc::resolve(name, columns(prng), false).expect("as before");
                *input += &format!("{name} {args:?} ");
                let args = args.iter().map(|arg| eval(arg, &NoColumns, &Env::NONE));
                let Ok(args) = args.collect::<Result<Vec<_>, _>>() else {
                    return false;
                };
                if state.update(&args).is_err() {
                    return false;
                }
            }
        }
        let [mut one, other] = states;
        let merged = other.partial().and_then(|partial| one.merge(&partial));
        let Ok(value) = merged.and_then(|()| one.finish()) else {
            return false;
        };
        use_value(ret, &value);
        true
    });
    assert!(succeeded > CALLS / 40, "{succeeded} have a value");
}

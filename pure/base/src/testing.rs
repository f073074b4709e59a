//! Random values of every type for model tests; small ranges so that equal values meet often.

use crate::calendar::{DATE_MAX, DATE_MIN, MICROS_PER_DAY, TIMESTAMP_END, TIMESTAMP_MIN};
use crate::{Datum, Decimal, Interval, Jsonb, Prng, Type};

/// One type of every encoding, arrays of every kind.
pub(crate) fn all_types() -> Vec<Type> {
    let arrays = Type::elements().filter_map(Type::array_of);
    let mut types: Vec<Type> = Type::elements().chain(arrays).collect();
    types.push(Type::Unknown);
    types
}

/// A number of up to `bits` bits, all sizes equally likely, edges included.
fn sized(prng: &mut Prng, bits: u64) -> i64 {
    let shift = 64 - prng.between(1, bits as i64) as u32;
    match prng.below(8) {
        0 => i64::MIN >> (64 - bits),
        1 => i64::MAX >> (64 - bits),
        2 => prng.between(-3, 130),
        _ => (prng.next_u64() as i64) >> shift,
    }
}

pub(crate) fn random_decimal(prng: &mut Prng) -> Decimal {
    loop {
        let digits = prng.below(39) as u32;
        let wide = (i128::from(prng.next_u64()) << 64 | i128::from(prng.next_u64())) >> 1;
        let unscaled = match prng.below(4) {
            0 => i128::from(prng.between(-20, 20)) * 10i128.pow(prng.below(20) as u32),
            1 => i128::from(prng.between(-1, 1)) * (10i128.pow(digits) - 1),
            _ => wide % 10i128.pow(digits),
        };
        let scale = match prng.below(3) {
            0 => 0,
            1 => prng.below(4) as u8,
            _ => prng.below(39) as u8,
        };
        if let Some(value) = Decimal::from_parts(unscaled, scale) {
            return value;
        }
    }
}

fn random_float(prng: &mut Prng) -> f64 {
    match prng.below(10) {
        0 => 0.0,
        1 => -0.0,
        2 => f64::NAN,
        3 => f64::INFINITY,
        4 => f64::NEG_INFINITY,
        5 => prng.between(-10, 10) as f64 / 4.0,
        6 => f64::MIN_POSITIVE / 8.0,
        _ => f64::from_bits(prng.next_u64()),
    }
}

pub(crate) fn random_text(prng: &mut Prng) -> String {
    const ALPHABET: [char; 12] = [
        'a',
        'b',
        'B',
        ' ',
        '"',
        '\\',
        ',',
        '{',
        '}',
        '\u{1}',
        '\u{e9}',
        '\u{1f600}',
    ];
    (0..prng.below(6))
        .map(|_| ALPHABET[prng.below(12) as usize])
        .collect()
}

/// A value of type `ty`, NULL now and then.
pub(crate) fn random_datum(prng: &mut Prng, ty: Type) -> Datum {
    if prng.below(12) == 0 {
        Datum::Null
    } else {
        random_value(prng, ty)
    }
}

/// A value of type `ty`, never NULL.
pub(crate) fn random_value(prng: &mut Prng, ty: Type) -> Datum {
    match ty {
        Type::Bool => Datum::Bool(prng.below(2) == 1),
        Type::Int2 => Datum::Int(sized(prng, 16)),
        Type::Int4 => Datum::Int(sized(prng, 32)),
        Type::Int8 => Datum::Int(sized(prng, 64)),
        Type::Oid | Type::Reg(_) | Type::Enum(_) | Type::Xid => {
            Datum::Int(i64::from(sized(prng, 64) as u32))
        }
        // What the binary form has room for.
        Type::Tid => Datum::Int(sized(prng, 64) & ((1 << 48) - 1)),
        Type::Float4 => Datum::Float(f64::from(random_float(prng) as f32)),
        Type::Float8 => Datum::Float(random_float(prng)),
        Type::Numeric(_) => Datum::Decimal(random_decimal(prng)),
        Type::Text | Type::Varchar(_) | Type::Name | Type::Unknown => {
            Datum::from(random_text(prng))
        }
        Type::Char(_) => Datum::from(random_text(prng).trim_end_matches(' ')),
        Type::InternalChar => Datum::from(["", "a", "r", "\u{e9}"][prng.below(4) as usize]),
        Type::Json => Datum::from(random_json(prng, 2)),
        Type::Jsonb => Datum::Jsonb(Jsonb::parse(&random_json(prng, 2)).expect("it is JSON")),
        Type::Bytea => {
            let bytes: Vec<u8> = (0..prng.below(5))
                .map(|_| [0, 1, 0xfe, 0xff][prng.below(4) as usize])
                .collect();
            Datum::from(bytes)
        }
        Type::Date => Datum::Date(match prng.below(6) {
            0 => [i32::MIN, i32::MAX, DATE_MIN, DATE_MAX][prng.below(4) as usize],
            1 => prng.between(DATE_MIN.into(), DATE_MAX.into()) as i32,
            _ => prng.between(-40_000, 40_000) as i32,
        }),
        Type::Time(_) => Datum::Time(match prng.below(6) {
            0 => [0, MICROS_PER_DAY][prng.below(2) as usize],
            1 => prng.between(0, 24) * (MICROS_PER_DAY / 24),
            _ => prng.between(0, MICROS_PER_DAY),
        }),
        Type::Timestamp(_) | Type::Timestamptz(_) => Datum::Timestamp(match prng.below(6) {
            0 => [i64::MIN, i64::MAX, TIMESTAMP_MIN, TIMESTAMP_END - 1][prng.below(4) as usize],
            1 => prng.between(TIMESTAMP_MIN, TIMESTAMP_END - 1),
            2 => prng.between(-10, 10) * 1_000_000,
            _ => sized(prng, 52),
        }),
        Type::Uuid => {
            let mut bytes = [0xff; 16];
            bytes[prng.below(16) as usize] = prng.below(3) as u8;
            Datum::Uuid(bytes)
        }
        Type::Interval => Datum::Interval(Interval {
            months: sized(prng, 10) as i32,
            days: sized(prng, 10) as i32,
            micros: sized(prng, 50),
        }),
        Type::Array(kind) => {
            let items: Vec<Datum> = (0..prng.below(4))
                .map(|_| random_datum(prng, kind.element()))
                .collect();
            Datum::from(items)
        }
    }
}

/// A text of JSON with numbers of several scales, blanks and keys that meet.
fn random_json(prng: &mut Prng, depth: u32) -> String {
    const SCALARS: [&str; 12] = [
        "null",
        "true",
        "false",
        "0",
        "1",
        "1.0",
        "-12.50",
        "1e3",
        "\"\"",
        "\"a\"",
        "\"\\u0001\"",
        "\"\u{e9}\\n\"",
    ];
    let kinds = if depth == 0 { 1 } else { 3 };
    let count = prng.below(4);
    let parts = |prng: &mut Prng, key: bool| {
        let parts = (0..count).map(|_| {
            let value = random_json(prng, depth - 1);
            let name = ["", "a", "b", "aa"][prng.below(4) as usize];
            if key {
                format!("\"{name}\" :{value}")
            } else {
                value
            }
        });
        parts.collect::<Vec<_>>().join(" ,")
    };
    match prng.below(kinds) {
        0 => SCALARS[prng.below(12) as usize].into(),
        1 => format!("[{}]", parts(prng, false)),
        _ => format!("{{{}}}", parts(prng, true)),
    }
}

/// Equality that sees every bit: the scale of decimals and the sign of zero count, NaN equals NaN.
pub(crate) fn same(a: &Datum, b: &Datum) -> bool {
    match (a, b) {
        (Datum::Float(a), Datum::Float(b)) => {
            a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan())
        }
        (Datum::Decimal(a), Datum::Decimal(b)) => a == b && a.scale() == b.scale(),
        (Datum::Jsonb(a), Datum::Jsonb(b)) => a.as_str() == b.as_str(),
        (Datum::Array(a), Datum::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b.iter()).all(|(a, b)| same(a, b))
        }
        _ => a == b,
    }
}

//! Random values of every type for model tests; small ranges so that equal values meet often.

use crate::bits::Bits;
use crate::calendar::{DATE_MAX, DATE_MIN, MICROS_PER_DAY, TIMESTAMP_END, TIMESTAMP_MIN};
use crate::datum::{Timetz, ZONE_SECONDS_MAX};
use crate::grid::{Dimension, Shape};
use crate::inet::Inet;
use crate::{Datum, Decimal, Interval, Jsonb, Multirange, Prng, Range, RangeKind, Record, Type};

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

fn random_path(prng: &mut Prng) -> Datum {
    let paths = ["$", "$.\"a\"[0]", "strict $?(@ > 1)"];
    Datum::from(paths[prng.below(3) as usize])
}

/// A numeric of any size, NaN or infinite; mostly a small one.
pub(crate) fn random_numeric(prng: &mut Prng) -> Datum {
    let text = match prng.below(12) {
        0 => ["NaN", "Infinity", "-Infinity"][prng.below(3) as usize].into(),
        1 => format!("{}e{}", prng.between(-99, 99), prng.between(-90, 90)),
        2 => format!("{}.{:0>60}", prng.between(-3, 3), prng.below(20)),
        3 => {
            let digits: String = (0..prng.between(1, 90))
                .map(|_| char::from(b'0' + prng.below(10) as u8))
                .collect();
            format!("{digits}e{}", prng.between(-60, 30))
        }
        _ => return Datum::Decimal(random_decimal(prng)),
    };
    crate::numeric::parse(&text).expect("a number")
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

fn random_record(prng: &mut Prng) -> Datum {
    let types = [Type::Int4, Type::Text];
    let values = types.map(|ty| random_datum(prng, ty)).to_vec();
    Datum::Record(Box::new(Record::new(&types, values).expect("it is flat")))
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
        Type::Composite(_) => random_record(prng),
        Type::Tid => Datum::Int(sized(prng, 64) & ((1 << 48) - 1)),
        Type::Float4 => Datum::Float(f64::from(random_float(prng) as f32)),
        Type::Float8 => Datum::Float(random_float(prng)),
        Type::Numeric(_) => random_numeric(prng),
        Type::Text | Type::Varchar(_) | Type::Name | Type::Unknown => {
            Datum::from(random_text(prng))
        }
        Type::Char(_) => Datum::from(random_text(prng).trim_end_matches(' ')),
        Type::InternalChar => Datum::from(["", "a", "r", "\u{e9}"][prng.below(4) as usize]),
        Type::Json => Datum::from(random_json(prng, 2)),
        Type::JsonPath => random_path(prng),
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
        Type::Uuid => random_uuid(prng),
        Type::Timetz(_) => Datum::Timetz(random_timetz(prng)),
        Type::Bit(_) | Type::Varbit(_) => random_bits(prng),
        Type::Inet | Type::Cidr | Type::Macaddr => random_address(prng, ty),
        Type::Range(kind) => random_range(prng, kind).into(),
        Type::Multirange(kind) => random_multirange(prng, kind),
        Type::Interval(_) => random_interval(prng),
        Type::Array(kind) => {
            let mut items = |count: u64| -> Vec<Datum> {
                let items = (0..count).map(|_| random_datum(prng, kind.element()));
                items.collect()
            };
            let few = items(3);
            let dimension = |length: i32, lower: i32| Dimension { length, lower };
            let shape = |dimensions: &[Dimension]| Shape::new(dimensions).expect("it is small");
            match prng.below(8) {
                0 => Datum::shaped(shape(&[dimension(1, 1), dimension(3, 1)]), few),
                1 => Datum::shaped(shape(&[dimension(3, 1), dimension(1, 1)]), few),
                2 => Datum::shaped(shape(&[dimension(3, prng.between(-2, 3) as i32)]), few),
                length => few[..(length as usize).saturating_sub(4)].to_vec().into(),
            }
        }
    }
}

fn random_interval(prng: &mut Prng) -> Datum {
    Datum::Interval(Interval {
        months: sized(prng, 10) as i32,
        days: sized(prng, 10) as i32,
        micros: sized(prng, 50),
    })
}

fn random_multirange(prng: &mut Prng, kind: RangeKind) -> Datum {
    let ranges = (0..prng.below(4)).map(|_| random_range(prng, kind));
    Multirange::of(ranges.collect()).into()
}

fn random_range(prng: &mut Prng, kind: RangeKind) -> Range {
    let mut values = [(); 2].map(|()| match prng.below(5) {
        0 => Datum::Null,
        _ => random_value(prng, kind.bound()),
    });
    if values.iter().all(|value| !value.is_null()) && values[0].compare(&values[1]).is_gt() {
        values.reverse();
    }
    let inclusive = [(); 2].map(|()| prng.below(2) == 1);
    // The last values have no next one.
    Range::new(kind, values, inclusive).unwrap_or(Range::EMPTY)
}

fn random_bits(prng: &mut Prng) -> Datum {
    let bytes = [prng.below(3) as u8, 0xff, prng.next_u64() as u8];
    Datum::Bits(Bits::of_bytes(&bytes, prng.below(25) as usize))
}

fn random_timetz(prng: &mut Prng) -> Timetz {
    const HOUR: i64 = MICROS_PER_DAY / 24;
    let micros = match prng.below(3) {
        0 => prng.between(0, 24) * HOUR,
        1 => MICROS_PER_DAY,
        _ => prng.between(0, MICROS_PER_DAY),
    };
    let most = i64::from(ZONE_SECONDS_MAX);
    let west = match prng.below(3) {
        0 => prng.between(-most, most),
        _ => prng.between(-15, 15) * 3_600,
    };
    Timetz::new(micros, west as i32).expect("both are in their range")
}

fn random_uuid(prng: &mut Prng) -> Datum {
    let mut bytes = [0xff; 16];
    bytes[prng.below(16) as usize] = prng.below(3) as u8;
    Datum::Uuid(bytes)
}

fn random_address(prng: &mut Prng, ty: Type) -> Datum {
    let mut bytes = [0u8; 16];
    bytes[prng.below(16) as usize] = prng.below(3) as u8;
    bytes[0] = [0, 10, 192, 255][prng.below(4) as usize];
    if ty == Type::Macaddr {
        return Datum::Mac(*bytes.first_chunk().expect("there are more"));
    }
    let length = [4, 16][prng.below(2) as usize];
    let bits = prng.below(length as u64 * 8 + 1) as u8;
    let value = Inet::new(&bytes[..length], bits).expect("the mask fits");
    Datum::Inet(match ty {
        Type::Cidr => value.network(),
        _ => value,
    })
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
        (Datum::Large(a), Datum::Large(b)) => a == b && a.scale() == b.scale(),
        (Datum::Jsonb(a), Datum::Jsonb(b)) => a.as_str() == b.as_str(),
        (Datum::Array(a), Datum::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b.iter()).all(|(a, b)| same(a, b))
        }
        (Datum::Grid(a), Datum::Grid(b)) => {
            let pairs = || a.items().iter().zip(b.items());
            a.shape() == b.shape() && pairs().all(|(a, b)| same(a, b))
        }
        (Datum::Range(a), Datum::Range(b)) => same_range(a, b),
        (Datum::Multirange(a), Datum::Multirange(b)) => {
            let (a, b) = (a.ranges(), b.ranges());
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same_range(a, b))
        }
        _ => a == b,
    }
}

fn same_range(a: &Range, b: &Range) -> bool {
    let mut bounds = a.values().iter().zip(b.values());
    a == b && bounds.all(|(a, b)| same(a, b))
}

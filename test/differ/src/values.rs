//! Literals of each type. Most are small, so that values are equal often and sums stay in range;
//! some are the ends of the range of their type.

use base::types::ArrayKind;
use base::{Prng, RangeKind, Type};

/// The types that are drawn: all but those of JSON, and some arrays.
pub(crate) const TYPES: [Type; 39] = {
    let mut all = [Type::Bool; 39];
    let (mut from, mut to) = (0, 0);
    while from < Type::SCALARS.len() {
        let ty = Type::SCALARS[from];
        if !matches!(ty, Type::Json | Type::Jsonb | Type::JsonPath) {
            all[to] = ty;
            to += 1;
        }
        from += 1;
    }
    all[35] = INT4S;
    all[36] = INT8S;
    all[37] = TEXTS;
    all[38] = NUMERICS;
    all
};
pub(crate) const INT4S: Type = Type::Array(ArrayKind::Int4);
pub(crate) const INT8S: Type = Type::Array(ArrayKind::Int8);
pub(crate) const TEXTS: Type = Type::Array(ArrayKind::Text);
pub(crate) const NUMERICS: Type = Type::Array(ArrayKind::Numeric(None));

/// The arrays that are drawn, with their elements.
pub(crate) const ARRAYS: [(Type, Type); 4] = [
    (INT4S, Type::Int4),
    (INT8S, Type::Int8),
    (TEXTS, Type::Text),
    (NUMERICS, Type::Numeric(None)),
];

/// The type as it is written in a cast.
pub(crate) fn written(ty: Type) -> String {
    match ty {
        Type::Char(0) => "bpchar".into(),
        ty => ty.name(),
    }
}

/// A literal of this type, with a cast where the literal alone would have another type.
pub(crate) fn literal(prng: &mut Prng, ty: Type) -> String {
    let plain = content(prng, ty);
    match ty {
        Type::Bool => plain,
        Type::Int4 if !plain.starts_with('-') => plain,
        Type::Int4 => format!("({plain})"),
        Type::Numeric(_) if plain.contains('.') && !plain.starts_with('-') => plain,
        Type::Date => format!("DATE '{plain}'"),
        Type::Time(None) => format!("TIME '{plain}'"),
        Type::Timestamp(None) => format!("TIMESTAMP '{plain}'"),
        Type::Interval(_) => format!("INTERVAL '{plain}'"),
        Type::Text if prng.below(3) == 0 => format!("'{plain}'"),
        ty => format!("'{plain}'::{}", written(ty)),
    }
}

/// A literal of this type, or NULL, without a cast.
pub(crate) fn untyped(prng: &mut Prng, ty: Type) -> String {
    match prng.below(3) {
        0 => "NULL".into(),
        _ => format!("'{}'", content(prng, ty)),
    }
}

/// The text form of a value of this type, quotes doubled.
fn content(prng: &mut Prng, ty: Type) -> String {
    if ty.is_numeric() {
        return number(prng, ty);
    }
    match ty {
        Type::Bool => pick(prng, &["true", "false"]).into(),
        Type::Varchar(_) | Type::Text | Type::Name => text(prng).into(),
        Type::Char(_) => pick(prng, &["", "a", "ab", "xyz", " q", "Z"]).into(),
        Type::Bytea => pick(
            prng,
            &[r"\x", r"\x00", r"\x6162", r"\xdeadbeef", r"\xff00ff", "abc"],
        )
        .into(),
        Type::Date => date(prng).into(),
        Type::Time(None) => time(prng).into(),
        Type::Timestamp(None) => format!("{} {}", date(prng), time(prng)),
        Type::Timestamptz(None) => {
            let zone = pick(prng, &["+00", "+02", "-05:30"]);
            format!("{} {}{zone}", date(prng), time(prng))
        }
        Type::Uuid => pick(
            prng,
            &[
                "00000000-0000-0000-0000-000000000000",
                "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
                "ffffffff-ffff-ffff-ffff-ffffffffffff",
            ],
        )
        .into(),
        Type::Timetz(None) => {
            let zone = pick(prng, &["+00", "+02", "-05:30"]);
            format!("{}{zone}", time(prng))
        }
        Type::Bit(_) | Type::Varbit(_) => pick(
            prng,
            &["", "0", "1", "101", "1101", "00000001", "1111000011"],
        )
        .into(),
        Type::Inet | Type::Cidr | Type::Macaddr => address(prng, ty).into(),
        Type::Interval(_) => pick(
            prng,
            &[
                "1 day",
                "-2 hours",
                "3 months",
                "1 year 2 mons",
                "00:00:01.5",
                "10 days -1 hour",
                "0",
                "90 minutes",
                "-1 mon +1 day",
                "1 week",
            ],
        )
        .into(),
        Type::Array(kind) => array(prng, kind),
        Type::Range(kind) => range(prng, kind),
        Type::Multirange(kind) => {
            let count = prng.below(4);
            let ranges: Vec<String> = (0..count).map(|_| range(prng, kind)).collect();
            format!("{{{}}}", ranges.join(","))
        }
        Type::Oid | Type::Xid => prng.below(30).to_string(),
        Type::Tid => format!("({},{})", prng.below(3), prng.below(4)),
        Type::InternalChar => "r".into(),
        Type::Unknown => text(prng).into(),
        number => unreachable!("{number:?} is drawn above"),
    }
}

/// A range of few values, at times an infinite or empty one.
fn range(prng: &mut Prng, kind: RangeKind) -> String {
    let bounds: &[&str] = match kind {
        RangeKind::Int4 | RangeKind::Int8 => &["-3", "1", "2", "5", "6", "7", "40"],
        RangeKind::Numeric => &["-2.5", "1", "1.0", "1.5", "7", "33.333"],
        RangeKind::Date => &["2020-02-28", "2020-02-29", "2020-03-01", "2024-07-04"],
        RangeKind::Timestamp | RangeKind::Timestamptz => {
            &["2020-02-29", "2020-02-29 12:00", "2023-03-31 23:59:59.5"]
        }
    };
    if prng.below(8) == 0 {
        return "empty".into();
    }
    let low = prng.below(bounds.len() as u64) as usize;
    let high = low + prng.below((bounds.len() - low) as u64) as usize;
    let shown = |prng: &mut Prng, at: usize| match prng.below(6) {
        0 => String::new(),
        _ => format!("\"{}\"", bounds[at]),
    };
    let (open, close) = (pick(prng, &["[", "("]), pick(prng, &["]", ")"]));
    format!("{open}{},{}{close}", shown(prng, low), shown(prng, high))
}

/// An address of a network, a host or a device.
fn address(prng: &mut Prng, ty: Type) -> &'static str {
    let all: &[&'static str] = match ty {
        Type::Inet => &[
            "10.0.0.1",
            "10.1.2.3/8",
            "192.168.1.0/24",
            "0.0.0.0/0",
            "255.255.255.255",
            "::1",
            "fe80::1/64",
            "::ffff:1.2.3.4",
            "1:0:0:2::/100",
        ],
        Type::Cidr => &[
            "10",
            "10.0.0.0/8",
            "192.168.1/24",
            "1.2.3.4/32",
            "::/0",
            "fe80::/10",
            "2001:4f8:3:ba::/64",
        ],
        _ => &[
            "08:00:2b:01:02:03",
            "00-00-00-00-00-00",
            "ffff.ffff.ffff",
            "08002b010203",
        ],
    };
    pick(prng, all)
}

/// A number, at times at the end of its type's range.
fn number(prng: &mut Prng, ty: Type) -> String {
    let edge = prng.below(12) == 0;
    let small = prng.between(-3, 12);
    match ty {
        Type::Int2 if edge => pick(prng, &["32767", "-32768", "100"]).into(),
        Type::Int4 if edge => pick(prng, &["2147483647", "-2147483647", "65536", "1000"]).into(),
        Type::Int8 if edge => pick(
            prng,
            &["9223372036854775807", "-9223372036854775808", "4294967296"],
        )
        .into(),
        Type::Int2 | Type::Int4 | Type::Int8 => small.to_string(),
        Type::Float4 | Type::Float8 if edge => pick(
            prng,
            &["NaN", "Infinity", "-Infinity", "1e20", "1e-7", "-0"],
        )
        .into(),
        Type::Float4 | Type::Float8 => pick(
            prng,
            &["0", "1", "-1", "0.5", "2.25", "-7.75", "100", "1234.5", "3"],
        )
        .into(),
        Type::Numeric(_) if edge => pick(
            prng,
            &[
                "123456789012.345",
                "0.0000001",
                "-99999999.99",
                "1000000000000000000",
                "1e45",
                "-12345678901234567890123456789012345678901234.5",
                "1.5e-45",
                "NaN",
                "Infinity",
                "-Infinity",
            ],
        )
        .into(),
        Type::Numeric(_) => pick(
            prng,
            &[
                "0", "0.00", "1", "-1", "1.5", "-2.50", "10.125", "7", "0.1", "33.333",
            ],
        )
        .into(),
        other => unreachable!("{other:?} is no number"),
    }
}

fn array(prng: &mut Prng, kind: ArrayKind) -> String {
    // Some have two dimensions, or other bounds.
    let (count, parts) = match prng.below(8) {
        0 => (2, 2),
        1 => (1, 2),
        _ => (prng.below(4), 1),
    };
    let element = |prng: &mut Prng| match kind {
        _ if prng.below(7) == 0 => "NULL".to_string(),
        ArrayKind::Text => {
            pick(prng, &["a", "b", "ab", r#""x y""#, r#""""#, "Z", "10"]).to_string()
        }
        ArrayKind::Numeric(None) => pick(prng, &["0", "1.5", "-2.50", "7"]).to_string(),
        _ => prng.between(-3, 9).to_string(),
    };
    let part = |prng: &mut Prng| {
        let elements: Vec<String> = (0..count).map(|_| element(prng)).collect();
        format!("{{{}}}", elements.join(","))
    };
    match parts {
        1 if count > 0 && prng.below(10) == 0 => {
            let low = prng.between(-1, 2);
            format!("[{low}:{}]={}", low + count as i64 - 1, part(prng))
        }
        1 => part(prng),
        _ => format!("{{{},{}}}", part(prng), part(prng)),
    }
}

fn text(prng: &mut Prng) -> &'static str {
    pick(
        prng,
        &[
            "",
            "a",
            "b",
            "abc",
            "ABC",
            "Hello World",
            "x_y%z",
            "10",
            "-7",
            " trim ",
            "äöü",
            "日本",
            "it''s",
            "a,b,c",
            "aaa",
            "2020-02-29",
            "true",
            r"back\slash",
            "Zebra",
            "hello world",
        ],
    )
}

fn date(prng: &mut Prng) -> &'static str {
    pick(
        prng,
        &[
            "2020-02-29",
            "2000-01-01",
            "1999-12-31",
            "2024-07-04",
            "1970-01-01",
            "2023-03-31",
            "0001-01-01",
            "2100-12-31",
        ],
    )
}

fn time(prng: &mut Prng) -> &'static str {
    pick(
        prng,
        &[
            "00:00:00",
            "12:34:56",
            "23:59:59.999999",
            "06:07:08.9",
            "01:30:00",
        ],
    )
}

/// One of these.
pub(crate) fn pick<'a>(prng: &mut Prng, from: &[&'a str]) -> &'a str {
    from[prng.below(from.len() as u64) as usize]
}

//! Functions of dates, timestamps and intervals, and `to_char`.

use super::*;
use functions::DateFunc;

const fn d(name: &'static str, args: &'static [Arg], ret: Type, func: DateFunc) -> Entry {
    f(name, args, ret, Func::Date(func))
}

const fn c(args: &'static [Arg], from: Type) -> Entry {
    f("to_char", args, Type::Text, Func::ToChar(from))
}

/// Entries of this family.
pub(super) static TABLE: &[Entry] = &[
    d("extract", &[TXT, DATE], NUMERIC, DateFunc::Extract),
    d("extract", &[TXT, TS], NUMERIC, DateFunc::Extract),
    d("extract", &[TXT, TSTZ], NUMERIC, DateFunc::ExtractZoned),
    d("extract", &[TXT, SPAN], NUMERIC, DateFunc::Extract),
    d("date_part", &[TXT, DATE], Type::Float8, DateFunc::Extract),
    d("date_part", &[TXT, TS], Type::Float8, DateFunc::Extract),
    d(
        "date_part",
        &[TXT, TSTZ],
        Type::Float8,
        DateFunc::ExtractZoned,
    ),
    d("date_part", &[TXT, SPAN], Type::Float8, DateFunc::Extract),
    d(
        "date_trunc",
        &[TXT, TS],
        Type::Timestamp(None),
        DateFunc::Trunc,
    ),
    d(
        "date_trunc",
        &[TXT, TSTZ],
        Type::Timestamptz(None),
        DateFunc::Trunc,
    ),
    d("date_trunc", &[TXT, SPAN], Type::Interval, DateFunc::Trunc),
    d(
        "date_bin",
        &[SPAN, TS, TS],
        Type::Timestamp(None),
        DateFunc::Bin,
    ),
    d(
        "date_bin",
        &[SPAN, TSTZ, TSTZ],
        Type::Timestamptz(None),
        DateFunc::Bin,
    ),
    d("age", &[TS, TS], Type::Interval, DateFunc::Age),
    d("age", &[TSTZ, TSTZ], Type::Interval, DateFunc::Age),
    d("make_date", &[I4, I4, I4], Type::Date, DateFunc::MakeDate),
    d(
        "make_timestamp",
        &[I4, I4, I4, I4, I4, F8],
        Type::Timestamp(None),
        DateFunc::MakeTimestamp,
    ),
    d(
        "make_timestamptz",
        &[I4, I4, I4, I4, I4, F8],
        Type::Timestamptz(None),
        DateFunc::MakeTimestamp,
    ),
    d("make_interval", &[], Type::Interval, DateFunc::MakeInterval),
    d(
        "make_interval",
        &[I4],
        Type::Interval,
        DateFunc::MakeInterval,
    ),
    d(
        "make_interval",
        &[I4, I4],
        Type::Interval,
        DateFunc::MakeInterval,
    ),
    d(
        "make_interval",
        &[I4, I4, I4],
        Type::Interval,
        DateFunc::MakeInterval,
    ),
    d(
        "make_interval",
        &[I4, I4, I4, I4],
        Type::Interval,
        DateFunc::MakeInterval,
    ),
    d(
        "make_interval",
        &[I4, I4, I4, I4, I4],
        Type::Interval,
        DateFunc::MakeInterval,
    ),
    d(
        "make_interval",
        &[I4, I4, I4, I4, I4, I4],
        Type::Interval,
        DateFunc::MakeInterval,
    ),
    d(
        "make_interval",
        &[I4, I4, I4, I4, I4, I4, F8],
        Type::Interval,
        DateFunc::MakeInterval,
    ),
    d(
        "to_timestamp",
        &[F8],
        Type::Timestamptz(None),
        DateFunc::ToTimestampEpoch,
    ),
    d(
        "to_timestamp",
        &[TXT, TXT],
        Type::Timestamptz(None),
        DateFunc::ToTimestamp,
    ),
    d("to_date", &[TXT, TXT], Type::Date, DateFunc::ToDate),
    d(
        "justify_days",
        &[SPAN],
        Type::Interval,
        DateFunc::JustifyDays,
    ),
    d(
        "justify_hours",
        &[SPAN],
        Type::Interval,
        DateFunc::JustifyHours,
    ),
    d(
        "justify_interval",
        &[SPAN],
        Type::Interval,
        DateFunc::JustifyInterval,
    ),
    d("isfinite", &[DATE], Type::Bool, DateFunc::IsFinite),
    d("isfinite", &[TS], Type::Bool, DateFunc::IsFinite),
    d("isfinite", &[TSTZ], Type::Bool, DateFunc::IsFinite),
    d("isfinite", &[SPAN], Type::Bool, DateFunc::IsFinite),
    d(
        "timezone",
        &[TXT, TS],
        Type::Timestamptz(None),
        DateFunc::AtTimeZone,
    ),
    d(
        "timezone",
        &[TXT, TSTZ],
        Type::Timestamp(None),
        DateFunc::AtTimeZone,
    ),
    d(
        "timezone",
        &[SPAN, TS],
        Type::Timestamptz(None),
        DateFunc::AtTimeZone,
    ),
    d(
        "timezone",
        &[SPAN, TSTZ],
        Type::Timestamp(None),
        DateFunc::AtTimeZone,
    ),
    d(
        "overlaps",
        &[TS, TS, TS, TS],
        Type::Bool,
        DateFunc::Overlaps,
    ),
    d(
        "overlaps",
        &[TS, SPAN, TS, SPAN],
        Type::Bool,
        DateFunc::Overlaps,
    ),
    d(
        "overlaps",
        &[TS, TS, TS, SPAN],
        Type::Bool,
        DateFunc::Overlaps,
    ),
    d(
        "overlaps",
        &[TS, SPAN, TS, TS],
        Type::Bool,
        DateFunc::Overlaps,
    ),
    d(
        "overlaps",
        &[TSTZ, TSTZ, TSTZ, TSTZ],
        Type::Bool,
        DateFunc::Overlaps,
    ),
    d(
        "overlaps",
        &[TSTZ, SPAN, TSTZ, SPAN],
        Type::Bool,
        DateFunc::Overlaps,
    ),
    d(
        "overlaps",
        &[TSTZ, TSTZ, TSTZ, SPAN],
        Type::Bool,
        DateFunc::Overlaps,
    ),
    d(
        "overlaps",
        &[TSTZ, SPAN, TSTZ, TSTZ],
        Type::Bool,
        DateFunc::Overlaps,
    ),
    c(&[TS, TXT], Type::Timestamp(None)),
    c(&[TSTZ, TXT], Type::Timestamptz(None)),
    c(&[SPAN, TXT], Type::Interval),
    c(&[I4, TXT], Type::Int4),
    c(&[I8, TXT], Type::Int8),
    c(&[F4, TXT], Type::Float4),
    c(&[F8, TXT], Type::Float8),
    c(&[NUM, TXT], NUMERIC),
];

//! Functions of dates, times, timestamps and intervals, and `to_char`.

use super::*;
use functions::DateFunc;

/// Functions of this family.
pub(super) static TABLE: &[Function] = table! {
    "extract": Func::Date(DateFunc::Extract) => (TXT, DATE) NUM, (TXT, TS) NUM;
    "extract": Func::Date(DateFunc::ExtractZoned) => (TXT, TSTZ) NUM;
    "extract": Func::Date(DateFunc::Extract) => (TXT, SPAN) NUM, (TXT, TIME) NUM;
    "extract": Func::Date(DateFunc::ExtractZoned) => (TXT, TIMETZ) NUM;
    "date_part": Func::Date(DateFunc::Extract) => (TXT, DATE) F8, (TXT, TS) F8;
    "date_part": Func::Date(DateFunc::ExtractZoned) => (TXT, TSTZ) F8;
    "date_part": Func::Date(DateFunc::Extract) => (TXT, SPAN) F8, (TXT, TIME) F8;
    "date_part": Func::Date(DateFunc::ExtractZoned) => (TXT, TIMETZ) F8;
    "date_trunc": Func::Date(DateFunc::Trunc) => (TXT, TS) TS, (TXT, TSTZ) TSTZ, (TXT, SPAN) SPAN;
    "date_bin": Func::Date(DateFunc::Bin) => (SPAN, TS, TS) TS, (SPAN, TSTZ, TSTZ) TSTZ;
    "age": Func::Date(DateFunc::Age) => (TS, TS) SPAN, (TSTZ, TSTZ) SPAN;
    "make_date": Func::Date(DateFunc::MakeDate) => (I4, I4, I4) DATE;
    "make_time": Func::Date(DateFunc::MakeTime) => (I4, I4, F8) TIME;
    "make_timestamp": Func::Date(DateFunc::MakeTimestamp) => (I4, I4, I4, I4, I4, F8) TS;
    "make_timestamptz": Func::Date(DateFunc::MakeTimestamp) => (I4, I4, I4, I4, I4, F8) TSTZ;
    "make_interval": Func::Date(DateFunc::MakeInterval) => () SPAN, (I4) SPAN, (I4, I4) SPAN,
        (I4, I4, I4) SPAN, (I4, I4, I4, I4) SPAN, (I4, I4, I4, I4, I4) SPAN,
        (I4, I4, I4, I4, I4, I4) SPAN, (I4, I4, I4, I4, I4, I4, F8) SPAN;
    "to_timestamp": Func::Date(DateFunc::ToTimestampEpoch) => (F8) TSTZ;
    "to_timestamp": Func::Date(DateFunc::ToTimestamp) => (TXT, TXT) TSTZ;
    "to_date": Func::Date(DateFunc::ToDate) => (TXT, TXT) DATE;
    "justify_days": Func::Date(DateFunc::JustifyDays) => (SPAN) SPAN;
    "justify_hours": Func::Date(DateFunc::JustifyHours) => (SPAN) SPAN;
    "justify_interval": Func::Date(DateFunc::JustifyInterval) => (SPAN) SPAN;
    "isfinite": Func::Date(DateFunc::IsFinite) => (DATE) BOOL, (TS) BOOL, (TSTZ) BOOL, (SPAN) BOOL;
    "timezone": Func::Date(DateFunc::AtTimeZone) => (TXT, TS) TSTZ, (TXT, TSTZ) TS, (SPAN, TS) TSTZ,
        (SPAN, TSTZ) TS, (TXT, TIMETZ) TIMETZ, (SPAN, TIMETZ) TIMETZ;
    "overlaps": Func::Date(DateFunc::Overlaps) => (TS, TS, TS, TS) BOOL, (TS, SPAN, TS, SPAN) BOOL,
        (TS, TS, TS, SPAN) BOOL, (TS, SPAN, TS, TS) BOOL, (TSTZ, TSTZ, TSTZ, TSTZ) BOOL,
        (TSTZ, SPAN, TSTZ, SPAN) BOOL, (TSTZ, TSTZ, TSTZ, SPAN) BOOL, (TSTZ, SPAN, TSTZ, TSTZ) BOOL,
        (TIME, TIME, TIME, TIME) BOOL, (TIME, SPAN, TIME, SPAN) BOOL, (TIME, TIME, TIME, SPAN) BOOL,
        (TIME, SPAN, TIME, TIME) BOOL, (TIMETZ, TIMETZ, TIMETZ, TIMETZ) BOOL;
    "to_char": Func::ToChar(Type::Timestamp(None)) => (TS, TXT) TXT;
    "to_char": Func::ToChar(Type::Timestamptz(None)) => (TSTZ, TXT) TXT;
    "to_char": Func::ToChar(Type::Interval(None)) => (SPAN, TXT) TXT;
    "to_char": Func::ToChar(Type::Int4) => (I4, TXT) TXT;
    "to_char": Func::ToChar(Type::Int8) => (I8, TXT) TXT;
    "to_char": Func::ToChar(Type::Float4) => (F4, TXT) TXT;
    "to_char": Func::ToChar(Type::Float8) => (F8, TXT) TXT;
    "to_char": Func::ToChar(Type::Numeric(None)) => (NUM, TXT) TXT;
};

//! Functions of ranges and multiranges.

use super::*;
use base::RangeKind;
use functions::RangeFunc;

const R4: Arg = Arg::Is(Type::Range(RangeKind::Int4));
const R8: Arg = Arg::Is(Type::Range(RangeKind::Int8));
const RNUM: Arg = Arg::Is(Type::Range(RangeKind::Numeric));
const RDATE: Arg = Arg::Is(Type::Range(RangeKind::Date));
const RTS: Arg = Arg::Is(Type::Range(RangeKind::Timestamp));
const RTSTZ: Arg = Arg::Is(Type::Range(RangeKind::Timestamptz));
const M4: Arg = Arg::Is(Type::Multirange(RangeKind::Int4));
const M8: Arg = Arg::Is(Type::Multirange(RangeKind::Int8));
const MNUM: Arg = Arg::Is(Type::Multirange(RangeKind::Numeric));
const MDATE: Arg = Arg::Is(Type::Multirange(RangeKind::Date));
const MTS: Arg = Arg::Is(Type::Multirange(RangeKind::Timestamp));
const MTSTZ: Arg = Arg::Is(Type::Multirange(RangeKind::Timestamptz));

pub(super) static TABLE: &[Function] = table! {
    "int4range": Func::Range(RangeFunc::Make) => (I4, I4) R4, (I4, I4, TXT) R4;
    "int8range": Func::Range(RangeFunc::Make) => (I8, I8) R8, (I8, I8, TXT) R8;
    "numrange": Func::Range(RangeFunc::Make) => (NUM, NUM) RNUM, (NUM, NUM, TXT) RNUM;
    "daterange": Func::Range(RangeFunc::Make) => (DATE, DATE) RDATE, (DATE, DATE, TXT) RDATE;
    "tsrange": Func::Range(RangeFunc::Make) => (TS, TS) RTS, (TS, TS, TXT) RTS;
    "tstzrange": Func::Range(RangeFunc::Make) => (TSTZ, TSTZ) RTSTZ, (TSTZ, TSTZ, TXT) RTSTZ;
    "int4multirange": Func::Range(RangeFunc::Collect) => () M4, (; R4) M4;
    "int8multirange": Func::Range(RangeFunc::Collect) => () M8, (; R8) M8;
    "nummultirange": Func::Range(RangeFunc::Collect) => () MNUM, (; RNUM) MNUM;
    "datemultirange": Func::Range(RangeFunc::Collect) => () MDATE, (; RDATE) MDATE;
    "tsmultirange": Func::Range(RangeFunc::Collect) => () MTS, (; RTS) MTS;
    "tstzmultirange": Func::Range(RangeFunc::Collect) => () MTSTZ, (; RTSTZ) MTSTZ;
    "multirange": Func::Range(RangeFunc::Collect) => (RANGE) RANGES;
    "lower": Func::Range(RangeFunc::Lower) => (RANGE) BOUND, (RANGES) BOUND;
    "upper": Func::Range(RangeFunc::Upper) => (RANGE) BOUND, (RANGES) BOUND;
    "isempty": Func::Range(RangeFunc::IsEmpty) => (RANGE) BOOL, (RANGES) BOOL;
    "lower_inc": Func::Range(RangeFunc::LowerInclusive) => (RANGE) BOOL, (RANGES) BOOL;
    "upper_inc": Func::Range(RangeFunc::UpperInclusive) => (RANGE) BOOL, (RANGES) BOOL;
    "lower_inf": Func::Range(RangeFunc::LowerInfinite) => (RANGE) BOOL, (RANGES) BOOL;
    "upper_inf": Func::Range(RangeFunc::UpperInfinite) => (RANGE) BOOL, (RANGES) BOOL;
    "range_merge": Func::Range(RangeFunc::Merge) => (RANGE, RANGE) RANGE, (RANGES) RANGE;
};

/// Operators with two operands.
pub(super) static INFIX: &[Function] = table! {
    "@>": Func::Range(RangeFunc::Contains) => (RANGE, BOUND) BOOL, (RANGE, RANGE) BOOL,
        (RANGE, RANGES) BOOL, (RANGES, BOUND) BOOL, (RANGES, RANGE) BOOL, (RANGES, RANGES) BOOL;
    "<@": Func::Range(RangeFunc::ContainedBy) => (BOUND, RANGE) BOOL, (RANGE, RANGE) BOOL,
        (RANGES, RANGE) BOOL, (BOUND, RANGES) BOOL, (RANGE, RANGES) BOOL, (RANGES, RANGES) BOOL;
    "&&": Func::Range(RangeFunc::Overlaps) => (RANGE, RANGE) BOOL, (RANGE, RANGES) BOOL,
        (RANGES, RANGE) BOOL, (RANGES, RANGES) BOOL;
    "<<": Func::Range(RangeFunc::Before) => (RANGE, RANGE) BOOL, (RANGE, RANGES) BOOL,
        (RANGES, RANGE) BOOL, (RANGES, RANGES) BOOL;
    ">>": Func::Range(RangeFunc::After) => (RANGE, RANGE) BOOL, (RANGE, RANGES) BOOL,
        (RANGES, RANGE) BOOL, (RANGES, RANGES) BOOL;
    "&<": Func::Range(RangeFunc::OverLeft) => (RANGE, RANGE) BOOL, (RANGE, RANGES) BOOL,
        (RANGES, RANGE) BOOL, (RANGES, RANGES) BOOL;
    "&>": Func::Range(RangeFunc::OverRight) => (RANGE, RANGE) BOOL, (RANGE, RANGES) BOOL,
        (RANGES, RANGE) BOOL, (RANGES, RANGES) BOOL;
    "-|-": Func::Range(RangeFunc::Adjacent) => (RANGE, RANGE) BOOL, (RANGE, RANGES) BOOL,
        (RANGES, RANGE) BOOL, (RANGES, RANGES) BOOL;
    "+": Func::Range(RangeFunc::Union) => (RANGE, RANGE) RANGE, (RANGES, RANGES) RANGES;
    "-": Func::Range(RangeFunc::Minus) => (RANGE, RANGE) RANGE, (RANGES, RANGES) RANGES;
    "*": Func::Range(RangeFunc::Intersect) => (RANGE, RANGE) RANGE, (RANGES, RANGES) RANGES;
};

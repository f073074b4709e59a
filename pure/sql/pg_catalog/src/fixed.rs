//! Rows that hardly depend on the database: schemas, databases, roles, operator classes.

use super::*;

pub(super) fn namespace(cx: &CatalogCx<'_>, out: &mut RowBatch) {
    let own = cx.database.schemas.iter();
    let own = own.map(|(name, number)| (*number, name.as_str()));
    let system = [
        (PG_CATALOG, "pg_catalog"),
        (INFORMATION_SCHEMA, "information_schema"),
    ];
    for (number, name) in system.into_iter().chain(own) {
        let target = ::rights::Target::Schema(cx.database.id.0, name.into());
        let owner = cx.catalog.rights.owner(&target);
        out.push([oid(number), text(name), oid(owner.0), cx.acl(&target)]);
    }
}

pub(super) fn database(cx: &CatalogCx<'_>, out: &mut RowBatch) {
    const UTF8: i64 = 6;
    for (name, database) in &cx.catalog.databases {
        out.push([
            oid(database.id.0),
            text(name.as_str()),
            oid(cx.catalog.owner_of_database(database).0),
            int(UTF8),
            letter('c'),
            flag(false),
            flag(true),
            int(database.connection_limit),
            oid(0),
            oid(0),
            oid(TABLESPACE),
            text("C.UTF-8"),
            text("C.UTF-8"),
            Datum::Null,
            Datum::Null,
            cx.acl(&::rights::Target::Database(database.id.0)),
            text(database.protocol.name()),
        ]);
    }
}

pub(super) fn tablespace(_: &CatalogCx<'_>, out: &mut RowBatch) {
    for (number, name) in [(TABLESPACE, "pg_default"), (1664, "pg_global")] {
        out.push([
            oid(number),
            text(name),
            oid(OWNER),
            Datum::Null,
            Datum::Null,
        ]);
    }
}

pub(super) fn am(_: &CatalogCx<'_>, out: &mut RowBatch) {
    out.push([oid(HEAP), text("heap"), oid(3), letter('t')]);
    out.push([oid(BTREE), text("btree"), oid(330), letter('i')]);
}

pub(super) fn language(_: &CatalogCx<'_>, out: &mut RowBatch) {
    for (number, name, trusted) in [(12, "internal", false), (14, "sql", true)] {
        out.push([
            oid(number),
            text(name),
            oid(OWNER),
            flag(false),
            flag(trusted),
            oid(0),
            oid(0),
            oid(0),
            Datum::Null,
        ]);
    }
}

pub(super) fn collation(_: &CatalogCx<'_>, out: &mut RowBatch) {
    for (number, name, provider) in [
        (COLLATION, "default", 'd'),
        (950, "C", 'c'),
        (951, "POSIX", 'c'),
    ] {
        let locale = if provider == 'c' {
            text(name)
        } else {
            Datum::Null
        };
        out.push([
            oid(number),
            text(name),
            oid(PG_CATALOG),
            oid(OWNER),
            letter(provider),
            flag(true),
            int(-1),
            locale.clone(),
            locale,
            Datum::Null,
            Datum::Null,
        ]);
    }
}

/// An operator class of the only index method.
pub(super) struct OpClass {
    pub(super) oid: u32,
    pub(super) name: &'static str,
    family: u32,
    /// Type of the indexed column.
    pub(super) input: u32,
    /// Type of the stored key if it is another one, else 0.
    stored: u32,
}

const fn opclass_of(oid: u32, name: &'static str, family: u32, input: u32, stored: u32) -> OpClass {
    OpClass {
        oid,
        name,
        family,
        input,
        stored,
    }
}

/// Those that are no default of a type.
pub(super) static OTHER_OPCLASSES: &[OpClass] = &[
    opclass_of(4217, "text_pattern_ops", 2095, 25, 0),
    opclass_of(4218, "varchar_pattern_ops", 2095, 25, 0),
    opclass_of(4219, "bpchar_pattern_ops", 2097, 1042, 0),
];

/// The default of each type.
pub(super) static OPCLASSES: &[OpClass] = &[
    opclass_of(10_002, "bit_ops", 423, 1560, 0),
    opclass_of(10_003, "bool_ops", 424, 16, 0),
    opclass_of(10_004, "bpchar_ops", 426, 1042, 0),
    opclass_of(10_006, "bytea_ops", 428, 17, 0),
    opclass_of(10_007, "char_ops", 429, 18, 0),
    opclass_of(3122, "date_ops", 434, 1082, 0),
    opclass_of(10_012, "float4_ops", 1970, 700, 0),
    opclass_of(3123, "float8_ops", 1970, 701, 0),
    opclass_of(10_015, "inet_ops", 1974, 869, 0),
    opclass_of(1979, "int2_ops", 1976, 21, 0),
    opclass_of(1978, "int4_ops", 1976, 23, 0),
    opclass_of(3124, "int8_ops", 1976, 20, 0),
    opclass_of(10_022, "interval_ops", 1982, 1186, 0),
    opclass_of(10_088, "jsonb_ops", 4033, 3802, 0),
    opclass_of(10_024, "macaddr_ops", 1984, 829, 0),
    opclass_of(types::MULTIRANGE_OPS, "multirange_ops", 4199, 4537, 0),
    opclass_of(10_028, "name_ops", 1994, 19, 2275),
    opclass_of(3125, "numeric_ops", 1988, 1700, 0),
    opclass_of(1981, "oid_ops", 1989, 26, 0),
    opclass_of(types::RANGE_OPS, "range_ops", 3901, 3831, 0),
    opclass_of(3126, "text_ops", 1994, 25, 0),
    opclass_of(10_038, "time_ops", 1996, 1083, 0),
    opclass_of(10_041, "timetz_ops", 2000, 1266, 0),
    opclass_of(3127, "timestamptz_ops", 434, 1184, 0),
    opclass_of(3128, "timestamp_ops", 434, 1114, 0),
    opclass_of(10_065, "uuid_ops", 2968, 2950, 0),
    opclass_of(10_043, "varbit_ops", 2002, 1562, 0),
];

/// Operator families: number and name.
const FAMILIES: [(u32, &str); 23] = [
    (423, "bit_ops"),
    (424, "bool_ops"),
    (426, "bpchar_ops"),
    (428, "bytea_ops"),
    (429, "char_ops"),
    (434, "datetime_ops"),
    (4033, "jsonb_ops"),
    (1970, "float_ops"),
    (1976, "integer_ops"),
    (1982, "interval_ops"),
    (1984, "macaddr_ops"),
    (4199, "multirange_ops"),
    (1974, "network_ops"),
    (1988, "numeric_ops"),
    (1989, "oid_ops"),
    (3901, "range_ops"),
    (1994, "text_ops"),
    (1996, "time_ops"),
    (2000, "timetz_ops"),
    (2968, "uuid_ops"),
    (2002, "varbit_ops"),
    (2095, "text_pattern_ops"),
    (2097, "bpchar_pattern_ops"),
];

/// The types of ranges, those of their bounds and of multiranges, the default operator class of the
/// bounds, and the functions that make ranges equal and tell how far bounds are apart.
pub(super) fn range(_: &CatalogCx<'_>, out: &mut RowBatch) {
    for [own, bound, multirange, class, canonical, distance] in [
        [3904, 23, 4451, 1978, 3914, 3922],
        [3906, 1700, 4532, 3125, 0, 3924],
        [3908, 1114, 4533, 3128, 0, 3929],
        [3910, 1184, 4534, 3127, 0, 3930],
        [3912, 1082, 4535, 3122, 3915, 3925],
        [3926, 20, 4536, 3124, 3928, 3923],
    ] {
        let numbers = [own, bound, multirange, 0, class, canonical, distance];
        out.push(numbers.map(oid));
    }
}

pub(super) fn opclass(_: &CatalogCx<'_>, out: &mut RowBatch) {
    let defaults = OPCLASSES.iter().map(|class| (class, true));
    let others = OTHER_OPCLASSES.iter().map(|class| (class, false));
    for (class, default) in defaults.chain(others) {
        out.push([
            oid(class.oid),
            oid(BTREE),
            text(class.name),
            oid(PG_CATALOG),
            oid(OWNER),
            oid(class.family),
            oid(class.input),
            flag(default),
            oid(class.stored),
        ]);
    }
}

pub(super) fn opfamily(_: &CatalogCx<'_>, out: &mut RowBatch) {
    for (number, name) in FAMILIES {
        out.push([
            oid(number),
            oid(BTREE),
            text(name),
            oid(PG_CATALOG),
            oid(OWNER),
        ]);
    }
}

/// Time zones as they are at the start of the transaction.
pub(super) fn timezone_names(cx: &CatalogCx<'_>, out: &mut RowBatch) {
    let now = cx.txn_time.0 as i64 - base::calendar::UNIX_EPOCH_MICROS;
    for name in base::zone::names() {
        let Some(zone) = base::zone::Zone::named(&name) else {
            continue;
        };
        let info = zone.at(now);
        let offset = base::Interval {
            months: 0,
            days: 0,
            micros: info.offset * base::calendar::MICROS_PER_SECOND,
        };
        let abbreviation = text(info.abbreviation);
        out.push([text(name), abbreviation, offset.into(), flag(info.is_dst)]);
    }
}

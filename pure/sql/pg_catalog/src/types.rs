//! pg_type: the types there are, the ones that only columns of the catalog have, and their arrays.

use super::*;
use base::ArrayKind;
use base::full_name::schema_of;
use base::record::ANONYMOUS;

/// A row of pg_type.
#[derive(Clone, Copy)]
pub(super) struct TypeRow {
    pub(super) oid: u32,
    pub(super) name: &'static str,
    length: i16,
    pub(super) by_value: bool,
    kind: char,
    pub(super) category: char,
    pub(super) align: char,
    pub(super) storage: char,
    preferred: bool,
    pub(super) element: u32,
    pub(super) array: u32,
    /// Input, output, receive, send.
    pub(super) io: [u32; 4],
    pub(super) collation: u32,
    /// Modifier input and output.
    modifier: [u32; 2],
    subscript: u32,
}

/// Rows of pg_type, and those of the arrays of these types (oid 0 where there is none), in columns:
/// typname, typlen, typbyval, letters (typtype, typcategory, typalign, typstorage),
/// typispreferred, typelem, typarray, input and output and receive and send, typcollation, typmodin
/// and typmodout, typsubscript.
macro_rules! types {
    ($($oid:literal $name:literal $length:literal $by_value:literal $letters:literal
        $preferred:literal $element:literal $array:literal $io:tt $collation:literal
        $modifier:tt $subscript:literal;)*) => {
        static TYPES: &[TypeRow] = &[$(TypeRow {
            oid: $oid,
            name: $name,
            length: $length,
            by_value: $by_value,
            kind: $letters[0] as char,
            category: $letters[1] as char,
            align: $letters[2] as char,
            storage: $letters[3] as char,
            preferred: $preferred,
            element: $element,
            array: $array,
            io: $io,
            collation: $collation,
            modifier: $modifier,
            subscript: $subscript,
        },)*];

        /// Names of the arrays of these types.
        static ARRAY_NAMES: &[&str] = &[$(concat!("_", $name),)*];
    };
}

types! {
    16 "bool"          1 true  b"bBcp" true   0 1000 [1242, 1243, 2436, 2437]   0 [0, 0]          0;
    17 "bytea"        -1 false b"bUix" false  0 1001 [1244, 31, 2412, 2413]     0 [0, 0]          0;
    18 "char"          1 true  b"bZcp" false  0 1002 [1245, 33, 2434, 2435]     0 [0, 0]          0;
    19 "name"         64 false b"bScp" false 18 1003 [34, 35, 2422, 2423]     950 [0, 0]       6180;
    20 "int8"          8 true  b"bNdp" false  0 1016 [460, 461, 2408, 2409]     0 [0, 0]          0;
    21 "int2"          2 true  b"bNsp" false  0 1005 [38, 39, 2404, 2405]       0 [0, 0]          0;
    22 "int2vector"   -1 false b"bAip" false 21 1006 [40, 41, 2410, 2411]       0 [0, 0]       6179;
    23 "int4"          4 true  b"bNip" false  0 1007 [42, 43, 2406, 2407]       0 [0, 0]          0;
    24 "regproc"       4 true  b"bNip" false  0 1008 [44, 45, 2444, 2445]       0 [0, 0]          0;
    25 "text"         -1 false b"bSix" true   0 1009 [46, 47, 2414, 2415]     100 [0, 0]          0;
    26 "oid"           4 true  b"bNip" true   0 1028 [1798, 1799, 2418, 2419]   0 [0, 0]          0;
    27 "tid"           6 false b"bUsp" false  0 1010 [48, 49, 2438, 2439]       0 [0, 0]          0;
    28 "xid"           4 true  b"bUip" false  0 1011 [50, 51, 2440, 2441]       0 [0, 0]          0;
    29 "cid"           4 true  b"bUip" false  0 1012 [52, 53, 2442, 2443]       0 [0, 0]          0;
    30 "oidvector"    -1 false b"bAip" false 26 1013 [54, 55, 2420, 2421]       0 [0, 0]       6179;
   114 "json"         -1 false b"bUix" false  0  199 [321, 322, 323, 324]       0 [0, 0]          0;
   269 "table_am_handler" 4 true b"pPip" false 0 0 [267, 268, 0, 0]          0 [0, 0]          0;
   325 "index_am_handler" 4 true b"pPip" false 0 0 [326, 327, 0, 0]          0 [0, 0]          0;
   650 "cidr"         -1 false b"bIim" false  0  651 [1267, 1427, 2498, 2499]   0 [0, 0]          0;
   700 "float4"        4 true  b"bNip" false  0 1021 [200, 201, 2424, 2425]     0 [0, 0]          0;
   701 "float8"        8 true  b"bNdp" true   0 1022 [214, 215, 2426, 2427]     0 [0, 0]          0;
   705 "unknown"      -2 false b"pXcp" false  0    0 [109, 110, 2416, 2417]     0 [0, 0]          0;
   829 "macaddr"       6 false b"bUip" false  0 1040 [436, 437, 2494, 2495]     0 [0, 0]          0;
   869 "inet"         -1 false b"bIim" true   0 1041 [910, 911, 2496, 2497]     0 [0, 0]          0;
  1042 "bpchar"       -1 false b"bSix" false  0 1014 [1044, 1045, 2430, 2431] 100 [2913, 2914]    0;
  1043 "varchar"      -1 false b"bSix" false  0 1015 [1046, 1047, 2432, 2433] 100 [2915, 2916]    0;
  1082 "date"          4 true  b"bDip" false  0 1182 [1084, 1085, 2468, 2469]   0 [0, 0]          0;
  1083 "time"          8 true  b"bDdp" false  0 1183 [1143, 1144, 2470, 2471]   0 [2909, 2910]    0;
  1114 "timestamp"     8 true  b"bDdp" false  0 1115 [1312, 1313, 2474, 2475]   0 [2905, 2906]    0;
  1184 "timestamptz"   8 true  b"bDdp" true   0 1185 [1150, 1151, 2476, 2477]   0 [2907, 2908]    0;
  1186 "interval"     16 false b"bTdp" true   0 1187 [1160, 1161, 2478, 2479]   0 [2903, 2904]    0;
  1266 "timetz"       12 false b"bDdp" false  0 1270 [1350, 1351, 2472, 2473]   0 [2911, 2912]    0;
  1560 "bit"         -1 false b"bVix" false  0 1561 [1564, 1565, 2456, 2457]   0 [2919, 2920]    0;
  1562 "varbit"      -1 false b"bVix" true   0 1563 [1579, 1580, 2458, 2459]   0 [2902, 2921]    0;
  1700 "numeric"      -1 false b"bNim" false  0 1231 [1701, 1702, 2460, 2461]   0 [2917, 2918]    0;
  2202 "regprocedure"  4 true  b"bNip" false  0 2207 [2212, 2213, 2446, 2447]   0 [0, 0]          0;
  2203 "regoper"       4 true  b"bNip" false  0 2208 [2214, 2215, 2448, 2449]   0 [0, 0]          0;
  2204 "regoperator"   4 true  b"bNip" false  0 2209 [2216, 2217, 2450, 2451]   0 [0, 0]          0;
  2205 "regclass"      4 true  b"bNip" false  0 2210 [2218, 2219, 2452, 2453]   0 [0, 0]          0;
  2206 "regtype"       4 true  b"bNip" false  0 2211 [2220, 2221, 2454, 2455]   0 [0, 0]          0;
  2249 "record"       -1 false b"pPdx" false  0 2287 [2290, 2291, 2402, 2403]   0 [0, 0]          0;
  2275 "cstring"      -2 false b"pPcp" false  0 1263 [2292, 2293, 2500, 2501]   0 [0, 0]          0;
  2276 "any"           4 true  b"pPip" false  0    0 [2294, 2295, 0, 0]         0 [0, 0]          0;
  2277 "anyarray"     -1 false b"pPdx" false  0    0 [2296, 2297, 2502, 2503]   0 [0, 0]          0;
  2278 "void"          4 true  b"pPip" false  0    0 [2298, 2299, 3120, 3121]   0 [0, 0]          0;
  2279 "trigger"        4 true  b"pPip" false  0    0 [2300, 2301, 0, 0]       0 [0, 0]          0;
  2280 "language_handler" 4 true b"pPip" false 0 0 [2302, 2303, 0, 0]        0 [0, 0]          0;
  2281 "internal"       8 true  b"pPdp" false  0    0 [2304, 2305, 0, 0]       0 [0, 0]          0;
  2283 "anyelement"    4 true  b"pPip" false  0    0 [2312, 2313, 0, 0]         0 [0, 0]          0;
  2776 "anynonarray"    4 true  b"pPip" false  0    0 [2777, 2778, 0, 0]       0 [0, 0]          0;
  2950 "uuid"         16 false b"bUcp" false  0 2951 [2952, 2953, 2961, 2962]   0 [0, 0]          0;
  3500 "anyenum"        4 true  b"pPip" false  0    0 [3504, 3505, 0, 0]       0 [0, 0]          0;
  3802 "jsonb"        -1 false b"bUix" false  0 3807 [3806, 3804, 3805, 3803]   0 [0, 0]       6098;
  3831 "anyrange"     -1 false b"pPdx" false  0    0 [3832, 3833, 0, 0]         0 [0, 0]          0;
  3838 "event_trigger"  4 true  b"pPip" false  0    0 [3594, 3595, 0, 0]       0 [0, 0]          0;
  3904 "int4range"    -1 false b"rRix" false  0 3905 [3834, 3835, 3836, 3837]   0 [0, 0]          0;
  3906 "numrange"     -1 false b"rRix" false  0 3907 [3834, 3835, 3836, 3837]   0 [0, 0]          0;
  3908 "tsrange"      -1 false b"rRdx" false  0 3909 [3834, 3835, 3836, 3837]   0 [0, 0]          0;
  3910 "tstzrange"    -1 false b"rRdx" false  0 3911 [3834, 3835, 3836, 3837]   0 [0, 0]          0;
  3912 "daterange"    -1 false b"rRix" false  0 3913 [3834, 3835, 3836, 3837]   0 [0, 0]          0;
  3926 "int8range"    -1 false b"rRdx" false  0 3927 [3834, 3835, 3836, 3837]   0 [0, 0]          0;
  4072 "jsonpath"     -1 false b"bUix" false  0 4073 [4001, 4003, 4002, 4004]   0 [0, 0]          0;
  4089 "regnamespace"  4 true  b"bNip" false  0 4090 [4084, 4085, 4087, 4088]   0 [0, 0]          0;
  4096 "regrole"       4 true  b"bNip" false  0 4097 [4098, 4092, 4094, 4095]   0 [0, 0]          0;
  4451 "int4multirange" -1 false b"mRix" false 0 6150 [4231, 4232, 4233, 4234]  0 [0, 0]          0;
  4532 "nummultirange" -1 false b"mRix" false 0 6151 [4231, 4232, 4233, 4234]   0 [0, 0]          0;
  4533 "tsmultirange" -1 false b"mRdx" false  0 6152 [4231, 4232, 4233, 4234]   0 [0, 0]          0;
  4534 "tstzmultirange" -1 false b"mRdx" false 0 6153 [4231, 4232, 4233, 4234]  0 [0, 0]          0;
  4535 "datemultirange" -1 false b"mRix" false 0 6155 [4231, 4232, 4233, 4234]  0 [0, 0]          0;
  4536 "int8multirange" -1 false b"mRdx" false 0 6157 [4231, 4232, 4233, 4234]  0 [0, 0]          0;
  4537 "anymultirange" -1 false b"pPdx" false 0    0 [4229, 4230, 0, 0]         0 [0, 0]          0;
}

/// The array whose elements are of this type.
pub(super) fn array_of(element: &TypeRow, name: &'static str) -> TypeRow {
    // Records are no type of a column, and neither are arrays of them.
    let (kind, category) = if element.name == "record" {
        ('p', 'P')
    } else {
        ('b', 'A')
    };
    TypeRow {
        oid: element.array,
        name,
        length: -1,
        by_value: false,
        kind,
        category,
        align: if element.align == 'd' { 'd' } else { 'i' },
        storage: 'x',
        preferred: false,
        element: element.oid,
        array: 0,
        io: [750, 751, 2400, 2401],
        collation: element.collation,
        modifier: element.modifier,
        subscript: 6179,
    }
}

/// All rows.
pub(super) fn all() -> impl Iterator<Item = TypeRow> {
    let named = TYPES.iter().zip(ARRAY_NAMES);
    let arrays = named.filter(|(element, _)| element.array != 0);
    let arrays = arrays.map(|(element, name)| array_of(element, name));
    TYPES.iter().copied().chain(arrays)
}

/// The row of that number.
pub(super) fn by_oid(oid: u32) -> Option<TypeRow> {
    all().find(|row| row.oid == oid)
}

/// The row of an enum type, without its name.
pub(super) fn of_enum(id: u32) -> TypeRow {
    TypeRow {
        oid: id,
        name: "",
        length: 4,
        by_value: true,
        kind: 'e',
        category: 'E',
        align: 'i',
        storage: 'p',
        preferred: false,
        element: 0,
        array: id + 1,
        io: [3506, 3507, 3532, 3533],
        collation: 0,
        modifier: [0, 0],
        subscript: 0,
    }
}

/// The row of an enum or composite type, without its name.
pub(super) fn of_user(ty: Type) -> TypeRow {
    match ty {
        Type::Composite(id) => of_composite(id),
        other => of_enum(other.oid()),
    }
}

fn of_composite(id: u32) -> TypeRow {
    TypeRow {
        oid: id,
        name: "",
        length: -1,
        by_value: false,
        kind: 'c',
        category: 'C',
        align: 'd',
        storage: 'x',
        preferred: false,
        element: 0,
        array: id + 1,
        io: [2290, 2291, 2402, 2403],
        collation: 0,
        modifier: [0, 0],
        subscript: 0,
    }
}

/// The row of a type that columns can have.
pub(super) fn traits(ty: Type) -> TypeRow {
    match ty {
        Type::Composite(ANONYMOUS) => {}
        Type::Enum(_) | Type::Composite(_) => return of_user(ty),
        Type::Array(kind @ (ArrayKind::Enum(_) | ArrayKind::Composite(_))) => {
            return array_of(&of_user(kind.element()), "");
        }
        _ => {}
    }
    by_oid(ty.oid()).expect("every type is listed")
}

/// The operator class of a key column: the one that its index names, or the default of its type.
pub(super) fn opclass_named(name: Option<&str>, ty: Type) -> u32 {
    let mut others = fixed::OTHER_OPCLASSES.iter();
    let found = name.and_then(|name| others.find(|class| class.name == name));
    found.map_or_else(|| opclass(ty), |class| class.oid)
}

/// The operator class of ranges.
pub(super) const RANGE_OPS: u32 = 10_076;
/// The operator class of multiranges.
pub(super) const MULTIRANGE_OPS: u32 = 10_080;

/// The default operator class of a key column.
fn opclass(ty: Type) -> u32 {
    let class = fixed::OPCLASSES
        .iter()
        .find(|class| class.input == ty.oid());
    match (class, ty.is_text()) {
        (Some(class), _) => class.oid,
        // enum_ops
        (None, _) if matches!(ty, Type::Enum(_)) => 3522,
        // record_ops
        (None, _) if matches!(ty, Type::Composite(_)) => 2994,
        (None, _) if matches!(ty, Type::Range(_)) => RANGE_OPS,
        (None, _) if matches!(ty, Type::Multirange(_)) => MULTIRANGE_OPS,
        // varchar is indexed as text.
        (None, true) => 3126,
        (None, false) => 0,
    }
}

/// The row of pg_class of a composite type.
fn relation(cx: &CatalogCx<'_>, row: &TypeRow) -> u32 {
    let found = match row.kind {
        'c' => cx.database.enum_by_id(row.oid),
        _ => None,
    };
    found.and_then(|found| found.class_id()).unwrap_or(0)
}

/// What the numbers of row types have beside those of their relations, which are below it.
const ROW_TYPE: u32 = 1 << 31;
/// What those of their arrays have besides.
const ROW_ARRAY: u32 = 1 << 30;

/// The number of the type of the rows of a table or view of users; 0 if the relation's number
/// leaves no room for it.
pub(super) fn row_type(relation: u32) -> u32 {
    if relation < ROW_ARRAY {
        ROW_TYPE | relation
    } else {
        0
    }
}

/// The full name of the table or view whose row type this is, and whether it is the array of it.
pub(super) fn relation_of_rows(cx: &CatalogCx<'_>, id: u32) -> Option<(String, bool)> {
    let relation = id & !(ROW_TYPE | ROW_ARRAY);
    let mut found = relations(cx).filter(|(number, _)| *number == relation);
    let is_row_type = id & ROW_TYPE != 0;
    let (_, name) = is_row_type.then(|| found.next()).flatten()?;
    Some((name.to_owned(), id & ROW_ARRAY != 0))
}

/// Numbers and full names of tables and views of users.
fn relations<'a>(cx: &CatalogCx<'a>) -> impl Iterator<Item = (u32, &'a str)> {
    let tables = cx.database.tables.values().map(|table| &**table);
    let tables = tables.filter(|table| !catalog::objects::is_own_table(&table.name));
    let views = cx.database.views.values().map(|view| &**view);
    let tables = tables.map(|table| (table.id.0, table.name.as_str()));
    tables.chain(views.map(|view| (view.id.0, view.name.as_str())))
}

/// pg_type.
pub(super) fn rows(cx: &CatalogCx<'_>, out: &mut RowBatch) {
    let system = all().map(|row| (row, row.name.to_owned(), PG_CATALOG));
    for (row, name, schema) in system.chain(enums::types(cx)) {
        // The array of a type is named in no right: its owner is that of the type.
        let of = if row.element > 0 {
            row.element
        } else {
            row.oid
        };
        let owner = cx.catalog.rights.owner(&::rights::Target::Relation(of));
        push((&row, name, schema), owner.0, relation(cx, &row), out);
    }
    for (id, full) in relations(cx) {
        let number = row_type(id);
        if number == 0 {
            continue;
        }
        let owner = cx.catalog.rights.owner(&::rights::Target::Relation(id)).0;
        let (name, schema) = (own(full), schema_of(full));
        let row = TypeRow {
            array: number | ROW_ARRAY,
            ..of_composite(number)
        };
        push((&row, name.to_owned(), schema), owner, id, out);
        let array = (&array_of(&row, ""), format!("_{name}"), schema);
        push(array, owner, 0, out);
    }
    domains::types(cx, out);
}

/// Appends a row with name and schema, owner and row of pg_class.
fn push(
    (row, name, schema): (&TypeRow, String, u32),
    owner: u32,
    relation: u32,
    out: &mut RowBatch,
) {
    out.push([
        oid(row.oid),
        text(name),
        oid(schema),
        oid(owner),
        int(row.length),
        flag(row.by_value),
        letter(row.kind),
        letter(row.category),
        flag(row.preferred),
        flag(true),
        letter(','),
        oid(relation),
        oid(row.subscript),
        oid(row.element),
        oid(row.array),
        oid(row.io[0]),
        oid(row.io[1]),
        oid(row.io[2]),
        oid(row.io[3]),
        oid(row.modifier[0]),
        oid(row.modifier[1]),
        oid(0),
        letter(row.align),
        letter(row.storage),
        flag(false),
        oid(0),
        int(-1),
        int(0),
        oid(row.collation),
        Datum::Null,
        Datum::Null,
        Datum::Null,
    ]);
}

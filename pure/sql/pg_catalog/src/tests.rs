//! The system catalog of a small shop: rows, names and definitions against what PostgreSQL 15 says
//! about the same tables.

use super::*;
use catalog::{
    Action, Check, Column, Command, Execution, ForeignKey, Identity, IndexColumn, ProtocolKind,
    Sequence, Validity,
};

fn column(name: &str, ty: Type, not_null: bool) -> Column {
    Column {
        not_null,
        ..Column::new(name, ty)
    }
}

fn index(name: &str, columns: &[(u16, bool)], unique: bool, constraint: bool) -> Index {
    let key = |&(column, descending): &(u16, bool)| IndexColumn {
        column,
        descending,
        nulls_first: descending,
    };
    Index {
        id: base::IndexId(0),
        name: name.into(),
        columns: columns.iter().map(key).collect(),
        unique,
        constraint,
        slot_columns: Vec::new(),
        predicate: None,
        included: Vec::new(),
        classes: Vec::new(),
        nulls_equal: false,
        building: false,
        deferral: catalog::Deferral::Never,
        of_key: false,
    }
}

fn table(name: &str, columns: Vec<Column>, key: &[u16]) -> Table {
    let keys: Vec<(u16, bool)> = key.iter().map(|&column| (column, false)).collect();
    Table {
        id: base::TableId(0),
        name: name.into(),
        changed: 0,
        columns,
        primary: index(&format!("{name}_pkey"), &keys, true, true),
        primary_constraint: Some(format!("{name}_pkey")),
        secondary: Vec::new(),
        partition: key.iter().take(1).copied().collect(),
        replicated: false,
        checks: Vec::new(),
        foreign_keys: Vec::new(),
        referenced_by: Vec::new(),
        frozen: false,
    }
}

fn sequence(table: &str, column: &str, max: i64) -> Sequence {
    Sequence {
        id: base::IndexId(0),
        name: String::new(),
        start: 1,
        increment: 1,
        min: 1,
        max,
        ty: if max > i64::from(i32::MAX) {
            Type::Int8
        } else {
            Type::Int4
        },
        first: None,
        cycle: false,
        owned_by: Some((table.into(), column.into())),
    }
}

/// The tables of `test/sql/introspection/schema.sql`.
fn shop() -> Catalog {
    let mut customer = table(
        "customer",
        vec![
            column("id", Type::Int4, true),
            column("email", Type::Varchar(Some(40)), false),
            Column {
                default: Some("'nobody'::text".into()),
                ..column("name", Type::Text, true)
            },
            column("balance", Type::Numeric(Some((12, 2))), false),
        ],
        &[0],
    );
    customer
        .secondary
        .push(index("customer_email_key", &[(1, false)], true, true));
    customer.checks.push(Check {
        name: "customer_balance_check".into(),
        expression: "balance >= 0".into(),
        validity: Validity::Valid,
    });
    let mut orders = table(
        "orders",
        vec![
            column("id", Type::Int8, true),
            column("customer_id", Type::Int4, true),
            Column {
                default: Some("now()".into()),
                ..column("placed", Type::Timestamptz(None), false)
            },
            column("note", Type::Text, false),
        ],
        &[0],
    );
    orders.secondary.push(index(
        "orders_by_customer",
        &[(1, false), (2, true)],
        false,
        false,
    ));
    orders.foreign_keys.push(ForeignKey {
        deferral: Default::default(),
        child_off: false,
        parent_off: false,
        name: "orders_customer_id_fkey".into(),
        columns: vec![1],
        parent: "customer".into(),
        parent_columns: vec![0],
        on_delete: Action::Cascade,
        on_update: Action::NoAction,
        match_full: false,
        validity: Validity::Valid,
    });
    let identity = Some(Identity::Always);
    let ident = table(
        "ident",
        vec![
            Column {
                identity,
                ..column("a", Type::Int4, true)
            },
            column("b", Type::Char(3), true),
            column("c", Type::Date, false),
        ],
        &[0, 1],
    );
    // The catalog gives a table without key its hidden row number.
    let mut heap = table("Heap", vec![column("select", Type::Int2, false)], &[]);
    heap.primary_constraint = None;

    let create = |table: Table, sequences: Vec<Sequence>| Command::CreateTable {
        database: "shop".into(),
        table,
        sequences,
        if_not_exists: false,
    };
    let placement = catalog::Placement::new(1, 1);
    let commands = [
        Command::Bootstrap(placement),
        Command::CreateDatabase {
            name: "shop".into(),
            protocol: ProtocolKind::TwoPhase,
            execution: Execution::Interleaved,
            if_not_exists: false,
        },
        create(customer, Vec::new()),
        create(orders, vec![sequence("orders", "id", i64::MAX)]),
        create(ident, vec![sequence("ident", "a", i64::from(i32::MAX))]),
        create(heap, Vec::new()),
    ];
    let mut catalog = Catalog::default();
    for command in &commands {
        // Only an empty catalog is bootstrapped.
        catalog = catalog.apply(command).expect("the schema is legal").0;
    }
    catalog
}

fn with_shop<T>(check: impl FnOnce(&CatalogCx<'_>) -> T) -> T {
    let catalog = shop();
    let database = catalog.databases["shop"].clone();
    check(&CatalogCx {
        catalog: &catalog,
        database: &database,
        pid: 1,
        user: "alice",
        txn_time: Time(0),
        setting: &|_| None,
        size_bytes: &|id| (id >= 16_384).then_some(20_000),
        told: None,
    })
}

/// Values of one column of the rows where another has this value, as text, sorted.
fn select(cx: &CatalogCx<'_>, table: &str, wanted: &str, by: &str, value: &str) -> Vec<String> {
    let (schema, name) = match table.split_once('.') {
        Some((schema, name)) => (Some(schema), name),
        None => (None, table),
    };
    let table = lookup(schema, name).expect("the table exists");
    let at = |name: &str| {
        table
            .columns
            .iter()
            .position(|column| column.name == name)
            .expect("the column exists")
    };
    let (wanted, by) = (at(wanted), at(by));
    let shown = |at: usize, row: &[Datum]| match &row[at] {
        Datum::Null => "NULL".to_owned(),
        datum => base::text::to_string(table.columns[at].ty, datum),
    };
    let rows = table.rows(cx);
    let mut found: Vec<String> = rows
        .iter()
        .filter(|row| shown(by, row) == value)
        .map(|row| shown(wanted, row))
        .collect();
    found.sort();
    found
}

fn call_text(cx: &CatalogCx<'_>, name: &str, args: &[Datum]) -> String {
    match functions::call(cx, name, args) {
        Ok(Datum::Null) => "NULL".to_owned(),
        Ok(Datum::Text(text)) => text.into(),
        Ok(Datum::Int(number)) => number.to_string(),
        Ok(other) => format!("{other:?}"),
        Err(error) => error.to_string(),
    }
}

fn class(cx: &CatalogCx<'_>, name: &str) -> Datum {
    oid(names::regclass_in(cx, name).expect("the relation exists"))
}

/// Whether a value may stand in a column of that type.
fn fits(ty: Type, datum: &Datum) -> bool {
    match (ty, datum) {
        (_, Datum::Null) => true,
        (Type::Bool, Datum::Bool(_)) => true,
        (Type::Int2, Datum::Int(value)) => i16::try_from(*value).is_ok(),
        (Type::Int4, Datum::Int(value)) => i32::try_from(*value).is_ok(),
        (Type::Oid | Type::Reg(_) | Type::Xid, Datum::Int(value)) => u32::try_from(*value).is_ok(),
        (Type::Int8, Datum::Int(_)) => true,
        (Type::Float4 | Type::Float8, Datum::Float(_)) => true,
        (Type::InternalChar, Datum::Text(text)) => text.len() <= 1,
        (Type::Name, Datum::Text(text)) => text.len() <= base::limits::NAME_BYTES_MAX,
        (Type::Text, Datum::Text(_)) => true,
        (Type::Interval(_), Datum::Interval(_)) => true,
        (Type::Array(kind), Datum::Array(items)) => {
            items.iter().all(|item| fits(kind.element(), item))
        }
        _ => false,
    }
}

#[test]
fn every_table_gives_rows_of_its_types() {
    with_shop(|cx| {
        for table in all() {
            let rows = table.rows(cx);
            for row in rows.iter() {
                for (column, datum) in table.columns.iter().zip(row) {
                    let name = column.name;
                    assert!(fits(column.ty, datum), "{}.{name}: {datum:?}", table.name);
                }
            }
        }
    });
}

#[test]
fn tables_are_found_by_name_and_number() {
    for table in all() {
        let found = lookup(Some(table.schema), table.name).expect(table.name);
        assert_eq!(found.oid, table.oid);
    }
    assert!(lookup(None, "pg_class").is_some());
    assert!(
        lookup(None, "tables").is_none(),
        "information_schema is not in the search path"
    );
    assert!(lookup(Some("public"), "pg_class").is_none());
}

#[test]
fn columns_are_vectors_where_they_are_in_postgresql() {
    let vectors = |name: &str| {
        let table = lookup(None, name).expect("the table exists");
        let columns = table.columns.iter().filter(|column| column.ty.is_vector());
        columns.map(|column| column.name).collect::<Vec<_>>()
    };
    let of_index = ["indkey", "indcollation", "indclass", "indoption"];
    assert_eq!(vectors("pg_index"), of_index);
    assert_eq!(vectors("pg_proc"), ["proargtypes"]);
    assert_eq!(vectors("pg_trigger"), ["tgattr"]);
    assert_eq!(vectors("pg_constraint"), Vec::<&str>::new());
}

#[test]
fn oids_are_unique() {
    with_shop(|cx| {
        for name in [
            "pg_class",
            "pg_type",
            "pg_constraint",
            "pg_attrdef",
            "pg_proc",
            "pg_opclass",
        ] {
            let table = lookup(None, name).expect(name);
            let rows = table.rows(cx);
            let mut oids: Vec<i64> = rows
                .iter()
                .map(|row| row[0].as_int().expect("oid"))
                .collect();
            oids.sort_unstable();
            let count = oids.len();
            oids.dedup();
            assert_eq!(oids.len(), count, "{name}");
        }
    });
}

#[test]
fn relations_and_columns() {
    with_shop(|cx| {
        let kinds = select(cx, "pg_class", "relname", "relkind", "S");
        assert_eq!(kinds, ["ident_a_seq", "orders_id_seq"]);
        let indexes = select(cx, "pg_class", "relname", "relkind", "i");
        let expected = [
            "customer_email_key",
            "customer_pkey",
            "ident_pkey",
            "orders_by_customer",
            "orders_pkey",
        ];
        assert_eq!(indexes, expected, "no index on hidden row numbers");
        let orders = call_text(cx, "regclassin", &[text("orders")]);
        let columns = select(cx, "pg_attribute", "attname", "attrelid", &orders);
        assert_eq!(columns, ["customer_id", "id", "note", "placed"]);
        let heap = call_text(cx, "regclassin", &[text("\"Heap\"")]);
        assert_eq!(
            select(cx, "pg_attribute", "attname", "attrelid", &heap),
            ["select"]
        );
        assert_eq!(select(cx, "pg_class", "relnatts", "relname", "Heap"), ["1"]);
        let by_customer = call_text(cx, "regclassin", &[text("orders_by_customer")]);
        assert_eq!(
            select(cx, "pg_index", "indkey", "indexrelid", &by_customer),
            ["2 3"]
        );
        assert_eq!(
            select(cx, "pg_index", "indoption", "indexrelid", &by_customer),
            ["0 3"]
        );
        assert_eq!(
            select(cx, "pg_index", "indclass", "indexrelid", &by_customer),
            ["1978 3127"]
        );
        let defaults = select(cx, "pg_attrdef", "adbin", "adrelid", &orders);
        assert_eq!(defaults, ["nextval('orders_id_seq'::regclass)", "now()"]);
        for (ty, written, shown) in [
            (Type::Text, "'it''s'", "'it''s'::text"),
            (Type::Varchar(Some(9)), "'a'", "'a'::character varying"),
            (Type::Char(1), "'a'", "'a'::bpchar"),
            (Type::Text, "'a' || 'b'", "'a' || 'b'"),
            (Type::Int8, "-1", "'-1'::integer"),
            (Type::Int8, "-2147483649", "'-2147483649'::bigint"),
            (Type::Int4, "7", "7"),
            (Type::Date, "now()", "now()"),
        ] {
            let column = column("c", ty, false);
            assert_eq!(definitions::default(&column, written), shown);
        }
        let sequences = select(cx, "pg_sequence", "seqtypid", "seqstart", "1");
        assert_eq!(sequences, ["20", "23"]);
        assert_eq!(
            select(cx, "pg_depend", "refobjsubid", "deptype", "a"),
            ["1", "1", "3", "3"],
            "a sequence, and the defaults"
        );
        assert_eq!(
            select(cx, "pg_depend", "refobjsubid", "deptype", "i"),
            ["1"]
        );
        assert_eq!(
            select(cx, "pg_tables", "hasindexes", "tablename", "Heap"),
            ["f"]
        );
        assert_eq!(select(cx, "pg_database", "oid", "datname", "shop").len(), 1);
        assert_eq!(
            select(cx, "pg_database", "datprotocol", "datname", "shop"),
            ["two_phase"]
        );
        assert_eq!(
            select(cx, "pg_roles", "rolsuper", "rolname", "alice"),
            ["t"]
        );
        let definition = select(
            cx,
            "pg_indexes",
            "indexdef",
            "indexname",
            "customer_email_key",
        );
        let expected =
            "CREATE UNIQUE INDEX customer_email_key ON public.customer USING btree (email)";
        assert_eq!(definition, [expected]);
    });
}

#[test]
fn constraints_are_those_of_the_tables() {
    with_shop(|cx| {
        let named = |name: &str| select(cx, "pg_constraint", "oid", "conname", name);
        let definition = |name: &str, pretty: bool| {
            let number = named(name)[0].parse().expect("an oid");
            call_text(
                cx,
                "pg_get_constraintdef",
                &[Datum::Int(number), flag(pretty)],
            )
        };
        assert_eq!(definition("customer_pkey", true), "PRIMARY KEY (id)");
        assert_eq!(definition("ident_pkey", true), "PRIMARY KEY (a, b)");
        assert_eq!(definition("customer_email_key", true), "UNIQUE (email)");
        assert_eq!(
            definition("customer_balance_check", true),
            "CHECK (balance >= 0)"
        );
        assert_eq!(
            definition("customer_balance_check", false),
            "CHECK ((balance >= 0))"
        );
        assert_eq!(
            definition("orders_customer_id_fkey", true),
            "FOREIGN KEY (customer_id) REFERENCES customer(id) ON DELETE CASCADE"
        );
        let foreign = "orders_customer_id_fkey";
        let field = |column: &str| select(cx, "pg_constraint", column, "conname", foreign);
        assert_eq!(field("confdeltype"), ["c"]);
        assert_eq!(field("conkey"), ["{2}"]);
        assert_eq!(field("confkey"), ["{1}"]);
        assert_eq!(
            field("conindid"),
            [call_text(cx, "regclassin", &[text("customer_pkey")])]
        );
        let checked = select(
            cx,
            "pg_constraint",
            "conkey",
            "conname",
            "customer_balance_check",
        );
        assert_eq!(checked, ["{4}"]);
    });
}

#[test]
fn information_schema_says_what_postgresql_says() {
    with_shop(|cx| {
        let column = |wanted: &str, name: &str| {
            select(
                cx,
                "information_schema.columns",
                wanted,
                "column_name",
                name,
            )
        };
        assert_eq!(column("character_maximum_length", "email"), ["40"]);
        assert_eq!(column("character_octet_length", "email"), ["160"]);
        assert_eq!(column("numeric_precision", "balance"), ["12"]);
        assert_eq!(column("numeric_scale", "balance"), ["2"]);
        assert_eq!(column("datetime_precision", "placed"), ["6"]);
        assert_eq!(column("data_type", "placed"), ["timestamp with time zone"]);
        assert_eq!(column("udt_name", "b"), ["bpchar"]);
        assert_eq!(column("identity_maximum", "a"), ["2147483647"]);
        assert_eq!(column("is_nullable", "customer_id"), ["NO"]);
        let kinds = |kind: &str| {
            let view = "information_schema.table_constraints";
            select(cx, view, "constraint_name", "constraint_type", kind)
        };
        assert_eq!(
            kinds("PRIMARY KEY"),
            ["customer_pkey", "ident_pkey", "orders_pkey"]
        );
        assert_eq!(kinds("FOREIGN KEY"), ["orders_customer_id_fkey"]);
        assert_eq!(kinds("UNIQUE"), ["customer_email_key"]);
        let foreign = |view: &str, wanted: &str| {
            let view = format!("information_schema.{view}");
            select(
                cx,
                &view,
                wanted,
                "constraint_name",
                "orders_customer_id_fkey",
            )
        };
        assert_eq!(
            foreign("referential_constraints", "unique_constraint_name"),
            ["customer_pkey"]
        );
        assert_eq!(
            foreign("referential_constraints", "delete_rule"),
            ["CASCADE"]
        );
        assert_eq!(
            foreign("key_column_usage", "position_in_unique_constraint"),
            ["1"]
        );
        assert_eq!(
            foreign("constraint_column_usage", "table_name"),
            ["customer"]
        );
        let sequences = "information_schema.sequences";
        let all = select(cx, sequences, "sequence_name", "sequence_schema", "public");
        assert_eq!(all, ["orders_id_seq"], "not that of an identity column");
    });
}

#[test]
fn names_resolve_like_reg_types() {
    with_shop(|cx| {
        let round = |kind: &str, name: &str| {
            let number = match functions::call(cx, &format!("reg{kind}in"), &[text(name)]) {
                Ok(number) => number,
                Err(error) => return error.to_string(),
            };
            call_text(cx, &format!("reg{kind}out"), &[number])
        };
        let table = [
            ("class", "orders", "orders"),
            ("class", "ORDERS", "orders"),
            ("class", " public . orders ", "orders"),
            ("class", "shop.public.orders", "orders"),
            ("class", "\"Heap\"", "\"Heap\""),
            ("class", "Heap", "42P01: relation \"heap\" does not exist"),
            ("class", "pg_catalog.pg_class", "pg_class"),
            (
                "class",
                "information_schema.tables",
                "information_schema.tables",
            ),
            (
                "class",
                "nowhere.orders",
                "3F000: schema \"nowhere\" does not exist",
            ),
            (
                "class",
                "nowhere.foo.orders",
                "0A000: cross-database references are not implemented: \"nowhere.foo.orders\"",
            ),
            (
                "class",
                "a.b.c.d",
                "42601: improper qualified name (too many dotted names): a.b.c.d",
            ),
            ("class", "", "42602: invalid name syntax"),
            ("class", "\"open", "42602: invalid name syntax"),
            ("class", "99999", "99999"),
            ("class", "-", "-"),
            ("type", "int4", "integer"),
            ("type", "pg_catalog.int8", "bigint"),
            ("type", "CHARACTER  VARYING", "character varying"),
            ("type", "varchar(10)", "character varying"),
            ("type", "\"char\"", "\"char\""),
            ("type", "char", "character"),
            ("type", "double precision", "double precision"),
            (
                "type",
                "timestamp(3) with time zone",
                "timestamp with time zone",
            ),
            ("type", "text[]", "text[]"),
            ("type", "uuid[]", "uuid[]"),
            ("type", "regclass", "regclass"),
            ("type", "nope", "42704: type \"nope\" does not exist"),
            ("namespace", "public", "public"),
            ("namespace", "nope", "3F000: schema \"nope\" does not exist"),
            ("proc", "pg_catalog.array_in", "array_in"),
            ("proc", "nope", "42883: function \"nope\" does not exist"),
            ("role", "alice", "alice"),
            ("role", "bob", "42704: role \"bob\" does not exist"),
        ];
        for (kind, name, expected) in table {
            assert_eq!(round(kind, name), expected, "'{name}'::reg{kind}");
        }
        assert_eq!(call_text(cx, "to_regclass", &[text("nope")]), "NULL");
        assert_eq!(call_text(cx, "to_regtype", &[text("int4")]), "23");
        assert_eq!(call_text(cx, "to_regtype", &[text("nope")]), "NULL");
    });
}

#[test]
fn functions_over_the_catalog() {
    with_shop(|cx| {
        let format_type = |id: u32, typmod: i64| {
            let typmod = if typmod == -2 {
                Datum::Null
            } else {
                Datum::Int(typmod)
            };
            call_text(cx, "format_type", &[oid(id), typmod])
        };
        assert_eq!(format_type(1700, 786_438), "numeric(12,2)");
        assert_eq!(format_type(1043, 44), "character varying(40)");
        assert_eq!(format_type(1042, -2), "character");
        assert_eq!(format_type(1042, -1), "bpchar");
        assert_eq!(format_type(1015, -2), "character varying[]");
        assert_eq!(format_type(18, -2), "\"char\"");
        assert_eq!(format_type(2205, -1), "regclass");
        assert_eq!(format_type(77_777, -1), "???");
        assert_eq!(format_type(0, -1), "-");

        let by_customer = class(cx, "orders_by_customer");
        let definition = |args: &[Datum]| call_text(cx, "pg_get_indexdef", args);
        assert_eq!(
            definition(&[by_customer.clone(), int(0), flag(true)]),
            "CREATE INDEX orders_by_customer ON orders USING btree (customer_id, placed DESC)"
        );
        assert_eq!(
            definition(&[by_customer.clone(), int(2), flag(true)]),
            "placed"
        );
        assert_eq!(definition(&[by_customer.clone(), int(9), flag(true)]), "");
        assert_eq!(definition(&[class(cx, "orders")]), "NULL");

        let serial = |table: &str, column: &str| {
            call_text(cx, "pg_get_serial_sequence", &[text(table), text(column)])
        };
        assert_eq!(serial("orders", "id"), "public.orders_id_seq");
        assert_eq!(serial("orders", "note"), "NULL");
        assert_eq!(
            serial("orders", "nope"),
            "42703: column \"nope\" of relation \"orders\" does not exist"
        );
        let visible = |name: &str| call_text(cx, "pg_table_is_visible", &[class(cx, name)]);
        assert_eq!(visible("orders"), "Bool(true)");
        assert_eq!(visible("information_schema.tables"), "Bool(false)");
        assert_eq!(call_text(cx, "pg_table_is_visible", &[oid(7)]), "NULL");
        assert_eq!(call_text(cx, "pg_get_userbyid", &[oid(10)]), "alice");
        assert_eq!(
            call_text(cx, "pg_get_userbyid", &[oid(11)]),
            "unknown (OID=11)"
        );
        assert_eq!(
            call_text(cx, "obj_description", &[oid(1), text("pg_class")]),
            "NULL"
        );
        assert_eq!(
            call_text(cx, "pg_total_relation_size", &[class(cx, "orders")]),
            "40000"
        );
        assert_eq!(
            call_text(cx, "pg_table_size", &[class(cx, "orders")]),
            "20000"
        );
        assert_eq!(call_text(cx, "pg_database_size", &[text("shop")]), "120000");
        assert_eq!(
            call_text(cx, "pg_database_size", &[text("nope")]),
            "3D000: database \"nope\" does not exist"
        );
        assert_eq!(
            call_text(cx, "has_table_privilege", &[text("nope"), text("select")]),
            "42P01: relation \"nope\" does not exist"
        );
        let granted = call_text(cx, "has_table_privilege", &[text("orders"), text("select")]);
        assert_eq!(granted, "Bool(true)");
        assert_eq!(
            call_text(cx, "no_such", &[]),
            "42883: function no_such does not exist"
        );
        for (bytes, shown) in [
            (0, "0 bytes"),
            (10_239, "10239 bytes"),
            (10_240, "10 kB"),
            (10_485_247, "10239 kB"),
            (10_485_760, "10 MB"),
            (-10_485_760, "-10 MB"),
            (1 << 40, "1024 GB"),
        ] {
            assert_eq!(call_text(cx, "pg_size_pretty", &[Datum::Int(bytes)]), shown);
        }
    });
}

#[test]
fn every_listed_function_can_be_called() {
    with_shop(|cx| {
        for signature in expr::resolve::SIGNATURES {
            let args: Vec<Datum> = signature
                .args
                .iter()
                .map(|ty| match ty {
                    Type::Oid | Type::Reg(_) => class(cx, "orders"),
                    Type::Bool => flag(true),
                    ty if ty.is_text() => text("public"),
                    _ => int(1),
                })
                .collect();
            for count in signature.required..=args.len() {
                match functions::call(cx, signature.name, &args[..count]) {
                    Ok(value) => {
                        assert!(
                            fits(signature.returns, &value),
                            "{}: {value:?}",
                            signature.name
                        );
                    }
                    // `public` is no table, type, role, ...
                    Err(error) => {
                        let unknown = format!("function {} does not exist", signature.name);
                        assert_ne!(error.fields().message, unknown);
                    }
                }
            }
        }
    });
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the queries are files")]
fn client_queries_lose_what_cannot_be_planned() {
    let folder = "../../../test/sql/introspection";
    let mut rewritten = 0;
    for file in std::fs::read_dir(folder).expect("the folder of queries") {
        let path = file.expect("a readable folder").path();
        if path.extension().is_none_or(|extension| extension != "sql") {
            continue;
        }
        let queries = std::fs::read_to_string(&path).expect("a readable file");
        for query in queries.split(";\n") {
            let now = rewrite::client_query(query);
            rewritten += usize::from(now.is_some());
            let now = now.unwrap_or_else(|| query.to_owned()).to_lowercase();
            for construct in [
                "_pg_expandarray",
                "row_number()",
                "lateral (",
                "with ordinality",
                "partition_anc",
            ] {
                assert!(!now.contains(construct), "{path:?}: {construct} in {now}");
            }
        }
    }
    assert!(rewritten >= 9, "only {rewritten} queries were recognised");
    assert_eq!(rewrite::client_query("SELECT a FROM t WHERE b = 1"), None);
    assert_eq!(rewrite::client_query("SELECT pg_catalog.now()"), None);
}

/// A cursor may outlive a type; what its rows have are places of labels, which no client reads.
#[test]
fn values_of_a_dropped_type_are_not_shown() {
    with_shop(|cx| {
        for ty in [
            Type::Enum(99_999),
            Type::Enum(99_999).array_of().expect("it has one"),
        ] {
            let columns = [base::OutColumn {
                name: "m".into(),
                ty,
                table: 0,
                attribute: 0,
            }];
            let mut batch = RowBatch::new(1);
            batch.push([Datum::Int(7)]);
            let refused = output::put_names(cx, &columns, &|_| true, &mut batch);
            let error = refused.expect_err("the type is gone");
            assert_eq!(error.state(), base::SqlState::INTERNAL);
            assert_eq!(error.fields().message, "cache lookup failed for type 99999");
        }
    });
}

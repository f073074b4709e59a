//! Tables: what they are given, which are refused, and how they are dropped.

use super::{DB, apply, column, create, drop, fresh, get, index, refuse, table};
use base::{IndexId, SqlState, Type};
use catalog::{Check, Command, Index, ROWID_COLUMN, Table, TableAction, Validity};

/// All of a catalog goes into one record and one message, so it stays far below their limit. What
/// makes it smaller is never refused.
#[test]
fn a_catalog_does_not_grow_without_end() {
    let mut catalog = fresh();
    let with_default = |name: &str, bytes: usize| {
        let mut table = table(name, &[0]);
        table.columns[1].default = Some(format!("'{}'", "x".repeat(bytes)));
        create(table)
    };
    let half = base::limits::CATALOG_BYTES_MAX / 2;
    apply(&mut catalog, with_default("first", half));
    let message = "the catalog cannot have more than 8388608 bytes";
    let limit = SqlState::PROGRAM_LIMIT;
    refuse(&catalog, with_default("second", half), limit, message);
    apply(&mut catalog, with_default("second", half - 10_000));
    let default = Some(format!("'{}'", "y".repeat(20_000)));
    let longer = |column: &str| Command::AlterTable {
        database: DB.into(),
        table: "second".into(),
        actions: vec![TableAction::SetDefault {
            column: column.into(),
            default: default.clone(),
        }],
    };
    let other = catalog.databases[DB].tables["second"].columns[2]
        .name
        .clone();
    refuse(&catalog, longer(&other), limit, message);
    apply(&mut catalog, drop(&["first"], false, false));
    apply(&mut catalog, longer(&other));
}

#[test]
fn tables_get_numbers_names_and_slots() {
    let mut catalog = fresh();
    let mut wanted = table("t", &[1, 0]);
    wanted.secondary = vec![
        index("", &[2], true, true),
        index("", &[2, 1], false, false),
        index("mine", &[0], false, false),
    ];
    let checks = [
        ("", "a > 0"),
        ("", "a < b"),
        ("positive", "b > 0"),
        ("", "a < 9"),
    ];
    wanted.checks = checks
        .map(|(name, text)| Check {
            name: name.into(),
            expression: text.into(),
            validity: Validity::Valid,
        })
        .to_vec();
    let applied = apply(&mut catalog, create(wanted));
    let t = get(&catalog, "t");
    assert_eq!((applied.table, t.changed), (Some(t.id), catalog.version));
    assert_eq!(t.primary_constraint.as_deref(), Some("t_pkey"));
    let names: Vec<&str> = t.indexes().map(|index| index.name.as_str()).collect();
    assert_eq!(names, ["t_pkey", "t_c_key", "t_c_b_idx", "mine"]);
    let names: Vec<&str> = t.checks.iter().map(|check| check.name.as_str()).collect();
    assert_eq!(names, ["t_a_check", "t_check", "positive", "t_a_check1"]);
    assert_eq!(t.partition, [1], "the first primary key column");
    let slots: Vec<&[u16]> = t
        .indexes()
        .map(|index| index.slot_columns.as_slice())
        .collect();
    assert_eq!(
        slots,
        [&[1][..], &[2], &[1], &[0]],
        "with the rows if b is held, else global"
    );
    assert!(t.column("a").unwrap().1.not_null && !t.column("c").unwrap().1.not_null);
    let mut numbers: Vec<u32> = t.indexes().map(|index| index.id.0).collect();
    numbers.push(t.id.0);
    numbers.sort_unstable();
    assert_eq!(numbers, (16385..16390).collect::<Vec<_>>());
    let stored = |index: &Index| -> Vec<u16> {
        index
            .stored_columns(t)
            .iter()
            .map(|key| key.column)
            .collect()
    };
    let stored: Vec<Vec<u16>> = t.indexes().map(stored).collect();
    assert_eq!(
        stored,
        [vec![1, 0], vec![2, 1, 0], vec![2, 1, 0], vec![0, 1]]
    );
    for index in t.indexes() {
        assert_eq!(t.index_by_id(index.id), Some(index));
    }
    let names: Vec<&str> = catalog.tables().map(|(_, table)| &*table.name).collect();
    assert_eq!(names, ["t"]);
    assert!(t.index_by_id(IndexId(1)).is_none());
}

#[test]
fn a_table_without_a_key_is_numbered() {
    let mut catalog = fresh();
    apply(&mut catalog, create(table("t", &[])));
    let t = get(&catalog, "t");
    assert_eq!((t.rowid(), t.primary_constraint.as_ref()), (Some(3), None));
    let rowid = t.column(ROWID_COLUMN).unwrap().1;
    assert!(rowid.hidden && rowid.not_null && rowid.ty == Type::Int8);
    assert_eq!(
        (t.primary.columns[0].column, t.partition.as_slice()),
        (3, &[3][..])
    );
    let mut parted = table("p", &[]);
    parted.partition = vec![1];
    apply(&mut catalog, create(parted));
    let p = get(&catalog, "p");
    let key: Vec<u16> = p.primary.columns.iter().map(|key| key.column).collect();
    assert_eq!(
        (key, p.primary.slot_columns.as_slice()),
        (vec![1, 3], &[1][..])
    );
}

#[test]
fn wrong_tables_are_refused() {
    let mut catalog = fresh();
    apply(&mut catalog, create(table("t", &[0])));
    let exists = "relation \"t\" already exists";
    refuse(
        &catalog,
        create(table("t", &[0])),
        SqlState::DUPLICATE_TABLE,
        exists,
    );
    let again = Command::CreateTable {
        database: DB.into(),
        table: table("t", &[0]),
        sequences: vec![],
        if_not_exists: true,
    };
    let skipped = apply(&mut catalog, again).skipped.unwrap();
    assert_eq!(skipped, "relation \"t\" already exists, skipping");
    let exists = "relation \"t_pkey\" already exists";
    refuse(
        &catalog,
        create(table("t_pkey", &[0])),
        SqlState::DUPLICATE_TABLE,
        exists,
    );

    let with = |change: &dyn Fn(&mut Table)| {
        let mut table = table("u", &[0]);
        change(&mut table);
        create(table)
    };
    refuse(
        &catalog,
        with(&|t| t.columns[1].name = "a".into()),
        SqlState::DUPLICATE_COLUMN,
        "column \"a\" specified more than once",
    );
    refuse(
        &catalog,
        with(&|t| t.columns[1].name = "ctid".into()),
        SqlState::DUPLICATE_COLUMN,
        "column name \"ctid\" conflicts with a system column name",
    );
    let wide = |count: usize| {
        let columns = (0..count).map(|i| column(&format!("c{i}"), Type::Int4));
        let columns: Vec<_> = columns.collect();
        with(&|t| t.columns.clone_from(&columns))
    };
    catalog
        .apply(&wide(1600))
        .expect("as many as PostgreSQL takes");
    refuse(
        &catalog,
        wide(1601),
        SqlState::TOO_MANY_COLUMNS,
        "tables can have at most 1600 columns",
    );
    refuse(
        &catalog,
        with(&|t| t.primary = index("", &[0, 0], true, true)),
        SqlState::DUPLICATE_COLUMN,
        "column \"a\" appears twice in primary key constraint",
    );
    refuse(
        &catalog,
        with(&|t| t.primary = index("", &[7], true, true)),
        SqlState::UNDEFINED_COLUMN,
        "column 8 of relation \"u\" does not exist",
    );
    refuse(
        &catalog,
        with(&|t| t.partition = vec![1]),
        SqlState::INVALID_TABLE_DEFINITION,
        "primary key must include all partition columns",
    );
    refuse(
        &catalog,
        with(&|t| t.secondary = vec![index("t", &[1], false, false)]),
        SqlState::DUPLICATE_TABLE,
        "relation \"t\" already exists",
    );
    refuse(
        &catalog,
        with(&|t| {
            let check = Check {
                name: "x".into(),
                expression: "true".into(),
                validity: Validity::Valid,
            };
            t.checks = vec![check.clone(), check];
        }),
        SqlState::DUPLICATE_OBJECT,
        "constraint \"x\" for relation \"u\" already exists",
    );
}

#[test]
fn drops_pass_over_what_is_missing() {
    let mut catalog = fresh();
    apply(&mut catalog, create(table("t", &[0])));
    let missing = "table \"x\" does not exist";
    refuse(
        &catalog,
        drop(&["x"], false, false),
        SqlState::UNDEFINED_TABLE,
        missing,
    );
    let wrong = "\"t_pkey\" is not a table";
    refuse(
        &catalog,
        drop(&["t_pkey"], true, false),
        SqlState::WRONG_OBJECT_TYPE,
        wrong,
    );
    let skipped = apply(&mut catalog, drop(&["x", "y"], true, false))
        .skipped
        .unwrap();
    let lines = "table \"x\" does not exist, skipping\ntable \"y\" does not exist, skipping";
    assert_eq!(skipped, lines);
    let applied = apply(&mut catalog, drop(&["x", "t"], true, false));
    assert_eq!((applied.skipped, applied.dropped.len()), (None, 1));
    assert_eq!(applied.notices, ["table \"x\" does not exist, skipping"]);
}

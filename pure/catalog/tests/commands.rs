//! Commands: what they make of the catalog, and the SQLSTATE of every refusal.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use base::{IndexId, SqlState, TableId, Type};
use catalog::{
    Action, Applied, Catalog, Check, Column, Command, Execution, ForeignKey, Identity, Index,
    IndexColumn, Placement, ProtocolKind, ROWID_COLUMN, Sequence, Subject, Table, Validity,
};

const DB: &str = "shop";

fn apply(catalog: &mut Catalog, command: Command) -> Applied {
    let (next, applied) = catalog
        .apply(&command)
        .unwrap_or_else(|error| panic!("{error}"));
    if applied.skipped.is_some() {
        assert_eq!(next, *catalog, "what is skipped changes nothing");
    } else {
        assert_eq!(next.version, catalog.version + 1);
    }
    *catalog = next;
    applied
}

fn refuse(catalog: &Catalog, command: Command, state: SqlState, message: &str) {
    let error = catalog.apply(&command).expect_err(message);
    assert_eq!(
        (error.state(), error.fields().message.as_str()),
        (state, message)
    );
}

fn column(name: &str, ty: Type) -> Column {
    let (name, default) = (name.to_string(), None);
    Column {
        name,
        ty,
        not_null: false,
        default,
        identity: None,
        hidden: false,
    }
}

fn index(name: &str, columns: &[u16], unique: bool, constraint: bool) -> Index {
    let columns = columns.iter().map(|&column| IndexColumn {
        column,
        descending: false,
    });
    Index {
        id: IndexId(0),
        name: name.into(),
        columns: columns.collect(),
        unique,
        constraint,
        slot_columns: vec![],
        building: false,
    }
}

/// Columns a, b, c: integer, integer, text.
fn table(name: &str, primary: &[u16]) -> Table {
    Table {
        id: TableId(0),
        name: name.into(),
        changed: 0,
        columns: vec![
            column("a", Type::Int4),
            column("b", Type::Int8),
            column("c", Type::Text),
        ],
        primary: index("", primary, true, !primary.is_empty()),
        primary_constraint: None,
        secondary: vec![],
        partition: vec![],
        replicated: false,
        checks: vec![],
        foreign_keys: vec![],
        referenced_by: vec![],
        frozen: false,
    }
}

fn create(table: Table) -> Command {
    Command::CreateTable {
        database: DB.into(),
        table,
        sequences: vec![],
        if_not_exists: false,
    }
}

fn drop(names: &[&str], if_exists: bool, cascade: bool) -> Command {
    let names = names.iter().map(ToString::to_string).collect();
    Command::DropTable {
        database: DB.into(),
        names,
        if_exists,
        cascade,
    }
}

fn create_index(on: &str, index: Index, if_not_exists: bool) -> Command {
    Command::CreateIndex {
        database: DB.into(),
        table: on.into(),
        index,
        if_not_exists,
    }
}

fn drop_index(name: &str, if_exists: bool) -> Command {
    Command::DropIndex {
        database: DB.into(),
        names: vec![name.into()],
        if_exists,
    }
}

fn foreign_key(columns: &[u16], parent: &str, parent_columns: &[u16]) -> ForeignKey {
    ForeignKey {
        name: String::new(),
        columns: columns.to_vec(),
        parent: parent.into(),
        parent_columns: parent_columns.to_vec(),
        on_delete: Action::NoAction,
        on_update: Action::NoAction,
        match_full: false,
        validity: Validity::Valid,
    }
}

fn sequence(name: &str) -> Sequence {
    Sequence {
        id: IndexId(0),
        name: name.into(),
        start: 1,
        increment: 1,
        min: 1,
        max: i64::MAX,
        owned_by: None,
    }
}

fn create_database(name: &str, if_not_exists: bool) -> Command {
    let (protocol, execution) = (ProtocolKind::TwoPhase, Execution::Interleaved);
    Command::CreateDatabase {
        name: name.into(),
        protocol,
        execution,
        if_not_exists,
    }
}

fn fresh() -> Catalog {
    let mut catalog = Catalog::default();
    apply(&mut catalog, Command::Bootstrap(Placement::new(2, 2)));
    apply(&mut catalog, create_database(DB, false));
    catalog
}

fn get<'a>(catalog: &'a Catalog, name: &str) -> &'a Table {
    catalog
        .database(DB)
        .and_then(|database| database.table(name))
        .expect("the table is there")
}

#[test]
fn databases_come_and_go() {
    let mut catalog = fresh();
    assert_eq!(catalog.database(DB).unwrap().id.0, 16384);
    refuse(
        &catalog,
        Command::Bootstrap(Placement::new(1, 1)),
        SqlState::OBJECT_NOT_READY,
        "the placement of the cluster is already fixed",
    );
    let taken = "database \"shop\" already exists";
    refuse(
        &catalog,
        create_database(DB, false),
        SqlState::DUPLICATE_DATABASE,
        taken,
    );
    let skipped = apply(&mut catalog, create_database(DB, true)).skipped;
    assert_eq!(
        skipped.unwrap(),
        "database \"shop\" already exists, skipping"
    );
    apply(&mut catalog, create(table("t", &[0])));
    let gone = Command::DropDatabase {
        name: DB.into(),
        if_exists: false,
    };
    let spaces = catalog.database(DB).unwrap().key_spaces();
    assert_eq!(apply(&mut catalog, gone.clone()).dropped, spaces);
    let missing = "database \"shop\" does not exist";
    refuse(&catalog, gone, SqlState::INVALID_DATABASE, missing);
    refuse(
        &catalog,
        create(table("t", &[0])),
        SqlState::INVALID_DATABASE,
        missing,
    );
    let maybe = Command::DropDatabase {
        name: DB.into(),
        if_exists: true,
    };
    assert!(apply(&mut catalog, maybe).skipped.is_some());
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
    let versions = catalog.index_versions();
    for index in t.indexes() {
        assert_eq!(catalog.table_by_index(index.id).unwrap().1.name, "t");
        assert_eq!(versions.get(&index.id), Some(&t.changed));
    }
    assert_eq!(catalog.table_by_id(t.id).unwrap().1.name, "t");
    assert!(catalog.table_by_index(IndexId(1)).is_none());
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
fn serial_columns_bring_their_sequences() {
    let mut catalog = fresh();
    let owned = |column: &str| Sequence {
        owned_by: Some(("t".into(), column.into())),
        ..sequence("")
    };
    let mut wanted = table("t", &[0]);
    wanted.columns[1].identity = Some(Identity::Always);
    let command = Command::CreateTable {
        database: DB.into(),
        table: wanted,
        sequences: vec![owned("a"), owned("b")],
        if_not_exists: false,
    };
    apply(&mut catalog, command);
    let t = get(&catalog, "t");
    let default = "nextval('t_a_seq'::regclass)";
    assert_eq!(t.column("a").unwrap().1.default.as_deref(), Some(default));
    assert_eq!(t.column("b").unwrap().1.default, None);
    let database = catalog.database(DB).unwrap();
    let id = database.sequence("t_b_seq").unwrap().id;
    assert_eq!(catalog.sequence_by_index(id).unwrap().1.name, "t_b_seq");
    let gone = |name: &str| Command::DropSequence {
        database: DB.into(),
        names: vec![name.into()],
        if_exists: false,
    };
    for name in ["t_a_seq", "t_b_seq"] {
        let message = format!("cannot drop sequence {name} because other objects depend on it");
        refuse(&catalog, gone(name), SqlState::DEPENDENT_OBJECTS, &message);
    }
    let dropped = apply(&mut catalog, drop(&["t"], false, false)).dropped;
    assert_eq!(dropped.len(), 3, "the rows and both sequences");
    assert!(catalog.database(DB).unwrap().sequences.is_empty());
}

#[test]
fn sequences_are_checked() {
    let mut catalog = fresh();
    let make = |sequence| Command::CreateSequence {
        database: DB.into(),
        sequence,
        if_not_exists: false,
    };
    apply(&mut catalog, make(sequence("s")));
    let exists = "relation \"s\" already exists";
    refuse(
        &catalog,
        make(sequence("s")),
        SqlState::DUPLICATE_TABLE,
        exists,
    );
    let bad = |increment, min, max, start| Sequence {
        increment,
        min,
        max,
        start,
        ..sequence("x")
    };
    for (sequence, message) in [
        (bad(0, 1, 9, 1), "INCREMENT must not be zero"),
        (
            bad(1, 9, 1, 1),
            "MINVALUE (9) must be less than MAXVALUE (1)",
        ),
        (
            bad(1, 1, 9, 0),
            "START value (0) cannot be less than MINVALUE (1)",
        ),
        (
            bad(1, 1, 9, 10),
            "START value (10) cannot be greater than MAXVALUE (9)",
        ),
    ] {
        refuse(
            &catalog,
            make(sequence),
            SqlState::INVALID_PARAMETER,
            message,
        );
    }
    let gone = |name: &str, if_exists| Command::DropSequence {
        database: DB.into(),
        names: vec![name.into()],
        if_exists,
    };
    let missing = "sequence \"x\" does not exist";
    refuse(
        &catalog,
        gone("x", false),
        SqlState::UNDEFINED_TABLE,
        missing,
    );
    assert!(apply(&mut catalog, gone("x", true)).skipped.is_some());
    assert_eq!(apply(&mut catalog, gone("s", false)).dropped.len(), 1);
}

#[test]
fn foreign_keys_bind_both_tables() {
    let mut catalog = fresh();
    let mut parent = table("p", &[0]);
    parent.secondary = vec![
        index("", &[1, 0], true, true),
        index("plain", &[2], true, false),
    ];
    apply(&mut catalog, create(parent));
    let mut child = table("k", &[0]);
    child.foreign_keys = vec![
        foreign_key(&[1], "p", &[]),
        foreign_key(&[0, 1], "p", &[0, 1]),
        foreign_key(&[2], "p", &[2]),
        foreign_key(&[1], "k", &[0]),
    ];
    apply(&mut catalog, create(child.clone()));
    let names: Vec<&str> = get(&catalog, "k")
        .foreign_keys
        .iter()
        .map(|key| key.name.as_str())
        .collect();
    assert_eq!(names, ["k_b_fkey", "k_a_b_fkey", "k_c_fkey", "k_b_fkey1"]);
    assert_eq!(get(&catalog, "k").foreign_keys[0].parent_columns, [0]);
    assert_eq!(get(&catalog, "p").referenced_by.len(), 3);
    assert_eq!(
        get(&catalog, "k").referenced_by,
        [("k".into(), "k_b_fkey1".into())]
    );
    assert_eq!(
        get(&catalog, "p").changed,
        catalog.version,
        "the parent changed too"
    );

    let error = catalog.apply(&drop(&["p"], false, false)).unwrap_err();
    assert_eq!(error.state(), SqlState::DEPENDENT_OBJECTS);
    let detail = "constraint k_b_fkey on table k depends on table p";
    assert_eq!(error.fields().detail, detail);
    refuse(
        &catalog,
        drop_index("plain", false),
        SqlState::DEPENDENT_OBJECTS,
        "cannot drop index plain because other objects depend on it",
    );
    let mut both = catalog.clone();
    assert_eq!(
        apply(&mut both, drop(&["p", "k"], false, false))
            .dropped
            .len(),
        4
    );
    let mut cascaded = catalog.clone();
    apply(&mut cascaded, drop(&["p"], false, true));
    assert_eq!(get(&cascaded, "k").foreign_keys.len(), 1, "only its own");
    assert_eq!(get(&cascaded, "k").changed, cascaded.version);
    apply(&mut catalog, drop(&["k"], false, false));
    assert_eq!(get(&catalog, "p").referenced_by, []);
}

#[test]
fn wrong_foreign_keys_are_refused() {
    let mut catalog = fresh();
    apply(&mut catalog, create(table("p", &[0])));
    apply(&mut catalog, create(table("n", &[])));
    apply(&mut catalog, create(table("t", &[0])));
    let add = |key| Command::AddForeignKey {
        database: DB.into(),
        table: "t".into(),
        foreign_key: key,
    };
    for (key, state, message) in [
        (
            foreign_key(&[0], "x", &[]),
            SqlState::UNDEFINED_TABLE,
            "relation \"x\" does not exist",
        ),
        (
            foreign_key(&[0], "n", &[]),
            SqlState::UNDEFINED_OBJECT,
            "there is no primary key for referenced table \"n\"",
        ),
        (
            foreign_key(&[0, 1], "p", &[]),
            SqlState::INVALID_FOREIGN_KEY,
            "number of referencing and referenced columns for foreign key disagree",
        ),
        (
            foreign_key(&[0], "p", &[1]),
            SqlState::INVALID_FOREIGN_KEY,
            "there is no unique constraint matching given keys for referenced table \"p\"",
        ),
        (
            foreign_key(&[2], "p", &[0]),
            SqlState::DATATYPE_MISMATCH,
            "foreign key constraint \"t_c_fkey\" cannot be implemented",
        ),
    ] {
        refuse(&catalog, add(key), state, message);
    }
    apply(&mut catalog, add(foreign_key(&[1], "p", &[0])));
    let named = ForeignKey {
        name: "t_b_fkey".into(),
        ..foreign_key(&[1], "p", &[0])
    };
    let message = "constraint \"t_b_fkey\" for relation \"t\" already exists";
    refuse(&catalog, add(named), SqlState::DUPLICATE_OBJECT, message);
}

#[test]
fn indexes_are_built_finished_and_dropped() {
    let mut catalog = fresh();
    apply(&mut catalog, create(table("t", &[0])));
    apply(
        &mut catalog,
        create_index("t", index("", &[1], false, false), false),
    );
    let id = get(&catalog, "t")
        .index("t_b_idx")
        .expect("it has PostgreSQL's name")
        .id;
    assert!(get(&catalog, "t").index_by_id(id).unwrap().building);
    let finish = |name: &str| Command::FinishIndex {
        database: DB.into(),
        table: "t".into(),
        index: name.into(),
    };
    apply(&mut catalog, finish("t_b_idx"));
    assert!(!get(&catalog, "t").index("t_b_idx").unwrap().building);
    let missing = "index \"x\" does not exist";
    refuse(&catalog, finish("x"), SqlState::UNDEFINED_OBJECT, missing);
    refuse(
        &catalog,
        drop_index("x", false),
        SqlState::UNDEFINED_OBJECT,
        missing,
    );
    let taken = create_index("t", index("t_b_idx", &[1], false, false), false);
    refuse(
        &catalog,
        taken,
        SqlState::DUPLICATE_TABLE,
        "relation \"t_b_idx\" already exists",
    );
    let taken = create_index("t", index("t_b_idx", &[1], false, false), true);
    assert!(apply(&mut catalog, taken).skipped.is_some());
    let nowhere = create_index("x", index("", &[1], false, false), false);
    refuse(
        &catalog,
        nowhere,
        SqlState::UNDEFINED_TABLE,
        "relation \"x\" does not exist",
    );
    let error = catalog.apply(&drop_index("t_pkey", false)).unwrap_err();
    assert_eq!(error.state(), SqlState::DEPENDENT_OBJECTS);
    assert_eq!(
        error.fields().hint,
        "You can drop constraint t_pkey on table t instead."
    );
    let wrong = "\"t\" is not an index";
    refuse(
        &catalog,
        drop_index("t", true),
        SqlState::WRONG_OBJECT_TYPE,
        wrong,
    );
    // Before it goes it serves readers no more; that says all that there is to be said.
    let retire = |name: &str, if_exists| Command::RetireIndex {
        database: DB.into(),
        names: vec![name.into()],
        if_exists,
    };
    refuse(
        &catalog,
        retire("x", false),
        SqlState::UNDEFINED_OBJECT,
        missing,
    );
    assert!(apply(&mut catalog, retire("x", true)).skipped.is_some());
    apply(&mut catalog, retire("t_b_idx", false));
    assert!(get(&catalog, "t").index("t_b_idx").unwrap().building);
    assert_eq!(
        apply(&mut catalog, drop_index("t_b_idx", false)).dropped,
        [id]
    );
    // A unique constraint whose backfill fails is undone.
    apply(
        &mut catalog,
        create_index("t", index("", &[1], true, true), false),
    );
    assert_eq!(
        apply(&mut catalog, drop_index("t_b_key", false))
            .dropped
            .len(),
        1
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

#[test]
fn a_primary_key_replaces_the_row_number() {
    let mut catalog = fresh();
    apply(&mut catalog, create(table("t", &[])));
    let old = get(&catalog, "t").primary.id;
    let set = |id| Command::SetPrimaryKey {
        database: DB.into(),
        table: "t".into(),
        constraint: String::new(),
        primary: Index {
            id: IndexId(id),
            ..index("", &[1], true, true)
        },
        columns: table("t", &[]).columns,
        partition: vec![],
    };
    refuse(
        &catalog,
        set(1),
        SqlState::OBJECT_NOT_READY,
        "key space 1 is not reserved",
    );
    let reserved = apply(&mut catalog, Command::Reserve).reserved;
    assert_eq!(catalog.reserved, [IndexId(reserved)]);
    let freeze = Command::Freeze {
        database: DB.into(),
        table: "t".into(),
        frozen: true,
    };
    apply(&mut catalog, freeze);
    assert!(get(&catalog, "t").frozen);
    assert_eq!(apply(&mut catalog, set(reserved)).dropped, [old]);
    let t = get(&catalog, "t");
    assert_eq!(
        (t.primary.id, t.primary.name.as_str()),
        (IndexId(reserved), "t_pkey")
    );
    assert_eq!(
        (t.rowid(), t.columns.len(), t.partition.as_slice()),
        (None, 3, &[1][..])
    );
    assert!(t.frozen && t.columns[1].not_null && t.changed == catalog.version);
    assert_eq!(catalog.reserved, []);
    // It is no reservation any more: giving it up again must not take the rows.
    let unreserve = Command::Unreserve {
        index: IndexId(reserved),
    };
    assert_eq!(apply(&mut catalog, unreserve).dropped, []);
    let again = apply(&mut catalog, Command::Reserve).reserved;
    let multiple = "multiple primary keys for table \"t\" are not allowed";
    refuse(
        &catalog,
        set(again),
        SqlState::INVALID_TABLE_DEFINITION,
        multiple,
    );
    let unreserve = Command::Unreserve {
        index: IndexId(again),
    };
    assert_eq!(apply(&mut catalog, unreserve).dropped, [IndexId(again)]);
}

#[test]
fn a_primary_key_is_refused_where_entries_hold_row_numbers() {
    let mut catalog = fresh();
    apply(&mut catalog, create(table("t", &[])));
    apply(
        &mut catalog,
        create_index("t", index("", &[1], false, false), false),
    );
    let reserved = apply(&mut catalog, Command::Reserve).reserved;
    let set = Command::SetPrimaryKey {
        database: DB.into(),
        table: "t".into(),
        constraint: "k".into(),
        primary: Index {
            id: IndexId(reserved),
            ..index("", &[1], true, true)
        },
        columns: table("t", &[]).columns,
        partition: vec![],
    };
    let message = "a primary key cannot be added to a table that has indexes";
    refuse(&catalog, set, SqlState::FEATURE_NOT_SUPPORTED, message);
}

#[test]
fn checks_are_added() {
    let mut catalog = fresh();
    apply(&mut catalog, create(table("t", &[0])));
    let add = |name: &str| Command::AddCheck {
        database: DB.into(),
        table: "t".into(),
        check: Check {
            name: name.into(),
            expression: "b > 0".into(),
            validity: Validity::Valid,
        },
    };
    apply(&mut catalog, add(""));
    assert_eq!(get(&catalog, "t").checks[0].name, "t_b_check");
    let message = "constraint \"t_pkey\" for relation \"t\" already exists";
    refuse(&catalog, add("t_pkey"), SqlState::DUPLICATE_OBJECT, message);
}

#[test]
fn catalogs_and_commands_round_trip() {
    let mut catalog = fresh();
    let command = create(table("t", &[0]));
    let bytes = base::codec::to_vec(&command);
    assert_eq!(base::codec::decode::<Command>(&bytes), Ok(command.clone()));
    apply(&mut catalog, command);
    let bytes = base::codec::to_vec(&catalog);
    assert_eq!(base::codec::decode::<Catalog>(&bytes), Ok(catalog));
}

#[test]
fn comments_are_kept_until_what_they_are_about_is_dropped() {
    let mut catalog = fresh();
    apply(&mut catalog, create(table("orders", &[0])));
    let comment = |subject: Subject, text: &str| Command::Comment {
        database: DB.into(),
        subject,
        text: (!text.is_empty()).then(|| text.into()),
    };
    let before = catalog.databases[DB].comments.len();
    let all = [
        Subject::Database,
        Subject::Relation("table".into(), "orders".into()),
        Subject::Column("orders".into(), "a".into()),
        Subject::Constraint("orders".into(), "orders_pkey".into()),
        Subject::Relation("index".into(), "orders_pkey".into()),
    ];
    for subject in &all {
        apply(&mut catalog, comment(subject.clone(), "text"));
    }
    assert_eq!(catalog.databases[DB].comments.len(), before + all.len());
    let mut bytes = Vec::new();
    base::codec::encode(&catalog, &mut bytes);
    let back: Catalog = base::codec::decode(&bytes).expect("what was encoded");
    assert_eq!(back, catalog, "comments survive a restart");
    let long = "x".repeat(base::limits::COMMENT_BYTES_MAX + 1);
    let message = "a comment cannot be longer than 8192 bytes";
    refuse(
        &catalog,
        comment(Subject::Database, &long),
        SqlState::PROGRAM_LIMIT,
        message,
    );
    let elsewhere = Command::Comment {
        database: "nowhere".into(),
        subject: Subject::Database,
        text: None,
    };
    let message = "database \"nowhere\" does not exist";
    refuse(&catalog, elsewhere, SqlState::INVALID_DATABASE, message);
    apply(
        &mut catalog,
        comment(Subject::Column("orders".into(), "a".into()), ""),
    );
    assert_eq!(catalog.databases[DB].comments.len(), before + all.len() - 1);
    apply(&mut catalog, drop(&["orders"], false, true));
    let left: Vec<&str> = catalog.databases[DB]
        .comments
        .values()
        .map(|text| &**text)
        .collect();
    assert_eq!(
        left,
        ["text", "standard public schema"],
        "the database's and the schema's"
    );
}

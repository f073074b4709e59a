//! What sessions make for themselves: in schemas of their own, which come and go by themselves.

use super::{DB, apply, create, drop, foreign_key, fresh, get, refuse, table};
use base::SqlState;
use base::full_name::{full, temporary_of};
use catalog::{Command, SchemaChange, TableAction, temporary_name};

fn own(pid: i32, name: &str) -> String {
    full(temporary_of(pid), name)
}

fn drop_schema(pid: i32) -> Command {
    Command::Schema {
        database: DB.into(),
        change: SchemaChange::Drop {
            names: vec![temporary_name(pid)],
            if_exists: true,
            cascade: true,
        },
    }
}

#[test]
fn the_first_table_makes_the_schema_and_its_end_takes_all() {
    let mut catalog = fresh();
    apply(&mut catalog, create(table("t", &[0])));
    for pid in [7, 8] {
        apply(&mut catalog, create(table(&own(pid, "t"), &[0])));
    }
    apply(&mut catalog, create(table(&own(7, "u"), &[])));
    let database = catalog.database(DB).unwrap();
    let left: Vec<(i32, &str)> = database.temporary_schemas().collect();
    assert_eq!(left, [(7, "pg_temp_7"), (8, "pg_temp_8")]);
    assert_eq!(database.schema("pg_temp_7"), Some(temporary_of(7)));
    assert!(database.has_temporary(8) && !database.has_temporary(9));
    assert_eq!(apply(&mut catalog, drop_schema(7)).dropped.len(), 2);
    let database = catalog.database(DB).unwrap();
    let left: Vec<i32> = database.temporary_schemas().map(|(pid, _)| pid).collect();
    assert_eq!(left, [8]);
    assert_eq!(database.tables.len(), 2);
    assert!(apply(&mut catalog, drop_schema(7)).skipped.is_some());
}

#[test]
fn lasting_and_temporary_tables_do_not_refer_to_each_other() {
    let mut catalog = fresh();
    apply(&mut catalog, create(table("p", &[0])));
    apply(&mut catalog, create(table(&own(7, "p"), &[0])));
    for (child, parent, kind) in [
        (own(7, "c"), "p".to_string(), "temporary"),
        ("c".to_string(), own(7, "p"), "permanent"),
    ] {
        let mut wanted = table(&child, &[]);
        wanted.foreign_keys = vec![foreign_key(&[0], &parent, &[0])];
        let message = format!("constraints on {kind} tables may reference only {kind} tables");
        let state = SqlState::INVALID_TABLE_DEFINITION;
        refuse(&catalog, create(wanted), state, &message);
    }
    let mut wanted = table(&own(7, "c"), &[]);
    wanted.foreign_keys = vec![foreign_key(&[0], &own(7, "p"), &[0])];
    apply(&mut catalog, create(wanted));
}

#[test]
fn nothing_moves_into_or_out_of_the_schema_of_a_session() {
    let mut catalog = fresh();
    apply(&mut catalog, create(table("t", &[0])));
    apply(&mut catalog, create(table(&own(7, "u"), &[0])));
    for (name, to) in [("t".to_string(), "pg_temp_7"), (own(7, "u"), "public")] {
        let command = Command::Schema {
            database: DB.into(),
            change: SchemaChange::Move {
                kind: rights::ObjectKind::Table,
                name,
                to: to.into(),
            },
        };
        let message = "cannot move objects into or out of temporary schemas";
        refuse(&catalog, command, SqlState::FEATURE_NOT_SUPPORTED, message);
    }
}

#[test]
fn a_block_goes_on_behind_another_name_of_a_temporary_table() {
    let mut catalog = fresh();
    let rename = |name: &str| Command::AlterTable {
        database: DB.into(),
        table: name.into(),
        actions: vec![TableAction::RenameTable { to: "z".into() }],
    };
    for (name, to, kept) in [
        ("t".into(), "z".into(), false),
        (own(7, "t"), own(7, "z"), true),
    ] {
        apply(&mut catalog, create(table(&name, &[0])));
        let before = get(&catalog, &name).changed;
        apply(&mut catalog, rename(&name));
        assert_eq!(get(&catalog, &to).changed == before, kept);
    }
    apply(&mut catalog, drop(&[own(7, "z").as_str()], false, false));
}

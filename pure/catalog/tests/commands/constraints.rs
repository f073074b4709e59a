//! Constraints: foreign keys, primary keys that come later, and checks.

use super::{
    DB, apply, create, create_index, drop, drop_index, foreign_key, fresh, get, index, refuse,
    table,
};
use base::{IndexId, SqlState, Type};
use catalog::{
    Catalog, Check, Column, ColumnState, Command, ForeignKey, Index, PolicyChange, TableAction,
    Validity, retyped, retyped_key,
};

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
        secondary: vec![],
        columns: table("t", &[]).columns,
        partition: vec![],
        drops: None,
        replaces: old,
        cascade: false,
        looked_at: Vec::new(),
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
        secondary: vec![],
        columns: table("t", &[]).columns,
        partition: vec![],
        drops: None,
        replaces: get(&catalog, "t").primary.id,
        cascade: false,
        looked_at: Vec::new(),
    };
    let message = "the indexes of table \"t\" have changed meanwhile";
    refuse(&catalog, set, SqlState::OBJECT_NOT_READY, message);
}

/// Rows of these columns in new key spaces: of a primary key (`primary`), or numbered.
fn rewrite(
    (name, replaces): (&str, IndexId),
    columns: Vec<Column>,
    primary: Index,
    secondary: Vec<Index>,
) -> Command {
    let keys = primary.columns.iter().map(|key| key.column);
    Command::SetPrimaryKey {
        database: DB.into(),
        table: name.into(),
        constraint: primary.name.clone(),
        partition: keys.collect(),
        primary,
        secondary,
        columns,
        drops: None,
        replaces,
        cascade: false,
        looked_at: Vec::new(),
    }
}

#[test]
fn a_primary_key_goes_and_rows_are_numbered() {
    let mut catalog = fresh();
    apply(&mut catalog, create(table("t", &[0])));
    apply(
        &mut catalog,
        create_index("t", index("i", &[1], false, false), false),
    );
    let finish = Command::FinishIndex {
        database: DB.into(),
        table: "t".into(),
        index: "i".into(),
    };
    apply(&mut catalog, finish);
    let old = get(&catalog, "t").clone();
    let spaces: Vec<u32> = (0..2)
        .map(|_| apply(&mut catalog, Command::Reserve).reserved)
        .collect();
    let mut numbered = old.columns.clone();
    numbered.push(Column::row_number());
    let set = |columns: Vec<Column>| {
        let at = |number: usize, index: Index| Index {
            id: IndexId(spaces[number]),
            ..index
        };
        let secondary = vec![at(1, old.secondary[0].clone())];
        let of = ("t", old.primary.id);
        rewrite(of, columns, at(0, index("", &[3], true, false)), secondary)
    };
    // Another statement was first.
    let mut changed = catalog.clone();
    let add = Command::AlterTable {
        database: DB.into(),
        table: "t".into(),
        actions: vec![TableAction::AddColumn {
            column: Column::new("d", Type::Int4),
            place: 3,
            if_not_exists: false,
        }],
    };
    apply(&mut changed, add);
    let message = "table \"t\" was changed by another statement";
    refuse(
        &changed,
        set(numbered.clone()),
        SqlState::SERIALIZATION,
        message,
    );
    let dropped = apply(&mut catalog, set(numbered.clone())).dropped;
    let ids: Vec<IndexId> = old.indexes().map(|index| index.id).collect();
    assert_eq!(dropped, ids);
    let t = get(&catalog, "t");
    assert_eq!((t.rowid(), &t.primary_constraint), (Some(3), &None));
    assert_eq!((t.primary.name.as_str(), t.primary.constraint), ("", false));
    assert!(t.columns[0].not_null);
    let again = apply(&mut catalog, Command::Reserve).reserved;
    let other = apply(&mut catalog, Command::Reserve).reserved;
    let twice = rewrite(
        ("t", old.primary.id),
        numbered,
        Index {
            id: IndexId(again),
            ..index("", &[3], true, false)
        },
        vec![Index {
            id: IndexId(other),
            ..old.secondary[0].clone()
        }],
    );
    refuse(&catalog, twice, SqlState::SERIALIZATION, message);
}

fn frozen(table: &str) -> Command {
    Command::Freeze {
        database: DB.into(),
        table: table.into(),
        frozen: true,
    }
}

fn alter(table: &str, actions: Vec<TableAction>) -> Command {
    Command::AlterTable {
        database: DB.into(),
        table: table.into(),
        actions,
    }
}

/// A column that is to take the place of column `b`.
fn instead_of_b(place: u16) -> TableAction {
    let column = Column {
        generated: Some("b".into()),
        hidden: true,
        state: ColumnState::Filling,
        shown_at: Some(1),
        ..Column::new(&retyped("b"), Type::Int8)
    };
    TableAction::AddColumn {
        column,
        place,
        if_not_exists: false,
    }
}

#[test]
fn foreign_keys_of_a_column_with_another_type() {
    let mut catalog = fresh();
    let mut parent = table("t", &[0]);
    parent.secondary = vec![index("t_b_key", &[1], true, true)];
    apply(&mut catalog, create(parent));
    let mut child = table("k", &[0]);
    child.foreign_keys = vec![foreign_key(&[1], "t", &[1])];
    apply(&mut catalog, create(child));
    let key = get(&catalog, "k").foreign_keys[0].clone();
    let place = get(&catalog, "k").columns.len() as u16;

    // The side that refers.
    let mut own = catalog.clone();
    let copy = retyped_key(&key, vec![place], vec![1]);
    let actions = vec![instead_of_b(place), TableAction::AddForeignKey(copy)];
    apply(&mut own, alter("k", actions));
    assert_eq!(get(&own, "t").referenced_by.len(), 2);
    let mut undone = own.clone();
    apply(&mut undone, alter("k", vec![TableAction::Undo]));
    assert_eq!(get(&undone, "k").foreign_keys, std::slice::from_ref(&key));
    assert_eq!(get(&undone, "t").referenced_by.len(), 1);
    apply(&mut own, alter("k", vec![TableAction::Publish]));
    let moved = ForeignKey {
        columns: vec![place],
        ..key.clone()
    };
    assert_eq!(get(&own, "k").foreign_keys, [moved]);
    assert_eq!(get(&own, "t").referenced_by.len(), 1);

    // The side that is referred to: the copy comes when the new index is complete.
    let mut other = catalog.clone();
    let copied = index(&retyped("t_b_key"), &[place], true, true);
    let actions = vec![instead_of_b(place), TableAction::AddIndex(copied)];
    apply(&mut other, alter("t", actions));
    // A foreign key that nobody has copied.
    let mut late = other.clone();
    let publish = alter("t", vec![TableAction::Publish]);
    let message = "table \"t\" was changed by another statement";
    refuse(&late, publish.clone(), SqlState::SERIALIZATION, message);
    apply(&mut late, alter("t", vec![TableAction::Undo]));
    assert_eq!(get(&late, "t").secondary.len(), 1);
    let finish = Command::FinishIndex {
        database: DB.into(),
        table: "t".into(),
        index: retyped("t_b_key"),
    };
    apply(&mut other, finish);
    let add = Command::AddForeignKey {
        database: DB.into(),
        table: "k".into(),
        foreign_key: retyped_key(&key, vec![1], vec![place]),
    };
    apply(&mut other, add);
    assert!(get(&other, "k").unfinished_constraints(DB).is_empty());
    let mut undone = other.clone();
    apply(&mut undone, alter("t", vec![TableAction::Undo]));
    assert_eq!(get(&undone, "k").foreign_keys, std::slice::from_ref(&key));
    assert_eq!(get(&undone, "t").referenced_by.len(), 1);
    assert_eq!(get(&undone, "t").secondary, get(&catalog, "t").secondary);
    apply(&mut other, publish);
    let moved = ForeignKey {
        parent_columns: vec![place],
        ..key
    };
    assert_eq!(get(&other, "k").foreign_keys, [moved]);
    assert_eq!(get(&other, "t").referenced_by.len(), 1);
}

/// What VALIDATE CONSTRAINT has looked at was not looked at with the new values.
#[test]
fn a_foreign_key_that_was_validated_meanwhile() {
    let mut catalog = fresh();
    apply(&mut catalog, create(table("t", &[0])));
    let mut child = table("k", &[0]);
    child.foreign_keys = vec![foreign_key(&[1], "t", &[])];
    apply(&mut catalog, create(child));
    let key = get(&catalog, "k").foreign_keys[0].clone();
    let validity = |validity| Command::SetValidity {
        database: DB.into(),
        table: "k".into(),
        constraint: key.name.clone(),
        validity,
    };
    apply(&mut catalog, validity(Validity::NotValid));
    let place = get(&catalog, "k").columns.len() as u16;
    let copy = retyped_key(&get(&catalog, "k").foreign_keys[0], vec![place], vec![0]);
    assert_eq!(copy.validity, Validity::NotValid);
    let actions = vec![instead_of_b(place), TableAction::AddForeignKey(copy)];
    apply(&mut catalog, alter("k", actions));
    let publish = alter("k", vec![TableAction::Publish]);
    let mut same = catalog.clone();
    apply(&mut same, publish.clone());
    assert_eq!(get(&same, "k").foreign_keys[0].columns, [place]);
    apply(&mut catalog, validity(Validity::Valid));
    let message = "table \"k\" was changed by another statement";
    refuse(&catalog, publish, SqlState::SERIALIZATION, message);
    apply(&mut catalog, alter("k", vec![TableAction::Undo]));
    assert_eq!(get(&catalog, "k").foreign_keys, [key]);
}

/// DISABLE TRIGGER ALL: of the keys that are there, on the side of the table.
#[test]
fn foreign_keys_are_switched_off_and_on() {
    let mut catalog = fresh();
    apply(&mut catalog, create(table("t", &[0])));
    let mut child = table("k", &[0]);
    child.foreign_keys = vec![foreign_key(&[1], "t", &[])];
    apply(&mut catalog, create(child));
    let triggers = |table: &str, on| Command::Policy {
        database: DB.into(),
        table: table.into(),
        change: PolicyChange::Triggers(on),
    };
    let off = |catalog: &Catalog| {
        let keys = get(catalog, "k").foreign_keys.clone();
        let off = keys.iter().map(|key| (key.child_off, key.parent_off));
        off.collect::<Vec<_>>()
    };
    apply(&mut catalog, triggers("k", false));
    assert_eq!(off(&catalog), [(true, false)]);
    apply(&mut catalog, triggers("t", false));
    assert_eq!(off(&catalog), [(true, true)]);
    let later = Command::AddForeignKey {
        database: DB.into(),
        table: "k".into(),
        foreign_key: ForeignKey {
            name: "later".into(),
            ..foreign_key(&[1], "t", &[])
        },
    };
    apply(&mut catalog, later);
    assert_eq!(off(&catalog), [(true, true), (false, false)]);
    apply(&mut catalog, triggers("t", true));
    assert_eq!(off(&catalog), [(true, false), (false, false)]);
    apply(&mut catalog, triggers("k", true));
    assert_eq!(off(&catalog), [(false, false), (false, false)]);
}

/// What undoes a change cannot fail, also when a table has gone that the change was to freeze.
#[test]
fn a_table_that_has_gone_is_opened() {
    let freeze = |frozen| Command::Freeze {
        database: DB.into(),
        table: "gone".into(),
        frozen,
    };
    let mut catalog = fresh();
    apply(&mut catalog, freeze(false));
    let message = "relation \"gone\" does not exist";
    refuse(&catalog, freeze(true), SqlState::UNDEFINED_TABLE, message);
}

#[test]
fn columns_of_a_primary_key_get_another_type() {
    let mut catalog = fresh();
    apply(&mut catalog, create(table("t", &[0])));
    let mut child = table("k", &[0]);
    child.foreign_keys = vec![foreign_key(&[1], "t", &[])];
    let space = apply(&mut catalog, Command::Reserve).reserved;
    let mut columns = get(&catalog, "t").columns.clone();
    columns[0] = Column {
        name: retyped("a"),
        ty: Type::Text,
        generated: Some("a".into()),
        ..columns[0].clone()
    };
    let primary = Index {
        id: IndexId(space),
        ..index("t_pkey", &[0], true, true)
    };
    let before = get(&catalog, "t").primary.id;
    let set = rewrite(("t", before), columns, primary, vec![]);
    let mut with_child = catalog.clone();
    apply(&mut with_child, create(child));
    let message = "foreign key constraint \"k_b_fkey\" cannot be implemented";
    refuse(
        &with_child,
        set.clone(),
        SqlState::DATATYPE_MISMATCH,
        message,
    );
    // The key has been looked at, and nobody writes to either table.
    let with = |looked_at: &[(String, ForeignKey)]| {
        let mut set = set.clone();
        if let Command::SetPrimaryKey {
            columns,
            looked_at: known,
            ..
        } = &mut set
        {
            columns[0].ty = Type::Int8;
            *known = looked_at.to_vec();
        }
        set
    };
    let message = "table \"t\" was changed by another statement";
    let key = get(&with_child, "k").foreign_keys[0].clone();
    let before_it_was_valid = ForeignKey {
        validity: Validity::NotValid,
        ..key.clone()
    };
    let known = [("k".to_string(), key)];
    refuse(&with_child, with(&known), SqlState::SERIALIZATION, message);
    for table in ["k", "t"] {
        apply(&mut with_child, frozen(table));
    }
    refuse(&with_child, with(&[]), SqlState::SERIALIZATION, message);
    let stale = [("k".to_string(), before_it_was_valid)];
    refuse(&with_child, with(&stale), SqlState::SERIALIZATION, message);
    apply(&mut with_child, with(&known));
    assert_eq!(get(&with_child, "t").columns[0].ty, Type::Int8);
    // The rows lie elsewhere since this was planned.
    let other = apply(&mut catalog, Command::Reserve).reserved;
    let moved = Index {
        id: IndexId(other),
        ..index("t_pkey", &[1], true, true)
    };
    let columns = get(&catalog, "t").columns.clone();
    let mut elsewhere = catalog.clone();
    apply(
        &mut elsewhere,
        rewrite(("t", before), columns, moved, vec![]),
    );
    let message = "table \"t\" was changed by another statement";
    refuse(&elsewhere, set.clone(), SqlState::SERIALIZATION, message);
    apply(&mut catalog, set);
    let t = get(&catalog, "t");
    assert_eq!(t.primary_constraint.as_deref(), Some("t_pkey"));
    let a = &t.columns[0];
    assert_eq!((a.name.as_str(), a.ty, a.not_null), ("a", Type::Text, true));
    assert_eq!((&a.generated, a.hidden), (&None, false));
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

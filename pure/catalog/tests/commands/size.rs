//! The limit of a catalog's size: no command gets a catalog beyond it, and none that takes away,
//! ends or undoes is refused there.

use super::{DB, apply, column, create, create_database, create_index, drop, drop_index};
use super::{foreign_key, fresh, index, refuse, sequence, table};
use base::limits::CATALOG_BYTES_MAX;
use base::{IndexId, SqlState, Type};
use catalog::*;
use rights::{Change, Grant, ObjectNames, Privileges, RoleName};
use std::sync::Arc;

fn alter(table: &str, action: TableAction) -> Command {
    Command::AlterTable {
        database: DB.into(),
        table: table.into(),
        actions: vec![action],
    }
}

fn alter_enum(change: EnumChange) -> Command {
    Command::AlterEnum {
        database: DB.into(),
        name: "mood".into(),
        change,
    }
}

fn rename(from: &str, to: &str) -> Command {
    Command::RenameRelation {
        database: DB.into(),
        from: from.into(),
        to: to.into(),
    }
}

fn rename_view(to: &str) -> Command {
    Command::RenameView {
        database: DB.into(),
        name: "look".into(),
        to: to.into(),
        if_exists: false,
    }
}

fn create_view(query: &str) -> Command {
    let columns = vec![ViewColumn {
        name: "one".into(),
        ty: Type::Int4,
    }];
    Command::CreateView {
        database: DB.into(),
        view: View {
            id: base::TableId(0),
            name: "look".into(),
            query: query.into(),
            renamed: false,
            updatable: false,
            check: None,
            columns,
            uses: vec![],
        },
        replace: true,
    }
}

fn change(change: Change) -> Command {
    Command::Rights {
        database: DB.into(),
        change,
    }
}

fn role(name: &str) -> RoleName {
    RoleName::Named(name.into())
}

fn create_role(name: &str) -> Command {
    change(Change::CreateRole {
        name: name.into(),
        options: vec![],
    })
}

fn rename_role(to: &str) -> Command {
    change(Change::RenameRole {
        from: "ann".into(),
        to: to.into(),
    })
}

fn grant(is_grant: bool, privilege: Privileges) -> Command {
    change(Change::Grant(Grant {
        is_grant,
        privileges: vec![(privilege, vec![])],
        objects: ObjectNames::Relations(vec!["t".into()]),
        roles: vec![role("ann")],
        option: false,
        cascade: false,
    }))
}

fn comment(text: Option<String>) -> Command {
    Command::Comment {
        database: DB.into(),
        subject: Subject::Database,
        text,
    }
}

fn freeze(frozen: bool) -> Command {
    Command::Freeze {
        database: DB.into(),
        table: "t".into(),
        frozen,
    }
}

fn switch(protocol: ProtocolKind, switching: Option<Switching>) -> Command {
    Command::Switch {
        database: DB.into(),
        protocol,
        switching,
    }
}

fn filling(name: &str, place: u16) -> Command {
    let mut column = column(name, Type::Int4);
    (column.hidden, column.state) = (true, ColumnState::Filling);
    alter(
        "t",
        TableAction::AddColumn {
            column,
            place,
            if_not_exists: false,
        },
    )
}

/// Something of each kind, with changes that have begun.
fn with_everything() -> Catalog {
    let mut catalog = fresh();
    let mut t = table("t", &[0]);
    t.checks = vec![Check {
        name: "short".into(),
        expression: "b > 0".into(),
        validity: Validity::Valid,
    }];
    let mut child = table("child", &[0]);
    child.foreign_keys = vec![foreign_key(&[1], "t", &[0])];
    for command in [
        create(t),
        create(child),
        create_index("t", index("ready", &[1], false, false), false),
        create_index("t", index("built", &[2], false, false), false),
        Command::CreateSequence {
            database: DB.into(),
            sequence: sequence("numbers"),
            if_not_exists: false,
        },
        Command::CreateEnum {
            database: DB.into(),
            name: "mood".into(),
            attributes: None,
            labels: vec!["sad".into(), "happy".into()],
        },
        alter_enum(EnumChange::AddLabel {
            label: "ok".into(),
            if_not_exists: false,
            beside: None,
        }),
        create_view("SELECT 1 AS one"),
        create_role("ann"),
        grant(true, Privileges::SELECT),
        comment(Some("a text".into())),
        Command::Reserve,
    ] {
        apply(&mut catalog, command);
    }
    catalog
}

/// The same with this much in it, as if it had been allowed.
fn filled(mut catalog: Catalog, bytes: usize) -> Catalog {
    let database = Arc::make_mut(catalog.databases.get_mut(DB).unwrap());
    let (key, text) = (Commented::Schema(2200), "x".repeat(bytes));
    database.comments.insert(key, text);
    catalog
}

#[test]
fn the_encoding_in_pieces_is_that_of_the_whole() {
    let mut catalog = with_everything();
    let mut known = EncodedTables::default();
    let to = || "moved".to_string();
    for command in [
        create(table("other", &[0])),
        alter("t", TableAction::RenameTable { to: to() }),
        drop(&["other"], false, false),
        create_database("second", false),
    ] {
        assert_eq!(catalog.encoded(&mut known), base::codec::to_vec(&catalog));
        let before = catalog.clone();
        apply(&mut catalog, command);
        let bytes = base::codec::to_vec(&catalog);
        assert_eq!(catalog.encoded(&mut known), bytes);
        // As it comes to another node.
        let mut other: Catalog = base::codec::decode(&bytes).unwrap();
        other.share(&before);
        assert_eq!(other, catalog);
        let shared = |(name, table): (&String, &Arc<Table>)| {
            let known = before.databases[DB].tables.get(name);
            known.is_some_and(|known| Arc::ptr_eq(known, table))
        };
        let tables = other.databases[DB].tables.iter();
        assert!(tables.filter(|it| shared(*it)).count() + 2 >= before.databases[DB].tables.len());
    }
}

#[test]
fn nothing_grows_beyond_the_limit() {
    let catalog = with_everything();
    // Versions grow for ever, and take none of the room.
    let mut full = filled(catalog.clone(), CATALOG_BYTES_MAX);
    full.version = u64::MAX / 2;
    let long = "a_name_that_is_longer_than_those_of_dropped_columns";
    let renamed = |from: &str| TableAction::RenameColumn {
        from: from.into(),
        to: long.into(),
    };
    let to = || long.to_string();
    for command in [
        create_database("other", false),
        create(table("other", &[0])),
        create_index("t", index("other", &[2], false, false), false),
        alter("t", renamed("b")),
        alter("t", TableAction::RenameTable { to: to() }),
        alter(
            "t",
            TableAction::RenameConstraint {
                from: "short".into(),
                to: to(),
            },
        ),
        filling("more", 3),
        rename("ready", long),
        rename("numbers", long),
        rename_view(long),
        create_view("SELECT 1 + 1 + 1 AS one"),
        alter_enum(EnumChange::Rename { to: to() }),
        alter_enum(EnumChange::RenameLabel {
            from: "sad".into(),
            to: to(),
        }),
        alter_enum(EnumChange::AddLabel {
            label: "more".into(),
            if_not_exists: false,
            beside: None,
        }),
        create_role("bob"),
        rename_role(long),
        change(Change::Grant(Grant {
            is_grant: true,
            privileges: vec![(Privileges::SELECT, vec![])],
            objects: ObjectNames::Sequences(vec!["numbers".into()]),
            roles: vec![role("ann")],
            option: false,
            cascade: false,
        })),
        comment(Some("a longer text".into())),
        Command::Reserve,
    ] {
        let limit = SqlState::PROGRAM_LIMIT;
        let message = "the catalog cannot have more than 8388608 bytes";
        refuse(&full, command.clone(), limit, message);
        assert!(catalog.apply(&command).is_ok(), "{command:?}");
    }
}

#[test]
fn what_does_not_add_is_done_at_the_limit() {
    let mut catalog = with_everything();
    apply(&mut catalog, filling("n", 3));
    let reserved = catalog.reserved[0];
    let mut full = filled(catalog, CATALOG_BYTES_MAX);
    full.version = u64::MAX / 2;
    let names = || vec!["built".to_string()];
    let leap = ProtocolKind::Leap;
    let database = Arc::make_mut(full.databases.get_mut(DB).unwrap());
    database.switching = Some(Switching::Draining);
    for command in [
        switch(leap, Some(Switching::Gathering)),
        Command::SetProtocol {
            database: DB.into(),
            protocol: leap,
        },
        switch(leap, None),
        Command::Unreserve { index: reserved },
        alter("t", TableAction::Undo),
        freeze(true),
        freeze(false),
        alter_enum(EnumChange::PublishLabel { label: "ok".into() }),
        alter_enum(EnumChange::RenameLabel {
            from: "happy".into(),
            to: "glad".into(),
        }),
        alter_enum(EnumChange::Rename { to: "moo".into() }),
        alter("t", TableAction::Publish),
        alter("t", TableAction::RenameTable { to: "t".into() }),
        comment(Some("a tex".into())),
        comment(None),
        grant(true, Privileges::SELECT),
        grant(false, Privileges::SELECT),
        rename_role("an"),
        rename_view("loo"),
        rename("numbers", "number"),
    ] {
        match full.apply(&command) {
            Ok((next, _)) => full = next,
            Err(error) if error.state() == SqlState::DUPLICATE_TABLE => {}
            Err(error) => panic!("{command:?}: {error}"),
        }
    }
    // What Undo has taken away was made again; a name of one letter gets one of thirty.
    let drop_column = |name: &str| TableAction::DropColumn {
        name: name.into(),
        if_exists: false,
        cascade: true,
    };
    for command in [
        alter("t", drop_column("b")),
        Command::RetireIndex {
            database: DB.into(),
            names: names(),
            if_exists: true,
        },
        drop_index("built", true),
        Command::DropConstraint {
            database: DB.into(),
            table: "child".into(),
            constraint: "child_b_fkey".into(),
            if_exists: false,
        },
        change(Change::DropRoles {
            roles: vec![role("an")],
            if_exists: false,
        }),
        Command::Unreserve { index: IndexId(1) },
        drop(&["child"], false, false),
        drop(&["t"], false, true),
    ] {
        let applied = full.apply(&command);
        full = applied
            .unwrap_or_else(|error| panic!("{command:?}: {error}"))
            .0;
    }
}

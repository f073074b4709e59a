//! Commands: what they make of the catalog, and the SQLSTATE of every refusal.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod alter;
mod constraints;
mod databases;
mod indexes;
mod sequences;
mod size;
mod tables;
mod temporary;

use base::{IndexId, SqlState, TableId, Type};
use catalog::{
    Action, Applied, Catalog, Column, Command, Deferral, Execution, ForeignKey, Index, IndexColumn,
    Placement, ProtocolKind, Sequence, Table, Validity,
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
    Column::new(name, ty)
}

fn index(name: &str, columns: &[u16], unique: bool, constraint: bool) -> Index {
    let columns = columns.iter().map(|&column| IndexColumn {
        column,
        descending: false,
        nulls_first: false,
    });
    Index {
        id: IndexId(0),
        name: name.into(),
        columns: columns.collect(),
        unique,
        constraint,
        slot_columns: vec![],
        predicate: None,
        included: Vec::new(),
        classes: Vec::new(),
        nulls_equal: false,
        building: false,
        deferral: Deferral::Never,
        of_key: false,
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
        deferral: Deferral::Never,
        child_off: false,
        parent_off: false,
    }
}

fn sequence(name: &str) -> Sequence {
    Sequence {
        id: IndexId(0),
        name: name.into(),
        start: 1,
        first: None,
        ty: Type::Int8,
        increment: 1,
        min: 1,
        max: i64::MAX,
        cycle: false,
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
fn catalogs_and_commands_round_trip() {
    let mut catalog = fresh();
    let command = create(table("t", &[0]));
    let bytes = base::codec::to_vec(&command);
    assert_eq!(base::codec::decode::<Command>(&bytes), Ok(command.clone()));
    apply(&mut catalog, command);
    let bytes = base::codec::to_vec(&catalog);
    assert_eq!(base::codec::decode::<Catalog>(&bytes), Ok(catalog));
}

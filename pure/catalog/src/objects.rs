//! Where a database keeps its large objects: two tables of the server's own in the schema
//! `pg_catalog`, made when the first large object is. Their names and columns are PostgreSQL's.
//!
//! Nobody writes or changes them but the functions of large objects: a name without [`OWN_PATH`]
//! finds them only to be read.

use crate::command::Command;
use crate::desc::*;
use crate::schemas::PG_CATALOG_SCHEMA;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use base::full_name::{full, schema_of};
use base::types::ArrayKind;
use base::{IndexId, TableId, Type};

/// The path of statements that the server makes about its own tables. No session can have it,
/// because there is no schema 0.
pub const OWN_PATH: &[u32] = &[PG_CATALOG_SCHEMA, 0];
/// The table of large objects and their owners.
pub const OBJECTS: &str = "pg_largeobject_metadata";
/// The table of their pages.
pub const PAGES: &str = "pg_largeobject";
/// Bytes of a page, as in PostgreSQL.
pub const PAGE_BYTES: usize = 2_048;

/// Whether this is the full name of a table of the server's own.
pub fn is_own_table(name: &str) -> bool {
    schema_of(name) == PG_CATALOG_SCHEMA
}

/// Whether this is the full name of [`OBJECTS`], which every role may read.
pub fn is_list_of_objects(name: &str) -> bool {
    name == full(PG_CATALOG_SCHEMA, OBJECTS)
}

impl Database {
    /// The table of large objects or of their pages, if it has been made.
    pub fn own_table(&self, name: &str) -> Option<&Arc<Table>> {
        self.tables.get(&full(PG_CATALOG_SCHEMA, name))
    }

    /// Whether both tables of large objects are there.
    pub fn keeps_objects(&self) -> bool {
        self.own_table(OBJECTS).is_some() && self.own_table(PAGES).is_some()
    }
}

/// The commands that make both tables.
pub fn tables_of_objects(database: &str) -> Vec<Command> {
    let command = |table| Command::CreateTable {
        database: database.into(),
        table,
        sequences: Vec::new(),
        if_not_exists: true,
    };
    let texts = Type::Array(ArrayKind::Text);
    let objects = [
        ("oid", Type::Oid),
        ("lomowner", Type::Oid),
        ("lomacl", texts),
    ];
    let pages = [
        ("loid", Type::Oid),
        ("pageno", Type::Int4),
        ("data", Type::Bytea),
    ];
    // All pages of an object are on one shard.
    vec![
        command(table(OBJECTS, &objects, &[0])),
        command(table(PAGES, &pages, &[0, 1])),
    ]
}

fn table(name: &str, columns: &[(&str, Type)], key: &[u16]) -> Table {
    let columns = columns.iter().enumerate().map(|(at, (name, ty))| {
        let mut column = Column::new(name, *ty);
        column.not_null = key.contains(&(at as u16)) || *ty == Type::Bytea;
        column
    });
    let keys = key.iter().map(|column| IndexColumn {
        column: *column,
        descending: false,
        nulls_first: false,
    });
    let constraint: String = alloc::format!("{name}_oid_index");
    Table {
        id: TableId(0),
        name: full(PG_CATALOG_SCHEMA, name),
        changed: 0,
        columns: columns.collect(),
        primary: Index {
            id: IndexId(0),
            name: constraint.clone(),
            columns: keys.collect(),
            unique: true,
            constraint: true,
            slot_columns: Vec::new(),
            predicate: None,
            included: Vec::new(),
            classes: Vec::new(),
            nulls_equal: false,
            building: false,
            deferral: Deferral::Never,
            of_key: false,
        },
        primary_constraint: Some(constraint),
        secondary: Vec::new(),
        partition: vec![0],
        replicated: false,
        checks: Vec::new(),
        foreign_keys: Vec::new(),
        referenced_by: Vec::new(),
        frozen: false,
    }
}

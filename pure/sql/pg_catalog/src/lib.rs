//! The system catalog that clients query: `pg_catalog` and `information_schema`.
//!
//! Nothing of it is stored. Each table is computed from the [`catalog`] description of the
//! session's database at the moment it is scanned ([`VirtualTable::rows`]), and the functions that
//! go with it ([`functions`]) read the same description. Columns and types are PostgreSQL 15's,
//! because clients were compiled against them; tables about things that do not exist here
//! (triggers, policies, publications, ...) are empty.
//!
//! | module | what |
//! |---|---|
//! | `list` | names, numbers and columns of all tables |
//! | `absent` | those about things that do not exist here |
//! | `fixed`, `types`, `keywords` | rows that hardly depend on the database |
//! | `relations`, `columns`, `constraints` | rows about tables, indexes, sequences |
//! | `user_views`, `enums` | rows about views and enum types of users |
//! | `sees` | what a role sees in information_schema |
//! | `views`, `schema`, `information` | the same for people: pg_tables, information_schema |
//! | [`names`] | names to oids and back (`regclass`, `regtype`, ...) |
//! | `definitions` | SQL text of indexes and constraints |
//! | [`functions`] | functions over the catalog |
//! | [`path`] | `search_path`, and what a name means by it |
//! | [`output`] | values of results as text |
//! | [`rewrite`] | client queries that need SQL features of their own |
//! | [`settings`] | settings of a session: names, values, defaults |
//!
//! Invariants: an oid is unique per table; `pg_class.oid` is the number of the table, index or
//! sequence in the catalog; attribute numbers are column positions from 1, without gaps; the hidden
//! row-number column is nowhere.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

use core::convert::Infallible;

mod absent;
mod access;
mod columns;
mod comments;
mod constraints;
mod definitions;
mod domains;
pub(crate) mod enums;
mod fixed;
pub mod functions;
mod grants;
mod information;
mod keywords;
mod list;
pub mod names;
pub mod output;
pub mod own;
pub mod path;
mod placement;
mod policies;
mod procs;
mod relations;
pub mod rewrite;
mod routines;
mod schema;
mod sees;
pub mod settings;
mod statements;
mod statistics;
mod types;
mod user_views;
mod views;

use base::full_name::{beside, own};
use base::{Datum, RowBatch, Time, Type};
use catalog::{Catalog, Database, Index, Table};

/// Oid of schema `pg_catalog`.
const PG_CATALOG: u32 = 11;
/// Oid of schema `public`.
const PUBLIC: u32 = 2200;
/// Oid of schema `information_schema`.
const INFORMATION_SCHEMA: u32 = 13_207;
/// Oid of the role that every cluster has.
const OWNER: u32 = 10;
/// The role that owns the schema `public`: the owner of the database, as in PostgreSQL 15.
const DATABASE_OWNER: u32 = 6171;
/// Oid of the default tablespace.
const TABLESPACE: u32 = 1663;
/// Oid of the collation of database text.
const COLLATION: u32 = 100;
/// Oid of the table access method `heap`.
const HEAP: u32 = 2;
/// Oid of the index access method `btree`.
const BTREE: u32 = 403;

/// What the system catalog is computed from.
#[derive(Clone, Copy)]
pub struct CatalogCx<'a> {
    /// The catalog of the statement.
    pub catalog: &'a Catalog,
    /// The session's database.
    pub database: &'a Database,
    /// Name of the session's user.
    pub user: &'a str,
    /// Backend number of the session.
    pub pid: i32,
    /// Start of the transaction.
    pub txn_time: Time,
    /// Value of a session setting by lower-case name.
    pub setting: &'a dyn Fn(&str) -> Option<String>,
    /// Bytes that a key space (table, index, by oid) takes up, if known.
    pub size_bytes: &'a dyn Fn(u32) -> Option<i64>,
    /// What the shards tell for the table, fetched as [`VirtualTable::asks`] says.
    pub told: Option<&'a RowBatch>,
}

impl CatalogCx<'_> {
    fn tables(&self) -> impl Iterator<Item = &Table> {
        let tables = self.database.tables.values().map(|table| &**table);
        tables.filter(|table| !catalog::objects::is_own_table(&table.name))
    }
}

/// What a virtual table asks all shards.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Asked {
    /// Sessions of the cluster: the answer to `Show::Activity`.
    Sessions,
    /// What was found in the columns of tables: the answer to `Show::Values`.
    Values,
    /// What statements have cost: the answer to `Show::Statements`.
    Statements,
    /// Locks for which requests wait, and sessions of transactions: the answer to `Show::Locks`.
    Locks,
}

/// A column of a virtual table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct VirtualColumn {
    /// Its name.
    pub name: &'static str,
    /// Its type.
    pub ty: Type,
}

/// A table or view of the system catalog.
pub struct VirtualTable {
    /// Its oid in pg_class.
    pub oid: u32,
    /// Its name.
    pub name: &'static str,
    /// Its schema: `pg_catalog` or `information_schema`.
    pub schema: &'static str,
    /// `r` for tables, `v` for views.
    kind: char,
    /// Its columns in order.
    pub columns: &'static [VirtualColumn],
    rows: fn(&CatalogCx<'_>, &mut RowBatch),
}

impl core::fmt::Debug for VirtualTable {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{}.{}", self.schema, self.name)
    }
}

impl VirtualTable {
    /// Computes all rows, in no particular order.
    pub fn rows(&self, cx: &CatalogCx<'_>) -> RowBatch {
        let mut batch = RowBatch::new(self.columns.len());
        (self.rows)(cx, &mut batch);
        batch
    }

    /// Whether it is a view, whose rows have no system columns.
    pub fn is_view(&self) -> bool {
        self.kind == 'v'
    }

    /// What the shards are asked before the rows are computed, for [`CatalogCx::told`]; `None`:
    /// the catalog suffices.
    pub fn asks(&self) -> Option<Asked> {
        match self.name {
            "pg_locks" => Some(Asked::Locks),
            "pg_stat_activity" => Some(Asked::Sessions),
            "pg_stat_statements" => Some(Asked::Statements),
            "pg_stats" => Some(Asked::Values),
            _ => None,
        }
    }
}

/// The virtual table of that name. `schema` is `None` for a name without schema, which finds only
/// those of `pg_catalog` (it comes first in every search path). Names are in lower case.
pub fn lookup(schema: Option<&str>, name: &str) -> Option<&'static VirtualTable> {
    let lists = match schema {
        None | Some("pg_catalog") => [list::SYSTEM, absent::SYSTEM],
        Some("information_schema") => [list::INFORMATION, absent::INFORMATION],
        Some(_) => return None,
    };
    lists.into_iter().find_map(|tables| {
        let index = tables.binary_search_by_key(&name, |table| table.name);
        Some(&tables[index.ok()?])
    })
}

/// All virtual tables.
pub fn all() -> impl Iterator<Item = &'static VirtualTable> {
    let lists = [
        list::SYSTEM,
        list::INFORMATION,
        absent::SYSTEM,
        absent::INFORMATION,
    ];
    lists.into_iter().flatten()
}

/// Oid of a schema by name.
fn schema_oid(name: &str) -> u32 {
    match name {
        "pg_catalog" => PG_CATALOG,
        "information_schema" => INFORMATION_SCHEMA,
        _ => PUBLIC,
    }
}

/// The indexes of a table that users see, each with whether it is the primary key.
fn indexes(table: &Table) -> impl Iterator<Item = (&Index, bool)> {
    let primary = table
        .primary_constraint
        .is_some()
        .then_some((&table.primary, true));
    primary
        .into_iter()
        .chain(table.secondary.iter().map(|index| (index, index.of_key)))
}

/// The columns that users see, in their order, each with where it is shown: its number less one.
fn visible(table: &Table) -> impl Iterator<Item = (usize, &catalog::Column)> {
    let shown = table.shown().into_iter().map(usize::from);
    shown.map(|at| (usize::from(table.shown_at(at)), &table.columns[at]))
}

/// The number of a column.
fn number(table: &Table, place: u16) -> u16 {
    table.shown_at(usize::from(place)) + 1
}

// Values of catalog columns.

fn oid(value: u32) -> Datum {
    Datum::Int(i64::from(value))
}

fn int(value: impl TryInto<i64>) -> Datum {
    value.try_into().map_or(Datum::Null, Datum::Int)
}

fn flag(value: bool) -> Datum {
    Datum::Bool(value)
}

fn text(value: impl Into<Box<str>>) -> Datum {
    Datum::Text(value.into())
}

/// A `"char"`: one character, or none for `'\0'`.
fn letter(value: char) -> Datum {
    match value {
        '\0' => text(""),
        value => text(value.to_string()),
    }
}

/// The array of the same shape with other items.
fn mapped(array: &Datum, item: impl Fn(&Datum) -> Datum) -> Datum {
    let mapped = array
        .clone()
        .try_map_items(|one| Ok::<_, Infallible>(item(&one)));
    mapped.unwrap_or_else(|never| match never {})
}

fn array(items: impl IntoIterator<Item = Datum>) -> Datum {
    Datum::Array(items.into_iter().collect())
}

fn optional(value: Option<impl Into<Box<str>>>) -> Datum {
    value.map_or(Datum::Null, text)
}

/// `YES` or `NO`, as information_schema has Booleans.
fn yes_no(value: bool) -> Datum {
    text(if value { "YES" } else { "NO" })
}

#[cfg(test)]
mod tests;

//! Tables and statements of the history workloads: SQL that PostgreSQL and Trellis both take.

use super::{Kind, OPENING, OPENING_STOCK, Shape, TABLE_SPAN, TABLES};
use crate::wire::ParamType::{self, BigInt, Int, Text};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

/// Table 2 has this number less the key as its primary key.
const MIRROR: u32 = 2_000_000_000;
const _: () = assert!(TABLES * TABLE_SPAN < MIRROR, "a mirrored key is positive");

/// A statement, by its place in [`statements`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Statement {
    /// BEGIN at the level of the shape.
    Begin,
    /// The same, READ ONLY.
    BeginReadOnly,
    /// COMMIT.
    Commit,
    /// ROLLBACK.
    Rollback,
    /// Reads all accounts, places or counters.
    All,
    /// Reads one of them.
    One,
    /// The same, FOR UPDATE.
    OneLocked,
    /// Adds to one.
    Add,
    /// Sets one.
    Set,
    /// Takes from one where enough is left. Of a stock only.
    Take,
    /// Inserts or changes a row of a table of lists or registers.
    Upsert(u32),
    /// Changes it if it is there.
    Update(u32),
    /// Inserts it.
    Insert(u32),
    /// Reads it.
    Select(u32),
    /// Reads a range, in the order of the keys.
    Range(u32),
}

impl Statement {
    /// The place in [`statements`].
    pub fn number(self) -> usize {
        let of_table = |table: u32, which: usize| 9 + 5 * table as usize + which;
        match self {
            Statement::Begin => 0,
            Statement::BeginReadOnly => 1,
            Statement::Commit => 2,
            Statement::Rollback => 3,
            Statement::All => 4,
            Statement::One => 5,
            Statement::OneLocked => 6,
            Statement::Add => 7,
            Statement::Set => 8,
            Statement::Take => 9,
            Statement::Upsert(table) => of_table(table, 0),
            Statement::Update(table) => of_table(table, 1),
            Statement::Insert(table) => of_table(table, 2),
            Statement::Select(table) => of_table(table, 3),
            Statement::Range(table) => of_table(table, 4),
        }
    }
}

/// The table of a key.
pub fn table_of(key: u32) -> u32 {
    key / TABLE_SPAN
}

/// All statements of a shape with their parameter types, by [`Statement::number`]. Those that the
/// kind has no use for are not there: fixed rows end before the tables of keys, where a stock has
/// [`Statement::Take`], and tables of keys have `SELECT 1` in the place of fixed rows.
pub fn statements(shape: &Shape) -> Vec<(String, Vec<ParamType>)> {
    let level = shape.isolation.sql();
    let mut all: Vec<(String, Vec<ParamType>)> = vec![
        (format!("BEGIN ISOLATION LEVEL {level}"), vec![]),
        (format!("BEGIN ISOLATION LEVEL {level} READ ONLY"), vec![]),
        ("COMMIT".to_string(), vec![]),
        ("ROLLBACK".to_string(), vec![]),
    ];
    match fixed(shape.kind) {
        Some((table, id, value)) => {
            let one = format!("SELECT {value} FROM {table} WHERE {id} = $1");
            all.push((format!("SELECT {id}, {value} FROM {table}"), vec![]));
            all.push((one.clone(), vec![Int]));
            all.push((format!("{one} FOR UPDATE"), vec![Int]));
            all.push((
                format!("UPDATE {table} SET {value} = {value} + $2 WHERE {id} = $1"),
                vec![Int, BigInt],
            ));
            all.push((
                format!("UPDATE {table} SET {value} = $2 WHERE {id} = $1"),
                vec![Int, BigInt],
            ));
            if shape.kind == Kind::Stock {
                let guarded = format!(
                    "UPDATE {table} SET {value} = {value} - $2 WHERE {id} = $1 AND {value} >= $2"
                );
                all.push((guarded, vec![Int, BigInt]));
            }
        }
        None => {
            let none = ("SELECT 1".to_string(), vec![]);
            all.extend([none.clone(), none.clone(), none.clone(), none.clone(), none]);
            for table in 0..TABLES {
                all.extend(of_keys(shape.kind, table));
            }
        }
    }
    all
}

/// The table with fixed rows: its name, its key, its value.
fn fixed(kind: Kind) -> Option<(&'static str, &'static str, &'static str)> {
    match kind {
        Kind::ListAppend | Kind::Register | Kind::Phantom => None,
        Kind::Bank => Some(("bench_account", "id", "balance")),
        Kind::Ring => Some(("bench_ring", "id", "next")),
        Kind::Counter | Kind::HotCounter => Some(("bench_counter", "k", "n")),
        Kind::Stock => Some(("bench_stock", "k", "n")),
        Kind::HotPair => Some(("bench_pair", "id", "balance")),
    }
}

fn keyed(kind: Kind, table: u32) -> String {
    match kind {
        Kind::ListAppend => format!("bench_list_{table}"),
        _ => format!("bench_register_{table}"),
    }
}

/// Whether rows of the table have their list twice.
fn has_copy(kind: Kind, table: u32) -> bool {
    kind == Kind::ListAppend && table == 1
}

fn of_keys(kind: Kind, table: u32) -> [(String, Vec<ParamType>); 5] {
    let name = keyed(kind, table);
    let (change, value) = match kind {
        Kind::ListAppend => (format!("{name}.v || ',' || "), Text),
        _ => (String::new(), BigInt),
    };
    let (columns, values, unique) = match table {
        // Where the key is not the primary key, the primary key is its mirror.
        2 => ("id, k, v", format!("{MIRROR} - $1, $1, $2"), "id"),
        _ if has_copy(kind, table) => ("k, v, w", "$1, $2, $2".to_string(), "k"),
        _ => ("k, v", "$1, $2".to_string(), "k"),
    };
    let insert = format!("INSERT INTO {name} ({columns}) VALUES ({values})");
    let set = |value: &str| match has_copy(kind, table) {
        // The list is what its copy was, and more: a formula over another column.
        true => format!("v = {name}.w || ',' || {value}, w = {name}.w || ',' || {value}"),
        false => format!("v = {change}{value}"),
    };
    let upsert = format!(
        "{insert} ON CONFLICT ({unique}) DO UPDATE SET {}",
        set("excluded.v")
    );
    [
        (upsert, vec![Int, value]),
        (
            format!("UPDATE {name} SET {} WHERE k = $1", set("$2")),
            vec![Int, value],
        ),
        (insert, vec![Int, value]),
        (format!("SELECT v FROM {name} WHERE k = $1"), vec![Int]),
        (
            format!("SELECT k, v FROM {name} WHERE k >= $1 AND k <= $2 ORDER BY k"),
            vec![Int, Int],
        ),
    ]
}

/// Names of the tables of a kind.
pub fn tables(kind: Kind) -> Vec<String> {
    match fixed(kind) {
        Some((table, _, _)) => vec![table.to_string()],
        None => (0..TABLES).map(|table| keyed(kind, table)).collect(),
    }
}

/// Statements that make the tables, after those of an earlier run have been dropped, and fill them.
pub fn create(shape: &Shape) -> Vec<String> {
    let mut all = drop_all(shape.kind);
    let rows = |row: &dyn Fn(u32) -> String| {
        let rows: Vec<String> = (0..shape.keys).map(row).collect();
        rows.join(", ")
    };
    match shape.kind {
        Kind::ListAppend | Kind::Register | Kind::Phantom => {
            let value = match shape.kind {
                Kind::ListAppend => "text",
                _ => "bigint",
            };
            for table in 0..TABLES {
                let name = keyed(shape.kind, table);
                if table < 2 {
                    let copy = match has_copy(shape.kind, table) {
                        true => ", w text NOT NULL",
                        false => "",
                    };
                    all.push(format!(
                        "CREATE TABLE {name} (k int PRIMARY KEY, v {value} NOT NULL{copy})"
                    ));
                    continue;
                }
                all.push(format!(
                    "CREATE TABLE {name} (id int PRIMARY KEY, k int NOT NULL, v {value} NOT NULL)"
                ));
                all.push(format!("CREATE INDEX {name}_k ON {name} (k)"));
            }
        }
        Kind::Bank => all.extend([
            "CREATE TABLE bench_account (id int PRIMARY KEY, balance bigint NOT NULL)".to_string(),
            "CREATE INDEX bench_account_balance ON bench_account (balance)".to_string(),
            format!(
                "INSERT INTO bench_account (id, balance) VALUES {}",
                rows(&|id| format!("({id}, {OPENING})"))
            ),
        ]),
        Kind::Ring => all.extend([
            "CREATE TABLE bench_ring (id int PRIMARY KEY, next bigint NOT NULL)".to_string(),
            format!(
                "INSERT INTO bench_ring (id, next) VALUES {}",
                rows(&|id| format!("({id}, {})", (id + 1) % shape.keys))
            ),
        ]),
        Kind::Counter | Kind::HotCounter => all.extend([
            "CREATE TABLE bench_counter (k int PRIMARY KEY, n bigint NOT NULL)".to_string(),
            format!(
                "INSERT INTO bench_counter (k, n) VALUES {}",
                rows(&|k| format!("({k}, 0)"))
            ),
        ]),
        // Neither a CHECK nor an index on what is changed: so that all changes are formulas.
        Kind::Stock => all.extend([
            "CREATE TABLE bench_stock (k int PRIMARY KEY, n bigint NOT NULL)".to_string(),
            format!(
                "INSERT INTO bench_stock (k, n) VALUES {}",
                rows(&|k| format!("({k}, {OPENING_STOCK})"))
            ),
        ]),
        Kind::HotPair => all.extend([
            "CREATE TABLE bench_pair (id int PRIMARY KEY, balance bigint NOT NULL)".to_string(),
            format!(
                "INSERT INTO bench_pair (id, balance) VALUES {}",
                rows(&|id| format!("({id}, {OPENING})"))
            ),
        ]),
    }
    all
}

/// Statements that drop the tables where they are.
pub fn drop_all(kind: Kind) -> Vec<String> {
    let drop = |table: String| format!("DROP TABLE IF EXISTS {table}");
    tables(kind).into_iter().map(drop).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Isolation;

    #[test]
    fn numbers_name_their_statements() {
        let lists = statements(&Shape::new(Kind::ListAppend, 1, Isolation::ReadCommitted));
        for (statement, part) in [
            (Statement::BeginReadOnly, "READ COMMITTED READ ONLY"),
            (Statement::Rollback, "ROLLBACK"),
            (Statement::Upsert(0), "ON CONFLICT (k)"),
            (Statement::Update(1), "UPDATE bench_list_1"),
            (Statement::Insert(2), "INSERT INTO bench_list_2 (id, k, v)"),
            (Statement::Range(2), "FROM bench_list_2 WHERE k >= $1"),
        ] {
            assert!(lists[statement.number()].0.contains(part), "{statement:?}");
        }
        assert_eq!(lists.len(), Statement::Range(TABLES - 1).number() + 1);
        let bank = statements(&Shape::new(Kind::Bank, 1, Isolation::Serializable));
        for (statement, part) in [
            (Statement::All, "SELECT id, balance FROM"),
            (Statement::OneLocked, "FOR UPDATE"),
            (Statement::Add, "balance = balance + $2"),
            (Statement::Set, "SET balance = $2"),
        ] {
            assert!(bank[statement.number()].0.contains(part), "{statement:?}");
        }
        let stock = statements(&Shape::new(Kind::Stock, 1, Isolation::Serializable));
        let take = "UPDATE bench_stock SET n = n - $2 WHERE k = $1 AND n >= $2";
        assert_eq!(stock[Statement::Take.number()].0, take);
    }

    #[test]
    fn every_key_has_its_table() {
        assert_eq!(
            [0, 99_999_999, 100_000_000, 200_000_001].map(table_of),
            [0, 0, 1, 2]
        );
    }
}

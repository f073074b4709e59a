//! The table of packed groups and its statements, as text.

use entity::Kind;
use entity::sql::{self, Dialect, Statement};
use workload::wire::Isolation;

/// The statements that make the tables, after they were dropped.
pub fn setup(dialect: Dialect) -> Vec<String> {
    let (id, cell, end) = match dialect {
        Dialect::Postgres => ("bytea", "bytea", ""),
        Dialect::MySql => ("varbinary(1000)", "longblob", " ENGINE=InnoDB"),
    };
    vec![
        String::from("DROP TABLE IF EXISTS entity_group"),
        String::from("DROP TABLE IF EXISTS entity_stamp"),
        format!(
            "CREATE TABLE entity_group (id {id} NOT NULL, version bigint NOT NULL, client bigint \
             NOT NULL, sequence bigint NOT NULL, cell {cell} NOT NULL, PRIMARY KEY (id)){end}"
        ),
        format!(
            "CREATE TABLE entity_stamp (client bigint NOT NULL, sequence bigint NOT NULL, \
             PRIMARY KEY (client, sequence)){end}"
        ),
    ]
}

/// All statements, in the order of [`super::Session`].
pub(super) fn statements(dialect: Dialect, locks: bool) -> Vec<Statement> {
    let level = Isolation::ReadCommitted.sql();
    // Bytes as a parameter, and as a column.
    let bytes = |n: usize| match dialect {
        Dialect::Postgres => format!("${n}"),
        Dialect::MySql => format!("UNHEX(${n})"),
    };
    let shown = |column: &str| match dialect {
        Dialect::Postgres => String::from(column),
        Dialect::MySql => format!("HEX({column})"),
    };
    let (id, cell, lock) = (
        shown("id"),
        shown("cell"),
        if locks { " FOR UPDATE" } else { "" },
    );
    let [first, second, third, fourth] = [1, 2, 3, 4].map(bytes);
    let plain = |sql: String, kinds: &[Kind]| Statement {
        sql,
        params: kinds.iter().copied().enumerate().collect(),
    };
    let of_group = "FROM entity_group WHERE id =";
    let row = "INSERT INTO entity_group (id, version, client, sequence, cell) VALUES";
    vec![
        plain(format!("BEGIN ISOLATION LEVEL {level}"), &[]),
        plain(String::from("COMMIT"), &[]),
        plain(String::from("ROLLBACK"), &[]),
        plain(String::from(sql::INSERT_STAMP), &[Kind::Int, Kind::Int]),
        plain(
            format!(
                "INSERT INTO entity_stamp (client, sequence) SELECT client, sequence {of_group} \
                 {first} AND client = $2 AND sequence = $3"
            ),
            &[Kind::Bytes, Kind::Int, Kind::Int],
        ),
        plain(
            format!("SELECT version, {cell} {of_group} {first}{lock}"),
            &[Kind::Bytes],
        ),
        plain(format!("SELECT version {of_group} {first}"), &[Kind::Bytes]),
        plain(
            format!("SELECT version {of_group} {first} AND version = $2 FOR UPDATE"),
            &[Kind::Bytes, Kind::Int],
        ),
        plain(format!("{row} ({first}, 0, 0, 0, '')"), &[Kind::Bytes]),
        plain(
            format!("{row} ({first}, 1, $2, $3, {fourth})"),
            &[Kind::Bytes, Kind::Int, Kind::Int, Kind::Bytes],
        ),
        plain(
            format!(
                "UPDATE entity_group SET version = version + 1, client = $1, sequence = $2, \
                 cell = {third} WHERE id = {fourth} AND version = $5"
            ),
            &[Kind::Int, Kind::Int, Kind::Bytes, Kind::Bytes, Kind::Int],
        ),
        plain(
            format!(
                "SELECT {id}, {cell} FROM entity_group WHERE id >= {first} AND id < {second} \
                 ORDER BY entity_group.id LIMIT $3"
            ),
            &[Kind::Bytes, Kind::Bytes, Kind::Int],
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_written_as_each_dialect_has_them() {
        let texts = |dialect, locks| {
            let all = statements(dialect, locks).into_iter();
            all.map(|it| it.sql).collect::<Vec<String>>()
        };
        let of_postgres = texts(Dialect::Postgres, true);
        assert_eq!(
            of_postgres[5],
            "SELECT version, cell FROM entity_group WHERE id = $1 FOR UPDATE"
        );
        let of_mysql = texts(Dialect::MySql, false);
        assert_eq!(
            of_mysql[10],
            "UPDATE entity_group SET version = version + 1, client = $1, sequence = $2, \
             cell = UNHEX($3) WHERE id = UNHEX($4) AND version = $5"
        );
    }
}

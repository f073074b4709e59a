//! What statements look like on servers that are no PostgreSQL.
//!
//! Workloads are written in PostgreSQL's SQL, as plain as it can be. A dialect rewrites what its
//! servers do not know; what they do otherwise is the client's (the wire) or the driver's.

use alloc::format;
use alloc::string::{String, ToString};

/// Whose SQL a server takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dialect {
    /// PostgreSQL's; also Trellis.
    #[default]
    Postgres,
    /// MySQL's and MariaDB's, in a session that says [`MYSQL_MODE`].
    MySql,
}

/// What a session of MySQL says first: `a || b` is a text there, too.
pub const MYSQL_MODE: &str = "SET SESSION sql_mode = CONCAT(@@sql_mode, ',PIPES_AS_CONCAT')";

impl Dialect {
    /// A statement of a transaction. On MySQL:
    ///
    /// ```text
    /// BEGIN ISOLATION LEVEL x READ ONLY     START TRANSACTION READ ONLY (x is the session's)
    /// UPDATE t SET a WHERE b RETURNING c    UPDATE t SET a WHERE b; SELECT c FROM t WHERE b
    /// ```
    ///
    /// The client runs both parts and answers with the rows of the second.
    pub fn statement(self, sql: &str) -> String {
        if self == Dialect::Postgres {
            return sql.to_string();
        }
        if sql.starts_with("BEGIN ISOLATION LEVEL") {
            let access = if sql.ends_with("READ ONLY") {
                " READ ONLY"
            } else {
                ""
            };
            return format!("START TRANSACTION{access}");
        }
        let Some((update, list)) = sql.split_once(" RETURNING ") else {
            return sql.to_string();
        };
        let table = update.split(' ').nth(1).unwrap_or("");
        let (_, condition) = update.rsplit_once(" WHERE ").unwrap_or((update, "true"));
        format!("{update}; SELECT {list} FROM {table} WHERE {condition}")
    }

    /// A statement that makes a table: MySQL's `timestamp` ends in 2038 and changes by itself.
    pub fn table(self, sql: &str) -> String {
        match self {
            Dialect::Postgres => sql.to_string(),
            Dialect::MySql => sql.replace(" timestamp", " datetime(6)"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_mysql_does_not_know_is_rewritten() {
        let mysql = |sql| Dialect::MySql.statement(sql);
        assert_eq!(
            mysql("BEGIN ISOLATION LEVEL SERIALIZABLE"),
            "START TRANSACTION"
        );
        assert_eq!(
            mysql("BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY"),
            "START TRANSACTION READ ONLY"
        );
        assert_eq!(
            mysql("UPDATE t SET a = a + $2 WHERE b = $1 RETURNING a, c"),
            "UPDATE t SET a = a + $2 WHERE b = $1; SELECT a, c FROM t WHERE b = $1"
        );
        assert_eq!(mysql("SELECT a FROM t"), "SELECT a FROM t");
        let table = "CREATE TABLE t (a timestamp, b integer)";
        assert_eq!(
            Dialect::MySql.table(table),
            "CREATE TABLE t (a datetime(6), b integer)"
        );
        assert_eq!(Dialect::Postgres.table(table), table);
    }
}

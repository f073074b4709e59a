//! What servers promise.

use check::Level;
use workload::dialect::Dialect;
use workload::wire::Isolation;

/// The level that a server promises to a transaction that asks for `isolation`.
///
/// Trellis gives SERIALIZABLE where REPEATABLE READ is asked for, and its serial order agrees with
/// real time. PostgreSQL's does not always: a read-only transaction may be placed before one that
/// had ended. Its REPEATABLE READ is snapshot isolation, its snapshots are never old.
///
/// MySQL's and MariaDB's REPEATABLE READ reads a snapshot and writes what is newer: a transaction
/// may write over what it has not seen, so no more than READ COMMITTED is left of it.
pub fn promised(isolation: Isolation, is_trellis: bool, dialect: Dialect) -> Level {
    match (isolation, is_trellis, dialect) {
        (Isolation::ReadCommitted, _, _) => Level::ReadCommitted,
        (Isolation::Serializable | Isolation::RepeatableRead, true, _) => Level::StrictSerializable,
        (Isolation::RepeatableRead, false, Dialect::Postgres) => Level::StrongSnapshotIsolation,
        (Isolation::RepeatableRead, false, Dialect::MySql) => Level::ReadCommitted,
        (Isolation::Serializable, false, _) => Level::Serializable,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_server_is_judged_by_its_own_promise() {
        let trellis = |isolation| promised(isolation, true, Dialect::Postgres);
        let postgres = |isolation| promised(isolation, false, Dialect::Postgres);
        let mariadb = |isolation| promised(isolation, false, Dialect::MySql);
        assert_eq!(
            Isolation::ALL.map(trellis),
            [
                Level::StrictSerializable,
                Level::StrictSerializable,
                Level::ReadCommitted
            ]
        );
        assert_eq!(
            Isolation::ALL.map(postgres),
            [
                Level::Serializable,
                Level::StrongSnapshotIsolation,
                Level::ReadCommitted
            ]
        );
        assert_eq!(
            Isolation::ALL.map(mariadb),
            [
                Level::Serializable,
                Level::ReadCommitted,
                Level::ReadCommitted
            ]
        );
    }
}

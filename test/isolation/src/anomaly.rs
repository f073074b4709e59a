//! Isolation levels, the anomalies by Adya's names, and which level forbids which.
//!
//! | anomaly | what is seen | READ COMMITTED | REPEATABLE READ | SERIALIZABLE |
//! |---|---|---|---|---|
//! | G0 | writes of two transactions are mixed up | forbids | forbids | forbids |
//! | G1a | a row of a transaction that was rolled back | forbids | forbids | forbids |
//! | G1b | a row that its transaction has overwritten later | forbids | forbids | forbids |
//! | G1c | two transactions see each other's writes | forbids | forbids | forbids |
//! | OTV | a write that was seen is gone again | forbids | forbids | forbids |
//! | constraint | broken constraint; no transaction can go on | forbids | forbids | forbids |
//! | PMP | a predicate matches other rows later | | forbids | forbids |
//! | P4 | an update is lost | | forbids | forbids |
//! | G-single | one transaction seen in part | | forbids | forbids |
//! | G2-item | two read what the other changes (rows) | | | forbids |
//! | G2 | two read what the other changes (predicates) | | | forbids |
//! | not serial | no serial order of what committed explains it | | | forbids |
//!
//! REPEATABLE READ is what PostgreSQL gives under that name (snapshot isolation), and a level of
//! ours is never weaker than PostgreSQL's of the same name.

use std::fmt;

/// Isolation levels, weakest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[allow(missing_docs)]
pub enum Level {
    ReadCommitted,
    RepeatableRead,
    Serializable,
}

impl Level {
    /// All of them, weakest first.
    pub const ALL: [Level; 3] = [
        Level::ReadCommitted,
        Level::RepeatableRead,
        Level::Serializable,
    ];

    /// As SQL and SHOW say it.
    pub fn sql(self) -> &'static str {
        match self {
            Level::ReadCommitted => "read committed",
            Level::RepeatableRead => "repeatable read",
            Level::Serializable => "serializable",
        }
    }

    /// As records say it.
    pub fn short(self) -> &'static str {
        match self {
            Level::ReadCommitted => "RC",
            Level::RepeatableRead => "RR",
            Level::Serializable => "SER",
        }
    }

    /// The level with this name in SQL.
    pub fn of_sql(name: &str) -> Option<Level> {
        Level::ALL.into_iter().find(|level| level.sql() == name)
    }

    /// The level with this name in records.
    pub fn of_short(name: &str) -> Option<Level> {
        Level::ALL.into_iter().find(|level| level.short() == name)
    }
}

/// What must not be seen; see the table above.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[allow(missing_docs)]
pub enum Anomaly {
    G0,
    G1a,
    G1b,
    G1c,
    Otv,
    Constraint,
    Pmp,
    P4,
    GSingle,
    G2Item,
    G2,
    /// Not in scripts: found by comparing with serial executions.
    NotSerial,
}

impl Anomaly {
    /// All of them, in the order of the table.
    pub const ALL: [Anomaly; 12] = [
        Anomaly::G0,
        Anomaly::G1a,
        Anomaly::G1b,
        Anomaly::G1c,
        Anomaly::Otv,
        Anomaly::Constraint,
        Anomaly::Pmp,
        Anomaly::P4,
        Anomaly::GSingle,
        Anomaly::G2Item,
        Anomaly::G2,
        Anomaly::NotSerial,
    ];

    /// Its name in scripts, records and documents.
    pub fn name(self) -> &'static str {
        match self {
            Anomaly::G0 => "G0",
            Anomaly::G1a => "G1a",
            Anomaly::G1b => "G1b",
            Anomaly::G1c => "G1c",
            Anomaly::Otv => "OTV",
            Anomaly::Constraint => "constraint",
            Anomaly::Pmp => "PMP",
            Anomaly::P4 => "P4",
            Anomaly::GSingle => "G-single",
            Anomaly::G2Item => "G2-item",
            Anomaly::G2 => "G2",
            Anomaly::NotSerial => "not-serial",
        }
    }

    /// What a reader of the table is told.
    pub fn story(self) -> &'static str {
        match self {
            Anomaly::G0 => "writes of two transactions are mixed up",
            Anomaly::G1a => "a row of a transaction that was rolled back is read",
            Anomaly::G1b => "a row that its own transaction overwrites later is read",
            Anomaly::G1c => "two transactions read each other's writes",
            Anomaly::Otv => "a write that was seen is gone again",
            Anomaly::Constraint => "rows contradict a constraint, or no transaction can go on",
            Anomaly::Pmp => "a predicate matches other rows later in the transaction",
            Anomaly::P4 => "an update is lost",
            Anomaly::GSingle => "a transaction is seen in part",
            Anomaly::G2Item => "two transactions each read a row that the other one changes",
            Anomaly::G2 => "the same with rows that match a predicate",
            Anomaly::NotSerial => "no serial order of what committed explains it",
        }
    }

    /// The anomaly of this name.
    pub fn of_name(name: &str) -> Option<Anomaly> {
        Anomaly::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// The weakest level that forbids it.
    pub fn forbidden_from(self) -> Level {
        match self {
            Anomaly::G0
            | Anomaly::G1a
            | Anomaly::G1b
            | Anomaly::G1c
            | Anomaly::Otv
            | Anomaly::Constraint => Level::ReadCommitted,
            Anomaly::Pmp | Anomaly::P4 | Anomaly::GSingle => Level::RepeatableRead,
            Anomaly::G2Item | Anomaly::G2 | Anomaly::NotSerial => Level::Serializable,
        }
    }
}

impl fmt::Display for Anomaly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_back() {
        for kind in Anomaly::ALL {
            assert_eq!(Anomaly::of_name(kind.name()), Some(kind));
        }
        for level in Level::ALL {
            assert_eq!(Level::of_sql(level.sql()), Some(level));
            assert_eq!(Level::of_short(level.short()), Some(level));
        }
        assert_eq!(Level::of_sql("read uncommitted"), None);
    }
}

//! Isolation levels, the anomalies by their names, and which level forbids which.
//!
//! Names and definitions are Adya's (Weak Consistency, 1999), with two that are newer:
//! G-nonadjacent (a cycle in which no two anti-dependencies follow each other, which snapshot
//! isolation forbids: Cerone and Gotsman, Analysing Snapshot Isolation, 2016) and the variants with
//! session order and real time (Daudjee and Salem, 2006).
//!
//! | level | forbids |
//! |---|---|
//! | read uncommitted | G0 |
//! | read committed | and G1a, G1b, G1c, lists and counters that cannot be |
//! | strong read committed | and stale reads, and all of it in real time |
//! | repeatable read (PL-2.99) | and every cycle without a range: G-single, lost update, G2-item |
//! | snapshot isolation | as read committed, and G-single, lost update, G-nonadjacent |
//! | serializable | all of these and G2 |
//!
//! "Strong session" levels also forbid cycles that need the order inside of a session, "strong" and
//! "strict" ones also cycles that need real time. PostgreSQL's REPEATABLE READ is snapshot
//! isolation.

use core::fmt;
use core::str::FromStr;

/// What is asked of the database.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Level {
    /// PL-1.
    ReadUncommitted,
    /// PL-2.
    ReadCommitted,
    /// PL-2, and every statement sees what was acknowledged before it began.
    StrongReadCommitted,
    /// PL-2.99: serializable but for predicates. Not what PostgreSQL calls by that name.
    RepeatableRead,
    /// Snapshots may be old.
    SnapshotIsolation,
    /// A snapshot holds what its session has seen and done before.
    StrongSessionSnapshotIsolation,
    /// A snapshot holds everything that was acknowledged before the transaction began.
    StrongSnapshotIsolation,
    /// PL-3: some serial order explains everything.
    Serializable,
    /// Serializable, in an order that agrees with the order in each session.
    StrongSessionSerializable,
    /// Serializable, in an order that agrees with real time.
    StrictSerializable,
}

/// Which cycles a level forbids, apart from the order of sessions and time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Isolation {
    ReadUncommitted,
    ReadCommitted,
    RepeatableRead,
    Snapshot,
    Serializable,
}

/// What an edge or a cycle rests on beside what was written and read.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Basis {
    /// Nothing.
    Values,
    /// The order of the transactions of one process.
    Session,
    /// One transaction had ended before the other began.
    RealTime,
}

/// What went wrong, by Adya's names where there is one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Kind {
    /// A cycle of writes only: writes of transactions are interleaved.
    G0,
    /// A committed transaction read what an aborted one wrote.
    G1a,
    /// A transaction read what another overwrote before it committed.
    G1b,
    /// A cycle of writes and reads-from: transactions saw each other's effects.
    G1c,
    /// Two transactions read the same version of a key and both wrote the key (P4).
    LostUpdate,
    /// A cycle with one anti-dependency: read skew, reads that do not repeat, a stale snapshot.
    GSingle,
    /// A cycle with several anti-dependencies, no two of them adjacent: a long fork.
    GNonadjacent,
    /// A cycle with adjacent anti-dependencies, all on single keys: write skew.
    G2Item,
    /// The same with at least one on a range: a phantom.
    G2,
    /// A transaction did not see what had been acknowledged before it began: a cycle in which
    /// anti-dependencies lead only out of transactions that are in it by the order of time.
    StaleRead,
    /// A transaction did not see its own writes as it made them.
    Internal,
    /// A value was read that no transaction wrote.
    Unwritten,
    /// A list held an element twice.
    Duplicate,
    /// Two reads of one list cannot be states of the same list.
    IncompatibleOrder,
    /// An acknowledged append is missing in all reads of its list that began afterwards.
    LostAppend,
    /// A counter held what no set of the increments adds up to.
    WrongSum,
    /// A counter was found on a side of a bound on which no set of the increments puts it.
    WrongComparison,
    /// A counter was below the least that it may hold.
    BelowLeast,
    /// A read of all accounts did not add up to the constant total.
    WrongTotal,
    /// A read of all places of a ring was not one cycle over all of them.
    BrokenRing,
}

impl Level {
    /// All levels, weaker ones before stronger ones.
    pub const ALL: [Level; 10] = [
        Level::ReadUncommitted,
        Level::ReadCommitted,
        Level::StrongReadCommitted,
        Level::RepeatableRead,
        Level::SnapshotIsolation,
        Level::StrongSessionSnapshotIsolation,
        Level::StrongSnapshotIsolation,
        Level::Serializable,
        Level::StrongSessionSerializable,
        Level::StrictSerializable,
    ];

    /// The name as a person types it, such as `strict-serializable`.
    pub fn name(self) -> &'static str {
        match self {
            Level::ReadUncommitted => "read-uncommitted",
            Level::ReadCommitted => "read-committed",
            Level::StrongReadCommitted => "strong-read-committed",
            Level::RepeatableRead => "repeatable-read",
            Level::SnapshotIsolation => "snapshot-isolation",
            Level::StrongSessionSnapshotIsolation => "strong-session-snapshot-isolation",
            Level::StrongSnapshotIsolation => "strong-snapshot-isolation",
            Level::Serializable => "serializable",
            Level::StrongSessionSerializable => "strong-session-serializable",
            Level::StrictSerializable => "strict-serializable",
        }
    }

    pub(crate) fn isolation(self) -> Isolation {
        match self {
            Level::ReadUncommitted => Isolation::ReadUncommitted,
            Level::ReadCommitted | Level::StrongReadCommitted => Isolation::ReadCommitted,
            Level::RepeatableRead => Isolation::RepeatableRead,
            Level::SnapshotIsolation
            | Level::StrongSessionSnapshotIsolation
            | Level::StrongSnapshotIsolation => Isolation::Snapshot,
            Level::Serializable | Level::StrongSessionSerializable | Level::StrictSerializable => {
                Isolation::Serializable
            }
        }
    }

    /// The order that the level keeps beside that of reads and writes.
    pub fn basis(self) -> Basis {
        match self {
            Level::StrongSessionSnapshotIsolation | Level::StrongSessionSerializable => {
                Basis::Session
            }
            Level::StrongReadCommitted
            | Level::StrongSnapshotIsolation
            | Level::StrictSerializable => Basis::RealTime,
            _ => Basis::Values,
        }
    }

    /// Whether an anomaly of this kind, resting on `basis`, must not happen. `predicate`: it has an
    /// anti-dependency on a range.
    pub(crate) fn forbids(self, kind: Kind, basis: Basis, predicate: bool) -> bool {
        let isolation = self.isolation();
        basis <= self.basis()
            && match kind {
                Kind::G0 => true,
                Kind::LostUpdate | Kind::GSingle | Kind::GNonadjacent => {
                    isolation >= Isolation::Snapshot
                        || isolation == Isolation::RepeatableRead && !predicate
                }
                Kind::G2Item | Kind::G2 => {
                    isolation == Isolation::Serializable
                        || isolation == Isolation::RepeatableRead && !predicate
                }
                _ => isolation >= Isolation::ReadCommitted,
            }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A name that is no level.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UnknownLevel;

impl fmt::Display for UnknownLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no such level; there are")?;
        for level in Level::ALL {
            write!(f, " {level}")?;
        }
        Ok(())
    }
}

impl FromStr for Level {
    type Err = UnknownLevel;
    fn from_str(name: &str) -> Result<Level, UnknownLevel> {
        let found = Level::ALL.iter().find(|level| level.name() == name);
        found.copied().ok_or(UnknownLevel)
    }
}

impl Kind {
    /// The usual name, without its suffix for session or real time.
    pub fn name(self) -> &'static str {
        match self {
            Kind::G0 => "G0",
            Kind::G1a => "G1a",
            Kind::G1b => "G1b",
            Kind::G1c => "G1c",
            Kind::LostUpdate => "lost-update",
            Kind::GSingle => "G-single",
            Kind::GNonadjacent => "G-nonadjacent",
            Kind::G2Item => "G2-item",
            Kind::G2 => "G2",
            Kind::StaleRead => "stale-read",
            Kind::Internal => "internal",
            Kind::Unwritten => "unwritten-value",
            Kind::Duplicate => "duplicate-element",
            Kind::IncompatibleOrder => "incompatible-order",
            Kind::LostAppend => "lost-append",
            Kind::WrongSum => "wrong-sum",
            Kind::WrongComparison => "wrong-comparison",
            Kind::BelowLeast => "below-least",
            Kind::WrongTotal => "wrong-total",
            Kind::BrokenRing => "broken-ring",
        }
    }
}

impl Basis {
    /// The suffix that it gives to the name of an anomaly.
    pub fn suffix(self) -> &'static str {
        match self {
            Basis::Values => "",
            Basis::Session => "-session",
            Basis::RealTime => "-realtime",
        }
    }
}

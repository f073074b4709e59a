//! What a check says: pass, fail or inconclusive, with stories and with how much was exercised.

use crate::level::{Basis, Kind, Level};
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

/// The answer of a check.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Verdict {
    /// What was asked.
    pub level: Level,
    /// The answer in one word.
    pub judgement: Judgement,
    /// What the level forbids and the history shows. Not empty exactly if the judgement is `Fail`.
    pub anomalies: Vec<Anomaly>,
    /// What the history shows beside and the level allows.
    pub allowed: Vec<Anomaly>,
    /// Why nothing can be concluded from the absence of anomalies. Not empty exactly if the
    /// judgement is `Inconclusive`, or beside a `Fail`.
    pub doubts: Vec<Doubt>,
    /// How much there was to see.
    pub exercised: Exercised,
}

/// The answer in one word.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Judgement {
    /// Enough was exercised and nothing forbidden was seen.
    Pass,
    /// Something forbidden happened: certain, whatever was exercised.
    Fail,
    /// Nothing forbidden was seen, and too little of the history could have shown it.
    Inconclusive,
}

/// One thing that went wrong.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Anomaly {
    /// By which name.
    pub kind: Kind,
    /// Whether it needs the order of sessions or real time.
    pub basis: Basis,
    /// Whether an anti-dependency on a range is part of it.
    pub predicate: bool,
    /// The transactions of the smallest cycle that was found, in order, or those concerned. Indices
    /// into `History::txns`.
    pub txns: Vec<usize>,
    /// What happened, to be read by a person; several lines.
    pub story: String,
}

impl Anomaly {
    /// The whole name, such as `G-single-realtime`.
    pub fn name(&self) -> String {
        alloc::format!("{}{}", self.kind.name(), self.basis.suffix())
    }
}

/// How much a history holds that could have gone wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Exercised {
    /// Transactions that committed, unknown ones included whose writes were seen.
    pub committed: u64,
    /// Transactions that did not.
    pub aborted: u64,
    /// Transactions whose outcome the client does not know.
    pub unknown: u64,
    /// Operations that wrote, in all transactions.
    pub writes: u64,
    /// Operations that read, in committed transactions.
    pub reads: u64,
    /// Keys that were touched.
    pub keys: u64,
    /// Pairs of committed transactions that touched one key, at least one of them writing. A pair
    /// counts once per key.
    pub conflicting_pairs: u64,
    /// Pairs of committed transactions that overlapped in time.
    pub concurrent_pairs: u64,
    /// Pairs that did both: the number that says whether isolation was tried at all.
    pub concurrent_conflicts: u64,
}

/// How much must have been exercised for a pass. What is less is inconclusive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Demand {
    /// At least this many committed transactions.
    pub committed: u64,
    /// At least this many reads.
    pub reads: u64,
    /// At least this many conflicts between transactions that overlapped.
    pub concurrent_conflicts: u64,
}

impl Default for Demand {
    /// What a few seconds of any contended workload exceed many times.
    fn default() -> Demand {
        Demand {
            committed: 50,
            reads: 50,
            concurrent_conflicts: 20,
        }
    }
}

impl Demand {
    /// Asks for nothing: an empty history passes. For hand-made histories.
    pub const NONE: Demand = Demand {
        committed: 0,
        reads: 0,
        concurrent_conflicts: 0,
    };
}

/// Why the absence of anomalies says little.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Doubt {
    /// Fewer committed transactions than demanded.
    FewCommitted {
        /// How many there were.
        found: u64,
        /// How many were demanded.
        demanded: u64,
    },
    /// Fewer reads than demanded.
    FewReads {
        /// How many there were.
        found: u64,
        /// How many were demanded.
        demanded: u64,
    },
    /// Fewer conflicts between overlapping transactions than demanded.
    FewConcurrentConflicts {
        /// How many there were.
        found: u64,
        /// How many were demanded.
        demanded: u64,
    },
    /// One value was written twice to one key: reads of the key say nothing.
    WrittenTwice {
        /// Which key.
        key: u64,
        /// Which value.
        value: u64,
    },
    /// One key was used as a list and as something else: it was left out.
    MixedUse {
        /// Which key.
        key: u64,
    },
}

impl fmt::Display for Judgement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Judgement::Pass => "pass",
            Judgement::Fail => "FAIL",
            Judgement::Inconclusive => "inconclusive",
        })
    }
}

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Doubt::FewCommitted { found, demanded } => {
                write!(
                    f,
                    "only {found} transactions committed, {demanded} are needed"
                )
            }
            Doubt::FewReads { found, demanded } => {
                write!(f, "only {found} reads, {demanded} are needed")
            }
            Doubt::FewConcurrentConflicts { found, demanded } => write!(
                f,
                "only {found} conflicts between transactions that overlapped, {demanded} are needed"
            ),
            Doubt::WrittenTwice { key, value } => write!(
                f,
                "value {value} was written to key {key} more than once: the key was left out"
            ),
            Doubt::MixedUse { key } => write!(
                f,
                "key {key} was used as a list and as something else: the key was left out"
            ),
        }
    }
}

impl fmt::Display for Exercised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} committed, {} aborted, {} unknown; {} writes, {} reads, {} keys; \
             {} conflicting pairs, {} concurrent pairs, {} both",
            self.committed,
            self.aborted,
            self.unknown,
            self.writes,
            self.reads,
            self.keys,
            self.conflicting_pairs,
            self.concurrent_pairs,
            self.concurrent_conflicts,
        )
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {}", self.level, self.judgement)?;
        writeln!(f, "  {}", self.exercised)?;
        for doubt in &self.doubts {
            writeln!(f, "  {doubt}")?;
        }
        for anomaly in &self.anomalies {
            writeln!(f, "{}", anomaly.story)?;
        }
        if !self.allowed.is_empty() {
            f.write_str("  seen, and allowed at this level:")?;
            for anomaly in &self.allowed {
                write!(f, " {}", anomaly.name())?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

impl Exercised {
    /// What is missing for a pass.
    pub(crate) fn doubts(&self, demand: &Demand) -> Vec<Doubt> {
        let mut doubts = Vec::new();
        if self.committed < demand.committed {
            doubts.push(Doubt::FewCommitted {
                found: self.committed,
                demanded: demand.committed,
            });
        }
        if self.reads < demand.reads {
            doubts.push(Doubt::FewReads {
                found: self.reads,
                demanded: demand.reads,
            });
        }
        if self.concurrent_conflicts < demand.concurrent_conflicts {
            doubts.push(Doubt::FewConcurrentConflicts {
                found: self.concurrent_conflicts,
                demanded: demand.concurrent_conflicts,
            });
        }
        doubts
    }
}

impl Verdict {
    /// Puts an answer together: fail if there is an anomaly, else inconclusive if there is a doubt.
    pub(crate) fn new(
        level: Level,
        found: Vec<Anomaly>,
        doubts: Vec<Doubt>,
        exercised: Exercised,
    ) -> Verdict {
        let (anomalies, allowed): (Vec<Anomaly>, Vec<Anomaly>) = found
            .into_iter()
            .partition(|a| level.forbids(a.kind, a.basis, a.predicate));
        let judgement = match (anomalies.is_empty(), doubts.is_empty()) {
            (false, _) => Judgement::Fail,
            (true, false) => Judgement::Inconclusive,
            (true, true) => Judgement::Pass,
        };
        Verdict {
            level,
            judgement,
            anomalies,
            allowed,
            doubts,
            exercised,
        }
    }
}

//! Planted bugs: deviations of one line that the simulator and its checkers must find.
//!
//! A checker that never fails proves nothing. So each rule that keeps transactions right has a
//! switch that breaks it, and docs/planted.md says which workload notices, after how many seeds.
//!
//! The switches exist in builds with debug assertions, as tests are built. In a release build
//! [`is_planted`] is the constant `false`, and the deviation is not compiled in.

#[cfg(debug_assertions)]
use core::sync::atomic::{AtomicU8, Ordering};

/// Which bug is switched on: its place in [`Planted::ALL`] from 1; 0 is none.
#[cfg(debug_assertions)]
static ACTIVE: AtomicU8 = AtomicU8::new(0);

macro_rules! planted {
    ($(#[doc = $rule:literal] $bug:ident = $name:literal,)*) => {
        /// A rule that can be broken on purpose; at most one is broken at a time.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        #[repr(u8)]
        pub enum Planted {
            $(#[doc = $rule] $bug,)*
        }

        impl Planted {
            /// Every one, in the order of docs/planted.md.
            pub const ALL: &'static [Planted] = &[$(Planted::$bug,)*];

            /// Its name on the command line.
            pub fn name(self) -> &'static str {
                match self {
                    $(Planted::$bug => $name,)*
                }
            }

            /// What it does, after the part of the product that it breaks.
            pub fn about(self) -> &'static str {
                match self {
                    $(Planted::$bug => $rule.trim_ascii(),)*
                }
            }

            /// The protocol whose rule it breaks, so that no other can notice it. `None`: it breaks
            /// one of all protocols, or of two_phase.
            pub fn protocol(self) -> Option<&'static str> {
                let first = self.name().split('-').next();
                first.filter(|word| ["leap", "formula"].contains(word))
            }

            /// Whether it breaks a store of the benchmark, so that only workloads of entities can
            /// notice it.
            pub fn is_of_stores(self) -> bool {
                self.name().starts_with("store-")
            }

            /// The bug of this name.
            pub fn find(name: &str) -> Option<Planted> {
                Planted::ALL.iter().copied().find(|bug| bug.name() == name)
            }
        }
    };
}

planted! {
    /// Locks: a scan under SERIALIZABLE locks the rows that it found, and not its range.
    NoRangeLock = "no-range-lock",
    /// Locks: a shared lock is not kept until the end of the transaction.
    SharedLockDropped = "shared-lock-dropped",
    /// Locks: a reader that becomes a writer is granted although others still read.
    UpgradePastReaders = "upgrade-past-readers",
    /// Locks: a row is locked, to insert it for example, without a look at the ranges of others.
    InsertPastRanges = "insert-past-ranges",
    /// Locks: a reader in the way of a writer loses its lock and goes on as if it had it.
    GivenWayGoesOn = "given-way-goes-on",
    /// Writes: a later write of a row takes the place of an earlier one of its transaction.
    OwnWriteReplaced = "own-write-replaced",
    /// Writes: what a row was before a savepoint is forgotten by the first write since.
    RollBackToForgets = "roll-back-to-forgets",
    /// Writes: prepare or commit rides on a statement that has failed, or has more rows to send.
    FinishRidesAnyway = "finish-rides-anyway",
    /// Wait-die: a younger transaction waits for an older one.
    YoungerWaits = "younger-waits",
    /// Two-phase commit: a writer frees its locks when it has promised.
    LocksFreedAtPrepare = "locks-freed-at-prepare",
    /// Two-phase commit: a reader frees its locks when it votes.
    ReaderFreedAtVote = "reader-freed-at-vote",
    /// Two-phase commit: the vote leaves before the promise is durable.
    PrepareNotDurable = "prepare-not-durable",
    /// Two-phase commit: participants are told before the decision is durable.
    DecisionNotDurable = "decision-not-durable",
    /// Two-phase commit: the commit timestamp is the one with which the transaction began.
    CommitBelowVotes = "commit-below-votes",
    /// Two-phase commit: a late copy of a request is executed once more.
    RequestTwice = "request-twice",
    /// Two-phase commit: a participant that lost its state goes on as if it had not.
    LostPartGoesOn = "lost-part-goes-on",
    /// Durability: a commit is answered before its record is durable.
    AnswerNotDurable = "answer-not-durable",
    /// Durability: a version is read whose record is not durable, and no answer waits for it.
    ReadNotDurable = "read-not-durable",
    /// Snapshots: they do not wait for promises that may commit below them.
    SnapshotSkipsPromise = "snapshot-skips-promise",
    /// Snapshots: their timestamp does not push the shard's clock.
    SnapshotNotMerged = "snapshot-not-merged",
    /// Snapshots: they are not raised to what was answered before their reader began.
    SnapshotNotRaised = "snapshot-not-raised",
    /// Snapshots: a READ COMMITTED statement reads at its shard's clock, whatever was answered.
    RcSnapshotStale = "rc-snapshot-stale",
    /// Snapshots: the first statement of a block, too, reads one moment without locks.
    OneMomentInBlock = "one-moment-in-block",
    /// Early answer: a restarted coordinator aborts what it has not decided.
    EarlyPresumesAbort = "early-presumes-abort",
    /// Early answer: who is named and has only read votes without a record.
    EarlyReadersForget = "early-readers-forget",
    /// Early answer: promises leave out a writer.
    EarlyOmitsWriter = "early-omits-writer",
    /// Early answer: an abort is told before a durable refusal.
    EarlyAbortNotDurable = "early-abort-not-durable",
    /// Increments: they vote without being sealed.
    NoSeal = "no-seal",
    /// Increments: a guard looks at the newest version alone, and not at what others have pending.
    GuardOfNewest = "guard-of-newest",
    /// Increments: the condition of a guarded formula must hold behind its own change as well.
    GuardBehindChange = "guard-behind-change",
    /// Recovery: decisions without an `End` are forgotten.
    DecisionLost = "decision-lost",
    /// Recovery: promises come back without their locks.
    PromiseUnlocked = "promise-unlocked",
    /// Recovery: timestamps start again below the journaled bound.
    ClockBoundIgnored = "clock-bound-ignored",
    /// Two-phase commit: nodes that cannot be reached are waited for.
    OutageWaitedFor = "outage-waited-for",
    /// Journal: the end of a torn record is taken as it is.
    TornTailAccepted = "torn-tail-accepted",
    /// Journal: deletions are not replayed.
    DeleteNotReplayed = "delete-not-replayed",
    /// Checkpoint: it leaves out what is promised.
    CheckpointSkipsPromises = "checkpoint-skips-promises",
    /// Checkpoint: it leaves out decisions that not every participant has acknowledged.
    CheckpointSkipsDecisions = "checkpoint-skips-decisions",
    /// Checkpoint: commits that cross its start are not journaled once more.
    CheckpointTooEarly = "checkpoint-too-early",
    /// Gateway: an unknown outcome is reported as an abort.
    UnknownAsAbort = "unknown-as-abort",
    /// Gateway: a statement of unknown outcome is run again.
    RetryUnknown = "retry-unknown",
    /// Barrier: planning a statement panics.
    PlanPanics = "plan-panics",
    /// Placement: a scan leaves out one shard.
    ScanMissesShard = "scan-misses-shard",
    /// Placement: an index entry is written where the transaction runs, not where it belongs.
    IndexMisplaced = "index-misplaced",
    /// Leap: responses are not filtered at the requester, as the paper prints it (appendix D).
    LeapDuplicateAccepted = "leap-duplicate-accepted",
    /// Leap: the backup goes after a pause, acknowledged or not (appendix D).
    LeapBackupByTimeout = "leap-backup-by-timeout",
    /// Leap: a request of the owner is ignored, whatever it has lost (appendix D).
    LeapOwnerIgnored = "leap-owner-ignored",
    /// Leap: a restarted home serves at once what its table does not name elsewhere (section 4.2).
    LeapHomeServesAtOnce = "leap-home-serves-at-once",
    /// Leap: a restarted owner serves what its log says it owned (section 4.2).
    LeapOwnerServesAtOnce = "leap-owner-serves-at-once",
    /// Leap: absent keys have no owner.
    LeapAbsentNotOwned = "leap-absent-not-owned",
    /// Leap: a scan locks the rows that it finds, and no range.
    LeapGapsNotLocked = "leap-gaps-not-locked",
    /// Leap: a row of another home is not locked where it is used: its shard owns it.
    LeapOwnerWithoutLock = "leap-owner-without-lock",
    /// Leap: what arrived is not logged by the receiver: its value is in another node's log.
    LeapArrivalNotLogged = "leap-arrival-not-logged",
    /// Leap: versions leave before their record is durable.
    LeapVersionNotDurable = "leap-version-not-durable",
    /// Leap: the next owner's queue is not judged again: all in it go on waiting.
    LeapYoungerWaits = "leap-younger-waits",
    /// Leap: a request that waits for an older transaction goes on when others wait for its lock.
    LeapStaysAlone = "leap-stays-alone",
    /// Leap: a copy that was called back is used on.
    LeapCopyKept = "leap-copy-kept",
    /// Leap: a writer calls copies back and does not wait until they are gone.
    LeapCopiesIgnored = "leap-copies-ignored",
    /// Leap: copies outlive the restart of their home, which knows nothing of them.
    LeapCopiesForgotten = "leap-copies-forgotten",
    /// Leap: an entrusted change is run as often as it comes.
    LeapErrandTwice = "leap-errand-twice",
    /// Leap: an entrusted change is answered before its record is durable.
    LeapErrandNotDurable = "leap-errand-not-durable",
    /// Leap: what the former life of an owner was entrusted with, the next one runs.
    LeapErrandNextLife = "leap-errand-next-life",
    /// Leap: a restarted owner serves without the formulas that others have committed on its rows.
    LeapFormulaLost = "leap-formula-lost",
    /// Leap: a restarted owner applies collected formulas whatever the version of their row.
    LeapFormulaTwice = "leap-formula-twice",
    /// Leap: nodes that cannot be reached are waited for.
    LeapOutageWaitedFor = "leap-outage-waited-for",
    /// Leap: a restarted home counts a shard's claims as whole when one part of them has come.
    LeapClaimsOfOnePart = "leap-claims-of-one-part",
    /// Leap: a restarted home serves before it has looked at all claims.
    LeapServesHalfResolved = "leap-serves-half-resolved",
    /// Formula: what a transaction has read is not looked at when it promises or commits.
    FormulaReadsNotJudged = "formula-reads-not-judged",
    /// Formula: of what a transaction has read, ranges are not looked at.
    FormulaRangesNotJudged = "formula-ranges-not-judged",
    /// Formula: others write what a voter has read below the top of the vote.
    FormulaGuardsIgnored = "formula-guards-ignored",
    /// Formula: transactions that have read on several shards commit without asking these.
    FormulaReadersUnasked = "formula-readers-unasked",
    /// Formula: a transaction commits above the tops of its votes.
    FormulaTopsIgnored = "formula-tops-ignored",
    /// Formula: a read does not wait for promises below its timestamp.
    FormulaReadSkipsPromise = "formula-read-skips-promise",
    /// Formula: reads find the newest versions, whatever their transaction has read before.
    FormulaReadsNewest = "formula-reads-newest",
    /// Formula: each shard commits at its own vote, and formulas wait for no others.
    FormulaTimestampsPerShard = "formula-timestamps-per-shard",
    /// Formula: reads as of several moments count as reads as of one.
    FormulaMomentsMixed = "formula-moments-mixed",
    /// Formula: committed formulas are folded as they come, and wait for no others.
    FormulaFoldsAsTheyCome = "formula-folds-as-they-come",
    /// Formula: formulas that come late are left out by redo, which follows the journal.
    FormulaRedoInJournalOrder = "formula-redo-in-journal-order",
    /// Formula: checkpoints leave out committed formulas that are not folded.
    FormulaUnfoldedForgotten = "formula-unfolded-forgotten",
    /// Large transactions: a snapshot reader does not wait while a commit is installed in slices.
    ReaderBetweenSlices = "reader-between-slices",
    /// Large transactions: locks go when a commit is decided, before all of it is installed.
    LocksBetweenSlices = "locks-between-slices",
    /// Constraints: several rows with one key of a deferrable constraint are not looked at.
    DoublesKept = "doubles-kept",
    /// Schema changes: node 1 goes on with a change that has closed something, and asks no other.
    CatalogWithoutMajority = "catalog-without-majority",
    /// Schema changes: what a change has closed stays closed until node 1 is back.
    ClosedWithoutNodeOne = "closed-without-node-one",
    /// Stores: a commit does not look whether the entities that it has read have changed.
    StoreLostUpdate = "store-lost-update",
    /// Stores: a commit of several entities does the first one, and the others a call later.
    StoreTornGroup = "store-torn-group",
    /// Stores: an index returns entities that its entries name and that are not there.
    StoreDanglingEntry = "store-dangling-entry",
}

/// Whether the code must misbehave here.
#[inline(always)]
#[must_use]
pub fn is_planted(bug: Planted) -> bool {
    #[cfg(debug_assertions)]
    return ACTIVE.load(Ordering::Relaxed) == bug as u8 + 1;
    #[cfg(not(debug_assertions))]
    {
        let _ = bug;
        false
    }
}

/// Switches one bug on, or all off, in the whole process. Returns whether this build can.
#[must_use]
pub fn plant(bug: Option<Planted>) -> bool {
    #[cfg(debug_assertions)]
    ACTIVE.store(bug.map_or(0, |bug| bug as u8 + 1), Ordering::Relaxed);
    cfg!(debug_assertions) || bug.is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_differ_and_nothing_is_planted_by_itself() {
        let mut names: Vec<_> = Planted::ALL.iter().map(|bug| bug.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Planted::ALL.len());
        assert!(Planted::ALL.iter().all(|bug| !is_planted(*bug)));
        assert!(Planted::ALL.len() >= 20);
        for bug in Planted::ALL {
            assert_eq!(Planted::find(bug.name()), Some(*bug));
            assert!(bug.about().contains(": "), "{bug:?} says what it breaks");
        }
    }
}

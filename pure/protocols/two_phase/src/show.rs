//! Printing the whole state in canonical order, and checking it.

use crate::coord::{Ballot, Phase};
use crate::part::{Part, Stage, coordinator_node};
use crate::{Control, Machine};
use alloc::vec::Vec;
use base::{IndexId, Key, TxnId};
use core::fmt;
use txn::increment::claim_of;
use txn::lock::Item;
use txn::{Outcome, PendingRow, Piles};

impl<C: Control> fmt::Display for Machine<C> {
    /// One line per transaction and role, then locks, decisions and jobs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (txn, coord) in self.coords.iter() {
            write!(f, "coord {txn} ")?;
            match (&coord.outcome, &coord.phase) {
                (Some(Outcome::Committed { .. }), _) => f.write_str("committed")?,
                (Some(Outcome::Aborted(reason)), _) => write!(f, "aborted {reason:?}")?,
                (Some(Outcome::Unknown), _) => f.write_str("unknown")?,
                (None, Phase::Running) => f.write_str("running")?,
                (None, Phase::Preparing { .. }) => f.write_str("preparing")?,
                (None, Phase::Entrusted) => f.write_str("one-phase")?,
                (None, Phase::Ended) => unreachable!("an ended transaction has an outcome"),
            }
            for member in &coord.members {
                let mark = match &member.ballot {
                    Ballot::NotAsked => "",
                    Ballot::Asked => "?",
                    Ballot::Cast(_) => "!",
                };
                let wrote = if member.wrote { "+" } else { "" };
                write!(f, " {}{wrote}{mark}", member.shard)?;
            }
            for request in &coord.outstanding {
                write!(f, " awaits {}", request.shard)?;
            }
            f.write_str("\n")?;
        }
        for (txn, decision) in &self.decisions {
            write!(f, "decision {txn} owed to")?;
            decision
                .unacked
                .iter()
                .try_for_each(|(shard, _)| write!(f, " {shard}"))?;
            f.write_str("\n")?;
        }
        for txn in self.refusals.keys() {
            writeln!(f, "refuses {txn}")?;
        }
        for (txn, poll) in &self.polls {
            write!(f, "poll {txn} asks")?;
            let mut missing = poll.missing.iter();
            missing.try_for_each(|shard| write!(f, " {shard}"))?;
            f.write_str("\n")?;
        }
        for (txn, unsettled) in &self.unsettled {
            writeln!(f, "unsettled {txn} asks {}", unsettled.shard)?;
        }
        for (txn, part) in self.parts.iter() {
            let stage = match part.stage {
                Stage::Active => "active",
                Stage::Voted => "voted",
                Stage::Promised => "promised",
            };
            let writes = self
                .promises
                .get(txn)
                .map_or(part.written.len(), |p| p.redo.len());
            writeln!(
                f,
                "part {txn} {stage} writes {writes} jobs {}",
                part.jobs.len()
            )?;
        }
        fmt::Display::fmt(&self.locks, f)?;
        if !self.installed.is_empty() {
            writeln!(f, "undurable {}", self.installed.len())?;
        }
        Ok(())
    }
}

impl<C: Control> Machine<C> {
    /// Panics if an invariant of the crate's documentation is broken.
    pub(crate) fn check(&self) {
        self.locks.validate();
        for (txn, promise) in &self.promises {
            let part = self.parts.get(txn).expect("a promise has a participant");
            assert_eq!(part.stage, Stage::Promised);
            assert!(part.jobs.is_empty(), "nothing runs after a promise");
            for (key, write) in promise.redo.iter() {
                let claim = self.claim_of_promise(write);
                let held = self.locks.holds(*txn, &Item::of(key), claim);
                let held = held || !self.seals();
                assert!(held, "{txn} has promised {key:?} without its lock");
            }
        }
        self.bulks.each_row(&mut |txn, key, write| {
            let claim = self.claim_of_promise(write);
            let held = self.locks.holds(txn, &Item::of(key), claim) || !self.seals();
            assert!(held, "{txn} installs {key:?} without its lock");
        });
        for (txn, part) in self.parts.iter() {
            assert_eq!(
                part.stage == Stage::Promised,
                self.promises.contains_key(txn)
            );
            for (key, write) in part.written.writes().iter() {
                let claim = claim_of(write, C::FOLDING);
                let held = self.locks.holds(*txn, &Item::of(key), claim);
                assert!(held, "{txn} has written {key:?} without its lock");
            }
            let unsettled = self.unsettled.contains_key(txn);
            let open = unsettled || self.refusals.contains_key(txn);
            if txn.shard == self.shard && part.next_seq != u64::MAX && !open {
                let outcome = &self.coords[txn].outcome;
                assert!(outcome.is_none(), "{txn} has ended but keeps its state");
            }
        }
        for (id, job) in self.jobs.iter() {
            assert_eq!(id, job.id);
            assert!(
                job.stateless || self.parts.contains_key(&job.txn),
                "a job has its part"
            );
        }
        for txn in self.unsettled.keys() {
            let part = self.parts.get(txn).expect("it keeps its locks");
            assert!(part.written.is_empty(), "{txn} has written at home");
        }
        for txn in self.refusals.keys().chain(self.polls.keys()) {
            assert!(self.promises.contains_key(txn), "{txn} is promised here");
        }
        for txn in self.decisions.keys() {
            assert!(
                !self.promises.contains_key(txn),
                "own promises are kept at once"
            );
        }
    }

    /// Whether a transaction has written, or may yet write, rows of one of these indexes here.
    pub(crate) fn is_writing(&self, indexes: &[IndexId]) -> bool {
        let written = |key: &Key| indexes.contains(&key.index);
        let planned = |part: &Part| {
            let mut written = part.written.indexes();
            written.any(|index| indexes.contains(&index))
        };
        if self.bulks.writes_to(indexes) {
            return true;
        }
        let mut promises = self.promises.values();
        if self.order.each_unfolded().any(|(key, _)| written(key)) {
            return true;
        }
        self.parts.values().any(|part| planned(part))
            || promises.any(|promise| promise.redo.iter().any(|(key, _)| written(key)))
    }

    /// The rows with the most formulas: of open write sets, of promises, and committed ones that
    /// wait for a promise below them.
    pub(crate) fn highest_piles(
        &self,
        wants: &dyn Fn(&Key) -> bool,
        count: usize,
    ) -> Vec<PendingRow> {
        let mut piles = Piles::new(wants);
        for (txn, part) in self.parts.iter() {
            let written = part.written.writes().formulas();
            piles.add_all_open(written.map(|(key, _)| key), *txn, coordinator_node(*txn));
        }
        for (txn, promise) in &self.promises {
            let formulas = promise.redo.iter();
            let formulas = formulas.filter_map(|(key, write)| write.formula().map(|_| key));
            piles.add_all_open(formulas, *txn, promise.coordinator.node());
        }
        for (key, _) in self.order.each_unfolded() {
            piles.add_committed(key);
        }
        let waits = self.promise_waits.iter();
        let ops = waits.filter_map(|job| self.jobs.get(*job)?.op.as_ref());
        piles.highest(count, &self.locks, &ops.collect::<Vec<_>>())
    }

    /// Whether others wait for locks of a transaction of this coordinator, or may on other shards.
    pub(crate) fn is_in_the_way(&self, txn: TxnId) -> bool {
        let coord = self.coords.get(&txn);
        let elsewhere = coord.is_none_or(|coord| {
            let mut members = coord.members.iter();
            members.any(|member| member.shard != self.shard && member.stateful)
        });
        elsewhere || self.locks.is_awaited(txn)
    }

    /// Whether no transaction holds, waits for or owes anything here.
    pub(crate) fn owes_nothing(&self) -> bool {
        self.locks.is_empty()
            && self.parts.is_empty()
            && self.promises.is_empty()
            && self.bulks.is_idle()
            && self.order.is_empty()
            && self.control.is_empty()
            && self.decisions.is_empty()
            && self.unsettled.is_empty()
            && self.jobs.is_empty()
    }
}

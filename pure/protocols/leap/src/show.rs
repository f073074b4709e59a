//! Printing the whole state in canonical order, checking it, and what SHOW OWNERSHIP shows.

use crate::Leap;
use crate::gather::keys_of;
use crate::home::{Entry, Settling, Stage};
use crate::owner::{Held, Tenure};
use crate::txns::Phase;
use alloc::vec::Vec;
use base::{IndexId, Key, ShardId, Time};
use core::fmt;
use store::Store;
use txn::increment::{Folding::AsTheyCome, claim_of};
use txn::lock::Item;
use txn::{HotRow, Moves, MovingRows, Outcome, Tracked};

impl MovingRows for Leap {
    fn moves(&self) -> Moves {
        let size = |key: &Key| key.bytes.capacity() + size_of::<Key>() + size_of::<Entry>();
        Moves {
            rows_away: self.home.table.len() as u64,
            rows_here: (self.owner.held.len() - self.owner.backups.len()) as u64,
            backups: self.owner.backups.len() as u64,
            rows_lent: self.sharing.lent_count() as u64,
            copies: self.sharing.copy_count() as u64,
            table_changes: self.home.table.changes(),
            table_bytes: self.home.table.keys().map(size).sum::<usize>() as u64,
            ..self.moves.clone()
        }
    }

    fn moves_per_second(&self, now: Time) -> (u64, u64) {
        (
            self.moves_in.per_second(now),
            self.moves_out.per_second(now),
        )
    }

    fn hottest(&self, count: usize) -> Vec<HotRow> {
        let row = |(key, entry): (&Key, &Entry)| HotRow {
            key: key.clone(),
            owner: entry.owner,
            moves: entry.moves,
        };
        let mut rows: Vec<HotRow> = self.home.table.iter().map(row).collect();
        rows.sort_by(|a, b| b.moves.cmp(&a.moves).then_with(|| a.key.cmp(&b.key)));
        rows.truncate(count);
        rows
    }

    fn owned(&self) -> Vec<Key> {
        let sure = |held: &Held| held.tenure == Tenure::Owned { confirmed: true };
        let held = self.owner.held.iter().filter(move |(_, held)| sure(held));
        held.map(|(key, _)| key.clone()).collect()
    }

    fn tracked(&self) -> Vec<Tracked> {
        let serving = self.rejoin.is_serving();
        let table = self.home.table.iter().filter(move |_| serving);
        let tracked = |(key, entry): (&Key, &Entry)| Tracked {
            key: key.clone(),
            owner: entry.owner,
            leaves: entry.grant.is_some(),
        };
        table.map(tracked).collect()
    }

    fn under_way(&self) -> Vec<(Key, ShardId, u32)> {
        let grants = self.home.grants.iter();
        let given = grants.filter(|(_, grant)| grant.from != grant.want.to);
        let moved = given.map(|(_, grant)| (grant.key.clone(), grant.want.to, grant.want.life));
        moved.collect()
    }

    fn has(&self, key: &Key) -> bool {
        self.owner.held.contains_key(key)
    }

    fn owns(&self, key: &Key) -> bool {
        self.is_mine(key)
    }

    fn copied(&self) -> Vec<Key> {
        self.sharing.copied().cloned().collect()
    }

    fn strayed(&self, index: IndexId, count: usize) -> Vec<Key> {
        let away = keys_of(&self.home.table, index).chain(self.sharing.lent_of(index));
        away.take(count).cloned().collect()
    }
}

impl Leap {
    /// Whether no transaction, lock, request, grant or formula is open here.
    pub(crate) fn owes_nothing(&self) -> bool {
        self.locks.is_empty()
            && self.home.dispatch.is_empty()
            && self.jobs.is_empty()
            && self.visits.is_empty()
            && self.requester.requests.is_empty()
            && self.home.grants.is_empty()
            && self.home.settling.is_empty()
            && self.requester.informs.is_empty()
            && self.owner.backups.is_empty()
            && self.owner.releasing.is_empty()
            && self.coord.readings.is_empty()
            && self.errands.out.is_empty()
            && self.pendings.is_idle()
            && self.coord.owings.all.is_empty()
            && self.sharing.is_idle()
            && self.bulks.is_idle()
            && self.rejoin.is_settled()
    }

    /// Panics if an invariant is broken; see the crate's documentation.
    pub(crate) fn check(&self, _store: &Store) {
        self.check_open();
        self.check_sharing();
        for key in self.home.table.keys() {
            assert!(self.is_home(key), "a home tracks its own rows");
        }
        for key in self.owner.held.keys() {
            assert!(!self.is_home(key), "rows at home are not held");
        }
        self.home.validate(self.shard);
        self.owner.validate();
    }

    /// The part of [`Leap::check`] whose cost is bounded by what is open here.
    pub(crate) fn check_open(&self) {
        self.locks.validate();
        self.home.dispatch.validate();
        self.requester.validate();
        for (txn, state) in self.coord.txns.iter() {
            for (key, write) in state.written.writes().iter() {
                let held = self
                    .locks
                    .holds(*txn, &Item::of(key), claim_of(write, AsTheyCome));
                assert!(held, "{txn} has written {key:?} without its lock");
                assert!(!self.rejoin.is_serving() || self.is_mine(key) || self.breaks_rules());
            }
        }
        self.bulks.each_row(&mut |txn, key, write| {
            let held = self
                .locks
                .holds(txn, &Item::of(key), claim_of(write, AsTheyCome));
            assert!(held, "{txn} installs {key:?} without its lock");
        });
        for (key, pending) in self.pendings.formulas.each() {
            let held = self.locks.holds(
                pending.txn,
                &Item::of(key),
                crate::pending::claim_of(pending),
            );
            assert!(held, "{} has {key:?} pending without its lock", pending.txn);
            assert!(self.is_mine(key), "a row with pending formulas stays");
        }
        for (id, job) in self.jobs.iter() {
            assert_eq!(id, job.id);
        }
    }

    fn breaks_rules(&self) -> bool {
        #[cfg(test)]
        return self.printed.is_some();
        #[cfg(not(test))]
        false
    }
}

impl fmt::Display for Leap {
    /// One line per transaction, request, row that is away or held, grant and lock.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.fmt_txns(f)?;
        self.fmt_rows(f)?;
        self.fmt_waits(f)?;
        fmt::Display::fmt(&self.locks, f)?;
        if !self.installed.is_empty() {
            writeln!(f, "undurable {}", self.installed.len())?;
        }
        Ok(())
    }
}

impl Leap {
    fn fmt_txns(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.rejoin.is_settled() {
            writeln!(f, "rejoining")?;
        }
        for (txn, state) in self.coord.txns.iter() {
            write!(f, "txn {txn} ")?;
            match (&state.outcome, &state.phase) {
                (Some(Outcome::Committed { .. }), _) => f.write_str("committed")?,
                (Some(Outcome::Aborted(reason)), _) => write!(f, "aborted {reason:?}")?,
                (Some(Outcome::Unknown), _) => f.write_str("unknown")?,
                (None, Phase::Entrusted) => f.write_str("entrusted")?,
                (None, Phase::Running) => f.write_str("running")?,
                (None, Phase::Confirming { .. }) => f.write_str("confirming")?,
                (None, Phase::Sealing { .. }) => f.write_str("sealing")?,
                (None, Phase::Ended) => unreachable!("an ended transaction has an outcome"),
            }
            writeln!(
                f,
                " writes {} jobs {}",
                state.written.len(),
                state.local.len()
            )?;
        }
        for (_, request) in self.requester.requests.iter() {
            writeln!(f, "wants {:?} of {}", request.key, request.home)?;
        }
        Ok(())
    }

    fn fmt_rows(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (key, held) in &self.owner.held {
            match held.tenure {
                Tenure::Owned { confirmed } => {
                    let doubt = if confirmed { "" } else { " perhaps" };
                    writeln!(f, "owns {key:?} {}{doubt}", tag(held.otag))?;
                }
                Tenure::Released { to } => {
                    writeln!(f, "backup {key:?} {} given to {to}", tag(held.otag))?;
                }
            }
        }
        for (key, entry) in self.home.table.iter() {
            match entry.owner {
                Some(owner) => write!(f, "away {key:?} {} at {owner}", tag(entry.otag))?,
                None => write!(f, "away {key:?} {} leaving", tag(entry.otag))?,
            }
            if let Some(otag) = entry.grant {
                let grant = &self.home.grants[otag];
                let cancel = if grant.cancel { " cancelled" } else { "" };
                write!(f, " grant {} to {}{cancel}", tag(otag), grant.want.to)?;
            }
            f.write_str("\n")?;
        }
        for (otag, settling) in &self.home.settling {
            let Settling {
                key, owner, backup, ..
            } = settling;
            writeln!(
                f,
                "settling {key:?} {} at {owner} backup {backup}",
                tag(*otag)
            )?;
        }
        Ok(())
    }

    fn fmt_waits(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (want, incoming) in &self.home.incoming {
            if let Stage::Queued(_) = incoming.stage {
                writeln!(f, "queued {:?} for {} {}", incoming.key, want.to, want.seq)?;
            }
        }
        for ((home, otag), pending) in self.requester.informs.iter() {
            writeln!(f, "tells {home} {:?} {}", pending.fate, tag(*otag))?;
        }
        for releasing in self.owner.releasing.values() {
            let void = if releasing.void { " void" } else { "" };
            writeln!(
                f,
                "releasing {:?} to {}{void}",
                releasing.key, releasing.want.to
            )?;
        }
        for (_, reading) in self.coord.readings.iter() {
            writeln!(f, "reading {} at {}", reading.txn, reading.to)?;
        }
        for job in self.jobs.values() {
            writeln!(f, "job of {} {:?}", job.txn, job.origin)?;
        }
        for (key, pending) in self.pendings.formulas.each() {
            writeln!(f, "pending {key:?} of {}", pending.txn)?;
        }
        for (txn, _) in self.coord.owings.all.iter() {
            writeln!(f, "owes {txn}")?;
        }
        for (txn, visit) in self.visits.iter() {
            writeln!(f, "visit {txn} jobs {}", visit.jobs.len())?;
        }
        Ok(())
    }
}

/// A tag as tests read it.
fn tag(otag: journal::Otag) -> impl fmt::Display {
    struct Tag(journal::Otag);
    impl fmt::Display for Tag {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "#{}.{}", self.0.incarnation, self.0.grant)
        }
    }
    Tag(otag)
}

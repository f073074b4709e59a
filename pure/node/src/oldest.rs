//! Which versions are not read any more: what the shards tell one another about their readers, and
//! the horizons that follow (rules R13 and R22).

use crate::core::Core;
use crate::message::{Message, WireMessage};
use base::{DatabaseId, Position, ShardId, Ts};
use core::ops::Bound;
use core::{iter, mem};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use store::ByDatabase;

/// What a shard, and the transactions that it coordinates, may still read.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Oldest {
    /// Readers that begin from now on read above it.
    pub clock: Ts,
    /// The oldest snapshot in use in each database that has one below the clock.
    pub readers: ByDatabase,
}

impl Oldest {
    /// Adds what others read.
    fn add(&mut self, other: &Oldest) {
        self.clock = self.clock.min(other.clock);
        let readers = other.readers.iter();
        readers.for_each(|(database, ts)| self.readers.note(database, ts));
    }
}

/// The readers that the horizons of a shard wait for.
#[derive(Debug, Default)]
pub(crate) struct Readers {
    /// Snapshots that transactions coordinated here still read, with their number of users.
    snapshots: BTreeMap<(DatabaseId, Ts), u32>,
    /// What the other shards have said last.
    others: BTreeMap<ShardId, Oldest>,
    /// What they all read, while it is gathered.
    all: Oldest,
}

impl Readers {
    /// The oldest snapshot that transactions coordinated here read, in each database with any.
    fn held(&self) -> impl Iterator<Item = (DatabaseId, Ts)> {
        let from = |low| self.snapshots.range((low, Bound::Unbounded));
        let first = from(Bound::Unbounded).next();
        let firsts = iter::successors(first, move |((database, _), _)| {
            from(Bound::Excluded((*database, Ts::MAX))).next()
        });
        firsts.map(|(oldest, _)| *oldest)
    }
}

impl Core {
    /// A snapshot of rows of a database is in use until [`Core::release_snapshot`].
    pub(crate) fn hold_snapshot(&mut self, database: DatabaseId, ts: Ts) {
        *self.readers.snapshots.entry((database, ts)).or_insert(0) += 1;
    }

    /// One user of the snapshot is done.
    pub(crate) fn release_snapshot(&mut self, database: DatabaseId, ts: Ts) {
        let snapshots = &mut self.readers.snapshots;
        let users = snapshots
            .get_mut(&(database, ts))
            .expect("a released snapshot was held");
        *users -= 1;
        if *users == 0 {
            snapshots.remove(&(database, ts));
        }
    }

    /// Fills in what this shard reads.
    fn gather(&self, oldest: &mut Oldest) {
        let clock = self.clock.last();
        let Oldest {
            clock: common,
            readers,
        } = oldest;
        *common = clock;
        readers.clear();
        let held = self.readers.held().filter(|(_, ts)| *ts < clock);
        held.for_each(|(database, ts)| readers.note(database, ts));
        self.protocols.each_snapshot(&mut |index, ts| {
            if ts >= clock {
                return;
            }
            match self.horizons.database(index) {
                Some(database) => readers.note(database, ts),
                None => *common = ts.min(*common),
            }
        });
    }

    /// Computes the horizons from what this and the other shards read. A shard that has said
    /// nothing since this one began may read anything, unless its node is gone.
    pub(crate) fn update_horizons(&mut self) {
        let mut all = mem::take(&mut self.readers.all);
        self.gather(&mut all);
        let here = self.config.shard;
        let shards = self.catalog.placement.shards().iter();
        let mut others =
            shards.filter(|shard| **shard != here && !self.gone.contains(&shard.node()));
        let said = others.try_for_each(|shard| {
            all.add(self.readers.others.get(shard)?);
            Some(())
        });
        if said.is_some() {
            self.horizons.advance(all.clock, &all.readers);
        }
        self.readers.all = all;
    }

    /// Another shard has said what it reads. `wanted`: it wants to know the same.
    pub(crate) fn on_oldest(&mut self, from: ShardId, oldest: Oldest, wanted: bool) {
        self.clock.merge(oldest.clock);
        self.readers.others.insert(from, oldest);
        self.update_horizons();
        if wanted {
            self.send_oldest(from, false);
        }
    }

    fn send_oldest(&mut self, to: ShardId, wanted: bool) {
        let mut oldest = Oldest::default();
        self.gather(&mut oldest);
        let message = WireMessage::OldestRead { oldest, wanted };
        self.send(to, Message::Wire(message), Position(0));
    }

    /// Tells all other shards what this one reads, and asks them for the same.
    pub(crate) fn announce(&mut self) {
        self.update_horizons();
        let catalog = self.catalog.clone();
        for shard in catalog.placement.shards() {
            if *shard != self.config.shard {
                self.send_oldest(*shard, true);
            }
        }
    }
}

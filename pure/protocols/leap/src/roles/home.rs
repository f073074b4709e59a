//! The home's state: which shard owns each row, the requests for each, and the open grants.

use crate::dropped;
use crate::home::{Entry, Grant, Incoming, Settling, Stage, Want, place};
use crate::since::Since;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use base::{IndexId, Key, ShardId, Time};
use journal::Otag;
use txn::{Alarm, Asks, Counted, LockTable, Seen};

/// What a home knows of its rows. A row without an entry is here.
#[derive(Debug, Default)]
pub(crate) struct Home {
    /// The owner table: rows that are elsewhere.
    pub(crate) table: Counted<Key, Entry>,
    /// One request per row at a time; the others wait in its queue.
    pub(crate) dispatch: LockTable,
    pub(crate) incoming: BTreeMap<Want, Incoming>,
    /// Requests by the number of their place in `dispatch`.
    pub(crate) queued: BTreeMap<u64, Want>,
    pub(crate) grants: Asks<Otag, Grant>,
    /// Transfers whose new owner may not have the row durably.
    pub(crate) settling: BTreeMap<Otag, Settling>,
    pub(crate) settling_of: BTreeMap<Key, Otag>,
    next_grant: u64,
    requests_seen: BTreeMap<ShardId, (u32, Seen<u64>)>,
    /// Rows whose history begins later than the horizon.
    pub(crate) since: Since,
    /// Backups that scans may still be reading.
    pub(crate) evictions: Vec<Key>,
    /// Dropped indexes of which rows are still on their way.
    pub(crate) dropped: BTreeMap<IndexId, dropped::Place>,
    /// When those indexes are looked at again.
    pub(crate) dropped_again: Alarm,
}

impl Home {
    /// A tag for a grant or copy, above all that this home has drawn in `incarnation`.
    pub(crate) fn next_otag(&mut self, incarnation: u32) -> Otag {
        let otag = self.unused_otag(incarnation);
        self.next_grant += 1;
        otag
    }

    /// The tag that is drawn next.
    pub(crate) fn unused_otag(&self, incarnation: u32) -> Otag {
        Otag {
            incarnation,
            grant: self.next_grant + 1,
        }
    }

    /// All grants below this are over.
    pub(crate) fn floor(&self, incarnation: u32) -> Otag {
        let next = self.unused_otag(incarnation);
        self.grants.first().unwrap_or(next)
    }

    /// The requests of a life of a shard that are over. Those of former lives are forgotten.
    pub(crate) fn seen(&mut self, from: ShardId, incarnation: u32) -> &mut Seen<u64> {
        let (life, seen) = self.requests_seen.entry(from).or_default();
        if *life < incarnation {
            (*life, *seen) = (incarnation, Seen::default());
        }
        seen
    }

    /// Whether a row of this home is here. Most local transactions meet an empty table.
    #[inline]
    pub(crate) fn is_here(&self, key: &Key) -> bool {
        self.table.is_empty() || !self.table.contains_key(key)
    }

    /// A row that is away. Panics if it is not.
    pub(crate) fn away(&mut self, key: &Key) -> &mut Entry {
        let entry = self.table.get_mut(key);
        entry.expect("a granted row has an entry")
    }

    /// A request that is not over. Panics if it is.
    pub(crate) fn request(&mut self, request: Want) -> &mut Incoming {
        let incoming = self.incoming.get_mut(&request);
        incoming.expect("a request is kept until it is over")
    }

    /// A request has its turn. Returns it.
    pub(crate) fn begin_turn(&mut self, want: Want) -> Incoming {
        let incoming = self.incoming.get_mut(&want);
        let incoming = incoming.expect("a request is kept until it is over");
        if incoming.alone {
            incoming.alone = self.dispatch.begin_patience(&incoming.key, place(want));
        }
        incoming.clone()
    }

    /// The request that has the turn of a row that is away.
    pub(crate) fn turn_of(&self, key: &Key) -> Option<Want> {
        self.grant_of(key).map(|(_, grant)| grant.request)
    }

    /// The owner of a row that is away and not on its way from here.
    pub(crate) fn owner_of(&self, key: &Key) -> Option<ShardId> {
        self.table.get(key)?.owner
    }

    /// The grant under which a row is on its way, or is to leave its owner.
    pub(crate) fn grant_of(&self, key: &Key) -> Option<(Otag, &Grant)> {
        let otag = self.table.get(key)?.grant?;
        Some((otag, &self.grants[otag]))
    }

    /// The shards that a row needs in order to come: its owner, and the ends of the open grant.
    pub(crate) fn concerned(&self, key: &Key) -> impl Iterator<Item = ShardId> {
        let ends = self.grant_of(key);
        let ends = ends.map(|(_, grant)| [grant.want.to, grant.from]);
        ends.into_iter().flatten().chain(self.owner_of(key))
    }

    /// Opens a grant, which takes the place of its request in the queue.
    pub(crate) fn open_grant(&mut self, otag: Otag, grant: Grant, now: Time, repeats: bool) {
        if let Some(incoming) = self.incoming.get_mut(&grant.request) {
            incoming.stage = Stage::Granted(otag);
        }
        self.grants.begin(otag, grant, now, repeats);
    }

    /// A grant is over.
    pub(crate) fn close_grant(&mut self, otag: Otag) -> Grant {
        self.grants.end(otag).expect("looked up by the caller")
    }

    /// A request is over: the next of its row gets its turn.
    pub(crate) fn finish_request(&mut self, want: Want) {
        let Some(incoming) = self.incoming.remove(&want) else {
            return;
        };
        match incoming.stage {
            Stage::Queued(id) => {
                self.queued.remove(&id);
            }
            Stage::Locking | Stage::Granted(_) => self.dispatch.end_patience(&incoming.key),
        }
        if incoming.reclaim.is_none()
            && let Some((life, seen)) = self.requests_seen.get_mut(&want.to)
            && *life == want.life
        {
            seen.end(want.seq, ());
        }
        self.dispatch.release(place(want));
    }

    /// The shard with the backup of a row that its owner has lost.
    pub(crate) fn backup_of(&self, key: &Key) -> ShardId {
        let backup = self.kept_backup_of(key);
        backup.expect("only what was not durable can be lost")
    }

    /// The shard with a backup of a row whose owner may not have the row durably.
    pub(crate) fn kept_backup_of(&self, key: &Key) -> Option<ShardId> {
        let otag = self.settling_of.get(key)?;
        Some(self.settling[otag].backup)
    }

    /// Ends the transfer of a row whose owner may not have it durably.
    pub(crate) fn end_settling(&mut self, otag: Otag) -> Option<Settling> {
        let settling = self.settling.remove(&otag)?;
        if self.settling_of.get(&settling.key) == Some(&otag) {
            self.settling_of.remove(&settling.key);
        }
        Some(settling)
    }

    /// Whether a row waits for its turn to be given back to `backup`.
    pub(crate) fn reclaims_for(&self, key: &Key, backup: ShardId) -> bool {
        let mut waiting = self.incoming.values();
        waiting.any(|incoming| incoming.reclaim == Some(backup) && incoming.key == *key)
    }

    /// Whether a shard needs no more what it has kept of a row under a grant.
    ///
    /// An open grant concerns the owner, which the table names, and the shard that is to get the
    /// row, which may itself wait for this answer. A backup that may become the row again belongs
    /// to a transfer that settles.
    pub(crate) fn is_done_with(&self, from: ShardId, key: &Key, otag: Otag) -> bool {
        let coming = self.grant_of(key).is_some_and(|(_, g)| g.want.to == from);
        self.owner_of(key) != Some(from)
            && !coming
            && !self.grants.contains(otag)
            && !self.settling_of.contains_key(key)
    }

    /// Grants that a checkpoint must know when it begins: open and settling ones.
    pub(crate) fn open_grants(&self) -> Vec<Otag> {
        let mut open = Vec::new();
        for (otag, settling) in &self.settling {
            settling.claimable(*otag, &mut open);
        }
        for (otag, grant) in self.grants.iter() {
            open.push(otag);
            open.extend(&grant.older);
        }
        open.sort_unstable();
        open.dedup();
        open
    }

    /// Grants of one row that a checkpoint must know when its walk meets the row. The last owner
    /// may not have it durably: then the shard with the backup claims it under an older grant.
    pub(crate) fn open_grants_of(&self, key: &Key, open: &mut Vec<Otag>) {
        if let Some(otag) = self.settling_of.get(key) {
            self.settling[otag].claimable(*otag, open);
        }
        if let Some((_, grant)) = self.grant_of(key) {
            open.extend(&grant.older);
        }
    }

    /// Removes the requests that `of` selects and that were not granted. Returns their keys, with
    /// `true` where a row was to leave this shard.
    pub(crate) fn forget_requests(&mut self, mut of: impl FnMut(Want) -> bool) -> Vec<(Key, bool)> {
        let old = self
            .incoming
            .iter()
            .filter(|(want, incoming)| of(**want) && !matches!(incoming.stage, Stage::Granted(_)));
        let old = old.map(|(at, incoming)| {
            let locking = incoming.stage == Stage::Locking;
            (*at, incoming.key.clone(), locking)
        });
        let old: Vec<(Want, Key, bool)> = old.collect();
        let mut forgotten = Vec::new();
        for (want, key, locking) in old {
            self.finish_request(want);
            forgotten.push((key, locking));
        }
        forgotten
    }

    pub(crate) fn validate(&self, own: ShardId) {
        self.dispatch.validate();
        for (key, entry) in self.table.iter() {
            match entry.grant {
                Some(otag) => {
                    let grant = self.grants.get(otag).expect("an entry names its grant");
                    assert_eq!(grant.key, *key);
                    assert!(entry.owner.is_none_or(|owner| owner == grant.from));
                }
                None => assert!(entry.owner.is_some(), "a row that is nowhere is under way"),
            }
            assert!(entry.owner != Some(own), "a row at home has no entry");
        }
        for (otag, grant) in self.grants.iter() {
            let entry = self.table.get(&grant.key);
            let entry = entry.expect("a granted row has an entry");
            assert_eq!(entry.grant, Some(otag), "one grant at a time");
            let incoming = self.incoming.get(&grant.request);
            let incoming = incoming.expect("a grant keeps its place");
            assert_eq!(incoming.stage, Stage::Granted(otag));
        }
        for (otag, settling) in &self.settling {
            assert_eq!(self.settling_of.get(&settling.key), Some(otag));
        }
        assert_eq!(self.settling.len(), self.settling_of.len());
    }
}

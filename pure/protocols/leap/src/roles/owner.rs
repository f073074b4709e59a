//! The owner's state: rows of other homes that are here or were, and rows that are about to leave.

use crate::heat::Heat;
use crate::message::Refused;
use crate::owner::{Held, Releasing, Tenure};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use base::{Key, ShardId, Time};
use journal::Otag;
use txn::Rounds;

/// What a shard has of rows of other homes, and which rows it gives away.
#[derive(Debug, Default)]
pub(crate) struct Owner {
    /// Rows of other homes that this shard owns, or has released without an acknowledgement.
    pub(crate) held: BTreeMap<Key, Held>,
    /// Backups among `held`, about which their homes are asked.
    pub(crate) backups: Rounds<Key, ()>,
    /// Rows that are to leave, by number of the lock request.
    pub(crate) releasing: BTreeMap<u64, Releasing>,
    /// Number of the lock request of each row that is to leave.
    release_of: BTreeMap<Key, u64>,
    /// Refused grants about which the home may ask again.
    refusals: BTreeMap<(ShardId, Otag), Refused>,
    /// How often rows come and go.
    pub(crate) heat: Heat,
    /// Rows of dropped indexes that their homes have forgotten and that are still in use here.
    pub(crate) forgotten: Vec<(Key, Otag)>,
}

impl Owner {
    /// This shard owns the row from now on.
    pub(crate) fn own(&mut self, key: Key, held: Held) {
        self.backups.end(&key);
        self.held.insert(key, held);
    }

    /// The owned row goes; the backup remains.
    pub(crate) fn give(&mut self, key: &Key, otag: Otag, to: ShardId, now: Time) {
        let held = self.held.get_mut(key).expect("the owner releases");
        held.otag = otag;
        held.seen = otag;
        held.tenure = Tenure::Released { to };
        self.backups.begin(key.clone(), (), now, true);
    }

    /// Forgets a row.
    pub(crate) fn forget(&mut self, key: &Key) {
        self.held.remove(key);
        self.backups.end(key);
    }

    /// A row is to leave when its lock request is granted.
    pub(crate) fn begin_release(&mut self, id: u64, releasing: Releasing) {
        self.release_of.insert(releasing.key.clone(), id);
        self.releasing.insert(id, releasing);
    }

    /// A row has left, or stays after all.
    pub(crate) fn end_release(&mut self, id: u64) -> Option<Releasing> {
        let releasing = self.releasing.remove(&id)?;
        self.unlink_release(&releasing.key, id);
        Some(releasing)
    }

    fn unlink_release(&mut self, key: &Key, id: u64) {
        if self.release_of.get(key) == Some(&id) {
            self.release_of.remove(key);
        }
    }

    /// A row that was to leave stays: the grant of its lock request has no effect.
    pub(crate) fn void_release(&mut self, key: &Key) {
        if let Some(id) = self.release_of.remove(key)
            && let Some(releasing) = self.releasing.get_mut(&id)
        {
            releasing.void = true;
        }
    }

    /// As `void_release`, by number. Returns the release as it was before.
    pub(crate) fn void_release_of(&mut self, id: u64) -> Option<Releasing> {
        let releasing = self.releasing.get_mut(&id)?;
        let before = releasing.clone();
        releasing.void = true;
        self.unlink_release(&before.key, id);
        Some(before)
    }

    /// Gives a release another number. If the release was the row's current one, it remains that.
    pub(crate) fn renumber_release(&mut self, before: u64, id: u64) -> Option<&Releasing> {
        let releasing = self.releasing.remove(&before)?;
        if self.release_of.get(&releasing.key) == Some(&before) {
            self.release_of.insert(releasing.key.clone(), id);
        }
        Some(self.releasing.entry(id).or_insert(releasing))
    }

    /// The release of a row that is to leave.
    pub(crate) fn release_of(&self, key: &Key) -> Option<&Releasing> {
        self.releasing.get(self.release_of.get(key)?)
    }

    /// As [`Owner::release_of`], to change it.
    pub(crate) fn release_of_mut(&mut self, key: &Key) -> Option<&mut Releasing> {
        self.releasing.get_mut(self.release_of.get(key)?)
    }

    /// Numbers of the releases of rows that are to leave.
    pub(crate) fn leaving(&self) -> &BTreeMap<Key, u64> {
        &self.release_of
    }

    /// A grant is refused, and stays so.
    pub(crate) fn note_refusal(&mut self, key: &Key, otag: Otag, refused: Refused) {
        let held = self.held.get_mut(key);
        held.expect("the owner refuses").seen = otag;
        self.refusals.insert((refused.home, otag), refused);
    }

    /// The refusal under a grant.
    pub(crate) fn refusal(&self, home: ShardId, otag: Otag) -> Option<&Refused> {
        self.refusals.get(&(home, otag))
    }

    /// Grants of a home below `floor` are over.
    pub(crate) fn forget_refusals(&mut self, home: ShardId, floor: Otag) {
        self.refusals
            .retain(|(other, otag), _| *other != home || *otag >= floor);
    }

    pub(crate) fn validate(&self) {
        for (key, held) in &self.held {
            assert!(held.otag <= held.seen, "tags never decrease");
            let backup = matches!(held.tenure, Tenure::Released { .. });
            assert_eq!(backup, self.backups.contains(key));
        }
        for id in self.release_of.values() {
            assert!(self.releasing.contains_key(id), "a row leaves once");
        }
    }
}

//! Rows that go to and fro between shards (L10), as each shard sees its own part of it.
//!
//! A row that has left soon after it came, several times in succession, is *contended* here:
//! transactions of one operation go to it instead of pulling it back (`entrust`).

use alloc::collections::BTreeMap;
use base::{Key, Time};

/// A stay is short if it ends within so many microseconds.
const SHORT_US: u64 = 20_000;

/// A row is not contended any more when it has not left for so many microseconds.
const COOLS_US: u64 = 1_000_000;

/// Rows that are remembered.
const REMEMBERED_MAX: usize = 10_000;

#[derive(Debug)]
struct Stays {
    short: u32,
    /// When it came or left last.
    at: Time,
}

/// What a shard remembers of rows that came and left.
#[derive(Debug, Default)]
pub(crate) struct Heat(BTreeMap<Key, Stays>);

impl Heat {
    pub(crate) fn note_arrival(&mut self, key: &Key, now: Time) {
        if self.0.len() >= REMEMBERED_MAX {
            self.0.retain(|_, stays| now.since(stays.at) <= COOLS_US);
            if self.0.len() >= REMEMBERED_MAX {
                self.0.clear();
            }
        }
        match self.0.get_mut(key) {
            Some(stays) => stays.at = now,
            None => {
                let stays = Stays { short: 0, at: now };
                self.0.insert(key.clone(), stays);
            }
        }
    }

    pub(crate) fn note_departure(&mut self, key: &Key, now: Time) {
        if let Some(stays) = self.0.get_mut(key) {
            let short = now.since(stays.at) <= SHORT_US;
            stays.short = if short { stays.short + 1 } else { 0 };
            stays.at = now;
        }
    }

    /// Whether the row, which is not here, would soon be gone again if it came.
    /// `from`: [`crate::Settings::contended_from`].
    pub(crate) fn is_contended(&self, key: &Key, from: u32, now: Time) -> bool {
        let hot = |stays: &Stays| stays.short >= from && now.since(stays.at) <= COOLS_US;
        from == 0 || self.0.get(key).is_some_and(hot)
    }

    /// A change has gone to the row, so it is as much wanted as before.
    pub(crate) fn note_shipped(&mut self, key: &Key, now: Time) {
        if let Some(stays) = self.0.get_mut(key) {
            stays.at = now;
        }
    }
}

//! Contended rows (L10): each shard counts the short stays of rows at that shard.
//!
//! A stay is short if the row leaves within [`SHORT_US`] of its arrival. A row with
//! `contended_from` consecutive short stays is *contended* here: transactions of one operation are
//! entrusted to its owner instead of moving it (`entrust`).

use alloc::collections::BTreeMap;
use base::{Key, Time};

/// Length, in microseconds, up to which a stay is short.
const SHORT_US: u64 = 20_000;

/// Time without a departure, in microseconds, after which a row is not contended any more.
const COOLS_US: u64 = 1_000_000;

/// Largest number of rows whose stays a shard counts.
const REMEMBERED_MAX: usize = 10_000;

#[derive(Debug)]
struct Stays {
    short: u32,
    /// Time of the last arrival or departure.
    at: Time,
}

/// Short stays of rows at one shard.
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

    /// Whether the row, which is not here, is contended ([`crate::Settings::contended_from`]).
    pub(crate) fn is_contended(&self, key: &Key, from: u32, now: Time) -> bool {
        let hot = |stays: &Stays| stays.short >= from && now.since(stays.at) <= COOLS_US;
        from == 0 || self.0.get(key).is_some_and(hot)
    }

    /// A change was sent to the owner: the row stays contended.
    pub(crate) fn note_shipped(&mut self, key: &Key, now: Time) {
        if let Some(stays) = self.0.get_mut(key) {
            stays.at = now;
        }
    }
}

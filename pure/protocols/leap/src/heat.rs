//! Rows that go to and fro between shards (L10), as each shard sees its own part of it.
//!
//! A row that has left soon after it came, several times in a row, is *contended* here. Its next
//! stay lasts at least [`Exchange::hold_us`], in which all who want it here have their turn,
//! and transactions of one operation go to it instead of pulling it back (`entrust`).

use alloc::collections::BTreeMap;
use base::{Key, Time};

/// A stay is short if it ends within so many microseconds.
const SHORT_US: u64 = 20_000;

/// A row is not contended any more when it has not left for so many microseconds.
const COOLS_US: u64 = 1_000_000;

/// What an exchange with another node is taken for before one was measured. Microseconds.
const EXCHANGE_US: u64 = 2_000;

/// A row stays so long if another shard of this node wants it, which gets it without a link and
/// without a flush. Microseconds.
const HOLD_IN_NODE_US: u64 = 100;

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

    /// Until when the row, which is here, stays; `None`: it may go.
    pub(crate) fn held_until(&self, key: &Key, from: u32, hold_us: u64, now: Time) -> Option<Time> {
        let stays = self.0.get(key)?;
        let until = stays.at.after(hold_us);
        (stays.short >= from && until > now).then_some(until)
    }
}

/// How long a message to another node and its answer take, by this shard's own measure.
///
/// Measured where an answer waits for nothing ([`crate::message::Body::Settled`]), a few times a
/// second while rows move. The shortest counts, since what a message waits for besides the link
/// is no reason to keep a row longer; slowly forgotten, because links change.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Exchange(Option<u64>);

impl Exchange {
    pub(crate) fn note(&mut self, took_us: u64) {
        let longer = self.0.map_or(u64::MAX, |known| known + known / 8 + 1);
        self.0 = Some(took_us.min(longer));
    }

    /// The least stay of a contended row that is wanted on another node, or else in this one: as
    /// long as the transfer takes, so that it is in use for half of the time.
    pub(crate) fn hold_us(&self, remote: bool, max_us: u64) -> u64 {
        let hold_us = match remote {
            true => self.0.unwrap_or(EXCHANGE_US),
            false => HOLD_IN_NODE_US,
        };
        hold_us.min(max_us)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_stays_as_long_as_an_exchange_takes() {
        let mut exchange = Exchange::default();
        assert_eq!(exchange.hold_us(true, 10_000), EXCHANGE_US);
        for took_us in [900, 300, 4_000] {
            exchange.note(took_us);
        }
        assert_eq!(exchange.hold_us(true, 10_000), 338);
        assert_eq!(exchange.hold_us(true, 0), 0);
        assert_eq!(exchange.hold_us(false, 10_000), HOLD_IN_NODE_US);
        // The links have become slower.
        for _ in 0..40 {
            exchange.note(20_000);
        }
        assert_eq!(exchange.hold_us(true, 10_000), 10_000);
    }
}

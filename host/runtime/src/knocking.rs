//! How much clients that have not logged in may take: places among the connections of a node, and
//! time of a shard.
//!
//! | what | limit |
//! |---|---|
//! | clients of a shard that have not logged in | its part of a quarter of `connections` |
//! | a shard's time for them | [`TIME_MAX`] of each [`WINDOW`]; then they wait for the next |
//!
//! One more client than that ends the oldest, if that has had [`GRACE`]: many clients may come back
//! at once. [`KNOCKING_MIN`] may always be there.

use crate::few_lines::FewLines;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// How long a client may take to log in, as PostgreSQL's `authentication_timeout`.
pub(crate) const LOGIN_MAX: Duration = Duration::from_secs(60);
/// Clients of a shard that have not logged in, at least.
const KNOCKING_MIN: u32 = 32;
/// A client has this long in any case.
const GRACE: Duration = Duration::from_secs(1);
/// Share of the connections of a node that may be used by clients that have not logged in.
const KNOCKING_SHARE: u32 = 4;
/// Span in which time is counted.
const WINDOW: Duration = Duration::from_millis(10);
/// Time for logins in each of them.
const TIME_MAX: Duration = Duration::from_millis(2);
/// A client that was ended is told to the log so often; the others are counted.
const LOG_TIME: Duration = Duration::from_secs(10);

/// Clients of a shard that have not logged in, and the time that logins have taken.
pub(crate) struct Knocking {
    /// Oldest first, and until when they may. Some have logged in or gone since.
    clients: VecDeque<(Instant, usize)>,
    max: usize,
    window: Instant,
    spent: Duration,
    /// Clients that were ended for others.
    crowded: FewLines,
}

impl Knocking {
    /// `connections`: those that the node takes.
    pub(crate) fn new(connections: u32, shards: usize) -> Knocking {
        let share = connections / KNOCKING_SHARE / (shards as u32).max(1);
        Knocking {
            clients: VecDeque::new(),
            max: share.max(KNOCKING_MIN) as usize,
            window: Instant::now(),
            spent: Duration::ZERO,
            crowded: FewLines::new(1, LOG_TIME),
        }
    }

    /// A client has connected. Returns one that has to go for it. `waits`: whether a client has not
    /// logged in and is still there.
    pub(crate) fn add(
        &mut self,
        token: usize,
        now: Instant,
        waits: impl Fn(usize) -> bool,
    ) -> Option<usize> {
        let mut gone = None;
        if self.clients.len() >= self.max {
            self.clients.retain(|(_, token)| waits(*token));
        }
        let is_old = |(until, _): &(Instant, usize)| now + LOGIN_MAX >= *until + GRACE;
        if self.clients.len() >= self.max && self.clients.front().is_some_and(is_old) {
            gone = self.clients.pop_front().map(|(_, token)| token);
            self.note_crowded(now);
        }
        self.clients.push_back((now + LOGIN_MAX, token));
        gone
    }

    fn note_crowded(&mut self, now: Instant) {
        if self.crowded.may_write(now, tell_ended) {
            let max = self.max;
            tracing::warn!(
                max,
                "too many clients have not logged in: the oldest are ended"
            );
        }
    }

    /// Call it at times.
    pub(crate) fn tend(&mut self) {
        self.crowded.tend(Instant::now(), tell_ended);
    }

    /// A client whose time is over.
    pub(crate) fn late(&mut self, waits: impl Fn(usize) -> bool) -> Option<usize> {
        while let Some((until, token)) = self.clients.front().copied() {
            let waits = waits(token);
            if waits && until > Instant::now() {
                return None;
            }
            self.clients.pop_front();
            if waits {
                return Some(token);
            }
        }
        None
    }

    /// Time from `now` until logins may go on; `None`: they may.
    pub(crate) fn pause(&mut self, now: Instant) -> Option<Duration> {
        let passed = now.duration_since(self.window);
        if passed >= WINDOW {
            self.window = now;
            // A login that took long is made up for.
            self.spent = self.spent.saturating_sub(TIME_MAX * windows(passed));
        }
        (self.spent >= TIME_MAX).then(|| WINDOW.saturating_sub(now.duration_since(self.window)))
    }

    /// A login has taken so long.
    pub(crate) fn spend(&mut self, took: Duration) {
        self.spent += took;
    }
}

fn tell_ended(count: u64) {
    tracing::warn!("{count} more clients that had not logged in were ended");
}

fn windows(passed: Duration) -> u32 {
    (passed.as_millis() / WINDOW.as_millis()).min(1_000) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_oldest_that_waits_makes_room() {
        let mut knocking = Knocking::new(1_000, 2);
        assert_eq!(knocking.max, 125);
        let inside: BTreeSet<usize> = (0..100).collect();
        let waits = |token: usize| !inside.contains(&token);
        let start = Instant::now();
        for token in 0..230 {
            assert_eq!(knocking.add(token, start, waits), None, "{token}");
        }
        let later = start + GRACE;
        assert_eq!(knocking.add(230, later, waits), Some(100));
        assert_eq!(knocking.add(231, later, waits), Some(101));
        assert_eq!(knocking.late(waits), None);
        assert_eq!(Knocking::new(10, 16).max, KNOCKING_MIN as usize);
    }

    #[test]
    fn logins_have_a_share_of_the_time() {
        let mut knocking = Knocking::new(1_000, 2);
        let start = knocking.window;
        assert_eq!(knocking.pause(start), None);
        knocking.spend(TIME_MAX * 2);
        assert_eq!(knocking.pause(start), Some(WINDOW));
        // Twice the time of a window was spent.
        assert_eq!(knocking.pause(start + WINDOW), Some(WINDOW));
        assert_eq!(knocking.pause(start + WINDOW * 2), None);
    }
}

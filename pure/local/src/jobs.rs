//! The jobs of a shard that wait: what each waits for, and which one goes on next.
//!
//! ```text
//! next_number ──> runs ──stops──> insert ──> parked         a turn per tick        ─┐
//!                  ^                         journal waits  the journal caught up  ─┤
//!                  │                         the protocol's own lists, lock queues ─┤
//!                  └──────── pop_ready <──────────── ready <─── wake ───────────────┘
//! ```
//!
//! A job is taken out while it runs. All lists know it by its number, and pass over a number whose
//! job is gone.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use txn::AbortReason;
use txn::lock::Settled;

/// What a job tells this module.
pub trait Work {
    /// Whether the job is a scan that has begun.
    fn is_scanning(&self) -> bool;
}

/// Jobs by their number.
#[derive(Debug, Default)]
pub struct Jobs<J> {
    all: BTreeMap<u64, Box<J>>,
    /// Number of jobs that are scans which have begun.
    scan_count: usize,
    /// Numbers of jobs that can go on in this step.
    ready: VecDeque<u64>,
    /// Numbers of jobs that have used up their budget and go on in a later tick.
    parked: VecDeque<u64>,
    /// Numbers of jobs that go on when the journal has caught up.
    journal_waits: Vec<u64>,
    last_number: u64,
}

impl<J> Jobs<J> {
    /// Draws a number for a job that may have to wait, or for a lock request without a job.
    #[inline]
    pub fn next_number(&mut self) -> u64 {
        self.last_number += 1;
        self.last_number
    }

    /// The job with this number.
    pub fn get(&self, number: u64) -> Option<&J> {
        self.all.get(&number).map(|job| &**job)
    }

    /// As [`Jobs::get`], mutable.
    pub fn get_mut(&mut self, number: u64) -> Option<&mut J> {
        self.all.get_mut(&number).map(|job| &mut **job)
    }

    /// Whether there is a job with this number.
    pub fn has(&self, number: u64) -> bool {
        self.all.contains_key(&number)
    }

    /// Number of jobs that wait.
    #[inline]
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether there is no job.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Whether a job is a scan that has begun.
    pub fn has_scans(&self) -> bool {
        self.scan_count > 0
    }

    /// All jobs with their numbers, ascending.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &J)> {
        self.all.iter().map(|(number, job)| (*number, &**job))
    }

    /// All jobs, in the order of their numbers.
    pub fn values(&self) -> impl Iterator<Item = &J> {
        self.all.values().map(|job| &**job)
    }

    /// The job goes on in this step.
    pub fn wake(&mut self, number: u64) {
        self.ready.push_back(number);
    }

    /// These jobs go on in this step.
    pub fn wake_all(&mut self, numbers: impl IntoIterator<Item = u64>) {
        self.ready.extend(numbers);
    }

    /// The job goes on in a later tick: [`crate::Stop::Budget`].
    pub fn park(&mut self, number: u64) {
        self.parked.push_back(number);
    }

    /// The job goes on when the journal has caught up: [`crate::Stop::Journal`].
    pub fn await_journal(&mut self, number: u64) {
        self.journal_waits.push(number);
    }

    /// Whether a job waits for the journal.
    pub fn awaits_journal(&self) -> bool {
        !self.journal_waits.is_empty()
    }

    /// The journal has caught up.
    pub fn on_durable(&mut self) {
        self.parked.extend(self.journal_waits.drain(..));
    }

    /// Whether a job waits for its turn.
    pub fn has_parked(&self) -> bool {
        !self.parked.is_empty()
    }

    /// A tick: one parked job gets a turn, behind the jobs that became ready before.
    pub fn on_tick(&mut self) {
        self.ready.extend(self.parked.pop_front());
    }

    /// A wait for a lock is over. `Some`: the job with this number fails for that reason.
    pub fn on_lock(&mut self, number: u64, settled: Settled) -> Option<AbortReason> {
        match settled {
            Settled::Granted => {
                self.wake(number);
                None
            }
            Settled::Died(conflict) => Some(AbortReason::Die {
                key: conflict.key,
                holder: conflict.holder,
            }),
            Settled::TimedOut(conflict) => Some(AbortReason::LockTimeout {
                key: conflict.key,
                holder: conflict.holder,
            }),
        }
    }
}

impl<J: Work> Jobs<J> {
    /// Keeps a job that does not go on.
    pub fn insert(&mut self, number: u64, job: Box<J>) {
        self.scan_count += usize::from(job.is_scanning());
        self.all.insert(number, job);
    }

    /// Takes a job out, for good or to run it.
    pub fn remove(&mut self, number: u64) -> Option<Box<J>> {
        let job = self.all.remove(&number)?;
        self.scan_count -= usize::from(job.is_scanning());
        Some(job)
    }

    /// The next job that can go on, taken out.
    #[inline]
    pub fn pop_ready(&mut self) -> Option<Box<J>> {
        while let Some(number) = self.ready.pop_front() {
            if let Some(job) = self.remove(number) {
                return Some(job);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Work for &str {
        fn is_scanning(&self) -> bool {
            *self == "d"
        }
    }

    #[test]
    fn jobs_go_on_in_the_order_in_which_they_were_woken() {
        let mut jobs = Jobs::default();
        for name in ["a", "b", "c", "d"] {
            let number = jobs.next_number();
            jobs.insert(number, Box::new(name));
        }
        jobs.wake_all([3, 1]);
        jobs.remove(1);
        assert_eq!(jobs.pop_ready().as_deref(), Some(&"c"));
        assert_eq!(jobs.pop_ready(), None, "the other one is gone");
        jobs.park(2);
        jobs.await_journal(4);
        assert!(jobs.awaits_journal() && jobs.pop_ready().is_none());
        jobs.on_durable();
        assert!(!jobs.awaits_journal());
        jobs.on_tick();
        assert_eq!(jobs.pop_ready().as_deref(), Some(&"b"));
        assert_eq!(jobs.pop_ready(), None, "one a tick");
        jobs.on_tick();
        assert!(jobs.has_scans());
        assert_eq!(jobs.pop_ready().as_deref(), Some(&"d"));
        assert!(!jobs.has_scans());
        assert!(jobs.is_empty() && !jobs.has_parked());
    }
}

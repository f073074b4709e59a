//! What the stages of this host have done, for SHOW STAGES.
//!
//! | stage | what waits | counted by |
//! |---|---|---|
//! | `mail` | mail of other threads for a shard's thread | both |
//! | `hold` | answers and messages until the journal is durable | the shard's thread |
//! | `link` | bytes for other nodes that their sockets have not taken | the shard's thread |
//! | `prepare` | long statements for the thread beside a shard | both |
//! | `decode` | messages with long programs for a thread of the node | both |
//! | `journal` | records until they are durable | the shards and the flusher |

use crate::journal_file::Journal;
use node::meter::Reading;
use node::{Host, HostStage, Meter};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// Nanoseconds since the first call.
pub(crate) fn stopwatch() -> u64 {
    static START: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_nanos() as u64
}

/// The time of meters.
fn now_us() -> u64 {
    stopwatch() / 1_000
}

/// Work that one thread does for others.
#[derive(Default)]
pub(crate) struct Work {
    given: AtomicU64,
    done: AtomicU64,
    /// Takes times and lengths of the queue.
    meter: Mutex<Meter>,
}

impl Work {
    /// So many pieces of work are on their way to the thread.
    pub(crate) fn give(&self, count: u64) {
        self.given.fetch_add(count, Ordering::Relaxed);
    }

    /// Pieces of work that are not done.
    fn waiting(&self) -> u64 {
        let done = self.done.load(Ordering::Relaxed);
        self.given.load(Ordering::Relaxed).saturating_sub(done)
    }

    /// So many pieces of work are done.
    pub(crate) fn done(&self, count: u64) {
        self.done.fetch_add(count, Ordering::Relaxed);
    }

    /// Takes the time of work, and notes the queue in front of it.
    pub(crate) fn time<T>(&self, work: impl FnOnce() -> T) -> T {
        let (waiting, start) = (self.waiting(), stopwatch());
        let result = work();
        let end = stopwatch();
        let mut meter = self.meter.lock().expect("no thread panics inside");
        meter.turn(end / 1_000);
        meter.queue(waiting);
        meter.time(end.saturating_sub(start));
        result
    }

    pub(crate) fn stage(&self, name: &'static str, of_node: bool) -> HostStage {
        let mut meter = self.meter.lock().expect("no thread panics inside");
        HostStage {
            name,
            of_node,
            queue: self.waiting(),
            reading: Reading {
                items: self.done.load(Ordering::Relaxed),
                ..meter.read(now_us())
            },
        }
    }
}

/// A queue of a shard's thread alone.
#[derive(Default)]
pub(crate) struct Line {
    length: Cell<u64>,
    meter: RefCell<Meter>,
}

impl Line {
    /// The queue is so long now.
    #[inline]
    pub(crate) fn set(&self, length: u64) {
        self.length.set(length);
    }

    /// As [`Line::set`], and counts for the longest queue.
    pub(crate) fn note(&self, length: u64) {
        self.length.set(length);
        self.meter.borrow_mut().queue(length);
    }

    /// So many pieces have left it, or gone through.
    pub(crate) fn count(&self, count: u64) {
        self.meter.borrow_mut().count(count);
    }

    fn stage(&self, name: &'static str) -> HostStage {
        HostStage {
            name,
            of_node: false,
            queue: self.length.get(),
            reading: self.meter.borrow_mut().read(now_us()),
        }
    }
}

/// The stages of one shard's thread, and those that it tells of for its node.
pub(crate) struct Gauges {
    /// Mail that was sent to this thread.
    pub(crate) arrivals: Arc<AtomicU64>,
    mail: Line,
    pub(crate) hold: Line,
    pub(crate) link: Line,
    pub(crate) prepare: Arc<Work>,
    /// First shard of the node only: what all shards have in common.
    pub(crate) common: Option<(Journal, Arc<Work>)>,
}

impl Gauges {
    pub(crate) fn new(
        arrivals: Arc<AtomicU64>,
        prepare: Arc<Work>,
        common: Option<(Journal, Arc<Work>)>,
    ) -> Rc<Gauges> {
        Rc::new(Gauges {
            arrivals,
            mail: Line::default(),
            hold: Line::default(),
            link: Line::default(),
            prepare,
            common,
        })
    }

    /// A piece of mail was taken.
    pub(crate) fn took_mail(&self) {
        self.look_at_mail();
        self.mail.count(1);
    }

    /// Notes how much mail there is.
    fn look_at_mail(&self) {
        let taken = self.mail.meter.borrow().items();
        let sent = self.arrivals.load(Ordering::Relaxed);
        self.mail.note(sent.saturating_sub(taken));
    }

    /// Called every few seconds, so that what is old is forgotten.
    pub(crate) fn turn(&self) {
        for line in [&self.mail, &self.hold, &self.link] {
            line.meter.borrow_mut().turn(now_us());
        }
    }
}

/// How the shard's machine asks.
pub(crate) struct Told(pub(crate) Rc<Gauges>);

impl Host for Told {
    fn stages(&self) -> Vec<HostStage> {
        let gauges = &*self.0;
        gauges.look_at_mail();
        let mut stages = vec![
            gauges.mail.stage("mail"),
            gauges.hold.stage("hold"),
            gauges.link.stage("link"),
            gauges.prepare.stage("prepare", false),
        ];
        if let Some((journal, decode)) = &gauges.common {
            stages.push(journal.stage());
            stages.push(decode.stage("decode", true));
        }
        stages
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_given_and_not_done_waits() {
        let work = Work::default();
        work.give(3);
        work.time(|| std::hint::black_box(()));
        work.done(2);
        let stage = work.stage("prepare", false);
        assert_eq!((stage.queue, stage.reading.items), (1, 2));
        assert_eq!(stage.reading.queue_max, 3);
        assert!(stage.reading.mean_ns.is_some());
    }

    #[test]
    fn mail_that_was_not_taken_waits() {
        let arrivals = Arc::new(AtomicU64::new(5));
        let gauges = Gauges::new(arrivals, Arc::default(), None);
        (0..4).for_each(|_| gauges.took_mail());
        let stages = Told(gauges).stages();
        let mail = stages.iter().find(|stage| stage.name == "mail").unwrap();
        assert_eq!((mail.queue, mail.reading.items), (1, 4));
        assert_eq!(mail.reading.queue_max, 5);
        assert_eq!(stages.len(), 4, "another shard tells of the node");
    }
}

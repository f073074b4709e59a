//! Which statements run at once, and which wait for older transactions (Rubato, section 4.2).
//!
//! ```text
//! statement ──its transaction is among the oldest, or others wait for it──> runs
//!           ──else──> waits ──the same is the case now, or its time is up──> runs
//! ```
//!
//! A transaction is *at work* on its coordinator while a statement of it runs or waits here, or it
//! commits. Of the N_A transactions at work, N_O are as old as it or older: N_O / N_A is its
//! *conflict potential*. A session says with `admission_potential` above which its statements wait.
//!
//! It differs from the paper:
//! * a shard counts its own transactions; the paper counts those of a node;
//! * the oldest never waits: of four at work it is one of four, not one of the older 20 %;
//! * a transaction does not wait while others wait for a lock of it here, or while it holds
//!   something on another shard, whose waiters are not known here: its wait would be theirs;
//! * each wait has an end;
//! * COMMIT and ROLLBACK do not wait, nor do transactions that read a snapshot: the first end
//!   conflicts, the second have none. READ ONLY ones are not counted.
//!
//! Nothing is counted as long as no session of the shard has such a setting.

use super::{Commit, INTERNAL, Txn, Txns};
use crate::meter::Meter;
use crate::port::StatementPort;
use base::{Time, Ts, TxnId};
use catalog::ProtocolKind;
use session::message::{self, StatementNo, TxnHandle};
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::task::Poll;

/// Number of open transactions of a shard above which the potential of a statement is not sampled.
const SAMPLED_OPEN_MAX: usize = 1_000;

/// Number of statements for one whose potential is sampled.
const SAMPLE_EVERY: u64 = 64;

/// Age of a transaction: the start of its first attempt, and its name.
type Age = (Ts, TxnHandle);

/// Where a statement waits.
pub(crate) struct Gate {
    open: Cell<bool>,
    until: Time,
}

impl Gate {
    /// Whether the statement may run, at the latest when its time is up.
    pub(crate) fn poll(&self, port: &StatementPort, asked: &mut bool) -> Poll<()> {
        if self.open.get() {
            return Poll::Ready(());
        }
        let up = port.poll_wake(self.until, asked);
        if up.is_ready() {
            self.open.set(true);
            port.txn.core.borrow_mut().counters.admission_timeouts += 1;
        }
        up
    }
}

struct Waiting {
    statement: StatementNo,
    txn: TxnId,
    protocol: ProtocolKind,
    potential_max_percent: u8,
    gate: Rc<Gate>,
}

/// The transactions at work on one shard, and the statements that wait.
#[derive(Default)]
pub(super) struct Admission {
    /// Whether `at_work` is kept up.
    counts: bool,
    at_work: BTreeSet<Age>,
    /// Each belongs to a transaction at work.
    waiting: BTreeMap<Age, Waiting>,
    /// Whether a transaction has stopped work since the last look.
    changed: bool,
    /// At the last look: waits for locks that had begun here, and waits of statements whose time
    /// was up. More of the first may mean that others wait for one that waits.
    seen: u64,
    /// Potentials of some of the statements, in millionths.
    potentials: Meter,
}

impl Admission {
    /// The youngest transaction whose potential is not above so many percent; the oldest one has
    /// none.
    fn last_within(&self, percent: u8) -> Option<Age> {
        let within = self.at_work.len() * usize::from(percent) / 100;
        self.at_work.iter().nth(within.saturating_sub(1)).copied()
    }

    fn is_within(&self, age: Age, percent: u8) -> bool {
        self.last_within(percent).is_some_and(|last| age <= last)
    }
}

impl Txn {
    fn age(&self, handle: TxnHandle) -> Age {
        (self.priority_ts, handle)
    }

    /// Whether it is at work for a client, and may meet others.
    fn is_at_work(&self, handle: TxnHandle) -> bool {
        let busy = !self.statements.is_empty() || !matches!(self.commit, Commit::NotYet);
        handle.conn != INTERNAL && !self.shared.read_only && busy
    }
}

impl Txns {
    /// Number of statements that wait for older transactions, or for another turn.
    #[inline]
    pub(crate) fn waiting_count(&self) -> usize {
        self.admission.waiting.len() + self.events.borrow().yielded.len()
    }

    /// Mean conflict potential of the statements that have begun of late; `None`: none was looked
    /// at.
    pub(crate) fn mean_potential(&mut self, now: Time) -> Option<f64> {
        let reading = self.admission.potentials.read(now.0);
        reading.mean_ns.map(|ppm| ppm / 1e6)
    }

    /// A statement begins. Looks at the potential of one in [`SAMPLE_EVERY`].
    #[inline]
    pub(super) fn count_statement(&mut self, handle: TxnHandle) {
        let mut core = self.core.borrow_mut();
        core.counters.statements += 1;
        if core.counters.statements.is_multiple_of(SAMPLE_EVERY) {
            let now = core.now;
            drop(core);
            self.sample_potential(handle, now);
        }
    }

    #[cold]
    fn sample_potential(&mut self, handle: TxnHandle, now: Time) {
        if let Some((older, all)) = self.potential(handle) {
            self.admission.potentials.turn(now.0);
            self.admission.potentials.time(older * 1_000_000 / all);
        }
    }

    /// A statement begins that conflicts with nobody if it is `lockless`. Returns the gate at which
    /// it has to wait.
    #[inline]
    pub(super) fn gate(
        &mut self,
        handle: TxnHandle,
        statement: StatementNo,
        rule: message::Admission,
        lockless: bool,
    ) -> Option<Rc<Gate>> {
        let waits = rule.potential_max_percent < 100;
        if !waits && !self.admission.counts {
            return None;
        }
        self.start_work(handle);
        match waits && !lockless {
            true => self.wait_for_older(handle, statement, rule),
            false => None,
        }
    }

    #[cold]
    fn wait_for_older(
        &mut self,
        handle: TxnHandle,
        statement: StatementNo,
        rule: message::Admission,
    ) -> Option<Rc<Gate>> {
        let txn = self.by_handle.get(&handle)?;
        let (age, shared) = (txn.age(handle), &txn.shared);
        if !self.admission.counts {
            // Those that have begun before anybody wanted to know.
            let open = self.by_handle.iter();
            let busy = open.filter(|(handle, txn)| txn.is_at_work(**handle));
            self.admission.at_work = busy.map(|(handle, txn)| txn.age(*handle)).collect();
            self.admission.at_work.insert(age);
            self.admission.counts = true;
        }
        let percent = rule.potential_max_percent;
        let mut core = shared.core.borrow_mut();
        let awaited = || core.protocols.may_be_awaited(shared.protocol, shared.id);
        if shared.read_only || self.admission.is_within(age, percent) || awaited() {
            return None;
        }
        core.counters.admission_waits += 1;
        let gate = Rc::new(Gate {
            open: Cell::new(false),
            until: core.now.after(rule.wait_us),
        });
        let waiting = Waiting {
            statement,
            txn: shared.id,
            protocol: shared.protocol,
            potential_max_percent: percent,
            gate: gate.clone(),
        };
        self.admission.waiting.insert(age, waiting);
        Some(gate)
    }

    /// A transaction is at work from here on.
    #[inline]
    pub(super) fn start_work(&mut self, handle: TxnHandle) {
        if self.admission.counts
            && let Some(txn) = self.by_handle.get(&handle)
            && handle.conn != INTERNAL
            && !txn.shared.read_only
        {
            self.admission.at_work.insert(txn.age(handle));
        }
    }

    /// A transaction has ended, or its client has the answer to its last statement.
    #[inline]
    pub(super) fn stop_work(&mut self, handle: TxnHandle, priority_ts: Ts) {
        if self.admission.counts {
            let age = (priority_ts, handle);
            self.admission.waiting.remove(&age);
            self.admission.changed |= self.admission.at_work.remove(&age);
            // Nobody waits: the next one that may have to counts anew.
            self.admission.counts = !self.admission.at_work.is_empty();
        }
    }

    /// Lets statements run whose wait is over. Returns whether there were any.
    #[inline]
    pub(crate) fn admit_waiting(&mut self) -> bool {
        !self.admission.waiting.is_empty() && self.admit_some()
    }

    fn admit_some(&mut self) -> bool {
        let core = self.core.borrow();
        let seen = core.counters.lock_waits + core.counters.admission_timeouts;
        let admission = &mut self.admission;
        if !admission.changed && seen == admission.seen {
            return false;
        }
        admission.changed = false;
        admission.seen = seen;
        let mut known: Option<(u8, Option<Age>)> = None;
        let mut over: Vec<Age> = Vec::new();
        for (age, waiting) in &admission.waiting {
            let percent = waiting.potential_max_percent;
            let last = match known {
                Some((same, last)) if same == percent => last,
                Some(_) | None => admission.last_within(percent),
            };
            known = Some((percent, last));
            let awaited = || core.protocols.may_be_awaited(waiting.protocol, waiting.txn);
            if waiting.gate.open.get() || last.is_some_and(|last| *age <= last) || awaited() {
                over.push(*age);
            }
        }
        drop(core);
        for age in &over {
            let waiting = self.admission.waiting.remove(age).expect("just seen");
            waiting.gate.open.set(true);
            self.ready.push_back((age.1, waiting.statement));
        }
        !over.is_empty()
    }

    /// Conflict potential of a transaction at work now: N_O and N_A. `None`: so many are open that
    /// counting them would take long.
    fn potential(&self, handle: TxnHandle) -> Option<(u64, u64)> {
        if self.by_handle.len() > SAMPLED_OPEN_MAX {
            return None;
        }
        let own = self.by_handle.get(&handle)?.age(handle);
        let open = self.by_handle.iter();
        let busy = open.filter(|(other, txn)| txn.is_at_work(**other) || **other == handle);
        Some(busy.fold((0, 0), |(older, all), (other, txn)| {
            (older + u64::from(txn.age(*other) <= own), all + 1)
        }))
    }
}

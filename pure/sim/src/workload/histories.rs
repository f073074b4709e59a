//! The benchmark's history workloads on a simulated cluster, judged by the checker.
//!
//! Level, number of keys, length of transactions and pauses are drawn for each run; a run at READ
//! COMMITTED is judged by what that level promises, in real time. Clients move between nodes; a
//! client whose connection breaks becomes another process of the history.

use super::blame::{Blame, is_excusable, patiently};
use super::wire::SimLink;
use super::{Entry, Scale, Verdict, Workload};
use crate::executor::{SimCx, Task};
use base::Prng;
use check::{Demand, History, Judgement, Level};
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;
use workload::history::plan::Plan;
use workload::history::run::{Client, create, final_reads, final_shape};
use workload::history::{Kind, SETUP_PROCESS, Shape, empty, judge};
use workload::wire::{Failure, Isolation};

/// A history of less proves nothing. Far below what a run without faults gives, because most runs
/// are short of one thing or another.
const DEMAND: Demand = Demand {
    committed: 20,
    reads: 10,
    concurrent_conflicts: 5,
};

/// Transactions in which, as a rule, that much happens, and rounds of a client with the healed
/// cluster until there are so many.
const ENOUGH: u64 = 100;
const MORE_MAX: u32 = 150;

/// Longer than the clocks of nodes are apart before there are faults.
pub(super) const CLOCKS_APART_US: u64 = 1_000_000;

/// The entry of a kind of history in the list of workloads.
macro_rules! entries {
    ($($name:ident: $kind:expr, $about:literal;)*) => {$(
        pub(super) const $name: Entry = Entry {
            name: $kind.name(),
            about: $about,
            make: |prng, scale| Rc::new(Histories::draw($kind, prng, scale)),
        };
    )*};
}

entries! {
    LIST_APPEND: Kind::ListAppend, "appends to lists and reads them: every anomaly shows";
    REGISTER: Kind::Register, "writes rows and reads them";
    PHANTOM: Kind::Phantom, "reads ranges and inserts into them";
    BANK: Kind::Bank, "moves money between accounts; the total is constant";
    RING: Kind::Ring, "links the rows of a cycle anew; it stays one cycle";
    COUNTER: Kind::Counter, "adds to counters without reading them";
    HOT_COUNTER: Kind::HotCounter, "everybody adds to one counter";
    STOCK: Kind::Stock, "takes where enough is left: never too much, and no refusal without need";
    HOT_PAIR: Kind::HotPair, "moves money between one hot account and others, on several nodes";
}

/// What all clients of a run share.
pub(super) struct Histories {
    pub(super) shape: Shape,
    level: Level,
    pause_us: u64,
    next_txn: Cell<u64>,
    next_value: Cell<u64>,
    next_process: Cell<u32>,
    committed: Cell<u64>,
    history: RefCell<History>,
    /// Indices of the READ ONLY transactions in the history, which read one moment without locks.
    readers: RefCell<BTreeSet<u32>>,
    clocks_agree: bool,
    pub(super) blame: Blame,
}

/// What the client of an attempt may do next.
pub(super) enum Next {
    /// It has ended as it should.
    Another,
    /// It has not happened.
    Again,
    /// The connection is gone, or nobody knows what became of it: a process that is to have more
    /// transactions must be another one.
    NoMore,
}

impl Histories {
    pub(super) fn draw(kind: Kind, prng: &mut Prng, scale: Scale) -> Histories {
        let isolation = match prng.below(6) {
            0 => Isolation::ReadCommitted,
            1 => Isolation::RepeatableRead,
            _ => Isolation::Serializable,
        };
        let mut shape = Shape::new(kind, prng.next_u64(), isolation);
        if kind != Kind::HotCounter {
            shape.keys = kind.keys_min() + prng.below(u64::from(2 * kind.default_keys())) as u32;
        }
        shape.txn_len_max = 1 + prng.below(6) as u32;
        shape.txns_per_key = 20 << prng.below(4);
        // Some hundred transactions a second, however many clients: more seeds find more than more
        // transactions.
        let pause_us = (1 << prng.between(13, 17)) * u64::from(scale.clients.clamp(1, 16)) / 8;
        // Drawn only where clocks differ: recorded seeds stay the runs that they were.
        shape.has_read_only = scale.clocks_agree || prng.below(2) == 0;
        Histories {
            shape,
            level: match isolation {
                // No statement misses what was answered before it began (adr/0010).
                Isolation::ReadCommitted => Level::StrongReadCommitted,
                // Trellis gives SERIALIZABLE where REPEATABLE READ is asked for, and in real time
                // whatever the clocks say.
                Isolation::RepeatableRead | Isolation::Serializable => Level::StrictSerializable,
            },
            pause_us,
            next_txn: Cell::new(0),
            next_value: Cell::new(1),
            next_process: Cell::new(SETUP_PROCESS + 1),
            committed: Cell::new(0),
            history: RefCell::new(empty(&shape)),
            readers: RefCell::default(),
            clocks_agree: scale.clocks_agree,
            blame: Blame::default(),
        }
    }

    pub(super) fn process(&self) -> u32 {
        self.next_process.replace(self.next_process.get() + 1)
    }

    /// A connection with prepared statements to a node of the client's choice.
    pub(super) async fn open(
        &self,
        cx: &SimCx,
        node: u16,
        shape: &Shape,
    ) -> Option<Client<SimLink>> {
        let link = SimLink::connect(cx, node).await.ok()?;
        self.blame.prepared(Client::open(link, shape).await)
    }

    /// One attempt, which becomes a transaction of the history.
    pub(super) async fn attempt(
        &self,
        cx: &SimCx,
        client: &mut Client<SimLink>,
        process: u32,
        plan: &Plan,
    ) -> Next {
        let invoked = cx.now_ns();
        let mut next_value = || self.next_value.replace(self.next_value.get() + 1);
        let attempt = client.attempt(plan, &mut next_value).await;
        let txn = attempt.record(process, invoked, cx.now_ns());
        let index = self.history.borrow_mut().push(txn);
        if plan.is_read_only {
            self.readers.borrow_mut().insert(index as u32);
        }
        match attempt.result {
            Ok(_) => {
                self.committed.set(self.committed.get() + 1);
                Next::Another
            }
            Err(Failure::Wrong(text)) => {
                self.blame.accuse(format!("process {process}: {text}"));
                Next::NoMore
            }
            Err(Failure::Aborted(error)) => {
                if !is_excusable(&error.sqlstate) {
                    self.blame.accuse(format!("process {process}: {error}"));
                }
                Next::Again
            }
            Err(Failure::Conflict(_)) => Next::Again,
            Err(Failure::Lost(_) | Failure::Unknown(_)) => Next::NoMore,
        }
    }

    pub(super) async fn work(&self, cx: &SimCx) {
        let mut more = 0;
        while self.goes_on(cx, &mut more) {
            let node = cx.any_node();
            let Some(mut client) = self.open(cx, node, &self.shape).await else {
                cx.sleep(50_000).await;
                continue;
            };
            let process = self.process();
            while self.goes_on(cx, &mut more) && self.transact(cx, &mut client, process).await {
                cx.pause(self.pause_us).await;
            }
        }
    }

    /// Whether a client has more to do. Where faults let little happen, it goes on with the healed
    /// cluster until there is enough to be judged; `more` counts its rounds there.
    fn goes_on(&self, cx: &SimCx, more: &mut u32) -> bool {
        if !cx.stopping() {
            return true;
        }
        *more += 1;
        self.committed.get() < ENOUGH && *more <= MORE_MAX
    }

    /// The next transaction, mostly again and again until it commits, as applications do. Tells
    /// whether the process may have another one.
    async fn transact(&self, cx: &SimCx, client: &mut Client<SimLink>, process: u32) -> bool {
        let number = self.next_txn.replace(self.next_txn.get() + 1);
        let plan = Plan::draw(&self.shape, number);
        loop {
            match self.attempt(cx, client, process, &plan).await {
                Next::Another => return true,
                Next::Again if cx.stopping() || cx.rng().below(4) == 0 => return true,
                Next::Again => {}
                Next::NoMore => return false,
            }
        }
    }

    pub(super) async fn make_tables(&self, cx: &SimCx) -> Result<(), String> {
        patiently(cx, async |link| create(link, &self.shape).await).await?;
        // Until no clock is behind what has been filled in.
        cx.sleep(CLOCKS_APART_US).await;
        Ok(())
    }

    /// Reads everything on the healed cluster, from one node after the other.
    pub(super) async fn read_all(&self, cx: &SimCx) -> Result<(), String> {
        let shape = final_shape(&self.shape);
        for (at, plan) in final_reads(&self.shape, self.next_txn.get())
            .iter()
            .enumerate()
        {
            let node = (at % usize::from(cx.nodes())) as u16 + 1;
            let Some(mut client) = self.open(cx, node, &shape).await else {
                return Err(format!("node {node} does not answer after the faults"));
            };
            let process = self.process();
            let mut attempts = 0;
            loop {
                match self.attempt(cx, &mut client, process, plan).await {
                    Next::Another => break,
                    Next::Again if attempts < 100 => attempts += 1,
                    Next::Again | Next::NoMore => {
                        return Err(format!("node {node} does not let {:?} read", plan.steps));
                    }
                }
                cx.sleep(20_000).await;
            }
        }
        Ok(())
    }

    /// Judges what has been recorded; `read` is how the reading of everything ended. What the
    /// history shows tells more than that.
    pub(super) fn judge_after(&self, read: Result<(), String>) -> Verdict {
        match (self.judge(), read) {
            (verdict @ Verdict::Fail(_), _) | (verdict, Ok(())) => verdict,
            (_, Err(text)) => Verdict::Fail(text),
        }
    }

    /// Judges what has been recorded.
    fn judge(&self) -> Verdict {
        if let Some(text) = self.blame.take() {
            return Verdict::Fail(text);
        }
        let verdict = self.judge_as(&self.history.borrow());
        match verdict.judgement {
            Judgement::Pass => Verdict::Pass,
            Judgement::Fail if self.is_of_readers_alone() => Verdict::Inconclusive(
                "clocks are apart, and a READ ONLY transaction saw a commit without one that had \
                 been answered before it began (docs/adr/0015)"
                    .to_string(),
            ),
            Judgement::Fail => Verdict::Fail(format!("{:?}: {verdict}", self.shape)),
            Judgement::Inconclusive => Verdict::Inconclusive(verdict.to_string()),
        }
    }

    fn judge_as(&self, history: &History) -> check::Verdict {
        judge(&self.shape, history, self.level, &DEMAND)
    }

    /// Whether what is wrong with the history is only that, while clocks differ, READ ONLY
    /// transactions have seen commits in another order than that in which clients saw them end
    /// (docs/adr/0015). All others must be right without them, and each of them must see what was
    /// answered before it began, and nothing that began later.
    fn is_of_readers_alone(&self) -> bool {
        let (history, readers) = (self.history.borrow(), self.readers.borrow());
        if self.clocks_agree || readers.is_empty() {
            return false;
        }
        let is_reader = |index: &u32| readers.contains(index);
        let all = 0..history.txns.len() as u32;
        let mut others = history.clone();
        let txns = all.clone().zip(core::mem::take(&mut others.txns));
        let txns = txns.filter(|(index, _)| !is_reader(index));
        others.txns = txns.map(|(_, txn)| txn).collect();
        let mut ordered_by_readers = history.clone();
        ordered_by_readers.loose = all.filter(|index| !is_reader(index)).collect();
        [others, ordered_by_readers]
            .iter()
            .all(|history| self.judge_as(history).judgement != Judgement::Fail)
    }
}

impl Workload for Histories {
    fn setup(self: Rc<Self>, cx: SimCx) -> Task<Result<(), String>> {
        Box::pin(async move { self.make_tables(&cx).await })
    }

    fn client(self: Rc<Self>, cx: SimCx, _client: u32) -> Task {
        Box::pin(async move { self.work(&cx).await })
    }

    fn finish(self: Rc<Self>, cx: SimCx) -> Task<Verdict> {
        Box::pin(async move {
            let read = self.read_all(&cx).await;
            self.judge_after(read)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drawn_shapes_can_be_used_and_every_level_occurs() {
        let mut prng = Prng::new(1);
        let scale = Scale {
            nodes: 3,
            shards: 2,
            clients: 8,
            run_us: 1_000_000,
            clocks_agree: false,
        };
        let mut levels = BTreeSet::new();
        for kind in Kind::ALL {
            for _ in 0..200 {
                let drawn = Histories::draw(kind, &mut prng, scale);
                assert_eq!(drawn.shape.validate(), Ok(()), "{:?}", drawn.shape);
                levels.insert(drawn.shape.isolation);
            }
        }
        assert_eq!(levels.len(), Isolation::ALL.len());
    }

    #[test]
    fn only_faults_and_conflicts_are_excused() {
        assert!(is_excusable("40001") && is_excusable("57P01") && is_excusable("08006"));
        assert!(!is_excusable("42P01") && !is_excusable("XX000") && !is_excusable("22003"));
    }
}

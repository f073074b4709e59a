//! What reads of counters prove, although increments commute and leave no trace of their order.
//!
//! A read is the initial value plus the increments of a set of transactions, its own earlier ones
//! among them. So it must lie between the smallest and the largest sum of such a set, and differ
//! from the initial value by a multiple of the greatest common divisor. Where real time is kept,
//! what was acknowledged before the reader began is certainly in the set, and what began after it
//! had ended is not. A comparison with a bound says less: the largest such sum must reach the bound
//! if the counter was found at or above it, and the smallest must not if it was found below.
//!
//! If all increments of a counter have one sign (here: made positive), a state with a smaller value
//! is an older one. Then:
//!
//! * a read of 4 comes before a read of 7: something was added in between;
//! * an increment that is larger than all that was added when a reader looked came after it; one
//!   that is larger than all that was still missing came before;
//! * a transaction that reads 4 and adds 3 comes behind every other reader of 4 or less, and no
//!   reader sees 5 or 6.

use crate::found::{Found, Name};
use crate::graph::{Dependency, GraphBuilder};
use crate::history::Outcome;
use crate::ledger::{Access, Ledger};
use crate::level::{Basis, Kind};
use crate::registers::{around, chain};
use crate::story;
use crate::timed::{Add, Timed, sums_to};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// Adds what counters prove to the graph, and what they show directly to `found`.
pub(crate) fn judge(ledger: &Ledger<'_>, graph: &mut GraphBuilder, found: &mut Found) {
    let mut counters: BTreeMap<u32, Counter> = BTreeMap::new();
    for txn in 0..ledger.history.txns.len() as u32 {
        note_txn(ledger, txn, &mut counters, found);
    }
    for (key, counter) in &mut counters {
        let initial = ledger.history.initial_counters.get(&ledger.real_key(*key));
        Judge {
            ledger,
            graph,
            found,
            key: *key,
            initial: initial.map_or(0, |value| i128::from(*value)),
            counter,
        }
        .run();
    }
}

/// All that happened to one counter.
#[derive(Default)]
struct Counter {
    /// What each transaction that may have committed adds in all.
    adds: Vec<Add>,
    /// What committed transactions saw.
    reads: Vec<Seen>,
    /// With what committed transactions compared it.
    comparisons: Vec<Compared>,
    /// All increments have the sign of this; `None`: both signs occur.
    sign: Option<i128>,
    mixed: bool,
}

#[derive(Clone, Copy)]
struct Seen {
    txn: u32,
    /// Without what the transaction had added itself.
    others: i128,
    /// What the transaction adds in all.
    own: i128,
}

#[derive(Clone, Copy)]
struct Compared {
    txn: u32,
    /// The bound, without what the transaction had added itself.
    others: i128,
    /// On this side of it the counter was found.
    at_least: bool,
    /// What the transaction adds in all.
    own: i128,
}

impl Compared {
    /// Whether some value from `low` to `high` is on the side that was found.
    fn can_be(&self, low: i128, high: i128) -> bool {
        match self.at_least {
            true => self.others <= high,
            false => low < self.others,
        }
    }
}

/// What one transaction did with one counter.
struct Dealings {
    /// What it has added so far.
    own: i128,
    adds: bool,
    /// What others had added, by its first read.
    seen: Option<i128>,
    comparisons: Vec<Compared>,
    /// What others had added if that was one state: at least and at most.
    low: i128,
    high: i128,
}

impl Default for Dealings {
    fn default() -> Dealings {
        Dealings {
            own: 0,
            adds: false,
            seen: None,
            comparisons: Vec::new(),
            low: i128::MIN,
            high: i128::MAX,
        }
    }
}

impl Dealings {
    fn add(&mut self, delta: i128) {
        self.own += delta;
        self.adds = true;
    }

    /// Takes in a read. An error says why it cannot be of the state of the looks before.
    fn read(&mut self, value: i64) -> Result<(), &'static str> {
        let others = i128::from(value) - self.own;
        let why = match self.seen {
            Some(_) => "was read twice, with different results",
            None => "was compared and then read, with results that no state has",
        };
        self.seen.get_or_insert(others);
        self.narrow(others, others).ok_or(why)
    }

    /// The same of a comparison of transaction `txn`.
    fn compare(&mut self, txn: u32, bound: i64, at_least: bool) -> Result<(), &'static str> {
        let others = i128::from(bound) - self.own;
        self.comparisons.push(Compared {
            txn,
            others,
            at_least,
            own: 0,
        });
        let one_state = match at_least {
            true => self.narrow(others, i128::MAX),
            false => self.narrow(i128::MIN, others - 1),
        };
        one_state.ok_or("was compared with a result that no state has beside those before it")
    }

    /// Takes in what a look says of the state; `None`: the looks before say otherwise.
    fn narrow(&mut self, low: i128, high: i128) -> Option<()> {
        let (low, high) = (self.low.max(low), self.high.min(high));
        if low > high {
            return None;
        }
        (self.low, self.high) = (low, high);
        Some(())
    }
}

/// Takes down what one transaction did to counters.
fn note_txn(
    ledger: &Ledger<'_>,
    txn: u32,
    counters: &mut BTreeMap<u32, Counter>,
    found: &mut Found,
) {
    if ledger.outcome(txn) == Outcome::Aborted {
        return;
    }
    let mut dealings: BTreeMap<u32, Dealings> = BTreeMap::new();
    let is_committed = ledger.is_committed(txn);
    ledger.each_access(txn, |access| {
        let key = access.key();
        let one_state = match access {
            Access::Add { delta, .. } => {
                let delta = i128::from(delta);
                dealings.entry(key).or_default().add(delta);
                let counter = counters.entry(key).or_default();
                counter.mixed |= counter.sign.is_some_and(|sign| sign != delta.signum());
                counter.sign = Some(delta.signum());
                Ok(())
            }
            Access::ReadCounter { value, .. } if is_committed => {
                dealings.entry(key).or_default().read(value)
            }
            Access::Compare {
                bound, at_least, ..
            } if is_committed => {
                let dealing = dealings.entry(key).or_default();
                dealing.compare(txn, bound, at_least)
            }
            _ => return,
        };
        if let Err(why) = one_state {
            let name = Name::plain(Kind::GSingle);
            found.note(name, &[txn], || story::own_read(ledger, txn, key, why));
        }
    });
    for (key, dealing) in dealings {
        let counter = counters.entry(key).or_default();
        let own = dealing.own;
        if let Some(others) = dealing.seen {
            counter.reads.push(Seen { txn, others, own });
        }
        let comparisons = dealing.comparisons.into_iter();
        counter
            .comparisons
            .extend(comparisons.map(|compared| Compared { own, ..compared }));
        if dealing.adds {
            counter.adds.push(Add { txn, delta: own });
        }
    }
}

struct Judge<'a, 'h> {
    ledger: &'a Ledger<'h>,
    graph: &'a mut GraphBuilder,
    found: &'a mut Found,
    key: u32,
    initial: i128,
    counter: &'a mut Counter,
}

impl Judge<'_, '_> {
    fn run(mut self) {
        self.judge_sums();
        self.judge_sums_in_time();
        if self.counter.mixed {
            return;
        }
        // From here on the counter grows from 0.
        let sign = self.counter.sign.unwrap_or(1);
        for read in &mut self.counter.reads {
            read.others = (read.others - self.initial) * sign;
            read.own *= sign;
        }
        for add in &mut self.counter.adds {
            add.delta *= sign;
        }
        if self.counter.reads.iter().any(|read| read.others < 0) {
            // No order of states explains it, and it has been told as a wrong sum.
            return;
        }
        self.link_reads();
        self.link_later_adds();
        self.link_earlier_adds();
    }

    /// Each read must be a possible sum of increments, whenever they happened.
    fn judge_sums(&mut self) {
        let (mut low, mut high, mut divisor) = (0i128, 0i128, 0i128);
        for add in &self.counter.adds {
            low += add.delta.min(0);
            high += add.delta.max(0);
            divisor = common_divisor(divisor, add.delta);
        }
        for at in 0..self.counter.reads.len() {
            let read = self.counter.reads[at];
            let sum = read.others - self.initial;
            let possible = low - read.own.min(0) <= sum && sum <= high - read.own.max(0);
            let divides = match divisor {
                0 => sum == 0,
                divisor => sum % divisor == 0,
            };
            if !possible || !divides {
                self.note_wrong_sum(read.txn, Basis::Values, (low, high));
            }
        }
        for at in 0..self.counter.comparisons.len() {
            let compared = self.counter.comparisons[at];
            let bounds = (low - compared.own.min(0), high - compared.own.max(0));
            self.judge_comparison(&compared, Basis::Values, bounds);
        }
    }

    /// The same, with what real time says: who had ended before the reader began is in, who began
    /// after the reader had ended is out. What is left is often so little that every set can be
    /// tried.
    fn judge_sums_in_time(&mut self) {
        let timed = Timed::new(self.ledger, &self.counter.adds);
        for at in 0..self.counter.reads.len() {
            let read = self.counter.reads[at];
            let reader = &self.ledger.history.txns[read.txn as usize];
            let until = self.ledger.committed_by(read.txn).unwrap_or(u64::MAX);
            let sum = read.others - self.initial;
            let (low, high) = timed.bounds(reader.invoked, until, read.own);
            let explained = || {
                let open = timed.open(reader.invoked, until, read.txn)?;
                Some(sums_to(sum - timed.certain(reader.invoked), &open))
            };
            if sum < low || high < sum || explained() == Some(false) {
                self.note_wrong_sum(read.txn, Basis::RealTime, (low, high));
            }
        }
        for at in 0..self.counter.comparisons.len() {
            let compared = self.counter.comparisons[at];
            let asker = &self.ledger.history.txns[compared.txn as usize];
            let until = self.ledger.committed_by(compared.txn).unwrap_or(u64::MAX);
            let bounds = timed.bounds(asker.invoked, until, compared.own);
            self.judge_comparison(&compared, Basis::RealTime, bounds);
        }
    }

    /// `bounds`: what others may have added, at least and at most. Each of the two is the sum of a
    /// set of increments that may have been in, so nothing is lost by looking at them alone.
    fn judge_comparison(&mut self, compared: &Compared, basis: Basis, bounds: (i128, i128)) {
        let (low, high) = (self.initial + bounds.0, self.initial + bounds.1);
        if compared.can_be(low, high) {
            return;
        }
        let name = Name {
            basis,
            ..Name::plain(Kind::WrongComparison)
        };
        let (ledger, key) = (self.ledger, self.key);
        let (txn, found) = (compared.txn, (compared.others, compared.at_least));
        let tell = || story::wrong_comparison(ledger, txn, key, found, (low, high));
        self.found.note(name, &[txn], tell);
    }

    /// `bounds`: what others may have added, at least and at most.
    fn note_wrong_sum(&mut self, txn: u32, basis: Basis, (low, high): (i128, i128)) {
        let name = Name {
            basis,
            ..Name::plain(Kind::WrongSum)
        };
        let bounds = (self.initial + low, self.initial + high);
        let (ledger, key) = (self.ledger, self.key);
        let tell = || story::wrong_sum(ledger, txn, key, bounds);
        self.found.note(name, &[txn], tell);
    }

    /// A smaller value is an older state. One joint per value stands for "more than the value
    /// before had been added".
    fn link_reads(&mut self) {
        self.counter
            .reads
            .sort_by_key(|read| (read.others, read.txn));
        let reads = &self.counter.reads;
        let mut older: Option<&[Seen]> = None;
        let mut above: Option<u32> = None;
        let groups: Vec<&[Seen]> = reads.chunk_by(|a, b| a.others == b.others).collect();
        for (place, group) in groups.iter().enumerate() {
            if let Some(readers) = older {
                let joint = self.graph.joint();
                for read in readers {
                    self.graph.edge(read.txn, joint, Dependency::Rw, self.key);
                }
                for read in *group {
                    self.graph.edge(joint, read.txn, Dependency::Wr, self.key);
                }
                if let Some(before) = above {
                    self.graph.glue(before, joint);
                }
                above = Some(joint);
            }
            older = Some(group);
            let next = groups.get(place + 1).and_then(|group| group.first());
            link_updates(self.ledger, self.graph, self.found, self.key, group, next);
        }
    }

    /// Who adds more than had been added when a reader looked, came after the reader.
    fn link_later_adds(&mut self) {
        let adds = self.committed_adds();
        let txns: Vec<u32> = adds.iter().map(|add| add.txn).collect();
        let mut joints: Vec<u32> = Vec::new();
        for read in &self.counter.reads {
            let first = adds.partition_point(|add| add.delta <= read.others);
            if first == adds.len() {
                continue;
            }
            if joints.is_empty() {
                joints = chain(self.graph, &txns);
            }
            let own = place_of(&adds, read);
            let (direct, rest) = around(first, own);
            for txn in &txns[direct] {
                self.graph.edge(read.txn, *txn, Dependency::Rw, self.key);
            }
            if let Some(joint) = joints.get(rest) {
                self.graph.edge(read.txn, *joint, Dependency::Rw, self.key);
            }
        }
    }

    /// Who adds more than was still missing when a reader looked, came before the reader. Joints
    /// lead from the largest increments down to the reader.
    fn link_earlier_adds(&mut self) {
        let adds = self.committed_adds();
        let all: i128 = self.counter.adds.iter().map(|add| add.delta).sum();
        let mut joints: Vec<u32> = Vec::new();
        for read in &self.counter.reads {
            let missing = all - read.own - read.others;
            let first = adds.partition_point(|add| add.delta <= missing);
            if first == adds.len() || missing < 0 {
                continue;
            }
            if joints.is_empty() {
                joints = adds.iter().map(|_| self.graph.joint()).collect();
                for (place, add) in adds.iter().enumerate() {
                    let (joint, key) = (joints[place], self.key);
                    self.graph.edge(add.txn, joint, Dependency::Wr, key);
                    if let Some(larger) = joints.get(place + 1) {
                        self.graph.glue(*larger, joint);
                    }
                }
            }
            let own = place_of(&adds, read);
            let (direct, rest) = around(first, own);
            for add in &adds[direct] {
                self.graph.edge(add.txn, read.txn, Dependency::Wr, self.key);
            }
            if let Some(joint) = joints.get(rest) {
                self.graph.glue(*joint, read.txn);
            }
        }
    }

    /// Increments of committed transactions, smaller ones first.
    fn committed_adds(&self) -> Vec<Add> {
        let committed = |add: &&Add| self.ledger.is_committed(add.txn);
        let mut adds: Vec<Add> = self
            .counter
            .adds
            .iter()
            .filter(committed)
            .copied()
            .collect();
        adds.sort_by_key(|add| (add.delta, add.txn));
        adds
    }
}

/// Where the reader's own increment is among the sorted ones.
fn place_of(adds: &[Add], read: &Seen) -> Option<usize> {
    let place = adds.binary_search_by_key(&(read.own, read.txn), |add| (add.delta, add.txn));
    place.ok()
}

/// Transactions that saw one value and add to it: only one of them can be the next, it comes behind
/// the others who saw the value, and what is seen next includes what it added.
fn link_updates(
    ledger: &Ledger<'_>,
    graph: &mut GraphBuilder,
    found: &mut Found,
    key: u32,
    group: &[Seen],
    next: Option<&Seen>,
) {
    let mut updates = group.iter().filter(|read| read.own > 0);
    let Some(update) = updates.next() else {
        return;
    };
    for read in group {
        graph.edge(read.txn, update.txn, Dependency::Rw, key);
    }
    let name = Name::plain(Kind::G2Item);
    for other in updates {
        found.note(name, &[update.txn, other.txn], || {
            story::lost_update(ledger, update.txn, other.txn, key)
        });
    }
    if let Some(next) = next
        && next.others < update.others + update.own
    {
        found.note(name, &[update.txn, next.txn], || {
            story::between(ledger, update.txn, next.txn, key)
        });
    }
}

/// The greatest number that divides both; 0 divides nothing but 0.
fn common_divisor(a: i128, b: i128) -> i128 {
    let (mut a, mut b) = (a.abs(), b.abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

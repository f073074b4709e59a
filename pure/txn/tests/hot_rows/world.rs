//! Clients, links and the commit; what a discipline must do for them.

use base::Prng;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// A link one way, and a flush, in microseconds.
const LINK_US: u64 = 1_000;
const FLUSH_US: u64 = 1_000;
/// Transactions begin until then, in microseconds.
const RUN_US: u64 = 2_000_000;
/// Nodes. Hot rows lie on the first half of them, others on the second.
pub(super) const NODES: u64 = 8;
/// The first row that one client has for itself.
const COLD: u64 = 1_000;
/// As a session pauses before it repeats: the first, and the longest.
const PAUSE_US: u64 = 200;
const PAUSE_US_MAX: u64 = 20_000;

/// Where a row lies.
pub(super) fn node(row: u64) -> u64 {
    row % (NODES / 2) + if row < COLD { 0 } else { NODES / 2 }
}

/// Which of its two rows are hot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Order {
    /// A hot row, then a row of its own.
    HotFirst,
    /// The other way round.
    HotSecond,
    /// Two hot rows in any order.
    TwoHot,
    /// Two hot rows in ascending order.
    TwoHotSorted,
}

impl Order {
    pub(super) const ALL: [Order; 4] = [
        Order::HotFirst,
        Order::HotSecond,
        Order::TwoHot,
        Order::TwoHotSorted,
    ];

    /// Hot rows of a transaction.
    pub(super) fn hot_rows(self) -> u64 {
        match self {
            Order::HotFirst | Order::HotSecond => 1,
            Order::TwoHot | Order::TwoHotSorted => 2,
        }
    }
}

/// What is asked of a discipline.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load {
    pub(super) order: Order,
    pub(super) hot: u64,
    pub(super) clients: u64,
}

/// An attempt at a transaction.
#[derive(Clone, Debug)]
pub(super) struct Attempt {
    /// Never used twice; a later attempt has a greater one.
    pub(super) id: u64,
    pub(super) client: u64,
    /// The id of the first attempt: its age.
    pub(super) first: u64,
    /// Attempts of the transaction that have died.
    pub(super) deaths: u32,
    pub(super) rows: [u64; 2],
    /// Number of rows that it has.
    pub(super) has: usize,
    began_us: u64,
    /// What it has read: the versions of its rows.
    read: [u64; 2],
}

/// The answer to a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Answer {
    Granted,
    Waits,
    Dies,
}

/// A timestamp; then, where there are several of one height, age and id.
pub(super) type Stamp = (u64, u64, u64);

/// A way to decide who has a row.
pub(super) trait Discipline {
    /// The attempt wants its next row. Others may have died or been granted by that: they are in
    /// `told`.
    fn ask(&mut self, attempt: &Attempt, told: &mut Vec<(u64, Answer)>) -> Answer;

    /// The attempt is over on this node.
    fn release(&mut self, attempt: &Attempt, node: u64, told: &mut Vec<(u64, Answer)>);

    /// Whether an attempt begins with the row of which the former one has died, and waits there.
    fn begins_at_conflict(&self) -> bool {
        false
    }

    /// The place of a commit in the order of timestamps, if there is one.
    fn stamp(&self, attempt: &Attempt) -> Option<Stamp>;
}

/// What came out.
pub(super) struct Outcome {
    pub(super) per_s: f64,
    /// For 100 commits.
    pub(super) deaths: f64,
    /// From the begin of the first attempt to the commit.
    pub(super) longest_ms: f64,
    /// Transactions that never ended, although no others came.
    pub(super) unfinished: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Begin(u64),
    /// A request is at its node.
    Ask(u64),
    Answered(u64),
    Died(u64),
    /// All nodes have voted.
    Voted(u64),
    /// The end is known at a node.
    Over(u64, u64),
    /// The client tries again.
    Again(u64),
}

struct World<'a> {
    load: Load,
    discipline: &'a mut dyn Discipline,
    now: u64,
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    sent: u64,
    attempts: BTreeMap<u64, Attempt>,
    ids: u64,
    random: Prng,
    /// By row: its version, and the stamp of the last writer.
    rows: BTreeMap<u64, (u64, Option<Stamp>)>,
    commits: u64,
    deaths: u64,
    longest_us: u64,
    open: usize,
}

/// Runs a load until all clients are done.
pub(super) fn run(load: Load, discipline: &mut dyn Discipline) -> Outcome {
    let mut world = World {
        load,
        discipline,
        now: 0,
        events: BinaryHeap::new(),
        sent: 0,
        attempts: BTreeMap::new(),
        ids: 0,
        random: Prng::new(1),
        rows: BTreeMap::new(),
        commits: 0,
        deaths: 0,
        longest_us: 0,
        open: 0,
    };
    for client in 0..load.clients {
        let after = world.random.below(LINK_US);
        world.send(after, Event::Begin(client));
    }
    // A discipline that never lets a transaction through would go on for ever.
    while let Some(Reverse((at, _, event))) = world.events.pop()
        && at < 20 * RUN_US
    {
        world.now = at;
        world.on(event);
    }
    Outcome {
        per_s: world.commits as f64 * 1e6 / RUN_US as f64,
        deaths: 100.0 * world.deaths as f64 / world.commits.max(1) as f64,
        longest_ms: world.longest_us as f64 / 1e3,
        unfinished: world.open,
    }
}

impl World<'_> {
    fn send(&mut self, after: u64, event: Event) {
        self.sent += 1;
        self.events
            .push(Reverse((self.now + after, self.sent, event)));
    }

    fn draw(&mut self, client: u64) -> [u64; 2] {
        let cold = COLD + client;
        let one = self.random.below(self.load.hot);
        match self.load.order {
            Order::HotFirst => [one, cold],
            Order::HotSecond => [cold, one],
            Order::TwoHot | Order::TwoHotSorted => {
                let other = (one + 1 + self.random.below(self.load.hot - 1)) % self.load.hot;
                match self.load.order {
                    Order::TwoHotSorted => [one.min(other), one.max(other)],
                    _ => [one, other],
                }
            }
        }
    }

    fn on(&mut self, event: Event) {
        match event {
            Event::Begin(client) if self.now < RUN_US => {
                self.ids += 1;
                let (id, rows) = (self.ids, self.draw(client));
                self.open += 1;
                self.begin(Attempt {
                    id,
                    client,
                    first: id,
                    deaths: 0,
                    rows,
                    has: 0,
                    began_us: self.now,
                    read: [0; 2],
                });
            }
            Event::Begin(_) => {}
            Event::Again(id) => {
                let died = self.attempts.remove(&id).expect("it was kept for this");
                self.ids += 1;
                let (id, deaths) = (self.ids, died.deaths + 1);
                let mut rows = died.rows;
                if self.discipline.begins_at_conflict() {
                    rows.swap(0, died.has);
                }
                self.begin(Attempt {
                    id,
                    deaths,
                    has: 0,
                    rows,
                    ..died
                });
            }
            Event::Ask(id) => self.ask(id),
            Event::Answered(id) => {
                let attempt = self.attempts.get_mut(&id).expect("it is open");
                attempt.has += 1;
                match attempt.has {
                    1 => self.send(LINK_US, Event::Ask(id)),
                    _ => self.send(2 * LINK_US + FLUSH_US, Event::Voted(id)),
                }
            }
            Event::Died(id) => {
                self.deaths += 1;
                self.end(id);
                let pause = PAUSE_US << self.attempts[&id].deaths.min(10);
                let pause = pause.min(PAUSE_US_MAX);
                let pause = pause + self.random.below(pause);
                self.send(LINK_US + pause, Event::Again(id));
            }
            Event::Voted(id) => self.commit(id),
            Event::Over(id, node) => {
                let mut told = Vec::new();
                let attempt = self.attempts[&id].clone();
                self.discipline.release(&attempt, node, &mut told);
                self.tell(told);
            }
        }
    }

    fn begin(&mut self, attempt: Attempt) {
        self.send(LINK_US, Event::Ask(attempt.id));
        self.attempts.insert(attempt.id, attempt);
    }

    fn ask(&mut self, id: u64) {
        let mut told = Vec::new();
        let answer = self.discipline.ask(&self.attempts[&id], &mut told);
        told.push((id, answer));
        self.tell(told);
    }

    fn tell(&mut self, told: Vec<(u64, Answer)>) {
        for (id, answer) in told {
            match answer {
                Answer::Waits => {}
                Answer::Dies => self.send(LINK_US, Event::Died(id)),
                Answer::Granted => {
                    let attempt = self.attempts.get_mut(&id).expect("it is open");
                    let row = attempt.rows[attempt.has];
                    attempt.read[attempt.has] = self.rows.get(&row).map_or(0, |row| row.0);
                    self.send(LINK_US, Event::Answered(id));
                }
            }
        }
    }

    /// Tells the nodes of both rows that it is over.
    fn end(&mut self, id: u64) {
        let nodes = self.attempts[&id].rows.map(node);
        self.send(LINK_US, Event::Over(id, nodes[0]));
        if nodes[1] != nodes[0] {
            self.send(LINK_US, Event::Over(id, nodes[1]));
        }
    }

    /// What was read is still there, and each row has its writers in the order of the commits and
    /// of their stamps: so both are orders in which all could have run alone.
    fn commit(&mut self, id: u64) {
        let attempt = self.attempts[&id].clone();
        let stamp = self.discipline.stamp(&attempt);
        for (row, read) in attempt.rows.into_iter().zip(attempt.read) {
            let (version, last) = self.rows.entry(row).or_default();
            assert_eq!(*version, read, "an update of row {row} is lost");
            assert!(
                stamp.is_none() || *last < stamp,
                "{last:?} before {stamp:?}"
            );
            (*version, *last) = (*version + 1, stamp);
        }
        self.commits += u64::from(self.now < RUN_US);
        self.longest_us = self.longest_us.max(self.now - attempt.began_us);
        self.open -= 1;
        self.end(id);
        let pause = self.random.below(LINK_US);
        self.send(pause, Event::Begin(attempt.client));
    }
}

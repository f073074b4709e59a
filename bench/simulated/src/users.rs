//! Users of one workload: the clients of a run.

use crate::coin;
use crate::reach::{SimPace, SimReach, connect, refused};
use base::{Planted, Prng, is_planted};
use entity::kv::{Layer, Settings};
use entity::memory::{self, Fault, Memory};
use entity::sql::{Dialect, create_tables, drop_tables};
use entity::{Client, Delayed, Policy, Schema};
use sessions::access::Sql;
use sessions::interaction::{Changes, FAILED, Failure, Session};
use sessions::run::{Part, Workload};
use sessions::table::{Next, Table};
use sim::workload::Scale;
use sim::{SimCx, SimLink, Task, Verdict, is_excusable, say_patiently};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use stores::tables::SqlStore;
use workload::wire::{Isolation, ParamType};

/// Longer than the clocks of nodes are apart before there are faults.
const CLOCKS_APART_US: u64 = 1_000_000;
/// Attempts at loading and at judging.
const ATTEMPTS_MAX: u32 = 60;
/// Interactions that must be answered for a run to prove something, and those in which, as a rule,
/// that much happens. Clients go on with the healed cluster until there are so many.
const ANSWERED_MIN: u64 = 20;
const ENOUGH: u64 = 60;
/// Interactions that begin after the cluster was healed.
const MORE_MAX: u64 = 400;
/// Interactions of a session that does not end by itself.
const STEPS_MAX: u32 = 30;

/// Data access of the entity half, in tables of the cluster.
type Entities = Client<SqlStore<SimReach>, SimPace>;
/// The same in a store in memory, each of whose calls takes its time.
type InMemory = Client<Delayed<Layer<memory::Client<Rc<RefCell<Memory>>>>, SimPace>, SimPace>;
/// The SQL half's.
type Statements = Sql<SimLink, SimPace>;

/// What the users of a run have their data in, and by what they reach it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ground {
    Tables,
    Statements,
    /// No cluster is asked: this is where the planted bugs of stores are.
    Memory,
}

impl Ground {
    fn draw(prng: &mut Prng) -> Ground {
        let has_bug = Planted::ALL
            .iter()
            .any(|bug| bug.is_of_stores() && is_planted(*bug));
        match prng.below(5) {
            _ if has_bug => Ground::Memory,
            0 => Ground::Memory,
            1 | 2 => Ground::Statements,
            _ => Ground::Tables,
        }
    }
}

/// A store in memory, some of whose commits have no answer, with the bug that is planted.
fn store(prng: &mut Prng) -> (Memory, Settings) {
    let memory = if is_planted(Planted::StoreLostUpdate) {
        Memory::with_fault(Fault::LostUpdate)
    } else if is_planted(Planted::StoreTornGroup) {
        Memory::with_fault(Fault::TornGroup)
    } else {
        Memory::new()
    };
    let shows_dangling = is_planted(Planted::StoreDanglingEntry);
    let settings = Settings {
        // Entries are written apart from their entity.
        fold: coin(prng) && !shows_dangling,
        shows_dangling,
    };
    (memory.losing(prng.between(10, 40) as u64), settings)
}

/// What a workload needs of a database.
pub(crate) struct Of {
    pub(crate) schema: Schema,
    pub(crate) statements: Vec<(String, Vec<ParamType>)>,
}

/// All users of a run.
pub(crate) struct Users<W> {
    work: W,
    schema: Arc<Schema>,
    statements: Vec<(String, Vec<ParamType>)>,
    table: Table,
    ground: Ground,
    /// Whether reads of tables lock.
    locks: bool,
    memory: Rc<RefCell<Memory>>,
    settings: Settings,
    /// How long each call of the store in memory takes.
    call_us: u64,
    seed: u64,
    pause_us: u64,
    /// Numbers of clients of entities, and of sessions.
    clients: Cell<u64>,
    sessions: Cell<u64>,
    answered: Cell<u64>,
    more: Cell<u64>,
    changes: RefCell<Changes>,
    /// The first thing that no fault explains.
    blame: RefCell<Option<String>>,
}

fn next(count: &Cell<u64>) -> u64 {
    count.set(count.get() + 1);
    count.get()
}

/// A workload on each ground.
pub(crate) trait OfUsers:
    Workload<Entities> + Workload<InMemory> + Workload<Statements>
{
}

impl<W: Workload<Entities> + Workload<InMemory> + Workload<Statements>> OfUsers for W {}

impl<W: OfUsers> Users<W> {
    /// With the workload's own transition table.
    pub(crate) fn usual(prng: &mut Prng, scale: Scale, work: W, of: Of) -> Users<W> {
        let table = Workload::<Entities>::default_table(&work);
        Users::new(prng, scale, work, (of, table))
    }

    /// With all interactions, each as often.
    pub(crate) fn mixed(prng: &mut Prng, scale: Scale, work: W, of: Of) -> Users<W> {
        let names = Workload::<Entities>::interactions(&work);
        let share = 1.0 / names.len() as f64;
        let parts = names.iter().enumerate();
        let parts: Vec<_> = parts.map(|(at, (name, _))| (at, *name, share)).collect();
        Users::new(prng, scale, work, (of, Table::mix(&parts)))
    }

    fn new(prng: &mut Prng, scale: Scale, work: W, (of, table): (Of, Table)) -> Users<W> {
        let (memory, settings) = store(prng);
        Users {
            work,
            schema: Arc::new(of.schema),
            statements: of.statements,
            table,
            ground: Ground::draw(prng),
            locks: prng.below(4) == 0,
            memory: Rc::new(RefCell::new(memory)),
            settings,
            call_us: prng.between(500, 5_000) as u64,
            seed: prng.next_u64(),
            pause_us: (1 << prng.between(13, 16)) * u64::from(scale.clients.clamp(1, 16)) / 8,
            clients: Cell::new(0),
            sessions: Cell::new(0),
            answered: Cell::new(0),
            more: Cell::new(0),
            changes: RefCell::default(),
            blame: RefCell::default(),
        }
    }

    /// A client of entities. Each has a number that no other one ever has.
    async fn entities(&self, cx: &SimCx, locks: bool) -> Result<Entities, entity::Failure> {
        let db = SqlStore::open(SimReach(cx.clone()), self.schema.clone(), locks).await?;
        let number = next(&self.clients);
        let pace = SimPace(cx.clone());
        Ok(Client::new(db, pace, policy(), number, self.seed ^ number))
    }

    /// A client of the store in memory.
    fn in_memory(&self, cx: &SimCx) -> InMemory {
        let layer = Layer::new(memory::Client::new(self.memory.clone()), self.settings);
        let db = Delayed::new(layer, SimPace(cx.clone()), self.call_us);
        let (number, pace) = (next(&self.clients), SimPace(cx.clone()));
        Client::new(db, pace, policy(), number, self.seed ^ number)
    }

    async fn statements(&self, cx: &SimCx) -> Result<Statements, Failure> {
        let link = connect(cx).await.map_err(|error| refused(&error))?;
        let how = (Dialect::Postgres, Isolation::Serializable);
        let seed = self.seed ^ next(&self.clients);
        let retry = (SimPace(cx.clone()), policy(), seed);
        let opened = Sql::open(link, how, &self.statements, retry).await;
        opened.map_err(|error| Failure::Lost(error.to_string()))
    }

    async fn load(&self, cx: &SimCx) -> Result<(), String> {
        if self.ground == Ground::Memory {
            let mut access = self.in_memory(cx);
            let loaded = self.work.load(Part::WHOLE, &mut access).await;
            return loaded.map_err(|failure| format!("loading: {failure}"));
        }
        let mut attempts = 0;
        loop {
            let mut texts = drop_tables(&self.schema, Dialect::Postgres);
            texts.extend(create_tables(&self.schema, Dialect::Postgres));
            say_patiently(cx, &texts).await?;
            let failure = match self.entities(cx, false).await {
                Err(failure) => Failure::from(failure),
                Ok(mut access) => match self.work.load(Part::WHOLE, &mut access).await {
                    Ok(()) => break,
                    Err(failure) => failure,
                },
            };
            attempts += 1;
            if attempts == ATTEMPTS_MAX {
                return Err(format!("loading: {failure}"));
            }
            cx.sleep(100_000).await;
        }
        // Until no clock is behind what has been loaded.
        cx.sleep(CLOCKS_APART_US).await;
        Ok(())
    }

    /// Whether another interaction may begin.
    fn goes_on(&self, cx: &SimCx) -> bool {
        !cx.stopping() || self.answered.get() < ENOUGH && next(&self.more) <= MORE_MAX
    }

    /// Accuses of what neither faults nor conflicts explain.
    fn excuse(&self, failure: &Failure) {
        let is_excused = match failure {
            Failure::Conflict(_) | Failure::Lost(_) | Failure::Unknown(_) => true,
            Failure::Refused(text) => {
                let state = text.rsplit_once("SQLSTATE ").map(|(_, state)| state);
                state.is_some_and(|state| is_excusable(state.trim_end_matches(')')))
            }
            Failure::Wrong(_) => false,
        };
        if !is_excused {
            let mut blame = self.blame.borrow_mut();
            blame.get_or_insert_with(|| failure.to_string());
        }
    }

    async fn work(&self, cx: &SimCx, place: u64) {
        while self.goes_on(cx) {
            let failed = match self.ground {
                Ground::Tables => {
                    let opened = self.entities(cx, self.locks).await;
                    self.lives(cx, opened.map_err(Failure::from), place).await
                }
                Ground::Statements => {
                    let opened = self.statements(cx).await;
                    self.lives(cx, opened, place).await
                }
                Ground::Memory => self.lives(cx, Ok(self.in_memory(cx)), place).await,
            };
            if let Err(failure) = failed {
                self.excuse(&failure);
                cx.sleep(50_000).await;
            }
        }
    }

    /// The lives of sessions over one connection, for as long as it can be used.
    async fn lives<D>(
        &self,
        cx: &SimCx,
        opened: Result<D, Failure>,
        place: u64,
    ) -> Result<(), Failure>
    where
        W: Workload<D>,
    {
        let mut access = opened?;
        while self.goes_on(cx) && self.live(cx, &mut access, place).await {}
        Ok(())
    }

    /// The life of one session. Whether the connection can be used further.
    async fn live<D>(&self, cx: &SimCx, access: &mut D, place: u64) -> bool
    where
        W: Workload<D>,
    {
        let mut session = Session::new(self.seed, next(&self.sessions), place);
        let mut to = self.table.begin(&mut session.walk);
        let now_ns = || cx.now_ns();
        for _ in 0..STEPS_MAX {
            let Next::State(state) = to else { break };
            let mut result = "";
            if let Some(interaction) = self.table.states()[state].interaction {
                if !self.goes_on(cx) {
                    break;
                }
                let mut changes = Changes::default();
                let work = &self.work;
                let performed =
                    work.perform(interaction, &mut session, access, &mut changes, &now_ns);
                let ended = performed.await.ended;
                self.changes.borrow_mut().merge(&changes);
                result = match ended {
                    Ok(result) => {
                        next(&self.answered);
                        result
                    }
                    Err(failure) => {
                        self.excuse(&failure);
                        if failure.is_lost() {
                            return false;
                        }
                        FAILED
                    }
                };
                cx.pause(self.pause_us).await;
            }
            to = self.table.follow(state, result, &mut session.walk);
        }
        true
    }

    /// What the workload's check finds.
    async fn judge(&self, cx: &SimCx) -> Result<Vec<String>, Failure> {
        let changes = self.changes.borrow().clone();
        if self.ground == Ground::Memory {
            let mut access = self.in_memory(cx);
            return self.work.check(Part::WHOLE, &mut access, &changes).await;
        }
        let mut access = self.entities(cx, false).await?;
        self.work.check(Part::WHOLE, &mut access, &changes).await
    }
}

/// When a transaction is given up: soon, so that clients end soon.
fn policy() -> Policy {
    Policy {
        attempts: 20,
        total_us: 5_000_000,
        ..Policy::default()
    }
}

impl<W: OfUsers + 'static> sim::Workload for Users<W> {
    fn setup(self: Rc<Self>, cx: SimCx) -> Task<Result<(), String>> {
        Box::pin(async move { self.load(&cx).await })
    }

    fn client(self: Rc<Self>, cx: SimCx, client: u32) -> Task {
        Box::pin(async move { self.work(&cx, u64::from(client)).await })
    }

    fn finish(self: Rc<Self>, cx: SimCx) -> Task<Verdict> {
        Box::pin(async move {
            if let Some(text) = self.blame.take() {
                return Verdict::Fail(text);
            }
            // What the faults have left undecided may be in the way for a moment.
            let mut attempts = 0;
            let findings = loop {
                match self.judge(&cx).await {
                    Ok(findings) => break findings,
                    Err(failure) if attempts == ATTEMPTS_MAX => {
                        return Verdict::Fail(format!("judging: {failure}"));
                    }
                    Err(_) => attempts += 1,
                }
                cx.sleep(100_000).await;
            };
            let answered = self.answered.get();
            match findings.into_iter().next() {
                Some(finding) => Verdict::Fail(finding),
                None if answered < ANSWERED_MIN => {
                    Verdict::Inconclusive(format!("{answered} interactions were answered"))
                }
                None => Verdict::Pass,
            }
        })
    }
}

//! Loading, and the clients: the plan of `workload::spread`, with warehouses dealt to shards.

use super::{Mix, ScaleOptions, System};
use crate::client::SimConn;
use crate::executor::SimCx;
use crate::workload::wire::{LinkError, SimLink};
use base::Datum;
use base::Prng;
use base::key::{encode_datum, slot_of};
use catalog::Placement;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use workload::spread::{Job, Plan, Spread};
use workload::tpcc::deck::think_us;
use workload::tpcc::random::Constants;
use workload::tpcc::rows::{Chunk, Content};
use workload::tpcc::schema::Table;
use workload::tpcc::{Kind, Scale, Skew};
use workload::wire::{self, Done, Ending, Failure, Session};

/// The database that is measured.
const DATABASE: &str = "scale";
/// First and longest pause between attempts, microseconds, as in the benchmark's driver.
const BACKOFF_US: u64 = 200;
const BACKOFF_US_MAX: u64 = 10_000;
/// Mean time between two transactions of a client with keying and think times, microseconds
/// (clause 4.2.2: 21 s with the shares of the deck).
const CYCLE_US: u64 = 21_000_000;

/// What the clients counted.
#[derive(Default)]
pub(super) struct Tally {
    pub(super) committed: [u64; 5],
    pub(super) rolled_back: u64,
    pub(super) retries: u64,
    /// By kind, as [`Tally::committed`].
    pub(super) latencies_ns: [Vec<u64>; 5],
    /// Transactions by the attempts that they took.
    pub(super) tries: BTreeMap<u64, u64>,
    /// Attempts that the server ended, by what it said.
    pub(super) failures: BTreeMap<String, u64>,
}

/// All clients of a run.
pub(super) struct Clients {
    system: System,
    settings: Vec<(String, String)>,
    paced: bool,
    plan: Plan,
    content: Content,
    started_ns: Cell<Option<u64>>,
    prepared: Cell<u32>,
    tally: RefCell<Tally>,
    wrong: RefCell<Option<String>>,
}

/// The ids of warehouses by node, so that every shard has its share: ids are placed by their hash,
/// so those that would be too many for their shard are left out.
pub fn homes(nodes: u16, shards: u16, warehouses_per_node: u32) -> Vec<Vec<u32>> {
    let placement = Placement::new(nodes, shards);
    let count = usize::from(shards);
    let mut room: Vec<Vec<u32>> = Vec::new();
    let each = warehouses_per_node as usize;
    for _ in 0..nodes {
        let share = |shard| (each / count + usize::from(shard < each % count)) as u32;
        room.push((0..count).map(share).collect());
    }
    let mut homes = vec![Vec::new(); usize::from(nodes)];
    let mut left = each * usize::from(nodes);
    let mut id = 0;
    while left > 0 {
        id += 1;
        let mut bytes = Vec::new();
        encode_datum(&mut bytes, &Datum::Int(i64::from(id)), false);
        let shard = placement.home(slot_of(&bytes));
        let node = usize::from(shard.node().0) - 1;
        let room = &mut room[node][usize::from(shard.index())];
        if *room > 0 {
            *room -= 1;
            left -= 1;
            homes[node].push(id);
        }
    }
    homes
}

impl Clients {
    pub(super) fn new(options: &ScaleOptions) -> Clients {
        let constants = Constants::for_load(options.seed);
        let scale = Scale {
            warehouses: 1,
            items: options.items,
            customers: options.customers,
            orders: options.customers,
            skew: Skew::NONE,
        };
        let homes = homes(options.nodes, options.shards, options.warehouses_per_node);
        Clients {
            system: options.system,
            settings: options.settings.clone(),
            paced: options.paced,
            plan: Plan {
                mix: options.mix,
                spread: Spread {
                    homes,
                    ..options.spread.clone()
                },
                scale,
                constants: Constants::for_run(options.seed, constants.c_last),
                seed: options.seed,
            },
            content: Content {
                scale,
                seed: options.seed,
                constants,
                now_us: 1_600_000_000_000_000,
            },
            started_ns: Cell::new(None),
            prepared: Cell::new(0),
            tally: RefCell::default(),
            wrong: RefCell::default(),
        }
    }

    /// Clients that wait for the start.
    pub(super) fn prepared(&self) -> u32 {
        self.prepared.get()
    }

    pub(super) fn failed(&self) -> bool {
        self.wrong.borrow().is_some()
    }

    /// Lets all begin. `now_ns` is where the plan's time begins.
    pub(super) fn start(&self, now_ns: u64) {
        self.started_ns.set(Some(now_ns));
    }

    pub(super) fn wrong(&self) -> Option<String> {
        self.wrong.take()
    }

    /// What was counted since the last time.
    pub(super) fn take(&self) -> Tally {
        self.tally.take()
    }

    /// Makes the database and its tables, and fills them.
    pub(super) async fn load(&self, cx: &SimCx) -> Result<(), String> {
        let text = |error: LinkError| error.to_string();
        let plain = cx.connect(1).await.map_err(|error| error.to_string())?;
        let mut plain = SimLink::over(plain, cx);
        let create = format!(
            "CREATE DATABASE {DATABASE} WITH ({})",
            self.system.options()
        );
        wire::command(&mut plain, &create).await.map_err(text)?;
        // Rows are written at their home: a protocol that moves rows to who writes them has none
        // to bring back.
        let mut links = Vec::new();
        for node in 1..=self.plan.spread.homes.len() {
            links.push(SimLink::over(connect(cx, node as u16).await?, cx));
        }
        for statement in self.plan.tables(true) {
            let link = &mut links[0];
            wire::command(link, &statement).await.map_err(text)?;
        }
        let mut bytes = Vec::new();
        match self.plan.mix {
            Mix::Counter { .. } | Mix::HotCold => {}
            Mix::Ycsb { .. } | Mix::Record { .. } => {
                let table = self.plan.part_table().expect("these rows have a table");
                for (link, parts) in links.iter_mut().zip(&self.plan.spread.homes) {
                    for part in parts {
                        self.plan.part_rows(*part, &mut bytes);
                        copy(link, table, &mut bytes).await?;
                    }
                }
            }
            Mix::TpccPair | Mix::TpccFull | Mix::StockLevels => {
                let chunks = Chunk::all(&self.content.scale).into_iter();
                for chunk in chunks.filter(|chunk| self.is_read(chunk.table)) {
                    self.load_chunk(&mut links, chunk, &mut bytes).await?;
                }
            }
        }
        let queries = self.plan.warm_queries();
        for _ in 0..self.plan.warm_rounds() {
            for link in &mut links {
                for query in &queries {
                    wire::command(link, query).await.map_err(text)?;
                }
            }
        }
        Ok(())
    }

    /// Whether the mix ever looks at rows that were there before: the pair only adds orders and
    /// payments.
    fn is_read(&self, table: Table) -> bool {
        match table {
            Table::Orders | Table::NewOrder | Table::OrderLine | Table::History => {
                matches!(self.plan.mix, Mix::TpccFull | Mix::StockLevels)
            }
            Table::Warehouse | Table::District | Table::Customer | Table::Item | Table::Stock => {
                true
            }
        }
    }

    /// Loads a chunk of the first warehouse for all of them.
    async fn load_chunk(
        &self,
        links: &mut [SimLink],
        chunk: Chunk,
        bytes: &mut Vec<u8>,
    ) -> Result<(), String> {
        let name = chunk.table.name();
        if chunk.table == Table::Item {
            chunk.write(&self.content, bytes);
            return copy(&mut links[0], name, bytes).await;
        }
        for (link, warehouses) in links.iter_mut().zip(&self.plan.spread.homes) {
            for warehouse in warehouses {
                let warehouse = *warehouse;
                let chunk = Chunk { warehouse, ..chunk };
                chunk.write(&self.content, bytes);
                copy(link, name, bytes).await?;
            }
        }
        Ok(())
    }

    /// One client, until the run ends.
    pub(super) async fn work(&self, cx: &SimCx, number: u32) {
        if let Err(text) = self.try_work(cx, number).await {
            self.wrong.borrow_mut().get_or_insert(text);
        }
    }

    async fn try_work(&self, cx: &SimCx, number: u32) -> Result<(), String> {
        let nodes = self.plan.spread.homes.len() as u32;
        let node = (number % nodes) as u16 + 1;
        let mut source = self.plan.source(number);
        let mut prng = cx.rng().fork();
        let settings = self.settings.iter();
        let mut parameters: Vec<(&str, &str)> = settings
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        parameters.push(("database", DATABASE));
        let conn = cx.connect_with(node, &parameters).await;
        let link = SimLink::over(conn.map_err(|error| error.to_string())?, cx);
        let session = Session::open(link, &self.plan.statements()).await;
        let mut session = session.map_err(|error| error.to_string())?;
        self.prepared.set(self.prepared.get() + 1);
        let started_ns = loop {
            if let Some(started_ns) = self.started_ns.get() {
                break started_ns;
            }
            cx.sleep(1_000).await;
        };
        // Clients do not begin in step.
        let step_us = if self.paced { CYCLE_US } else { 2_000 };
        cx.sleep(prng.below(step_us)).await;
        loop {
            let at_us = cx.now_ns().saturating_sub(started_ns) / 1_000;
            let job = self.plan.draw(&mut source, at_us);
            let kind = self.paced.then(|| Kind::ALL[job.kind()]);
            if let Some(kind) = kind {
                cx.sleep(kind.keying_us()).await;
            }
            let began = cx.now_ns();
            let (done, tries) = self.repeat(cx, &mut prng, &mut session, &job).await?;
            self.note_done(job.kind(), done.ending, tries, cx.now_ns() - began);
            if let Some(kind) = kind {
                cx.sleep(think_us(&mut prng, kind)).await;
            }
        }
    }

    /// Attempts until one ends well; how it ended, and how many there were.
    async fn repeat(
        &self,
        cx: &SimCx,
        prng: &mut Prng,
        session: &mut Session<SimLink>,
        job: &Job,
    ) -> Result<(Done, u64), String> {
        let mut tries = 1;
        loop {
            let failure = match job.execute(session).await {
                Ok(done) => return Ok((done, tries)),
                Err(failure) => failure,
            };
            let said = match &failure {
                Failure::Aborted(error) => error.to_string(),
                Failure::Conflict(reason) => (*reason).to_owned(),
                Failure::Lost(error) | Failure::Unknown(error) => error.to_string(),
                Failure::Wrong(text) => text.clone(),
            };
            self.note_failure(said);
            pause(cx, prng, failure, tries - 1).await?;
            tries += 1;
        }
    }

    /// Counts a transaction of a kind that took so many attempts and nanoseconds.
    fn note_done(&self, kind: usize, ending: Ending, tries: u64, latency_ns: u64) {
        let mut tally = self.tally.borrow_mut();
        tally.retries += tries - 1;
        *tally.tries.entry(tries).or_default() += 1;
        tally.latencies_ns[kind].push(latency_ns);
        match ending {
            Ending::Committed => tally.committed[kind] += 1,
            Ending::RolledBack => tally.rolled_back += 1,
        }
    }

    fn note_failure(&self, said: String) {
        let mut tally = self.tally.borrow_mut();
        *tally.failures.entry(said).or_default() += 1;
    }
}

async fn connect(cx: &SimCx, node: u16) -> Result<SimConn, String> {
    let conn = cx.connect_with(node, &[("database", DATABASE)]).await;
    conn.map_err(|error| error.to_string())
}

/// Bytes of rows in memory, by node.
pub(super) async fn row_bytes(cx: &SimCx) -> Result<Vec<u64>, String> {
    let mut conn = connect(cx, 1).await?;
    let answer = conn.query("SHOW MEMORY").await;
    let answer = answer.map_err(|error| error.to_string())?;
    let place = |name| answer.columns.iter().position(|column| column == name);
    let places = place("shard").zip(place("row_bytes"));
    let (shard, bytes) = places.ok_or("SHOW MEMORY has other columns")?;
    let mut by_node: BTreeMap<u64, u64> = BTreeMap::new();
    for row in 0..answer.rows.len() {
        let node = answer.text(row, shard).and_then(node_of);
        let cells = node.zip(answer.int(row, bytes));
        let (node, bytes) = cells.ok_or("SHOW MEMORY has no numbers")?;
        *by_node.entry(node).or_default() += bytes as u64;
    }
    Ok(by_node.into_values().collect())
}

/// The node in the name of a shard, `n1.0`.
fn node_of(shard: &str) -> Option<u64> {
    let digits = shard.trim_start_matches(|c: char| !c.is_ascii_digit());
    let end = digits.find(|c: char| !c.is_ascii_digit());
    digits[..end.unwrap_or(digits.len())].parse().ok()
}

async fn copy(link: &mut SimLink, table: &str, bytes: &mut Vec<u8>) -> Result<(), String> {
    let data = String::from_utf8_lossy(bytes);
    let copied = link
        .copy_in(&format!("COPY {table} FROM STDIN"), &data)
        .await;
    copied.map_err(|error| format!("loading {table}: {error}"))?;
    bytes.clear();
    Ok(())
}

/// Waits before another attempt.
///
/// # Errors
/// There is none after this failure.
async fn pause(
    cx: &SimCx,
    prng: &mut Prng,
    failure: Failure<LinkError>,
    retries: u64,
) -> Result<(), String> {
    match failure {
        // Conflicts, and locks that did not come in time.
        Failure::Aborted(error)
            if matches!(error.sqlstate.as_str(), "40001" | "40P01" | "55P03") => {}
        Failure::Conflict(_) => {}
        Failure::Aborted(error) => return Err(error.to_string()),
        Failure::Lost(error) | Failure::Unknown(error) => return Err(error.to_string()),
        Failure::Wrong(text) => return Err(text),
    }
    let most = (BACKOFF_US << retries.min(10)).min(BACKOFF_US_MAX);
    let pause = prng.below(most);
    cx.sleep(pause).await;
    Ok(())
}

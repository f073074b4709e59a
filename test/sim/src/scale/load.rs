//! What is loaded and what the clients do: the generator of the benchmark, with warehouses dealt to
//! shards and a set share of transactions that leave their node.

use super::{Mix, ScaleOptions};
use crate::client::SimConn;
use crate::executor::SimCx;
use crate::workload::wire::{LinkError, SimLink};
use base::key::{encode_datum, slot_of};
use base::{Datum, Prng};
use catalog::Placement;
use std::cell::{Cell, RefCell};
use workload::tpcc::input::{Input, Terminal};
use workload::tpcc::random::Constants;
use workload::tpcc::rows::{Chunk, Content};
use workload::tpcc::schema::{self, SchemaOptions, Table};
use workload::tpcc::{self, Kind, sql, transactions};
use workload::wire::{self, Done, Ending, Failure, Isolation, ParamType, Session};

/// The database that is measured.
const DATABASE: &str = "scale";
/// First and longest pause between attempts, microseconds, as in the benchmark's driver.
const BACKOFF_US: u64 = 200;
const BACKOFF_US_MAX: u64 = 10_000;
/// Operations of a transaction of ycsb.
const YCSB_OPS: u32 = 8;
/// Bytes of a value of ycsb.
const YCSB_BYTES: usize = 100;

/// What the clients counted.
#[derive(Default)]
pub(super) struct Tally {
    pub(super) committed: [u64; 5],
    pub(super) rolled_back: u64,
    pub(super) retries: u64,
    pub(super) latencies_ns: Vec<u64>,
}

/// All clients of a run.
pub(super) struct Clients {
    options: ScaleOptions,
    /// The warehouses of each node.
    homes: Vec<Vec<u32>>,
    content: Content,
    run: Constants,
    prepared: Cell<u32>,
    started: Cell<bool>,
    tally: RefCell<Tally>,
    wrong: RefCell<Option<String>>,
}

/// The ids of warehouses by node, so that every shard has its share: ids are placed by their hash,
/// so those that would be too many for their shard are left out.
pub(super) fn homes(options: &ScaleOptions) -> Vec<Vec<u32>> {
    let placement = Placement::new(options.nodes, options.shards);
    let shards = usize::from(options.shards);
    let mut room: Vec<Vec<u32>> = Vec::new();
    let each = options.warehouses_per_node as usize;
    for _ in 0..options.nodes {
        let share = |shard| (each / shards + usize::from(shard < each % shards)) as u32;
        room.push((0..shards).map(share).collect());
    }
    let mut homes = vec![Vec::new(); usize::from(options.nodes)];
    let mut left = each * usize::from(options.nodes);
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

/// One client's inputs.
struct Source {
    terminal: Terminal,
    prng: Prng,
    node: usize,
    home: u32,
}

impl Clients {
    pub(super) fn new(options: &ScaleOptions) -> Clients {
        let constants = Constants::for_load(options.seed);
        Clients {
            options: options.clone(),
            homes: homes(options),
            content: Content {
                scale: tpcc::Scale {
                    warehouses: 1,
                    items: options.items,
                    customers: options.customers,
                    orders: options.customers,
                },
                seed: options.seed,
                constants,
                now_us: 1_600_000_000_000_000,
            },
            run: Constants::for_run(options.seed, constants.c_last),
            prepared: Cell::new(0),
            started: Cell::new(false),
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

    pub(super) fn start(&self) {
        self.started.set(true);
    }

    pub(super) fn count_from_here(&self) {
        self.tally.take();
    }

    pub(super) fn wrong(&self) -> Option<String> {
        self.wrong.take()
    }

    pub(super) fn take(&self) -> Tally {
        self.tally.take()
    }

    /// Makes the database and its tables, and fills them.
    pub(super) async fn load(&self, cx: &SimCx) -> Result<(), String> {
        let execution = match self.options.serial {
            true => "serial",
            false => "interleaved",
        };
        let text = |error: LinkError| error.to_string();
        let plain = cx.connect(1).await.map_err(|error| error.to_string())?;
        let mut plain = SimLink::over(plain, cx);
        let create = format!("CREATE DATABASE {DATABASE} WITH (execution = '{execution}')");
        wire::command(&mut plain, &create).await.map_err(text)?;
        let mut link = SimLink::over(connect(cx, 1).await?, cx);
        let tables = match self.options.mix {
            Mix::TpccPair | Mix::TpccFull => schema::create_all(&SchemaOptions {
                placement: true,
                foreign_keys: false,
            }),
            Mix::Ycsb => vec![YCSB_TABLE.to_owned()],
        };
        for statement in tables {
            wire::command(&mut link, &statement).await.map_err(text)?;
        }
        let mut bytes = Vec::new();
        if self.options.mix == Mix::Ycsb {
            for part in self.homes.iter().flatten() {
                ycsb_rows(*part, self.options.items, &mut bytes);
                copy(&mut link, "ycsb", &mut bytes).await?;
            }
        } else {
            for chunk in Chunk::all(&self.content.scale) {
                self.load_chunk(&mut link, chunk, &mut bytes).await?;
            }
        }
        Ok(())
    }

    /// Loads a chunk of the first warehouse for all of them.
    async fn load_chunk(
        &self,
        link: &mut SimLink,
        chunk: Chunk,
        bytes: &mut Vec<u8>,
    ) -> Result<(), String> {
        let name = chunk.table.name();
        if chunk.table == Table::Item {
            chunk.write(&self.content, bytes);
            return copy(link, name, bytes).await;
        }
        for warehouse in self.homes.iter().flatten() {
            let warehouse = *warehouse;
            let chunk = Chunk { warehouse, ..chunk };
            chunk.write(&self.content, bytes);
            copy(link, name, bytes).await?;
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
        let node = (number % u32::from(self.options.nodes)) as usize;
        let homes = &self.homes[node];
        let turn = (number / u32::from(self.options.nodes)) as usize;
        let seed = self.options.seed;
        let mut source = Source {
            terminal: Terminal::new(self.content.scale, self.run, seed, number),
            prng: cx.rng().fork(),
            node,
            home: homes[turn % homes.len()],
        };
        let statements = match self.options.mix {
            Mix::TpccPair | Mix::TpccFull => sql::all(Isolation::Serializable),
            Mix::Ycsb => ycsb_statements(),
        };
        let link = SimLink::over(connect(cx, node as u16 + 1).await?, cx);
        let session = Session::open(link, &statements).await;
        let mut session = session.map_err(|error| error.to_string())?;
        self.prepared.set(self.prepared.get() + 1);
        while !self.started.get() {
            cx.sleep(1_000).await;
        }
        // Clients do not begin in step.
        let pause = source.prng.below(2_000);
        cx.sleep(pause).await;
        loop {
            self.transact(cx, &mut session, &mut source).await?;
        }
    }

    /// One transaction, with its retries.
    async fn transact(
        &self,
        cx: &SimCx,
        session: &mut Session<SimLink>,
        source: &mut Source,
    ) -> Result<(), String> {
        let mut retries = 0;
        let began = cx.now_ns();
        let (kind, done) = if self.options.mix == Mix::Ycsb {
            let ops = self.draw_ycsb(source);
            loop {
                match ycsb(session, &ops).await {
                    Ok(done) => break (0, done),
                    Err(failure) => pause(cx, source, failure, retries).await?,
                }
                retries += 1;
            }
        } else {
            let input = self.draw(source);
            loop {
                match transactions::execute(session, &input).await {
                    Ok(done) => break (input.kind().number(), done),
                    Err(failure) => pause(cx, source, failure, retries).await?,
                }
                retries += 1;
            }
        };
        let mut tally = self.tally.borrow_mut();
        tally.retries += retries;
        tally.latencies_ns.push(cx.now_ns() - began);
        match done.ending {
            Ending::Committed => tally.committed[kind] += 1,
            Ending::RolledBack => tally.rolled_back += 1,
        }
        Ok(())
    }

    /// The next input of TPC-C: home but for the set share of remote ones.
    fn draw(&self, source: &mut Source) -> Input {
        let mut input = match self.options.mix {
            Mix::TpccFull => source.terminal.draw(),
            Mix::TpccPair | Mix::Ycsb => match source.prng.below(2) {
                0 => source.terminal.draw_kind(Kind::NewOrder),
                _ => source.terminal.draw_kind(Kind::Payment),
            },
        };
        let home = source.home;
        let away = self.away(source);
        match &mut input {
            Input::NewOrder(order) => {
                order.warehouse = home;
                let remote = source.prng.below(order.lines.len() as u64) as usize;
                for (at, line) in order.lines.iter_mut().enumerate() {
                    line.supply_warehouse = match away {
                        Some(other) if at == remote => other,
                        Some(_) | None => home,
                    };
                }
            }
            Input::Payment(payment) => {
                payment.warehouse = home;
                payment.customer_warehouse = away.unwrap_or(home);
            }
            Input::OrderStatus(status) => status.warehouse = home,
            Input::Delivery(delivery) => delivery.warehouse = home,
            Input::StockLevel(level) => level.warehouse = home,
        }
        input
    }

    /// A warehouse of another node, in the set share of calls.
    fn away(&self, source: &mut Source) -> Option<u32> {
        let leaves = source.prng.below(100) < self.options.remote_percent;
        if !leaves || self.homes.len() == 1 {
            return None;
        }
        let mut node = source.prng.below(self.homes.len() as u64 - 1) as usize;
        node += usize::from(node >= source.node);
        let homes = &self.homes[node];
        Some(homes[source.prng.below(homes.len() as u64) as usize])
    }

    fn draw_ycsb(&self, source: &mut Source) -> Vec<Op> {
        let away = self.away(source);
        let rows = u64::from(self.options.items);
        let mut ops: Vec<Op> = (0..YCSB_OPS)
            .map(|at| Op {
                part: away.filter(|_| at == 0).unwrap_or(source.home),
                row: source.prng.below(rows) as u32,
                update: source.prng.below(2) == 0,
            })
            .collect();
        ops.sort_by_key(|op| (op.part, op.row));
        ops.dedup_by_key(|op| (op.part, op.row));
        ops
    }
}

async fn connect(cx: &SimCx, node: u16) -> Result<SimConn, String> {
    let conn = cx.connect_with(node, &[("database", DATABASE)]).await;
    conn.map_err(|error| error.to_string())
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
    source: &mut Source,
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
    let pause = source.prng.below(most);
    cx.sleep(pause).await;
    Ok(())
}

const YCSB_TABLE: &str = "CREATE TABLE ycsb (part integer, k integer, v text NOT NULL, \
     PRIMARY KEY (part, k)) PARTITION BY (part)";

/// One operation of ycsb.
struct Op {
    part: u32,
    row: u32,
    update: bool,
}

fn ycsb_statements() -> Vec<(String, Vec<ParamType>)> {
    use ParamType::{Int, Text};
    let read = "SELECT v FROM ycsb WHERE part = $1 AND k = $2";
    let update = "UPDATE ycsb SET v = $3 WHERE part = $1 AND k = $2";
    vec![
        ("BEGIN ISOLATION LEVEL SERIALIZABLE".to_owned(), vec![]),
        (read.to_owned(), vec![Int, Int]),
        (update.to_owned(), vec![Int, Int, Text]),
        ("COMMIT".to_owned(), vec![]),
    ]
}

fn ycsb_rows(part: u32, rows: u32, out: &mut Vec<u8>) {
    let value = "x".repeat(YCSB_BYTES);
    for row in 0..rows {
        out.extend_from_slice(format!("{part}\t{row}\t{value}\n").as_bytes());
    }
}

/// One attempt, in one round.
async fn ycsb(session: &mut Session<SimLink>, ops: &[Op]) -> Result<Done, Failure<LinkError>> {
    let value = "y".repeat(YCSB_BYTES);
    session.bind(0).send();
    for op in ops {
        match op.update {
            false => session.bind(1).int(op.part).int(op.row).send(),
            true => {
                let bind = session.bind(2).int(op.part).int(op.row);
                bind.text(&value).send();
            }
        }
    }
    session.commits_block();
    session.bind(3).send();
    session.round().await?;
    Ok(Done {
        ending: Ending::Committed,
        units: 1,
        skipped: 0,
    })
}

//! Workloads whose share of work on other nodes is set: what a comparison of protocols varies.
//!
//! | part | content |
//! |---|---|
//! | [`Mix`] | what a transaction does: TPC-C, key-value steps, a counter |
//! | [`Spread`] | how much of it is elsewhere, and where: share, locality, reach, hot row |
//! | [`Plan`] | both, with sizes and a seed: what to create, and the clients' inputs |
//!
//! A client belongs to the node that it is connected to, and has a home warehouse (part) there.
//! Which warehouse lies on which node is an argument, so nothing here knows how rows are placed.

mod counter;
mod place;
mod record;
mod ycsb;

pub use record::{FIELD_BYTES, FIELDS};

pub use place::{Spread, Unit};

use crate::dike::further::{Further, StockLevels};
use crate::stream;
use crate::tpcc::input::{Customer, Input, Terminal};
use crate::tpcc::random::{Constants, customer_id};
use crate::tpcc::schema::{self, SchemaOptions};
use crate::tpcc::{DISTRICTS, Kind, Scale, sql, transactions};
use crate::wire::{Connection, Done, Failure, Isolation, ParamType, Session};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;
use base::Prng;
use place::Slice;
use record::Operation;
use ycsb::Step;

/// What a transaction does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mix {
    /// NewOrder and Payment of TPC-C, half and half.
    TpccPair,
    /// All five transactions of TPC-C, by the cards of the specification.
    TpccFull,
    /// Dike's `d_stock_level`: StockLevel of the home warehouse and, for the set share, of one on
    /// another node in the same transaction.
    StockLevels,
    /// Reads and updates of single rows, half and half, in dependent steps: keys of a step come
    /// out of what the step before has read. Each step is a round of its own.
    Ycsb {
        /// Steps, from 1.
        steps: u32,
        /// Operations of a step, from 1; the set share of steps has its first on another node.
        ops: u32,
    },
    /// Adds 1 to the one counter that all have in common.
    Counter {
        /// Whether 1 is added to the counter of the client's home first, in the same transaction:
        /// then it runs where the client is. Otherwise it is one statement that commits by itself.
        block: bool,
        /// Whether the common counter's value is asked for: then nothing but the row will do.
        returning: bool,
    },
    /// Adds 1, a parameter, to the counter of the first home, which is hot, and to a cold one on
    /// another node: that of the client's home, or of the next node for clients that are where the
    /// hot one is.
    HotCold,
    /// Reads or changes one record of a kilobyte, in a statement that commits by itself; the set
    /// share of records is of other nodes.
    Record {
        /// Percentage of reads, 0 to 100.
        read_percent: u64,
    },
}

impl Mix {
    /// Whether its transactions are those of TPC-C.
    pub fn is_tpcc(self) -> bool {
        matches!(self, Mix::TpccPair | Mix::TpccFull | Mix::StockLevels)
    }
}

/// Reads of one warming query.
const WARM_ROWS: usize = 50;
/// Reads of other nodes after which a row counts as read by all.
const WARM_READS: usize = 6;

/// A mix, its spread, sizes and seed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plan {
    /// What transactions do.
    pub mix: Mix,
    /// Where they do it.
    pub spread: Spread,
    /// Sizes of TPC-C; of key-value rows, `items` is how many each part has.
    pub scale: Scale,
    /// NURand's constants for inputs.
    pub constants: Constants,
    /// Everything random follows from it.
    pub seed: u64,
}

/// One client's inputs.
#[derive(Clone, Debug)]
pub struct Source {
    terminal: Terminal,
    prng: Prng,
    /// Index of the client's node.
    node: usize,
    /// Its warehouse or part.
    home: u32,
}

/// The input of one transaction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Job {
    /// Of TPC-C.
    Tpcc(Input),
    /// Key-value steps.
    Ycsb(Steps),
    /// One more on the common counter.
    Counter {
        /// The counter of the client's home, if that one is counted up first.
        home: Option<u32>,
        /// Whether the common one's value is asked for.
        returning: bool,
    },
    /// Additions to a hot and a cold counter.
    HotCold(Additions),
    /// One operation on a record.
    Record(Access),
}

/// Additions to two counters of different nodes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Additions(counter::Pair);

/// A read or an update of one record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Access(Operation);

/// Dependent steps of a key-value transaction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Steps {
    rows: u32,
    steps: Vec<Step>,
}

impl Plan {
    /// Statements that make the tables; with `placement` they say which rows stay together.
    pub fn tables(&self, placement: bool) -> Vec<String> {
        match self.mix {
            Mix::TpccPair | Mix::TpccFull | Mix::StockLevels => {
                schema::create_all(&SchemaOptions {
                    placement,
                    binding: true,
                    broadcast: true,
                    foreign_keys: false,
                })
            }
            Mix::Ycsb { .. } => vec![by_part(ycsb::TABLE, placement)],
            Mix::Counter { .. } | Mix::HotCold => {
                vec![
                    counter::TABLE.to_string(),
                    counter::rows(&self.spread.homes),
                ]
            }
            Mix::Record { .. } => vec![by_part(&record::table(), placement)],
        }
    }

    /// The table whose rows come in parts, if there is one: [`Plan::part_rows`] makes them.
    pub fn part_table(&self) -> Option<&'static str> {
        match self.mix {
            Mix::Ycsb { .. } => Some("ycsb"),
            Mix::Record { .. } => Some("record"),
            Mix::TpccPair
            | Mix::TpccFull
            | Mix::StockLevels
            | Mix::Counter { .. }
            | Mix::HotCold => None,
        }
    }

    /// Rows of one part in the form of COPY; nothing where there is no [`Plan::part_table`].
    pub fn part_rows(&self, part: u32, out: &mut Vec<u8>) {
        match self.mix {
            Mix::Ycsb { .. } => ycsb::rows(part, self.scale.items, out),
            Mix::Record { .. } => record::rows(part, self.scale.items, out),
            Mix::TpccPair
            | Mix::TpccFull
            | Mix::StockLevels
            | Mix::Counter { .. }
            | Mix::HotCold => {}
        }
    }

    /// The query for the counter that all clients add to, if there is one: every acknowledged
    /// addition is in it.
    pub fn read_counter(&self) -> Option<String> {
        match self.mix {
            Mix::Counter { .. } => Some(counter::read(counter::COMMON)),
            Mix::HotCold => Some(counter::read(self.spread.homes[0][0])),
            Mix::TpccPair
            | Mix::TpccFull
            | Mix::StockLevels
            | Mix::Ycsb { .. }
            | Mix::Record { .. } => None,
        }
    }

    /// Simple queries that every node is to be asked, in turn and [`Plan::warm_rounds`] times,
    /// before anything is measured: they read, with locks, the rows that all nodes read and nobody
    /// writes. A protocol that keeps copies of such rows has them afterwards, as after minutes of
    /// load.
    pub fn warm_queries(&self) -> Vec<String> {
        let mut all = Vec::new();
        if self.mix.is_tpcc() && self.spread.homes.len() > 1 {
            let items: Vec<u32> = (1..=self.scale.items).collect();
            for some in items.chunks(WARM_ROWS) {
                let mut text = String::from("BEGIN ISOLATION LEVEL SERIALIZABLE; ");
                for item in some {
                    text.push_str(&format!("SELECT i_price FROM item WHERE i_id = {item}; "));
                }
                text.push_str("COMMIT");
                all.push(text);
            }
        }
        all
    }

    /// How often each node is to be asked [`Plan::warm_queries`]: until every row has been asked
    /// for `WARM_READS` times by nodes that it is not at, and once more.
    pub fn warm_rounds(&self) -> usize {
        let others = self.spread.homes.len().saturating_sub(1).max(1);
        WARM_READS.div_ceil(others) + 1
    }

    /// What a client prepares.
    pub fn statements(&self) -> Vec<(String, Vec<ParamType>)> {
        match self.mix {
            Mix::TpccPair | Mix::TpccFull | Mix::StockLevels => sql::all(Isolation::Serializable),
            Mix::Ycsb { .. } => ycsb::statements(),
            Mix::Counter { .. } | Mix::HotCold => counter::statements(),
            Mix::Record { .. } => record::statements(),
        }
    }

    /// Names of the kinds of transactions, by [`Job::kind`].
    pub fn kinds(&self) -> &'static [&'static str] {
        match self.mix {
            Mix::TpccPair | Mix::TpccFull => &Kind::TPCC_NAMES,
            Mix::StockLevels => &["d_stock_level"],
            Mix::Ycsb { .. } => &["steps"],
            Mix::Counter { .. } | Mix::HotCold => &["increment"],
            Mix::Record { .. } => &["read", "update"],
        }
    }

    /// The inputs of client `number` (from 0). Clients go round the nodes first, then the
    /// warehouses of their node.
    pub fn source(&self, number: u32) -> Source {
        let nodes = self.spread.homes.len() as u32;
        let homes = &self.spread.homes[(number % nodes) as usize];
        let turn = (number / nodes) as usize;
        Source {
            terminal: Terminal::new(self.scale, self.constants, self.seed, number),
            prng: stream(self.seed, &[0x7370_7264, u64::from(number)]),
            node: (number % nodes) as usize,
            home: homes[turn % homes.len()],
        }
    }

    /// The next input. `at_us` is the time since the run began: the reach may change with it.
    pub fn draw(&self, source: &mut Source, at_us: u64) -> Job {
        match self.mix {
            Mix::TpccPair => {
                let kind = match source.prng.below(2) {
                    0 => Kind::NewOrder,
                    _ => Kind::Payment,
                };
                let input = source.terminal.draw_kind(kind);
                Job::Tpcc(self.settle(source, input, at_us))
            }
            Mix::TpccFull => {
                let input = source.terminal.draw();
                Job::Tpcc(self.settle(source, input, at_us))
            }
            Mix::StockLevels => {
                let Input::StockLevel(level) = source.terminal.draw_kind(Kind::StockLevel) else {
                    unreachable!("it was asked for");
                };
                let mut places = vec![(source.home, level.district)];
                if self.spread.leaving(&mut source.prng, 1).contains(0) {
                    let district = source.prng.below(u64::from(DISTRICTS)) as u32 + 1;
                    places.push((self.elsewhere(source, at_us).0, district));
                }
                let levels = StockLevels {
                    places,
                    threshold: level.threshold,
                };
                Job::Tpcc(Input::Further(Further::StockLevel(levels)))
            }
            Mix::Ycsb { steps, ops } => Job::Ycsb(self.draw_steps(source, steps, ops, at_us)),
            Mix::Counter { block, returning } => Job::Counter {
                home: block.then_some(source.home),
                returning,
            },
            Mix::HotCold => Job::HotCold(self.additions(source)),
            Mix::Record { read_percent } => {
                let leaves = self.spread.leaving(&mut source.prng, 1).contains(0);
                let part = match leaves {
                    true => self.elsewhere(source, at_us).0,
                    false => source.home,
                };
                let rows = self.scale.items;
                Job::Record(Access(Operation::draw(
                    &mut source.prng,
                    part,
                    rows,
                    read_percent,
                )))
            }
        }
    }

    fn additions(&self, source: &Source) -> Additions {
        let homes = &self.spread.homes;
        let cold = match source.node {
            0 => {
                let next = &homes[1 % homes.len()];
                let place = homes[0].iter().position(|home| *home == source.home);
                next[place.expect("a client's home is on its node") % next.len()]
            }
            _ => source.home,
        };
        Additions(counter::Pair {
            hot: homes[0][0],
            cold,
        })
    }

    /// Gives an input its warehouses.
    fn settle(&self, source: &mut Source, mut input: Input, at_us: u64) -> Input {
        let home = source.home;
        match &mut input {
            Input::NewOrder(order) => {
                order.warehouse = home;
                let (slice, customers) = (self.spread.home_slice(), self.scale.customers);
                let drawn = (order.district, order.customer);
                (_, order.customer) = slice.customer(drawn, customers, &mut source.prng);
                let away = self.spread.leaving(&mut source.prng, order.lines.len());
                for (at, line) in order.lines.iter_mut().enumerate() {
                    let unused = line.item > self.scale.items;
                    let (warehouse, slice) = match away.contains(at) {
                        true => self.elsewhere(source, at_us),
                        false => (home, self.spread.home_slice()),
                    };
                    line.supply_warehouse = warehouse;
                    if !unused {
                        line.item = slice.item(line.item, self.scale.items);
                    }
                }
                if source.prng.below(100) < self.spread.hot_percent {
                    let (hot, line) = (self.spread.homes[0][0], &mut order.lines[0]);
                    (line.supply_warehouse, line.item) = (hot, 1);
                }
            }
            Input::Payment(payment) => {
                payment.warehouse = home;
                let (warehouse, slice) = match self.spread.leaving(&mut source.prng, 1).contains(0)
                {
                    true => self.elsewhere(source, at_us),
                    false => (home, self.spread.home_slice()),
                };
                payment.customer_warehouse = warehouse;
                if self.spread.customers_by_id() {
                    let customers = self.scale.customers;
                    let id = customer_id(&mut source.prng, &self.constants, &self.scale);
                    let drawn = (payment.customer_district, id);
                    let (district, id) = slice.customer(drawn, customers, &mut source.prng);
                    payment.customer_district = district;
                    payment.customer = Customer::Id(id);
                }
            }
            Input::OrderStatus(status) => status.warehouse = home,
            Input::Delivery(delivery) => delivery.warehouse = home,
            Input::StockLevel(level) => level.warehouse = home,
            Input::Further(_) => unreachable!("a deck of TPC-C has none"),
        }
        input
    }

    /// A warehouse of another node, and the rows of it that are meant.
    fn elsewhere(&self, source: &mut Source, at_us: u64) -> (u32, Slice) {
        self.spread
            .elsewhere(&mut source.prng, source.node, source.home, at_us)
    }

    fn draw_steps(&self, source: &mut Source, steps: u32, ops: u32, at_us: u64) -> Steps {
        let rows = self.scale.items;
        let steps = (0..steps)
            .map(|_| {
                let leaves = self.spread.leaving(&mut source.prng, 1).contains(0);
                let away = leaves.then(|| self.elsewhere(source, at_us).0);
                Step::draw(&mut source.prng, source.home, away, ops, rows)
            })
            .collect();
        Steps { rows, steps }
    }
}

/// The table, whose rows of a part stay together with `placement`.
fn by_part(table: &str, placement: bool) -> String {
    let clause = if placement {
        " PARTITION BY (part)"
    } else {
        ""
    };
    format!("{table}{clause}")
}

impl Access {
    /// Part and key of the record.
    pub fn key(self) -> (u32, u32) {
        self.0.key()
    }

    /// The field that is changed, from 0; `None`: all are read.
    pub fn field(self) -> Option<u32> {
        self.0.field()
    }
}

impl Job {
    /// The kind, by its place in [`Plan::kinds`].
    pub fn kind(&self) -> usize {
        match self {
            Job::Tpcc(Input::Further(_)) => 0,
            Job::Tpcc(input) => input.kind().number(),
            Job::Ycsb(_) | Job::Counter { .. } | Job::HotCold(_) => 0,
            Job::Record(Access(operation)) => operation.kind(),
        }
    }

    /// One attempt, on a session that has prepared [`Plan::statements`]. On return no transaction
    /// is open.
    ///
    /// # Errors
    /// [`Failure`]: what ended it, and whether the outcome is known.
    pub async fn execute<C: Connection>(
        &self,
        session: &mut Session<C>,
    ) -> Result<Done, Failure<C::Error>> {
        match self {
            Job::Tpcc(input) => transactions::execute(session, input).await,
            Job::Ycsb(steps) => ycsb::execute(session, &steps.steps, steps.rows).await,
            Job::Counter { home, returning } => counter::execute(session, *home, *returning).await,
            Job::HotCold(Additions(pair)) => counter::execute_pair(session, *pair).await,
            Job::Record(Access(operation)) => record::execute(session, *operation).await,
        }
    }
}

#[cfg(test)]
mod tests;

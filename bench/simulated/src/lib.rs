//! The workloads of sessions on simulated clusters, under the simulator's faults.
//!
//! What runs is what runs on a server: the interactions of [`sessions`], the SQL mapping of
//! [`stores`] with its stamps and fences, the retries of [`entity::Client`]. Only the connection
//! and the clock are the simulator's. Of five runs two have the entity half of a workload and two
//! its SQL half; the fifth has entities in a store in memory, for which virtual time passes, too.
//! After the faults the workload's own check must find nothing.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod reach;
mod users;

use base::Prng;
use serde_json::{Value, json};
use sessions::auction::{self, Auction};
use sessions::bank::{self, SmallBank};
use sessions::counter::{self, HotCounter};
use sessions::document::Section;
use sessions::micro::{self, Micro};
use sessions::ycsb::{self, Ycsb};
use sim::workload::{Entry, Scale};
use sim::{Options, Outcome, Plan};
use std::rc::Rc;
use users::{Of, Users};

/// Workloads that a plan may name besides those of [`sim::workload::ALL`].
pub const ENTRIES: &[Entry] = &[
    Entry {
        name: "entity-micro",
        about: "items of users and sets, and messages: no change is lost, no group is torn",
        make: |prng, scale| {
            let parameters = json!({
                "users": pools(scale), "items_per_user": 2, "sets": 2, "items_per_set": 4,
                "messages_per_user": 1, "items_per_interaction": 2, "content_bytes": 8,
                "sorts_items": prng.below(2) == 0,
            });
            let work = read(&parameters, |section| Micro::read(section, pools(scale)));
            let of = Of {
                schema: Micro::schema(),
                statements: micro::statements(),
            };
            Rc::new(Users::mixed(prng, scale, work, of))
        },
    },
    Entry {
        name: "entity-auction",
        about: "offers, bids and purchases of items: a highest bid, one purchase",
        make: |prng, scale| {
            let parameters = json!({
                "users": pools(scale), "items_per_user": 1, "content_bytes": 8,
            });
            let work = read(&parameters, |section| Auction::read(section, pools(scale)));
            let of = Of {
                schema: Auction::schema(),
                statements: auction::statements(),
            };
            Rc::new(Users::usual(prng, scale, work, of))
        },
    },
    Entry {
        name: "entity-bank",
        about: "SmallBank: each customer has what was acknowledged, to the cent",
        make: |prng, scale| {
            let parameters = json!({"customers": 2 + prng.below(8)});
            let work = read(&parameters, SmallBank::read);
            let of = Of {
                schema: SmallBank::schema(),
                statements: bank::statements(),
            };
            Rc::new(Users::mixed(prng, scale, work, of))
        },
    },
    Entry {
        name: "entity-counter",
        about: "adds to counters that it has read",
        make: |prng, scale| {
            let parameters = json!({"counters": 1 + prng.below(3)});
            let work = read(&parameters, HotCounter::read);
            let of = Of {
                schema: HotCounter::schema(),
                statements: counter::statements(),
            };
            Rc::new(Users::mixed(prng, scale, work, of))
        },
    },
    Entry {
        name: "entity-ycsb",
        about: "YCSB's operations, and transactions of several steps",
        make: |prng, scale| {
            let parameters = json!({
                "records": 4 + prng.below(12), "field_bytes": 8, "scan_max": 8, "steps": 2,
                "operations_per_step": 2,
            });
            let work = read(&parameters, Ycsb::read);
            let of = Of {
                schema: Ycsb::schema(),
                statements: ycsb::statements(),
            };
            Rc::new(Users::mixed(prng, scale, work, of))
        },
    },
];

/// Users are dealt among the clients.
fn pools(scale: Scale) -> u64 {
    u64::from(scale.clients.max(1))
}

fn read<W, E: std::fmt::Display>(
    parameters: &Value,
    read: impl FnOnce(Section<'_>) -> Result<W, E>,
) -> W {
    let section = Section::of("parameters", parameters).expect("it is an object");
    read(section).unwrap_or_else(|problem| panic!("{parameters}: {problem}"))
}

/// The workload of this name, of the simulator or of this crate.
pub fn find(name: &str) -> Option<&'static Entry> {
    let own = || ENTRIES.iter().find(|entry| entry.name == name);
    sim::workload::find(name).or_else(own)
}

/// As [`sim::run()`], with the workloads of this crate.
pub fn run(plan: &Plan) -> Outcome {
    run_with(plan, Options::default())
}

/// As [`sim::run_with`], with the workloads of this crate.
pub fn run_with(plan: &Plan, options: Options) -> Outcome {
    let options = Options {
        more: ENTRIES,
        ..options
    };
    sim::run_with(plan, options)
}

/// A coin.
fn coin(prng: &mut Prng) -> bool {
    prng.below(2) == 0
}

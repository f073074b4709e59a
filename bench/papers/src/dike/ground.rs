//! What the systems have in common, and the machine.

use super::ask::{CLIENTS, length_s, repeats};
use super::bed::{Place, Tables};
use crate::model::Model;
use servers::{Galera, Kind};

/// Lines for the report.
pub(super) fn lines(model: &Model) -> Vec<String> {
    let databases = Place::TRELLIS.map(|place| match place {
        Place::Trellis(system) => format!("{}: WITH ({})", place.name(), system.options()),
        Place::Other(_) | Place::Galera => place.name(),
    });
    let scale = Tables::even(9).scale();
    vec![
        format!("The machine: {}.", machine()),
        format!(
            "The protocols of Trellis differ in one line, CREATE DATABASE ... {}. Everything else \
             is the server's default. One shard per node, one node per process, no replicas.",
            databases.join("; ")
        ),
        format!(
            "PostgreSQL and MariaDB as installed, one server each, every commit on disk before its \
             answer ({}; {}). Galera: {}.",
            Kind::Postgres.settings(),
            Kind::MariaDb.settings(),
            galera()
        ),
        "Trellis is SERIALIZABLE; the others have the paper's REPEATABLE READ, or READ COMMITTED \
         where orders compete for a row (17 b, 21)."
            .to_owned(),
        format!(
            "The same client, statements and rounds for all; {CLIENTS} clients in a closed loop \
             where a figure says nothing else. A warehouse has {} items and 10 districts of {} \
             customers (TPC-C: 100000 and 3000), so that it is loaded in a second.",
            scale.items, scale.customers
        ),
        format!(
            "Every number of a server is the mean of {} runs of {} s after 1 s of warm-up, with \
             another seed each; what stands in parentheses is the least and the most. The paper \
             has the mean of five runs of 300 s.",
            repeats(model.quick),
            length_s(model.quick)
        ),
        "The consistency conditions of TPC-C hold after every run, or it has no number here. \
         Commands stand below each figure; URL is the database, DIR the cluster's directory."
            .to_owned(),
        "Nine nodes on this machine's cores measure the scheduler, so they run at a low fixed \
         rate, and only counts are told. Throughput of more than three nodes is the model's."
            .to_owned(),
    ]
}

/// The model in words.
pub(super) fn describe(model: &Model) -> String {
    model.describe_shape()
}

fn galera() -> String {
    match Galera::library() {
        Some(_) => format!(
            "three nodes in figures 6, 15 and 19, {}; every node keeps all data, so a transaction \
             touches all of them at COMMIT whatever its warehouses are",
            Galera::settings()
        ),
        None => "not installed (package galera-4), so it was not measured".to_owned(),
    }
}

/// Cores, processor, memory and kernel.
pub(crate) fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let field = |path: &str, name: &str| {
        let text = std::fs::read_to_string(path).ok()?;
        let line = text.lines().find(|line| line.starts_with(name))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    };
    let processor = field("/proc/cpuinfo", "model name").unwrap_or_else(|| "unknown".to_owned());
    let memory = field("/proc/meminfo", "MemTotal").unwrap_or_else(|| "unknown".to_owned());
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let build = if cfg!(debug_assertions) {
        "debug"
    } else {
        "release"
    };
    format!(
        "{cores} cores ({processor}), {memory} of memory, Linux {}; {build} build",
        kernel.trim()
    )
}

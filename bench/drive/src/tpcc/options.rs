//! What is loaded, and how a loaded database is run.

use super::{Isolation, OwnHistory, Without, csv, dike::DikeOptions};
use crate::run::RunnerOptions;
use workload::tpcc::Scale;

/// What to load, and how.
#[derive(Clone, Debug)]
pub struct LoadOptions {
    /// `postgres://user@host:port,host:port/database`.
    pub url: String,
    /// The sizes; [`Scale::standard`] unless for a test.
    pub scale: Scale,
    /// Decides every loaded value.
    pub seed: u64,
    /// Connections that load in parallel.
    pub jobs: u32,
    /// Whether the foreign keys of clause 1.3 are declared.
    pub foreign_keys: bool,
    /// What the tables are created without, on Trellis.
    pub without: Without,
    /// Whether the tables of Dike's `d_update_balance` are made, too.
    pub accounts: bool,
    /// Where the rows are read; `None`: they are made from the seed. Scale and seed are the
    /// folder's then.
    pub from: Option<csv::Folder>,
}

impl LoadOptions {
    /// Loads what a folder holds.
    pub fn read_from(&mut self, folder: csv::Folder) {
        self.scale = folder.content.scale;
        self.seed = folder.content.seed;
        self.from = Some(folder);
    }

    /// The standard scale, seed 1, four connections, no foreign keys.
    pub fn new(url: &str, warehouses: u32) -> LoadOptions {
        let scale = Scale::standard(warehouses);
        LoadOptions {
            url: url.to_string(),
            scale,
            seed: 1,
            jobs: 4,
            foreign_keys: false,
            without: Without::default(),
            accounts: false,
            from: None,
        }
    }
}

/// How to run the mix on a loaded database.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// As in [`LoadOptions`].
    pub url: String,
    /// When given, the loaded warehouses must be as many.
    pub warehouses: Option<u32>,
    /// Loops, phases, clients, seed.
    pub runner: RunnerOptions,
    /// Of NewOrder, Payment and Delivery; the two read-only transactions say READ ONLY beside it.
    pub isolation: Isolation,
    /// Keying and think times (clause 5.2.5): only with them a result is tpmC. Delivery is then
    /// queued and executed in the background (clause 2.7.2).
    pub keying: bool,
    /// Dike's controls; with them the run is no TPC-C.
    pub dike: Option<DikeOptions>,
    /// Replicas to which transactions go that only read; `None`: they go where all go.
    pub read_urls: Option<String>,
    /// The first and the last terminal, from 1, of those that this client has; `None`: from the
    /// first on. Terminals of all clients together go round the warehouses.
    pub terminals: Option<(u32, u32)>,
    /// How the run's own history is recorded and judged, if it is.
    pub histories: Option<OwnHistory>,
}

impl RunOptions {
    /// A closed loop of 16 clients for 20 seconds at SERIALIZABLE, without pauses.
    pub fn new(url: &str) -> RunOptions {
        RunOptions {
            url: url.to_string(),
            warehouses: None,
            runner: RunnerOptions::default(),
            isolation: Isolation::Serializable,
            keying: false,
            dike: None,
            read_urls: None,
            terminals: None,
            histories: None,
        }
    }
}

//! `trellis bench load`: fills a database, from the seed or from CSV files, or writes these.

use super::dike::DataArgs;
use super::{WorkloadName, only_tpcc, screen};
use anyhow::{Context, Result, bail};
use clap::Args;
use drive::tpcc::csv::{self, Folder};
use drive::tpcc::{self, LoadOptions};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// What to load.
#[derive(Args)]
pub(super) struct LoadArgs {
    /// Which workload
    #[arg(long, value_enum, default_value = "tpcc")]
    workload: WorkloadName,
    /// Database: `postgres://USER@HOST:PORT/DATABASE` or `mysql://`; several HOST:PORT with commas
    #[arg(long, required_unless_present = "to")]
    url: Option<String>,
    /// Write the rows into this folder as CSV files, a file for each table, and load nothing
    #[arg(long, value_name = "DIR", conflicts_with_all = ["url", "from", "jobs", "foreign_keys"])]
    to: Option<PathBuf>,
    /// Load the CSV files that --to has written
    #[arg(long, value_name = "DIR", conflicts_with_all = ["warehouses", "seed"])]
    from: Option<PathBuf>,
    /// TPC-C warehouses [default: 1; with --from those of the files]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    warehouses: Option<u32>,
    /// Decides every loaded value [default: 1; with --from that of the files]
    #[arg(long)]
    seed: Option<u64>,
    /// Connections that load in parallel [default: 4]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=64))]
    jobs: Option<u32>,
    /// Declare the foreign keys of clause 1.3
    #[arg(long)]
    foreign_keys: bool,
    #[command(flatten)]
    data: DataArgs,
}

impl LoadArgs {
    /// What is loaded, but for what concerns Dike's tables.
    pub(super) fn options(&self) -> Result<LoadOptions> {
        let url = self.url.as_deref().unwrap_or("");
        let mut options = LoadOptions::new(url, self.warehouses.unwrap_or(1));
        options.seed = self.seed.unwrap_or(options.seed);
        options.jobs = self.jobs.unwrap_or(options.jobs);
        options.foreign_keys = self.foreign_keys;
        if let Some(folder) = &self.from {
            let folder = Folder::open(folder);
            options.read_from(folder.context("--from needs a folder that --to has written")?);
        }
        Ok(options)
    }

    /// Whether the rows come from files.
    pub(super) fn has_folder(&self) -> bool {
        self.from.is_some()
    }

    /// Whether it says how many warehouses.
    pub(super) fn has_warehouses(&self) -> bool {
        self.warehouses.is_some()
    }
}

/// Loads, or writes files.
pub(super) fn load(args: &LoadArgs) -> Result<()> {
    only_tpcc(args.workload, "nothing is loaded before a run")?;
    let mut options = args.options()?;
    let is_dike = args.workload == WorkloadName::Dike;
    args.data.load(&mut options, is_dike)?;
    match &args.to {
        Some(folder) => write(folder, &options),
        None => Ok(tpcc::load(&options, &mut screen())?),
    }
}

fn write(folder: &Path, options: &LoadOptions) -> Result<()> {
    if options.without != tpcc::Without::default() {
        bail!("--without is about tables: say it when the files are loaded");
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now_us = now.unwrap_or_default().as_micros() as u64;
    Ok(csv::write(
        folder,
        options.scale,
        options.seed,
        now_us,
        &mut screen(),
    )?)
}

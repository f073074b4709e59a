//! `trellis sim planted`: which workload sees which planted bug, after how many seeds.
//!
//! Needs a build with debug assertions; a release build does not have the switches.

use super::plan_args::PlanArgs;
use super::pool::{Done, Pool};
use anyhow::{Context, Result, bail, ensure};
use base::Planted;
use clap::Args;
use sim::plan::ProtocolKind;
use sim::planted::Found;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Where the seeds are kept, from the repository's folder.
const SEEDS: &str = "pure/sim/planted.txt";
/// Where the table stands, behind the line [`BEGIN`].
const PAGE: &str = "docs/planted.md";
const BEGIN: &str = "<!-- table -->";
/// Longest account of a failure in the table, in characters.
const ACCOUNT_CHARS: usize = 60;

/// Arguments of `trellis sim planted`.
#[derive(Args)]
pub(crate) struct PlantedArgs {
    #[command(flatten)]
    plan: PlanArgs,
    /// Only this bug; may be given several times
    #[arg(long)]
    bug: Vec<String>,
    /// Runs to try for each bug
    #[arg(long, default_value_t = 2_000)]
    seeds: u64,
    /// First seed
    #[arg(long, default_value_t = 1)]
    start: u64,
    /// Processes that run side by side
    #[arg(long, default_value_t = 1)]
    jobs: usize,
    /// Folder of the repository in which the seeds and the table are written anew
    #[arg(long)]
    record: Option<PathBuf>,
}

/// A bug and what has seen it.
struct Row {
    bug: Planted,
    /// The run, how many it took, and what was seen.
    seen: Option<(Found, u64, String)>,
}

/// Carries out `trellis sim planted`.
pub(crate) fn run(args: &PlantedArgs) -> Result<ExitCode> {
    ensure!(
        base::plant(None) && cfg!(debug_assertions),
        "this build has no planted bugs: run it as `cargo run -p trellis -- sim planted`"
    );
    let workloads = args.plan.workloads()?;
    let is_recorded = |name: &&str| sim::workload::find(name).is_some();
    ensure!(
        args.record.is_none() || workloads.iter().all(is_recorded),
        "--record keeps seeds of the product's own workloads: leave it out, and the workloads of \
         entities are searched and nothing is written"
    );
    let mut out = std::io::stdout();
    let mut search = Search {
        args,
        workloads,
        pool: Pool::new(args.jobs.max(1))?,
        broken: BTreeMap::new(),
    };
    let mut rows = Vec::new();
    let is_of_entities = args.record.is_none() && !search.workloads.iter().all(is_recorded);
    for bug in wanted(&args.bug, is_of_entities)? {
        let seen = search.first(bug, args.seeds)?;
        match &seen {
            Some((found, runs, text)) => writeln!(
                out,
                "{:<33}{:<13} seed {:<6} after {runs:>4} runs: {text}",
                bug.name(),
                found.workload,
                found.seed
            )?,
            None => writeln!(out, "{:<33}not seen in {} runs", bug.name(), args.seeds)?,
        }
        rows.push(Row { bug, seen });
        if let Some(folder) = &args.record {
            record(folder, &rows)?;
        }
    }
    let mut most = 0;
    for protocol in ProtocolKind::ALL {
        let of_it = rows.iter().filter(|row| protocol_of(row.bug) == protocol);
        let needed = of_it.filter_map(|row| row.seen.as_ref());
        let runs = needed.map(|(_, runs, _)| *runs).max().unwrap_or(0);
        search.check_sound(protocol, runs)?;
        most = most.max(runs);
    }
    for text in search.broken.values() {
        writeln!(out, "without a bug: {text}")?;
    }
    if search.broken.is_empty() {
        writeln!(out, "without a bug nothing is seen in {most} runs")?;
    }
    let missed = rows.iter().filter(|row| row.seen.is_none()).count();
    let failed = missed + search.broken.len();
    writeln!(out, "{} passed, {failed} failed", rows.len() - missed)?;
    Ok(super::exit_code(failed as u64))
}

/// The protocol whose rule it breaks, or that of most databases.
fn protocol_of(bug: Planted) -> ProtocolKind {
    let named = bug.protocol().and_then(ProtocolKind::of_name);
    named.unwrap_or(ProtocolKind::TwoPhase)
}

/// Those of these names; if there are none, all that such workloads can see.
fn wanted(names: &[String], is_of_entities: bool) -> Result<Vec<Planted>> {
    if names.is_empty() {
        let all = Planted::ALL.iter().copied();
        let can_be_seen = |bug: &Planted| is_of_entities || !bug.is_of_stores();
        return Ok(all.filter(can_be_seen).collect());
    }
    let find = |name: &String| {
        Planted::find(name).with_context(|| {
            let all: Vec<&str> = Planted::ALL.iter().map(|bug| bug.name()).collect();
            format!("no bug is called {name:?}; there are {}", all.join(", "))
        })
    };
    names.iter().map(find).collect()
}

struct Search<'a> {
    args: &'a PlantedArgs,
    workloads: Vec<&'static str>,
    pool: Pool,
    /// Seeds that fail with nothing planted, and how: they prove nothing about a bug.
    broken: BTreeMap<(&'static str, u64), String>,
}

impl Search<'_> {
    /// The first of so many seeds that fails because of the bug, all workloads in turn; how many
    /// runs it took, and what was seen.
    fn first(&mut self, bug: Planted, seeds: u64) -> Result<Option<(Found, u64, String)>> {
        let start = self.args.start;
        let mut from = start;
        let protocol = protocol_of(bug);
        while let Some(done) = self.next_failure(protocol, Some(bug), from, start + seeds)? {
            let (seed, workload) = (done.job.seed, done.job.workload);
            let guilty = self.next_failure(protocol, None, seed, seed + 1)?;
            let Some(guilty) = guilty else {
                let found = Found {
                    bug,
                    workload,
                    seed,
                };
                return Ok(Some((
                    found,
                    seed - start + 1,
                    account(done.failure().unwrap_or_default()),
                )));
            };
            self.note_broken(protocol, &guilty);
            from = seed + 1;
        }
        Ok(None)
    }

    fn note_broken(&mut self, protocol: ProtocolKind, done: &Done) {
        let (name, seed) = (protocol.name(), done.job.seed);
        let text = account(done.failure().unwrap_or_default());
        let text = format!("{name} {} {seed}: {text}", done.job.workload);
        self.broken.insert((name, seed), text);
    }

    /// Runs all seeds in which bugs of a protocol were found with nothing planted.
    fn check_sound(&mut self, protocol: ProtocolKind, runs: u64) -> Result<()> {
        let (mut from, end) = (self.args.start, self.args.start + runs);
        while let Some(done) = self.next_failure(protocol, None, from, end)? {
            self.note_broken(protocol, &done);
            from = done.job.seed + 1;
        }
        Ok(())
    }

    /// The first seed from `from` on, and below `end`, that fails with this bug or none.
    fn next_failure(
        &mut self,
        protocol: ProtocolKind,
        bug: Option<Planted>,
        from: u64,
        end: u64,
    ) -> Result<Option<Done>> {
        let mut next = from;
        let mut best: Option<Done> = None;
        loop {
            while self.pool.is_free() && best.is_none() && next < end {
                let turn = (next - self.args.start) % self.workloads.len() as u64;
                let workload = self.workloads[turn as usize];
                let mut run = self.args.plan.of(workload, next);
                run.args.protocol = protocol;
                run.args.set_plant(bug);
                self.pool.start(run.job(false))?;
                next += 1;
            }
            // Those that were begun before it are waited for: the smallest seed counts.
            let Some(done) = self.pool.wait()? else {
                return Ok(best);
            };
            let is_first = best
                .as_ref()
                .is_none_or(|best| done.job.seed < best.job.seed);
            if done.failure().is_some() && is_first {
                best = Some(done);
            }
        }
    }
}

/// One line of what a failed run said.
fn account(text: &str) -> String {
    let mut lines = text.lines();
    let first = lines.next().unwrap_or_default();
    let line = if let Some(place) = first.strip_prefix("the process ended: panicked at ") {
        let file = place.split(':').next().unwrap_or(place);
        let said = lines.next().unwrap_or_default();
        format!("assertion in {file}: {said}")
    } else if let Some((_, level)) = first.rsplit_once("}: ") {
        // A story of the checker: its level, what was exercised, and the first anomaly.
        let level = level.split(':').next().unwrap_or(level);
        // What was exercised and what was too little of it stand further to the right.
        let anomaly = lines
            .find(|line| !line.starts_with(' '))
            .unwrap_or_default();
        let anomaly = anomaly.split(": T").next().unwrap_or(anomaly);
        format!("{level} history: {anomaly}")
    } else {
        first.to_owned()
    };
    let words: Vec<&str> = line.split_whitespace().collect();
    let line = words.join(" ").replace('|', "/").replace('`', "'");
    match line.char_indices().nth(ACCOUNT_CHARS) {
        Some((end, _)) => format!("{} ...", line[..end].trim_end()),
        None => line,
    }
}

/// Writes seeds and table of these bugs; what is known of others stays.
fn record(folder: &Path, rows: &[Row]) -> Result<()> {
    let path = folder.join(SEEDS);
    let old = std::fs::read_to_string(&path).unwrap_or_default();
    let mut found = sim::planted::parse(&old).map_err(anyhow::Error::msg)?;
    found.retain(|found| rows.iter().all(|row| row.bug != found.bug));
    let seen = rows.iter().filter_map(|row| row.seen.as_ref());
    found.extend(seen.map(|(found, ..)| *found));
    std::fs::write(&path, sim::planted::format(&found))?;
    let path = folder.join(PAGE);
    let page = std::fs::read_to_string(&path)?;
    let Some((before, table)) = page.split_once(BEGIN) else {
        bail!("{PAGE} has no line {BEGIN}");
    };
    std::fs::write(&path, format!("{before}{BEGIN}{}", merged(table, rows)))?;
    Ok(())
}

/// The table with these rows in place of those of the same bugs.
fn merged(table: &str, rows: &[Row]) -> String {
    let mut out = "\n\n| bug | what it does | seen by | seed | runs | as |\n\
                   |---|---|---|---|---|---|\n"
        .to_owned();
    for bug in Planted::ALL {
        let name = format!("| `{}` |", bug.name());
        let old = table.lines().find(|line| line.starts_with(&name));
        let new = rows.iter().find(|row| row.bug == *bug);
        match (new.and_then(|row| row.seen.as_ref()), old) {
            (Some((found, runs, text)), _) => writeln!(
                out,
                "{name} {} | {} | {} | {runs} | {text} |",
                bug.about(),
                found.workload,
                found.seed
            ),
            (None, Some(old)) if new.is_none() => writeln!(out, "{old}"),
            // Neither looked for now nor before: nothing is known of it.
            (None, None) if new.is_none() => continue,
            (None, _) => writeln!(out, "{name} {} | | | | not seen |", bug.about()),
        }
        .expect("a string takes all");
    }
    out
}

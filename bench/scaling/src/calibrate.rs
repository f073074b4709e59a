//! `trellis sim calibrate`: what this machine takes for the work that the scale model weighs.
//!
//! The machines of a small cluster run in this process, with a real clock read around every step.
//! The same run happens several times; a step counts with the shortest of its times: what else the
//! machine was doing only ever adds. Then a fixed cost for every kind of step and one for
//! every unit of what it did are fitted to all of them, none below zero, by least squares.

use crate::CostFile;
use anyhow::{Context, Result, anyhow, ensure};
use clap::Args;
use serde_json::{Map, Value, json};
use sim::scale::{AMOUNTS, CostTable, Mix, ScaleOptions, Spread, Stopwatch, System, Work};
use sim::scale::{Unit, measure};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Instant;

/// Arguments of `trellis sim calibrate`.
#[derive(Args)]
pub struct CalibrateArgs {
    /// Where the costs go
    file: PathBuf,
    /// Times that the run is repeated
    #[arg(long, default_value_t = 5)]
    passes: usize,
    /// Virtual seconds of each run
    #[arg(long, default_value_t = 0.5)]
    seconds: f64,
    /// Directory on the disk whose flushes count
    #[arg(long, value_name = "DIR", default_value = ".")]
    disk: PathBuf,
    /// A flush of nothing that the file says, microseconds [default: what --disk takes]
    #[arg(long)]
    flush_us: Option<f64>,
    /// One-way delay between nodes that the file says, microseconds: it is not measured here
    #[arg(long, default_value_t = 50)]
    link_delay_us: u64,
    /// Link of a node that the file says, megabits per second
    #[arg(long, value_name = "MBIT", default_value_t = 10_000)]
    bandwidth: u64,
}

/// Carries out `trellis sim calibrate`.
pub fn run(args: &CalibrateArgs) -> Result<()> {
    ensure!(args.passes > 0, "--passes is 1 or more");
    let mut out = std::io::stdout().lock();
    let (frame_ns, round_ns) = system_ns()?;
    writeln!(
        out,
        "system: {frame_ns:.0} ns to send or take a frame over loopback"
    )?;
    let (measured_ns, flush_byte_ns) = flush_ns(&args.disk)?;
    let flush_ns = args.flush_us.map_or(measured_ns, |us| us * 1_000.0);
    writeln!(
        out,
        "disk: {:.0} us a flush of 4 KiB",
        (flush_ns + 4096.0 * flush_byte_ns) / 1e3
    )?;

    let rough = rough(args, flush_ns);
    let mut samples = Samples::default();
    let steps = Mix::Ycsb { steps: 1, ops: 8 };
    for system in [System::Interleaved, System::Leap] {
        for mix in [Mix::TpccFull, Mix::TpccPair, steps] {
            samples.add(watched(args, &rough, mix, system, 1)?);
        }
    }
    for returning in [false, true] {
        let counter = Mix::Counter {
            block: returning,
            returning,
        };
        samples.add(watched(args, &rough, counter, System::Leap, 1)?);
    }
    let coding_ns = samples.coding_ns();
    let mut table = samples.fit(&rough);
    table.frame_ns = coding_ns + frame_ns;
    table.coding_ns = coding_ns;
    table.client_round_ns = round_ns;
    (table.flush_ns, table.flush_byte_ns) = (flush_ns, flush_byte_ns);
    writeln!(out, "coding: {coding_ns:.0} ns a message at each end")?;

    // What has not been fitted to: another seed.
    let mut other = Samples::default();
    for system in [System::Interleaved, System::Leap] {
        other.add(watched(args, &rough, Mix::TpccFull, system, 2)?);
    }
    let fit = json!({
        "steps": samples.steps.len(),
        "r_squared": rounded(samples.r_squared(&table)),
        "predicted_over_measured": rounded(samples.ratio(&table)),
        "another_seed_predicted_over_measured": rounded(other.ratio(&table)),
        "another_seed_r_squared": rounded(other.r_squared(&table)),
        "mean_error_of_a_step_ns": samples.mean_error_ns(&table).round(),
        "by_kind": samples.by_kind(&table),
    });
    writeln!(out, "{}", serde_json::to_string_pretty(&fit)?)?;
    let file = CostFile {
        machine: machine()?,
        table,
        fit,
    };
    let text = serde_json::to_string_pretty(&file.json())?;
    std::fs::write(&args.file, text + "\n")
        .with_context(|| format!("cannot write {}", args.file.display()))?;
    writeln!(
        out,
        "costs of {} are in {}",
        file.machine,
        args.file.display()
    )?;
    Ok(())
}

fn rounded(value: f64) -> f64 {
    (value * 1_000.0).round() / 1_000.0
}

/// Costs under which the steps to measure happen: near enough for queues like real ones.
fn rough(args: &CalibrateArgs, flush_ns: f64) -> CostTable {
    CostTable {
        kinds: [("any".to_owned(), 3_000.0)].into(),
        frame_ns: 5_000.0,
        coding_ns: 1_000.0,
        client_round_ns: 5_000.0,
        flush_ns,
        link_ns: args.link_delay_us * 1_000,
        link_bytes_per_s: args.bandwidth * 1_000_000 / 8,
        local_ns: 2_000,
        client_ns: 20_000,
        ..CostTable::default()
    }
}

/// A step and its shortest time.
struct Step {
    kind: &'static str,
    /// Kinds of the messages behind the first, in a step that takes several.
    further: Vec<&'static str>,
    amounts: [u64; AMOUNTS.len()],
    ns: f64,
}

impl Step {
    fn kinds(&self) -> impl Iterator<Item = &'static str> {
        [self.kind].into_iter().chain(self.further.iter().copied())
    }
}

/// Steps, and times to encode or decode a frame: of one pass, or all that costs are fitted to.
#[derive(Default)]
struct Samples {
    steps: Vec<Step>,
    coding_ns: Vec<f64>,
}

/// The real clock around steps.
struct Watch {
    began: Instant,
    took_ns: f64,
    pass: Rc<RefCell<Samples>>,
}

impl Watch {
    fn passed_ns(&self) -> f64 {
        self.began.elapsed().as_nanos() as f64
    }
}

impl Stopwatch for Watch {
    fn begins(&mut self) {
        self.began = Instant::now();
    }
    fn step_ended(&mut self) {
        self.took_ns = self.passed_ns();
    }
    fn step_was(&mut self, work: &Work) {
        self.pass.borrow_mut().steps.push(Step {
            kind: work.kind,
            further: work.further.clone(),
            amounts: work.amounts,
            ns: self.took_ns,
        });
    }
    fn coding_ended(&mut self, messages: usize) {
        let took = self.passed_ns() / messages.max(1) as f64;
        self.pass.borrow_mut().coding_ns.push(took);
    }
}

/// Runs a small cluster several times; its steps with the shortest of their times.
fn watched(
    args: &CalibrateArgs,
    table: &CostTable,
    mix: Mix,
    system: System,
    seed: u64,
) -> Result<Samples> {
    let options = ScaleOptions {
        nodes: 3,
        shards: 2,
        system,
        mix,
        spread: Spread {
            unit: Unit::Access,
            ..Spread::new(Vec::new(), 20)
        },
        clients_per_node: 8,
        settings: Vec::new(),
        paced: false,
        warehouses_per_node: 4,
        items: 1_000,
        customers: 30,
        warmup_us: 100_000,
        run_us: (args.seconds * 1e6) as u64,
        slices: 1,
        seed,
    };
    let mut passes = Vec::new();
    for _ in 0..args.passes {
        let pass = Rc::new(RefCell::new(Samples::default()));
        let watch = Watch {
            began: Instant::now(),
            took_ns: 0.0,
            pass: pass.clone(),
        };
        let measured = measure(&options, table, Some(Box::new(watch)));
        measured.map_err(|text| anyhow!("{text}"))?;
        passes.push(pass.take());
    }
    let mut first = passes.swap_remove(0);
    for pass in &passes {
        let same = pass.steps.len() == first.steps.len();
        ensure!(same, "two runs of one seed had different steps");
    }
    for (at, step) in first.steps.iter_mut().enumerate() {
        let others = passes.iter().map(|pass| pass.steps[at].ns);
        step.ns = others.fold(step.ns, f64::min);
    }
    for (at, ns) in first.coding_ns.iter_mut().enumerate() {
        let others = passes.iter().map(|pass| pass.coding_ns[at]);
        *ns = others.fold(*ns, f64::min);
    }
    Ok(first)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

impl Samples {
    fn add(&mut self, pass: Samples) {
        self.steps.extend(pass.steps);
        self.coding_ns.extend(pass.coding_ns);
    }

    /// Mean time to encode or decode a message of a frame.
    fn coding_ns(&self) -> f64 {
        self.coding_ns.iter().sum::<f64>() / self.coding_ns.len().max(1) as f64
    }

    /// Least squares with no cost below zero: one unknown after the other, again and again.
    fn fit(&self, rough: &CostTable) -> CostTable {
        let mut kinds: BTreeMap<&'static str, usize> = BTreeMap::new();
        for step in &self.steps {
            for kind in step.kinds() {
                kinds.entry(kind).or_default();
            }
        }
        for (at, index) in kinds.values_mut().enumerate() {
            *index = at;
        }
        let size = kinds.len() + AMOUNTS.len();
        let mut square = vec![vec![0.0; size]; size];
        let mut right = vec![0.0; size];
        for step in &self.steps {
            let amounts = step.amounts.iter().enumerate();
            let amounts = amounts.map(|(at, count)| (kinds.len() + at, *count as f64));
            let amounts = amounts.filter(|(_, count)| *count > 0.0);
            let mut of_kinds: BTreeMap<usize, f64> = BTreeMap::new();
            for kind in step.kinds() {
                *of_kinds.entry(kinds[kind]).or_default() += 1.0;
            }
            let known: Vec<(usize, f64)> = of_kinds.into_iter().chain(amounts).collect();
            for &(row, one) in &known {
                right[row] += one * step.ns;
                for &(column, two) in &known {
                    square[row][column] += one * two;
                }
            }
        }
        let found = solve(&square, &right);
        let mut table = rough.clone();
        table.kinds = kinds
            .iter()
            .map(|(name, at)| ((*name).to_owned(), found[*at]))
            .collect();
        table.amounts.copy_from_slice(&found[kinds.len()..]);
        table
    }

    fn predicted(&self, table: &CostTable) -> impl Iterator<Item = (&Step, f64)> {
        let mean = table.kinds.values().sum::<f64>() / table.kinds.len().max(1) as f64;
        self.steps.iter().map(move |step| {
            let fixed = |kind| table.kinds.get(kind).copied().unwrap_or(mean);
            let fixed: f64 = step.kinds().map(fixed).sum();
            let amounts = step.amounts.iter().zip(&table.amounts);
            let more: f64 = amounts.map(|(count, each)| *count as f64 * each).sum();
            (step, fixed + more)
        })
    }

    /// The share of the variance that the table explains.
    fn r_squared(&self, table: &CostTable) -> f64 {
        let mean = self.steps.iter().map(|step| step.ns).sum::<f64>() / self.steps.len() as f64;
        let square = |x: f64| x * x;
        let left: f64 = self
            .predicted(table)
            .map(|(step, ns)| square(step.ns - ns))
            .sum();
        let all: f64 = self.steps.iter().map(|step| square(step.ns - mean)).sum();
        1.0 - left / all
    }

    /// Time that the table predicts for all steps together, over the time that they took.
    fn ratio(&self, table: &CostTable) -> f64 {
        let predicted: f64 = self.predicted(table).map(|(_, ns)| ns).sum();
        predicted / self.steps.iter().map(|step| step.ns).sum::<f64>()
    }

    fn mean_error_ns(&self, table: &CostTable) -> f64 {
        let errors = self.predicted(table).map(|(step, ns)| (step.ns - ns).abs());
        errors.sum::<f64>() / self.steps.len() as f64
    }

    /// Steps, their mean, the mean that is predicted and the mean error, by kind.
    fn by_kind(&self, table: &CostTable) -> Value {
        let mut kinds: BTreeMap<&'static str, (f64, f64, f64, f64)> = BTreeMap::new();
        for (step, ns) in self.predicted(table) {
            let kind = kinds.entry(step.kind).or_default();
            kind.0 += 1.0;
            kind.1 += step.ns;
            kind.2 += ns;
            kind.3 += (step.ns - ns).abs();
        }
        let row = |(name, (steps, took, predicted, error)): (&&str, &(f64, f64, f64, f64))| {
            let mean = |sum: f64| (sum / steps).round();
            let row = json!({
                "steps": steps,
                "mean_ns": mean(*took),
                "predicted_ns": mean(*predicted),
                "mean_error_ns": mean(*error),
            });
            ((*name).to_owned(), row)
        };
        Value::Object(kinds.iter().map(row).collect::<Map<_, _>>())
    }
}

/// Rounds of [`solve`]; far more than thirty unknowns need.
const SOLVE_ROUNDS: usize = 20_000;

/// The x >= 0 that minimises x'Ax/2 - b'x, for a positive semidefinite A.
fn solve(square: &[Vec<f64>], right: &[f64]) -> Vec<f64> {
    let mut found = vec![0.0; right.len()];
    for _ in 0..SOLVE_ROUNDS {
        for at in 0..found.len() {
            if square[at][at] == 0.0 {
                continue;
            }
            let row = square[at].iter().zip(&found);
            let sum: f64 = row.map(|(a, x)| a * x).sum();
            found[at] = (found[at] + (right[at] - sum) / square[at][at]).max(0.0);
        }
    }
    found
}

/// Nanoseconds of the system to send or take a frame, and for a client's round: a frame taken and
/// one sent, on a connection of this machine to itself.
fn system_ns() -> Result<(f64, f64)> {
    const FRAMES: u32 = 20_000;
    let listener = TcpListener::bind(("127.0.0.1", 0)).context("a listener on loopback")?;
    let mut here = TcpStream::connect(listener.local_addr()?)?;
    here.set_nodelay(true)?;
    let (mut there, _) = listener.accept()?;
    let mut bytes = [7u8; 200];
    let mut times = Vec::new();
    for _ in 0..FRAMES {
        let began = Instant::now();
        here.write_all(&bytes)?;
        there.read_exact(&mut bytes)?;
        times.push(began.elapsed().as_nanos() as f64);
    }
    // Sending over loopback does the receiving side's protocol work too: half of both is fair.
    let both = median(times);
    Ok((both / 2.0, both))
}

/// Nanoseconds of a flush of nothing, and for each byte more.
fn flush_ns(directory: &Path) -> Result<(f64, f64)> {
    let path = directory.join("trellis-calibrate.tmp");
    let result = time_flushes(&path);
    // Best effort: the file may not have come to be.
    let _ = std::fs::remove_file(&path);
    let (small, large) = result.with_context(|| format!("flushing {}", path.display()))?;
    let byte = ((large - small) / f64::from(LARGE - SMALL)).max(0.0);
    Ok(((small - byte * f64::from(SMALL)).max(0.0), byte))
}

const SMALL: u32 = 4 << 10;
const LARGE: u32 = 256 << 10;
const FLUSHES: u32 = 100;

/// Median times of flushes of few and of many bytes, over zeros that are already there.
fn time_flushes(path: &Path) -> std::io::Result<(f64, f64)> {
    use std::os::unix::fs::FileExt;
    let file = std::fs::File::create(path)?;
    let zeros = vec![0u8; LARGE as usize];
    for at in 0..u64::from(FLUSHES) {
        file.write_all_at(&zeros, at * u64::from(LARGE))?;
    }
    file.sync_all()?;
    let mut medians = [0.0; 2];
    for (slot, size) in medians.iter_mut().zip([SMALL, LARGE]) {
        let bytes = vec![1u8; size as usize];
        let mut times = Vec::new();
        for at in 0..u64::from(FLUSHES) {
            let began = Instant::now();
            file.write_all_at(&bytes, at * u64::from(size))?;
            file.sync_data()?;
            times.push(began.elapsed().as_nanos() as f64);
        }
        *slot = median(times);
    }
    Ok((medians[0], medians[1]))
}

/// This machine, in words.
fn machine() -> Result<String> {
    let cpu = std::fs::read_to_string("/proc/cpuinfo").context("the processor's name")?;
    let name = cpu.lines().find_map(|line| line.strip_prefix("model name"));
    let name = name.map_or("an unnamed processor", |rest| {
        rest.trim_start_matches([' ', '\t', ':'])
    });
    let cores = std::thread::available_parallelism()?;
    let build = match cfg!(debug_assertions) {
        true => "debug build",
        false => "release build",
    };
    Ok(format!("{name}, {cores} cores, {build}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(kind: &'static str, rows: u64, ns: f64) -> Step {
        let mut amounts = [0; AMOUNTS.len()];
        amounts[1] = rows;
        Step {
            kind,
            further: Vec::new(),
            amounts,
            ns,
        }
    }

    #[test]
    fn known_costs_are_found_again() {
        let mut samples = Samples::default();
        for rows in 0..20 {
            samples
                .steps
                .push(step("a", rows, 100.0 + 7.0 * rows as f64));
            samples
                .steps
                .push(step("b", rows, 900.0 + 7.0 * rows as f64));
        }
        let table = samples.fit(&CostTable::default());
        assert!((table.kinds["a"] - 100.0).abs() < 0.01, "{table:?}");
        assert!((table.kinds["b"] - 900.0).abs() < 0.01, "{table:?}");
        assert!((table.amounts[1] - 7.0).abs() < 0.01, "{table:?}");
        assert!(samples.r_squared(&table) > 0.999 && (samples.ratio(&table) - 1.0).abs() < 1e-6);
    }

    #[test]
    fn no_cost_is_below_zero() {
        let mut samples = Samples::default();
        for rows in 0..20 {
            samples
                .steps
                .push(step("a", rows, 500.0 - 7.0 * rows as f64));
        }
        let table = samples.fit(&CostTable::default());
        assert_eq!(table.amounts[1], 0.0);
        assert!(table.kinds["a"] > 400.0);
    }
}

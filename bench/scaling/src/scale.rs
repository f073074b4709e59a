//! `trellis sim scale`: throughput and latency of clusters that are not at hand, by the model of
//! `sim::scale`, as a table, JSON and one HTML page.

use crate::CostFile;
use anyhow::{Context, Result, anyhow, ensure};
use base::Planted;
use charts::{Axes, Series, lines};
use clap::{Args, ValueEnum};
use drive::report::{COLOURS, escape, page};
use serde_json::{Value, json};
use sim::plan::ProtocolKind;
use sim::scale::{CostTable, Mix, Point, ScaleOptions, Spread, System, Unit, measure};
use std::fmt::Write as _;
use std::io::Write;
use std::path::PathBuf;
use std::time::Instant;

/// Arguments of `trellis sim scale`.
#[derive(Args)]
pub struct ScaleArgs {
    /// Transaction protocol of the database: two_phase, leap, formula
    #[arg(long, default_value = "two_phase")]
    protocol: ProtocolKind,
    /// How a shard runs transactions
    #[arg(long, value_enum, default_value = "interleaved")]
    execution: Execution,
    /// Numbers of nodes, separated by commas
    #[arg(long, value_delimiter = ',', default_value = "1,2,4,8",
          value_parser = clap::value_parser!(u16).range(1..=64))]
    nodes: Vec<u16>,
    /// Shards (cores) per node
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=16))]
    shards: u16,
    /// What the clients do
    #[arg(long, value_enum, default_value = "tpcc")]
    workload: ScaleWorkload,
    /// Percentages of transactions that touch another node, separated by commas
    #[arg(long, value_delimiter = ',', default_value = "10",
          value_parser = clap::value_parser!(u64).range(0..=100))]
    remote: Vec<u64>,
    /// What --remote is a percentage of
    #[arg(long, value_enum, default_value = "transactions")]
    of: Share,
    /// Percentage of remote accesses whose rows nobody else uses [default: no such rows]
    #[arg(long, value_parser = clap::value_parser!(u64).range(0..=100))]
    locality: Option<u64>,
    /// Clients per node, each with one transaction at a time
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=30_000))]
    clients_per_node: u32,
    /// Clients make the pauses of the specification: keying and think times
    #[arg(long)]
    paced: bool,
    /// A setting of the clients' sessions; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = setting)]
    set: Vec<(String, String)>,
    /// Warehouses per node (ycsb: parts)
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    warehouses_per_node: u32,
    /// Items, and rows of stock per warehouse (ycsb: rows per part)
    #[arg(long, default_value_t = 1_000)]
    #[arg(value_parser = clap::value_parser!(u32).range(16..=100_000))]
    items: u32,
    /// Customers per district, and orders at the beginning
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=3_000))]
    customers: u32,
    /// Virtual seconds that count
    #[arg(long, default_value_t = 1.0)]
    seconds: f64,
    /// Virtual seconds before
    #[arg(long, default_value_t = 0.2)]
    warmup: f64,
    /// Leave a rule out, to see what it costs: the name of a planted bug (not in a release build)
    #[arg(long, value_name = "BUG", value_parser = bug)]
    plant: Option<Planted>,
    /// Everything random follows from it
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// One-way delay between nodes, microseconds [default: of the costs]
    #[arg(long)]
    link_delay_us: Option<u64>,
    /// A node's link, megabits per second in each direction; 0: no limit [default: of the costs]
    #[arg(long, value_name = "MBIT")]
    bandwidth: Option<u64>,
    /// A flush of nothing, microseconds [default: of the costs]
    #[arg(long)]
    flush_us: Option<f64>,
    /// Costs as `trellis sim calibrate` writes them [default: those in this program]
    #[arg(long, value_name = "FILE")]
    costs: Option<PathBuf>,
    /// Where the points go as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Where the curves go as one HTML page
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Execution {
    /// Transactions interleave; rows are locked
    Interleaved,
    /// A transaction has its shards to itself
    Serial,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Share {
    /// Transactions: one access of theirs is remote
    Transactions,
    /// Lines of NewOrder and customers of Payment, each by itself
    Accesses,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ScaleWorkload {
    /// NewOrder and Payment, half and half
    Tpcc,
    /// All five transactions of TPC-C
    TpccFull,
    /// StockLevel of the home and, for the remote share, of one other node's warehouse
    StockLevels,
    /// Eight single-row reads or updates in one round
    Ycsb,
    /// One record of 1 KB read (95 %) or changed, in a transaction of its own
    RecordRead,
    /// The same, half and half
    RecordWrite,
    /// One hot counter and one cold one on another node
    HotCold,
}

impl ScaleArgs {
    fn system(&self) -> System {
        match (self.protocol, self.execution) {
            (ProtocolKind::Leap, _) => System::Leap,
            (ProtocolKind::Formula, _) => System::Formula,
            (ProtocolKind::TwoPhase, Execution::Interleaved) => System::Interleaved,
            (ProtocolKind::TwoPhase, Execution::Serial) => System::Serial,
        }
    }

    fn spread(&self, remote_percent: u64) -> Spread {
        Spread {
            unit: match self.of {
                Share::Transactions => Unit::Transaction,
                Share::Accesses => Unit::Access,
            },
            locality_percent: self.locality,
            ..Spread::new(Vec::new(), remote_percent)
        }
    }
}

/// Reads `NAME=VALUE`. The server checks both when the clients connect.
fn setting(text: &str) -> Result<(String, String), String> {
    let pair = text.split_once('=').filter(|(name, _)| !name.is_empty());
    let (name, value) = pair.ok_or("a setting is NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

/// Reads the name of a planted bug.
fn bug(text: &str) -> Result<Planted, String> {
    Planted::find(text).ok_or_else(|| format!("no bug is called {text:?}"))
}

/// A point with its place on the curves.
struct Measured {
    options: ScaleOptions,
    point: Point,
    wall_s: f64,
}

/// Carries out `trellis sim scale`.
pub fn run(args: &ScaleArgs) -> Result<()> {
    let is_tpcc = matches!(args.workload, ScaleWorkload::Tpcc | ScaleWorkload::TpccFull);
    ensure!(is_tpcc || !args.paced, "--paced is for tpcc and tpcc-full");
    ensure!(
        args.workload != ScaleWorkload::HotCold || args.nodes.iter().all(|nodes| *nodes > 1),
        "hot-cold is for two nodes and more"
    );
    ensure!(
        args.protocol == ProtocolKind::TwoPhase || args.execution == Execution::Interleaved,
        "--execution serial is one of two_phase"
    );
    let whole = |seconds: f64| seconds.is_finite() && (0.0..=3_600.0).contains(&seconds);
    ensure!(
        whole(args.seconds) && whole(args.warmup) && args.seconds > 0.0,
        "--seconds and --warmup are seconds of at most an hour"
    );
    ensure!(base::plant(args.plant), "this build has no planted bugs");
    let file = costs(args)?;
    let mut out = std::io::stdout().lock();
    write!(out, "{}", honest(args, &file))?;
    writeln!(out, "{HEAD}")?;
    let mut all = Vec::new();
    for &remote_percent in &args.remote {
        for &nodes in &args.nodes {
            let measured = one(args, &file.table, nodes, remote_percent)?;
            writeln!(out, "{}", line(&measured))?;
            out.flush()?;
            all.push(measured);
        }
    }
    if let Some(path) = &args.json {
        let points: Vec<Value> = all.iter().map(point_json).collect();
        let text = json!({ "costs": file.json(), "points": points });
        write_file(path, &serde_json::to_string_pretty(&text)?)?;
    }
    if let Some(path) = &args.report {
        write_file(path, &html(args, &file, &all))?;
    }
    Ok(())
}

fn write_file(path: &PathBuf, text: &str) -> Result<()> {
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

fn costs(args: &ScaleArgs) -> Result<CostFile> {
    let mut file = CostFile::of_option(args.costs.as_deref())?;
    let table = &mut file.table;
    if let Some(us) = args.link_delay_us {
        table.link_ns = us * 1_000;
    }
    if let Some(megabits) = args.bandwidth {
        table.link_bytes_per_s = megabits * 1_000_000 / 8;
    }
    if let Some(us) = args.flush_us {
        table.flush_ns = us * 1_000.0;
    }
    Ok(file)
}

fn one(args: &ScaleArgs, table: &CostTable, nodes: u16, remote_percent: u64) -> Result<Measured> {
    let options = ScaleOptions {
        nodes,
        shards: args.shards,
        system: args.system(),
        mix: match args.workload {
            ScaleWorkload::Tpcc => Mix::TpccPair,
            ScaleWorkload::TpccFull => Mix::TpccFull,
            ScaleWorkload::StockLevels => Mix::StockLevels,
            ScaleWorkload::Ycsb => Mix::Ycsb { steps: 1, ops: 8 },
            ScaleWorkload::RecordRead => Mix::Record { read_percent: 95 },
            ScaleWorkload::RecordWrite => Mix::Record { read_percent: 50 },
            ScaleWorkload::HotCold => Mix::HotCold,
        },
        spread: args.spread(remote_percent),
        clients_per_node: args.clients_per_node,
        settings: args.set.clone(),
        paced: args.paced,
        warehouses_per_node: args.warehouses_per_node,
        items: args.items,
        customers: args.customers,
        warmup_us: (args.warmup * 1e6) as u64,
        run_us: (args.seconds * 1e6) as u64,
        slices: 1,
        seed: args.seed,
    };
    let began = Instant::now();
    let measured = measure(&options, table, None);
    let point = measured.map_err(|text| anyhow!("{nodes} nodes: {text}"))?;
    Ok(Measured {
        options,
        point,
        wall_s: began.elapsed().as_secs_f64(),
    })
}

/// What is modelled and what is not.
fn honest(args: &ScaleArgs, file: &CostFile) -> String {
    let table = &file.table;
    let size = match args.workload {
        ScaleWorkload::Ycsb | ScaleWorkload::RecordRead | ScaleWorkload::RecordWrite => {
            format!("{} rows in each part", args.items)
        }
        ScaleWorkload::HotCold => "a counter for each warehouse".to_owned(),
        ScaleWorkload::Tpcc | ScaleWorkload::TpccFull | ScaleWorkload::StockLevels => format!(
            "a warehouse has 10 districts, {} customers in each, {} items \
             (the specification: 3000 and 100000)",
            args.customers, args.items
        ),
    };
    let settings = args.set.iter();
    let settings: String = settings
        .map(|(name, value)| format!("; {name} = {value}"))
        .collect();
    let planted = args
        .plant
        .map_or(String::new(), |bug| format!("; planted: {}", bug.name()));
    format!(
        "A model, not a measurement: the machine of the server in virtual time, with costs of \
         {}.\n\
         modelled: cores ({} per node; a step's fixed cost by kind, statements, rows, journal, \
         messages), {:.1} us of a core per\n  \
         frame and end, {:.1} us per round of a client, link {} us one way and {}, flush {:.0} us \
         and {:.2} us/KiB, group commit\n\
         not modelled: caches and memory, one core's effect on another, the system's scheduler, \
         checkpoints, cost per byte of\n  frames and of clients' messages\n\
         size: {size}; {} warehouses (parts) and {} clients per node, closed loop, {}; \
         {} s after {} s{settings}{planted}\n\n",
        file.machine,
        args.shards,
        table.frame_ns / 1e3,
        table.client_round_ns / 1e3,
        table.link_ns / 1_000,
        match table.link_bytes_per_s {
            0 => "no limit".to_owned(),
            rate => format!("{} Mbit/s", rate * 8 / 1_000_000),
        },
        table.flush_ns / 1e3,
        table.flush_byte_ns * 1.024,
        args.warehouses_per_node,
        args.clients_per_node,
        match args.paced {
            true => "keying and think times of the specification",
            false => "no pauses",
        },
        args.seconds,
        args.warmup,
    )
}

const HEAD: &str = "remote % nodes       tx/s  tx/s/node  p50 ms  p95 ms  p99 ms  frames/tx \
     bytes/tx  forced/tx flushes/tx  retries/tx  CPU %  distributed %   wall s";

/// Numbers of a point that are shown everywhere.
struct Row {
    per_s: f64,
    cpu: Vec<f64>,
    per_tx: PerTx,
    distributed: f64,
}

/// Averages over committed transactions.
struct PerTx {
    frames: f64,
    bytes: f64,
    forced: f64,
    flushes: f64,
    retries: f64,
}

fn row(measured: &Measured) -> Row {
    let Measured { options, point, .. } = measured;
    let seconds = options.run_us as f64 / 1e6;
    let commits = point.commits();
    let each = |count: u64| count as f64 / commits.max(1) as f64;
    let cores_ns = seconds * 1e9 * f64::from(options.shards);
    let counted = point.counters.txn_committed.max(1) as f64;
    Row {
        per_s: commits as f64 / seconds,
        cpu: point
            .usage
            .busy_ns
            .iter()
            .map(|ns| *ns as f64 / cores_ns)
            .collect(),
        per_tx: PerTx {
            frames: each(point.usage.frames),
            bytes: each(point.usage.frame_bytes),
            forced: each(point.counters.forced_writes),
            flushes: each(point.usage.flushes),
            retries: each(point.retries),
        },
        distributed: point.counters.txn_distributed as f64 / counted,
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

fn ms(ns: u64) -> f64 {
    ns as f64 / 1e6
}

fn line(measured: &Measured) -> String {
    let Measured { options, point, .. } = measured;
    let row = row(measured);
    format!(
        "{:>8} {:>5} {:>10.0} {:>10.0} {:>7.2} {:>7.2} {:>7.2} {:>10.2} {:>8.0} {:>10.2} \
         {:>10.2} {:>11.3} {:>6.1} {:>14.1} {:>8.1}",
        options.spread.remote_percent,
        options.nodes,
        row.per_s,
        row.per_s / f64::from(options.nodes),
        ms(point.latency_ns(500)),
        ms(point.latency_ns(950)),
        ms(point.latency_ns(990)),
        row.per_tx.frames,
        row.per_tx.bytes,
        row.per_tx.forced,
        row.per_tx.flushes,
        row.per_tx.retries,
        mean(&row.cpu) * 100.0,
        row.distributed * 100.0,
        measured.wall_s,
    )
}

fn point_json(measured: &Measured) -> Value {
    let Measured { options, point, .. } = measured;
    let row = row(measured);
    let counters: serde_json::Map<String, Value> = point
        .counters
        .list()
        .map(|(name, value)| (name.to_owned(), json!(value)))
        .collect();
    let kinds: serde_json::Map<String, Value> = point
        .usage
        .kinds
        .iter()
        .map(|(name, (steps, ns))| ((*name).to_owned(), json!({ "steps": steps, "ns": ns })))
        .collect();
    json!({
        "nodes": options.nodes,
        "shards_per_node": options.shards,
        "mix": mix_name(options.mix),
        "system": options.system.name(),
        "remote_percent": options.spread.remote_percent,
        "clients_per_node": options.clients_per_node,
        "warehouses_per_node": options.warehouses_per_node,
        "items": options.items,
        "customers": options.customers,
        "seconds": options.run_us as f64 / 1e6,
        "seed": options.seed,
        "committed_per_s": row.per_s,
        "committed_by_kind": point.committed,
        "rolled_back": point.rolled_back,
        "retries": point.retries,
        "failures": point.failures,
        "row_bytes_by_node": point.row_bytes,
        "latency_us": {
            "mean": point.latency_mean_ns() / 1_000,
            "p50": point.latency_ns(500) / 1_000,
            "p95": point.latency_ns(950) / 1_000,
            "p99": point.latency_ns(990) / 1_000,
            "p999": point.latency_ns(999) / 1_000,
        },
        "frames_per_tx": row.per_tx.frames,
        "frame_bytes_per_tx": row.per_tx.bytes,
        "forced_writes_per_tx": row.per_tx.forced,
        "flushes_per_tx": row.per_tx.flushes,
        "flush_bytes": point.usage.flush_bytes,
        "distributed_share": row.distributed,
        "cpu_by_node": row.cpu,
        "steps": kinds,
        "counters": counters,
    })
}

fn mix_name(mix: Mix) -> &'static str {
    match mix {
        Mix::TpccPair => "tpcc NewOrder+Payment",
        Mix::TpccFull => "tpcc all five",
        Mix::StockLevels => "dike d_stock_level",
        Mix::Ycsb { .. } => "ycsb",
        Mix::Counter { .. } => "counter",
        Mix::HotCold => "hot and cold counter",
        Mix::Record { .. } => "records",
    }
}

/// A chart: its title, the value of a point, and how it is written on the axis.
type Curve = (&'static str, fn(&Measured) -> f64, fn(f64) -> String);

fn html(args: &ScaleArgs, file: &CostFile, all: &[Measured]) -> String {
    let mut body = format!("<pre>{}</pre>", escape(&honest(args, file)));
    let charts: [Curve; 3] = [
        (
            "committed per second",
            |m| row(m).per_s,
            |y| format!("{y:.0}"),
        ),
        (
            "p99, ms",
            |m| ms(m.point.latency_ns(990)),
            |y| format!("{y:.2}"),
        ),
        (
            "CPU, %",
            |m| mean(&row(m).cpu) * 100.0,
            |y| format!("{y:.0}"),
        ),
    ];
    for (y_title, value, y_label) in charts {
        let _ = write!(body, "<h2>{y_title}</h2>");
        let axes = Axes {
            x_title: "nodes",
            y_title,
            log_y: false,
            x_labels: args
                .nodes
                .iter()
                .map(|n| (f64::from(*n), n.to_string()))
                .collect(),
            y_label,
            measured_from: None,
        };
        let curve = |(at, remote): (usize, &u64)| Series {
            name: format!("{remote} % remote"),
            colour: COLOURS[at % COLOURS.len()],
            points: all
                .iter()
                .filter(|m| m.options.spread.remote_percent == *remote)
                .map(|m| (f64::from(m.options.nodes), value(m)))
                .collect(),
        };
        let series: Vec<Series> = args.remote.iter().enumerate().map(curve).collect();
        body.push_str(&lines(&axes, &series));
    }
    let table: Vec<String> = all.iter().map(line).collect();
    let _ = write!(
        body,
        "<h2>Points</h2><pre style=\"overflow-x:auto\">{HEAD}\n{}</pre>",
        table.join("\n")
    );
    page("Scale model", &body)
}

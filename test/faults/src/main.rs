//! Faults on a real cluster: nodes are killed, stopped and parted from each other while clients
//! work. A client whose row is on a live node waits at most until the fault is detected, and one
//! second more.
//!
//! ```text
//! unshare --net faults TRELLIS PROTOCOL FOLDER [--seconds N] [--csv FOLDER] [--plots FOLDER]
//! ```
//!
//! The program changes the packet filter and brings the loopback interface up, so it runs in a
//! network namespace of its own. The last line counts: `faults: N passed, N failed`.
#![expect(
    clippy::print_stdout,
    reason = "what a test program prints is its product"
)]

mod clients;
mod cluster;
mod judge;
mod series;

use anyhow::{Context, Result, bail, ensure};
use clients::Shared;
use cluster::{Cluster, Fault, NODES};
use judge::{Change, Episode};
use series::Series;
use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio_postgres::Client;

/// Loops per node.
const LOOPS: u64 = 4;
/// Pause between two faults, and before the first one.
const CALM: Duration = Duration::from_secs(3);
/// Time from the beginning of a fault to the schema change.
const CHANGE_AFTER: Duration = Duration::from_millis(300);
/// Longest wait for the end of a schema change.
const CHANGE_WAIT: Duration = Duration::from_secs(4);
/// Longest time from the start until all nodes answer.
const START_LIMIT: Duration = Duration::from_secs(60);

struct Options {
    program: PathBuf,
    protocol: String,
    folder: PathBuf,
    /// Length of each fault.
    seconds: u64,
    /// Folders of the time series, for PROTOCOL.csv and PROTOCOL.svg.
    csv: Option<PathBuf>,
    plots: Option<PathBuf>,
}

fn options() -> Result<Options> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [program, protocol, folder, rest @ ..] = args.as_slice() else {
        bail!(
            "usage: faults TRELLIS PROTOCOL FOLDER [--seconds N] [--csv FOLDER] [--plots FOLDER]"
        );
    };
    let mut options = Options {
        program: program.into(),
        protocol: protocol.clone(),
        folder: folder.into(),
        seconds: 5,
        csv: None,
        plots: None,
    };
    for pair in rest.chunks(2) {
        match pair {
            [flag, value] if flag == "--seconds" => {
                options.seconds = value.parse().context("--seconds wants a whole number")?;
            }
            [flag, value] if flag == "--csv" => options.csv = Some(value.into()),
            [flag, value] if flag == "--plots" => options.plots = Some(value.into()),
            other => bail!("unknown option {}", other.join(" ")),
        }
    }
    ensure!(options.seconds >= 3, "a fault takes 3 seconds at least");
    Ok(options)
}

fn main() -> ExitCode {
    let run = || -> Result<bool> {
        let options = options()?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let local = tokio::task::LocalSet::new();
        local.block_on(&runtime, go(options))
    };
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            println!("faults: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn go(options: Options) -> Result<bool> {
    let mut cluster = Cluster::start(&options.program, &options.folder)?;
    let client = first_client().await?;
    let protocol = &options.protocol;
    let sql = format!("CREATE DATABASE faults WITH (protocol = '{protocol}')");
    client.batch_execute(&sql).await?;
    let client = clients::connect(1, "faults")
        .await
        .context("cannot connect")?;
    clients::load(&client).await?;
    let shared = Rc::new(Shared {
        start: Instant::now(),
        samples: RefCell::new(Vec::new()),
        stop: RefCell::new(false),
    });
    let mut tasks = Vec::new();
    for node in 1..=NODES {
        for number in 0..LOOPS {
            let seed = u64::from(node) * 100 + number;
            let shared = Rc::clone(&shared);
            tasks.push(tokio::task::spawn_local(clients::client(
                shared, node, NODES, seed,
            )));
        }
    }
    let mut episodes = Vec::new();
    let length = Duration::from_secs(options.seconds);
    for (number, fault) in Fault::ALL.into_iter().enumerate() {
        tokio::time::sleep(CALM).await;
        println!(
            "{:>6.1} s  {}",
            shared.start.elapsed().as_secs_f64(),
            fault.name()
        );
        let begin = shared.start.elapsed();
        cluster.hurt(fault)?;
        let change = schema_change(&shared, number).await;
        let passed = shared.start.elapsed() - begin;
        tokio::time::sleep(length.saturating_sub(passed)).await;
        cluster.heal(fault)?;
        let end = shared.start.elapsed();
        episodes.push(Episode {
            fault,
            begin,
            end,
            change,
        });
    }
    tokio::time::sleep(CALM).await;
    *shared.stop.borrow_mut() = true;
    for task in tasks {
        let ended = tokio::time::timeout(Duration::from_secs(30), task).await;
        ended.context("a client waits without end")??;
    }
    cluster.check()?;
    let samples = shared.samples.borrow();
    let series = Series::of(&samples, &episodes);
    if let Some(folder) = &options.csv {
        write(folder, &format!("{protocol}.csv"), &series.csv())?;
    }
    if let Some(folder) = &options.plots {
        write(folder, &format!("{protocol}.svg"), &series.plots(protocol))?;
    }
    Ok(judge::report(protocol, &samples, &episodes))
}

fn write(folder: &Path, name: &str, text: &str) -> Result<()> {
    std::fs::create_dir_all(folder)?;
    let path = folder.join(name);
    std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
}

/// Waits until every node answers. Returns a client of the first node.
async fn first_client() -> Result<Client> {
    let deadline = Instant::now() + START_LIMIT;
    let mut found = None;
    for node in (1..=NODES).rev() {
        loop {
            ensure!(Instant::now() < deadline, "node {node} does not answer");
            found = clients::connect(node, "postgres").await;
            if found.is_some() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
    found.context("there are no nodes")
}

/// A schema change during the fault, on a connection of its own.
async fn schema_change(shared: &Shared, number: usize) -> Change {
    tokio::time::sleep(CHANGE_AFTER).await;
    let begin = shared.start.elapsed();
    let sql = match number % 2 {
        0 => format!("CREATE INDEX other_{number} ON other (v)"),
        _ => format!("CREATE TABLE made_{number} (id int PRIMARY KEY)"),
    };
    let outcome = match clients::connect(1, "faults").await {
        Some(client) => match tokio::time::timeout(CHANGE_WAIT, client.simple_query(&sql)).await {
            Ok(Ok(_)) => "done".to_string(),
            Ok(Err(error)) => match error.as_db_error() {
                Some(error) => format!("{} {}", error.code().code(), error.message()),
                None => format!("lost: {error}"),
            },
            Err(_) => "no answer".to_string(),
        },
        None => "cannot connect".to_string(),
    };
    Change {
        sql,
        took: shared.start.elapsed() - begin,
        outcome,
    }
}

//! `trellis bench calibrate`: what the client itself costs.

use super::{print_report, rate, screen};
use anyhow::{Context, Result, ensure};
use clap::Args;
use drive::run::RunnerOptions;
use drive::tpcc::{self, RunOptions};
use drive::{outputs, report};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Duration;

#[derive(Args)]
pub(super) struct CalibrateArgs {
    /// Warehouses that the inputs name
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    warehouses: u32,
    /// Terminals of a closed loop, connections of an open loop [default: 16; with --keying ten for
    /// each warehouse]
    #[arg(long)]
    clients: Option<u32>,
    /// Connections that the terminals share [default: one each; with --keying at most 200]
    #[arg(long)]
    connections: Option<u32>,
    /// Open loop: so many transactions are due per second [default: closed loop]
    #[arg(long, value_parser = rate)]
    rate: Option<f64>,
    /// Measured seconds
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// Seconds before the measured phase
    #[arg(long, default_value_t = 2)]
    warmup: u64,
    /// Keying and think times of clause 5.2.5
    #[arg(long)]
    keying: bool,
    /// Where the result goes as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// The echo server, a process of its own: its memory and its processor time are not the client's.
struct Echo {
    process: Child,
    address: String,
}

impl Echo {
    fn start() -> Result<Echo> {
        let program = std::env::current_exe().context("this program's own file")?;
        let mut command = Command::new(program);
        command.args(["bench", "echo"]).stdin(Stdio::piped());
        let mut process = command
            .stdout(Stdio::piped())
            .spawn()
            .context("the echo server")?;
        let mut address = String::new();
        let said = process
            .stdout
            .take()
            .context("the echo server says where it is")?;
        BufReader::new(said).read_line(&mut address)?;
        ensure!(!address.is_empty(), "the echo server has ended at once");
        Ok(Echo {
            process,
            address: address.trim().to_owned(),
        })
    }
}

impl Drop for Echo {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

pub(super) fn echo() -> Result<ExitCode> {
    let listener = TcpListener::bind("127.0.0.1:0").context("the echo server")?;
    let mut out = std::io::stdout().lock();
    writeln!(out, "{}", listener.local_addr()?)?;
    out.flush()?;
    // Whoever has started it holds the other end: it ends with them, however they end.
    std::thread::spawn(|| {
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        std::process::exit(0);
    });
    links::echo::serve(&listener).context("the echo server")?;
    Ok(ExitCode::SUCCESS)
}

pub(super) fn calibrate(args: &CalibrateArgs) -> Result<ExitCode> {
    outputs::check(args.json.as_deref())?;
    let echo = Echo::start()?;
    let clients = match args.keying {
        true => 10 * args.warehouses,
        false => 16,
    };
    let mut options = RunOptions::new(&format!("postgres://echo@{}/echo", echo.address));
    options.keying = args.keying;
    options.runner = RunnerOptions {
        clients: args.clients.unwrap_or(clients),
        connections: args.connections,
        rate: args.rate,
        length: Duration::from_secs(args.seconds),
        warmup: Duration::from_secs(args.warmup),
        ..RunnerOptions::default()
    };
    let found = tpcc::calibrate(&options, args.warehouses, &mut screen())?;
    print_report(&found)?;
    let peak_kib = peak_kib();
    let mut out = std::io::stdout();
    if let Some(kib) = peak_kib {
        writeln!(
            out,
            "client: {:.1} MiB of memory at most",
            kib as f64 / 1024.0
        )?;
    }
    if let Some(path) = &args.json {
        let mut json = report::json(&found);
        json["client"]["peak_kib"] = peak_kib.into();
        let text = serde_json::to_string_pretty(&json)?;
        std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(match found.committed() {
        0 => ExitCode::FAILURE,
        _ => ExitCode::SUCCESS,
    })
}

/// The most memory that this process has had, in KiB.
fn peak_kib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix(" kB")?.trim().parse().ok()
}

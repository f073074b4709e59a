//! TPC-C by our own driver, the same program against both servers.

use super::cells::{Cell, Sample};
use crate::servers::{Server, Trellis};
use crate::{repo, shell};
use anyhow::{Context, Result};
use serde_json::Value;
use std::process::Command;
use std::time::Duration;

const DATABASE: &str = "tpcc";
const WAREHOUSES: &str = "4";
/// Longest time for loading, and what a run with its checks may take beyond its length.
const LOAD_LIMIT: Duration = Duration::from_secs(600);
const RUN_GRACE: Duration = Duration::from_secs(120);

/// Loads the warehouses.
pub(super) fn load(server: &Server) -> Result<()> {
    server.create_database(DATABASE)?;
    let mut command = driver("load", server)?;
    command.args(["--warehouses", WAREHOUSES]);
    let log = repo::cache_dir()?.join("tpcc.log");
    shell::run_logged(&mut command, &log, LOAD_LIMIT)?;
    println!(
        "{}: {WAREHOUSES} warehouses of TPC-C are loaded",
        server.name()
    );
    Ok(())
}

/// Runs the mix in a closed loop. The driver fails when a condition of consistency does.
pub(super) fn sample(cell: &Cell, server: &Server, seconds: u32) -> Result<Sample> {
    let json = repo::cache_dir()?.join("tpcc.json");
    let _ = std::fs::remove_file(&json);
    let mut command = driver("run", server)?;
    command.args(["--clients", &cell.clients.to_string()]);
    command.args([
        "--isolation",
        cell.isolation,
        "--seconds",
        &seconds.to_string(),
    ]);
    command.arg("--json").arg(&json);
    let log = repo::cache_dir()?.join("tpcc.log");
    let limit = Duration::from_secs(u64::from(seconds)) + RUN_GRACE;
    let text = shell::run_logged(&mut command, &log, limit)?;
    let written = std::fs::read_to_string(&json).with_context(|| text.clone())?;
    let value: Value = serde_json::from_str(&written).context("the driver's JSON")?;
    parse(&value).with_context(|| format!("the driver's JSON lacks something\n{written}"))
}

fn driver(command: &str, server: &Server) -> Result<Command> {
    let mut driver = Command::new(Trellis::program()?);
    driver.args([
        "bench",
        command,
        "--workload",
        "tpcc",
        "--url",
        &server.url(DATABASE),
    ]);
    Ok(driver)
}

fn parse(value: &Value) -> Option<Sample> {
    let committed = value["committed"].as_f64()?;
    let retried = value["retried"].as_f64()?;
    let failed = value["failed"].as_f64().unwrap_or(0.0);
    let all = (committed + failed).max(1.0);
    Some(Sample {
        rate: value["new_order_per_min"].as_f64()?,
        latency_ms: value["latency_us"]["p50"].as_f64()? / 1000.0,
        failed_share: failed / all,
        retried_share: retried / all,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_driver_is_understood() {
        let value = json!({
            "committed": 900, "retried": 10, "failed": 100,
            "new_order_per_min": 6000.0, "latency_us": {"p50": 1500},
        });
        let sample = parse(&value).unwrap();
        assert_eq!(
            (sample.rate, sample.latency_ms, sample.failed_share),
            (6000.0, 1.5, 0.1)
        );
        assert!(parse(&json!({})).is_none());
    }
}

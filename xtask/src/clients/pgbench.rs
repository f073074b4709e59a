//! pgbench: initialisation, all built-in scripts in all three ways to send a statement, and the
//! sums that must agree afterwards.

use super::{CLIENT_LIMIT, Ground};
use crate::shell;
use anyhow::{Context, Result, ensure};

/// Transactions of each of the clients.
const PER_CLIENT: usize = 25;
const CLIENTS: usize = 4;

/// Runs everything.
pub(super) fn all(ground: &Ground, database: &str) -> Result<usize> {
    let mut init = ground.server.client("pgbench", 0, database);
    // Initialisation of its own making (client side), of the server's, with foreign keys.
    init.args(["-i", "-q", "-I", "dtGvpf", "-s", "1"]);
    shell::run_logged(&mut init, &ground.log("pgbench_server_side"), CLIENT_LIMIT)?;
    let mut init = ground.server.client("pgbench", 0, database);
    init.args(["-i", "-q", "-s", "1"]);
    shell::run_logged(&mut init, &ground.log("pgbench_init"), CLIENT_LIMIT)?;
    let mut checks = 2;
    let mut history = 0;
    for script in ["tpcb-like", "simple-update", "select-only"] {
        for mode in ["simple", "extended", "prepared"] {
            // Every way is taken through another node.
            let node = checks % ground.server.ports().len();
            run(ground, database, node, script, mode)
                .with_context(|| format!("{script}, {mode}, node {node}"))?;
            if script != "select-only" {
                history += CLIENTS * PER_CLIENT;
            }
            checks += 1;
        }
    }
    let sums = "SELECT (SELECT count(*) FROM pgbench_history), \
                (SELECT sum(abalance) FROM pgbench_accounts) = \
                (SELECT sum(delta) FROM pgbench_history), \
                (SELECT sum(tbalance) FROM pgbench_tellers) = \
                (SELECT sum(bbalance) FROM pgbench_branches), \
                (SELECT count(*) FROM pgbench_accounts)";
    let mut ask = ground.server.client("psql", 0, database);
    let answer = shell::output(ask.args(["-X", "-A", "-t", "-c", sums]))?;
    let expected = format!("{history}|t|t|100000");
    ensure!(
        answer.trim() == expected,
        "sums: {answer}, expected {expected}"
    );
    Ok(checks + 1)
}

fn run(ground: &Ground, database: &str, node: usize, script: &str, mode: &str) -> Result<()> {
    let mut command = ground.server.client("pgbench", node, database);
    command.args([
        "-n",
        "-b",
        script,
        "-M",
        mode,
        "-j",
        "2",
        "--max-tries",
        "100",
    ]);
    command.args(["-c", &CLIENTS.to_string(), "-t", &PER_CLIENT.to_string()]);
    let text = shell::run_logged(&mut command, &ground.log("pgbench_run"), CLIENT_LIMIT)?;
    let done = format!("actually processed: {0}/{0}", CLIENTS * PER_CLIENT);
    ensure!(
        text.contains(&done),
        "not all transactions were processed\n{text}"
    );
    ensure!(
        text.contains("number of failed transactions: 0 "),
        "some failed\n{text}"
    );
    Ok(())
}

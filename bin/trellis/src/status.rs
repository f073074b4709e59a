//! `trellis status`: which nodes of a local cluster run.

use anyhow::{Result, bail};
use clap::Args;
use links::answers::Answers;
use local_cluster::{connect_with, dir, login};
use runtime::NodeEntry;
use std::io::Write;
use std::path::PathBuf;

/// Arguments of `trellis status`.
#[derive(Args)]
#[command(after_help = "The exit code is 1 if a node is down.")]
pub(crate) struct StatusArgs {
    /// Directory of the local cluster
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
}

struct Seen {
    incarnation: String,
    connected: String,
}

/// Prints a line per node; fails if one is down.
pub(crate) fn run(args: &StatusArgs) -> Result<()> {
    let file = dir::existing(&args.data)?;
    let mut out = std::io::stdout();
    writeln!(
        out,
        "node  address                state  incarnation  connected to"
    )?;
    let password = login::password(&args.data);
    let mut down = 0;
    for node in &file.nodes {
        let (state, seen) = match ask(node, password.clone()) {
            Ok(seen) => ("up", seen),
            Err(error) => {
                tracing::info!(node = node.id, "{error:#}");
                down += 1;
                (
                    "down",
                    Seen {
                        incarnation: "-".into(),
                        connected: "-".into(),
                    },
                )
            }
        };
        let (
            address,
            Seen {
                incarnation,
                connected,
            },
        ) = (node.sql.to_string(), seen);
        writeln!(
            out,
            "{:>4}  {address:<21}  {state:<5}  {incarnation:>11}  {connected}",
            node.id
        )?;
    }
    if down > 0 {
        let dir = args.data.display();
        bail!(
            "{down} of {} nodes are down; trellis start --data {dir}",
            file.nodes.len()
        );
    }
    Ok(())
}

/// What a node says of itself and of the nodes that it is connected to.
fn ask(node: &NodeEntry, password: Option<String>) -> Result<Seen> {
    let mut link = connect_with(node, "postgres", password)?;
    let mut answers = Answers::new();
    link.query("SHOW NODES", &mut answers)?;
    let rows = (0..answers.rows(0)).map(|row| {
        let text = |column| answers.text(0, row, column).to_string();
        (text(0), text(2), text(3))
    });
    let rows: Vec<_> = rows.collect();
    link.close();
    let own = node.id.to_string();
    let incarnation = rows
        .iter()
        .find(|row| row.0 == own)
        .map(|row| row.1.clone());
    let others = rows.iter().filter(|row| row.2 == "up" && row.0 != own);
    let connected: Vec<&str> = others.map(|row| row.0.as_str()).collect();
    let connected = if connected.is_empty() {
        "-".into()
    } else {
        connected.join(", ")
    };
    Ok(Seen {
        incarnation: incarnation.unwrap_or_default(),
        connected,
    })
}

//! `trellis sql`: a small interactive client.
//!
//! ```text
//! terminal, file or text -> lines -> lexer -> shell -> connection -> table or report -> screen
//! ```

use crate::connection::Connection;
use crate::database::DatabaseArgs;
use crate::interrupts::Interrupts;
use crate::lines::{Stream, Terminal};
use crate::output::Output;
use crate::shell::{Next, Shell};
use crate::table::Style;
use anyhow::{Context, Result};
use clap::Args;
use links::link::LinkError;
use signal_hook::consts::SIGINT;
use signal_hook::iterator::Signals;
use std::io::{IsTerminal, Write};
use std::path::PathBuf;

/// Arguments of `trellis sql`.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    trellis sql                                  the cluster on the default ports\n  \
    trellis sql --data ./cluster -d shop         a local cluster, database shop\n  \
    trellis sql -c 'SHOW NODES'                  one statement\n  \
    trellis sql --plain -f report.sql > out.tsv  a script, its rows separated by tabs\n\n\
    Statements are also read from standard input if it is no terminal. The first error ends a\n\
    script with exit code 1.")]
pub struct SqlArgs {
    #[command(flatten)]
    database: DatabaseArgs,
    /// Run these statements and end; may be given more than once
    #[arg(short, long, value_name = "STATEMENT", conflicts_with = "file")]
    command: Vec<String>,
    /// Run the statements of a file and end
    #[arg(short, long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Rows only, cells separated by tabs
    #[arg(long)]
    plain: bool,
}

/// Runs the client until its input ends.
///
/// # Errors
/// A statement of a script failed (it has been printed), or no server answers.
pub fn run(args: &SqlArgs) -> Result<()> {
    let interrupts = Interrupts::default();
    let mut connection = Connection::new(args.database.target("trellis sql")?, interrupts.clone());
    let (version, endpoint) = connection
        .server()
        .map_err(|error| no_server(args, error))?;
    on_ctrl_c(interrupts.clone())?;
    let style = match args.plain {
        true => Style::PLAIN,
        false => Style::ALIGNED,
    };
    let mut out = std::io::stdout().lock();
    let mut errors = std::io::stderr();
    let is_script = !args.command.is_empty() || args.file.is_some();
    let is_terminal = std::io::stdin().is_terminal() && !is_script;
    if is_terminal {
        writeln!(
            out,
            "Connected to {endpoint}, server {version}. help tells more, Tab completes."
        )?;
    }
    let has_screen = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    let out = Output::new(&mut out, has_screen, interrupts.clone());
    let mut shell = Shell::new(connection, style, out, &mut errors, interrupts);
    if is_terminal {
        shell.timing = true;
        shell.read(&mut Terminal::open()?)?;
    } else if let Some(path) = &args.file {
        shell.run_file(path)?;
    } else if is_script {
        for text in &args.command {
            if shell.read(&mut Stream(text.as_bytes()))? == Next::Quit {
                break;
            }
        }
    } else {
        shell.read(&mut Stream(std::io::stdin().lock()))?;
    }
    shell.finish()
}

fn no_server(args: &SqlArgs, error: LinkError) -> anyhow::Error {
    match error {
        refused @ LinkError::Server(_) => refused.into(),
        error if args.database.has_url() => anyhow::Error::new(error).context("no server answers"),
        error => anyhow::Error::new(error).context(
            "no server answers; `trellis start --nodes 3 --data DIR` starts a cluster, --url \
             names another",
        ),
    }
}

/// Ctrl-C cancels the statement that runs; without one it ends the client. (While a line is edited
/// the terminal gives Ctrl-C to the editor.)
fn on_ctrl_c(interrupts: Interrupts) -> Result<()> {
    let mut signals = Signals::new([SIGINT]).context("cannot listen for signals")?;
    std::thread::spawn(move || {
        for _ in signals.forever() {
            if !interrupts.hit() {
                std::process::exit(130);
            }
        }
    });
    Ok(())
}

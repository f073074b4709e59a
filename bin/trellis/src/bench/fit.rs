//! `trellis bench fit`: what the results of several runs say together.

use anyhow::{Context, Result, bail};
use clap::Args;
use drive::outputs;
use std::io::Write;
use std::path::PathBuf;
use sweeps::fit::{Measured, fit};

/// Which results.
#[derive(Args)]
#[command(after_help = "Example:\n  \
    trellis bench fit one.json three.json six.json nine.json\n\n\
    Each file is the --json of a closed loop of the same workload on the same server. A size may \
    have several. Runs with faults are told with R_e and T_e, and not fitted. The universal \
    scalability law needs 4 runs of 4 sizes, equation 3 of the paper 2.")]
pub(super) struct FitArgs {
    /// Results of `trellis bench run --json`
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Where the result goes as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Fits and prints.
pub(super) fn run(args: &FitArgs) -> Result<()> {
    outputs::check(args.json.as_deref())?;
    let mut runs = Vec::new();
    for path in &args.files {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {name}"))?;
        match Measured::read(&name, &text) {
            Ok(run) => runs.push(run),
            Err(why) => bail!(why),
        }
    }
    let fitted = fit(runs).map_err(anyhow::Error::msg)?;
    write!(std::io::stdout(), "{}", fitted.table()).context("cannot print the result")?;
    if let Some(path) = &args.json {
        let text = serde_json::to_string_pretty(&fitted.json())?;
        outputs::write(path, &(text + "\n"))?;
    }
    Ok(())
}

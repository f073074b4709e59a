//! `trellis paper`: repeats the evaluation of a paper with this server.
//!
//! Each figure is an experiment with a name. Points that two cores can carry run on a real cluster
//! of three nodes with delayed links; the others in the scale model. What comes out are curves,
//! and ratios within one run: no absolute time is compared with anybody's.

mod cluster;
mod counter;
mod expect;
mod figure;
mod latency;
mod locality;
mod model;
mod nodes;
mod real;
mod remote;
mod steps;
mod threads;

use crate::sim::CostFile;
use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};
use drive::report::{escape, page};
use expect::Expectation;
use figure::Figure;
use model::Model;
use serde_json::json;
use std::fmt::Write as _;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Arguments of `trellis paper`.
#[derive(Args)]
pub(crate) struct PaperArgs {
    #[command(subcommand)]
    command: PaperCommand,
}

#[derive(Subcommand)]
enum PaperCommand {
    /// "Towards a Non-2PC Transaction Management in Distributed Database Systems"
    Leap(LeapArgs),
}

/// Arguments of `trellis paper leap`.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    trellis paper leap                     everything; about an hour on two cores\n  \
    trellis paper leap --quick             the same with 4 nodes and short runs\n  \
    trellis paper leap --figure 9          one (8-17, 20, table1, counter, hotspot, real)\n\n\
    Figure 14.b and the comparison with Tell (18, 19) are left out.")]
struct LeapArgs {
    /// Only this one; may be repeated
    #[arg(long, value_name = "N")]
    figure: Vec<String>,
    /// Fewer nodes and shorter runs: shapes, not numbers
    #[arg(long)]
    quick: bool,
    /// Leave out what runs on a real cluster
    #[arg(long)]
    model_only: bool,
    /// Costs as `trellis sim calibrate` writes them [default: those in this program]
    #[arg(long, value_name = "FILE")]
    costs: Option<PathBuf>,
    /// Where the report goes as one HTML page
    #[arg(long, value_name = "FILE", default_value = "trellis-leap.html")]
    html: PathBuf,
    /// Where the numbers go as JSON
    #[arg(long, value_name = "FILE", default_value = "trellis-leap.json")]
    json: PathBuf,
}

/// What the experiments share.
struct Lab {
    model: Model,
    quick: bool,
    expectations: Vec<Expectation>,
}

impl Lab {
    /// Takes note of an expectation and whether it was met.
    fn expect(&mut self, number: &'static str, wanted: &'static str, found: String, met: bool) {
        self.expectations.push(Expectation {
            number,
            wanted,
            found,
            met: Some(met),
        });
    }

    /// Takes note of a number that nothing is asked of.
    fn report(&mut self, number: &'static str, wanted: &'static str, found: String) {
        self.expectations.push(Expectation {
            number,
            wanted,
            found,
            met: None,
        });
    }
}

/// An experiment: its name on the command line, whether it needs a real cluster, and its code.
struct Experiment {
    id: &'static str,
    on_cluster: bool,
    run: fn(&mut Lab) -> Result<Figure>,
}

const EXPERIMENTS: [Experiment; 15] = [
    model_figure("8", threads::figure_8),
    model_figure("9", remote::figure_9),
    model_figure("table1", remote::table_1),
    model_figure("10", locality::figure_10),
    model_figure("11", steps::figure_11),
    model_figure("12", locality::figure_12),
    model_figure("13", locality::figure_13),
    model_figure("14", nodes::figure_14),
    model_figure("15", remote::figure_15),
    model_figure("16", latency::figure_16),
    model_figure("17", threads::figure_17),
    model_figure("20", remote::figure_20),
    model_figure("counter", counter::counter),
    model_figure("hotspot", counter::hotspot),
    Experiment {
        id: "real",
        on_cluster: true,
        run: real::cluster,
    },
];

const fn model_figure(id: &'static str, run: fn(&mut Lab) -> Result<Figure>) -> Experiment {
    Experiment {
        id,
        on_cluster: false,
        run,
    }
}

/// A line about how far it is.
fn progress(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{text}")?;
    Ok(out.flush()?)
}

/// Carries out `trellis paper`.
pub(crate) fn run(args: &PaperArgs) -> Result<()> {
    let PaperCommand::Leap(args) = &args.command;
    let is_asked = |id: &str| args.figure.is_empty() || args.figure.iter().any(|one| one == id);
    for asked in &args.figure {
        if !EXPERIMENTS.iter().any(|one| one.id == asked) {
            let all: Vec<&str> = EXPERIMENTS.iter().map(|one| one.id).collect();
            bail!(
                "there is no figure {asked} here; there are {}",
                all.join(", ")
            );
        }
    }
    let mut lab = Lab {
        model: Model::new(CostFile::of_option(args.costs.as_deref())?, args.quick),
        quick: args.quick,
        expectations: Vec::new(),
    };
    let mut figures = Vec::new();
    for one in EXPERIMENTS.iter().filter(|one| is_asked(one.id)) {
        if one.on_cluster && args.model_only {
            continue;
        }
        progress(&format!("experiment {}", one.id))?;
        let began = Instant::now();
        let figure = (one.run)(&mut lab).with_context(|| format!("experiment {}", one.id))?;
        progress(&figure.plain())?;
        progress(&format!("  {:.0} s", began.elapsed().as_secs_f64()))?;
        figures.push(figure);
        // After each, so that a long run that ends early has told what it knew.
        write(args, &lab, &figures)?;
    }
    progress("\nExpectations")?;
    for one in &lab.expectations {
        progress(&one.plain())?;
    }
    progress(&format!("\nreport: {}", args.html.display()))
}

fn write(args: &LeapArgs, lab: &Lab, figures: &[Figure]) -> Result<()> {
    let value = json!({
        "paper": "leap",
        "quick": lab.quick,
        "costs": lab.model.costs.json(),
        "figures": figures.iter().map(Figure::json).collect::<Vec<_>>(),
        "expectations": lab.expectations.iter().map(Expectation::json).collect::<Vec<_>>(),
    });
    write_file(&args.json, &(serde_json::to_string_pretty(&value)? + "\n"))?;
    let mut body = String::from(
        "<p>Figures of the evaluation, redrawn from numbers of this server. leap is what the \
         paper calls L-Store; two_phase serial runs a shard the H-Store way; two_phase \
         interleaved is the baseline that the paper does not have. Ratios within one run count, \
         never an absolute number.</p>",
    );
    if lab.quick {
        body.push_str("<p class=\"bad\">A quick run: shapes, not numbers.</p>");
    }
    body.push_str(&expect::html(&lab.expectations));
    figures
        .iter()
        .for_each(|figure| body.push_str(&figure.html()));
    let _ = write!(
        body,
        "<h2>Model</h2><p>{}</p>",
        escape(&lab.model.describe())
    );
    write_file(&args.html, &page("LEAP, repeated", &body))
}

fn write_file(path: &Path, text: &str) -> Result<()> {
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

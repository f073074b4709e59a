//! `trellis paper`: repeats the evaluation of a paper with this server.
//!
//! Each figure is an experiment with a name. Points that two cores can carry run on a real cluster
//! of three nodes with delayed links; the others in the scale model. What comes out are curves,
//! and ratios within one run: no absolute time is compared with anybody's.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod cluster;
mod counter;
mod expect;
mod figure;
mod ground;
mod latency;
mod locality;
mod model;
mod nodes;
mod plan;
mod real;
mod remote;
mod steps;
mod threads;
mod transfers;

use anyhow::{Result, bail};
use clap::{Args, Subcommand};
use drive::outputs;
use drive::report::{escape, page};
use expect::Expectations;
use figure::Figure;
use model::Model;
use plan::Clock;
use scaling::CostFile;
use serde_json::json;
use std::fmt::Write as _;
use std::io::Write;
use std::path::PathBuf;

/// Arguments of `trellis paper`.
#[derive(Args)]
pub struct PaperArgs {
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
    trellis paper leap                     everything; half an hour on two idle cores\n  \
    trellis paper leap --quick             the same with 4 nodes and short runs\n  \
    trellis paper leap --model-only        only what runs in virtual time\n  \
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
    /// Points of the model at a time [default: cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    jobs: Option<u16>,
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
    expectations: Expectations,
    clock: Clock,
}

/// An experiment: its name on the command line, whether it needs a real cluster, and its code.
struct Experiment {
    id: &'static str,
    title: &'static str,
    on_cluster: bool,
    run: fn(&mut Lab) -> Result<Figure>,
}

const EXPERIMENTS: [Experiment; 15] = [
    model_figure("8", "threads", threads::figure_8),
    model_figure("9", "remote accesses", remote::figure_9),
    model_figure("table1", "aborts and tries", remote::table_1),
    model_figure("10", "locality", locality::figure_10),
    model_figure("11", "intermediate results", steps::figure_11),
    model_figure("12", "repartitioning", locality::figure_12),
    model_figure("13", "access pattern", locality::figure_13),
    model_figure("14", "scalability", nodes::figure_14),
    model_figure("15", "transfers by case", transfers::figure_15),
    model_figure("16", "expected latency", latency::figure_16),
    model_figure("17", "local transactions", threads::figure_17),
    model_figure("20", "owner tables", transfers::figure_20),
    model_figure("counter", "hot counter", counter::counter),
    model_figure("hotspot", "long hot spot", counter::hotspot),
    Experiment {
        id: "real",
        title: "real cluster",
        on_cluster: true,
        run: real::cluster,
    },
];

const fn model_figure(
    id: &'static str,
    title: &'static str,
    run: fn(&mut Lab) -> Result<Figure>,
) -> Experiment {
    Experiment {
        id,
        title,
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
///
/// # Errors
/// No such figure, no such costs, or the report cannot be written. A figure that fails is no
/// error: the report says so, and the others go on.
pub fn run(args: &PaperArgs) -> Result<()> {
    let PaperCommand::Leap(args) = &args.command;
    outputs::check([args.html.as_path(), &args.json])?;
    let asked = asked(args)?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let jobs = args.jobs.map_or(cores, usize::from);
    let costs = CostFile::of_option(args.costs.as_deref())?;
    let mut lab = Lab {
        model: Model::new(costs, args.quick, jobs),
        quick: args.quick,
        expectations: Expectations::new(args.quick),
        clock: Clock::start(&[], jobs, 0.0),
    };
    let points = plan(&mut lab, &asked);
    let on_cluster = asked.iter().any(|one| one.on_cluster);
    let besides_s = if on_cluster {
        real::about_s(args.quick)
    } else {
        0.0
    };
    progress(&format!(
        "{} experiments, {} points of the model, {jobs} at a time",
        asked.len(),
        points.len()
    ))?;
    lab.clock = Clock::start(&points, jobs, besides_s);
    let mut figures = Vec::new();
    for one in asked {
        progress(&format!("experiment {}: {}", one.id, one.title))?;
        let figure = carry_out(&mut lab, one)?;
        progress(&figure.plain())?;
        figures.push(figure);
        // After each, so that a long run that ends early has told what it knew.
        write(args, &lab, &figures)?;
    }
    progress(&lab.expectations.plain())?;
    progress(&format!("report: {}", args.html.display()))
}

/// The experiments of the command line, in their order.
fn asked(args: &LeapArgs) -> Result<Vec<&'static Experiment>> {
    for asked in &args.figure {
        if !EXPERIMENTS.iter().any(|one| one.id == asked) {
            let all: Vec<&str> = EXPERIMENTS.iter().map(|one| one.id).collect();
            bail!(
                "there is no figure {asked} here; there are {}",
                all.join(", ")
            );
        }
    }
    let is_asked = |one: &&Experiment| {
        let named = args.figure.is_empty() || args.figure.iter().any(|id| id == one.id);
        named && !(one.on_cluster && args.model_only)
    };
    Ok(EXPERIMENTS.iter().filter(is_asked).collect())
}

/// The points that these experiments will ask the model for.
fn plan(lab: &mut Lab, experiments: &[&Experiment]) -> Vec<plan::WantedPoint> {
    lab.model.begin_plan();
    for one in experiments.iter().filter(|one| !one.on_cluster) {
        // What comes out of points that nobody has computed is nothing; if it is an error, it
        // comes again when they are.
        drop((one.run)(lab));
    }
    lab.expectations = Expectations::new(lab.quick);
    lab.model.end_plan()
}

/// One experiment; if it fails, a figure that says so.
fn carry_out(lab: &mut Lab, one: &'static Experiment) -> Result<Figure> {
    if !one.on_cluster {
        let found = std::mem::take(&mut lab.expectations);
        let points = plan(lab, &[one]);
        lab.expectations = found;
        lab.model.compute(points, &mut lab.clock)?;
    }
    let figure = (one.run)(lab);
    Ok(figure.unwrap_or_else(|error| {
        lab.expectations.fail(one.id);
        Figure::failed(one.id, one.title, &error)
    }))
}

fn write(args: &LeapArgs, lab: &Lab, figures: &[Figure]) -> Result<()> {
    let value = json!({
        "paper": "leap",
        "quick": lab.quick,
        "costs": lab.model.costs.json(),
        "equal_ground": ground::lines(&lab.model),
        "figures": figures.iter().map(Figure::json).collect::<Vec<_>>(),
        "expectations": lab.expectations.json(),
    });
    outputs::write(&args.json, &(serde_json::to_string_pretty(&value)? + "\n"))?;
    let mut body = String::from(
        "<p>Figures of the evaluation of \u{201c}Towards a Non-2PC Transaction Management in \
         Distributed Database Systems\u{201d}, redrawn from numbers of this server. leap is what \
         the paper calls L-Store; two_phase serial runs a shard the H-Store way; two_phase \
         interleaved is the baseline that the paper does not have. Ratios within one run count, \
         never an absolute number.</p>",
    );
    if lab.quick {
        body.push_str("<p class=\"bad\">A quick run: shapes, not numbers.</p>");
    }
    body.push_str("<p class=\"dim\">");
    for figure in figures {
        let _ = write!(
            body,
            "<a href=\"#figure-{}\">{}</a> \u{b7} ",
            figure.id,
            escape(figure.short_title())
        );
    }
    body.push_str("<a href=\"#ground\">Equal ground</a></p>");
    body.push_str(&lab.expectations.html());
    figures
        .iter()
        .for_each(|figure| body.push_str(&figure.html()));
    body.push_str("<h2 id=\"ground\">Equal ground</h2><ul>");
    for line in ground::lines(&lab.model) {
        let _ = write!(body, "<li>{}</li>", escape(&line));
    }
    let _ = write!(
        body,
        "</ul><h2>Model</h2><p>{}</p>",
        escape(&lab.model.describe())
    );
    Ok(outputs::write(&args.html, &page("LEAP, repeated", &body))?)
}

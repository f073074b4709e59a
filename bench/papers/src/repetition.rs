//! The repetition of a paper: its experiments one after the other, and the page.

use crate::expect::{Expectations, Wanted};
use crate::figure::Figure;
use crate::model::Model;
use crate::plan::{Clock, WantedPoint};
use anyhow::{Result, bail, ensure};
use clap::Args;
use drive::outputs;
use drive::report::{escape, page};
use scaling::CostFile;
use serde_json::json;
use std::fmt::Write as _;
use std::io::Write;
use std::path::PathBuf;

/// Arguments of `trellis paper NAME`.
#[derive(Args)]
pub(super) struct RunArgs {
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
    /// Where the report goes as one HTML page [default: trellis-PAPER.html]
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Where the numbers go as JSON [default: trellis-PAPER.json]
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// A paper whose evaluation is repeated.
pub(super) struct Paper {
    /// As on the command line, in the names of files and in the JSON.
    pub(super) name: &'static str,
    /// Title of the page.
    pub(super) title: &'static str,
    /// First paragraph of the page.
    pub(super) introduction: &'static str,
    pub(super) experiments: &'static [Experiment],
    pub(super) wanted: &'static Wanted,
    /// What the systems have in common: sentences for the page.
    pub(super) ground: fn(&Model) -> Vec<String>,
    /// Shape and costs of the model, for the page.
    pub(super) model: fn(&Model) -> String,
}

/// An experiment: its name on the command line and its code.
pub(super) struct Experiment {
    pub(super) id: &'static str,
    pub(super) title: &'static str,
    /// Seconds that it takes on a real cluster, about, quick or not; `None`: it runs in the model.
    pub(super) cluster_s: Option<fn(bool) -> f64>,
    pub(super) run: fn(&mut Lab) -> Result<Figure>,
}

impl Experiment {
    /// Whether `asked` names it: its own name, or a number of which it is a part (19 names 19ab).
    fn is(&self, asked: &str) -> bool {
        let is_number = !asked.is_empty() && asked.bytes().all(|letter| letter.is_ascii_digit());
        let rest = self.id.strip_prefix(asked).filter(|_| is_number);
        let is_part = |rest: &str| rest.bytes().all(|letter| letter.is_ascii_lowercase());
        self.id == asked || rest.is_some_and(is_part)
    }
}

/// An experiment that runs in the model.
pub(super) const fn model_figure(
    id: &'static str,
    title: &'static str,
    run: fn(&mut Lab) -> Result<Figure>,
) -> Experiment {
    Experiment {
        id,
        title,
        cluster_s: None,
        run,
    }
}

/// An experiment that runs on a real cluster, or beside servers of others; `about_s`: how many
/// seconds, about, quick or not.
pub(super) const fn cluster_figure(
    id: &'static str,
    title: &'static str,
    about_s: fn(bool) -> f64,
    run: fn(&mut Lab) -> Result<Figure>,
) -> Experiment {
    Experiment {
        id,
        title,
        cluster_s: Some(about_s),
        run,
    }
}

/// What the experiments share.
pub(super) struct Lab {
    pub(super) model: Model,
    pub(super) quick: bool,
    pub(super) expectations: Expectations,
    pub(super) clock: Clock,
}

/// A line about how far it is.
pub(super) fn progress(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{text}")?;
    Ok(out.flush()?)
}

/// Where the report goes.
struct Outputs {
    html: PathBuf,
    json: PathBuf,
}

/// Carries out the experiments of the command line.
///
/// # Errors
/// No such figure, no such costs, or the report cannot be written.
pub(super) fn run(paper: &Paper, args: &RunArgs) -> Result<()> {
    let or_default = |path: &Option<PathBuf>, kind: &str| {
        let default = || PathBuf::from(format!("trellis-{}.{kind}", paper.name));
        path.clone().unwrap_or_else(default)
    };
    let to = Outputs {
        html: or_default(&args.html, "html"),
        json: or_default(&args.json, "json"),
    };
    outputs::check([to.html.as_path(), &to.json])?;
    let asked = asked(paper, args)?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let jobs = args.jobs.map_or(cores, usize::from);
    let costs = CostFile::of_option(args.costs.as_deref())?;
    let mut lab = Lab {
        model: Model::new(costs, args.quick, jobs),
        quick: args.quick,
        expectations: Expectations::new(paper.wanted, args.quick),
        clock: Clock::start(&[], jobs, 0.0),
    };
    let points = plan(paper, &mut lab, &asked);
    let besides = asked.iter().filter_map(|one| one.cluster_s);
    let besides_s = besides.map(|about_s| about_s(args.quick)).sum();
    progress(&format!(
        "{} experiments, {} points of the model, {jobs} at a time",
        asked.len(),
        points.len()
    ))?;
    lab.clock = Clock::start(&points, jobs, besides_s);
    let mut figures = Vec::new();
    for one in asked {
        progress(&format!("experiment {}: {}", one.id, one.title))?;
        let figure = carry_out(paper, &mut lab, one)?;
        progress(&figure.plain())?;
        figures.push(figure);
        // After each, so that a long run that ends early has told what it knew.
        write(paper, &to, &lab, &figures)?;
    }
    progress(&lab.expectations.plain())?;
    progress(&format!("report: {}", to.html.display()))?;
    let failed: usize = figures.iter().map(Figure::failures).sum();
    ensure!(
        failed == 0,
        "{failed} measurements failed: the report says which, and why"
    );
    Ok(())
}

/// The experiments of the command line, in their order.
fn asked(paper: &Paper, args: &RunArgs) -> Result<Vec<&'static Experiment>> {
    for asked in &args.figure {
        if !paper.experiments.iter().any(|one| one.is(asked)) {
            let all: Vec<&str> = paper.experiments.iter().map(|one| one.id).collect();
            bail!(
                "there is no figure {asked} here; there are {}",
                all.join(", ")
            );
        }
    }
    let is_asked = |one: &&Experiment| {
        let named = args.figure.is_empty() || args.figure.iter().any(|asked| one.is(asked));
        named && !(one.cluster_s.is_some() && args.model_only)
    };
    Ok(paper.experiments.iter().filter(is_asked).collect())
}

/// The points that these experiments will ask the model for.
fn plan(paper: &Paper, lab: &mut Lab, experiments: &[&Experiment]) -> Vec<WantedPoint> {
    lab.model.begin_plan();
    for one in experiments.iter().filter(|one| one.cluster_s.is_none()) {
        // What comes out of points that nobody has computed is nothing; if it is an error, it
        // comes again when they are.
        drop((one.run)(lab));
    }
    lab.expectations = Expectations::new(paper.wanted, lab.quick);
    lab.model.end_plan()
}

/// One experiment; if it fails, a figure that says so.
fn carry_out(paper: &Paper, lab: &mut Lab, one: &'static Experiment) -> Result<Figure> {
    if one.cluster_s.is_none() {
        let nothing = Expectations::new(paper.wanted, lab.quick);
        let found = std::mem::replace(&mut lab.expectations, nothing);
        let points = plan(paper, lab, &[one]);
        lab.expectations = found;
        lab.model.compute(points, &mut lab.clock)?;
    }
    let figure = (one.run)(lab);
    Ok(figure.unwrap_or_else(|error| {
        lab.expectations.fail(one.id);
        Figure::failed(one.id, one.title, &error)
    }))
}

fn write(paper: &Paper, to: &Outputs, lab: &Lab, figures: &[Figure]) -> Result<()> {
    let ground = (paper.ground)(&lab.model);
    let value = json!({
        "paper": paper.name,
        "quick": lab.quick,
        "costs": lab.model.costs.json(),
        "equal_ground": ground,
        "figures": figures.iter().map(Figure::json).collect::<Vec<_>>(),
        "expectations": lab.expectations.json(),
    });
    outputs::write(&to.json, &(serde_json::to_string_pretty(&value)? + "\n"))?;
    let mut body = format!("<p>{}</p>", escape(paper.introduction));
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
    for line in ground {
        let _ = write!(body, "<li>{}</li>", escape(&line));
    }
    let _ = write!(
        body,
        "</ul><h2>Model</h2><p>{}</p>",
        escape(&(paper.model)(&lab.model))
    );
    Ok(outputs::write(&to.html, &page(paper.title, &body))?)
}

#[cfg(test)]
mod tests {
    use super::model_figure;
    use crate::figure::Figure;

    #[test]
    fn a_number_names_all_its_parts() {
        for (id, asked, expected) in [
            ("19ab", "19ab", true),
            ("19ab", "19", true),
            ("19ab", "1", false),
            ("19ab", "19c", false),
            ("19", "19", true),
            ("23-24", "23", false),
            ("nine", "nine", true),
            ("nine", "ni", false),
            ("nine", "", false),
        ] {
            let one = model_figure(id, "", |_| Ok(Figure::new("", "", String::new())));
            assert_eq!(one.is(asked), expected, "{id} by {asked:?}");
        }
    }
}

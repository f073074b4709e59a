//! Looks for a smaller run that still fails in the same way: fewer kinds, fewer faults, fewer
//! clients, less time.

use super::plan_args::{OneRun, PlanArgs, RATES};
use super::pool::{Done, Pool};
use anyhow::{Context, Result, bail};
use sim::plan::Kind;
use std::io::Write;
use std::process::ExitCode;

struct Shrink {
    pool: Pool,
    tried: u32,
    /// The smallest run that fails, and how.
    best: OneRun,
    text: String,
}

pub(crate) fn run(seed: u64, args: &PlanArgs) -> Result<ExitCode> {
    let workload = args.workload_of(seed)?;
    let first = args.of(workload, seed);
    let mut pool = Pool::new(1)?;
    let done = attempt(&mut pool, &first)?;
    let Some(text) = done.failure() else {
        bail!("seed {seed} does not fail");
    };
    let mut shrink = Shrink {
        pool,
        tried: 1,
        best: first,
        text: text.to_owned(),
    };
    shrink.kinds()?;
    shrink.faults()?;
    shrink.clients()?;
    shrink.time()?;
    shrink.faults()?;
    let mut out = std::io::stdout().lock();
    writeln!(out, "{}", shrink.best.draw()?)?;
    for fault in &shrink.best.draw()?.faults {
        writeln!(out, "  {fault}")?;
    }
    writeln!(out, "failed: {}", shrink.text)?;
    writeln!(out, "{} runs tried", shrink.tried)?;
    let arguments = shrink.best.arguments().join(" ");
    writeln!(out, "trellis sim replay {seed} {arguments}")?;
    Ok(ExitCode::SUCCESS)
}

fn attempt(pool: &mut Pool, run: &OneRun) -> Result<Done> {
    pool.start(run.job(false))?;
    pool.wait()?.context("a run was started")
}

/// What two failures of one cause have in common: the place of an assertion, or the words of a
/// story without its numbers. A smaller run that fails otherwise is another story.
fn signature(text: &str) -> String {
    if let Some((_, place)) = text.split_once("panicked at ") {
        return place.lines().next().unwrap_or_default().to_owned();
    }
    let told = text
        .lines()
        .rfind(|line| !line.starts_with(' ') && line.contains(':'));
    let kind = told.and_then(|line| line.split(':').next());
    let letters = kind.unwrap_or_default().chars();
    letters.filter(|letter| !letter.is_ascii_digit()).collect()
}

impl Shrink {
    /// Takes a smaller run if it fails too.
    fn take(&mut self, run: OneRun) -> Result<bool> {
        let done = attempt(&mut self.pool, &run)?;
        self.tried += 1;
        let same = |text: &&str| signature(text) == signature(&self.text);
        let Some(text) = done.failure().filter(same) else {
            return Ok(false);
        };
        let mut err = std::io::stderr().lock();
        writeln!(err, "smaller: {}", run.arguments().join(" "))?;
        (self.best, self.text) = (run, text.to_owned());
        Ok(true)
    }

    fn kinds(&mut self) -> Result<()> {
        let mut without: Vec<Kind> = Vec::new();
        for kind in RATES {
            without.push(kind);
            let run = self.best.with(|args| args.set_without(&without));
            if !self.take(run)? {
                without.pop();
            }
        }
        Ok(())
    }

    /// Halves, quarters, ... of the faults are left out as long as it helps.
    fn faults(&mut self) -> Result<()> {
        let whole = self.best.with(|args| args.keep = None).draw()?;
        let count = whole.faults.len();
        let mut keep: Vec<usize> = self.best.args.kept(count)?;
        let mut piece = keep.len();
        while piece > 0 {
            let mut from = 0;
            while from < keep.len() {
                let mut fewer = keep.clone();
                fewer.drain(from..(from + piece).min(keep.len()));
                let run = self.best.with(|args| args.set_keep(&fewer));
                if self.take(run)? {
                    keep = fewer;
                } else {
                    from += piece;
                }
            }
            piece /= 2;
        }
        Ok(())
    }

    fn clients(&mut self) -> Result<()> {
        let mut clients = self.best.draw()?.clients;
        while clients > 1 {
            let fewer = if clients > 4 {
                clients / 2
            } else {
                clients - 1
            };
            let run = self.best.with(|args| args.clients = Some(fewer));
            if !self.take(run)? {
                break;
            }
            clients = fewer;
        }
        Ok(())
    }

    fn time(&mut self) -> Result<()> {
        let mut millis = self.best.draw()?.run_us / 1_000;
        let mut step = millis / 2;
        while step > 0 && millis > 20 {
            let run = self.best.with(|args| args.millis = Some(millis - step));
            if self.take(run)? {
                millis -= step;
                step = step.min(millis / 2);
            } else {
                step /= 2;
                if step < millis / 32 {
                    break;
                }
            }
        }
        Ok(())
    }
}

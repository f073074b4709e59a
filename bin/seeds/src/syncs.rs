//! A power cut at every sync: one run counts them, then one run for each.

use super::SyncsArgs;
use super::pool::Pool;
use super::totals::Counts;
use anyhow::{Context, Result, bail};
use sim::disk::SyncStop;
use std::io::Write;
use std::process::ExitCode;

pub(crate) fn run(args: &SyncsArgs) -> Result<ExitCode> {
    let workload = args.one.plan.workload_of(args.one.seed)?;
    let plain = args.one.plan.of(workload, args.one.seed);
    let mut pool = Pool::new(args.jobs.max(1))?;
    pool.start(plain.job(false))?;
    let first = pool.wait()?.context("a run was started")?;
    if let Some(text) = first.failure() {
        bail!("without a crash it fails already: {text}");
    }
    let mut points = Vec::new();
    for (index, end) in first.outcome.report.syncs.iter().enumerate() {
        for sync in 1..=*end {
            for how in [SyncStop::Before, SyncStop::After] {
                points.push((index as u16 + 1, sync, how));
            }
        }
    }
    let all = points.len() as u64;
    if args.limit > 0 && all > args.limit {
        let every = all.div_ceil(args.limit) as usize;
        points = points.into_iter().step_by(every).collect();
    }
    let mut out = std::io::stdout();
    writeln!(out, "{} syncs, {} crashes to try", all / 2, points.len())?;
    let mut counts = Counts::default();
    let mut points = points.into_iter();
    loop {
        while pool.is_free()
            && let Some((node, sync, how)) = points.next()
        {
            let run = plain.with(|args| args.set_stop_at(node, sync, how));
            pool.start(run.job(false))?;
        }
        let Some(done) = pool.wait()? else { break };
        counts.take(&done.outcome.verdict);
        if let Some(text) = done.failure() {
            writeln!(out, "failed: {text}")?;
            let arguments = done.job.arguments.join(" ");
            writeln!(out, "  trellis sim replay {} {arguments}", done.job.seed)?;
        }
    }
    counts.print(&mut out)?;
    Ok(super::exit_code(counts.failed))
}

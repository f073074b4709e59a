//! The options that say which run is meant, on the command line and between processes.

use super::pool::Job;
use anyhow::{Context, Result, bail, ensure};
use base::Planted;
use clap::Args;
use sim::disk::SyncStop;
use sim::plan::{Ask, KINDS, Kind, Plan, ProtocolKind, Wanted};

/// Options of a run. What is not given is drawn from the seed.
#[derive(Args, Clone, Default)]
pub(crate) struct PlanArgs {
    /// A workload, `all` of the product or those of `entities`: they take turns, seed by seed
    #[arg(long, default_value = "all")]
    workload: String,
    /// Transaction protocol of the database: two_phase, leap, formula
    #[arg(long, default_value = "two_phase")]
    pub(crate) protocol: ProtocolKind,
    /// `all` (drawn), `none`, or kinds separated by commas (see `trellis sim list`)
    #[arg(long, default_value = "all")]
    faults: String,
    /// Kinds of faults that are left out, separated by commas
    #[arg(long)]
    without: Option<String>,
    /// Only the faults with these numbers happen, separated by commas, or `none`
    #[arg(long)]
    pub(crate) keep: Option<String>,
    /// Nodes
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=64))]
    nodes: Option<u16>,
    /// Shards per node
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=16))]
    shards: Option<u16>,
    /// Clients
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(crate) clients: Option<u32>,
    /// Milliseconds of the phase with faults
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=3_600_000))]
    pub(crate) millis: Option<u64>,
    /// Power cut at a sync: node, number of its sync, `before` or `after`, separated by commas
    #[arg(long)]
    stop_at: Option<String>,
    /// A rule that is broken on purpose; a release build cannot
    #[arg(long, hide = true)]
    plant: Option<String>,
}

/// One run: a seed with its options.
#[derive(Clone)]
pub(crate) struct OneRun {
    pub(crate) workload: &'static str,
    pub(crate) seed: u64,
    pub(crate) args: PlanArgs,
}

impl PlanArgs {
    /// The workloads that are meant.
    pub(crate) fn workloads(&self) -> Result<Vec<&'static str>> {
        if self.workload == "all" {
            return Ok(sim::workload::ALL.iter().map(|entry| entry.name).collect());
        }
        if self.workload == "entities" {
            return Ok(simulated::ENTRIES.iter().map(|entry| entry.name).collect());
        }
        Ok(vec![find(&self.workload)?])
    }

    /// The workload of a seed: the same wherever the run of many seeds began.
    pub(crate) fn workload_of(&self, seed: u64) -> Result<&'static str> {
        let workloads = self.workloads()?;
        let turn = seed.wrapping_sub(1) % workloads.len() as u64;
        Ok(workloads[turn as usize])
    }

    pub(crate) fn of(&self, workload: &'static str, seed: u64) -> OneRun {
        OneRun {
            workload,
            seed,
            args: self.clone(),
        }
    }
}

fn find(name: &str) -> Result<&'static str> {
    let entry = simulated::find(name);
    Ok(entry
        .with_context(|| format!("there is no workload {name:?}; see trellis sim list"))?
        .name)
}

fn kinds(list: &str) -> Result<Vec<Kind>> {
    let kind = |name: &str| {
        let found = Kind::find(name);
        found.with_context(|| format!("there is no kind of fault {name:?}; see trellis sim list"))
    };
    list.split(',').map(kind).collect()
}

impl OneRun {
    pub(crate) fn draw(&self) -> Result<Plan> {
        let args = &self.args;
        let mut ask = Ask::new(self.workload);
        ask.protocol = args.protocol;
        (ask.nodes, ask.shards, ask.clients) = (args.nodes, args.shards, args.clients);
        ask.run_us = args.millis.map(|millis| millis * 1_000);
        ask.wanted = match &*args.faults {
            "all" => Wanted::All,
            "none" => Wanted::Nothing,
            list => Wanted::Only(kinds(list)?),
        };
        let mut plan = Plan::draw(self.seed, &ask);
        if let Some(list) = &args.keep {
            let keep = numbers(list)?;
            let mut index = 0;
            plan.faults.retain(|_| {
                index += 1;
                keep.contains(&(index - 1))
            });
        }
        if let Some(list) = &args.without {
            let without = kinds(list)?;
            plan.faults
                .retain(|fault| !without.contains(&fault.what.kind()));
            let rates = [
                (Kind::Loss, &mut plan.loss),
                (Kind::Duplicate, &mut plan.duplicate),
                (Kind::Reorder, &mut plan.reorder),
            ];
            for (kind, rate) in rates {
                if without.contains(&kind) {
                    *rate = 0;
                }
            }
        }
        plan.stop_at = args.stop_at.as_deref().map(stop_at).transpose()?;
        Ok(plan)
    }

    /// With these changes.
    pub(crate) fn with(&self, change: impl FnOnce(&mut PlanArgs)) -> OneRun {
        let mut run = self.clone();
        change(&mut run.args);
        run
    }

    /// What a worker is told of it.
    pub(crate) fn job(&self, twice: bool) -> Job {
        Job {
            seed: self.seed,
            workload: self.workload,
            twice,
            arguments: self.arguments(),
        }
    }

    /// The command-line options that mean the same.
    pub(crate) fn arguments(&self) -> Vec<String> {
        let args = &self.args;
        let mut out = vec!["--workload".into(), self.workload.to_owned()];
        let mut add = |name: &str, value: Option<String>| {
            if let Some(value) = value {
                out.push(name.to_owned());
                out.push(value);
            }
        };
        let protocol = args.protocol;
        add(
            "--protocol",
            (protocol != ProtocolKind::default()).then(|| protocol.name().to_owned()),
        );
        add(
            "--faults",
            (args.faults != "all" && !args.faults.is_empty()).then(|| args.faults.clone()),
        );
        add("--without", args.without.clone());
        add("--keep", args.keep.clone());
        add("--nodes", args.nodes.map(|n| n.to_string()));
        add("--shards", args.shards.map(|n| n.to_string()));
        add("--clients", args.clients.map(|n| n.to_string()));
        add("--millis", args.millis.map(|n| n.to_string()));
        add("--stop-at", args.stop_at.clone());
        add("--plant", args.plant.clone());
        out
    }
}

impl PlanArgs {
    /// Keeps only these faults.
    pub(crate) fn set_keep(&mut self, keep: &[usize]) {
        let list: Vec<String> = keep.iter().map(ToString::to_string).collect();
        self.keep = Some(if list.is_empty() {
            "none".into()
        } else {
            list.join(",")
        });
    }

    /// Leaves these kinds out.
    pub(crate) fn set_without(&mut self, kinds: &[Kind]) {
        let list: Vec<&str> = kinds.iter().map(|kind| kind.name()).collect();
        self.without = (!list.is_empty()).then(|| list.join(","));
    }

    pub(crate) fn set_plant(&mut self, bug: Option<Planted>) {
        self.plant = bug.map(|bug| bug.name().to_owned());
    }

    /// Plants the bug in this process.
    pub(crate) fn plant(&self) -> Result<()> {
        let find = |name: &String| {
            Planted::find(name).with_context(|| format!("no bug is called {name:?}"))
        };
        let bug = self.plant.as_ref().map(find).transpose()?;
        ensure!(base::plant(bug), "this build has no planted bugs");
        Ok(())
    }

    /// Power cut at this sync of this node's disk.
    pub(crate) fn set_stop_at(&mut self, node: u16, sync: u64, how: SyncStop) {
        let how = if how == SyncStop::Before {
            "before"
        } else {
            "after"
        };
        self.stop_at = Some(format!("{node},{sync},{how}"));
    }

    /// Numbers of the faults that happen, of so many.
    pub(crate) fn kept(&self, count: usize) -> Result<Vec<usize>> {
        match &self.keep {
            Some(list) => numbers(list),
            None => Ok((0..count).collect()),
        }
    }
}

fn numbers(list: &str) -> Result<Vec<usize>> {
    if list == "none" {
        return Ok(Vec::new());
    }
    let number = |part: &str| {
        part.parse()
            .with_context(|| format!("{part:?} is no number"))
    };
    list.split(',').map(number).collect()
}

fn stop_at(text: &str) -> Result<(u16, u64, SyncStop)> {
    let parts: Vec<&str> = text.split(',').collect();
    let [node, sync, how] = parts[..] else {
        bail!("{text:?} is not of the form NODE,SYNC,before");
    };
    let how = match how {
        "before" => SyncStop::Before,
        "after" => SyncStop::After,
        _ => bail!("{how:?} is neither before nor after"),
    };
    Ok((node.parse()?, sync.parse()?, how))
}

/// Kinds that are rates and no single faults.
pub(crate) const RATES: [Kind; 3] = [Kind::Loss, Kind::Duplicate, Kind::Reorder];

const _: () = assert!(KINDS.len() > RATES.len());

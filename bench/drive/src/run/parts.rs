//! A part of a run whose other parts are carried out by other processes. Somebody else loads,
//! checks, breaks servers and reports: here are only clients.

pub use super::stage::Part;
use super::stage::Stage;
use super::tally::Share;
use super::watch::{Each, SecondCounts, Watch, Watched};
use super::{RunnerOptions, begin_threads, fits, join_threads, sum_of};
use crate::shape::{Steering, Workload};
use crate::tpcc::Recorded;
use links::error::DriveError;
use links::url::Target;
use links::view::Silent;
use std::time::Instant;

/// Who has asked for a part of a run.
pub trait Lead: Sync {
    /// All clients are connected, for a run with these parameters. Returns when they are to begin;
    /// `None`: they are not to.
    fn begin(&self, parameters: Vec<(&'static str, String)>) -> Option<Instant>;

    /// Whether the run is to end before its time.
    fn is_over(&self) -> bool;

    /// So many transactions wait for a connection; called about ten times a second.
    fn waiting(&self, waiting: u64);

    /// How many transactions are to compete for each row, by the last word on it.
    fn wanted(&self) -> Vec<u32>;

    /// So many of this part compete for each row.
    fn competing(&self, in_flight: &[u32]);

    /// A second is over.
    fn second(&self, second: u64, counts: &SecondCounts);
}

/// What a part has come to.
#[derive(Clone, Debug)]
pub struct PartResult {
    /// What the runner has counted.
    pub share: Share,
    /// What the workload has counted ([`Workload::counters`]).
    pub counters: Vec<u64>,
    /// What it has recorded of the run's own history.
    pub recorded: Option<Recorded>,
    /// The share of its cores that this process has used.
    pub cpu: Option<f64>,
    /// The share of a core that each of its threads has used.
    pub threads: Vec<f64>,
}

/// Carries out a part of a run; `None`: it was ended before its time.
pub(crate) fn run_part<W: Workload>(
    workload: &W,
    target: &Target,
    options: &RunnerOptions,
    part: Part,
    lead: &dyn Lead,
) -> Result<Option<PartResult>, DriveError> {
    options.validate()?;
    fits(workload, target, options, part)?;
    let stage = Stage::new(workload, target, options, part);
    let watched = Watched {
        kinds: workload.kinds(),
        options,
        connections: stage.deal.connections,
        server: None,
    };
    let mut watch = Watch::new(&stage, watched);
    let audits = std::thread::scope(|scope| {
        let threads = begin_threads(&stage, scope);
        let refused = stage.begin(|| lead.begin(workload.describe().parameters));
        if stage.has_begun() {
            if workload.attends() {
                let stage = &stage;
                let steering = Steering::Follows(lead);
                scope.spawn(move || workload.attend(&|| stage.second(), steering));
            }
            let told = Told {
                stage: &stage,
                lead,
            };
            watch.until_end(&mut Silent, &told);
        }
        let audits = join_threads::<W>(threads);
        match refused {
            Some(error) => Err(DriveError::Link("connecting the clients", error)),
            None => Ok(audits),
        }
    })?;
    if !stage.has_begun() || stage.is_called_off() || lead.is_over() {
        return Ok(None);
    }
    let (share, threads) = sum_of(&stage);
    Ok(Some(PartResult {
        share,
        counters: workload.counters(audits),
        recorded: workload.take_recorded(stage.start()),
        cpu: watch.seen.client_cpu,
        threads,
    }))
}

/// Tells who has asked for the part, and ends it when that one does.
struct Told<'a, W: Workload> {
    stage: &'a Stage<'a, W>,
    lead: &'a dyn Lead,
}

impl<W: Workload> Each for Told<'_, W> {
    fn look(&self, waiting: u64) {
        self.lead.waiting(waiting);
        if self.lead.is_over() {
            self.stage.call_off();
        }
    }

    fn second(&self, second: u64, counts: &SecondCounts) {
        self.lead.second(second, counts);
    }
}

//! Counts and histograms of a run as messages carry them: raw, so that those of several workers
//! can be added without any loss.

use super::recorded::{Pieces, Summary};
use drive::run::parts::PartResult;
use drive::run::tally::{Acknowledged, LATENCY_US_MAX, Share, Tally, histogram};
use drive::run::watch::SecondCounts;
use hdrhistogram::Histogram;
use std::collections::BTreeMap;

/// The largest count that is believed: what is larger is no count, and sums of it would overflow.
const COUNT_MAX: u64 = 1 << 48;
/// Steps of a run, at most: a day and more.
const STEPS_MAX: usize = 1 << 20;
/// Threads of a worker, at most.
const THREADS_MAX: usize = 1_024;

/// Pairs of time and count.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub(super) struct PackedHistogram(Vec<(u64, u64)>);

/// A message holds what no worker of this version sends.
#[derive(Debug)]
pub(super) struct Unfit;

/// The number, if it is one that can be counted.
pub(super) fn sane(count: u64) -> Result<u64, Unfit> {
    if count <= COUNT_MAX {
        Ok(count)
    } else {
        Err(Unfit)
    }
}

pub(super) fn all_sane<'a>(counts: impl IntoIterator<Item = &'a u64>) -> Result<(), Unfit> {
    counts.into_iter().try_for_each(|it| sane(*it).map(|_| ()))
}

impl PackedHistogram {
    pub(super) fn of(histogram: &Histogram<u64>) -> PackedHistogram {
        let recorded = histogram.iter_recorded();
        let pairs = recorded.map(|step| (step.value_iterated_to(), step.count_at_value()));
        PackedHistogram(pairs.collect())
    }

    pub(super) fn unpack(&self) -> Result<Histogram<u64>, Unfit> {
        let mut unpacked = histogram();
        self.fill(&mut unpacked)?;
        Ok(unpacked)
    }

    /// Counts all of it in a histogram of three digits.
    pub(super) fn fill(&self, unpacked: &mut Histogram<u64>) -> Result<(), Unfit> {
        let mut all = 0;
        for (us, count) in &self.0 {
            all += sane(*count)?;
            // The upper end of the step that holds an hour lies a little above it.
            if *us == 0 || *us > 2 * LATENCY_US_MAX || all > COUNT_MAX {
                return Err(Unfit);
            }
            unpacked.record_n(*us, *count).map_err(|_| Unfit)?;
        }
        Ok(())
    }
}

/// A [`Tally`].
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
struct PackedTally {
    /// Committed, rolled back, both of these in the measured phase, unknown, unfinished, retried,
    /// units, skipped.
    counts: [u64; 9],
    failed: BTreeMap<String, u64>,
    aborts: BTreeMap<String, u64>,
    response: PackedHistogram,
    service: PackedHistogram,
    queue: PackedHistogram,
}

impl PackedTally {
    fn of(tally: &Tally) -> PackedTally {
        let Tally {
            committed,
            rolled_back,
            in_phase,
            rolled_back_in_phase,
            failed,
            unknown,
            unfinished,
            retried,
            aborts,
            units,
            skipped,
            response,
            service,
            queue,
        } = tally;
        PackedTally {
            counts: [
                *committed,
                *rolled_back,
                *in_phase,
                *rolled_back_in_phase,
                *unknown,
                *unfinished,
                *retried,
                *units,
                *skipped,
            ],
            failed: failed.clone(),
            aborts: aborts.clone(),
            response: PackedHistogram::of(response),
            service: PackedHistogram::of(service),
            queue: PackedHistogram::of(queue),
        }
    }

    fn unpack(self) -> Result<Tally, Unfit> {
        all_sane(&self.counts)?;
        all_sane(self.failed.values().chain(self.aborts.values()))?;
        let [
            committed,
            rolled_back,
            in_phase,
            rolled_back_in_phase,
            unknown,
            unfinished,
            retried,
            units,
            skipped,
        ] = self.counts;
        Ok(Tally {
            committed,
            rolled_back,
            in_phase,
            rolled_back_in_phase,
            failed: self.failed,
            unknown,
            unfinished,
            retried,
            aborts: self.aborts,
            units,
            skipped,
            response: self.response.unpack()?,
            service: self.service.unpack()?,
            queue: self.queue.unpack()?,
        })
    }
}

/// A [`Share`], but for what is of a single second or thread.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub(super) struct PackedShare {
    kinds: Vec<PackedTally>,
    /// Committed, units, unknown; by kind.
    whole: Vec<[u64; 3]>,
    deferred: PackedTally,
    steps: Vec<u64>,
    messages: BTreeMap<String, String>,
    lateness: PackedHistogram,
}

impl PackedShare {
    pub(super) fn of(share: &Share) -> PackedShare {
        let whole = share.whole.iter();
        PackedShare {
            kinds: share.kinds.iter().map(PackedTally::of).collect(),
            whole: whole
                .map(|it| [it.committed, it.units, it.unknown])
                .collect(),
            deferred: PackedTally::of(&share.deferred),
            steps: share.steps.clone(),
            messages: share.messages.clone(),
            lateness: PackedHistogram::of(&share.lateness),
        }
    }

    /// The share, if it is one of so many kinds.
    pub(super) fn unpack(self, kinds: usize) -> Result<Share, Unfit> {
        let fits = self.kinds.len() == kinds && self.whole.len() == kinds;
        if !fits || self.steps.len() > STEPS_MAX {
            return Err(Unfit);
        }
        all_sane(self.steps.iter().chain(self.whole.iter().flatten()))?;
        let mut share = Share::new(kinds);
        let tallies = self.kinds.into_iter().map(PackedTally::unpack);
        share.kinds = tallies.collect::<Result<_, _>>()?;
        let whole = self.whole.into_iter();
        share.whole = whole
            .map(|[committed, units, unknown]| Acknowledged {
                committed,
                units,
                unknown,
            })
            .collect();
        share.deferred = self.deferred.unpack()?;
        share.steps = self.steps;
        share.messages = self.messages;
        share.lateness = self.lateness.unpack()?;
        Ok(share)
    }
}

/// What a worker's part has come to.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub(super) struct PackedPart {
    share: PackedShare,
    /// What the workload has counted beside the runner.
    counters: Vec<u64>,
    /// Of what was recorded, which was sent before.
    recorded: Option<Summary>,
    cpu: Option<f64>,
    threads: Vec<f64>,
}

impl PackedPart {
    pub(super) fn of(result: &PartResult) -> PackedPart {
        let PartResult {
            share,
            counters,
            recorded,
            cpu,
            threads,
        } = result;
        PackedPart {
            recorded: recorded.as_ref().map(Summary::of),
            share: PackedShare::of(share),
            counters: counters.clone(),
            cpu: *cpu,
            threads: threads.clone(),
        }
    }

    /// The result, with what was recorded and sent before, if it is one of so many kinds and its
    /// numbers are numbers.
    pub(super) fn unpack(self, kinds: usize, pieces: Option<Pieces>) -> Result<PartResult, Unfit> {
        all_sane(&self.counters)?;
        let mut shares = self.threads.iter().chain(&self.cpu);
        let is_sane = |share: &f64| share.is_finite() && *share >= 0.0;
        if !shares.all(is_sane) || self.threads.len() > THREADS_MAX {
            return Err(Unfit);
        }
        Ok(PartResult {
            share: self.share.unpack(kinds)?,
            counters: self.counters,
            recorded: match (pieces, &self.recorded) {
                (None, None) => None,
                (Some(pieces), Some(summary)) => Some(pieces.complete(summary)?),
                (None, Some(_)) | (Some(_), None) => return Err(Unfit),
            },
            cpu: self.cpu,
            threads: self.threads,
        })
    }
}

/// [`SecondCounts`].
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub(super) struct PackedSecond {
    committed: Vec<u64>,
    response: PackedHistogram,
    aborts: BTreeMap<String, u64>,
    failed: u64,
}

impl PackedSecond {
    pub(super) fn of(counts: &SecondCounts) -> PackedSecond {
        let SecondCounts {
            committed,
            response,
            aborts,
            failed,
        } = counts;
        PackedSecond {
            committed: committed.clone(),
            response: PackedHistogram::of(response),
            aborts: aborts.clone(),
            failed: *failed,
        }
    }

    pub(super) fn unpack(self) -> Result<SecondCounts, Unfit> {
        all_sane(self.committed.iter().chain(self.aborts.values()))?;
        Ok(SecondCounts {
            committed: self.committed,
            response: self.response.unpack()?,
            aborts: self.aborts,
            failed: sane(self.failed)?,
        })
    }
}

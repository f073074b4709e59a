//! What a worker has counted of a run of sessions, as messages carry it: raw.

use super::packed::{PackedHistogram, Unfit, all_sane, sane};
use fault::{Sample, ServerSeries, Used};
use hdrhistogram::Histogram;
use sessions::interaction::{Changed, Changes, FAILED, NOTHING};
use sessions::run::parts::{Names, PartResult, kind_named};
use sessions::run::{Second, Tallies, Tally, Times};
use sessions::table::Next;
use std::collections::BTreeMap;

/// Kinds of failures, by their place.
const KINDS: [&str; 4] = ["conflict", "refused", "lost", "wrong"];
/// Groups in one message.
const PIECE: usize = 100_000;
/// Groups that are believed, of one worker.
const GROUPS_MAX: usize = 1 << 24;
/// Requests that wait at the end of a run, at most.
const WAITING_MAX: u64 = 1 << 24;
/// Samples of a worker: those of a day and more.
const SAMPLES_MAX: usize = 100_000;
/// The longest sum of times, in nanoseconds.
const SUM_NS_MAX: u128 = 1 << 96;

/// [`Times`].
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
struct PackedTimes {
    histogram: PackedHistogram,
    sum_ns: u128,
}

impl PackedTimes {
    fn of(times: &Times) -> PackedTimes {
        PackedTimes {
            histogram: PackedHistogram::of(&times.histogram),
            sum_ns: times.sum_ns,
        }
    }

    fn unpack(&self) -> Result<Times, Unfit> {
        if self.sum_ns > SUM_NS_MAX {
            return Err(Unfit);
        }
        let mut times = Times::new();
        self.histogram.fill(&mut times.histogram)?;
        times.sum_ns = self.sum_ns;
        Ok(times)
    }
}

/// [`Tally`].
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
struct PackedInteraction {
    answered: BTreeMap<String, u64>,
    /// Kind, text, how often.
    failed: Vec<(u8, String, u64)>,
    conflicts: BTreeMap<String, u64>,
    /// In phase, unknown, unfinished, retried, attempts, round trips.
    counts: [u64; 6],
    response: PackedTimes,
    service: PackedTimes,
    queue: PackedTimes,
    think: PackedTimes,
}

impl PackedInteraction {
    fn of(tally: &Tally) -> PackedInteraction {
        let Tally {
            answered,
            in_phase,
            failed,
            unknown,
            unfinished,
            retried,
            attempts,
            conflicts,
            round_trips,
            response,
            service,
            queue,
            think,
        } = tally;
        let answered = answered.iter();
        let failed = failed.iter().map(|((kind, text), count)| {
            let place = KINDS.iter().position(|known| known == kind);
            (place.unwrap_or(KINDS.len()) as u8, text.clone(), *count)
        });
        PackedInteraction {
            answered: answered
                .map(|(result, n)| ((*result).to_owned(), *n))
                .collect(),
            failed: failed.collect(),
            conflicts: conflicts.clone(),
            counts: [
                *in_phase,
                *unknown,
                *unfinished,
                *retried,
                *attempts,
                *round_trips,
            ],
            response: PackedTimes::of(response),
            service: PackedTimes::of(service),
            queue: PackedTimes::of(queue),
            think: PackedTimes::of(think),
        }
    }

    /// The tally, if these are results that the interaction has.
    fn unpack(self, results: &[&'static str]) -> Result<Tally, Unfit> {
        all_sane(&self.counts)?;
        all_sane(self.answered.values().chain(self.conflicts.values()))?;
        all_sane(self.failed.iter().map(|(_, _, count)| count))?;
        let named = |name: &String| {
            let usual = ["", NOTHING, FAILED];
            let mut known = results.iter().chain(&usual);
            known.find(|known| *known == name).copied().ok_or(Unfit)
        };
        let answered = self.answered.iter();
        let answered = answered.map(|(result, n)| Ok((named(result)?, *n)));
        let failed = self.failed.into_iter().map(|(kind, text, count)| {
            let kind = KINDS.get(usize::from(kind)).ok_or(Unfit)?;
            Ok(((*kind, text), count))
        });
        let [
            in_phase,
            unknown,
            unfinished,
            retried,
            attempts,
            round_trips,
        ] = self.counts;
        Ok(Tally {
            answered: answered.collect::<Result<_, Unfit>>()?,
            in_phase,
            failed: failed.collect::<Result<_, Unfit>>()?,
            unknown,
            unfinished,
            retried,
            attempts,
            conflicts: self.conflicts,
            round_trips,
            response: self.response.unpack()?,
            service: self.service.unpack()?,
            queue: self.queue.unpack()?,
            think: self.think.unpack()?,
        })
    }
}

/// From a state (`None`: START) by a row to a state (`None`: END), and how often.
type PackedTransition = (Option<u32>, u32, Option<u32>, u64);

/// [`PartResult`], without what was changed, which is sent before.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub(super) struct PackedSessions {
    interactions: Vec<PackedInteraction>,
    transitions: Vec<PackedTransition>,
    /// Begun, ended, connections that were made again.
    sessions: [u64; 3],
    /// Groups that were changed.
    groups: u64,
    /// Requests that wait at the end, by state, and arrivals.
    waiting: Vec<(u32, u64)>,
    arrivals: u64,
    refused: Option<String>,
    samples: PackedSamples,
}

impl PackedSessions {
    pub(super) fn of(part: &PartResult, own: Option<&ServerSeries>) -> PackedSessions {
        let PartResult {
            tallies,
            changes,
            waiting,
            refused,
        } = part;
        let Tallies {
            by_interaction,
            transitions,
            sessions_begun,
            sessions_ended,
            reconnected,
            second: _,
        } = tallies;
        let mut by_state: BTreeMap<u32, u64> = BTreeMap::new();
        for state in &waiting.0 {
            *by_state.entry(*state as u32).or_default() += 1;
        }
        let transition = |((from, row, next), count): (&(Option<usize>, usize, Next), &u64)| {
            let next = match next {
                Next::State(state) => Some(*state as u32),
                Next::End => None,
            };
            (from.map(|from| from as u32), *row as u32, next, *count)
        };
        PackedSessions {
            interactions: by_interaction.iter().map(PackedInteraction::of).collect(),
            transitions: transitions.iter().map(transition).collect(),
            sessions: [*sessions_begun, *sessions_ended, *reconnected],
            groups: changes.by_group.len() as u64,
            waiting: by_state.into_iter().collect(),
            arrivals: waiting.1,
            refused: refused.clone(),
            samples: own.map(PackedSamples::of).unwrap_or_default(),
        }
    }

    /// The result of a run with these interactions and so many states, and what the worker used
    /// under this name.
    pub(super) fn unpack(
        self,
        names: &Names,
        states: usize,
        changes: Changes,
        name: &str,
    ) -> Result<(PartResult, ServerSeries), Unfit> {
        let fits = self.interactions.len() == names.len();
        if !fits || self.groups != changes.by_group.len() as u64 {
            return Err(Unfit);
        }
        all_sane(self.sessions.iter().chain([&self.arrivals]))?;
        let mut tallies = Tallies::new(names.len());
        let interactions = self.interactions.into_iter().zip(names);
        let tally = interactions.map(|(tally, (_, results))| tally.unpack(results));
        tallies.by_interaction = tally.collect::<Result<_, _>>()?;
        let state = |state: u32| match (state as usize) < states {
            true => Ok(state as usize),
            false => Err(Unfit),
        };
        for (from, row, next, count) in self.transitions {
            let next = match next {
                Some(next) => Next::State(state(next)?),
                None => Next::End,
            };
            let transition = (from.map(state).transpose()?, row as usize, next);
            let sum = tallies.transitions.entry(transition).or_default();
            *sum = sane(sum.saturating_add(sane(count)?))?;
        }
        [
            tallies.sessions_begun,
            tallies.sessions_ended,
            tallies.reconnected,
        ] = self.sessions;
        let mut waiting = Vec::new();
        for (of, count) in self.waiting {
            if count > WAITING_MAX - waiting.len() as u64 {
                return Err(Unfit);
            }
            waiting.extend(std::iter::repeat_n(state(of)?, count as usize));
        }
        let part = PartResult {
            tallies,
            changes,
            waiting: (waiting, self.arrivals),
            refused: self.refused,
        };
        Ok((part, self.samples.unpack(name)?))
    }
}

/// Some groups that were changed, all of one kind: each with what was acknowledged, and what may
/// have been more and less.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub(super) struct ChangedPiece {
    kind: String,
    groups: Vec<(u64, [i64; 3])>,
}

impl ChangedPiece {
    /// All that was changed.
    pub(super) fn all(changes: &Changes) -> impl Iterator<Item = ChangedPiece> {
        let mut groups = changes.by_group.iter().peekable();
        std::iter::from_fn(move || {
            let ((kind, _), _) = groups.peek()?;
            let kind = *kind;
            let mut piece = ChangedPiece {
                kind: kind.to_owned(),
                groups: Vec::new(),
            };
            while piece.groups.len() < PIECE
                && let Some(((_, group), changed)) = groups.next_if(|((of, _), _)| *of == kind)
            {
                let Changed {
                    acknowledged,
                    unknown,
                    unknown_less,
                } = changed;
                let counts = [*acknowledged, *unknown, *unknown_less];
                piece.groups.push((*group, counts));
            }
            Some(piece)
        })
    }

    /// Adds it to what has come before.
    pub(super) fn add_to(self, changes: &mut Changes) -> Result<(), Unfit> {
        let kind = kind_named(&self.kind).ok_or(Unfit)?;
        if changes.by_group.len() + self.groups.len() > GROUPS_MAX {
            return Err(Unfit);
        }
        for (group, [acknowledged, unknown, unknown_less]) in self.groups {
            let changed = Changed {
                acknowledged,
                unknown,
                unknown_less,
            };
            changes.by_group.insert((kind, group), changed);
        }
        Ok(())
    }
}

/// [`Second`], and how many requests wait.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub(super) struct PackedSessionsSecond {
    answered: Vec<u64>,
    failed: u64,
    conflicts: BTreeMap<String, u64>,
    response: PackedHistogram,
    waiting: u64,
}

impl PackedSessionsSecond {
    pub(super) fn of(counts: &Second, waiting: u64) -> PackedSessionsSecond {
        let Second {
            answered,
            failed,
            conflicts,
            response,
        } = counts;
        PackedSessionsSecond {
            answered: answered.clone(),
            failed: *failed,
            conflicts: conflicts.clone(),
            response: PackedHistogram::of(response),
            waiting,
        }
    }

    pub(super) fn unpack(self, interactions: usize) -> Result<(Second, u64), Unfit> {
        if self.answered.len() != interactions {
            return Err(Unfit);
        }
        all_sane(self.answered.iter().chain(self.conflicts.values()))?;
        let mut response = Histogram::new(3).map_err(|_| Unfit)?;
        self.response.fill(&mut response)?;
        let counts = Second {
            answered: self.answered,
            failed: sane(self.failed)?,
            conflicts: self.conflicts,
            response,
        };
        Ok((counts, sane(self.waiting)?))
    }
}

/// What a worker used: second of the measured phase; processor, memory, disk read and written,
/// network in and out.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
struct PackedSamples(Vec<(f64, Option<[Option<f64>; 6]>)>);

impl PackedSamples {
    fn of(series: &ServerSeries) -> PackedSamples {
        let sample = |sample: &Sample| {
            let used = sample.used.map(|used| {
                let Used {
                    cpu,
                    memory,
                    disk_read,
                    disk_written,
                    net_in,
                    net_out,
                } = used;
                [
                    Some(cpu),
                    Some(memory),
                    disk_read,
                    disk_written,
                    Some(net_in),
                    Some(net_out),
                ]
            });
            (sample.at_s, used)
        };
        PackedSamples(series.samples.iter().map(sample).collect())
    }

    fn unpack(self, name: &str) -> Result<ServerSeries, Unfit> {
        if self.0.len() > SAMPLES_MAX {
            return Err(Unfit);
        }
        let is_sane = |number: &f64| number.is_finite() && number.abs() < 1e18;
        let sample = |(at_s, used): (f64, Option<[Option<f64>; 6]>)| {
            let mut numbers = used.iter().flatten().flatten().chain([&at_s]);
            if !numbers.all(is_sane) {
                return Err(Unfit);
            }
            let used = used.map(
                |[cpu, memory, disk_read, disk_written, net_in, net_out]| Used {
                    cpu: cpu.unwrap_or(0.0),
                    memory: memory.unwrap_or(0.0),
                    disk_read,
                    disk_written,
                    net_in: net_in.unwrap_or(0.0),
                    net_out: net_out.unwrap_or(0.0),
                },
            );
            Ok(Sample { at_s, used })
        };
        let samples = self.0.into_iter().map(sample);
        Ok(ServerSeries {
            name: name.to_owned(),
            host: None,
            samples: samples.collect::<Result<_, _>>()?,
            ended: None,
        })
    }
}

//! The coordinator's side: workers that were reached, and a run of theirs.

use super::WORKERS_MAX;
use super::member::{Member, lost};
use super::message::{Order, build};
use drive::run::others::{Others, OthersPart};
use drive::run::watch::SecondCounts;
use links::error::DriveError;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long before its begin a run is announced, beside two round trips.
const AHEAD: Duration = Duration::from_millis(300);

/// Workers that wait for a run.
#[derive(Debug)]
pub struct Crew {
    members: Vec<Arc<Member>>,
    /// The arguments of the run, as the workers get them.
    arguments: Vec<String>,
}

impl Crew {
    /// Reaches all workers, `HOST:PORT` each, for a run with these arguments.
    ///
    /// # Errors
    /// One is not there, is of another version, works for somebody else, or is named twice.
    pub fn join(addresses: &[String], arguments: Vec<String>) -> Result<Crew, DriveError> {
        Ok(Crew {
            members: reach_all(addresses)?,
            arguments,
        })
    }
}

/// Reaches all workers.
pub(super) fn reach_all(addresses: &[String]) -> Result<Vec<Arc<Member>>, DriveError> {
    if addresses.len() > WORKERS_MAX {
        let text = format!("--worker: at most {WORKERS_MAX} workers");
        return Err(DriveError::Option(text));
    }
    let mut seen = BTreeSet::new();
    if let Some(twice) = addresses.iter().find(|it| !seen.insert(*it)) {
        let text = format!("--worker {twice} is said twice");
        return Err(DriveError::Option(text));
    }
    let own = build();
    let members = addresses.iter();
    let members = members.map(|address| Member::reach(address, own.as_deref()));
    members.collect()
}

/// Measures the clocks, and lets all of them begin at the same time.
pub(super) fn begin_all(members: &[Arc<Member>]) -> Result<Instant, DriveError> {
    let mut longest = Duration::ZERO;
    for member in members {
        longest = longest.max(member.measure_clock()?);
    }
    let start = Instant::now() + AHEAD + 2 * longest;
    for member in members {
        member.send(&Order::Begin {
            at_us: member.clock_at(start),
        });
    }
    let lost = members.iter().find_map(|member| member.lost());
    lost.map_or(Ok(start), Err)
}

impl Others for Crew {
    fn count(&self) -> u32 {
        self.members.len() as u32
    }

    fn lost(&self) -> Option<DriveError> {
        self.members.iter().find_map(|member| member.lost())
    }

    fn prepare(
        &self,
        parameters: &[(&'static str, String)],
        recorded_max: Option<usize>,
    ) -> Result<(), DriveError> {
        for (number, member) in (0..).zip(&self.members) {
            if let Some(most) = recorded_max {
                member.expect_history(most.div_ceil(self.members.len()));
            }
            member.send(&Order::Prepare {
                arguments: self.arguments.clone(),
                number,
                count: self.count(),
            });
        }
        for member in &self.members {
            let ready = loop {
                if let Some(lost) = self.lost() {
                    return Err(lost);
                }
                if let Some(ready) = member.ready() {
                    break ready;
                }
            };
            let here = parameters.iter();
            let here = here.map(|(name, value)| (String::from(*name), value.clone()));
            let here: Vec<_> = here.collect();
            if ready != here {
                let differ = ready.iter().zip(&here).find(|(there, here)| there != here);
                let differ = match differ {
                    Some(((name, there), (_, here))) => format!("{name} is {there}, here {here}"),
                    None => String::from("it has other parameters"),
                };
                return Err(DriveError::Worker(format!(
                    "worker {} would run something else: {differ}; do both reach the same \
                     database?",
                    member.address
                )));
            }
        }
        Ok(())
    }

    fn begin(&self) -> Result<Instant, DriveError> {
        begin_all(&self.members)
    }

    fn want(&self, wanted: &[Vec<u32>]) {
        for (member, wanted) in self.members.iter().zip(wanted) {
            member.send(&Order::Want(wanted.clone()));
        }
    }

    fn competing(&self, rows: usize) -> Vec<u32> {
        let of_row = |row| {
            let members = self.members.iter().map(|member| member.competing(row));
            members.fold(0, u32::saturating_add)
        };
        (0..rows).map(of_row).collect()
    }

    fn waiting(&self) -> u64 {
        self.members.iter().map(|member| member.waiting()).sum()
    }

    fn take_second(&self, second: u64, until: Instant) -> Option<SecondCounts> {
        let mut sum: Option<SecondCounts> = None;
        for member in &self.members {
            let counts = loop {
                match member.take_second(second) {
                    Some(counts) => break counts,
                    None if self.lost().is_some() || Instant::now() > until => return None,
                    None => {}
                }
            };
            match &mut sum {
                Some(sum) => sum.merge(&counts),
                None => sum = Some(counts),
            }
        }
        sum
    }

    fn results(&self, kinds: usize, until: Instant) -> Result<Vec<OthersPart>, DriveError> {
        let mut parts = Vec::new();
        for member in &self.members {
            let part = loop {
                if let Some(lost) = self.lost() {
                    return Err(lost);
                }
                if let Some(part) = member.done() {
                    break part;
                }
                if Instant::now() > until {
                    return Err(lost(&member.address, "has not sent its result"));
                }
            };
            let unfit = |_| lost(&member.address, "has sent a result that does not fit");
            let pieces = member.take_pieces();
            let slack = match &pieces {
                Some(_) => member.measure_slack()?,
                None => Duration::ZERO,
            };
            parts.push(OthersPart {
                address: member.address.clone(),
                cores: member.cores,
                same_build: member.same_build,
                clock: member.clock(),
                slack,
                result: part.unpack(kinds, pieces).map_err(unfit)?,
            });
        }
        Ok(parts)
    }

    fn stop(&self) {
        let members = self.members.iter();
        members.for_each(|member| member.send(&Order::Stop));
    }
}

/// The workers stop, whatever they do.
impl Drop for Crew {
    fn drop(&mut self) {
        self.members.iter().for_each(|member| member.leave());
    }
}

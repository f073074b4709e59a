//! The coordinator's side of a run of sessions.

use super::crew::{begin_all, reach_all};
use super::member::Member;
use super::message::{ORDER_BYTES_MAX, Order};
use fault::ServerSeries;
use links::error::DriveError;
use links::lock;
use serde_json::{Value, json};
use sessions::resolved::Document;
use sessions::run::parts::{Names, Others, PartResult};
use sessions::run::{RunError, Second, Tally};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// How long the counts of a second may take: what is late has no place in the live view.
const SECOND_MAX: Duration = Duration::from_secs(3);
/// How long after the end of a run the results may take. What is under way then ends first.
const RESULT_MAX: Duration = Duration::from_secs(120);

/// Workers that have the load of one run of sessions.
#[derive(Debug)]
pub struct SessionCrew {
    members: Vec<Arc<Member>>,
    /// The document, as text.
    document: String,
    states: usize,
    /// What has come of each: answered, and what it used.
    came: Mutex<Vec<(u64, ServerSeries)>>,
}

fn stored(error: DriveError) -> RunError {
    RunError::Store(error.to_string())
}

impl SessionCrew {
    /// Reaches all workers, `HOST:PORT` each, for a run of this document.
    ///
    /// # Errors
    /// One is not there, is of another version, works for somebody else, or is named twice; there
    /// are more of them than threads; the document is too large for a message.
    pub fn join(
        addresses: &[String],
        document: &Value,
        read: &Document,
    ) -> Result<SessionCrew, DriveError> {
        let text = document.to_string();
        if text.len() + 64 > ORDER_BYTES_MAX as usize {
            let why = format!("the document has more than {} KiB", ORDER_BYTES_MAX / 1_024);
            return Err(DriveError::Worker(why));
        }
        if addresses.len() as u64 > read.threads() {
            let (workers, threads) = (addresses.len(), read.threads());
            let why = format!("{workers} workers for {threads} threads: some would have none");
            return Err(DriveError::Worker(why));
        }
        Ok(SessionCrew {
            members: reach_all(addresses)?,
            document: text,
            states: read.states(),
            came: Mutex::default(),
        })
    }

    /// What each of them used of its machine in the course of the run, once there are results.
    pub fn used(&self) -> Vec<ServerSeries> {
        lock(&self.came)
            .iter()
            .map(|(_, used)| used.clone())
            .collect()
    }
}

impl Others for SessionCrew {
    fn count(&self) -> u64 {
        self.members.len() as u64
    }

    fn prepare(&self, stop: &AtomicBool) -> Result<(), RunError> {
        for (number, member) in (0..).zip(&self.members) {
            member.send(&Order::Sessions {
                document: self.document.clone(),
                number,
                count: self.members.len() as u32,
            });
        }
        for member in &self.members {
            // A load may take hours; a worker that is lost says nothing for seconds.
            while member.ready().is_none() {
                if let Some(why) = Others::lost(self) {
                    return Err(RunError::Store(why));
                }
                if stop.load(Ordering::Relaxed) {
                    return Err(RunError::Stopped);
                }
            }
        }
        Ok(())
    }

    fn begin(&self) -> Result<Instant, RunError> {
        begin_all(&self.members).map_err(stored)
    }

    fn lost(&self) -> Option<String> {
        let lost = self.members.iter().find_map(|member| member.lost());
        lost.map(|error| error.to_string())
    }

    fn take_second(&self, second: u64, names: &Names) -> Option<(Second, u64)> {
        let until = Instant::now() + SECOND_MAX;
        let mut sum = (Second::new(names.len()), 0);
        for member in &self.members {
            let counts = loop {
                match member.take_sessions_second(second) {
                    Some(counts) => break counts,
                    None if Others::lost(self).is_some() || Instant::now() > until => return None,
                    None => {}
                }
            };
            match counts.unpack(names.len()) {
                Ok((counts, waiting)) => {
                    sum.0.merge(&counts);
                    sum.1 += waiting;
                }
                Err(_) => member.unfit("counts"),
            }
        }
        Some(sum)
    }

    fn results(&self, names: &Names) -> Result<Vec<PartResult>, RunError> {
        let until = Instant::now() + RESULT_MAX;
        let mut parts = Vec::new();
        for member in &self.members {
            let (done, changes) = loop {
                if let Some(done) = member.take_sessions() {
                    break done;
                }
                if let Some(why) = Others::lost(self) {
                    return Err(RunError::Store(why));
                }
                if Instant::now() > until {
                    let error = super::member::lost(&member.address, "has not sent its result");
                    return Err(stored(error));
                }
            };
            let unpacked = done.unpack(names, self.states, changes, &member.address);
            let unfit = |_| {
                let text = "has sent a result that does not fit";
                stored(super::member::lost(&member.address, text))
            };
            let (part, used) = unpacked.map_err(unfit)?;
            let tallies = part.tallies.by_interaction.iter();
            lock(&self.came).push((tallies.map(Tally::answered_all).sum(), used));
            parts.push(part);
        }
        Ok(parts)
    }

    fn describe(&self) -> Value {
        let came = lock(&self.came);
        let members = self.members.iter().zip(came.iter());
        let told = members.map(|(member, (answered, _))| {
            let clock = member.clock();
            json!({
                "address": member.address,
                "same_build": member.same_build,
                "cores": member.cores,
                "answered": answered,
                "clock_offset_us": clock.offset_us,
                "round_trip_us": clock.round_trip_us,
            })
        });
        told.collect()
    }

    fn stop(&self) {
        let members = self.members.iter();
        members.for_each(|member| member.send(&Order::Stop));
    }
}

/// The workers stop, whatever they do.
impl Drop for SessionCrew {
    fn drop(&mut self) {
        self.members.iter().for_each(|member| member.leave());
    }
}

//! One run by several processes, on one machine or on several: a coordinator and its workers.
//!
//! ```text
//! coordinator                                worker
//!   greeting (a line of text)          ->
//!                                      <-    greeting: release and cores, or why not
//!   Ping  (several times)              ->
//!                                      <-    Pong: its clocks
//!   Prepare: arguments, part of parts  ->      connects its clients
//!                                      <-    Ready: what it would run
//!   Begin: a time of the worker's clock ->     runs
//!   Want: hot transactions by row      ->      (--contention, ten times a second)
//!                                      <-    Competing: how many there are
//!                                      <-    Beat (always), Second (each second)
//!                                      <-    Seen: the own history in pieces (--histories)
//!                                      <-    Done: counts and raw histograms
//! ```
//!
//! A run of sessions (`trellis bench exp`) has other words for the same course: `Sessions` with the
//! document for `Prepare`, `SessionsSecond`, `Changed` with pieces of what was changed, and
//! `SessionsDone`. Workers load their part before they are `Ready`.
//!
//! Every worker gets the same arguments and draws the same run from the same seed; of its
//! terminals, connections and arrivals it takes those that are dealt to its part. So the offered
//! load of several workers is that of one process: rates are not divided, and no two terminals have
//! the same random stream.
//!
//! * The coordinator alone loads, tests, breaks servers, reads counters, checks and reports.
//! * A worker that breaks its connection, or says nothing for [`SILENCE`], is lost: the run ends
//!   with an error and has no number, and the other workers stop.
//! * A coordinator that breaks its connection, or says nothing for as long, ends the run of its
//!   workers, which wait for the next one.
//! * What comes from a stranger is bounded in size and time, and never a reason to end.
//! * There is no authentication: who reaches a worker can have it connect to any server and run
//!   transactions there. Hence workers listen on loopback unless they are told otherwise.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod crew;
pub mod fuzzing;
mod member;
mod message;
mod packed;
mod packed_sessions;
mod recorded;
mod serve;
mod serve_sessions;
mod sessions_crew;
#[cfg(test)]
mod tests;

pub use crew::Crew;
pub use serve::{Accept, serve};
pub use sessions_crew::SessionCrew;

use std::time::Duration;

/// How long either side may say nothing before it counts as lost.
pub const SILENCE: Duration = Duration::from_secs(10);
/// How often each side says at least something.
const BEAT: Duration = Duration::from_millis(250);
/// How long connecting and the greeting may take.
const GREETING_MAX: Duration = Duration::from_secs(5);
/// How a worker says that it has a run already.
const BUSY: &str = "it works for";
/// The version of the messages; larger when one of them changes.
const FORMAT: u32 = 3;
/// Processes that run one load, at most.
const WORKERS_MAX: usize = 256;

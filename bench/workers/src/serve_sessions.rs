//! A worker's part of a run of sessions: loads, connects, runs, and samples what it uses.

use super::message::Answer;
use super::packed_sessions::{ChangedPiece, PackedSessions, PackedSessionsSecond};
use super::serve::Session;
use drive::run::parts::{Lead as _, Part};
use fault::{Sampler, ServerSeries};
use sessions::resolved::{Document, STORE};
use sessions::run::parts::{Lead, Part as SessionsPart, PartResult};
use sessions::run::{Phases, Second};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How often the sampling thread looks whether the run has begun.
const LOOK: Duration = Duration::from_millis(20);

/// A run as its coordinator and the sampling thread see it.
struct Leading<'a> {
    session: &'a Session,
    begun: OnceLock<Instant>,
}

impl Lead for Leading<'_> {
    fn begin(&self) -> Option<Instant> {
        let at = self.session.begin(Vec::new())?;
        let _ = self.begun.set(at);
        Some(at)
    }

    fn second(&self, second: u64, counts: &Second, waiting: u64) {
        let counts = PackedSessionsSecond::of(counts, waiting);
        let answer = Answer::SessionsSecond { second, counts };
        if self.session.line.send(&answer).is_err() {
            self.session.end();
        }
    }

    fn stop(&self) -> &AtomicBool {
        &self.session.stop
    }
}

impl Session {
    /// Carries out a part of a run of sessions, and sends what came of it. Returns how it ended.
    pub(super) fn answer_sessions(&self, document: &str, part: Part) -> String {
        let (answer, end) = match self.run_sessions(document, part) {
            Ok(Some((done, used))) => {
                let mut pieces = ChangedPiece::all(&done.changes);
                let sent = pieces.try_for_each(|piece| self.line.send(&Answer::Changed(piece)));
                if let Err(error) = sent {
                    self.end();
                    return format!("what was changed could not be sent: {error}");
                }
                let packed = PackedSessions::of(&done, used.as_ref());
                (Answer::SessionsDone(Box::new(packed)), String::from("done"))
            }
            Ok(None) => return String::from("ended before its time"),
            Err(text) => (Answer::Refused(text.clone()), text),
        };
        match self.line.send(&answer) {
            Ok(()) => end,
            Err(error) => {
                self.end();
                format!("the result could not be sent: {error}")
            }
        }
    }

    fn run_sessions(
        &self,
        document: &str,
        part: Part,
    ) -> Result<Option<(PartResult, Option<ServerSeries>)>, String> {
        let value = serde_json::from_str(document);
        let value = value.map_err(|error| format!("a document that is none: {error}"))?;
        let document = Document::read(&value).map_err(|problem| problem.to_string())?;
        if document.store_url() == STORE {
            return Err(String::from(
                "the store of a process is no store of several",
            ));
        }
        let leading = Leading {
            session: self,
            begun: OnceLock::new(),
        };
        let is_over = AtomicBool::new(false);
        let part = SessionsPart {
            number: u64::from(part.number),
            count: u64::from(part.count),
        };
        std::thread::scope(|scope| {
            let sampling = scope.spawn(|| sample(&leading.begun, document.phases(), &is_over));
            let done = document.run_part(part, &leading);
            is_over.store(true, Ordering::Relaxed);
            let used = sampling.join().expect("a sampler does not panic");
            let done = done.map_err(|error| error.to_string())?;
            Ok(done.map(|done| (done, used)))
        })
    }
}

/// What this process uses from the begin of a run to its end.
fn sample(begun: &OnceLock<Instant>, phases: Phases, is_over: &AtomicBool) -> Option<ServerSeries> {
    let begun = loop {
        match begun.get() {
            Some(begun) => break *begun,
            None if is_over.load(Ordering::Relaxed) => return None,
            None => std::thread::sleep(LOOK),
        }
    };
    let mut sampler = Sampler::prepare(&[]).ok()?;
    sampler.add_own("");
    let clock = || {
        let at_s = begun.elapsed().as_secs_f64() - phases.warmup_s;
        let goes_on = at_s < phases.measure_s && !is_over.load(Ordering::Relaxed);
        goes_on.then_some(at_s)
    };
    sampler.run(&clock).servers.into_iter().next()
}

//! One thread of a run: it takes the session whose request is due, runs the interaction, and puts
//! the session back for its next one.

use super::queue::{Queue, Taken, Walker};
use super::tally::Tallies;
use super::{Connector, Stage, Workload};
use crate::interaction::{Changes, FAILED, Failure, Performed, Session};
use crate::population::Kind;
use crate::table::Next;
use std::sync::PoisonError;
use std::time::Duration;

/// How long a thread waits before it connects again.
const AGAIN: Duration = Duration::from_millis(100);
/// States without an interaction that a session passes before other sessions have their turn.
const PASSED_MAX: usize = 1_000;

/// One thread.
pub(super) struct Worker<'a, C: Connector, W: Workload<C::Access>> {
    stage: &'a Stage<'a, C, W>,
    /// Among the threads of this process.
    number: usize,
    queue: &'a Queue,
    access: Option<C::Access>,
    changes: Changes,
}

impl<'a, C: Connector, W: Workload<C::Access>> Worker<'a, C, W> {
    pub(super) fn new(stage: &'a Stage<'a, C, W>, number: usize, access: C::Access) -> Self {
        Worker {
            stage,
            number,
            queue: &stage.queues[number % stage.queues.len()],
            access: Some(access),
            changes: Changes::default(),
        }
    }

    /// Works until the run is over. What was changed is returned.
    pub(super) fn work(mut self) -> Changes {
        let now_ns = || self.stage.now_ns();
        let queue = self.queue;
        while !self.stage.is_over() {
            let walker = match queue.take(&now_ns) {
                Taken::Nothing => continue,
                Taken::Walker(walker) => Some(*walker),
                Taken::Arrival(number, due_ns) => self.stage.begin(number, due_ns),
            };
            if let Some(walker) = walker
                && let Some(walker) = self.go_on(walker)
            {
                queue.put(walker);
            }
        }
        self.changes
    }

    /// The request of a session. `None`: the session is over and no other takes its place.
    fn go_on(&mut self, mut walker: Walker) -> Option<Walker> {
        for _ in 0..PASSED_MAX {
            let state = &self.stage.table.states()[walker.state];
            let (result, end_ns, think) = match state.interaction {
                None => ("", walker.due_ns, None),
                Some(interaction) => {
                    let (result, end_ns) = self.interact(&mut walker, interaction);
                    let think = state.think.as_ref().unwrap_or(&self.stage.population.think);
                    (result, end_ns, Some((think, interaction)))
                }
            };
            let (row, _) = self.stage.table.row(walker.state, result);
            let next = self
                .stage
                .table
                .follow(walker.state, result, &mut walker.session.walk);
            self.count(|tallies| {
                let transition = (Some(walker.state), row, next);
                *tallies.transitions.entry(transition).or_default() += 1;
                tallies.sessions_ended += u64::from(next == Next::End);
            });
            walker.due_ns = end_ns;
            if let Some((think, interaction)) = think {
                let session = &mut walker.session;
                let us = think.draw_us(&mut session.pauses, session.place, walker.thoughts);
                walker.thoughts += 1;
                walker.due_ns += us * 1_000;
                if self.stage.is_measured(end_ns) {
                    self.count(|tallies| {
                        tallies.by_interaction[interaction].think.count(us * 1_000);
                    });
                }
            }
            match next {
                Next::State(state) => walker.state = state,
                Next::End => {
                    let due_ns = walker.due_ns;
                    walker = self.follower(&walker.session, due_ns)?;
                    walker.due_ns = due_ns;
                }
            }
            if think.is_some() {
                break;
            }
        }
        Some(walker)
    }

    /// The session that takes the place of one that is over.
    fn follower(&self, session: &Session, due_ns: u64) -> Option<Walker> {
        match self.stage.population.kind {
            Kind::Open(_) => None,
            Kind::Closed | Kind::SemiOpen => {
                let number = session.number + self.stage.population.sessions;
                self.stage.begin(number, due_ns)
            }
        }
    }

    fn count(&self, count: impl FnOnce(&mut Tallies)) {
        let tallies = &self.stage.tallies;
        let place = &tallies[self.number % tallies.len()];
        count(&mut place.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Runs an interaction and counts it. Its result, and when the session goes on.
    fn interact(&mut self, walker: &mut Walker, interaction: usize) -> (&'static str, u64) {
        let due_ns = walker.due_ns;
        if self.access.is_none() {
            self.connect();
        }
        let Some(access) = &mut self.access else {
            let failure = Failure::Lost("no connection could be made".to_string());
            self.count_failure(interaction, due_ns, &failure);
            return (FAILED, self.stage.now_ns());
        };
        let now_ns = || self.stage.now_ns();
        let performed = self.stage.connector.drive(self.stage.workload.perform(
            interaction,
            &mut walker.session,
            access,
            &mut self.changes,
            &now_ns,
        ));
        let end_ns = performed.executed_ns.map_or_else(now_ns, |(_, end)| end);
        let result = match &performed.ended {
            Ok(result) => *result,
            Err(failure) => {
                if failure.is_lost() {
                    self.access = None;
                }
                if matches!(failure, Failure::Wrong(_)) {
                    self.stage.refuse(failure.to_string());
                }
                FAILED
            }
        };
        self.record(interaction, due_ns, end_ns, performed);
        (result, end_ns)
    }

    fn record(&self, interaction: usize, due_ns: u64, end_ns: u64, performed: Performed) {
        let Performed {
            ended,
            effort,
            executed_ns,
        } = performed;
        let is_measured = self.stage.is_measured(due_ns);
        let in_phase = self.stage.is_measured(end_ns);
        self.count(|tallies| {
            let is_answered = ended.is_ok();
            for (kind, count) in &effort.conflicts {
                *tallies.second.conflicts.entry(kind.clone()).or_default() += count;
            }
            match (executed_ns, is_answered) {
                (Some((begin_ns, end_ns)), true) => {
                    let from_ns = self.asked_ns(due_ns, begin_ns);
                    let ns = end_ns.saturating_sub(from_ns);
                    tallies.second.answer(interaction, ns);
                }
                (None, true) => {}
                (_, false) => tallies.second.failed += 1,
            }
            let tally = &mut tallies.by_interaction[interaction];
            // Without a parameter there was no request, and so there is no rate of them.
            let Some((begin_ns, end_ns)) = executed_ns else {
                if let (true, Ok(result)) = (is_measured, ended) {
                    *tally.answered.entry(result).or_default() += 1;
                }
                return;
            };
            tally.in_phase += u64::from(in_phase && is_answered);
            if !is_measured {
                return;
            }
            tally.add_effort(effort);
            match ended {
                Ok(result) => {
                    *tally.answered.entry(result).or_default() += 1;
                    let due_ns = self.asked_ns(due_ns, begin_ns);
                    tally.response.count(end_ns.saturating_sub(due_ns));
                    tally.service.count(end_ns.saturating_sub(begin_ns));
                    tally.queue.count(begin_ns.saturating_sub(due_ns));
                }
                Err(failure) => tally.fail(&failure),
            }
        });
    }

    /// When a request was made: a closed session makes it when its thread takes it.
    fn asked_ns(&self, due_ns: u64, begin_ns: u64) -> u64 {
        match self.stage.population.kind {
            Kind::Closed => begin_ns,
            Kind::SemiOpen | Kind::Open(_) => due_ns,
        }
    }

    fn count_failure(&self, interaction: usize, due_ns: u64, failure: &Failure) {
        let is_measured = self.stage.is_measured(due_ns);
        self.count(|tallies| {
            tallies.second.failed += 1;
            if is_measured {
                tallies.by_interaction[interaction].fail(failure);
            }
        });
    }

    /// Connects again. One attempt: in between the thread looks at the end of the run.
    fn connect(&mut self) {
        match self
            .stage
            .connector
            .connect(self.stage.threads[self.number])
        {
            Ok(access) => {
                self.access = Some(access);
                self.count(|tallies| tallies.reconnected += 1);
            }
            Err(_) => std::thread::sleep(AGAIN),
        }
    }
}

//! Interactions: prepare, execute, complete (section 5.1 of the paper).
//!
//! An interaction is one request of a user. `prepare` stands for the user: it draws the parameter,
//! from the state of the session. `execute` is the application: it reads and writes, in one or more
//! transactions. `complete` changes the state by what was answered and names the result, by which a
//! transition table may go on.
//!
//! ```text
//! Plan              prepare, complete     once for a workload, knows no store
//!   Interaction<D>  execute               once for each kind of data access D: entities, SQL
//! ```
//!
//! All of it is pure: a store is an argument, and so are randomness and time. Futures over a
//! connection that waits in its calls are ready at their first poll; those of a simulated one are
//! pending until virtual time brings the answer.

use crate::state::State;
use base::Prng;
use std::collections::BTreeMap;
use std::fmt;
use workload::stream;

/// Tags of the generators of a session.
const DRAWS: u64 = 0x6472_6177;
const WALK: u64 = 0x7761_6c6b;
const PAUSES: u64 = 0x7061_7573;

/// One user with what was seen so far.
#[derive(Clone, Debug)]
pub struct Session {
    /// Counted from 0 over the whole run.
    pub number: u64,
    /// The place among those that are there at the same time: below the population's sessions.
    pub place: u64,
    /// What the user knows.
    pub state: State,
    /// Draws parameters. Other draws do not disturb these.
    pub draws: Prng,
    /// Draws transitions.
    pub walk: Prng,
    /// Draws think times.
    pub pauses: Prng,
}

impl Session {
    /// A session that has seen nothing. What it draws follows from the seed and its number.
    pub fn new(seed: u64, number: u64, place: u64) -> Session {
        Session {
            number,
            place,
            state: State::default(),
            draws: stream(seed, &[DRAWS, number]),
            walk: stream(seed, &[WALK, number]),
            pauses: stream(seed, &[PAUSES, number]),
        }
    }
}

/// How an interaction ended that did not get its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// Others were faster each time that the retry policy allows; nothing of it happened. With the
    /// kind of the last conflict.
    Conflict(String),
    /// The store does not do it: a limit or a bug, in its words. Nothing of it happened.
    Refused(String),
    /// The connection is gone and nothing of it happened.
    Lost(String),
    /// It may or may not have happened.
    Unknown(String),
    /// The store answered what contradicts the workload's own rules: the run has no number.
    Wrong(String),
}

impl Failure {
    /// Whether the connection is of no more use.
    pub fn is_lost(&self) -> bool {
        matches!(self, Failure::Lost(_) | Failure::Unknown(_))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Conflict(text) => write!(f, "conflict: {text}"),
            Failure::Refused(text) => write!(f, "refused: {text}"),
            Failure::Lost(text) => write!(f, "connection lost: {text}"),
            Failure::Unknown(text) => write!(f, "outcome unknown: {text}"),
            Failure::Wrong(text) => write!(f, "wrong answer: {text}"),
        }
    }
}

/// What the transactions of an interaction took.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Effort {
    /// Attempts at transactions; 0 if single operations were enough.
    pub attempts: u64,
    /// Attempts that ended by a conflict, by its kind.
    pub conflicts: BTreeMap<String, u64>,
    /// Round trips, where the data access counts them.
    pub round_trips: u64,
}

/// More than any sum: a thousand of it still fit into a number.
const UNBOUNDED: i64 = 1 << 52;

/// Counts by group: how often each was changed, and how often it may have been.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Acknowledged and unknown changes, by kind of entity and group.
    pub by_group: BTreeMap<(&'static str, u64), Changed>,
}

/// Changes of one group. What a store holds lies between `acknowledged` and the sum with `unknown`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Changed {
    /// Sum of the changes that were acknowledged.
    pub acknowledged: i64,
    /// Sum of those of which nobody knows, each above 0.
    pub unknown: i64,
    /// Sum of those of which nobody knows, each below 0.
    pub unknown_less: i64,
}

impl Changes {
    /// Notes a change of a group's sum.
    pub fn note(&mut self, kind: &'static str, group: u64, change: i64, is_known: bool) {
        let changed = self.by_group.entry((kind, group)).or_default();
        let sum = match (is_known, change < 0) {
            (true, _) => &mut changed.acknowledged,
            (false, false) => &mut changed.unknown,
            (false, true) => &mut changed.unknown_less,
        };
        *sum += change;
    }

    /// Notes that nobody knows the group's sum any more.
    pub fn lose_sight(&mut self, kind: &'static str, group: u64) {
        self.note(kind, group, UNBOUNDED, false);
        self.note(kind, group, -UNBOUNDED, false);
    }

    /// Adds those of another thread or process.
    pub fn merge(&mut self, others: &Changes) {
        for (group, others) in &others.by_group {
            let changed = self.by_group.entry(*group).or_default();
            // They may come from another process, which can say anything.
            let add = |sum: &mut i64, more: i64| *sum = sum.saturating_add(more);
            add(&mut changed.acknowledged, others.acknowledged);
            add(&mut changed.unknown, others.unknown);
            add(&mut changed.unknown_less, others.unknown_less);
        }
    }
}

impl Changed {
    /// Whether a sum that is found in the store can be that of these changes.
    pub fn allows(&self, found: i64) -> bool {
        let low = self.acknowledged.saturating_add(self.unknown_less);
        let high = self.acknowledged.saturating_add(self.unknown);
        (low..=high).contains(&found)
    }

    /// What is wrong if this many of `what` are found of a group; `None`: it can be so.
    pub fn finding(&self, group: impl fmt::Display, found: i64, what: &str) -> Option<String> {
        let Changed {
            acknowledged,
            unknown,
            unknown_less,
        } = self;
        (!self.allows(found)).then(|| {
            format!(
                "{group}: {found} {what}, where {acknowledged} were acknowledged and \
                 {unknown_less} to {unknown} are unknown"
            )
        })
    }
}

/// What an interaction is on every store.
pub trait Plan {
    /// What the user asks for.
    type Param;
    /// What is answered.
    type Answer;

    /// Draws the parameter. `None`: with what this user knows there is nothing to ask for; the
    /// result is then `NOTHING`.
    fn prepare(&self, session: &mut Session) -> Option<Self::Param>;

    /// Changes the session's state by the answer, and names the result: empty, or one of those
    /// that the workload tells apart.
    fn complete(
        &self,
        param: &Self::Param,
        answer: Self::Answer,
        session: &mut Session,
    ) -> &'static str;

    /// Notes what the interaction changed, or may have changed, for the check after the run.
    fn note(&self, param: &Self::Param, answer: Option<&Self::Answer>, changes: &mut Changes) {
        let _ = (param, answer, changes);
    }
}

/// An interaction over one kind of data access.
pub trait Interaction<D>: Plan {
    /// Does it. The retries of its transactions are the data access's own, and counted in `effort`.
    ///
    /// # Errors
    /// [`Failure`].
    fn execute(
        &self,
        param: &Self::Param,
        access: &mut D,
        effort: &mut Effort,
    ) -> impl Future<Output = Result<Self::Answer, Failure>>;
}

/// The result of an interaction for which there was nothing to ask for.
pub const NOTHING: &str = "NOTHING";
/// What a table calls the result of an interaction that was not answered.
pub const FAILED: &str = "FAILED";

/// What became of one interaction.
#[derive(Clone, Debug)]
pub struct Performed {
    /// Its result, or why there is none.
    pub ended: Result<&'static str, Failure>,
    /// What its transactions took.
    pub effort: Effort,
    /// Begin and end of `execute`, by the clock of the caller, in nanoseconds. `None`: there was
    /// nothing to ask for.
    pub executed_ns: Option<(u64, u64)>,
}

/// Runs one interaction: prepare, execute, complete.
pub async fn perform<D, I: Interaction<D>>(
    interaction: &I,
    session: &mut Session,
    access: &mut D,
    changes: &mut Changes,
    now_ns: &dyn Fn() -> u64,
) -> Performed {
    let mut effort = Effort::default();
    let Some(param) = interaction.prepare(session) else {
        return Performed {
            ended: Ok(NOTHING),
            effort,
            executed_ns: None,
        };
    };
    let begin_ns = now_ns();
    let answer = interaction.execute(&param, access, &mut effort).await;
    let end_ns = now_ns();
    let ended = match answer {
        Ok(answer) => {
            interaction.note(&param, Some(&answer), changes);
            Ok(interaction.complete(&param, answer, session))
        }
        Err(failure) => {
            if matches!(failure, Failure::Unknown(_)) {
                interaction.note(&param, None, changes);
            }
            Err(failure)
        }
    };
    Performed {
        ended,
        effort,
        executed_ns: Some((begin_ns, end_ns)),
    }
}

/// Runs the interaction at a place among those of a workload:
/// `dispatch!(place, (session, access, changes, now_ns), { PLACES => INTERACTION, .. })`.
macro_rules! dispatch {
    (
        $place:expr, ($session:expr, $access:expr, $changes:expr, $now_ns:expr),
        { $($places:pat => $interaction:expr,)+ }
    ) => {
        match $place {
            $($places => {
                let interaction = $interaction;
                $crate::interaction::perform(&interaction, $session, $access, $changes, $now_ns)
                    .await
            })+
            _ => unreachable!("a table names interactions that are there"),
        }
    };
}
pub(crate) use dispatch;

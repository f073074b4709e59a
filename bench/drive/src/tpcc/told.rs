//! What the server says of the nodes that transactions have touched (`SHOW DISTRIBUTION`).
//!
//! The answer is a sum over the nodes that can be reached, and a node that starts anew counts from
//! 0. So `SHOW NODES` is asked before and after it. Where an answer is missing or may be a part,
//! the server has not told, which is no fault of the run.

use super::dike::Degrees;
use links::answers::Answers;
use links::error::DriveError;
use links::link::{Link, LinkError};
use links::url::Target;
use std::time::Duration;

/// How long the server may take to say what it has counted.
const ANSWER_LIMIT: Duration = Duration::from_secs(30);
/// Why counts cannot be relied on.
const AWAY: &str = "a node was away or has started anew";

/// Each node with how often it has started; `None`: it cannot be reached.
type Nodes = Vec<(Option<i64>, Option<i64>)>;

/// All nodes together, at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Counted {
    degrees: Degrees,
    nodes: Nodes,
}

/// Why there is no answer otherwise.
type Answer = Result<Counted, String>;

/// What the server has counted, as the first and as the last of several questions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    first: Answer,
    last: Answer,
}

impl Told {
    /// It was not asked.
    pub(super) fn nothing() -> Told {
        let unasked = || Err(String::from("it does not count them"));
        Told {
            first: unasked(),
            last: unasked(),
        }
    }

    /// Asks before and after `between`, which asks the server other things.
    pub(super) fn around<T>(
        target: &Target,
        between: impl FnOnce() -> Result<T, DriveError>,
    ) -> Result<(T, Told), DriveError> {
        let first = ask(target);
        let result = between()?;
        let last = ask(target);
        Ok((result, Told { first, last }))
    }

    /// What was counted between the last answer of `before` and the first of `after`.
    ///
    /// # Errors
    /// Why the counts are not known: an answer is missing, the nodes of two answers differ, or
    /// something was counted and later was not.
    pub(super) fn gain(before: &Told, after: &Told) -> Result<Degrees, String> {
        let mut answers = Vec::new();
        for answer in [&before.first, &before.last, &after.first, &after.last] {
            answers.push(answer.as_ref().map_err(String::clone)?);
        }
        if answers.windows(2).any(|two| !two[1].follows(two[0])) {
            return Err(AWAY.into());
        }
        let (before, after) = (answers[1], answers[2]);
        let gain = |(nodes, count): (&u64, &u64)| {
            let gained = count - before.degrees.get(nodes).copied().unwrap_or(0);
            (*nodes > 0 && gained > 0).then_some((*nodes, gained))
        };
        Ok(after.degrees.iter().filter_map(gain).collect())
    }
}

impl Counted {
    /// The answer, if the nodes before and after it were the same and could all be reached.
    fn of(before: Nodes, degrees: Degrees, after: &Nodes) -> Answer {
        let is_up = |(_, starts): &(Option<i64>, Option<i64>)| starts.is_some();
        match before == *after && before.iter().all(is_up) {
            true => Ok(Counted {
                degrees,
                nodes: before,
            }),
            false => Err(AWAY.into()),
        }
    }

    /// Whether this can be a later answer of the same nodes: no count is lower.
    fn follows(&self, earlier: &Counted) -> bool {
        let mut counts = earlier.degrees.iter();
        let now = |nodes: &u64| self.degrees.get(nodes).copied().unwrap_or(0);
        self.nodes == earlier.nodes && counts.all(|(nodes, count)| now(nodes) >= *count)
    }
}

fn ask(target: &Target) -> Answer {
    let asked = || {
        let mut link = Link::connect_any(target, Some(ANSWER_LIMIT))?;
        let before = read_nodes(&mut link)?;
        let degrees = read_degrees(&mut link)?;
        let after = read_nodes(&mut link)?;
        link.close();
        Ok((before, degrees, after))
    };
    let asked: Result<_, LinkError> = asked();
    let (before, degrees, after) = asked.map_err(|error| error.to_string())?;
    Counted::of(before, degrees, &after)
}

fn read_nodes(link: &mut Link) -> Result<Nodes, LinkError> {
    let mut answers = Answers::new();
    link.query("SHOW NODES", &mut answers)?;
    let rows = 0..answers.rows(0);
    let nodes = rows.map(|row| (answers.int(0, row, 0), answers.int(0, row, 2)));
    Ok(nodes.collect())
}

fn read_degrees(link: &mut Link) -> Result<Degrees, LinkError> {
    let mut answers = Answers::new();
    link.query("SHOW DISTRIBUTION", &mut answers)?;
    let number = |row: usize, column: usize| {
        let number = answers.int(0, row, column).unwrap_or(0);
        u64::try_from(number).unwrap_or(0)
    };
    let rows = 0..answers.rows(0);
    Ok(rows.map(|row| (number(row, 0), number(row, 1))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(counts: &[(u64, u64)], starts: Option<i64>) -> Answer {
        let nodes = vec![(Some(1), Some(1)), (Some(2), starts)];
        Counted::of(nodes.clone(), counts.iter().copied().collect(), &nodes)
    }

    /// Two questions with the same answer.
    fn told(answer: Answer) -> Told {
        Told {
            first: answer.clone(),
            last: answer,
        }
    }

    #[test]
    fn what_was_counted_before_does_not_count() {
        let before = told(counted(&[(0, 5), (1, 10)], Some(1)));
        let after = told(counted(&[(0, 9), (1, 17), (3, 2), (40, 1)], Some(1)));
        let gain = Told::gain(&before, &after);
        assert_eq!(gain, Ok(Degrees::from([(1, 7), (3, 2), (40, 1)])));
        // The benchmark's own questions, before and after the run.
        let before = Told {
            first: counted(&[(1, 1)], Some(1)),
            ..before
        };
        let after = Told {
            last: counted(&[(0, 9), (1, 90), (3, 2), (40, 1)], Some(1)),
            ..after
        };
        assert_eq!(Told::gain(&before, &after), gain);
    }

    #[test]
    fn a_node_that_was_away_makes_counts_useless() {
        let before = told(counted(&[(1, 10), (2, 5)], Some(1)));
        for after in [
            // It has started anew, or cannot be reached.
            told(counted(&[(1, 20), (2, 9)], Some(2))),
            told(counted(&[(1, 20), (2, 9)], None)),
            // Its part was missing in one answer.
            told(counted(&[(1, 20), (2, 4)], Some(1))),
            told(counted(&[(1, 20)], Some(1))),
            Told {
                first: counted(&[(1, 20), (2, 9)], Some(1)),
                last: counted(&[(1, 19), (2, 9)], Some(1)),
            },
            Told::nothing(),
        ] {
            assert!(Told::gain(&before, &after).is_err(), "{after:?}");
        }
        // It went or came while the counts were asked for.
        let up = vec![(Some(1), Some(1)), (Some(2), Some(1))];
        for starts in [None, Some(2)] {
            let then = vec![(Some(1), Some(1)), (Some(2), starts)];
            assert!(Counted::of(up.clone(), Degrees::new(), &then).is_err());
            assert!(Counted::of(then, Degrees::new(), &up).is_err());
        }
    }

    /// A run whose transactions are done does not fail because nobody answers this question.
    #[test]
    fn a_server_that_cannot_be_asked_has_not_told() {
        let target = Target::parse("postgres://127.0.0.1:1/shop").unwrap();
        let (between, nobody) = Told::around(&target, || Ok(7)).unwrap();
        assert_eq!(between, 7);
        let reason = Told::gain(&nobody, &nobody).unwrap_err();
        assert!(reason.contains("127.0.0.1:1"), "{reason}");
        // What fails between the questions still stops the run.
        let fails = || Err::<(), _>(DriveError::Option("no".into()));
        assert!(Told::around(&target, fails).is_err());
    }
}

//! What clients saw of one interleaving, and its form on a line.
//!
//! ```text
//! a [1,10] 1 commit | b ~1 rollback | [1,11; 2,20]
//! ```
//!
//! One part per session with the answers of its steps in order, then the rows in the end. Rows are
//! in brackets, sorted; a number is the count of a command, a word its tag, five characters with
//! `!` an SQLSTATE; `.` is 25P02, the echo of an error before; `~` in front: the step had to wait;
//! `?`: it was never answered.

use std::fmt;

/// The answer to a step.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Answer {
    /// Rows, sorted, cells as text, NULL as `null`.
    Rows(Vec<Vec<String>>),
    /// The count of a command that has one and returns no rows.
    Count(u64),
    /// The tag of another command, in lower case.
    Word(String),
    /// SQLSTATE.
    Error(String),
    /// None until the end of the script, or until a limit.
    Never,
}

impl Answer {
    /// Rows without their order: queries of scripts do not say one.
    pub fn rows(mut rows: Vec<Vec<String>>) -> Answer {
        rows.sort();
        Answer::Rows(rows)
    }

    /// A command tag as the server said it, for example `UPDATE 1`, `INSERT 0 2`, `COMMIT`.
    pub fn tag(tag: &str) -> Answer {
        let last = tag.rsplit(' ').next().unwrap_or_default();
        match last.parse() {
            Ok(count) => Answer::Count(count),
            Err(_) => Answer::Word(tag.to_lowercase()),
        }
    }

    /// Whether it is an error.
    pub fn failed(&self) -> bool {
        matches!(self, Answer::Error(_) | Answer::Never)
    }

    /// Whether the row is one of those returned.
    pub fn has(&self, row: &[String]) -> bool {
        matches!(self, Answer::Rows(rows) if rows.iter().any(|found| found == row))
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Answer::Rows(rows) => {
                let rows: Vec<String> = rows.iter().map(|row| row.join(",")).collect();
                write!(f, "[{}]", rows.join("; "))
            }
            Answer::Count(count) => write!(f, "{count}"),
            Answer::Word(word) => f.write_str(&word.replace(' ', "_")),
            Answer::Error(state) if state == "25P02" => f.write_str("."),
            Answer::Error(state) => write!(f, "{state}!"),
            Answer::Never => f.write_str("?"),
        }
    }
}

/// One step's part of an outcome.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Seen {
    /// Its answer.
    pub answer: Answer,
    /// Whether other steps were begun before it was answered.
    pub waited: bool,
}

/// What clients saw of one interleaving.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Outcome {
    /// Name of each session and what it saw: one for each step, and for the commit at the end if
    /// the script leaves that to the runner.
    pub sessions: Vec<(String, Vec<Seen>)>,
    /// Answers of the final queries.
    pub last: Vec<Answer>,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, steps) in &self.sessions {
            f.write_str(name)?;
            for step in steps {
                let wait = if step.waited { "~" } else { "" };
                write!(f, " {wait}{}", step.answer)?;
            }
            f.write_str(" | ")?;
        }
        let last: Vec<String> = self.last.iter().map(Answer::to_string).collect();
        f.write_str(&last.join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_counts_or_words() {
        assert_eq!(Answer::tag("UPDATE 1").to_string(), "1");
        assert_eq!(Answer::tag("INSERT 0 2").to_string(), "2");
        assert_eq!(Answer::tag("COMMIT").to_string(), "commit");
        assert_eq!(Answer::tag("CREATE INDEX").to_string(), "create_index");
    }

    #[test]
    fn an_outcome_is_one_line() {
        let seen = |answer, waited| Seen { answer, waited };
        let row = |cells: &[&str]| cells.iter().map(|cell| cell.to_string()).collect();
        let rows = Answer::rows(vec![row(&["2", "20"]), row(&["1", "10"])]);
        let outcome = Outcome {
            sessions: vec![
                ("a".into(), vec![seen(rows.clone(), false)]),
                (
                    "b".into(),
                    vec![
                        seen(Answer::Error("40001".into()), true),
                        seen(Answer::Error("25P02".into()), false),
                        seen(Answer::Never, true),
                    ],
                ),
            ],
            last: vec![Answer::rows(vec![])],
        };
        assert_eq!(outcome.to_string(), "a [1,10; 2,20] | b ~40001! . ~? | []");
        assert!(rows.has(&["2".to_owned(), "20".to_owned()]));
        assert!(!rows.has(&["2".to_owned()]));
    }
}

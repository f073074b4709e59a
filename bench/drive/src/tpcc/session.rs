//! A connection with the prepared statements of the five transactions, and its rounds.

use super::Isolation;
use super::sql::{self, Sql};
use crate::answers::Answers;
use crate::link::{Bind, Link, LinkError, ParamType, Prepared, Status};
use crate::shape::Failure;

/// One terminal's connection.
#[derive(Debug)]
pub struct Session {
    link: Link,
    prepared: Vec<Prepared>,
    /// The answers of the last round.
    pub(super) answers: Answers,
    /// Whether COMMIT is part of the round that is being built.
    committing: bool,
}

impl Session {
    /// Prepares all statements in one round.
    pub(super) fn open(mut link: Link, isolation: Isolation) -> Result<Session, LinkError> {
        let statements = sql::all(isolation);
        let list: Vec<(&str, &[ParamType])> = statements
            .iter()
            .map(|(sql, params)| (sql.as_str(), params.as_slice()))
            .collect();
        let prepared = link.prepare(&list)?;
        Ok(Session {
            link,
            prepared,
            answers: Answers::new(),
            committing: false,
        })
    }

    /// Begins a statement of the round.
    pub(super) fn bind(&mut self, statement: Sql) -> Bind<'_> {
        self.bind_nth(statement, 0)
    }

    /// Begins the `nth` of a family of statements.
    pub(super) fn bind_nth(&mut self, statement: Sql, nth: usize) -> Bind<'_> {
        self.link.bind(self.prepared[statement as usize + nth])
    }

    /// Adds a statement without parameters.
    pub(super) fn say(&mut self, statement: Sql) {
        self.committing |= statement == Sql::Commit;
        self.bind(statement).send();
    }

    /// Sends the round. On an error no transaction is open any more.
    pub(super) fn round(&mut self) -> Result<(), Failure> {
        let committing = std::mem::take(&mut self.committing);
        if let Err(error) = self.link.round(&mut self.answers) {
            return Err(if committing {
                Failure::Unknown(error)
            } else {
                Failure::Lost(error)
            });
        }
        if let Some(error) = self.answers.error.take() {
            // The server itself says that it does not know.
            if committing && matches!(error.sqlstate.as_str(), "08007" | "40003") {
                return Err(Failure::Unknown(LinkError::Server(error)));
            }
            self.leave()?;
            return Err(Failure::Aborted(error));
        }
        if committing {
            let tag = self
                .answers
                .tag(self.answers.statements().saturating_sub(1));
            if tag != "COMMIT" || self.link.status() != Status::Idle {
                let text = format!("COMMIT was answered with \"{tag}\"");
                self.leave()?;
                return Err(Failure::Wrong(text));
            }
        }
        Ok(())
    }

    /// Ends the transaction because the answers are not what they must be.
    pub(super) fn wrong(&mut self, text: String) -> Failure {
        self.leave().err().unwrap_or(Failure::Wrong(text))
    }

    /// Ends the transaction because another one was faster.
    pub(super) fn conflict(&mut self, reason: &'static str) -> Failure {
        self.leave().err().unwrap_or(Failure::Conflict(reason))
    }

    /// Rolls back whatever is open.
    fn leave(&mut self) -> Result<(), Failure> {
        if self.link.status() == Status::Idle {
            return Ok(());
        }
        self.link.command("ROLLBACK").map_err(Failure::Lost)
    }
}

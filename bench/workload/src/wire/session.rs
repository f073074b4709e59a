//! A connection with its prepared statements, and what the end of a round means.

use super::{Answers, Bind, Connection, Failure, ParamType, Prepared, Round, Status, is_unknown};
use crate::dialect::Dialect;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// One client's connection.
#[derive(Debug)]
pub struct Session<C: Connection> {
    link: C,
    prepared: Vec<Prepared>,
    round: Round,
    /// The answers of the last round.
    pub answers: Answers,
    /// What the round that is being built decides.
    decides: Decides,
}

/// What a round decides about its transaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Decides {
    /// Nothing: if its answer is lost, nothing has happened.
    #[default]
    Nothing,
    /// Its statement commits by itself.
    Statement,
    /// Its last statement is COMMIT.
    Block,
}

impl<C: Connection> Session<C> {
    /// Prepares all statements in one round.
    ///
    /// # Errors
    /// The connection broke, or a statement was refused.
    pub async fn open(
        mut link: C,
        statements: &[(String, Vec<ParamType>)],
    ) -> Result<Session<C>, C::Error> {
        let list: Vec<(&str, &[ParamType])> = statements
            .iter()
            .map(|(sql, params)| (sql.as_str(), params.as_slice()))
            .collect();
        let prepared = link.prepare(&list).await?;
        Ok(Session {
            link,
            prepared,
            round: Round::default(),
            answers: Answers::new(),
            decides: Decides::Nothing,
        })
    }

    /// The connection, for what no transaction does.
    pub fn link(&mut self) -> &mut C {
        &mut self.link
    }

    /// The time of day in microseconds since 1970.
    pub fn now_unix_us(&self) -> u64 {
        self.link.now_unix_us()
    }

    /// Begins a statement of the round, by its position in what was prepared.
    pub fn bind(&mut self, statement: usize) -> Bind<'_> {
        self.round.bind(self.prepared[statement])
    }

    /// How many requests the round being built takes.
    pub fn requests(&self, dialect: Dialect) -> u64 {
        self.round.requests(dialect)
    }

    /// Says that the round being built is a statement that commits by itself: if its answer is
    /// lost the outcome is unknown.
    pub fn commits_itself(&mut self) {
        self.decides = Decides::Statement;
    }

    /// Says that the round being built ends with COMMIT. Its answer must be COMMIT then: that of a
    /// failed transaction is ROLLBACK, without an error.
    pub fn commits_block(&mut self) {
        self.decides = Decides::Block;
    }

    /// Sends the round. On an error no transaction is open any more.
    ///
    /// # Errors
    /// [`Failure`]; `Unknown` only if the round decides.
    pub async fn round(&mut self) -> Result<(), Failure<C::Error>> {
        let result = self.link.round(&mut self.round, &mut self.answers).await;
        self.ended(result).await
    }

    /// Runs statements as one simple query, with the same outcomes as [`Session::round`].
    ///
    /// # Errors
    /// As for [`Session::round`].
    pub async fn simple(&mut self, sql: &str) -> Result<(), Failure<C::Error>> {
        let result = self.link.simple(sql, &mut self.answers).await;
        self.ended(result).await
    }

    async fn ended(&mut self, result: Result<(), C::Error>) -> Result<(), Failure<C::Error>> {
        let decides = core::mem::take(&mut self.decides);
        if let Err(error) = result {
            return Err(match decides {
                Decides::Nothing => Failure::Lost(error),
                Decides::Statement | Decides::Block => Failure::Unknown(error),
            });
        }
        if let Some(error) = self.answers.error.take() {
            // The server itself says that it does not know.
            if decides != Decides::Nothing && is_unknown(&error.sqlstate) {
                return Err(Failure::Unknown(error.into()));
            }
            self.leave().await?;
            return Err(Failure::Aborted(error));
        }
        if decides == Decides::Nothing {
            return Ok(());
        }
        let last = self.answers.statements().saturating_sub(1);
        let tag = self.answers.tag(last);
        let is_done = decides == Decides::Statement || tag == "COMMIT";
        if !is_done || self.link.status() != Status::Idle {
            let text = format!("the end of a transaction was answered with \"{tag}\"");
            self.leave().await?;
            return Err(Failure::Wrong(text));
        }
        Ok(())
    }

    /// Ends the transaction because the answers are not what they must be.
    pub async fn wrong(&mut self, text: String) -> Failure<C::Error> {
        self.leave().await.err().unwrap_or(Failure::Wrong(text))
    }

    /// Ends the transaction because another one was faster.
    pub async fn conflict(&mut self, reason: &'static str) -> Failure<C::Error> {
        let left = self.leave().await;
        left.err().unwrap_or(Failure::Conflict(reason))
    }

    /// Rolls back whatever is open.
    async fn leave(&mut self) -> Result<(), Failure<C::Error>> {
        self.round.clear();
        self.decides = Decides::Nothing;
        if self.link.status() == Status::Idle {
            return Ok(());
        }
        let rolled_back = super::command(&mut self.link, "ROLLBACK").await;
        rolled_back.map_err(Failure::Lost)
    }
}

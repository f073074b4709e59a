//! A connection that takes down what its rounds show.

use crate::book::Seen;
use crate::sighting::{Asked, Shows, shows};
use alloc::vec::Vec;
use workload::wire::{Answers, Connection, ParamType, Prepared, Round, Status};

/// A connection, with what its transactions have seen where that is wanted.
#[derive(Debug)]
pub struct Noted<C> {
    link: C,
    /// `None`: nothing is taken down.
    notes: Option<Notes>,
}

#[derive(Debug)]
struct Notes {
    /// What the statements show, in the order in which they are prepared.
    statements: Vec<Option<Shows>>,
    /// Of the round that is under way, by the places of its statements.
    asked: Vec<(usize, Asked)>,
    seen: Seen,
}

impl<C> Noted<C> {
    /// A connection of which nothing is taken down.
    pub fn unseen(link: C) -> Noted<C> {
        Noted { link, notes: None }
    }

    /// A connection on which these statements, in PostgreSQL's SQL, are prepared next and first.
    pub fn watching<'s>(link: C, statements: impl Iterator<Item = &'s str>) -> Noted<C> {
        let notes = Notes {
            statements: statements.map(shows).collect(),
            asked: Vec::new(),
            seen: Seen::default(),
        };
        Noted {
            link,
            notes: Some(notes),
        }
    }

    /// The connection itself.
    pub fn link(&mut self) -> &mut C {
        &mut self.link
    }

    /// What was seen since this was asked last.
    pub fn take_seen(&mut self) -> Seen {
        let notes = self.notes.as_mut();
        notes.map_or(Seen::default(), |notes| core::mem::take(&mut notes.seen))
    }
}

impl Notes {
    fn ask(&mut self, round: &Round) {
        self.asked.clear();
        for (at, bound) in round.bound().iter().enumerate() {
            let shown = self.statements.get(bound.statement.number as usize);
            if let Some(shows) = shown.copied().flatten() {
                let asked = Asked::new(shows, &round.params(bound));
                self.asked.push((at, asked));
            }
        }
    }

    /// A statement behind one that failed has no answer.
    fn take(&mut self, answers: &Answers) {
        for (at, asked) in &self.asked {
            if *at < answers.statements() {
                asked.take(answers, *at, &mut self.seen);
            }
        }
    }
}

impl<C: Connection> Connection for Noted<C> {
    type Error = C::Error;

    async fn prepare(
        &mut self,
        statements: &[(&str, &[ParamType])],
    ) -> Result<Vec<Prepared>, C::Error> {
        self.link.prepare(statements).await
    }

    async fn round(&mut self, round: &mut Round, answers: &mut Answers) -> Result<(), C::Error> {
        if let Some(notes) = &mut self.notes {
            notes.ask(round);
        }
        self.link.round(round, answers).await?;
        if let Some(notes) = &mut self.notes {
            notes.take(answers);
        }
        Ok(())
    }

    async fn simple(&mut self, sql: &str, answers: &mut Answers) -> Result<(), C::Error> {
        self.link.simple(sql, answers).await
    }

    async fn each_row(&mut self, sql: &str, each: impl FnMut(&Answers)) -> Result<(), C::Error> {
        self.link.each_row(sql, each).await
    }

    fn status(&self) -> Status {
        self.link.status()
    }

    fn now_unix_us(&self) -> u64 {
        self.link.now_unix_us()
    }
}

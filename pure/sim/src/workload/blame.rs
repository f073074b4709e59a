//! What clients hold against the cluster, and what they put up with.

use super::wire::{LinkError, SimLink};
use crate::client::{Answer, SimError};
use crate::executor::SimCx;
use std::cell::RefCell;
use workload::wire;

/// Attempts at making tables.
const SETUP_ATTEMPTS_MAX: u32 = 30;
/// Attempts at a question to the healed cluster: a connection may still break of the last outage.
const ASK_ATTEMPTS_MAX: u32 = 30;

/// The first answer that no fault explains.
#[derive(Default)]
pub(super) struct Blame(RefCell<Option<String>>);

impl Blame {
    /// Keeps the first thing that no fault explains.
    pub(super) fn accuse(&self, text: String) {
        self.0.borrow_mut().get_or_insert(text);
    }

    /// What was kept.
    pub(super) fn take(&self) -> Option<String> {
        self.0.take()
    }

    /// Tells whether a connection can be used further after an answer; accuses of errors that
    /// nothing explains: no fault, no conflict, and none of `also`.
    pub(super) fn excuse(
        &self,
        doing: &str,
        result: Result<Answer, SimError>,
        also: &[&str],
    ) -> bool {
        match result {
            Ok(_) => true,
            Err(SimError::Lost) => false,
            Err(SimError::Sql(error)) => {
                let state = error.state();
                if !is_excusable(state.as_str()) && !also.contains(&state.as_str()) {
                    self.accuse(format!("{doing}: {error}"));
                }
                true
            }
        }
    }

    /// What has become ready on a connection, if nothing has come between; accuses of refusals that
    /// nothing explains.
    pub(super) fn prepared<T>(&self, result: Result<T, LinkError>) -> Option<T> {
        match result {
            Ok(ready) => Some(ready),
            Err(LinkError::Lost) => None,
            Err(LinkError::Server(error)) => {
                if !is_excusable(&error.sqlstate) {
                    self.accuse(format!("preparing: {error}"));
                }
                None
            }
        }
    }
}

/// Makes tables, again from the start when faults have come between: messages may be lost from the
/// first moment on.
pub(super) async fn patiently(
    cx: &SimCx,
    make: impl AsyncFn(&mut SimLink) -> Result<(), LinkError>,
) -> Result<(), String> {
    let mut attempts = 0;
    loop {
        attempts += 1;
        let error = match SimLink::connect(cx, 1).await {
            Ok(mut link) => match make(&mut link).await {
                Ok(()) => return Ok(()),
                Err(error) => error,
            },
            Err(_) => LinkError::Lost,
        };
        let is_excused = match &error {
            LinkError::Lost => true,
            // A schema change needs every node; one of an attempt before, whose answer was lost,
            // may be carried out between two of this one.
            LinkError::Server(error) => {
                is_excusable(&error.sqlstate)
                    || matches!(&*error.sqlstate, "55000" | "42P07" | "2BP01")
            }
        };
        if !is_excused || attempts == SETUP_ATTEMPTS_MAX {
            return Err(error.to_string());
        }
        cx.sleep(100_000).await;
    }
}

/// Carries out statements in the same way, all of them again when faults have come between.
///
/// # Errors
/// What no fault explains, or the last one of many attempts.
pub async fn say_patiently(cx: &SimCx, statements: &[impl AsRef<str>]) -> Result<(), String> {
    patiently(cx, async |link| {
        for statement in statements {
            wire::command(link, statement.as_ref()).await?;
        }
        Ok(())
    })
    .await
}

/// Asks a node of the healed cluster, again while it does not answer.
pub(super) async fn ask_patiently(cx: &SimCx, node: u16, sql: &str) -> Result<Answer, SimError> {
    let mut attempts = 0;
    loop {
        let answer = match cx.connect(node).await {
            Ok(mut conn) => conn.query(sql).await,
            Err(error) => Err(error),
        };
        if answer.is_ok() || attempts == ASK_ATTEMPTS_MAX {
            return answer;
        }
        attempts += 1;
        cx.sleep(100_000).await;
    }
}

/// Whether faults and conflicts explain an SQLSTATE: transaction rollback, connection exceptions,
/// the intervention of an operator (a node that stops), resources, a constraint that two inserts
/// race for, a row in doubt because a coordinator is away.
pub fn is_excusable(sqlstate: &str) -> bool {
    let classes = ["40", "08", "57", "53", "58"];
    classes.iter().any(|class| sqlstate.starts_with(class)) || matches!(sqlstate, "23505" | "55P03")
}

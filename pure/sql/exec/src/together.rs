//! Functions by which sessions lock out or tell each other: advisory locks, `pg_notify`.

use super::Cx;
use crate::port::{Notification, Port};
use advisory::{Answer, Ask, Call, Mode};
use base::{Datum, SqlError, SqlState};
use core::future::poll_fn;
use txn::OpError;

/// A request that has no answer yet. Whoever forgets it withdraws it.
struct Asked<'a> {
    port: &'a dyn Port,
    ticket: Option<u64>,
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket {
            self.port.withdraw_advisory(ticket);
        }
    }
}

/// The result of an advisory function; NULL if an argument is.
pub(super) async fn advisory(cx: &Cx<'_>, call: Call, args: &[Datum]) -> Result<Datum, OpError> {
    let numbers: Option<Vec<i64>> = args.iter().map(Datum::as_int).collect();
    let database = cx.port.database().id;
    let Some(ask) = numbers.and_then(|numbers| call.ask(database, &numbers)) else {
        return Ok(Datum::Null);
    };
    let mut asked = Asked {
        port: cx.port,
        ticket: None,
    };
    let answer = poll_fn(|_| cx.port.poll_advisory(ask, &mut asked.ticket)).await;
    asked.ticket = None;
    let yes = match answer? {
        Answer::Yes => true,
        Answer::No => {
            if let Ask::Unlock { mode, .. } = ask {
                cx.port.warn(not_owned(mode));
            }
            false
        }
        refused => return Err(refusal(refused).into()),
    };
    Ok(match call.tells() {
        true => Datum::Bool(yes),
        false => Datum::Text("".into()),
    })
}

fn not_owned(mode: Mode) -> SqlError {
    let message = format!("you don't own a lock of type {}", mode.name());
    SqlError::new(SqlState::WARNING, message)
}

fn refusal(answer: Answer) -> SqlError {
    match answer {
        Answer::Deadlock(detail) => {
            SqlError::new(SqlState::DEADLOCK, "deadlock detected").detail(detail)
        }
        Answer::Full => SqlError::new(SqlState::OUT_OF_MEMORY, "there are too many advisory locks"),
        Answer::TimedOut | Answer::Yes | Answer::No => SqlError::new(
            SqlState::LOCK_NOT_AVAILABLE,
            "canceling statement due to lock timeout",
        ),
    }
}

/// `pg_notify`: the sessions hear of it when the transaction commits.
pub(super) fn notify(cx: &Cx<'_>, args: &[Datum]) -> Result<Datum, SqlError> {
    let text = |at: usize| args.get(at).and_then(Datum::as_str).unwrap_or_default();
    let notification = Notification::new(text(0), text(1))?;
    cx.port.notify(notification)?;
    Ok(Datum::Text("".into()))
}

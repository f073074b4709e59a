//! Functions that are called by their number, without SQL: drivers reach large objects so.
//!
//! A call is a pipeline of the session's own: the statement `SELECT function($1, ...)`, and a Sync.
//! What it answers becomes what PostgreSQL says of a call.

use super::simple::QueryString;
use super::{Block, Session, SessionCx, errors};
use base::{Position, SqlError, SqlState};
use pg_catalog::functions::{Called, called};
use wire::{ClientMessage, Format, Reply};

/// The name of statement and portal: none that a client can send.
const NAME: &str = "\0call";

impl Session {
    pub(super) fn on_function_call(
        &mut self,
        cx: &mut SessionCx<'_>,
        function: u32,
        (formats, args): (Vec<Format>, Vec<Option<Vec<u8>>>),
        result_format: Format,
    ) {
        self.release(cx);
        let called = match self.block {
            Block::Failed => Err(errors::in_failed_block()),
            Block::None | Block::Implicit | Block::Explicit => statement_of(function, args.len()),
        };
        let Called { text, types } = match called {
            Ok(called) => called,
            Err(error) => {
                // As of a query string: the session is ready for the next message.
                self.query = Some(QueryString::default());
                return self.fail(cx, error, Position(0));
            }
        };
        self.calling = true;
        let name = || NAME.to_owned();
        let messages = [
            ClientMessage::Parse {
                name: name(),
                text,
                types,
            },
            ClientMessage::Bind {
                portal: name(),
                statement: name(),
                formats,
                params: args,
                result_formats: vec![result_format],
            },
            ClientMessage::Execute {
                portal: name(),
                rows_max: 0,
            },
            ClientMessage::ClosePortal(name()),
            ClientMessage::Sync,
        ];
        self.prepared.remove(NAME);
        for message in messages.into_iter().rev() {
            self.inbox.push_front(message);
        }
    }
}

/// The statement that calls a function.
fn statement_of(function: u32, args: usize) -> Result<Called, SqlError> {
    let found = called(function).ok_or_else(|| {
        let message = format!("function with OID {function} does not exist");
        SqlError::new(SqlState::UNDEFINED_FUNCTION, message)
    })?;
    if found.types.len() != args {
        return Err(errors::protocol(format!(
            "function call message contains {args} arguments but function requires {}",
            found.types.len()
        )));
    }
    Ok(found)
}

impl Session {
    /// Makes the held replies those of the call, or of the DO.
    #[cold]
    pub(super) fn take_calls(&mut self) {
        if self.program.is_some() {
            return self.take_replies();
        }
        let held = core::mem::take(&mut self.held).into_iter();
        let answer = held.filter_map(|(reply, wait)| Some((of_call(reply)?, wait)));
        self.held = answer.collect();
    }
}

/// What a reply of the statement is in the answer to the call.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "errors and notices stay as they are"
)]
fn of_call(reply: Reply) -> Option<Reply> {
    match reply {
        Reply::ParseComplete
        | Reply::BindComplete
        | Reply::CloseComplete
        | Reply::CommandComplete(_) => None,
        Reply::Rows(columns, formats, batch) => {
            Some(Reply::FunctionResult(columns, formats, batch))
        }
        // It would tell of a portal.
        Reply::Error(severity, error) => Some(Reply::Error(severity, error.context(""))),
        other => Some(other),
    }
}

//! COPY FROM and COPY TO between client and coordinator.

use super::{Activity, Session, SessionCx, errors};
use crate::message::{StatementNo, ToTxn};
use base::{Position, SqlError, SqlState};
use plan::Plan;
use wire::{ClientMessage, Format, Reply, Severity};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum CopyState {
    /// No COPY, or not started.
    None,
    /// The client sends data.
    In,
    /// The client sends data that is ignored, because the statement has ended.
    InOver,
    /// The client gets data.
    Out,
}

/// Whether a plan reads data from the client.
pub(super) fn is_copy_from(plan: &Plan) -> bool {
    plan.copy_shape().is_some_and(|shape| shape.from_client)
}

/// Number of columns and form of the data, for the message at the start of a COPY.
fn announced(plan: &Plan) -> (u16, Format) {
    let shape = plan
        .copy_shape()
        .expect("only COPY plans exchange data with the client");
    (
        shape.columns as u16,
        if shape.binary {
            Format::Binary
        } else {
            Format::Text
        },
    )
}

impl Session {
    /// Whether the client's messages are data of the running COPY FROM.
    pub(super) fn copying_in(&self) -> bool {
        matches!(self.activity, Activity::Running)
            && self
                .steps
                .get(self.at)
                .is_some_and(|step| step.copy == CopyState::In)
    }

    /// The coordinator wants data. The client is told at once, so nothing runs again after this.
    pub(super) fn on_copy_in_ready(&mut self, cx: &mut SessionCx<'_>, number: StatementNo) {
        if !self.is_running(number) {
            return;
        }
        let step = &mut self.steps[self.at];
        step.copy = CopyState::In;
        let (columns, format) = announced(&step.plan);
        self.say_of_step(Reply::CopyIn(columns, format), Position(0));
        self.release(cx);
        // Handles what a pipelining client has sent behind its Execute as if it came now.
        while self.copying_in()
            && let Some(message) = self.inbox.pop()
        {
            self.on_copy_message(cx, message);
        }
    }

    pub(super) fn on_copy_message(&mut self, cx: &mut SessionCx<'_>, message: ClientMessage) {
        let error = match message {
            ClientMessage::CopyData(bytes) => return self.copy_data(cx, Ok(Some(bytes))),
            ClientMessage::CopyDone => return self.copy_data(cx, Ok(None)),
            // Ignored while data is expected, as the protocol has it.
            ClientMessage::Sync | ClientMessage::Flush => return,
            ClientMessage::CopyFail(text) => {
                let message = format!("COPY from stdin failed: {text}");
                SqlError::new(SqlState::QUERY_CANCELED, message)
            }
            ClientMessage::Malformed {
                error,
                fatal: false,
            } => error,
            ClientMessage::Malformed { error, fatal: true } => return self.fatal(cx, error),
            ClientMessage::Terminate => return self.terminate(cx),
            ClientMessage::Startup { .. } => return self.unexpected(cx, 0),
            ClientMessage::Query(_) | ClientMessage::BadQuery(_) => {
                return self.unexpected(cx, b'Q');
            }
            ClientMessage::Parse { .. } => return self.unexpected(cx, b'P'),
            ClientMessage::Bind { .. } => return self.unexpected(cx, b'B'),
            ClientMessage::DescribeStatement(_) | ClientMessage::DescribePortal(_) => {
                return self.unexpected(cx, b'D');
            }
            ClientMessage::Execute { .. } => return self.unexpected(cx, b'E'),
            ClientMessage::FunctionCall { .. } => return self.unexpected(cx, b'F'),
            ClientMessage::CloseStatement(_) | ClientMessage::ClosePortal(_) => {
                return self.unexpected(cx, b'C');
            }
        };
        self.copy_data(cx, Err(error));
    }

    /// The client says something else in the middle of its data: as in PostgreSQL the meaning of
    /// the messages behind it is unknown.
    fn unexpected(&mut self, cx: &mut SessionCx<'_>, tag: u8) {
        let text = format!("unexpected message type 0x{tag:02X} during COPY from stdin");
        self.say(
            Reply::Error(Severity::Error, errors::protocol(text)),
            Position(0),
        );
        let text = "terminating connection because protocol synchronization was lost";
        self.fatal(cx, errors::protocol(text));
    }

    fn copy_data(&mut self, cx: &mut SessionCx<'_>, data: Result<Option<Vec<u8>>, SqlError>) {
        let step = &mut self.steps[self.at];
        match &data {
            Ok(Some(bytes)) => step.copy_bytes += bytes.len(),
            Ok(None) | Err(_) => step.copy = CopyState::InOver,
        }
        let number = step.number;
        self.tell(cx, ToTxn::CopyData(number, data));
    }

    pub(super) fn on_copy_taken(&mut self, number: StatementNo, bytes: usize) {
        if self.is_running(number) {
            self.steps[self.at].copy_bytes -= bytes;
        }
    }

    pub(super) fn on_copy_out(
        &mut self,
        cx: &mut SessionCx<'_>,
        number: StatementNo,
        bytes: Vec<u8>,
        wait: Position,
    ) {
        if self.is_running(number) {
            self.begin_copy_out();
            self.steps[self.at].spent += 1;
            self.say_of_step(Reply::CopyData(bytes), wait);
            self.count_batch(cx);
        }
    }

    fn begin_copy_out(&mut self) {
        let step = &mut self.steps[self.at];
        if step.copy != CopyState::Out {
            step.copy = CopyState::Out;
            let (columns, format) = announced(&step.plan);
            self.say_of_step(Reply::CopyOut(columns, format), Position(0));
        }
    }

    /// A COPY TO has succeeded; one of an empty table has not announced itself before.
    pub(super) fn end_copy_out(&mut self) {
        let plan = &self.steps[self.at].plan;
        if plan.copy_shape().is_some_and(|shape| !shape.from_client) {
            self.begin_copy_out();
            self.say_of_step(Reply::CopyDone, Position(0));
        }
    }
}

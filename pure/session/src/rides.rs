//! Whether the COMMIT of a block has come together with its last statement.
//!
//! Then the commit rides on that statement, as that of a statement outside of a block does, and
//! COMMIT finds that all is done. Clients that send whole blocks save its round trip. Where rows
//! move to their transaction there is no such trip: there nothing rides.

use super::Session;
use super::plans::Prepared;
use parse::session::SessionCommand;
use plan::PlanKind;
use wire::ClientMessage;

/// Messages that are looked at for the COMMIT.
const AHEAD_MAX: usize = 8;

impl Session {
    /// Whether the next statement of the client is COMMIT, and nothing before it can fail.
    pub(super) fn commit_follows(&self) -> bool {
        if self.program.is_some() {
            return false;
        }
        match self.query.as_ref().and_then(|query| query.next()) {
            Some(next) => is_commit(next.text()),
            None => self.commits_behind(0) == Some(true),
        }
    }

    /// Whether the messages behind the first `first` of the inbox are a COMMIT. `None`: that is
    /// open, and more messages must come.
    pub(super) fn commits_behind(&self, first: usize) -> Option<bool> {
        let (mut parsed, mut bound, mut waits) = (None, false, false);
        for message in self.inbox.iter().skip(first).take(AHEAD_MAX) {
            match message {
                ClientMessage::Sync | ClientMessage::Flush => waits = true,
                ClientMessage::Query(text) => return Some(is_commit(text)),
                ClientMessage::Parse { name, text, types } => {
                    let is_new = name.is_empty() || !self.prepared.contains_key(name);
                    if !is_new || !types.is_empty() || !is_commit(text) {
                        return Some(false);
                    }
                    parsed = Some(name);
                }
                ClientMessage::Bind {
                    portal,
                    statement,
                    formats,
                    params,
                    result_formats,
                } => {
                    let is_plain = portal.is_empty() && params.is_empty();
                    let formats = formats.len().max(result_formats.len());
                    let known = parsed == Some(statement)
                        || self.find(statement).is_ok_and(|prepared| commits(prepared));
                    if !is_plain || formats > 1 || !known {
                        return Some(false);
                    }
                    bound = true;
                }
                ClientMessage::DescribeStatement(name) if parsed == Some(name) => {}
                ClientMessage::DescribePortal(portal) if bound && portal.is_empty() => {}
                ClientMessage::Execute { portal, .. } => {
                    return Some(bound && portal.is_empty());
                }
                ClientMessage::Startup { .. }
                | ClientMessage::DescribeStatement(_)
                | ClientMessage::DescribePortal(_)
                | ClientMessage::CloseStatement(_)
                | ClientMessage::ClosePortal(_)
                | ClientMessage::FunctionCall { .. }
                | ClientMessage::CopyData(_)
                | ClientMessage::CopyDone
                | ClientMessage::CopyFail(_)
                | ClientMessage::Terminate
                | ClientMessage::BadQuery(_)
                | ClientMessage::Malformed { .. } => return Some(false),
            }
        }
        // The client may wait for answers.
        waits.then_some(false)
    }
}

fn commits(prepared: &Prepared) -> bool {
    let plan = prepared.plan.as_ref();
    plan.is_some_and(|plan| {
        matches!(
            plan.kind,
            PlanKind::Session(SessionCommand::Commit { chain: false })
        )
    })
}

/// Whether the text of a statement is COMMIT or END, without more words.
fn is_commit(text: &str) -> bool {
    let text = text.trim().trim_end_matches(';').trim_end();
    text.eq_ignore_ascii_case("COMMIT") || text.eq_ignore_ascii_case("END")
}

//! What a node's audit log is told of sessions: logins, and changes of roles, rights and the
//! schema, also those that were refused.

use super::Session;
use base::SqlError;

/// Characters of a statement's text that are told at most.
const TEXT_MAX: usize = 10_000;

/// An event for the audit log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AuditEntry {
    /// `login`, `role`, `grant` or `ddl`.
    pub kind: &'static str,
    /// Backend number of the session.
    pub pid: i32,
    /// The name of the login.
    pub user: Box<str>,
    /// The role as which it acts.
    pub role: Box<str>,
    /// Database.
    pub database: Box<str>,
    /// Address of the client, if it has one.
    pub from: Option<String>,
    /// The statement without passwords; empty for a login.
    pub text: String,
    /// SQLSTATE and message of its error.
    pub error: Option<(String, String)>,
}

/// What kind of change a command tag is of.
fn kind_of(tag: &str) -> &'static str {
    match tag {
        "CREATE ROLE" | "ALTER ROLE" | "DROP ROLE" | "GRANT ROLE" | "REVOKE ROLE" => "role",
        "GRANT" | "REVOKE" | "ALTER DEFAULT PRIVILEGES" | "REASSIGN OWNED" | "DROP OWNED" => {
            "grant"
        }
        _ => "ddl",
    }
}

impl Session {
    /// Tells of a login that has succeeded, or failed.
    pub(super) fn audit_login(&mut self, error: Option<&SqlError>) {
        if self.link.audits {
            self.audit("login", String::new(), error);
        }
    }

    /// Tells of a change with this command tag that has ended.
    pub(super) fn audit_change(&mut self, tag: &str, error: Option<&SqlError>) {
        if !self.link.audits || tag == "LOCK TABLE" {
            return;
        }
        let parsed = self.statement.as_ref();
        let parsed = parsed.and_then(|statement| statement.statement.as_ref());
        let text = match parsed.filter(|statement| statement.has_password()) {
            Some(statement) => statement.without_passwords(),
            None => self.statement_text().to_string(),
        };
        self.audit(kind_of(tag), text, error);
    }

    fn audit(&mut self, kind: &'static str, text: String, error: Option<&SqlError>) {
        let text = match text.char_indices().nth(TEXT_MAX) {
            Some((end, _)) => format!("{}...", &text[..end]),
            None => text,
        };
        let ends = self.link.ends.as_ref();
        self.audited.push(AuditEntry {
            kind,
            pid: self.pid,
            user: self.user.clone(),
            role: self.acting.current.clone(),
            database: self.database.clone(),
            from: ends.map(|ends| format!("{}:{}", ends.client, ends.client_port)),
            text,
            error: error.map(|error| {
                let state = String::from_utf8_lossy(&error.state().0).into_owned();
                (
                    state,
                    base::full_name::bare(&error.fields().message).into_owned(),
                )
            }),
        });
    }

    /// Whether there are events that were not told yet.
    #[inline]
    pub fn has_audited(&self) -> bool {
        !self.audited.is_empty()
    }

    /// Takes those events.
    pub fn take_audited(&mut self) -> Vec<AuditEntry> {
        std::mem::take(&mut self.audited)
    }
}

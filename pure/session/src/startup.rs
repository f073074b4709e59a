//! The first message of a connection.

use super::{Life, Session, SessionCx, errors};
use base::{Position, SqlError, SqlState};
use pg_catalog::settings::{self as known, SETTINGS};
use wire::{ClientMessage, Reply, TxnStatus};

impl Session {
    pub(super) fn on_startup(&mut self, cx: &mut SessionCx<'_>, message: ClientMessage) {
        let result = match message {
            ClientMessage::Startup { parameters } => self.open(cx, parameters),
            ClientMessage::Malformed { error, .. } | ClientMessage::BadQuery(error) => Err(error),
            ClientMessage::Terminate => {
                self.life = Life::Closed;
                return;
            }
            ClientMessage::Query(_)
            | ClientMessage::Parse { .. }
            | ClientMessage::Bind { .. }
            | ClientMessage::DescribeStatement(_)
            | ClientMessage::DescribePortal(_)
            | ClientMessage::Execute { .. }
            | ClientMessage::CloseStatement(_)
            | ClientMessage::ClosePortal(_)
            | ClientMessage::Sync
            | ClientMessage::Flush
            | ClientMessage::CopyData(_)
            | ClientMessage::CopyDone
            | ClientMessage::FunctionCall { .. }
            | ClientMessage::CopyFail(_) => Err(errors::protocol("expected a startup message")),
        };
        self.audit_login(result.as_ref().err());
        if let Err(error) = result {
            self.fatal(cx, error);
        }
    }

    fn open(
        &mut self,
        cx: &mut SessionCx<'_>,
        parameters: Vec<(String, String)>,
    ) -> Result<(), SqlError> {
        self.pid = crate::pid_of(cx.here, self.conn);
        if !cx.accepting {
            let message = match cx.catalog.version {
                0 => "the database system is starting up",
                _ => "the database system is shutting down",
            };
            return Err(SqlError::new(SqlState::CANNOT_CONNECT_NOW, message));
        }
        if self.link.is_refused {
            return Err(errors::too_many_clients());
        }
        let mut user = None;
        let mut database = None;
        let mut wanted = Vec::new();
        for (name, value) in parameters {
            match &*name {
                "user" => user = Some(value),
                "database" => database = Some(value),
                "options" => wanted.extend(options(&value)?),
                "replication" if !matches!(&*value, "false" | "off" | "no" | "0") => {
                    let message = "replication connections are not supported";
                    return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
                }
                "replication" => {}
                _ if name.starts_with("_pq_.") => {}
                _ => wanted.push((name, value)),
            }
        }
        let user = user.filter(|user| !user.is_empty()).ok_or_else(|| {
            let message = "no PostgreSQL user name specified in startup packet";
            SqlError::new(SqlState::INVALID_AUTHORIZATION, message)
        })?;
        let database = database
            .filter(|name| !name.is_empty())
            .unwrap_or_else(|| user.clone());
        self.say(Reply::AuthenticationOk, Position(0));
        self.user = user.into_boxed_str();
        self.database = database.into_boxed_str();
        let database = self.database(cx)?.clone();
        self.let_in(cx.catalog, &database)?;
        let mut checked = self.first_settings(cx.catalog, &database);
        for (name, value) in wanted {
            known::allow(&name, self.acting.superuser)?;
            let taken = known::validate(&name, &value)?;
            checked.push((name, taken));
        }
        self.settings.start(checked.into_iter());
        self.life = Life::Open;
        self.connected = cx.now;
        self.greet();
        self.release(cx);
        self.since = cx.now;
        self.is_ready = self.inbox.is_empty();
        Ok(())
    }

    fn greet(&mut self) {
        for setting in SETTINGS.iter().filter(|setting| setting.reported) {
            let value = self.setting(setting.name).unwrap_or_default();
            let reply = Reply::ParameterStatus(setting.name.to_owned(), value);
            self.say(reply, Position(0));
        }
        self.say(
            Reply::BackendKey {
                pid: self.pid,
                secret: self.secret,
            },
            Position(0),
        );
        self.say(Reply::Ready(TxnStatus::Idle), Position(0));
    }
}

/// Settings in the `options` parameter: `-c name=value`, `-cname=value`, `--name=value`, where a
/// backslash takes the next character as it is.
fn options(text: &str) -> Result<Vec<(String, String)>, SqlError> {
    let mut settings = Vec::new();
    let mut words = words(text).into_iter();
    while let Some(word) = words.next() {
        let assignment = if word == "-c" {
            words.next()
        } else {
            word.strip_prefix("--")
                .or(word.strip_prefix("-c"))
                .map(str::to_owned)
        };
        let pair = assignment
            .as_deref()
            .and_then(|assignment| assignment.split_once('='));
        let Some((name, value)) = pair else {
            let message = format!("invalid command-line argument for server process: {word}");
            return Err(SqlError::new(SqlState::SYNTAX, message));
        };
        settings.push((name.replace('-', "_"), value.to_owned()));
    }
    Ok(settings)
}

fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => word.extend(chars.next()),
            c if c.is_whitespace() => {
                if !word.is_empty() {
                    words.push(core::mem::take(&mut word));
                }
            }
            c => word.push(c),
        }
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_split_as_postgresql_splits_them() {
        let pairs =
            options("-c lock_timeout=1s --search-path=a\\ b -cwork_mem=4MB").expect("valid");
        let pairs: Vec<(&str, &str)> = pairs
            .iter()
            .map(|(n, v)| (n.as_str(), v.as_str()))
            .collect();
        assert_eq!(
            pairs,
            [
                ("lock_timeout", "1s"),
                ("search_path", "a b"),
                ("work_mem", "4MB")
            ]
        );
        assert!(options("-x").is_err());
        assert!(options("-c").is_err());
    }
}

//! What servers say, and what that means.

use super::reach::Reach;
use entity::sql::{self, Dialect};
use entity::{EntityType, Failure, Outcome, Stamp, Value};
use links::answers::{Answers, ServerError};
use links::link::{Link, LinkError};
use links::server::Server;
use links::url::{Target, Wire};
use workload::wire::{Connection, is_unknown};

/// Whether an entity is there, and no immutable column is to change.
pub(crate) fn check_immutable(
    kind: &EntityType,
    old: Option<&[Value]>,
    row: &[Value],
) -> Result<(), Failure> {
    let Some(old) = old else {
        return Err(Failure::Missing(named(kind, row)));
    };
    for (at, column) in kind.columns.iter().enumerate() {
        if column.immutable && old[at] != row[at] {
            let text = format!(
                "column \"{}\" of {} is immutable",
                column.name,
                named(kind, row)
            );
            return Err(Failure::Refused(text));
        }
    }
    Ok(())
}

/// The bytes that stand for an entity or a group: its name, and its ids as texts.
pub(crate) fn key_of<'a>(
    name: &str,
    ids: impl Iterator<Item = &'a Value>,
    dialect: Dialect,
) -> Vec<u8> {
    let mut key = name.as_bytes().to_vec();
    for value in ids {
        key.push(0);
        sql::push_text(value, dialect, &mut key);
    }
    key
}

/// An entity, in words.
pub(crate) fn named(kind: &EntityType, id: &[Value]) -> String {
    let ids = id[..kind.id_count].iter();
    let ids: Vec<String> = ids.map(ToString::to_string).collect();
    format!("entity \"{}\" ({})", kind.name, ids.join(", "))
}

/// The dialect of a URL's scheme.
pub(crate) fn dialect_of(target: &Target) -> Dialect {
    match target.wire {
        Wire::MySql => Dialect::MySql,
        _ => Dialect::Postgres,
    }
}

/// What became of a commit, by its stamp, outside of a transaction: see [`entity::sql`].
pub(crate) async fn outcome<R: Reach>(
    link: &mut R::Link,
    stamp: Stamp,
    answers: &mut Answers,
) -> Result<Outcome, Failure> {
    let (client, sequence) = (stamp.client as i64, stamp.sequence as i64);
    // The second row tells a fence from a commit, should this answer be lost, too.
    let fence = format!(
        "INSERT INTO entity_stamp (client, sequence) VALUES ({client}, {sequence}), \
         ({client}, {})",
        -sequence
    );
    match simple::<R>(link, &fence, answers).await {
        Ok(()) => return Ok(Outcome::NotCommitted),
        Err(Failure::Exists(_)) => {}
        Err(failure) => return Err(failure),
    }
    let is_fenced = format!(
        "SELECT 1 FROM entity_stamp WHERE client = {client} AND sequence = {}",
        -sequence
    );
    simple::<R>(link, &is_fenced, answers).await?;
    Ok(match answers.rows(0) {
        0 => Outcome::Committed,
        _ => Outcome::NotCommitted,
    })
}

/// Whether the last statement of a round has committed.
pub(crate) fn committed(answers: &Answers) -> Result<(), Failure> {
    let last = answers.statements().saturating_sub(1);
    match answers.tag(last) {
        "COMMIT" => Ok(()),
        tag => {
            let text = format!("COMMIT was answered with \"{tag}\"");
            Err(Failure::Refused(text))
        }
    }
}

/// The connection is gone.
pub(crate) fn gone() -> Failure {
    Failure::Lost(String::from("the connection is gone"))
}

/// Runs a statement without parameters.
async fn simple<R: Reach>(
    link: &mut R::Link,
    text: &str,
    answers: &mut Answers,
) -> Result<(), Failure> {
    let sent = Connection::simple(link, text, answers).await;
    sent.map_err(|error| Failure::Lost(error.to_string()))?;
    match answers.error.take() {
        Some(error) => Err(failure_of(&error, Failure::Lost)),
        None => Ok(()),
    }
}

/// Whether the server says that a commit is on disk before it is answered.
pub(crate) async fn is_durable(link: &mut Link, dialect: Dialect) -> Result<bool, Failure> {
    let server = Server::identify(link).map_err(|error| failure_of_link(&error))?;
    if server.is_trellis {
        return Ok(true);
    }
    let questions = match dialect {
        Dialect::Postgres => ["SHOW fsync", "SHOW synchronous_commit"],
        Dialect::MySql => ["SELECT @@innodb_flush_log_at_trx_commit", "SELECT 1"],
    };
    let mut answers = Answers::new();
    for question in questions {
        let asked = Connection::simple(link, question, &mut answers).await;
        asked.map_err(|error| Failure::Lost(error.to_string()))?;
        // One that does not tell promises nothing.
        let answer = answers.text(0, 0, 0);
        let is_told = !matches!(answer, "off" | "0" | "2" | "");
        if answers.error.take().is_some() || !is_told {
            return Ok(false);
        }
    }
    Ok(true)
}

/// A server that starts, ends or is full: later it lets somebody in.
pub(crate) fn is_passing(error: &ServerError) -> bool {
    error.sqlstate.starts_with("57P") || error.sqlstate == "53300" || is_unknown(&error.sqlstate)
}

pub(crate) fn failure_of_link(error: &LinkError) -> Failure {
    match error {
        LinkError::Server(refused) => failure_of(refused, Failure::Lost),
        LinkError::Io(..) | LinkError::Tls(_) | LinkError::Protocol(_) => {
            Failure::Lost(error.to_string())
        }
    }
}

/// What a server's refusal means; `broken` if it does not know, or ends.
pub(crate) fn failure_of(error: &ServerError, broken: fn(String) -> Failure) -> Failure {
    match error.sqlstate.as_str() {
        "40001" | "40P01" | "55P03" => Failure::Conflict(error.sqlstate.clone().into()),
        "23505" => Failure::Exists(error.message.clone()),
        _ if is_passing(error) => broken(error.to_string()),
        _ => Failure::Refused(error.to_string()),
    }
}

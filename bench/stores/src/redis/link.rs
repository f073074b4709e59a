//! A connection to Redis, the commands that change groups, and what replies mean.

use crate::kv::{Group, lost};
use entity::Failure;
use links::link::LinkError;
use links::redis::{Commands, Redis, Reply, Said};
use links::url::Target;
use std::collections::BTreeMap;
use std::time::Duration;

/// A connection.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) redis: Redis,
    /// Whether keys may be watched that no transaction waits for any more.
    pub(super) is_watching: bool,
    /// The client whose stamp is watched.
    pub(super) watched: Option<u64>,
}

impl Link {
    /// Connects to the server of the target.
    pub(super) fn connect(target: &Target, timeout: Duration) -> Result<Link, LinkError> {
        Ok(Link {
            redis: Redis::connect(&target.endpoints[0], target, Some(timeout))?,
            is_watching: false,
            watched: None,
        })
    }
}

/// Fields of a hash with their values.
type Fields<'a> = Vec<(Vec<u8>, &'a [u8])>;

/// The fields of a hash that are set, with their values, and those that are deleted.
pub(super) fn fields_of(held: &Group) -> (Fields<'_>, Vec<Vec<u8>>) {
    let put = held.put().map(|(name, value)| (key(b'r', name), value));
    let gone = held.deleted().map(|name| key(b'r', name));
    (put.collect(), gone.collect())
}

/// Changes of a hash, and of the set of all groups.
pub(super) fn push_hash(commands: &mut Commands, group: &[u8], held: &Group) {
    let hash = key(b'g', group);
    let was_there = held.loaded.as_ref().map(|records| !records.is_empty());
    let (put, gone) = fields_of(held);
    if !put.is_empty() {
        let mut words: Vec<&[u8]> = vec![b"HSET", &hash];
        words.extend(put.iter().flat_map(|(field, value)| [&field[..], value]));
        commands.push(&words);
        if was_there != Some(true) {
            commands.push(&[b"ZADD", GROUPS, b"0", group]);
        }
    }
    if !gone.is_empty() {
        let mut words: Vec<&[u8]> = vec![b"HDEL", &hash];
        words.extend(gone.iter().map(Vec::as_slice));
        commands.push(&words);
        if was_there.is_some() && held.whole().is_empty() {
            commands.push(&[b"ZREM", GROUPS, group]);
        }
    }
}

/// Changes of strings, of the set of their keys, and of the set of all groups. A group stays there
/// when it has become empty.
pub(super) fn push_rows(commands: &mut Commands, group: &[u8], held: &Group) {
    let index = key(b'i', group);
    let mut was_there = true;
    for (key, value) in held.put() {
        was_there &= matches!(held.kept.get(key), Some(Some(_)));
        commands.push(&[b"SET", &record_key(group, key), value]);
        commands.push(&[b"ZADD", &index, b"0", key]);
    }
    if !was_there {
        commands.push(&[b"ZADD", GROUPS, b"0", group]);
    }
    for key in held.deleted() {
        commands.push(&[b"DEL", &record_key(group, key)]);
        commands.push(&[b"ZREM", &index, key]);
    }
}

/// The sorted set of all groups.
pub(super) const GROUPS: &[u8] = b"o";

pub(super) fn key(kind: u8, name: &[u8]) -> Vec<u8> {
    [&[kind], name].concat()
}

pub(super) fn record_key(group: &[u8], record: &[u8]) -> Vec<u8> {
    [b"r", group, record].concat()
}

/// Values by their keys.
type Records = BTreeMap<Vec<u8>, Vec<u8>>;

/// The records of a hash, and its version.
pub(super) fn records_of(reply: Reply) -> Option<(Records, Vec<u8>)> {
    let mut fields = reply.texts()?.into_iter();
    let (mut records, mut version) = (BTreeMap::new(), Vec::new());
    while let (Some(field), Some(value)) = (fields.next(), fields.next()) {
        match field.split_first() {
            Some((b'r', key)) => drop(records.insert(key.to_vec(), value)),
            _ => version = value,
        }
    }
    Some((records, version))
}

/// What the first reply of a round is, read in this way.
pub(super) fn first<T>(replies: Vec<Reply>, read: fn(Reply) -> Option<T>) -> Result<T, Failure> {
    let first = replies.into_iter().next();
    first.and_then(read).ok_or_else(strange)
}

/// The replies of a round of which none must be a refusal.
pub(super) fn replies(said: Result<Vec<Said>, LinkError>) -> Result<Vec<Reply>, Failure> {
    let said = said.map_err(|error| lost(&error))?.into_iter();
    said.map(|said| said.map_err(|text| failure_of(&text)))
        .collect()
}

pub(super) fn strange() -> Failure {
    Failure::Refused(String::from("a reply of Redis that is none to the command"))
}

/// What a refusal means, by its first word.
pub(super) fn failure_of(text: &str) -> Failure {
    match text.split(' ').next().unwrap_or("") {
        // It starts, or its primary does: later it can.
        "LOADING" | "MASTERDOWN" | "CLUSTERDOWN" => Failure::Lost(text.to_owned()),
        "BUSY" | "TRYAGAIN" => Failure::conflict("busy"),
        _ => Failure::Refused(text.to_owned()),
    }
}

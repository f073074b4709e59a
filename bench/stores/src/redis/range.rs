//! Ranges over groups on Redis: the records of a page of groups.

use super::Server;
use super::link::{first, key, record_key, records_of, replies, strange};
use crate::kv::Page;
use entity::Failure;
use entity::kv::Record;
use links::redis::{Commands, Reply};

/// How often a page is read again because records came or went meanwhile.
const ATTEMPTS: usize = 10;

impl Server {
    /// The records of hashes, each of one state.
    pub(super) async fn hashes(&mut self, groups: &[Vec<u8>]) -> Result<Vec<Vec<Record>>, Failure> {
        let mut commands = Commands::default();
        for group in groups {
            commands.push(&[b"HGETALL", &key(b'g', group)]);
        }
        let hashes = replies(self.ask(&commands).await)?.into_iter();
        let records = hashes.map(|reply| Some(records_of(reply)?.0.into_iter().collect()));
        records.collect::<Option<_>>().ok_or_else(strange)
    }

    /// The records of one type of groups whose records are strings, all of one state: their keys
    /// are read before, and must be the same when the values are read.
    pub(super) async fn strings(
        &mut self,
        groups: &[Vec<u8>],
        page: Page<'_>,
    ) -> Result<Vec<Vec<Record>>, Failure> {
        let (least, end) = (key(b'[', page.prefix), key(b'(', &page.range.prefix_end()));
        let push_keys = |commands: &mut Commands| {
            for group in groups {
                commands.push(&[b"ZRANGEBYLEX", &key(b'i', group), &least, &end]);
            }
        };
        let keys_of = |lists: Vec<Reply>| {
            let lists = lists.into_iter().map(Reply::texts);
            lists.collect::<Option<Vec<Vec<Vec<u8>>>>>()
        };
        let mut commands = Commands::default();
        push_keys(&mut commands);
        let lists = replies(self.ask(&commands).await)?;
        let mut keys = keys_of(lists).ok_or_else(strange)?;
        for _ in 0..ATTEMPTS {
            let pairs = groups.iter().zip(&keys);
            let places = pairs.flat_map(|(group, keys)| {
                let places = keys.iter().map(|key| record_key(group, key));
                places.collect::<Vec<Vec<u8>>>()
            });
            let places: Vec<Vec<u8>> = places.collect();
            let mut commands = Commands::default();
            commands.push(&[b"UNWATCH"]);
            commands.push(&[b"MULTI"]);
            push_keys(&mut commands);
            if !places.is_empty() {
                let mut words: Vec<&[u8]> = vec![b"MGET"];
                words.extend(places.iter().map(Vec::as_slice));
                commands.push(&words);
            }
            commands.push(&[b"EXEC"]);
            let said = replies(self.ask(&commands).await)?.pop();
            let mut lists = first(said.into_iter().collect(), Reply::list)?;
            let values = lists.split_off(groups.len().min(lists.len())).pop();
            let now = keys_of(lists).ok_or_else(strange)?;
            if now != keys {
                keys = now;
                continue;
            }
            let values = values.map_or(Some(Vec::new()), Reply::texts);
            let mut values = values.ok_or_else(strange)?.into_iter();
            let records = keys.into_iter().map(|keys| {
                let pairs = keys.into_iter().zip(values.by_ref());
                pairs.collect::<Vec<Record>>()
            });
            return Ok(records.collect());
        }
        Err(Failure::conflict("range"))
    }
}

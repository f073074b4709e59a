//! Commits of a hash by a script in the server, which compares its version.

use super::link::{failure_of, fields_of, first, key, replies, strange};
use super::{RedisTxn, Server};
use crate::kv::{Group, stamp_key, unknown};
use entity::{Failure, Stamp};
use links::redis::{Commands, Reply};

/// Compares the version of a hash, and changes it: KEYS are the hash and the stamp's key, ARGV the
/// expected version (empty: the group is new), the sequence (empty: without a stamp), the new
/// version, how many fields are deleted, those, and then fields with their values. 1: it has
/// happened; 0: another transaction was faster, or a fence is there.
const SCRIPT: &str = "\
if ARGV[2] ~= '' and redis.call('GET', KEYS[2]) == 'f' .. ARGV[2] then return 0 end
if (redis.call('HGET', KEYS[1], 'v') or '') ~= ARGV[1] then return 0 end
if ARGV[2] ~= '' then redis.call('SET', KEYS[2], ARGV[2]) end
if ARGV[1] == '' then redis.call('ZADD', 'o', 0, string.sub(KEYS[1], 2)) end
redis.call('HSET', KEYS[1], 'v', ARGV[3])
local gone = 4 + tonumber(ARGV[4])
for at = 5, gone do redis.call('HDEL', KEYS[1], ARGV[at]) end
for at = gone + 1, #ARGV, 2 do redis.call('HSET', KEYS[1], ARGV[at], ARGV[at + 1]) end
return 1";

impl Server {
    /// Commits by the script, which knows one group.
    pub(super) async fn commit_script(
        &mut self,
        mut txn: RedisTxn,
        (group, held): (&[u8], &Group),
        stamp: Option<Stamp>,
    ) -> Result<(), Failure> {
        self.versions.1 += 1;
        let version = format!("{:x}-{:x}", self.versions.0, self.versions.1);
        let sequence = stamp.map_or(String::new(), |stamp| stamp.sequence.to_string());
        let client = stamp.map_or_else(Vec::new, |stamp| stamp_key(stamp.client));
        let (put, gone) = fields_of(held);
        let (hash, count) = (key(b'g', group), gone.len().to_string());
        let mut call: Vec<&[u8]> = vec![b"2", &hash, &client, &held.version];
        call.extend([sequence.as_bytes(), version.as_bytes(), count.as_bytes()]);
        call.extend(gone.iter().map(Vec::as_slice));
        call.extend(put.iter().flat_map(|(field, value)| [&field[..], value]));
        // Twice at most: a server that was started again has forgotten the script.
        for _ in 0..2 {
            let script = self.script(&mut txn).await?;
            let mut words: Vec<&[u8]> = vec![b"EVALSHA", &script];
            words.extend(&call);
            let said = self.round(&mut txn, &Commands::of(&[&words])).await;
            let said = said.map_err(|error| unknown(&error))?;
            let result = match said.into_iter().next() {
                Some(Ok(Reply::Int(1))) => Ok(()),
                Some(Ok(Reply::Int(_))) => Err(Failure::conflict("version")),
                Some(Err(text)) if text.starts_with("NOSCRIPT") => {
                    self.script = None;
                    continue;
                }
                Some(Err(text)) => Err(failure_of(&text)),
                Some(Ok(_)) | None => Err(strange()),
            };
            self.idle.extend(txn.link);
            return result;
        }
        Err(Failure::Refused(String::from("the server forgets scripts")))
    }

    /// The name of the script, which the server has from here on.
    async fn script(&mut self, txn: &mut RedisTxn) -> Result<Vec<u8>, Failure> {
        if self.script.is_none() {
            let commands = Commands::of(&[&[b"SCRIPT", b"LOAD", SCRIPT.as_bytes()]]);
            self.script = first(replies(self.round(txn, &commands).await)?, Reply::bytes)?;
        }
        self.script.clone().ok_or_else(strange)
    }
}

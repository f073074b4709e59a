//! Groups of records on Redis.
//!
//! | form | a group | what lets a transaction commit |
//! |---|---|---|
//! | `Watch` | a hash, a field per record | WATCH on the hash |
//! | `Lua` | the same, with a version | a script compares the version |
//! | `Rows` | a string per record, and a sorted set of their keys | WATCH on each |
//!
//! A hash is read as a whole, at the first read. In the form `Rows` each read brings again what was
//! read before, so that all values are of one state.
//!
//! Writes wait at the client until the commit, which is one round: MULTI to EXEC, or EVALSHA.
//!
//! With each commit the client's stamp is written to a key of its own on the same server. A client
//! that lost an answer looks there; if it does not find its stamp it puts a fence there instead,
//! which a commit that is still on its way does not pass: WATCH notices it, and the script looks.
//!
//! | key | content |
//! |---|---|
//! | `g` and the group | the hash; its field `v` is the version, those of records begin with `r` |
//! | `r`, the group, the record's key | a record |
//! | `i` and the group | the sorted set |
//! | `o` | a sorted set of all groups, for ranges over them |
//! | `s` and the client's number | its last sequence, behind `f` if that was fenced |

mod link;
mod range;
mod script;

use crate::kv::{Backend, Buffered, Found, Groups, Page, after, lost, stamp_key, unknown};
use crate::spread::{Spread, each_server};
use entity::kv::{GroupOrder, KvAbilities, Place, Placed};
use entity::{Failure, Outcome, Stamp};
use link::{GROUPS, Link, failure_of, first, key, push_hash, push_rows, record_key, replies};
use link::{records_of, strange};
use links::link::LinkError;
use links::redis::{Commands, Reply, Said};
use links::url::Target;
use std::time::Duration;

/// Groups of a page of a range, at most.
const PAGE_GROUPS_MAX: usize = 256;

/// How groups lie there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A hash, optimistic by WATCH.
    Watch,
    /// A hash, optimistic by a script.
    Lua,
    /// A string per record, optimistic by WATCH.
    Rows,
}

/// One client's connections to one or several servers of Redis.
pub type RedisStore = Spread<Buffered<Server>>;

/// A server, and the connections to it.
#[derive(Debug)]
pub struct Server {
    target: Target,
    timeout: Duration,
    form: Form,
    is_durable: bool,
    /// Connections that no transaction has: WATCH belongs to a connection, and two transactions
    /// may be open.
    idle: Vec<Link>,
    /// The client, once a commit has said its number.
    client: Option<u64>,
    /// The name of the script, once the server has it.
    script: Option<Vec<u8>>,
    /// Counts versions of hashes, and tells those of this connection from those of others.
    versions: (u64, u64),
    round_trips: u64,
}

/// A transaction, with the connection that it has for itself.
#[derive(Debug)]
pub struct RedisTxn {
    link: Option<Link>,
    /// Rounds in which something was read.
    reads: u32,
}

impl RedisStore {
    /// Connects to all servers, and asks them whether a write is on disk before it is answered.
    /// `timeout` bounds every wait; `origin` is drawn at random, and no other client's.
    ///
    /// # Errors
    /// `Lost`, `Refused`.
    pub async fn open(
        target: Target,
        form: Form,
        timeout: Duration,
        origin: u64,
    ) -> Result<RedisStore, Failure> {
        let mut servers = Vec::new();
        for target in each_server(&target) {
            let mut backend = Server {
                target,
                timeout,
                form,
                is_durable: false,
                idle: Vec::new(),
                client: None,
                script: None,
                versions: (origin, 0),
                round_trips: 0,
            };
            backend.is_durable = backend.syncs().await?;
            servers.push(Buffered { backend });
        }
        Ok(Spread::of(servers))
    }

    /// Deletes everything on all servers.
    ///
    /// # Errors
    /// `Lost`, `Refused`.
    pub async fn clear(&mut self) -> Result<(), Failure> {
        for server in self.servers() {
            let all = Commands::of(&[&[b"FLUSHDB"]]);
            replies(server.backend.ask(&all).await)?;
        }
        Ok(())
    }

    /// The release of the first server.
    ///
    /// # Errors
    /// `Lost`.
    pub async fn version(&mut self) -> Result<String, Failure> {
        let server = &mut self.servers()[0].backend;
        let mut link = server.take().map_err(|error| lost(&error))?;
        let version = link.redis.version().await;
        let version = version.map_err(|error| lost(&error))?;
        server.idle.push(link);
        Ok(version)
    }
}

impl Server {
    /// Whether the server has each write on disk before it is answered. One that does not tell
    /// promises nothing.
    async fn syncs(&mut self) -> Result<bool, Failure> {
        let commands = Commands::of(&[
            &[b"CONFIG", b"GET", b"appendonly"],
            &[b"CONFIG", b"GET", b"appendfsync"],
        ]);
        let said = self.ask(&commands).await.map_err(|error| lost(&error))?;
        let values = said.into_iter().map(|said| said.ok()?.texts()?.pop());
        let values: Vec<Found> = values.collect();
        Ok(values == [Some(b"yes".to_vec()), Some(b"always".to_vec())])
    }

    /// A connection that nobody has.
    fn take(&mut self) -> Result<Link, LinkError> {
        match self.idle.pop() {
            Some(link) => Ok(link),
            None => Link::connect(&self.target, self.timeout),
        }
    }

    /// Sends commands outside of a transaction.
    async fn ask(&mut self, commands: &Commands) -> Result<Vec<Said>, LinkError> {
        let link = Some(self.take()?);
        let mut txn = RedisTxn { link, reads: 0 };
        let said = self.round(&mut txn, commands).await;
        self.idle.extend(txn.link);
        said
    }

    /// Sends commands of a transaction. Its connection is given up if that fails.
    async fn round(
        &mut self,
        txn: &mut RedisTxn,
        commands: &Commands,
    ) -> Result<Vec<Said>, LinkError> {
        let gone = LinkError::Protocol("the connection is gone");
        let link = txn.link.as_mut().ok_or(gone)?;
        self.round_trips += 1;
        let result = link.redis.round(commands).await;
        if result.is_err() {
            txn.link = None;
            // The others are to the same server, which may have ended.
            self.idle.clear();
        }
        result
    }

    /// Reads by commands, after WATCH on these keys where the form wants that.
    async fn read(
        &mut self,
        txn: &mut RedisTxn,
        watch: &[Vec<u8>],
        read: Commands,
    ) -> Result<Vec<Reply>, Failure> {
        let stamp = self.client.map(stamp_key);
        let mut commands = Commands::default();
        if let Some(link) = &mut txn.link {
            if link.is_watching && txn.reads == 0 {
                commands.push(&[b"UNWATCH"]);
            }
            if self.form != Form::Lua {
                let mut words: Vec<&[u8]> = vec![b"WATCH"];
                if txn.reads == 0 {
                    words.extend(stamp.as_deref());
                    link.watched = self.client;
                }
                words.extend(watch.iter().map(Vec::as_slice));
                if words.len() > 1 {
                    commands.push(&words);
                }
                link.is_watching = true;
            }
        }
        let before = commands.count();
        commands.append(&read);
        txn.reads += 1;
        Ok(replies(self.round(txn, &commands).await)?.split_off(before))
    }

    /// Reads a whole group.
    async fn load(
        &mut self,
        txn: &mut RedisTxn,
        groups: &mut Groups,
        group: &[u8],
    ) -> Result<(), Failure> {
        let hash = key(b'g', group);
        let commands = Commands::of(&[&[b"HGETALL", &hash]]);
        let (records, version) = first(self.read(txn, &[hash], commands).await?, records_of)?;
        let held = groups.at(group);
        (held.loaded, held.version) = (Some(records), version);
        Ok(())
    }

    /// Reads records that lie in keys of their own, together with all that were read before: those
    /// must be as they were.
    async fn fetch_rows(
        &mut self,
        txn: &mut RedisTxn,
        groups: &mut Groups,
        group: &[u8],
        keys: &[Vec<u8>],
    ) -> Result<(), Failure> {
        let mut before: Vec<(Vec<u8>, Found)> = Vec::new();
        for (group, held) in groups.all() {
            let kept = held.kept.iter();
            before.extend(kept.map(|(key, value)| (record_key(group, key), value.clone())));
        }
        let places: Vec<Vec<u8>> = keys.iter().map(|key| record_key(group, key)).collect();
        let mut words: Vec<&[u8]> = vec![b"MGET"];
        words.extend(before.iter().map(|(place, _)| place.as_slice()));
        words.extend(places.iter().map(Vec::as_slice));
        let read = self.read(txn, &places, Commands::of(&[&words])).await?;
        let mut values = first(read, Reply::values)?;
        let new = values.split_off(before.len().min(values.len()));
        if !before.iter().map(|(_, value)| value).eq(values.iter()) {
            return Err(Failure::conflict("read again"));
        }
        groups.at(group).kept.extend(keys.iter().cloned().zip(new));
        Ok(())
    }

    /// Commits by MULTI and EXEC.
    async fn commit_block(
        &mut self,
        mut txn: RedisTxn,
        groups: &Groups,
        stamp: Option<Stamp>,
    ) -> Result<(), Failure> {
        let watched = txn.link.as_ref().and_then(|link| link.watched);
        if let Some(stamp) = stamp
            && (watched != Some(stamp.client) || txn.reads == 0)
        {
            self.client = Some(stamp.client);
            self.read(&mut txn, &[stamp_key(stamp.client)], Commands::default())
                .await?;
        }
        let mut commands = Commands::default();
        if txn.reads == 0 {
            // What the last transaction watched.
            commands.push(&[b"UNWATCH"]);
        }
        commands.push(&[b"MULTI"]);
        for (group, held) in groups.all() {
            match self.form {
                Form::Watch | Form::Lua => push_hash(&mut commands, group, held),
                Form::Rows => push_rows(&mut commands, group, held),
            }
        }
        if let Some(stamp) = stamp {
            let sequence = stamp.sequence.to_string();
            commands.push(&[b"SET", &stamp_key(stamp.client), sequence.as_bytes()]);
        }
        commands.push(&[b"EXEC"]);
        let said = self.round(&mut txn, &commands).await;
        let said = said.map_err(|error| unknown(&error))?;
        self.executed(txn, said)
    }

    /// What the last reply, that of EXEC, says.
    fn executed(&mut self, mut txn: RedisTxn, mut said: Vec<Said>) -> Result<(), Failure> {
        if let Some(link) = &mut txn.link {
            (link.is_watching, link.watched) = (false, None);
        }
        let result = match said.pop() {
            Some(Ok(Reply::List(_))) => Ok(()),
            Some(Ok(Reply::Bytes(None))) => Err(Failure::conflict("watch")),
            // A list with an error in it has not been read to its end.
            last => {
                txn.link = None;
                // What a command was refused for says more.
                let refused = said.into_iter().chain(last).find_map(Result::err);
                Err(refused.map_or_else(strange, |text| failure_of(&text)))
            }
        };
        self.idle.extend(txn.link);
        result
    }
}

impl Backend for Server {
    type Txn = RedisTxn;

    fn abilities(&self) -> KvAbilities {
        KvAbilities {
            several_groups: self.form != Form::Lua,
            scans: true,
            durable: self.is_durable,
            resolves_outcomes: true,
        }
    }

    /// The script compares a version.
    fn reads_what_it_writes(&self) -> bool {
        self.form == Form::Lua
    }

    async fn open(&mut self) -> Result<RedisTxn, Failure> {
        let link = Some(self.take().map_err(|error| lost(&error))?);
        Ok(RedisTxn { link, reads: 0 })
    }

    async fn fetch(
        &mut self,
        txn: &mut RedisTxn,
        groups: &mut Groups,
        place: Place<'_>,
    ) -> Result<(), Failure> {
        match self.form {
            Form::Watch | Form::Lua => self.load(txn, groups, place.group).await,
            Form::Rows => {
                let keys = [place.key.to_vec()];
                self.fetch_rows(txn, groups, place.group, &keys).await
            }
        }
    }

    async fn fetch_part(
        &mut self,
        txn: &mut RedisTxn,
        groups: &mut Groups,
        from: Place<'_>,
        to: &[u8],
    ) -> Result<(), Failure> {
        if self.form != Form::Rows {
            return self.load(txn, groups, from.group).await;
        }
        let index = key(b'i', from.group);
        let (least, end) = (key(b'[', from.key), key(b'(', to));
        let commands = Commands::of(&[&[b"ZRANGEBYLEX", &index, &least, &end]]);
        let mut keys = first(self.read(txn, &[index], commands).await?, Reply::texts)?;
        let held = groups.at(from.group);
        keys.retain(|key| !held.has_read(key));
        match keys.is_empty() {
            true => Ok(()),
            false => self.fetch_rows(txn, groups, from.group, &keys).await,
        }
    }

    /// What was read in several rounds was there at one time only if nothing has changed since.
    async fn end_reads(&mut self, mut txn: RedisTxn) -> Result<(), Failure> {
        if txn.reads < 2 || self.form == Form::Lua {
            return self.abort(txn).await;
        }
        let commands = Commands::of(&[&[b"MULTI"], &[b"EXEC"]]);
        let said = self.round(&mut txn, &commands).await;
        let said = said.map_err(|error| lost(&error))?;
        self.executed(txn, said)
    }

    async fn commit(
        &mut self,
        txn: RedisTxn,
        groups: Groups,
        stamp: Option<Stamp>,
    ) -> Result<(), Failure> {
        if self.form != Form::Lua {
            return self.commit_block(txn, &groups, stamp).await;
        }
        let mut changed = groups.all().filter(|(_, held)| !held.writes.is_empty());
        let changed = changed.next().expect("something is written");
        self.commit_script(txn, changed, stamp).await
    }

    async fn abort(&mut self, txn: RedisTxn) -> Result<(), Failure> {
        self.idle.extend(txn.link);
        Ok(())
    }

    async fn outcome(&mut self, stamp: Stamp) -> Result<Outcome, Failure> {
        let (place, sequence) = (stamp_key(stamp.client), stamp.sequence.to_string());
        let mut txn = self.open().await?;
        let commands = Commands::of(&[&[b"UNWATCH"], &[b"WATCH", &place], &[b"GET", &place]]);
        let kept = replies(self.round(&mut txn, &commands).await)?.split_off(2);
        let kept = first(kept, Reply::bytes)?;
        if kept.as_deref() == Some(sequence.as_bytes()) {
            self.idle.extend(txn.link);
            return Ok(Outcome::Committed);
        }
        let fence = format!("f{sequence}");
        let set: [&[u8]; 3] = [b"SET", &place, fence.as_bytes()];
        let commands = Commands::of(&[&[b"MULTI"], &set, &[b"EXEC"]]);
        let said = self.round(&mut txn, &commands).await;
        let said = said.map_err(|error| lost(&error))?;
        self.executed(txn, said)?;
        Ok(Outcome::NotCommitted)
    }

    fn group_order(&self) -> GroupOrder {
        GroupOrder::Each
    }

    async fn page(
        &mut self,
        page: Page<'_>,
        _: &mut i64,
        found: &mut Vec<Placed>,
    ) -> Result<Option<Vec<u8>>, Failure> {
        let (least, end) = (key(b'[', page.from), key(b'(', page.range.to));
        let count = page.count(found, PAGE_GROUPS_MAX);
        let limit = count.to_string().into_bytes();
        let words: [&[u8]; 7] = [b"ZRANGEBYLEX", GROUPS, &least, &end, b"LIMIT", b"0", &limit];
        let commands = Commands::of(&[&words]);
        let groups = first(replies(self.ask(&commands).await)?, Reply::texts)?;
        let records = match self.form {
            Form::Watch | Form::Lua => self.hashes(&groups).await?,
            Form::Rows => self.strings(&groups, page).await?,
        };
        for (group, records) in groups.iter().zip(records) {
            page.take(group, records, found);
        }
        Ok(after(groups.last().map(Vec::as_slice), groups.len(), count))
    }

    fn round_trips(&self) -> u64 {
        self.round_trips
    }
}

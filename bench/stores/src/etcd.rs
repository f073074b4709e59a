//! Groups of records on etcd.
//!
//! | form | a group | what lets a transaction commit |
//! |---|---|---|
//! | `Rows` | a key per record | what it has read and scanned is as it was |
//! | `Packed` | one key with all records | that key was not written since |
//!
//! All reads of a transaction are of the store's revision at its first one. Writes wait at the
//! client until the commit, which is one transaction of etcd with conditions: optimistic.
//!
//! With each commit the client's stamp is written to a key of its own, on the condition that it was
//! not written since. A client that lost an answer looks there; if it does not find its stamp it
//! puts a fence there instead, and a commit that is still on its way does not happen.
//!
//! | key | content |
//! |---|---|
//! | `r`, the group, the record's key | a record |
//! | `d` and the group | written whenever one of its records is deleted |
//! | `g` and the group | all of its records, each key and each value behind its length |
//! | `s` and the client's number | its last sequence, behind `f` if that was fenced |

use crate::kv::{
    Backend, Buffered, Groups, Page, after, lost, packed, stamp_key, unknown, unpacked,
};
use crate::line::{Broken, Line, Wire};
use crate::spread::{Spread, each_server};
use entity::kv::{GroupOrder, KvAbilities, Place, Placed};
use entity::{Failure, Outcome, Stamp};
use links::etcd::{Etcd, Pair, Reply, Txn, end_of};
use links::link::LinkError;
use links::url::{Endpoint, Target};
use std::collections::BTreeMap;
use std::time::Duration;

/// How groups lie there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A key per record.
    Rows,
    /// One key per group.
    Packed,
}

/// Keys of a page of a range over groups, at most.
const PAGE_KEYS_MAX: usize = 1000;

/// One client's connections to one or several servers of etcd.
pub type EtcdStore = Spread<Buffered<Server>>;

/// A server, and the connection to it.
#[derive(Debug)]
pub struct Server {
    line: Line<Etcd>,
    form: Form,
    /// The client, once a commit has said its number.
    client: Option<u64>,
}

/// A transaction.
#[derive(Debug, Default)]
pub struct EtcdTxn {
    /// The revision that it reads; 0: it has read nothing.
    revision: i64,
    /// Revisions of the keys that it has read; 0: there was none.
    read: BTreeMap<Vec<u8>, i64>,
    /// What it has scanned.
    ranges: Vec<(Vec<u8>, Vec<u8>)>,
    /// The client whose stamp it has read, and the revision of that.
    stamp: Option<(u64, i64)>,
}

impl EtcdStore {
    /// Connections are made when they are needed. `timeout` bounds every wait.
    pub fn new(target: Target, form: Form, timeout: Duration) -> EtcdStore {
        Spread::of(each_server(&target).map(|target| {
            let line = Line::new(target, timeout, 0);
            let client = None;
            let backend = Server { line, form, client };
            Buffered { backend }
        }))
    }

    /// Deletes everything on all servers.
    ///
    /// # Errors
    /// `Lost`, `Refused`.
    pub async fn clear(&mut self) -> Result<(), Failure> {
        for server in self.servers() {
            for kind in [b"r", b"d", b"g", b"s"] {
                let mut txn = Txn::default();
                txn.delete_range(kind, &end_of(kind));
                server.backend.run(&mut txn, lost).await?;
            }
        }
        Ok(())
    }

    /// The release of the first server.
    ///
    /// # Errors
    /// `Lost`.
    pub async fn version(&mut self) -> Result<String, Failure> {
        let line = &mut self.servers()[0].backend.line;
        let version = line.link()?.version().await;
        line.answered(version, lost)
    }
}

impl Server {
    /// Runs a transaction of etcd.
    async fn run(&mut self, txn: &mut Txn, broken: Broken) -> Result<Reply, Failure> {
        let answer = self.line.link()?.run(txn).await;
        self.line.answered(answer, broken)
    }

    /// Reads, and the client's stamp with it, at the revision of the transaction. `read` is what
    /// has been asked for already.
    async fn read(&mut self, txn: &mut EtcdTxn, mut read: Txn) -> Result<Vec<Vec<Pair>>, Failure> {
        let client = self.client.filter(|_| txn.stamp.is_none());
        if let Some(client) = client {
            // As of now: what matters is that nobody writes it from here on.
            read.get(&stamp_key(client), 0);
        }
        let mut reply = self.run(&mut read, lost).await?;
        if let Some(client) = client {
            let found = reply.found.pop().unwrap_or_default();
            txn.stamp = Some((client, found.first().map_or(0, |pair| pair.revision)));
        }
        if txn.revision == 0 {
            txn.revision = reply.revision;
        }
        Ok(reply.found)
    }

    /// Reads a record, or in the packed form all of its group.
    async fn read_place(
        &mut self,
        txn: &mut EtcdTxn,
        groups: &mut Groups,
        (group, key): (&[u8], &[u8]),
    ) -> Result<(), Failure> {
        let place = self.place(group, key);
        let mut read = Txn::default();
        read.get(&place, txn.revision);
        let found = self.read(txn, read).await?;
        let pair = found.into_iter().flatten().next();
        let revision = pair.as_ref().map_or(0, |pair| pair.revision);
        txn.read.insert(place, revision);
        let value = pair.map(|pair| pair.value);
        let held = groups.at(group);
        match self.form {
            Form::Rows => drop(held.kept.insert(key.to_vec(), value)),
            Form::Packed => held.loaded = Some(unpacked(&value.unwrap_or_default())?),
        }
        Ok(())
    }

    /// The key of etcd that has a record.
    fn place(&self, group: &[u8], key: &[u8]) -> Vec<u8> {
        match self.form {
            Form::Rows => [b"r", group, key].concat(),
            Form::Packed => [b"g", group].concat(),
        }
    }

    /// What a commit asks etcd for.
    fn changes(&self, txn: &EtcdTxn, groups: &Groups) -> Txn {
        let mut changes = Txn::default();
        for (key, revision) in &txn.read {
            changes.if_revision(key, *revision);
        }
        for (from, to) in &txn.ranges {
            changes.if_none_since(from, to, txn.revision);
        }
        for (group, held) in groups.all() {
            if held.writes.is_empty() {
                continue;
            }
            if self.form == Form::Packed {
                changes.put(&self.place(group, b""), &packed(held));
                continue;
            }
            for (key, value) in held.put() {
                changes.put(&self.place(group, key), value);
            }
            let mut has_deleted = false;
            for key in held.deleted() {
                changes.delete(&self.place(group, key));
                has_deleted = true;
            }
            if has_deleted {
                changes.put(&marker(group), b"");
            }
        }
        changes
    }
}

impl Backend for Server {
    type Txn = EtcdTxn;

    fn abilities(&self) -> KvAbilities {
        KvAbilities {
            several_groups: true,
            scans: true,
            durable: true,
            resolves_outcomes: true,
        }
    }

    fn reads_what_it_writes(&self) -> bool {
        self.form == Form::Packed
    }

    async fn open(&mut self) -> Result<EtcdTxn, Failure> {
        self.line.link()?;
        Ok(EtcdTxn::default())
    }

    async fn fetch(
        &mut self,
        txn: &mut EtcdTxn,
        groups: &mut Groups,
        place: Place<'_>,
    ) -> Result<(), Failure> {
        self.read_place(txn, groups, (place.group, place.key)).await
    }

    async fn fetch_part(
        &mut self,
        txn: &mut EtcdTxn,
        groups: &mut Groups,
        from: Place<'_>,
        to: &[u8],
    ) -> Result<(), Failure> {
        if self.form == Form::Packed {
            return self.read_place(txn, groups, (from.group, b"")).await;
        }
        let (first, end) = (self.place(from.group, from.key), self.place(from.group, to));
        let mut read = Txn::default();
        read.get_range(&first, &end, txn.revision);
        let pairs = self.read(txn, read).await?;
        let skipped = 1 + from.group.len();
        let held = groups.at(from.group);
        for pair in pairs.into_iter().flatten() {
            let key = pair.key.get(skipped..).unwrap_or_default().to_vec();
            held.kept.insert(key, Some(pair.value));
        }
        let gone = marker(from.group);
        txn.ranges.push((gone.clone(), [&gone[..], &[0]].concat()));
        txn.ranges.push((first, end));
        Ok(())
    }

    async fn end_reads(&mut self, _: EtcdTxn) -> Result<(), Failure> {
        Ok(())
    }

    async fn commit(
        &mut self,
        mut txn: EtcdTxn,
        groups: Groups,
        stamp: Option<Stamp>,
    ) -> Result<(), Failure> {
        if let Some(stamp) = stamp
            && txn.stamp.is_none_or(|(client, _)| client != stamp.client)
        {
            self.client = Some(stamp.client);
            txn.stamp = None;
            self.read(&mut txn, Txn::default()).await?;
        }
        let mut changes = self.changes(&txn, &groups);
        if let (Some(stamp), Some((client, revision))) = (stamp, txn.stamp) {
            let place = stamp_key(client);
            changes.if_revision(&place, revision);
            changes.put(&place, stamp.sequence.to_string().as_bytes());
        }
        match self.run(&mut changes, unknown).await?.is_done {
            true => Ok(()),
            false => Err(Failure::conflict("revision")),
        }
    }

    async fn abort(&mut self, _: EtcdTxn) -> Result<(), Failure> {
        Ok(())
    }

    async fn outcome(&mut self, stamp: Stamp) -> Result<Outcome, Failure> {
        let (place, sequence) = (stamp_key(stamp.client), stamp.sequence.to_string());
        let mut txn = Txn::default();
        txn.get(&place, 0);
        let reply = self.run(&mut txn, lost).await?;
        let pair = reply.found.into_iter().flatten().next();
        if pair.as_ref().map(|pair| &pair.value[..]) == Some(sequence.as_bytes()) {
            return Ok(Outcome::Committed);
        }
        txn.if_revision(&place, pair.map_or(0, |pair| pair.revision));
        txn.put(&place, format!("f{sequence}").as_bytes());
        match self.run(&mut txn, lost).await?.is_done {
            true => Ok(Outcome::NotCommitted),
            false => Err(Failure::conflict("stamp")),
        }
    }

    fn group_order(&self) -> GroupOrder {
        GroupOrder::Snapshot
    }

    /// `as_of` is the revision that all pages are of.
    async fn page(
        &mut self,
        page: Page<'_>,
        as_of: &mut i64,
        found: &mut Vec<Placed>,
    ) -> Result<Option<Vec<u8>>, Failure> {
        let kind = match self.form {
            Form::Rows => b"r",
            Form::Packed => b"g",
        };
        let (from, to) = ([kind, page.from].concat(), [kind, page.range.to].concat());
        let count = page.count(found, PAGE_KEYS_MAX);
        let mut read = Txn::default();
        read.get_page(&from, &to, *as_of, count);
        let reply = self.run(&mut read, lost).await?;
        if *as_of == 0 {
            *as_of = reply.revision;
        }
        let pairs: Vec<Pair> = reply.found.into_iter().flatten().collect();
        let next = after(pairs.last().map(|pair| &pair.key[1..]), pairs.len(), count);
        for pair in pairs {
            let place = &pair.key[1..];
            if self.form == Form::Packed {
                page.take(place, unpacked(&pair.value)?, found);
            } else if let Some((group, key)) = page.range.split(place) {
                page.take(group, [(key.to_vec(), pair.value)], found);
            }
        }
        Ok(next)
    }

    fn round_trips(&self) -> u64 {
        self.line.round_trips
    }
}

fn marker(group: &[u8]) -> Vec<u8> {
    [b"d", group].concat()
}

impl Wire for Etcd {
    fn connect(endpoint: &Endpoint, target: &Target, timeout: Duration) -> Result<Etcd, LinkError> {
        Etcd::connect(endpoint, target, Some(timeout))
    }

    fn failure_of(error: &LinkError, broken: Broken) -> Failure {
        let LinkError::Server(refused) = error else {
            return broken(error);
        };
        let text = format!("{} (gRPC {})", refused.message, &refused.sqlstate[2..]);
        match refused.sqlstate.as_str() {
            // Cancelled, unknown, too late, aborted, internal, no leader.
            "ET001" | "ET002" | "ET004" | "ET010" | "ET013" | "ET014" => broken(error),
            // What the transaction has read was compacted.
            "ET011" => Failure::conflict("compacted"),
            "ET008" if refused.message.contains("too many requests") => Failure::conflict("busy"),
            "ET003" if refused.message.contains("too many operations") => {
                Failure::Refused(format!(
                    "{text}: a transaction has more records than the server's --max-txn-ops allows"
                ))
            }
            _ => Failure::Refused(text),
        }
    }
}

//! Groups as single rows of a table, over the protocols of PostgreSQL and MySQL: one row of bytes
//! with a version.
//!
//! | mapping | a group is read | and written |
//! |---|---|---|
//! | `packed` | by a statement of its own | if its version is the same |
//! | `packed-lock` | FOR UPDATE, in the transaction | in the same transaction |
//!
//! READ COMMITTED in both: a single row needs no more. A group that does not exist cannot be
//! locked; of two transactions that create it one ends in a conflict. A transaction that touches
//! several groups compares the versions of those, too, that it has only read.
//!
//! The row has the stamp of its last transaction, and the stamp is inserted into `entity_stamp`
//! from there: so a commit whose version was another one leaves no stamp, and all of it is one
//! round on PostgreSQL.

mod text;

pub use text::setup;

use crate::kv::{Backend, Buffered, Group, Groups, Page, after, packed, unpacked};
use crate::spread::Spread;
use crate::sql::prepared::{Ready, prepare};
use crate::sql::says::{committed, failure_of, gone, outcome};
use crate::sql::{Network, dialect_of, failure_of_link, is_durable};
use entity::kv::{GroupOrder, KvAbilities, Place, Placed};
use entity::sql::{self, Dialect};
use entity::{Failure, Kind, Outcome, Stamp, Value};
use links::answers::Answers;
use links::link::{Link, Prepared, Status};
use links::server::Server;
use links::url::Target;
use std::time::Duration;
use text::statements;
use workload::wire::{Connection, Isolation, Round};

/// Groups of a page of a range, at most.
const PAGE_GROUPS_MAX: usize = 256;
/// The longest key of a group that the table takes, in bytes.
const ID_BYTES_MAX: usize = 1000;

/// One client's connections to one or several databases.
pub type PackedStore = Spread<Buffered<Database>>;

/// A database, and the connections to it.
#[derive(Debug)]
pub struct Database {
    /// Its endpoints are nodes of the database.
    network: Network,
    dialect: Dialect,
    locks: bool,
    is_durable: bool,
    /// Connections that no transaction has: one on an index may be open within another one.
    idle: Vec<Session>,
    round: Round,
    answers: Answers,
    round_trips: u64,
}

/// A transaction, with the connection that it has for itself.
#[derive(Debug)]
pub struct SqlTxn {
    session: Option<Session>,
    has_begun: bool,
}

/// A connection with its statements.
#[derive(Debug)]
struct Session {
    link: Link,
    begin: Prepared,
    commit: Prepared,
    rollback: Prepared,
    /// Of a stamp that stands in no row.
    stamp: Prepared,
    /// Of the stamp in a row: the row's id, client and sequence.
    stamp_of: Prepared,
    read: Prepared,
    version: Prepared,
    /// A row that is only read must be the same: id and version.
    check: Prepared,
    /// A row that was read as absent is made, so that nobody else makes it.
    reserve: Prepared,
    insert: Prepared,
    update: Prepared,
    page: Prepared,
}

impl Session {
    async fn new(mut link: Link, dialect: Dialect, locks: bool) -> Result<Session, Failure> {
        let server = Server::identify(&mut link).map_err(|error| failure_of_link(&error))?;
        let tuned = server.tune(&mut link, Some(Isolation::ReadCommitted));
        tuned.map_err(|error| failure_of_link(&error))?;
        let ready = prepare::<Network>(&mut link, dialect, statements(dialect, locks)).await?;
        let prepared: Vec<Prepared> = ready
            .iter()
            .map(|Ready { prepared, .. }| *prepared)
            .collect();
        let [
            begin,
            commit,
            rollback,
            stamp,
            stamp_of,
            read,
            version,
            check,
            reserve,
            insert,
            update,
            page,
        ] = prepared[..]
        else {
            return Err(Failure::Refused(String::from("not all was prepared")));
        };
        Ok(Session {
            link,
            begin,
            commit,
            rollback,
            stamp,
            stamp_of,
            read,
            version,
            check,
            reserve,
            insert,
            update,
            page,
        })
    }
}

/// The version in a group that was read; `None`: there was no row.
fn version_of(held: &Group) -> Option<i64> {
    let bytes = held.version.as_slice().try_into().ok()?;
    Some(i64::from_be_bytes(bytes))
}

impl PackedStore {
    /// Connects to each database, and asks it whether a commit is on disk before it is answered.
    /// `timeout` bounds every wait; of a database the endpoint with this number is tried first.
    ///
    /// # Errors
    /// `Lost`; `Refused`, if the tables are not there.
    pub async fn open(
        targets: Vec<Target>,
        locks: bool,
        timeout: Duration,
        endpoint: usize,
    ) -> Result<PackedStore, Failure> {
        let mut databases = Vec::new();
        for target in targets {
            let dialect = dialect_of(&target);
            let mut backend = Database {
                network: Network::new(target, timeout, endpoint),
                dialect,
                locks,
                is_durable: false,
                idle: Vec::new(),
                round: Round::default(),
                answers: Answers::new(),
                round_trips: 0,
            };
            let mut session = backend.take().await?;
            backend.is_durable = is_durable(&mut session.link, dialect).await?;
            backend.idle.push(session);
            databases.push(Buffered { backend });
        }
        Ok(Spread::of(databases))
    }
}

impl Database {
    /// A connection that nobody has.
    async fn take(&mut self) -> Result<Session, Failure> {
        match self.idle.pop() {
            Some(session) => Ok(session),
            None => Session::new(self.network.connect()?, self.dialect, self.locks).await,
        }
    }

    /// The bytes as the text of a parameter.
    fn text(&self, bytes: &[u8]) -> String {
        let mut text = Vec::new();
        sql::push_text(&Value::Bytes(bytes.to_vec()), self.dialect, &mut text);
        String::from_utf8(text).unwrap_or_default()
    }

    /// The bytes in a cell of the last answers.
    fn bytes(&self, at: (usize, usize, usize)) -> Result<Vec<u8>, Failure> {
        let cell = self.answers.cell(at.0, at.1, at.2);
        match sql::read_text(Kind::Bytes, self.dialect, cell) {
            Some(Value::Bytes(bytes)) => Ok(bytes),
            _ => Err(Failure::Refused(String::from("a cell that has no bytes"))),
        }
    }

    /// The text of a group's key.
    fn id(&self, group: &[u8]) -> Result<String, Failure> {
        match group.len() <= ID_BYTES_MAX {
            true => Ok(self.text(group)),
            false => Err(Failure::Refused(format!(
                "the key of a group has {} bytes; the mapping takes {ID_BYTES_MAX}",
                group.len()
            ))),
        }
    }

    /// Sends the round of a transaction.
    async fn send(
        &mut self,
        txn: &mut SqlTxn,
        broken: fn(String) -> Failure,
    ) -> Result<(), Failure> {
        let session = txn.session.as_mut().ok_or_else(gone)?;
        self.round_trips += self.round.requests(self.dialect);
        let sent = Connection::round(&mut session.link, &mut self.round, &mut self.answers).await;
        if let Err(error) = sent {
            txn.session = None;
            // The others are to the same server, which may have ended.
            self.idle.clear();
            return Err(broken(error.to_string()));
        }
        let Some(error) = self.answers.error.take() else {
            return Ok(());
        };
        Err(match failure_of(&error, broken) {
            // What was read as absent is there now, or a fence is.
            Failure::Exists(_) => Failure::Conflict(error.sqlstate.into()),
            failure @ (Failure::Lost(_) | Failure::Unknown(_)) => {
                txn.session = None;
                failure
            }
            failure => failure,
        })
    }

    /// Ends what is open at the server, and gives the connection back.
    async fn give_back(&mut self, mut txn: SqlTxn) -> Result<(), Failure> {
        self.round.clear();
        let session = txn.session.as_ref();
        if let Some(session) = session.filter(|it| it.link.status() != Status::Idle) {
            self.round.bind(session.rollback).send();
            self.send(&mut txn, Failure::Lost).await?;
        }
        self.idle.extend(txn.session);
        Ok(())
    }

    /// Puts BEGIN into the round, if it was not sent. How many statements that are.
    fn begin(&mut self, txn: &mut SqlTxn) -> Result<usize, Failure> {
        self.round.clear();
        if txn.has_begun {
            return Ok(0);
        }
        let begin = txn.session.as_ref().ok_or_else(gone)?.begin;
        self.round.bind(begin).send();
        txn.has_begun = true;
        Ok(1)
    }

    /// Reads a group, after which those that were read before must be the same: then all are of
    /// one state.
    async fn load(
        &mut self,
        txn: &mut SqlTxn,
        groups: &mut Groups,
        group: &[u8],
    ) -> Result<(), Failure> {
        let at = match self.locks {
            true => self.begin(txn)?,
            false => {
                self.round.clear();
                0
            }
        };
        let session = txn.session.as_ref().ok_or_else(gone)?;
        let (read, version) = (session.read, session.version);
        let id = self.id(group)?;
        self.round.bind(read).text(&id).send();
        let mut before = Vec::new();
        for (other, held) in groups.all() {
            if held.loaded.is_some() && !self.locks {
                let other = self.id(other)?;
                self.round.bind(version).text(&other).send();
                before.push(version_of(held));
            }
        }
        self.send(txn, Failure::Lost).await?;
        let now = (0..before.len()).map(|n| self.answers.int(at + 1 + n, 0, 0));
        if !now.eq(before.iter().copied()) {
            return Err(Failure::conflict("read again"));
        }
        let held = groups.at(group);
        if self.answers.rows(at) == 0 {
            held.loaded = Some(unpacked(b"")?);
            return Ok(());
        }
        let version = self.answers.int(at, 0, 0).unwrap_or(0);
        held.loaded = Some(unpacked(&self.bytes((at, 0, 1))?)?);
        held.version = version.to_be_bytes().to_vec();
        Ok(())
    }

    /// Puts the change of a group into the round, or of one that was only read the comparison.
    fn push(
        &mut self,
        session: &Session,
        (group, held): (&[u8], &Group),
        stamp: Stamp,
    ) -> Result<(), Failure> {
        let (client, sequence) = (stamp.client as i64, stamp.sequence as i64);
        let id = self.id(group)?;
        let cell = self.text(&packed(held));
        let has_changed = !held.writes.is_empty();
        match version_of(held) {
            None if has_changed => {
                let insert = self.round.bind(session.insert).text(&id);
                insert.big(client).big(sequence).text(&cell).send();
            }
            None => self.round.bind(session.reserve).text(&id).send(),
            Some(version) if has_changed => {
                let update = self.round.bind(session.update).big(client).big(sequence);
                update.text(&cell).text(&id).big(version).send();
            }
            Some(version) => {
                let check = self.round.bind(session.check).text(&id);
                check.big(version).send();
            }
        }
        Ok(())
    }

    /// Whether the statement of a group has found its version.
    fn has_found(&self, at: usize, held: &Group) -> bool {
        match held.writes.is_empty() && version_of(held).is_some() {
            true => self.answers.rows(at) == 1,
            false => self.answers.affected(at) == 1,
        }
    }

    /// Writes all groups and commits: in one round if there is one group, else in two.
    async fn write(
        &mut self,
        txn: &mut SqlTxn,
        groups: &Groups,
        stamp: Option<Stamp>,
    ) -> Result<(), Failure> {
        let mut at = self.begin(txn)?;
        let session = txn.session.take().ok_or_else(gone)?;
        let stamped = stamp.unwrap_or_default();
        let (mut only, mut count) = (None, 0);
        let pushed = groups.all().try_for_each(|(group, held)| {
            (only, count) = (Some(group), count + 1);
            self.push(&session, (group, held), stamped)
        });
        let is_one = count == 1;
        if let (true, Some(stamp), Some(group)) = (is_one, stamp, only) {
            let (client, sequence) = (stamp.client as i64, stamp.sequence as i64);
            let id = self.text(group);
            let insert = self.round.bind(session.stamp_of).text(&id);
            insert.big(client).big(sequence).send();
        }
        let (commit, insert) = (session.commit, session.stamp);
        if is_one {
            self.round.bind(commit).send();
        }
        txn.session = Some(session);
        pushed?;
        self.send(
            txn,
            if is_one {
                Failure::Unknown
            } else {
                Failure::Lost
            },
        )
        .await?;
        for (_, held) in groups.all() {
            if !self.has_found(at, held) {
                return Err(Failure::conflict("version"));
            }
            at += 1;
        }
        if is_one {
            return committed(&self.answers);
        }
        if let Some(stamp) = stamp {
            let (client, sequence) = (stamp.client as i64, stamp.sequence as i64);
            self.round.bind(insert).big(client).big(sequence).send();
        }
        self.round.bind(commit).send();
        self.send(txn, Failure::Unknown).await?;
        committed(&self.answers)
    }
}

impl Backend for Database {
    type Txn = SqlTxn;

    fn abilities(&self) -> KvAbilities {
        KvAbilities {
            several_groups: true,
            scans: true,
            durable: self.is_durable,
            resolves_outcomes: true,
        }
    }

    fn reads_what_it_writes(&self) -> bool {
        true
    }

    async fn open(&mut self) -> Result<SqlTxn, Failure> {
        Ok(SqlTxn {
            session: Some(self.take().await?),
            has_begun: false,
        })
    }

    async fn fetch(
        &mut self,
        txn: &mut SqlTxn,
        groups: &mut Groups,
        place: Place<'_>,
    ) -> Result<(), Failure> {
        self.load(txn, groups, place.group).await
    }

    async fn fetch_part(
        &mut self,
        txn: &mut SqlTxn,
        groups: &mut Groups,
        from: Place<'_>,
        _: &[u8],
    ) -> Result<(), Failure> {
        self.load(txn, groups, from.group).await
    }

    async fn end_reads(&mut self, txn: SqlTxn) -> Result<(), Failure> {
        self.give_back(txn).await
    }

    async fn commit(
        &mut self,
        mut txn: SqlTxn,
        groups: Groups,
        stamp: Option<Stamp>,
    ) -> Result<(), Failure> {
        let result = self.write(&mut txn, &groups, stamp).await;
        // What happened at the server is decided; that it is left behind is all.
        let _ = self.give_back(txn).await;
        result
    }

    async fn abort(&mut self, txn: SqlTxn) -> Result<(), Failure> {
        self.give_back(txn).await
    }

    async fn outcome(&mut self, stamp: Stamp) -> Result<Outcome, Failure> {
        let mut session = self.take().await?;
        self.round_trips += 1;
        let outcome = outcome::<Network>(&mut session.link, stamp, &mut self.answers).await;
        if !matches!(outcome, Err(Failure::Lost(_))) {
            self.idle.push(session);
        }
        outcome
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
        let mut txn = self.open().await?;
        let count = page.count(found, PAGE_GROUPS_MAX);
        let (first, end) = (self.text(page.from), self.text(page.range.to));
        let statement = txn.session.as_ref().ok_or_else(gone)?.page;
        self.round.clear();
        let bind = self.round.bind(statement).text(&first).text(&end);
        bind.big(count as i64).send();
        let sent = self.send(&mut txn, Failure::Lost).await;
        self.idle.extend(txn.session);
        sent?;
        let (rows, mut last) = (self.answers.rows(0), None);
        for row in 0..rows {
            let group = self.bytes((0, row, 0))?;
            let records = unpacked(&self.bytes((0, row, 1))?)?;
            page.take(&group, records, found);
            last = Some(group);
        }
        Ok(after(last.as_deref(), rows, count))
    }

    fn round_trips(&self) -> u64 {
        self.round_trips
    }
}

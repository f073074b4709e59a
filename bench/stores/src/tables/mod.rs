//! Entities in tables, over the protocols of PostgreSQL and MySQL.
//!
//! A transaction takes as few rounds as its answers allow: BEGIN travels with the first statement,
//! and writes of entities that the transaction has read wait for the next read, or for COMMIT. A
//! write of an entity that was not read is sent at once, because its caller waits for the answer.
//!
//! | mapping | isolation | reads |
//! |---|---|---|
//! | `tables` | SERIALIZABLE | as they are |
//! | `tables-lock` on MySQL | SERIALIZABLE | FOR UPDATE |
//! | `tables-lock` elsewhere | READ COMMITTED | FOR UPDATE, and advisory locks |
//!
//! Rows that are not there cannot be locked. So a read that finds nothing, and each read of many,
//! first takes the advisory lock of the group for itself, and who creates or deletes shares it.
//!
//! Each transaction that writes inserts its stamp; who lost the answer to COMMIT inserts the same
//! row ([`entity::sql`]).

mod session;

use crate::mapping::hash_of;
use crate::sql::prepared::Ready;
use crate::sql::says::{check_immutable, committed, failure_of, gone, key_of, named, outcome};
use crate::sql::{Network, Reach};
use entity::seen::{Place, Seen};
use entity::sql::{self, Dialect};
use entity::{Abilities, EntityDb, EntityType, Failure, Outcome, Range, Row, Schema, Scope};
use entity::{Stamp, Value};
use session::{OfKind, Session};
use std::sync::Arc;
use workload::wire::{Answers, Connection, Isolation, Round, Status};

/// After how many stamps a client removes its older ones.
const STAMPS: u64 = 1000;

/// One client's connection to a database.
#[derive(Debug)]
pub struct SqlStore<R: Reach = Network> {
    reach: R,
    schema: Arc<Schema>,
    dialect: Dialect,
    locks: bool,
    is_durable: bool,
    session: Option<Session<R>>,
    txn: Option<Txn>,
    round: Round,
    answers: Answers,
    round_trips: u64,
    /// What the transaction has read or written.
    seen: Seen,
    /// The entity whose creation was refused last, within a transaction that had read others.
    doubled: Option<Vec<u8>>,
}

/// An open transaction.
#[derive(Debug, Default)]
struct Txn {
    stamp: Stamp,
    /// Whether BEGIN was sent.
    has_begun: bool,
    has_written: bool,
    /// Statements of the round whose rows are counted: each must change one.
    waiting: usize,
    /// Statements of the round before those.
    ahead: usize,
    /// Statements of the round behind those, whose answers say nothing.
    behind: usize,
    /// Advisory locks that it has, and whether alone.
    locked: Vec<(i64, bool)>,
}

impl<R: Reach> SqlStore<R> {
    /// Connects. With `locks` transactions lock what they read.
    ///
    /// # Errors
    /// `Lost`; `Refused`, if the tables are not there.
    pub async fn open(reach: R, schema: Arc<Schema>, locks: bool) -> Result<SqlStore<R>, Failure> {
        let mut store = SqlStore {
            dialect: reach.dialect(),
            reach,
            schema,
            locks,
            is_durable: false,
            session: None,
            txn: None,
            round: Round::default(),
            answers: Answers::new(),
            round_trips: 0,
            seen: Seen::default(),
            doubled: None,
        };
        store.connect().await?;
        if let Some(session) = &mut store.session {
            store.is_durable = store.reach.is_durable(&mut session.link).await?;
        }
        Ok(store)
    }

    /// Opens the connection if it is not there, and prepares all statements.
    async fn connect(&mut self) -> Result<(), Failure> {
        if self.session.is_some() {
            return Ok(());
        }
        let level = match self.has_advisory() {
            true => Isolation::ReadCommitted,
            false => Isolation::Serializable,
        };
        let link = self.reach.open(level).await?;
        let how = (self.dialect, self.locks, level);
        self.session = Some(Session::new(link, &self.schema, how).await?);
        Ok(())
    }

    fn session(&mut self) -> Result<&mut Session<R>, Failure> {
        self.session.as_mut().ok_or_else(gone)
    }

    fn of_kind(&mut self, kind: &EntityType) -> Result<&mut OfKind, Failure> {
        self.session()?.of_kind(kind)
    }

    /// Begins the round: BEGIN, if that was not sent yet.
    fn start(&mut self) -> Result<(), Failure> {
        let begin = self.session()?.begin;
        let Some(txn) = &mut self.txn else {
            return Ok(());
        };
        if !txn.has_begun {
            self.round.bind(begin).send();
            txn.has_begun = true;
            txn.ahead += 1;
        }
        Ok(())
    }

    fn push(&mut self, ready: &Ready, values: &[Value]) {
        let mut bind = self.round.bind(ready.prepared);
        for position in &*ready.params {
            bind = match &values[*position] {
                Value::Null => bind.null(),
                Value::Int(value) => bind.big(*value),
                Value::Text(value) => bind.text(value),
                value => {
                    let mut text = Vec::new();
                    sql::push_text(value, self.dialect, &mut text);
                    bind.text(std::str::from_utf8(&text).unwrap_or(""))
                }
            };
        }
        bind.send();
    }

    /// Sends the round and waits for its answers. Which statement is the first behind those that
    /// waited, and whether each of these has changed a row.
    async fn send(&mut self, broken: fn(String) -> Failure) -> Result<(usize, bool), Failure> {
        let session = self.session.as_mut().ok_or_else(gone)?;
        let counts =
            |txn: &mut Txn| [&mut txn.ahead, &mut txn.waiting, &mut txn.behind].map(std::mem::take);
        let [ahead, waiting, behind] = self.txn.as_mut().map_or([0; 3], counts);
        self.round_trips += self.round.requests(self.dialect);
        let sent = Connection::round(&mut session.link, &mut self.round, &mut self.answers).await;
        if let Err(error) = sent {
            self.session = None;
            return Err(broken(error.to_string()));
        }
        if let Some(error) = self.answers.error.take() {
            let is_of_write = self.answers.statements() < ahead + waiting;
            let failure = failure_of(&error, broken);
            if matches!(failure, Failure::Lost(_) | Failure::Unknown(_)) {
                self.session = None;
            }
            return Err(match failure {
                // What was read as absent is there now.
                Failure::Exists(_) if is_of_write => Failure::Conflict(error.sqlstate.into()),
                failure => failure,
            });
        }
        let mut written = ahead..ahead + waiting;
        let is_whole = written.all(|statement| self.answers.affected(statement) == 1);
        Ok((ahead + waiting + behind, is_whole))
    }

    /// Sends the round of an operation. The number of the operation's statement.
    async fn operate(&mut self) -> Result<usize, Failure> {
        match self.send(Failure::Lost).await? {
            (at, true) => Ok(at),
            (_, false) => Err(Failure::conflict("an entity that was read has gone")),
        }
    }

    /// A row of a statement of the last round.
    fn row(&self, kind: &EntityType, statement: usize, row: usize) -> Result<Row, Failure> {
        let mut values = Row::with_capacity(kind.columns.len());
        for (at, column) in kind.columns.iter().enumerate() {
            let cell = self.answers.cell(statement, row, at);
            let value = sql::read_text(column.kind, self.dialect, cell);
            values.push(value.ok_or_else(|| {
                let text = format!("column \"{}\" has a value of another kind", column.name);
                Failure::Refused(text)
            })?);
        }
        Ok(values)
    }

    /// Notes within a transaction that an entity is there, with this row, or is not.
    fn note(&mut self, place: Place, kind: &EntityType, row: &[Value], is_there: bool) {
        if self.txn.is_some() {
            self.seen.note(place, kind, row, is_there);
        }
    }

    /// Why an entity could not be created: it is there. PostgreSQL says so as well where another
    /// transaction of the same time has made it, and reads would have told why this one must not.
    /// So a transaction that has read something runs again, and is told the second time.
    fn double(&mut self, kind: &EntityType, row: &[Value]) -> Failure {
        let has_read = !self.seen.is_empty();
        let ids = row[..kind.id_count].iter();
        let key = Some(key_of(&kind.name, ids, self.dialect));
        if !has_read || std::mem::replace(&mut self.doubled, key.clone()) == key {
            self.doubled = None;
            return Failure::Exists(named(kind, row));
        }
        Failure::conflict("23505")
    }

    /// Takes the advisory lock of a group, if transactions lock and do not have it: `alone` to see
    /// what is not there, and as one of many to change that.
    fn lock<'a>(
        &mut self,
        kind: &'a EntityType,
        group: impl Iterator<Item = &'a Value>,
        alone: bool,
    ) {
        let advisory = self.session.as_ref().and_then(|session| session.advisory);
        let (Some(locks), Some(txn)) = (advisory, &mut self.txn) else {
            return;
        };
        let key = key_of(&kind.group_name, group, self.dialect);
        let number = hash_of(&key) as i64;
        let has_it = |(one, is_alone): &(i64, bool)| *one == number && (*is_alone || !alone);
        if !txn.locked.iter().any(has_it) {
            txn.locked.push((number, alone));
            let lock = locks[usize::from(alone)];
            self.round.bind(lock).big(number).send();
            match txn.waiting {
                0 => txn.ahead += 1,
                _ => txn.behind += 1,
            }
        }
    }

    /// Whether what is not there yet must be locked by a lock of its own.
    fn has_advisory(&self) -> bool {
        self.locks && self.dialect == Dialect::Postgres
    }
}

impl<R: Reach> SqlStore<R> {
    /// Puts a write into the round that waits for the next one.
    fn wait(&mut self, ready: &Ready, values: &[Value]) {
        // What is behind those that wait must not come between.
        if let Some(txn) = &mut self.txn {
            debug_assert_eq!(txn.behind, 0, "a lock is followed by what it is for");
            txn.waiting += 1;
            txn.has_written = true;
        }
        self.push(ready, values);
    }

    fn has_written(&mut self) {
        if let Some(txn) = &mut self.txn {
            txn.has_written = true;
        }
    }

    /// Reads an entity, as it is now.
    async fn fetch(&mut self, kind: &EntityType, id: &[Value]) -> Result<Option<Row>, Failure> {
        let ready = self.of_kind(kind)?.get.clone();
        self.start()?;
        self.push(&ready, id);
        let at = self.operate().await?;
        let row = (self.answers.rows(at) > 0).then(|| self.row(kind, at, 0));
        row.transpose()
    }

    /// The rows of a statement that reads many, which are noted.
    async fn read_rows(
        &mut self,
        kind: &EntityType,
        ready: &Ready,
        values: &[Value],
    ) -> Result<Vec<Row>, Failure> {
        self.push(ready, values);
        let at = self.operate().await?;
        let mut rows = Vec::with_capacity(self.answers.rows(at));
        for row in 0..self.answers.rows(at) {
            let row = self.row(kind, at, row)?;
            self.note(self.seen.place(kind, &row), kind, &row, true);
            rows.push(row);
        }
        Ok(rows)
    }

    /// No transaction is open any more.
    fn end(&mut self) {
        self.txn = None;
        self.seen.clear();
    }

    /// Rolls back what is open at the server.
    async fn roll_back(&mut self) -> Result<(), Failure> {
        self.round.clear();
        self.end();
        let Some(session) = &mut self.session else {
            return Ok(());
        };
        if session.link.status() == Status::Idle {
            return Ok(());
        }
        self.round.bind(session.rollback).send();
        self.send(Failure::Lost).await.map(drop)
    }

    /// Sends COMMIT, and the stamp of what has written.
    async fn finish(&mut self, stamp: Stamp, has_written: bool) -> Result<(), Failure> {
        let session = self.session()?;
        let (commit, insert, clean) = (session.commit, session.stamp, session.clean);
        if has_written {
            let (client, sequence) = (stamp.client as i64, stamp.sequence as i64);
            self.round.bind(insert).big(client).big(sequence).send();
            if stamp.sequence.is_multiple_of(STAMPS) {
                let below = sequence - STAMPS as i64;
                self.round.bind(clean).big(client).big(below).send();
            }
        }
        self.round.bind(commit).send();
        let broken = match has_written {
            true => Failure::Unknown,
            false => Failure::Lost,
        };
        let (_, is_whole) = match self.send(broken).await {
            // What was read as absent, or a fence.
            Err(Failure::Exists(_)) => return Err(Failure::conflict("23505")),
            sent => sent?,
        };
        committed(&self.answers)?;
        match is_whole {
            true => Ok(()),
            false => Err(Failure::Refused(String::from(
                "the server has committed a change of an entity that had gone since it was read: \
                 its transactions are not serializable",
            ))),
        }
    }
}

impl<R: Reach> EntityDb for SqlStore<R> {
    fn abilities(&self) -> Abilities {
        Abilities {
            several_groups: true,
            ranges_over_groups: true,
            durable: self.is_durable,
            resolves_outcomes: true,
        }
    }

    async fn begin(&mut self, _: Scope<'_>, stamp: Stamp) -> Result<(), Failure> {
        self.connect().await?;
        self.round.clear();
        self.seen.clear();
        self.txn = Some(Txn {
            stamp,
            ..Txn::default()
        });
        Ok(())
    }

    async fn get(&mut self, kind: &EntityType, id: &[Value]) -> Result<Option<Row>, Failure> {
        self.connect_outside().await?;
        let place = self.seen.place(kind, id);
        if let Some(seen) = self.seen.get(place) {
            return Ok(seen);
        }
        let mut row = self.fetch(kind, id).await?;
        if row.is_none() && self.txn.is_some() && self.has_advisory() {
            self.lock(kind, kind.group_of(id), true);
            row = self.fetch(kind, id).await?;
        }
        self.note(place, kind, row.as_deref().unwrap_or(id), row.is_some());
        Ok(row)
    }

    async fn create(&mut self, kind: &EntityType, row: &mut [Value]) -> Result<(), Failure> {
        self.inside()?;
        let ready = self.of_kind(kind)?.create.clone();
        let place = self.seen.place(kind, row);
        let known = self.seen.is_there(place);
        if known == Some(true) {
            return Err(Failure::Exists(named(kind, row)));
        }
        self.start()?;
        if !kind.generates_group() {
            self.lock(kind, kind.group_of(row), false);
        }
        let is_absent = known == Some(false) && kind.generated.is_none();
        let is_free = self.txn.as_ref().is_some_and(|txn| txn.behind == 0);
        if is_absent && is_free {
            self.wait(&ready, row);
            self.note(place, kind, row, true);
            return Ok(());
        }
        self.has_written();
        self.push(&ready, row);
        let at = match self.operate().await {
            Err(Failure::Exists(_)) => return Err(self.double(kind, row)),
            at => at?,
        };
        if let Some(id) = kind.generated {
            let number = self.answers.int(at, 0, 0);
            let number = number.or_else(|| self.answers.given(at));
            let text = || String::from("the server does not tell the generated id");
            row[id] = Value::Int(number.ok_or_else(|| Failure::Refused(text()))?);
        }
        // The generated id is of another place.
        self.note(self.seen.place(kind, row), kind, row, true);
        Ok(())
    }

    async fn update(&mut self, kind: &EntityType, row: &[Value]) -> Result<(), Failure> {
        self.inside()?;
        let ready = self.of_kind(kind)?.update.clone();
        let place = self.seen.place(kind, row);
        if let Some(is_there) = self.seen.is_there(place) {
            let mut others = kind.columns[kind.id_count..].iter();
            if !is_there || others.any(|column| column.immutable) {
                let old = self.seen.get(place).flatten();
                check_immutable(kind, old.as_deref(), row)?;
            }
            self.start()?;
            self.wait(&ready, row);
            self.note(place, kind, row, true);
            return Ok(());
        }
        self.start()?;
        self.has_written();
        self.push(&ready, row);
        let at = self.operate().await?;
        if self.answers.affected(at) == 0 {
            let old = self.fetch(kind, row).await?;
            check_immutable(kind, old.as_deref(), row)?;
            return Err(Failure::conflict("the entity has just come"));
        }
        self.note(place, kind, row, true);
        Ok(())
    }

    async fn delete(&mut self, kind: &EntityType, id: &[Value]) -> Result<(), Failure> {
        self.inside()?;
        let ready = self.of_kind(kind)?.delete.clone();
        self.start()?;
        let place = self.seen.place(kind, id);
        let known = self.seen.is_there(place);
        if known == Some(false) {
            return Err(Failure::Missing(named(kind, id)));
        }
        if known.is_some() && !self.has_advisory() {
            self.wait(&ready, id);
            self.note(place, kind, id, false);
            return Ok(());
        }
        self.lock(kind, kind.group_of(id), false);
        self.has_written();
        self.push(&ready, id);
        let at = self.operate().await?;
        if self.answers.affected(at) == 0 {
            return Err(Failure::Missing(named(kind, id)));
        }
        self.note(place, kind, id, false);
        Ok(())
    }

    async fn by_index(
        &mut self,
        kind: &EntityType,
        index: usize,
        key: &[Value],
    ) -> Result<Vec<Row>, Failure> {
        self.connect_outside().await?;
        let ready = self.of_kind(kind)?.by_index[index].clone();
        self.start()?;
        if kind.is_in_group(index) {
            let columns = &kind.indexes[index].columns;
            let at = |id: &usize| columns.iter().position(|column| column == id);
            let group = kind.group.iter().filter_map(at).map(|at| &key[at]);
            self.lock(kind, group, true);
        }
        self.read_rows(kind, &ready, key).await
    }

    async fn range(&mut self, kind: &EntityType, range: Range<'_>) -> Result<Vec<Row>, Failure> {
        self.connect_outside().await?;
        let ready = self.session()?.range(kind, &range).await?;
        self.start()?;
        let prefix = range.prefix;
        if kind.group.iter().all(|id| *id < prefix.len()) {
            self.lock(kind, kind.group.iter().map(|id| &prefix[*id]), true);
        }
        let mut values = prefix.to_vec();
        values.extend(range.from.cloned());
        values.extend(range.to.cloned());
        values.push(Value::Int(i64::try_from(range.limit).unwrap_or(i64::MAX)));
        self.read_rows(kind, &ready, &values).await
    }

    async fn commit(&mut self) -> Result<(), Failure> {
        let Some(txn) = &self.txn else {
            return Ok(());
        };
        let (stamp, has_begun, has_written) = (txn.stamp, txn.has_begun, txn.has_written);
        let result = match has_begun {
            true => self.finish(stamp, has_written).await,
            false => Ok(()),
        };
        if result.is_err() {
            // What happened at the server is decided; that it is left behind is all.
            let _ = self.roll_back().await;
        }
        self.end();
        result
    }

    async fn abort(&mut self) -> Result<(), Failure> {
        self.roll_back().await
    }

    async fn outcome(&mut self, stamp: Stamp) -> Result<Outcome, Failure> {
        self.roll_back().await?;
        self.connect().await?;
        self.round_trips += 1;
        let link = &mut self.session.as_mut().ok_or_else(gone)?.link;
        let outcome = outcome::<R>(link, stamp, &mut self.answers).await;
        if matches!(outcome, Err(Failure::Lost(_))) {
            self.session = None;
        }
        outcome
    }

    fn round_trips(&self) -> u64 {
        self.round_trips
    }
}

impl<R: Reach> SqlStore<R> {
    /// A write needs a transaction.
    fn inside(&self) -> Result<(), Failure> {
        match self.txn {
            Some(_) => Ok(()),
            None => Err(Failure::Refused(String::from(
                "a write outside of a transaction",
            ))),
        }
    }

    /// A read outside of a transaction opens the connection again, too.
    async fn connect_outside(&mut self) -> Result<(), Failure> {
        if self.txn.is_some() {
            return Ok(());
        }
        self.round.clear();
        self.connect().await
    }
}

//! A client: a connection, its pace and its policy. What workloads are written against.

use crate::db::{Abilities, EntityDb, Failure, Outcome, Range, Scope, Stamp};
use crate::derived::{Entity, Mismatch};
use crate::model::{EntityType, KEY_BYTES_MAX};
use crate::policy::{Pace, Policy};
use crate::value::{Row, Value};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use base::Prng;

/// What the transactions of a client came to since it was made. All are counts, but for `wait_us`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Calls of [`Client::run`] and single operations that write.
    pub runs: u64,
    /// Attempts, the first ones included.
    pub attempts: u64,
    /// Attempts that ended in a conflict.
    pub conflicts: u64,
    /// Runs that were given up with a conflict.
    pub given_up: u64,
    /// Commits whose answer was lost.
    pub unknown: u64,
    /// Of these, found to be committed.
    pub found_committed: u64,
    /// Of these, found not to be committed.
    pub found_not_committed: u64,
    /// Microseconds waited between attempts.
    pub wait_us: u64,
}

/// One client of a store.
///
/// Its operations outside of [`Client::run`] are transactions of their own, and run again after a
/// conflict as the policy says.
#[derive(Debug)]
pub struct Client<D, P> {
    tx: Tx<D>,
    pace: P,
    policy: Policy,
    prng: Prng,
    stamp: Stamp,
    tally: Tally,
}

impl<D: EntityDb, P: Pace> Client<D, P> {
    /// A client with its own name: `client` is not 0 and unique among all clients of the store for
    /// ever. `seed` decides the drawn part of its waits.
    pub fn new(db: D, pace: P, policy: Policy, client: u64, seed: u64) -> Client<D, P> {
        Client {
            tx: Tx::new(db),
            pace,
            policy,
            prng: Prng::new(seed),
            stamp: Stamp {
                client,
                sequence: 0,
            },
            tally: Tally::default(),
        }
    }

    /// The connection, for what no workload does.
    pub fn db(&mut self) -> &mut D {
        &mut self.tx.db
    }

    /// What the store can do.
    pub fn abilities(&self) -> Abilities {
        self.tx.db.abilities()
    }

    /// The pace that the client was made with.
    pub fn pace(&mut self) -> &mut P {
        &mut self.pace
    }

    /// What its transactions came to so far.
    pub fn tally(&self) -> Tally {
        self.tally
    }

    /// Changes when transactions are given up.
    pub fn set_policy(&mut self, policy: Policy) {
        self.policy = policy;
    }

    /// The stamp of the last attempt that wrote or may have written.
    pub fn last_stamp(&self) -> Stamp {
        self.stamp
    }

    /// Requests that travelled to the store and back so far; 0 where nobody counts.
    pub fn round_trips(&self) -> u64 {
        self.tx.db.round_trips()
    }

    /// Runs a task as one transaction, again after each conflict until the policy gives up. A lost
    /// answer is resolved where the store can.
    ///
    /// The task must have no effect but by its handle and its result, since it may run many times.
    ///
    /// # Errors
    /// `Conflict`: given up. `Unknown`: the answer was lost and could not be resolved. All others
    /// end the run at once. Only after `Unknown` may anything have happened.
    pub async fn run<T>(
        &mut self,
        scope: Scope<'_>,
        mut task: impl AsyncFnMut(&mut Tx<D>) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        self.tally.runs += 1;
        let started_us = self.pace.now_us();
        let mut attempts = 0;
        loop {
            attempts += 1;
            let failure = match self.attempt(scope, &mut task).await {
                Ok(value) => return Ok(value),
                Err(Attempt::Failed(failure)) => failure,
                Err(Attempt::Lost(value, failure)) => {
                    self.tally.unknown += 1;
                    match self.resolve(self.stamp).await {
                        Outcome::Committed => return Ok(value),
                        Outcome::NotCommitted => Failure::conflict("answer lost, not committed"),
                        Outcome::Unknown => return Err(failure),
                    }
                }
            };
            if !failure.is_retryable() {
                return Err(failure);
            }
            self.tally.conflicts += 1;
            if !self.waits(attempts, started_us).await {
                self.tally.given_up += 1;
                return Err(failure);
            }
        }
    }

    async fn attempt<T>(
        &mut self,
        scope: Scope<'_>,
        task: &mut impl AsyncFnMut(&mut Tx<D>) -> Result<T, Failure>,
    ) -> Result<T, Attempt<T>> {
        self.tally.attempts += 1;
        self.stamp.sequence += 1;
        self.tx.begin(scope, self.stamp).await?;
        let result = task(&mut self.tx).await;
        let failed = self.tx.failed.take();
        self.tx.held = Held::Outside;
        let value = match (result, failed) {
            (Ok(value), None) => value,
            // A failed operation ends the transaction, whatever the task has made of it.
            (Ok(_), Some(failure)) | (Err(_), Some(failure)) | (Err(failure), None) => {
                // If this fails the connection is lost, and the transaction with it.
                let _ = self.tx.db.abort().await;
                return Err(failure.into());
            }
        };
        match self.tx.db.commit().await {
            Ok(()) => Ok(value),
            Err(failure @ Failure::Unknown(_)) => Err(Attempt::Lost(value, failure)),
            Err(failure) => Err(failure.into()),
        }
    }

    /// Waits before the next attempt. `false`: the policy gives up instead.
    async fn waits(&mut self, attempts: u32, started_us: u64) -> bool {
        if attempts >= self.policy.attempts {
            return false;
        }
        let wait_us = self.policy.back_off.wait_us(attempts, &mut self.prng);
        let gone_us = self.pace.now_us().saturating_sub(started_us);
        if gone_us.saturating_add(wait_us) > self.policy.total_us {
            return false;
        }
        if wait_us > 0 {
            self.tally.wait_us += wait_us;
            self.pace.sleep_us(wait_us).await;
        }
        true
    }

    /// Asks what became of the last commit, as often as the policy allows while the store cannot be
    /// reached. Later, ask again with [`Client::last_stamp`] before the next run.
    pub async fn resolve(&mut self, stamp: Stamp) -> Outcome {
        let started_us = self.pace.now_us();
        let mut attempts = 0;
        loop {
            attempts += 1;
            let outcome = match self.tx.db.outcome(stamp).await {
                Ok(outcome) => outcome,
                Err(Failure::Lost(_) | Failure::Conflict(_)) => {
                    if self.waits(attempts, started_us).await {
                        continue;
                    }
                    Outcome::Unknown
                }
                Err(_) => Outcome::Unknown,
            };
            match outcome {
                Outcome::Committed => self.tally.found_committed += 1,
                Outcome::NotCommitted => self.tally.found_not_committed += 1,
                Outcome::Unknown => {}
            }
            return outcome;
        }
    }

    /// Runs a task on the group of `E` with this key.
    ///
    /// # Errors
    /// As for [`Client::run`].
    pub async fn run_in<E: Entity, T>(
        &mut self,
        group: &E::Group,
        task: impl AsyncFnMut(&mut Tx<D>) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let key = E::group_values(group);
        let scope = Scope::Group(&E::TYPE.group_name, key.as_ref());
        self.run(scope, task).await
    }

    /// The entity of an id.
    ///
    /// # Errors
    /// As for [`EntityDb::get`]; `Refused` when the row does not fit the struct.
    pub async fn get<E: Entity>(&mut self, id: &E::Id) -> Result<Option<E>, Failure> {
        let row = self.get_row(E::TYPE, E::id_values(id).as_ref()).await?;
        row.map(|row| E::from_row(row).map_err(mismatch))
            .transpose()
    }

    /// Creates an entity, and sets its generated id.
    ///
    /// # Errors
    /// As for [`EntityDb::create`].
    pub async fn create<E: Entity>(&mut self, entity: &mut E) -> Result<(), Failure> {
        let mut row = entity.row();
        self.create_row(E::TYPE, &mut row).await?;
        entity.take_generated(&row).map_err(mismatch)
    }

    /// Sets all mutable columns of an entity.
    ///
    /// # Errors
    /// As for [`EntityDb::update`].
    pub async fn update<E: Entity>(&mut self, entity: &E) -> Result<(), Failure> {
        self.update_row(E::TYPE, &entity.row()).await
    }

    /// Deletes an entity.
    ///
    /// # Errors
    /// As for [`EntityDb::delete`].
    pub async fn delete<E: Entity>(&mut self, id: &E::Id) -> Result<(), Failure> {
        self.delete_row(E::TYPE, E::id_values(id).as_ref()).await
    }

    /// The entities with this key in the index of this name, ordered by id.
    ///
    /// # Errors
    /// As for [`EntityDb::by_index`]; `Refused` for a name that the type lacks.
    pub async fn by_index<E: Entity>(
        &mut self,
        index: &str,
        key: &[Value],
    ) -> Result<Vec<E>, Failure> {
        let position = index_position(E::TYPE, index)?;
        let rows = self.rows_by_index(E::TYPE, position, key).await?;
        entities(rows)
    }

    /// The entities in a range of ids, ordered by id.
    ///
    /// # Errors
    /// As for [`EntityDb::range`].
    pub async fn range<E: Entity>(&mut self, range: Range<'_>) -> Result<Vec<E>, Failure> {
        entities(self.rows_in_range(E::TYPE, range).await?)
    }

    /// [`Client::get`] for a type that is known at run time only.
    ///
    /// # Errors
    /// As for [`EntityDb::get`].
    pub async fn get_row(
        &mut self,
        kind: &EntityType,
        id: &[Value],
    ) -> Result<Option<Row>, Failure> {
        kind.check_id(id, true).map_err(Failure::Refused)?;
        let started_us = self.pace.now_us();
        let mut attempts = 0;
        loop {
            attempts += 1;
            let result = self.tx.db.get(kind, id).await;
            match self.read(result, attempts, started_us).await {
                Some(result) => return result,
                None => continue,
            }
        }
    }

    /// [`Client::by_index`] for a type that is known at run time only; the index by its position.
    ///
    /// # Errors
    /// As for [`EntityDb::by_index`].
    pub async fn rows_by_index(
        &mut self,
        kind: &EntityType,
        index: usize,
        key: &[Value],
    ) -> Result<Vec<Row>, Failure> {
        kind.check_key(index, key).map_err(Failure::Refused)?;
        let started_us = self.pace.now_us();
        let mut attempts = 0;
        loop {
            attempts += 1;
            let result = self.tx.db.by_index(kind, index, key).await;
            match self.read(result, attempts, started_us).await {
                Some(result) => return result,
                None => continue,
            }
        }
    }

    /// [`Client::range`] for a type that is known at run time only.
    ///
    /// # Errors
    /// As for [`EntityDb::range`].
    pub async fn rows_in_range(
        &mut self,
        kind: &EntityType,
        range: Range<'_>,
    ) -> Result<Vec<Row>, Failure> {
        check_range(kind, &range)?;
        let started_us = self.pace.now_us();
        let mut attempts = 0;
        loop {
            attempts += 1;
            let result = self.tx.db.range(kind, range).await;
            match self.read(result, attempts, started_us).await {
                Some(result) => return result,
                None => continue,
            }
        }
    }

    /// The result of a single read; `None`: it is to be asked again.
    async fn read<T>(
        &mut self,
        result: Result<T, Failure>,
        attempts: u32,
        started_us: u64,
    ) -> Option<Result<T, Failure>> {
        match result {
            Err(failure) if failure.is_retryable() => {
                self.tally.conflicts += 1;
                let waited = self.waits(attempts, started_us).await;
                (!waited).then_some(Err(failure))
            }
            result => Some(result),
        }
    }

    /// [`Client::create`] for a type that is known at run time only.
    ///
    /// # Errors
    /// As for [`EntityDb::create`].
    pub async fn create_row(&mut self, kind: &EntityType, row: &mut Row) -> Result<(), Failure> {
        let generated = kind.generated.filter(|&id| id < row.len());
        let given = generated.map(|id| row[id].clone());
        self.run(Scope::New, async |tx| {
            if let (Some(id), Some(given)) = (generated, &given) {
                row[id].clone_from(given);
            }
            tx.create_row(kind, row).await
        })
        .await
    }

    /// [`Client::update`] for a type that is known at run time only.
    ///
    /// # Errors
    /// As for [`EntityDb::update`].
    pub async fn update_row(&mut self, kind: &EntityType, row: &[Value]) -> Result<(), Failure> {
        kind.check_row(row).map_err(Failure::Refused)?;
        let group: Row = kind.group_of(row).cloned().collect();
        let scope = Scope::Group(&kind.group_name, &group);
        self.run(scope, async |tx| tx.update_row(kind, row).await)
            .await
    }

    /// [`Client::delete`] for a type that is known at run time only.
    ///
    /// # Errors
    /// As for [`EntityDb::delete`].
    pub async fn delete_row(&mut self, kind: &EntityType, id: &[Value]) -> Result<(), Failure> {
        kind.check_id(id, true).map_err(Failure::Refused)?;
        let group: Row = kind.group_of(id).cloned().collect();
        let scope = Scope::Group(&kind.group_name, &group);
        self.run(scope, async |tx| tx.delete_row(kind, id).await)
            .await
    }
}

/// How an attempt did not end well.
enum Attempt<T> {
    Failed(Failure),
    /// The answer to the commit was lost; what the task returned.
    Lost(T, Failure),
}

impl<T> From<Failure> for Attempt<T> {
    fn from(failure: Failure) -> Attempt<T> {
        Attempt::Failed(failure)
    }
}

/// Which group the transaction is held to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Held {
    Outside,
    Group,
    New,
    Several,
}

/// The handle of a transaction: what a task works with.
///
/// An operation that fails ends the transaction: all further ones fail in the same way, and nothing
/// of it happens, whatever the task returns.
#[derive(Debug)]
pub struct Tx<D> {
    db: D,
    held: Held,
    group_name: String,
    group: Row,
    failed: Option<Failure>,
    /// The row of the last update, whose memory the next one uses.
    row: Row,
}

impl<D: EntityDb> Tx<D> {
    fn new(db: D) -> Tx<D> {
        Tx {
            db,
            held: Held::Outside,
            group_name: String::new(),
            group: Row::new(),
            failed: None,
            row: Row::new(),
        }
    }

    async fn begin(&mut self, scope: Scope<'_>, stamp: Stamp) -> Result<(), Failure> {
        self.failed = None;
        self.held = match scope {
            Scope::Group(name, key) => {
                let is_key = |value: &Value| !matches!(value, Value::Null | Value::Real(_));
                if !key.iter().all(is_key) {
                    let words = format!("a group \"{name}\" has no such key");
                    return Err(Failure::Refused(words));
                }
                self.hold(name, key.iter());
                Held::Group
            }
            Scope::New => Held::New,
            Scope::Several => {
                if !self.db.abilities().several_groups {
                    return Err(Failure::Refused(
                        "the store has no transactions on several groups".to_string(),
                    ));
                }
                Held::Several
            }
        };
        self.db.begin(scope, stamp).await
    }

    fn hold<'a>(&mut self, name: &str, key: impl Iterator<Item = &'a Value>) {
        self.group_name.clear();
        self.group_name.push_str(name);
        self.group.clear();
        self.group.extend(key.cloned());
    }

    /// Whether the ids are of the transaction's group.
    fn check_group(&self, kind: &EntityType, id: &[Value]) -> Result<(), Failure> {
        match self.held {
            Held::Several => return Ok(()),
            Held::Outside | Held::New => {}
            Held::Group => {
                let has_group = kind.group.iter().all(|&position| position < id.len());
                if has_group
                    && kind.group_name == self.group_name
                    && kind.group_of(id).eq(self.group.iter())
                {
                    return Ok(());
                }
            }
        }
        let problem = match self.held {
            Held::New => "before the transaction has created the first entity of its group",
            Held::Outside | Held::Group | Held::Several => "outside of the transaction's group",
        };
        let ids: Vec<String> = id.iter().map(ToString::to_string).collect();
        Err(Failure::Refused(format!(
            "entity \"{}\" ({}) is {problem}",
            kind.name,
            ids.join(", ")
        )))
    }

    fn checked<T>(&mut self, result: Result<T, Failure>) -> Result<T, Failure> {
        if let Err(failure) = &result {
            self.failed.get_or_insert_with(|| failure.clone());
        }
        result
    }

    /// Whether no operation has failed, and the values are of the right kinds.
    fn checks(&mut self, check: Result<(), String>) -> Result<(), Failure> {
        if let Some(failure) = &self.failed {
            return Err(failure.clone());
        }
        self.checked(check.map_err(Failure::Refused))
    }

    /// The entity of an id.
    ///
    /// # Errors
    /// As for [`EntityDb::get`]; `Refused` outside of the group.
    pub async fn get<E: Entity>(&mut self, id: &E::Id) -> Result<Option<E>, Failure> {
        let row = self.get_row(E::TYPE, E::id_values(id).as_ref()).await?;
        let entity = row
            .map(|row| E::from_row(row).map_err(mismatch))
            .transpose();
        self.checked(entity)
    }

    /// Creates an entity, and sets its generated id.
    ///
    /// # Errors
    /// As for [`EntityDb::create`]; `Refused` outside of the group.
    pub async fn create<E: Entity>(&mut self, entity: &mut E) -> Result<(), Failure> {
        let mut row = entity.row();
        self.create_row(E::TYPE, &mut row).await?;
        let taken = entity.take_generated(&row).map_err(mismatch);
        self.checked(taken)
    }

    /// Sets all mutable columns of an entity.
    ///
    /// # Errors
    /// As for [`EntityDb::update`]; `Refused` outside of the group.
    pub async fn update<E: Entity>(&mut self, entity: &E) -> Result<(), Failure> {
        let mut row = core::mem::take(&mut self.row);
        entity.write(&mut row);
        let updated = self.update_row(E::TYPE, &row).await;
        self.row = row;
        updated
    }

    /// Deletes an entity.
    ///
    /// # Errors
    /// As for [`EntityDb::delete`]; `Refused` outside of the group.
    pub async fn delete<E: Entity>(&mut self, id: &E::Id) -> Result<(), Failure> {
        self.delete_row(E::TYPE, E::id_values(id).as_ref()).await
    }

    /// The entities with this key in the index of this name, ordered by id. One outside of the
    /// group is refused in a transaction on one group: it is no part of the isolation.
    ///
    /// # Errors
    /// As for [`EntityDb::by_index`]; `Refused` outside of the group.
    pub async fn by_index<E: Entity>(
        &mut self,
        index: &str,
        key: &[Value],
    ) -> Result<Vec<E>, Failure> {
        let position = index_position(E::TYPE, index);
        let position = self.checked(position)?;
        let rows = self.rows_by_index(E::TYPE, position, key).await?;
        self.checked(entities(rows))
    }

    /// The entities in a range of ids, ordered by id.
    ///
    /// # Errors
    /// As for [`EntityDb::range`]; `Refused` outside of the group.
    pub async fn range<E: Entity>(&mut self, range: Range<'_>) -> Result<Vec<E>, Failure> {
        let rows = self.rows_in_range(E::TYPE, range).await?;
        self.checked(entities(rows))
    }

    /// [`Tx::get`] for a type that is known at run time only.
    ///
    /// # Errors
    /// As for [`Tx::get`].
    pub async fn get_row(
        &mut self,
        kind: &EntityType,
        id: &[Value],
    ) -> Result<Option<Row>, Failure> {
        self.checks(kind.check_id(id, true))?;
        self.checked(self.check_group(kind, id))?;
        let row = self.db.get(kind, id).await;
        self.checked(row)
    }

    /// [`Tx::create`] for a type that is known at run time only. A generated id must be null or 0.
    ///
    /// # Errors
    /// As for [`Tx::create`].
    pub async fn create_row(&mut self, kind: &EntityType, row: &mut Row) -> Result<(), Failure> {
        let set = kind.generated.filter(|&id| id < row.len());
        if let Some(id) = set {
            if row[id] == Value::Null {
                row[id] = Value::Int(0);
            }
            if row[id] != Value::Int(0) {
                let words = format!(
                    "the id \"{}\" of type \"{}\" is generated, and must be 0 at creation",
                    kind.columns[id].name, kind.name
                );
                return self.checked(Err(Failure::Refused(words)));
            }
        }
        self.checks(kind.check_row(row))?;
        let is_first = self.held == Held::New;
        if !is_first {
            let known = if kind.generates_group() && self.held == Held::Group {
                let words = format!(
                    "the group of type \"{}\" is generated: create it in a transaction on a new \
                     group",
                    kind.name
                );
                Err(Failure::Refused(words))
            } else {
                self.check_group(kind, row)
            };
            self.checked(known)?;
        }
        let created = self.db.create(kind, row).await;
        self.checked(created)?;
        if is_first {
            self.hold(&kind.group_name, kind.group_of(row));
            self.held = Held::Group;
        }
        Ok(())
    }

    /// [`Tx::update`] for a type that is known at run time only.
    ///
    /// # Errors
    /// As for [`Tx::update`].
    pub async fn update_row(&mut self, kind: &EntityType, row: &[Value]) -> Result<(), Failure> {
        self.checks(kind.check_row(row))?;
        self.checked(self.check_group(kind, row))?;
        let updated = self.db.update(kind, row).await;
        self.checked(updated)
    }

    /// [`Tx::delete`] for a type that is known at run time only.
    ///
    /// # Errors
    /// As for [`Tx::delete`].
    pub async fn delete_row(&mut self, kind: &EntityType, id: &[Value]) -> Result<(), Failure> {
        self.checks(kind.check_id(id, true))?;
        self.checked(self.check_group(kind, id))?;
        let deleted = self.db.delete(kind, id).await;
        self.checked(deleted)
    }

    /// [`Tx::by_index`] for a type that is known at run time only; the index by its position.
    ///
    /// # Errors
    /// As for [`Tx::by_index`].
    pub async fn rows_by_index(
        &mut self,
        kind: &EntityType,
        index: usize,
        key: &[Value],
    ) -> Result<Vec<Row>, Failure> {
        self.checks(kind.check_key(index, key))?;
        if self.held != Held::Several {
            let inside = self.check_index(kind, index, key);
            self.checked(inside)?;
        }
        let rows = self.db.by_index(kind, index, key).await;
        self.checked(rows)
    }

    fn check_index(&self, kind: &EntityType, index: usize, key: &[Value]) -> Result<(), Failure> {
        let columns = &kind.indexes[index].columns;
        let at = |id: &usize| columns.iter().position(|column| column == id);
        let of_group: Option<Vec<&Value>> = kind
            .group
            .iter()
            .map(|id| at(id).map(|at| &key[at]))
            .collect();
        let is_inside = self.held == Held::Group
            && kind.group_name == self.group_name
            && of_group.is_some_and(|values| values.into_iter().eq(self.group.iter()));
        if is_inside {
            return Ok(());
        }
        Err(Failure::Refused(format!(
            "index \"{}\" of type \"{}\" is outside of the transaction's group",
            kind.indexes[index].name, kind.name
        )))
    }

    /// [`Tx::range`] for a type that is known at run time only.
    ///
    /// # Errors
    /// As for [`Tx::range`].
    pub async fn rows_in_range(
        &mut self,
        kind: &EntityType,
        range: Range<'_>,
    ) -> Result<Vec<Row>, Failure> {
        self.checks(Ok(()))?;
        self.checked(check_range(kind, &range))?;
        self.checked(self.check_group(kind, range.prefix))?;
        let rows = self.db.range(kind, range).await;
        self.checked(rows)
    }
}

fn check_range(kind: &EntityType, range: &Range<'_>) -> Result<(), Failure> {
    kind.check_id(range.prefix, false)
        .map_err(Failure::Refused)?;
    let next = kind.ids().get(range.prefix.len());
    for bound in [range.from, range.to].into_iter().flatten() {
        let is_long = |text: &str| text.len() > KEY_BYTES_MAX;
        if next.is_none_or(|column| bound.kind() != Some(column.kind))
            || bound.as_text().is_some_and(is_long)
        {
            return Err(Failure::Refused(format!(
                "{bound} cannot bound a range of type \"{}\" after {} ids",
                kind.name,
                range.prefix.len()
            )));
        }
    }
    if range.limit == 0 {
        let words = format!("a range of type \"{}\" has the limit 0", kind.name);
        return Err(Failure::Refused(words));
    }
    Ok(())
}

fn index_position(kind: &EntityType, name: &str) -> Result<usize, Failure> {
    kind.index_of(name)
        .ok_or_else(|| Failure::Refused(format!("type \"{}\" has no index \"{name}\"", kind.name)))
}

fn entities<E: Entity>(rows: Vec<Row>) -> Result<Vec<E>, Failure> {
    rows.into_iter()
        .map(|row| E::from_row(row).map_err(mismatch))
        .collect()
}

fn mismatch(mismatch: Mismatch) -> Failure {
    Failure::Refused(mismatch.to_string())
}

//! Tables on several databases that know nothing of each other: each group is on one of them.
//!
//! The client sends a transaction to the database of its group. That follows from a hash of the
//! group's key; or from the generated id in it, where there is one: each database generates other
//! numbers. Indexes outside of a group and ranges over groups are asked of all databases, one
//! after the other: what they return is of several states.

use crate::mapping::server_of;
use crate::spread::Last;
use crate::sql::says::key_of;
use crate::sql::{Network, dialect_of};
use crate::tables::SqlStore;
use entity::Value;
use entity::sql::{self, Dialect};
use entity::{Abilities, EntityDb, EntityType, Failure, Outcome, Range, Row, Schema, Scope, Stamp};
use links::url::Target;
use std::cmp::Ordering;
use std::sync::Arc;
use std::time::Duration;

/// One client's connections to several databases.
#[derive(Debug)]
pub struct RoutedStore {
    servers: Vec<SqlStore>,
    schema: Arc<Schema>,
    state: State,
    stamp: Stamp,
    /// The database of the next group whose key is generated.
    next: usize,
    /// The database of the last commit.
    last: Last,
}

/// Where the open transaction is.
#[derive(Clone, Copy, Debug)]
enum State {
    /// None is open.
    Outside,
    /// The group is not known yet.
    New,
    /// On this database.
    At(usize),
}

/// Statements behind those that make the tables of one of `count` databases: the ids that name
/// groups are generated `count` apart.
pub fn setup(schema: &Schema, dialect: Dialect, server: usize, count: usize) -> Vec<String> {
    let types = schema.types().iter();
    let of_groups = types.filter(|kind| kind.generates_group() && dialect == Dialect::Postgres);
    let texts = of_groups.filter_map(|kind| {
        let column = &kind.columns[kind.generated?];
        Some(format!(
            "ALTER TABLE {} ALTER COLUMN {} SET INCREMENT BY {count} RESTART WITH {}",
            sql::quoted(&kind.name, dialect),
            sql::quoted(&column.name, dialect),
            server + 1
        ))
    });
    texts.collect()
}

/// The order of ids.
fn by_id(a: &Row, b: &Row) -> Ordering {
    let pairs = a.iter().zip(b).map(|pair| match pair {
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::Int(a), Value::Int(b)) => a.cmp(b),
        (Value::Text(a), Value::Text(b)) => a.cmp(b),
        (Value::Bytes(a), Value::Bytes(b)) => a.cmp(b),
        // Ids are not null, no real numbers, and of one kind.
        _ => Ordering::Equal,
    });
    pairs.fold(Ordering::Equal, Ordering::then)
}

impl RoutedStore {
    /// Connects to each of the databases, in the order of all clients. `first` says on which one
    /// this client makes its first group with a generated key.
    ///
    /// # Errors
    /// `Lost`; `Refused`, if the tables are not there.
    pub async fn open(
        targets: Vec<Target>,
        schema: Arc<Schema>,
        locks: bool,
        timeout: Duration,
        first: usize,
    ) -> Result<RoutedStore, Failure> {
        let (mut servers, count) = (Vec::new(), targets.len());
        for (server, target) in targets.into_iter().enumerate() {
            let dialect = dialect_of(&target);
            let mut network = Network::new(target, timeout, 0);
            if dialect == Dialect::MySql {
                let numbers = format!(
                    "SET SESSION auto_increment_increment = {count}, auto_increment_offset = {}",
                    server + 1
                );
                network = network.begin_with(numbers);
            }
            servers.push(SqlStore::open(network, schema.clone(), locks).await?);
        }
        Ok(RoutedStore {
            servers,
            schema,
            state: State::Outside,
            stamp: Stamp::default(),
            next: first,
            last: Last::default(),
        })
    }

    /// The database of a group.
    fn route<'a>(&self, name: &str, values: impl Iterator<Item = &'a Value>) -> usize {
        let mut kinds = self.schema.types().iter();
        let root = kinds.find(|kind| kind.group_name == name && kind.generates_group());
        let of_group = |id: &usize| root.is_some_and(|kind| kind.generated == Some(*id));
        let at = root.and_then(|kind| kind.group.iter().position(of_group));
        let values: Vec<&Value> = values.collect();
        if let Some(Value::Int(number)) = at.and_then(|at| values.get(at)) {
            return number.wrapping_sub(1).rem_euclid(self.servers.len() as i64) as usize;
        }
        let key = key_of(name, values.into_iter(), Dialect::Postgres);
        server_of(&key, self.servers.len())
    }

    fn server_of_id(&self, kind: &EntityType, id: &[Value]) -> usize {
        match self.state {
            State::At(server) => server,
            State::Outside | State::New => self.route(&kind.group_name, kind.group_of(id)),
        }
    }

    /// The database on which the transaction is.
    fn inside(&mut self) -> Result<&mut SqlStore, Failure> {
        match self.state {
            State::At(server) => Ok(&mut self.servers[server]),
            State::Outside | State::New => Err(Failure::Refused(String::from(
                "a write outside of a transaction on one group",
            ))),
        }
    }
}

impl EntityDb for RoutedStore {
    fn abilities(&self) -> Abilities {
        let mut each = self.servers.iter().map(EntityDb::abilities);
        Abilities {
            several_groups: false,
            ranges_over_groups: true,
            durable: each.all(|abilities| abilities.durable),
            resolves_outcomes: true,
        }
    }

    async fn begin(&mut self, scope: Scope<'_>, stamp: Stamp) -> Result<(), Failure> {
        self.stamp = stamp;
        match scope {
            Scope::Group(name, values) => {
                let server = self.route(name, values.iter());
                self.state = State::At(server);
                self.servers[server].begin(scope, stamp).await
            }
            Scope::New => {
                self.state = State::New;
                Ok(())
            }
            Scope::Several => Err(Failure::Refused(String::from(
                "several databases have no transactions on several groups",
            ))),
        }
    }

    async fn get(&mut self, kind: &EntityType, id: &[Value]) -> Result<Option<Row>, Failure> {
        let server = self.server_of_id(kind, id);
        self.servers[server].get(kind, id).await
    }

    async fn create(&mut self, kind: &EntityType, row: &mut [Value]) -> Result<(), Failure> {
        if let State::New = self.state {
            let server = match kind.generates_group() {
                true => {
                    self.next += 1;
                    self.next % self.servers.len()
                }
                false => self.server_of_id(kind, row),
            };
            self.state = State::At(server);
            self.servers[server].begin(Scope::New, self.stamp).await?;
        }
        self.inside()?.create(kind, row).await?;
        let State::At(server) = self.state else {
            return Ok(());
        };
        match self.route(&kind.group_name, kind.group_of(row)) == server {
            true => Ok(()),
            false => Err(Failure::Refused(String::from(
                "a database has generated the number of another one: the tables were made for \
                 another number of databases",
            ))),
        }
    }

    async fn update(&mut self, kind: &EntityType, row: &[Value]) -> Result<(), Failure> {
        self.inside()?.update(kind, row).await
    }

    async fn delete(&mut self, kind: &EntityType, id: &[Value]) -> Result<(), Failure> {
        self.inside()?.delete(kind, id).await
    }

    async fn by_index(
        &mut self,
        kind: &EntityType,
        index: usize,
        key: &[Value],
    ) -> Result<Vec<Row>, Failure> {
        if let State::At(server) = self.state {
            return self.servers[server].by_index(kind, index, key).await;
        }
        let columns = &kind.indexes[index].columns;
        let at = |id: &usize| columns.iter().position(|column| column == id);
        let group: Option<Vec<&Value>> = kind.group.iter().map(|id| Some(&key[at(id)?])).collect();
        if let Some(group) = group {
            let server = self.route(&kind.group_name, group.into_iter());
            return self.servers[server].by_index(kind, index, key).await;
        }
        let mut rows = Vec::new();
        for server in &mut self.servers {
            rows.append(&mut server.by_index(kind, index, key).await?);
        }
        rows.sort_by(by_id);
        Ok(rows)
    }

    async fn range(&mut self, kind: &EntityType, range: Range<'_>) -> Result<Vec<Row>, Failure> {
        if let State::At(server) = self.state {
            return self.servers[server].range(kind, range).await;
        }
        if kind.group.iter().all(|id| *id < range.prefix.len()) {
            let server = self.server_of_id(kind, range.prefix);
            return self.servers[server].range(kind, range).await;
        }
        let mut rows = Vec::new();
        for server in &mut self.servers {
            rows.append(&mut server.range(kind, range).await?);
        }
        rows.sort_by(by_id);
        rows.truncate(range.limit);
        Ok(rows)
    }

    async fn commit(&mut self) -> Result<(), Failure> {
        let state = std::mem::replace(&mut self.state, State::Outside);
        let State::At(server) = state else {
            return Ok(());
        };
        self.last.note(Some(self.stamp), server);
        self.servers[server].commit().await
    }

    async fn abort(&mut self) -> Result<(), Failure> {
        let state = std::mem::replace(&mut self.state, State::Outside);
        match state {
            State::At(server) => self.servers[server].abort().await,
            State::Outside | State::New => Ok(()),
        }
    }

    async fn outcome(&mut self, stamp: Stamp) -> Result<Outcome, Failure> {
        for server in self.last.servers(stamp, self.servers.len()) {
            match self.servers[server].outcome(stamp).await? {
                Outcome::NotCommitted => {}
                outcome => return Ok(outcome),
            }
        }
        Ok(Outcome::NotCommitted)
    }

    fn round_trips(&self) -> u64 {
        self.servers.iter().map(EntityDb::round_trips).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_ordered_by_their_values() {
        let row = |number, text: &str| vec![Value::Int(number), Value::from(text), Value::Null];
        assert_eq!(by_id(&row(-1, "b"), &row(1, "a")), Ordering::Less);
        assert_eq!(by_id(&row(1, "b"), &row(1, "a")), Ordering::Greater);
        assert_eq!(by_id(&row(1, "a"), &row(1, "a")), Ordering::Equal);
    }
}

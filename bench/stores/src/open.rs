//! A store by its URL, and the clients of it.

use crate::cassandra::{self, CassandraGroups};
use crate::etcd::{self, EtcdStore};
use crate::grouped::{Cells, Grouped, Rows};
use crate::hbase::HBaseGroups;
use crate::mapping::{Kind, Mapping};
use crate::mongo::MongoGroups;
use crate::packed_sql::{self, PackedStore};
use crate::redis::{self, RedisStore};
use crate::routed::{self, RoutedStore};
use crate::spread::{Spread, each_server};
use crate::sql::{self, Network};
use crate::tables::SqlStore;
use entity::kv::{Layer, Packed, Settings, TransactionalKv};
use entity::memory::{self, Loss, Memory};
use entity::{Abilities, EntityDb, EntityType, Failure, Outcome, Range, Row, Schema, Scope, Stamp};
use entity::{Value, sql as text};
use links::link::Link;
use links::server::Server;
use links::url::{Target, Wire};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How a store is used.
#[derive(Clone, Debug)]
pub struct Options {
    /// How entities lie there ([`Mapping`]); `None`: as the store's first mapping says.
    pub mapping: Option<String>,
    /// How long a client waits for an answer, and for a connection.
    pub timeout: Duration,
    /// Whether an entity with an index or a counter outside of its group is created in one
    /// transaction where a key-value store can do that, and not in the three of the paper.
    pub fold: bool,
}

impl Default for Options {
    /// The store's first mapping, half a minute, in one transaction.
    fn default() -> Options {
        Options {
            mapping: None,
            timeout: Duration::from_secs(30),
            fold: true,
        }
    }
}

/// A store that clients can connect to. Several servers in a URL of a key-value store have each a
/// part of the groups; in one of SQL they are nodes of one database, unless it ends with
/// `?route=group`.
#[derive(Clone, Debug)]
pub struct Store {
    kind: Kind,
    mapping: Mapping,
    /// Of a store in memory: no endpoint.
    target: Target,
    /// Of SQL: one for each database that has a part of the groups.
    databases: Vec<Target>,
    memory: InMemory,
    schema: Arc<Schema>,
    options: Options,
}

/// A store in memory that clients on several threads share.
#[derive(Clone, Debug, Default)]
pub struct InMemory(Arc<Mutex<Memory>>);

impl memory::Shared for InMemory {
    fn with<T>(&self, f: impl FnOnce(&mut Memory) -> T) -> T {
        f(&mut links::lock(&self.0))
    }
}

/// What a store is, for a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// Product and release, such as `Redis 7.0.15`.
    pub product: String,
    /// The name of its mapping.
    pub mapping: &'static str,
    /// Whether what was acknowledged survives a crash, as the server says.
    pub is_durable: bool,
    /// Servers in the URL; 0: it is in memory.
    pub servers: usize,
}

impl Store {
    /// Reads a URL: `memory:`, or one with the scheme of a [`Kind`]. Nothing is connected yet. Each
    /// store in memory is one of its own, which its clones share.
    ///
    /// # Errors
    /// `Refused`, in words: a URL that cannot be read, a mapping that the store cannot do, a part
    /// of the URL that has no meaning there.
    pub fn open(url: &str, options: Options, schema: Arc<Schema>) -> Result<Store, Failure> {
        let is_memory = matches!(url, "memory:" | "memory://");
        let (url, is_routed) = routing(url);
        let parsed = match is_memory {
            true => Target::parse("etcd://"),
            false => Target::parse(&url),
        };
        let target = parsed.map_err(|error| Failure::Refused(error.to_string()))?;
        let kind = match target.wire {
            _ if is_memory => Kind::Memory,
            Wire::Postgres => Kind::Postgres,
            Wire::MySql => Kind::MySql,
            Wire::Redis => Kind::Redis,
            Wire::Etcd => Kind::Etcd,
            Wire::Cassandra => Kind::Cassandra,
            Wire::HBase => Kind::HBase,
            Wire::Mongo => Kind::Mongo,
        };
        let mapping = kind.mapping(options.mapping.as_deref());
        let mapping = mapping.map_err(Failure::Refused)?;
        let refuse = |what: &str| {
            let text = format!("{} has no {what}: leave it out of the URL", kind.name());
            Err(Failure::Refused(text))
        };
        if matches!(kind, Kind::Redis | Kind::Etcd) {
            if !target.database.is_empty() {
                return refuse("database here");
            }
            if !matches!(target.user.as_str(), "" | "default") {
                return refuse("user here");
            }
        }
        if matches!(kind, Kind::HBase | Kind::Mongo) && !target.user.is_empty() {
            return refuse("user here");
        }
        if matches!(kind, Kind::Etcd | Kind::HBase | Kind::Mongo) && target.password.is_some() {
            return refuse("password here");
        }
        if is_routed && !matches!(kind, Kind::Postgres | Kind::MySql) {
            return refuse("route=group: its servers have each a part of the groups anyway");
        }
        let databases = match is_routed {
            false => vec![target.clone()],
            true => each_server(&target).collect(),
        };
        Ok(Store {
            kind,
            mapping,
            target,
            databases,
            memory: InMemory::default(),
            schema,
            options,
        })
    }

    /// What the URL says it is.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// How entities lie there.
    pub fn mapping(&self) -> Mapping {
        self.mapping
    }

    /// Makes the store empty: of SQL the tables of the schema are made again, so are those of
    /// Cassandra and HBase; of another key-value store all keys are deleted, also those of others.
    ///
    /// # Errors
    /// `Lost`, `Refused`.
    pub async fn reset(&self) -> Result<(), Failure> {
        match self.kind {
            Kind::Memory => {
                *links::lock(&self.memory.0) = Memory::new();
                Ok(())
            }
            Kind::Redis => self.redis(1).await?.clear().await,
            Kind::Etcd => self.etcd().clear().await,
            Kind::Cassandra => self.cassandra(1).await?.clear().await,
            Kind::HBase => self.hbase(1)?.clear().await,
            Kind::Mongo => {
                for mut server in self.mongo().await? {
                    server.clear().await?;
                }
                Ok(())
            }
            Kind::Postgres | Kind::MySql => {
                (0..self.databases.len()).try_for_each(|database| self.reset_database(database))
            }
        }
    }

    /// Makes the tables of a database again.
    fn reset_database(&self, database: usize) -> Result<(), Failure> {
        let target = &self.databases[database];
        let dialect = sql::dialect_of(target);
        let link = Link::connect_any(target, Some(self.options.timeout));
        let mut link = link.map_err(|error| sql::failure_of_link(&error))?;
        let mut texts = text::drop_tables(&self.schema, dialect);
        match self.mapping {
            Mapping::Packed | Mapping::PackedLock => texts.extend(packed_sql::setup(dialect)),
            _ => texts.extend(text::create_tables(&self.schema, dialect)),
        }
        let count = self.databases.len();
        if count > 1 && !self.is_packed() {
            texts.extend(routed::setup(&self.schema, dialect, database, count));
        }
        for text in texts {
            let done = link.command(&text);
            done.map_err(|error| sql::failure_of_link(&error))?;
        }
        link.close();
        Ok(())
    }

    /// Whether a group is one record of the store.
    fn is_packed(&self) -> bool {
        matches!(self.mapping, Mapping::Packed | Mapping::PackedLock)
    }

    /// A client's connection. `client` is not 0, and no other client's ever.
    ///
    /// # Errors
    /// `Lost`; `Refused`, such as for tables that are not there.
    pub async fn connect(&self, client: u64) -> Result<Db, Failure> {
        let settings = Settings {
            fold: self.options.fold,
            ..Settings::default()
        };
        Ok(match self.kind {
            Kind::Memory if self.mapping == Mapping::Packed => {
                let cells = memory::Cells::new(self.memory.clone());
                Db::Cells(Box::new(Layer::new(Packed::new(cells), settings)))
            }
            Kind::Memory => {
                let records = memory::Client::new(self.memory.clone());
                Db::Memory(Box::new(Layer::new(records, settings)))
            }
            Kind::Redis => {
                let redis = self.redis(client).await?;
                Db::Redis(Box::new(Layer::new(redis, settings)))
            }
            Kind::Etcd => Db::Etcd(Box::new(Layer::new(self.etcd(), settings))),
            Kind::Cassandra => {
                let groups = self.cassandra(client).await?;
                match self.mapping {
                    Mapping::Rows => {
                        Db::CassandraRows(Box::new(Layer::new(Rows::new(groups), settings)))
                    }
                    _ => {
                        let packed = Packed::new(Cells::new(groups));
                        Db::CassandraCells(Box::new(Layer::new(packed, settings)))
                    }
                }
            }
            Kind::HBase => {
                let groups = self.hbase(client)?;
                match self.mapping {
                    Mapping::Rows => {
                        Db::HBaseRows(Box::new(Layer::new(Rows::new(groups), settings)))
                    }
                    _ => {
                        let packed = Packed::new(Cells::new(groups));
                        Db::HBaseCells(Box::new(Layer::new(packed, settings)))
                    }
                }
            }
            Kind::Mongo => {
                let servers = self.mongo().await?.into_iter();
                match self.mapping {
                    Mapping::Nested => {
                        let rows = Spread::of(servers.map(Rows::new));
                        Db::MongoRows(Box::new(Layer::new(rows, settings)))
                    }
                    _ => {
                        let cells = servers.map(|it| Packed::new(Cells::new(it)));
                        Db::MongoCells(Box::new(Layer::new(Spread::of(cells), settings)))
                    }
                }
            }
            Kind::Postgres | Kind::MySql => self.connect_sql(client, settings).await?,
        })
    }

    async fn connect_sql(&self, client: u64, settings: Settings) -> Result<Db, Failure> {
        let locks = matches!(self.mapping, Mapping::TablesLock | Mapping::PackedLock);
        let endpoint = (client % self.target.endpoints.len().max(1) as u64) as usize;
        let (schema, timeout) = (self.schema.clone(), self.options.timeout);
        if self.is_packed() {
            let opened = PackedStore::open(self.databases.clone(), locks, timeout, endpoint);
            return Ok(Db::PackedSql(Box::new(Layer::new(opened.await?, settings))));
        }
        if self.databases.len() > 1 {
            let databases = self.databases.clone();
            let opened = RoutedStore::open(databases, schema, locks, timeout, endpoint);
            return Ok(Db::Routed(Box::new(opened.await?)));
        }
        let network = Network::new(self.target.clone(), timeout, endpoint);
        let opened = SqlStore::open(network, schema, locks);
        Ok(Db::Sql(Box::new(opened.await?)))
    }

    async fn mongo(&self) -> Result<Vec<MongoGroups>, Failure> {
        MongoGroups::open(&self.target, self.schema.clone(), self.options.timeout).await
    }

    async fn redis(&self, client: u64) -> Result<RedisStore, Failure> {
        let form = match self.mapping {
            Mapping::PackedLua => redis::Form::Lua,
            Mapping::Rows => redis::Form::Rows,
            _ => redis::Form::Watch,
        };
        RedisStore::open(self.target.clone(), form, self.options.timeout, client).await
    }

    fn etcd(&self) -> EtcdStore {
        let form = match self.mapping {
            Mapping::Packed => etcd::Form::Packed,
            _ => etcd::Form::Rows,
        };
        EtcdStore::new(self.target.clone(), form, self.options.timeout)
    }

    async fn cassandra(&self, client: u64) -> Result<CassandraGroups, Failure> {
        let form = match self.mapping {
            Mapping::Rows => cassandra::Form::Rows,
            _ => cassandra::Form::Packed,
        };
        CassandraGroups::open(self.target.clone(), form, self.options.timeout, client).await
    }

    fn hbase(&self, client: u64) -> Result<HBaseGroups, Failure> {
        HBaseGroups::new(self.target.clone(), self.options.timeout, client)
    }

    /// What it is.
    ///
    /// # Errors
    /// `Lost`, `Refused`.
    pub async fn describe(&self) -> Result<Description, Failure> {
        let (product, is_durable) = match self.kind {
            Kind::Memory => (String::from("memory"), false),
            Kind::Redis => {
                let mut redis = self.redis(1).await?;
                let version = redis.version().await?;
                (format!("Redis {version}"), redis.abilities().durable)
            }
            Kind::Etcd => {
                let version = self.etcd().version().await?;
                (format!("etcd {version}"), true)
            }
            Kind::Mongo => {
                let mut servers = self.mongo().await?;
                let is_durable = servers.iter().all(Grouped::is_durable);
                (servers[0].version().await?, is_durable)
            }
            Kind::Cassandra => {
                let mut groups = self.cassandra(1).await?;
                let version = groups.version().await?;
                (format!("Cassandra {version}"), groups.is_durable())
            }
            Kind::HBase => {
                // Its gateway tells neither its release nor how it syncs.
                self.hbase(1)?.check().await?;
                (String::from("HBase"), false)
            }
            Kind::Postgres | Kind::MySql => {
                let (mut name, mut is_durable) = (String::new(), true);
                for target in &self.databases {
                    let link = Link::connect_any(target, Some(self.options.timeout));
                    let mut link = link.map_err(|error| sql::failure_of_link(&error))?;
                    let server = Server::identify(&mut link);
                    name = server.map_err(|error| sql::failure_of_link(&error))?.name();
                    let dialect = sql::dialect_of(target);
                    is_durable &= sql::is_durable(&mut link, dialect).await?;
                    link.close();
                }
                (name, is_durable)
            }
        };
        Ok(Description {
            product,
            mapping: self.mapping.name(),
            is_durable,
            servers: match self.kind {
                Kind::Memory => 0,
                _ => self.target.endpoints.len(),
            },
        })
    }
}

/// The URL without `route=group`, and whether that was there.
fn routing(url: &str) -> (String, bool) {
    let Some((place, parameters)) = url.split_once('?') else {
        return (url.to_owned(), false);
    };
    let others = parameters.split('&').filter(|it| *it != "route=group");
    let others: Vec<&str> = others.collect();
    let is_routed = others.len() < parameters.split('&').count();
    let mark = if others.is_empty() { "" } else { "?" };
    (format!("{place}{mark}{}", others.join("&")), is_routed)
}

/// A client's connection to a store, whichever it is.
#[derive(Debug)]
pub enum Db {
    /// Records in memory.
    Memory(Box<Layer<memory::Client<InMemory>>>),
    /// Packed groups in memory.
    Cells(Box<Layer<Packed<memory::Cells<InMemory>>>>),
    /// Tables.
    Sql(Box<SqlStore>),
    /// Groups on Redis.
    Redis(Box<Layer<RedisStore>>),
    /// Groups on etcd.
    Etcd(Box<Layer<EtcdStore>>),
    /// Packed groups on Cassandra.
    CassandraCells(Box<Layer<Packed<Cells<CassandraGroups>>>>),
    /// Groups of rows on Cassandra.
    CassandraRows(Box<Layer<Rows<CassandraGroups>>>),
    /// Packed groups on HBase.
    HBaseCells(Box<Layer<Packed<Cells<HBaseGroups>>>>),
    /// Groups of columns on HBase.
    HBaseRows(Box<Layer<Rows<HBaseGroups>>>),
    /// Packed groups on MongoDB.
    MongoCells(Box<Layer<Spread<Packed<Cells<MongoGroups>>>>>),
    /// Groups of nested documents on MongoDB.
    MongoRows(Box<Layer<Spread<Rows<MongoGroups>>>>),
    /// Tables on several databases.
    Routed(Box<RoutedStore>),
    /// Groups as rows of SQL.
    PackedSql(Box<Layer<PackedStore>>),
}

/// Calls the method of the store.
macro_rules! each {
    ($db:expr, $store:ident => $call:expr) => {
        match $db {
            Db::Memory($store) => $call,
            Db::Cells($store) => $call,
            Db::Sql($store) => $call,
            Db::Redis($store) => $call,
            Db::Etcd($store) => $call,
            Db::CassandraCells($store) => $call,
            Db::CassandraRows($store) => $call,
            Db::HBaseCells($store) => $call,
            Db::HBaseRows($store) => $call,
            Db::MongoCells($store) => $call,
            Db::MongoRows($store) => $call,
            Db::Routed($store) => $call,
            Db::PackedSql($store) => $call,
        }
    };
}

impl Db {
    /// Lets the next commit that writes answer `Unknown`, for tests; `false`: this connection
    /// cannot do that by itself.
    pub fn lose_next(&mut self, loss: Loss) -> bool {
        match self {
            Db::Cells(layer) => layer.kv().cells().lose_next(loss),
            Db::CassandraCells(layer) => layer.kv().cells().lose_next(loss),
            Db::CassandraRows(layer) => layer.kv().lose_next(loss),
            Db::HBaseCells(layer) => layer.kv().cells().lose_next(loss),
            Db::HBaseRows(layer) => layer.kv().lose_next(loss),
            // Whichever server has the group.
            Db::MongoCells(layer) => {
                let servers = layer.kv().servers().iter_mut();
                servers.for_each(|server| server.cells().lose_next(loss));
            }
            Db::MongoRows(layer) => {
                let servers = layer.kv().servers().iter_mut();
                servers.for_each(|server| server.lose_next(loss));
            }
            _ => return false,
        }
        true
    }
}

impl EntityDb for Db {
    fn abilities(&self) -> Abilities {
        each!(self, store => store.abilities())
    }

    async fn begin(&mut self, scope: Scope<'_>, stamp: Stamp) -> Result<(), Failure> {
        each!(self, store => store.begin(scope, stamp).await)
    }

    async fn get(&mut self, kind: &EntityType, id: &[Value]) -> Result<Option<Row>, Failure> {
        each!(self, store => store.get(kind, id).await)
    }

    async fn create(&mut self, kind: &EntityType, row: &mut [Value]) -> Result<(), Failure> {
        each!(self, store => store.create(kind, row).await)
    }

    async fn update(&mut self, kind: &EntityType, row: &[Value]) -> Result<(), Failure> {
        each!(self, store => store.update(kind, row).await)
    }

    async fn delete(&mut self, kind: &EntityType, id: &[Value]) -> Result<(), Failure> {
        each!(self, store => store.delete(kind, id).await)
    }

    async fn by_index(
        &mut self,
        kind: &EntityType,
        index: usize,
        key: &[Value],
    ) -> Result<Vec<Row>, Failure> {
        each!(self, store => store.by_index(kind, index, key).await)
    }

    async fn range(&mut self, kind: &EntityType, range: Range<'_>) -> Result<Vec<Row>, Failure> {
        each!(self, store => store.range(kind, range).await)
    }

    async fn commit(&mut self) -> Result<(), Failure> {
        each!(self, store => store.commit().await)
    }

    async fn abort(&mut self) -> Result<(), Failure> {
        each!(self, store => store.abort().await)
    }

    async fn outcome(&mut self, stamp: Stamp) -> Result<Outcome, Failure> {
        each!(self, store => store.outcome(stamp).await)
    }

    fn round_trips(&self) -> u64 {
        each!(self, store => store.round_trips())
    }
}

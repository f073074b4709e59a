//! Connections of a run: entities on a store, or statements of a workload's own.

use super::distance::{Distance, Far};
use super::{Connector, Needs, Phase};
use crate::access::Sql;
use base::Prng;
use entity::sql::{Dialect, create_tables, drop_tables};
use entity::{Client, Policy, Schema};
use links::link::{Link, ready};
use links::server::Server;
use links::url::{Target, Wire};
use serde_json::{Value, json};
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use stores::{Clock, Db, Options, Store};
use workload::wire::{Isolation, ParamType};

/// Clients of entities on one store.
#[derive(Debug)]
pub struct Entities {
    store: Store,
    policy: Policy,
    seed: u64,
    /// Draws the names of clients, which no other client has ever.
    names: u64,
    connected: AtomicU64,
    /// What delays it, if anything does.
    far: Option<Arc<Distance>>,
}

impl Entities {
    /// On the store of a URL. With the policy by which transactions are run again, and a seed.
    ///
    /// # Errors
    /// The URL or the mapping, in words.
    pub fn open(
        url: &str,
        options: Options,
        schema: Schema,
        (policy, seed): (Policy, u64),
    ) -> Result<Entities, String> {
        let store = Store::open(url, options, Arc::new(schema));
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let since = since.map_or(0, |since| since.as_nanos() as u64);
        let since = since ^ (u64::from(std::process::id()) << 40);
        // Processes in containers have equal numbers and begin at the same moment. Names that lie
        // beside each other are those of one process.
        let chance = RandomState::new().hash_one(since);
        Ok(Entities {
            store: store.map_err(|failure| failure.to_string())?,
            policy,
            seed,
            names: chance,
            connected: AtomicU64::new(0),
            far: None,
        })
    }

    /// The same, so far away. Its URL must be that of the distance.
    pub(crate) fn at(mut self, far: &Arc<Distance>) -> Entities {
        self.far = Some(far.clone());
        self
    }
}

impl Connector for Entities {
    type Access = Client<Far<Db>, Clock>;

    fn connect(&self, thread: usize) -> Result<Client<Far<Db>, Clock>, String> {
        let count = self.connected.fetch_add(1, Ordering::Relaxed);
        // A name of 63 bits: some stores have no larger numbers.
        let name = Prng::new(self.names.wrapping_add(count)).next_u64() >> 1 | 1;
        let db = ready(self.store.connect(name)).map_err(|failure| failure.to_string())?;
        let seed = Prng::new(self.seed ^ (thread as u64) << 20 ^ count).next_u64();
        let trip_us = self.far.as_ref().map(|far| far.trip_us());
        let db = Far::new(db, trip_us.unwrap_or_default());
        Ok(Client::new(db, Clock::default(), self.policy, name, seed))
    }

    fn enter(&self, phase: Phase) {
        self.far.iter().for_each(|far| far.enter(phase));
    }

    fn create(&self) -> Result<(), String> {
        ready(self.store.reset()).map_err(|failure| failure.to_string())
    }

    fn drive<T>(&self, future: impl Future<Output = T>) -> T {
        ready(future)
    }

    fn can(&self, access: &mut Client<Far<Db>, Clock>, needs: Needs) -> bool {
        let abilities = access.abilities();
        match needs {
            Needs::Nothing => true,
            Needs::SeveralGroups => abilities.several_groups,
            Needs::RangesOverGroups => abilities.ranges_over_groups,
        }
    }

    fn describe(&self) -> Value {
        match ready(self.store.describe()) {
            Ok(store) => json!({
                "api": "entity",
                "product": store.product,
                "mapping": store.mapping,
                "durable": store.is_durable,
                "servers": store.servers,
            }),
            Err(failure) => json!({"api": "entity", "unknown": failure.to_string()}),
        }
    }
}

/// Connections for statements.
#[derive(Debug)]
pub struct Statements {
    target: Target,
    timeout: Duration,
    isolation: Isolation,
    own: Vec<(String, Vec<ParamType>)>,
    setup: Setup,
    policy: Policy,
    seed: u64,
    /// What delays them, if anything does.
    far: Option<Arc<Distance>>,
}

/// What makes the tables.
#[derive(Clone, Debug)]
pub enum Setup {
    /// Those of entities.
    Schema(Schema),
    /// These statements.
    Statements(Vec<String>),
}

impl Statements {
    /// On the database of a URL, with the statements of a workload.
    ///
    /// # Errors
    /// The URL, in words.
    pub fn open(
        url: &str,
        (timeout, isolation): (Duration, Isolation),
        own: Vec<(String, Vec<ParamType>)>,
        setup: Setup,
        (policy, seed): (Policy, u64),
    ) -> Result<Statements, String> {
        let target = Target::parse(url).and_then(Target::of_sql);
        Ok(Statements {
            target: target.map_err(|error| error.to_string())?,
            timeout,
            isolation,
            own,
            setup,
            policy,
            seed,
            far: None,
        })
    }

    /// The same, so far away. Its URL must be that of the distance.
    pub(crate) fn at(mut self, far: &Arc<Distance>) -> Statements {
        self.far = Some(far.clone());
        self
    }

    fn dialect(&self) -> Dialect {
        match self.target.wire {
            Wire::MySql => Dialect::MySql,
            _ => Dialect::Postgres,
        }
    }

    /// A connection with the settings that all have.
    fn link(&self, thread: usize) -> Result<Link, String> {
        let endpoint = &self.target.endpoints[thread % self.target.endpoints.len()];
        let link = Link::connect(endpoint, &self.target, Some(self.timeout));
        let mut link = link.map_err(|error| error.to_string())?;
        let server = Server::identify(&mut link).map_err(|error| error.to_string())?;
        let tuned = server.tune(&mut link, Some(self.isolation));
        tuned.map_err(|error| error.to_string())?;
        Ok(link)
    }
}

impl Connector for Statements {
    type Access = Sql<Link, Clock>;

    fn connect(&self, thread: usize) -> Result<Sql<Link, Clock>, String> {
        let seed = Prng::new(self.seed ^ (thread as u64) << 20).next_u64();
        let how = (self.dialect(), self.isolation);
        let retry = (Clock::default(), self.policy, seed);
        let opened = ready(Sql::open(self.link(thread)?, how, &self.own, retry));
        opened.map_err(|error| error.to_string())
    }

    fn enter(&self, phase: Phase) {
        self.far.iter().for_each(|far| far.enter(phase));
    }

    fn create(&self) -> Result<(), String> {
        let mut link = self.link(0)?;
        let texts = match &self.setup {
            Setup::Statements(texts) => texts.clone(),
            Setup::Schema(schema) => {
                let mut texts = drop_tables(schema, self.dialect());
                texts.extend(create_tables(schema, self.dialect()));
                texts
            }
        };
        for text in texts {
            let done = link.command(&text);
            done.map_err(|error| format!("{text}: {error}"))?;
        }
        link.close();
        Ok(())
    }

    fn drive<T>(&self, future: impl Future<Output = T>) -> T {
        ready(future)
    }

    fn describe(&self) -> Value {
        let identified = self.link(0).and_then(|mut link| {
            let server = Server::identify(&mut link).map_err(|error| error.to_string())?;
            link.close();
            Ok(server.name())
        });
        match identified {
            Ok(product) => json!({
                "api": "sql",
                "product": product,
                "isolation": self.isolation.sql(),
                "servers": self.target.endpoints.len(),
            }),
            Err(text) => json!({"api": "sql", "unknown": text}),
        }
    }
}

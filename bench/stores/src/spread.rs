//! Several servers that know nothing of each other, each with a part of the groups.
//!
//! A transaction is sent to the server of its group, which follows from a hash of the group's key:
//! all clients must list the servers in the same order. There are no transactions on several
//! groups then. The stamp of a commit is on the server of its group. Ranges over groups ask one
//! server after the other, so that they are of several states.

use crate::mapping::server_of;
use entity::kv::TransactionalKv;
use entity::kv::{GroupOrder, GroupRange, Groups, KvAbilities, Place, Placed, Record};
use entity::{Failure, Outcome, Stamp};
use links::url::Target;

/// A target for each server of a URL.
pub(crate) fn each_server(target: &Target) -> impl Iterator<Item = Target> + '_ {
    target.endpoints.iter().map(|endpoint| Target {
        endpoints: vec![endpoint.clone()],
        ..target.clone()
    })
}

/// One server or several of the same kind.
#[derive(Debug)]
pub struct Spread<K> {
    servers: Vec<K>,
    last: Last,
}

/// An open transaction of [`Spread`].
#[derive(Debug)]
pub struct SpreadTxn<T> {
    server: usize,
    txn: T,
}

/// On which server the last commit with a stamp was.
#[derive(Debug, Default)]
pub(crate) struct Last(Option<(Stamp, usize)>);

impl Last {
    /// Notes a commit.
    pub(crate) fn note(&mut self, stamp: Option<Stamp>, server: usize) {
        self.0 = stamp.map(|stamp| (stamp, server)).or(self.0);
    }

    /// The servers of which one may have the stamp.
    pub(crate) fn servers(&self, stamp: Stamp, count: usize) -> std::ops::Range<usize> {
        match self.0 {
            Some((last, server)) if last == stamp => server..server + 1,
            _ => 0..count,
        }
    }
}

impl<K> Spread<K> {
    pub(crate) fn of(servers: impl IntoIterator<Item = K>) -> Spread<K> {
        Spread {
            servers: servers.into_iter().collect(),
            last: Last::default(),
        }
    }

    /// All servers, in the order of the URL.
    pub(crate) fn servers(&mut self) -> &mut [K] {
        &mut self.servers
    }
}

impl<K: TransactionalKv> TransactionalKv for Spread<K> {
    type Txn = SpreadTxn<K::Txn>;

    fn abilities(&self) -> KvAbilities {
        let mut abilities = self.servers[0].abilities();
        abilities.several_groups &= self.servers.len() == 1;
        abilities.durable = self.servers.iter().all(|it| it.abilities().durable);
        abilities
    }

    async fn begin(&mut self, groups: Groups<'_>) -> Result<Self::Txn, Failure> {
        let server = match groups {
            Groups::One(group) => server_of(group, self.servers.len()),
            Groups::Several => 0,
        };
        let txn = self.servers[server].begin(groups).await?;
        Ok(SpreadTxn { server, txn })
    }

    async fn get(
        &mut self,
        txn: &mut Self::Txn,
        place: Place<'_>,
    ) -> Result<Option<Vec<u8>>, Failure> {
        self.servers[txn.server].get(&mut txn.txn, place).await
    }

    async fn scan(
        &mut self,
        txn: &mut Self::Txn,
        from: Place<'_>,
        to: &[u8],
        limit: usize,
        found: &mut Vec<Record>,
    ) -> Result<(), Failure> {
        let server = &mut self.servers[txn.server];
        server.scan(&mut txn.txn, from, to, limit, found).await
    }

    async fn put(
        &mut self,
        txn: &mut Self::Txn,
        place: Place<'_>,
        value: &[u8],
    ) -> Result<(), Failure> {
        let server = &mut self.servers[txn.server];
        server.put(&mut txn.txn, place, value).await
    }

    async fn delete(&mut self, txn: &mut Self::Txn, place: Place<'_>) -> Result<(), Failure> {
        self.servers[txn.server].delete(&mut txn.txn, place).await
    }

    async fn commit(&mut self, txn: Self::Txn, stamp: Option<Stamp>) -> Result<(), Failure> {
        self.last.note(stamp, txn.server);
        self.servers[txn.server].commit(txn.txn, stamp).await
    }

    async fn abort(&mut self, txn: Self::Txn) -> Result<(), Failure> {
        self.servers[txn.server].abort(txn.txn).await
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

    fn group_order(&self) -> Option<GroupOrder> {
        let order = self.servers[0].group_order()?;
        Some(match self.servers.len() {
            1 => order,
            _ => GroupOrder::Each,
        })
    }

    async fn scan_groups(
        &mut self,
        range: GroupRange<'_>,
        found: &mut Vec<Placed>,
    ) -> Result<(), Failure> {
        let mut all = Vec::new();
        for server in &mut self.servers {
            server.scan_groups(range, &mut all).await?;
        }
        all.sort();
        all.truncate(range.limit);
        found.append(&mut all);
        Ok(())
    }

    fn round_trips(&self) -> u64 {
        self.servers.iter().map(K::round_trips).sum()
    }
}

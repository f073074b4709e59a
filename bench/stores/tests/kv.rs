//! Key-value stores that really run: conflicts, two open transactions, outcomes and fences.
#![allow(
    clippy::unwrap_used,
    reason = "a test file whose helpers are not test functions"
)]

use entity::kv::{Groups, Place, TransactionalKv};
use entity::sql::Dialect;
use entity::{Failure, Outcome, Stamp};
use links::link::{Link, ready};
use links::url::Target;
use servers::{Kind, Server};
use std::time::Duration;
use stores::etcd::{self, EtcdStore};
use stores::packed_sql::{PackedStore, setup};
use stores::redis::{self, RedisStore};

const TIMEOUT: Duration = Duration::from_secs(60);

fn place<'a>(group: &'a [u8], key: &'a [u8]) -> Place<'a> {
    Place { group, key }
}

fn stamp(client: u64, sequence: u64) -> Option<Stamp> {
    Some(Stamp { client, sequence })
}

/// Keys and values from `from` and before `to`, as text.
async fn scan<K: TransactionalKv>(kv: &mut K, txn: &mut K::Txn, from: &str, to: &str) -> String {
    let mut found = Vec::new();
    let first = place(b"g1", from.as_bytes());
    let end = to.as_bytes();
    kv.scan(txn, first, end, 10, &mut found).await.unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let pairs = found
        .into_iter()
        .map(|(key, value)| format!("{}={}", text(key), text(value)));
    pairs.collect::<Vec<_>>().join(" ")
}

async fn writes<K: TransactionalKv>(kv: &mut K) {
    let one = Groups::One(b"g1");
    let mut txn = kv.begin(one).await.unwrap();
    assert_eq!(kv.get(&mut txn, place(b"g1", b"a")).await.unwrap(), None);
    for (key, value) in [("a", "1"), ("b", "2"), ("c", "3")] {
        let place = place(b"g1", key.as_bytes());
        kv.put(&mut txn, place, value.as_bytes()).await.unwrap();
    }
    assert_eq!(scan(kv, &mut txn, "a", "c").await, "a=1 b=2");
    kv.commit(txn, stamp(1, 1)).await.unwrap();
    let mut txn = kv.begin(one).await.unwrap();
    kv.delete(&mut txn, place(b"g1", b"b")).await.unwrap();
    kv.put(&mut txn, place(b"g1", b"c"), b"4").await.unwrap();
    assert_eq!(scan(kv, &mut txn, "", "z").await, "a=1 c=4");
    kv.abort(txn).await.unwrap();
    let mut txn = kv.begin(one).await.unwrap();
    assert_eq!(scan(kv, &mut txn, "", "z").await, "a=1 b=2 c=3");
    kv.commit(txn, None).await.unwrap();
}

/// Two transactions that read the same record, and both write it.
async fn conflict<K: TransactionalKv>(kv: &mut K, other: &mut K) {
    let one = Groups::One(b"g1");
    let mut first = kv.begin(one).await.unwrap();
    let mut second = other.begin(one).await.unwrap();
    let a = place(b"g1", b"a");
    kv.get(&mut first, a).await.unwrap();
    other.get(&mut second, a).await.unwrap();
    // One on another group goes by in between, on the same client.
    let mut inner = kv.begin(Groups::One(b"g2")).await.unwrap();
    kv.get(&mut inner, place(b"g2", b"n")).await.unwrap();
    kv.put(&mut inner, place(b"g2", b"n"), b"1").await.unwrap();
    kv.commit(inner, None).await.unwrap();
    kv.put(&mut first, a, b"first").await.unwrap();
    other.put(&mut second, a, b"second").await.unwrap();
    other.commit(second, stamp(2, 1)).await.unwrap();
    let lost = kv.commit(first, stamp(1, 2)).await;
    assert!(matches!(lost, Err(Failure::Conflict(_))), "{lost:?}");
    let mut txn = kv.begin(one).await.unwrap();
    assert_eq!(kv.get(&mut txn, a).await.unwrap().unwrap(), b"second");
    kv.commit(txn, None).await.unwrap();
}

/// Records that come and go in what was scanned.
async fn phantoms<K: TransactionalKv>(kv: &mut K, other: &mut K) {
    let one = Groups::One(b"g1");
    for turn in 0..2 {
        let mut first = kv.begin(one).await.unwrap();
        scan(kv, &mut first, "p", "q").await;
        let mut second = other.begin(one).await.unwrap();
        let p = place(b"g1", b"p1");
        other.get(&mut second, p).await.unwrap();
        match turn {
            0 => other.put(&mut second, p, b"1").await.unwrap(),
            _ => other.delete(&mut second, p).await.unwrap(),
        }
        other.commit(second, stamp(2, 2 + turn)).await.unwrap();
        let count = place(b"g1", b"count");
        kv.put(&mut first, count, b"0").await.unwrap();
        let lost = kv.commit(first, stamp(1, 3 + turn)).await;
        assert!(matches!(lost, Err(Failure::Conflict(_))), "{lost:?}");
    }
}

/// What has committed is found, and what has not never will.
async fn outcomes<K: TransactionalKv>(kv: &mut K, other: &mut K) {
    let one = Groups::One(b"g1");
    let a = place(b"g1", b"a");
    let mut txn = kv.begin(one).await.unwrap();
    kv.get(&mut txn, a).await.unwrap();
    kv.put(&mut txn, a, b"5").await.unwrap();
    kv.commit(txn, stamp(1, 10)).await.unwrap();
    let known = stamp(1, 10).unwrap();
    assert_eq!(kv.outcome(known).await.unwrap(), Outcome::Committed);
    assert_eq!(other.outcome(known).await.unwrap(), Outcome::Committed);
    // A commit is on its way while its client, on another connection, asks for it.
    let mut late = kv.begin(one).await.unwrap();
    kv.get(&mut late, a).await.unwrap();
    kv.put(&mut late, a, b"late").await.unwrap();
    let asked = stamp(1, 11).unwrap();
    for _ in 0..2 {
        assert_eq!(other.outcome(asked).await.unwrap(), Outcome::NotCommitted);
    }
    let fenced = kv.commit(late, Some(asked)).await;
    assert!(matches!(fenced, Err(Failure::Conflict(_))), "{fenced:?}");
    // The next one passes.
    let mut txn = kv.begin(one).await.unwrap();
    assert_eq!(kv.get(&mut txn, a).await.unwrap().unwrap(), b"5");
    kv.put(&mut txn, a, b"6").await.unwrap();
    kv.commit(txn, stamp(1, 12)).await.unwrap();
}

/// Transactions on two groups, where the store has them.
async fn several<K: TransactionalKv>(kv: &mut K) {
    if !kv.abilities().several_groups {
        return;
    }
    let mut txn = kv.begin(Groups::Several).await.unwrap();
    for group in [b"g1", b"g2"] {
        let both = place(group, b"both");
        kv.get(&mut txn, both).await.unwrap();
        kv.put(&mut txn, both, b"x").await.unwrap();
    }
    kv.commit(txn, stamp(1, 13)).await.unwrap();
    let mut txn = kv.begin(Groups::One(b"g2")).await.unwrap();
    let found = kv.get(&mut txn, place(b"g2", b"both")).await.unwrap();
    assert_eq!(found.unwrap(), b"x");
    kv.commit(txn, None).await.unwrap();
}

async fn all<K: TransactionalKv>(kv: &mut K, other: &mut K) {
    writes(kv).await;
    conflict(kv, other).await;
    phantoms(kv, other).await;
    outcomes(kv, other).await;
    several(kv).await;
}

fn target(servers: &[&Server]) -> Target {
    let addresses: Vec<String> = servers.iter().map(|it| it.address().to_string()).collect();
    let scheme = match servers[0].url("").starts_with("etcd") {
        true => "etcd",
        false => "redis",
    };
    Target::parse(&format!("{scheme}://{}", addresses.join(","))).unwrap()
}

#[test]
fn redis_keeps_groups_in_each_form() {
    let start = || peer::start_forced(Kind::Redis, &[]);
    let (Some(one), Some(two)) = (start(), start()) else {
        return;
    };
    for form in [redis::Form::Watch, redis::Form::Lua, redis::Form::Rows] {
        for servers in [&[&one][..], &[&one, &two]] {
            let open = |origin| ready(RedisStore::open(target(servers), form, TIMEOUT, origin));
            let (mut kv, mut other) = (open(1).unwrap(), open(2).unwrap());
            ready(kv.clear()).unwrap();
            ready(all(&mut kv, &mut other));
            assert!(kv.abilities().durable);
        }
    }
}

#[test]
fn redis_that_syncs_later_is_not_durable() {
    let Some(server) = peer::start(Kind::Redis, &["--appendfsync", "everysec"]) else {
        return;
    };
    let target = target(&[&server]);
    let opened = ready(RedisStore::open(target, redis::Form::Watch, TIMEOUT, 1));
    assert!(!opened.unwrap().abilities().durable);
}

#[test]
fn etcd_keeps_groups_in_each_form() {
    let Some(server) = peer::start(Kind::Etcd, &[]) else {
        return;
    };
    for form in [etcd::Form::Rows, etcd::Form::Packed] {
        let open = || EtcdStore::new(target(&[&server]), form, TIMEOUT);
        let (mut kv, mut other) = (open(), open());
        ready(kv.clear()).unwrap();
        ready(all(&mut kv, &mut other));
    }
}

/// Packed groups as rows, where transactions do not wait for each other.
fn of_database(url: &str, dialect: Dialect) {
    let target = Target::parse(url).unwrap();
    let mut link = Link::connect_any(&target, Some(TIMEOUT)).unwrap();
    for text in setup(dialect) {
        link.command(&text).unwrap();
    }
    let open = || ready(PackedStore::open(vec![target.clone()], false, TIMEOUT, 0)).unwrap();
    let (mut kv, mut other) = (open(), open());
    ready(all(&mut kv, &mut other));
    assert!(kv.abilities().durable);
    ready(skew(&mut kv, &mut other));
}

/// Two transactions that each read what the other one writes, or makes.
async fn skew<K: TransactionalKv>(kv: &mut K, other: &mut K) {
    let of = |turn: u8| ([b'x', turn], [b'y', turn]);
    for turn in 0..2 {
        let (x, y) = of(turn);
        let (x, y) = (place(&x, b"k"), place(&y, b"k"));
        if turn == 0 {
            let mut txn = kv.begin(Groups::Several).await.unwrap();
            kv.put(&mut txn, x, b"0").await.unwrap();
            kv.put(&mut txn, y, b"0").await.unwrap();
            kv.commit(txn, stamp(1, 50)).await.unwrap();
        }
        let mut first = kv.begin(Groups::Several).await.unwrap();
        let mut second = other.begin(Groups::Several).await.unwrap();
        kv.get(&mut first, x).await.unwrap();
        other.get(&mut second, y).await.unwrap();
        kv.put(&mut first, y, b"1").await.unwrap();
        other.put(&mut second, x, b"1").await.unwrap();
        kv.commit(first, stamp(1, 51 + u64::from(turn)))
            .await
            .unwrap();
        let lost = other.commit(second, stamp(2, 51 + u64::from(turn))).await;
        assert!(matches!(lost, Err(Failure::Conflict(_))), "{lost:?}");
    }
}

#[test]
fn postgresql_keeps_packed_groups() {
    if let Some(server) = peer::start_forced(Kind::Postgres, &[]) {
        of_database(&server.url("postgres"), Dialect::Postgres);
    }
}

#[test]
fn mariadb_keeps_packed_groups() {
    if let Some(server) = peer::start_forced(Kind::MariaDb, &[]) {
        of_database(&server.url("test"), Dialect::MySql);
    }
}

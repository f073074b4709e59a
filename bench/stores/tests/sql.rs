//! Tables that really exist: what travels in which round, and what servers say.
#![allow(
    clippy::unwrap_used,
    reason = "a test file whose helpers are not test functions"
)]

use entity::{Client, Entity, EntityDb, Failure, NoWait, Outcome, Policy, Range, Schema, Scope};
use entity::{Stamp, Value};
use links::link::{Link, ready};
use links::url::Target;
use servers::Kind;
use std::sync::Arc;
use std::time::Duration;
use stores::sql::Network;
use stores::tables::SqlStore;

const TIMEOUT: Duration = Duration::from_secs(60);

#[derive(Clone, Debug, PartialEq, Entity)]
#[entity(index(owner))]
struct Item {
    #[id]
    #[group]
    owner: i64,
    #[id]
    item: i64,
    #[immutable]
    kind: String,
    price: f64,
    note: Option<Vec<u8>>,
    is_sold: bool,
}

#[derive(Clone, Debug, PartialEq, Entity)]
#[entity(parent = Item)]
struct Bid {
    #[id]
    #[group]
    owner: i64,
    #[id]
    #[generated]
    bid: i64,
    amount: i64,
}

fn schema() -> Arc<Schema> {
    let mut schema = Schema::new();
    schema.add(Item::TYPE).unwrap();
    schema.add(Bid::TYPE).unwrap();
    Arc::new(schema)
}

fn item(item: i64) -> Item {
    Item {
        owner: 7,
        item,
        kind: String::from("it's a \\ \"lamp\""),
        price: -0.1,
        note: (item % 2 == 0).then(|| vec![0, 255, b'\'']),
        is_sold: item > 1,
    }
}

fn client(url: &str, locks: bool, number: u64) -> Client<SqlStore, NoWait> {
    let target = Target::parse(url).unwrap();
    let network = Network::new(target, TIMEOUT, 0);
    let opened = SqlStore::open(network, schema(), locks);
    let policy = Policy {
        attempts: 3,
        ..Policy::default()
    };
    Client::new(ready(opened).unwrap(), NoWait::default(), policy, number, 1)
}

fn make_tables(url: &str) {
    let target = Target::parse(url).unwrap();
    let dialect = match url.starts_with("mysql") {
        true => entity::sql::Dialect::MySql,
        false => entity::sql::Dialect::Postgres,
    };
    let mut link = Link::connect_any(&target, Some(TIMEOUT)).unwrap();
    let mut texts = entity::sql::drop_tables(&schema(), dialect);
    texts.extend(entity::sql::create_tables(&schema(), dialect));
    for text in texts {
        link.command(&text)
            .unwrap_or_else(|error| panic!("{text}: {error}"));
    }
}

async fn operations(client: &mut Client<SqlStore, NoWait>, is_pipelined: bool) {
    for number in 0..4 {
        let mut made = item(number);
        client.create(&mut made).await.unwrap();
        assert_eq!(client.get::<Item>(&(7, number)).await.unwrap(), Some(made));
    }
    let twice = client.create(&mut item(1)).await;
    assert!(matches!(twice, Err(Failure::Exists(_))), "{twice:?}");
    let found: Vec<Item> = client.by_index("owner", &[Value::Int(7)]).await.unwrap();
    assert_eq!(found, (0..4).map(item).collect::<Vec<_>>());
    let range = Range {
        prefix: &[Value::Int(7)],
        from: Some(&Value::Int(1)),
        to: Some(&Value::Int(9)),
        limit: 2,
    };
    let found: Vec<Item> = client.range(range).await.unwrap();
    assert_eq!(found, [item(1), item(2)]);
    let mut changed = item(2);
    changed.kind = String::from("other");
    let refused = client.update(&changed).await;
    assert!(matches!(refused, Err(Failure::Refused(_))), "{refused:?}");
    let missing = client.update(&item(99)).await;
    assert!(matches!(missing, Err(Failure::Missing(_))), "{missing:?}");
    let missing = client.delete::<Item>(&(7, 99)).await;
    assert!(matches!(missing, Err(Failure::Missing(_))), "{missing:?}");
    client.delete::<Item>(&(7, 3)).await.unwrap();
    assert_eq!(client.get::<Item>(&(7, 3)).await.unwrap(), None);
    let bid = |amount| Bid {
        owner: 7,
        bid: 0,
        amount,
    };
    let (mut first, mut second) = (bid(1), bid(2));
    let before = client.round_trips();
    client.create(&mut first).await.unwrap();
    // BEGIN and the INSERT, then the stamp and COMMIT; nobody asks for the number once more.
    let requests = if is_pipelined { 2 } else { 4 };
    assert_eq!(client.round_trips() - before, requests);
    client.create(&mut second).await.unwrap();
    assert!(
        first.bid >= 1 && second.bid > first.bid,
        "{first:?} {second:?}"
    );
}

/// Updates of what was read wait for COMMIT.
async fn rounds(client: &mut Client<SqlStore, NoWait>, is_pipelined: bool) {
    let before = client.round_trips();
    let key = [Value::Int(7)];
    let scope = Scope::Group(&Item::TYPE.group_name, &key);
    let added = client.run(scope, async |tx| {
        for number in 0..3 {
            let mut read: Item = tx.get(&(7, number)).await?.unwrap();
            read.price += 1.0;
            tx.update(&read).await?;
        }
        let last: Item = tx.get(&(7, 2)).await?.unwrap();
        Ok(last.price)
    });
    assert_eq!(added.await.unwrap(), 0.9);
    // BEGIN, three reads, three updates, the stamp, COMMIT.
    let requests = if is_pipelined { 4 } else { 9 };
    assert_eq!(client.round_trips() - before, requests);
    let read: Option<Item> = client.get(&(7, 0)).await.unwrap();
    assert_eq!(read.unwrap().price, 0.9);
    // A task that fails leaves nothing behind, and the next transaction passes.
    let stopped: Result<(), Failure> = client
        .run(scope, async |tx| {
            tx.delete::<Item>(&(7, 0)).await?;
            Err(Failure::Stopped("changed its mind"))
        })
        .await;
    assert_eq!(stopped, Err(Failure::Stopped("changed its mind")));
    assert!(client.get::<Item>(&(7, 0)).await.unwrap().is_some());
    let exists = client
        .run(scope, async |tx| {
            let mut again = item(1);
            tx.create(&mut again).await
        })
        .await;
    assert!(matches!(exists, Err(Failure::Exists(_))), "{exists:?}");
}

/// What has committed is found, and what has not never will.
async fn outcomes(db: &mut SqlStore, other: &mut SqlStore) {
    let stamp = |sequence| Stamp {
        client: 77,
        sequence,
    };
    let id = [Value::Int(7), Value::Int(0)];
    db.begin(Scope::Several, stamp(1)).await.unwrap();
    let row = db.get(Item::TYPE, &id).await.unwrap().unwrap();
    db.update(Item::TYPE, &row).await.unwrap();
    db.commit().await.unwrap();
    assert_eq!(other.outcome(stamp(1)).await.unwrap(), Outcome::Committed);
    db.begin(Scope::Several, stamp(2)).await.unwrap();
    let mut row = db.get(Item::TYPE, &id).await.unwrap().unwrap();
    row[3] = Value::Real(5.0);
    db.update(Item::TYPE, &row).await.unwrap();
    for _ in 0..2 {
        let outcome = other.outcome(stamp(2)).await.unwrap();
        assert_eq!(outcome, Outcome::NotCommitted);
    }
    let fenced = db.commit().await;
    assert!(matches!(fenced, Err(Failure::Conflict(_))), "{fenced:?}");
    let row = db.get(Item::TYPE, &id).await.unwrap().unwrap();
    assert_ne!(row[3], Value::Real(5.0));
}

fn all(url: &str, is_pipelined: bool) {
    for locks in [false, true] {
        make_tables(url);
        let mut first = client(url, locks, 1);
        let mut second = client(url, locks, 2);
        assert!(first.abilities().durable);
        ready(operations(&mut first, is_pipelined));
        ready(rounds(&mut first, is_pipelined));
        ready(outcomes(first.db(), second.db()));
    }
}

#[test]
fn postgresql_has_tables() {
    if let Some(server) = peer::start_forced(Kind::Postgres, &[]) {
        all(&server.url("postgres"), true);
    }
}

#[test]
fn mariadb_has_tables() {
    if let Some(server) = peer::start_forced(Kind::MariaDb, &[]) {
        all(&server.url("test"), false);
    }
}

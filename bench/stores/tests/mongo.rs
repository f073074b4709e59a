//! Groups on a server that speaks MongoDB's protocol: FerretDB, which must be in the path.
//! `cargo xtask stores ferretdb` builds it and runs this.
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test file whose helpers are not test functions"
)]

use entity::conformance::{Verdict, schema};
use entity::kv::{Groups, Packed, Place, STAMPS_MAX, TransactionalKv};
use entity::memory::Loss;
use entity::{Client, Entity, Failure, Outcome, Policy, Schema, Stamp};
use links::bson::Doc;
use links::link::ready;
use links::mongo::Mongo;
use links::url::Target;
use servers::{Kind, Server};
use std::sync::Arc;
use std::time::Duration;
use stores::grouped::{Cells, Rows};
use stores::mongo::MongoGroups;
use stores::{Clock, Options, Store, conformance};

const TIMEOUT: Duration = Duration::from_secs(60);

fn start() -> Server {
    let server = Server::start(Kind::FerretDb, &[]).unwrap();
    server.expect("FerretDB is in the path")
}

fn store(url: &str, mapping: &str, schema: Schema) -> Store {
    let options = Options {
        mapping: Some(mapping.to_owned()),
        timeout: TIMEOUT,
        ..Options::default()
    };
    let store = Store::open(url, options, Arc::new(schema)).unwrap();
    ready(store.reset()).unwrap();
    store
}

#[test]
fn it_conforms_in_both_forms() {
    let (one, two) = (start(), start());
    let both = format!("mongodb://{},{}/test", one.address(), two.address());
    for url in [one.url("test"), both] {
        for mapping in ["packed", "nested"] {
            let store = store(&url, mapping, schema());
            let mut failed = Vec::new();
            for (check, verdict) in conformance::run(&store, true) {
                match verdict {
                    Verdict::Passed => {}
                    Verdict::Failed(why) => failed.push(format!("{check}: {why}")),
                    Verdict::Skipped(why) => println!("{mapping}: {check} skipped: {why}"),
                }
            }
            let description = ready(store.describe()).unwrap();
            println!("{} {mapping}", description.product);
            assert!(failed.is_empty(), "{mapping}:\n{}", failed.join("\n"));
            assert!(!description.is_durable, "it does not tell");
        }
    }
}

/// What has committed is found, and what has not never will.
#[test]
fn outcomes_are_found_by_stamps() {
    let server = start();
    let target = Target::parse(&server.url("test")).unwrap();
    let open = || {
        let opened = MongoGroups::open(&target, Arc::new(schema()), TIMEOUT);
        let mut groups = ready(opened).unwrap();
        ready(groups[0].clear()).unwrap();
        groups.pop().unwrap()
    };
    let (mut kv, mut other) = (Rows::new(open()), Rows::new(open()));
    ready(outcomes(&mut kv, &mut other, Rows::lose_next));
    let cells = || Packed::new(Cells::new(open()));
    let (mut kv, mut other) = (cells(), cells());
    let lose = |kv: &mut Packed<Cells<MongoGroups>>, loss| kv.cells().lose_next(loss);
    ready(outcomes(&mut kv, &mut other, lose));
}

async fn outcomes<K: TransactionalKv>(kv: &mut K, other: &mut K, lose: impl Fn(&mut K, Loss)) {
    let place = Place {
        group: b"g1",
        key: b"Na",
    };
    let put = async |kv: &mut K, client, sequence| {
        let mut txn = kv.begin(Groups::One(b"g1")).await?;
        kv.put(&mut txn, place, b"1").await?;
        let stamp = Stamp { client, sequence };
        kv.commit(txn, Some(stamp)).await
    };
    put(kv, 1, 1).await.unwrap();
    // Another commit comes in between: nothing happened, and nothing will.
    let mut late = kv.begin(Groups::One(b"g1")).await.unwrap();
    assert_eq!(kv.get(&mut late, place).await.unwrap().unwrap(), b"1");
    kv.put(&mut late, place, b"late").await.unwrap();
    put(other, 2, 1).await.unwrap();
    let lost = kv.commit(late, None).await;
    assert!(matches!(lost, Err(Failure::Conflict(_))), "{lost:?}");
    for (sequence, loss) in [
        (2, Loss::OfAnswer),
        (3, Loss::OfRequest),
        (4, Loss::OfAnswer),
    ] {
        lose(kv, loss);
        let lost = put(kv, 1, sequence).await;
        assert!(matches!(lost, Err(Failure::Unknown(_))), "{lost:?}");
        let asked = Stamp {
            client: 1,
            sequence,
        };
        let mut wanted = match loss {
            Loss::OfAnswer => Outcome::Committed,
            Loss::OfRequest => Outcome::NotCommitted,
        };
        if sequence == 4 {
            // After commits of too many other clients nobody knows.
            for client in 10..11 + STAMPS_MAX as u64 {
                put(other, client, 1).await.unwrap();
            }
            wanted = Outcome::Unknown;
        }
        assert_eq!(kv.outcome(asked).await.unwrap(), wanted, "{sequence}");
    }
}

#[derive(Clone, Debug, PartialEq, Entity)]
struct Sum {
    #[id]
    id: i64,
    count: i64,
}

/// Clients that change one group at the same time: how many updates are lost. A server that
/// compares and sets at once loses none.
fn lost_updates(server: &Server, mapping: &str) -> i64 {
    let mut schema = Schema::new();
    schema.add(Sum::TYPE).unwrap();
    let store = store(&server.url("test"), mapping, schema);
    let policy = Policy {
        attempts: 1_000,
        total_us: 20_000_000,
        ..Policy::default()
    };
    let client = |number: u64| {
        let db = ready(store.connect(number)).unwrap();
        Client::new(db, Clock::default(), policy, number, number)
    };
    ready(client(1).create(&mut Sum { id: 1, count: 0 })).unwrap();
    let work = |number: u64| {
        let mut client = client(number);
        for _ in 0..50 {
            let change = client.run_in::<Sum, ()>(&1, async |tx| {
                let mut sum: Sum = tx.get(&1).await?.unwrap();
                sum.count += 1;
                tx.update(&sum).await
            });
            ready(change).unwrap();
        }
    };
    std::thread::scope(|scope| {
        for number in 2..6 {
            scope.spawn(move || work(number));
        }
    });
    let sum: Option<Sum> = ready(client(9).get(&1)).unwrap();
    200 - sum.unwrap().count
}

/// FerretDB reads a document, compares it and writes it in three steps, so that of two updates
/// with the same version both may succeed.
#[test]
fn updates_at_the_same_time() {
    let server = start();
    for mapping in ["packed", "nested"] {
        let lost = lost_updates(&server, mapping);
        println!("{mapping}: {lost} of 200 updates lost");
        assert!((0..200).contains(&lost));
    }
}

/// Documents of groups are what they are said to be.
#[test]
fn nested_entities_have_their_columns() {
    let server = start();
    let mut schema = Schema::new();
    schema.add(Sum::TYPE).unwrap();
    let store = store(&server.url("test"), "nested", schema);
    let mut client = {
        let db = ready(store.connect(1)).unwrap();
        Client::new(db, Clock::default(), Policy::default(), 1, 1)
    };
    ready(client.create(&mut Sum { id: 1, count: 77 })).unwrap();
    let target = Target::parse(&server.url("test")).unwrap();
    let mut mongo = Mongo::connect(&target.endpoints[0], &target, Some(TIMEOUT)).unwrap();
    let command = Doc::new().with("find", "entity_group");
    let reply = ready(mongo.command(command)).unwrap();
    let text = format!("{reply:?}");
    assert!(text.contains("(\"count\", Int(77))"), "{text}");
    assert!(text.contains("(\"sum\", Doc("), "{text}");
}

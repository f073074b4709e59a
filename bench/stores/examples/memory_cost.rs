//! What an operation on the store in memory takes, the client's part included:
//! `cargo run --release -p stores --example memory_cost`.
#![allow(clippy::print_stdout, reason = "what it is for")]

use entity::{Client, Entity, Failure, NoWait, Policy, Range, Schema, Value};
use links::link::ready;
use std::sync::Arc;
use std::time::Instant;
use stores::{Db, Options, Store};

/// Users with four items each.
const USERS: i64 = 1_000;
/// Operations of each kind, after as many that are not counted.
const OPERATIONS: i64 = 50_000;

#[derive(Clone, Debug, PartialEq, Entity)]
struct Item {
    #[id]
    #[group]
    user_id: i64,
    #[id]
    item_no: i64,
    changes: i64,
    content: String,
}

fn item(user_id: i64, item_no: i64) -> Item {
    Item {
        user_id,
        item_no,
        changes: 0,
        content: "some text of an item".into(),
    }
}

/// Microseconds of an operation, on average.
fn time(
    client: &mut Client<Db, NoWait>,
    mut operation: impl FnMut(&mut Client<Db, NoWait>, i64) -> Result<(), Failure>,
) -> Result<f64, Failure> {
    for n in 0..OPERATIONS {
        operation(client, n)?;
    }
    let began = Instant::now();
    for n in OPERATIONS..2 * OPERATIONS {
        operation(client, n)?;
    }
    Ok(began.elapsed().as_secs_f64() * 1e6 / OPERATIONS as f64)
}

fn main() -> Result<(), Failure> {
    let mut schema = Schema::new();
    schema.add(Item::TYPE).map_err(Failure::Refused)?;
    let store = Store::open("memory:", Options::default(), Arc::new(schema))?;
    let db = ready(store.connect(1))?;
    let mut client = Client::new(db, NoWait::default(), Policy::default(), 1, 1);
    for user in 0..USERS {
        for number in 0..4 {
            ready(client.create(&mut item(user, number)))?;
        }
    }
    let get = time(&mut client, |client, n| {
        ready(client.get::<Item>(&(n % USERS, n % 4))).map(drop)
    })?;
    let update = time(&mut client, |client, n| {
        ready(client.update(&item(n % USERS, n % 4)))
    })?;
    let range = time(&mut client, |client, n| {
        let range = Range {
            prefix: &[Value::Int(n % USERS)],
            from: None,
            to: None,
            limit: 1,
        };
        ready(client.range::<Item>(range)).map(drop)
    })?;
    let changed = time(&mut client, |client, n| ready(change(client, n % USERS)))? / 8.0;
    let create = time(&mut client, |client, n| {
        ready(client.create(&mut item(n % USERS, 100 + n / USERS)))
    })?;
    let delete = time(&mut client, |client, n| {
        ready(client.delete::<Item>(&(n % USERS, 100 + n / USERS)))
    })?;
    for (name, us) in [
        ("get", get),
        ("update", update),
        ("range of one row", range),
        ("in a transaction of eight", changed),
        ("create", create),
        ("delete", delete),
    ] {
        println!("{name:<26} {us:.2} us");
    }
    Ok(())
}

async fn change(client: &mut Client<Db, NoWait>, user: i64) -> Result<(), Failure> {
    let changed = client.run_in::<Item, _>(&user, async |tx| {
        for number in 0..4 {
            let found = tx.get::<Item>(&(user, number)).await?;
            let mut item = found.ok_or(Failure::Stopped("an item is missing"))?;
            item.changes += 1;
            tx.update(&item).await?;
        }
        Ok(())
    });
    changed.await
}

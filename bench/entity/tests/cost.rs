//! What an operation on the store in memory allocates, the client's part included.

use allocations::{Counting, count};
use entity::kv::{Layer, Settings};
use entity::memory::{Client as Records, Memory};
use entity::{Client, Entity, Failure, NoWait, Policy, Range, Value};
use std::cell::RefCell;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[derive(Clone, Debug, PartialEq, Entity)]
struct Item {
    #[id]
    #[group]
    user: i64,
    #[id]
    number: i64,
    content: String,
    changes: i64,
}

fn ready<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    match future
        .as_mut()
        .poll(&mut Context::from_waker(Waker::noop()))
    {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("a store in memory waits for nothing"),
    }
}

type Memories = Client<Layer<Records<Rc<RefCell<Memory>>>>, NoWait>;

fn client() -> Memories {
    let memory = Rc::new(RefCell::new(Memory::new()));
    let db = Layer::new(Records::new(memory), Settings::default());
    Client::new(db, NoWait::default(), Policy::default(), 1, 1)
}

fn item(user: i64, number: i64) -> Item {
    Item {
        user,
        number,
        content: "some text of an item".into(),
        changes: 0,
    }
}

/// Allocations of an operation, on average over 100.
fn mean(mut operation: impl FnMut(i64)) -> f64 {
    let before = count();
    for n in 0..100 {
        operation(n);
    }
    (count() - before) as f64 / 100.0
}

#[test]
fn an_operation_takes_six_allocations() {
    let mut client = client();
    for user in 0..100 {
        for number in 0..4 {
            ready(client.create(&mut item(user, number))).unwrap();
        }
    }
    let mut made = item(0, 0);
    let create = mean(|n| {
        (made.user, made.number) = (n, 100);
        ready(client.create(&mut made)).unwrap();
    });
    let get = mean(|n| assert!(ready(client.get::<Item>(&(n, 1))).unwrap().is_some()));
    let update = mean(|n| {
        made.user = n;
        ready(client.update(&made)).unwrap();
    });
    // A transaction of eight operations.
    let changed = mean(|n| ready(change(&mut client, n)).unwrap()) / 8.0;
    let delete = mean(|n| ready(client.delete::<Item>(&(n, 100))).unwrap());
    let mut first_of = |n| {
        let range = Range {
            prefix: &[Value::Int(n)],
            from: None,
            to: None,
            limit: 1,
        };
        assert_eq!(ready(client.range::<Item>(range)).unwrap().len(), 1);
    };
    // Buffers grow with the first one.
    first_of(0);
    let range = mean(first_of);
    let all = [create, get, update, changed, delete, range];
    assert!(all.iter().all(|&mean| mean <= 6.0), "{all:?}");
}

async fn change(client: &mut Memories, user: i64) -> Result<(), Failure> {
    let changed = client.run_in::<Item, _>(&user, async |tx| {
        for number in 0..4 {
            let found = tx.get::<Item>(&(user, number)).await?;
            let mut item = found.ok_or_else(|| Failure::Missing("item".into()))?;
            item.changes += 1;
            tx.update(&item).await?;
        }
        Ok(())
    });
    changed.await
}

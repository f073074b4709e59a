//! The narrow path: four items of one group are updated in one transaction, in both forms of the
//! store in memory.

use entity::kv::{Layer, Packed, Settings};
use entity::memory::{Cells, Client as Records, Memory};
use entity::{Client, Entity, EntityDb, Failure, NoWait, Policy};
use std::cell::RefCell;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

#[derive(Clone, Debug, PartialEq, Entity)]
struct PersonalItem {
    #[id]
    #[group]
    user: i64,
    #[id]
    number: i64,
    content: String,
    changes: i64,
}

/// The result of a future that waits for nothing.
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

async fn narrow(db: impl EntityDb) -> Result<(), Failure> {
    let mut client = Client::new(db, NoWait::default(), Policy::default(), 1, 1);
    for number in 0..4 {
        let mut item = PersonalItem {
            user: 7,
            number,
            content: "text".into(),
            changes: 0,
        };
        client.create(&mut item).await?;
    }
    for _ in 0..3 {
        let changed = client.run_in::<PersonalItem, _>(&7, async |tx| {
            for number in 0..4 {
                let found = tx.get::<PersonalItem>(&(7, number)).await?;
                let mut item = found.ok_or_else(|| Failure::Missing("item".into()))?;
                item.changes += 1;
                tx.update(&item).await?;
            }
            Ok(4)
        });
        assert_eq!(changed.await?, 4);
    }
    for number in 0..4 {
        let item = client.get::<PersonalItem>(&(7, number)).await?;
        assert_eq!(item.map(|item| item.changes), Some(3));
    }
    assert_eq!(client.tally().runs, 7);
    Ok(())
}

#[test]
fn items_of_a_group_are_updated_together() {
    let memory = Rc::new(RefCell::new(Memory::new()));
    let records = Layer::new(Records::new(memory.clone()), Settings::default());
    ready(narrow(records)).unwrap();
    let packed = Layer::new(Packed::new(Cells::new(memory)), Settings::default());
    ready(narrow(packed)).unwrap();
}

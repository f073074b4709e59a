//! Clients of a key-value store that interleave between any two of its calls, in many orders: what
//! exists is found by its index, updates are not lost, and lost answers are resolved.

#![allow(
    clippy::unwrap_used,
    reason = "a test file whose helpers are not test functions"
)]

use entity::conformance::{OthersFirst, interleave};
use entity::kv::{Groups, KvAbilities, Layer, Packed, Place, Record, Settings, TransactionalKv};
use entity::memory::{Cells, Client as Records, Loss, Memory};
use entity::{Client, Entity, Failure, NoWait, Outcome, Pace, Policy, Stamp, Value};
use std::cell::RefCell;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

type Store = Rc<RefCell<Memory>>;

#[derive(Clone, Debug, PartialEq, Entity)]
#[entity(index(color))]
struct Thing {
    #[id]
    id: i64,
    color: i64,
    count: i64,
}

/// A store that lets others go first before each of its calls, and may have no scans.
struct Polite<K> {
    kv: K,
    scans: bool,
}

impl<K: TransactionalKv> TransactionalKv for Polite<K> {
    type Txn = K::Txn;

    fn abilities(&self) -> KvAbilities {
        KvAbilities {
            scans: self.scans,
            ..self.kv.abilities()
        }
    }

    async fn begin(&mut self, groups: Groups<'_>) -> Result<K::Txn, Failure> {
        OthersFirst.sleep_us(0).await;
        self.kv.begin(groups).await
    }

    async fn get(
        &mut self,
        txn: &mut K::Txn,
        place: Place<'_>,
    ) -> Result<Option<Vec<u8>>, Failure> {
        OthersFirst.sleep_us(0).await;
        self.kv.get(txn, place).await
    }

    async fn scan(
        &mut self,
        txn: &mut K::Txn,
        from: Place<'_>,
        to: &[u8],
        limit: usize,
        found: &mut Vec<Record>,
    ) -> Result<(), Failure> {
        assert!(self.scans);
        OthersFirst.sleep_us(0).await;
        self.kv.scan(txn, from, to, limit, found).await
    }

    async fn put(
        &mut self,
        txn: &mut K::Txn,
        place: Place<'_>,
        value: &[u8],
    ) -> Result<(), Failure> {
        self.kv.put(txn, place, value).await
    }

    async fn delete(&mut self, txn: &mut K::Txn, place: Place<'_>) -> Result<(), Failure> {
        self.kv.delete(txn, place).await
    }

    async fn commit(&mut self, txn: K::Txn, stamp: Option<Stamp>) -> Result<(), Failure> {
        OthersFirst.sleep_us(0).await;
        self.kv.commit(txn, stamp).await
    }

    async fn abort(&mut self, txn: K::Txn) -> Result<(), Failure> {
        self.kv.abort(txn).await
    }

    async fn outcome(&mut self, stamp: Stamp) -> Result<Outcome, Failure> {
        OthersFirst.sleep_us(0).await;
        self.kv.outcome(stamp).await
    }
}

trait Loses: TransactionalKv {
    fn lose_next(&mut self, loss: Loss);
}

impl Loses for Records<Store> {
    fn lose_next(&mut self, loss: Loss) {
        Records::lose_next(self, loss);
    }
}

impl Loses for Packed<Cells<Store>> {
    fn lose_next(&mut self, loss: Loss) {
        self.cells().lose_next(loss);
    }
}

fn run<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut context) {
            return value;
        }
    }
}

fn client<K: Loses>(kv: K, name: u64, scans: bool) -> Client<Layer<Polite<K>>, NoWait> {
    let settings = Settings {
        fold: false,
        ..Settings::default()
    };
    let db = Layer::new(Polite { kv, scans }, settings);
    let policy = Policy {
        attempts: 10_000,
        ..Policy::default()
    };
    Client::new(db, NoWait::default(), policy, name, name)
}

/// Creates, changes and deletes one thing again and again. Returns how often it changed it.
async fn work<K: Loses>(kv: K, name: u64, scans: bool, loses: bool) -> i64 {
    let mut client = client(kv, name, scans);
    let mut changes = 0;
    for n in 0..12 {
        if loses && n % 4 == 0 {
            let loss = [Loss::OfAnswer, Loss::OfRequest][n / 4 % 2];
            client.db().kv().kv.lose_next(loss);
        }
        let mut thing = Thing {
            id: 1,
            color: i64::from(name == 1),
            count: 0,
        };
        let result = match n % 3 {
            0 => client.delete::<Thing>(&1).await,
            2 => client.create(&mut thing).await,
            _ => {
                let changed = client.run_in::<Thing, _>(&2, async |tx| {
                    let found = tx.get::<Thing>(&2).await?;
                    let mut thing = found.ok_or_else(|| Failure::Missing("thing".into()))?;
                    thing.count += 1;
                    tx.update(&thing).await
                });
                let changed = changed.await;
                changes += i64::from(changed.is_ok());
                changed
            }
        };
        match result {
            Ok(()) | Err(Failure::Exists(_) | Failure::Missing(_)) => {}
            Err(failure) => panic!("{failure}"),
        }
        for color in 0..2 {
            let found = client
                .by_index::<Thing>("color", &[Value::Int(color)])
                .await;
            let found = found.expect("an index can be read");
            assert!(found.iter().all(|thing| thing.color == color), "{found:?}");
        }
    }
    changes
}

fn race<K: Loses>(seed: u64, scans: bool, loses: bool, open: impl Fn(Store) -> K) {
    let store: Store = Rc::default();
    run(async {
        let mut first = client(open(store.clone()), 99, scans);
        let mut thing = Thing {
            id: 2,
            color: 5,
            count: 0,
        };
        first.create(&mut thing).await.unwrap();
        let works = (1..4).map(|name| {
            let work = work(open(store.clone()), name, scans, loses);
            Box::pin(work) as Pin<Box<dyn Future<Output = i64>>>
        });
        let changes = interleave(seed, works.collect()).await;
        let counted = first.get::<Thing>(&2).await.unwrap().unwrap();
        let changes: i64 = changes.iter().sum();
        assert_eq!(counted.count, changes, "seed {seed}: updates");
        let there = first.get::<Thing>(&1).await.unwrap();
        let mut found = Vec::new();
        for color in 0..2 {
            let key = [Value::Int(color)];
            found.extend(first.by_index::<Thing>("color", &key).await.unwrap());
        }
        assert_eq!(found, Vec::from_iter(there), "seed {seed}: the index");
    });
}

#[test]
fn what_exists_is_found_by_its_index() {
    for seed in 0..150 {
        for loses in [false, true] {
            race(seed, seed % 2 == 0, loses, Records::new);
            race(seed, seed % 3 == 0, loses, |store| {
                Packed::new(Cells::new(store))
            });
        }
    }
}

/// One client deletes a thing while another one creates it again. Returns whether it is there.
fn replace<K: Loses>(seed: u64, scans: bool, open: impl Fn(Store) -> K) -> bool {
    let store: Store = Rc::default();
    let thing = Thing {
        id: 1,
        color: 3,
        count: 0,
    };
    run(async {
        let mut first = client(open(store.clone()), 1, scans);
        let mut second = client(open(store.clone()), 2, scans);
        let mut third = client(open(store.clone()), 3, scans);
        first.create(&mut thing.clone()).await.unwrap();
        let deletes = async { first.delete::<Thing>(&1).await };
        let creates = async { second.create(&mut thing.clone()).await };
        type Step<'a> = Pin<Box<dyn Future<Output = Result<(), Failure>> + 'a>>;
        let both: Vec<Step<'_>> = vec![Box::pin(deletes), Box::pin(creates)];
        let results = interleave(seed, both).await;
        assert_eq!(results[0], Ok(()), "seed {seed}");
        assert!(matches!(results[1], Ok(()) | Err(Failure::Exists(_))));
        let there = third.get::<Thing>(&1).await.unwrap();
        assert_eq!(there.is_some(), results[1].is_ok(), "seed {seed}");
        let key = [Value::Int(3)];
        let found = third.by_index::<Thing>("color", &key).await.unwrap();
        assert_eq!(found, Vec::from_iter(there), "seed {seed}: the index");
        !found.is_empty()
    })
}

#[test]
fn who_deletes_leaves_the_entry_of_a_new_entity() {
    let mut there = 0;
    for seed in 0..300 {
        there += usize::from(replace(seed, seed % 2 == 0, Records::new));
        let open = |store| Packed::new(Cells::new(store));
        there += usize::from(replace(seed, seed % 3 == 0, open));
    }
    assert!((30..570).contains(&there), "both orders are seen: {there}");
}

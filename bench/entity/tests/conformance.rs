//! The conformance suite on the store in memory, in all of its forms, and on its planted faults:
//! each is found by exactly its check.

use entity::conformance::{Bed, Check, Verdict};
use entity::kv::{Layer, Packed, Settings};
use entity::memory::{Cells, Client as Records, Fault, Loss, Memory};
use entity::{EntityDb, Failure};
use std::cell::RefCell;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Waker};

type Store = Rc<RefCell<Memory>>;

/// The result of a future that waits for nothing but its own turn.
fn ready<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let std::task::Poll::Ready(value) = future.as_mut().poll(&mut context) {
            return value;
        }
    }
}

struct InMemory<O> {
    store: Store,
    clients: u64,
    open: O,
}

impl<O> InMemory<O> {
    fn new(memory: Memory, open: O) -> InMemory<O> {
        InMemory {
            store: Rc::new(RefCell::new(memory)),
            clients: 0,
            open,
        }
    }
}

/// A connection whose answers can be lost.
trait Loses: EntityDb {
    fn lose_next(&mut self, loss: Loss);
}

impl Loses for Layer<Records<Store>> {
    fn lose_next(&mut self, loss: Loss) {
        self.kv().lose_next(loss);
    }
}

impl Loses for Layer<Packed<Cells<Store>>> {
    fn lose_next(&mut self, loss: Loss) {
        self.kv().cells().lose_next(loss);
    }
}

impl<D: Loses, O: Fn(Store) -> D> Bed for InMemory<O> {
    type Db = D;

    async fn open(&mut self) -> Result<D, Failure> {
        Ok((self.open)(self.store.clone()))
    }

    fn client(&mut self) -> u64 {
        self.clients += 1;
        self.clients
    }

    fn lose_next(&mut self, db: &mut D, loss: Loss) -> bool {
        db.lose_next(loss);
        true
    }
}

fn records(settings: Settings) -> impl Fn(Store) -> Layer<Records<Store>> {
    move |store| Layer::new(Records::new(store), settings)
}

fn packed(settings: Settings) -> impl Fn(Store) -> Layer<Packed<Cells<Store>>> {
    move |store| Layer::new(Packed::new(Cells::new(store)), settings)
}

const APART: Settings = Settings {
    fold: false,
    shows_dangling: false,
};

/// The checks that did not pass.
fn found(mut bed: impl Bed) -> Vec<(Check, Verdict)> {
    let verdicts = Check::ALL.map(|check| (check, ready(check.run(&mut bed))));
    let missed = verdicts.into_iter().filter(|(_, v)| *v != Verdict::Passed);
    missed.collect()
}

#[test]
fn all_forms_of_the_store_pass() {
    let folded = Settings::default();
    assert_eq!(found(InMemory::new(Memory::new(), records(folded))), []);
    assert_eq!(found(InMemory::new(Memory::new(), records(APART))), []);
    assert_eq!(found(InMemory::new(Memory::new(), packed(APART))), []);
}

#[test]
fn each_planted_fault_is_found_by_exactly_its_check() {
    let planted = [
        (Fault::LostUpdate, Check::LostUpdate),
        (Fault::TornGroup, Check::Atomicity),
        (Fault::StaleRead, Check::FreshRead),
        (Fault::DroppedAcknowledgement, Check::LostAnswer),
    ];
    for settings in [Settings::default(), APART] {
        for (fault, check) in planted {
            let memory = Memory::with_fault(fault);
            let found = found(InMemory::new(memory, records(settings)));
            let checks: Vec<Check> = found.iter().map(|(check, _)| *check).collect();
            assert_eq!(checks, [check], "{fault:?}: {found:?}");
            assert!(matches!(found[0].1, Verdict::Failed(_)), "{found:?}");
        }
    }
    let shows = Settings {
        shows_dangling: true,
        ..APART
    };
    for found in [
        found(InMemory::new(Memory::new(), records(shows))),
        found(InMemory::new(Memory::new(), packed(shows))),
    ] {
        let checks: Vec<Check> = found.iter().map(|(check, _)| *check).collect();
        assert_eq!(checks, [Check::DanglingEntry], "{found:?}");
    }
}

//! Cells, and the outcome of a commit whose answer was lost.

use super::*;
use crate::memory::{Cells, Loss, Memory};
use alloc::rc::Rc;
use base::Prng;
use core::cell::RefCell;
use core::pin::pin;
use core::task::{Context, Poll, Waker};

type Store = Rc<RefCell<Memory>>;

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

fn put(packed: &mut Packed<Cells<Store>>, key: &[u8], stamp: Stamp) -> Result<(), Failure> {
    ready(async {
        let mut txn = packed.begin(Groups::One(b"g")).await?;
        let place = Place { group: b"g", key };
        packed.put(&mut txn, place, key).await?;
        packed.commit(txn, Some(stamp)).await
    })
}

fn stamp(client: u64, sequence: u64) -> Stamp {
    Stamp { client, sequence }
}

#[test]
fn a_lost_answer_is_resolved_while_the_stamp_is_there() {
    for loss in [Loss::OfAnswer, Loss::OfRequest] {
        for others in [0, 1, 7, 8, 20] {
            let store = Store::default();
            let mut packed = Packed::new(Cells::new(store.clone()));
            let mut other = Packed::new(Cells::new(store));
            put(&mut packed, b"a", stamp(1, 1)).unwrap();
            packed.cells().lose_next(loss);
            let lost = put(&mut packed, b"b", stamp(1, 2));
            assert!(matches!(lost, Err(Failure::Unknown(_))));
            for n in 0..others {
                put(&mut other, b"c", stamp(2 + n, 1)).unwrap();
            }
            let wanted = match loss {
                _ if others >= 8 => Outcome::Unknown,
                Loss::OfAnswer => Outcome::Committed,
                Loss::OfRequest => Outcome::NotCommitted,
            };
            let outcome = ready(packed.outcome(stamp(1, 2)));
            assert_eq!(outcome, Ok(wanted), "{loss:?} {others}");
        }
    }
}

#[test]
fn a_lost_commit_cannot_pass_the_question_for_its_outcome() {
    let store = Store::default();
    let mut packed = Packed::new(Cells::new(store.clone()));
    put(&mut packed, b"a", stamp(1, 1)).unwrap();
    let version = ready(packed.load(b"g")).unwrap().version;
    packed.cells().lose_next(Loss::OfRequest);
    assert!(put(&mut packed, b"b", stamp(1, 2)).is_err());
    let late = packed.cell.clone();
    assert_eq!(
        ready(packed.outcome(stamp(1, 2))),
        Ok(Outcome::NotCommitted)
    );
    assert_eq!(ready(packed.cells().set(b"g", version, &late)), Ok(false));
}

#[test]
fn a_transaction_sees_its_writes_in_a_scan() {
    let mut packed = Packed::new(Cells::new(Store::default()));
    for key in [b"a", b"b", b"d"] {
        put(&mut packed, key, stamp(1, 1)).unwrap();
    }
    let mut txn = ready(packed.begin(Groups::One(b"g"))).unwrap();
    let place = |key| Place { group: b"g", key };
    ready(packed.delete(&mut txn, place(b"b"))).unwrap();
    ready(packed.put(&mut txn, place(b"c"), b"")).unwrap();
    ready(packed.put(&mut txn, place(b"a"), b"new")).unwrap();
    let mut scan = |from, to: &[u8], limit| {
        let mut found = Vec::new();
        ready(packed.scan(&mut txn, place(from), to, limit, &mut found)).unwrap();
        let keys = found.iter().flat_map(|(key, _)| key.iter());
        String::from_utf8(keys.copied().collect()).unwrap()
    };
    assert_eq!(scan(b"", b"z", 9), "acd");
    assert_eq!(scan(b"", b"z", 2), "ac");
    assert_eq!(scan(b"b", b"d", 9), "c");
    assert_eq!(scan(b"z", b"a", 9), "");
}

#[test]
fn broken_cells_are_refused() {
    let mut out = Vec::new();
    let writes = BTreeMap::from([
        (b"a".to_vec(), Some(b"1".to_vec())),
        (b"b".to_vec(), Some(Vec::new())),
    ]);
    Cell::default().next(stamp(1, 1), &writes, &mut out);
    assert_eq!(Cell::parse(out.clone()).unwrap().get(b"a"), Some(&b"1"[..]));
    let mut prng = Prng::new(2);
    for _ in 0..5_000 {
        let mut broken = out.clone();
        let at = prng.below(out.len() as u64) as usize;
        broken[at] = prng.next_u64() as u8;
        if let Ok(cell) = Cell::parse(broken) {
            cell.next(stamp(1, 1), &writes, &mut Vec::new());
        }
    }
    for length in [0, 5, 8, 9, 20, out.len() - 1] {
        assert!(Cell::parse(out[..length].to_vec()).is_err(), "{length}");
    }
}

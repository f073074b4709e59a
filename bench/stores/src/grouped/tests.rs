//! Both forms on a store that is a map.

use super::*;
use entity::kv::Packed;
use links::link::ready;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// A group: its head, and its records.
type Stored = (Vec<u8>, BTreeMap<Vec<u8>, Vec<u8>>);

/// A client of a map.
#[derive(Clone, Debug, Default)]
struct Map {
    groups: Rc<RefCell<BTreeMap<Vec<u8>, Stored>>>,
    calls: u64,
}

impl Grouped for Map {
    async fn read(
        &mut self,
        group: &[u8],
        part: Part<'_>,
        _: Option<&[u8]>,
        found: &mut Vec<Record>,
    ) -> Result<Vec<u8>, Failure> {
        self.calls += 1;
        let groups = self.groups.borrow();
        let Some((head, records)) = groups.get(group) else {
            return Ok(Vec::new());
        };
        let is_in = |key: &[u8]| match part {
            Part::Head => false,
            Part::Record(own) => own == key,
            Part::Range(from, to) => from <= key && key < to,
        };
        let records = records.iter().filter(|(key, _)| is_in(key));
        found.extend(records.map(|(key, value)| (key.clone(), value.clone())));
        Ok(head.clone())
    }

    async fn change(&mut self, group: &[u8], change: &Change<'_>) -> Result<bool, Failure> {
        self.calls += 1;
        let mut groups = self.groups.borrow_mut();
        let (head, records) = groups.entry(group.to_vec()).or_default();
        let version = Head::split(head).map_or(0, |(head, _)| head.version());
        if version != change.version {
            return Ok(false);
        }
        *head = change.head.to_vec();
        for (key, value) in &change.puts {
            records.insert(key.to_vec(), value.to_vec());
        }
        for key in &change.deletes {
            records.remove(*key);
        }
        Ok(true)
    }

    fn is_durable(&self) -> bool {
        false
    }

    fn round_trips(&self) -> u64 {
        self.calls
    }
}

fn place(key: &[u8]) -> Place<'_> {
    Place { group: b"g", key }
}

fn stamp(client: u64, sequence: u64) -> Option<Stamp> {
    Some(Stamp { client, sequence })
}

async fn put<K: TransactionalKv>(kv: &mut K, key: &[u8], by: Option<Stamp>) -> Result<(), Failure> {
    let mut txn = kv.begin(Groups::One(b"g")).await?;
    kv.put(&mut txn, place(key), key).await?;
    kv.commit(txn, by).await
}

/// Two transactions of which the later one fails, and lost answers.
async fn conflicts<K: TransactionalKv>(kv: &mut K, other: &mut K, lose: impl Fn(&mut K, Loss)) {
    put(kv, b"a", stamp(1, 1)).await.unwrap();
    put(kv, b"b", stamp(1, 2)).await.unwrap();
    let mut first = kv.begin(Groups::One(b"g")).await.unwrap();
    let mut found = Vec::new();
    let scanned = kv.scan(&mut first, place(b""), b"z", 9, &mut found);
    scanned.await.unwrap();
    assert_eq!(found.len(), 2);
    put(other, b"c", stamp(2, 1)).await.unwrap();
    kv.delete(&mut first, place(b"a")).await.unwrap();
    let late = kv.commit(first, stamp(1, 3)).await;
    assert!(matches!(late, Err(Failure::Conflict(_))), "{late:?}");
    for (sequence, loss) in [(4, Loss::OfAnswer), (5, Loss::OfRequest)] {
        for others in [0, 1, 30] {
            let own = stamp(1, 100 * sequence + others);
            lose(kv, loss);
            let lost = put(kv, b"d", own).await;
            assert!(matches!(lost, Err(Failure::Unknown(_))), "{lost:?}");
            for n in 0..others {
                put(other, b"e", stamp(2, 100 + n)).await.unwrap();
            }
            let wanted = match loss {
                Loss::OfAnswer => Outcome::Committed,
                Loss::OfRequest => Outcome::NotCommitted,
            };
            let outcome = kv.outcome(own.unwrap()).await.unwrap();
            assert_eq!(outcome, wanted, "{loss:?} {others}");
        }
    }
    let nobody = kv.outcome(Stamp::default()).await.unwrap();
    assert_eq!(nobody, Outcome::Unknown);
    assert!(kv.begin(Groups::Several).await.is_err());
}

#[test]
fn both_forms_find_conflicts_and_lost_commits() {
    let map = Map::default();
    let mut rows = (Rows::new(map.clone()), Rows::new(map));
    ready(conflicts(&mut rows.0, &mut rows.1, |kv, loss| {
        kv.lose_next(loss);
    }));
    let map = Map::default();
    let open = || Packed::new(Cells::new(map.clone()));
    let mut cells = (open(), open());
    ready(conflicts(&mut cells.0, &mut cells.1, |kv, loss| {
        kv.cells().lose_next(loss);
    }));
}

#[test]
fn rows_read_what_is_asked_for_and_one_state() {
    let map = Map::default();
    let (mut rows, mut other) = (Rows::new(map.clone()), Rows::new(map));
    ready(async {
        put(&mut rows, b"a", stamp(1, 1)).await.unwrap();
        put(&mut rows, b"b", stamp(1, 2)).await.unwrap();
        let before = rows.round_trips();
        let mut txn = rows.begin(Groups::One(b"g")).await.unwrap();
        for key in [b"a", b"a"] {
            let found = rows.get(&mut txn, place(key)).await.unwrap();
            assert_eq!(found.unwrap(), b"a");
        }
        assert_eq!(rows.round_trips() - before, 1);
        put(&mut other, b"c", stamp(2, 1)).await.unwrap();
        let second = rows.get(&mut txn, place(b"b")).await;
        assert!(matches!(second, Err(Failure::Conflict(_))), "{second:?}");
    });
}

#[test]
fn a_torn_head_is_refused() {
    let map = Map::default();
    let torn = (vec![1, 2, 3], BTreeMap::new());
    map.groups.borrow_mut().insert(b"g".to_vec(), torn);
    let mut rows = Rows::new(map);
    let refused = ready(put(&mut rows, b"a", stamp(1, 1)));
    assert!(matches!(refused, Err(Failure::Refused(_))), "{refused:?}");
}

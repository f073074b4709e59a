//! The store against a plain map of version lists: random writes, reads, scans, collection,
//! checkpoints and digests over many seeds, with every invariant checked on the way.

use base::{DatabaseId, IndexId, KeyRange, KeyRef, Prng, Slot, Time, Ts};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use store::{ByDatabase, CheckpointCursor, CheckpointRow, Horizons, Store, Window, Write};

type Place = (IndexId, Slot, Vec<u8>);
type Seen = Vec<(Vec<u8>, Vec<u8>, Ts)>;

/// Commit timestamp and row; `None` is a tombstone.
type Version = (Ts, Option<Vec<u8>>);

/// Every version of every row, oldest first.
#[derive(Default)]
struct Model {
    rows: BTreeMap<Place, Vec<Version>>,
}

impl Model {
    fn at(&self, place: &Place, at: Ts) -> Option<(Ts, &[u8])> {
        let versions = self.rows.get(place)?;
        let (ts, value) = versions.iter().rev().find(|(ts, _)| *ts <= at)?;
        value.as_deref().map(|value| (*ts, value))
    }

    fn scan(&self, index: IndexId, slot: Slot, window: Window<'_>, at: Ts) -> Seen {
        let inside = |key: &[u8]| {
            let low = if window.after {
                key > window.low
            } else {
                key >= window.low
            };
            low && window.high.is_none_or(|high| key < high)
        };
        let mut seen = Seen::new();
        for place in self.rows.keys() {
            if place.0 == index && place.1 == slot && inside(&place.2) {
                let visible = self.at(place, at);
                seen.extend(visible.map(|(ts, row)| (place.2.clone(), row.to_vec(), ts)));
            }
        }
        if window.reverse {
            seen.reverse();
        }
        seen
    }
}

/// How a test draws keys: short ones, long ones, ones that share their first bytes.
#[derive(Clone, Copy, Debug)]
enum Keys {
    Numbers(u64),
    SharedPrefix(u64),
    Wild(u64),
}

fn draw_key(prng: &mut Prng, keys: Keys) -> Vec<u8> {
    match keys {
        Keys::Numbers(count) => (prng.below(count) as u32).to_be_bytes().to_vec(),
        Keys::SharedPrefix(count) => {
            let mut key = b"customer-".to_vec();
            key.extend_from_slice(&(prng.below(count) as u16).to_be_bytes());
            key
        }
        Keys::Wild(count) => {
            // Bytes at both ends of the range, and prefixes of one another.
            let mut own = Prng::new(prng.below(count));
            let len = own.below(14) as usize;
            (0..len)
                .map(|_| [0x00, 0x01, 0xff][own.below(3) as usize])
                .collect()
        }
    }
}

struct Run {
    prng: Prng,
    keys: Keys,
    store: Store,
    model: Model,
    now: Ts,
    horizon: Ts,
}

impl Run {
    fn new(seed: u64) -> Run {
        let mut prng = Prng::new(seed);
        let count = [3, 40, 300, 3000][prng.below(4) as usize];
        let keys = match prng.below(3) {
            0 => Keys::Numbers(count),
            1 => Keys::SharedPrefix(count),
            _ => Keys::Wild(count),
        };
        let (store, model) = (Store::new(), Model::default());
        Run {
            prng,
            keys,
            store,
            model,
            now: Ts(10),
            horizon: Ts::ZERO,
        }
    }

    fn place(&mut self) -> Place {
        let index = IndexId(1 + self.prng.below(2) as u32);
        let slot = Slot([0, 7, 1023][self.prng.below(3) as usize]);
        (index, slot, draw_key(&mut self.prng, self.keys))
    }

    fn write(&mut self) {
        let place = self.place();
        let present = self.model.at(&place, Ts::MAX).is_some();
        let len_max = if self.prng.below(20) == 0 { 3000 } else { 40 };
        let len = self.prng.below(len_max) as usize;
        let row = vec![self.prng.next_u64() as u8; len];
        let write = match (present, self.prng.below(3)) {
            (false, 0) => Write::Put(row),
            (false, _) => Write::Insert(row),
            (true, 0) => Write::Delete,
            (true, _) => Write::Put(row),
        };
        self.now.0 += 1 + self.prng.below(3);
        let value = match &write {
            Write::Insert(row) | Write::Put(row) => Some(row.clone()),
            Write::Delete | Write::Formula(_) => None,
        };
        self.store.apply(
            KeyRef::new(place.0, place.1, &place.2),
            &write,
            self.now,
            self.horizon,
        );
        self.model
            .rows
            .entry(place)
            .or_default()
            .push((self.now, value));
    }

    fn read_at(&mut self) -> Ts {
        match self.prng.below(3) {
            0 => Ts::MAX,
            _ => Ts(self
                .prng
                .between(self.horizon.0 as i64, self.now.0 as i64 + 1) as u64),
        }
    }

    fn read(&mut self) {
        let (place, at) = (self.place(), self.read_at());
        let found = self.store.get(KeyRef::new(place.0, place.1, &place.2), at);
        let found = found.map(|version| (version.commit_ts, version.value));
        assert_eq!(found, self.model.at(&place, at), "{place:?} at {at}");
    }

    fn scan(&mut self) {
        let (place, at) = (self.place(), self.read_at());
        let high = draw_key(&mut self.prng, self.keys);
        let window = Window {
            low: if self.prng.below(4) == 0 {
                &[]
            } else {
                &place.2
            },
            after: self.prng.below(2) == 0,
            high: (self.prng.below(3) > 0).then_some(&high),
            reverse: self.prng.below(2) == 0,
        };
        let expected = self.model.scan(place.0, place.1, window, at);
        assert_eq!(
            self.scan_in_steps(place.0, place.1, window, at),
            expected,
            "{window:?}"
        );
        assert_eq!(
            self.store.first(place.0, place.1, window, at),
            expected.first().cloned()
        );
    }

    /// Scans as a shard does: a few rows per call, resuming after the last key.
    fn scan_in_steps(&mut self, index: IndexId, slot: Slot, window: Window<'_>, at: Ts) -> Seen {
        let mut seen = Seen::new();
        let mut last: Option<Vec<u8>> = None;
        loop {
            let window = match &last {
                Some(key) if window.reverse => Window {
                    high: Some(key),
                    ..window
                },
                Some(key) => Window {
                    low: key,
                    after: true,
                    ..window
                },
                None => window,
            };
            let mut left = 1 + self.prng.below(100);
            let flow = self
                .store
                .scan_next(index, slot, window, at, &mut |key, row, ts| {
                    seen.push((key.to_vec(), row.to_vec(), ts));
                    left -= 1;
                    if left == 0 {
                        ControlFlow::Break(())
                    } else {
                        ControlFlow::Continue(())
                    }
                });
            if flow.is_continue() {
                return seen;
            }
            last = seen.last().map(|(key, ..)| key.clone());
        }
    }

    fn collect(&mut self) {
        self.horizon = Ts(self.prng.between(self.horizon.0 as i64, self.now.0 as i64) as u64);
        let budget = 1 + self.prng.below(50) as usize;
        assert!(self.store.collect(&Horizons::at(self.horizon), budget) <= budget);
    }

    fn check_all(&mut self) {
        self.store.validate();
        let live = |place: &&Place| self.model.at(place, Ts::MAX).is_some();
        let rows = self.model.rows.keys().filter(live).count();
        assert_eq!(self.store.counts().rows, rows);
        for place in self.model.rows.keys() {
            for at in [self.horizon, Ts((self.horizon.0 + self.now.0) / 2), Ts::MAX] {
                let found = self.store.get(KeyRef::new(place.0, place.1, &place.2), at);
                let found = found.map(|version| (version.commit_ts, version.value));
                assert_eq!(found, self.model.at(place, at), "{place:?} at {at}");
            }
        }
    }
}

#[test]
#[expect(
    clippy::print_stdout,
    clippy::disallowed_macros,
    reason = "a failing run shows what it drew"
)]
fn random_runs_equal_the_model() {
    for seed in 0..120 {
        let mut run = Run::new(seed);
        println!("seed {seed}: {:?}", run.keys);
        for step in 0..1500 {
            match run.prng.below(20) {
                0..12 => run.write(),
                12..16 => run.read(),
                16..19 => run.scan(),
                _ => run.collect(),
            }
            if step % 250 == 249 {
                run.check_all();
            }
        }
        // When nobody reads any more, only the newest versions are left.
        while run.store.collect(&Horizons::at(Ts::MAX), 64) == 64 {}
        run.horizon = run.now;
        run.check_all();
        assert_eq!(run.store.counts().versions, run.store.counts().rows);
        assert_eq!(run.store.expiring(), 0);
    }
}

#[test]
fn rows_that_come_and_go_leave_nothing() {
    for seed in 0..12 {
        let mut prng = Prng::new(seed);
        let mut store: Store = Store::new();
        let (index, slot) = (IndexId(1), Slot(3));
        let mut keys: Vec<Vec<u8>> = (0..20_000u32)
            .map(|n| n.wrapping_mul(7919).to_be_bytes().to_vec())
            .collect();
        if seed % 2 == 0 {
            keys.sort();
        }
        for (i, key) in keys.iter().enumerate() {
            let write = Write::Insert(vec![1; prng.below(30) as usize]);
            store.apply(
                KeyRef::new(index, slot, key),
                &write,
                Ts(i as u64 + 1),
                Ts::MAX,
            );
        }
        store.validate();
        for i in (1..keys.len()).rev() {
            keys.swap(i, prng.below(i as u64 + 1) as usize);
        }
        if seed % 3 == 0 {
            keys.sort();
        }
        for (i, key) in keys.iter().enumerate() {
            store.apply(
                KeyRef::new(index, slot, key),
                &Write::Delete,
                Ts(100_000 + i as u64),
                Ts::MAX,
            );
            store.collect(&Horizons::at(Ts::MAX), 2);
            if i % 2000 == 0 {
                store.validate();
            }
        }
        store.validate();
        assert_eq!(store.counts(), store::Counts::default());
        assert_eq!(store.next_slot(index, Slot(0)), None);
        assert_eq!(store.footprint_bytes(), 0);
    }
}

#[test]
fn checkpoint_under_writes_and_redo_give_the_same_rows() {
    for seed in 0..60 {
        let mut run = Run::new(seed);
        for _ in 0..500 {
            run.write();
        }
        // The journal from the start of the checkpoint on.
        let mut journal: Vec<(Place, Write, Ts)> = Vec::new();
        let mut loaded: Store = Store::new();
        let mut cursor = CheckpointCursor::default();
        let mut previous: Option<Place> = None;
        loop {
            let done = run.store.checkpoint_next(&mut cursor, 300, &mut |row| {
                let place = (row.index, row.slot, row.key.to_vec());
                assert!(
                    previous.as_ref().is_none_or(|before| *before < place),
                    "in order"
                );
                previous = Some(place);
                loaded.load(row);
            });
            if done {
                break;
            }
            for _ in 0..run.prng.below(20) {
                let before = run.now;
                run.write();
                let newest = run.model.rows.iter().find_map(|(place, versions)| {
                    let (ts, value) = versions.last()?;
                    (*ts > before).then(|| (place.clone(), value.clone(), *ts))
                });
                let (place, value, ts) = newest.expect("one row was written");
                journal.push((place, value.map_or(Write::Delete, Write::Put), ts));
            }
            run.collect();
        }
        for (place, write, ts) in &journal {
            loaded.redo(KeyRef::new(place.0, place.1, &place.2), write, *ts);
        }
        loaded.collect(&Horizons::at(Ts::MAX), usize::MAX);
        loaded.validate();
        assert_eq!(loaded.counts().rows, run.store.counts().rows, "seed {seed}");
        for index in [IndexId(1), IndexId(2)] {
            let digest = |store: &Store| store.digest(index, None, &KeyRange::all(), Ts::MAX);
            assert_eq!(digest(&loaded), digest(&run.store), "seed {seed}");
        }
        // A second replay of the whole journal changes nothing that is still there.
        for (place, write, ts) in &journal {
            let newest = loaded.newest_ts(KeyRef::new(place.0, place.1, &place.2));
            if newest != Ts::ZERO {
                assert!(!loaded.redo(KeyRef::new(place.0, place.1, &place.2), write, *ts));
            }
        }
    }
}

#[test]
fn digests_add_up_and_see_every_change() {
    let mut run = Run::new(5);
    run.keys = Keys::Numbers(500);
    for _ in 0..2000 {
        run.write();
    }
    let index = IndexId(1);
    let all = run.store.digest(index, None, &KeyRange::all(), Ts::MAX);
    let slots = [Slot(0), Slot(7), Slot(1023)];
    let middle = 250u32.to_be_bytes().to_vec();
    let halves = [
        KeyRange {
            low: Vec::new(),
            high: Some(middle.clone()),
        },
        KeyRange {
            low: middle,
            high: None,
        },
    ];
    let parts = slots
        .iter()
        .flat_map(|slot| halves.iter().map(move |range| (*slot, range)));
    let sum = parts.fold(0u64, |sum, (slot, range)| {
        sum.wrapping_add(run.store.digest(index, Some(slot), range, Ts::MAX))
    });
    assert_eq!(sum, all);
    let past = run.now;
    let before = run.store.digest(index, None, &KeyRange::all(), past);
    let key = 1u32.to_be_bytes();
    run.store.apply(
        KeyRef::new(index, Slot(7), &key),
        &Write::Put(vec![9]),
        Ts(past.0 + 1),
        Ts::ZERO,
    );
    assert_ne!(
        run.store.digest(index, None, &KeyRange::all(), Ts::MAX),
        all
    );
    assert_eq!(
        run.store.digest(index, None, &KeyRange::all(), past),
        before,
        "the past stays"
    );
}

#[test]
fn dropped_indexes_are_freed_in_steps() {
    let mut store: Store = Store::new();
    for n in 0..3000u32 {
        let slot = Slot((n % 3) as u16);
        let (key, row) = (n.to_be_bytes(), Write::Insert(vec![0; 20]));
        store.apply(
            KeyRef::new(IndexId(1 + n % 2), slot, &key),
            &row,
            Ts(u64::from(n) + 1),
            Ts::MAX,
        );
    }
    store.drop_index(IndexId(1));
    store.drop_index(IndexId(9));
    store.validate();
    assert_eq!(store.indexes(), [IndexId(2)]);
    assert_eq!(
        store.get(
            KeyRef::new(IndexId(1), Slot(0), &0u32.to_be_bytes()),
            Ts::MAX
        ),
        None
    );
    let (mut calls, mut freed) = (0, 0);
    while store.has_dropped() {
        let some = store.free_dropped(100);
        assert!(some < 100 + 64, "a page more at most: {some} rows");
        calls += 1;
        freed += some;
        store.validate();
        assert_eq!(store.counts().rows, 3000 - freed);
    }
    assert!((10..=20).contains(&calls), "{calls}");
    assert_eq!((freed, store.free_dropped(1)), (1500, 0));
}

#[test]
fn state_stays_with_its_row() {
    let mut store: Store<u32> = Store::new();
    let (index, slot) = (IndexId(1), Slot(0));
    for n in 0..1000u32 {
        let key = (n.wrapping_mul(7919) % 1000).to_be_bytes();
        store.apply(
            KeyRef::new(index, slot, &key),
            &Write::Put(vec![1]),
            Ts(u64::from(n) + 1),
            Ts::MAX,
        );
        *store
            .state_mut(KeyRef::new(index, slot, &key))
            .expect("just written") = n;
    }
    for n in (0..1000u32).step_by(3) {
        let key = (n.wrapping_mul(7919) % 1000).to_be_bytes();
        store.apply(
            KeyRef::new(index, slot, &key),
            &Write::Delete,
            Ts(u64::from(n) + 5000),
            Ts::MAX,
        );
    }
    store.collect(&Horizons::at(Ts::MAX), 1000);
    store.validate();
    for n in 0..1000u32 {
        let key = (n.wrapping_mul(7919) % 1000).to_be_bytes();
        let expected = (n % 3 != 0).then_some(n);
        assert_eq!(
            store.state(KeyRef::new(index, slot, &key)).copied(),
            expected
        );
    }
}

#[test]
#[should_panic(expected = "an insert needs its row absent")]
fn insert_of_a_present_row_is_a_bug() {
    let mut store: Store = Store::new();
    for ts in 1..3 {
        store.apply(
            KeyRef::new(IndexId(1), Slot(0), b"k"),
            &Write::Insert(vec![]),
            Ts(ts),
            Ts::MAX,
        );
    }
}

#[test]
#[should_panic(expected = "versions of a row ascend")]
fn a_write_below_the_newest_version_is_a_bug() {
    let mut store: Store = Store::new();
    for ts in [5, 5] {
        store.apply(
            KeyRef::new(IndexId(1), Slot(0), b"k"),
            &Write::Put(vec![]),
            Ts(ts),
            Ts::MAX,
        );
    }
}

#[test]
fn load_ignores_older_versions() {
    let mut store: Store = Store::new();
    let row = |ts, value| CheckpointRow {
        index: IndexId(1),
        slot: Slot(0),
        key: b"k",
        commit_ts: Ts(ts),
        value,
    };
    store.load(row(5, Some(b"new")));
    store.load(row(3, Some(b"old")));
    assert_eq!(
        store
            .get(KeyRef::new(IndexId(1), Slot(0), b"k"), Ts::MAX)
            .map(|v| v.value),
        Some(&b"new"[..])
    );
    store.load(row(9, None));
    assert_eq!(
        store.get(KeyRef::new(IndexId(1), Slot(0), b"k"), Ts::MAX),
        None
    );
    store.validate();
}

#[test]
fn a_tombstone_says_when_until_nobody_can_ask() {
    let mut store: Store = Store::new();
    let (index, slot) = (IndexId(1), Slot(0));
    for (ts, write) in [
        (3, Write::Put(vec![1])),
        (5, Write::Delete),
        (6, Write::Put(vec![2])),
        (9, Write::Delete),
    ] {
        store.apply(KeyRef::new(index, slot, b"k"), &write, Ts(ts), Ts::MAX);
    }
    store.collect(&Horizons::at(Ts(7)), 10);
    store.validate();
    assert_eq!(store.newest_ts(KeyRef::new(index, slot, b"k")), Ts(9));
    store.collect(&Horizons::at(Ts(9)), 10);
    assert_eq!(store.newest_ts(KeyRef::new(index, slot, b"k")), Ts::ZERO);
}

/// A reader of one database keeps its versions; those of the other do not wait behind them.
#[test]
fn rows_that_are_held_back_stand_aside() {
    let second = |n: u64| Ts::from_time(Time(1_800_000_000_000_000 + n * 1_000_000));
    let (here, there) = (IndexId(1), IndexId(2));
    let (held, free) = (DatabaseId(1), DatabaseId(2));
    let mut store: Store = Store::new();
    let mut horizons = Horizons::default();
    horizons.set_databases([(here, held), (there, free)].into_iter());
    for n in 6..=20 {
        for index in [here, there] {
            let key = KeyRef::new(index, Slot(0), b"k");
            let write = Write::Put(vec![n as u8]);
            store.apply(key, &write, second(n), horizons.of(index));
        }
    }
    assert_eq!(store.counts().versions, 30);
    horizons.advance(second(30), &ByDatabase::from_iter([(held, second(6))]));
    store.collect(&horizons, 1);
    store.validate();
    while store.collect(&horizons, 1) > 0 {}
    store.validate();
    // Versions 6 to 20 here, which stood ahead, and the newest one there.
    assert_eq!((store.counts().versions, store.expiring()), (16, 1));
    let old = store.get(KeyRef::new(here, Slot(0), b"k"), second(6));
    assert_eq!(old.map(|v| v.value), Some(&[6][..]));
    horizons.advance(second(31), &ByDatabase::default());
    while store.collect(&horizons, 1) > 0 {}
    store.validate();
    assert_eq!((store.counts().versions, store.expiring()), (2, 0));
}

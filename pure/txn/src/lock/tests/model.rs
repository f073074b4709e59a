//! Random requests beside a simple model of what may be held together.

use super::*;

/// The model: which locks each transaction was granted.
#[derive(Default)]
struct Model {
    held: BTreeMap<u64, Vec<(usize, usize, Claim)>>,
    waiting: BTreeMap<u64, (u64, (usize, usize, Claim))>,
    alone: BTreeSet<u64>,
}

impl Model {
    fn check(&self) {
        for (a, locks) in &self.held {
            for (b, others) in self.held.range(a + 1..) {
                for x in locks {
                    for y in others {
                        let overlap = x.0 < y.1 && y.0 < x.1;
                        assert!(!overlap || !x.2.conflicts(y.2), "t{a} {x:?} and t{b} {y:?}");
                    }
                }
            }
        }
        for (request, (who, want)) in &self.waiting {
            for (other, locks) in &self.held {
                let conflict = locks
                    .iter()
                    .any(|have| have.0 < want.1 && want.0 < have.1 && have.2.conflicts(want.2));
                if conflict && other != who {
                    let downwards = who < other || self.alone.contains(request);
                    assert!(downwards, "t{who} waits for the older t{other}");
                }
            }
        }
    }
}

/// Returns how often rows were taken together.
fn run_model(seed: u64) -> u32 {
    const KEYS: u64 = 5;
    let mut prng = Prng::new(seed);
    // Without increments, with them, and with columns.
    let columns = claims();
    let modes = [S, X, I, F].map(Claim::from);
    let modes = match seed % 3 {
        0 => &modes[..2],
        1 => &modes[..],
        _ => &columns,
    };
    let mut table = LockTable::new();
    // With and without runs of rows.
    table.runs_from = [0, 1, 2, usize::MAX][(seed / 2 % 4) as usize];
    let mut model = Model::default();
    let (mut next_txn, mut next_request, mut steps_left) = (1u64, 1u64, 400);
    let mut open: BTreeSet<u64> = BTreeSet::new();
    let (mut ended, mut taken_rows) = (0, 0);
    while steps_left > 0 || !open.is_empty() {
        if steps_left > 0 {
            steps_left -= 1;
            if open.len() < 8 {
                open.insert(next_txn);
                next_txn += 1;
            }
        }
        // A transaction that does not wait, so it can act. There must always be one.
        let blocked: BTreeSet<u64> = model.waiting.values().map(|(who, _)| *who).collect();
        let able: Vec<u64> = open
            .iter()
            .copied()
            .filter(|who| !blocked.contains(who))
            .collect();
        assert!(!able.is_empty(), "seed {seed}: everybody waits\n{table}");
        let who = able[prng.below(able.len() as u64) as usize];
        let mut over = Vec::new();
        if steps_left == 0 || prng.below(4) == 0 {
            over.push(who);
        } else {
            let low = prng.below(KEYS) as usize;
            let wide = prng.below(4) == 0;
            let high = if wide {
                low + 1 + prng.below(KEYS - low as u64) as usize
            } else {
                low + 1
            };
            let claim = modes[prng.below(modes.len() as u64) as usize];
            let alone = !model.held.contains_key(&who);
            let request = next_request;
            next_request += 1;
            let (key, range) = (
                Key::new(IndexId(1), Slot(0), vec![low as u8]),
                KeyRange {
                    low: vec![low as u8],
                    high: Some(vec![high as u8]),
                },
            );
            let item = match (wide, prng.below(12)) {
                (true, 0) => Item::Shard,
                (true, _) => Item::Range {
                    index: IndexId(1),
                    slot: Some(Slot(0)),
                    range: &range,
                },
                (false, _) => Item::of(&key),
            };
            let want = match item {
                Item::Shard => (0, KEYS as usize, claim),
                _ => (low, high, claim),
            };
            if claim.mode() == X && prng.below(2) == 0 {
                let names: Vec<[u8; 1]> = (low..high).map(|name| [name as u8]).collect();
                let names: Vec<&[u8]> = names.iter().map(|name| &name[..]).collect();
                let taken = table.take_rows(rank(who), IndexId(1), Slot(0), &names);
                let own = model.held.entry(who).or_default();
                match taken {
                    Taken::New => own.push((low, high, claim)),
                    Taken::Covered => assert!(
                        own.iter().any(|have| have.0 <= low && high <= have.1),
                        "seed {seed}: t{who} holds it"
                    ),
                    Taken::No => {}
                }
                match taken {
                    Taken::New | Taken::Covered => {
                        taken_rows += 1;
                        table.validate();
                        model.check();
                        continue;
                    }
                    Taken::No if own.is_empty() => drop(model.held.remove(&who)),
                    Taken::No => {}
                }
            }
            let acquired = table.acquire(LockRequest {
                txn: rank(who),
                item,
                mode: claim,
                alone,
                ordered: false,
                deadline: None,
                now: Time(0),
                request,
            });
            match acquired {
                Acquired::Granted => model.held.entry(who).or_default().push(want),
                Acquired::Waiting => {
                    model.waiting.insert(request, (who, want));
                    if alone {
                        model.alone.insert(request);
                    }
                }
                Acquired::Died(conflict) => {
                    assert!(!alone && conflict.holder < txn(who));
                    over.push(who);
                }
            }
        }
        while let Some(who) = over.pop() {
            open.remove(&who);
            model.held.remove(&who);
            ended += 1;
            table.release(txn(who));
            for event in table.take_events() {
                let (waiter, want) = model.waiting.remove(&event.request).expect("it waited");
                match event.settled {
                    Settled::Granted => model.held.entry(waiter).or_default().push(want),
                    Settled::Died(_) => {
                        assert!(!model.alone.contains(&event.request));
                        over.push(waiter);
                    }
                    Settled::TimedOut(_) => panic!("nobody set a deadline"),
                }
            }
        }
        table.validate();
        model.check();
    }
    assert!(table.is_empty() && model.waiting.is_empty());
    assert!(ended > 20);
    taken_rows
}

#[test]
fn random_requests_never_deadlock_and_never_conflict() {
    let taken_rows: u32 = (0..400).map(run_model).sum();
    assert!(taken_rows > 500, "{taken_rows}");
}

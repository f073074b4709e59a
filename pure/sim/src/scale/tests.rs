//! The model against what is known: the delays of the protocol, and itself.

use super::model::{CostTable, Model, Usage};
use super::{Mix, Point, ScaleOptions, Spread, System, measure, plan};
use crate::executor::SimCx;
use crate::world::World;
use base::Prng;
use std::cell::RefCell;
use std::rc::Rc;

const LINK_NS: u64 = 1_000_000;

fn options() -> ScaleOptions {
    ScaleOptions {
        nodes: 2,
        shards: 1,
        system: System::Interleaved,
        mix: Mix::TpccPair,
        spread: Spread::new(Vec::new(), 50),
        settings: Vec::new(),
        paced: false,
        clients_per_node: 4,
        warehouses_per_node: 2,
        items: 40,
        customers: 4,
        warmup_us: 20_000,
        run_us: 100_000,
        slices: 4,
        seed: 7,
    }
}

fn table() -> CostTable {
    CostTable {
        amounts: [1_000.0; 7],
        frame_ns: 5_000.0,
        coding_ns: 1_000.0,
        client_round_ns: 5_000.0,
        flush_ns: 100_000.0,
        link_ns: 50_000,
        link_bytes_per_s: 1 << 30,
        local_ns: 1_000,
        client_ns: 20_000,
        ..CostTable::default()
    }
}

/// Increments of one's own and of the common counter.
fn counter(returning: bool) -> Mix {
    Mix::Counter {
        block: true,
        returning,
    }
}

fn point(options: &ScaleOptions) -> Point {
    measure(options, &table(), None).unwrap()
}

#[test]
fn the_same_seed_gives_the_same_numbers() {
    let one = point(&options());
    assert!(one.commits() > 50, "{one:?}");
    assert_eq!(one, point(&options()));
    // The seeds of a run under faults also say how large its large transactions are.
    for seed in 8..11 {
        let other = ScaleOptions { seed, ..options() };
        let other = point(&other);
        assert_ne!(one.latencies_ns, other.latencies_ns);
        let (least, most) = (one.commits() / 2, one.commits() * 2);
        assert!(
            (least..most).contains(&other.commits()),
            "seed {seed}: {other:?}"
        );
    }
}

#[test]
fn every_load_and_system_works_on_several_shards() {
    let ycsb = Mix::Ycsb { steps: 2, ops: 3 };
    for (mix, system) in [
        (Mix::TpccFull, System::Interleaved),
        (Mix::TpccFull, System::Serial),
        (Mix::TpccPair, System::Leap),
        (ycsb, System::Leap),
        (ycsb, System::Serial),
        (counter(false), System::Interleaved),
        (counter(true), System::Leap),
        (Mix::TpccFull, System::Formula),
        (Mix::HotCold, System::Formula),
        (Mix::Record { read_percent: 50 }, System::Formula),
        (Mix::Record { read_percent: 50 }, System::Leap),
    ] {
        let options = ScaleOptions {
            mix,
            system,
            shards: 2,
            ..options()
        };
        let point = point(&options);
        assert!(point.commits() > 20, "{mix:?} {system:?}: {point:?}");
        let busy = &point.usage.busy_ns;
        assert!(busy.iter().all(|ns| *ns > 0), "{busy:?}");
        assert!(point.usage.flushes > 0 && point.usage.frames > 0);
        assert_eq!(point.moves.moved_in > 0, system == System::Leap);
        let parts = point.slices.iter().map(|slice| slice.commits);
        assert_eq!((point.slices.len(), parts.sum()), (4, point.commits()));
    }
}

#[test]
fn stock_levels_of_two_nodes_take_longer_than_those_of_one() {
    for system in [System::Interleaved, System::Formula, System::Leap] {
        let [local, distributed] = [0, 100].map(|share| {
            let options = ScaleOptions {
                mix: Mix::StockLevels,
                system,
                spread: Spread::new(Vec::new(), share),
                ..options()
            };
            point(&options)
        });
        for point in [&local, &distributed] {
            assert!(point.commits() > 20, "{system:?}: {point:?}");
            // Bounds of clocks, and what leap notes of rows that many read; no transaction waits.
            let flushes = point.usage.flushes;
            assert!(flushes < point.commits() / 10, "{system:?}: {flushes}");
        }
        let median = |point: &Point| point.latency_of_kind_ns(0, 50);
        assert!(median(&distributed) > median(&local), "{system:?}");
        // Items of the other warehouse are asked for together, and not one after the other.
        let per_tx = |count: u64| count as f64 / distributed.commits() as f64;
        let (frames, rows) = (
            per_tx(distributed.usage.frames),
            per_tx(distributed.counters.rows_read),
        );
        assert!(
            rows > 100.0 && frames < 25.0,
            "{system:?}: {frames} frames for {rows} rows"
        );
    }
}

#[test]
fn reads_and_updates_of_records_are_told_apart() {
    let options = ScaleOptions {
        mix: Mix::Record { read_percent: 80 },
        ..options()
    };
    let point = point(&options);
    let [reads, updates, others @ ..] = point.committed;
    assert!(reads > 2 * updates && updates > 10, "{point:?}");
    assert_eq!(others, [0; 3]);
    // An update waits for its flush.
    assert!(point.latency_of_kind_ns(0, 100) < 100_000);
    assert!(point.latency_of_kind_ns(1, 100) > 100_000);
    let kinds = point.latencies_by_kind_ns.iter().map(Vec::len);
    assert_eq!(kinds.sum::<usize>(), point.latencies_ns.len());
    assert_eq!(point.row_bytes.len(), 2);
    assert!(point.row_bytes.iter().all(|bytes| *bytes > 40 * 1_000));
}

#[test]
fn clients_with_pauses_run_a_transaction_in_some_twenty_seconds() {
    let paced = ScaleOptions {
        mix: Mix::TpccFull,
        paced: true,
        clients_per_node: 20,
        warmup_us: 20_000_000,
        run_us: 60_000_000,
        ..options()
    };
    let point = point(&paced);
    // 40 clients, 60 s, a transaction in 21 s.
    assert!((90..140).contains(&point.commits()), "{point:?}");
    let refused = ScaleOptions {
        mix: Mix::HotCold,
        ..paced
    };
    assert!(measure(&refused, &table(), None).is_err());
}

#[test]
fn what_stays_at_home_sends_nothing() {
    let remote = |remote_percent| ScaleOptions {
        spread: Spread::new(Vec::new(), remote_percent),
        ..options()
    };
    assert_eq!(point(&remote(0)).counters.txn_distributed, 0);
    let counters = point(&remote(100)).counters;
    assert_eq!(counters.txn_distributed, counters.txn_committed);
}

#[test]
fn one_counter_is_one_row() {
    // With links of a millisecond and nothing else that takes time, a client of another node waits
    // for them.
    let slow = CostTable {
        link_ns: LINK_NS,
        ..table()
    };
    for system in [System::Interleaved, System::Leap] {
        let options = ScaleOptions {
            mix: counter(true),
            system,
            warmup_us: 0,
            run_us: 300_000,
            ..options()
        };
        let point = measure(&options, &slow, None).unwrap();
        assert!(point.latency_ns(990) > LINK_NS, "{system:?}: {point:?}");
        assert!(point.usage.frames > 10, "{system:?}: {point:?}");
    }
}

#[test]
fn rows_that_nobody_else_uses_move_less_and_less() {
    let mut options = ScaleOptions {
        system: System::Leap,
        warmup_us: 0,
        run_us: 1_200_000,
        slices: 6,
        ..options()
    };
    options.spread.locality_percent = Some(100);
    let point = point(&options);
    let moves: Vec<u64> = point.slices.iter().map(|slice| slice.moves).collect();
    // Not to nothing: orders that roll back ask for an item that is not there, and absence moves.
    assert!(moves[0] > 50 && moves[4] + moves[5] < moves[0], "{moves:?}");
}

/// One-way delays of a link that each of the texts takes, one after the other on a connection to
/// node 1, when nothing else takes time. Names `local`, `other` and `third` are tables of a row on
/// nodes 1, 2 and 3.
fn delays(texts: &'static [&'static str]) -> Vec<u64> {
    let options = ScaleOptions {
        nodes: 3,
        ..options()
    };
    let usage = Rc::new(RefCell::new(Usage {
        busy_ns: vec![0; 3],
        ..Usage::default()
    }));
    let table = CostTable {
        link_ns: LINK_NS,
        ..CostTable::default()
    };
    let model = Model::new(table, usage.clone(), None);
    let mut world = World::new(plan(&options), None, Some(model));
    world.boot().unwrap();
    let cx = SimCx::new(world.shared.clone(), Prng::new(1));
    let homes = super::homes(options.nodes, options.shards, options.warehouses_per_node);
    let task = cx.fork();
    let running = cx.spawn(async move {
        let mut conn = task.connect(1).await.unwrap();
        let create = "CREATE TABLE t (id integer PRIMARY KEY, v integer)";
        conn.query(create).await.unwrap();
        for node in &homes {
            let insert = format!("INSERT INTO t VALUES ({}, 0)", node[0]);
            conn.query(&insert).await.unwrap();
        }
        // What the insertions still owe is done, and messages that tell of the oldest reader too.
        task.sleep(2_000_000).await;
        usage.borrow_mut().on = true;
        let mut took = Vec::new();
        for text in texts {
            let mut text = (*text).to_owned();
            for (name, node) in ["local", "other", "third"].iter().zip(&homes) {
                text = text.replace(name, &node[0].to_string());
            }
            let began = task.now_ns();
            conn.query(&text).await.unwrap();
            let passed = task.now_ns() - began;
            took.push((passed + LINK_NS / 2) / LINK_NS);
            assert!(passed % LINK_NS < LINK_NS / 10, "{text}: {passed} ns");
        }
        took
    });
    assert!(world.within(60_000_000_000, &mut |_| running.is_finished()));
    world.result_of(&cx, running)
}

#[test]
fn dependent_statements_take_the_delays_of_the_table() {
    // 2k for k dependent remote statements, and 2 for the commit.
    let texts = &[
        "BEGIN",
        "UPDATE t SET v = v + 1 WHERE id = local RETURNING v",
        "UPDATE t SET v = v + 1 WHERE id = other RETURNING v",
        "UPDATE t SET v = v + 1 WHERE id = third RETURNING v",
        "COMMIT",
    ];
    assert_eq!(delays(texts), [0, 0, 2, 2, 2]);
}

#[test]
fn one_node_takes_none_or_two() {
    let texts = &[
        "UPDATE t SET v = v + 1 WHERE id = local RETURNING v",
        "UPDATE t SET v = v + 1 WHERE id = other RETURNING v",
    ];
    assert_eq!(delays(texts), [0, 2]);
}

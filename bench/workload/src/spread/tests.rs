//! Inputs against what was asked for.

use super::*;
use alloc::collections::BTreeMap;

const NODES: usize = 4;

fn plan(mix: Mix, remote_percent: u64) -> Plan {
    let homes = vec![vec![1, 2], vec![3, 4], vec![5, 6], vec![7, 8]];
    Plan {
        mix,
        spread: Spread::new(homes, remote_percent),
        scale: Scale::reduced(1),
        constants: Constants::for_load(1),
        seed: 1,
    }
}

fn node_of(warehouse: u32) -> usize {
    (warehouse as usize - 1) / 2
}

/// Remote accesses of many transactions of node 0 as (warehouse, item), and how many could leave.
fn accesses(plan: &Plan) -> (Vec<(u32, u32)>, usize) {
    let (mut away, mut all) = (Vec::new(), 0);
    let mut source = plan.source(0);
    for _ in 0..4_000 {
        match plan.draw(&mut source, 0) {
            Job::Tpcc(Input::NewOrder(order)) => {
                assert_eq!(order.warehouse, 1);
                all += order.lines.len();
                let lines = order.lines.iter();
                let lines = lines.filter(|line| line.supply_warehouse != 1);
                away.extend(lines.map(|line| (line.supply_warehouse, line.item)));
            }
            Job::Tpcc(Input::Payment(payment)) => {
                assert_eq!(payment.warehouse, 1);
                assert!((1..=10).contains(&payment.customer_district));
            }
            other => panic!("{other:?} is not of the pair"),
        }
    }
    (away, all)
}

#[test]
fn the_share_of_accesses_is_that_asked_for_and_goes_everywhere() {
    let mut plan = plan(Mix::TpccPair, 30);
    plan.spread.unit = Unit::Access;
    let (away, all) = accesses(&plan);
    let share = away.len() as f64 / all as f64;
    assert!((0.28..0.32).contains(&share), "{share}");
    let mut by_node: BTreeMap<usize, u32> = BTreeMap::new();
    for (warehouse, _) in &away {
        *by_node.entry(node_of(*warehouse)).or_default() += 1;
    }
    assert_eq!(by_node.keys().copied().collect::<Vec<_>>(), [1, 2, 3]);
    assert!(
        by_node
            .values()
            .all(|count| *count as usize > away.len() / 4)
    );
}

#[test]
fn the_share_of_transactions_leaves_once() {
    let plan = plan(Mix::TpccPair, 50);
    let mut source = plan.source(1);
    let (mut left, mut orders) = (0, 0);
    for _ in 0..4_000 {
        if let Job::Tpcc(Input::NewOrder(order)) = plan.draw(&mut source, 0) {
            let away = order
                .lines
                .iter()
                .filter(|line| node_of(line.supply_warehouse) != 1);
            let away = away.count();
            assert!(away <= 1);
            left += away;
            orders += 1;
        }
    }
    assert!(
        (45..55).contains(&(left * 100 / orders)),
        "{left} of {orders}"
    );
}

#[test]
fn stock_levels_of_the_asked_share_have_a_warehouse_of_another_node() {
    let plan = plan(Mix::StockLevels, 30);
    let mut source = plan.source(1);
    let (mut away, all) = (0, 4_000);
    for _ in 0..all {
        let job = plan.draw(&mut source, 0);
        assert_eq!(plan.kinds()[job.kind()], "d_stock_level");
        let Job::Tpcc(Input::Further(further)) = job else {
            panic!("{job:?} is no stock level");
        };
        assert_eq!(node_of(further.home()), 1);
        let nodes: Vec<usize> = further.warehouses().into_iter().map(node_of).collect();
        assert!(nodes.len() <= 2 && nodes[1..].iter().all(|node| *node != 1));
        away += nodes.len() - 1;
    }
    assert!((27..33).contains(&(away * 100 / all)), "{away} of {all}");
}

#[test]
fn rows_with_locality_are_used_by_one_node_alone() {
    let mut plan = plan(Mix::TpccPair, 100);
    plan.spread.unit = Unit::Access;
    plan.spread.locality_percent = Some(100);
    let mut users: BTreeMap<(u32, u32, u32), usize> = BTreeMap::new();
    for client in 0..NODES as u32 * 2 {
        let mut source = plan.source(client);
        let node = client as usize % NODES;
        for _ in 0..500 {
            let rows: Vec<(u32, u32, u32)> = match plan.draw(&mut source, 0) {
                Job::Tpcc(Input::NewOrder(order)) => {
                    let own = (order.warehouse, order.district, order.customer);
                    assert_eq!(*users.entry(own).or_insert(node), node, "{own:?}");
                    let lines = order.lines.iter().filter(|line| line.item <= 1_000);
                    lines
                        .map(|line| (line.supply_warehouse, 0, line.item))
                        .collect()
                }
                Job::Tpcc(Input::Payment(payment)) => {
                    let Customer::Id(id) = payment.customer else {
                        panic!("customers are named by number")
                    };
                    assert!((1..=30).contains(&id));
                    vec![(payment.customer_warehouse, payment.customer_district, id)]
                }
                other => panic!("{other:?} is not of the pair"),
            };
            for row in rows {
                assert_ne!(node_of(row.0), node, "all are remote");
                assert_eq!(*users.entry(row).or_insert(node), node, "{row:?}");
            }
        }
    }
}

#[test]
fn a_home_leaves_the_rows_of_others_alone() {
    let mut plan = plan(Mix::TpccPair, 0);
    plan.spread.locality_percent = Some(90);
    let mut source = plan.source(0);
    for _ in 0..500 {
        if let Job::Tpcc(Input::NewOrder(order)) = plan.draw(&mut source, 0) {
            let used = order.lines.iter().filter(|line| line.item <= 1_000);
            assert!({ used }.all(|line| line.item % 2 == 1 && line.supply_warehouse == 1));
        }
    }
}

#[test]
fn the_reach_changes_with_time() {
    let mut plan = plan(Mix::TpccPair, 100);
    plan.spread.reach = vec![1, 2, 0];
    plan.spread.reach_us = 1_000;
    let mut source = plan.source(0);
    for (at_us, nodes) in [(0, 1), (1_500, 2), (2_500, 3), (3_500, 1)] {
        let mut seen = alloc::collections::BTreeSet::new();
        for _ in 0..300 {
            if let Job::Tpcc(Input::Payment(payment)) = plan.draw(&mut source, at_us) {
                seen.insert(node_of(payment.customer_warehouse));
            }
        }
        assert_eq!(seen.len(), nodes, "at {at_us}");
    }
}

#[test]
fn the_hot_row_is_in_its_share_of_orders() {
    let mut plan = plan(Mix::TpccPair, 0);
    plan.spread.hot_percent = 100;
    let mut source = plan.source(3);
    for _ in 0..100 {
        if let Job::Tpcc(Input::NewOrder(order)) = plan.draw(&mut source, 0) {
            assert_eq!(
                (order.lines[0].supply_warehouse, order.lines[0].item),
                (1, 1)
            );
        }
    }
}

#[test]
fn same_seed_same_inputs() {
    for mix in [
        Mix::TpccFull,
        Mix::Ycsb { steps: 3, ops: 5 },
        Mix::Counter {
            block: true,
            returning: true,
        },
        Mix::HotCold,
        Mix::Record { read_percent: 50 },
    ] {
        let plan = plan(mix, 20);
        let draw = |client| {
            let mut source = plan.source(client);
            (0..50)
                .map(|_| plan.draw(&mut source, 0))
                .collect::<Vec<Job>>()
        };
        assert_eq!(draw(2), draw(2));
        assert_ne!(draw(2), draw(3));
    }
}

#[test]
fn the_cold_counter_is_on_another_node_than_the_hot_one() {
    let plan = plan(Mix::HotCold, 0);
    let mut cold = alloc::collections::BTreeSet::new();
    for client in 0..NODES as u32 * 2 {
        let mut source = plan.source(client);
        for _ in 0..20 {
            let Job::HotCold(Additions(pair)) = plan.draw(&mut source, 0) else {
                panic!("the mix has one kind")
            };
            assert_eq!(pair.hot, 1);
            assert_ne!(node_of(pair.cold), node_of(pair.hot));
            cold.insert(pair.cold);
        }
    }
    assert_eq!(cold.len(), NODES * 2 - 2, "every home of another node");
}

#[test]
fn records_have_the_share_of_reads_asked_for() {
    for read_percent in [0, 50, 95, 100] {
        let plan = plan(Mix::Record { read_percent }, 20);
        let mut source = plan.source(0);
        let mut reads = 0;
        for _ in 0..4_000 {
            reads += u64::from(plan.draw(&mut source, 0).kind() == 0);
        }
        let away = reads.abs_diff(40 * read_percent);
        assert!(away < 120, "{reads} reads at {read_percent} %");
    }
}

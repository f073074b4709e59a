//! The order of a few inner joins: all orders in which one input after the other is added are
//! compared, by the rows that pass through them.
//!
//! For each set of inputs the cheapest way to it is kept, so the work doubles with every input:
//! beyond [`INPUTS_MAX`] the order is found step by step ([`super::order`]).

use super::access;
use super::item::{Item, item_rows};
use super::join::{owners, raise};
use super::size::{Linked, grown};
use expr::{Expr, walk};
use std::collections::BTreeMap;

/// Most inputs of which all orders are compared.
pub(super) const INPUTS_MAX: usize = 8;
/// Cost of putting a row into a table in memory, in rows scanned.
const BUILD_COST: f64 = 3.0;
/// Cost of looking for a row's partners in that table.
const PROBE_COST: f64 = 2.0;

/// The cheapest way to a set of inputs.
#[derive(Clone, Copy)]
struct Way {
    cost: f64,
    rows: f64,
    /// The input that was added last.
    last: usize,
}

struct Search<'s> {
    items: &'s [Item],
    shared: &'s [Expr],
    /// The inputs that each condition reads, as bits.
    reads: Vec<u32>,
    linked: Vec<Linked>,
    sizes: Vec<f64>,
    /// Cost of reading each input by itself.
    alone: Vec<f64>,
    /// Cost of looking up an input for one row, by the conditions that can be used.
    lookups: BTreeMap<(usize, u64), f64>,
    work: u64,
}

/// An order of the inputs, and what was looked at to find it; `None` if there are too many, or if
/// rows are locked as they are read: what is locked depends on the order then.
pub(super) fn sequence(items: &[Item], shared: &[Expr]) -> Option<(Vec<usize>, u64)> {
    let locks = |item: &Item| item.picks() || matches!(item.table, Some((_, Some(_))));
    if !(3..=INPUTS_MAX).contains(&items.len()) || shared.len() > 64 || items.iter().any(locks) {
        return None;
    }
    let reads = shared.iter().map(|condition| {
        let inputs = owners(items, &walk::columns(condition));
        inputs.iter().fold(0, |bits, input| bits | 1 << input)
    });
    let sizes: Vec<f64> = items.iter().map(item_rows).collect();
    let mut search = Search {
        items,
        shared,
        reads: reads.collect(),
        linked: shared.iter().map(|it| Linked::of(it, items)).collect(),
        alone: items.iter().zip(&sizes).map(alone).collect(),
        sizes,
        lookups: BTreeMap::new(),
        work: 0,
    };
    let order = search.run();
    Some((order, search.work))
}

/// What reading an input by itself costs.
fn alone((item, size): (&Item, &f64)) -> f64 {
    match &item.table {
        None => *size,
        Some((table, _)) => {
            let place = access::Place {
                first: 0,
                ..item.place
            };
            access::best(table, place, &item.own, &|_| false, item.wanted()).cost
        }
    }
}

impl Search<'_> {
    fn run(&mut self) -> Vec<usize> {
        let count = self.items.len();
        let all = (1u32 << count) - 1;
        let mut ways: Vec<Option<Way>> = vec![None; 1 << count];
        for (last, (cost, rows)) in self.alone.iter().zip(&self.sizes).enumerate() {
            let (cost, rows) = (*cost, rows.max(1.0));
            ways[1 << last] = Some(Way { cost, rows, last });
        }
        for joined in 1..all {
            let Some(way) = ways[joined as usize] else {
                continue;
            };
            // Inputs without a condition that connects them wait until no other is left.
            let open = (0..count).filter(|next| joined & 1 << next == 0);
            let linked = |next: &usize| self.usable(joined, *next) != 0;
            let mut open: Vec<usize> = open.collect();
            if open.iter().any(linked) && !self.is_tiny(joined, &open) {
                open.retain(linked);
            }
            for next in open {
                let added = self.add(way, joined, next);
                let place = &mut ways[(joined | 1 << next) as usize];
                if place.is_none_or(|known| added.cost < known.cost) {
                    *place = Some(added);
                }
            }
        }
        let mut order = Vec::with_capacity(count);
        let mut rest = all;
        while rest != 0 {
            let way = ways[rest as usize].expect("every set has a way");
            order.push(way.last);
            rest &= !(1 << way.last);
        }
        order.reverse();
        order
    }

    /// Whether some product of what is joined and an open input is so small that it may come
    /// first.
    fn is_tiny(&self, joined: u32, open: &[usize]) -> bool {
        const TINY: f64 = 100.0;
        let product = (0..self.items.len())
            .filter(|input| joined & 1 << input != 0)
            .fold(1.0f64, |rows, input| rows * self.sizes[input]);
        open.iter().any(|next| product * self.sizes[*next] <= TINY)
    }

    /// The conditions, as bits, that hold for `joined` and `next` and for nothing less.
    fn usable(&self, joined: u32, next: usize) -> u64 {
        let with = joined | 1 << next;
        let usable = |reads: &u32| reads & 1 << next != 0 && reads & !with == 0;
        let found = self.reads.iter().enumerate();
        let found = found.filter(|(_, reads)| usable(reads));
        found.fold(0, |bits, (number, _)| bits | 1 << number)
    }

    fn add(&mut self, way: Way, joined: u32, next: usize) -> Way {
        let usable = self.usable(joined, next);
        self.work += 1 + u64::from(usable.count_ones());
        let numbers = (0..self.shared.len()).filter(|number| usable & 1 << number != 0);
        let linked: Vec<&Linked> = numbers.map(|number| &self.linked[number]).collect();
        let size = self.sizes[next];
        let rows = grown(way.rows, size, &linked, self.items);
        let (small, large) = (way.rows.min(size), way.rows.max(size));
        let whole = match linked.iter().any(|linked| linked.equality) {
            true => self.alone[next] + BUILD_COST * small + PROBE_COST * large,
            false => self.alone[next] + way.rows * size.max(1.0),
        };
        let lookup = match usable {
            0 => f64::INFINITY,
            _ => way.rows * self.lookup(next, usable),
        };
        Way {
            cost: way.cost + whole.min(lookup) + rows,
            rows,
            last: next,
        }
    }

    /// Cost of looking up an input for one row with these conditions.
    fn lookup(&mut self, next: usize, usable: u64) -> f64 {
        let item = &self.items[next];
        let Some((table, _)) = &item.table else {
            return f64::INFINITY;
        };
        if let Some(known) = self.lookups.get(&(next, usable)) {
            return *known;
        }
        let mut conditions = item.own.clone();
        conditions
            .iter_mut()
            .for_each(|condition| raise(condition, item.place.first));
        let shared = self.shared.iter().enumerate();
        let shared = shared.filter(|(number, _)| usable & 1 << number != 0);
        conditions.extend(shared.map(|(_, condition)| condition.clone()));
        self.work += conditions.len() as u64;
        let known = |column: u32| !item.place.has(column);
        let path = access::best(table, item.place, &conditions, &known, item.wanted());
        let cost = item.lookup_cost(&path);
        self.lookups.insert((next, usable), cost);
        cost
    }
}

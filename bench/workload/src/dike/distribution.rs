//! The warehouses of one transaction.

use super::expectation::keys_for;
use super::further::Further;
use crate::tpcc::input::Input;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use base::Prng;
use core::fmt;

/// Most lines of an order, which is the most warehouses that can supply one.
const LINES_MAX: u32 = 15;
/// Draws of an item before the next one by number is taken that lies on a wanted node.
const DRAWS_MAX: u32 = 100_000;
/// Fewest lines of an order: any order can touch one node more than that.
const LINES_MIN: u32 = 5;

/// How sure the number of nodes is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The nodes are chosen first, then a warehouse on each: the placement must be known.
    Exact,
    /// So many warehouses that they touch the nodes on average.
    Statistical,
}

impl Mode {
    /// As a person types it.
    pub fn name(self) -> &'static str {
        match self {
            Mode::Exact => "exact",
            Mode::Statistical => "statistical",
        }
    }
}

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wanted {
    /// How.
    pub mode: Mode,
    /// Share of the NewOrders that touch more than one node, 0 to 1.
    pub ratio: f64,
    /// Nodes that such a one touches, its home among them: from 2.
    pub degree: u32,
}

/// Which node is home of each warehouse, and of each item where items have homes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// Warehouses of each node that has any, from 1.
    nodes: BTreeMap<u32, Vec<u32>>,
    /// Number of the node, by warehouse from 1.
    homes: Vec<u32>,
    /// The same by item; empty: each node has all items.
    items: Vec<u32>,
    /// Nodes that have all items, where each has them: a change of one touches them all.
    copies: usize,
}

impl Placement {
    /// `homes`: a number for the node of each warehouse, from warehouse 1 on; equal numbers are one
    /// node.
    pub fn new(homes: &[u32]) -> Placement {
        let mut nodes: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for (warehouse, node) in (1..).zip(homes) {
            nodes.entry(*node).or_default().push(warehouse);
        }
        Placement {
            copies: nodes.len(),
            nodes,
            homes: homes.to_vec(),
            items: Vec::new(),
        }
    }

    /// The same in a cluster of so many nodes, each of which has all items.
    pub fn with_copies(self, copies: usize) -> Placement {
        Placement { copies, ..self }
    }

    /// The same where items have homes: the node of each, from item 1 on. A transaction touches the
    /// nodes of its items then, too.
    pub fn with_items(self, items: Vec<u32>) -> Placement {
        Placement { items, ..self }
    }

    /// Warehouses that go round so many nodes: what is assumed where nothing is known.
    pub fn even(warehouses: u32, nodes: u32) -> Placement {
        let homes: Vec<u32> = (0..warehouses).map(|it| it % nodes.max(1)).collect();
        Placement::new(&homes)
    }

    /// Nodes with a warehouse.
    pub fn nodes(&self) -> usize {
        self.nodes.len()
    }

    /// Number of warehouses of each node.
    pub fn sizes(&self) -> Vec<u64> {
        self.nodes.values().map(|all| all.len() as u64).collect()
    }

    /// Nodes that a change of one item touches, where each node has all items; `None`: items have
    /// homes.
    pub fn copies(&self) -> Option<usize> {
        self.items.is_empty().then_some(self.copies)
    }

    /// The most nodes that one transaction can touch: those with a warehouse or an item.
    pub fn degree_max(&self) -> usize {
        let all: BTreeSet<u32> = self.homes.iter().chain(&self.items).copied().collect();
        match self.items.is_empty() {
            true => all.len().max(self.copies),
            false => all.len(),
        }
    }

    /// Nodes that are home of warehouses and of no item, where items have homes.
    fn nodes_without_items(&self) -> Vec<u32> {
        let with_items: BTreeSet<u32> = self.items.iter().copied().collect();
        let nodes = self.nodes.keys().copied();
        let without = nodes.filter(|node| !with_items.contains(node));
        without.filter(|_| !self.items.is_empty()).collect()
    }

    fn node_of(&self, warehouse: u32) -> u32 {
        self.homes[warehouse as usize - 1]
    }

    /// Whether two warehouses have their home on one node.
    pub fn is_one_node(&self, one: u32, other: u32) -> bool {
        self.node_of(one) == self.node_of(other)
    }

    /// The node of an item; `None`: each has it, or nobody.
    fn node_of_item(&self, item: u32) -> Option<u32> {
        self.items.get(item as usize - 1).copied()
    }

    /// Draws items until one lies on a node of these warehouses, or each node has all items. After
    /// very many draws it takes the next such item by number. The item lies elsewhere only if none
    /// lies there, which [`Distribution::new`] refuses.
    pub fn item(&self, warehouses: &[u32], draw: &mut dyn FnMut() -> u32) -> u32 {
        let is_near = |item: &u32| {
            let near = |node: u32| warehouses.iter().any(|it| self.node_of(*it) == node);
            self.node_of_item(*item).is_none_or(near)
        };
        let mut item = draw();
        for _ in 0..DRAWS_MAX {
            if is_near(&item) {
                return item;
            }
            item = draw();
        }
        let mut others = (item..=self.items.len() as u32).chain(1..item);
        others.find(is_near).unwrap_or(item)
    }

    /// Nodes that a transaction with this input touches.
    pub fn degree(&self, input: &Input) -> usize {
        let home = |warehouse: u32| self.node_of(warehouse);
        let mut nodes = BTreeSet::new();
        match input {
            Input::NewOrder(order) => {
                nodes.insert(home(order.warehouse));
                nodes.extend(order.lines.iter().map(|line| home(line.supply_warehouse)));
                let items = order.lines.iter();
                nodes.extend(items.filter_map(|line| self.node_of_item(line.item)));
            }
            Input::Payment(payment) => {
                nodes.insert(home(payment.warehouse));
                nodes.insert(home(payment.customer_warehouse));
            }
            Input::OrderStatus(_) | Input::Delivery(_) | Input::StockLevel(_) => return 1,
            Input::Further(Further::Broadcast(prices)) => {
                if let Some(copies) = self.copies() {
                    return copies;
                }
                let items = prices.items.iter();
                nodes.extend(items.filter_map(|item| self.node_of_item(item.0)));
            }
            Input::Further(further) => nodes.extend(further.warehouses().into_iter().map(home)),
        }
        nodes.len()
    }
}

/// Why a distribution is not to be had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DistributionError(String);

impl fmt::Display for DistributionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl core::error::Error for DistributionError {}

/// Draws the warehouses of transactions.
#[derive(Clone, Debug)]
pub struct Distribution {
    wanted: Wanted,
    placement: Placement,
    /// In statistical mode, the warehouses of a distributed transaction, its home among them: so
    /// many, and one more with this probability.
    keys: (u64, f64),
}

impl Distribution {
    /// Prepares what is wanted.
    ///
    /// # Errors
    /// A share outside of 0 to 1, a degree that the placement or an order's lines do not allow, or
    /// a node with warehouses and without items where items have homes.
    pub fn new(wanted: Wanted, placement: Placement) -> Result<Distribution, DistributionError> {
        let degree = wanted.degree;
        if let Some(text) = refusal(wanted, &placement) {
            return Err(DistributionError(text));
        }
        let keys = match wanted.mode {
            Mode::Exact => Some((u64::from(degree), 0.0)),
            Mode::Statistical => keys_for(&placement.sizes(), degree.into()),
        };
        let keys = keys.ok_or_else(|| {
            let text = format!("all warehouses together touch fewer than {degree}");
            DistributionError(text)
        })?;
        let most = keys.0 + u64::from(keys.1 > 0.0);
        if most > u64::from(LINES_MAX) + 1 {
            return Err(DistributionError(format!(
                "degree {degree} takes {most} warehouses, and {LINES_MAX} at most supply an order"
            )));
        }
        Ok(Distribution {
            wanted,
            placement,
            keys,
        })
    }

    /// What was asked for.
    pub fn wanted(&self) -> Wanted {
        self.wanted
    }

    /// The placement that it counts on.
    pub fn placement(&self) -> &Placement {
        &self.placement
    }

    /// Mean number of warehouses of a distributed transaction, its home among them.
    pub fn keys(&self) -> f64 {
        self.keys.0 as f64 + self.keys.1
    }

    /// Most warehouses of a distributed transaction, its home among them.
    pub fn keys_max(&self) -> u64 {
        self.keys.0 + u64::from(self.keys.1 > 0.0)
    }

    /// Warehouses beside `home` that supply an order, each of them at least one line: none if it
    /// is not distributed.
    pub fn suppliers(&self, prng: &mut Prng, home: u32) -> Vec<u32> {
        match prng.unit() >= self.wanted.ratio {
            true => Vec::new(),
            false => self.partners(prng, home),
        }
    }

    /// Warehouses beside `home` of a distributed transaction.
    pub fn partners(&self, prng: &mut Prng, home: u32) -> Vec<u32> {
        match self.wanted.mode {
            Mode::Exact => {
                let own = self.placement.node_of(home);
                let nodes = self.placement.nodes.keys().copied();
                let mut others: Vec<u32> = nodes.filter(|node| *node != own).collect();
                let others = some(prng, &mut others, self.wanted.degree as usize - 1);
                let warehouse = |node: u32| {
                    let all = &self.placement.nodes[&node];
                    all[prng.below(all.len() as u64) as usize]
                };
                others.into_iter().map(warehouse).collect()
            }
            Mode::Statistical => {
                let (keys, one_more) = self.keys;
                let keys = keys + u64::from(prng.unit() < one_more);
                let warehouses = self.placement.homes.len() as u32;
                let mut others: Vec<u32> = (1..=warehouses).filter(|it| *it != home).collect();
                some(prng, &mut others, keys as usize - 1)
            }
        }
    }

    /// The number of an order's lines, with so many warehouses beside the home one.
    pub fn lines(&self, prng: &mut Prng, suppliers: usize) -> u32 {
        let least = LINES_MIN.max(suppliers as u32);
        prng.between(least.into(), LINES_MAX.into()) as u32
    }
}

/// Why no order can be as it is wanted, if that is so.
fn refusal(wanted: Wanted, placement: &Placement) -> Option<String> {
    let Wanted { ratio, degree, .. } = wanted;
    if !(0.0..=1.0).contains(&ratio) {
        return Some(format!("the ratio {} is not 0 to 100 %", ratio * 100.0));
    }
    if degree < 2 {
        return Some(format!(
            "a distributed transaction touches 2 nodes or more, not {degree}"
        ));
    }
    let nodes = placement.nodes();
    if degree as usize > nodes {
        let plural = if nodes == 1 { "" } else { "s" };
        return Some(format!(
            "degree {degree}: the warehouses lie on {nodes} node{plural}"
        ));
    }
    let bare = placement.nodes_without_items();
    (!bare.is_empty()).then(|| {
        let bare: Vec<String> = bare.iter().map(u32::to_string).collect();
        let bare = bare.join(", ");
        format!(
            "items have homes, and these nodes are home of warehouses and of no item: {bare}; an \
             order that stays there would find none"
        )
    })
}

/// So many of all, each set of them equally often.
fn some<T: Copy>(prng: &mut Prng, all: &mut [T], count: usize) -> Vec<T> {
    for at in 0..count {
        let other = at + prng.below((all.len() - at) as u64) as usize;
        all.swap(at, other);
    }
    all[..count].to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dike::expectation::nodes_touched;

    fn wanted(mode: Mode, ratio: f64, degree: u32) -> Wanted {
        Wanted {
            mode,
            ratio,
            degree,
        }
    }

    fn nodes_of(placement: &Placement, home: u32, suppliers: &[u32]) -> usize {
        let all = suppliers.iter().chain([&home]);
        let nodes: BTreeSet<u32> = all.map(|it| placement.node_of(*it)).collect();
        nodes.len()
    }

    #[test]
    fn the_exact_degree_is_the_one_that_was_asked_for() {
        let homes: Vec<u32> = (0..40).map(|it| [3, 5, 5, 5, 9, 11, 12][it % 7]).collect();
        let placement = Placement::new(&homes);
        assert_eq!(placement.nodes(), 5);
        let mut prng = Prng::new(1);
        for degree in 2..=5 {
            for percent in [0u32, 1, 40, 100] {
                let ratio = f64::from(percent) / 100.0;
                let wanted = wanted(Mode::Exact, ratio, degree);
                let distribution = Distribution::new(wanted, placement.clone()).expect("5 nodes");
                let mut distributed = 0;
                for draw in 0..20_000 {
                    let home = draw % 40 + 1;
                    let suppliers = distribution.suppliers(&mut prng, home);
                    let nodes = nodes_of(&placement, home, &suppliers);
                    assert!(nodes == 1 || nodes == degree as usize);
                    distributed += u64::from(nodes > 1);
                }
                let (low, high) = crate::stats::binomial_interval(20_000, ratio, 0.99999);
                assert!(
                    (low..=high).contains(&distributed),
                    "{distributed} at {ratio}"
                );
            }
        }
    }

    /// Within 2 % of what was asked for, and each number of keys touches what the formula says.
    #[test]
    fn the_statistical_degree_is_the_mean() {
        for (sizes, degree) in [(Vec::from([20u32; 9]), 3), (Vec::from([30, 10, 5, 5]), 2)] {
            let nodes = sizes.iter().zip(0u32..);
            let homes: Vec<u32> = nodes
                .flat_map(|(size, node)| (0..*size).map(move |_| node))
                .collect();
            let placement = Placement::new(&homes);
            let wanted = wanted(Mode::Statistical, 1.0, degree);
            let distribution = Distribution::new(wanted, placement.clone()).expect("few keys");
            let mut prng = Prng::new(7);
            let (mut sum, mut by_keys) = (0, [(0u64, 0u64); 17]);
            for draw in 0..100_000 {
                let home = draw % homes.len() as u32 + 1;
                let suppliers = distribution.suppliers(&mut prng, home);
                let nodes = nodes_of(&placement, home, &suppliers) as u64;
                sum += nodes;
                let of_keys = &mut by_keys[suppliers.len() + 1];
                *of_keys = (of_keys.0 + 1, of_keys.1 + nodes);
            }
            let mean = sum as f64 / 100_000.0;
            assert!((mean / f64::from(degree) - 1.0).abs() < 0.02, "{mean}");
            let sizes: Vec<u64> = sizes.iter().map(|size| u64::from(*size)).collect();
            for (keys, (count, nodes)) in by_keys.into_iter().enumerate() {
                let formula = nodes_touched(&sizes, keys.max(1) as u64);
                let mean = nodes as f64 / count.max(1) as f64;
                assert!(
                    count < 10_000 || (mean / formula - 1.0).abs() < 0.02,
                    "{keys}: {mean}"
                );
            }
        }
    }

    #[test]
    fn items_lie_on_the_nodes_of_the_warehouses() {
        let placement = Placement::new(&[4, 5, 6]).with_items(Vec::from([4, 4, 5, 6, 9]));
        let mut prng = Prng::new(2);
        let mut seen = BTreeSet::new();
        for _ in 0..500 {
            seen.insert(placement.item(&[1, 2], &mut || prng.between(1, 5) as u32));
        }
        assert_eq!(seen, BTreeSet::from([1, 2, 3]));
        let everywhere = Placement::new(&[4, 5, 6]);
        assert_eq!(everywhere.item(&[1], &mut || 5), 5);
    }

    /// A draw that never comes near does not bring an item from elsewhere.
    #[test]
    fn a_rare_item_is_found() {
        let placement = Placement::new(&[4, 5]).with_items(Vec::from([5, 4, 5, 5]));
        assert_eq!(placement.item(&[1], &mut || 1), 2);
        assert_eq!(placement.item(&[1], &mut || 3), 2);
        assert_eq!(placement.item(&[2], &mut || 2), 3);
        assert_eq!(placement.item(&[1, 2], &mut || 4), 4);
    }

    #[test]
    fn a_node_without_items_is_refused_where_items_have_homes() {
        let wanted = wanted(Mode::Exact, 0.1, 2);
        let placement = Placement::new(&[4, 5, 6, 6]);
        let with = |items: &[u32]| {
            let placement = placement.clone().with_items(items.to_vec());
            Distribution::new(wanted, placement).map(|_| ())
        };
        let error = with(&[5, 5, 9]).expect_err("4 and 6 have none").0;
        assert!(error.contains("of no item: 4, 6;"), "{error}");
        assert!(with(&[6, 5, 4]).is_ok());
        // Each node has all items.
        assert!(with(&[]).is_ok());
    }

    #[test]
    fn the_largest_degree_counts_nodes_with_items_only() {
        let placement = Placement::new(&[4, 5, 5]);
        assert_eq!(placement.degree_max(), 2);
        assert_eq!(placement.with_items(Vec::from([4, 7, 8])).degree_max(), 4);
    }

    #[test]
    fn what_cannot_be_had_is_refused() {
        let refused = |mode, ratio, degree, placement| {
            let error = Distribution::new(wanted(mode, ratio, degree), placement);
            error.expect_err("it cannot be had").0
        };
        let exact = Mode::Exact;
        assert!(refused(exact, 0.1, 4, Placement::even(30, 3)).contains("3 nodes"));
        assert!(refused(exact, 0.1, 1, Placement::even(30, 3)).contains("2 nodes or more"));
        assert!(refused(exact, 1.5, 2, Placement::even(30, 3)).contains("150"));
        let many = refused(Mode::Statistical, 1.0, 9, Placement::even(180, 9));
        assert!(many.contains("warehouses"), "{many}");
    }

    #[test]
    fn every_line_count_holds_all_suppliers() {
        let placement = Placement::even(60, 12);
        let wanted = wanted(Mode::Exact, 1.0, 12);
        let distribution = Distribution::new(wanted, placement).expect("12 nodes");
        let mut prng = Prng::new(3);
        for _ in 0..1_000 {
            assert!((11..=15).contains(&distribution.lines(&mut prng, 11)));
            assert!((5..=15).contains(&distribution.lines(&mut prng, 0)));
        }
    }
}

//! The order of inner joins: the smallest input first, then always what is cheapest to add.
//!
//! What an input costs is computed again only when a condition on it becomes usable, so the work
//! grows with the number of conditions, not with its square.

use super::access;
use super::few::FEW_ROWS;
use super::item::{Item, item_rows};
use super::join::{owners, raise};
use expr::{Compare, Expr, Func, walk};

/// A condition over several inputs.
struct Shared {
    expr: Expr,
    /// Inputs that it reads and that are not joined yet.
    missing: usize,
    equality: bool,
}

/// What adding an input costs.
#[derive(Clone, Copy)]
struct Cost {
    /// An equality with what is joined already holds for it.
    connected: bool,
    /// Cost of a lookup of its rows by key, per row.
    lookup: Option<f64>,
    /// The conditions that it can use have changed.
    stale: bool,
}

/// Inputs that are joined.
pub(super) struct Joined {
    /// Ends of the columns of the inputs, and whether they are joined.
    inputs: Vec<(u32, bool)>,
}

impl Joined {
    pub(super) fn new(items: &[Item]) -> Joined {
        Joined {
            inputs: items.iter().map(|item| (item.place.end(), false)).collect(),
        }
    }

    pub(super) fn add(&mut self, number: usize) {
        self.inputs[number].1 = true;
    }

    fn has_input(&self, number: usize) -> bool {
        self.inputs[number].1
    }

    fn has(&self, column: u32) -> bool {
        let owner = self.inputs.partition_point(|(end, _)| *end <= column);
        self.inputs.get(owner).is_some_and(|(_, joined)| *joined)
    }
}

pub(super) struct Order {
    shared: Vec<Option<Shared>>,
    /// The conditions that read each input.
    of_input: Vec<Vec<usize>>,
    inputs_of: Vec<Vec<usize>>,
    sizes: Vec<f64>,
    costs: Vec<Cost>,
    /// Inputs that are not joined: the smallest first, or in the order in which they are joined.
    left: Vec<usize>,
    /// That order is known.
    is_known: bool,
    /// Conditions looked at and inputs compared.
    work: u64,
}

impl Order {
    pub(super) fn new(items: &[Item], shared: Vec<Expr>, sequence: Option<Vec<usize>>) -> Order {
        let mut of_input = vec![Vec::new(); items.len()];
        let mut inputs_of = Vec::with_capacity(shared.len());
        let mut all = Vec::with_capacity(shared.len());
        for (i, expr) in shared.into_iter().enumerate() {
            let inputs = owners(items, &walk::columns(&expr));
            inputs.iter().for_each(|input| of_input[*input].push(i));
            all.push(Some(Shared {
                missing: inputs.len(),
                equality: matches!(expr, Expr::Call(Func::Compare(Compare::Eq), _, _)),
                expr,
            }));
            inputs_of.push(inputs);
        }
        let sizes: Vec<f64> = items.iter().map(item_rows).collect();
        let mut left: Vec<usize> = (0..items.len()).collect();
        // A table that is locked as it is read is looked up for few rows, however small it is now:
        // all of it would be locked.
        let few = items.iter().zip(&sizes);
        let mut few = few.filter(|(item, _)| item.table.is_none());
        let few = few.any(|(_, size)| *size <= FEW_ROWS);
        let picked = items.iter().any(Item::picks);
        let behind = |number: usize| {
            let Item { table, own, .. } = &items[number];
            (few && own.is_empty() || picked) && matches!(table, Some((_, Some(_))))
        };
        left.sort_by(|a, b| {
            let size = sizes[*a].total_cmp(&sizes[*b]);
            behind(*a).cmp(&behind(*b)).then(size)
        });
        let is_known = sequence.is_some();
        let left = sequence.unwrap_or(left);
        let cost = Cost {
            connected: false,
            lookup: None,
            stale: true,
        };
        Order {
            work: (all.len() + items.len()) as u64,
            shared: all,
            of_input,
            inputs_of,
            sizes,
            costs: vec![cost; items.len()],
            left,
            is_known,
        }
    }

    /// The smallest input.
    pub(super) fn first(&mut self) -> usize {
        self.left.remove(0)
    }

    /// Takes note that an input has been joined.
    pub(super) fn join(&mut self, number: usize, known: &Joined) {
        for condition in core::mem::take(&mut self.of_input[number]) {
            let Some(shared) = &mut self.shared[condition] else {
                continue;
            };
            shared.missing -= 1;
            self.work += 1;
            if shared.missing != 1 {
                continue;
            }
            let mut inputs = self.inputs_of[condition].iter();
            let open = inputs.find(|input| !known.has_input(**input));
            let open = *open.expect("one input is missing");
            let cost = &mut self.costs[open];
            cost.connected |= shared.equality;
            cost.stale = true;
        }
    }

    /// The input to be joined next with `rows` rows; `None` when all are.
    pub(super) fn next(&mut self, rows: f64, items: &[Item], known: &Joined) -> Option<usize> {
        if self.is_known {
            return (!self.left.is_empty()).then(|| self.left.remove(0));
        }
        let mut best: Option<(f64, usize)> = None;
        for i in 0..self.left.len() {
            let number = self.left[i];
            if self.costs[number].stale {
                self.costs[number].lookup = self.lookup(number, items, known);
                self.costs[number].stale = false;
            }
            let (cost, size) = (self.costs[number], self.sizes[number]);
            let whole = match cost.connected {
                true => size,
                false => size * rows.max(1.0),
            };
            let cost = cost.lookup.map_or(whole, |each| whole.min(rows * each));
            if best.is_none_or(|(least, _)| cost < least) {
                best = Some((cost, i));
            }
        }
        best.map(|(_, place)| self.left.remove(place))
    }

    /// Cost of a lookup of an input's rows with the conditions that can be used.
    fn lookup(&mut self, number: usize, items: &[Item], known: &Joined) -> Option<f64> {
        let item = &items[number];
        let (table, _) = item.table.as_ref()?;
        let mut conditions = item.own.clone();
        conditions
            .iter_mut()
            .for_each(|condition| raise(condition, item.place.first));
        let usable = self.of_input[number].iter();
        let usable = usable.filter_map(|condition| self.shared[*condition].as_ref());
        let usable = usable.filter(|shared| shared.missing == 1);
        conditions.extend(usable.map(|shared| shared.expr.clone()));
        self.work += conditions.len() as u64;
        let known = |column: u32| known.has(column);
        let path = access::best(table, item.place, &conditions, &known, item.wanted());
        Some(item.lookup_cost(&path))
    }

    /// The conditions that hold for what is joined and the input `number`, and for nothing less.
    pub(super) fn take_conditions(&mut self, number: usize) -> Vec<Expr> {
        let mut taken = Vec::new();
        for condition in &self.of_input[number] {
            let place = &mut self.shared[*condition];
            if place.as_ref().is_some_and(|shared| shared.missing == 1) {
                taken.extend(place.take().map(|shared| shared.expr));
            }
        }
        taken
    }

    pub(super) fn work(&self) -> u64 {
        self.work
    }
}

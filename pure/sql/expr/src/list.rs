//! The right side of IN: constants are looked up, not compared one by one. And what an expression
//! costs for one row.

use super::{Compare, Env, Expr, NoColumns, eval, walk};
use base::{Datum, Type};
use core::ops::{Deref, DerefMut};
use serde::{Deserialize, Serialize};

/// Shorter lists are compared item by item, which is faster.
const LOOKUP_ITEMS: usize = 9;

/// Items of `IN (...)`, and their order once the planner has looked at them.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct List {
    items: Vec<Expr>,
    #[serde(skip)]
    order: Option<Box<Order>>,
}

/// The order of constant items.
#[derive(Clone)]
struct Order {
    /// Places of the items that are not NULL, by their values.
    places: Box<[u32]>,
    has_null: bool,
}

impl From<Vec<Expr>> for List {
    fn from(items: Vec<Expr>) -> List {
        List { items, order: None }
    }
}

impl Deref for List {
    type Target = Vec<Expr>;

    fn deref(&self) -> &Vec<Expr> {
        &self.items
    }
}

impl DerefMut for List {
    fn deref_mut(&mut self) -> &mut Vec<Expr> {
        self.order = None;
        &mut self.items
    }
}

impl PartialEq for List {
    fn eq(&self, other: &List) -> bool {
        self.items == other.items
    }
}

impl core::fmt::Debug for List {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.items.fmt(f)
    }
}

impl List {
    /// Whether the value, which is not NULL, is among many constants: `Some(None)` if that is
    /// unknown, because one of them is NULL. `None`: they are few, or not all are constants.
    pub(super) fn look_up(&self, value: &Datum) -> Option<Option<bool>> {
        let order = self.order.as_ref()?;
        let found = order.places.binary_search_by(|place| {
            constant(&self.items[*place as usize])
                .expect("an order is of constants")
                .compare(value)
        });
        Some(match found {
            Ok(_) => Some(true),
            Err(_) if order.has_null => None,
            Err(_) => Some(false),
        })
    }

    fn sorted(&self) -> Option<Order> {
        let values: Option<Vec<&Datum>> = self.items.iter().map(constant).collect();
        let values = values?;
        let mut places: Vec<u32> = (0..u32::try_from(values.len()).ok()?).collect();
        places.retain(|place| !values[*place as usize].is_null());
        places.sort_by(|a, b| values[*a as usize].compare(values[*b as usize]));
        Some(Order {
            has_null: places.len() < values.len(),
            places: places.into(),
        })
    }
}

fn constant(item: &Expr) -> Option<&Datum> {
    match item {
        Expr::Const(value, _) => Some(value),
        _ => None,
    }
}

/// Works out the order of long lists of constants, and makes such lists of long constant arrays.
/// Whoever changes a list afterwards must call it again, or the list is compared item by item.
pub fn prepare(expr: &mut Expr) {
    walk::map(expr, &mut |node| match node {
        Expr::InList(_, list, _) if list.len() >= LOOKUP_ITEMS => {
            list.order = list.sorted().map(Box::new);
        }
        Expr::AnyArray(_, op, array, all) => {
            if let Some(negated) = negated(*op, *all)
                && constant(array).is_some_and(|array| !is_short(array))
                && let Expr::Const(value, _) =
                    core::mem::replace(array.as_mut(), Expr::null(Type::Bool))
            {
                make_list(node, value, negated);
            }
        }
        _ => {}
    });
}

/// Whether a comparison with the items of an array is one with a list: `= ANY` (false), or
/// `<> ALL` (true).
fn negated(op: Compare, all: bool) -> Option<bool> {
    match (op, all) {
        (Compare::Eq, false) => Some(false),
        (Compare::Ne, true) => Some(true),
        _ => None,
    }
}

/// Makes a list of the items of the array of an [`Expr::AnyArray`], and its order.
fn make_list(node: &mut Expr, array: Datum, negated: bool) {
    let (Expr::AnyArray(arg, ..), Ok(items)) = (&mut *node, array.into_items()) else {
        unreachable!("the caller has looked");
    };
    let ty = arg.ty();
    let items = items.into_iter().map(|item| Expr::Const(item, ty));
    let mut list = List::from(items.collect::<Vec<Expr>>());
    list.order = list.sorted().map(Box::new);
    let arg = core::mem::replace(arg.as_mut(), Expr::null(ty));
    *node = Expr::InList(Box::new(arg), list, negated);
}

/// Whether an array is not worth looking up.
fn is_short(array: &Datum) -> bool {
    let items = array.as_array();
    items.is_none_or(|items| items.len() < LOOKUP_ITEMS)
}

/// Whether an expression has lists or arrays that [`with_constants`] may make quick.
pub fn has_open_lists(expr: &Expr) -> bool {
    walk::any(expr, &|node| match node {
        Expr::InList(_, list, _) => {
            list.len() >= LOOKUP_ITEMS && !list.iter().all(|item| constant(item).is_some())
        }
        Expr::AnyArray(_, _, array, _) => {
            walk::is_row_independent(array) && constant(array).is_none_or(|array| !is_short(array))
        }
        _ => false,
    })
}

/// Puts constants for the items of long lists and arrays that are the same for all rows, so that
/// they are looked up.
pub fn with_constants(expr: &mut Expr, env: &Env<'_>) {
    walk::map(expr, &mut |node| match node {
        Expr::InList(_, list, _) if list.len() >= LOOKUP_ITEMS => {
            for item in list.iter_mut() {
                // What fails does so where it is evaluated.
                if walk::is_row_independent(item)
                    && let Ok(value) = eval(item, &NoColumns, env)
                {
                    *item = Expr::Const(value, item.ty());
                }
            }
        }
        Expr::AnyArray(_, _, array, _) if walk::is_row_independent(array) => {
            let Ok(value) = eval(array, &NoColumns, env) else {
                return;
            };
            **array = Expr::Const(value, array.ty());
        }
        _ => {}
    });
    prepare(expr);
}

/// Nodes of an expression that are evaluated in the time of one unit of work, about.
const NODES_PER_UNIT: u64 = 64;
/// Nodes that a list which is looked up counts for.
const LOOKUP_NODES: u64 = 16;

/// Nodes that evaluating the expression for one row visits at most.
pub fn nodes(expr: &Expr) -> u64 {
    let mut count = 1;
    match expr {
        Expr::InList(arg, list, _) if list.order.is_some() => count += nodes(arg) + LOOKUP_NODES,
        Expr::Const(Datum::Array(items), _) => count += items.len() as u64,
        Expr::Const(Datum::Grid(grid), _) => count += grid.items().len() as u64,
        _ => expr.each_child(&mut |child| count += nodes(child)),
    }
    count
}

/// Units of work of a row for which `nodes` nodes are evaluated, the row itself included.
pub fn units_of_row(nodes: u64) -> u32 {
    u32::try_from(1 + nodes / NODES_PER_UNIT).unwrap_or(u32::MAX)
}

//! The form of expressions that hold subqueries: two that were bound separately, with numbers and
//! slots of their own, have the same form if they are the same expression.

use super::rel::{Bind, Call, Init, InitValue, Rel};
use expr::{Expr, walk};
use std::collections::BTreeMap;

/// What slots stand for.
pub(super) struct Forms<'f> {
    inits: &'f [Init<Rel>],
}

/// Marks slots that a relation sets itself, by the order in which it does.
const OWN: u32 = 1 << 31;

impl<'f> Forms<'f> {
    pub(super) fn new(inits: &'f [Init<Rel>]) -> Forms<'f> {
        Forms { inits }
    }

    /// The form of an expression over one row, `None` if it holds no subquery and no value that is
    /// computed when the statement starts: then it can be compared as it is. Its placeholders
    /// stand for `calls`.
    pub(super) fn of(&self, expr: &Expr, calls: &[Call<Rel>]) -> Option<String> {
        let special = |node: &Expr| match node {
            Expr::Subquery(..) => true,
            Expr::Param(slot, _) => self.init(*slot).is_some(),
            _ => false,
        };
        walk::any(expr, &special).then(|| {
            let mut text = String::new();
            self.add_expr(expr, calls, &mut text);
            text
        })
    }

    fn init(&self, slot: u32) -> Option<&'f InitValue<Rel>> {
        let found = self.inits.binary_search_by_key(&slot, |init| init.slot);
        found.ok().map(|place| &self.inits[place].value)
    }

    /// The expression, its calls and the initial values that it reads, in the order of their
    /// appearance.
    fn add_expr(&self, expr: &Expr, calls: &[Call<Rel>], text: &mut String) {
        let (mut expr, mut used, mut slots) = (expr.clone(), Vec::new(), Vec::new());
        walk::map(&mut expr, &mut |node| match node {
            Expr::Subquery(number, _) => {
                used.push(*number);
                *number = used.len() as u32;
            }
            Expr::Param(slot, _) if self.init(*slot).is_some() => {
                slots.push(*slot);
                *slot = OWN;
            }
            _ => {}
        });
        text.push_str(&format!("{expr:?};"));
        for number in used {
            self.add_call(&calls[number as usize], calls, text);
        }
        for slot in slots {
            match self.init(slot).expect("it was found above") {
                InitValue::Expr(expr) => self.add_expr(expr, &[], text),
                InitValue::Call(call) => self.add_call(call, &[], text),
            }
        }
    }

    fn add_call(&self, call: &Call<Rel>, calls: &[Call<Rel>], text: &mut String) {
        let mut call = call.clone();
        for expr in call.kind.outer_exprs() {
            self.add_expr(expr, calls, text);
        }
        // They have been told with the calls that they read.
        for expr in call.kind.outer_exprs_mut() {
            *expr = Expr::bool(true);
        }
        let mut names: BTreeMap<u32, u32> = BTreeMap::new();
        let mut inits = Vec::new();
        let mut name = |binds: &mut [Bind]| {
            for (slot, _) in binds {
                let next = OWN + 1 + names.len() as u32;
                *slot = *names.entry(*slot).or_insert(next);
            }
        };
        name(call.kind.outer_mut().1);
        if let Some(query) = call.kind.query_mut() {
            query.each_binds_mut(&mut name);
            query.each_expr_mut(&mut |expr| {
                walk::map(expr, &mut |node| {
                    if let Expr::Param(slot, _) = node {
                        if let Some(own) = names.get(slot) {
                            *slot = *own;
                        } else if self.init(*slot).is_some() {
                            inits.push(*slot);
                            *slot = OWN;
                        }
                    }
                });
            });
        }
        text.push_str(&format!("{call:?};"));
        for slot in inits {
            match self.init(slot).expect("it was found above") {
                InitValue::Expr(expr) => self.add_expr(expr, &[], text),
                InitValue::Call(call) => self.add_call(call, &[], text),
            }
        }
    }
}

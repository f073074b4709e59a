//! Whether a row stays in the range of its columns, and all guards hold, whichever of the pending
//! formulas commit and in whatever order (rule R9).
//!
//! ```text
//! additions   their raises and their reductions are summed up apart: the two ends
//! guards      hold at their end
//! constants, extremes, appends, factors, beside others only if folded in order
//!             the additions may rest on each of the constants: the ends begin at the outermost
//! values that are computed from columns, beside others only if folded in order
//!             no sums: all columns get ranges (`hull.rs`)
//! ```

mod hull;

use crate::increment::{Folding, lowers};
use alloc::vec::Vec;
use base::limits::ROW_BYTES_MAX;
use base::row::RowRef;
use base::{Datum, Decimal, Type};
use core::cmp::Ordering;
use hull::Kept;
use store::{ColumnFormula, Formula, FormulaOp, LATE_MAX};

/// Most bytes of a row whose values are no longer: their ends may take more bytes each.
fn bytes_max(row: RowRef<'_>) -> usize {
    row.bytes().len() + size_of::<u32>() * row.count()
}

/// Bytes by which a number in a row may grow, at most.
const NUMBER_BYTES_MAX: usize = 64;

/// Pending formulas of one row, with the sums of raises and of reductions apart. See the module: so
/// a fold never fails.
#[derive(Clone, Debug)]
pub struct Escrow {
    folding: Folding,
    raising: Formula,
    lowering: Formula,
    /// Changes that are no additions and no guards, if they commute.
    others: Formula,
    /// What changes that are no additions and no guards may make of the columns, if formulas are
    /// folded in order.
    bases: Vec<Base>,
    /// Conditions on the columns with all reductions ([`FormulaOp::AtLeast`]) or with all raises
    /// ([`FormulaOp::AtMost`]).
    guards: Vec<ColumnFormula>,
    /// Some formulas do not commute, or a guard cannot be computed.
    clash: bool,
    /// Number of formulas.
    count: usize,
    /// One of them computes values from columns.
    computes: bool,
    /// The formulas themselves, if a computed value stands beside them; no more than those that
    /// may.
    kept: Option<Kept>,
}

/// Values on which additions to a column may come to rest, beside the one that is there.
#[derive(Clone, Debug)]
struct Base {
    column: u16,
    ty: Type,
    /// Smallest and largest of them; `None`: all are NULL.
    ends: Option<(Datum, Datum)>,
    /// Bytes of the longest.
    bytes_max: usize,
    /// Bytes of all appends.
    appended: usize,
    /// The product of all factors above 1, if the column is multiplied.
    factor: Option<Decimal>,
}

impl Default for Escrow {
    fn default() -> Escrow {
        Escrow::new(Folding::AsTheyCome)
    }
}

impl Escrow {
    /// Nothing is pending.
    #[must_use]
    pub fn new(folding: Folding) -> Escrow {
        Escrow {
            folding,
            raising: Formula(Vec::new()),
            lowering: Formula(Vec::new()),
            others: Formula(Vec::new()),
            bases: Vec::new(),
            guards: Vec::new(),
            clash: false,
            count: 0,
            computes: false,
            kept: None,
        }
    }

    /// The formulas that `each` calls its argument with; `None`: none. `computes`: the formula that
    /// is to stand beside them computes a value from columns.
    pub fn of(
        folding: Folding,
        computes: bool,
        each: impl Fn(&mut dyn FnMut(Option<&Formula>)),
    ) -> Option<Escrow> {
        let all = |keeps: bool| {
            let mut escrow: Option<Escrow> = None;
            each(&mut |formula| {
                let Some(formula) = formula else {
                    return;
                };
                let escrow = escrow.get_or_insert_with(|| Escrow {
                    kept: keeps.then(Kept::default),
                    ..Escrow::new(folding)
                });
                escrow.add(formula);
            });
            escrow
        };
        let first = all(computes && folding == Folding::InOrder);
        let is_short = |it: &Escrow| it.computes && it.kept.is_none();
        match first.as_ref().is_some_and(is_short) {
            true => all(true),
            false => first,
        }
    }

    /// Adds the pending formula of one transaction.
    pub fn add(&mut self, formula: &Formula) {
        self.count += 1;
        self.computes |= formula.computes();
        if let Some(kept) = &mut self.kept {
            kept.add(formula);
            return;
        }
        if self.folding == Folding::AsTheyCome {
            let others = [&self.raising, &self.lowering, &self.others];
            self.clash |= !others.iter().all(|other| other.commutes_with(formula));
        }
        for (at, change) in formula.0.iter().enumerate() {
            let side = match (lowers(change), &change.op) {
                (_, FormulaOp::AtLeast(_) | FormulaOp::AtMost(_)) => {
                    match as_of_all(formula, at) {
                        Some(guard) => self.guards.push(guard),
                        None => self.clash = true,
                    }
                    continue;
                }
                (Some(true), _) => &mut self.lowering,
                (Some(false), _) => &mut self.raising,
                (None, _) if self.folding == Folding::InOrder => {
                    self.add_base(change);
                    continue;
                }
                (None, _) => &mut self.others,
            };
            let before = core::mem::replace(side, Formula(Vec::new()));
            *side = before.then(Formula(alloc::vec![change.clone()]));
        }
    }

    fn add_base(&mut self, change: &ColumnFormula) {
        let place = self.bases.iter().position(|it| it.column == change.column);
        let place = place.unwrap_or_else(|| {
            self.bases.push(Base {
                column: change.column,
                ty: change.ty,
                ends: None,
                bytes_max: 0,
                appended: 0,
                factor: None,
            });
            self.bases.len() - 1
        });
        let base = &mut self.bases[place];
        let Some(operand) = change.op.operand() else {
            self.clash = true;
            return;
        };
        // NaN, infinities and very long numbers have no ends to add to.
        if let Datum::Large(_) = operand {
            self.clash = true;
            return;
        }
        if let FormulaOp::Append(_) = change.op {
            base.appended += base::row::value_len(operand);
            return;
        }
        if let FormulaOp::Multiply(_) = change.op {
            let one = Decimal::from(1);
            let factor = size_of_number(operand).map_or(one, |size| size.max(one));
            match base.factor.unwrap_or(one).mul(factor) {
                Ok(product) => base.factor = Some(product),
                Err(_) => self.clash = true,
            }
            return;
        }
        base.bytes_max = base.bytes_max.max(base::row::value_len(operand));
        if matches!(operand, Datum::Int(_) | Datum::Decimal(_)) {
            base.ends = stretched(base.ends.take(), operand);
        }
    }

    /// Whether the row stays in the range of its columns, and all guards hold, if the transaction's
    /// increments so far (`own`) and `formula` are added to these, whichever of them commit.
    #[must_use]
    pub fn has_room(mut self, row: &[u8], own: Option<&Formula>, formula: &Formula) -> bool {
        match own {
            Some(own) => self.add(&own.clone().then(formula.clone())),
            None => self.add(formula),
        }
        let is_full = self.folding == Folding::InOrder && self.count > LATE_MAX;
        if self.clash || is_full {
            return false;
        }
        if let Some(kept) = &self.kept {
            return hull::fold_in_every_order(row, kept);
        }
        if self.computes {
            return false;
        }
        let guards = core::mem::take(&mut self.guards);
        if self.bases.is_empty() {
            return end_holds(&self.lowering, row, &guards, false)
                && end_holds(&self.raising, row, &guards, true);
        }
        self.bases_hold(RowRef::new(row), &guards).unwrap_or(false)
    }

    /// Changes that add to a column.
    fn additions(&self, column: u16) -> impl Iterator<Item = &ColumnFormula> {
        let all = self.raising.0.iter().chain(&self.lowering.0);
        all.filter(move |change| change.column == column)
    }

    /// Whether a column that is multiplied stays in its range: all additions away from zero, then
    /// all factors. `None`: that cannot be computed.
    fn product_holds(&self, base: &Base, ends: &Option<(Datum, Datum)>) -> Option<bool> {
        let mut size = Decimal::from(0);
        if let Some((least, most)) = ends {
            size = size_of_number(least)?.max(size_of_number(most)?);
        }
        for change in self.additions(base.column) {
            size = size.add(size_of_number(change.op.operand()?)?).ok()?;
        }
        // Each result is rounded.
        size = size.add(Decimal::from(self.count as i64)).ok()?;
        let size = size.mul(base.factor?).ok()?;
        if let Type::Numeric(Some(_)) = base.ty {
            let fits = |(precision, scale)| size.rescale(precision, scale).is_ok();
            return Some(base.ty.decimal_modifiers().is_some_and(fits));
        }
        let max = if base.ty == Type::Int2 {
            i64::from(i16::MAX)
        } else if base.ty == Type::Int4 {
            i64::from(i32::MAX)
        } else {
            i64::MAX
        };
        Some(size <= Decimal::from(max))
    }

    /// [`Escrow::has_room`] beside changes that are no additions. `None`: the row does not decode.
    fn bases_hold(&self, row: RowRef<'_>, guards: &[ColumnFormula]) -> Option<bool> {
        let columns = self.bases.len() + self.raising.0.len() + self.lowering.0.len();
        let mut bytes = bytes_max(row) + NUMBER_BYTES_MAX * columns;
        let (mut low, mut high) = (Vec::new(), Vec::new());
        for base in &self.bases {
            let at = usize::from(base.column);
            let current = row.col(at, base.ty).ok()?;
            if let Datum::Large(_) = current {
                return Some(false);
            }
            let now = base::row::value_len(&current);
            let longest = base.bytes_max.max(now);
            // Bytes are at least as many as characters.
            let is_long = base.appended > 0
                && matches!(base.ty, Type::Varchar(Some(chars))
                    if longest + base.appended > chars as usize);
            bytes += longest - now + base.appended;
            if is_long || guards.iter().any(|it| it.column == base.column) {
                return Some(false);
            }
            let adds = self.additions(base.column).next().is_some();
            if !adds && base.factor.is_none() {
                continue;
            }
            // Digits of one value would have to fit to those of another.
            if base.ty == Type::Numeric(None) {
                return Some(false);
            }
            let ends = stretched(base.ends.clone(), &current);
            if base.factor.is_some() {
                if !self.product_holds(base, &ends)? {
                    return Some(false);
                }
                continue;
            }
            if let Some((least, most)) = ends {
                low.push((at, least));
                high.push((at, most));
            }
        }
        if bytes > ROW_BYTES_MAX {
            return Some(false);
        }
        let (mut lowest, mut highest) = (Vec::new(), Vec::new());
        row.replace_columns(&low, &mut lowest).ok()?;
        row.replace_columns(&high, &mut highest).ok()?;
        let holds = end_holds(&self.lowering, &lowest, guards, false)
            && end_holds(&self.raising, &highest, guards, true);
        Some(holds)
    }
}

/// The absolute value of a number.
fn size_of_number(value: &Datum) -> Option<Decimal> {
    if let Datum::Int(value) = value {
        return Some(Decimal::from(*value).abs());
    }
    let Datum::Decimal(value) = value else {
        return None;
    };
    Some(value.abs())
}

/// The smallest and the largest of the ends and a value.
fn stretched(ends: Option<(Datum, Datum)>, value: &Datum) -> Option<(Datum, Datum)> {
    if value.is_null() {
        return ends;
    }
    let Some((least, most)) = ends else {
        return Some((value.clone(), value.clone()));
    };
    Some(match (value.compare(&least), value.compare(&most)) {
        (Ordering::Less, _) => (value.clone(), most),
        (_, Ordering::Greater) => (least, value.clone()),
        _ => (least, most),
    })
}

/// The guard at place `at` of the formula of one transaction, as a condition on the column with the
/// additions of all transactions: of those of its own, only the ones before it count for the guard.
/// `None`: it cannot be computed.
fn as_of_all(formula: &Formula, at: usize) -> Option<ColumnFormula> {
    let guard = &formula.0[at];
    let least = matches!(guard.op, FormulaOp::AtLeast(_));
    let mut bound = guard.op.operand()?.clone();
    for (place, change) in formula.0.iter().enumerate() {
        let FormulaOp::Add(operand) = &change.op else {
            continue;
        };
        // At this end only the additions that lead there count.
        let is_counted = lowers(change) == Some(least);
        bound = match (change.column == guard.column, place < at, is_counted) {
            (false, _, _) | (true, true, true) | (true, false, false) => continue,
            (true, false, true) => sum(&bound, operand, false)?,
            (true, true, false) => sum(&bound, operand, true)?,
        };
    }
    let op = match least {
        true => FormulaOp::AtLeast(bound),
        false => FormulaOp::AtMost(bound),
    };
    Some(ColumnFormula {
        op,
        ..guard.clone()
    })
}

/// `bound + operand`, or `bound - operand`.
fn sum(bound: &Datum, operand: &Datum, minus: bool) -> Option<Datum> {
    match (bound, operand) {
        (Datum::Int(a), Datum::Int(b)) if minus => a.checked_sub(*b).map(Datum::Int),
        (Datum::Int(a), Datum::Int(b)) => a.checked_add(*b).map(Datum::Int),
        (Datum::Decimal(a), Datum::Decimal(b)) if minus => a.sub(*b).ok().map(Datum::Decimal),
        (Datum::Decimal(a), Datum::Decimal(b)) => a.add(*b).ok().map(Datum::Decimal),
        _ => None,
    }
}

/// Whether the row with these additions stays in range and meets the guards that belong to them.
fn end_holds(additions: &Formula, row: &[u8], guards: &[ColumnFormula], raised: bool) -> bool {
    let mut out = Vec::with_capacity(row.len() + 16);
    if additions.fold(row, &mut out).is_err() {
        return false;
    }
    guards.iter().all(|guard| {
        let above = matches!(guard.op, FormulaOp::AtMost(_));
        let value = RowRef::new(&out).col(usize::from(guard.column), guard.ty);
        let value = value.unwrap_or(Datum::Null);
        let order = guard.op.operand().map(|bound| value.compare(bound));
        let holds = order.is_some_and(|it| if above { it.is_le() } else { it.is_ge() });
        above != raised || !value.is_null() && holds
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::increment::claim_to_add;
    use crate::lock::LockMode;
    use alloc::boxed::Box;
    use alloc::vec;
    use base::strings::StringFunc;
    use base::{Prng, row};
    use store::Write;
    use store::computed::{Arithmetic, Computed};

    const TYPES: [Type; 4] = [
        Type::Int2,
        Type::Varchar(Some(12)),
        Type::Int2,
        Type::Numeric(Some((3, 1))),
    ];

    /// Whether the formulas that are left fold onto the row in every order in which any of them
    /// commit.
    fn always_fold(row: &[u8], all: &[Formula], left: usize) -> bool {
        (0..all.len()).filter(|i| left & (1 << i) != 0).all(|i| {
            let mut next = Vec::new();
            all[i].fold(row, &mut next).is_ok() && always_fold(&next, all, left & !(1 << i))
        })
    }

    fn drawn(prng: &mut Prng) -> Formula {
        let mut changes = Vec::new();
        for (column, ty) in TYPES.into_iter().enumerate() {
            let number = Datum::Int(prng.between(32_700, 32_767));
            let text = Datum::Text("abcdef"[..prng.below(6) as usize].into());
            let op = match (ty, prng.below(9)) {
                (Type::Varchar(_), 0) => FormulaOp::Set(text),
                (Type::Varchar(_), 1..=3) => FormulaOp::Append(text),
                (Type::Int2, 0) => FormulaOp::Set(Datum::Null),
                (Type::Int2, 1) => FormulaOp::Set(number),
                (Type::Int2, 2) => FormulaOp::Max(number),
                (Type::Int2, 3) => FormulaOp::Min(number),
                (Type::Int2, 4..=5) => FormulaOp::Add(Datum::Int(prng.between(-20, 20))),
                (Type::Int2, 6) => FormulaOp::Multiply(Datum::Int(prng.between(-1, 1))),
                (Type::Numeric(_), 0..=2) => FormulaOp::Multiply(Datum::Decimal(
                    Decimal::from_parts(prng.between(-150, 150).into(), 2).expect("it is small"),
                )),
                (Type::Numeric(_), 3..=4) => FormulaOp::Add(Datum::Decimal(
                    Decimal::from_parts(prng.between(-99, 99).into(), 1).expect("it is small"),
                )),
                (_, 8) if prng.below(3) == 0 => FormulaOp::Compute(computed(prng, ty)),
                _ => continue,
            };
            changes.extend(ColumnFormula::new(column as u16, ty, op));
        }
        Formula(changes)
    }

    /// A value for a column of the type, from it or another one.
    fn computed(prng: &mut Prng, ty: Type) -> Computed {
        let column = match ty {
            Type::Int2 => 2 * prng.below(2) as u16,
            Type::Numeric(_) => 3,
            _ => 1,
        };
        let constant = match ty {
            Type::Int2 => Datum::Int(prng.between(-3, 3)),
            Type::Numeric(_) => Datum::Decimal(
                Decimal::from_parts(prng.between(-150, 150).into(), 2).expect("it is small"),
            ),
            _ => Datum::Text("ab".into()),
        };
        if prng.below(2) == 0
            && let Some(value) = of_texts(prng, ty)
        {
            return value;
        }
        let what = match ty {
            Type::Int2 | Type::Numeric(_) => [
                Arithmetic::Subtract,
                Arithmetic::Multiply,
                Arithmetic::Divide,
                Arithmetic::Remainder,
            ][prng.below(4) as usize],
            _ => Arithmetic::Append,
        };
        let mut operands = [Computed::Const(constant), Computed::Column(column, ty)];
        operands.rotate_left(prng.below(2) as usize);
        Computed::Calculate(what, Box::new(operands), ty)
    }

    /// A value for a column of the type that a function of texts makes.
    fn of_texts(prng: &mut Prng, ty: Type) -> Option<Computed> {
        let text = || Computed::Column(1, TYPES[1]);
        let number = |value: i64| Computed::Const(Datum::Int(value));
        let string = |value: &str| Computed::Const(Datum::Text(value.into()));
        let length = Computed::Text(StringFunc::Length, vec![text()]);
        let (func, args) = match (ty, prng.below(8)) {
            (Type::Int2, 0..=1) => return Some(length),
            (Type::Int2, _) => return None,
            (Type::Numeric(_), _) => return None,
            (_, 0) => (StringFunc::Upper, vec![text()]),
            (_, 1) => (StringFunc::Left, vec![text(), number(prng.between(-3, 9))]),
            (_, 2) => (
                StringFunc::PadLeft,
                vec![text(), number(prng.between(0, 14)), string("ä")],
            ),
            (_, 3) => (
                StringFunc::Repeat,
                vec![text(), number(prng.between(-1, 3))],
            ),
            (_, 4) => (
                StringFunc::Replace,
                vec![
                    text(),
                    string(["a", "ab"][prng.below(2) as usize]),
                    string(["", "b", "cd"][prng.below(3) as usize]),
                ],
            ),
            // It fails where the text is shorter than that.
            (_, 5) => {
                let less = Box::new([length, number(prng.between(1, 3))]);
                let less = Computed::Calculate(Arithmetic::Subtract, less, Type::Int8);
                (StringFunc::Substring, vec![text(), number(1), less])
            }
            (_, 6) => {
                let number = Computed::Output(Box::new(Computed::Column(0, TYPES[0])), TYPES[0]);
                (StringFunc::Concat, vec![string("n"), number])
            }
            _ => (StringFunc::TrimLeft, vec![text(), string("xa")]),
        };
        Some(Computed::Text(func, args))
    }

    #[test]
    fn formulas_that_share_a_row_fold_in_every_order() {
        let mut prng = Prng::new(11);
        let (mut shared, mut alone, mut refused, mut computed) = (0, 0, [0; 2], 0);
        for _ in 0..3_000 {
            let number = |prng: &mut Prng| Datum::Int(prng.between(32_600, 32_760));
            let start = [
                number(&mut prng),
                Datum::Text("xyz"[..prng.below(3) as usize].into()),
                number(&mut prng),
                Datum::Decimal(
                    Decimal::from_parts(prng.between(0, 500).into(), 1).expect("it is small"),
                ),
            ];
            let row = row::to_vec(&start);
            let mut all: Vec<Formula> = Vec::new();
            for _ in 0..4 {
                let formula = drawn(&mut prng);
                if formula.fold(&row, &mut Vec::new()).is_err() {
                    continue;
                }
                let escrowed = Escrow::of(Folding::InOrder, formula.computes(), |add| {
                    all.iter().for_each(|one| add(Some(one)));
                });
                // Sometimes it is the second formula of its transaction.
                let own = Some(drawn(&mut prng)).filter(|_| prng.below(4) == 0);
                let both = match &own {
                    Some(own) => own.clone().then(formula.clone()),
                    None => formula.clone(),
                };
                if both.fold(&row, &mut Vec::new()).is_err() {
                    continue;
                }
                let own = own.map(Write::Formula);
                let folding = Folding::InOrder;
                let claim = claim_to_add(&formula, own.as_ref(), escrowed, Some(&row), folding);
                all.push(both);
                let holds = always_fold(&row, &all, (1 << all.len()) - 1);
                if claim.mode() == LockMode::Exclusive {
                    alone += u32::from(!holds);
                    let by_range = all.iter().any(Formula::computes);
                    refused[usize::from(by_range)] += u32::from(holds && own.is_none());
                    all.pop();
                    continue;
                }
                assert!(holds, "{start:?} {all:?}");
                shared += 1;
                computed += u32::from(all.len() > 1 && all.iter().any(Formula::computes));
            }
        }
        assert!(shared > 4_000 && alone > 300, "{shared} {alone}");
        let [by_sum, by_range] = refused;
        assert!(computed > 1_000, "{computed}");
        assert!(
            by_sum < alone && by_range < 2 * computed,
            "more is refused than must be: {refused:?}"
        );
    }

    /// A row so large that a second append does not fit, and a first one does.
    #[test]
    fn appends_share_a_row_while_all_fit() {
        let text = Datum::Text("x".repeat(ROW_BYTES_MAX - 200).into());
        let row = row::to_vec(&[text]);
        let append = |bytes: usize| {
            let op = FormulaOp::Append(Datum::Text("y".repeat(bytes).into()));
            Formula(vec![
                ColumnFormula::new(0, Type::Text, op).expect("it is text"),
            ])
        };
        let beside = |pending: usize, bytes: usize| {
            let mut escrow = Escrow::new(Folding::InOrder);
            escrow.add(&append(pending));
            escrow.has_room(&row, None, &append(bytes))
        };
        assert!(beside(60, 60));
        assert!(!beside(100, 100));
    }

    fn change(column: u16, ty: Type, op: FormulaOp) -> Formula {
        let change = ColumnFormula::new(column, ty, op);
        Formula(vec![change.expect("it is exact")])
    }

    fn shares(row: &[u8], pending: &[&Formula], formula: &Formula) -> bool {
        let escrow = Escrow::of(Folding::InOrder, formula.computes(), |add| {
            pending.iter().for_each(|one| add(Some(one)));
        });
        escrow.is_none_or(|escrow| escrow.has_room(row, None, formula))
    }

    /// Arrays count as texts do: three of them that fit alone do not fit together.
    #[test]
    fn rows_of_any_order_are_no_larger_than_a_row_may_be() {
        let ty = Type::Array(base::ArrayKind::Text);
        let array = |bytes: usize| {
            let text = Datum::Text("x".repeat(bytes / 100).into());
            Datum::Array(vec![text; 100].into())
        };
        let row = row::to_vec(&[array(3 << 20), array(0), array(0), array(0)]);
        assert!(row.len() < ROW_BYTES_MAX / 2);
        let copy = |to: u16| change(to, ty, FormulaOp::Compute(Computed::Column(0, ty)));
        let (first, second, third) = (copy(1), copy(2), copy(3));
        let mut grown = Vec::new();
        assert!(first.fold(&row, &mut grown).is_ok() && grown.len() < ROW_BYTES_MAX);
        assert!(!shares(&row, &[&first, &second], &third));
    }

    /// Texts that grow with each formula are refused long before their lengths overflow.
    #[test]
    fn what_doubles_each_time_is_refused() {
        let twice = [0; 2].map(|_: i32| Computed::Column(0, Type::Text));
        let twice = Computed::Calculate(Arithmetic::Append, Box::new(twice), Type::Text);
        let twice = change(0, Type::Text, FormulaOp::Compute(twice));
        let row = row::to_vec(&[Datum::Text("x".repeat(1_000).into())]);
        let pending = vec![&twice; 31];
        assert!(shares(&row, &pending[..3], &twice));
        assert!(!shares(&row, &pending, &twice));
    }

    /// The escrow copies formulas, so it takes large ones only as far as its memory goes.
    #[test]
    fn large_formulas_stand_beside_each_other_up_to_a_limit() {
        let text = || Datum::Text("x".repeat(3 << 20).into());
        let row = row::to_vec(&[text()]);
        let large = Computed::Coalesce(vec![
            Computed::Column(0, Type::Text),
            Computed::Const(text()),
        ]);
        let large = change(0, Type::Text, FormulaOp::Compute(large));
        assert!(shares(&row, &[&large], &large));
        assert!(!shares(&row, &[&large; 5], &large));
    }

    #[test]
    fn the_formulas_of_a_row_are_so_many_at_most() {
        let row = row::to_vec(&[Datum::Int(1)]);
        let add = ColumnFormula::new(0, Type::Int8, FormulaOp::Add(Datum::Int(1)));
        let add = Formula(vec![add.expect("whole numbers add exactly")]);
        let mut escrow = Escrow::new(Folding::InOrder);
        (1..LATE_MAX).for_each(|_| escrow.add(&add));
        assert!(escrow.clone().has_room(&row, None, &add));
        escrow.add(&add);
        assert!(!escrow.has_room(&row, None, &add));
    }
}

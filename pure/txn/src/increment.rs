//! Increments: formulas that many transactions may have pending on one row (ADR 0006).
//!
//! Shared by all protocols: the lock that an operation needs. Whether the row has room for another
//! formula, [`Escrow`] knows. Each protocol decides when increments are folded onto the row, and
//! with that ([`Folding`]) which formulas may be increments.

use crate::columns::Columns;
use crate::escrow::Escrow;
use crate::lock::{Claim, LockMode};
use crate::program::RowProgram;
use base::{Datum, Decimal};
use store::{ColumnFormula, Formula, FormulaOp, Write};

/// The order in which a protocol folds the formulas of a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Folding {
    /// As their transactions end: they must commute.
    AsTheyCome,
    /// By their timestamps, on every node and in redo.
    InOrder,
}

impl Folding {
    /// Whether several transactions may have formulas like this one pending on a row.
    #[inline]
    #[must_use]
    pub fn shares(self, formula: &Formula) -> bool {
        formula.commutes() || self == Folding::InOrder && !formula.is_guarded()
    }
}

/// The columns that a formula changes, has conditions on, or computes from.
#[must_use]
pub fn columns_of(formula: &Formula) -> Columns {
    let mut columns = Columns::NONE;
    formula.each_column(&mut |column| columns = columns.union(Columns::one(column.into())));
    columns
}

/// The weakest lock under which the write may be kept until the commit.
#[must_use]
pub fn claim_of(write: &Write, folding: Folding) -> Claim {
    match write {
        Write::Formula(formula) if folding.shares(formula) => Claim::adds(columns_of(formula)),
        Write::Formula(_) | Write::Insert(_) | Write::Put(_) | Write::Delete => {
            LockMode::Exclusive.into()
        }
    }
}

/// Whether an addition lowers its column; `None`: the change is no addition.
pub(crate) fn lowers(change: &ColumnFormula) -> Option<bool> {
    match &change.op {
        FormulaOp::Add(Datum::Int(operand)) => Some(*operand < 0),
        FormulaOp::Add(Datum::Decimal(operand)) => Some(operand.is_negative()),
        FormulaOp::Add(_) => unreachable!("formulas add integers and decimals"),
        FormulaOp::Min(_)
        | FormulaOp::Max(_)
        | FormulaOp::Set(_)
        | FormulaOp::Append(_)
        | FormulaOp::AtLeast(_)
        | FormulaOp::AtMost(_)
        | FormulaOp::Multiply(_)
        | FormulaOp::Compute(_) => None,
    }
}

fn is_zero(operand: Option<&Datum>) -> bool {
    matches!(operand, Some(Datum::Int(0)))
        || matches!(operand, Some(Datum::Decimal(operand)) if *operand == Decimal::from(0))
}

/// Whether `later` lowers a column that `own` raises, or the other way round.
fn turns(own: &Formula, later: &Formula) -> bool {
    let opposite = |a: Option<bool>, b: Option<bool>| a.is_some() && b.is_some() && a != b;
    let lowers = |change| lowers(change).filter(|_| !is_zero(change.op.operand()));
    own.0.iter().any(|a| {
        let mut same = later.0.iter().filter(|b| a.column == b.column);
        same.any(|b| opposite(lowers(a), lowers(b)))
    })
}

/// The claim of a read in `mode`: a shared one covers only the columns that the program reads.
#[must_use]
pub fn claim_to_read(mode: LockMode, program: &dyn RowProgram) -> Claim {
    match mode {
        LockMode::Shared => Claim::reads(program.reads()),
        LockMode::Increment | LockMode::Fold | LockMode::Exclusive => mode.into(),
    }
}

/// The claim of `Op::Modify`. A program that adds reads the columns that it adds to, so no other
/// transaction has increments of them pending and its formula needs no escrow. For a guarded
/// formula see [`claim_to_change`].
#[must_use]
pub fn claim_to_modify(program: &dyn RowProgram) -> Claim {
    match program.formulas() {
        [formula] if formula.commutes() && !formula.is_guarded() => {
            let columns = columns_of(formula);
            Claim::adds(columns).join(Claim::reads(program.reads().union(columns)))
        }
        _ => LockMode::Exclusive.into(),
    }
}

/// The formulas of a program that may share its row although they have conditions: the escrow
/// answers them ([`claim_to_change`]). Empty: the program may not.
#[must_use]
pub fn guarded(program: &dyn RowProgram) -> &[Formula] {
    let formulas = program.formulas();
    let shares = |formula: &Formula| formula.is_guarded() && formula.commutes();
    match formulas.iter().all(shares) {
        true => formulas,
        false => &[],
    }
}

/// The claim of a change by the one of `formulas` whose guards hold, as [`claim_to_add`]: that of
/// the first whose guards hold whoever commits, exclusive if there is none.
#[must_use]
pub fn claim_to_change(
    formulas: &[Formula],
    own: Option<&Write>,
    escrow: Option<Escrow>,
    newest: Option<&[u8]>,
    folding: Folding,
) -> Claim {
    if let [formula] = formulas {
        return claim_to_add(formula, own, escrow, newest, folding);
    }
    let claim = |formula| claim_to_add(formula, own, escrow.clone(), newest, folding);
    let mut claims = formulas.iter().map(claim);
    let shares = claims.find(|claim| claim.mode() != LockMode::Exclusive);
    shares.unwrap_or(LockMode::Exclusive.into())
}

/// The claim of a formula on a row with newest version `newest`. `own`: the transaction's write to
/// the row; `escrow`: increments of others, if any.
///
/// Exclusive if the transaction is to keep the row itself ([`Formula::outgrows`]). Also if the row
/// might leave its range, or a guard might not hold, depending on which transactions commit,
/// because the answer then depends on them. Also if the transaction has moved the row the other way
/// before: the escrow knows only the sum, not how far it went on the way.
#[must_use]
pub fn claim_to_add(
    formula: &Formula,
    own: Option<&Write>,
    escrow: Option<Escrow>,
    newest: Option<&[u8]>,
    folding: Folding,
) -> Claim {
    if !folding.shares(formula) {
        return LockMode::Exclusive.into();
    }
    let own = own.and_then(Write::formula);
    if let Some(own) = own {
        let both = own.clone().then(formula.clone());
        if !folding.shares(own)
            || turns(own, formula)
            || !folding.shares(&both)
            || both.outgrows(formula)
        {
            return LockMode::Exclusive.into();
        }
    }
    let looks_away = formula.is_guarded() && base::is_planted(base::Planted::GuardOfNewest);
    let escrow = match escrow.filter(|_| !looks_away) {
        None if formula.is_guarded() || own.is_some_and(Formula::is_guarded) => {
            Some(Escrow::new(folding))
        }
        other => other,
    };
    let has_room = match (escrow, newest) {
        (Some(escrow), Some(newest)) => escrow.has_room(newest, own, formula),
        (None, Some(_)) => true,
        // There is no row, and there will be none unless the transaction inserts it.
        (_, None) => false,
    };
    match has_room {
        true => Claim::adds(columns_of(formula)),
        false => LockMode::Exclusive.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Folding::AsTheyCome;
    use alloc::vec;
    use alloc::vec::Vec;
    use base::Type;

    fn changing(column: u16, op: FormulaOp) -> Formula {
        let change = ColumnFormula::new(column, Type::Int2, op);
        Formula(vec![change.expect("integers add exactly")])
    }

    fn adding(operand: i64) -> Formula {
        changing(0, FormulaOp::Add(Datum::Int(operand)))
    }

    fn claim(own: Option<Formula>, pending: &[i64], formula: &Formula) -> LockMode {
        let mut row = Vec::new();
        base::row::encode(&[Datum::Int(32_000), Datum::Int(0)], &mut row);
        let own = own.map(Write::Formula);
        let mut escrow = None;
        for operand in pending {
            let escrow: &mut Escrow = escrow.get_or_insert_default();
            escrow.add(&adding(*operand));
        }
        claim_to_add(formula, own.as_ref(), escrow, Some(&row), AsTheyCome).mode()
    }

    #[test]
    fn increments_share_a_row_while_all_have_room() {
        use LockMode::{Exclusive, Increment};
        assert_eq!(claim(None, &[], &adding(5)), Increment);
        assert_eq!(claim(None, &[700], &adding(67)), Increment);
        // Only raises count, because the others may not commit.
        assert_eq!(claim(None, &[700, -5_000], &adding(68)), Exclusive);
        assert_eq!(claim(Some(adding(60)), &[700], &adding(8)), Exclusive);
        assert_eq!(claim(Some(adding(60)), &[700], &adding(7)), Increment);
        // An increment there and back: the escrow does not know how far it went.
        assert_eq!(claim(Some(adding(60)), &[], &adding(-1)), Exclusive);
        let set = changing(0, FormulaOp::Set(Datum::Int(3)));
        assert_eq!(claim(None, &[], &set), Exclusive);
        assert_eq!(claim_of(&Write::Formula(set), AsTheyCome).mode(), Exclusive);
        assert_eq!(columns_of(&adding(1)), Columns::one(0));
        // A value that is computed depends on its columns.
        let from = store::computed::Computed::Column(3, Type::Int2);
        let computed = changing(1, FormulaOp::Compute(from));
        assert_eq!(
            columns_of(&computed),
            Columns::one(1).union(Columns::one(3))
        );
        assert_eq!(
            claim_of(&Write::Formula(computed), AsTheyCome).mode(),
            Exclusive
        );
    }

    /// Sums have as many digits as they need.
    #[test]
    fn numbers_share_a_row_whatever_their_digits() {
        let number = |text: &str| Datum::Decimal(text.parse().expect("a number"));
        let adding = |text: &str| {
            let ty = Type::Numeric(None);
            let change = ColumnFormula::new(0, ty, FormulaOp::Add(number(text)));
            Formula(vec![change.expect("numbers add exactly")])
        };
        let row = base::row::to_vec(&[number("0")]);
        let beside = |pending: &str, formula: &str| {
            let mut escrow = Escrow::default();
            escrow.add(&adding(pending));
            claim_to_add(&adding(formula), None, Some(escrow), Some(&row), AsTheyCome).mode()
        };
        let large = "1000000000000000000000000000000";
        for (a, b) in [(large, "-0.0000000001"), ("-0.0000000001", large)] {
            assert_eq!(beside(a, b), LockMode::Increment);
            let fold = |row: &[u8], text: &str| {
                let mut out = Vec::new();
                adding(text).fold(row, &mut out).expect("sums fit");
                out
            };
            assert_eq!(fold(&fold(&row, a), b), fold(&fold(&row, b), a));
        }
        let nan = base::row::to_vec(&[base::numeric::parse("NaN").expect("a number")]);
        let mut escrow = Escrow::default();
        escrow.add(&adding("1"));
        let beside_nan = claim_to_add(&adding("2"), None, Some(escrow), Some(&nan), AsTheyCome);
        assert_eq!(beside_nan.mode(), LockMode::Increment);
        assert_eq!(beside("-1", large), LockMode::Increment);
    }

    #[test]
    fn extremes_share_a_column_with_their_own_class_only() {
        use LockMode::{Exclusive, Increment};
        let max = |value| changing(0, FormulaOp::Max(Datum::Int(value)));
        let min = changing(0, FormulaOp::Min(Datum::Int(3)));
        assert_eq!(claim(None, &[], &max(3)), Increment);
        assert_eq!(claim(None, &[5], &max(3)), Exclusive);
        assert_eq!(claim(Some(adding(5)), &[], &max(3)), Exclusive);
        assert_eq!(claim(Some(max(5)), &[], &max(3)), Increment);
        let both = adding(5).then(max(3));
        assert_eq!(
            claim_of(&Write::Formula(both), AsTheyCome).mode(),
            Exclusive
        );
        let row = base::row::to_vec(&[Datum::Int(32_000), Datum::Int(0)]);
        let beside = |pending: &Formula, formula: &Formula| {
            let mut escrow = Escrow::default();
            escrow.add(pending);
            claim_to_add(formula, None, Some(escrow), Some(&row), AsTheyCome).mode()
        };
        assert_eq!(beside(&max(9), &max(3)), Increment);
        assert_eq!(beside(&min, &max(3)), Exclusive);
        assert_eq!(beside(&max(9), &adding(3)), Exclusive);
        let other = changing(1, FormulaOp::Add(Datum::Int(3)));
        assert_eq!(beside(&max(9), &other), Increment);
    }

    /// Whether the guards of all formulas hold in every order in which any of them commit.
    fn always_hold(start: i64, all: &[Vec<(FormulaOp, i64)>], left: usize) -> bool {
        (0..all.len()).filter(|i| left & (1 << i) != 0).all(|i| {
            let mut value = start;
            let holds = all[i].iter().all(|(op, operand)| match op {
                FormulaOp::AtLeast(_) => value >= *operand,
                FormulaOp::AtMost(_) => value <= *operand,
                _ => {
                    value += operand;
                    true
                }
            });
            holds
                && always_hold(value, all, left & !(1 << i))
                && always_hold(start, all, left & !(1 << i))
        })
    }

    #[test]
    fn a_guard_shares_the_row_if_it_holds_for_every_outcome() {
        let mut prng = base::Prng::new(7);
        let (mut shared, mut alone) = (0, 0);
        for _ in 0..3_000 {
            let start = prng.between(0, 20);
            let row = base::row::to_vec(&[Datum::Int(start), Datum::Int(0)]);
            let mut all: Vec<Vec<(FormulaOp, i64)>> = Vec::new();
            let mut escrow = None;
            for _ in 0..4 {
                let amount = prng.between(-6, 6);
                let mut list = vec![(FormulaOp::Add(Datum::Int(amount)), amount)];
                for _ in 0..prng.below(3) {
                    let bound = prng.between(-5, 25);
                    let op = match prng.below(2) {
                        0 => FormulaOp::AtLeast(Datum::Int(bound)),
                        _ => FormulaOp::AtMost(Datum::Int(bound)),
                    };
                    list.insert(prng.below(list.len() as u64 + 1) as usize, (op, bound));
                }
                let changes = list.iter().flat_map(|(op, _)| changing(0, op.clone()).0);
                let formula = Formula(changes.collect());
                let claim = claim_to_add(&formula, None, escrow.clone(), Some(&row), AsTheyCome);
                all.push(list);
                let holds = always_hold(start, &all, (1 << all.len()) - 1);
                assert!(
                    holds || claim.mode() == LockMode::Exclusive,
                    "{start} {all:?}"
                );
                assert!(
                    !holds || claim.mode() == LockMode::Increment,
                    "{start} {all:?}"
                );
                match claim.mode() {
                    LockMode::Increment => {
                        shared += 1;
                        escrow.get_or_insert_default().add(&formula);
                    }
                    _ => {
                        alone += 1;
                        all.pop();
                    }
                }
            }
        }
        assert!(shared > 1_000 && alone > 1_000, "{shared} {alone}");
    }

    #[test]
    fn a_guard_on_null_is_looked_at_alone() {
        let row = base::row::to_vec(&[Datum::Null, Datum::Int(0)]);
        let guard = changing(0, FormulaOp::AtLeast(Datum::Int(0)));
        let formula = guard.then(adding(5));
        let claim = claim_to_add(&formula, None, None, Some(&row), AsTheyCome);
        assert_eq!(claim.mode(), LockMode::Exclusive);
    }
}

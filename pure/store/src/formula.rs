//! Writes that are functions of the row (Rubato DB, section 4; rule R9).
//!
//! ```text
//! class     changes            whoever else has one pending on the column
//! Add       c + x              commutes with Add, if the sum of all stays in the column's range
//! Min, Max  LEAST, GREATEST    commutes with its own class
//! Guard     nothing: c >= x    commutes with Add, if it holds whichever of them commit
//! Set       x                  ordered: has the row to itself, or a place in a global order
//! Append    c || x             ordered
//! Multiply  c * x              ordered
//! Compute   f(columns)         ordered
//! ```

use crate::computed::{Arithmetic, COMPUTED_BYTES_MAX, Computed, calculate, cast};
use alloc::vec::Vec;
use base::codec;
use base::limits::{PROGRAM_BYTES_MAX, ROW_BYTES_MAX};
use base::row::RowRef;
use base::{Datum, SqlError, SqlState, Type};
use core::cell::Cell;
use core::cmp::Ordering;
use serde::{Deserialize, Serialize};

/// Most changes of one row that a transaction keeps apart, unless one statement makes more.
const CHANGES_MAX: usize = 32;

/// Column changes of one row, applied in order. The row must be present.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Formula(pub Vec<ColumnFormula>);

/// One change of one column.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ColumnFormula {
    /// Position of the column in the row, from 0.
    pub column: u16,
    /// Type of the column: the result must stay in its range.
    pub ty: Type,
    /// The change.
    pub op: FormulaOp,
}

/// The function applied to the column's value.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum FormulaOp {
    /// `column + operand`; NULL stays NULL. A subtraction is an addition of the negated operand.
    Add(Datum),
    /// `LEAST(column, operand)`; NULL becomes the operand.
    Min(Datum),
    /// `GREATEST(column, operand)`; NULL becomes the operand.
    Max(Datum),
    /// The operand, as the column stores it, whatever was there.
    Set(Datum),
    /// `column || operand`, for text and bytea; NULL stays NULL.
    Append(Datum),
    /// Changes nothing. The column is at least the operand where the change stands in the formula:
    /// whoever adds the formula to a row has found that to hold.
    AtLeast(Datum),
    /// As [`FormulaOp::AtLeast`]: the column is at most the operand.
    AtMost(Datum),
    /// `column * operand`, rounded to the digits of the column; NULL stays NULL.
    Multiply(Datum),
    /// A value computed from columns as the changes before have left them.
    Compute(Computed),
}

/// Class of a change.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[allow(missing_docs)]
pub enum FormulaClass {
    Add,
    Min,
    Max,
    /// Conditions on a column.
    Guard,
    Set,
    Append,
    Multiply,
    Compute,
}

impl FormulaClass {
    /// Whether changes of this class on one column commute with each other. Others are ordered:
    /// their result depends on what was changed before.
    #[inline]
    #[must_use]
    pub fn commutes(self) -> bool {
        match self {
            FormulaClass::Add | FormulaClass::Min | FormulaClass::Max | FormulaClass::Guard => true,
            FormulaClass::Set
            | FormulaClass::Append
            | FormulaClass::Multiply
            | FormulaClass::Compute => false,
        }
    }

    /// Whether changes of the two classes on one column may be pending side by side. A guard and an
    /// addition may as long as the guard holds with and without the addition.
    #[must_use]
    pub fn shares(self, other: FormulaClass) -> bool {
        use FormulaClass::{Add, Guard};
        let guarded = matches!((self, other), (Add, Guard) | (Guard, Add));
        guarded || self == other && self.commutes()
    }
}

impl FormulaOp {
    /// The class of this operation.
    pub fn class(&self) -> FormulaClass {
        match self {
            FormulaOp::Add(_) => FormulaClass::Add,
            FormulaOp::Min(_) => FormulaClass::Min,
            FormulaOp::Max(_) => FormulaClass::Max,
            FormulaOp::Set(_) => FormulaClass::Set,
            FormulaOp::Append(_) => FormulaClass::Append,
            FormulaOp::AtLeast(_) | FormulaOp::AtMost(_) => FormulaClass::Guard,
            FormulaOp::Multiply(_) => FormulaClass::Multiply,
            FormulaOp::Compute(_) => FormulaClass::Compute,
        }
    }

    /// The operand; `None`: there are columns instead.
    pub fn operand(&self) -> Option<&Datum> {
        Some(match self {
            FormulaOp::Add(operand)
            | FormulaOp::Min(operand)
            | FormulaOp::Max(operand)
            | FormulaOp::Set(operand)
            | FormulaOp::Append(operand)
            | FormulaOp::AtLeast(operand)
            | FormulaOp::AtMost(operand)
            | FormulaOp::Multiply(operand) => operand,
            FormulaOp::Compute(_) => return None,
        })
    }

    /// Bytes of memory beside the operation itself.
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        match self {
            FormulaOp::Compute(value) => value.size_bytes(),
            other => other.operand().map_or(0, crate::write::value_bytes),
        }
    }

    /// Whether the result depends on a column that is not the one it changes.
    fn reads(&self, column: u16) -> bool {
        matches!(self, FormulaOp::Compute(value) if value.reads(column))
    }
}

impl ColumnFormula {
    /// The change `op` of a column; `None`: it would not be exact. That holds for additions of
    /// floats (they round) and of numeric operands with more fraction digits than the column keeps
    /// (each would round), for NULL operands except of [`FormulaOp::Set`], for operands of another
    /// kind than the column, and for values that the column cannot keep.
    pub fn new(column: u16, ty: Type, op: FormulaOp) -> Option<ColumnFormula> {
        use FormulaClass::{Add, Append, Compute, Guard, Max, Min, Multiply, Set};
        let class = op.class();
        let op = match op {
            FormulaOp::Set(value) => FormulaOp::Set(base::text::fit(ty, value).ok()?),
            FormulaOp::Min(value) => FormulaOp::Min(kept(ty, value)?),
            FormulaOp::Max(value) => FormulaOp::Max(kept(ty, value)?),
            other => other,
        };
        let exact = match (class, ty, op.operand()) {
            (Set | Compute, ..) => true,
            (_, _, None) => false,
            (Append, Type::Text | Type::Varchar(_), Some(Datum::Text(_)))
            | (Append, Type::Bytea, Some(Datum::Bytes(_))) => true,
            (Append, ..) => false,
            (_, Type::Int2 | Type::Int4 | Type::Int8, Some(Datum::Int(_))) => true,
            (Multiply, Type::Numeric(_), Some(Datum::Decimal(_))) => true,
            (_, Type::Numeric(Some((_, scale))), Some(Datum::Decimal(value))) => {
                i16::from(value.scale()) <= scale
            }
            // Without a fixed scale, 1.0 and 1.00 are equal and LEAST would depend on the order.
            (Add | Guard, Type::Numeric(None), Some(Datum::Decimal(_))) => true,
            (Min | Max, Type::Date, Some(Datum::Date(_)))
            | (Min | Max, Type::Timestamp(_) | Type::Timestamptz(_), Some(Datum::Timestamp(_))) => {
                true
            }
            _ => false,
        };
        exact.then_some(ColumnFormula { column, ty, op })
    }

    /// The new value of the column, which depends on nothing but the old one: no
    /// [`FormulaOp::Compute`]. Errors: 22003 if it leaves the range of the type, 22001 if it is too
    /// long for it.
    fn apply(&self, current: &Datum) -> Result<Datum, SqlError> {
        let with = |what, operand| match calculate(what, current, operand, self.ty)? {
            // Of a whole number, the range is looked at.
            Datum::Int(value) => Ok(Datum::Int(value)),
            other => cast(other, self.ty),
        };
        match &self.op {
            FormulaOp::Add(operand) => with(Arithmetic::Add, operand),
            FormulaOp::Multiply(operand) => with(Arithmetic::Multiply, operand),
            FormulaOp::Min(operand) => Ok(choose(current, operand, Ordering::Less)),
            FormulaOp::Max(operand) => Ok(choose(current, operand, Ordering::Greater)),
            FormulaOp::Set(operand) => Ok(operand.clone()),
            FormulaOp::Append(operand) => with(Arithmetic::Append, operand),
            FormulaOp::AtLeast(_) | FormulaOp::AtMost(_) => Ok(current.clone()),
            FormulaOp::Compute(_) => unreachable!("what is computed reads other columns"),
        }
    }

    /// Whether there are rows on which it is an error.
    fn may_fail(&self) -> bool {
        match self.op.class() {
            FormulaClass::Add | FormulaClass::Multiply | FormulaClass::Compute => true,
            FormulaClass::Append => !self.has_any_length(),
            FormulaClass::Min | FormulaClass::Max | FormulaClass::Set | FormulaClass::Guard => {
                false
            }
        }
    }

    fn has_any_length(&self) -> bool {
        matches!(self.ty, Type::Text | Type::Varchar(None) | Type::Bytea)
    }

    /// Both changes of one column as one, if one operation can do what both do.
    fn merge(&self, later: &ColumnFormula) -> Option<FormulaOp> {
        match (&self.op, &later.op) {
            (FormulaOp::AtLeast(_) | FormulaOp::AtMost(_), _)
            | (_, FormulaOp::AtLeast(_) | FormulaOp::AtMost(_)) => None,
            // What leaves the range of the column is an error, whatever replaces it.
            (_, FormulaOp::Set(value)) => (!self.may_fail()).then(|| FormulaOp::Set(value.clone())),
            (FormulaOp::Set(_), FormulaOp::Compute(_)) => None,
            (FormulaOp::Set(value), _) => later.apply(value).ok().map(FormulaOp::Set),
            (FormulaOp::Add(Datum::Int(a)), FormulaOp::Add(Datum::Int(b))) => {
                a.checked_add(*b).map(|sum| FormulaOp::Add(Datum::Int(sum)))
            }
            (FormulaOp::Add(Datum::Decimal(a)), FormulaOp::Add(Datum::Decimal(b))) => a
                .add(*b)
                .ok()
                .map(|sum| FormulaOp::Add(Datum::Decimal(sum))),
            (FormulaOp::Min(a), FormulaOp::Min(b)) => {
                Some(FormulaOp::Min(choose(a, b, Ordering::Less)))
            }
            (FormulaOp::Max(a), FormulaOp::Max(b)) => {
                Some(FormulaOp::Max(choose(a, b, Ordering::Greater)))
            }
            (FormulaOp::Append(a), FormulaOp::Append(b)) if self.has_any_length() => {
                let both = calculate(Arithmetic::Append, a, b, self.ty);
                both.ok().map(FormulaOp::Append)
            }
            // Other appends stay apart: each is cut to the column's length.
            (
                FormulaOp::Add(_)
                | FormulaOp::Min(_)
                | FormulaOp::Max(_)
                | FormulaOp::Append(_)
                | FormulaOp::Multiply(_)
                | FormulaOp::Compute(_),
                _,
            ) => None,
        }
    }
}

impl Formula {
    /// Appends to `out` the row that results from `row`.
    ///
    /// Errors: 22003 if a result leaves the range of its column, 22001 if it is too long for it,
    /// 54000 if a set value or an append makes the row or a value in between too big, XX001 if the
    /// row does not decode;
    /// `out` then has undefined content after its old end.
    pub fn fold(&self, row: &[u8], out: &mut Vec<u8>) -> Result<(), SqlError> {
        let (row, before) = (RowRef::new(row), out.len());
        match self.0.as_slice() {
            [] => {
                out.extend_from_slice(row.bytes());
                return Ok(());
            }
            // What nearly every formula is.
            [only] if only.op.class() != FormulaClass::Compute => {
                let column = usize::from(only.column);
                let current = row.col(column, only.ty).map_err(corrupt)?;
                let value = only.apply(&current)?;
                row.replace(column, &value, out).map_err(corrupt)?;
            }
            all => {
                let values = Vec::with_capacity(all.len());
                let mut changed = Changed { row, values };
                all.iter().try_for_each(|change| changed.apply(change))?;
                let replaced = row.replace_columns(&changed.values, out);
                replaced.map_err(corrupt)?;
            }
        }
        self.fits(out.len() - before)
    }

    /// Whether the row is not too big. Not asked of formulas that commute: several may be pending,
    /// each on a row without the others, and they make a row grow by a few bytes only.
    fn fits(&self, bytes: usize) -> Result<(), SqlError> {
        match self.commutes() {
            true => Ok(()),
            false => fits(bytes),
        }
    }

    /// Whether all guards hold on the row. A guard looks at the column as the changes before it
    /// have left it. On NULL, and where a change fails, a guard does not hold.
    #[must_use]
    pub fn holds(&self, row: &[u8]) -> bool {
        self.guards_hold(RowRef::new(row)).unwrap_or(false)
    }

    /// [`Formula::holds`]; `None`: a change fails.
    fn guards_hold(&self, row: RowRef<'_>) -> Option<bool> {
        let mut changed = Changed {
            row,
            values: Vec::new(),
        };
        for change in &self.0 {
            let least = match &change.op {
                FormulaOp::AtLeast(_) => true,
                FormulaOp::AtMost(_) => false,
                _ => {
                    changed.apply(change).ok()?;
                    continue;
                }
            };
            let value = changed.column(change.column, change.ty).ok()?;
            let order = value.compare(change.op.operand()?);
            let holds = if least { order.is_ge() } else { order.is_le() };
            if value.is_null() || !holds {
                return Some(false);
            }
        }
        Some(true)
    }

    /// Whether any number of transactions may have formulas like this one pending on a row: each
    /// column has changes of one class, and that commutes. A guard may stand beside additions.
    #[inline]
    #[must_use]
    pub fn commutes(&self) -> bool {
        match self.0.as_slice() {
            [only] => only.op.class().commutes(),
            _ => self.commutes_with(self),
        }
    }

    /// Whether the order of `self` and `other` does not matter: no column has changes in both that
    /// exclude each other, and neither computes from a column that the other changes.
    #[must_use]
    pub fn commutes_with(&self, other: &Formula) -> bool {
        let shares = |a: &ColumnFormula, b: &ColumnFormula| match a.column == b.column {
            true => a.op.class().shares(b.op.class()),
            false => !a.op.reads(b.column) && !b.op.reads(a.column),
        };
        self.0.iter().all(|a| other.0.iter().all(|b| shares(a, b)))
    }

    /// Whether the formula has conditions: then it may be added to a row only where they hold.
    #[inline]
    #[must_use]
    pub fn is_guarded(&self) -> bool {
        let guard = |change: &ColumnFormula| change.op.class() == FormulaClass::Guard;
        self.0.iter().any(guard)
    }

    /// Whether a value is computed from columns.
    #[inline]
    #[must_use]
    pub fn computes(&self) -> bool {
        let computes = |change: &ColumnFormula| change.op.class() == FormulaClass::Compute;
        self.0.iter().any(computes)
    }

    /// Calls `visit` for each column that the formula changes, has conditions on, or computes from;
    /// for some more than once.
    pub fn each_column(&self, visit: &mut dyn FnMut(u16)) {
        for change in &self.0 {
            visit(change.column);
            if let FormulaOp::Compute(value) = &change.op {
                value.each(&mut |it| {
                    if let Computed::Column(column, _) = it {
                        visit(*column);
                    }
                });
            }
        }
    }

    /// Its encoded size in bytes if that exceeds [`PROGRAM_BYTES_MAX`]: no frame could carry it.
    #[must_use]
    pub fn too_long(&self) -> Option<usize> {
        // In memory it takes more.
        if self.size_bytes() <= PROGRAM_BYTES_MAX {
            return None;
        }
        let mut encoded = Vec::new();
        codec::encode(self, &mut encoded);
        (encoded.len() > PROGRAM_BYTES_MAX).then_some(encoded.len())
    }

    /// Whether a transaction that has made the formula of several, the last of which is `last`, had
    /// better keep the row itself: each fold of the formula would cost as much as all of them.
    #[must_use]
    pub fn outgrows(&self, last: &Formula) -> bool {
        let changes = last.0.len().max(CHANGES_MAX);
        self.0.len() > changes || self.size_bytes() > ROW_BYTES_MAX
    }

    /// Bytes of memory, about.
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        let changes = self.0.iter();
        let sizes = changes.map(|change| size_of::<ColumnFormula>() + change.op.size_bytes());
        sizes.sum()
    }

    /// Applies `self`, then `later`: operations on one column and of one class become one.
    #[must_use]
    pub fn then(self, later: Formula) -> Formula {
        let both = match self.has_late_guard() {
            true => Formula(Vec::new()).with(self.0),
            false => self,
        };
        both.with(later.0)
    }

    /// Whether a guard stands behind an addition.
    fn has_late_guard(&self) -> bool {
        self.is_guarded()
            && self
                .0
                .iter()
                .any(|change| change.op.class() == FormulaClass::Add)
    }

    /// Moves a guard in front of the additions to its column, where it joins the guard of its kind
    /// that stands there. Returns whether that was possible.
    fn take_guard(&mut self, guard: &ColumnFormula) -> bool {
        let Some(mut bound) = guard.op.operand().cloned() else {
            return false;
        };
        let least = matches!(guard.op, FormulaOp::AtLeast(_));
        let (mut first, mut same) = (None, None);
        for (at, own) in self.0.iter().enumerate() {
            if own.column != guard.column {
                continue;
            }
            first.get_or_insert(at);
            match &own.op {
                FormulaOp::Add(operand) => match minus(&bound, operand) {
                    Some(less) => bound = less,
                    None => return false,
                },
                FormulaOp::AtLeast(_) if least => same = Some(at),
                FormulaOp::AtMost(_) if !least => same = Some(at),
                FormulaOp::AtLeast(_) | FormulaOp::AtMost(_) => {}
                FormulaOp::Min(_)
                | FormulaOp::Max(_)
                | FormulaOp::Set(_)
                | FormulaOp::Append(_)
                | FormulaOp::Multiply(_)
                | FormulaOp::Compute(_) => {
                    return false;
                }
            }
        }
        let order = match least {
            true => Ordering::Greater,
            false => Ordering::Less,
        };
        if let Some(same) = same {
            let other = self.0[same].op.operand();
            bound = other.map_or_else(|| bound.clone(), |other| choose(other, &bound, order));
        }
        let op = match least {
            true => FormulaOp::AtLeast(bound),
            false => FormulaOp::AtMost(bound),
        };
        let guard = ColumnFormula {
            op,
            ..guard.clone()
        };
        match (same, first) {
            (Some(same), _) => self.0[same] = guard,
            (None, Some(first)) => self.0.insert(first, guard),
            (None, None) => self.0.push(guard),
        }
        true
    }

    fn with(mut self, later: Vec<ColumnFormula>) -> Formula {
        for change in later {
            if change.op.class() == FormulaClass::Guard && self.take_guard(&change) {
                continue;
            }
            // Only the last change of the column may be merged: order matters between classes. And
            // what is computed in between sees the column without the later change.
            let mut earlier = self.0.iter_mut().rev();
            let last = earlier
                .find(|it| it.column == change.column || it.op.reads(change.column))
                .filter(|it| it.column == change.column);
            match last.and_then(|earlier| earlier.merge(&change).map(|op| (earlier, op))) {
                Some((earlier, op)) => earlier.op = op,
                None => self.0.push(change),
            }
        }
        self
    }
}

/// A row with some columns changed.
struct Changed<'a> {
    row: RowRef<'a>,
    /// The columns and their new values.
    values: Vec<(usize, Datum)>,
}

impl Changed<'_> {
    fn column(&self, column: u16, ty: Type) -> Result<Datum, SqlError> {
        let column = usize::from(column);
        let mut values = self.values.iter();
        match values.find(|(known, _)| *known == column) {
            Some((_, value)) => Ok(value.clone()),
            None => self.row.col(column, ty).map_err(corrupt),
        }
    }

    /// What the change makes of its column.
    fn value(&self, change: &ColumnFormula) -> Result<Datum, SqlError> {
        if let FormulaOp::Compute(value) = &change.op {
            let read = Cell::new(0);
            let value = value.value(&|column, ty| {
                let value = self.column(column, ty)?;
                read.set(read.get() + base::row::value_len(&value));
                reads_little(read.get()).map(|()| value)
            })?;
            return cast(value, change.ty);
        }
        change.apply(&self.column(change.column, change.ty)?)
    }

    fn apply(&mut self, change: &ColumnFormula) -> Result<(), SqlError> {
        let value = self.value(change)?;
        let column = usize::from(change.column);
        match self.values.iter_mut().find(|(known, _)| *known == column) {
            Some((_, old)) => *old = value,
            None => self.values.push((column, value)),
        }
        Ok(())
    }
}

/// The bound of a guard before an addition; `None`: it cannot be computed.
fn minus(bound: &Datum, operand: &Datum) -> Option<Datum> {
    match (bound, operand) {
        (Datum::Int(a), Datum::Int(b)) => a.checked_sub(*b).map(Datum::Int),
        (Datum::Decimal(a), Datum::Decimal(b)) => a.sub(*b).ok().map(Datum::Decimal),
        _ => None,
    }
}

fn fits(bytes: usize) -> Result<(), SqlError> {
    if bytes <= ROW_BYTES_MAX {
        return Ok(());
    }
    let message = alloc::format!("row is too big: size {bytes}, maximum size {ROW_BYTES_MAX}");
    Err(SqlError::new(SqlState::PROGRAM_LIMIT, message))
}

fn reads_little(bytes: usize) -> Result<(), SqlError> {
    if bytes <= COMPUTED_BYTES_MAX {
        return Ok(());
    }
    let detail = alloc::format!("It may read {COMPUTED_BYTES_MAX} bytes, and the row has more.");
    let text = "a value is computed from columns that are too long";
    Err(SqlError::new(SqlState::PROGRAM_LIMIT, text).detail(detail))
}

fn corrupt(error: codec::CodecError) -> SqlError {
    SqlError::new(SqlState::DATA_CORRUPTED, "a stored row does not decode")
        .detail(alloc::format!("{error}."))
}

fn choose(current: &Datum, operand: &Datum, wanted: Ordering) -> Datum {
    let replace = current.is_null() || operand.compare(current) == wanted;
    if replace {
        operand.clone()
    } else {
        current.clone()
    }
}

/// `value` as a column of this type keeps it, if that is the same value.
fn kept(ty: Type, value: Datum) -> Option<Datum> {
    let kept = base::text::fit(ty, value.clone()).ok()?;
    (kept.compare(&value) == Ordering::Equal).then_some(kept)
}

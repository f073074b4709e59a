//! Expressions that a formula computes where its row is folded: of SQL what the store can bound.

use crate::{Compare, Env, Expr, Func, TextFunc, value_of, walk};
use base::strings::StringFunc;
use base::{Datum, Type};
use functions::{ArrayFunc, DateFunc, JsonFunc};
use txn::computed::{
    Arithmetic, COMPUTED_NODES_MAX, Computed, Condition, MULTIPLIERS_MAX, Rounding, ValueFunc,
};

/// Whether a formula can compute the value, if no parameter is NULL. The result then is NULL only
/// where a column that it reads is, or where it [`makes_null`].
pub fn is_computable(value: &Expr) -> bool {
    computed(value, None).is_some()
}

/// Whether a value that a formula can compute may be NULL although no column is.
pub fn makes_null(value: &Expr) -> bool {
    let mut makes = false;
    if let Some(value) = computed(value, None) {
        value.each(&mut |it| {
            makes |= matches!(it, Computed::Call(func, _, ty) if func.makes_null(*ty));
        });
    }
    makes
}

/// The first part of a value, in the order of evaluation, that a formula cannot compute although it
/// can compute all that the part is made of; `None`: there is none, or it is too long.
pub fn uncomputable(value: &Expr) -> Option<&Expr> {
    if is_computable(value) {
        return None;
    }
    let mut inside = None;
    value.each_child(&mut |child| inside = inside.or_else(|| uncomputable(child)));
    match inside {
        None if is_too_long(value) => None,
        None => Some(value),
        found => found,
    }
}

/// Whether a value has more parts than a formula may have.
fn is_too_long(value: &Expr) -> bool {
    let mut parts = 0;
    walk::walk(value, &mut |_| parts += 1);
    // Some functions take two.
    2 * parts > COMPUTED_NODES_MAX
}

/// The value for these parameters; `None`: a formula cannot compute it, or a part over no columns
/// fails. Without an environment, what is over no columns stays open.
pub(super) fn computed(value: &Expr, env: Option<&Env<'_>>) -> Option<Computed> {
    let mut translation = Translation {
        env,
        nodes: 0,
        multipliers: 0,
    };
    let value = translation.value(value)?;
    (translation.nodes <= COMPUTED_NODES_MAX).then_some(value)
}

struct Translation<'a> {
    env: Option<&'a Env<'a>>,
    /// Values and conditions so far.
    nodes: usize,
    /// Functions so far that may make much more than they are given.
    multipliers: usize,
}

fn is_number(ty: Type) -> bool {
    matches!(ty, Type::Int2 | Type::Int4 | Type::Int8 | Type::Numeric(_))
}

fn is_text(ty: Type) -> bool {
    matches!(ty, Type::Text | Type::Varchar(_))
}

fn is_float(ty: Type) -> bool {
    matches!(ty, Type::Float4 | Type::Float8)
}

/// Whether values of the type are moments or intervals.
fn is_moment(ty: Type) -> bool {
    matches!(
        ty,
        Type::Date | Type::Time(_) | Type::Timestamp(_) | Type::Timestamptz(_) | Type::Interval(_)
    )
}

/// Whether values of the type have a text form of few bytes that no setting changes.
fn has_short_text(ty: Type) -> bool {
    is_number(ty) || matches!(ty, Type::Bool | Type::Date)
}

impl Translation<'_> {
    /// Counts a value or condition; `None`: they are too many.
    fn count(&mut self) -> Option<()> {
        self.nodes += 1;
        (self.nodes <= COMPUTED_NODES_MAX).then_some(())
    }

    /// The value of what is over no columns; `None` for NULL, so that the result is NULL only where
    /// a column is.
    fn constant(&self, value: &Expr) -> Option<Datum> {
        let Some(env) = self.env else {
            let is_null = matches!(value, Expr::Const(Datum::Null, _));
            return (!is_null).then_some(Datum::Null);
        };
        let mut computed = Datum::Null;
        let found = value_of(value, env, &mut computed).ok()?;
        (!found.is_null()).then(|| found.clone())
    }

    fn value(&mut self, value: &Expr) -> Option<Computed> {
        self.count()?;
        if walk::is_row_independent(value) {
            return self.constant(value).map(Computed::Const);
        }
        Some(match value {
            Expr::Column(column, ty) => Computed::Column(u16::try_from(*column).ok()?, *ty),
            Expr::Call(Func::Compare(_), ..)
            | Expr::And(_)
            | Expr::Or(_)
            | Expr::Not(_)
            | Expr::IsNull(..) => Computed::Truth(Box::new(self.condition(value)?)),
            Expr::Call(func, args, ty) => return self.call(func, args, *ty),
            Expr::Cast { arg, to, explicit } => return self.cast(arg, *to, *explicit),
            Expr::Case {
                arms, otherwise, ..
            } => {
                let mut both = Vec::with_capacity(arms.len());
                for (condition, value) in arms {
                    both.push((self.condition(condition)?, self.value(value)?));
                }
                Computed::Case(both, Box::new(self.value(otherwise)?))
            }
            Expr::Coalesce(all, _) => Computed::Coalesce(self.values(all)?),
            // Arrays of arrays are made only by the evaluator.
            Expr::MakeArray(items, _) if items.iter().any(|item| item.ty().element().is_some()) => {
                return None;
            }
            Expr::MakeArray(items, ty) => {
                Computed::Call(ValueFunc::MakeArray, self.values(items)?, *ty)
            }
            _ => return None,
        })
    }

    fn cast(&mut self, arg: &Expr, to: Type, explicit: bool) -> Option<Computed> {
        let from = arg.ty();
        let of = Box::new(self.value(arg)?);
        Some(match to {
            _ if is_number(from) && is_number(to) => Computed::Cast(of, to),
            // Too long a text is cut.
            Type::Varchar(Some(chars)) if is_text(from) && explicit => {
                let chars = Computed::Const(Datum::Int(chars.into()));
                Computed::Text(StringFunc::Left, Vec::from([*of, chars]))
            }
            _ if is_text(from) && is_text(to) => Computed::Cast(of, to),
            // The text of a truth value is another one, and too long a text would be cut.
            _ if has_short_text(from) && from != Type::Bool && is_text(to) && !explicit => {
                Computed::Cast(Box::new(Computed::Output(of, from)), to)
            }
            Type::Text if has_short_text(from) && from != Type::Bool => Computed::Output(of, from),
            _ if is_float(from) && (is_float(to) || is_number(to))
                || is_number(from) && is_float(to)
                || is_moment(from) && is_moment(to) =>
            {
                let args = Vec::from([*of]);
                Computed::Call(ValueFunc::Convert { from, explicit }, args, to)
            }
            _ => return None,
        })
    }

    /// A function of texts or bytes.
    fn text(&mut self, func: TextFunc, args: &[Expr], ty: Type) -> Option<Computed> {
        let Some(shared) = func.shared() else {
            return self.function(&Func::Text(func), args, ty);
        };
        let known = |ty: Type| is_text(ty) || is_number(ty) || ty == Type::Bytea;
        if !args.iter().all(|arg| known(arg.ty())) {
            return None;
        }
        // Of two long values of bytes, that would take the time of their product.
        if shared == StringFunc::Position && args.first()?.ty() == Type::Bytea {
            return None;
        }
        self.multipliers += usize::from(shared.multiplies());
        if self.multipliers > MULTIPLIERS_MAX {
            return None;
        }
        Some(Computed::Text(shared, self.values(args)?))
    }

    fn values(&mut self, all: &[Expr]) -> Option<Vec<Computed>> {
        all.iter().map(|one| self.value(one)).collect()
    }

    fn two(&mut self, left: &Expr, right: &Expr) -> Option<Box<[Computed; 2]>> {
        Some(Box::new([self.value(left)?, self.value(right)?]))
    }

    fn call(&mut self, func: &Func, args: &[Expr], ty: Type) -> Option<Computed> {
        let numbers = is_number(ty) && args.iter().all(|arg| is_number(arg.ty()));
        let arithmetic = match func {
            Func::Add if numbers => Arithmetic::Add,
            Func::Sub if numbers => Arithmetic::Subtract,
            Func::Mul if numbers => Arithmetic::Multiply,
            Func::Div if numbers => Arithmetic::Divide,
            Func::Rem if numbers => Arithmetic::Remainder,
            Func::Text(TextFunc::Concat) => {
                let kinds = |arg: &Expr| is_text(arg.ty()) == is_text(ty);
                let known = is_text(ty) || ty == Type::Bytea;
                match known && args.iter().all(kinds) {
                    true => Arithmetic::Append,
                    false => return None,
                }
            }
            Func::Text(func) => return self.text(*func, args, ty),
            Func::Output(from) if has_short_text(*from) => {
                let of = self.value(args.first()?)?;
                return Some(Computed::Output(Box::new(of), *from));
            }
            Func::Least => return Some(Computed::Least(self.values(args)?)),
            Func::Greatest => return Some(Computed::Greatest(self.values(args)?)),
            _ if numbers => return self.of_one_number(func, args, ty),
            func => return self.function(func, args, ty),
        };
        let [left, right] = args else {
            return None;
        };
        Some(Computed::Calculate(arithmetic, self.two(left, right)?, ty))
    }

    /// A function of floats, moments, arrays or `jsonb`, or one of texts that the store has from
    /// the evaluator.
    fn function(&mut self, func: &Func, args: &[Expr], ty: Type) -> Option<Computed> {
        let known = ValueFunc::of(func)?;
        takes(func, args, ty).then_some(())?;
        Some(Computed::Call(known, self.values(args)?, ty))
    }

    /// A function of one number, perhaps to a number of digits.
    fn of_one_number(&mut self, func: &Func, args: &[Expr], ty: Type) -> Option<Computed> {
        let zero = || match ty {
            Type::Numeric(_) => Computed::Const(Datum::Decimal(0.into())),
            _ => Computed::Const(Datum::Int(0)),
        };
        let of = self.value(args.first()?)?;
        let negative = |of| Computed::Calculate(Arithmetic::Subtract, Box::new([zero(), of]), ty);
        let rounding = match (func, args.len()) {
            (Func::Neg, 1) => return Some(negative(of)),
            (Func::Abs, 1) => {
                // The operand stands there twice, and so on for each one around it.
                self.nodes *= 2;
                if self.nodes > COMPUTED_NODES_MAX {
                    return None;
                }
                // The largest of NULL and NULL is NULL.
                let both = Vec::from([of.clone(), negative(of)]);
                return Some(Computed::Greatest(both));
            }
            (Func::Round, _) => Rounding::Nearest,
            (Func::Trunc, _) => Rounding::Truncate,
            (Func::Floor, 1) => Rounding::Down,
            (Func::Ceil, 1) => Rounding::Up,
            _ => return None,
        };
        let digits = match args.get(1) {
            None => 0,
            Some(digits) if walk::is_row_independent(digits) => {
                let digits = self.constant(digits)?;
                digits.as_int().unwrap_or(0)
            }
            Some(_) => return None,
        };
        let digits = i32::try_from(digits)
            .ok()
            .filter(|it| it.unsigned_abs() <= 38)?;
        Some(Computed::Round(rounding, Box::new(of), digits))
    }

    fn condition(&mut self, condition: &Expr) -> Option<Condition> {
        self.count()?;
        let all = |this: &mut Self, all: &[Expr]| -> Option<Vec<Condition>> {
            all.iter().map(|one| this.condition(one)).collect()
        };
        Some(match condition {
            Expr::Call(Func::Compare(compare), sides, _) => {
                let wanted = match compare {
                    Compare::Eq => [false, true, false],
                    Compare::Ne => [true, false, true],
                    Compare::Lt => [true, false, false],
                    Compare::Le => [true, true, false],
                    Compare::Gt => [false, false, true],
                    Compare::Ge => [false, true, true],
                    _ => return None,
                };
                let [left, right] = sides.as_slice() else {
                    return None;
                };
                Condition::Compare(wanted, self.two(left, right)?)
            }
            Expr::And(parts) => Condition::And(all(self, parts)?),
            Expr::Or(parts) => Condition::Or(all(self, parts)?),
            Expr::Not(condition) => Condition::Not(Box::new(self.condition(condition)?)),
            Expr::IsNull(value, negated) => {
                let is_null = Condition::IsNull(Box::new(self.value(value)?));
                match negated {
                    true => Condition::Not(Box::new(is_null)),
                    false => is_null,
                }
            }
            other if other.ty() == Type::Bool => {
                Condition::Value(Box::new(self.bool_value(other)?))
            }
            _ => return None,
        })
    }

    /// A truth value that is no condition on values.
    fn bool_value(&mut self, value: &Expr) -> Option<Computed> {
        match value {
            Expr::Column(..) | Expr::Case { .. } | Expr::Coalesce(..) => self.value(value),
            Expr::Call(Func::Text(TextFunc::StartsWith), ..) => self.value(value),
            _ if walk::is_row_independent(value) => self.value(value),
            _ => None,
        }
    }
}

/// Whether the store knows what the function makes of arguments of these types.
fn takes(func: &Func, args: &[Expr], ty: Type) -> bool {
    let all = |known: &dyn Fn(Type) -> bool| args.iter().all(|arg| known(arg.ty()));
    let is =
        |at: usize, known: &dyn Fn(Type) -> bool| args.get(at).is_some_and(|it| known(it.ty()));
    match func {
        Func::Add | Func::Sub | Func::Mul | Func::Div | Func::Neg => {
            let moments = args.iter().any(|arg| is_moment(arg.ty()));
            let known = |ty| is_moment(ty) || is_float(ty) || is_number(ty);
            all(&is_float) || moments && all(&known)
        }
        // Others have a form of their own, or none.
        Func::Abs
        | Func::Round
        | Func::Trunc
        | Func::Floor
        | Func::Ceil
        | Func::Sign
        | Func::Sqrt => args.len() == 1 && all(&is_float),
        Func::Text(_) => all(&|ty| is_text(ty) || is_number(ty) || ty == Type::Bytea),
        // A position to begin with may be NULL, which is an error.
        Func::Array(ArrayFunc::Position) => args.len() == 2,
        Func::Array(_) => true,
        // The unit has to be known, and those of intervals are others.
        Func::Date(DateFunc::Trunc | DateFunc::Extract | DateFunc::ExtractZoned) => {
            let unit = args.first().is_some_and(walk::is_row_independent);
            unit && is(1, &|ty| is_moment(ty) && !matches!(ty, Type::Interval(_)))
        }
        Func::Json(JsonFunc::From(from)) => {
            let known = is_number(*from) || is_text(*from);
            ty == Type::Jsonb && (known || matches!(from, Type::Bool | Type::Jsonb))
        }
        Func::Json(JsonFunc::BuildObject | JsonFunc::BuildArray) => ty == Type::Jsonb,
        Func::Json(_) => is(0, &|ty| ty == Type::Jsonb),
        _ => false,
    }
}

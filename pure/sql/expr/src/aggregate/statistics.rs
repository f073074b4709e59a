//! Variance and standard deviation.

use super::AggFunc;
use base::numeric::{self, Numeric};
use base::{Datum, Decimal, SqlError};

/// Number, sum and sum of squares: exact for numerics; for floats the sum of squared deviations,
/// updated as PostgreSQL does (Youngs and Cramer), which does not cancel.
#[derive(Clone, Debug)]
pub(super) enum Spread {
    Exact {
        count: i64,
        sum: Datum,
        squares: Datum,
    },
    Float {
        count: f64,
        sum: f64,
        deviations: f64,
    },
}

impl Spread {
    pub(super) fn new(float: bool) -> Spread {
        if float {
            Spread::Float {
                count: 0.0,
                sum: 0.0,
                deviations: 0.0,
            }
        } else {
            Spread::Exact {
                count: 0,
                sum: Datum::Decimal(Decimal::ZERO),
                squares: Datum::Decimal(Decimal::ZERO),
            }
        }
    }

    pub(super) fn update(&mut self, value: &Datum) -> Result<(), SqlError> {
        match (self, value) {
            (
                Spread::Exact {
                    count,
                    sum,
                    squares,
                },
                value @ (Datum::Decimal(_) | Datum::Large(_)),
            ) => {
                *count += 1;
                *sum = numeric::add(sum, value)?;
                *squares = numeric::add(squares, &numeric::mul(value, value)?)?;
            }
            (
                Spread::Float {
                    count,
                    sum,
                    deviations,
                },
                Datum::Float(value),
            ) => {
                *count += 1.0;
                *sum += value;
                if *count > 1.0 {
                    let away = value * *count - *sum;
                    *deviations += away * away / (*count * (*count - 1.0));
                } else if !value.is_finite() {
                    *deviations = f64::NAN;
                }
            }
            (spread, value) => unreachable!("{spread:?} was bound to {value:?}"),
        }
        Ok(())
    }

    /// Number, sum, squares or deviations.
    pub(super) fn partial(&self) -> Vec<Datum> {
        match self {
            Spread::Exact {
                count,
                sum,
                squares,
            } => {
                vec![Datum::Int(*count), sum.clone(), squares.clone()]
            }
            Spread::Float {
                count,
                sum,
                deviations,
            } => {
                vec![
                    Datum::Float(*count),
                    Datum::Float(*sum),
                    Datum::Float(*deviations),
                ]
            }
        }
    }

    pub(super) fn merge(&mut self, partial: &[Datum]) -> Result<(), SqlError> {
        match (self, partial) {
            (
                Spread::Exact {
                    count,
                    sum,
                    squares,
                },
                [Datum::Int(n), s, q],
            ) => {
                *count += n;
                *sum = numeric::add(sum, s)?;
                *squares = numeric::add(squares, q)?;
            }
            (
                Spread::Float {
                    count,
                    sum,
                    deviations,
                },
                [Datum::Float(n), Datum::Float(s), Datum::Float(d)],
            ) => {
                if *n == 0.0 {
                    return Ok(());
                }
                if *count == 0.0 {
                    (*count, *sum, *deviations) = (*n, *s, *d);
                    return Ok(());
                }
                let apart = *sum / *count - s / n;
                *deviations += d + *count * n * apart * apart / (*count + n);
                *count += n;
                *sum += s;
            }
            (spread, partial) => unreachable!("{spread:?} has no partial result {partial:?}"),
        }
        Ok(())
    }

    pub(super) fn finish(&self, func: AggFunc) -> Result<Datum, SqlError> {
        let AggFunc::Spread { root, sample, .. } = func else {
            unreachable!("{func:?} has no spread");
        };
        let fewest = if sample { 2 } else { 1 };
        Ok(match self {
            Spread::Float { count, .. } if *count < f64::from(fewest) => Datum::Null,
            Spread::Float {
                count, deviations, ..
            } => {
                let variance = deviations / if sample { count - 1.0 } else { *count };
                Datum::Float(if root { variance.sqrt() } else { variance })
            }
            Spread::Exact { count, .. } if *count < i64::from(fewest) => Datum::Null,
            Spread::Exact {
                count,
                sum,
                squares,
            } => exact(*count, (sum, squares), root, sample)?,
        })
    }
}

/// `(n * squares - sum^2) / (n * n)` or `/ (n * (n - 1))`, or the root of it with as many digits.
fn exact(
    count: i64,
    (sum, squares): (&Datum, &Datum),
    root: bool,
    sample: bool,
) -> Result<Datum, SqlError> {
    let n = Datum::Decimal(Decimal::from(count));
    let above = numeric::sub(&numeric::mul(&n, squares)?, &numeric::mul(sum, sum)?)?;
    let is_nan = [sum, squares]
        .iter()
        .any(|part| matches!(part, Datum::Large(part) if !part.is_finite()));
    if is_nan {
        return Numeric::Nan.into_datum();
    }
    let zero = Datum::Decimal(Decimal::ZERO);
    if above.compare(&zero).is_le() {
        // Without digits behind the point, as PostgreSQL shows it.
        return Ok(zero);
    }
    let below = Decimal::from(if sample { count - 1 } else { count });
    let variance = numeric::div(&above, &numeric::mul(&n, &below.into())?)?;
    match (root, Numeric::of(&variance)) {
        (true, Some(variance)) => variance.sqrt_with_own_scale()?.into_datum(),
        _ => Ok(variance),
    }
}

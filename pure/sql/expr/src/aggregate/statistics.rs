//! Variance and standard deviation.

use super::AggFunc;
use base::{Datum, Decimal, SqlError};
use functions::number::sqrt_to;

/// Number, sum and sum of squares: exact for numerics; for floats the sum of squared deviations,
/// updated as PostgreSQL does (Youngs and Cramer), which does not cancel.
#[derive(Clone, Debug)]
pub(super) enum Spread {
    Exact {
        count: i64,
        sum: Decimal,
        squares: Decimal,
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
                sum: Decimal::ZERO,
                squares: Decimal::ZERO,
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
                Datum::Decimal(value),
            ) => {
                *count += 1;
                *sum = sum.add(*value)?;
                *squares = squares.add(value.mul(*value)?)?;
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
                vec![
                    Datum::Int(*count),
                    Datum::Decimal(*sum),
                    Datum::Decimal(*squares),
                ]
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
                [Datum::Int(n), Datum::Decimal(s), Datum::Decimal(q)],
            ) => {
                *count += n;
                *sum = sum.add(*s)?;
                *squares = squares.add(*q)?;
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
            } => {
                let variance = exact_variance(*count, *sum, *squares, sample);
                Datum::Decimal(match variance {
                    // Without digits behind the point, as PostgreSQL shows it.
                    Ok(variance) if variance.is_zero() => Decimal::ZERO,
                    // As many digits as the variance has.
                    Ok(variance) if root => sqrt_to(variance, variance.scale().into())?,
                    Ok(variance) => variance,
                    // The squares of squares need more digits than there are.
                    Err(_) => {
                        let (n, sum) = (*count as f64, sum.to_f64());
                        let below = if sample { n - 1.0 } else { n };
                        let variance = (squares.to_f64() - sum * sum / n) / below;
                        Decimal::from_f64(if root { variance.sqrt() } else { variance })?
                    }
                })
            }
        })
    }
}

/// `(n * squares - sum^2) / (n * n)` or `/ (n * (n - 1))`.
fn exact_variance(
    count: i64,
    sum: Decimal,
    squares: Decimal,
    sample: bool,
) -> Result<Decimal, SqlError> {
    let n = Decimal::from(count);
    let above = n.mul(squares)?.sub(sum.mul(sum)?)?;
    if above.is_zero() || above.is_negative() {
        return Ok(Decimal::ZERO);
    }
    let below = if sample { Decimal::from(count - 1) } else { n };
    above.div(n.mul(below)?)
}

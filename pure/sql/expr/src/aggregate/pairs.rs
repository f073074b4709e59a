//! Aggregates of pairs of numbers: correlation, covariance and linear regression.

use super::AggFunc;
use crate::resolve::{Context, can_coerce};
use base::{Datum, SqlError, SqlState, Type};
use serde::{Deserialize, Serialize};

/// What is computed of pairs `(y, x)`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum PairFunc {
    /// `regr_count`: the number of pairs without a NULL.
    Count,
    /// `regr_sxx`: the sum of squared distances of `x` from its average.
    Sxx,
    /// `regr_syy`: that of `y`.
    Syy,
    /// `regr_sxy`: the sum of products of both distances.
    Sxy,
    /// `regr_avgx`
    AvgX,
    /// `regr_avgy`
    AvgY,
    /// `regr_r2`: the square of the correlation.
    R2,
    /// `regr_slope`: of the line of least squares.
    Slope,
    /// `regr_intercept`: of the same line.
    Intercept,
    /// `covar_pop`: the covariance of the population.
    CovarPop,
    /// `covar_samp`: that of a sample.
    CovarSamp,
    /// `corr`
    Corr,
}

/// Names and what they compute.
const FUNCTIONS: [(&str, PairFunc); 12] = [
    ("regr_count", PairFunc::Count),
    ("regr_sxx", PairFunc::Sxx),
    ("regr_syy", PairFunc::Syy),
    ("regr_sxy", PairFunc::Sxy),
    ("regr_avgx", PairFunc::AvgX),
    ("regr_avgy", PairFunc::AvgY),
    ("regr_r2", PairFunc::R2),
    ("regr_slope", PairFunc::Slope),
    ("regr_intercept", PairFunc::Intercept),
    ("covar_pop", PairFunc::CovarPop),
    ("covar_samp", PairFunc::CovarSamp),
    ("corr", PairFunc::Corr),
];

/// The names of these functions.
pub(super) const NAMES: [&str; FUNCTIONS.len()] = {
    let mut names = [""; FUNCTIONS.len()];
    let mut at = 0;
    while at < names.len() {
        names[at] = FUNCTIONS[at].0;
        at += 1;
    }
    names
};

impl PairFunc {
    /// The name in SQL.
    pub fn name(self) -> &'static str {
        let found = FUNCTIONS.iter().find(|(_, func)| *func == self);
        found.expect("all have names").0
    }
}

/// The function of this name over arguments of these types, what it takes and gives.
pub(super) fn find(name: &str, types: &[Type]) -> Option<(AggFunc, Vec<Type>, Type)> {
    let (_, func) = FUNCTIONS.iter().find(|(known, _)| *known == name)?;
    let float = |ty: &Type| can_coerce(*ty, Type::Float8, Context::Implicit);
    if types.len() != 2 || !types.iter().all(float) {
        return None;
    }
    let ty = match func {
        PairFunc::Count => Type::Int8,
        _ => Type::Float8,
    };
    Some((AggFunc::Pair(*func), vec![Type::Float8; 2], ty))
}

/// Number of pairs, sums of both, and sums of squared and multiplied distances from the averages,
/// updated as PostgreSQL does (Youngs and Cramer), which does not cancel.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Pairs {
    count: f64,
    sum_x: f64,
    sum_y: f64,
    xx: f64,
    yy: f64,
    xy: f64,
}

fn overflow() -> SqlError {
    let message = "value out of range: overflow";
    SqlError::new(SqlState::NUMERIC_OUT_OF_RANGE, message)
}

/// An infinite distance is none; 22003 if it came of finite numbers.
fn distance(value: f64, is_finite: bool) -> Result<f64, SqlError> {
    match (value.is_infinite(), is_finite) {
        (true, true) => Err(overflow()),
        (true, false) => Ok(f64::NAN),
        (false, _) => Ok(value),
    }
}

impl Pairs {
    pub(super) fn update(&mut self, y: &Datum, x: &Datum) -> Result<(), SqlError> {
        let (Datum::Float(y), Datum::Float(x)) = (y, x) else {
            unreachable!("pairs are bound to floats");
        };
        let before = *self;
        self.count += 1.0;
        self.sum_x += x;
        self.sum_y += y;
        if before.count == 0.0 {
            let odd = |is_odd: bool| if is_odd { f64::NAN } else { 0.0 };
            self.xx = odd(!x.is_finite());
            self.yy = odd(!y.is_finite());
            self.xy = odd(!x.is_finite() || !y.is_finite());
            return Ok(());
        }
        let away_x = x * self.count - self.sum_x;
        let away_y = y * self.count - self.sum_y;
        let scale = 1.0 / (self.count * before.count);
        self.xx += away_x * away_x * scale;
        self.yy += away_y * away_y * scale;
        self.xy += away_x * away_y * scale;
        let finite_x = !before.sum_x.is_infinite() && !x.is_infinite();
        let finite_y = !before.sum_y.is_infinite() && !y.is_infinite();
        let too_large =
            (self.sum_x.is_infinite() && finite_x) || (self.sum_y.is_infinite() && finite_y);
        if too_large {
            return Err(overflow());
        }
        self.xx = distance(self.xx, finite_x)?;
        self.yy = distance(self.yy, finite_y)?;
        self.xy = distance(self.xy, finite_x && finite_y)?;
        Ok(())
    }

    /// What [`Pairs::merge`] of another state takes.
    pub(super) fn partial(&self) -> Vec<Datum> {
        let Pairs {
            count,
            sum_x,
            sum_y,
            xx,
            yy,
            xy,
        } = *self;
        [count, sum_x, sum_y, xx, yy, xy].map(Datum::Float).to_vec()
    }

    pub(super) fn merge(&mut self, partial: &[Datum]) -> Result<(), SqlError> {
        let [
            Datum::Float(count),
            Datum::Float(sum_x),
            Datum::Float(sum_y),
            Datum::Float(xx),
            Datum::Float(yy),
            Datum::Float(xy),
        ] = *partial
        else {
            unreachable!("pairs have no partial result {partial:?}");
        };
        let more = Pairs {
            count,
            sum_x,
            sum_y,
            xx,
            yy,
            xy,
        };
        if more.count == 0.0 {
            return Ok(());
        }
        if self.count == 0.0 {
            *self = more;
            return Ok(());
        }
        let apart_x = self.sum_x / self.count - more.sum_x / more.count;
        let apart_y = self.sum_y / self.count - more.sum_y / more.count;
        let both = self.count * more.count;
        let count = self.count + more.count;
        let merged = Pairs {
            count,
            sum_x: self.sum_x + more.sum_x,
            sum_y: self.sum_y + more.sum_y,
            xx: self.xx + more.xx + both * apart_x * apart_x / count,
            yy: self.yy + more.yy + both * apart_y * apart_y / count,
            xy: self.xy + more.xy + both * apart_x * apart_y / count,
        };
        let parts = |of: &Pairs| [of.sum_x, of.sum_y, of.xx, of.yy, of.xy];
        let given = parts(self).into_iter().chain(parts(&more));
        let is_finite = given.into_iter().all(|part| !part.is_infinite());
        if is_finite && parts(&merged).iter().any(|part| part.is_infinite()) {
            return Err(overflow());
        }
        *self = merged;
        Ok(())
    }

    pub(super) fn finish(&self, func: AggFunc) -> Datum {
        let AggFunc::Pair(func) = func else {
            unreachable!("{func:?} is not of pairs");
        };
        if func == PairFunc::Count {
            return Datum::Int(self.count as i64);
        }
        let fewest = if func == PairFunc::CovarSamp {
            2.0
        } else {
            1.0
        };
        if self.count < fewest {
            return Datum::Null;
        }
        // Without a spread there is no line.
        let value = match func {
            PairFunc::Count => self.count,
            PairFunc::Sxx => self.xx,
            PairFunc::Syy => self.yy,
            PairFunc::Sxy => self.xy,
            PairFunc::AvgX => self.sum_x / self.count,
            PairFunc::AvgY => self.sum_y / self.count,
            PairFunc::CovarPop => self.xy / self.count,
            PairFunc::CovarSamp => self.xy / (self.count - 1.0),
            _ if self.xx == 0.0 => return Datum::Null,
            PairFunc::Slope => self.xy / self.xx,
            PairFunc::Intercept => (self.sum_y - self.sum_x * self.xy / self.xx) / self.count,
            PairFunc::R2 if self.yy == 0.0 => 1.0,
            PairFunc::R2 => self.xy * self.xy / (self.xx * self.yy),
            PairFunc::Corr if self.yy == 0.0 => return Datum::Null,
            PairFunc::Corr => self.xy / (self.xx * self.yy).sqrt(),
        };
        Datum::Float(value)
    }
}

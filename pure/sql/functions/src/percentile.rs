//! What stands at a share of a sorted array.

use super::datetime;
use base::datum::Interval;
use base::{Datum, SqlError, SqlState};

/// The item that is there most often; of several the first one.
pub(super) fn mode(sorted: &[Datum]) -> Datum {
    let mut best: Option<(usize, &Datum)> = None;
    for run in sorted.chunk_by(|a, b| a.compare(b).is_eq()) {
        if best.is_none_or(|(count, _)| run.len() > count) {
            best = Some((run.len(), &run[0]));
        }
    }
    best.map_or(Datum::Null, |(_, item)| item.clone())
}

/// The values at one share, or at each of an array of shares.
pub(super) fn at_shares(
    between: bool,
    sorted: &[Datum],
    shares: &Datum,
) -> Result<Datum, SqlError> {
    if sorted.is_empty() {
        return Ok(Datum::Null);
    }
    let at = |share: &Datum| match share.as_float() {
        None => Ok(Datum::Null),
        Some(share) if share.is_nan() || !(0.0..=1.0).contains(&share) => {
            let message = format!("percentile value {share} is not between 0 and 1");
            Err(SqlError::new(SqlState::NUMERIC_OUT_OF_RANGE, message))
        }
        Some(share) if between => continuous(sorted, share),
        Some(share) => Ok(discrete(sorted, share)),
    };
    match shares.as_array() {
        None => at(shares),
        Some(_) => shares.clone().try_map_items(|share| at(&share)),
    }
}

fn discrete(sorted: &[Datum], share: f64) -> Datum {
    let place = (share * sorted.len() as f64).ceil() as usize;
    sorted[place.clamp(1, sorted.len()) - 1].clone()
}

fn continuous(sorted: &[Datum], share: f64) -> Result<Datum, SqlError> {
    let place = share * (sorted.len() - 1) as f64;
    let (below, above) = (place.floor() as usize, place.ceil() as usize);
    let part = place - below as f64;
    match (&sorted[below], &sorted[above]) {
        (Datum::Interval(low), Datum::Interval(high)) => match below == above {
            true => Ok(Datum::Interval(*low)),
            false => between(*low, *high, part).map(Datum::Interval),
        },
        (low, high) => {
            let (low, high) = (float_of(low), float_of(high));
            Ok(Datum::Float(match below == above {
                true => low,
                false => low + part * (high - low),
            }))
        }
    }
}

fn float_of(number: &Datum) -> f64 {
    match number {
        Datum::Int(value) => *value as f64,
        Datum::Decimal(value) => value.to_f64(),
        other => other.as_float().unwrap_or(f64::NAN),
    }
}

fn between(low: Interval, high: Interval, part: f64) -> Result<Interval, SqlError> {
    let negative = Interval {
        months: low.months.saturating_neg(),
        days: low.days.saturating_neg(),
        micros: low.micros.saturating_neg(),
    };
    let apart = datetime::sum(high, negative)?;
    datetime::sum(datetime::scale(apart, |value| value * part)?, low)
}

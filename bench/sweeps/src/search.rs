//! The highest rate that meets a goal: doubled until it fails, then halved in between.

/// A rate that was tried, and whether it met the goal.
pub type Trial = (f64, bool);

/// Looks for the highest rate that meets the goal, beginning with `from`, to within `precision`: a
/// share. `try_rate` tries one. The last one that met it is the answer; `None`: none did.
///
/// At most `trials_max` rates are tried. A rate above one that has failed is never tried again.
///
/// # Errors
/// Those of `try_rate`.
pub fn search<E>(
    from: f64,
    precision: f64,
    trials_max: usize,
    mut try_rate: impl FnMut(f64) -> Result<bool, E>,
) -> Result<(Option<f64>, Vec<Trial>), E> {
    let mut trials: Vec<Trial> = Vec::new();
    let (mut met, mut failed): (Option<f64>, Option<f64>) = (None, None);
    while trials.len() < trials_max {
        let rate = match (met, failed) {
            (None, None) => from,
            (Some(met), None) => met * 2.0,
            // Not even the first: a fraction may.
            (None, Some(failed)) => failed / 2.0,
            (Some(met), Some(failed)) if failed / met <= 1.0 + precision => break,
            (Some(met), Some(failed)) => (met * failed).sqrt(),
        };
        if rate < 0.1 {
            break;
        }
        let is_met = try_rate(rate)?;
        trials.push((rate, is_met));
        match is_met {
            true => met = Some(rate),
            false => failed = Some(rate),
        }
    }
    Ok((met, trials))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    fn found(capacity: f64, from: f64) -> (Option<f64>, Vec<Trial>) {
        let Ok(found) = search(from, 0.05, 30, |rate| {
            Ok::<bool, Infallible>(rate <= capacity)
        });
        found
    }

    #[test]
    fn the_rate_is_found_from_above_and_from_below() {
        for capacity in [3.0, 100.0, 1_234.0, 9_999.0] {
            for from in [10.0, 100.0, 5_000.0] {
                let (rate, trials) = found(capacity, from);
                let rate = rate.unwrap();
                assert!(
                    rate <= capacity && rate * 1.05 >= capacity,
                    "{rate} {capacity}"
                );
                assert!(trials.len() <= 18, "{trials:?}");
            }
        }
    }

    #[test]
    fn what_meets_no_rate_ends() {
        assert_eq!(found(0.0, 100.0).0, None);
        let (rate, trials) = found(f64::INFINITY, 100.0);
        assert_eq!((trials.len(), rate), (30, Some(100.0 * 2.0f64.powi(29))));
    }
}

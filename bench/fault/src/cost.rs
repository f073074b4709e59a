//! What faults cost, reckoned by the commits of the run.

use super::{Fault, STEP_S};
use measures::recovery::{BASELINE_STEPS_MIN, Incident};

/// Commits in a step of the baseline from which on one step of silence stands out of the noise.
const STEP_COMMITS: f64 = 50.0;
/// Steps that a cost is reckoned in, as multiples of [`STEP_S`].
const STEPS: [usize; 4] = [1, 2, 5, 10];

/// Reckons what each fault cost, by the commits in each [`STEP_S`] of the measured phase.
///
/// All share the baseline before the first of them, so that a store that has not come back is not
/// taken for a slow one. A series ends where the next fault begins that does not overlap.
pub fn reckon(faults: &mut [Fault], commits: &[u64]) {
    let first_s = faults
        .iter()
        .map(|fault| fault.begin_s)
        .fold(f64::MAX, f64::min);
    let begins: Vec<f64> = faults.iter().map(|fault| fault.begin_s).collect();
    for fault in faults {
        let next_s = begins
            .iter()
            .copied()
            .filter(|begin_s| *begin_s >= fault.end_s);
        let until_s = next_s.fold(f64::MAX, f64::min);
        let (counts, step_s) = steps(commits, first_s, until_s);
        fault.step_s = step_s;
        let incident = Incident {
            counts: &counts,
            step_s,
            began_s: fault.begin_s,
            ended_s: Some(fault.end_s),
            baseline_s: Some((0.0, first_s)),
        };
        fault.cost = incident.recovery();
    }
}

/// The series in the shortest steps in which silence stands out of the noise of counting, and that
/// leave enough of them for the baseline.
fn steps(commits: &[u64], first_s: f64, until_s: f64) -> (Vec<f64>, f64) {
    let before = ((first_s / STEP_S) as usize).min(commits.len());
    let sum: u64 = commits[..before].iter().sum();
    let per_step = sum as f64 / before.max(1) as f64;
    let fits = |times: &&usize| before / **times >= BASELINE_STEPS_MIN;
    let enough = |times: &&usize| per_step * **times as f64 >= STEP_COMMITS;
    let possible = || STEPS.iter().filter(fits);
    let times = *possible()
        .find(enough)
        .or(possible().next_back())
        .unwrap_or(&STEPS[0]);
    let end = ((until_s / STEP_S) as usize).min(commits.len());
    let whole = commits[..end].chunks_exact(times);
    let counts = whole.map(|step| step.iter().sum::<u64>() as f64).collect();
    (counts, times as f64 * STEP_S)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Kind;
    use measures::recovery::RecoveryError;

    fn fault(begin_s: f64, end_s: f64) -> Fault {
        Fault {
            kind: Kind::Kill,
            target: "node2".into(),
            planned_s: (begin_s, end_s - begin_s),
            begin_s,
            begin_unix_s: 0.0,
            end_s,
            proof: String::new(),
            undo_s: 0.0,
            cost: Err(RecoveryError::NothingAfter),
            step_s: STEP_S,
        }
    }

    #[test]
    fn each_fault_of_a_schedule_has_its_own_part_of_the_series() {
        // 100 in a step; 60 from second 10 to 12, 0 from 15 to 16.
        let rate = |step: usize| match step {
            100..120 => 60,
            150..160 => 0,
            _ => 100 + (step % 3) as u64,
        };
        let commits: Vec<u64> = (0..200).map(rate).collect();
        let mut faults = [fault(10.0, 12.0), fault(15.0, 16.0)];
        reckon(&mut faults, &commits);
        for (fault, depth, back_s) in [(&faults[0], 0.4, 2.0), (&faults[1], 1.0, 1.0)] {
            let cost = fault.cost.unwrap();
            assert!((cost.depth - depth).abs() < 0.02, "{cost:?}");
            assert_eq!((cost.t_detect_s, fault.step_s), (Some(0.0), STEP_S));
            assert!((cost.t99_s.unwrap() - back_s).abs() < 1e-9, "{cost:?}");
        }
    }

    #[test]
    fn few_commits_make_long_steps_as_far_as_the_baseline_carries_them() {
        let step_s = |per_step, first_s| steps(&vec![per_step; 400], first_s, f64::MAX).1;
        assert_eq!(
            [step_s(100, 5.0), step_s(25, 5.0), step_s(10, 5.0)],
            [0.1, 0.2, 0.5]
        );
        assert_eq!(
            [step_s(1, 20.0), step_s(1, 3.0), step_s(1, 0.5)],
            [1.0, 0.2, 0.1]
        );
    }
}

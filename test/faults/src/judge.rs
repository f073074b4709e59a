//! Judges a run: the longest waits, and the first commits after a fault has ended.

use crate::clients::Sample;
use crate::cluster::{Fault, VICTIM};
use std::time::Duration;

/// Longest time until a silent node is noticed. A dead node is noticed at once.
const DETECTION: Duration = Duration::from_secs(1);
/// Longest time of a statement at a live node, after the fault is noticed.
const BEYOND: Duration = Duration::from_secs(1);
/// Longest time until a schema change succeeds or fails.
const CHANGE_LIMIT: Duration = Duration::from_secs(2);
/// Longest time from the end of a fault until rows of the parted node are written again. The aim is
/// a tenth of it. A killed node has to start first.
const RETURN_LIMIT: Duration = Duration::from_secs(3);

/// One fault.
pub(crate) struct Episode {
    pub(crate) fault: Fault,
    pub(crate) begin: Duration,
    pub(crate) end: Duration,
    pub(crate) change: Change,
}

/// The schema change that was tried during the fault.
pub(crate) struct Change {
    pub(crate) sql: String,
    pub(crate) took: Duration,
    pub(crate) outcome: String,
}

impl Change {
    /// How the schema change ended, in a few words.
    pub(crate) fn summary(&self) -> String {
        let outcome = self.outcome.split(' ').next().unwrap_or_default();
        format!("schema change {outcome} after {} ms", self.took.as_millis())
    }
}

/// What clients saw of one fault.
struct Seen {
    /// Statements of clients of live nodes.
    statements: usize,
    /// Longest statement on a row that stays usable, and longest of all.
    longest_live: Duration,
    longest: Duration,
    /// The longest statement, for the report.
    worst: Option<Sample>,
    /// Commits on rows that stay usable: in the last second of the fault, and in the last second
    /// before the fault.
    late: usize,
    before: usize,
    /// Time from the end of the fault to the first success on a row that was out of reach.
    back: Option<Duration>,
}

fn seen(samples: &[Sample], episode: &Episode) -> Seen {
    let mut seen = Seen {
        statements: 0,
        longest_live: Duration::ZERO,
        longest: Duration::ZERO,
        worst: None,
        late: 0,
        before: 0,
        back: None,
    };
    let second = Duration::from_secs(1);
    for sample in samples.iter().filter(|sample| sample.at != VICTIM) {
        let leaves = episode.fault.leaves(sample.at, sample.home);
        let good = sample.state.is_empty();
        if !leaves && good && sample.end >= episode.end {
            let back = sample.end - episode.end;
            seen.back = Some(seen.back.map_or(back, |known| known.min(back)));
        }
        if leaves
            && good
            && (episode.begin.saturating_sub(second)..episode.begin).contains(&sample.end)
        {
            seen.before += 1;
        }
        // All statements that were under way during the fault.
        if sample.end < episode.begin || sample.begin > episode.end {
            continue;
        }
        seen.statements += 1;
        let took = sample.end - sample.begin;
        if leaves {
            seen.longest_live = seen.longest_live.max(took);
            if good && (episode.end - second..episode.end).contains(&sample.end) {
                seen.late += 1;
            }
        }
        if took > seen.longest {
            seen.longest = took;
            seen.worst = Some(sample.clone());
        }
    }
    seen
}

/// Counts checks that pass, and prints those that fail.
#[derive(Default)]
struct Verdict {
    passed: usize,
    failed: usize,
}

impl Verdict {
    fn check(&mut self, good: bool, text: String) {
        if good {
            self.passed += 1;
        } else {
            self.failed += 1;
            println!("FAILED: {text}");
        }
    }

    /// Judges one fault.
    fn judge(&mut self, episode: &Episode, seen: &Seen) {
        let Episode { fault, change, .. } = episode;
        let name = fault.name();
        let worst = seen.worst.as_ref().map(|worst| {
            format!(
                "client of node {}, row of node {}: {} {}",
                worst.at, worst.home, worst.state, worst.message
            )
        });
        self.check(
            seen.longest <= DETECTION + BEYOND,
            format!(
                "{name}: a statement took {} ms ({})",
                seen.longest.as_millis(),
                worst.unwrap_or_default()
            ),
        );
        self.check(
            seen.late * 4 >= seen.before,
            format!(
                "{name}: rows of live nodes: {} commits a second, {} before",
                seen.late, seen.before
            ),
        );
        self.check(
            change.took <= CHANGE_LIMIT,
            format!(
                "{name}: {} took {} ms: {}",
                change.sql,
                change.took.as_millis(),
                change.outcome
            ),
        );
        let allowed = match fault {
            Fault::Kill => RETURN_LIMIT * 5,
            _ => RETURN_LIMIT,
        };
        self.check(
            seen.back.is_some_and(|back| back <= allowed),
            format!(
                "{name}: rows that were out of reach are back after {}",
                shown(seen.back)
            ),
        );
    }
}

fn shown(back: Option<Duration>) -> String {
    back.map_or("never".into(), |back| format!("{} ms", back.as_millis()))
}

/// Prints a table and the checks that failed. Returns whether none did.
pub(crate) fn report(protocol: &str, samples: &[Sample], episodes: &[Episode]) -> bool {
    println!("{protocol}: {} statements", samples.len());
    println!(
        "{:<12} {:>10} {:>12} {:>12} {:>11} {:>10} {:>10}  schema change",
        "fault", "statements", "longest live", "longest", "tx/s before", "tx/s in it", "back after"
    );
    let mut verdict = Verdict::default();
    for episode in episodes {
        let seen = seen(samples, episode);
        let Episode { fault, change, .. } = episode;
        println!(
            "{:<12} {:>10} {:>9} ms {:>9} ms {:>11} {:>10} {:>10}  {} ms: {}",
            fault.name(),
            seen.statements,
            seen.longest_live.as_millis(),
            seen.longest.as_millis(),
            seen.before,
            seen.late,
            shown(seen.back),
            change.took.as_millis(),
            change.outcome
        );
        verdict.judge(episode, &seen);
    }
    for (state, count) in states(samples) {
        println!("  {state:<6} {count:>8}");
    }
    let Verdict { passed, failed } = verdict;
    println!("faults: {passed} passed, {failed} failed");
    failed == 0
}

/// Number of statements by SQLSTATE.
fn states(samples: &[Sample]) -> Vec<(String, usize)> {
    let mut counts = std::collections::BTreeMap::new();
    for sample in samples {
        let state = if sample.state.is_empty() {
            "ok"
        } else {
            &sample.state
        };
        *counts.entry(state.to_string()).or_insert(0) += 1;
    }
    counts.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(begin: u64, end: u64, home: u16, state: &str) -> Sample {
        Sample {
            begin: Duration::from_millis(begin),
            end: Duration::from_millis(end),
            at: 1,
            home,
            state: state.into(),
            message: String::new(),
        }
    }

    fn episode() -> Episode {
        Episode {
            fault: Fault::Stop,
            begin: Duration::from_secs(3),
            end: Duration::from_secs(8),
            change: Change {
                sql: String::new(),
                took: Duration::ZERO,
                outcome: String::new(),
            },
        }
    }

    /// Good: commits before and in the fault, the lost row comes back.
    fn good() -> Vec<Sample> {
        vec![
            sample(2500, 2510, 3, ""),
            sample(3100, 4000, 2, "40001"),
            sample(7500, 7510, 3, ""),
            sample(8050, 8100, 2, ""),
        ]
    }

    #[test]
    fn a_good_run_passes() {
        assert!(report("two_phase", &good(), &[episode()]));
    }

    #[test]
    fn a_wait_a_standstill_and_a_row_that_stays_away_fail() {
        let mut waits = good();
        waits.push(sample(3200, 5300, 2, "40001"));
        assert!(!report("two_phase", &waits, &[episode()]));
        let mut stands = good();
        stands.remove(2);
        assert!(!report("two_phase", &stands, &[episode()]));
        let mut away = good();
        away.pop();
        assert!(!report("two_phase", &away, &[episode()]));
    }
}

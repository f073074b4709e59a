//! How many attempts transactions took.

use sim::scale::Point;

/// Attempts that the server rolled back for 100 transactions that committed, those that it
/// repeated by itself included; not those whose input says so.
pub(super) fn deaths_percent(point: &Point) -> f64 {
    let aborted = point.counters.txn_aborted.saturating_sub(point.rolled_back);
    100.0 * aborted as f64 / point.counters.txn_committed.max(1) as f64
}

/// What the server said to attempts that it ended, the most frequent first, and what it counts.
pub(super) fn reasons(point: &Point) -> String {
    let mut said: Vec<(u64, &str)> = point
        .failures
        .iter()
        .map(|(text, count)| (*count, text.as_str()))
        .collect();
    said.sort_unstable_by(|a, b| b.cmp(a));
    let mut said: Vec<String> = said
        .iter()
        .take(REASONS)
        .map(|(count, text)| format!("{count} \"{text}\""))
        .collect();
    if said.is_empty() {
        said.push("none".to_owned());
    }
    format!(
        "{} (of {} commits; the server counts {} rolled back, {} of them by wait-die, and {} \
         repeated by itself)",
        said.join(", "),
        point.commits(),
        point.counters.txn_aborted,
        point.counters.txn_died,
        point.counters.server_retries
    )
}

/// Reasons that are listed at most.
const REASONS: usize = 4;

/// Attempts of transactions.
pub(super) struct Tries {
    /// Attempts rolled back by conflicts over all attempts, as the server counts.
    pub(super) abort_rate: f64,
    /// The same of attempts that the client made.
    pub(super) client_rate: f64,
    /// Shares of transactions with 1, 2 and more tries.
    pub(super) shares: [f64; 3],
    pub(super) most: u64,
}

impl Tries {
    pub(super) fn of(point: &Point) -> Tries {
        let counters = &point.counters;
        let asked = point.rolled_back;
        let aborted = counters.txn_aborted.saturating_sub(asked);
        let all = (counters.txn_committed + aborted).max(1);
        let count: u64 = point.tries.values().sum();
        let share = |of: u64| of as f64 / count.max(1) as f64;
        let first = point.tries.get(&1).copied().unwrap_or(0);
        let second = point.tries.get(&2).copied().unwrap_or(0);
        let attempts = (count + point.retries).max(1);
        Tries {
            abort_rate: aborted as f64 / all as f64,
            client_rate: point.retries as f64 / attempts as f64,
            shares: [share(first), share(second), share(count - first - second)],
            most: point.tries.keys().last().copied().unwrap_or(0),
        }
    }

    pub(super) fn cells(&self) -> Vec<String> {
        let percent = |share: f64| format!("{:.2} %", share * 100.0);
        let mut cells = vec![percent(self.abort_rate), percent(self.client_rate)];
        cells.extend(self.shares.map(percent));
        cells.push(self.most.to_string());
        cells
    }
}

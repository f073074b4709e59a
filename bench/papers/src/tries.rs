//! How many attempts transactions took.

use sim::scale::Point;

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

//! How a workload is run: loops, phases, clients, retries.

use fault::Faults;
use links::error::DriveError;
use std::time::Duration;
use workload::curve::Curve;

/// Connections of terminals that key and think, at most, unless somebody says otherwise.
const PACED_CONNECTIONS: u32 = 200;

/// When an aborted transaction runs again.
#[derive(Clone, Copy, Debug)]
pub struct RetryPolicy {
    /// Attempts in all, the first included.
    pub attempts_max: u32,
    /// Back-off after the first abort in microseconds; doubled after each further one, and drawn
    /// between half and all of it.
    pub backoff_us: u64,
    /// The longest back-off in microseconds.
    pub backoff_us_max: u64,
}

impl Default for RetryPolicy {
    fn default() -> RetryPolicy {
        RetryPolicy {
            attempts_max: 50,
            backoff_us: 200,
            backoff_us_max: 10_000,
        }
    }
}

/// How a workload is run.
#[derive(Clone, Debug)]
pub struct RunnerOptions {
    /// Terminals of a closed loop; connections of an open loop. 1 or more.
    pub clients: u32,
    /// Connections; `None`: in a closed loop without pauses one for each client, with pauses at
    /// most 200, in an open loop `clients`.
    pub connections: Option<u32>,
    /// Arrivals per second of an open loop; `None` for a closed loop.
    pub rate: Option<f64>,
    /// How the rate changes, from the beginning of the measured phase on; `rate` is its mean then
    /// ([`RunnerOptions::follow`]).
    pub curve: Option<Curve>,
    /// Time before the measured phase.
    pub warmup: Duration,
    /// The measured phase.
    pub length: Duration,
    /// Decides every input and every arrival.
    pub seed: u64,
    /// For 40001, 40P01 and 55P03.
    pub retry: RetryPolicy,
    /// The longest wait for an answer; after it the connection is given up.
    pub timeout: Duration,
    /// Whether the conditions are checked after the run.
    pub check: bool,
    /// Servers that are broken for a while.
    pub faults: Faults,
}

impl Default for RunnerOptions {
    fn default() -> RunnerOptions {
        RunnerOptions {
            clients: 16,
            connections: None,
            rate: None,
            curve: None,
            warmup: Duration::from_secs(2),
            length: Duration::from_secs(20),
            seed: 1,
            retry: RetryPolicy::default(),
            timeout: Duration::from_secs(60),
            check: true,
            faults: Faults::default(),
        }
    }
}

impl RunnerOptions {
    /// Connections of a run, of terminals that key and think or not.
    pub fn connections(&self, is_paced: bool) -> u32 {
        let all = match is_paced {
            true => self.clients.min(PACED_CONNECTIONS),
            false => self.clients,
        };
        self.connections.unwrap_or(all)
    }

    /// An open loop whose rate is that of the curve. Call it when the length is set.
    pub fn follow(&mut self, curve: Curve) {
        self.rate = Some(curve.mean(self.length.as_secs_f64()));
        self.curve = Some(curve);
    }

    pub(super) fn validate(&self) -> Result<(), DriveError> {
        let bad = |text: &str| Err(DriveError::Option(String::from(text)));
        if self.clients == 0 || self.clients > 20_000 {
            return bad("the number of clients must be 1 to 20000");
        }
        if let Some(connections) = self.connections {
            if connections == 0 || connections > 20_000 {
                return bad("the number of connections must be 1 to 20000");
            }
            if self.rate.is_none() && connections > self.clients {
                return bad("a closed loop has at most one connection for each client");
            }
        }
        if self.length.is_zero() {
            return bad("the measured phase must be longer than 0 seconds");
        }
        if self.retry.attempts_max == 0 {
            return bad("a transaction needs at least one attempt");
        }
        if let Some(rate) = self.rate {
            let most = self.curve.as_ref().map_or(rate, Curve::most);
            let arrivals = most * (self.warmup + self.length).as_secs_f64();
            if !(rate.is_finite() && rate > 0.0) || arrivals > 1e8 {
                return bad("the rate must be above 0 and give at most 100 million arrivals");
            }
        }
        Ok(())
    }
}

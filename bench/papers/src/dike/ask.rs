//! One setting, run by `trellis bench run` in a process of its own: what a reader would type.

use super::bed::{Bed, Place, Tables, tail};
use crate::figure::Figure;
use crate::repetition::Lab;
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::process::{Command, Stdio};

/// Runs of each setting.
pub(super) fn repeats(quick: bool) -> u32 {
    if quick { 1 } else { 3 }
}

/// Measured seconds of a run.
pub(super) fn length_s(quick: bool) -> u32 {
    if quick { 2 } else { 5 }
}

/// Seconds of a run with its checks and its share of a load, about.
pub(super) fn run_s(quick: bool) -> f64 {
    f64::from(length_s(quick)) + 2.5
}

/// Clients of a closed loop: few, because all servers and clients share the cores.
pub(super) const CLIENTS: u32 = 9;

/// Options of `trellis bench run --workload dike`.
#[derive(Clone, Debug)]
pub(super) struct Ask {
    args: Vec<String>,
    length_s: Option<u32>,
    isolation: Option<&'static str>,
    has_clients: bool,
}

impl Ask {
    /// With this mix.
    pub(super) fn mix(mix: &str) -> Ask {
        let ask = Ask {
            args: Vec::new(),
            length_s: None,
            isolation: None,
            has_clients: false,
        };
        ask.with("mix", mix)
    }

    pub(super) fn with(mut self, option: &str, value: impl ToString) -> Ask {
        self.has_clients |= option == "clients";
        self.args.extend([format!("--{option}"), value.to_string()]);
        self
    }

    /// With an option that has no value.
    pub(super) fn flag(mut self, option: &str) -> Ask {
        self.args.push(format!("--{option}"));
        self
    }

    /// Lasts as long as this instead of as long as all others.
    pub(super) fn seconds(mut self, length_s: u32) -> Ask {
        self.length_s = Some(length_s);
        self
    }

    /// Servers of others have this level instead of the paper's.
    pub(super) fn isolation(mut self, level: &'static str) -> Ask {
        self.isolation = Some(level);
        self
    }

    /// A ratio and a degree: exact on Trellis; elsewhere as many warehouses as nodes would need.
    pub(super) fn distributed(self, place: Place, ratio: u32, degree: u32, nodes: u32) -> Ask {
        let ask = match place.is_trellis() {
            true => self.with("distribution", "exact"),
            false => self
                .with("distribution", "statistical")
                .with("nodes", nodes),
        };
        ask.with("ratio", ratio).with("degree", degree)
    }

    /// All arguments but the URL.
    pub(super) fn arguments(&self, place: Place, quick: bool, seed: u32) -> Vec<String> {
        let mut all: Vec<String> = ["bench", "run", "--workload", "dike"]
            .map(String::from)
            .to_vec();
        all.extend(self.args.iter().cloned());
        if !self.has_clients {
            all.extend(["--clients".to_owned(), CLIENTS.to_string()]);
        }
        let length_s = self.length_s.unwrap_or(length_s(quick));
        all.extend(["--seconds".to_owned(), length_s.to_string()]);
        all.extend(["--warmup".to_owned(), "1".to_owned()]);
        all.extend(["--seed".to_owned(), seed.to_string()]);
        if !place.is_trellis() {
            let level = self.isolation.unwrap_or("repeatable-read");
            all.extend(["--isolation".to_owned(), level.to_owned()]);
        }
        all
    }

    /// As a person types it.
    pub(super) fn command(&self, place: Place, quick: bool) -> String {
        let words = self.arguments(place, quick, 1);
        format!("trellis {} --url URL", words.join(" "))
    }
}

/// A number of several runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Spread {
    pub(super) mean: f64,
    pub(super) low: f64,
    pub(super) high: f64,
}

impl Spread {
    pub(super) fn of(values: &[f64]) -> Option<Spread> {
        let count = values.len().max(1) as f64;
        (!values.is_empty()).then(|| Spread {
            mean: values.iter().sum::<f64>() / count,
            low: values.iter().copied().fold(f64::INFINITY, f64::min),
            high: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        })
    }
}

/// Mean and spread for a table; a dash without a number.
pub(super) fn shown(spread: Option<Spread>, digits: usize) -> String {
    match spread {
        None => "-".to_owned(),
        Some(Spread { mean, low, high }) if low == high => format!("{mean:.digits$}"),
        Some(Spread { mean, low, high }) => {
            format!("{mean:.digits$} ({low:.digits$} to {high:.digits$})")
        }
    }
}

/// What came out of the runs of one setting.
pub(super) struct Runs {
    pub(super) results: Vec<Value>,
}

impl Runs {
    pub(super) fn spread(&self, of: impl Fn(&Value) -> Option<f64>) -> Option<Spread> {
        let values: Vec<f64> = self.results.iter().filter_map(of).collect();
        Spread::of(&values)
    }

    pub(super) fn rate(&self) -> Option<Spread> {
        self.spread(|it| it["committed_per_s"].as_f64())
    }

    pub(super) fn mean_rate(&self) -> f64 {
        self.rate().map_or(f64::NAN, |it| it.mean)
    }

    pub(super) fn p50_ms(&self) -> Option<Spread> {
        self.spread(|it| it["latency_us"]["p50"].as_f64().map(|us| us / 1e3))
    }

    /// Warehouses of a distributed transaction.
    pub(super) fn warehouses(&self) -> Option<Spread> {
        self.spread(|it| it["distribution"]["warehouses_per_transaction"].as_f64())
    }

    pub(super) fn messages(&self) -> Option<Spread> {
        self.spread(|it| it["per_txn"]["messages"].as_f64())
    }

    /// Attempts that ended in vain, for 100 commits.
    pub(super) fn aborts_percent(&self) -> Option<Spread> {
        self.spread(|it| {
            let committed = it["committed"].as_f64().filter(|it| *it > 0.0)?;
            Some(100.0 * it["aborted"].as_f64()? / committed)
        })
    }

    /// Whether every audit of every run passed.
    pub(super) fn passed(&self) -> bool {
        let mut results = self.results.iter();
        results.all(|it| it["passed"].as_bool() == Some(true))
    }
}

/// Runs a setting as often as it is repeated. `None`: the server is not installed, and the figure
/// says so.
pub(super) fn run(
    lab: &mut Lab,
    figure: &mut Figure,
    bed: &mut Bed,
    (place, data): (Place, Tables),
    ask: &Ask,
    label: &str,
) -> Result<Option<Runs>> {
    let url = match bed.url(place, data) {
        Ok(Some(url)) => url,
        Ok(None) => {
            let text = format!("{} is not installed, so it was not measured.", place.name());
            if !figure.text.contains(&text) {
                figure.text.push(text);
            }
            return Ok(None);
        }
        Err(error) if !place.is_trellis() => {
            figure.text.push(format!("No number: {error:#}."));
            return Ok(None);
        }
        Err(error) => return Err(error),
    };
    let mut results = Vec::new();
    for repeat in 0..repeats(lab.quick) {
        let args = ask.arguments(place, lab.quick, 1 + repeat);
        let result = once(bed, &url, &args);
        let result = result.with_context(|| format!("{}, {label}", place.name()));
        lab.clock.besides_done(run_s(lab.quick));
        match result {
            // What the servers of others cannot do is a result, and the others go on.
            Err(error) if !place.is_trellis() => {
                let text = format!("No number: {error:#}.");
                lab.clock.say(&text)?;
                figure.text.push(text);
                return Ok(None);
            }
            result => results.push(result?),
        }
    }
    let runs = Runs { results };
    let rate = shown(runs.rate(), 1);
    lab.clock
        .say(&format!("{}, {label}: {rate} tx/s", place.name()))?;
    Ok(Some(runs))
}

/// One run. A result whose audits failed is one; without a number there is none.
pub(super) fn once(bed: &Bed, url: &str, args: &[String]) -> Result<Value> {
    let path = bed.scratch();
    let _ = std::fs::remove_file(&path);
    let program = std::env::current_exe().context("where this program lies")?;
    let mut command = Command::new(program);
    command.args(args).args(["--url", url, "--json"]).arg(&path);
    let output = command.stdin(Stdio::null()).output()?;
    let text = std::fs::read_to_string(&path).ok();
    let value: Option<Value> = text.and_then(|text| serde_json::from_str(&text).ok());
    match value {
        Some(value) if value["committed_per_s"].is_number() => Ok(value),
        _ => bail!("{}", tail(&String::from_utf8_lossy(&output.stderr))),
    }
}

/// Whether it is one of the servers that are not Trellis.
pub(super) fn is_other(place: Place) -> bool {
    !place.is_trellis()
}

#[cfg(test)]
mod tests {
    use super::*;
    use servers::Kind;

    #[test]
    fn a_command_has_all_that_is_asked_for() {
        let ask = Ask::mix("new_order:1").distributed(Place::ALL[0], 20, 3, 3);
        assert_eq!(
            ask.command(Place::ALL[0], true),
            "trellis bench run --workload dike --mix new_order:1 --distribution exact --ratio 20 \
             --degree 3 --clients 9 --seconds 2 --warmup 1 --seed 1 --url URL"
        );
        let ask = Ask::mix("new_order:1").with("clients", 4).seconds(7);
        let command = ask.command(Place::Other(Kind::MariaDb), false);
        assert!(command.contains("--clients 4 --seconds 7"), "{command}");
        assert!(command.contains("--isolation repeatable-read"), "{command}");
    }

    #[test]
    fn a_spread_is_shown_where_there_is_one() {
        assert_eq!(shown(Spread::of(&[]), 1), "-");
        assert_eq!(shown(Spread::of(&[2.0]), 1), "2.0");
        assert_eq!(shown(Spread::of(&[1.0, 2.0, 6.0]), 0), "3 (1 to 6)");
    }
}

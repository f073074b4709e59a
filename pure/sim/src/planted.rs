//! Where planted bugs are found: the lines of `pure/sim/planted.txt`.
//!
//! ```text
//! BUG WORKLOAD SEED
//! ```
//!
//! A seed is drawn with nothing asked for but the workload, and the protocol of bugs of leap. What
//! searches and writes the file is `trellis sim planted`; what replays it is `tests/planted.rs`.

use crate::plan::{Ask, Plan, ProtocolKind};
use crate::workload::find;
use base::Planted;
use std::fmt::Write;

/// A run in which a planted bug was seen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Found {
    /// The bug.
    pub bug: Planted,
    /// The workload that saw it.
    pub workload: &'static str,
    /// The seed of the run.
    pub seed: u64,
}

impl Found {
    /// The run.
    pub fn plan(&self) -> Plan {
        self.plan_at(self.seed)
    }

    /// The run of another seed with the same workload.
    pub fn plan_at(&self, seed: u64) -> Plan {
        Plan::draw(seed, &ask(self.bug, self.workload))
    }
}

/// What is asked for to see a bug: its protocol and the workload.
pub fn ask(bug: Planted, workload: &'static str) -> Ask {
    let mut ask = Ask::new(workload);
    if let Some(protocol) = bug.protocol().and_then(ProtocolKind::of_name) {
        ask.protocol = protocol;
    }
    ask
}

/// Reads the file.
///
/// # Errors
/// A line does not name a bug, a workload and a seed; the text says which.
pub fn parse(text: &str) -> Result<Vec<Found>, String> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.map(parse_line).collect()
}

fn parse_line(line: &str) -> Result<Found, String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [bug, workload, seed] = words[..] else {
        return Err(format!("{line:?} is not of the form BUG WORKLOAD SEED"));
    };
    Ok(Found {
        bug: Planted::find(bug).ok_or_else(|| format!("no bug is called {bug:?}"))?,
        workload: find(workload)
            .ok_or_else(|| format!("no workload is called {workload:?}"))?
            .name,
        seed: seed
            .parse()
            .map_err(|_| format!("{seed:?} is no number of a seed"))?,
    })
}

/// Writes the file, in the order of [`Planted::ALL`].
pub fn format(found: &[Found]) -> String {
    let mut out =
        "# Written by `trellis sim planted --record .`: bug, workload, seed.\n".to_owned();
    let mut sorted = found.to_vec();
    sorted.sort_by_key(|found| found.bug);
    for Found {
        bug,
        workload,
        seed,
    } in sorted
    {
        writeln!(out, "{} {workload} {seed}", bug.name()).expect("a string takes all");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let found = |bug, seed| Found {
            bug,
            workload: "bank",
            seed,
        };
        let one = [
            found(Planted::IndexMisplaced, 7),
            found(Planted::NoRangeLock, 9),
        ];
        let back = parse(&format(&one)).expect("it is well formed");
        assert_eq!(back, [one[1], one[0]]);
        assert!(parse("no-range-lock bank").is_err());
        assert!(parse("no-such-bug bank 1").is_err());
        assert!(parse("no-range-lock no-such-workload 1").is_err());
        assert!(parse("no-range-lock bank x").is_err());
    }
}

//! Function tests before a run of `trellis bench run`: where one does not pass there is no run.

use super::screen;
use anyhow::{Context, Result, bail};
use clap::Args;
use drive::tpcc::Isolation;
use function_tests::{COUNT_MAX, FunctionOptions, Test, Verdict};
use serde_json::{Map, Value};
use std::io::Write;

/// Which tests.
#[derive(Args)]
pub(super) struct GateArgs {
    /// Function tests of the database before the run, at its isolation level: snapshot, deadlock,
    /// or with the number of snapshots and cycles of waits snapshot:100,deadlock:20 (200 and 10
    /// without it); there is no run unless they pass
    #[arg(long, value_delimiter = ',', value_parser = test, value_name = "TEST:COUNT,..")]
    function_tests: Vec<(Test, Option<u32>)>,
}

fn test(text: &str) -> Result<(Test, Option<u32>), String> {
    let (name, count) = match text.split_once(':') {
        Some((name, count)) => (name, Some(count)),
        None => (text, None),
    };
    let tests = [Test::Snapshot, Test::Deadlock];
    let found = tests.into_iter().find(|test| test.name() == name);
    let found = found.ok_or_else(|| {
        format!(
            "{name:?} is neither snapshot nor deadlock (durability needs a crash: trellis bench \
             function)"
        )
    })?;
    let Some(count) = count else {
        return Ok((found, None));
    };
    let number = count.parse().ok();
    let number = number.filter(|number| (1..=COUNT_MAX).contains(number));
    let number = number.ok_or_else(|| {
        format!("{count:?} of {text:?} is no number of tests from 1 to {COUNT_MAX}")
    })?;
    Ok((found, Some(number)))
}

impl GateArgs {
    /// Runs the tests; what they say by their names, for the JSON of the run.
    ///
    /// # Errors
    /// A test did not pass, or could not be run.
    pub(super) fn pass(&self, url: &str, isolation: Isolation, seed: u64) -> Result<Value> {
        if self.function_tests.is_empty() {
            return Ok(Value::Object(Map::new()));
        }
        let mut options = FunctionOptions::new(url);
        let tests = self.function_tests.iter();
        options.tests = tests.clone().map(|(test, _)| *test).collect();
        options.counts = tests
            .filter_map(|(test, count)| Some((*test, (*count)?)))
            .collect();
        options.isolation = isolation;
        options.seed = seed;
        let found = function_tests::run(&options, &mut screen())?;
        let table = function_tests::table(&found);
        write!(std::io::stdout(), "{table}").context("cannot print the result")?;
        match found.verdict() {
            Verdict::Passed => {
                let mut told = function_tests::json(&found);
                Ok(told["tests"].take())
            }
            Verdict::Failed => bail!(
                "a function test failed at {}: there is no run",
                isolation.sql()
            ),
            Verdict::NotExercised => {
                bail!("a function test tried too little to say anything: there is no run")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_are_counted_as_they_are_told() {
        assert_eq!(test("snapshot:100"), Ok((Test::Snapshot, Some(100))));
        assert_eq!(test("deadlock"), Ok((Test::Deadlock, None)));
        for bad in [
            "durability",
            "snapshot:",
            "snapshot:0",
            "deadlock:x",
            "snapshot:1:2",
        ] {
            assert!(test(bad).is_err(), "{bad}");
        }
    }
}

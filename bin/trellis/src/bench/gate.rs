//! Function tests before a run of `trellis bench run`: where one does not pass there is no run.

use super::screen;
use anyhow::{Context, Result, bail};
use clap::Args;
use drive::tpcc::Isolation;
use function_tests::{FunctionOptions, Test, Verdict};
use serde_json::{Map, Value};
use std::io::Write;

/// Which tests.
#[derive(Args)]
pub(super) struct GateArgs {
    /// Function tests of the database before the run, at its isolation level: snapshot, deadlock;
    /// there is no run unless they pass
    #[arg(long, value_delimiter = ',', value_parser = test, value_name = "TEST,..")]
    function_tests: Vec<Test>,
}

fn test(text: &str) -> Result<Test, String> {
    let tests = [Test::Snapshot, Test::Deadlock];
    let found = tests.into_iter().find(|test| test.name() == text);
    found.ok_or_else(|| {
        format!(
            "{text:?} is neither snapshot nor deadlock (durability needs a crash: trellis bench \
             function)"
        )
    })
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
        options.tests.clone_from(&self.function_tests);
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

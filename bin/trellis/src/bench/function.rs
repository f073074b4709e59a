//! `trellis bench function`: whether a database does what transactions on several nodes need.

use super::{INCONCLUSIVE, isolation, screen};
use anyhow::{Context, Result, bail};
use clap::Args;
use drive::outputs;
use drive::tpcc::Isolation;
use function_tests::{COUNT_MAX, Found, FunctionOptions, Ledgered, Test, Verdict};
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

#[derive(Args)]
#[command(after_help = "Examples:\n  \
    trellis bench function postgres://trellis@127.0.0.1:5433,127.0.0.1:5434/shop\n  \
    trellis bench function postgres://postgres@127.0.0.1:5432/test --tests snapshot \
    --isolation read-committed\n  \
    trellis bench function $URL --record seen    # kill the server and start it, then\n  \
    trellis bench function $URL --verify seen\n\n\
    The database must exist; the tests make and drop tables whose names begin with \
    bench_function_.\n\n\
    Exit code: 0 all passed, 1 something failed, 3 too little was tried to say anything.")]
pub(super) struct FunctionArgs {
    /// Database: `postgres://USER@HOST:PORT/DATABASE` or `mysql://`; the nodes of a cluster with
    /// commas
    url: String,
    /// Which tests: snapshot, deadlock, durability [default: snapshot,deadlock; with --record or
    /// --verify durability]
    #[arg(long, value_delimiter = ',', value_parser = test, value_name = "TEST,..")]
    tests: Vec<Test>,
    /// Snapshots, cycles of waits, transactions [default: 200, 10, 1000]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=i64::from(COUNT_MAX)))]
    count: Option<u32>,
    /// serializable, repeatable-read or read-committed
    #[arg(long, default_value = "repeatable-read", value_parser = isolation)]
    isolation: Isolation,
    /// Seconds after which a test ends with what it has
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    limit: u64,
    /// Decides which rows are changed and in which order they are read
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Durability, before the crash: write transactions, and into this file what was acknowledged
    #[arg(long, value_name = "FILE", conflicts_with = "verify")]
    record: Option<PathBuf>,
    /// Durability, after the crash: compare the database with this file
    #[arg(long, value_name = "FILE")]
    verify: Option<PathBuf>,
    /// Where the result goes as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

fn test(text: &str) -> Result<Test, String> {
    let unknown = || format!("{text:?} is none of snapshot, deadlock and durability");
    Test::parse(text).ok_or_else(unknown)
}

impl FunctionArgs {
    fn options(&self) -> FunctionOptions {
        let mut options = FunctionOptions::new(&self.url);
        options.count = self.count;
        options.isolation = self.isolation;
        options.limit = Duration::from_secs(self.limit);
        options.seed = self.seed;
        options.ledger = match (&self.record, &self.verify) {
            (Some(path), _) => Some(Ledgered::Record(path.clone())),
            (None, Some(path)) => Some(Ledgered::Verify(path.clone())),
            (None, None) => None,
        };
        if !self.tests.is_empty() {
            options.tests.clone_from(&self.tests);
        } else if options.ledger.is_some() {
            options.tests = vec![Test::Durability];
        }
        options
    }
}

pub(super) fn function(args: &FunctionArgs) -> Result<ExitCode> {
    let paths = [&args.json, &args.record];
    outputs::check(paths.into_iter().filter_map(|path| path.as_deref()))?;
    let found = function_tests::run(&args.options(), &mut screen())?;
    let mut out = std::io::stdout();
    write!(out, "{}", function_tests::table(&found)).context("cannot print the result")?;
    if let Some(path) = &args.json {
        let text = serde_json::to_string_pretty(&function_tests::json(&found))?;
        outputs::write(path, &(text + "\n"))?;
    }
    let recorded = found.found.iter().any(|it| matches!(it, Found::Record(_)));
    match found.verdict() {
        Verdict::Failed => bail!("a function test failed"),
        Verdict::NotExercised => Ok(ExitCode::from(INCONCLUSIVE)),
        Verdict::Passed => {
            if let (true, Some(path)) = (recorded, &args.record) {
                let path = path.display();
                writeln!(
                    out,
                    "after the crash: trellis bench function URL --verify {path}"
                )?;
            }
            Ok(ExitCode::SUCCESS)
        }
    }
}

//! tokio-postgres against a running server: `clients URL`. Prints `passed: N`.
//!
//! Everything here also passes against PostgreSQL 15.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "prints its result"
)]
#![expect(clippy::unwrap_used, reason = "a test program: a panic is its verdict")]

mod checks;

use std::process::ExitCode;
use std::time::Duration;

/// Longest time for all checks together.
const LIMIT: Duration = Duration::from_secs(180);

fn main() -> ExitCode {
    let Some(url) = std::env::args().nth(1) else {
        eprintln!("usage: clients URL");
        return ExitCode::FAILURE;
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let passed = runtime.block_on(async { tokio::time::timeout(LIMIT, checks::all(&url)).await });
    match passed {
        Ok(passed) => {
            println!("passed: {passed}");
            ExitCode::SUCCESS
        }
        Err(_) => {
            eprintln!("the checks took longer than {LIMIT:?}");
            ExitCode::FAILURE
        }
    }
}

//! Random statements on Trellis and on PostgreSQL side by side: both must give the same answers.
//!
//! ```text
//! differ POSTGRES_URL TRELLIS_URL --seconds N [--seed N] [--statements N] [--coverage FILE]
//! ```
//!
//! Results, numbers of rows, SQLSTATEs and column names are compared. A statement on which the
//! servers differ is made smaller as long as they still do, and printed. `known` lists the
//! differences that are meant. The last line counts: `differ: N passed, N failed`.
#![expect(
    clippy::print_stdout,
    reason = "what a test program prints is its product"
)]

mod arguments;
mod compare;
mod coverage;
mod expr;
mod ground;
mod known;
mod path;
mod predicate;
mod query;
mod run;
mod script;
mod special;
mod tree;
mod values;
mod window;
mod write;

use run::{Options, Run};
use std::process::ExitCode;

const USAGE: &str = "usage: differ POSTGRES_URL TRELLIS_URL [--seconds N] [--seed N] \
                     [--statements N] [--coverage FILE] [--differences N]";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let Some(options) = Options::parse(&args) else {
        println!("{USAGE}");
        return ExitCode::FAILURE;
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.expect("threads and sockets can be had");
    match runtime.block_on(Run::go(options)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            println!("differ: {error}");
            ExitCode::FAILURE
        }
    }
}

//! Runs that are made again where too little has happened in them.

use drive::run::RunReport;
use drive::tpcc::{self, RunOptions};
use links::view::Silent;
use std::time::Duration;

/// Runs for as long as the options say, and again for longer until `is_enough`: see
/// [`peer::longer`].
pub(crate) fn run_until(options: &RunOptions, is_enough: impl Fn(&RunReport) -> bool) -> RunReport {
    let run = |length: Duration| {
        let mut options = options.clone();
        options.runner.length = length;
        tpcc::run(&options, &mut Silent).expect("it can be had")
    };
    peer::longer(options.runner.length, run, is_enough)
}

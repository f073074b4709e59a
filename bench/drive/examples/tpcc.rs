//! TPC-C by hand: `tpcc load|run|check URL [warehouses] [seconds] [clients] [rate]`.
//!
//! The product's own command line is `trellis bench`; this is the smallest use of the library.

use drive::run::RunnerOptions;
use drive::tpcc::{self, LoadOptions, RunOptions};
use links::view::Screen;
use std::io::{IsTerminal, Write};
use std::time::Duration;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let url = args
        .get(1)
        .ok_or("usage: tpcc load|run|check URL [warehouses] ...")?;
    let number = |at: usize, default: u64| match args.get(at) {
        Some(text) => text.parse(),
        None => Ok(default),
    };
    let mut stdout = std::io::stdout();
    let mut screen = Screen::new(std::io::stdout(), stdout.is_terminal());
    match args[0].as_str() {
        "load" => tpcc::load(&LoadOptions::new(url, number(2, 1)? as u32), &mut screen)?,
        "check" => {
            let check = tpcc::check(url, &mut screen)?;
            stdout.write_all(drive::report::check_table(&check).as_bytes())?;
        }
        _ => {
            let mut options = RunOptions::new(url);
            options.runner = RunnerOptions {
                length: Duration::from_secs(number(3, 10)?),
                clients: number(4, 4)? as u32,
                rate: args.get(5).map(|text| text.parse()).transpose()?,
                ..RunnerOptions::default()
            };
            let report = tpcc::run(&options, &mut screen)?;
            stdout.write_all(drive::report::table(&report).as_bytes())?;
            if let Some(folder) = args.get(6) {
                let json = drive::report::json(&report).to_string();
                std::fs::write(format!("{folder}/tpcc.json"), json)?;
                std::fs::write(format!("{folder}/tpcc.html"), drive::report::html(&report))?;
            }
        }
    }
    Ok(())
}

//! The conformance suite on a server of yours, which it empties:
//! `cargo run -p stores --example conform -- URL [MAPPING [optimistic]]`.
#![allow(clippy::print_stdout, reason = "what it is for")]

use entity::Failure;
use entity::conformance::Verdict;
use std::process::ExitCode;
use std::time::Duration;
use stores::{Options, conformance};

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match conform(&words) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(count) => {
            println!("{count} checks failed");
            ExitCode::FAILURE
        }
        Err(failure) => {
            println!("{failure}");
            ExitCode::FAILURE
        }
    }
}

/// How many checks failed.
fn conform(words: &[String]) -> Result<usize, Failure> {
    let usage = || Failure::Refused(String::from("conform URL [MAPPING [optimistic]]"));
    let options = Options {
        mapping: words.get(1).cloned(),
        timeout: Duration::from_secs(20),
        ..Options::default()
    };
    let url = words.first().ok_or_else(usage)?;
    let is_optimistic = words.get(2).is_some_and(|word| word == "optimistic");
    let (found, verdicts) = conformance::judge(url, options, is_optimistic)?;
    println!(
        "{}, {}, durable: {}",
        found.product, found.mapping, found.is_durable
    );
    let mut failed = 0;
    for (check, verdict) in verdicts {
        match verdict {
            Verdict::Passed => println!("{check}: passed"),
            Verdict::Skipped(why) => println!("{check}: skipped, {why}"),
            Verdict::Failed(why) => {
                failed += 1;
                println!("{check}: FAILED, {why}");
            }
        }
    }
    Ok(failed)
}

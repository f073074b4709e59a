//! The one command line of Trellis.

mod access;
mod allocator;
mod bench;
mod cert;
mod completions;
mod demo;
mod start;
mod status;
mod stop;
mod supervisor;

use clap::{CommandFactory, Parser, Subcommand};
use shell::{client, dump};
use std::io::Write;
use std::process::ExitCode;
use tracing_subscriber::EnvFilter;

#[global_allocator]
static ALLOCATOR: allocator::Counted = allocator::Counted;

/// A PostgreSQL-compatible distributed database whose transaction protocol is a choice per
/// database, and the benchmark that tells which choice fits.
#[derive(Parser)]
#[command(name = "trellis", version)]
#[command(
    after_help = "Begin with `trellis demo`, or with `trellis start --nodes 3 --data DIR`.\n\
    TRELLIS_LOG=info prints what a server does."
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Start a cluster, load TPC-C, run it, prove the result, write a report
    Demo(demo::DemoArgs),
    /// Start a local cluster, or one node of a cluster
    Start(start::StartArgs),
    /// Tell which nodes of a local cluster run
    Status(status::StatusArgs),
    /// Stop a local cluster
    Stop(stop::StopArgs),
    /// Add a role that may log in, change its password, or remove it
    Role(access::RoleArgs),
    /// Make a certificate authority, and certificates of servers, nodes and clients; revoke one
    Cert(cert::CertArgs),
    /// Ask and change a database: a small interactive client
    Sql(client::SqlArgs),
    /// Write a database as SQL statements that make it again: a backup
    Dump(dump::DumpArgs),
    /// Print the script by which a shell completes this command line
    Completions(completions::CompletionsArgs),
    /// Load, run and check a workload on any database with PostgreSQL's wire protocol
    Bench(bench::BenchArgs),
    /// Run clusters in virtual time, under faults, from a seed
    Sim(seeds::SimArgs),
    /// Repeat the evaluation of a paper
    Paper(papers::PaperArgs),
}

fn main() -> ExitCode {
    let filter = EnvFilter::try_from_env("TRELLIS_LOG");
    let filter = filter.unwrap_or_else(|_| EnvFilter::new("warn"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        // Who reads may have ended before the node: a line that nobody takes is no reason to panic.
        .log_internal_errors(false)
        .init();
    let result = match Cli::parse().command {
        Command::Demo(args) => demo::run(&args).map(|()| ExitCode::SUCCESS),
        Command::Start(args) => start::run(&args).map(|()| ExitCode::SUCCESS),
        Command::Status(args) => status::run(&args).map(|()| ExitCode::SUCCESS),
        Command::Stop(args) => stop::run(&args).map(|()| ExitCode::SUCCESS),
        Command::Role(args) => access::run_role(&args).map(|()| ExitCode::SUCCESS),
        Command::Cert(args) => cert::run(&args).map(|()| ExitCode::SUCCESS),
        Command::Sql(args) => client::run(&args).map(|()| ExitCode::SUCCESS),
        Command::Dump(args) => dump::run(&args).map(|()| ExitCode::SUCCESS),
        Command::Completions(args) => {
            let command = <Cli as CommandFactory>::command();
            completions::run(&args, command).map(|()| ExitCode::SUCCESS)
        }
        Command::Bench(args) => bench::run(&args),
        Command::Sim(args) => seeds::run(&args),
        Command::Paper(args) => papers::run(&args).map(|()| ExitCode::SUCCESS),
    };
    match result {
        Ok(code) => code,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "trellis: {error:#}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Cli, CommandFactory};
    use clap::Command;
    use std::path::Path;

    /// Words of `text` behind each `trellis`, up to the end of the command.
    fn commands(text: &str) -> Vec<Vec<&str>> {
        let mut found = Vec::new();
        for line in text.lines() {
            // What cargo is told of the crate of that name is none.
            if line.contains("-p trellis ") {
                continue;
            }
            for part in line.split("trellis ").skip(1) {
                let end = part
                    .find(['`', '|', ')', ';', '>', '#'])
                    .unwrap_or(part.len());
                let words = part[..end].split_whitespace();
                found.push(
                    words
                        .map(|word| word.trim_matches(['[', ']', ',', '.']))
                        .collect(),
                );
            }
        }
        found
    }

    /// Why the words behind `trellis` are none of its commands.
    fn wrong(mut command: &Command, words: &[&str]) -> Option<String> {
        let mut words = words.iter().peekable();
        while let Some(next) = words.peek().and_then(|word| command.find_subcommand(word)) {
            command = next;
            words.next();
        }
        let is_known = |flag: &str| {
            let mut all = command.get_arguments().filter_map(|arg| arg.get_long());
            flag == "help" || flag == "version" || all.any(|long| long == flag)
        };
        let mut flags = words.filter_map(|word| word.strip_prefix("--"));
        let flag = flags.find(|flag| !flag.is_empty() && !is_known(flag))?;
        Some(format!("{} has no --{flag}", command.get_name()))
    }

    #[test]
    fn what_the_documents_tell_to_type_exists() {
        let root = Path::new("../..");
        let mut files = vec![
            "README.md".into(),
            "ARCHITECTURE.md".into(),
            "CHANGELOG.md".into(),
        ];
        for folder in ["docs", "docs/benchmark", "docs/measured", "docs/protocols"] {
            for entry in std::fs::read_dir(root.join(folder)).expect("a folder") {
                let name = entry.expect("a file").file_name();
                let name = name.to_str().expect("ASCII").to_owned();
                files.extend(name.ends_with(".md").then(|| format!("{folder}/{name}")));
            }
        }
        let cli = Cli::command();
        let (mut checked, mut mistakes) = (0, Vec::new());
        for file in files {
            let text = std::fs::read_to_string(root.join(&file)).expect("a document");
            for words in commands(&text) {
                mistakes.extend(wrong(&cli, &words).map(|wrong| format!("{file}: {wrong}")));
                checked += usize::from(words.iter().any(|word| word.starts_with("--")));
            }
        }
        assert_eq!(mistakes, [""; 0]);
        assert!(checked >= 20, "only {checked} commands with options found");
        let mistaken = ["sim", "run", "--sedes", "3"];
        assert_eq!(
            wrong(&cli, &mistaken).as_deref(),
            Some("run has no --sedes")
        );
    }
}

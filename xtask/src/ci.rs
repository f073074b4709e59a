//! `cargo xtask ci`: everything that CI runs, step by step, with the time each step took.
//!
//! All steps run even after one has failed, so one run tells everything that is wrong. Some run two
//! at a time, each as `cargo xtask ci --alone STEP`. The last line counts what was checked:
//! `ci: N passed, N failed`.

use crate::{
    clients, compare, differ, faults, install, instructions, isolation, memory, package, repo,
    servers, shell, simulate, speed, tidy,
};
use anyhow::{Context, Result, ensure};
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// The command by which a reader of the README runs the tests.
pub(crate) const TEST_COMMAND: &str = "cargo test --workspace";
/// CI must have finished by then, from an empty cache on two cores of the speed of [`speed`].
const LIMIT: Duration = Duration::from_secs(45 * 60);
/// Longest time that a build of the product may take, on the same machine.
const BUILD_LIMIT: Duration = Duration::from_secs(8 * 60);

/// What clippy is told of lints.
const LINTS: [&str; 2] = ["-D", "warnings"];

/// One step: its name, and what it does. Answers the number of checks that passed.
type Step = (&'static str, fn() -> Result<usize>);

const STEPS: &[Step] = &[
    ("install", install_all),
    ("fmt", fmt),
    ("tidy", tidy_step),
    ("clippy", clippy),
    ("docs", docs),
    ("test", test),
    ("build", build),
    ("instructions", instructions::check),
    ("memory", memory::run_all),
    ("package", package::check),
    ("demo", demo),
    ("sim", simulate::run),
    ("clients", clients::run_all),
    ("slt", clients::run_slt),
    ("differ", differ::run_share),
    ("isolation", isolation::run_all),
    ("faults", faults::run_all),
    ("compare", compare::smoke),
];

/// Steps that run two at a time, in their order: they build next to nothing, and what they judge
/// does not depend on how fast the machine is.
const PAIRED: [&str; 7] = [
    "package",
    "demo",
    "sim",
    "clients",
    "slt",
    "differ",
    "isolation",
];

/// This program as it was started: the step `test` may have put another build at its path since.
const THIS_PROGRAM: &str = "/proc/self/exe";

/// What `--alone` prints before the number of checks that passed.
const ALONE_PASSED: &str = "checks that passed:";

/// How a step has ended: its name, whether it passed, and how long it took.
type Ended = (&'static str, Result<usize>, Duration);

/// Runs the command: all steps, or those named by `--only`.
pub(crate) fn main(args: &[String]) -> Result<()> {
    if let [flag, name] = args
        && flag == "--alone"
    {
        return alone(name);
    }
    let steps = select(args)?;
    let slowness = speed::slowness()?;
    println!("this machine takes {slowness:.2} times the time of the one that limits are for");
    let start = Instant::now();
    let mut passed = 0;
    let mut table = Vec::new();
    let is_paired = |(name, _): &Step| PAIRED.contains(name);
    for group in steps.chunk_by(|a, b| is_paired(a) && is_paired(b)) {
        let ended = match group {
            [(name, step)] => {
                println!("== {name}");
                let begin = Instant::now();
                let result = step();
                vec![tell((*name, result, begin.elapsed()))]
            }
            _ => in_pairs(group),
        };
        for (name, result, time) in ended {
            passed += result.as_ref().unwrap_or(&0);
            table.push((name, result.is_ok(), time));
        }
    }
    println!();
    for (name, good, time) in &table {
        let word = if *good { "passed" } else { "FAILED" };
        println!("{name:<12} {word} {:>8.1} s", time.as_secs_f64());
    }
    let used = start.elapsed();
    // Speed changes while steps run.
    let slowness = f64::midpoint(slowness, speed::slowness()?);
    let limit = speed::scaled(LIMIT, slowness);
    println!(
        "{:<12}        {:>8.1} s of {} s, on a machine of {slowness:.2}",
        "all",
        used.as_secs_f64(),
        limit.as_secs()
    );
    let mut failed = table.iter().filter(|(_, good, _)| !good).count();
    if used > limit {
        println!("the steps took too long");
        failed += 1;
    }
    println!("ci: {passed} passed, {failed} failed");
    ensure!(failed == 0, "{failed} steps failed");
    Ok(())
}

/// Prints how a step has ended.
fn tell(ended: Ended) -> Ended {
    let (name, result, time) = &ended;
    if let Err(error) = result {
        println!("{error:#}");
    }
    let word = if result.is_ok() { "passed" } else { "FAILED" };
    println!("== {name}: {word} after {:.1} s", time.as_secs_f64());
    ended
}

/// One step, whose result is the last line of the output: see [`in_pairs`].
fn alone(name: &str) -> Result<()> {
    let (_, step) = step_of(name)?;
    println!("{ALONE_PASSED} {}", step()?);
    Ok(())
}

/// Runs steps two at a time. What one prints is shown when it has ended.
fn in_pairs(steps: &[Step]) -> Vec<Ended> {
    // Two installers would get in each other's way.
    if let Err(error) = install::postgres() {
        return vec![tell((steps[0].0, Err(error), Duration::ZERO))];
    }
    let queue = Mutex::new(steps.iter());
    let ended = Mutex::new(Vec::new());
    let next = || queue.lock().expect("nobody panics").next();
    std::thread::scope(|scope| {
        for lane in ["0", "1"] {
            let (next, ended) = (&next, &ended);
            scope.spawn(move || {
                while let Some((name, _)) = next() {
                    let begin = Instant::now();
                    let result = in_process(name, lane);
                    let mut ended = ended.lock().expect("nobody panics");
                    println!("== {name}");
                    let result = result.and_then(|(text, checks)| {
                        print!("{text}");
                        checks.with_context(|| format!("{name} failed"))
                    });
                    ended.push(tell((*name, result, begin.elapsed())));
                }
            });
        }
    });
    ended.into_inner().expect("nobody panics")
}

/// Runs a step in a process of its own, whose servers have the ports of the lane. Answers what it
/// printed, and the number of checks that passed unless it failed.
fn in_process(name: &str, lane: &str) -> Result<(String, Option<usize>)> {
    let log = repo::cache_dir()?.join(format!("step-{name}.log"));
    let file = std::fs::File::create(&log).context("cannot create a log")?;
    let status = Command::new(THIS_PROGRAM)
        .args(["ci", "--alone", name])
        .env(servers::LANE, lane)
        .stdin(Stdio::null())
        .stdout(file.try_clone()?)
        .stderr(file)
        .status()
        .context("cannot start this program")?;
    let text = String::from_utf8_lossy(&std::fs::read(&log)?).into_owned();
    let last = text.lines().next_back().unwrap_or_default();
    let checks = last.strip_prefix(ALONE_PASSED).map(str::trim);
    let checks = checks.and_then(|checks| checks.parse().ok());
    Ok((text, checks.filter(|_| status.success())))
}

/// # Errors
/// No step has this name.
fn step_of(name: &str) -> Result<Step> {
    let step = STEPS.iter().find(|(known, _)| *known == name);
    let names = || STEPS.iter().map(|(name, _)| *name).collect::<Vec<_>>();
    step.copied().with_context(|| {
        format!(
            "no step is called {name}; the steps are {}",
            names().join(", ")
        )
    })
}

fn select(args: &[String]) -> Result<Vec<Step>> {
    if args.is_empty() {
        return Ok(STEPS.to_vec());
    }
    let mut wanted = Vec::new();
    let mut rest = args.iter();
    while let Some(flag) = rest.next() {
        ensure!(flag == "--only", "usage: cargo xtask ci [--only STEP]...");
        wanted.push(
            rest.next()
                .context("--only needs the name of a step")?
                .as_str(),
        );
    }
    for name in &wanted {
        step_of(name)?;
    }
    Ok(STEPS
        .iter()
        .filter(|(name, _)| wanted.contains(name))
        .copied()
        .collect())
}

/// The cargo that runs us, without what it has told us of our package: build scripts of some
/// libraries ask for these variables, and would run again when another folder asks.
pub(crate) fn cargo() -> Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(program);
    command.current_dir(repo::root());
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_MANIFEST_") || text.starts_with("CARGO_PKG_") {
            command.env_remove(&name);
        }
    }
    command
}

fn install_all() -> Result<usize> {
    install::all()?;
    Ok(1)
}

fn fmt() -> Result<usize> {
    shell::run(cargo().args(["fmt", "--all", "--check"]))?;
    Ok(1)
}

fn clippy() -> Result<usize> {
    let args = ["clippy", "--workspace", "--all-targets", "--"];
    shell::run(cargo().args(args).args(LINTS))?;
    Ok(1)
}

fn docs() -> Result<usize> {
    let args = [
        "doc",
        "--workspace",
        "--no-deps",
        "--document-private-items",
    ];
    let mut command = cargo();
    command.args(args).env("RUSTDOCFLAGS", "-D warnings");
    // What clippy has checked need not be checked again, if the compiler is told to be the same.
    let driver = cargo_folder().map(|folder| folder.join("clippy-driver"));
    if let Some(driver) = driver.filter(|driver| driver.is_file()) {
        command.env("RUSTC_WORKSPACE_WRAPPER", driver);
        command.env(
            "CLIPPY_ARGS",
            LINTS.join("__CLIPPY_HACKERY__") + "__CLIPPY_HACKERY__",
        );
    }
    shell::run(&mut command)?;
    Ok(1)
}

/// Where cargo and the compiler's other programs are.
fn cargo_folder() -> Option<PathBuf> {
    let cargo = PathBuf::from(std::env::var_os("CARGO")?);
    Some(cargo.parent()?.to_owned())
}

fn tidy_step() -> Result<usize> {
    tidy::check()?;
    Ok(1)
}

/// The README's test command. Its output is shown as it comes, and its summaries are added up.
fn test() -> Result<usize> {
    let mut words = TEST_COMMAND.split(' ');
    words.next();
    let mut command = cargo();
    // What fails does not hide what else fails. A test that needs PostgreSQL beside it may not
    // pass because there is none.
    command
        .args(words)
        .arg("--no-fail-fast")
        .env("TRELLIS_REQUIRE_PEERS", "1");
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot start cargo")?;
    let output = child.stdout.take().context("the output is a pipe")?;
    let mut passed = 0;
    let mut stdout = std::io::stdout();
    for line in BufReader::new(output).lines() {
        let line = line?;
        passed += passed_tests(&line);
        writeln!(stdout, "{line}")?;
    }
    let status = child.wait()?;
    ensure!(status.success(), "{TEST_COMMAND} ended with {status}");
    ensure!(passed > 0, "no test ran");
    Ok(passed)
}

/// The count in a line `test result: ok. 12 passed; ...`.
pub(crate) fn passed_tests(line: &str) -> usize {
    let count = line
        .strip_prefix("test result: ok. ")
        .and_then(|rest| rest.split(' ').next());
    count.and_then(|count| count.parse().ok()).unwrap_or(0)
}

/// The build that a user makes; clients and the comparison use what it leaves.
fn build() -> Result<usize> {
    let before = speed::slowness()?;
    let start = Instant::now();
    shell::run(cargo().args(["build", "--release"]))?;
    let time = start.elapsed();
    let slowness = f64::midpoint(before, speed::slowness()?);
    let limit = speed::scaled(BUILD_LIMIT, slowness);
    println!("the build took {time:.0?} of {limit:.0?}, on a machine of {slowness:.2}");
    ensure!(time <= limit, "the build took too long");
    Ok(1)
}

/// The main job as a user runs it, and what its JSON must hold.
fn demo() -> Result<usize> {
    let json = repo::cache_dir()?.join("demo.json");
    let _ = std::fs::remove_file(&json);
    let mut command = Command::new(repo::target_dir().join("release/trellis"));
    command
        .args(["demo", "--seconds", "10", "--json"])
        .arg(&json);
    command
        .arg("--report")
        .arg(json.with_extension("html"))
        .current_dir(repo::cache_dir()?);
    let log = json.with_extension("log");
    let text = shell::run_logged(&mut command, &log, Duration::from_secs(300))?;
    println!("{}", shell::tail(&text, 60));
    let text = std::fs::read_to_string(&json).context("the demo wrote no JSON")?;
    let value: serde_json::Value = serde_json::from_str(&text).context("not JSON")?;
    let paths = [
        "/protocol",
        "/nodes",
        "/committed",
        "/aborted",
        "/new_order_per_min",
        "/latency_us/p50",
        "/latency_us/p95",
        "/latency_us/p99",
        "/latency_us/p999",
        "/distributed_share",
        "/per_txn/messages",
        "/per_txn/bytes",
        "/per_txn/forced_writes",
        "/audits/passed",
    ];
    for path in paths {
        let found = value.pointer(path).is_some_and(|found| !found.is_null());
        ensure!(found, "the demo's JSON has no {path}");
    }
    ensure!(
        value["consistency"]["passed"] == 13,
        "{}",
        value["consistency"]
    );
    for checks in ["consistency", "audits"] {
        ensure!(value[checks]["failed"] == 0, "{checks}: {}", value[checks]);
    }
    ensure!(
        value["committed"].as_u64() > Some(0),
        "nothing was committed"
    );
    Ok(paths.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summaries_of_tests_are_counted() {
        let line = "test result: ok. 12 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out";
        assert_eq!(passed_tests(line), 12);
        assert_eq!(passed_tests("test result: FAILED. 3 passed; 1 failed"), 0);
        assert_eq!(passed_tests("running 3 tests"), 0);
    }

    #[test]
    fn the_page_of_tests_lists_every_step() {
        let text = std::fs::read_to_string(repo::root().join("docs/testing.md")).unwrap();
        let rows = text
            .lines()
            .skip_while(|line| !line.starts_with("| step |"));
        let rows = rows.skip(2).take_while(|line| line.starts_with('|'));
        // The first cell may name several steps, each between backticks.
        let cells = rows.filter_map(|row| row.split('|').nth(1));
        let mut listed: Vec<&str> = cells
            .flat_map(|cell| cell.split('`').skip(1).step_by(2))
            .collect();
        let mut steps: Vec<&str> = STEPS.iter().map(|(name, _)| *name).collect();
        listed.sort_unstable();
        steps.sort_unstable();
        assert_eq!(listed, steps);
    }

    #[test]
    fn steps_in_pairs_stand_together() {
        let is_paired = |(name, _): &Step| PAIRED.contains(name);
        let groups = STEPS.chunk_by(|a, b| is_paired(a) && is_paired(b));
        let longest = groups.max_by_key(|group| group.len()).unwrap();
        let names: Vec<&str> = longest.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, PAIRED);
    }

    #[test]
    fn steps_are_chosen_by_name() {
        let select = |args: &[&str]| {
            let args: Vec<String> = args.iter().map(|arg| arg.to_string()).collect();
            select(&args).map(|steps| steps.len())
        };
        assert_eq!(select(&[]).unwrap(), STEPS.len());
        assert_eq!(select(&["--only", "fmt", "--only", "tidy"]).unwrap(), 2);
        assert!(select(&["--only", "nothing"]).is_err());
        assert!(select(&["--only"]).is_err());
    }
}

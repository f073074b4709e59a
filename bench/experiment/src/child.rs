//! Evaluates Jsonnet in a process of its own, with limits of time and memory.
//!
//! The child watches itself, so that one whose parent died ends as well; the parent waits a little
//! longer than the child may take, and ends it then.

use crate::jsonnet::{self, Answer, WrittenKey};
use crate::mistake::Mistake;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// How long an evaluation may take.
const TIME_MAX: Duration = Duration::from_secs(10);
/// Memory that an evaluation may take, bytes.
const MEMORY_BYTES_MAX: u64 = 256 * 1024 * 1024;
/// Bytes that an evaluation may answer.
const ANSWER_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Keys whose lines are kept: more are not written by hand.
const KEYS_MAX: usize = 5_000;
/// Stack of the evaluation: files of the largest size that nest at each character fit.
const STACK_BYTES: usize = 256 * 1024 * 1024;
/// How often the child looks at its time and memory.
const WATCH_EVERY: Duration = Duration::from_millis(5);
/// How much longer than the child the parent waits.
const GRACE: Duration = Duration::from_secs(2);

/// Exit codes of the child.
const TOO_LONG: u8 = 3;
const TOO_LARGE: u8 = 4;

/// How Jsonnet is evaluated.
#[derive(Clone, Debug)]
pub enum Evaluator {
    /// By a program that calls [`main`] with the file behind these arguments.
    Child {
        /// The program.
        program: PathBuf,
        /// Arguments in front of the file.
        arguments: Vec<String>,
    },
    /// In this process and without limits, for tests.
    #[cfg(test)]
    Here,
}

impl Evaluator {
    /// What the file says.
    pub(crate) fn evaluate(&self, path: &Path) -> Result<Answer, Mistake> {
        let (program, arguments) = match self {
            Evaluator::Child { program, arguments } => (program, arguments),
            #[cfg(test)]
            Evaluator::Here => return jsonnet::evaluate(path),
        };
        let name = path.display().to_string();
        let wrong = |text: String| Mistake::of_file(&name, text);
        let mut command = Command::new(program);
        command.args(arguments).arg(path);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command
            .spawn()
            .map_err(|error| wrong(format!("its evaluation cannot be started: {error}")))?;
        let (out, err) = (child.stdout.take(), child.stderr.take());
        let said = thread::spawn(move || all_of(out));
        let errors = thread::spawn(move || all_of(err));
        let begun = Instant::now();
        let status = loop {
            match child.try_wait() {
                Ok(Some(status)) => break status,
                Ok(None) if begun.elapsed() > TIME_MAX + GRACE => {
                    // It may have ended by itself in between.
                    let _ = child.kill();
                    let _ = child.wait();
                    return Err(too_long(&name));
                }
                Ok(None) => thread::sleep(Duration::from_millis(2)),
                Err(error) => return Err(wrong(error.to_string())),
            }
        };
        let said = said.join().unwrap_or_default();
        let errors = errors.join().unwrap_or_default();
        if !status.success() {
            return Err(ended(&name, status, &errors));
        }
        let told: Value = serde_json::from_slice(&said)
            .map_err(|error| wrong(format!("its evaluation told nothing: {error}")))?;
        if let Some(mistake) = told.get("mistake").and_then(Mistake::from_json) {
            return Err(mistake);
        }
        Ok(answer(told))
    }
}

fn all_of(stream: Option<impl Read>) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Some(stream) = stream {
        // A pipe that breaks ends what was said; the status tells why.
        let _ = stream
            .take(2 * ANSWER_BYTES_MAX as u64)
            .read_to_end(&mut bytes);
    }
    bytes
}

fn too_long(name: &str) -> Mistake {
    let text = format!("its evaluation takes longer than {} s", TIME_MAX.as_secs());
    Mistake::of_file(name, text).next("look for a recursion or a range without end")
}

fn too_large(name: &str) -> Mistake {
    let text = format!(
        "its evaluation needs more than {} MiB",
        MEMORY_BYTES_MAX >> 20
    );
    Mistake::of_file(name, text).next("look for a text or a list that grows without end")
}

/// Why a child ended that told nothing.
fn ended(name: &str, status: ExitStatus, errors: &[u8]) -> Mistake {
    match status.code() {
        Some(code) if code == i32::from(TOO_LONG) => too_long(name),
        Some(code) if code == i32::from(TOO_LARGE) => too_large(name),
        Some(code) => {
            let last = String::from_utf8_lossy(errors);
            let last: Vec<&str> = last.lines().take(3).collect();
            let text = format!("its evaluation failed with {code}: {}", last.join(" "));
            Mistake::of_file(name, text)
        }
        // An allocation that the system refuses and an overflow of the stack end by a signal.
        None if String::from_utf8_lossy(errors).contains("overflowed its stack") => {
            Mistake::of_file(name, "it is nested too deeply")
        }
        None => too_large(name),
    }
}

fn answer(mut told: Value) -> Answer {
    let key = |key: &Value| {
        let path = key["path"].as_array()?.iter();
        Some(WrittenKey {
            path: path
                .filter_map(|it| it.as_str().map(str::to_owned))
                .collect(),
            file: key["file"].as_str()?.to_owned(),
            line: usize::try_from(key["line"].as_u64()?).ok()?,
        })
    };
    let keys = told["keys"].as_array().into_iter().flatten();
    let traces = told["traces"].as_array().into_iter().flatten();
    Answer {
        keys: keys.filter_map(key).collect(),
        traces: traces
            .filter_map(|it| it.as_str().map(str::to_owned))
            .collect(),
        value: told["value"].take(),
    }
}

/// The child: evaluates a file, writes what it says to `out`, and returns its exit code.
pub fn main(path: &Path, out: &mut dyn Write) -> u8 {
    thread::spawn(watch);
    let path = path.to_owned();
    let evaluation = thread::Builder::new()
        .stack_size(STACK_BYTES)
        .spawn(move || {
            let answered = jsonnet::evaluate(&path);
            told(answered, &path.display().to_string())
        });
    let told = match evaluation.map(thread::JoinHandle::join) {
        Ok(Ok(told)) => told,
        // A panic has said why.
        Ok(Err(_)) => return 101,
        Err(_) => return TOO_LARGE,
    };
    match out.write_all(told.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => 0,
        Err(_) => 1,
    }
}

fn told(answered: Result<Answer, Mistake>, name: &str) -> String {
    let mistake = |mistake: Mistake| json!({ "mistake": mistake.json() }).to_string();
    let answer = match answered {
        Ok(answer) => answer,
        Err(found) => return mistake(found),
    };
    let keys = answer.keys.iter().take(KEYS_MAX);
    let keys = keys.map(|key| json!({ "path": key.path, "file": key.file, "line": key.line }));
    let told = json!({
        "value": answer.value, "keys": keys.collect::<Vec<_>>(), "traces": answer.traces,
    });
    let told = told.to_string();
    match told.len() > ANSWER_BYTES_MAX {
        true => {
            let text = format!("its value is larger than {} MiB", ANSWER_BYTES_MAX >> 20);
            mistake(Mistake::of_file(name, text))
        }
        false => told,
    }
}

/// Ends this process when it takes too long or too much.
fn watch() {
    let begun = Instant::now();
    loop {
        thread::sleep(WATCH_EVERY);
        if begun.elapsed() > TIME_MAX {
            std::process::exit(i32::from(TOO_LONG));
        }
        if resident_bytes().is_some_and(|bytes| bytes > MEMORY_BYTES_MAX) {
            std::process::exit(i32::from(TOO_LARGE));
        }
    }
}

/// Memory of this process that is in use.
fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().trim_end_matches("kB").trim().parse().ok()?;
    Some(kib * 1024)
}

//! A command with everything that it starts, which ends when this process does.
//!
//! ```text
//! this process --stdin (closed: end all)--> keeper --> sh -c COMMAND --> daemons ..
//!              <--stdout (`ended CODE`)----
//! ```
//!
//! The keeper is a process of its own. Orphans among its descendants become its children (Linux: a
//! subreaper), so nothing that the command starts can leave it, daemons included. When its input
//! ends, because this process closes it or is no more, it tells all of them to end, and kills after
//! [`GRACE`] what is left. It has a session of its own: Ctrl-C in a terminal does not reach it.

use fault::Process;
use nix::errno::Errno;
use nix::sys::prctl::set_child_subreaper;
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{Pid, setsid};
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::time::{Duration, Instant};

/// How long everything has to end by itself.
const GRACE: Duration = Duration::from_secs(5);
/// How often the keeper looks after its children.
const LOOK: Duration = Duration::from_millis(20);
/// How much longer than [`GRACE`] the keeper may take.
const MORE: Duration = Duration::from_secs(10);
/// The code of a command that a signal has ended, as shells count.
const SIGNALLED: i32 = 128;
/// No code yet.
const RUNS: i32 = i32::MIN;
/// The last lines of an output that are told, and how much of it is read for them.
const LINES: usize = 10;
const TAIL_BYTES: u64 = 8 << 10;

/// How keepers are started.
#[derive(Clone, Debug)]
pub struct Keeper {
    /// A program that calls [`main`] with the three arguments behind these.
    pub program: PathBuf,
    /// Arguments in front of the command and the files of its output and its errors.
    pub arguments: Vec<String>,
}

/// A command that runs, or what it has started.
#[derive(Debug)]
pub(crate) struct Kept {
    keeper: Child,
    /// Closed, it ends everything.
    control: Option<ChildStdin>,
    code: Arc<AtomicI32>,
    output: PathBuf,
    errors: PathBuf,
}

impl Kept {
    /// Starts a command of the shell. Its output and its errors go to files of these names, which
    /// may be one.
    ///
    /// # Errors
    /// Why it could not be started.
    pub(crate) fn start(
        keeper: &Keeper,
        command: &str,
        variables: &[(&str, String)],
        (output, errors): (&Path, &Path),
    ) -> Result<Kept, String> {
        for file in [output, errors] {
            let made = File::create(file);
            made.map_err(|error| format!("cannot write {}: {error}", file.display()))?;
        }
        let mut starting = Command::new(&keeper.program);
        starting
            .args(&keeper.arguments)
            .arg(command)
            .arg(output)
            .arg(errors);
        let variables = variables
            .iter()
            .map(|(name, value)| (*name, value.as_str()));
        starting
            .envs(variables)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let started = starting.spawn();
        let mut child = started.map_err(|error| format!("it cannot be started: {error}"))?;
        let code = Arc::new(AtomicI32::new(RUNS));
        let (told, said) = (Arc::clone(&code), child.stdout.take());
        std::thread::spawn(move || {
            let Some(said) = said else { return };
            for line in BufReader::new(said).lines().map_while(Result::ok) {
                if let Some(code) = line.strip_prefix("ended ").and_then(|it| it.parse().ok()) {
                    told.store(code, Ordering::Relaxed);
                }
            }
            // A keeper that was killed says nothing more.
            let _ =
                told.compare_exchange(RUNS, SIGNALLED + 9, Ordering::Relaxed, Ordering::Relaxed);
        });
        Ok(Kept {
            control: child.stdin.take(),
            keeper: child,
            code,
            output: output.to_owned(),
            errors: errors.to_owned(),
        })
    }

    /// How the command has ended; `None`: it runs. What it has started may run all the same.
    pub(crate) fn ended(&self) -> Option<i32> {
        Some(self.code.load(Ordering::Relaxed)).filter(|code| *code != RUNS)
    }

    /// Waits for the command's end; `None`: it has taken too long, or `stop` was set.
    pub(crate) fn wait(&self, limit: Duration, stop: &AtomicBool) -> Option<i32> {
        let until = Instant::now() + limit;
        loop {
            if let Some(code) = self.ended() {
                return Some(code);
            }
            if stop.load(Ordering::Relaxed) || Instant::now() >= until {
                return None;
            }
            std::thread::sleep(LOOK);
        }
    }

    /// The keeper's process: everything that the command has started is below it.
    pub(crate) fn pid(&self) -> u32 {
        self.keeper.id()
    }

    /// What it has written.
    pub(crate) fn output(&self) -> String {
        read_lossy(&self.output, 0)
    }

    /// The last lines of what it has written, errors first.
    pub(crate) fn last_lines(&self) -> String {
        let tail = |path: &Path| {
            let length = std::fs::metadata(path).map_or(0, |it| it.len());
            read_lossy(path, length.saturating_sub(TAIL_BYTES))
        };
        let mut text = tail(&self.errors);
        if text.trim().is_empty() {
            text = tail(&self.output);
        }
        let lines: Vec<&str> = text
            .lines()
            .filter(|line| !line.trim().is_empty())
            .collect();
        lines[lines.len().saturating_sub(LINES)..].join("\n")
    }

    /// Ends everything, and waits for that.
    fn end(&mut self) {
        self.control = None;
        let until = Instant::now() + GRACE + MORE;
        while let Ok(None) = self.keeper.try_wait() {
            if Instant::now() >= until {
                // It hangs in the system itself.
                let _ = self.keeper.kill();
                let _ = self.keeper.wait();
                return;
            }
            std::thread::sleep(LOOK);
        }
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.end();
    }
}

fn read_lossy(path: &Path, from: u64) -> String {
    let read = || {
        use std::io::{Seek, SeekFrom};
        let mut file = File::open(path)?;
        file.seek(SeekFrom::Start(from))?;
        let mut bytes = Vec::new();
        file.take(64 << 20).read_to_end(&mut bytes)?;
        Ok::<_, std::io::Error>(bytes)
    };
    String::from_utf8_lossy(&read().unwrap_or_default()).into_owned()
}

/// The keeper: runs a command of the shell, says on its own output how that has ended, and ends
/// everything when its input does. Returns its exit code.
pub fn main(command: &str, output: &Path, errors: &Path) -> u8 {
    // Both make it better, and neither is needed: the first keeps orphans with us.
    let _ = set_child_subreaper(true);
    let _ = setsid();
    let append = |path: &Path| OpenOptions::new().append(true).open(path);
    let (Ok(output), Ok(errors)) = (append(output), append(errors)) else {
        return 1;
    };
    let mut shell = Command::new("sh");
    shell
        .args(["-c", command])
        .stdin(Stdio::null())
        .stdout(output)
        .stderr(errors);
    let Ok(shell) = shell.spawn() else {
        return 1;
    };
    let first = Pid::from_raw(shell.id() as i32);
    let is_over = Arc::new(AtomicBool::new(false));
    let over = Arc::clone(&is_over);
    std::thread::spawn(move || {
        let mut bytes = [0; 64];
        while matches!(std::io::stdin().read(&mut bytes), Ok(count) if count > 0) {}
        over.store(true, Ordering::Relaxed);
    });
    let mut is_told = false;
    while !is_over.load(Ordering::Relaxed) {
        if let Some(code) = reap(first) {
            tell(code);
            is_told = true;
        }
        std::thread::sleep(LOOK);
    }
    end_all(first, &mut is_told);
    0
}

fn tell(code: i32) {
    let mut out = std::io::stdout();
    // Nobody may listen any more.
    let _ = writeln!(out, "ended {code}");
    let _ = out.flush();
}

/// Takes note of children that have ended. The code of the first one, if it is among them.
fn reap(first: Pid) -> Option<i32> {
    let mut code = None;
    loop {
        match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::Exited(pid, own)) if pid == first => code = Some(own),
            Ok(WaitStatus::Signaled(pid, signal, _)) if pid == first => {
                code = Some(SIGNALLED + signal as i32);
            }
            Ok(WaitStatus::StillAlive) | Err(Errno::ECHILD) => return code,
            Ok(_) | Err(Errno::EINTR) => {}
            Err(_) => return code,
        }
    }
}

fn end_all(first: Pid, is_told: &mut bool) {
    let Some(own) = Process::own() else { return };
    let begun = Instant::now();
    let mut was_told = Vec::new();
    loop {
        if let Some(code) = reap(first)
            && !*is_told
        {
            tell(code);
            *is_told = true;
        }
        let mut left = own.tree();
        left.retain(|process| *process != own);
        if left.is_empty() || begun.elapsed() > GRACE + MORE / 2 {
            return;
        }
        let is_late = begun.elapsed() > GRACE;
        for process in left {
            let signal = match is_late {
                true => Signal::SIGKILL,
                false if was_told.contains(&process) => continue,
                false => Signal::SIGTERM,
            };
            was_told.push(process);
            // It may be somebody else's, after it has become another user: then it is no process
            // that we may end.
            let _ = process.signal(signal);
        }
        std::thread::sleep(LOOK);
    }
}

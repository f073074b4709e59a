//! Running other programs: with their output shown, caught, or bounded in time.

use anyhow::{Context, Result, bail};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// How often a waiting parent looks at its child.
const LOOK: Duration = Duration::from_millis(20);

/// Runs a program whose output goes where ours goes.
///
/// # Errors
/// The program is missing or its exit code is not 0.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = command
        .stdin(Stdio::null())
        .status()
        .with_context(|| format!("cannot start {}", describe(command)))?;
    must_succeed(command, status)
}

/// Runs a program and returns what it wrote to its standard output.
///
/// # Errors
/// The program is missing, its exit code is not 0 (then with its standard error), or it wrote
/// something that is not text.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot start {}", describe(command)))?;
    if !output.status.success() {
        let error = String::from_utf8_lossy(&output.stderr);
        bail!(
            "{} ended with {}: {}",
            describe(command),
            output.status,
            error.trim()
        );
    }
    String::from_utf8(output.stdout).context("the output is not text")
}

/// Runs a program that may not take longer than `limit`; returns what it wrote to both outputs,
/// which go to the file `log`.
///
/// # Errors
/// The program is missing, fails, or is killed at its deadline; the message ends with the last
/// lines of the log.
pub(crate) fn run_logged(command: &mut Command, log: &Path, limit: Duration) -> Result<String> {
    let file = File::create(log).with_context(|| format!("cannot create {}", log.display()))?;
    let errors = file.try_clone().context("cannot share the log")?;
    let mut child = command
        .stdin(Stdio::null())
        .stdout(file)
        .stderr(errors)
        .spawn()
        .with_context(|| format!("cannot start {}", describe(command)))?;
    let ended = wait(&mut child, limit)?;
    let text = String::from_utf8_lossy(&std::fs::read(log)?).into_owned();
    match ended {
        Some(status) if status.success() => Ok(text),
        Some(status) => bail!(
            "{} ended with {status}\n{}",
            describe(command),
            tail(&text, 40)
        ),
        None => bail!(
            "{} ran over {limit:?}\n{}",
            describe(command),
            tail(&text, 40)
        ),
    }
}

/// Waits for a child until `limit` is over; then kills it and answers `None`.
pub(crate) fn wait(child: &mut Child, limit: Duration) -> Result<Option<ExitStatus>> {
    let deadline = Instant::now() + limit;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if Instant::now() >= deadline {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        std::thread::sleep(LOOK);
    }
}

/// Asks a child to end (SIGTERM) and waits; kills it when `limit` is over. Answers whether it
/// ended by itself with exit code 0.
pub(crate) fn terminate(child: &mut Child, limit: Duration) -> Result<bool> {
    if child.try_wait()?.is_none() {
        run(Command::new("kill")
            .arg("-TERM")
            .arg(child.id().to_string()))?;
    }
    Ok(wait(child, limit)?.is_some_and(|status| status.success()))
}

/// The program on PATH.
pub(crate) fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|folder| folder.join(program))
        .find(|file| file.is_file())
}

/// Whether we run as root: then some servers must be started as somebody else.
pub(crate) fn is_root() -> bool {
    output(Command::new("id").arg("-u")).is_ok_and(|id| id.trim() == "0")
}

/// The last `count` lines.
pub(crate) fn tail(text: &str, count: usize) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(count)..].join("\n")
}

fn must_succeed(command: &Command, status: ExitStatus) -> Result<()> {
    if status.success() {
        return Ok(());
    }
    bail!("{} ended with {status}", describe(command))
}

/// The command line, for messages.
fn describe(command: &Command) -> String {
    let program = command.get_program().to_string_lossy();
    let args = command.get_args().map(|arg| arg.to_string_lossy());
    std::iter::once(program)
        .chain(args)
        .collect::<Vec<_>>()
        .join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_hangs_is_ended_at_its_deadline() {
        let log = std::env::temp_dir().join(format!("xtask-hang-{}", std::process::id()));
        let mut command = Command::new("sh");
        command.args(["-c", "echo before; exec sleep 60"]);
        let start = Instant::now();
        let error = run_logged(&mut command, &log, Duration::from_secs(3)).unwrap_err();
        let _ = std::fs::remove_file(log);
        assert!(start.elapsed() < Duration::from_secs(30));
        let text = error.to_string();
        assert!(
            text.contains("ran over") && text.ends_with("before"),
            "{text}"
        );
    }

    #[test]
    fn a_failing_program_and_a_missing_one_are_errors() {
        assert!(run(&mut Command::new("false")).is_err());
        assert!(output(&mut Command::new("no-such-program-of-ours")).is_err());
        assert_eq!(output(Command::new("echo").arg("x")).unwrap(), "x\n");
    }
}

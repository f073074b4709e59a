//! Other machines, which are reached by ssh as it is set up for this user: without passwords.

use std::fmt;
use std::io::{Read, Write};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::str::FromStr;
use std::thread::JoinHandle;

/// Settings of a connection: nothing is asked for, and a machine that is cut off is noticed.
const OPTIONS: [&str; 4] = [
    "BatchMode=yes",
    "ConnectTimeout=10",
    "ServerAliveInterval=5",
    "ServerAliveCountMax=2",
];

/// A machine as ssh names it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Host {
    /// `HOST` or `USER@HOST`.
    name: String,
    port: Option<u16>,
}

impl FromStr for Host {
    type Err = String;

    fn from_str(text: &str) -> Result<Host, String> {
        let (name, port) = match text.split_once(':') {
            Some((name, port)) => (name, Some(port)),
            None => (text, None),
        };
        let port = port.map(str::parse).transpose();
        let is_part = |part: &str| {
            let is_name = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
            // A name with a dash before it would be an option.
            !part.is_empty() && !part.starts_with('-') && part.chars().all(is_name)
        };
        match port {
            Ok(port) if name.splitn(2, '@').all(is_part) => Ok(Host {
                name: name.to_string(),
                port,
            }),
            _ => Err(format!("{text:?} is no [USER@]HOST[:PORT]")),
        }
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        match self.port {
            Some(port) => write!(f, ":{port}"),
            None => Ok(()),
        }
    }
}

impl Host {
    /// What runs a command there, which its shell reads.
    pub(super) fn command(&self, there: &str) -> Command {
        let mut command = Command::new("ssh");
        for option in OPTIONS {
            command.args(["-o", option]);
        }
        if let Some(port) = self.port {
            command.args(["-p", &port.to_string()]);
        }
        command.args(["--", &self.name, there]);
        command
    }
}

/// A word for the shell.
pub(super) fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// A script that a shell of another machine reads and carries out. It ends when we do.
pub(super) struct Shell {
    host: Host,
    child: Child,
    output: Option<ChildStdout>,
    errors: Option<JoinHandle<String>>,
}

impl Shell {
    /// Starts it.
    ///
    /// # Errors
    /// There is no ssh.
    pub(super) fn start(host: &Host, script: &str) -> Result<Shell, String> {
        let mut command = host.command("exec sh -s");
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let child = command.stderr(Stdio::piped()).spawn();
        let mut child = child.map_err(|error| format!("ssh: {error}"))?;
        if let Some(mut stdin) = child.stdin.take() {
            // One that ended early says why below.
            let _ = stdin.write_all(script.as_bytes());
        }
        let errors = child.stderr.take().map(|mut stderr| {
            std::thread::spawn(move || {
                let mut text = Vec::new();
                let _ = stderr.read_to_end(&mut text);
                String::from_utf8_lossy(&text).into_owned()
            })
        });
        Ok(Shell {
            host: host.clone(),
            output: child.stdout.take(),
            child,
            errors,
        })
    }

    /// Runs a script to its end.
    ///
    /// # Errors
    /// The machine is not reached, or the script fails; with the last line that it wrote.
    pub(super) fn run(host: &Host, script: &str) -> Result<(), String> {
        let mut shell = Shell::start(host, script)?;
        let mut text = String::new();
        // What is no text is of no interest either.
        let _ = shell.output().read_to_string(&mut text);
        match shell.child.wait() {
            Ok(status) if status.success() => Ok(()),
            _ => Err(shell.why_ended()),
        }
    }

    /// What it prints; once.
    pub(super) fn output(&mut self) -> Box<dyn Read + Send> {
        match self.output.take() {
            Some(output) => Box::new(output),
            None => Box::new(std::io::empty()),
        }
    }

    /// Ends it.
    pub(super) fn end(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Why it has ended.
    pub(super) fn why_ended(&mut self) -> String {
        self.end();
        let errors = self.errors.take().map(JoinHandle::join);
        let errors = errors.and_then(Result::ok).unwrap_or_default();
        why(&self.host, &errors)
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        self.end();
    }
}

/// A failure with the last line of what was written about it.
pub(super) fn why(host: &Host, errors: &str) -> String {
    match errors.lines().rev().find(|line| !line.trim().is_empty()) {
        Some(line) => format!("ssh {host}: {}", line.trim()),
        None => format!("ssh {host}: it has ended"),
    }
}

/// Containers of this machine.
pub(super) mod container {
    use super::{Command, Output, quoted};

    /// What runs containers, in the order in which they are asked.
    pub(crate) const RUNTIMES: [&str; 2] = ["docker", "podman"];

    /// The number of the main process of a container.
    ///
    /// # Errors
    /// It does not run, or nothing knows it.
    pub(crate) fn pid(id: &str) -> Result<u32, String> {
        let mut errors = Vec::new();
        for runtime in RUNTIMES {
            let mut command = Command::new(runtime);
            let asked = command
                .args(["inspect", "-f", "{{.State.Pid}}", "--", id])
                .output();
            match asked
                .map_err(|error| error.to_string())
                .and_then(|it| number(&it))
            {
                Ok(0) => return Err(format!("container {id} does not run")),
                Ok(pid) => return Ok(pid),
                Err(error) => errors.push(format!("{runtime}: {error}")),
            }
        }
        Err(errors.join("; "))
    }

    fn number(output: &Output) -> Result<u32, String> {
        let text = String::from_utf8_lossy(&output.stdout);
        if let (true, Ok(pid)) = (output.status.success(), text.trim().parse()) {
            return Ok(pid);
        }
        let errors = String::from_utf8_lossy(&output.stderr);
        let line = errors.lines().find(|line| !line.trim().is_empty());
        Err(line.unwrap_or("it does not tell").trim().to_string())
    }

    /// The same as a command of a shell, which prints it.
    pub(crate) fn pid_command(id: &str) -> String {
        let ask = |runtime: &str| {
            format!(
                "{runtime} inspect -f '{{{{.State.Pid}}}}' -- {}",
                quoted(id)
            )
        };
        let all = RUNTIMES.map(|runtime| format!("{} 2>/dev/null", ask(runtime)));
        all.join(" || ")
    }

    /// What starts it again.
    pub(crate) fn start_command(id: &str) -> String {
        RUNTIMES
            .map(|runtime| format!("{runtime} start {}", quoted(id)))
            .join(" || ")
    }
}

//! Servers that may be broken: only those that somebody names.
//!
//! `node2=pid:4711,start:COMMAND`, `pg=pidfile:/path/postmaster.pid,data:/path,start:pg_ctl ...`.
//! A target is the process and its descendants. It is looked for anew for each fault, since it is
//! another process after a restart, and must run the same program.

use super::plan::refused;
use super::process::{Process, Sockets};
use super::undo::{Start, read_pid};
use links::DriveError;
use nix::sys::signal::Signal;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

/// Where the number of a server's process is found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// It is this process; after a restart the one that listens on its ports.
    Process(Process),
    /// It is in the first line of this file.
    PidFile(PathBuf),
}

/// Who starts a server again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Starter {
    /// Nobody: it cannot be killed.
    Nobody,
    /// The shell, by this command.
    Command(String),
    /// Its supervisor, which waits as long as this file exists.
    Supervisor(PathBuf),
}

/// A server that may be broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FaultTarget {
    /// As faults call it.
    pub name: String,
    /// Its process.
    pub place: Place,
    /// Who starts it again.
    pub starter: Starter,
    /// Where its data lie, if that is known.
    pub data: Option<PathBuf>,
    /// The file of its clock, if it was started with one that can be set.
    pub clock: Option<PathBuf>,
    /// What tells it to end in good order.
    pub stop: Signal,
}

impl FaultTarget {
    /// What tells most servers to end in good order.
    pub const STOP: Signal = Signal::SIGTERM;
}

impl FromStr for FaultTarget {
    type Err = DriveError;

    fn from_str(text: &str) -> Result<FaultTarget, DriveError> {
        let shape = || {
            let text = format!(
                "{text:?} is no target: NAME=pid:PID or NAME=pidfile:FILE, then \
                 ,data:FOLDER, ,clock:FILE, ,stop:INT \
                 (PostgreSQL; TERM without it) and, last, ,start:COMMAND if need be"
            );
            refused(text)
        };
        let (name, rest) = text.split_once('=').ok_or_else(shape)?;
        let (rest, command) = match rest.split_once(",start:") {
            Some((rest, command)) => (rest, Some(command)),
            None => (rest, None),
        };
        let mut parts = rest.split(',');
        let place = parts.next().ok_or_else(shape)?;
        let (mut data, mut clock, mut stop) = (None, None, FaultTarget::STOP);
        for part in parts {
            match part.split_once(':').ok_or_else(shape)? {
                ("data", folder) if !folder.is_empty() => data = Some(PathBuf::from(folder)),
                ("clock", file) if !file.is_empty() => clock = Some(PathBuf::from(file)),
                ("stop", "TERM") => stop = Signal::SIGTERM,
                ("stop", "INT") => stop = Signal::SIGINT,
                ("stop", "QUIT") => stop = Signal::SIGQUIT,
                _ => return Err(shape()),
            }
        }
        let is_name = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if name.is_empty() || !name.chars().all(is_name) || command == Some("") {
            return Err(shape());
        }
        let place = match place.split_once(':').ok_or_else(shape)? {
            ("pid", pid) => {
                let pid = pid.parse().map_err(|_| shape())?;
                let process = Process::of(pid);
                Place::Process(process.ok_or_else(|| refused(format!("{name}: no process {pid}")))?)
            }
            ("pidfile", path) if !path.is_empty() => Place::PidFile(PathBuf::from(path)),
            _ => return Err(shape()),
        };
        Ok(FaultTarget {
            name: name.to_string(),
            place,
            starter: command.map_or(Starter::Nobody, |it| Starter::Command(it.to_string())),
            data,
            clock,
            stop,
        })
    }
}

/// A target that has been found.
#[derive(Clone, Debug)]
pub(super) struct Server {
    pub(super) target: FaultTarget,
    pub(super) process: Process,
    program: Option<PathBuf>,
    /// Where it listens.
    pub(super) listening: Vec<SocketAddr>,
}

impl Server {
    /// # Errors
    /// It does not run, or belongs to somebody else.
    pub(super) fn find(target: &FaultTarget) -> Result<Server, DriveError> {
        let name = &target.name;
        let process = match &target.place {
            Place::Process(process) => Some(*process).filter(Process::is_alive),
            Place::PidFile(path) => read_pid(path).and_then(Process::of),
        };
        let process = process.ok_or_else(|| match &target.place {
            Place::Process(process) => {
                refused(format!("{name}: process {} has ended", process.pid))
            }
            Place::PidFile(path) => {
                refused(format!("{name}: no process of {} runs", path.display()))
            }
        })?;
        let own = Process::own();
        if own.is_some_and(|own| process.tree().contains(&own)) {
            let text = format!("{name}: process {} has started this benchmark", process.pid);
            return Err(refused(text));
        }
        Ok(Server {
            target: target.clone(),
            process,
            program: process.program(),
            listening: listening(&process),
        })
    }

    /// Looks for it anew, after its last fault. `restarted` is the process by which it was started.
    ///
    /// # Errors
    /// It does not run, or is another program.
    pub(super) fn refresh(&mut self, restarted: Option<Process>) -> Result<(), String> {
        let name = &self.target.name;
        let by_file = match &self.target.place {
            Place::PidFile(path) => read_pid(path).and_then(Process::of),
            Place::Process(_) => None,
        };
        let alive = Some(self.process).filter(Process::is_alive);
        let found = alive.or(by_file).or(restarted);
        let process = found.ok_or_else(|| format!("{name} does not run"))?;
        if process != self.process && process.program() != self.program {
            return Err(format!(
                "process {} is not {name}: it runs another program",
                process.pid
            ));
        }
        self.process = process;
        self.listening = listening(&process);
        Ok(())
    }

    /// How it is started again.
    pub(super) fn start(&self) -> Option<Start> {
        let (command, hold) = match &self.target.starter {
            Starter::Nobody => return None,
            Starter::Command(command) => (Some(command.clone()), None),
            Starter::Supervisor(hold) => (None, Some(hold.clone())),
        };
        let pid_file = match &self.target.place {
            Place::PidFile(path) => Some(path.clone()),
            Place::Process(_) => None,
        };
        Some(Start {
            command,
            hold,
            before: self.process,
            pid_file,
            listening: self.listening.clone(),
        })
    }
}

/// Where a process and its descendants listen that are in our network, as far as we may see it.
fn listening(process: &Process) -> Vec<SocketAddr> {
    if process.is_in_other_network() {
        return Vec::new();
    }
    let sockets = Sockets::of(&process.tree()).unwrap_or_default();
    sockets.listening.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_read() {
        let own = std::process::id();
        let target: FaultTarget = format!("node2=pid:{own},start:a b, c=d").parse().unwrap();
        assert_eq!(target.place, Place::Process(Process::own().unwrap()));
        assert_eq!(target.starter, Starter::Command("a b, c=d".into()));
        let target: FaultTarget = "pg=pidfile:/a/b,data:/c".parse().unwrap();
        assert_eq!(target.place, Place::PidFile("/a/b".into()));
        assert_eq!(
            (target.starter, target.data),
            (Starter::Nobody, Some("/c".into()))
        );
        for (text, told) in [
            ("node2", "is no target"),
            ("=pid:1", "is no target"),
            ("a,b=pid:1", "is no target"),
            ("a=pid", "is no target"),
            ("a=pid:x", "is no target"),
            ("a=ssh:host", "is no target"),
            ("a=pid:1,start:", "is no target"),
            ("a=pid:1,stop:KILL", "is no target"),
            ("a=pid:1,data:", "is no target"),
            ("a=pid:4194305", "no process 4194305"),
        ] {
            let error = text.parse::<FaultTarget>().unwrap_err().to_string();
            assert!(error.contains(told), "{text}: {error}");
        }
    }

    #[test]
    fn nobody_breaks_the_benchmark_itself() {
        let target: FaultTarget = format!("a=pid:{}", std::process::id()).parse().unwrap();
        let error = Server::find(&target).unwrap_err().to_string();
        assert!(error.contains("has started this benchmark"), "{error}");
    }
}

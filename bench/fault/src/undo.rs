//! How faults are undone: data, so that another process can do it.
//!
//! Each action may be done again, and after a fault that was never put in: then it changes nothing.

use super::clock::Clock;
use super::far::container;
use super::lag::LateQueue;
use super::process::{Process, Sockets, during, reachable};
use super::{group, network};
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use std::io::ErrorKind;
use std::net::{SocketAddr, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// How long a server may take to accept a connection once it listens.
const ACCEPT_MAX: Duration = Duration::from_millis(200);

/// An undone fault must be gone by then.
const UNDO_MAX: Duration = Duration::from_secs(2);
/// A server that was started again must accept connections by then.
const START_MAX: Duration = Duration::from_secs(300);
/// The same once the command that starts it has ended.
const STARTED_MAX: Duration = Duration::from_secs(30);

/// What undoes a part of a fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Undo {
    /// SIGCONT.
    Continue(Vec<Process>),
    /// Removes a table of the packet filter from the network of this process; `None`: from ours.
    Table(String, Option<Process>),
    /// Hands no packets over any more.
    Late(LateQueue),
    /// Moves all processes of a control group to another one, and removes the group.
    Group { group: PathBuf, home: PathBuf },
    /// Removes a file.
    Remove(PathBuf),
    /// Sets a server's clock right, by its file.
    Clock(PathBuf),
    /// Starts a server that has ended.
    Start(Start),
}

/// How a server is started again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Start {
    /// What to tell the shell; `None`: somebody else does it, once `hold` is removed.
    pub(super) command: Option<String>,
    /// Holds up who would start the server at once.
    pub(super) hold: Option<PathBuf>,
    /// The process that ended.
    pub(super) before: Process,
    /// Where the process's number is written.
    pub(super) pid_file: Option<PathBuf>,
    /// The container whose main process it is.
    pub(super) container: Option<String>,
    /// Where it listened.
    pub(super) listening: Vec<SocketAddr>,
}

impl Start {
    /// Starts it unless it runs. Answers the number of the process that this has started.
    fn begin(&self) -> Result<Option<u32>, String> {
        remove(self.hold.as_deref())?;
        let is_over = !self.before.is_alive() && !self.runs(None);
        let Some(command) = self.command.as_ref().filter(|_| is_over) else {
            return Ok(None);
        };
        let mut shell = Command::new("sh");
        // Its own group of processes: a Ctrl-C for the benchmark is none for the server.
        shell.args(["-c", command]).process_group(0);
        shell
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let child = shell.spawn().map_err(|error| during(command, &error))?;
        Ok(Some(child.id()))
    }

    /// The process that runs now, `started` by us or found by its file.
    pub(super) fn process(&self, started: Option<u32>) -> Option<Process> {
        let by_file = || Process::of(read_pid(self.pid_file.as_deref()?)?);
        let by_port = || super::process::listener(self.listening.first()?.port());
        let started = || Process::of(started?);
        let before = self.before.is_alive().then_some(self.before);
        if let Some(id) = &self.container {
            return before.or_else(|| Process::of(container::pid(id).ok()?));
        }
        before.or_else(by_file).or_else(by_port).or_else(started)
    }

    /// Whether it listens where it did; one that listened nowhere: whether it runs.
    fn runs(&self, started: Option<u32>) -> bool {
        if self.container.is_some() {
            return self.listens_inside();
        }
        match self.listening.is_empty() {
            true => self.process(started).is_some(),
            false => self.listening.iter().all(|address| {
                TcpStream::connect_timeout(&reachable(*address), ACCEPT_MAX).is_ok()
            }),
        }
    }

    /// Whether it listens on its ports in its own network, which may not be ours.
    fn listens_inside(&self) -> bool {
        let ports = |process: &Process| {
            let sockets = Sockets::of(&process.tree()).ok()?;
            Some(sockets.listening.iter().map(SocketAddr::port).collect())
        };
        let found: Option<Vec<u16>> = self.process(None).as_ref().and_then(ports);
        found.is_some_and(|found| {
            let mut wanted = self.listening.iter();
            wanted.all(|address| found.contains(&address.port()))
        })
    }
}

/// The number in the first line of a file.
pub(super) fn read_pid(path: &Path) -> Option<u32> {
    let text = std::fs::read_to_string(path).ok()?;
    text.lines().next()?.trim().parse().ok()
}

fn remove(path: Option<&Path>) -> Result<(), String> {
    match path.map(std::fs::remove_file) {
        Some(Err(error)) if error.kind() != ErrorKind::NotFound => {
            Err(during("removing a file", &error))
        }
        _ => Ok(()),
    }
}

impl Undo {
    /// Does it. Answers the number of the process that it has started.
    pub(super) fn act(&self) -> Result<Option<u32>, String> {
        match self {
            Undo::Continue(processes) => {
                for process in processes {
                    let sent = process.signal(Signal::SIGCONT);
                    sent.map_err(|error| during("SIGCONT", &error))?;
                }
            }
            Undo::Table(name, of) => network::remove(name, of.as_ref())?,
            Undo::Late(queue) => queue.remove()?,
            Undo::Group { group, home } => group::leave(group, home)?,
            Undo::Remove(path) => remove(Some(path))?,
            // A server that was started anew has another file.
            Undo::Clock(path) if !path.exists() => {}
            Undo::Clock(path) => Clock::open(path)?.set(0)?,
            Undo::Start(start) => return start.begin(),
        }
        Ok(None)
    }

    /// Whether it has worked.
    pub(super) fn is_done(&self, started: Option<u32>) -> bool {
        match self {
            Undo::Continue(processes) => !processes.iter().any(Process::is_stopped),
            Undo::Table(name, of) => !network::exists(name, of.as_ref()),
            Undo::Late(queue) => !queue.exists(),
            Undo::Group { group, .. } => !group.exists(),
            Undo::Remove(path) => !path.exists(),
            Undo::Clock(path) if !path.exists() => true,
            Undo::Clock(path) => Clock::open(path).and_then(|it| it.offset_ms()) == Ok(0),
            Undo::Start(start) => start.runs(started),
        }
    }

    /// Whether it takes as long as the server takes to start.
    pub(super) fn takes_a_start(&self) -> bool {
        matches!(self, Undo::Start(_))
    }

    /// By when it must have worked. A command that has ended leaves a server that listens soon.
    pub(super) fn limit(&self, started: Option<u32>) -> Duration {
        let has_ended = started.is_some_and(|pid| Process::of(pid).is_none());
        match self {
            Undo::Start(_) if has_ended => STARTED_MAX,
            Undo::Start(_) => START_MAX,
            _ => UNDO_MAX,
        }
    }

    pub(super) fn to_json(&self) -> Value {
        match self {
            Undo::Continue(all) => {
                json!({ "continue": all.iter().map(process_json).collect::<Vec<_>>() })
            }
            Undo::Table(name, of) => json!({ "table": name, "of": of.as_ref().map(process_json) }),
            Undo::Late(queue) => {
                json!({ "late": queue.number, "of": queue.of.as_ref().map(process_json) })
            }
            Undo::Group { group, home } => json!({ "group": group, "home": home }),
            Undo::Remove(path) => json!({ "remove": path }),
            Undo::Clock(path) => json!({ "clock": path }),
            Undo::Start(start) => json!({
                "start": start.command,
                "hold": start.hold,
                "before": process_json(&start.before),
                "pid_file": start.pid_file,
                "container": start.container,
                "listening": start.listening.iter().map(ToString::to_string).collect::<Vec<_>>(),
            }),
        }
    }

    pub(super) fn from_json(value: &Value) -> Option<Undo> {
        let path = |name: &str| value[name].as_str().map(PathBuf::from);
        if let Some(all) = value["continue"].as_array() {
            let all: Option<Vec<Process>> = all.iter().map(process_of).collect();
            return all.map(Undo::Continue);
        }
        if let Some(name) = value["table"].as_str() {
            return Some(Undo::Table(name.to_string(), process_of(&value["of"])));
        }
        if let Some(number) = value["late"].as_u64() {
            return Some(Undo::Late(LateQueue {
                number: number.try_into().ok()?,
                of: process_of(&value["of"]),
            }));
        }
        if let (Some(group), Some(home)) = (path("group"), path("home")) {
            return Some(Undo::Group { group, home });
        }
        if let Some(path) = path("remove") {
            return Some(Undo::Remove(path));
        }
        if let Some(path) = path("clock") {
            return Some(Undo::Clock(path));
        }
        let listening = value["listening"].as_array()?.iter();
        let listening = listening.map(|address| address.as_str()?.parse().ok());
        Some(Undo::Start(Start {
            command: value["start"].as_str().map(String::from),
            hold: path("hold"),
            before: process_of(&value["before"])?,
            pid_file: path("pid_file"),
            container: value["container"].as_str().map(String::from),
            listening: listening.collect::<Option<_>>()?,
        }))
    }
}

fn process_json(process: &Process) -> Value {
    json!([process.pid, process.start_ticks])
}

pub(super) fn process_of(value: &Value) -> Option<Process> {
    let pid = value[0].as_u64()?.try_into().ok()?;
    Some(Process {
        pid,
        start_ticks: value[1].as_u64()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn actions_are_read_as_they_were_written() {
        let process = Process {
            pid: 7,
            start_ticks: 9,
        };
        let start = Start {
            command: Some("exec true".into()),
            hold: None,
            before: process,
            pid_file: Some("/a/pid".into()),
            container: None,
            listening: vec!["127.0.0.1:5".parse().unwrap(), "[::1]:6".parse().unwrap()],
        };
        let held = Start {
            command: None,
            hold: Some("/a/held".into()),
            container: Some("db".into()),
            ..start.clone()
        };
        for undo in [
            Undo::Continue(vec![process]),
            Undo::Table("name".into(), None),
            Undo::Table("name".into(), Some(process)),
            Undo::Late(LateQueue {
                number: 7,
                of: Some(process),
            }),
            Undo::Group {
                group: "/a".into(),
                home: "/b".into(),
            },
            Undo::Remove("/a".into()),
            Undo::Clock("/a".into()),
            Undo::Start(start),
            Undo::Start(held),
        ] {
            let text = undo.to_json().to_string();
            let read: Value = serde_json::from_str(&text).unwrap();
            assert_eq!(Undo::from_json(&read), Some(undo), "{text}");
        }
        assert_eq!(Undo::from_json(&json!({ "else": 1 })), None);
    }
}

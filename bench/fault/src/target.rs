//! Servers that may be broken: only those that somebody names.
//!
//! `node2=pid:4711,start:COMMAND`, `pg=pidfile:/path/postmaster.pid,data:/path,start:pg_ctl ...`,
//! `pg=container:db`, `pg=ssh:me@host,pidfile:/path/postmaster.pid`.
//! A target is the process and its descendants. It is looked for anew for each fault, since it is
//! another process after a restart, and must run the same program.

use super::far::{Host, container, quoted};
use super::plan::refused;
use super::process::{Process, Sockets, listener};
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
    /// It is the main process of this container.
    Container(String),
    /// On another machine.
    Far(FarPlace),
}

/// A server of another machine, which is found there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FarPlace {
    /// The machine.
    pub host: Host,
    /// The program `trellis` there.
    pub program: String,
    /// The target as that machine reads it, without its name.
    pub text: String,
    /// Shell commands that set `p` to the number of its process.
    find: String,
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

    /// Its machine; `None`: this one.
    pub fn host(&self) -> Option<&Host> {
        self.far().map(|far| &far.host)
    }

    pub(super) fn far(&self) -> Option<&FarPlace> {
        match &self.place {
            Place::Far(far) => Some(far),
            Place::Process(_) | Place::PidFile(_) | Place::Container(_) => None,
        }
    }

    /// Shell commands that find it on another machine: they set `p`.
    pub(super) fn find_far(&self) -> String {
        self.far().map_or(String::new(), |far| far.find.clone())
    }

    /// Its process on this machine, as it is named.
    ///
    /// # Errors
    /// It does not run.
    fn process(&self) -> Result<Process, String> {
        match &self.place {
            Place::Process(process) => Some(*process)
                .filter(Process::is_alive)
                .ok_or_else(|| format!("process {} has ended", process.pid)),
            Place::PidFile(path) => read_pid(path)
                .and_then(Process::of)
                .ok_or_else(|| format!("no process of {} runs", path.display())),
            Place::Container(id) => {
                let pid = container::pid(id)?;
                Process::of(pid).ok_or_else(|| format!("process {pid} of {id} has ended"))
            }
            Place::Far(far) => Err(format!("it is on {}", far.host)),
        }
    }
}

/// The parts of a target behind its name.
struct Parts {
    place: Named,
    data: Option<PathBuf>,
    clock: Option<PathBuf>,
    stop: Signal,
    /// Holds up who would start it again at once.
    hold: Option<PathBuf>,
    /// The program `trellis` of another machine.
    program: Option<String>,
    command: Option<String>,
}

/// How a process is named.
enum Named {
    Pid(u32),
    PidFile(PathBuf),
    Container(String),
}

impl Parts {
    fn read(text: &str) -> Option<Parts> {
        let (rest, command) = match text.split_once(",start:") {
            Some((rest, command)) => (rest, Some(command)),
            None => (text, None),
        };
        let mut parts = rest.split(',');
        let is_name = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        let place = match parts.next()?.split_once(':')? {
            ("pid", pid) => Named::Pid(pid.parse().ok()?),
            ("pidfile", path) if !path.is_empty() => Named::PidFile(PathBuf::from(path)),
            ("container", id) if !id.is_empty() && !id.starts_with('-') => id
                .chars()
                .all(is_name)
                .then(|| Named::Container(id.to_string()))?,
            _ => return None,
        };
        let mut found = Parts {
            place,
            data: None,
            clock: None,
            stop: FaultTarget::STOP,
            hold: None,
            program: None,
            command: command.map(String::from),
        };
        for part in parts {
            match part.split_once(':')? {
                (_, "") => return None,
                ("data", folder) => found.data = Some(PathBuf::from(folder)),
                ("clock", file) => found.clock = Some(PathBuf::from(file)),
                ("hold", file) => found.hold = Some(PathBuf::from(file)),
                ("stop", "TERM") => found.stop = Signal::SIGTERM,
                ("stop", "INT") => found.stop = Signal::SIGINT,
                ("stop", "QUIT") => found.stop = Signal::SIGQUIT,
                ("trellis", program) => found.program = Some(program.to_string()),
                _ => return None,
            }
        }
        // Either we start it, or somebody else does.
        let has_one = found.hold.is_none() || found.command.is_none();
        (has_one && found.command.as_deref() != Some("")).then_some(found)
    }

    /// The target as text again, without what concerns the way to its machine.
    fn text(&self) -> String {
        let mut out = match &self.place {
            Named::Pid(pid) => format!("pid:{pid}"),
            Named::PidFile(path) => format!("pidfile:{}", path.display()),
            Named::Container(id) => format!("container:{id}"),
        };
        let paths = [
            ("data", &self.data),
            ("clock", &self.clock),
            ("hold", &self.hold),
        ];
        for (name, path) in paths {
            if let Some(path) = path {
                out += &format!(",{name}:{}", path.display());
            }
        }
        out += match self.stop {
            Signal::SIGINT => ",stop:INT",
            Signal::SIGQUIT => ",stop:QUIT",
            _ => "",
        };
        if let Some(command) = &self.command {
            out += &format!(",start:{command}");
        }
        out
    }

    fn find(&self) -> String {
        match &self.place {
            Named::Pid(pid) => format!("p={pid}"),
            Named::PidFile(path) => {
                let path = quoted(&path.display().to_string());
                format!("p=; {{ read -r p < {path}; }} 2>/dev/null")
            }
            // Asking takes much longer than looking.
            Named::Container(id) => {
                let ask = container::pid_command(id);
                format!("[ -n \"$p\" ] && [ -r \"/proc/$p/stat\" ] || p=$({ask})")
            }
        }
    }

    /// Where a server of this machine is, and who starts it again.
    fn here(self, name: &str) -> Result<(Place, Starter), DriveError> {
        let starter = match (self.command, self.hold, &self.place) {
            (Some(command), _, _) => Starter::Command(command),
            (None, Some(hold), _) => Starter::Supervisor(hold),
            (None, None, Named::Container(id)) => Starter::Command(container::start_command(id)),
            (None, None, _) => Starter::Nobody,
        };
        let place = match self.place {
            Named::Pid(pid) => {
                let process = Process::of(pid);
                Place::Process(process.ok_or_else(|| refused(format!("{name}: no process {pid}")))?)
            }
            Named::PidFile(path) => Place::PidFile(path),
            Named::Container(id) => Place::Container(id),
        };
        Ok((place, starter))
    }
}

impl FromStr for FaultTarget {
    type Err = DriveError;

    fn from_str(text: &str) -> Result<FaultTarget, DriveError> {
        let shape = || {
            let text = format!(
                "{text:?} is no target: NAME=pid:PID, NAME=pidfile:FILE or NAME=container:ID, with \
                 ssh:[USER@]HOST[:PORT], before it for another machine, then ,data:FOLDER, \
                 ,clock:FILE, ,stop:INT (PostgreSQL; TERM without it), ,trellis:PROGRAM (where it \
                 lies there), ,hold:FILE (keeps a supervisor from starting it) and, last, \
                 ,start:COMMAND if need be"
            );
            refused(text)
        };
        let (name, rest) = text.split_once('=').ok_or_else(shape)?;
        let is_name = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if name.is_empty() || !name.chars().all(is_name) {
            return Err(shape());
        }
        let far = rest.strip_prefix("ssh:");
        let (host, rest) = match far.map(|far| far.split_once(',')) {
            Some(None) => return Err(shape()),
            Some(Some((host, rest))) => {
                let host: Result<Host, String> = host.parse();
                let host = host.map_err(|error| refused(format!("{name}: {error}")))?;
                (Some(host), rest)
            }
            None => (None, rest),
        };
        let parts = Parts::read(rest).ok_or_else(shape)?;
        if parts.program.is_some() && host.is_none() {
            return Err(refused(format!("{name}: trellis:PROGRAM is for ssh:HOST")));
        }
        let (data, clock, stop) = (parts.data.clone(), parts.clock.clone(), parts.stop);
        let (place, starter) = match host {
            None => parts.here(name)?,
            Some(host) => {
                let far = FarPlace {
                    host,
                    program: parts.program.clone().unwrap_or_else(|| "trellis".into()),
                    text: parts.text(),
                    find: parts.find(),
                };
                (Place::Far(far), Starter::Nobody)
            }
        };
        Ok(FaultTarget {
            name: name.to_string(),
            place,
            starter,
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
        let process = target.process();
        let process = process.map_err(|error| refused(format!("{name}: {error}")))?;
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
        let alive = Some(self.process).filter(Process::is_alive);
        let by_name = || match self.target.place {
            Place::Process(_) => None,
            _ => self.target.process().ok(),
        };
        let found = alive.or_else(by_name).or(restarted);
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

    /// Looks whether it runs, maybe as another process; `None`: it does not.
    pub(super) fn seek(&mut self) -> Option<()> {
        if self.process.is_alive() {
            return Some(());
        }
        let by_port = || listener(self.listening.first()?.port());
        self.process = self.target.process().ok().or_else(by_port)?;
        Some(())
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
            _ => None,
        };
        let container = match &self.target.place {
            Place::Container(id) => Some(id.clone()),
            _ => None,
        };
        Some(Start {
            command,
            hold,
            before: self.process,
            pid_file,
            listening: match container {
                Some(_) => listening_inside(&self.process),
                None => self.listening.clone(),
            },
            container,
        })
    }
}

/// Where a process and its descendants listen that are in our network, as far as we may see it.
fn listening(process: &Process) -> Vec<SocketAddr> {
    if process.is_in_other_network() {
        return Vec::new();
    }
    listening_inside(process)
}

/// The same in its own network, whether or not that is ours.
fn listening_inside(process: &Process) -> Vec<SocketAddr> {
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
        let target: FaultTarget =
            "a=ssh:me@host:22,pidfile:/a/b,trellis:/t,clock:/c,stop:INT,start:x y,z"
                .parse()
                .unwrap();
        let far = target.far().unwrap();
        assert_eq!(
            (far.host.to_string().as_str(), far.program.as_str()),
            ("me@host:22", "/t")
        );
        assert_eq!(far.text, "pidfile:/a/b,clock:/c,stop:INT,start:x y,z");
        let target: FaultTarget = "a=container:db-1".parse().unwrap();
        assert_eq!(target.place, Place::Container("db-1".into()));
        let start = "docker start 'db-1' || podman start 'db-1'".to_string();
        assert_eq!(target.starter, Starter::Command(start));
        for (text, told) in [
            ("node2", "is no target"),
            ("=pid:1", "is no target"),
            ("a,b=pid:1", "is no target"),
            ("a=pid", "is no target"),
            ("a=pid:x", "is no target"),
            ("a=ssh:host", "is no target"),
            ("a=ssh:host:x,pid:1", "\"host:x\" is no [USER@]HOST"),
            ("a=ssh:-oX,pid:1", "\"-oX\" is no"),
            ("a=ssh:u@-oX,pid:1", "\"u@-oX\" is no"),
            ("a=ssh:host,pid:x", "is no target"),
            ("a=pid:1,trellis:/a", "is for ssh:HOST"),
            ("a=container:", "is no target"),
            ("a=container:-f", "is no target"),
            ("a=container:a;b", "is no target"),
            ("a=pid:1,start:", "is no target"),
            ("a=pid:1,hold:/a,start:b", "is no target"),
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

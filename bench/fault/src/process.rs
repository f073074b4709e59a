//! Processes of this machine by what `/proc` tells: who they are, their children, their sockets.
//!
//! A process number is used again after the end of a process. So a process is known by its number
//! and the time at which it started, which is compared before each signal.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::collections::BTreeSet;
use std::io::{Error, ErrorKind, Result};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;

/// A process, which may have ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// When it started, in clock ticks since the system did.
    pub start_ticks: u64,
}

/// What `/proc/<pid>/stat` says.
struct Stat {
    state: char,
    parent: u32,
    start_ticks: u64,
}

fn stat(pid: u32) -> Option<Stat> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may hold anything.
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    Some(Stat {
        state: fields.first()?.chars().next()?,
        parent: fields.get(1)?.parse().ok()?,
        start_ticks: fields.get(19)?.parse().ok()?,
    })
}

impl Process {
    /// The process that has this number now, if it has not ended.
    pub fn of(pid: u32) -> Option<Process> {
        let stat = stat(pid).filter(|stat| !is_over(stat.state))?;
        let start_ticks = stat.start_ticks;
        Some(Process { pid, start_ticks })
    }

    /// This very process.
    pub fn own() -> Option<Process> {
        Process::of(std::process::id())
    }

    /// One letter; `None`: it has ended, whether or not its parent has asked for it.
    fn state(&self) -> Option<char> {
        let stat = stat(self.pid).filter(|stat| stat.start_ticks == self.start_ticks)?;
        (!is_over(stat.state)).then_some(stat.state)
    }

    /// Whether it has not ended.
    pub fn is_alive(&self) -> bool {
        self.state().is_some()
    }

    /// Whether a signal has stopped it.
    pub(super) fn is_stopped(&self) -> bool {
        matches!(self.state(), Some('T' | 't'))
    }

    /// Sends a signal; nothing to one that has ended.
    ///
    /// # Errors
    /// It belongs to somebody else.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        if !self.is_alive() {
            return Ok(());
        }
        match kill(Pid::from_raw(self.pid as i32), signal) {
            Err(nix::errno::Errno::ESRCH) => Ok(()),
            sent => Ok(sent?),
        }
    }

    /// The process that has started it, or that has taken it over.
    pub fn parent(&self) -> Option<Process> {
        Process::of(stat(self.pid)?.parent)
    }

    /// The words of the command that it was started by.
    pub fn command_line(&self) -> Option<Vec<String>> {
        let text = std::fs::read(format!("/proc/{}/cmdline", self.pid)).ok()?;
        let words = text.strip_suffix(&[0])?.split(|byte| *byte == 0);
        words
            .map(|word| String::from_utf8(word.to_vec()).ok())
            .collect()
    }

    /// A variable of the environment that it was started with.
    pub fn variable(&self, name: &str) -> Option<String> {
        let text = std::fs::read(format!("/proc/{}/environ", self.pid)).ok()?;
        let mut words = text.split(|byte| *byte == 0);
        words.find_map(|word| {
            let value = std::str::from_utf8(word).ok()?.strip_prefix(name)?;
            value.strip_prefix('=').map(String::from)
        })
    }

    /// Its working folder.
    pub fn folder(&self) -> Option<PathBuf> {
        std::fs::read_link(format!("/proc/{}/cwd", self.pid)).ok()
    }

    /// The program that it runs.
    pub fn program(&self) -> Option<PathBuf> {
        std::fs::read_link(format!("/proc/{}/exe", self.pid)).ok()
    }

    /// It and all its descendants, parents first.
    pub fn tree(&self) -> Vec<Process> {
        let mut all: Vec<(Process, u32)> = Vec::new();
        for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
            let pid = entry
                .file_name()
                .to_str()
                .and_then(|name| name.parse().ok());
            let Some(pid) = pid else { continue };
            if let Some(stat) = stat(pid).filter(|stat| !is_over(stat.state)) {
                let start_ticks = stat.start_ticks;
                all.push((Process { pid, start_ticks }, stat.parent));
            }
        }
        let mut tree: Vec<Process> = self.is_alive().then_some(*self).into_iter().collect();
        let mut at = 0;
        while at < tree.len() {
            let parent = tree[at].pid;
            let children = all
                .iter()
                .filter(|(child, of)| *of == parent && !tree.contains(child));
            let children: Vec<Process> = children.map(|(child, _)| *child).collect();
            tree.extend(children);
            at += 1;
        }
        tree
    }

    /// The same, by what each process tells of its children: cheaper than looking at all processes
    /// of the system, and not kept by every system.
    pub(super) fn tree_by_children(&self) -> Vec<Process> {
        let own = format!("/proc/self/task/{}/children", std::process::id());
        if std::fs::metadata(own).is_err() {
            return self.tree();
        }
        let mut tree: Vec<Process> = self.is_alive().then_some(*self).into_iter().collect();
        let mut at = 0;
        while at < tree.len() {
            let tasks = std::fs::read_dir(format!("/proc/{}/task", tree[at].pid));
            for task in tasks.into_iter().flatten().flatten() {
                let text = std::fs::read_to_string(task.path().join("children"));
                let text = text.unwrap_or_default();
                let children = text.split_whitespace().filter_map(|pid| pid.parse().ok());
                tree.extend(children.filter_map(Process::of));
            }
            at += 1;
        }
        tree
    }

    /// Numbers of its sockets; none if it has ended.
    fn sockets(&self) -> Result<BTreeSet<u64>> {
        let files = match std::fs::read_dir(format!("/proc/{}/fd", self.pid)) {
            Err(error) if has_ended(&error) => return Ok(BTreeSet::new()),
            files => files?,
        };
        let names = files
            .flatten()
            .filter_map(|file| std::fs::read_link(file.path()).ok());
        let sockets = names.filter_map(|name| {
            let inode = name.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?;
            inode.parse::<u64>().ok()
        });
        Ok(sockets.collect())
    }

    /// Whether its network is another one than ours.
    pub(super) fn is_in_other_network(&self) -> bool {
        let network = |who: &str| std::fs::read_link(format!("/proc/{who}/ns/net")).ok();
        network(&self.pid.to_string()) != network("self")
    }
}

/// Whether what was asked of a process failed because it has ended.
fn has_ended(error: &Error) -> bool {
    let number = nix::errno::Errno::ESRCH as i32;
    error.kind() == ErrorKind::NotFound || error.raw_os_error() == Some(number)
}

fn is_over(state: char) -> bool {
    matches!(state, 'Z' | 'X' | 'x')
}

/// TCP sockets of processes that have the same network.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Sockets {
    /// Where they listen.
    pub(super) listening: BTreeSet<SocketAddr>,
    /// Own port and the other's port of connections whose own port is none of those.
    pub(super) outgoing: BTreeSet<(u16, u16)>,
}

/// States of `/proc/net/tcp`: established, being connected, listening.
const ESTABLISHED: &str = "01";
const CONNECTING: &str = "02";
const LISTENING: &str = "0A";

impl Sockets {
    /// # Errors
    /// They belong to somebody else.
    pub(super) fn of(processes: &[Process]) -> Result<Sockets> {
        let mut own = BTreeSet::new();
        for process in processes {
            own.extend(process.sockets()?);
        }
        let mut found = Sockets::default();
        let mut connected = BTreeSet::new();
        let Some(first) = processes.first() else {
            return Ok(found);
        };
        for table in ["tcp", "tcp6"] {
            let text = std::fs::read_to_string(format!("/proc/{}/net/{table}", first.pid));
            for line in text.unwrap_or_default().lines().skip(1) {
                let Some((local, remote, state, inode)) = socket(line) else {
                    continue;
                };
                if !own.contains(&inode) {
                    continue;
                }
                match state {
                    LISTENING => drop(found.listening.insert(local)),
                    ESTABLISHED | CONNECTING => {
                        connected.insert((local.port(), remote.port()));
                    }
                    _ => {}
                }
            }
        }
        let ports: BTreeSet<u16> = found.listening.iter().map(SocketAddr::port).collect();
        connected.retain(|(port, _)| !ports.contains(port));
        found.outgoing = connected;
        Ok(found)
    }
}

/// A line of `/proc/net/tcp`: own address, the other's, state, number of the socket.
fn socket(line: &str) -> Option<(SocketAddr, SocketAddr, &str, u64)> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let inode = fields.get(9)?.parse().ok()?;
    Some((
        address(fields.get(1)?)?,
        address(fields.get(2)?)?,
        fields.get(3)?,
        inode,
    ))
}

/// An address as words of 32 bits in the order of the machine, and a port.
fn address(text: &str) -> Option<SocketAddr> {
    let (ip, port) = text.split_once(':')?;
    let mut bytes = Vec::new();
    for at in (0..ip.len()).step_by(8) {
        let word = u32::from_str_radix(ip.get(at..at + 8)?, 16).ok()?;
        bytes.extend_from_slice(&word.to_le_bytes());
    }
    let ip = match bytes.len() {
        4 => IpAddr::from(Ipv4Addr::from(<[u8; 4]>::try_from(bytes).ok()?)),
        _ => IpAddr::from(Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?)),
    };
    Some(SocketAddr::new(ip, u16::from_str_radix(port, 16).ok()?))
}

/// Where a client on this machine reaches who listens there.
pub(super) fn reachable(listening: SocketAddr) -> SocketAddr {
    let ip = match listening.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::from(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::from(Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    SocketAddr::new(ip, listening.port())
}

/// Who listens on a port of our network.
pub(super) fn listener(port: u16) -> Option<Process> {
    let mut wanted = BTreeSet::new();
    for table in ["tcp", "tcp6"] {
        let text = std::fs::read_to_string(format!("/proc/self/net/{table}"));
        let text = text.unwrap_or_default();
        let sockets = text.lines().skip(1).filter_map(socket);
        let listening =
            sockets.filter(|(local, _, state, _)| *state == LISTENING && local.port() == port);
        wanted.extend(listening.map(|(_, _, _, inode)| inode));
    }
    let entries = std::fs::read_dir("/proc").ok()?.flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let found = pids.filter_map(|pid| {
        let process = Process::of(pid)?;
        let own = process.sockets().ok()?;
        (!own.is_disjoint(&wanted)).then_some(process)
    });
    // Children that have the socket as well are younger.
    found.min_by_key(|process| process.start_ticks)
}

/// An error with what was being done.
pub(super) fn during(doing: &str, error: &Error) -> String {
    format!("{doing}: {error}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn a_process_is_known_by_its_start() {
        let own = Process::own().unwrap();
        assert!(own.is_alive() && !own.is_stopped() && !own.is_in_other_network());
        let other = Process {
            start_ticks: own.start_ticks + 1,
            ..own
        };
        assert!(!other.is_alive());
        // Not sent: the number belongs to somebody else.
        other.signal(Signal::SIGKILL).unwrap();
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let process = Process::of(child.id()).unwrap();
        assert!(own.tree().contains(&process));
        child.kill().unwrap();
        // Not asked for yet, and over all the same.
        while process.is_alive() {
            std::thread::yield_now();
        }
        child.wait().unwrap();
    }

    #[test]
    fn sockets_are_found_by_their_process() {
        let listener_socket = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener_socket.local_addr().unwrap();
        let near = TcpStream::connect(address).unwrap();
        let own = Process::own().unwrap();
        let sockets = Sockets::of(&[own]).unwrap();
        assert!(sockets.listening.contains(&address), "{sockets:?}");
        let pair = (near.local_addr().unwrap().port(), address.port());
        assert!(sockets.outgoing.contains(&pair), "{sockets:?}");
        assert_eq!(listener(address.port()), Some(own));
    }
}

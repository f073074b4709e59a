//! Packets of a server that are dropped or marked, by a table of the system's packet filter.
//!
//! The server is known by the ports that it listens on, and its own connections to others by both
//! of their ports. Connections that it makes while the fault lasts are added as they are seen. A
//! packet that it sends on this machine is met where it arrives, as if it had been on the way.

use super::plan::Ways;
use super::process::{Process, Sockets, during};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::Write as _;
use std::process::{Command, Stdio};

/// What becomes of a server's packets.
#[derive(Clone, Copy, Debug)]
pub(super) enum Deed {
    /// So many percent of those of TCP are dropped.
    Drop(Ways, f64),
    /// All of TCP and UDP get this mark.
    Mark(u32),
}

/// A table that is to be added.
#[derive(Clone, Debug)]
pub(super) struct Table {
    pub(super) name: String,
    /// Whose network; `None`: ours.
    pub(super) of: Option<Process>,
    deed: Deed,
    ports: BTreeSet<u16>,
    pairs: BTreeSet<(u16, u16)>,
}

/// A command in the network of a process.
pub(super) fn inside(process: &Process, tool: &str) -> Command {
    let mut command = Command::new("nsenter");
    command.args(["-n", "-t", &process.pid.to_string(), tool]);
    command
}

/// Runs the packet filter's tool with these lines as input.
fn nft(of: Option<&Process>, arguments: &[&str], input: &str) -> Result<String, String> {
    let mut command = match of {
        None => Command::new("nft"),
        Some(process) => inside(process, "nft"),
    };
    command.args(arguments);
    run("nft", command, input)
}

/// Runs a command with this input. Answers its output.
///
/// # Errors
/// Its first line of errors.
pub(super) fn run(name: &str, mut command: Command, input: &str) -> Result<String, String> {
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| during(name, &error))?;
    if let Some(mut stdin) = child.stdin.take() {
        // One that ended early says why below.
        let _ = stdin.write_all(input.as_bytes());
    }
    let output = child
        .wait_with_output()
        .map_err(|error| during(name, &error))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => {
            let text = String::from_utf8_lossy(&output.stderr);
            Err(format!(
                "{name}: {}",
                text.lines().next().unwrap_or("failed")
            ))
        }
    }
}

impl Table {
    pub(super) fn plan(name: String, process: &Process, deed: Deed) -> Result<Table, String> {
        let sockets = sockets(process)?;
        let ports: BTreeSet<u16> = sockets
            .listening
            .iter()
            .map(|address| address.port())
            .collect();
        if ports.is_empty() {
            return Err(format!(
                "a TCP port that process {} listens on",
                process.pid
            ));
        }
        Ok(Table {
            name,
            of: process.is_in_other_network().then_some(*process),
            deed,
            ports,
            pairs: sockets.outgoing,
        })
    }

    fn script(&self) -> String {
        let list = |items: Vec<String>| match items.is_empty() {
            true => String::new(),
            false => format!("elements = {{ {} }};", items.join(", ")),
        };
        let ports = list(self.ports.iter().map(u16::to_string).collect());
        let pairs = self
            .pairs
            .iter()
            .map(|(own, other)| format!("{own} . {other}"));
        let pairs = list(pairs.collect());
        let (ways, act) = match self.deed {
            Deed::Drop(ways, percent) if percent >= 100.0 => (ways, "counter drop".to_string()),
            Deed::Drop(ways, percent) => {
                let of_10_000 = (percent * 100.0).round();
                let share = format!("numgen random mod 10000 < {of_10_000} counter drop");
                (ways, share)
            }
            Deed::Mark(mark) => (Ways::Both, format!("counter meta mark set {mark:#x}")),
        };
        let (guard, head) = match self.deed {
            Deed::Drop(..) => ("", "tcp"),
            Deed::Mark(_) => ("meta l4proto { tcp, udp } ", "th"),
        };
        // Packets whose ports these are.
        let rule = |out: &mut String, at: &str, own: &str, other: &str| {
            let start = format!("{guard}{at}{head} {own}");
            let _ = writeln!(
                out,
                "{start} @ports {act}\n{start} . {head} {other} @pairs {act}"
            );
        };
        let mut out = format!(
            "table inet {} {{\n\
             set ports {{ type inet_service; {ports} }}\n\
             set pairs {{ type inet_service . inet_service; {pairs} }}\n\
             chain arriving {{ type filter hook input priority -300;\n",
            self.name
        );
        if ways != Ways::Out {
            rule(&mut out, "", "dport", "sport");
        }
        if ways != Ways::In {
            rule(&mut out, "iif \"lo\" ", "sport", "dport");
        }
        out.push_str("}\nchain leaving { type filter hook output priority -300;\n");
        if ways != Ways::In {
            rule(&mut out, "oif != \"lo\" ", "sport", "dport");
        }
        out.push_str("}\n}\n");
        out
    }

    /// Whether the system would take it.
    pub(super) fn try_it(&self) -> Result<(), String> {
        nft(self.of.as_ref(), &["-c", "-f", "-"], &self.script()).map(drop)
    }

    pub(super) fn add(&self) -> Result<(), String> {
        nft(self.of.as_ref(), &["-f", "-"], &self.script()).map(drop)
    }

    /// Adds connections that were made since.
    pub(super) fn refresh(&mut self, process: &Process) -> Result<(), String> {
        let found = sockets(process)?.outgoing;
        let new: Vec<(u16, u16)> = found.difference(&self.pairs).copied().collect();
        if new.is_empty() {
            return Ok(());
        }
        let pairs: Vec<String> = new
            .iter()
            .map(|(own, other)| format!("{own} . {other}"))
            .collect();
        let line = format!(
            "add element inet {} pairs {{ {} }}\n",
            self.name,
            pairs.join(", ")
        );
        nft(self.of.as_ref(), &["-f", "-"], &line)?;
        self.pairs.extend(new);
        Ok(())
    }

    /// Packets that it has met so far.
    pub(super) fn met(&self) -> Result<u64, String> {
        let text = nft(self.of.as_ref(), &["list", "table", "inet", &self.name], "")?;
        let counts = text.split("counter packets ").skip(1);
        let counts = counts.filter_map(|rest| rest.split(' ').next()?.parse::<u64>().ok());
        Ok(counts.sum())
    }
}

fn sockets(process: &Process) -> Result<Sockets, String> {
    let found = Sockets::of(&process.tree());
    found.map_err(|error| {
        format!(
            "the right to see the sockets of process {}: {error}",
            process.pid
        )
    })
}

/// Removes a table, if it is there.
pub(super) fn remove(name: &str, of: Option<&Process>) -> Result<(), String> {
    // The network of a process that has ended has gone with it, or its packets have nobody.
    if of.is_some_and(|process| !process.is_alive()) || !exists(name, of) {
        return Ok(());
    }
    nft(of, &["delete", "table", "inet", name], "").map(drop)
}

pub(super) fn exists(name: &str, of: Option<&Process>) -> bool {
    nft(of, &["list", "table", "inet", name], "").is_ok()
}

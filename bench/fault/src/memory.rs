//! Proves that a group has no more memory than its limit: a process of ours joins it, asks for that
//! much, and is held up. A server that needs no more would prove nothing.

use super::group::Group;
use super::kind::Look;
use super::process::during;
use std::io::Write;
use std::process::{Child, Command, Stdio};

/// The share of the memory that the machine has available which a limit may be: as much is asked
/// for, and must not bring others down if the limit does not hold.
const SHARE: u64 = 2;

/// Whether a limit is small enough to be proven.
///
/// # Errors
/// How large it may be.
pub(super) fn check(limit_bytes: u64) -> Result<(), String> {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"));
    let available = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    let most = available.unwrap_or(0) / SHARE;
    match limit_bytes >> 10 <= most {
        true => Ok(()),
        false => Err(format!(
            "a limit of at most {most}kB: half of what the machine has available"
        )),
    }
}

/// A group that has no more memory than its limit.
pub(super) struct Short {
    group: Group,
    bytes: u64,
    asker: Asker,
    /// How often the limit was reached before the server was alone; `None`: never yet.
    held: Option<u64>,
    /// Whether the server has reached it since.
    is_server_held: bool,
}

impl Short {
    /// Has a process ask for memory beside the server.
    pub(super) fn begin(group: Group, bytes: u64) -> Result<Short, String> {
        Ok(Short {
            asker: Asker::start(&group, bytes)?,
            group,
            bytes,
            held: None,
            is_server_held: false,
        })
    }

    pub(super) fn look(&mut self) -> Look {
        let group = &self.group;
        if !group.path.exists() {
            return Look::Missing("the control group has gone".into());
        }
        match self.held {
            None if group.reached() == 0 => return Look::NotYet,
            None => {
                // Who waits gets what that process had.
                self.asker.end();
                self.held = Some(group.reached());
            }
            Some(before) => {
                self.is_server_held |= group.reached() > before || group.is_waited_for();
            }
        }
        let too = if self.is_server_held {
            "and"
        } else {
            "but not"
        };
        Look::Proven(format!(
            "no more than {} bytes: a process beside the server was held up, {too} the server \
             itself",
            self.bytes
        ))
    }
}

/// A process that asks for memory.
struct Asker(Child);

impl Asker {
    /// Starts it in a group, to ask for so many bytes.
    fn start(group: &Group, bytes: u64) -> Result<Asker, String> {
        let wrong = |error| during("asking for memory", &error);
        let mut command = Command::new("sh");
        // It waits until it is in the group. A read that finds no memory fails.
        let script = format!("read go && exec dd if=/dev/zero of=/dev/null bs={bytes} count=1");
        command.args(["-c", &script]).stdin(Stdio::piped());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().map_err(wrong)?;
        let stdin = child.stdin.take();
        let asker = Asker(child);
        group.join(asker.0.id())?;
        if let Some(mut stdin) = stdin {
            stdin.write_all(b"\n").map_err(wrong)?;
        }
        Ok(asker)
    }

    /// Ends it, and gives back what it has.
    fn end(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Asker {
    fn drop(&mut self) {
        self.end();
    }
}

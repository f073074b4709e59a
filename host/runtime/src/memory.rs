//! The memory of a node: how much it may have, how much it has, and when writes are refused.
//!
//! The system ends a process that takes more than its control group or the machine has, and all
//! that it could still do is lost with it; after the restart it would be ended again. So writes
//! are refused before that (53200), while reads and deletes go on.

use crate::journal_file::Journal;
use crate::mailbox::{Mail, Mailboxes};
use node::Memory;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Least limit that makes sense: the process and one segment of the journal need some of it.
pub const LIMIT_BYTES_MIN: u64 = 256 << 20;
/// Least part of the limit that rows may not have: a segment of the journal in recovery, and what
/// statements hold.
const RESERVE_BYTES_MIN: u64 = 96 << 20;
/// Part of the limit that rows may not have, in percent.
const RESERVE_PERCENT: u64 = 15;
/// Writes go on when the memory in use has fallen below this part of where they stopped.
const RESUME_PERCENT: u64 = 95;
/// Bytes per second that a load takes at most: as long as they would last is not looked again.
const GROWTH_BYTES_PER_S: u64 = 1 << 30;
/// Part of the limit that is granted to no request, in percent: for what is taken unasked.
const MARGIN_PERCENT: u64 = 10;
const MARGIN_BYTES_MIN: u64 = 48 << 20;
/// A thread that finds no room gives freed memory back, not more often than this: it takes
/// milliseconds, for hundreds of megabytes tens of them.
const GIVE_BACK_MS: u64 = 50;
/// All threads do so while the process has much more than is allocated: first after this time, then
/// less and less often.
const SLACK: Duration = Duration::from_millis(50);
const SLACK_MAX: Duration = Duration::from_secs(10);
/// Time between two rounds in which the thread of this file gives back what all have freed, as
/// long as there is room enough. A page that is used again costs a fault, in which the system
/// clears it.
const ROUND: Duration = Duration::from_secs(10);
/// Shards hear of changes of this size.
const TOLD_BYTES: u64 = 1 << 20;

/// What a node may have of memory.
#[derive(Clone, Copy, Debug)]
pub struct MemoryLimit {
    /// Bytes that the process may have.
    pub limit_bytes: u64,
    /// Bytes that the process has allocated and not freed.
    pub allocated: fn() -> u64,
    /// Gives memory back to the system: pages that all threads have freed, and what the calling one
    /// holds for later.
    pub give_back: fn(),
}

/// Bytes of memory that this process may have: the least limit of its control groups (version 1
/// or 2), or else four fifths of the machine's memory. `None`: the system does not tell.
pub fn detected_bytes() -> Option<u64> {
    let text = |path: &Path| std::fs::read_to_string(path).ok();
    let groups = text(Path::new("/proc/self/cgroup")).unwrap_or_default();
    let limits = group_files(&groups)
        .into_iter()
        .filter_map(|path| text(&path)?.trim().parse().ok());
    let machine = text(Path::new("/proc/meminfo")).and_then(|text| kilobytes(&text, "MemTotal:"));
    let machine = machine.map(|bytes| bytes / 5 * 4);
    limits.chain(machine).min()
}

/// Files that may hold a limit, from the lines of /proc/self/cgroup: those of the group and of all
/// above it. `max`, and numbers above what the machine has, are no limits.
fn group_files(groups: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for line in groups.lines() {
        let mut fields = line.splitn(3, ':');
        let (Some(_), Some(kinds), Some(path)) = (fields.next(), fields.next(), fields.next())
        else {
            continue;
        };
        let (root, name) = match kinds {
            "" => ("/sys/fs/cgroup", "memory.max"),
            kinds if kinds.split(',').any(|kind| kind == "memory") => {
                ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")
            }
            _ => continue,
        };
        let below_root = path.trim_start_matches('/');
        let group = Path::new(root).join(below_root);
        let above = group
            .ancestors()
            .take_while(|folder| folder.starts_with(root));
        files.extend(above.map(|folder| folder.join(name)));
    }
    files
}

/// The value of a line `name  1234 kB`, in bytes.
fn kilobytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let number: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(number << 10)
}

/// Bytes of memory that this process has and the system cannot take back: without the pages of
/// files, which are mostly the program itself.
fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    Some(kilobytes(&status, "RssAnon:")? + kilobytes(&status, "RssShmem:")?)
}

/// Bytes up to which rows are taken.
fn writes_until(limit_bytes: u64) -> u64 {
    let reserve = (limit_bytes / 100 * RESERVE_PERCENT).max(RESERVE_BYTES_MIN);
    limit_bytes.saturating_sub(reserve)
}

/// Whether writes are refused with `used` bytes in use.
fn is_full(used: u64, until: u64, was_full: bool) -> bool {
    let bound = if was_full {
        until / 100 * RESUME_PERCENT
    } else {
        until
    };
    used >= bound
}

/// Bytes that `allocated` bytes take as a rule: sizes are rounded up, and pages are not full, by a
/// quarter at most.
fn taken_bytes(allocated: u64) -> u64 {
    allocated + allocated / 4
}

/// What is left of a node's memory at any moment. Without a limit there is always room.
#[derive(Clone, Default)]
pub(crate) struct Room(Option<Arc<Looked>>);

/// The limit, and what the last look has found.
struct Looked {
    limit: MemoryLimit,
    /// Bytes that the system counted for the process.
    resident: AtomicU64,
    /// Bytes that were allocated then.
    allocated: AtomicU64,
    begin: Instant,
    /// When freed memory was last given back, in milliseconds since the beginning.
    given_back_ms: AtomicU64,
}

impl Room {
    pub(crate) fn new(limit: Option<MemoryLimit>) -> Room {
        let room = Room(limit.map(|limit| {
            Arc::new(Looked {
                limit,
                resident: AtomicU64::new(0),
                allocated: AtomicU64::new(0),
                begin: Instant::now(),
                given_back_ms: AtomicU64::new(0),
            })
        }));
        room.look();
        room
    }

    /// Asks the system. Gives the bytes that the process has, and those that rows see as in use:
    /// not what the allocator holds free for new ones.
    fn look(&self) -> (u64, u64) {
        let Some(looked) = &self.0 else {
            return (0, 0);
        };
        let allocated = (looked.limit.allocated)();
        let resident = resident_bytes().unwrap_or_else(|| taken_bytes(allocated));
        looked.allocated.store(allocated, Ordering::Relaxed);
        looked.resident.store(resident, Ordering::Relaxed);
        (resident, resident.min(taken_bytes(allocated)))
    }

    /// Whether there is room for `bytes` more. If there is none at first, the calling thread gives
    /// freed memory back, now and then.
    pub(crate) fn has(&self, bytes: u64) -> bool {
        let Some(looked) = &self.0 else {
            return true;
        };
        if looked.has(bytes) {
            return true;
        }
        let now_ms = looked.begin.elapsed().as_millis() as u64;
        let before = looked.given_back_ms.load(Ordering::Relaxed);
        if now_ms < before + GIVE_BACK_MS {
            return false;
        }
        looked.given_back_ms.store(now_ms, Ordering::Relaxed);
        (looked.limit.give_back)();
        self.look();
        looked.has(bytes)
    }
}

impl Looked {
    /// Whether there is room for `bytes` more, beside what the system counted at the last look and
    /// what has been allocated since.
    fn has(&self, bytes: u64) -> bool {
        let before = self.allocated.load(Ordering::Relaxed);
        let since = (self.limit.allocated)().saturating_sub(before);
        let taken = self.resident.load(Ordering::Relaxed) + taken_bytes(since + bytes);
        let limit = self.limit.limit_bytes;
        let margin = (limit / 100 * MARGIN_PERCENT).max(MARGIN_BYTES_MIN);
        taken + margin <= limit
    }
}

/// Starts the thread that measures and tells the shards, until the process ends.
pub(crate) fn watch(limit: MemoryLimit, room: Room, journal: Journal, mailboxes: Mailboxes) {
    let thread = std::thread::Builder::new().name("memory".into());
    let run = move || run(&limit, &room, &journal, &mailboxes);
    thread.spawn(run).expect("the process can start a thread");
}

fn run(limit: &MemoryLimit, room: &Room, journal: &Journal, mailboxes: &Mailboxes) {
    let until = writes_until(limit.limit_bytes);
    let mut told = Memory::default();
    let (mut given_back, mut round) = (Instant::now(), Instant::now());
    let mut pause = SLACK;
    loop {
        let (resident, used) = room.look();
        let memory = Memory {
            used_bytes: used,
            writes_until_bytes: until,
            limit_bytes: limit.limit_bytes,
            journal_bytes: journal.pending_bytes(),
            full: is_full(used, until, told.full),
        };
        if memory.full != told.full {
            let (used_mib, until_mib) = (used >> 20, until >> 20);
            let full = memory.full;
            tracing::warn!(full, used_mib, until_mib, "memory for rows");
        }
        if memory.full != told.full || used.abs_diff(told.used_bytes) >= TOLD_BYTES {
            mailboxes.all(|| Mail::Memory(memory));
            told = memory;
        }
        // Nobody waits for this thread; a shard that found no room would have to do it.
        let is_tight = resident > until / 4 * 3;
        if is_tight || round.elapsed() > ROUND {
            (limit.give_back)();
            round = Instant::now();
        }
        // Threads that have nothing to do keep what they have freed.
        let is_slack = taken_bytes((limit.allocated)()) < resident / 4 * 3;
        if !is_slack || !is_tight {
            pause = SLACK;
        } else if given_back.elapsed() > pause {
            mailboxes.all(|| Mail::GiveBack(limit.give_back));
            given_back = Instant::now();
            // What is left may be holes between rows, which nobody can give back.
            pause = (pause * 2).min(SLACK_MAX);
        }
        let left_ms = until.saturating_sub(resident) * 1_000 / GROWTH_BYTES_PER_S;
        std::thread::sleep(Duration::from_millis(left_ms.clamp(20, 1_000)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_looked_for_in_all_groups_above() {
        let files = |text: &str| {
            let files = group_files(text);
            let texts = files.iter().map(|path| path.display().to_string());
            texts.collect::<Vec<_>>()
        };
        assert_eq!(
            files("0::/a/b\n"),
            [
                "/sys/fs/cgroup/a/b/memory.max",
                "/sys/fs/cgroup/a/memory.max",
                "/sys/fs/cgroup/memory.max"
            ]
        );
        assert_eq!(
            files("5:cpu:/x\n4:memory:/x\nnonsense\n"),
            [
                "/sys/fs/cgroup/memory/x/memory.limit_in_bytes",
                "/sys/fs/cgroup/memory/memory.limit_in_bytes"
            ]
        );
        assert!(detected_bytes().is_some_and(|bytes| bytes > LIMIT_BYTES_MIN));
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let with_files = kilobytes(&status, "VmHWM:").unwrap();
        assert!(resident_bytes().is_some_and(|bytes| (64 << 10..with_files).contains(&bytes)));
    }

    #[test]
    fn writes_stop_below_the_limit_and_go_on_further_below() {
        let mib = |bytes: u64| bytes << 20;
        assert_eq!(writes_until(mib(256)), mib(160));
        assert_eq!(writes_until(100 * mib(1024)), 85 * mib(1024));
        assert!(!is_full(99, 100, false));
        assert!(is_full(100, 100, false));
        assert!(is_full(95, 100, true));
        assert!(!is_full(94, 100, true));
    }
}

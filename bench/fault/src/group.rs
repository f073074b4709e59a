//! Control groups: a group beside the others of a server's processes, with one limit.
//!
//! Version 1 has a tree for each controller, and the group is made below the one that the processes
//! are in, so that the limits that they have stay. In version 2 a group with processes has no
//! groups below it that have limits, so the group is made beside it.
//!
//! A limit of memory counts what is allocated from then on, files that are read or written
//! included: memory that a process has already stays counted where it was. In version 1 a process
//! that needs more waits (the system's killer is off for the group), in version 2 it is slowed down
//! (`memory.high`).

use super::plan::Disk;
use super::process::{Process, during};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Microseconds in which a share of a core is counted.
const PERIOD_US: u64 = 100_000;
/// A thread that has waited this long for a disk while nothing was moved is held up by the limit: a
/// forced write takes some milliseconds without one.
const HELD_UP: Duration = Duration::from_millis(150);

/// What is limited.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Limit {
    /// Percent of a core.
    Cpu(f64),
    /// Bytes per second of a device, as `major:minor`.
    Disk(Disk, u64, String),
    /// Bytes that are allocated from now on.
    Memory(u64),
}

impl Limit {
    fn controller(&self, version: Version) -> &'static str {
        match (self, version) {
            (Limit::Cpu(_), _) => "cpu",
            (Limit::Disk(..), Version::One) => "blkio",
            (Limit::Disk(..), Version::Two) => "io",
            (Limit::Memory(_), _) => "memory",
        }
    }

    /// The files that set it, and what is written, in this order.
    fn settings(&self, version: Version) -> Vec<(&'static str, String)> {
        let quota_us = |percent: &f64| (percent * PERIOD_US as f64 / 100.0) as u64;
        match (self, version) {
            (Limit::Cpu(percent), Version::One) => vec![
                ("cpu.cfs_period_us", PERIOD_US.to_string()),
                ("cpu.cfs_quota_us", quota_us(percent).to_string()),
            ],
            (Limit::Cpu(percent), Version::Two) => {
                vec![("cpu.max", format!("{} {PERIOD_US}", quota_us(percent)))]
            }
            (Limit::Disk(Disk::Read, bytes, device), Version::One) => vec![(
                "blkio.throttle.read_bps_device",
                format!("{device} {bytes}"),
            )],
            (Limit::Disk(Disk::Write, bytes, device), Version::One) => vec![(
                "blkio.throttle.write_bps_device",
                format!("{device} {bytes}"),
            )],
            (Limit::Disk(Disk::Read, bytes, device), Version::Two) => {
                vec![("io.max", format!("{device} rbps={bytes}"))]
            }
            (Limit::Disk(Disk::Write, bytes, device), Version::Two) => {
                vec![("io.max", format!("{device} wbps={bytes}"))]
            }
            (Limit::Memory(bytes), Version::One) => vec![
                ("memory.limit_in_bytes", bytes.to_string()),
                ("memory.oom_control", "1".to_string()),
            ],
            (Limit::Memory(bytes), Version::Two) => vec![("memory.high", bytes.to_string())],
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

/// A group that is to be made.
#[derive(Clone, Debug)]
pub(super) struct Group {
    pub(super) path: PathBuf,
    /// Where its processes are now.
    pub(super) home: PathBuf,
    limit: Limit,
    version: Version,
    seen: Option<(Instant, u64)>,
    /// Since when somebody waits for the disk, and what was moved until then and is still.
    held_up: Option<(Instant, u64)>,
}

/// What the system tells of the groups of a process.
struct Tree {
    /// `/proc/<pid>/cgroup`.
    groups: String,
    /// `/proc/self/mounts`.
    mounts: String,
}

impl Tree {
    fn of(pid: u32) -> Option<Tree> {
        Some(Tree {
            groups: std::fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?,
            mounts: std::fs::read_to_string("/proc/self/mounts").ok()?,
        })
    }

    /// The folder where the tree with a controller is mounted (`None`: that of version 2), and the
    /// group in it.
    fn home(&self, controller: Option<&str>) -> Option<(PathBuf, PathBuf)> {
        let own = self.groups.lines().find_map(|line| {
            let mut parts = line.splitn(3, ':').skip(1);
            let (controllers, path) = (parts.next()?, parts.next()?);
            let is_it = match controller {
                Some(name) => controllers.split(',').any(|other| other == name),
                None => controllers.is_empty(),
            };
            is_it.then_some(path)
        })?;
        let mount = self.mounts.lines().find_map(|line| {
            let fields: Vec<&str> = line.split(' ').collect();
            let is_it = match controller {
                Some(name) => {
                    fields.get(2) == Some(&"cgroup")
                        && fields.get(3)?.split(',').any(|option| option == name)
                }
                None => fields.get(2) == Some(&"cgroup2"),
            };
            is_it.then(|| PathBuf::from(fields[1]))
        })?;
        let home = mount.join(own.trim_start_matches('/'));
        Some((mount, home))
    }

    /// The folder in which a group with this limit is made, where the processes are now, and by
    /// which version.
    fn place(&self, limit: &Limit) -> Option<(PathBuf, PathBuf, Version)> {
        if let Some((_, home)) = self.home(Some(limit.controller(Version::One))) {
            return Some((home.clone(), home, Version::One));
        }
        let (mount, home) = self.home(None)?;
        let beside = if home == mount { None } else { home.parent() };
        let folder = beside.map_or(mount, Path::to_path_buf);
        let enabled = std::fs::read_to_string(folder.join("cgroup.subtree_control")).ok()?;
        let wanted = limit.controller(Version::Two);
        let is_enabled = enabled.split_whitespace().any(|name| name == wanted);
        is_enabled.then_some((folder, home, Version::Two))
    }
}

impl Group {
    /// A group of this name for a process with its descendants.
    ///
    /// # Errors
    /// What is missing.
    pub(super) fn plan(process: &Process, name: &str, limit: Limit) -> Result<Group, String> {
        let tree = Tree::of(process.pid);
        let (folder, home, version) =
            tree.and_then(|tree| tree.place(&limit)).ok_or_else(|| {
                format!(
                    "control groups with the controller {}, version 1 or 2, that may be changed",
                    limit.controller(Version::One)
                )
            })?;
        Ok(Group {
            path: folder.join(name),
            home,
            limit,
            version,
            seen: None,
            held_up: None,
        })
    }

    /// Whether it can be made: makes it and removes it.
    ///
    /// # Errors
    /// What cannot be done.
    pub(super) fn try_it(&self) -> Result<(), String> {
        let made = self.make();
        // It is empty.
        let _ = std::fs::remove_dir(&self.path);
        made
    }

    fn make(&self) -> Result<(), String> {
        let made = std::fs::create_dir(&self.path);
        made.map_err(|error| during(&self.path.display().to_string(), &error))?;
        for (file, value) in self.limit.settings(self.version) {
            write(&self.path.join(file), &value)?;
        }
        Ok(())
    }

    /// Makes it, and moves a process and its descendants into it.
    pub(super) fn enter(&self, process: &Process) -> Result<(), String> {
        self.make()?;
        // Children that come meanwhile are found by the next look.
        loop {
            let tree = process.tree();
            let inside = members(&self.path);
            let mut outside = tree
                .iter()
                .filter(|one| !inside.contains(&one.pid))
                .peekable();
            if outside.peek().is_none() {
                return Ok(());
            }
            for one in outside {
                if one.is_alive() {
                    write(&self.path.join("cgroup.procs"), &one.pid.to_string())?;
                }
            }
        }
    }

    /// Whether the limit of a processor or a disk has held somebody up; what was seen of it.
    pub(super) fn bites(&mut self) -> Option<String> {
        match self.limit.clone() {
            Limit::Cpu(_) => {
                let throttled = self.count("cpu.stat", "nr_throttled ")?;
                (throttled > 0).then(|| format!("throttled in {throttled} periods"))
            }
            Limit::Disk(disk, limit, device) => {
                let moved = self.moved(disk, &device)?;
                let (since, before) = *self.seen.get_or_insert((Instant::now(), moved));
                let seconds = since.elapsed().as_secs_f64();
                let per_s = (moved - before) as f64 / seconds.max(1e-3);
                let text = format!("{per_s:.0} bytes per second, of {limit} allowed");
                let share = per_s / limit as f64;
                if seconds >= 1.0 && (0.7..1.3).contains(&share) {
                    return Some(text);
                }
                // Servers that wait for each other move less than they may.
                let waited = self.waited(moved)?;
                (share < 1.3).then(|| format!("a thread waited {waited:.1?} for the disk; {text}"))
            }
            Limit::Memory(_) => None,
        }
    }

    /// For how long a thread of its processes has waited for the disk while nothing was moved, if
    /// that is longer than it takes without a limit. `moved` bytes have been until now.
    fn waited(&mut self, moved: u64) -> Option<Duration> {
        if !members(&self.path).into_iter().any(waits_for_disk) {
            self.held_up = None;
            return None;
        }
        match self.held_up {
            Some((since, before)) if before == moved => {
                Some(since.elapsed()).filter(|waited| *waited >= HELD_UP)
            }
            _ => {
                self.held_up = Some((Instant::now(), moved));
                None
            }
        }
    }

    /// How often its processes have reached a limit of memory.
    pub(super) fn reached(&self) -> u64 {
        let found = match self.version {
            Version::One => self.count("memory.failcnt", ""),
            Version::Two => self.count("memory.events", "high "),
        };
        found.unwrap_or(0)
    }

    /// Whether a process of it waits for memory now; in version 2 none does for long.
    pub(super) fn is_waited_for(&self) -> bool {
        self.count("memory.oom_control", "under_oom ") == Some(1)
    }

    /// Moves one more process into it.
    pub(super) fn join(&self, pid: u32) -> Result<(), String> {
        write(&self.path.join("cgroup.procs"), &pid.to_string())
    }

    /// The number behind these words in a file of the group.
    fn count(&self, file: &str, words: &str) -> Option<u64> {
        let text = std::fs::read_to_string(self.path.join(file)).ok()?;
        let line = text.lines().find_map(|line| line.strip_prefix(words))?;
        line.trim().parse().ok()
    }

    /// Bytes that its processes have read from a device or written to it.
    fn moved(&self, disk: Disk, device: &str) -> Option<u64> {
        let bytes = match self.version {
            Version::One => {
                let word = if disk == Disk::Read { "Read" } else { "Write" };
                self.count(
                    "blkio.throttle.io_service_bytes",
                    &format!("{device} {word} "),
                )
            }
            Version::Two => {
                let text = std::fs::read_to_string(self.path.join("io.stat")).ok()?;
                let line = text
                    .lines()
                    .find(|line| line.split(' ').next() == Some(device));
                let word = if disk == Disk::Read {
                    "rbytes="
                } else {
                    "wbytes="
                };
                let mut fields = line.unwrap_or("").split(' ');
                fields.find_map(|field| field.strip_prefix(word)?.parse().ok())
            }
        };
        Some(bytes.unwrap_or(0))
    }
}

fn write(path: &Path, value: &str) -> Result<(), String> {
    match std::fs::write(path, value) {
        // The process has ended meanwhile.
        Err(error) if error.raw_os_error() == Some(nix::errno::Errno::ESRCH as i32) => Ok(()),
        written => written.map_err(|error| during(&path.display().to_string(), &error)),
    }
}

/// Whether a thread of this process waits for a device (state D).
fn waits_for_disk(pid: u32) -> bool {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{pid}/task")) else {
        return false;
    };
    threads.flatten().any(|thread| {
        let text = std::fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
        // The name of the program stands in brackets and may have some itself.
        let state = text
            .rsplit(") ")
            .next()
            .and_then(|rest| rest.chars().next());
        state == Some('D')
    })
}

fn members(group: &Path) -> Vec<u32> {
    let text = std::fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
    text.lines().filter_map(|line| line.parse().ok()).collect()
}

/// Moves all processes of a group to another one and removes it.
///
/// The limits go first, so that no process leaves while it is held up.
pub(super) fn leave(group: &Path, home: &Path) -> Result<(), String> {
    for (file, value) in [
        ("cpu.cfs_quota_us", "-1"),
        ("cpu.max", "max"),
        ("memory.limit_in_bytes", "-1"),
        ("memory.high", "max"),
    ] {
        let file = group.join(file);
        if file.exists() {
            write(&file, value)?;
        }
    }
    for _ in 0..100 {
        for pid in members(group) {
            write(&home.join("cgroup.procs"), &pid.to_string())?;
        }
        match std::fs::remove_dir(group) {
            Ok(()) => return Ok(()),
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            // A process is about to end, or has a new child.
            Err(_) => std::thread::sleep(Duration::from_millis(10)),
        }
    }
    Err(format!("{} is still in use", group.display()))
}

/// The disk of a file's file system, as `major:minor`.
///
/// # Errors
/// It lies on no disk.
pub(super) fn disk_of(path: &Path) -> Result<String, String> {
    let found = std::fs::metadata(path).map_err(|error| during("the data", &error))?;
    let (major, minor) = (
        nix::sys::stat::major(found.dev()),
        nix::sys::stat::minor(found.dev()),
    );
    let device = PathBuf::from(format!("/sys/dev/block/{major}:{minor}"));
    let Ok(folder) = device.canonicalize() else {
        return Err(format!(
            "{} lies on no disk, but in memory or elsewhere",
            path.display()
        ));
    };
    // A partition has no queue of its own.
    let whole = match folder.join("partition").exists() {
        true => folder.parent().unwrap_or(&folder).join("dev"),
        false => folder.join("dev"),
    };
    let text = std::fs::read_to_string(whole).map_err(|error| during("the disk", &error))?;
    Ok(text.trim().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tree of version 2 as the system shows it, in a folder of its own.
    fn version_2(name: &str, controllers: &str) -> (PathBuf, Tree) {
        let mount = std::env::temp_dir().join(format!("trellis-{name}-{}", std::process::id()));
        std::fs::create_dir_all(mount.join("system.slice/pg.service")).unwrap();
        let enabled = mount.join("system.slice/cgroup.subtree_control");
        std::fs::write(enabled, controllers).unwrap();
        let tree = Tree {
            groups: "0::/system.slice/pg.service\n".into(),
            mounts: format!("a / ext4 rw 0 0\nnone {} cgroup2 rw 0 0\n", mount.display()),
        };
        (mount, tree)
    }

    #[test]
    fn in_version_2_the_group_is_made_beside_that_of_the_server() {
        let (mount, tree) = version_2("group-place", "cpu memory\n");
        let slice = mount.join("system.slice");
        let place = tree.place(&Limit::Cpu(20.0));
        let home = slice.join("pg.service");
        assert_eq!(place, Some((slice.clone(), home, Version::Two)));
        // Nobody has enabled that controller there.
        let disk = Limit::Disk(Disk::Read, 1 << 20, "8:0".into());
        assert_eq!(tree.place(&disk), None);
        std::fs::remove_dir_all(mount).unwrap();
    }

    #[test]
    fn limits_are_written_and_their_effect_is_read_as_version_2_has_them() {
        let (mount, tree) = version_2("group-files", "cpu io memory\n");
        let device = || "253:0".to_string();
        for (limit, file, value, stat, before, after, told) in [
            (
                Limit::Cpu(20.0),
                "cpu.max",
                "20000 100000",
                "cpu.stat",
                "usage_usec 9\nnr_periods 4\nnr_throttled 0\n",
                "usage_usec 9\nnr_periods 4\nnr_throttled 3\n",
                "throttled in 3 periods",
            ),
            (
                Limit::Disk(Disk::Write, 1 << 20, device()),
                "io.max",
                "253:0 wbps=1048576",
                "io.stat",
                "8:0 rbytes=1 wbytes=2\n",
                "8:0 rbytes=1 wbytes=2\n253:0 rbytes=9 wbytes=1048576 rios=1\n",
                "1048576 bytes per second, of 1048576 allowed",
            ),
        ] {
            let (folder, home, version) = tree.place(&limit).unwrap();
            let mut group = Group {
                path: folder.join("of-the-benchmark"),
                home,
                limit,
                version,
                seen: None,
                held_up: None,
            };
            group.make().unwrap();
            let written = std::fs::read_to_string(group.path.join(file)).unwrap();
            assert_eq!(written, value);
            let stat = group.path.join(stat);
            std::fs::write(&stat, before).unwrap();
            assert_eq!(group.bites(), None);
            if let Some((since, _)) = &mut group.seen {
                *since -= Duration::from_secs(1);
            }
            std::fs::write(&stat, after).unwrap();
            let seen = group.bites().unwrap();
            // A second and some microseconds.
            let (digits, rest) = told.split_once(' ').unwrap();
            let is_rate = rest.starts_with("bytes per");
            assert!(
                seen == told || is_rate && seen.ends_with(rest),
                "{seen} {digits}"
            );
            std::fs::remove_dir_all(&group.path).unwrap();
        }
        let limit = Limit::Memory(4 << 20);
        let (folder, home, version) = tree.place(&limit).unwrap();
        let group = Group {
            path: folder.join("of-the-benchmark"),
            home,
            limit,
            version,
            seen: None,
            held_up: None,
        };
        group.make().unwrap();
        let written = std::fs::read_to_string(group.path.join("memory.high")).unwrap();
        assert_eq!((written.as_str(), group.reached()), ("4194304", 0));
        let events = group.path.join("memory.events");
        std::fs::write(events, "low 0\nhigh 5\nmax 7\n").unwrap();
        assert_eq!(group.reached(), 5);
        std::fs::remove_dir_all(mount).unwrap();
    }
}

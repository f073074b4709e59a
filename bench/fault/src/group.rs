//! Control groups: a group beside the others of a server's processes, with one limit.
//!
//! Version 1 has a tree for each controller, and the group is made below the one that the processes
//! are in, so that the limits that they have stay. In version 2 a group with processes has no
//! groups below it that have limits, so the group is made beside it.

use super::plan::Disk;
use super::process::{Process, during};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Microseconds in which a share of a core is counted.
const PERIOD_US: u64 = 100_000;

/// What is limited.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Limit {
    /// Percent of a core.
    Cpu(f64),
    /// Bytes per second of a device, as `major:minor`.
    Disk(Disk, u64, String),
}

impl Limit {
    fn controller(&self) -> &'static str {
        match self {
            Limit::Cpu(_) => "cpu",
            Limit::Disk(..) => "blkio",
        }
    }

    /// The file that sets it, and what is written.
    fn setting(&self, version: Version) -> (&'static str, String) {
        match (self, version) {
            (Limit::Cpu(percent), Version::One) => (
                "cpu.cfs_quota_us",
                ((percent * PERIOD_US as f64 / 100.0) as u64).to_string(),
            ),
            (Limit::Cpu(percent), Version::Two) => {
                let quota_us = (percent * PERIOD_US as f64 / 100.0) as u64;
                ("cpu.max", format!("{quota_us} {PERIOD_US}"))
            }
            (Limit::Disk(Disk::Read, bytes, device), _) => (
                "blkio.throttle.read_bps_device",
                format!("{device} {bytes}"),
            ),
            (Limit::Disk(Disk::Write, bytes, device), _) => (
                "blkio.throttle.write_bps_device",
                format!("{device} {bytes}"),
            ),
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
}

/// The group of a process by a line of `/proc/<pid>/cgroup` for which this is so, and the folder
/// where the tree is mounted, by the options of the mount.
fn home(pid: u32, controller: Option<&str>) -> Option<(PathBuf, PathBuf)> {
    let groups = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
    let own = groups.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next()?, parts.next()?);
        let is_it = match controller {
            Some(name) => controllers.split(',').any(|other| other == name),
            None => controllers.is_empty(),
        };
        is_it.then_some(path)
    })?;
    let mounts = std::fs::read_to_string("/proc/self/mounts").ok()?;
    let mount = mounts.lines().find_map(|line| {
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

impl Group {
    /// A group of this name for a process with its descendants.
    ///
    /// # Errors
    /// What is missing.
    pub(super) fn plan(process: &Process, name: &str, limit: Limit) -> Result<Group, String> {
        let pid = process.pid;
        let missing = format!(
            "control groups with the controller {}, version 1 or 2, that may be \
             changed",
            limit.controller()
        );
        let found = |folder: PathBuf, home: PathBuf, version| Group {
            path: folder.join(name),
            home,
            limit: limit.clone(),
            version,
            seen: None,
        };
        if let Some((_, home)) = home(pid, Some(limit.controller())) {
            return Ok(found(home.clone(), home, Version::One));
        }
        if matches!(limit, Limit::Cpu(_))
            && let Some((mount, home)) = home(pid, None)
        {
            let beside = if home == mount { None } else { home.parent() };
            let folder = beside.map_or(mount, Path::to_path_buf);
            let enabled = std::fs::read_to_string(folder.join("cgroup.subtree_control"));
            let mut enabled = enabled.as_deref().unwrap_or("").split_whitespace();
            if enabled.any(|controller| controller == "cpu") {
                return Ok(found(folder, home, Version::Two));
            }
        }
        Err(missing)
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
        let (file, value) = self.limit.setting(self.version);
        if self.version == Version::One && matches!(self.limit, Limit::Cpu(_)) {
            write(&self.path.join("cpu.cfs_period_us"), &PERIOD_US.to_string())?;
        }
        write(&self.path.join(file), &value)
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

    /// Whether the limit has held somebody up; what was seen of it.
    pub(super) fn bites(&mut self) -> Option<String> {
        match self.limit.clone() {
            Limit::Cpu(_) => {
                let stat = std::fs::read_to_string(self.path.join("cpu.stat")).ok()?;
                let line = stat
                    .lines()
                    .find_map(|line| line.strip_prefix("nr_throttled "))?;
                let throttled: u64 = line.trim().parse().ok()?;
                (throttled > 0).then(|| format!("throttled in {throttled} periods"))
            }
            Limit::Disk(disk, limit, device) => {
                let moved = moved(&self.path, disk, &device)?;
                let (since, before) = *self.seen.get_or_insert((Instant::now(), moved));
                let seconds = since.elapsed().as_secs_f64();
                let per_s = (moved - before) as f64 / seconds.max(1e-3);
                let share = per_s / limit as f64;
                let text = format!("{per_s:.0} bytes per second, of {limit} allowed");
                (seconds >= 1.0 && (0.7..1.3).contains(&share)).then_some(text)
            }
        }
    }
}

/// Bytes that a group has read or written.
fn moved(group: &Path, disk: Disk, device: &str) -> Option<u64> {
    let text = std::fs::read_to_string(group.join("blkio.throttle.io_service_bytes")).ok()?;
    let word = if disk == Disk::Read { "Read" } else { "Write" };
    let bytes = text.lines().find_map(|line| {
        let mut fields = line.split(' ');
        let is_it = fields.next() == Some(device) && fields.next() == Some(word);
        is_it.then(|| fields.next()?.parse().ok()).flatten()
    });
    Some(bytes.unwrap_or(0))
}

fn write(path: &Path, value: &str) -> Result<(), String> {
    match std::fs::write(path, value) {
        // The process has ended meanwhile.
        Err(error) if error.raw_os_error() == Some(nix::errno::Errno::ESRCH as i32) => Ok(()),
        written => written.map_err(|error| during(&path.display().to_string(), &error)),
    }
}

fn members(group: &Path) -> Vec<u32> {
    let text = std::fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
    text.lines().filter_map(|line| line.parse().ok()).collect()
}

/// Moves all processes of a group to another one and removes it.
///
/// The limit of the processor goes first, so that no process leaves while it is held up.
pub(super) fn leave(group: &Path, home: &Path) -> Result<(), String> {
    for (file, value) in [("cpu.cfs_quota_us", "-1"), ("cpu.max", "max")] {
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
            Err(_) => std::thread::sleep(std::time::Duration::from_millis(10)),
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

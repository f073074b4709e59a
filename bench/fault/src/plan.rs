//! What shall be broken, where and when: `kill@node2:10+5`, `loss=10%@node2,node3:20+5`.

use links::DriveError;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// The longest that a fault may last, and the latest that it may begin, in seconds.
const SECONDS_MAX: f64 = 86_400.0;

/// Which packets of a server are dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ways {
    /// Those that it gets and those that it sends.
    Both,
    /// Those that it gets.
    In,
    /// Those that it sends.
    Out,
}

/// Whether a server's reads or its writes are slowed down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disk {
    /// What it reads from the disk itself, not from the system's memory.
    Read,
    /// What it writes to the disk before it goes on.
    Write,
}

/// What a fault does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// SIGKILL, and started again at the end.
    Kill,
    /// SIGTERM, or what else tells the server to end, and started again at the end.
    Restart,
    /// SIGSTOP, and SIGCONT at the end.
    Pause,
    /// At most this many percent of one core, 1 to 10,000.
    Cpu(f64),
    /// At most this many bytes per second from or to the disk.
    Throttle(Disk, u64),
    /// No room on the file system of the data.
    DiskFull,
    /// Each byte between client and server arrives this much later, in each direction.
    Delay(Duration),
    /// Each packet to and from the server comes this much later, also between servers.
    Lag(Duration),
    /// This many percent of the packets are lost, above 0, at most 100.
    Drop(Ways, f64),
    /// At most this many bytes of memory more than it has, 1 MiB or more.
    Memory(u64),
    /// A clock that is wrong by this many milliseconds; not 0, at most a day.
    Clock(i64),
}

/// Names that need no value, with what they mean.
const PLAIN: [(&str, Kind); 7] = [
    ("kill", Kind::Kill),
    ("restart", Kind::Restart),
    ("pause", Kind::Pause),
    ("disk_full", Kind::DiskFull),
    ("cut", Kind::Drop(Ways::Both, 100.0)),
    ("cut_in", Kind::Drop(Ways::In, 100.0)),
    ("cut_out", Kind::Drop(Ways::Out, 100.0)),
];

/// Names that need a value, with an example.
const VALUED: [(&str, &str); 8] = [
    ("cpu", "cpu=20%"),
    ("loss", "loss=10%"),
    ("delay", "delay=50ms"),
    ("lag", "lag=5ms"),
    ("disk_write", "disk_write=1MB"),
    ("disk_read", "disk_read=1MB"),
    ("memory", "memory=16MB"),
    ("clock", "clock=+500ms"),
];

impl Kind {
    /// The word before `=` and `@`.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Kill => "kill",
            Kind::Restart => "restart",
            Kind::Pause => "pause",
            Kind::Cpu(_) => "cpu",
            Kind::Throttle(Disk::Read, _) => "disk_read",
            Kind::Throttle(Disk::Write, _) => "disk_write",
            Kind::DiskFull => "disk_full",
            Kind::Delay(_) => "delay",
            Kind::Lag(_) => "lag",
            Kind::Drop(Ways::In, _) => "cut_in",
            Kind::Drop(Ways::Out, _) => "cut_out",
            Kind::Drop(Ways::Both, percent) if percent >= 100.0 => "cut",
            Kind::Drop(Ways::Both, _) => "loss",
            Kind::Memory(_) => "memory",
            Kind::Clock(_) => "clock",
        }
    }

    /// Whether the server's process ends by it.
    pub fn ends_process(self) -> bool {
        matches!(self, Kind::Kill | Kind::Restart)
    }

    fn parse(name: &str, value: Option<&str>) -> Result<Kind, DriveError> {
        let plain = PLAIN.iter().find(|(known, _)| *known == name);
        let valued = VALUED.iter().find(|(known, _)| *known == name);
        match (plain, valued, value) {
            (Some((_, kind)), _, None) => Ok(*kind),
            (_, Some((_, example)), Some(value)) => {
                let kind = Kind::valued(name, value);
                kind.ok_or_else(|| refused(format!("{name}={value} is no such value: {example}")))
            }
            (None, Some((_, example)), None) => {
                Err(refused(format!("{name} needs a value: {example}")))
            }
            (Some(_), None, Some(_)) => Err(refused(format!("{name} takes no value"))),
            (None, None, _) => {
                let plain = PLAIN.iter().map(|(known, _)| *known);
                let valued = VALUED.iter().map(|(known, _)| *known);
                let known: Vec<&str> = plain.chain(valued).collect();
                let known = known.join(", ");
                Err(refused(format!(
                    "there is no fault {name:?}; there are {known}"
                )))
            }
        }
    }

    fn valued(name: &str, value: &str) -> Option<Kind> {
        let percent = |most: f64| {
            let number: f64 = value.strip_suffix('%')?.parse().ok()?;
            (number > 0.0 && number <= most).then_some(number)
        };
        Some(match name {
            "cpu" => Kind::Cpu(percent(10_000.0).filter(|percent| *percent >= 1.0)?),
            "loss" => Kind::Drop(
                Ways::Both,
                percent(100.0).filter(|percent| *percent >= 0.01)?,
            ),
            "delay" => Kind::Delay(delay(value)?),
            "lag" => Kind::Lag(delay(value)?),
            "disk_write" => Kind::Throttle(Disk::Write, size(value)?),
            "disk_read" => Kind::Throttle(Disk::Read, size(value)?),
            "memory" => Kind::Memory(size(value).filter(|bytes| *bytes >= 1 << 20)?),
            "clock" => Kind::Clock(offset(value)?),
            _ => return None,
        })
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        match self {
            Kind::Cpu(percent) => write!(f, "={percent}%"),
            Kind::Throttle(_, bytes) | Kind::Memory(bytes) => write!(f, "={}kB", bytes >> 10),
            Kind::Clock(ms) => write!(f, "={ms:+}ms"),
            Kind::Delay(delay) | Kind::Lag(delay) => write!(f, "={}ms", delay.as_secs_f64() * 1e3),
            Kind::Drop(Ways::Both, percent) if *percent < 100.0 => write!(f, "={percent}%"),
            _ => Ok(()),
        }
    }
}

/// Up to ten seconds.
fn delay(text: &str) -> Option<Duration> {
    let units = [("ms", 1e-3), ("s", 1.0)];
    let (number, unit_s) = units
        .iter()
        .find_map(|(unit, unit_s)| Some((text.strip_suffix(unit)?, unit_s)))?;
    let seconds = number.parse::<f64>().ok()? * unit_s;
    (seconds > 0.0 && seconds <= 10.0).then(|| Duration::from_secs_f64(seconds))
}

/// Milliseconds with a sign, up to a day.
fn offset(text: &str) -> Option<i64> {
    let (sign, rest) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+')?),
    };
    let units = [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000)];
    let number = |unit: &str| rest.strip_suffix(unit)?.parse::<u32>().ok();
    let (number, ms) = units
        .iter()
        .find_map(|(unit, ms)| Some((number(unit)?, *ms)))?;
    let offset = i64::from(number).checked_mul(ms)?;
    (1..=86_400_000).contains(&offset).then_some(sign * offset)
}

/// Bytes, 4 KiB or more.
fn size(text: &str) -> Option<u64> {
    let units = [("GB", 30), ("MB", 20), ("kB", 10)];
    let bytes = units.iter().find_map(|(unit, bits)| {
        let number: u64 = text.strip_suffix(unit)?.parse().ok()?;
        number.checked_mul(1 << bits)
    })?;
    (bytes >= 4 << 10).then_some(bytes)
}

pub(super) fn refused(text: String) -> DriveError {
    DriveError::Option(text)
}

/// A fault of one or several targets at the same time.
#[derive(Clone, Debug, PartialEq)]
pub struct FaultPlan {
    /// What it does.
    pub kind: Kind,
    /// Names of targets, one or more.
    pub targets: Vec<String>,
    /// When it begins, in seconds from the beginning of the measured phase.
    pub begin_s: f64,
    /// How long it lasts, in seconds.
    pub length_s: f64,
}

impl FaultPlan {
    /// When it is undone, in seconds from the beginning of the measured phase.
    pub fn end_s(&self) -> f64 {
        self.begin_s + self.length_s
    }

    /// Whether both are there at some time.
    fn overlaps(&self, other: &FaultPlan) -> bool {
        self.begin_s < other.end_s() && other.begin_s < self.end_s()
    }
}

impl fmt::Display for FaultPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, targets) = (self.kind, self.targets.join(","));
        write!(f, "{kind}@{targets}:{}+{}", self.begin_s, self.length_s)
    }
}

impl FromStr for FaultPlan {
    type Err = DriveError;

    fn from_str(text: &str) -> Result<FaultPlan, DriveError> {
        let shape = || {
            let text = format!(
                "{text:?} is no fault: KIND[=VALUE]@TARGET:BEGIN+LENGTH, as in \
                 kill@node2:10+5 (at second 10, undone at second 15)"
            );
            refused(text)
        };
        let (what, rest) = text.split_once('@').ok_or_else(shape)?;
        let (targets, times) = rest.rsplit_once(':').ok_or_else(shape)?;
        let (begin, length) = times.split_once('+').ok_or_else(shape)?;
        let (name, value) = match what.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (what, None),
        };
        let seconds = |text: &str| {
            let number = text.strip_suffix('s').unwrap_or(text).parse::<f64>().ok();
            number
                .filter(|number| (0.0..=SECONDS_MAX).contains(number))
                .ok_or_else(shape)
        };
        let plan = FaultPlan {
            kind: Kind::parse(name, value)?,
            targets: targets.split(',').map(String::from).collect(),
            begin_s: seconds(begin)?,
            length_s: seconds(length)?,
        };
        if plan.targets.iter().any(String::is_empty) {
            return Err(shape());
        }
        if plan.length_s < 0.1 {
            return Err(refused(format!(
                "{text}: a fault lasts 0.1 seconds or more"
            )));
        }
        Ok(plan)
    }
}

/// Refuses what cannot be done one after the other within the measured phase.
pub(super) fn check(plans: &[FaultPlan], length_s: f64) -> Result<(), DriveError> {
    for (at, plan) in plans.iter().enumerate() {
        if plan.end_s() > length_s {
            let text = format!("{plan} ends after the run, which measures {length_s} seconds");
            return Err(refused(text));
        }
        let mut names = plan.targets.iter();
        if names.any(|name| plan.targets.iter().filter(|other| *other == name).count() > 1) {
            return Err(refused(format!("{plan} names a target twice")));
        }
        for other in plans[..at].iter().filter(|other| plan.overlaps(other)) {
            let same = plan.kind.name() == other.kind.name();
            let ends = plan.kind.ends_process() || other.kind.ends_process();
            let both = plan
                .targets
                .iter()
                .find(|name| other.targets.contains(name));
            if let Some(name) = both.filter(|_| same || ends) {
                let text = format!("{plan} and {other} cannot both be at {name} at the same time");
                return Err(refused(text));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(text: &str) -> FaultPlan {
        text.parse().unwrap()
    }

    #[test]
    fn faults_are_read_and_shown_alike() {
        for text in [
            "kill@node2:10+5",
            "restart@node2:0+0.5",
            "pause@node2,node3:10+5",
            "cpu=20%@pg:1+2",
            "delay=50ms@pg:1+2",
            "lag=5ms@pg:1+2",
            "loss=10%@pg:1+2",
            "loss=0.5%@pg:1+2",
            "cut@pg:1+2",
            "cut_in@pg:1+2",
            "cut_out@pg:1+2",
            "disk_full@pg:1+2",
            "disk_write=64kB@pg:1+2",
            "memory=4096kB@pg:1+2",
            "clock=+500ms@pg:1+2",
            "clock=-2000ms@pg:1+2",
        ] {
            assert_eq!(plan(text).to_string(), text);
        }
        assert_eq!(plan("delay=1s@pg:1s+2s"), plan("delay=1000ms@pg:1+2"));
        assert_eq!(plan("clock=-2s@pg:1+2"), plan("clock=-2000ms@pg:1+2"));
        assert_eq!(plan("loss=100%@pg:1+2"), plan("cut@pg:1+2"));
    }

    #[test]
    fn what_is_wrong_is_told_by_name() {
        for (text, told) in [
            ("kill", "KIND[=VALUE]@TARGET:BEGIN+LENGTH"),
            ("kill@node2", "KIND[=VALUE]"),
            ("kill@node2:10", "KIND[=VALUE]"),
            ("kill@:1+1", "KIND[=VALUE]"),
            ("kill@node2,:1+1", "KIND[=VALUE]"),
            ("kill@node2:-1+1", "KIND[=VALUE]"),
            ("kill@node2:NaN+1", "KIND[=VALUE]"),
            ("kill@node2:1+0", "0.1 seconds"),
            ("kill=9@node2:1+1", "kill takes no value"),
            ("cpu@node2:1+1", "cpu needs a value: cpu=20%"),
            ("cpu=20@node2:1+1", "cpu=20 is no such value"),
            ("cpu=0%@node2:1+1", "cpu=0% is no"),
            ("loss=101%@node2:1+1", "loss=101% is no"),
            ("delay=50@node2:1+1", "delay=50 is no"),
            ("lag@node2:1+1", "lag needs a value: lag=5ms"),
            ("delay=11s@node2:1+1", "delay=11s is no"),
            ("disk_write=1@node2:1+1", "disk_write=1 is no"),
            ("memory@node2:1+1", "memory needs a value"),
            ("memory=64kB@node2:1+1", "memory=64kB is no"),
            ("clock@node2:1+1", "clock needs a value: clock=+500ms"),
            ("clock=5s@node2:1+1", "clock=5s is no"),
            ("clock=+0s@node2:1+1", "clock=+0s is no"),
            ("clock=+25h@node2:1+1", "clock=+25h is no"),
            ("clock=+-5s@node2:1+1", "clock=+-5s is no"),
            ("fire@node2:1+1", "there is no fault \"fire\""),
        ] {
            let error = text.parse::<FaultPlan>().unwrap_err().to_string();
            assert!(error.contains(told), "{text}: {error}");
        }
    }

    #[test]
    fn a_schedule_must_fit() {
        let checked = |texts: &[&str]| {
            let plans: Vec<FaultPlan> = texts.iter().map(|text| plan(text)).collect();
            check(&plans, 20.0).map_err(|error| error.to_string())
        };
        assert_eq!(checked(&["kill@a:10+5", "kill@a:15+5"]), Ok(()));
        assert_eq!(
            checked(&["kill@a:10+5", "kill@b:10+5", "cut@c:11+1"]),
            Ok(())
        );
        assert_eq!(checked(&["cpu=5%@a:10+5", "loss=1%@a:12+5"]), Ok(()));
        for (texts, told) in [
            (&["kill@a:16+5"][..], "ends after the run"),
            (&["kill@a,a:1+5"], "names a target twice"),
            (&["kill@a:10+5", "pause@b,a:12+1"], "at a at the same time"),
            (&["pause@a:10+5", "pause@a:14+2"], "at a at the same time"),
        ] {
            let error = checked(texts).unwrap_err();
            assert!(error.contains(told), "{texts:?}: {error}");
        }
    }
}

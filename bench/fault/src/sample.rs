//! What servers use during a run, once a second: processor, memory, disk, network.
//!
//! ```text
//! /proc of each process of a server --text--> Reading --difference of two--> Used
//!   here: read by this thread      far: printed by one shell over one ssh
//! ```
//!
//! A server is its process with all descendants. Counts of descendants that have ended are in their
//! parent's, so that sums only grow. Where a server does not run, or was just started anew, there
//! is a gap. The network is that of the server's namespace: Linux does not count it by process.

use super::far::{self, Host};
use super::plan::refused;
use super::process::Process;
use super::target::{FaultTarget, Server};
use links::DriveError;
use links::lock;
use nix::time::{ClockId, clock_gettime};
use std::fmt::Write as _;
use std::io::{BufRead, BufReader};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Time between two samples.
const EVERY: Duration = Duration::from_secs(1);
/// How often a sampling thread looks whether the run is over.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Clock ticks per second in `/proc`, fixed at 100 by Linux for every architecture in use.
const TICKS_PER_S: f64 = 100.0;
/// Bytes of a page. Larger ones exist on few machines.
const PAGE_BYTES: u64 = 4096;

/// What a server used in about a second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Used {
    /// Cores.
    pub cpu: f64,
    /// Resident bytes at its end: own memory of all processes, and the shared memory once, as large
    /// as the process that has most of it sees it.
    pub memory: f64,
    /// Bytes per second read from the disk; `None`: the system does not tell us.
    pub disk_read: Option<f64>,
    /// Bytes per second written to the disk.
    pub disk_written: Option<f64>,
    /// Bytes per second received in its network namespace, loopback included.
    pub net_in: f64,
    /// Bytes per second sent there.
    pub net_out: f64,
}

/// A sample of a server.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// When, in seconds of the measured phase; below 0 before it.
    pub at_s: f64,
    /// What it used since the sample before; `None`: it did not run all the time.
    pub used: Option<Used>,
}

/// All samples of a server.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerSeries {
    /// As targets call it.
    pub name: String,
    /// Its machine, if that is not this one.
    pub host: Option<String>,
    /// In the order of time.
    pub samples: Vec<Sample>,
    /// Why there are no more of them than these; `None`: the run was over.
    pub ended: Option<String>,
}

/// What was sampled in a run.
#[derive(Clone, Debug, Default)]
pub struct Samples {
    /// Each server.
    pub servers: Vec<ServerSeries>,
    /// Processor time of the sampling threads, as a share of one core. That of the far machines is
    /// not in it.
    pub cost: f64,
}

/// Counts of one moment.
#[derive(Clone, Debug, Default, PartialEq)]
struct Reading {
    /// Seconds since its machine started.
    uptime_s: f64,
    /// The number of the first process, and when it started.
    first: Option<(u32, u64)>,
    ticks: u64,
    own_pages: u64,
    shared_pages: u64,
    /// Bytes read and written; `None`: not told.
    disk: Option<(u64, u64)>,
    network: (u64, u64),
}

impl Reading {
    /// By the texts of `/proc`, one after the other: `uptime`, then `stat`, `statm` and `io` of
    /// each process, then `net/dev`.
    fn parse(text: &str) -> Option<Reading> {
        let mut lines = text.lines();
        let uptime_s = lines.next()?.split(' ').next()?.parse().ok()?;
        let mut reading = Reading {
            uptime_s,
            ..Reading::default()
        };
        for line in lines {
            reading.take(line);
        }
        reading.first.map(|_| reading)
    }

    fn take(&mut self, line: &str) {
        let bytes = |name: &str| line.strip_prefix(name)?.trim().parse::<u64>().ok();
        let disk = self.disk.unwrap_or_default();
        if let Some(read) = bytes("read_bytes: ") {
            self.disk = Some((disk.0 + read, disk.1));
        } else if let Some(written) = bytes("write_bytes: ") {
            self.disk = Some((disk.0, disk.1 + written));
        } else if let Some((pid, fields)) = process_line(line) {
            let number = |at: usize| fields.get(at).and_then(|it| it.parse::<u64>().ok());
            // Of this process and of those of its children that have ended.
            self.ticks += (11..15).filter_map(number).sum::<u64>();
            self.first = self.first.or(number(19).map(|start| (pid, start)));
        } else if let Some((_, counts)) = line.split_once(':') {
            let counts: Vec<&str> = counts.split_whitespace().collect();
            let count = |at: usize| counts.get(at).and_then(|it| it.parse::<u64>().ok());
            if let (16, Some(arrived), Some(sent)) = (counts.len(), count(0), count(8)) {
                self.network.0 += arrived;
                self.network.1 += sent;
            }
        } else {
            let pages: Vec<u64> = line.split(' ').filter_map(|it| it.parse().ok()).collect();
            if let [_, resident, shared, _, _, _, _] = pages[..] {
                self.own_pages += resident.saturating_sub(shared);
                self.shared_pages = self.shared_pages.max(shared);
            }
        }
    }

    /// What was used since `before`; `None`: the server is another process.
    fn since(&self, before: &Reading) -> Option<Used> {
        let seconds = self.uptime_s - before.uptime_s;
        if self.first != before.first || seconds <= 0.0 {
            return None;
        }
        // A descendant that its parent has not asked for yet takes its counts with it.
        let rate = |now: u64, before: u64| now.saturating_sub(before) as f64 / seconds;
        let disk = self.disk.zip(before.disk);
        Some(Used {
            cpu: rate(self.ticks, before.ticks) / TICKS_PER_S,
            memory: ((self.own_pages + self.shared_pages) * PAGE_BYTES) as f64,
            disk_read: disk.map(|(now, before)| rate(now.0, before.0)),
            disk_written: disk.map(|(now, before)| rate(now.1, before.1)),
            net_in: rate(self.network.0, before.network.0),
            net_out: rate(self.network.1, before.network.1),
        })
    }
}

/// The number of a process and what stands behind its name, by its line of `stat`.
fn process_line(line: &str) -> Option<(u32, Vec<&str>)> {
    let (pid, rest) = line.split_once(" (")?;
    let fields = rest.rsplit_once(") ")?.1.split(' ').collect();
    Some((pid.parse().ok()?, fields))
}

/// The texts of `/proc` of a process of this machine with its descendants.
fn texts(process: &Process) -> Option<String> {
    let mut out = std::fs::read_to_string("/proc/uptime").ok()?;
    for one in process.tree_by_children() {
        for file in ["stat", "statm", "io"] {
            // One that has ended meanwhile tells nothing, one of somebody else not all.
            if let Ok(text) = std::fs::read_to_string(format!("/proc/{}/{file}", one.pid)) {
                out.push_str(&text);
            }
        }
    }
    let network = std::fs::read_to_string(format!("/proc/{}/net/dev", process.pid));
    out.push_str(&network.ok()?);
    Some(out)
}

/// Those of this process alone.
fn own_texts() -> Option<String> {
    let files = ["/proc/uptime", "/proc/self/stat", "/proc/self/statm"];
    let mut out = String::new();
    for file in files {
        out.push_str(&std::fs::read_to_string(file).ok()?);
    }
    // Where the system counts no disk, the rest is still known.
    out.push_str(&std::fs::read_to_string("/proc/self/io").unwrap_or_default());
    out.push_str(&std::fs::read_to_string("/proc/self/net/dev").ok()?);
    Some(out)
}

/// The same by a shell elsewhere: prints them once a second between two lines, and nothing between
/// them while no process is found. `find` sets `p` to the number of the process.
pub(super) fn script(find: &str) -> String {
    let mut out = String::from("while :; do\n");
    let _ = writeln!(out, "{find}");
    out.push_str(
        "echo @begin\n\
         if [ -n \"$p\" ] && [ -r \"/proc/$p/stat\" ]; then\n\
         all=$p; level=$p\n\
         while [ -n \"$level\" ]; do\n\
         files=; for q in $level; do files=\"$files /proc/$q/task/*/children\"; done\n\
         level=$(cat $files 2>/dev/null); all=\"$all $level\"\n\
         done\n\
         files=; for q in $all; do\n\
         files=\"$files /proc/$q/stat /proc/$q/statm /proc/$q/io\"\n\
         done\n\
         cat /proc/uptime $files \"/proc/$p/net/dev\" 2>/dev/null\n\
         fi\n\
         echo @end\n\
         sleep 1\n\
         done\n",
    );
    out
}

/// Samples of a server as they come.
struct Course {
    series: ServerSeries,
    before: Option<Reading>,
}

impl Course {
    fn new(name: &str, host: Option<String>) -> Course {
        Course {
            series: ServerSeries {
                name: name.to_string(),
                host,
                samples: Vec::new(),
                ended: None,
            },
            before: None,
        }
    }

    fn take(&mut self, at_s: f64, text: Option<&str>) {
        let now = text.and_then(Reading::parse);
        let used = now.as_ref().zip(self.before.as_ref());
        let used = used.and_then(|(now, before)| now.since(before));
        // The first one has nothing before it, and is no gap.
        if used.is_some() || self.before.is_some() || !self.series.samples.is_empty() {
            self.series.samples.push(Sample { at_s, used });
        }
        self.before = now;
    }
}

/// Who is sampled on this machine.
enum Watched {
    Server(Box<Server>),
    /// This process, without what it has started.
    Own,
}

impl Watched {
    fn texts(&mut self) -> Option<String> {
        match self {
            // One that does not run is a gap, and is looked for again.
            Watched::Server(server) => server.seek().and_then(|()| texts(&server.process)),
            Watched::Own => own_texts(),
        }
    }
}

/// Servers that will be sampled.
pub struct Sampler {
    here: Vec<(Watched, Course)>,
    /// With the script that a shell there carries out.
    far: Vec<(Host, String, Course)>,
}

impl Sampler {
    /// Finds the servers, and connects to the machines of those that are elsewhere.
    ///
    /// # Errors
    /// One does not run, or is not reached.
    pub fn prepare(targets: &[FaultTarget]) -> Result<Sampler, DriveError> {
        let mut sampler = Sampler {
            here: Vec::new(),
            far: Vec::new(),
        };
        for target in targets {
            let name = &target.name;
            match target.host() {
                None => {
                    let server = Watched::Server(Box::new(Server::find(target)?));
                    sampler.here.push((server, Course::new(name, None)));
                }
                Some(host) => {
                    let wrong = |error| refused(format!("{name}: {error}"));
                    let find = target.find_far();
                    let runs = format!(
                        "{find}\n[ -n \"$p\" ] && [ -r \"/proc/$p/stat\" ] && exit\n\
                         echo 'it does not run' >&2; exit 1\n"
                    );
                    far::Shell::run(host, &runs).map_err(wrong)?;
                    let course = Course::new(name, Some(host.to_string()));
                    sampler.far.push((host.clone(), script(&find), course));
                }
            }
        }
        Ok(sampler)
    }

    /// Samples this process as well, under a name.
    pub fn add_own(&mut self, name: &str) {
        self.here.push((Watched::Own, Course::new(name, None)));
    }

    /// Samples until the clock, which tells the second of the measured phase, tells no more.
    pub fn run(self, clock: &(dyn Fn() -> Option<f64> + Sync)) -> Samples {
        let began = Instant::now();
        let cost_us = Mutex::new(0);
        let Sampler { here, far } = self;
        let counted = |work: &mut dyn FnMut()| {
            let before_us = thread_us();
            work();
            *lock(&cost_us) += thread_us().saturating_sub(before_us);
        };
        let mut servers = Vec::new();
        std::thread::scope(|scope| {
            let counted = &counted;
            let threads: Vec<_> = far
                .into_iter()
                .map(|(host, script, mut course)| {
                    scope.spawn(move || {
                        counted(&mut || match far::Shell::start(&host, &script) {
                            Ok(mut shell) => follow(&mut shell, &mut course, clock),
                            Err(error) => course.series.ended = Some(error),
                        });
                        course.series
                    })
                })
                .collect();
            let mut here = here;
            counted(&mut || look(&mut here, clock));
            servers.extend(here.into_iter().map(|(_, course)| course.series));
            let far = threads.into_iter().map(|thread| thread.join());
            servers.extend(far.map(|series| series.expect("a sampling thread does not panic")));
        });
        let wall_us = began.elapsed().as_micros().max(1) as f64;
        let cost_us = *lock(&cost_us);
        Samples {
            servers,
            cost: cost_us as f64 / wall_us,
        }
    }
}

/// Processor time of this thread, in microseconds.
fn thread_us() -> u64 {
    let used = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID);
    used.map_or(0, |used| Duration::from(used).as_micros() as u64)
}

/// Samples the servers of this machine.
fn look(here: &mut [(Watched, Course)], clock: &dyn Fn() -> Option<f64>) {
    if here.is_empty() {
        return;
    }
    let mut due = Instant::now();
    while let Some(at_s) = clock() {
        if Instant::now() < due {
            std::thread::sleep(LOOK_EVERY.min(due - Instant::now().min(due)));
            continue;
        }
        for (watched, course) in here.iter_mut() {
            course.take(at_s, watched.texts().as_deref());
        }
        due += EVERY;
    }
}

/// Samples a server of another machine.
fn follow(shell: &mut far::Shell, course: &mut Course, clock: &dyn Fn() -> Option<f64>) {
    let mut lines = BufReader::new(shell.output()).lines();
    let mut text = String::new();
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            // Ends when the shell does.
            while let Some(Ok(line)) = lines.next() {
                match line.as_str() {
                    "@begin" => text.clear(),
                    "@end" => drop(sender.send(text.clone())),
                    _ => {
                        text.push_str(&line);
                        text.push('\n');
                    }
                }
            }
        });
        while let Some(at_s) = clock() {
            match receiver.recv_timeout(LOOK_EVERY) {
                Ok(text) => course.take(
                    at_s,
                    Some(&text).filter(|it| !it.is_empty()).map(|it| &**it),
                ),
                Err(std::sync::mpsc::RecvTimeoutError::Timeout) => {}
                Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => {
                    course.series.ended = Some(shell.why_ended());
                    break;
                }
            }
        }
        shell.end();
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Child, Command, Stdio};

    /// A process with a child that is busy and writes, ended when dropped.
    struct Busy(Child);

    impl Busy {
        fn start() -> Busy {
            let mut command = Command::new("sh");
            command.args(["-c", "sh -c 'while :; do :; done' & wait"]);
            Busy(command.stdin(Stdio::null()).spawn().unwrap())
        }

        fn process(&self) -> Process {
            Process::of(self.0.id()).unwrap()
        }
    }

    impl Drop for Busy {
        fn drop(&mut self) {
            for one in self.process().tree() {
                one.signal(nix::sys::signal::Signal::SIGKILL).unwrap();
            }
            self.0.wait().unwrap();
        }
    }

    const BLOCK: &str = "100.50 9.0\n\
        7 (a (b) c) S 1 7 7 0 -1 4194560 900 0 0 0 150 50 30 20 20 0 1 0 4242 0 0\n\
        500 100 40 1 0 60 0\n\
        rchar: 1\nread_bytes: 4096\nwrite_bytes: 8192\ncancelled_write_bytes: 5\n\
        8 (d) R 7 7 7 0 -1 4194560 900 0 0 0 10 0 0 0 20 0 1 0 5000 0 0\n\
        500 70 50 1 0 60 0\n\
        rchar: 1\nread_bytes: 1\nwrite_bytes: 2\n\
        Inter-|   Receive  |  Transmit\n face |bytes packets errs|bytes packets\n\
        lo: 1000 1 0 0 0 0 0 0 2000 1 0 0 0 0 0 0\n\
        eth0: 10 1 0 0 0 0 0 0 20 1 0 0 0 0 0 0\n";

    #[test]
    fn counts_of_all_processes_are_summed_and_shared_memory_counts_once() {
        let reading = Reading::parse(BLOCK).unwrap();
        let expected = Reading {
            uptime_s: 100.5,
            first: Some((7, 4242)),
            ticks: 260,
            own_pages: 80,
            shared_pages: 50,
            disk: Some((4097, 8194)),
            network: (1010, 2020),
        };
        assert_eq!(reading, expected);
        assert_eq!(Reading::parse("100.50 9.0\nlo: 1\n"), None);
        assert_eq!(Reading::parse(""), None);
        let before = Reading {
            uptime_s: 98.5,
            ticks: 160,
            disk: Some((97, 8194)),
            network: (10, 20),
            ..expected
        };
        let used = Used {
            cpu: 0.5,
            memory: 130.0 * 4096.0,
            disk_read: Some(2000.0),
            disk_written: Some(0.0),
            net_in: 500.0,
            net_out: 1000.0,
        };
        assert_eq!(reading.since(&before), Some(used));
        let other = Reading {
            first: Some((7, 4243)),
            ..before.clone()
        };
        assert_eq!(reading.since(&other), None);
        assert_eq!(reading.since(&reading), None);
    }

    #[test]
    fn a_shell_finds_a_process_by_its_file() {
        let file = std::env::temp_dir().join(format!("trellis-find-{}", std::process::id()));
        let target: FaultTarget = format!("a=ssh:host,pidfile:{}", file.display())
            .parse()
            .unwrap();
        let found = || {
            let script = format!("p=1\n{}\necho \"<$p>\"", target.find_far());
            let output = Command::new("sh").args(["-c", &script]).output().unwrap();
            String::from_utf8(output.stdout).unwrap()
        };
        assert_eq!(found(), "<>\n");
        for (text, expected) in [("42", "<42>\n"), ("43\n/data\n", "<43>\n"), ("", "<>\n")] {
            std::fs::write(&file, text).unwrap();
            assert_eq!(found(), expected, "{text:?}");
        }
        std::fs::remove_file(&file).unwrap();
    }

    #[test]
    fn a_shell_prints_what_we_read() {
        let busy = Busy::start();
        let process = busy.process();
        while process.tree().len() < 2 {
            std::thread::yield_now();
        }
        let find = format!("p={}", process.pid);
        let mut shell = Command::new("sh");
        shell.arg("-s").stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut shell = shell.spawn().unwrap();
        let before = Reading::parse(&texts(&process).unwrap()).unwrap();
        let script = script(&find);
        std::io::Write::write_all(&mut shell.stdin.take().unwrap(), script.as_bytes()).unwrap();
        let lines = BufReader::new(shell.stdout.take().unwrap()).lines();
        let lines = lines
            .map(Result::unwrap)
            .skip(1)
            .take_while(|line| line != "@end");
        let text = lines.collect::<Vec<_>>().join("\n");
        let after = Reading::parse(&texts(&process).unwrap()).unwrap();
        shell.kill().unwrap();
        shell.wait().unwrap();
        let far = Reading::parse(&text).unwrap();
        assert_eq!(far.first, before.first);
        assert!(
            (before.ticks..=after.ticks).contains(&far.ticks),
            "{far:?} {after:?}"
        );
        assert!((before.uptime_s..=after.uptime_s).contains(&far.uptime_s));
        assert!(
            far.own_pages > 0 && far.shared_pages > 0 && far.disk.is_some(),
            "{far:?}"
        );
    }

    /// What was sampled of a server that works for three seconds, is gone for one and a half, and
    /// works again; and how much of a core it has used in the first three.
    fn sampled() -> (Samples, f64) {
        let file = std::env::temp_dir().join(format!("trellis-sample-{}", std::process::id()));
        let note = |busy: &Busy| std::fs::write(&file, busy.0.id().to_string()).unwrap();
        let first = Busy::start();
        note(&first);
        let target: FaultTarget = format!("a=pidfile:{}", file.display()).parse().unwrap();
        let sampler = Sampler::prepare(&[target]).unwrap();
        let began = Instant::now();
        let clock = || Some(began.elapsed().as_secs_f64() - 1.0).filter(|at_s| *at_s < 6.5);
        let told = std::thread::scope(|scope| {
            let running = scope.spawn(|| sampler.run(&clock));
            let ticks = || {
                Reading::parse(&texts(&first.process()).unwrap())
                    .unwrap()
                    .ticks
            };
            let before = ticks();
            std::thread::sleep(Duration::from_millis(3_050));
            let used_s = (ticks() - before) as f64 / TICKS_PER_S;
            drop(first);
            std::thread::sleep(Duration::from_millis(1_500));
            let second = Busy::start();
            note(&second);
            (running.join().unwrap(), used_s)
        });
        std::fs::remove_file(&file).unwrap();
        told
    }

    #[test]
    fn a_server_is_sampled_each_second_with_a_gap_where_it_did_not_run() {
        // The machine may stand still just then.
        let is_in_time = |(samples, used_s): &(Samples, f64)| {
            let samples = &samples.servers[0].samples;
            let is_there: Vec<bool> = samples.iter().map(|it| it.used.is_some()).collect();
            // Two seconds without it, and one whose beginning it has not seen.
            let has_gap = is_there.starts_with(&[true, true, true, false, false]);
            let cpu = samples.iter().take(3).filter_map(|it| it.used.as_ref());
            let sum: f64 = cpu.map(|used| used.cpu).sum();
            let is_second = |pair: &[Sample]| (0.8..1.3).contains(&(pair[1].at_s - pair[0].at_s));
            has_gap && (sum - used_s).abs() < 0.2 && samples.windows(2).all(is_second)
        };
        let told = peer::again(sampled, is_in_time);
        assert!(is_in_time(&told), "{told:?}");
        let samples = told.0;
        let series = &samples.servers[0];
        assert_eq!((series.name.as_str(), &series.ended), ("a", &None));
        assert!(samples.cost < 0.01, "{}", samples.cost);
    }

    #[test]
    fn who_does_not_run_is_not_sampled() {
        let target: FaultTarget = "a=pidfile:/nowhere".parse().unwrap();
        let error = Sampler::prepare(&[target]).err().unwrap().to_string();
        assert!(error.contains("a: no process of /nowhere runs"), "{error}");
    }
}

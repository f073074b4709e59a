//! Faults of a run at a real PostgreSQL: what is put in costs what it should, and the run goes on.
#![allow(
    clippy::unwrap_used,
    reason = "a test file whose helpers are not test functions"
)]

use drive::report;
use drive::run::{RunReport, RunnerOptions};
use drive::tpcc::{self, LoadOptions, RunOptions};
use fault::{Fault, Faults, Process};
use links::view::Silent;
use peer::again;
use servers::{Kind, Server};
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use workload::tpcc::{Scale, Skew};

const SCALE: Scale = Scale {
    warehouses: 1,
    items: 500,
    customers: 60,
    orders: 60,
    skew: Skew::NONE,
};

/// A fault is undone within so many seconds.
const UNDO_S_MAX: f64 = 2.0;

/// A PostgreSQL with data, and how it is named and started again.
struct Broken {
    server: Server,
    target: String,
    _turn: MutexGuard<'static, ()>,
}

impl Broken {
    fn start() -> Option<Broken> {
        Broken::start_with(&[])
    }

    /// The same with further settings.
    fn start_with(settings: &[&str]) -> Option<Broken> {
        // One after the other: a noisy baseline shows no fault.
        static TURN: Mutex<()> = Mutex::new(());
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let arguments: Vec<&str> = settings.iter().flat_map(|it| ["-c", it]).collect();
        let server = peer::start(Kind::Postgres, &arguments)?;
        let options = LoadOptions {
            scale: SCALE,
            ..LoadOptions::new(&server.url("postgres"), 1)
        };
        tpcc::load(&options, &mut Silent).unwrap();
        let file = server.data().join("postmaster.pid");
        let process = postmaster(&server).unwrap();
        // It was killed, and the test, its parent, does not ask for it: it seems to be alive.
        let words = process.command_line().unwrap();
        let words: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
        // It refuses to be root; nobody else may become somebody else.
        let user = match is_root() {
            true => "setpriv --reuid=65534 --regid=65534 --clear-groups ",
            false => "",
        };
        let target = format!(
            "pg=pidfile:{0},data:{1},stop:INT,start:cd / && rm -f {0} && exec {user}{2}",
            file.display(),
            server.data().display(),
            words.join(" ")
        );
        Some(Broken {
            server,
            target,
            _turn: turn,
        })
    }

    /// Starts it anew with a clock that can be set.
    fn with_clock(mut self) -> Broken {
        let folder = self.server.data().parent().unwrap().to_path_buf();
        let library = fault::write_clock_library(&folder).unwrap();
        let file = folder.join("pg.clock");
        let (before, command) = self.target.split_once(",start:").unwrap();
        let variable = fault::CLOCK_VARIABLE;
        let (library, shown) = (library.display(), file.display());
        // Behind what changes the user: whoever runs first with it makes the file.
        let words = command.find('\'').unwrap();
        let (user, words) = command.split_at(words);
        let command = format!("{user}env LD_PRELOAD={library} {variable}={shown} {words}");
        self.target = format!("{before},clock:{shown},start:{command}");
        let process = postmaster(&self.server).unwrap();
        let script = format!(
            "kill -INT {0}; while kill -0 {0} && ! grep -q zombie /proc/{0}/status; \
            do sleep 0.01; done",
            process.pid
        );
        let shell = |script: &str| Command::new("sh").args(["-c", script]).spawn().unwrap();
        shell(&script).wait().unwrap();
        // It goes on in the background, and is no child of ours then.
        let started = shell(&format!("({command}) >/dev/null 2>&1 &")).wait();
        assert!(started.unwrap().success());
        let target = links::url::Target::parse(&self.server.url("postgres")).unwrap();
        let until = std::time::Instant::now() + Duration::from_secs(20);
        while links::link::Link::connect_any(&target, Some(Duration::from_secs(1))).is_err() {
            assert!(std::time::Instant::now() < until, "PostgreSQL is not back");
            std::thread::sleep(Duration::from_millis(20));
        }
        self
    }

    /// A run of this length with these faults.
    fn run(&self, faults: &[&str], seconds: u64) -> Result<RunReport, String> {
        let faults = Faults {
            plans: faults.iter().map(|fault| fault.parse().unwrap()).collect(),
            targets: vec![self.target.parse().unwrap()],
            journal: None,
        };
        let runner = RunnerOptions {
            clients: 8,
            warmup: Duration::from_secs(1),
            length: Duration::from_secs(seconds),
            faults,
            ..RunnerOptions::default()
        };
        let options = RunOptions {
            runner,
            ..RunOptions::new(&self.server.url("postgres"))
        };
        tpcc::run(&options, &mut Silent).map_err(|error| error.to_string())
    }
}

impl Broken {
    /// The same run again until all faults have come as planned and were undone soon: a machine
    /// that stands still costs what a fault costs.
    fn run_until(
        &self,
        faults: &[&str],
        seconds: u64,
        is_as_planned: impl Fn(&RunReport) -> bool,
    ) -> RunReport {
        let is_soon = |fault: &Fault| fault.undo_s < UNDO_S_MAX;
        let run = || self.run(faults, seconds);
        let found = again(run, |run| {
            let run = run.as_ref();
            run.is_ok_and(|run| run.broken.iter().all(is_soon) && is_as_planned(run))
        });
        let run = found.unwrap();
        let table = report::table(&run);
        assert!(run.passed(), "{table}");
        assert!(is_as_planned(&run), "{:?}\n{table}", run.broken);
        assert!(run.broken.iter().all(is_soon), "{:?}", run.broken);
        run
    }
}

impl Drop for Broken {
    fn drop(&mut self) {
        // One that was started again is no child of ours.
        if let Some(process) = postmaster(&self.server) {
            let script = format!("kill -QUIT {}", process.pid);
            let _ = Command::new("sh").args(["-c", &script]).status();
        }
    }
}

fn postmaster(server: &Server) -> Option<Process> {
    let text = std::fs::read_to_string(server.data().join("postmaster.pid")).ok()?;
    Process::of(text.lines().next()?.trim().parse().ok()?)
}

fn is_root() -> bool {
    std::fs::metadata("/proc/self").unwrap().uid() == 0
}

#[test]
fn a_schedule_of_faults_is_measured_one_by_one() {
    let Some(broken) = Broken::start() else {
        return;
    };
    let mut faults = vec!["pause@pg:3+1", "delay=50ms@pg:6+1.5"];
    if is_root() {
        faults.extend(["cut@pg:10+1", "cpu=10%@pg:14+2"]);
    }
    let costs_what_it_should = |fault: &Fault| {
        let Ok(cost) = fault.cost else { return false };
        let depth_min = if fault.kind.name() == "cpu" { 0.3 } else { 0.8 };
        let length_s = fault.end_s - fault.begin_s;
        let is_seen = |at: f64| at <= 2.0 * fault.step_s + 0.1;
        // Nothing is back before the fault is undone.
        let is_gone = |at: f64| at > length_s - 2.0 * fault.step_s;
        cost.depth >= depth_min
            && cost.t_detect_s.is_some_and(is_seen)
            && cost.t50_s.is_some_and(|at| at < length_s + 2.0)
            && cost.t90_s.is_none_or(is_gone)
            && fault.begin_s - fault.planned_s.0 < 0.1
    };
    let run = broken.run_until(&faults, 19, |run| {
        run.broken.iter().all(costs_what_it_should)
    });
    let (table, json) = (report::table(&run), report::json(&run));
    assert_eq!(run.broken.len(), faults.len());
    assert!(
        json["faults"][0]["proof"]
            .as_str()
            .unwrap()
            .contains("processes in state T")
    );
    assert!(report::html(&run).contains("<h2>Faults</h2>"));
    assert!(table.contains("pause@pg"), "{table}");
}

#[test]
fn the_clock_of_postgres_jumps_and_its_memory_runs_short() {
    let Some(broken) = Broken::start().map(Broken::with_clock) else {
        return;
    };
    let mut faults = vec!["clock=+500ms@pg:2+1", "clock=-2s@pg:4+1"];
    if is_root() {
        faults.push("memory=2MB@pg:6+2");
    }
    let run = broken.run_until(&faults, 10, |run| {
        let mut clocks = run.broken.iter().zip([500, -2_000]);
        clocks.all(|(fault, offset_ms)| {
            // What the server has said by SQL.
            let (_, told) = fault.proof.split_once("by SQL it differs by ").unwrap();
            let told_ms: i64 = told.trim_end_matches(" ms").parse().unwrap();
            (told_ms - offset_ms).abs() < 150
        })
    });
    if let Some(memory) = run.broken.get(2) {
        assert!(memory.proof.contains("no more than 2097152"), "{memory:?}");
        // What it writes takes memory of the system.
        assert!(
            memory.proof.ends_with("held up, and the server itself"),
            "{memory:?}"
        );
    }
}

/// Has the system forget what it has of the files below a folder.
fn forget(folder: &Path) {
    use nix::fcntl::{PosixFadviseAdvice::POSIX_FADV_DONTNEED, posix_fadvise};
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            forget(&path);
        } else if let Ok(file) = File::open(&path) {
            // One that is being written is not forgotten.
            let _ = posix_fadvise(&file, 0, 0, POSIX_FADV_DONTNEED);
        }
    }
}

#[test]
fn reads_of_postgres_are_slowed_down_where_they_come_from_the_disk() {
    // Sixteen pages of its own: nearly each row is read anew.
    let Some(broken) = Broken::start_with(&["shared_buffers=128kB"]) else {
        return;
    };
    let slow = ["disk_read=512kB@pg:3+3"];
    if !is_root() {
        let refused = broken.run(&slow, 8).unwrap_err();
        assert!(
            refused.contains("disk_read=512kB is not possible at pg"),
            "{refused}"
        );
        return;
    }
    let is_over = AtomicBool::new(false);
    let run = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                forget(&broken.server.data().join("base"));
                std::thread::sleep(Duration::from_millis(20));
            }
        });
        // Before and after it reads more than it is allowed to meanwhile.
        let is_slowed_down = |run: &RunReport| {
            let server = &report::json(run)["servers"]["series"][0];
            let most = server["max"]["disk_read_bytes_per_s"].as_f64();
            run.broken[0].cost.is_ok_and(|cost| cost.depth > 0.3) && most > Some(1e6)
        };
        let run = broken.run_until(&slow, 8, is_slowed_down);
        is_over.store(true, Ordering::Relaxed);
        run
    });
    let fault = &run.broken[0];
    assert!(fault.proof.contains("of 524288 allowed"), "{fault:?}");
}

#[test]
fn a_killed_postgres_is_back_after_its_start() {
    let Some(broken) = Broken::start() else {
        return;
    };
    let before = postmaster(&broken.server).unwrap();
    // What it uses is sampled meanwhile, with gaps where it does not run.
    let is_gap = |run: &RunReport| -> Vec<bool> {
        let json = report::json(run);
        let cpu = json["servers"]["series"][0]["cpu"].as_array().unwrap();
        cpu.iter().map(serde_json::Value::is_null).collect()
    };
    let is_as_planned = |run: &RunReport| {
        let is_gap = is_gap(run);
        let gaps = is_gap.iter().filter(|is_gap| **is_gap).count();
        (12..=14).contains(&is_gap.len())
            && (2..=6).contains(&gaps)
            && run.broken.iter().all(|fault| {
                let is_late = |at: f64| at >= 1.0 - fault.step_s;
                fault
                    .cost
                    .is_ok_and(|cost| cost.depth > 0.8 && cost.t50_s.is_some_and(is_late))
            })
    };
    let faults = ["kill@pg:3+1", "restart@pg:8+1"];
    let run = broken.run_until(&faults, 13, is_as_planned);
    let table = report::table(&run);
    assert!(!before.is_alive() && postmaster(&broken.server).is_some());
    for fault in &run.broken {
        assert!(fault.proof.contains("is gone, port"), "{fault:?}");
    }
    assert!(run.counters.is_empty());
    let json = report::json(&run);
    let server = &json["servers"]["series"][0];
    let seconds = server["seconds"].as_array().unwrap();
    assert_eq!(seconds.len(), is_gap(&run).len());
    for name in ["cpu", "memory_bytes", "disk_written_bytes_per_s"] {
        let (mean, most) = (&server["mean"][name], &server["max"][name]);
        let (mean, most) = (mean.as_f64().unwrap(), most.as_f64().unwrap());
        assert!(mean > 0.0 && most >= mean, "{name}: {server}");
    }
    assert!(server["max"]["cpu"].as_f64().unwrap() < 4.0, "{server}");
    let memory = server["mean"]["memory_bytes"].as_f64().unwrap();
    assert!((2e6..1e9).contains(&memory), "{server}");
    assert!(table.contains("server (mean/max)"), "{table}");
    assert!(table.contains("pg did not run all the time in"), "{table}");
    let page = report::html(&run);
    assert_eq!(
        page.matches("MiB<").count() + page.matches("MiB/s<").count(),
        10
    );
    assert!(run.samples.cost < 0.01, "{}", run.samples.cost);
}

#[test]
fn a_fault_that_nothing_proves_has_no_number() {
    let Some(broken) = Broken::start() else {
        return;
    };
    let refused = |faults: &[&str]| broken.run(faults, 10).unwrap_err();
    if is_root() {
        // So many cores are never used.
        let error = refused(&["cpu=10000%@pg:2+1"]);
        assert!(error.contains("no probe has seen it"), "{error}");
    }
    let error = refused(&["disk_full@pg:2+1"]);
    assert!(error.contains("disk_full is not possible at pg"), "{error}");
    let error = refused(&["pause@pg:9+2"]);
    assert!(error.contains("ends after the run"), "{error}");
    assert!(broken.run(&[], 2).unwrap().passed());
}

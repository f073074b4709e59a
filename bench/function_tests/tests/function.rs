//! The function tests against real servers: those that pass, and those in which each test must find
//! what is wrong.
#![allow(
    clippy::unwrap_used,
    reason = "a test file whose helpers are not test functions"
)]

use function_tests::durability::{self, Crash};
use function_tests::{
    DeadlockReport, Found, FunctionOptions, FunctionReport, Judgement, Ledgered, SnapshotReport,
    Test, Verdict,
};
use links::answers::Answers;
use links::link::Link;
use links::url::Target;
use links::view::Silent;
use peer::{Peer, again};
use servers::Kind;
use std::cell::RefCell;
use std::net::TcpListener;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use workload::wire::Isolation;

fn options(url: &str, test: Test, count: u32, isolation: Isolation) -> FunctionOptions {
    FunctionOptions {
        tests: vec![test],
        count: Some(count),
        isolation,
        ..FunctionOptions::new(url)
    }
}

/// Runs one test.
fn run(options: &FunctionOptions) -> (FunctionReport, Judgement) {
    let report = function_tests::run(options, &mut Silent).unwrap();
    let judgement = report.found[0].judgement();
    (report, judgement)
}

fn connect(url: &str) -> Link {
    let target = Target::parse(url).unwrap();
    Link::connect_any(&target, Some(Duration::from_secs(60))).unwrap()
}

fn command(url: &str, sql: &str) {
    connect(url).command(sql).unwrap();
}

fn shell(script: &str) {
    let status = Command::new("sh").args(["-c", script]).status().unwrap();
    assert!(status.success(), "{script}");
}

fn snapshot_of(report: &FunctionReport) -> &SnapshotReport {
    match &report.found[0] {
        Found::Snapshot(found) => found,
        other => panic!("{other:?}"),
    }
}

fn deadlock_of(report: &FunctionReport) -> &DeadlockReport {
    match &report.found[0] {
        Found::Deadlock(found) => found,
        other => panic!("{other:?}"),
    }
}

/// Deadlocks until half of them end within `most`: a machine that stands still makes each of them
/// late, which the test holds against the server.
fn deadlocks(wanted: &FunctionOptions, most: Duration) -> (FunctionReport, Judgement) {
    again(
        || run(wanted),
        |(report, judgement)| {
            let found = deadlock_of(report);
            let is_soon = found.latency_median().is_some_and(|it| it <= most);
            let are_closed = found.cycles.iter().all(|cycle| cycle.is_closed);
            is_soon && (are_closed || judgement.verdict == Verdict::Failed)
        },
    )
}

/// Snapshots until enough of them have met commits: on a busy machine fewer do. What must not be
/// torn and is ends it at once.
fn snapshots(url: &str, isolation: Isolation) -> (FunctionReport, Judgement) {
    for count in [200, 1_000, 5_000] {
        let (report, judgement) = run(&options(url, Test::Snapshot, count, isolation));
        let found = snapshot_of(&report);
        let is_weak = isolation == Isolation::ReadCommitted;
        let is_met = match is_weak {
            true => found.ordinary.torn > 0 && found.read_only.torn > 0,
            false => found.ordinary.crossed > 0 && found.read_only.crossed > 0,
        };
        let is_wrong = !is_weak && found.torn() > 0;
        let too_few = judgement.verdict == Verdict::NotExercised;
        let is_met = is_met && found.ordinary.overlapped > 3 && found.transfers > 30;
        if is_wrong || is_met && !too_few {
            return (report, judgement);
        }
    }
    run(&options(url, Test::Snapshot, 20_000, isolation))
}

#[test]
fn postgresql_tears_snapshots_at_read_committed_only() {
    let Some(peer) = Peer::start() else { return };
    let url = peer.url("postgres");
    for isolation in Isolation::ALL {
        let (report, judgement) = snapshots(&url, isolation);
        let found = snapshot_of(&report);
        let json = function_tests::json(&report);
        assert!(found.ordinary.overlapped > 3 && found.transfers > 30);
        assert_eq!(json["tests"]["snapshot"]["torn"], found.torn());
        if isolation == Isolation::ReadCommitted {
            assert_eq!(judgement.verdict, Verdict::Failed, "{judgement:?}");
            // Both kinds of reads are torn, and one is explained.
            assert!(found.ordinary.torn > 0 && found.read_only.torn > 0);
            let example = found.example.as_ref().unwrap();
            assert!(example.contains("instead of 240000"), "{example}");
            assert_eq!(json["verdict"], "failed");
        } else {
            assert_eq!(judgement.verdict, Verdict::Passed, "{judgement:?}");
            assert!(found.ordinary.crossed > 0 && found.read_only.crossed > 0);
        }
    }
    let left = "SELECT count(*) FROM pg_tables WHERE tablename LIKE 'bench_function%'";
    assert_eq!(peer.psql("postgres", left), "0");
}

#[test]
fn reads_wait_for_commits_that_are_rare() {
    let Some(peer) = Peer::start() else { return };
    let url = peer.url("postgres");
    // Reads go on, and four transfers pass between two of these locks.
    let hold = "DO $$ BEGIN LOOP \
        IF to_regclass('bench_function_snapshot') IS NOT NULL THEN \
        LOCK TABLE bench_function_snapshot IN SHARE MODE; END IF; \
        PERFORM pg_sleep(0.15); COMMIT; END LOOP; END $$";
    let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'DO $$%'";
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut link = connect(&url);
            // It is ended in the middle.
            let _ = link.command(hold);
        });
        let (report, judgement) = run(&options(
            &url,
            Test::Snapshot,
            400,
            Isolation::RepeatableRead,
        ));
        peer.psql("postgres", end);
        let found = snapshot_of(&report);
        assert_eq!(
            judgement.verdict,
            Verdict::Passed,
            "{judgement:?} {found:?}"
        );
    });
}

#[test]
fn postgresql_finds_deadlocks_when_it_has_promised() {
    let Some(peer) = Peer::start() else { return };
    let url = peer.url("postgres");
    for (isolation, timeout_ms) in Isolation::ALL.into_iter().zip([1_000, 300, 300]) {
        let set = format!("ALTER DATABASE postgres SET deadlock_timeout = {timeout_ms}");
        peer.psql("postgres", &set);
        let most = Duration::from_millis(timeout_ms as u64 + 100);
        let (report, judgement) = deadlocks(&options(&url, Test::Deadlock, 6, isolation), most);
        let found = deadlock_of(&report);
        assert_eq!(judgement.verdict, Verdict::Passed, "{judgement:?}");
        assert!(judgement.because.contains("detected"), "{judgement:?}");
        assert_eq!(found.rule.name(), "none");
        let promised = found.promised.unwrap();
        assert_eq!(promised.as_millis(), timeout_ms);
        assert!(found.states().contains_key("40P01"), "{found:?}");
        assert!(
            found.cycles.iter().all(|cycle| cycle.is_closed),
            "{found:?}"
        );
        assert!(found.latency_median().unwrap() <= most);
        let json = function_tests::json(&report);
        assert_eq!(json["tests"]["deadlock"]["outcomes"]["detected"], 6);
    }
}

#[test]
fn a_server_that_looks_for_no_deadlocks_fails() {
    let Some(server) = peer::start(Kind::Postgres, &["-c", "deadlock_timeout=10min"]) else {
        return;
    };
    let mut wanted = options(
        &server.url("postgres"),
        Test::Deadlock,
        4,
        Isolation::default(),
    );
    wanted.cycle_limit = Duration::from_secs(2);
    let began = Instant::now();
    let (report, judgement) = run(&wanted);
    assert_eq!(judgement.verdict, Verdict::Failed);
    assert!(
        judgement.because.contains("1 of 1 cycles had not ended"),
        "{judgement:?}"
    );
    assert_eq!(
        function_tests::json(&report)["tests"]["deadlock"]["cycles"][0]["outcome"],
        "not_ended"
    );
    // Far sooner than the server looks for a deadlock.
    assert!(began.elapsed() < Duration::from_secs(120));
    // Its sessions were ended, so the table is gone.
    let mut link = connect(&server.url("postgres"));
    assert!(
        link.command("SELECT 1 FROM bench_function_deadlock")
            .is_err()
    );
    // One that ends each wait after a second ends cycles, too, but also waits that are none.
    let lock_timeout = "ALTER DATABASE postgres SET lock_timeout = '1s'";
    command(&server.url("postgres"), lock_timeout);
    wanted.cycle_limit = Duration::from_secs(30);
    let (_, judgement) = run(&wanted);
    assert_eq!(judgement.verdict, Verdict::Failed);
    assert!(
        judgement.because.contains("by a limit of waits"),
        "{judgement:?}"
    );
}

#[test]
fn mariadb_keeps_snapshots_and_finds_deadlocks() {
    let Some(server) = peer::start(Kind::MariaDb, &[]) else {
        return;
    };
    let url = server.url("test");
    for (isolation, verdict) in [
        (Isolation::RepeatableRead, Verdict::Passed),
        (Isolation::ReadCommitted, Verdict::Failed),
    ] {
        let is_enough = |found: &Judgement| match verdict {
            Verdict::Passed => found.verdict != Verdict::NotExercised,
            _ => found.verdict == verdict,
        };
        let wanted = options(&url, Test::Snapshot, 200, isolation);
        let judgement = again(|| run(&wanted).1, is_enough);
        assert_eq!(judgement.verdict, verdict, "{judgement:?}");
    }
    let wanted = options(&url, Test::Deadlock, 6, Isolation::RepeatableRead);
    let most = Duration::from_millis(50);
    let (report, judgement) = deadlocks(&wanted, most);
    let found = deadlock_of(&report);
    assert_eq!(judgement.verdict, Verdict::Passed, "{judgement:?}");
    assert!(judgement.because.contains("detected"), "{judgement:?}");
    assert_eq!(found.states().keys().collect::<Vec<_>>(), [&"40001"]);
    assert!(found.latency_median().unwrap() <= most);
    let off = "SET GLOBAL innodb_deadlock_detect = OFF";
    command(&url, off);
    command(&url, "SET GLOBAL innodb_lock_wait_timeout = 1");
    let (_, judgement) = run(&wanted);
    assert_eq!(judgement.verdict, Verdict::Failed);
    assert!(
        judgement.because.contains("by a limit of waits"),
        "{judgement:?}"
    );
    command(&url, "SET GLOBAL innodb_lock_wait_timeout = 50");
    let wanted = FunctionOptions {
        cycle_limit: Duration::from_secs(2),
        ..wanted
    };
    let (_, judgement) = run(&wanted);
    assert!(judgement.because.contains("had not ended"), "{judgement:?}");
}

/// A file for what was acknowledged; removed when dropped.
struct Record(PathBuf);

impl Record {
    fn new(name: &str) -> Record {
        let name = format!("trellis-{name}-{}", std::process::id());
        Record(std::env::temp_dir().join(name))
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// A PostgreSQL that was killed and runs again; ended when dropped.
struct Again(Child);

impl Drop for Again {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The process of the server, all others of which end with it.
fn pid(server: &servers::Server) -> String {
    let text = std::fs::read_to_string(server.data().join("postmaster.pid")).unwrap();
    text.lines().next().unwrap().trim().to_owned()
}

/// Kills the server, and starts it once more.
fn kill_and_start(server: &servers::Server) -> Again {
    let pid = pid(server);
    let words = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap();
    let words: Vec<&str> = words.split('\0').filter(|word| !word.is_empty()).collect();
    shell(&format!("kill -9 {pid}"));
    std::fs::remove_file(server.data().join("postmaster.pid")).unwrap();
    let start = || {
        // It refuses to be root; nobody else may become somebody else.
        let is_root = std::fs::metadata("/proc/self").unwrap().uid() == 0;
        let mut command = Command::new(if is_root { "setpriv" } else { words[0] });
        match is_root {
            true => command
                .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
                .args(&words),
            false => command.args(&words[1..]),
        };
        command.current_dir("/").stdin(Stdio::null());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        Again(command.spawn().unwrap())
    };
    let mut again = start();
    let until = Instant::now() + Duration::from_secs(60);
    let target = Target::parse(&server.url("postgres")).unwrap();
    while Link::connect_any(&target, Some(Duration::from_secs(5))).is_err() {
        assert!(Instant::now() < until, "PostgreSQL does not come back");
        std::thread::sleep(Duration::from_millis(50));
        // It does not start while processes of the one before have not ended.
        if again.0.try_wait().unwrap().is_some() {
            again = start();
        }
    }
    again
}

#[test]
fn acknowledged_commits_of_postgresql_survive_a_kill() {
    let Some(server) = peer::start(Kind::Postgres, &[]) else {
        return;
    };
    let url = server.url("postgres");
    let record = Record::new("killed");
    let wanted = options(&url, Test::Durability, 100_000, Isolation::default());
    let again = RefCell::new(None);
    let crash = Crash::at(200, || {
        *again.borrow_mut() = Some(kill_and_start(&server));
        Ok(())
    });
    let (recorded, verified) = durability::audit(&wanted, &record.0, crash, &mut Silent).unwrap();
    let judgement = verified.judgement();
    assert_eq!(judgement.verdict, Verdict::Passed, "{judgement:?}");
    assert!(
        (200..100_000).contains(&recorded.acknowledged),
        "{recorded:?}"
    );
    assert_eq!(
        recorded.clients_lost, recorded.clients,
        "all were connected to it"
    );
    // The same in two steps, and what the second one must find.
    let verify = FunctionOptions {
        ledger: Some(Ledgered::Verify(record.0.clone())),
        ..wanted
    };
    assert_eq!(run(&verify).1.verdict, Verdict::Passed);
    let text = std::fs::read_to_string(&record.0).unwrap();
    std::fs::write(&record.0, format!("{text}c 99999\na 99999\n")).unwrap();
    let (report, judgement) = run(&verify);
    assert_eq!(judgement.verdict, Verdict::Failed);
    assert!(judgement.because.contains("99999"), "{judgement:?}");
    let json = function_tests::json(&report);
    assert_eq!(json["tests"]["durability"]["lost"]["first"][0], 99_999);
    std::fs::write(&record.0, &text).unwrap();
    command(&url, "DELETE FROM bench_function_durability WHERE k = 1");
    let (report, _) = run(&verify);
    assert_eq!(
        function_tests::json(&report)["tests"]["durability"]["torn"]["count"],
        1
    );
    drop(again);
}

/// With `synchronous_commit` off PostgreSQL answers before its log is written; with its writer
/// stopped, long before that. Killed, it forgets.
#[test]
fn commits_that_were_acknowledged_too_early_are_missed() {
    let Some(server) = peer::start(Kind::Postgres, &["-c", "synchronous_commit=off"]) else {
        return;
    };
    let url = server.url("postgres");
    let record = Record::new("early");
    let wanted = options(&url, Test::Durability, 100_000, Isolation::default());
    let writers = "SELECT pid FROM pg_stat_activity WHERE backend_type IN \
                   ('walwriter', 'checkpointer', 'background writer')";
    let mut link = connect(&url);
    let mut answers = Answers::new();
    link.query(writers, &mut answers).unwrap();
    let pids: Vec<&str> = (0..3).map(|row| answers.text(0, row, 0)).collect();
    let pids = pids.join(" ");
    link.close();
    shell(&format!("kill -STOP {pids}"));
    let again = RefCell::new(None);
    let crash = Crash::at(300, || {
        shell(&format!("kill -9 {pids}"));
        *again.borrow_mut() = Some(kill_and_start(&server));
        Ok(())
    });
    let (_, verified) = durability::audit(&wanted, &record.0, crash, &mut Silent).unwrap();
    let judgement = verified.judgement();
    assert_eq!(judgement.verdict, Verdict::Failed, "{judgement:?}");
    assert!(!verified.audit.lost.is_empty());
    drop(again);
}

#[test]
fn a_server_that_dies_during_a_test_is_an_error() {
    for test in [Test::Snapshot, Test::Deadlock] {
        let Some(server) = peer::start(Kind::Postgres, &[]) else {
            return;
        };
        let url = server.url("postgres");
        let wanted = options(&url, test, 100_000, Isolation::default());
        let pid = pid(&server);
        // So many cycles or snapshots take far longer.
        let killer = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_secs(2));
            shell(&format!("kill -9 {pid}"));
        });
        let began = Instant::now();
        let error = function_tests::run(&wanted, &mut Silent).unwrap_err();
        assert!(error.to_string().contains("test"), "{error}");
        assert!(began.elapsed() < Duration::from_secs(60), "{error}");
        killer.join().unwrap();
    }
}

#[test]
fn what_was_never_crashed_or_is_elsewhere_does_not_pass() {
    let Some(peer) = Peer::start() else { return };
    let url = peer.url("postgres");
    let record = Record::new("elsewhere");
    let wanted = options(&url, Test::Durability, 50, Isolation::default());
    let crash = Crash::at(1_000, || panic!("there are not so many"));
    let error = durability::audit(&wanted, &record.0, crash, &mut Silent).unwrap_err();
    assert!(error.to_string().contains("was not crashed"), "{error}");
    let crash = Crash::at(10, || Err(links::DriveError::Option("no crash".into())));
    let error = durability::audit(&wanted, &record.0, crash, &mut Silent).unwrap_err();
    assert_eq!(error.to_string(), "no crash");
    // Another database has no such table.
    peer.psql("postgres", "CREATE DATABASE other");
    let elsewhere = FunctionOptions {
        url: peer.url("other"),
        ledger: Some(Ledgered::Verify(record.0.clone())),
        ..wanted
    };
    let (report, judgement) = run(&elsewhere);
    assert_eq!(judgement.verdict, Verdict::Failed);
    assert!(
        judgement.because.contains("is not in this database"),
        "{judgement:?}"
    );
    assert!(function_tests::json(&report)["tests"]["durability"]["rows"].is_null());
}

#[test]
fn a_server_that_is_dead_or_silent_is_an_error_in_time() {
    let closed = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = closed.local_addr().unwrap();
    drop(closed);
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    for (address, told) in [
        (address, "refused"),
        (silent.local_addr().unwrap(), "in time"),
    ] {
        let url = format!("postgres://nobody@{address}/none");
        let mut options = FunctionOptions::new(&url);
        options.patience = Duration::from_secs(1);
        let began = Instant::now();
        let error = function_tests::run(&options, &mut Silent)
            .unwrap_err()
            .to_string();
        assert!(error.contains(told), "{error}");
        assert!(began.elapsed() < Duration::from_secs(60));
    }
    // One that was crashed has a moment to come back.
    let record = Record::new("dead");
    let mut verify = FunctionOptions::new(&format!("postgres://nobody@{address}/none"));
    verify.tests = vec![Test::Durability];
    verify.ledger = Some(Ledgered::Verify(record.0.clone()));
    verify.patience = Duration::from_secs(1);
    let began = Instant::now();
    let error = function_tests::run(&verify, &mut Silent)
        .unwrap_err()
        .to_string();
    assert!(error.contains("refused"), "{error}");
    assert!((1..60).contains(&began.elapsed().as_secs()));
    let redis = FunctionOptions::new("redis://127.0.0.1");
    let error = function_tests::run(&redis, &mut Silent)
        .unwrap_err()
        .to_string();
    assert!(error.contains("SQL"), "{error}");
}

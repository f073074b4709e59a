//! What a run does when the server says nothing any more, behind a relay that stops.
#![allow(
    clippy::unwrap_used,
    reason = "a test file whose helpers are not test functions"
)]

use check::Outcome;
use drive::histories::{self, HistoryOptions, HistoryReport};
use drive::report;
use drive::run::{RunReport, RunnerOptions};
use drive::tpcc::{self, RunOptions};
use links::view::Silent;
use peer::{Peer, again};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use workload::history::Kind;
use workload::wire::Isolation;

/// Passes bytes on until it is told to be silent; then it keeps the connections and says nothing.
fn relay(to: SocketAddr, is_silent: &Arc<AtomicBool>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let is_silent = is_silent.clone();
    std::thread::spawn(move || {
        for near in listener.incoming().flatten() {
            let far = TcpStream::connect(to).unwrap();
            for (from, into) in [
                (near.try_clone().unwrap(), far.try_clone().unwrap()),
                (far, near),
            ] {
                let is_silent = is_silent.clone();
                std::thread::spawn(move || pass_on(from, into, &is_silent));
            }
        }
    });
    address
}

fn pass_on(mut from: TcpStream, mut into: TcpStream, is_silent: &AtomicBool) {
    into.set_nodelay(true).unwrap();
    from.set_read_timeout(Some(Duration::from_millis(20)))
        .unwrap();
    let mut buffer = [0; 16 << 10];
    loop {
        match from.read(&mut buffer) {
            Ok(0) => return,
            Ok(_) if is_silent.load(Ordering::SeqCst) => {}
            Ok(count) => {
                if into.write_all(&buffer[..count]).is_err() {
                    return;
                }
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(_) => return,
        }
    }
}

/// Runs four clients for two seconds, the second of which is silent.
fn run(timeout: Duration) -> (RunReport, Duration) {
    let echo = TcpListener::bind("127.0.0.1:0").unwrap();
    let to = echo.local_addr().unwrap();
    std::thread::spawn(move || links::echo::serve(&echo));
    let is_silent = Arc::new(AtomicBool::new(false));
    let address = relay(to, &is_silent);
    let mut options = RunOptions::new(&format!("postgres://echo@{address}/echo"));
    options.runner = RunnerOptions {
        clients: 4,
        warmup: Duration::ZERO,
        length: Duration::from_secs(2),
        timeout,
        ..RunnerOptions::default()
    };
    std::thread::spawn(move || {
        std::thread::sleep(Duration::from_secs(1));
        is_silent.store(true, Ordering::SeqCst);
    });
    let began = Instant::now();
    let report = tpcc::calibrate(&options, 1, &mut Silent).unwrap();
    (report, began.elapsed())
}

#[test]
fn a_run_ends_although_its_server_is_silent() {
    // The second that is not silent may be one in which the machine stands still.
    let run = || run(Duration::from_secs(600));
    let (report, took) = again(run, |(report, _)| report.response_at(0.5).is_some());
    let table = report::table(&report);
    assert!(report.committed() > 0, "{table}");
    // Each client has one transaction under way: of unknown outcome, if its end was asked for.
    assert_eq!(report.unknown() + report.unfinished(), 4, "{table}");
    // They are 4 of some thousands: the median stands, the slowest are not known.
    assert!(report.response_at(0.5).is_some(), "{table}");
    assert_eq!(report.response_at(1.0), None, "{table}");
    assert!(
        table.contains("were unfinished") || report.unfinished() == 0,
        "{table}"
    );
    // Two seconds and five more until it gives up, long before the connections are given up.
    assert!(took < Duration::from_secs(90), "{took:?}");
}

#[test]
fn a_client_gives_a_silent_connection_up() {
    let was_told = |report: &RunReport| {
        let mut lost = report.messages.values();
        lost.any(|text| text.contains("did not answer in time"))
    };
    let run = || run(Duration::from_millis(500));
    let (report, took) = again(run, |(report, _)| was_told(report));
    let table = report::table(&report);
    // The transactions lose their connections and try again, where nobody answers either.
    let lost = &report.messages;
    assert!(
        lost.contains_key("connection lost") || lost.contains_key("unknown"),
        "{table}"
    );
    assert!(was_told(&report), "{lost:?}");
    assert!(
        report.unknown() + report.unfinished() + report.failed() > 0,
        "{table}"
    );
    assert!(took < Duration::from_secs(90), "{took:?}");
}

/// What was asked for and not answered may have happened. A history without it would show reads of
/// values that nobody has written.
#[test]
fn a_history_keeps_what_was_not_answered() {
    let Some(peer) = Peer::start() else { return };
    let url = peer.url("postgres");
    let (before, rest) = url.split_once("@127.0.0.1:").unwrap();
    let (port, database) = rest.split_once('/').unwrap();
    let to: SocketAddr = format!("127.0.0.1:{port}").parse().unwrap();
    let run = || {
        let is_silent = Arc::new(AtomicBool::new(false));
        let near = relay(to, &is_silent);
        // The half of the clients that comes by way of the relay hears nothing after a second.
        let url = format!("{before}@{near},127.0.0.1:{port}/{database}");
        let mut options = HistoryOptions::new(&url, Kind::HotCounter, Isolation::ReadCommitted);
        options.runner.clients = 16;
        options.runner.length = Duration::from_secs(2);
        options.runner.timeout = Duration::from_secs(600);
        std::thread::spawn(move || {
            std::thread::sleep(Duration::from_secs(1));
            is_silent.store(true, Ordering::SeqCst);
        });
        histories::run(&options, &mut Silent).unwrap()
    };
    let of = |found: &HistoryReport, wanted: Outcome| {
        let txns = found.history.txns.iter();
        txns.filter(|txn| txn.outcome == wanted).count() as u64
    };
    let is_enough = |found: &HistoryReport| {
        of(found, Outcome::Unknown) > 0 && of(found, Outcome::Committed) > 100
    };
    let found = again(run, is_enough);
    let table = report::table(&found.run);
    assert!(is_enough(&found), "{table}");
    assert_eq!(of(&found, Outcome::Unknown), found.run.unknown(), "{table}");
}

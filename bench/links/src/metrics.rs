//! Metrics of a run while it goes on, in the text format of Prometheus (version 0.0.4) over HTTP.
//!
//! | metric | meaning |
//! |---|---|
//! | `trellis_bench_committed_total{kind}` | commits since the start, warm-up included |
//! | `trellis_bench_aborted_total{reason}` | aborted attempts by SQLSTATE or reason |
//! | `trellis_bench_failed_total` | transactions that failed or whose outcome is unknown |
//! | `trellis_bench_response_seconds{quantile}` | of the last second; absent where nothing ended |
//! | `trellis_bench_waiting` | arrivals that are due and wait for a connection; open loop only |
//! | `trellis_bench_seconds_left` | until the end |
//! | `trellis_bench_phase{phase}` | 1 for the phase in which the run is |

use crate::error::DriveError;
use crate::lock;
use crate::view::{Live, Loaded, Progress};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Longest request that is read, in bytes.
const REQUEST_MAX: usize = 8 * 1024;
/// How long a scraper may take to send its request, and to take the answer.
const PATIENCE: Duration = Duration::from_secs(1);
/// Between two looks whether somebody connects.
const KNOCK_EVERY: Duration = Duration::from_millis(20);

/// Counts up to now.
#[derive(Debug, Default)]
struct Counts {
    live: Live,
    committed: BTreeMap<&'static str, u64>,
    aborted: BTreeMap<String, u64>,
    failed: u64,
    /// The counts of the phases before this one.
    aborted_before: BTreeMap<String, u64>,
    failed_before: u64,
}

impl Counts {
    fn take(&mut self, live: &Live) {
        if live.phase != self.live.phase {
            self.aborted_before.clone_from(&self.aborted);
            self.failed_before = self.failed;
        }
        for (kind, count) in live.kinds.iter().zip(&live.committed) {
            *self.committed.entry(kind).or_default() += count;
        }
        for (reason, count) in &live.aborts {
            let before = self.aborted_before.get(reason).copied().unwrap_or(0);
            self.aborted.insert(reason.clone(), before + count);
        }
        self.failed = self.failed_before + live.failed;
        self.live = live.clone();
    }

    fn text(&self) -> String {
        let mut out = String::new();
        head(
            &mut out,
            "committed_total",
            "counter",
            "Commits since the start.",
        );
        for (kind, count) in &self.committed {
            let _ = writeln!(
                out,
                "trellis_bench_committed_total{{kind=\"{kind}\"}} {count}"
            );
        }
        head(
            &mut out,
            "aborted_total",
            "counter",
            "Aborted attempts by SQLSTATE or reason.",
        );
        for (reason, count) in &self.aborted {
            let reason = escaped(reason);
            let _ = writeln!(
                out,
                "trellis_bench_aborted_total{{reason=\"{reason}\"}} {count}"
            );
        }
        head(
            &mut out,
            "failed_total",
            "counter",
            "Failed transactions and unknown outcomes.",
        );
        let _ = writeln!(out, "trellis_bench_failed_total {}", self.failed);
        head(
            &mut out,
            "response_seconds",
            "gauge",
            "Response time of the last second.",
        );
        for (quantile, us) in [("0.5", self.live.p50_us), ("0.99", self.live.p99_us)] {
            if us > 0 {
                let seconds = us as f64 / 1e6;
                let name = "trellis_bench_response_seconds";
                let _ = writeln!(out, "{name}{{quantile=\"{quantile}\"}} {seconds}");
            }
        }
        if let Some(waiting) = self.live.waiting {
            head(
                &mut out,
                "waiting",
                "gauge",
                "Arrivals that wait for a connection.",
            );
            let _ = writeln!(out, "trellis_bench_waiting {waiting}");
        }
        head(&mut out, "seconds_left", "gauge", "Seconds until the end.");
        let _ = writeln!(out, "trellis_bench_seconds_left {}", self.live.seconds_left);
        head(&mut out, "phase", "gauge", "The phase in which the run is.");
        let phase = match self.live.phase {
            "" => "preparing",
            phase => phase,
        };
        let _ = writeln!(out, "trellis_bench_phase{{phase=\"{phase}\"}} 1");
        out
    }
}

fn head(out: &mut String, name: &str, kind: &str, help: &str) {
    let name = format!("trellis_bench_{name}");
    let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

/// A label's value: backslashes, quotes and line ends have an escape.
fn escaped(text: &str) -> String {
    let text = text.replace('\\', "\\\\").replace('"', "\\\"");
    text.replace('\n', "\\n")
}

/// Shows progress as another does, and answers scrapers until it is dropped.
#[derive(Debug)]
pub struct Exporter<P> {
    shown: P,
    counts: Arc<Mutex<Counts>>,
    is_over: Arc<AtomicBool>,
    address: SocketAddr,
    server: Option<JoinHandle<()>>,
}

impl<P: Progress> Exporter<P> {
    /// Listens at `HOST:PORT`; port 0 takes a free one.
    ///
    /// # Errors
    /// That cannot be listened at.
    pub fn start(at: &str, shown: P) -> Result<Exporter<P>, DriveError> {
        let refused = |error: std::io::Error| {
            DriveError::Option(format!("--metrics {at}: cannot listen there: {error}"))
        };
        let listener = TcpListener::bind(at).map_err(refused)?;
        let address = listener.local_addr().map_err(refused)?;
        listener.set_nonblocking(true).map_err(refused)?;
        let counts = Arc::<Mutex<Counts>>::default();
        let is_over = Arc::<AtomicBool>::default();
        let (told, over) = (Arc::clone(&counts), Arc::clone(&is_over));
        let server = std::thread::spawn(move || {
            while !over.load(Ordering::Relaxed) {
                match listener.accept() {
                    // A scraper that goes away is its own loss.
                    Ok((stream, _)) => drop(answer(stream, &told)),
                    Err(_) => std::thread::sleep(KNOCK_EVERY),
                }
            }
        });
        Ok(Exporter {
            shown,
            counts,
            is_over,
            address,
            server: Some(server),
        })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl<P> Drop for Exporter<P> {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(server) = self.server.take() {
            let _ = server.join();
        }
    }
}

impl<P: Progress> Progress for Exporter<P> {
    fn stage(&mut self, text: &str) {
        self.shown.stage(text);
    }

    fn loaded(&mut self, loaded: &Loaded) {
        self.shown.loaded(loaded);
    }

    fn live(&mut self, live: &Live) {
        lock(&self.counts).take(live);
        self.shown.live(live);
    }
}

/// Answers one request: `GET /metrics` or `GET /`.
fn answer(mut stream: TcpStream, counts: &Mutex<Counts>) -> std::io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let (mut request, mut part) = (Vec::new(), [0; 1024]);
    let until = Instant::now() + PATIENCE;
    while !request.windows(4).any(|end| end == b"\r\n\r\n") {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() || request.len() > REQUEST_MAX {
            return Ok(());
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut part)? {
            0 => return Ok(()),
            count => request.extend_from_slice(&part[..count]),
        }
    }
    let line = request.split(|byte| *byte == b'\r').next().unwrap_or(&[]);
    let wanted = [&b"GET /metrics "[..], b"GET / "];
    let (status, body) = match wanted.iter().any(|start| line.starts_with(start)) {
        true => ("200 OK", lock(counts).text()),
        false => ("404 Not Found", String::from("GET /metrics\n")),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::Silent;

    fn get(address: SocketAddr, request: &str) -> String {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    }

    fn live(phase: &'static str, committed: u64, aborts: u64) -> Live {
        Live {
            phase,
            kinds: vec!["payment"],
            committed: vec![committed],
            aborts: vec![(String::from("40001 \"x\""), aborts)],
            p50_us: 1_500,
            failed: 1,
            ..Live::default()
        }
    }

    #[test]
    fn counts_go_on_over_phases() {
        let mut exporter = Exporter::start("127.0.0.1:0", Silent).unwrap();
        let address = exporter.address();
        let scrape = || get(address, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
        assert!(scrape().contains("trellis_bench_phase{phase=\"preparing\"} 1"));
        exporter.live(&live("warm-up", 5, 2));
        exporter.live(&live("measuring", 7, 1));
        exporter.live(&live("measuring", 1, 4));
        let text = scrape();
        assert!(text.starts_with("HTTP/1.1 200 OK\r\n"), "{text}");
        for line in [
            "trellis_bench_committed_total{kind=\"payment\"} 13",
            "trellis_bench_aborted_total{reason=\"40001 \\\"x\\\"\"} 6",
            "trellis_bench_failed_total 2",
            "trellis_bench_response_seconds{quantile=\"0.5\"} 0.0015",
            "trellis_bench_phase{phase=\"measuring\"} 1",
        ] {
            assert!(text.lines().any(|it| it == line), "{line} in\n{text}");
        }
        assert!(!text.contains("quantile=\"0.99\"") && !text.contains("bench_waiting"));
    }

    /// A scraper that says nothing, or too much, holds neither the others nor the end for long.
    #[test]
    fn silent_and_foreign_scrapers_are_let_go() {
        let exporter = Exporter::start("127.0.0.1:0", Silent).unwrap();
        let address = exporter.address();
        let begin = Instant::now();
        let silent = TcpStream::connect(address).unwrap();
        let found = get(address, "POST /metrics HTTP/1.1\r\n\r\n");
        assert!(found.starts_with("HTTP/1.1 404"), "{found}");
        let _open = TcpStream::connect(address).unwrap();
        drop(exporter);
        assert!(begin.elapsed() < 20 * PATIENCE);
        drop(silent);
        assert!(Exporter::start("nowhere", Silent).is_err());
    }
}

//! Packets of a server that come late: the packet filter of the system hands each to this program,
//! which lets it go on when it has waited.
//!
//! The table of [`network`] marks the server's packets, TCP and UDP; a rule of
//! `iptables` puts marked packets into a queue of the kernel's. A thread here takes them from there
//! in their order. Packets of existing connections are among them, and those between servers, too.
//!
//! When this program ends, the rule lets packets pass. Those that wait then are lost, and so are
//! those that wait when the table of another fault is removed; TCP sends them again.

use super::kind::Look;
use super::network::{self, Table};
use super::process::{Process, during, reachable};
use super::target::Server;
use links::lock;
use nfq::{Message, Queue, Verdict};
use nix::sched::{CloneFlags, setns};
use nix::sys::prctl::set_timerslack;
use std::collections::VecDeque;
use std::fs::File;
use std::net::{SocketAddr, TcpStream};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Packets that wait at a time; more pass at once.
const PACKETS_MAX: u32 = 16_384;
/// Pause between two looks at the queue; packets come late by as much more, at most.
const LOOK_EVERY: Duration = Duration::from_micros(500);
/// How often the server is called.
const CALL_EVERY: Duration = Duration::from_millis(200);
/// The longest that a call may take.
const CALL_MAX: Duration = Duration::from_secs(60);
/// The bits that tell our marks from those of others.
const MARK: u32 = 0x7e11_0000;
/// Tools that have a rule each: IPv4 and IPv6.
const TOOLS: [&str; 2] = ["iptables", "ip6tables"];
/// Where packets are handed over: those that arrive, and those that leave this machine.
const CHAINS: [&str; 2] = ["INPUT", "OUTPUT"];

/// A queue of packets that wait, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LateQueue {
    pub(super) number: u16,
    /// Whose network; `None`: ours.
    pub(super) of: Option<Process>,
}

impl LateQueue {
    /// A queue that no other of this process has. Those of another one are far off: a number that
    /// is in use cannot be had (EPERM).
    pub(super) fn new(process: &Process) -> LateQueue {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let next = NEXT.fetch_add(1, Ordering::Relaxed);
        // Other programs number theirs from 0 on.
        let number = 1_024 + (u64::from(std::process::id()) * 101 + next) % 60_000;
        LateQueue {
            number: number as u16,
            of: process.is_in_other_network().then_some(*process),
        }
    }

    /// What the table marks packets with.
    pub(super) fn mark(self) -> u32 {
        MARK | u32::from(self.number)
    }

    fn rule(self, tool: &str, action: &str, chain: &str) -> Result<(), String> {
        let mut command = match &self.of {
            None => Command::new(tool),
            Some(process) => network::inside(process, tool),
        };
        let (mark, number) = (format!("{:#x}", self.mark()), self.number.to_string());
        command.args(["-w", "5", "-t", "mangle", action, chain, "-m", "mark"]);
        command.args(["--mark", &mark, "-j", "NFQUEUE", "--queue-num", &number]);
        command.arg("--queue-bypass");
        network::run(tool, command, "").map(drop)
    }

    /// Hands marked packets over from now on.
    pub(super) fn add(self) -> Result<(), String> {
        TOOLS.iter().try_for_each(|tool| {
            CHAINS
                .iter()
                .try_for_each(|chain| self.rule(tool, "-I", chain))
        })
    }

    /// Removes the rules, as far as they are there.
    pub(super) fn remove(self) -> Result<(), String> {
        if self.of.is_some_and(|process| !process.is_alive()) {
            return Ok(());
        }
        for tool in TOOLS {
            for chain in CHAINS {
                while self.rule(tool, "-C", chain).is_ok() {
                    self.rule(tool, "-D", chain)?;
                }
            }
        }
        Ok(())
    }

    pub(super) fn exists(self) -> bool {
        TOOLS.iter().any(|tool| {
            CHAINS
                .iter()
                .any(|chain| self.rule(tool, "-C", chain).is_ok())
        })
    }

    /// Whether the system can do it; nothing is left.
    pub(super) fn try_it(self) -> Result<(), String> {
        let holder = Holder::start(self, Duration::ZERO)?;
        let tried = self.add();
        self.remove()?;
        drop(holder);
        tried
    }
}

/// Has the packets of a queue wait. Dropping it lets all go on.
pub(super) struct Holder {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    stop: AtomicBool,
    held: AtomicU64,
    /// Of all that were held, in microseconds.
    waited_us: AtomicU64,
    /// Why packets do not wait any more.
    failed: Mutex<Option<String>>,
}

impl Holder {
    /// Takes what comes into the queue and hands it on after `lag`.
    ///
    /// # Errors
    /// Another program has the queue, the kernel has none, or we may not.
    pub(super) fn start(queue: LateQueue, lag: Duration) -> Result<Holder, String> {
        let shared = Arc::new(Shared::default());
        let (ready, is_ready) = channel();
        let own = shared.clone();
        let builder = std::thread::Builder::new().name("late packets".to_string());
        let run = move || hold(queue, lag, &own, &ready);
        let thread = builder
            .spawn(run)
            .map_err(|error| during("a thread", &error))?;
        let started = is_ready.recv();
        started.unwrap_or_else(|_| Err("its thread has ended".into()))?;
        Ok(Holder {
            shared,
            thread: Some(thread),
        })
    }

    /// Packets that have waited, and how long they did on average.
    pub(super) fn counts(&self) -> Result<(u64, Duration), String> {
        if let Some(error) = lock(&self.shared.failed).clone() {
            return Err(error);
        }
        let held = self.shared.held.load(Ordering::Relaxed);
        let waited_us = self.shared.waited_us.load(Ordering::Relaxed);
        Ok((held, Duration::from_micros(waited_us / held.max(1))))
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panic in the thread has been printed, and here is no caller to tell.
            let _ = thread.join();
        }
    }
}

/// Late packets of a server, and how that is seen.
pub(super) struct Late {
    /// `None`: they have gone on.
    holder: Option<Holder>,
    table: Table,
    process: Process,
    lag: Duration,
    /// Who is called; `None`: it listens where we cannot reach it.
    address: Option<SocketAddr>,
    called: Option<Instant>,
    /// The longest that it took to connect, in microseconds.
    took_us: Arc<AtomicU64>,
}

impl Late {
    /// Takes the queue; nothing comes into it yet.
    pub(super) fn begin(
        queue: LateQueue,
        table: Table,
        server: &Server,
        lag: Duration,
    ) -> Result<Late, String> {
        let listening = server.listening.first();
        let address = listening.filter(|_| queue.of.is_none());
        Ok(Late {
            holder: Some(Holder::start(queue, lag)?),
            table,
            process: server.process,
            lag,
            address: address.copied().map(reachable),
            called: None,
            took_us: Arc::default(),
        })
    }

    pub(super) fn table(&self) -> &Table {
        &self.table
    }

    /// Calls the server now and then, and asks the queue. A connection takes a packet to it and one
    /// back.
    pub(super) fn look(&mut self) -> Look {
        if let Some(address) = self.address
            && self.called.is_none_or(|when| when.elapsed() >= CALL_EVERY)
        {
            self.called = Some(Instant::now());
            let took_us = self.took_us.clone();
            std::thread::spawn(move || {
                let began = Instant::now();
                if TcpStream::connect_timeout(&address, CALL_MAX).is_ok() {
                    took_us.fetch_max(began.elapsed().as_micros() as u64, Ordering::Relaxed);
                }
            });
        }
        let refreshed = self.table.refresh(&self.process);
        let counts = self
            .holder
            .as_ref()
            .map_or(Ok((0, self.lag)), Holder::counts);
        let (held, mean) = match refreshed.and(counts) {
            Ok(counts) => counts,
            Err(error) => return Look::Missing(error),
        };
        let took = Duration::from_micros(self.took_us.load(Ordering::Relaxed));
        if held == 0 || (self.address.is_some() && took < self.lag * 2) {
            return Look::NotYet;
        }
        let mean_ms = mean.as_secs_f64() * 1e3;
        let mut proof = format!("{held} packets were held for {mean_ms:.1} ms");
        if self.address.is_some() {
            proof += &format!("; a connection took {} ms", took.as_millis());
        }
        Look::Proven(proof)
    }

    /// Lets go on what waits, and all that comes.
    pub(super) fn end(&mut self) {
        self.holder = None;
    }
}

/// The queue, in the network of its server; the thread stays there.
fn open(queue: LateQueue) -> Result<Queue, String> {
    let wrong = |error| during("a queue of the packet filter", &error);
    if let Some(process) = queue.of {
        let network = File::open(format!("/proc/{}/ns/net", process.pid)).map_err(wrong)?;
        let entered = setns(network, CloneFlags::CLONE_NEWNET);
        entered.map_err(|error| wrong(error.into()))?;
    }
    let mut opened = Queue::open().map_err(wrong)?;
    let number = queue.number;
    opened.bind(number).map_err(wrong)?;
    // The packets themselves stay with the kernel.
    opened.set_copy_range(number, 0).map_err(wrong)?;
    opened.set_fail_open(number, true).map_err(wrong)?;
    opened.set_recv_gso(number, true).map_err(wrong)?;
    opened
        .set_queue_max_len(number, PACKETS_MAX)
        .map_err(wrong)?;
    opened.set_recv_enobufs(false).map_err(wrong)?;
    opened.set_nonblocking(true);
    Ok(opened)
}

fn hold(queue: LateQueue, lag: Duration, shared: &Shared, ready: &Sender<Result<(), String>>) {
    let mut queue = match open(queue) {
        Ok(queue) => queue,
        Err(error) => {
            // Who waits for it hears it, or has gone.
            let _ = ready.send(Err(error));
            return;
        }
    };
    // Who started this waits for it.
    let _ = ready.send(Ok(()));
    // Without it the system may wake the thread 50 us late. It is no error if it cannot.
    let _ = set_timerslack(1);
    if let Err(error) = serve(&mut queue, lag, shared) {
        *lock(&shared.failed) = Some(during("a queue of the packet filter", &error));
    }
}

fn serve(queue: &mut Queue, lag: Duration, shared: &Shared) -> std::io::Result<()> {
    let mut waiting: VecDeque<(Instant, Message)> = VecDeque::new();
    while !shared.stop.load(Ordering::Relaxed) {
        loop {
            match queue.recv() {
                Ok(message) => waiting.push_back((Instant::now(), message)),
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                // What was let go on is not there any more: the kernel drops what waits in all
                // queues when a chain of the packet filter goes, that of another fault, too.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        while let Some((since, message)) = waiting.pop_front() {
            let waited = since.elapsed();
            if waited < lag {
                waiting.push_front((since, message));
                break;
            }
            shared.held.fetch_add(1, Ordering::Relaxed);
            let waited_us = waited.as_micros() as u64;
            shared.waited_us.fetch_add(waited_us, Ordering::Relaxed);
            accept(queue, message)?;
        }
        std::thread::sleep(LOOK_EVERY);
    }
    waiting
        .into_iter()
        .try_for_each(|(_, message)| accept(queue, message))
}

fn accept(queue: &mut Queue, mut message: Message) -> std::io::Result<()> {
    message.set_verdict(Verdict::Accept);
    queue.verdict(message)
}

//! Each kind of fault: what it needs, how it is put in, and how it is proven.

use super::clock::{self, Clock};
use super::group::{Group, Limit, disk_of};
use super::journal::{Entry, Journal};
use super::lag::{Late, LateQueue};
use super::memory::{self, Short};
use super::network::{Deed, Table};
use super::plan::Kind;
use super::process::{Process, during, reachable};
use super::target::Server;
use super::undo::Undo;
use links::answers::Answers;
use links::delay::DelayProxy;
use links::link::Link;
use links::lock;
use links::url::{Endpoint, Target, Wire};
use nix::sys::signal::Signal;
use nix::sys::statvfs::statvfs;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Free bytes of a file system above which it is not filled.
const FILL_BYTES_MAX: u64 = 4 << 30;
const BLOCK: usize = 4 << 10;
/// A connection that is not there by then does not come through a cut.
const CONNECT_MAX: Duration = Duration::from_millis(300);
/// How often a probe asks something of its own.
const ASK_EVERY: Duration = Duration::from_millis(200);
/// How long a server may take to answer once it accepts connections.
const ANSWER_MAX: Duration = Duration::from_millis(500);

/// What all faults of a run share.
pub(super) struct Context {
    /// Of groups and tables: this run's.
    pub(super) token: String,
    /// Stand in for endpoints that are delayed.
    pub(super) delays: Vec<Arc<Delay>>,
    /// What the run connects to, without proxies.
    pub(super) target: Target,
}

/// A proxy before an endpoint of the run.
pub(super) struct Delay {
    pub(super) server: SocketAddr,
    pub(super) proxy: DelayProxy,
    /// How to ask through it.
    pub(super) endpoint: Endpoint,
    pub(super) target: Target,
}

/// A fault that is in.
pub(super) struct Active {
    pub(super) entries: Vec<Entry>,
    probe: Probe,
    /// A delay that is set back.
    delay: Option<Arc<Delay>>,
}

/// What a look at a fault has told.
pub(super) enum Look {
    /// It is there, and how that was seen.
    Proven(String),
    /// It may be there.
    NotYet,
    /// It is not.
    Missing(String),
}

enum Probe {
    Ended {
        process: Process,
        listening: Vec<SocketAddr>,
    },
    Stopped(Process),
    Limited(Group),
    Short(Short),
    Dropped {
        table: Table,
        process: Process,
        caller: Caller,
        is_cut: bool,
    },
    Late(Late),
    Full(PathBuf),
    Shifted(Shifted),
    Slow {
        asked: Arc<AtomicU64>,
        delay: Duration,
        caller: Caller,
    },
}

impl Probe {
    fn ended(server: &Server) -> Probe {
        Probe::Ended {
            process: server.process,
            listening: server.listening.clone(),
        }
    }

    fn dropped(table: Table, server: &Server, is_cut: bool) -> Probe {
        let process = server.process;
        // In its own network we cannot call it: the run's packets are those that count.
        let is_here = |_: &SocketAddr| !process.is_in_other_network();
        let listening = server.listening.first().copied().filter(is_here);
        Probe::Dropped {
            table,
            process,
            caller: Caller::new(listening.map(reachable)),
            is_cut,
        }
    }

    fn slow(delay: Duration) -> Probe {
        Probe::Slow {
            asked: Arc::default(),
            delay,
            caller: Caller::new(None),
        }
    }
}

/// Calls the server now and then, in a thread, so that there are packets to drop.
struct Caller {
    address: Option<SocketAddr>,
    called: Instant,
    /// A call had no answer.
    is_deaf: Arc<AtomicBool>,
}

impl Caller {
    fn new(address: Option<SocketAddr>) -> Caller {
        Caller {
            address,
            called: Instant::now(),
            is_deaf: Arc::default(),
        }
    }

    fn is_due(&mut self) -> bool {
        let is_due = self.called.elapsed() >= ASK_EVERY;
        if is_due {
            self.called = Instant::now();
        }
        is_due
    }

    fn call(&mut self) {
        let Some(address) = self.address.filter(|_| self.is_due()) else {
            return;
        };
        let is_deaf = self.is_deaf.clone();
        std::thread::spawn(move || {
            let called = TcpStream::connect_timeout(&address, CONNECT_MAX);
            if called.is_err_and(|error| error.kind() == ErrorKind::TimedOut) {
                is_deaf.store(true, Ordering::Relaxed);
            }
        });
    }
}

impl Context {
    fn name(&self, number: usize) -> String {
        format!("trellis-bench-{}-{number}", self.token)
    }

    fn table(&self, number: usize, server: &Server, deed: Deed) -> Result<Table, String> {
        let name = self.name(number).replace('-', "_");
        Table::plan(name, &server.process, deed)
    }

    /// Where late packets wait, and the table that marks them.
    fn late(&self, number: usize, server: &Server) -> Result<(LateQueue, Table), String> {
        let queue = LateQueue::new(&server.process);
        let table = self.table(number, server, Deed::Mark(queue.mark()))?;
        Ok((queue, table))
    }

    fn delay(&self, server: &Server) -> Option<&Arc<Delay>> {
        self.delays.iter().find(|delay| is_at(server, delay.server))
    }

    /// Where the run connects to a server, if it does, and SQL is spoken there.
    fn endpoint(&self, server: &Server) -> Option<&Endpoint> {
        let mut endpoints = self.target.endpoints.iter();
        let has_sql = self.target.wire.has_sql();
        let is_its = |endpoint: &&Endpoint| {
            let mut ports = server.listening.iter().map(SocketAddr::port);
            ports.any(|port| port == endpoint.port)
        };
        endpoints.find(is_its).filter(|_| has_sql)
    }

    /// Whether a server that the run is connected to answers; one that it is not connected to is
    /// not asked.
    pub(super) fn answers(&self, server: &Server) -> bool {
        let Some(endpoint) = self.endpoint(server) else {
            return true;
        };
        let asked = Link::connect(endpoint, &self.target, Some(ANSWER_MAX));
        asked.is_ok_and(|mut link| {
            let answered = link.command("SELECT 1").is_ok();
            link.close();
            answered
        })
    }

    /// Whether a fault can be put in, by its number.
    ///
    /// # Errors
    /// What it would need.
    pub(super) fn check(&self, number: usize, kind: Kind, server: &Server) -> Result<(), String> {
        match kind {
            Kind::Kill | Kind::Restart => match server.start() {
                Some(_) => Ok(()),
                None => Err("a command that starts the server again (start:COMMAND)".into()),
            },
            Kind::Pause => Ok(()),
            Kind::Memory(bytes) => {
                memory::check(bytes)?;
                self.group(number, kind, server)?.try_it()
            }
            Kind::Cpu(_) | Kind::Throttle(..) => self.group(number, kind, server)?.try_it(),
            Kind::Drop(ways, percent) => {
                let deed = Deed::Drop(ways, percent);
                self.table(number, server, deed)?.try_it()
            }
            Kind::Lag(_) => {
                let (queue, table) = self.late(number, server)?;
                table.try_it().and_then(|()| queue.try_it())
            }
            Kind::DiskFull => {
                let mount = own_file_system(server)?;
                File::create(self.fill(number, &mount))
                    .and_then(|_| std::fs::remove_file(self.fill(number, &mount)))
                    .map_err(|error| during("the right to write there", &error))
            }
            Kind::Delay(_) => match self.delay(server) {
                Some(_) => Ok(()),
                None => Err(
                    "a server that the benchmark connects to, but --url names none of \
                     its ports"
                        .into(),
                ),
            },
            Kind::Clock(_) => match clock_of(server)?.1.offset_ms()? {
                0 => Ok(()),
                left_ms => Err(format!(
                    "a clock that is right, and this one is wrong by {left_ms} ms"
                )),
            },
        }
    }

    fn group(&self, number: usize, kind: Kind, server: &Server) -> Result<Group, String> {
        let limit = match kind {
            Kind::Throttle(disk, bytes) => {
                let data = server.target.data.as_ref();
                let data = data.ok_or("the folder of the server's data (data:FOLDER)")?;
                Limit::Disk(disk, bytes, disk_of(data)?)
            }
            Kind::Cpu(percent) => Limit::Cpu(percent),
            Kind::Memory(bytes) => Limit::Memory(bytes),
            _ => return Err("another kind".into()),
        };
        Group::plan(&server.process, &self.name(number), limit)
    }

    fn fill(&self, number: usize, mount: &Path) -> PathBuf {
        mount.join(format!("{}.fill", self.name(number)))
    }

    /// Puts a fault in. How it is undone is in the journal before, also after an error.
    pub(super) fn put_in(
        &self,
        number: usize,
        kind: Kind,
        server: &Server,
        journal: &Mutex<Journal>,
    ) -> Result<Active, String> {
        let process = server.process;
        let mut active = Active {
            entries: Vec::new(),
            probe: Probe::Stopped(process),
            delay: None,
        };
        let mut put_in = |undo: Undo, act: &mut dyn FnMut() -> Result<(), String>| {
            let entry = lock(journal).put_in(undo, act)?;
            active.entries.push(entry);
            Ok::<(), String>(())
        };
        match kind {
            Kind::Kill | Kind::Restart => {
                end_server(kind, server, &mut put_in)?;
                active.probe = Probe::ended(server);
            }
            Kind::Pause => stop(&process, &mut put_in)?,
            Kind::Cpu(_) | Kind::Memory(_) | Kind::Throttle(..) => {
                let group = self.group(number, kind, server)?;
                let (path, home) = (group.path.clone(), group.home.clone());
                put_in(Undo::Group { group: path, home }, &mut || {
                    group.enter(&process)
                })?;
                active.probe = match kind {
                    Kind::Memory(bytes) => Probe::Short(Short::begin(group, bytes)?),
                    _ => Probe::Limited(group),
                };
            }
            Kind::Drop(ways, percent) => {
                let table = self.table(number, server, Deed::Drop(ways, percent))?;
                add(&table, &mut put_in)?;
                active.probe = Probe::dropped(table, server, percent >= 100.0);
            }
            Kind::Lag(lag) => {
                let (queue, table) = self.late(number, server)?;
                let late = Late::begin(queue, table, server, lag)?;
                put_in(Undo::Late(queue), &mut || queue.add())?;
                add(late.table(), &mut put_in)?;
                active.probe = Probe::Late(late);
            }
            Kind::DiskFull => {
                let path = self.fill(number, &own_file_system(server)?);
                put_in(Undo::Remove(path.clone()), &mut || fill(&path))?;
                active.probe = Probe::Full(path);
            }
            Kind::Delay(length) => {
                let delay = self.delay(server).ok_or("a proxy")?.clone();
                delay.proxy.set_delay(length);
                active.probe = Probe::slow(length);
                active.delay = Some(delay);
            }
            Kind::Clock(offset_ms) => {
                let shifted = self.shift(offset_ms, server, &mut put_in)?;
                active.probe = Probe::Shifted(shifted);
            }
        }
        Ok(active)
    }

    /// Sets a server's clock wrong.
    fn shift(
        &self,
        offset_ms: i64,
        server: &Server,
        put_in: &mut PutIn<'_>,
    ) -> Result<Shifted, String> {
        let (path, clock) = clock_of(server)?;
        let answered = clock.answered()?;
        put_in(Undo::Clock(path), &mut || clock.set(offset_ms))?;
        let endpoint = self.endpoint(server).cloned();
        Ok(Shifted {
            clock,
            offset_ms,
            answered,
            endpoint: endpoint.map(|it| (it, self.target.clone())),
            told_ms: Arc::default(),
            caller: Caller::new(None),
        })
    }
}

/// Adds a table of the packet filter.
fn add(table: &Table, put_in: &mut PutIn<'_>) -> Result<(), String> {
    let undo = Undo::Table(table.name.clone(), table.of);
    put_in(undo, &mut || table.add())
}

/// The file of a server's clock, which the server has loaded.
fn clock_of(server: &Server) -> Result<(PathBuf, Clock), String> {
    let needs = "a server that was started with a clock that can be set: `trellis bench \
                 clock-shim FOLDER` writes the library and tells how, `trellis start \
                 --clock-faults` starts nodes that way; then its file (clock:FILE)";
    let path = server.target.clock.as_ref().ok_or(needs)?;
    if !clock::is_loaded(&server.process, path) {
        return Err(format!(
            "{needs}; process {} does not use {}",
            server.process.pid,
            path.display()
        ));
    }
    let path = path
        .canonicalize()
        .map_err(|error| during("the clock", &error))?;
    let clock = Clock::open(&path)?;
    Ok((path, clock))
}

/// Whether a server listens at this address.
fn is_at(server: &Server, address: SocketAddr) -> bool {
    server.listening.iter().any(|listening| {
        let is_any = listening.ip().is_unspecified() && address.ip().is_loopback();
        listening.port() == address.port() && (is_any || listening.ip() == address.ip())
    })
}

/// What ends the process.
fn end_signal(kind: Kind, server: &Server) -> Signal {
    match kind {
        Kind::Restart => server.target.stop,
        _ => Signal::SIGKILL,
    }
}

/// Ends a process; a killed one with its descendants. `hold` is there before.
fn end(process: &Process, signal: Signal, hold: Option<&Path>) -> Result<(), String> {
    let wrong = |error| during("ending the server", &error);
    if let Some(hold) = hold {
        File::create(hold).map_err(wrong)?;
    }
    let all = match signal {
        Signal::SIGKILL => process.tree(),
        _ => vec![*process],
    };
    all.iter()
        .try_for_each(|one| one.signal(signal))
        .map_err(wrong)
}

type PutIn<'a> = dyn FnMut(Undo, &mut dyn FnMut() -> Result<(), String>) -> Result<(), String> + 'a;

/// Ends a server that can be started again.
fn end_server(kind: Kind, server: &Server, put_in: &mut PutIn<'_>) -> Result<(), String> {
    let start = server.start();
    let start = start.ok_or("a command that starts the server again")?;
    put_in(Undo::Start(start.clone()), &mut || {
        let signal = end_signal(kind, server);
        end(&server.process, signal, start.hold.as_deref())
    })
}

/// Stops a process and its descendants, parents first, until none is left that runs.
fn stop(process: &Process, put_in: &mut PutIn<'_>) -> Result<(), String> {
    for _ in 0..100 {
        let tree = process.tree();
        let running: Vec<Process> = tree.into_iter().filter(|one| !one.is_stopped()).collect();
        if running.is_empty() {
            return Ok(());
        }
        put_in(Undo::Continue(running.clone()), &mut || {
            let sent = running
                .iter()
                .try_for_each(|one| one.signal(Signal::SIGSTOP));
            sent.map_err(|error| during("SIGSTOP", &error))
        })?;
        let until = Instant::now() + Duration::from_millis(20);
        while !running
            .iter()
            .all(|one| one.is_stopped() || !one.is_alive())
            && Instant::now() < until
        {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    Err("its processes do not stop".into())
}

/// Where the file system of a server's data is mounted, if it is small and its own.
fn own_file_system(server: &Server) -> Result<PathBuf, String> {
    let needs = "the server's data on a small file system of its own (data:FOLDER, a loop device \
         or tmpfs with at most 4 GiB free)";
    let data = server.target.data.as_ref().ok_or(needs)?;
    let wrong = |error| during("the data", &error);
    let mut mount = data.canonicalize().map_err(wrong)?;
    let device = |path: &Path| {
        std::fs::metadata(path)
            .map(|found| found.dev())
            .map_err(wrong)
    };
    let own = device(&mount)?;
    while let Some(parent) = mount.parent() {
        if device(parent)? != own {
            break;
        }
        mount = parent.to_path_buf();
    }
    let found = statvfs(&mount).map_err(|error| during("the data", &error.into()))?;
    let is_small = found.blocks_free() * found.fragment_size() <= FILL_BYTES_MAX;
    let is_own = mount.parent().is_some() && device(&std::env::temp_dir())? != own;
    (is_small && is_own)
        .then_some(mount)
        .ok_or_else(|| needs.into())
}

/// Writes until there is no room.
fn fill(path: &Path) -> Result<(), String> {
    let wrong = |error| during("filling the disk", &error);
    let opened = OpenOptions::new().append(true).create(true).open(path);
    let mut file = opened.map_err(wrong)?;
    for length in [256 * BLOCK, BLOCK] {
        loop {
            match file
                .write_all(&vec![0; length])
                .and_then(|()| file.sync_data())
            {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::StorageFull => break,
                Err(error) => return Err(wrong(error)),
            }
        }
    }
    Ok(())
}

impl Active {
    /// Looks whether the fault is there.
    pub(super) fn look(&mut self) -> Look {
        match &mut self.probe {
            Probe::Ended { process, listening } => ended(process, listening),
            Probe::Stopped(process) => {
                let tree = process.tree();
                match tree.iter().filter(|one| !one.is_stopped()).count() {
                    _ if tree.is_empty() => Look::Missing("the process has ended".into()),
                    0 => Look::Proven(format!("{} processes in state T", tree.len())),
                    running => Look::Missing(format!("{running} processes are not stopped")),
                }
            }
            Probe::Limited(group) if !group.path.exists() => {
                Look::Missing("the control group has gone".into())
            }
            Probe::Short(short) => short.look(),
            Probe::Limited(group) => group.bites().map_or(Look::NotYet, Look::Proven),
            Probe::Dropped {
                table,
                process,
                caller,
                is_cut,
            } => {
                caller.call();
                let dropped = table.refresh(process).and_then(|()| table.met());
                let is_deaf = caller.is_deaf.load(Ordering::Relaxed) || caller.address.is_none();
                match dropped {
                    Err(error) => Look::Missing(error),
                    Ok(0) => Look::NotYet,
                    Ok(_) if *is_cut && !is_deaf => Look::NotYet,
                    Ok(packets) => Look::Proven(format!("{packets} packets dropped")),
                }
            }
            Probe::Late(late) => late.look(),
            Probe::Full(path) => match fill(path) {
                Ok(()) => Look::Proven("no space left on device".into()),
                Err(error) => Look::Missing(error),
            },
            Probe::Shifted(shifted) => shifted.look(),
            Probe::Slow {
                asked,
                delay,
                caller,
            } => {
                if let Some(through) = self.delay.as_ref().filter(|_| caller.is_due()) {
                    ask(through.clone(), asked.clone());
                }
                let took = Duration::from_micros(asked.load(Ordering::Relaxed));
                match took >= *delay * 2 {
                    true => Look::Proven(format!("an answer took {} ms", took.as_millis())),
                    false => Look::NotYet,
                }
            }
        }
    }

    /// Sets a delay back, and lets late packets go.
    pub(super) fn end_delay(&mut self) {
        if let Probe::Late(late) = &mut self.probe {
            late.end();
        }
        if let Some(delay) = &self.delay {
            delay.proxy.set_delay(Duration::ZERO);
        }
    }
}

/// Whether a process has ended, and nobody listens where it did.
fn ended(process: &Process, listening: &[SocketAddr]) -> Look {
    if process.is_alive() {
        return Look::NotYet;
    }
    let refuses = |address: &SocketAddr| {
        let called = TcpStream::connect_timeout(&reachable(*address), CONNECT_MAX);
        called.is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused)
    };
    match listening.iter().find(|address| !refuses(address)) {
        // Descendants may take a moment; a supervisor may be quicker than we are.
        Some(_) => Look::NotYet,
        None if listening.is_empty() => Look::Proven(format!("process {} is gone", process.pid)),
        None => {
            let port = listening[0].port();
            Look::Proven(format!(
                "process {} is gone, port {port} refuses",
                process.pid
            ))
        }
    }
}

/// Asks something through a delaying proxy, and keeps how long that took.
fn ask(delay: Arc<Delay>, asked: Arc<AtomicU64>) {
    std::thread::spawn(move || {
        let patience = Some(Duration::from_secs(60));
        let Ok(mut link) = Link::connect(&delay.endpoint, &delay.target, patience) else {
            return;
        };
        let began = Instant::now();
        if link.command("SELECT 1").is_ok() {
            asked.fetch_max(began.elapsed().as_micros() as u64, Ordering::Relaxed);
        }
        link.close();
    });
}

/// A clock that is wrong.
struct Shifted {
    clock: Clock,
    offset_ms: i64,
    /// How often a wrong time was told before.
    answered: u64,
    /// Where the server's clock is asked for; `None`: the run is not connected to it.
    endpoint: Option<(Endpoint, Target)>,
    /// What it has told: by how many milliseconds it differs from ours.
    told_ms: Arc<Mutex<Option<i64>>>,
    caller: Caller,
}

impl Shifted {
    /// Whether the server has read its clock while that was wrong by as much as it should be. What
    /// it says by SQL is told, and proves nothing: it may guard itself against clocks that jump.
    fn look(&mut self) -> Look {
        if let Some(at) = self.endpoint.as_ref().filter(|_| self.caller.is_due()) {
            ask_clock(at.clone(), self.told_ms.clone());
        }
        let offset_ms = self.offset_ms;
        match self.clock.offset_ms() {
            Ok(is_ms) if is_ms == offset_ms => {}
            Ok(is_ms) => return Look::Missing(format!("the clock is wrong by {is_ms} ms now")),
            Err(error) => return Look::Missing(error),
        }
        let answered = self.clock.answered().unwrap_or(self.answered);
        let answered = answered.saturating_sub(self.answered);
        let mut proof = format!("it was read {answered} times with {offset_ms:+} ms");
        if let Some(told_ms) = *lock(&self.told_ms) {
            proof += &format!("; by SQL it differs by {told_ms:+} ms");
        }
        match answered {
            0 => Look::NotYet,
            _ => Look::Proven(proof),
        }
    }
}

/// Asks a server for its time, and keeps by how much that differs from ours.
fn ask_clock((endpoint, target): (Endpoint, Target), told_ms: Arc<Mutex<Option<i64>>>) {
    std::thread::spawn(move || {
        let question = match target.wire {
            Wire::MySql => "SELECT UNIX_TIMESTAMP(NOW(3))",
            _ => "SELECT extract(epoch FROM clock_timestamp())",
        };
        let Ok(mut link) = Link::connect(&endpoint, &target, Some(Duration::from_secs(60))) else {
            return;
        };
        let mut answers = Answers::new();
        let asked = link.query(question, &mut answers);
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now_ms = now.unwrap_or_default().as_millis() as i64;
        let seconds = asked.is_ok().then(|| answers.text(0, 0, 0).parse::<f64>());
        if let Some(Ok(seconds)) = seconds {
            *lock(&told_ms) = Some((seconds * 1e3) as i64 - now_ms);
        }
        link.close();
    });
}

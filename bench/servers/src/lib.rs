//! Database servers of others that run beside ours: fresh files in a temporary folder, a free port,
//! gone afterwards.
//!
//! ```no_run
//! use servers::{Kind, Server};
//!
//! if let Some(server) = Server::start(Kind::MariaDb, &[])? {
//!     println!("{}", server.url("test"));
//! }
//! # Ok::<(), servers::StartError>(())
//! ```
//!
//! Programs are looked for in the path and where Debian puts them; jars in the folder that
//! `TRELLIS_CASSANDRA_JARS` or `TRELLIS_HBASE_JARS` names (`cargo xtask stores` fetches them). A
//! server that refuses to be root runs as `nobody` then. Every commit is on disk before it is
//! answered, unless an argument says otherwise.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod galera;
mod java;

pub use galera::Galera;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::File;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::{MetadataExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// How long a server may take until it accepts connections, and one in Java.
const START_MAX: Duration = Duration::from_secs(60);
const START_JAVA_MAX: Duration = Duration::from_secs(240);
/// How long a server may take to end before it is killed.
const END_MAX: Duration = Duration::from_secs(10);
/// What they write when they can be used: they listen before that.
const READY: [&str; 7] = [
    "ready to accept connections",
    "ready for connections",
    "Ready to accept connections",
    "ready to serve client requests",
    "Starting listening for CQL clients",
    "Master has completed initialization",
    "Listening on TCP",
];
/// What they all write when somebody else has their port, and how many ports are tried.
const TAKEN: &str = "ddress already in use";
const PORTS_MAX: u32 = 5;
/// The user `nobody`.
const NOBODY: u32 = 65_534;

/// A database server of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// PostgreSQL.
    Postgres,
    /// MariaDB, by the protocol of MySQL.
    MariaDb,
    /// Redis.
    Redis,
    /// etcd, by its JSON gateway.
    Etcd,
    /// Cassandra, by its native protocol.
    Cassandra,
    /// HBase on local files, by a gateway of Thrift 2 in frames.
    HBase,
    /// FerretDB over SQLite, by the protocol of MongoDB.
    FerretDb,
}

impl Kind {
    /// Those that are packages of Debian.
    pub const ALL: [Kind; 4] = [Kind::Postgres, Kind::MariaDb, Kind::Redis, Kind::Etcd];

    /// The product.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Postgres => "PostgreSQL",
            Kind::MariaDb => "MariaDB",
            Kind::Redis => "Redis",
            Kind::Etcd => "etcd",
            Kind::Cassandra => "Cassandra",
            Kind::HBase => "HBase",
            Kind::FerretDb => "FerretDB",
        }
    }

    /// How it is set where that is not as installed, in words, and its isolation level.
    pub fn settings(self) -> &'static str {
        match self {
            Kind::Postgres => "as installed; READ COMMITTED",
            Kind::MariaDb => "no binary log, 256 MiB of buffers; REPEATABLE READ",
            Kind::Redis => "appendonly, appendfsync always",
            Kind::Etcd => "one member, as installed",
            Kind::Cassandra => "one node, commitlog_sync batch",
            Kind::HBase => "one process on local files, hbase.wal.hsync, and a gateway",
            Kind::FerretDb => "over SQLite, as installed",
        }
    }

    /// The programs that it takes, the server first.
    fn programs(self) -> &'static [&'static str] {
        match self {
            Kind::Postgres => &["postgres", "initdb"],
            Kind::MariaDb => &["mariadbd", "mariadb-install-db"],
            Kind::Redis => &["redis-server"],
            Kind::Etcd => &["etcd"],
            Kind::Cassandra => &["java"],
            // The shell starts the server and its gateway.
            Kind::HBase => &["sh", "java"],
            Kind::FerretDb => &["ferretdb"],
        }
    }

    /// Scheme and user of its URL.
    fn scheme(self) -> &'static str {
        match self {
            Kind::Postgres => "postgres://postgres@",
            Kind::MariaDb => "mysql://root@",
            Kind::Redis => "redis://default@",
            Kind::Etcd => "etcd://",
            Kind::Cassandra => "cassandra://",
            Kind::HBase => "hbase://",
            Kind::FerretDb => "mongodb://",
        }
    }

    /// What names the folder of the jars that it takes; `None`: it takes none.
    pub fn jars_variable(self) -> Option<&'static str> {
        match self {
            Kind::Cassandra => Some("TRELLIS_CASSANDRA_JARS"),
            Kind::HBase => Some("TRELLIS_HBASE_JARS"),
            Kind::Postgres | Kind::MariaDb | Kind::Redis | Kind::Etcd | Kind::FerretDb => None,
        }
    }
}

/// Why a server does not run.
#[derive(Clone, Debug)]
pub struct StartError(String);

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for StartError {}

/// Says what was being done where it failed.
fn during<T, E: fmt::Display>(doing: &str, result: Result<T, E>) -> Result<T, StartError> {
    result.map_err(|error| StartError(format!("{doing}: {error}")))
}

/// A program: in the path, or where Debian puts it; of several versions the newest.
pub fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut places: Vec<PathBuf> = std::env::split_paths(&path).collect();
    places.push(PathBuf::from("/usr/sbin"));
    if let Ok(versions) = std::fs::read_dir("/usr/lib/postgresql") {
        let folders = versions.flatten().map(|version| version.path().join("bin"));
        let mut folders: Vec<PathBuf> = folders.collect();
        folders.sort();
        places.extend(folders.into_iter().rev());
    }
    let mut programs = places.iter().map(|place| place.join(program));
    programs.find(|program| program.is_file())
}

/// A server that runs; ended, with its files, when dropped.
#[derive(Debug)]
pub struct Server {
    kind: Kind,
    child: Option<Child>,
    folder: PathBuf,
    address: SocketAddr,
    /// The program and its arguments, as it was started.
    line: Vec<OsString>,
    /// The folder of its jars; empty: it has none.
    jars: PathBuf,
}

impl Server {
    /// Makes the files and starts the server with these arguments after ours; `None`: it is not
    /// installed.
    ///
    /// # Errors
    /// It does not start: with the end of what it wrote.
    pub fn start(kind: Kind, arguments: &[&str]) -> Result<Option<Server>, StartError> {
        for _ in 1..PORTS_MAX {
            match Server::start_once(kind, arguments) {
                // Somebody was faster: another process, or the near end of a connection.
                Err(error) if error.0.contains(TAKEN) => {}
                started => return started,
            }
        }
        Server::start_once(kind, arguments)
    }

    /// The same on a port that was free a moment ago.
    fn start_once(kind: Kind, arguments: &[&str]) -> Result<Option<Server>, StartError> {
        let programs = kind.programs().iter().map(|program| find(program));
        let Some(programs) = programs.collect::<Option<Vec<PathBuf>>>() else {
            return Ok(None);
        };
        let Some(jars) = jars_of(kind) else {
            return Ok(None);
        };
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now_ns = now.unwrap_or_default().subsec_nanos();
        let name = format!(
            "trellis-{}-{}-{number}-{now_ns}",
            kind.name().to_lowercase(),
            std::process::id()
        );
        let folder = std::env::temp_dir().join(name);
        // It must be new: what lies there already is somebody else's.
        during("making a folder", std::fs::create_dir(&folder))?;
        let mut server = Server {
            kind,
            child: None,
            folder,
            address: free_address()?,
            line: Vec::new(),
            jars,
        };
        server.make_files(&programs)?;
        server.launch(&programs[0], arguments)?;
        Ok(Some(server))
    }

    /// How a client names a database of it.
    pub fn url(&self, database: &str) -> String {
        format!("{}{}/{database}", self.kind.scheme(), self.address)
    }

    /// What is to be cleared when the process ends without dropping this.
    pub fn remains(&self) -> Remains {
        let pid = self.child.as_ref().map(Child::id);
        Remains {
            kind: self.kind,
            started: pid.map(|pid| Pid::from_raw(pid as i32)),
            folder: self.folder.clone(),
        }
    }

    /// The file in which MariaDB writes the number of its process.
    pub fn pid_file(&self) -> PathBuf {
        pid_file(&self.folder)
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The server's files, which exist before it starts.
    pub fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    fn make_files(&self, programs: &[PathBuf]) -> Result<(), StartError> {
        let data = self.data();
        let mut init = match self.kind {
            Kind::Postgres => {
                let mut init = Command::new(&programs[1]);
                init.arg("-D")
                    .arg(&data)
                    .args(["-U", "postgres", "-A", "trust"]);
                init.args(["-N", "-E", "UTF8", "--locale", "C.UTF-8"]);
                init
            }
            Kind::MariaDb => {
                let mut init = Command::new(&programs[1]);
                init.arg("--no-defaults").arg(option("--datadir", &data));
                init.arg("--auth-root-authentication-method=normal");
                // A server that starts deletes the temporary files of others beside its own.
                init.env("TMPDIR", &self.folder);
                init
            }
            Kind::Redis | Kind::Etcd | Kind::FerretDb => {
                return during("making a folder", std::fs::create_dir(&data));
            }
            Kind::Cassandra | Kind::HBase => {
                during("making a folder", std::fs::create_dir(&data))?;
                let files = match self.kind {
                    Kind::Cassandra => java::cassandra_files(&data, self.address, free_address()?),
                    _ => java::hbase_files(&data, free_address()?),
                };
                for (name, text) in files {
                    let file = self.folder.join(name);
                    during("making its settings", std::fs::write(file, text))?;
                }
                return Ok(());
            }
        };
        self.as_other(&mut init)?;
        let output = init.stdin(Stdio::null()).current_dir(&self.folder).output();
        let output = during(self.kind.name(), output)?;
        match output.status.success() {
            true => Ok(()),
            false => during(
                "making its files",
                Err(String::from_utf8_lossy(&output.stderr)),
            ),
        }
    }

    fn launch(&mut self, program: &Path, arguments: &[&str]) -> Result<(), StartError> {
        let (data, port) = (self.data(), self.address.port().to_string());
        let mut command = Command::new(program);
        match self.kind {
            Kind::Postgres => {
                command.arg("-D").arg(&data).args(["-p", &port]);
                command.args(["-c", "listen_addresses=127.0.0.1"]);
                command.args(["-c", "unix_socket_directories="]);
            }
            Kind::MariaDb => {
                command.arg("--no-defaults").arg(option("--datadir", &data));
                command.arg(option("--tmpdir", &self.folder));
                command.arg(option("--socket", &self.folder.join("socket")));
                command.arg(option("--pid-file", &self.pid_file()));
                command.args(["--bind-address=127.0.0.1", &format!("--port={port}")]);
                command.args(["--innodb-buffer-pool-size=256M", "--max-connections=1000"]);
                command.args(["--innodb-flush-log-at-trx-commit=1", "--skip-log-bin"]);
            }
            Kind::Redis => {
                command.args(["--port", &port, "--bind", "127.0.0.1"]);
                command.arg("--dir").arg(&data).args(["--save", ""]);
                command.args(["--appendonly", "yes", "--appendfsync", "always"]);
            }
            Kind::Etcd => {
                let url = format!("http://127.0.0.1:{port}");
                command.arg("--data-dir").arg(&data);
                command.args(["--listen-client-urls", &url]);
                command.args(["--advertise-client-urls", &url]);
                command.args(["--listen-peer-urls", "http://127.0.0.1:0"]);
            }
            Kind::FerretDb => {
                command.arg(option("--state-dir", &data));
                command.arg(format!("--sqlite-url=file:{}/", data.display()));
                command.args(["--handler=sqlite", "--telemetry=disable", "--debug-addr=-"]);
                command.arg(format!("--listen-addr=127.0.0.1:{port}"));
            }
            Kind::Cassandra => java::cassandra(&mut command, &self.folder, &self.jars),
            Kind::HBase => {
                let java = find("java").unwrap_or_else(|| PathBuf::from("java"));
                java::hbase(&mut command, &java, (&self.folder, &self.jars), &port);
            }
        }
        command.args(arguments);
        self.line = std::iter::once(command.get_program())
            .chain(command.get_args())
            .map(OsStr::to_owned)
            .collect();
        self.spawn()
    }

    /// Starts the program of `line` and waits until it can be used.
    fn spawn(&mut self) -> Result<(), StartError> {
        let mut command = Command::new(&self.line[0]);
        command
            .args(&self.line[1..])
            .current_dir(&self.folder)
            .stdin(Stdio::null());
        if matches!(self.kind, Kind::Postgres | Kind::MariaDb) {
            self.as_other(&mut command)?;
        }
        let log = during("making its log", File::create(self.log()))?;
        command
            .stderr(during("making its log", log.try_clone())?)
            .stdout(log);
        self.child = Some(during(self.kind.name(), command.spawn())?);
        let began = Instant::now();
        let start_max = match self.kind.jars_variable() {
            None => START_MAX,
            Some(_) => START_JAVA_MAX,
        };
        loop {
            let log = std::fs::read_to_string(self.log()).unwrap_or_default();
            let is_ready = READY.iter().any(|words| log.contains(words));
            if is_ready && TcpStream::connect(self.address).is_ok() {
                return Ok(());
            }
            let ended = self.child.as_mut().map(Child::try_wait).transpose();
            if during(self.kind.name(), ended)?.flatten().is_some() || began.elapsed() > start_max {
                let lines: Vec<&str> = log.lines().collect();
                let tail = lines[lines.len().saturating_sub(10)..].join("\n");
                let text = format!("{} does not start:\n{tail}", self.kind.name());
                return Err(StartError(text));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn log(&self) -> PathBuf {
        self.folder.join("log")
    }

    /// Ends the server's processes by SIGKILL, as a crash does. Its files stay.
    ///
    /// # Errors
    /// It runs no more.
    pub fn kill(&mut self) -> Result<(), StartError> {
        let Some(mut child) = self.child.take() else {
            return during("killing", Err("it does not run"));
        };
        let children = children_of(Pid::from_raw(child.id() as i32));
        during("killing", child.kill())?;
        // PostgreSQL's sessions, of which some have ended with it; HBase and its gateway.
        end_all(&children);
        during("killing", child.wait()).map(drop)
    }

    /// Starts a server that was killed, on the same port and with the same files.
    ///
    /// # Errors
    /// As for [`Server::start`].
    pub fn restart(&mut self) -> Result<(), StartError> {
        self.spawn()
    }

    /// Has the command run as a user that is not root, to whom the folder belongs then.
    fn as_other(&self, command: &mut Command) -> Result<(), StartError> {
        command.env("LC_ALL", "C.UTF-8");
        if is_root()? {
            let given = chown(&self.folder, Some(NOBODY), Some(NOBODY));
            during("giving the folder away", given)?;
            command.uid(NOBODY).gid(NOBODY);
        }
        Ok(())
    }
}

/// What is left to do for a server when the process ends.
#[derive(Clone, Debug)]
pub struct Remains {
    kind: Kind,
    /// The process that was started first.
    started: Option<Pid>,
    folder: PathBuf,
}

impl Remains {
    /// The server's process.
    pub fn pid(&self) -> Option<i32> {
        self.process().map(Pid::as_raw)
    }

    /// The process of now: one of MariaDB may have been killed and started again.
    fn process(&self) -> Option<Pid> {
        let again = || {
            let text = std::fs::read_to_string(pid_file(&self.folder)).ok()?;
            let pid = Pid::from_raw(text.trim().parse().ok()?);
            // The number may be another process's by now.
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
            let folder = self.folder.as_os_str().as_encoded_bytes();
            let mut places = line.windows(folder.len());
            places.any(|place| place == folder).then_some(pid)
        };
        let again = (self.kind == Kind::MariaDb).then(again).flatten();
        again.or(self.started)
    }

    /// Tells the server to end, waits for it, and removes its files. Best effort: what stays behind
    /// lies in the folder for temporary files.
    pub fn clear(&self) {
        if let Some(pid) = self.process() {
            let children = match self.kind {
                Kind::HBase => children_of(pid),
                _ => Vec::new(),
            };
            // PostgreSQL ends at once, and gives its shared memory back. The others
            // write what they have.
            let signal = match self.kind {
                Kind::Postgres => Signal::SIGQUIT,
                Kind::MariaDb | Kind::Redis | Kind::Etcd | Kind::FerretDb => Signal::SIGTERM,
                // Their files are not needed any more, and they take long to end.
                Kind::Cassandra | Kind::HBase => Signal::SIGKILL,
            };
            let _ = kill(pid, signal);
            end_all(&children);
            let began = Instant::now();
            while !has_ended(pid) && began.elapsed() < END_MAX {
                std::thread::sleep(Duration::from_millis(5));
            }
            if !has_ended(pid) {
                let _ = kill(pid, Signal::SIGKILL);
            }
        }
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Whether a child is no more, or only what its parent has not asked for.
fn has_ended(pid: Pid) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
    let state = stat.ok().and_then(|stat| {
        let (_, rest) = stat.rsplit_once(')')?;
        rest.trim_start().chars().next()
    });
    matches!(state, None | Some('Z'))
}

impl Drop for Server {
    fn drop(&mut self) {
        self.remains().clear();
        if let Some(mut child) = self.child.take() {
            let _ = child.wait();
        }
    }
}

fn children_of(pid: Pid) -> Vec<Pid> {
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    let children = children.unwrap_or_default();
    let numbers = children.split_whitespace().filter_map(|it| it.parse().ok());
    numbers.map(Pid::from_raw).collect()
}

/// Kills processes, and waits until they have ended: their ports are free then.
fn end_all(processes: &[Pid]) {
    for pid in processes {
        let _ = kill(*pid, Signal::SIGKILL);
    }
    let began = Instant::now();
    while !processes.iter().all(|pid| has_ended(*pid)) && began.elapsed() < END_MAX {
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The folder of the jars that a server takes, empty for one that takes none; `None`: they are not
/// there.
fn jars_of(kind: Kind) -> Option<PathBuf> {
    let Some(variable) = kind.jars_variable() else {
        return Some(PathBuf::new());
    };
    let folder = PathBuf::from(std::env::var_os(variable)?);
    folder.is_dir().then_some(folder)
}

/// A port of this machine that nobody uses.
fn free_address() -> Result<SocketAddr, StartError> {
    let free = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr());
    during("looking for a free port", free)
}

fn is_root() -> Result<bool, StartError> {
    let own = during("asking who runs this", std::fs::metadata("/proc/self"))?;
    Ok(own.uid() == 0)
}

fn pid_file(folder: &Path) -> PathBuf {
    folder.join("pid")
}

fn option(name: &str, path: &Path) -> String {
    format!("{name}={}", path.display())
}

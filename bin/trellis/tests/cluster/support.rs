//! Clusters for tests: node processes with known numbers, their files, their logs.

use base::Prng;
use links::answers::Answers;
use links::link::{Link, LinkError};
use links::url::{Endpoint, Target};
use runtime::{ClusterFile, NodeEntry};
use std::fs::File;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// The program under test.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_trellis");
/// A node answers by then, recovery and a busy machine included.
pub(crate) const READY_LIMIT: Duration = Duration::from_secs(60);
/// A node ends by then after SIGTERM.
pub(crate) const STOP_LIMIT: Duration = Duration::from_secs(60);
/// A client gives up after so long without an answer.
pub(crate) const ANSWER_LIMIT: Duration = Duration::from_secs(30);

/// A fresh directory; removed with everything in it when dropped.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("trellis-test-{name}-{:x}", random()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Bits from the operating system: names and ports must differ between processes.
fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// `count` ports in a row that nobody listens on, as well as those 1,000 above. They lie below the
/// ports of outgoing connections, one of which could take the port of a node that is down.
pub(crate) fn free_ports(count: u16) -> u16 {
    let free = |port: u16| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok();
    let mut prng = Prng::new(random());
    for _ in 0..1_000 {
        let first = 10_000 + prng.below(20_000) as u16;
        if (first..first + count).all(|port| free(port) && free(port + 1_000)) {
            return first;
        }
    }
    panic!("no free ports");
}

/// A cluster file for `nodes` nodes in `folder`.
pub(crate) fn write_cluster_file(folder: &Path, nodes: u16, shards: u16) -> PathBuf {
    let first = free_ports(nodes);
    let address = |port: u16| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let entry = |id: u16| NodeEntry {
        id,
        sql: address(first + id - 1),
        peer: address(first + id + 999),
        data: PathBuf::from(format!("node-{id}")),
    };
    let nodes = (1..=nodes).map(entry).collect();
    let file = ClusterFile {
        cluster: random() >> 1,
        connections: runtime::connections_default(),
        shards,
        access: None,
        log_min_duration_ms: None,
        audit_log_mib: None,
        peers: None,
        nodes,
    };
    let path = folder.join("cluster.toml");
    file.write(&path).unwrap();
    path
}

/// A cluster of node processes. Nodes are counted from 0 here. What still runs is killed when it
/// is dropped; after a panic the ends of the nodes' logs are printed.
pub(crate) struct Cluster {
    children: Vec<Option<Child>>,
    /// Nodes that have answered once.
    begun: Vec<bool>,
    /// More arguments for each node.
    args: Vec<String>,
    pub(crate) file: ClusterFile,
    path: PathBuf,
    folder: Folder,
}

impl Cluster {
    /// Starts a new cluster and waits until all nodes answer.
    pub(crate) fn start(name: &str, nodes: u16, shards: u16) -> Cluster {
        Cluster::start_with(name, nodes, shards, &[])
    }

    /// As [`Cluster::start`], with more arguments for each node.
    pub(crate) fn start_with(name: &str, nodes: u16, shards: u16, args: &[&str]) -> Cluster {
        let folder = Folder::new(name);
        let path = write_cluster_file(folder.path(), nodes, shards);
        let file = ClusterFile::read(&path).unwrap();
        let children = (0..nodes).map(|_| None).collect();
        let mut cluster = Cluster {
            children,
            begun: vec![false; usize::from(nodes)],
            args: args.iter().map(|arg| (*arg).to_owned()).collect(),
            file,
            path,
            folder,
        };
        cluster.start_all();
        cluster
    }

    /// Ends the nodes and starts them again with a changed cluster file.
    pub(crate) fn reconfigure(&mut self, change: impl FnOnce(&mut ClusterFile)) {
        self.stop_all();
        change(&mut self.file);
        self.file.write(&self.path).unwrap();
        self.start_all();
    }

    pub(crate) fn size(&self) -> usize {
        self.children.len()
    }

    /// Starts the nodes that do not run, and waits until all answer.
    pub(crate) fn start_all(&mut self) {
        for at in 0..self.size() {
            if self.children[at].is_none() {
                self.spawn(at);
            }
        }
        for at in 0..self.size() {
            self.wait_ready(at);
        }
    }

    /// Where its files are.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Waits until a node listens for clients, although it may reach no other one.
    pub(crate) fn wait_alone(&self, at: usize) {
        let address = self.file.nodes[at].sql;
        let listens = || std::net::TcpStream::connect(address).is_ok();
        wait_until("it listens", READY_LIMIT, listens);
    }

    fn log(&self, at: usize) -> PathBuf {
        self.folder.path().join(format!("node-{}.log", at + 1))
    }

    /// Starts the process of a node; does not wait for it.
    pub(crate) fn spawn(&mut self, at: usize) {
        assert!(self.children[at].is_none(), "node {at} runs already");
        let log = File::options()
            .create(true)
            .append(true)
            .open(self.log(at))
            .unwrap();
        let mut command = Command::new(PROGRAM);
        command
            .args(["start", "--node", &(at + 1).to_string(), "--cluster"])
            .arg(&self.path);
        if !self.begun[at] {
            command.arg("--new");
        }
        command.args(&self.args);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log);
        self.children[at] = Some(command.spawn().unwrap());
    }

    /// Waits until a node answers SQL.
    pub(crate) fn wait_ready(&mut self, at: usize) {
        let until = Instant::now() + READY_LIMIT;
        loop {
            if let Some(status) = self.children[at].as_mut().unwrap().try_wait().unwrap() {
                panic!("node {at} ended with {status}");
            }
            let answer = self
                .try_link(at, "postgres")
                .and_then(|mut link| link.command("SELECT 1"));
            match answer {
                Ok(()) => {
                    self.begun[at] = true;
                    return;
                }
                Err(error) => assert!(Instant::now() < until, "node {at} does not answer: {error}"),
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits until a node has ended by itself, with an error.
    pub(crate) fn wait_ended(&mut self, at: usize) {
        let mut child = self.children[at].take().expect("the node was started");
        let status = wait_child(&mut child, READY_LIMIT);
        assert!(!status.success(), "node {at} ended with {status}");
    }

    /// The node is started as a new one the next time.
    pub(crate) fn forget_begun(&mut self, at: usize) {
        self.begun[at] = false;
    }

    /// What a node has written to its log so far.
    pub(crate) fn said(&self, at: usize) -> String {
        std::fs::read_to_string(self.log(at)).unwrap_or_default()
    }

    /// Waits until each node is connected to each other one.
    pub(crate) fn wait_connected(&self) {
        for at in 0..self.size() {
            let is_connected = || {
                let mut link = self.link(at, "postgres");
                let rows = rows(&mut link, "SHOW NODES");
                rows.len() == self.size() && rows.iter().all(|row| row[3] == "up")
            };
            wait_until("nodes connect", READY_LIMIT, is_connected);
        }
    }

    /// SIGKILL.
    pub(crate) fn kill(&mut self, at: usize) {
        let mut child = self.children[at].take().expect("the node runs");
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// SIGTERM; the node must end well.
    pub(crate) fn stop(&mut self, at: usize) {
        let mut child = self.children[at].take().expect("the node runs");
        terminate(child.id());
        let status = wait_child(&mut child, STOP_LIMIT);
        assert!(
            status.success(),
            "node {at} ended with {status} after SIGTERM"
        );
    }

    pub(crate) fn stop_all(&mut self) {
        // All at once, as an operator would.
        let running: Vec<usize> = (0..self.size()).filter(|at| self.runs(*at)).collect();
        for at in &running {
            terminate(self.children[*at].as_ref().unwrap().id());
        }
        for at in running {
            let mut child = self.children[at].take().unwrap();
            let status = wait_child(&mut child, STOP_LIMIT);
            assert!(
                status.success(),
                "node {at} ended with {status} after SIGTERM"
            );
        }
    }

    /// Process number of a node that runs.
    pub(crate) fn pid(&self, at: usize) -> u32 {
        self.children[at].as_ref().expect("the node runs").id()
    }

    pub(crate) fn runs(&self, at: usize) -> bool {
        self.children[at].is_some()
    }

    /// A node that has ended although nobody ended it.
    pub(crate) fn assert_all_run(&mut self) {
        for (at, child) in self.children.iter_mut().enumerate() {
            let status = child.as_mut().unwrap().try_wait().unwrap();
            assert!(status.is_none(), "node {at} ended by itself: {status:?}");
        }
    }

    pub(crate) fn url(&self, database: &str) -> String {
        url(self.file.nodes.iter().map(|node| node.sql), database)
    }

    pub(crate) fn try_link(&self, at: usize, database: &str) -> Result<Link, LinkError> {
        connect(self.file.nodes[at].sql, database)
    }

    pub(crate) fn link(&self, at: usize, database: &str) -> Link {
        self.try_link(at, database).unwrap()
    }

    pub(crate) fn endpoint(&self, at: usize) -> Endpoint {
        let address = self.file.nodes[at].sql;
        Endpoint {
            host: address.ip().to_string(),
            port: address.port(),
        }
    }

    /// Makes a two_phase database and statements in it, on the first node.
    pub(crate) fn create(&self, database: &str, statements: &[&str]) {
        self.create_as("two_phase", database, statements);
    }

    /// As [`Cluster::create`], under this protocol.
    pub(crate) fn create_as(&self, protocol: &str, database: &str, statements: &[&str]) {
        let mut link = self.link(0, "postgres");
        let create = format!("CREATE DATABASE {database} WITH (protocol = '{protocol}')");
        link.command(&create).unwrap();
        let mut link = self.link(0, database);
        for statement in statements {
            link.command(statement)
                .unwrap_or_else(|error| panic!("{statement}: {error}"));
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for child in self.children.iter_mut().flatten() {
            let _ = child.kill();
            let _ = child.wait();
        }
        if std::thread::panicking() {
            for at in 0..self.size() {
                print_tail(&self.log(at));
            }
        }
    }
}

/// Prints the end of a log.
pub(crate) fn print_tail(log: &Path) {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    // A panic is worth more than what came after it.
    let panic = lines.iter().position(|line| line.contains("panicked at"));
    let first = panic.unwrap_or(lines.len().saturating_sub(15));
    let tail = lines[first..]
        .iter()
        .take(40)
        .copied()
        .collect::<Vec<_>>()
        .join("\n");
    if !tail.is_empty() {
        let _ = writeln!(std::io::stderr(), "{}:\n{tail}", log.display());
    }
}

pub(crate) fn url(addresses: impl Iterator<Item = SocketAddr>, database: &str) -> String {
    let addresses: Vec<String> = addresses.map(|address| address.to_string()).collect();
    format!("postgres://trellis@{}/{database}", addresses.join(","))
}

pub(crate) fn connect(address: SocketAddr, database: &str) -> Result<Link, LinkError> {
    let target = Target::parse(&url([address].into_iter(), database)).unwrap();
    Link::connect(&target.endpoints[0], &target, Some(ANSWER_LIMIT))
}

/// As [`connect`], under another name.
pub(crate) fn connect_as(endpoint: &Endpoint, user: &str) -> Result<Link, LinkError> {
    let target = Target::parse(&format!("postgres://{user}@{endpoint}/postgres")).unwrap();
    Link::connect(&target.endpoints[0], &target, Some(ANSWER_LIMIT))
}

/// Sends SIGTERM.
pub(crate) fn terminate(pid: u32) {
    signal(pid, "TERM");
}

/// Sends a signal by the shell's own `kill`.
pub(crate) fn signal(pid: u32, name: &str) {
    let script = format!("kill -{name} {pid}");
    let status = Command::new("sh").args(["-c", &script]).status().unwrap();
    assert!(status.success(), "{script}");
}

/// Waits for the end of a process; one that does not end is killed.
pub(crate) fn wait_child(child: &mut Child, limit: Duration) -> ExitStatus {
    let until = Instant::now() + limit;
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        if Instant::now() > until {
            let _ = child.kill();
            let _ = child.wait();
            panic!("process {} did not end within {limit:?}", child.id());
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Waits until `is_so`.
pub(crate) fn wait_until(what: &str, limit: Duration, mut is_so: impl FnMut() -> bool) {
    let until = Instant::now() + limit;
    while !is_so() {
        assert!(Instant::now() < until, "waited {limit:?} in vain: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The rows of one query as text; NULL is empty.
pub(crate) fn rows(link: &mut Link, sql: &str) -> Vec<Vec<String>> {
    try_rows(link, sql).unwrap_or_else(|error| panic!("{sql}: {error}"))
}

pub(crate) fn try_rows(link: &mut Link, sql: &str) -> Result<Vec<Vec<String>>, LinkError> {
    let mut found = Vec::new();
    let mut answers = Answers::new();
    link.query(sql, &mut answers)?;
    for row in 0..answers.rows(0) {
        let cells = (0..answers.columns(0)).map(|column| answers.text(0, row, column).to_string());
        found.push(cells.collect());
    }
    Ok(found)
}

/// [`rows`], asked again while transactions that a crash left undecided are in the way.
pub(crate) fn rows_patiently(link: &mut Link, sql: &str) -> Vec<Vec<String>> {
    let until = Instant::now() + READY_LIMIT;
    loop {
        match try_rows(link, sql) {
            Ok(rows) => return rows,
            Err(LinkError::Server(error)) if error.sqlstate == "40001" => {
                assert!(Instant::now() < until, "{sql}: {error}");
                std::thread::sleep(Duration::from_millis(20));
            }
            Err(error) => panic!("{sql}: {error}"),
        }
    }
}

/// The only cell of a query as a number.
pub(crate) fn number(link: &mut Link, sql: &str) -> i64 {
    let rows = rows(link, sql);
    let text = &rows[0][0];
    text.parse()
        .unwrap_or_else(|_| panic!("{sql}: {text:?} is no number"))
}

/// The number of a session, by which others cancel it.
pub(crate) fn pid_of(link: &mut Link) -> String {
    rows(link, "SELECT pg_backend_pid()")[0][0].clone()
}

/// Waits until the session with this number runs a statement with this text.
pub(crate) fn wait_running(link: &mut Link, pid: &str, text: &str) {
    let running = format!(
        "SELECT count(*) FROM pg_stat_activity WHERE pid = {pid} AND state = 'active' AND \
         query LIKE '%{text}%'"
    );
    wait_until(text, READY_LIMIT, || number(link, &running) == 1);
}

/// The SQLSTATE with which a statement fails.
pub(crate) fn sqlstate(link: &mut Link, sql: &str) -> String {
    match link.command(sql) {
        Err(LinkError::Server(error)) => error.sqlstate,
        Err(error) => panic!("{sql}: {error}"),
        Ok(()) => panic!("{sql}: no error"),
    }
}

/// Runs a statement again while it conflicts with others.
pub(crate) fn patiently(link: &mut Link, sql: &str) {
    let until = Instant::now() + READY_LIMIT;
    loop {
        match link.command(sql) {
            Ok(()) => return,
            Err(LinkError::Server(error)) if error.sqlstate == "40001" => {
                assert!(Instant::now() < until, "{sql}: {error}");
                std::thread::sleep(Duration::from_millis(20));
            }
            Err(error) => panic!("{sql}: {error}"),
        }
    }
}

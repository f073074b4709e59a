//! A disk without room: writes are refused with 53100, reads go on, nothing acknowledged is lost,
//! and the node goes on by itself once there is room. Room runs out by a limit on the size of
//! files, which anybody may set.

use crate::support::{
    Folder, PROGRAM, READY_LIMIT, connect, number, print_tail, signal, sqlstate, wait_until,
    write_cluster_file,
};
use links::link::{Link, LinkError};
use runtime::ClusterFile;
use std::fs::File;
use std::io::{BufRead, BufReader, Lines, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// Where a node runs that can run out of room. A shell in between takes words: it starts the node,
/// tells its process number and its end, and makes room.
struct Room {
    shell: Child,
    words: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
    /// Process number while it runs.
    node: Option<u32>,
    address: SocketAddr,
    log: PathBuf,
}

/// `$1` is the program, `$2` the cluster file, `$3` the number of the node.
const SERVE: &str = r#"
echo ready
new=--new
while read -r word; do
    case $word in
    start) "$1" start $new --node "$3" --cluster "$2" & new=; echo $! ;;
    wait) wait $!; echo $? ;;
    room) make_room; echo done ;;
    esac
done
"#;

/// Files may have 20 MiB until there is room. The signal that a longer file would raise is
/// ignored, so that the write itself fails, as it does on a full disk.
const LIMITED_FILES: &str = r#"
trap '' XFSZ
ulimit -S -f 40960
make_room() { prlimit --pid $! --fsize=unlimited; ulimit -S -f unlimited; }
"#;

/// As much room as the machine has.
const UNLIMITED: &str = "make_room() { :; }";

impl Room {
    fn new(cluster: &Path, node: u16, script: &str) -> Room {
        let file = ClusterFile::read(cluster).unwrap();
        let log = cluster.with_file_name(format!("log-{node}"));
        let mut command = Command::new("sh");
        command.args(["-c", &format!("{script}{SERVE}"), "sh", PROGRAM]);
        command.arg(cluster).arg(node.to_string());
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(File::create(&log).unwrap());
        let mut shell = command.spawn().unwrap();
        let mut room = Room {
            words: shell.stdin.take().unwrap(),
            answers: BufReader::new(shell.stdout.take().unwrap()).lines(),
            shell,
            node: None,
            address: file.nodes[usize::from(node) - 1].sql,
            log,
        };
        let ready = room.answers.next().and_then(Result::ok);
        assert_eq!(ready.as_deref(), Some("ready"), "the shell can limit files");
        room
    }

    fn say(&mut self, word: &str) -> String {
        writeln!(self.words, "{word}").unwrap();
        self.answers.next().expect("the shell answers").unwrap()
    }

    fn spawn(&mut self) {
        self.node = Some(self.say("start").parse().unwrap());
    }

    fn start(&mut self) {
        self.spawn();
        self.wait_ready();
    }

    fn wait_ready(&self) {
        wait_until("the node answers", READY_LIMIT, || {
            connect(self.address, "postgres").is_ok_and(|mut link| link.command("SELECT 1").is_ok())
        });
    }

    /// Ends the node by a signal; its exit code.
    fn end(&mut self, name: &str) -> i32 {
        signal(self.node.take().unwrap(), name);
        self.say("wait").parse().unwrap()
    }

    fn link(&self) -> Link {
        connect(self.address, "postgres").unwrap()
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        if let Some(pid) = self.node.take() {
            let mut kill = Command::new("sh");
            let _ = kill.args(["-c", &format!("kill -KILL {pid}")]).status();
        }
        let _ = self.shell.kill();
        let _ = self.shell.wait();
        if std::thread::panicking() {
            print_tail(&self.log);
        }
    }
}

/// Inserts rows until one is refused for want of room: every `step`-th number from `next` on,
/// which is the first that was not acknowledged.
fn fill(link: &mut Link, next: &mut u32, step: u32) {
    let body = "x".repeat(24_000);
    let until = Instant::now() + Duration::from_secs(120);
    loop {
        assert!(Instant::now() < until, "{next} rows and still room");
        match link.command(&format!("INSERT INTO t VALUES ({next}, '{body}')")) {
            Ok(()) => *next += step,
            Err(LinkError::Server(error)) => {
                assert_eq!(error.sqlstate, "53100", "{error}");
                return;
            }
            Err(error) => panic!("row {next}: {error}"),
        }
    }
}

/// Exactly the acknowledged rows are there.
fn verify(link: &mut Link, rows: u32) {
    assert_eq!(number(link, "SELECT count(*) FROM t"), i64::from(rows));
    assert_eq!(
        number(link, "SELECT sum(length(body)) FROM t"),
        i64::from(rows) * 24_000
    );
}

const CREATE: &str = "CREATE TABLE t (id int PRIMARY KEY, body text NOT NULL)";

#[test]
fn a_full_disk_refuses_writes_and_loses_nothing() {
    let folder = Folder::new("full");
    let cluster = write_cluster_file(folder.path(), 1, 2);
    let mut room = Room::new(&cluster, 1, LIMITED_FILES);
    room.start();
    let mut link = room.link();
    link.command(CREATE).unwrap();
    let mut rows = 0;
    fill(&mut link, &mut rows, 1);
    assert!(rows > 100, "only {rows} rows had room");
    // Reads go on, in this session and in others; writes are refused, blocks as well.
    verify(&mut link, rows);
    verify(&mut room.link(), rows);
    link.command("BEGIN").unwrap();
    assert_eq!(
        sqlstate(&mut link, &format!("INSERT INTO t VALUES ({rows}, 'x')")),
        "53100"
    );
    link.command("ROLLBACK").unwrap();
    assert_eq!(sqlstate(&mut link, "CREATE TABLE u (id int)"), "53100");
    assert_eq!(sqlstate(&mut link, "DELETE FROM t WHERE id = 1"), "53100");

    // Killed and started without room: everything acknowledged is there.
    assert_eq!(room.end("KILL"), 128 + 9);
    room.start();
    let mut link = room.link();
    verify(&mut link, rows);

    // Room comes: the node takes writes again by itself.
    fill(&mut link, &mut rows, 1);
    room.say("room");
    let insert = format!("INSERT INTO t VALUES ({rows}, '{}')", "x".repeat(24_000));
    wait_until("writes are taken again", Duration::from_secs(20), || {
        link.command(&insert).is_ok()
    });
    rows += 1;
    link.command("CREATE TABLE u (id int)").unwrap();
    assert_eq!(room.end("KILL"), 128 + 9);
    room.start();
    verify(&mut room.link(), rows);
    assert_eq!(room.end("TERM"), 0);
    room.start();
    verify(&mut room.link(), rows);
}

#[test]
fn a_participant_whose_disk_is_full_refuses_what_others_write_to_it() {
    let folder = Folder::new("full-participant");
    let cluster = write_cluster_file(folder.path(), 2, 2);
    let mut rooms = [
        Room::new(&cluster, 1, UNLIMITED),
        Room::new(&cluster, 2, LIMITED_FILES),
    ];
    rooms.iter_mut().for_each(Room::spawn);
    rooms.iter().for_each(Room::wait_ready);
    let mut link = rooms[0].link();
    wait_until("the nodes are connected", READY_LIMIT, || {
        link.command(CREATE).is_ok()
    });
    // Rows of both nodes, written while there is room.
    let mut open = rooms[0].link();
    open.command("BEGIN").unwrap();
    for id in 1..=16 {
        let insert = format!("INSERT INTO t VALUES (-{id}, 'x')");
        open.command(&insert).unwrap();
    }

    // Four clients of the first node fill the disk of the second.
    let mut next = [0, 1, 2, 3];
    std::thread::scope(|scope| {
        for next in &mut next {
            let mut link = rooms[0].link();
            scope.spawn(move || fill(&mut link, next, 4));
        }
    });
    let mut rows: u32 = next.iter().map(|next| next / 4).sum();
    assert!(rows > 200, "only {rows} rows had room");
    assert_eq!(sqlstate(&mut open, "COMMIT"), "53100");
    rooms.iter().for_each(|room| verify(&mut room.link(), rows));

    // The first node has room for its own rows; what touches both is refused as a whole.
    let (mut taken, mut refused) = (Vec::new(), Vec::new());
    for id in 1_000_000..1_000_016 {
        let insert = format!("INSERT INTO t VALUES ({id}, '{}')", "x".repeat(24_000));
        match link.command(&insert) {
            Ok(()) => taken.push(id),
            Err(LinkError::Server(error)) => {
                assert_eq!(error.sqlstate, "53100", "{error}");
                refused.push(id);
            }
            Err(error) => panic!("row {id}: {error}"),
        }
    }
    assert!(!taken.is_empty() && !refused.is_empty());
    rows += taken.len() as u32;
    link.command("BEGIN").unwrap();
    let delete = format!("DELETE FROM t WHERE id = {}", taken[0]);
    link.command(&delete).unwrap();
    let insert = format!("INSERT INTO t VALUES ({}, 'x')", refused[0]);
    assert_eq!(sqlstate(&mut link, &insert), "53100");
    link.command("COMMIT").unwrap();
    for room in &rooms {
        verify(&mut room.link(), rows);
        assert_eq!(
            sqlstate(&mut room.link(), "CREATE TABLE u (id int)"),
            "53100"
        );
    }

    // Room comes, and nothing was lost meanwhile, nor is it by a crash.
    rooms[1].say("room");
    wait_until("writes are taken again", Duration::from_secs(20), || {
        link.command("UPDATE t SET body = body").is_ok()
    });
    wait_until("schema changes work again", READY_LIMIT, || {
        link.command("CREATE TABLE IF NOT EXISTS u (id int)")
            .is_ok()
    });
    assert_eq!(rooms[1].end("KILL"), 128 + 9);
    rooms[1].start();
    wait_until("both nodes answer", READY_LIMIT, || {
        link.command("SELECT count(*) FROM t").is_ok()
    });
    rooms.iter().for_each(|room| verify(&mut room.link(), rows));
    rooms.iter_mut().for_each(|room| {
        signal(room.node.unwrap(), "TERM");
    });
    for room in &mut rooms {
        room.node = None;
        assert_eq!(room.say("wait"), "0");
    }
}

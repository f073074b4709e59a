//! A disk without room: writes are refused with 53100, reads go on, nothing acknowledged is lost,
//! and the node goes on by itself once there is room.
//!
//! Two ways to run out of room: a limit on the size of files, which anybody may set, and a small
//! file system of our own, where the machine lets us mount one.

use crate::support::{
    Folder, PROGRAM, READY_LIMIT, connect, number, print_tail, signal, sqlstate, wait_until,
    write_cluster_file,
};
use drive::link::{Link, LinkError};
use runtime::ClusterFile;
use std::fs::File;
use std::io::{BufRead, BufReader, Lines, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// Where a node runs that can run out of room. A shell in between takes words: it starts the node,
/// tells its process number and its end, and makes room.
struct Room {
    shell: Child,
    words: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
    node: Option<u32>,
    address: SocketAddr,
    log: PathBuf,
    _folder: Folder,
}

/// `$1` is the program, `$2` the cluster file, `$3` the folder of the node's data.
const SERVE: &str = r#"
echo ready
while read -r word; do
    case $word in
    start) "$1" start --node 1 --cluster "$2" & echo $! ;;
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
make_room() { prlimit --pid $! --fsize=unlimited; }
"#;

/// A file system of 40 MiB, of which a file takes 6 until there is room. It is gone with the shell.
const SMALL_DISK: &str = r#"
disk=$3
mount -t tmpfs -o size=40m tmpfs "$disk" || exit 1
head -c 6291456 /dev/zero > "$disk/ballast"
make_room() { rm "$disk/ballast"; }
"#;

impl Room {
    /// `None` if the script cannot do what it must, such as mount.
    fn new(name: &str, program: &[&str], script: &str) -> Option<Room> {
        let folder = Folder::new(name);
        let data = folder.path().join("disk");
        std::fs::create_dir_all(&data).unwrap();
        let path = write_cluster_file(folder.path(), 1, 2);
        let mut file = ClusterFile::read(&path).unwrap();
        file.nodes[0].data = data.join("node-1");
        file.write(&path).unwrap();
        let log = folder.path().join("log");
        let mut command = Command::new(program[0]);
        command
            .args(&program[1..])
            .args(["-c", &format!("{script}{SERVE}"), "sh", PROGRAM]);
        command.arg(&path).arg(&data);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(File::create(&log).unwrap());
        let mut shell = command.spawn().ok()?;
        let mut room = Room {
            words: shell.stdin.take().unwrap(),
            answers: BufReader::new(shell.stdout.take().unwrap()).lines(),
            shell,
            node: None,
            address: file.nodes[0].sql,
            log,
            _folder: folder,
        };
        let ready = room.answers.next().and_then(Result::ok);
        (ready.as_deref() == Some("ready")).then_some(room)
    }

    fn say(&mut self, word: &str) -> String {
        writeln!(self.words, "{word}").unwrap();
        self.answers.next().expect("the shell answers").unwrap()
    }

    fn start(&mut self) {
        self.node = Some(self.say("start").parse().unwrap());
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

/// Inserts rows until one is refused for want of room; `next` is the first number that was not
/// acknowledged.
fn fill(link: &mut Link, next: &mut u32) {
    let body = "x".repeat(24_000);
    let until = Instant::now() + Duration::from_secs(120);
    loop {
        assert!(Instant::now() < until, "{next} rows and still room");
        match link.command(&format!("INSERT INTO t VALUES ({next}, '{body}')")) {
            Ok(()) => *next += 1,
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
    assert_eq!(number(link, "SELECT max(id) FROM t"), i64::from(rows) - 1);
    assert_eq!(
        number(link, "SELECT sum(length(body)) FROM t"),
        i64::from(rows) * 24_000
    );
}

fn run_out_of_room(mut room: Room) {
    room.start();
    let mut link = room.link();
    link.command("CREATE TABLE t (id int PRIMARY KEY, body text NOT NULL)")
        .unwrap();
    let mut rows = 0;
    fill(&mut link, &mut rows);
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

    // Killed and started without room: everything acknowledged is there.
    assert_eq!(room.end("KILL"), 128 + 9);
    room.start();
    let mut link = room.link();
    verify(&mut link, rows);

    // Room comes: the node takes writes again by itself.
    fill(&mut link, &mut rows);
    room.say("room");
    let insert = format!("INSERT INTO t VALUES ({rows}, '{}')", "x".repeat(24_000));
    wait_until("writes are taken again", Duration::from_secs(20), || {
        link.command(&insert).is_ok()
    });
    rows += 1;
    assert_eq!(room.end("KILL"), 128 + 9);
    room.start();
    verify(&mut room.link(), rows);
    assert_eq!(room.end("TERM"), 0);
    room.start();
    verify(&mut room.link(), rows);
}

#[test]
fn a_journal_that_may_not_grow_refuses_writes_and_loses_nothing() {
    let room = Room::new("limit", &["sh"], LIMITED_FILES);
    run_out_of_room(room.expect("a shell can limit the size of files"));
}

#[test]
fn a_full_disk_refuses_writes_and_loses_nothing() {
    match Room::new(
        "disk",
        &["unshare", "--map-root-user", "--mount", "sh"],
        SMALL_DISK,
    ) {
        Some(room) => run_out_of_room(room),
        // Some machines let nobody mount; the limit of files above is tested everywhere.
        None => writeln!(std::io::stderr(), "this machine does not let us mount").unwrap(),
    }
}

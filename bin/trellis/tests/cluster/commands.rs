//! The commands as a user types them: start, status, sql, stop, demo.

use crate::support::{
    Folder, PROGRAM, READY_LIMIT, STOP_LIMIT, free_ports, signal, wait_child, wait_until,
};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Instant;

pub(crate) fn trellis(args: &[&str]) -> Output {
    Command::new(PROGRAM)
        .args(args)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A running `trellis start`; a test that panics stops it through its own end.
pub(crate) struct Running {
    child: Child,
    pub(crate) data: String,
}

impl Running {
    pub(crate) fn start(data: &Path, more: &[&str]) -> Running {
        let data = data.to_str().unwrap().to_string();
        let mut command = Command::new(PROGRAM);
        command.args(["start", "--data", &data]).args(more);
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let until = Instant::now() + READY_LIMIT;
        // The last line of the welcome.
        while !lines
            .next()
            .is_some_and(|line| line.unwrap().starts_with("Ctrl-C"))
        {
            assert!(
                Instant::now() < until && child.try_wait().unwrap().is_none(),
                "no welcome"
            );
        }
        Running { child, data }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.child.try_wait().is_ok_and(|status| status.is_none()) {
            let _ = trellis(&["stop", "--data", &self.data]);
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

#[test]
fn a_cluster_is_started_asked_and_stopped() {
    let folder = Folder::new("commands");
    let data = folder.path().join("cluster");
    let dir = data.to_str().unwrap();
    let port = free_ports(3).to_string();
    let mut running = Running::start(&data, &["--nodes", "3", "--shards", "1", "--port", &port]);

    let status = trellis(&["status", "--data", dir]);
    assert!(status.status.success(), "{}", stderr(&status));
    assert_eq!(
        stdout(&status).matches(" up ").count(),
        3,
        "{}",
        stdout(&status)
    );

    let again = trellis(&["start", "--data", dir]);
    assert!(!again.status.success());
    assert!(stderr(&again).contains("run already"), "{}", stderr(&again));
    let other = trellis(&["start", "--data", dir, "--nodes", "2"]);
    assert!(!other.status.success());
    assert!(
        stderr(&other).contains("has 3 nodes, not 2"),
        "{}",
        stderr(&other)
    );

    let script = "CREATE TABLE t (id int PRIMARY KEY, name text);\n\
                  INSERT INTO t VALUES (1, 'a;b'), (2, NULL);\n\
                  SELECT * FROM t ORDER BY id";
    let answer = trellis(&["sql", "--data", dir, "-c", script]);
    let expected =
        "CREATE TABLE\nINSERT 0 2\n id | name\n----+------\n  1 | a;b\n  2 |\n(2 rows)\n";
    assert_eq!(stdout(&answer), expected, "{}", stderr(&answer));

    let stop = trellis(&["stop", "--data", dir]);
    assert!(stop.status.success(), "{}", stderr(&stop));
    assert_eq!(
        stdout(&stop).matches("stopping").count(),
        3,
        "{}",
        stdout(&stop)
    );
    assert!(wait_child(&mut running.child, STOP_LIMIT).success());
    let stop = trellis(&["stop", "--data", dir]);
    assert_eq!(
        stdout(&stop).matches("not running").count(),
        3,
        "{}",
        stdout(&stop)
    );
    let status = trellis(&["status", "--data", dir]);
    assert_eq!(status.status.code(), Some(1));
    assert_eq!(
        stdout(&status).matches(" down ").count(),
        3,
        "{}",
        stdout(&status)
    );

    let mut running = Running::start(&data, &[]);
    let answer = trellis(&[
        "sql",
        "--data",
        dir,
        "--plain",
        "-c",
        "SELECT count(*) FROM t",
    ]);
    assert_eq!(stdout(&answer), "2\n", "{}", stderr(&answer));
    signal(running.child.id(), "TERM");
    assert!(wait_child(&mut running.child, STOP_LIMIT).success());
}

#[test]
fn the_client_reads_scripts_and_reports_errors() {
    let folder = Folder::new("client");
    let data = folder.path().join("cluster");
    let dir = data.to_str().unwrap();
    let port = free_ports(1).to_string();
    let _running = Running::start(&data, &["--port", &port]);
    let script = "CREATE TABLE part (id int PRIMARY KEY, name text NOT NULL, n numeric(6,2));\n\
                  COPY part FROM STDIN;\n1\tbolt\t1.50\n2\tnut;\t\\N\n\\.\n\
                  COPY part TO STDOUT;\n\\d\n\\d part\n\\dt p*\n\\di\n\\l\n\\x\n\
                  SELECT * FROM part WHERE id = 1;\n\
                  SELECT\n  nope FROM part;\nSELECT 'never';\n";
    let path = folder.path().join("script.sql");
    std::fs::write(&path, script).unwrap();
    let answer = trellis(&["sql", "--data", dir, "-f", path.to_str().unwrap()]);
    assert_eq!(answer.status.code(), Some(1));
    let (out, errors) = (stdout(&answer), stderr(&answer));
    for part in [
        "COPY 2\n1\tbolt\t1.50\n2\tnut;\t\\N\n",
        " public | part | table |",
        " name   | text         | not null |",
        " n      | numeric(6,2) |",
        "part_pkey",
        " postgres ",
        "-[ RECORD 1 ]----\nid   | 1\nname | bolt\nn    | 1.50\n",
    ] {
        assert!(out.contains(part), "{part:?} is not in\n{out}\n{errors}");
    }
    assert!(!out.contains("never"));
    assert!(
        errors.contains(
            "ERROR 42703: column \"nope\" does not exist\nLINE 2:   nope FROM part;\n          ^"
        ),
        "{errors}"
    );

    let url = format!("postgres://trellis@127.0.0.1:{port}/postgres");
    let mut piped = Command::new(PROGRAM);
    piped
        .args(["sql", "--url", &url, "--plain"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut piped = piped.spawn().unwrap();
    piped
        .stdin
        .take()
        .unwrap()
        .write_all(b"SELECT 1; SELECT\n2;\n\\q\nSELECT 3;")
        .unwrap();
    let mut text = String::new();
    piped
        .stdout
        .take()
        .unwrap()
        .read_to_string(&mut text)
        .unwrap();
    assert!(wait_child(&mut piped, STOP_LIMIT).success());
    assert_eq!(text, "1\n2\n");
}

#[test]
fn wrong_commands_say_what_to_do() {
    let folder = Folder::new("wrong");
    let missing = folder.path().join("missing");
    let missing = missing.to_str().unwrap();
    let missing_file = format!("{missing}/file");
    let missing_file = missing_file.as_str();
    let broken = folder.path().join("broken.toml");
    std::fs::write(&broken, "cluster = 1\nshards = 99\n").unwrap();
    let broken = broken.to_str().unwrap();
    let cases: &[(&[&str], &str)] = &[
        (
            &["status", "--data", missing],
            "trellis start --nodes 3 --data",
        ),
        (&["stop", "--data", missing], "holds no cluster"),
        (&["start"], "--data"),
        (
            &["start", "--data", missing, "--nodes", "0"],
            "0 is not in 1..=64",
        ),
        (&["start", "--node", "1"], "--cluster"),
        (
            &["start", "--node", "1", "--cluster", missing],
            "cannot read",
        ),
        (
            &["start", "--node", "1", "--cluster", broken],
            "broken.toml",
        ),
        (&["demo", "--protocol", "epoch"], "two_phase"),
        // Before the run, not after it.
        (&["demo", "--json", missing_file], "cannot write"),
        (&["demo", "--report", missing_file], "cannot write"),
        (&["paper", "leap", "--json", missing_file], "cannot write"),
        (&["sim", "run", "--json", missing_file], "cannot write"),
        (
            &[
                "bench",
                "run",
                "--url",
                "postgres://x@127.0.0.1:1/x",
                "--report",
                missing_file,
            ],
            "cannot write",
        ),
        (&["demo", "--rate", "0"], "a rate lies above 0"),
        (&["sql", "--url", "mysql://x"], "postgres://"),
        (
            &[
                "sql",
                "--url",
                "postgres://x@127.0.0.1:1/x",
                "-c",
                "SELECT 1",
            ],
            "no server answers",
        ),
        (
            &["bench", "run", "--url", "postgres://x@127.0.0.1:1/x"],
            "127.0.0.1:1",
        ),
        (
            &["bench", "load", "--url", "postgres://x@127.0.0.1:1/x"],
            "trellis start",
        ),
        (&["sim", "run", "--faults", "wrong"], "see trellis sim list"),
        (
            &["sim", "run", "--workload", "wrong"],
            "see trellis sim list",
        ),
        (
            &[
                "bench",
                "run",
                "--url",
                "postgres://x/y",
                "--isolation",
                "none",
            ],
            "isolation level",
        ),
    ];
    for (args, part) in cases {
        let answer = trellis(args);
        assert!(!answer.status.success(), "{args:?}");
        assert!(
            stderr(&answer).contains(part),
            "{args:?}: {}",
            stderr(&answer)
        );
    }
    for command in [
        &["--help"][..],
        &["demo", "--help"],
        &["start", "--help"],
        &["sql", "--help"],
    ] {
        assert!(stdout(&trellis(command)).contains("trellis"), "{command:?}");
    }
}

#[test]
fn a_seed_has_the_workload_of_its_turn() {
    let replay = |more: &[&str]| {
        let mut args = vec!["sim", "replay", "2", "--faults", "none", "--millis", "50"];
        args.extend(more);
        let answer = trellis(&args);
        assert!(answer.status.success(), "{}", stderr(&answer));
        stdout(&answer)
    };
    let list = stdout(&trellis(&["sim", "list"]));
    let second = list
        .lines()
        .nth(2)
        .unwrap()
        .split_whitespace()
        .next()
        .unwrap();
    let named = replay(&["--workload", second]);
    assert_eq!(replay(&[]), named);
}

#[test]
fn a_cluster_whose_ports_are_taken_is_not_made() {
    let folder = Folder::new("taken");
    let data = folder.path().join("cluster");
    let port = free_ports(1);
    let _taken = TcpListener::bind(("127.0.0.1", port)).unwrap();
    let (dir, port) = (data.to_str().unwrap(), port.to_string());
    let answer = trellis(&["start", "--data", dir, "--port", &port]);
    assert!(!answer.status.success());
    assert!(stderr(&answer).contains("--port names other ports"));
    assert!(!data.exists(), "a second try may choose other ports");
}

#[test]
fn an_interrupted_demo_leaves_nothing_behind() {
    let folder = Folder::new("demo");
    let mut command = Command::new(PROGRAM);
    command
        .args(["demo", "--nodes", "2", "--shards", "1"])
        .env("TMPDIR", folder.path());
    command
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    let mut demo = command.spawn().unwrap();
    let mut out = BufReader::new(demo.stdout.take().unwrap());
    let mut line = String::new();
    out.read_line(&mut line).unwrap();
    assert!(line.contains("starting 2 nodes"), "{line}");
    let nodes = || {
        let found = std::fs::read_dir(folder.path()).unwrap();
        found.map(|entry| entry.unwrap().path()).collect::<Vec<_>>()
    };
    // Of the nodes that run already.
    let pids = || -> Option<Vec<String>> {
        let cluster = nodes().pop()?;
        let pid = |id| std::fs::read_to_string(cluster.join(format!("node-{id}/PID"))).ok();
        (1..=2)
            .map(|id| pid(id).filter(|it| is_alive(it)))
            .collect()
    };
    wait_until("its nodes run", READY_LIMIT, || pids().is_some());
    let pids = pids().unwrap();
    assert_eq!(nodes().len(), 1, "the cluster's directory");
    signal(demo.id(), "INT");
    assert_eq!(wait_child(&mut demo, STOP_LIMIT).code(), Some(130));
    assert_eq!(nodes(), Vec::<std::path::PathBuf>::new());
    for pid in pids {
        wait_until("its nodes end", STOP_LIMIT, || !is_alive(&pid));
    }
}

/// Whether a process runs. One that has ended but that nobody has waited for does not.
fn is_alive(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
    let state = stat.ok().and_then(|stat| {
        stat.rsplit_once(") ")
            .map(|(_, rest)| rest[..1].to_string())
    });
    state.is_some_and(|state| state != "Z" && state != "X")
}

//! Settings of a run and of a load on a real PostgreSQL: CSV files, ranges of terminals, terminals
//! with one kind, replicas.
#![allow(
    clippy::unwrap_used,
    reason = "a test file whose helpers are not test functions"
)]

mod support;

use drive::report;
use drive::run::RunReport;
use drive::tpcc::csv::{self, Folder};
use drive::tpcc::dike::DikeOptions;
use drive::tpcc::{self, Isolation, LoadOptions, RunOptions};
use links::view::Silent;
use peer::Peer;
use servers::{Kind, Server, find};
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use support::run_until;
use workload::tpcc::Scale;

fn scale() -> Scale {
    Scale {
        items: 300,
        customers: 30,
        orders: 30,
        ..Scale::reduced(4)
    }
}

fn load(url: &str) {
    let load = LoadOptions {
        scale: scale(),
        accounts: true,
        ..LoadOptions::new(url, 4)
    };
    tpcc::load(&load, &mut Silent).unwrap();
}

fn options(url: &str, mix: &str) -> RunOptions {
    let mut options = RunOptions::new(url);
    options.isolation = Isolation::RepeatableRead;
    options.runner.clients = 4;
    options.runner.warmup = Duration::ZERO;
    options.runner.length = Duration::from_secs(2);
    options.dike = Some(DikeOptions {
        mix: mix.parse().unwrap(),
        ..DikeOptions::default()
    });
    options
}

/// Runs until each of these kinds has committed.
fn run(options: &RunOptions, kinds: &[usize]) -> RunReport {
    let has_committed = |run: &RunReport, kind: &usize| run.kinds[*kind].tally.committed > 0;
    let found = run_until(options, |run| {
        kinds.iter().all(|kind| has_committed(run, kind))
    });
    let table = report::table(&found);
    assert!(found.passed() && found.failed() == 0, "{table}");
    let mut all = kinds.iter();
    assert!(all.all(|kind| has_committed(&found, kind)), "{table}");
    found
}

fn refused(options: &RunOptions) -> String {
    tpcc::run(options, &mut Silent)
        .expect_err("it cannot be had")
        .to_string()
}

/// A folder that is gone when dropped.
struct Temp(PathBuf);

impl Temp {
    fn new(name: &str) -> Temp {
        let name = format!("trellis-settings-{}-{name}", std::process::id());
        Temp(std::env::temp_dir().join(name))
    }
}

impl Drop for Temp {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn csv_files_are_what_the_seed_makes_and_are_loaded_as_it_is() {
    let Some(peer) = Peer::start() else { return };
    let folder = Temp::new("csv");
    csv::write(&folder.0, scale(), 7, 1_700_000_000_000_000, &mut Silent).unwrap();
    let again = csv::write(&folder.0, scale(), 7, 0, &mut Silent).unwrap_err();
    assert!(again.to_string().contains("not empty"), "{again}");
    for (name, foreign_keys) in [("csv1", false), ("csv2", true)] {
        peer.psql("postgres", &format!("CREATE DATABASE {name}"));
        let mut load = LoadOptions::new(&peer.url(name), 1);
        load.foreign_keys = foreign_keys;
        load.read_from(Folder::open(&folder.0).unwrap());
        tpcc::load(&load, &mut Silent).unwrap();
        // It is there already.
        tpcc::load(&load, &mut Silent).unwrap();
        let found = tpcc::check(&load.url, &mut Silent).unwrap();
        assert_eq!((found.passed(), found.failed()), (13, 0));
    }
    // PostgreSQL's own CSV of a table is the file.
    let own = peer.psql(
        "csv1",
        "COPY (SELECT * FROM item ORDER BY i_id) TO STDOUT (FORMAT csv)",
    );
    let ours = std::fs::read_to_string(folder.0.join("item.csv")).unwrap();
    let (head, rows) = ours.split_once('\n').unwrap();
    assert_eq!(head, "i_id,i_im_id,i_name,i_price,i_data");
    assert_eq!(rows.trim_end(), own.trim_end());
    let mixed = options(&peer.url("csv1"), "new_order:45,payment:43,delivery:12");
    run(&mixed, &[0]);
    let damage = |file: &str, change: &dyn Fn(&str) -> String| {
        let path = folder.0.join(file);
        let before = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, change(&before)).unwrap();
        peer.psql("postgres", "DROP DATABASE IF EXISTS damaged WITH (FORCE)");
        peer.psql("postgres", "CREATE DATABASE damaged");
        let mut load = LoadOptions::new(&peer.url("damaged"), 1);
        let error = match Folder::open(&folder.0) {
            Ok(folder) => {
                load.read_from(folder);
                tpcc::load(&load, &mut Silent).unwrap_err().to_string()
            }
            Err(error) => error.to_string(),
        };
        std::fs::write(&path, before).unwrap();
        error
    };
    let text = damage("item.csv", &|it| it.replacen("i_price", "price", 1));
    assert!(
        text.contains("item.csv, line 1: not the columns i_id"),
        "{text}"
    );
    let text = damage("stock.csv", &|it| it.replacen("\n5,", "\n5,5,", 1));
    assert!(text.contains("stock.csv, line 6: not 17 values"), "{text}");
    let text = damage("warehouse.csv", &|it| {
        it.rsplit_once("\n4,").unwrap().0.to_string()
    });
    assert!(text.contains("3 rows, and load.json says 4"), "{text}");
    let text = damage("load.json", &|it| it.replace("\"seed\"", "\"need\""));
    assert!(text.contains("no usable \"seed\""), "{text}");
}

#[test]
fn terminals_have_their_homes_and_their_kinds() {
    let Some(peer) = Peer::start() else { return };
    peer.psql("postgres", "CREATE DATABASE terminals");
    let url = peer.url("terminals");
    load(&url);
    let mut third = options(&url, "new_order:1");
    third.terminals = Some((3, 3));
    third.runner.clients = 1;
    let found = run(&third, &[0]);
    let json = report::json(&found);
    assert_eq!(json["config"]["parameters"]["terminal_range"], "3,3");
    let used = "SELECT string_agg(DISTINCT d_w_id::text, ',') FROM district \
                WHERE d_next_o_id > 31";
    assert_eq!(peer.psql("terminals", used), "3");
    let mut bound = options(&url, "new_order:1,payment:2,d_update_stock:1");
    bound.dike.as_mut().unwrap().bind_transactions = true;
    bound.runner.clients = 8;
    let found = run(&bound, &[0, 1, 6]);
    assert_eq!(
        report::json(&found)["config"]["parameters"]["bind_transactions"],
        "true"
    );
    bound.runner.clients = 2;
    let text = refused(&bound);
    assert!(
        text.contains("--bind-transactions: 2 terminals are too few"),
        "{text}"
    );
    bound.dike.as_mut().unwrap().mix_curves =
        vec![(workload::tpcc::Kind::Payment, "step:1@0".parse().unwrap())];
    assert!(refused(&bound).contains("keeps its kind"));
    third.terminals = Some((3, 2));
    assert!(refused(&third).contains("terminals 3 to 2"));
}

/// A standby of a server; ended when dropped.
struct Standby {
    child: Child,
    folder: Temp,
    port: u16,
}

impl Drop for Standby {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// As the owner of a folder: a server refuses to be root.
fn as_owner(command: &mut Command, folder: &Path) {
    let meta = std::fs::metadata(folder).unwrap();
    command.uid(meta.uid()).gid(meta.gid());
    command.env("LC_ALL", "C.UTF-8").stdin(Stdio::null());
    command.stdout(Stdio::null()).stderr(Stdio::null());
}

fn standby(of: &Server) -> Standby {
    let folder = Temp::new("standby");
    std::fs::create_dir(&folder.0).unwrap();
    let owner = std::fs::metadata(of.data()).unwrap();
    chown(&folder.0, Some(owner.uid()), Some(owner.gid())).unwrap();
    let data = folder.0.join("data");
    let mut copy = Command::new(find("pg_basebackup").unwrap());
    let port = of.address().port().to_string();
    copy.args([
        "-h",
        "127.0.0.1",
        "-U",
        "postgres",
        "-R",
        "-c",
        "fast",
        "-p",
        &port,
        "-D",
    ]);
    copy.arg(&data).current_dir(&folder.0);
    as_owner(&mut copy, &folder.0);
    assert!(copy.status().unwrap().success());
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let mut server = Command::new(find("postgres").unwrap());
    server.arg("-D").arg(&data);
    server.args([
        "-c",
        "listen_addresses=127.0.0.1",
        "-c",
        "unix_socket_directories=",
    ]);
    server
        .args(["-p", &port.to_string()])
        .current_dir(&folder.0);
    as_owner(&mut server, &folder.0);
    let child = server.spawn().unwrap();
    Standby {
        child,
        folder,
        port,
    }
}

/// Waits until a replica has the data.
fn wait_for(url: &str) {
    let until = Instant::now() + Duration::from_secs(60);
    let reads = || {
        let target = links::url::Target::parse(url).ok()?;
        let mut link = links::link::Link::connect(&target.endpoints[0], &target, None).ok()?;
        let mut answers = links::answers::Answers::new();
        let question = "SELECT value FROM tpcc_load WHERE step = 'dike_accounts'";
        link.query(question, &mut answers).ok()?;
        (answers.rows(0) == 1).then_some(())
    };
    while reads().is_none() {
        assert!(Instant::now() < until, "the replica does not come");
        std::thread::sleep(Duration::from_millis(100));
    }
}

const READERS: &str = "new_order:4,payment:4,order_status:2,stock_level:2,d_stock_level:2,\
                       d_update_balance:2,d_select_balance:4";

#[test]
fn transactions_that_only_read_go_to_a_replica() {
    let Some(server) = peer::start(Kind::Postgres, &[]) else {
        return;
    };
    let url = server.url("postgres");
    load(&url);
    let standby = standby(&server);
    assert!(standby.folder.0.is_dir());
    let there = format!("postgres://postgres@127.0.0.1:{}/postgres", standby.port);
    wait_for(&there);
    let mut wanted = options(&url, READERS);
    wanted.read_urls = Some(there.clone());
    let found = run(&wanted, &[2, 4, 5, 8]);
    let table = report::table(&found);
    assert!(table.contains("went to replicas"), "{table}");
    // The server that is written has run none of them: those of a replica are not its own.
    let asked = |url: &str| {
        let target = links::url::Target::parse(url).unwrap();
        let mut link = links::link::Link::connect(&target.endpoints[0], &target, None).unwrap();
        let mut answers = links::answers::Answers::new();
        let scans = "SELECT seq_scan + idx_scan FROM pg_stat_user_tables \
                     WHERE relname = 'order_line'";
        link.query(scans, &mut answers).unwrap();
        answers.int(0, 0, 0).unwrap_or(0)
    };
    assert!(asked(&there) > 0);
    let mut own = wanted.clone();
    own.read_urls = Some(url.clone());
    assert!(
        refused(&own).contains("says that it is no replica"),
        "{}",
        refused(&own)
    );
    let mut serializable = wanted.clone();
    serializable.isolation = Isolation::Serializable;
    assert!(refused(&serializable).contains("no SERIALIZABLE"));
    let Some(peer) = Peer::start() else { return };
    peer.psql("postgres", "CREATE DATABASE other");
    let mut other = options(&peer.url("other"), READERS);
    load(&peer.url("other"));
    other.read_urls = Some(there);
    let text = refused(&other);
    assert!(text.contains("replica of another server"), "{text}");
}

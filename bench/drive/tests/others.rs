//! The clients of MariaDB and Redis against real servers.
#![allow(
    clippy::unwrap_used,
    reason = "a test file whose helpers are not test functions"
)]

mod support;

use drive::report;
use drive::run::{RunReport, RunnerOptions};
use drive::tpcc::dike::DikeOptions;
use drive::tpcc::{self, Isolation, LoadOptions, RunOptions};
use links::answers::Answers;
use links::link::{Link, LinkError, Status};
use links::url::Target;
use links::view::Silent;
use peer::longer;
use servers::Kind;
use std::time::Duration;
use support::run_until;
use workload::spread::{Mix, Plan, Spread};
use workload::tpcc::Scale;
use workload::tpcc::random::Constants;
use workload::wire::{Connection, ParamType, Round, command};

fn connect(url: &str) -> Result<Link, LinkError> {
    let target = Target::parse(url).unwrap();
    let timeout = Some(Duration::from_secs(30));
    Link::connect(&target.endpoints[0], &target, timeout)
}

fn state(result: Result<(), LinkError>) -> String {
    match result {
        Err(LinkError::Server(error)) => error.sqlstate,
        other => panic!("{other:?}"),
    }
}

/// What a link does at once.
fn ready<T>(future: impl Future<Output = T>) -> T {
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match std::pin::pin!(future).poll(&mut context) {
        std::task::Poll::Ready(result) => result,
        std::task::Poll::Pending => panic!("a link blocks"),
    }
}

#[test]
fn mariadb_answers_as_postgresql_does() {
    let Some(server) = peer::start(Kind::MariaDb, &[]) else {
        return;
    };
    let mut link = connect(&server.url("test")).unwrap();
    assert!(link.server_version().contains("MariaDB"));
    let types = "CREATE TABLE t (id int PRIMARY KEY, small smallint, big bigint unsigned, \
                 n decimal(12, 2), f double, s varchar(300), at datetime(6), day date, \
                 took time(3))";
    link.command(types).unwrap();
    let rows = b"1\t-2\t18446744073709551615\t-0.50\t1.5\tit\\\\s\t2026-01-02 03:04:05.06\t\
                 2026-01-02\t-26:00:00.5\n2\t\\N\t\\N\t\\N\t\\N\t\\N\t\\N\t\\N\t\\N\n";
    assert_eq!(link.copy_in("COPY t FROM STDIN", rows).unwrap(), 2);
    let refused = link.copy_in("COPY t (id, small) FROM STDIN", b"3\tx\n");
    assert!(
        refused
            .unwrap_err()
            .to_string()
            .contains("changed or left out")
    );
    link.command("DELETE FROM t WHERE id = 3").unwrap();
    // Text and binary results are the same.
    let wanted = [
        "1",
        "-2",
        "18446744073709551615",
        "-0.50",
        "1.5",
        "it\\s",
        "2026-01-02 03:04:05.06",
        "2026-01-02 00:00:00",
        "-26:00:00.5",
    ];
    let read = "SELECT * FROM t WHERE id = $1";
    let prepared = link.prepare(&[(read, &[ParamType::Int])]).unwrap();
    let mut round = Round::default();
    let mut answers = Answers::new();
    for id in [1u32, 2, 3] {
        round.bind(prepared[0]).int(id).send();
        ready(link.round(&mut round, &mut answers)).unwrap();
        assert_eq!(answers.tag(0), format!("SELECT {}", u32::from(id < 3)));
        if id == 1 {
            let seen: Vec<&str> = (0..9).map(|at| answers.text(0, 0, at)).collect();
            assert_eq!(seen, wanted);
        } else {
            assert_eq!(answers.cell(0, 0, 1), None);
        }
    }
    let mut all = Vec::new();
    let each = |row: &Answers| all.push(row.text(0, 0, 0).to_owned());
    link.query_each("SELECT id FROM t ORDER BY id", each)
        .unwrap();
    assert_eq!(all, ["1", "2"]);
    // A long value, in both directions.
    let long = "y".repeat(299);
    let sql = "UPDATE t SET s = $2 WHERE id = $1";
    let update = link
        .prepare(&[(sql, &[ParamType::Int, ParamType::Text])])
        .unwrap()[0];
    for _ in 0..2 {
        round.bind(update).int(1u32).text(&long).send();
        ready(link.round(&mut round, &mut answers)).unwrap();
        // Found, the second time not changed.
        assert_eq!(answers.tag(0), "UPDATE 1");
    }
    link.query("SELECT s FROM t WHERE id = 1", &mut answers)
        .unwrap();
    assert_eq!(answers.text(0, 0, 0), long);
}

#[test]
fn errors_of_mariadb_have_states_and_leave_the_rest_of_a_round() {
    let Some(server) = peer::start(Kind::MariaDb, &["--innodb-lock-wait-timeout=1"]) else {
        return;
    };
    let url = server.url("test");
    let mut link = connect(&url).unwrap();
    link.command("CREATE TABLE t (id int PRIMARY KEY, v int)")
        .unwrap();
    link.command("INSERT INTO t VALUES (1, 0), (2, 0)").unwrap();
    assert_eq!(state(link.command("SELECT nonsense")), "42S22");
    assert_eq!(state(link.command("INSERT INTO t VALUES (1, 0)")), "23505");
    // What follows the statement that fails is not run, and the block stays open.
    let statements: [(&str, &[ParamType]); 4] = [
        ("BEGIN", &[]),
        ("INSERT INTO t VALUES (1, 0)", &[]),
        ("UPDATE t SET v = 7", &[]),
        ("COMMIT", &[]),
    ];
    let prepared = link.prepare(&statements).unwrap();
    let mut round = Round::default();
    let mut answers = Answers::new();
    prepared.iter().for_each(|one| round.bind(*one).send());
    ready(link.round(&mut round, &mut answers)).unwrap();
    assert_eq!(answers.error.take().unwrap().sqlstate, "23505");
    assert_eq!((answers.statements(), link.status()), (1, Status::Open));
    ready(command(&mut link, "ROLLBACK")).unwrap();
    assert_eq!(link.status(), Status::Idle);
    link.query("SELECT sum(v) FROM t", &mut answers).unwrap();
    assert_eq!(answers.int(0, 0, 0), Some(0));
    // A wait that is too long.
    let mut other = connect(&url).unwrap();
    other.command("BEGIN").unwrap();
    other.command("UPDATE t SET v = 1 WHERE id = 1").unwrap();
    assert_eq!(
        state(link.command("UPDATE t SET v = 2 WHERE id = 1")),
        "55P03"
    );
    // A deadlock, which is found long before a wait is too long.
    for one in [&mut link, &mut other] {
        one.command("SET innodb_lock_wait_timeout = 60").unwrap();
    }
    link.command("BEGIN").unwrap();
    link.command("UPDATE t SET v = 2 WHERE id = 2").unwrap();
    let waiting = std::thread::spawn(move || other.command("UPDATE t SET v = 1 WHERE id = 2"));
    std::thread::sleep(Duration::from_millis(200));
    let own = link.command("UPDATE t SET v = 2 WHERE id = 1");
    link.command("ROLLBACK").unwrap();
    let theirs = waiting.join().unwrap();
    let failed = own.err().or(theirs.err()).unwrap();
    assert!(matches!(failed, LinkError::Server(error) if error.sqlstate == "40001"));
}

#[test]
fn mariadb_refuses_a_wrong_password_and_takes_the_right_one() {
    let Some(server) = peer::start(Kind::MariaDb, &[]) else {
        return;
    };
    let url = server.url("test");
    let mut link = connect(&url).unwrap();
    link.command("CREATE USER ann@localhost IDENTIFIED BY 'secret'")
        .unwrap();
    link.command("GRANT ALL ON test.* TO ann@localhost")
        .unwrap();
    let of = |who: &str| url.replace("root@", who);
    let mut ann = connect(&of("ann:secret@")).unwrap();
    ann.command("SELECT 1").unwrap();
    for wrong in ["ann:public@", "ann@", "nobody:secret@"] {
        assert_eq!(state(connect(&of(wrong)).map(|_| ())), "28000", "{wrong}");
    }
    assert_eq!(state(connect(&server.url("none")).map(|_| ())), "42000");
}

/// All of TPC-C on a server without RETURNING.
#[test]
fn tpcc_keeps_its_conditions_on_mariadb() {
    let Some(server) = peer::start(Kind::MariaDb, &[]) else {
        return;
    };
    let url = server.url("test");
    let load = LoadOptions {
        scale: Scale {
            items: 500,
            customers: 60,
            orders: 60,
            ..Scale::reduced(2)
        },
        foreign_keys: true,
        ..LoadOptions::new(&url, 2)
    };
    tpcc::load(&load, &mut Silent).unwrap();
    // It goes on where it was: there is nothing left to do.
    tpcc::load(&load, &mut Silent).unwrap();
    let fresh = tpcc::check(&url, &mut Silent).unwrap();
    assert_eq!(
        (fresh.passed(), fresh.failed()),
        (13, 0),
        "{}",
        report::check_table(&fresh)
    );
    for isolation in Isolation::ALL {
        let mut options = RunOptions::new(&url);
        options.isolation = isolation;
        options.runner = RunnerOptions {
            clients: 4,
            warmup: Duration::ZERO,
            length: Duration::from_secs(3),
            ..RunnerOptions::default()
        };
        let have_all = |run: &RunReport| run.kinds.iter().all(|it| it.tally.committed > 0);
        let run = run_until(&options, have_all);
        let table = report::table(&run);
        assert!(run.passed() && run.failed() == 0, "{isolation:?} {table}");
        assert!(have_all(&run), "{table}");
        assert!(
            run.kinds[0].tally.rolled_back > 0 || run.committed() < 2_000,
            "{table}"
        );
        assert!(table.contains("tpcc on MariaDB 10."), "{table}");
    }
    let mut options = RunOptions::new(&url);
    options.isolation = Isolation::ReadCommitted;
    options.runner.clients = 12;
    options.runner.warmup = Duration::from_secs(1);
    options.runner.length = Duration::from_secs(4);
    options.dike = Some(DikeOptions {
        contention: vec!["5".parse().unwrap()],
        ..DikeOptions::default()
    });
    let is_near = |run: &RunReport| {
        let server = run.contention.as_ref().unwrap().phases[0].server;
        server.is_some_and(|server| (server.mean - 5.0).abs() < 2.0)
    };
    let run = run_until(&options, is_near);
    assert!(is_near(&run), "{:?}", run.contention);
    let mut link = connect(&url).unwrap();
    link.command("UPDATE warehouse SET w_ytd = w_ytd + 1 WHERE w_id = 1")
        .unwrap();
    let torn = tpcc::check(&url, &mut Silent).unwrap();
    assert!(torn.failed() > 0 && !torn.conditions[0].passed());
}

fn records() -> Plan {
    let constants = Constants::for_load(1);
    Plan {
        mix: Mix::Record { read_percent: 50 },
        spread: Spread::new(vec![vec![1]], 0),
        scale: Scale {
            items: 200,
            ..Scale::reduced(1)
        },
        constants: Constants::for_run(1, constants.c_last),
        seed: 1,
    }
}

#[test]
fn records_are_read_and_changed_on_mariadb_and_redis() {
    let (plan, options) = (
        records(),
        RunnerOptions {
            clients: 2,
            warmup: Duration::ZERO,
            length: Duration::from_millis(500),
            ..RunnerOptions::default()
        },
    );
    for kind in [Kind::MariaDb, Kind::Redis] {
        let Some(server) = peer::start(kind, &[]) else {
            continue;
        };
        let is_redis = kind == Kind::Redis;
        let url = server.url(if is_redis { "" } else { "test" });
        let run = |length| {
            let options = RunnerOptions {
                length,
                ..options.clone()
            };
            let report = match is_redis {
                true => drive::records::run(&url, &plan, &options, &mut Silent),
                false => drive::spread::run(&url, &plan, &options, &mut Silent),
            };
            report.unwrap()
        };
        if is_redis {
            // Nothing is there: the answers are not what they must be.
            let wrong = longer(options.length, run, |report| report.failed() > 0);
            assert!(wrong.failed() > 0);
            drive::records::load(&url, &plan).unwrap();
        } else {
            drive::spread::load(&url, &plan, &mut Silent).unwrap();
        }
        let have_all = |run: &RunReport| run.kinds.iter().all(|it| it.tally.committed > 0);
        let report = longer(options.length, run, have_all);
        assert!(report.passed(), "{:?}", report.messages);
        assert_eq!(report.failed(), 0, "{:?}", report.messages);
        assert!(
            report.server.name().starts_with(match kind {
                Kind::Redis => "Redis 7",
                _ => "MariaDB 10",
            }),
            "{}",
            report.server.name()
        );
        assert!(have_all(&report));
    }
}

//! `trellis bench load` is killed in its midst, and the same load goes on where it was: on Trellis
//! and on servers of others.

use crate::local::Local;
use crate::support::{url, wait_until};
use drive::report::check_table;
use drive::tpcc::{self, LoadOptions};
use links::answers::Answers;
use links::link::Link;
use links::url::Target;
use links::view::{Live, Loaded, Progress, Silent};
use peer::again;
use servers::Kind;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use workload::tpcc::Scale;

/// Tells the child what to load.
const URL: &str = "TRELLIS_TEST_LOAD_URL";
const LIMIT: Duration = Duration::from_secs(60);

fn options(url: &str) -> LoadOptions {
    LoadOptions {
        scale: Scale {
            items: 4_000,
            customers: 300,
            orders: 300,
            ..Scale::reduced(4)
        },
        jobs: 2,
        ..LoadOptions::new(url, 4)
    }
}

/// What the other tests of this file start and kill.
#[test]
fn load_of_a_child() {
    if let Some(url) = std::env::var_os(URL) {
        tpcc::load(&options(url.to_str().unwrap()), &mut Silent).unwrap();
    }
}

fn child(url: &str) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "load::load_of_a_child"]);
    command.env(URL, url).stdin(Stdio::null());
    command.stdout(Stdio::null()).spawn().unwrap()
}

/// Lines of the book that tell of loaded parts, and whether the load is complete.
fn book(url: &str) -> (usize, bool) {
    let target = Target::parse(url).unwrap();
    let connected = Link::connect(&target.endpoints[0], &target, Some(LIMIT));
    let mut link = connected.unwrap();
    let mut answers = Answers::new();
    if link
        .query("SELECT step FROM tpcc_load", &mut answers)
        .is_err()
    {
        return (0, false);
    }
    let steps: Vec<String> = (0..answers.rows(0))
        .map(|row| answers.text(0, row, 0).to_string())
        .collect();
    let parts = steps.iter().filter(|step| step.contains(' ')).count();
    (parts, steps.iter().any(|step| step == "complete"))
}

/// What a load says, and how many rows were there before it.
#[derive(Default)]
struct Said {
    stages: Vec<String>,
    before: Option<u64>,
}

impl Progress for Said {
    fn stage(&mut self, text: &str) {
        self.stages.push(text.to_owned());
    }

    fn loaded(&mut self, loaded: &Loaded) {
        self.before.get_or_insert(loaded.rows - loaded.rows_now);
    }

    fn live(&mut self, _: &Live) {}
}

/// Kills a load twice. False: it was complete before.
fn is_killed(url: &str) -> bool {
    let mut reached = 0;
    for _ in 0..2 {
        let mut child = child(url);
        wait_until("some parts are loaded", LIMIT, || {
            book(url).0 >= reached + 4 || child.try_wait().unwrap().is_some()
        });
        // SIGKILL.
        child.kill().unwrap();
        child.wait().unwrap();
        let (parts, is_complete) = book(url);
        if is_complete {
            return false;
        }
        assert!(parts >= reached + 4, "{parts} of {reached}");
        reached = parts;
    }
    true
}

/// Makes a database of this name.
fn create(url: &str, name: &str, options: &str) {
    let target = Target::parse(url).unwrap();
    let mut link = Link::connect(&target.endpoints[0], &target, Some(LIMIT)).unwrap();
    let create = format!("CREATE DATABASE {name}{options}");
    link.command(&create).unwrap();
}

/// Kills a load twice, and has it end. `database` makes a new one and returns its URL: who looks at
/// a load may stand still until that is complete, and needs another one.
fn kill_and_go_on(database: impl Fn(u32) -> String) {
    let mut number = 0;
    let attempt = || {
        number += 1;
        let url = database(number);
        is_killed(&url).then_some(url)
    };
    let url = again(attempt, Option::is_some);
    let url = &url.expect("it was too fast to be killed");
    let mut said = Said::default();
    tpcc::load(&options(url), &mut said).unwrap();
    let going_on = said.stages.iter().find(|it| it.contains("going on"));
    let going_on = going_on.unwrap_or_else(|| panic!("{:?}", said.stages));
    assert!(going_on.contains("parts were loaded before"), "{going_on}");
    assert!(said.before.unwrap() > 0, "nothing was skipped");
    let found = tpcc::check(url, &mut Silent).unwrap();
    assert_eq!(found.failed(), 0, "{}", check_table(&found));
    assert_eq!(found.passed(), 13, "{}", check_table(&found));
    // Another load is refused, and this one is done.
    let mut other = options(url);
    other.foreign_keys = true;
    let refused = tpcc::load(&other, &mut Silent).unwrap_err().to_string();
    assert!(refused.contains("without foreign keys"), "{refused}");
    let mut said = Said::default();
    tpcc::load(&options(url), &mut said).unwrap();
    assert!(
        said.stages[0].contains("loaded before"),
        "{:?}",
        said.stages
    );
}

#[test]
fn a_killed_load_of_trellis_goes_on() {
    let local = Local::start("load-killed");
    let nodes = local.file().nodes;
    let url_of = |database: &str| url(nodes.iter().map(|node| node.sql), database);
    for protocol in ["two_phase", "leap", "formula"] {
        kill_and_go_on(|number| {
            let database = format!("load_{protocol}_{number}");
            let options = format!(" WITH (protocol = '{protocol}')");
            create(&url_of("postgres"), &database, &options);
            url_of(&database)
        });
    }
}

/// The same on a server of others, which has a database from the start.
fn killed_load_goes_on(kind: Kind, first: &str) {
    let Some(server) = peer::start(kind, &[]) else {
        return;
    };
    kill_and_go_on(|number| {
        let database = format!("load{number}");
        create(&server.url(first), &database, "");
        server.url(&database)
    });
}

#[test]
fn a_killed_load_of_postgresql_goes_on() {
    killed_load_goes_on(Kind::Postgres, "postgres");
}

#[test]
fn a_killed_load_of_mariadb_goes_on() {
    killed_load_goes_on(Kind::MariaDb, "test");
}

/// A load that was stopped between its first two statements.
#[test]
fn a_book_without_a_line_is_begun_again() {
    if let Some(server) = peer::start(Kind::MariaDb, &[]) {
        let url = server.url("test");
        let target = Target::parse(&url).unwrap();
        let mut link = Link::connect(&target.endpoints[0], &target, Some(LIMIT)).unwrap();
        link.command(workload::tpcc::schema::BOOKKEEPING).unwrap();
        let run = tpcc::run(&tpcc::RunOptions::new(&url), &mut Silent);
        assert!(run.unwrap_err().to_string().contains("holds no TPC-C data"));
        let small = LoadOptions {
            scale: Scale::reduced(1),
            ..LoadOptions::new(&url, 1)
        };
        tpcc::load(&small, &mut Silent).unwrap();
        assert_eq!(tpcc::check(&url, &mut Silent).unwrap().failed(), 0);
    }
}

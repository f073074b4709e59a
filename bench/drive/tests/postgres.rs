//! The whole driver against a real PostgreSQL: load, run, check, planted errors, passwords.
#![allow(
    clippy::unwrap_used,
    reason = "a test file whose helpers are not test functions"
)]

mod support;

use drive::report;
use drive::run::{RunReport, RunnerOptions};
use drive::tpcc::contention::ContentionControl;
use drive::tpcc::dike::DikeOptions;
use drive::tpcc::{self, Isolation, LoadOptions, RunOptions};
use links::link::Link;
use links::url::Target;
use links::view::Silent;
use links::{DriveError, answers::Answers};
use peer::{Peer, again, longer};
use std::time::{Duration, Instant};
use support::run_until;
use workload::dike::{Mode, Wanted};
use workload::tpcc::{Scale, Skew};

const SCALE: Scale = Scale {
    warehouses: 2,
    items: 500,
    customers: 60,
    orders: 60,
    skew: Skew::NONE,
};

fn loaded(peer: &Peer, database: &str, foreign_keys: bool) -> String {
    peer.psql("postgres", &format!("CREATE DATABASE {database}"));
    let url = peer.url(database);
    let options = LoadOptions {
        scale: SCALE,
        foreign_keys,
        ..LoadOptions::new(&url, 2)
    };
    tpcc::load(&options, &mut Silent).unwrap();
    url
}

fn short(url: &str) -> RunOptions {
    RunOptions {
        runner: RunnerOptions {
            clients: 4,
            warmup: Duration::from_millis(500),
            length: Duration::from_secs(3),
            ..RunnerOptions::default()
        },
        ..RunOptions::new(url)
    }
}

fn have_all_committed(run: &RunReport) -> bool {
    run.kinds.iter().all(|kind| kind.tally.committed > 0)
}

#[test]
fn closed_loop_keeps_all_conditions_and_reports_them() {
    let Some(peer) = Peer::start() else { return };
    let url = loaded(&peer, "tpcc", true);
    let fresh = tpcc::check(&url, &mut Silent).unwrap();
    assert_eq!(
        (fresh.passed(), fresh.failed()),
        (13, 0),
        "{}",
        report::check_table(&fresh)
    );
    for isolation in [
        Isolation::Serializable,
        Isolation::RepeatableRead,
        Isolation::ReadCommitted,
    ] {
        let options = RunOptions {
            isolation,
            ..short(&url)
        };
        let run = run_until(&options, |run| {
            have_all_committed(run) && run.kinds[0].tally.rolled_back > 0
        });
        let table = report::table(&run);
        assert!(run.passed(), "{table}");
        assert!(have_all_committed(&run), "{table}");
        assert_eq!((run.failed(), run.unknown()), (0, 0), "{table}");
        assert!(run.kinds[0].tally.rolled_back > 0, "{table}");
        let weaker = run
            .warnings()
            .iter()
            .any(|warning| warning.contains("weaker"));
        assert_eq!(weaker, isolation != Isolation::Serializable);
    }
    let run = run_until(&short(&url), have_all_committed);
    let json = report::json(&run);
    assert_eq!(json["consistency"]["passed"], 13);
    assert_eq!(json["consistency"]["failed"], 0);
    assert_eq!(json["audits"]["failed"], 0);
    assert!(json["new_order_per_min"].as_f64().unwrap() > 0.0);
    assert!(json["latency_us"]["p999"].as_u64() >= json["latency_us"]["p50"].as_u64());
    assert!(
        json["tpmC"].is_null(),
        "no tpmC without keying and think times"
    );
    assert!(json["per_txn"]["messages"].is_null() && json["distributed_share"].is_null());
    let samples = json["latency_us"]["samples"].as_u64().unwrap();
    let counted = json["committed"].as_u64().unwrap() + json["rolled_back"].as_u64().unwrap();
    assert_eq!(samples, counted);
    let html = report::html(&run);
    assert!(html.contains("13 conditions passed") && html.contains("<svg"));
    for outside in ["http://", "https://", "src=", "@import"] {
        assert!(
            !html.contains(outside),
            "the page needs no network: {outside}"
        );
    }
    // The numbers of the database itself, by another client.
    let supplied = peer.psql("tpcc", "SELECT SUM(s_remote_cnt) > 0 FROM stock");
    assert_eq!(supplied, "t", "remote stock is updated");
    let orphans = "SELECT COUNT(*) FROM order_line JOIN item ON i_id = ol_i_id \
                   WHERE ol_o_id > 60 AND ol_amount <> ol_quantity * i_price";
    assert_eq!(
        peer.psql("tpcc", orphans),
        "0",
        "amounts are quantity times price"
    );
    let sold = "SELECT (SELECT SUM(s_ytd) FROM stock) = \
                (SELECT SUM(ol_quantity) FROM order_line WHERE ol_o_id > 60)";
    assert_eq!(
        peer.psql("tpcc", sold),
        "t",
        "what was ordered left the stock"
    );
}

#[test]
fn open_loop_keeps_up_or_says_that_it_did_not() {
    let Some(peer) = Peer::start() else { return };
    let url = loaded(&peer, "tpcc", false);
    let mut options = short(&url);
    options.isolation = Isolation::ReadCommitted;
    options.runner.rate = Some(60.0);
    let calm = again(
        || tpcc::run(&options, &mut Silent).unwrap(),
        |run| run.overloaded.is_none(),
    );
    assert_eq!(calm.overloaded, None, "{}", report::table(&calm));
    let finished = calm.committed() + calm.kinds[0].tally.rolled_back;
    assert!(
        (130..=230).contains(&finished),
        "60 a second for 3 s gave {finished}"
    );
    assert_eq!(
        report::json(&calm)["transactions"]["payment"]["queue_us"]["samples"],
        calm.kinds[1].tally.committed
    );
    options.runner.rate = Some(200_000.0);
    // So the seconds of the timeline are those of the phase.
    options.runner.warmup = Duration::from_secs(1);
    // What ends in the five seconds after the phase is no throughput of the phase: the rate is that
    // of its seconds. Whoever counts them may come late.
    let share = |run: &RunReport| {
        let seconds = run.timeline.iter().filter(|second| second.measured);
        let seen: u64 = seconds.flat_map(|second| &second.committed).sum();
        run.committed_per_s() * 3.0 / seen as f64
    };
    let is_that = |run: &RunReport| (0.95..1.05).contains(&share(run));
    let flooded = again(|| tpcc::run(&options, &mut Silent).unwrap(), is_that);
    assert!(flooded.overloaded.is_some());
    assert!(is_that(&flooded), "{}", share(&flooded));
    let json = report::json(&flooded);
    assert!(
        json["latency_us"]["p50"].is_null(),
        "no percentile when overloaded"
    );
    assert!(report::table(&flooded).contains("overloaded"));
}

#[test]
fn keying_and_think_times_give_tpmc_and_deferred_deliveries() {
    let Some(peer) = Peer::start() else { return };
    let url = loaded(&peer, "tpcc", false);
    let mut options = short(&url);
    options.keying = true;
    options.runner.clients = 60;
    options.runner.length = Duration::from_secs(12);
    let run = again(
        || tpcc::run(&options, &mut Silent).unwrap(),
        |run| run.committed() >= 5 && run.has_number(),
    );
    assert!(report::tpmc(&run).is_some());
    assert!(report::efficiency(&run).is_some());
    // A terminal's cycle is about 23 s, so 60 of them give some thirty transactions.
    assert!(
        (5..=120).contains(&run.committed()),
        "{}",
        report::table(&run)
    );
    assert!(run.has_number(), "{}", report::table(&run));
}

/// Breaks five of the six connections of a run once it has taken orders. False: it has not come so
/// far, or was over.
fn break_five(peer: &Peer, database: &str) -> bool {
    let orders = || peer.psql(database, "SELECT sum(d_next_o_id) FROM district");
    let (before, began) = (orders(), Instant::now());
    while orders() == before {
        if began.elapsed() > Duration::from_secs(30) {
            return false;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    let most = "SELECT count(pg_terminate_backend(pid)) FROM (SELECT pid FROM \
                pg_stat_activity WHERE application_name = 'trellis bench' LIMIT 5) t";
    peer.psql(database, most) == "5"
}

/// Terminals are no connections, and a connection that breaks is made again.
#[test]
fn terminals_share_connections_of_which_some_break() {
    let Some(peer) = Peer::start() else { return };
    let url = loaded(&peer, "shared", false);
    let mut options = short(&url);
    options.runner.clients = 60;
    options.runner.connections = Some(6);
    options.runner.length = Duration::from_secs(4);
    let run = |length| {
        let mut options = options.clone();
        options.runner.length = length;
        std::thread::scope(|scope| {
            let breaking = scope.spawn(|| break_five(&peer, "shared"));
            let run = tpcc::run(&options, &mut Silent).unwrap();
            (breaking.join().unwrap(), run)
        })
    };
    let last = |run: &RunReport| -> u64 {
        let last = run.timeline.last();
        last.map_or(0, |second| second.committed.iter().sum())
    };
    let is_enough = |(is_broken, run): &(bool, RunReport)| *is_broken && last(run) > 0;
    let (is_broken, report) = longer(options.runner.length, run, is_enough);
    assert!(is_broken, "the connections were there");
    let text = report::table(&report);
    assert!(report.passed(), "{text}");
    assert!(text.contains("60 clients over 6 connections"), "{text}");
    let lost = report.messages.keys();
    assert!(
        lost.into_iter()
            .any(|key| key == "connection lost" || key == "unknown"),
        "{text}"
    );
    assert!(last(&report) > 0, "{:?}", report.timeline);
    // All wait for one of six.
    let queued = report.kinds.iter().map(|kind| kind.tally.queue.len());
    assert!(queued.sum::<u64>() > 0);
    options.runner.connections = Some(61);
    assert!(matches!(
        tpcc::run(&options, &mut Silent),
        Err(DriveError::Option(_))
    ));
    options.runner.connections = None;
    options.keying = true;
    options.runner.rate = Some(10.0);
    let refused = tpcc::run(&options, &mut Silent).unwrap_err().to_string();
    assert!(refused.contains("have a rate of their own"), "{refused}");
}

/// One planted error per condition, in a copy of the loaded database each.
#[test]
fn planted_errors_fail_their_conditions() {
    let Some(peer) = Peer::start() else { return };
    loaded(&peer, "sound", false);
    let plants: [(&[usize], &str); 21] = [
        (
            &[1, 8],
            "UPDATE warehouse SET w_ytd = w_ytd + 0.01 WHERE w_id = 2",
        ),
        (&[1, 8], "UPDATE warehouse SET w_ytd = NULL WHERE w_id = 2"),
        (
            &[1, 9],
            "UPDATE district SET d_ytd = d_ytd - 1 WHERE d_w_id = 1 AND d_id = 10",
        ),
        (
            &[2],
            "UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = 1 AND d_id = 5",
        ),
        (
            &[2],
            "UPDATE district SET d_next_o_id = NULL WHERE d_w_id = 1 AND d_id = 5",
        ),
        (
            &[3, 5, 11],
            "DELETE FROM new_order WHERE no_w_id = 1 AND no_d_id = 3 AND no_o_id = 50",
        ),
        (
            &[4, 6],
            "DELETE FROM order_line WHERE ol_w_id = 1 AND ol_d_id = 3 AND ol_o_id = 7 \
                   AND ol_number = 2",
        ),
        (
            &[4, 6],
            "UPDATE orders SET o_ol_cnt = NULL WHERE o_w_id = 2 AND o_d_id = 1 AND o_id = 9",
        ),
        (
            &[5, 7],
            "UPDATE orders SET o_carrier_id = NULL \
                   WHERE o_w_id = 2 AND o_d_id = 1 AND o_id = 9",
        ),
        (
            &[5, 7],
            "UPDATE orders SET o_carrier_id = 3 \
                   WHERE o_w_id = 2 AND o_d_id = 1 AND o_id = 60",
        ),
        (
            &[6],
            "UPDATE orders SET o_ol_cnt = o_ol_cnt + CASE o_id WHEN 1 THEN 1 ELSE -1 END \
                WHERE o_w_id = 2 AND o_d_id = 1 AND o_id <= 2",
        ),
        (
            &[7],
            "UPDATE order_line SET ol_delivery_d = NULL \
                WHERE ol_w_id = 2 AND ol_d_id = 1 AND ol_o_id = 9 AND ol_number = 1",
        ),
        (
            &[8, 9],
            "UPDATE history SET h_w_id = 2 WHERE h_w_id = 1 AND h_c_id = 1 AND h_d_id = 1",
        ),
        (
            &[9],
            "UPDATE history SET h_d_id = 2 WHERE h_w_id = 1 AND h_c_id = 1 AND h_d_id = 1",
        ),
        (
            &[8, 9, 10],
            "DELETE FROM history WHERE h_w_id = 1 AND h_c_id = 1 AND h_d_id = 1",
        ),
        (
            &[10],
            "UPDATE history SET h_c_id = 2 WHERE h_w_id = 1 AND h_c_id = 1 AND h_d_id = 1",
        ),
        (
            &[10, 12],
            "UPDATE customer SET c_balance = c_balance + 0.01 \
                     WHERE c_w_id = 2 AND c_d_id = 7 AND c_id = 8",
        ),
        (
            &[11],
            "UPDATE customer SET c_delivery_cnt = 1 \
                 WHERE c_w_id = 2 AND c_d_id = 7 AND c_id = 8",
        ),
        (
            &[12],
            "UPDATE customer SET c_ytd_payment = NULL \
                 WHERE c_w_id = 2 AND c_d_id = 7 AND c_id = 8",
        ),
        (
            &[6],
            "INSERT INTO order_line (ol_o_id, ol_d_id, ol_w_id, ol_number) VALUES (1, 1, 9, 1)",
        ),
        (
            &[13],
            "UPDATE stock SET s_remote_cnt = s_remote_cnt + 1 WHERE s_w_id = 2 AND s_i_id = 7",
        ),
    ];
    let mut caught = std::collections::BTreeSet::new();
    for (number, (expected, sql)) in plants.iter().enumerate() {
        let copy = format!("planted{number}");
        peer.psql(
            "postgres",
            &format!("CREATE DATABASE {copy} TEMPLATE sound"),
        );
        peer.psql(&copy, sql);
        let check = tpcc::check(&peer.url(&copy), &mut Silent).unwrap();
        let failed: Vec<usize> = check
            .conditions
            .iter()
            .filter(|c| !c.passed())
            .map(|c| c.number)
            .collect();
        assert_eq!(&failed, expected, "{sql}\n{}", report::check_table(&check));
        let shown = check.conditions.iter().filter(|c| !c.passed());
        assert!(shown.clone().all(|c| c.counterexample.is_some()), "{sql}");
        caught.extend(failed);
        peer.psql("postgres", &format!("DROP DATABASE {copy}"));
    }
    assert!(
        caught.into_iter().eq(1..=13),
        "every condition caught its own error"
    );
}

#[test]
fn a_failed_check_takes_the_number_away() {
    let Some(peer) = Peer::start() else { return };
    let url = loaded(&peer, "tpcc", false);
    peer.psql(
        "tpcc",
        "UPDATE warehouse SET w_ytd = w_ytd + 1 WHERE w_id = 1",
    );
    let run = tpcc::run(&short(&url), &mut Silent).unwrap();
    assert!(!run.passed() && !run.has_number());
    let json = report::json(&run);
    assert_eq!(json["consistency"]["failed"], 2);
    for field in ["committed", "committed_per_s", "new_order_per_min"] {
        assert!(json[field].is_null(), "{field}");
    }
    assert!(report::table(&run).contains("this run has no number"));
    assert!(report::html(&run).contains("no number"));
}

#[test]
fn a_stopped_load_goes_on_where_it_was() {
    let Some(peer) = Peer::start() else { return };
    let url = loaded(&peer, "tpcc", false);
    let rows = "SELECT (SELECT COUNT(*) FROM stock), (SELECT COUNT(*) FROM order_line)";
    let before = peer.psql("tpcc", rows);
    // As if the load had been killed before these two chunks were committed.
    peer.psql(
        "tpcc",
        "DELETE FROM tpcc_load WHERE step IN ('complete', 'stock 2/0 1-500', \
         'order_line 1/4 1-60'); DELETE FROM stock WHERE s_w_id = 2; \
         DELETE FROM order_line WHERE ol_w_id = 1 AND ol_d_id = 4",
    );
    assert!(matches!(
        tpcc::check(&url, &mut Silent),
        Err(DriveError::NotLoaded(_))
    ));
    let options = LoadOptions {
        scale: SCALE,
        ..LoadOptions::new(&url, 2)
    };
    tpcc::load(&options, &mut Silent).unwrap();
    assert_eq!(peer.psql("tpcc", rows), before);
    assert_eq!(tpcc::check(&url, &mut Silent).unwrap().failed(), 0);
    tpcc::load(&options, &mut Silent).unwrap();
    assert_eq!(
        peer.psql("tpcc", rows),
        before,
        "a finished load is left alone"
    );
    let other = LoadOptions { seed: 2, ..options };
    assert!(matches!(
        tpcc::load(&other, &mut Silent),
        Err(DriveError::OtherData(_))
    ));
    let three = RunOptions {
        warehouses: Some(3),
        ..short(&url)
    };
    assert!(matches!(
        tpcc::run(&three, &mut Silent),
        Err(DriveError::OtherData(_))
    ));
}

#[test]
fn what_is_not_there_is_said() {
    let Some(peer) = Peer::start() else { return };
    let run = tpcc::run(&short(&peer.url("postgres")), &mut Silent);
    assert!(matches!(run, Err(DriveError::NotLoaded(_))));
    let gone = tpcc::check(&peer.url("nowhere"), &mut Silent).unwrap_err();
    assert!(gone.to_string().contains("nowhere"), "{gone}");
}

#[test]
fn every_password_method_lets_the_right_one_in() {
    let Some(peer) = Peer::start() else { return };
    peer.psql("postgres", "CREATE ROLE scram_user LOGIN PASSWORD 'pencil'");
    peer.psql("postgres", "CREATE ROLE plain_user LOGIN PASSWORD 'pencil'");
    let md5 = "SET password_encryption = 'md5'; CREATE ROLE md5_user LOGIN PASSWORD 'pencil'";
    peer.psql("postgres", md5);
    for user in ["scram_user", "md5_user", "plain_user"] {
        let connect = |password: &str| {
            let url = peer.url_of(&format!("{user}:{password}"), "postgres");
            let target = Target::parse(&url).unwrap();
            Link::connect(&target.endpoints[0], &target, None)
        };
        let mut answers = Answers::new();
        connect("pencil")
            .unwrap()
            .query("SELECT current_user", &mut answers)
            .unwrap();
        assert_eq!(answers.text(0, 0, 0), user);
        assert!(connect("pen").is_err(), "{user}");
    }
}

/// A server that tells nothing of nodes: warehouses are assumed to be spread over so many.
#[test]
fn a_statistical_distribution_needs_no_placement() {
    let Some(peer) = Peer::start() else { return };
    let url = loaded(&peer, "spread", false);
    let options = |mode, nodes| RunOptions {
        dike: Some(DikeOptions {
            distribution: Some(Wanted {
                mode,
                ratio: 0.4,
                degree: 2,
            }),
            nodes,
            ..DikeOptions::default()
        }),
        ..short(&url)
    };
    let found = run_until(&options(Mode::Statistical, Some(2)), |run| {
        run.committed() > 200
    });
    let table = report::table(&found);
    assert!(found.passed(), "{table}");
    assert_eq!(found.consistency.as_ref().unwrap().passed(), 13, "{table}");
    let json = report::json(&found);
    let told = &json["distribution"];
    assert_eq!(json["workload"], "dike");
    assert_eq!(told["requested"]["degree"], 2);
    assert!(told["drawn_ratio"].as_f64().unwrap() > 0.3, "{told}");
    assert!(told["committed"].is_null() && told["observed_by_server"].is_null());
    for (mode, nodes, text) in [
        (Mode::Exact, Some(2), "--distribution statistical"),
        (Mode::Statistical, None, "--nodes"),
    ] {
        let error = tpcc::run(&options(mode, nodes), &mut Silent).unwrap_err();
        let error = error.to_string();
        assert!(error.contains(text), "{error}");
    }
}

#[test]
fn as_many_compete_for_a_row_as_were_asked_for() {
    let Some(peer) = Peer::start() else { return };
    let url = loaded(&peer, "hot", false);
    let options = |contention: &[&str]| {
        let mut options = RunOptions {
            dike: Some(DikeOptions {
                contention: contention.iter().map(|it| it.parse().unwrap()).collect(),
                ..DikeOptions::default()
            }),
            isolation: Isolation::ReadCommitted,
            ..short(&url)
        };
        options.runner.clients = 20;
        options.runner.length = Duration::from_secs(4);
        options
    };
    let are_near = |run: &RunReport| {
        let phases = &run.contention.as_ref().unwrap().phases;
        let mut targets = phases.iter().zip([5.0, 8.0]);
        targets.all(|(phase, target)| {
            let is_near = |mean: f64| (mean - target).abs() < target * 0.35;
            phase.server.is_some_and(|server| is_near(server.mean))
        })
    };
    let found = run_until(&options(&["5", "8"]), are_near);
    let table = report::table(&found);
    assert_eq!(found.consistency.as_ref().unwrap().passed(), 13, "{table}");
    let told = &found.contention.as_ref().unwrap().phases;
    let rows: Vec<(u32, u32)> = told.iter().map(|it| (it.warehouse, it.item)).collect();
    assert!(rows.len() == 2 && rows[0] != rows[1], "{rows:?}");
    assert!(are_near(&found), "{told:?}");
    for (contention, text) in [(&["15", "5"][..], "--clients"), (&["3,5@4"], "second 4")] {
        let error = tpcc::run(&options(contention), &mut Silent).unwrap_err();
        assert!(error.to_string().contains(text), "{error}");
    }
}

/// PeakBench's way: rounds are gathered, and every order that waited has its turn.
#[test]
fn orders_that_wait_for_each_other_begin_together() {
    let Some(peer) = Peer::start() else { return };
    let url = loaded(&peer, "blocking", false);
    let run = |target: &str| {
        let mut options = RunOptions {
            dike: Some(DikeOptions {
                contention: vec![target.parse().unwrap()],
                control: ContentionControl::Blocking,
                mix: "new_order:1".parse().unwrap(),
                ..DikeOptions::default()
            }),
            isolation: Isolation::ReadCommitted,
            ..short(&url)
        };
        options.runner.clients = 20;
        options.runner.length = Duration::from_secs(3);
        let gathering = |run: &RunReport| run.contention.as_ref().unwrap().gathering.unwrap();
        // Few on a busy machine: a deadlock with another order takes PostgreSQL a second to see.
        let found = run_until(&options, |run| gathering(run).rounds >= 2);
        let table = report::table(&found);
        assert!(found.passed(), "{table}");
        assert_eq!(found.failed(), 0, "{table}");
        // A deadlock that arises as the run ends outlasts it.
        assert!(found.unfinished() <= 20, "{table}");
        let json = report::json(&found);
        assert_eq!(json["contention"]["control"], "blocking");
        let gathering = gathering(&found);
        assert!(gathering.rounds >= 2, "{gathering:?}");
        assert!(gathering.max_ms >= gathering.mean_ms, "{gathering:?}");
        let all_s = 20.0 * (found.options.length.as_secs_f64() + 30.0);
        assert!(
            gathering.waited_s > 0.0 && gathering.waited_s < all_s,
            "{gathering:?}"
        );
        // One deadlock outweighs all other rounds: the longest one is left out.
        let rounds = gathering.rounds as f64;
        let usual = (gathering.mean_ms * rounds - gathering.max_ms) / (rounds - 1.0);
        (usual, gathering)
    };
    let is_longer = |(few, many): &((f64, _), (f64, _))| many.0 > few.0;
    let told = again(|| (run("2"), run("16")), is_longer);
    assert!(is_longer(&told), "{told:?}");
}

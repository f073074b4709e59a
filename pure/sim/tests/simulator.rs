//! The simulator itself: it repeats, its faults happen, and what is wrong it says.

use sim::disk::SyncStop;
use sim::plan::{Fault, KINDS, Kind, Wanted, What};
use sim::{Ask, Options, Outcome, Plan, SimCx, Task, Verdict, Workload};
use std::rc::Rc;

/// A small run of this seed.
fn plan(seed: u64, wanted: Wanted) -> Plan {
    let mut ask = Ask::new("bank");
    ask.nodes = Some(3);
    ask.shards = Some(2);
    ask.clients = Some(4);
    ask.run_us = Some(800_000);
    ask.wanted = wanted;
    Plan::draw(seed, &ask)
}

fn assert_no_failure(outcome: &Outcome, plan: &Plan) {
    assert!(
        !matches!(outcome.verdict, Verdict::Fail(_)),
        "{plan}: {:?}",
        outcome.verdict
    );
}

#[test]
fn a_seed_gives_the_same_run_again() {
    let mut prints = Vec::new();
    for seed in 100..104 {
        let plan = plan(seed, Wanted::All);
        let outcome = sim::run(&plan);
        assert_eq!(sim::run(&plan), outcome, "{plan}");
        prints.push(outcome.report.prints);
    }
    prints.sort_unstable();
    prints.dedup();
    assert_eq!(prints.len(), 4, "other seeds give other runs");
}

#[test]
fn each_kind_of_fault_happens_and_nothing_breaks() {
    for (kind, name, _) in KINDS {
        let mut count = 0;
        for seed in 0..20 {
            let plan = plan(seed, Wanted::Only(vec![*kind]));
            let outcome = sim::run(&plan);
            assert_no_failure(&outcome, &plan);
            count += outcome.report.happened.get(kind).copied().unwrap_or(0);
            let others = outcome.report.happened.keys().any(|other| other != kind);
            assert!(!others, "{plan}: {:?}", outcome.report.happened);
            if count >= 3 {
                break;
            }
        }
        assert!(count >= 3, "{name} happened {count} times");
    }
}

#[test]
fn power_cuts_lose_and_tear_writes() {
    let (mut lost, mut torn, mut checkpoints) = (0, 0, 0);
    for seed in 0..40 {
        let mut plan = plan(seed, Wanted::Only(vec![Kind::Power]));
        plan.checkpoint_bytes = 2_048;
        let outcome = sim::run(&plan);
        assert_no_failure(&outcome, &plan);
        lost += outcome.report.lost;
        torn += outcome.report.torn;
        checkpoints += outcome.report.checkpoints;
        if lost > 5 && torn > 2 && checkpoints > 2 {
            return;
        }
    }
    panic!("too little was lost ({lost}), torn ({torn}) or replaced ({checkpoints})");
}

/// Takes money from an account and puts it nowhere; whoever looks at the end must see it.
struct Thief;

impl Workload for Thief {
    fn setup(self: Rc<Self>, cx: SimCx) -> Task<Result<(), String>> {
        Box::pin(async move {
            let mut conn = cx.connect(1).await.map_err(|error| error.to_string())?;
            let sql = "CREATE TABLE purse (id int PRIMARY KEY, n int)";
            conn.query(sql).await.map_err(|error| error.to_string())?;
            let sql = "INSERT INTO purse VALUES (1, 100)";
            conn.query(sql).await.map_err(|error| error.to_string())?;
            Ok(())
        })
    }

    fn client(self: Rc<Self>, cx: SimCx, client: u32) -> Task {
        Box::pin(async move {
            cx.sleep(1_000 * u64::from(client)).await;
            let mut conn = cx.connect(1).await.expect("no faults here");
            let sql = "UPDATE purse SET n = n - $1 WHERE id = 1";
            conn.execute(sql, &[1.into()])
                .await
                .expect("no faults here");
        })
    }

    fn finish(self: Rc<Self>, cx: SimCx) -> Task<Verdict> {
        Box::pin(async move {
            let mut conn = cx.connect(2).await.expect("no faults here");
            let answer = conn
                .query("SELECT n FROM purse")
                .await
                .expect("no faults here");
            match answer.int(0, 0) {
                Some(100) => Verdict::Pass,
                other => Verdict::Fail(format!("{other:?} is left of 100")),
            }
        })
    }
}

#[test]
fn what_a_check_finds_is_the_verdict() {
    let options = Options {
        workload: Some(Rc::new(Thief)),
        ..Options::default()
    };
    let outcome = sim::run_with(&plan(1, Wanted::Nothing), options);
    assert_eq!(
        outcome.verdict,
        Verdict::Fail("Some(96) is left of 100".into())
    );
}

/// Updates of single rows that live elsewhere, while their owner comes and goes.
#[derive(Default)]
struct Lonely {
    unknown: std::cell::Cell<u32>,
    done: std::cell::Cell<u32>,
}

impl Workload for Lonely {
    fn setup(self: Rc<Self>, cx: SimCx) -> Task<Result<(), String>> {
        Box::pin(async move {
            let mut conn = cx.connect(1).await.map_err(|error| error.to_string())?;
            let sql = "CREATE TABLE t (id int PRIMARY KEY, n int)";
            conn.query(sql).await.map_err(|error| error.to_string())?;
            let sql = "INSERT INTO t SELECT g, 0 FROM generate_series(1, 20) g";
            conn.query(sql).await.map_err(|error| error.to_string())?;
            Ok(())
        })
    }

    fn client(self: Rc<Self>, cx: SimCx, _: u32) -> Task {
        Box::pin(async move {
            let mut conn = cx.connect(2).await.expect("node 2 stays");
            while !cx.stopping() {
                let id = cx.rng().between(1, 20);
                // A sum of text is no increment, so the row is read and written.
                let sql = "UPDATE t SET n = length(format('%s', n)) WHERE id = $1";
                match conn.execute(sql, &[id.into()]).await {
                    Ok(_) => self.done.set(self.done.get() + 1),
                    Err(error) if error.is_unknown() => self.unknown.set(self.unknown.get() + 1),
                    Err(_) => cx.sleep(10_000).await,
                }
            }
        })
    }

    fn finish(self: Rc<Self>, _: SimCx) -> Task<Verdict> {
        Box::pin(async move {
            match (self.unknown.get(), self.done.get()) {
                (1.., 20..) => Verdict::Pass,
                other => Verdict::Fail(format!("unknown and done: {other:?}")),
            }
        })
    }
}

/// What a commit that rides on an operation came to is not known when its owner ends.
#[test]
fn an_outcome_that_nobody_knows_is_told_as_such() {
    let mut plan = plan(5, Wanted::Nothing);
    (plan.nodes, plan.run_us, plan.sync_us) = (2, 4_000_000, 8_000);
    let kill = |at_us| Fault {
        at_us,
        what: What::Kill {
            node: 1,
            down_us: 100_000,
        },
    };
    plan.faults = (1..8).map(|count| kill(count * 500_000)).collect();
    let options = Options {
        workload: Some(Rc::<Lonely>::default()),
        ..Options::default()
    };
    assert_eq!(sim::run_with(&plan, options).verdict, Verdict::Pass);
}

/// Clients that never end.
struct Sleeper;

impl Workload for Sleeper {
    fn setup(self: Rc<Self>, _: SimCx) -> Task<Result<(), String>> {
        Box::pin(async { Ok(()) })
    }

    fn client(self: Rc<Self>, cx: SimCx, _: u32) -> Task {
        Box::pin(async move {
            loop {
                cx.sleep(1_000_000).await;
            }
        })
    }

    fn finish(self: Rc<Self>, _: SimCx) -> Task<Verdict> {
        Box::pin(async { Verdict::Pass })
    }
}

#[test]
fn a_world_without_progress_is_a_failure() {
    let options = Options {
        workload: Some(Rc::new(Sleeper)),
        ..Options::default()
    };
    let outcome = sim::run_with(&plan(1, Wanted::Nothing), options);
    let Verdict::Fail(text) = outcome.verdict else {
        panic!("{:?}", outcome.verdict)
    };
    assert!(text.contains("no progress"), "{text}");
}

/// Power cuts at syncs, spread over the whole life of every node: its first start, the making of
/// tables, work, checkpoints, the last restart.
#[test]
fn a_power_cut_at_a_sync_breaks_nothing() {
    let mut small = plan(7, Wanted::Nothing);
    (small.nodes, small.shards, small.clients) = (2, 2, 2);
    (small.run_us, small.checkpoint_bytes) = (700_000, 2_048);
    (small.segment_bytes, small.any_names) = (4_096, true);
    (small.sync_us, small.delay_us) = (500, 200);
    let plain = sim::run(&small);
    assert_no_failure(&plain, &small);
    assert!(plain.report.checkpoints > 0, "a checkpoint is among them");
    let mut cuts = 0;
    for (node, syncs) in plain.report.syncs.iter().enumerate() {
        let step = (syncs / 16).max(1);
        // The first ones all: they are the fewest and the strangest.
        let points = (1..=*syncs).filter(|sync| *sync <= 6 || sync % step == 0);
        for sync in points {
            let how = if sync % 2 == 0 {
                SyncStop::Before
            } else {
                SyncStop::After
            };
            let mut cut = small.clone();
            cut.stop_at = Some((node as u16 + 1, sync, how));
            let outcome = sim::run(&cut);
            assert_no_failure(&outcome, &cut);
            cuts += outcome
                .report
                .happened
                .get(&Kind::Power)
                .copied()
                .unwrap_or(0);
        }
    }
    assert!(cuts > 40, "{cuts} power cuts");
}

/// A session that waits for a lock is seen to wait when nothing else happens.
#[test]
fn a_blocked_session_is_known_when_the_world_is_quiet() {
    let result = sim::alone(&plan(3, Wanted::Nothing), |cx| {
        Box::pin(async move {
            let mut one = cx.connect(1).await?;
            one.query("CREATE TABLE t (k int PRIMARY KEY, v int)")
                .await?;
            one.query("INSERT INTO t VALUES (1, 0)").await?;
            let mut two = cx.connect(2).await?;
            // Older transactions wait for younger ones; clocks are up to 40 ms apart.
            two.query("BEGIN").await?;
            two.query("SELECT v FROM t WHERE k = 2").await?;
            cx.sleep(100_000).await;
            one.query("BEGIN").await?;
            one.query("UPDATE t SET v = 1 WHERE k = 1").await?;
            two.start("UPDATE t SET v = v * 2 + 1 WHERE k = 1");
            cx.quiet(1_000_000).await;
            let waits = two.is_waiting();
            one.query("COMMIT").await?;
            cx.quiet(1_000_000).await;
            let waits_still = two.is_waiting();
            two.answer().await?;
            two.query("COMMIT").await?;
            let answer = one.query("SELECT v FROM t").await?;
            Ok::<_, sim::SimError>((waits, waits_still, answer.int(0, 0)))
        })
    });
    assert_eq!(result, Ok(Ok((true, false, Some(3)))));
}

//! What SHOW tells of formulas that pile up on a row, and of the stages of a node.

use crate::support::{Cluster, READY_LIMIT, rows, wait_until};
use links::link::Link;

const TABLE: &str = "CREATE TABLE t (id int PRIMARY KEY, v bigint NOT NULL)";

/// A client of a node that has added to row 7 in a block.
fn adds(cluster: &Cluster, at: usize, database: &str) -> Link {
    let mut link = cluster.link(at, database);
    link.command("BEGIN").unwrap();
    let add = "UPDATE t SET v = v + 1 WHERE id = 7";
    link.command(add).unwrap();
    link
}

/// Lets the rows come to a node, under a protocol that moves them.
fn come(cluster: &Cluster, at: usize, database: &str) {
    let mut link = cluster.link(at, database);
    for _ in 0..3 {
        link.command("BEGIN").unwrap();
        for id in [6, 7] {
            let change = format!("UPDATE t SET v = length(format('%s', v)) - 1 WHERE id = {id}");
            link.command(&change).unwrap();
        }
        link.command("COMMIT").unwrap();
    }
}

/// What SHOW PENDING tells of row 7.
fn pile(link: &mut Link) -> Option<Vec<String>> {
    let all = rows(link, "SHOW PENDING");
    assert!(all.len() <= 1, "one row has formulas: {all:?}");
    all.into_iter().next()
}

#[test]
fn formulas_that_pile_up_are_shown_until_they_are_applied() {
    let cluster = Cluster::start("pending", 2, 1);
    for protocol in ["two_phase", "leap", "formula"] {
        cluster.create_as(protocol, protocol, &[TABLE]);
        let mut asks = cluster.link(1, protocol);
        asks.command("INSERT INTO t VALUES (6, 0), (7, 0)").unwrap();
        wait_until("nothing is pending", READY_LIMIT, || {
            pile(&mut asks).is_none()
        });
        come(&cluster, 0, protocol);
        let mut first = adds(&cluster, 0, protocol);
        let mut second = adds(&cluster, 0, protocol);
        let found = pile(&mut asks).expect("row 7");
        let [
            shard,
            table,
            index,
            key,
            committed,
            oldest,
            coordinator,
            age_ms,
            waiters,
            formulas,
        ] = found.as_slice()
        else {
            panic!("{protocol}: {found:?}");
        };
        assert!(
            ["n1.0", "n2.0"].contains(&shard.as_str()),
            "{protocol}: {found:?}"
        );
        let named = [table, index, key].map(String::as_str);
        assert_eq!(named, ["t", "t_pkey", "7"], "{protocol}");
        let counts = [committed, waiters, formulas].map(String::as_str);
        assert_eq!(counts, ["0", "0", "2"], "{protocol}");
        assert!(oldest.starts_with("t1.0."), "{protocol}: {found:?}");
        assert_eq!(coordinator, "1", "{protocol}");
        assert!(
            age_ms.parse::<u64>().unwrap() < 20_000,
            "{protocol}: {found:?}"
        );
        // One that locks the row waits for both; the oldest stays the same until its end.
        let mut waits = cluster.link(0, protocol);
        let waiter = std::thread::spawn(move || {
            let all = waits.command("SELECT v FROM t WHERE id = 7 FOR UPDATE");
            all.is_ok()
        });
        wait_until("an operation waits for the row", READY_LIMIT, || {
            pile(&mut asks).is_some_and(|row| row[8] == "1" && row[5] == *oldest)
        });
        first.command("COMMIT").unwrap();
        wait_until("one is left", READY_LIMIT, || {
            pile(&mut asks).is_some_and(|row| row[9] == "1" && row[5] != *oldest)
        });
        second.command("COMMIT").unwrap();
        assert!(waiter.join().unwrap(), "{protocol}: it has waited");
        wait_until("all is applied", READY_LIMIT, || pile(&mut asks).is_none());
        assert_eq!(rows(&mut asks, "SELECT v FROM t WHERE id = 7"), [["2"]]);
    }
}

#[test]
fn each_stage_tells_what_it_has_done() {
    let cluster = Cluster::start("stages", 2, 2);
    cluster.create("shop", &[TABLE]);
    let mut link = cluster.link(0, "shop");
    for id in 0..400 {
        let insert = format!("INSERT INTO t VALUES ({id}, 0)");
        link.command(&insert).unwrap();
    }
    let all = rows(&mut link, "SHOW STAGES");
    let of = |node: &str, shard: &str, stage: &str| {
        let mut found = all
            .iter()
            .filter(|row| row[0] == node && row[1] == shard && row[2] == stage);
        let row = found
            .next()
            .unwrap_or_else(|| panic!("{stage} of {node} {shard}: {all:?}"));
        assert!(found.next().is_none(), "{stage} is there once: {all:?}");
        row.clone()
    };
    let shard_stages = [
        "mail",
        "session",
        "plan",
        "execute",
        "transaction",
        "store",
        "reply",
        "hold",
        "link",
        "prepare",
    ];
    for shard in ["n1.0", "n1.1", "n2.0", "n2.1"] {
        let node = &shard[1..2];
        for stage in shard_stages {
            of(node, shard, stage);
        }
    }
    for node in ["1", "2"] {
        let journal = of(node, "", "journal");
        assert!(number(&journal[5]) >= 100.0, "records: {journal:?}");
        assert!(number(&journal[6]) > 0.0, "writes take time: {journal:?}");
        of(node, "", "decode");
    }
    assert_eq!(all.len(), 4 * shard_stages.len() + 2 * 2, "{all:?}");
    // The client's shard has handled its messages; its statements were timed.
    let sessions = ["n1.0", "n1.1"].map(|shard| of("1", shard, "session"));
    let busy = sessions
        .iter()
        .max_by_key(|row| number(&row[5]) as u64)
        .unwrap();
    assert!(number(&busy[5]) >= 400.0, "{busy:?}");
    let (mean, p99) = (number(&busy[6]), number(&busy[7]));
    assert!(mean > 0.0 && p99 > 0.0, "{busy:?}");
    // One client at a time: its statement is the oldest at work and the only one.
    let potentials = all.iter().filter(|row| !row[8].is_empty());
    let potentials: Vec<f64> = potentials.map(|row| number(&row[8])).collect();
    assert!(
        !potentials.is_empty(),
        "400 statements are sampled: {all:?}"
    );
    assert!(
        potentials.iter().all(|share| *share == 1.0),
        "{potentials:?}"
    );
    let linked = all
        .iter()
        .filter(|row| row[2] == "link")
        .map(|row| number(&row[5]));
    assert!(
        linked.sum::<f64>() >= 100.0,
        "rows lie on both nodes: {all:?}"
    );
}

fn number(cell: &str) -> f64 {
    cell.parse()
        .unwrap_or_else(|_| panic!("no number: {cell:?}"))
}

//! Statements that are canceled, run out of time, or lose their client in the middle.

use crate::support::{
    Cluster, READY_LIMIT, number, pid_of, rows, sqlstate, wait_running, wait_until,
};
use links::raw::cancel;
use std::io::Write;
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// Runs for minutes if nobody stops it: far longer than a client waits for its answer.
const LONG: &str = "SELECT count(*) FROM big a, big b, big c WHERE a.n + b.n + c.n = 7";

fn cluster(name: &str) -> Cluster {
    let cluster = Cluster::start(name, 2, 1);
    let values: Vec<String> = (0..1_000).map(|n| format!("({n}, {n})")).collect();
    let fill = format!("INSERT INTO big VALUES {}", values.join(", "));
    let create = "CREATE TABLE big (id int PRIMARY KEY, n int NOT NULL)";
    cluster.create("shop", &[create, &fill]);
    cluster
}

#[test]
fn a_canceled_statement_ends_soon_and_the_session_goes_on() {
    let cluster = cluster("cancel");
    let mut link = cluster.link(0, "shop");
    let (key, endpoint) = (
        link.postgres().unwrap().cancel_key().unwrap(),
        cluster.endpoint(0),
    );
    let pid = pid_of(&mut link);
    for in_block in [false, true] {
        if in_block {
            link.command("BEGIN").unwrap();
        }
        let (endpoint, pid) = (endpoint.clone(), pid.clone());
        let mut judge = cluster.link(1, "shop");
        let canceler = std::thread::spawn(move || {
            wait_running(&mut judge, &pid, "big a, big b");
            cancel(&endpoint, key).unwrap();
        });
        assert_eq!(sqlstate(&mut link, LONG), "57014");
        canceler.join().unwrap();
        if in_block {
            assert_eq!(sqlstate(&mut link, "SELECT 1"), "25P02");
            link.command("ROLLBACK").unwrap();
        }
        assert_eq!(number(&mut link, "SELECT count(*) FROM big"), 1_000);
    }
    // With nothing to cancel, the next statement is not hit.
    cancel(&endpoint, key).unwrap();
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(number(&mut link, "SELECT 1"), 1);
}

#[test]
fn a_cancel_request_needs_the_secret() {
    let cluster = cluster("secret");
    let mut link = cluster.link(0, "shop");
    link.command("SET statement_timeout = '1500ms'").unwrap();
    let pid = number(&mut link, "SELECT pg_backend_pid()") as i32;
    let address = cluster.file.nodes[0].sql;
    let intruder = std::thread::spawn(move || {
        for secret in 0..20_u32 {
            let mut request = Vec::new();
            for word in [16, 80_877_102, pid as u32, secret] {
                request.extend_from_slice(&word.to_be_bytes());
            }
            TcpStream::connect(address)
                .unwrap()
                .write_all(&request)
                .unwrap();
            std::thread::sleep(Duration::from_millis(20));
        }
    });
    let begin = Instant::now();
    assert_eq!(sqlstate(&mut link, LONG), "57014");
    assert!(
        begin.elapsed() > Duration::from_secs(1),
        "canceled after {:?}",
        begin.elapsed()
    );
    intruder.join().unwrap();
}

#[test]
fn a_waiting_statement_can_be_canceled() {
    let cluster = cluster("waiting");
    let (mut older, mut younger) = (cluster.link(0, "shop"), cluster.link(1, "shop"));
    // An older transaction waits for a younger one.
    older.command("BEGIN").unwrap();
    older.command("UPDATE big SET n = 0 WHERE id = 1").unwrap();
    younger.command("BEGIN").unwrap();
    younger
        .command("UPDATE big SET n = 0 WHERE id = 2")
        .unwrap();
    let (key, endpoint) = (
        older.postgres().unwrap().cancel_key().unwrap(),
        cluster.endpoint(0),
    );
    let (pid, mut judge) = (pid_of(&mut older), cluster.link(1, "shop"));
    let canceler = std::thread::spawn(move || {
        wait_running(&mut judge, &pid, "SET n = 1 WHERE id = 2");
        cancel(&endpoint, key).unwrap();
    });
    assert_eq!(
        sqlstate(&mut older, "UPDATE big SET n = 1 WHERE id = 2"),
        "57014"
    );
    canceler.join().unwrap();
    older.command("ROLLBACK").unwrap();
    younger.command("COMMIT").unwrap();
    assert_eq!(number(&mut older, "SELECT n FROM big WHERE id = 1"), 1);
    assert_eq!(number(&mut older, "SELECT n FROM big WHERE id = 2"), 0);
}

#[test]
fn statements_run_out_of_time() {
    let cluster = cluster("timeout");
    let mut link = cluster.link(0, "shop");
    link.command("SET statement_timeout = '300ms'").unwrap();
    assert_eq!(sqlstate(&mut link, LONG), "57014");
    assert_eq!(number(&mut link, "SELECT count(*) FROM big"), 1_000);
}

#[test]
fn a_lost_client_leaves_no_lock_and_no_session() {
    let cluster = cluster("lost");
    let mut link = cluster.link(1, "shop");
    for round in 0..20 {
        let mut lost = cluster.link(round % 2, "shop");
        lost.command("BEGIN").unwrap();
        lost.command("UPDATE big SET n = -1 WHERE id < 20").unwrap();
        drop(lost);
    }
    // A client that goes away while its statement runs.
    for _ in 0..3 {
        let mut lost = cluster.link(0, "shop");
        let mut query = LONG.as_bytes().to_vec();
        query.push(0);
        lost.postgres().unwrap().send_message(b'Q', &query).unwrap();
        std::thread::sleep(Duration::from_millis(50));
    }
    wait_until("locks are free", READY_LIMIT, || {
        link.command("UPDATE big SET n = n + 0 WHERE id < 20")
            .is_ok()
    });
    assert_eq!(
        number(&mut link, "SELECT sum(n) FROM big WHERE id < 20"),
        (0..20).sum::<i64>()
    );
    for at in 0..2 {
        let mut link = cluster.link(at, "shop");
        wait_until("sessions are gone", READY_LIMIT, || {
            // The one that asks, and `link` above.
            rows(&mut link, "SHOW SESSIONS").len() <= 2
        });
    }
}

#[test]
fn a_copy_that_is_cut_off_leaves_no_row() {
    let cluster = cluster("copy");
    let mut cut_off = cluster.link(0, "shop");
    let lost = cut_off.postgres().unwrap();
    lost.send_message(b'Q', b"COPY big FROM STDIN\0").unwrap();
    assert_eq!(lost.next_message().unwrap().0, b'G');
    for id in 5_000..6_000 {
        lost.send_message(b'd', format!("{id}\t1\n").as_bytes())
            .unwrap();
    }
    drop(cut_off);
    let mut link = cluster.link(1, "shop");
    wait_until("the session is gone", READY_LIMIT, || {
        rows(&mut link, "SHOW SESSIONS").len() == 1
    });
    assert_eq!(number(&mut link, "SELECT count(*) FROM big"), 1_000);
    let copied = link.copy_in("COPY big FROM STDIN", b"5000\t1\nnonsense\n");
    assert!(copied.is_err_and(|error| error.to_string().contains("22P04")));
    assert_eq!(number(&mut link, "SELECT count(*) FROM big"), 1_000);
    assert_eq!(
        link.copy_in("COPY big FROM STDIN", b"5000\t1\n5001\t2\n")
            .unwrap(),
        2
    );
    assert_eq!(number(&mut link, "SELECT count(*) FROM big"), 1_002);
}

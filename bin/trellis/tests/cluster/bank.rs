//! A bank whose clients keep a ledger of what the server has acknowledged.
//!
//! Each transfer moves money between two accounts, as a rule on different shards, and notes itself
//! in the table `transfer` under a number that the client chose. Afterwards:
//!
//! * every acknowledged transfer is in the table, every refused one is not;
//! * each balance is what the transfers in the table make of it: a transfer that happened in part
//!   would show in a balance.

use crate::support::{ANSWER_LIMIT, Cluster, connect, rows_patiently, try_rows};
use base::Prng;
use links::link::{Link, LinkError};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

pub(crate) const DATABASE: &str = "bank";
const ACCOUNTS: u64 = 48;
const OPENING: i64 = 1_000;

/// What became of transfers, by number. Those in neither set have an outcome that nobody told.
#[derive(Default)]
pub(crate) struct Ledger {
    pub(crate) acknowledged: BTreeSet<u64>,
    refused: BTreeSet<u64>,
}

/// Makes the tables and opens the accounts.
pub(crate) fn open(cluster: &Cluster) {
    open_as("two_phase", cluster);
}

/// As [`open`], under this protocol.
pub(crate) fn open_as(protocol: &str, cluster: &Cluster) {
    let values: Vec<String> = (0..ACCOUNTS)
        .map(|id| format!("({id}, {OPENING})"))
        .collect();
    cluster.create_as(
        protocol,
        DATABASE,
        &[
            "CREATE TABLE account (id int PRIMARY KEY, balance bigint NOT NULL)",
            "CREATE TABLE transfer (id bigint PRIMARY KEY, source int NOT NULL, \
             target int NOT NULL, amount bigint NOT NULL)",
            &format!("INSERT INTO account VALUES {}", values.join(", ")),
        ],
    );
}

/// Clients at work.
pub(crate) struct Clients {
    stop: Arc<AtomicBool>,
    acknowledged: Arc<AtomicU64>,
    threads: Vec<JoinHandle<Ledger>>,
}

impl Clients {
    /// Starts clients that transfer until they are stopped, each beginning with another node.
    pub(crate) fn start(cluster: &Cluster, count: u64) -> Clients {
        let addresses: Vec<SocketAddr> = cluster.file.nodes.iter().map(|node| node.sql).collect();
        let (stop, acknowledged) = (Arc::<AtomicBool>::default(), Arc::<AtomicU64>::default());
        let threads = (0..count).map(|number| {
            let (addresses, stop) = (addresses.clone(), stop.clone());
            let acknowledged = acknowledged.clone();
            std::thread::spawn(move || work(number, &addresses, &stop, &acknowledged))
        });
        Clients {
            threads: threads.collect(),
            stop,
            acknowledged,
        }
    }

    /// Waits until `more` further transfers are acknowledged.
    pub(crate) fn wait_progress(&self, more: u64) {
        let wanted = self.acknowledged.load(Ordering::SeqCst) + more;
        let until = Instant::now() + 2 * ANSWER_LIMIT;
        while self.acknowledged.load(Ordering::SeqCst) < wanted {
            assert!(Instant::now() < until, "the clients make no progress");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    pub(crate) fn finish(self) -> Ledger {
        self.stop.store(true, Ordering::SeqCst);
        let mut whole = Ledger::default();
        for thread in self.threads {
            let mut ledger = thread.join().unwrap();
            whole.acknowledged.append(&mut ledger.acknowledged);
            whole.refused.append(&mut ledger.refused);
        }
        whole
    }
}

fn work(
    number: u64,
    addresses: &[SocketAddr],
    stop: &AtomicBool,
    acknowledged: &AtomicU64,
) -> Ledger {
    let mut ledger = Ledger::default();
    let mut prng = Prng::new(number);
    let mut link = None;
    let mut next = number as usize;
    for id in (number * 1_000_000).. {
        if stop.load(Ordering::SeqCst) {
            return ledger;
        }
        let Some(mut open) = link.take().or_else(|| reach(addresses, &mut next)) else {
            std::thread::sleep(Duration::from_millis(20));
            continue;
        };
        match transfer(&mut open, id, &mut prng) {
            Outcome::Committed => {
                acknowledged.fetch_add(1, Ordering::SeqCst);
                ledger.acknowledged.insert(id);
                link = Some(open);
            }
            Outcome::Refused => {
                ledger.refused.insert(id);
                link = Some(open);
                std::thread::sleep(Duration::from_micros(prng.below(5_000)));
            }
            Outcome::Unknown => {}
        }
    }
    ledger
}

/// A connection to the first node that answers, beginning with the `next`th.
fn reach(addresses: &[SocketAddr], next: &mut usize) -> Option<Link> {
    for _ in addresses {
        let address = addresses[*next % addresses.len()];
        *next += 1;
        if let Ok(link) = connect(address, DATABASE) {
            return Some(link);
        }
    }
    None
}

enum Outcome {
    Committed,
    /// Rolled back for sure; the connection is good.
    Refused,
    /// Nobody said what became of it, and the connection is of no more use.
    Unknown,
}

fn transfer(link: &mut Link, id: u64, prng: &mut Prng) -> Outcome {
    let source = prng.below(ACCOUNTS);
    let target = (source + 1 + prng.below(ACCOUNTS - 1)) % ACCOUNTS;
    let amount = prng.between(1, 20);
    let statements = [
        "BEGIN".to_string(),
        format!("UPDATE account SET balance = balance - {amount} WHERE id = {source}"),
        format!("INSERT INTO transfer VALUES ({id}, {source}, {target}, {amount})"),
        format!("UPDATE account SET balance = balance + {amount} WHERE id = {target}"),
    ];
    for statement in &statements {
        match link.command(statement) {
            Ok(()) => {}
            Err(LinkError::Server(error)) => {
                assert_excusable(&error.sqlstate, &error.message);
                return match link.command("ROLLBACK") {
                    Ok(()) => Outcome::Refused,
                    Err(_) => Outcome::Unknown,
                };
            }
            Err(_) => return Outcome::Unknown,
        }
    }
    match link.command("COMMIT") {
        Ok(()) => Outcome::Committed,
        Err(LinkError::Server(error)) => {
            assert_excusable(&error.sqlstate, &error.message);
            // 08007 and the end of the server leave it open.
            if error.sqlstate == "40001" {
                Outcome::Refused
            } else {
                Outcome::Unknown
            }
        }
        Err(_) => Outcome::Unknown,
    }
}

/// Errors that crashes and conflicts explain: serialization, unknown outcome, shutdown, and 55P03:
/// a killed node that needs more than `in_doubt_timeout` for its start keeps others waiting.
fn assert_excusable(sqlstate: &str, message: &str) {
    let excusable = [
        "40001", "40P01", "08007", "08006", "57P01", "57P03", "55P03",
    ];
    assert!(excusable.contains(&sqlstate), "{sqlstate}: {message}");
}

/// The sum of all balances, in one snapshot.
pub(crate) fn total(link: &mut Link) -> i64 {
    let until = Instant::now() + 2 * ANSWER_LIMIT;
    loop {
        match try_rows(link, "SELECT sum(balance) FROM account") {
            Ok(rows) => return rows[0][0].parse().unwrap(),
            Err(LinkError::Server(error)) if Instant::now() < until => {
                assert_excusable(&error.sqlstate, &error.message);
                std::thread::sleep(Duration::from_millis(20));
            }
            Err(error) => panic!("the sum of all balances: {error}"),
        }
    }
}

/// What [`total`] must be at any time.
pub(crate) const TOTAL: i64 = ACCOUNTS as i64 * OPENING;

/// Compares the tables with the ledger, on every node.
pub(crate) fn verify(cluster: &Cluster, ledger: &Ledger) {
    for at in 0..cluster.size() {
        let mut link = cluster.link(at, DATABASE);
        verify_at(&mut link, ledger, at);
    }
}

fn verify_at(link: &mut Link, ledger: &Ledger, at: usize) {
    let mut expected: BTreeMap<i64, i64> = (0..ACCOUNTS as i64).map(|id| (id, OPENING)).collect();
    let mut found = BTreeSet::new();
    for row in rows_patiently(link, "SELECT id, source, target, amount FROM transfer") {
        let cell = |column: usize| row[column].parse::<i64>().unwrap();
        found.insert(cell(0) as u64);
        *expected.get_mut(&cell(1)).unwrap() -= cell(3);
        *expected.get_mut(&cell(2)).unwrap() += cell(3);
    }
    let lost: Vec<_> = ledger.acknowledged.difference(&found).collect();
    assert!(
        lost.is_empty(),
        "node {at}: acknowledged transfers are lost: {lost:?}"
    );
    let undead: Vec<_> = ledger.refused.intersection(&found).collect();
    assert!(
        undead.is_empty(),
        "node {at}: refused transfers have happened: {undead:?}"
    );
    for row in rows_patiently(link, "SELECT id, balance FROM account ORDER BY id") {
        let (id, balance): (i64, i64) = (row[0].parse().unwrap(), row[1].parse().unwrap());
        assert_eq!(
            balance, expected[&id],
            "node {at}: account {id} has part of a transfer"
        );
    }
    assert_eq!(total(link), TOTAL);
}

//! Clients: loops of single statements, each recorded with its time, row and outcome.

use crate::cluster::Cluster;
use base::key::encode_datum;
use base::{Datum, Prng, slot_of};
use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio_postgres::{Client, NoTls};

/// Number of rows of the table. A client uses only the rows of its share, by remainder.
const ROWS: i64 = 60;

/// One statement.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    /// Time since the start of the run.
    pub(crate) begin: Duration,
    pub(crate) end: Duration,
    /// The node that the client is connected to, from 1.
    pub(crate) at: u16,
    /// The node that is home of the row.
    pub(crate) home: u16,
    /// SQLSTATE; empty: success; `lost`: the connection broke.
    pub(crate) state: String,
    pub(crate) message: String,
}

/// State that all clients of a run share.
pub(crate) struct Shared {
    pub(crate) start: Instant,
    pub(crate) samples: RefCell<Vec<Sample>>,
    pub(crate) stop: RefCell<bool>,
}

/// The home of a row, as a node: slots go round the nodes, which have one shard each.
pub(crate) fn home(id: i64, nodes: u16) -> u16 {
    let mut bytes = Vec::new();
    encode_datum(&mut bytes, &Datum::Int(id), false);
    slot_of(&bytes).0 % nodes + 1
}

/// The rows that clients of a node use. Clients of node 2, which has the faults, use rows of their
/// own: under a protocol that moves rows, the rows of other clients are then never at node 2.
pub(crate) fn rows_of(node: u16) -> Vec<i64> {
    let own = |id: &i64| (id % 3 == 0) == (node == crate::cluster::VICTIM);
    (1..=ROWS).filter(own).collect()
}

/// Makes the table.
pub(crate) async fn load(client: &Client) -> Result<(), tokio_postgres::Error> {
    let sql = format!(
        "CREATE TABLE t (id int PRIMARY KEY, v int NOT NULL, w text);
         INSERT INTO t SELECT n, 0, 'w' FROM generate_series(1, {ROWS}) AS g (n);
         CREATE TABLE other (id int PRIMARY KEY, v int);"
    );
    client.batch_execute(&sql).await
}

/// Connects within a second.
pub(crate) async fn connect(node: u16, database: &str) -> Option<Client> {
    let url = Cluster::url(node, database);
    let connecting = tokio_postgres::connect(&url, NoTls);
    let connected = tokio::time::timeout(Duration::from_secs(1), connecting).await;
    let (client, connection) = connected.ok()?.ok()?;
    tokio::spawn(connection);
    Some(client)
}

/// A client: statements on random rows of its share, a pause after each.
pub(crate) async fn client(shared: Rc<Shared>, node: u16, nodes: u16, seed: u64) {
    let mut prng = Prng::new(seed);
    let rows = rows_of(node);
    let mut connected: Option<Client> = None;
    while !*shared.stop.borrow() {
        let Some(client) = &connected else {
            connected = connect(node, "faults").await;
            if connected.is_none() {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            continue;
        };
        let id = rows[prng.below(rows.len() as u64) as usize];
        let sql = match prng.below(4) {
            0 => format!("SELECT v FROM t WHERE id = {id}"),
            // An update that reads the row, so that it becomes no formula.
            _ => format!("UPDATE t SET v = v + 1, w = w || '' WHERE id = {id}"),
        };
        let begin = shared.start.elapsed();
        let result = client.simple_query(&sql).await;
        let end = shared.start.elapsed();
        let (state, message) = match result {
            Ok(_) => (String::new(), String::new()),
            Err(error) => match error.as_db_error() {
                Some(error) => (error.code().code().into(), error.message().into()),
                None => ("lost".into(), error.to_string()),
            },
        };
        if state == "lost" {
            connected = None;
        }
        shared.samples.borrow_mut().push(Sample {
            begin,
            end,
            at: node,
            home: home(id, nodes),
            state,
            message,
        });
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

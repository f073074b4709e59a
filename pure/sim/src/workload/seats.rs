//! Seats that are each one's for as long as a transaction wants: a unique constraint is deferred,
//! and clients swap, take, give up and add seats, under both isolation levels and with savepoints.
//! No reader ever sees two with one seat, by the table or by the index, and swaps lose no one.

use super::blame::{Blame, ask_patiently, is_excusable, say_patiently};
use super::{Entry, Scale, Verdict, Workload};
use crate::client::{SimConn, SimError};
use crate::executor::{SimCx, Task};
use base::Prng;
use std::cell::Cell;
use std::rc::Rc;

pub(super) const ENTRY: Entry = Entry {
    name: "seats",
    about: "swaps the keys of rows under a deferred unique constraint: no two rows have one",
    make: |prng, _scale: Scale| Rc::new(Seats::draw(prng)),
};

/// A run with fewer committed transactions proves nothing.
const COMMITTED_MIN: u32 = 20;
/// Rounds of a client with the healed cluster, where faults let too little happen.
const MORE_MAX: u32 = 60;

/// Before two ids: these rows swap their seats.
const SWAP: &str = "SWAP ";
const CREATE: &str = "CREATE TABLE s (id bigint PRIMARY KEY, n bigint NOT NULL, \
                      CONSTRAINT s_n UNIQUE (n) DEFERRABLE INITIALLY DEFERRED)";
const LOOK: &str = "SELECT count(*), count(DISTINCT n) FROM s";

struct Seats {
    seats: u64,
    pause_us: u64,
    next_id: Cell<u64>,
    committed: Cell<u32>,
    blame: Blame,
}

impl Seats {
    fn draw(prng: &mut Prng) -> Seats {
        let seats = 3 + prng.below(6);
        Seats {
            seats,
            pause_us: 1 << prng.between(10, 13),
            next_id: Cell::new(seats),
            committed: Cell::new(0),
            blame: Blame::default(),
        }
    }

    /// A row takes a seat, whosever it is.
    fn take(&self, rng: &mut Prng) -> String {
        let (id, seat) = (rng.below(self.seats), rng.below(self.seats + 3));
        match rng.below(5) {
            0 => format!("DELETE FROM s WHERE n = {seat}"),
            1 => {
                let id = self.next_id.get();
                self.next_id.set(id + 1);
                format!("INSERT INTO s VALUES ({id}, {seat})")
            }
            2 => format!("UPDATE s SET n = n + 1 WHERE n >= {seat}"),
            _ => format!("UPDATE s SET n = {seat} WHERE id = {id}"),
        }
    }

    /// The statements of a transaction.
    fn statements(&self, rng: &mut Prng) -> Vec<String> {
        let level = match rng.below(2) {
            0 => "SERIALIZABLE",
            _ => "READ COMMITTED",
        };
        let mut all = vec![format!("BEGIN ISOLATION LEVEL {level}")];
        if rng.below(2) == 0 {
            let (a, b) = (rng.below(self.seats), rng.below(self.seats));
            all.push(format!("{SWAP}{a}, {b}"));
        } else {
            let takes = 1 + rng.below(3);
            all.extend((0..takes).map(|_| self.take(rng)));
        }
        if rng.below(3) == 0 {
            all.push("SAVEPOINT p".to_owned());
            all.push(self.take(rng));
            if rng.below(2) == 0 {
                all.push("SET CONSTRAINTS ALL IMMEDIATE".to_owned());
            }
            all.push(self.take(rng));
            all.push("ROLLBACK TO p".to_owned());
        }
        if rng.below(4) == 0 {
            all.push("SET CONSTRAINTS s_n IMMEDIATE".to_owned());
        }
        all.push("COMMIT".to_owned());
        all
    }

    /// Runs a transaction. Returns whether it has committed.
    async fn transact(&self, conn: &mut SimConn, all: &[String]) -> Result<bool, SimError> {
        let (mut failed, mut saved) = (false, false);
        for statement in all {
            if failed && (statement == "COMMIT" || !saved) {
                conn.query("ROLLBACK").await?;
                return Ok(false);
            }
            if failed && !statement.starts_with("ROLLBACK") {
                continue;
            }
            saved |= statement.starts_with("SAVEPOINT");
            let done = match statement.strip_prefix(SWAP) {
                Some(rows) => swap(conn, rows).await,
                None => conn.query(statement).await.map(drop),
            };
            match done {
                Ok(()) => failed = false,
                // Two have a seat; a commit that says so has rolled back.
                Err(SimError::Sql(error)) if error.state().as_str() == "23505" => {
                    if statement == "COMMIT" {
                        return Ok(false);
                    }
                    failed = true;
                }
                Err(SimError::Sql(error)) => {
                    if !is_excusable(error.state().as_str()) {
                        self.blame.accuse(format!("{statement}: {error}"));
                    }
                    conn.query("ROLLBACK").await?;
                    return Ok(false);
                }
                Err(lost) => return Err(lost),
            }
        }
        Ok(true)
    }

    /// What a reader sees: no seat is two rows', whichever way they are found.
    async fn look(&self, conn: &mut SimConn, seat: u64) -> Result<(), SimError> {
        let by_index = format!("SELECT count(*), 1 FROM s WHERE n = {seat}");
        for sql in [LOOK, &by_index] {
            match conn.query(sql).await {
                Ok(answer) => {
                    let (rows, most) = (answer.int(0, 0), answer.int(0, 1));
                    if rows > most {
                        let text = format!("{sql}: {rows:?} rows, {most:?} seats");
                        self.blame.accuse(text);
                    }
                }
                Err(SimError::Sql(error)) if is_excusable(error.state().as_str()) => {}
                Err(SimError::Sql(error)) => self.blame.accuse(format!("{sql}: {error}")),
                Err(lost) => return Err(lost),
            }
        }
        Ok(())
    }

    async fn work(&self, cx: &SimCx) {
        let mut more = 0;
        while !cx.stopping() || (self.committed.get() < COMMITTED_MIN && more < MORE_MAX) {
            let Some(mut conn) = cx.connect_any().await else {
                continue;
            };
            while conn.is_open() {
                more += u32::from(cx.stopping());
                let (statements, seat) = {
                    let mut rng = cx.rng();
                    (self.statements(&mut rng), rng.below(self.seats + 3))
                };
                match self.transact(&mut conn, &statements).await {
                    Ok(true) => self.committed.set(self.committed.get() + 1),
                    Ok(false) => {}
                    Err(_) => break,
                }
                if self.look(&mut conn, seat).await.is_err() || cx.stopping() {
                    break;
                }
                cx.pause(self.pause_us).await;
            }
        }
    }

    /// Every row is found by its seat, and no other.
    async fn look_at_all(&self, cx: &SimCx) -> Result<(), String> {
        let told = |error| format!("the last look: {error:?}");
        let sql = "SELECT n, id FROM s ORDER BY id";
        let all = ask_patiently(cx, 1, sql).await.map_err(told)?;
        for row in 0..all.rows.len() {
            let (Some(seat), Some(id)) = (all.int(row, 0), all.int(row, 1)) else {
                return Err(format!("{sql}: a row without a seat"));
            };
            let sql = format!("SELECT id, count(*) OVER () FROM s WHERE n = {seat}");
            let found = ask_patiently(cx, 1, &sql).await.map_err(told)?;
            let found = (found.int(0, 0), found.int(0, 1));
            if found != (Some(id), Some(1)) {
                self.blame
                    .accuse(format!("{sql}: {found:?}, not {id} alone"));
            }
        }
        Ok(())
    }
}

/// Two rows swap their seats, one statement after the other.
async fn swap(conn: &mut SimConn, rows: &str) -> Result<(), SimError> {
    let sql = format!("SELECT id, n FROM s WHERE id IN ({rows}) FOR UPDATE");
    let found = conn.query(&sql).await?;
    if found.rows.len() < 2 {
        return Ok(());
    }
    for (of, to) in [(0, 1), (1, 0)] {
        let (id, seat) = (found.int(of, 0), found.int(to, 1));
        let (Some(id), Some(seat)) = (id, seat) else {
            continue;
        };
        let sql = format!("UPDATE s SET n = {seat} WHERE id = {id}");
        conn.query(&sql).await?;
    }
    Ok(())
}

impl Workload for Seats {
    fn setup(self: Rc<Self>, cx: SimCx) -> Task<Result<(), String>> {
        Box::pin(async move {
            let last = self.seats - 1;
            let fill = format!("INSERT INTO s SELECT id, id FROM generate_series(0, {last}) id");
            say_patiently(&cx, &["DROP TABLE IF EXISTS s", CREATE, &fill]).await
        })
    }

    fn client(self: Rc<Self>, cx: SimCx, _client: u32) -> Task {
        Box::pin(async move { self.work(&cx).await })
    }

    fn finish(self: Rc<Self>, cx: SimCx) -> Task<Verdict> {
        Box::pin(async move {
            if let Err(text) = self.look_at_all(&cx).await {
                return Verdict::Fail(text);
            }
            if let Some(text) = self.blame.take() {
                return Verdict::Fail(text);
            }
            match self.committed.get() {
                COMMITTED_MIN.. => Verdict::Pass,
                few => Verdict::Inconclusive(format!("{few} transactions")),
            }
        })
    }
}

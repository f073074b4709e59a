//! Constraints that come while rows are written: a part of the workload `ddl`.
//!
//! One client adds a check, a unique constraint and a foreign key to tables that it also drops and
//! makes anew; another writes rows, some of which violate them. From when a constraint is
//! acknowledged until its tables are about to be dropped, no row violates it.

use super::blame::say_patiently;
use super::histories::Histories;
use crate::client::SimConn;
use crate::executor::SimCx;
use std::cell::Cell;
use std::rc::Rc;

/// A check is violated from here on.
const TOO_LARGE: i64 = 1_000_000;

/// Statements that make the tables anew.
const TABLES: [&str; 4] = [
    "DROP TABLE IF EXISTS owned",
    "DROP TABLE IF EXISTS owner",
    "CREATE TABLE owner (k bigint PRIMARY KEY, v bigint NOT NULL)",
    "CREATE TABLE owned (k bigint PRIMARY KEY, o bigint NOT NULL)",
];

/// Number of things that are added.
const COUNT: usize = 6;

/// What is added, and a query for what violates it.
const CONSTRAINTS: [(&str, &str); COUNT] = [
    (
        "ALTER TABLE owner ADD CONSTRAINT owner_small CHECK (v < 1000000)",
        "SELECT k, v FROM owner WHERE v >= 1000000",
    ),
    (
        "ALTER TABLE owner ADD CONSTRAINT owner_v UNIQUE (v)",
        "SELECT a.k, b.k FROM owner a JOIN owner b ON a.v = b.v WHERE a.k < b.k",
    ),
    (
        "ALTER TABLE owned ADD CONSTRAINT owned_o FOREIGN KEY (o) REFERENCES owner (k)",
        "SELECT d.k, d.o FROM owned d LEFT JOIN owner w ON w.k = d.o WHERE w.k IS NULL",
    ),
    (
        "ALTER TABLE owner ADD COLUMN w bigint NOT NULL DEFAULT 7",
        "SELECT k, w FROM owner WHERE w IS NULL OR w <> 7",
    ),
    (
        "ALTER TABLE owned ADD COLUMN n bigint DEFAULT 5, ALTER COLUMN n SET NOT NULL, \
         ADD CONSTRAINT owned_n CHECK (n + o > o), ADD UNIQUE (k, n)",
        "SELECT k, n FROM owned WHERE n IS NULL OR n <> 5",
    ),
    (
        "ALTER TABLE owner ALTER COLUMN v TYPE numeric(12, 1) USING v + 0.5 - 0.5",
        "SELECT k, v FROM owner WHERE v IS NULL OR pg_typeof(v)::text <> 'numeric' \
         OR v <> trunc(v)",
    ),
];

/// SQLSTATEs that a schema change may give beside those of faults: what it makes is there already
/// or gone after a change with an unknown outcome, a row violates what is added, a node is missing.
/// The first one, that others depend on it, only after a change before that was not carried out.
const OF_CHANGES: [&str; 9] = [
    "2BP01", "42P07", "42710", "42701", "42P01", "42704", "23514", "23503", "55000",
];
/// SQLSTATEs that a look may give: what it reads is not there yet.
const OF_LOOKS: [&str; 2] = ["42P01", "42703"];
/// SQLSTATEs that a write may give beside those of faults.
const OF_WRITES: [&str; 3] = ["42P01", "23514", "23503"];

/// What the clients of a run share.
pub(super) struct Constraints {
    rows: Rc<Histories>,
    /// Since when each constraint is there, by its acknowledgement; `None` unless it is known.
    since: [Cell<Option<u64>>; COUNT],
    /// Nobody knows what became of a change of the tables. It may take effect at any time.
    is_uncertain: Cell<bool>,
    next_key: Cell<i64>,
    /// Acknowledged constraints, and looks for rows that violate one.
    pub(super) added: Cell<u64>,
    pub(super) looks: Cell<u64>,
}

impl Constraints {
    pub(super) fn new(rows: Rc<Histories>) -> Constraints {
        Constraints {
            rows,
            since: Default::default(),
            is_uncertain: Cell::new(false),
            next_key: Cell::new(1),
            added: Cell::new(0),
            looks: Cell::new(0),
        }
    }

    pub(super) async fn make_tables(&self, cx: &SimCx) -> Result<(), String> {
        say_patiently(cx, &TABLES).await
    }

    /// One schema change, or the tables anew. Tells whether the connection goes on.
    pub(super) async fn change(&self, cx: &SimCx, conn: &mut SimConn) -> bool {
        let which = cx.rng().below(COUNT as u64 + 1) as usize;
        let Some((statement, _)) = CONSTRAINTS.get(which) else {
            self.since.iter().for_each(|since| since.set(None));
            // As long as its child is there the parent cannot go.
            let mut also = &OF_CHANGES[1..];
            for statement in TABLES {
                let (is_done, goes_on) = self.say(conn, statement, also).await;
                if !goes_on {
                    return false;
                }
                if !is_done {
                    also = &OF_CHANGES;
                }
            }
            return true;
        };
        let (is_done, goes_on) = self.say(conn, statement, &OF_CHANGES[1..]).await;
        if is_done {
            self.added.set(self.added.get() + 1);
            self.since[which].set(Some(cx.now_ns()));
        }
        goes_on
    }

    /// Tells whether it was acknowledged, and whether the connection goes on.
    async fn say(&self, conn: &mut SimConn, sql: &str, also: &[&str]) -> (bool, bool) {
        let result = conn.query(sql).await;
        if let Err(error) = &result
            && error.is_unknown()
        {
            self.is_uncertain.set(true);
        }
        (result.is_ok(), self.rows.blame.excuse(sql, result, also))
    }

    /// A write, or a look for rows that violate a constraint. Tells whether the connection goes on.
    pub(super) async fn visit(&self, cx: &SimCx, conn: &mut SimConn) -> bool {
        let (drawn, back) = {
            let mut rng = cx.rng();
            (rng.below(8), rng.below(40) as i64)
        };
        let (key, which) = (self.next_key.get(), back as usize % COUNT);
        let back = back % 8;
        let sql = match drawn {
            0 => return self.look(cx, conn, which).await,
            // Now and then a row that must not be there once it is forbidden.
            1 => format!(
                "INSERT INTO owner (k, v) VALUES ({key}, {})",
                TOO_LARGE + key
            ),
            2 => format!("INSERT INTO owner (k, v) VALUES ({key}, {})", key - back),
            3 => format!("INSERT INTO owner (k, v) VALUES ({key}, {key})"),
            4 | 5 => format!("INSERT INTO owned (k, o) VALUES ({key}, {})", key - back),
            6 => format!("UPDATE owned SET o = {} WHERE k = {}", key, key - back),
            _ => format!("DELETE FROM owner WHERE k = {}", key - back),
        };
        self.next_key.set(key + 1);
        let result = conn.query(&sql).await;
        self.rows.blame.excuse(&sql, result, &OF_WRITES)
    }

    async fn look(&self, cx: &SimCx, conn: &mut SimConn, which: usize) -> bool {
        let begun_ns = cx.now_ns();
        let (statement, query) = CONSTRAINTS[which];
        let since = self.since[which].get().filter(|since| *since < begun_ns);
        let result = conn.query(query).await;
        // Only if it was there before, and nothing was changed while we looked.
        if let Ok(answer) = &result
            && since.is_some()
            && self.since[which].get() == since
            && !self.is_uncertain.get()
        {
            self.looks.set(self.looks.get() + 1);
            if let Some(row) = answer.rows.first() {
                let text = format!("{statement} was acknowledged, and {row:?} violates it");
                self.rows.blame.accuse(text);
            }
        }
        self.rows.blame.excuse(query, result, &OF_LOOKS)
    }

    /// Looks once more at everything, on the healed cluster.
    pub(super) async fn look_at_all(&self, cx: &SimCx) -> Result<(), String> {
        for which in 0..CONSTRAINTS.len() {
            let conn = cx.connect(1).await;
            let mut conn = conn.map_err(|error| format!("looking at constraints: {error}"))?;
            self.look(cx, &mut conn, which).await;
        }
        Ok(())
    }
}

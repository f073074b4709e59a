//! Statements of clients at live nodes while others are dead, stand still or are cut off: they end
//! soon, and those whose rows only their own node needs go on.
//!
//! Every client stays at its node. What it does is small and has no pauses inside transactions, so
//! a statement that waits for a lock waits for a client that is at work, or for an outage.

use super::blame::{Blame, ask_patiently, say_patiently};
use super::{Entry, Scale, Verdict, Workload};
use crate::client::{Answer, SimConn, SimError};
use crate::executor::{SimCx, Task};
use base::Prng;
use std::cell::Cell;
use std::rc::Rc;

pub(super) const ENTRY: Entry = Entry {
    name: "waits",
    about: "statements end while nodes are dead, stand still or are cut off",
    make: |prng, scale| Rc::new(Waits::draw(prng, scale, false)),
};

pub(super) const SWITCHING: Entry = Entry {
    name: "waits-switch",
    about: "so do they, and schema changes, while the database changes its protocol",
    make: |prng, scale| Rc::new(Waits::draw(prng, scale, true)),
};

/// A run with fewer statements proves nothing.
const DONE_MIN: u64 = 200;
/// Pause of a client between its statements, at most. Microseconds.
const PAUSE_US: u64 = 20_000;

struct Waits {
    /// Some statements change the schema, or the protocol of the database.
    switches: bool,
    rows: i64,
    /// Rows that only the clients of one node use.
    own_rows: i64,
    next_key: Cell<i64>,
    done: Cell<u64>,
    blame: Blame,
}

impl Waits {
    fn draw(prng: &mut Prng, scale: Scale, switches: bool) -> Waits {
        Waits {
            switches,
            rows: 6 + prng.below(30) as i64,
            own_rows: i64::from(scale.nodes) * 4,
            next_key: Cell::new(1_000),
            done: Cell::new(0),
            blame: Blame::default(),
        }
    }

    /// The texts of one transaction.
    fn draw_statements(&self, cx: &SimCx, node: u16) -> Vec<String> {
        let mut rng = cx.rng();
        let id = 1 + rng.below(self.rows as u64) as i64;
        let other = 1 + rng.below(self.rows as u64) as i64;
        let own = i64::from(node) + rng.below(4) as i64 * 100;
        let update =
            |id: i64| format!("UPDATE t SET v = length(format('%s', v)) + {id} WHERE id = {id}");
        let kind = rng.below(12);
        if self.switches && rng.below(40) == 0 {
            let changes = [
                "ALTER DATABASE postgres SET (protocol = 'two_phase')",
                "ALTER DATABASE postgres SET (protocol = 'leap')",
                "ALTER DATABASE postgres SET (protocol = 'formula')",
                "CREATE INDEX IF NOT EXISTS t_v ON t (v)",
                "DROP INDEX IF EXISTS t_v",
            ];
            return vec![changes[rng.below(5) as usize].to_owned()];
        }
        drop(rng);
        let one = match kind {
            0..=2 => update(id),
            3 => format!("UPDATE t SET v = v + 1 WHERE id = {id}"),
            4 => format!("SELECT v FROM t WHERE id = {id}"),
            5 => format!("SELECT v FROM t WHERE id = {id} FOR UPDATE"),
            6 => "SELECT count(*), sum(v) FROM t".to_owned(),
            7 => {
                let key = self.next_key.replace(self.next_key.get() + 1);
                format!("INSERT INTO t VALUES ({key}, 0)")
            }
            8 => format!("UPDATE own SET v = length(format('%s', v)) WHERE id = {own}"),
            9 => format!("UPDATE own SET v = v + 1 WHERE id = {own}"),
            10 => {
                let add = format!("UPDATE t SET v = v + 1 WHERE id = {other}");
                return ["BEGIN".into(), update(id), add, "COMMIT".into()].into();
            }
            _ => {
                let read = format!("SELECT v FROM t WHERE id BETWEEN {id} AND {}", id + 2);
                return ["BEGIN".into(), read, update(other), "COMMIT".into()].into();
            }
        };
        vec![one]
    }

    /// Whether the connection goes on.
    fn note(&self, sql: &str, result: Result<Answer, SimError>) -> bool {
        self.done.set(self.done.get() + u64::from(result.is_ok()));
        // 55000: a schema change needs all nodes.
        let also: &[&str] = if self.switches { &["55000"] } else { &[] };
        self.blame.excuse(sql, result, also)
    }

    /// Whether the connection goes on.
    async fn transact(&self, cx: &SimCx, conn: &mut SimConn) -> bool {
        let statements = self.draw_statements(cx, conn.node());
        for sql in &statements {
            let result = conn.query(sql).await;
            let failed = result.is_err();
            if !self.note(sql, result) {
                return false;
            }
            if failed && statements.len() > 1 {
                let result = conn.query("ROLLBACK").await;
                return self.note("ROLLBACK", result);
            }
        }
        true
    }

    /// The rows that every run has.
    async fn count_own(&self, cx: &SimCx, node: u16) -> Result<Option<i64>, SimError> {
        let answer = ask_patiently(cx, node, "SELECT count(*) FROM own").await?;
        Ok(answer.int(0, 0))
    }

    async fn work(&self, cx: &SimCx, node: u16) {
        while !cx.stopping() {
            let Ok(mut conn) = cx.connect(node).await else {
                cx.sleep(50_000).await;
                continue;
            };
            while !cx.stopping() && self.transact(cx, &mut conn).await {
                cx.pause(PAUSE_US).await;
            }
        }
    }
}

impl Workload for Waits {
    fn setup(self: Rc<Self>, cx: SimCx) -> Task<Result<(), String>> {
        Box::pin(async move {
            let rows = self.rows;
            let own = self.own_rows / 4;
            let statements = [
                "DROP TABLE IF EXISTS t".to_owned(),
                "DROP TABLE IF EXISTS own".to_owned(),
                "CREATE TABLE t (id bigint PRIMARY KEY, v bigint NOT NULL)".to_owned(),
                "CREATE TABLE own (id bigint PRIMARY KEY, v bigint NOT NULL)".to_owned(),
                format!("INSERT INTO t SELECT g, 0 FROM generate_series(1, {rows}) g"),
                format!(
                    "INSERT INTO own SELECT g + h * 100, 0 FROM generate_series(1, {own}) g, \
                     generate_series(0, 3) h"
                ),
            ];
            say_patiently(&cx, &statements).await
        })
    }

    fn client(self: Rc<Self>, cx: SimCx, client: u32) -> Task {
        Box::pin(async move {
            let node = client as u16 % cx.nodes() + 1;
            self.work(&cx, node).await;
        })
    }

    fn finish(self: Rc<Self>, cx: SimCx) -> Task<Verdict> {
        Box::pin(async move {
            if let Some(text) = self.blame.take() {
                return Verdict::Fail(text);
            }
            for node in 1..=cx.nodes() {
                match self.count_own(&cx, node).await {
                    Ok(Some(count)) if count == self.own_rows => {}
                    other => return Verdict::Fail(format!("node {node} has {other:?} rows")),
                }
            }
            match self.done.get() {
                DONE_MIN.. => Verdict::Pass,
                done => Verdict::Inconclusive(format!("{done} statements")),
            }
        })
    }
}

//! Schema changes while others read and write.
//!
//! * The clients of the register workload go on as always; their history is judged as always.
//! * One client makes and drops indexes on their tables, one of them on an expression and one of
//!   some rows, and reads rows by the index that it has just made and by a scan, in one
//!   transaction: both must give the same.
//! * Now and then it does so in a block that has written to the table before, and writes to it
//!   behind the change.
//! * The same client drops and makes a table that another client writes to and reads. What was
//!   acknowledged before the table was dropped must be gone; what was acknowledged afterwards must
//!   be there.
//! * That table sometimes gets its primary key only while it is written to, which closes it.
//! * Both do the same with constraints: [`super::constraints`].

use super::blame::say_patiently;
use super::constraints::Constraints;
use super::histories::Histories;
use super::{Entry, Scale, Verdict, Workload};
use crate::client::{Answer, SimConn, SimError};
use crate::executor::{SimCx, Task};
use base::Prng;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use workload::history::Kind;

pub(super) const ENTRY: Entry = Entry {
    name: "ddl",
    about: "indexes, constraints and tables come and go while rows are written and read",
    make: |prng, scale| Rc::new(Ddl::draw(prng, scale)),
};

/// A run with fewer acknowledged schema changes, or fewer comparisons of an index with a scan, or
/// fewer reads of the table that comes and goes, proves nothing.
const CHANGES_MIN: u64 = 4;
const COMPARED_MIN: u64 = 1;
const LOOKS_MIN: u64 = 1;
/// Rounds of a client with the healed cluster, where faults let too little happen.
const MORE_MAX: u32 = 200;
/// With fewer clients than this, those that change and look also do what others do.
const CLIENTS_FEW: u32 = 4;

/// What an index is on.
#[derive(Clone, Copy)]
enum Form {
    /// The values.
    Column,
    /// What an expression makes of them.
    Expression,
    /// The values of some rows.
    Part,
}

struct Ddl {
    rows: Rc<Histories>,
    constraints: Constraints,
    clients: u32,
    pause_us: u64,
    /// Keys that were inserted into the table that comes and goes: when that was begun, and when it
    /// was acknowledged.
    inserted: RefCell<BTreeMap<i64, (u64, u64)>>,
    /// When the last DROP TABLE was sent whose success was acknowledged, and when that was.
    dropped: Cell<Option<(u64, u64)>>,
    /// When the table was acknowledged to be there; `None` while a change of it is under way.
    stable_since: Cell<Option<u64>>,
    /// Nobody knows what became of a change of the table. It may take effect at any time.
    is_uncertain: Cell<bool>,
    next_key: Cell<i64>,
    changes: Cell<u64>,
    compared: Cell<u64>,
    looks: Cell<u64>,
}

impl Ddl {
    fn draw(prng: &mut Prng, scale: Scale) -> Ddl {
        let rows = Rc::new(Histories::draw(Kind::Register, prng, scale));
        Ddl {
            constraints: Constraints::new(rows.clone()),
            rows,
            clients: scale.clients,
            pause_us: 1 << prng.between(12, 16),
            inserted: RefCell::default(),
            dropped: Cell::default(),
            stable_since: Cell::default(),
            is_uncertain: Cell::new(false),
            next_key: Cell::new(1),
            changes: Cell::new(0),
            compared: Cell::new(0),
            looks: Cell::new(0),
        }
    }

    /// Changes the schema until the end, or writes to the table that comes and goes and reads it.
    async fn work(&self, cx: &SimCx, changes: bool) {
        let mut more = 0;
        let is_little = || match changes {
            true => self.changes.get() < CHANGES_MIN || self.compared.get() < COMPARED_MIN,
            false => self.looks.get() < LOOKS_MIN,
        };
        while goes_on(cx, is_little(), &mut more) {
            let Some(mut conn) = cx.connect_any().await else {
                continue;
            };
            while goes_on(cx, is_little(), &mut more) && conn.is_open() {
                let drawn = cx.rng().below(if changes { 8 } else { 6 });
                let may_go_on = match (changes, drawn) {
                    (true, 0) => self.remake_table(cx, &mut conn).await,
                    (true, 1..=3) => self.constraints.change(cx, &mut conn).await,
                    (true, _) => self.remake_index(cx, &mut conn).await,
                    (false, 0) => self.look(cx, &mut conn).await,
                    (false, 1 | 2) => self.insert(cx, &mut conn).await,
                    (false, _) => self.constraints.visit(cx, &mut conn).await,
                };
                if !may_go_on {
                    break;
                }
                cx.pause(self.pause_us).await;
            }
        }
    }

    /// One schema change. Tells whether it was acknowledged, and whether the connection goes on.
    async fn say(&self, conn: &mut SimConn, sql: &str) -> (bool, bool) {
        let result = conn.query(sql).await;
        let is_done = result.is_ok();
        if is_done {
            self.changes.set(self.changes.get() + 1);
        }
        // An index may be there already, or be gone, after a change with an unknown outcome.
        // Schema changes need every node. A table may be there without its key, or with it.
        let expected = ["42P07", "42704", "55000", "42P16", "42P01"];
        (is_done, self.rows.blame.excuse(sql, result, &expected))
    }

    /// As [`Ddl::say`], in a block that writes to the table before the change and behind it. No
    /// value changes.
    async fn say_in_block(&self, conn: &mut SimConn, table: &str, change: &str) -> (bool, bool) {
        let write = format!("UPDATE {table} SET v = v WHERE k % 3 = 0");
        for sql in ["BEGIN", &write, change, &write, "COMMIT"] {
            let result = conn.query(sql).await;
            let is_done = result.is_ok();
            let expected = ["42P07", "42704", "55000", "42P01", "55P03", "40P01"];
            if !self.rows.blame.excuse(sql, result, &expected) {
                return (false, false);
            }
            if !is_done {
                let result = conn.query("ROLLBACK").await;
                return (false, self.rows.blame.excuse("ROLLBACK", result, &[]));
            }
        }
        self.changes.set(self.changes.get() + 1);
        (true, true)
    }

    async fn remake_index(&self, cx: &SimCx, conn: &mut SimConn) -> bool {
        let (number, unique) = {
            let mut rng = cx.rng();
            (rng.below(3), if rng.below(2) == 0 { "UNIQUE " } else { "" })
        };
        let form = [Form::Column, Form::Expression, Form::Part][number as usize];
        let table = format!("bench_register_{number}");
        let on = match form {
            Form::Column => "(v)",
            Form::Expression => "((v * 2))",
            Form::Part => "(v) WHERE v % 2 = 0",
        };
        let create = format!("CREATE {unique}INDEX {table}_v ON {table} {on}");
        let in_block = cx.rng().below(3) == 0;
        let (is_made, goes_on) = match in_block {
            true => self.say_in_block(conn, &table, &create).await,
            false => self.say(conn, &create).await,
        };
        if !goes_on {
            return false;
        }
        if is_made && !self.compare(conn, &table, form).await {
            return false;
        }
        let (_, goes_on) = self.say(conn, &format!("DROP INDEX {table}_v")).await;
        goes_on
    }

    /// Reads rows by the index and by a scan, in one transaction.
    async fn compare(&self, conn: &mut SimConn, table: &str, form: Form) -> bool {
        match self.try_compare(conn, table, form).await {
            Ok(()) => true,
            // What it has seen may have changed under it: it could not commit.
            Err(error) => {
                self.rows.blame.excuse("comparing", Err(error), &[])
                    && self
                        .rows
                        .blame
                        .excuse("comparing", conn.query("ROLLBACK").await, &[])
            }
        }
    }

    async fn try_compare(
        &self,
        conn: &mut SimConn,
        table: &str,
        form: Form,
    ) -> Result<(), SimError> {
        let mut wrong = Vec::new();
        conn.query("BEGIN ISOLATION LEVEL SERIALIZABLE").await?;
        let all = conn
            .query(&format!("SELECT k, v FROM {table} ORDER BY k"))
            .await?;
        // Not all: a transaction that locks every row lets nobody else work.
        for row in all.rows.iter().rev().take(10) {
            let (Some(key), Some(value)) = (&row[0], &row[1]) else {
                wrong.push(format!("{table} has NULL in {row:?}"));
                break;
            };
            let (condition, is_there) = match form {
                Form::Column => (format!("v = {value}"), true),
                Form::Expression => (format!("v * 2 = 2 * {value}"), true),
                Form::Part => {
                    let is_even = value.parse::<i64>().is_ok_and(|value| value % 2 == 0);
                    (format!("v = {value} AND v % 2 = 0"), is_even)
                }
            };
            let sql = format!("SELECT k FROM {table} WHERE {condition}");
            let found = conn.query(&sql).await?;
            let keys: Vec<_> = found.rows.iter().map(|row| row[0].as_ref()).collect();
            let expected = match is_there {
                true => vec![Some(key)],
                false => Vec::new(),
            };
            if keys != expected {
                let found = found.rows;
                wrong.push(format!("{sql} gives {found:?}, a scan gives {key}"));
            }
            self.compared.set(self.compared.get() + 1);
        }
        conn.query("COMMIT").await?;
        wrong
            .into_iter()
            .for_each(|text| self.rows.blame.accuse(text));
        Ok(())
    }

    async fn remake_table(&self, cx: &SimCx, conn: &mut SimConn) -> bool {
        self.stable_since.set(None);
        let sent_ns = cx.now_ns();
        let (is_done, goes_on) = self.say(conn, "DROP TABLE IF EXISTS other").await;
        if is_done {
            self.dropped.set(Some((sent_ns, cx.now_ns())));
        }
        self.is_uncertain.set(self.is_uncertain.get() || !is_done);
        if !goes_on {
            return false;
        }
        // Its key comes with it, or while others write.
        let with_key = cx.rng().below(2) == 0;
        let create = [CREATE_OTHER_BARE, CREATE_OTHER][usize::from(with_key)];
        let (is_done, goes_on) = self.say(conn, create).await;
        self.is_uncertain.set(self.is_uncertain.get() || !is_done);
        if !self.is_uncertain.get() {
            self.stable_since.set(Some(cx.now_ns()));
        }
        if !goes_on || with_key {
            return goes_on;
        }
        cx.pause(self.pause_us).await;
        // Whatever comes of it, the rows stay.
        let (_, goes_on) = self
            .say(conn, "ALTER TABLE other ADD PRIMARY KEY (k)")
            .await;
        goes_on
    }

    async fn insert(&self, cx: &SimCx, conn: &mut SimConn) -> bool {
        let key = self.next_key.replace(self.next_key.get() + 1);
        let sql = "INSERT INTO other (k, v) VALUES ($1, $2)";
        let begun_ns = cx.now_ns();
        let result = conn.execute(sql, &[key.into(), key.into()]).await;
        if result.is_ok() {
            let times = (begun_ns, cx.now_ns());
            self.inserted.borrow_mut().insert(key, times);
        }
        self.rows.blame.excuse(sql, result, &["42P01"])
    }

    async fn look(&self, cx: &SimCx, conn: &mut SimConn) -> bool {
        let begun_ns = cx.now_ns();
        let stable_since = self.stable_since.get();
        let sql = "SELECT k, v FROM other ORDER BY k";
        let result = conn.query(sql).await;
        if let Ok(answer) = &result {
            self.compare_with_inserted(answer, begun_ns, stable_since);
        }
        self.rows.blame.excuse(sql, result, &["42P01"])
    }

    fn compare_with_inserted(&self, answer: &Answer, begun_ns: u64, stable_since: Option<u64>) {
        self.looks.set(self.looks.get() + 1);
        let keys: Vec<i64> = (0..answer.rows.len())
            .filter_map(|row| answer.int(row, 0))
            .collect();
        let inserted = self.inserted.borrow();
        if let Some((sent_ns, done_ns)) = self.dropped.get()
            && done_ns < begun_ns
        {
            let is_old = |key: &&i64| inserted.get(key).is_some_and(|times| times.1 < sent_ns);
            if let Some(key) = keys.iter().find(is_old) {
                let text = format!("row {key} is there although its table has been dropped");
                self.rows.blame.accuse(text);
            }
        }
        // Only if nothing was changed before, while and after we looked.
        let Some(since_ns) = stable_since.filter(|&ns| self.stable_since.get() == Some(ns)) else {
            return;
        };
        let mut expected = inserted
            .iter()
            .filter(|(_, times)| times.0 > since_ns && times.1 < begun_ns);
        if let Some((key, _)) = expected.find(|(key, _)| keys.binary_search(key).is_err()) {
            let text = format!("row {key} is not there although it was acknowledged");
            self.rows.blame.accuse(text);
        }
    }
}

/// Whether a client has more to do: until it is told to stop, and a while longer if too little has
/// happened. `more` counts its rounds then.
fn goes_on(cx: &SimCx, is_little: bool, more: &mut u32) -> bool {
    if !cx.stopping() {
        return true;
    }
    *more += 1;
    is_little && *more <= MORE_MAX
}

const CREATE_OTHER_BARE: &str = "CREATE TABLE other (k bigint NOT NULL, v bigint NOT NULL)";
const CREATE_OTHER: &str = "CREATE TABLE other (k bigint PRIMARY KEY, v bigint NOT NULL)";

impl Workload for Ddl {
    fn setup(self: Rc<Self>, cx: SimCx) -> Task<Result<(), String>> {
        Box::pin(async move {
            self.rows.make_tables(&cx).await?;
            say_patiently(&cx, &["DROP TABLE IF EXISTS other", CREATE_OTHER]).await?;
            self.stable_since.set(Some(cx.now_ns()));
            self.constraints.make_tables(&cx).await
        })
    }

    fn client(self: Rc<Self>, cx: SimCx, client: u32) -> Task {
        Box::pin(async move {
            let also = (client < 2 && self.clients < CLIENTS_FEW).then(|| {
                let (rows, own) = (self.rows.clone(), cx.fork());
                cx.spawn(async move { rows.work(&own).await })
            });
            match client {
                0 | 1 => self.work(&cx, client == 0).await,
                _ => self.rows.work(&cx).await,
            }
            if let Some(also) = also {
                also.join().await;
            }
        })
    }

    fn finish(self: Rc<Self>, cx: SimCx) -> Task<Verdict> {
        Box::pin(async move {
            let mut read = self.rows.read_all(&cx).await;
            if read.is_ok() {
                read = self.constraints.look_at_all(&cx).await;
            }
            let (changes, compared) = (self.changes.get(), self.compared.get());
            let looks = self.looks.get();
            match self.rows.judge_after(read) {
                Verdict::Pass
                    if changes < CHANGES_MIN || compared < COMPARED_MIN || looks < LOOKS_MIN =>
                {
                    Verdict::Inconclusive(format!(
                        "{changes} schema changes, {compared} comparisons, {looks} looks"
                    ))
                }
                verdict => verdict,
            }
        })
    }
}

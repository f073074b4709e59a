//! Rows that are written once, several of them in a transaction, by one statement or by one for
//! each row: each group is there as a whole or not at all, and stays.
//!
//! No later write covers a row that recovery has lost, so the loss is seen at the end however long
//! ago it was. The plan makes most groups cross shards of one node ([`crate::Plan`]).

use super::blame::{Blame, ask_patiently, is_excusable, say_patiently};
use super::{Entry, Scale, Verdict, Workload};
use crate::client::{Answer, SimError};
use crate::executor::{SimCx, Task};
use base::Prng;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

pub(super) const ENTRY: Entry = Entry {
    name: "groups",
    about: "inserts groups of rows: a group is there as a whole, or not at all",
    make: |prng, _scale: Scale| Rc::new(Groups::draw(prng)),
};

/// A run with fewer acknowledged groups proves nothing.
const GROUPS_MIN: usize = 30;
/// One group in so many has a key that is there already: none of its rows must be there afterwards.
const COLLIDES_ONE_IN: u64 = 6;
/// Rounds of a client with the healed cluster, where faults let too little happen.
const MORE_MAX: u32 = 60;

/// What a client knows of a group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fate {
    Committed,
    Aborted,
    Unknown,
}

struct Groups {
    /// Rows of a group.
    rows: i64,
    pause_us: u64,
    next: Cell<i64>,
    last_committed: Cell<Option<i64>>,
    fates: RefCell<BTreeMap<i64, Fate>>,
    blame: Blame,
}

impl Groups {
    fn draw(prng: &mut Prng) -> Groups {
        Groups {
            rows: 2 + prng.below(4) as i64,
            pause_us: 1 << prng.between(10, 13),
            next: Cell::new(1),
            last_committed: Cell::new(None),
            fates: RefCell::default(),
            blame: Blame::default(),
        }
    }

    fn committed(&self) -> usize {
        let fates = self.fates.borrow();
        let committed = fates.values().filter(|fate| **fate == Fate::Committed);
        committed.count()
    }

    /// What has become of a group; accuses of answers that no fault explains. A group that
    /// `collides` has a row with a key that is there.
    fn fate(&self, result: Result<Answer, SimError>, collides: bool) -> Fate {
        let (fate, wrong) = match result {
            Ok(_) if collides => (Fate::Committed, Some("a key is there twice".to_owned())),
            Ok(_) => (Fate::Committed, None),
            Err(SimError::Lost) => (Fate::Unknown, None),
            Err(SimError::Sql(error)) => {
                let state = error.state();
                let exists = state.as_str() == "23505";
                let explained = if exists {
                    collides
                } else {
                    is_excusable(state.as_str())
                };
                let fate = match exists || state.as_str().starts_with("40") {
                    true => Fate::Aborted,
                    false => Fate::Unknown,
                };
                (fate, (!explained).then(|| error.to_string()))
            }
        };
        if let Some(text) = wrong {
            self.blame.accuse(text);
        }
        fate
    }

    /// The next group, the query that inserts it, and whether that must fail.
    fn draw_group(&self, rng: &mut Prng) -> (i64, String, bool) {
        let group = self.next.replace(self.next.get() + 1);
        let from = group * self.rows;
        let mut ids: Vec<i64> = (from..from + self.rows).collect();
        let there = rng.below(COLLIDES_ONE_IN) == 0;
        let there = self.last_committed.get().filter(|_| there);
        if let Some(other) = there {
            ids[self.rows as usize - 1] = other * self.rows;
        }
        let rows: Vec<String> = ids.iter().map(|id| format!("{id}, {group}")).collect();
        // All statements of one query are one transaction, and prepare rides on the last of them.
        let between = ["), (", "); INSERT INTO t VALUES ("][rng.below(2) as usize];
        let insert = format!("INSERT INTO t VALUES ({})", rows.join(between));
        (group, insert, there.is_some())
    }

    async fn work(&self, cx: &SimCx) {
        let mut more = 0;
        while !cx.stopping() || (self.committed() < GROUPS_MIN && more < MORE_MAX) {
            let Some(mut conn) = cx.connect_any().await else {
                continue;
            };
            while conn.is_open() {
                more += u32::from(cx.stopping());
                let (group, insert, collides) = self.draw_group(&mut cx.rng());
                let fate = self.fate(conn.query(&insert).await, collides);
                self.fates.borrow_mut().insert(group, fate);
                if fate == Fate::Committed {
                    self.last_committed.set(Some(group));
                }
                if cx.stopping() {
                    break;
                }
                cx.pause(self.pause_us).await;
            }
        }
    }

    /// Number of rows by group.
    async fn read_all(&self, cx: &SimCx) -> Result<BTreeMap<i64, i64>, SimError> {
        let answer = ask_patiently(cx, 1, "SELECT g, count(*) FROM t GROUP BY g").await?;
        let row = |at| Some((answer.int(at, 0)?, answer.int(at, 1)?));
        Ok((0..answer.rows.len()).filter_map(row).collect())
    }

    fn judge(&self, found: &BTreeMap<i64, i64>) -> Result<(), String> {
        for (group, fate) in &*self.fates.borrow() {
            let count = found.get(group).copied().unwrap_or(0);
            let may_be = match fate {
                Fate::Committed => count == self.rows,
                Fate::Aborted => count == 0,
                Fate::Unknown => count == 0 || count == self.rows,
            };
            if !may_be {
                let rows = self.rows;
                return Err(format!(
                    "group {group} ({fate:?}) has {count} of {rows} rows"
                ));
            }
        }
        Ok(())
    }
}

impl Workload for Groups {
    fn setup(self: Rc<Self>, cx: SimCx) -> Task<Result<(), String>> {
        Box::pin(async move {
            let create = "CREATE TABLE t (id bigint PRIMARY KEY, g bigint NOT NULL)";
            say_patiently(&cx, &["DROP TABLE IF EXISTS t", create]).await
        })
    }

    fn client(self: Rc<Self>, cx: SimCx, _client: u32) -> Task {
        Box::pin(async move { self.work(&cx).await })
    }

    fn finish(self: Rc<Self>, cx: SimCx) -> Task<Verdict> {
        Box::pin(async move {
            if let Some(text) = self.blame.take() {
                return Verdict::Fail(text);
            }
            let found = match self.read_all(&cx).await {
                Ok(found) => found,
                Err(error) => return Verdict::Fail(format!("the last look: {error:?}")),
            };
            match (self.judge(&found), self.committed()) {
                (Err(text), _) => Verdict::Fail(text),
                (Ok(()), GROUPS_MIN..) => Verdict::Pass,
                (Ok(()), few) => Verdict::Inconclusive(format!("{few} groups")),
            }
        })
    }
}

//! Money between accounts, with savepoints: each transaction takes from one account, goes astray,
//! goes back to a savepoint, and gives to another account. The total is constant, and what was done
//! between savepoint and ROLLBACK TO is never seen: it would be larger than all the money.

use super::blame::{Blame, ask_patiently, is_excusable, say_patiently};
use super::{Entry, Scale, Verdict, Workload};
use crate::client::{Answer, SimConn, SimError};
use crate::executor::{SimCx, Task};
use base::Prng;
use std::cell::Cell;
use std::rc::Rc;

pub(super) const ENTRY: Entry = Entry {
    name: "savepoints",
    about: "moves money and goes back to savepoints: what was undone is never seen",
    make: |prng, _scale: Scale| Rc::new(Savepoints::draw(prng)),
};

/// A run with fewer transactions that went back and committed proves nothing.
const COMMITTED_MIN: u32 = 20;
/// Rounds of a client with the healed cluster, where faults let too little happen.
const MORE_MAX: u32 = 60;
/// What statements that are undone add to an account. All that others add is far less.
const ASTRAY: i64 = 1_000_000_000;

struct Savepoints {
    accounts: u64,
    pause_us: u64,
    committed: Cell<u32>,
    blame: Blame,
}

impl Savepoints {
    fn draw(prng: &mut Prng) -> Savepoints {
        Savepoints {
            accounts: 4 + prng.below(12),
            pause_us: 1 << prng.between(10, 13),
            committed: Cell::new(0),
            blame: Blame::default(),
        }
    }

    /// A statement that ROLLBACK TO is to undo.
    fn stray(&self, rng: &mut Prng) -> String {
        let id = rng.below(self.accounts);
        match rng.below(6) {
            0 | 1 => format!("UPDATE a SET v = v + {ASTRAY} WHERE id = {id}"),
            2 => format!("UPDATE a SET v = {ASTRAY} WHERE id = {id}"),
            3 => format!("DELETE FROM a WHERE id >= {id}"),
            4 => format!("INSERT INTO a VALUES ({}, {ASTRAY})", id + 1_000),
            _ => "SELECT 1 / 0".to_owned(),
        }
    }

    /// The statements of a transaction. Those that may fail with 22012 or 23505 come before a
    /// ROLLBACK TO.
    fn statements(&self, rng: &mut Prng) -> Vec<String> {
        let (from, to) = (rng.below(self.accounts), rng.below(self.accounts));
        let amount = 1 + rng.below(9);
        let mut all = vec!["BEGIN".to_owned()];
        let early = rng.below(3) == 0;
        let take = format!("UPDATE a SET v = v - {amount} WHERE id = {from}");
        if !early {
            all.push(take.clone());
        }
        all.push("SAVEPOINT s".to_owned());
        for round in 0..1 + rng.below(2) {
            for _ in 0..1 + rng.below(3) {
                all.push(self.stray(rng));
            }
            if round == 1 {
                all.push("ROLLBACK TO s".to_owned());
                all.push("SAVEPOINT t".to_owned());
                all.push(self.stray(rng));
                all.push("ROLLBACK TO t".to_owned());
            } else {
                all.push("ROLLBACK TO s".to_owned());
            }
        }
        if early {
            all.push(take);
        }
        if rng.below(2) == 0 {
            all.push("SELECT sum(v), count(*) FROM a".to_owned());
            all.push(format!("{amount}"));
        }
        all.push(format!("UPDATE a SET v = v + {amount} WHERE id = {to}"));
        all.push("COMMIT".to_owned());
        all
    }

    /// Runs a transaction. Returns whether it has committed.
    async fn transact(&self, conn: &mut SimConn, all: &[String]) -> Result<bool, SimError> {
        let mut failed = false;
        let (mut last, mut looks) = (None, Vec::new());
        for statement in all {
            if let Ok(amount) = statement.parse::<i64>() {
                looks.push((last.take(), -amount));
                continue;
            }
            // In a failed block only ROLLBACK TO goes on.
            if failed && !statement.starts_with("ROLLBACK") {
                continue;
            }
            match conn.query(statement).await {
                Ok(answer) => {
                    failed = false;
                    last = Some(answer);
                }
                Err(SimError::Sql(error))
                    if !failed && matches!(error.state().as_str(), "22012" | "23505") =>
                {
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
        // What a transaction has read counts if it commits.
        for (answer, total) in looks {
            self.check(answer, total);
        }
        Ok(true)
    }

    /// What a reader sees: the total, and all accounts.
    fn check(&self, answer: Option<Answer>, total: i64) {
        let Some(answer) = answer else {
            return;
        };
        let found = (answer.int(0, 0), answer.int(0, 1));
        let expected = (Some(total), Some(self.accounts as i64));
        if found != expected {
            self.blame.accuse(format!(
                "total and accounts are {found:?}, not {expected:?}"
            ));
        }
    }

    async fn work(&self, cx: &SimCx) {
        let mut more = 0;
        while !cx.stopping() || (self.committed.get() < COMMITTED_MIN && more < MORE_MAX) {
            let Some(mut conn) = cx.connect_any().await else {
                continue;
            };
            while conn.is_open() {
                more += u32::from(cx.stopping());
                let statements = self.statements(&mut cx.rng());
                match self.transact(&mut conn, &statements).await {
                    Ok(true) => self.committed.set(self.committed.get() + 1),
                    Ok(false) => {}
                    Err(_) => break,
                }
                if cx.stopping() {
                    break;
                }
                cx.pause(self.pause_us).await;
            }
        }
    }
}

impl Workload for Savepoints {
    fn setup(self: Rc<Self>, cx: SimCx) -> Task<Result<(), String>> {
        Box::pin(async move {
            let create = "CREATE TABLE a (id bigint PRIMARY KEY, v bigint NOT NULL)";
            let last = self.accounts - 1;
            let fill = format!("INSERT INTO a SELECT id, 0 FROM generate_series(0, {last}) id");
            say_patiently(&cx, &["DROP TABLE IF EXISTS a", create, &fill]).await
        })
    }

    fn client(self: Rc<Self>, cx: SimCx, _client: u32) -> Task {
        Box::pin(async move { self.work(&cx).await })
    }

    fn finish(self: Rc<Self>, cx: SimCx) -> Task<Verdict> {
        Box::pin(async move {
            match ask_patiently(&cx, 1, "SELECT sum(v), count(*) FROM a").await {
                Ok(answer) => self.check(Some(answer), 0),
                Err(error) => return Verdict::Fail(format!("the last look: {error:?}")),
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

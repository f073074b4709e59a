//! Accounts between which money moves: the sum of all balances is constant at every moment.

use super::{Entry, Scale, Verdict, Workload};
use crate::client::{SimConn, SimError};
use crate::executor::{SimCx, Task};
use base::Prng;
use std::cell::Cell;
use std::cell::RefCell;
use std::rc::Rc;

pub(super) const ENTRY: Entry = Entry {
    name: "bank",
    about: "money moves between accounts; every reader sees the same total",
    make: |prng, scale| Rc::new(Bank::new(prng, scale)),
};

/// Balance of each account at the beginning.
const INITIAL: i64 = 100;
/// A run that moved money less often or read the total less often proves nothing.
const MOVES_MIN: u64 = 5;
const TOTALS_MIN: u64 = 2;

struct Bank {
    accounts: i64,
    pause_us: u64,
    wrong: RefCell<Option<String>>,
    moves: Cell<u64>,
    totals: Cell<u64>,
}

impl Bank {
    fn new(prng: &mut Prng, _scale: Scale) -> Bank {
        Bank {
            accounts: prng.between(4, 40),
            pause_us: 1 << prng.between(10, 16),
            wrong: RefCell::default(),
            moves: Cell::new(0),
            totals: Cell::new(0),
        }
    }

    fn total(&self) -> i64 {
        self.accounts * INITIAL
    }

    async fn transfer(&self, cx: &SimCx, conn: &mut SimConn) -> Result<(), SimError> {
        let (from, to, amount, blind) = {
            let mut rng = cx.rng();
            let from = rng.between(1, self.accounts);
            let to = (from + rng.between(1, self.accounts - 1) - 1) % self.accounts + 1;
            (from, to, rng.between(1, 20), rng.below(3) == 0)
        };
        conn.query("BEGIN").await?;
        if !blind {
            let sql = "SELECT balance FROM accounts WHERE id = $1";
            let answer = conn.execute(sql, &[from.into()]).await?;
            if answer.int(0, 0).unwrap_or(0) < amount {
                conn.query("ROLLBACK").await?;
                return Ok(());
            }
        }
        let sql = "UPDATE accounts SET balance = balance - $1 WHERE id = $2";
        conn.execute(sql, &[amount.into(), from.into()]).await?;
        let sql = "UPDATE accounts SET balance = balance + $1 WHERE id = $2";
        conn.execute(sql, &[amount.into(), to.into()]).await?;
        conn.query("COMMIT").await?;
        self.moves.set(self.moves.get() + 1);
        Ok(())
    }

    async fn look(&self, conn: &mut SimConn) -> Result<(), SimError> {
        let answer = conn
            .query("SELECT sum(balance), count(*) FROM accounts")
            .await?;
        let (sum, count) = (answer.int(0, 0), answer.int(0, 1));
        if (sum, count) != (Some(self.total()), Some(self.accounts)) {
            let story = format!(
                "connection {} on node {} saw {sum:?} in {count:?} accounts, not {} in {}",
                conn.id(),
                conn.node(),
                self.total(),
                self.accounts
            );
            self.wrong.borrow_mut().get_or_insert(story);
        }
        self.totals.set(self.totals.get() + 1);
        Ok(())
    }

    async fn run(&self, cx: &SimCx, client: u32) {
        while !cx.stopping() {
            let node = cx.rng().below(u64::from(cx.nodes())) as u16 + 1;
            let Ok(mut conn) = cx.connect(node).await else {
                cx.sleep(50_000).await;
                continue;
            };
            while !cx.stopping() && conn.is_open() {
                let reads = client == 0 || cx.rng().below(8) == 0;
                let result = if reads {
                    self.look(&mut conn).await
                } else {
                    self.transfer(cx, &mut conn).await
                };
                if result.is_err() && conn.is_open() && conn.query("ROLLBACK").await.is_err() {
                    break;
                }
                let pause = cx.rng().below(self.pause_us);
                cx.sleep(pause).await;
            }
        }
    }
}

impl Workload for Bank {
    fn setup(self: Rc<Self>, cx: SimCx) -> Task<Result<(), String>> {
        Box::pin(async move {
            let fail = |error: SimError| error.to_string();
            let mut conn = cx.connect(1).await.map_err(fail)?;
            conn.query("CREATE TABLE accounts (id int PRIMARY KEY, balance bigint NOT NULL)")
                .await
                .map_err(fail)?;
            let sql = format!(
                "INSERT INTO accounts SELECT g, {INITIAL} FROM generate_series(1, {}) g",
                self.accounts
            );
            conn.query(&sql).await.map_err(fail)?;
            Ok(())
        })
    }

    fn client(self: Rc<Self>, cx: SimCx, client: u32) -> Task {
        Box::pin(async move { self.run(&cx, client).await })
    }

    fn finish(self: Rc<Self>, cx: SimCx) -> Task<Verdict> {
        Box::pin(async move {
            for node in 1..=cx.nodes() {
                let looked = match cx.connect(node).await {
                    Ok(mut conn) => self.look(&mut conn).await,
                    Err(error) => Err(error),
                };
                if let Err(error) = looked {
                    return Verdict::Fail(format!("node {node} does not answer: {error}"));
                }
            }
            if let Some(story) = self.wrong.take() {
                return Verdict::Fail(story);
            }
            if self.moves.get() < MOVES_MIN || self.totals.get() < TOTALS_MIN {
                let text = format!("{} moves, {} looks", self.moves.get(), self.totals.get());
                return Verdict::Inconclusive(text);
            }
            Verdict::Pass
        })
    }
}

//! The statements of the further transactions, and how they run.

use super::{Balance, Further, OneSnapshot, Prices, StockLevels, UpdateStock};
use crate::tpcc::sql::{FURTHER, Sql};
use crate::tpcc::transactions::{Outcome, Say};
use crate::wire::ParamType::{self, Int, Numeric};
use crate::wire::{Connection, Done, Failure, Session};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// The number of a statement, from [`FURTHER`] on.
#[derive(Clone, Copy)]
enum Stmt {
    LockStock,
    SetStock,
    SetPrice,
    AccountChange,
    BalanceChange,
    AccountRead,
    BalanceRead,
}

/// How many statements there are.
pub const STATEMENTS: usize = Stmt::BalanceRead as usize + 1;

/// What is prepared in the place of a statement on a table that was not loaded. No transaction
/// that needs it is drawn.
const NOTHING: &str = "SELECT 1";

/// Their statements, which follow those of TPC-C.
pub fn statements(has_accounts: bool) -> Vec<(String, Vec<ParamType>)> {
    let all: [(&str, &[ParamType], bool); STATEMENTS] = [
        (
            "SELECT s_quantity FROM stock WHERE s_w_id = $1 AND s_i_id = $2 FOR UPDATE",
            &[Int, Int],
            false,
        ),
        (
            "UPDATE stock SET s_quantity = $3 WHERE s_w_id = $1 AND s_i_id = $2",
            &[Int, Int, Int],
            false,
        ),
        (
            "UPDATE item SET i_price = $2 WHERE i_id = $1",
            &[Int, Numeric],
            false,
        ),
        (
            "UPDATE dike_account SET a_balance = a_balance + $2, a_transfers = a_transfers + $3 \
             WHERE a_w_id = $1",
            &[Int, Numeric, Int],
            true,
        ),
        (
            "UPDATE dike_balance SET b_balance = b_balance + $3 WHERE b_w_id = $1 AND b_other = $2",
            &[Int, Int, Numeric],
            true,
        ),
        (
            "SELECT a_balance FROM dike_account WHERE a_w_id = $1",
            &[Int],
            true,
        ),
        (
            "SELECT b_balance FROM dike_balance WHERE b_w_id = $1 AND b_other = $2",
            &[Int, Int],
            true,
        ),
    ];
    let prepared = |(sql, types, on_accounts): (&str, &[ParamType], bool)| match on_accounts
        && !has_accounts
    {
        true => (String::from(NOTHING), Vec::new()),
        false => (String::from(sql), types.to_vec()),
    };
    all.into_iter().map(prepared).collect()
}

fn bind<C: Connection>(session: &mut Session<C>, statement: Stmt) -> crate::wire::Bind<'_> {
    session.bind(FURTHER + statement as usize)
}

/// Runs one attempt. On return no transaction is open.
///
/// # Errors
/// [`Failure`]: what ended it, and whether the outcome is known.
pub async fn execute<C: Connection>(session: &mut Session<C>, input: &Further) -> Outcome<C> {
    match input {
        Further::StockLevel(levels) => stock_levels(session, levels).await,
        Further::UpdateStock(update) | Further::CoAccess(update) => {
            update_stock(session, update).await
        }
        Further::UpdateBalance(balance) => update_balance(session, balance).await,
        Further::SelectBalance(balance, snapshot) => {
            select_balance(session, balance, *snapshot).await
        }
        Further::Broadcast(prices) => set_prices(session, prices).await,
    }
}

/// As StockLevel, warehouse by warehouse in the same two rounds.
async fn stock_levels<C: Connection>(session: &mut Session<C>, input: &StockLevels) -> Outcome<C> {
    session.say(Sql::BeginReadOnly);
    for (w, d) in &input.places {
        session.stmt(Sql::NextOrder).ints(&[*w, *d]).send();
    }
    session.round().await?;
    let mut nexts = Vec::with_capacity(input.places.len());
    for (at, (w, d)) in input.places.iter().enumerate() {
        match session.answers.int(1 + at, 0, 0) {
            Some(next) => nexts.push(next as u32),
            None => {
                let text = format!("stock level: no district {w}/{d}");
                return Err(session.wrong(text).await);
            }
        }
    }
    for ((w, d), next) in input.places.iter().zip(nexts) {
        let low_stock = session.stmt(Sql::LowStock);
        let from = next.saturating_sub(20);
        low_stock
            .ints(&[*w, *d, from, next, input.threshold])
            .send();
    }
    session.say(Sql::Commit);
    session.round().await?;
    let counts = 0..input.places.len();
    match counts.map(|at| session.answers.int(at, 0, 0)).sum() {
        Some::<i64>(_) => Ok(Done::committed(1)),
        None => Err(Failure::Wrong("stock level: no count".into())),
    }
}

/// What a statement of an update must do to one row.
#[derive(Clone, Copy, PartialEq)]
enum Must {
    Read,
    Change,
}

/// Sends the statements of an update, either all in one round with BEGIN and COMMIT, or each in a
/// round of its own, of which the first has BEGIN and the last COMMIT.
struct Update<'s, C: Connection> {
    session: &'s mut Session<C>,
    batch: bool,
    sent: Vec<Must>,
    is_first: bool,
}

impl<'s, C: Connection> Update<'s, C> {
    fn begin(session: &'s mut Session<C>, batch: bool) -> Self {
        session.say(Sql::Begin);
        Update {
            session,
            batch,
            sent: Vec::new(),
            is_first: true,
        }
    }

    /// To be called before each statement is bound.
    async fn next(&mut self, must: Must) -> Result<(), Failure<C::Error>> {
        if !self.batch && !self.sent.is_empty() {
            self.session.round().await?;
            if let Some(at) = self.unmet() {
                return Err(self.session.wrong(missing(at)).await);
            }
            self.sent.clear();
            self.is_first = false;
        }
        self.sent.push(must);
        Ok(())
    }

    /// The first statement of the last round that did not do to one row what it must.
    fn unmet(&self) -> Option<usize> {
        let first = usize::from(self.is_first);
        let answers = &self.session.answers;
        let is_met = |(at, must): (usize, &Must)| match must {
            Must::Read => answers.rows(first + at) == 1,
            Must::Change => answers.affected(first + at) == 1,
        };
        let mut sent = self.sent.iter().enumerate();
        sent.position(|statement| !is_met(statement))
    }

    async fn commit(self) -> Outcome<C> {
        self.session.say(Sql::Commit);
        self.session.round().await?;
        match self.unmet() {
            None => Ok(Done::committed(1)),
            Some(at) => Err(Failure::Wrong(missing(at))),
        }
    }
}

fn missing(at: usize) -> String {
    format!("statement {at} of an update did not find its row")
}

async fn update_stock<C: Connection>(
    session: &mut Session<C>,
    UpdateStock { rows, batch, .. }: &UpdateStock,
) -> Outcome<C> {
    let mut update = Update::begin(session, *batch);
    for row in rows {
        let key = [row.warehouse, row.item];
        update.next(Must::Read).await?;
        bind(update.session, Stmt::LockStock).ints(&key).send();
        update.next(Must::Change).await?;
        let set = bind(update.session, Stmt::SetStock);
        set.ints(&key).int(row.quantity).send();
    }
    update.commit().await
}

async fn set_prices<C: Connection>(
    session: &mut Session<C>,
    Prices { items, batch, .. }: &Prices,
) -> Outcome<C> {
    let mut update = Update::begin(session, *batch);
    for (item, cents) in items {
        update.next(Must::Change).await?;
        let set = bind(update.session, Stmt::SetPrice);
        set.int(*item).cents(*cents).send();
    }
    update.commit().await
}

/// Accounts are reached in the order in which they were drawn, not in one order for all: two that
/// go round in opposite ways wait for each other, as in the paper.
async fn update_balance<C: Connection>(session: &mut Session<C>, input: &Balance) -> Outcome<C> {
    let (home, amount) = (input.warehouse, input.amount_cents);
    let mut update = Update::begin(session, input.batch);
    let given = amount * input.others.len() as i64;
    let mut accounts = Vec::from([(home, -given, 1)]);
    let mut balances = Vec::new();
    if input.others.is_empty() {
        balances.extend([(home, 0, -amount), (home, home, amount)]);
    }
    for &other in &input.others {
        accounts.push((other, amount, 0));
        balances.extend([(home, other, -amount), (other, home, amount)]);
    }
    for (warehouse, cents, transfers) in accounts {
        update.next(Must::Change).await?;
        let change = bind(update.session, Stmt::AccountChange);
        change.int(warehouse).cents(cents).int(transfers).send();
    }
    for (warehouse, other, cents) in balances {
        update.next(Must::Change).await?;
        let change = bind(update.session, Stmt::BalanceChange);
        change.ints(&[warehouse, other]).cents(cents).send();
    }
    update.commit().await
}

/// Reads the accounts of all its warehouses, and what each two have moved: in one snapshot the
/// balances of two warehouses for each other add up to 0.
async fn select_balance<C: Connection>(
    session: &mut Session<C>,
    input: &Balance,
    OneSnapshot(is_judged): OneSnapshot,
) -> Outcome<C> {
    let home = input.warehouse;
    let mut pairs: Vec<[(u32, u32); 2]> = Vec::new();
    if input.others.is_empty() {
        pairs.push([(home, 0), (home, home)]);
    }
    let others = input.others.iter();
    pairs.extend(others.map(|&other| [(home, other), (other, home)]));
    session.say(Sql::BeginReadOnly);
    let accounts = core::iter::once(&home).chain(&input.others);
    for warehouse in accounts {
        bind(session, Stmt::AccountRead).int(*warehouse).send();
    }
    // All first sides come before all second ones, so that a server without snapshots has time to
    // let a transfer come between.
    for side in [0, 1] {
        for pair in &pairs {
            let (warehouse, other) = pair[side];
            bind(session, Stmt::BalanceRead)
                .ints(&[warehouse, other])
                .send();
        }
    }
    session.say(Sql::Commit);
    session.round().await?;
    let first = 2 + input.others.len();
    let answers = &session.answers;
    for (at, pair) in pairs.iter().enumerate() {
        let sides =
            answers
                .cents(first + at, 0, 0)
                .zip(answers.cents(first + pairs.len() + at, 0, 0));
        let text = match sides {
            Some((one, other)) if one + other == 0 || !is_judged => continue,
            Some((one, other)) => format!(
                "select balance: {pair:?} hold {one} and {other} cents, which one snapshot never \
                 shows"
            ),
            None => format!("select balance: no balance {pair:?}"),
        };
        return Err(Failure::Wrong(text));
    }
    Ok(Done::committed(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_name_their_statements() {
        let all = statements(true);
        assert_eq!(all.len(), STATEMENTS);
        assert!(all[Stmt::SetPrice as usize].0.contains("i_price"));
        assert!(
            all[Stmt::BalanceRead as usize]
                .0
                .contains("SELECT b_balance")
        );
        for (sql, params) in &all {
            for number in 1..=params.len() {
                assert!(sql.contains(&format!("${number}")), "{sql} lacks ${number}");
            }
            assert!(!sql.contains(&format!("${}", params.len() + 1)), "{sql}");
        }
        let without = statements(false);
        let missing = without.iter().filter(|statement| statement.0 == NOTHING);
        assert_eq!(missing.count(), 4);
    }
}

//! The five transactions (clauses 2.4.2 to 2.8.2).
//!
//! Each is a few rounds; a round holds everything that does not need an answer of the same round,
//! and BEGIN and COMMIT travel with the first and the last. Rows are locked in the order warehouse,
//! district, customer, stock by warehouse and item, so that two transactions rarely wait for each
//! other in a circle.

use super::input::{Customer, Delivery, Input, Line, NewOrder, OrderStatus, Payment, StockLevel};
use super::sql::{HOT, Sql};
use crate::dike::contention::HotRow;
use crate::dike::further;
use crate::wire::{Bind, Connection, Done, Ending, Failure, Session};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::hint::black_box;

/// How one attempt ended.
pub(crate) type Outcome<C> = Result<Done, Failure<<C as Connection>::Error>>;

/// Runs one attempt on a session that has prepared [`super::sql::all`], and for Dike's transactions
/// and hot rows what follows it ([`further::statements`], then one for each hot row). On return no
/// transaction is open.
///
/// # Errors
/// [`Failure`]: what ended it, and whether the outcome is known.
pub async fn execute<C: Connection>(session: &mut Session<C>, input: &Input) -> Outcome<C> {
    match input {
        Input::NewOrder(order) => new_order(session, order).await,
        Input::Payment(payment) => pay(session, payment).await,
        Input::OrderStatus(status) => order_status(session, status).await,
        Input::Delivery(delivery) => deliver(session, *delivery).await,
        Input::StockLevel(level) => stock_level(session, *level).await,
        Input::Further(input) => further::execute(session, input).await,
    }
}

/// The statements by their names.
pub(crate) trait Say {
    /// Begins a statement of the round.
    fn stmt(&mut self, statement: Sql) -> Bind<'_>;

    /// Adds a statement without parameters.
    fn say(&mut self, statement: Sql);
}

impl<C: Connection> Say for Session<C> {
    fn stmt(&mut self, statement: Sql) -> Bind<'_> {
        self.bind(statement as usize)
    }

    fn say(&mut self, statement: Sql) {
        if statement == Sql::Commit {
            self.commits_block();
        }
        self.stmt(statement).send();
    }
}

/// A line that found its item and its stock.
struct Priced {
    number: u32,
    line: Line,
    amount_cents: i64,
    dist_info: String,
}

/// Clause 2.4.2.
async fn new_order<C: Connection>(session: &mut Session<C>, order: &NewOrder) -> Outcome<C> {
    let NewOrder {
        warehouse: w,
        district: d,
        customer: c,
        ..
    } = *order;
    // The order in which rows are locked; OL_NUMBER stays that of the input.
    let mut lines: Vec<(u32, Line)> = (1..).zip(order.lines.iter().copied()).collect();
    lines.sort_by_key(|(_, line)| (line.supply_warehouse, line.item));

    match &order.hot {
        None => session.say(Sql::Begin),
        Some(hot) => wait_for(session, hot.row()).await?,
    }
    // The first answer is that of BEGIN, unless that had a round of its own.
    let first = usize::from(order.hot.is_none());
    session.stmt(Sql::WarehouseTax).int(w).send();
    session.stmt(Sql::DistrictNextOrder).ints(&[w, d]).send();
    session.stmt(Sql::CustomerDiscount).ints(&[w, d, c]).send();
    for (_, line) in &lines {
        session.stmt(Sql::Item).int(line.item).send();
        let remote = u32::from(line.supply_warehouse != w);
        let stock = session.bind(Sql::stock_update(d));
        stock
            .ints(&[line.supply_warehouse, line.item, line.quantity, remote])
            .send();
    }
    session.round().await?;

    let answers = &session.answers;
    let head = (
        answers.fixed(first, 0, 0, 4),
        answers.int(first + 1, 0, 0),
        answers.fixed(first + 1, 0, 1, 4),
    );
    let (Some(w_tax), Some(next), Some(d_tax)) = head else {
        let text = format!("new order: no warehouse {w} or district {w}/{d}");
        return Err(session.wrong(text).await);
    };
    let Some(discount) = answers.fixed(first + 2, 0, 0, 4) else {
        let text = format!("new order: no customer {w}/{d}/{c}");
        return Err(session.wrong(text).await);
    };
    let order_id = (next - 1) as u32;
    let (mut priced, unused_item) = price(session, &lines, first + 3).await?;
    // The total amount that the terminal shows, in cents times 10^8.
    let amounts = priced.iter().map(|line| i128::from(line.amount_cents));
    black_box(
        amounts.sum::<i128>() * i128::from(10_000 - discount) * i128::from(10_000 + w_tax + d_tax),
    );

    priced.sort_by_key(|line| line.number);
    insert_order(session, order, order_id, &priced);
    // Clause 2.4.2.3: with an unused item everything else is done, then rolled back.
    let (end, ending) = match unused_item {
        true => (Sql::Rollback, Ending::RolledBack),
        false => (Sql::Commit, Ending::Committed),
    };
    session.say(end);
    session.round().await?;
    Ok(Done {
        ending,
        units: u64::from(!unused_item),
        skipped: 0,
    })
}

/// Begins a transaction, and waits until it has the row.
async fn wait_for<C: Connection>(
    session: &mut Session<C>,
    row: &HotRow,
) -> Result<(), Failure<C::Error>> {
    session.say(Sql::Begin);
    session.bind(HOT + row.number).send();
    session.round().await?;
    match session.answers.rows(1) {
        1 => Ok(()),
        _ => {
            let (supply, item) = (row.warehouse, row.item);
            Err(session
                .wrong(format!("new order: no stock of {item} in {supply}"))
                .await)
        }
    }
}

/// Reads items and stock from the answers from `first` on. Says beside it whether an item was not
/// found.
async fn price<C: Connection>(
    session: &mut Session<C>,
    lines: &[(u32, Line)],
    first: usize,
) -> Result<(Vec<Priced>, bool), Failure<C::Error>> {
    let mut priced = Vec::with_capacity(lines.len());
    let mut unused_item = false;
    let answers = &session.answers;
    for (at, (number, line)) in lines.iter().enumerate() {
        let item = first + 2 * at;
        let stock = item + 1;
        let Some(price) = answers.cents(item, 0, 0) else {
            unused_item = true;
            continue;
        };
        if answers.rows(stock) != 1 {
            let (supply, item) = (line.supply_warehouse, line.item);
            return Err(session
                .wrong(format!("new order: no stock of {item} in {supply}"))
                .await);
        }
        // Clause 2.4.2.2: brand is "B" when both texts hold ORIGINAL, else "G".
        let original = |statement, column| answers.text(statement, 0, column).contains("ORIGINAL");
        black_box(original(item, 2) && original(stock, 1));
        priced.push(Priced {
            number: *number,
            line: *line,
            amount_cents: price * i64::from(line.quantity),
            dist_info: answers.text(stock, 0, 2).to_string(),
        });
    }
    Ok((priced, unused_item))
}

fn insert_order<C: Connection>(
    session: &mut Session<C>,
    order: &NewOrder,
    id: u32,
    priced: &[Priced],
) {
    let NewOrder {
        warehouse: w,
        district: d,
        customer: c,
        ref lines,
        ..
    } = *order;
    let all_local = lines.iter().all(|line| line.supply_warehouse == w);
    let count = lines.len() as u32;
    let at = session.now_unix_us();
    let insert = session.stmt(Sql::OrderInsert);
    let insert = insert.ints(&[id, d, w, c]).time(at);
    insert.int(count).int(u32::from(all_local)).send();
    session.stmt(Sql::NewOrderInsert).ints(&[id, d, w]).send();
    if priced.is_empty() {
        return;
    }
    let mut insert = session.bind(Sql::LinesInsert as usize + priced.len() - 1);
    for line in priced {
        insert = insert.ints(&[id, d, w, line.number, line.line.item]);
        insert = insert.ints(&[line.line.supply_warehouse, line.line.quantity]);
        insert = insert.cents(line.amount_cents).text(&line.dist_info);
    }
    insert.send();
}

/// The row of the customer among the answers: by name the middle one, rounded up (clause 2.5.2.2).
fn chosen_row(rows: usize) -> usize {
    rows.saturating_sub(1) / 2
}

/// Clause 2.5.2.
async fn pay<C: Connection>(session: &mut Session<C>, payment: &Payment) -> Outcome<C> {
    let Payment {
        warehouse: w,
        district: d,
        customer_warehouse: cw,
        customer_district: cd,
        ..
    } = *payment;
    let amount = payment.amount_cents;
    session.say(Sql::Begin);
    session.stmt(Sql::WarehousePaid).int(w).cents(amount).send();
    session.stmt(Sql::WarehouseAddress).int(w).send();
    session
        .stmt(Sql::DistrictPaid)
        .ints(&[w, d])
        .cents(amount)
        .send();
    session.stmt(Sql::DistrictAddress).ints(&[w, d]).send();
    match &payment.customer {
        Customer::Id(c) => session.stmt(Sql::CustomerById).ints(&[cw, cd, *c]).send(),
        Customer::LastName(n) => session
            .stmt(Sql::CustomersByName)
            .ints(&[cw, cd])
            .text(n)
            .send(),
    }
    session.round().await?;

    let answers = &session.answers;
    if answers.rows(2) != 1 || answers.rows(4) != 1 {
        let text = format!("payment: no warehouse {w} or district {w}/{d}");
        return Err(session.wrong(text).await);
    }
    let row = chosen_row(answers.rows(5));
    let Some(c) = answers.int(5, row, 0).map(|id| id as u32) else {
        let who = &payment.customer;
        let text = format!("payment: no customer {who:?} in {cw}/{cd}");
        return Err(session.wrong(text).await);
    };
    let bad_credit = answers.text(5, row, 11) == "BC";
    // Clause 2.5.2.2: both names, four spaces between.
    let data = format!("{}    {}", answers.text(2, 0, 0), answers.text(4, 0, 0));
    black_box(answers.cents(5, row, 14).map(|balance| balance - amount));

    charge(session, payment, c, bad_credit);
    let at = session.now_unix_us();
    let history = session.stmt(Sql::HistoryInsert);
    let history = history.ints(&[c, cd, cw, d, w]);
    history.time(at).cents(amount).text(&data).send();
    session.say(Sql::Commit);
    session.round().await?;
    match session.answers.affected(0) {
        1 => Ok(Done::committed(1)),
        _ => {
            let text = format!("payment: customer {cw}/{cd}/{c} was not updated");
            Err(Failure::Wrong(text))
        }
    }
}

/// Takes the amount from the customer's balance; bad credit also notes it in C_DATA.
fn charge<C: Connection>(session: &mut Session<C>, payment: &Payment, c: u32, bad_credit: bool) {
    let Payment {
        warehouse: w,
        district: d,
        customer_warehouse: cw,
        customer_district: cd,
        ..
    } = *payment;
    let amount = payment.amount_cents;
    if bad_credit {
        let cents = (amount / 100, amount % 100);
        let note = format!("{c} {cd} {cw} {d} {w} {}.{:02} | ", cents.0, cents.1);
        let paid = session.stmt(Sql::CustomerPaidBadCredit);
        paid.ints(&[cw, cd, c]).cents(amount).text(&note).send();
    } else {
        session
            .stmt(Sql::CustomerPaid)
            .ints(&[cw, cd, c])
            .cents(amount)
            .send();
    }
}

/// Clause 2.6.2.
async fn order_status<C: Connection>(session: &mut Session<C>, status: &OrderStatus) -> Outcome<C> {
    let OrderStatus {
        warehouse: w,
        district: d,
        ..
    } = *status;
    session.say(Sql::BeginReadOnly);
    // With the number known, the last order can be asked for in the same round.
    let order_at = match &status.customer {
        Customer::Id(c) => {
            session.stmt(Sql::StatusById).ints(&[w, d, *c]).send();
            session.stmt(Sql::LastOrder).ints(&[w, d, *c]).send();
            session.round().await?;
            2
        }
        Customer::LastName(name) => {
            session
                .stmt(Sql::StatusByName)
                .ints(&[w, d])
                .text(name)
                .send();
            session.round().await?;
            let row = chosen_row(session.answers.rows(1));
            let Some(c) = session.answers.int(1, row, 0) else {
                return Err(session
                    .wrong(format!("order status: no \"{name}\" in {w}/{d}"))
                    .await);
            };
            session.stmt(Sql::LastOrder).ints(&[w, d, c as u32]).send();
            session.round().await?;
            0
        }
    };
    let order = session.answers.int(order_at, 0, 0);
    // At a reduced scale a customer may have no order.
    if let Some(order) = order {
        session
            .stmt(Sql::OrderLines)
            .ints(&[w, d, order as u32])
            .send();
    }
    session.say(Sql::Commit);
    session.round().await?;
    if order.is_some() && !(5..=15).contains(&session.answers.rows(0)) {
        let lines = session.answers.rows(0);
        return Err(Failure::Wrong(format!(
            "order status: {lines} lines of {w}/{d}/{order:?}"
        )));
    }
    Ok(Done::committed(1))
}

/// Clause 2.7.4, all districts of the input in one transaction. Units are delivered orders; a
/// district without a waiting order is skipped and counted.
async fn deliver<C: Connection>(session: &mut Session<C>, delivery: Delivery) -> Outcome<C> {
    let Delivery {
        warehouse: w,
        carrier,
        districts: (first, last),
    } = delivery;
    session.say(Sql::Begin);
    for d in first..=last {
        session.stmt(Sql::OldestNewOrder).ints(&[w, d]).send();
    }
    session.round().await?;
    let oldest = |d: u32| {
        Some((
            d,
            session.answers.int((d - first) as usize + 1, 0, 0)? as u32,
        ))
    };
    let orders: Vec<(u32, u32)> = (first..=last).filter_map(oldest).collect();
    let skipped = u64::from(last - first + 1) - orders.len() as u64;
    if !orders.is_empty() {
        let at = session.now_unix_us();
        for &(d, o) in &orders {
            session.stmt(Sql::NewOrderDelete).ints(&[w, d, o]).send();
            session
                .stmt(Sql::OrderDelivered)
                .ints(&[w, d, o, carrier])
                .send();
            session
                .stmt(Sql::LinesDelivered)
                .ints(&[w, d, o])
                .time(at)
                .send();
        }
        session.round().await?;
        let payers = delivered_sums(session, w, &orders).await?;
        for (d, c, sum) in payers {
            session
                .stmt(Sql::CustomerDelivered)
                .ints(&[w, d, c])
                .cents(sum)
                .send();
        }
    }
    session.say(Sql::Commit);
    session.round().await?;
    let unfound = (0..orders.len()).find(|&at| session.answers.affected(at) != 1);
    if let Some(at) = unfound {
        let (d, o) = orders[at];
        return Err(Failure::Wrong(format!(
            "delivery: order {w}/{d}/{o} has no customer"
        )));
    }
    Ok(Done {
        ending: Ending::Committed,
        units: orders.len() as u64,
        skipped,
    })
}

/// District, customer and sum of each order that the second round delivered.
async fn delivered_sums<C: Connection>(
    session: &mut Session<C>,
    w: u32,
    orders: &[(u32, u32)],
) -> Result<Vec<(u32, u32, i64)>, Failure<C::Error>> {
    let mut payers = Vec::with_capacity(orders.len());
    for (at, &(d, o)) in orders.iter().enumerate() {
        let answers = &session.answers;
        if answers.affected(3 * at) != 1 {
            // Possible only where the isolation lets another Delivery come between.
            return Err(session.conflict("delivery overtaken").await);
        }
        let lines = 3 * at + 2;
        let amounts = (0..answers.rows(lines)).map(|row| answers.cents(lines, row, 0));
        match (answers.int(3 * at + 1, 0, 0), amounts.sum::<Option<i64>>()) {
            (Some(c), Some(sum)) => payers.push((d, c as u32, sum)),
            _ => {
                return Err(session
                    .wrong(format!("delivery: order {w}/{d}/{o} is torn"))
                    .await);
            }
        }
    }
    Ok(payers)
}

/// Clause 2.8.2: items of the last 20 orders whose stock is below the threshold.
async fn stock_level<C: Connection>(session: &mut Session<C>, level: StockLevel) -> Outcome<C> {
    let StockLevel {
        warehouse: w,
        district: d,
        threshold,
    } = level;
    session.say(Sql::BeginReadOnly);
    session.stmt(Sql::NextOrder).ints(&[w, d]).send();
    session.round().await?;
    let Some(next) = session.answers.int(1, 0, 0).map(|next| next as u32) else {
        return Err(session
            .wrong(format!("stock level: no district {w}/{d}"))
            .await);
    };
    let from = next.saturating_sub(20);
    let low_stock = session.stmt(Sql::LowStock);
    low_stock.ints(&[w, d, from, next, threshold]).send();
    session.say(Sql::Commit);
    session.round().await?;
    match session.answers.int(0, 0, 0) {
        Some(_) => Ok(Done::committed(1)),
        None => Err(Failure::Wrong(format!("stock level: no count for {w}/{d}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_customer_is_rounded_up() {
        // Positions n/2 rounded up, counted from 1 (clause 2.5.2.2).
        assert_eq!([1, 2, 3, 4, 5].map(chosen_row), [0, 0, 1, 1, 2]);
        assert_eq!(chosen_row(0), 0);
    }
}

//! SmallBank: customers with a savings and a checking account, six transactions.
//!
//! | interaction | does | results |
//! |---|---|---|
//! | BALANCE | reads both accounts of a customer | |
//! | DEPOSIT_CHECKING | adds to checking | |
//! | TRANSACT_SAVINGS | adds to savings, which must not fall below 0 | REFUSED |
//! | WRITE_CHECK | takes from checking; one more if both accounts have less than that | PENALTY |
//! | AMALGAMATE | moves all of a customer to the checking of another | |
//! | SEND_PAYMENT | moves from checking to checking, if there is enough | REFUSED |
//!
//! A customer is a group. The last two take transactions on two groups: a store that has none
//! refuses them, and the results say so. Amounts are whole cents. The check compares what each
//! customer has with what was acknowledged, to the cent.

mod entities;
mod sql;

pub use sql::statements;

use crate::access::{Access, first_number};
use crate::distribution::{Ranks, dealt};
use crate::document::{Problem, Section};
use crate::interaction::{
    Changed, Changes, Failure, Interaction, Performed, Plan, Session, dispatch,
};
use crate::run::{Needs, Part, Workload};
use crate::table::Table;
use entity::{Entity, Schema, Value};
use workload::dike::imbalance::Access as Dealt;

/// The most customers.
const CUSTOMERS_MAX: u64 = 10_000_000;
/// What each account has at the begin, in cents.
const BEGIN_CENTS: i64 = 1_000_000;
/// The largest amount of an interaction, in cents.
const AMOUNT_CENTS_MAX: u64 = 5_000;
/// What a check costs that is not covered, in cents.
const PENALTY_CENTS: i64 = 100;
/// What a customer has, in [`Changes`].
const CUSTOMER: &str = "customer";

const INTERACTIONS: [(&str, &[&str]); 6] = [
    ("AMALGAMATE", &[]),
    ("BALANCE", &[]),
    ("DEPOSIT_CHECKING", &[]),
    ("SEND_PAYMENT", &["REFUSED"]),
    ("TRANSACT_SAVINGS", &["REFUSED"]),
    ("WRITE_CHECK", &["PENALTY"]),
];

/// The mix of the benchmark's authors.
const SHARES: [f64; 6] = [0.15, 0.15, 0.15, 0.25, 0.15, 0.15];

/// An account for savings.
#[derive(Clone, Debug, PartialEq, Entity)]
#[entity(name = "savings")]
pub struct Savings {
    /// Whose it is.
    #[id]
    #[group]
    pub customer_id: i64,
    /// In cents.
    pub cents: i64,
}

/// An account for payments.
#[derive(Clone, Debug, PartialEq, Entity)]
#[entity(name = "checking", parent = Savings)]
pub struct Checking {
    /// Whose it is.
    #[id]
    #[group]
    pub customer_id: i64,
    /// In cents.
    pub cents: i64,
}

/// The workload.
#[derive(Clone, Debug)]
pub struct SmallBank {
    customers: Ranks,
}

impl SmallBank {
    /// Reads `customers` (1000) and `customer_access` (`uniform`).
    ///
    /// # Errors
    /// A key that is not known, or a number out of its bounds.
    pub fn read(mut section: Section<'_>) -> Result<SmallBank, Problem> {
        let count = section
            .count("customers", 2..=CUSTOMERS_MAX)?
            .unwrap_or(1_000);
        let dealt = dealt(&mut section, "customer_access", Dealt::Uniform)?;
        section.finish()?;
        Ok(SmallBank {
            customers: Ranks::new(dealt, count, false),
        })
    }

    /// The types of its entities.
    pub fn schema() -> Schema {
        let mut schema = Schema::new();
        for kind in [Savings::TYPE, Checking::TYPE] {
            schema.add(kind).expect("the types fit together");
        }
        schema
    }

    fn customer(&self, session: &mut Session) -> i64 {
        self.customers.draw(&mut session.draws) as i64
    }

    fn two(&self, session: &mut Session) -> Payment {
        let two = self.customers.draw_distinct(&mut session.draws, 2);
        Payment {
            from: two[0] as i64,
            to: two[1] as i64,
            cents: amount(session),
        }
    }
}

fn amount(session: &mut Session) -> i64 {
    session.draws.below(AMOUNT_CENTS_MAX) as i64 + 1
}

/// From one customer to another.
#[derive(Clone, Copy, Debug)]
pub struct Payment {
    from: i64,
    to: i64,
    cents: i64,
}

/// Reads both accounts of a customer.
#[derive(Clone, Copy, Debug)]
pub struct Balance<'a>(&'a SmallBank);

impl Plan for Balance<'_> {
    /// The customer.
    type Param = i64;
    /// What both have.
    type Answer = i64;

    fn prepare(&self, session: &mut Session) -> Option<i64> {
        Some(self.0.customer(session))
    }

    fn complete(&self, _: &i64, _: i64, _: &mut Session) -> &'static str {
        ""
    }
}

/// What an interaction does to one customer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Adds to checking.
    Deposit,
    /// Adds to savings, or takes from them.
    Save,
    /// Takes from checking.
    Check,
}

/// Changes an account of one customer.
#[derive(Clone, Copy, Debug)]
pub struct Book<'a> {
    bank: &'a SmallBank,
    change: Change,
}

impl Plan for Book<'_> {
    /// The customer, and the amount.
    type Param = (i64, i64);
    /// By how much the customer's money has changed; 0: it was refused.
    type Answer = i64;

    fn prepare(&self, session: &mut Session) -> Option<(i64, i64)> {
        let customer = self.bank.customer(session);
        let amount = amount(session);
        let takes = self.change == Change::Save && session.draws.below(2) == 0;
        Some((customer, if takes { -amount } else { amount }))
    }

    fn complete(&self, param: &(i64, i64), answer: i64, _: &mut Session) -> &'static str {
        match self.change {
            Change::Save if answer == 0 => "REFUSED",
            Change::Check if answer < -param.1 => "PENALTY",
            Change::Deposit | Change::Save | Change::Check => "",
        }
    }

    fn note(&self, param: &(i64, i64), answer: Option<&i64>, changes: &mut Changes) {
        let customer = param.0 as u64;
        match (answer, self.change) {
            (Some(change), _) => changes.note(CUSTOMER, customer, *change, true),
            (None, Change::Deposit | Change::Save) => {
                changes.note(CUSTOMER, customer, param.1, false);
            }
            (None, Change::Check) => {
                changes.note(CUSTOMER, customer, -param.1 - PENALTY_CENTS, false);
            }
        }
    }
}

/// Moves money from one customer to another.
#[derive(Clone, Copy, Debug)]
pub struct Move<'a> {
    bank: &'a SmallBank,
    /// All that there is: AMALGAMATE.
    moves_all: bool,
}

impl Plan for Move<'_> {
    type Param = Payment;
    /// How much was moved; `None`: it was refused.
    type Answer = Option<i64>;

    fn prepare(&self, session: &mut Session) -> Option<Payment> {
        Some(self.bank.two(session))
    }

    fn complete(&self, _: &Payment, answer: Option<i64>, _: &mut Session) -> &'static str {
        match answer {
            Some(_) => "",
            None => "REFUSED",
        }
    }

    fn note(&self, param: &Payment, answer: Option<&Option<i64>>, changes: &mut Changes) {
        let (from, to) = (param.from as u64, param.to as u64);
        match answer {
            Some(Some(cents)) => {
                changes.note(CUSTOMER, from, -cents, true);
                changes.note(CUSTOMER, to, *cents, true);
            }
            Some(None) => {}
            None if self.moves_all => {
                changes.lose_sight(CUSTOMER, from);
                changes.lose_sight(CUSTOMER, to);
            }
            None => {
                changes.note(CUSTOMER, from, -param.cents, false);
                changes.note(CUSTOMER, to, param.cents, false);
            }
        }
    }
}

impl<D> Workload<D> for SmallBank
where
    D: Access,
    for<'a> Balance<'a>: Interaction<D>,
    for<'a> Book<'a>: Interaction<D>,
    for<'a> Move<'a>: Interaction<D>,
{
    fn interactions(&self) -> &[(&'static str, &'static [&'static str])] {
        &INTERACTIONS
    }

    fn default_table(&self) -> Table {
        let names = INTERACTIONS.iter().zip(SHARES).enumerate();
        let parts: Vec<_> = names
            .map(|(at, ((name, _), share))| (at, *name, share))
            .collect();
        Table::mix(&parts)
    }

    fn needs(&self, interaction: usize) -> Needs {
        match interaction {
            0 | 3 => Needs::SeveralGroups,
            _ => Needs::Nothing,
        }
    }

    async fn perform(
        &self,
        interaction: usize,
        session: &mut Session,
        access: &mut D,
        changes: &mut Changes,
        now_ns: &dyn Fn() -> u64,
    ) -> Performed {
        let book = |change| Book { bank: self, change };
        dispatch!(interaction, (session, access, changes, now_ns), {
            0 | 3 => Move {
                bank: self,
                moves_all: interaction == 0,
            },
            1 => Balance(self),
            2 => book(Change::Deposit),
            4 => book(Change::Save),
            5 => book(Change::Check),
        })
    }

    async fn load(&self, part: Part, access: &mut D) -> Result<(), Failure> {
        for customer in part.dealt(self.customers.count()) {
            let row = vec![Value::Int(customer as i64), Value::Int(BEGIN_CENTS)];
            access.fill(Savings::TYPE, vec![row.clone()]).await?;
            access.fill(Checking::TYPE, vec![row]).await?;
        }
        Ok(())
    }

    async fn judge(
        &self,
        (_, customer): (&'static str, u64),
        changed: Changed,
        access: &mut D,
        findings: &mut Vec<String>,
    ) -> Result<(), Failure> {
        let id = [Value::Int(customer as i64)];
        let mut found = -2 * BEGIN_CENTS;
        for kind in [Savings::TYPE, Checking::TYPE] {
            found += first_number(&access.rows(kind, &id).await?, 1);
        }
        let of = format_args!("customer {customer}");
        findings.extend(changed.finding(of, found, "cents more than at the begin"));
        Ok(())
    }
}

//! The SQL half.

use super::{Balance, Book, Change, Move, PENALTY_CENTS, Payment};
use crate::access::{Attempt, BEGIN, OWN, Sql, Statement};
use crate::interaction::{Effort, Failure, Interaction};
use entity::Pace;
use workload::wire::{Connection, ParamType};

const READ_SAVINGS: usize = OWN;
const READ_CHECKING: usize = OWN + 1;
const ADD_SAVINGS: usize = OWN + 2;
const ADD_CHECKING: usize = OWN + 3;
const READ_BOTH: usize = OWN + 4;

/// All statements with the types of their parameters, in the order of their places.
pub fn statements() -> Vec<(String, Vec<ParamType>)> {
    use ParamType::BigInt;
    let read = |table| format!("SELECT cents FROM {table} WHERE customer_id = $1");
    let add = |table| format!("UPDATE {table} SET cents = cents + $2 WHERE customer_id = $1");
    let both = "SELECT s.cents + c.cents FROM savings s JOIN checking c \
                ON c.customer_id = s.customer_id WHERE s.customer_id = $1";
    vec![
        (read("savings"), vec![BigInt]),
        (read("checking"), vec![BigInt]),
        (add("savings"), vec![BigInt, BigInt]),
        (add("checking"), vec![BigInt, BigInt]),
        (both.to_string(), vec![BigInt]),
    ]
}

/// The number of the first row of a statement of the last round.
fn number<C: Connection>(statement: &Statement<'_, C>, place: usize) -> Attempt<i64, C> {
    statement.number((place, 0, 0), "an account")
}

impl<C: Connection, P: Pace> Interaction<Sql<C, P>> for Balance<'_> {
    async fn execute(
        &self,
        param: &i64,
        access: &mut Sql<C, P>,
        effort: &mut Effort,
    ) -> Result<i64, Failure> {
        access
            .run(effort, async |statement| {
                statement.session().bind(READ_BOTH).big(*param).send();
                statement.round().await?;
                number(statement, 0)
            })
            .await
    }
}

impl<C: Connection, P: Pace> Interaction<Sql<C, P>> for Book<'_> {
    async fn execute(
        &self,
        &(customer, cents): &(i64, i64),
        access: &mut Sql<C, P>,
        effort: &mut Effort,
    ) -> Result<i64, Failure> {
        access
            .run(effort, async |statement| {
                let session = statement.session();
                if self.change == Change::Deposit {
                    session.bind(ADD_CHECKING).big(customer).big(cents).send();
                    statement.single().await?;
                    return Ok(cents);
                }
                session.bind(BEGIN).send();
                let (read, add) = match self.change {
                    Change::Check => (READ_BOTH, ADD_CHECKING),
                    Change::Deposit | Change::Save => (READ_SAVINGS, ADD_SAVINGS),
                };
                session.bind(read).big(customer).send();
                statement.round().await?;
                let there = number(statement, 1)?;
                let change = match self.change {
                    Change::Check if there < cents => -cents - PENALTY_CENTS,
                    Change::Check => -cents,
                    Change::Save if there + cents < 0 => 0,
                    Change::Deposit | Change::Save => cents,
                };
                if change != 0 {
                    statement
                        .session()
                        .bind(add)
                        .big(customer)
                        .big(change)
                        .send();
                }
                statement.commit().await?;
                Ok(change)
            })
            .await
    }
}

impl<C: Connection, P: Pace> Interaction<Sql<C, P>> for Move<'_> {
    async fn execute(
        &self,
        param: &Payment,
        access: &mut Sql<C, P>,
        effort: &mut Effort,
    ) -> Result<Option<i64>, Failure> {
        access
            .run(effort, async |statement| {
                let session = statement.session();
                session.bind(BEGIN).send();
                session.bind(READ_CHECKING).big(param.from).send();
                if self.moves_all {
                    session.bind(READ_SAVINGS).big(param.from).send();
                }
                statement.round().await?;
                let checking = number(statement, 1)?;
                let mut cents = param.cents;
                if self.moves_all {
                    let savings = number(statement, 2)?;
                    cents = savings + checking;
                    let session = statement.session();
                    session
                        .bind(ADD_SAVINGS)
                        .big(param.from)
                        .big(-savings)
                        .send();
                    session
                        .bind(ADD_CHECKING)
                        .big(param.from)
                        .big(-checking)
                        .send();
                } else if checking < cents {
                    statement.commit().await?;
                    return Ok(None);
                } else {
                    let session = statement.session();
                    session
                        .bind(ADD_CHECKING)
                        .big(param.from)
                        .big(-cents)
                        .send();
                }
                let session = statement.session();
                session.bind(ADD_CHECKING).big(param.to).big(cents).send();
                statement.commit().await?;
                Ok(Some(cents))
            })
            .await
    }
}

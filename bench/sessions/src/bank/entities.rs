//! The entity half.

use super::{Balance, Book, Change, Checking, Move, PENALTY_CENTS, Payment, Savings};
use crate::access::counted;
use crate::interaction::{Effort, Failure, Interaction};
use entity::{Client, Entity, EntityDb, Pace, Scope, Tx};

async fn account<S: EntityDb, E: Entity<Id = i64>>(
    tx: &mut Tx<S>,
    customer: i64,
) -> Result<E, entity::Failure> {
    let missing = entity::Failure::Stopped("an account is missing");
    tx.get::<E>(&customer).await?.ok_or(missing)
}

impl<S: EntityDb, P: Pace> Interaction<Client<S, P>> for Balance<'_> {
    async fn execute(
        &self,
        param: &i64,
        access: &mut Client<S, P>,
        effort: &mut Effort,
    ) -> Result<i64, Failure> {
        counted(access, effort, async |client| {
            client
                .run_in::<Savings, _>(param, async |tx| {
                    let savings: Savings = account(tx, *param).await?;
                    let checking: Checking = account(tx, *param).await?;
                    Ok(savings.cents + checking.cents)
                })
                .await
        })
        .await
    }
}

impl<S: EntityDb, P: Pace> Interaction<Client<S, P>> for Book<'_> {
    async fn execute(
        &self,
        &(customer, cents): &(i64, i64),
        access: &mut Client<S, P>,
        effort: &mut Effort,
    ) -> Result<i64, Failure> {
        counted(access, effort, async |client| {
            client
                .run_in::<Savings, _>(&customer, async |tx| match self.change {
                    Change::Deposit => {
                        let mut checking: Checking = account(tx, customer).await?;
                        checking.cents += cents;
                        tx.update(&checking).await?;
                        Ok(cents)
                    }
                    Change::Save => {
                        let mut savings: Savings = account(tx, customer).await?;
                        if savings.cents + cents < 0 {
                            return Ok(0);
                        }
                        savings.cents += cents;
                        tx.update(&savings).await?;
                        Ok(cents)
                    }
                    Change::Check => {
                        let savings: Savings = account(tx, customer).await?;
                        let mut checking: Checking = account(tx, customer).await?;
                        let is_covered = savings.cents + checking.cents >= cents;
                        let penalty = if is_covered { 0 } else { PENALTY_CENTS };
                        checking.cents -= cents + penalty;
                        tx.update(&checking).await?;
                        Ok(-cents - penalty)
                    }
                })
                .await
        })
        .await
    }
}

impl<S: EntityDb, P: Pace> Interaction<Client<S, P>> for Move<'_> {
    async fn execute(
        &self,
        param: &Payment,
        access: &mut Client<S, P>,
        effort: &mut Effort,
    ) -> Result<Option<i64>, Failure> {
        counted(access, effort, async |client| {
            client
                .run(Scope::Several, async |tx| {
                    let mut from: Checking = account(tx, param.from).await?;
                    let mut to: Checking = account(tx, param.to).await?;
                    let mut cents = param.cents;
                    if self.moves_all {
                        let mut savings: Savings = account(tx, param.from).await?;
                        cents = savings.cents + from.cents;
                        savings.cents = 0;
                        tx.update(&savings).await?;
                        from.cents = 0;
                    } else if from.cents < cents {
                        return Ok(None);
                    } else {
                        from.cents -= cents;
                    }
                    to.cents += cents;
                    tx.update(&from).await?;
                    tx.update(&to).await?;
                    Ok(Some(cents))
                })
                .await
        })
        .await
    }
}

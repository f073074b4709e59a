//! The entity half.

use super::{Change, Insert, Read, Scan, Step, Steps, Update, Usertable};
use crate::access::counted;
use crate::interaction::{Effort, Failure, Interaction};
use entity::{Client, EntityDb, Pace, Range, Scope, Value};

impl<S: EntityDb, P: Pace> Interaction<Client<S, P>> for Read<'_> {
    async fn execute(
        &self,
        param: &i64,
        access: &mut Client<S, P>,
        effort: &mut Effort,
    ) -> Result<bool, Failure> {
        counted(access, effort, async |client| {
            Ok(client.get::<Usertable>(param).await?.is_some())
        })
        .await
    }
}

impl<S: EntityDb, P: Pace> Interaction<Client<S, P>> for Update<'_> {
    async fn execute(
        &self,
        param: &Change,
        access: &mut Client<S, P>,
        effort: &mut Effort,
    ) -> Result<bool, Failure> {
        counted(access, effort, async |client| {
            client
                .run_in::<Usertable, _>(&param.key, async |tx| {
                    let Some(mut record) = tx.get::<Usertable>(&param.key).await? else {
                        return Ok(false);
                    };
                    record.field_mut(param.field).clone_from(&param.content);
                    record.changes += 1;
                    tx.update(&record).await?;
                    Ok(true)
                })
                .await
        })
        .await
    }
}

impl<S: EntityDb, P: Pace> Interaction<Client<S, P>> for Insert<'_> {
    async fn execute(
        &self,
        param: &Usertable,
        access: &mut Client<S, P>,
        effort: &mut Effort,
    ) -> Result<(), Failure> {
        let mut record = param.clone();
        counted(access, effort, async |client| {
            client.create(&mut record).await
        })
        .await
    }
}

impl<S: EntityDb, P: Pace> Interaction<Client<S, P>> for Scan<'_> {
    async fn execute(
        &self,
        param: &(i64, i64),
        access: &mut Client<S, P>,
        effort: &mut Effort,
    ) -> Result<usize, Failure> {
        let from = Value::Int(param.0);
        let range = Range {
            prefix: &[],
            from: Some(&from),
            to: None,
            limit: param.1 as usize,
        };
        counted(access, effort, async |client| {
            Ok(client.range::<Usertable>(range).await?.len())
        })
        .await
    }
}

impl<S: EntityDb, P: Pace> Interaction<Client<S, P>> for Steps<'_> {
    async fn execute(
        &self,
        param: &Vec<Step>,
        access: &mut Client<S, P>,
        effort: &mut Effort,
    ) -> Result<Vec<i64>, Failure> {
        counted(access, effort, async |client| {
            client
                .run(Scope::Several, async |tx| {
                    let (mut changed, mut led_by) = (Vec::new(), 0);
                    for step in param {
                        let before = led_by;
                        for (at, op) in step.iter().enumerate() {
                            let key = self.key(op, before);
                            let missing = entity::Failure::Stopped("a record is missing");
                            let record = tx.get::<Usertable>(&key).await?;
                            let mut record = record.ok_or(missing)?;
                            if at == 0 {
                                led_by = record.changes;
                            }
                            if let Some((field, content)) = &op.change {
                                record.field_mut(*field).clone_from(content);
                                record.changes += 1;
                                tx.update(&record).await?;
                                changed.push(key);
                            }
                        }
                    }
                    Ok(changed)
                })
                .await
        })
        .await
    }
}

//! The entity half: every interaction by the operations that all stores have.

use super::items::Items;
use super::{DeleteMessage, ListItems, ListMessages, MessageItem};
use super::{ReadItems, SendMessage, UpdateItems, UpdateMessage};
use crate::access::{ROWS_MAX, counted};
use crate::interaction::{Effort, Failure, Interaction};
use entity::{Client, EntityDb, Pace, Range, Scope, Value};

impl<S: EntityDb, P: Pace> Interaction<Client<S, P>> for UpdateItems<'_> {
    async fn execute(
        &self,
        param: &Items,
        access: &mut Client<S, P>,
        effort: &mut Effort,
    ) -> Result<(), Failure> {
        let kind = self.kind.entity_type();
        let group = [Value::Int(param.group)];
        let scope = Scope::Group(&kind.group_name, &group);
        counted(access, effort, async |client| {
            client
                .run(scope, async |tx| {
                    for number in &param.numbers {
                        let id = [Value::Int(param.group), Value::Int(*number)];
                        let mut row = tx.get_row(kind, &id).await?.ok_or(NO_ITEM)?;
                        let changes = row[2].as_int().unwrap_or(0);
                        row[2] = Value::Int(changes + 1);
                        row[3] = Value::Text(param.content.clone());
                        tx.update_row(kind, &row).await?;
                    }
                    Ok(())
                })
                .await
        })
        .await
    }
}

/// An item is not there, though none is ever deleted.
const NO_ITEM: entity::Failure = entity::Failure::Stopped("an item is missing");

impl<S: EntityDb, P: Pace> Interaction<Client<S, P>> for ReadItems<'_> {
    async fn execute(
        &self,
        param: &Items,
        access: &mut Client<S, P>,
        effort: &mut Effort,
    ) -> Result<usize, Failure> {
        let kind = self.kind.entity_type();
        let group = [Value::Int(param.group)];
        let scope = Scope::Group(&kind.group_name, &group);
        counted(access, effort, async |client| {
            client
                .run(scope, async |tx| {
                    for number in &param.numbers {
                        let id = [Value::Int(param.group), Value::Int(*number)];
                        tx.get_row(kind, &id).await?.ok_or(NO_ITEM)?;
                    }
                    Ok(param.numbers.len())
                })
                .await
        })
        .await
    }
}

impl<S: EntityDb, P: Pace> Interaction<Client<S, P>> for ListItems<'_> {
    async fn execute(
        &self,
        param: &i64,
        access: &mut Client<S, P>,
        effort: &mut Effort,
    ) -> Result<usize, Failure> {
        let kind = self.kind.entity_type();
        let prefix = [Value::Int(*param)];
        counted(access, effort, async |client| {
            Ok(client.rows_in_range(kind, all(&prefix)).await?.len())
        })
        .await
    }
}

/// All entities whose first ids are these.
fn all(prefix: &[Value]) -> Range<'_> {
    Range {
        prefix,
        from: None,
        to: None,
        limit: ROWS_MAX,
    }
}

impl<S: EntityDb, P: Pace> Interaction<Client<S, P>> for SendMessage<'_> {
    async fn execute(
        &self,
        param: &MessageItem,
        access: &mut Client<S, P>,
        effort: &mut Effort,
    ) -> Result<(), Failure> {
        let mut message = param.clone();
        counted(access, effort, async |client| {
            client.create(&mut message).await
        })
        .await
    }
}

impl<S: EntityDb, P: Pace> Interaction<Client<S, P>> for ListMessages<'_> {
    async fn execute(
        &self,
        param: &i64,
        access: &mut Client<S, P>,
        effort: &mut Effort,
    ) -> Result<Vec<i64>, Failure> {
        let key = [Value::Int(*param)];
        let messages: Vec<MessageItem> =
            counted(access, effort, async |client| match self.is_sent {
                true => client.by_index("sender_id", &key).await,
                false => client.range(all(&key)).await,
            })
            .await?;
        Ok(messages.iter().map(|message| message.message_no).collect())
    }
}

impl<S: EntityDb, P: Pace> Interaction<Client<S, P>> for UpdateMessage<'_> {
    async fn execute(
        &self,
        param: &(i64, i64),
        access: &mut Client<S, P>,
        effort: &mut Effort,
    ) -> Result<bool, Failure> {
        counted(access, effort, async |client| {
            client
                .run_in::<MessageItem, _>(&param.0, async |tx| {
                    let Some(mut message) = tx.get::<MessageItem>(param).await? else {
                        return Ok(false);
                    };
                    message.changes += 1;
                    tx.update(&message).await?;
                    Ok(true)
                })
                .await
        })
        .await
    }
}

impl<S: EntityDb, P: Pace> Interaction<Client<S, P>> for DeleteMessage<'_> {
    async fn execute(
        &self,
        param: &(i64, i64),
        access: &mut Client<S, P>,
        effort: &mut Effort,
    ) -> Result<bool, Failure> {
        counted(access, effort, async |client| {
            match client.delete::<MessageItem>(param).await {
                Ok(()) => Ok(true),
                Err(entity::Failure::Missing(_)) => Ok(false),
                Err(failure) => Err(failure),
            }
        })
        .await
    }
}

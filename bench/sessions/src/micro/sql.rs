//! The SQL half: statements of one's own for each interaction, in as few rounds as they need.

use super::items::Items;
use super::{DeleteMessage, ItemKind, ListItems, ListMessages, MessageItem};
use super::{ReadItems, SendMessage, UpdateItems, UpdateMessage};
use crate::access::{Attempt, BEGIN, OWN, Sql};
use crate::interaction::{Effort, Failure, Interaction};
use entity::Pace;
use workload::wire::{Connection, ParamType};

/// Statements for each kind of items, in the order of [`ItemKind::ALL`].
const UPDATE: usize = 0;
const READ: usize = 1;
const LIST: usize = 2;
const EACH: usize = 3;
/// Statements for messages, behind those.
const SEND: usize = OWN + 3 * EACH;
const INBOX: usize = SEND + 1;
const SENT: usize = SEND + 2;
const MARK: usize = SEND + 3;
const DELETE: usize = SEND + 4;

/// All statements with the types of their parameters, in the order of their places.
pub fn statements() -> Vec<(String, Vec<ParamType>)> {
    use ParamType::{BigInt, Text};
    let mut all = Vec::new();
    for kind in ItemKind::ALL {
        let (table, group) = (kind.name(), kind.group_column());
        let item = format!("WHERE {group} = $1 AND item_no = $2");
        let update = format!("UPDATE {table} SET changes = changes + 1, content = $3 {item}");
        all.push((update, vec![BigInt, BigInt, Text]));
        let read = format!("SELECT changes, content FROM {table} {item}");
        all.push((read, vec![BigInt, BigInt]));
        let list = format!(
            "SELECT item_no, changes, content FROM {table} WHERE {group} = $1 ORDER BY item_no"
        );
        all.push((list, vec![BigInt]));
    }
    let message = "WHERE receiver_id = $1 AND message_no = $2";
    for (sql, params) in [
        (
            "INSERT INTO message_item (receiver_id, sender_id, changes, content) \
             VALUES ($1, $2, 0, $3)"
                .to_string(),
            vec![BigInt, BigInt, Text],
        ),
        (
            "SELECT message_no, sender_id, changes, content FROM message_item \
             WHERE receiver_id = $1 ORDER BY message_no"
                .to_string(),
            vec![BigInt],
        ),
        (
            "SELECT message_no, receiver_id, changes, content FROM message_item \
             WHERE sender_id = $1 ORDER BY receiver_id, message_no"
                .to_string(),
            vec![BigInt],
        ),
        (
            format!("UPDATE message_item SET changes = changes + 1 {message}"),
            vec![BigInt, BigInt],
        ),
        (
            format!("DELETE FROM message_item {message}"),
            vec![BigInt, BigInt],
        ),
    ] {
        all.push((sql, params));
    }
    all
}

fn place(kind: ItemKind, statement: usize) -> usize {
    OWN + EACH * kind as usize + statement
}

fn missing<C: Connection>(item: i64) -> Attempt<(), C> {
    let text = format!("item {item} is missing, though none is ever deleted");
    Err(workload::wire::Failure::Wrong(text))
}

impl<C: Connection, P: Pace> Interaction<Sql<C, P>> for UpdateItems<'_> {
    async fn execute(
        &self,
        param: &Items,
        access: &mut Sql<C, P>,
        effort: &mut Effort,
    ) -> Result<(), Failure> {
        let update = place(self.kind, UPDATE);
        access
            .run(effort, async |statement| {
                let session = statement.session();
                session.bind(BEGIN).send();
                for number in &param.numbers {
                    let bind = session.bind(update).big(param.group).big(*number);
                    bind.text(&param.content).send();
                }
                statement.commit().await?;
                for (at, number) in param.numbers.iter().enumerate() {
                    if statement.answers().affected(at + 1) != 1 {
                        missing::<C>(*number)?;
                    }
                }
                Ok(())
            })
            .await
    }
}

impl<C: Connection, P: Pace> Interaction<Sql<C, P>> for ReadItems<'_> {
    async fn execute(
        &self,
        param: &Items,
        access: &mut Sql<C, P>,
        effort: &mut Effort,
    ) -> Result<usize, Failure> {
        let read = place(self.kind, READ);
        access
            .run(effort, async |statement| {
                let session = statement.session();
                session.bind(BEGIN).send();
                for number in &param.numbers {
                    session.bind(read).big(param.group).big(*number).send();
                }
                statement.commit().await?;
                for (at, number) in param.numbers.iter().enumerate() {
                    if statement.answers().rows(at + 1) != 1 {
                        missing::<C>(*number)?;
                    }
                }
                Ok(param.numbers.len())
            })
            .await
    }
}

impl<C: Connection, P: Pace> Interaction<Sql<C, P>> for ListItems<'_> {
    async fn execute(
        &self,
        param: &i64,
        access: &mut Sql<C, P>,
        effort: &mut Effort,
    ) -> Result<usize, Failure> {
        let list = place(self.kind, LIST);
        access
            .run(effort, async |statement| {
                statement.session().bind(list).big(*param).send();
                statement.round().await?;
                Ok(statement.answers().rows(0))
            })
            .await
    }
}

impl<C: Connection, P: Pace> Interaction<Sql<C, P>> for SendMessage<'_> {
    async fn execute(
        &self,
        param: &MessageItem,
        access: &mut Sql<C, P>,
        effort: &mut Effort,
    ) -> Result<(), Failure> {
        access
            .run(effort, async |statement| {
                let bind = statement.session().bind(SEND);
                let bind = bind.big(param.receiver_id).big(param.sender_id);
                bind.text(&param.content).send();
                statement.single().await
            })
            .await
    }
}

impl<C: Connection, P: Pace> Interaction<Sql<C, P>> for ListMessages<'_> {
    async fn execute(
        &self,
        param: &i64,
        access: &mut Sql<C, P>,
        effort: &mut Effort,
    ) -> Result<Vec<i64>, Failure> {
        let list = if self.is_sent { SENT } else { INBOX };
        access
            .run(effort, async |statement| {
                statement.session().bind(list).big(*param).send();
                statement.round().await?;
                let answers = statement.answers();
                let number = |row| answers.int(0, row, 0);
                Ok((0..answers.rows(0)).filter_map(number).collect())
            })
            .await
    }
}

/// A statement that changes a message, if it is there.
async fn change<C: Connection, P: Pace>(
    access: &mut Sql<C, P>,
    effort: &mut Effort,
    change: usize,
    (receiver, number): (i64, i64),
) -> Result<bool, Failure> {
    access
        .run(effort, async |statement| {
            statement
                .session()
                .bind(change)
                .big(receiver)
                .big(number)
                .send();
            statement.single().await?;
            Ok(statement.answers().affected(0) == 1)
        })
        .await
}

impl<C: Connection, P: Pace> Interaction<Sql<C, P>> for UpdateMessage<'_> {
    async fn execute(
        &self,
        param: &(i64, i64),
        access: &mut Sql<C, P>,
        effort: &mut Effort,
    ) -> Result<bool, Failure> {
        change(access, effort, MARK, *param).await
    }
}

impl<C: Connection, P: Pace> Interaction<Sql<C, P>> for DeleteMessage<'_> {
    async fn execute(
        &self,
        param: &(i64, i64),
        access: &mut Sql<C, P>,
        effort: &mut Effort,
    ) -> Result<bool, Failure> {
        change(access, effort, DELETE, *param).await
    }
}

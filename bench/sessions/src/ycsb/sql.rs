//! The SQL half.

use super::{Change, FIELDS, Insert, Read, Scan, Step, Steps, Update, Usertable};
use crate::access::{BEGIN, OWN, Sql};
use crate::interaction::{Effort, Failure, Interaction};
use entity::Pace;
use workload::wire::{Connection, ParamType};

const READ: usize = OWN;
const INSERT: usize = OWN + 1;
const SCAN: usize = OWN + 2;
/// One for each field.
const UPDATE: usize = OWN + 3;
/// Reads all fields with the count of updates.
const LEAD: usize = UPDATE + FIELDS as usize;

/// All statements with the types of their parameters, in the order of their places.
pub fn statements() -> Vec<(String, Vec<ParamType>)> {
    use ParamType::{BigInt, Text};
    let fields: Vec<String> = (0..FIELDS).map(|field| format!("field{field}")).collect();
    let fields = fields.join(", ");
    let values: Vec<String> = (0..FIELDS).map(|field| format!("${}", field + 2)).collect();
    let mut insert = vec![BigInt];
    insert.resize(1 + FIELDS as usize, Text);
    let mut all = vec![
        (
            format!("SELECT {fields} FROM usertable WHERE ycsb_key = $1"),
            vec![BigInt],
        ),
        (
            format!(
                "INSERT INTO usertable (ycsb_key, {fields}, changes) VALUES ($1, {}, 0)",
                values.join(", ")
            ),
            insert,
        ),
        (
            format!(
                "SELECT ycsb_key, {fields} FROM usertable \
                 WHERE ycsb_key >= $1 AND ycsb_key < $2 ORDER BY ycsb_key"
            ),
            vec![BigInt, BigInt],
        ),
    ];
    for field in 0..FIELDS {
        let update = format!(
            "UPDATE usertable SET field{field} = $2, changes = changes + 1 WHERE ycsb_key = $1"
        );
        all.push((update, vec![BigInt, Text]));
    }
    let lead = format!("SELECT changes, {fields} FROM usertable WHERE ycsb_key = $1");
    all.push((lead, vec![BigInt]));
    all
}

impl<C: Connection, P: Pace> Interaction<Sql<C, P>> for Read<'_> {
    async fn execute(
        &self,
        param: &i64,
        access: &mut Sql<C, P>,
        effort: &mut Effort,
    ) -> Result<bool, Failure> {
        access
            .run(effort, async |statement| {
                statement.session().bind(READ).big(*param).send();
                statement.round().await?;
                Ok(statement.answers().rows(0) == 1)
            })
            .await
    }
}

impl<C: Connection, P: Pace> Interaction<Sql<C, P>> for Update<'_> {
    async fn execute(
        &self,
        param: &Change,
        access: &mut Sql<C, P>,
        effort: &mut Effort,
    ) -> Result<bool, Failure> {
        let update = UPDATE + param.field as usize;
        access
            .run(effort, async |statement| {
                let session = statement.session();
                if self.reads {
                    session.bind(BEGIN).send();
                    session.bind(READ).big(param.key).send();
                    statement.round().await?;
                    let session = statement.session();
                    session
                        .bind(update)
                        .big(param.key)
                        .text(&param.content)
                        .send();
                    statement.commit().await?;
                } else {
                    session
                        .bind(update)
                        .big(param.key)
                        .text(&param.content)
                        .send();
                    statement.single().await?;
                }
                Ok(statement.answers().affected(0) == 1)
            })
            .await
    }
}

impl<C: Connection, P: Pace> Interaction<Sql<C, P>> for Insert<'_> {
    async fn execute(
        &self,
        param: &Usertable,
        access: &mut Sql<C, P>,
        effort: &mut Effort,
    ) -> Result<(), Failure> {
        access
            .run(effort, async |statement| {
                let session = statement.session();
                let mut bind = session.bind(INSERT).big(param.ycsb_key);
                let mut record = param.clone();
                for field in 0..FIELDS {
                    bind = bind.text(record.field_mut(field));
                }
                bind.send();
                statement.single().await
            })
            .await
    }
}

impl<C: Connection, P: Pace> Interaction<Sql<C, P>> for Scan<'_> {
    async fn execute(
        &self,
        param: &(i64, i64),
        access: &mut Sql<C, P>,
        effort: &mut Effort,
    ) -> Result<usize, Failure> {
        access
            .run(effort, async |statement| {
                let bind = statement.session().bind(SCAN).big(param.0);
                bind.big(param.0 + param.1).send();
                statement.round().await?;
                Ok(statement.answers().rows(0))
            })
            .await
    }
}

impl<C: Connection, P: Pace> Interaction<Sql<C, P>> for Steps<'_> {
    async fn execute(
        &self,
        param: &Vec<Step>,
        access: &mut Sql<C, P>,
        effort: &mut Effort,
    ) -> Result<Vec<i64>, Failure> {
        access
            .run(effort, async |statement| {
                let (mut changed, mut led_by) = (Vec::new(), 0);
                for (number, step) in param.iter().enumerate() {
                    let session = statement.session();
                    if number == 0 {
                        session.bind(BEGIN).send();
                    }
                    for op in step {
                        let key = self.key(op, led_by);
                        session.bind(LEAD).big(key).send();
                        if let Some((field, content)) = &op.change {
                            let update = UPDATE + *field as usize;
                            session.bind(update).big(key).text(content).send();
                            changed.push(key);
                        }
                    }
                    match number + 1 == param.len() {
                        true => statement.commit().await?,
                        false => statement.round().await?,
                    }
                    // BEGIN is ahead of the first step.
                    let (mut at, mut leads) = (usize::from(number == 0), Vec::new());
                    for op in step {
                        leads.push(statement.number((at, 0, 0), "a record")?);
                        at += 1 + usize::from(op.change.is_some());
                    }
                    led_by = leads[0];
                }
                Ok(changed)
            })
            .await
    }
}

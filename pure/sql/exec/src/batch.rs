//! Batches of rows for schema changes.

use super::request::get;
use super::scan::{primary_key, rows_of};
use super::source::open;
use super::write::{Change, Changes, apply, duplicate};
use super::{BATCH_ROWS, Cx, bulk, first_values, foreign};
use crate::keys::entry_key;
use crate::port::{OpFuture, Port};
use base::{Datum, KeyRange, Pieces, RowBatch, Slot, SqlError, SqlState};
use catalog::Table;
use expr::Expr;
use expr::eval;
use expr::program::{Body, ProgramPlan, TableShape};
use plan::step::{Action, Run, Writer};
use plan::{Plan, PlanKind};
use std::rc::Rc;
use std::sync::Arc;
use txn::{LockMode, Op, OpError, OpResult, ScanOp, Slots as ScanSlots};

/// Where the next batch of a schema change starts.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FillPosition {
    /// Position in the list of shards.
    shard: usize,
    after: Option<(Slot, Vec<u8>)>,
}

/// Rows of a table and where to go on.
pub(crate) struct Batch {
    pub(crate) rows: RowBatch,
    pub(crate) next: Option<FillPosition>,
}

/// 23505 for an index that cannot be made, as `found` says of one that there is.
pub(crate) fn not_unique(table: &Table, index: &str, found: &SqlError) -> SqlError {
    let message = format!("could not create unique index \"{index}\"");
    let detail = &found.fields().detail;
    SqlError::new(SqlState::UNIQUE, message)
        .detail(detail.replace("already exists", "is duplicated"))
        .table(&table.name)
        .constraint(index)
}

/// The executor's view for work that is no statement, whose plans have this many slots.
pub(crate) fn idle(port: &dyn Port, slots: u32) -> Cx<'_> {
    let run = Run {
        inits: Vec::new(),
        slots,
        planned: port.catalog().version,
        action: Action::Truncate(Vec::new(), Vec::new()),
        steps: 1,
        sizes: false,
    };
    Cx::new(port, &run, false)
}

/// The executor's view for one batch.
pub(crate) struct FillCx<'a>(Cx<'a>);

impl<'a> FillCx<'a> {
    pub(crate) fn new(port: &'a dyn Port) -> FillCx<'a> {
        FillCx(idle(port, 0))
    }

    /// Reads a batch of full rows, which are locked for reading.
    pub(crate) async fn rows(
        &self,
        table: &Table,
        position: Option<FillPosition>,
    ) -> Result<Batch, OpError> {
        self.locked_rows(table, position, LockMode::Shared).await
    }

    /// Reads a batch of full rows, each of which is locked. Rows that come meanwhile are not: their
    /// writers know of the schema change.
    pub(crate) async fn locked_rows(
        &self,
        table: &Table,
        position: Option<FillPosition>,
        mode: LockMode,
    ) -> Result<Batch, OpError> {
        let port = self.0.port;
        let position = position.unwrap_or_default();
        let shards = if table.replicated {
            vec![port.here()]
        } else {
            port.shards().to_vec()
        };
        let Some(shard) = shards.get(position.shard) else {
            return Ok(Batch {
                rows: RowBatch::default(),
                next: None,
            });
        };
        let columns = table.columns.iter().enumerate();
        let projection = columns.map(|(i, c)| Expr::Column(i as u32, c.ty)).collect();
        let program = ProgramPlan::new(Body::Rows {
            filter: None,
            projection,
        })
        .bind(&[]);
        let op = Op::Scan(ScanOp {
            index: table.primary.id,
            slots: ScanSlots::All,
            range: KeyRange::all(),
            reverse: false,
            read: port.read_batch(mode),
            program,
            row_limit: u64::MAX,
            batch_rows: port.batch_rows(),
            after: position.after,
        });
        let answer = OpFuture::start(port, *shard, self.0.planned, op, false).await?;
        let OpResult::Rows { batch, resume } = answer else {
            panic!("a scan was not answered by rows");
        };
        let next = match resume {
            Some(after) => Some(FillPosition {
                shard: position.shard,
                after: Some(after),
            }),
            None if position.shard + 1 < shards.len() => Some(FillPosition {
                shard: position.shard + 1,
                after: None,
            }),
            None => None,
        };
        Ok(Batch { rows: batch, next })
    }

    /// Inserts the entry of every row in index `number`; answers the rows whose entry existed.
    async fn insert(
        &self,
        table: &Table,
        number: usize,
        rows: &[&[Datum]],
    ) -> Result<Vec<usize>, OpError> {
        let inserted = bulk::insert_entries(&self.0, table, number, rows).await;
        inserted.map_err(|failed| failed.error)
    }

    /// Writes the entries of index `number`. An entry of the same row may be there already: its
    /// writer knew of the index.
    pub(crate) async fn write_entries(
        &self,
        table: &Table,
        number: usize,
        rows: &[&[Datum]],
    ) -> Result<(), OpError> {
        let index = plan::step::table_index(table, number);
        let existing = self.insert(table, number, rows).await?;
        let keys = table.primary.columns.iter().enumerate();
        let projection: Vec<Expr> = keys
            .map(|(i, key)| Expr::Column(i as u32, table.column_at(key.column).ty))
            .collect();
        let program = ProgramPlan::new(Body::Rows {
            filter: None,
            projection,
        });
        for i in existing {
            let row = rows[i];
            let read = txn::Read::Lock(LockMode::Exclusive);
            let key = entry_key(table, index, row);
            let found = get(&self.0, 0, table, key, read, program.bind(&[])).await;
            let found = rows_of(found)?;
            let own = entry_key(table, &table.primary, row);
            if found.rows == 0 || primary_key(table, found.row(0)) != own {
                return Err(not_unique(table, &index.name, &duplicate(table, number, row)).into());
            }
        }
        Ok(())
    }

    /// Writes whole rows into the primary key space of `table`.
    pub(crate) async fn write_rows(&self, table: &Table, rows: &[&[Datum]]) -> Result<(), OpError> {
        match self.insert(table, 0, rows).await?.first() {
            Some(i) => {
                let found = duplicate(table, 0, rows[*i]);
                Err(not_unique(table, &table.primary.name, &found).into())
            }
            None => Ok(()),
        }
    }

    /// Writes changed rows; nothing else of the table changes.
    pub(crate) async fn change_rows(
        &self,
        table: &Arc<Table>,
        rows: Vec<(Vec<Datum>, Vec<Datum>)>,
    ) -> Result<(), OpError> {
        let writer = Writer {
            table: table.clone(),
            shape: TableShape {
                table: table.name.clone(),
                columns: Vec::new(),
                not_null: Vec::new(),
                shown: Vec::new(),
            },
            generated: Vec::new(),
            checks: Vec::new(),
            all_valid: false,
            parents: Vec::new(),
            children: Vec::new(),
        };
        let mut changes = Pieces::new();
        for (old, new) in rows {
            changes.push(Change {
                old: Some(old),
                new: Some(new),
            });
        }
        let slots = Rc::new(Vec::new());
        apply(&self.0, &[writer], 0, Changes::many(&changes), &slots).await?;
        super::deferred::end_statement(&self.0).await
    }

    /// The number of a new row of a table without a primary key.
    pub(crate) fn row_number(&self) -> Datum {
        Datum::Int(self.0.port.unique() as i64)
    }

    /// As many rows of values as `plan` gives.
    pub(crate) async fn values(&self, plan: &Plan) -> Result<Vec<Vec<Datum>>, OpError> {
        let PlanKind::Run(run) = &plan.kind else {
            panic!("values are queried");
        };
        let Action::Query(step) = &run.action else {
            panic!("values are queried");
        };
        let slots = first_values(&self.0, run, &[]).await?;
        let mut source = open(&self.0, step, &slots);
        let mut rows = Vec::new();
        while let Some(batch) = source.next().await? {
            rows.extend(batch.iter().map(<[Datum]>::to_vec));
        }
        Ok(rows)
    }

    /// The value of an expression over a row.
    pub(crate) fn value_over(&self, expr: &Expr, row: &[Datum]) -> Result<Datum, SqlError> {
        eval(expr, &row, &self.0.env(&[]))
    }

    /// The value of an expression without columns.
    pub(crate) fn value(&self, expr: &Expr) -> Result<Datum, SqlError> {
        self.0.value(expr, &[])
    }

    /// Looks whether rows that are there meet the one constraint of `writer`.
    pub(crate) async fn validate(&self, writer: &Writer, rows: &[&[Datum]]) -> Result<(), OpError> {
        let table = &writer.table.name;
        for some in rows.chunks(BATCH_ROWS) {
            for (name, check) in &writer.checks {
                for row in some {
                    let met = eval(check, row, &self.0.env(&[]));
                    if met.map_err(|error| of_domain(error, table, name))? == Datum::Bool(false) {
                        let message = format!(
                            "check constraint \"{name}\" of relation \"{table}\" is violated by \
                             some row"
                        );
                        return Err(SqlError::new(SqlState::CHECK, message)
                            .table(table)
                            .constraint(name)
                            .into());
                    }
                }
            }
            self.0.breathe(some.len()).await;
        }
        foreign::have_parents(&self.0, writer, rows).await
    }
}

/// The error of a row that does not meet a new condition of a domain: `name` has the column's name
/// behind a dollar sign.
fn of_domain(error: SqlError, table: &str, name: &str) -> SqlError {
    let Some(column) = name.strip_prefix('$') else {
        return error;
    };
    let what = match error.state() {
        SqlState::NOT_NULL => "null values",
        SqlState::CHECK => "values that violate the new constraint",
        _ => return error,
    };
    let message = format!("column \"{column}\" of table \"{table}\" contains {what}");
    SqlError::new(error.state(), message)
        .table(table)
        .column(column)
}

//! SHOW of facts about the cluster.

use super::Cx;
use base::{Datum, RowBatch, TableId};
use core::future::poll_fn;
use parse::show::Show;
use std::collections::BTreeMap;
use txn::OpError;

/// Rows by table from the answer to `Show::Rows`, and the number of shards that have answered.
pub fn row_counts(batch: &RowBatch) -> (BTreeMap<TableId, u64>, usize) {
    let (mut rows, mut answered) = (BTreeMap::new(), 0);
    for row in batch.iter() {
        match row {
            [Datum::Int(table), Datum::Int(count)] => {
                *rows.entry(TableId(*table as u32)).or_default() += *count as u64;
            }
            _ => answered += 1,
        }
    }
    (rows, answered)
}

pub(super) async fn fetch(cx: &Cx<'_>, what: Show) -> Result<RowBatch, OpError> {
    let mut ticket = None;
    poll_fn(|_| cx.port.poll_show(what, &mut ticket)).await
}

pub(super) async fn run(cx: &Cx<'_>, what: Show) -> Result<u64, OpError> {
    let batch = fetch(cx, what).await?;
    let rows = u64::from(batch.rows);
    cx.emit(batch).await;
    Ok(rows)
}

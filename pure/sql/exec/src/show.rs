//! SHOW of facts about the cluster.

use super::Cx;
use super::calls::sleep;
use base::{Datum, RowBatch, TableId};
use core::future::poll_fn;
use parse::show::Show;
use std::collections::BTreeMap;
use txn::OpError;

/// What shards have answered to `Show::Rows`.
#[derive(Default)]
pub struct RowCounts {
    /// Rows by table.
    pub rows: BTreeMap<TableId, u64>,
    /// Shards that have answered.
    pub answered: usize,
    /// How often shards have looked at the values of tables, summed up.
    pub looked_at: u64,
    /// Whether a shard is looking at values.
    pub looking: bool,
}

impl RowCounts {
    /// The answers of all shards.
    pub fn of(batch: &RowBatch) -> RowCounts {
        let mut counts = RowCounts::default();
        for row in batch.iter() {
            match row {
                [Datum::Int(table), Datum::Int(count), Datum::Int(version)] => {
                    let table = TableId(*table as u32);
                    *counts.rows.entry(table).or_default() += *count as u64;
                    counts.looked_at += *version as u64;
                }
                [_, _, looking] => {
                    counts.answered += 1;
                    counts.looking |= matches!(looking, Datum::Int(1));
                }
                _ => {}
            }
        }
        counts
    }
}

/// ANALYZE: lets all shards look at the values of their rows, and waits until they have.
pub(super) async fn analyze(cx: &Cx<'_>) -> Result<RowCounts, OpError> {
    const AGAIN_SECONDS: f64 = 0.005;
    let mut counts = RowCounts::of(&fetch(cx, Show::Analyze).await?);
    while counts.looking {
        sleep(cx, AGAIN_SECONDS).await;
        counts = RowCounts::of(&fetch(cx, Show::Rows).await?);
    }
    Ok(counts)
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

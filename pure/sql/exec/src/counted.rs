//! What all shards tell of their rows, asked before a statement is explained.

use super::Cx;
use super::show::{self, fetch};
use base::TableId;
use parse::show::Show;
use statistics::TableValues;
use std::collections::BTreeMap;
use std::sync::Arc;
use txn::OpError;

/// Rows of the tables of the session's database.
pub(super) struct RowCounts {
    pub(super) rows: BTreeMap<TableId, u64>,
    /// What is known of their values.
    pub(super) values: BTreeMap<TableId, Arc<TableValues>>,
    /// Shards that could not be asked.
    pub(super) missing: usize,
}

impl RowCounts {
    pub(super) async fn ask(cx: &Cx<'_>) -> Result<RowCounts, OpError> {
        let shards = cx.port.shards().len();
        let batch = fetch(cx, Show::Rows).await?;
        let show::RowCounts { rows, answered, .. } = show::RowCounts::of(&batch);
        let found = statistics::merged(&fetch(cx, Show::Values).await?);
        let values = found
            .into_iter()
            .map(|(table, values)| (table, Arc::new(values)));
        Ok(RowCounts {
            rows,
            values: values.collect(),
            missing: shards.saturating_sub(answered),
        })
    }

    /// Says that some are missing.
    pub(super) fn gap(&self) -> Option<String> {
        let missing = self.missing;
        (missing > 0).then(|| {
            format!("Row estimates without those of {missing} shards, which cannot be reached")
        })
    }
}

//! SHOW of facts about the cluster.

use super::Cx;
use crate::plan::OutColumn;
use crate::port::{ExecError, Show};
use base::{RowBatch, Type};
use core::future::poll_fn;

/// Columns of SHOW MEMORY: of a shard, and of its node.
const MEMORY: &[(&str, Type)] = &[
    ("shard", Type::Text),
    ("rows", Type::Int8),
    ("versions", Type::Int8),
    ("row_bytes", Type::Int8),
    ("locks", Type::Int8),
    ("statement_bytes", Type::Int8),
    ("node_journal_bytes", Type::Int8),
    ("node_used_bytes", Type::Int8),
    ("node_writes_until_bytes", Type::Int8),
    ("node_limit_bytes", Type::Int8),
];

/// Names and types of the columns that the node answers for each kind of SHOW.
pub fn show_columns(what: Show) -> Vec<OutColumn> {
    let columns: &[(&str, Type)] = match what {
        Show::Stages => &[
            ("shard", Type::Text),
            ("stage", Type::Text),
            ("instructions", Type::Int8),
            ("queue_max", Type::Int8),
            ("calls", Type::Int8),
            ("service_ns", Type::Int8),
        ],
        Show::Placement => &[
            ("table", Type::Text),
            ("index", Type::Text),
            ("shard", Type::Text),
            ("slots", Type::Int8),
            ("rows", Type::Int8),
            ("bytes", Type::Int8),
        ],
        Show::Ownership => &[
            ("shard", Type::Text),
            ("rows_away", Type::Int8),
            ("rows_here", Type::Int8),
            ("backups", Type::Int8),
            ("table_bytes", Type::Int8),
            ("moved_in", Type::Int8),
            ("moved_out", Type::Int8),
            ("in_per_second", Type::Int8),
            ("out_per_second", Type::Int8),
            ("rp_o", Type::Int8),
            ("r_po", Type::Int8),
            ("r_p_o", Type::Int8),
            ("refused", Type::Int8),
        ],
        Show::Hottest => &[
            ("table", Type::Text),
            ("index", Type::Text),
            ("key", Type::Text),
            ("home", Type::Text),
            ("owner", Type::Text),
            ("moves", Type::Int8),
        ],
        Show::Memory => MEMORY,
        Show::Nodes => &[
            ("node", Type::Int4),
            ("address", Type::Text),
            ("incarnation", Type::Int8),
            ("state", Type::Text),
            ("shards", Type::Int4),
        ],
        Show::Counters => &[("name", Type::Text), ("value", Type::Int8)],
        Show::Sessions => &[
            ("pid", Type::Int4),
            ("user", Type::Text),
            ("database", Type::Text),
            ("state", Type::Text),
            ("seconds", Type::Int8),
            ("statement", Type::Text),
        ],
        Show::InDoubt => &[
            ("shard", Type::Text),
            ("transaction", Type::Text),
            ("state", Type::Text),
            ("coordinator", Type::Int4),
            ("age_ms", Type::Int8),
            ("rows", Type::Int8),
            ("waiters", Type::Int8),
        ],
        Show::Sizes => &[("index", Type::Int8), ("bytes", Type::Int8)],
    };
    columns
        .iter()
        .map(|(name, ty)| OutColumn {
            name: (*name).to_string(),
            ty: *ty,
            table: 0,
            attribute: 0,
        })
        .collect()
}

pub(super) async fn fetch(cx: &Cx<'_>, what: Show) -> Result<RowBatch, ExecError> {
    let mut ticket = None;
    poll_fn(|_| cx.port.poll_show(what, &mut ticket)).await
}

pub(super) async fn run(cx: &Cx<'_>, what: Show) -> Result<u64, ExecError> {
    let batch = fetch(cx, what).await?;
    let rows = u64::from(batch.rows);
    cx.emit(batch).await;
    Ok(rows)
}

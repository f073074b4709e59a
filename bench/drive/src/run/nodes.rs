//! What each node of a cluster has done and holds, where the server tells (Trellis): the paper's
//! schedulability (section 4.4, figures 23 and 24).

use links::answers::Answers;
use links::link::{Link, LinkError};
use links::url::Target;
use std::collections::BTreeMap;
use std::time::Duration;

/// How long the server may take to tell.
const ANSWER_LIMIT: Duration = Duration::from_secs(10);

/// A node in the measured phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeLoad {
    /// Its number.
    pub node: i64,
    /// Rows that it has read or written in the measured phase.
    pub operations: u64,
    /// Memory of the rows that lie on it, in bytes, at the end.
    pub row_bytes: u64,
}

/// A number for each node.
pub(super) type ByNode = BTreeMap<i64, i64>;

/// Rows that each node has read or written since it started; empty: the server did not tell.
pub(super) fn operations(target: &Target) -> ByNode {
    let rows = ask(target, "SHOW STAGES", |answers, row| {
        let is_store = answers.text(0, row, 2) == "store";
        is_store.then(|| (answers.int(0, row, 0), answers.int(0, row, 5)))
    });
    rows.unwrap_or_default()
}

/// Memory of the rows on each node; empty: the server did not tell.
fn row_bytes(target: &Target) -> ByNode {
    let rows = ask(target, "SHOW PLACEMENT", |answers, row| {
        Some((node_of(answers.text(0, row, 2)), answers.int(0, row, 5)))
    });
    rows.unwrap_or_default()
}

/// The node of a shard such as `n2.0`.
fn node_of(shard: &str) -> Option<i64> {
    let (node, _) = shard.strip_prefix('n')?.split_once('.')?;
    node.parse().ok()
}

type Cell = (Option<i64>, Option<i64>);

/// The sums by node of the rows of which `cell` tells a node and a number.
fn ask(
    target: &Target,
    question: &str,
    cell: impl Fn(&Answers, usize) -> Option<Cell>,
) -> Result<ByNode, LinkError> {
    let mut link = Link::connect_any(target, Some(ANSWER_LIMIT))?;
    let mut answers = Answers::new();
    link.query(question, &mut answers)?;
    link.close();
    let mut sums = ByNode::new();
    let cells = (0..answers.rows(0)).filter_map(|row| cell(&answers, row));
    for (node, number) in cells {
        let Some((node, number)) = node.zip(number) else {
            continue;
        };
        *sums.entry(node).or_default() += number;
    }
    Ok(sums)
}

/// The nodes by two readings of their operations; none if an answer is missing, or a node was away
/// or has started anew.
pub(super) fn loads(target: &Target, before: &ByNode, after: &ByNode) -> Vec<NodeLoad> {
    if before.is_empty() || !before.keys().eq(after.keys()) {
        return Vec::new();
    }
    between(before, after, &row_bytes(target))
}

fn between(before: &ByNode, after: &ByNode, bytes: &ByNode) -> Vec<NodeLoad> {
    let nodes = before.iter().map(|(node, before)| {
        let done = after.get(node)? - before;
        Some(NodeLoad {
            node: *node,
            operations: u64::try_from(done).ok()?,
            row_bytes: bytes.get(node).map_or(0, |bytes| (*bytes).max(0) as u64),
        })
    });
    nodes.collect::<Option<Vec<NodeLoad>>>().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_that_has_started_anew_makes_loads_useless() {
        let before = ByNode::from([(1, 10), (2, 20)]);
        let after = ByNode::from([(1, 15), (2, 80)]);
        let bytes = ByNode::from([(1, 1_000)]);
        let loads = between(&before, &after, &bytes);
        let told: Vec<(i64, u64, u64)> = loads
            .iter()
            .map(|it| (it.node, it.operations, it.row_bytes))
            .collect();
        assert_eq!(told, [(1, 5, 1_000), (2, 60, 0)]);
        assert!(between(&after, &before, &bytes).is_empty());
        assert!(between(&before, &ByNode::from([(1, 15)]), &bytes).is_empty());
        assert_eq!(["n12.3", "x", "n.1"].map(node_of), [Some(12), None, None]);
    }
}

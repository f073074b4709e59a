//! Statements that are transactions of their own and read one moment without locks
//! (docs/adr/0015-reads-of-one-statement.md).

use crate::core::Core;
use crate::message::RunRequest;
use base::{Planted, is_planted};
use sql::plan::Reads;

/// Whether the statement that is asked for reads a snapshot, whatever its level; `begins`: its
/// transaction begins with it.
///
/// It is all of its transaction, its plan does nothing but read ranges, and all rows are on this
/// shard: one timestamp of its clock is one moment there. What was answered before lies at or below
/// it, what commits later above.
pub(super) fn reads_one_moment(core: &Core, begins: bool, request: &RunRequest) -> bool {
    let alone = request.autocommit || is_planted(Planted::OneMomentInBlock);
    let one_shard = core.catalog.placement.shards().len() == 1;
    begins && alone && request.plan.reads == Reads::Ranges && one_shard
}

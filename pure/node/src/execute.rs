//! Executes the plan of a statement: at once if it is one operation on a free local row, else as a
//! future. If a shard asks for that, executes it again at a later snapshot.

use crate::core::clocks_suffice;
use crate::port::StatementPort;
use crate::snapshot::Held;
use crate::txns::Gate;
use base::{Planted, RowBatch, SqlError, SqlState, Tag, Ts, is_planted};
use exec::port::{OpFuture, Params};
use exec::{Fast, Port, Running};
use plan::{Adopt, Plan, PlanKind};
use session::message::FromTxn;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use txn::{AbortReason, Op, OpError, OpResult, Savepoint, Snapshot};

/// A statement that was started.
pub(crate) enum Start {
    Over(Result<Tag, OpError>),
    Running(Running),
}

/// Executes a statement again at a snapshot at or above `at`. The second time it asks all shards
/// for their clocks, so there is no third time.
pub(crate) fn execute_raised(
    plan: Arc<Plan>,
    params: Params,
    port: Rc<StatementPort>,
    at: Ts,
) -> Running {
    Box::pin(async move {
        let latest = poll_fn(|_| port.poll_drained()).await;
        port.restarts.set(port.restarts.get() + 1);
        let Some(held) = port.held() else {
            // The protocol reads at a later timestamp by itself.
            return execute(plan, params, port).await;
        };
        let at = held.at.max(at).max(latest);
        let mut raised = Held { at, ..held };
        if port.restarts.get() > 1 || clocks_suffice(port.txn.protocol) {
            raised = raise_to_clocks(&port, raised).await?;
        }
        port.hold(raised);
        execute(plan, params, port).await
    })
}

/// A statement to be started; the first part: its transaction begins with it.
type Work = (bool, Arc<Plan>, Params, Rc<StatementPort>);

/// Starts a statement, unless the transaction has used a table that is not there any more.
pub(crate) fn start_checked((begins, plan, params, port): Work) -> Start {
    let lost = !begins && port.txn.used.has_lost_table(&port.database);
    if lost || (port.txn.snapshot.get().is_some() && port.txn.used.reads_newer(&plan)) {
        Start::Over(Err(OpError::Aborted(AbortReason::SchemaChanged(None))))
    } else if begins && port.asks_for_clocks() {
        Start::Running(start_exact(plan, params, port))
    } else {
        start(plan, params, port)
    }
}

/// As [`start_checked`], once the statement is admitted.
pub(crate) fn start_later(gate: Rc<Gate>, work: Work) -> Running {
    Box::pin(async move {
        let mut asked = false;
        poll_fn(|_| gate.poll(&work.3, &mut asked)).await;
        match start_checked(work) {
            Start::Over(result) => result,
            Start::Running(future) => future.await,
        }
    })
}

/// Executes the first statement of a transaction whose snapshot is to miss nothing.
fn start_exact(plan: Arc<Plan>, params: Params, port: Rc<StatementPort>) -> Running {
    Box::pin(async move {
        let held = port.held().expect("the transaction has a snapshot");
        let raised = raise_to_clocks(&port, held).await?;
        port.hold(raised);
        execute(plan, params, port).await
    })
}

/// Draws the snapshot of a batch of the node's own work, which no shard refuses later where the
/// protocol refuses every snapshot that did not ask for clocks.
pub(crate) async fn settle_batch(port: &StatementPort) -> Result<(), OpError> {
    if port.locks_table.get() || !clocks_suffice(port.txn.protocol) {
        return Ok(());
    }
    port.statement_snapshot();
    match port.held() {
        Some(held) if !held.exact => port.hold(raise_to_clocks(port, held).await?),
        _ => {}
    }
    Ok(())
}

/// Raises a snapshot to the largest clock of all shards that can be reached. If those are all
/// shards, the reader misses nothing: a shard that answered a commit before had a clock above it.
/// Else a protocol whose shards do not note what they told readers checks each row.
async fn raise_to_clocks(port: &StatementPort, held: Held) -> Result<Held, OpError> {
    let planned = port.catalog().version;
    let mut raised = Held {
        exact: true,
        guarded: false,
        ..held
    };
    let mut asked = Vec::new();
    for shard in port.shards().iter() {
        if port.is_unreachable(*shard) {
            raised.exact = false;
            raised.guarded = clocks_suffice(port.txn.protocol);
            continue;
        }
        let op = Op::Clock(Snapshot::recent(held.at, held.since));
        asked.push(OpFuture::start(port, *shard, planned, op, false));
    }
    for answer in asked {
        let OpResult::Clock(clock) = answer.await? else {
            unreachable!("a shard that is asked for its clock tells it")
        };
        if !is_planted(Planted::SnapshotNotRaised) {
            raised.at = raised.at.max(clock);
        }
    }
    Ok(raised)
}

/// Runs a plan to its end.
async fn execute(plan: Arc<Plan>, params: Params, port: Rc<StatementPort>) -> Result<Tag, OpError> {
    match start(plan, params, port) {
        Start::Over(result) => result,
        Start::Running(future) => future.await,
    }
}

/// Starts a plan. A statement of one free local row ends at once.
fn start(plan: Arc<Plan>, params: Params, port: Rc<StatementPort>) -> Start {
    match &plan.kind {
        PlanKind::Run(_) => {}
        PlanKind::Adopt(it) => return Start::Running(Box::pin(adopt((**it).clone(), port))),
        PlanKind::Savepoint(it) => return Start::Running(Box::pin(save(*it, port))),
        PlanKind::Constraints(set) => {
            let (names, deferred) = (set.names.clone(), set.deferred);
            return Start::Running(Box::pin(async move {
                exec::deferred::set_constraints(port, names.as_deref(), deferred).await?;
                Ok(Tag::Word("SET CONSTRAINTS"))
            }));
        }
        PlanKind::Session(_)
        | PlanKind::Ddl(_)
        | PlanKind::Nothing(_)
        | PlanKind::Lock(_)
        | PlanKind::CreateAs(_)
        | PlanKind::Refresh(_) => {
            unreachable!("they do not reach a transaction")
        }
    }
    match exec::execute_fast(&plan, &params, &*port) {
        None => Start::Running(exec::execute(plan, params, port)),
        Some(Err(error)) => Start::Over(Err(error)),
        Some(Ok(Fast::Done(rows, tag))) => {
            hand_over(&port, rows);
            Start::Over(Ok(tag))
        }
        Some(Ok(Fast::Pending(wait))) => Start::Running(Box::pin(async move {
            let (rows, tag) = wait.wait(plan, params, port.clone()).await?;
            hand_over(&port, rows);
            Ok(tag)
        })),
    }
}

/// Sets a savepoint, or goes back to one, on all shards on which the transaction may have written.
/// Operations of statements that were cut off come first.
async fn save(savepoint: Savepoint, port: Rc<StatementPort>) -> Result<Tag, OpError> {
    port.txn.deferred.borrow_mut().save(savepoint);
    port.txn.descriptors.borrow_mut().save(savepoint);
    let _ = poll_fn(|_| port.poll_drained()).await;
    let planned = port.catalog().version;
    tell_written(&port, planned, savepoint).await?;
    Ok(Tag::Word(match savepoint {
        Savepoint::Set { .. } => "SAVEPOINT",
        Savepoint::RollBackTo(_) => "ROLLBACK",
        Savepoint::Renew { .. } => ADOPTED,
    }))
}

/// The tag of what a session does for its schema changes.
const ADOPTED: &str = "COMMIT";

/// Tells all shards on which the transaction may have written. What it has queued for them goes
/// first.
async fn tell_written(
    port: &StatementPort,
    planned: u64,
    savepoint: Savepoint,
) -> Result<(), OpError> {
    let shards = port.shards_written().into_iter();
    let asked: Vec<OpFuture<'_>> = shards
        .map(|shard| OpFuture::start(port, shard, planned, Op::Savepoint(savepoint), false))
        .collect();
    for done in asked {
        done.await?;
    }
    Ok(())
}

/// Has what the transaction has written before schema changes of its session go on to be right, and
/// writes the row that tells of its commit.
async fn adopt(adopt: Adopt, port: Rc<StatementPort>) -> Result<Tag, OpError> {
    let Adopt { renewed, marker } = adopt;
    let _ = poll_fn(|_| port.poll_drained()).await;
    let planned = port.catalog().version;
    for renew in renewed {
        tell_written(&port, planned, renew).await?;
    }
    if let Some(marker) = marker
        && !exec::fill::decide(&*port, marker, true).await?
    {
        let message = "the schema changes of the transaction were undone";
        return Err(SqlError::new(SqlState::OBJECT_NOT_READY, message)
            .hint("Run the whole transaction again.")
            .into());
    }
    Ok(Tag::Word(ADOPTED))
}

/// Sends the one row of a point statement, without credit.
fn hand_over(port: &StatementPort, rows: Option<RowBatch>) {
    if let Some(rows) = rows {
        let message = FromTxn::Rows(port.statement, rows, port.txn.wait.get());
        port.events
            .borrow_mut()
            .to_sessions
            .push_back((port.handle, message));
    }
}

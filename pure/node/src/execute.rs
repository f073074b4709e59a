//! Executing the plan of a statement: at once if it is one operation on a free local row, else as a
//! future; once more at a later snapshot if a shard asks for that.

use crate::message::FromTxn;
use crate::port::StatementPort;
use crate::protocols::clocks_suffice;
use crate::snapshot::{Held, raise_to_clocks};
use crate::txns::Running;
use base::{RowBatch, Ts};
use exec::port::{ExecError, Params};
use exec::{Completed, Fast};
use plan::{Plan, PlanKind};
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;

/// A statement that has been started.
pub(crate) enum Start {
    Over(Result<Completed, ExecError>),
    Running(Running),
}

/// Executes a statement again at a snapshot that is at least `at`. The second time it asks all
/// shards for their clocks, so that there is no third time.
pub(crate) fn execute_raised(
    plan: Arc<Plan>,
    params: Params,
    port: Rc<StatementPort>,
    at: Ts,
) -> Running {
    Box::pin(async move {
        let latest = poll_fn(|_| port.poll_drained()).await;
        port.restarts.set(port.restarts.get() + 1);
        let held = port.held().expect("only a snapshot is raised");
        let at = held.at.max(at).max(latest);
        let mut raised = Held { at, ..held };
        if port.restarts.get() > 1 || clocks_suffice(port.txn.protocol) {
            raised = raise_to_clocks(&port, raised).await?;
        }
        port.hold(raised);
        execute(plan, params, port).await
    })
}

/// Executes the first statement of a transaction whose snapshot is to miss nothing.
pub(crate) fn start_exact(plan: Arc<Plan>, params: Params, port: Rc<StatementPort>) -> Running {
    Box::pin(async move {
        let held = port.held().expect("the transaction has a snapshot");
        let raised = raise_to_clocks(&port, held).await?;
        port.hold(raised);
        execute(plan, params, port).await
    })
}

/// Runs a plan to its end.
async fn execute(
    plan: Arc<Plan>,
    params: Params,
    port: Rc<StatementPort>,
) -> Result<Completed, ExecError> {
    match start(plan, params, port) {
        Start::Over(result) => result,
        Start::Running(future) => future.await,
    }
}

/// Starts a plan; a statement that touches one free local row is over at once.
pub(crate) fn start(plan: Arc<Plan>, params: Params, port: Rc<StatementPort>) -> Start {
    assert!(
        matches!(plan.kind, PlanKind::Run(_)),
        "only Run plans reach a transaction"
    );
    match exec::execute_fast(&plan, &params, &*port) {
        None => Start::Running(exec::execute(plan, params, port)),
        Some(Err(error)) => Start::Over(Err(error)),
        Some(Ok(Fast::Done(rows, completed))) => {
            hand_over(&port, rows);
            Start::Over(Ok(completed))
        }
        Some(Ok(Fast::Pending(wait))) => Start::Running(Box::pin(async move {
            let (rows, completed) = wait.wait(plan, params, port.clone()).await?;
            hand_over(&port, rows);
            Ok(completed)
        })),
    }
}

/// Sends the one row of a point statement; it needs no credit.
fn hand_over(port: &StatementPort, rows: Option<RowBatch>) {
    if let Some(rows) = rows {
        let message = FromTxn::Rows(port.statement, rows, port.txn.wait.get());
        port.events
            .borrow_mut()
            .to_sessions
            .push_back((port.handle, message));
    }
}

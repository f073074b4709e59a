//! One batch of a schema change's work over existing rows, as a transaction of the node.

use crate::execute::settle_batch;
use crate::port::StatementPort;
use base::Tag;
use exec::Running;
use exec::fill::FillPosition;
pub(crate) use exec::fill::Work;
use std::cell::RefCell;
use std::rc::Rc;

/// Runs the batch that begins at `position`, and leaves the beginning of the next one in `next`.
pub(crate) fn batch(
    port: Rc<StatementPort>,
    work: Work,
    position: Option<FillPosition>,
    next: Rc<RefCell<Option<FillPosition>>>,
) -> Running {
    Box::pin(async move {
        // A decision needs one row, and waits for no other node.
        if !matches!(work, Work::Decide(_)) {
            settle_batch(&port).await?;
        }
        let found = exec::fill::batch(port, &work, position).await?;
        *next.borrow_mut() = found;
        Ok(Tag::Word("FILL"))
    })
}

//! What others ask of transactions: whose they are, and what they have cost.

use super::{INTERNAL, Txns};
use crate::port::TxnShared;
use crate::show::Shows;
use base::TxnId;
use session::message::EndCost;
use std::cell::RefCell;
use txn::TxnCost;

impl Txns {
    /// The open transactions of clients, with the backend numbers of their sessions.
    pub(crate) fn sessions(&self) -> impl Iterator<Item = (TxnId, i32)> {
        let open = self.by_handle.iter();
        let of_clients = open.filter(|(handle, _)| handle.conn != INTERNAL);
        of_clients.map(|(handle, txn)| {
            let pid = session::pid_of(handle.session, handle.conn);
            (txn.shared.id, pid)
        })
    }
}

/// Writes what a transaction has cost, if its session wants to know.
pub(super) fn write_cost(
    place: Option<Box<EndCost>>,
    shared: &TxnShared,
    cost: TxnCost,
) -> Option<Box<EndCost>> {
    let mut place = place?;
    *place = EndCost {
        cost,
        nodes_touched: shared.touched.count() as u32,
        moves_rows: shared.protocol.moves_rows(),
    };
    Some(place)
}

/// Tells the keeper of advisory locks that a transaction has ended that has asked it.
pub(super) fn tell_keeper(shows: &RefCell<Shows>, shared: &TxnShared) {
    if let Some((keeper, session)) = shared.asked_keeper.get() {
        let ended = advisory::Together::TxnEnded {
            session,
            txn: shared.id,
            undone: shared.undone.get(),
        };
        shows.borrow_mut().advisory.to_send.push((keeper, ended));
    }
}

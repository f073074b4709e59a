//! Open transactions of a database that closes.

use super::give_way::Ended;
use super::{Commit, INTERNAL, Txns};
use base::DatabaseId;
use session::message::TxnHandle;
use txn::{AbortReason, OpError};

impl Txns {
    /// Open transactions of clients in a database.
    pub(crate) fn open_in(&self, database: DatabaseId) -> usize {
        let open = self.by_handle.iter().filter(|(handle, txn)| {
            handle.conn != INTERNAL && txn.shared.database == database && txn.ended.is_none()
        });
        open.count()
    }

    /// Rolls back the open transactions of a database that do not commit.
    pub(crate) fn end_all(&mut self, database: DatabaseId) {
        let open = self.by_handle.iter().filter(|(handle, txn)| {
            handle.conn != INTERNAL
                && txn.shared.database == database
                && txn.ended.is_none()
                && matches!(txn.commit, Commit::NotYet)
        });
        let open: Vec<TxnHandle> = open.map(|(handle, _)| *handle).collect();
        for handle in open {
            let statements = &self.by_handle[&handle].statements;
            let running = statements.iter().find(|(_, s)| s.future.is_some());
            match running.map(|(number, _)| *number) {
                Some(number) => {
                    let failure = OpError::Aborted(AbortReason::SchemaChanged(None));
                    self.end_statement(handle, number, Err(failure));
                }
                None => {
                    self.abort(handle);
                    self.note_ended(handle, Ended::aborted(AbortReason::SchemaChanged(None)));
                }
            }
        }
    }
}

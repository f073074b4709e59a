//! What a shard notes of its stages, and tells in SHOW STAGES.

use super::Shard;
use crate::stages::{Host, Now, Stage};
use base::RowBatch;

impl Shard {
    /// Notes how long the queues are that some of the steps leave.
    #[inline]
    pub(super) fn note_queues(&mut self) {
        if self.stages.wants_look() {
            self.look_at_queues();
        }
    }

    #[cold]
    fn look_at_queues(&mut self) {
        let core = self.core.borrow();
        self.stages.turn(core.now);
        let operations = core.protocols.waiting_count();
        self.stages.queue(Stage::Transaction, operations);
        self.stages.queue(Stage::Execute, self.txns.waiting_count());
    }

    /// This shard's part of SHOW STAGES.
    pub(super) fn stage_rows(&mut self) -> RowBatch {
        let core = self.core.borrow();
        let sessions = self.conns.iter().filter_map(|conn| self.sessions.get(conn));
        let waiting = sessions.map(|session| session.waiting());
        let now = Now {
            sessions: waiting.sum::<usize>() as u64,
            statements: self.txns.waiting_count() as u64,
            operations: core.protocols.waiting_count() as u64,
            planned: self.plans.planned(),
            potential: self.txns.mean_potential(core.now),
        };
        self.stages.rows(&core, &now)
    }

    /// Gives the shard what tells of its host's stages, for SHOW STAGES.
    pub fn set_host(&mut self, host: Box<dyn Host>) {
        self.stages.set_host(host);
    }
}

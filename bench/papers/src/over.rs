//! What is cleared when a signal ends the process, unless that is over by then.

use local_cluster::at_interrupt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether what was started has been cleared already. So it is when this is dropped.
#[derive(Debug, Default)]
pub(crate) struct Over(Arc<AtomicBool>);

impl Over {
    /// Does this when a signal ends the process, unless it is over. Somebody must watch for signals
    /// ([`local_cluster::Interrupt`]).
    pub(crate) fn or_at_interrupt(&self, clear: impl FnOnce() + Send + 'static) {
        let is_over = self.0.clone();
        at_interrupt(move || {
            if !is_over.load(Ordering::SeqCst) {
                clear();
            }
        });
    }

    /// Nothing is left to clear.
    pub(crate) fn note(&self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

impl Drop for Over {
    fn drop(&mut self) {
        self.note();
    }
}

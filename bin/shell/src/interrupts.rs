//! What Ctrl-C means: it cancels the statement that runs, ends a wait of the client, is left to the
//! program that has the terminal, or ends the client.

use links::raw::{CancelKey, cancel};
use links::url::Endpoint;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Shared by the client and the thread that hears of Ctrl-C.
#[derive(Clone, Default)]
pub(crate) struct Interrupts(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    /// Where the statement that runs can be canceled.
    running: Option<(Endpoint, CancelKey)>,
    /// Somebody looks at `hit`, or another program has the terminal.
    held: bool,
    hit: bool,
}

impl Interrupts {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says which statement runs, if any does.
    pub(crate) fn set_running(&self, running: Option<(Endpoint, CancelKey)>) {
        self.state().running = running;
    }

    /// From now on Ctrl-C does not end the client, until [`Interrupts::release`].
    pub(crate) fn hold(&self) {
        let mut state = self.state();
        state.held = true;
        state.hit = false;
    }

    /// Whether Ctrl-C came since [`Interrupts::hold`].
    pub(crate) fn was_hit(&self) -> bool {
        self.state().hit
    }

    pub(crate) fn release(&self) {
        self.state().held = false;
    }

    /// Ctrl-C has come; whether anybody had a use for it.
    pub(crate) fn hit(&self) -> bool {
        let mut state = self.state();
        state.hit = true;
        if let Some((endpoint, key)) = &state.running {
            // If the server cannot be reached the statement fails by itself.
            let _ = cancel(endpoint, *key);
            return true;
        }
        state.held
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_hears_of_it_and_nobody_else() {
        let interrupts = Interrupts::default();
        assert!(!interrupts.hit(), "nobody waits");
        interrupts.hold();
        assert!(!interrupts.was_hit(), "what came before is forgotten");
        assert!(interrupts.hit() && interrupts.was_hit());
        interrupts.release();
        assert!(!interrupts.hit());
    }
}

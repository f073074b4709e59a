//! What Ctrl-C does while child processes run.

use anyhow::{Context, Result};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Exit code of a command that Ctrl-C ended, as shells count: 128 and the number of SIGINT.
const INTERRUPTED: i32 = 130;
/// Nodes must have ended so long after they were told.
const STOP_TIMEOUT: Duration = Duration::from_secs(20);

/// What else is to be done before the process ends.
static OTHERS: Mutex<Vec<Box<dyn FnOnce() + Send>>> = Mutex::new(Vec::new());

/// Does this, too, when a signal ends the process that somebody watches for.
pub fn at_interrupt(clear: impl FnOnce() + Send + 'static) {
    let mut others = OTHERS.lock().unwrap_or_else(PoisonError::into_inner);
    others.push(Box::new(clear));
}

/// Ends the process, with all that belongs to it, when SIGINT or SIGTERM arrives.
#[derive(Clone)]
pub struct Interrupt {
    arrived: Arc<AtomicBool>,
}

impl Interrupt {
    /// From now on a signal ends the nodes whose data lies in `dir`, removes the directory if
    /// `remove`, and ends the process with code 130.
    pub fn watch(dir: &Path, remove: bool) -> Result<Interrupt> {
        let mut signals = Signals::new([SIGINT, SIGTERM]).context("cannot listen for signals")?;
        let dir = dir.to_path_buf();
        let interrupt = Interrupt {
            arrived: Arc::default(),
        };
        let arrived = interrupt.arrived.clone();
        std::thread::spawn(move || {
            if signals.forever().next().is_some() {
                arrived.store(true, Ordering::SeqCst);
                // Until the process ends: of several that watch, one does it.
                let mut others = OTHERS.lock().unwrap_or_else(PoisonError::into_inner);
                others.drain(..).for_each(|clear| clear());
                for pid in crate::nodes::pids(&dir) {
                    // It may have ended in the meantime; the wait below tells.
                    let _ = crate::processes::terminate(pid);
                }
                crate::nodes::wait_ended(&dir, STOP_TIMEOUT);
                if remove {
                    // The process ends either way.
                    let _ = std::fs::remove_dir_all(&dir);
                }
                std::process::exit(INTERRUPTED);
            }
        });
        Ok(interrupt)
    }

    /// Whether a signal has arrived.
    pub fn has_arrived(&self) -> bool {
        self.arrived.load(Ordering::SeqCst)
    }

    /// Waits for the end of the process if a signal has arrived: what failed since then failed
    /// because of it, and nobody wants to read it.
    pub fn give_way(&self) {
        while self.has_arrived() {
            std::thread::park();
        }
    }
}

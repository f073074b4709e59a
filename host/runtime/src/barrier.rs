//! What a panic does: it ends the process, but for one of parsing or planning a statement, which
//! ends that statement (`session::barrier`).
//!
//! A node without one of its threads would limp on with half of its promises, so nothing else
//! unwinds: the hook prints the panic and aborts. This is the one place of the product that
//! catches a panic; `cargo xtask tidy` knows it.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind, set_hook, take_hook};
use std::sync::Once;

/// Longest part of a statement that is logged, in characters.
const STATEMENT_CHARS_MAX: usize = 500;

thread_local! {
    /// This thread is behind the barrier.
    static BEHIND: Cell<bool> = const { Cell::new(false) };
    /// What the panic behind the barrier said, and where.
    static SAID: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Runs `work` and stops a panic in it ([`node::Barrier`]).
pub(crate) fn barrier(statement: &str, work: &mut dyn FnMut()) -> Result<(), String> {
    BEHIND.set(true);
    // The work changes nothing that outlives it: a half-done plan is dropped as a whole.
    let result = catch_unwind(AssertUnwindSafe(work));
    BEHIND.set(false);
    let Err(payload) = result else {
        return Ok(());
    };
    let said = SAID.take();
    let said = said.unwrap_or_else(|| text_of(&*payload).to_owned());
    let statement = shortened(statement);
    tracing::error!("panic in planning answered with XX000: {said}; in: {statement}");
    Err(said)
}

/// From now on a panic of any thread of this process ends the process, but for one behind the
/// barrier.
pub fn end_on_panic() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let print = take_hook();
        set_hook(Box::new(move |panic| {
            if !is_stopped(panic) {
                print(panic);
                std::process::abort();
            }
        }));
    });
}

/// Notes what a panic behind the barrier says. A second one, from a destructor that runs because
/// of the first, cannot be stopped.
fn is_stopped(panic: &PanicHookInfo<'_>) -> bool {
    if !BEHIND.try_with(Cell::get).unwrap_or(false) {
        return false;
    }
    let place = panic.location().map_or(String::new(), |place| {
        format!(" ({}:{})", place.file(), place.line())
    });
    let text = text_of(panic.payload());
    SAID.with_borrow_mut(|said| {
        let first = said.is_none();
        said.get_or_insert_with(|| format!("{text}{place}"));
        first
    })
}

fn text_of(payload: &(dyn Any + Send)) -> &str {
    let fixed = payload.downcast_ref::<&str>().copied();
    let made = payload.downcast_ref::<String>().map(String::as_str);
    fixed.or(made).unwrap_or("a panic without a text")
}

fn shortened(statement: &str) -> String {
    match statement.char_indices().nth(STATEMENT_CHARS_MAX) {
        None => statement.to_owned(),
        Some((end, _)) => format!("{}... ({} bytes)", &statement[..end], statement.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_a_text_with_its_place_and_the_thread_goes_on() {
        end_on_panic();
        for round in 0..3 {
            let list: Vec<usize> = (0..2).collect();
            let at = list.len() + round;
            let mut sum = 0;
            let said = barrier("SELECT 1", &mut || sum += list[at]);
            let said = said.expect_err("the index is out of bounds");
            let expected = format!("index out of bounds: the len is 2 but the index is {at} (");
            assert!(said.starts_with(&expected), "{said}");
            assert!(said.contains("barrier.rs:"), "{said}");
            assert_eq!(barrier("SELECT 1", &mut || sum += 1), Ok(()));
            assert_eq!(sum, 1);
        }
    }

    #[test]
    fn long_statements_are_cut_between_characters() {
        assert_eq!(shortened("SELECT 1"), "SELECT 1");
        let long = "ä".repeat(600);
        let expected = format!("{}... (1200 bytes)", "ä".repeat(500));
        assert_eq!(shortened(&long), expected);
    }
}

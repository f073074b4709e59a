//! The barrier behind which a statement is parsed, bound and planned.
//!
//! That work takes a text and a catalog and gives a plan. It changes nothing of the machine, so a
//! bug in it need not end the node: the host gives a function that runs the work and stops a panic.
//! The session answers XX000 and goes on. Nothing else runs behind the barrier.

use base::{SqlError, SqlState};

/// Runs `work` for `statement`, once. `Err`: it panicked, and the text tells the client what
/// happened and where. The host has logged that with the statement.
pub type Barrier = fn(statement: &str, work: &mut dyn FnMut()) -> Result<(), String>;

/// Lets a panic through, for simulator and tests, where a bug is to be seen at once.
///
/// # Errors
/// None.
pub fn let_through(_statement: &str, work: &mut dyn FnMut()) -> Result<(), String> {
    work();
    Ok(())
}

/// The result of `work`, or XX000 if it panicked.
pub fn behind<T>(
    barrier: Barrier,
    statement: &str,
    work: impl FnOnce() -> Result<T, SqlError>,
) -> Result<T, SqlError> {
    let mut work = Some(work);
    let mut result = None;
    let passed = barrier(statement, &mut || {
        let work = work.take().expect("a barrier runs its work once");
        result = Some(work());
    });
    match passed {
        Ok(()) => result.expect("a barrier runs its work"),
        Err(text) => {
            let error = SqlError::new(SqlState::INTERNAL, format!("internal error: {text}"));
            let detail = "The statement was not run; the log of the node has more.";
            Err(error.detail(detail))
        }
    }
}

//! The barrier behind which a statement is parsed, bound and planned.
//!
//! That work takes a text and a catalog and gives a plan. It changes nothing of the machine, so a
//! bug in it need not end the node: the host gives a function that runs the work, and stops a
//! panic there. The session answers XX000 and goes on. Nothing else runs behind it.

use base::{SqlError, SqlState};

/// Runs `work`, which is about `statement`, once. `Err`: it panicked; the text says what and
/// where, for the client. The host has logged it together with the statement.
pub type Barrier = fn(statement: &str, work: &mut dyn FnMut()) -> Result<(), String>;

/// Lets a panic through: where a bug is to be seen at once, as in the simulator and in tests.
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

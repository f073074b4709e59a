//! One counter that everybody adds to.

use crate::wire::{Connection, Done, Ending, Failure, ParamType, Session};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

pub(super) const TABLE: &str = "CREATE TABLE counter (id integer PRIMARY KEY, v bigint NOT NULL)";
pub(super) const ROW: &str = "INSERT INTO counter VALUES (1, 0)";

/// Reads the counter: every acknowledged increment is in it.
pub const READ: &str = "SELECT v FROM counter WHERE id = 1";

pub(super) fn statements() -> Vec<(String, Vec<ParamType>)> {
    let add = "UPDATE counter SET v = v + 1 WHERE id = 1";
    vec![
        (add.to_string(), vec![]),
        (format!("{add} RETURNING v"), vec![]),
    ]
}

/// One attempt: a statement that commits by itself.
pub(super) async fn execute<C: Connection>(
    session: &mut Session<C>,
    returning: bool,
) -> Result<Done, Failure<C::Error>> {
    session.commits_itself();
    session.bind(usize::from(returning)).send();
    session.round().await?;
    match session.answers.affected(0) {
        1 => Ok(Done {
            ending: Ending::Committed,
            units: 1,
            skipped: 0,
        }),
        other => Err(Failure::Wrong(format!("{other} counters were found"))),
    }
}

//! Counters: one to which all clients add, and one of each home beside it.
//!
//! A transaction that adds to its own counter first runs where its client is; the common counter is
//! remote to all but one node.

use crate::wire::{Connection, Done, Failure, ParamType, Session};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

pub(super) const TABLE: &str = "CREATE TABLE counter (id integer PRIMARY KEY, v bigint NOT NULL)";

/// Reads the common counter: every acknowledged increment is in it.
pub const READ: &str = "SELECT v FROM counter WHERE id = 0";

/// Makes the common counter and those of the homes.
pub(super) fn rows(homes: &[Vec<u32>]) -> String {
    let rows = homes.iter().flatten().map(|home| format!(", ({home}, 0)"));
    format!(
        "INSERT INTO counter VALUES (0, 0){}",
        rows.collect::<String>()
    )
}

const BEGIN: usize = 0;
const ADD: usize = 1;
const ADD_RETURNING: usize = 2;
const COMMIT: usize = 3;

pub(super) fn statements() -> Vec<(String, Vec<ParamType>)> {
    let add = "UPDATE counter SET v = v + 1 WHERE id = $1";
    vec![
        ("BEGIN ISOLATION LEVEL SERIALIZABLE".to_string(), vec![]),
        (add.to_string(), vec![ParamType::Int]),
        (format!("{add} RETURNING v"), vec![ParamType::Int]),
        ("COMMIT".to_string(), vec![]),
    ]
}

/// One attempt, in one round; without a home it is one statement that commits by itself.
pub(super) async fn execute<C: Connection>(
    session: &mut Session<C>,
    home: Option<u32>,
    returning: bool,
) -> Result<Done, Failure<C::Error>> {
    let common = if returning { ADD_RETURNING } else { ADD };
    let at = match home {
        Some(home) => {
            session.bind(BEGIN).send();
            session.bind(ADD).int(home).send();
            session.bind(common).int(0).send();
            session.commits_block();
            session.bind(COMMIT).send();
            2
        }
        None => {
            session.commits_itself();
            session.bind(common).int(0).send();
            0
        }
    };
    session.round().await?;
    match session.answers.affected(at) {
        1 => Ok(Done::committed(1)),
        other => Err(Failure::Wrong(format!("{other} counters were found"))),
    }
}

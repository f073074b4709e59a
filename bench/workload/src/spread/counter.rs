//! Counters: one to which all clients add, and one of each home beside it.
//!
//! A transaction that adds to its own counter first runs where its client is; the common counter is
//! remote to all but one node.
//!
//! In the load of a hot and a cold counter the hot one is that of the first home, and the cold one
//! is always on another node: every transaction changes two nodes.

use crate::wire::{Connection, Done, Failure, ParamType, Session};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

pub(super) const TABLE: &str = "CREATE TABLE counter (id integer PRIMARY KEY, v bigint NOT NULL)";

/// The common counter.
pub(super) const COMMON: u32 = 0;

/// The query for the value of a counter.
pub(super) fn read(id: u32) -> String {
    format!("SELECT v FROM counter WHERE id = {id}")
}

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
const ADD_AMOUNT: usize = 4;

pub(super) fn statements() -> Vec<(String, Vec<ParamType>)> {
    let add = "UPDATE counter SET v = v + 1 WHERE id = $1";
    vec![
        ("BEGIN ISOLATION LEVEL SERIALIZABLE".to_string(), vec![]),
        (add.to_string(), vec![ParamType::Int]),
        (format!("{add} RETURNING v"), vec![ParamType::Int]),
        ("COMMIT".to_string(), vec![]),
        (
            "UPDATE counter SET v = v + $2 WHERE id = $1".to_string(),
            vec![ParamType::Int, ParamType::Int],
        ),
    ]
}

/// Two counters of different nodes, to each of which a transaction adds 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Pair {
    pub(super) hot: u32,
    pub(super) cold: u32,
}

/// One attempt at both additions, in one round. The hot counter is the last, so that whatever
/// stands in the way of others there does so as shortly as it can.
pub(super) async fn execute_pair<C: Connection>(
    session: &mut Session<C>,
    pair: Pair,
) -> Result<Done, Failure<C::Error>> {
    session.bind(BEGIN).send();
    for id in [pair.cold, pair.hot] {
        session.bind(ADD_AMOUNT).int(id).int(1u32).send();
    }
    session.commits_block();
    session.bind(COMMIT).send();
    session.round().await?;
    match (session.answers.affected(1), session.answers.affected(2)) {
        (1, 1) => Ok(Done::committed(1)),
        (cold, hot) => {
            let text = format!("{cold} cold and {hot} hot counters were found");
            Err(Failure::Wrong(text))
        }
    }
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
            session.bind(common).int(COMMON).send();
            session.commits_block();
            session.bind(COMMIT).send();
            2
        }
        None => {
            session.commits_itself();
            session.bind(common).int(COMMON).send();
            0
        }
    };
    session.round().await?;
    match session.answers.affected(at) {
        1 => Ok(Done::committed(1)),
        other => Err(Failure::Wrong(format!("{other} counters were found"))),
    }
}

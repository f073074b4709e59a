//! Key-value rows in parts, and transactions of dependent steps: the extension of YCSB by
//! multi-step transactions (LEAP, section 5.1).

use crate::wire::{Connection, Done, Failure, ParamType, Session};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;
use base::Prng;

const VALUE_BYTES: usize = 100;

pub(super) const TABLE: &str = "CREATE TABLE ycsb (part integer, k integer, v text NOT NULL, \
     PRIMARY KEY (part, k))";

const BEGIN: usize = 0;
const READ: usize = 1;
const UPDATE: usize = 2;
const UPDATE_RETURNING: usize = 3;
const COMMIT: usize = 4;

/// One operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Op {
    part: u32,
    row: u32,
    update: bool,
}

/// Operations that travel together.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Step {
    /// The one whose result the next step's keys come from; on another node if the step leaves.
    first: Op,
    /// In the order of their keys, so that steps rarely wait for each other in a circle.
    others: Vec<Op>,
}

impl Step {
    pub(super) fn draw(prng: &mut Prng, home: u32, away: Option<u32>, ops: u32, rows: u32) -> Step {
        let mut op = |part| Op {
            part,
            row: prng.below(u64::from(rows)) as u32,
            update: prng.below(2) == 0,
        };
        let first = op(away.unwrap_or(home));
        let mut others: Vec<Op> = (1..ops).map(|_| op(home)).collect();
        others.sort_by_key(|op| op.row);
        others.dedup_by_key(|op| op.row);
        others.retain(|op| (op.part, op.row) != (first.part, first.row));
        Step { first, others }
    }
}

pub(super) fn statements() -> Vec<(String, Vec<ParamType>)> {
    use ParamType::{Int, Text};
    let read = "SELECT v FROM ycsb WHERE part = $1 AND k = $2";
    let update = "UPDATE ycsb SET v = $3 WHERE part = $1 AND k = $2";
    vec![
        ("BEGIN ISOLATION LEVEL SERIALIZABLE".to_string(), vec![]),
        (read.to_string(), vec![Int, Int]),
        (update.to_string(), vec![Int, Int, Text]),
        (format!("{update} RETURNING v"), vec![Int, Int, Text]),
        ("COMMIT".to_string(), vec![]),
    ]
}

pub(super) fn rows(part: u32, rows: u32, out: &mut Vec<u8>) {
    let value = "x".repeat(VALUE_BYTES);
    for row in 0..rows {
        out.extend_from_slice(format!("{part}\t{row}\t{value}\n").as_bytes());
    }
}

/// One attempt. BEGIN travels with the first step, COMMIT with the last.
pub(super) async fn execute<C: Connection>(
    session: &mut Session<C>,
    steps: &[Step],
    rows: u32,
) -> Result<Done, Failure<C::Error>> {
    let value = "y".repeat(VALUE_BYTES);
    session.bind(BEGIN).send();
    // What the step before has read moves the keys of this one.
    let mut moved = 0;
    for (at, step) in steps.iter().enumerate() {
        let last = at + 1 == steps.len();
        send(session, step.first, moved, rows, &value, true);
        for op in &step.others {
            send(session, *op, moved, rows, &value, false);
        }
        if last {
            session.commits_block();
            session.bind(COMMIT).send();
        }
        session.round().await?;
        let first = usize::from(at == 0);
        let Some(cell) = session.answers.cell(first, 0, 0) else {
            let text = format!("no row of part {} was found", step.first.part);
            return Err(match last {
                true => Failure::Wrong(text),
                false => session.wrong(text).await,
            });
        };
        moved = cell
            .iter()
            .fold(0u32, |sum, byte| sum.wrapping_mul(31) ^ u32::from(*byte));
    }
    Ok(Done::committed(steps.len() as u64))
}

fn send<C: Connection>(
    session: &mut Session<C>,
    op: Op,
    moved: u32,
    rows: u32,
    value: &str,
    returning: bool,
) {
    let row = (u64::from(op.row) + u64::from(moved)) % u64::from(rows);
    let statement = match (op.update, returning) {
        (false, _) => READ,
        (true, false) => UPDATE,
        (true, true) => UPDATE_RETURNING,
    };
    let bind = session.bind(statement).int(op.part).int(row as u32);
    match op.update {
        false => bind.send(),
        true => bind.text(value).send(),
    }
}

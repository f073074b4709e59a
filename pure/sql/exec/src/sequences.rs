//! Calls about a sequence that an argument names: `setval`, and `nextval` of a computed name; and
//! TRUNCATE .. RESTART IDENTITY.

use super::Cx;
use super::calls::{currval, nextval};
use crate::port::SequenceAsk;
use base::{Datum, SqlError, SqlState};
use bind::rel::SequenceCall;
use catalog::Sequence;
use core::future::poll_fn;
use expr::SessionFacts;
use txn::OpError;

/// Makes the call, which may have to ask for its privilege; NULL if an argument is.
pub(super) async fn call(
    cx: &Cx<'_>,
    (call, asks): (SequenceCall, bool),
    args: &[Datum],
) -> Result<Datum, OpError> {
    if args.iter().any(Datum::is_null) {
        return Ok(Datum::Null);
    }
    if call.writes() && cx.port.read_only() {
        let name = if call == SequenceCall::Set {
            "setval"
        } else {
            "nextval"
        };
        let message = format!("cannot execute {name}() in a read-only transaction");
        return Err(SqlError::new(SqlState::READ_ONLY_TXN, message).into());
    }
    let sequence = match call {
        SequenceCall::Newest => newest(cx)?,
        _ => named(cx, args[0].as_int().unwrap_or(0))?,
    };
    if asks {
        ask_privilege(cx, call, &sequence)?;
    }
    match call {
        SequenceCall::Next => Ok(Datum::Int(nextval(cx, &sequence).await?)),
        SequenceCall::Current | SequenceCall::Newest => Ok(currval(cx, &sequence)?),
        SequenceCall::Set => {
            let value = args.get(1).and_then(Datum::as_int).unwrap_or(0);
            let given = args.get(2).and_then(Datum::as_bool).unwrap_or(true);
            set(cx, &sequence, value, given).await
        }
        SequenceCall::Last | SequenceCall::State => {
            let (last, given) = asked(cx, &sequence, SequenceAsk::Read).await?;
            let all = [Datum::Int(last), Datum::Int(i64::from(given))];
            Ok(match (call, given) {
                (SequenceCall::State, _) => Datum::Array(all.into()),
                (_, true) => Datum::Int(last),
                (_, false) => Datum::Null,
            })
        }
    }
}

/// Whether the session's role may make the call.
///
/// # Errors
/// 42501.
fn ask_privilege(cx: &Cx<'_>, call: SequenceCall, sequence: &Sequence) -> Result<(), SqlError> {
    let wanted = call.wanted().join(", ");
    let args = [
        Datum::Int(i64::from(sequence.id.0)),
        Datum::Text(wanted.into()),
    ];
    let has = cx.facts.catalog_function("has_sequence_privilege", &args)?;
    if has == Datum::Bool(true) {
        return Ok(());
    }
    let message = format!("permission denied for sequence {}", sequence.name);
    Err(SqlError::new(SqlState::INSUFFICIENT_PRIVILEGE, message))
}

/// The sequence from which the session drew last, if it is still there.
///
/// # Errors
/// 55000.
fn newest(cx: &Cx<'_>) -> Result<Sequence, SqlError> {
    let id = cx.port.last_drawn();
    let mut all = cx.port.database().sequences.values();
    let found = all.find(|sequence| id == Some(sequence.id)).cloned();
    found.ok_or_else(|| {
        let message = "lastval is not yet defined in this session";
        SqlError::new(SqlState::OBJECT_NOT_READY, message)
    })
}

/// The sequence with this oid.
fn named(cx: &Cx<'_>, oid: i64) -> Result<Sequence, SqlError> {
    let database = cx.port.database();
    let found = database
        .sequences
        .values()
        .find(|sequence| i64::from(sequence.id.0) == oid);
    found.cloned().ok_or_else(|| {
        let mut tables = database.tables.values();
        let table = tables.find(|table| i64::from(table.id.0) == oid);
        match table {
            Some(table) => SqlError::new(
                SqlState::WRONG_OBJECT_TYPE,
                format!("\"{}\" is not a sequence", table.name),
            ),
            None => SqlError::new(
                SqlState::UNDEFINED_TABLE,
                format!("could not open relation with OID {oid}"),
            ),
        }
    })
}

/// `setval`: the counter first, then the numbers that shards have drawn before.
async fn set(cx: &Cx<'_>, sequence: &Sequence, value: i64, given: bool) -> Result<Datum, OpError> {
    let Sequence { min, max, name, .. } = sequence;
    if !(*min..=*max).contains(&value) {
        let message = format!(
            "setval: value {value} is out of bounds for sequence \"{name}\" ({min}..{max})"
        );
        return Err(SqlError::new(SqlState::NUMERIC_OUT_OF_RANGE, message).into());
    }
    asked(cx, sequence, SequenceAsk::Set { value, given }).await?;
    asked(cx, sequence, SequenceAsk::Forget { value, given }).await?;
    Ok(Datum::Int(value))
}

/// Has the sequence begin anew; like all that it does, this is not undone with the transaction.
pub(crate) async fn restart(cx: &Cx<'_>, name: &str) -> Result<(), OpError> {
    let mut all = cx.port.database().sequences.values();
    let found = all.find(|sequence| sequence.name == name).cloned();
    let sequence = found.ok_or_else(|| {
        let message = format!("relation \"{name}\" does not exist");
        SqlError::new(SqlState::UNDEFINED_TABLE, message)
    })?;
    set(cx, &sequence, sequence.start, false).await.map(drop)
}

async fn asked(cx: &Cx<'_>, sequence: &Sequence, ask: SequenceAsk) -> Result<(i64, bool), OpError> {
    let mut ticket = None;
    poll_fn(|_| cx.port.poll_sequence(sequence, ask, &mut ticket)).await
}

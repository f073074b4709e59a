//! Errors of the session itself, and errors for the protocol's reasons.

use base::is_planted;
use base::limits::PROGRAM_BYTES_MAX;
use base::{Datum, IndexId, Key, NodeId, Planted, ShardId, SqlError, SqlState, TxnId, Type};
use catalog::{Database, Index, Table};
use std::fmt::Write;
use txn::{AbortReason, DoubtfulWait, Tie};

/// 57014: the client has cancelled.
/// A password that is kept as a digest by MD5.
pub(super) fn md5_password() -> SqlError {
    SqlError::new(
        SqlState::FEATURE_NOT_SUPPORTED,
        "passwords that are digests by MD5 are not supported",
    )
    .hint("Give the password itself, or a SCRAM-SHA-256 verifier.")
}

pub(super) fn canceled() -> SqlError {
    SqlError::new(
        SqlState::QUERY_CANCELED,
        "canceling statement due to user request",
    )
}

/// 55P03: `lock_timeout` has passed.
pub(super) fn lock_timeout() -> SqlError {
    let message = "canceling statement due to lock timeout";
    SqlError::new(SqlState::LOCK_NOT_AVAILABLE, message)
}

/// 55P03: NOWAIT, and a table is locked.
pub(super) fn table_locked(lock: &plan::LockPlan) -> SqlError {
    let name = lock
        .names
        .first()
        .map_or("", |name| base::full_name::own(name));
    could_not_lock(name)
}

/// 55P03: NOWAIT, and this table is locked.
pub fn could_not_lock(name: &str) -> SqlError {
    let message = format!("could not obtain lock on relation \"{name}\"");
    SqlError::new(SqlState::LOCK_NOT_AVAILABLE, message)
}

/// 40P01: it may be that transactions wait for locks of tables and rows of each other.
pub fn circle_of_tables() -> SqlError {
    SqlError::new(SqlState::DEADLOCK, "deadlock detected")
        .detail("The transaction has waited for a lock of a table, while others may wait for it.")
        .hint("Lock tables before the transaction does anything else.")
}

/// 55P03: the open block of another session has changed the same.
pub fn shut(session: Option<i32>) -> SqlError {
    let message = "the schema is changed by an open transaction block of another session";
    let error = SqlError::new(SqlState::LOCK_NOT_AVAILABLE, message)
        .hint("Run the statement again when that block has ended.");
    match session {
        Some(session) => error.detail(format!("The backend number of that session is {session}.")),
        None => error,
    }
}

pub(super) fn statement_timeout() -> SqlError {
    SqlError::new(
        SqlState::QUERY_CANCELED,
        "canceling statement due to statement timeout",
    )
}

/// 57P01: the session ends because the node does.
pub(super) fn shutdown() -> SqlError {
    let message = "terminating connection due to administrator command";
    SqlError::new(SqlState::ADMIN_SHUTDOWN, message)
}

/// 25P03 or 57P05: the client has been silent for too long.
pub(super) fn idle_timeout(in_block: bool) -> SqlError {
    let (state, which) = match in_block {
        true => (*b"25P03", "idle-in-transaction"),
        false => (*b"57P05", "idle-session"),
    };
    let message = format!("terminating connection due to {which} timeout");
    SqlError::new(SqlState(state), message)
}

/// 53300.
pub(super) fn too_many_clients() -> SqlError {
    SqlError::new(SqlState(*b"53300"), "sorry, too many clients already")
}

/// 08P01.
pub(super) fn protocol(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::PROTOCOL_VIOLATION, message)
}

/// 25P02.
pub(super) fn in_failed_block() -> SqlError {
    SqlError::new(
        SqlState::IN_FAILED_TXN,
        "current transaction is aborted, commands ignored until end of transaction block",
    )
}

/// 3D000.
pub(super) fn no_database(name: &str) -> SqlError {
    SqlError::new(
        SqlState::INVALID_DATABASE,
        format!("database \"{name}\" does not exist"),
    )
}

/// 26000.
pub(super) fn no_statement(name: &str) -> SqlError {
    let message = match name {
        "" => "unnamed prepared statement does not exist".to_owned(),
        _ => format!("prepared statement \"{name}\" does not exist"),
    };
    SqlError::new(SqlState::INVALID_STATEMENT_NAME, message)
}

/// 34000.
pub(super) fn no_portal(name: &str) -> SqlError {
    SqlError::new(
        SqlState::INVALID_CURSOR_NAME,
        format!("portal \"{name}\" does not exist"),
    )
}

/// 08007: this node does not know whether the transaction has committed.
pub fn unknown_outcome() -> SqlError {
    if is_planted(Planted::UnknownAsAbort) {
        return aborted(&AbortReason::ParticipantLost(ShardId(0)), None);
    }
    SqlError::new(
        SqlState::TXN_UNKNOWN,
        "the outcome of the transaction is not known",
    )
    .detail("Contact with a participant was lost while the transaction was being committed.")
    .hint(
        "Do not simply run it again: it may have committed. Look for its effects first, or make \
             it safe to repeat.",
    )
}

/// 53100: a write to a node without room.
pub fn disk_full(node: NodeId) -> SqlError {
    SqlError::new(
        SqlState::DISK_FULL,
        format!("the disk of node {node} is full"),
    )
    .hint("Free some space there; reads and rollbacks still work.")
}

/// 54000: a program for the shards with the rows does not fit into a frame between nodes.
pub fn program_too_long(bytes: usize) -> SqlError {
    let text = format!("conditions and expressions over rows of {bytes} bytes are too large");
    SqlError::new(SqlState::PROGRAM_LIMIT, text).detail(format!(
        "They may have at most {PROGRAM_BYTES_MAX} bytes, their parameters included."
    ))
}

/// 53200: a statement that needs more than its node has left.
pub fn memory_used_up(node: NodeId) -> SqlError {
    SqlError::new(
        SqlState::OUT_OF_MEMORY,
        format!("the memory of node {node} is used up"),
    )
}

/// 53200: a write to a node without memory.
pub fn memory_full(node: NodeId) -> SqlError {
    SqlError::new(
        SqlState::OUT_OF_MEMORY,
        format!("the memory of node {node} is full"),
    )
    .hint("Delete rows there or raise its limit (SHOW MEMORY); reads and deletes still work.")
}

/// The error for a transaction that the protocol has rolled back.
pub fn aborted(reason: &AbortReason, database: Option<&Database>) -> SqlError {
    const RETRY: &str = "Run the whole transaction again.";
    let conflict = |message: &str| SqlError::new(SqlState::SERIALIZATION, message).hint(RETRY);
    let concurrent = || conflict("could not serialize access due to concurrent update");
    let of_row = |error: SqlError, key: &Key, detail: &dyn Fn(&str) -> String| {
        let (table, place) = place(key, database);
        error.detail(detail(&place)).table(table)
    };
    let error = match reason {
        AbortReason::Die { key, holder } => of_row(concurrent(), key, &|place| {
            format!("Transaction {holder} holds a lock on {place}.")
        }),
        AbortReason::LockTimeout { key, holder } => of_row(lock_timeout(), key, &|place| {
            format!("Waited for {place}, on which transaction {holder} has a lock.")
        }),
        AbortReason::MoveTimeout(key) => of_row(lock_timeout(), key, &waited_elsewhere),
        AbortReason::InDoubt(wait) => in_doubt(place(&wait.key, database), wait),
        AbortReason::ParticipantLost(shard) => conflict(&undone(*shard, "restarted"))
            .detail("The node lost its part of the transaction."),
        AbortReason::CutOff(shard) => conflict(&undone(*shard, "was cut off")).detail(CUT_OFF),
        AbortReason::Unreachable(shard) => {
            conflict(&undone(*shard, AWAY)).detail("Nothing was committed.")
        }
        AbortReason::RowCutOff { key, at, tie } => {
            of_row(conflict(&undone(*at, AWAY)), key, &|place| {
                tied(place, *at, tie)
            })
        }
        AbortReason::SchemaChanged(index) => {
            let error = conflict("could not serialize access due to a concurrent schema change");
            let found = index.and_then(|index| table_of(index, database));
            match found {
                Some((table, _)) => error.detail(changed(table)).table(table.name.clone()),
                None => error,
            }
        }
        AbortReason::SnapshotTooOld(key) => of_row(conflict("snapshot too old"), key, &|place| {
            format!("Versions of {place} that the snapshot needs are no longer kept.")
        }),
        AbortReason::SnapshotMisses(key) => {
            let error = conflict("could not serialize access due to concurrent update").hint(
                "Run the whole transaction again. DEFERRABLE or REPEATABLE READ, a READ ONLY \
                 transaction does not fail this way.",
            );
            match key {
                Some(key) => of_row(error, key, &|place| missed(&format!(" on {place}"))),
                None => error.detail(missed("")),
            }
        }
        AbortReason::Overtaken(Some(key)) => of_row(concurrent(), key, &|place| {
            format!("Another transaction has changed {place}, which this one had read.")
        }),
        AbortReason::Overtaken(None) => {
            concurrent().detail("The clocks of the nodes were too far apart.")
        }
        AbortReason::GaveWay { key, writer } => {
            of_row(concurrent(), key, &|place| gave_way(place, *writer))
        }
        AbortReason::DiskFull(shard) => disk_full(shard.node()),
        AbortReason::MemoryFull(shard) => memory_full(shard.node()),
        AbortReason::Requested => {
            SqlError::new(SqlState::TXN_ROLLBACK, "transaction was rolled back").hint(RETRY)
        }
    };
    match reason.rule() {
        Some(rule) => cite(error, rule),
        None => error,
    }
}

fn waited_elsewhere(place: &str) -> String {
    format!("Waited for {place}, which another shard has.")
}

/// Adds the rule of docs/rules to the end of the detail.
fn cite(error: SqlError, rule: &str) -> SqlError {
    let cited = format!("{} (Rule {rule}.)", error.fields().detail);
    error.detail(cited)
}

/// What a node did that was cut off.
const CUT_OFF: &str =
    "The node could not reach the one that runs the transaction, and gave its part up.";

/// State of a node that counts as away.
const AWAY: &str = "cannot be reached";

/// A message that names a node.
fn undone(at: ShardId, why: &str) -> String {
    let node = at.node().0;
    format!("transaction was rolled back because node {node} {why}")
}

fn changed(table: &Table) -> String {
    let name = &table.name;
    format!("Table \"{name}\" was changed after the statement was planned.")
}

fn missed(place: &str) -> String {
    format!("A commit of another node{place} lies above the transaction's snapshot.")
}

fn gave_way(place: &str, writer: TxnId) -> String {
    format!(
        "The transaction was idle, and transaction {writer} waited to change {place}, which it had \
         read: its locks gave way."
    )
}

/// What a node that cannot be reached is to a row.
fn tied(place: &str, at: ShardId, tie: &Tie) -> String {
    let node = at.node().0;
    match tie {
        Tie::Owner => format!("Node {node} has {place}. Nothing was committed."),
        Tie::Home => format!("Node {node} knows who has {place}. Nothing was committed."),
        Tie::Copy => format!(
            "Node {node} has a copy of {place}, which it must give up before the row is written. \
             Nothing was committed."
        ),
        Tie::Doubt(txn) => format!(
            "Transaction {txn} has changed {place}, and only node {node} knows whether it has \
             committed. Your transaction has committed nothing."
        ),
    }
}

/// 55P03: the transaction waited for a row whose outcome only another node knows.
fn in_doubt((table, place): (String, String), wait: &DoubtfulWait) -> SqlError {
    let (holder, node, seconds) = (wait.holder, wait.node.0, wait.age_us as f64 / 1e6);
    let message = "canceling statement because it waits for a transaction in doubt";
    SqlError::new(SqlState::LOCK_NOT_AVAILABLE, message)
        .detail(format!(
            "Transaction {holder} holds a lock on {place}. Node {node}, which knows its outcome, \
             has not been reached for {seconds:.1} s."
        ))
        .hint("SHOW IN DOUBT lists such transactions. They end when the node is back.")
        .table(table)
}

/// Table name, and `key (id)=(7) of table "t"` in words.
fn place(key: &Key, database: Option<&Database>) -> (String, String) {
    let Some((table, index)) = table_of(key.index, database) else {
        return (String::new(), format!("key {key:?}"));
    };
    let text = match key_text(key, table, index) {
        Some((columns, values)) => {
            format!("key ({columns})=({values}) of table \"{}\"", table.name)
        }
        None => format!("a row or range of table \"{}\"", table.name),
    };
    (table.name.clone(), text)
}

fn table_of(id: IndexId, database: Option<&Database>) -> Option<(&Table, &Index)> {
    let mut tables = database?.tables.values();
    tables.find_map(|table| Some((&**table, table.index_by_id(id)?)))
}

/// Column names and values of a key; `None`: it is no whole key (a range, a shard).
pub fn key_text(key: &Key, table: &Table, index: &Index) -> Option<(String, String)> {
    let mut bytes = key.bytes.as_slice();
    let (mut columns, mut values) = (String::new(), Vec::new());
    for part in &index.columns {
        let column = table.columns.get(usize::from(part.column))?;
        let datum = base::key::decode_datum(&mut bytes, column.ty, part.descending).ok()?;
        if !columns.is_empty() {
            columns.push_str(", ");
            values.extend_from_slice(b", ");
        }
        write!(columns, "{}", column.name).ok()?;
        format_value(column.ty, &datum, &mut values);
    }
    Some((columns, String::from_utf8_lossy(&values).into_owned()))
}

fn format_value(ty: Type, datum: &Datum, out: &mut Vec<u8>) {
    if datum.is_null() {
        out.extend_from_slice(b"null");
    } else {
        base::text::format(ty, datum, out);
    }
}

/// A statement that changes something in a READ ONLY transaction.
pub(super) fn read_only(tag: &str) -> SqlError {
    let message = format!("cannot execute {tag} in a read-only transaction");
    SqlError::new(SqlState::READ_ONLY_TXN, message)
}

/// SELECT with the clause by which it locks rows, for the message of a refusal.
pub(super) fn locking_verb(text: &str) -> &'static str {
    let words: Vec<String> = text
        .split_whitespace()
        .map(str::to_ascii_uppercase)
        .collect();
    let clause = words.windows(2).find(|pair| pair[0] == "FOR");
    match clause.map(|pair| &*pair[1]) {
        Some("NO") => "SELECT FOR NO KEY UPDATE",
        Some("KEY") => "SELECT FOR KEY SHARE",
        Some(word) if word.starts_with("SHARE") => "SELECT FOR SHARE",
        _ => "SELECT FOR UPDATE",
    }
}

/// First word of a statement, for the message of a refusal.
pub(super) fn verb(text: &str) -> String {
    let word = text
        .trim_start()
        .split(|c: char| !c.is_ascii_alphabetic())
        .next();
    word.unwrap_or_default().to_ascii_uppercase()
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Slot;

    /// Users know nodes and keys, but no shards.
    #[test]
    fn a_row_that_cannot_be_had_names_its_node() {
        let at = ShardId::new(NodeId(2), 1);
        let txn = TxnId {
            shard: at,
            incarnation: 1,
            counter: 7,
        };
        let doubt = Tie::Doubt(Box::new(txn));
        for tie in [Tie::Owner, Tie::Home, Tie::Copy, doubt] {
            let key = Key::new(IndexId(7), Slot(3), vec![1]);
            let error = aborted(&AbortReason::RowCutOff { key, at, tie }, None);
            assert_eq!(error.state(), SqlState::SERIALIZATION);
            let text = format!("{error:?}");
            assert!(text.contains("node 2") && !text.contains("n2."), "{text}");
        }
        let error = aborted(&AbortReason::Unreachable(at), None);
        let text = format!("{error:?}");
        assert!(text.contains("node 2") && !text.contains("n2."), "{text}");
    }
}

//! Groups on Cassandra, and on what speaks its protocol: a group is a partition, and is changed by
//! a lightweight transaction.
//!
//! | table | a group | columns |
//! |---|---|---|
//! | `entity_cell` | one row | `version`; `head` is the whole group |
//! | `entity_record` | a row per record, one more | `version`, `head`, which rows share; `value` |
//!
//! Keys of records in `entity_record` stand behind a byte 1; the row with the key 0 comes with the
//! first change of a group, so that whoever reads a record that is not there gets the head anyway.
//!
//! Reads are serial: what a change that got no answer has left open is ended first. A change is an
//! UPDATE with the condition on the version; changes of records are in one batch with it, which in
//! one partition is one step.

use crate::grouped::{Change, Grouped, Part};
use crate::kv::{lost, unknown};
use crate::line::{Broken, Line, Wire};
use entity::Failure;
use entity::kv::Record;
use links::cassandra::{BATCH_MAX, Cassandra, Consistency, Prepared, Rows};
use links::link::LinkError;
use links::url::{Endpoint, Target};
use std::time::{Duration, Instant};

/// The keyspace of a URL that names none.
const KEYSPACE: &str = "trellis";
/// The longest key of a partition, and of a row.
const KEY_BYTES_MAX: usize = 65_535;
/// Copies of each group, where there are as many nodes.
const COPIES_MAX: usize = 3;
/// How long all nodes may take to know a table.
const AGREEMENT_MAX: Duration = Duration::from_secs(30);
/// How long tables may take to be made: a node does not do that as quickly as it reads.
const SCHEMA_MAX: Duration = Duration::from_secs(60);
/// The key of the row that is there for the head, and the first byte of the key of a record.
const HEAD_BYTE: u8 = 0;
const HEAD_KEY: &[u8] = &[HEAD_BYTE];
const RECORD_BYTE: u8 = 1;

/// How groups lie there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// One row per group.
    Packed,
    /// One row per record.
    Rows,
}

/// One client's connection to the nodes of a cluster.
#[derive(Debug)]
pub struct CassandraGroups {
    line: Line<Cassandra>,
    keyspace: String,
    form: Form,
    /// What was prepared on the connection.
    statements: Option<Statements>,
    is_durable: bool,
}

/// What a connection has prepared.
#[derive(Clone, Debug)]
struct Statements {
    head: Prepared,
    change: Prepared,
    /// Of records: read, read a range, the first row, put, delete.
    records: Option<[Prepared; 5]>,
}

impl Statements {
    async fn prepare(
        link: &mut Cassandra,
        keyspace: &str,
        form: Form,
    ) -> Result<Statements, LinkError> {
        let table = match form {
            Form::Packed => format!("\"{keyspace}\".entity_cell"),
            Form::Rows => format!("\"{keyspace}\".entity_record"),
        };
        let head = format!("SELECT head FROM {table} WHERE part = ? LIMIT 1");
        let change =
            format!("UPDATE {table} SET version = ?, head = ? WHERE part = ? IF version = ?");
        let records = match form {
            Form::Packed => None,
            Form::Rows => {
                let select = format!("SELECT key, head, value FROM {table} WHERE part = ? AND key");
                Some([
                    link.prepare(&format!("{select} IN (?, ?)")).await?,
                    link.prepare(&format!("{select} >= ? AND key < ?")).await?,
                    link.prepare(&format!("INSERT INTO {table} (part, key) VALUES (?, ?)"))
                        .await?,
                    link.prepare(&format!(
                        "INSERT INTO {table} (part, key, value) VALUES (?, ?, ?)"
                    ))
                    .await?,
                    link.prepare(&format!("DELETE FROM {table} WHERE part = ? AND key = ?"))
                        .await?,
                ])
            }
        };
        Ok(Statements {
            head: link.prepare(&head).await?,
            change: link.prepare(&change).await?,
            records,
        })
    }
}

impl CassandraGroups {
    /// Connects. `timeout` bounds every wait. Clients are spread over the nodes.
    ///
    /// # Errors
    /// `Lost`; `Refused`, such as for a name that no keyspace can have.
    pub async fn open(
        target: Target,
        form: Form,
        timeout: Duration,
        client: u64,
    ) -> Result<CassandraGroups, Failure> {
        let keyspace = match target.database.as_str() {
            "" => String::from(KEYSPACE),
            name => keyspace_of(name)?,
        };
        let mut groups = CassandraGroups {
            line: Line::new(target, timeout, client),
            keyspace,
            form,
            statements: None,
            is_durable: false,
        };
        groups.is_durable = groups.asks_durability().await?;
        Ok(groups)
    }

    /// The connection; made, if there is none.
    async fn link(&mut self) -> Result<(&mut Cassandra, &Statements), Failure> {
        if !self.line.is_open() {
            self.statements = None;
        }
        let link = self.line.link()?;
        if self.statements.is_none() {
            let prepared = Statements::prepare(link, &self.keyspace, self.form).await;
            match prepared {
                Ok(statements) => self.statements = Some(statements),
                Err(error) => {
                    self.line.close();
                    return Err(Cassandra::failure_of(&error, lost));
                }
            }
        }
        let gone = || Failure::Lost(String::from("no connection"));
        let statements = self.statements.as_ref().ok_or_else(gone)?;
        Ok((self.line.link()?, statements))
    }

    /// What an answer is to who has asked. A node that has forgotten the statements is connected
    /// again.
    fn answered(
        &mut self,
        answer: Result<Rows, LinkError>,
        broken: Broken,
    ) -> Result<Rows, Failure> {
        let is_forgotten = matches!(&answer, Err(LinkError::Server(it)) if it.sqlstate == "CA2500");
        if is_forgotten {
            self.line.close();
        }
        self.line.answered(answer, broken)
    }

    /// The head of a group; no bytes: it was never written.
    async fn head(&mut self, group: &[u8]) -> Result<Vec<u8>, Failure> {
        let (link, statements) = self.link().await?;
        let values = [Some(group)];
        let answer = link.execute(&statements.head, &values, Consistency::Serial);
        let answer = answer.await;
        let rows = self.answered(answer, lost)?;
        let value = rows.rows.into_iter().flatten().next().flatten();
        Ok(value.unwrap_or_default())
    }

    /// Records that a statement finds, and the head beside them, if it finds any row.
    async fn records(
        &mut self,
        statement: usize,
        values: [&[u8]; 3],
        found: &mut Vec<Record>,
    ) -> Result<Option<Vec<u8>>, Failure> {
        let (link, statements) = self.link().await?;
        let records = statements.records.as_ref().ok_or_else(without_records)?;
        let values = values.map(Some);
        let answer = link.execute(&records[statement], &values, Consistency::Serial);
        let answer = answer.await;
        let rows = self.answered(answer, lost)?;
        let mut head = None;
        for row in rows.rows {
            let [key, own, value] = <[_; 3]>::try_from(row).map_err(|_| strange())?;
            head = Some(own.unwrap_or_default());
            match key.as_deref().and_then(<[u8]>::split_first) {
                Some((&RECORD_BYTE, key)) => found.push((key.to_vec(), value.unwrap_or_default())),
                Some((&HEAD_BYTE, _)) => {}
                Some(_) | None => return Err(strange()),
            }
        }
        Ok(head)
    }

    /// Makes keyspace and tables, if they are not there, and empties them.
    ///
    /// # Errors
    /// `Lost`, `Refused`.
    pub async fn clear(&mut self) -> Result<(), Failure> {
        self.line.close();
        let mut link = self.line.reach(SCHEMA_MAX)?;
        let ran = async |link: &mut Cassandra, cql: &str| {
            let answer = link.query(cql, Consistency::Quorum).await;
            answer.map_err(|error| Cassandra::failure_of(&error, lost))
        };
        let peers = link.query("SELECT peer FROM system.peers", Consistency::One);
        let nodes = 1 + peers
            .await
            .map_err(|error| Cassandra::failure_of(&error, lost))?
            .rows
            .len();
        let keyspace = &self.keyspace;
        let copies = nodes.min(COPIES_MAX);
        for cql in [
            format!(
                "CREATE KEYSPACE IF NOT EXISTS \"{keyspace}\" WITH replication = \
                 {{'class': 'SimpleStrategy', 'replication_factor': {copies}}}"
            ),
            format!(
                "CREATE TABLE IF NOT EXISTS \"{keyspace}\".entity_cell \
                 (part blob PRIMARY KEY, version bigint, head blob)"
            ),
            format!(
                "CREATE TABLE IF NOT EXISTS \"{keyspace}\".entity_record (part blob, key blob, \
                 version bigint static, head blob static, value blob, PRIMARY KEY (part, key))"
            ),
        ] {
            ran(&mut link, &cql).await?;
            agree(&mut link).await?;
        }
        for table in ["entity_cell", "entity_record"] {
            ran(&mut link, &format!("TRUNCATE \"{keyspace}\".{table}")).await?;
        }
        Ok(())
    }

    /// The release of a node.
    ///
    /// # Errors
    /// `Lost`, `Refused`.
    pub async fn version(&mut self) -> Result<String, Failure> {
        let mut link = self.line.reach(Duration::ZERO)?;
        let cql = "SELECT release_version FROM system.local";
        let answer = link.query(cql, Consistency::One).await;
        let answer = answer.map_err(|error| Cassandra::failure_of(&error, lost))?;
        Ok(answer
            .text()
            .unwrap_or_else(|| String::from("of an unknown version")))
    }

    /// Whether a node says that its log is on disk before a write is answered. One that does not
    /// tell how it syncs, as before Cassandra 4, does not count as durable.
    async fn asks_durability(&mut self) -> Result<bool, Failure> {
        let mut link = self.line.reach(Duration::ZERO)?;
        let cql = "SELECT value FROM system_views.settings WHERE name = 'commitlog_sync'";
        match link.query(cql, Consistency::One).await {
            Ok(rows) => Ok(matches!(rows.text().as_deref(), Some("batch" | "group"))),
            Err(LinkError::Server(_)) => Ok(false),
            Err(error) => Err(lost(&error)),
        }
    }
}

impl Grouped for CassandraGroups {
    async fn read(
        &mut self,
        group: &[u8],
        part: Part<'_>,
        known: Option<&[u8]>,
        found: &mut Vec<Record>,
    ) -> Result<Vec<u8>, Failure> {
        check_key(group)?;
        let (from, to) = match part {
            Part::Head => return self.head(group).await,
            Part::Record(key) => {
                let key = row_key(key)?;
                let head = self.records(0, [group, HEAD_KEY, &key], found).await?;
                return Ok(head.unwrap_or_default());
            }
            Part::Range(from, to) => (row_key(from)?, row_key(to)?),
        };
        // A range without rows has no head. Two heads that are the same, one from before and one
        // from after it, are that of the time in between.
        let mut before = known.map(<[u8]>::to_vec);
        for _ in 0..2 {
            if let Some(head) = self.records(1, [group, &from, &to], found).await? {
                return Ok(head);
            }
            let after = self.head(group).await?;
            if before.as_ref() == Some(&after) || known.is_some() {
                return Ok(after);
            }
            before = Some(after);
        }
        Err(Failure::conflict("version"))
    }

    async fn change(&mut self, group: &[u8], change: &Change<'_>) -> Result<bool, Failure> {
        check_key(group)?;
        let next = (change.version as i64 + 1).to_be_bytes();
        let version = (change.version as i64).to_be_bytes();
        // Null is what a column has that was never written.
        let version = (change.version > 0).then_some(&version[..]);
        let condition = vec![Some(&next[..]), Some(change.head), Some(group), version];
        let mut puts = Vec::new();
        for (key, value) in &change.puts {
            puts.push((row_key(key)?, *value));
        }
        let deletes = change.deletes.iter();
        let deletes: Result<Vec<Vec<u8>>, Failure> = deletes.map(|key| row_key(key)).collect();
        let deletes = deletes?;
        if puts.len() + deletes.len() + 2 > BATCH_MAX {
            let text = format!("a transaction has more than {} changes", BATCH_MAX - 2);
            return Err(Failure::Refused(text));
        }
        let (link, statements) = self.link().await?;
        let answer = match &statements.records {
            None => {
                let changed = link.execute(&statements.change, &condition, Consistency::Quorum);
                changed.await
            }
            Some([_, _, first, put, delete]) => {
                let mut batch = vec![(&statements.change, condition)];
                if change.version == 0 {
                    batch.push((first, vec![Some(group), Some(HEAD_KEY)]));
                }
                for (key, value) in &puts {
                    batch.push((put, vec![Some(group), Some(key), Some(value)]));
                }
                for key in &deletes {
                    batch.push((delete, vec![Some(group), Some(key)]));
                }
                link.batch(&batch, Consistency::Quorum).await
            }
        };
        let rows = self.answered(answer, unknown)?;
        rows.is_applied().ok_or_else(strange)
    }

    fn is_durable(&self) -> bool {
        self.is_durable
    }

    fn round_trips(&self) -> u64 {
        self.line.round_trips
    }
}

/// Waits until all nodes have the same schema.
async fn agree(link: &mut Cassandra) -> Result<(), Failure> {
    let began = Instant::now();
    loop {
        let mut schemas = Vec::new();
        for table in ["local", "peers"] {
            let cql = format!("SELECT schema_version FROM system.{table}");
            let answer = link.query(&cql, Consistency::One).await;
            let answer = answer.map_err(|error| Cassandra::failure_of(&error, lost))?;
            schemas.extend(answer.rows.into_iter().flatten().flatten());
        }
        schemas.sort();
        schemas.dedup();
        if schemas.len() <= 1 {
            return Ok(());
        }
        if began.elapsed() > AGREEMENT_MAX {
            let text = "the nodes do not agree on the tables: is one of them down?";
            return Err(Failure::Refused(String::from(text)));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn keyspace_of(name: &str) -> Result<String, Failure> {
    let is_good = |c: char| c.is_ascii_alphanumeric() || c == '_';
    match name.len() <= 48 && name.chars().all(is_good) {
        true => Ok(name.to_owned()),
        false => Err(Failure::Refused(format!(
            "{name:?} is no name of a keyspace: letters, digits and _, at most 48"
        ))),
    }
}

fn check_key(key: &[u8]) -> Result<(), Failure> {
    match key.len() {
        1..=KEY_BYTES_MAX => Ok(()),
        length => Err(Failure::Refused(format!(
            "a key of {length} bytes; Cassandra takes 1 to {KEY_BYTES_MAX}"
        ))),
    }
}

/// The key of the row of a record.
fn row_key(key: &[u8]) -> Result<Vec<u8>, Failure> {
    let key = [&[RECORD_BYTE], key].concat();
    check_key(&key)?;
    Ok(key)
}

fn strange() -> Failure {
    Failure::Refused(String::from(
        "an answer of Cassandra that is none to the statement",
    ))
}

fn without_records() -> Failure {
    Failure::Refused(String::from("a packed group has no records of its own"))
}

impl Wire for Cassandra {
    fn connect(
        endpoint: &Endpoint,
        target: &Target,
        timeout: Duration,
    ) -> Result<Cassandra, LinkError> {
        Cassandra::connect(endpoint, target, Some(timeout))
    }

    fn failure_of(error: &LinkError, broken: Broken) -> Failure {
        let LinkError::Server(refused) = error else {
            return broken(error);
        };
        let text = format!("{} ({})", refused.message, refused.sqlstate);
        match refused.sqlstate.as_str() {
            // An error of the server, too few nodes, a write without enough answers, a condition of
            // which nobody knows what became.
            "CA0000" | "CA1000" | "CA1100" | "CA1500" | "CA1700" => broken(error),
            // A read without enough answers: as a part of a change that may have gone further.
            "CA1200" | "CA1300" => match broken(error) {
                Failure::Lost(_) => Failure::conflict("read timeout"),
                other => other,
            },
            // Before anything is done: the node starts, or forgot a statement.
            "CA1002" | "CA2500" => Failure::Lost(text),
            "CA1001" => Failure::conflict("overloaded"),
            _ => Failure::Refused(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use links::answers::ServerError;

    fn of(code: &str, broken: fn(&LinkError) -> Failure) -> Failure {
        let error = ServerError {
            sqlstate: code.to_owned(),
            message: String::from("no"),
        };
        Cassandra::failure_of(&LinkError::Server(error), broken)
    }

    #[test]
    fn errors_tell_whether_a_change_may_have_happened() {
        for code in ["CA0000", "CA1000", "CA1100", "CA1500", "CA1700", "CA1200"] {
            assert!(matches!(of(code, unknown), Failure::Unknown(_)), "{code}");
        }
        assert!(matches!(of("CA1200", lost), Failure::Conflict(_)));
        assert!(matches!(of("CA1001", unknown), Failure::Conflict(_)));
        assert!(matches!(of("CA1000", lost), Failure::Lost(_)));
        assert!(matches!(of("CA2500", unknown), Failure::Lost(_)));
        assert!(matches!(of("CA2200", unknown), Failure::Refused(_)));
        let gone = LinkError::Protocol("gone");
        assert!(matches!(
            Cassandra::failure_of(&gone, unknown),
            Failure::Unknown(_)
        ));
        assert!(matches!(
            Cassandra::failure_of(&gone, lost),
            Failure::Lost(_)
        ));
    }

    #[test]
    fn names_and_keys_that_cannot_be_are_refused() {
        assert_eq!(keyspace_of("Shop_1").unwrap(), "Shop_1");
        for name in ["a\"b", "a-b", "ä", &"a".repeat(49)] {
            assert!(keyspace_of(name).is_err(), "{name}");
        }
        assert_eq!(row_key(b"").unwrap(), [RECORD_BYTE]);
        assert!(row_key(&[0; KEY_BYTES_MAX]).is_err());
        assert!(check_key(b"").is_err());
        assert!(check_key(&[0; KEY_BYTES_MAX]).is_ok());
    }
}

//! Groups on HBase: a group is a row, and is changed by `checkAndMutate`.
//!
//! | qualifier, in the family `e` | content |
//! |---|---|
//! | `v` | the version, in 8 bytes |
//! | `h` | the head, or in the packed form the whole group |
//! | `r` and the key of a record | the record; not in the packed form |
//!
//! What is read of a row at once is of one moment, and so is what is changed. The time of a value
//! is the version of its group: clocks have no part in it, and a value that is put back within the
//! millisecond in which it was deleted is there.

use crate::grouped::{Change, Grouped, Part};
use crate::kv::{lost, unknown};
use crate::line::{Broken, Line, Wire};
use entity::Failure;
use entity::kv::Record;
use links::hbase::{self, Column, HBase, range_or};
use links::link::LinkError;
use links::url::{Endpoint, Target};
use std::time::Duration;

/// The table of a URL that names none.
const TABLE: &str = "trellis";
const FAMILY: &[u8] = b"e";
const VERSION: Column<'_> = column(b"v");
const HEAD: Column<'_> = column(b"h");
/// The first byte of the qualifier of a record.
const RECORD_BYTE: u8 = b'r';
/// The longest key of a row.
const ROW_BYTES_MAX: usize = 32_767;
/// The longest qualifier that is written, in bytes.
const QUALIFIER_BYTES_MAX: usize = 32_767;
/// How long a table may take to be made.
const TABLE_MAX: Duration = Duration::from_secs(120);

const fn column(qualifier: &[u8]) -> Column<'_> {
    Column {
        family: FAMILY,
        qualifier,
    }
}

/// One client's connection to the gateways of an HBase.
#[derive(Debug)]
pub struct HBaseGroups {
    line: Line<HBase>,
    table: Vec<u8>,
}

impl HBaseGroups {
    /// Connections are made when they are needed. `timeout` bounds every wait. Clients are spread
    /// over the gateways.
    ///
    /// # Errors
    /// `Refused`: a name that no table can have.
    pub fn new(target: Target, timeout: Duration, client: u64) -> Result<HBaseGroups, Failure> {
        let table = match target.database.as_str() {
            "" => TABLE,
            name => name,
        };
        let is_good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        if !table.chars().all(is_good) || table.starts_with(['-', '.']) {
            return Err(Failure::Refused(format!(
                "{table:?} is no name of a table: letters, digits, _, and behind the first - and ."
            )));
        }
        Ok(HBaseGroups {
            table: table.as_bytes().to_vec(),
            line: Line::new(target, timeout, client),
        })
    }

    /// Makes the table anew.
    ///
    /// # Errors
    /// `Lost`, `Refused`.
    pub async fn clear(&mut self) -> Result<(), Failure> {
        let mut link = self.line.reach(TABLE_MAX)?;
        let cleared = link.clear(&self.table, FAMILY).await;
        cleared.map_err(|error| HBase::failure_of(&error, lost))
    }

    /// Asks whether it is HBase. Its release cannot be asked for.
    ///
    /// # Errors
    /// `Lost`, `Refused`.
    pub async fn check(&mut self) -> Result<(), Failure> {
        let checked = self.line.link()?.check().await;
        self.line.answered(checked, lost)
    }
}

impl Grouped for HBaseGroups {
    async fn read(
        &mut self,
        group: &[u8],
        part: Part<'_>,
        _: Option<&[u8]>,
        found: &mut Vec<Record>,
    ) -> Result<Vec<u8>, Failure> {
        check_row(group)?;
        let (key, filter);
        let columns;
        let asked = match part {
            Part::Head => hbase::Part::Columns(&[HEAD]),
            Part::Record(record) => {
                key = qualifier_of(record)?;
                columns = [HEAD, column(&key)];
                hbase::Part::Columns(&columns)
            }
            Part::Range(from, to) => {
                let ends = (qualifier_of(from)?, qualifier_of(to)?);
                filter = range_or(&ends.0, &ends.1, HEAD.qualifier);
                hbase::Part::Filter(&filter)
            }
        };
        let answer = self.line.link()?.get(&self.table, group, asked).await;
        let mut head = Vec::new();
        for (qualifier, value) in self.line.answered(answer, lost)? {
            match qualifier.split_first() {
                Some((&RECORD_BYTE, key)) => found.push((key.to_vec(), value)),
                Some(_) if qualifier == HEAD.qualifier => head = value,
                Some(_) | None => return Err(strange()),
            }
        }
        Ok(head)
    }

    async fn change(&mut self, group: &[u8], change: &Change<'_>) -> Result<bool, Failure> {
        check_row(group)?;
        let (old, next) = (change.version.to_be_bytes(), change.version + 1);
        let version = next.to_be_bytes();
        let keys = change.puts.iter().map(|(key, _)| qualifier_of(key));
        let keys: Vec<Vec<u8>> = keys.collect::<Result<_, _>>()?;
        let gone = change.deletes.iter().map(|key| qualifier_of(key));
        let gone: Vec<Vec<u8>> = gone.collect::<Result<_, _>>()?;
        let mut puts = vec![(VERSION, &version[..]), (HEAD, change.head)];
        let values = change.puts.iter().map(|(_, value)| *value);
        puts.extend(keys.iter().map(|key| column(key)).zip(values));
        let deletes: Vec<Column<'_>> = gone.iter().map(|key| column(key)).collect();
        let wanted = hbase::Change {
            row: group,
            // A column without a value is equal to no bytes.
            condition: (VERSION, if change.version == 0 { &[] } else { &old }),
            puts: &puts,
            deletes: &deletes,
            time: next as i64,
        };
        let answer = self.line.link()?.change(&self.table, &wanted).await;
        self.line.answered(answer, unknown)
    }

    /// The gateway does not tell how the file system below syncs.
    fn is_durable(&self) -> bool {
        false
    }

    fn round_trips(&self) -> u64 {
        self.line.round_trips
    }
}

fn check_row(group: &[u8]) -> Result<(), Failure> {
    match group.len() {
        1..=ROW_BYTES_MAX => Ok(()),
        length => Err(Failure::Refused(format!(
            "the key of a group has {length} bytes; a row of HBase takes 1 to {ROW_BYTES_MAX}"
        ))),
    }
}

/// The qualifier of a record.
fn qualifier_of(key: &[u8]) -> Result<Vec<u8>, Failure> {
    match key.len() < QUALIFIER_BYTES_MAX {
        true => Ok([&[RECORD_BYTE], key].concat()),
        false => Err(Failure::Refused(format!(
            "the key of a record has {} bytes; HBase takes fewer than {QUALIFIER_BYTES_MAX}",
            key.len()
        ))),
    }
}

fn strange() -> Failure {
    Failure::Refused(String::from(
        "a row of HBase that none of these clients has written",
    ))
}

impl Wire for HBase {
    fn connect(endpoint: &Endpoint, _: &Target, timeout: Duration) -> Result<HBase, LinkError> {
        HBase::connect(endpoint, Some(timeout))
    }

    fn failure_of(error: &LinkError, broken: Broken) -> Failure {
        match error {
            LinkError::Server(refused) if refused.sqlstate == "HB001" => {
                Failure::Refused(refused.message.clone())
            }
            // The gateway has no such method.
            LinkError::Server(refused) if refused.sqlstate == "TH001" => Failure::Refused(format!(
                "{}: is this a gateway of Thrift 2?",
                refused.message
            )),
            LinkError::Server(_)
            | LinkError::Io(..)
            | LinkError::Tls(_)
            | LinkError::Protocol(_) => broken(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use links::answers::ServerError;

    #[test]
    fn errors_tell_whether_a_change_may_have_happened() {
        let of = |code: &str| {
            let error = ServerError {
                sqlstate: code.to_owned(),
                message: String::from("no"),
            };
            HBase::failure_of(&LinkError::Server(error), unknown)
        };
        assert!(matches!(of("HB001"), Failure::Refused(_)));
        assert!(matches!(of("HB002"), Failure::Unknown(_)));
        assert!(matches!(of("TH006"), Failure::Unknown(_)));
        assert!(matches!(of("TH001"), Failure::Refused(_)));
        let gone = LinkError::Protocol("gone");
        assert!(matches!(HBase::failure_of(&gone, lost), Failure::Lost(_)));
    }

    #[test]
    fn names_and_keys_that_cannot_be_are_refused() {
        let open = |url: &str| {
            let target = Target::parse(url).unwrap();
            HBaseGroups::new(target, Duration::from_secs(1), 1)
        };
        assert!(open("hbase://h/shop-1").is_ok());
        assert!(open("hbase://h").is_ok());
        for url in ["hbase://h/a%20b", "hbase://h/.a", "hbase://h/a:b"] {
            assert!(open(url).is_err(), "{url}");
        }
        assert!(qualifier_of(&[0; QUALIFIER_BYTES_MAX]).is_err());
        assert!(check_row(b"").is_err());
        assert!(check_row(&[0; ROW_BYTES_MAX + 1]).is_err());
    }
}

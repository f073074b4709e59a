//! A client of HBase by its gateway (Thrift 2, framed): rows, and changes of a row on a condition.
//!
//! What the server refuses is [`LinkError::Server`]: `HB001` if asking again is of no use, `HB002`
//! if it may be.

use crate::answers::ServerError;
use crate::link::{LinkError, reach};
use crate::thrift::{Fields, Thrift, Value, text_of};
use crate::url::Endpoint;
use std::time::Duration;

/// Comparison: equal.
const EQUAL: i32 = 2;
/// A deletion takes all versions up to its time.
const DELETE_COLUMNS: i32 = 1;
/// A change is written to the log, and the log is synced to disk.
const FSYNC_WAL: i32 = 4;
/// Kind of a gateway: Thrift 2.
const THRIFT_2: i64 = 2;

/// One connection to a gateway.
#[derive(Debug)]
pub struct HBase {
    /// Its calls.
    pub thrift: Thrift,
}

/// Where a value lies in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column<'a> {
    /// The family.
    pub family: &'a [u8],
    /// Its name in the family.
    pub qualifier: &'a [u8],
}

/// What is read of a row.
#[derive(Clone, Copy, Debug)]
pub enum Part<'a> {
    /// These columns.
    Columns(&'a [Column<'a>]),
    /// What a filter lets pass, in the language of HBase.
    Filter(&'a [u8]),
}

/// A change of a row.
#[derive(Clone, Debug)]
pub struct Change<'a> {
    /// The row.
    pub row: &'a [u8],
    /// The change happens if this column has this value; no bytes: if it has none.
    pub condition: (Column<'a>, &'a [u8]),
    /// Values that are set.
    pub puts: &'a [(Column<'a>, &'a [u8])],
    /// Columns that are deleted.
    pub deletes: &'a [Column<'a>],
    /// The time of all of this. It must grow from change to change: a deletion hides what is of
    /// the same time.
    pub time: i64,
}

/// A column of a row, and its value.
pub type Found = (Vec<u8>, Vec<u8>);

impl HBase {
    /// Connects. `timeout` bounds every wait.
    ///
    /// # Errors
    /// No server.
    pub fn connect(endpoint: &Endpoint, timeout: Option<Duration>) -> Result<HBase, LinkError> {
        let stream = reach(endpoint, timeout)?;
        stream.set_timeout(timeout)?;
        let thrift = Thrift::new(stream);
        Ok(HBase { thrift })
    }

    /// Asks whether this is a gateway of Thrift 2.
    ///
    /// # Errors
    /// The connection broke, or it is another server.
    pub async fn check(&mut self) -> Result<(), LinkError> {
        let found = self.call("getThriftServerType", &Fields::default()).await?;
        match found.and_then(|found| found.number()) {
            Some(THRIFT_2) => Ok(()),
            _ => Err(LinkError::Protocol(
                "a gateway of HBase that is not Thrift 2",
            )),
        }
    }

    /// Qualifiers and values of a part of a row, in the order of the qualifiers.
    ///
    /// # Errors
    /// The connection broke, or the server refuses.
    pub async fn get(
        &mut self,
        table: &[u8],
        row: &[u8],
        part: Part<'_>,
    ) -> Result<Vec<Found>, LinkError> {
        let mut get = Fields::default();
        get.bytes(1, row);
        match part {
            Part::Columns(columns) => {
                let columns: Vec<Fields> = columns.iter().map(|it| column(*it, None)).collect();
                get.list(2, &columns);
            }
            Part::Filter(filter) => get.bytes(6, filter),
        }
        let mut arguments = Fields::default();
        arguments.bytes(1, table);
        arguments.fields(2, &get);
        let result = self.call("get", &arguments).await?;
        found_of(result.as_ref())
    }

    /// Changes a row if a condition holds: whether it did. It is one step, on disk before it is
    /// answered as far as the server's file system can do that.
    ///
    /// # Errors
    /// The connection broke, or the server refuses. Whether it happened is not known after the
    /// former, nor after `HB002` and exceptions of Thrift (`TH`).
    pub async fn change(&mut self, table: &[u8], change: &Change<'_>) -> Result<bool, LinkError> {
        let mut mutations = Vec::new();
        if !change.puts.is_empty() {
            let values = change.puts.iter();
            let values: Vec<Fields> = values
                .map(|(place, value)| {
                    let mut fields = column(*place, None);
                    fields.bytes(3, value);
                    fields
                })
                .collect();
            let mut put = Fields::default();
            put.bytes(1, change.row);
            put.list(2, &values);
            put.long(3, change.time);
            put.int(6, FSYNC_WAL);
            let mut mutation = Fields::default();
            mutation.fields(1, &put);
            mutations.push(mutation);
        }
        if !change.deletes.is_empty() {
            let columns = change.deletes.iter();
            let columns: Vec<Fields> = columns.map(|it| column(*it, Some(change.time))).collect();
            let mut delete = Fields::default();
            delete.bytes(1, change.row);
            delete.list(2, &columns);
            delete.int(4, DELETE_COLUMNS);
            delete.int(7, FSYNC_WAL);
            let mut mutation = Fields::default();
            mutation.fields(2, &delete);
            mutations.push(mutation);
        }
        let mut row = Fields::default();
        row.bytes(1, change.row);
        row.list(2, &mutations);
        let (place, value) = change.condition;
        let mut arguments = Fields::default();
        arguments.bytes(1, table);
        arguments.bytes(2, change.row);
        arguments.bytes(3, place.family);
        arguments.bytes(4, place.qualifier);
        arguments.int(5, EQUAL);
        arguments.bytes(6, value);
        arguments.fields(7, &row);
        let is_done = self.call("checkAndMutate", &arguments).await?;
        let is_done = is_done.and_then(|it| it.number());
        is_done
            .map(|it| it != 0)
            .ok_or(LinkError::Protocol("a reply of HBase to checkAndMutate"))
    }

    /// Makes a table empty, which has one family.
    ///
    /// # Errors
    /// The connection broke, or the server refuses.
    pub async fn clear(&mut self, table: &[u8], family: &[u8]) -> Result<(), LinkError> {
        let mut name = Fields::default();
        name.bytes(2, table);
        let mut arguments = Fields::default();
        arguments.fields(1, &name);
        let is_there = self.call("tableExists", &arguments).await?;
        if is_there.and_then(|it| it.number()) == Some(1) {
            let is_enabled = self.call("isTableEnabled", &arguments).await?;
            if is_enabled.and_then(|it| it.number()) == Some(1) {
                self.call("disableTable", &arguments).await?;
            }
            self.call("deleteTable", &arguments).await?;
        }
        let mut of_family = Fields::default();
        of_family.bytes(1, family);
        of_family.int(10, 1);
        let mut descriptor = Fields::default();
        descriptor.fields(1, &name);
        descriptor.list(2, &[of_family]);
        let mut arguments = Fields::default();
        arguments.fields(1, &descriptor);
        self.call("createTable", &arguments).await.map(drop)
    }

    /// Calls a method of the gateway: what it returns, if it does.
    async fn call(&mut self, method: &str, arguments: &Fields) -> Result<Option<Value>, LinkError> {
        let reply = self.thrift.call(method, arguments).await?;
        match reply {
            Value::Struct(fields) => result_of(fields),
            Value::Number(_) | Value::Bytes(_) | Value::List(_) => {
                Err(LinkError::Protocol("a reply of HBase"))
            }
        }
    }
}

fn column(place: Column<'_>, time: Option<i64>) -> Fields {
    let mut fields = Fields::default();
    fields.bytes(1, place.family);
    fields.bytes(2, place.qualifier);
    if let Some(time) = time {
        fields.long(3, time);
    }
    fields
}

/// What a method returns, or throws.
fn result_of(fields: Vec<(i16, Value)>) -> Result<Option<Value>, LinkError> {
    let Some((number, value)) = fields.into_iter().next() else {
        return Ok(None);
    };
    if number == 0 {
        return Ok(Some(value));
    }
    // An exception: its text, and whether asking again may help.
    let is_final = number != 1 || value.field(2).and_then(Value::number) == Some(0);
    Err(LinkError::Server(ServerError {
        sqlstate: String::from(if is_final { "HB001" } else { "HB002" }),
        message: text_of(value.field(1)),
    }))
}

fn found_of(result: Option<&Value>) -> Result<Vec<Found>, LinkError> {
    let values = result.and_then(|result| result.field(2));
    let values = values.ok_or(LinkError::Protocol("a row of HBase"))?.list();
    let found = values.iter().map(|value| {
        let part = |number| {
            value
                .field(number)
                .and_then(Value::bytes)
                .map(<[u8]>::to_vec)
        };
        part(2).zip(part(3))
    });
    let found: Option<Vec<Found>> = found.collect();
    let mut found = found.ok_or(LinkError::Protocol("a value of HBase"))?;
    found.sort();
    Ok(found)
}

/// A filter of HBase's language: qualifiers from `from` and before `to`, and this one.
pub fn range_or(from: &[u8], to: &[u8], other: &[u8]) -> Vec<u8> {
    let mut filter = b"ColumnRangeFilter ('".to_vec();
    push_quoted(from, &mut filter);
    filter.extend_from_slice(b"', true, '");
    push_quoted(to, &mut filter);
    filter.extend_from_slice(b"', false) OR QualifierFilter (=, 'binary:");
    push_quoted(other, &mut filter);
    filter.extend_from_slice(b"')");
    filter
}

/// Within quotes a quote is two.
fn push_quoted(bytes: &[u8], out: &mut Vec<u8>) {
    for byte in bytes {
        out.push(*byte);
        if *byte == b'\'' {
            out.push(b'\'');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(qualifier: &[u8], value: &[u8]) -> Value {
        Value::Struct(vec![
            (1, Value::Bytes(b"e".to_vec())),
            (2, Value::Bytes(qualifier.to_vec())),
            (3, Value::Bytes(value.to_vec())),
            (4, Value::Number(7)),
        ])
    }

    #[test]
    fn rows_are_read_in_the_order_of_their_columns() {
        let values = vec![value(b"b", b"2"), value(b"a", b"1")];
        let row = Value::Struct(vec![(2, Value::List(values))]);
        let found = found_of(Some(&row)).unwrap();
        let wanted = [
            (b"a".to_vec(), b"1".to_vec()),
            (b"b".to_vec(), b"2".to_vec()),
        ];
        assert_eq!(found, wanted);
        let empty = Value::Struct(vec![(2, Value::List(Vec::new()))]);
        assert_eq!(found_of(Some(&empty)).unwrap(), []);
        for bad in [
            Value::Number(1),
            Value::Struct(Vec::new()),
            Value::Struct(vec![(2, Value::List(vec![Value::Number(1)]))]),
        ] {
            assert!(found_of(Some(&bad)).is_err(), "{bad:?}");
        }
        assert!(found_of(None).is_err());
    }

    #[test]
    fn exceptions_tell_whether_to_ask_again() {
        let thrown = |fields| {
            let text = (1, Value::Bytes(b"no table".to_vec()));
            let fields = [vec![text], fields].concat();
            match result_of(vec![(1, Value::Struct(fields))]) {
                Err(LinkError::Server(error)) => format!("{} {}", error.sqlstate, error.message),
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(thrown(vec![(2, Value::Number(0))]), "HB001 no table");
        assert_eq!(thrown(vec![(2, Value::Number(1))]), "HB002 no table");
        assert_eq!(thrown(Vec::new()), "HB002 no table");
        let number = Some(Value::Number(1));
        assert_eq!(result_of(vec![(0, Value::Number(1))]).unwrap(), number);
        assert_eq!(result_of(Vec::new()).unwrap(), None);
    }

    #[test]
    fn quotes_in_a_filter_are_doubled() {
        let range = b"ColumnRangeFilter ('\x01a''', true, '\x01b', false)";
        let other = b" OR QualifierFilter (=, 'binary:h')";
        let filter = range_or(b"\x01a'", b"\x01b", b"h");
        assert_eq!(filter, [&range[..], other].concat());
    }
}

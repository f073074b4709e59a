//! The answers of one round: rows of several statements in one buffer that is used again.

use crate::tpcc::text::parse_fixed;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

/// An error that the server reported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerError {
    /// Five characters, such as `40001`.
    pub sqlstate: String,
    /// The primary message.
    pub message: String,
}

impl fmt::Display for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (SQLSTATE {})", self.message, self.sqlstate)
    }
}

/// One statement that was answered.
#[derive(Clone, Copy, Debug, Default)]
struct Statement {
    first_cell: usize,
    columns: usize,
    rows: usize,
    tag: (usize, usize),
}

/// Rows and command tags of the statements of one round, in the order in which they were sent.
///
/// Cells are text as the server wrote it. A statement after the one that failed has no entry.
#[derive(Clone, Debug, Default)]
pub struct Answers {
    bytes: Vec<u8>,
    /// Start and length in `bytes`; `None` is NULL.
    cells: Vec<Option<(usize, usize)>>,
    done: Vec<Statement>,
    open: Statement,
    /// The error that ended the round, if one did.
    pub error: Option<ServerError>,
}

impl Answers {
    /// An empty set of answers, to be filled by rounds again and again.
    pub fn new() -> Answers {
        Answers::default()
    }

    /// Forgets everything, for the next round.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.cells.clear();
        self.done.clear();
        self.open = Statement::default();
        self.error = None;
    }

    /// Adds a DataRow message body. `None` when it is malformed.
    pub fn push_row(&mut self, mut body: &[u8]) -> Option<()> {
        let columns = usize::from(u16::from_be_bytes(take(&mut body)?));
        for _ in 0..columns {
            let length = i32::from_be_bytes(take(&mut body)?);
            if length < 0 {
                self.cells.push(None);
                continue;
            }
            let (cell, rest) = body.split_at_checked(length as usize)?;
            self.cells.push(Some((self.bytes.len(), cell.len())));
            self.bytes.extend_from_slice(cell);
            body = rest;
        }
        self.open.columns = columns;
        self.open.rows += 1;
        Some(())
    }

    /// Adds a row of cells; `None` is NULL.
    pub fn push_cells<'a>(&mut self, cells: impl Iterator<Item = Option<&'a [u8]>>) {
        self.open.columns = 0;
        for cell in cells {
            self.open.columns += 1;
            self.cells.push(cell.map(|cell| {
                self.bytes.extend_from_slice(cell);
                (self.bytes.len() - cell.len(), cell.len())
            }));
        }
        self.open.rows += 1;
    }

    /// Ends the current statement with its command tag.
    pub fn finish_statement(&mut self, tag: &[u8]) {
        self.open.tag = (self.bytes.len(), tag.len());
        self.bytes.extend_from_slice(tag);
        self.done.push(self.open);
        self.open = Statement {
            first_cell: self.cells.len(),
            ..Statement::default()
        };
    }

    /// Statements that were answered without error.
    pub fn statements(&self) -> usize {
        self.done.len()
    }

    /// Rows of a statement; 0 for one that was not answered.
    pub fn rows(&self, statement: usize) -> usize {
        self.done.get(statement).map_or(0, |s| s.rows)
    }

    /// Columns of a statement's rows; 0 for one that returned none.
    pub fn columns(&self, statement: usize) -> usize {
        self.done.get(statement).map_or(0, |s| s.columns)
    }

    /// The command tag of a statement, such as `UPDATE 1`.
    pub fn tag(&self, statement: usize) -> &str {
        let (start, length) = self.done.get(statement).map_or((0, 0), |s| s.tag);
        core::str::from_utf8(&self.bytes[start..start + length]).unwrap_or("")
    }

    /// The row count in the command tag; 0 where there is none.
    pub fn affected(&self, statement: usize) -> u64 {
        self.tag(statement)
            .rsplit(' ')
            .next()
            .and_then(|n| n.parse().ok())
            .unwrap_or(0)
    }

    /// The number that the server has given to an inserted row, where it tells it with the count of
    /// rows: MySQL does. `None`: it has given or told none.
    pub fn given(&self, statement: usize) -> Option<i64> {
        let numbers = self.tag(statement).strip_prefix("INSERT ")?;
        let (given, _) = numbers.split_once(' ')?;
        given.parse().ok().filter(|given| *given > 0)
    }

    /// A cell's bytes; `None` for NULL and for what is not there.
    pub fn cell(&self, statement: usize, row: usize, column: usize) -> Option<&[u8]> {
        let s = self.done.get(statement)?;
        if row >= s.rows || column >= s.columns {
            return None;
        }
        let (start, length) = self.cells[s.first_cell + row * s.columns + column]?;
        Some(&self.bytes[start..start + length])
    }

    /// A cell as text; empty for NULL, for what is not there and for what is not UTF-8.
    pub fn text(&self, statement: usize, row: usize, column: usize) -> &str {
        self.cell(statement, row, column)
            .and_then(|c| core::str::from_utf8(c).ok())
            .unwrap_or("")
    }

    /// A cell as an integer count of `10^-places`; `None` when it is no such number.
    pub fn fixed(&self, statement: usize, row: usize, column: usize, places: u32) -> Option<i64> {
        parse_fixed(self.cell(statement, row, column)?, places)
    }

    /// A cell as an integer.
    pub fn int(&self, statement: usize, row: usize, column: usize) -> Option<i64> {
        self.fixed(statement, row, column, 0)
    }

    /// A cell as money in cents.
    pub fn cents(&self, statement: usize, row: usize, column: usize) -> Option<i64> {
        self.fixed(statement, row, column, 2)
    }
}

fn take<const N: usize>(body: &mut &[u8]) -> Option<[u8; N]> {
    let (head, rest) = body.split_first_chunk::<N>()?;
    *body = rest;
    Some(*head)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_of_several_statements_are_found() {
        let mut answers = Answers::new();
        answers
            .push_row(b"\0\x02\0\0\0\x0212\xff\xff\xff\xff")
            .unwrap();
        answers
            .push_row(b"\0\x02\0\0\0\x013\0\0\0\x045.25")
            .unwrap();
        answers.finish_statement(b"SELECT 2");
        answers.finish_statement(b"UPDATE 7");
        assert_eq!(answers.statements(), 2);
        assert_eq!(
            (answers.rows(0), answers.rows(1), answers.rows(2)),
            (2, 0, 0)
        );
        assert_eq!(
            (answers.int(0, 0, 0), answers.int(0, 0, 1)),
            (Some(12), None)
        );
        assert_eq!(answers.cents(0, 1, 1), Some(525));
        assert_eq!((answers.affected(1), answers.tag(1)), (7, "UPDATE 7"));
        for (tag, given) in [
            ("INSERT 41 1", Some(41)),
            ("INSERT 0 1", None),
            ("INSERT 1", None),
        ] {
            answers.finish_statement(tag.as_bytes());
            let last = answers.statements() - 1;
            assert_eq!((answers.affected(last), answers.given(last)), (1, given));
        }
        assert_eq!(answers.cell(0, 2, 0), None);
        answers.clear();
        assert_eq!(answers.statements(), 0);
    }

    #[test]
    fn malformed_rows_are_refused() {
        assert_eq!(Answers::new().push_row(b"\0"), None);
        assert_eq!(Answers::new().push_row(b"\0\x01\0\0\0\x05ab"), None);
    }
}

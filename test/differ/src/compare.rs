//! What a server answers to a statement, and whether two answers are the same.

use std::fmt;
use tokio_postgres::{Client, SimpleQueryMessage};

/// An answer to one statement.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Answer {
    Rows {
        names: Vec<String>,
        rows: Vec<Vec<Option<String>>>,
    },
    /// Number of rows that the statement changed.
    Done(u64),
    Error {
        state: String,
        message: String,
    },
    /// The connection broke.
    Lost(String),
}

impl Answer {
    /// Sends `sql`, which is one statement.
    pub(crate) async fn ask(client: &Client, sql: &str) -> Answer {
        let messages = match client.simple_query(sql).await {
            Ok(messages) => messages,
            Err(error) => {
                return match error.as_db_error() {
                    Some(error) => Answer::Error {
                        state: error.code().code().into(),
                        message: error.message().into(),
                    },
                    None => Answer::Lost(error.to_string()),
                };
            }
        };
        let mut names = None;
        let mut rows = Vec::new();
        let mut done = 0;
        for message in messages {
            match message {
                SimpleQueryMessage::RowDescription(columns) => {
                    names = Some(
                        columns
                            .iter()
                            .map(|column| column.name().to_string())
                            .collect(),
                    );
                }
                SimpleQueryMessage::Row(row) => {
                    let cells = (0..row.len()).map(|at| row.get(at).map(str::to_string));
                    rows.push(cells.collect());
                }
                SimpleQueryMessage::CommandComplete(count) => done = count,
                _ => {}
            }
        }
        match names {
            Some(names) => Answer::Rows { names, rows },
            None => Answer::Done(done),
        }
    }

    /// The SQLSTATE; empty for success.
    pub(crate) fn state(&self) -> &str {
        match self {
            Answer::Rows { .. } | Answer::Done(_) => "",
            Answer::Error { state, .. } => state,
            Answer::Lost(_) => "lost",
        }
    }

    pub(crate) fn gives_rows(&self) -> bool {
        matches!(self, Answer::Rows { rows, .. } if !rows.is_empty())
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Answer::Rows { names, rows } => {
                write!(f, "{} rows of ({})", rows.len(), names.join(", "))?;
                for row in rows.iter().take(6) {
                    let cells = row.iter().map(|cell| cell.as_deref().unwrap_or("NULL"));
                    write!(f, "\n      {}", cells.collect::<Vec<_>>().join(" | "))?;
                }
                Ok(())
            }
            Answer::Done(count) => write!(f, "done, {count} rows touched"),
            Answer::Error { state, message } => write!(f, "{state}: {message}"),
            Answer::Lost(error) => write!(f, "the connection broke: {error}"),
        }
    }
}

/// The part of an answer that must be the same on both servers.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Order {
    /// The rows, in any order.
    Any,
    /// Rows and their order, which is by all columns. Values that sort as equal may have different
    /// texts (1.5 and 1.50).
    Given,
    /// Every text.
    Exact,
}

/// Whether both servers give the same answer.
pub(crate) fn same(one: &Answer, other: &Answer, order: Order) -> bool {
    match (one, other) {
        (Answer::Rows { names: a, rows: x }, Answer::Rows { names: b, rows: y }) => {
            if a != b || x.len() != y.len() {
                return false;
            }
            if order == Order::Exact {
                return x.iter().zip(y).all(|(x, y)| same_row(x, y));
            }
            let (mut x, mut y) = (canonical(x), canonical(y));
            if order == Order::Any {
                x.sort();
                y.sort();
            }
            x.iter().zip(&y).all(|(x, y)| same_row(x, y))
        }
        (Answer::Done(a), Answer::Done(b)) => a == b,
        (Answer::Error { state: a, .. }, Answer::Error { state: b, .. }) => a == b,
        _ => false,
    }
}

/// Rows with the texts of equal values made alike.
fn canonical(rows: &[Vec<Option<String>>]) -> Vec<Vec<Option<String>>> {
    let cell = |text: &String| match text
        .strip_prefix('{')
        .and_then(|text| text.strip_suffix('}'))
    {
        Some(items) if !text.contains('"') => {
            let items: Vec<String> = items.split(',').map(number_or_text).collect();
            format!("{{{}}}", items.join(","))
        }
        _ => number_or_text(text),
    };
    let row = |row: &Vec<Option<String>>| row.iter().map(|text| text.as_ref().map(cell)).collect();
    rows.iter().map(row).collect()
}

/// A number without the zeros at its end; any other text without the blanks there.
fn number_or_text(text: &str) -> String {
    let text = text.trim_end();
    match text.split_once('.') {
        // Digits behind the point: trailing zeros.
        Some((whole, part)) if is_digits(whole) && part.bytes().all(|b| b.is_ascii_digit()) => {
            let part = part.trim_end_matches('0');
            let whole = if whole == "-0" && part.is_empty() {
                "0"
            } else {
                whole
            };
            match part.is_empty() {
                true => whole.to_string(),
                false => format!("{whole}.{part}"),
            }
        }
        _ if text == "-0" => "0".to_string(),
        _ => text.to_string(),
    }
}

fn is_digits(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())
}

fn same_row(x: &[Option<String>], y: &[Option<String>]) -> bool {
    x.len() == y.len()
        && x.iter()
            .zip(y)
            .all(|(x, y)| same_cell(x.as_deref(), y.as_deref()))
}

/// Equal texts, or floats that differ in their last digits: libraries compute sines differently,
/// and sums depend on the order of rows.
fn same_cell(x: Option<&str>, y: Option<&str>) -> bool {
    if x == y {
        return true;
    }
    let (Some(x), Some(y)) = (x, y) else {
        return false;
    };
    let long = |text: &str| text.len() >= 16 || text.contains('e');
    if !long(x) && !long(y) {
        return false;
    }
    let (Ok(x), Ok(y)) = (x.parse::<f64>(), y.parse::<f64>()) else {
        return false;
    };
    let larger = x.abs().max(y.abs());
    (x - y).abs() <= larger * 1e-12 || (x - y).abs() < 1e-13
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(rows: &[&str]) -> Answer {
        Answer::Rows {
            names: vec!["a".into()],
            rows: rows
                .iter()
                .map(|text| vec![Some(text.to_string())])
                .collect(),
        }
    }

    #[test]
    fn what_differs_is_seen() {
        assert!(!same(&rows(&["1"]), &rows(&["2"]), Order::Given));
        assert!(!same(&rows(&["1"]), &rows(&["1", "1"]), Order::Given));
        assert!(!same(&rows(&["1", "2"]), &rows(&["2", "1"]), Order::Given));
        assert!(!same(&rows(&["1"]), &Answer::Done(1), Order::Given));
        assert!(!same(&Answer::Done(2), &Answer::Done(1), Order::Given));
        let error = |state: &str| Answer::Error {
            state: state.into(),
            message: String::new(),
        };
        assert!(!same(&error("22012"), &error("22003"), Order::Given));
        assert!(!same(
            &rows(&["0.1234567890123"]),
            &rows(&["0.1234567890124"]),
            Order::Given
        ));
    }

    #[test]
    fn one_value_is_compared_to_the_last_digit() {
        assert!(!same(&rows(&["1.50"]), &rows(&["1.5"]), Order::Exact));
        assert!(!same(&rows(&["a "]), &rows(&["a"]), Order::Exact));
        assert!(same(&rows(&["1.50"]), &rows(&["1.50"]), Order::Exact));
    }

    #[test]
    fn what_is_equal_in_value_is_the_same() {
        assert!(same(&rows(&["1", "2"]), &rows(&["2", "1"]), Order::Any));
        assert!(same(&rows(&["1.50"]), &rows(&["1.5"]), Order::Given));
        assert!(same(
            &rows(&["0.12345678901234567"]),
            &rows(&["0.12345678901234568"]),
            Order::Given
        ));
    }
}

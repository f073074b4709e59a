//! Errors and notices as a person reads them: SQLSTATE, the line with a caret under the place,
//! detail and hint.

use std::fmt::Write;

/// The fields of an ErrorResponse or NoticeResponse that are shown.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub(crate) struct Report {
    pub(crate) severity: String,
    pub(crate) sqlstate: String,
    pub(crate) message: String,
    pub(crate) detail: String,
    pub(crate) hint: String,
    /// Character in the statement, from 1; `None` if the server names no place.
    pub(crate) position: Option<usize>,
    /// All other fields: name and text.
    pub(crate) others: Vec<(&'static str, String)>,
}

/// Fields that are shown on demand.
const OTHERS: [(&u8, &str); 10] = [
    (&b'W', "CONTEXT"),
    (&b'q', "INTERNAL QUERY"),
    (&b's', "SCHEMA NAME"),
    (&b't', "TABLE NAME"),
    (&b'c', "COLUMN NAME"),
    (&b'd', "DATATYPE NAME"),
    (&b'n', "CONSTRAINT NAME"),
    (&b'F', "FILE"),
    (&b'L', "LINE"),
    (&b'R', "ROUTINE"),
];

impl Report {
    /// Reads the fields of a message body.
    pub(crate) fn decode(body: &[u8]) -> Report {
        let mut report = Report::default();
        for field in body.split(|&byte| byte == 0) {
            let Some((kind, text)) = field.split_first() else {
                continue;
            };
            let text = String::from_utf8_lossy(text).into_owned();
            match kind {
                b'S' => report.severity = text,
                b'C' => report.sqlstate = text,
                b'M' => report.message = text,
                b'D' => report.detail = text,
                b'H' => report.hint = text,
                b'P' => report.position = text.parse().ok(),
                _ => {
                    if let Some((_, name)) = OTHERS.iter().find(|(other, _)| *other == kind) {
                        report.others.push((name, text));
                    }
                }
            }
        }
        report
    }

    /// All that the server said.
    pub(crate) fn in_full(&self) -> String {
        let mut out = self.render("");
        for (name, text) in self.others.iter().filter(|(name, _)| *name != "CONTEXT") {
            let _ = writeln!(out, "{name}: {text}");
        }
        out
    }

    /// The report on `statement`, ended by a newline.
    pub(crate) fn render(&self, statement: &str) -> String {
        let mut out = format!("{} {}: {}\n", self.severity, self.sqlstate, self.message);
        if let Some(position) = self.position {
            push_place(statement, position, &mut out);
        }
        for (name, text) in [("DETAIL", &self.detail), ("HINT", &self.hint)] {
            if !text.is_empty() {
                let _ = writeln!(out, "{name}: {text}");
            }
        }
        // Where COPY stopped, among other things.
        if let Some((name, text)) = self.others.iter().find(|(name, _)| *name == "CONTEXT") {
            let _ = writeln!(out, "{name}: {text}");
        }
        out
    }
}

/// Most characters of a line that are shown, and how many of them before the place.
const SHOWN: usize = 80;
const SHOWN_BEFORE: usize = 50;

/// Adds the line of the `position`th character (from 1), and a caret under it.
fn push_place(statement: &str, position: usize, out: &mut String) {
    let before: Vec<char> = statement.chars().take(position.saturating_sub(1)).collect();
    let number = before.iter().filter(|c| **c == '\n').count();
    let column = before.iter().rev().take_while(|c| **c != '\n').count();
    let Some(line) = statement.split('\n').nth(number) else {
        return;
    };
    let first = column.saturating_sub(SHOWN_BEFORE);
    let blank = |c: char| if c == '\t' { ' ' } else { c };
    let text: String = line.chars().skip(first).take(SHOWN).map(blank).collect();
    let more = |more: bool| if more { "..." } else { "" };
    let head = format!("LINE {}: {}", number + 1, more(first > 0));
    let tail = more(line.chars().count() > first + SHOWN);
    let room = " ".repeat(head.chars().count() + column - first);
    let _ = writeln!(out, "{head}{}{tail}\n{room}^", text.trim_end());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(position: usize) -> Report {
        Report {
            severity: "ERROR".into(),
            sqlstate: "42703".into(),
            message: "column \"nope\" does not exist".into(),
            position: Some(position),
            ..Report::default()
        }
    }

    #[test]
    fn fields_are_read() {
        let body = b"SERROR\0VERROR\0C22012\0Mdivision by zero\0DOn x.\0HMind y.\0P8\0\0";
        let found = Report::decode(body);
        assert_eq!(
            (found.sqlstate.as_str(), found.position),
            ("22012", Some(8))
        );
        let expected = "ERROR 22012: division by zero\nLINE 1: SELECT 1/0\n               ^\n\
                        DETAIL: On x.\nHINT: Mind y.\n";
        assert_eq!(found.render("SELECT 1/0"), expected);
    }

    #[test]
    fn the_caret_stands_under_the_place() {
        let text = report(18).render("SELECT 'ü',\n  nope\nFROM t");
        let mut lines = text.lines().skip(1);
        assert_eq!(lines.next(), Some("LINE 2:   nope"));
        assert_eq!(lines.next(), Some("             ^"));
    }

    #[test]
    fn long_lines_are_cut_around_the_place() {
        let statement = format!("SELECT {}, nope, {}", "a".repeat(200), "b".repeat(200));
        let text = report(210).render(&statement);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[1].chars().count(), "LINE 1: ".len() + 3 + SHOWN + 3);
        let caret = lines[2].find('^').expect("there is a caret");
        assert!(lines[1][caret..].starts_with("nope"), "{text}");
    }

    #[test]
    fn a_place_outside_of_the_statement_is_left_out() {
        assert!(
            !report(0)
                .render("")
                .contains("nope\" does not exist\nLINE 2")
        );
        assert!(report(99).render("SELECT 1").contains("LINE 1"));
    }
}

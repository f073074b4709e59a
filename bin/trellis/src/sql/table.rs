//! Rows as a person reads them: an aligned table, one block per row, or plain cells.

use std::fmt::Write;

/// A column of a result.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Column {
    pub(crate) name: String,
    /// Numbers stand at the right.
    pub(crate) is_number: bool,
}

/// A result: columns, and rows whose cells are `None` for NULL.
#[derive(Default)]
pub(crate) struct Rows {
    pub(crate) columns: Vec<Column>,
    pub(crate) rows: Vec<Vec<Option<String>>>,
}

/// How results are printed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Layout {
    Aligned,
    /// Each row as a block of lines, one per column.
    Expanded,
    /// No header, no frame; cells separated by tabs.
    Plain,
}

impl Rows {
    /// The result as text, ended by a newline.
    pub(crate) fn render(&self, layout: Layout) -> String {
        match layout {
            Layout::Aligned => self.aligned(),
            Layout::Expanded => self.expanded(),
            Layout::Plain => self.plain(),
        }
    }

    fn plain(&self) -> String {
        let mut out = String::new();
        for row in &self.rows {
            let cells: Vec<&str> = row.iter().map(|c| c.as_deref().unwrap_or("")).collect();
            out.push_str(&cells.join("\t"));
            out.push('\n');
        }
        out
    }

    fn aligned(&self) -> String {
        let widths = self.widths();
        let mut out = String::new();
        let names = self.columns.iter().zip(&widths).map(|(column, width)| {
            let room = width.saturating_sub(chars(&column.name));
            let (left, right) = (room / 2, room - room / 2);
            format!(" {}{}{} ", " ".repeat(left), column.name, " ".repeat(right))
        });
        push_line(&mut out, &names.collect::<Vec<_>>().join("|"));
        let lines: Vec<String> = widths.iter().map(|width| "-".repeat(width + 2)).collect();
        push_line(&mut out, &lines.join("+"));
        for row in &self.rows {
            self.push_row(row, &widths, &mut out);
        }
        let count = self.rows.len();
        let _ = writeln!(out, "({count} row{})", if count == 1 { "" } else { "s" });
        out
    }

    /// A cell of several lines makes a row of several lines; `+` says that a cell goes on.
    fn push_row(&self, row: &[Option<String>], widths: &[usize], out: &mut String) {
        let cells: Vec<Vec<&str>> = row.iter().map(|cell| lines(cell)).collect();
        let height = cells.iter().map(Vec::len).max().unwrap_or(1);
        for line in 0..height {
            let columns = self.columns.iter().zip(widths).zip(&cells);
            let parts = columns.map(|((column, width), cell)| {
                let text = cell.get(line).copied().unwrap_or("");
                let room = " ".repeat(width.saturating_sub(chars(text)));
                let more = if line + 1 < cell.len() { '+' } else { ' ' };
                match column.is_number {
                    true => format!(" {room}{text}{more}"),
                    false => format!(" {text}{room}{more}"),
                }
            });
            push_line(out, &parts.collect::<Vec<_>>().join("|"));
        }
    }

    fn widths(&self) -> Vec<usize> {
        let mut widths: Vec<usize> = self.columns.iter().map(|c| chars(&c.name)).collect();
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                let longest = lines(cell).into_iter().map(chars).max();
                *width = (*width).max(longest.unwrap_or(0));
            }
        }
        widths
    }

    fn expanded(&self) -> String {
        let width = self
            .columns
            .iter()
            .map(|c| chars(&c.name))
            .max()
            .unwrap_or(0);
        let mut out = String::new();
        if self.rows.is_empty() {
            out.push_str("(0 rows)\n");
        }
        for (number, row) in self.rows.iter().enumerate() {
            let _ = writeln!(out, "-[ RECORD {} ]{}", number + 1, "-".repeat(width));
            for (column, cell) in self.columns.iter().zip(row) {
                for (at, line) in lines(cell).into_iter().enumerate() {
                    let name = if at == 0 { column.name.as_str() } else { "" };
                    let room = " ".repeat(width - chars(name));
                    push_line(&mut out, &format!("{name}{room} | {line}"));
                }
            }
        }
        out
    }
}

fn push_line(out: &mut String, line: &str) {
    out.push_str(line.trim_end());
    out.push('\n');
}

fn chars(text: &str) -> usize {
    text.chars().count()
}

fn lines(cell: &Option<String>) -> Vec<&str> {
    cell.as_deref().unwrap_or("").split('\n').collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(columns: &[(&str, bool)], rows: &[&[Option<&str>]]) -> Rows {
        let column = |&(name, is_number): &(&str, bool)| Column {
            name: name.into(),
            is_number,
        };
        let row = |row: &&[Option<&str>]| row.iter().map(|cell| cell.map(String::from)).collect();
        Rows {
            columns: columns.iter().map(column).collect(),
            rows: rows.iter().map(row).collect(),
        }
    }

    #[test]
    fn columns_line_up() {
        let found = rows(
            &[("id", true), ("name", false)],
            &[&[Some("1"), Some("Zoë")], &[Some("1000"), None]],
        );
        let expected = "  id  | name\n------+------\n    1 | Zoë\n 1000 |\n(2 rows)\n";
        assert_eq!(found.render(Layout::Aligned), expected);
        assert_eq!(found.render(Layout::Plain), "1\tZoë\n1000\t\n");
    }

    #[test]
    fn long_cells_keep_their_lines() {
        let found = rows(&[("a", false), ("b", true)], &[&[Some("x\nyy"), Some("7")]]);
        let expected = " a  | b\n----+---\n x +| 7\n yy |\n(1 row)\n";
        assert_eq!(found.render(Layout::Aligned), expected);
        let expected = "-[ RECORD 1 ]-\na | x\n  | yy\nb | 7\n";
        assert_eq!(found.render(Layout::Expanded), expected);
    }

    #[test]
    fn an_empty_result_says_so() {
        let found = rows(&[("a", false)], &[]);
        assert_eq!(found.render(Layout::Aligned), " a\n---\n(0 rows)\n");
        assert_eq!(found.render(Layout::Expanded), "(0 rows)\n");
        assert_eq!(found.render(Layout::Plain), "");
    }
}

//! Rows as a person reads them: an aligned table, one block per row, or plain cells.

use std::fmt::Write;
use unicode_width::UnicodeWidthStr;

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
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Style {
    pub(crate) format: Format,
    pub(crate) expanded: Expanded,
    /// No names of columns, no count of rows.
    pub(crate) tuples_only: bool,
    /// What stands for NULL.
    pub(crate) null: String,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Format {
    /// A table whose columns line up.
    Aligned,
    /// Cells separated by `|`.
    Unaligned,
    /// Cells separated by tabs.
    Tabs,
    /// Comma-separated values, quoted where they must be.
    Csv,
}

/// Whether each row is a block of lines, one per column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Expanded {
    On,
    Off,
    /// If the table is wider than the screen.
    Auto,
}

impl Style {
    pub(crate) const ALIGNED: Style = Style {
        format: Format::Aligned,
        expanded: Expanded::Off,
        tuples_only: false,
        null: String::new(),
    };
    /// For other programs: rows only, cells separated by tabs.
    pub(crate) const PLAIN: Style = Style {
        format: Format::Tabs,
        expanded: Expanded::Off,
        tuples_only: true,
        null: String::new(),
    };
}

impl Rows {
    /// The result as text, ended by a newline. `columns` is the width of the screen, if there is
    /// one.
    pub(crate) fn render(&self, style: &Style, columns: Option<usize>) -> String {
        let widths = self.widths(style);
        // Two blanks around each cell, a line between two of them.
        let width = widths.iter().map(|width| width + 3).sum::<usize>();
        let is_expanded = match style.expanded {
            Expanded::On => true,
            Expanded::Off => false,
            Expanded::Auto => columns.is_some_and(|columns| width > columns + 1),
        };
        match style.format {
            _ if is_expanded => self.expanded(style),
            Format::Aligned => self.aligned(style, &widths),
            Format::Unaligned => self.separated(style, "|"),
            Format::Tabs => self.separated(style, "\t"),
            Format::Csv => self.csv(style),
        }
    }

    fn separated(&self, style: &Style, separator: &str) -> String {
        let mut out = String::new();
        if !style.tuples_only {
            let names: Vec<&str> = self.columns.iter().map(|c| c.name.as_str()).collect();
            let _ = writeln!(out, "{}", names.join(separator));
        }
        for row in &self.rows {
            let cells: Vec<&str> = row.iter().map(|cell| text(cell, style)).collect();
            let _ = writeln!(out, "{}", cells.join(separator));
        }
        self.push_count(style, &mut out);
        out
    }

    fn csv(&self, style: &Style) -> String {
        let mut out = String::new();
        if !style.tuples_only {
            let names: Vec<_> = self.columns.iter().map(|c| csv_cell(&c.name)).collect();
            let _ = writeln!(out, "{}", names.join(","));
        }
        for row in &self.rows {
            let cells: Vec<_> = row
                .iter()
                .map(|cell| match cell {
                    // An empty text is told from NULL by its quotes.
                    Some(text) if text.is_empty() => "\"\"".into(),
                    cell => csv_cell(text(cell, style)),
                })
                .collect();
            let _ = writeln!(out, "{}", cells.join(","));
        }
        out
    }

    fn push_count(&self, style: &Style, out: &mut String) {
        let count = self.rows.len();
        if !style.tuples_only {
            let _ = writeln!(out, "({count} row{})", if count == 1 { "" } else { "s" });
        }
    }

    fn aligned(&self, style: &Style, widths: &[usize]) -> String {
        let mut out = String::new();
        if !style.tuples_only {
            let names = self.columns.iter().zip(widths).map(|(column, width)| {
                let name = shown(&column.name);
                let room = width.saturating_sub(name.width());
                let (left, right) = (room / 2, room - room / 2);
                format!(" {}{name}{} ", " ".repeat(left), " ".repeat(right))
            });
            push_line(&mut out, &names.collect::<Vec<_>>().join("|"));
            let lines: Vec<String> = widths.iter().map(|width| "-".repeat(width + 2)).collect();
            push_line(&mut out, &lines.join("+"));
        }
        for row in &self.rows {
            self.push_row(row, style, widths, &mut out);
        }
        self.push_count(style, &mut out);
        out
    }

    /// A cell of several lines makes a row of several lines; `+` says that a cell goes on.
    fn push_row(&self, row: &[Option<String>], style: &Style, widths: &[usize], out: &mut String) {
        let cells: Vec<Vec<String>> = row.iter().map(|cell| lines(text(cell, style))).collect();
        let height = cells.iter().map(Vec::len).max().unwrap_or(1);
        for line in 0..height {
            let columns = self.columns.iter().zip(widths).zip(&cells);
            let parts = columns.map(|((column, width), cell)| {
                let text = cell.get(line).map_or("", String::as_str);
                let room = " ".repeat(width.saturating_sub(text.width()));
                let more = if line + 1 < cell.len() { '+' } else { ' ' };
                match column.is_number {
                    true => format!(" {room}{text}{more}"),
                    false => format!(" {text}{room}{more}"),
                }
            });
            push_line(out, &parts.collect::<Vec<_>>().join("|"));
        }
    }

    fn widths(&self, style: &Style) -> Vec<usize> {
        let mut widths: Vec<usize> = self
            .columns
            .iter()
            .map(|c| shown(&c.name).width())
            .collect();
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                let longest = lines(text(cell, style))
                    .iter()
                    .map(|line| line.width())
                    .max();
                *width = (*width).max(longest.unwrap_or(0));
            }
        }
        widths
    }

    fn expanded(&self, style: &Style) -> String {
        let names: Vec<String> = self.columns.iter().map(|c| shown(&c.name)).collect();
        let width = names.iter().map(|name| name.width()).max().unwrap_or(0);
        let mut out = String::new();
        if self.rows.is_empty() && !style.tuples_only {
            out.push_str("(0 rows)\n");
        }
        for (number, row) in self.rows.iter().enumerate() {
            if !style.tuples_only {
                let _ = writeln!(out, "-[ RECORD {} ]{}", number + 1, "-".repeat(width));
            } else if number > 0 {
                out.push('\n');
            }
            for (name, cell) in names.iter().zip(row) {
                for (at, line) in lines(text(cell, style)).into_iter().enumerate() {
                    let name = if at == 0 { name.as_str() } else { "" };
                    let room = " ".repeat(width - name.width());
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

fn text<'a>(cell: &'a Option<String>, style: &'a Style) -> &'a str {
    cell.as_deref().unwrap_or(&style.null)
}

fn lines(cell: &str) -> Vec<String> {
    cell.split('\n').map(shown).collect()
}

/// A line of a cell as a terminal may get it: what would move the cursor, or do worse, is spelled.
fn shown(line: &str) -> String {
    if !line.contains(char::is_control) {
        return line.to_string();
    }
    let mut out = String::new();
    for c in line.chars() {
        match c {
            '\t' => out.push_str(&" ".repeat(8 - out.width() % 8)),
            '\r' => out.push_str("\\r"),
            '\n' => out.push_str("\\n"),
            c if c.is_control() => {
                let _ = write!(out, "\\x{:02X}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out
}

fn csv_cell(text: &str) -> String {
    match text.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_string(),
    }
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

    fn expanded() -> Style {
        Style {
            expanded: Expanded::On,
            ..Style::ALIGNED
        }
    }

    #[test]
    fn wide_characters_take_two_columns_and_control_characters_do_nothing() {
        let found = rows(
            &[("a", false), ("b", false)],
            &[&[Some("日本"), Some("x\u{1b}[2J\ty")], &[Some("abc"), None]],
        );
        let expected = "  a   |         b\n------+-------------------\n \
                        日本 | x\\x1B[2J        y\n abc  |\n(2 rows)\n";
        assert_eq!(found.render(&Style::ALIGNED, None), expected);
    }

    #[test]
    fn wide_tables_become_blocks_on_a_narrow_screen() {
        let found = rows(
            &[("a", false), ("b", false)],
            &[&[Some("xxxx"), Some("yyyy")]],
        );
        let auto = Style {
            expanded: Expanded::Auto,
            ..Style::ALIGNED
        };
        assert!(found.render(&auto, Some(13)).starts_with("  a   |  b"));
        assert!(found.render(&auto, Some(12)).starts_with("-[ RECORD 1 ]"));
        assert!(found.render(&auto, None).starts_with("  a   |  b"));
    }

    #[test]
    fn other_programs_get_separated_cells() {
        let found = rows(
            &[("a", false), ("b,c", true)],
            &[&[Some("x\"y"), None], &[Some(""), Some("2")]],
        );
        let style = |format| Style {
            format,
            null: "-".into(),
            ..Style::ALIGNED
        };
        let csv = "a,\"b,c\"\n\"x\"\"y\",-\n\"\",2\n";
        assert_eq!(found.render(&style(Format::Csv), None), csv);
        let unaligned = "a|b,c\nx\"y|-\n|2\n(2 rows)\n";
        assert_eq!(found.render(&style(Format::Unaligned), None), unaligned);
    }

    #[test]
    fn columns_line_up() {
        let found = rows(
            &[("id", true), ("name", false)],
            &[&[Some("1"), Some("Zoë")], &[Some("1000"), None]],
        );
        let expected = "  id  | name\n------+------\n    1 | Zoë\n 1000 |\n(2 rows)\n";
        assert_eq!(found.render(&Style::ALIGNED, None), expected);
        assert_eq!(found.render(&Style::PLAIN, None), "1\tZoë\n1000\t\n");
    }

    #[test]
    fn long_cells_keep_their_lines() {
        let found = rows(&[("a", false), ("b", true)], &[&[Some("x\nyy"), Some("7")]]);
        let expected = " a  | b\n----+---\n x +| 7\n yy |\n(1 row)\n";
        assert_eq!(found.render(&Style::ALIGNED, None), expected);
        let expected = "-[ RECORD 1 ]-\na | x\n  | yy\nb | 7\n";
        assert_eq!(found.render(&expanded(), None), expected);
    }

    #[test]
    fn an_empty_result_says_so() {
        let found = rows(&[("a", false)], &[]);
        assert_eq!(found.render(&Style::ALIGNED, None), " a\n---\n(0 rows)\n");
        assert_eq!(found.render(&expanded(), None), "(0 rows)\n");
        assert_eq!(found.render(&Style::PLAIN, None), "");
    }
}

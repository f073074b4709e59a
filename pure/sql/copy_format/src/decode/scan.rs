//! Where a line of text or CSV ends.

use crate::search::find;

/// The end of a line as found so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum LineEnd {
    /// The line goes on in data that has not come yet.
    NeedMore,
    /// A line of `length` bytes; `consumed` counts its end too. `inner_lines`: line ends inside
    /// quotes.
    Line {
        length: usize,
        consumed: usize,
        inner_lines: u64,
    },
    /// The data ends here; `length` bytes before the marker are a last line.
    EndMarker { length: usize },
}

/// What is wrong with a line end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Problem {
    CarriageReturn,
    Newline,
    Marker,
    MarkerStyle,
}

impl Problem {
    pub(super) fn message(self, csv: bool) -> &'static str {
        match (self, csv) {
            (Problem::CarriageReturn, false) => "literal carriage return found in data",
            (Problem::CarriageReturn, true) => "unquoted carriage return found in data",
            (Problem::Newline, false) => "literal newline found in data",
            (Problem::Newline, true) => "unquoted newline found in data",
            (Problem::Marker, _) => "end-of-copy marker corrupt",
            (Problem::MarkerStyle, _) => "end-of-copy marker does not match previous newline style",
        }
    }

    pub(super) fn hint(self, csv: bool) -> &'static str {
        match (self, csv) {
            (Problem::CarriageReturn, false) => "Use \"\\r\" to represent carriage return.",
            (Problem::CarriageReturn, true) => "Use quoted CSV field to represent carriage return.",
            (Problem::Newline, false) => "Use \"\\n\" to represent newline.",
            (Problem::Newline, true) => "Use quoted CSV field to represent newline.",
            (Problem::Marker | Problem::MarkerStyle, _) => "",
        }
    }
}

/// How lines end; the first line decides.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Style {
    #[default]
    Unknown,
    Newline,
    Return,
    ReturnNewline,
}

/// Progress in the current line, so that a line in many chunks is scanned once.
#[derive(Default)]
pub(super) struct Scan {
    style: Style,
    /// Bytes of the line that were looked at.
    at: usize,
    in_quote: bool,
    escaped: bool,
    inner_lines: u64,
}

impl Scan {
    /// Finds the end of the first line of `data` in the text format, where a backslash takes the
    /// next byte along.
    pub(super) fn text_line(&mut self, data: &[u8], at_end: bool) -> Result<LineEnd, Problem> {
        let mut at = self.at;
        while let Some(skip) = find(&data[at..], [b'\n', b'\r', b'\\']) {
            at += skip;
            if data[at] != b'\\' {
                return self.line_end(data, at, at_end);
            }
            match data.get(at + 1) {
                Some(b'.') => return self.marker(data, at, at_end),
                Some(_) => at += 2,
                None if at_end => at += 1,
                None => return Ok(self.need_more(at)),
            }
        }
        Ok(self.data_end(data, at_end))
    }

    /// Finds the end of the first line of `data` in CSV, where line ends count only outside of
    /// quotes.
    pub(super) fn csv_line(
        &mut self,
        data: &[u8],
        at_end: bool,
        quote: u8,
        escape: u8,
    ) -> Result<LineEnd, Problem> {
        if self.at == 0 && data.first() == Some(&b'\\') {
            match data.get(1) {
                None if !at_end => return Ok(LineEnd::NeedMore),
                Some(b'.') => match data.get(2) {
                    None if !at_end => return Ok(LineEnd::NeedMore),
                    None | Some(b'\n' | b'\r') => return self.marker(data, 0, at_end),
                    Some(_) => {}
                },
                _ => {}
            }
        }
        // What ends a line inside quotes only counts.
        let inner = if self.style == Style::Return {
            b'\r'
        } else {
            b'\n'
        };
        loop {
            let rest = &data[self.at..];
            let stop = match self.in_quote {
                true => find(rest, [quote, escape, inner]),
                false => find(rest, [quote, b'\n', b'\r']),
            };
            // An escape before ordinary bytes escapes nothing.
            self.escaped &= stop == Some(0) || rest.is_empty();
            let Some(stop) = stop else {
                self.at = data.len();
                return Ok(self.data_end(data, at_end));
            };
            self.at += stop;
            let byte = data[self.at];
            if !self.in_quote {
                if byte != quote {
                    return self.line_end(data, self.at, at_end);
                }
                self.in_quote = true;
            } else if byte == escape && escape != quote {
                self.escaped = !self.escaped;
            } else {
                self.in_quote = byte != quote || self.escaped;
                self.escaped = false;
                self.inner_lines += u64::from(byte == inner);
            }
            self.at += 1;
        }
    }

    /// A line end at `at`.
    fn line_end(&mut self, data: &[u8], at: usize, at_end: bool) -> Result<LineEnd, Problem> {
        if data[at] == b'\n' {
            return match self.style {
                Style::Unknown | Style::Newline => {
                    self.style = Style::Newline;
                    Ok(self.line(at, at + 1))
                }
                Style::Return | Style::ReturnNewline => Err(Problem::Newline),
            };
        }
        match (self.style, data.get(at + 1)) {
            (Style::Newline, _) => Err(Problem::CarriageReturn),
            (Style::Return, _) => Ok(self.line(at, at + 1)),
            (_, None) if !at_end => Ok(self.need_more(at)),
            (_, Some(b'\n')) => {
                self.style = Style::ReturnNewline;
                Ok(self.line(at, at + 2))
            }
            (Style::Unknown, _) => {
                self.style = Style::Return;
                Ok(self.line(at, at + 1))
            }
            (Style::ReturnNewline, _) => Err(Problem::CarriageReturn),
        }
    }

    /// `\.` at `at`: the end of the data if the line ends behind it.
    fn marker(&mut self, data: &[u8], at: usize, at_end: bool) -> Result<LineEnd, Problem> {
        let end = match data.get(at + 2) {
            None if !at_end => return Ok(self.need_more(at)),
            None => return Ok(LineEnd::EndMarker { length: at }),
            Some(byte) => *byte,
        };
        match (end, self.style) {
            (b'\n', Style::Unknown | Style::Newline) => Ok(LineEnd::EndMarker { length: at }),
            (b'\r', Style::Unknown | Style::Return | Style::ReturnNewline) => {
                Ok(LineEnd::EndMarker { length: at })
            }
            (b'\n' | b'\r', _) => Err(Problem::MarkerStyle),
            _ => Err(Problem::Marker),
        }
    }

    fn data_end(&mut self, data: &[u8], at_end: bool) -> LineEnd {
        if !at_end || data.is_empty() {
            return self.need_more(data.len());
        }
        self.line(data.len(), data.len())
    }

    fn need_more(&mut self, at: usize) -> LineEnd {
        self.at = at;
        LineEnd::NeedMore
    }

    fn line(&mut self, length: usize, consumed: usize) -> LineEnd {
        let inner_lines = self.inner_lines;
        *self = Scan {
            style: self.style,
            ..Scan::default()
        };
        LineEnd::Line {
            length,
            consumed,
            inner_lines,
        }
    }
}

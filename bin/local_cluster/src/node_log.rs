//! What a child node writes to standard error: passed on, and its last lines kept.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::thread::JoinHandle;

/// Lines kept for the message about a node that ends by itself: a panic with its place and text.
const LINES_MAX: usize = 8;

/// The thread that reads one node's standard error.
pub(crate) struct NodeLog {
    reader: Option<JoinHandle<VecDeque<String>>>,
}

impl NodeLog {
    /// Passes on what comes from `source`, to its end.
    pub(crate) fn follow(source: impl Read + Send + 'static) -> NodeLog {
        let reader = std::thread::spawn(move || follow(source, &mut std::io::stderr()));
        NodeLog {
            reader: Some(reader),
        }
    }

    /// The last lines of a node that has ended.
    pub(crate) fn last_lines(&mut self) -> Vec<String> {
        let lines = self.reader.take().and_then(|reader| reader.join().ok());
        lines.unwrap_or_default().into()
    }
}

fn follow(source: impl Read, out: &mut dyn Write) -> VecDeque<String> {
    let mut lines = VecDeque::new();
    let mut source = BufReader::new(source);
    let mut line = Vec::new();
    while source
        .read_until(b'\n', &mut line)
        .is_ok_and(|read| read > 0)
    {
        // A terminal that is gone takes nothing; the node goes on all the same.
        let _ = out.write_all(&line);
        if lines.len() == LINES_MAX {
            lines.pop_front();
        }
        lines.push_back(String::from_utf8_lossy(&line).trim_end().to_owned());
        line.clear();
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_passed_on_and_the_end_kept() {
        let text: String = (0..20).map(|n| format!("line {n}\n")).collect();
        let text = text + "no end of line \u{fffd}";
        let mut out = Vec::new();
        let lines = follow(text.as_bytes(), &mut out);
        assert_eq!(String::from_utf8(out).expect("it was text"), text);
        assert_eq!(lines.len(), LINES_MAX);
        assert_eq!(lines[0], "line 13");
        assert_eq!(lines[LINES_MAX - 1], "no end of line \u{fffd}");
    }
}

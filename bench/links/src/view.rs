//! Progress for a person: a live view in a terminal, plain lines elsewhere.

use std::io::Write;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Columns of a terminal that does not tell how many it has.
const COLUMNS_USUAL: usize = 80;

/// How far a load is.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// Rows written so far, those of an earlier attempt included.
    pub rows: u64,
    /// Rows in all, about.
    pub rows_expected: u64,
    /// Since the start of this attempt.
    pub elapsed: Duration,
    /// Rows written by this attempt.
    pub rows_now: u64,
}

/// The state of a run at one second.
#[derive(Clone, Debug, Default)]
pub struct Live {
    /// `warm-up`, `measuring` or `draining`.
    pub phase: &'static str,
    /// Seconds since the start.
    pub second: u64,
    /// Seconds until the end.
    pub seconds_left: u64,
    /// Committed in the last second, by kind.
    pub committed: Vec<u64>,
    /// Names of the kinds.
    pub kinds: Vec<&'static str>,
    /// Median response in the last second, in microseconds; 0 when nothing finished.
    pub p50_us: u64,
    /// 99th percentile of the same.
    pub p99_us: u64,
    /// Attempts aborted so far in this phase, by SQLSTATE or reason.
    pub aborts: Vec<(String, u64)>,
    /// Failed and unknown so far.
    pub failed: u64,
    /// Arrivals that are due and wait for a free connection; `None` in a closed loop.
    pub waiting: Option<u64>,
}

/// What wants to see progress. All methods may do nothing.
pub trait Progress {
    /// A new stage begins.
    fn stage(&mut self, text: &str);
    /// The load goes on; called several times a second.
    fn loaded(&mut self, loaded: &Loaded);
    /// The run goes on; called once a second.
    fn live(&mut self, live: &Live);
}

/// Shows nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Progress for Silent {
    fn stage(&mut self, _: &str) {}
    fn loaded(&mut self, _: &Loaded) {}
    fn live(&mut self, _: &Live) {}
}

/// Writes to a terminal (redrawing in place) or to a file (a line at a time).
///
/// Errors of the output are ignored: a closed terminal must not end a run.
#[derive(Debug)]
pub struct Screen<W: Write> {
    out: W,
    redraw: bool,
    /// Columns of the terminal.
    columns: usize,
    /// Lines of the block that the next redraw replaces.
    drawn: usize,
    last_line: Option<Duration>,
}

impl<W: Write> Screen<W> {
    /// `redraw` when `out` is a terminal.
    pub fn new(out: W, redraw: bool) -> Screen<W> {
        Screen {
            out,
            redraw,
            columns: match redraw {
                true => columns().unwrap_or(COLUMNS_USUAL),
                false => COLUMNS_USUAL,
            },
            drawn: 0,
            last_line: None,
        }
    }

    fn block(&mut self, lines: &[String]) {
        let mut folded = Vec::new();
        lines
            .iter()
            .for_each(|line| fold(line, self.columns, &mut folded));
        // A line that is too long nevertheless is cut off: the block has as many rows as lines.
        let mut text = String::from("\x1b[?7l");
        if self.drawn > 0 {
            text.push_str(&format!("\x1b[{}A", self.drawn));
        }
        for line in &folded {
            text.push_str("\x1b[2K");
            text.push_str(line);
            text.push('\n');
        }
        // What is left of a longer block.
        text.push_str("\x1b[J\x1b[?7h");
        self.drawn = folded.len();
        self.put(&text);
    }

    fn put(&mut self, text: &str) {
        let _ = self.out.write_all(text.as_bytes());
        let _ = self.out.flush();
    }
}

impl<W: Write> Progress for Screen<W> {
    fn stage(&mut self, text: &str) {
        self.drawn = 0;
        self.last_line = None;
        self.put(&format!("{text}\n"));
    }

    fn loaded(&mut self, loaded: &Loaded) {
        let share = loaded.rows as f64 / loaded.rows_expected.max(1) as f64;
        let text = format!(
            "  {:>3.0} %  {} of about {} rows{}",
            (share * 100.0).min(100.0),
            loaded.rows,
            loaded.rows_expected,
            guess(loaded),
        );
        if self.redraw {
            self.block(&[text]);
        } else if self
            .last_line
            .is_none_or(|at| loaded.elapsed - at >= Duration::from_secs(5))
        {
            self.last_line = Some(loaded.elapsed);
            self.put(&format!("{text}\n"));
        }
    }

    fn live(&mut self, live: &Live) {
        let total: u64 = live.committed.iter().sum();
        let aborts: Vec<String> = live
            .aborts
            .iter()
            .map(|(reason, count)| format!("{reason} {count}"))
            .collect();
        let aborts = if aborts.is_empty() {
            String::from("none")
        } else {
            aborts.join(", ")
        };
        let mut head = format!(
            "  {:<9} {:>4} s  {total:>7} tx/s  p50 {}  p99 {}  {} s left",
            live.phase,
            live.second,
            duration(live.p50_us),
            duration(live.p99_us),
            live.seconds_left,
        );
        if let Some(waiting) = live.waiting {
            head.push_str(&format!("  waiting {waiting}"));
        }
        if !self.redraw {
            let failed = live.failed;
            self.put(&format!("{head}  aborts {aborts}  failed {failed}\n"));
            return;
        }
        let counts = live.kinds.iter().zip(&live.committed);
        let kinds: Vec<String> = counts.map(|(kind, n)| format!("{kind} {n}")).collect();
        self.block(&[
            head,
            format!("  committed {}", kinds.join("  ")),
            format!("  aborts {aborts}  failed or unknown {}", live.failed),
        ]);
    }
}

/// Columns of the terminal at the standard input, if there is one that tells.
fn columns() -> Option<usize> {
    let mut stty = Command::new("stty");
    let asked = stty.arg("size").stdin(Stdio::inherit());
    let told = asked.stderr(Stdio::null()).output().ok()?;
    let told = String::from_utf8(told.stdout).ok()?;
    let columns = told.split_whitespace().nth(1)?.parse().ok()?;
    // One that does not know says 0.
    (columns > 0).then_some(columns)
}

/// Breaks a line between its parts, which two spaces tell apart, so that it fits.
fn fold(line: &str, columns: usize, folded: &mut Vec<String>) {
    let mut rest = line.to_owned();
    while let Some((end, _)) = rest.char_indices().nth(columns) {
        let start = rest.len() - rest.trim_start().len();
        let fits = rest.get(start..end).and_then(|part| part.rfind("  "));
        let Some(at) = fits.or_else(|| rest[start..].find("  ")) else {
            break;
        };
        let at = start + at;
        let next = format!("    {}", rest[at..].trim_start());
        folded.push(rest[..at].trim_end().to_owned());
        rest = next;
    }
    folded.push(rest);
}

/// Rate and time left, once there is ground for a guess: the first rows come slowly, because
/// tables and connections are still being made.
fn guess(loaded: &Loaded) -> String {
    const GROUND: Duration = Duration::from_secs(3);
    let is_enough = loaded.rows_now.saturating_mul(50) >= loaded.rows_expected;
    if loaded.elapsed < GROUND || !is_enough {
        return String::new();
    }
    let rate = loaded.rows_now as f64 / loaded.elapsed.as_secs_f64();
    let left = loaded.rows_expected.saturating_sub(loaded.rows) as f64 / rate;
    format!("  {rate:.0} rows/s  {left:.0} s left")
}

/// Microseconds for a person: three significant digits and a unit.
pub fn duration(us: u64) -> String {
    let (value, unit) = match us {
        0..=999 => return format!("{us} us"),
        1_000..=999_999 => (us as f64 / 1e3, "ms"),
        _ => (us as f64 / 1e6, "s"),
    };
    let places = if value < 10.0 {
        2
    } else {
        usize::from(value < 100.0)
    };
    format!("{value:.places$} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_three_digits() {
        let shown: Vec<String> = [0, 999, 1_234, 12_345, 123_456, 2_500_000]
            .iter()
            .map(|&us| duration(us))
            .collect();
        assert_eq!(
            shown,
            ["0 us", "999 us", "1.23 ms", "12.3 ms", "123 ms", "2.50 s"]
        );
    }

    #[test]
    fn nobody_guesses_the_time_left_at_the_first_second() {
        let at = |rows, millis| {
            let mut screen = Screen::new(Vec::new(), false);
            screen.loaded(&Loaded {
                rows,
                rows_expected: 1_000_000,
                elapsed: Duration::from_millis(millis),
                rows_now: rows,
            });
            String::from_utf8(screen.out).unwrap()
        };
        assert_eq!(at(55, 500), "    0 %  55 of about 1000000 rows\n");
        assert!(!at(100, 5_000).contains("left"), "hardly any rows");
        assert!(!at(500_000, 200).contains("left"), "hardly any time");
        assert!(at(500_000, 10_000).ends_with("  50000 rows/s  10 s left\n"));
    }

    #[test]
    fn lines_are_broken_between_their_parts() {
        let of = |line: &str, columns| {
            let mut folded = Vec::new();
            fold(line, columns, &mut folded);
            folded
        };
        assert_eq!(of("  a 1  b 2", 10), ["  a 1  b 2"]);
        assert_eq!(of("  a 1  b 2  c 3", 12), ["  a 1  b 2", "    c 3"]);
        assert_eq!(
            of("  a 1  bbbbbbbb 2  c", 8),
            ["  a 1", "    bbbbbbbb 2", "    c"]
        );
        assert_eq!(of("  bbbbbbbb 2", 4), ["  bbbbbbbb 2"]);
        assert_eq!(of("", 4), [""]);
        assert_eq!(
            of("  \u{e9}\u{e9}  \u{e9}", 5),
            ["  \u{e9}\u{e9}", "    \u{e9}"]
        );
    }

    #[test]
    fn a_file_gets_lines_and_a_terminal_gets_redraws() {
        let live = Live {
            phase: "measuring",
            committed: vec![7],
            kinds: vec!["a"],
            ..Live::default()
        };
        let mut file = Screen::new(Vec::new(), false);
        file.live(&live);
        file.live(&live);
        let text = String::from_utf8(file.out).unwrap();
        assert_eq!(text.lines().count(), 2);
        assert!(!text.contains('\x1b') && text.contains("7 tx/s"));
        let mut terminal = Screen::new(Vec::new(), true);
        terminal.live(&live);
        terminal.live(&live);
        let text = String::from_utf8(terminal.out).unwrap();
        assert_eq!(
            text.matches("\x1b[3A").count(),
            1,
            "the second replaces the first"
        );
    }
}

//! Golden scripts: blocks of commands, a line `---`, and the trace that they give.
//!
//! ```text
//! # Prose.
//! command
//! command
//! ---
//! trace
//!
//! the next block
//! ```
//!
//! A crate's interpreter implements [`Machine`] and calls [`run_folder`] in one test. `UPDATE=1`
//! in the environment the traces are written again; a person then reads the difference. An empty
//! line ends a trace, so a machine's trace has none. A script without a trace is refused: it would
//! assert nothing.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

use std::path::Path;

/// What a script commands.
pub trait Machine {
    /// Does what the line says, and appends what it has to tell, in whole lines.
    ///
    /// Panics if the line is no command: a mistake in a script.
    fn command(&mut self, line: &str, trace: &mut String);
}

/// Runs all scripts of a folder, each on a machine of its own.
///
/// Panics if one gives another trace than it says, and shows where.
pub fn run_folder<M: Machine>(folder: &Path, new: impl FnMut() -> M) {
    run_or_write(folder, std::env::var_os("UPDATE").is_some(), new);
}

fn run_or_write<M: Machine>(folder: &Path, update: bool, mut new: impl FnMut() -> M) {
    let entries = std::fs::read_dir(folder).expect("the folder of scripts is there");
    let mut paths: Vec<_> = entries
        .map(|entry| entry.expect("a readable folder").path())
        .collect();
    paths.sort();
    assert!(!paths.is_empty(), "there are scripts");
    let mut wrong = Vec::new();
    for path in paths {
        let text = std::fs::read_to_string(&path).expect("a readable script");
        let now = run_script(&text, &mut new());
        assert!(asserts(&now), "{} asserts nothing", path.display());
        if update {
            std::fs::write(&path, now).expect("a writable script");
        } else if now != text {
            wrong.push(format!("{}, {}", path.display(), difference(&text, &now)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Runs all blocks; returns the script with the traces that they give.
pub fn run_script(text: &str, machine: &mut impl Machine) -> String {
    let mut out = String::new();
    let mut trace = String::new();
    let mut in_trace = false;
    for line in text.lines().chain([""]) {
        if line.is_empty() {
            if in_trace {
                assert!(
                    !trace.contains("\n\n"),
                    "a trace has no empty lines:\n{trace}"
                );
                out.push_str(&std::mem::take(&mut trace));
            }
            in_trace = false;
            out.push('\n');
        } else if line == "---" {
            out.push_str("---\n");
            in_trace = true;
        } else if !in_trace {
            out.push_str(line);
            out.push('\n');
            if !line.starts_with('#') {
                machine.command(line, &mut trace);
            }
        }
    }
    // The empty line that was added.
    out.pop();
    out
}

/// Whether some block of the script has a trace.
fn asserts(script: &str) -> bool {
    let mut lines = script.lines().peekable();
    while let Some(line) = lines.next() {
        if line == "---" && lines.peek().is_some_and(|next| !next.is_empty()) {
            return true;
        }
    }
    false
}

fn difference(old: &str, new: &str) -> String {
    let pairs = old.lines().zip(new.lines());
    let same = pairs.take_while(|(old, new)| old == new).count();
    let rest = |text: &str| {
        let lines: Vec<&str> = text.lines().skip(same).take(8).collect();
        lines.join("\n  ")
    };
    format!(
        "line {}\n expected\n  {}\n got\n  {}",
        same + 1,
        rest(old),
        rest(new)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Adds up; tells with `sum`.
    struct Sum(i64);

    impl Machine for Sum {
        fn command(&mut self, line: &str, trace: &mut String) {
            match line {
                "sum" => trace.push_str(&format!("= {}\n", self.0)),
                number => self.0 += number.parse::<i64>().expect("a number"),
            }
        }
    }

    #[test]
    fn traces_are_written_and_right_ones_stay() {
        let script = "# Sums.\n1\n2\nsum\n---\n\n4\nsum\nsum\n---\nold\n";
        let now = run_script(script, &mut Sum(0));
        assert_eq!(
            now,
            "# Sums.\n1\n2\nsum\n---\n= 3\n\n4\nsum\nsum\n---\n= 7\n= 7\n"
        );
        assert_eq!(run_script(&now, &mut Sum(0)), now);
        assert!(asserts(&now) && !asserts("1\n2\n") && !asserts("1\n---\n\n2\n"));
        let told = difference(script, &now);
        assert!(told.starts_with("line 6\n expected\n  \n"), "{told}");
    }

    #[test]
    fn a_wrong_trace_fails_the_folder() {
        let folder = std::env::temp_dir().join(format!("golden-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a writable folder");
        let write = |text: &str| std::fs::write(folder.join("one"), text).expect("writable");
        write("1\nsum\n---\n= 1\n");
        run_or_write(&folder, false, || Sum(0));
        write("1\nsum\n---\n= 2\n");
        let failed = std::panic::catch_unwind(|| run_or_write(&folder, false, || Sum(0)));
        write("1\nsum\n");
        let empty = std::panic::catch_unwind(|| run_or_write(&folder, false, || Sum(0)));
        std::fs::remove_dir_all(&folder).expect("it was made above");
        assert!(failed.is_err() && empty.is_err());
    }
}

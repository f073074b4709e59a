//! Commands that begin with a backslash: what a user may type, and what it means.

use crate::catalog::{self, Titled};
use crate::copy::{self, Copy};
use std::time::Duration;

#[derive(PartialEq, Eq, Debug)]
pub(crate) enum Command {
    Quit,
    Help,
    /// Which statements there are, or the form of those that begin with these words.
    Syntax(String),
    Timing(Option<bool>),
    /// Layout of results: name and value, both may be empty.
    Set(String, String),
    Connect(String),
    ConnectionInfo,
    /// Run the file's statements.
    Include(String),
    /// Results go to a file or program from now on.
    Output(String),
    /// Run the statement that was typed; its result may go to a file or program.
    Go {
        target: String,
        expanded: bool,
    },
    /// Run the statement that was typed again and again.
    Watch(Watch),
    /// Edit a file, or the statement that was typed if the name is empty.
    Edit(String),
    Copy(Copy),
    /// The statement that was typed: show it, forget it, write it to a file.
    Print,
    Reset,
    Write(String),
    Echo(String),
    Folder(String),
    /// A command line for the shell.
    Shell(String),
    /// The last error in full.
    LastError,
    /// Queries under a title each; a query without rows prints nothing if it is not the only one.
    Show(Vec<Titled>),
    /// Relations in detail.
    Describe {
        pattern: String,
        plus: bool,
    },
}

/// How often a statement is repeated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Watch {
    pub(crate) every: Duration,
    /// `None`: until Ctrl-C.
    pub(crate) count: Option<u32>,
}

/// What `\?` prints.
pub(crate) const HELP: &str = r"A statement ends with ; and may span lines.
Tab completes, Ctrl-C cancels, Ctrl-D leaves.

  \q               leave; so do quit and exit
  \h [STATEMENT]   the statements, or the form of one
  \d               tables, views and sequences
  \d[+] NAME       columns, indexes and constraints of a table, + with comments
  \dt \di \ds \dv  tables, indexes, sequences, views
  \df \dT          functions, types
  \dn \du          schemas, roles (each of these takes a pattern: \dt ord*)
  \l[+]            databases
  \c DATABASE      go on with another database
  \conninfo        which server and database this is

  \i FILE          run the statements of a file
  \o [FILE]        results go to a file, or again to the screen; |COMMAND: to a program
  \copy ...        COPY from or to a file on this side: \copy t from 'rows.csv' csv
  \! [COMMAND]     run a command of the shell       \cd DIR      change the folder
  \echo TEXT       print a text

  \g [FILE]        run what was typed; \gx: with one line per column
  \watch [SEC]     run it again and again, every 2 seconds
  \e [FILE]        edit it, or the last statement, with $EDITOR
  \p \r \w FILE    show it, forget it, write it to a file

  \x [on|off|auto] one line per column: always, never, if the table is too wide
  \t \a            rows only; unaligned columns
  \pset [NAME [VALUE]]  format, expanded, null, pager, tuples_only
  \timing [on|off] print the time of each statement
  \errverbose      the last error with all its parts

Trellis tells of itself:  SHOW NODES;  SHOW PLACEMENT;  SHOW SESSIONS; and more: type SHOW and Tab.
";

/// Names of all commands, for completion.
pub(crate) const NAMES: [&str; 43] = [
    r"\!",
    r"\?",
    r"\a",
    r"\c",
    r"\cd",
    r"\connect",
    r"\conninfo",
    r"\copy",
    r"\d",
    r"\d+",
    r"\df",
    r"\di",
    r"\di+",
    r"\dn",
    r"\ds",
    r"\ds+",
    r"\dT",
    r"\dt",
    r"\dt+",
    r"\du",
    r"\dv",
    r"\e",
    r"\echo",
    r"\edit",
    r"\errverbose",
    r"\g",
    r"\gx",
    r"\h",
    r"\i",
    r"\ir",
    r"\l",
    r"\l+",
    r"\o",
    r"\p",
    r"\pset",
    r"\q",
    r"\r",
    r"\t",
    r"\timing",
    r"\w",
    r"\watch",
    r"\x",
    r"\z",
];

/// Splits the command at the front of `text` from what follows it in the line: another command, or
/// behind `\\` more SQL. A backslash in quotes begins no command.
pub(crate) fn split(text: &str) -> (&str, &str) {
    let line_end = text.find('\n').unwrap_or(text.len());
    let line = &text[..line_end];
    let takes_all = [
        r"\copy", r"\!", r"\h", r"\help", r"\o", r"\g", r"\gx", r"\w",
    ];
    let name = line.split_whitespace().next().unwrap_or("");
    if takes_all.contains(&name) {
        return text.split_at(line_end);
    }
    let mut quote = None;
    for (at, c) in line.char_indices().skip(1) {
        match (quote, c) {
            (None, '\\') if line[at..].starts_with(r"\\") => return (&line[..at], &text[at + 2..]),
            (None, '\\') => return text.split_at(at),
            (None, '\'' | '"') => quote = Some(c),
            (Some(open), c) if open == c => quote = None,
            _ => {}
        }
    }
    text.split_at(line_end)
}

/// Reads a command. The error says what is wrong with it.
pub(crate) fn parse(line: &str) -> Result<Command, String> {
    let line = line.trim();
    let (name, rest) = match line.strip_prefix(r"\!") {
        Some(rest) => (r"\!", rest),
        None => line.split_once(char::is_whitespace).unwrap_or((line, "")),
    };
    let rest = rest.trim();
    let name = name.trim_end_matches(';');
    let argument = unquoted(rest.trim_end_matches(';').trim());
    let pattern = rest.trim_end_matches(';').trim();
    let needed = |what: &str| match argument.as_str() {
        "" => Err(format!("{name} needs {what}")),
        _ => Ok(argument.clone()),
    };
    let set = |option: &str| Ok(Command::Set(option.into(), argument.clone()));
    Ok(match name {
        r"\q" | r"\quit" => Command::Quit,
        r"\?" => Command::Help,
        r"\h" | r"\help" => Command::Syntax(argument),
        r"\timing" => Command::Timing(switch(&argument)?),
        r"\x" => return set("expanded"),
        r"\t" => return set("tuples_only"),
        r"\a" => return set("format"),
        r"\pset" => {
            let (option, value) = pattern
                .split_once(char::is_whitespace)
                .unwrap_or((pattern, ""));
            Command::Set(option.into(), unquoted(value.trim()))
        }
        r"\c" | r"\connect" => Command::Connect(needed("a database")?),
        r"\conninfo" => Command::ConnectionInfo,
        r"\i" | r"\ir" | r"\include" => Command::Include(needed("a file")?),
        r"\o" | r"\out" => Command::Output(argument),
        r"\g" | r"\gx" => Command::Go {
            target: argument,
            expanded: name == r"\gx",
        },
        r"\watch" => Command::Watch(watch(&argument)?),
        r"\e" | r"\edit" => Command::Edit(argument),
        r"\copy" => Command::Copy(copy::parse(rest)?),
        r"\p" | r"\print" => Command::Print,
        r"\r" | r"\reset" => Command::Reset,
        r"\w" | r"\write" => Command::Write(needed("a file")?),
        r"\echo" | r"\qecho" => Command::Echo(unquoted(rest)),
        r"\cd" => Command::Folder(argument),
        r"\!" => Command::Shell(rest.to_string()),
        r"\errverbose" => Command::LastError,
        r"\set" | r"\unset" | r"\gset" => {
            return Err(format!(
                "{name}: there are no variables here; \\pset sets the layout"
            ));
        }
        _ => return catalog_command(name, pattern),
    })
}

/// The commands that list and describe; S (system objects) is accepted and says nothing new.
fn catalog_command(name: &str, pattern: &str) -> Result<Command, String> {
    let plus = name.contains('+');
    let list = |title: &str, query| Ok(Command::Show(vec![(title.to_string(), query)]));
    let relations = |kinds| catalog::relations(kinds, pattern, plus);
    match name.trim_end_matches(['+', 'S']) {
        r"\l" | r"\list" => list("Databases", catalog::databases(plus)),
        r"\d" if pattern.is_empty() => list("Relations", relations("'r','p','v','S'")),
        r"\d" => Ok(Command::Describe {
            pattern: pattern.to_string(),
            plus,
        }),
        r"\dt" => list("Tables", relations("'r','p'")),
        r"\di" => list("Indexes", relations("'i','I'")),
        r"\ds" => list("Sequences", relations("'S'")),
        r"\dv" => list("Views", relations("'v'")),
        r"\dn" => list("Schemas", catalog::schemas(pattern)),
        r"\du" | r"\dg" => list("Roles", catalog::roles(pattern)),
        r"\df" | r"\da" => list("Functions", catalog::functions(pattern)),
        r"\dT" => list("Types", catalog::types(pattern)),
        r"\z" | r"\dp" => Err("there are no access privileges yet: every role may do all".into()),
        r"\dx" => Err("there are no extensions".into()),
        _ => Err(format!(r"unknown command {name}; \? lists the commands")),
    }
}

/// An argument without the quotes around it.
fn unquoted(argument: &str) -> String {
    match copy::unquote(argument) {
        Some(inner) => inner,
        None => argument.to_string(),
    }
}

/// `on`, `off` or nothing.
pub(crate) fn switch(argument: &str) -> Result<Option<bool>, String> {
    match argument.to_ascii_lowercase().as_str() {
        "" => Ok(None),
        "on" | "true" | "1" => Ok(Some(true)),
        "off" | "false" | "0" => Ok(Some(false)),
        _ => Err(format!("{argument} is neither on nor off")),
    }
}

/// `SECONDS`, or `i=SECONDS`, and `c=COUNT`.
fn watch(argument: &str) -> Result<Watch, String> {
    let wrong = || format!(r"\watch takes seconds and c=COUNT, not {argument}");
    let mut watch = Watch {
        every: Duration::from_secs(2),
        count: None,
    };
    for part in argument.split_whitespace() {
        if let Some(count) = part.strip_prefix("c=") {
            watch.count = Some(count.parse().map_err(|_| wrong())?);
        } else {
            let seconds: f64 = part.trim_start_matches("i=").parse().map_err(|_| wrong())?;
            watch.every = Duration::try_from_secs_f64(seconds).map_err(|_| wrong())?;
        }
    }
    Ok(watch)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_read() {
        assert_eq!(parse(r"\q"), Ok(Command::Quit));
        assert_eq!(parse(r"\timing ;"), Ok(Command::Timing(None)));
        assert_eq!(parse(r"\timing off"), Ok(Command::Timing(Some(false))));
        assert_eq!(parse(r"\c shop"), Ok(Command::Connect("shop".into())));
        let describe = |pattern: &str, plus| Command::Describe {
            pattern: pattern.into(),
            plus,
        };
        assert_eq!(parse(r"\d orders;"), Ok(describe("orders", false)));
        assert_eq!(parse("\\d+ \"Or ders\""), Ok(describe("\"Or ders\"", true)));
        assert_eq!(parse(r"\c"), Err(r"\c needs a database".into()));
        assert!(parse(r"\nope").is_err_and(|error| error.contains(r"unknown command \nope")));
        assert_eq!(parse(r"\!ls -l"), Ok(Command::Shell("ls -l".into())));
        assert_eq!(parse(r"\echo 'a;'"), Ok(Command::Echo("a;".into())));
    }

    #[test]
    fn intervals_and_counts_are_read() {
        let watch = |millis, count| {
            Ok(Command::Watch(Watch {
                every: Duration::from_millis(millis),
                count,
            }))
        };
        assert_eq!(parse(r"\watch"), watch(2_000, None));
        assert_eq!(parse(r"\watch 0.5"), watch(500, None));
        assert_eq!(parse(r"\watch i=1 c=3"), watch(1_000, Some(3)));
        for wrong in [r"\watch x", r"\watch -1", r"\watch c=x"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn every_name_that_is_completed_is_a_command() {
        for name in NAMES {
            let unknown = parse(name).is_err_and(|error| error.contains("unknown command"));
            assert!(!unknown, "{name}");
        }
    }

    #[test]
    fn commands_follow_each_other_in_a_line() {
        assert_eq!(split("\\x \\timing\nx"), (r"\x ", "\\timing\nx"));
        assert_eq!(split("\\echo 'a\\b' \\q"), (r"\echo 'a\b' ", r"\q"));
        assert_eq!(split(r"\t \\ SELECT 1;"), (r"\t ", " SELECT 1;"));
        assert_eq!(split(r"\copy t from 'a\b'"), (r"\copy t from 'a\b'", ""));
        assert_eq!(split("\\q"), ("\\q", ""));
    }
}

//! `\copy`: COPY between the server and a file or program of the client.

use crate::lexer::tokens;

/// What `\copy` asks for.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct Copy {
    /// The COPY statement for the server.
    pub(crate) statement: String,
    pub(crate) is_from: bool,
    pub(crate) place: Place,
}

/// Where the client has the data, or puts it.
#[derive(PartialEq, Eq, Debug)]
pub(crate) enum Place {
    File(String),
    /// A command line for the shell.
    Program(String),
    /// What follows in the script, or where results go.
    Here,
    /// The client's own standard input or output.
    Standard,
}

const USAGE: &str = "\\copy TABLE [(COLUMNS)] FROM | TO 'FILE' | PROGRAM 'COMMAND' | STDIN | \
                     STDOUT [WITH ...], or \\copy (QUERY) TO ...";

/// Reads what stands behind `\copy`.
pub(crate) fn parse(argument: &str) -> Result<Copy, String> {
    let found = tokens(argument);
    let at = |token: &str| token.as_ptr() as usize - argument.as_ptr() as usize;
    let usage = || format!(r"that is not understood; {USAGE}");
    let mut depth = 0;
    let direction = found.iter().position(|token| {
        match *token {
            "(" => depth += 1,
            ")" => depth -= 1,
            _ => {}
        }
        depth == 0 && (token.eq_ignore_ascii_case("from") || token.eq_ignore_ascii_case("to"))
    });
    let direction = direction.filter(|&index| index > 0).ok_or_else(usage)?;
    let head = argument[..at(found[direction])].trim();
    let is_from = found[direction].eq_ignore_ascii_case("from");
    let target = *found.get(direction + 1).ok_or_else(usage)?;
    let behind = &argument[at(target)..];
    let (place, length) = match target.to_ascii_lowercase().as_str() {
        "stdin" | "stdout" => (Place::Here, target.len()),
        "pstdin" | "pstdout" => (Place::Standard, target.len()),
        "program" => {
            let command = *found.get(direction + 2).ok_or_else(usage)?;
            let line = unquote(command).ok_or(r"\copy PROGRAM needs a command in quotes")?;
            (
                Place::Program(line),
                at(command) + command.len() - at(target),
            )
        }
        _ if target.starts_with('\'') => {
            let path = unquote(target).ok_or(r"the name of the file is not closed by a quote")?;
            (Place::File(path), target.len())
        }
        // A name without quotes ends at a blank, as a shell's.
        _ => {
            let length = behind.find(char::is_whitespace).unwrap_or(behind.len());
            (Place::File(behind[..length].to_string()), length)
        }
    };
    let options = behind[length..].trim().trim_end_matches(';');
    let way = if is_from { "FROM STDIN" } else { "TO STDOUT" };
    Ok(Copy {
        statement: format!("COPY {head} {way} {options}")
            .trim_end()
            .to_string(),
        is_from,
        place,
    })
}

/// The text in single quotes.
pub(crate) fn unquote(token: &str) -> Option<String> {
    let inner = token.strip_prefix('\'')?.strip_suffix('\'')?;
    (token.len() > 1).then(|| inner.replace("''", "'"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(argument: &str, statement: &str, place: Place) {
        let copy = parse(argument).expect(argument);
        assert_eq!((copy.statement.as_str(), copy.place), (statement, place));
        assert_eq!(copy.is_from, statement.contains("FROM STDIN"), "{argument}");
    }

    #[test]
    fn files_and_options_are_told_apart() {
        check(
            "t FROM 'a b.csv' WITH (FORMAT csv);",
            "COPY t FROM STDIN WITH (FORMAT csv)",
            Place::File("a b.csv".into()),
        );
        check(
            "t (a, b) to /tmp/x.tsv",
            "COPY t (a, b) TO STDOUT",
            Place::File("/tmp/x.tsv".into()),
        );
        check(
            "t from 'it''s' csv header",
            "COPY t FROM STDIN csv header",
            Place::File("it's".into()),
        );
        check(
            "public.\"from\" from stdin",
            "COPY public.\"from\" FROM STDIN",
            Place::Here,
        );
        check("t to pstdout", "COPY t TO STDOUT", Place::Standard);
        check(
            "t to program 'gzip > x'",
            "COPY t TO STDOUT",
            Place::Program("gzip > x".into()),
        );
        check(
            "(SELECT a FROM t WHERE b = 'to') to 'x'",
            "COPY (SELECT a FROM t WHERE b = 'to') TO STDOUT",
            Place::File("x".into()),
        );
    }

    #[test]
    fn what_is_missing_is_said() {
        for argument in [
            "",
            "t",
            "from 'x'",
            "t from",
            "t to program",
            "t to program x",
            "t to 'x",
        ] {
            assert!(parse(argument).is_err(), "{argument:?}");
        }
    }
}

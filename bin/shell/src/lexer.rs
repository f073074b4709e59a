//! Where a statement ends in what a user types, and where a command begins: only as much of SQL's
//! lexical rules as that takes.

/// What comes next in a text that is read line by line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Next {
    /// A statement ends; the index behind its `;`.
    Statement(usize),
    /// A command begins; the index of its backslash.
    Command(usize),
    /// The end of the text, in the middle of a statement.
    More {
        /// Where to read on once there is more text.
        from: usize,
        open: Open,
    },
}

/// What is open at the end of a text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Open {
    Nothing,
    String,
    Name,
    Dollar,
    Comment,
}

/// Reads `text` from byte `from` on. A `;` or a backslash in a string, a quoted name, a
/// dollar-quoted text or a comment means nothing.
pub(crate) fn scan(text: &str, from: usize) -> Next {
    let mut at = from;
    while at < text.len() {
        if text.as_bytes()[at] == b'\\' {
            return Next::Command(at);
        }
        match skip(text, at) {
            Piece::End => return Next::Statement(at + 1),
            Piece::To(next) => at = next,
            Piece::Open(open) => return Next::More { from: at, open },
        }
    }
    Next::More {
        from: at,
        open: Open::Nothing,
    }
}

/// The words, quoted texts and signs of `text`, without blanks and comments. What is not closed
/// at the end is the last of them.
pub(crate) fn tokens(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        let is_comment = rest.starts_with("--") || rest.starts_with("/*");
        let next = match skip(text, at) {
            _ if rest.starts_with(is_word) => at + rest.find(|c| !is_word(c)).unwrap_or(rest.len()),
            Piece::End => at + 1,
            Piece::To(next) => next,
            Piece::Open(_) => text.len(),
        };
        if !is_comment && !rest.starts_with(char::is_whitespace) {
            found.push(&text[at..next]);
        }
        at = next;
    }
    found
}

/// Whether `text` says nothing: blanks, comments and empty statements.
pub(crate) fn is_blank(text: &str) -> bool {
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        let is_comment = rest.starts_with("--") || rest.starts_with("/*");
        if !is_comment && !rest.starts_with(|c: char| c.is_whitespace() || c == ';') {
            return false;
        }
        match skip(text, at) {
            Piece::End => at += 1,
            Piece::To(next) => at = next,
            Piece::Open(_) => return rest.starts_with("--"),
        }
    }
    true
}

enum Piece {
    /// A `;` that ends a statement.
    End,
    /// Goes on at this index.
    To(usize),
    /// What begins here is not closed.
    Open(Open),
}

/// What lies at `at`, which is the beginning of a token or inside of a word.
fn skip(text: &str, at: usize) -> Piece {
    let rest = &text[at..];
    let bytes = rest.as_bytes();
    let closed = |length: Option<usize>, open| {
        length.map_or(Piece::Open(open), |length| Piece::To(at + length))
    };
    match bytes[0] {
        b';' => Piece::End,
        b'\'' => closed(
            quoted(rest, b'\'', is_escape_string(&text[..at])),
            Open::String,
        ),
        b'"' => closed(quoted(rest, b'"', false), Open::Name),
        b'$' => match dollar_tag(rest, text[..at].chars().next_back()) {
            Some(tag) => {
                let body = &rest[tag.len()..];
                closed(body.find(tag).map(|end| end + 2 * tag.len()), Open::Dollar)
            }
            None => Piece::To(at + 1),
        },
        // A comment up to the end of the line is over before the next line comes.
        b'-' if bytes.get(1) == Some(&b'-') => {
            closed(rest.find('\n').map(|end| end + 1), Open::Nothing)
        }
        b'/' if bytes.get(1) == Some(&b'*') => closed(comment(bytes), Open::Comment),
        _ => Piece::To(at + rest.chars().next().map_or(1, char::len_utf8)),
    }
}

/// Whether a quote behind `before` begins a string in which a backslash escapes: `E'...'`.
fn is_escape_string(before: &str) -> bool {
    let mut back = before.chars().rev();
    matches!(back.next(), Some('e' | 'E')) && !back.next().is_some_and(is_word)
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '$'
}

/// Length of the quoted text that `rest` begins with. A doubled quote stands for itself.
fn quoted(rest: &str, quote: u8, escapes: bool) -> Option<usize> {
    let bytes = rest.as_bytes();
    let mut at = 1;
    loop {
        match *bytes.get(at)? {
            b'\\' if escapes => at += 2,
            byte if byte == quote => {
                if bytes.get(at + 1) != Some(&quote) {
                    return Some(at + 1);
                }
                at += 2;
            }
            _ => at += 1,
        }
    }
}

/// The tag `$...$` that `rest` begins with, if a dollar behind `before` can begin one.
fn dollar_tag(rest: &str, before: Option<char>) -> Option<&str> {
    if before.is_some_and(is_word) {
        return None;
    }
    let name = rest[1..].split('$').next()?;
    let is_name = !name.starts_with(|c: char| c.is_ascii_digit())
        && name.chars().all(|c| c.is_alphanumeric() || c == '_');
    let tag = rest.get(..name.len() + 2)?;
    is_name.then_some(tag)
}

/// Length of the comment that `bytes` begin with; comments nest.
fn comment(bytes: &[u8]) -> Option<usize> {
    let mut depth = 0;
    let mut at = 0;
    loop {
        match (bytes.get(at)?, bytes.get(at + 1)) {
            (b'/', Some(b'*')) => (depth, at) = (depth + 1, at + 2),
            (b'*', Some(b'/')) => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            return Some(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Statements of `text`, and what is left.
    fn check(text: &str, statements: &[&str], left: &str) {
        let mut rest = text;
        let mut found = Vec::new();
        while let Next::Statement(end) = scan(rest, 0) {
            found.push(&rest[..end]);
            rest = &rest[end..];
        }
        assert_eq!((found.as_slice(), rest), (statements, left), "{text:?}");
    }

    #[test]
    fn statements_end_at_their_semicolon() {
        check("SELECT 1;", &["SELECT 1;"], "");
        check("SELECT 1; SELECT 2", &["SELECT 1;"], " SELECT 2");
        check(";;", &[";", ";"], "");
        check("SELECT 'ü;';x", &["SELECT 'ü;';"], "x");
        check("", &[], "");
    }

    #[test]
    fn a_semicolon_in_quotes_or_comments_ends_nothing() {
        check(
            "SELECT 'a;b' || 'it''s;';",
            &["SELECT 'a;b' || 'it''s;';"],
            "",
        );
        check("SELECT \"a;\"\"b\";", &["SELECT \"a;\"\"b\";"], "");
        check("SELECT -- a;\n1;", &["SELECT -- a;\n1;"], "");
        check(
            "/* a; /* b; */ c; */ SELECT 1;",
            &["/* a; /* b; */ c; */ SELECT 1;"],
            "",
        );
        check("SELECT $$a;$$;", &["SELECT $$a;$$;"], "");
        check("SELECT $q$a;$$;$q$;", &["SELECT $q$a;$$;$q$;"], "");
        check("SELECT E'\\';';", &["SELECT E'\\';';"], "");
    }

    #[test]
    fn what_looks_like_a_quote_may_be_none() {
        check("SELECT 'a\\';", &["SELECT 'a\\';"], "");
        check("SELECT $1, $2;", &["SELECT $1, $2;"], "");
        check("SELECT a$b$;", &["SELECT a$b$;"], "");
        check("SELECT 1 - -1 / 2 * 3;", &["SELECT 1 - -1 / 2 * 3;"], "");
    }

    #[test]
    fn open_quotes_wait_for_more() {
        for (text, from, open) in [
            ("SELECT ';", 7, Open::String),
            ("SELECT \";", 7, Open::Name),
            ("SELECT $$;", 7, Open::Dollar),
            ("/* ;", 0, Open::Comment),
            ("-- ;", 0, Open::Nothing),
            ("SELECT E'\\", 8, Open::String),
            ("SELECT", 6, Open::Nothing),
        ] {
            assert_eq!(scan(text, 0), Next::More { from, open }, "{text:?}");
        }
    }

    #[test]
    fn commands_begin_outside_of_quotes_only() {
        assert_eq!(scan("SELECT 1 \\g", 0), Next::Command(9));
        assert_eq!(scan("SELECT '\\g';", 0), Next::Statement(12));
        assert_eq!(scan("-- \\g\n\\q", 0), Next::Command(6));
        let (from, open) = (11, Open::Nothing);
        assert_eq!(scan("SELECT 1 \\g", 10), Next::More { from, open });
    }

    #[test]
    fn tokens_are_words_quotes_and_signs() {
        let found = tokens("SELECT a1.\"b c\", 'it''s' -- x\nFROM t WHERE z='o");
        let expected = [
            "SELECT", "a1", ".", "\"b c\"", ",", "'it''s'", "FROM", "t", "WHERE", "z", "=", "'o",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn blanks_and_comments_say_nothing() {
        for text in ["", " \n", "-- x", "-- x\n ", "/* x */", ";", " ; -- y"] {
            assert!(is_blank(text), "{text:?}");
        }
        for text in ["x", "-- x\nSELECT", "/* x", "'", "-"] {
            assert!(!is_blank(text), "{text:?}");
        }
    }
}

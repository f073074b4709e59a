//! COPY both ways: tables of data, every cut of the chunks, and round trips.

use super::*;
use base::{Datum, Prng, Type};
use parse::copy::{CopyOptions, Direction, OptionValue};

fn options(written: &[(&str, &str)]) -> CopyOptions {
    let written: Vec<(String, OptionValue)> = written
        .iter()
        .map(|(name, value)| {
            let value = match *value {
                "" => OptionValue::None,
                "*" => OptionValue::Star,
                list if list.starts_with('(') => OptionValue::List(
                    list.trim_matches(['(', ')'])
                        .split(',')
                        .map(str::to_owned)
                        .collect(),
                ),
                text => OptionValue::Text(text.to_owned()),
            };
            ((*name).to_owned(), value)
        })
        .collect();
    CopyOptions::new(&written, Direction::From).expect("the options are legal")
}

/// Rows as `a|b|NULL`, one per line, then the error if there was one.
fn decode(options: &CopyOptions, columns: &str, chunks: &[&[u8]]) -> String {
    let names = columns.split_whitespace().map(str::to_owned);
    let mut decoder = Decoder::new(options.clone(), "t", names);
    let mut out = String::new();
    for step in 0..=chunks.len() {
        match chunks.get(step) {
            Some(chunk) => decoder.push(chunk.to_vec()),
            None => decoder.end(),
        }
        loop {
            match decoder.next_row() {
                Ok(None) => break,
                Ok(Some(row)) => {
                    let shown = |index| match row.bytes(index) {
                        Some(bytes) => String::from_utf8_lossy(bytes).replace('\n', "<nl>"),
                        None => "NULL".to_owned(),
                    };
                    let fields: Vec<String> = (0..row.len()).map(shown).collect();
                    out += &format!("{}: {}\n", row.line, fields.join("|"));
                }
                Err(error) => {
                    let parts = error.fields();
                    out += &format!("{} {} ({})\n", parts.state, parts.message, parts.context);
                    return out;
                }
            }
        }
    }
    out
}

/// Decodes with every way to cut the data in two and byte by byte; all must agree.
fn check(written: &[(&str, &str)], columns: &str, data: &str, expected: &str) {
    let options = options(written);
    let bytes = data.as_bytes();
    assert_eq!(
        decode(&options, columns, &[bytes]),
        expected,
        "whole: {data:?}"
    );
    for cut in 1..bytes.len() {
        let chunks = [&bytes[..cut], &bytes[cut..]];
        assert_eq!(
            decode(&options, columns, &chunks),
            expected,
            "cut at {cut}: {data:?}"
        );
    }
    let single: Vec<&[u8]> = bytes.chunks(1).collect();
    assert_eq!(
        decode(&options, columns, &single),
        expected,
        "byte by byte: {data:?}"
    );
}

#[test]
fn text_rows() {
    check(&[], "a b", "1\tx\n2\t\\N\n", "1: 1|x\n2: 2|NULL\n");
    check(&[], "a b", "1\tx\r\n2\ty\r\n", "1: 1|x\n2: 2|y\n");
    check(&[], "a b", "1\tx\r2\ty\r", "1: 1|x\n2: 2|y\n");
    check(
        &[],
        "a b",
        "1\tno newline at the end",
        "1: 1|no newline at the end\n",
    );
    check(&[], "a", "\n\n", "1: \n2: \n");
    check(&[], "a", "", "");
    check(&[], "a b", "a\\tb\\\\\t\\x41\\101\\q\n", "1: a\tb\\|AAq\n");
    check(
        &[],
        "a b",
        "one\\\ntwo\tx\ny\tz\n",
        "1: one<nl>two|x\n2: y|z\n",
    );
    check(&[], "a b", "x\\\ty\tz\n", "1: x\ty|z\n");
    check(&[], "a", "1\n\\.\n2\n", "1: 1\n");
    check(&[], "a", "1\n2\\.\n3\n", "1: 1\n2: 2\n");
    check(&[], "a", "1\n\\.", "1: 1\n");
    check(
        &[("delimiter", "|"), ("null", "nil")],
        "a b",
        "1|nil\n",
        "1: 1|NULL\n",
    );
    check(&[("header", "")], "a", "name\n1\n", "2: 1\n");
    check(&[("header", "match")], "a b", "a\tb\n1\t2\n", "2: 1|2\n");
    check(&[("header", "")], "a", "name", "");
}

#[test]
fn text_errors() {
    let cases: &[(&str, &str, &str)] = &[
        (
            "a b",
            "1\n",
            "22P04 missing data for column \"b\" (COPY t, line 1: \"1\")\n",
        ),
        (
            "a b",
            "1\t2\n1\t2\t3\n",
            "1: 1|2\n22P04 extra data after last expected column (COPY t, line 2: \"1\t2\t3\")\n",
        ),
        (
            "a",
            "1\n2\r\n",
            "1: 1\n22P04 literal carriage return found in data (COPY t, line 2)\n",
        ),
        (
            "a",
            "1\r\n2\n",
            "1: 1\n22P04 literal newline found in data (COPY t, line 2)\n",
        ),
        (
            "a",
            "1\n\\.x\n",
            "1: 1\n22P04 end-of-copy marker corrupt (COPY t, line 2)\n",
        ),
        (
            "a",
            "1\r\n\\.\n",
            "1: 1\n22P04 end-of-copy marker does not match previous newline style \
             (COPY t, line 2)\n",
        ),
        (
            "",
            "1\n",
            "22P04 extra data after last expected column (COPY t, line 1: \"1\")\n",
        ),
    ];
    for (columns, data, expected) in cases {
        check(&[], columns, data, expected);
    }
    let mismatch = "22P04 column name mismatch in header line field 2: got \"c\", expected \"b\" \
                    (COPY t, line 1)\n";
    check(&[("header", "match")], "a b", "a\tc\n", mismatch);
}

#[test]
fn csv_rows() {
    let csv = &[("format", "csv")][..];
    check(csv, "a b", "1,x\n2,\n", "1: 1|x\n2: 2|NULL\n");
    check(csv, "a b", "1,\"\"\n", "1: 1|\n");
    check(
        csv,
        "a b",
        "\"x,\"\"y\"\"\",\"two\nlines\"\n3,4\n",
        "2: x,\"y\"|two<nl>lines\n3: 3|4\n",
    );
    check(
        csv,
        "a b",
        "ab\"c,d\"ef,g\r\n1,2\r\n",
        "1: abc,def|g\n2: 1|2\n",
    );
    check(csv, "a b", "1, x \n", "1: 1| x \n");
    check(csv, "a", "1\n\\.\n2\n", "1: 1\n");
    check(csv, "a", "1\n\\.x\n", "1: 1\n2: \\.x\n");
    check(csv, "a", "\\x\n", "1: \\x\n");
    check(
        &[("csv", ""), ("escape", "\\")],
        "a b",
        "\"a\\\"b\\\\\",\"\\n\"\n",
        "1: a\"b\\|\\n\n",
    );
    check(
        &[("csv", ""), ("null", "x")],
        "a b",
        "x,\"x\"\n",
        "1: NULL|x\n",
    );
    check(
        &[("csv", ""), ("force_not_null", "(a)")],
        "a b",
        ",\n",
        "1: |NULL\n",
    );
    check(
        &[("csv", ""), ("force_null", "*")],
        "a b",
        "\"\",\"\"\n",
        "1: NULL|NULL\n",
    );
    check(
        &[("csv", ""), ("header", "true")],
        "a b",
        "h1,\"h\n2\"\n1,2\n",
        "3: 1|2\n",
    );
    check(
        &[("csv", ""), ("quote", "'"), ("delimiter", ";")],
        "a b",
        "'a;b';c\n",
        "1: a;b|c\n",
    );
}

#[test]
fn csv_errors() {
    let csv = &[("format", "csv")][..];
    let unterminated = "22P04 unterminated CSV quoted field (COPY t, line 1: \"\"abc\")\n";
    check(csv, "a", "\"abc", unterminated);
    let newline = "1: 1\n22P04 unquoted carriage return found in data (COPY t, line 2)\n";
    check(csv, "a", "1\n2\r\n", newline);
    let missing = "22P04 missing data for column \"b\" (COPY t, line 1: \"1\")\n";
    check(csv, "a b", "1\n", missing);
}

#[test]
fn text_of_fields_is_utf8() {
    let mut decoder = Decoder::new(CopyOptions::default(), "t", ["a".to_owned()]);
    decoder.push(b"ok\n\xc3\x28\nnul\\0\n".to_vec());
    decoder.end();
    let row = decoder.next_row().expect("no error").expect("a row");
    assert_eq!(row.text(0).expect("UTF-8"), Some("ok"));
    for bytes in ["0xc3 0x28", "0x00"] {
        let row = decoder.next_row().expect("no error").expect("a row");
        let error = row.text(0).expect_err("not text");
        assert_eq!(error.state(), SqlState::CHARACTER_NOT_IN_REPERTOIRE);
        assert!(error.fields().message.ends_with(bytes), "{error}");
    }
}

#[test]
fn refused_options() {
    use OptionValue::{List, None as Bare, Star};
    let text = |value: &str| OptionValue::Text(value.to_owned());
    let cases = [
        (
            vec![("format", text("xml"))],
            "22023 COPY format \"xml\" not recognized",
        ),
        (
            vec![("format", text("csv")), ("format", text("csv"))],
            "42601 conflicting or redundant options",
        ),
        (vec![("nope", Bare)], "42601 option \"nope\" not recognized"),
        (
            vec![("delimiter", text("ab"))],
            "0A000 COPY delimiter must be a single one-byte character",
        ),
        (
            vec![("delimiter", text("a"))],
            "22023 COPY delimiter cannot be \"a\"",
        ),
        (
            vec![("delimiter", text("\n"))],
            "22023 COPY delimiter cannot be newline or carriage return",
        ),
        (
            vec![("quote", text("x"))],
            "0A000 COPY quote available only in CSV mode",
        ),
        (
            vec![("binary", Bare), ("null", text("x"))],
            "42601 cannot specify NULL in BINARY mode",
        ),
        (
            vec![("csv", Bare), ("quote", text(","))],
            "22023 COPY delimiter and quote must be different",
        ),
        (
            vec![("csv", Bare), ("force_quote", Star)],
            "0A000 COPY force quote only available using COPY TO",
        ),
        (
            vec![("freeze", List(Vec::new()))],
            "42601 freeze requires a Boolean value",
        ),
        (
            vec![("header", text("perhaps"))],
            "42601 header requires a Boolean value or \"match\"",
        ),
    ];
    for (written, expected) in cases {
        let written: Vec<_> = written
            .into_iter()
            .map(|(n, v)| (n.to_owned(), v))
            .collect();
        let error = CopyOptions::new(&written, Direction::From).expect_err(expected);
        assert_eq!(error.to_string().replacen(": ", " ", 1), expected);
    }
}

/// Rows of an integer and two texts with many awkward characters.
fn awkward_rows(prng: &mut Prng) -> Vec<[Datum; 3]> {
    const PIECES: [&str; 18] = [
        "",
        "a",
        "\\",
        "\\N",
        "\\.",
        "\n",
        "\r",
        "\t",
        ",",
        "\"",
        "'",
        "é",
        " ",
        "\u{8}",
        "N",
        "long enough to matter",
        "\u{b}",
        ";",
    ];
    let text = |prng: &mut Prng| {
        if prng.below(5) == 0 {
            return Datum::Null;
        }
        let pieces = prng.below(4);
        let text: String = (0..pieces)
            .map(|_| PIECES[prng.below(18) as usize])
            .collect();
        Datum::Text(text.into())
    };
    let row = |prng: &mut Prng| {
        [
            Datum::Int(prng.below(1 << 40) as i64 - 77),
            text(prng),
            text(prng),
        ]
    };
    (0..40).map(|_| row(prng)).collect()
}

#[test]
fn what_is_written_reads_back() {
    let types = [
        ("a".to_owned(), Type::Int8),
        ("b".to_owned(), Type::Text),
        ("c".to_owned(), Type::Text),
    ];
    let formats: [&[(&str, &str)]; 6] = [
        &[],
        &[("delimiter", ";")],
        &[("format", "csv")],
        &[("csv", ""), ("escape", "\\"), ("null", "nil")],
        &[("csv", ""), ("quote", "'"), ("header", "on")],
        &[("format", "binary")],
    ];
    for seed in 0..60 {
        let mut prng = Prng::new(seed);
        let options = options(formats[seed as usize % formats.len()]);
        let rows = awkward_rows(&mut prng);
        let mut bytes = Vec::new();
        let mut encoder = Encoder::new(options.clone(), types.clone());
        encoder.start(&mut bytes);
        rows.iter().for_each(|row| encoder.row(row, &mut bytes));
        encoder.finish(&mut bytes);

        let binary = encoder.is_binary();
        let mut decoder = Decoder::new(options, "t", types.iter().map(|(name, _)| name.clone()));
        let mut read = Vec::new();
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let cut = (1 + prng.below(50) as usize).min(rest.len());
            decoder.push(rest[..cut].to_vec());
            rest = &rest[cut..];
            if rest.is_empty() {
                decoder.end();
            }
            while let Some(row) = decoder.next_row().expect("well formed") {
                let value = |index: usize| {
                    let ty = types[index].1;
                    match row.bytes(index) {
                        None => Datum::Null,
                        Some(bytes) if binary => base::wire::decode(ty, bytes).expect("binary"),
                        Some(_) => {
                            let text = row.text(index).expect("UTF-8").expect("not NULL");
                            base::text::parse(ty, text).expect("text")
                        }
                    }
                };
                read.push([value(0), value(1), value(2)]);
            }
        }
        assert_eq!(read, rows, "seed {seed}");
    }
}

#[test]
fn csv_of_a_lone_marker_is_quoted() {
    let mut out = Vec::new();
    let mut encoder = Encoder::new(
        options(&[("format", "csv")]),
        [("a".to_owned(), Type::Text)],
    );
    encoder.row(&[Datum::Text("\\.".into())], &mut out);
    encoder.row(&[Datum::Text("".into())], &mut out);
    encoder.row(&[Datum::Null], &mut out);
    assert_eq!(String::from_utf8_lossy(&out), "\"\\.\"\n\"\"\n\n");
}

#[test]
fn malformed_binary() {
    let header: Vec<u8> = [&BINARY_SIGNATURE[..], &[0; 8]].concat();
    let with = |rest: &[u8]| [&header, rest].concat();
    let cases: [(Vec<u8>, &str); 7] = [
        (
            b"PGCOPY\n\xff\r\n\x01\0\0\0\0\0\0\0\0".to_vec(),
            "COPY file signature not recognized",
        ),
        (b"PGCO".to_vec(), "COPY file signature not recognized"),
        (b"".to_vec(), "COPY file signature not recognized"),
        (with(&[0, 2]), "row field count is 2, expected 1"),
        (with(&[0, 1, 0xff, 0xff, 0xff, 0xfe]), "invalid field size"),
        (with(&[0, 1, 0, 0, 0, 9, 1]), "unexpected EOF in COPY data"),
        (
            with(&[0xff, 0xff, 1]),
            "received copy data after EOF marker",
        ),
    ];
    let options = options(&[("format", "binary")]);
    for (data, message) in cases {
        let answer = decode(&options, "a", &[&data]);
        assert!(answer.contains(message), "{data:?}: {answer}");
    }
    let row = with(&[0, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]);
    assert_eq!(decode(&options, "a", &[&row]), "1: NULL\n");
}

/// Arbitrary bytes give rows or an error, never a panic or an endless loop, however they are cut.
#[test]
fn arbitrary_bytes_do_not_panic() {
    const BYTES: &[u8] = b"\\.\n\r\t,\"N1a\0\xffx0";
    for seed in 0..3_000 {
        let mut prng = Prng::new(seed);
        let length = prng.below(24);
        let data: Vec<u8> = (0..length)
            .map(|_| BYTES[prng.below(BYTES.len() as u64) as usize])
            .collect();
        let format = ["text", "csv", "binary"][seed as usize % 3];
        let options = options(&[("format", format)]);
        let whole = decode(&options, "a b", &[&data]);
        let single: Vec<&[u8]> = data.chunks(1).collect();
        assert_eq!(whole, decode(&options, "a b", &single), "{data:?}");
    }
}

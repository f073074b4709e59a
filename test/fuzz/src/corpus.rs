//! Valid inputs of every decoder.

mod disk;
mod leap;
mod network;

pub use disk::{checkpoints, manifests, records, segments};
pub use network::{frames, wire};
use scram::Verifier;

use check::text::Format;
use check::{History, Op, Outcome, Txn};

/// Statements of all kinds, among them those of real clients.
pub fn sql() -> Vec<Vec<u8>> {
    let texts = [
        include_str!("../../clients/psql/session.sql"),
        include_str!("../../clients/psql/errors.sql"),
        include_str!("../../clients/psql/describe.sql"),
        include_str!("../../sql/introspection/jdbc.sql"),
        include_str!("../../sql/introspection/psql_d_orders.sql"),
        include_str!("../../sql/introspection/psycopg.sql"),
        include_str!("../../sql/introspection/pgbench.sql"),
    ];
    let mut inputs: Vec<Vec<u8>> = Vec::new();
    for text in texts {
        inputs.extend(
            text.split_inclusive(";\n")
                .map(|statement| statement.as_bytes().to_vec()),
        );
    }
    let more = [
        "CREATE DATABASE d WITH (protocol = 'two_phase', durability = 'local')",
        "CREATE TABLE t (a int, b text, PRIMARY KEY (a)) PARTITION BY (a) WITH (replicated = true)",
        "INSERT INTO t OVERRIDING SYSTEM VALUE VALUES ($1, DEFAULT) ON CONFLICT (a) DO NOTHING",
        "SELECT a FROM t WHERE b LIKE 'x%' ESCAPE '!' FOR UPDATE OF t NOWAIT",
        "EXPLAIN ANALYZE SELECT * FROM t a JOIN t b USING (a) WHERE a.b = ANY ($1)",
        "COPY t (a, b) FROM STDIN WITH (FORMAT csv, HEADER, DELIMITER ';', NULL 'x')",
        "BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY; COMMIT AND CHAIN; ROLLBACK",
        "SELECT $tag$ a $ b $tag$, E'\\n\\x41\\'', U&'\\0041', X'1f', B'01', 'a' 'b', \"Q\"\"q\"",
        "SELECT 1e10, .5, 1., 0x1f, 1_000, -2147483648, (((((1)))))",
        "-- a comment\n/* another /* inside */ */ SELECT 1;;; SELECT 2",
        "PREPARE p (int, text) AS SELECT $1, $2; EXECUTE p (1, 'x'); DEALLOCATE ALL",
        "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL REPEATABLE READ",
        "SHOW PLACEMENT",
    ];
    inputs.extend(more.map(|statement| statement.as_bytes().to_vec()));
    inputs.retain(|input| !input.is_empty());
    inputs
}

/// Beginnings of row programs, among them deep ones: each byte that may open a nested
/// expression, again and again.
pub fn programs() -> Vec<Vec<u8>> {
    let mut inputs = vec![vec![0; 4], vec![1; 8], b"\x00\x00\x01\x01\x00\x00".to_vec()];
    // An addition of a column: once evaluated while it was decoded.
    inputs.push([&[3][..], &[1; 39]].concat());
    for kind in 0..=40 {
        for head in [&[0, 1][..], &[0, 0, 1], &[3, 1]] {
            inputs.push([head, &[kind; 16_000]].concat());
        }
    }
    inputs
}

/// Histories as text, in EDN and in JSON.
pub fn histories() -> Vec<Vec<u8>> {
    let history = sound_history();
    let mut inputs = Vec::new();
    for format in [Format::Edn, Format::Json] {
        let mut text = String::new();
        check::text::write(&history, format, &mut text).expect("strings take everything");
        inputs.extend(text.lines().map(|line| line.as_bytes().to_vec()));
        inputs.push(text.into_bytes());
    }
    let more = [
        "[{:type :invoke, :process 0, :f :txn, :value [[:w :x 1]]}]",
        "#jepsen.history.Op{:type :info, :process :nemesis, :f :start, :value #{1 2}}",
        "; a comment\n#_ {:a [1.5M -2N +3 \\a \\newline nil]} {:type :ok, :process 1}",
        "#_ #_ #_ #_ 1 2 3 4 {:process 1}",
        r#"[{"type": "ok", "process": 1, "value": [["r", "\u00e4\ud83d\ude00", [1e3]]]}]"#,
    ];
    inputs.extend(more.map(|text| text.as_bytes().to_vec()));
    // As deep as a client may try: code that uses stack for each of these runs out of it.
    for opening in ["[", "#_", "#a ", "{", "{\"a\":[", "(", "#{"] {
        inputs.push(opening.repeat(100_000).into_bytes());
    }
    inputs
}

/// Two processes with operations of every kind.
fn sound_history() -> History {
    let ops = [
        Op::Append { key: 1, value: 1 },
        Op::ReadList {
            key: 1,
            values: vec![1],
        },
        Op::ReadLists {
            low: 0,
            high: 9,
            seen: vec![(1, vec![1])],
        },
        Op::Write { key: 20, value: 2 },
        Op::Read {
            key: 20,
            value: Some(2),
        },
        Op::Read {
            key: 21,
            value: None,
        },
        Op::ReadRange {
            low: 20,
            high: 30,
            seen: vec![(20, 2)],
        },
        Op::Delete { key: 20 },
        Op::Add { key: 40, delta: -3 },
        Op::ReadCounter { key: 40, value: -3 },
        Op::Compare {
            key: 40,
            bound: 2,
            at_least: false,
        },
        Op::ReadTable {
            rows: vec![(50, 100), (51, -100)],
        },
    ];
    let mut history = History::new();
    for (number, op) in ops.into_iter().enumerate() {
        let at = number as u64 * 10;
        let mut txn = Txn::begin(number as u32 % 2, at);
        txn.ops.push(op);
        match number % 4 {
            3 => {}
            _ => txn.end(Outcome::Committed, at + 15),
        }
        history.push(txn);
    }
    history
}

/// What the planted decoder reads.
pub fn planted() -> Vec<Vec<u8>> {
    vec![b"L\x03abc".to_vec()]
}

/// Messages of logins, a verifier.
pub(crate) fn logins() -> Vec<Vec<u8>> {
    let nonce = "abcBwcHBwcHBwcHBwcHBwcHBwcH";
    let first = |header: &str| format!("{header}n=,r=abc");
    // The target cuts its input in the middle.
    let both = |first: &str, last: &str| {
        let length = first.len().max(last.len());
        format!("{first:length$}{last:length$}").into_bytes()
    };
    let last = format!("c=biws,r={nonce},p={}=", "A".repeat(43));
    let mut named = b"SCRAM-SHA-256\0\0\0\0\x0bn,,n=,r=abc".to_vec();
    named.extend(std::iter::repeat_n(b' ', named.len()));
    let verifier = Verifier::new("pencil", *b"0123456789abcdef").to_string();
    Vec::from([
        both(&first("n,,"), &last),
        both(&first("y,,"), &last),
        both(&first("p=tls-server-end-point,,"), &last),
        named,
        verifier.into_bytes(),
    ])
}

/// Documents, and keys of them.
pub fn json() -> Vec<Vec<u8>> {
    let texts = [
        "null",
        "[]",
        " [ true , false, -12.50e3, 0.001, 1e-5 ] ",
        "{\"a\": {\"b\": [1, \"x\\n\\u00e9\\ud83d\\ude00\", null]}, \"aa\": \"\", \"a\": {}}",
        "{\"id\": 12345678901234567890123456789012345678901234567890, \"a\": [[[{}]], \"\\\\\"]}",
    ];
    let documents = texts.iter().map(|text| text.as_bytes().to_vec());
    let keys = texts.iter().filter_map(|text| {
        let mut key = Vec::new();
        json::encode_key(&json::normalise(text).ok()?, &mut key);
        Some(key)
    });
    documents.chain(keys).collect()
}

/// A document in normal form for paths that come with none.
pub const DOCUMENT: &str =
    "{\"a\": {\"b\": [1, 2.50, \"x\"]}, \"c\": [null, true, {\"a\": \"2020-01-02\"}]}";

/// Paths, some with a document.
pub fn paths() -> Vec<Vec<u8>> {
    let texts = [
        "$.a.b[0 to last, 1] ? (@ > 1 && !(@ == $x)).size()",
        "strict $.**{1 to 2} ? (exists (@.a ? (@ like_regex \"^a\" flag \"iq\"))).keyvalue().id",
        "($.a.b[*] + 1.5e1) * -$.c[last - 1] % 3",
        "$.c[*].a.datetime(\"YYYY-MM-DD\").type() starts with \"da\\u0061\"",
        "($ == 1 || $.\"b c\" <= .5) is unknown",
        "$.* /* all */ .double().abs().ceiling().floor()\0[1, \"2\", {\"a\": 3}]",
    ];
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}

#[cfg(test)]
mod tests {
    use base::codec::{CodecError, decode, to_vec};
    use serde::Serialize;
    use serde::de::DeserializeOwned;
    use std::collections::BTreeSet;

    /// Every variant of an enum is among `values`: the number of a variant is the first byte, and
    /// alone it is cut short, or a whole value, but never malformed.
    pub(super) fn assert_all_kinds<T: Serialize + DeserializeOwned>(
        values: impl Iterator<Item = T>,
    ) {
        let found: BTreeSet<u8> = values.map(|value| to_vec(&value)[0]).collect();
        let exists = |number: &u8| {
            let alone = decode::<T>(&[*number]);
            !matches!(alone, Err(CodecError::Malformed(_)))
        };
        let all: BTreeSet<u8> = (0..0x80).take_while(exists).collect();
        assert!(!all.is_empty());
        assert_eq!(found, all);
    }
}

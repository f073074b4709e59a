//! The decoders.

use crate::{corpus, reseal};
use check::text::Format;
use check::{Level, check};
use scram::{Binding, Exchange, Secret, Verifier};

/// One decoder under test.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Its name, for messages and for choosing one.
    pub name: &'static str,
    /// Takes any bytes; a panic is a bug.
    pub decode: fn(&[u8]),
    /// Valid inputs.
    pub corpus: fn() -> Vec<Vec<u8>>,
    /// Mends checksums, where the format has any.
    pub reseal: Option<fn(&mut [u8])>,
}

/// All decoders that read bytes which somebody else, or an earlier life of the node, wrote. The
/// last two read what other programs recorded, and what is said to workers of the benchmark.
pub const TARGETS: &[Target] = &[
    target("wire", wire::fuzz, corpus::wire, None),
    target("login", login, corpus::logins, None),
    target(
        "frames",
        runtime::frame::fuzz,
        corpus::frames,
        Some(reseal::frames),
    ),
    target("record", journal::fuzz_record, corpus::records, None),
    target(
        "segment",
        journal::fuzz_segment,
        corpus::segments,
        Some(reseal::segment),
    ),
    target(
        "checkpoint",
        journal::fuzz_checkpoint,
        corpus::checkpoints,
        Some(reseal::checkpoint),
    ),
    target(
        "manifest",
        journal::fuzz_manifest,
        corpus::manifests,
        Some(reseal::manifest),
    ),
    target("sql", sql_text, corpus::sql, None),
    target("json", json_text, corpus::json, None),
    target("jsonpath", jsonpath, corpus::paths, None),
    target("program", program, corpus::programs, None),
    target("history", history, corpus::histories, None),
    target(
        "workers",
        workers::fuzzing::fuzz,
        workers::fuzzing::corpus,
        None,
    ),
];

const fn target(
    name: &'static str,
    decode: fn(&[u8]),
    corpus: fn() -> Vec<Vec<u8>>,
    reseal: Option<fn(&mut [u8])>,
) -> Target {
    Target {
        name,
        decode,
        corpus,
        reseal,
    }
}

/// A decoder with a bug: it trusts a length. The harness must find it, or it finds nothing.
pub const PLANTED: Target = target("planted", trusts_a_length, corpus::planted, None);

/// What a client says to log in, a verifier of a file, a certificate. No proof fits by chance.
fn login(bytes: &[u8]) {
    let verifier = Verifier::mock(&Secret::of([].into_iter()), "role");
    let binding = scram::certificate_digest(bytes).map_or(Binding::None, Binding::Certificate);
    let mut exchange = Exchange::new(verifier, binding, [7; scram::NONCE_BYTES]);
    let (first, last) = bytes.split_at(bytes.len() / 2);
    let (mechanism, data) = wire::authentication::initial_response(first)
        .unwrap_or_else(|| (scram::MECHANISM.into(), first.to_vec()));
    if exchange.first(&mechanism, &data).is_ok() {
        assert!(exchange.last(last).is_err(), "nobody knows this password");
    }
    if let Ok(text) = core::str::from_utf8(bytes)
        && let Ok(verifier) = Verifier::parse(text)
    {
        assert_eq!(Verifier::parse(&verifier.to_string()), Ok(verifier));
    }
}

/// Parses text; statements must lie inside of it.
fn sql_text(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    if let Ok(statements) = parse::parse(&text) {
        for statement in statements {
            let part = statement.text();
            assert!(!part.trim().is_empty(), "an empty statement");
        }
    }
}

/// Checks a text of JSON and brings it into its normal form, which must stay what it is and come
/// back from a key; looks at it as if it were checked; decodes the bytes as those of a key.
fn json_text(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let checked = json::check(&text);
    if let Ok(normal) = json::normalise(&text) {
        assert_eq!(checked, Ok(()), "jsonb takes what json does");
        assert_eq!(json::normalise(&normal).as_ref(), Ok(&normal));
        let mut key = Vec::new();
        json::encode_key(&normal, &mut key);
        let mut rest = key[1..].iter().copied();
        let decoded = json::decode_key(key[0], &mut || rest.next());
        let decoded = decoded.expect("the key of a value is one");
        assert!(json::compare(&decoded, &normal).is_eq() && rest.next().is_none());
    }
    let value = json::Value::new(&text);
    let _ = (
        value.count(),
        value.member("a"),
        value.item(-1),
        value.shown(),
    );
    let _ = (json::strip_nulls(&text, true), json::pretty(&text, 1 << 20));
    let _ = (
        json::delete_key(&text, str::is_empty),
        json::concat(&text, &text),
    );
    let _ = (json::compare(&text, "[1]"), json::contains(&text, &text));
    let path = [Some("a"), Some("0")];
    let _ = json::edit_path(&text, &path, json::Edit::Set("1"));
    if let Some((first, rest)) = bytes.split_first() {
        let mut rest = rest.iter().copied();
        if let Some(decoded) = json::decode_key(*first, &mut || rest.next()) {
            assert_eq!(json::check(&decoded), Ok(()), "a key decodes to a value");
        }
    }
}

/// Reads a path, which must be the same in its normal form, and follows it through a document. A
/// zero byte ends the path; the document is behind it.
fn jsonpath(bytes: &[u8]) {
    let end = bytes.iter().position(|byte| *byte == 0);
    let (path, rest) = bytes.split_at(end.unwrap_or(bytes.len()));
    let path = String::from_utf8_lossy(path);
    let Ok(read) = json::path::Path::parse(&path) else {
        return;
    };
    let normal = read.to_string();
    let again = json::path::Path::parse(&normal).expect("a normal form can be read");
    assert_eq!(
        (again.to_string(), &again),
        (normal.clone(), &read),
        "{path}"
    );
    let document = String::from_utf8_lossy(rest.get(1..).unwrap_or(b""));
    let document = json::normalise(&document).unwrap_or_else(|_| corpus::DOCUMENT.into());
    let args = [
        base::Datum::Jsonb(base::Jsonb::from_normal(document)),
        base::Datum::from(&*normal),
    ];
    let _ = functions::json::path_items(&args, None);
}

/// Decodes a row program, as it comes with a request of another node, and runs it over a row.
fn program(bytes: &[u8]) {
    if let Ok(program) = expr::program::decode_program(bytes) {
        let mut again = Vec::new();
        program.encode(&mut again);
        assert!(
            expr::program::decode_program(&again).is_ok(),
            "what is encoded can be decoded"
        );
    }
}

/// Reads a history and judges it; what is written down again is the same history.
fn history(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    for format in [Format::Edn, Format::Json] {
        let Ok(history) = check::text::read(&text, format) else {
            continue;
        };
        let verdict = check(&history, Level::StrictSerializable);
        let mut written = String::new();
        check::text::write(&history, format, &mut written).expect("strings take everything");
        let again = check::text::read(&written, format).expect("what is written can be read");
        assert_eq!(again.txns.len(), history.txns.len());
        let judged = check(&again, Level::StrictSerializable);
        assert_eq!(judged.judgement, verdict.judgement, "{written}");
    }
}

fn trusts_a_length(bytes: &[u8]) {
    if let [b'L', length, content @ ..] = bytes {
        let _ = content[..usize::from(*length)].iter().copied().max();
    }
}

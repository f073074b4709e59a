//! The decoders.

use crate::{corpus, reseal};
use check::text::Format;
use check::{Level, check};

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
/// last one reads what other programs recorded.
pub const TARGETS: &[Target] = &[
    Target {
        name: "wire",
        decode: wire::fuzz,
        corpus: corpus::wire,
        reseal: None,
    },
    Target {
        name: "frames",
        decode: runtime::frame::fuzz,
        corpus: corpus::frames,
        reseal: Some(reseal::frames),
    },
    Target {
        name: "record",
        decode: journal::fuzz_record,
        corpus: corpus::records,
        reseal: None,
    },
    Target {
        name: "segment",
        decode: journal::fuzz_segment,
        corpus: corpus::segments,
        reseal: Some(reseal::segment),
    },
    Target {
        name: "checkpoint",
        decode: journal::fuzz_checkpoint,
        corpus: corpus::checkpoints,
        reseal: Some(reseal::checkpoint),
    },
    Target {
        name: "manifest",
        decode: journal::fuzz_manifest,
        corpus: corpus::manifests,
        reseal: Some(reseal::manifest),
    },
    Target {
        name: "sql",
        decode: sql_text,
        corpus: corpus::sql,
        reseal: None,
    },
    Target {
        name: "program",
        decode: program,
        corpus: corpus::programs,
        reseal: None,
    },
    Target {
        name: "history",
        decode: history,
        corpus: corpus::histories,
        reseal: None,
    },
];

/// A decoder with a bug: it trusts a length. The harness must find it, or it finds nothing.
pub const PLANTED: Target = Target {
    name: "planted",
    decode: trusts_a_length,
    corpus: corpus::planted,
    reseal: None,
};

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

//! Documents that describe a file of code: change the code, and the document must be looked at.
//!
//! `xtask/reviewed.txt` records for each protocol document the digest of the file that it was last
//! compared with. `cargo xtask tidy --reviewed DOCUMENT` records that it was looked at again.

use super::{Violation, text_of};
use crate::repo::{self, SourceFile};
use anyhow::{Context, Result, bail};

/// Lines `document code digest`.
const LIST: &str = "xtask/reviewed.txt";

/// Checks that each document was compared with today's code, and that each protocol has one.
pub(crate) fn check(files: &[SourceFile]) -> Vec<Violation> {
    let mut found = Vec::new();
    let list = text_of(files, LIST).unwrap_or("");
    for (number, line) in entries(list) {
        let [document, code, digest] = line.split_whitespace().collect::<Vec<_>>()[..] else {
            found.push(Violation::new(
                LIST,
                number,
                "expected `document code digest`",
            ));
            continue;
        };
        if text_of(files, document).is_err() {
            found.push(Violation::new(
                LIST,
                number,
                format!("{document} does not exist"),
            ));
        }
        match text_of(files, code) {
            Err(_) => found.push(Violation::new(
                LIST,
                number,
                format!("{code} does not exist"),
            )),
            Ok(text) if digest_of(text) != digest => {
                let message = format!(
                    "{code} has changed: look at this document, then run \
                     cargo xtask tidy --reviewed {document}"
                );
                found.push(Violation::new(document, 0, message));
            }
            Ok(_) => {}
        }
    }
    for protocol in protocols(files) {
        let document = format!("docs/protocols/{protocol}.md");
        if !entries(list).any(|(_, line)| line.starts_with(&document)) {
            let message = format!("{document} is not in {LIST}");
            found.push(Violation::new(
                &format!("pure/protocols/{protocol}"),
                0,
                message,
            ));
        }
    }
    found
}

/// Records today's digests of one document.
pub(crate) fn record(files: &[SourceFile], document: &str) -> Result<()> {
    let list = text_of(files, LIST)?;
    let mut lines = Vec::new();
    let mut met = false;
    for line in list.lines() {
        let mut parts = line.split_whitespace();
        if parts.next() == Some(document) {
            let code = parts.next().context("expected `document code digest`")?;
            let digest = digest_of(text_of(files, code)?);
            lines.push(format!("{document} {code} {digest}"));
            met = true;
        } else {
            lines.push(line.to_string());
        }
    }
    if !met {
        bail!("{document} is not in {LIST}; add a line `{document} CODE -` first");
    }
    std::fs::write(repo::root().join(LIST), lines.join("\n") + "\n")?;
    Ok(())
}

fn entries(list: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = list
        .lines()
        .enumerate()
        .map(|(index, line)| (index + 1, line));
    lines.filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'))
}

/// Folders of `pure/protocols`.
fn protocols(files: &[SourceFile]) -> Vec<&str> {
    let manifests = files.iter().filter_map(|file| {
        file.path
            .strip_prefix("pure/protocols/")?
            .strip_suffix("/Cargo.toml")
    });
    manifests.collect()
}

/// FNV-1a over the bytes: enough to notice a change.
fn digest_of(text: &str) -> String {
    let digest = text
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |digest, byte| {
            (digest ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
    format!("{digest:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_list(list: &str) -> Vec<Violation> {
        check(&[
            SourceFile::new(LIST, list),
            SourceFile::new("docs/protocols/p.md", "# P\n"),
            SourceFile::new("pure/protocols/p/Cargo.toml", ""),
            SourceFile::new("pure/protocols/p/src/message.rs", "enum Message {}\n"),
        ])
    }

    #[test]
    fn a_changed_file_asks_for_its_document() {
        let digest = digest_of("enum Message {}\n");
        let line = format!("docs/protocols/p.md pure/protocols/p/src/message.rs {digest}\n");
        assert_eq!(check_list(&line), []);
        let found = check_list(&line.replace(&digest, "0"));
        assert_eq!(found[0].place, "docs/protocols/p.md");
        assert!(found[0].message.contains("has changed"));
    }

    #[test]
    fn every_protocol_has_a_document() {
        assert!(check_list("")[0].message.contains("is not in"));
        assert!(
            check_list("docs/protocols/p.md\n")[0]
                .message
                .contains("expected")
        );
    }
}

//! What a person has read: the outcomes of a script per system and level, in its file.
//!
//! ```text
//! ---- two_phase-1x1 RR, two_phase-1x1 SER
//! a [10] 1 commit | b [10] ~40001! . rollback | [11]
//!   aababb abaabb
//! P4: a [10] 1 commit | b [10] ~1 commit | [11]
//!   abab
//! ```
//!
//! A section holds all interleavings that were possible, grouped by what was seen; in front of an
//! outcome stand the anomalies that are visible in it. Systems and levels with equal sections share
//! one.

use crate::SpecError;
use crate::anomaly::{Anomaly, Level};
use std::collections::BTreeMap;
use std::fmt;

/// Whose outcomes a section holds.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Key {
    /// Name of the system, for example `postgres-15` or `two_phase-3x2` (protocol,
    /// nodes, shards of each).
    pub system: String,
    /// The level that was asked for.
    pub level: Level,
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.system, self.level.short())
    }
}

/// One kind of outcome: what is visible in it, and its line.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Line {
    /// Anomalies in the order of [`Anomaly::ALL`].
    pub anomalies: Vec<Anomaly>,
    /// The outcome as it prints itself.
    pub outcome: String,
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.anomalies.iter().map(|kind| kind.name()).collect();
        match names.is_empty() {
            true => f.write_str(&self.outcome),
            false => write!(f, "{}: {}", names.join(" "), self.outcome),
        }
    }
}

/// Outcomes of one system at one level: which words led to which.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Section(pub BTreeMap<Line, Vec<String>>);

impl Section {
    /// Interleavings in which `kind` was visible, and all of them.
    pub fn count(&self, kind: Anomaly) -> (usize, usize) {
        let all = self.0.values().map(Vec::len).sum();
        let with = self
            .0
            .iter()
            .filter(|(line, _)| line.anomalies.contains(&kind));
        (with.map(|(_, words)| words.len()).sum(), all)
    }

    /// The words of `self` that are missing in `other` or lead elsewhere there, each with its line
    /// here and there.
    pub fn differences<'a>(
        &'a self,
        other: &'a Section,
    ) -> Vec<(&'a str, &'a Line, Option<&'a Line>)> {
        let mut found = BTreeMap::new();
        for (line, words) in &other.0 {
            found.extend(words.iter().map(|word| (word.as_str(), line)));
        }
        let own = self
            .0
            .iter()
            .flat_map(|(line, words)| words.iter().map(move |word| (word.as_str(), line)));
        own.map(|(word, line)| (word, line, found.get(word).copied()))
            .filter(|(_, line, there)| *there != Some(*line))
            .collect()
    }
}

/// All sections of a file.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Records(pub BTreeMap<Key, Section>);

impl Records {
    /// Reads numbered lines, from the first `----`.
    pub(crate) fn parse<'a>(
        lines: impl Iterator<Item = (usize, &'a str)>,
    ) -> Result<Records, SpecError> {
        let mut records = Records::default();
        let mut keys: Vec<Key> = Vec::new();
        let mut section = Section::default();
        let mut line: Option<Line> = None;
        for (number, text) in lines {
            if let Some(head) = text.strip_prefix("----") {
                records.add(&mut keys, &mut section);
                line = None;
                for part in head.trim().split(", ") {
                    keys.push(key(number, part)?);
                }
            } else if text.starts_with(' ') {
                let line = line
                    .clone()
                    .ok_or_else(|| SpecError::new(number, "words without an outcome", text))?;
                let words = text.split_whitespace().map(str::to_owned);
                section.0.entry(line).or_default().extend(words);
            } else if !text.is_empty() {
                line = Some(outcome(number, text)?);
            }
        }
        records.add(&mut keys, &mut section);
        Ok(records)
    }

    fn add(&mut self, keys: &mut Vec<Key>, section: &mut Section) {
        let section = std::mem::take(section);
        for key in keys.drain(..) {
            self.0.insert(key, section.clone());
        }
    }
}

fn key(number: usize, text: &str) -> Result<Key, SpecError> {
    let parts = text.split_once(' ');
    let found = parts.and_then(|(system, level)| Some((system, Level::of_short(level)?)));
    let (system, level) =
        found.ok_or_else(|| SpecError::new(number, "a section has a system and a level", text))?;
    Ok(Key {
        system: system.to_owned(),
        level,
    })
}

/// `[ANOMALY...: ]OUTCOME`.
fn outcome(number: usize, text: &str) -> Result<Line, SpecError> {
    let Some((head, rest)) = text.split_once(": ") else {
        return Ok(Line {
            anomalies: Vec::new(),
            outcome: text.to_owned(),
        });
    };
    let kinds = head.split(' ').map(|name| {
        Anomaly::of_name(name).ok_or_else(|| SpecError::new(number, "no such anomaly", name))
    });
    Ok(Line {
        anomalies: kinds.collect::<Result<_, _>>()?,
        outcome: rest.to_owned(),
    })
}

/// Width to which lists of words are filled.
const WIDTH: usize = 118;

impl fmt::Display for Records {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shared: Vec<(Vec<&Key>, &Section)> = Vec::new();
        for (key, section) in &self.0 {
            match shared.iter_mut().find(|(_, other)| *other == section) {
                Some((keys, _)) => keys.push(key),
                None => shared.push((vec![key], section)),
            }
        }
        for (keys, section) in shared {
            let keys: Vec<String> = keys.iter().map(|key| key.to_string()).collect();
            writeln!(f, "---- {}", keys.join(", "))?;
            for (line, words) in &section.0 {
                writeln!(f, "{line}")?;
                write_words(f, words)?;
            }
        }
        Ok(())
    }
}

fn write_words(f: &mut fmt::Formatter<'_>, words: &[String]) -> fmt::Result {
    let mut column = 0;
    for word in words {
        if column > 0 && column + 1 + word.len() > WIDTH {
            f.write_str("\n")?;
            column = 0;
        }
        f.write_str(if column == 0 { "  " } else { " " })?;
        f.write_str(word)?;
        column += word.len() + if column == 0 { 2 } else { 1 };
    }
    f.write_str("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn section(lines: &[(&str, &[Anomaly], &[&str])]) -> Section {
        let entry = |(outcome, kinds, words): &(&str, &[Anomaly], &[&str])| {
            let line = Line {
                anomalies: kinds.to_vec(),
                outcome: outcome.to_string(),
            };
            (line, words.iter().map(|word| word.to_string()).collect())
        };
        Section(lines.iter().map(entry).collect())
    }

    fn key(system: &str, level: Level) -> Key {
        Key {
            system: system.into(),
            level,
        }
    }

    #[test]
    fn what_is_printed_is_read_again() {
        let many: Vec<String> = (0..40).map(|n| format!("aabb{n}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        let one = section(&[
            ("a 1 | [1]", &[], &many),
            ("a 2 | [2]", &[Anomaly::P4, Anomaly::NotSerial], &["abab"]),
        ]);
        let two = section(&[("a 1 | []", &[], &["abab"])]);
        let records = Records(BTreeMap::from([
            (key("x", Level::ReadCommitted), two.clone()),
            (key("x", Level::Serializable), one.clone()),
            (key("y", Level::ReadCommitted), one.clone()),
        ]));
        let text = records.to_string();
        assert!(text.contains("---- x SER, y RC\n"), "{text}");
        assert!(
            text.contains("\nP4 not-serial: a 2 | [2]\n  abab\n"),
            "{text}"
        );
        assert!(text.lines().all(|line| line.len() <= 120));
        let lines = text.lines().enumerate();
        assert_eq!(Records::parse(lines), Ok(records));
        assert_eq!(one.count(Anomaly::P4), (1, 41));
        let different = one.differences(&two);
        assert_eq!(different.len(), 41, "all but none");
        assert!(one.differences(&one).is_empty());
        assert_eq!(two.differences(&one)[0].0, "abab");
    }

    #[test]
    fn what_is_no_record_is_refused() {
        for text in [
            "---- x",
            "---- x ALL",
            "---- x RC\n  abab",
            "---- x RC\nP9: a",
        ] {
            assert!(Records::parse(text.lines().enumerate()).is_err(), "{text}");
        }
    }
}

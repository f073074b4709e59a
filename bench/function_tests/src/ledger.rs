//! What clients know about their transactions, in a file and in memory, and the audit of a database
//! against it.
//!
//! ```text
//! {"format": 1, "table": "bench_function_durability", "run": 81234, ..}
//! c 17        COMMIT of transaction 17 is about to be sent
//! a 17        it was acknowledged
//! r 18        transaction 18 was rolled back; nothing of it happened
//! ```
//!
//! A transaction with `c` alone is of unknown outcome; one without a line was never asked to
//! commit. A line is written before what it announces, and after what it tells, so a client that is
//! killed knows too little rather than too much: a last line without its end is left out.

use super::{Judgement, Verdict};
use links::DriveError;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Write;
use std::path::Path;

/// The version of the layout.
const FORMAT: u64 = 1;
/// Rows of each transaction.
pub(super) const ROWS: u64 = 2;

/// What is known about a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// COMMIT was asked for and not answered.
    Unknown,
    /// It was acknowledged.
    Acknowledged,
    /// Nothing of it happened.
    RolledBack,
}

/// What is known about all of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ledger {
    /// Tells the rows of this test from those of another one.
    pub run: u32,
    /// Where they are.
    pub table: String,
    /// By the number of the transaction.
    pub fates: BTreeMap<u64, Fate>,
}

/// A row of the test's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// Key: twice the number of the transaction, and one more for its second row.
    pub key: u64,
    /// Number of the transaction.
    pub txn: u64,
    /// By which a row is known to be whole: [`Ledger::value`].
    pub value: u64,
    /// The test.
    pub run: u32,
}

impl Ledger {
    /// Nothing is known yet.
    pub fn new(run: u32, table: &str) -> Ledger {
        Ledger {
            run,
            table: table.to_owned(),
            fates: BTreeMap::new(),
        }
    }

    /// What the row with that key holds.
    pub fn value(run: u32, key: u64) -> u64 {
        let mixed = key.wrapping_add(1).wrapping_mul(2_654_435_761) ^ u64::from(run);
        mixed % 1_000_000_007
    }

    /// The row with that key.
    pub fn row(run: u32, key: u64) -> Row {
        Row {
            key,
            txn: key / ROWS,
            value: Ledger::value(run, key),
            run,
        }
    }

    /// Reads a file.
    ///
    /// # Errors
    /// It cannot be read, or holds what it should not; the message names the line.
    pub fn read(path: &Path) -> Result<Ledger, DriveError> {
        let wrong = |text: String| DriveError::File(format!("{}: {text}", path.display()));
        let text = std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
        Ledger::parse(&text).map_err(wrong)
    }

    fn parse(text: &str) -> Result<Ledger, String> {
        // What follows the last end of a line was being written.
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        let mut lines = whole.lines().enumerate();
        let head = lines.next().map_or("", |(_, line)| line);
        let head: Value = serde_json::from_str(head)
            .map_err(|_| "this is no record of the durability test".to_owned())?;
        if head["format"] != FORMAT {
            return Err(format!("format {} is not known", head["format"]));
        }
        let run = head["run"].as_u64().and_then(|run| u32::try_from(run).ok());
        let (Some(run), Some(table)) = (run, head["table"].as_str()) else {
            return Err("the first line has no run or no table".into());
        };
        let is_name = |c: char| c.is_ascii_lowercase() || c == '_';
        if table.is_empty() || !table.chars().all(is_name) {
            return Err(format!("{table:?} is no table of this test"));
        }
        let mut ledger = Ledger::new(run, table);
        for (at, line) in lines {
            let noted = line.split_once(' ').and_then(|(kind, number)| {
                let number: u64 = number.parse().ok()?;
                Some((kind, number))
            });
            let known = noted.is_some_and(|(kind, number)| ledger.note(kind, number));
            if !known {
                return Err(format!("line {} says what it cannot: {line:?}", at + 1));
            }
        }
        Ok(ledger)
    }

    /// Whether this can be said after what was said before.
    fn note(&mut self, kind: &str, number: u64) -> bool {
        let before = self.fates.get(&number).copied();
        let fate = match (kind, before) {
            ("c", None) => Fate::Unknown,
            ("a", Some(Fate::Unknown)) => Fate::Acknowledged,
            ("r", None | Some(Fate::Unknown)) => Fate::RolledBack,
            _ => return false,
        };
        self.fates.insert(number, fate);
        true
    }

    fn count(&self, fate: Fate) -> usize {
        self.fates.values().filter(|it| **it == fate).count()
    }

    /// Compares the rows of a database with what is known.
    pub fn audit(&self, rows: &[Row]) -> Audit {
        let mut audit = Audit {
            acknowledged: self.count(Fate::Acknowledged),
            rolled_back: self.count(Fate::RolledBack),
            unknown: self.count(Fate::Unknown),
            ..Audit::default()
        };
        let mut found: BTreeMap<u64, BTreeSet<u64>> = BTreeMap::new();
        for row in rows {
            let is_known = row.run == self.run && self.fates.contains_key(&(row.key / ROWS));
            match is_known {
                true => {
                    found.entry(row.key / ROWS).or_default().insert(row.key);
                    if *row != Ledger::row(self.run, row.key) {
                        audit.changed.push(row.key);
                    }
                }
                false => audit.foreign.push(row.key),
            }
        }
        for (txn, fate) in &self.fates {
            let there = found.get(txn).map_or(0, BTreeSet::len) as u64;
            match (there, fate) {
                (ROWS, Fate::Acknowledged) | (0, Fate::RolledBack | Fate::Unknown) => {}
                (ROWS, Fate::Unknown) => audit.unknown_committed += 1,
                (0, Fate::Acknowledged) => audit.lost.push(*txn),
                (ROWS, Fate::RolledBack) => audit.undead.push(*txn),
                _ => audit.torn.push(*txn),
            }
        }
        audit
    }
}

/// What an audit has found. Lists hold numbers of transactions or keys of rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Audit {
    /// Transactions that were acknowledged.
    pub acknowledged: usize,
    /// Those that were rolled back.
    pub rolled_back: usize,
    /// Those whose COMMIT was not answered.
    pub unknown: usize,
    /// Of the unknown ones, those that are there.
    pub unknown_committed: usize,
    /// Acknowledged, and nothing of it is there.
    pub lost: Vec<u64>,
    /// One of two rows is there, whatever was known.
    pub torn: Vec<u64>,
    /// Rolled back, and there.
    pub undead: Vec<u64>,
    /// Keys of rows with a wrong value.
    pub changed: Vec<u64>,
    /// Keys of rows that nobody asked to commit.
    pub foreign: Vec<u64>,
}

impl Audit {
    /// The lists of what must not be, with their names.
    pub fn faults(&self) -> [(&'static str, &[u64]); 5] {
        [
            ("lost", &self.lost),
            ("torn", &self.torn),
            ("undead", &self.undead),
            ("changed", &self.changed),
            ("foreign", &self.foreign),
        ]
    }

    /// The verdict.
    pub fn judgement(&self) -> Judgement {
        let words = [
            "acknowledged transactions are gone",
            "transactions are there by half",
            "transactions that were rolled back are there",
            "rows have another value",
            "rows are there that nobody has committed",
        ];
        let faults = self.faults();
        let told = faults
            .iter()
            .zip(words)
            .filter(|((_, list), _)| !list.is_empty());
        let told = told.map(|((_, list), words)| {
            format!("{} {words}, the first one is {}", list.len(), list[0])
        });
        let told: Vec<String> = told.collect();
        if !told.is_empty() {
            return Judgement::new(Verdict::Failed, told.join("; "));
        }
        match self.acknowledged {
            0 => Judgement::new(Verdict::NotExercised, "no transaction was acknowledged"),
            count => {
                let text = format!("all {count} acknowledged transactions are there and whole");
                Judgement::new(Verdict::Passed, text)
            }
        }
    }
}

/// Writes a ledger while the clients work.
#[derive(Debug)]
pub(super) struct Writer {
    file: File,
    path: String,
    /// The same in memory.
    pub(super) ledger: Ledger,
}

impl Writer {
    /// Begins a file; one that is there is replaced. `about` tells a person what it is.
    pub(super) fn create(path: &Path, ledger: Ledger, about: &str) -> Result<Writer, DriveError> {
        let head = json!({
            "format": FORMAT,
            "run": ledger.run,
            "table": ledger.table,
            "server": about,
        });
        let name = path.display().to_string();
        let written = File::create(path).and_then(|mut file| {
            writeln!(file, "{head}")?;
            Ok(file)
        });
        let file = written.map_err(|error| cannot(&name, &error))?;
        Ok(Writer {
            file,
            path: name,
            ledger,
        })
    }

    /// Notes `c`, `a` or `r` of a transaction.
    pub(super) fn note(&mut self, kind: &str, number: u64) -> Result<(), DriveError> {
        let is_possible = self.ledger.note(kind, number);
        assert!(is_possible, "{kind} of {number} follows what it cannot");
        // One call: the line of a client that is killed is there as a whole, or is the last.
        let line = format!("{kind} {number}\n");
        let written = self.file.write_all(line.as_bytes());
        written.map_err(|error| cannot(&self.path, &error))
    }
}

fn cannot(path: &str, error: &std::io::Error) -> DriveError {
    DriveError::File(format!("cannot write {path}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "{\"format\": 1, \"run\": 5, \"table\": \"bench_x\"}\n";

    fn ledger() -> Ledger {
        Ledger::parse(&format!("{HEAD}c 0\na 0\nc 1\nr 2\nc 3\na 3\nc 4\nr 4\n")).unwrap()
    }

    fn rows(keys: &[u64]) -> Vec<Row> {
        keys.iter().map(|key| Ledger::row(5, *key)).collect()
    }

    #[test]
    fn an_audit_passes_what_is_as_it_was_acknowledged() {
        let audit = ledger().audit(&rows(&[0, 1, 6, 7]));
        assert_eq!(audit.judgement().verdict, Verdict::Passed, "{audit:?}");
        assert_eq!(
            (audit.acknowledged, audit.unknown, audit.rolled_back),
            (2, 1, 2)
        );
        let audit = ledger().audit(&rows(&[0, 1, 2, 3, 6, 7]));
        assert_eq!(audit.judgement().verdict, Verdict::Passed, "{audit:?}");
        assert_eq!(audit.unknown_committed, 1);
    }

    #[test]
    fn each_fault_is_caught_by_its_name() {
        let fault = |rows: &[Row]| {
            let audit = ledger().audit(rows);
            assert_eq!(audit.judgement().verdict, Verdict::Failed, "{audit:?}");
            let faults = audit.faults();
            let named = faults.iter().filter(|(_, list)| !list.is_empty());
            let named: Vec<(&str, Vec<u64>)> =
                named.map(|(name, list)| (*name, list.to_vec())).collect();
            named
        };
        assert_eq!(fault(&rows(&[0, 1])), [("lost", vec![3])]);
        assert_eq!(fault(&rows(&[0, 1, 6])), [("torn", vec![3])]);
        assert_eq!(fault(&rows(&[0, 1, 2, 6, 7])), [("torn", vec![1])]);
        assert_eq!(fault(&rows(&[0, 1, 4, 5, 6, 7])), [("undead", vec![2])]);
        assert_eq!(fault(&rows(&[0, 1, 5, 6, 7])), [("torn", vec![2])]);
        assert_eq!(fault(&rows(&[0, 1, 6, 7, 98])), [("foreign", vec![98])]);
        let mut changed = rows(&[0, 1, 6, 7]);
        changed[2].value += 1;
        assert_eq!(fault(&changed), [("changed", vec![6])]);
        changed[2] = Row {
            run: 6,
            ..Ledger::row(5, 6)
        };
        assert_eq!(fault(&changed), [("torn", vec![3]), ("foreign", vec![6])]);
    }

    #[test]
    fn nothing_acknowledged_is_no_pass() {
        let ledger = Ledger::parse(&format!("{HEAD}c 0\n")).unwrap();
        assert_eq!(ledger.audit(&[]).judgement().verdict, Verdict::NotExercised);
    }

    #[test]
    fn a_file_that_is_wrong_is_refused_and_a_torn_line_is_left_out() {
        let parsed = Ledger::parse(&format!("{HEAD}c 10\na 1")).unwrap();
        assert_eq!(parsed.fates, BTreeMap::from([(10, Fate::Unknown)]));
        let refused = |text: &str| Ledger::parse(text).unwrap_err();
        assert!(refused("").contains("no record"));
        assert!(refused("hello\n").contains("no record"));
        assert!(refused("{\"format\": 2}\n").contains("format 2"));
        assert!(refused("{\"format\": 1}\n").contains("no run"));
        let other = "{\"format\": 1, \"run\": 5, \"table\": \"t; DROP TABLE t\"}\n";
        assert!(refused(other).contains("no table"));
        for wrong in ["a 1", "x 1", "c", "c 1\nc 1", "c 1\nr 1\na 1", "c -1"] {
            let text = refused(&format!("{HEAD}{wrong}\n"));
            assert!(text.contains("says what it cannot"), "{text}");
        }
    }

    #[test]
    fn what_is_written_is_read_again() {
        let name = format!("trellis-ledger-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let mut writer = Writer::create(&path, Ledger::new(7, "bench_x"), "a server").unwrap();
        for (kind, number) in [("c", 0), ("a", 0), ("r", 1), ("c", 2)] {
            writer.note(kind, number).unwrap();
        }
        assert_eq!(Ledger::read(&path).unwrap(), writer.ledger);
        std::fs::remove_file(&path).unwrap();
        let missing = Ledger::read(&path).unwrap_err().to_string();
        assert!(missing.contains("trellis-ledger"), "{missing}");
    }
}

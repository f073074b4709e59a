//! The loaded rows as CSV files: written without a database, and loaded from there.
//!
//! A folder has a file for each table, `warehouse.csv` and so on, whose first line names the
//! columns, and `load.json` with what they were made from and how many rows each has. Nulls are
//! empty, texts that are empty are `""`.

use super::load::{Book, load_chunk};
use links::error::{DriveError, While};
use links::link::Link;
use links::url::Target;
use links::view::{Loaded, Progress};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;
use workload::tpcc::random::Constants;
use workload::tpcc::rows::{Chunk, Content, rows_expected};
use workload::tpcc::schema::Table;
use workload::tpcc::{Scale, Skew};

/// Rows that are loaded by one transaction.
const ROWS_PER_STEP: u64 = 10_000;
/// The file beside those of the tables.
const SETTINGS: &str = "load.json";

/// A folder with the rows of all tables.
#[derive(Clone, Debug)]
pub struct Folder {
    path: PathBuf,
    /// What the rows were made from.
    pub content: Content,
    /// Rows of each table.
    rows: BTreeMap<String, u64>,
}

fn file_of(folder: &Path, table: Table) -> PathBuf {
    folder.join(format!("{}.csv", table.name()))
}

fn cannot(what: &str, path: &Path, error: &dyn std::fmt::Display) -> DriveError {
    DriveError::Option(format!("cannot {what} {}: {error}", path.display()))
}

/// Writes the rows of a database into a folder, which must be empty or not there.
///
/// # Errors
/// The scale cannot be used, the folder holds something, or a file cannot be written.
pub fn write(
    folder: &Path,
    scale: Scale,
    seed: u64,
    now_us: u64,
    progress: &mut dyn Progress,
) -> Result<(), DriveError> {
    let valid = scale.validate();
    valid.map_err(|error| DriveError::Option(format!("the scale {scale:?}: {error:?}")))?;
    std::fs::create_dir_all(folder).map_err(|error| cannot("make", folder, &error))?;
    let mut inside = std::fs::read_dir(folder).map_err(|error| cannot("read", folder, &error))?;
    if inside.next().is_some() {
        let folder = folder.display();
        return Err(DriveError::Option(format!(
            "--to {folder}: the folder is not empty"
        )));
    }
    let content = Content {
        scale,
        seed,
        constants: Constants::for_load(seed),
        now_us,
    };
    let chunks = Chunk::all(&scale);
    let (started, expected) = (Instant::now(), rows_expected(&scale));
    let (mut all, mut rows) = (0, BTreeMap::new());
    progress.stage(&format!("writing {}", folder.display()));
    for of_table in chunks.chunk_by(|a, b| a.table == b.table) {
        let table = of_table[0].table;
        let path = file_of(folder, table);
        let mut note = |more: u64| {
            all += more;
            progress.loaded(&Loaded {
                rows: all,
                rows_expected: expected,
                elapsed: started.elapsed(),
                rows_now: all,
            });
        };
        let written = write_table(&path, of_table, &content, &mut note);
        let written = written.map_err(|error| cannot("write", &path, &error))?;
        rows.insert(table.name().to_string(), written);
    }
    let path = folder.join(SETTINGS);
    let text = serde_json::to_string_pretty(&settings(&content, &rows)).unwrap_or_default();
    std::fs::write(&path, text + "\n").map_err(|error| cannot("write", &path, &error))
}

fn write_table(
    path: &Path,
    chunks: &[Chunk],
    content: &Content,
    note: &mut dyn FnMut(u64),
) -> std::io::Result<u64> {
    let mut out = BufWriter::new(File::create(path)?);
    writeln!(out, "{}", chunks[0].table.column_names().join(","))?;
    let (mut rows, mut bytes, mut line) = (0, Vec::new(), Vec::new());
    for chunk in chunks {
        bytes.clear();
        let more = chunk.write(content, &mut bytes);
        for row in bytes.split_inclusive(|byte| *byte == b'\n') {
            line.clear();
            to_csv(row.strip_suffix(b"\n").unwrap_or(row), &mut line);
            out.write_all(&line)?;
        }
        rows += more;
        note(more);
    }
    out.flush()?;
    Ok(rows)
}

fn settings(content: &Content, rows: &BTreeMap<String, u64>) -> Value {
    let Content {
        scale,
        seed,
        constants,
        now_us,
    } = content;
    let rows = rows
        .iter()
        .map(|(table, rows)| (table.clone(), json!(rows)));
    json!({
        "format": 1,
        "warehouses": scale.warehouses,
        "items": scale.items,
        "customers": scale.customers,
        "orders": scale.orders,
        "skew_thousandths": scale.skew.thousandths(),
        "seed": seed,
        "c_last": constants.c_last,
        "c_id": constants.c_id,
        "ol_i_id": constants.ol_i_id,
        "now_us": now_us,
        "rows": rows.collect::<Map<String, Value>>(),
    })
}

impl Folder {
    /// Reads what a folder holds.
    ///
    /// # Errors
    /// It is not one that was written by [`write()`], or a file is missing.
    pub fn open(path: &Path) -> Result<Folder, DriveError> {
        let file = path.join(SETTINGS);
        let text = std::fs::read_to_string(&file).map_err(|error| cannot("read", &file, &error))?;
        let value: Value =
            serde_json::from_str(&text).map_err(|error| cannot("read", &file, &error))?;
        let missing = |name: &str| {
            let file = file.display();
            DriveError::Option(format!("{file}: no usable \"{name}\""))
        };
        let number = |name: &str| value[name].as_u64().ok_or_else(|| missing(name));
        let size = |name: &str| u32::try_from(number(name)?).map_err(|_| missing(name));
        if number("format")? != 1 {
            return Err(missing("format"));
        }
        let skew = Skew::of_thousandths(size("skew_thousandths")?);
        let scale = Scale {
            warehouses: size("warehouses")?,
            items: size("items")?,
            customers: size("customers")?,
            orders: size("orders")?,
            skew: skew.ok_or_else(|| missing("skew_thousandths"))?,
        };
        let mut rows = BTreeMap::new();
        for table in Table::ALL {
            let count = value["rows"][table.name()].as_u64();
            rows.insert(
                table.name().to_string(),
                count.ok_or_else(|| missing(table.name()))?,
            );
            let file = file_of(path, table);
            File::open(&file).map_err(|error| cannot("read", &file, &error))?;
        }
        Ok(Folder {
            path: path.to_path_buf(),
            content: Content {
                scale,
                seed: number("seed")?,
                constants: Constants {
                    c_last: size("c_last")?,
                    c_id: size("c_id")?,
                    ol_i_id: size("ol_i_id")?,
                },
                now_us: number("now_us")?,
            },
            rows,
        })
    }

    /// Loads all tables, as many at a time as there are jobs, or one after the other where tables
    /// refer to each other.
    pub(super) fn load(
        &self,
        target: &Target,
        book: &Book,
        jobs: u32,
        progress: &mut dyn Progress,
    ) -> Result<(), DriveError> {
        let started = Instant::now();
        let expected = self.rows.values().sum();
        let next = std::sync::atomic::AtomicUsize::new(0);
        let (report, reports) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            for _ in 0..jobs.clamp(1, Table::ALL.len() as u32) {
                let (next, report) = (&next, report.clone());
                scope.spawn(move || {
                    loop {
                        let at = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                        let Some(table) = Table::ALL.get(at) else {
                            return;
                        };
                        let note = |rows: u64| drop(report.send(Ok(rows)));
                        if let Err(error) = self.load_table(*table, target, book, &note) {
                            // The others stop at their next table.
                            next.store(Table::ALL.len(), std::sync::atomic::Ordering::Relaxed);
                            let _ = report.send(Err(error));
                        }
                    }
                });
            }
            drop(report);
            let (mut rows, mut result) = (0, Ok(()));
            for entry in reports {
                match entry {
                    Ok(more) => rows += more,
                    Err(error) => result = Err(error),
                }
                progress.loaded(&Loaded {
                    rows,
                    rows_expected: expected,
                    elapsed: started.elapsed(),
                    rows_now: rows,
                });
            }
            result
        })
    }

    fn load_table(
        &self,
        table: Table,
        target: &Target,
        book: &Book,
        note: &dyn Fn(u64),
    ) -> Result<(), DriveError> {
        let path = file_of(&self.path, table);
        let wrong = |line: u64, why: &str| {
            let path = path.display();
            DriveError::Option(format!("{path}, line {line}: {why}"))
        };
        let file = File::open(&path).map_err(|error| cannot("read", &path, &error))?;
        let mut lines = BufReader::new(file).split(b'\n');
        let names = table.column_names();
        let head = lines.next().transpose();
        let head = head.map_err(|error| cannot("read", &path, &error))?;
        if head.as_deref() != Some(names.join(",").as_bytes()) {
            return Err(wrong(1, &format!("not the columns {}", names.join(","))));
        }
        let connected = Link::connect_any(target, None);
        let mut link = connected.during("connecting")?;
        let (mut rows, mut bytes) = (0, Vec::new());
        let load = |link: &mut Link, bytes: &mut Vec<u8>, first: u64, rows: u64| {
            let step = format!("csv {} {first}", table.name());
            if rows > 0 && !book.has(&step) {
                let loaded = load_chunk(link, (table.name(), &step), bytes, rows);
                loaded.during("loading from CSV")?;
            }
            note(rows);
            bytes.clear();
            Ok::<(), DriveError>(())
        };
        for line in lines {
            let line = line.map_err(|error| cannot("read", &path, &error))?;
            if !from_csv(&line, names.len(), &mut bytes) {
                return Err(wrong(rows + 2, &format!("not {} values", names.len())));
            }
            rows += 1;
            if rows % ROWS_PER_STEP == 0 {
                load(&mut link, &mut bytes, rows - ROWS_PER_STEP, ROWS_PER_STEP)?;
            }
        }
        let rest = rows % ROWS_PER_STEP;
        load(&mut link, &mut bytes, rows - rest, rest)?;
        link.close();
        let expected = self.rows[table.name()];
        match rows == expected {
            true => Ok(()),
            false => Err(wrong(
                rows + 1,
                &format!("{rows} rows, and {SETTINGS} says {expected}"),
            )),
        }
    }
}

/// A row of COPY as a line of CSV.
fn to_csv(row: &[u8], out: &mut Vec<u8>) {
    for (at, cell) in row.split(|byte| *byte == b'\t').enumerate() {
        if at > 0 {
            out.push(b',');
        }
        if cell == b"\\N" {
            continue;
        }
        let text = unescaped(cell);
        let is_plain = |byte: &u8| !matches!(byte, b',' | b'"' | b'\r' | b'\n');
        if !text.is_empty() && text.iter().all(is_plain) {
            out.extend_from_slice(&text);
            continue;
        }
        out.push(b'"');
        for byte in text {
            out.push(byte);
            if byte == b'"' {
                out.push(byte);
            }
        }
        out.push(b'"');
    }
    out.push(b'\n');
}

fn unescaped(cell: &[u8]) -> Vec<u8> {
    let mut text = Vec::with_capacity(cell.len());
    let mut bytes = cell.iter();
    while let Some(byte) = bytes.next() {
        match (byte, byte == &b'\\') {
            (_, true) => text.extend(bytes.next().map(|escaped| match escaped {
                b't' => b'\t',
                b'n' => b'\n',
                b'r' => b'\r',
                other => *other,
            })),
            (other, false) => text.push(*other),
        }
    }
    text
}

/// A line of CSV as a row of COPY. False: it does not have so many values. A value has no line
/// break, which no value of TPC-C has.
fn from_csv(line: &[u8], values: usize, out: &mut Vec<u8>) -> bool {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let (mut rest, mut count) = (line, 0);
    loop {
        if count > 0 {
            out.push(b'\t');
        }
        count += 1;
        let Some(end) = take_value(rest, out) else {
            return false;
        };
        match rest.get(end) {
            None => break,
            Some(b',') => rest = &rest[end + 1..],
            Some(_) => return false,
        }
    }
    out.push(b'\n');
    count == values
}

/// Appends the value at the beginning; where it ends. `None`: its quotes do not end.
fn take_value(rest: &[u8], out: &mut Vec<u8>) -> Option<usize> {
    let push = |byte: u8, out: &mut Vec<u8>| match byte {
        b'\t' => out.extend_from_slice(b"\\t"),
        b'\\' => out.extend_from_slice(b"\\\\"),
        other => out.push(other),
    };
    if rest.first() != Some(&b'"') {
        let end = rest.iter().position(|byte| *byte == b',');
        let end = end.unwrap_or(rest.len());
        match end {
            0 => out.extend_from_slice(b"\\N"),
            _ => rest[..end].iter().for_each(|byte| push(*byte, out)),
        }
        return Some(end);
    }
    let mut at = 1;
    loop {
        match (rest.get(at)?, rest.get(at + 1)) {
            (b'"', Some(b'"')) => {
                push(b'"', out);
                at += 2;
            }
            (b'"', _) => return Some(at + 1),
            (other, _) => {
                push(*other, out);
                at += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_copy_become_csv_and_come_back() {
        for (row, csv) in [
            (&b"1\tab\t\\N\t2.50"[..], &b"1,ab,,2.50\n"[..]),
            (b"a,b\t\t\"q\"", b"\"a,b\",\"\",\"\"\"q\"\"\"\n"),
            (b"a\\\\b\tc\\td", b"a\\b,c\td\n"),
        ] {
            let mut line = Vec::new();
            to_csv(row, &mut line);
            assert_eq!(line, csv);
            let mut back = Vec::new();
            let values = row.split(|byte| *byte == b'\t').count();
            assert!(from_csv(
                line.strip_suffix(b"\n").unwrap(),
                values,
                &mut back
            ));
            assert_eq!(back.strip_suffix(b"\n").unwrap(), row);
        }
    }

    #[test]
    fn lines_that_are_none_are_refused() {
        for (line, values) in [
            ("1,2", 3),
            ("1,2,3", 2),
            ("1,\"2", 2),
            ("\"1\"2,3", 2),
            ("", 2),
        ] {
            assert!(
                !from_csv(line.as_bytes(), values, &mut Vec::new()),
                "{line}"
            );
        }
    }
}

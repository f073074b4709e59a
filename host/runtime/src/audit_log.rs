//! The audit log of a node: lines of JSON in `audit.log` of its data directory.
//!
//! A thread of its own writes, so that no shard waits for a disk. Shards give their lines to a
//! queue with an end; what finds it full, or what the disk does not take, is counted, and the next
//! line that can be written tells how many are missing. When a file has its size, it becomes
//! `audit.log.1`, that one `audit.log.2` and so on; the oldest goes.

use base::calendar::UNIX_EPOCH_MICROS;
use base::{Datum, NodeId, SqlError, Type};
use node::AuditEntry;
use std::fmt::Display;
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::SystemTime;

/// Name of the file in the data directory.
const FILE: &str = "audit.log";
/// Lines that wait for the disk.
const QUEUE_LINES: usize = 1024;
/// Older files that are kept.
const OLDER_FILES: u32 = 4;

/// A line that is being made.
struct Line(String);

impl Line {
    fn new(node: NodeId, kind: &str, ok: bool) -> Line {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let micros = since.map_or(0, |since| since.as_micros() as i64);
        let moment = Datum::Timestamp(micros - UNIX_EPOCH_MICROS);
        let mut time = Vec::new();
        base::text::format(Type::Timestamptz(None), &moment, &mut time);
        let mut line = Line("{".into());
        line.text("time", &String::from_utf8_lossy(&time));
        line.plain("node", node.0);
        line.text("kind", kind);
        line.plain("ok", ok);
        line
    }

    fn plain(&mut self, name: &str, value: impl Display) {
        if self.0.len() > 1 {
            self.0.push(',');
        }
        self.0.push_str(&format!("\"{name}\":{value}"));
    }

    /// Leaves out what is empty.
    fn text(&mut self, name: &str, value: &str) {
        if value.is_empty() {
            return;
        }
        let mut quoted = String::with_capacity(value.len() + 2);
        quoted.push('"');
        for c in value.chars() {
            match c {
                '"' | '\\' => quoted.extend(['\\', c]),
                c if c.is_control() => quoted.push_str(&format!("\\u{:04x}", u32::from(c))),
                c => quoted.push(c),
            }
        }
        quoted.push('"');
        self.plain(name, quoted);
    }

    fn done(mut self) -> String {
        self.0.push('}');
        self.0
    }
}

/// Where the shards of a node leave their lines. Cheap to clone.
#[derive(Clone)]
pub(crate) struct AuditLog {
    node: NodeId,
    lines: SyncSender<String>,
    lost: Arc<AtomicU64>,
}

impl AuditLog {
    /// Starts the thread that writes to files of `max_bytes` in `folder`. It ends when all shards
    /// have.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub(crate) fn start(node: NodeId, folder: &Path, max_bytes: u64) -> std::io::Result<AuditLog> {
        let (lines, waiting) = sync_channel(QUEUE_LINES);
        let lost = Arc::new(AtomicU64::new(0));
        let writer = Writer {
            path: folder.join(FILE),
            max_bytes,
            file: None,
            bytes: 0,
            lost: lost.clone(),
            node,
        };
        std::thread::Builder::new()
            .name("audit".into())
            .spawn(move || writer.run(&waiting))?;
        Ok(AuditLog { node, lines, lost })
    }

    /// Never waits.
    fn add(&self, line: Line) {
        if self.lines.try_send(line.done()).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(crate) fn write(&self, entries: &[AuditEntry]) {
        for entry in entries {
            let AuditEntry {
                kind,
                pid,
                user,
                role,
                database,
                from,
                text,
                error,
            } = entry;
            let mut line = Line::new(self.node, kind, error.is_none());
            line.text("user", user);
            line.text("role", role);
            line.text("database", database);
            line.text("address", from.as_deref().unwrap_or_default());
            line.plain("pid", pid);
            line.text("statement", text);
            if let Some((state, message)) = error {
                line.text("state", state);
                line.text("error", message);
            }
            self.add(line);
        }
    }

    /// A client was refused before it had a session.
    pub(crate) fn refused(&self, user: &str, from: Option<&str>, error: &SqlError) {
        let state = error.state();
        let mut line = Line::new(self.node, "login", false);
        line.text("user", user);
        line.text("address", from.unwrap_or_default());
        line.text("state", &String::from_utf8_lossy(&state.0));
        line.text("error", &error.fields().message);
        self.add(line);
    }
}

/// What the thread has.
struct Writer {
    path: PathBuf,
    max_bytes: u64,
    file: Option<File>,
    bytes: u64,
    lost: Arc<AtomicU64>,
    node: NodeId,
}

impl Writer {
    fn run(mut self, waiting: &Receiver<String>) {
        while let Ok(text) = waiting.recv() {
            let lost = self.lost.swap(0, Ordering::Relaxed);
            let told = match lost {
                0 => Ok(()),
                _ => {
                    let mut missing = Line::new(self.node, "lost", false);
                    missing.plain("lost", lost);
                    self.add(&missing.done())
                }
            };
            let uncounted = if told.is_err() { lost } else { 0 };
            let written = told.and_then(|()| self.add(&text));
            if let Err(error) = written {
                // A line that was cut off must not be continued.
                self.file = None;
                if self.lost.fetch_add(uncounted + 1, Ordering::Relaxed) == 0 {
                    tracing::error!(%error, path = %self.path.display(), "audit log");
                }
            }
        }
    }

    fn add(&mut self, text: &str) -> std::io::Result<()> {
        let whole = format!("{text}\n");
        if self.file.is_some() && self.bytes + whole.len() as u64 > self.max_bytes {
            self.rotate()?;
        }
        let file = match &mut self.file {
            Some(file) => file,
            None => {
                let mut options = OpenOptions::new();
                let options = options.create(true).read(true).append(true).mode(0o600);
                let mut file = options.open(&self.path)?;
                self.bytes = file.metadata()?.len();
                if self.bytes > 0 && is_cut_off(&mut file)? {
                    file.write_all(b"\n")?;
                    self.bytes += 1;
                }
                self.file.insert(file)
            }
        };
        file.write_all(whole.as_bytes())?;
        self.bytes += whole.len() as u64;
        Ok(())
    }

    fn older(&self, number: u32) -> PathBuf {
        let mut name = self.path.clone().into_os_string();
        name.push(format!(".{number}"));
        name.into()
    }

    fn rotate(&mut self) -> std::io::Result<()> {
        self.file = None;
        for number in (1..OLDER_FILES).rev() {
            let from = self.older(number);
            if from.exists() {
                std::fs::rename(&from, self.older(number + 1))?;
            }
        }
        std::fs::rename(&self.path, self.older(1))?;
        self.bytes = 0;
        Ok(())
    }
}

/// Whether the last line of a file has no end.
fn is_cut_off(file: &mut File) -> std::io::Result<bool> {
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    Ok(last != *b"\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An empty folder.
    fn folder(name: &str) -> PathBuf {
        let name = format!("trellis-audit-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).expect("a folder");
        path
    }

    fn writer(folder: &Path) -> Writer {
        Writer {
            path: folder.join(FILE),
            max_bytes: 100,
            file: None,
            bytes: 0,
            lost: Arc::default(),
            node: NodeId(1),
        }
    }

    #[test]
    fn files_are_bounded_and_few() {
        let folder = folder("few");
        let mut writer = writer(&folder);
        for number in 0..100 {
            writer.add(&format!("{number:040}")).expect("written");
        }
        let mut names: Vec<_> = std::fs::read_dir(&folder)
            .expect("readable")
            .map(|entry| entry.expect("a file"))
            .collect();
        names.sort_by_key(std::fs::DirEntry::file_name);
        assert_eq!(names.len(), 1 + OLDER_FILES as usize);
        for entry in &names {
            assert!(entry.metadata().expect("there").len() <= 100);
        }
        let _ = std::fs::remove_dir_all(&folder);
    }

    #[test]
    fn what_a_disk_does_not_take_is_counted_and_told() {
        let folder = folder("full");
        let mut broken = writer(&folder);
        // A device that is always full.
        broken.path = "/dev/full".into();
        let lost = broken.lost.clone();
        let (lines, waiting) = sync_channel(8);
        for _ in 0..3 {
            lines.send("a line".into()).expect("room");
        }
        drop(lines);
        broken.run(&waiting);
        assert_eq!(lost.load(Ordering::Relaxed), 3);
        let mut whole = writer(&folder);
        whole.lost = lost;
        // What a crash has left.
        std::fs::write(&whole.path, "cut o").expect("written");
        let (lines, waiting) = sync_channel(8);
        lines.send("after".into()).expect("room");
        drop(lines);
        whole.run(&waiting);
        let text = std::fs::read_to_string(folder.join(FILE)).expect("written");
        assert!(text.contains("\"lost\":3"), "{text}");
        assert!(text.ends_with("after\n"), "{text}");
        assert_eq!(text.lines().count(), 3, "{text}");
        let _ = std::fs::remove_dir_all(&folder);
    }

    #[test]
    fn a_full_queue_makes_nobody_wait() {
        let (lines, _waiting) = sync_channel(1);
        let log = AuditLog {
            node: NodeId(1),
            lines,
            lost: Arc::default(),
        };
        for _ in 0..5 {
            log.add(Line::new(NodeId(1), "login", true));
        }
        assert_eq!(log.lost.load(Ordering::Relaxed), 4);
    }

    #[test]
    fn a_line_is_json() {
        let mut line = Line::new(NodeId(3), "ddl", true);
        line.text("statement", "CREATE TABLE \"a\\b\"\n(x int)");
        let text = line.done();
        let behind = text.split_once(",\"node\"").expect("a time first").1;
        let wanted = concat!(
            r#":3,"kind":"ddl","ok":true,"statement":"CREATE TABLE \"a\\b\""#,
            r#"\u000a(x int)"}"#
        );
        assert_eq!(behind, wanted);
    }
}

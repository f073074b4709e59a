//! `trellis sql` as a person at a terminal and as scripts use it.

use crate::commands::{Running, stderr, stdout, trellis};
use crate::support::{Folder, PROGRAM, READY_LIMIT, STOP_LIMIT, free_ports, wait_child};
use nix::pty::{Winsize, openpty};
use std::fs::File;
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Instant;

/// A client whose input and output are a terminal of 60 columns and 12 rows.
struct Session {
    child: Child,
    keys: File,
    shown: Receiver<Vec<u8>>,
    /// What has been shown and not been looked at.
    text: String,
}

impl Session {
    fn open(data: &str, folder: &Folder, environment: &[(&str, &str)]) -> Session {
        let size = Winsize {
            ws_row: 12,
            ws_col: 60,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        let pair = openpty(&size, None).unwrap();
        let (terminal, keys) = (File::from(pair.slave), File::from(pair.master));
        let mut command = Command::new(PROGRAM);
        command
            .args(["sql", "--data", data])
            .env("HOME", folder.path())
            .env("TERM", "xterm")
            .envs(environment.iter().copied())
            .stdin(terminal.try_clone().unwrap())
            .stdout(terminal.try_clone().unwrap())
            .stderr(terminal);
        let child = command.spawn().unwrap();
        // The command holds the terminal's other side, and would keep it open.
        drop(command);
        let (send, shown) = channel();
        let mut screen = keys.try_clone().unwrap();
        std::thread::spawn(move || {
            let mut bytes = vec![0; 4096];
            // An error is the end of the terminal.
            while let Ok(count) = screen.read(&mut bytes)
                && count > 0
                && send.send(bytes[..count].to_vec()).is_ok()
            {}
        });
        let mut session = Session {
            child,
            keys,
            shown,
            text: String::new(),
        };
        session.expect("postgres=> ");
        session
    }

    /// Waits until `part` is shown; what comes with it, up to there.
    fn expect(&mut self, part: &str) -> String {
        let until = Instant::now() + READY_LIMIT;
        loop {
            if let Some(at) = self.text.find(part) {
                let rest = self.text.split_off(at + part.len());
                return std::mem::replace(&mut self.text, rest);
            }
            let left = until.saturating_duration_since(Instant::now());
            let Ok(bytes) = self.shown.recv_timeout(left) else {
                panic!("{part:?} is not in {:?}", self.text);
            };
            self.text.push_str(&String::from_utf8_lossy(&bytes));
        }
    }

    fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    /// Types a line and waits for `part`, and then for the next prompt.
    fn ask(&mut self, line: &str, part: &str) -> String {
        self.press(&format!("{line}\r"));
        let mut shown = self.expect(part);
        shown.push_str(&self.expect("> "));
        shown
    }
}

#[test]
fn a_person_completes_pages_and_leaves_with_a_word() {
    let folder = Folder::new("terminal");
    let data = folder.path().join("cluster");
    let port = free_ports(1).to_string();
    let running = Running::start(&data, &["--port", &port]);
    let dir = running.data.clone();
    let pager = [("TRELLIS_PAGER", "sed 's/^/paged /'")];
    let mut session = Session::open(&dir, &folder, &pager);

    session.ask("help", "\\? lists the commands");
    session.ask(
        "CREATE TABLE account (id int PRIMARY KEY, \"Full name\" text);",
        "CREATE TABLE",
    );
    session.press("sel\t* from acc\twhere \"F\tis null;\r");
    session.expect("select * from account where \"Full name\" ");
    session.expect("(0 rows)");
    session.press("show lock_t\t;\r");
    session.expect("lock_timeout");
    session.expect("(1 row)");
    session.press("\\conn\tinfo\r");
    session.expect("Database \"postgres\" as user \"trellis\" on 127.0.0.1");
    // Ctrl-C means what is typed only when the line is being read.
    session.expect("postgres=> ");
    session.press("DROP DATABASE pos\t\u{3}");
    session.expect("DROP DATABASE postgres ");

    // Longer than the screen, and wider.
    session.ask(
        "SELECT n FROM generate_series(1, 20) AS g (n);",
        "paged   1",
    );
    session.ask("SELECT repeat('x', 70);", "paged ");
    let short = session.ask("SELECT 7 AS seven;", "seven");
    assert!(!short.contains("paged"), "{short}");
    session.ask("\\pset pager off", "Pager is off.");
    let long = session.ask(
        "SELECT n FROM generate_series(1, 20) AS g (n);",
        "(20 rows)",
    );
    assert!(!long.contains("paged"), "{long}");

    // Words in the middle of a statement are part of it; a command is carried out at once.
    session.press("SELECT 1 +\r");
    session.expect("postgres-> ");
    session.ask("quit", "\\q leaves");
    session.press("\\x\r");
    session.expect("Expanded display is on.");
    session.expect("postgres-> ");
    session.press("\u{3}");
    session.expect("postgres=> ");
    session.press("\\x auto\r");
    session.expect("Expanded display is used if");
    session.ask(
        "SELECT repeat('x', 50) AS a, repeat('y', 20) AS b;",
        "-[ RECORD 1 ]",
    );

    // Ctrl-C in the middle of data copies nothing.
    session.press("COPY account (id) FROM STDIN;\r");
    session.expect("copy> ");
    session.press("1\r");
    session.expect("copy> ");
    session.press("\u{3}");
    session.expect("57014");
    session.ask("SELECT 'rows: ' || count(*) FROM account;", "rows: 0");

    // Columns of data are separated by tabs: Tab completes nothing there.
    session.press("COPY account FROM STDIN;\r");
    session.expect("copy> ");
    session.press("5\tfive\r");
    session.expect("copy> ");
    session.ask("\\.", "COPY 1");

    // What is pasted may be statements with their data, and what is typed ahead is not lost.
    session.press(
        "\u{1b}[200~COPY account FROM STDIN;\n7\tann\n8\tbob\n\\.\nTABLE account;\u{1b}[201~\r",
    );
    session.expect("COPY 2");
    session.expect("8 | bob");
    session.press("SELECT 'a' || 1;\rSELECT 'b' || 2;\rSELECT 'c' || 3;\r");
    session.expect("a1");
    session.expect("b2");
    session.expect("c3");
    session.expect("postgres=> ");

    // A statement of several lines comes back from the history as it was.
    session.press("SELECT 40 -- forty\r");
    session.expect("postgres-> ");
    session.ask("+ 2 AS sum;", "42");
    session.press("\u{1b}[A\r");
    session.expect("42");
    session.press("exit\r");
    assert!(wait_child(&mut session.child, STOP_LIMIT).success());
}

/// Runs a script of standard input in `folder`.
fn script(dir: &str, folder: &Folder, text: &str, environment: &[(&str, &str)]) -> [String; 2] {
    let mut command = Command::new(PROGRAM);
    command
        .args(["sql", "--data", dir])
        .current_dir(folder.path())
        .envs(environment.iter().copied())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(text.as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    [stdout(&output), stderr(&output)]
}

#[test]
fn commands_of_psql_do_what_they_do_there() {
    let folder = Folder::new("backslash");
    let data = folder.path().join("cluster");
    let port = free_ports(1).to_string();
    let running = Running::start(&data, &["--port", &port]);
    let dir = running.data.clone();
    let run = |text: &str| script(&dir, &folder, text, &[]);

    // Inside of a statement, and several in a line.
    let [out, errors] = run("SELECT 1\n\\echo now\n+ 1 AS two;\n\\t \\a\nSELECT 3, NULL \\g\n");
    assert_eq!(
        out,
        "now\n two\n-----\n   2\n(1 row)\nTuples only is on.\nOutput format is unaligned.\n3|\n",
        "{errors}"
    );

    let [out, errors] = run(
        "CREATE TABLE t (id int PRIMARY KEY, name text DEFAULT 'x');\n\
         COMMENT ON TABLE t IS 'of things'; COMMENT ON COLUMN t.name IS 'what it is called';\n\
         INSERT INTO t VALUES (1, 'a,b'), (2, NULL);\n\
         \\copy t to 'rows.csv' csv\n\\copy (SELECT id FROM t ORDER BY id) to program 'cat > ids'\n\
         DELETE FROM t;\n\\copy t from rows.csv with (format csv)\n\\d+ t\n\\conninfo\n\
         \\o found.txt\nSELECT count(*) FROM t;\n\\o\n\
         SELECT count(*) AS n FROM t \\watch 0.01 c=2\n\
         SELECT * FROM t WHERE id = 1 \\gx\n",
    );
    for part in [
        "COPY 2\n",
        " name   | text    |          | 'x'::text | what it is called\n",
        " of things\n",
        "Database \"postgres\" as user \"trellis\" on 127.0.0.1:",
        "Run 1 (every 0.01 s)\n n\n---\n 2\n(1 row)\nRun 2 (every 0.01 s)\n n\n",
        "-[ RECORD 1 ]----\nid   | 1\nname | a,b\n",
    ] {
        assert!(out.contains(part), "{part:?} is not in\n{out}\n{errors}");
    }
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
    assert_eq!(read("rows.csv"), "1,\"a,b\"\n2,\n");
    assert_eq!(read("ids"), "1\n2\n");
    assert!(read("found.txt").contains(" 2\n(1 row)"));

    // Nothing is copied from a file that is not there, or into a table that is not.
    let [_, errors] = run("\\copy t from missing.csv csv\n");
    assert!(errors.contains("cannot open missing.csv"), "{errors}");
    let [_, errors] = run("\\copy nope from rows.csv csv\n");
    assert!(errors.contains("42P01"), "{errors}");
    // A folder can be opened, but not be read.
    let [_, errors] = run("\\copy t from . csv\n");
    assert!(errors.contains("cannot read the data"), "{errors}");

    let editor = [("EDITOR", "sed -i s/one/two/")];
    let [out, errors] = script(&dir, &folder, "SELECT 'one' AS n\n\\e\n\\g\n", &editor);
    assert!(
        out.contains("SELECT 'two' AS n\n  n\n-----\n two\n"),
        "{out}{errors}"
    );
    let [out, errors] = script(&dir, &folder, "SELECT 'one';\n\\e\n", &editor);
    assert!(
        out.contains("two"),
        "the last statement is edited and run: {out}{errors}"
    );

    // Each of these says something useful.
    for (command, part) in [
        ("\\dt", " public | t    | table |"),
        ("\\dt nope*", "There are no such tables."),
        ("\\di", " t_pkey "),
        ("\\dn", " public "),
        ("\\du", " trellis "),
        ("\\l+", " postgres "),
        ("\\dT int*", " integer"),
        ("\\d t_pkey", "Index \"public.t_pkey\""),
        ("\\d public.*", "Table \"public.t\""),
        ("\\h create table", "PARTITION BY"),
        ("\\pset", "pager"),
        ("\\timing", "Timing is on."),
        ("\\?", "\\watch"),
    ] {
        let [out, errors] = run(&format!("{command}\n"));
        assert!(out.contains(part), "{command}: {out}{errors}");
    }
    let [_, errors] = run("SHOW nonsense;\n");
    assert!(
        errors.contains("HINT: SHOW ALL lists the settings."),
        "{errors}"
    );
    assert!(
        errors.contains("COUNTERS, DATABASES, DISTRIBUTION, HOTTEST, IN DOUBT, MEMORY"),
        "{errors}"
    );
    let [out, errors] = run("\\df abs\n\\df lower\n");
    assert!(
        out.contains(" abs  | integer          | integer "),
        "{out}{errors}"
    );
    let [_, errors] = run("\\zz\n");
    assert!(
        errors.contains("unknown command \\zz; \\? lists the commands"),
        "{errors}"
    );
    let status = trellis(&["sql", "--data", &dir, "-c", "SELECT 1 \\gx", "-c", "\\nope"]);
    assert_eq!(status.status.code(), Some(1));
}

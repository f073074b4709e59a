//! Golden scripts of the session machine: what a client and a coordinator say, and what the session
//! answers.
//!
//! Each file of `testdata` holds blocks of commands, a line `---`, and the trace that they
//! give. With `UPDATE=1` in the environment the traces are rewritten; a person then reads the
//! difference.
//!
//! Commands of the client (`-` is the empty name): `connect NAME=VALUE...`, `query SQL`,
//! `parse NAME SQL`, `bind PORTAL STATEMENT VALUE...`, `describe s|p NAME`,
//! `execute PORTAL [ROWS]`, `close s|p NAME`, `sync`, `flush`, `copydata TEXT`, `copydone`,
//! `copyfail TEXT`, `malformed`, `terminate`, `disconnect`, `cancel`, `long MESSAGE` (whose
//! statements have 16 KiB more of text, after their first words).
//! Of the coordinator: `rows N ROW;ROW`, `copyout N TEXT`, `copyin N`, `done N TAG...`,
//! `fail N STATE TEXT`, `die N [POSITION]`, `lost N REASON`, `ended committed|unknown|die`.
//! Of the shard: `peer down|heard|up` (node 2), `ddl ok|fail`,
//! `prepared` (the oldest long text has been parsed or planned),
//! `quiesce TABLE...` (they are about to be changed), `quiesce end`,
//! `drained`, `tick MILLIS`, `drain`, `schema` (a newer catalog),
//! `placement NODES SHARDS_PER_NODE`, `describe!`, `deadline!` (when a tick is wanted).

#![allow(
    clippy::disallowed_methods,
    reason = "scripts are files, and a switch of the environment rewrites them"
)]

mod trace;

use base::{
    Datum, IndexId, Key, NodeId, Position, RowBatch, ShardId, Slot, SqlError, SqlState, TableId,
    Time, Ts, TxnId, Type,
};
use catalog::{Catalog, Column, Database, Index, IndexColumn, Placement, Table};
use session::Away;
use session::message::{DdlCall, Done, EndCost, FromTxn, Quiesce, ToTxn, TxnHandle};
use session::{ConnId, Leftovers, PreparationResult};
use session::{PlanCache, Session, SessionCx, Statistics};
use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;
use txn::{AbortReason, Counters, DoubtfulWait, OpError, Outcome, Tie, TxnCost};
use wire::{ClientMessage, Format, Tag};

const HERE: ShardId = ShardId(0);

struct World {
    session: Session,
    catalog: Arc<Catalog>,
    plans: PlanCache,
    statistics: Statistics,
    counters: Counters,
    away: Away,
    quiesced: Vec<Quiesce>,
    now: Time,
    accepting: bool,
    /// Long texts that were given away, as they come back.
    preparations: VecDeque<PreparationResult>,
    /// The transaction last told something.
    handle: Option<TxnHandle>,
    trace: String,
}

#[test]
fn golden_scripts() {
    let folder = Path::new("testdata");
    let files = std::fs::read_dir(folder).expect("the folder of scripts is there");
    let mut paths: Vec<_> = files
        .map(|file| file.expect("a readable folder").path())
        .collect();
    paths.sort();
    assert!(!paths.is_empty(), "there are scripts");
    let update = std::env::var_os("UPDATE").is_some();
    let mut wrong = Vec::new();
    for path in paths {
        let text = std::fs::read_to_string(&path).expect("a readable script");
        let now = run_script(&text);
        if update {
            std::fs::write(&path, now).expect("a writable script");
        } else if now != text {
            wrong.push(format!("{}:\n{}", path.display(), difference(&text, &now)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn difference(old: &str, new: &str) -> String {
    let same = old
        .lines()
        .zip(new.lines())
        .take_while(|(a, b)| a == b)
        .count();
    let rest = |text: &str| {
        text.lines()
            .skip(same)
            .take(8)
            .collect::<Vec<_>>()
            .join("\n  ")
    };
    format!(
        "line {}\n expected\n  {}\n got\n  {}",
        same + 1,
        rest(old),
        rest(new)
    )
}

/// The message with statements of more than 16 KiB.
fn lengthened(mut message: ClientMessage) -> ClientMessage {
    if let ClientMessage::Query(text) | ClientMessage::Parse { text, .. } = &mut message {
        let words = text.split(';').map(|statement| {
            let (first, rest) = statement.trim().rsplit_once(' ').expect("several words");
            format!("{first} {:16384}{rest}", "")
        });
        *text = words.collect::<Vec<_>>().join(";");
    }
    message
}

/// Runs all blocks; returns the script with the traces that they gave.
fn run_script(text: &str) -> String {
    let mut world = World::new();
    let mut out = String::new();
    let mut in_trace = false;
    for line in text.lines() {
        if line.is_empty() {
            if in_trace {
                out.push_str(&std::mem::take(&mut world.trace));
            }
            in_trace = false;
            out.push('\n');
        } else if line == "---" {
            out.push_str("---\n");
            in_trace = true;
        } else if !in_trace {
            writeln!(out, "{line}").expect("strings take everything");
            if !line.starts_with('#') {
                world.command(line);
            }
        }
    }
    if in_trace {
        out.push_str(&world.trace);
    }
    out
}

/// The host's barrier, for which everything about `boom` panics.
fn stops_at_boom(statement: &str, work: &mut dyn FnMut()) -> Result<(), String> {
    if statement.contains("boom") {
        return Err("a bug (sql.rs:1)".into());
    }
    work();
    Ok(())
}

impl World {
    fn new() -> World {
        World {
            session: Session::new(ConnId(1), 42, session::Link::default()),
            catalog: Arc::new(catalog()),
            plans: PlanCache::default(),
            statistics: Statistics::default(),
            counters: Counters::default(),
            away: Away::default(),
            quiesced: Vec::new(),
            now: Time(1_800_000_000_000_000),
            accepting: true,
            preparations: VecDeque::new(),
            handle: None,
            trace: String::new(),
        }
    }

    fn call(&mut self, call: impl FnOnce(&mut Session, &mut SessionCx<'_>)) {
        let mut replies = Vec::new();
        let mut to_txn = VecDeque::new();
        let mut ddl = VecDeque::new();
        let mut preparations = Vec::new();
        let mut cx = SessionCx {
            now: self.now,
            here: HERE,
            catalog: &self.catalog,
            accepting: self.accepting,
            replies: &mut replies,
            to_txn: &mut to_txn,
            ddl: &mut ddl,
            plans: &mut self.plans,
            statistics: &mut self.statistics,
            counters: &mut self.counters,
            away: &self.away,
            quiesced: &self.quiesced,
            preparations: &mut preparations,
            leftovers: &Leftovers::default(),
            barrier: stops_at_boom,
            told: &mut Vec::new(),
            claim_memory: &mut |_| true,
        };
        call(&mut self.session, &mut cx);
        for (shard, handle, message) in &to_txn {
            if !matches!(message, ToTxn::Rollback) {
                self.handle = Some(*handle);
            }
            self.trace
                .push_str(&trace::to_txn(*shard, *handle, message));
        }
        for call in &ddl {
            let text = match call {
                DdlCall::Ask(_, database, plan, _) => format!("{database} {}", plan.tag),
                DdlCall::Stop(_, stop) => format!("stop {stop:?}"),
                DdlCall::Left(database, _) => format!("{database} undo"),
            };
            writeln!(self.trace, "-> ddl {text}").expect("strings take everything");
        }
        for preparation in preparations {
            self.trace.push_str("-> prepare\n");
            self.preparations.extend(preparation.run());
        }
        for (_, reply, wait) in &replies {
            self.trace.push_str(&trace::reply(reply, *wait));
        }
        for slow in self.session.take_slow() {
            let ms = slow.duration_us / 1000;
            writeln!(self.trace, "slow: {ms} ms {}", slow.text).expect("always");
        }
    }

    fn client(&mut self, message: ClientMessage) {
        self.call(|session, cx| session.on_client(cx, message));
    }

    fn txn(&mut self, message: FromTxn) {
        let handle = self.handle.expect("a transaction has been told something");
        self.call(|session, cx| session.on_txn(cx, handle, message));
    }

    fn command(&mut self, line: &str) {
        let (verb, rest) = line.split_once(' ').unwrap_or((line, ""));
        match verb {
            "rows" | "copyout" | "copyin" | "done" | "fail" | "die" | "lost" | "ended" => {
                let message = from_txn(verb, rest);
                self.txn(message);
            }
            "ddl" => {
                let result = match rest {
                    "ok" => Ok(vec!["a notice".to_owned()]),
                    _ => Err(SqlError::new(SqlState::DUPLICATE_TABLE, "there is one")),
                };
                self.call(|session, cx| session.on_ddl(cx, result));
            }
            "prepared" => {
                let Some(result) = self.preparations.pop_front() else {
                    return self.trace.push_str("nothing is prepared\n");
                };
                self.call(|session, cx| session.on_prepared(cx, result));
            }
            "quiesce" if rest == "end" => {
                self.quiesced.clear();
                self.call(|session, cx| session.on_quiesced_end(cx));
            }
            "quiesce" => {
                let tables = &self.catalog.databases["shop"].tables;
                self.quiesced.push(Quiesce {
                    version: self.catalog.version + 1,
                    tables: rest.split(' ').map(|name| tables[name].id).collect(),
                    until: self.now.after(1_500_000),
                    lock: None,
                });
            }
            "drained" => self.call(|session, cx| session.on_drained(cx)),
            "cancel" => self.call(|session, cx| session.on_cancel(cx, 42)),
            "disconnect" => self.call(|session, cx| session.on_disconnect(cx)),
            "tick" => {
                self.now = self
                    .now
                    .after(rest.parse::<u64>().expect("milliseconds") * 1000);
                self.call(|session, cx| session.on_tick(cx));
                let due = self.session.deadline().is_some_and(|at| at <= self.now);
                assert!(!due, "a tick leaves nothing to do");
            }
            // What the shard knows of the connection with node 2.
            "peer" => match rest {
                "down" => self.away.down(NodeId(2), self.now),
                "heard" => self.away.heard(NodeId(2), self.now),
                _ => self.away.up(NodeId(2)),
            },
            "drain" => {
                self.accepting = false;
                self.call(|session, cx| session.on_tick(cx));
            }
            "placement" => {
                let (nodes, shards) = rest.split_once(' ').expect("NODES SHARDS");
                let number = |word: &str| word.parse().expect("a number");
                let mut catalog = (*self.catalog).clone();
                catalog.placement = Placement::new(number(nodes), number(shards));
                self.catalog = Arc::new(catalog);
            }
            "schema" => {
                let mut catalog = (*self.catalog).clone();
                catalog.version += 1;
                self.catalog = Arc::new(catalog);
            }
            "deadline!" => match self.session.deadline() {
                Some(at) => {
                    let ahead = at.0 as i64 - self.now.0 as i64;
                    writeln!(self.trace, "wants a tick in {} ms", ahead / 1000).expect("always");
                }
                None => self.trace.push_str("wants no tick\n"),
            },
            "describe!" => {
                let told = self.session.describe();
                let words: Vec<&str> = told.statement.split_whitespace().collect();
                writeln!(self.trace, "{} {:?}", told.state, words.join(" ")).expect("always");
            }
            "long" => {
                let (verb, rest) = rest.split_once(' ').expect("a message");
                self.client(lengthened(client_message(verb, rest)));
            }
            _ => self.client(client_message(verb, rest)),
        }
    }
}

fn name(word: &str) -> String {
    if word == "-" {
        String::new()
    } else {
        word.to_owned()
    }
}

fn client_message(verb: &str, rest: &str) -> ClientMessage {
    let mut words = rest.split(' ');
    let mut word = || words.next().unwrap_or_default();
    match verb {
        "connect" => {
            let pairs = rest
                .split(' ')
                .map(|pair| pair.split_once('=').expect("NAME=VALUE"));
            let parameters = pairs.map(|(name, value)| (name.to_owned(), value.replace('+', " ")));
            ClientMessage::Startup {
                parameters: parameters.collect(),
            }
        }
        "query" => ClientMessage::Query(rest.to_owned()),
        "parse" => {
            let name = name(word());
            let text = rest.split_once(' ').map_or("", |(_, text)| text).to_owned();
            ClientMessage::Parse {
                name,
                text,
                types: vec![],
            }
        }
        "bind" | "bind_binary" => {
            let (portal, statement) = (name(word()), name(word()));
            let params = words
                .map(|value| (value != "null").then(|| value.into()))
                .collect();
            let (formats, result_formats) = match verb {
                "bind" => (vec![], vec![]),
                _ => (vec![], vec![Format::Binary]),
            };
            ClientMessage::Bind {
                portal,
                statement,
                formats,
                params,
                result_formats,
            }
        }
        "describe" if word() == "s" => ClientMessage::DescribeStatement(name(word())),
        "describe" => ClientMessage::DescribePortal(name(word())),
        "execute" => {
            let portal = name(word());
            let rows_max = word().parse().unwrap_or(0);
            ClientMessage::Execute { portal, rows_max }
        }
        "close" if word() == "s" => ClientMessage::CloseStatement(name(word())),
        "close" => ClientMessage::ClosePortal(name(word())),
        "sync" => ClientMessage::Sync,
        "flush" => ClientMessage::Flush,
        "copydata" => ClientMessage::CopyData(rest.into()),
        "copydone" => ClientMessage::CopyDone,
        "copyfail" => ClientMessage::CopyFail(rest.to_owned()),
        "malformed" => {
            let error = SqlError::new(SqlState::PROTOCOL_VIOLATION, "bad message");
            ClientMessage::Malformed {
                error,
                fatal: rest == "fatal",
            }
        }
        "terminate" => ClientMessage::Terminate,
        other => panic!("no command {other:?}"),
    }
}

/// The message of a statement that may have put a check off.
fn owing(mut message: FromTxn, owes: bool) -> FromTxn {
    if let FromTxn::Done(_, done) = &mut message
        && owes
    {
        done.effects.get_or_insert_default().owes = true;
    }
    message
}

fn from_txn(verb: &str, rest: &str) -> FromTxn {
    let (number, rest) = rest.split_once(' ').unwrap_or((rest, ""));
    let n = number.parse().unwrap_or(0);
    let die = || AbortReason::Die {
        key: key_of_7(),
        holder: txn_id(),
    };
    let done = |result, outcome: Option<Outcome>, wait| {
        let wait = Position(wait);
        let done = Done {
            result,
            cost: outcome.is_some().then(|| Box::new(cost())),
            outcome,
            wait,
            priority_ts: Ts(5000),
            effects: None,
        };
        FromTxn::Done(n, done)
    };
    match verb {
        "rows" => {
            let mut batch = RowBatch::new(2);
            for row in rest.split(';') {
                let (id, v) = row.split_once(',').expect("two columns");
                batch.push([Datum::Int(id.parse().expect("a number")), v.into()]);
            }
            FromTxn::Rows(n, batch, Position(80))
        }
        "copyout" => FromTxn::CopyOut(n, rest.as_bytes().to_vec(), Position(80)),
        "copyin" => FromTxn::CopyInReady(n),
        // A tag in capitals, its count, and `commit` if the transaction has committed with it, or
        // `owes` if it has put a check off.
        "done" => {
            let words: Vec<&str> = rest.split(' ').collect();
            let count = words.get(1).and_then(|word| word.parse().ok()).unwrap_or(0);
            let tag = match words[0] {
                "INSERT" => Tag::Insert(count),
                "SELECT" => Tag::Count("SELECT", count),
                "UPDATE" => Tag::Count("UPDATE", count),
                "COPY" => Tag::Count("COPY", count),
                "SAVEPOINT" => Tag::Word("SAVEPOINT"),
                "ROLLBACK" => Tag::Word("ROLLBACK"),
                "CHECKED" => Tag::Word("SET CONSTRAINTS"),
                other => panic!("no tag {other:?}"),
            };
            let outcome = match words.last() {
                Some(&"commit") => Some(Outcome::Committed {
                    commit_ts: Ts(6000),
                }),
                Some(&"unknown") => Some(Outcome::Unknown),
                _ => None,
            };
            let wait = if outcome.is_some() { 100 } else { 80 };
            owing(done(Ok(tag), outcome, wait), rest.ends_with(" owes"))
        }
        "fail" => {
            let (state, text) = rest.split_once(' ').expect("STATE TEXT");
            let state = SqlState(state.as_bytes().try_into().expect("five letters"));
            done(Err(OpError::Sql(SqlError::new(state, text))), None, 80)
        }
        "die" => done(
            Err(OpError::Aborted(die())),
            None,
            rest.parse().unwrap_or(0),
        ),
        "lost" => done(Err(OpError::Aborted(reason(rest))), None, 0),
        "ended" => {
            let outcome = match number {
                "committed" => Outcome::Committed {
                    commit_ts: Ts(7000),
                },
                "unknown" => Outcome::Unknown,
                "overtaken" | "misses" => Outcome::Aborted(reason(number)),
                _ => Outcome::Aborted(die()),
            };
            FromTxn::Ended {
                outcome,
                wait: Position(100),
                cost: Some(Box::new(cost())),
            }
        }
        other => panic!("no message {other:?}"),
    }
}

/// What every transaction costs here.
fn cost() -> EndCost {
    EndCost {
        cost: TxnCost {
            shards: 3,
            nodes: 2,
            messages_on_path: 4,
            messages_off_path: 1,
            messages_in_node: 5,
            message_bytes: 0,
            delays: 2,
            forced_writes: 1,
            rows_moved: 0,
            move_wait_us: 0,
        },
        nodes_touched: 2,
        moves_rows: false,
    }
}

fn txn_id() -> TxnId {
    TxnId {
        shard: ShardId(17),
        incarnation: 1,
        counter: 9,
    }
}

/// The reason of `lost`.
fn reason(word: &str) -> AbortReason {
    let (key, holder, at) = (key_of_7(), txn_id(), ShardId(16));
    let cut_off = |tie| {
        let key = key_of_7();
        AbortReason::RowCutOff { key, at, tie }
    };
    match word {
        "55P03" => AbortReason::LockTimeout { key, holder },
        "in-doubt" => AbortReason::InDoubt(Box::new(DoubtfulWait {
            key,
            holder,
            node: NodeId(2),
            age_us: 1_500_000,
        })),
        "cut-off" => AbortReason::CutOff(at),
        "away" => AbortReason::Unreachable(at),
        "owner" => cut_off(Tie::Owner),
        "home" => cut_off(Tie::Home),
        "copy" => cut_off(Tie::Copy),
        "doubt" => cut_off(Tie::Doubt(Box::new(holder))),
        "schema" => AbortReason::SchemaChanged(Some(key.index)),
        "closed" => AbortReason::SchemaChanged(None),
        "old" => AbortReason::SnapshotTooOld(key),
        "old-range" => {
            let range = Key::new(key.index, Slot(0), Vec::new());
            AbortReason::SnapshotTooOld(range)
        }
        "overtaken" => AbortReason::Overtaken(Some(key)),
        "misses" => AbortReason::SnapshotMisses(None),
        "misses-row" => AbortReason::SnapshotMisses(Some(key)),
        "gave-way" => {
            let writer = holder;
            AbortReason::GaveWay { key, writer }
        }
        "restarted" | "" => AbortReason::ParticipantLost(at),
        other => panic!("no reason {other:?}"),
    }
}

fn key_of_7() -> Key {
    let mut bytes = Vec::new();
    base::key::encode_datum(&mut bytes, &Datum::Int(7), false);
    Key::new(IndexId(16_385), Slot(0), bytes)
}

/// Database `shop` with table `t (id integer primary key, v text)`.
fn catalog() -> Catalog {
    let column = |name: &str, ty, not_null| Column {
        name: name.to_owned(),
        ty,
        not_null,
        default: None,
        generated: None,
        domain: None,
        of_index: false,
        identity: None,
        hidden: false,
        state: Default::default(),
        shown_at: None,
        zone: None,
        collation: 0,
    };
    let primary = Index {
        id: IndexId(16_385),
        name: "t_pkey".to_owned(),
        columns: vec![IndexColumn {
            column: 0,
            descending: false,
            nulls_first: false,
        }],
        unique: true,
        constraint: true,
        slot_columns: vec![0],
        predicate: None,
        included: Vec::new(),
        classes: Vec::new(),
        nulls_equal: false,
        building: false,
        deferral: catalog::Deferral::Never,
        of_key: false,
    };
    let table = Table {
        id: TableId(16_386),
        name: "t".to_owned(),
        changed: 1,
        columns: vec![
            column("id", Type::Int4, true),
            column("v", Type::Text, false),
        ],
        primary,
        primary_constraint: Some("t_pkey".to_owned()),
        secondary: vec![],
        partition: vec![0],
        replicated: false,
        checks: vec![],
        foreign_keys: vec![],
        referenced_by: vec![],
        frozen: false,
    };
    let database = Database {
        id: base::DatabaseId(16_384),
        name: "shop".to_owned(),
        protocol: catalog::ProtocolKind::TwoPhase,
        execution: catalog::Execution::Interleaved,
        tables: BTreeMap::from([("t".to_owned(), Arc::new(table))]),
        sequences: BTreeMap::new(),
        switching: None,
        comments: BTreeMap::new(),
        views: Default::default(),
        enums: Default::default(),
        stored: Default::default(),
        blocks: Vec::new(),
        schemas: [("public".into(), 2200)].into(),
        functions: Default::default(),
        domains: Default::default(),
        row_security: Default::default(),
        connection_limit: -1,
    };
    Catalog {
        version: 3,
        next_id: 16_400,
        reserved: Vec::new(),
        closing: None,
        open_blocks: 0,
        weighed: catalog::Weighed::default(),
        rights: Arc::default(),
        placement: Placement::new(NodeId(1).0, 1),
        databases: BTreeMap::from([("shop".to_owned(), Arc::new(database))]),
    }
}

#[test]
fn an_idle_session_is_small() {
    let bytes = size_of::<Session>();
    // The budget of an idle connection is 32 KiB in all (`an_idle_connection_is_small`).
    assert!(
        bytes <= 2048,
        "a session takes {bytes} bytes before what it allocates"
    );
}

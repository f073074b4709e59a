//! Golden scripts of a client's conversation, bytes in and bytes out (`testdata/conversation`): the
//! decoder, a whole shard, and the encoder, as the server joins them.
//!
//! ```text
//! [NAME:] startup NAME=VALUE...    a startup packet; NAME: which client, by default `c`
//! [NAME:] open NAME=VALUE...       the same, and its greeting is not shown
//! [NAME:] TAG BODY                 a message: its length is filled in; \0 \n \xHH stand for bytes
//! [NAME:] raw BYTES                bytes as they are
//! [NAME:] gone                     the client's socket is closed
//! split N                          from now on bytes arrive N at a time (0: as sent)
//! tick MILLIS                      time passes
//! disk off | disk on               nothing becomes durable | everything does
//! ```
//!
//! Answers are shown as `NAME< TAG BODY`, their length checked and left out.

#![allow(
    clippy::disallowed_methods,
    reason = "scripts are files, and a switch of the environment writes them again"
)]

use base::{NodeId, Position, ShardId, Time, Ts};
use catalog::Catalog;
use golden::Machine;
use node::{ConnId, Effects, Input, Shard, ShardConfig, ShardRecovered};
use std::cell::Cell;
use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use txn::JournalPort;
use wire::{ClientMessage, Decoder, Incoming, Reply, encode};

#[test]
fn golden_scripts() {
    let folder = Path::new("testdata/conversation");
    golden::run_folder(folder, World::new);
}

/// A journal that keeps only its length.
#[derive(Clone, Default)]
struct Journal {
    end: Rc<Cell<u64>>,
    durable: Rc<Cell<u64>>,
}

impl JournalPort for Journal {
    fn append(&mut self, payload: &[u8]) -> Position {
        self.end.set(self.end.get() + payload.len() as u64);
        Position(self.end.get())
    }
    fn durable(&self) -> Position {
        Position(self.durable.get())
    }
}

/// The server's end of a connection.
struct Client {
    name: String,
    conn: ConnId,
    decoder: Decoder,
    held: VecDeque<(Reply, Position)>,
    /// Whether the server has closed the connection.
    closed: bool,
}

struct World {
    shard: Shard,
    journal: Journal,
    disk_off: bool,
    now: Time,
    clients: BTreeMap<String, Client>,
    split: usize,
}

impl World {
    fn new() -> World {
        let journal = Journal::default();
        let now = Time(1_800_000_000_000_000);
        let config = ShardConfig {
            shard: ShardId::new(NodeId(1), 0),
            nodes: vec![(NodeId(1), "here".to_owned())],
            shards_per_node: 1,
            incarnation: 1,
            cluster: 7,
            seed: 7,
            stopwatch: || 0,
            barrier: node::barrier::let_through,
        };
        let recovered = ShardRecovered {
            store: store::Store::new(),
            catalog: Arc::new(Catalog::default()),
            clock_floor: Ts::ZERO,
            clock_bound: Ts::from_time(now.after(3_600_000_000)),
            tables: Default::default(),
            vote: None,
        };
        let mut shard = Shard::new(config, Box::new(journal.clone()), recovered);
        shard.bootstrap(
            catalog::Placement::new(1, 1),
            catalog::ProtocolKind::TwoPhase,
        );
        let mut world = World {
            shard,
            journal,
            disk_off: false,
            now,
            clients: BTreeMap::new(),
            split: 0,
        };
        world.step(Input::Tick);
        assert!(
            world.shard.is_accepting(),
            "a fresh shard makes its catalog"
        );
        world
    }

    /// One input with all that follows at once: ticks that are due, records that become durable.
    fn step(&mut self, input: Input) {
        let mut next = Some(input);
        while let Some(input) = next.take() {
            let mut effects = Effects::default();
            self.shard.step(self.now, input, &mut effects);
            for (conn, reply, wait) in effects.replies {
                let client = self.clients.values_mut().find(|client| client.conn == conn);
                client
                    .expect("replies go to clients")
                    .held
                    .push_back((reply, wait));
            }
            assert!(effects.messages.is_empty(), "there is no other shard");
            if !self.disk_off && self.journal.durable.get() < self.journal.end.get() {
                self.journal.durable.set(self.journal.end.get());
                next = Some(Input::Durable(self.journal.durable()));
            } else if let Some(mut rare) = effects.rare.take()
                && let Some(preparation) = rare.preparations.pop()
            {
                next = preparation
                    .run()
                    .map(|result| Input::Prepared(Box::new(result)));
            } else if self.shard.deadline().is_some_and(|at| at <= self.now) {
                next = Some(Input::Tick);
            }
        }
        self.shard.validate();
    }

    /// Describes what clients are sent.
    fn release(&mut self, trace: &mut String) {
        let durable = self.journal.durable();
        let mut drained = Vec::new();
        for client in self.clients.values_mut() {
            let mut bytes = Vec::new();
            while client
                .held
                .front()
                .is_some_and(|(_, wait)| *wait <= durable)
            {
                let (reply, _) = client.held.pop_front().expect("just seen");
                client.closed |= reply == Reply::Close;
                encode(&reply, &mut bytes);
            }
            show(&client.name, &bytes, trace);
            if !bytes.is_empty() {
                drained.push(client.conn);
            }
            if std::mem::take(&mut client.closed) {
                writeln!(trace, "{}< closed", client.name).expect("strings take everything");
            }
        }
        for conn in drained {
            self.step(Input::Drained { conn });
        }
    }

    fn client(&mut self, name: &str) -> &mut Client {
        if !self.clients.contains_key(name) {
            let conn = ConnId(self.clients.len() as u32 + 1);
            let client = Client {
                name: name.to_owned(),
                conn,
                decoder: Decoder::new(),
                held: VecDeque::new(),
                closed: false,
            };
            self.clients.insert(name.to_owned(), client);
            self.step(Input::Connect {
                conn,
                secret: 42,
                link: Box::default(),
            });
        }
        self.clients.get_mut(name).expect("just made")
    }

    /// Takes bytes from a client in pieces of the size that `split` says.
    fn receive(&mut self, name: &str, bytes: &[u8], trace: &mut String) {
        let size = if self.split == 0 {
            bytes.len().max(1)
        } else {
            self.split
        };
        for part in bytes.chunks(size) {
            self.client(name).decoder.push(part);
            while let Some(incoming) = self.client(name).decoder.next() {
                let conn = self.client(name).conn;
                match incoming {
                    Incoming::Message(message) => {
                        let next = self.client(name).decoder.next_tag();
                        let left = match next.is_some_and(|next| message.may_wait_for(next)) {
                            true => self.shard.queue(conn, message),
                            false => Some(message),
                        };
                        if let Some(message) = left {
                            self.step(Input::Client { conn, message });
                        }
                    }
                    Incoming::Refuse(bytes) => {
                        writeln!(trace, "{name}< raw {}", escaped(&bytes)).expect("always");
                    }
                    Incoming::Cancel { pid, secret } => self.step(Input::Cancel { pid, secret }),
                    Incoming::StartTls | Incoming::Password(_) => {
                        writeln!(trace, "{name}< for the host: {incoming:?}").expect("always");
                    }
                }
            }
        }
    }
}

/// Whole messages, one per line.
fn show(name: &str, mut bytes: &[u8], trace: &mut String) {
    while let [tag, rest @ ..] = bytes {
        let length = rest.first_chunk().map(|length| u32::from_be_bytes(*length));
        let length = length.expect("a message has a length") as usize;
        let (tag, body) = (char::from(*tag), escaped(&rest[4..length]));
        let line = format!("{name}< {tag} {body}");
        trace.push_str(line.trim_end());
        trace.push('\n');
        bytes = &rest[length..];
    }
}

fn escaped(bytes: &[u8]) -> String {
    let mut text = String::new();
    for byte in bytes {
        match byte {
            0 => text.push_str("\\0"),
            b'\n' => text.push_str("\\n"),
            b'\\' => text.push_str("\\\\"),
            b' '..=b'~' => text.push(char::from(*byte)),
            other => write!(text, "\\x{other:02x}").expect("strings take everything"),
        }
    }
    text
}

fn unescaped(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        let byte = match (byte, byte == b'\\') {
            (_, true) => match rest.next().expect("something is escaped") {
                b'0' => 0,
                b'n' => b'\n',
                b'x' => {
                    let digits = [rest.next(), rest.next()].map(|digit| digit.expect("\\xHH"));
                    let digits = std::str::from_utf8(&digits).expect("\\xHH");
                    u8::from_str_radix(digits, 16).expect("\\xHH")
                }
                other => other,
            },
            (byte, false) => byte,
        };
        bytes.push(byte);
    }
    bytes
}

/// A message with its length.
fn message(tag: &str, body: &[u8]) -> Vec<u8> {
    let [tag] = tag.as_bytes() else {
        panic!("a tag is one letter, not {tag:?}");
    };
    let length = (body.len() as u32 + 4).to_be_bytes();
    [&[*tag], length.as_slice(), body].concat()
}

fn startup(words: &str) -> Vec<u8> {
    let mut body = (3_u32 << 16).to_be_bytes().to_vec();
    for pair in words.split(' ') {
        let (name, value) = pair.split_once('=').expect("NAME=VALUE");
        for word in [name, value] {
            body.extend_from_slice(word.as_bytes());
            body.push(0);
        }
    }
    body.push(0);
    let length = (body.len() as u32 + 4).to_be_bytes();
    [length.as_slice(), &body].concat()
}

impl Machine for World {
    fn command(&mut self, line: &str, trace: &mut String) {
        let named = line.split_once(": ").filter(|(name, _)| name.len() <= 2);
        let (name, line) = named.unwrap_or(("c", line));
        let (verb, rest) = line.split_once(' ').unwrap_or((line, ""));
        match verb {
            "startup" => self.receive(name, &startup(rest), trace),
            "open" => {
                let mut greeting = String::new();
                self.receive(name, &startup(rest), &mut greeting);
                self.release(&mut greeting);
                assert!(greeting.ends_with(&format!("{name}< Z I\n")), "{greeting}");
            }
            "raw" => self.receive(name, &unescaped(rest), trace),
            "gone" => {
                let conn = self.client(name).conn;
                self.step(Input::Disconnected { conn });
                self.clients.remove(name);
            }
            "split" => self.split = rest.parse().expect("a number"),
            "tick" => {
                let millis: u64 = rest.parse().expect("milliseconds");
                self.now = self.now.after(millis * 1_000);
                self.step(Input::Tick);
            }
            "disk" => {
                self.disk_off = rest == "off";
                self.step(Input::Tick);
            }
            tag => self.receive(name, &message(tag, &unescaped(rest)), trace),
        }
        self.release(trace);
    }
}

/// Bytes from which the decoder makes each kind of client message.
#[test]
fn scripts_are_written_in_the_bytes_of_the_protocol() {
    let mut decoder = Decoder::new();
    decoder.push(&startup("user=ada database=shop"));
    decoder.push(&message("Q", &unescaped("select '\\xc3\\xa9'\\0")));
    let parameters = vec![
        ("user".to_owned(), "ada".to_owned()),
        ("database".to_owned(), "shop".to_owned()),
    ];
    let startup = ClientMessage::Startup { parameters };
    assert_eq!(decoder.next(), Some(Incoming::Message(startup)));
    let query = ClientMessage::Query("select 'é'".to_owned());
    assert_eq!(decoder.next(), Some(Incoming::Message(query)));
    assert_eq!(unescaped(&escaped(b"\0\n\\ \xff~")), b"\0\n\\ \xff~");
}

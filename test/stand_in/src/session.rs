//! One connection: rounds of the client, rewritten; answers of the server, counted.
//!
//! The client sends a round (up to Sync, or a query string) and waits for all of its answers, as
//! the benchmark's client does. So one thread serves a connection, one direction at a time.
//! Statements that the fault adds travel in the same round, and their answers are swallowed.

use crate::fault::{Block, Change, Does, Fault, Plant};
use crate::message::{Message, cut_text, params, push_body, read_body};
use std::collections::{BTreeMap, VecDeque};
use std::io::{self, BufReader, Write};
use std::net::TcpStream;

/// Answers above this many bytes are passed on before they are complete.
const PASS_BYTES: usize = 64 << 10;
/// What follows the names of a Bind without parameters.
const NO_PARAMS: [u8; 6] = [0; 6];
const NO_TYPES: [u8; 2] = [0; 2];
/// Codes of a first message: SSL and GSS are refused with one byte, CancelRequest is passed on.
const SSL: u32 = 80_877_103;
const GSS: u32 = 80_877_104;

/// What the answer of a statement becomes.
#[derive(Clone, Copy, Debug)]
enum Answer {
    Pass,
    /// The client has not sent this statement.
    Swallow,
    /// With this command tag.
    Tag(&'static str),
}

/// A statement that the client has prepared.
struct Prepared {
    sql: String,
    /// Of its parameters, as in Parse.
    types: Vec<u8>,
}

pub(crate) struct Session<'a> {
    plant: &'a Plant,
    client: BufReader<TcpStream>,
    server: BufReader<TcpStream>,
    prepared: BTreeMap<String, Prepared>,
    block: Block,
    /// Of the statements of the round, in order.
    answers: VecDeque<Answer>,
}

impl<'a> Session<'a> {
    pub(crate) fn new(plant: &'a Plant, client: TcpStream, server: TcpStream) -> Session<'a> {
        Session {
            plant,
            client: BufReader::new(client),
            server: BufReader::new(server),
            prepared: BTreeMap::new(),
            block: Block::default(),
            answers: VecDeque::new(),
        }
    }

    /// Serves until one of the two has closed its connection.
    pub(crate) fn serve(&mut self) -> io::Result<()> {
        self.start()?;
        loop {
            let round = self.round()?;
            // A snapshot that this round imports stays until it is answered.
            let _held = self.imports(&round).then(|| self.plant.replica.hold());
            let ends = round.last().map(|message| message.kind);
            let mut out = Vec::new();
            self.rewrite(round, &mut out);
            self.server.get_mut().write_all(&out)?;
            match ends {
                Some(b'X') => return Ok(()),
                Some(b'd' | b'H') => {}
                _ => self.relay()?,
            }
        }
    }

    /// The messages without a type, at the beginning.
    fn start(&mut self) -> io::Result<()> {
        loop {
            let body = read_body(&mut self.client)?;
            let code = body
                .first_chunk::<4>()
                .map(|code| u32::from_be_bytes(*code));
            if matches!(code, Some(SSL | GSS)) {
                self.client.get_mut().write_all(b"N")?;
                continue;
            }
            let mut out = Vec::new();
            push_body(&body, &mut out);
            self.server.get_mut().write_all(&out)?;
            return self.relay();
        }
    }

    /// What the client sends before it waits.
    fn round(&mut self) -> io::Result<Vec<Message>> {
        let mut round = Vec::new();
        loop {
            let message = Message::read(&mut self.client)?;
            let kind = message.kind;
            round.push(message);
            if !matches!(kind, b'P' | b'B' | b'E' | b'D' | b'C') {
                return Ok(round);
            }
        }
    }

    /// Whether a transaction of the round has to see the snapshot of the replica.
    fn imports(&self, round: &[Message]) -> bool {
        let begins = |sql: &str| Does::of(sql) == Does::Begin { is_read_only: true };
        let is_begin = |message: &Message| match message.kind {
            b'Q' => cut_text(&message.body).0.split("; ").any(begins),
            b'B' => {
                let (_, rest) = cut_text(&message.body);
                let prepared = self.prepared.get(cut_text(rest).0);
                prepared.is_some_and(|prepared| begins(&prepared.sql))
            }
            _ => false,
        };
        self.plant.fault == Fault::StaleReplica && round.iter().any(is_begin)
    }

    fn rewrite(&mut self, round: Vec<Message>, out: &mut Vec<u8>) {
        self.answers.clear();
        let mut bound = None;
        for message in round {
            match (message.kind, bound.take()) {
                (b'P', _) => self.prepare(&message).push(out),
                (b'B', _) => bound = Some(message),
                (b'E', Some(bind)) => self.execute(&bind, &message, out),
                (b'Q', _) => self.query(&message).push(out),
                (_, None) => message.push(out),
                (_, Some(bind)) => {
                    bind.push(out);
                    message.push(out);
                }
            }
        }
    }

    fn prepare(&mut self, parse: &Message) -> Message {
        let (name, rest) = cut_text(&parse.body);
        let (sql, types) = cut_text(rest);
        let prepared = Prepared {
            sql: sql.to_owned(),
            types: types.to_vec(),
        };
        let mut body = name.as_bytes().to_vec();
        body.push(0);
        body.extend_from_slice(self.plant.text(sql).as_bytes());
        body.push(0);
        body.extend_from_slice(types);
        self.prepared.insert(name.to_owned(), prepared);
        Message::new(b'P', body)
    }

    /// Bind and Execute of a statement, with what the fault makes of it.
    fn execute(&mut self, bind: &Message, execute: &Message, out: &mut Vec<u8>) {
        let (_, rest) = cut_text(&bind.body);
        let (name, rest) = cut_text(rest);
        let Some(prepared) = self.prepared.get(name) else {
            bind.push(out);
            execute.push(out);
            return self.answers.push_back(Answer::Pass);
        };
        let given = params(rest).unwrap_or_default();
        let change = self.plant.change(&prepared.sql, &given, &mut self.block);
        let (before, after) = match change {
            Change::Keep => (Vec::new(), Vec::new()),
            Change::Before(others) => (others, Vec::new()),
            // It was prepared with that text.
            Change::As(_, others) => (Vec::new(), others),
            Change::Instead(sql, tag) => {
                push_statement(&sql, &prepared.types, rest, out);
                return self.answers.push_back(Answer::Tag(tag));
            }
        };
        for sql in before {
            push_statement(&sql, &NO_TYPES, &NO_PARAMS, out);
            self.answers.push_back(Answer::Swallow);
        }
        bind.push(out);
        execute.push(out);
        self.answers.push_back(Answer::Pass);
        for sql in after {
            push_statement(&sql, &NO_TYPES, &NO_PARAMS, out);
            self.answers.push_back(Answer::Swallow);
        }
    }

    /// The statements of a query string. The benchmark parts them with `; `, and no text of its
    /// own holds these two characters.
    fn query(&mut self, query: &Message) -> Message {
        let mut statements: Vec<String> = Vec::new();
        let mut push = |sql: String, answer: Answer| {
            statements.push(sql);
            self.answers.push_back(answer);
        };
        for sql in cut_text(&query.body).0.split("; ") {
            let text = self.plant.text(sql);
            let (before, (text, answer), after) = match self.plant.change(sql, &[], &mut self.block)
            {
                Change::Keep => (Vec::new(), (text, Answer::Pass), Vec::new()),
                Change::Before(others) => (others, (text, Answer::Pass), Vec::new()),
                Change::As(text, others) => (Vec::new(), (text, Answer::Pass), others),
                Change::Instead(text, tag) => (Vec::new(), (text, Answer::Tag(tag)), Vec::new()),
            };
            before
                .into_iter()
                .for_each(|sql| push(sql, Answer::Swallow));
            push(text, answer);
            after.into_iter().for_each(|sql| push(sql, Answer::Swallow));
        }
        Message::query(&statements.join("; "))
    }

    /// Passes answers on until the client has something to say.
    fn relay(&mut self) -> io::Result<()> {
        let mut out = Vec::new();
        loop {
            let message = Message::read(&mut self.server)?;
            let is_over = match message.kind {
                b'Z' => {
                    if message.body == b"I" {
                        self.block = Block::default();
                    }
                    true
                }
                b'G' => true,
                // Login: 0 is success, 12 the last step of SCRAM; all others want an answer.
                b'R' => !matches!(message.body.first_chunk(), Some([0, 0, 0, 0 | 12])),
                _ => false,
            };
            if let Some(message) = self.answer(message) {
                message.push(&mut out);
            }
            if is_over || out.len() > PASS_BYTES {
                self.client.get_mut().write_all(&out)?;
                out.clear();
            }
            if is_over {
                return Ok(());
            }
        }
    }

    /// What the client sees of an answer.
    fn answer(&mut self, message: Message) -> Option<Message> {
        let front = self.answers.front().copied().unwrap_or(Answer::Pass);
        match message.kind {
            b'C' | b'I' => {
                self.answers.pop_front();
                match front {
                    Answer::Pass => Some(message),
                    Answer::Swallow => None,
                    Answer::Tag(tag) => Some(Message::complete(tag)),
                }
            }
            // Whatever comes behind it is not answered.
            b'E' => {
                self.answers.clear();
                Some(message)
            }
            b'1' | b'2' => match front {
                Answer::Pass => Some(message),
                Answer::Tag(_) if message.kind == b'2' => Some(message),
                Answer::Swallow | Answer::Tag(_) => None,
            },
            _ => Some(message),
        }
    }
}

/// Parse, Bind and Execute without names.
fn push_statement(sql: &str, types: &[u8], params: &[u8], out: &mut Vec<u8>) {
    Message::parse(sql, types).push(out);
    Message::bind(params).push(out);
    Message::execute().push(out);
}

//! A connection to a PostgreSQL server by the simple protocol, without blocking.

use isolation::Answer;
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// An answer must be there by then if nothing blocks it.
const ANSWER_LIMIT: Duration = Duration::from_secs(20);
/// Pause between looks at a socket.
const LOOK: Duration = Duration::from_micros(50);

/// A connection with at most one question under way.
pub(crate) struct Wire {
    stream: TcpStream,
    address: String,
    buffer: Vec<u8>,
    rows: Option<Vec<Vec<String>>>,
    /// The answer so far; complete at ReadyForQuery.
    answer: Option<Answer>,
    pub(crate) pid: i32,
    secret: i32,
}

impl Wire {
    /// Connects and waits for the greeting. The server must not ask for a password.
    pub(crate) fn connect(address: &str, database: &str) -> io::Result<Wire> {
        let mut stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        let mut body = 196_608_i32.to_be_bytes().to_vec();
        for word in ["user", "postgres", "database", database] {
            body.extend_from_slice(word.as_bytes());
            body.push(0);
        }
        body.push(0);
        stream.write_all(&(body.len() as i32 + 4).to_be_bytes())?;
        stream.write_all(&body)?;
        stream.set_nonblocking(true)?;
        let mut wire = Wire {
            stream,
            address: address.to_owned(),
            buffer: Vec::new(),
            rows: None,
            answer: None,
            pid: 0,
            secret: 0,
        };
        match wire.wait()? {
            Answer::Error(state) => Err(io::Error::other(format!("refused with {state}"))),
            _ => Ok(wire),
        }
    }

    /// Sends a question. The former one has been answered.
    pub(crate) fn send(&mut self, sql: &str) -> io::Result<()> {
        let mut message = vec![b'Q'];
        message.extend_from_slice(&(sql.len() as i32 + 5).to_be_bytes());
        message.extend_from_slice(sql.as_bytes());
        message.push(0);
        self.stream.write_all(&message)
    }

    /// Sends a question and waits for the answer.
    pub(crate) fn ask(&mut self, sql: &str) -> io::Result<Answer> {
        self.send(sql)?;
        self.wait()
    }

    fn wait(&mut self) -> io::Result<Answer> {
        let deadline = Instant::now() + ANSWER_LIMIT;
        loop {
            if let Some(answer) = self.look()? {
                return Ok(answer);
            }
            if Instant::now() > deadline {
                return Err(ErrorKind::TimedOut.into());
            }
            std::thread::sleep(LOOK);
        }
    }

    /// The answer if it is there.
    pub(crate) fn look(&mut self) -> io::Result<Option<Answer>> {
        let mut bytes = [0; 8192];
        loop {
            match self.stream.read(&mut bytes) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(count) => self.buffer.extend_from_slice(&bytes[..count]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        while let Some((tag, body)) = self.message() {
            if tag == b'Z' {
                let answer = self.answer.take().unwrap_or(Answer::Word(String::new()));
                return Ok(Some(answer));
            }
            self.take(tag, &body);
        }
        Ok(None)
    }

    fn message(&mut self) -> Option<(u8, Vec<u8>)> {
        let length = self.buffer.get(1..5)?;
        let length = i32::from_be_bytes(length.try_into().expect("four bytes")) as usize;
        let body = self.buffer.get(5..length + 1)?.to_vec();
        let tag = self.buffer[0];
        self.buffer.drain(..=length);
        Some((tag, body))
    }

    fn take(&mut self, tag: u8, body: &[u8]) {
        match tag {
            b'K' => {
                self.pid = int4(body, 0);
                self.secret = int4(body, 4);
            }
            b'T' => self.rows = Some(Vec::new()),
            b'D' => self.rows.get_or_insert_default().push(cells(body)),
            b'C' => {
                let tag = text(body);
                let answer = match self.rows.take() {
                    Some(rows) => Answer::rows(rows),
                    None => Answer::tag(&tag),
                };
                // An error is the answer whatever else was said.
                self.answer = match self.answer.take() {
                    Some(error @ Answer::Error(_)) => Some(error),
                    _ => Some(answer),
                };
            }
            b'E' => {
                self.rows = None;
                let fields = body.split(|byte| *byte == 0);
                let state = fields.filter_map(|field| field.strip_prefix(b"C")).next();
                self.answer = Some(Answer::Error(text(state.unwrap_or_default())));
            }
            _ => {}
        }
    }

    /// Asks the server, by another connection, to cancel what runs here.
    pub(crate) fn cancel(&self) -> io::Result<()> {
        let mut stream = TcpStream::connect(&self.address)?;
        for number in [16, 80_877_102, self.pid, self.secret] {
            stream.write_all(&number.to_be_bytes())?;
        }
        // The server closes it when the request has been taken.
        stream.read_to_end(&mut Vec::new()).map(|_| ())
    }
}

fn int4(body: &[u8], at: usize) -> i32 {
    let bytes = body.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
    bytes.map_or(0, i32::from_be_bytes)
}

fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0);
    String::from_utf8_lossy(&bytes[..end.unwrap_or(bytes.len())]).into_owned()
}

/// The cells of a DataRow.
fn cells(body: &[u8]) -> Vec<String> {
    let mut cells = Vec::new();
    let mut at = 2;
    while at + 4 <= body.len() {
        let length = int4(body, at);
        at += 4;
        if length < 0 {
            cells.push("null".to_owned());
            continue;
        }
        let end = (at + length as usize).min(body.len());
        cells.push(String::from_utf8_lossy(&body[at..end]).into_owned());
        at = end;
    }
    cells
}

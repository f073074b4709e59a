//! A client of the protocol of MySQL and MariaDB: prepared statements, queries with streamed rows,
//! LOAD DATA in.
//!
//! The protocol has no rounds: each statement is sent when the one before it is answered, so that a
//! statement after one that failed is never run. Statements are written as for PostgreSQL, with
//! `$1` for a parameter; their other words are the workload's dialect.
//!
//! | MySQL | here |
//! |---|---|
//! | 1213, a deadlock; a write set that Galera refuses at COMMIT | 40001, as the server says |
//! | 1205, a wait for a lock that was too long | 55P03; the transaction stays open |
//! | an error within a transaction | the transaction stays open: who gets it rolls back |
//! | UPDATE | counts the rows that it finds, not those that it changes |

use crate::answers::{Answers, ServerError};
use crate::link::{LinkError, ParamType, Prepared, Status, reach, ready};
use crate::stream::Stream;
use crate::url::{Endpoint, Target};
use mysql_common::auth::plugins::{AuthProc, ChallengeResponsePlugin, Context};
use mysql_common::constants::{CapabilityFlags as Can, ColumnType, StatusFlags};
use mysql_common::io::ParseBuf;
use mysql_common::packets::{
    AuthMoreData, AuthPlugin, AuthSwitchRequest, Column, CommonOkPacket, ErrPacket,
    HandshakePacket, HandshakeResponse, OkPacketDeserializer, StmtPacket,
};
use mysql_common::proto::{Binary, MyDeserialize, MySerialize, Text};
use mysql_common::row::RowDeserializer;
use mysql_common::value::{ServerSide, Value};
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;
use workload::wire::Round;

/// Bytes of a part of the rows of LOAD DATA.
const PART_BYTES: usize = 64 << 10;
/// The largest packet that either side may send.
const PACKET_BYTES_MAX: u32 = 1 << 30;
/// The most bytes of a part of a packet: what follows is part of the same.
const PART_BYTES_MAX: usize = 0xff_ffff;
/// What this client asks of a server.
const WANTED: [Can; 8] = [
    Can::CLIENT_PROTOCOL_41,
    Can::CLIENT_SECURE_CONNECTION,
    Can::CLIENT_PLUGIN_AUTH,
    Can::CLIENT_PLUGIN_AUTH_LENENC_CLIENT_DATA,
    Can::CLIENT_TRANSACTIONS,
    Can::CLIENT_FOUND_ROWS,
    Can::CLIENT_LOCAL_FILES,
    Can::CLIENT_MULTI_RESULTS,
];

/// First bytes of packets.
const OK: u8 = 0x00;
const MORE_DATA: u8 = 0x01;
const LOCAL_FILE: u8 = 0xfb;
const END: u8 = 0xfe;
const ERR: u8 = 0xff;

/// Commands.
const QUIT: u8 = 0x01;
const QUERY: u8 = 0x03;
const PREPARE: u8 = 0x16;
const EXECUTE: u8 = 0x17;

/// A prepared statement.
#[derive(Debug)]
struct Statement {
    /// The server's number of it.
    id: u32,
    /// What it is called in its answer, such as `UPDATE`.
    verb: &'static str,
    /// The parameter of each place, from 0: a parameter may stand at several.
    places: Vec<u16>,
    types: Vec<ParamType>,
}

/// One connection to a server that speaks the protocol of MySQL.
#[derive(Debug)]
pub struct MySql {
    pub(crate) stream: Stream,
    /// The number of the next packet, counted within a command.
    next: u8,
    /// The last packet that came.
    packet: Vec<u8>,
    /// The packet that is to be sent.
    out: Vec<u8>,
    /// A row's cells, before they are answers.
    cells: Vec<Option<Vec<u8>>>,
    statements: Vec<Statement>,
    status: Status,
    /// The version that the server reported at the start.
    pub server_version: String,
}

/// The password, for what the server's method of authentication makes of it.
struct Secret<'a> {
    password: &'a [u8],
    nonce: &'a [u8],
}

impl Context for Secret<'_> {
    fn pass(&self) -> &[u8] {
        self.password
    }

    fn is_ipc_transport(&self) -> bool {
        false
    }

    fn is_tls_transport(&self) -> bool {
        false
    }

    fn scramble(&self) -> &[u8] {
        self.nonce
    }

    fn server_key_pem(&self) -> Option<&[u8]> {
        None
    }
}

impl MySql {
    /// Connects and logs in. `timeout` bounds every later wait for the server; `None` waits for
    /// ever.
    pub fn connect(
        endpoint: &Endpoint,
        target: &Target,
        timeout: Option<Duration>,
    ) -> Result<MySql, LinkError> {
        let mut link = MySql {
            stream: reach(endpoint, timeout)?,
            next: 0,
            packet: Vec::new(),
            out: Vec::new(),
            cells: Vec::new(),
            statements: Vec::new(),
            status: Status::Idle,
            server_version: String::new(),
        };
        ready(link.log_in(target))?;
        // The login itself never waits for ever, even where later waits may.
        link.stream.set_timeout(timeout)?;
        Ok(link)
    }

    async fn log_in(&mut self, target: &Target) -> Result<(), LinkError> {
        self.receive().await?;
        if self.packet.first() == Some(&ERR) {
            return Err(LinkError::Server(self.server_error()?));
        }
        let packet = std::mem::take(&mut self.packet);
        let hello: HandshakePacket<'_> = read(&packet, ())?;
        self.server_version = hello.server_version_str().into_owned();
        let mut can = Can::empty();
        for wanted in WANTED {
            if !hello.capabilities().contains(wanted) {
                let text = "the server is older than MySQL 5.7 and MariaDB 10.2";
                return Err(LinkError::Protocol(text));
            }
            can |= wanted;
        }
        let known = hello.auth_plugin().filter(|plugin| plugin.init().is_ok());
        let plugin = known.unwrap_or(AuthPlugin::MysqlNativePassword);
        let password = target.password.as_deref().unwrap_or("").as_bytes();
        let nonce = hello.nonce();
        let nonce = nonce.strip_suffix(&[0]).unwrap_or(&nonce);
        let mut method = method_of(&plugin)?;
        let first = method
            .run(Secret { password, nonce }, nonce)
            .map_err(unfit)?;
        let database = target.database.as_bytes();
        let answer = HandshakeResponse::new(
            first.data(),
            hello.server_version_parsed().unwrap_or((5, 7, 0)),
            Some(target.user.as_bytes()),
            (!database.is_empty()).then_some(database),
            Some(plugin.into_owned()),
            can,
            None,
            PACKET_BYTES_MAX,
        );
        self.out.clear();
        answer.serialize(&mut self.out);
        self.send().await?;
        let nonce = nonce.to_vec();
        self.authenticate(method, password, nonce).await
    }

    /// Goes on until the server is content.
    async fn authenticate(
        &mut self,
        mut method: AuthProc,
        password: &[u8],
        mut nonce: Vec<u8>,
    ) -> Result<(), LinkError> {
        loop {
            self.receive().await?;
            let packet = std::mem::take(&mut self.packet);
            let challenge = match packet.first() {
                Some(&OK) => {
                    self.note_ok(&packet)?;
                    return Ok(());
                }
                Some(&ERR) => return Err(LinkError::Server(error_of(&packet)?)),
                Some(&END) => {
                    let switch: AuthSwitchRequest<'_> = read(&packet, ())?;
                    method = method_of(&switch.auth_plugin())?;
                    nonce = switch.plugin_data().to_vec();
                    nonce.clone()
                }
                Some(&MORE_DATA) => {
                    let more: AuthMoreData<'_> = read(&packet, ())?;
                    more.data().to_vec()
                }
                _ => return Err(LinkError::Protocol("login")),
            };
            let secret = Secret {
                password,
                nonce: &nonce,
            };
            let said = method.run(secret, &challenge).map_err(unfit)?;
            if let Some(data) = said.data() {
                self.out.clear();
                self.out.extend_from_slice(data);
                self.send().await?;
            }
        }
    }

    /// The transaction status after the last statement.
    pub fn status(&self) -> Status {
        self.status
    }

    /// Prepares statements.
    pub(crate) async fn prepare(
        &mut self,
        statements: &[(&str, &[ParamType])],
    ) -> Result<Vec<Prepared>, LinkError> {
        let mut prepared = Vec::with_capacity(statements.len());
        for (sql, types) in statements {
            let (sql, places) = with_question_marks(sql);
            self.command(PREPARE, sql.as_bytes()).await?;
            self.receive().await?;
            if self.packet.first() == Some(&ERR) {
                return Err(LinkError::Server(self.server_error()?));
            }
            let answer: StmtPacket = read(&self.packet, ())?;
            if usize::from(answer.num_params()) != places.len() {
                return Err(LinkError::Protocol("number of parameters"));
            }
            for list in [answer.num_params(), answer.num_columns()] {
                self.skip_list(list).await?;
            }
            prepared.push(Prepared {
                number: self.statements.len() as u32,
                params: types.len() as u16,
            });
            self.statements.push(Statement {
                id: answer.statement_id(),
                verb: verb_of(&sql),
                places,
                types: types.to_vec(),
            });
        }
        Ok(prepared)
    }

    /// Skips descriptions up to their end; there is no end of none.
    async fn skip_list(&mut self, count: u16) -> Result<(), LinkError> {
        if count > 0 {
            for _ in 0..=count {
                self.receive().await?;
            }
        }
        Ok(())
    }

    /// Runs the statements of a round one after the other, up to the first that fails: its error
    /// is in `answers`. Leaves `round` empty.
    pub(crate) async fn round(
        &mut self,
        round: &mut Round,
        answers: &mut Answers,
    ) -> Result<(), LinkError> {
        answers.clear();
        for bound in round.bound() {
            let statement = &self.statements[bound.statement.number as usize];
            self.out.clear();
            self.out.push(EXECUTE);
            push_execute(statement, &round.params(bound), &mut self.out)?;
            let verb = statement.verb;
            self.start().await?;
            self.take_results::<Binary>(verb, answers).await?;
            if answers.error.is_some() {
                break;
            }
        }
        round.clear();
        Ok(())
    }

    /// Runs one statement. Its error is in `answers`.
    pub(crate) async fn simple_query(
        &mut self,
        sql: &str,
        answers: &mut Answers,
    ) -> Result<(), LinkError> {
        answers.clear();
        self.command(QUERY, sql.as_bytes()).await?;
        self.take_results::<Text>(verb_of(sql), answers).await
    }

    /// Runs a query and hands over each row as it comes: memory of one row.
    pub(crate) async fn query_each(
        &mut self,
        sql: &str,
        mut each: impl FnMut(&Answers),
    ) -> Result<(), LinkError> {
        self.command(QUERY, sql.as_bytes()).await?;
        let mut answers = Answers::new();
        let mut each = |answers: &mut Answers| {
            answers.finish_statement(b"");
            each(answers);
            answers.clear();
        };
        let result = self.take_result::<Text>(&mut answers, &mut each).await?;
        match result {
            Ended::Failed(error) => Err(LinkError::Server(error)),
            Ended::Rows { .. } | Ended::Done { .. } => Ok(()),
        }
    }

    /// Loads rows in the text format of COPY: `COPY t (a, b) FROM STDIN` becomes LOAD DATA, whose
    /// format is the same. Returns the number of rows.
    ///
    /// # Errors
    /// As for other statements, and if the server changed or left out a row, which it only warns
    /// of.
    pub(crate) async fn copy_in(&mut self, sql: &str, rows: &[u8]) -> Result<u64, LinkError> {
        let into = sql.strip_prefix("COPY ");
        let into = into.and_then(|rest| rest.strip_suffix(" FROM STDIN"));
        let into = into.ok_or(LinkError::Protocol("a COPY that is no LOAD DATA"))?;
        let (table, columns) = into.split_once(' ').unwrap_or((into, ""));
        let load = format!(
            "LOAD DATA LOCAL INFILE 'rows' INTO TABLE {table} CHARACTER SET utf8mb4 {columns}"
        );
        self.command(QUERY, load.as_bytes()).await?;
        self.receive().await?;
        match self.packet.first() {
            Some(&LOCAL_FILE) => {}
            Some(&ERR) => return Err(LinkError::Server(self.server_error()?)),
            _ => return Err(LinkError::Protocol("LOAD DATA")),
        }
        for part in rows.chunks(PART_BYTES).chain([&[][..]]) {
            self.out.clear();
            self.out.extend_from_slice(part);
            self.send().await?;
        }
        self.receive().await?;
        if self.packet.first() == Some(&ERR) {
            return Err(LinkError::Server(self.server_error()?));
        }
        let packet = std::mem::take(&mut self.packet);
        let (loaded, warnings) = self.note_ok(&packet)?;
        if warnings == 0 {
            return Ok(loaded);
        }
        let mut answers = Answers::new();
        self.simple_query("SHOW WARNINGS LIMIT 1", &mut answers)
            .await?;
        Err(LinkError::Server(ServerError {
            sqlstate: String::from("22000"),
            message: format!(
                "{warnings} rows or values were changed or left out, the first one: {}",
                answers.text(0, 0, 2)
            ),
        }))
    }

    /// Says goodbye. An error is of no interest: the connection ends either way.
    pub fn close(mut self) {
        let _ = ready(self.command(QUIT, &[]));
    }

    async fn command(&mut self, command: u8, body: &[u8]) -> Result<(), LinkError> {
        self.out.clear();
        self.out.push(command);
        self.out.extend_from_slice(body);
        self.start().await
    }

    /// Sends `out` as the first packet of a command.
    async fn start(&mut self) -> Result<(), LinkError> {
        self.next = 0;
        self.send().await
    }

    /// Sends `out`, in parts if it is too large for a packet. A part that is not full is the last.
    async fn send(&mut self) -> Result<(), LinkError> {
        let mut rest = self.out.as_slice();
        loop {
            let (part, after) = rest.split_at(rest.len().min(PART_BYTES_MAX));
            let head = (part.len() as u32).to_le_bytes();
            let out = &mut self.stream.out;
            out.extend_from_slice(&[head[0], head[1], head[2], self.next]);
            out.extend_from_slice(part);
            self.next = self.next.wrapping_add(1);
            rest = after;
            if part.len() < PART_BYTES_MAX {
                return self.stream.flush().await;
            }
        }
    }

    /// Waits for the next packet.
    async fn receive(&mut self) -> Result<(), LinkError> {
        self.packet.clear();
        loop {
            self.stream.fill(4).await?;
            let head = self.stream.unread();
            let length = u32::from_le_bytes([head[0], head[1], head[2], 0]) as usize;
            if head[3] != self.next {
                return Err(LinkError::Protocol("packets are out of step"));
            }
            self.next = self.next.wrapping_add(1);
            self.stream.fill(4 + length).await?;
            let (start, end) = self.stream.take(4 + length);
            self.packet
                .extend_from_slice(self.stream.bytes((start + 4, end)));
            if length < PART_BYTES_MAX {
                return Ok(());
            }
            if self.packet.len() > PACKET_BYTES_MAX as usize {
                return Err(LinkError::Protocol("a packet is too large"));
            }
        }
    }

    fn server_error(&self) -> Result<ServerError, LinkError> {
        error_of(&self.packet)
    }

    fn note_status(&mut self, flags: StatusFlags) {
        self.status = match flags.contains(StatusFlags::SERVER_STATUS_IN_TRANS) {
            true => Status::Open,
            false => Status::Idle,
        };
    }

    /// Reads an OK packet: rows and warnings.
    fn note_ok(&mut self, packet: &[u8]) -> Result<(u64, u16), LinkError> {
        let ok: OkPacketDeserializer<'_, CommonOkPacket> = read(packet, Can::CLIENT_PROTOCOL_41)?;
        let ok = ok.into_inner();
        self.note_status(ok.status_flags());
        Ok((ok.affected_rows(), ok.warnings()))
    }

    /// The results of a statement: one, but of a procedure several.
    async fn take_results<P>(
        &mut self,
        verb: &'static str,
        answers: &mut Answers,
    ) -> Result<(), LinkError>
    where
        for<'a> RowDeserializer<ServerSide, P>: MyDeserialize<'a, Ctx = Arc<[Column]>>,
    {
        loop {
            let (more, tag) = match self.take_result::<P>(answers, &mut |_| {}).await? {
                Ended::Failed(error) => {
                    answers.error = Some(error);
                    return Ok(());
                }
                Ended::Rows { rows, more } => (more, format!("{verb} {rows}")),
                Ended::Done { rows, more } => match verb {
                    "BEGIN" | "COMMIT" | "ROLLBACK" | "" => (more, verb.to_owned()),
                    _ => (more, format!("{verb} {rows}")),
                },
            };
            answers.finish_statement(tag.as_bytes());
            if !more {
                return Ok(());
            }
        }
    }

    /// One result; `each` sees the answers after every row.
    async fn take_result<P>(
        &mut self,
        answers: &mut Answers,
        each: &mut dyn FnMut(&mut Answers),
    ) -> Result<Ended, LinkError>
    where
        for<'a> RowDeserializer<ServerSide, P>: MyDeserialize<'a, Ctx = Arc<[Column]>>,
    {
        self.receive().await?;
        let count = match self.packet.first() {
            Some(&ERR) => return Ok(Ended::Failed(self.server_error()?)),
            Some(&OK) => {
                let packet = std::mem::take(&mut self.packet);
                let ok: OkPacketDeserializer<'_, CommonOkPacket> =
                    read(&packet, Can::CLIENT_PROTOCOL_41)?;
                let ok = ok.into_inner();
                self.note_status(ok.status_flags());
                return Ok(Ended::Done {
                    rows: ok.affected_rows(),
                    more: is_more(ok.status_flags()),
                });
            }
            Some(&LOCAL_FILE) | None => return Err(LinkError::Protocol("a result")),
            Some(_) => ParseBuf(&self.packet).checked_eat_lenenc_int(),
        };
        let count = count.ok_or(LinkError::Protocol("number of columns"))?;
        let mut columns = Vec::new();
        for _ in 0..count {
            self.receive().await?;
            columns.push(read::<Column>(&self.packet, ())?);
        }
        self.receive().await?;
        let columns: Arc<[Column]> = columns.into();
        let mut rows = 0;
        loop {
            self.receive().await?;
            match self.packet.first() {
                Some(&ERR) => return Ok(Ended::Failed(self.server_error()?)),
                Some(&END) if self.packet.len() < 9 => {
                    let flags: [u8; 2] = self
                        .packet
                        .get(3..5)
                        .and_then(|it| it.try_into().ok())
                        .ok_or(LinkError::Protocol("end of rows"))?;
                    let flags = StatusFlags::from_bits_truncate(u16::from_le_bytes(flags));
                    self.note_status(flags);
                    let more = is_more(flags);
                    return Ok(Ended::Rows { rows, more });
                }
                _ => {}
            }
            let row: RowDeserializer<ServerSide, P> = read(&self.packet, columns.clone())?;
            let values = row.into_inner().unwrap();
            self.cells.clear();
            self.cells.extend(values.into_iter().map(text_of));
            answers.push_cells(self.cells.iter().map(Option::as_deref));
            rows += 1;
            each(answers);
        }
    }
}

/// How a result ended, and whether another one follows.
enum Ended {
    Rows { rows: u64, more: bool },
    Done { rows: u64, more: bool },
    Failed(ServerError),
}

fn is_more(flags: StatusFlags) -> bool {
    flags.contains(StatusFlags::SERVER_MORE_RESULTS_EXISTS)
}

fn read<'a, T: MyDeserialize<'a>>(packet: &'a [u8], context: T::Ctx) -> Result<T, LinkError> {
    let parsed = ParseBuf(packet).parse(context);
    parsed.map_err(|_| LinkError::Protocol("a packet that does not decode"))
}

fn method_of(plugin: &AuthPlugin<'_>) -> Result<AuthProc, LinkError> {
    // The password would travel as it is.
    if matches!(plugin, AuthPlugin::MysqlClearPassword) {
        return Err(LinkError::Protocol(
            "it asks for the password in clear text",
        ));
    }
    let method = plugin.init();
    method.map_err(|_| LinkError::Protocol("an authentication that this client does not know"))
}

fn unfit(_: mysql_common::auth::plugins::Error) -> LinkError {
    LinkError::Protocol("an authentication that this client cannot do")
}

/// Reads an error packet.
fn error_of(packet: &[u8]) -> Result<ServerError, LinkError> {
    let error: ErrPacket<'_> = read(packet, Can::CLIENT_PROTOCOL_41)?;
    if !error.is_error() {
        return Err(LinkError::Protocol("a report of progress"));
    }
    let error = error.server_error();
    let state = error
        .sql_state_ref()
        .map(|state| state.as_str().into_owned());
    let sqlstate = match error.error_code() {
        1205 => String::from("55P03"),
        _ => state.unwrap_or_default(),
    };
    Ok(ServerError {
        sqlstate,
        message: format!("{} (error {})", error.message_str(), error.error_code()),
    })
}

/// The statement with a question mark for each `$n`, and which parameter each stands for.
fn with_question_marks(sql: &str) -> (String, Vec<u16>) {
    let mut out = String::with_capacity(sql.len());
    let mut places = Vec::new();
    let mut rest = sql;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let number: u16 = rest[..digits].parse().expect("a dollar begins a parameter");
        rest = &rest[digits..];
        out.push('?');
        places.push(number - 1);
    }
    out.push_str(rest);
    (out, places)
}

/// The word by which PostgreSQL answers such a statement; empty: another one.
fn verb_of(sql: &str) -> &'static str {
    let word = sql.trim_start().split([' ', ';', '(']).next().unwrap_or("");
    let known = [
        "SELECT", "INSERT", "UPDATE", "DELETE", "BEGIN", "COMMIT", "ROLLBACK",
    ];
    let mut known = known.into_iter();
    match word.eq_ignore_ascii_case("START") {
        true => "BEGIN",
        false => known
            .find(|verb| word.eq_ignore_ascii_case(verb))
            .unwrap_or(""),
    }
}

/// The body of an execution behind its command.
fn push_execute(
    statement: &Statement,
    params: &[Option<&[u8]>],
    out: &mut Vec<u8>,
) -> Result<(), LinkError> {
    out.extend_from_slice(&statement.id.to_le_bytes());
    // No cursor, once.
    out.extend_from_slice(&[0, 1, 0, 0, 0]);
    let count = statement.places.len();
    if count == 0 {
        return Ok(());
    }
    let nulls = out.len();
    out.resize(nulls + count.div_ceil(8), 0);
    out.push(1);
    for place in &statement.places {
        let kind = match statement.types[usize::from(*place)] {
            ParamType::Int | ParamType::BigInt => ColumnType::MYSQL_TYPE_LONGLONG,
            ParamType::Numeric => ColumnType::MYSQL_TYPE_NEWDECIMAL,
            ParamType::Text | ParamType::Timestamp => ColumnType::MYSQL_TYPE_VAR_STRING,
        };
        out.extend_from_slice(&[kind as u8, 0]);
    }
    for (at, place) in statement.places.iter().enumerate() {
        let place = usize::from(*place);
        let Some(text) = params[place] else {
            out[nulls + at / 8] |= 1 << (at % 8);
            continue;
        };
        match statement.types[place] {
            ParamType::Int | ParamType::BigInt => {
                let number = std::str::from_utf8(text)
                    .ok()
                    .and_then(|it| it.parse().ok());
                let number: i64 = number.ok_or(LinkError::Protocol("a parameter is no number"))?;
                out.extend_from_slice(&number.to_le_bytes());
            }
            ParamType::Numeric | ParamType::Text | ParamType::Timestamp => {
                push_length(text.len(), out);
                out.extend_from_slice(text);
            }
        }
    }
    Ok(())
}

/// A length in front of its bytes.
fn push_length(length: usize, out: &mut Vec<u8>) {
    let bytes = (length as u64).to_le_bytes();
    match length {
        0..=250 => out.push(bytes[0]),
        251..=0xffff => {
            out.push(0xfc);
            out.extend_from_slice(&bytes[..2]);
        }
        0x1_0000..=0xff_ffff => {
            out.push(0xfd);
            out.extend_from_slice(&bytes[..3]);
        }
        _ => {
            out.push(0xfe);
            out.extend_from_slice(&bytes);
        }
    }
}

/// A value as PostgreSQL writes it; `None`: NULL.
fn text_of(value: Value) -> Option<Vec<u8>> {
    let mut text = String::new();
    let written = match value {
        Value::NULL => return None,
        Value::Bytes(bytes) => return Some(bytes),
        Value::Int(number) => write!(text, "{number}"),
        Value::UInt(number) => write!(text, "{number}"),
        Value::Float(number) => write!(text, "{number}"),
        Value::Double(number) => write!(text, "{number}"),
        Value::Date(year, month, day, hour, minute, second, micros) => {
            let date = write!(
                text,
                "{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}"
            );
            date.and_then(|()| push_fraction(micros, &mut text))
        }
        Value::Time(is_negative, days, hours, minutes, seconds, micros) => {
            let sign = if is_negative { "-" } else { "" };
            let hours = days * 24 + u32::from(hours);
            let time = write!(text, "{sign}{hours:02}:{minutes:02}:{seconds:02}");
            time.and_then(|()| push_fraction(micros, &mut text))
        }
    };
    written.expect("text takes everything");
    Some(text.into_bytes())
}

/// Microseconds without the zeros at their end.
fn push_fraction(micros: u32, out: &mut String) -> std::fmt::Result {
    if micros == 0 {
        return Ok(());
    }
    let digits = format!("{micros:06}");
    write!(out, ".{}", digits.trim_end_matches('0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_stand_where_the_statement_wants_them() {
        let (sql, places) = with_question_marks("UPDATE t SET a = $3 WHERE b = $1 AND c = $10");
        assert_eq!(sql, "UPDATE t SET a = ? WHERE b = ? AND c = ?");
        assert_eq!(places, [2, 0, 9]);
    }

    #[test]
    fn an_execution_has_types_and_values_in_the_order_of_places() {
        let statement = Statement {
            id: 7,
            verb: "UPDATE",
            places: vec![1, 0, 2],
            types: vec![ParamType::Int, ParamType::Text, ParamType::Numeric],
        };
        let mut out = Vec::new();
        push_execute(&statement, &[Some(b"-2"), Some(b"abc"), None], &mut out).unwrap();
        let mut wanted = vec![7, 0, 0, 0, 0, 1, 0, 0, 0, 0b100, 1, 253, 0, 8, 0, 246, 0];
        wanted.extend_from_slice(b"\x03abc");
        wanted.extend_from_slice(&(-2i64).to_le_bytes());
        assert_eq!(out, wanted);
        let error = push_execute(&statement, &[Some(b"x"), None, None], &mut Vec::new());
        assert!(matches!(error, Err(LinkError::Protocol(_))));
    }

    #[test]
    fn lengths_take_as_many_bytes_as_they_need() {
        let bytes = |length| {
            let mut out = Vec::new();
            push_length(length, &mut out);
            out
        };
        assert_eq!(bytes(250), [250]);
        assert_eq!(bytes(251), [0xfc, 251, 0]);
        assert_eq!(bytes(0x1_0000), [0xfd, 0, 0, 1]);
        assert_eq!(bytes(0x100_0000), [0xfe, 0, 0, 0, 1, 0, 0, 0, 0]);
    }

    #[test]
    fn values_are_written_as_postgresql_writes_them() {
        let text = |value| String::from_utf8(text_of(value).unwrap()).unwrap();
        assert_eq!(text(Value::Int(-5)), "-5");
        assert_eq!(
            text(Value::Date(2026, 1, 2, 3, 4, 5, 60_000)),
            "2026-01-02 03:04:05.06"
        );
        assert_eq!(text(Value::Time(true, 1, 2, 0, 0, 0)), "-26:00:00");
        assert_eq!(text_of(Value::NULL), None);
    }

    #[test]
    fn statements_are_called_as_postgresql_calls_them() {
        assert_eq!(verb_of("  select 1"), "SELECT");
        assert_eq!(verb_of("START TRANSACTION READ ONLY"), "BEGIN");
        assert_eq!(verb_of("SET a = 1"), "");
    }
}

//! A client of the protocol of MySQL and MariaDB: prepared statements, queries with streamed rows,
//! LOAD DATA in.
//!
//! The protocol has no rounds: each statement is sent when the one before it is answered, so that a
//! statement after one that failed is never run. Statements are written as for PostgreSQL, with
//! `$1` for a parameter; of their other words `in_own_words` knows those that workloads use.
//!
//! | MySQL | here |
//! |---|---|
//! | 1213, a deadlock; a write set that Galera refuses at COMMIT | 40001, as the server says |
//! | 1020, the row is newer than the snapshot | 40001 |
//! | 1205, a wait for a lock that was too long | 55P03; the transaction stays open |
//! | 1146, 1050 and 1061, 1062: no table, it is there already, a key is | 42P01, 42P07, 23505 |
//! | a statement of two parts: `UPDATE ..; SELECT ..` | both in turn: the rows of the second |
//! | BEGIN, COMMIT, ROLLBACK | travel as text: not all servers prepare them |
//! | an error within a transaction | the transaction stays open: who gets it rolls back |
//! | UPDATE | counts the rows that it finds, not those that it changes |
//! | INSERT .. ON DUPLICATE KEY UPDATE of one row | counts 1, also where it changes it |
//! | several statements in a query that begins with BEGIN | in turn, up to one that fails |

mod codec;

use crate::answers::{Answers, ServerError};
use crate::link::{LinkError, ParamType, Prepared, Status, reach, ready};
use crate::stream::Stream;
use crate::url::{Endpoint, Target};
use codec::{UPSERT, in_own_words, push_execute, text_of, verb_of, with_question_marks};
use mysql_common::auth::plugins::{AuthProc, ChallengeResponsePlugin, Context};
use mysql_common::collations::CollationId;
use mysql_common::constants::{CapabilityFlags as Can, StatusFlags};
use mysql_common::io::ParseBuf;
use mysql_common::packets::{
    AuthMoreData, AuthPlugin, AuthSwitchRequest, Column, CommonOkPacket, ErrPacket,
    HandshakePacket, HandshakeResponse, OkPacketDeserializer, SslRequest, StmtPacket,
};
use mysql_common::proto::{Binary, MyDeserialize, MySerialize, Text};
use mysql_common::row::RowDeserializer;
use mysql_common::value::ServerSide;
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
    /// What it is called in its answer, such as `UPDATE`.
    verb: &'static str,
    types: Vec<ParamType>,
    parts: Vec<Part>,
}

/// A part of a statement, which the server knows.
#[derive(Debug)]
enum Part {
    /// By its number, with the parameter of each place, from 0: one may stand at several.
    Prepared(u32, Vec<u16>),
    /// By its text.
    Text(String),
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
    is_secure: bool,
}

impl Context for Secret<'_> {
    fn pass(&self) -> &[u8] {
        self.password
    }

    fn is_ipc_transport(&self) -> bool {
        false
    }

    fn is_tls_transport(&self) -> bool {
        self.is_secure
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
        let attempt = |is_secure| MySql::attempt(endpoint, target, timeout, is_secure);
        target
            .tls
            .connect(attempt, |error| matches!(error, LinkError::Tls(_)))
    }

    fn attempt(
        endpoint: &Endpoint,
        target: &Target,
        timeout: Option<Duration>,
        is_secure: bool,
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
        let host = is_secure.then_some(endpoint.host.as_str());
        ready(link.log_in(target, host))?;
        // The login itself never waits for ever, even where later waits may.
        link.stream.set_timeout(timeout)?;
        Ok(link)
    }

    /// Logs in, over TLS if it is to be made with a host of this name.
    async fn log_in(&mut self, target: &Target, tls: Option<&str>) -> Result<(), LinkError> {
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
        if let Some(host) = tls {
            match hello.capabilities().contains(Can::CLIENT_SSL) {
                true => {
                    can |= Can::CLIENT_SSL;
                    // What follows is read by what this request says.
                    can.set(Can::CLIENT_CONNECT_WITH_DB, !target.database.is_empty());
                    self.ask_for_tls(can).await?;
                    self.stream.secure(&target.tls, host)?;
                }
                false => target.tls.without()?,
            }
        }
        let known = hello.auth_plugin().filter(|plugin| plugin.init().is_ok());
        let plugin = known.unwrap_or(AuthPlugin::MysqlNativePassword);
        let password = target.password.as_deref().unwrap_or("").as_bytes();
        let nonce = hello.nonce();
        let nonce = nonce.strip_suffix(&[0]).unwrap_or(&nonce);
        let mut method = method_of(&plugin)?;
        let first = method
            .run(self.secret(password, nonce), nonce)
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

    fn secret<'a>(&self, password: &'a [u8], nonce: &'a [u8]) -> Secret<'a> {
        Secret {
            password,
            nonce,
            is_secure: self.stream.is_secure(),
        }
    }

    /// Says that TLS follows.
    async fn ask_for_tls(&mut self, can: Can) -> Result<(), LinkError> {
        self.out.clear();
        let request = SslRequest::new(can, PACKET_BYTES_MAX, CollationId::UTF8MB4_GENERAL_CI as u8);
        request.serialize(&mut self.out);
        self.send().await
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
            let secret = self.secret(password, &nonce);
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
    pub async fn prepare(
        &mut self,
        statements: &[(&str, &[ParamType])],
    ) -> Result<Vec<Prepared>, LinkError> {
        let mut prepared = Vec::with_capacity(statements.len());
        for (sql, types) in statements {
            let sql = in_own_words(sql);
            let verb = verb_of(&sql);
            let mut parts = Vec::new();
            match verb {
                "BEGIN" | "COMMIT" | "ROLLBACK" => parts.push(Part::Text(sql)),
                _ => {
                    for part in sql.split("; ") {
                        parts.push(self.prepare_part(part).await?);
                    }
                }
            }
            prepared.push(Prepared {
                number: self.statements.len() as u32,
                params: types.len() as u16,
            });
            self.statements.push(Statement {
                verb,
                types: types.to_vec(),
                parts,
            });
        }
        Ok(prepared)
    }

    async fn prepare_part(&mut self, sql: &str) -> Result<Part, LinkError> {
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
        Ok(Part::Prepared(answer.statement_id(), places))
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
    pub async fn round(
        &mut self,
        round: &mut Round,
        answers: &mut Answers,
    ) -> Result<(), LinkError> {
        answers.clear();
        for bound in round.bound() {
            let number = bound.statement.number as usize;
            for part in 0..self.statements[number].parts.len() {
                let is_last = part + 1 == self.statements[number].parts.len();
                if is_last {
                    self.run_part(number, part, &round.params(bound), answers)
                        .await?;
                } else {
                    let mut of_part = Answers::new();
                    let params = round.params(bound);
                    self.run_part(number, part, &params, &mut of_part).await?;
                    answers.error = of_part.error.take();
                }
                if answers.error.is_some() {
                    break;
                }
            }
            if answers.error.is_some() {
                break;
            }
        }
        round.clear();
        Ok(())
    }

    /// Runs a part of a statement. Its error is in `answers`.
    async fn run_part(
        &mut self,
        number: usize,
        part: usize,
        params: &[Option<&[u8]>],
        answers: &mut Answers,
    ) -> Result<(), LinkError> {
        let statement = &self.statements[number];
        let verb = statement.verb;
        self.out.clear();
        match &statement.parts[part] {
            Part::Text(sql) => {
                self.out.push(QUERY);
                self.out.extend_from_slice(sql.as_bytes());
                self.start().await?;
                self.take_results::<Text>(verb, answers).await
            }
            Part::Prepared(id, places) => {
                self.out.push(EXECUTE);
                push_execute(*id, places, &statement.types, params, &mut self.out)?;
                self.start().await?;
                self.take_results::<Binary>(verb, answers).await
            }
        }
    }

    /// Runs one statement, or those of a transaction, which begins with BEGIN, up to the first that
    /// fails. Its error is in `answers`.
    pub async fn simple_query(
        &mut self,
        sql: &str,
        answers: &mut Answers,
    ) -> Result<(), LinkError> {
        answers.clear();
        let parts: Vec<&str> = match verb_of(sql) {
            "BEGIN" => sql.split("; ").collect(),
            _ => vec![sql],
        };
        for part in parts {
            let part = in_own_words(part);
            self.command(QUERY, part.as_bytes()).await?;
            self.take_results::<Text>(verb_of(&part), answers).await?;
            if answers.error.is_some() {
                break;
            }
        }
        Ok(())
    }

    /// Runs a query and hands over each row as it comes: memory of one row.
    pub async fn query_each(
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
    pub async fn copy_in(&mut self, sql: &str, rows: &[u8]) -> Result<u64, LinkError> {
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
                Ended::Done { rows, given, more } => match (verb, given) {
                    (UPSERT, _) => (more, format!("INSERT {}", rows.min(1))),
                    ("BEGIN" | "COMMIT" | "ROLLBACK" | "", _) => (more, verb.to_owned()),
                    // Where PostgreSQL tells the number of a row, too.
                    ("INSERT", Some(given)) => (more, format!("INSERT {given} {rows}")),
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
                    given: ok.last_insert_id().filter(|given| *given > 0),
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
    Rows {
        rows: u64,
        more: bool,
    },
    Done {
        rows: u64,
        /// The first number that the server has given to a row.
        given: Option<u64>,
        more: bool,
    },
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
        1020 => String::from("40001"),
        1205 => String::from("55P03"),
        1146 => String::from("42P01"),
        1050 | 1061 => String::from("42P07"),
        1062 => String::from("23505"),
        _ => state.unwrap_or_default(),
    };
    Ok(ServerError {
        sqlstate,
        message: format!("{} (error {})", error.message_str(), error.error_code()),
    })
}

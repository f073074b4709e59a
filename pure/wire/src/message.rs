//! What a client says and what it is told: the PostgreSQL protocol without its bytes.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use base::{OutColumn, RowBatch, SqlError, Tag, Type};

/// Text or binary form of a value on the wire.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum Format {
    Text,
    Binary,
}

/// A message from a client.
#[derive(Clone, PartialEq, Debug)]
pub enum ClientMessage {
    /// First message of a connection.
    Startup {
        /// `user`, `database`, `application_name`, `options`...: names lower-case.
        parameters: Vec<(String, String)>,
    },
    /// Simple query.
    Query(String),
    /// Names a statement.
    Parse {
        /// Empty: the unnamed statement.
        name: String,
        /// One statement.
        text: String,
        /// Declared parameter types; 0 is unspecified.
        types: Vec<u32>,
    },
    /// Makes a portal.
    Bind {
        /// Empty: the unnamed portal.
        portal: String,
        /// Which statement.
        statement: String,
        /// None: all text; one: for all; else one each.
        formats: Vec<Format>,
        /// `None` is NULL.
        params: Vec<Option<Vec<u8>>>,
        /// As `formats`, for the result columns.
        result_formats: Vec<Format>,
    },
    /// Asks for the description of a statement.
    DescribeStatement(String),
    /// Asks for the description of a portal.
    DescribePortal(String),
    /// Runs a portal; at most `rows_max` rows, 0: all.
    Execute {
        /// Which portal.
        portal: String,
        /// Limit.
        rows_max: u32,
    },
    /// Calls a function by its number, in a transaction of its own unless one is open.
    FunctionCall {
        /// Its oid.
        function: u32,
        /// None: all text; one: for all; else one each.
        formats: Vec<Format>,
        /// `None` is NULL.
        args: Vec<Option<Vec<u8>>>,
        /// Form of the result.
        result_format: Format,
    },
    /// Forgets a statement.
    CloseStatement(String),
    /// Forgets a portal.
    ClosePortal(String),
    /// End of a pipeline.
    Sync,
    /// Wants what is there.
    Flush,
    /// COPY FROM data.
    CopyData(Vec<u8>),
    /// End of COPY FROM data.
    CopyDone,
    /// COPY FROM given up by the client.
    CopyFail(String),
    /// Goodbye.
    Terminate,
    /// A simple query or function call that cannot be read: answered with this error, and the
    /// session is ready for the next one.
    BadQuery(SqlError),
    /// A message that breaks the protocol: answered with this error; `fatal` ends the connection.
    Malformed {
        /// What to say.
        error: SqlError,
        /// Whether the stream is out of step.
        fatal: bool,
    },
}

impl ClientMessage {
    /// The tag of a message of the extended protocol, before which others may wait.
    pub fn tag(&self) -> Option<u8> {
        Some(match self {
            ClientMessage::Bind { .. } => b'B',
            ClientMessage::ClosePortal(_) | ClientMessage::CloseStatement(_) => b'C',
            ClientMessage::DescribePortal(_) | ClientMessage::DescribeStatement(_) => b'D',
            ClientMessage::Execute { .. } => b'E',
            ClientMessage::Flush => b'H',
            ClientMessage::Parse { .. } => b'P',
            ClientMessage::Sync => b'S',
            ClientMessage::Startup { .. }
            | ClientMessage::Query(_)
            | ClientMessage::FunctionCall { .. }
            | ClientMessage::CopyData(_)
            | ClientMessage::CopyDone
            | ClientMessage::CopyFail(_)
            | ClientMessage::Terminate
            | ClientMessage::BadQuery(_)
            | ClientMessage::Malformed { .. } => return None,
        })
    }

    /// Whether this message may wait for the one behind it, which has come and has this tag: one
    /// step handles both. So it is for all of the extended protocol that runs nothing by itself,
    /// and for Execute before Sync.
    pub fn may_wait_for(&self, tag: u8) -> bool {
        let runs_nothing = matches!(
            self,
            ClientMessage::Parse { .. }
                | ClientMessage::Bind { .. }
                | ClientMessage::DescribeStatement(_)
                | ClientMessage::DescribePortal(_)
                | ClientMessage::CloseStatement(_)
                | ClientMessage::ClosePortal(_)
        );
        match tag {
            b'S' => runs_nothing || matches!(self, ClientMessage::Execute { .. }),
            b'B' | b'C' | b'D' | b'E' | b'H' | b'P' => runs_nothing,
            _ => false,
        }
    }
}

/// Transaction status in ReadyForQuery.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum TxnStatus {
    Idle,
    InBlock,
    Failed,
}

/// Severity of an error or notice.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum Severity {
    Error,
    Fatal,
    Panic,
    Warning,
    Notice,
    Info,
}

/// A message to a client.
#[derive(Clone, PartialEq, Debug)]
pub enum Reply {
    /// The connection is accepted (no authentication yet).
    AuthenticationOk,
    /// A setting that clients track.
    ParameterStatus(String, String),
    /// For cancel requests.
    BackendKey {
        /// Backend number: `node::input::pid_of`.
        pid: i32,
        /// Proves that the canceller knows the session.
        secret: i32,
    },
    /// Ready for the next query; the host flushes its buffer after it.
    Ready(TxnStatus),
    /// Columns of the rows that follow; formats as in `Rows`.
    RowDescription(Arc<[OutColumn]>, Arc<[Format]>),
    /// Parameter types of a statement.
    ParameterDescription(Vec<Type>),
    /// A statement without result columns.
    NoData,
    /// Rows, to be encoded column by column with the type of `columns` in the form of `formats`
    /// (empty: all text; one: for all).
    Rows(Arc<[OutColumn]>, Arc<[Format]>, RowBatch),
    /// The result of a function call: the one value of the one row, encoded as in `Rows`.
    FunctionResult(Arc<[OutColumn]>, Arc<[Format]>, RowBatch),
    /// Command tag, for example `INSERT 0 1`.
    CommandComplete(Tag),
    /// The query string was empty.
    EmptyQuery,
    /// Parse done.
    ParseComplete,
    /// Bind done.
    BindComplete,
    /// Close done.
    CloseComplete,
    /// Execute stopped at its row limit.
    PortalSuspended,
    /// COPY FROM may start: number of columns, and the form of its data.
    CopyIn(u16, Format),
    /// COPY TO starts: number of columns, and the form of its data.
    CopyOut(u16, Format),
    /// COPY TO data: whole rows, each behind its length (u32, little-endian); every row becomes one
    /// message, as in PostgreSQL.
    CopyData(Vec<u8>),
    /// End of COPY TO.
    CopyDone,
    /// An error or a notice.
    Error(Severity, SqlError),
    /// What another session has told those that listen to a channel, or this one itself.
    Notification {
        /// Backend number of the session that tells.
        pid: i32,
        /// Name of the channel.
        channel: Arc<str>,
        /// The text.
        payload: Arc<str>,
    },
    /// Close the connection after what was said.
    Close,
}

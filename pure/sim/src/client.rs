//! What a workload's client sees of the cluster: a connection that is asked and that answers, or
//! is lost.
//!
//! ```text
//! let mut conn = cx.connect(node).await?;
//! let answer = conn.query("SELECT v FROM t WHERE k = 1").await?;
//! conn.execute("UPDATE t SET v = $1 WHERE k = $2", &[5.into(), 1.into()]).await?;
//! ```
//!
//! Isolation scripts start a step and look at it later: [`SimConn::start`], then
//! [`SimCx::quiet`](crate::SimCx::quiet), then [`SimConn::is_waiting`] or
//! [`SimConn::take_answer`].

use crate::executor::{Request, Shared, TaskId};
use base::{OutColumn, RowBatch, SqlError, SqlState};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use wire::{ClientMessage, Format, Reply, Severity, Tag, TxnStatus};

/// Result of one statement.
#[derive(Clone, PartialEq, Debug)]
pub struct Answer {
    /// Names of the result columns, in order; empty for a statement without rows.
    pub columns: Vec<String>,
    /// Rows as text; `None` is NULL.
    pub rows: Vec<Vec<Option<String>>>,
    /// Command tag, for example `UPDATE 1`.
    pub tag: Tag,
}

impl Answer {
    /// Rows that the statement touched or returned, as its tag says.
    pub fn count(&self) -> u64 {
        self.tag.count()
    }

    /// The value at `row`, `column` as text; `None` if it is NULL or not there.
    pub fn text(&self, row: usize, column: usize) -> Option<&str> {
        self.rows.get(row)?.get(column)?.as_deref()
    }

    /// The value at `row`, `column` as an integer; `None` if it is NULL, not there, or no integer.
    pub fn int(&self, row: usize, column: usize) -> Option<i64> {
        self.text(row, column)?.parse().ok()
    }
}

/// Why there is no [`Answer`].
#[derive(Clone, PartialEq, Debug)]
pub enum SimError {
    /// The server says so. The connection can be used on.
    Sql(SqlError),
    /// The connection is gone; whether what was under way has happened is unknown.
    Lost,
}

impl SimError {
    /// The SQLSTATE, 08006 for a lost connection.
    pub fn state(&self) -> SqlState {
        match self {
            SimError::Sql(error) => error.state(),
            SimError::Lost => SqlState::CONNECTION_FAILURE,
        }
    }

    /// Nobody here knows whether the transaction has committed, if the failed statement could
    /// commit it (COMMIT, or a statement outside of a block).
    pub fn is_unknown(&self) -> bool {
        // 08006 and 08007: connection failure and unknown outcome; 40003: completion unknown.
        matches!(&self.state().0, b"08006" | b"08007" | b"40003")
    }

    /// Another attempt as a new transaction may succeed.
    pub fn is_retryable(&self) -> bool {
        match self {
            SimError::Sql(error) => error.is_retryable(),
            SimError::Lost => false,
        }
    }
}

impl fmt::Display for SimError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SimError::Sql(error) => write!(f, "{error}"),
            SimError::Lost => f.write_str("connection lost"),
        }
    }
}

/// A parameter of [`SimConn::execute`], as text; NULL if `None`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Param(pub Option<String>);

macro_rules! param_from {
    ($($ty:ty),*) => {$(
        impl From<$ty> for Param {
            fn from(value: $ty) -> Param {
                Param(Some(value.to_string()))
            }
        }
    )*};
}
param_from!(i64, i32, u64, u32, u16, usize, bool, &str, String);

impl<T: Into<Param>> From<Option<T>> for Param {
    fn from(value: Option<T>) -> Param {
        value.map_or(Param(None), Into::into)
    }
}

/// State of a connection as its client knows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ConnState {
    Opening,
    Open,
    Lost,
}

/// What the world and the client share of one connection.
pub(crate) struct ConnCell {
    /// Unique in the run.
    pub(crate) id: u32,
    pub(crate) state: Cell<ConnState>,
    pub(crate) replies: RefCell<VecDeque<Reply>>,
    /// The task that waits for news.
    pub(crate) waiter: Cell<Option<TaskId>>,
}

/// What the statement under way has answered so far.
#[derive(Default)]
struct Partial {
    columns: Option<Arc<[OutColumn]>>,
    rows: Vec<Vec<Option<String>>>,
    answers: Vec<Answer>,
    error: Option<SqlError>,
}

/// A client's connection. Dropping it closes it.
pub struct SimConn {
    shared: Rc<Shared>,
    cell: Rc<ConnCell>,
    node: u16,
    /// Between a question and its ReadyForQuery.
    waiting: bool,
    partial: Partial,
    status: TxnStatus,
    /// Names of prepared statements by text.
    prepared: BTreeMap<String, String>,
    /// Text whose Parse is under way.
    parsing: Option<String>,
    pid: i32,
    secret: i32,
}

impl SimConn {
    pub(crate) fn new(shared: Rc<Shared>, cell: Rc<ConnCell>, node: u16) -> SimConn {
        SimConn {
            shared,
            cell,
            node,
            // The server's greeting ends with ReadyForQuery.
            waiting: true,
            partial: Partial::default(),
            status: TxnStatus::Idle,
            prepared: BTreeMap::new(),
            parsing: None,
            pid: 0,
            secret: 0,
        }
    }

    /// The node that it is connected to, from 1.
    pub fn node(&self) -> u16 {
        self.node
    }

    /// Unique number in this run; a good process number for a history.
    pub fn id(&self) -> u32 {
        self.cell.id
    }

    /// Whether it can still be used.
    pub fn is_open(&self) -> bool {
        self.cell.state.get() != ConnState::Lost
    }

    /// Status in the last ReadyForQuery.
    pub fn status(&self) -> TxnStatus {
        self.status
    }

    /// Runs a text of one or more statements by the simple protocol; result of the last one.
    ///
    /// # Errors
    /// Of the first statement that fails (those behind it do not run), or the loss of the
    /// connection.
    pub async fn query(&mut self, sql: &str) -> Result<Answer, SimError> {
        self.start(sql);
        self.answer().await
    }

    /// Runs one statement by the extended protocol. Its text is prepared once per connection.
    ///
    /// # Errors
    /// Of the statement, or the loss of the connection.
    pub async fn execute(&mut self, sql: &str, params: &[Param]) -> Result<Answer, SimError> {
        self.start_execute(sql, params);
        self.answer().await
    }

    /// COPY FROM STDIN: `sql` is the statement, `data` what it is given.
    ///
    /// # Errors
    /// Of the statement, or the loss of the connection.
    pub async fn copy_in(&mut self, sql: &str, data: &str) -> Result<Answer, SimError> {
        self.start(sql);
        let ready = |reply: &Reply| matches!(reply, Reply::CopyIn(..) | Reply::Ready(_));
        self.until(ready).await?;
        if self.waiting {
            let data = ClientMessage::CopyData(data.as_bytes().to_vec());
            self.say(vec![data, ClientMessage::CopyDone]);
        }
        self.answer().await
    }

    /// Begins what [`SimConn::query`] does and does not wait. One thing at a time.
    pub fn start(&mut self, sql: &str) {
        self.begin(vec![ClientMessage::Query(sql.to_owned())]);
    }

    /// Begins what [`SimConn::execute`] does and does not wait.
    pub fn start_execute(&mut self, sql: &str, params: &[Param]) {
        let mut messages = Vec::with_capacity(5);
        let name = match self.prepared.get(sql) {
            Some(name) => name.clone(),
            None => {
                let name = format!("s{}", self.prepared.len() + 1);
                self.prepared.insert(sql.to_owned(), name.clone());
                self.parsing = Some(sql.to_owned());
                messages.push(ClientMessage::Parse {
                    name: name.clone(),
                    text: sql.to_owned(),
                    types: Vec::new(),
                });
                name
            }
        };
        let bytes = |param: &Param| param.0.as_ref().map(|text| text.as_bytes().to_vec());
        messages.push(ClientMessage::Bind {
            portal: String::new(),
            statement: name,
            formats: Vec::<Format>::new(),
            params: params.iter().map(bytes).collect(),
            result_formats: Vec::new(),
        });
        messages.push(ClientMessage::DescribePortal(String::new()));
        messages.push(ClientMessage::Execute {
            portal: String::new(),
            rows_max: 0,
        });
        messages.push(ClientMessage::Sync);
        self.begin(messages);
    }

    /// Sends what is answered by one ReadyForQuery.
    pub(crate) fn begin(&mut self, messages: Vec<ClientMessage>) {
        assert!(!self.waiting, "one question at a time on a connection");
        self.partial = Partial::default();
        self.waiting = true;
        self.say(messages);
    }

    fn say(&self, messages: Vec<ClientMessage>) {
        self.shared.request(Request::Send {
            conn: self.cell.id,
            messages,
        });
    }

    /// Whether what was started has not been answered yet. When the world is quiet, the session is
    /// blocked.
    pub fn is_waiting(&mut self) -> bool {
        self.take_replies(&|_| false);
        self.waiting && self.is_open()
    }

    /// The answer to what was started, if it is there.
    pub fn take_answer(&mut self) -> Option<Result<Answer, SimError>> {
        if self.is_waiting() {
            return None;
        }
        Some(self.result().map(last))
    }

    /// Waits for the answer to what was started.
    ///
    /// # Errors
    /// As [`SimConn::query`].
    pub async fn answer(&mut self) -> Result<Answer, SimError> {
        Ok(last(self.answers().await?))
    }

    /// As [`SimConn::answer`], with the results of all statements.
    pub(crate) async fn answers(&mut self) -> Result<Vec<Answer>, SimError> {
        self.until(|reply| matches!(reply, Reply::Ready(_))).await?;
        self.result()
    }

    /// Asks the server to cancel what runs, by a connection of its own as PostgreSQL's clients do.
    pub fn cancel(&self) {
        self.shared.request(Request::Cancel {
            node: self.node,
            pid: self.pid,
            secret: self.secret,
        });
    }

    /// Waits until the greeting has arrived.
    pub(crate) async fn greeted(&mut self) -> Result<(), SimError> {
        self.answers().await.map(|_| ())
    }

    fn result(&mut self) -> Result<Vec<Answer>, SimError> {
        if self.waiting {
            // The connection has ended before the answer; a last word of the server says why, but
            // not what became of the statement.
            self.waiting = false;
            return Err(SimError::Lost);
        }
        let partial = std::mem::take(&mut self.partial);
        match partial.error {
            Some(error) => Err(SimError::Sql(error)),
            None => Ok(partial.answers),
        }
    }

    /// Takes replies until `stop` has seen the one it wants, or the connection is lost.
    async fn until(&mut self, stop: impl Fn(&Reply) -> bool) -> Result<(), SimError> {
        std::future::poll_fn(|_| {
            if !self.waiting || self.take_replies(&stop) || !self.is_open() {
                return Poll::Ready(());
            }
            self.cell.waiter.set(Some(self.shared.current()));
            Poll::Pending
        })
        .await;
        if !self.waiting || self.is_open() {
            return Ok(());
        }
        self.waiting = false;
        Err(SimError::Lost)
    }

    fn take_replies(&mut self, stop: &dyn Fn(&Reply) -> bool) -> bool {
        loop {
            let Some(reply) = self.cell.replies.borrow_mut().pop_front() else {
                return false;
            };
            let wanted = stop(&reply);
            self.take(reply);
            if wanted {
                return true;
            }
        }
    }

    fn take(&mut self, reply: Reply) {
        let partial = &mut self.partial;
        match reply {
            Reply::Ready(status) => {
                self.status = status;
                self.waiting = false;
                if let Some(text) = self.parsing.take() {
                    // The Parse was refused.
                    self.prepared.remove(&text);
                }
            }
            Reply::BackendKey { pid, secret } => (self.pid, self.secret) = (pid, secret),
            Reply::RowDescription(columns, _) => partial.columns = Some(columns),
            Reply::Rows(columns, _, rows) => {
                add_rows(&columns, &rows, &mut partial.rows);
                partial.columns = Some(columns);
            }
            Reply::CommandComplete(tag) => {
                let columns = partial.columns.take();
                let names = columns.iter().flat_map(|columns| columns.iter());
                partial.answers.push(Answer {
                    columns: names.map(|column| column.name.clone()).collect(),
                    rows: std::mem::take(&mut partial.rows),
                    tag,
                });
            }
            Reply::EmptyQuery => partial.answers.push(nothing()),
            Reply::ParseComplete => self.parsing = None,
            Reply::Error(Severity::Error | Severity::Fatal | Severity::Panic, error) => {
                partial.error.get_or_insert(error);
            }
            Reply::Close => self.cell.state.set(ConnState::Lost),
            // Notices and warnings say nothing that a workload asks for.
            _ => {}
        }
    }
}

impl Drop for SimConn {
    fn drop(&mut self) {
        if self.is_open() {
            self.shared.request(Request::Close { conn: self.cell.id });
        }
    }
}

fn last(mut answers: Vec<Answer>) -> Answer {
    answers.pop().unwrap_or_else(nothing)
}

fn nothing() -> Answer {
    Answer {
        columns: Vec::new(),
        rows: Vec::new(),
        tag: Tag::Word(""),
    }
}

fn add_rows(columns: &[OutColumn], batch: &RowBatch, out: &mut Vec<Vec<Option<String>>>) {
    for row in batch.iter() {
        let cells = row.iter().zip(columns).map(|(datum, column)| match datum {
            base::Datum::Null => None,
            datum => Some(base::text::to_string(column.ty, datum)),
        });
        out.push(cells.collect());
    }
}

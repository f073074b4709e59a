//! The benchmark's transactions over a simulated connection.

use crate::client::{Answer, SimConn, SimError};
use crate::executor::SimCx;
use base::SqlError;
use std::fmt;
use wire::{ClientMessage, TxnStatus};
use workload::wire::{Answers, Connection, ParamType, Prepared, Round, ServerError, Status};

/// Why a connection is of no more use, or the server's own words.
#[derive(Clone, Debug)]
pub enum LinkError {
    /// It is gone.
    Lost,
    /// The server refused what cannot be done without.
    Server(ServerError),
}

impl fmt::Display for LinkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LinkError::Lost => f.write_str("connection lost"),
            LinkError::Server(error) => error.fmt(f),
        }
    }
}

impl From<ServerError> for LinkError {
    fn from(error: ServerError) -> LinkError {
        LinkError::Server(error)
    }
}

/// A simulated connection as the benchmark's transactions want it.
pub struct SimLink {
    conn: SimConn,
    cx: SimCx,
    prepared: u32,
}

impl fmt::Debug for SimLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let node = self.conn.node();
        write!(f, "connection {} to node {node}", self.conn.id())
    }
}

impl SimLink {
    /// Connects to `node` (from 1).
    ///
    /// # Errors
    /// The node is down, or refuses.
    pub(crate) async fn connect(cx: &SimCx, node: u16) -> Result<SimLink, SimError> {
        Ok(SimLink {
            conn: cx.connect(node).await?,
            cx: cx.clone(),
            prepared: 0,
        })
    }

    /// COPY FROM STDIN; the number of rows.
    pub(crate) async fn copy_in(&mut self, sql: &str, data: &str) -> Result<u64, LinkError> {
        match self.conn.copy_in(sql, data).await {
            Ok(answer) => Ok(answer.count()),
            Err(SimError::Sql(error)) => Err(server_error(&error).into()),
            Err(SimError::Lost) => Err(LinkError::Lost),
        }
    }

    /// Over a connection that stands.
    pub fn over(conn: SimConn, cx: &SimCx) -> SimLink {
        SimLink {
            conn,
            cx: cx.clone(),
            prepared: 0,
        }
    }

    /// Takes the answers to what was begun.
    async fn take(&mut self, answers: &mut Answers) -> Result<(), LinkError> {
        answers.clear();
        match self.conn.answers().await {
            Ok(all) => {
                for answer in &all {
                    push(answer, answers);
                }
                Ok(())
            }
            Err(SimError::Sql(error)) => {
                answers.error = Some(server_error(&error));
                Ok(())
            }
            Err(SimError::Lost) => Err(LinkError::Lost),
        }
    }
}

impl Connection for SimLink {
    type Error = LinkError;

    async fn prepare(
        &mut self,
        statements: &[(&str, &[ParamType])],
    ) -> Result<Vec<Prepared>, LinkError> {
        let mut prepared = Vec::with_capacity(statements.len());
        let mut messages = Vec::with_capacity(statements.len() + 1);
        for (sql, params) in statements {
            let number = self.prepared;
            self.prepared += 1;
            messages.push(ClientMessage::Parse {
                name: name(number),
                text: (*sql).to_string(),
                types: params.iter().map(|param| *param as u32).collect(),
            });
            prepared.push(Prepared {
                number,
                params: params.len() as u16,
            });
        }
        messages.push(ClientMessage::Sync);
        self.conn.begin(messages);
        let mut answers = Answers::new();
        self.take(&mut answers).await?;
        match answers.error.take() {
            Some(error) => Err(LinkError::Server(error)),
            None => Ok(prepared),
        }
    }

    async fn round(&mut self, round: &mut Round, answers: &mut Answers) -> Result<(), LinkError> {
        let mut messages = Vec::with_capacity(2 * round.bound().len() + 1);
        for bound in round.bound() {
            let params = round.params(bound);
            messages.push(ClientMessage::Bind {
                portal: String::new(),
                statement: name(bound.statement.number),
                formats: Vec::new(),
                params: params
                    .iter()
                    .map(|param| param.map(<[u8]>::to_vec))
                    .collect(),
                result_formats: Vec::new(),
            });
            messages.push(ClientMessage::Execute {
                portal: String::new(),
                rows_max: 0,
            });
        }
        round.clear();
        messages.push(ClientMessage::Sync);
        self.conn.begin(messages);
        self.take(answers).await
    }

    async fn simple(&mut self, sql: &str, answers: &mut Answers) -> Result<(), LinkError> {
        self.conn.start(sql);
        self.take(answers).await
    }

    async fn each_row(
        &mut self,
        sql: &str,
        mut each: impl FnMut(&Answers),
    ) -> Result<(), LinkError> {
        self.conn.start(sql);
        let all = match self.conn.answers().await {
            Ok(all) => all,
            Err(SimError::Sql(error)) => return Err(server_error(&error).into()),
            Err(SimError::Lost) => return Err(LinkError::Lost),
        };
        let mut row = Answers::new();
        for cells in all.iter().flat_map(|answer| &answer.rows) {
            row.clear();
            push_row(cells, &mut row);
            row.finish_statement(b"");
            each(&row);
        }
        Ok(())
    }

    fn status(&self) -> Status {
        match self.conn.status() {
            TxnStatus::Idle => Status::Idle,
            TxnStatus::InBlock => Status::Open,
            TxnStatus::Failed => Status::Failed,
        }
    }

    fn now_unix_us(&self) -> u64 {
        self.cx.now().0
    }
}

fn name(number: u32) -> String {
    format!("w{number}")
}

fn push(answer: &Answer, answers: &mut Answers) {
    for row in &answer.rows {
        push_row(row, answers);
    }
    answers.finish_statement(answer.tag.to_string().as_bytes());
}

fn push_row(row: &[Option<String>], answers: &mut Answers) {
    let cells = row.iter().map(|cell| cell.as_ref().map(String::as_bytes));
    answers.push_cells(cells);
}

fn server_error(error: &SqlError) -> ServerError {
    ServerError {
        sqlstate: error.state().as_str().to_string(),
        message: error.fields().message.clone(),
    }
}

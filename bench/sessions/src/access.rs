//! Data access: entities, and SQL of one's own. What both can do for loading and for checks, and
//! how their outcomes become those of an interaction.

use crate::interaction::{Effort, Failure};
use base::Prng;
use entity::sql::{Dialect, Statements, push_text, range, read_text};
use entity::{Client, EntityDb, EntityType, Pace, Policy, Range, Row, Scope, Value};
use workload::wire::{self, Answers, Connection, Isolation, ParamType, Session};

/// The most rows of one group that a check reads.
pub const ROWS_MAX: usize = 1_000_000;

/// What a workload needs besides its interactions, of every kind of data access.
pub trait Access {
    /// Creates entities of one group in one transaction.
    ///
    /// # Errors
    /// [`Failure`].
    fn fill(
        &mut self,
        kind: &EntityType,
        rows: Vec<Row>,
    ) -> impl Future<Output = Result<(), Failure>>;

    /// The entities whose first ids are these, at most [`ROWS_MAX`].
    ///
    /// # Errors
    /// [`Failure`].
    fn rows(
        &mut self,
        kind: &EntityType,
        prefix: &[Value],
    ) -> impl Future<Output = Result<Vec<Row>, Failure>>;

    /// The entities with this key in an index, by its place.
    ///
    /// # Errors
    /// [`Failure`].
    fn rows_by_index(
        &mut self,
        kind: &EntityType,
        index: usize,
        key: &[Value],
    ) -> impl Future<Output = Result<Vec<Row>, Failure>>;
}

/// The number in a column of the first of these rows; 0 if there is none.
pub fn first_number(rows: &[Row], column: usize) -> i64 {
    let value = rows.first().and_then(|row| row.get(column));
    value.and_then(Value::as_int).unwrap_or(0)
}

/// What a failure of entities is to an interaction. An entity that exists or is missing against the
/// workload's own rules is a wrong answer.
impl From<entity::Failure> for Failure {
    fn from(failure: entity::Failure) -> Failure {
        match failure {
            entity::Failure::Conflict(reason) => Failure::Conflict(reason.into_owned()),
            entity::Failure::Unknown(text) => Failure::Unknown(text),
            entity::Failure::Refused(text) => Failure::Refused(text),
            entity::Failure::Lost(text) => Failure::Lost(text),
            entity::Failure::Exists(text) => Failure::Wrong(format!("exists already: {text}")),
            entity::Failure::Missing(text) => Failure::Wrong(format!("does not exist: {text}")),
            entity::Failure::Stopped(text) => Failure::Wrong(text.to_string()),
        }
    }
}

/// Does something with a client of entities, and counts what it took.
///
/// # Errors
/// Those of the work.
pub async fn counted<S: EntityDb, P: Pace, T>(
    client: &mut Client<S, P>,
    effort: &mut Effort,
    work: impl AsyncFnOnce(&mut Client<S, P>) -> Result<T, entity::Failure>,
) -> Result<T, Failure> {
    let (before, trips) = (client.tally(), client.round_trips());
    let result = work(client).await;
    let after = client.tally();
    effort.attempts += after.attempts - before.attempts;
    effort.round_trips += client.round_trips().saturating_sub(trips);
    let conflicts = after.conflicts - before.conflicts;
    if conflicts > 0 {
        let kind = match &result {
            Err(entity::Failure::Conflict(reason)) => reason.to_string(),
            _ => "conflict".to_string(),
        };
        *effort.conflicts.entry(kind).or_default() += conflicts;
    }
    Ok(result?)
}

impl<S: EntityDb, P: Pace> Access for Client<S, P> {
    async fn fill(&mut self, kind: &EntityType, rows: Vec<Row>) -> Result<(), Failure> {
        let Some(first) = rows.first() else {
            return Ok(());
        };
        let group: Row = kind.group_of(first).cloned().collect();
        let scope = match kind.generates_group() {
            true => Scope::New,
            false => Scope::Group(&kind.group_name, &group),
        };
        self.run(scope, async |tx| {
            for row in &rows {
                tx.create_row(kind, &mut row.clone()).await?;
            }
            Ok(())
        })
        .await?;
        Ok(())
    }

    async fn rows(&mut self, kind: &EntityType, prefix: &[Value]) -> Result<Vec<Row>, Failure> {
        let range = Range {
            prefix,
            from: None,
            to: None,
            limit: ROWS_MAX,
        };
        Ok(self.rows_in_range(kind, range).await?)
    }

    async fn rows_by_index(
        &mut self,
        kind: &EntityType,
        index: usize,
        key: &[Value],
    ) -> Result<Vec<Row>, Failure> {
        Ok(Client::rows_by_index(self, kind, index, key).await?)
    }
}

/// A connection for statements of a workload's own, with its retries.
#[derive(Debug)]
pub struct Sql<C: Connection, P> {
    session: Session<C>,
    dialect: Dialect,
    policy: Policy,
    pace: P,
    prng: Prng,
    /// Requests that were sent.
    requests: u64,
}

/// One attempt at a transaction of statements.
pub type Attempt<T, C> = Result<T, wire::Failure<<C as Connection>::Error>>;

/// The place of BEGIN among the statements of a [`Sql`].
pub const BEGIN: usize = 0;
/// The place of COMMIT.
pub const COMMIT: usize = 1;
/// The place of the workload's first statement.
pub const OWN: usize = 2;

impl<C: Connection, P: Pace> Sql<C, P> {
    /// Prepares BEGIN, COMMIT and the statements of a workload.
    ///
    /// # Errors
    /// The connection broke, or a statement was refused.
    pub async fn open(
        link: C,
        (dialect, isolation): (Dialect, Isolation),
        own: &[(String, Vec<ParamType>)],
        (pace, policy, seed): (P, Policy, u64),
    ) -> Result<Sql<C, P>, C::Error> {
        let begin = format!("BEGIN ISOLATION LEVEL {}", isolation.sql());
        let mut all = vec![(begin, Vec::new()), ("COMMIT".to_string(), Vec::new())];
        all.extend_from_slice(own);
        for (sql, _) in &mut all {
            *sql = dialect.statement(sql);
        }
        Ok(Sql {
            session: Session::open(link, &all).await?,
            dialect,
            policy,
            pace,
            prng: Prng::new(seed),
            requests: 0,
        })
    }

    /// Whose SQL the server takes.
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// Runs a task as one transaction, again after each conflict until the policy gives up.
    ///
    /// # Errors
    /// `Conflict`: given up. Only after `Unknown` may anything have happened.
    pub async fn run<T>(
        &mut self,
        effort: &mut Effort,
        mut task: impl AsyncFnMut(&mut Statement<'_, C>) -> Attempt<T, C>,
    ) -> Result<T, Failure> {
        let started_us = self.pace.now_us();
        let mut attempts = 0;
        loop {
            attempts += 1;
            effort.attempts += 1;
            let before = self.requests;
            let mut statement = Statement {
                session: &mut self.session,
                dialect: self.dialect,
                requests: &mut self.requests,
            };
            let result = task(&mut statement).await;
            effort.round_trips += self.requests - before;
            let kind = match result {
                Ok(value) => return Ok(value),
                Err(failure) => match failure_of(failure) {
                    Failure::Conflict(kind) => kind,
                    other => return Err(other),
                },
            };
            *effort.conflicts.entry(kind.clone()).or_default() += 1;
            let wait_us = self.policy.back_off.wait_us(attempts, &mut self.prng);
            let gone_us = self.pace.now_us().saturating_sub(started_us);
            let is_late = gone_us.saturating_add(wait_us) > self.policy.total_us;
            if attempts >= self.policy.attempts || is_late {
                return Err(Failure::Conflict(kind));
            }
            if wait_us > 0 {
                self.pace.sleep_us(wait_us).await;
            }
        }
    }

    /// The session, for statements that are no transaction of the workload.
    pub fn session(&mut self) -> &mut Session<C> {
        &mut self.session
    }
}

/// The statements of one attempt.
#[derive(Debug)]
pub struct Statement<'a, C: Connection> {
    session: &'a mut Session<C>,
    dialect: Dialect,
    requests: &'a mut u64,
}

impl<C: Connection> Statement<'_, C> {
    /// The session, to bind statements and to read answers.
    pub fn session(&mut self) -> &mut Session<C> {
        self.session
    }

    /// Sends the round.
    ///
    /// # Errors
    /// As for [`Session::round`].
    pub async fn round(&mut self) -> Attempt<(), C> {
        *self.requests += self.session.requests(self.dialect);
        self.session.round().await
    }

    /// Sends a round that is one statement, which commits by itself.
    ///
    /// # Errors
    /// As for [`Session::round`].
    pub async fn single(&mut self) -> Attempt<(), C> {
        self.session.commits_itself();
        self.round().await
    }

    /// Binds COMMIT and sends the round.
    ///
    /// # Errors
    /// As for [`Session::round`].
    pub async fn commit(&mut self) -> Attempt<(), C> {
        self.session.bind(COMMIT).send();
        self.session.commits_block();
        self.round().await
    }

    /// The answers of the last round.
    pub fn answers(&self) -> &Answers {
        &self.session.answers
    }

    /// A number in them, by statement, row and column.
    ///
    /// # Errors
    /// `Wrong`: there is none, because this is missing.
    pub fn number(&self, place: (usize, usize, usize), what: &str) -> Attempt<i64, C> {
        let (statement, row, column) = place;
        let number = self.answers().int(statement, row, column);
        number.ok_or_else(|| wire::Failure::Wrong(format!("{what} is missing")))
    }
}

/// What one attempt has come to: SQLSTATEs that mean "again" are conflicts.
fn failure_of<E: std::fmt::Display>(failure: wire::Failure<E>) -> Failure {
    match failure {
        wire::Failure::Aborted(error) => match error.sqlstate.as_str() {
            "40001" | "40P01" | "55P03" => Failure::Conflict(error.sqlstate),
            _ => Failure::Refused(error.to_string()),
        },
        wire::Failure::Conflict(reason) => Failure::Conflict(reason.to_string()),
        wire::Failure::Lost(error) => Failure::Lost(error.to_string()),
        wire::Failure::Unknown(error) => Failure::Unknown(error.to_string()),
        wire::Failure::Wrong(text) => Failure::Wrong(text),
    }
}

/// A value as a literal of a statement.
fn literal(value: &Value, dialect: Dialect) -> String {
    let mut text = Vec::new();
    if !push_text(value, dialect, &mut text) {
        return "NULL".to_string();
    }
    let text = String::from_utf8_lossy(&text);
    match value {
        Value::Null | Value::Int(_) | Value::Real(_) => text.into_owned(),
        Value::Bool(_) | Value::Text(_) | Value::Bytes(_) => {
            let text = match dialect {
                Dialect::Postgres => text.replace('\'', "''"),
                Dialect::MySql => text.replace('\\', "\\\\").replace('\'', "''"),
            };
            format!("'{text}'")
        }
    }
}

/// A statement with literals for its `$n`, whose values are at the places that it says.
fn with_literals(statement: &entity::sql::Statement, values: &[Value], dialect: Dialect) -> String {
    let mut out = String::with_capacity(statement.sql.len() + 64);
    let mut rest = statement.sql.as_str();
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let number: usize = rest[..digits].parse().unwrap_or(0);
        rest = &rest[digits..];
        match statement.params.get(number.wrapping_sub(1)) {
            Some((place, _)) => out.push_str(&literal(&values[*place], dialect)),
            None => out.push('$'),
        }
    }
    out + rest
}

impl<C: Connection, P: Pace> Access for Sql<C, P> {
    async fn fill(&mut self, kind: &EntityType, rows: Vec<Row>) -> Result<(), Failure> {
        let dialect = self.dialect;
        let create = Statements::new(kind, dialect).create;
        for row in &rows {
            let sql = with_literals(&create, row, dialect);
            self.session.simple(&sql).await.map_err(failure_of)?;
        }
        Ok(())
    }

    async fn rows(&mut self, kind: &EntityType, prefix: &[Value]) -> Result<Vec<Row>, Failure> {
        let statement = range(kind, prefix.len(), (false, false), ROWS_MAX, self.dialect);
        self.read(kind, &statement, prefix).await
    }

    async fn rows_by_index(
        &mut self,
        kind: &EntityType,
        index: usize,
        key: &[Value],
    ) -> Result<Vec<Row>, Failure> {
        let statement = Statements::new(kind, self.dialect)
            .by_index
            .swap_remove(index);
        self.read(kind, &statement, key).await
    }
}

impl<C: Connection, P: Pace> Sql<C, P> {
    /// The rows of a statement that returns all columns.
    async fn read(
        &mut self,
        kind: &EntityType,
        statement: &entity::sql::Statement,
        values: &[Value],
    ) -> Result<Vec<Row>, Failure> {
        let dialect = self.dialect;
        let sql = with_literals(statement, values, dialect);
        self.session.simple(&sql).await.map_err(failure_of)?;
        let answers = &self.session.answers;
        let value = |row: usize, column: usize| {
            let cell = answers.cell(0, row, column);
            let value = read_text(kind.columns[column].kind, dialect, cell);
            value.ok_or_else(|| Failure::Wrong(format!("a row of {} is not readable", kind.name)))
        };
        let columns = kind.columns.len();
        let row = |row: usize| (0..columns).map(|column| value(row, column)).collect();
        (0..answers.rows(0)).map(row).collect()
    }
}

//! A simulated cluster as a system under test.

use catalog::ProtocolKind;
use isolation::run::Broken;
use isolation::{Answer, Level, Spec, System};
use sim::plan::Wanted;
use sim::{Ask, Plan, SimConn, SimCx, SimError};
use wire::Tag;

/// Virtual time, in microseconds, after which a session without an answer is blocked, while no
/// other session acts. All pauses between attempts of one transaction together are shorter.
const PATIENCE_US: u64 = 500_000;

/// Longest wait for silence, in microseconds of virtual time. Shards of several nodes may go on
/// sending for ever under leap: a message is repeated until it is answered. Work that follows an
/// answer takes far less.
const SILENCE_US: u64 = 200_000;

/// Virtual time, in microseconds, behind which a transaction is no repetition of one of the session
/// that failed with 40001, so that no interleaving changes the next one.
const NO_REPETITION_US: u64 = 1_001_000;

/// Of a cluster.
#[derive(Clone, Copy)]
pub(crate) struct Size {
    pub(crate) protocol: ProtocolKind,
    pub(crate) nodes: u16,
    /// Of each node.
    pub(crate) shards: u16,
}

impl Size {
    pub(crate) fn name(self) -> String {
        format!("{}-{}x{}", self.protocol.name(), self.nodes, self.shards)
    }

    /// A run without faults, whose clocks agree.
    pub(crate) fn plan(self) -> Plan {
        let ask = Ask {
            protocol: self.protocol,
            nodes: Some(self.nodes),
            shards: Some(self.shards),
            wanted: Wanted::Nothing,
            ..Ask::new("bank")
        };
        Plan {
            skew_us: 0,
            ..Plan::draw(1, &ask)
        }
    }
}

struct Session {
    conn: SimConn,
    /// A question is under way.
    asked: bool,
    answer: Option<Answer>,
}

/// The cluster; sessions are spread over its nodes.
pub(crate) struct Cluster {
    cx: SimCx,
    size: Size,
    control: Option<SimConn>,
    sessions: Vec<Session>,
    level: Option<Level>,
    /// A transaction has failed with 40001 in this interleaving.
    conflicted: bool,
}

fn broken(what: &str, error: &SimError) -> Broken {
    Broken(format!("{what}: {error}"))
}

/// What the client of a script sees of an answer.
fn seen(answer: Result<sim::Answer, SimError>) -> Result<Answer, Broken> {
    match answer {
        Ok(answer) if !answer.columns.is_empty() => {
            let cells = |row: Vec<Option<String>>| {
                let cell = |cell: Option<String>| cell.unwrap_or_else(|| "null".to_owned());
                row.into_iter().map(cell).collect()
            };
            Ok(Answer::rows(answer.rows.into_iter().map(cells).collect()))
        }
        Ok(answer) => Ok(match answer.tag {
            Tag::Count(_, count) | Tag::Insert(count) => Answer::Count(count),
            Tag::Word(word) => Answer::tag(word),
        }),
        Err(SimError::Sql(error)) => Ok(Answer::Error(error.state().to_string())),
        Err(lost @ SimError::Lost) => Err(broken("in a healthy cluster", &lost)),
    }
}

impl Cluster {
    pub(crate) fn new(cx: SimCx, size: Size) -> Cluster {
        Cluster {
            cx,
            size,
            control: None,
            sessions: Vec::new(),
            level: None,
            conflicted: false,
        }
    }

    async fn control(&mut self) -> Result<&mut SimConn, Broken> {
        if self.control.is_none() {
            let conn = self.cx.connect(1).await;
            self.control = Some(conn.map_err(|error| broken("connect", &error))?);
        }
        Ok(self.control.as_mut().expect("just made"))
    }

    async fn must(&mut self, statements: &[String]) -> Result<(), Broken> {
        for sql in statements {
            let answer = self.control().await?.query(sql).await;
            answer.map_err(|error| broken(sql, &error))?;
        }
        Ok(())
    }

    /// Takes in answers; whether some question has none.
    fn look(&mut self) -> Result<bool, Broken> {
        let mut waits = false;
        for session in self.sessions.iter_mut().filter(|session| session.asked) {
            match session.conn.take_answer() {
                Some(answer) => {
                    let answer = seen(answer)?;
                    self.conflicted |= matches!(&answer, Answer::Error(state) if state == "40001");
                    session.answer = Some(answer);
                    session.asked = false;
                }
                None => waits = true,
            }
        }
        Ok(waits)
    }
}

impl System for Cluster {
    fn name(&self) -> String {
        self.size.name()
    }

    fn is_strict(&self) -> bool {
        true
    }

    async fn open(&mut self, spec: &Spec, level: Level) -> Result<(), Broken> {
        if core::mem::take(&mut self.conflicted) {
            self.cx.sleep(NO_REPETITION_US).await;
        }
        self.must(&spec.setup).await?;
        if self.level != Some(level) {
            self.sessions.clear();
            self.level = Some(level);
        }
        while self.sessions.len() < spec.sessions.len() {
            let node = self.sessions.len() as u16 % self.size.nodes + 1;
            let level = [("default_transaction_isolation", level.sql())];
            let conn = self.cx.connect_with(node, &level).await;
            self.sessions.push(Session {
                conn: conn.map_err(|error| broken("connect", &error))?,
                asked: false,
                answer: None,
            });
        }
        Ok(())
    }

    async fn begin(&mut self, session: usize, sql: &str) -> Result<(), Broken> {
        let session = &mut self.sessions[session];
        assert!(!session.asked, "the session is idle");
        session.conn.start(sql);
        session.asked = true;
        session.answer = None;
        Ok(())
    }

    async fn settle(&mut self) -> Result<(), Broken> {
        self.cx.quiet(SILENCE_US).await;
        if self.look()? {
            self.cx.sleep(PATIENCE_US).await;
            self.cx.quiet(SILENCE_US).await;
            self.look()?;
        }
        Ok(())
    }

    fn take(&mut self, session: usize) -> Result<Option<Answer>, Broken> {
        Ok(self.sessions[session].answer.take())
    }

    async fn cancel(&mut self, session: usize) -> Result<(), Broken> {
        self.sessions[session].conn.cancel();
        self.cx.sleep(PATIENCE_US).await;
        Ok(())
    }

    async fn ask(&mut self, sql: &str) -> Result<Answer, Broken> {
        let answer = self.control().await?.query(sql).await;
        seen(answer)
    }

    async fn close(&mut self, spec: &Spec) -> Result<(), Broken> {
        self.must(&spec.teardown).await
    }
}

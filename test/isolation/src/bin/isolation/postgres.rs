//! PostgreSQL as a system under test: a connection per session, and one that asks who is blocked.
//!
//! Which of the sessions of a deadlock is rolled back is the one that looks for it first. So that
//! this does not depend on how busy the machine is, a session looks soon only if others wait when
//! its step begins: it is then the last that joins.

use crate::wire::Wire;
use isolation::run::Broken;
use isolation::{Answer, Level, Spec, System};
use std::io;
use std::time::{Duration, Instant};

/// Whoever may close a circle looks for it when it has waited so long.
const SOON: &str = "3ms";
/// Everybody else; not for ever, because a statement that waits twice may close one as well.
const LATE: &str = "1s";
/// A session that looks soon and still waits so long after it was asked is not part of a deadlock.
const BLOCKED_AFTER: Duration = Duration::from_millis(15);
/// Pause before the server is asked who is blocked.
const PATIENCE: Duration = Duration::from_millis(1);
/// A session that neither answers nor is blocked for this long is broken.
const LIMIT: Duration = Duration::from_secs(20);

struct Session {
    wire: Wire,
    /// When the question under way was asked.
    asked: Option<Instant>,
    answer: Option<Answer>,
    /// Its deadlock timeout, if no rollback can have changed it.
    looks: Option<&'static str>,
}

/// The server.
pub(crate) struct Postgres {
    address: String,
    database: String,
    control: Wire,
    sessions: Vec<Session>,
    /// Default level of the sessions' transactions.
    level: Option<Level>,
}

fn broken(what: &str, error: impl std::fmt::Display) -> Broken {
    Broken(format!("{what}: {error}"))
}

impl Postgres {
    pub(crate) fn connect(address: &str, database: &str) -> io::Result<Postgres> {
        Ok(Postgres {
            address: address.to_owned(),
            database: database.to_owned(),
            control: Wire::connect(address, database)?,
            sessions: Vec::new(),
            level: None,
        })
    }

    /// Statements beside the sessions, all of which must succeed.
    fn must(&mut self, statements: &[String]) -> Result<(), Broken> {
        for sql in statements {
            match self.control.ask(sql).map_err(|error| broken(sql, error))? {
                Answer::Error(state) => return Err(broken(sql, state)),
                _ => continue,
            }
        }
        Ok(())
    }

    /// Sessions that wait for others, of those that have not answered.
    fn blocked(&mut self) -> Result<Vec<i32>, Broken> {
        let pending = self
            .sessions
            .iter()
            .filter(|session| session.asked.is_some());
        let pids: Vec<String> = pending
            .map(|session| session.wire.pid.to_string())
            .collect();
        let sql = format!(
            "select pid from unnest(array[{}]) as pid where pg_blocking_pids(pid) <> '{{}}'",
            pids.join(",")
        );
        match self
            .control
            .ask(&sql)
            .map_err(|error| broken(&sql, error))?
        {
            Answer::Rows(rows) => Ok(rows.iter().filter_map(|row| row[0].parse().ok()).collect()),
            other => Err(broken(&sql, other)),
        }
    }

    /// Sessions that have not answered.
    fn waiting(&self) -> usize {
        let asked = self
            .sessions
            .iter()
            .filter(|session| session.asked.is_some());
        asked.count()
    }

    /// Takes in answers; whether all questions are answered.
    fn look(&mut self) -> Result<bool, Broken> {
        let mut all = true;
        for session in &mut self.sessions {
            if session.asked.is_some() {
                match session.wire.look() {
                    Ok(Some(answer)) => {
                        session.asked = None;
                        if answer.failed() {
                            session.looks = None;
                        }
                        session.answer = Some(answer);
                    }
                    Ok(None) => all = false,
                    Err(error) => return Err(broken("a connection broke", error)),
                }
            }
        }
        Ok(all)
    }
}

impl System for Postgres {
    fn name(&self) -> String {
        "postgres-15".to_owned()
    }

    fn is_strict(&self) -> bool {
        false
    }

    async fn open(&mut self, spec: &Spec, level: Level) -> Result<(), Broken> {
        self.must(&spec.setup)?;
        if self.level != Some(level) {
            self.sessions.clear();
            self.level = Some(level);
        }
        while self.sessions.len() < spec.sessions.len() {
            let mut wire = Wire::connect(&self.address, &self.database)
                .map_err(|error| broken("a session cannot connect", error))?;
            let sql = format!("set default_transaction_isolation = '{}'", level.sql());
            wire.ask(&sql).map_err(|error| broken(&sql, error))?;
            self.sessions.push(Session {
                wire,
                asked: None,
                answer: None,
                looks: None,
            });
        }
        Ok(())
    }

    async fn begin(&mut self, session: usize, sql: &str) -> Result<(), Broken> {
        let looks = if self.waiting() > 0 { SOON } else { LATE };
        let session = &mut self.sessions[session];
        assert!(session.asked.is_none(), "the session is idle");
        if session.looks != Some(looks) {
            let set = format!("set deadlock_timeout = '{looks}'");
            // Refused in a block that has failed, which waits for nothing.
            session
                .wire
                .ask(&set)
                .map_err(|error| broken(&set, error))?;
            session.looks = Some(looks);
        }
        if sql == "begin" || sql == "commit" || sql == "rollback" {
            session.looks = None;
        }
        session.asked = Some(Instant::now());
        session.answer = None;
        session.wire.send(sql).map_err(|error| broken(sql, error))
    }

    async fn settle(&mut self) -> Result<(), Broken> {
        let begin = Instant::now();
        loop {
            if self.look()? {
                return Ok(());
            }
            let waits = self
                .sessions
                .iter()
                .filter_map(|of| Some((of.asked?, of.looks)));
            let (youngest, looks) = waits.max().expect("somebody has not answered");
            let blocked_after = match looks {
                Some(LATE) => Duration::ZERO,
                _ => BLOCKED_AFTER,
            };
            if youngest.elapsed() < PATIENCE {
                std::thread::sleep(Duration::from_micros(50));
                continue;
            }
            let blocked = self.blocked()?;
            let mut pending = self
                .sessions
                .iter()
                .filter(|session| session.asked.is_some());
            if pending.all(|session| blocked.contains(&session.wire.pid)) {
                if youngest.elapsed() >= blocked_after {
                    // An answer may have come while the server was asked.
                    let waiting = self.waiting();
                    self.look()?;
                    if self.waiting() == waiting {
                        return Ok(());
                    }
                }
                std::thread::sleep(blocked_after.saturating_sub(youngest.elapsed()));
            } else {
                std::thread::sleep(Duration::from_micros(100));
            }
            if begin.elapsed() > LIMIT {
                return Err(Broken(
                    "a session neither answers nor is blocked".to_owned(),
                ));
            }
        }
    }

    fn take(&mut self, session: usize) -> Result<Option<Answer>, Broken> {
        Ok(self.sessions[session].answer.take())
    }

    async fn cancel(&mut self, session: usize) -> Result<(), Broken> {
        let cancelled = self.sessions[session].wire.cancel();
        cancelled.map_err(|error| broken("a cancel request cannot be sent", error))?;
        let deadline = Instant::now() + LIMIT;
        while self.sessions[session].asked.is_some() {
            self.look()?;
            if Instant::now() > deadline {
                return Err(Broken(
                    "a session does not heed a cancel request".to_owned(),
                ));
            }
        }
        Ok(())
    }

    async fn ask(&mut self, sql: &str) -> Result<Answer, Broken> {
        self.control.ask(sql).map_err(|error| broken(sql, error))
    }

    async fn close(&mut self, spec: &Spec) -> Result<(), Broken> {
        self.must(&spec.teardown)
    }
}

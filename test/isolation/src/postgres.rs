//! PostgreSQL as a system under test: one connection per session, one to ask which are blocked.
//!
//! Which of the sessions of a deadlock is rolled back is the one that looks for it first. So that
//! this does not depend on how busy the machine is, a session looks soon only if others wait when
//! its step begins: it is then the last that joins.

use crate::wire::Wire;
use isolation::run::Broken;
use isolation::{Answer, Level, Spec, System};
use std::io;
use std::time::{Duration, Instant};

/// `deadlock_timeout` of a session whose step may close a circle of waits.
const SOON: &str = "3ms";
/// `deadlock_timeout` of all other sessions. Not endless: a statement that waits twice may close a
/// circle too.
const LATE: &str = "1s";
/// Time after which a session with the short timeout has looked for a circle, even on a busy
/// machine. A session that waits later looks for the circle that it closes itself.
const LOOKED: Duration = Duration::from_millis(20);
/// Pause between looks.
const LOOK: Duration = Duration::from_micros(100);
/// Pause before the server is asked which sessions are blocked.
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

    /// Which session waits for which, of those that have not answered.
    fn blocked(&mut self) -> Result<Vec<(i32, i32)>, Broken> {
        let pending = self.sessions.iter().filter(|of| of.asked.is_some());
        let pids: Vec<String> = pending.map(|of| of.wire.pid.to_string()).collect();
        let sql = format!(
            "select pid, blocker from unnest(array[{}]) pid, unnest(pg_blocking_pids(pid)) blocker",
            pids.join(",")
        );
        let answer = self
            .control
            .ask(&sql)
            .map_err(|error| broken(&sql, error))?;
        let Answer::Rows(rows) = answer else {
            return Err(broken(&sql, answer));
        };
        let number = |cell: &String| cell.parse().map_err(|error| broken(cell, error));
        let pair = |row: &Vec<String>| Ok((number(&row[0])?, number(&row[1])?));
        rows.iter().map(pair).collect()
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

/// Whether a session waits for itself by way of others.
fn has_circle(waits: &[(i32, i32)]) -> bool {
    let mut left = waits.to_vec();
    loop {
        let before = left.len();
        // A session that waits for one that does not wait is in no circle.
        let waiters: Vec<i32> = left.iter().map(|(pid, _)| *pid).collect();
        left.retain(|(_, blocker)| waiters.contains(blocker));
        if left.len() == before {
            return before > 0;
        }
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
        while !self.look()? {
            let patience = |of: &Session| match of.looks {
                Some(SOON) => LOOKED,
                _ => PATIENCE,
            };
            let is_due = |of: &Session| of.asked.is_none_or(|at| at.elapsed() >= patience(of));
            if self.sessions.iter().all(is_due) {
                let waits = self.blocked()?;
                let mut pending = self.sessions.iter().filter(|of| of.asked.is_some());
                let all = pending.all(|of| waits.iter().any(|(pid, _)| *pid == of.wire.pid));
                let waiting = self.waiting();
                // An answer may have come while the server was asked. It will break a circle.
                if all && !has_circle(&waits) && !self.look()? && self.waiting() == waiting {
                    return Ok(());
                }
            }
            std::thread::sleep(LOOK);
            if begin.elapsed() > LIMIT {
                return Err(Broken(
                    "a session neither answers nor is blocked".to_owned(),
                ));
            }
        }
        Ok(())
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

#[cfg(test)]
mod tests {
    use super::has_circle;

    #[test]
    fn circles_are_told_from_queues() {
        assert!(!has_circle(&[]));
        assert!(!has_circle(&[(1, 9), (2, 1), (3, 2), (3, 1)]));
        assert!(has_circle(&[(1, 2), (2, 1)]));
        assert!(has_circle(&[(1, 2), (2, 3), (3, 1), (4, 9)]));
    }
}

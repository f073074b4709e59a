//! The runner against a database of one row, with and without isolation: it must see the faults of
//! the one and none in the other.

use super::*;
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

/// How much isolation the toy has.
#[derive(Clone, Copy, PartialEq)]
enum Isolation {
    /// Writes are visible at once, ROLLBACK takes them back.
    None,
    /// The first statement of a block waits until it is alone.
    Serial,
    /// As `None`, and a session that writes never gets an answer.
    Deaf,
}

/// One row with one value.
struct Toy {
    isolation: Isolation,
    /// What it says of its level.
    says: Level,
    value: String,
    owner: Option<usize>,
    /// Value before the block, and what is asked, of each session.
    before: Vec<Option<String>>,
    asked: Vec<Option<String>>,
    answers: Vec<Option<Answer>>,
}

impl Toy {
    fn new(isolation: Isolation) -> Toy {
        Toy {
            isolation,
            says: Level::Serializable,
            value: String::new(),
            owner: None,
            before: Vec::new(),
            asked: Vec::new(),
            answers: Vec::new(),
        }
    }

    fn work(&mut self, session: usize) {
        let Some(sql) = self.asked[session].clone() else {
            return;
        };
        let is_statement = sql.starts_with("select") || sql.starts_with("update");
        if self.isolation == Isolation::Serial && is_statement {
            if self.owner.is_some_and(|owner| owner != session) {
                return;
            }
            if self.before[session].is_some() {
                self.owner = Some(session);
            }
        }
        let answer = match sql.as_str() {
            "begin" => {
                self.before[session] = Some(self.value.clone());
                Answer::tag("BEGIN")
            }
            "commit" | "rollback" => {
                let before = self.before[session].take();
                if sql == "rollback" {
                    self.value = before.unwrap_or(self.value.clone());
                }
                if self.owner == Some(session) {
                    self.owner = None;
                }
                Answer::tag(&sql)
            }
            "select v" => Answer::rows(vec![vec![self.value.clone()]]),
            "show transaction_isolation" => Answer::rows(vec![vec![self.says.sql().into()]]),
            other => {
                if self.isolation == Isolation::Deaf {
                    return;
                }
                self.value = other.strip_prefix("update ").expect("known").to_owned();
                Answer::Count(1)
            }
        };
        self.asked[session] = None;
        self.answers[session] = Some(answer);
    }
}

impl System for Toy {
    fn name(&self) -> String {
        "toy".into()
    }
    fn is_strict(&self) -> bool {
        true
    }
    async fn open(&mut self, spec: &Spec, _: Level) -> Result<(), Broken> {
        self.value = "10".into();
        self.owner = None;
        self.before = vec![None; spec.sessions.len()];
        self.asked = vec![None; spec.sessions.len()];
        self.answers = vec![None; spec.sessions.len()];
        Ok(())
    }
    async fn begin(&mut self, session: usize, sql: &str) -> Result<(), Broken> {
        assert!(self.asked[session].is_none(), "the session is idle");
        self.asked[session] = Some(sql.to_owned());
        Ok(())
    }
    async fn settle(&mut self) -> Result<(), Broken> {
        for _ in 0..2 {
            (0..self.asked.len()).for_each(|session| self.work(session));
        }
        Ok(())
    }
    fn take(&mut self, session: usize) -> Result<Option<Answer>, Broken> {
        Ok(self.answers[session].take())
    }
    async fn cancel(&mut self, session: usize) -> Result<(), Broken> {
        self.asked[session] = None;
        self.answers[session] = Some(Answer::Error("57014".into()));
        Ok(())
    }
    async fn ask(&mut self, _: &str) -> Result<Answer, Broken> {
        Ok(Answer::rows(vec![vec![self.value.clone()]]))
    }
    async fn close(&mut self, _: &Spec) -> Result<(), Broken> {
        assert!(self.asked.iter().all(Option::is_none), "sessions are idle");
        Ok(())
    }
}

/// The toy never waits for anything outside, so one poll is all.
fn explored(toy: &mut Toy, text: &str, level: Level) -> Report {
    let spec = Spec::parse(text).unwrap();
    let future = pin!(explore(toy, &spec, level));
    match future.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(report) => report.unwrap(),
        Poll::Pending => panic!("the toy answers at once"),
    }
}

const LOST: &str = "\
# Lost update.
session a
  ra  select v
  wa  update 11
  ca  commit
session b
  rb  select v
  wb  update 12
final select v
anomaly P4 when ra == [10] and rb == [10] and committed(a) and committed(b)
";

#[test]
fn without_isolation_both_judges_see_the_faults() {
    let report = explored(&mut Toy::new(Isolation::None), LOST, Level::Serializable);
    assert_eq!(
        report.section.count(Anomaly::P4).1,
        10,
        "nobody waits: all are possible"
    );
    assert!(report.section.count(Anomaly::P4).0 > 0);
    assert!(report.section.count(Anomaly::NotSerial).0 > 0);
    assert!(report.faults.len() >= report.section.count(Anomaly::P4).0);
    // The same seen by the comparison alone, and by the condition alone.
    let serial_only = LOST.replace("anomaly", "# anomaly");
    let found = explored(
        &mut Toy::new(Isolation::None),
        &serial_only,
        Level::Serializable,
    );
    assert!(!found.faults.is_empty());
    let condition_only = format!("{LOST}not serial: only the condition is tested\n");
    let found = explored(
        &mut Toy::new(Isolation::None),
        &condition_only,
        Level::RepeatableRead,
    );
    assert!(!found.faults.is_empty());
    // A level that allows it.
    let mut weak = Toy::new(Isolation::None);
    weak.says = Level::ReadCommitted;
    let found = explored(&mut weak, LOST, Level::ReadCommitted);
    assert_eq!(found.faults, []);
    assert!(found.section.count(Anomaly::P4).0 > 0);
}

#[test]
fn a_rolled_back_write_is_not_read() {
    let text = "\
# Aborted read.
session a
  wa  update 11
  ca  rollback
session b
  rb  select v
final select v
anomaly G1a when rb == [11]
";
    let report = explored(&mut Toy::new(Isolation::None), text, Level::ReadCommitted);
    assert_eq!(report.section.count(Anomaly::G1a), (1, 3));
    assert!(
        report.faults[0].0.starts_with("aba at read committed: G1a"),
        "{:?}",
        report.faults
    );
}

#[test]
fn serial_execution_passes_and_waits() {
    let mut toy = Toy::new(Isolation::Serial);
    let report = explored(&mut toy, LOST, Level::Serializable);
    assert_eq!(report.faults, []);
    let words: Vec<&String> = report.section.0.values().flatten().collect();
    assert!(
        words.len() < 10,
        "a step of a session that waits cannot be begun: {words:?}"
    );
    assert!(words.contains(&&"aabab".to_string()), "{words:?}");
    let waits = report
        .section
        .0
        .keys()
        .any(|line| line.outcome.contains('~'));
    assert!(waits, "{:?}", report.section);
}

#[test]
fn a_weaker_level_than_asked_for_is_a_fault() {
    let mut toy = Toy::new(Isolation::Serial);
    toy.says = Level::ReadCommitted;
    let report = explored(&mut toy, LOST, Level::RepeatableRead);
    assert!(report.faults[0].0.contains("read committed is given"));
    let report = explored(&mut toy, LOST, Level::ReadCommitted);
    assert_eq!(report.faults, []);
}

#[test]
fn who_is_never_answered_is_cancelled_and_shown() {
    let text = LOST
        .replace("  ca  commit\n", "")
        .replace("# Lost", "not serial: x\n# Lost");
    let mut toy = Toy::new(Isolation::Deaf);
    let report = explored(&mut toy, &text, Level::ReadCommitted);
    let lines: Vec<String> = report.section.0.keys().map(Line::to_string).collect();
    assert_eq!(lines, ["a [10] ~? ~? | b [10] ~? ~? | [10]"]);
}

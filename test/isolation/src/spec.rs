//! Scripts and their form.
//!
//! ```text
//! # What it is about; the first comment goes into the published table.
//! setup
//!   create table t (id int primary key, v int)
//!   insert into t values (1, 10), (2, 20)
//! session a
//!   read   select v from t where id = 1
//!   write  update t set v = 11 where id = 1
//!   end    commit
//! session b autocommit
//!   look   select v from t
//! final select * from t
//! anomaly P4 when read == [10] and committed(a) and final has [1,10]
//! ----
//! (what is recorded: see `record`)
//! ```
//!
//! * One statement per line. Every line of `setup` is a transaction of its own. Tables are dropped
//!   by `teardown`, for systems that are not made anew for every interleaving.
//! * A session is a transaction block, begun before the first step in order of the sessions, and
//!   committed after the last one if its own last step does not end it. With `autocommit` each
//!   step is a transaction.
//! * Names of sessions are one letter, names of steps a word, unique in the file.
//! * `anomaly NAME [at every level] when CONDITION`, see `condition`; several of one name are
//!   alternatives. `at every level`: forbidden even where its name is not.
//! * `orders WORD...` instead of all interleavings. `not serial: REASON`: the comparison with
//!   serial executions does not apply, for example because a sequence is not rolled back.

use crate::SpecError;
use crate::anomaly::{Anomaly, Level};
use crate::condition::Condition;
use crate::interleave;
use crate::record::Records;
use std::collections::BTreeSet;

/// Largest number of interleavings of a script. More would take too long to run.
pub const ORDERS_MAX: u64 = 2_000;

/// A step of a session.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Step {
    /// Its name, unique in the script.
    pub name: String,
    /// Its statement.
    pub sql: String,
}

/// What one client does.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Session {
    /// One letter.
    pub name: String,
    /// Each step is a transaction.
    pub autocommit: bool,
    /// In order.
    pub steps: Vec<Step>,
}

impl Session {
    /// Whether the last step ends the block.
    pub fn ends_itself(&self) -> bool {
        let last = self.steps.last().map_or("", |step| &step.sql);
        self.autocommit || last == "commit" || last == "rollback"
    }

    /// Answers that an outcome has of it: one per step, and one of the runner's COMMIT.
    pub fn answers(&self) -> usize {
        self.steps.len() + usize::from(!self.ends_itself())
    }
}

/// When an anomaly is visible.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rule {
    /// Which one.
    pub kind: Anomaly,
    /// The weakest level at which it is forbidden here.
    pub forbidden_from: Level,
    /// When it is visible.
    pub when: Condition,
}

/// A script.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Spec {
    /// What it is about.
    pub title: String,
    /// Statements that make the tables.
    pub setup: Vec<String>,
    /// Statements that remove them.
    pub teardown: Vec<String>,
    /// The clients.
    pub sessions: Vec<Session>,
    /// Queries in the end; conditions call the last one `final`.
    pub last: Vec<String>,
    /// What must not be seen.
    pub rules: Vec<Rule>,
    /// Each as the session of each step.
    pub orders: Vec<Vec<usize>>,
    /// Whether SERIALIZABLE is compared with serial executions.
    pub serial: bool,
    /// What is recorded.
    pub records: Records,
    /// The script as it stands in the file, up to the records.
    pub text: String,
}

impl Spec {
    /// Reads a file.
    ///
    /// # Errors
    /// A line that has no place or no meaning.
    pub fn parse(text: &str) -> Result<Spec, SpecError> {
        let mut reader = Reader::default();
        let mut lines = text.lines().enumerate();
        for (index, line) in lines.by_ref() {
            if line.starts_with("----") {
                break;
            }
            reader.line(index + 1, line)?;
        }
        let head = text.lines().take_while(|line| !line.starts_with("----"));
        let count = head.clone().count();
        let text_lines: Vec<&str> = head.collect();
        let recorded = text.lines().enumerate().skip(count);
        let mut spec = reader.finish(count)?;
        spec.records = Records::parse(recorded.map(|(index, line)| (index + 1, line)))?;
        spec.text = format!("{}\n", text_lines.join("\n").trim_end());
        Ok(spec)
    }

    /// The whole file with what is recorded now.
    pub fn file(&self) -> String {
        format!("{}\n{}", self.text, self.records)
    }

    /// Session and number of the step of this name.
    pub fn step(&self, name: &str) -> Option<(usize, usize)> {
        self.sessions.iter().enumerate().find_map(|(session, of)| {
            let number = of.steps.iter().position(|step| step.name == name)?;
            Some((session, number))
        })
    }

    /// The session of this name.
    pub fn session(&self, name: &str) -> Option<usize> {
        self.sessions
            .iter()
            .position(|session| session.name == name)
    }

    /// An interleaving as a word, one letter per step.
    pub fn word(&self, order: &[usize]) -> String {
        order
            .iter()
            .map(|session| self.sessions[*session].name.as_str())
            .collect()
    }
}

/// The block that indented lines belong to.
#[derive(Default, PartialEq)]
enum Block {
    #[default]
    None,
    Setup,
    Teardown,
    Session,
}

#[derive(Default)]
struct Reader {
    title: Option<String>,
    setup: Vec<String>,
    teardown: Vec<String>,
    sessions: Vec<Session>,
    last: Vec<String>,
    rules: Vec<(usize, Rule)>,
    orders: Vec<(usize, String)>,
    unserial: bool,
    block: Block,
}

impl Reader {
    fn line(&mut self, number: usize, line: &str) -> Result<(), SpecError> {
        let wrong = |what| Err(SpecError::new(number, what, line.trim()));
        if let Some(comment) = line.strip_prefix('#') {
            self.title.get_or_insert_with(|| comment.trim().to_owned());
            return Ok(());
        }
        if line.trim().is_empty() {
            return Ok(());
        }
        if line.starts_with(' ') {
            let line = line.trim();
            match self.block {
                Block::Setup => self.setup.push(line.to_owned()),
                Block::Teardown => self.teardown.push(line.to_owned()),
                Block::Session => {
                    let Some((name, sql)) = line.split_once(' ') else {
                        return wrong("a step has a name and a statement");
                    };
                    let session = self.sessions.last_mut().expect("the block was begun");
                    session.steps.push(Step {
                        name: name.to_owned(),
                        sql: sql.trim().to_owned(),
                    });
                }
                Block::None => return wrong("an indented line belongs to nothing"),
            }
            return Ok(());
        }
        self.block = Block::None;
        self.head(number, line)
    }

    /// A line that begins something.
    fn head(&mut self, number: usize, line: &str) -> Result<(), SpecError> {
        let wrong = |what| Err(SpecError::new(number, what, line));
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "setup" => self.block = Block::Setup,
            "teardown" => self.block = Block::Teardown,
            "session" => {
                let (name, autocommit) = match rest.split_once(' ') {
                    None => (rest, false),
                    Some((name, "autocommit")) => (name, true),
                    Some(_) => return wrong("a session may only be autocommit"),
                };
                if name.len() != 1 || self.sessions.iter().any(|other| other.name == name) {
                    return wrong("the name of a session is one letter of its own");
                }
                self.block = Block::Session;
                self.sessions.push(Session {
                    name: name.to_owned(),
                    autocommit,
                    steps: Vec::new(),
                });
            }
            "final" => self.last.push(rest.to_owned()),
            "anomaly" => self.rules.push((number, rule(number, rest)?)),
            "orders" => {
                let words = rest.split_whitespace();
                self.orders
                    .extend(words.map(|word| (number, word.to_owned())));
            }
            "not" if rest.starts_with("serial: ") => self.unserial = true,
            _ => return wrong("nothing begins like this"),
        }
        Ok(())
    }

    fn finish(self, lines: usize) -> Result<Spec, SpecError> {
        let wrong = |what, at: &str| Err(SpecError::new(lines, what, at));
        let Some(title) = self.title else {
            return wrong(
                "a script begins with a comment that says what it is about",
                "",
            );
        };
        if self.sessions.is_empty() || self.last.is_empty() {
            return wrong("a script has sessions and a final query", "");
        }
        let mut names = BTreeSet::from(["final"]);
        for session in &self.sessions {
            for step in &session.steps {
                if !names.insert(&step.name) {
                    return wrong("two steps have one name", &step.name);
                }
            }
        }
        let mut spec = Spec {
            title,
            setup: self.setup,
            teardown: self.teardown,
            sessions: self.sessions,
            last: self.last,
            rules: Vec::new(),
            orders: Vec::new(),
            serial: !self.unserial,
            records: Records::default(),
            text: String::new(),
        };
        spec.orders = orders(&spec, &self.orders, lines)?;
        for (number, rule) in self.rules {
            let mut unknown = None;
            rule.when.each_name(&mut |is_step, name| {
                let known = match is_step {
                    true => name == "final" || spec.step(name).is_some(),
                    false => spec.session(name).is_some(),
                };
                if !known {
                    unknown = Some(name.to_owned());
                }
            });
            if let Some(name) = unknown {
                return Err(SpecError::new(
                    number,
                    "no step or session has this name",
                    &name,
                ));
            }
            spec.rules.push(rule);
        }
        Ok(spec)
    }
}

/// `NAME [at every level] when CONDITION`.
fn rule(number: usize, rest: &str) -> Result<Rule, SpecError> {
    let wrong = |what| SpecError::new(number, what, rest);
    let (head, condition) = rest
        .split_once(" when ")
        .ok_or_else(|| wrong("an anomaly has a condition"))?;
    let (name, always) = match head.strip_suffix(" at every level") {
        Some(name) => (name, true),
        None => (head, false),
    };
    let kind = Anomaly::of_name(name)
        .filter(|kind| *kind != Anomaly::NotSerial)
        .ok_or_else(|| wrong("no anomaly has this name"))?;
    Ok(Rule {
        kind,
        forbidden_from: match always {
            true => Level::ReadCommitted,
            false => kind.forbidden_from(),
        },
        when: Condition::parse(condition, number)?,
    })
}

/// All interleavings, or those that the script names.
fn orders(
    spec: &Spec,
    named: &[(usize, String)],
    lines: usize,
) -> Result<Vec<Vec<usize>>, SpecError> {
    let counts: Vec<usize> = spec.sessions.iter().map(|of| of.steps.len()).collect();
    if named.is_empty() {
        if interleave::count(&counts) > ORDERS_MAX {
            let count = interleave::count(&counts).to_string();
            return Err(SpecError::new(lines, "too many interleavings", &count));
        }
        return Ok(interleave::words(&counts));
    }
    let mut orders = Vec::new();
    for (number, word) in named {
        let order: Option<Vec<usize>> = word
            .chars()
            .map(|letter| spec.session(letter.encode_utf8(&mut [0; 4])))
            .collect();
        let fits = |order: &Vec<usize>| {
            let used = |session| order.iter().filter(|at| **at == session).count();
            (0..counts.len()).all(|session| used(session) == counts[session])
        };
        match order.filter(fits) {
            Some(order) => orders.push(order),
            None => {
                let wrong = "an order has one letter for each step of each session";
                return Err(SpecError::new(*number, wrong, word));
            }
        }
    }
    orders.sort();
    orders.dedup();
    Ok(orders)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
# Two increments.
# More about it.
setup
  create table t (id int primary key, v int)
teardown
  drop table t
session a
  ra  select v from t
  ca  commit
session b autocommit
  wb  update t set v = 1
final select v from t
anomaly P4 at every level when ra == [1] and committed(a)
";

    #[test]
    fn scripts_are_read() {
        let spec = Spec::parse(TEXT).unwrap();
        assert_eq!(spec.title, "Two increments.");
        assert_eq!(spec.orders, [[0, 0, 1], [0, 1, 0], [1, 0, 0]]);
        assert_eq!(spec.word(&spec.orders[1]), "aba");
        assert_eq!(spec.step("wb"), Some((1, 0)));
        assert_eq!(spec.rules[0].forbidden_from, Level::ReadCommitted);
        assert!(spec.sessions[1].autocommit && spec.serial);
        assert_eq!(spec.sessions[0].answers(), 2);
        assert!(spec.file().starts_with(TEXT));
        let named = Spec::parse(&format!("{TEXT}orders baa aba\n")).unwrap();
        assert_eq!(named.orders, [[0, 1, 0], [1, 0, 0]]);
    }

    #[test]
    fn mistakes_are_named_with_their_line() {
        let wrong = |text: &str| Spec::parse(text).unwrap_err().to_string();
        assert_eq!(
            wrong("hello"),
            "line 1: nothing begins like this: \"hello\""
        );
        assert!(wrong("").contains("begins with a comment"));
        assert!(wrong("# a\n  x").contains("belongs to nothing"));
        for (from, to) in [
            ("session b autocommit", "session a"),
            ("session b autocommit", "session b slowly"),
            ("  wb  update", "  ra  update"),
            ("committed(a)", "committed(z)"),
            ("when ra ==", "when rz =="),
            ("P4", "P5"),
            ("P4", "not-serial"),
            ("final select v from t\n", ""),
        ] {
            let text = TEXT.replace(from, to);
            assert!(Spec::parse(&text).is_err(), "{text}");
        }
        assert!(wrong(&format!("{TEXT}orders ab\n")).starts_with("line 14"));
        let steps: String = (0..9).map(|n| format!("  s{n}  select 1\n")).collect();
        let text = format!(
            "# x\nsession a\n{steps}session b\n{}final x",
            steps.replace('s', "t")
        );
        assert!(wrong(&text).contains("too many"));
    }
}

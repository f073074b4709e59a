//! The language in which scripts say when an anomaly is visible.
//!
//! ```text
//! condition := term { "or" term }
//! term      := factor { "and" factor }
//! factor    := "not" factor | "(" condition ")" | atom
//! atom      := "committed" "(" SESSION ")"
//!            | "failed" "(" STEP ")"
//!            | STEP ( "==" | "!=" ) ANSWER      ANSWER as outcomes print it: [1,10; 2,20] 1 ok
//!            | STEP ( "has" | "lacks" ) [ROW]   among the rows of the answer
//! ```
//!
//! `final` names the last query as a step. An error is only ever equal to its own SQLSTATE (`!=`
//! of an answer to a step that failed does not hold either): conditions are about what was read.

use crate::SpecError;
use crate::outcome::Answer;

/// A condition over one outcome.
#[derive(Clone, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum Condition {
    Any(Vec<Condition>),
    All(Vec<Condition>),
    Not(Box<Condition>),
    /// The transaction of this session committed.
    Committed(String),
    /// The step was answered by an error.
    Failed(String),
    /// The step was answered like this.
    Is(String, String),
    /// The step was answered, without an error, but not like this.
    IsNot(String, String),
    /// The rows of the step contain this one.
    Has(String, Vec<String>),
    /// The step returned rows, and not this one.
    Lacks(String, Vec<String>),
}

/// Where a condition finds what it asks for.
pub trait Facts {
    /// The answer of a step, or of `final`.
    fn answer(&self, step: &str) -> Option<&Answer>;
    /// Whether the session's transaction committed.
    fn committed(&self, session: &str) -> Option<bool>;
}

impl Condition {
    /// Reads a condition; `line` is for errors.
    ///
    /// # Errors
    /// It does not follow the grammar.
    pub fn parse(text: &str, line: usize) -> Result<Condition, SpecError> {
        let tokens = tokens(text, line)?;
        let mut parser = Parser {
            tokens: &tokens,
            line,
        };
        let condition = parser.any()?;
        match parser.tokens.first() {
            None => Ok(condition),
            Some(token) => Err(SpecError::new(line, "not part of the condition", token)),
        }
    }

    /// Whether it holds.
    pub fn holds(&self, facts: &dyn Facts) -> bool {
        let answer = |step: &str| {
            facts
                .answer(step)
                .expect("steps of conditions are checked when the script is read")
        };
        match self {
            Condition::Any(parts) => parts.iter().any(|part| part.holds(facts)),
            Condition::All(parts) => parts.iter().all(|part| part.holds(facts)),
            Condition::Not(part) => !part.holds(facts),
            Condition::Committed(session) => facts
                .committed(session)
                .expect("sessions of conditions are checked when the script is read"),
            Condition::Failed(step) => answer(step).failed(),
            Condition::Is(step, text) => answer(step).to_string() == *text,
            Condition::IsNot(step, text) => {
                !answer(step).failed() && answer(step).to_string() != *text
            }
            Condition::Has(step, row) => answer(step).has(row),
            Condition::Lacks(step, row) => {
                matches!(answer(step), Answer::Rows(_)) && !answer(step).has(row)
            }
        }
    }

    /// Calls `f` with every step (`true`) and session (`false`) that it names.
    pub fn each_name(&self, f: &mut dyn FnMut(bool, &str)) {
        match self {
            Condition::Any(parts) | Condition::All(parts) => {
                parts.iter().for_each(|part| part.each_name(f));
            }
            Condition::Not(part) => part.each_name(f),
            Condition::Committed(session) => f(false, session),
            Condition::Failed(step)
            | Condition::Is(step, _)
            | Condition::IsNot(step, _)
            | Condition::Has(step, _)
            | Condition::Lacks(step, _) => f(true, step),
        }
    }
}

/// Words, parentheses, and brackets with all that is in them.
fn tokens(text: &str, line: usize) -> Result<Vec<String>, SpecError> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '(' | ')' => 1,
            '[' => match rest.find(']') {
                Some(at) => at + 1,
                None => return Err(SpecError::new(line, "a bracket is not closed", rest)),
            },
            _ => rest
                .find(|c: char| c.is_whitespace() || "()[".contains(c))
                .unwrap_or(rest.len()),
        };
        tokens.push(rest[..length].to_owned());
        rest = rest[length..].trim_start();
    }
    Ok(tokens)
}

struct Parser<'a> {
    tokens: &'a [String],
    line: usize,
}

impl Parser<'_> {
    fn next(&mut self) -> Result<&str, SpecError> {
        let (first, rest) = self
            .tokens
            .split_first()
            .ok_or_else(|| SpecError::new(self.line, "the condition ends too early", ""))?;
        self.tokens = rest;
        Ok(first)
    }

    fn take(&mut self, word: &str) -> bool {
        let found = self.tokens.first().is_some_and(|token| token == word);
        if found {
            self.tokens = &self.tokens[1..];
        }
        found
    }

    fn expect(&mut self, word: &str) -> Result<(), SpecError> {
        if self.take(word) {
            return Ok(());
        }
        let at = self.tokens.first().map_or("", String::as_str);
        Err(SpecError::new(self.line, "a parenthesis is missing", at))
    }

    fn any(&mut self) -> Result<Condition, SpecError> {
        let mut parts = vec![self.all()?];
        while self.take("or") {
            parts.push(self.all()?);
        }
        Ok(match parts.len() {
            1 => parts.remove(0),
            _ => Condition::Any(parts),
        })
    }

    fn all(&mut self) -> Result<Condition, SpecError> {
        let mut parts = vec![self.factor()?];
        while self.take("and") {
            parts.push(self.factor()?);
        }
        Ok(match parts.len() {
            1 => parts.remove(0),
            _ => Condition::All(parts),
        })
    }

    fn factor(&mut self) -> Result<Condition, SpecError> {
        if self.take("not") {
            return Ok(Condition::Not(Box::new(self.factor()?)));
        }
        if self.take("(") {
            let inner = self.any()?;
            self.expect(")")?;
            return Ok(inner);
        }
        let line = self.line;
        let name = self.next()?.to_owned();
        if name == "committed" || name == "failed" {
            self.expect("(")?;
            let of = self.next()?.to_owned();
            self.expect(")")?;
            return Ok(match name == "committed" {
                true => Condition::Committed(of),
                false => Condition::Failed(of),
            });
        }
        let relation = self.next()?.to_owned();
        let value = self.next()?.to_owned();
        match relation.as_str() {
            "==" => Ok(Condition::Is(name, value)),
            "!=" => Ok(Condition::IsNot(name, value)),
            "has" => Ok(Condition::Has(name, row(&value, line)?)),
            "lacks" => Ok(Condition::Lacks(name, row(&value, line)?)),
            other => Err(SpecError::new(line, "no such relation", other)),
        }
    }
}

/// The cells of `[1,10]`.
fn row(text: &str, line: usize) -> Result<Vec<String>, SpecError> {
    let inner = text
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
        .ok_or_else(|| SpecError::new(line, "a row stands in brackets", text))?;
    Ok(inner.split(',').map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    struct One(Answer, bool);

    impl Facts for One {
        fn answer(&self, _: &str) -> Option<&Answer> {
            Some(&self.0)
        }
        fn committed(&self, _: &str) -> Option<bool> {
            Some(self.1)
        }
    }

    fn holds(text: &str, answer: &Answer, committed: bool) -> bool {
        let condition = Condition::parse(text, 1).unwrap();
        condition.holds(&One(answer.clone(), committed))
    }

    #[test]
    fn conditions_are_evaluated() {
        let rows = Answer::rows(vec![
            vec!["1".into(), "10".into()],
            vec!["2".into(), "9".into()],
        ]);
        assert!(holds("r == [1,10; 2,9]", &rows, false));
        assert!(!holds("r != [1,10; 2,9]", &rows, false));
        assert!(holds("r has [2,9] and r lacks [2,8]", &rows, false));
        assert!(holds(
            "not committed(a) and (failed(r) or r has [1,10])",
            &rows,
            false
        ));
        assert!(!holds("committed(a) or failed(r)", &rows, false));
        let error = Answer::Error("40001".into());
        assert!(
            !holds("r != [1]", &error, true),
            "what failed has read nothing"
        );
        assert!(!holds("r lacks [1]", &error, true));
        assert!(holds(
            "r == 40001! and failed(r) and committed(a)",
            &error,
            true
        ));
        assert!(holds("r == 2", &Answer::Count(2), true));
    }

    #[test]
    fn wrong_conditions_are_refused() {
        for text in [
            "",
            "r",
            "r ==",
            "r like [1]",
            "(r == 1",
            "r == 1 r",
            "r has 1",
            "r == [1",
        ] {
            assert!(Condition::parse(text, 7).is_err(), "{text}");
        }
        let error = Condition::parse("r has 1", 7).unwrap_err();
        assert_eq!(error.to_string(), "line 7: a row stands in brackets: \"1\"");
    }
}

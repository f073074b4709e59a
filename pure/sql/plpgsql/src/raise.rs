//! RAISE.

use crate::blocks::{codes, is_state};
use crate::compile::Compiler;
use crate::lexer::Kind;
use crate::program::{Level, Op, Raise, RaiseOption};
use base::{SqlError, SqlState};

const LEVELS: [(&str, Level); 6] = [
    ("debug", Level::Debug),
    ("log", Level::Log),
    ("info", Level::Info),
    ("notice", Level::Notice),
    ("warning", Level::Warning),
    ("exception", Level::Exception),
];

/// A format, cut at its marks.
fn parts(format: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut chars = format.chars().peekable();
    while let Some(c) = chars.next() {
        if c == '%' && chars.next_if_eq(&'%').is_none() {
            parts.push(String::new());
        } else if let Some(last) = parts.last_mut() {
            last.push(c);
        }
    }
    parts
}

impl Compiler<'_> {
    pub(crate) fn raise(&mut self) -> Result<(), SqlError> {
        let line = self.line();
        self.at += 1;
        if self.take_symbol(";") {
            self.emit_at(Op::RaiseAgain, line);
            return Ok(());
        }
        let mut raise = Raise {
            level: Level::Exception,
            parts: None,
            args: Vec::new(),
            condition: None,
            options: Vec::new(),
        };
        let level = LEVELS.iter().find(|(word, _)| self.is_word(0, word));
        if let Some((_, level)) = level {
            raise.level = *level;
            self.at += 1;
        }
        match self.peek_at(0).map(|token| token.kind.clone()) {
            Some(Kind::Text(_)) => self.format(&mut raise)?,
            Some(Kind::Word(word)) if word == "sqlstate" => {
                self.at += 1;
                let state = self.string()?;
                if !is_state(&state) {
                    return Err(SqlError::new(SqlState::SYNTAX, "invalid SQLSTATE code"));
                }
                raise.condition = Some((state.clone(), state));
            }
            Some(Kind::Word(word)) if word != "using" => {
                self.at += 1;
                let code = codes(&word)?[0];
                raise.condition = Some((code.to_owned(), word));
            }
            _ => {}
        }
        if self.take(&["using"]) {
            self.options(&mut raise)?;
        }
        self.expect_symbol(";")?;
        self.emit_at(Op::Raise(Box::new(raise)), line);
        Ok(())
    }

    fn format(&mut self, raise: &mut Raise) -> Result<(), SqlError> {
        let parts = parts(&self.string()?);
        while self.take_symbol(",") {
            let end = self.end_of(|token| token.is(",") || token.is_word("using"))?;
            raise.args.push(self.value_to(end)?);
        }
        let wanted = parts.len() - 1;
        if raise.args.len() != wanted {
            let few = if raise.args.len() < wanted {
                "few"
            } else {
                "many"
            };
            let message = format!("too {few} parameters specified for RAISE");
            return Err(SqlError::new(SqlState::SYNTAX, message));
        }
        raise.parts = Some(parts);
        Ok(())
    }

    fn options(&mut self, raise: &mut Raise) -> Result<(), SqlError> {
        loop {
            let name = self.name()?;
            let option = match name.as_str() {
                "message" => RaiseOption::Message,
                "detail" => RaiseOption::Detail,
                "hint" => RaiseOption::Hint,
                "errcode" => RaiseOption::State,
                "column" => RaiseOption::Column,
                "constraint" => RaiseOption::Constraint,
                "table" => RaiseOption::Table,
                "schema" | "datatype" => RaiseOption::Untold,
                other => {
                    let message =
                        format!("unrecognized RAISE statement option at or near \"{other}\"");
                    return Err(SqlError::new(SqlState::SYNTAX, message));
                }
            };
            if !self.take_symbol("=") {
                self.expect_symbol(":=")?;
            }
            let end = self.end_of(|token| token.is(","))?;
            let value = self.value_to(end)?;
            raise.options.push((option, value));
            if !self.take_symbol(",") {
                return Ok(());
            }
        }
    }
}

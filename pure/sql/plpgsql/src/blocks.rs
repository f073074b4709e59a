//! Blocks: declarations, bodies, handlers.

use crate::compile::{Around, Compiler};
use crate::conditions::CONDITIONS;
use crate::program::{Arm, Condition, Declared, Handlers, Op, Place};
use crate::unsupported;
use base::{SqlError, SqlState};

/// The codes of a condition of this name.
///
/// # Errors
/// 42704 if there is none.
pub(crate) fn codes(name: &str) -> Result<Vec<&'static str>, SqlError> {
    let found = CONDITIONS.iter().filter(|(known, _)| *known == name);
    let found: Vec<&str> = found.map(|(_, code)| *code).collect();
    match found.is_empty() {
        true => Err(SqlError::new(
            SqlState::UNDEFINED_OBJECT,
            format!("unrecognized exception condition \"{name}\""),
        )),
        false => Ok(found),
    }
}

/// Whether a text is a SQLSTATE.
pub(crate) fn is_state(text: &str) -> bool {
    let part = |byte: &u8| byte.is_ascii_digit() || byte.is_ascii_uppercase();
    text.len() == 5 && text.as_bytes().iter().all(part)
}

impl Compiler<'_> {
    /// A block, from DECLARE or BEGIN to its END.
    pub(crate) fn block(&mut self, label: Option<String>) -> Result<(), SqlError> {
        self.deeper(|it| it.block_inside(label))
    }

    fn block_inside(&mut self, label: Option<String>) -> Result<(), SqlError> {
        self.around.push(Around {
            label: label.clone(),
            is_loop: false,
            again: 0,
            exits: Vec::new(),
            names: self.visible.len(),
        });
        if self.take(&["declare"]) {
            while !self.is_word(0, "begin") {
                self.take(&["declare"]);
                self.declaration()?;
            }
        }
        self.expect(&["begin"])?;
        // A block without EXCEPTION enters nothing.
        let next = self.here() + 1;
        let entered = self.emit(Op::Jump(next));
        self.body(&["end", "exception"])?;
        if self.take(&["exception"]) {
            self.emit(Op::Leave);
            self.exception(entered)?;
        }
        self.expect(&["end"])?;
        self.end_label(label.as_deref())?;
        self.leave_around();
        Ok(())
    }

    /// The label behind END, and the semicolon unless the text ends.
    pub(crate) fn end_label(&mut self, label: Option<&str>) -> Result<(), SqlError> {
        if let Some(name) = self.peek_at(0).and_then(|token| token.name()) {
            match label {
                Some(label) if label == name => self.at += 1,
                Some(label) => {
                    let message =
                        format!("end label \"{name}\" differs from block's label \"{label}\"");
                    return Err(SqlError::new(SqlState::SYNTAX, message));
                }
                None => {
                    let message = format!("end label \"{name}\" specified for unlabeled block");
                    return Err(SqlError::new(SqlState::SYNTAX, message));
                }
            }
        }
        let outermost = self.around.len() == 1 && self.at == self.tokens.len();
        match outermost {
            true => Ok(()),
            false => self.expect_symbol(";"),
        }
    }

    /// Leaves a block or loop: its names go, its exits lead here.
    pub(crate) fn leave_around(&mut self) {
        let around = self.around.pop().expect("what is left was entered");
        self.visible.truncate(around.names);
        for place in around.exits {
            self.land(place);
        }
    }

    fn declaration(&mut self) -> Result<(), SqlError> {
        let name = self.name()?;
        if self.is_word(0, "alias") {
            return Err(unsupported("ALIAS"));
        }
        if self.is_word(0, "cursor") || self.is_word(0, "scroll") || self.is_word(0, "refcursor") {
            return Err(cursors());
        }
        let level = self.around.len();
        if self
            .visible
            .iter()
            .any(|it| it.level == level && it.name == name)
        {
            let message = format!("duplicate declaration at or near \"{name}\"");
            return Err(SqlError::new(SqlState::SYNTAX, message));
        }
        let is_constant = self.take(&["constant"]);
        let var = self.declared_type(&name)?;
        if self.is_word(0, "collate") {
            return Err(unsupported("COLLATE of a variable"));
        }
        let not_null = self.take(&["not", "null"]);
        self.program.variables[var].not_null = not_null;
        let has_default =
            self.take(&["default"]) || self.take_symbol(":=") || self.take_symbol("=");
        self.emit(Op::Reset(var));
        if has_default {
            let line = self.line();
            let value = self.value()?;
            let target = crate::program::Target::Variable(var);
            self.emit_at(Op::Assign(target, value), line);
        } else if not_null {
            let message = format!(
                "variable \"{name}\" must have a default value, since it's declared NOT NULL"
            );
            return Err(SqlError::new(SqlState(*b"22004"), message));
        } else {
            self.expect_symbol(";")?;
        }
        self.show(&name, var, is_constant);
        Ok(())
    }

    /// A variable of the type at the cursor.
    fn declared_type(&mut self, name: &str) -> Result<usize, SqlError> {
        let end = self.end_of(|token| {
            let words = ["not", "default", "collate"];
            token.is(":=") || token.is("=") || words.iter().any(|word| token.is_word(word))
        })?;
        if end == self.at {
            return Err(self.unexpected());
        }
        if end == self.at + 1 && self.is_word(0, "record") {
            self.at = end;
            return Ok(self.variable(name, Declared::Record));
        }
        let last = &self.tokens[end - 1];
        let copies = end >= self.at + 3 && self.tokens[end - 2].is("%");
        if copies && last.is_word("rowtype") {
            let sql = format!("SELECT * FROM {} LIMIT 0", self.piece(self.at, end - 2));
            let fragment = self.fragment(sql, end..end, false);
            self.at = end;
            return Ok(self.variable(name, Declared::Row(fragment)));
        }
        if copies && last.is_word("type") {
            let like = self.peek_at(0).and_then(|token| token.name());
            let like = like.and_then(|like| self.find(like)).map(|it| it.var);
            if end == self.at + 3 {
                let like = like.filter(|var| !self.is_record(*var));
                let like = like.ok_or_else(|| self.unexpected())?;
                self.at = end;
                return Ok(self.variable(name, Declared::Like(like)));
            }
            if end < self.at + 5 || !self.tokens[end - 4].is(".") {
                return Err(self.unexpected());
            }
            let column = self.piece(end - 3, end - 2);
            let table = self.piece(self.at, end - 4);
            let sql = format!("SELECT {column} FROM {table} LIMIT 0");
            let fragment = self.fragment(sql, end..end, false);
            self.at = end;
            return Ok(self.variable(name, Declared::Column(fragment)));
        }
        let mut parts = self.tokens[self.at..end]
            .iter()
            .filter_map(|token| token.name());
        let type_name = match self.is_symbol(1, ".") {
            true => parts.nth(1),
            false => parts.next(),
        };
        let type_name = type_name.map(str::to_owned);
        if type_name.as_deref() == Some("refcursor") {
            return Err(cursors());
        }
        let sql = format!("SELECT CAST(NULL AS {})", self.piece(self.at, end));
        let fragment = self.fragment(sql, end..end, false);
        self.at = end;
        let var = self.variable(name, Declared::Named(fragment));
        self.program.variables[var].type_name = type_name;
        Ok(var)
    }

    /// The handlers behind EXCEPTION.
    fn exception(&mut self, entered: Place) -> Result<(), SqlError> {
        let number = self.program.handlers.len();
        let names = self.visible.len();
        let state = self.variable("sqlstate", Declared::Text);
        let message = self.variable("sqlerrm", Declared::Text);
        self.program.handlers.push(Handlers {
            arms: Vec::new(),
            state,
            message,
        });
        self.program.ops[entered] = Op::Enter {
            handlers: number,
            level: self.around.len(),
        };
        self.show("sqlstate", state, true);
        self.show("sqlerrm", message, true);
        let mut ends = vec![self.emit(Op::Jump(0))];
        if !self.is_word(0, "when") {
            return Err(self.unexpected());
        }
        while self.take(&["when"]) {
            let mut conditions = self.condition()?;
            while self.take(&["or"]) {
                conditions.extend(self.condition()?);
            }
            self.expect(&["then"])?;
            let to = self.here();
            self.program.handlers[number]
                .arms
                .push(Arm { conditions, to });
            self.body(&["when", "end"])?;
            self.emit(Op::Handled);
            ends.push(self.emit(Op::Jump(0)));
        }
        for place in ends {
            self.land(place);
        }
        self.visible.truncate(names);
        Ok(())
    }

    fn condition(&mut self) -> Result<Vec<Condition>, SqlError> {
        if self.take(&["sqlstate"]) {
            let state = self.string()?;
            if !is_state(&state) {
                return Err(SqlError::new(SqlState::SYNTAX, "invalid SQLSTATE code"));
            }
            return Ok(vec![of_state(&state)]);
        }
        let name = self.name()?;
        if name == "others" {
            return Ok(vec![Condition::Others]);
        }
        Ok(codes(&name)?.into_iter().map(of_state).collect())
    }
}

/// As in PostgreSQL a code that ends in 000 stands for its class.
fn of_state(state: &str) -> Condition {
    match state.strip_suffix("000") {
        Some(class) => Condition::Class(class.to_owned()),
        None => Condition::State(state.to_owned()),
    }
}

pub(crate) fn cursors() -> SqlError {
    unsupported("a cursor").hint("Use FOR record IN query LOOP.")
}

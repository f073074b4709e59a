//! Text to a program: names in scope, tokens at the cursor, texts of SQL.

use crate::lexer::{Kind, Token, tokens};
use crate::program::{
    Declared, Fragment, FragmentNo, Into, Op, Place, Program, Read, Target, VarNo, Variable,
};
use crate::{CODE_BYTES_MAX, DEPTH_MAX, syntax};
use base::{SqlError, SqlState};

/// A name that is visible.
pub(crate) struct Visible {
    pub(crate) name: String,
    pub(crate) var: VarNo,
    /// The level of blocks in which it is declared.
    pub(crate) level: usize,
    /// It cannot be assigned to.
    pub(crate) is_constant: bool,
}

/// A block or loop around the cursor.
pub(crate) struct Around {
    pub(crate) label: Option<String>,
    pub(crate) is_loop: bool,
    /// Where CONTINUE leads.
    pub(crate) again: Place,
    /// Jumps to the end.
    pub(crate) exits: Vec<Place>,
    /// Where its names begin.
    pub(crate) names: usize,
}

pub(crate) struct Compiler<'a> {
    pub(crate) text: &'a str,
    pub(crate) tokens: Vec<Token>,
    pub(crate) at: usize,
    pub(crate) program: Program,
    pub(crate) visible: Vec<Visible>,
    pub(crate) around: Vec<Around>,
    pub(crate) depth: usize,
    /// Where the line of the last place was counted: byte and line.
    line_at: (usize, u32),
}

/// Compiles the text of a DO.
///
/// # Errors
/// 42601 for what is no PL/pgSQL, 0A000 for what is not supported, 54000 for a text that is too
/// long, 54001 for one that nests too deeply.
pub fn compile(text: &str) -> Result<Program, SqlError> {
    if text.len() > CODE_BYTES_MAX {
        let message = format!("a body of {} bytes is too large", text.len());
        return Err(SqlError::new(SqlState::PROGRAM_LIMIT, message)
            .detail(format!("It may have at most {CODE_BYTES_MAX} bytes.")));
    }
    let mut compiler = Compiler {
        text,
        tokens: tokens(text)?,
        at: 0,
        program: Program::default(),
        visible: Vec::new(),
        around: Vec::new(),
        depth: 0,
        line_at: (0, 1),
    };
    let found = compiler.variable("found", Declared::Boolean);
    compiler.show("found", found, false);
    let label = compiler.label()?;
    compiler.block(label)?;
    compiler.take_symbol(";");
    if compiler.at < compiler.tokens.len() {
        return Err(compiler.unexpected());
    }
    compiler.emit(Op::Return);
    Ok(compiler.program)
}

impl Compiler<'_> {
    pub(crate) fn peek_at(&self, ahead: usize) -> Option<&Token> {
        self.tokens.get(self.at + ahead)
    }

    pub(crate) fn is_word(&self, ahead: usize, word: &str) -> bool {
        self.peek_at(ahead).is_some_and(|token| token.is_word(word))
    }

    pub(crate) fn is_symbol(&self, ahead: usize, symbol: &str) -> bool {
        self.peek_at(ahead).is_some_and(|token| token.is(symbol))
    }

    pub(crate) fn take(&mut self, words: &[&str]) -> bool {
        let found = (0..words.len()).all(|at| self.is_word(at, words[at]));
        if found {
            self.at += words.len();
        }
        found
    }

    pub(crate) fn take_symbol(&mut self, symbol: &str) -> bool {
        let found = self.is_symbol(0, symbol);
        self.at += usize::from(found);
        found
    }

    pub(crate) fn expect(&mut self, words: &[&str]) -> Result<(), SqlError> {
        for word in words {
            if !self.take(&[word]) {
                return Err(self.unexpected());
            }
        }
        Ok(())
    }

    pub(crate) fn expect_symbol(&mut self, symbol: &str) -> Result<(), SqlError> {
        match self.take_symbol(symbol) {
            true => Ok(()),
            false => Err(self.unexpected()),
        }
    }

    /// The error of the token at the cursor.
    pub(crate) fn unexpected(&self) -> SqlError {
        match self.peek_at(0) {
            Some(token) => syntax(&self.text[token.start..token.end]),
            None => SqlError::new(SqlState::SYNTAX, "syntax error at end of input"),
        }
    }

    pub(crate) fn name(&mut self) -> Result<String, SqlError> {
        let name = self.peek_at(0).and_then(Token::name).map(str::to_owned);
        let name = name.ok_or_else(|| self.unexpected())?;
        self.at += 1;
        Ok(name)
    }

    /// `<<name>>`
    pub(crate) fn label(&mut self) -> Result<Option<String>, SqlError> {
        if !self.take_symbol("<<") {
            return Ok(None);
        }
        let name = self.name()?;
        self.expect_symbol(">>")?;
        Ok(Some(name))
    }

    /// The line of a byte.
    pub(crate) fn line_of(&mut self, byte: usize) -> u32 {
        let (from, line) = match self.line_at {
            (from, line) if from <= byte => (from, line),
            _ => (0, 1),
        };
        let more = self.text.as_bytes()[from..byte].iter();
        let line = line + more.filter(|byte| **byte == b'\n').count() as u32;
        self.line_at = (byte, line);
        line
    }

    pub(crate) fn line(&mut self) -> u32 {
        let byte = self.peek_at(0).map_or(self.text.len(), |token| token.start);
        self.line_of(byte)
    }

    pub(crate) fn emit(&mut self, op: Op) -> Place {
        let line = self.line();
        self.emit_at(op, line)
    }

    pub(crate) fn emit_at(&mut self, op: Op, line: u32) -> Place {
        self.program.ops.push(op);
        self.program.lines.push(line);
        self.program.ops.len() - 1
    }

    pub(crate) fn here(&self) -> Place {
        self.program.ops.len()
    }

    /// Has the jump at `place` lead here.
    pub(crate) fn land(&mut self, place: Place) {
        let here = self.here();
        match &mut self.program.ops[place] {
            Op::Jump(to)
            | Op::Unless(_, to)
            | Op::NextNumber { end: to, .. }
            | Op::NextRow { end: to, .. } => *to = here,
            other => unreachable!("{other:?} is no jump"),
        }
    }

    pub(crate) fn variable(&mut self, name: &str, declared: Declared) -> VarNo {
        self.program.variables.push(Variable {
            name: name.to_owned(),
            declared,
            not_null: false,
            type_name: None,
        });
        self.program.variables.len() - 1
    }

    pub(crate) fn show(&mut self, name: &str, var: VarNo, is_constant: bool) {
        self.visible.push(Visible {
            name: name.to_owned(),
            var,
            level: self.around.len(),
            is_constant,
        });
    }

    pub(crate) fn find(&self, name: &str) -> Option<&Visible> {
        self.visible.iter().rev().find(|it| it.name == name)
    }

    /// The variable of a block or loop with this label.
    fn labelled(&self, label: &str, name: &str) -> Option<VarNo> {
        let level = self
            .around
            .iter()
            .rposition(|around| around.label.as_deref() == Some(label))?;
        let mut own = self.visible.iter().rev();
        let found = own.find(|it| it.level == level + 1 && it.name == name);
        found.map(|it| it.var)
    }

    pub(crate) fn is_record(&self, var: VarNo) -> bool {
        let declared = &self.program.variables[var].declared;
        matches!(declared, Declared::Record | Declared::Row(_))
    }

    pub(crate) fn deeper<T>(
        &mut self,
        what: impl FnOnce(&mut Self) -> Result<T, SqlError>,
    ) -> Result<T, SqlError> {
        if self.depth >= DEPTH_MAX {
            let message = "stack depth limit exceeded";
            return Err(
                SqlError::new(SqlState::STATEMENT_TOO_COMPLEX, message).detail(format!(
                    "Statements of PL/pgSQL nest deeper than {DEPTH_MAX} levels."
                )),
            );
        }
        self.depth += 1;
        let done = what(self);
        self.depth -= 1;
        done
    }

    /// The end of a text of SQL that begins at the cursor: the first token outside of parentheses
    /// for which `ends` holds, or the semicolon.
    pub(crate) fn end_of(&self, ends: impl Fn(&Token) -> bool) -> Result<usize, SqlError> {
        let mut depth = 0usize;
        for at in self.at..self.tokens.len() {
            let token = &self.tokens[at];
            if depth == 0 && ends(token) {
                return Ok(at);
            }
            if token.is("(") || token.is("[") {
                depth += 1;
            } else if token.is(")") || token.is("]") {
                if depth == 0 {
                    return Err(SqlError::new(SqlState::SYNTAX, "mismatched parentheses"));
                }
                depth -= 1;
            } else if token.is(";") {
                if depth > 0 {
                    return Err(SqlError::new(SqlState::SYNTAX, "mismatched parentheses"));
                }
                return Ok(at);
            }
        }
        Err(SqlError::new(
            SqlState::SYNTAX,
            "syntax error at end of input",
        ))
    }

    /// The bytes of some tokens.
    pub(crate) fn piece(&self, from: usize, end: usize) -> &str {
        match from < end {
            true => &self.text[self.tokens[from].start..self.tokens[end - 1].end],
            false => "",
        }
    }

    /// A fragment of the tokens up to `end`, which are an expression.
    pub(crate) fn value_to(&mut self, end: usize) -> Result<FragmentNo, SqlError> {
        if self.at == end {
            return Err(SqlError::new(SqlState::SYNTAX, "missing expression"));
        }
        let sql = format!("SELECT {}", self.piece(self.at, end));
        let fragment = self.fragment(sql, self.at..end, true);
        self.at = end;
        Ok(fragment)
    }

    /// An expression up to one of these words, which is taken too.
    pub(crate) fn value_before(&mut self, word: &str) -> Result<FragmentNo, SqlError> {
        let end = self.end_of(|token| token.is_word(word))?;
        if !self.tokens[end].is_word(word) {
            self.at = end;
            return Err(self.unexpected());
        }
        let fragment = self.value_to(end)?;
        self.at += 1;
        Ok(fragment)
    }

    /// An expression up to the semicolon, which is taken too.
    pub(crate) fn value(&mut self) -> Result<FragmentNo, SqlError> {
        let end = self.end_of(|_| false)?;
        let fragment = self.value_to(end)?;
        self.at += 1;
        Ok(fragment)
    }

    /// A fragment of this text, whose names are among those of the tokens.
    pub(crate) fn fragment(
        &mut self,
        sql: String,
        range: core::ops::Range<usize>,
        is_value: bool,
    ) -> FragmentNo {
        let byte = self
            .tokens
            .get(range.start)
            .map_or(self.text.len(), |token| token.start);
        let line = self.line_of(byte);
        let reads = self.reads(range);
        self.program.fragments.push(Fragment {
            sql,
            line,
            is_value,
            reads,
        });
        self.program.fragments.len() - 1
    }

    /// The variables that names among the tokens may be.
    fn reads(&self, range: core::ops::Range<usize>) -> Vec<Read> {
        let mut reads: Vec<Read> = Vec::new();
        let mut add = |read: Read| {
            if !reads.contains(&read) {
                reads.push(read);
            }
        };
        let behind_dot = |at: usize| at > range.start && self.tokens[at - 1].is(".");
        for at in range.clone() {
            let Some(name) = self.tokens[at].name() else {
                continue;
            };
            if behind_dot(at) {
                continue;
            }
            let parts = |ahead: usize| {
                let dotted = at + ahead < range.end && self.tokens[at + ahead - 1].is(".");
                let token = dotted.then(|| &self.tokens[at + ahead]);
                token.and_then(Token::name).map(str::to_owned)
            };
            let second = parts(2);
            if let Some(var) = self.find(name).map(|it| it.var) {
                let is_record = self.is_record(var);
                match (is_record, &second) {
                    (true, Some(field)) => add(Read {
                        var,
                        qualifier: Some(name.to_owned()),
                        name: field.clone(),
                        is_field: true,
                        is_whole: false,
                    }),
                    (_, None) => add(Read {
                        var,
                        qualifier: None,
                        name: name.to_owned(),
                        is_field: false,
                        is_whole: is_record,
                    }),
                    (false, Some(_)) => {}
                }
            }
            if let Some(second) = second
                && let Some(var) = self.labelled(name, &second)
                && !self.is_record(var)
            {
                add(Read {
                    var,
                    qualifier: Some(name.to_owned()),
                    name: second,
                    is_field: false,
                    is_whole: false,
                });
            }
        }
        reads
    }

    /// A variable, or a field of a record, that takes a value.
    pub(crate) fn target(&mut self) -> Result<Target, SqlError> {
        let token = self.at;
        let name = self.name()?;
        let unknown = || {
            let message = format!("\"{name}\" is not a known variable");
            SqlError::new(SqlState::SYNTAX, message)
        };
        if self.is_symbol(0, "[") {
            return Err(crate::unsupported(
                "an assignment to an element of an array",
            ));
        }
        if self.take_symbol(".") {
            let field = self.name()?;
            if let Some(var) = self.labelled(&name, &field) {
                return Ok(Target::Variable(var));
            }
            let var = self.find(&name).map(|it| it.var).ok_or_else(unknown)?;
            if !self.is_record(var) {
                return Err(unknown());
            }
            return Ok(Target::Field(var, field));
        }
        let Some(found) = self.find(&name) else {
            self.at = token;
            return Err(unknown());
        };
        if found.is_constant {
            let message = format!("variable \"{name}\" is declared CONSTANT");
            return Err(SqlError::new(SqlState(*b"22005"), message));
        }
        Ok(Target::Variable(found.var))
    }

    /// The targets behind INTO.
    pub(crate) fn taken_targets(&mut self) -> Result<Into, SqlError> {
        let strict = self.take(&["strict"]);
        let targets = self.targets()?;
        Ok(Into { targets, strict })
    }

    pub(crate) fn targets(&mut self) -> Result<Vec<Target>, SqlError> {
        let mut targets = vec![self.target()?];
        while self.take_symbol(",") {
            targets.push(self.target()?);
        }
        let is_record =
            |target: &Target| matches!(target, Target::Variable(var) if self.is_record(*var));
        if targets.len() > 1 && targets.iter().any(is_record) {
            let message = "record variable cannot be part of multiple-item INTO list";
            return Err(SqlError::new(SqlState::SYNTAX, message));
        }
        Ok(targets)
    }

    /// The content of a string at the cursor.
    pub(crate) fn string(&mut self) -> Result<String, SqlError> {
        match self.peek_at(0).map(|token| token.kind.clone()) {
            Some(Kind::Text(Some(text))) => {
                self.at += 1;
                Ok(text)
            }
            Some(Kind::Text(None)) => Err(crate::unsupported("a string with escapes here")),
            _ => Err(self.unexpected()),
        }
    }
}

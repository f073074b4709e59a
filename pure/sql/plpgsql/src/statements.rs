//! Statements of a body.

use crate::blocks::cursors;
use crate::compile::{Around, Compiler};
use crate::lexer::Token;
use crate::program::{Declared, Fact, Into, LoopNo, Op, Source, Target, VarNo};
use crate::unsupported;
use base::{SqlError, SqlState};

/// First words of statements that end or begin transactions.
const TRANSACTIONS: [&str; 7] = [
    "commit",
    "rollback",
    "savepoint",
    "release",
    "start",
    "abort",
    "prepare",
];

/// First words of statements whose names may be variables.
const READING: [&str; 9] = [
    "select", "insert", "update", "delete", "merge", "with", "values", "call", "table",
];

impl Compiler<'_> {
    /// Statements up to one of these words, which is not taken.
    pub(crate) fn body(&mut self, ends: &[&str]) -> Result<(), SqlError> {
        loop {
            if ends.iter().any(|word| self.is_word(0, word)) {
                return Ok(());
            }
            if self.at >= self.tokens.len() {
                return Err(self.unexpected());
            }
            self.statement()?;
        }
    }

    fn statement(&mut self) -> Result<(), SqlError> {
        let label = self.label()?;
        if self.is_word(0, "declare") || self.is_word(0, "begin") {
            return self.block(label);
        }
        for (word, parse) in [
            (
                "loop",
                Compiler::plain_loop as fn(&mut Self, Option<String>) -> _,
            ),
            ("while", Compiler::while_loop),
            ("for", Compiler::for_loop),
        ] {
            if self.is_word(0, word) {
                self.at += 1;
                return self.deeper(|it| parse(it, label));
            }
        }
        if label.is_some() {
            return Err(self.unexpected());
        }
        if self.assigns() {
            return self.assignment();
        }
        let Some(Token { kind, .. }) = self.peek_at(0) else {
            return Err(self.unexpected());
        };
        let word = match kind {
            crate::lexer::Kind::Word(word) => word.clone(),
            _ => return Err(self.unexpected()),
        };
        match word.as_str() {
            "if" => self.deeper(Self::if_statement),
            "case" => self.deeper(Self::case_statement),
            "exit" | "continue" => self.exit(word == "continue"),
            "return" => self.return_statement(),
            "raise" => self.raise(),
            "perform" => self.perform(),
            "execute" => self.execute(),
            "get" => self.diagnostics(),
            "null" => {
                self.at += 1;
                self.expect_symbol(";")
            }
            "open" | "fetch" | "move" | "close" => Err(cursors()),
            "foreach" => {
                Err(unsupported("FOREACH").hint("Use FOR x IN SELECT unnest(array) LOOP."))
            }
            "assert" => Err(unsupported("ASSERT").hint("Use IF and RAISE EXCEPTION.")),
            "copy" => Err(SqlError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                "cannot COPY to/from client in PL/pgSQL",
            )),
            "do" => Err(unsupported("DO in DO").hint("Use a block: BEGIN ... END.")),
            word if TRANSACTIONS.contains(&word) => {
                let word = word.to_uppercase();
                Err(unsupported(&word)
                    .hint("Use a block with EXCEPTION, or end the transaction outside."))
            }
            "elsif" | "elseif" | "else" | "end" | "when" | "then" | "exception" => {
                Err(self.unexpected())
            }
            _ => self.sql(),
        }
    }

    /// Whether an assignment begins here.
    fn assigns(&self) -> bool {
        let is_name = |at| self.peek_at(at).is_some_and(|token| token.name().is_some());
        let is_sign = |at| self.is_symbol(at, ":=") || self.is_symbol(at, "=");
        let dotted = is_name(0) && self.is_symbol(1, ".") && is_name(2);
        (is_name(0) && (is_sign(1) || (self.is_symbol(1, "[") && !self.is_word(0, "select"))))
            || (dotted && is_sign(3))
    }

    fn assignment(&mut self) -> Result<(), SqlError> {
        let line = self.line();
        let target = self.target()?;
        if matches!(target, Target::Variable(var) if self.is_record(var)) {
            return Err(unsupported("an assignment to a whole record")
                .hint("Use SELECT ... INTO, or assign to its fields."));
        }
        if !self.take_symbol(":=") {
            self.expect_symbol("=")?;
        }
        let value = self.value()?;
        self.emit_at(Op::Assign(target, value), line);
        Ok(())
    }

    fn if_statement(&mut self) -> Result<(), SqlError> {
        let mut ends = Vec::new();
        self.at += 1;
        loop {
            let line = self.line();
            let condition = self.value_before("then")?;
            let skip = self.emit_at(Op::Unless(condition, 0), line);
            self.body(&["elsif", "elseif", "else", "end"])?;
            let more = !self.is_word(0, "end");
            if more {
                ends.push(self.emit(Op::Jump(0)));
            }
            self.land(skip);
            if self.take(&["elsif"]) || self.take(&["elseif"]) {
                continue;
            }
            if self.take(&["else"]) {
                self.body(&["end"])?;
            }
            break;
        }
        self.expect(&["end", "if"])?;
        self.expect_symbol(";")?;
        ends.into_iter().for_each(|place| self.land(place));
        Ok(())
    }

    fn case_statement(&mut self) -> Result<(), SqlError> {
        let line = self.line();
        self.at += 1;
        let names = self.visible.len();
        let mut compared = None;
        if !self.is_word(0, "when") {
            let end = self.end_of(|token| token.is_word("when"))?;
            let sql = format!("SELECT ({}) AS value", self.piece(self.at, end));
            let value = self.fragment(sql, self.at..end, false);
            self.at = end;
            let name = format!(" case {}", self.program.variables.len());
            let var = self.variable(&name, Declared::Record);
            let into = Into {
                targets: vec![Target::Variable(var)],
                strict: false,
            };
            self.emit_at(Op::Run(value, Some(into)), line);
            compared = Some((name, var));
        }
        let mut ends = Vec::new();
        while self.take(&["when"]) {
            let line = self.line();
            let condition = match &compared {
                None => self.value_before("then")?,
                Some((name, var)) => self.compared(name, *var)?,
            };
            let skip = self.emit_at(Op::Unless(condition, 0), line);
            self.body(&["when", "else", "end"])?;
            ends.push(self.emit(Op::Jump(0)));
            self.land(skip);
        }
        match self.take(&["else"]) {
            true => self.body(&["end"])?,
            false => drop(self.emit_at(Op::NoCase, line)),
        }
        self.expect(&["end", "case"])?;
        self.expect_symbol(";")?;
        self.visible.truncate(names);
        ends.into_iter().for_each(|place| self.land(place));
        Ok(())
    }

    /// The condition of a WHEN with values.
    fn compared(&mut self, name: &str, var: VarNo) -> Result<usize, SqlError> {
        let end = self.end_of(|token| token.is_word("then"))?;
        if self.at == end {
            return Err(self.unexpected());
        }
        let values = self.piece(self.at, end);
        let sql = format!("SELECT \"{name}\".value IN ({values})");
        let fragment = self.fragment(sql, self.at..end, true);
        self.program.fragments[fragment]
            .reads
            .push(crate::program::Read {
                var,
                qualifier: Some(name.to_owned()),
                name: "value".into(),
                is_field: true,
                is_whole: false,
            });
        self.at = end;
        self.expect(&["then"])?;
        Ok(fragment)
    }

    /// Enters a loop whose next turn begins here.
    fn enter_loop(&mut self, label: Option<String>, names: usize) {
        let again = self.here();
        self.around.push(Around {
            label,
            is_loop: true,
            again,
            exits: Vec::new(),
            names,
        });
    }

    /// The statements of a loop and what follows its END.
    fn loop_body(&mut self, ended: Option<Op>) -> Result<(), SqlError> {
        self.body(&["end"])?;
        let again = self.around.last().map_or(0, |around| around.again);
        self.emit(Op::Jump(again));
        self.expect(&["end", "loop"])?;
        let label = self.around.last().and_then(|around| around.label.clone());
        self.end_label(label.as_deref())?;
        self.leave_around();
        if let Some(op) = ended {
            self.emit(op);
        }
        Ok(())
    }

    fn plain_loop(&mut self, label: Option<String>) -> Result<(), SqlError> {
        self.enter_loop(label, self.visible.len());
        self.loop_body(None)
    }

    fn while_loop(&mut self, label: Option<String>) -> Result<(), SqlError> {
        self.enter_loop(label, self.visible.len());
        let line = self.line();
        let condition = self.value_before("loop")?;
        let end = self.emit_at(Op::Unless(condition, 0), line);
        self.exits_at(end);
        self.loop_body(None)
    }

    /// The jump at `place` leads to the end of the innermost loop.
    fn exits_at(&mut self, place: usize) {
        let around = self.around.last_mut().expect("inside of a loop");
        around.exits.push(place);
    }

    fn for_loop(&mut self, label: Option<String>) -> Result<(), SqlError> {
        let line = self.line();
        let names = self.visible.len();
        let head = self.at;
        let end = self.end_of(|token| token.is_word("in"))?;
        if !self.tokens[end].is_word("in") {
            self.at = end;
            return Err(self.unexpected());
        }
        self.at = end + 1;
        let reverse = self.take(&["reverse"]);
        let stop = self.end_of(|token| token.is_word("loop") || token.is(".."))?;
        if self.tokens[stop].is("..") {
            return self.integers(label, (head, end), (names, line), reverse);
        }
        if reverse {
            let message = "cannot specify REVERSE in query FOR loop";
            return Err(SqlError::new(SqlState::SYNTAX, message));
        }
        let in_at = self.at;
        self.at = head;
        let targets = self.row_targets(end)?;
        self.at = in_at;
        let source = match self.take(&["execute"]) {
            true => self.dynamic(&["loop"])?.0,
            false => {
                let starts = [
                    "select", "with", "values", "insert", "update", "delete", "table",
                ];
                let reads = starts.iter().any(|word| self.is_word(0, word));
                if !reads && !self.is_symbol(0, "(") {
                    return Err(cursors());
                }
                let stop = self.end_of(|token| token.is_word("loop"))?;
                let sql = self.piece(self.at, stop).to_owned();
                let fragment = self.fragment(sql, self.at..stop, false);
                self.at = stop;
                Source::Static(fragment)
            }
        };
        self.expect(&["loop"])?;
        let of: LoopNo = self.program.loops;
        self.program.loops += 1;
        self.emit_at(Op::Open(of, source), line);
        self.enter_loop(label, names);
        let next = Op::NextRow {
            of,
            targets,
            end: 0,
        };
        let end = self.emit_at(next, line);
        self.exits_at(end);
        self.loop_body(Some(Op::LoopedRows(of)))
    }

    /// The targets of a FOR over rows, which are declared before it.
    fn row_targets(&mut self, end: usize) -> Result<Vec<Target>, SqlError> {
        let wrong = || {
            let message = "loop variable of loop over rows must be a record variable or list of \
                           scalar variables";
            SqlError::new(SqlState::SYNTAX, message)
        };
        let name = self.peek_at(0).and_then(|token| token.name());
        if name.is_none_or(|name| self.find(name).is_none()) && !self.is_symbol(1, ".") {
            return Err(wrong());
        }
        let targets = self.targets()?;
        match self.at == end {
            true => Ok(targets),
            false => Err(self.unexpected()),
        }
    }

    fn integers(
        &mut self,
        label: Option<String>,
        (head, end): (usize, usize),
        (names, line): (usize, u32),
        reverse: bool,
    ) -> Result<(), SqlError> {
        if end != head + 1 {
            let message = "integer FOR loop must have only one target variable";
            return Err(SqlError::new(SqlState::SYNTAX, message));
        }
        let from_at = self.at;
        self.at = head;
        let name = self.name()?;
        self.at = from_at;
        let stop = self.end_of(|token| token.is(".."))?;
        let from = self.value_to(stop)?;
        self.at += 1;
        let stop = self.end_of(|token| token.is_word("loop") || token.is_word("by"))?;
        let to = self.value_to(stop)?;
        let step = match self.take(&["by"]) {
            true => {
                let stop = self.end_of(|token| token.is_word("loop"))?;
                Some(self.value_to(stop)?)
            }
            false => None,
        };
        self.expect(&["loop"])?;
        let of = self.program.counts;
        self.program.counts += 1;
        let bounds = [Some(from), Some(to), step];
        let count = Op::Count {
            of,
            bounds,
            reverse,
        };
        self.emit_at(count, line);
        let var = self.variable(&name, Declared::Integer);
        self.enter_loop(label, names);
        self.show(&name, var, false);
        let end = self.emit_at(Op::NextNumber { of, var, end: 0 }, line);
        self.exits_at(end);
        self.loop_body(Some(Op::LoopedNumbers(of)))
    }

    fn exit(&mut self, continues: bool) -> Result<(), SqlError> {
        let line = self.line();
        self.at += 1;
        let mut label = None;
        if !self.is_word(0, "when") && !self.is_symbol(0, ";") {
            label = Some(self.name()?);
        }
        let found = match &label {
            Some(label) => {
                let found = self
                    .around
                    .iter()
                    .rposition(|around| around.label.as_ref() == Some(label));
                found.ok_or_else(|| {
                    let message = format!(
                        "there is no label \"{label}\" attached to any block or loop enclosing \
                         this statement"
                    );
                    SqlError::new(SqlState::SYNTAX, message)
                })?
            }
            None => {
                let found = self.around.iter().rposition(|around| around.is_loop);
                found.ok_or_else(|| {
                    let message = match continues {
                        true => "CONTINUE cannot be used outside a loop",
                        false => "EXIT cannot be used outside a loop, unless it has a label",
                    };
                    SqlError::new(SqlState::SYNTAX, message)
                })?
            }
        };
        if continues && !self.around[found].is_loop {
            let label = label.unwrap_or_default();
            let message = format!("block label \"{label}\" cannot be used in CONTINUE");
            return Err(SqlError::new(SqlState::SYNTAX, message));
        }
        let skip = match self.take(&["when"]) {
            true => {
                let condition = self.value()?;
                Some(self.emit_at(Op::Unless(condition, 0), line))
            }
            false => {
                self.expect_symbol(";")?;
                None
            }
        };
        // A loop keeps the block around it; EXIT of a block leaves that too.
        let level = match self.around[found].is_loop {
            true => found + 1,
            false => found,
        };
        self.emit_at(Op::Unwind(level), line);
        let again = self.around[found].again;
        let jump = self.emit_at(Op::Jump(again), line);
        if !continues {
            self.around[found].exits.push(jump);
        }
        if let Some(skip) = skip {
            self.land(skip);
        }
        Ok(())
    }

    fn return_statement(&mut self) -> Result<(), SqlError> {
        let line = self.line();
        self.at += 1;
        if !self.take_symbol(";") {
            if self.is_word(0, "next") || self.is_word(0, "query") {
                let message = "cannot use RETURN NEXT in a non-SETOF function";
                return Err(SqlError::new(SqlState::DATATYPE_MISMATCH, message));
            }
            let message = "RETURN cannot have a parameter in function returning void";
            return Err(SqlError::new(SqlState::DATATYPE_MISMATCH, message));
        }
        self.emit_at(Op::Return, line);
        Ok(())
    }

    fn perform(&mut self) -> Result<(), SqlError> {
        let line = self.line();
        self.at += 1;
        let end = self.end_of(|_| false)?;
        if self.at == end {
            return Err(self.unexpected());
        }
        let sql = format!("SELECT {}", self.piece(self.at, end));
        let fragment = self.fragment(sql, self.at..end, false);
        self.at = end + 1;
        self.emit_at(Op::Perform(fragment), line);
        Ok(())
    }

    /// The text of an EXECUTE and its parts, up to the semicolon or one of `ends`.
    fn dynamic(&mut self, ends: &[&str]) -> Result<(Source, Option<Into>), SqlError> {
        let stops = |token: &Token| {
            let words = ["into", "using"];
            words.iter().chain(ends).any(|word| token.is_word(word))
        };
        let end = self.end_of(stops)?;
        let text = self.value_to(end)?;
        let (mut into, mut using) = (None, Vec::new());
        loop {
            if into.is_none() && self.take(&["into"]) {
                into = Some(self.taken_targets()?);
            } else if using.is_empty() && self.take(&["using"]) {
                loop {
                    let end = self.end_of(|token| token.is(",") || stops(token))?;
                    using.push(self.value_to(end)?);
                    if !self.take_symbol(",") {
                        break;
                    }
                }
            } else {
                return Ok((Source::Dynamic { text, using }, into));
            }
        }
    }

    fn execute(&mut self) -> Result<(), SqlError> {
        let line = self.line();
        self.at += 1;
        let (source, into) = self.dynamic(&[])?;
        self.expect_symbol(";")?;
        self.emit_at(Op::Execute(source, into), line);
        Ok(())
    }

    fn diagnostics(&mut self) -> Result<(), SqlError> {
        let line = self.line();
        self.at += 1;
        self.take(&["current"]);
        let stacked = self.take(&["stacked"]);
        self.expect(&["diagnostics"])?;
        let mut items = Vec::new();
        loop {
            let target = self.target()?;
            if !self.take_symbol(":=") {
                self.expect_symbol("=")?;
            }
            let name = self.name()?;
            let fact = match (name.as_str(), stacked) {
                ("row_count", false) => Fact::RowCount,
                ("pg_context", false) => return Err(unsupported("PG_CONTEXT")),
                ("returned_sqlstate", true) => Fact::State,
                ("message_text", true) => Fact::Message,
                ("pg_exception_detail", true) => Fact::Detail,
                ("pg_exception_hint", true) => Fact::Hint,
                ("pg_exception_context", true) => Fact::Context,
                ("column_name", true) => Fact::Column,
                ("constraint_name", true) => Fact::Constraint,
                ("table_name", true) => Fact::Table,
                ("schema_name" | "pg_datatype_name", true) => Fact::Nothing,
                _ => {
                    let message =
                        format!("unrecognized GET DIAGNOSTICS item at or near \"{name}\"");
                    return Err(SqlError::new(SqlState::SYNTAX, message));
                }
            };
            items.push((target, fact));
            if !self.take_symbol(",") {
                break;
            }
        }
        self.expect_symbol(";")?;
        self.emit_at(Op::Diagnostics(items), line);
        Ok(())
    }

    /// A statement of SQL.
    fn sql(&mut self) -> Result<(), SqlError> {
        let line = self.line();
        let start = self.at;
        let end = self.end_of(|_| false)?;
        let reads = READING.iter().any(|word| self.is_word(0, word));
        let mut into = None;
        let mut cut = None;
        for at in start + 1..end {
            let behind = &self.tokens[at - 1];
            let is_into = self.tokens[at].is_word("into");
            if !reads || !is_into || behind.is_word("insert") || behind.is_word("merge") {
                continue;
            }
            if into.is_some() {
                return Err(SqlError::new(
                    SqlState::SYNTAX,
                    "INTO specified more than once",
                ));
            }
            self.at = at + 1;
            into = Some(self.taken_targets()?);
            cut = Some((at, self.at));
        }
        let sql = match cut {
            None => self.piece(start, end).to_owned(),
            Some((from, to)) => {
                let (first, second) = (self.piece(start, from), self.piece(to, end));
                format!("{first} {second}")
            }
        };
        let range = if reads { start..end } else { end..end };
        let fragment = self.fragment(sql, range, false);
        self.program.fragments[fragment].line = line;
        self.at = end + 1;
        self.emit_at(Op::Run(fragment, into), line);
        Ok(())
    }
}

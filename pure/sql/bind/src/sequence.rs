//! Functions about sequences, and sequences in FROM.

use super::expr::string_of;
use super::rel::{CallKind, SequenceCall};
use super::{Binder, unsupported};
use ::functions::keywords::quote_ident;
use base::full_name::schema_of;
use base::types::{ArrayKind, Reg};
use base::{SqlError, SqlState, TableId, Type};
use catalog::{Sequence, View, ViewColumn, mark};
use expr::Expr;
use expr::resolve::{self, Context};
use pg_catalog::names::in_known_schema;
use rights::Privileges;
use sqlparser::ast::{CastKind, DataType, Expr as Ast};
use std::sync::Arc;

/// The function that tells where a sequence is: what `SELECT ... FROM sequence` reads.
const STATE: &str = "trellis_sequence_state";

/// What a function asks of a sequence, and its numbers of arguments.
fn asked(name: &str) -> Option<(SequenceCall, core::ops::RangeInclusive<usize>)> {
    Some(match name {
        "nextval" => (SequenceCall::Next, 1..=1),
        "currval" => (SequenceCall::Current, 1..=1),
        "lastval" => (SequenceCall::Newest, 0..=0),
        "setval" => (SequenceCall::Set, 2..=3),
        "pg_sequence_last_value" => (SequenceCall::Last, 1..=1),
        STATE => (SequenceCall::State, 1..=1),
        _ => return None,
    })
}

impl Binder<'_> {
    /// A function about a sequence; `None`: it is none.
    pub(super) fn sequence_call(
        &mut self,
        name: &str,
        args: &[&Ast],
    ) -> Result<Option<Expr>, SqlError> {
        let Some((call, counts)) = asked(name) else {
            return Ok(None);
        };
        if call == SequenceCall::Set && self.optional > 0 {
            // Calls are made for every row before its expressions are computed.
            return Err(unsupported("setval where it may not be reached")
                .hint("Call it by itself, not behind CASE, COALESCE, AND or OR."));
        }
        let asks = !self.need_call(call, args.first().and_then(|arg| literal(arg)));
        if let ("nextval" | "currval", [arg]) = (name, args)
            && let Some(text) = literal(arg)
        {
            let sequence = Arc::new(self.sequence(text)?.clone());
            let kind = match call {
                SequenceCall::Next => CallKind::Nextval(sequence),
                _ => CallKind::Currval(sequence),
            };
            return Ok(Some(self.volatile_call(kind, Type::Int8)));
        }
        let bound = args.iter().map(|arg| self.argument(name, arg));
        let bound = bound.collect::<Result<Vec<_>, _>>()?;
        if !counts.contains(&bound.len()) {
            let types: Vec<String> = bound.iter().map(|arg| arg.ty().name()).collect();
            let message = format!("function {name}({}) does not exist", types.join(", "));
            return Err(SqlError::new(SqlState::UNDEFINED_FUNCTION, message).hint(
                "No function matches the given name and argument types. You might need to add \
                 explicit type casts.",
            ));
        }
        let mut coerced = Vec::with_capacity(bound.len());
        for (at, arg) in bound.into_iter().enumerate() {
            let arg = match at {
                0 if arg.ty().is_text() => self.explicit(arg, Type::Reg(Reg::Class))?,
                0 => resolve::coerce(arg, Type::Reg(Reg::Class), Context::Implicit)?,
                1 => resolve::coerce(arg, Type::Int8, Context::Implicit)?,
                _ => resolve::coerce(arg, Type::Bool, Context::Implicit)?,
            };
            self.note(&arg);
            coerced.push(arg);
        }
        let ty = match call {
            SequenceCall::State => Type::Array(ArrayKind::Int8),
            _ => Type::Int8,
        };
        Ok(Some(self.volatile_call(
            CallKind::Sequence(call, asks, coerced),
            ty,
        )))
    }

    /// The privilege that a call needs. Whether it is known on which sequence: one that an
    /// expression or a number names is found by the call itself.
    fn need_call(&mut self, call: SequenceCall, name: Option<&str>) -> bool {
        let found = name.and_then(|name| self.sequence(name).ok().cloned());
        let Some(sequence) = found else {
            return false;
        };
        let words = call.wanted().iter();
        let wanted = words.filter_map(|word| Privileges::of_word(word));
        let wanted = wanted.fold(Privileges::NONE, Privileges::with);
        self.need_sequence(&sequence, wanted);
        true
    }

    /// A sequence by the text of its name, which may have a schema and quotes.
    fn sequence(&self, text: &str) -> Result<&Sequence, SqlError> {
        let parts = pg_catalog::names::parts(text)?;
        let (schema, name) = in_known_schema(self.cx.database, parts)?;
        let full = self.own_relation(schema.as_deref(), &name);
        let full = full.unwrap_or_default();
        self.cx.database.sequences.get(&full).ok_or_else(|| {
            if self.cx.database.tables.contains_key(&full) {
                let message = format!("\"{name}\" is not a sequence");
                return SqlError::new(SqlState::WRONG_OBJECT_TYPE, message);
            }
            let message = format!("relation \"{text}\" does not exist");
            SqlError::new(SqlState::UNDEFINED_TABLE, message)
        })
    }

    /// The one row of a sequence in FROM, as a view of it.
    pub(super) fn sequence_rows(&self, schema: Option<&str>, name: &str) -> Option<Arc<View>> {
        let full = self.own_relation(schema, name)?;
        let sequence = self.cx.database.sequences.get(&full)?;
        let own = quote_ident(name).replace('\'', "''");
        let mark = mark(schema_of(&full));
        let query = format!(
            "SELECT s[1] AS last_value, 0::bigint AS log_cnt, s[2] = 1 AS is_called \
             FROM (SELECT {STATE}('{mark}.{own}') AS s) q"
        );
        let columns = [
            ("last_value", Type::Int8),
            ("log_cnt", Type::Int8),
            ("is_called", Type::Bool),
        ];
        let column = |(name, ty): (&str, Type)| ViewColumn {
            name: name.to_owned(),
            ty,
        };
        Some(Arc::new(View {
            id: TableId(sequence.id.0),
            name: full,
            query,
            renamed: false,
            updatable: false,
            check: None,
            columns: columns.into_iter().map(column).collect(),
            uses: Vec::new(),
        }))
    }
}

/// The text of a literal, also behind `::regclass` or `::text`.
fn literal(arg: &Ast) -> Option<&str> {
    let mut inner = arg;
    loop {
        inner = match inner {
            Ast::Nested(expr) => expr,
            Ast::Cast {
                kind: CastKind::Cast | CastKind::DoubleColon,
                expr,
                data_type: DataType::Regclass | DataType::Text,
                format: None,
            } => expr,
            Ast::Value(value) => return string_of(&value.value),
            _ => return None,
        };
    }
}

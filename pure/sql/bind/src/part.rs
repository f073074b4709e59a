//! Statements that change rows as parts of a WITH: each runs once, and the others see the rows
//! that it returns.

use super::dml::{BoundInsert, BoundWrite};
use super::merge::BoundMerge;
use super::rel::Rel;
use super::target::Target;
use super::{Binder, BoundQuery};
use base::{SqlError, SqlState};
use catalog::Table;
use parse::{InsertWords, Kind, Statement, WithQuery, WithStatement};
use sqlparser::ast;
use std::sync::Arc;

/// A statement that changes the rows of one table.
#[allow(missing_docs)]
pub enum BoundPart {
    Insert(BoundInsert),
    Write(BoundWrite),
    Merge(BoundMerge),
}

/// What a statement does besides the parts that its WITH clause names.
#[allow(missing_docs)]
pub enum BoundMain {
    Query(BoundQuery),
    Part(BoundPart),
}

impl BoundPart {
    /// The table whose rows are changed.
    pub fn table(&self) -> &Arc<Table> {
        match self {
            BoundPart::Insert(insert) => &insert.table,
            BoundPart::Write(write) => &write.table,
            BoundPart::Merge(merge) => &merge.table,
        }
    }

    /// The columns that it returns.
    pub fn returning(&self) -> Option<&Vec<Target>> {
        match self {
            BoundPart::Insert(insert) => insert.returning.as_ref(),
            BoundPart::Write(write) => write.returning.as_ref(),
            BoundPart::Merge(_) => None,
        }
    }
}

impl Binder<'_> {
    /// Binds a WITH in which rows are changed. Its parts are [`Binder::parts`] afterwards.
    ///
    /// # Errors
    /// Those of names and types; 0A000 for a part that is not at the top of the statement.
    pub fn with_statement(&mut self, with: &WithStatement) -> Result<BoundMain, SqlError> {
        let first = self.named.len();
        for query in &with.queries {
            match bind_as(&query.body) {
                Body::Query(body) => self.name_query(&query.cte(body), with.recursive, first)?,
                Body::Part => {
                    self.check_top(query)?;
                    self.name_part(query, with.recursive, first)?;
                }
                Body::Nested => return Err(self.misplaced_part(query)),
            }
        }
        let main = match self.part(&with.main)? {
            Some(part) => BoundMain::Part(part),
            None => match with.main.kind() {
                Kind::Sql(ast) => match ast.as_ref() {
                    ast::Statement::Query(query) => BoundMain::Query(self.query(query)?),
                    _ => return Err(self.source.unexpected(None)),
                },
                _ => return Err(self.source.unexpected(None)),
            },
        };
        self.end_names(first)?;
        Ok(main)
    }

    /// Binds a statement if it changes rows.
    ///
    /// # Errors
    /// Those of names and types.
    pub fn part(&mut self, statement: &Statement) -> Result<Option<BoundPart>, SqlError> {
        match statement.kind() {
            Kind::Merge(merge) => self.merge(merge).map(BoundPart::Merge).map(Some),
            Kind::With(with) => match self.with_statement(with)? {
                BoundMain::Part(part) => Ok(Some(part)),
                BoundMain::Query(_) => Err(self.source.unexpected(None)),
            },
            Kind::Insert(ast, words) => self.changing(ast, words),
            Kind::Sql(ast) => self.changing(ast, &InsertWords::default()),
            _ => Ok(None),
        }
    }

    fn changing(
        &mut self,
        ast: &ast::Statement,
        words: &InsertWords,
    ) -> Result<Option<BoundPart>, SqlError> {
        Ok(Some(match ast {
            ast::Statement::Insert(insert) => BoundPart::Insert(self.insert(insert, words)?),
            ast::Statement::Update {
                table,
                assignments,
                from,
                selection,
                returning,
                or: _,
            } => {
                let (from, selection) = (from.as_ref(), selection.as_ref());
                let returning = returning.as_deref();
                BoundPart::Write(self.update(table, assignments, from, selection, returning)?)
            }
            ast::Statement::Delete(delete) => BoundPart::Write(self.delete(delete)?),
            _ => return Ok(None),
        }))
    }

    fn check_top(&self, query: &WithQuery) -> Result<(), SqlError> {
        match self.is_at_top() {
            true => Ok(()),
            false => Err(self.misplaced_part(query)),
        }
    }

    fn misplaced_part(&self, query: &WithQuery) -> SqlError {
        let place = self.source.position(query.alias.name.span.start);
        parse::not_at_top().at(place)
    }

    /// Binds a part where it is named.
    fn name_part(
        &mut self,
        query: &WithQuery,
        recursive: bool,
        first: usize,
    ) -> Result<(), SqlError> {
        let name = self.relation_name(&query.alias.name)?;
        let changed = self.views.changed.take();
        if recursive {
            let message =
                format!("recursive query \"{name}\" must not contain data-modifying statements");
            let refused = SqlError::new(SqlState(*b"42P19"), message);
            self.begin_recursion(&name, super::with::Itself::Refused(refused));
        }
        let bound = self.nested(|binder| binder.part(&query.body));
        if recursive {
            self.end_recursion();
        }
        self.views.changed = changed;
        let (part, ..) = bound?;
        let part = part.ok_or_else(|| self.source.unexpected(None))?;
        let number = self.parts.len() as u32;
        let columns = part.returning().map(|targets| {
            let columns = targets.iter().map(Target::column);
            columns.collect::<Vec<_>>()
        });
        self.parts.push(part);
        let types = columns.iter().flatten().map(|column| column.ty).collect();
        let rel = Rel::Part { number, types };
        self.name_rows(&query.alias, rel, columns, first)
    }
}

/// What a named statement is.
enum Body<'q> {
    Query(&'q ast::Query),
    Part,
    /// A query with parts of its own.
    Nested,
}

fn bind_as(body: &Statement) -> Body<'_> {
    match (super::query_of(body), body.kind()) {
        (Some(query), _) => Body::Query(query),
        (None, Kind::With(with)) if matches!(bind_as(&with.main), Body::Query(_)) => Body::Nested,
        (None, _) => Body::Part,
    }
}

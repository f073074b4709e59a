//! Names that a query can see, and the errors of names that it cannot.

use super::unsupported;
use base::full_name::{own, split};
use base::{Datum, SqlError, SqlState, Type};
use catalog::{ColumnState, Table};
use expr::{Compare, Expr, Func, walk};
use parse::{Source, fold};
use pg_catalog::VirtualTable;
use pg_catalog::names::check_parts;
use sqlparser::ast::{Ident, ObjectName, ObjectNamePart};
use std::sync::Arc;

/// One visible column.
#[derive(Clone, Debug)]
pub(crate) struct ScopeColumn {
    /// Alias of the FROM item; empty for merged columns of USING.
    pub(crate) relation: String,
    pub(crate) name: String,
    /// Its value over the row of the query.
    pub(crate) expr: Expr,
    /// Only visible with its relation's name (the sides of a USING column).
    pub(crate) shadowed: bool,
    /// Not part of `*`.
    pub(crate) hidden: bool,
    /// Where it comes from: oid and attribute number, or zeros.
    pub(crate) origin: (u32, i16),
}

/// What one query level sees.
#[derive(Clone, Debug, Default)]
pub struct Scope {
    pub(crate) columns: Vec<ScopeColumn>,
    /// Aliases of the FROM items, in order.
    pub(crate) relations: Vec<String>,
    /// Those among them whose rows are stored or of the system catalog, with the position of their
    /// first column.
    pub(crate) bases: Vec<(u32, Base)>,
    /// Those that go by their own name, so that a schema may stand before it: its number, and the
    /// name.
    pub(crate) qualified: Vec<(u32, String)>,
}

/// A relation that has system columns.
#[derive(Clone, Debug)]
pub(crate) enum Base {
    Table(Arc<Table>),
    Catalog(&'static VirtualTable),
}

/// What PostgreSQL tells of every row besides its columns.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum SystemColumn {
    /// Table of the row.
    TableOid,
    /// Version of the row.
    Xmin,
    /// Place of the row.
    Ctid,
    /// Another one, which tells of transactions and commands.
    Other(&'static str),
}

impl SystemColumn {
    pub(crate) fn by_name(name: &str) -> Option<SystemColumn> {
        Some(match name {
            "tableoid" => SystemColumn::TableOid,
            "xmin" => SystemColumn::Xmin,
            "ctid" => SystemColumn::Ctid,
            "xmax" => SystemColumn::Other("xmax"),
            "cmin" => SystemColumn::Other("cmin"),
            "cmax" => SystemColumn::Other("cmax"),
            _ => return None,
        })
    }
}

/// What a name means in one scope.
pub(crate) enum Found<'a> {
    Column(&'a ScopeColumn),
    Ambiguous,
    /// The relation is here, but has no such column.
    NoColumn,
    Nothing,
}

impl Scope {
    /// A FROM item's columns at positions from `first`.
    pub(crate) fn of_relation(
        alias: &str,
        columns: impl IntoIterator<Item = (String, Type, (u32, i16))>,
        first: u32,
    ) -> Scope {
        let columns = columns
            .into_iter()
            .enumerate()
            .map(|(i, (name, ty, origin))| ScopeColumn {
                relation: alias.to_string(),
                hidden: name.starts_with('$'),
                name,
                expr: Expr::Column(first + i as u32, ty),
                shadowed: false,
                origin,
            })
            .collect();
        Scope {
            columns,
            relations: vec![alias.to_string()],
            bases: Vec::new(),
            qualified: Vec::new(),
        }
    }

    /// Adds the items of another FROM entry.
    ///
    /// # Errors
    /// 42712 if an alias occurs twice.
    pub(crate) fn append(&mut self, other: Scope) -> Result<(), SqlError> {
        for relation in &other.relations {
            if !relation.is_empty() && self.relations.contains(relation) {
                if self.is_another(&other, relation) {
                    let what = format!("tables \"{relation}\" of two schemas without aliases");
                    return Err(unsupported(&what).hint("Give one of them an alias."));
                }
                let message = format!("table name \"{relation}\" specified more than once");
                return Err(SqlError::new(SqlState::DUPLICATE_ALIAS, message));
            }
        }
        self.relations.extend(other.relations);
        self.columns.extend(other.columns);
        self.bases.extend(other.bases);
        self.qualified.extend(other.qualified);
        Ok(())
    }

    /// The scope for a row in which `by` columns stand before.
    pub(crate) fn shifted(mut self, by: u32) -> Scope {
        for column in &mut self.columns {
            walk::map(&mut column.expr, &mut |node| {
                if let Expr::Column(index, _) = node {
                    *index += by;
                }
            });
        }
        for (first, _) in &mut self.bases {
            *first += by;
        }
        self
    }

    /// Whether a column follows from grouped columns: they hold its table's primary key.
    pub(crate) fn determines(&self, group: &[Expr], column: u32) -> bool {
        self.tables().any(|(first, table)| {
            let own = first..first + table.columns.len() as u32;
            own.contains(&column)
                && table.primary_constraint.is_some()
                && table.primary.columns.iter().all(|key| {
                    let wanted = first + u32::from(key.column);
                    group
                        .iter()
                        .any(|e| matches!(e, Expr::Column(c, _) if *c == wanted))
                })
        })
    }

    /// `table.column` for an error about the column at a position.
    pub(crate) fn describe(&self, position: u32) -> String {
        let found = self
            .columns
            .iter()
            .find(|c| matches!(c.expr, Expr::Column(index, _) if index == position));
        found.map_or_else(
            || "?column?".into(),
            |column| {
                let name = if column.hidden { "ctid" } else { &column.name };
                format!("{}.{name}", column.relation)
            },
        )
    }

    /// Looks up `name` or `relation.name`.
    pub(crate) fn find(&self, relation: Option<&str>, name: &str) -> Found<'_> {
        let mut found = None;
        for column in &self.columns {
            let fits = match relation {
                Some(relation) => column.relation == relation,
                None => !column.shadowed,
            };
            if fits && column.name == name {
                if found.is_some() {
                    return Found::Ambiguous;
                }
                found = Some(column);
            }
        }
        match (found, relation) {
            (Some(column), _) => Found::Column(column),
            (None, Some(relation)) if self.relations.iter().any(|known| known == relation) => {
                Found::NoColumn
            }
            _ => Found::Nothing,
        }
    }

    /// A relation that goes by its own name can be named with its schema.
    pub(crate) fn note_home(&mut self, schema: u32, name: &str, alias: &str) {
        if alias == name {
            self.qualified.push((schema, alias.to_string()));
        }
    }

    /// Whether `schema.name` is the name of one of the relations; all are, without a schema.
    pub(crate) fn has_in(&self, schema: Option<u32>, name: &str) -> bool {
        schema.is_none_or(|schema| {
            let mut qualified = self.qualified.iter();
            qualified.any(|(of, known)| *of == schema && known == name)
        })
    }

    /// Whether a relation of another scope has the same name in another schema.
    fn is_another(&self, other: &Scope, name: &str) -> bool {
        let of = |scope: &Scope| {
            let mut homes = scope.qualified.iter();
            homes.find(|(_, known)| known == name).map(|(of, _)| *of)
        };
        let (own, other) = (of(self), of(other));
        own.is_some() && other.is_some() && own != other
    }

    /// There is no relation of this name; a table of that name may have another one here, or be
    /// none of the schema that was given.
    pub(crate) fn no_relation(&self, name: &str) -> SqlError {
        let renamed = self.tables().find_map(|(first, table)| {
            let mut columns = self.columns.iter();
            let at =
                |column: &&ScopeColumn| matches!(column.expr, Expr::Column(at, _) if at == first);
            columns.find(at).filter(|_| own(&table.name) == name)
        });
        let invalid = |hint: String| {
            let message = format!("invalid reference to FROM-clause entry for table \"{name}\"");
            SqlError::new(SqlState::UNDEFINED_TABLE, message).hint(hint)
        };
        let relation = renamed.map(|column| &column.relation);
        match relation {
            Some(alias) if alias != name => invalid(format!(
                "Perhaps you meant to reference the table alias \"{alias}\"."
            )),
            _ if self.relations.iter().any(|known| known == name) => invalid(format!(
                "There is an entry for table \"{name}\", but it cannot be referenced from this \
                 part of the query."
            )),
            _ => {
                let message = format!("missing FROM-clause entry for table \"{name}\"");
                SqlError::new(SqlState::UNDEFINED_TABLE, message)
            }
        }
    }

    fn tables(&self) -> impl Iterator<Item = (u32, &Arc<Table>)> {
        self.bases.iter().filter_map(|(first, base)| match base {
            Base::Table(table) => Some((*first, table)),
            Base::Catalog(_) => None,
        })
    }

    /// A system column of the relation of that name, or of the only one; NULL where an outer join
    /// found no row. `None` if there is no such relation, or if several are meant.
    ///
    /// # Errors
    /// 0A000 for what has no meaning here.
    pub(crate) fn system_column(
        &self,
        column: SystemColumn,
        relation: Option<&str>,
    ) -> Result<Option<Expr>, SqlError> {
        let named = |first: u32| {
            let mut columns = self.columns.iter();
            relation.is_none_or(|name| {
                columns.any(|column| {
                    column.relation == name
                        && matches!(column.expr, Expr::Column(at, _) if at == first)
                })
            })
        };
        let mut found = self.bases.iter().filter(|(first, _)| named(*first));
        let (Some((first, base)), None) = (found.next(), found.next()) else {
            return Ok(None);
        };
        let value = match column {
            SystemColumn::TableOid => Expr::Const(Datum::Int(base.oid().into()), Type::Oid),
            SystemColumn::Xmin => {
                // Clients read that of the catalog as a number.
                let ty = match base {
                    Base::Table(_) => Type::Xid,
                    Base::Catalog(_) => Type::Oid,
                };
                Expr::Call(Func::RowVersion, base.columns(*first), ty)
            }
            SystemColumn::Ctid => Expr::Column(first + base.row_number()?, Type::Tid),
            SystemColumn::Other(name) => {
                let error = unsupported(&format!("the system column {name}"));
                return Err(error.hint("xmin tells whether a row has changed."));
            }
        };
        Ok(Some(match (column, base) {
            // The number of a row that is missing is NULL already.
            (SystemColumn::Ctid, _) => value,
            _ => base.present_or_null(*first, value),
        }))
    }

    /// Whether a relation has no row where an outer join found none; `None`: it always has one.
    pub(crate) fn row_presence(&self, relation: &str) -> Option<Expr> {
        let own = |column: &&ScopeColumn| column.relation == relation;
        let positions = self
            .columns
            .iter()
            .filter(own)
            .map(|column| match column.expr {
                Expr::Column(at, _) => Some(at),
                _ => None,
            });
        let first = positions.flatten().min()?;
        let base = self.bases.iter().find(|(at, _)| *at == first);
        if let Some((first, base)) = base {
            return Some(base.missing(*first));
        }
        // Of a derived table only the values tell: a row of nothing but NULL is taken for none.
        if self.relations.len() < 2 {
            return None;
        }
        let columns = self.columns.iter().filter(own);
        let values: Vec<Expr> = columns.map(|column| column.expr.clone()).collect();
        Some(none_of(values))
    }

    /// A visible column whose name is close to a misspelt one, as PostgreSQL suggests it.
    pub(crate) fn similar(&self, relation: Option<&str>, name: &str) -> Option<String> {
        let candidates = self
            .columns
            .iter()
            .filter(|column| !column.hidden && relation.is_none_or(|r| r == column.relation));
        let (distance, best) = candidates
            .map(|column| (edit_distance(&column.name, name), column))
            .min_by_key(|(distance, _)| *distance)?;
        (distance > 0 && distance <= 3 && distance <= name.len() / 2)
            .then(|| format!("{}.{}", best.relation, best.name))
    }
}

/// The names of a table's columns, in the order in which statements see them.
pub(crate) fn table_scope(table: &Arc<Table>, alias: &str) -> Scope {
    in_shown_order(placed_scope(table, alias), table)
}

/// Puts columns that are at their places into the order in which statements see them.
fn in_shown_order(mut scope: Scope, table: &Table) -> Scope {
    if table.is_reordered() {
        let columns = core::mem::take(&mut scope.columns).into_iter().enumerate();
        let mut columns: Vec<(usize, ScopeColumn)> = columns.collect();
        columns.sort_by_key(|(place, _)| table.shown_at(*place));
        scope.columns = columns.into_iter().map(|(_, column)| column).collect();
    }
    scope
}

fn placed_scope(table: &Arc<Table>, alias: &str) -> Scope {
    let columns = table
        .columns
        .iter()
        .enumerate()
        .map(|(i, column)| (column.name.clone(), column.ty, (table.id.0, i as i16 + 1)));
    let mut scope = Scope::of_relation(alias, columns, 0);
    for (column, described) in scope.columns.iter_mut().zip(&table.columns) {
        column.hidden = described.hidden;
        if matches!(described.state, ColumnState::Filling | ColumnState::Dropped) {
            // No statement can write this name.
            column.name.clear();
        }
    }
    let (schema, name) = split(&table.name);
    scope.note_home(schema, name, alias);
    scope.bases.push((0, Base::Table(table.clone())));
    scope
}

/// As [`table_scope`] for conditions of the table itself, which may read columns that are still
/// being filled.
pub(crate) fn whole_scope(table: &Arc<Table>) -> Scope {
    let mut scope = placed_scope(table, own(&table.name));
    for (column, described) in scope.columns.iter_mut().zip(&table.columns) {
        if described.state == ColumnState::Filling {
            column.name.clone_from(&described.name);
        }
    }
    in_shown_order(scope, table)
}

/// The names of the columns of a relation of the system catalog.
pub(crate) fn catalog_scope(relation: &'static VirtualTable, alias: &str) -> Scope {
    let columns = relation.columns.iter().enumerate();
    let columns = columns.map(|(i, column)| {
        let origin = (relation.oid, i as i16 + 1);
        (column.name.to_string(), column.ty, origin)
    });
    let mut scope = Scope::of_relation(alias, columns, 0);
    let schema = match relation.schema {
        "pg_catalog" => catalog::PG_CATALOG_SCHEMA,
        _ => catalog::INFORMATION_SCHEMA,
    };
    scope.note_home(schema, relation.name, alias);
    if !relation.is_view() {
        scope.bases.push((0, Base::Catalog(relation)));
    }
    scope
}

impl Base {
    fn oid(&self) -> u32 {
        match self {
            Base::Table(table) => table.id.0,
            Base::Catalog(relation) => relation.oid,
        }
    }

    fn columns(&self, first: u32) -> Vec<Expr> {
        let types: Vec<Type> = match self {
            Base::Table(table) => table.columns.iter().map(|column| column.ty).collect(),
            Base::Catalog(relation) => relation.columns.iter().map(|column| column.ty).collect(),
        };
        let positions = (first..).zip(types);
        positions.map(|(at, ty)| Expr::Column(at, ty)).collect()
    }

    /// Position of the hidden number of a row.
    fn row_number(&self) -> Result<u32, SqlError> {
        let (name, number) = match self {
            Base::Table(table) => (table.name.as_str(), table.rowid()),
            Base::Catalog(relation) => (relation.name, None),
        };
        number.map(u32::from).ok_or_else(|| {
            let error = unsupported(&format!("the system column ctid of \"{name}\""));
            match self {
                Base::Table(_) => error
                    .detail("Rows of a table with a primary key have no place of their own.")
                    .hint("Use the primary key."),
                Base::Catalog(_) => error.detail("Rows of the system catalog have no place."),
            }
        })
    }

    /// The value, or NULL where an outer join found no row.
    fn present_or_null(&self, first: u32, value: Expr) -> Expr {
        let missing = self.missing(first);
        let ty = value.ty();
        Expr::Case {
            arms: vec![(missing, Expr::null(ty))],
            otherwise: Box::new(value),
            ty,
        }
    }

    /// Whether an outer join found no row.
    fn missing(&self, first: u32) -> Expr {
        match self {
            // The last column of a key is never NULL in a row that is there (a column of the
            // partition before a row number may be).
            Base::Table(table) => {
                let key = table.primary.columns.last().map_or(0, |key| key.column);
                let key = Expr::Column(first + u32::from(key), table.column_at(key).ty);
                Expr::IsNull(Box::new(key), false)
            }
            // No row of the catalog is without a value.
            Base::Catalog(_) => none_of(self.columns(first)),
        }
    }
}

/// Whether all values are NULL.
fn none_of(values: Vec<Expr>) -> Expr {
    let zero = Expr::Const(Datum::Int(0), Type::Int4);
    let values = Expr::Call(Func::NumNonNulls, values, Type::Int4);
    Expr::Call(Func::Compare(Compare::Eq), vec![values, zero], Type::Bool)
}

/// Levenshtein's distance between two names.
fn edit_distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, left) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, right) in b.iter().enumerate() {
            let above = row[j + 1];
            let replace = diagonal + usize::from(left != *right);
            row[j + 1] = replace.min(above + 1).min(row[j] + 1);
            diagonal = above;
        }
    }
    row[b.len()]
}

/// An identifier as the catalog has it.
pub fn ident(name: &Ident) -> String {
    fold(&name.value, name.quote_style.is_some())
}

/// Refuses a relation's name with another database than `own` in front, or with too many parts.
///
/// # Errors
/// 0A000, 42601.
pub fn check_database(own: &str, name: &ObjectName) -> Result<(), SqlError> {
    let parts = name.0.iter().filter_map(ObjectNamePart::as_ident);
    let parts: Vec<String> = parts.map(ident).collect();
    check_parts(own, &parts, 3, "\"")
}

/// Schema, if given, and name of an object; [`check_database`] judges what stands before.
pub fn object_name(name: &ObjectName) -> (Option<String>, String) {
    let mut parts: Vec<String> = name
        .0
        .iter()
        .map(|part| match part {
            ObjectNamePart::Identifier(part) => ident(part),
        })
        .collect();
    let last = parts.pop().unwrap_or_default();
    (parts.pop(), last)
}

/// Refuses a reserved word as the name of a relation, which the parser lets pass.
///
/// # Errors
/// 42601.
pub fn check_reserved(name: &ObjectName) -> Result<(), SqlError> {
    let reserved = name.0.iter().find_map(|part| {
        let ident = part.as_ident()?;
        let word = ident.value.to_lowercase();
        let bare = ident.quote_style.is_none();
        (bare && functions::keywords::names_nothing(&word)).then_some(&ident.value)
    });
    match reserved {
        Some(word) => {
            let message = format!("syntax error at or near \"{word}\"");
            Err(SqlError::new(SqlState::SYNTAX, message))
        }
        None => Ok(()),
    }
}

/// Position of an object's name in the text.
pub(crate) fn name_position(source: &Source, name: &ObjectName) -> u32 {
    match name.0.first() {
        Some(ObjectNamePart::Identifier(first)) => source.position(first.span.start),
        None => 0,
    }
}

/// The error of a LATERAL item that reads the other side of a right or full join.
pub(super) fn not_lateral(visible: &Scope, read: &Expr) -> SqlError {
    let name = visible
        .columns
        .iter()
        .find(|column| column.expr == *read)
        .map_or("", |column| column.relation.as_str());
    let message = format!("invalid reference to FROM-clause entry for table \"{name}\"");
    SqlError::new(SqlState::INVALID_COLUMN_REFERENCE, message)
        .detail("The combining JOIN type must be INNER or LEFT for a LATERAL reference.")
}

//! SEARCH and CYCLE of WITH RECURSIVE: columns that say where in the search a row was found, and
//! whether it closes a cycle. They are carried through the rounds beside the query's own columns.

use super::Binder;
use super::composite::{field, row_of};
use super::rel::Rel;
use super::scope::ident;
use base::record::ANONYMOUS;
use base::{Datum, OutColumn, SqlError, SqlState, Type};
use expr::resolve::{self, Context};
use expr::{Expr, Func};
use functions::ArrayFunc;
use parse::Recursion;
use sqlparser::ast::{self, Ident, SelectItem, SetExpr, TableFactor};

/// Type of a row of values.
const ROW: Type = Type::Composite(ANONYMOUS);

/// A column that is added, by the name that the step has for what it was in the row before.
struct Added {
    name: &'static str,
    column: OutColumn,
    first: Expr,
    kind: Kind,
}

enum Kind {
    /// The depth and the columns.
    Breadth(Vec<usize>),
    /// Rows of the columns, from the first one on.
    Path(Vec<usize>),
    /// The mark: what it is in a row that closes a cycle, and in others.
    Mark(Expr, Expr),
}

/// What is added to a recursive query.
pub(super) struct Carried {
    added: Vec<Added>,
}

fn syntax(message: String) -> SqlError {
    SqlError::new(SqlState::SYNTAX, message)
}

fn refused(message: String) -> SqlError {
    SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message)
}

/// 42601 for a clause of a query that does not name itself.
pub(super) fn not_recursive() -> SqlError {
    syntax("WITH query is not recursive".into())
}

/// The places of columns among those of the query.
fn places(what: &str, columns: &[Ident], own: &[String]) -> Result<Vec<usize>, SqlError> {
    let mut places = Vec::new();
    for column in columns {
        let name = ident(column);
        let Some(place) = own.iter().position(|known| *known == name) else {
            let message = format!("{what} column \"{name}\" not in WITH query column list");
            return Err(syntax(message));
        };
        if places.contains(&place) {
            let message = format!("{what} column \"{name}\" specified more than once");
            return Err(SqlError::new(SqlState::DUPLICATE_COLUMN, message));
        }
        places.push(place);
    }
    Ok(places)
}

/// The columns of a row at these places.
fn row(places: &[usize], types: &[Type]) -> Result<Expr, SqlError> {
    let columns = places.iter();
    row_of(
        columns
            .map(|at| Expr::Column(*at as u32, types[*at]))
            .collect(),
    )
}

fn rows() -> Result<Type, SqlError> {
    ROW.array_of()
        .ok_or_else(|| refused("record[] is not supported".into()))
}

/// The name of an added column, which no column has.
fn taken(what: &str, name: &Ident, own: &[String]) -> Result<String, SqlError> {
    let name = ident(name);
    match own.contains(&name) {
        false => Ok(name),
        true => Err(syntax(format!(
            "{what} column name \"{name}\" already used in WITH query column list"
        ))),
    }
}

fn column(name: String, ty: Type) -> OutColumn {
    OutColumn {
        name,
        ty,
        table: 0,
        attribute: 0,
    }
}

/// The column that SEARCH adds.
fn searched(search: &parse::Search, own: &[String], types: &[Type]) -> Result<Added, SqlError> {
    let at = places("search", &search.columns, own)?;
    let name = taken("search sequence", &search.sequence, own)?;
    let (first, ty, kind) = match search.breadth {
        true => {
            let columns = at.iter().map(|at| Expr::Column(*at as u32, types[*at]));
            let depth = Expr::Const(Datum::Int(0), Type::Int8);
            let first = row_of(core::iter::once(depth).chain(columns).collect())?;
            (first, ROW, Kind::Breadth(at))
        }
        false => {
            let first = Expr::MakeArray(vec![row(&at, types)?], rows()?);
            (first, rows()?, Kind::Path(at))
        }
    };
    Ok(Added {
        name: "$\u{1}search",
        column: column(name, ty),
        first,
        kind,
    })
}

/// The columns that CYCLE adds: the mark and the path.
fn cycled(
    cycle: &parse::Cycle,
    (value, default): (Expr, Expr),
    (own, types): (&[String], &[Type]),
) -> Result<[Added; 2], SqlError> {
    let at = places("cycle", &cycle.columns, own)?;
    let mark = taken("cycle mark", &cycle.mark, own)?;
    let path = taken("cycle path", &cycle.path, own)?;
    for at in &at {
        let column = Expr::Column(*at as u32, types[*at]);
        resolve::binary("=", column.clone(), column)?;
    }
    let first = Expr::MakeArray(vec![row(&at, types)?], rows()?);
    let mark = Added {
        name: "$\u{1}mark",
        column: column(mark, default.ty()),
        first: default.clone(),
        kind: Kind::Mark(value, default),
    };
    let path = Added {
        name: "$\u{1}path",
        column: column(path, rows()?),
        first,
        kind: Kind::Path(at),
    };
    Ok([mark, path])
}

impl Binder<'_> {
    /// Looks at the clauses of a query with these columns.
    ///
    /// # Errors
    /// Those of PostgreSQL: 42601 and 42701 for names, 42804 for values of two types, 42883 for
    /// columns that cannot be compared.
    pub(super) fn carried(
        &mut self,
        recursion: &Recursion,
        own: &[String],
        types: &[Type],
    ) -> Result<Carried, SqlError> {
        let Recursion { search, cycle } = recursion;
        let mut added = Vec::new();
        if let Some(search) = search {
            added.push(searched(search, own, types)?);
        }
        if let Some(cycle) = cycle {
            let values = self.mark_values(cycle)?;
            let [mark, path] = cycled(cycle, values, (own, types))?;
            if mark.column.name == path.column.name {
                let message = "cycle mark column name and cycle path column name are the same";
                return Err(syntax(message.into()));
            }
            if let Some(search) = added.first() {
                for (other, what) in [(&mark, "mark"), (&path, "path")] {
                    if search.column.name == other.column.name {
                        return Err(syntax(format!(
                            "search sequence column name and cycle {what} column name are the same"
                        )));
                    }
                }
            }
            added.extend([mark, path]);
        }
        Ok(Carried { added })
    }

    /// What the mark is in a row that closes a cycle, and in others, of one type.
    fn mark_values(&mut self, cycle: &parse::Cycle) -> Result<(Expr, Expr), SqlError> {
        let Some((value, default)) = &cycle.values else {
            return Ok((Expr::bool(true), Expr::bool(false)));
        };
        let outer = self.set_scope(super::scope::Scope::default());
        let bound = self.expr(value).and_then(|value| {
            let default = self.expr(default)?;
            Ok((value, default))
        });
        self.set_scope(outer);
        let (value, default) = bound?;
        let ty = match resolve::common_type_of("CYCLE", &[value.ty(), default.ty()])? {
            Type::Unknown => Type::Text,
            ty => ty,
        };
        let value = resolve::coerce(value, ty, Context::Implicit)?;
        let default = resolve::coerce(default, ty, Context::Implicit)?;
        resolve::binary("<>", value.clone(), default.clone())?;
        Ok((value, default))
    }
}

impl Carried {
    /// The names of the added columns in the step, with their types.
    pub(super) fn hidden(&self) -> impl Iterator<Item = (String, Type)> {
        let added = self.added.iter();
        added.map(|one| (one.name.to_owned(), one.column.ty))
    }

    /// The added columns.
    pub(super) fn columns(&self) -> impl Iterator<Item = OutColumn> {
        self.added.iter().map(|one| one.column.clone())
    }

    /// The first rows with the added columns.
    pub(super) fn begun(&self, rel: Rel, types: &[Type]) -> Rel {
        let mut exprs = plain(types);
        exprs.extend(self.added.iter().map(|one| one.first.clone()));
        rel.projected(exprs)
    }

    /// The step, whose list of columns gets those that were added to the row before.
    ///
    /// # Errors
    /// 0A000 for a step that is no SELECT from the query itself.
    pub(super) fn step(&self, step: &SetExpr, name: &str) -> Result<SetExpr, SqlError> {
        let SetExpr::Select(select) = step else {
            let message =
                "with a SEARCH or CYCLE clause, the right side of the UNION must be a SELECT";
            return Err(refused(message.into()));
        };
        let from = select.from.iter();
        let Some(alias) = from
            .flat_map(factors)
            .find_map(|factor| of_query(factor, name))
        else {
            return Err(refused(format!(
                "with a SEARCH or CYCLE clause, the recursive reference to WITH query \"{name}\" \
                 must be at the top level of its right-hand SELECT"
            )));
        };
        let mut select = select.clone();
        for one in &self.added {
            let column = vec![alias.clone(), Ident::with_quote('"', one.name)];
            let column = ast::Expr::CompoundIdentifier(column);
            select.projection.push(SelectItem::UnnamedExpr(column));
        }
        Ok(SetExpr::Select(select))
    }

    /// The rows of a round, which have the added columns of the rows before, with their own.
    ///
    /// # Errors
    /// Those of comparisons.
    pub(super) fn carried_on(&self, rel: Rel, types: &[Type]) -> Result<Rel, SqlError> {
        let mut rel = rel;
        let before = |at: usize| Expr::Column((types.len() + at) as u32, self.added[at].column.ty);
        let mut exprs = plain(types);
        for (at, one) in self.added.iter().enumerate() {
            exprs.push(match &one.kind {
                Kind::Breadth(places) => {
                    let depth = field(&before(at), 0, Type::Int8);
                    let one = Expr::Const(Datum::Int(1), Type::Int8);
                    let depth = resolve::binary("+", depth, one)?;
                    let columns = places.iter();
                    let columns = columns.map(|at| Expr::Column(*at as u32, types[*at]));
                    row_of(core::iter::once(depth).chain(columns).collect())?
                }
                Kind::Path(places) => append(before(at), row(places, types)?),
                Kind::Mark(value, default) => {
                    let goes_on = resolve::binary("<>", before(at), value.clone())?;
                    rel = rel.filtered(vec![goes_on]);
                    let Kind::Path(places) = &self.added[at + 1].kind else {
                        unreachable!("the path is behind the mark")
                    };
                    let own = row(places, types)?;
                    let closes = resolve::any_array(own, "=", before(at + 1), false)?;
                    Expr::Case {
                        arms: vec![(closes, value.clone())],
                        otherwise: Box::new(default.clone()),
                        ty: default.ty(),
                    }
                }
            });
        }
        Ok(rel.projected(exprs))
    }
}

fn append(path: Expr, row: Expr) -> Expr {
    let ty = path.ty();
    Expr::Call(Func::Array(ArrayFunc::Append), vec![path, row], ty)
}

fn plain(types: &[Type]) -> Vec<Expr> {
    let columns = types.iter().enumerate();
    columns
        .map(|(at, ty)| Expr::Column(at as u32, *ty))
        .collect()
}

/// The relations of an item of FROM.
fn factors(item: &ast::TableWithJoins) -> Vec<&TableFactor> {
    let ast::TableWithJoins { relation, joins } = item;
    let relations = core::iter::once(relation).chain(joins.iter().map(|join| &join.relation));
    let nested = relations.flat_map(|relation| match relation {
        TableFactor::NestedJoin {
            table_with_joins,
            alias: None,
        } => factors(table_with_joins),
        other => vec![other],
    });
    nested.collect()
}

/// What the query of this name is called in FROM.
fn of_query(factor: &TableFactor, name: &str) -> Option<Ident> {
    let TableFactor::Table {
        name: table,
        alias,
        args: None,
        with_hints: _,
        version: _,
        with_ordinality: _,
        partitions: _,
        json_path: _,
        sample: _,
        index_hints: _,
    } = factor
    else {
        return None;
    };
    let [part] = table.0.as_slice() else {
        return None;
    };
    let own = part.as_ident()?;
    let alias = alias.as_ref().map_or(own, |alias| &alias.name);
    (ident(own) == name).then(|| alias.clone())
}

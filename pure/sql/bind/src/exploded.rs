//! Functions of the catalog that give rows of several columns: `aclexplode` and
//! `information_schema._pg_expandarray`. Each column is an array, and the arrays stand side by
//! side. In a SELECT list one column of the rows is read, `(aclexplode(relacl)).grantee`, or the
//! row of `aclexplode` is a value.

use super::Binder;
use super::rel::TableFunction;
use super::scope::{ident, object_name};
use super::table_function::BoundFunction;
use base::record::ACL_ROW;
use base::{ArrayKind, SqlError, SqlState, Type};
use catalog::Attribute;
use expr::resolve::{self, Context};
use expr::{Expr, Func};
use functions::RowFunc;
use functions::json::JsonRows;
use sqlparser::ast::{self, Expr as Ast};

/// The columns of `aclexplode`.
const ACL: [(&str, Type); 4] = [
    ("grantor", Type::Oid),
    ("grantee", Type::Oid),
    ("privilege_type", Type::Text),
    ("is_grantable", Type::Bool),
];

/// The fields of a row that a function of the catalog gives as a value; `None`: of another type.
pub(super) fn fields(ty: Type) -> Option<Vec<Attribute>> {
    let fields = ACL.iter().map(|(name, ty)| Attribute {
        name: (*name).into(),
        ty: *ty,
    });
    (ty == Type::Composite(ACL_ROW)).then(|| fields.collect())
}

/// The row of these columns as a value, if it has a type of its own.
pub(super) fn row(name: &str, columns: &[Expr]) -> Option<Expr> {
    let types = columns.iter().map(Expr::ty).collect();
    let make = Func::Row(RowFunc::Make(types));
    let is_acl = name == "aclexplode";
    is_acl.then(|| Expr::Call(make, columns.to_vec(), Type::Composite(ACL_ROW)))
}

/// Whether this is one of the functions.
pub(super) fn is_exploded(name: &str) -> bool {
    matches!(name, "aclexplode" | "_pg_expandarray")
}

/// Whether a function gives rows of several columns that have names.
fn has_columns(name: &str) -> bool {
    let of_json = || matches!(JsonRows::named(name), Some(JsonRows::Each { .. }));
    is_exploded(name) || of_json()
}

/// The argument as the function takes it, and the columns of its rows.
fn shape(name: &str, arg: Expr) -> Option<(Expr, Vec<(&'static str, Type)>)> {
    if name == "_pg_expandarray" {
        let element = arg.ty().element()?;
        return Some((arg, vec![("x", element), ("n", Type::Int4)]));
    }
    let list = Type::Array(ArrayKind::Text);
    let arg = resolve::coerce(arg, list, Context::Implicit).ok()?;
    Some((arg, ACL.to_vec()))
}

impl Binder<'_> {
    pub(super) fn bind_exploded(
        &mut self,
        name: &str,
        args: Vec<Expr>,
    ) -> Result<BoundFunction, SqlError> {
        let types: Vec<Type> = args.iter().map(Expr::ty).collect();
        let only = <[Expr; 1]>::try_from(args).ok();
        let Some((arg, columns)) = only.and_then(|[arg]| shape(name, arg)) else {
            let types = resolve::type_list(&types);
            let message = format!("function {name}({types}) does not exist");
            return Err(SqlError::new(SqlState::UNDEFINED_FUNCTION, message).hint(
                "No function matches the given name and argument types. You might need to add \
                     explicit type casts.",
            ));
        };
        let of_column = |(column, ty): &(&str, Type)| match *column {
            "x" => arg.clone(),
            column => Expr::Call(
                Func::Catalog(format!("{name}:{column}").into()),
                vec![arg.clone()],
                ty.array_of().unwrap_or(Type::Unknown),
            ),
        };
        let values: Vec<Expr> = columns.iter().map(of_column).collect();
        values.iter().for_each(|value| self.note(value));
        Ok(BoundFunction {
            function: TableFunction::Unnests(columns.len() as u8),
            args: values,
            columns: columns
                .into_iter()
                .map(|(column, ty)| (Some(column), ty))
                .collect(),
        })
    }

    /// `(function(...)).column` of a function that gives rows of several columns; `None`: it is
    /// something else.
    pub(super) fn column_of_call(
        &mut self,
        root: &Ast,
        chain: &[ast::AccessExpr],
    ) -> Result<Option<Expr>, SqlError> {
        let Ast::Function(call) = super::expr::unwrapped(root) else {
            return Ok(None);
        };
        let (_, name) = object_name(&call.name);
        let Some(ast::AccessExpr::Dot(Ast::Identifier(column))) = chain.first() else {
            return Ok(None);
        };
        if call.over.is_some() || !has_columns(&name) {
            return Ok(None);
        }
        let args = self.plain_arguments(&name, &call.args)?;
        let args = args.iter().map(|arg| self.argument(&name, arg));
        let args = args.collect::<Result<Vec<_>, _>>()?;
        self.listed_column(&name, args, &ident(column)).map(Some)
    }
}

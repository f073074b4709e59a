//! Select lists: wildcards, output names, origins.

use super::scope::{ident, object_name};
use super::{Binder, unsupported};
use crate::expr::Expr;
use crate::expr::resolve::{self, Context};
use crate::plan::OutColumn;
use base::{SqlError, SqlState, Type};
use sqlparser::ast::{
    Expr as Ast, Function, ObjectNamePart, SelectItem, SelectItemQualifiedWildcardKind,
};

/// One output column while its query is bound.
pub(crate) struct Target {
    pub(crate) expr: Expr,
    pub(crate) name: String,
    pub(crate) origin: (u32, i16),
}

impl Target {
    pub(crate) fn column(&self) -> OutColumn {
        OutColumn {
            name: self.name.clone(),
            ty: self.expr.ty(),
            table: self.origin.0,
            attribute: self.origin.1,
        }
    }
}

impl Binder<'_> {
    /// Binds a select list or RETURNING list over the current scope.
    ///
    /// # Errors
    /// As [`Binder::expr`]; 42P01 for `t.*` of an unknown table.
    pub(crate) fn targets(&mut self, items: &[SelectItem]) -> Result<Vec<Target>, SqlError> {
        let mut targets = Vec::new();
        for item in items {
            match item {
                SelectItem::UnnamedExpr(ast) => {
                    let name = output_name(ast);
                    targets.push(self.target(ast, name)?);
                }
                SelectItem::ExprWithAlias { expr, alias } => {
                    targets.push(self.target(expr, ident(alias))?);
                }
                SelectItem::Wildcard(_) => {
                    let scope = &self.level().scope;
                    if scope.relations.is_empty() {
                        let message = "SELECT * with no tables specified is not valid";
                        return Err(SqlError::new(SqlState::SYNTAX, message));
                    }
                    let visible = scope.columns.iter().filter(|c| !c.shadowed && !c.hidden);
                    targets.extend(visible.map(|column| Target {
                        expr: column.expr.clone(),
                        name: column.name.clone(),
                        origin: column.origin,
                    }));
                }
                SelectItem::QualifiedWildcard(kind, _) => {
                    let SelectItemQualifiedWildcardKind::ObjectName(name) = kind else {
                        return Err(unsupported("the wildcard of an expression"));
                    };
                    let (_, relation) = object_name(name);
                    let scope = &self.level().scope;
                    if !scope.relations.contains(&relation) {
                        return Err(SqlError::new(
                            SqlState::UNDEFINED_TABLE,
                            format!("missing FROM-clause entry for table \"{relation}\""),
                        )
                        .at(super::scope::name_position(&self.source, name)));
                    }
                    let level = self.level();
                    let columns = level.scope.columns.iter();
                    targets.extend(columns.filter(|c| c.relation == relation && !c.hidden).map(
                        |column| Target {
                            expr: column.expr.clone(),
                            name: column.name.clone(),
                            origin: column.origin,
                        },
                    ));
                }
            }
        }
        if targets.len() > base::limits::COLUMNS_MAX {
            let message = "target lists can have at most 1664 entries";
            return Err(SqlError::new(SqlState::TOO_MANY_COLUMNS, message));
        }
        Ok(targets)
    }

    fn target(&mut self, ast: &Ast, name: String) -> Result<Target, SqlError> {
        let expr = self.expr(ast)?;
        let origin = match &expr {
            Expr::Column(..) => {
                let columns = &self.level().scope.columns;
                columns
                    .iter()
                    .find(|c| c.expr == expr)
                    .map_or((0, 0), |c| c.origin)
            }
            _ => (0, 0),
        };
        Ok(Target { expr, name, origin })
    }

    /// Gives output columns of unknown type the type text.
    pub(crate) fn settle_target(&mut self, target: &mut Target) -> Result<(), SqlError> {
        if target.expr.ty() == Type::Unknown {
            let expr = core::mem::replace(&mut target.expr, Expr::null(Type::Unknown));
            target.expr = resolve::coerce(expr, Type::Text, Context::Implicit)?;
            let expr = target.expr.clone();
            self.note(&expr);
        }
        Ok(())
    }
}

/// The name of an output column without an alias, as PostgreSQL derives it.
fn output_name(ast: &Ast) -> String {
    derived_name(ast).unwrap_or_else(|| "?column?".into())
}

fn derived_name(ast: &Ast) -> Option<String> {
    Some(match ast {
        Ast::Identifier(name) => ident(name),
        Ast::CompoundIdentifier(parts) => ident(parts.last()?),
        Ast::Nested(inner) | Ast::Collate { expr: inner, .. } => return derived_name(inner),
        Ast::Function(Function { name, .. }) => match name.0.last()? {
            ObjectNamePart::Identifier(name) => ident(name),
        },
        Ast::Cast {
            expr, data_type, ..
        } => {
            return derived_name(expr).or_else(|| {
                let ty = super::types::bind_type(data_type).ok()?;
                Some(ty.catalog_name().trim_start_matches('_').to_string())
            });
        }
        Ast::Case { else_result, .. } => {
            return else_result
                .as_deref()
                .and_then(derived_name)
                .or_else(|| Some("case".into()));
        }
        Ast::Exists { .. } => "exists".into(),
        Ast::Array(_) => "array".into(),
        Ast::Subquery(query) => {
            let select = query.body.as_select()?;
            return match select.projection.first()? {
                SelectItem::UnnamedExpr(inner) => derived_name(inner),
                SelectItem::ExprWithAlias { alias, .. } => Some(ident(alias)),
                _ => None,
            };
        }
        Ast::Extract { .. } => "extract".into(),
        Ast::Position { .. } => "position".into(),
        Ast::Substring { .. } => "substring".into(),
        Ast::Trim { trim_where, .. } => match trim_where {
            Some(sqlparser::ast::TrimWhereField::Leading) => "ltrim".into(),
            Some(sqlparser::ast::TrimWhereField::Trailing) => "rtrim".into(),
            _ => "btrim".into(),
        },
        Ast::Overlay { .. } => "overlay".into(),
        Ast::Ceil { .. } => "ceil".into(),
        Ast::Floor { .. } => "floor".into(),
        Ast::TypedString { data_type, .. } => super::types::bind_type(data_type)
            .ok()?
            .catalog_name()
            .into(),
        Ast::Interval(_) => "interval".into(),
        Ast::CompoundFieldAccess { root, access_chain } => {
            for access in access_chain.iter().rev() {
                if let sqlparser::ast::AccessExpr::Dot(Ast::Identifier(name)) = access {
                    return Some(ident(name));
                }
            }
            return derived_name(root);
        }
        Ast::AtTimeZone { .. } => "timezone".into(),
        Ast::Value(value) => match value.value {
            sqlparser::ast::Value::Boolean(_) => "bool".into(),
            _ => return None,
        },
        _ => return None,
    })
}

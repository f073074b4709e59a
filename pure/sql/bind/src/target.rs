//! Select lists: wildcards, output names, origins.

use super::scope::{ScopeColumn, ident, object_name};
use super::{Binder, Untyped, unsupported};
use base::{OutColumn, SqlError, SqlState, Type};
use catalog::Names;
use expr::Expr;
use expr::resolve::Context;
use pg_catalog::names::check_parts;
use sqlparser::ast::{
    self, ArrayElemTypeDef, DataType, Expr as Ast, SelectItem, SelectItemQualifiedWildcardKind,
    TrimWhereField, WildcardAdditionalOptions,
};

/// One output column while its query is bound.
#[allow(missing_docs)]
pub struct Target {
    pub expr: Expr,
    pub name: String,
    pub(crate) origin: (u32, i16),
}

impl Target {
    /// What is computed with the others, and no output column.
    pub(super) fn hidden(expr: Expr) -> Target {
        Target {
            expr,
            name: String::new(),
            origin: (0, 0),
        }
    }

    /// The column of the result that it becomes.
    pub fn column(&self) -> OutColumn {
        OutColumn {
            name: self.name.clone(),
            ty: self.expr.ty(),
            table: self.origin.0,
            attribute: self.origin.1,
        }
    }
}

impl Untyped {
    /// What becomes of them in a query with this DISTINCT: rows are compared as text.
    pub(super) fn of_query(self, distinct: &Option<ast::Distinct>) -> Untyped {
        match distinct {
            Some(ast::Distinct::Distinct) => Untyped::Text,
            Some(ast::Distinct::On(_)) | None => self,
        }
    }
}

impl Binder<'_> {
    /// Binds a select list or RETURNING list over the current scope.
    ///
    /// # Errors
    /// As [`Binder::expr`]; 42P01 for `t.*` of an unknown table.
    pub fn targets(&mut self, items: &[SelectItem]) -> Result<Vec<Target>, SqlError> {
        let mut targets = Vec::new();
        for item in items {
            match item {
                SelectItem::UnnamedExpr(ast) => {
                    if let Some(fields) = self.expanded(ast)? {
                        targets.extend(fields);
                        continue;
                    }
                    let target = self.target(ast, String::new())?;
                    let name = self.output_name(ast);
                    targets.push(Target { name, ..target });
                }
                SelectItem::ExprWithAlias { expr, alias } => {
                    targets.push(self.target(expr, ident(alias))?);
                }
                SelectItem::Wildcard(options) => {
                    self.plain_wildcard(options)?;
                    let scope = &self.level().scope;
                    if scope.relations.is_empty() {
                        let message = "SELECT * with no tables specified is not valid";
                        return Err(SqlError::new(SqlState::SYNTAX, message));
                    }
                    let visible = scope.columns.iter().filter(|c| !c.shadowed && !c.hidden);
                    let columns = visible.cloned().collect();
                    self.add_star(options, columns, false, &mut targets);
                }
                SelectItem::QualifiedWildcard(kind, options) => {
                    self.plain_wildcard(options)?;
                    let SelectItemQualifiedWildcardKind::ObjectName(name) = kind else {
                        return Err(unsupported("the wildcard of an expression"));
                    };
                    let position = super::scope::name_position(&self.source, name);
                    let parts = name.0.iter().filter_map(ast::ObjectNamePart::as_ident);
                    let mut parts: Vec<String> = parts.map(ident).collect();
                    parts.push("*".into());
                    check_parts(&self.cx.database.name, &parts, 4, "")
                        .map_err(|error| error.at(position))?;
                    let (schema, relation) = object_name(name);
                    let schema = self.schema_number(schema.as_deref());
                    let scope = &self.level().scope;
                    let known = scope.relations.contains(&relation);
                    if !known || !scope.has_in(schema, &relation) {
                        return Err(scope.no_relation(&relation).at(position));
                    }
                    let own = |c: &&ScopeColumn| c.relation == relation && !c.hidden;
                    let columns = scope.columns.iter().filter(own).cloned().collect();
                    if let Some(schema) = schema {
                        let parts = name.0.iter().filter_map(ast::ObjectNamePart::as_ident);
                        let parts: Vec<&ast::Ident> = parts.collect();
                        self.note_parts(&parts, 0, &base::full_name::full(schema, &relation));
                    }
                    self.add_star(options, columns, true, &mut targets);
                }
            }
        }
        let max = base::limits::RESULT_COLUMNS_MAX;
        if targets.len() > max {
            let message = format!("target lists can have at most {max} entries");
            return Err(SqlError::new(SqlState::TOO_MANY_COLUMNS, message));
        }
        Ok(targets)
    }

    /// The columns for which `*` stands.
    fn add_star(
        &mut self,
        star: &WildcardAdditionalOptions,
        columns: Vec<ScopeColumn>,
        qualified: bool,
        targets: &mut Vec<Target>,
    ) {
        let place = star.wildcard_token.0.span.start;
        self.note_star(place, &columns, qualified);
        targets.extend(columns.into_iter().map(|column| Target {
            expr: column.expr,
            name: column.name,
            origin: column.origin,
        }));
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

    /// Gives output columns of unknown type their type.
    pub(crate) fn settle_targets(
        &mut self,
        targets: &mut [Target],
        untyped: &Untyped,
    ) -> Result<(), SqlError> {
        for (i, target) in targets.iter_mut().enumerate() {
            if target.expr.ty() != Type::Unknown {
                continue;
            }
            let ty = match untyped {
                Untyped::Text => Type::Text,
                Untyped::Assigned(types) => types.get(i).copied().unwrap_or(Type::Text),
                Untyped::Kept => continue,
            };
            self.give_type(&mut target.expr, ty, Context::Assignment)?;
        }
        Ok(())
    }

    /// Gives a literal, NULL or parameter without a type this type.
    pub(crate) fn give_type(
        &mut self,
        expr: &mut Expr,
        ty: Type,
        context: Context,
    ) -> Result<(), SqlError> {
        let untyped = core::mem::replace(expr, Expr::null(Type::Unknown));
        *expr = self.composed(untyped, ty, context)?;
        self.note(expr);
        Ok(())
    }
}

impl Binder<'_> {
    /// Refuses what other databases have behind `*`.
    fn plain_wildcard(&self, options: &WildcardAdditionalOptions) -> Result<(), SqlError> {
        let WildcardAdditionalOptions {
            wildcard_token: _,
            opt_ilike,
            opt_exclude,
            opt_except,
            opt_replace,
            opt_rename,
        } = options;
        self.no(opt_ilike.is_some(), "ILIKE")?;
        self.no(opt_exclude.is_some(), "EXCLUDE")?;
        self.no(opt_except.is_some(), "EXCEPT")?;
        self.no(opt_replace.is_some(), "REPLACE")?;
        self.no(opt_rename.is_some(), "RENAME")
    }

    /// The name of an output column without an alias, as PostgreSQL derives it. The expression
    /// was bound just before.
    fn output_name(&self, ast: &Ast) -> String {
        let name = self.derived_name(ast).map(|(name, _)| name);
        name.unwrap_or_else(|| "?column?".into())
    }

    /// The name of an expression, and whether it is a strong one: a cast or CASE has its own name
    /// only if what is in it has no strong one.
    fn derived_name(&self, ast: &Ast) -> Option<(String, bool)> {
        match ast {
            Ast::Identifier(name) => Some((ident(name), true)),
            Ast::CompoundIdentifier(parts) => Some((ident(parts.last()?), true)),
            Ast::Nested(inner) => self.derived_name(inner),
            Ast::Collate { expr, collation: _ } => self.derived_name(expr),
            Ast::Function(function) => Some((object_name(&function.name).1, true)),
            Ast::Cast {
                kind: _,
                expr,
                data_type,
                format: _,
            } => match self.derived_name(expr) {
                Some((name, true)) => Some((name, true)),
                weak => type_name(data_type, &self.names())
                    .map(|name| (name, false))
                    .or(weak),
            },
            Ast::TypedString {
                data_type,
                value: _,
            } => type_name(data_type, &self.names()).map(|name| (name, false)),
            Ast::Interval(_) => Some(("interval".into(), false)),
            Ast::Case {
                operand: _,
                conditions: _,
                else_result,
            } => match else_result
                .as_deref()
                .and_then(|ast| self.derived_name(ast))
            {
                Some((name, true)) => Some((name, true)),
                _ => Some(("case".into(), false)),
            },
            Ast::Subquery(_) => Some((self.subquery_name.clone(), true)),
            Ast::CompoundFieldAccess { root, access_chain } => {
                for access in access_chain.iter().rev() {
                    if let ast::AccessExpr::Dot(Ast::Identifier(name)) = access {
                        return Some((ident(name), true));
                    }
                }
                self.derived_name(root)
            }
            other => grammar_name(other).map(|name| (name.to_string(), true)),
        }
    }
}

/// The name of a type as it names columns: that of the catalog, without what makes it an array.
fn type_name(data_type: &DataType, names: &Names<'_>) -> Option<String> {
    match data_type {
        DataType::Custom(name, _) => Some(object_name(name).1),
        DataType::Regclass => Some("regclass".into()),
        DataType::Array(
            ArrayElemTypeDef::SquareBracket(element, _) | ArrayElemTypeDef::AngleBracket(element),
        ) => type_name(element, names),
        other => {
            let ty = super::types::bind_type(other, names).ok()?;
            Some(ty.catalog_name().trim_start_matches('_').to_string())
        }
    }
}

/// The name of what the grammar has in place of a function.
fn grammar_name(ast: &Ast) -> Option<&'static str> {
    match ast {
        Ast::Exists {
            subquery: _,
            negated: false,
        } => Some("exists"),
        Ast::Array(_) => Some("array"),
        Ast::Tuple(_) => Some("row"),
        Ast::Extract {
            field: _,
            syntax: _,
            expr: _,
        } => Some("extract"),
        Ast::Position { expr: _, r#in: _ } => Some("position"),
        Ast::Substring {
            expr: _,
            substring_from: _,
            substring_for: _,
            special: _,
        } => Some("substring"),
        Ast::Trim {
            expr: _,
            trim_where,
            trim_what: _,
            trim_characters: _,
        } => Some(match trim_where {
            Some(TrimWhereField::Leading) => "ltrim",
            Some(TrimWhereField::Trailing) => "rtrim",
            Some(TrimWhereField::Both) | None => "btrim",
        }),
        Ast::Overlay {
            expr: _,
            overlay_what: _,
            overlay_from: _,
            overlay_for: _,
        } => Some("overlay"),
        Ast::AtTimeZone {
            timestamp: _,
            time_zone: _,
        } => Some("timezone"),
        _ => None,
    }
}

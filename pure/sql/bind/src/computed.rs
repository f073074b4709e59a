//! Expressions over the rows of one table whose values are kept: generated columns, and what
//! indexes are on.

use super::rel::run_query;
use super::scope::{object_name, whole_scope};
use super::{Binder, ELSEWHERE, unsupported};
use ::expr::{Expr, Func, Volatility, walk, zoned};
use base::text::SpanStyle;
use base::{SqlError, SqlState, Type};
use catalog::{Column, Table};
use parse::expression;
use sqlparser::ast::Expr as Ast;
use std::sync::Arc;

/// What an expression is for; decides the words of errors.
#[derive(Clone, Copy)]
pub enum Kept<'a> {
    /// The value of this generated column.
    Generated(&'a Column),
    /// A key of an index.
    Key,
    /// The condition of an index.
    Predicate,
    /// The values of this column, which gets its type: USING.
    Transform(&'a Column),
}

impl Kept<'_> {
    /// In the plural, for what is not allowed there.
    fn plural(self) -> &'static str {
        match self {
            Kept::Generated(_) => "column generation expressions",
            Kept::Key => "index expressions",
            Kept::Predicate => "index predicates",
            Kept::Transform(_) => "transform expressions",
        }
    }

    fn singular(self) -> &'static str {
        match self {
            Kept::Generated(_) => "column generation expression",
            Kept::Key => "index expression",
            Kept::Predicate => "index predicate",
            Kept::Transform(_) => "transform expression",
        }
    }

    fn with_article(self) -> String {
        let article = match self {
            Kept::Generated(_) | Kept::Transform(_) => "a",
            Kept::Key | Kept::Predicate => "an",
        };
        format!("{article} {}", self.singular())
    }

    /// 42P17.
    fn not_immutable(self) -> SqlError {
        let message = match self {
            Kept::Transform(_) => {
                let error = unsupported("USING with a value that depends on more than the row");
                return error.hint("Change the type first, and UPDATE the rows behind.");
            }
            Kept::Generated(_) => "generation expression is not immutable".into(),
            _ => format!("functions in {} must be marked IMMUTABLE", self.singular()),
        };
        SqlError::new(SqlState::INVALID_OBJECT_DEFINITION, message)
    }
}

impl Binder<'_> {
    /// Binds an expression that is new, over a table whose columns are complete.
    ///
    /// # Errors
    /// Those of names and types; 42P17 for a value that depends on more than the row; 0A000 for a
    /// subquery, and for a moment or interval that depends on the session's settings.
    pub fn kept_expr(
        &mut self,
        table: &Arc<Table>,
        ast: &Ast,
        kept: Kept<'_>,
    ) -> Result<Expr, SqlError> {
        let outer = self.set_scope(whole_scope(table));
        let before = self.level().aggregates_in.replace(kept.plural());
        let calls = self.take_calls();
        let inits = self.inits.len();
        let bound = match kept {
            Kept::Predicate => self.plain_style(|binder| binder.condition(ast, "WHERE")),
            Kept::Generated(_) | Kept::Key => self.plain_style(|binder| binder.expr(ast)),
            Kept::Transform(_) => self.expr(ast),
        };
        let inner = core::mem::replace(&mut self.level().calls, calls);
        let started = self.inits.split_off(inits);
        self.level().aggregates_in = before;
        self.set_scope(outer);
        let bound = bound?;
        if run_query(&inner, &started) {
            let message = format!("cannot use subquery in {}", kept.singular());
            return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
        }
        if !inner.is_empty() || !started.is_empty() {
            return Err(kept.not_immutable());
        }
        let bound = match kept {
            Kept::Transform(column) => self.transformed(bound, column)?,
            _ => bound,
        };
        self.check_kept(table, &bound, kept)?;
        let bound = match kept {
            Kept::Generated(column) => {
                self.plain_style(|binder| binder.generated_value(bound, column))?
            }
            Kept::Transform(_) => bound,
            Kept::Key | Kept::Predicate => bound,
        };
        let mut settled = bound.clone();
        if !matches!(kept, Kept::Transform(_)) {
            self.check_style(&bound, &kept.with_article())?;
            zoned::fix_style(&mut settled, SpanStyle::Postgres, &self.zone);
        }
        self.settle(&mut settled);
        self.check_labels()?;
        ::expr::fold::fold(&mut settled);
        ::expr::fold::check(&settled)?;
        Ok(bound)
    }

    fn generated_value(&mut self, bound: Expr, column: &Column) -> Result<Expr, SqlError> {
        self.assigned(bound, column).map_err(|error| {
            if error.state() != SqlState::DATATYPE_MISMATCH {
                return error;
            }
            let text = &error.fields().message;
            let text = text.replace(" but expression is", " but default expression is");
            SqlError::new(SqlState::DATATYPE_MISMATCH, text)
                .hint("You will need to rewrite or cast the expression.")
        })
    }

    fn transformed(&mut self, bound: Expr, column: &Column) -> Result<Expr, SqlError> {
        self.assigned(bound, column).map_err(|error| {
            if error.state() != SqlState::DATATYPE_MISMATCH {
                return error;
            }
            let name = &column.name;
            let to = column.ty.base_name();
            let message = format!(
                "result of USING clause for column \"{name}\" cannot be cast automatically to type \
                 {to}"
            );
            SqlError::new(SqlState::DATATYPE_MISMATCH, message)
                .hint("You might need to add an explicit cast.")
        })
    }

    /// Refuses what cannot be kept.
    fn check_kept(&self, table: &Table, bound: &Expr, kept: Kept<'_>) -> Result<(), SqlError> {
        let parameter = |node: &Expr| matches!(node, Expr::Param(..));
        if walk::any(bound, &parameter) {
            let message = "there is no parameter $1";
            return Err(SqlError::new(SqlState::UNDEFINED_PARAMETER, message));
        }
        let version = |node: &Expr| matches!(node, Expr::Call(Func::RowVersion, ..));
        let place = |node: &Expr| matches!(node, Expr::Column(_, Type::Tid));
        for (name, reads) in [
            ("xmin", walk::any(bound, &version)),
            ("ctid", walk::any(bound, &place)),
        ] {
            if !reads {
                continue;
            }
            return Err(match kept {
                Kept::Generated(_) => SqlError::new(
                    SqlState::INVALID_OBJECT_DEFINITION,
                    format!("cannot use system column \"{name}\" in column generation expression"),
                ),
                _ => SqlError::new(
                    SqlState::FEATURE_NOT_SUPPORTED,
                    "index creation on system columns is not supported",
                ),
            });
        }
        if let Kept::Generated(_) = kept {
            for at in walk::columns(bound) {
                let column = table.column_at(at as u16);
                if column.generated.is_some() {
                    let message = format!(
                        "cannot use generated column \"{}\" in column generation expression",
                        column.name
                    );
                    let detail = "A generated column cannot reference another generated column.";
                    let state = SqlState::INVALID_OBJECT_DEFINITION;
                    return Err(SqlError::new(state, message).detail(detail));
                }
            }
        }
        if let Kept::Transform(_) = kept {
            // The zone of the session is kept with it; the catalog is the same for all sessions.
            let changes = |node: &Expr| match node {
                Expr::Call(Func::Catalog(_), _, _) => false,
                Expr::Call(func, _, _) => func.volatility() != Volatility::Immutable,
                _ => false,
            };
            return match walk::any(bound, &changes) {
                true => Err(kept.not_immutable()),
                false => Ok(()),
            };
        }
        match self.kept_volatility(bound) {
            Volatility::Immutable => check_zone(bound, kept),
            _ => Err(kept.not_immutable()),
        }
    }

    /// The value of a generated column over the row of its table, from the catalog's text.
    ///
    /// # Errors
    /// Those of binding it.
    pub fn generated(&mut self, table: &Arc<Table>, column: &Column) -> Result<Expr, SqlError> {
        let text = column.generated.as_ref().expect("the column is generated");
        let ast = expression(text)?;
        let outer = self.set_scope(whole_scope(table));
        let before = self.level().aggregates_in;
        self.level().aggregates_in = ELSEWHERE;
        let settings = column.zone.as_deref();
        let settings = settings.unwrap_or(zoned::zone_of(&self.zone)).to_string();
        let bound = self.without_needs(|binder| {
            binder.with_settings(&settings, |binder| {
                let bound = binder.kept(|binder| binder.expr(&ast))?;
                binder.assigned(bound, column)
            })
        });
        self.level().aggregates_in = before;
        self.set_scope(outer);
        let mut bound = bound?;
        if column.zone.is_some() {
            walk::map(&mut bound, &mut |node| zoned::read_literal(node, &settings));
            zoned::localize(&mut bound, &settings);
        }
        zoned::fix_style(&mut bound, SpanStyle::Postgres, &self.zone);
        Ok(bound)
    }

    /// Runs `bind` as in a session with these settings ([`zoned::of_settings`]).
    fn with_settings<T>(&mut self, settings: &str, bind: impl FnOnce(&mut Self) -> T) -> T {
        let own = core::mem::replace(&mut self.zone, settings.into());
        let bound = bind(self);
        self.zone = own;
        bound
    }

    /// Runs `bind` as in a session whose style of intervals is `postgres`.
    pub fn plain_style<T>(&mut self, bind: impl FnOnce(&mut Self) -> T) -> T {
        let zone = zoned::zone_of(&self.zone).to_string();
        self.with_settings(&zone, bind)
    }

    /// Binds a condition that the catalog keeps for rows: in each session its style of intervals
    /// is `postgres`.
    ///
    /// # Errors
    /// Those of `bind`.
    pub fn of_rows(
        &mut self,
        bind: impl FnOnce(&mut Self) -> Result<Expr, SqlError>,
    ) -> Result<Expr, SqlError> {
        let mut bound = self.plain_style(bind)?;
        zoned::fix_style(&mut bound, SpanStyle::Postgres, &self.zone);
        Ok(bound)
    }

    /// Refuses a literal that means another interval in the session than in `what` is to be kept.
    ///
    /// # Errors
    /// 0A000.
    pub fn check_style(&self, bound: &Expr, what: &str) -> Result<(), SqlError> {
        let style = zoned::style_of(&self.zone);
        if style != SpanStyle::Sql || !zoned::hangs_on_style(bound) {
            return Ok(());
        }
        let text = format!("an interval with one sign for several fields in {what}");
        Err(unsupported(&text).hint("Write a sign before each field, as in '-1 -2:03:04'."))
    }
}

/// Refuses a value that is another one in another time zone.
fn check_zone(bound: &Expr, kept: Kept<'_>) -> Result<(), SqlError> {
    let read = |zone: &str| {
        let mut read = bound.clone();
        walk::map(&mut read, &mut |node| zoned::read_literal(node, zone));
        read
    };
    let (here, there) = (read("Asia/Tokyo"), read("America/Lima"));
    let localized = |zone: &str| {
        let mut localized = here.clone();
        zoned::localize(&mut localized, zone);
        localized
    };
    if localized("Asia/Tokyo") != localized("America/Lima") {
        return Err(kept.not_immutable());
    }
    if here != there {
        let what = kept.with_article();
        let message = format!("a moment without its time zone in {what} is not supported");
        return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message)
            .hint("Write the time zone behind the time, as in '2026-01-01 00:00+00'."));
    }
    Ok(())
}

/// The name that an index gives to a key that is no column.
pub fn key_name(ast: &Ast) -> String {
    let name = match ast {
        Ast::Nested(inner) => return key_name(inner),
        Ast::Cast {
            kind: _,
            expr,
            data_type: _,
            format: _,
        }
        | Ast::Collate { expr, collation: _ } => return key_name(expr),
        Ast::Function(function) => return object_name(&function.name).1,
        Ast::Identifier(name) => return super::scope::ident(name),
        Ast::Case {
            operand: _,
            conditions: _,
            else_result: _,
        } => "case",
        Ast::Substring {
            expr: _,
            substring_from: _,
            substring_for: _,
            special: _,
        } => "substring",
        Ast::Trim {
            expr: _,
            trim_where: _,
            trim_what: _,
            trim_characters: _,
        } => "btrim",
        Ast::Extract {
            field: _,
            syntax: _,
            expr: _,
        } => "extract",
        Ast::Position { expr: _, r#in: _ } => "position",
        Ast::Ceil { expr: _, field: _ } => "ceil",
        Ast::Floor { expr: _, field: _ } => "floor",
        _ => "expr",
    };
    name.into()
}

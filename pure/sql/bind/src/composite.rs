//! Rows as values: row constructors, values of composite types, their fields.

use super::scope::ident;
use super::target::Target;
use super::{Binder, unsupported};
use base::record::{ANONYMOUS, can_be_field};
use base::{Datum, SqlError, SqlState, Type};
use catalog::{Attribute, Table};
use expr::resolve::{self, Context};
use expr::{Expr, Func};
use functions::RowFunc;
use sqlparser::ast::{self, AccessExpr, Expr as Ast};

/// A type of a row that no name stands for.
const RECORD: Type = Type::Composite(ANONYMOUS);

/// The arguments, if this makes a row.
fn made(value: &Expr) -> Option<&Vec<Expr>> {
    match value {
        Expr::Call(Func::Row(RowFunc::Make(_)), args, _) => Some(args),
        _ => None,
    }
}

/// The types of the arguments of a row; what is open is text.
fn types_of(args: &[Expr]) -> Box<[Type]> {
    let types = args.iter().map(|arg| match arg.ty() {
        Type::Unknown => Type::Text,
        ty => ty,
    });
    types.collect()
}

/// The field at a place.
pub(super) fn field(value: &Expr, at: usize, ty: Type) -> Expr {
    match made(value) {
        Some(args) if args[at].ty() == ty => args[at].clone(),
        _ => {
            let func = Func::Row(RowFunc::Field(at as u16));
            Expr::Call(func, vec![value.clone()], ty)
        }
    }
}

/// Whether rows of a relation with a column of this type can be values.
fn check_field(ty: Type) -> Result<(), SqlError> {
    match can_be_field(ty) || ty == Type::Unknown {
        true => Ok(()),
        false => Err(unsupported("an array of rows in a row")),
    }
}

/// A row of these values, of a type without a name.
pub(super) fn row_of(args: Vec<Expr>) -> Result<Expr, SqlError> {
    args.iter().try_for_each(|arg| check_field(arg.ty()))?;
    let types = types_of(&args);
    Ok(Expr::Call(Func::Row(RowFunc::Make(types)), args, RECORD))
}

/// Gives a row whose arguments have got their types those, too.
pub(super) fn settle_row(node: &mut Expr) {
    if let Expr::Call(Func::Row(RowFunc::Make(types)), args, _) = node {
        *types = types_of(args);
    }
}

/// The columns of a row for people: `ROW(1, 2)` has `f1` and `f2`.
fn no_field(name: &str, ty: Type) -> SqlError {
    let message = match ty {
        RECORD => format!("could not identify column \"{name}\" in record data type"),
        _ => format!(
            "column \"{name}\" not found in data type {}",
            ty.base_name()
        ),
    };
    SqlError::new(SqlState::UNDEFINED_COLUMN, message)
}

/// The columns of a query as one value of a composite type; `None`: they are not its fields.
pub(super) fn row_of_columns(
    ty: Type,
    database: &catalog::Database,
    columns: &[base::OutColumn],
) -> Option<Result<Expr, SqlError>> {
    let attributes = database.attributes_of(ty)?;
    let is_row = matches!(columns, [only] if only.ty == ty);
    let fields = || columns.iter().zip(attributes);
    let fit =
        fields().all(|(column, one)| resolve::can_coerce(column.ty, one.ty, Context::Assignment));
    if is_row || columns.len() != attributes.len() || !fit {
        return None;
    }
    let values = fields().enumerate().map(|(i, (column, one))| {
        let value = Expr::Column(i as u32, column.ty);
        resolve::coerce(value, one.ty, Context::Assignment)
    });
    let types = attributes.iter().map(|one| one.ty).collect();
    let values = values.collect::<Result<Vec<_>, _>>();
    Some(values.map(|args| Expr::Call(Func::Row(RowFunc::Make(types)), args, ty)))
}

impl Binder<'_> {
    fn attributes(&self, ty: Type) -> Option<Vec<Attribute>> {
        let own = self.cx.database.attributes_of(ty);
        own.map(<[Attribute]>::to_vec)
            .or_else(|| super::exploded::fields(ty))
    }

    /// `ROW(a, b)`, also without the word.
    pub(super) fn row_value(&mut self, items: &[Ast]) -> Result<Expr, SqlError> {
        let mut args = Vec::with_capacity(items.len());
        for item in items {
            if let Ast::CompoundFieldAccess { root, access_chain } = super::expr::unwrapped(item)
                && let Some((AccessExpr::Dot(Ast::Wildcard(_)), chain)) = access_chain.split_last()
            {
                let of = self.access(root, chain)?;
                args.extend(self.fields_of(&of)?.into_iter().map(|(_, value)| value));
                continue;
            }
            args.push(self.expr(item)?);
        }
        row_of(args)
    }

    /// The row of the relation of this name; `None`: there is none.
    pub(super) fn row_of_relation(&mut self, relation: &str) -> Result<Option<Expr>, SqlError> {
        let Some((columns, missing)) = self.row_columns(relation) else {
            return Ok(None);
        };
        let row = row_of(columns.into_iter().map(|(_, column)| column).collect())?;
        Ok(Some(match missing {
            None => row,
            Some(missing) => Expr::Case {
                arms: vec![(missing, Expr::null(RECORD))],
                otherwise: Box::new(row),
                ty: RECORD,
            },
        }))
    }

    /// The value as one of a composite type, if it is a row that was made here; other values are
    /// converted as all are.
    ///
    /// # Errors
    /// 42846 for a row with other fields.
    pub(super) fn composed(
        &mut self,
        value: Expr,
        to: Type,
        context: Context,
    ) -> Result<Expr, SqlError> {
        if let (Some(element), Expr::MakeArray(items, _)) = (to.element(), &value)
            && matches!(element, Type::Composite(_))
        {
            let items = items.clone().into_iter();
            let items = items.map(|item| self.composed(item, element, context));
            return Ok(Expr::MakeArray(items.collect::<Result<_, _>>()?, to));
        }
        let attributes = match value.ty() {
            RECORD => self.attributes(to),
            _ => None,
        };
        let Some(attributes) = attributes else {
            return resolve::coerce(value, to, context);
        };
        let (cannot, named) = (
            |detail: String| {
                let message = format!("cannot cast type record to {}", to.base_name());
                SqlError::new(SqlState::CANNOT_COERCE, message).detail(detail)
            },
            made(&value).cloned(),
        );
        let Some(args) = named else {
            if matches!(value, Expr::Const(Datum::Null, _)) {
                return Ok(Expr::null(to));
            }
            return Err(cannot("The fields of the row are not known here.".into())
                .hint("Write the row as ROW(...), or cast it where it is made."));
        };
        match args.len().cmp(&attributes.len()) {
            core::cmp::Ordering::Less => return Err(cannot("Input has too few columns.".into())),
            core::cmp::Ordering::Greater => {
                return Err(cannot("Input has too many columns.".into()));
            }
            core::cmp::Ordering::Equal => {}
        }
        let mut fields = Vec::with_capacity(args.len());
        for (i, (arg, attribute)) in args.into_iter().zip(&attributes).enumerate() {
            let from = arg.ty();
            let converted = self.composed(arg, attribute.ty, context);
            fields.push(converted.map_err(|error| match error.state() {
                SqlState::DATATYPE_MISMATCH => cannot(format!(
                    "Cannot cast type {} to {} in column {}.",
                    from.base_name(),
                    attribute.ty.base_name(),
                    i + 1
                )),
                _ => error,
            })?);
        }
        fields.iter().for_each(|field| self.note(field));
        let types = attributes.iter().map(|attribute| attribute.ty).collect();
        Ok(Expr::Call(Func::Row(RowFunc::Make(types)), fields, to))
    }

    /// The fields of a row with their names.
    ///
    /// # Errors
    /// 42809 for a value that is no row, 42601 for one whose fields are not known.
    pub(super) fn fields_of(&self, value: &Expr) -> Result<Vec<(String, Expr)>, SqlError> {
        let ty = value.ty();
        if let Some(attributes) = self.attributes(ty) {
            let fields = attributes.into_iter().enumerate();
            let fields = fields.map(|(at, one)| (one.name, field(value, at, one.ty)));
            return Ok(fields.collect());
        }
        match made(value) {
            Some(args) => {
                let fields = (1..).zip(args.iter().cloned());
                Ok(fields.map(|(i, arg)| (format!("f{i}"), arg)).collect())
            }
            None if ty == RECORD => {
                let message = "record type has not been registered";
                Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message))
            }
            None => {
                let message = format!("type {} is not composite", ty.base_name());
                Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message))
            }
        }
    }

    /// `(value).name`
    pub(super) fn field_named(&self, value: &Expr, name: &str) -> Result<Expr, SqlError> {
        let ty = value.ty();
        if !matches!(ty, Type::Composite(_)) {
            let message = format!(
                "column notation .{name} applied to type {}, which is not a composite type",
                ty.base_name()
            );
            return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message));
        }
        if ty == RECORD && made(value).is_none() {
            return Err(no_field(name, ty));
        }
        let fields = self.fields_of(value)?.into_iter();
        let mut fields = fields.filter(|(own, _)| own == name);
        let found = fields.next().map(|(_, value)| value);
        found.ok_or_else(|| no_field(name, ty))
    }

    /// The targets for which `(value).*` stands; `None`: it is no such target.
    pub(super) fn expanded(&mut self, ast: &Ast) -> Result<Option<Vec<Target>>, SqlError> {
        let Ast::CompoundFieldAccess { root, access_chain } = super::expr::unwrapped(ast) else {
            return Ok(None);
        };
        let Some((AccessExpr::Dot(Ast::Wildcard(_)), chain)) = access_chain.split_last() else {
            return Ok(None);
        };
        if let (Ast::Identifier(relation), []) = (super::expr::unwrapped(root), chain)
            && let Some((columns, None)) = self.row_columns(&ident(relation))
        {
            let columns = columns.into_iter().map(|(name, expr)| Target {
                expr,
                name,
                origin: (0, 0),
            });
            return Ok(Some(columns.collect()));
        }
        let value = self.access(root, chain)?;
        if expr::walk::volatility(&value) == expr::Volatility::Volatile {
            let hint = "Compute the row in a subquery in FROM.";
            return Err(unsupported("the fields of a row that changes with each look").hint(hint));
        }
        let fields = self.fields_of(&value)?.into_iter();
        let targets = fields.map(|(name, expr)| Target {
            expr,
            name,
            origin: (0, 0),
        });
        Ok(Some(targets.collect()))
    }

    /// `IS [NOT] NULL` of a value.
    pub(super) fn null_test(&self, value: Expr, negated: bool) -> Expr {
        match value.ty() {
            Type::Composite(_) => {
                let func = Func::Row(RowFunc::IsNull(negated));
                Expr::Call(func, vec![value], Type::Bool)
            }
            _ => Expr::IsNull(Box::new(value), negated),
        }
    }

    /// Whether an assignment has set fields of the column, and not all of it.
    fn sets_fields(value: &Expr, column: u16) -> bool {
        let own = |arg: &Expr| match arg {
            Expr::Call(Func::Row(RowFunc::Field(_)), of, _) => {
                matches!(of[..], [Expr::Column(read, _)] if read == u32::from(column))
            }
            _ => false,
        };
        made(value).is_some_and(|args| args.len() == 1 || args.iter().any(own))
    }

    /// `SET column.field = value`: the column with the field changed, `before` having set others.
    pub(super) fn field_set(
        &mut self,
        table: &Table,
        (column, chain): (u16, &[AccessExpr]),
        value: &Ast,
        before: Option<&Expr>,
    ) -> Result<Expr, SqlError> {
        let described = &table.columns[usize::from(column)];
        let container = match before {
            None => Expr::Column(column.into(), described.ty),
            Some(before) if Self::sets_fields(before, column) => before.clone(),
            Some(_) => {
                let message = format!("multiple assignments to same column \"{}\"", described.name);
                return Err(SqlError::new(SqlState::SYNTAX, message));
            }
        };
        let value = self.expr(value)?;
        self.with_part(container, &described.name, chain, value)
    }

    /// As [`Binder::with_part`], of a value that is not bound yet.
    pub(super) fn with_part_of(
        &mut self,
        whole: Expr,
        column: &catalog::Column,
        chain: &[AccessExpr],
        value: &Ast,
    ) -> Result<Expr, SqlError> {
        if super::dml::is_default(value) {
            let message = match chain.first() {
                Some(AccessExpr::Dot(_)) => "cannot set a subfield to DEFAULT",
                _ => "cannot set an array element to DEFAULT",
            };
            return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
        }
        let value = self.expr(value)?;
        self.with_part(whole, &column.name, chain, value)
    }

    /// The value with another value of a part of it: fields, subscripts, or fields and subscripts
    /// of the last one.
    pub(super) fn with_part(
        &mut self,
        whole: Expr,
        name: &str,
        chain: &[AccessExpr],
        value: Expr,
    ) -> Result<Expr, SqlError> {
        let fields = chain.iter().map_while(|access| match access {
            AccessExpr::Dot(Ast::Identifier(field)) => Some(field),
            _ => None,
        });
        let fields: Vec<&ast::Ident> = fields.collect();
        let subscripts = &chain[fields.len()..];
        let is_subscript = |access: &AccessExpr| matches!(access, AccessExpr::Subscript(_));
        if !subscripts.iter().all(is_subscript) {
            let hint = "Set the whole element.";
            return Err(unsupported("a field of an element that is set").hint(hint));
        }
        let mut value = value;
        if !subscripts.is_empty() {
            let (mut part, mut of) = (whole.clone(), name.to_owned());
            for field in &fields {
                of = ident(field);
                part = self.field_named(&part, &of)?;
            }
            let open = (functions::OPEN_LOW, functions::OPEN_HIGH);
            let places = self.places(subscripts, open)?;
            value = resolve::assign_part(part, places, value, &of)?;
        }
        if fields.is_empty() {
            return Ok(value);
        }
        let path = fields.into_iter().cloned();
        let path: Vec<_> = path.map(ast::ObjectNamePart::Identifier).collect();
        self.with_field(whole, name, &path, value)
    }

    /// The type of a part of a value, for a literal that is assigned to it.
    pub(super) fn part_type(&self, whole: Type, chain: &[AccessExpr]) -> Type {
        let mut ty = whole;
        for access in chain {
            ty = match access {
                AccessExpr::Dot(Ast::Identifier(field)) => {
                    let name = ident(field);
                    let attributes = self.cx.database.attributes_of(ty).unwrap_or_default();
                    let found = attributes.iter().find(|one| one.name == name);
                    found.map_or(Type::Text, |one| one.ty)
                }
                AccessExpr::Subscript(ast::Subscript::Index { index: _ }) => {
                    ty.element().unwrap_or(ty)
                }
                // A slice is an array.
                _ => return whole,
            };
        }
        ty
    }

    /// The row with another value of a field, at the end of a path.
    pub(super) fn with_field(
        &mut self,
        row: Expr,
        column: &str,
        path: &[ast::ObjectNamePart],
        value: Expr,
    ) -> Result<Expr, SqlError> {
        let [ast::ObjectNamePart::Identifier(first), rest @ ..] = path else {
            return Ok(value);
        };
        let (name, ty) = (ident(first), row.ty());
        let Some(attributes) = self.attributes(ty) else {
            let message = format!(
                "cannot assign to field \"{name}\" of column \"{column}\" because its type {} is \
                 not a composite type",
                ty.base_name(),
            );
            return Err(SqlError::new(SqlState::DATATYPE_MISMATCH, message));
        };
        let Some(at) = attributes.iter().position(|one| one.name == name) else {
            let message = format!(
                "cannot assign to field \"{name}\" of column \"{column}\" because there is no such \
                 column in data type {}",
                ty.base_name(),
            );
            return Err(SqlError::new(SqlState::UNDEFINED_COLUMN, message));
        };
        let changed = attributes[at].ty;
        let value = match rest {
            [] => value,
            rest => self.with_field(field(&row, at, changed), &name, rest, value)?,
        };
        let from = value.ty();
        let value = self.composed(value, changed, Context::Assignment);
        let value = value.map_err(|error| match error.state() {
            SqlState::DATATYPE_MISMATCH => {
                let message = format!(
                    "subfield \"{name}\" is of type {} but expression is of type {}",
                    changed.base_name(),
                    from.base_name()
                );
                SqlError::new(SqlState::DATATYPE_MISMATCH, message)
                    .hint("You will need to rewrite or cast the expression.")
            }
            _ => error,
        })?;
        self.note(&value);
        let mut fields = Vec::with_capacity(attributes.len());
        for (i, attribute) in attributes.iter().enumerate() {
            fields.push(match i == at {
                true => value.clone(),
                false => field(&row, i, attribute.ty),
            });
        }
        let types = attributes.iter().map(|attribute| attribute.ty).collect();
        Ok(Expr::Call(Func::Row(RowFunc::Make(types)), fields, ty))
    }

    /// A row as an object of JSON; other values as they are.
    ///
    /// # Errors
    /// Those of conversions of the fields.
    pub(super) fn row_as_json(&mut self, value: Expr) -> Result<Expr, SqlError> {
        if !matches!(value.ty(), Type::Composite(_)) {
            return Ok(value);
        }
        let mut columns = Vec::new();
        for (name, field) in self.fields_of(&value)? {
            let field = self.row_as_json(field)?;
            columns.push((name, resolve::json::value(field, Type::Json)?));
        }
        let row = resolve::json::row(columns);
        if made(&value).is_some() {
            return Ok(row);
        }
        Ok(Expr::Case {
            arms: vec![(Expr::IsNull(Box::new(value), false), Expr::null(Type::Json))],
            otherwise: Box::new(row),
            ty: Type::Json,
        })
    }

    /// A constant text of a composite type as its value, unless it depends on the session's zone.
    pub(super) fn read_row(&self, ty: Type, text: &str) -> Option<Result<Datum, SqlError>> {
        let Type::Composite(id) = ty else { return None };
        if self.cx.database.reads_zone(ty) {
            return None;
        }
        Some(self.cx.database.read_record(id, text, None))
    }
}

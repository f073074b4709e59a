//! What depends on the session's style of intervals (`IntervalStyle`), with the style in the
//! expression. A session with the style `postgres` plans without it.

use super::{Expr, Func, walk};
use base::text::{self, SpanStyle};
use base::{ArrayKind, Datum, SqlError, Type};
use functions::{JsonFunc, ZoneFunc, cast};

/// Whether values are intervals, or arrays of them.
fn has_spans(ty: Type) -> bool {
    matches!(ty.element().unwrap_or(ty), Type::Interval(_))
}

/// Makes the text forms of intervals in an expression those of a style.
pub(super) fn localize(expr: &mut Expr, style: SpanStyle) {
    walk::map(expr, &mut |node| match node {
        Expr::Cast { arg, to, .. } if has_spans(arg.ty()) && is_text(*to) => show(style, arg),
        Expr::Cast { arg, to, .. } if style.reads(*to) && arg.ty().is_text() => {
            read(style, arg, *to)
        }
        Expr::Call(Func::Output(from), args, _) if has_spans(*from) => {
            args.iter_mut().for_each(|arg| show(style, arg));
            *from = args[0].ty();
        }
        Expr::Call(Func::ArrayToString(item), args, _) if has_spans(*item) => {
            show(style, &mut args[0]);
            *item = Type::Text;
        }
        Expr::Call(Func::Json(JsonFunc::From(from) | JsonFunc::ArrayLines(from)), args, _)
            if has_spans(*from) =>
        {
            show(style, &mut args[0]);
            *from = match from.element() {
                Some(_) => Type::Array(ArrayKind::Text),
                None => Type::Text,
            };
        }
        _ => {}
    });
}

fn is_text(ty: Type) -> bool {
    ty.element().unwrap_or(ty).is_text()
}

/// Makes the value of an expression text in a style, unless it is no interval or array of them.
pub fn show(style: SpanStyle, expr: &mut Expr) {
    let ty = expr.ty();
    if style == SpanStyle::Postgres || !has_spans(ty) {
        return;
    }
    let to = match ty.element() {
        Some(_) => Type::Array(ArrayKind::Text),
        None => Type::Text,
    };
    let arg = core::mem::replace(expr, Expr::bool(false));
    *expr = Expr::Call(Func::Zoned(ZoneFunc::ShowSpans(style)), vec![arg], to);
}

/// Makes the text of an expression an interval, or an array of them.
fn read(style: SpanStyle, expr: &mut Expr, to: Type) {
    let arg = core::mem::replace(expr, Expr::bool(false));
    let func = Func::Zoned(ZoneFunc::ReadSpans(style));
    *expr = Expr::Call(func, vec![arg], to.without_modifiers());
}

/// Computes [`ZoneFunc::ShowSpans`].
pub(super) fn shown(style: SpanStyle, value: Datum) -> Datum {
    match value {
        Datum::Interval(span) => style.text(span).into(),
        Datum::Array(_) | Datum::Grid(_) => {
            let texts: Result<_, SqlError> = value.try_map_items(|item| Ok(shown(style, item)));
            texts.expect("no item fails")
        }
        other => other,
    }
}

/// Computes [`ZoneFunc::ReadSpans`].
pub(super) fn parsed(style: SpanStyle, value: &Datum, ty: Type) -> Result<Datum, SqlError> {
    match value {
        Datum::Text(text) => style.parse(ty, text),
        Datum::Array(_) | Datum::Grid(_) => {
            let item = ty.element().unwrap_or(ty);
            value
                .clone()
                .try_map_items(|value| parsed(style, &value, item))
        }
        other => Ok(other.clone()),
    }
}

/// Whether a literal of a type means another value in another style.
pub(super) fn is_open(literal: &str, to: Type) -> bool {
    SpanStyle::Sql.reads(to) && text::is_signed(literal)
}

/// The value of a literal.
pub(super) fn read_literal(
    style: SpanStyle,
    literal: &Datum,
    to: Type,
    explicit: bool,
) -> Result<Datum, SqlError> {
    // The fields of `interval day to hour` say what a number without a unit is.
    cast::cast_datum(parsed(style, literal, to)?, to, to, explicit)
}

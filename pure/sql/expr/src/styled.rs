//! What depends on the session's style of intervals (`IntervalStyle`), with the style in the
//! expression. A session with the style `postgres` plans without it.

use super::{Expr, Func, walk};
use base::text::{self, SpanStyle};
use base::{ArrayKind, Datum, SqlError, Type};
use functions::{JsonFunc, ZoneFunc, cast};

/// Whether values are intervals, or arrays of them.
pub(super) fn has_spans(ty: Type) -> bool {
    matches!(ty.element().unwrap_or(ty), Type::Interval(_))
}

/// Makes the text forms of intervals in an expression those of a style, which may be `postgres`,
/// and texts that are read, too, where a session with the other style would.
pub(super) fn put(expr: &mut Expr, style: SpanStyle, session: SpanStyle) {
    walk::map(expr, &mut |node| match node {
        Expr::Cast { arg, to, .. } if has_spans(arg.ty()) && is_text(*to) => text_of(style, arg),
        Expr::Cast { arg, to, .. } if session.reads(*to) && is_text(arg.ty()) => {
            read(style, arg, *to)
        }
        Expr::Call(Func::Output(from), args, _) if has_spans(*from) => {
            args.iter_mut().for_each(|arg| text_of(style, arg));
            *from = args[0].ty();
        }
        Expr::Call(Func::ArrayToString(item), args, _) if has_spans(*item) => {
            text_of(style, &mut args[0]);
            *item = Type::Text;
        }
        Expr::Call(Func::Json(JsonFunc::From(from) | JsonFunc::ArrayLines(from)), args, _)
            if has_spans(*from) =>
        {
            text_of(style, &mut args[0]);
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
    if style != SpanStyle::Postgres {
        text_of(style, expr);
    }
}

fn text_of(style: SpanStyle, expr: &mut Expr) {
    let ty = expr.ty();
    if !has_spans(ty) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::zoned;
    use base::datum::Interval;

    fn cast(arg: Expr, to: Type) -> Expr {
        Expr::Cast {
            arg: Box::new(arg),
            to,
            explicit: true,
        }
    }

    fn spans() -> Type {
        Type::named("interval").expect("it is a type")
    }

    fn literal(text: &str) -> Expr {
        let text = Expr::Const(Datum::Text(text.into()), Type::Unknown);
        cast(text, spans())
    }

    #[test]
    fn a_fixed_style_stays() {
        for style in [SpanStyle::Postgres, SpanStyle::Iso, SpanStyle::Sql] {
            for session in ["", ";iso_8601", ";sql_standard", "Asia/Tokyo;sql_standard"] {
                let texts = Expr::Column(0, Type::Text);
                let mut expr = cast(cast(texts, spans()), Type::Text);
                zoned::fix_style(&mut expr, style, session);
                let fixed = expr.clone();
                zoned::localize(&mut expr, session);
                assert_eq!(expr, fixed, "{style:?} {session}");
            }
        }
    }

    #[test]
    fn a_literal_hangs_on_the_style() {
        for (text, hangs) in [
            ("-1 2:00", true),
            ("-1-2 3 4:05:06", true),
            ("-1 -2:00", false),
            ("-1 day", false),
            ("1 -2:00", false),
            ("1 2:00", false),
        ] {
            assert_eq!(zoned::hangs_on_style(&literal(text)), hangs, "{text}");
        }
    }

    #[test]
    fn a_literal_is_fixed() {
        let value = |days, hours: i64| {
            let micros = hours * 3_600_000_000;
            let span = Interval {
                months: 0,
                days,
                micros,
            };
            Expr::Const(Datum::Interval(span), spans())
        };
        for (style, session, expected) in [
            (SpanStyle::Postgres, ";sql_standard", value(-1, 2)),
            (SpanStyle::Sql, ";sql_standard", value(-1, -2)),
            (SpanStyle::Postgres, "", literal("-1 2:00")),
        ] {
            let mut expr = literal("-1 2:00");
            zoned::fix_style(&mut expr, style, session);
            assert_eq!(expr, expected, "{style:?} {session}");
        }
    }

    #[test]
    fn settings_are_written_out() {
        for (settings, written) in [
            ("", "UTC;postgres"),
            (";iso_8601", "UTC;iso_8601"),
            ("Asia/Tokyo", "Asia/Tokyo;postgres"),
            ("Asia/Tokyo;sql_standard", "Asia/Tokyo;sql_standard"),
        ] {
            assert_eq!(zoned::written_out(settings), written);
            assert_eq!(zoned::of_written(written), settings);
            assert_eq!(zoned::of_written(settings), settings);
        }
    }
}

//! What depends on the session's time zone, with the zone as an argument.
//!
//! A bound expression is about UTC. [`localize`] puts the zone of a session into it when it is
//! planned, so that what is evaluated, here or where the rows are, asks no session. A session in
//! UTC plans without it.

use super::{Compare, Env, Expr, Func, styled, walk};
use base::calendar::{MICROS_PER_SECOND, join_timestamp, split_timestamp};
use base::datum::Interval;
use base::text::SpanStyle;
use base::zone::Zone;
use base::{ArrayKind, Datum, Decimal, SqlError, SqlState, Timetz, Type, text};
use functions::datetime::{self, out_of_range, zone_offset};
use functions::{DateFunc, JsonFunc, RangeFunc, SessionFunc};
use functions::{ZoneFunc, cast, json, to_char};

/// What plans for a session must know of the settings `TimeZone` and `IntervalStyle`: the zone,
/// empty for UTC, and the style behind a semicolon if it is another one than `postgres`.
pub fn of_settings(zone: Option<&str>, style: Option<&str>) -> String {
    let zone = of_setting(zone);
    match style {
        None | Some("postgres") => zone.into(),
        Some(style) => format!("{zone};{style}"),
    }
}

/// The zone of [`of_settings`].
pub fn zone_of(settings: &str) -> &str {
    settings.split_once(';').map_or(settings, |(zone, _)| zone)
}

/// The style of intervals of [`of_settings`].
pub fn style_of(settings: &str) -> SpanStyle {
    let style = settings.split_once(';').map(|(_, style)| style);
    style.map_or_else(SpanStyle::default, SpanStyle::named)
}

/// Both of [`of_settings`] written out: what [`localize`] puts into an expression that is kept
/// leaves nothing to the settings of a session.
pub fn written_out(settings: &str) -> String {
    let zone = match zone_of(settings) {
        "" => "UTC",
        zone => zone,
    };
    let style = settings.split_once(';').map(|(_, style)| style);
    format!("{zone};{}", style.unwrap_or("postgres"))
}

/// The form of [`of_settings`] for what was [`written_out`].
pub fn of_written(settings: &str) -> &str {
    let settings = settings.strip_suffix(";postgres").unwrap_or(settings);
    match settings.strip_prefix("UTC") {
        Some(style) if style.is_empty() || style.starts_with(';') => style,
        _ => settings,
    }
}

/// The zone that plans for a session must know, of the setting `TimeZone`; empty for UTC.
pub fn of_setting(value: Option<&str>) -> &str {
    match value {
        None | Some("UTC" | "Etc/UTC" | "GMT" | "Etc/GMT") => "",
        Some(name) => name,
    }
}

fn is_zoned(ty: Type) -> bool {
    ty.has_moments()
}

/// Whether moments with a zone stand beside days or times without one.
fn is_mixed<'e>(mut exprs: impl Iterator<Item = &'e Expr> + Clone) -> bool {
    exprs
        .clone()
        .any(|expr| matches!(expr.ty(), Type::Timestamptz(_)))
        && exprs.any(|expr| is_zoneless(expr.ty()))
}

/// Whether values have the offset of a zone.
fn is_offset(ty: Type) -> bool {
    matches!(ty.element().unwrap_or(ty), Type::Timetz(_))
}

/// Whether a moment of this type is one as the clocks of a zone show it.
fn is_shown(ty: Type) -> bool {
    matches!(ty, Type::Time(_) | Type::Timetz(_)) || is_zoneless(ty)
}

fn is_zoneless(ty: Type) -> bool {
    matches!(ty, Type::Timestamp(_) | Type::Date)
}

fn take(expr: &mut Expr) -> Expr {
    core::mem::replace(expr, Expr::bool(false))
}

fn converted(arg: Expr, to: Type, explicit: bool, zone: &Expr) -> Expr {
    let from = arg.ty();
    let cast = Func::Zoned(ZoneFunc::Cast { from, explicit });
    Expr::Call(cast, vec![arg, zone.clone()], to)
}

/// Turns the operands without a zone into ones with it.
fn align<'e>(exprs: impl Iterator<Item = &'e mut Expr>, zone: &Expr) {
    for expr in exprs {
        if is_zoneless(expr.ty()) {
            *expr = converted(take(expr), Type::Timestamptz(None), false, zone);
        }
    }
}

/// Reads a literal that depends on settings ([`of_settings`]): a moment that names no zone, an
/// interval with a sign. Others than those literals stay.
pub fn read_literal(node: &mut Expr, settings: &str) {
    read_in(node, zone_of(settings), style_of(settings));
}

fn read_in(node: &mut Expr, zone: &str, style: SpanStyle) {
    let Expr::Cast { arg, to, explicit } = node else {
        return;
    };
    let Expr::Const(literal @ Datum::Text(_), Type::Unknown) = &**arg else {
        return;
    };
    let value = if style.reads(*to) {
        styled::read_literal(style, literal, *to, *explicit)
    } else if zone.is_empty() {
        cast::cast_datum(literal.clone(), Type::Unknown, *to, *explicit)
    } else {
        convert(literal, Type::Text, *to, *explicit, (zone, None))
    };
    // Its form was looked at when it was bound.
    if let Ok(value) = value {
        *node = Expr::Const(value, *to);
    }
}

/// Reads the literals of intervals in an expression in a style.
fn read_spans(expr: &mut Expr, style: SpanStyle) {
    walk::map(expr, &mut |node| {
        if let Expr::Cast { to, .. } = node
            && styled::has_spans(*to)
        {
            read_in(node, "", style);
        }
    });
}

/// Puts a style of intervals into an expression, so that a session with these settings
/// ([`of_settings`]) will not put in its own.
pub fn fix_style(expr: &mut Expr, style: SpanStyle, settings: &str) {
    let session = style_of(settings);
    if session != SpanStyle::Postgres {
        read_spans(expr, style);
        styled::put(expr, style, session);
    }
}

/// Whether a literal is another interval in the style `sql_standard`.
pub fn hangs_on_style(expr: &Expr) -> bool {
    let read = |style| {
        let mut read = expr.clone();
        read_spans(&mut read, style);
        read
    };
    read(SpanStyle::Postgres) != read(SpanStyle::Sql)
}

/// Makes an expression depend on settings ([`of_settings`]) instead of on UTC and `postgres`.
pub fn localize(expr: &mut Expr, settings: &str) {
    let (zone, style) = (zone_of(settings), style_of(settings));
    if style != SpanStyle::Postgres {
        styled::put(expr, style, style);
    }
    if zone.is_empty() {
        return;
    }
    let zone = Expr::Const(Datum::Text(zone.into()), Type::Text);
    walk::map(expr, &mut |node| localize_node(node, &zone));
}

fn localize_node(node: &mut Expr, zone: &Expr) {
    match node {
        // The offset of a zone that has several is the one of today.
        Expr::Cast { arg, to, explicit }
            if is_offset(*to) && !is_offset(arg.ty()) && !is_null(arg) =>
        {
            let mut call = converted(take(arg), *to, *explicit, zone);
            if let Expr::Call(_, args, _) = &mut call {
                let now = Func::Session(SessionFunc::TxnTime);
                args.insert(1, Expr::Call(now, Vec::new(), Type::Timestamptz(None)));
            }
            *node = call;
        }
        Expr::Cast { arg, to, explicit }
            if is_zoned(arg.ty()) != is_zoned(*to) && !is_null(arg) =>
        {
            *node = converted(take(arg), *to, *explicit, zone);
        }
        Expr::InList(arg, list, _) if is_mixed(core::iter::once(&**arg).chain(list.iter())) => {
            align(core::iter::once(&mut **arg).chain(list.iter_mut()), zone);
        }
        Expr::IsDistinct(left, right, _) if is_mixed([&**left, &**right].into_iter()) => {
            align([&mut **left, &mut **right].into_iter(), zone);
        }
        Expr::Call(func, args, ty) => {
            if let Some(call) = localized_call(func, args, *ty, zone) {
                *node = call;
            }
        }
        _ => {}
    }
}

fn is_null(expr: &Expr) -> bool {
    matches!(expr, Expr::Const(Datum::Null, _))
}

/// Turns the arguments with a zone into ones without it.
fn without_zones(args: &mut [Expr], zone: &Expr) {
    for arg in args.iter_mut().filter(|arg| is_zoned(arg.ty())) {
        *arg = converted(take(arg), Type::Timestamp(None), true, zone);
    }
}

/// What a call becomes; `None`: what it is, with the arguments as they are now.
fn localized_call(func: &Func, args: &mut Vec<Expr>, ty: Type, zone: &Expr) -> Option<Expr> {
    let compares = matches!(
        func,
        Func::Compare(
            Compare::Eq | Compare::Ne | Compare::Lt | Compare::Le | Compare::Gt | Compare::Ge
        ) | Func::Sub
            | Func::NullIf
            | Func::Date(DateFunc::Age | DateFunc::Overlaps | DateFunc::Bin)
    );
    let makes = matches!(func, Func::Range(RangeFunc::Make)) && is_zoned(ty);
    if makes || compares && is_mixed(args.iter()) {
        align(args.iter_mut(), zone);
    }
    let with_zone = |func: ZoneFunc, mut args: Vec<Expr>| {
        args.push(zone.clone());
        Some(Expr::Call(Func::Zoned(func), args, ty))
    };
    match func {
        Func::Output(from) if is_zoned(*from) => {
            Some(converted(args.pop()?, Type::Text, true, zone))
        }
        Func::ArrayToString(_) if args.first().is_some_and(|array| is_zoned(array.ty())) => {
            let texts = Type::Array(ArrayKind::Text);
            args[0] = converted(take(&mut args[0]), texts, true, zone);
            let func = Func::ArrayToString(Type::Text);
            Some(Expr::Call(func, core::mem::take(args), ty))
        }
        Func::Json(JsonFunc::From(_) | JsonFunc::ArrayLines(_)) => {
            show_moments(args, zone);
            None
        }
        Func::Date(DateFunc::ExtractZoned) if is_zoned(args[1].ty()) => {
            with_zone(ZoneFunc::Extract, core::mem::take(args))
        }
        Func::Date(DateFunc::Trunc) if is_zoned(ty) => {
            with_zone(ZoneFunc::Trunc, core::mem::take(args))
        }
        Func::Add | Func::Sub
            if is_zoned(ty) && args.iter().any(|arg| matches!(arg.ty(), Type::Interval(_))) =>
        {
            if matches!(args[0].ty(), Type::Interval(_)) {
                args.swap(0, 1);
            }
            let negative = matches!(func, Func::Sub);
            with_zone(ZoneFunc::Shift { negative }, core::mem::take(args))
        }
        Func::ToChar(from) if is_zoned(*from) => with_zone(ZoneFunc::ToChar, core::mem::take(args)),
        Func::Date(DateFunc::Age) if args.iter().any(|arg| is_zoned(arg.ty())) => {
            without_zones(args, zone);
            None
        }
        Func::Json(JsonFunc::Query { usage, zoned: true }) => {
            with_zone(ZoneFunc::Path(*usage), core::mem::take(args))
        }
        Func::Date(DateFunc::ToTimestamp) => {
            with_zone(ZoneFunc::ToTimestamp, core::mem::take(args))
        }
        Func::Date(DateFunc::MakeTimestamp) if is_zoned(ty) => {
            let local = Expr::Call(func.clone(), core::mem::take(args), Type::Timestamp(None));
            Some(converted(local, ty, true, zone))
        }
        Func::Session(SessionFunc::TxnTime) if is_shown(ty) => {
            let now = Type::Timestamptz(None);
            let now = Expr::Call(func.clone(), core::mem::take(args), now);
            Some(converted(now, ty, true, zone))
        }
        _ => None,
    }
}

/// Makes moments in the first argument text of the zone.
fn show_moments(args: &mut [Expr], zone: &Expr) {
    for arg in args.iter_mut().take(1).filter(|arg| is_zoned(arg.ty())) {
        let to = match arg.ty().element() {
            Some(_) => Type::Array(ArrayKind::Text),
            None => Type::Text,
        };
        *arg = converted(take(arg), to, true, zone);
    }
}

fn name(args: &[Datum]) -> &str {
    let last = args.last().and_then(Datum::as_str);
    last.expect("the last argument is the zone")
}

fn moment(value: &Datum) -> i64 {
    match value {
        Datum::Timestamp(at) => *at,
        other => unreachable!("the binder passes timestamps, not {other:?}"),
    }
}

fn is_infinite(at: i64) -> bool {
    at == i64::MIN || at == i64::MAX
}

/// A moment as the clocks in the zone show it.
fn local(at: i64, zone: &str) -> Result<i64, SqlError> {
    if is_infinite(at) {
        return Ok(at);
    }
    in_range(at.checked_add(zone_offset(zone, at, false)?))
}

/// The moment at which the clocks in the zone show a time.
fn global(local: i64, zone: &str) -> Result<i64, SqlError> {
    if is_infinite(local) {
        return Ok(local);
    }
    in_range(local.checked_sub(zone_offset(zone, local, true)?))
}

fn in_range(at: Option<i64>) -> Result<i64, SqlError> {
    at.map(split_timestamp)
        .and_then(|(days, micros)| join_timestamp(days, micros))
        .ok_or_else(|| out_of_range("timestamp"))
}

/// Computes a function.
pub(super) fn apply(func: ZoneFunc, args: &[Datum], ty: Type) -> Result<Datum, SqlError> {
    let zone = match func {
        ZoneFunc::ShowSpans(style) => return Ok(styled::shown(style, args[0].clone())),
        ZoneFunc::ReadSpans(style) => return styled::parsed(style, &args[0], ty),
        _ => name(args),
    };
    match func {
        ZoneFunc::ShowSpans(_) | ZoneFunc::ReadSpans(_) => unreachable!("they have no zone"),
        ZoneFunc::Cast { from, explicit } => {
            let now = (args.len() == 3).then(|| moment(&args[1]));
            convert(&args[0], from, ty, explicit, (zone, now))
        }
        ZoneFunc::Extract => extract(args, ty, zone),
        ZoneFunc::Trunc => trunc(args, zone),
        ZoneFunc::Shift { negative } => shift(args, negative, zone),
        ZoneFunc::ToTimestamp => {
            let text = |i: usize| args[i].as_str().expect("the binder passes text");
            let read = to_char::parse_moment(text(0), text(1))?;
            let at = read.timestamp(text(0))?;
            Ok(Datum::Timestamp(match read.has_zone() {
                true => at,
                false => global(at, zone)?,
            }))
        }
        ZoneFunc::Path(usage) => {
            let known = Zone::named(zone).ok_or_else(|| datetime::unknown_zone(zone))?;
            json::path_value(usage, &args[..args.len() - 1], Some(&known))
        }
        ZoneFunc::ToChar => {
            let at = moment(&args[0]);
            if is_infinite(at) {
                return Ok(Datum::Null);
            }
            let offset = zone_offset(zone, at, false)? / MICROS_PER_SECOND;
            let short = Zone::named(zone).map_or_else(String::new, |z| z.at(at).abbreviation);
            let pattern = args[1].as_str().expect("the binder passes text");
            to_char::to_char_in(local(at, zone)?, (offset, short), pattern)
        }
    }
}

fn convert(
    value: &Datum,
    from: Type,
    to: Type,
    explicit: bool,
    (zone, now): (&str, Option<i64>),
) -> Result<Datum, SqlError> {
    let known = || Zone::named(zone).ok_or_else(|| datetime::unknown_zone(zone));
    let value = match value {
        Datum::Null => return Ok(Datum::Null),
        Datum::Array(_) | Datum::Grid(_) if to.element().is_some() => {
            let of = from.element().unwrap_or(Type::Text);
            let into = to.element().unwrap_or(Type::Text);
            let array = value.clone();
            return array.try_map_items(|item| convert(&item, of, into, explicit, (zone, now)));
        }
        Datum::Array(_) | Datum::Grid(_) => {
            let of = from.element().unwrap_or(Type::Text);
            let texts = value.clone();
            let texts =
                texts.try_map_items(|item| convert(&item, of, Type::Text, true, (zone, now)))?;
            text::to_string(Type::Array(ArrayKind::Text), &texts).into()
        }
        value if is_offset(to) => with_offset(value, to, &known()?, now)?,
        value if is_zoned(from) && to.is_text() => match text::zoned(value, &known()?) {
            Some(text) => text.into(),
            None => value.clone(),
        },
        Datum::Timestamp(at) if is_zoned(from) => Datum::Timestamp(local(*at, zone)?),
        Datum::Timestamp(at) => Datum::Timestamp(global(*at, zone)?),
        Datum::Date(days) => Datum::Timestamp(global(cast::date_to_timestamp(*days)?, zone)?),
        Datum::Text(written) => text::parse_in(&known()?, to, written)?,
        other => other.clone(),
    };
    // What is left is the form without a zone: the clock's time, or the text.
    let plain = match &value {
        Datum::Text(_) => Type::Text,
        Datum::Timestamp(_) if is_zoned(to) => to.without_modifiers(),
        Datum::Timestamp(_) => Type::Timestamp(None),
        _ => to,
    };
    cast::cast_datum(value, plain, to, explicit)
}

/// A moment, a time or a text as a time with the offset that the zone has then or today.
fn with_offset(value: &Datum, to: Type, zone: &Zone, now: Option<i64>) -> Result<Datum, SqlError> {
    let today = |micros: i64| -> Result<Datum, SqlError> {
        let east = match now {
            Some(now) => {
                let shown = now + zone.offset_at(now) * MICROS_PER_SECOND;
                let local = join_timestamp(split_timestamp(shown).0, micros);
                local.map_or(0, |local| zone.offset_of_local(local))
            }
            // Those with one offset are the same on every day.
            None => match text::parse_in(zone, Type::Timetz(None), "00:00")? {
                Datum::Timetz(time) => -i64::from(time.west),
                _ => 0,
            },
        };
        let west = -east as i32;
        Ok(Datum::Timetz(Timetz { micros, west }))
    };
    match value {
        Datum::Timestamp(at) if is_infinite(*at) => Ok(Datum::Null),
        Datum::Timestamp(at) => {
            let east = zone.offset_at(*at);
            let (_, micros) = split_timestamp(*at + east * MICROS_PER_SECOND);
            let west = -east as i32;
            Ok(Datum::Timetz(Timetz { micros, west }))
        }
        Datum::Time(micros) => today(*micros),
        Datum::Text(written) => match (text::parse_in(zone, to, written), now) {
            (Err(error), Some(_))
                if error.state() == SqlState::FEATURE_NOT_SUPPORTED && to.element().is_none() =>
            {
                match text::parse(Type::Time(None), written)? {
                    Datum::Time(micros) => today(micros),
                    other => Ok(other),
                }
            }
            (read, _) => read,
        },
        other => Ok(other.clone()),
    }
}

fn extract(args: &[Datum], ty: Type, zone: &str) -> Result<Datum, SqlError> {
    let field = args[0].as_str().expect("the binder passes text");
    let at = moment(&args[1]);
    if is_infinite(at) || field.eq_ignore_ascii_case("epoch") {
        return datetime::extract_zoned(field, at, ty);
    }
    let seconds = zone_offset(zone, at, false)? / MICROS_PER_SECOND;
    let of_zone = match field.to_ascii_lowercase().as_str() {
        "timezone" => Some(seconds),
        "timezone_hour" => Some(seconds / 3_600),
        "timezone_minute" => Some(seconds / 60 % 60),
        _ => None,
    };
    match of_zone {
        None => datetime::extract_zoned(field, local(at, zone)?, ty),
        Some(value) if ty == Type::Float8 => Ok(Datum::Float(value as f64)),
        Some(value) => Ok(Datum::Decimal(Decimal::from(value))),
    }
}

fn trunc(args: &[Datum], zone: &str) -> Result<Datum, SqlError> {
    let unit = args[0].as_str().expect("the binder passes text");
    let at = moment(&args[1]);
    let shown = local(at, zone)?;
    let cut = match datetime::truncated(unit, shown)? {
        Datum::Timestamp(cut) => cut,
        other => return Ok(other),
    };
    // Within a day the clock was not changed: an hour that comes twice stays which it is.
    let result = if datetime::is_below_a_day(unit) && !is_infinite(at) {
        in_range(at.checked_sub(shown - cut))?
    } else {
        global(cut, zone)?
    };
    Ok(Datum::Timestamp(result))
}

/// Months and days are those of the zone's calendar, time is time.
fn shift(args: &[Datum], negative: bool, zone: &str) -> Result<Datum, SqlError> {
    let at = moment(&args[0]);
    let Datum::Interval(mut by) = args[1] else {
        unreachable!("the binder passes an interval")
    };
    if negative {
        by = datetime::negate(by)?;
    }
    if is_infinite(at) {
        return Ok(Datum::Timestamp(at));
    }
    let calendar = Interval { micros: 0, ..by };
    let mut moved = at;
    if by.months != 0 || by.days != 0 {
        moved = global(datetime::shift(local(at, zone)?, calendar)?, zone)?;
    }
    in_range(moved.checked_add(by.micros)).map(Datum::Timestamp)
}

/// The next value of a series of moments in the session's zone.
pub fn step(at: &Datum, by: &Datum, zone: &str) -> Result<Datum, SqlError> {
    let args = vec![
        Expr::Const(at.clone(), Type::Timestamptz(None)),
        Expr::Const(by.clone(), Type::Interval(None)),
        Expr::Const(zone.into(), Type::Text),
    ];
    let call = Func::Zoned(ZoneFunc::Shift { negative: false });
    let sum = Expr::Call(call, args, Type::Timestamptz(None));
    super::eval(&sum, &super::NoColumns, &Env::NONE)
}

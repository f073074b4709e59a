//! Heads and steps of a path.

use super::PathZone;
use super::condition::Patterns;
use super::value::{Item, View, number, number_text};
use super::{layout, moment};
use crate::overtime;
use base::{Datum, SqlError, SqlState, numeric};
use json::path::{Binary, Head, LAST_LEVEL, Method, Node, Path, Step};
use json::{Kind, ObjectBuilder, Value};

/// Calls in one another: steps of the path, and levels of the value below `.**`.
const CALLS_MAX: usize = 1_000;

/// Units of work of one call: a step for an item is one, and so are 64 bytes that it reads.
const UNITS_MAX: usize = 10_000_000;

/// Bytes of items that a call may gather.
const FOUND_BYTES_MAX: usize = 64 << 20;

/// Why there is no result.
pub(super) enum Failure {
    /// An error that conditions and silent calls pass over.
    Soft(SqlError),
    /// An error.
    Hard(SqlError),
}

impl From<SqlError> for Failure {
    fn from(error: SqlError) -> Failure {
        Failure::Hard(error)
    }
}

pub(super) type Outcome<T> = Result<T, Failure>;

/// An error of a path, which is silent where that is asked for.
pub(super) fn soft<T>(state: &[u8; 5], message: impl Into<String>) -> Outcome<T> {
    Err(Failure::Soft(SqlError::new(
        SqlState(*state),
        message.into(),
    )))
}

const NO_MEMBER: &[u8; 5] = b"2203A";
const NO_OBJECT: &[u8; 5] = b"2203C";
const NO_ARRAY: &[u8; 5] = b"22039";
const NO_NUMBER: &[u8; 5] = b"2203B";
const NOT_NUMERIC: &[u8; 5] = b"22036";
const BAD_SUBSCRIPT: &[u8; 5] = b"22033";
const NOT_SINGLE: &[u8; 5] = b"22038";

/// Where items go, or that one is enough.
pub(super) struct Sink {
    items: Option<Vec<Item>>,
    bytes: usize,
}

impl Sink {
    /// One item is enough, whatever it is.
    pub(super) fn none() -> Sink {
        Sink {
            items: None,
            bytes: 0,
        }
    }

    /// All items are wanted.
    pub(super) fn all() -> Sink {
        Sink {
            items: Some(Vec::new()),
            bytes: 0,
        }
    }

    pub(super) fn into_items(self) -> Vec<Item> {
        self.items.unwrap_or_default()
    }

    /// Whether one item is enough.
    fn is_none(&self) -> bool {
        self.items.is_none()
    }

    fn push(&mut self, view: View<'_>) -> Outcome<()> {
        let Some(items) = &mut self.items else {
            return Ok(());
        };
        self.bytes += view.bytes();
        if self.bytes > FOUND_BYTES_MAX {
            let message = "a jsonpath gathers too many items";
            return Err(Failure::Hard(SqlError::new(
                SqlState::PROGRAM_LIMIT,
                message,
            )));
        }
        items.push(view.to_item());
        Ok(())
    }
}

/// What the parts of objects are numbered by: `.keyvalue()` tells where they lie in it.
#[derive(Clone, Copy)]
pub(super) struct Base<'v> {
    value: Value<'v>,
    number: i64,
}

/// What is around a part of a path.
#[derive(Clone, Copy)]
pub(super) struct Frame<'v> {
    /// `@`
    current: View<'v>,
    base: Base<'v>,
    /// The subscript that `last` stands for.
    last: Option<i64>,
}

/// One evaluation of a path.
pub(super) struct Walk<'p> {
    path: &'p Path,
    root: Value<'p>,
    vars: Option<Value<'p>>,
    pub(super) zone: PathZone<'p>,
    /// Structural errors are no errors for now.
    forgiving: bool,
    /// The first soft error that [`Walk::any`] has passed over: a call that is not silent has it.
    pub(super) passed: Option<SqlError>,
    /// Number of the next object that `.keyvalue()` makes.
    made: i64,
    calls: usize,
    units: usize,
    pub(super) patterns: Patterns<'p>,
}

impl<'p> Walk<'p> {
    pub(super) fn new(
        path: &'p Path,
        root: Value<'p>,
        vars: Option<Value<'p>>,
        zone: PathZone<'p>,
    ) -> Walk<'p> {
        Walk {
            path,
            root,
            vars,
            zone,
            forgiving: !path.strict,
            passed: None,
            made: if vars.is_some() { 2 } else { 1 },
            calls: 0,
            units: 0,
            patterns: Patterns::default(),
        }
    }

    /// Calls in one another at the moment. What passes over an error sets it to what it was before.
    pub(super) fn calls(&self) -> usize {
        self.calls
    }

    pub(super) fn set_calls(&mut self, calls: usize) {
        self.calls = calls;
    }

    /// In lax mode arrays are taken apart, and other values taken for arrays of themselves.
    pub(super) fn is_lax(&self) -> bool {
        !self.path.strict
    }

    /// Gathers the items of the path; whether there are any.
    pub(super) fn whole(&mut self, sink: &mut Sink) -> Outcome<bool> {
        let base = Base {
            value: self.root,
            number: 0,
        };
        let frame = Frame {
            current: View::Json(self.root),
            base,
            last: None,
        };
        let path = self.path;
        // Whether there is an item is known in strict mode when all are known without an error.
        if sink.is_none() && path.strict {
            let mut all = Sink::all();
            self.node(&path.root, frame, &mut all)?;
            return Ok(!all.into_items().is_empty());
        }
        self.node(&path.root, frame, sink)
    }

    /// Counts work.
    pub(super) fn work(&mut self, units: usize) -> Outcome<()> {
        self.units = self.units.saturating_add(units);
        if self.units > UNITS_MAX {
            let message = "a jsonpath takes too many steps";
            let error = SqlError::new(SqlState::PROGRAM_LIMIT, message);
            let hint = "Filters in filters are computed for each item; look for the items first.";
            return Err(Failure::Hard(error.hint(hint)));
        }
        overtime::work(8 * units as u64).map_err(Failure::Hard)
    }

    fn enter(&mut self, view: View<'_>) -> Outcome<()> {
        self.calls += 1;
        if self.calls > CALLS_MAX {
            let error = SqlError::new(
                SqlState::STATEMENT_TOO_COMPLEX,
                "stack depth limit exceeded",
            );
            let detail = format!("Steps of a jsonpath may call each other {CALLS_MAX} deep.");
            return Err(Failure::Hard(error.detail(detail)));
        }
        self.work(1 + view.bytes() / 64)
    }

    /// A part of a path: its head, then its steps.
    pub(super) fn node(
        &mut self,
        node: &'p Node,
        frame: Frame<'_>,
        sink: &mut Sink,
    ) -> Outcome<bool> {
        self.enter(View::Null)?;
        let steps = &node.steps[..];
        let found = match &node.head {
            Head::Root => {
                let view = View::Json(self.root);
                let base = Base {
                    value: self.root,
                    number: 0,
                };
                self.steps(steps, view, Frame { base, ..frame }, self.is_lax(), sink)
            }
            Head::Current => self.steps(steps, frame.current, frame, self.is_lax(), sink),
            Head::Last => {
                let last = frame.last.unwrap_or(0).to_string();
                self.text(steps, &last, frame, sink)
            }
            Head::Null => self.steps(steps, View::Null, frame, self.is_lax(), sink),
            Head::Bool(value) => self.text(steps, truth(Some(*value)), frame, sink),
            Head::Number(number) => self.text(steps, number, frame, sink),
            Head::Text(text) => {
                let mut quoted = String::new();
                json::write_string(text, &mut quoted);
                self.text(steps, &quoted, frame, sink)
            }
            Head::Variable(name) => self.variable(name, steps, frame, sink),
            Head::Binary(op, left, right) if op.is_arithmetic() => {
                let value = self.arithmetic(*op, (left, right), frame)?;
                self.text(steps, &value, frame, sink)
            }
            Head::Sign { negative, of } => self.signed(*negative, of, steps, frame, sink),
            Head::Binary(..)
            | Head::Not(_)
            | Head::IsUnknown(_)
            | Head::Exists(_)
            | Head::StartsWith(..)
            | Head::LikeRegex(..) => {
                let value = self.condition(node, frame)?;
                self.text(steps, truth(value), frame, sink)
            }
        };
        self.calls -= 1;
        found
    }

    /// The steps behind a value that was computed.
    fn text(
        &mut self,
        steps: &'p [Step],
        text: &str,
        frame: Frame<'_>,
        sink: &mut Sink,
    ) -> Outcome<bool> {
        let view = View::Json(Value::new(text));
        self.steps(steps, view, frame, self.is_lax(), sink)
    }

    fn variable(
        &mut self,
        name: &str,
        steps: &'p [Step],
        frame: Frame<'_>,
        sink: &mut Sink,
    ) -> Outcome<bool> {
        let Some(vars) = self.vars else {
            return self.steps(steps, View::Null, frame, self.is_lax(), sink);
        };
        self.work(vars.text().len() / 64)?;
        let Some(value) = vars.member(name) else {
            let message = format!("could not find jsonpath variable \"{name}\"");
            let error = SqlError::new(SqlState::UNDEFINED_OBJECT, message);
            return Err(Failure::Hard(error));
        };
        let base = Base { value, number: 1 };
        let frame = Frame { base, ..frame };
        self.steps(steps, View::Json(value), frame, self.is_lax(), sink)
    }

    /// The steps from an item on. `unwrap`: a step that takes no array is taken for each item of
    /// one.
    fn steps(
        &mut self,
        steps: &'p [Step],
        view: View<'_>,
        frame: Frame<'_>,
        unwrap: bool,
        sink: &mut Sink,
    ) -> Outcome<bool> {
        let Some((step, rest)) = steps.split_first() else {
            sink.push(view)?;
            return Ok(true);
        };
        self.enter(view)?;
        let found = self.step(step, (steps, rest), view, frame, unwrap, sink);
        self.calls -= 1;
        found
    }

    /// One step, with what follows it: the steps from it on, and those behind it.
    fn step(
        &mut self,
        step: &'p Step,
        (steps, rest): (&'p [Step], &'p [Step]),
        view: View<'_>,
        frame: Frame<'_>,
        unwrap: bool,
        sink: &mut Sink,
    ) -> Outcome<bool> {
        let lax = self.is_lax();
        let is_array = view.kind() == Some(Kind::Array);
        let takes_arrays = matches!(
            step,
            Step::AnyItem
                | Step::Items(_)
                | Step::Any { .. }
                | Step::Method(Method::Size | Method::Type)
        );
        let is_object = view.kind() == Some(Kind::Object);
        let takes_object = is_object && matches!(step, Step::Key(_) | Step::AnyKey);
        if unwrap && is_array && !takes_arrays && !takes_object {
            return self.each_part(steps, view, frame, (false, false), sink);
        }
        match step {
            Step::Key(key) => match view.json().filter(|_| is_object) {
                Some(object) => match object.member(key) {
                    Some(value) => self.steps(rest, View::Json(value), frame, lax, sink),
                    None => self.no_member(format!("JSON object does not contain key \"{key}\"")),
                },
                None => self
                    .no_member("jsonpath member accessor can only be applied to an object".into()),
            },
            Step::AnyKey => match is_object {
                true => self.each_part(rest, view, frame, (lax, false), sink),
                false if self.forgiving => Ok(false),
                false => soft(
                    NO_OBJECT,
                    "jsonpath wildcard member accessor can only be applied to an object",
                ),
            },
            Step::AnyItem => match is_array {
                true => self.each_part(rest, view, frame, (lax, false), sink),
                false if lax => self.steps(rest, view, frame, lax, sink),
                false if self.forgiving => Ok(false),
                false => soft(
                    NO_ARRAY,
                    "jsonpath wildcard array accessor can only be applied to an array",
                ),
            },
            Step::Items(items) => self.items(items, rest, view, frame, sink),
            Step::Any { first, last } => self.any((*first, *last), rest, view, frame, sink),
            Step::Filter(condition) => {
                let inside = Frame {
                    current: view,
                    ..frame
                };
                match self.condition(condition, inside)? {
                    Some(true) => self.steps(rest, view, frame, lax, sink),
                    _ => Ok(false),
                }
            }
            Step::Method(method) => self.method(*method, rest, view, frame, sink),
            Step::Datetime(template) => {
                let moment = moment::read(view, template.as_deref())?;
                self.steps(rest, View::Moment(&moment), frame, lax, sink)
            }
        }
    }

    /// An object has no such member, or there is no object.
    fn no_member(&self, message: String) -> Outcome<bool> {
        match self.forgiving {
            true => Ok(false),
            false => soft(NO_MEMBER, message),
        }
    }

    /// The steps from each part of a container on: the values of members, or elements.
    /// `unwrap`: as of [`Walk::steps`]; `forgiving`: structural errors are none.
    fn each_part(
        &mut self,
        steps: &'p [Step],
        view: View<'_>,
        frame: Frame<'_>,
        (unwrap, forgiving): (bool, bool),
        sink: &mut Sink,
    ) -> Outcome<bool> {
        self.levels((1, 1, 1), steps, view, frame, (unwrap, forgiving), sink)
    }

    /// The steps from all values on that lie between the levels `first` and `last` below a
    /// container, whose parts have the level `level`.
    fn levels(
        &mut self,
        (level, first, last): (u32, u32, u32),
        steps: &'p [Step],
        view: View<'_>,
        frame: Frame<'_>,
        (unwrap, forgiving): (bool, bool),
        sink: &mut Sink,
    ) -> Outcome<bool> {
        let Some(container) = view.json().filter(|_| level <= last) else {
            return Ok(false);
        };
        self.enter(view)?;
        let mut found = false;
        let mut at = 0;
        while let Some(mut value) = container.part(&mut at) {
            if container.kind() == Kind::Object {
                let Some(member) = container.part(&mut at) else {
                    break;
                };
                value = member;
            }
            let is_leaf = value.kind().is_scalar();
            if level >= first || (first, last, is_leaf) == (LAST_LEVEL, LAST_LEVEL, true) {
                let before = self.forgiving;
                self.forgiving |= forgiving;
                let more = self.steps(steps, View::Json(value), frame, unwrap, sink);
                self.forgiving = before;
                found |= more?;
            }
            if found && sink.is_none() {
                break;
            }
            if level < last && !is_leaf {
                let levels = (level + 1, first, last);
                let below = View::Json(value);
                found |= self.levels(levels, steps, below, frame, (unwrap, forgiving), sink)?;
            }
            if found && sink.is_none() {
                break;
            }
        }
        self.calls -= 1;
        Ok(found)
    }

    /// `.**{first to last}`
    fn any(
        &mut self,
        (first, last): (u32, u32),
        rest: &'p [Step],
        view: View<'_>,
        frame: Frame<'_>,
        sink: &mut Sink,
    ) -> Outcome<bool> {
        let lax = self.is_lax();
        let has_inner = view.json().is_some_and(|value| !value.kind().is_scalar());
        let mut found = false;
        if first == 0 {
            let (forgiving, calls) = (self.forgiving, self.calls);
            self.forgiving = true;
            let own = self.steps(rest, view, frame, lax, sink);
            self.forgiving = forgiving;
            found = match own {
                // What is inside counts alone, as in PostgreSQL.
                Err(Failure::Soft(error)) if has_inner => {
                    self.calls = calls;
                    self.passed.get_or_insert(error);
                    false
                }
                own => own?,
            };
            if found && sink.is_none() {
                return Ok(true);
            }
        }
        if !has_inner {
            return Ok(found);
        }
        Ok(self.levels((1, first, last), rest, view, frame, (lax, true), sink)? || found)
    }

    /// `[i, j to k]`
    fn items(
        &mut self,
        items: &'p [(Node, Option<Node>)],
        rest: &'p [Step],
        view: View<'_>,
        frame: Frame<'_>,
        sink: &mut Sink,
    ) -> Outcome<bool> {
        let lax = self.is_lax();
        let array = view.json().filter(|value| value.kind() == Kind::Array);
        if array.is_none() && !lax {
            if self.forgiving {
                return Ok(false);
            }
            let message = "jsonpath array accessor can only be applied to an array";
            return soft(NO_ARRAY, message);
        }
        let size = array.map_or(1, Value::count) as i64;
        let inside = Frame {
            last: Some(size - 1),
            ..frame
        };
        let mut found = false;
        for (from, to) in items {
            let from = self.subscript(from, inside)?;
            let to = match to {
                Some(to) => self.subscript(to, inside)?,
                None => from,
            };
            if !self.forgiving && (from < 0 || from > to || to >= size) {
                return soft(BAD_SUBSCRIPT, "jsonpath array subscript is out of bounds");
            }
            let (from, to) = (from.max(0), to.min(size - 1));
            if from > to {
                continue;
            }
            let (skipped, count) = (from as usize, (to - from + 1) as usize);
            self.work(view.bytes() / 64)?;
            let own = array.is_none().then_some(view);
            let parts = array.into_iter().flat_map(Value::items);
            let parts = parts.skip(skipped).take(count).map(View::Json);
            for part in own.into_iter().chain(parts) {
                found |= self.steps(rest, part, frame, lax, sink)?;
                if found && sink.is_none() {
                    return Ok(true);
                }
            }
        }
        Ok(found)
    }

    fn subscript(&mut self, node: &'p Node, frame: Frame<'_>) -> Outcome<i64> {
        let mut sink = Sink::all();
        self.node(node, frame, &mut sink)?;
        let items = sink.into_items();
        let [only] = items.as_slice() else {
            let message = "jsonpath array subscript is not a single numeric value";
            return soft(BAD_SUBSCRIPT, message);
        };
        let Some(value) = number(only.view())? else {
            let message = "jsonpath array subscript is not a single numeric value";
            return soft(BAD_SUBSCRIPT, message);
        };
        let whole = numeric::Numeric::of(&value).and_then(|value| value.trunc(0).to_i64());
        match whole.filter(|value| i32::try_from(*value).is_ok()) {
            Some(value) => Ok(value),
            None => soft(
                BAD_SUBSCRIPT,
                "jsonpath array subscript is out of integer range",
            ),
        }
    }

    /// The items of an operand, arrays taken apart in lax mode.
    pub(super) fn operand(
        &mut self,
        node: &'p Node,
        frame: Frame<'_>,
        unwrap: bool,
    ) -> Outcome<Vec<Item>> {
        let mut sink = Sink::all();
        self.node(node, frame, &mut sink)?;
        let items = sink.into_items();
        let is_array = |item: &Item| item.view().kind() == Some(Kind::Array);
        if !unwrap || !self.is_lax() || !items.iter().any(is_array) {
            return Ok(items);
        }
        let mut parts = Sink::all();
        for item in &items {
            let view = item.view();
            match view.json().filter(|_| is_array(item)) {
                Some(array) => {
                    self.work(1 + view.bytes() / 64)?;
                    array
                        .items()
                        .try_for_each(|part| parts.push(View::Json(part)))?;
                }
                None => parts.push(view)?,
            }
        }
        Ok(parts.into_items())
    }

    /// Whether a part of a path leads to anything.
    pub(super) fn exists(&mut self, node: &'p Node, frame: Frame<'_>) -> Outcome<bool> {
        if self.is_lax() {
            return self.node(node, frame, &mut Sink::none());
        }
        Ok(!self.operand(node, frame, false)?.is_empty())
    }

    fn arithmetic(
        &mut self,
        op: Binary,
        (left, right): (&'p Node, &'p Node),
        frame: Frame<'_>,
    ) -> Outcome<String> {
        let left = self.operand(left, frame, true)?;
        let right = self.operand(right, frame, true)?;
        let mut sides = [Datum::Null, Datum::Null];
        for (i, (items, side)) in [(left, "left"), (right, "right")].into_iter().enumerate() {
            let value = match items.as_slice() {
                [only] => number(only.view())?,
                _ => None,
            };
            let Some(value) = value else {
                let message = format!(
                    "{side} operand of jsonpath operator {} is not a single numeric value",
                    op.sign()
                );
                return soft(NOT_SINGLE, message);
            };
            sides[i] = value;
        }
        let [left, right] = &sides;
        let digits = |side: &Datum| match side {
            Datum::Large(value) => value.heap_bytes(),
            _ => 0,
        };
        let (a, b) = (digits(left), digits(right));
        self.work((a + b) / 64 + a.saturating_mul(b) / 2048)?;
        let result = match op {
            Binary::Add => numeric::add(left, right),
            Binary::Sub => numeric::sub(left, right),
            Binary::Mul => numeric::mul(left, right),
            Binary::Div => numeric::div(left, right),
            _ => numeric::rem(left, right),
        };
        match result {
            Ok(value) => Ok(number_text(&value)),
            Err(error) => Err(Failure::Soft(error)),
        }
    }

    fn signed(
        &mut self,
        negative: bool,
        of: &'p Node,
        steps: &'p [Step],
        frame: Frame<'_>,
        sink: &mut Sink,
    ) -> Outcome<bool> {
        let mut found = false;
        for item in self.operand(of, frame, true)? {
            let is_enough = sink.is_none() && steps.is_empty();
            let Some(value) = number(item.view())? else {
                if is_enough {
                    continue;
                }
                let sign = if negative { '-' } else { '+' };
                let message =
                    format!("operand of unary jsonpath operator {sign} is not a numeric value");
                return soft(NO_NUMBER, message);
            };
            if is_enough {
                return Ok(true);
            }
            let value = match negative {
                true => numeric::sub(&Datum::Decimal(base::Decimal::ZERO), &value)?,
                false => value,
            };
            found |= self.text(steps, &number_text(&value), frame, sink)?;
            if found && sink.is_none() {
                return Ok(true);
            }
        }
        Ok(found)
    }

    fn method(
        &mut self,
        method: Method,
        rest: &'p [Step],
        view: View<'_>,
        frame: Frame<'_>,
        sink: &mut Sink,
    ) -> Outcome<bool> {
        let name = method.name();
        let only =
            |what: &str| format!("jsonpath item method .{name}() can only be applied to {what}");
        let text = match method {
            Method::Type => format!("\"{}\"", view.type_name()),
            Method::Size => match view.json().filter(|value| value.kind() == Kind::Array) {
                Some(array) => array.count().to_string(),
                None if self.is_lax() => "1".into(),
                None if self.forgiving => return Ok(false),
                None => return soft(NO_ARRAY, only("an array")),
            },
            Method::Abs | Method::Floor | Method::Ceiling => {
                let Some(value) = number(view)?.and_then(|value| numeric::Numeric::of(&value))
                else {
                    return soft(NOT_NUMERIC, only("a numeric value"));
                };
                let value = match method {
                    Method::Abs => value.abs(),
                    Method::Floor => value.floor(),
                    _ => value.ceil(),
                };
                number_text(&value.into_datum()?)
            }
            Method::Double => super::value::double(view)?,
            Method::KeyValue => return self.key_values(rest, view, frame, sink),
        };
        self.text(rest, &text, frame, sink)
    }

    /// `.keyvalue()`
    fn key_values(
        &mut self,
        rest: &'p [Step],
        view: View<'_>,
        frame: Frame<'_>,
        sink: &mut Sink,
    ) -> Outcome<bool> {
        let Some(object) = view.json().filter(|value| value.kind() == Kind::Object) else {
            let message = "jsonpath item method .keyvalue() can only be applied to an object";
            return soft(NO_OBJECT, message);
        };
        let Base { value, number } = frame.base;
        self.work(value.text().len() / 32)?;
        let id = number * 10_000_000_000 + layout::offset(value, object) as i64;
        let mut found = false;
        for (key, value) in object.members() {
            let mut made = ObjectBuilder::default();
            made.push("id", &id.to_string());
            made.push("key", key.text());
            made.push("value", value.text());
            let text = made.finish();
            let value = Value::new(&text);
            let number = self.made;
            self.made += 1;
            let frame = Frame {
                base: Base { value, number },
                ..frame
            };
            found |= self.steps(rest, View::Json(value), frame, self.is_lax(), sink)?;
            if found && sink.is_none() {
                break;
            }
        }
        Ok(found)
    }
}

/// A truth value as JSON.
fn truth(value: Option<bool>) -> &'static str {
    match value {
        Some(true) => "true",
        Some(false) => "false",
        None => "null",
    }
}

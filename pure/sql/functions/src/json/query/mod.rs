//! What paths (`jsonpath`) lead to in a value of `jsonb`.
//!
//! | module | what |
//! |---|---|
//! | `walk` | heads and steps of a path, one after the other |
//! | `condition` | predicates, three-valued |
//! | `value` | items; numbers and comparisons of them |
//! | `layout` | where a part of a value lies in PostgreSQL's binary form, for `.keyvalue()` |
//! | `moment`, `template` | `.datetime()` |
//!
//! A path and a value may come from anybody: depth, steps and results are bounded.

mod condition;
mod layout;
mod moment;
mod template;
#[cfg(test)]
mod tests;
mod value;
mod walk;

use super::{datum, invalid};
use base::zone::Zone;
use base::{Datum, SqlError, SqlState, Type};
use json::path::Path;
use json::{ArrayBuilder, Kind, Value};
use serde::{Deserialize, Serialize};
use value::Item;
use walk::{Failure, Sink, Walk};

/// What is made of the items that a path leads to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum PathUse {
    /// `jsonb_path_exists`: whether there are any.
    Exists,
    /// `jsonb_path_match`: the only one, a truth value.
    Match,
    /// `jsonb_path_query_first`
    First,
    /// `jsonb_path_query_array`
    Array,
    /// `@?`: as `Exists`, without errors.
    HasAny,
    /// `@@`: as `Match`, without errors.
    IsTrue,
}

/// The zone for values without one; `None`: comparisons that need one fail.
pub type PathZone<'z> = Option<&'z Zone>;

/// The path of a text that is one.
///
/// # Errors
/// As [`Path::parse`], and 2201B for regular expressions that are none.
pub fn parse_path(text: &str) -> Result<Path, SqlError> {
    let path = Path::parse(text)?;
    path.root
        .each_pattern(&mut |pattern| condition::compile(pattern).map(|_| ()))?;
    Ok(path)
}

/// A call: value, path, variables, and whether it is silent. Operators have no variables, and to
/// them each is null.
struct Call<'a> {
    value: Value<'a>,
    path: Path,
    vars: Option<Value<'a>>,
    silent: bool,
}

impl<'a> Call<'a> {
    fn of(args: &'a [Datum]) -> Result<Call<'a>, SqlError> {
        let text = |i: usize| args.get(i).and_then(Datum::as_json);
        let vars = Some(Value::new(text(2).unwrap_or("{}")));
        if vars.is_some_and(|vars| vars.kind() != Kind::Object) {
            let detail =
                "Jsonpath parameters should be encoded as key-value pairs of \"vars\" object.";
            return Err(invalid("\"vars\" argument is not an object").detail(detail));
        }
        Ok(Call {
            value: Value::new(text(0).unwrap_or("null")),
            path: Path::parse(text(1).unwrap_or_default())?,
            vars,
            silent: args.get(3) == Some(&Datum::Bool(true)),
        })
    }

    /// Gathers the items; whether there are any. `None`: a silent call has failed.
    fn run(&self, sink: &mut Sink, zone: PathZone<'_>) -> Result<Option<bool>, SqlError> {
        let mut walk = Walk::new(&self.path, self.value, self.vars, zone);
        let found = walk.whole(sink);
        match (found, walk.passed) {
            (Ok(_) | Err(Failure::Soft(_)), Some(first)) if !self.silent => Err(first),
            (Ok(found), _) => Ok(Some(found)),
            (Err(Failure::Soft(_)), _) if self.silent => Ok(None),
            (Err(Failure::Soft(error) | Failure::Hard(error)), _) => Err(error),
        }
    }
}

/// Computes one value from the items of a path.
///
/// # Errors
/// What PostgreSQL raises if the call is not silent; 54000 and 54001 for what takes too long.
pub fn path_value(usage: PathUse, args: &[Datum], zone: PathZone<'_>) -> Result<Datum, SqlError> {
    let mut call = Call::of(args)?;
    if let PathUse::HasAny | PathUse::IsTrue = usage {
        call.silent = true;
        call.vars = None;
    }
    if let PathUse::Exists | PathUse::HasAny = usage {
        let found = call.run(&mut Sink::none(), zone)?;
        return Ok(found.map_or(Datum::Null, Datum::Bool));
    }
    let mut sink = Sink::all();
    call.run(&mut sink, zone)?;
    let items = sink.into_items();
    Ok(match usage {
        PathUse::Match | PathUse::IsTrue => match items.as_slice() {
            [Item::Json(only)] if matches!(&**only, "true" | "false") => {
                Datum::Bool(&**only == "true")
            }
            [Item::Json(only)] if &**only == "null" => Datum::Null,
            _ if call.silent => Datum::Null,
            _ => {
                let state = SqlState(*b"22038");
                return Err(SqlError::new(state, "single boolean result is expected"));
            }
        },
        PathUse::First => match items.into_iter().next() {
            Some(item) => datum(item.into_text(), Type::Jsonb),
            None => Datum::Null,
        },
        PathUse::Array | PathUse::Exists | PathUse::HasAny => {
            let mut array = ArrayBuilder::default();
            for item in items {
                array.push(&item.into_text());
            }
            datum(array.finish(), Type::Jsonb)
        }
    })
}

/// The items of a path: `jsonb_path_query`. NULL among the arguments has none.
///
/// # Errors
/// As [`path_value`].
pub fn path_items(args: &[Datum], zone: PathZone<'_>) -> Result<Vec<Datum>, SqlError> {
    if args.iter().any(Datum::is_null) {
        return Ok(Vec::new());
    }
    let mut sink = Sink::all();
    Call::of(args)?.run(&mut sink, zone)?;
    let items = sink.into_items().into_iter();
    Ok(items
        .map(|item| datum(item.into_text(), Type::Jsonb))
        .collect())
}

//! How long values of `jsonb` may be, how deep they nest, and whether all are objects.

use super::texts::Texts;
use super::{Range, Values};
use crate::computed::ValueFunc;
use alloc::vec::Vec;
use base::Type;
use base::limits::PROGRAM_BYTES_MAX;
use json::DEPTH_MAX;

/// Most bytes of a character of a text that is quoted.
const QUOTED_BYTES: usize = 6;
/// Most bytes of signs and blanks around a part.
const SIGN_BYTES: usize = 8;
/// Most bytes of a number or truth value.
const SCALAR_BYTES: usize = 48;

/// Values of `jsonb`, with what holds for each of them.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Jsons {
    /// Most bytes.
    pub(super) bytes: usize,
    /// Deepest nesting; 0: scalars.
    depth: usize,
    /// All are objects.
    objects: bool,
}

const NULL: Jsons = Jsons {
    bytes: 4,
    depth: 0,
    objects: false,
};

impl Jsons {
    pub(super) fn of(text: &str) -> Jsons {
        let (mut depth, mut deepest): (usize, usize) = (0, 0);
        let (mut quoted, mut escaped) = (false, false);
        for byte in text.bytes() {
            match byte {
                _ if escaped => escaped = false,
                b'\\' if quoted => escaped = true,
                b'"' => quoted = !quoted,
                b'{' | b'[' if !quoted => {
                    depth += 1;
                    deepest = deepest.max(depth);
                }
                b'}' | b']' if !quoted => depth = depth.saturating_sub(1),
                _ => {}
            }
        }
        Jsons {
            bytes: text.len(),
            depth: deepest,
            objects: text.starts_with('{'),
        }
    }

    pub(super) fn or(self, other: Jsons) -> Jsons {
        Jsons {
            bytes: self.bytes.max(other.bytes),
            depth: self.depth.max(other.depth),
            objects: self.objects && other.objects,
        }
    }

    /// The values, if none is too long or nests too deeply.
    fn checked(self) -> Option<Jsons> {
        (self.bytes <= PROGRAM_BYTES_MAX && self.depth <= DEPTH_MAX).then_some(self)
    }

    /// An object or array of such parts: their bytes and their depth.
    fn around(parts: &[Jsons], objects: bool) -> Option<Jsons> {
        let mut all = Jsons {
            bytes: 2,
            depth: 0,
            objects,
        };
        for part in parts {
            all.bytes = all.bytes.checked_add(part.bytes)?.checked_add(SIGN_BYTES)?;
            all.depth = all.depth.max(part.depth);
        }
        all.depth += 1;
        all.checked()
    }

    /// The text as a string of JSON.
    fn quoted(text: Texts) -> Jsons {
        Jsons {
            bytes: text.bytes.saturating_mul(QUOTED_BYTES).saturating_add(2),
            ..NULL
        }
    }
}

/// What a function of `jsonb` gives; `None`: it may fail. NULL arguments make NULL, but those of
/// objects and arrays that are built.
pub(super) fn of_function(func: ValueFunc, args: &[Range]) -> Option<Range> {
    let made = match func {
        ValueFunc::JsonObject | ValueFunc::JsonArray => {
            let parts = args.iter().enumerate().map(|(at, arg)| {
                let is_key = func == ValueFunc::JsonObject && at % 2 == 0;
                match &arg.values {
                    _ if is_key && arg.null => None,
                    Some(Values::Texts(text)) if is_key => Some(Jsons::quoted(*text)),
                    _ if is_key => None,
                    Some(Values::Json(json)) => Some(json.or(Jsons { depth: 0, ..NULL })),
                    None => Some(NULL),
                    Some(_) => None,
                }
            });
            let parts: Vec<Jsons> = parts.collect::<Option<_>>()?;
            let is_object = func == ValueFunc::JsonObject;
            if is_object && parts.len() % 2 == 1 {
                return None;
            }
            let all = Jsons::around(&parts, is_object)?;
            return Some(Range {
                null: false,
                values: Some(Values::Json(all)),
            });
        }
        ValueFunc::JsonFrom(from) => of_value(from, args.first()?.values.as_ref()?)?,
        _ => {
            let Some(Values::Json(json)) = args.first()?.values else {
                return None;
            };
            return of_json(func, json, args);
        }
    };
    Some(Range {
        null: args.iter().any(|arg| arg.null),
        values: Some(Values::Json(made.checked()?)),
    })
}

/// `to_jsonb` of values of the type.
fn of_value(from: Type, values: &Values) -> Option<Jsons> {
    Some(match (from, values) {
        (Type::Bool, _) | (_, Values::Numbers(_)) => Jsons {
            bytes: SCALAR_BYTES,
            ..NULL
        },
        (Type::Text | Type::Varchar(_), Values::Texts(text)) => Jsons::quoted(*text),
        (Type::Jsonb, Values::Json(json)) => *json,
        _ => return None,
    })
}

fn of_json(func: ValueFunc, json: Jsons, args: &[Range]) -> Option<Range> {
    let second = &args.get(1)?.values;
    let null = args.iter().any(|arg| arg.null);
    let (null, made) = match func {
        ValueFunc::JsonGet | ValueFunc::JsonPath => {
            let part = Jsons {
                objects: false,
                ..json
            };
            (true, Values::Json(part))
        }
        ValueFunc::JsonGetText | ValueFunc::JsonPathText => {
            let text = Texts {
                bytes: json.bytes,
                least: 0,
                most: json.bytes,
            };
            (true, Values::Texts(text))
        }
        ValueFunc::JsonConcat => {
            let Some(Values::Json(other)) = second else {
                return None;
            };
            let objects = json.objects && other.objects;
            let both = Jsons::around(&[json, *other], objects)?;
            // Two objects become one.
            let depth = if objects {
                json.depth.max(other.depth)
            } else {
                both.depth
            };
            (null, Values::Json(Jsons { depth, ..both }))
        }
        // A scalar has no members.
        ValueFunc::JsonDeleteKey if json.objects => (null, Values::Json(json)),
        ValueFunc::JsonSet if json.objects => {
            let (Some(Values::Arrays(path)), Some(Values::Json(value))) =
                (second, &args.get(2)?.values)
            else {
                return None;
            };
            // A longer path may lead into an array, where a name is an error.
            if path.items != 1 || path.has_null() {
                return None;
            }
            let key = Jsons {
                bytes: path.bytes_max().saturating_mul(QUOTED_BYTES),
                ..NULL
            };
            let inside = Jsons::around(&[*value], true)?;
            let both = Jsons::around(&[json, key, *value], true)?;
            let depth = json.depth.max(inside.depth);
            (null, Values::Json(Jsons { depth, ..both }))
        }
        _ => return None,
    };
    Some(Range {
        null,
        values: Some(made),
    })
}

//! Session settings: names, values, and whether sessions may change them and clients are told.
//!
//! A setting's value is the text that SHOW prints. [`validate`] turns what the user wrote into that
//! text or refuses it. The table is in `list`; names with a dot are the user's own and accepted
//! without being listed.

mod list;
mod units;

pub use list::SETTINGS;
pub use units::Unit;

use base::{SqlError, SqlState};

/// Version of PostgreSQL whose behaviour is promised, with our own release. Clients read the
/// leading number.
pub const SERVER_VERSION: &str = "15.0 (Trellis 0.1.0)";

/// A known setting.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Setting {
    /// Name as SHOW ALL prints it; looked up without regard to case.
    pub name: &'static str,
    /// What values it takes.
    pub kind: Kind,
    /// Value of a new session, in the form that [`validate`] gives.
    pub default: &'static str,
    /// When it may be changed.
    pub context: Context,
    /// Whether the client is told of its value at start and at each change (ParameterStatus).
    pub reported: bool,
    /// Only the default is taken: it tells what is the case.
    pub is_fixed: bool,
    /// One line for SHOW ALL and pg_settings.
    pub description: &'static str,
}

/// What values a setting takes.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Kind {
    /// `on` or `off`.
    Bool,
    /// A whole number of `unit` from `min` to `max`.
    Integer {
        /// Smallest value.
        min: i64,
        /// Largest value.
        max: i64,
        /// What is counted.
        unit: Unit,
    },
    /// A number without unit from `min` to `max`.
    Real {
        /// Smallest value.
        min: f64,
        /// Largest value.
        max: f64,
    },
    /// One of these words, in lower case.
    Enum(&'static [&'static str]),
    /// Any text.
    Text,
    /// A fixed meaning in another form of writing, checked by a rule of its own: (accepted
    /// spelling in lower case, value).
    Alias(&'static [(&'static str, &'static str)]),
    /// The same, spelled as names of encodings are: only letters and digits count.
    Encoding(&'static [(&'static str, &'static str)]),
    /// Names of schemas, `public` among them.
    SchemaList,
    /// A time zone by name, rule or hours east of UTC.
    TimeZone,
}

/// When a setting may be changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Context {
    /// Never: the setting tells what the server is.
    Internal,
    /// Only at server start.
    Start,
    /// At any time, by a session of a superuser for itself.
    Superuser,
    /// At any time, by a session for itself.
    User,
}

impl Context {
    /// The word of pg_settings.
    pub fn name(self) -> &'static str {
        match self {
            Context::Internal => "internal",
            Context::Start => "postmaster",
            Context::Superuser => "superuser",
            Context::User => "user",
        }
    }
}

impl Setting {
    /// The word of pg_settings for its kind.
    pub fn vartype(&self) -> &'static str {
        match self.kind {
            Kind::Bool => "bool",
            Kind::Integer { .. } => "integer",
            Kind::Real { .. } => "real",
            Kind::Enum(_) => "enum",
            Kind::Text | Kind::Alias(_) | Kind::Encoding(_) | Kind::SchemaList | Kind::TimeZone => {
                "string"
            }
        }
    }
}

/// The setting of that name, in any case; `None` for unknown ones and for the user's own.
pub fn lookup(name: &str) -> Option<&'static Setting> {
    let name = match name {
        // Forms of SHOW and SET with a syntax of their own.
        "timezone" | "time zone" | "TIME ZONE" => "TimeZone",
        "transaction isolation level" => "transaction_isolation",
        other => other,
    };
    SETTINGS
        .iter()
        .find(|setting| setting.name.eq_ignore_ascii_case(name))
}

/// Whether `name` is one of the user's own settings: identifiers joined by dots.
pub fn is_custom(name: &str) -> bool {
    let part_ok = |part: &str| {
        let mut chars = part.chars();
        chars.next().is_some_and(|c| c.is_alphabetic() || c == '_')
            && chars.all(|c| c.is_alphanumeric() || c == '_' || c == '$')
    };
    name.contains('.') && name.split('.').all(part_ok)
}

/// The error for a setting that does not exist.
pub fn unknown(name: &str) -> SqlError {
    let message = format!("unrecognized configuration parameter \"{name}\"");
    SqlError::new(SqlState::UNDEFINED_OBJECT, message)
}

/// Whether a role may change a setting, for itself or others; the value is looked at elsewhere.
///
/// # Errors
/// 42501 for a setting of superusers.
pub fn allow(name: &str, is_superuser: bool) -> Result<(), SqlError> {
    match lookup(name) {
        Some(setting) if setting.context == Context::Superuser && !is_superuser => {
            let message = format!("permission denied to set parameter \"{}\"", setting.name);
            Err(SqlError::new(SqlState::INSUFFICIENT_PRIVILEGE, message))
        }
        _ => Ok(()),
    }
}

/// The value that SET stores: `value` checked and in the form that SHOW prints.
///
/// # Errors
/// 42704 for an unknown name, 55P02 for a setting that sessions cannot change, 22023 for a value
/// that is malformed or out of range, 0A000 for one that PostgreSQL has and Trellis lacks.
pub fn validate(name: &str, value: &str) -> Result<String, SqlError> {
    let Some(setting) = lookup(name) else {
        return match is_custom(name) {
            true => Ok(value.to_owned()),
            false if name.contains('.') => {
                let message = format!("invalid configuration parameter name \"{name}\"");
                let detail = "Custom parameter names must be two or more simple identifiers \
                              separated by dots.";
                Err(SqlError::new(SqlState(*b"42602"), message).detail(detail))
            }
            false => Err(unknown(name)),
        };
    };
    let cannot = |when: &str| {
        let message = format!("parameter \"{}\" cannot be changed{when}", setting.name);
        Err(SqlError::new(SqlState::CANT_CHANGE_RUNTIME, message))
    };
    match setting.context {
        Context::Internal => cannot(""),
        Context::Start => cannot(" without restarting the server"),
        Context::Superuser | Context::User => {
            let value = check(setting, value)?;
            if setting.is_fixed && value != setting.default {
                return Err(unsupported(setting, &value).detail(setting.description));
            }
            Ok(value)
        }
    }
}

/// The value of a setting in its base unit, for consumers of timeouts and sizes: `5s` of a
/// setting in milliseconds is 5000. `None` if the setting is not an integer or `value` malformed.
pub fn integer(name: &str, value: &str) -> Option<i64> {
    match lookup(name)?.kind {
        Kind::Integer { unit, .. } => units::parse(value, unit).ok(),
        _ => None,
    }
}

/// Reads a Boolean as SET does: `on off true false yes no 1 0` and unique beginnings of words.
pub fn parse_bool(value: &str) -> Option<bool> {
    let lower = value.trim().to_ascii_lowercase();
    let begins = |word: &str, least: usize| lower.len() >= least && word.starts_with(&lower);
    if begins("true", 1) || begins("yes", 1) || lower == "on" || lower == "1" {
        Some(true)
    } else if begins("false", 1) || begins("no", 1) || begins("off", 2) || lower == "0" {
        Some(false)
    } else {
        None
    }
}

fn check(setting: &Setting, value: &str) -> Result<String, SqlError> {
    let invalid = |hint: &str| {
        let message = format!(
            "invalid value for parameter \"{}\": \"{value}\"",
            setting.name
        );
        Err(SqlError::new(SqlState::INVALID_PARAMETER, message).hint(hint))
    };
    match setting.kind {
        Kind::Bool => match parse_bool(value) {
            Some(on) => Ok(if on { "on" } else { "off" }.to_owned()),
            None => {
                let message = format!("parameter \"{}\" requires a Boolean value", setting.name);
                Err(SqlError::new(SqlState::INVALID_PARAMETER, message))
            }
        },
        Kind::Integer { min, max, unit } => match units::parse(value, unit) {
            Err(hint) => invalid(hint),
            Ok(number) if number < min || number > max => out_of_range(setting, number, min, max),
            Ok(number) => Ok(units::format(number, unit)),
        },
        Kind::Real { min, max } => match value.trim().parse::<f64>() {
            Ok(number) if number.is_nan() || number < min || number > max => {
                out_of_range(setting, number, min, max)
            }
            Ok(number) => Ok(format!("{number}")),
            Err(_) => invalid(""),
        },
        Kind::Enum(words) => {
            let lower = value.trim().to_ascii_lowercase();
            // Words that mean a switch are also accepted as Booleans (synchronous_commit = true).
            let switch = parse_bool(value).map(|on| if on { "on" } else { "off" });
            let found = words.iter().find(|word| **word == lower);
            let found = found.or_else(|| words.iter().find(|word| Some(**word) == switch));
            match found {
                Some(word) => Ok((*word).to_owned()),
                None => invalid(&available(words.iter())),
            }
        }
        Kind::Alias(pairs) => {
            let squeezed = value.chars().filter(|c| !c.is_whitespace());
            alias(setting, pairs, value, squeezed)
        }
        Kind::Encoding(pairs) => {
            let squeezed = value.chars().filter(|c| c.is_ascii_alphanumeric());
            alias(setting, pairs, value, squeezed)
        }
        Kind::SchemaList => crate::path::check(setting.name, value),
        Kind::TimeZone => match base::zone::Zone::setting(value) {
            Some(zone) => Ok(zone),
            None => {
                let name = setting.name;
                let message = format!("invalid value for parameter \"{name}\": \"{value}\"");
                Err(SqlError::new(SqlState::INVALID_PARAMETER, message))
            }
        },
        Kind::Text => Ok(text(setting.name, value)),
    }
}

fn available<'a>(words: impl Iterator<Item = &'a &'static str>) -> String {
    let words: Vec<&str> = words.copied().collect();
    format!("Available values: {}.", words.join(", "))
}

fn out_of_range(
    setting: &Setting,
    number: impl core::fmt::Display,
    min: impl core::fmt::Display,
    max: impl core::fmt::Display,
) -> Result<String, SqlError> {
    let name = setting.name;
    let message =
        format!("{number} is outside the valid range for parameter \"{name}\" ({min} .. {max})");
    Err(SqlError::new(SqlState::INVALID_PARAMETER, message))
}

/// Values with a limited meaning: what means the same as the only behaviour there is passes, the
/// rest is refused as not supported rather than ignored.
fn alias(
    setting: &Setting,
    pairs: &[(&str, &str)],
    value: &str,
    squeezed: impl Iterator<Item = char>,
) -> Result<String, SqlError> {
    let squeezed: String = squeezed.map(|c| c.to_ascii_lowercase()).collect();
    match pairs.iter().find(|(spelling, _)| *spelling == squeezed) {
        Some((_, value)) => Ok((*value).to_owned()),
        None => Err(unsupported(setting, value)),
    }
}

/// What PostgreSQL takes and Trellis cannot do.
fn unsupported(setting: &Setting, value: &str) -> SqlError {
    let message = format!("{} \"{value}\" is not supported", setting.name);
    let hint = format!("The only supported value is \"{}\".", setting.default);
    SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message).hint(hint)
}

/// Texts are stored as given, except that `application_name` is cut to a name's length and shows
/// unprintable characters as `?`, because it ends up in logs and listings.
fn text(name: &str, value: &str) -> String {
    if name != "application_name" {
        return value.to_owned();
    }
    let shown = |c: char| {
        if c.is_ascii_graphic() || c == ' ' {
            c
        } else {
            '?'
        }
    };
    value
        .chars()
        .map(shown)
        .take(base::limits::NAME_BYTES_MAX)
        .collect()
}

#[cfg(test)]
mod tests;

//! The options of COPY and what PostgreSQL refuses among them.

use base::{SqlError, SqlState};

/// The data format.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Format {
    /// One line per row, tab-separated, backslash escapes.
    #[default]
    Text,
    /// Comma-separated values with quotes.
    Csv,
    /// Length-prefixed values in their wire form.
    Binary,
}

/// Whether the data has a line of column names.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Header {
    /// It has none.
    #[default]
    No,
    /// The first line is skipped (or written).
    Yes,
    /// The first line must be the column names (COPY FROM only).
    Match,
}

/// The columns that a FORCE_ option names.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum ForceColumns {
    /// None.
    #[default]
    None,
    /// `*`.
    All,
    /// These names.
    Named(Vec<String>),
}

impl ForceColumns {
    /// Whether the column called `name` is meant.
    pub fn contains(&self, name: &str) -> bool {
        match self {
            ForceColumns::None => false,
            ForceColumns::All => true,
            ForceColumns::Named(names) => names.iter().any(|named| named == name),
        }
    }
}

/// Which way the data goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// COPY FROM.
    From,
    /// COPY TO.
    To,
}

/// The value of an option as it was written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum OptionValue {
    /// The name alone.
    None,
    /// A word, number or string.
    Text(String),
    /// A list of column names in parentheses.
    List(Vec<String>),
    /// `*`.
    Star,
}

/// Everything that determines how bytes and rows correspond. `Default` is the text format.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CopyOptions {
    /// The data format.
    pub format: Format,
    /// Between fields.
    pub delimiter: u8,
    /// What stands for NULL.
    pub null: String,
    /// The line of column names.
    pub header: Header,
    /// Around CSV fields.
    pub quote: u8,
    /// Before a quote inside a quoted CSV field.
    pub escape: u8,
    /// Columns whose non-NULL values are always quoted (CSV, COPY TO).
    pub force_quote: ForceColumns,
    /// Columns whose unquoted NULL string is that text and not NULL (CSV, COPY FROM).
    pub force_not_null: ForceColumns,
    /// Columns whose quoted NULL string is NULL (CSV, COPY FROM).
    pub force_null: ForceColumns,
    /// Accepted: rows of this transaction are loaded no differently.
    pub freeze: bool,
}

impl Default for CopyOptions {
    fn default() -> CopyOptions {
        CopyOptions {
            format: Format::Text,
            delimiter: b'\t',
            null: "\\N".to_owned(),
            header: Header::No,
            quote: b'"',
            escape: b'"',
            force_quote: ForceColumns::None,
            force_not_null: ForceColumns::None,
            force_null: ForceColumns::None,
            freeze: false,
        }
    }
}

/// Options as written, before defaults.
#[derive(Default)]
struct Given {
    format: Option<Format>,
    delimiter: Option<String>,
    null: Option<String>,
    header: Option<Header>,
    quote: Option<String>,
    escape: Option<String>,
    force_quote: Option<ForceColumns>,
    force_not_null: Option<ForceColumns>,
    force_null: Option<ForceColumns>,
    freeze: Option<bool>,
    encoding: Option<String>,
}

impl CopyOptions {
    /// Options from what the statement says, in order: (name in any case, value). The old forms
    /// without parentheses have the same names (`csv` and `binary` are `format csv`).
    ///
    /// # Errors
    /// 42601 for an unknown, repeated or malformed option, 22023 for a value or combination that
    /// PostgreSQL refuses, 0A000 for one that only other formats have.
    pub fn new(
        written: &[(String, OptionValue)],
        direction: Direction,
    ) -> Result<CopyOptions, SqlError> {
        let mut given = Given::default();
        for (name, value) in written {
            given.add(&name.to_ascii_lowercase(), value)?;
        }
        given.finish(direction)
    }
}

fn syntax(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::SYNTAX, message)
}

fn invalid(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::INVALID_PARAMETER, message)
}

fn unsupported(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message)
}

/// Stores `value` unless the option was given before.
fn once<T>(slot: &mut Option<T>, value: T) -> Result<(), SqlError> {
    if slot.replace(value).is_some() {
        return Err(syntax("conflicting or redundant options"));
    }
    Ok(())
}

fn boolean(name: &str, value: &OptionValue) -> Result<bool, SqlError> {
    let given = match value {
        OptionValue::None => Some(true),
        OptionValue::Text(text) => pg_catalog::settings::parse_bool(text),
        OptionValue::List(_) | OptionValue::Star => None,
    };
    given.ok_or_else(|| syntax(format!("{name} requires a Boolean value")))
}

fn text(name: &str, value: &OptionValue) -> Result<String, SqlError> {
    match value {
        OptionValue::Text(text) => Ok(text.clone()),
        _ => Err(syntax(format!("{name} requires a parameter"))),
    }
}

fn columns(name: &str, value: &OptionValue) -> Result<ForceColumns, SqlError> {
    match value {
        OptionValue::Star => Ok(ForceColumns::All),
        OptionValue::List(names) => Ok(ForceColumns::Named(names.clone())),
        OptionValue::Text(text) if text == "*" => Ok(ForceColumns::All),
        _ => Err(invalid(format!(
            "argument to option \"{name}\" must be a list of column names"
        ))),
    }
}

impl Given {
    fn add(&mut self, name: &str, value: &OptionValue) -> Result<(), SqlError> {
        match name {
            "format" => {
                let word = text(name, value)?;
                let format = match word.to_ascii_lowercase().as_str() {
                    "text" => Format::Text,
                    "csv" => Format::Csv,
                    "binary" => Format::Binary,
                    _ => return Err(invalid(format!("COPY format \"{word}\" not recognized"))),
                };
                once(&mut self.format, format)
            }
            "csv" => once(&mut self.format, Format::Csv),
            "binary" => once(&mut self.format, Format::Binary),
            "delimiter" | "delimiters" => once(&mut self.delimiter, text(name, value)?),
            "null" => once(&mut self.null, text(name, value)?),
            "header" => {
                let is_match = matches!(value, OptionValue::Text(word)
                    if word.eq_ignore_ascii_case("match"));
                let header = match is_match {
                    true => Header::Match,
                    false => match boolean(name, value) {
                        Ok(true) => Header::Yes,
                        Ok(false) => Header::No,
                        Err(_) => {
                            return Err(syntax("header requires a Boolean value or \"match\""));
                        }
                    },
                };
                once(&mut self.header, header)
            }
            "quote" => once(&mut self.quote, text(name, value)?),
            "escape" => once(&mut self.escape, text(name, value)?),
            "force_quote" => once(&mut self.force_quote, columns(name, value)?),
            "force_not_null" => once(&mut self.force_not_null, columns(name, value)?),
            "force_null" => once(&mut self.force_null, columns(name, value)?),
            "freeze" => once(&mut self.freeze, boolean(name, value)?),
            "encoding" => once(&mut self.encoding, text(name, value)?),
            _ => Err(syntax(format!("option \"{name}\" not recognized"))),
        }
    }

    fn delimiter(&self, csv: bool) -> Result<u8, SqlError> {
        let delimiter = match (&self.delimiter, csv) {
            (None, true) => b',',
            (None, false) => b'\t',
            (Some(text), _) => single_byte("COPY delimiter", text)?,
        };
        if delimiter == b'\n' || delimiter == b'\r' {
            return Err(invalid(
                "COPY delimiter cannot be newline or carriage return",
            ));
        }
        Ok(delimiter)
    }

    fn finish(self, direction: Direction) -> Result<CopyOptions, SqlError> {
        let format = self.format.unwrap_or_default();
        if let Some(encoding) = &self.encoding {
            pg_catalog::settings::validate("client_encoding", encoding).map_err(|_| {
                invalid("argument to option \"encoding\" must be a valid encoding name")
            })?;
        }
        self.check_format(format)?;
        self.check_direction(direction)?;
        let csv = format == Format::Csv;
        let delimiter = self.delimiter(csv)?;
        let null = self
            .null
            .unwrap_or_else(|| if csv { "" } else { "\\N" }.to_owned());
        if null.contains(['\n', '\r']) {
            return Err(invalid(
                "COPY null representation cannot use newline or carriage return",
            ));
        }
        // These would be ambiguous with escapes and with the end marker.
        const RESERVED: &[u8] = b"\\.abcdefghijklmnopqrstuvwxyz0123456789";
        if !csv && RESERVED.contains(&delimiter) {
            let shown = char::from(delimiter);
            return Err(invalid(format!("COPY delimiter cannot be \"{shown}\"")));
        }
        if format != Format::Binary && null.as_bytes().contains(&delimiter) {
            return Err(invalid(
                "COPY delimiter must not appear in the NULL specification",
            ));
        }
        let quote = match &self.quote {
            None => b'"',
            Some(text) => single_byte("COPY quote", text)?,
        };
        let escape = match &self.escape {
            None => quote,
            Some(text) => single_byte("COPY escape", text)?,
        };
        if csv && delimiter == quote {
            return Err(invalid("COPY delimiter and quote must be different"));
        }
        if csv && null.as_bytes().contains(&quote) {
            return Err(invalid(
                "CSV quote character must not appear in the NULL specification",
            ));
        }
        Ok(CopyOptions {
            format,
            delimiter,
            null,
            header: self.header.unwrap_or_default(),
            quote,
            escape,
            force_quote: self.force_quote.unwrap_or_default(),
            force_not_null: self.force_not_null.unwrap_or_default(),
            force_null: self.force_null.unwrap_or_default(),
            freeze: self.freeze.unwrap_or(false),
        })
    }

    /// Refuses options that the format does not have.
    fn check_format(&self, format: Format) -> Result<(), SqlError> {
        if format == Format::Binary {
            let named = [
                ("DELIMITER", self.delimiter.is_some()),
                ("NULL", self.null.is_some()),
            ];
            if let Some((name, _)) = named.iter().find(|(_, given)| *given) {
                return Err(syntax(format!("cannot specify {name} in BINARY mode")));
            }
            if self.header.is_some_and(|header| header != Header::No) {
                return Err(unsupported("cannot specify HEADER in BINARY mode"));
            }
        }
        let csv_only = [
            ("quote", self.quote.is_some()),
            ("escape", self.escape.is_some()),
            ("force quote", self.force_quote.is_some()),
            ("force not null", self.force_not_null.is_some()),
            ("force null", self.force_null.is_some()),
        ];
        match csv_only
            .iter()
            .find(|(_, given)| *given && format != Format::Csv)
        {
            Some((name, _)) => Err(unsupported(format!(
                "COPY {name} available only in CSV mode"
            ))),
            None => Ok(()),
        }
    }

    /// Refuses options that only the other direction has.
    fn check_direction(&self, direction: Direction) -> Result<(), SqlError> {
        let (from, to) = (direction == Direction::From, direction == Direction::To);
        if from && self.force_quote.is_some() {
            return Err(unsupported("COPY force quote only available using COPY TO"));
        }
        if to && self.force_not_null.is_some() {
            return Err(unsupported(
                "COPY force not null only available using COPY FROM",
            ));
        }
        if to && self.force_null.is_some() {
            return Err(unsupported(
                "COPY force null only available using COPY FROM",
            ));
        }
        if to && self.header == Some(Header::Match) {
            return Err(unsupported("cannot use \"match\" with HEADER in COPY TO"));
        }
        Ok(())
    }
}

fn single_byte(what: &str, text: &str) -> Result<u8, SqlError> {
    match text.as_bytes() {
        [byte] => Ok(*byte),
        _ => Err(unsupported(format!(
            "{what} must be a single one-byte character"
        ))),
    }
}

//! The error that a client sees: SQLSTATE, message, detail, hint, position.

use alloc::boxed::Box;
use alloc::string::String;
use core::fmt;
use serde::{Deserialize, Serialize};

/// A five-character SQLSTATE code.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SqlState(pub [u8; 5]);

impl SqlState {
    /// The code as text.
    pub fn as_str(&self) -> &str {
        core::str::from_utf8(&self.0).unwrap_or("XX000")
    }
}
impl fmt::Debug for SqlState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
impl fmt::Display for SqlState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

macro_rules! states {
    ($($(#[$doc:meta])* $name:ident = $code:literal;)*) => {
        impl SqlState {
            $($(#[$doc])*
            #[doc = concat!("SQLSTATE ", $code, ".")]
            pub const $name: SqlState = SqlState(code($code));)*
        }
    };
}
const fn code(text: &str) -> [u8; 5] {
    let b = text.as_bytes();
    assert!(b.len() == 5);
    [b[0], b[1], b[2], b[3], b[4]]
}
states! {
    SUCCESS = "00000";
    WARNING = "01000";
    CONNECTION_FAILURE = "08006";
    PROTOCOL_VIOLATION = "08P01";
    TXN_UNKNOWN = "08007";
    FEATURE_NOT_SUPPORTED = "0A000";
    CARDINALITY_VIOLATION = "21000";
    DATA_EXCEPTION = "22000";
    STRING_TRUNCATION = "22001";
    NUMERIC_OUT_OF_RANGE = "22003";
    NULL_NOT_ALLOWED = "22004";
    DATETIME_FORMAT = "22007";
    DATETIME_OVERFLOW = "22008";
    DIVISION_BY_ZERO = "22012";
    INVALID_FRAME_OFFSET = "22013";
    INVALID_NTILE = "22014";
    INVALID_NTH_VALUE = "22016";
    INVALID_ESCAPE = "22025";
    INVALID_USE_OF_ESCAPE = "2200C";
    INVALID_PARAMETER = "22023";
    NEGATIVE_LIMIT = "2201W";
    NEGATIVE_OFFSET = "2201X";
    INVALID_TEXT = "22P02";
    INVALID_BINARY = "22P03";
    BAD_COPY = "22P04";
    UNTRANSLATABLE_CHARACTER = "22P05";
    CHARACTER_NOT_IN_REPERTOIRE = "22021";
    SUBSTRING_ERROR = "22011";
    INVALID_REGEX = "2201B";
    INVALID_LOGARITHM = "2201E";
    INVALID_POWER = "2201F";
    ARRAY_SUBSCRIPT = "2202E";
    INTEGRITY = "23000";
    NOT_NULL = "23502";
    FOREIGN_KEY = "23503";
    UNIQUE = "23505";
    CHECK = "23514";
    CHECK_OPTION = "44000";
    INVALID_TXN_STATE = "25000";
    ACTIVE_TXN = "25001";
    READ_ONLY_TXN = "25006";
    NO_ACTIVE_TXN = "25P01";
    IN_FAILED_TXN = "25P02";
    INVALID_STATEMENT_NAME = "26000";
    INVALID_AUTHORIZATION = "28000";
    INVALID_PASSWORD = "28P01";
    DEPENDENT_OBJECTS = "2BP01";
    INVALID_CURSOR_NAME = "34000";
    INVALID_DATABASE = "3D000";
    INVALID_SCHEMA = "3F000";
    UNDEFINED_SAVEPOINT = "3B001";
    SERIALIZATION = "40001";
    DEADLOCK = "40P01";
    TXN_ROLLBACK = "40000";
    TXN_INTEGRITY = "40002";
    SYNTAX = "42601";
    SYNTAX_OR_ACCESS = "42000";
    INVALID_GRANT = "0LP01";
    INSUFFICIENT_PRIVILEGE = "42501";
    UNDEFINED_COLUMN = "42703";
    UNDEFINED_FUNCTION = "42883";
    UNDEFINED_TABLE = "42P01";
    UNDEFINED_PARAMETER = "42P02";
    UNDEFINED_OBJECT = "42704";
    DUPLICATE_COLUMN = "42701";
    DUPLICATE_CURSOR = "42P03";
    INVALID_CURSOR_DEFINITION = "42P11";
    DUPLICATE_DATABASE = "42P04";
    DUPLICATE_STATEMENT = "42P05";
    DUPLICATE_SCHEMA = "42P06";
    DUPLICATE_TABLE = "42P07";
    DUPLICATE_ALIAS = "42712";
    DUPLICATE_OBJECT = "42710";
    AMBIGUOUS_COLUMN = "42702";
    AMBIGUOUS_FUNCTION = "42725";
    GROUPING = "42803";
    DATATYPE_MISMATCH = "42804";
    WRONG_OBJECT_TYPE = "42809";
    INVALID_FOREIGN_KEY = "42830";
    CANNOT_COERCE = "42846";
    INVALID_COLUMN_DEFINITION = "42611";
    INVALID_COLUMN_REFERENCE = "42P10";
    INVALID_TABLE_DEFINITION = "42P16";
    INVALID_OBJECT_DEFINITION = "42P17";
    WINDOWING = "42P20";
    INDETERMINATE_DATATYPE = "42P18";
    AMBIGUOUS_PARAMETER = "42P08";
    RESERVED_NAME = "42939";
    NAME_TOO_LONG = "42622";
    OUT_OF_RESOURCES = "53000";
    DISK_FULL = "53100";
    OUT_OF_MEMORY = "53200";
    TOO_MANY_CONNECTIONS = "53300";
    LIMIT_EXCEEDED = "53400";
    PROGRAM_LIMIT = "54000";
    STATEMENT_TOO_COMPLEX = "54001";
    TOO_MANY_COLUMNS = "54011";
    TOO_MANY_ARGUMENTS = "54023";
    OBJECT_NOT_READY = "55000";
    OBJECT_IN_USE = "55006";
    CANT_CHANGE_RUNTIME = "55P02";
    LOCK_NOT_AVAILABLE = "55P03";
    QUERY_CANCELED = "57014";
    ADMIN_SHUTDOWN = "57P01";
    CRASH_SHUTDOWN = "57P02";
    CANNOT_CONNECT_NOW = "57P03";
    IO_ERROR = "58030";
    INTERNAL = "XX000";
    DATA_CORRUPTED = "XX001";
}

/// An error as it goes to the client. Text follows PostgreSQL's style: lower case, no final period,
/// names in double quotes; detail and hint are sentences.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SqlError(Box<SqlErrorFields>);

/// The parts of a [`SqlError`].
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SqlErrorFields {
    /// What kind of error.
    pub state: SqlState,
    /// What went wrong, in one line.
    pub message: String,
    /// More facts, or empty.
    pub detail: String,
    /// What to do next, or empty.
    pub hint: String,
    /// Character in the statement text, from 1; 0 if unknown.
    pub position: u32,
    /// Where in the client's data, or empty: `COPY t, line 3`.
    pub context: String,
    /// Table that a constraint error is about, or empty.
    pub table: String,
    /// Constraint that was violated, or empty.
    pub constraint: String,
    /// Column that the error is about, or empty.
    pub column: String,
    /// Schema of that table or type, or empty.
    pub schema: String,
    /// Domain that the error is about, or empty.
    pub data_type: String,
}

impl SqlError {
    /// An error with code and message only.
    pub fn new(state: SqlState, message: impl Into<String>) -> SqlError {
        SqlError(Box::new(SqlErrorFields {
            state,
            message: message.into(),
            detail: String::new(),
            hint: String::new(),
            position: 0,
            context: String::new(),
            table: String::new(),
            constraint: String::new(),
            column: String::new(),
            schema: String::new(),
            data_type: String::new(),
        }))
    }
    /// Adds the detail line.
    pub fn detail(mut self, text: impl Into<String>) -> SqlError {
        self.0.detail = text.into();
        self
    }
    /// Adds the hint line.
    pub fn hint(mut self, text: impl Into<String>) -> SqlError {
        self.0.hint = text.into();
        self
    }
    /// Adds the place in the client's data.
    pub fn context(mut self, text: impl Into<String>) -> SqlError {
        self.0.context = text.into();
        self
    }
    /// Adds the character position in the statement, from 1.
    pub fn at(mut self, position: u32) -> SqlError {
        self.0.position = position;
        self
    }
    /// Names the table.
    pub fn table(mut self, name: impl Into<String>) -> SqlError {
        self.0.table = name.into();
        self
    }
    /// Names the constraint.
    pub fn constraint(mut self, name: impl Into<String>) -> SqlError {
        self.0.constraint = name.into();
        self
    }
    /// Names the column.
    pub fn column(mut self, name: impl Into<String>) -> SqlError {
        self.0.column = name.into();
        self
    }
    /// Names the schema of the table or the domain.
    pub fn schema(mut self, name: impl Into<String>) -> SqlError {
        self.0.schema = name.into();
        self
    }
    /// Names the domain.
    pub fn data_type(mut self, name: impl Into<String>) -> SqlError {
        self.0.data_type = name.into();
        self
    }
    /// Changes message, detail, hint and context where they have `mark` in them.
    pub fn map_texts(mut self, mark: char, change: &dyn Fn(&str) -> String) -> SqlError {
        let SqlErrorFields {
            message,
            detail,
            hint,
            context,
            ..
        } = &mut *self.0;
        for text in [message, detail, hint, context] {
            if text.contains(mark) {
                *text = change(text);
            }
        }
        self
    }
    /// The SQLSTATE.
    pub fn state(&self) -> SqlState {
        self.0.state
    }
    /// All parts.
    pub fn fields(&self) -> &SqlErrorFields {
        &self.0
    }
    /// Whether running the whole transaction again can help (40001, 40P01).
    pub fn is_retryable(&self) -> bool {
        self.0.state == SqlState::SERIALIZATION || self.0.state == SqlState::DEADLOCK
    }
}

impl fmt::Display for SqlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.0.state, self.0.message)
    }
}

impl core::error::Error for SqlError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_carry_their_parts() {
        let error = SqlError::new(SqlState::UNIQUE, "duplicate key")
            .detail("Key (a)=(1) already exists.")
            .hint("Use another key.")
            .at(7)
            .context("COPY t, line 1")
            .table("t")
            .constraint("t_pkey")
            .column("a");
        let fields = error.fields();
        assert_eq!(
            (fields.detail.as_str(), fields.position),
            ("Key (a)=(1) already exists.", 7)
        );
        assert_eq!(
            (fields.table.as_str(), fields.constraint.as_str()),
            ("t", "t_pkey")
        );
        assert_eq!(
            (fields.hint.as_str(), fields.column.as_str()),
            ("Use another key.", "a")
        );
        assert_eq!(fields.context, "COPY t, line 1");
        assert_eq!(error.to_string(), "23505: duplicate key");
        assert!(!error.is_retryable());
        assert!(SqlError::new(SqlState::SERIALIZATION, "x").is_retryable());
        let bytes = crate::codec::to_vec(&error);
        assert_eq!(crate::codec::decode::<SqlError>(&bytes), Ok(error));
    }
}

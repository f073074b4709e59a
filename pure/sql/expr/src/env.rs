//! What evaluation may ask: the columns of its row, parameters, and facts about the session.

use base::row::RowRef;
use base::{Datum, SqlError, SqlState, Time, Type};

/// The row that an expression is evaluated over.
pub trait Columns {
    /// Value of column `index`, from 0, of type `ty`.
    ///
    /// # Errors
    /// XX001 if the row's bytes are malformed.
    fn column(&self, index: u32, ty: Type) -> Result<Datum, SqlError>;

    /// Column `index`, which must be of an integer type, if its value can be had without decoding;
    /// `None` says nothing about the column.
    #[inline]
    fn int(&self, _index: u32) -> Option<i64> {
        None
    }

    /// The UTF-8 bytes of column `index`, which must be of a text type, if they can be lent;
    /// `None` says nothing about the column.
    #[inline]
    fn text(&self, _index: u32) -> Option<&[u8]> {
        None
    }
}

impl Columns for [Datum] {
    #[inline]
    fn column(&self, index: u32, _: Type) -> Result<Datum, SqlError> {
        Ok(self[index as usize].clone())
    }

    #[inline]
    fn int(&self, index: u32) -> Option<i64> {
        match self[index as usize] {
            Datum::Int(value) => Some(value),
            _ => None,
        }
    }

    #[inline]
    fn text(&self, index: u32) -> Option<&[u8]> {
        match &self[index as usize] {
            Datum::Text(text) => Some(text.as_bytes()),
            _ => None,
        }
    }
}

impl Columns for &[Datum] {
    #[inline]
    fn column(&self, index: u32, ty: Type) -> Result<Datum, SqlError> {
        (**self).column(index, ty)
    }

    #[inline]
    fn int(&self, index: u32) -> Option<i64> {
        (**self).int(index)
    }

    #[inline]
    fn text(&self, index: u32) -> Option<&[u8]> {
        (**self).text(index)
    }
}

/// A stored row; columns are decoded as they are asked for.
#[derive(Clone, Copy)]
pub struct EncodedRow<'a>(pub RowRef<'a>);

impl Columns for EncodedRow<'_> {
    #[inline]
    fn column(&self, index: u32, ty: Type) -> Result<Datum, SqlError> {
        self.0.col(index as usize, ty).map_err(|error| {
            SqlError::new(SqlState::DATA_CORRUPTED, format!("malformed row: {error}"))
        })
    }

    #[inline]
    fn int(&self, index: u32) -> Option<i64> {
        self.0.col_int(index as usize)
    }

    #[inline]
    fn text(&self, index: u32) -> Option<&[u8]> {
        self.0.col_bytes(index as usize)
    }
}

/// The row of an expression without columns (VALUES, constant expressions).
#[derive(Clone, Copy)]
pub struct NoColumns;

impl Columns for NoColumns {
    fn column(&self, index: u32, _: Type) -> Result<Datum, SqlError> {
        panic!("column {index} of an expression that was bound without columns")
    }
}

/// Facts about the session, its transaction and the catalog.
pub trait SessionFacts {
    /// Start of the transaction (`now()`).
    fn txn_time(&self) -> Time;
    /// Wall time of this step (`clock_timestamp()`).
    fn now(&self) -> Time;
    /// Start of the statement; may be approximated by the wall time.
    fn statement_time(&self) -> Time {
        self.now()
    }
    /// Name of the session's user.
    fn user(&self) -> String;
    /// Name of the session's database.
    fn database(&self) -> String;
    /// Number of the connection (`pg_backend_pid()`).
    fn pid(&self) -> i32;
    /// Addresses of the connection, if it has any.
    fn ends(&self) -> Option<Ends> {
        None
    }
    /// A session setting by lower-case name; `None` if there is no such setting.
    fn setting(&self, name: &str) -> Option<String>;
    /// `set_config`: sets it for the session or, if `local`, the transaction; `None` is its
    /// default. Gives the value that it has then.
    ///
    /// # Errors
    /// Those of SET.
    fn set_config(&self, name: &str, value: Option<&str>, local: bool) -> Result<String, SqlError>;
    /// 64 pseudo-random bits.
    fn random(&self) -> u64;
    /// A number never given before in this cluster.
    fn unique(&self) -> u64;
    /// A function over the system catalog, by lower-case name without schema; arguments have the
    /// types of its signature in `pg_catalog::functions` and may be NULL.
    ///
    /// # Errors
    /// What the function raises, for example 42P01 for the input of `regclass`.
    fn catalog_function(&self, name: &str, args: &[Datum]) -> Result<Datum, SqlError>;
    /// Whether a value of `bytes` bytes may be made now.
    ///
    /// # Errors
    /// 53200 if the statement would exceed its memory; 54000 where no statement is asked and the
    /// value would be too long for that ([`NoSession`]).
    fn room(&self, bytes: usize) -> Result<(), SqlError>;
}

/// The session of programs that run where the rows are: everything that depends on a session was
/// replaced by constants before ([`super::fold::freeze`]), so asking is a bug.
#[derive(Clone, Copy)]
pub struct NoSession {
    /// Longest value that is made for which a statement would have to be asked for room.
    value_bytes_max: usize,
}

impl NoSession {
    /// Of a program that runs where the rows are: what it holds is not the statement's.
    pub const ROWS: NoSession = NoSession {
        value_bytes_max: base::limits::PROGRAM_BYTES_MAX,
    };
    /// While planning: constants of a plan stay small.
    pub const FOLDING: NoSession = NoSession { value_bytes_max: 0 };
}

impl SessionFacts for NoSession {
    fn set_config(&self, _: &str, _: Option<&str>, _: bool) -> Result<String, SqlError> {
        unreachable!("volatile functions do not travel")
    }
    fn txn_time(&self) -> Time {
        unreachable!("stable functions are frozen before an expression travels")
    }
    fn now(&self) -> Time {
        unreachable!("volatile functions do not travel")
    }
    fn user(&self) -> String {
        unreachable!("stable functions are frozen before an expression travels")
    }
    fn database(&self) -> String {
        unreachable!("stable functions are frozen before an expression travels")
    }
    fn pid(&self) -> i32 {
        unreachable!("stable functions are frozen before an expression travels")
    }
    fn setting(&self, _: &str) -> Option<String> {
        unreachable!("stable functions are frozen before an expression travels")
    }
    fn random(&self) -> u64 {
        unreachable!("volatile functions do not travel")
    }
    fn unique(&self) -> u64 {
        unreachable!("volatile functions do not travel")
    }
    fn catalog_function(&self, name: &str, _: &[Datum]) -> Result<Datum, SqlError> {
        unreachable!("{name} is frozen before an expression travels")
    }
    fn room(&self, bytes: usize) -> Result<(), SqlError> {
        let most = self.value_bytes_max;
        match bytes <= most {
            true => Ok(()),
            false => Err(txn::computed::too_large(bytes, most)),
        }
    }
}

/// Everything beside the row that an expression may refer to.
#[derive(Clone, Copy)]
pub struct Env<'a> {
    /// Values of `$1..`.
    pub params: &'a [Datum],
    /// Values of the plan's subqueries for the current row.
    pub subqueries: &'a [Datum],
    /// The session.
    pub session: &'a dyn SessionFacts,
}

impl Env<'static> {
    /// As [`Env::of_program`], without parameters.
    pub const NONE: Env<'static> = Env::of_program(&[]);
}

impl<'a> Env<'a> {
    /// Parameters, no subqueries, no session: for programs that run where the rows are.
    #[inline]
    pub const fn of_program(params: &'a [Datum]) -> Env<'a> {
        Env {
            params,
            subqueries: &[],
            session: &NoSession::ROWS,
        }
    }
}

/// Both ends of a client's connection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ends {
    /// Address of the client, without port.
    pub client: String,
    /// Its port.
    pub client_port: u16,
    /// Address of the node, without port.
    pub server: String,
    /// Its port.
    pub server_port: u16,
}

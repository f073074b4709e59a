//! Calls of large objects: `lo_open`, `loread` and their like.

use super::rel::CallKind;
use super::{Binder, unsupported};
use base::{SqlError, Type};
use expr::Expr;

/// What is done with a large object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ObjectCall {
    /// Makes one with a number of the server's choice.
    Creat,
    /// Makes one with this number; 0: of the server's choice.
    Create,
    /// Gives a descriptor for this transaction.
    Open,
    /// Gives a descriptor back.
    Close,
    /// Reads where a descriptor stands.
    Read,
    /// Writes where a descriptor stands.
    Write,
    /// Moves a descriptor; the flag: positions have 64 bits.
    Seek(bool),
    /// Where a descriptor stands.
    Tell(bool),
    /// Sets the length.
    Truncate,
    /// Removes an object.
    Unlink,
    /// Makes one with these bytes.
    FromBytes,
    /// All of its bytes, or some.
    Get,
    /// Writes at a position.
    Put,
}

/// What a statement does with large objects.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub enum ObjectUse {
    /// Nothing.
    #[default]
    None,
    /// It calls functions of large objects.
    Calls,
    /// One of them makes an object.
    Makes,
}

impl ObjectCall {
    /// Whether it makes an object.
    pub fn makes(self) -> bool {
        use ObjectCall::{Creat, Create, FromBytes};
        matches!(self, Creat | Create | FromBytes)
    }

    /// Whether it changes an object.
    pub fn writes(self) -> bool {
        use ObjectCall::{Put, Truncate, Unlink, Write};
        self.makes() || matches!(self, Put | Truncate | Unlink | Write)
    }

    /// The name of its function, for errors.
    pub fn name(self) -> &'static str {
        let same = |entry: &&Entry| entry.1 == self;
        CALLS.iter().find(same).map_or("", |entry| entry.0)
    }
}

/// Name, call, types of the arguments, type of the result.
type Entry = (&'static str, ObjectCall, &'static [Type], Type);

const CALLS: &[Entry] = &{
    use ObjectCall::*;
    use Type::{Bytea, Int4, Int8, Oid, Text};
    [
        ("lo_creat", Creat, &[Int4] as &[Type], Oid),
        ("lo_create", Create, &[Oid], Oid),
        ("lo_open", Open, &[Oid, Int4], Int4),
        ("lo_close", Close, &[Int4], Int4),
        ("loread", Read, &[Int4, Int4], Bytea),
        ("lowrite", Write, &[Int4, Bytea], Int4),
        ("lo_lseek", Seek(false), &[Int4, Int4, Int4], Int4),
        ("lo_lseek64", Seek(true), &[Int4, Int8, Int4], Int8),
        ("lo_tell", Tell(false), &[Int4], Int4),
        ("lo_tell64", Tell(true), &[Int4], Int8),
        ("lo_truncate", Truncate, &[Int4, Int4], Int4),
        ("lo_truncate64", Truncate, &[Int4, Int8], Int4),
        ("lo_unlink", Unlink, &[Oid], Int4),
        ("lo_from_bytea", FromBytes, &[Oid, Bytea], Oid),
        ("lo_get", Get, &[Oid], Bytea),
        ("lo_get", Get, &[Oid, Int8, Int4], Bytea),
        ("lo_put", Put, &[Oid, Int8, Bytea], Text),
    ]
};

/// Whether a value may stand for an argument of this type without a cast.
fn fits(arg: &Expr, wanted: Type) -> bool {
    let ty = arg.ty();
    let known = match wanted {
        Type::Oid => ty == Type::Oid || ty.is_integer(),
        Type::Int8 => ty.is_integer(),
        Type::Int4 => matches!(ty, Type::Int2 | Type::Int4),
        _ => ty == wanted,
    };
    known || ty == Type::Unknown
}

impl Binder<'_> {
    /// The call of a function of large objects; `Err`: it is none, or has other arguments.
    pub(super) fn object_call(
        &mut self,
        name: &str,
        mut bound: Vec<Expr>,
    ) -> Result<Result<Expr, Vec<Expr>>, SqlError> {
        if !name.starts_with("lo") {
            return Ok(Err(bound));
        }
        if matches!(name, "lo_import" | "lo_export") {
            let hint = "The files would be those of one node. Let the client do it: psql has \
                        \\lo_import and \\lo_export.";
            return Err(unsupported(&format!("{name} on the server")).hint(hint));
        }
        let found = CALLS.iter().find(|(own, _, types, _)| {
            let mut pairs = bound.iter().zip(*types);
            *own == name && types.len() == bound.len() && pairs.all(|(arg, ty)| fits(arg, *ty))
        });
        let Some((_, call, types, result)) = found else {
            return Ok(Err(bound));
        };
        for (arg, ty) in bound.iter_mut().zip(*types) {
            *arg = self.explicit(arg.clone(), *ty)?;
            self.note(arg);
        }
        let use_of = match call.makes() {
            true => ObjectUse::Makes,
            false => ObjectUse::Calls,
        };
        self.objects = self.objects.max(use_of);
        Ok(Ok(
            self.volatile_call(CallKind::Object(*call, bound), *result)
        ))
    }
}

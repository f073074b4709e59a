//! The functions and operators by name and argument types.

mod catalog;
mod date;
mod listing;
mod number;
mod operator;
mod session;
mod text;

pub use catalog::{SIGNATURES, Signature};
pub use listing::{Form, Listed, Wanted, listing};
pub(super) use operator::{operators, prefix_operators};

use super::super::Func;
use base::Type;
use base::types::{ArrayKind, Reg};

/// What an argument may be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Arg {
    /// Of this type, by an implicit conversion if need be.
    Is(Type),
    /// Of any type.
    Any,
    /// Of the type that all `AnyElement` have and of which `AnyArray` is an array.
    AnyElement,
    /// An array.
    AnyArray,
    /// Of any type; passed in its text form.
    Output,
    /// `char`, passed with its blanks.
    Padded,
    /// As `Output`, but no array: for `||`, which appends arrays otherwise.
    NonArray,
}

/// The type of a result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Ret {
    Is(Type),
    /// An array of what `AnyElement` is.
    Array,
}

/// A list of argument types.
#[derive(Clone, Copy, Debug)]
enum Args {
    Any(&'static [Arg]),
    Plain(&'static [Type]),
}

/// One function for one list of argument types.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    name: &'static str,
    args: Args,
    /// The last argument may be repeated.
    variadic: bool,
    pub(super) ret: Ret,
    pub(super) func: Func,
}

impl Entry {
    /// Whether so many arguments may be given.
    pub(super) fn takes(&self, count: usize) -> bool {
        let declared = match self.args {
            Args::Any(args) => args.len(),
            Args::Plain(types) => types.len(),
        };
        count == declared || self.variadic && count > declared
    }

    /// Argument `i` of a call.
    pub(super) fn arg(&self, i: usize) -> Arg {
        match self.args {
            Args::Any(args) => args[i.min(args.len() - 1)],
            Args::Plain(types) => Arg::Is(types[i]),
        }
    }
}

/// An entry with a fixed number of arguments.
const fn f(name: &'static str, args: &'static [Arg], ret: Type, func: Func) -> Entry {
    Entry {
        name,
        args: Args::Any(args),
        variadic: false,
        ret: Ret::Is(ret),
        func,
    }
}

/// An entry whose last argument repeats.
const fn variadic(name: &'static str, args: &'static [Arg], ret: Type, func: Func) -> Entry {
    Entry {
        name,
        args: Args::Any(args),
        variadic: true,
        ret: Ret::Is(ret),
        func,
    }
}

/// An entry with a polymorphic result.
const fn poly(name: &'static str, args: &'static [Arg], ret: Ret, func: Func) -> Entry {
    Entry {
        name,
        args: Args::Any(args),
        variadic: false,
        ret,
        func,
    }
}

const BOOL: Arg = Arg::Is(Type::Bool);
const I2: Arg = Arg::Is(Type::Int2);
const I4: Arg = Arg::Is(Type::Int4);
const I8: Arg = Arg::Is(Type::Int8);
const F4: Arg = Arg::Is(Type::Float4);
const F8: Arg = Arg::Is(Type::Float8);
const NUM: Arg = Arg::Is(Type::Numeric(None));
const TXT: Arg = Arg::Is(Type::Text);
const CHAR: Arg = Arg::Is(Type::Char(0));
const PADDED: Arg = Arg::Padded;
const NAME: Arg = Arg::Is(Type::Name);
const BYTEA: Arg = Arg::Is(Type::Bytea);
const DATE: Arg = Arg::Is(Type::Date);
const TS: Arg = Arg::Is(Type::Timestamp(None));
const TSTZ: Arg = Arg::Is(Type::Timestamptz(None));
const SPAN: Arg = Arg::Is(Type::Interval);
const OID: Arg = Arg::Is(Type::Oid);
const XID: Arg = Arg::Is(Type::Xid);
const TID: Arg = Arg::Is(Type::Tid);
const UUID: Arg = Arg::Is(Type::Uuid);
const ICHAR: Arg = Arg::Is(Type::InternalChar);
const ELEM: Arg = Arg::AnyElement;
const ARRAY: Arg = Arg::AnyArray;

const NUMERIC: Type = Type::Numeric(None);
const TEXTS: Type = Type::Array(ArrayKind::Text);

/// All functions of a name.
pub(super) fn functions(name: &str) -> Vec<Entry> {
    let tables: [&'static [Entry]; 4] = [number::TABLE, text::TABLE, date::TABLE, session::TABLE];
    let mut found: Vec<Entry> = tables
        .into_iter()
        .flatten()
        .filter(|entry| entry.name == name)
        .cloned()
        .collect();
    for signature in SIGNATURES.iter().filter(|signature| signature.name == name) {
        for count in signature.required..=signature.args.len() {
            found.push(Entry {
                name: signature.name,
                args: Args::Plain(&signature.args[..count]),
                variadic: false,
                ret: Ret::Is(signature.returns),
                func: Func::Catalog(signature.name.into()),
            });
        }
    }
    found
}

/// All functions but those of the catalog.
#[cfg(test)]
pub(super) fn all() -> Vec<Entry> {
    let tables: [&'static [Entry]; 4] = [number::TABLE, text::TABLE, date::TABLE, session::TABLE];
    tables.into_iter().flatten().cloned().collect()
}

/// The type of a name that may be called like a function.
pub(super) fn type_named(name: &str) -> Option<Type> {
    Some(match name {
        "bool" => Type::Bool,
        "int2" => Type::Int2,
        "int4" => Type::Int4,
        "int8" => Type::Int8,
        "float4" => Type::Float4,
        "float8" => Type::Float8,
        "numeric" => NUMERIC,
        "text" => Type::Text,
        "varchar" => Type::Varchar(None),
        "bpchar" => Type::Char(0),
        "bytea" => Type::Bytea,
        "date" => Type::Date,
        "timestamp" => Type::Timestamp(None),
        "timestamptz" => Type::Timestamptz(None),
        "interval" => Type::Interval,
        "uuid" => Type::Uuid,
        "name" => Type::Name,
        "oid" => Type::Oid,
        "xid" => Type::Xid,
        "tid" => Type::Tid,
        _ => Type::Reg(Reg::ALL.into_iter().find(|reg| reg.name() == name)?),
    })
}

//! The functions and operators by name and argument types.

mod bits;
mod catalog;
mod date;
mod json;
mod listing;
mod network;
mod number;
mod operator;
mod range;
mod session;
mod text;

pub use catalog::{SIGNATURES, Signature};
pub use listing::{Form, Listed, Wanted, listing};
pub(super) use operator::{operators, prefix_operators};

use super::super::Func;
use base::Type;
use base::types::ArrayKind;

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
    /// A range.
    AnyRange,
    /// A multirange, of ranges as `AnyRange` is one.
    AnyMultirange,
    /// A value that may be a bound of `AnyRange` and `AnyMultirange`.
    Bound,
}

/// The type of a result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Ret {
    Is(Type),
    /// An array of what `AnyElement` is.
    Array,
    /// What `AnyRange` is, or `AnyMultirange` is made of.
    Range,
    /// A multirange of it.
    Multirange,
    /// A bound of it.
    Bound,
}

/// A list of argument types and the result for it.
#[derive(Debug)]
struct Overload {
    args: &'static [Arg],
    /// The last argument may be repeated.
    variadic: bool,
    ret: Ret,
}

/// A function or operator under all its names, with all its argument lists.
#[derive(Debug)]
struct Function {
    names: &'static [&'static str],
    func: Func,
    overloads: &'static [Overload],
}

impl Function {
    /// An entry for each list of arguments.
    fn entries(&self) -> impl Iterator<Item = Entry> {
        self.overloads.iter().map(|overload| Entry {
            args: Args::Any(overload.args),
            variadic: overload.variadic,
            ret: overload.ret,
            func: self.func.clone(),
        })
    }
}

/// Argument lists with their results: `(I4, I4) I4`. An argument after a semicolon may be repeated.
macro_rules! overloads {
    ($(($($arg:ident),* $(; $more:ident)?) $ret:ident),+) => {
        &[$(Overload {
            args: &[$($arg,)* $($more)?],
            variadic: !<[Arg]>::is_empty(&[$($more)?]),
            ret: returned($ret),
        }),+]
    };
}

/// A row per function: its names, what computes it, its argument lists with their results.
macro_rules! table {
    ($($($name:literal)+: $func:expr => $($overload:tt $ret:ident),+;)*) => {
        &[$(Function {
            names: &[$($name),+],
            func: $func,
            overloads: overloads!($($overload $ret),+),
        }),*]
    };
}
use {overloads, table};

/// The result that an argument's name stands for.
const fn returned(arg: Arg) -> Ret {
    match arg {
        Arg::Is(ty) => Ret::Is(ty),
        Arg::AnyArray => Ret::Array,
        Arg::AnyRange => Ret::Range,
        Arg::AnyMultirange => Ret::Multirange,
        Arg::Bound => Ret::Bound,
        _ => panic!("no type of a result"),
    }
}

/// One function for one list of argument types.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    args: Args,
    /// The last argument may be repeated.
    variadic: bool,
    pub(super) ret: Ret,
    pub(super) func: Func,
}

/// A list of argument types.
#[derive(Clone, Debug)]
enum Args {
    Any(&'static [Arg]),
    Plain(&'static [Type]),
    Own(Vec<Type>),
}

impl Entry {
    /// A function of users that takes these types.
    pub(super) fn of_users(types: Vec<Type>) -> Entry {
        Entry {
            args: Args::Own(types),
            variadic: false,
            ret: Ret::Is(Type::Unknown),
            func: Func::NumNonNulls,
        }
    }

    /// Number of arguments, a repeated one counted once.
    fn declared(&self) -> usize {
        match &self.args {
            Args::Any(args) => args.len(),
            Args::Plain(types) => types.len(),
            Args::Own(types) => types.len(),
        }
    }

    /// Whether `count` arguments may be given.
    pub(super) fn takes(&self, count: usize) -> bool {
        count == self.declared() || self.variadic && count > self.declared()
    }

    /// Argument `i` of a call.
    pub(super) fn arg(&self, i: usize) -> Arg {
        match &self.args {
            Args::Any(args) => args[i.min(args.len() - 1)],
            Args::Plain(types) => Arg::Is(types[i]),
            Args::Own(types) => Arg::Is(types[i]),
        }
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
const TIME: Arg = Arg::Is(Type::Time(None));
const TIMETZ: Arg = Arg::Is(Type::Timetz(None));
const BIT: Arg = Arg::Is(Type::Bit(None));
const VARBIT: Arg = Arg::Is(Type::Varbit(None));
const TS: Arg = Arg::Is(Type::Timestamp(None));
const TSTZ: Arg = Arg::Is(Type::Timestamptz(None));
const SPAN: Arg = Arg::Is(Type::Interval(None));
const OID: Arg = Arg::Is(Type::Oid);
const XID: Arg = Arg::Is(Type::Xid);
const TID: Arg = Arg::Is(Type::Tid);
const INET: Arg = Arg::Is(Type::Inet);
const MAC: Arg = Arg::Is(Type::Macaddr);
const CIDR: Arg = Arg::Is(Type::Cidr);
const UUID: Arg = Arg::Is(Type::Uuid);
const ICHAR: Arg = Arg::Is(Type::InternalChar);
const TEXTS: Arg = Arg::Is(Type::Array(ArrayKind::Text));
const INTS: Arg = Arg::Is(Type::Array(ArrayKind::Int4));
const NAMES: Arg = Arg::Is(Type::Array(ArrayKind::Name));
const JSONB: Arg = Arg::Is(Type::Jsonb);
const ANY: Arg = Arg::Any;
const ELEM: Arg = Arg::AnyElement;
const ARRAY: Arg = Arg::AnyArray;
const OUTPUT: Arg = Arg::Output;
const NON_ARRAY: Arg = Arg::NonArray;
const RANGE: Arg = Arg::AnyRange;
const RANGES: Arg = Arg::AnyMultirange;
const BOUND: Arg = Arg::Bound;

/// All functions but those of the catalog.
fn plain_functions() -> impl Iterator<Item = &'static Function> {
    let tables = [
        number::TABLE,
        text::TABLE,
        date::TABLE,
        session::TABLE,
        json::TABLE,
        network::TABLE,
        bits::TABLE,
        range::TABLE,
    ];
    tables.into_iter().flatten()
}

/// What `all` has under a name.
fn named(all: impl Iterator<Item = &'static Function>, name: &str) -> Vec<Entry> {
    all.filter(|function| function.names.contains(&name))
        .flat_map(Function::entries)
        .collect()
}

/// All functions of a name.
pub(super) fn functions(name: &str) -> Vec<Entry> {
    let mut found = named(plain_functions(), name);
    for signature in SIGNATURES.iter().filter(|signature| signature.name == name) {
        for count in signature.required..=signature.args.len() {
            found.push(Entry {
                args: Args::Plain(&signature.args[..count]),
                variadic: false,
                ret: Ret::Is(signature.returns),
                func: Func::Catalog(signature.name.into()),
            });
        }
    }
    found
}

/// The entries of all functions but those of the catalog.
#[cfg(test)]
pub(super) fn all() -> Vec<Entry> {
    plain_functions().flat_map(Function::entries).collect()
}

/// The type of a name that may be called like a function.
pub(super) fn type_named(name: &str) -> Option<Type> {
    Type::named(name).filter(|ty| *ty != Type::InternalChar)
}

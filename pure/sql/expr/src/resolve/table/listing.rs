//! What exists, for tests that try all of it.

use super::*;
use base::RangeKind;

/// How a function is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// `name(a, b)`
    Function,
    /// `a name b`
    Infix,
    /// `name a`
    Prefix,
}

/// What an argument may be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wanted {
    /// Of this type.
    Is(Type),
    /// Of any type.
    Any,
    /// Of the element type of the arguments that are `Array`.
    Element,
    /// An array.
    Array,
}

/// One function or operator for one list of argument types.
#[derive(Clone, Debug)]
pub struct Listed {
    /// Name or symbol.
    pub name: &'static str,
    /// How it is written.
    pub form: Form,
    /// What it takes.
    pub args: Vec<Wanted>,
    /// The last argument may be repeated.
    pub variadic: bool,
    /// What it gives; `None`: an array of what `Element` is.
    pub returns: Option<Type>,
}

/// Symbols of the operators with two operands.
const INFIX: [&str; 43] = [
    "=", "<>", "<", "<=", ">", ">=", "~~", "!~~", "~~*", "!~~*", "~", "~*", "!~", "!~*", "+", "-",
    "*", "/", "%", "^", "&", "|", "#", "<<", ">>", "||", "@>", "<@", "&&", "^@", "->", "->>", "#>",
    "#>>", "?", "?|", "?&", "#-", "<<=", ">>=", "&<", "&>", "-|-",
];
/// Symbols of the operators with one operand.
const PREFIX: [&str; 6] = ["-", "+", "@", "~", "|/", "||/"];

/// All scalar functions and operators, but those that look into the catalog.
pub fn listing() -> Vec<Listed> {
    let mut all = Vec::new();
    for function in plain_functions() {
        for name in function.names {
            let entries = function.entries();
            all.extend(entries.flat_map(|entry| listed(name, Form::Function, &entry)));
        }
    }
    for (symbols, form) in [(&INFIX[..], Form::Infix), (&PREFIX[..], Form::Prefix)] {
        for symbol in symbols {
            let entries = match form {
                Form::Prefix => prefix_operators(symbol),
                Form::Infix | Form::Function => operators(symbol),
            };
            all.extend(entries.iter().flat_map(|entry| listed(symbol, form, entry)));
        }
    }
    all
}

/// The entry; one for each kind of ranges if it takes any.
fn listed(name: &'static str, form: Form, entry: &Entry) -> Vec<Listed> {
    let of_ranges = |arg| matches!(arg, Arg::AnyRange | Arg::AnyMultirange);
    let kinds = match (0..entry.declared()).any(|at| of_ranges(entry.arg(at))) {
        true => &RangeKind::ALL[..],
        false => &RangeKind::ALL[..1],
    };
    let all = kinds.iter().map(|kind| of_kind(name, form, entry, *kind));
    all.collect()
}

fn of_kind(name: &'static str, form: Form, entry: &Entry, kind: RangeKind) -> Listed {
    let wanted = |arg| match arg {
        Arg::AnyRange => Wanted::Is(Type::Range(kind)),
        Arg::AnyMultirange => Wanted::Is(Type::Multirange(kind)),
        Arg::Bound => Wanted::Is(kind.bound()),
        Arg::Is(ty) => Wanted::Is(ty),
        Arg::Padded => Wanted::Is(Type::Char(0)),
        Arg::Any | Arg::Output | Arg::NonArray => Wanted::Any,
        Arg::AnyElement => Wanted::Element,
        Arg::AnyArray => Wanted::Array,
    };
    Listed {
        name,
        form,
        args: (0..entry.declared())
            .map(|at| wanted(entry.arg(at)))
            .collect(),
        variadic: entry.variadic,
        returns: match entry.ret {
            Ret::Is(ty) => Some(ty),
            Ret::Array => None,
            Ret::Range => Some(Type::Range(kind)),
            Ret::Multirange => Some(Type::Multirange(kind)),
            Ret::Bound => Some(kind.bound()),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_symbol_is_an_operator() {
        for symbol in INFIX {
            assert!(!operators(symbol).is_empty(), "{symbol}");
        }
        for symbol in PREFIX {
            assert!(!prefix_operators(symbol).is_empty(), "{symbol}");
        }
        assert!(listing().len() > 300);
    }
}

//! The choice among functions or operators of one name.

use super::Context;
use super::coerce::{can_coerce, common_type, is_preferred, same_type};
use super::table::{Arg, Entry};
use base::Type;

/// What [`choose`] found.
pub(super) enum Choice<'a> {
    None,
    One(&'a Entry),
    Many,
}

/// Chooses the entry for arguments of these types, by PostgreSQL's steps.
pub(super) fn choose<'a>(entries: &[&'a Entry], types: &[Type]) -> Choice<'a> {
    let fitting: Vec<&'a Entry> = entries
        .iter()
        .copied()
        .filter(|entry| entry.takes(types.len()))
        .collect();
    if let Some(exact) = exact_match(&fitting, types) {
        return Choice::One(exact);
    }
    let mut left: Vec<&'a Entry> = fitting
        .into_iter()
        .filter(|entry| takes_types(entry, types))
        .collect();
    for step in 0..4 {
        match (left.as_slice(), step) {
            ([], _) => return Choice::None,
            ([one], _) => return Choice::One(one),
            (_, 0) => most_exact(&mut left, types),
            (_, 1) => most_preferred(&mut left, types),
            (_, 2) => unknown_by_category(&mut left, types),
            (_, _) => unknown_as_known(&mut left, types),
        }
    }
    match left.as_slice() {
        [] => Choice::None,
        [one] => Choice::One(one),
        _ => Choice::Many,
    }
}

/// The entry that takes exactly these types; one of two arguments that is unknown counts as being
/// of the other's type.
fn exact_match<'a>(entries: &[&'a Entry], types: &[Type]) -> Option<&'a Entry> {
    let types: Vec<Type> = match *types {
        [Type::Unknown, right] => vec![right, right],
        [left, Type::Unknown] => vec![left, left],
        _ => types.to_vec(),
    };
    let exact = |entry: &&&'a Entry| {
        types
            .iter()
            .enumerate()
            .all(|(i, ty)| is_exactly(entry.arg(i), *ty))
    };
    entries.iter().find(exact).copied()
}

fn is_exactly(arg: Arg, ty: Type) -> bool {
    match arg {
        Arg::Is(wanted) => same_type(wanted, ty),
        Arg::Padded => matches!(ty, Type::Char(_)),
        Arg::Any
        | Arg::AnyElement
        | Arg::AnyArray
        | Arg::Output
        | Arg::NonArray
        | Arg::AnyRange
        | Arg::AnyMultirange
        | Arg::Bound => false,
    }
}

fn accepts(arg: Arg, ty: Type) -> bool {
    match arg {
        Arg::Is(wanted) => can_coerce(ty, wanted, Context::Implicit),
        Arg::Padded => can_coerce(ty, Type::Char(0), Context::Implicit),
        Arg::Any | Arg::AnyElement | Arg::Output | Arg::Bound => true,
        Arg::AnyRange => matches!(ty, Type::Range(_) | Type::Unknown),
        Arg::AnyMultirange => matches!(ty, Type::Multirange(_) | Type::Unknown),
        Arg::NonArray => !matches!(ty, Type::Array(_)),
        Arg::AnyArray => matches!(ty, Type::Array(_) | Type::Unknown),
    }
}

/// Whether every argument can be converted, and the polymorphic ones agree.
fn takes_types(entry: &Entry, types: &[Type]) -> bool {
    if !types
        .iter()
        .enumerate()
        .all(|(i, ty)| accepts(entry.arg(i), *ty))
    {
        return false;
    }
    let of = |wanted: Arg| {
        let pairs = types
            .iter()
            .enumerate()
            .filter(move |(i, _)| entry.arg(*i) == wanted);
        pairs.map(|(_, ty)| *ty).filter(|ty| *ty != Type::Unknown)
    };
    let arrays = types
        .iter()
        .enumerate()
        .any(|(i, _)| entry.arg(i) == Arg::AnyArray);
    let elements = of(Arg::AnyArray)
        .filter_map(Type::element)
        .chain(of(Arg::AnyElement));
    let elements: Vec<Type> = elements.collect();
    // There are no arrays of arrays.
    let nested = arrays && elements.iter().any(|ty| ty.element().is_some());
    !nested && common_type(&elements).is_ok() && ranges_agree(entry, types)
}

/// Whether all ranges are of one kind, and what may be a bound of them is of its very type.
fn ranges_agree(entry: &Entry, types: &[Type]) -> bool {
    let ranges = types.iter().enumerate().filter(|(i, _)| {
        let arg = entry.arg(*i);
        matches!(arg, Arg::AnyRange | Arg::AnyMultirange)
    });
    let mut kinds = ranges.filter_map(|(_, ty)| ty.range_kind());
    let Some(kind) = kinds.next() else {
        return true;
    };
    let fits = |(i, ty): (usize, &Type)| {
        entry.arg(i) != Arg::Bound || *ty == Type::Unknown || same_type(*ty, kind.bound())
    };
    kinds.all(|other| other == kind) && types.iter().enumerate().all(fits)
}

/// Keeps the entries with the highest score, if any scores.
fn keep_best(left: &mut Vec<&Entry>, score: impl Fn(&Entry) -> usize) {
    let best = left.iter().map(|entry| score(entry)).max().unwrap_or(0);
    left.retain(|entry| score(entry) == best);
}

fn most_exact(left: &mut Vec<&Entry>, types: &[Type]) {
    keep_best(left, |entry| {
        types
            .iter()
            .enumerate()
            .filter(|(i, ty)| is_exactly(entry.arg(*i), **ty))
            .count()
    });
}

fn most_preferred(left: &mut Vec<&Entry>, types: &[Type]) {
    keep_best(left, |entry| {
        let counts = |(i, ty): (usize, &Type)| {
            *ty != Type::Unknown
                && match entry.arg(i) {
                    Arg::Is(wanted) => {
                        same_type(wanted, *ty)
                            || wanted.category() == ty.category() && is_preferred(wanted)
                    }
                    _ => false,
                }
        };
        types
            .iter()
            .enumerate()
            .filter(|pair| counts(*pair))
            .count()
    });
}

fn category_of(arg: Arg) -> char {
    match arg {
        Arg::Is(ty) => ty.category(),
        Arg::Padded => 'S',
        Arg::Any
        | Arg::AnyElement
        | Arg::AnyArray
        | Arg::Output
        | Arg::NonArray
        | Arg::AnyRange
        | Arg::AnyMultirange
        | Arg::Bound => 'P',
    }
}

/// Gives each unknown argument the category that the entries agree on, text before all others.
fn unknown_by_category(left: &mut Vec<&Entry>, types: &[Type]) {
    let mut wanted = Vec::new();
    for (i, _) in types
        .iter()
        .enumerate()
        .filter(|(_, ty)| **ty == Type::Unknown)
    {
        let mut categories = left.iter().map(|entry| category_of(entry.arg(i)));
        let first = categories.next().unwrap_or('X');
        let category = if left.iter().any(|entry| category_of(entry.arg(i)) == 'S') {
            'S'
        } else if categories.all(|category| category == first) {
            first
        } else {
            return;
        };
        let preferred = left.iter().any(|entry| {
            matches!(entry.arg(i), Arg::Is(ty) if ty.category() == category && is_preferred(ty))
        });
        wanted.push((i, category, preferred));
    }
    let fits = |entry: &&Entry| {
        wanted.iter().all(|(i, category, preferred)| {
            category_of(entry.arg(*i)) == *category
                && (!preferred || matches!(entry.arg(*i), Arg::Is(ty) if is_preferred(ty)))
        })
    };
    if left.iter().any(fits) {
        left.retain(fits);
    }
}

/// If the known arguments are of one type, takes the unknown ones to be of it too.
fn unknown_as_known(left: &mut Vec<&Entry>, types: &[Type]) {
    let mut known = types.iter().copied().filter(|ty| *ty != Type::Unknown);
    let Some(first) = known.next() else {
        return;
    };
    if !known.all(|ty| same_type(ty, first)) {
        return;
    }
    let assumed = vec![first; types.len()];
    let fits = |entry: &&Entry| takes_types(entry, &assumed);
    if left.iter().filter(|entry| fits(entry)).count() == 1 {
        left.retain(fits);
    }
}

//! GROUPING SETS, ROLLUP and CUBE: how they are read, and the sets of keys that they mean.
//!
//! The library knows them in simple forms only. Here they are expressions, which the binder refuses
//! outside of GROUP BY: `GROUPING SETS (...)` is a tree of the library with one expression for each
//! of its items, `()` one without any, ROLLUP and CUBE are calls of functions of that name, and
//! `DISTINCT` before the first item is a ROLLUP around it.

use super::expression::{Expressions, Parsed};
use base::{SqlError, SqlState};
use sqlparser::ast::{
    Expr as Ast, Function, FunctionArg, FunctionArgExpr, FunctionArguments, ObjectNamePart,
};
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::Token;

/// Sets of keys of one GROUP BY at most, as in PostgreSQL.
const SETS_MAX: usize = 4096;
/// Keys of a CUBE at most.
const CUBE_MAX: usize = 12;

/// `()`
pub(super) fn no_keys() -> Ast {
    Ast::GroupingSets(Vec::new())
}

impl Expressions<'_, '_> {
    /// `GROUPING SETS (item, ...)`
    pub(super) fn grouping_sets(&mut self) -> Parsed {
        self.skip();
        self.skip();
        self.expect_token(&Token::LParen)?;
        let items = self.list()?;
        self.expect_token(&Token::RParen)?;
        let items = items.into_iter().map(|item| vec![item]);
        Ok(Ast::GroupingSets(items.collect()))
    }

    /// Whether the words before are GROUP BY.
    pub(super) fn is_behind_group_by(&self) -> bool {
        let at = self.parser.index();
        let word = |back: usize, wanted: Keyword| {
            at >= back
                && matches!(&self.parser.token_at(at - back).token,
                    Token::Word(word) if word.keyword == wanted)
        };
        word(1, Keyword::BY) && word(2, Keyword::GROUP)
    }

    /// `DISTINCT item`: the first of GROUP BY.
    pub(super) fn distinct_sets(&mut self) -> Parsed {
        self.skip();
        Ok(Ast::Rollup(vec![vec![self.whole()?]]))
    }
}

/// A set of keys, by their numbers.
pub type Set = Vec<usize>;

/// The keys of a GROUP BY, and the sets of them by which rows are grouped.
pub struct Grouping<'a> {
    /// Each expression once.
    pub keys: Vec<&'a Ast>,
    /// `None`: rows are grouped by all keys, once.
    pub sets: Option<Vec<Set>>,
}

/// What the items of GROUP BY mean.
///
/// # Errors
/// 54001 for too many sets, 54011 for a CUBE of too many keys.
pub fn grouping(items: &[Ast]) -> Result<Grouping<'_>, SqlError> {
    let mut keys = Vec::new();
    let (first, distinct) = match items.first() {
        Some(Ast::Rollup(inner)) => (inner.first().and_then(|item| item.first()), true),
        first => (first, false),
    };
    let items: Vec<&Ast> = first.into_iter().chain(items.iter().skip(1)).collect();
    if !distinct && items.iter().all(|item| Item::of(item).is_none()) {
        let keys = items.into_iter().flat_map(|item| match item {
            Ast::Tuple(parts) => parts.as_slice(),
            single => core::slice::from_ref(single),
        });
        return Ok(Grouping {
            keys: keys.collect(),
            sets: None,
        });
    }
    let mut all: Vec<Set> = vec![Vec::new()];
    for item in items {
        let sets = sets_of(item, &mut keys)?;
        if all.len() * sets.len() > SETS_MAX {
            let message = format!("too many grouping sets present (maximum {SETS_MAX})");
            return Err(SqlError::new(SqlState::STATEMENT_TOO_COMPLEX, message));
        }
        let product = all.iter().flat_map(|left| {
            sets.iter().map(move |right| {
                let mut set = left.clone();
                set.extend(right);
                set.sort_unstable();
                set.dedup();
                set
            })
        });
        all = product.collect();
    }
    if distinct {
        let mut seen: Vec<Set> = Vec::new();
        all.retain(|set| {
            let new = !seen.contains(set);
            seen.extend(new.then(|| set.clone()));
            new
        });
    }
    Ok(Grouping {
        keys,
        sets: Some(all),
    })
}

/// An item of GROUP BY that is no key.
enum Item<'a> {
    Sets(&'a [Vec<Ast>]),
    Rollup(Vec<&'a Ast>),
    Cube(Vec<&'a Ast>),
}

impl<'a> Item<'a> {
    fn of(item: &'a Ast) -> Option<Item<'a>> {
        match item {
            Ast::GroupingSets(items) => Some(Item::Sets(items)),
            Ast::Function(function) => {
                let args = arguments(function)?;
                match name(function)? {
                    name if name.eq_ignore_ascii_case("rollup") => Some(Item::Rollup(args)),
                    name if name.eq_ignore_ascii_case("cube") => Some(Item::Cube(args)),
                    _ => None,
                }
            }
            _ => None,
        }
    }
}

/// The name of a function without quotes and schema.
fn name(function: &Function) -> Option<&str> {
    match function.name.0.as_slice() {
        [ObjectNamePart::Identifier(name)] if name.quote_style.is_none() => Some(&name.value),
        _ => None,
    }
}

fn arguments(function: &Function) -> Option<Vec<&Ast>> {
    let FunctionArguments::List(list) = &function.args else {
        return None;
    };
    let args = list.args.iter().map(|arg| match arg {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(arg)) => Some(arg),
        _ => None,
    });
    args.collect()
}

/// The numbers of the keys that an item of ROLLUP or CUBE, or a plain item, has.
fn keys_of<'a>(item: &'a Ast, keys: &mut Vec<&'a Ast>) -> Set {
    let parts: &[Ast] = match item {
        Ast::Tuple(parts) => parts,
        Ast::GroupingSets(none) if none.is_empty() => &[],
        Ast::Nested(inner) => return keys_of(inner, keys),
        single => core::slice::from_ref(single),
    };
    let numbers = parts.iter().map(|part| {
        keys.iter()
            .position(|known| *known == part)
            .unwrap_or_else(|| {
                keys.push(part);
                keys.len() - 1
            })
    });
    numbers.collect()
}

fn sets_of<'a>(item: &'a Ast, keys: &mut Vec<&'a Ast>) -> Result<Vec<Set>, SqlError> {
    let union = |parts: &[Set]| parts.concat();
    match Item::of(item) {
        None => Ok(vec![keys_of(item, keys)]),
        Some(Item::Sets([])) => Ok(vec![Vec::new()]),
        Some(Item::Sets(items)) => {
            let mut all = Vec::new();
            for item in items.iter().flatten() {
                all.extend(sets_of(item, keys)?);
                if all.len() > SETS_MAX {
                    let message = format!("too many grouping sets present (maximum {SETS_MAX})");
                    return Err(SqlError::new(SqlState::STATEMENT_TOO_COMPLEX, message));
                }
            }
            Ok(all)
        }
        Some(Item::Rollup(items)) => {
            let parts: Vec<Set> = items.into_iter().map(|item| keys_of(item, keys)).collect();
            Ok((0..=parts.len())
                .rev()
                .map(|end| union(&parts[..end]))
                .collect())
        }
        Some(Item::Cube(items)) => {
            if items.len() > CUBE_MAX {
                let message = format!("CUBE is limited to {CUBE_MAX} elements");
                return Err(SqlError::new(SqlState::TOO_MANY_COLUMNS, message));
            }
            let parts: Vec<Set> = items.into_iter().map(|item| keys_of(item, keys)).collect();
            let subsets = (0..1u32 << parts.len()).rev().map(|bits| {
                let chosen = parts.iter().enumerate();
                let chosen = chosen.filter(|(at, _)| bits >> (parts.len() - 1 - at) & 1 == 1);
                chosen.flat_map(|(_, part)| part.iter().copied()).collect()
            });
            Ok(subsets.collect())
        }
    }
}

//! pg_get_keywords: the words that PostgreSQL's grammar knows, by how reserved they are.

use super::*;
use ::functions::keywords::{CATEGORIES, Category, is_bare_label};

pub(super) fn rows(_: &CatalogCx<'_>, out: &mut RowBatch) {
    let of = |(category, words): (Category, &'static [&'static str])| {
        words.iter().map(move |word| (*word, category))
    };
    let mut all: Vec<(&str, Category)> = CATEGORIES.into_iter().flat_map(of).collect();
    all.sort_unstable_by_key(|(word, _)| *word);
    for (word, category) in all {
        let (code, description) = match category {
            Category::Unreserved => ('U', "unreserved"),
            Category::NoFunction => ('C', "unreserved (cannot be function or type name)"),
            Category::FunctionOrType => ('T', "reserved (can be function or type name)"),
            Category::Reserved => ('R', "reserved"),
        };
        let bare = is_bare_label(word);
        let label = if bare {
            "can be bare label"
        } else {
            "requires AS"
        };
        out.push([
            text(word),
            letter(code),
            flag(bare),
            text(description),
            text(label),
        ]);
    }
}

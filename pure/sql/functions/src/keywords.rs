//! The words that PostgreSQL's grammar knows, by how reserved they are: `kwlist.h` of release 15.
//!
//! The parser, quote_ident, `pg_get_keywords` and the programs around the server all ask here.

use std::borrow::Cow;

/// What an unquoted word cannot name, as `pg_get_keywords` sorts words.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Category {
    /// It names everything.
    Unreserved,
    /// It names columns and tables, but neither functions nor types.
    NoFunction,
    /// It names functions and types only.
    FunctionOrType,
    /// It names nothing.
    Reserved,
}

/// Each category with its words, sorted.
pub static CATEGORIES: [(Category, &[&str]); 4] = [
    (Category::Unreserved, &UNRESERVED),
    (Category::NoFunction, &NO_FUNCTION),
    (Category::FunctionOrType, &FUNCTION_OR_TYPE),
    (Category::Reserved, &RESERVED),
];

/// Whether the unquoted word cannot be the name of a column or table.
pub fn is_reserved(word: &str) -> bool {
    contains(&RESERVED, word) || contains(&FUNCTION_OR_TYPE, word)
}

/// Whether the unquoted word can name nothing.
pub fn names_nothing(word: &str) -> bool {
    contains(&RESERVED, word)
}

/// Whether the unquoted word names functions and types, though no columns.
pub fn may_name_function(word: &str) -> bool {
    contains(&FUNCTION_OR_TYPE, word)
}

/// Whether the unquoted word cannot be the name of a function.
pub fn no_function(word: &str) -> bool {
    contains(&RESERVED, word) || contains(&NO_FUNCTION, word)
}

/// Whether quote_ident quotes a name that is this word.
fn must_quote(word: &str) -> bool {
    no_function(word) || may_name_function(word)
}

/// A name as an identifier: in quotes if it has to be.
pub fn quote_ident(name: &str) -> Cow<'_, str> {
    let mut bytes = name.bytes();
    let first_ok = bytes
        .next()
        .is_some_and(|byte| byte.is_ascii_lowercase() || byte == b'_');
    let inside = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    if first_ok && bytes.all(inside) && !must_quote(name) {
        return Cow::Borrowed(name);
    }
    Cow::Owned(format!("\"{}\"", name.replace('"', "\"\"")))
}

/// Whether a word behind an expression is a column label without AS.
pub fn is_bare_label(word: &str) -> bool {
    !contains(&NEEDS_AS, word)
}

/// Whether a sorted list has the word, however its letters are written.
pub fn contains(sorted: &[&str], word: &str) -> bool {
    let word = word.to_ascii_lowercase();
    sorted.binary_search(&word.as_str()).is_ok()
}

/// The words of a text, which are `N`, with single blanks between them.
pub const fn list<const N: usize>(text: &'static str) -> [&'static str; N] {
    let mut words = [""; N];
    let mut rest = text;
    let mut at = 0;
    while at < N {
        let mut end = 0;
        while end < rest.len() && rest.as_bytes()[end] != b' ' {
            end += 1;
        }
        let (word, behind) = rest.split_at(end);
        words[at] = word;
        at += 1;
        rest = if behind.is_empty() {
            behind
        } else {
            behind.split_at(1).1
        };
    }
    assert!(rest.is_empty() && (N == 0 || !words[N - 1].is_empty()));
    words
}

/// Words that name everything.
static UNRESERVED: [&str; 309] = list(
    "\
     abort absolute access action add admin after aggregate also alter always asensitive \
     assertion assignment at atomic attach attribute backward before begin breadth by cache \
     call called cascade cascaded catalog chain characteristics checkpoint class close cluster \
     columns comment comments commit committed compression configuration conflict connection \
     constraints content continue conversion copy cost csv cube current cursor cycle data \
     database day deallocate declare defaults deferred definer delete delimiter delimiters \
     depends depth detach dictionary disable discard document domain double drop each enable \
     encoding encrypted enum escape event exclude excluding exclusive execute explain \
     expression extension external family filter finalize first following force forward \
     function functions generated global granted groups handler header hold hour identity if \
     immediate immutable implicit import include including increment index indexes inherit \
     inherits inline input insensitive insert instead invoker isolation key label language \
     large last leakproof level listen load local location lock locked logged mapping match \
     matched materialized maxvalue merge method minute minvalue mode month move name names new \
     next nfc nfd nfkc nfkd no normalized nothing notify nowait nulls object of off oids old \
     operator option options ordinality others over overriding owned owner parallel parameter \
     parser partial partition passing password plans policy preceding prepare prepared preserve \
     prior privileges procedural procedure procedures program publication quote range read \
     reassign recheck recursive ref referencing refresh reindex relative release rename \
     repeatable replace replica reset restart restrict return returns revoke role rollback \
     rollup routine routines rows rule savepoint schema schemas scroll search second security \
     sequence sequences serializable server session set sets share show simple skip snapshot \
     sql stable standalone start statement statistics stdin stdout storage stored strict strip \
     subscription support sysid system tables tablespace temp template temporary text ties \
     transaction transform trigger truncate trusted type types uescape unbounded uncommitted \
     unencrypted unknown unlisten unlogged until update vacuum valid validate validator value \
     varying version view views volatile whitespace within without work wrapper write xml year \
     yes zone",
);

/// Words that name columns, but no functions.
static NO_FUNCTION: [&str; 51] = list(
    "\
     between bigint bit boolean char character coalesce dec decimal exists extract float \
     greatest grouping inout int integer interval least national nchar none normalize nullif \
     numeric out overlay position precision real row setof smallint substring time timestamp \
     treat trim values varchar xmlattributes xmlconcat xmlelement xmlexists xmlforest \
     xmlnamespaces xmlparse xmlpi xmlroot xmlserialize xmltable",
);

/// Reserved words that name functions and types.
static FUNCTION_OR_TYPE: [&str; 23] = list(
    "\
     authorization binary collation concurrently cross current_schema freeze full ilike inner \
     is isnull join left like natural notnull outer overlaps right similar tablesample verbose",
);

/// Reserved words.
static RESERVED: [&str; 77] = list(
    "\
     all analyse analyze and any array as asc asymmetric both case cast check collate column \
     constraint create current_catalog current_date current_role current_time current_timestamp \
     current_user default deferrable desc distinct do else end except false fetch for foreign \
     from grant group having in initially intersect into lateral leading limit localtime \
     localtimestamp not null offset on only or order placing primary references returning \
     select session_user some symmetric table then to trailing true union unique user using \
     variadic when where window with",
);

/// Words that are column labels only behind AS.
static NEEDS_AS: [&str; 39] = list(
    "\
     array as char character create day except fetch filter for from grant group having hour \
     intersect into isnull limit minute month notnull offset on order over overlaps precision \
     returning second to union varying where window with within without year",
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_sorted() {
        for (category, words) in CATEGORIES {
            assert!(words.is_sorted(), "{category:?}");
        }
        assert!(NEEDS_AS.is_sorted());
    }

    #[test]
    fn words_of_every_category_but_the_first_are_quoted() {
        for (category, words) in CATEGORIES {
            let is_quoted = category != Category::Unreserved;
            assert!(
                words.iter().all(|word| must_quote(word) == is_quoted),
                "{category:?}"
            );
        }
        assert!(!must_quote("account"));
    }
}

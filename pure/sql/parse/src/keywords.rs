//! Which words are keywords, and of what kind.
//!
//! The library treats hundreds of words of other databases specially (TOP, QUALIFY, SORT BY ...).
//! A word that PostgreSQL's grammar does not know is a plain name to it, too: its token carries no
//! keyword, so the library takes none of those clauses.

use functions::keywords::{contains, list};
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::Token;

/// The keyword that an unquoted word is to the library.
pub(super) fn keyword(word: &str) -> Keyword {
    if !contains(&KNOWN, word) {
        return Keyword::NoKeyword;
    }
    let Token::Word(word) = Token::make_word(word, None) else {
        unreachable!("a word becomes a word")
    };
    word.keyword
}

/// The keywords of PostgreSQL that the library knows, without those that it takes for clauses of
/// other databases (CLUSTER BY, FOR XML, GLOBAL JOIN, INSERT LOCAL, LATERAL VIEW, UNION BY NAME),
/// and with the names of types for which it has types of their own.
static KNOWN: [&str; 375] = list(
    "\
     abort absolute access action add admin after all alter always analyze and any array as asc \
     asensitive asymmetric at atomic attach authorization backward before begin between bigint \
     binary bit bool boolean both by bytea cache call called cascade cascaded case cast catalog \
     chain char character check close coalesce collate collation column columns comment commit \
     committed compression concurrently conflict connection constraint continue copy create \
     cross csv cube current current_catalog current_date current_role current_schema \
     current_time current_timestamp current_user cursor cycle data database date day deallocate \
     dec decimal declare default deferrable deferred definer delete delimiter desc detach \
     disable discard distinct do double drop each else enable encoding end enum escape event \
     except exclusive execute exists explain extension external extract false fetch filter \
     first float float4 float8 following for force foreign forward freeze from full function \
     functions generated grant granted group grouping groups having header hold hour identity \
     if ilike immediate immutable import in include increment index inherit initially inner \
     inout input insensitive insert instead int int2 int4 int8 integer intersect interval into \
     invoker is isolation join key language large last lateral leading left level like limit \
     listen load localtime localtimestamp location lock locked match matched materialized \
     maxvalue merge method minute minvalue mode month national natural nchar new next nfc nfd \
     nfkc nfkd no none normalize normalized not nothing notify nowait null nullif nulls numeric \
     object of off offset old on only operator option options or order ordinality out outer \
     over overlaps overlay owned owner parallel parameter partition password placing plans \
     policy position preceding precision prepare preserve primary prior privileges procedure \
     program quote range read real recursive ref references referencing regclass relative \
     release rename repeatable replace replica reset restart restrict return returning returns \
     revoke right role rollback rollup row rows rule savepoint schema schemas scroll search \
     second security select sequence sequences serializable session session_user set sets share \
     show similar skip smallint snapshot some sql stable start statement statistics stdin \
     stdout stored strict substring support symmetric system table tables tablesample temp \
     temporary text then ties time timestamp timestamptz timetz to trailing transaction treat \
     trigger trim true truncate type uescape unbounded uncommitted union unique unknown \
     unlisten unlogged until update user using uuid vacuum valid value values varbit varchar \
     varying verbose version views volatile when where window with within without work write \
     year zone",
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_sorted() {
        assert!(KNOWN.is_sorted());
    }

    #[test]
    fn words_of_other_databases_are_names() {
        for word in [
            "top",
            "qualify",
            "sort",
            "overwrite",
            "global",
            "prewhere",
            "name",
            "xml",
        ] {
            assert_eq!(keyword(word), Keyword::NoKeyword, "{word}");
        }
        assert_eq!(keyword("Select"), Keyword::SELECT);
    }
}

//! Client queries that need SQL features of their own, brought into a form without them.
//!
//! A few fixed queries of psql, pgbench and the JDBC driver use set-returning functions in the
//! select list, LATERAL, WITH ORDINALITY or window functions, always in the same words. Over this
//! catalog each has an equivalent without. Rewriting them by text keeps those features out of the
//! planner until they are wanted for their own sake; a query that is not recognised word for word
//! stays as it is. `test/sql/introspection` holds the originals.

use std::borrow::Cow;

/// Every rewritten query mentions this, and nearly no other statement does.
const MARK: &str = "pg_catalog.";

/// A replacement of words by words; runs of white space count as one space.
struct Rule {
    words: &'static str,
    replacement: &'static str,
}

const fn rule(words: &'static str, replacement: &'static str) -> Rule {
    Rule { words, replacement }
}

/// Replacements that hold wherever their words occur.
const RULES: &[Rule] = &[
    // JDBC getColumns: attribute numbers have no gaps.
    rule(
        "row_number() OVER (PARTITION BY a.attrelid ORDER BY a.attnum) AS attnum",
        "a.attnum AS attnum",
    ),
    // JDBC getPrimaryKeys: position of a column in a key.
    rule(
        "(information_schema._pg_expandarray(i.indkey)).n AS KEY_SEQ",
        "pg_catalog.array_position(i.indkey, a.attnum) AS KEY_SEQ",
    ),
    rule(
        "information_schema._pg_expandarray(i.indkey) AS KEYS",
        "i.indkey AS KEYS",
    ),
    rule(
        "result.A_ATTNUM = (result.KEYS).x",
        "result.A_ATTNUM = ANY (result.KEYS)",
    ),
    // JDBC getBestRowIdentifier and getPrimaryUniqueKeys.
    rule(
        "information_schema._pg_expandarray(i.indkey) AS keys",
        "i.indkey AS keys",
    ),
    rule("a.attnum = (i.keys).x", "a.attnum = ANY (i.keys)"),
    // JDBC getTypeInfo: the search path beyond pg_catalog is always public.
    rule(
        "select s.r, (current_schemas(false))[s.r] as nspname from generate_series(1, \
         array_upper(current_schemas(false), 1)) as s(r)",
        "select 1 as r, 'public' as nspname",
    ),
    // pgbench: what partitions its tables have.
    rule(
        "join pg_catalog.pg_namespace as n on (n.oid = c.relnamespace) cross join lateral \
         (select pg_catalog.array_position(pg_catalog.current_schemas(true), n.nspname)) as o(n)",
        "join (select oid, pg_catalog.array_position(pg_catalog.current_schemas(true), nspname) \
         as n from pg_catalog.pg_namespace) as o on (o.oid = c.relnamespace)",
    ),
    // psql \d+: there are no toast tables.
    rule(
        "c.reloptions || array(select 'toast.' || x from pg_catalog.unnest(tc.reloptions) x)",
        "c.reloptions",
    ),
];

/// JDBC getIndexInfo: one row per index and key column. Together or not at all.
const INDEX_INFO: &[Rule] = &[
    rule(
        "(information_schema._pg_expandarray(i.indkey)).n AS ORDINAL_POSITION",
        "k.n AS ORDINAL_POSITION",
    ),
    rule(
        "JOIN pg_catalog.pg_index i ON (ct.oid = i.indrelid)",
        "JOIN pg_catalog.pg_index i ON (ct.oid = i.indrelid) \
         JOIN pg_catalog.pg_index_keys k ON (k.indexrelid = i.indexrelid)",
    ),
];

/// The statement in an equivalent form, or `None` if it is none of the known client queries.
pub fn client_query(text: &str) -> Option<String> {
    if !text.contains(MARK) {
        return None;
    }
    if let Some(empty) = publications(text) {
        return Some(empty);
    }
    let mut query = Cow::Borrowed(text);
    for rule in RULES {
        apply(&mut query, rule);
    }
    if find(&query, INDEX_INFO[0].words, 0).is_some() {
        for rule in INDEX_INFO {
            apply(&mut query, rule);
        }
    }
    partition_ancestors(&mut query);
    match query {
        Cow::Borrowed(_) => None,
        Cow::Owned(query) => Some(query),
    }
}

/// Replaces every occurrence of the rule's words.
fn apply(query: &mut Cow<'_, str>, rule: &Rule) {
    let mut from = 0;
    while let Some((start, end)) = find(query, rule.words, from) {
        query.to_mut().replace_range(start..end, rule.replacement);
        from = start + rule.replacement.len();
    }
}

/// Bounds of the first occurrence of `words` at or after `from`, where any white space in the text
/// stands for a space of `words`.
fn find(text: &str, words: &str, from: usize) -> Option<(usize, usize)> {
    let first = words
        .split(' ')
        .next()
        .expect("there is always a first piece");
    let mut at = from;
    while let Some(found) = text[at..].find(first) {
        let start = at + found;
        if let Some(end) = match_at(text, start, words) {
            return Some((start, end));
        }
        at = start + first.len();
    }
    None
}

fn match_at(text: &str, start: usize, words: &str) -> Option<usize> {
    let mut at = start;
    for (index, word) in words.split(' ').enumerate() {
        if index > 0 {
            let spaces = text[at..].len() - text[at..].trim_start().len();
            if spaces == 0 {
                return None;
            }
            at += spaces;
        }
        if !text[at..].starts_with(word) {
            return None;
        }
        at += word.len();
    }
    Some(at)
}

/// psql \d: publications of a table, a union over tables that are empty here.
fn publications(text: &str) -> Option<String> {
    let text = text.trim_start();
    let known = text.starts_with("SELECT pubname")
        && text.contains("FROM pg_catalog.pg_publication p")
        && text.contains("UNION");
    if !known {
        return None;
    }
    // Since version 15 with filter and columns.
    let more = if text.contains(", NULL") {
        ", NULL, NULL"
    } else {
        ""
    };
    Some(format!(
        "SELECT pubname{more} FROM pg_catalog.pg_publication p WHERE false"
    ))
}

/// psql \d: no table is a partition, so a table is its only ancestor.
fn partition_ancestors(query: &mut Cow<'_, str>) {
    const ANCESTORS: &str = "SELECT pg_catalog.pg_partition_ancestors(";
    const SELF: &str = "UNION ALL VALUES (";
    if let Some(start) = query.find(ANCESTORS)
        && let Some(length) = query[start..].find(SELF)
    {
        query
            .to_mut()
            .replace_range(start..start + length + SELF.len(), "SELECT (");
    }
    const PARENT: &str = "(SELECT u.tgrelid::pg_catalog.regclass";
    const PARENT_END: &str = "LIMIT 1)";
    if let Some(start) = query.find(PARENT)
        && query.contains("WITH ORDINALITY")
        && let Some(length) = query[start..].find(PARENT_END)
    {
        query
            .to_mut()
            .replace_range(start..start + length + PARENT_END.len(), "NULL");
    }
}

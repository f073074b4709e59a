//! The catalog queries behind the commands that list and describe.

/// A title and the query whose rows stand below it.
pub(crate) type Titled = (String, String);

pub(crate) fn databases(plus: bool) -> String {
    let more = match plus {
        true => {
            ", pg_size_pretty(pg_database_size(d.oid)) AS \"Size\", \
                 shobj_description(d.oid, 'pg_database') AS \"Description\""
        }
        false => "",
    };
    format!(
        "SELECT d.datname AS \"Name\", pg_get_userbyid(d.datdba) AS \"Owner\", \
         pg_encoding_to_char(d.encoding) AS \"Encoding\", d.datprotocol AS \"Protocol\"{more} \
         FROM pg_database d ORDER BY 1"
    )
}

/// Relations of some kinds whose name fits `pattern`.
pub(crate) fn relations(kinds: &str, pattern: &str, plus: bool) -> String {
    let filter = named(
        "n.nspname",
        "c.relname",
        pattern,
        "pg_table_is_visible(c.oid)",
    );
    let system = match pattern {
        "" => "AND n.nspname <> 'pg_catalog' AND n.nspname <> 'information_schema'",
        _ => "",
    };
    let more = match plus {
        true => {
            ", pg_size_pretty(pg_total_relation_size(c.oid)) AS \"Size\", \
                 obj_description(c.oid, 'pg_class') AS \"Description\""
        }
        false => "",
    };
    format!(
        "SELECT n.nspname AS \"Schema\", c.relname AS \"Name\", CASE c.relkind \
         WHEN 'r' THEN 'table' WHEN 'p' THEN 'table' WHEN 'v' THEN 'view' \
         WHEN 'S' THEN 'sequence' ELSE 'index' END AS \"Type\", \
         pg_get_userbyid(c.relowner) AS \"Owner\"{more} \
         FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
         WHERE c.relkind IN ({kinds}) {system} AND n.nspname <> 'pg_toast'{filter} ORDER BY 1, 2"
    )
}

pub(crate) fn roles(pattern: &str) -> String {
    let filter = named("''", "rolname", pattern, "true");
    format!(
        "SELECT rolname AS \"Role\", CASE WHEN rolsuper THEN 'superuser' ELSE '' END \
         AS \"Attributes\" FROM pg_roles WHERE rolname !~ '^pg_'{filter} ORDER BY 1"
    )
}

pub(crate) fn schemas(pattern: &str) -> String {
    let filter = match pattern {
        "" => " AND nspname !~ '^pg_' AND nspname <> 'information_schema'".to_string(),
        _ => named("''", "nspname", pattern, "true"),
    };
    format!(
        "SELECT nspname AS \"Schema\", pg_get_userbyid(nspowner) AS \"Owner\", \
         obj_description(oid, 'pg_namespace') AS \"Description\" \
         FROM pg_namespace WHERE true{filter} ORDER BY 1"
    )
}

pub(crate) fn functions(pattern: &str) -> String {
    let filter = named(
        "n.nspname",
        "p.proname",
        pattern,
        "pg_function_is_visible(p.oid)",
    );
    format!(
        "SELECT n.nspname AS \"Schema\", p.proname AS \"Name\", \
         format_type(p.prorettype, NULL) AS \"Result\", \
         pg_get_function_arguments(p.oid) AS \"Arguments\", \
         CASE p.prokind WHEN 'a' THEN 'aggregate' ELSE 'function' END AS \"Type\" \
         FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace \
         WHERE true{filter} ORDER BY 1, 2, 4"
    )
}

pub(crate) fn types(pattern: &str) -> String {
    let filter = named(
        "n.nspname",
        "t.typname",
        pattern,
        "pg_type_is_visible(t.oid)",
    );
    format!(
        "SELECT n.nspname AS \"Schema\", format_type(t.oid, NULL) AS \"Name\" \
         FROM pg_type t JOIN pg_namespace n ON n.oid = t.typnamespace \
         WHERE t.typtype = 'b' AND t.typelem = 0{filter} ORDER BY 1, 2"
    )
}

/// A condition that `pattern` (`NAME`, `SCHEMA.NAME`) fits: `*` stands for anything, `?` for a
/// character; letters are folded unless they are in double quotes. `visible` holds for what
/// needs no schema.
fn named(schema_column: &str, column: &str, pattern: &str, visible: &str) -> String {
    if pattern.is_empty() {
        return String::new();
    }
    let (mut parts, mut quoted) = (vec![String::new()], false);
    for c in pattern.chars() {
        let part = parts.last_mut().expect("there is one");
        match c {
            '"' => quoted = !quoted,
            '.' if !quoted => parts.push(String::new()),
            '*' if !quoted => part.push('%'),
            '?' if !quoted => part.push('_'),
            '\\' | '%' | '_' => part.extend(['\\', c]),
            c if quoted => part.push(c),
            c => part.extend(c.to_lowercase()),
        }
    }
    let name = parts.pop().expect("there is one");
    match parts.pop() {
        Some(schema) => format!(
            " AND {schema_column} LIKE {} AND {column} LIKE {}",
            literal(&schema),
            literal(&name)
        ),
        None => format!(" AND {column} LIKE {} AND {visible}", literal(&name)),
    }
}

/// A query that answers number, schema, name and kind of the relations that fit `pattern`.
pub(crate) fn find(pattern: &str) -> String {
    let filter = named(
        "n.nspname",
        "c.relname",
        pattern,
        "pg_table_is_visible(c.oid)",
    );
    format!(
        "SELECT c.oid, n.nspname, c.relname, c.relkind FROM pg_class c \
         JOIN pg_namespace n ON n.oid = c.relnamespace WHERE true{filter} ORDER BY 2, 3"
    )
}

/// A relation that is described.
pub(crate) struct Relation<'a> {
    pub(crate) oid: u64,
    pub(crate) schema: &'a str,
    pub(crate) name: &'a str,
    /// As in pg_class.
    pub(crate) kind: &'a str,
}

/// Titles and queries that describe a relation; with `plus` in detail.
pub(crate) fn describe(relation: &Relation<'_>, plus: bool) -> Vec<Titled> {
    let Relation {
        oid,
        schema,
        name,
        kind,
    } = *relation;
    let more = match plus {
        true => ", coalesce(col_description(a.attrelid, a.attnum), '') AS \"Description\"",
        false => "",
    };
    let columns = format!(
        "SELECT a.attname AS \"Column\", format_type(a.atttypid, a.atttypmod) AS \"Type\", \
         CASE WHEN a.attnotnull THEN 'not null' ELSE '' END AS \"Nullable\", \
         coalesce(CASE WHEN a.attgenerated = 's' THEN \
         (SELECT 'generated always as (' || pg_get_expr(d.adbin, d.adrelid) || ') stored' \
         FROM pg_attrdef d WHERE d.adrelid = a.attrelid AND d.adnum = a.attnum) END, \
         CASE a.attidentity WHEN 'a' THEN 'generated always as identity' \
         WHEN 'd' THEN 'generated by default as identity' END, \
         (SELECT pg_get_expr(d.adbin, d.adrelid) FROM pg_attrdef d \
         WHERE d.adrelid = a.attrelid AND d.adnum = a.attnum), '') AS \"Default\"{more} \
         FROM pg_attribute a \
         WHERE a.attrelid = {oid} AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum"
    );
    let indexes = format!(
        "SELECT c.relname AS \"Index\", pg_get_indexdef(i.indexrelid) AS \"Definition\" \
         FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid \
         WHERE i.indrelid = {oid} ORDER BY i.indisprimary DESC, c.relname"
    );
    let constraints = format!(
        "SELECT conname AS \"Constraint\", pg_get_constraintdef(oid) AS \"Definition\" \
         FROM pg_constraint WHERE conrelid = {oid} AND contype IN ('c', 'f') ORDER BY 1"
    );
    let referrers = format!(
        "SELECT t.relname AS \"Referenced by\", pg_get_constraintdef(c.oid) AS \"Definition\" \
         FROM pg_constraint c JOIN pg_class t ON t.oid = c.conrelid \
         WHERE c.confrelid = {oid} AND c.contype = 'f' ORDER BY 1, 2"
    );
    let what = match kind {
        "S" => "Sequence",
        "i" | "I" => "Index",
        "v" => "View",
        _ => "Table",
    };
    let mut found = vec![
        (format!("{what} \"{schema}.{name}\""), columns),
        (String::new(), indexes),
        (String::new(), constraints),
        (String::new(), referrers),
    ];
    if kind == "i" {
        let definition = format!(
            "SELECT pg_get_indexdef({oid}) AS \"Definition\", \
             pg_size_pretty(pg_relation_size({oid}::oid)) AS \"Size\""
        );
        found.push((String::new(), definition));
    } else if plus {
        let table = format!(
            "SELECT pg_size_pretty(pg_total_relation_size(c.oid)) AS \"Size\", \
             coalesce(array_to_string(c.reloptions, ', '), '') AS \"Options\", \
             coalesce(obj_description(c.oid, 'pg_class'), '') AS \"Description\" \
             FROM pg_class c WHERE c.oid = {oid}"
        );
        found.push((String::new(), table));
    }
    found
}

/// `text` as a literal of SQL.
pub(crate) fn literal(text: &str) -> String {
    let quoted = text.replace('\'', "''");
    format!("'{quoted}'")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_and_names_are_quoted() {
        let query = relations("'r'", "a_b*'?", false);
        assert!(query.contains(r"c.relname LIKE 'a\_b%''_'"), "{query}");
        assert!(find("Orders").contains("relname LIKE 'orders'"));
        assert!(find("\"Or*ders\"").contains("relname LIKE 'Or*ders'"));
        let query = find("Shop.\"X.y\"");
        assert!(
            query.contains("n.nspname LIKE 'shop' AND c.relname LIKE 'X.y'"),
            "{query}"
        );
    }
}

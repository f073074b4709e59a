//! Types, tables, sequences, indexes, constraints and comments as statements, from the catalog.

use crate::catalog::literal;
use crate::table::Rows;
use anyhow::{Context, Result, bail};
use functions::keywords::quote_ident;

/// Runs a catalog query.
pub(super) type Query<'a> = dyn FnMut(&str) -> Result<Rows> + 'a;

/// What a database holds besides its rows.
pub(super) struct Schema {
    pub(super) tables: Vec<Table>,
    pub(super) sequences: Vec<Sequence>,
    /// Enum and composite types: their names and the statements that make them.
    types: Vec<(String, String)>,
    /// Functions and procedures: their numbers and the statements that make them.
    functions: Vec<(u64, String)>,
    /// Domains: their numbers and the statements that make them.
    domains: Vec<(u64, String)>,
    /// Statements that need the rows: foreign keys, indexes.
    later: Vec<Owned>,
    comments: Vec<Owned>,
}

/// A statement that belongs to a table, or to none.
struct Owned {
    table: Option<String>,
    text: String,
}

pub(super) struct Table {
    oid: String,
    pub(super) name: String,
    columns: Vec<Column>,
    /// `CONSTRAINT name ...`: keys and checks.
    constraints: Vec<String>,
    /// Columns of PARTITION BY, ready to write; empty: those of the primary key.
    partition_by: String,
    /// Text of WITH, ready to write.
    options: String,
}

struct Column {
    name: String,
    /// Type, NOT NULL, default, identity or expression.
    definition: String,
    /// Its values follow from those of other columns.
    is_generated: bool,
    /// Its identity's sequence; the definition ends with the numbers of that.
    sequence: Option<String>,
}

pub(super) struct Sequence {
    pub(super) name: String,
    pub(super) increment: i64,
    /// Where it goes on.
    pub(super) start: i64,
    min: String,
    max: String,
    cycle: bool,
    ty: String,
    /// It is part of an identity column of this table.
    identity: Option<String>,
}

impl Schema {
    pub(super) fn read(query: &mut Query<'_>, database: &str) -> Result<Schema> {
        let mut tables = tables(query)?;
        let mut sequences = sequences(query)?;
        for table in &mut tables {
            table.columns = columns(query, &table.oid)?;
            table.constraints = own_constraints(query, &table.oid)?;
            for name in table
                .columns
                .iter()
                .filter_map(|column| column.sequence.as_ref())
            {
                let sequence = sequences.iter_mut().find(|sequence| sequence.name == *name);
                let sequence = sequence.with_context(|| format!("no sequence {name}"))?;
                sequence.identity = Some(table.name.clone());
            }
        }
        placement(query, &mut tables)?;
        let later = later(query)?;
        let comments = comments(query, database)?;
        Ok(Schema {
            types: types(query)?,
            functions: functions(query)?,
            domains: domains(query)?,
            tables,
            sequences,
            later,
            comments,
        })
    }

    /// Only these tables; all if there are none.
    pub(super) fn keep(&mut self, names: &[String]) -> Result<()> {
        if names.is_empty() {
            return Ok(());
        }
        for name in names {
            if !self.tables.iter().any(|table| table.name == *name) {
                bail!("there is no table {name}");
            }
        }
        let is_kept = |owner: &Option<String>| owner.as_ref().is_some_and(|t| names.contains(t));
        self.tables.retain(|table| names.contains(&table.name));
        // A default may draw from a sequence of its own.
        let tables = &self.tables;
        self.sequences.retain(|sequence| {
            let called = format!(
                "nextval({}",
                literal(&quote_ident(&sequence.name)).trim_end_matches('\'')
            );
            let mut columns = tables.iter().flat_map(|table| &table.columns);
            is_kept(&sequence.identity) || columns.any(|column| column.definition.contains(&called))
        });
        self.types.retain(|(name, _)| {
            let mut columns = tables.iter().flat_map(|table| &table.columns);
            columns.any(|column| column.definition.starts_with(name))
        });
        self.domains.retain(|(_, statement)| {
            let name = statement.strip_prefix("CREATE DOMAIN ").unwrap_or_default();
            let name = name.split_once(" AS ").map_or(name, |(name, _)| name);
            let mut columns = tables.iter().flat_map(|table| &table.columns);
            columns.any(|column| column.definition.starts_with(name))
        });
        // What they use may be left out.
        self.functions.clear();
        self.later.retain(|owned| is_kept(&owned.table));
        self.comments.retain(|owned| is_kept(&owned.table));
        Ok(())
    }

    /// Statements that come before the rows.
    pub(super) fn before(&self) -> Vec<String> {
        let free = self
            .sequences
            .iter()
            .filter(|sequence| sequence.identity.is_none());
        let types = self.types.iter().map(|(_, statement)| statement.clone());
        let mut found: Vec<String> = Vec::new();
        // A function that was replaced may name what was made after it.
        if !self.functions.is_empty() {
            found.push("SET check_function_bodies = off;".into());
        }
        found.extend(types);
        found.extend(free.map(|sequence| {
            let (name, ty) = (quote_ident(&sequence.name), &sequence.ty);
            format!("CREATE SEQUENCE {name} AS {ty} {};", sequence.numbers())
        }));
        // In the order in which they were made: functions name tables, and tables functions.
        let tables = self.tables.iter().map(|table| {
            let number = table.oid.parse().unwrap_or(u64::MAX);
            (number, table.statement(&self.sequences))
        });
        let mut all: Vec<(u64, String)> = tables.chain(self.functions.iter().cloned()).collect();
        all.extend(self.domains.iter().cloned());
        all.sort_by_key(|(number, _)| *number);
        found.extend(all.into_iter().map(|(_, statement)| statement));
        found
    }

    /// Statements that come behind them.
    pub(super) fn behind(&self) -> Vec<String> {
        let all = self.later.iter().chain(&self.comments);
        all.map(|owned| owned.text.clone()).collect()
    }
}

impl Sequence {
    fn numbers(&self) -> String {
        format!(
            "START WITH {} INCREMENT BY {} MINVALUE {} MAXVALUE {}{}",
            self.start,
            self.increment,
            self.min,
            self.max,
            if self.cycle { " CYCLE" } else { "" }
        )
    }
}

impl Table {
    /// Its columns in COPY.
    pub(super) fn column_names(&self) -> String {
        let names: Vec<_> = self
            .columns
            .iter()
            .filter(|column| !column.is_generated)
            .map(|column| quote_ident(&column.name))
            .collect();
        names.join(", ")
    }

    fn statement(&self, sequences: &[Sequence]) -> String {
        let mut parts: Vec<String> = Vec::new();
        for column in &self.columns {
            let sequence = column.sequence.as_ref();
            let sequence = sequences.iter().find(|known| Some(&known.name) == sequence);
            let numbers = sequence.map(|sequence| format!(" ({})", sequence.numbers()));
            let (name, definition) = (quote_ident(&column.name), &column.definition);
            parts.push(format!(
                "{name} {definition}{}",
                numbers.unwrap_or_default()
            ));
        }
        parts.extend(self.constraints.iter().cloned());
        format!(
            "CREATE TABLE {} (\n    {}\n){}{};",
            quote_ident(&self.name),
            parts.join(",\n    "),
            self.partition_by,
            self.options
        )
    }
}

fn tables(query: &mut Query<'_>) -> Result<Vec<Table>> {
    let found = query(
        "SELECT c.oid::text, c.relname, \
         CASE WHEN 'replicated=true' = ANY (c.reloptions) THEN ' WITH (replicated=true)' \
         ELSE '' END \
         FROM pg_class c WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace \
         ORDER BY c.oid",
    )?;
    let table = |[oid, name, options]: [String; 3]| Table {
        oid,
        name,
        columns: Vec::new(),
        constraints: Vec::new(),
        partition_by: String::new(),
        options,
    };
    Ok(cells(found)?.into_iter().map(table).collect())
}

fn columns(query: &mut Query<'_>, oid: &str) -> Result<Vec<Column>> {
    let found = query(&format!(
        "SELECT a.attname, format_type(a.atttypid, a.atttypmod) \
         || CASE WHEN a.attnotnull THEN ' NOT NULL' ELSE '' END \
         || CASE a.attidentity WHEN 'a' THEN ' GENERATED ALWAYS AS IDENTITY' \
         WHEN 'd' THEN ' GENERATED BY DEFAULT AS IDENTITY' \
         ELSE CASE WHEN a.attgenerated = 's' \
         THEN ' GENERATED ALWAYS AS (' || pg_get_expr(d.adbin, d.adrelid) || ') STORED' \
         ELSE coalesce(' DEFAULT ' || pg_get_expr(d.adbin, d.adrelid), '') END END, \
         CASE WHEN a.attidentity <> '' \
         THEN pg_get_serial_sequence(quote_ident(c.relname), a.attname) ELSE '' END, \
         a.attgenerated \
         FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid \
         LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum \
         WHERE a.attrelid = {oid} AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum"
    ))?;
    let column = |[name, definition, sequence, generated]: [String; 4]| Column {
        name,
        is_generated: !generated.is_empty(),
        definition,
        sequence: (!sequence.is_empty()).then(|| unqualified(&sequence)),
    };
    Ok(cells(found)?.into_iter().map(column).collect())
}

/// Keys and checks, the primary key first. Checks that are NOT VALID come behind the rows, because
/// not all rows may meet them.
fn own_constraints(query: &mut Query<'_>, oid: &str) -> Result<Vec<String>> {
    let found = query(&format!(
        "SELECT 'CONSTRAINT ' || quote_ident(conname) || ' ' || pg_get_constraintdef(oid) \
         FROM pg_constraint \
         WHERE conrelid = {oid} AND contype IN ('p', 'u', 'c') AND convalidated \
         ORDER BY contype <> 'p', conname"
    ))?;
    Ok(cells(found)?.into_iter().map(|[text]| text).collect())
}

/// PARTITION BY, where it is not what the primary key says.
fn placement(query: &mut Query<'_>, tables: &mut [Table]) -> Result<()> {
    let keys = query(
        "SELECT t.relname, \
         array_to_string(array_agg(quote_ident(a.attname) ORDER BY a.attnum), ', ') \
         FROM pg_index i JOIN pg_class t ON t.oid = i.indrelid \
         JOIN pg_attribute a ON a.attrelid = i.indexrelid \
         WHERE i.indisprimary AND t.relnamespace = 'public'::regnamespace GROUP BY t.relname",
    )?;
    let keys = cells::<2>(keys)?;
    for row in query("SHOW TABLES")?.rows {
        let [Some(name), _, _, Some(columns), ..] = row.as_slice() else {
            continue;
        };
        let key = keys
            .iter()
            .find(|[table, _]| table == name)
            .map(|[_, columns]| columns);
        let Some(table) = tables.iter_mut().find(|table| table.name == *name) else {
            continue;
        };
        if key.is_none_or(|key| key == columns) || !table.options.is_empty() {
            continue;
        }
        table.partition_by = format!(" PARTITION BY ({columns})");
    }
    Ok(())
}

fn functions(query: &mut Query<'_>) -> Result<Vec<(u64, String)>> {
    let found = query(
        "SELECT oid::text, rtrim(pg_get_functiondef(oid), chr(10)) || ';' FROM pg_proc \
         WHERE pronamespace = 'public'::regnamespace ORDER BY oid",
    )?;
    let made = cells(found)?.into_iter();
    made.map(|[oid, statement]| Ok((oid.parse()?, statement)))
        .collect()
}

/// Domains, with their numbers.
fn domains(query: &mut Query<'_>) -> Result<Vec<(u64, String)>> {
    let found = query(
        "SELECT t.oid::text, 'CREATE DOMAIN ' || quote_ident(t.typname) || ' AS ' \
         || format_type(t.typbasetype, t.typtypmod) \
         || coalesce(' DEFAULT ' || t.typdefault, '') \
         || CASE WHEN t.typnotnull THEN ' NOT NULL' ELSE '' END \
         || coalesce((SELECT string_agg(' CONSTRAINT ' || quote_ident(k.conname) || ' ' \
         || pg_get_constraintdef(k.oid), '' ORDER BY k.conname) \
         FROM pg_constraint k WHERE k.contypid = t.oid), '') || ';' \
         FROM pg_type t WHERE t.typtype = 'd' \
         AND t.typnamespace = 'public'::regnamespace ORDER BY t.oid",
    )?;
    let made = cells(found)?.into_iter();
    made.map(|[oid, statement]| Ok((oid.parse()?, statement)))
        .collect()
}

/// Composite types, those that others are made of first.
fn composites(query: &mut Query<'_>) -> Result<Vec<(String, String)>> {
    let found = query(
        "SELECT quote_ident(t.typname), 'CREATE TYPE ' || quote_ident(t.typname) || ' AS (' || \
         coalesce((SELECT string_agg(quote_ident(a.attname) || ' ' || \
         format_type(a.atttypid, a.atttypmod), ', ' ORDER BY a.attnum) FROM pg_attribute a \
         WHERE a.attrelid = t.typrelid), '') || ');' FROM pg_type t \
         JOIN pg_class c ON c.oid = t.typrelid WHERE c.relkind = 'c' \
         AND t.typnamespace = 'public'::regnamespace ORDER BY t.oid",
    )?;
    let made = cells(found)?.into_iter();
    Ok(made.map(|[name, statement]| (name, statement)).collect())
}

fn types(query: &mut Query<'_>) -> Result<Vec<(String, String)>> {
    let found = query(
        "SELECT t.typname, coalesce(e.enumlabel, ''), e.enumlabel IS NULL FROM pg_type t \
         LEFT JOIN pg_enum e ON e.enumtypid = t.oid WHERE t.typtype = 'e' \
         ORDER BY t.oid, e.enumsortorder",
    )?;
    let mut types: Vec<(String, Vec<String>)> = Vec::new();
    for [name, label, empty] in cells::<3>(found)? {
        let name = quote_ident(&name).into_owned();
        if types.last().is_none_or(|(last, _)| *last != name) {
            types.push((name, Vec::new()));
        }
        if let Some((_, labels)) = types.last_mut()
            && empty == "f"
        {
            labels.push(literal(&label));
        }
    }
    let made = types.into_iter().map(|(name, labels)| {
        let statement = format!("CREATE TYPE {name} AS ENUM ({});", labels.join(", "));
        (name, statement)
    });
    let mut all: Vec<_> = made.collect();
    all.extend(composites(query)?);
    Ok(all)
}

fn sequences(query: &mut Query<'_>) -> Result<Vec<Sequence>> {
    let found = query(
        "SELECT c.relname, format_type(s.seqtypid, NULL), s.seqincrement::text, \
         s.seqstart::text, s.seqmin::text, s.seqmax::text, s.seqcycle \
         FROM pg_sequence s JOIN pg_class c ON c.oid = s.seqrelid \
         WHERE c.relnamespace = 'public'::regnamespace ORDER BY c.oid",
    )?;
    cells(found)?
        .into_iter()
        .map(
            |[name, ty, increment, start, min, max, cycle]: [String; 7]| {
                Ok(Sequence {
                    increment: increment.parse().context("the increment of a sequence")?,
                    start: start.parse().context("the start of a sequence")?,
                    name,
                    min,
                    max,
                    cycle: cycle == "t",
                    ty,
                    identity: None,
                })
            },
        )
        .collect()
}

fn later(query: &mut Query<'_>) -> Result<Vec<Owned>> {
    let indexes = query(
        "SELECT t.relname, pg_get_indexdef(i.indexrelid) || ';' FROM pg_index i \
         JOIN pg_class t ON t.oid = i.indrelid JOIN pg_class c ON c.oid = i.indexrelid \
         WHERE t.relnamespace = 'public'::regnamespace AND NOT i.indisprimary AND NOT EXISTS \
         (SELECT 1 FROM pg_constraint k WHERE k.conindid = i.indexrelid AND k.contype = 'u') \
         ORDER BY c.relname",
    )?;
    let constraints = query(
        "SELECT t.relname, 'ALTER TABLE ' || quote_ident(t.relname) || ' ADD CONSTRAINT ' \
         || quote_ident(k.conname) || ' ' || pg_get_constraintdef(k.oid) || ';' \
         FROM pg_constraint k JOIN pg_class t ON t.oid = k.conrelid \
         WHERE t.relnamespace = 'public'::regnamespace \
         AND (k.contype = 'f' OR NOT k.convalidated) ORDER BY t.relname, k.conname",
    )?;
    let mut found = owned(indexes)?;
    found.extend(owned(constraints)?);
    found.extend(owned(query(VIEWS)?)?);
    for text in ROW_SECURITY {
        found.extend(owned(query(text)?)?);
    }
    Ok(found)
}

/// Row security. It is enabled before there is a policy, so that nothing shows rows if the role of
/// a policy is missing where the dump is read.
const ROW_SECURITY: [&str; 3] = [
    "SELECT c.relname, 'ALTER TABLE ' || quote_ident(c.relname) || ' ENABLE ROW LEVEL SECURITY;' \
     FROM pg_class c WHERE c.relrowsecurity \
     AND c.relnamespace = 'public'::regnamespace ORDER BY c.oid",
    "SELECT c.relname, 'ALTER TABLE ' || quote_ident(c.relname) || ' FORCE ROW LEVEL SECURITY;' \
     FROM pg_class c WHERE c.relforcerowsecurity \
     AND c.relnamespace = 'public'::regnamespace ORDER BY c.oid",
    "SELECT p.tablename, 'CREATE POLICY ' || quote_ident(p.policyname) || ' ON ' \
     || quote_ident(p.tablename) || ' AS ' || p.permissive || ' FOR ' || p.cmd || ' TO ' \
     || (SELECT string_agg(CASE r WHEN 'public' THEN 'PUBLIC' ELSE quote_ident(r) END, ', ') \
     FROM unnest(p.roles::text[]) AS r) || coalesce(' USING (' || p.qual || ')', '') \
     || coalesce(' WITH CHECK (' || p.with_check || ')', '') || ';' \
     FROM pg_policies p WHERE p.schemaname = 'public' ORDER BY p.tablename, p.policyname",
];

/// Views, each behind those that it uses.
const VIEWS: &str = "WITH RECURSIVE used AS (SELECT r.ev_class AS v, d.refobjid AS u \
     FROM pg_rewrite r JOIN pg_depend d ON d.objid = r.oid \
     WHERE d.classid = 'pg_rewrite'::regclass AND d.refobjid <> r.ev_class), \
     deep AS (SELECT oid AS v, 0 AS depth FROM pg_class WHERE relkind = 'v' \
     UNION SELECT used.v, deep.depth + 1 FROM used JOIN deep ON deep.v = used.u) \
     SELECT c.relname, 'CREATE VIEW ' || quote_ident(c.relname) || ' AS' \
     || pg_get_viewdef(c.oid) FROM pg_class c \
     JOIN (SELECT v, max(depth) AS depth FROM deep GROUP BY v) o ON o.v = c.oid \
     WHERE c.relnamespace = 'public'::regnamespace ORDER BY o.depth, c.oid";

fn comments(query: &mut Query<'_>, database: &str) -> Result<Vec<Owned>> {
    let mut found = Vec::new();
    for text in [
        "SELECT c.relname, 'COMMENT ON TABLE ' || quote_ident(c.relname) || ' IS ' \
         || quote_literal(obj_description(c.oid, 'pg_class')) || ';' FROM pg_class c \
         WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace \
         AND obj_description(c.oid, 'pg_class') IS NOT NULL ORDER BY c.oid",
        "SELECT c.relname, 'COMMENT ON VIEW ' || quote_ident(c.relname) || ' IS ' \
         || quote_literal(obj_description(c.oid, 'pg_class')) || ';' FROM pg_class c \
         WHERE c.relkind = 'v' AND c.relnamespace = 'public'::regnamespace \
         AND obj_description(c.oid, 'pg_class') IS NOT NULL ORDER BY c.oid",
        "SELECT c.relname, 'COMMENT ON COLUMN ' || quote_ident(c.relname) || '.' \
         || quote_ident(a.attname) || ' IS ' || quote_literal(col_description(c.oid, a.attnum)) \
         || ';' FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid \
         WHERE a.attnum > 0 AND c.relnamespace = 'public'::regnamespace \
         AND col_description(c.oid, a.attnum) IS NOT NULL \
         ORDER BY c.oid, a.attnum",
        "SELECT t.relname, 'COMMENT ON INDEX ' || quote_ident(c.relname) || ' IS ' \
         || quote_literal(obj_description(c.oid, 'pg_class')) || ';' FROM pg_index i \
         JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_class t ON t.oid = i.indrelid \
         WHERE t.relnamespace = 'public'::regnamespace \
         AND obj_description(c.oid, 'pg_class') IS NOT NULL ORDER BY c.relname",
        "SELECT t.relname, 'COMMENT ON CONSTRAINT ' || quote_ident(k.conname) || ' ON ' \
         || quote_ident(t.relname) || ' IS ' \
         || quote_literal(obj_description(k.oid, 'pg_constraint')) || ';' \
         FROM pg_constraint k JOIN pg_class t ON t.oid = k.conrelid \
         WHERE t.relnamespace = 'public'::regnamespace \
         AND obj_description(k.oid, 'pg_constraint') IS NOT NULL ORDER BY t.relname, k.conname",
        "SELECT NULL, 'COMMENT ON SEQUENCE ' || quote_ident(c.relname) || ' IS ' \
         || quote_literal(obj_description(c.oid, 'pg_class')) || ';' FROM pg_class c \
         WHERE c.relkind = 'S' AND c.relnamespace = 'public'::regnamespace \
         AND obj_description(c.oid, 'pg_class') IS NOT NULL ORDER BY c.oid",
        "SELECT NULL, CASE p.prokind WHEN 'p' THEN 'COMMENT ON PROCEDURE ' \
         ELSE 'COMMENT ON FUNCTION ' END || p.oid::regprocedure::text || ' IS ' \
         || quote_literal(obj_description(p.oid, 'pg_proc')) || ';' FROM pg_proc p \
         WHERE p.pronamespace = 'public'::regnamespace \
         AND obj_description(p.oid, 'pg_proc') IS NOT NULL ORDER BY p.oid",
        "SELECT NULL, 'COMMENT ON SCHEMA public IS ' \
         || quote_literal(obj_description(n.oid, 'pg_namespace')) || ';' FROM pg_namespace n \
         WHERE n.nspname = 'public' \
         AND obj_description(n.oid, 'pg_namespace') <> 'standard public schema'",
    ] {
        found.extend(owned(query(text)?)?);
    }
    // The database that is made again may have another name.
    let own = query(&format!(
        "SELECT shobj_description(oid, 'pg_database') FROM pg_database WHERE datname = {}",
        literal(database)
    ))?;
    if let Some(text) = own.rows.into_iter().flatten().flatten().next() {
        let text = text.replace('\n', "\n-- ");
        found.push(Owned {
            table: None,
            text: format!("-- The comment on the database: {text}"),
        });
    }
    Ok(found)
}

fn owned(found: Rows) -> Result<Vec<Owned>> {
    let row = |row: Vec<Option<String>>| {
        let [table, text]: [Option<String>; 2] = row.try_into().ok()?;
        Some(Owned { table, text: text? })
    };
    let all: Option<Vec<Owned>> = found.rows.into_iter().map(row).collect();
    all.context("the catalog answers something else")
}

/// Rows of so many cells, none of them NULL.
fn cells<const N: usize>(found: Rows) -> Result<Vec<[String; N]>> {
    let row = |row: Vec<Option<String>>| -> Option<[String; N]> {
        let row: Option<Vec<String>> = row.into_iter().collect();
        row?.try_into().ok()
    };
    let all: Option<Vec<[String; N]>> = found.rows.into_iter().map(row).collect();
    all.context("the catalog answers something else")
}

/// The name behind `schema.`, without quotes.
fn unqualified(name: &str) -> String {
    let name = name.strip_prefix("public.").unwrap_or(name);
    match name
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'))
    {
        Some(inner) => inner.replace("\"\"", "\""),
        None => name.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lose_schema_and_quotes() {
        assert_eq!(unqualified("public.\"A b_seq\""), "A b_seq");
        assert_eq!(unqualified("public.a_seq"), "a_seq");
    }
}

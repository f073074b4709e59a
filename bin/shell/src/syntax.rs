//! The forms of statements, for `\h`.

/// Statement and form.
const FORMS: [(&str, &str); 29] = [
    (
        "ALTER DATABASE",
        "ALTER DATABASE name SET (protocol = 'two_phase' | 'leap')",
    ),
    (
        "ALTER TABLE",
        "ALTER TABLE name ADD [COLUMN] column type | DROP [COLUMN] column | ADD constraint | ...",
    ),
    (
        "BEGIN",
        "BEGIN [ISOLATION LEVEL SERIALIZABLE | REPEATABLE READ | READ COMMITTED] \
         [READ ONLY] [DEFERRABLE]",
    ),
    (
        "COMMENT",
        "COMMENT ON DATABASE | TABLE | COLUMN | INDEX | SEQUENCE | CONSTRAINT ... IS 'text'",
    ),
    ("COMMIT", "COMMIT"),
    (
        "COPY",
        "COPY table [(columns)] FROM STDIN | TO STDOUT [WITH (FORMAT csv, HEADER, ...)]",
    ),
    (
        "CREATE DATABASE",
        "CREATE DATABASE name [WITH (protocol = 'two_phase' | 'leap', execution = 'serial')]",
    ),
    (
        "CREATE INDEX",
        "CREATE [UNIQUE] INDEX [name] ON table (column, ...)",
    ),
    (
        "CREATE SEQUENCE",
        "CREATE SEQUENCE name [INCREMENT n] [START n]",
    ),
    (
        "CREATE TABLE",
        "CREATE TABLE name (column type [NOT NULL] [DEFAULT value] [PRIMARY KEY] [UNIQUE]\n    \
         [REFERENCES table] [CHECK (condition)], ...) [PARTITION BY (columns)]\n    \
         [WITH (replicated = true)]",
    ),
    (
        "CREATE VIEW",
        "CREATE [OR REPLACE] VIEW name [(columns)] AS query",
    ),
    (
        "DELETE",
        "DELETE FROM table [USING tables] [WHERE condition] [RETURNING ...]",
    ),
    ("DROP DATABASE", "DROP DATABASE [IF EXISTS] name"),
    ("DROP INDEX", "DROP INDEX [IF EXISTS] name"),
    ("DROP TABLE", "DROP TABLE [IF EXISTS] name [CASCADE]"),
    ("DROP VIEW", "DROP VIEW [IF EXISTS] name [CASCADE]"),
    ("EXPLAIN", "EXPLAIN [ANALYZE] statement"),
    (
        "INSERT",
        "INSERT INTO table [(columns)] VALUES (...), ... | query\n    \
         [ON CONFLICT [(columns)] DO NOTHING | DO UPDATE SET ...] [RETURNING ...]",
    ),
    (
        "PREPARE",
        "PREPARE name AS statement; then EXECUTE name (values)",
    ),
    ("RESET", "RESET setting | ALL"),
    ("ROLLBACK", "ROLLBACK"),
    (
        "SELECT",
        "SELECT [DISTINCT] ... FROM table [JOIN table ON condition] [WHERE condition]\n    \
         [GROUP BY ...] [HAVING ...] [UNION | INTERSECT | EXCEPT ...] [ORDER BY ...]\n    \
         [LIMIT n] [OFFSET n] [FOR UPDATE | FOR SHARE]",
    ),
    ("SET", "SET [LOCAL] setting = value | DEFAULT"),
    (
        "SET TRANSACTION",
        "SET TRANSACTION ISOLATION LEVEL ... | READ ONLY | READ WRITE | DEFERRABLE",
    ),
    (
        "SHOW",
        "SHOW setting | ALL | NODES | PLACEMENT | SESSIONS | ... (type SHOW and Tab)",
    ),
    ("TRUNCATE", "TRUNCATE table, ..."),
    (
        "UPDATE",
        "UPDATE table SET column = value, ... [FROM tables] [WHERE condition] [RETURNING ...]",
    ),
    ("VALUES", "VALUES (value, ...), ..."),
    (
        "START TRANSACTION",
        "START TRANSACTION [ISOLATION LEVEL ...] [READ ONLY] [DEFERRABLE]",
    ),
];

/// What `\h words` prints: the forms of the statements that begin with them, or all names.
pub(crate) fn help(words: &str) -> String {
    let words = words
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
        .to_uppercase();
    let fits = |name: &str| match words.as_str() {
        "*" => true,
        words => name == words || name.starts_with(&format!("{words} ")),
    };
    let found: Vec<&str> = FORMS
        .iter()
        .filter(|(n, _)| fits(n))
        .map(|(_, form)| *form)
        .collect();
    if !words.is_empty() && !found.is_empty() {
        return format!("{}\n", found.join("\n"));
    }
    let names: Vec<&str> = FORMS.iter().map(|(name, _)| *name).collect();
    let lines: Vec<String> = names.chunks(3).map(|line| line.join(", ")).collect();
    let missing = match words.is_empty() {
        true => String::new(),
        false => format!("There is no help for {words}. "),
    };
    format!("{missing}\\h and one of:\n  {}\n", lines.join(",\n  "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_are_found_by_their_first_words() {
        assert!(help("create  table").starts_with("CREATE TABLE name"));
        assert_eq!(help("drop").lines().count(), 4);
        assert!(help("").starts_with("\\h and one of:"));
        assert!(help("grant").starts_with("There is no help for GRANT. "));
    }
}

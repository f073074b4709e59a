//! Which words are keywords, and of what kind.
//!
//! The library treats hundreds of words of other databases specially (TOP, QUALIFY, SORT BY ...).
//! A word that PostgreSQL's grammar does not know is a plain name to it, too: its token carries no
//! keyword, so the library takes none of those clauses.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::Token;

/// The keyword that an unquoted word is to the library.
pub(super) fn keyword(word: &str) -> Keyword {
    let Token::Word(word) = Token::make_word(word, None) else {
        unreachable!("a word becomes a word")
    };
    if is_known(word.keyword) {
        word.keyword
    } else {
        Keyword::NoKeyword
    }
}

/// Whether the unquoted word cannot be the name of a column or table.
pub(crate) fn is_reserved(word: &str) -> bool {
    contains(&RESERVED, word) || contains(&FUNCTION_OR_TYPE, word)
}

/// Whether the unquoted word names functions and types, though no columns.
pub(super) fn may_name_function(word: &str) -> bool {
    contains(&FUNCTION_OR_TYPE, word)
}

/// Whether the unquoted word cannot be the name of a function.
pub(super) fn no_function(word: &str) -> bool {
    contains(&RESERVED, word) || contains(&NO_FUNCTION, word)
}

/// Whether a word behind an expression is a column label without AS.
pub(super) fn is_bare_label(word: &str) -> bool {
    !contains(&NEEDS_AS, word)
}

fn contains(sorted: &[&str], word: &str) -> bool {
    let word = word.to_ascii_lowercase();
    sorted.binary_search(&word.as_str()).is_ok()
}

/// Reserved words.
const RESERVED: [&str; 77] = [
    "all",
    "analyse",
    "analyze",
    "and",
    "any",
    "array",
    "as",
    "asc",
    "asymmetric",
    "both",
    "case",
    "cast",
    "check",
    "collate",
    "column",
    "constraint",
    "create",
    "current_catalog",
    "current_date",
    "current_role",
    "current_time",
    "current_timestamp",
    "current_user",
    "default",
    "deferrable",
    "desc",
    "distinct",
    "do",
    "else",
    "end",
    "except",
    "false",
    "fetch",
    "for",
    "foreign",
    "from",
    "grant",
    "group",
    "having",
    "in",
    "initially",
    "intersect",
    "into",
    "lateral",
    "leading",
    "limit",
    "localtime",
    "localtimestamp",
    "not",
    "null",
    "offset",
    "on",
    "only",
    "or",
    "order",
    "placing",
    "primary",
    "references",
    "returning",
    "select",
    "session_user",
    "some",
    "symmetric",
    "table",
    "then",
    "to",
    "trailing",
    "true",
    "union",
    "unique",
    "user",
    "using",
    "variadic",
    "when",
    "where",
    "window",
    "with",
];

/// Reserved words that can name functions and types.
const FUNCTION_OR_TYPE: [&str; 23] = [
    "authorization",
    "binary",
    "collation",
    "concurrently",
    "cross",
    "current_schema",
    "freeze",
    "full",
    "ilike",
    "inner",
    "is",
    "isnull",
    "join",
    "left",
    "like",
    "natural",
    "notnull",
    "outer",
    "overlaps",
    "right",
    "similar",
    "tablesample",
    "verbose",
];

/// Words that can name columns, but no functions.
const NO_FUNCTION: [&str; 51] = [
    "between",
    "bigint",
    "bit",
    "boolean",
    "char",
    "character",
    "coalesce",
    "dec",
    "decimal",
    "exists",
    "extract",
    "float",
    "greatest",
    "grouping",
    "inout",
    "int",
    "integer",
    "interval",
    "least",
    "national",
    "nchar",
    "none",
    "normalize",
    "nullif",
    "numeric",
    "out",
    "overlay",
    "position",
    "precision",
    "real",
    "row",
    "setof",
    "smallint",
    "substring",
    "time",
    "timestamp",
    "treat",
    "trim",
    "values",
    "varchar",
    "xmlattributes",
    "xmlconcat",
    "xmlelement",
    "xmlexists",
    "xmlforest",
    "xmlnamespaces",
    "xmlparse",
    "xmlpi",
    "xmlroot",
    "xmlserialize",
    "xmltable",
];

/// Words that are column labels only behind AS.
const NEEDS_AS: [&str; 39] = [
    "array",
    "as",
    "char",
    "character",
    "create",
    "day",
    "except",
    "fetch",
    "filter",
    "for",
    "from",
    "grant",
    "group",
    "having",
    "hour",
    "intersect",
    "into",
    "isnull",
    "limit",
    "minute",
    "month",
    "notnull",
    "offset",
    "on",
    "order",
    "over",
    "overlaps",
    "precision",
    "returning",
    "second",
    "to",
    "union",
    "varying",
    "where",
    "window",
    "with",
    "within",
    "without",
    "year",
];

/// The keywords of PostgreSQL that the library knows, without those that it takes for clauses of
/// other databases (CLUSTER BY, FOR XML, GLOBAL JOIN, INSERT LOCAL, LATERAL VIEW, UNION BY NAME),
/// and with the names of types for which it has types of their own.
fn is_known(keyword: Keyword) -> bool {
    matches!(
        keyword,
        Keyword::ABORT
            | Keyword::ABSOLUTE
            | Keyword::ACCESS
            | Keyword::ACTION
            | Keyword::ADD
            | Keyword::ADMIN
            | Keyword::AFTER
            | Keyword::ALL
            | Keyword::ALTER
            | Keyword::ALWAYS
            | Keyword::ANALYZE
            | Keyword::AND
            | Keyword::ANY
            | Keyword::ARRAY
            | Keyword::AS
            | Keyword::ASC
            | Keyword::ASENSITIVE
            | Keyword::ASYMMETRIC
            | Keyword::AT
            | Keyword::ATOMIC
            | Keyword::ATTACH
            | Keyword::AUTHORIZATION
            | Keyword::BACKWARD
            | Keyword::BEFORE
            | Keyword::BEGIN
            | Keyword::BETWEEN
            | Keyword::BIGINT
            | Keyword::BINARY
            | Keyword::BIT
            | Keyword::BOOL
            | Keyword::BOOLEAN
            | Keyword::BOTH
            | Keyword::BY
            | Keyword::BYTEA
            | Keyword::CACHE
            | Keyword::CALL
            | Keyword::CALLED
            | Keyword::CASCADE
            | Keyword::CASCADED
            | Keyword::CASE
            | Keyword::CAST
            | Keyword::CATALOG
            | Keyword::CHAIN
            | Keyword::CHAR
            | Keyword::CHARACTER
            | Keyword::CHECK
            | Keyword::CLOSE
            | Keyword::COALESCE
            | Keyword::COLLATE
            | Keyword::COLLATION
            | Keyword::COLUMN
            | Keyword::COLUMNS
            | Keyword::COMMENT
            | Keyword::COMMIT
            | Keyword::COMMITTED
            | Keyword::COMPRESSION
            | Keyword::CONCURRENTLY
            | Keyword::CONFLICT
            | Keyword::CONNECTION
            | Keyword::CONSTRAINT
            | Keyword::CONTINUE
            | Keyword::COPY
            | Keyword::CREATE
            | Keyword::CROSS
            | Keyword::CSV
            | Keyword::CUBE
            | Keyword::CURRENT
            | Keyword::CURRENT_CATALOG
            | Keyword::CURRENT_DATE
            | Keyword::CURRENT_ROLE
            | Keyword::CURRENT_SCHEMA
            | Keyword::CURRENT_TIME
            | Keyword::CURRENT_TIMESTAMP
            | Keyword::CURRENT_USER
            | Keyword::CURSOR
            | Keyword::CYCLE
            | Keyword::DATA
            | Keyword::DATABASE
            | Keyword::DATE
            | Keyword::DAY
            | Keyword::DEALLOCATE
            | Keyword::DEC
            | Keyword::DECIMAL
            | Keyword::DECLARE
            | Keyword::DEFAULT
            | Keyword::DEFERRABLE
            | Keyword::DEFERRED
            | Keyword::DEFINER
            | Keyword::DELETE
            | Keyword::DELIMITER
            | Keyword::DESC
            | Keyword::DETACH
            | Keyword::DISABLE
            | Keyword::DISCARD
            | Keyword::DISTINCT
            | Keyword::DO
            | Keyword::DOUBLE
            | Keyword::DROP
            | Keyword::EACH
            | Keyword::ELSE
            | Keyword::ENABLE
            | Keyword::ENCODING
            | Keyword::END
            | Keyword::ENUM
            | Keyword::ESCAPE
            | Keyword::EVENT
            | Keyword::EXCEPT
            | Keyword::EXCLUSIVE
            | Keyword::EXECUTE
            | Keyword::EXISTS
            | Keyword::EXPLAIN
            | Keyword::EXTENSION
            | Keyword::EXTERNAL
            | Keyword::EXTRACT
            | Keyword::FALSE
            | Keyword::FETCH
            | Keyword::FILTER
            | Keyword::FIRST
            | Keyword::FLOAT
            | Keyword::FLOAT4
            | Keyword::FLOAT8
            | Keyword::FOLLOWING
            | Keyword::FOR
            | Keyword::FORCE
            | Keyword::FOREIGN
            | Keyword::FORWARD
            | Keyword::FREEZE
            | Keyword::FROM
            | Keyword::FULL
            | Keyword::FUNCTION
            | Keyword::FUNCTIONS
            | Keyword::GENERATED
            | Keyword::GRANT
            | Keyword::GRANTED
            | Keyword::GROUP
            | Keyword::GROUPING
            | Keyword::GROUPS
            | Keyword::HAVING
            | Keyword::HEADER
            | Keyword::HOLD
            | Keyword::HOUR
            | Keyword::IDENTITY
            | Keyword::IF
            | Keyword::ILIKE
            | Keyword::IMMEDIATE
            | Keyword::IMMUTABLE
            | Keyword::IMPORT
            | Keyword::IN
            | Keyword::INCLUDE
            | Keyword::INCREMENT
            | Keyword::INDEX
            | Keyword::INHERIT
            | Keyword::INITIALLY
            | Keyword::INNER
            | Keyword::INOUT
            | Keyword::INPUT
            | Keyword::INSENSITIVE
            | Keyword::INSERT
            | Keyword::INSTEAD
            | Keyword::INT
            | Keyword::INT2
            | Keyword::INT4
            | Keyword::INT8
            | Keyword::INTEGER
            | Keyword::INTERSECT
            | Keyword::INTERVAL
            | Keyword::INTO
            | Keyword::INVOKER
            | Keyword::IS
            | Keyword::ISOLATION
            | Keyword::JOIN
            | Keyword::KEY
            | Keyword::LANGUAGE
            | Keyword::LARGE
            | Keyword::LAST
            | Keyword::LATERAL
            | Keyword::LEADING
            | Keyword::LEFT
            | Keyword::LEVEL
            | Keyword::LIKE
            | Keyword::LIMIT
            | Keyword::LISTEN
            | Keyword::LOAD
            | Keyword::LOCALTIME
            | Keyword::LOCALTIMESTAMP
            | Keyword::LOCATION
            | Keyword::LOCK
            | Keyword::LOCKED
            | Keyword::MATCH
            | Keyword::MATCHED
            | Keyword::MATERIALIZED
            | Keyword::MAXVALUE
            | Keyword::MERGE
            | Keyword::METHOD
            | Keyword::MINUTE
            | Keyword::MINVALUE
            | Keyword::MODE
            | Keyword::MONTH
            | Keyword::NATIONAL
            | Keyword::NATURAL
            | Keyword::NCHAR
            | Keyword::NEW
            | Keyword::NEXT
            | Keyword::NFC
            | Keyword::NFD
            | Keyword::NFKC
            | Keyword::NFKD
            | Keyword::NO
            | Keyword::NONE
            | Keyword::NORMALIZE
            | Keyword::NORMALIZED
            | Keyword::NOT
            | Keyword::NOTHING
            | Keyword::NOTIFY
            | Keyword::NOWAIT
            | Keyword::NULL
            | Keyword::NULLIF
            | Keyword::NULLS
            | Keyword::NUMERIC
            | Keyword::OBJECT
            | Keyword::OF
            | Keyword::OFF
            | Keyword::OFFSET
            | Keyword::OLD
            | Keyword::ON
            | Keyword::ONLY
            | Keyword::OPERATOR
            | Keyword::OPTION
            | Keyword::OPTIONS
            | Keyword::OR
            | Keyword::ORDER
            | Keyword::ORDINALITY
            | Keyword::OUT
            | Keyword::OUTER
            | Keyword::OVER
            | Keyword::OVERLAPS
            | Keyword::OVERLAY
            | Keyword::OWNED
            | Keyword::OWNER
            | Keyword::PARALLEL
            | Keyword::PARAMETER
            | Keyword::PARTITION
            | Keyword::PASSWORD
            | Keyword::PLACING
            | Keyword::PLANS
            | Keyword::POLICY
            | Keyword::POSITION
            | Keyword::PRECEDING
            | Keyword::PRECISION
            | Keyword::PREPARE
            | Keyword::PRESERVE
            | Keyword::PRIMARY
            | Keyword::PRIOR
            | Keyword::PRIVILEGES
            | Keyword::PROCEDURE
            | Keyword::PROGRAM
            | Keyword::QUOTE
            | Keyword::RANGE
            | Keyword::READ
            | Keyword::REAL
            | Keyword::RECURSIVE
            | Keyword::REF
            | Keyword::REFERENCES
            | Keyword::REFERENCING
            | Keyword::REGCLASS
            | Keyword::RELATIVE
            | Keyword::RELEASE
            | Keyword::RENAME
            | Keyword::REPEATABLE
            | Keyword::REPLACE
            | Keyword::REPLICA
            | Keyword::RESET
            | Keyword::RESTART
            | Keyword::RESTRICT
            | Keyword::RETURN
            | Keyword::RETURNING
            | Keyword::RETURNS
            | Keyword::REVOKE
            | Keyword::RIGHT
            | Keyword::ROLE
            | Keyword::ROLLBACK
            | Keyword::ROLLUP
            | Keyword::ROW
            | Keyword::ROWS
            | Keyword::RULE
            | Keyword::SAVEPOINT
            | Keyword::SCHEMA
            | Keyword::SCHEMAS
            | Keyword::SCROLL
            | Keyword::SEARCH
            | Keyword::SECOND
            | Keyword::SECURITY
            | Keyword::SELECT
            | Keyword::SEQUENCE
            | Keyword::SEQUENCES
            | Keyword::SERIALIZABLE
            | Keyword::SESSION
            | Keyword::SESSION_USER
            | Keyword::SET
            | Keyword::SETS
            | Keyword::SHARE
            | Keyword::SHOW
            | Keyword::SIMILAR
            | Keyword::SKIP
            | Keyword::SMALLINT
            | Keyword::SNAPSHOT
            | Keyword::SOME
            | Keyword::SQL
            | Keyword::STABLE
            | Keyword::START
            | Keyword::STATEMENT
            | Keyword::STATISTICS
            | Keyword::STDIN
            | Keyword::STDOUT
            | Keyword::STORED
            | Keyword::STRICT
            | Keyword::SUBSTRING
            | Keyword::SUPPORT
            | Keyword::SYMMETRIC
            | Keyword::SYSTEM
            | Keyword::TABLE
            | Keyword::TABLES
            | Keyword::TABLESAMPLE
            | Keyword::TEMP
            | Keyword::TEMPORARY
            | Keyword::TEXT
            | Keyword::THEN
            | Keyword::TIES
            | Keyword::TIME
            | Keyword::TIMESTAMP
            | Keyword::TIMESTAMPTZ
            | Keyword::TIMETZ
            | Keyword::TO
            | Keyword::TRAILING
            | Keyword::TRANSACTION
            | Keyword::TREAT
            | Keyword::TRIGGER
            | Keyword::TRIM
            | Keyword::TRUE
            | Keyword::TRUNCATE
            | Keyword::TYPE
            | Keyword::UESCAPE
            | Keyword::UNBOUNDED
            | Keyword::UNCOMMITTED
            | Keyword::UNION
            | Keyword::UNIQUE
            | Keyword::UNKNOWN
            | Keyword::UNLISTEN
            | Keyword::UNLOGGED
            | Keyword::UNTIL
            | Keyword::UPDATE
            | Keyword::USER
            | Keyword::USING
            | Keyword::UUID
            | Keyword::VACUUM
            | Keyword::VALID
            | Keyword::VALUE
            | Keyword::VALUES
            | Keyword::VARBIT
            | Keyword::VARCHAR
            | Keyword::VARYING
            | Keyword::VERBOSE
            | Keyword::VERSION
            | Keyword::VIEWS
            | Keyword::VOLATILE
            | Keyword::WHEN
            | Keyword::WHERE
            | Keyword::WINDOW
            | Keyword::WITH
            | Keyword::WITHIN
            | Keyword::WITHOUT
            | Keyword::WORK
            | Keyword::WRITE
            | Keyword::YEAR
            | Keyword::ZONE
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_sorted() {
        for list in [&RESERVED[..], &FUNCTION_OR_TYPE, &NO_FUNCTION, &NEEDS_AS] {
            assert!(list.is_sorted());
        }
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

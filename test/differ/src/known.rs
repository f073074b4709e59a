//! Differences from PostgreSQL that are meant. Each shape has an example that still differs and the
//! page that documents the difference. There are at most 40 shapes, none for a feature that is
//! listed as supported.

use crate::compare::Answer;

/// A kind of difference.
pub(crate) struct Shape {
    pub(crate) name: &'static str,
    /// A statement of this shape.
    pub(crate) example: &'static str,
    /// The page that documents the difference.
    pub(crate) page: &'static str,
    /// Whether only a statement that cannot be made smaller has this shape.
    shrunk: bool,
    fits: fn(&Case<'_>) -> bool,
}

/// A statement on which the servers differ.
pub(crate) struct Case<'a> {
    pub(crate) sql: &'a str,
    /// The script that the statement is a part of, or the statement itself.
    pub(crate) whole: &'a str,
    pub(crate) postgres: &'a Answer,
    pub(crate) trellis: &'a Answer,
}

/// All shapes.
pub(crate) const SHAPES: &[Shape] = &[
    Shape {
        name: "an UPDATE may shift unique keys onto each other",
        example: "UPDATE m2 SET k1 = k1 + 1 WHERE k2 = 'a'",
        page: DIFFERENCES,
        shrunk: false,
        fits: |case| {
            case.sql.starts_with("UPDATE")
                && case.postgres.state() == "23505"
                && case.trellis.state().is_empty()
        },
    },
    Shape {
        name: "of several violated constraints any is reported",
        example: "INSERT INTO m1 (id, a, b) VALUES (78, 1, 'a'), (1, 2, 'b'), (79, 1, NULL)",
        page: DIFFERENCES,
        shrunk: false,
        fits: |case| {
            // Both servers refuse the change. They find a violated constraint and an error of an
            // expression in different orders.
            let changes = ["INSERT", "UPDATE", "DELETE"];
            let violated = |answer: &Answer| answer.state().starts_with("23");
            let refused = |answer: &Answer| {
                let state = answer.state();
                violated(answer) || state == "21000" || state.starts_with("22")
            };
            changes.iter().any(|word| case.sql.starts_with(word))
                && (violated(case.postgres)
                    || violated(case.trellis)
                    || case.postgres.state() == "21000")
                && refused(case.postgres)
                && refused(case.trellis)
        },
    },
    Shape {
        name: "texts that do not fit their format",
        example: "SELECT to_date('389460597', 'WW YYYY')",
        page: DIFFERENCES,
        shrunk: true,
        fits: |case| {
            let reads = ["to_date(", "to_timestamp("];
            let of = |answer: &Answer| {
                let state = answer.state();
                state.is_empty()
                    || state.starts_with("22")
                    || says(answer, "0A000", "only supported in to_char")
            };
            reads.iter().any(|name| case.whole.contains(name))
                && case.whole.len() < SMALL_BYTES
                && of(case.postgres)
                && of(case.trellis)
        },
    },
    Shape {
        name: "of several errors of a query another one is met first",
        example: "SELECT '{Z,Z}'::text[] || ' trim ' WHERE 7 = ANY ((SELECT '{-3}'::integer[]))",
        page: DIFFERENCES,
        shrunk: true,
        fits: |case| {
            let late = says(case.postgres, "22P02", "malformed array literal");
            (late && case.trellis.state() == "42883")
                || (says(case.postgres, "54000", "array size exceeds")
                    && case.trellis.state().starts_with("22"))
                || (case.postgres.state() == "42601"
                    && says(case.trellis, "54000", "requested length"))
        },
    },
    Shape {
        name: "of values that fail in different ways another one is met first",
        example: "SELECT daterange(NULL, x2.h, x1.v) FROM t2 AS x1 JOIN t1 AS x2 ON x1.k1 <> x2.a",
        page: DIFFERENCES,
        shrunk: true,
        fits: |case| fails(case.postgres) && fails(case.trellis),
    },
    Shape {
        name: "aggregates take literals of unknown type for text",
        example: "SELECT array_agg('a') FROM t1",
        page: DIFFERENCES,
        shrunk: false,
        fits: |case| case.postgres.state() == "42725" && case.sql.contains("array_agg('"),
    },
    Shape {
        name: "basic regular expressions",
        example: "SELECT regexp_like('a', 'a', 'b')",
        page: DIFFERENCES,
        shrunk: false,
        fits: |case| says(case.trellis, "0A000", "basic regular expressions"),
    },
    Shape {
        name: "constants made of parameters are computed for rows only",
        example: "EXECUTE shape (0)",
        page: DIFFERENCES,
        shrunk: false,
        fits: |case| {
            case.sql.starts_with("EXECUTE")
                && case.postgres.state().starts_with("22")
                && case.trellis.state().is_empty()
        },
    },
    Shape {
        name: "PREPARE fails where its constants do",
        example: "PREPARE late AS SELECT 1 / 0",
        page: DIFFERENCES,
        shrunk: false,
        fits: |case| {
            case.sql.starts_with("PREPARE")
                && case.postgres.state().is_empty()
                && case.trellis.state().starts_with("22")
        },
    },
    Shape {
        name: "an interval of a day or more is no time zone of a time",
        example: "SELECT timezone(INTERVAL '23:20', '12:00+00'::timetz)",
        page: DIFFERENCES,
        shrunk: true,
        fits: |case| {
            case.postgres.gives_rows() && says(case.trellis, "22009", "displacement out of range")
        },
    },
    Shape {
        name: "COLLATE \"C\" orders by bytes but knows all letters",
        example: "SELECT upper('ä' COLLATE \"C\")",
        page: DIFFERENCES,
        shrunk: true,
        fits: |case| {
            case.sql.contains("COLLATE \"C\"")
                && case.postgres.gives_rows()
                && case.trellis.gives_rows()
        },
    },
    Shape {
        name: "V of an integer that overflows",
        example: "SELECT to_char(2147483647, '099V9')",
        page: DIFFERENCES,
        shrunk: true,
        fits: |case| {
            case.sql.contains("to_char(")
                && case.sql.contains("V9")
                && case.postgres.gives_rows()
                && case.trellis.gives_rows()
        },
    },
    Shape {
        name: "parts of make_interval that overflow",
        example: "SELECT make_interval(0, 0, 2147483647)",
        page: DIFFERENCES,
        shrunk: true,
        fits: |case| {
            case.whole.contains("make_interval(")
                && case.postgres.gives_rows()
                && case.trellis.state() == "22008"
        },
    },
    Shape {
        name: "aggregates of floats differ in their last digits, and so does what rounds them",
        example: "SELECT (var_pop(x1.f) * 1e11)::bigint % 1000, (var_samp(x1.f) * \
                  1e11)::bigint % 1000, (stddev(x1.f) * 1e13)::bigint % 1000 FROM t1 x1 \
                  WHERE x1.b > 0",
        page: DIFFERENCES,
        shrunk: true,
        fits: |case| {
            let rounds = [
                "floor(",
                "ceil",
                "round(",
                "trunc(",
                "sign(",
                "::integer",
                "::bigint",
            ];
            let over_rows = ["sum(", "avg(", "stddev", "var_", "variance("];
            let has = |names: &[&str]| names.iter().any(|name| case.sql.contains(name));
            // PostgreSQL adds reals in single precision.
            let of_reals = has(&["sum("]) && has(&[".r", "real"]);
            (of_reals || has(&rounds) && has(&over_rows))
                && has(&[".f", ".r", "double precision", "real"])
                && case.postgres.gives_rows()
                && case.trellis.gives_rows()
        },
    },
    Shape {
        name: "cube roots of floats inside of texts differ in their last digit",
        example: "SELECT concat('x', ||/ (-0.125)::float8)",
        page: DIFFERENCES,
        shrunk: true,
        fits: |case| {
            (case.sql.contains("||/") || case.sql.contains("cbrt("))
                && case.postgres.gives_rows()
                && case.trellis.gives_rows()
        },
    },
    Shape {
        name: "constants behind the column that decides a comparison of rows",
        example: "SELECT (1, 1 / 0) < (2, 3)",
        page: DIFFERENCES,
        shrunk: true,
        fits: |case| {
            let orders = [") < (", ") <= (", ") > (", ") >= ("];
            orders.iter().any(|op| case.sql.contains(op))
                && !case.postgres.state().is_empty()
                && case.trellis.state().is_empty()
        },
    },
    Shape {
        name: "width_bucket of a numeric very near to a bound",
        example: "SELECT width_bucket(1.5, '1000000000000000000'::numeric, '0'::numeric, 2)",
        page: DIFFERENCES,
        shrunk: true,
        fits: |case| {
            case.sql.contains("width_bucket(")
                && case.sql.contains("numeric")
                && case.postgres.gives_rows()
                && case.trellis.gives_rows()
        },
    },
    Shape {
        name: "a numeric that rounds up to a power of ten, with an exponent",
        example: "SELECT to_char(9.96, '9.9EEEE')",
        page: DIFFERENCES,
        shrunk: true,
        fits: |case| {
            case.sql.contains("EEEE")
                && case.postgres.to_string().contains("10.0")
                && case.trellis.gives_rows()
        },
    },
    Shape {
        name: "constants fail in columns that nobody reads, or do not fail where no row comes",
        example: "SELECT 1 FROM t1 JOIN (SELECT array_remove('{{1}}'::integer[], 1) FROM t1) AS x \
                  (c) ON x.c IS NULL WHERE false",
        page: DIFFERENCES,
        shrunk: false,
        fits: |case| {
            match fails(case.trellis) {
                true => case.postgres.state().is_empty(),
                // PostgreSQL computes it before it looks at rows, constraints included.
                false => {
                    let late = says(case.trellis, "22003", "numeric field overflow");
                    fails(case.postgres) && (late || !case.trellis.state().starts_with("22"))
                }
            }
        },
    },
    Shape {
        name: "bpchar without a length drops blanks",
        example: "SELECT octet_length(max(ch)) FROM t3",
        page: DIFFERENCES,
        shrunk: true,
        fits: |case| {
            let of_char = case.sql.contains("bpchar")
                || case.sql.contains(".ch)")
                || case.sql.contains("(ch)");
            of_char && case.postgres.gives_rows() && case.trellis.gives_rows()
        },
    },
];

/// Statements that prepare the examples.
pub(crate) const PREPARED: &str =
    "PREPARE shape (int) AS SELECT CASE WHEN id < 0 THEN 1 / $1 END FROM t1";

/// Longest statement of one call that cannot be made smaller, in bytes.
const SMALL_BYTES: usize = 160;

/// Errors of functions that fail for some values: SQLSTATE, and words of the message.
const FAILURES: [(&str, &str); 15] = [
    ("0A000", "multidimensional arrays is not supported"),
    ("22000", "empty or one-dimensional array"),
    ("22023", "inet values of different sizes"),
    ("22023", "addresses from different families"),
    ("22023", "invalid mask length"),
    ("22000", "range lower bound must be less than"),
    ("42601", "invalid range bound flags"),
    ("22000", "flags argument must not be null"),
    ("22004", "multirange values cannot contain null"),
    ("22023", "not a valid identifier"),
    ("22026", "bit strings of different sizes"),
    ("2202E", "cannot concatenate incompatible arrays"),
    ("2202E", "bit index"),
    ("0A000", "timestamps cannot be binned"),
    ("54000", "null character not permitted"),
];

const DIFFERENCES: &str = "docs/differences.md";

/// Whether the answer is an error with this SQLSTATE and these words.
fn says(answer: &Answer, sqlstate: &str, words: &str) -> bool {
    matches!(answer, Answer::Error { state, message }
        if state == sqlstate && message.contains(words))
}

/// Whether the answer is one of [`FAILURES`].
fn fails(answer: &Answer) -> bool {
    let mut failures = FAILURES.iter();
    failures.any(|(state, words)| says(answer, state, words))
}

/// The shape of a difference. `shrunk`: the statement cannot be made smaller.
pub(crate) fn shape(case: &Case<'_>, shrunk: bool) -> Option<&'static Shape> {
    let mut fitting = SHAPES.iter().filter(|shape| shrunk || !shape.shrunk);
    fitting.find(|shape| (shape.fits)(case))
}

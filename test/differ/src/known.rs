//! Where Trellis differs from PostgreSQL and is to: each shape with an example that still differs
//! and the page that says so. At most 40; none for a feature that is listed as supported.

use crate::compare::Answer;

/// A kind of difference.
pub(crate) struct Shape {
    pub(crate) name: &'static str,
    /// A statement of this shape.
    pub(crate) example: &'static str,
    /// Where the documents tell of it.
    pub(crate) page: &'static str,
    fits: fn(&Case<'_>) -> bool,
}

/// A statement on which the servers differ.
pub(crate) struct Case<'a> {
    pub(crate) sql: &'a str,
    pub(crate) postgres: &'a Answer,
    pub(crate) trellis: &'a Answer,
}

/// All shapes.
pub(crate) const SHAPES: &[Shape] = &[
    Shape {
        name: "an UPDATE may shift unique keys onto each other",
        example: "UPDATE m2 SET k1 = k1 + 1 WHERE k2 = 'a'",
        page: DIFFERENCES,
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
        fits: |case| {
            let violated = |answer: &Answer| answer.state().starts_with("23");
            let one = violated(case.postgres) || violated(case.trellis);
            let again =
                |answer: &Answer| violated(answer) || ["21000", "22003"].contains(&answer.state());
            one && again(case.postgres) && again(case.trellis)
        },
    },
    Shape {
        name: "texts that do not fit their format",
        example: "SELECT to_number('$45', '9,999.9')",
        page: DIFFERENCES,
        fits: |case| {
            let reads = ["to_number(", "to_date(", "to_timestamp("];
            reads.iter().any(|name| case.sql.contains(name))
        },
    },
    Shape {
        name: "an argument that fails beside one that is NULL",
        example: "SELECT substring(NULL::text, 0, \
                  width_bucket(3.0::float8, '-Infinity'::float8, 1::float8, 5))",
        page: DIFFERENCES,
        fits: |case| {
            case.postgres.state().starts_with("22")
                && case.trellis.state().is_empty()
                && case.sql.contains("NULL")
        },
    },
    Shape {
        name: "LATERAL behind a FULL JOIN behind a comma",
        example: "SELECT 1 FROM t1 AS a, t1 AS b FULL JOIN t1 AS e ON b.id = e.id \
                  LEFT JOIN LATERAL (SELECT a.id) AS c (x) ON true",
        page: DIFFERENCES,
        fits: |case| {
            case.sql.contains("LATERAL") && says(case.trellis, "42P01", "missing FROM-clause entry")
        },
    },
    Shape {
        name: "OVERLAPS",
        example: "SELECT (DATE '2000-01-01', DATE '2000-01-02') OVERLAPS (NULL, NULL)",
        page: DIFFERENCES,
        fits: |case| says(case.trellis, "0A000", "OVERLAPS"),
    },
    Shape {
        name: "numerics have 38 digits and no infinity",
        example: "SELECT '1e40'::numeric",
        page: DIFFERENCES,
        fits: |case| {
            says(case.trellis, "22003", "numeric format")
                || says(case.trellis, "0A000", "numeric infinity")
        },
    },
    Shape {
        name: "aggregates take literals of unknown type for text",
        example: "SELECT array_agg('a') FROM t1",
        page: DIFFERENCES,
        fits: |case| case.postgres.state() == "42725" && case.trellis.state().is_empty(),
    },
    Shape {
        name: "back references in regular expressions",
        example: "SELECT 'aa' ~ '(a)\\1'",
        page: DIFFERENCES,
        fits: |case| says(case.trellis, "0A000", "back references"),
    },
];

const DIFFERENCES: &str = "docs/differences.md";

/// Whether it is this error, with these words.
fn says(answer: &Answer, sqlstate: &str, words: &str) -> bool {
    matches!(answer, Answer::Error { state, message }
        if state == sqlstate && message.contains(words))
}

/// The shape that a difference has.
pub(crate) fn shape(case: &Case<'_>) -> Option<&'static Shape> {
    SHAPES.iter().find(|shape| (shape.fits)(case))
}

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
        example: "INSERT INTO m2 (k1, k2, m) VALUES (77, 'a', 77), (NULL, 'b', 1)",
        page: DIFFERENCES,
        fits: |case| {
            let violated = |answer: &Answer| answer.state().starts_with("23");
            violated(case.postgres) && violated(case.trellis)
        },
    },
    Shape {
        name: "back references in regular expressions",
        example: "SELECT 'aa' ~ '(a)\\1'",
        page: DIFFERENCES,
        fits: |case| {
            matches!(case.trellis, Answer::Error { state, message }
                if state == "0A000" && message.contains("back references"))
        },
    },
];

const DIFFERENCES: &str = "docs/differences.md";

/// The shape that a difference has.
pub(crate) fn shape(case: &Case<'_>) -> Option<&'static Shape> {
    SHAPES.iter().find(|shape| (shape.fits)(case))
}

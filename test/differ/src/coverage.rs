//! Counts for every rule, function and operator: how often a statement used it, and how often that
//! statement succeeded.

use crate::arguments::LEFT_OUT;
use crate::compare::Answer;
use crate::expr::usable;
use crate::tree::Node;
use expr::aggregate::AGGREGATES;
use expr::resolve::Form;
use std::collections::BTreeMap;

/// Statements of a full run that must use each rule, function and operator, at least.
pub(crate) const AT_LEAST: u64 = 50;

/// Rules that the generator has beside functions and operators.
const RULES: &[&str] = &[
    "add check",
    "add column",
    "add foreign key",
    "add unique",
    "aggregate order",
    "and",
    "any array",
    "array constructor",
    "at time zone",
    "begin",
    "between",
    "block",
    "case searched",
    "case simple",
    "cast",
    "cast ::",
    "change a table",
    "change from",
    "collate",
    "column",
    "column outer",
    "comparison",
    "create index",
    "create table",
    "deallocate",
    "default",
    "delete",
    "distinct",
    "document",
    "drop column",
    "drop constraint",
    "drop index",
    "drop table",
    "end of a block",
    "execute",
    "exists",
    "expression",
    "extract from",
    "fill a table",
    "filter",
    "frame groups",
    "frame range",
    "frame range offset",
    "frame rows",
    "from",
    "generate_series",
    "group by",
    "group by cube",
    "group by rollup",
    "grouping sets",
    "having",
    "in a block",
    "in list",
    "in subquery",
    "increment",
    "insert",
    "insert query",
    "insert values",
    "is distinct",
    "is null",
    "is truth",
    "join ,",
    "join cross join",
    "join full join",
    "join inner join",
    "join join",
    "join left join",
    "join left outer join",
    "join right join",
    "lateral subquery",
    "like",
    "limit",
    "literal",
    "not",
    "null",
    "offset",
    "on",
    "on conflict",
    "on conflict update",
    "on conflict where",
    "one value",
    "or",
    "order by",
    "over",
    "overlaps",
    "overlay placing",
    "partition by",
    "path exists",
    "path match",
    "path query",
    "position in",
    "prepare",
    "prepared",
    "query",
    "rename column",
    "reset",
    "returning",
    "row",
    "row comparison",
    "row in list",
    "scalar subquery",
    "schema",
    "select",
    "set",
    "set default",
    "set not null",
    "settings",
    "show",
    "subquery in from",
    "subscript",
    "substring from for",
    "table",
    "table of a script",
    "trim from",
    "under a setting",
    "union",
    "unnest",
    "untyped",
    "update",
    "using",
    "values in from",
    "where",
    "window avg",
    "window count",
    "window cume_dist",
    "window dense_rank",
    "window first_value",
    "window lag",
    "window last_value",
    "window lead",
    "window max",
    "window min",
    "window nth_value",
    "window ntile",
    "window percent_rank",
    "window rank",
    "window row_number",
    "window sum",
];

/// By name: statements that used it, and those of them that succeeded.
pub(crate) struct Coverage {
    counts: BTreeMap<String, (u64, u64)>,
    pub(crate) statements: u64,
    pub(crate) succeeded: u64,
    pub(crate) with_rows: u64,
}

impl Coverage {
    pub(crate) fn new() -> Coverage {
        let mut counts = BTreeMap::new();
        for listed in usable() {
            let kind = match listed.form {
                Form::Function => "function",
                Form::Infix => "operator",
                Form::Prefix => "prefix",
            };
            counts.insert(format!("{kind} {}", listed.name), (0, 0));
        }
        for name in ["coalesce", "nullif", "greatest", "least"] {
            counts.insert(format!("function {name}"), (0, 0));
        }
        for name in AGGREGATES {
            counts.insert(format!("aggregate {name}"), (0, 0));
        }
        counts.extend(RULES.iter().map(|rule| (rule.to_string(), (0, 0))));
        Coverage {
            counts,
            statements: 0,
            succeeded: 0,
            with_rows: 0,
        }
    }

    /// Notes a statement, or a script, and what PostgreSQL answered to each part.
    pub(crate) fn note(&mut self, statement: &Node, answers: &[Answer]) {
        let fine = |answer: &&Answer| answer.state().is_empty();
        let touched = |answer: &&Answer| {
            answer.gives_rows() || matches!(answer, Answer::Done(count) if *count > 0)
        };
        let succeeded = answers.iter().all(|answer| fine(&answer));
        self.statements += answers.len() as u64;
        self.succeeded += answers.iter().filter(fine).count() as u64;
        self.with_rows += answers.iter().filter(touched).count() as u64;
        let counts = &mut self.counts;
        statement.rules(&mut |rule| {
            if rule.is_empty() {
                return;
            }
            let count = counts.entry(rule.to_string()).or_default();
            count.0 += 1;
            count.1 += u64::from(succeeded);
        });
    }

    /// Names that were used by fewer than `at_least` statements.
    pub(crate) fn missing(&self, at_least: u64) -> Vec<(&str, u64)> {
        let rare = self
            .counts
            .iter()
            .filter(|(_, (tried, _))| *tried < at_least);
        rare.map(|(name, (tried, _))| (name.as_str(), *tried))
            .collect()
    }

    /// A table of all counts.
    pub(crate) fn table(&self) -> String {
        let mut out = format!("{:<32} {:>9} {:>9}\n", "tried", "times", "success");
        for (name, (tried, succeeded)) in &self.counts {
            out.push_str(&format!("{name:<32} {tried:>9} {succeeded:>9}\n"));
        }
        let left: Vec<&str> = LEFT_OUT.iter().map(|(name, _)| *name).collect();
        out.push_str(&format!("left out: {}\n", left.join(", ")));
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expr::Generator;

    /// Every rule, function and operator is reached by the generator, and nothing else is counted.
    #[test]
    fn all_is_drawn_and_listed() {
        let mut generator = Generator::new(1);
        let mut coverage = Coverage::new();
        let known: Vec<String> = coverage.counts.keys().cloned().collect();
        for _ in 0..70_000 {
            coverage.note(&generator.statement(), &[]);
        }
        let rare = coverage.missing(10);
        assert!(rare.is_empty(), "hardly drawn: {rare:?}");
        let unknown: Vec<&String> = coverage
            .counts
            .keys()
            .filter(|rule| !known.contains(rule))
            .collect();
        assert!(unknown.is_empty(), "not listed: {unknown:?}");
    }
}

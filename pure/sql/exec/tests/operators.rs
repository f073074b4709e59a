//! Random expressions over all operators: their values are those of PostgreSQL, so each operator
//! binds as it does there. `test/sql/operators.tsv` holds some thousand of them with PostgreSQL's
//! answers (`UPDATE=1` writes it where PostgreSQL is installed); where it is, further ones are
//! compared directly.
#![expect(
    clippy::disallowed_methods,
    reason = "a test reads its table, may write it, and starts PostgreSQL"
)]

mod fake;

use base::Prng;
use fake::Cluster;
use peer::Peer;
use std::fmt::Write;
use std::path::PathBuf;

/// Kinds of values; what an operator gives and takes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Number,
    Bool,
    Text,
}

struct Generator {
    prng: Prng,
    /// Of 100 operands, how many stand in parentheses.
    parentheses: u64,
}

impl Generator {
    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.prng.below(from.len() as u64) as usize]
    }

    /// A blank, or nothing.
    fn gap(&mut self) -> &'static str {
        if self.prng.below(2) == 0 { " " } else { "" }
    }

    fn expression(&mut self, kind: Kind, depth: u32) -> String {
        let text = if depth == 0 {
            self.leaf(kind)
        } else {
            match kind {
                Kind::Number => self.number(depth - 1),
                Kind::Bool => self.bool(depth - 1),
                Kind::Text => self.text(depth - 1),
            }
        };
        if self.prng.below(100) < self.parentheses {
            format!("({text})")
        } else {
            text
        }
    }

    fn leaf(&mut self, kind: Kind) -> String {
        let leaves: &[&str] = match kind {
            Kind::Number => &[
                "0", "1", "2", "3", "4", "7", "9", "2.5", "0.5", "'3'::int", "NULL",
            ],
            Kind::Bool => &["true", "false", "NULL", "'t'::bool"],
            Kind::Text => &["'a'", "'ab'", "'1'", "'a%'", "''", "'B'", "'x'::text"],
        };
        self.pick(leaves).to_string()
    }

    fn number(&mut self, depth: u32) -> String {
        let (a, b) = (
            self.expression(Kind::Number, depth),
            self.expression(Kind::Number, depth),
        );
        let (before, behind) = (self.gap(), self.gap());
        match self.prng.below(10) {
            0..6 => {
                let op = self.pick(&[
                    "+",
                    "-",
                    "*",
                    "/",
                    "%",
                    "^",
                    "<<",
                    ">>",
                    "&",
                    "|",
                    "#",
                    "OPERATOR(pg_catalog.+)",
                ]);
                format!("{a}{before}{op}{behind}{b}")
            }
            6..9 => {
                let op = self.pick(&["-", "+", "~", "@", "|/", "OPERATOR(-)"]);
                format!("{op}{behind}{a}")
            }
            _ => {
                let condition = self.expression(Kind::Bool, depth);
                let cast = self.pick(&["int", "numeric", "float8"]);
                format!("CASE WHEN {condition} THEN {a} ELSE {b} END::{cast}")
            }
        }
    }

    fn text(&mut self, depth: u32) -> String {
        let a = self.expression(Kind::Text, depth);
        let (before, behind) = (self.gap(), self.gap());
        match self.prng.below(4) {
            0 => {
                let number = self.expression(Kind::Number, depth);
                format!("{a}{before}||{behind}{number}")
            }
            1 => format!("{a} COLLATE \"C\""),
            _ => {
                let b = self.expression(Kind::Text, depth);
                format!("{a}{before}||{behind}{b}")
            }
        }
    }

    fn bool(&mut self, depth: u32) -> String {
        let some = |generator: &mut Generator| {
            let kind = match generator.prng.below(5) {
                0 | 1 => Kind::Bool,
                2 => Kind::Text,
                _ => Kind::Number,
            };
            generator.expression(kind, depth)
        };
        match self.prng.below(12) {
            0..3 => {
                let (a, b) = (some(self), some(self));
                let op = self.pick(&["=", "<>", "!=", "<", ">", "<=", ">="]);
                let (before, behind) = (self.gap(), self.gap());
                format!("{a}{before}{op}{behind}{b}")
            }
            3..5 => {
                let a = self.expression(Kind::Bool, depth);
                let b = self.expression(Kind::Bool, depth);
                let op = self.pick(&["AND", "OR"]);
                format!("{a} {op} {b}")
            }
            5 => format!("NOT {}", self.expression(Kind::Bool, depth)),
            6 => {
                let a = some(self);
                let test = self.pick(&["IS NULL", "IS NOT NULL", "ISNULL", "NOTNULL"]);
                format!("{a} {test}")
            }
            7 => {
                let a = self.expression(Kind::Bool, depth);
                let test = self.pick(&["IS TRUE", "IS NOT FALSE", "IS UNKNOWN", "IS NOT UNKNOWN"]);
                format!("{a} {test}")
            }
            8 => {
                let (a, b) = (some(self), some(self));
                let test = self.pick(&["IS DISTINCT FROM", "IS NOT DISTINCT FROM"]);
                format!("{a} {test} {b}")
            }
            9 => {
                let a = self.expression(Kind::Number, depth);
                let b = self.expression(Kind::Number, depth);
                let c = self.expression(Kind::Number, depth);
                let test = self.pick(&["BETWEEN", "NOT BETWEEN", "BETWEEN SYMMETRIC"]);
                format!("{a} {test} {b} AND {c}")
            }
            10 => {
                let a = self.expression(Kind::Number, depth);
                let b = self.expression(Kind::Number, depth);
                let c = self.expression(Kind::Number, depth);
                match self.prng.below(3) {
                    0 => format!("{a} IN ({b}, {c})"),
                    1 => format!("{a} NOT IN ({b}, {c})"),
                    _ => format!("{a} = ANY (ARRAY[{b}, {c}])"),
                }
            }
            _ => {
                let a = self.expression(Kind::Text, depth);
                let b = self.expression(Kind::Text, depth);
                let op = self.pick(&[
                    "LIKE", "NOT LIKE", "ILIKE", "~~", "!~~", "~", "!~", "~*", "^@",
                ]);
                format!("{a} {op} {b}")
            }
        }
    }
}

fn expressions(seed: u64, count: usize) -> Vec<String> {
    let mut generator = Generator {
        prng: Prng::new(seed),
        parentheses: 0,
    };
    let mut made = Vec::new();
    while made.len() < count {
        generator.parentheses = [0, 0, 10, 40][made.len() % 4];
        let kind = [Kind::Bool, Kind::Number, Kind::Bool, Kind::Text][made.len() / 4 % 4];
        let depth = 1 + generator.prng.below(3) as u32;
        let text = generator.expression(kind, depth);
        // A comment to both.
        if !text.contains("--") && !text.contains("/*") {
            made.push(text);
        }
    }
    made
}

/// The value of an expression as text, or the SQLSTATE.
fn ours(cluster: &Cluster, expression: &str) -> String {
    match cluster.run(&format!("SELECT ({expression})::text")) {
        Ok(outcome) => format!("={}", outcome.rows[0][0]),
        Err(error) => format!("error {}", error.state()),
    }
}

/// The same of PostgreSQL, for each expression.
fn theirs(peer: &Peer, expressions: &[String]) -> Vec<String> {
    // As many as fit on a command line.
    let parts = expressions.chunks(500);
    parts.flat_map(|part| answers(peer, part)).collect()
}

fn answers(peer: &Peer, expressions: &[String]) -> Vec<String> {
    let quoted = |text: &String| format!("('{}')", text.replace('\'', "''"));
    let list: Vec<String> = expressions.iter().map(quoted).collect();
    let script = format!(
        "CREATE OR REPLACE FUNCTION value(expression text) RETURNS text LANGUAGE plpgsql AS $f$
         DECLARE result text;
         BEGIN
             EXECUTE 'SELECT (' || expression || ')::text' INTO result;
             RETURN '=' || coalesce(result, 'NULL');
         EXCEPTION WHEN OTHERS THEN RETURN 'error ' || SQLSTATE;
         END $f$;
         SELECT value(e) FROM (VALUES {}) AS list (e);",
        list.join(", ")
    );
    let answers = peer.psql("postgres", &script);
    let answers: Vec<String> = answers.lines().map(str::to_string).collect();
    assert_eq!(answers.len(), expressions.len());
    answers
}

/// Differences that are no matter of the grammar: an error is raised by an operand that the other
/// one did not need to compute, or by the range of numerics; or of two errors the other one was
/// found first.
fn excused(ours: &str, theirs: &str) -> bool {
    let values = ["error 22003", "error 22012", "error 2201F", "error 22P02"];
    let excusable = |answer: &str| values.contains(&answer);
    let both = ours == "error 42883" && ["error 42804", "error 42725"].contains(&theirs);
    excusable(ours) || excusable(theirs) || both
}

fn table() -> PathBuf {
    PathBuf::from("../../../test/sql/operators.tsv")
}

#[test]
fn recorded_expressions_have_the_values_of_postgresql() {
    if std::env::var_os("UPDATE").is_some()
        && let Some(peer) = Peer::start()
    {
        let made = expressions(1, 2_000);
        let mut text = String::from("# expression<TAB>value or error; written by PostgreSQL 15\n");
        for (expression, answer) in made.iter().zip(theirs(&peer, &made)) {
            let _ = writeln!(text, "{expression}\t{answer}");
        }
        std::fs::write(table(), text).expect("a writable table");
    }
    let text = std::fs::read_to_string(table()).expect("the table is there");
    let cluster = Cluster::new();
    let (mut count, mut values, mut wrong) = (0, 0, String::new());
    for line in text.lines().filter(|line| !line.starts_with("# ")) {
        let (expression, theirs) = line.split_once('\t').expect("two columns");
        let ours = ours(&cluster, expression);
        count += 1;
        values += usize::from(!theirs.starts_with("error"));
        if ours != theirs && !excused(&ours, theirs) {
            let _ = writeln!(wrong, "{expression}\n  ours {ours}, theirs {theirs}");
        }
    }
    assert!(count >= 2_000 && values > 1_000, "{values} of {count}");
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn random_expressions_have_the_values_of_postgresql() {
    let Some(peer) = Peer::start() else { return };
    let cluster = Cluster::new();
    let mut wrong = String::new();
    for seed in 100..104 {
        let made = expressions(seed, 2_000);
        for (expression, theirs) in made.iter().zip(theirs(&peer, &made)) {
            let ours = ours(&cluster, expression);
            if ours != theirs && !excused(&ours, &theirs) {
                let _ = writeln!(wrong, "{seed} {expression}\n  ours {ours}, theirs {theirs}");
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

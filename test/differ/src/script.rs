//! Several statements that belong together: the life of a table, transaction blocks, prepared
//! statements with parameters, settings. Each statement is a node of its own, so a difference can
//! be made smaller by leaving statements out.

use crate::expr::Generator;
use crate::tree::{Node, Piece, Place};
use crate::values::{literal, written};
use base::Type;

/// Stands between the statements of a script.
pub(crate) const BETWEEN: &str = ";\n";

/// Types of columns of the tables that scripts make.
const COLUMN_TYPES: [Type; 8] = [
    Type::Int4,
    Type::Int8,
    Type::Text,
    Type::Numeric(None),
    Type::Bool,
    Type::Float8,
    Type::Date,
    Type::Timestamptz(None),
];

fn script(rule: &'static str, statements: Vec<Node>) -> Node {
    Node::new(rule, Place::Fixed).list(statements, BETWEEN)
}

/// A statement of a script that may be left out.
fn part(rule: &'static str, text: impl Into<String>) -> Node {
    Node::new(rule, Place::Optional).text(text)
}

fn around(rule: &'static str, statement: Node) -> Node {
    Node::new(rule, Place::Optional).node(statement)
}

impl Generator {
    /// A script.
    pub(crate) fn script(&mut self) -> Node {
        match self.below(8) {
            0 | 1 => self.schema(),
            2 | 3 => self.block(),
            4 | 5 => self.prepared(),
            _ => self.settings(),
        }
    }

    /// The life of a table: it is made, changed, filled and read.
    fn schema(&mut self) -> Node {
        let mut columns = vec![("id".to_string(), Type::Int4)];
        let mut texts = vec!["id int PRIMARY KEY".to_string()];
        for at in 1..=1 + self.below(3) {
            let ty = self.one_of(&COLUMN_TYPES);
            let name = format!("c{at}");
            texts.push(format!(
                "{name} {}{}",
                written(ty),
                self.column_constraint(&name, ty)
            ));
            columns.push((name, ty));
        }
        if self.one_in(4) {
            texts.push("CHECK (id < 100)".into());
        }
        let made = format!("CREATE TABLE s1 ({})", texts.join(", "));
        let mut all = vec![
            Node::new("drop table", Place::Fixed).text("DROP TABLE IF EXISTS s1"),
            Node::new("create table", Place::Fixed).text(made),
        ];
        all.push(self.rows_for(&columns));
        for number in 0..2 + self.below(4) {
            let change = self.schema_change(&columns, number);
            all.push(change);
            if self.one_in(2) {
                all.push(self.rows_for(&columns));
            }
        }
        let read = Node::new("table of a script", Place::Fixed);
        all.push(read.text("SELECT * FROM s1 ORDER BY id"));
        script("schema", all)
    }

    fn column_constraint(&mut self, name: &str, ty: Type) -> String {
        let value = literal(&mut self.prng, ty);
        match self.below(8) {
            0 => " NOT NULL".into(),
            1 => format!(" DEFAULT {value}"),
            2 if ty == Type::Int4 => " UNIQUE".into(),
            3 => format!(" CHECK ({name} <> {value})"),
            4 if ty == Type::Int4 => " REFERENCES t1 (id)".into(),
            _ => String::new(),
        }
    }

    fn rows_for(&mut self, columns: &[(String, Type)]) -> Node {
        let names: Vec<&str> = columns.iter().map(|(name, _)| name.as_str()).collect();
        let count = 1 + self.below(3);
        let rows: Vec<String> = (0..count)
            .map(|_| {
                let cells = columns.iter().map(|(name, ty)| match self.prng.below(6) {
                    _ if name == "id" => self.prng.between(1, 30).to_string(),
                    0 => "NULL".into(),
                    1 => "DEFAULT".into(),
                    _ => literal(&mut self.prng, *ty),
                });
                format!("({})", cells.collect::<Vec<String>>().join(", "))
            })
            .collect();
        let conflict = self.word(&["", " ON CONFLICT DO NOTHING"]);
        let (names, rows) = (names.join(", "), rows.join(", "));
        part(
            "fill a table",
            format!("INSERT INTO s1 ({names}) VALUES {rows}{conflict}"),
        )
    }

    fn schema_change(&mut self, columns: &[(String, Type)], number: usize) -> Node {
        let at = self.below(columns.len());
        let (name, ty) = columns[at].clone();
        let value = literal(&mut self.prng, ty);
        match self.below(14) {
            8.. => self.migration(&name, ty, &value, number),
            0 | 1 => part(
                "add check",
                format!("ALTER TABLE s1 ADD CONSTRAINT k{number} CHECK ({name} <> {value})"),
            ),
            2 => part(
                "add unique",
                format!("ALTER TABLE s1 ADD CONSTRAINT k{number} UNIQUE ({name})"),
            ),
            3 => part("add foreign key", {
                let action = self.word(&[
                    "",
                    " ON DELETE CASCADE",
                    " ON UPDATE RESTRICT",
                    " ON DELETE SET DEFAULT",
                    " ON UPDATE SET NULL",
                ]);
                format!("ALTER TABLE s1 ADD FOREIGN KEY ({name}) REFERENCES t1 (id){action}")
            }),
            4 | 5 => part("create index", {
                let unique = self.word(&["", "UNIQUE "]);
                let exists = self.word(&["", "IF NOT EXISTS "]);
                format!(
                    "CREATE {unique}INDEX {exists}s1_{} ON s1 ({name})",
                    number / 2
                )
            }),
            6 => part("drop index", {
                let exists = self.word(&["", "IF EXISTS "]);
                format!("DROP INDEX {exists}s1_{}", number / 2)
            }),
            7 => {
                let change = self.word(&["DELETE FROM s1", "UPDATE s1 SET", "TRUNCATE s1"]);
                let set = match change.ends_with("SET") {
                    true => format!(" {name} = {value}"),
                    false => String::new(),
                };
                let key = self.prng.between(1, 30);
                let rows = match change.starts_with("TRUNCATE") {
                    true => String::new(),
                    false => format!(" WHERE id < {key}"),
                };
                part("change a table", format!("{change}{set}{rows}"))
            }
        }
    }

    /// A change of a column that keeps the rows.
    fn migration(&mut self, name: &str, ty: Type, value: &str, number: usize) -> Node {
        match self.below(6) {
            0 => {
                let added = format!("d{number}");
                let constraint = self.column_constraint(&added, ty);
                let default = match constraint.contains("DEFAULT") || self.one_in(2) {
                    true => String::new(),
                    false => format!(" DEFAULT {value}"),
                };
                let exists = self.word(&["", "IF NOT EXISTS "]);
                let ty = written(ty);
                let text = format!("ADD COLUMN {exists}{added} {ty}{default}{constraint}");
                part("add column", format!("ALTER TABLE s1 {text}"))
            }
            // What the primary key goes with is not dropped.
            _ if name == "id" => part(
                "set not null",
                "ALTER TABLE s1 ALTER COLUMN id SET NOT NULL",
            ),
            1 => part("drop column", {
                let how = self.word(&["", " CASCADE", " RESTRICT"]);
                format!("ALTER TABLE s1 DROP COLUMN {name}{how}")
            }),
            2 => part("set not null", {
                let what = self.word(&["SET", "DROP", "SET"]);
                format!("ALTER TABLE s1 ALTER {name} {what} NOT NULL")
            }),
            3 => part("set default", {
                match self.one_in(3) {
                    true => format!("ALTER TABLE s1 ALTER {name} DROP DEFAULT"),
                    false => format!("ALTER TABLE s1 ALTER COLUMN {name} SET DEFAULT {value}"),
                }
            }),
            4 => part(
                "rename column",
                format!("ALTER TABLE s1 RENAME {name} TO r{number}"),
            ),
            _ => part(
                "drop constraint",
                format!(
                    "ALTER TABLE s1 DROP CONSTRAINT k{}, ADD e{number} int",
                    number / 2
                ),
            ),
        }
    }

    /// A transaction block.
    fn block(&mut self) -> Node {
        let begin = self.word(&[
            "BEGIN",
            "START TRANSACTION",
            "BEGIN ISOLATION LEVEL READ COMMITTED",
            "START TRANSACTION ISOLATION LEVEL REPEATABLE READ",
            "BEGIN ISOLATION LEVEL SERIALIZABLE, READ WRITE",
            "BEGIN READ ONLY",
        ]);
        let mut all = vec![Node::new("begin", Place::Fixed).text(begin)];
        for _ in 0..1 + self.below(4) {
            let statement = match self.below(4) {
                0 | 1 => self.change(),
                2 => self.read(),
                _ => Node::new("table of a script", Place::Fixed)
                    .text("SELECT * FROM m1 ORDER BY id"),
            };
            all.push(around("in a block", statement));
        }
        let end = self.word(&["COMMIT", "ROLLBACK", "END", "COMMIT"]);
        all.push(Node::new("end of a block", Place::Fixed).text(end));
        script("block", all)
    }

    /// A prepared statement whose literals are parameters, run twice.
    fn prepared(&mut self) -> Node {
        let mut statement = if self.one_in(3) {
            self.compute()
        } else {
            self.read()
        };
        let mut params: Vec<(Type, String)> = Vec::new();
        with_parameters(&mut statement, &mut params);
        let types: Vec<String> = params.iter().map(|(ty, _)| written(*ty)).collect();
        let first: Vec<&str> = params.iter().map(|(_, text)| text.as_str()).collect();
        let first = first.join(", ");
        let again: Vec<String> = params
            .iter()
            .map(|(ty, _)| literal(&mut self.prng, *ty))
            .collect();
        let types = match types.is_empty() {
            true => String::new(),
            false => format!(" ({})", types.join(", ")),
        };
        let run = |args: String| match args.is_empty() {
            true => "EXECUTE q".to_string(),
            false => format!("EXECUTE q ({args})"),
        };
        let prepare = Node::new("prepare", Place::Fixed);
        let all = vec![
            prepare
                .text(format!("PREPARE q{types} AS "))
                .node(statement),
            part("execute", run(first)),
            part("execute", run(again.join(", "))),
            Node::new("deallocate", Place::Fixed).text("DEALLOCATE q"),
        ];
        script("prepared", all)
    }

    /// Statements under another setting.
    fn settings(&mut self) -> Node {
        let (name, value) = match self.below(5) {
            0..=2 => (
                "TimeZone",
                self.word(&[
                    "'Europe/Berlin'",
                    "'America/New_York'",
                    "'Asia/Kathmandu'",
                    "'Australia/Lord_Howe'",
                    "-7",
                ]),
            ),
            3 => ("DateStyle", "'ISO, MDY'"),
            _ => ("extra_float_digits", self.word(&["1", "3"])),
        };
        let mut all = vec![
            Node::new("set", Place::Fixed).text(format!("SET {name} = {value}")),
            part("show", format!("SHOW {name}")),
        ];
        let zoned = name == "TimeZone";
        for _ in 0..2 + self.below(3) {
            let statement = match self.below(3) {
                0 if zoned => self.compute_of(&[Type::Timestamptz(None), Type::Text]),
                0 => self.compute(),
                _ if zoned => {
                    let types = [Type::Timestamptz(None), Type::Date, Type::Timestamp(None)];
                    self.read_of(&types)
                }
                _ => self.read(),
            };
            all.push(around("under a setting", statement));
        }
        all.push(Node::new("reset", Place::Fixed).text(format!("RESET {name}")));
        script("settings", all)
    }
}

/// Puts parameters in the place of literals.
fn with_parameters(node: &mut Node, params: &mut Vec<(Type, String)>) {
    if let (Place::Expr(ty), "literal") = (node.place, &*node.rule) {
        // A literal without a type gets the type of its place.
        let text = node.render();
        params.push((ty, text));
        let number = params.len();
        node.pieces = vec![Piece::Text(format!("${number}::{}", written(ty)))];
        return;
    }
    for piece in &mut node.pieces {
        if let Piece::Node(inner) = piece {
            with_parameters(inner, params);
        }
    }
}

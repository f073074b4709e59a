//! The run: it sends statements to both servers, compares the answers and makes statements with
//! different answers smaller.

use crate::compare::{Answer, Order, same};
use crate::coverage::{AT_LEAST, Coverage};
use crate::expr::Generator;
use crate::ground;
use crate::known::{self, Case};
use crate::script::BETWEEN;
use crate::tree::{Node, Place};
use base::Type;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use tokio_postgres::{Client, NoTls};

/// Options of the command line.
pub(crate) struct Options {
    urls: [String; 2],
    seconds: u64,
    seed: u64,
    statements: u64,
    coverage: Option<String>,
    /// Kinds of differences after which the run ends.
    kinds: usize,
}

impl Options {
    pub(crate) fn parse(args: &[String]) -> Option<Options> {
        let [postgres, trellis, rest @ ..] = args else {
            return None;
        };
        let mut options = Options {
            urls: [postgres.clone(), trellis.clone()],
            seconds: 60,
            seed: 1,
            statements: u64::MAX,
            coverage: None,
            kinds: 10,
        };
        for pair in rest.chunks(2) {
            let [flag, value] = pair else {
                return None;
            };
            match flag.as_str() {
                "--seconds" => options.seconds = value.parse().ok()?,
                "--seed" => options.seed = value.parse().ok()?,
                "--statements" => options.statements = value.parse().ok()?,
                "--coverage" => options.coverage = Some(value.clone()),
                "--differences" => options.kinds = value.parse().ok()?,
                _ => return None,
            }
        }
        Some(options)
    }
}

/// Settings of both sessions. A statement that takes longer is canceled (57014).
const SETTINGS: &str = "SET statement_timeout = '20s'; SET TimeZone = 'UTC'; \
                        SET client_min_messages = 'error';";
/// Statements that change tables between two fillings of those tables.
const CHANGES_UNTIL_FILLED: u64 = 40;
/// Steps by which a difference is made smaller, at most.
const STEPS_MAX: usize = 400;
/// Share of statements that must give rows.
const WITH_ROWS: f64 = 0.6;

/// A run under way.
pub(crate) struct Run {
    options: Options,
    /// PostgreSQL, then Trellis.
    clients: [Client; 2],
    generator: Generator,
    coverage: Coverage,
    changes: u64,
    /// By kind: how often the difference occurred, and the first one.
    found: BTreeMap<String, Found>,
    /// By shape: how often a difference that is meant occurred.
    known: BTreeMap<&'static str, u64>,
}

async fn connect(url: &str) -> Result<Client, String> {
    let failed = |error| format!("{url}: {error}");
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.map_err(failed)?;
    tokio::spawn(connection);
    client.batch_execute(SETTINGS).await.map_err(failed)?;
    Ok(client)
}

impl Run {
    /// Runs to the end. Returns whether all answers were the same.
    pub(crate) async fn go(options: Options) -> Result<bool, String> {
        let clients = [
            connect(&options.urls[0]).await?,
            connect(&options.urls[1]).await?,
        ];
        let mut run = Run {
            generator: Generator::new(options.seed),
            options,
            clients,
            coverage: Coverage::new(),
            changes: 0,
            found: BTreeMap::new(),
            known: BTreeMap::new(),
        };
        run.both(ground::MAKE_READ).await?;
        run.both(ground::MAKE_WRITTEN).await?;
        run.both(ground::FILL_WRITTEN).await?;
        run.both(known::PREPARED).await?;
        run.check_shapes().await;
        // Some of the examples change tables.
        run.both(ground::FILL_WRITTEN).await?;
        let start = Instant::now();
        let limit = Duration::from_secs(run.options.seconds);
        let mut told = start;
        while start.elapsed() < limit
            && run.coverage.statements < run.options.statements
            && run.found.len() < run.options.kinds
        {
            let statement = run.generator.statement();
            run.compare(statement).await?;
            if told.elapsed() >= Duration::from_secs(10) {
                told = Instant::now();
                println!(
                    "{:>4} s: {} statements, {} with rows, {} differ",
                    start.elapsed().as_secs(),
                    run.coverage.statements,
                    run.coverage.with_rows,
                    run.found.len()
                );
            }
        }
        Ok(run.report())
    }

    /// Runs several statements on both servers, which must succeed.
    async fn both(&mut self, sql: &str) -> Result<(), String> {
        for (client, name) in self.clients.iter().zip(["postgres", "trellis"]) {
            for statement in sql.split(";\n").filter(|text| !text.trim().is_empty()) {
                let result = client.simple_query(statement).await;
                result.map_err(|error| format!("{name}: {error}: {statement}"))?;
            }
        }
        Ok(())
    }

    /// Checks that the example of each shape still differs: otherwise the list is out of date.
    async fn check_shapes(&mut self) {
        for shape in known::SHAPES {
            let [postgres, trellis] = self.ask(shape.example).await;
            let case = Case {
                sql: shape.example,
                whole: shape.example,
                postgres: &postgres,
                trellis: &trellis,
            };
            let fits = known::shape(&case, true).is_some_and(|found| found.name == shape.name);
            if same(&postgres, &trellis, Order::Any) || !fits {
                let text = format!(
                    "the example of \"{}\" ({}) does not differ as the list says: {}",
                    shape.name, shape.page, shape.example
                );
                self.tell(text.clone(), &text);
            }
        }
    }

    /// Prints a difference unless one of its kind was printed before.
    fn tell(&mut self, kind: String, text: &str) {
        let found = self.found.entry(kind).or_default();
        found.count += 1;
        if found.count == 1 {
            println!("DIFFERS: {text}");
            found.first = text.to_owned();
        }
    }

    async fn ask(&self, sql: &str) -> [Answer; 2] {
        [
            Answer::ask(&self.clients[0], sql).await,
            Answer::ask(&self.clients[1], sql).await,
        ]
    }

    /// The answers to all parts of a statement.
    async fn ask_all(&self, sql: &str) -> Vec<[Answer; 2]> {
        let mut all = Vec::new();
        for part in sql.split(BETWEEN).filter(|part| !part.is_empty()) {
            all.push(self.ask(part).await);
        }
        all
    }

    async fn compare(&mut self, statement: Node) -> Result<(), String> {
        let changes = changes(&statement);
        let all = self.ask_all(&statement.render()).await;
        let of_postgres: Vec<Answer> = all.iter().map(|[postgres, _]| postgres.clone()).collect();
        self.coverage.note(&statement, &of_postgres);
        if let Some(found) = first_difference(&statement, all) {
            self.differ(statement, found).await?;
        }
        if changes {
            self.changes += 1;
            if self.changes.is_multiple_of(CHANGES_UNTIL_FILLED) {
                self.compare_contents().await?;
            }
        }
        Ok(())
    }

    /// The first part of a statement to which the servers give different answers.
    async fn differs(&self, statement: &Node) -> Option<Difference> {
        let all = self.ask_all(&statement.render()).await;
        first_difference(statement, all)
    }

    /// Reports a difference, unless it is meant.
    async fn differ(&mut self, statement: Node, found: Difference) -> Result<(), String> {
        let Difference { answers, .. } = &found;
        let lost = answers
            .iter()
            .any(|answer| matches!(answer, Answer::Lost(_)));
        if lost {
            let text = format!(
                "{}\n    {}\n    {}",
                statement.render(),
                answers[0],
                answers[1]
            );
            return Err(format!("a connection broke\n  {text}"));
        }
        if let Some(shape) = found.shape(&statement.render(), false) {
            *self.known.entry(shape.name).or_default() += 1;
            if changes(&statement) {
                self.both(ground::FILL_WRITTEN).await?;
            }
            return Ok(());
        }
        let (statement, found) = match changes(&statement) {
            true => (statement, found),
            false => self.shrink(statement, found).await,
        };
        if let Some(shape) = found.shape(&statement.render(), true) {
            *self.known.entry(shape.name).or_default() += 1;
            return Ok(());
        }
        let Difference { answers, sql } = &found;
        let whole = statement.render();
        let part = match *sql == whole {
            true => String::new(),
            false => format!("\n  in {sql}"),
        };
        let text = format!(
            "{whole}{part}\n    postgres: {}\n    trellis:  {}",
            answers[0], answers[1]
        );
        self.tell(kind(&statement, answers), &text);
        if changes(&statement) {
            self.both(ground::FILL_WRITTEN).await?;
        }
        Ok(())
    }

    /// The smallest statement found on which the servers differ in the same way.
    async fn shrink(&self, mut statement: Node, mut known: Difference) -> (Node, Difference) {
        let mut steps = 0;
        'smaller: loop {
            let mut candidates = statement.smaller();
            candidates.sort_by_key(Node::size);
            for candidate in candidates {
                steps += 1;
                if steps > STEPS_MAX {
                    break 'smaller;
                }
                let Some(found) = self.differs(&candidate).await else {
                    continue;
                };
                let state = |of: &Difference, at: usize| of.answers[at].state().to_string();
                let alike = (0..2).all(|at| state(&found, at) == state(&known, at));
                if alike && candidate.render().len() < statement.render().len() {
                    (statement, known) = (candidate, found);
                    continue 'smaller;
                }
            }
            break;
        }
        (statement, known)
    }

    /// Checks that the changed tables hold the same on both servers, then fills them again.
    async fn compare_contents(&mut self) -> Result<(), String> {
        for sql in ground::CONTENTS {
            let [postgres, trellis] = self.ask(sql).await;
            if !same(&postgres, &trellis, Order::Exact) {
                let text = format!("{sql}\n    postgres: {postgres}\n    trellis:  {trellis}");
                self.tell(format!("after changes: {sql}"), &text);
            }
        }
        self.both(ground::FILL_WRITTEN).await
    }

    fn report(&self) -> bool {
        let coverage = &self.coverage;
        if let Some(path) = &self.options.coverage
            && let Err(error) = std::fs::write(path, coverage.table())
        {
            println!("{path}: {error}");
            return false;
        }
        for (name, count) in &self.known {
            println!("meant to differ, {count} times: {name}");
        }
        let share = coverage.with_rows as f64 / coverage.statements.max(1) as f64;
        println!(
            "{} statements, {} succeeded, {} ({:.0} %) with rows",
            coverage.statements,
            coverage.succeeded,
            coverage.with_rows,
            share * 100.0
        );
        let missing = coverage.missing(AT_LEAST);
        println!(
            "{} rules, functions and operators were tried less than {AT_LEAST} times",
            missing.len()
        );
        for (name, tried) in missing.iter().take(20) {
            println!("  {name}: {tried}");
        }
        let good = self.found.is_empty() && share >= WITH_ROWS;
        for (kind, Found { count, first }) in &self.found {
            println!("differ, {count} times: {kind}\n  first: {first}");
        }
        let failed = self.found.len();
        println!("differ: {} passed, {failed} failed", coverage.statements);
        good
    }
}

/// Differences of one kind.
#[derive(Default)]
struct Found {
    count: u64,
    /// What was printed of the first one.
    first: String,
}

/// A part of a statement to which the servers give different answers.
struct Difference {
    sql: String,
    answers: [Answer; 2],
}

impl Difference {
    fn shape(&self, whole: &str, shrunk: bool) -> Option<&'static known::Shape> {
        let case = Case {
            sql: &self.sql,
            whole,
            postgres: &self.answers[0],
            trellis: &self.answers[1],
        };
        known::shape(&case, shrunk)
    }
}

fn first_difference(statement: &Node, all: Vec<[Answer; 2]>) -> Option<Difference> {
    let whole = statement.render();
    let parts: Vec<&str> = whole
        .split(BETWEEN)
        .filter(|part| !part.is_empty())
        .collect();
    for (part, answers) in parts.iter().zip(all) {
        let order = match (top_ordered(statement), parts.len()) {
            // One value, or the rows of a table by its key: there is only one right order.
            _ if statement.rule == "expression" || part.ends_with("ORDER BY id") => Order::Exact,
            (true, 1) => Order::Given,
            _ => Order::Any,
        };
        if !same(&answers[0], &answers[1], order) {
            let sql = part.to_string();
            return Some(Difference { sql, answers });
        }
    }
    None
}

/// The kind of a difference, from the answers and from the first call in the statement. Two
/// differences of one kind are taken to have one cause.
fn kind(statement: &Node, [postgres, trellis]: &[Answer; 2]) -> String {
    let mut call = String::new();
    statement.rules(&mut |rule| {
        let calls = ["function ", "operator ", "prefix ", "aggregate "];
        if call.is_empty() && calls.iter().any(|kind| rule.starts_with(kind)) {
            call = rule.to_string();
        }
    });
    let say = |answer: &Answer| match answer {
        Answer::Rows { rows, .. } => {
            format!("{} rows", if rows.is_empty() { "no" } else { "some" })
        }
        Answer::Done(_) => "done".into(),
        Answer::Error { state, message } => format!("{state} {message}"),
        Answer::Lost(_) => "lost".into(),
    };
    if let (Answer::Rows { names: a, .. }, Answer::Rows { names: b, .. }) = (postgres, trellis)
        && let Some((a, b)) = a.iter().zip(b).find(|(a, b)| a != b)
    {
        return format!("a column is called {a}, here {b}");
    }
    match (postgres, trellis) {
        (Answer::Error { .. }, _) | (_, Answer::Error { .. }) => {
            format!("{} / {}", say(postgres), say(trellis))
        }
        _ => format!("{} / {}, {call}", say(postgres), say(trellis)),
    }
}

/// Whether a statement changes tables.
fn changes(statement: &Node) -> bool {
    matches!(&*statement.rule, "insert" | "update" | "delete" | "block")
}

/// Whether the outermost query orders its rows.
fn top_ordered(statement: &Node) -> bool {
    let mut found = false;
    if statement.rule == "query" {
        for piece in &statement.pieces {
            if let crate::tree::Piece::Node(query) = piece {
                found |= query.pieces.iter().any(|piece| {
                    matches!(piece, crate::tree::Piece::Node(node) if node.rule == "order by")
                });
            }
        }
    }
    found
}

impl Generator {
    /// The next statement.
    pub(crate) fn statement(&mut self) -> Node {
        self.aliases = 0;
        self.scopes.clear();
        match self.below(40) {
            0..=13 => self.compute(),
            14..=20 => self.one_call(),
            21..=34 => self.read(),
            35..=38 => self.change(),
            // A script has about seven statements.
            _ => self.script(),
        }
    }

    /// One call of a function or operator; every one gets its turn.
    fn one_call(&mut self) -> Node {
        self.careful = false;
        self.subqueries = false;
        let all = self.turn();
        let node = Node::new("expression", Place::Fixed).text("SELECT ");
        let call = self.write_call(&all, Type::Bool, 1);
        node.node(call)
    }
}

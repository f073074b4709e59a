//! The parallel loader: schema, then chunks by COPY, with a book of what is done.
//!
//! Each chunk and its line in the bookkeeping table commit together, so a load that was stopped
//! goes on where it was, and no chunk is ever loaded twice: what a chunk had written when its load
//! was stopped, the server rolls back. It may also be committing a chunk at that moment, whose
//! line is not there yet when the next load reads the book. Then that load is refused the line or
//! a row (23505), looks again, and takes the chunk as done. The scale, the seed and the constants
//! are in the same table: a run takes them from there.

use super::{LoadOptions, Without, accounts, warehouses};
use crate::run::is_retryable;
use links::answers::Answers;
use links::cpu;
use links::error::{DriveError, While};
use links::homes::Homes;
use links::link::{Link, LinkError, Status};
use links::server::Server;
use links::url::Target;
use links::view::{Loaded, Progress};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use workload::dialect::Dialect;
use workload::dike::further::tables;
use workload::tpcc::random::Constants;
use workload::tpcc::rows::{Chunk, Content, rows_expected};
use workload::tpcc::schema::{self, SchemaOptions, Table};
use workload::tpcc::{Scale, Skew};

/// Attempts of one chunk when the server asks to try again.
const CHUNK_ATTEMPTS_MAX: u32 = 20;
const UNDEFINED_TABLE: &str = "42P01";
pub(super) const DUPLICATE_TABLE: &str = "42P07";
/// A key is there already; MariaDB's LOAD DATA leaves such rows out instead, and the client says
/// so with the second.
const DUPLICATE_KEY: [&str; 2] = ["23505", "22000"];
/// How often a chunk is looked for that somebody else seems to have loaded, and the time between.
const LOOKS_MAX: u32 = 50;
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// The bookkeeping table: settings and finished steps.
#[derive(Clone, Debug, Default)]
pub struct Book {
    entries: BTreeMap<String, String>,
}

impl Book {
    /// Reads the book. A database without one has not been loaded.
    pub fn read(link: &mut Link) -> Result<Book, DriveError> {
        match Book::find(link)? {
            Some(book) => Ok(book),
            None => Err(DriveError::NotLoaded(String::from(
                "the database holds no TPC-C data; `trellis bench load --url URL` loads it",
            ))),
        }
    }

    fn find(link: &mut Link) -> Result<Option<Book>, DriveError> {
        let mut answers = Answers::new();
        match link.query("SELECT step, value FROM tpcc_load", &mut answers) {
            Err(LinkError::Server(error)) if error.sqlstate == UNDEFINED_TABLE => return Ok(None),
            result => result.during("reading the state of the load")?,
        }
        let rows = 0..answers.rows(0);
        if rows.is_empty() {
            // A load was stopped before its first line.
            return Ok(None);
        }
        let entry = |row| {
            (
                answers.text(0, row, 0).to_string(),
                answers.text(0, row, 1).to_string(),
            )
        };
        Ok(Some(Book {
            entries: rows.map(entry).collect(),
        }))
    }

    fn number(&self, step: &str) -> Result<u64, DriveError> {
        self.entries
            .get(step)
            .and_then(|value| value.parse().ok())
            .ok_or_else(|| {
                DriveError::NotLoaded(format!("the bookkeeping table tpcc_load has no \"{step}\""))
            })
    }

    /// What was, or is being, loaded.
    pub fn content(&self) -> Result<Content, DriveError> {
        let size = |step| self.number(step).map(|value| value as u32);
        Ok(Content {
            scale: Scale {
                warehouses: size("warehouses")?,
                items: size("items")?,
                customers: size("customers")?,
                orders: size("orders")?,
                skew: self.skew()?,
            },
            seed: self.number("seed")?,
            constants: Constants {
                c_last: size("c_last")?,
                c_id: size("c_id")?,
                ol_i_id: size("ol_i_id")?,
            },
            now_us: self.number("now_us")?,
        })
    }

    /// How districts are dealt; evenly where an earlier version has loaded.
    fn skew(&self) -> Result<Skew, DriveError> {
        let thousandths = match self.has("skew") {
            true => self.number("skew")? as u32,
            false => 0,
        };
        Skew::of_thousandths(thousandths).ok_or_else(|| {
            DriveError::OtherData(format!(
                "tpcc_load says skew {thousandths}, more than 10000"
            ))
        })
    }

    /// What the tables were created without.
    pub fn without(&self) -> Without {
        Without {
            binding: self.has("without_binding"),
            broadcast: self.has("without_broadcast"),
        }
    }

    /// Whether there are the accounts of Dike's transactions.
    pub fn has_accounts(&self) -> bool {
        self.has(tables::STEP)
    }

    /// What was loaded; an error when the load is not finished.
    pub fn finished_content(&self) -> Result<Content, DriveError> {
        if !self.has("complete") {
            return Err(DriveError::NotLoaded(String::from(
                "the load is not finished; run it again and it goes on where it stopped",
            )));
        }
        self.content()
    }

    pub(super) fn has(&self, step: &str) -> bool {
        self.entries.contains_key(step)
    }

    fn create(
        link: &mut Link,
        content: &Content,
        options: &LoadOptions,
    ) -> Result<Book, DriveError> {
        let Content {
            scale,
            seed,
            constants,
            now_us,
        } = *content;
        let mut settings = vec![
            ("warehouses", u64::from(scale.warehouses)),
            ("items", u64::from(scale.items)),
            ("customers", u64::from(scale.customers)),
            ("orders", u64::from(scale.orders)),
            ("skew", u64::from(scale.skew.thousandths())),
            ("seed", seed),
            ("c_last", u64::from(constants.c_last)),
            ("c_id", u64::from(constants.c_id)),
            ("ol_i_id", u64::from(constants.ol_i_id)),
            ("now_us", now_us),
            ("foreign_keys", u64::from(options.foreign_keys)),
        ];
        let without = options.without.names();
        settings.extend(without.map(|name| (name, 1)));
        let rows: Vec<String> = settings
            .iter()
            .map(|(step, value)| format!("('{step}', '{value}')"))
            .collect();
        match link.command(schema::BOOKKEEPING) {
            // Without a line: an earlier load came as far as this.
            Err(LinkError::Server(error)) if error.sqlstate == DUPLICATE_TABLE => {}
            result => result.during("creating the bookkeeping table")?,
        }
        let insert = format!(
            "INSERT INTO tpcc_load (step, value) VALUES {}",
            rows.join(", ")
        );
        link.command(&insert)
            .during("writing the settings of the load")?;
        let entry = |(step, value): &(&str, u64)| (step.to_string(), value.to_string());
        Ok(Book {
            entries: settings.iter().map(entry).collect(),
        })
    }
}

/// Creates and fills the database, or goes on where an earlier load stopped.
pub(super) fn load(
    target: &Target,
    options: &LoadOptions,
    progress: &mut dyn Progress,
) -> Result<(), DriveError> {
    options.scale.validate().map_err(|error| {
        DriveError::Option(format!(
            "the scale {:?} cannot be used: {error:?}",
            options.scale
        ))
    })?;
    let (mut link, server) = Server::reach(target, None)?;
    if !server.is_trellis && options.without != Without::default() {
        return Err(DriveError::Option(String::from(
            "--without leaves out clauses of Trellis: this server's tables have none",
        )));
    }
    let (book, content) = open_book(&mut link, options)?;
    if book.has("complete") {
        let loaded = warehouses(content.scale.warehouses);
        progress.stage(&format!("{loaded} loaded before"));
        return accounts::load((link, target), &server, &book, options, progress);
    }
    if !book.has("schema") {
        progress.stage("creating tables");
        let schema = SchemaOptions {
            placement: server.is_trellis,
            binding: !options.without.binding,
            broadcast: !options.without.broadcast,
            foreign_keys: options.foreign_keys,
        };
        create_schema(&mut link, &schema, server.dialect)?;
    }
    progress.stage(&stage(&book, &content));
    fill(
        (&mut link, target),
        (&server, options),
        &content,
        &book,
        options.foreign_keys,
        progress,
    )?;
    if !server.is_trellis {
        progress.stage("vacuum and statistics");
        let sql = match server.dialect {
            Dialect::Postgres => String::from("VACUUM ANALYZE"),
            Dialect::MySql => {
                let tables = Table::ALL.map(Table::name).join(", ");
                format!("ANALYZE TABLE {tables}")
            }
        };
        link.command(&sql).during("collecting statistics")?;
    }
    link.command("INSERT INTO tpcc_load (step, value) VALUES ('complete', '1')")
        .during("finishing the load")?;
    accounts::load((link, target), &server, &book, options, progress)
}

/// Loads the rows that are not there yet, from files or from the seed.
fn fill(
    (link, target): (&mut Link, &Target),
    (server, options): (&Server, &LoadOptions),
    content: &Content,
    book: &Book,
    foreign_keys: bool,
    progress: &mut dyn Progress,
) -> Result<(), DriveError> {
    if let Some(folder) = &options.from {
        let jobs = if foreign_keys { 1 } else { options.jobs };
        return folder.load(target, book, jobs, progress);
    }
    let homes = match server.is_trellis {
        true => Homes::ask(link, target, content.scale.warehouses)
            .during("asking where the warehouses live")?,
        false => Homes::default(),
    };
    let to = (target, &homes);
    load_chunks(to, content, book, options.jobs, foreign_keys, progress)
}

/// What is loaded now, and what an earlier load has left to do.
fn stage(book: &Book, content: &Content) -> String {
    let loaded = warehouses(content.scale.warehouses);
    let all = Chunk::all(&content.scale);
    let done = all.iter().filter(|chunk| book.has(&chunk.step())).count();
    match done {
        0 => format!("loading {loaded}"),
        done => format!(
            "loading {loaded}: going on, {done} of {} parts were loaded before",
            all.len()
        ),
    }
}

fn open_book(link: &mut Link, options: &LoadOptions) -> Result<(Book, Content), DriveError> {
    if let Some(book) = Book::find(link)? {
        let content = book.content()?;
        if content.scale != options.scale || content.seed != options.seed {
            return Err(DriveError::OtherData(format!(
                "the database holds another load: {:?} with seed {}",
                content.scale, content.seed
            )));
        }
        let has_foreign_keys = book.number("foreign_keys").is_ok_and(|value| value == 1);
        if has_foreign_keys != options.foreign_keys {
            let with = if has_foreign_keys { "with" } else { "without" };
            return Err(DriveError::OtherData(format!(
                "the database holds another load: {with} foreign keys (--foreign-keys)"
            )));
        }
        if let Some(folder) = &options.from
            && folder.content != content
        {
            return Err(DriveError::OtherData(String::from(
                "the database holds another load: other constants or times than --from says",
            )));
        }
        if book.without() != options.without {
            return Err(DriveError::OtherData(format!(
                "the database holds another load: {}",
                book.without()
            )));
        }
        return Ok((book, content));
    }
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let content = match &options.from {
        Some(folder) => folder.content,
        None => Content {
            scale: options.scale,
            seed: options.seed,
            constants: Constants::for_load(options.seed),
            now_us: now.as_micros() as u64,
        },
    };
    let book = Book::create(link, &content, options)?;
    Ok((book, content))
}

/// Creates what is not there yet. Only called when our own book exists, so a table that is already
/// there is from an earlier attempt at the same load.
fn create_schema(
    link: &mut Link,
    options: &SchemaOptions,
    dialect: Dialect,
) -> Result<(), DriveError> {
    for statement in schema::create_all(options) {
        match link.command(&dialect.table(&statement)) {
            Err(LinkError::Server(error)) if error.sqlstate == DUPLICATE_TABLE => {}
            result => result.during("creating the schema")?,
        }
    }
    link.command("INSERT INTO tpcc_load (step, value) VALUES ('schema', '1')")
        .during("creating the schema")
}

fn load_chunks(
    to: (&Target, &Homes),
    content: &Content,
    book: &Book,
    jobs: u32,
    table_by_table: bool,
    progress: &mut dyn Progress,
) -> Result<(), DriveError> {
    let rows_expected = rows_expected(&content.scale);
    let all = Chunk::all(&content.scale);
    let (done, todo): (Vec<Chunk>, Vec<Chunk>) =
        all.into_iter().partition(|chunk| book.has(&chunk.step()));
    let before: u64 = done
        .iter()
        .filter_map(|chunk| book.number(&chunk.step()).ok())
        .sum();
    let started = Instant::now();
    let mut rows_now = 0;
    // With foreign keys a table must be complete before the next one names its rows.
    let groups: Vec<&[Chunk]> = match table_by_table {
        true => todo.chunk_by(|a, b| a.table == b.table).collect(),
        false => vec![&todo],
    };
    for group in groups {
        let mut note = |rows: u64| {
            rows_now += rows;
            let elapsed = started.elapsed();
            progress.loaded(&Loaded {
                rows: before + rows_now,
                rows_expected,
                elapsed,
                rows_now,
            });
        };
        load_group(to, content, group, jobs, &mut note)?;
    }
    Ok(())
}

fn load_group(
    to: (&Target, &Homes),
    content: &Content,
    chunks: &[Chunk],
    jobs: u32,
    note: &mut dyn FnMut(u64),
) -> Result<(), DriveError> {
    let next = AtomicUsize::new(0);
    let (report, reports) = mpsc::channel::<Result<u64, LinkError>>();
    let jobs = (jobs.max(1) as usize)
        .min(64.max(cpu::cores()))
        .min(chunks.len().max(1));
    std::thread::scope(|scope| {
        for number in 0..jobs {
            let (next, report) = (&next, report.clone());
            scope.spawn(move || {
                let mut take = || chunks.get(next.fetch_add(1, Ordering::Relaxed));
                if let Err(error) = load_some(to, content, number, &mut take, &report) {
                    // The others stop at their next chunk.
                    next.store(chunks.len(), Ordering::Relaxed);
                    let _ = report.send(Err(error));
                }
            });
        }
        drop(report);
        let mut result = Ok(());
        for entry in reports {
            match entry {
                Ok(rows) => note(rows),
                Err(error) => result = Err(DriveError::Link("loading", error)),
            }
        }
        result
    })
}

fn load_some<'c>(
    (target, homes): (&Target, &Homes),
    content: &Content,
    number: usize,
    take: &mut dyn FnMut() -> Option<&'c Chunk>,
    report: &mpsc::Sender<Result<u64, LinkError>>,
) -> Result<(), LinkError> {
    let mut links: Vec<Option<Link>> = target.endpoints.iter().map(|_| None).collect();
    let mut bytes = Vec::new();
    while let Some(chunk) = take() {
        bytes.clear();
        let rows = chunk.write(content, &mut bytes);
        let at = homes.of(chunk.warehouse);
        let at = at.unwrap_or(number % target.endpoints.len());
        let link = match &mut links[at] {
            Some(link) => link,
            none => none.insert(Link::connect(&target.endpoints[at], target, None)?),
        };
        load_chunk(link, (chunk.table.name(), &chunk.step()), &bytes, rows)?;
        // There is no receiver when the load was given up; the chunk is in the book all the same.
        let _ = report.send(Ok(rows));
    }
    links.into_iter().flatten().for_each(Link::close);
    Ok(())
}

/// Copies rows of a table and notes the step, both or nothing.
pub(super) fn load_chunk(
    link: &mut Link,
    of: (&str, &str),
    bytes: &[u8],
    rows: u64,
) -> Result<(), LinkError> {
    let mut attempt = 1;
    loop {
        match try_chunk(link, of, bytes, rows) {
            Err(LinkError::Server(error))
                if is_retryable(&error.sqlstate) && attempt < CHUNK_ATTEMPTS_MAX =>
            {
                if link.status() != Status::Idle {
                    link.command("ROLLBACK")?;
                }
                std::thread::sleep(Duration::from_millis(10 * u64::from(attempt)));
                attempt += 1;
            }
            Err(LinkError::Server(error)) if DUPLICATE_KEY.contains(&error.sqlstate.as_str()) => {
                if link.status() != Status::Idle {
                    link.command("ROLLBACK")?;
                }
                return match is_in_book(link, of.1)? {
                    true => Ok(()),
                    false => Err(LinkError::Server(error)),
                };
            }
            result => return result,
        }
    }
}

/// Whether a chunk is in the book by now: a session whose client was killed commits what it was
/// told to.
fn is_in_book(link: &mut Link, step: &str) -> Result<bool, LinkError> {
    let question = format!("SELECT value FROM tpcc_load WHERE step = '{step}'");
    for _ in 0..LOOKS_MAX {
        let mut answers = Answers::new();
        link.query(&question, &mut answers)?;
        if answers.rows(0) > 0 {
            return Ok(true);
        }
        std::thread::sleep(LOOK_EVERY);
    }
    Ok(false)
}

fn try_chunk(
    link: &mut Link,
    (table, step): (&str, &str),
    bytes: &[u8],
    rows: u64,
) -> Result<(), LinkError> {
    link.command("BEGIN")?;
    let copied = link.copy_in(&format!("COPY {table} FROM STDIN"), bytes)?;
    if copied != rows {
        return Err(LinkError::Protocol(
            "COPY counted other rows than were sent",
        ));
    }
    link.command(&format!(
        "INSERT INTO tpcc_load (step, value) VALUES ('{step}', '{rows}')"
    ))?;
    link.command("COMMIT")
}

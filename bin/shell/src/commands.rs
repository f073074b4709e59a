//! What the commands do.

use crate::backslash::{self, Command, HELP, Watch};
use crate::catalog::{self, Relation, Titled};
use crate::connection::{CopySource, Said};
use crate::copy::{Copy, Place};
use crate::lines::Lines;
use crate::output::{Paging, shell};
use crate::shell::{Next, Shell};
use crate::syntax;
use crate::table::{Expanded, Format, Rows};
use anyhow::{Context, Result, bail};
use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

/// Data of `\copy` travels in pieces of this size.
const PIECE_BYTES: usize = 64 << 10;

impl Shell<'_> {
    /// Carries out a command. `text` is what has been typed of a statement.
    ///
    /// # Errors
    /// It failed; the caller prints why.
    pub(super) fn run_command(
        &mut self,
        command: Command,
        text: &mut String,
        lines: &mut dyn Lines,
    ) -> Result<Next> {
        match command {
            Command::Quit => return Ok(Next::Quit),
            Command::Include(path) => return self.run_file(Path::new(&path)),
            Command::Help => self.out.show(HELP)?,
            Command::Syntax(words) => self.out.show(&syntax::help(&words))?,
            Command::Timing(on) => {
                self.timing = on.unwrap_or(!self.timing);
                self.out
                    .say(&format!("Timing is {}.", on_off(self.timing)))?;
            }
            Command::Set(option, value) => self.set(&option, &value)?,
            Command::Connect(database) => {
                self.connection.reconnect(&database)?;
                lines.connected(&self.connection.target);
                self.out
                    .say(&format!("Connected to database \"{database}\"."))?;
            }
            Command::ConnectionInfo => self.connection_info()?,
            Command::Output(target) => self.out.redirect(&target)?,
            Command::Go { target, expanded } => self.go(&target, expanded, text, lines)?,
            Command::Watch(watch) => self.watch(watch, text, lines)?,
            Command::Edit(path) => self.edit(&path, text)?,
            Command::Copy(copy) => self.client_copy(&copy, lines)?,
            Command::Print if text.is_empty() && self.last.is_empty() => {
                self.out.say("Nothing was typed.")?;
            }
            Command::Print => {
                let shown = if text.is_empty() {
                    &self.last
                } else {
                    text.trim_end()
                };
                self.out.say(shown)?;
            }
            Command::Reset => text.clear(),
            Command::Write(path) => {
                let statement = self.statement_or_last(text);
                let written = std::fs::write(&path, format!("{statement}\n"));
                written.with_context(|| format!("cannot write {path}"))?;
            }
            Command::Echo(line) => self.out.write(format!("{line}\n").as_bytes())?,
            Command::Folder(path) => change_folder(&path)?,
            Command::Shell(line) => self.shell_command(&line)?,
            Command::LastError => match &self.last_error {
                Some(report) => self.out.say(report.in_full().trim_end())?,
                None => self.out.say("There was no error.")?,
            },
            Command::Show(queries) => self.show(&queries)?,
            Command::Describe { pattern, plus } => self.describe(&pattern, plus)?,
        }
        Ok(Next::Continue)
    }

    /// Closes what was opened for results.
    pub(crate) fn finish(&mut self) -> Result<()> {
        self.out.finish()?;
        self.out.flush()
    }

    fn statement_or_last(&self, text: &str) -> String {
        match text.trim() {
            "" => self.last.clone(),
            typed => typed.to_string(),
        }
    }

    fn set(&mut self, option: &str, value: &str) -> Result<()> {
        let switched = |now: bool| {
            let wanted = backslash::switch(value).map_err(anyhow::Error::msg)?;
            Ok::<bool, anyhow::Error>(wanted.unwrap_or(!now))
        };
        let said = match option {
            "expanded" | "x" => {
                let now = self.style.expanded;
                self.style.expanded = match value {
                    "auto" => Expanded::Auto,
                    _ if switched(now != Expanded::Off)? => Expanded::On,
                    _ => Expanded::Off,
                };
                format!("Expanded display is {}.", expanded(self.style.expanded))
            }
            "tuples_only" | "t" => {
                self.style.tuples_only = switched(self.style.tuples_only)?;
                format!("Tuples only is {}.", on_off(self.style.tuples_only))
            }
            "format" => {
                self.style.format = match value {
                    "" if self.style.format == Format::Aligned => Format::Unaligned,
                    "" | "aligned" | "wrapped" => Format::Aligned,
                    "unaligned" => Format::Unaligned,
                    "tsv" => Format::Tabs,
                    "csv" => Format::Csv,
                    _ => bail!("format is aligned, unaligned, tsv or csv, not {value}"),
                };
                format!("Output format is {}.", format(self.style.format))
            }
            "null" => {
                self.style.null = value.to_string();
                format!("NULL is shown as \"{value}\".")
            }
            "pager" => {
                self.out.paging = match value {
                    "always" => Paging::Always,
                    _ if switched(self.out.paging != Paging::Off)? => Paging::On,
                    _ => Paging::Off,
                };
                format!("Pager is {}.", paging(self.out.paging))
            }
            "" => {
                let lines = [
                    format!("expanded     {}", expanded(self.style.expanded)),
                    format!("format       {}", format(self.style.format)),
                    format!("null         '{}'", self.style.null),
                    format!("pager        {}", paging(self.out.paging)),
                    format!("tuples_only  {}", on_off(self.style.tuples_only)),
                ];
                lines.join("\n")
            }
            _ => bail!("there is no option {option}; \\pset lists them"),
        };
        self.out.say(&said)
    }

    fn connection_info(&mut self) -> Result<()> {
        let (version, endpoint) = self.connection.server()?;
        let target = &self.connection.target;
        let (user, database) = (target.user.clone(), target.database.clone());
        self.out.say(&format!(
            "Database \"{database}\" as user \"{user}\" on {endpoint}, server {version}."
        ))
    }

    fn go(
        &mut self,
        target: &str,
        is_expanded: bool,
        text: &mut String,
        lines: &mut dyn Lines,
    ) -> Result<()> {
        let statement = self.statement_or_last(text);
        text.clear();
        if statement.is_empty() {
            return Ok(());
        }
        let before = self.style.expanded;
        if is_expanded {
            self.style.expanded = Expanded::On;
        }
        if !target.is_empty() {
            self.out.redirect(target)?;
        }
        let result = self.statement(&statement, lines);
        self.style.expanded = before;
        if !target.is_empty() {
            self.out.redirect("")?;
        }
        result
    }

    fn watch(&mut self, watch: Watch, text: &mut String, lines: &mut dyn Lines) -> Result<()> {
        let statement = self.statement_or_last(text);
        text.clear();
        if statement.is_empty() {
            bail!("\\watch repeats a statement, and none was typed");
        }
        // A page that waits for a key would end the repetition.
        let paging = std::mem::replace(&mut self.out.paging, Paging::Off);
        self.interrupts.hold();
        let result = self.repeat(watch, &statement, lines);
        self.interrupts.release();
        self.out.paging = paging;
        result
    }

    fn repeat(&mut self, watch: Watch, statement: &str, lines: &mut dyn Lines) -> Result<()> {
        let mut count = 0;
        while watch.count.is_none_or(|most| count < most) && !self.interrupts.was_hit() {
            let next = Instant::now() + watch.every;
            let every = watch.every.as_secs_f64();
            self.out
                .write(format!("Run {} (every {every} s)\n", count + 1).as_bytes())?;
            self.last_error = None;
            self.statement(statement, lines)?;
            if self.last_error.is_some() {
                break;
            }
            count += 1;
            let is_last = watch.count == Some(count);
            while !is_last && !self.interrupts.was_hit() && Instant::now() < next {
                let left = next.saturating_duration_since(Instant::now());
                std::thread::sleep(left.min(Duration::from_millis(50)));
            }
        }
        Ok(())
    }

    /// Edits a file, or what was typed or the last statement; it is what was typed then.
    fn edit(&mut self, path: &str, text: &mut String) -> Result<()> {
        let is_ours = path.is_empty();
        let before = self.statement_or_last(text);
        let path = match is_ours {
            false => PathBuf::from(path),
            true => {
                let name = format!("trellis-edit-{}.sql", std::process::id());
                let path = std::env::temp_dir().join(name);
                std::fs::write(&path, format!("{before}\n"))
                    .with_context(|| format!("cannot write {}", path.display()))?;
                path
            }
        };
        let result = self.run_editor(&path);
        let after = std::fs::read_to_string(&path);
        if is_ours {
            // A file in the folder for such files; if it stays, nobody is harmed.
            let _ = std::fs::remove_file(&path);
        }
        result?;
        let after = after.with_context(|| format!("cannot read {}", path.display()))?;
        if is_ours && text.trim().is_empty() && after.trim() == before.trim() {
            return self.out.say("Unchanged: nothing is run.");
        }
        self.out.say(after.trim_end())?;
        *text = after.trim_end().to_string();
        Ok(())
    }

    fn run_editor(&mut self, path: &Path) -> Result<()> {
        let named = ["TRELLIS_EDITOR", "PSQL_EDITOR", "EDITOR", "VISUAL"]
            .iter()
            .find_map(|name| std::env::var(name).ok());
        let editor = named.unwrap_or_else(|| "vi".to_string());
        let quoted = path.display().to_string().replace('\'', r"'\''");
        self.shell_command(&format!("{editor} '{quoted}'"))
    }

    fn shell_command(&mut self, line: &str) -> Result<()> {
        self.out.flush()?;
        let user_shell = std::env::var("SHELL").unwrap_or_else(|_| "sh".into());
        let line = if line.is_empty() { &user_shell } else { line };
        // Ctrl-C is the program's while it runs.
        self.interrupts.hold();
        let status = shell(line).status();
        self.interrupts.release();
        let status = status.context("cannot start a shell")?;
        if !status.success() {
            bail!("{line} ended with {status}");
        }
        Ok(())
    }

    fn client_copy(&mut self, copy: &Copy, lines: &mut dyn Lines) -> Result<()> {
        let statement = copy.statement.as_str();
        match &copy.place {
            Place::Here => self.statement(statement, lines),
            Place::Standard if copy.is_from => self.copy_from(statement, &mut std::io::stdin()),
            // Standard output is the client's, whatever \o says.
            Place::Standard => self.copy_to(statement, &mut std::io::stdout()),
            Place::File(path) if copy.is_from => {
                let file = File::open(path).with_context(|| format!("cannot open {path}"))?;
                self.copy_from(statement, &mut BufReader::new(file))
            }
            Place::File(path) => {
                let file = File::create(path).with_context(|| format!("cannot write {path}"))?;
                let mut file = BufWriter::new(file);
                self.copy_to(statement, &mut file)?;
                file.flush().with_context(|| format!("cannot write {path}"))
            }
            Place::Program(line) => self.copy_with_program(statement, line, copy.is_from),
        }
    }

    fn copy_with_program(&mut self, statement: &str, line: &str, is_from: bool) -> Result<()> {
        let mut command = shell(line);
        match is_from {
            true => command.stdout(Stdio::piped()),
            false => command.stdin(Stdio::piped()),
        };
        let mut child = command
            .spawn()
            .with_context(|| format!("cannot start {line}"))?;
        let result = match (child.stdout.take(), child.stdin.take()) {
            (Some(mut data), _) => self.copy_from(statement, &mut data),
            (None, Some(mut sink)) => self.copy_to(statement, &mut sink),
            (None, None) => unreachable!("one of them is a pipe"),
        };
        let status = child.wait()?;
        result?;
        if !status.success() {
            bail!("{line} ended with {status}");
        }
        Ok(())
    }

    fn copy_from(&mut self, statement: &str, source: &mut dyn Read) -> Result<()> {
        let mut data = || {
            let mut piece = vec![0; PIECE_BYTES];
            match source.read(&mut piece) {
                Ok(0) => Ok(None),
                Ok(count) => {
                    piece.truncate(count);
                    Ok(Some(piece))
                }
                Err(error) => Err(format!("cannot read the data: {error}")),
            }
        };
        self.copy(statement, &mut data, &mut std::io::sink())
    }

    fn copy_to(&mut self, statement: &str, sink: &mut dyn Write) -> Result<()> {
        let nothing: &mut CopySource<'_> = &mut || Ok(None);
        self.copy(statement, nothing, sink)
    }

    fn show(&mut self, queries: &[Titled]) -> Result<()> {
        let mut text = String::new();
        let columns = self.out.size().map(|size| size.columns);
        for (title, query) in queries {
            let rows = self.rows(query)?;
            if rows.rows.is_empty() {
                if queries.len() == 1 && !self.style.tuples_only {
                    text.push_str(&format!("There are no such {}.\n", title.to_lowercase()));
                }
                continue;
            }
            if !text.is_empty() {
                text.push('\n');
            }
            if !title.is_empty() && !self.style.tuples_only {
                text.push_str(&format!("{title}\n"));
            }
            text.push_str(&rows.render(&self.style, columns));
        }
        self.out.show(&text)
    }

    fn describe(&mut self, pattern: &str, plus: bool) -> Result<()> {
        let found = self.rows(&catalog::find(pattern))?;
        let mut queries = Vec::new();
        for row in &found.rows {
            let [Some(oid), Some(schema), Some(name), Some(kind)] = row.as_slice() else {
                bail!("the catalog answers something else");
            };
            let relation = Relation {
                oid: oid.parse().context("the catalog answers no number")?,
                schema,
                name,
                kind,
            };
            queries.extend(catalog::describe(&relation, plus));
        }
        if queries.is_empty() {
            bail!("there is no relation {pattern}; \\d lists them");
        }
        self.show(&queries)
    }

    /// The rows of one catalog query.
    fn rows(&mut self, query: &str) -> Result<Rows> {
        let mut found = None;
        let mut problem = None;
        self.connection
            .run(query, &mut || Ok(None), &mut |said| match said {
                Said::Rows(rows, _) => found = Some(rows),
                Said::Failed(report) => problem = Some(report.render(query)),
                Said::Done(_) | Said::Notice(_) | Said::CopyOut(_) => {}
            })?;
        match (found, problem) {
            (_, Some(problem)) => bail!("{}", problem.trim_end()),
            (Some(rows), None) => Ok(rows),
            (None, None) => bail!("the catalog answers nothing"),
        }
    }
}

fn change_folder(path: &str) -> Result<()> {
    let path = match path {
        "" => std::env::home_dir().context("there is no home directory")?,
        path => PathBuf::from(path),
    };
    std::env::set_current_dir(&path).with_context(|| format!("cannot go to {}", path.display()))
}

fn on_off(on: bool) -> &'static str {
    if on { "on" } else { "off" }
}

fn expanded(expanded: Expanded) -> &'static str {
    match expanded {
        Expanded::On => "on",
        Expanded::Off => "off",
        Expanded::Auto => "used if a table is too wide",
    }
}

fn format(format: Format) -> &'static str {
    match format {
        Format::Aligned => "aligned",
        Format::Unaligned => "unaligned",
        Format::Tabs => "tsv",
        Format::Csv => "csv",
    }
}

fn paging(paging: Paging) -> &'static str {
    match paging {
        Paging::Off => "off",
        Paging::On => "used for long or wide results",
        Paging::Always => "always used",
    }
}

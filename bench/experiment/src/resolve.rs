//! From a file to the documents of its runs: inherits, unfolds, adds defaults, checks.

use crate::child::Evaluator;
use crate::jsonnet::{Answer, WrittenKey};
use crate::mistake::Mistake;
use crate::schema::{self, Stage};
use crate::source::{self, FILES_MAX, Language};
use crate::template;
use crate::tree::{DEPTH_MAX, Entry, Kind, Mark, NODES_MAX, Node, join};
use crate::yaml;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// Runs of one file at most.
pub const RUNS_MAX: usize = 1_000;
/// Files that inherit from each other in a chain at most.
const CHAIN_MAX: usize = 16;
/// Of resolved documents.
const FORMAT: &str = "format";
const EXTENDS: &str = "extends";
const VARY: &str = "vary";
/// Workloads that have no entities: the runner takes the only half that there is.
const WITHOUT_API: [&str; 3] = ["statements", "tpcc", "dike"];
/// How a workload is called that is a program of the user.
const PROGRAM: &str = "program";
const DEFAULTS: &str = include_str!("../../experiments/templates/defaults.yaml");

/// The document of one run, which says all that the run depends on.
#[derive(Clone, Debug)]
pub struct Resolved {
    node: Node,
    value: Value,
}

impl Resolved {
    /// As it is kept and read again: the same document again gives the same bytes.
    pub fn text(&self) -> String {
        format!("{:#}\n", self.value)
    }

    /// The document, with its `format`.
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// What a run gets: the document without what concerns files.
    pub fn for_run(&self) -> Value {
        let mut value = self.value.clone();
        if let Some(sections) = value.as_object_mut() {
            sections.remove(FORMAT);
        }
        value
    }

    /// A mistake at a path such as `population.threads`, with the line where that was written.
    pub fn mistake(&self, path: &str, text: &str) -> Mistake {
        let mut here = &self.node;
        let mut mark = &here.mark;
        for step in path.split('.').filter(|step| !step.is_empty()) {
            let next = match &here.kind {
                Kind::List(items) => {
                    let item = step.parse::<usize>().ok().and_then(|at| items.get(at));
                    item.map(|item| (&item.mark, item))
                }
                _ => here.get(step).map(|entry| (&entry.mark, &entry.value)),
            };
            let Some((next_mark, next)) = next else { break };
            (mark, here) = (next_mark, next);
        }
        mark.wrong(text).at_key(path)
    }
}

/// What a file stands for.
#[derive(Debug)]
pub struct Experiment {
    /// Its documents, in the order in which they run.
    pub runs: Vec<Resolved>,
    /// What `std.trace` said while a file of Jsonnet was evaluated.
    pub traces: Vec<String>,
}

/// Reads the file of an experiment. `store` replaces the store of all its runs.
///
/// # Errors
/// It cannot be read, says something that is not known, or stands for too much.
pub fn resolve(
    path: &Path,
    store: Option<&str>,
    evaluator: &Evaluator,
) -> Result<Experiment, Mistake> {
    let mut resolver = Resolver {
        evaluator,
        root: path.parent().unwrap_or(Path::new("")).to_owned(),
        traces: Vec::new(),
        files: 0,
    };
    let node = resolver.read(path)?;
    let documents = match node.kind {
        Kind::List(items) if items.is_empty() => {
            return Err(node.mark.wrong("the list has no documents"));
        }
        Kind::List(items) => items,
        _ => vec![node],
    };
    let mut runs = Vec::new();
    for (at, document) in documents.into_iter().enumerate() {
        let unfolded = resolver.document(document, path, store);
        let unfolded = unfolded.map_err(|mistake| match at {
            0 => mistake,
            // Which one of the list matters where all of them come from one line.
            _ if mistake.line == 0 => {
                let key = join(&at.to_string(), &mistake.key);
                mistake.at_key(&key)
            }
            _ => mistake,
        })?;
        runs.extend(unfolded);
        if runs.len() > RUNS_MAX {
            let text = format!("the file stands for more than {RUNS_MAX} runs");
            return Err(Mistake::of_file(&path.display().to_string(), text));
        }
    }
    Ok(Experiment {
        runs,
        traces: resolver.traces,
    })
}

struct Resolver<'e> {
    evaluator: &'e Evaluator,
    /// The folder of the experiment's file.
    root: PathBuf,
    traces: Vec<String>,
    files: usize,
}

impl Resolver<'_> {
    fn read(&mut self, path: &Path) -> Result<Node, Mistake> {
        let name = path.display().to_string();
        self.files += 1;
        if self.files > FILES_MAX {
            let text = format!("the experiment reads more than {FILES_MAX} files");
            return Err(Mistake::of_file(&name, text));
        }
        match Language::of(path) {
            Some(Language::Yaml) => yaml::read(&name, &source::read(path)?),
            Some(Language::Json) => yaml::read_json(&name, &source::read(path)?),
            Some(Language::Jsonnet) => {
                // A file that is not there is told without a child.
                source::read(path)?;
                let answer = self.evaluator.evaluate(path)?;
                let node = marked(&name, &answer);
                self.traces.extend(answer.traces);
                if node.count() > NODES_MAX {
                    let text = format!("its value has more than {NODES_MAX} parts");
                    return Err(Mistake::of_file(&name, text));
                }
                Ok(node)
            }
            None => Err(
                Mistake::of_file(&name, "the end of its name tells no language")
                    .next("an experiment is .yaml, .json or .jsonnet"),
            ),
        }
    }

    fn document(
        &mut self,
        node: Node,
        path: &Path,
        store: Option<&str>,
    ) -> Result<Vec<Resolved>, Mistake> {
        if node.get(FORMAT).is_some() {
            return complete(node, store).map(|run| vec![run]);
        }
        let mark = Mark {
            line: 0,
            ..node.mark.clone()
        };
        let mut document = self.inherited(node, path, 0)?;
        if let Some(url) = store {
            set_store(&mut document, &mark, url)?;
        }
        let vary = document.take(VARY);
        let documents = match vary {
            Some(vary) => unfold(&document, vary)?,
            None => vec![document],
        };
        let finished = |mut document: Node| {
            add_defaults(&mut document, path)?;
            finished(document)
        };
        documents.into_iter().map(finished).collect()
    }

    /// The document with what it inherits, in which `extends` is gone.
    fn inherited(&mut self, mut node: Node, path: &Path, depth: usize) -> Result<Node, Mistake> {
        schema::check(&node, Stage::Written)?;
        let Some(extends) = node.take(EXTENDS) else {
            return Ok(node);
        };
        if depth >= CHAIN_MAX {
            let text = format!("more than {CHAIN_MAX} documents inherit from each other");
            return Err(extends.mark.wrong(text).at_key(EXTENDS));
        }
        let names = match extends.value.kind {
            Kind::List(items) => items,
            _ => vec![extends.value],
        };
        let mut base = Node::new(node.mark.clone(), Kind::Map(Vec::new()));
        for name in names {
            let Kind::Text(text) = &name.kind else {
                let text = "this is no name of a template or a file";
                return Err(name.mark.wrong(text).at_key(EXTENDS));
            };
            let wrong = |text: String| name.mark.wrong(text).at_key(EXTENDS);
            let (parent, from) = match Language::of(Path::new(text)) {
                Some(_) => {
                    let found = source::beside(&self.root, path, text);
                    let found = found.map_err(|why| wrong(format!("{text}: {why}")))?;
                    (self.read(&found)?, found)
                }
                None => {
                    let template = template::text(text);
                    let template = template.ok_or_else(|| wrong(template::unknown(text)))?;
                    let file = format!("{}{text}", source::TEMPLATE);
                    (yaml::read(&file, template)?, path.to_owned())
                }
            };
            if parent.get(FORMAT).is_some() {
                let text = format!("{text} is a resolved document: nothing inherits from it");
                return Err(wrong(text));
            }
            let parent = self.inherited(parent, &from, depth + 1)?;
            base.overlay(parent);
        }
        base.overlay(node);
        Ok(base)
    }
}

/// A resolved document as it is.
fn complete(node: Node, store: Option<&str>) -> Result<Resolved, Mistake> {
    if store.is_some() {
        let text = "a resolved document has its store: --store would make another one of it";
        return Err(node.mark.wrong(text).next("leave --store out"));
    }
    for key in [EXTENDS, VARY] {
        if let Some(entry) = node.get(key) {
            let text = format!("a document with {FORMAT} is resolved: it cannot have {key}");
            return Err(entry.mark.wrong(text).at_key(key));
        }
    }
    checked(node)
}

fn checked(node: Node) -> Result<Resolved, Mistake> {
    schema::check(&node, Stage::Resolved)?;
    if node.depth() > DEPTH_MAX {
        return Err(node
            .mark
            .wrong(format!("values are nested more than {DEPTH_MAX} deep")));
    }
    let value = node.value();
    Ok(Resolved { node, value })
}

/// Marks a document as resolved, and checks it.
fn finished(mut document: Node) -> Result<Resolved, Mistake> {
    let mark = document.mark.clone();
    if let Kind::Map(entries) = &mut document.kind {
        entries.push(Entry {
            key: FORMAT.to_owned(),
            mark: mark.clone(),
            value: Node::new(mark, Kind::Number(1.into())),
        });
    }
    checked(document)
}

/// What the document does not say. Keys that depend on others have defaults only where these fit.
fn add_defaults(document: &mut Node, path: &Path) -> Result<(), Mistake> {
    let mut all = yaml::read("template:defaults", DEFAULTS)?;
    let population = document.get("population").map(|entry| &entry.value);
    let of_population = |key: &str| {
        population
            .and_then(|it| it.get(key))
            .map(|it| &it.value.kind)
    };
    let is_closed = match of_population("kind") {
        None => true,
        Some(kind) => *kind == Kind::Text(String::from("closed")),
    };
    if (!is_closed || of_population("threads").is_some())
        && let Kind::Map(entries) = &mut all.kind
        && let Some(population) = entries.iter_mut().find(|entry| entry.key == "population")
    {
        population.value.take("sessions");
    }
    workload_defaults(document, &mut all);
    let retry = document.get("retry");
    if retry.is_some_and(|retry| retry.value.get("back_off").is_some())
        && let Kind::Map(entries) = &mut all.kind
        && let Some(retry) = entries.iter_mut().find(|entry| entry.key == "retry")
    {
        retry.value.take("back_off");
    }
    let mark = Mark {
        file: Rc::clone(&document.mark.file),
        line: 0,
    };
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let name = Node::new(mark.clone(), Kind::Text(stem.into_owned()));
    // The defaults are a mapping.
    let _ = all.set("name", &mark, name);
    let own = std::mem::replace(document, all);
    document.overlay(own);
    Ok(())
}

/// Leaves out what the workload of a document does not have.
fn workload_defaults(document: &Node, all: &mut Node) {
    let own = document.get("workload").map(|entry| &entry.value);
    let has_program = own.is_some_and(|own| own.get(PROGRAM).is_some());
    let name = own.and_then(|own| own.get("name"));
    let is_without = name.is_some_and(|name| match &name.value.kind {
        Kind::Text(name) => WITHOUT_API.contains(&name.as_str()),
        _ => false,
    });
    let Kind::Map(entries) = &mut all.kind else {
        return;
    };
    let Some(workload) = entries.iter_mut().find(|entry| entry.key == "workload") else {
        return;
    };
    if is_without || has_program {
        workload.value.take("api");
    }
    if has_program {
        workload.value.take("load");
        let mark = workload.mark.clone();
        let name = Node::new(mark.clone(), Kind::Text(String::from(PROGRAM)));
        // It is a mapping.
        let _ = workload.value.set("name", &mark, name);
    }
}

fn set_store(document: &mut Node, mark: &Mark, url: &str) -> Result<(), Mistake> {
    let varied = document.get(VARY).into_iter();
    let varied = varied.flat_map(|vary| match &vary.value.kind {
        Kind::Map(axes) => axes.as_slice(),
        _ => &[],
    });
    for axis in varied {
        let rows = match &axis.value.kind {
            Kind::List(rows) => rows.as_slice(),
            _ => &[],
        };
        let has = |row: &Node| row.get("store.url").is_some() || row.get("store.mapping").is_some();
        if axis.key.starts_with("store.") || rows.iter().any(has) {
            let text = "the file varies the store: --store cannot replace all of them";
            return Err(axis.mark.wrong(text).at_key(VARY).next("leave --store out"));
        }
    }
    // A mapping of the old store need not be one of the new one; how far away it is, is.
    let link = document.take("store");
    let link = link.and_then(|mut store| store.value.take("link_ms"));
    let text = Node::new(mark.clone(), Kind::Text(url.to_owned()));
    let mut set = document.set("store.url", mark, text);
    if let Some(link) = link {
        set = set.and_then(|()| document.set("store.link_ms", mark, link.value));
    }
    set.map_err(|path| mark.wrong("this is no mapping").at_key(&path))
}

/// The documents for all combinations of what varies; the last key changes fastest.
fn unfold(document: &Node, vary: Entry) -> Result<Vec<Node>, Mistake> {
    let Kind::Map(axes) = vary.value.kind else {
        return Ok(vec![document.clone()]);
    };
    let mut all = vec![document.clone()];
    for axis in axes {
        let key = join(VARY, &axis.key);
        let Kind::List(choices) = axis.value.kind else {
            return Err(axis.value.mark.wrong("what varies is a list").at_key(&key));
        };
        if choices.is_empty() {
            return Err(axis.value.mark.wrong("the list is empty").at_key(&key));
        }
        if all.len() * choices.len() > RUNS_MAX {
            let text = format!("all combinations are more than {RUNS_MAX} runs");
            return Err(axis.mark.wrong(text).at_key(&key));
        }
        let mut longer = Vec::with_capacity(all.len() * choices.len());
        for document in &all {
            for choice in &choices {
                let mut document = document.clone();
                choose(&mut document, &axis.key, &axis.mark, choice)
                    .map_err(|mistake| mistake.at_key(&key))?;
                longer.push(document);
            }
        }
        all = longer;
    }
    Ok(all)
}

/// Sets one choice: the value of a path, or a row with values of several paths.
fn choose(document: &mut Node, path: &str, mark: &Mark, choice: &Node) -> Result<(), Mistake> {
    let Kind::Map(cells) = &choice.kind else {
        return set(document, path, mark, choice);
    };
    for cell in cells {
        set(document, &cell.key, &cell.mark, &cell.value)?;
    }
    Ok(())
}

fn set(document: &mut Node, path: &str, mark: &Mark, value: &Node) -> Result<(), Mistake> {
    let first = path.split('.').next().unwrap_or_default();
    let mut sections = schema::keys("");
    sections.retain(|section| *section != FORMAT);
    if !sections.contains(&first) {
        let text = schema::not_known(first, sections);
        let next = "what varies is a path such as store.url, or a list of rows with such paths";
        return Err(mark.wrong(text).next(next));
    }
    if path.split('.').any(str::is_empty) {
        return Err(mark.wrong(format!("{path} is no path: a name is missing")));
    }
    let mut value = value.clone();
    if value.mark.line == 0 {
        value.mark = mark.clone();
    }
    document.set(path, mark, value).map_err(|at| {
        let text = format!("{path} cannot be set: {at} is no mapping");
        mark.wrong(text)
    })
}

/// What a file of Jsonnet says, with the lines where its keys were written: the key of a text whose
/// path is the longest end of the path in the document.
fn marked(name: &str, answer: &Answer) -> Node {
    let file: Rc<str> = name.into();
    let ends_with = |key: &WrittenKey, path: &[&String]| {
        let pairs = key.path.iter().rev().zip(path.iter().rev());
        key.path.len() <= path.len() && pairs.clone().all(|(a, b)| a == *b)
    };
    let mark = |path: &[String]| {
        let names: Vec<&String> = path
            .iter()
            .filter(|it| !it.bytes().all(|byte| byte.is_ascii_digit()))
            .collect();
        let own = answer.keys.iter().filter(|key| ends_with(key, &names));
        match own.max_by_key(|key| key.path.len()) {
            Some(key) if !names.is_empty() => Mark {
                file: key.file.as_str().into(),
                line: key.line,
            },
            _ => Mark {
                file: Rc::clone(&file),
                line: 0,
            },
        }
    };
    Node::of(&answer.value, &mut Vec::new(), &mark)
}

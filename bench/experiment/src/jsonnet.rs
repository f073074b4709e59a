//! Evaluates a file of Jsonnet. Imports reach the file's folder and the templates, nothing else.
//!
//! This runs in a child process (`child`), since a program in Jsonnet may run for ever or fill the
//! memory. Depth is bounded here: [`STACK_MAX`] calls, and what the file says nests as deep as its
//! size allows.

use crate::mistake::Mistake;
use crate::source::{self, FILES_MAX, Language, TEMPLATE};
use crate::template;
use crate::words;
use crate::yaml;
use rsjsonnet_lang::arena::Arena;
use rsjsonnet_lang::interner::InternedStr;
use rsjsonnet_lang::program::{
    Callbacks, EvalError, EvalStackTraceItem, ImportError, LoadError, NativeError, Program, Thunk,
    Value as Evaluated,
};
use rsjsonnet_lang::span::{SourceId, SpanContext, SpanId, SpanManager};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Calls within calls at most.
const STACK_MAX: usize = 500;
/// Lines of `std.trace` that are kept.
const TRACES_MAX: usize = 100;

/// What a file says.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) value: Value,
    /// Where keys stand in the files of the user.
    pub(crate) keys: Vec<WrittenKey>,
    /// What `std.trace` said.
    pub(crate) traces: Vec<String>,
}

/// A key in the text of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WrittenKey {
    /// From the outermost object of the text; places in lists are left out.
    pub(crate) path: Vec<String>,
    pub(crate) file: String,
    pub(crate) line: usize,
}

/// A text that was loaded.
struct Loaded {
    name: String,
    path: Option<PathBuf>,
    text: String,
}

struct Files<'p> {
    root: PathBuf,
    texts: BTreeMap<SourceId, Loaded>,
    thunks: BTreeMap<String, Thunk<'p>>,
    count: usize,
    traces: Vec<String>,
    /// The first mistake of an import.
    mistake: Option<Mistake>,
}

/// Evaluates a file.
pub(crate) fn evaluate(path: &Path) -> Result<Answer, Mistake> {
    let text = source::read(path)?;
    let arena = Arena::new();
    let mut program = Program::new(&arena);
    program.set_max_stack(STACK_MAX);
    let mut files = Files {
        root: path.parent().unwrap_or(Path::new(".")).to_owned(),
        texts: BTreeMap::new(),
        thunks: BTreeMap::new(),
        count: 0,
        traces: Vec::new(),
        mistake: None,
    };
    let name = path.display().to_string();
    let main = Loaded {
        name: name.clone(),
        path: Some(path.to_owned()),
        text,
    };
    let thunk = files.load(&mut program, main)?;
    let evaluated = program.eval_value(&thunk, &mut files);
    let value = evaluated.map_err(|error| files.wrong(&program, &name, &error))?;
    let json = program.manifest_json(&value, false);
    let json = json.map_err(|error| files.wrong(&program, &name, &error))?;
    let value = serde_json::from_str(&json)
        .map_err(|error| Mistake::of_file(&name, format!("its value is no JSON: {error}")))?;
    let keys = files.texts.values().filter(|loaded| loaded.path.is_some());
    let keys = keys.flat_map(|loaded| words::written_keys(&loaded.name, &loaded.text));
    Ok(Answer {
        value,
        keys: keys.collect(),
        traces: files.traces,
    })
}

impl<'p> Files<'p> {
    fn load(&mut self, program: &mut Program<'p>, loaded: Loaded) -> Result<Thunk<'p>, Mistake> {
        self.count += 1;
        if self.count > FILES_MAX {
            let text = format!("the experiment imports more than {FILES_MAX} files");
            return Err(Mistake::of_file(&loaded.name, text));
        }
        let text = loaded.text.clone();
        let name = loaded.name.clone();
        let (context, source) = program.span_manager_mut().insert_source_context(text.len());
        self.texts.insert(source, loaded);
        let thunk = program.load_source(context, text.as_bytes(), true, &name);
        thunk.map_err(|error| self.not_loaded(program.span_manager(), &name, &error))
    }

    /// The file, line and column of a span; `None`: it is in the library's own code.
    fn place(&self, spans: &SpanManager, span: SpanId) -> Option<(String, usize, usize)> {
        let (context, start, _) = spans.get_span(span);
        let SpanContext::Source(source) = *spans.get_context(context);
        let loaded = self.texts.get(&source)?;
        let before = loaded.text.get(..start)?;
        let line = 1 + before.matches('\n').count();
        let column = before
            .rsplit('\n')
            .next()
            .unwrap_or_default()
            .chars()
            .count();
        Some((loaded.name.clone(), line, 1 + column))
    }

    fn at(&self, spans: &SpanManager, file: &str, span: Option<SpanId>, text: String) -> Mistake {
        let mut mistake = Mistake::of_file(file, text);
        if let Some((file, line, column)) = span.and_then(|span| self.place(spans, span)) {
            mistake.file = file;
            mistake.line = line;
            mistake.column = column;
        }
        mistake
    }

    fn not_loaded(&self, spans: &SpanManager, file: &str, error: &LoadError) -> Mistake {
        let (span, text) = words::not_loaded(error);
        self.at(spans, file, span, text)
    }

    fn wrong(&mut self, program: &Program<'_>, file: &str, error: &EvalError) -> Mistake {
        if let Some(mistake) = self.mistake.take() {
            return mistake;
        }
        let spans = program.span_manager();
        let (span, text) = words::not_evaluated(&error.kind);
        let in_file = |span: &SpanId| self.place(spans, *span).is_some();
        // What fails within the library was asked for by the innermost call that the user wrote.
        let calls = error.stack_trace.iter().rev().filter_map(words::span_of);
        let span = span.into_iter().chain(calls).find(in_file);
        let mut mistake = self.at(spans, file, span, text);
        mistake.key = words::key_of(&error.stack_trace);
        mistake
    }

    /// What an import names: its name, and its text.
    fn found(&self, program: &Program<'p>, from: SpanId, path: &str) -> Result<Loaded, String> {
        if let Some(name) = path.strip_prefix(TEMPLATE) {
            let text = template::text(name).ok_or_else(|| template::unknown(name))?;
            let node = yaml::read(path, text).map_err(|mistake| mistake.to_string())?;
            return Ok(Loaded {
                name: path.to_owned(),
                path: None,
                text: node.value().to_string(),
            });
        }
        let spans = program.span_manager();
        let (context, ..) = spans.get_span(from);
        let SpanContext::Source(source) = *spans.get_context(context);
        let importer = self.texts.get(&source);
        let importer = importer.and_then(|loaded| loaded.path.as_deref());
        let importer = importer.ok_or("a template imports nothing")?;
        let found = source::beside(&self.root, importer, path)?;
        let text = source::read(&found).map_err(|mistake| mistake.text)?;
        Ok(Loaded {
            name: found.display().to_string(),
            path: Some(found),
            text,
        })
    }

    fn refuse(&mut self, program: &Program<'p>, from: SpanId, text: String) -> ImportError {
        if self.mistake.is_none() {
            let mistake = self.at(program.span_manager(), "", Some(from), text);
            self.mistake = Some(mistake);
        }
        ImportError
    }
}

impl<'p> Callbacks<'p> for Files<'p> {
    fn import(
        &mut self,
        program: &mut Program<'p>,
        from: SpanId,
        path: &str,
    ) -> Result<Thunk<'p>, ImportError> {
        let mut loaded = match self.found(program, from, path) {
            Ok(loaded) => loaded,
            Err(why) => {
                let text = format!("{path:?} cannot be imported: {why}");
                return Err(self.refuse(program, from, text));
            }
        };
        if let Some(thunk) = self.thunks.get(&loaded.name) {
            return Ok(thunk.clone());
        }
        // YAML is imported as the value that it stands for.
        let language = loaded.path.as_deref().and_then(Language::of);
        if language == Some(Language::Yaml) {
            match yaml::read(&loaded.name, &loaded.text) {
                Ok(node) => loaded.text = node.value().to_string(),
                Err(mistake) => {
                    self.mistake.get_or_insert(mistake);
                    return Err(ImportError);
                }
            }
            loaded.path = None;
        }
        let name = loaded.name.clone();
        match self.load(program, loaded) {
            Ok(thunk) => {
                self.thunks.insert(name, thunk.clone());
                Ok(thunk)
            }
            Err(mistake) => {
                self.mistake.get_or_insert(mistake);
                Err(ImportError)
            }
        }
    }

    fn import_str(
        &mut self,
        program: &mut Program<'p>,
        from: SpanId,
        path: &str,
    ) -> Result<String, ImportError> {
        self.count += 1;
        let found = match self.count > FILES_MAX {
            true => Err(format!("more than {FILES_MAX} files")),
            false => self.found(program, from, path),
        };
        found.map(|loaded| loaded.text).map_err(|why| {
            let text = format!("{path:?} cannot be imported: {why}");
            self.refuse(program, from, text)
        })
    }

    fn import_bin(
        &mut self,
        program: &mut Program<'p>,
        from: SpanId,
        path: &str,
    ) -> Result<Vec<u8>, ImportError> {
        let text = format!("{path:?} cannot be imported: importbin is not supported");
        Err(self.refuse(program, from, text))
    }

    fn trace(&mut self, _: &mut Program<'p>, message: &str, _: &[EvalStackTraceItem]) {
        if self.traces.len() < TRACES_MAX {
            self.traces.push(message.chars().take(1_000).collect());
        }
    }

    fn native_call(
        &mut self,
        _: &mut Program<'p>,
        _: InternedStr<'p>,
        _: &[Evaluated<'p>],
    ) -> Result<Evaluated<'p>, NativeError> {
        // None is registered.
        Err(NativeError)
    }
}

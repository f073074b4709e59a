//! The file of an experiment: TOML whose keys are the options of the command that runs a cell.

use crate::cell::{Cell, Choice, shuffle};
use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use toml_edit::{Array, ImDocument, Item, Table, Value};

/// Cells of one experiment at most: more are a mistake in the file.
const CELLS_MAX: usize = 100_000;
/// Repetitions of a cell at most.
const REPEATS_MAX: u32 = 1_000;
/// The table with what concerns the sweep and not its cells.
const TABLE: &str = "matrix";
const TABLE_KEYS: &str = "name, repeats, order, order_seed";
/// The table with what is loaded where it is missing.
const LOAD: &str = "load";

/// An option that a file may name.
#[derive(Clone, Debug)]
pub struct Key {
    /// Without dashes in front.
    pub name: String,
    /// It has no value.
    pub is_flag: bool,
    /// It may be given several times.
    pub repeats: bool,
    /// It says something about this other key: in cells where that is `false`, it is left out, too.
    pub about: Option<String>,
}

/// A mistake in a file.
#[derive(Clone, Debug)]
pub struct FileError {
    path: PathBuf,
    /// From 1; `None`: it concerns the whole file.
    line: Option<usize>,
    key: Option<String>,
    text: String,
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path.display())?;
        if let Some(line) = self.line {
            write!(f, ", line {line}")?;
        }
        if let Some(key) = &self.key {
            write!(f, ", key {key}")?;
        }
        write!(f, ": {}", self.text)
    }
}

impl std::error::Error for FileError {}

/// A key of the file with all that it may say.
#[derive(Clone, Debug)]
struct Axis {
    key: String,
    about: Option<String>,
    line: usize,
    choices: Vec<Choice>,
}

/// What a file says.
#[derive(Clone, Debug)]
pub struct Experiment {
    path: PathBuf,
    name: String,
    axes: Vec<Axis>,
    repeats: u32,
    /// The seed of a drawn order; `None`: that of the file.
    order: Option<u64>,
    /// What is loaded; `None`: nothing is.
    load: Option<Vec<Axis>>,
}

impl Experiment {
    /// Reads a file. Its keys must be among these, and those of what is loaded among `load_keys`.
    ///
    /// # Errors
    /// It cannot be read, or has a mistake.
    pub fn read(path: &Path, keys: &[Key], load_keys: &[Key]) -> Result<Experiment, FileError> {
        let text = std::fs::read_to_string(path).map_err(|error| FileError {
            path: path.to_owned(),
            line: None,
            key: None,
            text: error.to_string(),
        })?;
        Reader { path, text: &text }.experiment(keys, load_keys)
    }

    /// The arguments of the load of what is missing; `None`: nothing is to be loaded.
    pub fn load(&self) -> Option<Vec<String>> {
        let load = self.load.as_ref()?;
        let arguments = load.iter().flat_map(|axis| {
            let choices = axis.choices.iter();
            choices.flat_map(|choice| choice.arguments(&axis.key))
        });
        Some(arguments.collect())
    }

    /// Its name: that in the file, or the file's own.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Repetitions of each combination.
    pub fn repeats(&self) -> u32 {
        self.repeats
    }

    /// The order of the cells, in words.
    pub fn order(&self) -> String {
        match self.order {
            Some(seed) => format!("drawn with seed {seed}"),
            None => "that of the file, the last key changes fastest".to_owned(),
        }
    }

    /// Keys that differ between cells.
    pub fn varied(&self) -> Vec<&str> {
        let varied = self.axes.iter().filter(|axis| axis.choices.len() > 1);
        varied.map(|axis| axis.key.as_str()).collect()
    }

    /// Keys that are about this one.
    pub(crate) fn about(&self, key: &str) -> Vec<&str> {
        let about = |axis: &&Axis| axis.about.as_deref() == Some(key);
        let axes = self.axes.iter().filter(about);
        axes.map(|axis| axis.key.as_str()).collect()
    }

    /// All cells, in the order in which they run.
    pub fn cells(&self) -> Vec<Cell> {
        let mut all = vec![Vec::new()];
        for axis in &self.axes {
            let longer = |cell: &Vec<(String, Choice)>| {
                let choices = axis.choices.iter().cloned();
                let longer = choices.map(|choice| {
                    let mut cell = cell.clone();
                    cell.push((axis.key.clone(), choice));
                    cell
                });
                longer.collect::<Vec<_>>()
            };
            all = all.iter().flat_map(longer).collect();
        }
        let mut known = BTreeSet::new();
        all.iter_mut().for_each(|cell| self.leave_out(cell));
        all.retain(|cell| known.insert(cell.clone()));
        let mut cells = Vec::new();
        for repeat in 0..self.repeats {
            cells.extend(
                all.iter()
                    .cloned()
                    .map(|settings| Cell { settings, repeat }),
            );
        }
        if let Some(seed) = self.order {
            shuffle(&mut cells, seed);
        }
        cells
    }

    /// Leaves out what is about something that is left out.
    fn leave_out(&self, cell: &mut [(String, Choice)]) {
        for (at, axis) in self.axes.iter().enumerate() {
            let Some(about) = &axis.about else { continue };
            let other = cell.iter().find(|(key, _)| key == about);
            if other.is_some_and(|(_, choice)| *choice == Choice::Out) {
                cell[at].1 = Choice::Out;
            }
        }
    }

    /// The place of these settings in the order of the file.
    pub(crate) fn place(&self, settings: &[(String, Choice)]) -> Vec<usize> {
        let pairs = self.axes.iter().zip(settings);
        let place = |(axis, (_, choice)): (&Axis, &(String, Choice))| {
            let place = axis.choices.iter().position(|it| it == choice);
            // What is about something that is left out has no place of its own.
            place.unwrap_or(0)
        };
        pairs.map(place).collect()
    }

    /// A mistake that the command finds in what is to be loaded, at the key that it names.
    pub fn load_mistake(&self, key: Option<&str>, text: String) -> FileError {
        let mut axes = self.load.iter().flatten();
        let axis = key.and_then(|key| axes.find(|axis| axis.key == key));
        FileError {
            path: self.path.clone(),
            line: axis.map(|axis| axis.line),
            key: Some(format!("{LOAD}.{}", key.unwrap_or("*"))),
            text,
        }
    }

    /// A mistake that the command finds in a cell, at the key that it names.
    pub(crate) fn mistake(&self, key: Option<&str>, text: String) -> FileError {
        let axis = key.and_then(|key| self.axes.iter().find(|axis| axis.key == key));
        FileError {
            path: self.path.clone(),
            line: axis.map(|axis| axis.line),
            key: key.map(str::to_owned),
            text,
        }
    }
}

struct Reader<'t> {
    path: &'t Path,
    text: &'t str,
}

impl Reader<'_> {
    fn line(&self, span: Option<Range<usize>>) -> Option<usize> {
        let before = self.text.get(..span?.start)?;
        Some(1 + before.matches('\n').count())
    }

    fn wrong(&self, span: Option<Range<usize>>, key: &str, text: String) -> FileError {
        FileError {
            path: self.path.to_owned(),
            line: self.line(span),
            key: (!key.is_empty()).then(|| key.to_owned()),
            text,
        }
    }

    fn experiment(&self, keys: &[Key], load_keys: &[Key]) -> Result<Experiment, FileError> {
        let document = ImDocument::parse(self.text)
            .map_err(|error| self.wrong(error.span(), "", error.message().to_owned()))?;
        let stem = self.path.file_stem().unwrap_or_default();
        let mut found = Experiment {
            path: self.path.to_owned(),
            name: stem.to_string_lossy().into_owned(),
            axes: Vec::new(),
            repeats: 1,
            order: Some(1),
            load: None,
        };
        let root = document.as_table();
        for (name, item) in root {
            match item {
                Item::Table(table) if name == TABLE => self.own(table, &mut found)?,
                Item::Table(table) if name == LOAD => {
                    found.load = Some(self.load(table, load_keys)?);
                }
                Item::Value(value) => found.axes.push(self.axis(root, name, value, keys)?),
                _ => {
                    let text = format!("there is no such table; there are [{TABLE}] and [{LOAD}]");
                    return Err(self.wrong(span_of(root, name), name, text));
                }
            }
        }
        let choices = found.axes.iter().map(|axis| axis.choices.len());
        let cells = choices.fold(found.repeats as usize, usize::saturating_mul);
        match cells {
            0..=CELLS_MAX => Ok(found),
            _ => Err(self.wrong(None, "", format!("{cells} cells; {CELLS_MAX} at most"))),
        }
    }

    /// The table of the sweep itself.
    fn own(&self, table: &Table, found: &mut Experiment) -> Result<(), FileError> {
        let mut order_seed = 1;
        let mut is_drawn = true;
        for (name, item) in table {
            let wrong = |text: &str| self.wrong(span_of(table, name), name, text.to_owned());
            let number = || item.as_integer().and_then(|it| u64::try_from(it).ok());
            match name {
                "name" => {
                    let text = item.as_str().filter(|text| !text.is_empty());
                    found.name = text.ok_or_else(|| wrong("a text is wanted"))?.to_owned();
                }
                "repeats" => {
                    let number = number().and_then(|it| u32::try_from(it).ok());
                    let number = number.filter(|it| (1..=REPEATS_MAX).contains(it));
                    found.repeats =
                        number.ok_or_else(|| wrong("a number from 1 to 1000 is wanted"))?;
                }
                "order" => {
                    is_drawn = match item.as_str() {
                        Some("random") => true,
                        Some("file") => false,
                        _ => return Err(wrong("\"random\" or \"file\" is wanted")),
                    }
                }
                "order_seed" => {
                    order_seed = number().ok_or_else(|| wrong("a number is wanted"))?;
                }
                _ => {
                    return Err(wrong(&format!(
                        "there is no such key; [{TABLE}] has {TABLE_KEYS}"
                    )));
                }
            }
        }
        found.order = is_drawn.then_some(order_seed);
        Ok(())
    }

    /// The table of what is loaded: one value for each key.
    fn load(&self, table: &Table, keys: &[Key]) -> Result<Vec<Axis>, FileError> {
        let mut found = Vec::new();
        for (name, item) in table {
            let wrong = |text: &str| self.wrong(span_of(table, name), name, text.to_owned());
            let Item::Value(value) = item else {
                return Err(wrong("a value is wanted"));
            };
            if matches!(value, Value::Array(_)) {
                return Err(wrong("one value is wanted: all cells find the same tables"));
            }
            found.push(self.axis(table, name, value, keys)?);
        }
        Ok(found)
    }

    fn axis(
        &self,
        root: &Table,
        name: &str,
        value: &Value,
        keys: &[Key],
    ) -> Result<Axis, FileError> {
        let span = span_of(root, name);
        let wrong = |text: String| self.wrong(span.clone(), name, text);
        let Some(key) = keys.iter().find(|key| key.name == name) else {
            let all: Vec<&str> = keys.iter().map(|key| key.name.as_str()).collect();
            let all = all.join(", ");
            return Err(wrong(format!("there is no such key; there are {all}")));
        };
        let choices = match value {
            Value::Array(array) => {
                let choices = array.iter().map(|value| self.choice(key, value));
                choices.collect::<Result<Vec<Choice>, FileError>>()?
            }
            value => vec![self.choice(key, value)?],
        };
        if choices.is_empty() {
            return Err(wrong("an empty list leaves no cells".to_owned()));
        }
        let mut known = BTreeSet::new();
        if let Some(twice) = choices.iter().find(|choice| !known.insert(*choice)) {
            return Err(wrong(format!("{} is said twice", twice.text())));
        }
        Ok(Axis {
            key: name.to_owned(),
            about: key.about.clone(),
            line: self.line(span).unwrap_or(1),
            choices,
        })
    }

    fn choice(&self, key: &Key, value: &Value) -> Result<Choice, FileError> {
        let wrong = |text: &str| Err(self.wrong(value.span(), &key.name, text.to_owned()));
        match value {
            Value::Boolean(it) if !it.value() => Ok(Choice::Out),
            Value::Boolean(_) if key.is_flag => Ok(Choice::Flag),
            Value::Boolean(_) => wrong("it takes a value; only false, for none, is possible"),
            _ if key.is_flag => wrong("true or false is wanted"),
            Value::Array(array) if key.repeats => self.several(key, array),
            Value::Array(_) => {
                wrong("a list within a list gives an option several times; this has one value")
            }
            value => match scalar(value) {
                Some(text) => Ok(Choice::Values(vec![text])),
                None => wrong("a text or a number is wanted"),
            },
        }
    }

    /// A list within a list: the option is given once for each.
    fn several(&self, key: &Key, array: &Array) -> Result<Choice, FileError> {
        let values: Option<Vec<String>> = array.iter().map(scalar).collect();
        match values.filter(|values| !values.is_empty()) {
            Some(values) => Ok(Choice::Values(values)),
            None => Err(self.wrong(
                array.span(),
                &key.name,
                "a list of texts or numbers is wanted".to_owned(),
            )),
        }
    }
}

fn span_of(table: &Table, name: &str) -> Option<Range<usize>> {
    table.key(name).and_then(toml_edit::Key::span)
}

fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.value().clone()),
        Value::Integer(number) => Some(number.value().to_string()),
        Value::Float(number) => Some(number.value().to_string()),
        Value::Boolean(_) | Value::Datetime(_) | Value::Array(_) | Value::InlineTable(_) => None,
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// An experiment of a command with few options.
    pub(crate) fn experiment(text: &str) -> Result<Experiment, FileError> {
        let key = |name: &str, is_flag, repeats| Key {
            name: name.to_owned(),
            is_flag,
            repeats,
            about: (name == "target").then(|| "fault".to_owned()),
        };
        let keys = [
            key("clients", false, false),
            key("ratio", false, false),
            key("seed", false, false),
            key("fault", false, true),
            key("target", false, true),
            key("keying", true, false),
        ];
        let path = Path::new("my.toml");
        let load_keys = [
            key("warehouses", false, false),
            key("foreign-keys", true, false),
        ];
        Reader { path, text }.experiment(&keys, &load_keys)
    }

    #[test]
    fn what_is_loaded_has_one_value_for_each_key() {
        let found =
            experiment("clients = 4\n[load]\nwarehouses = 3\nforeign-keys = true\n").unwrap();
        let load = found.load().unwrap();
        assert_eq!(load, ["--warehouses=3", "--foreign-keys"]);
        assert_eq!(found.cells().len(), 1);
        assert_eq!(
            experiment("clients = 4\n[load]").unwrap().load(),
            Some(Vec::new())
        );
        assert_eq!(experiment("clients = 4").unwrap().load(), None);
        let mistake = found.load_mistake(Some("warehouses"), "too many".to_owned());
        assert_eq!(
            mistake.to_string(),
            "my.toml, line 3, key load.warehouses: too many"
        );
        for (text, said) in [
            (
                "[load]\nwarehouses = [1, 2]",
                "line 2, key warehouses: one value is wanted",
            ),
            (
                "[load]\nclients = 4",
                "line 2, key clients: there is no such key; there are warehouses",
            ),
            ("[load.more]\nwarehouses = 4", "key more: a value is wanted"),
        ] {
            let error = experiment(text).unwrap_err().to_string();
            assert!(error.contains(said), "{text:?}: {error}");
        }
    }

    #[test]
    fn lists_are_multiplied() {
        let found = experiment(
            "clients = 4\nratio = [1, 20.5, '80']\nkeying = [true, false]\n\
             fault = [false, 'kill@a:1+1', ['kill@a:1+1', 'pause@b:3+1']]\n\
             [matrix]\norder = 'file'\nrepeats = 2\n",
        );
        let found = found.unwrap();
        let cells = found.cells();
        assert_eq!(
            (cells.len(), found.name()),
            (3 * 2 * 3 * 2, "my"),
            "{cells:?}"
        );
        assert_eq!(found.varied(), ["ratio", "keying", "fault"]);
        assert_eq!(
            cells[2].arguments(),
            [
                "--clients=4",
                "--ratio=1",
                "--keying",
                "--fault=kill@a:1+1",
                "--fault=pause@b:3+1",
                "--seed=1"
            ]
        );
        assert_eq!(cells[6].get("ratio").map(Choice::text), Some("20.5".into()));
        assert_eq!(cells[18].repeat, 1);
        let ids: BTreeSet<String> = cells.iter().map(Cell::id).collect();
        assert_eq!(ids.len(), cells.len());
    }

    #[test]
    fn what_is_about_nothing_is_left_out() {
        let found = experiment("target = ['a=pid:1', 'a=pid:2']\nfault = [false, 'kill@a:1+1']");
        let cells = found.unwrap().cells();
        assert_eq!(cells.len(), 3, "{cells:?}");
        let without: Vec<&Cell> = cells
            .iter()
            .filter(|cell| cell.get("fault") == Some(&Choice::Out))
            .collect();
        assert_eq!(without.len(), 1);
        assert_eq!(without[0].arguments(), ["--seed=1"]);
    }

    #[test]
    fn mistakes_have_file_line_and_key() {
        for (text, said) in [
            (
                "clients = 4\n\nclents = 1\n",
                "my.toml, line 3, key clents: there is no such key",
            ),
            (
                "clients = [4,\n[5]]",
                "my.toml, line 2, key clients: a list within a list",
            ),
            ("clients = []", "line 1, key clients: an empty list"),
            ("clients = [4, 4]", "line 1, key clients: 4 is said twice"),
            ("\nclients = true", "line 2, key clients: it takes a value"),
            ("keying = 3", "line 1, key keying: true or false"),
            (
                "[matrix]\nrepeat = 3",
                "line 2, key repeat: there is no such key; [matrix] has name",
            ),
            (
                "[matrix]\nrepeats = 0",
                "line 2, key repeats: a number from 1",
            ),
            (
                "[matrix]\norder = 'any'",
                "line 2, key order: \"random\" or",
            ),
            (
                "[cells]\nratio = 1",
                "line 1, key cells: there is no such table",
            ),
            ("clients = 1\nclients = 2", "line 2"),
            ("clients = ", "line 1"),
        ] {
            let error = experiment(text).unwrap_err().to_string();
            assert!(error.contains(said), "{text:?}: {error}");
        }
        let many: Vec<String> = (0..200_000).map(|at| at.to_string()).collect();
        let error = experiment(&format!("ratio = [{}]", many.join(",")));
        assert!(error.is_err());
    }
}

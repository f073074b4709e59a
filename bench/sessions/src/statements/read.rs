//! Reading such a workload.

use super::{Check, Load, Statements, Step, Text};
use crate::distribution::Distribution;
use crate::document::{Problem, Section, below, told};
use crate::state::Datum;
use serde_json::Value;
use std::collections::BTreeMap;
use workload::wire::ParamType;

/// The most statements of an interaction, and of the setup.
const STATEMENTS_MAX: usize = 100;
/// The most rows that one statement loads.
const LOAD_MAX: i64 = 100_000_000;

impl Statements {
    /// Reads `setup`, `load`, `draws`, `interactions` and `checks`.
    ///
    /// # Errors
    /// A key that is not known; a name that is neither drawn nor kept; a value of another kind.
    pub fn read(mut section: Section<'_>) -> Result<Statements, Problem> {
        let setup_path = section.path_of("setup");
        let setup = list(&setup_path, section.take("setup"))?;
        let sql = |(at, value): (usize, &Value)| {
            let wrong = || Problem::new(format!("{setup_path}.{at}"), "it is no statement");
            value.as_str().map(str::to_string).ok_or_else(wrong)
        };
        let setup = setup
            .iter()
            .enumerate()
            .map(sql)
            .collect::<Result<_, _>>()?;
        let mut draws = BTreeMap::new();
        let mut types = BTreeMap::new();
        let mut drawn = section.section("draws")?;
        let path = drawn.path().to_string();
        for (name, value) in drawn.take_all() {
            let at = below(&path, name);
            let distribution = Distribution::read(&at, value)?;
            types.insert(name.to_string(), type_of(&at, &distribution)?);
            draws.insert(name.to_string(), distribution);
        }
        let path = section.path_of("interactions");
        let interactions = section.required("interactions")?;
        let interactions = Section::of(&path, interactions)?.take_all();
        if interactions.is_empty() {
            return Err(Problem::new(path, "there is no interaction"));
        }
        // What one statement keeps, others of any interaction may use; it is a whole number.
        for (name, value) in &interactions {
            for step in list(&below(&path, name), Some(value))? {
                if let Some(kept) = step.get("keep").and_then(Value::as_str) {
                    types.entry(kept.to_string()).or_insert(ParamType::BigInt);
                }
            }
        }
        let mut names: Vec<(&'static str, &'static [&'static str])> = Vec::new();
        let mut steps = Vec::new();
        for (name, value) in &interactions {
            let own = read_steps(&below(&path, name), value, &types)?;
            let results: Vec<&'static str> = own.iter().filter_map(|step| step.empty).collect();
            names.push((for_ever(name), Vec::leak(results)));
            steps.push(own);
        }
        let load = read_loads(&section.path_of("load"), section.take("load"), &types)?;
        let checks = read_checks(&section.path_of("checks"), section.take("checks"), &names)?;
        section.finish()?;
        Ok(Statements {
            setup,
            load,
            draws,
            names,
            steps,
            checks,
        })
    }
}

/// A name for the life of the process: a document has few of them, and a process few documents.
fn for_ever(name: &str) -> &'static str {
    String::leak(name.to_string())
}

fn list<'a>(path: &str, value: Option<&'a Value>) -> Result<&'a [Value], Problem> {
    let Some(value) = value else {
        return Ok(&[]);
    };
    let values = value
        .as_array()
        .filter(|values| values.len() <= STATEMENTS_MAX);
    let wrong = || {
        let text = format!(
            "{} is no list of at most {STATEMENTS_MAX} statements",
            told(value)
        );
        Problem::new(path, text)
    };
    values.map(Vec::as_slice).ok_or_else(wrong)
}

fn type_of(path: &str, distribution: &Distribution) -> Result<ParamType, Problem> {
    let of = |value: &Datum| match value {
        Datum::Int(_) => Ok(ParamType::BigInt),
        Datum::Real(_) => Ok(ParamType::Numeric),
        Datum::Text(_) => Ok(ParamType::Text),
        Datum::List(_) | Datum::Row(_) => {
            Err(Problem::new(path, "a parameter is a number or a text"))
        }
    };
    match distribution {
        Distribution::Constant(value) => of(value),
        Distribution::List(values) => {
            let types: Vec<ParamType> = values.iter().map(of).collect::<Result<_, _>>()?;
            match types.iter().all(|kind| *kind == types[0]) {
                true => Ok(types[0]),
                false => Err(Problem::new(
                    path,
                    "all values of a list are of the same kind",
                )),
            }
        }
        Distribution::Ranks { .. } | Distribution::Latest { .. } => Ok(ParamType::BigInt),
        Distribution::Letters(_) => Ok(ParamType::Text),
    }
}

fn read_steps(
    path: &str,
    value: &Value,
    types: &BTreeMap<String, ParamType>,
) -> Result<Vec<Step>, Problem> {
    let values = list(path, Some(value))?;
    if values.is_empty() {
        return Err(Problem::new(
            path,
            "an interaction has at least one statement",
        ));
    }
    let step = |(at, value): (usize, &Value)| {
        let mut section = Section::of(&format!("{path}.{at}"), value)?;
        let text = read_text(&mut section, types)?;
        let step = Step {
            text,
            rows: section.count("rows", 0..=1_000_000)?,
            empty: section.text("empty")?.map(for_ever),
            keep: section.text("keep")?.map(str::to_string),
        };
        section.finish()?;
        Ok(step)
    };
    values.iter().enumerate().map(step).collect()
}

fn read_loads(
    path: &str,
    value: Option<&Value>,
    types: &BTreeMap<String, ParamType>,
) -> Result<Vec<Load>, Problem> {
    let load = |(at, value): (usize, &Value)| {
        let mut section = Section::of(&format!("{path}.{at}"), value)?;
        let each = section.text("each")?.unwrap_or("id").to_string();
        let mut whole = |key: &str| {
            let value = section.required(key)?;
            let wrong = || section.problem(key, format!("{} is no whole number", told(value)));
            value.as_i64().ok_or_else(wrong)
        };
        let (from, to) = (whole("from")?, whole("to")?);
        if to.checked_sub(from).is_none_or(|count| count >= LOAD_MAX) {
            let text = format!("at most {LOAD_MAX} rows are loaded by a statement");
            return Err(section.problem("to", text));
        }
        let mut types = types.clone();
        types.insert(each.clone(), ParamType::BigInt);
        let text = read_text(&mut section, &types)?;
        section.finish()?;
        Ok(Load {
            text,
            each,
            from,
            to,
        })
    };
    list(path, value)?.iter().enumerate().map(load).collect()
}

fn read_checks(
    path: &str,
    value: Option<&Value>,
    names: &[(&'static str, &'static [&'static str])],
) -> Result<Vec<Check>, Problem> {
    let check = |(at, value): (usize, &Value)| {
        let mut section = Section::of(&format!("{path}.{at}"), value)?;
        let Some(sql) = section.text("sql")? else {
            return Err(section.problem("sql", "it is missing"));
        };
        let equals = section.take("equals").map_or(Some(0), Value::as_i64);
        let wrong = || section.problem("equals", "it is no whole number");
        let equals = equals.ok_or_else(wrong)?;
        let mut plus = BTreeMap::new();
        let mut factors = section.section("plus")?;
        let factors_path = factors.path().to_string();
        for (name, factor) in factors.take_all() {
            let at = below(&factors_path, name);
            let place = names.iter().position(|(known, _)| *known == name);
            let factor = factor
                .as_i64()
                .filter(|factor| factor.unsigned_abs() < 1 << 32);
            match (place, factor) {
                (Some(place), Some(factor)) => plus.insert(place, factor),
                (None, _) => return Err(Problem::new(at, "there is no such interaction")),
                (_, None) => return Err(Problem::new(at, "it is no whole number below 2^32")),
            };
        }
        section.finish()?;
        Ok(Check {
            sql: sql.to_string(),
            equals,
            plus,
        })
    };
    list(path, value)?.iter().enumerate().map(check).collect()
}

/// The statement of a section, its `:name`s replaced by `$n`. Quoted texts and `::` stay as they
/// are.
fn read_text(
    section: &mut Section<'_>,
    types: &BTreeMap<String, ParamType>,
) -> Result<Text, Problem> {
    let Some(sql) = section.text("sql")? else {
        return Err(section.problem("sql", "it is missing"));
    };
    let mut text = Text {
        sql: String::with_capacity(sql.len()),
        params: Vec::new(),
    };
    let mut letters = sql.char_indices().peekable();
    let mut quote = None;
    let mut before = ' ';
    while let Some((at, letter)) = letters.next() {
        let is_name = quote.is_none() && letter == ':' && before != ':';
        before = letter;
        match quote {
            Some(open) if open == letter => quote = None,
            None if matches!(letter, '\'' | '"' | '`') => quote = Some(letter),
            Some(_) | None => {}
        }
        let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        let rest = &sql[at + letter.len_utf8()..];
        let length = rest.find(|letter| !is_part(letter)).unwrap_or(rest.len());
        if !is_name || length == 0 {
            if quote.is_none() && letter == '$' {
                let text = "values are named as :name, not as $1";
                return Err(section.problem("sql", text));
            }
            text.sql.push(letter);
            continue;
        }
        let name = &rest[..length];
        for _ in 0..length {
            letters.next();
        }
        before = 'x';
        let Some(kind) = types.get(name) else {
            let text = format!("{name} is neither in draws nor kept by a statement");
            return Err(section.problem("sql", text));
        };
        text.params.push((name.to_string(), *kind));
        text.sql.push_str(&format!("${}", text.params.len()));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(value: &Value) -> Result<Statements, Problem> {
        Statements::read(Section::of("p", value)?)
    }

    #[test]
    fn names_become_parameters() {
        let statements = read(&json!({
            "draws": {
                "id": {"kind": "uniform", "from": 0, "to": 9},
                "name": {"kind": "text", "length": 4},
            },
            "load": [{"sql": "INSERT INTO t VALUES (:k, :name)", "each": "k", "from": 0, "to": 9}],
            "interactions": {"READ": [{
                "sql": "SELECT ':id', a::text, :id FROM t WHERE id = :id AND \"a:name\" = :name",
                "keep": "seen",
            }, {"sql": "SELECT :seen", "empty": "GONE"}]},
            "checks": [{"sql": "SELECT 1", "equals": 1, "plus": {"READ": 0}}],
        }));
        let statements = statements.expect("a workload");
        let all = statements.statements();
        use ParamType::{BigInt, Text};
        assert_eq!(
            all[0],
            (
                "SELECT ':id', a::text, $1 FROM t WHERE id = $2 AND \"a:name\" = $3".to_string(),
                vec![BigInt, BigInt, Text]
            )
        );
        assert_eq!(all[1].1, [BigInt]);
        assert_eq!(all[2].0, "INSERT INTO t VALUES ($1, $2)");
        assert_eq!(statements.interactions(), [("READ", ["GONE"].as_slice())]);
    }

    #[test]
    fn what_is_no_workload_is_refused_by_its_path() {
        let with = |key: &str, value: Value| {
            let mut whole = json!({"interactions": {"READ": [{"sql": "SELECT 1"}]}});
            whole[key] = value;
            read(&whole).expect_err(key)
        };
        let bad = with("interactions", json!({"READ": [{"sql": "SELECT :id"}]}));
        assert_eq!(bad.path, "p.interactions.READ.0.sql");
        let bad = with("interactions", json!({"READ": [{"sql": "SELECT $1"}]}));
        assert!(bad.text.contains(":name"), "{bad}");
        assert_eq!(
            with("interactions", json!({"READ": []})).path,
            "p.interactions.READ"
        );
        let bad = with(
            "interactions",
            json!({"READ": [{"sql": "SELECT 1", "row": 1}]}),
        );
        assert_eq!(bad.path, "p.interactions.READ.0.row");
        assert_eq!(with("interactions", json!({})).path, "p.interactions");
        let bad = with(
            "load",
            json!([{"sql": "SELECT 1", "from": 0, "to": i64::MAX}]),
        );
        assert_eq!(bad.path, "p.load.0.to");
        let bad = with("checks", json!([{"sql": "SELECT 1", "plus": {"BUY": 1}}]));
        assert_eq!(bad.path, "p.checks.0.plus.BUY");
        let bad = with("draws", json!({"a": {"kind": "list", "values": [1, "x"]}}));
        assert_eq!(bad.path, "p.draws.a");
        assert_eq!(with("setup", json!([4])).path, "p.setup.0");
        assert_eq!(with("sets", json!(4)).path, "p.sets");
    }
}

//! Transition tables: which interaction a session asks for next, as data.
//!
//! ```text
//! START:      {HOME: 1}
//! HOME:       {VIEW: 0.7, SELL: 0.2, END: rest}
//! SELL:       {HOME: 1}
//! VIEW:       {BID: 0.5, END: 0.5}
//! BID:        {END: 1}
//! "BID:LOST": {BID: 0.8, END: 0.2}      after a BID whose result was LOST
//! ```
//!
//! A state is named as its interaction, in capitals. In the long form
//! `{does: INTERACTION, next: {..}, think_time: ..}` it may have another name, a think time of its
//! own, or no interaction (`does: none`). A row `STATE:RESULT` holds after that result, the row
//! `STATE` after every other one. Probabilities of a row are 0 to 1 and add up to 1; one of them
//! may be `rest`. Every interaction has two results besides its own: `NOTHING`, there was nothing
//! to ask for, and `FAILED`, it was not answered.

use crate::document::{Problem, Section, below, told};
use crate::interaction::{FAILED, NOTHING};
use crate::think::Think;
use base::Prng;
use serde_json::Value;
use std::collections::BTreeMap;

/// Name of where a session begins.
pub const START: &str = "START";
/// Name of where it ends.
pub const END: &str = "END";
/// How far the sum of a row may be from 1.
const SUM_ERROR_MAX: f64 = 1e-9;
/// The most states of a table.
const STATES_MAX: usize = 1_000;

/// Where a session goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Next {
    /// To a state, by its place in the table.
    State(usize),
    /// Nowhere: the session is over.
    End,
}

/// The ways out of a state after one result.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The result; `None`: every result that has no row of its own.
    pub result: Option<String>,
    /// Where to, and how probable that is. The probabilities add up to 1.
    pub ways: Vec<(Next, f64)>,
}

/// One state.
#[derive(Clone, Debug, PartialEq)]
pub struct StateOf {
    /// Its name.
    pub name: String,
    /// The place of its interaction among those of the workload; `None`: it has none.
    pub interaction: Option<usize>,
    /// Its own think time, which follows its interaction.
    pub think: Option<Think>,
    /// The row for every other result first.
    pub rows: Vec<Row>,
}

/// A whole table.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    start: Row,
    states: Vec<StateOf>,
}

/// What a workload lets a table name.
#[derive(Clone, Copy, Debug)]
pub struct Known<'a> {
    /// Names of its interactions, each with the results that are told apart.
    pub interactions: &'a [(&'a str, &'a [&'a str])],
}

impl Table {
    /// Reads and checks a table.
    ///
    /// # Errors
    /// A name that is not known, a row whose sum is not 1, a state that is not reached, a circle
    /// without an interaction; by the path of the key.
    pub fn read(path: &str, value: &Value, known: Known<'_>) -> Result<Table, Problem> {
        let mut section = Section::of(path, value)?;
        let mut raw = Raw::default();
        for (key, value) in section.take_all() {
            raw.add(path, key, value)?;
        }
        let table = raw.resolve(path, known)?;
        table.check(path)?;
        Ok(table)
    }

    /// The table of a session that does one interaction again and again, and never ends.
    pub fn repeat(interaction: usize, name: &str) -> Table {
        let again = |result| Row {
            result,
            ways: vec![(Next::State(0), 1.0)],
        };
        Table {
            start: again(None),
            states: vec![StateOf {
                name: name.to_string(),
                interaction: Some(interaction),
                think: None,
                rows: vec![again(None)],
            }],
        }
    }

    /// The table of a session that draws each interaction anew, with these probabilities, which add
    /// up to 1; the names ascend. It never ends.
    ///
    /// Panics if the probabilities do not add up to 1.
    pub fn mix(parts: &[(usize, &str, f64)]) -> Table {
        let sum: f64 = parts.iter().map(|(_, _, p)| p).sum();
        assert!((sum - 1.0).abs() <= SUM_ERROR_MAX, "a mix adds up to {sum}");
        let ways = parts.iter().enumerate();
        let row = Row {
            result: None,
            ways: ways.map(|(at, (_, _, p))| (Next::State(at), *p)).collect(),
        };
        let state = |(interaction, name, _): &(usize, &str, f64)| StateOf {
            name: name.to_string(),
            interaction: Some(*interaction),
            think: None,
            rows: vec![row.clone()],
        };
        Table {
            start: row.clone(),
            states: parts.iter().map(state).collect(),
        }
    }

    /// Its states.
    pub fn states(&self) -> &[StateOf] {
        &self.states
    }

    /// The ways of a session that begins.
    pub fn start(&self) -> &Row {
        &self.start
    }

    /// The name of where a way leads.
    pub fn name(&self, next: Next) -> &str {
        match next {
            Next::State(state) => &self.states[state].name,
            Next::End => END,
        }
    }

    /// Draws the first state. [`Next::End`] where a session may end before it did anything.
    pub fn begin(&self, prng: &mut Prng) -> Next {
        draw(&self.start, prng)
    }

    /// Draws what follows a state after a result.
    pub fn follow(&self, state: usize, result: &str, prng: &mut Prng) -> Next {
        draw(self.row(state, result).1, prng)
    }

    /// The row that holds for a state after a result, and its place among the state's rows.
    pub fn row(&self, state: usize, result: &str) -> (usize, &Row) {
        let rows = &self.states[state].rows;
        let own = rows
            .iter()
            .position(|row| row.result.as_deref() == Some(result));
        let at = own.unwrap_or(0);
        (at, &rows[at])
    }

    /// Whether each session ends some time.
    pub fn ends(&self) -> bool {
        self.reaching_end().iter().all(|reaches| *reaches)
    }

    /// For each state whether a session that is there may end.
    fn reaching_end(&self) -> Vec<bool> {
        let mut reaches = vec![false; self.states.len()];
        loop {
            let before = reaches.clone();
            for (at, state) in self.states.iter().enumerate() {
                let mut ways = state.rows.iter().flat_map(|row| &row.ways);
                reaches[at] |= ways.any(|(next, p)| {
                    *p > 0.0
                        && match next {
                            Next::End => true,
                            Next::State(next) => before[*next],
                        }
                });
            }
            if reaches == before {
                return reaches;
            }
        }
    }

    fn check(&self, path: &str) -> Result<(), Problem> {
        let mut is_reached = vec![false; self.states.len()];
        let mut open: Vec<usize> = states_of(&self.start).collect();
        while let Some(state) = open.pop() {
            if !std::mem::replace(&mut is_reached[state], true) {
                open.extend(self.states[state].rows.iter().flat_map(states_of));
            }
        }
        if let Some(lost) = is_reached.iter().position(|reached| !reached) {
            let text = "no session ever comes here: no row that is reached leads to it";
            return Err(Problem::new(below(path, &self.states[lost].name), text));
        }
        self.check_circles(path)
    }

    /// From each state an interaction must be reached, also over END, behind which the next session
    /// begins: a session that never asks for anything would keep its thread busy for ever.
    fn check_circles(&self, path: &str) -> Result<(), Problem> {
        let acts = |state: &StateOf| state.interaction.is_some();
        // Begin and end count as one place, the last one.
        let home = self.states.len();
        let mut reaches: Vec<bool> = self.states.iter().map(acts).collect();
        reaches.push(false);
        loop {
            let before = reaches.clone();
            let leads = |row: &Row| {
                row.ways.iter().any(|(next, p)| {
                    let place = match next {
                        Next::State(state) => *state,
                        Next::End => home,
                    };
                    *p > 0.0 && before[place]
                })
            };
            for (at, state) in self.states.iter().enumerate() {
                reaches[at] |= state.rows.iter().all(leads);
            }
            reaches[home] |= leads(&self.start);
            if reaches == before {
                break;
            }
        }
        let Some(lost) = reaches.iter().position(|reaches| !reaches) else {
            return Ok(());
        };
        let name = self.states.get(lost).map_or(START, |state| &state.name);
        let text = "a session may go round for ever without an interaction from here";
        Err(Problem::new(below(path, name), text))
    }
}

fn states_of(row: &Row) -> impl Iterator<Item = usize> + '_ {
    let likely = row.ways.iter().filter(|(_, p)| *p > 0.0);
    likely.filter_map(|(next, _)| match next {
        Next::State(state) => Some(*state),
        Next::End => None,
    })
}

fn draw(row: &Row, prng: &mut Prng) -> Next {
    let mut rest = prng.unit();
    let mut last = Next::End;
    for (next, p) in &row.ways {
        if rest < *p {
            return *next;
        }
        rest -= p;
        if *p > 0.0 {
            last = *next;
        }
    }
    // The sum may be less than 1 by its rounding.
    last
}

/// A state as the document says it, its names not yet looked up.
#[derive(Default)]
struct RawState<'a> {
    does: Option<&'a str>,
    does_nothing: bool,
    think: Option<Think>,
    /// By result; `None` first.
    rows: BTreeMap<Option<&'a str>, Vec<(&'a str, f64)>>,
}

#[derive(Default)]
struct Raw<'a> {
    states: BTreeMap<&'a str, RawState<'a>>,
}

fn is_name(name: &str) -> bool {
    let mut letters = name.bytes();
    letters
        .next()
        .is_some_and(|letter| letter.is_ascii_uppercase())
        && letters.all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == b'_')
}

impl<'a> Raw<'a> {
    fn add(&mut self, path: &str, key: &'a str, value: &'a Value) -> Result<(), Problem> {
        let at = below(path, key);
        let (name, result) = match key.split_once(':') {
            Some((name, result)) => (name, Some(result)),
            None => (key, None),
        };
        if !is_name(name) || !result.is_none_or(is_name) || name == END {
            let text = "states are named in capitals, as BID or BID:LOST, and END has no row";
            return Err(Problem::new(at, text));
        }
        if name == START && result.is_some() {
            return Err(Problem::new(at, "START has no result"));
        }
        let state = self.states.entry(name).or_default();
        let mut ways = value;
        let is_long = value
            .as_object()
            .is_some_and(|row| row.contains_key("next"));
        if is_long {
            let mut section = Section::of(&at, value)?;
            ways = section.required("next")?;
            if result.is_none() && name != START {
                let does = section.text("does")?;
                state.does_nothing = does == Some("none");
                state.does = does.filter(|does| *does != "none");
                let think = section.take("think_time");
                let think = think.map(|think| Think::read(&section.path_of("think_time"), think));
                state.think = think.transpose()?;
            }
            section.finish()?;
        }
        state.rows.insert(result, read_row(&at, ways)?);
        Ok(())
    }

    fn resolve(mut self, path: &str, known: Known<'_>) -> Result<Table, Problem> {
        let start = self.states.remove(START);
        let missing = || Problem::new(below(path, START), "it is missing: where a session begins");
        let start = start.ok_or_else(missing)?;
        if self.states.is_empty() || self.states.len() > STATES_MAX {
            let text = format!("a table has 1 to {STATES_MAX} states besides START");
            return Err(Problem::new(path, text));
        }
        let names: Vec<&str> = self.states.keys().copied().collect();
        let row = |of: &str, result: Option<&str>, ways: &[(&str, f64)]| {
            let ways = ways.iter().map(|(name, p)| {
                let next = match *name == END {
                    true => Some(Next::End),
                    false => names.binary_search(name).ok().map(Next::State),
                };
                let lost = || {
                    let text = format!("there is no state {name} with a row of its own");
                    Problem::new(below(path, of), text)
                };
                Ok((next.ok_or_else(lost)?, *p))
            });
            Ok(Row {
                result: result.map(str::to_string),
                ways: ways.collect::<Result<_, Problem>>()?,
            })
        };
        let mut states = Vec::with_capacity(names.len());
        for (name, raw) in &self.states {
            let at = below(path, name);
            if !raw.rows.contains_key(&None) {
                let text = format!("{name} needs a row of its own, for every other result");
                return Err(Problem::new(at, text));
            }
            let interaction = raw.interaction(&at, name, known)?;
            let rows = raw
                .rows
                .iter()
                .map(|(result, ways)| row(name, *result, ways));
            states.push(StateOf {
                name: name.to_string(),
                interaction,
                think: raw.think.clone(),
                rows: rows.collect::<Result<_, Problem>>()?,
            });
        }
        let first = start.rows.get(&None).map_or(&[][..], Vec::as_slice);
        Ok(Table {
            start: row(START, None, first)?,
            states,
        })
    }
}

impl RawState<'_> {
    /// The interaction of this state, and whether its results are ones that the interaction has.
    fn interaction(
        &self,
        at: &str,
        name: &str,
        known: Known<'_>,
    ) -> Result<Option<usize>, Problem> {
        let mut results = self.rows.keys().filter_map(|result| *result);
        if self.does_nothing {
            return match results.next() {
                Some(result) => {
                    let text = format!("a state without an interaction has no result {result}");
                    Err(Problem::new(at, text))
                }
                None => Ok(None),
            };
        }
        let wanted = self.does.unwrap_or(name);
        let place = known
            .interactions
            .iter()
            .position(|(name, _)| *name == wanted);
        let Some(place) = place else {
            let names: Vec<&str> = known.interactions.iter().map(|(name, _)| *name).collect();
            let text = format!(
                "the workload has no interaction {wanted}: there are {}; a state without one says \
                 does: none",
                names.join(", ")
            );
            return Err(Problem::new(at, text));
        };
        let told_apart = known.interactions[place].1;
        let is_known =
            |result: &str| told_apart.contains(&result) || result == FAILED || result == NOTHING;
        if let Some(unknown) = results.find(|result| !is_known(result)) {
            let text = match told_apart.is_empty() {
                true => format!("{wanted} has no results, so none is {unknown}"),
                false => format!(
                    "{unknown} is none of its results: {}",
                    told_apart.join(", ")
                ),
            };
            return Err(Problem::new(format!("{at}:{unknown}"), text));
        }
        Ok(Some(place))
    }
}

fn read_row<'a>(at: &str, value: &'a Value) -> Result<Vec<(&'a str, f64)>, Problem> {
    let mut section = Section::of(at, value)?;
    let mut ways = Vec::new();
    let mut rest = None;
    for (name, value) in section.take_all() {
        let path = below(at, name);
        if value.as_str() == Some("rest") {
            if rest.replace(ways.len()).is_some() {
                return Err(Problem::new(
                    path,
                    "only one probability of a row is the rest",
                ));
            }
            ways.push((name, 0.0));
            continue;
        }
        match value.as_f64().filter(|p| (0.0..=1.0).contains(p)) {
            Some(p) => ways.push((name, p)),
            None => {
                let text = format!("{} is no probability of 0 to 1, nor rest", told(value));
                return Err(Problem::new(path, text));
            }
        }
    }
    let sum: f64 = ways.iter().map(|(_, p)| p).sum();
    match rest {
        Some(place) if sum <= 1.0 + SUM_ERROR_MAX => ways[place].1 = (1.0 - sum).max(0.0),
        None if (sum - 1.0).abs() <= SUM_ERROR_MAX => {}
        Some(_) | None => {
            let text = format!("the probabilities add up to {sum}, not to 1");
            return Err(Problem::new(at, text));
        }
    }
    Ok(ways)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use workload::stats::binomial_interval;

    const KNOWN: Known<'static> = Known {
        interactions: &[
            ("VIEW", &["EMPTY"]),
            ("BID", &["LOST", "WON"]),
            ("SELL", &[]),
        ],
    };

    fn auction() -> Value {
        json!({
            "START": {"HOME": 1},
            "HOME": {"does": "none", "next": {"VIEW": 0.7, "SELL": 0.2, "END": "rest"}},
            "SELL": {"next": {"HOME": 1}, "think_time": {"kind": "constant", "ms": 3}},
            "VIEW": {"BID": 0.5, "END": 0.5},
            "VIEW:EMPTY": {"HOME": 1},
            "BID": {"END": 1},
            "BID:LOST": {"AGAIN": 0.8, "END": 0.2},
            "AGAIN": {"does": "BID", "next": {"END": 1}},
        })
    }

    fn refused(value: &Value, path: &str, text: &str) {
        let problem = Table::read("states", value, KNOWN).expect_err(&value.to_string());
        assert_eq!(problem.path, path, "{problem}");
        assert!(problem.text.contains(text), "{problem}");
    }

    #[test]
    fn tables_are_read() {
        let table = Table::read("states", &auction(), KNOWN).expect("a table");
        let names: Vec<&str> = table.states().iter().map(|state| &*state.name).collect();
        assert_eq!(names, ["AGAIN", "BID", "HOME", "SELL", "VIEW"]);
        let does: Vec<Option<usize>> = table.states().iter().map(|s| s.interaction).collect();
        assert_eq!(does, [Some(1), Some(1), None, Some(2), Some(0)]);
        assert_eq!(table.states()[3].think, Some(Think::Constant(3.0)));
        assert!(table.ends());
        assert_eq!(table.row(1, "LOST").0, 1);
        assert_eq!(table.row(1, "WON").0, 0);
        let repeat = Table::repeat(0, "VIEW");
        assert!(!repeat.ends());
        assert_eq!(repeat.begin(&mut Prng::new(1)), Next::State(0));
    }

    /// All transitions of many sessions are within 99.9 % bounds of their probabilities, the bounds
    /// of a row's ways together; the same seed gives the same walk.
    #[test]
    fn transitions_are_as_often_as_the_table_says() {
        let table = Table::read("states", &auction(), KNOWN).expect("a table");
        let walk = |seed: u64| {
            let mut prng = Prng::new(seed);
            let mut counts: BTreeMap<(usize, usize, Next), u64> = BTreeMap::new();
            for _ in 0..30_000 {
                let mut at = table.begin(&mut prng);
                while let Next::State(state) = at {
                    let result = match prng.below(3) {
                        0 => "LOST",
                        1 => "EMPTY",
                        _ => "",
                    };
                    let (row, _) = table.row(state, result);
                    at = table.follow(state, result, &mut prng);
                    *counts.entry((state, row, at)).or_default() += 1;
                }
            }
            counts
        };
        let counts = walk(7);
        assert_eq!(counts, walk(7));
        assert_ne!(counts, walk(8));
        for (at, state) in table.states().iter().enumerate() {
            for (place, row) in state.rows.iter().enumerate() {
                let count = |next: Next| counts.get(&(at, place, next)).copied().unwrap_or(0);
                let all: u64 = row.ways.iter().map(|(next, _)| count(*next)).sum();
                let coverage = 1.0 - 0.001 / row.ways.len() as f64;
                for (next, p) in &row.ways {
                    let (low, high) = binomial_interval(all, *p, coverage);
                    let counted = count(*next);
                    let name = format!("{} to {}", state.name, table.name(*next));
                    assert!(
                        (low..=high).contains(&counted),
                        "{name}: {counted} of {all}"
                    );
                }
            }
        }
    }

    #[test]
    fn what_is_no_table_is_refused_by_its_path() {
        let with = |key: &str, value: Value| {
            let mut table = auction();
            table[key] = value;
            table
        };
        refused(&json!({"VIEW": {"END": 1}}), "states.START", "missing");
        refused(
            &json!({"START": {"VIEW": 1}}),
            "states",
            "states besides START",
        );
        refused(
            &with("SELL", json!({"HOME": 0.5})),
            "states.SELL",
            "add up to 0.5",
        );
        refused(
            &with("SELL", json!({"HOME": 1.5})),
            "states.SELL.HOME",
            "no probability",
        );
        let twice = json!({"HOME": "rest", "VIEW": "rest"});
        refused(&with("SELL", twice), "states.SELL.VIEW", "only one");
        let more = json!({"HOME": "rest", "VIEW": 0.7, "BID": 0.6});
        refused(&with("SELL", more), "states.SELL", "add up to");
        refused(
            &with("SELL", json!({"BUY": 1})),
            "states.SELL",
            "no state BUY",
        );
        refused(
            &with("BUY", json!({"END": 1})),
            "states.BUY",
            "no interaction BUY",
        );
        refused(
            &with("SELL:LOST", json!({"END": 1})),
            "states.SELL:LOST",
            "has no results",
        );
        refused(
            &with("BID:GONE", json!({"END": 1})),
            "states.BID:GONE",
            "none of its results",
        );
        refused(
            &with("HOME:LOST", json!({"END": 1})),
            "states.HOME",
            "no result LOST",
        );
        refused(
            &with("END", json!({"HOME": 1})),
            "states.END",
            "END has no row",
        );
        refused(
            &with("START:X", json!({"HOME": 1})),
            "states.START:X",
            "no result",
        );
        refused(&with("bid", json!({"END": 1})), "states.bid", "capitals");
        let lost = json!({"does": "BID", "next": {"END": 1}});
        refused(
            &with("LOST", lost),
            "states.LOST",
            "no session ever comes here",
        );
        let idle = json!({
            "START": {"HOME": 0.5, "VIEW": 0.5},
            "HOME": {"does": "none", "next": {"IDLE": 1}},
            "IDLE": {"does": "none", "next": {"HOME": 1}},
            "VIEW": {"END": 1},
        });
        refused(&idle, "states.HOME", "for ever");
        let long = json!({"next": {"HOME": 1}, "thinks": 4});
        refused(&with("SELL", long), "states.SELL.thinks", "not known");
        let mut only = auction();
        only.as_object_mut().expect("an object").remove("VIEW");
        refused(&only, "states.VIEW", "a row of its own");
    }
}

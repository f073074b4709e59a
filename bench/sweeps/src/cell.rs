//! One combination of settings.

use serde_json::{Map, Value, json};

/// What one key says in one cell.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Choice {
    /// `false`: the option is not given.
    Out,
    /// `true`: an option without a value.
    Flag,
    /// The option with this value; with several of them it is given as often.
    Values(Vec<String>),
}

impl Choice {
    /// As a reader sees it.
    pub fn text(&self) -> String {
        match self {
            Choice::Out => "none".to_owned(),
            Choice::Flag => "yes".to_owned(),
            Choice::Values(values) => values.join(" "),
        }
    }

    pub(crate) fn arguments(&self, key: &str) -> Vec<String> {
        match self {
            Choice::Out => Vec::new(),
            Choice::Flag => vec![format!("--{key}")],
            // In one word, so that a value may begin with a dash.
            Choice::Values(values) => values
                .iter()
                .map(|value| format!("--{key}={value}"))
                .collect(),
        }
    }

    fn json(&self) -> Value {
        match self {
            Choice::Out => json!(false),
            Choice::Flag => json!(true),
            Choice::Values(values) => json!(values),
        }
    }
}

/// The seed of a run that says none.
const SEED: u64 = 1;

/// One combination of settings, and which repetition of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cell {
    /// Keys in the order of the file.
    pub settings: Vec<(String, Choice)>,
    /// From 0.
    pub repeat: u32,
}

impl Cell {
    /// What the file says for a key.
    pub fn get(&self, key: &str) -> Option<&Choice> {
        let found = self.settings.iter().find(|(name, _)| name == key);
        found.map(|(_, choice)| choice)
    }

    /// Arguments of the command. Each repetition has a seed of its own.
    pub fn arguments(&self) -> Vec<String> {
        let others = self.settings.iter().filter(|(key, _)| key != "seed");
        let mut all: Vec<String> = others
            .flat_map(|(key, choice)| choice.arguments(key))
            .collect();
        let seed = match (self.get("seed"), self.repeat) {
            (Some(choice @ Choice::Values(_)), 0) => {
                all.extend(choice.arguments("seed"));
                return all;
            }
            (Some(Choice::Values(values)), _) => values[0].parse().unwrap_or(SEED),
            _ => SEED,
        };
        let seed = seed.wrapping_add(u64::from(self.repeat));
        all.push(format!("--seed={seed}"));
        all
    }

    /// Everything that decides the cell. Equal cells have equal texts, in whatever order the file
    /// says its keys.
    pub fn json(&self) -> Value {
        let settings = self.settings.iter();
        let settings: Map<String, Value> = settings
            .map(|(key, choice)| (key.clone(), choice.json()))
            .collect();
        json!({ "settings": settings, "repeat": self.repeat })
    }

    /// The name of the cell's file: a hash of [`Cell::json`].
    pub fn id(&self) -> String {
        format!("{:016x}", fnv(self.json().to_string().as_bytes()))
    }
}

/// The order of a sweep that draws it: drift of the machine then falls on all settings alike. It
/// depends on the seed and the cells alone, so a sweep that goes on keeps it.
pub(crate) fn shuffle(cells: &mut [Cell], seed: u64) {
    cells.sort_by_cached_key(|cell| fnv(format!("{seed} {}", cell.id()).as_bytes()));
}

/// FNV-1a, whose values are the same with every compiler.
fn fnv(bytes: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(clients: &str, repeat: u32) -> Cell {
        let values = |text: &str| Choice::Values(vec![text.to_owned()]);
        Cell {
            settings: vec![
                ("clients".to_owned(), values(clients)),
                ("keying".to_owned(), Choice::Flag),
                ("fault".to_owned(), Choice::Out),
            ],
            repeat,
        }
    }

    #[test]
    fn arguments_are_those_of_the_command_line() {
        assert_eq!(
            cell("4", 2).arguments(),
            ["--clients=4", "--keying", "--seed=3"]
        );
        let mut seeded = cell("4", 0);
        let values = vec!["70".to_owned()];
        seeded
            .settings
            .push(("seed".to_owned(), Choice::Values(values)));
        assert_eq!(seeded.arguments()[2], "--seed=70");
        seeded.repeat = 1;
        assert_eq!(seeded.arguments()[2], "--seed=71");
    }

    #[test]
    fn the_hash_is_that_of_the_settings() {
        let mut turned = cell("4", 0);
        turned.settings.reverse();
        assert_eq!(turned.id(), cell("4", 0).id());
        assert_ne!(cell("4", 0).id(), cell("5", 0).id());
        assert_ne!(cell("4", 0).id(), cell("4", 1).id());
        // Results of an earlier release are found again.
        assert_eq!(fnv(b"a"), 0xaf63_dc4c_8601_ec8c);
    }

    #[test]
    fn an_order_is_drawn_once() {
        let cells = |order: &mut dyn Iterator<Item = u32>| -> Vec<Cell> {
            order.map(|at| cell(&at.to_string(), 0)).collect()
        };
        let (mut one, mut other) = (cells(&mut (0..20)), cells(&mut (0..20).rev()));
        shuffle(&mut one, 1);
        shuffle(&mut other, 1);
        assert_eq!(one, other);
        assert_ne!(one, cells(&mut (0..20)));
        shuffle(&mut other, 2);
        assert_ne!(one, other);
    }
}

//! The file of costs that `trellis sim calibrate` writes and `trellis sim scale` reads.

use anyhow::{Context, Result};
use serde_json::{Map, Value, json};
use sim::scale::{AMOUNTS, CostTable};
use std::path::Path;

/// The costs that this program brings; the file says where they are from.
const DEFAULT: &str = include_str!("costs.json");

/// A table of costs and where it is from.
pub struct CostFile {
    /// Which machine, in words.
    pub machine: String,
    /// What a step, a frame, a flush cost.
    pub table: CostTable,
    /// How well the table explains what was measured.
    pub(crate) fit: Value,
}

impl CostFile {
    /// As JSON.
    pub fn json(&self) -> Value {
        let table = &self.table;
        let round = |ns: f64| (ns * 10.0).round() / 10.0;
        let each = |(name, ns): (&str, f64)| (name.to_owned(), json!(round(ns)));
        let kinds = table.kinds.iter().map(|(name, ns)| (name.as_str(), *ns));
        let amounts = AMOUNTS.into_iter().zip(table.amounts);
        json!({
            "machine": self.machine,
            "step_ns": kinds.map(each).collect::<Map<_, _>>(),
            "amount_ns": amounts.map(each).collect::<Map<_, _>>(),
            "frame_ns": round(table.frame_ns),
            "coding_ns": round(table.coding_ns),
            "client_round_ns": round(table.client_round_ns),
            "flush_ns": round(table.flush_ns),
            "flush_byte_ns": table.flush_byte_ns,
            "link_ns": table.link_ns,
            "link_bytes_per_s": table.link_bytes_per_s,
            "local_ns": table.local_ns,
            "client_ns": table.client_ns,
            "fit": self.fit,
        })
    }

    /// The file at `path`, or what this program brings.
    ///
    /// # Errors
    /// The file cannot be read or holds no costs.
    pub fn of_option(path: Option<&Path>) -> Result<CostFile> {
        match path {
            Some(path) => {
                let text = std::fs::read_to_string(path);
                let text = text.with_context(|| format!("cannot read {}", path.display()))?;
                CostFile::read(&text).with_context(|| {
                    let path = path.display();
                    format!("{path} holds no costs; trellis sim calibrate FILE writes them")
                })
            }
            None => CostFile::read(DEFAULT),
        }
    }

    /// Reads what [`CostFile::json`] gives.
    pub(crate) fn read(text: &str) -> Result<CostFile> {
        let file: Value = serde_json::from_str(text).context("it is no JSON")?;
        let field = |name: &str| {
            file.get(name)
                .with_context(|| format!("no {name} in the costs"))
        };
        let float = |name: &str| {
            let number = field(name)?.as_f64().filter(|ns| *ns >= 0.0);
            number.with_context(|| format!("{name} is no cost"))
        };
        let whole = |name: &str| {
            let number = field(name)?.as_u64();
            number.with_context(|| format!("{name} is no whole number"))
        };
        let map = |name: &str| {
            let map = field(name)?.as_object();
            map.with_context(|| format!("{name} is no object"))
        };
        let mut table = CostTable {
            frame_ns: float("frame_ns")?,
            coding_ns: float("coding_ns")?,
            client_round_ns: float("client_round_ns")?,
            flush_ns: float("flush_ns")?,
            flush_byte_ns: float("flush_byte_ns")?,
            link_ns: whole("link_ns")?,
            link_bytes_per_s: whole("link_bytes_per_s")?,
            local_ns: whole("local_ns")?,
            client_ns: whole("client_ns")?,
            ..CostTable::default()
        };
        for (name, ns) in map("step_ns")? {
            let ns = ns.as_f64().with_context(|| format!("{name} is no cost"))?;
            table.kinds.insert(name.clone(), ns);
        }
        of_the_same_machine(&mut table);
        let amounts = map("amount_ns")?;
        for (slot, name) in table.amounts.iter_mut().zip(AMOUNTS) {
            let ns = amounts.get(name).and_then(Value::as_f64);
            *slot = ns.with_context(|| format!("no {name} in amount_ns"))?;
        }
        let machine = field("machine")?.as_str().context("machine is a text")?;
        Ok(CostFile {
            machine: machine.to_owned(),
            table,
            fit: field("fit")?.clone(),
        })
    }
}

/// Gives steps of formula the costs of the same steps of two_phase, where they were not measured by
/// themselves: it is the machine of two_phase with another control (`two_phase::Control`).
fn of_the_same_machine(table: &mut CostTable) {
    let same = |(kind, ns): (&String, &f64)| {
        let step = kind.strip_prefix("two_phase.")?;
        Some((format!("formula.{step}"), *ns))
    };
    let more: Vec<(String, f64)> = table.kinds.iter().filter_map(same).collect();
    for (kind, ns) in more {
        table.kinds.entry(kind).or_insert(ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_costs_of_this_program_are_read_and_written() {
        let file = CostFile::read(DEFAULT).unwrap();
        assert!(file.table.kinds.len() > 1 && file.table.flush_ns > 0.0);
        let again = CostFile::read(&file.json().to_string()).unwrap();
        assert_eq!(again.table, file.table);
    }

    #[test]
    fn what_is_missing_or_negative_is_refused() {
        for text in ["", "{}", "[]"] {
            assert!(CostFile::read(text).is_err(), "{text}");
        }
        let mut value: Value = serde_json::from_str(DEFAULT).unwrap();
        value["frame_ns"] = json!(-1);
        assert!(CostFile::read(&value.to_string()).is_err());
    }
}

//! What the tables of a load go without on Trellis (Dike, figures 19 e and f).

use std::fmt;
use std::str::FromStr;

/// Clauses that are left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Without {
    /// That which places all rows of a warehouse together: every row lies where its key says.
    pub binding: bool,
    /// That which keeps ITEM on every node.
    pub broadcast: bool,
}

impl Without {
    /// The steps in the bookkeeping table.
    pub(super) fn names(self) -> impl Iterator<Item = &'static str> {
        let all = [
            (self.binding, "without_binding"),
            (self.broadcast, "without_broadcast"),
        ];
        let left_out = all.into_iter().filter(|(is_left_out, _)| *is_left_out);
        left_out.map(|(_, name)| name)
    }

    /// What a reader must know before comparing numbers.
    pub(super) fn remarks(self) -> Vec<String> {
        let all = [
            (
                self.binding,
                "rows of a warehouse are not bound to one node",
            ),
            (self.broadcast, "ITEM is not kept on every node"),
        ];
        let left_out = all.into_iter().filter(|(is_left_out, _)| *is_left_out);
        left_out.map(|(_, remark)| remark.to_string()).collect()
    }
}

impl fmt::Display for Without {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match (self.binding, self.broadcast) {
            (false, false) => "with binding and broadcast",
            (true, false) => "without binding",
            (false, true) => "without broadcast",
            (true, true) => "without binding and without broadcast",
        })
    }
}

/// `binding`, `broadcast` or `binding,broadcast`.
impl FromStr for Without {
    type Err = String;

    fn from_str(text: &str) -> Result<Without, String> {
        let mut without = Without::default();
        for name in text.split(',') {
            let left_out = match name {
                "binding" => &mut without.binding,
                "broadcast" => &mut without.broadcast,
                _ => return Err(format!("{name:?} is neither binding nor broadcast")),
            };
            if std::mem::replace(left_out, true) {
                return Err(format!("{name} is said twice"));
            }
        }
        Ok(without)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_clause_is_left_out_once() {
        let both: Without = "broadcast,binding".parse().unwrap();
        assert!(both.binding && both.broadcast && both.remarks().len() == 2);
        for bad in ["", "placement", "binding,binding"] {
            assert!(bad.parse::<Without>().is_err(), "{bad}");
        }
    }
}

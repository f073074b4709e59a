//! What the repetition is expected to show, as ratios of one run, and whether it did.

use drive::report::escape;
use serde_json::{Value, json};
use std::fmt::Write;

/// One expectation.
pub(super) struct Expectation {
    /// Number in the list of expectations, 1 to 5, and a letter for its parts.
    pub(super) number: &'static str,
    /// What is expected.
    pub(super) wanted: &'static str,
    /// What was found.
    pub(super) found: String,
    /// Whether that is it; `None`: a figure to report, nothing to meet.
    pub(super) met: Option<bool>,
}

impl Expectation {
    fn verdict(&self) -> &'static str {
        match self.met {
            Some(true) => "met",
            Some(false) => "missed",
            None => "reported",
        }
    }

    pub(super) fn plain(&self) -> String {
        let Expectation {
            number,
            wanted,
            found,
            ..
        } = self;
        format!("{:<9}{number:<3} {wanted}: {found}", self.verdict())
    }

    pub(super) fn json(&self) -> Value {
        json!({
            "number": self.number,
            "wanted": self.wanted,
            "found": self.found,
            "verdict": self.verdict(),
        })
    }
}

/// All of them as a table.
pub(super) fn html(all: &[Expectation]) -> String {
    let mut out = String::from("<div class=\"verdict\"><h2>Expectations</h2><table>");
    for one in all {
        let class = match one.met {
            Some(true) => "good",
            Some(false) => "bad",
            None => "dim",
        };
        let _ = write!(
            out,
            "<tr><td>{}</td><td class=\"text\">{}</td><td class=\"text\">{}</td>\
             <td class=\"{class}\">{}</td></tr>",
            one.number,
            escape(one.wanted),
            escape(&one.found),
            one.verdict(),
        );
    }
    out.push_str("</table></div>");
    out
}

//! What an audit of the drawn inputs, or of what a run has acknowledged, has found.

use alloc::string::String;

/// What an audit says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Inside the limits.
    Passed,
    /// Outside.
    Failed,
    /// Nothing to audit: no samples, or one warehouse for a rule about others.
    NotApplicable,
}

/// One audited number.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The clause.
    pub clause: &'static str,
    /// What was counted.
    pub title: &'static str,
    /// Size of the sample.
    pub samples: u64,
    /// What was observed, as text with its unit.
    pub observed: String,
    /// What is allowed, as text.
    pub allowed: String,
    /// The outcome.
    pub verdict: Verdict,
}

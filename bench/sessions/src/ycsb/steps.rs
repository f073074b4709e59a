//! The extension of YCSB by multi-step transactions (section 5.1 of the LEAP paper): the keys of a
//! step are known when the answers of the step before are there.
//!
//! A step has a leading operation. The keys of the next step are those that were drawn, or their
//! successors if the leading record's count of updates is odd. So the transaction takes as many
//! rounds as it has steps, and of one without an answer it is known which records it may have
//! changed.

use super::{FIELDS, Ycsb};
use crate::distribution::letters;
use crate::interaction::{Changes, Plan, Session};

/// One operation: it reads a record, and maybe replaces a field.
#[derive(Clone, Debug)]
pub struct Op {
    key: i64,
    /// The field and its new content.
    pub(super) change: Option<(u64, String)>,
}

/// Operations that travel together; the first one leads.
pub type Step = Vec<Op>;

/// A transaction of steps.
#[derive(Clone, Copy, Debug)]
pub struct Steps<'a>(pub(super) &'a Ycsb);

impl Steps<'_> {
    /// The key of an operation behind a leading record with this count of updates.
    pub(super) fn key(&self, op: &Op, led_by: i64) -> i64 {
        (op.key + led_by.rem_euclid(2)) % self.0.records as i64
    }

    fn draw(&self, session: &mut Session) -> Op {
        let key = self.0.key(session);
        let draws = &mut session.draws;
        let content = |draws: &mut _| letters(draws, self.0.field_bytes);
        let change = match draws.below(2) {
            0 => None,
            _ => Some((draws.below(FIELDS), content(draws))),
        };
        Op { key, change }
    }
}

impl Plan for Steps<'_> {
    type Param = Vec<Step>;
    /// Keys of the records that were changed, each as often as it was.
    type Answer = Vec<i64>;

    fn prepare(&self, session: &mut Session) -> Option<Vec<Step>> {
        let step = |session: &mut Session| {
            let mut step: Step = (0..self.0.step_ops).map(|_| self.draw(session)).collect();
            // Transactions that lock do so in the order of keys within a step.
            step.sort_by_key(|op| op.key);
            step
        };
        Some((0..self.0.steps).map(|_| step(session)).collect())
    }

    fn complete(&self, _: &Vec<Step>, _: Vec<i64>, _: &mut Session) -> &'static str {
        ""
    }

    fn note(&self, param: &Vec<Step>, answer: Option<&Vec<i64>>, changes: &mut Changes) {
        let mut note = |key: i64, is_known| changes.note(super::UPDATED, key as u64, 1, is_known);
        if let Some(keys) = answer {
            keys.iter().for_each(|key| note(*key, true));
            return;
        }
        for (at, step) in param.iter().enumerate() {
            // Nothing leads the first step.
            let leads = if at == 0 { 0..=0 } else { 0..=1 };
            for op in step.iter().filter(|op| op.change.is_some()) {
                leads
                    .clone()
                    .for_each(|led_by| note(self.key(op, led_by), false));
            }
        }
    }
}

//! What a planned statement reads: whether it may read without locks when it is a transaction of
//! its own (docs/adr/0015-reads-of-one-statement.md).

use crate::plan::Reads;
use crate::step::{Action, Run, Scan, Step, StepOp};
use bind::rel::{Call, CallKind, InitValue};

impl Run {
    /// What the statement reads, and whether that is all it does.
    pub(crate) fn reads(&self) -> Reads {
        let mut survey = Survey::default();
        for init in &self.inits {
            if let InitValue::Call(call) = &init.value {
                survey.call(call);
            }
        }
        match &self.action {
            Action::Query(step) => survey.step(step),
            Action::CopyTo(copy) => survey.step(&copy.query),
            // Its plan says what the statement inside reads.
            Action::Explain { .. }
            | Action::Point(_)
            | Action::Insert(_)
            | Action::Write(_)
            | Action::Parts(_)
            | Action::Routine(_)
            | Action::Truncate(..)
            | Action::CopyFrom(_)
            | Action::Show(_)
            | Action::Upkeep(_)
            | Action::Fill(_) => survey.acts = true,
        }
        match survey {
            Survey { acts: true, .. } | Survey { ranges: false, .. } => Reads::Keys,
            Survey { .. } => Reads::Ranges,
        }
    }
}

/// What was seen on the way through a plan.
#[derive(Default)]
struct Survey {
    /// It does something else, or locks what it reads.
    acts: bool,
    /// It reads other than single rows by a whole key.
    ranges: bool,
}

impl Survey {
    fn scan(&mut self, scan: &Scan) {
        self.acts |= scan.lock.is_some() || scan.newest;
        self.ranges |= !scan.access.point;
    }

    fn call(&mut self, call: &Call<Step>) {
        match &call.kind {
            CallKind::Query { query, .. } => self.step(query),
            CallKind::Nextval(_)
            | CallKind::Sequence(..)
            | CallKind::Signal(..)
            | CallKind::ForgetStatements(_)
            | CallKind::Advisory(..)
            | CallKind::Notify(_)
            | CallKind::Object(..) => self.acts = true,
            CallKind::Currval(_) | CallKind::Sleep(_) => {}
        }
    }

    fn step(&mut self, step: &Step) {
        match &step.op {
            StepOp::One
            | StepOp::Virtual(_)
            | StepOp::Function { .. }
            | StepOp::Part { .. }
            | StepOp::Working { .. } => {}
            StepOp::Values { calls, .. } => calls.iter().for_each(|call| self.call(call)),
            StepOp::Scan(scan) => self.scan(scan),
            StepOp::Filter { input, .. }
            | StepOp::Project { input, .. }
            | StepOp::Aggregate { input, .. }
            | StepOp::Expand { input, .. }
            | StepOp::Window { input, .. }
            | StepOp::Distinct { input, .. }
            | StepOp::Sort { input, .. }
            | StepOp::Shared { query: input, .. }
            | StepOp::Limit { input, .. } => self.step(input),
            StepOp::Locked { input, .. } => {
                self.acts = true;
                self.step(input);
            }
            StepOp::Apply { input, calls } => {
                self.step(input);
                calls.iter().for_each(|call| self.call(call));
            }
            StepOp::Lookup { left, scan, .. } => {
                self.step(left);
                self.scan(scan);
            }
            StepOp::Hash { left, right, .. }
            | StepOp::Lateral { left, right, .. }
            | StepOp::Match { left, right, .. }
            | StepOp::Recursive {
                base: left,
                step: right,
                ..
            } => {
                self.step(left);
                self.step(right);
            }
            StepOp::Union { inputs } => inputs.iter().for_each(|input| self.step(input)),
        }
    }
}

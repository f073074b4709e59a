//! What a client must be told before COPY data flows.

use crate::exec::step::Action;
use crate::parse::CopyFormat;
use crate::plan::{Plan, PlanKind};

/// Direction and form of a COPY.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CopyShape {
    /// COPY FROM: the client sends the data.
    pub from: bool,
    /// Columns of the data.
    pub columns: u16,
    /// Binary form; else lines of text.
    pub binary: bool,
}

/// The shape of a COPY; `None` for any other statement.
pub fn copy_shape(plan: &Plan) -> Option<CopyShape> {
    let PlanKind::Run(run) = &plan.kind else { return None };
    let (from, columns, format) = match &run.action {
        Action::CopyFrom(copy) => (true, copy.columns.len(), copy.options.format),
        Action::CopyTo(copy) => (false, copy.columns.len(), copy.options.format),
        _ => return None,
    };
    Some(CopyShape { from, columns: columns as u16, binary: format == CopyFormat::Binary })
}

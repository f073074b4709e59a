//! The scale model on the command line: `trellis sim calibrate` measures what this machine takes
//! for a step, `trellis sim scale` computes larger clusters from such costs.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod calibrate;
mod cost_file;
pub mod scale;

pub use cost_file::CostFile;

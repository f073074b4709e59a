//! The one command line.
fn main() {}

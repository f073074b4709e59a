//! Golden scripts.

use crate::TwoPhase;

#[test]
fn golden_scripts() {
    bed::Script::<TwoPhase>::run_folder("testdata");
}

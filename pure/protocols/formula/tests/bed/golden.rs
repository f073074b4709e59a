//! Golden scripts: the schedules that the rules of the paper admit and that are not serializable
//! (F1 to F8), the one of its example, and formulas side by side.

use super::world::Tested;

#[test]
fn golden_scripts() {
    bed::Script::<Tested>::run_folder("testdata");
}

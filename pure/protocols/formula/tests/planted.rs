//! The rules as the paper prints them, as planted bugs: each schedule that they admit and that is
//! not serializable (F1 to F8) is seen to end as it must not.
#![cfg(feature = "planted")]

#[path = "bed/world.rs"]
mod world;

use base::Planted::{
    self, FormulaFoldsAsTheyCome, FormulaReadSkipsPromise, FormulaReadsNewest,
    FormulaReadsNotJudged, FormulaTimestampsPerShard,
};
use world::Tested;

/// Each schedule with the rule of the paper that admits it, as a planted bug.
#[test]
fn the_rules_of_the_paper_fail() {
    let schedules: [(&str, Planted); 9] = [
        ("f1_lost_update", FormulaReadsNotJudged),
        ("f2_write_skew_past_pending", FormulaReadsNotJudged),
        ("f3_write_skew_formula", FormulaReadsNotJudged),
        ("f4_read_skew", FormulaReadsNewest),
        ("f4b_fuzzy_read", FormulaReadsNewest),
        ("f5_blind_writers", FormulaTimestampsPerShard),
        ("f6_circular_information", FormulaFoldsAsTheyCome),
        ("f7_two_readers", FormulaReadsNotJudged),
        ("f8_fractured_read", FormulaReadSkipsPromise),
    ];
    for (name, rule) in schedules {
        let path = format!("testdata/{name}.txt");
        let script = std::fs::read_to_string(path).expect("a readable script");
        let run = || bed::Script::<Tested>::trace(&script);
        assert_eq!(run(), script, "{name}");
        assert!(base::plant(Some(rule)), "this build can");
        // The store may notice first.
        let with_the_rule = std::panic::catch_unwind(run);
        assert!(base::plant(None), "this build can");
        assert!(
            with_the_rule.is_err() || with_the_rule.is_ok_and(|trace| trace != script),
            "{name}"
        );
    }
}

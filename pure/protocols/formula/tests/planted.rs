//! Rules that are broken by planted bugs (F1 to F8 as the paper prints them): each schedule goes
//! wrong then.
#![cfg(debug_assertions)]
#![allow(clippy::disallowed_methods, reason = "a test reads its scripts")]

#[path = "bed/world.rs"]
mod world;

use base::Planted::{
    self, FormulaFoldsAsTheyCome, FormulaReadSkipsPromise, FormulaReadersUnasked,
    FormulaReadsNewest, FormulaReadsNotJudged, FormulaTimestampsPerShard, FormulaTopsIgnored,
};
use world::Tested;

/// Each schedule with the rule of the paper that admits it, as a planted bug.
#[test]
fn schedules_go_wrong_without_their_rules() {
    let schedules: [(&str, Planted); 11] = [
        ("f1_lost_update", FormulaReadsNotJudged),
        ("f2_write_skew_past_pending", FormulaReadsNotJudged),
        ("f3_write_skew_formula", FormulaReadsNotJudged),
        ("f4_read_skew", FormulaReadsNewest),
        ("f4b_fuzzy_read", FormulaReadsNewest),
        ("f5_blind_writers", FormulaTimestampsPerShard),
        ("f6_circular_information", FormulaFoldsAsTheyCome),
        ("f7_two_readers", FormulaReadsNotJudged),
        ("f8_fractured_read", FormulaReadSkipsPromise),
        ("a4_clock_jumps", FormulaTopsIgnored),
        ("a8_reader_of_two_shards", FormulaReadersUnasked),
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

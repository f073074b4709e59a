//! The command `trellis paper` from outside: what takes no time, and what it refuses.

use std::process::{Command, Output};

fn paper(dir: &std::path::Path, name: &str, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_trellis"));
    command.current_dir(dir).args(["paper", name]);
    let done = command.args(arguments).output();
    done.expect("the program starts")
}

#[test]
fn one_figure_gives_a_page_and_its_numbers() {
    let dir = std::env::temp_dir().join(format!("trellis-paper-test-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    // The equations of figure 16 need neither a model nor a cluster.
    let done = paper(
        &dir,
        "leap",
        &["--figure", "16", "--html", "a.html", "--json", "a.json"],
    );
    let text = String::from_utf8_lossy(&done.stdout);
    assert!(
        done.status.success() && text.contains("Figure 16"),
        "{done:?}"
    );
    let html = std::fs::read_to_string(dir.join("a.html")).unwrap();
    assert!(
        html.contains("<svg") && html.contains("Expectations"),
        "{html}"
    );
    let json = std::fs::read_to_string(dir.join("a.json")).unwrap();
    let value: serde_json::Value = serde_json::from_str(&json).unwrap();
    let chart = &value["figures"][0]["charts"][0];
    assert_eq!(
        chart["curves"][0]["points"][10][1], 4.0,
        "alpha with everything remote: {chart}"
    );
    std::fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn a_figure_that_is_not_there_is_refused() {
    for name in ["leap", "rubato"] {
        let refused = paper(&std::env::temp_dir(), name, &["--figure", "18"]);
        let text = String::from_utf8_lossy(&refused.stderr);
        assert!(
            !refused.status.success() && text.contains("there is no figure 18"),
            "{refused:?}"
        );
    }
}

#[test]
fn a_quick_run_in_the_model_has_numbers_and_judges_nothing() {
    let dir = std::env::temp_dir().join(format!("trellis-rubato-test-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let done = paper(&dir, "rubato", &["--figure", "hot", "--quick"]);
    assert!(done.status.success(), "{done:?}");
    // The names that are used when none are given.
    let html = std::fs::read_to_string(dir.join("trellis-rubato.html")).unwrap();
    assert!(
        html.contains("Expectations") && html.contains("not judged"),
        "{html}"
    );
    let json = std::fs::read_to_string(dir.join("trellis-rubato.json")).unwrap();
    let value: serde_json::Value = serde_json::from_str(&json).unwrap();
    let figure = &value["figures"][0];
    assert_eq!(figure["failures"], serde_json::json!([]));
    let rows = figure["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 8, "five ways and three systems: {figure}");
    let per_s = |row: usize| -> f64 { rows[row][2].as_str().unwrap().parse().unwrap() };
    assert!(
        per_s(0) > 4.0 * per_s(3),
        "two_phase holds the hot row: {figure}"
    );
    let verdicts = |number: usize| value["expectations"][number]["verdict"].clone();
    assert_eq!(
        (verdicts(0), verdicts(3)),
        ("not judged".into(), "not measured".into())
    );
    std::fs::remove_dir_all(&dir).unwrap();
}

//! The command `trellis paper` from outside: what takes no time, and what it refuses.

use std::process::{Command, Output};

fn paper(dir: &std::path::Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_trellis"));
    command.current_dir(dir).args(["paper", "leap"]);
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
    let refused = paper(&std::env::temp_dir(), &["--figure", "18"]);
    let text = String::from_utf8_lossy(&refused.stderr);
    assert!(
        !refused.status.success() && text.contains("there is no figure 18"),
        "{refused:?}"
    );
}

//! Golden scripts.

use crate::Leap;
use bed::Script;

fn run(area: &str) {
    Script::<Leap>::run_folder(&format!("testdata/{area}"));
}

/// Requester is home, home is owner, and three different shards.
#[test]
fn transfers() {
    run("transfer");
}

#[test]
fn copies_are_lent_and_called_back() {
    run("share");
}

#[test]
fn entrusted_work_is_lost() {
    run("entrust");
}

#[test]
fn home_owner_and_requester_restart() {
    run("restart");
}

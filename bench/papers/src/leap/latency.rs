//! Expected latency by the paper's equations: figure 16.

use crate::Lab;
use crate::figure::{Chart, Figure};
use anyhow::Result;

/// Sequential messages of a transfer, as the paper's plot assumes: the worst case, with inform.
const ALPHA_PAPER: f64 = 4.0;
/// Sequential messages of a transfer of three nodes here: the inform is not on the path.
const ALPHA_HERE: f64 = 3.0;
/// Sequential messages of two-phase commit in the paper's plot.
const BETA_PAPER: f64 = 5.0;
/// Delays of the commit here; a remote statement adds two.
const BETA_HERE: f64 = 2.0;

/// Equation 1 without locality: a transfer, or two one after the other.
fn leap(alpha: f64, remote: f64) -> f64 {
    alpha * remote * (2.0 - remote)
}

/// Equation 2: a commit and `steps` intermediate results, if any of `accesses` is remote.
fn two_phase(beta: f64, steps: f64, accesses: i32, remote: f64) -> f64 {
    (beta + steps) * (1.0 - (1.0 - remote).powi(accesses))
}

/// The equations, drawn: in units of one message's delay.
pub(super) fn figure_16(_: &mut Lab) -> Result<Figure> {
    let place = "computed by the paper's equations 1 and 2, without locality, one step".to_owned();
    let mut figure = Figure::new("16", "Figure 16: latency expectation", place);
    let remote: Vec<f64> = (0..=10).map(|tenth| f64::from(tenth) / 10.0).collect();
    let names: Vec<String> = remote
        .iter()
        .map(|p| format!("{:.0} %", p * 100.0))
        .collect();
    let chart = |title| Chart::by_name(title, "remote accesses", "delays", names.clone());
    let mut paper = chart("as the paper: alpha = 4, beta = 5");
    let mut here = chart("with the delays of this server: alpha = 3, beta = 2 and 2 per statement");
    paper.curve("leap", remote.iter().map(|p| leap(ALPHA_PAPER, *p)));
    here.curve("leap", remote.iter().map(|p| leap(ALPHA_HERE, *p)));
    for accesses in [1, 5, 10] {
        let name = format!("two-phase commit, {accesses} accesses");
        let of = |beta, steps| {
            let values = remote.iter();
            values.map(move |p| two_phase(beta, steps, accesses, *p))
        };
        paper.curve(&name, of(BETA_PAPER, 1.0));
        here.curve(&name, of(BETA_HERE, 2.0));
    }
    figure.charts = vec![paper, here];
    figure.text.push(
        "The paper counts the inform among a transfer's sequential messages and five in a \
         two-phase commit. Here neither is on the path to the answer: three delays at most for a \
         transfer, two for a commit whose statements have been answered (docs/protocols). So the \
         advantage by delays alone is smaller than the paper's."
            .to_owned(),
    );
    Ok(figure)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_equations_have_the_ends_of_the_paper() {
        assert_eq!((leap(4.0, 0.0), leap(4.0, 1.0)), (0.0, 4.0));
        assert_eq!(two_phase(5.0, 1.0, 10, 1.0), 6.0);
        assert_eq!(two_phase(5.0, 1.0, 1, 0.5), 3.0);
        assert!(two_phase(5.0, 1.0, 10, 0.1) > leap(4.0, 0.1));
    }
}

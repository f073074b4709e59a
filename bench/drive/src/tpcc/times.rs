//! Limits of response times and of deliveries that were left out, for runs with keying and think
//! times (clauses 5.2.5.3, 2.7.2.2 and 2.7.4.2).

use crate::run::tally::Tally;
use links::view::duration;
use workload::finding::{Finding, Verdict};
use workload::tpcc::Kind;

/// Seconds within which 90 % of the responses of each kind come, in the order of
/// [`Kind::TPCC`] (clause 5.2.5.3). Of Delivery this is the response of its queue.
const LIMITS: [(&str, u64); 5] = [
    ("90 % of the responses of NewOrder", 5),
    ("90 % of the responses of Payment", 5),
    ("90 % of the responses of OrderStatus", 5),
    ("90 % of the responses of Delivery, queued", 5),
    ("90 % of the responses of StockLevel", 20),
];

/// 90 % of the deliveries are done within so many seconds after they were queued (clause 2.7.2.2).
const DELIVERED_S: u64 = 80;
/// Of a hundred districts whose orders were to be delivered, so many may have had none (clause
/// 2.7.4.2).
const SKIPPED_PERCENT: f64 = 1.0;
const DISTRICTS: u64 = 10;

/// Judges the times of a run.
pub(super) fn judge(kinds: &[Tally], deferred: &Tally) -> Vec<Finding> {
    let of_kind = |((title, limit_s), tally)| within("5.2.5.3", title, tally, limit_s);
    let mut findings: Vec<Finding> = LIMITS.into_iter().zip(kinds).map(of_kind).collect();
    let title = "90 % of the deliveries, from the queue on";
    findings.push(within("2.7.2.2", title, deferred, DELIVERED_S));
    findings.push(skipped(&kinds[Kind::Delivery.number()]));
    findings
}

fn within(clause: &'static str, title: &'static str, tally: &Tally, limit_s: u64) -> Finding {
    let samples = tally.response.len();
    let unanswered = tally.unanswered();
    let (observed, verdict) = match tally.response_at(0.9) {
        _ if samples + unanswered == 0 => (String::from("none"), Verdict::NotApplicable),
        Some(us) if us <= limit_s * 1_000_000 => (duration(us), Verdict::Passed),
        Some(us) => (duration(us), Verdict::Failed),
        None => (format!("{unanswered} without an answer"), Verdict::Failed),
    };
    Finding {
        clause,
        title,
        samples,
        observed,
        allowed: format!("{limit_s} s"),
        verdict,
    }
}

fn skipped(delivery: &Tally) -> Finding {
    let districts = delivery.units + delivery.skipped;
    let percent = 100.0 * delivery.skipped as f64 / districts.max(1) as f64;
    // One transaction in a hundred is allowed in any case (the clause: 1 %, or one).
    let is_little = percent <= SKIPPED_PERCENT || delivery.skipped <= DISTRICTS;
    Finding {
        clause: "2.7.4.2",
        title: "districts without an order to deliver",
        samples: districts,
        observed: format!("{percent:.2} %"),
        allowed: format!("{SKIPPED_PERCENT} %, or those of one delivery"),
        verdict: match (districts, is_little) {
            (0, _) => Verdict::NotApplicable,
            (_, true) => Verdict::Passed,
            (_, false) => Verdict::Failed,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::tally::{Outcome, Times};

    fn tally(seconds: &[u64]) -> Tally {
        let mut tally = Tally::new();
        for s in seconds {
            let us = s * 1_000_000;
            let times = Times {
                response_us: us,
                service_us: us,
                queue_us: 0,
            };
            tally.record(&Outcome::Committed, times, false);
        }
        tally
    }

    fn verdicts(kinds: &[Tally], deferred: &Tally) -> Vec<Verdict> {
        let findings = judge(kinds, deferred);
        findings.iter().map(|finding| finding.verdict).collect()
    }

    #[test]
    fn the_limits_are_those_of_the_clauses() {
        use Verdict::{Failed, NotApplicable, Passed};
        let nine_of_ten = |good, bad| {
            let mut all = vec![good; 9];
            all.push(bad);
            tally(&all)
        };
        let kinds = [
            nine_of_ten(4, 60),
            nine_of_ten(6, 60),
            tally(&[]),
            tally(&[1]),
            nine_of_ten(19, 60),
        ];
        let deferred = nine_of_ten(79, 200);
        let expected = [
            Passed,
            Failed,
            NotApplicable,
            Passed,
            Passed,
            Passed,
            NotApplicable,
        ];
        assert_eq!(verdicts(&kinds, &deferred), expected);
    }

    #[test]
    fn what_is_unfinished_counts_as_slow() {
        let mut kinds = [(); 5].map(|()| tally(&[1; 9]));
        kinds[Kind::NewOrder.number()].unfinished = 2;
        let mut deferred = tally(&[1; 9]);
        deferred.unfinished = 2;
        kinds[Kind::Delivery.number()].units = 900;
        kinds[Kind::Delivery.number()].skipped = 20;
        let seen = verdicts(&kinds, &deferred);
        let failed: Vec<usize> = (0..seen.len())
            .filter(|at| seen[*at] == Verdict::Failed)
            .collect();
        // NewOrder, the deliveries from their queue on, and what was left out.
        assert_eq!(failed, [0, 5, 6]);
    }
}

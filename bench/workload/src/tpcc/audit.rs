//! The audit of the drawn inputs (clause 9.2.2.5, 5.2.3 and 2.1.6.1).
//!
//! The clause gives limits for long runs, which apply from 100,000 NewOrders on. A count of any
//! size may also lie anywhere in the interval that correct samples of its size fall into, computed
//! exactly from the binomial distribution. The intervals are so wide that of a million correct
//! runs less than one fails any audit at all, and yet a generator with a wrong share fails soon:
//! they narrow with the root of the sample.

use super::input::{Customer, Input};
use super::random::c_last_distance_allowed;
use super::{Kind, Scale};
use crate::finding::{Finding, Verdict};
use crate::stats::{binomial_interval, chi_square_uniform, sqrt};
use alloc::{format, string::String, vec::Vec};

/// NewOrders from which the limits of clause 9.2.2.5 apply.
pub const CLAUSE_LIMITS_FROM: u64 = 100_000;
/// A correct run fails one or more of its audits at most this often.
pub const RISK: f64 = 1e-6;
/// Findings that depend on chance: each has an equal part of the risk (Bonferroni).
const CHANCES: f64 = 11.0;
/// The share of correct samples that an interval holds.
pub const COVERAGE: f64 = 1.0 - RISK / CHANCES;
/// The statistic of 11 line counts lies above it in less than 9e-8 of all correct samples of 55
/// orders or more (8.6e-8 for 55 by the exact multinomial distribution; chi-square with 10 degrees
/// of freedom, which large samples follow, has 4e-9 there).
const CHI_SQUARE_10_MAX: f64 = 60.0;
/// The two-sided point of the normal distribution that belongs to [`COVERAGE`]. A mean of uniform
/// numbers has lighter tails.
const NORMAL_COVERED: f64 = 5.345;

/// Counts of what was drawn; one per terminal, merged at the end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Audit {
    mix: [u64; 5],
    rollbacks: u64,
    lines: u64,
    remote_lines: u64,
    line_counts: [u64; 11],
    remote_payments: u64,
    payments_by_name: u64,
    statuses_by_name: u64,
}

impl Audit {
    /// Counts one drawn input. Retries of the same input are not counted again.
    pub fn note(&mut self, input: &Input, scale: &Scale) {
        if let Some(count) = self.mix.get_mut(input.kind().number()) {
            *count += 1;
        }
        match input {
            Input::NewOrder(order) => {
                self.rollbacks += u64::from(order.rolls_back(scale));
                self.lines += order.lines.len() as u64;
                self.line_counts[order.lines.len() - 5] += 1;
                let remote = |line: &&super::input::Line| line.supply_warehouse != order.warehouse;
                self.remote_lines += order.lines.iter().filter(remote).count() as u64;
            }
            Input::Payment(payment) => {
                self.remote_payments += u64::from(payment.customer_warehouse != payment.warehouse);
                self.payments_by_name += by_name(&payment.customer);
            }
            Input::OrderStatus(status) => self.statuses_by_name += by_name(&status.customer),
            Input::Delivery(_) | Input::StockLevel(_) | Input::Further(_) => {}
        }
    }

    /// All counts, in a fixed order.
    fn counts(&mut self) -> impl Iterator<Item = &mut u64> {
        let Audit {
            mix,
            rollbacks,
            lines,
            remote_lines,
            line_counts,
            remote_payments,
            payments_by_name,
            statuses_by_name,
        } = self;
        let single = [rollbacks, lines, remote_lines, remote_payments];
        let named = [payments_by_name, statuses_by_name];
        let single = single.into_iter().chain(named);
        single.chain(mix).chain(line_counts)
    }

    /// Adds the counts of another terminal.
    pub fn merge(&mut self, other: &Audit) {
        let mut other = other.clone();
        let both = self.counts().zip(other.counts());
        both.for_each(|(mine, theirs)| *mine += *theirs);
    }

    /// All counts, for [`Audit::take_counters`].
    pub fn counters(&self) -> Vec<u64> {
        self.clone().counts().map(|count| *count).collect()
    }

    /// The audit with these [`Audit::counters`], as many as it takes; `None`: they are too few.
    pub fn take_counters<'a>(counters: &mut impl Iterator<Item = &'a u64>) -> Option<Audit> {
        let mut audit = Audit::default();
        for count in audit.counts() {
            *count = *counters.next()?;
        }
        Some(audit)
    }

    /// All findings, given the constants of C_LAST of load and run.
    pub fn findings(&self, scale: &Scale, c_last_load: u32, c_last_run: u32) -> Vec<Finding> {
        let by_clause = self.mix[Kind::NewOrder.number()] >= CLAUSE_LIMITS_FROM;
        let mut findings = self.share_findings(by_clause);
        if scale.warehouses == 1 {
            let remote = findings
                .iter_mut()
                .filter(|finding| finding.title.starts_with("remote"));
            remote.for_each(|finding| finding.verdict = Verdict::NotApplicable);
        }
        findings.insert(1, self.mean_lines(by_clause));
        findings.insert(2, self.line_spread());
        findings.extend(self.mix_findings());
        findings.push(c_last_finding(c_last_load, c_last_run));
        findings
    }

    /// The shares of clause 9.2.2.5 with their probabilities and the clause's own limits.
    fn share_findings(&self, by_clause: bool) -> Vec<Finding> {
        let [new_orders, payments, statuses, ..] = self.mix;
        let named = (0.57, 0.63);
        let shares = [
            (
                "9.2.2.5.1",
                "new orders rolled back",
                self.rollbacks,
                new_orders,
                0.01,
                (0.009, 0.011),
            ),
            (
                "9.2.2.5.3",
                "remote order lines",
                self.remote_lines,
                self.lines,
                0.01,
                (0.0095, 0.0105),
            ),
            (
                "9.2.2.5.4",
                "remote payments",
                self.remote_payments,
                payments,
                0.15,
                (0.14, 0.16),
            ),
            (
                "9.2.2.5.5",
                "payments by last name",
                self.payments_by_name,
                payments,
                0.6,
                named,
            ),
            (
                "9.2.2.5.6",
                "order status by last name",
                self.statuses_by_name,
                statuses,
                0.6,
                named,
            ),
        ];
        let finding = |(clause, title, hits, samples, p, limits)| {
            share_finding(
                clause,
                title,
                Sample { hits, samples },
                p,
                by_clause.then_some(limits),
            )
        };
        shares.into_iter().map(finding).collect()
    }

    fn mean_lines(&self, by_clause: bool) -> Finding {
        let orders = self.mix[Kind::NewOrder.number()];
        let mean = self.lines as f64 / orders.max(1) as f64;
        // The variance of a uniform number in 5..=15 is (11^2 - 1) / 12 = 10.
        let width = match by_clause {
            true => 0.5,
            false => NORMAL_COVERED * sqrt(10.0 / orders.max(1) as f64),
        };
        let inside = mean >= 10.0 - width && mean <= 10.0 + width;
        Finding {
            clause: "9.2.2.5.2",
            title: "mean lines of an order",
            samples: orders,
            observed: format!("{mean:.3}"),
            allowed: format!("{:.3} to {:.3}", 10.0 - width, 10.0 + width),
            verdict: verdict(orders, inside),
        }
    }

    fn line_spread(&self) -> Finding {
        let orders = self.mix[Kind::NewOrder.number()];
        let statistic = chi_square_uniform(&self.line_counts);
        // Below five expected per cell the tail of the statistic is too heavy.
        let samples = if orders >= 55 { orders } else { 0 };
        Finding {
            clause: "9.2.2.5.2",
            title: "lines uniform in 5 to 15 (chi-square)",
            samples: orders,
            observed: format!("{statistic:.2}"),
            allowed: format!("at most {CHI_SQUARE_10_MAX:.2}"),
            verdict: verdict(samples, statistic <= CHI_SQUARE_10_MAX),
        }
    }

    /// Minima of the mix. The deck meets them in each full round; a count may be short only by
    /// what a sample of independent draws would be.
    fn mix_findings(&self) -> Vec<Finding> {
        let total: u64 = self.mix.iter().sum();
        let minima = [
            (Kind::Payment, "share of payment", 10.0 / 23.0, 0.43),
            (Kind::OrderStatus, "share of order status", 1.0 / 23.0, 0.04),
            (Kind::Delivery, "share of delivery", 1.0 / 23.0, 0.04),
            (Kind::StockLevel, "share of stock level", 1.0 / 23.0, 0.04),
        ];
        minima
            .iter()
            .map(|&(kind, title, p, minimum)| {
                let hits = self.mix[kind.number()];
                let long = self.mix[Kind::NewOrder.number()] >= CLAUSE_LIMITS_FROM;
                let low = match long {
                    true => minimum * total as f64,
                    false => {
                        (binomial_interval(total, p, COVERAGE).0 as f64).min(minimum * total as f64)
                    }
                };
                Finding {
                    clause: "5.2.3",
                    title,
                    samples: total,
                    observed: percent(hits, total),
                    allowed: format!("at least {:.3} %", 100.0 * low / total.max(1) as f64),
                    verdict: verdict(total, hits as f64 >= low),
                }
            })
            .collect()
    }
}

struct Sample {
    hits: u64,
    samples: u64,
}

fn share_finding(
    clause: &'static str,
    title: &'static str,
    sample: Sample,
    p: f64,
    limits: Option<(f64, f64)>,
) -> Finding {
    let Sample { hits, samples } = sample;
    let total = samples.max(1) as f64;
    let (low, high) = binomial_interval(samples, p, COVERAGE);
    let (low, high) = (low as f64 / total, high as f64 / total);
    // At the size from which the clause's limits apply, some are narrower than chance allows.
    let (low, high) = match limits {
        Some((least, most)) => (low.min(least), high.max(most)),
        None => (low, high),
    };
    let share = hits as f64 / total;
    // Half a hit of slack, so that the rounding of a quotient decides nothing.
    let slack = 0.5 / total;
    Finding {
        clause,
        title,
        samples,
        observed: percent(hits, samples),
        allowed: format!("{:.3} to {:.3} %", low * 100.0, high * 100.0),
        verdict: verdict(samples, share >= low - slack && share <= high + slack),
    }
}

fn c_last_finding(load: u32, run: u32) -> Finding {
    Finding {
        clause: "2.1.6.1",
        title: "distance of the constants of C_LAST, load to run",
        samples: 1,
        observed: format!("{}", load.abs_diff(run)),
        allowed: String::from("65 to 119 without 96 and 112"),
        verdict: verdict(1, c_last_distance_allowed(load, run)),
    }
}

fn by_name(customer: &Customer) -> u64 {
    u64::from(matches!(customer, Customer::LastName(_)))
}

fn verdict(samples: u64, inside: bool) -> Verdict {
    match (samples, inside) {
        (0, _) => Verdict::NotApplicable,
        (_, true) => Verdict::Passed,
        (_, false) => Verdict::Failed,
    }
}

fn percent(hits: u64, samples: u64) -> String {
    format!("{:.3} %", 100.0 * hits as f64 / samples.max(1) as f64)
}

#[cfg(test)]
mod tests {
    use super::super::input::Terminal;
    use super::super::random::Constants;
    use super::*;
    use crate::tpcc::Skew;

    const SCALE: Scale = Scale {
        warehouses: 4,
        items: 100_000,
        customers: 3_000,
        orders: 3_000,
        skew: Skew::NONE,
    };

    fn inputs(terminals: u32, each: u32) -> Vec<Input> {
        let constants = Constants::for_run(1, 200);
        (0..terminals)
            .flat_map(|number| {
                let mut terminal = Terminal::new(SCALE, constants, 11, number);
                (0..each).map(move |_| terminal.draw()).collect::<Vec<_>>()
            })
            .collect()
    }

    fn failed(inputs: &[Input], scale: &Scale) -> Vec<&'static str> {
        let mut audit = Audit::default();
        inputs.iter().for_each(|input| audit.note(input, scale));
        let findings = audit.findings(scale, 200, 100);
        let failed = |f: &&Finding| f.verdict == Verdict::Failed;
        findings.iter().filter(failed).map(|f| f.title).collect()
    }

    #[test]
    fn our_inputs_pass_small_and_large() {
        assert_eq!(failed(&inputs(8, 40), &SCALE), Vec::<&str>::new());
        assert_eq!(failed(&inputs(16, 1_000), &SCALE), Vec::<&str>::new());
        let large = inputs(16, 15_000);
        assert!(large.iter().filter(|i| i.kind() == Kind::NewOrder).count() >= 100_000);
        assert_eq!(failed(&large, &SCALE), Vec::<&str>::new());
    }

    /// The parts of the risk are as many as there are findings of chance, and the points above are
    /// those of their distributions.
    #[test]
    fn the_risk_is_shared_out() {
        let mut audit = Audit::default();
        inputs(8, 100)
            .iter()
            .for_each(|input| audit.note(input, &SCALE));
        let findings = audit.findings(&SCALE, 200, 100);
        let by_chance = findings.iter().filter(|f| f.clause != "2.1.6.1").count();
        assert_eq!(by_chance as f64, CHANCES);
        // Survival of chi-square with an even number of degrees of freedom is a Poisson sum.
        let half = CHI_SQUARE_10_MAX / 2.0;
        let (mut term, mut sum) = ((-half).exp(), 0.0);
        for k in 0..5 {
            sum += term;
            term *= half / f64::from(k + 1);
        }
        assert!(sum < RISK / CHANCES, "{sum}");
        // The tail of the normal distribution lies below density / z.
        let density =
            (-NORMAL_COVERED * NORMAL_COVERED / 2.0).exp() / f64::sqrt(core::f64::consts::TAU);
        let tail = 2.0 * density / NORMAL_COVERED;
        assert!(tail < RISK / CHANCES * 1.04, "{tail}");
    }

    /// With intervals of 99.9 % several of these would fail.
    #[test]
    fn a_thousand_correct_runs_pass() {
        let constants = Constants::for_run(1, 200);
        for seed in 0..1_000 {
            let mut audit = Audit::default();
            let mut terminal = Terminal::new(SCALE, constants, seed, 0);
            (0..400).for_each(|_| audit.note(&terminal.draw(), &SCALE));
            let findings = audit.findings(&SCALE, 200, 100);
            let failed = findings.iter().find(|f| f.verdict == Verdict::Failed);
            assert!(failed.is_none(), "seed {seed}: {failed:?}");
        }
    }

    /// Shares that are off by little are found in the time of a short run.
    #[test]
    fn a_small_bias_is_caught() {
        let biased = |share: f64, hits: f64, samples: u64| {
            let sample = Sample {
                hits: (hits * samples as f64) as u64,
                samples,
            };
            share_finding("", "", sample, share, None).verdict
        };
        assert_eq!(biased(0.01, 0.02, 20_000), Verdict::Failed);
        assert_eq!(biased(0.01, 0.012, 200_000), Verdict::Failed);
        assert_eq!(biased(0.15, 0.17, 20_000), Verdict::Failed);
        assert_eq!(biased(0.6, 0.57, 20_000), Verdict::Failed);
        assert_eq!(biased(0.6, 0.6, 20_000), Verdict::Passed);
    }

    /// Each planted fault of a generator must fail its own audit.
    #[test]
    fn faulty_generators_are_caught() {
        type Plant = fn(&mut Input);
        let plants: [(&str, Plant); 7] = [
            ("new orders rolled back", |input| {
                if let Input::NewOrder(order) = input {
                    order.lines.last_mut().unwrap().item = 1;
                }
            }),
            ("mean lines of an order", |input| {
                if let Input::NewOrder(order) = input {
                    order.lines.truncate(14);
                    order.lines.drain(5..6.min(order.lines.len()));
                }
            }),
            ("lines uniform in 5 to 15 (chi-square)", |input| {
                if let Input::NewOrder(order) = input {
                    let line = order.lines[0];
                    order.lines.resize(10, line);
                }
            }),
            ("remote order lines", |input| {
                if let Input::NewOrder(order) = input {
                    order
                        .lines
                        .iter_mut()
                        .for_each(|l| l.supply_warehouse = order.warehouse);
                }
            }),
            ("remote payments", |input| {
                if let Input::Payment(payment) = input {
                    payment.customer_warehouse = payment.warehouse;
                }
            }),
            ("payments by last name", |input| {
                if let Input::Payment(payment) = input {
                    payment.customer = Customer::Id(1);
                }
            }),
            ("order status by last name", |input| {
                if let Input::OrderStatus(status) = input {
                    status.customer = Customer::Id(1);
                }
            }),
        ];
        for (title, plant) in plants {
            let mut planted = inputs(16, 1_000);
            planted.iter_mut().for_each(plant);
            assert!(failed(&planted, &SCALE).contains(&title), "{title}");
        }
    }

    #[test]
    fn a_mix_below_its_minimum_fails() {
        let mut planted = inputs(16, 1_000);
        planted.retain(|input| input.kind() != Kind::Delivery);
        assert_eq!(failed(&planted, &SCALE), ["share of delivery"]);
    }

    #[test]
    fn one_warehouse_audits_nothing_remote() {
        let scale = Scale::standard(1);
        let mut audit = Audit::default();
        let mut terminal = Terminal::new(scale, Constants::for_run(1, 9), 3, 0);
        (0..3_000).for_each(|_| audit.note(&terminal.draw(), &scale));
        let findings = audit.findings(&scale, 9, 109);
        let skipped: Vec<&str> = findings
            .iter()
            .filter(|f| f.verdict == Verdict::NotApplicable)
            .map(|f| f.title)
            .collect();
        assert_eq!(skipped, ["remote order lines", "remote payments"]);
    }

    #[test]
    fn equal_constants_of_load_and_run_fail() {
        let findings = Audit::default().findings(&SCALE, 50, 50);
        assert_eq!(findings.last().unwrap().verdict, Verdict::Failed);
        let nothing_else = findings
            .iter()
            .filter(|f| f.verdict != Verdict::NotApplicable)
            .count();
        assert_eq!(nothing_else, 1);
    }

    #[test]
    fn merged_counts_equal_those_of_one() {
        let all = inputs(2, 300);
        let (mut whole, mut left, mut right) =
            (Audit::default(), Audit::default(), Audit::default());
        all.iter().for_each(|input| whole.note(input, &SCALE));
        all[..250].iter().for_each(|input| left.note(input, &SCALE));
        all[250..]
            .iter()
            .for_each(|input| right.note(input, &SCALE));
        left.merge(&right);
        assert_eq!(left, whole);
    }
}

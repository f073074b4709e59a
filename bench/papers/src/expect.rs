//! What the repetition is expected to show, as ratios of one run, and whether it did.

use drive::report::escape;
use serde_json::{Value, json};
use std::fmt::Write;

/// A part of an expectation: something to meet, or a number to report.
#[derive(Clone, Copy)]
struct Part {
    /// Number of the expectation, 1 to 5, and a letter.
    number: &'static str,
    /// The figure that tells.
    figure: &'static str,
    /// Whether there is something to meet.
    judged: bool,
    wanted: &'static str,
}

/// Titles of the five expectations.
const TITLES: [&str; 5] = [
    "2.5 to 20 times serial two_phase at 1 to 50 % remote, never below 0.9 at 0 %",
    "locality pays, and transfers end when every row has found its node",
    "few aborts, and nobody starves",
    "linear from 4 to 64 nodes",
    "blind increments of one hot counter",
];

/// All parts, in order: number, figure, whether it is judged, and what is wanted.
const PARTS: &str = "\
1a 9       judged   model, 1 to 50 % remote: 2.5 to 20 times serial two_phase, or more
1b 9       judged   model, 0 % remote: at least 0.9 of serial two_phase
1c 9       reported model, against interleaved two_phase, as it is
1d real    judged   cluster, 0.1 ms links, 10 % remote: above 1.5 times serial two_phase
1e real    judged   cluster, 0.1 ms links, 0 % remote: at least 0.9 of serial two_phase
1f real    reported cluster, 0.1 ms links, against interleaved two_phase, as it is
1g 10      reported model: the locality from which on leap wins against interleaved two_phase
2a 10      judged   model, 10 % remote: 90 % locality gives leap 3 times the throughput of 0 %
2b 10      reported the same at 50 % remote
2c 10      judged   model: interleaved two_phase stays flat (within 20 %)
2d 12      judged   model, 100 % locality: transfers fall under 1 % of their start
2e real    judged   cluster, 100 % locality: transfers fall under 1 % of their start
3a table1  judged   abort rate under 4 % at every point of table 1, by the server's count
3b table1  reported the same by tries of the client; distribution of tries
3c hotspot judged   nobody starves in 20 minutes of simulated hot-spot load
4a 14      judged   model, 10 % remote: leap at least 0.9 of linear from 4 to 64 nodes
5a counter judged   model, 1 ms links: 20 times what the same clients get by moving the row
5b counter reported the same with one client per node, and against one increment per move
5c real    reported cluster, 1 ms links: times what the same clients get by moving the row";

/// The parts of [`PARTS`].
fn parts() -> impl Iterator<Item = Part> {
    PARTS.lines().map(|line| {
        let mut words = line.splitn(3, ' ');
        let mut word = || words.next().expect("every part has a number and a figure");
        let (number, figure, rest) = (word(), word(), word().trim_start());
        let (kind, wanted) = rest.split_once(' ').expect("every part wants something");
        Part {
            number,
            figure,
            judged: kind == "judged",
            wanted: wanted.trim_start(),
        }
    })
}

/// What was found about a part.
struct Found {
    number: &'static str,
    text: String,
    met: bool,
}

/// The expectations, with what has been found so far.
#[derive(Default)]
pub(super) struct Expectations {
    /// The runs are too short and the clusters too small to judge by.
    quick: bool,
    found: Vec<Found>,
    /// Figures that failed.
    failed: Vec<&'static str>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Verdict {
    Met,
    Missed,
    Reported,
    /// The run was too small to judge by.
    NotJudged,
    /// Its figure was not asked for, or failed.
    NotMeasured,
}

impl Verdict {
    fn name(self) -> &'static str {
        match self {
            Verdict::Met => "met",
            Verdict::Missed => "missed",
            Verdict::Reported => "reported",
            Verdict::NotJudged => "not judged",
            Verdict::NotMeasured => "not measured",
        }
    }

    fn class(self) -> &'static str {
        match self {
            Verdict::Met => "good",
            Verdict::Missed => "bad",
            Verdict::Reported | Verdict::NotJudged | Verdict::NotMeasured => "dim",
        }
    }
}

impl Expectations {
    /// Nothing has been found yet. What a `quick` run finds is not judged.
    pub(super) fn new(quick: bool) -> Expectations {
        Expectations {
            quick,
            ..Expectations::default()
        }
    }

    /// Takes note of whether a part was met.
    ///
    /// # Panics
    /// There is no such part, or there is nothing to meet.
    pub(super) fn judge(&mut self, number: &'static str, text: String, met: bool) {
        assert!(part(number).judged, "{number} is only reported");
        self.note(number, text, met);
    }

    /// Takes note of a number that nothing is asked of.
    ///
    /// # Panics
    /// There is no such part, or there is something to meet.
    pub(super) fn report(&mut self, number: &'static str, text: String) {
        assert!(!part(number).judged, "{number} is met or missed");
        self.note(number, text, true);
    }

    fn note(&mut self, number: &'static str, text: String, met: bool) {
        self.found.retain(|found| found.number != number);
        self.found.push(Found { number, text, met });
    }

    /// Takes note that a figure failed.
    pub(super) fn fail(&mut self, figure: &'static str) {
        self.failed.push(figure);
    }

    fn found(&self, part: &Part) -> (Verdict, String) {
        let found = self.found.iter().find(|found| found.number == part.number);
        match found {
            Some(found) if !part.judged => (Verdict::Reported, found.text.clone()),
            Some(found) if self.quick => {
                let text = format!("{} (too few nodes and seconds to judge by)", found.text);
                (Verdict::NotJudged, text)
            }
            Some(found) if found.met => (Verdict::Met, found.text.clone()),
            Some(found) => (Verdict::Missed, found.text.clone()),
            None if self.failed.contains(&part.figure) => {
                let text = format!("figure {} failed", part.figure);
                (Verdict::NotMeasured, text)
            }
            None => {
                let text = format!("figure {} was not run", part.figure);
                (Verdict::NotMeasured, text)
            }
        }
    }

    /// The verdict on expectation `number`, 1 to 5: missed if a part is, met if all parts are.
    fn verdict(&self, number: usize) -> Verdict {
        let verdicts: Vec<Verdict> = of_number(number)
            .filter(|part| part.judged)
            .map(|part| self.found(&part).0)
            .collect();
        let any = |wanted| verdicts.contains(&wanted);
        match () {
            () if any(Verdict::Missed) => Verdict::Missed,
            () if any(Verdict::NotMeasured) => Verdict::NotMeasured,
            () if any(Verdict::NotJudged) => Verdict::NotJudged,
            () => Verdict::Met,
        }
    }

    /// For a terminal.
    pub(super) fn plain(&self) -> String {
        let mut out = String::from("Expectations\n");
        for (at, title) in TITLES.iter().enumerate() {
            let verdict = self.verdict(at + 1).name();
            let _ = writeln!(out, "{}. {verdict}: {title}", at + 1);
            for part in of_number(at + 1) {
                let (verdict, text) = self.found(&part);
                let _ = writeln!(
                    out,
                    "   {} {:<13}{}: {text}",
                    part.number,
                    verdict.name(),
                    part.wanted
                );
            }
        }
        out
    }

    pub(super) fn json(&self) -> Value {
        let part = |part: Part| {
            let (verdict, text) = self.found(&part);
            json!({
                "number": part.number,
                "figure": part.figure,
                "wanted": part.wanted,
                "found": text,
                "verdict": verdict.name(),
            })
        };
        let one = |(at, title): (usize, &&str)| {
            json!({
                "number": at + 1,
                "title": title,
                "verdict": self.verdict(at + 1).name(),
                "parts": of_number(at + 1).map(part).collect::<Vec<_>>(),
            })
        };
        TITLES.iter().enumerate().map(one).collect()
    }

    /// All of them as a table.
    pub(super) fn html(&self) -> String {
        let mut out =
            String::from("<div class=\"verdict\"><h2 id=\"expectations\">Expectations</h2>");
        out.push_str("<div class=\"scroll\"><table>");
        for (at, title) in TITLES.iter().enumerate() {
            let verdict = self.verdict(at + 1);
            let _ = write!(
                out,
                "<tr><th>{}</th><th class=\"text\" colspan=\"2\">{}</th><th class=\"{}\">{}</th>\
                 </tr>",
                at + 1,
                escape(title),
                verdict.class(),
                verdict.name(),
            );
            for part in of_number(at + 1) {
                let (verdict, text) = self.found(&part);
                let _ = write!(
                    out,
                    "<tr><td>{}</td><td class=\"text\">{}</td><td class=\"text\">{}</td>\
                     <td class=\"{}\">{}</td></tr>",
                    part.number,
                    escape(part.wanted),
                    escape(&text),
                    verdict.class(),
                    verdict.name(),
                );
            }
        }
        out.push_str("</table></div></div>");
        out
    }
}

fn part(number: &str) -> Part {
    let found = parts().find(|part| part.number == number);
    found.expect("numbers are those of the list of parts")
}

/// The parts of an expectation, 1 to 5.
fn of_number(number: usize) -> impl Iterator<Item = Part> {
    let number = number.to_string();
    parts().filter(move |part| part.number.starts_with(&number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expectation_is_met_only_if_all_its_parts_are() {
        let mut all = Expectations::default();
        assert_eq!(all.verdict(2), Verdict::NotMeasured);
        for number in ["2a", "2c", "2d"] {
            all.judge(number, String::new(), true);
        }
        assert_eq!(all.verdict(2), Verdict::NotMeasured);
        all.judge("2e", "0.2 %".to_owned(), true);
        assert_eq!(all.verdict(2), Verdict::Met);
        all.judge("2a", "1.4".to_owned(), false);
        assert_eq!(all.verdict(2), Verdict::Missed);
        let plain = all.plain();
        assert!(
            plain.contains("2. missed") && plain.contains("1.4"),
            "{plain}"
        );
    }

    #[test]
    fn what_a_failed_figure_would_have_told_says_so() {
        let mut all = Expectations::default();
        all.fail("14");
        assert!(all.plain().contains("4a not measured"), "{}", all.plain());
        assert!(all.html().contains("figure 14 failed"));
        assert!(all.html().contains("figure 9 was not run"));
    }

    #[test]
    fn a_run_that_is_too_small_judges_nothing() {
        let mut all = Expectations::new(true);
        for (met, number) in [(false, "1a"), (true, "4a"), (false, "3a")] {
            all.judge(number, "0.5 of linear".to_owned(), met);
        }
        all.report("1c", "1.2".to_owned());
        assert_eq!(all.verdict(4), Verdict::NotJudged);
        assert_eq!(all.verdict(1), Verdict::NotMeasured, "1b was not run");
        let (plain, html) = (all.plain(), all.html());
        assert!(plain.contains("0.5 of linear (too few nodes and seconds to judge by)"));
        for shown in [&plain, &html, &all.json().to_string()] {
            assert!(
                !shown.contains("missed") && shown.contains("not judged"),
                "{shown}"
            );
            assert!(shown.contains("reported"), "{shown}");
        }
    }

    #[test]
    fn every_expectation_has_something_to_meet() {
        for number in 1..=TITLES.len() {
            assert!(of_number(number).any(|part| part.judged), "{number}");
        }
    }
}

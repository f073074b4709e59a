//! What the repetition is expected to show, as ratios of one run, and whether it did.

use drive::report::escape;
use serde_json::{Value, json};
use std::fmt::Write;

/// A part of an expectation: something to meet, or a number to report.
#[derive(Clone, Copy)]
struct Part {
    /// Number of the expectation, from 1, and a letter.
    number: &'static str,
    /// The figure that tells.
    figure: &'static str,
    /// Whether there is something to meet.
    judged: bool,
    wanted: &'static str,
}

/// The expectations of a paper.
pub(super) struct Wanted {
    /// Titles of the expectations; the first has number 1.
    pub(super) titles: &'static [&'static str],
    /// A line for each part: number and letter, figure, judged or reported, and what is wanted.
    pub(super) parts: &'static str,
}

impl Wanted {
    /// All parts, in order.
    ///
    /// # Panics
    /// A line is not of the form that `parts` says.
    fn parts(&self) -> impl Iterator<Item = Part> + use<> {
        self.parts.lines().map(|line| {
            let mut words = line.splitn(3, ' ');
            let mut word = || words.next().expect("every part has a number and a figure");
            let (number, figure, rest) = (word(), word(), word().trim_start());
            let (kind, wanted) = rest.split_once(' ').expect("every part wants something");
            assert!(["judged", "reported"].contains(&kind), "{line}");
            Part {
                number,
                figure,
                judged: kind == "judged",
                wanted: wanted.trim_start(),
            }
        })
    }

    fn part(&self, number: &str) -> Part {
        let found = self.parts().find(|part| part.number == number);
        found.expect("numbers are those of the list of parts")
    }

    /// The parts of an expectation, from 1.
    fn of_number(&self, number: usize) -> impl Iterator<Item = Part> + use<> {
        let number = number.to_string();
        let is_letter = |rest: &str| rest.chars().all(|c| c.is_ascii_lowercase());
        self.parts()
            .filter(move |part| part.number.strip_prefix(&number).is_some_and(is_letter))
    }
}

/// What was found about a part.
struct Found {
    number: &'static str,
    text: String,
    met: bool,
    /// A short run finds the same as a long one.
    is_counted: bool,
}

/// The expectations, with what has been found so far.
pub(super) struct Expectations {
    wanted: &'static Wanted,
    /// The runs are too short and the clusters too small to judge by.
    quick: bool,
    found: Vec<Found>,
    /// Parts that cannot be measured here, and why.
    missing: Vec<(&'static str, String)>,
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
    pub(super) fn new(wanted: &'static Wanted, quick: bool) -> Expectations {
        Expectations {
            wanted,
            quick,
            found: Vec::new(),
            missing: Vec::new(),
            failed: Vec::new(),
        }
    }

    /// Takes note of whether a part was met.
    ///
    /// # Panics
    /// There is no such part, or there is nothing to meet.
    pub(super) fn judge(&mut self, number: &'static str, text: String, met: bool) {
        assert!(self.wanted.part(number).judged, "{number} is only reported");
        self.note(number, text, met);
    }

    /// The same of something that is counted, which a quick run judges too.
    ///
    /// # Panics
    /// As for [`Expectations::judge`].
    pub(super) fn judge_counted(&mut self, number: &'static str, text: String, met: bool) {
        self.judge(number, text, met);
        let found = self.found.iter_mut();
        found
            .filter(|found| found.number == number)
            .for_each(|found| found.is_counted = true);
    }

    /// Takes note of a number that nothing is asked of.
    ///
    /// # Panics
    /// There is no such part, or there is something to meet.
    pub(super) fn report(&mut self, number: &'static str, text: String) {
        assert!(
            !self.wanted.part(number).judged,
            "{number} is met or missed"
        );
        self.note(number, text, true);
    }

    fn note(&mut self, number: &'static str, text: String, met: bool) {
        self.found.retain(|found| found.number != number);
        self.found.push(Found {
            number,
            text,
            met,
            is_counted: false,
        });
    }

    /// Takes note that a part cannot be measured here, and why.
    ///
    /// # Panics
    /// There is no such part.
    pub(super) fn cannot(&mut self, number: &'static str, why: &str) {
        let part = self.wanted.part(number);
        self.missing.retain(|(missing, _)| *missing != part.number);
        self.missing.push((part.number, why.to_owned()));
    }

    /// Takes note that a figure failed.
    pub(super) fn fail(&mut self, figure: &'static str) {
        self.failed.push(figure);
    }

    fn found(&self, part: &Part) -> (Verdict, String) {
        let found = self.found.iter().find(|found| found.number == part.number);
        match found {
            Some(found) if !part.judged => (Verdict::Reported, found.text.clone()),
            Some(found) if self.quick && !found.is_counted => {
                let text = format!("{} (too few nodes and seconds to judge by)", found.text);
                (Verdict::NotJudged, text)
            }
            Some(found) if found.met => (Verdict::Met, found.text.clone()),
            Some(found) => (Verdict::Missed, found.text.clone()),
            None => (Verdict::NotMeasured, self.why_not_measured(part)),
        }
    }

    fn why_not_measured(&self, part: &Part) -> String {
        let mut missing = self.missing.iter();
        match missing.find(|(number, _)| *number == part.number) {
            Some((_, why)) => why.clone(),
            None if self.failed.contains(&part.figure) => format!("figure {} failed", part.figure),
            None => format!("figure {} was not run", part.figure),
        }
    }

    /// The verdict on expectation `number`, from 1: missed if a part is, met if all parts are.
    fn verdict(&self, number: usize) -> Verdict {
        let verdicts: Vec<Verdict> = self
            .wanted
            .of_number(number)
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
        for (at, title) in self.wanted.titles.iter().enumerate() {
            let verdict = self.verdict(at + 1).name();
            let _ = writeln!(out, "{}. {verdict}: {title}", at + 1);
            for part in self.wanted.of_number(at + 1) {
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
                "parts": self.wanted.of_number(at + 1).map(part).collect::<Vec<_>>(),
            })
        };
        self.wanted.titles.iter().enumerate().map(one).collect()
    }

    /// All of them as a table.
    pub(super) fn html(&self) -> String {
        let mut out =
            String::from("<div class=\"verdict\"><h2 id=\"expectations\">Expectations</h2>");
        out.push_str("<div class=\"scroll\"><table>");
        for (at, title) in self.wanted.titles.iter().enumerate() {
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
            for part in self.wanted.of_number(at + 1) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{dike, leap, rubato, strudel};

    #[test]
    fn an_expectation_is_met_only_if_all_its_parts_are() {
        let mut all = Expectations::new(leap::PAPER.wanted, false);
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
        let mut all = Expectations::new(leap::PAPER.wanted, false);
        all.fail("14");
        assert!(all.plain().contains("4a not measured"), "{}", all.plain());
        assert!(all.html().contains("figure 14 failed"));
        assert!(all.html().contains("figure 9 was not run"));
    }

    #[test]
    fn a_run_that_is_too_small_judges_nothing() {
        let mut all = Expectations::new(leap::PAPER.wanted, true);
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
        for paper in [leap::PAPER, rubato::PAPER, dike::PAPER, strudel::PAPER] {
            let wanted = paper.wanted;
            for number in 1..=wanted.titles.len() {
                let mut parts = wanted.of_number(number);
                assert!(parts.any(|part| part.judged), "{number}");
            }
            assert_eq!(
                wanted.parts().count(),
                (1..=wanted.titles.len())
                    .map(|number| wanted.of_number(number).count())
                    .sum::<usize>()
            );
        }
    }

    #[test]
    fn what_cannot_be_measured_says_why() {
        let mut all = Expectations::new(leap::PAPER.wanted, false);
        all.cannot("4a", "there is no room for 64 nodes");
        assert_eq!(all.verdict(4), Verdict::NotMeasured);
        assert!(all.plain().contains("there is no room for 64 nodes"));
    }
}

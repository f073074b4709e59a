//! The time series of a run, as CSV and as one plot per fault.

use crate::clients::Sample;
use crate::cluster::VICTIM;
use crate::judge::Episode;
use charts::{Axes, Panel, Series as Line, file, number};
use drive::report::COLOURS;
use std::fmt::Write;
use std::time::Duration;

/// Width of a row.
const STEP: Duration = Duration::from_millis(100);
/// Seconds that a plot shows before a fault, and after it.
const AROUND: Duration = Duration::from_secs(2);

/// What clients of live nodes saw, by time step.
pub(crate) struct Series<'a> {
    rows: Vec<Row>,
    episodes: &'a [Episode],
}

/// One step.
#[derive(Clone, Copy, Default)]
struct Row {
    /// Statements on rows that stay usable during the fault; without a fault on all rows.
    live_ok: u64,
    live_failed: u64,
    /// Statements on the other rows.
    other_ok: u64,
    other_failed: u64,
    /// The longest of the statements that ended in this step.
    longest_ms: u64,
}

fn step(at: Duration) -> usize {
    (at.as_millis() / STEP.as_millis()) as usize
}

impl Series<'_> {
    pub(crate) fn of<'a>(samples: &[Sample], episodes: &'a [Episode]) -> Series<'a> {
        let end = samples.iter().map(|sample| sample.end).max();
        let mut rows = vec![Row::default(); step(end.unwrap_or_default()) + 1];
        for sample in samples.iter().filter(|sample| sample.at != VICTIM) {
            let row = &mut rows[step(sample.end)];
            let fault = fault_at(episodes, sample.end);
            let leaves = fault.is_none_or(|e| e.fault.leaves(sample.at, sample.home));
            let count = match (leaves, sample.state.is_empty()) {
                (true, true) => &mut row.live_ok,
                (true, false) => &mut row.live_failed,
                (false, true) => &mut row.other_ok,
                (false, false) => &mut row.other_failed,
            };
            *count += 1;
            let took = (sample.end - sample.begin).as_millis() as u64;
            row.longest_ms = row.longest_ms.max(took);
        }
        Series { rows, episodes }
    }

    /// One line per step: time in seconds, present fault, counts, the longest statement.
    pub(crate) fn csv(&self) -> String {
        let mut out =
            String::from("seconds,fault,live_ok,live_failed,other_ok,other_failed,longest_ms\n");
        for (at, row) in self.rows.iter().enumerate() {
            let time = STEP * at as u32;
            let fault = fault_at(self.episodes, time).map_or("", |e| e.fault.name());
            let _ = writeln!(
                out,
                "{:.1},{fault},{},{},{},{},{}",
                time.as_secs_f64(),
                row.live_ok,
                row.live_failed,
                row.other_ok,
                row.other_failed,
                row.longest_ms
            );
        }
        out
    }

    /// An SVG file with one plot per fault. The time of the fault is shaded.
    pub(crate) fn plots(&self, protocol: &str) -> String {
        let title = format!(
            "{protocol}: statements of clients of live nodes in each 100 ms, and the longest"
        );
        let panels: Vec<Panel> = self
            .episodes
            .iter()
            .map(|episode| self.panel(episode))
            .collect();
        file(&title, &panels)
    }

    fn panel(&self, episode: &Episode) -> Panel {
        let first = step(episode.begin.saturating_sub(AROUND));
        let last = step(episode.end + AROUND).min(self.rows.len().saturating_sub(1));
        let seconds = |at: usize| at as f64 / 10.0 - episode.begin.as_secs_f64();
        let line = |name: &str, colour, value: fn(&Row) -> u64| Line {
            name: name.to_string(),
            colour,
            points: (first..=last)
                .map(|at| (seconds(at), value(&self.rows[at]) as f64))
                .collect(),
        };
        Panel {
            title: format!("{}: {}", episode.fault.name(), episode.change.summary()),
            axes: Axes {
                x_title: "seconds since the fault, which lasts while the ground is shaded",
                y_title: "statements, 10 ms",
                log_y: false,
                x_labels: Vec::new(),
                y_label: number,
                measured_from: None,
            },
            series: vec![
                line("done, rows that the fault leaves", COLOURS[2], |row| {
                    row.live_ok
                }),
                line("failed, rows that the fault leaves", COLOURS[1], |row| {
                    row.live_failed
                }),
                line("done, other rows", COLOURS[0], |row| row.other_ok),
                line("failed, other rows", COLOURS[4], |row| row.other_failed),
                line("longest, in 10 ms", "currentColor", |row| {
                    row.longest_ms / 10
                }),
            ],
            shaded: Some((0.0, (episode.end - episode.begin).as_secs_f64())),
        }
    }
}

fn fault_at(episodes: &[Episode], at: Duration) -> Option<&Episode> {
    episodes.iter().find(|e| (e.begin..e.end).contains(&at))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::Fault;
    use crate::judge::Change;

    #[test]
    fn each_fault_has_a_plot_and_each_step_a_line() {
        let sample = |begin: u64, end: u64, home, state: &str| Sample {
            begin: Duration::from_millis(begin),
            end: Duration::from_millis(end),
            at: 1,
            home,
            state: state.into(),
            message: String::new(),
        };
        let episodes = [Episode {
            fault: Fault::Stop,
            begin: Duration::from_secs(3),
            end: Duration::from_secs(8),
            change: Change {
                sql: String::new(),
                took: Duration::from_millis(12),
                outcome: "done".into(),
            },
        }];
        let samples = [
            sample(2_500, 2_510, 3, ""),
            sample(3_100, 4_000, 2, "40001"),
            sample(7_500, 7_510, 3, ""),
        ];
        let series = Series::of(&samples, &episodes);
        let csv = series.csv();
        assert_eq!(csv.lines().count(), 1 + 76);
        assert!(csv.contains("\n4.0,stop 2,0,0,0,1,900\n"), "{csv}");
        let plots = series.plots("leap");
        assert_eq!(plots.matches("<polyline").count(), 5, "{plots}");
        assert!(
            plots.contains("stop 2: schema change done after 12 ms"),
            "{plots}"
        );
    }
}

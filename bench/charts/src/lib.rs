//! Small line charts as SVG: inside of a page, or as a file of their own.

use links::view::duration;
use serde_json::{Value, json};
use std::fmt::Write;

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 220.0;
const LEFT: f64 = 64.0;
const BOTTOM: f64 = 28.0;
const TOP: f64 = 12.0;
const RIGHT: f64 = 12.0;

/// A line.
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// Any colour that CSS knows.
    pub colour: &'static str,
    /// x and y; x increases. The line has a gap where y is no number.
    pub points: Vec<(f64, f64)>,
}

/// How the axes are drawn.
pub struct Axes {
    /// What x is.
    pub x_title: &'static str,
    /// What y is.
    pub y_title: &'static str,
    /// Logarithmic y, for values above 0.
    pub log_y: bool,
    /// Labels of x positions; without them numbers.
    pub x_labels: Vec<(f64, String)>,
    /// Writes a value of y.
    pub y_label: fn(f64) -> String,
    /// From here on the background is that of the measured phase.
    pub measured_from: Option<f64>,
}

/// Where values lie on the drawing.
struct Frame {
    x_min: f64,
    x_max: f64,
    /// The largest y, with some room above.
    top: f64,
    /// The smallest y above 0, with some room below: the lower end of a logarithmic axis.
    floor: f64,
    log_y: bool,
}

impl Frame {
    /// `None` without points.
    fn around(series: &[Series], log_y: bool) -> Option<Frame> {
        let points = || series.iter().flat_map(|line| &line.points);
        points().next()?;
        points().find(|point| !point.1.is_nan())?;
        let x_max = points().map(|p| p.0).fold(f64::MIN, f64::max);
        let x_min = points().map(|p| p.0).fold(f64::MAX, f64::min);
        let highest = points().map(|p| p.1).fold(0.0, f64::max);
        let top = match log_y {
            true => highest.max(1e-9) * 1.05,
            // A whole number of round steps.
            false => round_step(highest / 4.0) * (highest / round_step(highest / 4.0)).ceil(),
        };
        let top = if top > 0.0 { top } else { 1.0 };
        let above_zero = points().map(|p| p.1).filter(|&y| y > 0.0);
        let floor = above_zero.fold(top, f64::min) * 0.9;
        // A single x still needs a width.
        Some(Frame {
            x_min: x_min.min(x_max - 1e-9),
            x_max,
            top,
            floor,
            log_y,
        })
    }

    fn x(&self, x: f64) -> f64 {
        LEFT + (x - self.x_min) / (self.x_max - self.x_min) * (WIDTH - LEFT - RIGHT)
    }

    fn y(&self, y: f64) -> f64 {
        let share = match self.log_y {
            true => {
                let span = (self.top / self.floor).ln().max(1e-9);
                (y.max(self.floor) / self.floor).ln() / span
            }
            false => y / self.top,
        };
        HEIGHT - BOTTOM - share * (HEIGHT - BOTTOM - TOP)
    }

    /// Round values for the lines of the grid, ascending.
    fn ticks(&self) -> Vec<f64> {
        if !self.log_y {
            let step = round_step(self.top / 4.0);
            let count = (self.top / step + 1e-6) as u32;
            return (0..=count).map(|at| f64::from(at) * step).collect();
        }
        let inside = |of: &[f64]| -> Vec<f64> {
            let (from, to) = (
                self.floor.log10().floor() as i32,
                self.top.log10().ceil() as i32,
            );
            let decades = from..=to;
            let all = decades.flat_map(|at| of.iter().map(move |one| one * 10f64.powi(at)));
            all.filter(|y| (self.floor..=self.top).contains(y))
                .collect()
        };
        // The coarsest that has enough lines.
        let choices: [&[f64]; 3] = [&[1.0], &[1.0, 3.0], &[1.0, 2.0, 5.0]];
        let ticks = choices
            .into_iter()
            .map(inside)
            .find(|ticks| ticks.len() >= 3);
        // Values that lie close together.
        ticks.unwrap_or_else(|| round_between(self.floor, self.top))
    }
}

/// Round values from `from` to `to`, three to six of them.
fn round_between(from: f64, to: f64) -> Vec<f64> {
    let step = round_step((to - from).max(to.abs() * 1e-9) / 5.0);
    let first = (from / step - 1e-6).ceil() as i64;
    let last = (to / step + 1e-6).floor() as i64;
    (first..=last).map(|at| at as f64 * step).collect()
}

/// A value of an axis, without digits that say nothing.
pub fn number(value: f64) -> String {
    let places = match value.abs() {
        size if size >= 100.0 => 0,
        size if size >= 1.0 => 2,
        _ => 4,
    };
    trimmed(&format!("{value:.places$}"))
}

/// Microseconds of an axis, without digits that say nothing: `5 ms`.
pub fn time(us: f64) -> String {
    let shown = duration(us.round() as u64);
    match shown.split_once(' ') {
        Some((value, unit)) => format!("{} {unit}", trimmed(value)),
        None => shown,
    }
}

fn trimmed(digits: &str) -> String {
    match digits.contains('.') {
        true => digits
            .trim_end_matches('0')
            .trim_end_matches('.')
            .to_string(),
        false => digits.to_string(),
    }
}

/// The smallest of 1, 2, 2.5 and 5 times a power of ten that is at least `step`; 1 of nothing.
pub fn round_step(step: f64) -> f64 {
    if step <= 0.0 {
        return 1.0;
    }
    let decade = 10f64.powf(step.log10().floor());
    let steps = [1.0, 2.0, 2.5, 5.0].map(|one| one * decade);
    let found = steps.into_iter().find(|one| *one >= step * (1.0 - 1e-9));
    found.unwrap_or(10.0 * decade)
}

/// What makes the charts of a page show values under the pointer, hide lines and draw out a stretch
/// of x. It stands once, behind all of them.
pub const SCRIPT: &str = include_str!("chart.js");

/// More points than this have no dots: the line says as much.
const DOTS_MAX: usize = 120;

/// The chart as elements of a page, which scroll on a narrow screen. With [`SCRIPT`] it answers to
/// the pointer and to keys; without, dots carry titles, which browsers show on hover.
pub fn lines(axes: &Axes, series: &[Series]) -> String {
    let Some(frame) = Frame::around(series, axes.log_y) else {
        return String::from("<p>no samples</p>");
    };
    let mut out = format!(
        "<div class=\"chart\" tabindex=\"0\"><div class=\"scroll\">\
         <svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\">"
    );
    grid(axes, &frame, &mut out);
    for line in series {
        draw(line, axes, &frame, &mut out);
    }
    out.push_str("</svg></div><p class=\"legend\">");
    for Series { name, colour, .. } in series {
        let _ = write!(
            out,
            "<button disabled aria-pressed=\"true\"><span style=\"color:{colour}\">&#9632;</span> \
             {name}</button> "
        );
    }
    out.push_str(
        "<span class=\"hint\" hidden>Click a name to hide its line, with Shift to see it alone. \
         Drag to see a part; a double click or Esc brings all back.</span></p>",
    );
    // "</" must not end the script element, wherever it comes from.
    let data = data(axes, &frame, series)
        .to_string()
        .replace('<', "\\u003c");
    let _ = write!(
        out,
        "<script type=\"application/json\">{data}</script></div>"
    );
    out
}

/// What the script knows of a chart.
fn data(axes: &Axes, frame: &Frame, series: &[Series]) -> Value {
    let line = |line: &Series| {
        let points = || line.points.iter().filter(|point| !point.1.is_nan());
        // Pixels of y, since the script changes x alone.
        let ys = points().map(|point| (frame.y(point.1) * 10.0).round() / 10.0);
        json!({
            "name": plain(&line.name),
            "colour": line.colour,
            "pieces": pieces(line),
            "x": points().map(|point| point.0).collect::<Vec<f64>>(),
            "y": ys.collect::<Vec<f64>>(),
            "text": points().map(|point| (axes.y_label)(point.1)).collect::<Vec<String>>(),
        })
    };
    let box_of = json!({
        "left": LEFT, "right": WIDTH - RIGHT, "top": TOP, "bottom": HEIGHT - BOTTOM,
    });
    json!({
        "title": plain(axes.x_title),
        "x": [frame.x_min, frame.x_max],
        "box": box_of,
        "marks": axes.x_labels,
        "measured": axes.measured_from,
        "lines": series.iter().map(line).collect::<Vec<Value>>(),
    })
}

/// First and past the last of the points between gaps, counted without those of the gaps.
fn pieces(line: &Series) -> Vec<(usize, usize)> {
    let mut end = 0;
    let lengths = line.points.split(|point| point.1.is_nan()).map(<[_]>::len);
    let piece = lengths.filter(|length| *length > 0).map(|length| {
        end += length;
        (end - length, end)
    });
    piece.collect()
}

/// HTML as the text that it stands for.
fn plain(html: &str) -> String {
    let text = html.replace("&lt;", "<").replace("&gt;", ">");
    text.replace("&quot;", "\"").replace("&amp;", "&")
}

/// One chart of a file.
pub struct Panel {
    /// Stands above it.
    pub title: String,
    /// Its axes.
    pub axes: Axes,
    /// Its lines; all charts of a file have the same names and colours.
    pub series: Vec<Series>,
    /// From and to on the x axis: what is shaded.
    pub shaded: Option<(f64, f64)>,
}

/// Charts below each other as a file that stands for itself, on light and dark ground.
pub fn file(title: &str, panels: &[Panel]) -> String {
    const HEAD: f64 = 44.0;
    const TITLE: f64 = 22.0;
    let height = HEAD + panels.len() as f64 * (HEIGHT + TITLE);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
         width=\"{WIDTH}\" height=\"{height}\" role=\"img\"><title>{title}</title><style>\
         svg{{font:11px system-ui,sans-serif;color:#1d2430;background:#fff}}text{{fill:#5b6675}}\
         .head{{fill:#1d2430;font-size:13px}}.grid{{stroke:#e2e6ec}}.phase{{fill:#fbecec}}\
         @media(prefers-color-scheme:dark){{svg{{color:#dfe5ee;background:#14181f}}\
         text{{fill:#9aa6b5}}.head{{fill:#dfe5ee}}.grid{{stroke:#2a323d}}.phase{{fill:#33232a}}}}\
         </style><text x=\"{LEFT}\" y=\"16\" class=\"head\">{title}</text>"
    );
    let mut x = LEFT;
    for Series { name, colour, .. } in panels.first().map_or(&[][..], |panel| &panel.series) {
        let _ = write!(
            svg,
            "<rect x=\"{x:.1}\" y=\"25\" width=\"9\" height=\"9\" fill=\"{colour}\"/>\
             <text x=\"{:.1}\" y=\"33\">{name}</text>",
            x + 13.0
        );
        // About six units for a character of this size.
        x += 26.0 + 6.0 * name.chars().count() as f64;
    }
    for (at, panel) in panels.iter().enumerate() {
        let top = HEAD + at as f64 * (HEIGHT + TITLE);
        let _ = write!(
            svg,
            "<g transform=\"translate(0 {top})\"><text x=\"{LEFT}\" y=\"15\" class=\"head\">{}\
             </text><g transform=\"translate(0 {TITLE})\">",
            panel.title
        );
        if let Some(frame) = Frame::around(&panel.series, panel.axes.log_y) {
            if let Some((from, to)) = panel.shaded {
                let (from, to) = (frame.x(from), frame.x(to));
                let (width, height) = (to - from, HEIGHT - BOTTOM - TOP);
                let _ = write!(
                    svg,
                    "<rect x=\"{from:.1}\" y=\"{TOP}\" width=\"{width:.1}\" \
                     height=\"{height:.1}\" class=\"phase\"/>"
                );
            }
            grid(&panel.axes, &frame, &mut svg);
            panel
                .series
                .iter()
                .for_each(|line| path(line, &frame, &mut svg));
        }
        svg.push_str("</g></g>");
    }
    svg.push_str("</svg>\n");
    svg
}

fn grid(axes: &Axes, frame: &Frame, svg: &mut String) {
    let right = WIDTH - RIGHT;
    if let Some(from) = axes.measured_from {
        let x = frame.x(from.max(frame.x_min));
        let (w, h) = (right - x, HEIGHT - BOTTOM - TOP);
        let _ = write!(
            svg,
            "<rect x=\"{x:.1}\" y=\"{TOP}\" width=\"{w:.1}\" height=\"{h:.1}\" class=\"phase\"/>"
        );
    }
    for value in frame.ticks() {
        let (y, label) = (frame.y(value), (axes.y_label)(value));
        let (before, base) = (LEFT - 6.0, y + 4.0);
        let _ = write!(
            svg,
            "<line x1=\"{LEFT}\" x2=\"{right:.1}\" y1=\"{y:.1}\" y2=\"{y:.1}\" class=\"grid\"/>\
             <text x=\"{before:.1}\" y=\"{base:.1}\" text-anchor=\"end\">{label}</text>"
        );
    }
    let numbers = round_between(frame.x_min, frame.x_max);
    let labels = match axes.x_labels.is_empty() {
        true => numbers.into_iter().map(|x| (x, number(x))).collect(),
        false => axes.x_labels.clone(),
    };
    svg.push_str("<g class=\"ticks\">");
    for (x, label) in labels {
        let (x, y) = (frame.x(x), HEIGHT - BOTTOM + 14.0);
        // The last one must not stick out of the drawing.
        let anchor = if x > right - 1.0 { "end" } else { "middle" };
        let x = if x > right - 1.0 { WIDTH } else { x };
        let _ = write!(
            svg,
            "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{label}</text>"
        );
    }
    svg.push_str("</g>");
    let (low, x_title, y_title) = (HEIGHT - 3.0, axes.x_title, axes.y_title);
    let _ = write!(
        svg,
        "<text x=\"{right:.1}\" y=\"{low:.1}\" text-anchor=\"end\">{x_title}</text>\
         <text x=\"{LEFT}\" y=\"9\">{y_title}</text>"
    );
}

/// The line alone.
fn path(line: &Series, frame: &Frame, svg: &mut String) {
    let place = |p: &(f64, f64)| format!("{:.1},{:.1}", frame.x(p.0), frame.y(p.1));
    for piece in line.points.split(|point| point.1.is_nan()) {
        let path = piece.iter().map(place).collect::<Vec<_>>().join(" ");
        if path.is_empty() {
            continue;
        }
        let _ = write!(
            svg,
            "<polyline points=\"{path}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.6\"/>",
            line.colour
        );
    }
}

/// The line and its points.
fn draw(line: &Series, axes: &Axes, frame: &Frame, svg: &mut String) {
    let Series {
        name,
        colour,
        points,
    } = line;
    svg.push_str("<g class=\"line\">");
    path(line, frame, svg);
    let dots = match points.len() {
        count if count > DOTS_MAX => &[][..],
        _ => points,
    };
    for point in dots.iter().filter(|point| !point.1.is_nan()) {
        let (x, y, value) = (frame.x(point.0), frame.y(point.1), (axes.y_label)(point.1));
        let _ = write!(
            svg,
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{colour}\">\
             <title>{name}: {value}</title></circle>"
        );
    }
    svg.push_str("</g>");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axes(log_y: bool) -> Axes {
        Axes {
            x_title: "x",
            y_title: "y",
            log_y,
            x_labels: Vec::new(),
            y_label: |y| format!("{y:.0}"),
            measured_from: Some(1.0),
        }
    }

    #[test]
    fn a_line_has_a_gap_where_nothing_is_known() {
        let points = [
            (0.0, 1.0),
            (1.0, 2.0),
            (2.0, f64::NAN),
            (3.0, f64::NAN),
            (4.0, 3.0),
        ];
        let line = Series {
            name: String::from("a"),
            colour: "red",
            points: points.to_vec(),
        };
        assert_eq!(pieces(&line), [(0, 2), (2, 3)]);
        let axes = Axes {
            x_title: "x",
            y_title: "y",
            log_y: false,
            x_labels: Vec::new(),
            y_label: number,
            measured_from: None,
        };
        let html = lines(&axes, &[line]);
        assert!(!html.contains("NaN") && !html.contains(",null"), "{html}");
        assert_eq!(html.matches("<polyline").count(), 2, "{html}");
        assert_eq!(html.matches("<circle").count(), 3, "{html}");
        assert!(html.contains("\"pieces\":[[0,2],[2,3]]"), "{html}");
        let nothing = Series {
            name: String::from("b"),
            colour: "red",
            points: vec![(0.0, f64::NAN)],
        };
        assert_eq!(lines(&axes, &[nothing]), "<p>no samples</p>");
    }

    #[test]
    fn coordinates_are_numbers_also_for_flat_and_single_points() {
        for points in [
            vec![(0.0, 0.0)],
            vec![(1.0, 5.0), (2.0, 5.0)],
            vec![(1.0, 0.0), (9.0, 1e6)],
        ] {
            for log_y in [false, true] {
                let series = [Series {
                    name: "a".into(),
                    colour: "red",
                    points: points.clone(),
                }];
                let svg = lines(&axes(log_y), &series);
                assert!(svg.contains("<svg") && !svg.contains("NaN") && !svg.contains("inf"));
            }
        }
    }

    #[test]
    fn lines_of_the_grid_stand_at_round_values() {
        let frame = |log_y, values: [f64; 2]| {
            let series = [Series {
                name: "a".into(),
                colour: "red",
                points: vec![(0.0, values[0]), (1.0, values[1])],
            }];
            Frame::around(&series, log_y).expect("there are points")
        };
        let ticks = frame(false, [0.0, 97.0]).ticks();
        assert_eq!(ticks, [0.0, 25.0, 50.0, 75.0, 100.0]);
        assert_eq!(
            frame(false, [0.0, 0.0]).ticks(),
            [0.0, 0.25, 0.5, 0.75, 1.0]
        );
        let close = |log: &[f64], wanted: &[f64]| {
            let pairs = log.iter().zip(wanted);
            log.len() == wanted.len() && pairs.clone().all(|(a, b)| (a / b - 1.0).abs() < 1e-9)
        };
        let ticks = frame(true, [500.0, 36_000.0]).ticks();
        assert!(
            close(&ticks, &[1_000.0, 3_000.0, 10_000.0, 30_000.0]),
            "{ticks:?}"
        );
        let ticks = frame(true, [45.0, 260.0]).ticks();
        assert!(close(&ticks, &[50.0, 100.0, 200.0]), "{ticks:?}");
    }

    #[test]
    fn labels_have_no_digits_that_say_nothing() {
        let shown = [0.0, 0.25, 2.0, 2.5, 12.5, 150.0].map(number);
        assert_eq!(shown, ["0", "0.25", "2", "2.5", "12.5", "150"]);
        let shown = [0.0, 500.0, 1_000.0, 2_500.0, 30_000.0, 2_000_000.0].map(time);
        assert_eq!(shown, ["0 us", "500 us", "1 ms", "2.5 ms", "30 ms", "2 s"]);
        assert_eq!(round_between(0.0, 21.0), [0.0, 5.0, 10.0, 15.0, 20.0]);
        let shown: Vec<String> = round_between(3.2, 4.1).into_iter().map(number).collect();
        assert_eq!(shown, ["3.2", "3.4", "3.6", "3.8", "4"]);
    }

    #[test]
    fn the_script_is_told_what_is_drawn() {
        let series = [Series {
            name: "a &lt;/script&gt; &amp; b".into(),
            colour: "red",
            points: vec![(2.0, 10.0), (4.0, 30.0)],
        }];
        let html = lines(&axes(false), &series);
        let (_, rest) = html
            .split_once("<script type=\"application/json\">")
            .expect("there are data");
        let (data, rest) = rest.split_once("</script>").expect("they end");
        assert_eq!(rest, "</div>");
        let told: Value = serde_json::from_str(data).expect("they are JSON");
        let line = &told["lines"][0];
        assert_eq!(line["name"], "a </script> & b");
        assert_eq!(
            (&line["x"], &line["text"]),
            (&json!([2.0, 4.0]), &json!(["10", "30"]))
        );
        assert_eq!(told["x"], json!([2.0, 4.0]));
        // The same places as those of the line.
        let ys: Vec<f64> = serde_json::from_value(line["y"].clone()).expect("numbers");
        for (x, y) in [64.0, 708.0].into_iter().zip(ys) {
            assert!(html.contains(&format!("{x:.1},{y:.1}")), "{html}");
        }
        let dots = |count: usize| {
            let points = (0..count).map(|at| (at as f64, 1.0)).collect();
            let series = [Series {
                points,
                name: "a".into(),
                colour: "red",
            }];
            lines(&axes(false), &series).matches("<circle").count()
        };
        assert_eq!((dots(DOTS_MAX), dots(DOTS_MAX + 1)), (DOTS_MAX, 0));
    }

    #[test]
    fn a_file_stands_for_itself() {
        let panel = |title: &str| Panel {
            title: title.into(),
            axes: axes(false),
            series: vec![Series {
                name: "a".into(),
                colour: "red",
                points: vec![(0.0, 1.0), (5.0, 2.0)],
            }],
            shaded: Some((1.0, 4.0)),
        };
        let svg = file("t", &[panel("one"), panel("two")]);
        assert!(
            svg.starts_with("<svg xmlns=") && svg.ends_with("</svg>\n"),
            "{svg}"
        );
        assert_eq!(svg.matches("<polyline").count(), 2, "{svg}");
        assert!(
            svg.contains("prefers-color-scheme:dark") && !svg.contains("NaN"),
            "{svg}"
        );
    }

    #[test]
    fn without_points_it_says_so() {
        assert_eq!(lines(&axes(false), &[]), "<p>no samples</p>");
    }
}

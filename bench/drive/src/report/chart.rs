//! Small line charts as inline SVG.

use std::fmt::Write;

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 220.0;
const LEFT: f64 = 64.0;
const BOTTOM: f64 = 28.0;
const TOP: f64 = 12.0;
const RIGHT: f64 = 12.0;

/// A line.
pub(super) struct Series {
    pub name: String,
    pub colour: &'static str,
    /// x and y; x increases.
    pub points: Vec<(f64, f64)>,
}

/// How the axes are drawn.
pub(super) struct Axes {
    pub x_title: &'static str,
    pub y_title: &'static str,
    /// Logarithmic y, for values above 0.
    pub log_y: bool,
    /// Labels of x positions; without them numbers.
    pub x_labels: Vec<(f64, String)>,
    pub y_label: fn(f64) -> String,
    /// From here on the background is that of the measured phase.
    pub measured_from: Option<f64>,
}

/// The chart as an SVG element. Points carry titles, which browsers show on hover.
pub(super) fn lines(axes: &Axes, series: &[Series]) -> String {
    let points = || series.iter().flat_map(|line| &line.points);
    if points().next().is_none() {
        return String::from("<p>no samples</p>");
    }
    let x_max = points().map(|p| p.0).fold(f64::MIN, f64::max);
    let x_min = points()
        .map(|p| p.0)
        .fold(f64::MAX, f64::min)
        .min(x_max - 1e-9);
    let top = points().map(|p| p.1).fold(1.0, f64::max) * 1.05;
    let floor = points()
        .map(|p| p.1)
        .filter(|&y| y > 0.0)
        .fold(top, f64::min)
        * 0.9;
    let x_at = |x: f64| LEFT + (x - x_min) / (x_max - x_min) * (WIDTH - LEFT - RIGHT);
    let y_at = |y: f64| {
        let share = match axes.log_y {
            true => (y.max(floor) / floor).ln() / (top / floor).ln().max(1e-9),
            false => y / top,
        };
        HEIGHT - BOTTOM - share * (HEIGHT - BOTTOM - TOP)
    };
    let mut svg = format!("<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\">");
    if let Some(from) = axes.measured_from {
        let x = x_at(from.max(x_min));
        let (w, h) = (WIDTH - RIGHT - x, HEIGHT - BOTTOM - TOP);
        let _ = write!(
            svg,
            "<rect x=\"{x:.1}\" y=\"{TOP}\" width=\"{w:.1}\" height=\"{h:.1}\" class=\"phase\"/>"
        );
    }
    for step in 0..=4 {
        let share = f64::from(step) / 4.0;
        let value = match axes.log_y {
            true => floor * (top / floor).powf(share),
            false => top * share,
        };
        let (y, label) = (y_at(value), (axes.y_label)(value));
        let _ = write!(
            svg,
            "<line x1=\"{LEFT}\" x2=\"{:.1}\" y1=\"{y:.1}\" y2=\"{y:.1}\" class=\"grid\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{label}</text>",
            WIDTH - RIGHT,
            LEFT - 6.0,
            y + 4.0
        );
    }
    let numbers = (0..=4).map(|step| {
        let x = x_min + (x_max - x_min) * f64::from(step) / 4.0;
        (x, format!("{x:.0}"))
    });
    let labels: Vec<(f64, String)> = if axes.x_labels.is_empty() {
        numbers.collect()
    } else {
        axes.x_labels.clone()
    };
    for (x, label) in labels {
        let (x, y) = (x_at(x), HEIGHT - BOTTOM + 14.0);
        let _ = write!(
            svg,
            "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"middle\">{label}</text>"
        );
    }
    for line in series {
        let path: Vec<String> = line
            .points
            .iter()
            .map(|p| format!("{:.1},{:.1}", x_at(p.0), y_at(p.1)))
            .collect();
        let (colour, name) = (line.colour, &line.name);
        let _ = write!(
            svg,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.6\"/>",
            path.join(" ")
        );
        for point in &line.points {
            let (x, y, value) = (x_at(point.0), y_at(point.1), (axes.y_label)(point.1));
            let _ = write!(
                svg,
                "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{colour}\">\
                 <title>{name}: {value}</title></circle>"
            );
        }
    }
    let _ = write!(
        svg,
        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>\
         <text x=\"{LEFT}\" y=\"9\">{}</text></svg>",
        WIDTH - RIGHT,
        HEIGHT - 1.0,
        axes.x_title,
        axes.y_title
    );
    svg.push_str("<p class=\"legend\">");
    for line in series {
        let _ = write!(
            svg,
            "<span style=\"color:{}\">&#9632;</span> {} ",
            line.colour, line.name
        );
    }
    svg.push_str("</p>");
    svg
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
                assert!(svg.starts_with("<svg") && !svg.contains("NaN") && !svg.contains("inf"));
            }
        }
    }

    #[test]
    fn without_points_it_says_so() {
        assert_eq!(lines(&axes(false), &[]), "<p>no samples</p>");
    }
}

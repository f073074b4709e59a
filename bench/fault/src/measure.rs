//! What is sampled, by name and unit, and its summary.

use super::sample::{Samples, ServerSeries, Used};
use serde_json::{Map, Value, json};

/// Something that is sampled.
pub struct Measure {
    /// As JSON calls it.
    pub name: &'static str,
    /// The title of its chart, with the unit of its axis.
    pub title: &'static str,
    /// One unit of the axis, in units of JSON.
    pub unit: f64,
    /// What it is of a sample; `None`: not known.
    pub of: fn(&Used) -> Option<f64>,
}

const MIB: f64 = 1_048_576.0;

/// A measure by its fields.
macro_rules! measures {
    ($($name:literal, $title:literal, $unit:expr, $of:expr;)*) => {
        [$(Measure { name: $name, title: $title, unit: $unit, of: $of }),*]
    };
}

/// All that is sampled.
pub const MEASURES: [Measure; 6] = measures![
    "cpu", "cores used", 1.0, |used| Some(used.cpu);
    "memory_bytes", "resident memory, MiB", MIB, |used| Some(used.memory);
    "disk_read_bytes_per_s", "read from the disk, MiB/s", MIB, |used| used.disk_read;
    "disk_written_bytes_per_s", "written to the disk, MiB/s", MIB, |used| used.disk_written;
    "net_in_bytes_per_s", "received in its network, MiB/s", MIB, |used| Some(used.net_in);
    "net_out_bytes_per_s", "sent in its network, MiB/s", MIB, |used| Some(used.net_out);
];

impl Measure {
    /// Mean and largest of the measured phase.
    pub fn summary(&self, series: &ServerSeries) -> Option<(f64, f64)> {
        let samples = series.samples.iter().filter(|sample| sample.at_s > 0.0);
        let values = samples.filter_map(|sample| (self.of)(sample.used.as_ref()?));
        let values: Vec<f64> = values.collect();
        let sum: f64 = values.iter().sum();
        let most = values.iter().copied().reduce(f64::max)?;
        Some((sum / values.len() as f64, most))
    }
}

impl ServerSeries {
    /// Samples of the measured phase in which it did not run all the time.
    pub fn gaps(&self) -> usize {
        let samples = self.samples.iter().filter(|sample| sample.at_s > 0.0);
        samples.filter(|sample| sample.used.is_none()).count()
    }
}

impl Samples {
    /// What a run's JSON has of it.
    pub fn json(&self) -> Value {
        let Samples { servers, cost } = self;
        let series = servers.iter().map(one).collect::<Vec<_>>();
        json!({ "sampling_cores": cost, "series": series })
    }
}

fn one(series: &ServerSeries) -> Value {
    let each = |value: &dyn Fn(&Measure) -> Value| -> Value {
        let measures = MEASURES.iter();
        let fields = measures.map(|measure| (measure.name.to_string(), value(measure)));
        fields.collect::<Map<String, Value>>().into()
    };
    let samples = &series.samples;
    let seconds = samples.iter().map(|sample| sample.at_s);
    let mut value = each(&|measure| {
        let values = samples.iter();
        let values = values.map(|sample| sample.used.as_ref().and_then(measure.of));
        values.collect::<Vec<_>>().into()
    });
    value["name"] = json!(series.name);
    value["host"] = json!(series.host);
    value["seconds"] = json!(seconds.collect::<Vec<f64>>());
    value["mean"] = each(&|measure| json!(measure.summary(series).map(|it| it.0)));
    value["max"] = each(&|measure| json!(measure.summary(series).map(|it| it.1)));
    value["gaps"] = json!(series.gaps());
    value["ended"] = json!(series.ended);
    value
}

//! What is sampled, by name and unit, and its summary.

use super::sample::{Sample, Samples, ServerSeries, Used};
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
    /// The same series as it stands in a run's JSON; `None`: that is none.
    pub fn from_json(value: &Value) -> Option<ServerSeries> {
        let text = |key: &str| value[key].as_str().map(str::to_owned);
        let seconds = value["seconds"].as_array()?;
        let number = |key: &str, at: usize| value[key][at].as_f64();
        let used = |at: usize| {
            Some(Used {
                cpu: number("cpu", at)?,
                memory: number("memory_bytes", at)?,
                disk_read: number("disk_read_bytes_per_s", at),
                disk_written: number("disk_written_bytes_per_s", at),
                net_in: number("net_in_bytes_per_s", at)?,
                net_out: number("net_out_bytes_per_s", at)?,
            })
        };
        let samples = seconds.iter().enumerate().map(|(at, second)| {
            Some(Sample {
                at_s: second.as_f64()?,
                used: used(at),
            })
        });
        Some(ServerSeries {
            name: text("name")?,
            host: text("host"),
            samples: samples.collect::<Option<_>>()?,
            ended: text("ended"),
        })
    }

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_is_the_same_after_its_json() {
        let used = Used {
            cpu: 0.5,
            memory: 4096.0,
            disk_read: None,
            disk_written: Some(7.0),
            net_in: 1.0,
            net_out: 2.0,
        };
        let sample = |at_s, used| Sample { at_s, used };
        let series = ServerSeries {
            name: String::from("pg"),
            host: Some(String::from("me@h")),
            samples: vec![
                sample(-0.5, Some(used)),
                sample(0.5, None),
                sample(1.5, Some(used)),
            ],
            ended: None,
        };
        assert_eq!(ServerSeries::from_json(&one(&series)), Some(series));
        assert_eq!(ServerSeries::from_json(&json!({"name": 3})), None);
    }
}

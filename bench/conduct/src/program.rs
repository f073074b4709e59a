//! A workload that is a program of the user: it gets the document, and prints results as JSON.

use crate::conductor::{Ended, Surroundings};
use crate::document::Document;
use crate::keep::Kept;
use crate::sessions_run::{RunClock, add_samples, targets};
use fault::{FaultTarget, Sampler, Samples};
use links::view::Progress;
use serde_json::{Map, Value, json};
use sessions::run::Phases;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::thread::ScopedJoinHandle;
use std::time::{Duration, Instant};

/// What a program can find of itself.
const VERDICTS: [&str; 5] = ["passed", "failed", "overloaded", "unchecked", "nothing"];
/// Interactions that a program may tell.
const INTERACTIONS_MAX: usize = 1_000;
/// The largest result, in bytes.
const RESULT_BYTES_MAX: usize = 16 << 20;

/// Runs a command. `pid`: below it is a store that we have started.
pub(crate) fn run(
    (command, limit): (&str, Duration),
    read: &Document,
    document: &Value,
    pid: Option<u32>,
    around: &Surroundings<'_>,
    progress: &mut dyn Progress,
) -> Ended {
    progress.stage("  running the program");
    let started = start(command, read, document, pid, around);
    let (kept, servers) = match started {
        Ok(started) => started,
        Err(why) => return Ended::Failed(format!("workload.program: {why}")),
    };
    let (code, servers, clients) = sampled(&kept, servers, limit, read, around);
    let failed = |what: &str| {
        let lines = kept.last_lines();
        Ended::Failed(format!(
            "workload.program: {what}; its last lines:\n{lines}"
        ))
    };
    match code {
        None if around.stop.load(Ordering::Relaxed) => return Ended::Stopped,
        None => return failed(&format!("it takes longer than {} s", limit.as_secs_f64())),
        Some(0) => {}
        Some(code) => return failed(&format!("it has ended with {code}")),
    }
    match result(&kept.output()) {
        Ok(mut result) => {
            result["name"] = document["name"].clone();
            result["seed"] = document["seed"].clone();
            result["workload"] = document["workload"]["name"].clone();
            result["store"] = json!({"api": "program"});
            add_samples(&mut result, &servers, &clients);
            Ended::Done(result)
        }
        Err(why) => failed(&why),
    }
}

/// Starts the program, and finds the servers that are sampled.
fn start(
    command: &str,
    read: &Document,
    document: &Value,
    pid: Option<u32>,
    around: &Surroundings<'_>,
) -> Result<(Kept, Sampler), String> {
    let files = ["program.out", "program.err"].map(|name| around.folder.join(name));
    // The document as it holds: with the store that was started.
    let mut own = document.clone();
    own["store"]["url"] = json!(read.url);
    let file = around.folder.join("program.json");
    let written = std::fs::write(&file, format!("{own:#}\n"));
    written.map_err(|error| format!("cannot write {}: {error}", file.display()))?;
    let full = |path: &Path| {
        let full = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        full.display().to_string()
    };
    let variables = [
        ("TRELLIS_STORE_URL", read.url.clone()),
        ("TRELLIS_FOLDER", full(around.folder)),
        ("TRELLIS_DOCUMENT", full(&file)),
        ("TRELLIS_PROGRAM", full(&around.keeper.program)),
        ("TRELLIS_SEED", document["seed"].to_string()),
    ];
    let servers = Sampler::prepare(&targets(read, pid)?).map_err(|error| error.to_string())?;
    let kept = Kept::start(&around.keeper, command, &variables, (&files[0], &files[1]))?;
    Ok((kept, servers))
}

/// Waits for the end of a program, and samples it and servers meanwhile. All of it counts: a
/// program has phases of its own.
fn sampled(
    kept: &Kept,
    servers: Sampler,
    limit: Duration,
    read: &Document,
    around: &Surroundings<'_>,
) -> (Option<i32>, Samples, Samples) {
    let own = format!("program=pid:{}", kept.pid())
        .parse::<FaultTarget>()
        .ok();
    let own: Vec<FaultTarget> = own.into_iter().filter(|_| read.samples_clients).collect();
    let clients = Sampler::prepare(&own).ok();
    let clock = RunClock::new(Phases {
        warmup_s: 0.0,
        measure_s: f64::MAX,
    });
    clock.begin(Instant::now());
    std::thread::scope(|scope| {
        let clock = &clock;
        let servers = scope.spawn(move || clock.sample(servers));
        let clients = clients.map(|clients| scope.spawn(move || clock.sample(clients)));
        let code = kept.wait(limit, around.stop);
        clock.end();
        let joined = |it: ScopedJoinHandle<'_, Samples>| it.join().expect("it does not panic");
        let clients = clients.map(joined).unwrap_or_default();
        (code, joined(servers), clients)
    })
}

/// The result that a program has printed: all of it, or its last line, is an object.
fn result(said: &str) -> Result<Value, String> {
    if said.len() > RESULT_BYTES_MAX {
        return Err(format!(
            "it has printed more than {} MiB",
            RESULT_BYTES_MAX >> 20
        ));
    }
    let last = said
        .lines()
        .rev()
        .find(|line| !line.trim().is_empty())
        .unwrap_or_default();
    let whole = serde_json::from_str::<Map<String, Value>>(said);
    let told = whole.or_else(|_| serde_json::from_str(last));
    let told = told.map_err(|_| {
        String::from("neither what it has printed nor the last line of that is an object of JSON")
    })?;
    let verdict = match &told.get("verdict") {
        None | Some(Value::Null) => "unchecked",
        Some(verdict) => {
            let known = VERDICTS.iter().find(|known| **verdict == **known);
            let one_of = || format!("verdict: {verdict} is none of {}", VERDICTS.join(", "));
            known.ok_or_else(one_of)?
        }
    };
    let per_s = told.get("per_s").cloned().unwrap_or_default();
    if !per_s.is_null() && per_s.as_f64().is_none_or(|per_s| per_s < 0.0) {
        return Err(format!("per_s: {per_s} is no number of 0 or more"));
    }
    let list = |key: &str| match told.get(key) {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Array(items)) if items.len() <= INTERACTIONS_MAX => Ok(items.clone()),
        Some(_) => Err(format!("{key}: it is a list of at most {INTERACTIONS_MAX}")),
    };
    let interactions = list("interactions")?;
    if let Some(wrong) = interactions.iter().find(|it| !it["name"].is_string()) {
        return Err(format!("interactions: {wrong} has no name"));
    }
    let findings = list("findings")?;
    if let Some(wrong) = findings.iter().find(|it| !it.is_string()) {
        return Err(format!("findings: {wrong} is no text"));
    }
    let has_failed = verdict == "failed";
    Ok(json!({
        "verdict": verdict,
        // A run whose check fails has no number.
        "per_s": if has_failed { Value::Null } else { per_s },
        "interactions": if has_failed { json!([]) } else { json!(interactions) },
        "check": {"made": verdict != "unchecked", "passed": verdict == "passed",
            "findings": findings},
        "program": told,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_is_an_object_or_the_last_line() {
        let told = result("warming up\n{\"per_s\": 5, \"verdict\": \"passed\"}\n\n").unwrap();
        assert_eq!(
            (&told["per_s"], &told["verdict"]),
            (&json!(5), &json!("passed"))
        );
        let told = result("{\n\"interactions\": [{\"name\": \"A\"}]\n}").unwrap();
        assert_eq!(told["verdict"], "unchecked");
        assert_eq!(told["interactions"][0]["name"], "A");
        let told = result("{\"per_s\": 5, \"verdict\": \"failed\", \"findings\": [\"lost\"]}");
        let told = told.unwrap();
        assert_eq!(
            (&told["per_s"], &told["check"]["findings"][0]),
            (&Value::Null, &json!("lost"))
        );
    }

    #[test]
    fn what_is_no_result_is_told() {
        for (said, why) in [
            ("", "an object"),
            ("5", "an object"),
            ("{} done", "an object"),
            ("{\"verdict\": \"good\"}", "none of passed"),
            ("{\"per_s\": \"5\"}", "per_s"),
            ("{\"per_s\": -1}", "per_s"),
            ("{\"interactions\": {}}", "interactions"),
            ("{\"interactions\": [3]}", "no name"),
            ("{\"findings\": [3]}", "no text"),
        ] {
            let told = result(said).unwrap_err();
            assert!(told.contains(why), "{said}: {told}");
        }
    }
}

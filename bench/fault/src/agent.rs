//! Faults at servers of other machines: this program, started there over ssh, has their faults.
//!
//! ```text
//! the benchmark                            the agent (`trellis bench fault-agent`)
//!   {"targets", "plans", "length_s"} --->  undoes what an earlier one left; finds, checks
//!   <--- {"ready"} or {"error"}
//!   {"second": 3.2}, five times a second ->  the clock of the measured phase
//!   <--- {"faults"} or {"error"}           all are undone
//! ```
//!
//! One JSON object in each line. The agent has the same code, its own journal, and its own probes.
//! It undoes its faults when its input ends, as it does when the benchmark is killed, and when it
//! has heard nothing for [`SILENCE_MAX`], as when the network is gone.

use super::far::{self, Host, quoted};
use super::plan::{FaultPlan, refused};
use super::target::FaultTarget;
use super::{Fault, Faults, STEP_S};
use links::DriveError;
use links::lock;
use links::url::Target;
use measures::recovery::RecoveryError;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How often an agent is told the time.
const TELL_EVERY: Duration = Duration::from_millis(200);
/// An agent that has heard nothing for so long is by itself.
const SILENCE_MAX: Duration = Duration::from_secs(10);
/// How long an agent may take until it has checked its faults.
const READY_MAX: Duration = Duration::from_secs(60);
/// How long it may take to undo them: a server may have to start.
const END_MAX: Duration = Duration::from_secs(330);

/// The agents of a run's other machines.
pub(super) struct Agent {
    host: Host,
    child: Child,
    stdin: Option<ChildStdin>,
    answers: Receiver<Value>,
    errors: Option<JoinHandle<String>>,
    /// The faults that it has: their numbers, plans and targets, in its order.
    pub(super) faults: Vec<(usize, FaultPlan)>,
}

/// What an agent has.
pub(super) struct Task {
    pub(super) host: Host,
    pub(super) program: String,
    pub(super) targets: Vec<FaultTarget>,
    /// With their numbers; each has one target.
    pub(super) faults: Vec<(usize, FaultPlan)>,
}

impl Agent {
    /// Starts it and has it check its faults.
    ///
    /// # Errors
    /// The machine is not reached, or a fault is not possible there.
    pub(super) fn start(task: Task, length_s: f64) -> Result<Agent, DriveError> {
        let Task {
            host,
            program,
            targets,
            faults,
        } = task;
        let mut command = host.command(&format!("exec {} bench fault-agent", quoted(&program)));
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let child = command.stderr(Stdio::piped()).spawn();
        let mut child = child.map_err(|error| refused(format!("ssh: {error}")))?;
        let (sender, answers) = channel();
        let output = child.stdout.take();
        std::thread::spawn(move || {
            let Some(output) = output else { return };
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                let answer = serde_json::from_str(&line).unwrap_or(json!({ "error": line }));
                if sender.send(answer).is_err() {
                    return;
                }
            }
        });
        let stderr = child.stderr.take();
        let errors = std::thread::spawn(move || {
            let mut text = Vec::new();
            if let Some(mut stderr) = stderr {
                let _ = stderr.read_to_end(&mut text);
            }
            String::from_utf8_lossy(&text).into_owned()
        });
        let mut agent = Agent {
            stdin: child.stdin.take(),
            host,
            child,
            answers,
            errors: Some(errors),
            faults,
        };
        let far = |target: &FaultTarget| {
            let text = target.far().map(|far| far.text.clone());
            format!("{}={}", target.name, text.unwrap_or_default())
        };
        agent.tell(&json!({
            "targets": targets.iter().map(far).collect::<Vec<_>>(),
            "plans": agent.faults.iter().map(|(_, plan)| plan.to_string()).collect::<Vec<_>>(),
            "length_s": length_s,
        }));
        let answer = agent.hear(READY_MAX).map_err(refused)?;
        match answer["ready"].as_bool() {
            Some(true) => Ok(agent),
            _ => Err(refused(format!("{}: {}", agent.host, said(&answer)))),
        }
    }

    /// What fails shows when the answer does not come.
    fn tell(&mut self, message: &Value) {
        if let Some(stdin) = &mut self.stdin {
            let _ = stdin.write_all(format!("{message}\n").as_bytes());
        }
    }

    fn hear(&mut self, limit: Duration) -> Result<Value, String> {
        self.answers
            .recv_timeout(limit)
            .map_err(|error| match error {
                RecvTimeoutError::Timeout => {
                    format!("{}: no answer within {} s", self.host, limit.as_secs())
                }
                RecvTimeoutError::Disconnected => self.why_ended(),
            })
    }

    fn why_ended(&mut self) -> String {
        self.stdin = None;
        let _ = self.child.wait();
        let errors = self.errors.take().map(JoinHandle::join);
        far::why(&self.host, &errors.and_then(Result::ok).unwrap_or_default())
    }

    /// Has its faults put in and undone, by the same clock as ours.
    ///
    /// # Errors
    /// One failed there; the others are undone.
    pub(super) fn run(
        &mut self,
        clock: &dyn Fn() -> Option<f64>,
    ) -> Result<Vec<(usize, Fault)>, DriveError> {
        let failed = |text: String| DriveError::Fault(text);
        loop {
            let second = clock();
            self.tell(&json!({ "second": second }));
            let limit = match second {
                Some(_) => TELL_EVERY,
                None => END_MAX,
            };
            match self.answers.recv_timeout(limit) {
                Ok(answer) => return self.told(&answer).map_err(failed),
                Err(RecvTimeoutError::Timeout) if second.is_some() => {}
                Err(RecvTimeoutError::Timeout) => {
                    return Err(failed(format!("{}: the faults are not undone", self.host)));
                }
                Err(RecvTimeoutError::Disconnected) => return Err(failed(self.why_ended())),
            }
        }
    }

    fn told(&self, answer: &Value) -> Result<Vec<(usize, Fault)>, String> {
        let Some(all) = answer["faults"].as_array() else {
            return Err(format!("{}: {}", self.host, said(answer)));
        };
        let whole = all.len() == self.faults.len();
        let faults = self
            .faults
            .iter()
            .zip(all)
            .map(|((number, plan), value)| Some((*number, read(plan, value)?)));
        let faults: Option<Vec<_>> = faults.collect();
        let wrong = || format!("{}: another release of trellis answers", self.host);
        faults.filter(|_| whole).ok_or_else(wrong)
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        // The end of its input has it undo what is in, and end.
        self.stdin = None;
        let until = Instant::now() + Duration::from_secs(5);
        while Instant::now() < until {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn said(answer: &Value) -> String {
    let error = answer["error"].as_str().map(String::from);
    error.unwrap_or_else(|| answer.to_string())
}

fn write(fault: &Fault) -> Value {
    json!({
        "begin_s": fault.begin_s,
        "begin_unix_s": fault.begin_unix_s,
        "end_s": fault.end_s,
        "proof": fault.proof,
        "undo_s": fault.undo_s,
    })
}

fn read(plan: &FaultPlan, value: &Value) -> Option<Fault> {
    let number = |name: &str| value[name].as_f64();
    Some(Fault {
        kind: plan.kind,
        target: plan.targets.first()?.clone(),
        planned_s: (plan.begin_s, plan.length_s),
        begin_s: number("begin_s")?,
        begin_unix_s: number("begin_unix_s")?,
        end_s: number("end_s")?,
        proof: value["proof"].as_str()?.to_string(),
        undo_s: number("undo_s")?,
        cost: Err(RecoveryError::NothingAfter),
        step_s: STEP_S,
    })
}

/// What the agent has heard of the clock: the second and when that was; `None`: it is over.
type Heard = Option<(f64, Instant)>;

/// Has the faults that the benchmark asks for by `input`, until they are undone or it ends.
///
/// # Errors
/// The output is gone. What fails otherwise is told there.
pub fn agent(input: impl Read + Send + 'static, output: &mut dyn Write) -> std::io::Result<()> {
    let mut lines = BufReader::new(input).lines().map_while(Result::ok);
    let Some(task) = lines.next() else {
        return Ok(());
    };
    let heard = Arc::new((Mutex::new(None::<Heard>), Condvar::new()));
    let prepared = prepare(&task);
    let mut answer = |value: &Value| {
        output.write_all(format!("{value}\n").as_bytes())?;
        output.flush()
    };
    let mut injection = match prepared {
        Ok(injection) => injection,
        Err(error) => return answer(&json!({ "error": error })),
    };
    answer(&json!({ "ready": true }))?;
    let listener = heard.clone();
    std::thread::spawn(move || {
        for line in lines {
            let line: Value = serde_json::from_str(&line).unwrap_or_default();
            let second = line["second"].as_f64();
            *lock(&listener.0) = Some(second.map(|second| (second, Instant::now())));
            listener.1.notify_all();
        }
        *lock(&listener.0) = Some(None);
        listener.1.notify_all();
    });
    // Nothing begins before the benchmark does.
    let first = lock(&heard.0);
    drop(heard.1.wait_while(first, |heard| heard.is_none()));
    let clock = || {
        let (second, when) = lock(&heard.0).flatten()?;
        let since = when.elapsed();
        (since < SILENCE_MAX).then_some(second + since.as_secs_f64())
    };
    match injection.run(&clock) {
        Ok(faults) => answer(&json!({ "faults": faults.iter().map(write).collect::<Vec<_>>() })),
        Err(error) => answer(&json!({ "error": error.to_string() })),
    }
}

fn prepare(task: &str) -> Result<super::Injection, String> {
    let task: Value = serde_json::from_str(task).map_err(|error| error.to_string())?;
    let texts = |name: &str| {
        let list = task[name].as_array().into_iter().flatten();
        list.filter_map(Value::as_str)
    };
    let faults = || {
        Ok::<Faults, DriveError>(Faults {
            plans: texts("plans").map(str::parse).collect::<Result<_, _>>()?,
            targets: texts("targets").map(str::parse).collect::<Result<_, _>>()?,
            journal: None,
        })
    };
    let length_s = task["length_s"]
        .as_f64()
        .filter(|it| (0.0..1e6).contains(it));
    let length_s = length_s.ok_or("another release of trellis asks")?;
    // The benchmark knows how the servers are reached from its machine, which may not be ours.
    let nowhere = Target::parse("postgres://agent@127.0.0.1:1/agent");
    let prepared = (|| {
        super::undo_left_behind()?;
        let length = Duration::from_secs_f64(length_s);
        super::prepare(&faults()?, &nowhere?, length)
    })();
    let (injection, _) = prepared
        .map_err(|error| error.to_string())?
        .ok_or("no faults")?;
    Ok(injection)
}

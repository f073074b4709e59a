//! Child processes that run seeds.

use anyhow::{Context, Result};
use sim::{Outcome, Report, Verdict};
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

/// A run takes less than a second as a rule; one that takes so long hangs.
const RUN_LIMIT: Duration = Duration::from_secs(300);

/// One run to do.
#[derive(Clone)]
pub(crate) struct Job {
    pub(crate) seed: u64,
    pub(crate) workload: &'static str,
    /// Do it twice and compare.
    pub(crate) twice: bool,
    pub(crate) arguments: Vec<String>,
}

/// A run that is over.
pub(crate) struct Done {
    pub(crate) job: Job,
    pub(crate) outcome: Outcome,
}

impl Done {
    fn failed(job: Job, text: String) -> Done {
        let outcome = Outcome {
            verdict: Verdict::Fail(text),
            report: Report::default(),
        };
        Done { job, outcome }
    }

    /// Why it has failed, if it has.
    pub(crate) fn failure(&self) -> Option<&str> {
        match &self.outcome.verdict {
            Verdict::Fail(text) => Some(text),
            Verdict::Pass | Verdict::Inconclusive(_) => None,
        }
    }
}

struct Worker {
    child: Child,
    stdin: ChildStdin,
    /// What runs in it, since when.
    job: Option<(Job, Instant)>,
    generation: u64,
}

enum News {
    Line(usize, u64, String),
    /// The process has ended; this is what it said last on stderr.
    Ended(usize, u64, String),
}

/// Some workers.
pub(crate) struct Pool {
    workers: Vec<Worker>,
    sender: Sender<News>,
    news: Receiver<News>,
    generation: u64,
}

impl Pool {
    pub(crate) fn new(count: usize) -> Result<Pool> {
        let (sender, news) = channel();
        let mut pool = Pool {
            workers: Vec::new(),
            sender,
            news,
            generation: 0,
        };
        for index in 0..count {
            let worker = pool.spawn(index)?;
            pool.workers.push(worker);
        }
        Ok(pool)
    }

    fn spawn(&mut self, index: usize) -> Result<Worker> {
        self.generation += 1;
        let generation = self.generation;
        let program = std::env::current_exe().context("the path of this program")?;
        let mut child = Command::new(program)
            .args(["sim", "worker"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .context("a process for runs")?;
        let stdin = child.stdin.take().expect("it was asked for");
        let stdout = child.stdout.take().expect("it was asked for");
        let mut stderr = child.stderr.take().expect("it was asked for");
        let sender = self.sender.clone();
        std::thread::spawn(move || {
            // Drained beside, so that a talkative process is not held up.
            let last = std::thread::spawn(move || {
                let mut text = Vec::new();
                let _ = stderr.read_to_end(&mut text);
                String::from_utf8_lossy(&text).into_owned()
            });
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if sender.send(News::Line(index, generation, line)).is_err() {
                    return;
                }
            }
            let text = last.join().unwrap_or_default();
            let _ = sender.send(News::Ended(index, generation, text));
        });
        Ok(Worker {
            child,
            stdin,
            job: None,
            generation,
        })
    }

    /// Whether another run can begin.
    pub(crate) fn is_free(&self) -> bool {
        self.workers.iter().any(|worker| worker.job.is_none())
    }

    /// Begins a run.
    pub(crate) fn start(&mut self, job: Job) -> Result<()> {
        let free = self.workers.iter_mut().find(|worker| worker.job.is_none());
        let worker = free.expect("the caller has looked");
        let twice = u8::from(job.twice);
        // A process that is gone is noticed by its end.
        let _ = writeln!(
            worker.stdin,
            "{} {twice} {}",
            job.seed,
            job.arguments.join(" ")
        );
        let _ = worker.stdin.flush();
        worker.job = Some((job, Instant::now()));
        Ok(())
    }

    /// Waits for the end of one; `None` if none runs.
    pub(crate) fn wait(&mut self) -> Result<Option<Done>> {
        while self.workers.iter().any(|worker| worker.job.is_some()) {
            match self.news.recv_timeout(Duration::from_secs(1)) {
                Ok(News::Line(index, generation, line)) => {
                    if self.workers[index].generation != generation {
                        continue;
                    }
                    let job = self.workers[index].job.take();
                    let (job, _) = job.context("a line nobody has asked for")?;
                    let outcome = serde_json::from_str(&line).context("an outcome")?;
                    return Ok(Some(Done { job, outcome }));
                }
                Ok(News::Ended(index, generation, text)) => {
                    if self.workers[index].generation != generation {
                        continue;
                    }
                    let _ = self.workers[index].child.wait();
                    let job = self.workers[index].job.take();
                    self.workers[index] = self.spawn(index)?;
                    if let Some((job, _)) = job {
                        return Ok(Some(Done::failed(job, brief(&text))));
                    }
                }
                Err(RecvTimeoutError::Timeout) => {
                    if let Some(done) = self.end_hanging()? {
                        return Ok(Some(done));
                    }
                }
                Err(RecvTimeoutError::Disconnected) => unreachable!("a sender is held here"),
            }
        }
        Ok(None)
    }

    fn end_hanging(&mut self) -> Result<Option<Done>> {
        for index in 0..self.workers.len() {
            let worker = &mut self.workers[index];
            let Some((job, _)) = worker.job.take_if(|(_, since)| since.elapsed() > RUN_LIMIT)
            else {
                continue;
            };
            let _ = worker.child.kill();
            let _ = worker.child.wait();
            self.workers[index] = self.spawn(index)?;
            return Ok(Some(Done::failed(job, "it does not end".into())));
        }
        Ok(None)
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        for worker in &mut self.workers {
            let _ = worker.child.kill();
            let _ = worker.child.wait();
        }
    }
}

/// The assertion that ended a process.
fn brief(text: &str) -> String {
    let from = text.rfind("panicked at").unwrap_or(0);
    let lines = text[from..]
        .lines()
        .filter(|line| !line.starts_with("note:"));
    let said: Vec<&str> = lines.take(12).collect();
    format!("the process ended: {}", said.join("\n"))
}

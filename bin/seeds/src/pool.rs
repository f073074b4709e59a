//! Child processes that run seeds.

use anyhow::{Context, Result};
use sim::plan::Kind;
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

/// What became of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    Pass,
    Fail,
    Inconclusive,
}

/// A run that is over.
pub(crate) struct Done {
    pub(crate) job: Job,
    pub(crate) verdict: Verdict,
    /// Why not.
    pub(crate) text: String,
    pub(crate) virtual_ns: u64,
    pub(crate) steps: u64,
    pub(crate) starts: u64,
    pub(crate) checkpoints: u64,
    pub(crate) lost: u64,
    pub(crate) torn: u64,
    pub(crate) happened: Vec<(Kind, u64)>,
    /// Per node: syncs when the tables were made, and at the end.
    pub(crate) syncs: Vec<(u64, u64)>,
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
                    return parse(job, &line).map(Some);
                }
                Ok(News::Ended(index, generation, text)) => {
                    if self.workers[index].generation != generation {
                        continue;
                    }
                    let _ = self.workers[index].child.wait();
                    let job = self.workers[index].job.take();
                    self.workers[index] = self.spawn(index)?;
                    if let Some((job, _)) = job {
                        return Ok(Some(failed(job, brief(&text))));
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
            return Ok(Some(failed(job, "it does not end".into())));
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

fn failed(job: Job, text: String) -> Done {
    Done {
        job,
        verdict: Verdict::Fail,
        text,
        virtual_ns: 0,
        steps: 0,
        starts: 0,
        checkpoints: 0,
        lost: 0,
        torn: 0,
        happened: Vec::new(),
        syncs: Vec::new(),
    }
}

fn parse(job: Job, line: &str) -> Result<Done> {
    let mut words = line.splitn(10, ' ');
    let mut word = || words.next().context("a line of a worker is too short");
    let verdict = match word()? {
        "pass" => Verdict::Pass,
        "inconclusive" => Verdict::Inconclusive,
        _ => Verdict::Fail,
    };
    let (virtual_ns, steps, starts) = (word()?.parse()?, word()?.parse()?, word()?.parse()?);
    let (checkpoints, lost, torn) = (word()?.parse()?, word()?.parse()?, word()?.parse()?);
    let happened = list(word()?, '=', |name, count| {
        let kind = Kind::find(name).context("a kind of fault")?;
        Ok((kind, count.parse()?))
    })?;
    let syncs = list(word()?, '-', |from, to| Ok((from.parse()?, to.parse()?)))?;
    let text = words.next().unwrap_or_default();
    Ok(Done {
        job,
        verdict,
        text: text.replace("\\n", "\n").replace("\\\\", "\\"),
        virtual_ns,
        steps,
        starts,
        checkpoints,
        lost,
        torn,
        happened,
        syncs,
    })
}

fn list<T>(text: &str, between: char, each: impl Fn(&str, &str) -> Result<T>) -> Result<Vec<T>> {
    if text == "-" {
        return Ok(Vec::new());
    }
    let pair = |part: &str| {
        let (left, right) = part.split_once(between).context("a pair")?;
        each(left, right)
    };
    text.split(',').map(pair).collect()
}

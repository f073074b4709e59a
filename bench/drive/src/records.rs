//! The records of [`workload::spread`] on Redis: a record is a hash, a read takes all of its
//! fields, an update sets one.

use crate::run::tally::Acknowledged;
use crate::run::{RunReport, RunnerOptions, run as run_workload};
use crate::shape::{CheckReport, Connected, Description, Done, Failure, Workload};
use links::error::{DriveError, While};
use links::link::{LinkError, ready};
use links::redis::{Redis, Reply};
use links::server::Server;
use links::stream::Stream;
use links::url::{Endpoint, Target};
use links::view::Progress;
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use workload::finding::Finding;
use workload::spread::{Access, FIELD_BYTES, FIELDS, Job, Plan, Source};

/// Commands of the load that are on their way at a time.
const LOADED_AT_A_TIME: u32 = 500;

fn key(part: u32, row: u32) -> String {
    format!("record:{part}:{row}")
}

fn field(number: u32) -> String {
    format!("field{number}")
}

/// Makes the records of a plan on an empty server.
///
/// # Errors
/// No connection, or the server refuses a command.
pub fn load(url: &str, plan: &Plan) -> Result<(), DriveError> {
    let target = Target::parse(url)?;
    let redis = Redis::connect(&target.endpoints[0], &target, None);
    let mut redis = redis.during("connecting")?;
    let fields: Vec<String> = (0..FIELDS).map(field).collect();
    let value = "x".repeat(FIELD_BYTES);
    for part in plan.spread.homes.iter().flatten() {
        let rows = plan.scale.items;
        for first in (0..rows).step_by(LOADED_AT_A_TIME as usize) {
            let some = first..rows.min(first + LOADED_AT_A_TIME);
            for row in some.clone() {
                let key = key(*part, row);
                let mut words = vec![&b"HSET"[..], key.as_bytes()];
                let pairs = fields.iter().flat_map(|name| [name, &value]);
                words.extend(pairs.map(|word| word.as_bytes()));
                redis.push(&words);
            }
            ready(redis.flush()).during("loading")?;
            for _ in some {
                ready(redis.reply()).during("loading")?;
            }
        }
    }
    Ok(())
}

/// Runs a plan of records on what [`load`] has made.
///
/// # Errors
/// An option that cannot work, or no connection at the beginning.
pub fn run(
    url: &str,
    plan: &Plan,
    options: &RunnerOptions,
    progress: &mut dyn Progress,
) -> Result<RunReport, DriveError> {
    let target = Target::parse(url)?;
    let redis = Redis::connect(&target.endpoints[0], &target, Some(options.timeout));
    let mut redis = redis.during("connecting")?;
    let version = ready(redis.version()).during("asking the server for its version")?;
    let records = Records {
        server: Server {
            version: format!("Redis {version}"),
            ..Server::default()
        },
        target: target.clone(),
        plan: plan.clone(),
        started: OnceLock::new(),
    };
    run_workload(&records, &target, options, progress)
}

impl Connected for Redis {
    fn stream(&mut self) -> &mut Stream {
        &mut self.stream
    }
}

struct Records {
    server: Server,
    target: Target,
    plan: Plan,
    /// When the first input was drawn: the plan's time begins.
    started: OnceLock<Instant>,
}

impl Workload for Records {
    type Terminal = Source;
    type Input = Access;
    type Session = Redis;
    type Audit = ();
    type Ledger = ();

    fn describe(&self) -> Description {
        Description {
            name: "records",
            parameters: vec![("mix", format!("{:?}", self.plan.mix))],
            remarks: Vec::new(),
            measure: None,
            changes: false,
        }
    }

    fn kinds(&self) -> &'static [&'static str] {
        self.plan.kinds()
    }

    fn terminal(&self, number: u32) -> Source {
        self.plan.source(number)
    }

    fn generate(&self, source: &mut Source) -> Access {
        let started = self.started.get_or_init(Instant::now);
        match self.plan.draw(source, started.elapsed().as_micros() as u64) {
            Job::Record(access) => access,
            other => panic!("a plan of records draws {other:?}"),
        }
    }

    fn kind(&self, access: &Access) -> usize {
        Job::Record(*access).kind()
    }

    fn server(&self) -> &Server {
        &self.server
    }

    fn open(&self, endpoint: &Endpoint, timeout: Duration) -> Result<Redis, LinkError> {
        Redis::connect(endpoint, &self.target, Some(timeout))
    }

    async fn execute(&self, redis: &mut Redis, access: &Access) -> Result<Done, Failure> {
        let (part, row) = access.key();
        let key = key(part, row);
        let (reply, wanted) = match access.field() {
            None => {
                let reply = redis.command(&[b"HGETALL", key.as_bytes()]).await;
                let found = match reply.map_err(lost)? {
                    Reply::List(all) => all.len(),
                    _ => 0,
                };
                // Names and values.
                (found as i64, i64::from(2 * FIELDS))
            }
            Some(number) => {
                let value = "y".repeat(FIELD_BYTES);
                let words: [&[u8]; 4] = [
                    b"HSET",
                    key.as_bytes(),
                    &field(number).into_bytes(),
                    value.as_bytes(),
                ];
                // How many fields are new.
                match redis.command(&words).await.map_err(unknown)? {
                    Reply::Int(new) => (new, 0),
                    _ => (-1, 0),
                }
            }
        };
        match reply == wanted {
            true => Ok(Done::committed(1)),
            false => Err(Failure::Wrong(format!(
                "{key} answers {reply}, not {wanted}"
            ))),
        }
    }

    fn ledger(&self) -> Result<(), DriveError> {
        Ok(())
    }

    fn reconcile(&self, (): &(), (): &(), _: &[Acknowledged]) -> Vec<Finding> {
        Vec::new()
    }

    fn verify(&self, _: &mut dyn Progress) -> Result<CheckReport, DriveError> {
        Ok(CheckReport::default())
    }
}

/// A read without an answer.
fn lost(error: LinkError) -> Failure {
    match error {
        LinkError::Server(error) => Failure::Aborted(error),
        broken => Failure::Lost(broken),
    }
}

/// An update without an answer.
fn unknown(error: LinkError) -> Failure {
    match error {
        LinkError::Server(error) => Failure::Aborted(error),
        broken => Failure::Unknown(broken),
    }
}

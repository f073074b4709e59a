//! The protocol on the test bed.

use crate::message::{Body, Message};
use crate::{Fault, Settings, TwoPhase};
use base::ShardId;
use bed::Subject;

pub(crate) use bed::{TABLE, TRAIL, key, options};

pub(crate) type World = bed::World<TwoPhase>;
pub(crate) type Flight = bed::Flight<Message>;

impl Subject for TwoPhase {
    type Settings = Settings;
    type Fault = Fault;

    fn new(shard: ShardId) -> TwoPhase {
        TwoPhase::new(shard)
    }
    fn set(&mut self, settings: &Settings) {
        self.set_settings(*settings);
    }
    fn plant(&mut self, fault: Option<Fault>) {
        self.fault = fault;
    }
    fn describe(message: &Message) -> String {
        describe(message)
    }
}

/// A message in one line of a trace.
fn describe(message: &Message) -> String {
    let what = match &message.body {
        Body::Read(request) => format!("Read {}", request.read),
        Body::Request(request) => {
            let op = if request.op.is_some() { " op" } else { "" };
            let writes = match request.writes.len() {
                0 => String::new(),
                count => format!(" writes={count}"),
            };
            let alone = if request.alone { " alone" } else { "" };
            let finish = match &request.finish {
                crate::message::Finish::No => "",
                crate::message::Finish::Prepare(_) => " +prepare",
                crate::message::Finish::Commit(trust) if trust.shares.is_empty() => " +commit",
                crate::message::Finish::Commit(_) => " +lead",
            };
            format!("Request {}{writes}{op}{finish}{alone}", request.seq)
        }
        Body::Reply(reply) => {
            let result = match &reply.result {
                Ok(_) => "ok".to_string(),
                Err(error) => format!("{error:?}"),
            };
            let finished = match &reply.finished {
                crate::message::Finished::Open => String::new(),
                crate::message::Finished::Vote(vote) if vote.durable => " prepared".to_string(),
                crate::message::Finished::Vote(_) => " voted".to_string(),
                crate::message::Finished::Committed { .. } => " committed".to_string(),
            };
            format!("Reply {:?} {result}{finished}", reply.to)
        }
        Body::Working(to) => format!("Working {to:?}"),
        Body::Expose => "Expose".to_string(),
        Body::CallOff => "CallOff".to_string(),
        Body::Decide(decide) if decide.commit_ts.is_some() => "Decide commit".to_string(),
        Body::Decide(decide) if decide.wants_ack => "Decide abort, ended?".to_string(),
        Body::Decide(_) => "Decide abort".to_string(),
        Body::Ack => "Ack".to_string(),
        Body::Inquire => "Inquire".to_string(),
        Body::Running => "Running".to_string(),
        Body::Poll => "Poll".to_string(),
        Body::Polled(Some(_)) => "Polled, promised".to_string(),
        Body::Polled(None) => "Polled, nothing".to_string(),
        Body::Gather(gather) => match gather.writes.len() {
            0 => "Gather".to_string(),
            count => format!("Gather writes={count}"),
        },
        Body::Gathered(gathered) => match &gathered.vote {
            Ok(_) => "Gathered".to_string(),
            Err(reason) => format!("Gathered {reason:?}"),
        },
    };
    format!("t{} {what}", message.txn.counter / 2)
}

//! Names for what a shard can be told, by which its work is counted and weighed.

use crate::input::Input;
use crate::message::{LocalMessage, Message, WireMessage};
use leap::message::Body as LeapBody;
use two_phase::message::{Body, Finish};
use wire::ClientMessage;

impl Input {
    /// What it asks for, as `group.name`.
    pub fn kind(&self) -> &'static str {
        match self {
            Input::Connect { .. } | Input::Disconnected { .. } => "client.connection",
            Input::Client { message, .. } => client_kind(message),
            Input::Drained { .. } => "host.drained",
            Input::Prepared(_) => "host.prepared",
            Input::Cancel { .. } => "client.cancel",
            Input::Message { message, .. } => message.kind(),
            Input::Durable(_) => "host.durable",
            Input::Tick => "host.tick",
            Input::PeerUp { .. } | Input::PeerHeard { .. } | Input::PeerDown { .. } => "host.peer",
            Input::DiskFull(_)
            | Input::Memory(_)
            | Input::Checkpoint { .. }
            | Input::CheckpointPiece { .. }
            | Input::Drain => "host.other",
        }
    }
}

fn client_kind(message: &ClientMessage) -> &'static str {
    match message {
        ClientMessage::Query(_) => "client.query",
        ClientMessage::Parse { .. } => "client.parse",
        ClientMessage::Bind { .. } => "client.bind",
        ClientMessage::Execute { .. } => "client.execute",
        ClientMessage::Sync => "client.sync",
        ClientMessage::CopyData(_) | ClientMessage::CopyDone | ClientMessage::CopyFail(_) => {
            "client.copy"
        }
        ClientMessage::Startup { .. }
        | ClientMessage::DescribeStatement(_)
        | ClientMessage::DescribePortal(_)
        | ClientMessage::CloseStatement(_)
        | ClientMessage::ClosePortal(_)
        | ClientMessage::Flush
        | ClientMessage::Terminate
        | ClientMessage::BadQuery(_)
        | ClientMessage::Malformed { .. } => "client.other",
    }
}

impl Message {
    fn kind(&self) -> &'static str {
        match self {
            Message::Wire(WireMessage::TwoPhase(message)) => two_phase_kind(&message.body),
            Message::Wire(WireMessage::Leap(message)) => leap_kind(&message.body),
            Message::Wire(WireMessage::OldestRead { .. }) => "wire.oldest_read",
            Message::Wire(_) => "wire.other",
            Message::Local(LocalMessage::ToTxn(..)) => "local.to_txn",
            Message::Local(LocalMessage::FromTxn(..)) => "local.from_txn",
            Message::Local(LocalMessage::Cancel { .. }) => "local.cancel",
        }
    }
}

fn two_phase_kind(body: &Body) -> &'static str {
    match body {
        Body::Read(_) => "two_phase.read",
        Body::Request(request) => match request.finish {
            Finish::No => "two_phase.request",
            Finish::Prepare(_) => "two_phase.prepare",
            Finish::Commit(_) => "two_phase.commit",
        },
        Body::Reply(_) => "two_phase.reply",
        Body::Decide(_) => "two_phase.decide",
        Body::Ack => "two_phase.ack",
        Body::Gather(_) | Body::Gathered(_) => "two_phase.gather",
        Body::Working(_) | Body::Expose | Body::Inquire | Body::Running => "two_phase.other",
    }
}

fn leap_kind(body: &LeapBody) -> &'static str {
    match body {
        LeapBody::OwnerRequest(_) => "leap.owner_request",
        LeapBody::TransferRequest(_) => "leap.transfer_request",
        LeapBody::Response(_) => "leap.response",
        LeapBody::Inform(_) | LeapBody::Settled(_) => "leap.inform",
        LeapBody::ReleaseAck(_) | LeapBody::Unacked(_) => "leap.release_ack",
        LeapBody::Read(_) | LeapBody::Reply(_) => "leap.read",
        LeapBody::Fetch(_) | LeapBody::Fetched(_) => "leap.fetch",
        LeapBody::Resolve(_)
        | LeapBody::Applied(_)
        | LeapBody::Undecided(_)
        | LeapBody::StillOpen(..) => "leap.resolve",
        LeapBody::Confirm(_) | LeapBody::Confirmed { .. } => "leap.confirm",
        LeapBody::Share(_) | LeapBody::Recall(_) | LeapBody::Recalled(_) | LeapBody::Forget(_) => {
            "leap.share"
        }
        LeapBody::Entrust(_) | LeapBody::Performed(_) => "leap.entrust",
        LeapBody::Refused(_)
        | LeapBody::Working(..)
        | LeapBody::Waiting(_)
        | LeapBody::Cancel(..)
        | LeapBody::Stranded(_)
        | LeapBody::Reading(_)
        | LeapBody::Release(_)
        | LeapBody::Inquire(_)
        | LeapBody::Running(_)
        | LeapBody::Ask
        | LeapBody::Claims(_)
        | LeapBody::Verdicts(_) => "leap.other",
    }
}

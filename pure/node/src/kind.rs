//! Names of inputs, by which a shard's work is counted and weighed.

use crate::input::Input;
use crate::message::{LocalMessage, Message, WireMessage};
use wire::ClientMessage;

impl Input {
    /// Kind of the input, as `group.name`.
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

    /// Kinds of the messages behind the first one, if the input is a parcel.
    pub fn further_kinds(&self) -> impl Iterator<Item = &'static str> {
        let mut words = &[][..];
        if let Input::Message { message, .. } = self
            && let Message::Wire(WireMessage::Parcel(parcel)) = message
        {
            words = parcel.words();
        }
        words.iter().skip(1).map(|word| word.kind())
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
        | ClientMessage::FunctionCall { .. }
        | ClientMessage::Flush
        | ClientMessage::Terminate
        | ClientMessage::BadQuery(_)
        | ClientMessage::Malformed { .. } => "client.other",
    }
}

impl WireMessage {
    /// Number of messages in it, if it is a parcel; else 1.
    pub fn count(&self) -> usize {
        if let WireMessage::Parcel(parcel) = self {
            return parcel.words().len();
        }
        1
    }
}

impl Message {
    /// As [`WireMessage::count`].
    pub fn count(&self) -> usize {
        match self {
            Message::Wire(message) => message.count(),
            Message::Local(_) => 1,
        }
    }

    /// As [`Input::kind`]; of the first message of a parcel.
    fn kind(&self) -> &'static str {
        match self {
            Message::Wire(WireMessage::Protocol(message)) => message.kind(),
            Message::Wire(WireMessage::Parcel(parcel)) => parcel
                .words()
                .first()
                .map_or("wire.other", |word| word.kind()),
            Message::Wire(WireMessage::OldestRead { .. }) => "wire.oldest_read",
            Message::Wire(_) => "wire.other",
            Message::Local(LocalMessage::ToTxn(..)) => "local.to_txn",
            Message::Local(LocalMessage::FromTxn(..)) => "local.from_txn",
            Message::Local(LocalMessage::Cancel { .. }) => "local.cancel",
        }
    }
}

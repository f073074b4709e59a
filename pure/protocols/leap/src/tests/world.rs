//! The protocol on the test bed.

use crate::message::Body;
use crate::{Leap, Message, Settings};
use base::{Planted, Prng, ShardId};
use bed::Subject;
use local::Limits;

pub(crate) use bed::{TABLE, options, placed as key};

pub(crate) type World = bed::World<Leap>;
pub(crate) type Flight = bed::Flight<Message>;

impl Subject for Leap {
    type Settings = Settings;
    type Fault = Planted;

    const MOVES_ROWS: bool = true;
    const BOUNDS_CLOCKS: bool = false;

    fn new(shard: ShardId) -> Leap {
        Leap::new(shard)
    }
    fn set(&mut self, settings: &Settings) {
        self.set_settings(*settings);
    }
    fn draw(seed: u64, prng: &mut Prng, rule: Option<Planted>) -> (Settings, bool) {
        let share_after = prng.below(3) as u32;
        let shipping = match rule {
            Some(Planted::LeapFormulaLost | Planted::LeapFormulaTwice) => true,
            Some(_) => false,
            None => seed.is_multiple_of(2),
        };
        let settings = Settings {
            share_after,
            contended_from: if shipping { 0 } else { 3 },
            limits: Limits {
                slice_units: match seed % 3 {
                    0 if rule.is_none_or(is_of_slices) => 1 + seed % 4,
                    _ => Limits::default().slice_units,
                },
                ..Limits::default()
            },
            ..Settings::default()
        };
        (settings, shipping)
    }
    fn set_named(settings: &mut Settings, name: &str, value: u64) {
        match name {
            "share_after" => settings.share_after = value as u32,
            "contended_from" => settings.contended_from = value as u32,
            other => panic!("there is no setting {other}"),
        }
    }
    fn plant(&mut self, rule: Option<Planted>) {
        self.printed = rule;
    }
    /// Only a transaction that may have gone to its row.
    fn may_be_unknown(operations: usize) -> bool {
        operations == 1
    }
    fn describe(message: &Message) -> String {
        kind_of(message).to_owned()
    }
}

/// Whether a rule only counts where work is cut into slices.
fn is_of_slices(rule: Planted) -> bool {
    matches!(
        rule,
        Planted::LeapClaimsOfOnePart | Planted::LeapServesHalfResolved
    )
}

/// The kind of a message, for tests that pick one.
pub(crate) fn kind(flight: &Flight) -> &'static str {
    kind_of(&flight.message)
}

fn kind_of(message: &Message) -> &'static str {
    match &message.body {
        Body::OwnerRequest(_) => "OwnerRequest",
        Body::TransferRequest(_) => "TransferRequest",
        Body::Response(_) => "Response",
        Body::Refused(_) => "Refused",
        Body::Working(..) => "Working",
        Body::Waiting(_) => "Waiting",
        Body::Inform(_) => "Inform",
        Body::Stranded(_) => "Stranded",
        Body::Settled(_) => "Settled",
        Body::ReleaseAck(_) => "ReleaseAck",
        Body::Unacked(_) => "Unacked",
        Body::Cancel(..) => "Cancel",
        Body::Read(_) => "Read",
        Body::Reply(_) => "Reply",
        Body::Reading(_) => "Reading",
        Body::Fetch(_) => "Fetch",
        Body::Fetched(_) => "Fetched",
        Body::Forget(_) => "Forget",
        Body::Share(_) => "Share",
        Body::Recall(_) => "Recall",
        Body::Recalled(_) => "Recalled",
        Body::Entrust(_) => "Entrust",
        Body::Performed(_) => "Performed",
        Body::Resolve(_) => "Resolve",
        Body::Applied(_) => "Applied",
        Body::Undecided(_) => "Undecided",
        Body::StillOpen(..) => "StillOpen",
        Body::Confirm(_) => "Confirm",
        Body::Confirmed { .. } => "Confirmed",
        Body::Release(_) => "Release",
        Body::Inquire(_) => "Inquire",
        Body::Running(_) => "Running",
        Body::Ask => "Ask",
        Body::Claims(_) => "Claims",
        Body::Verdicts(_) => "Verdicts",
    }
}

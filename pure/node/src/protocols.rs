//! The transaction protocols that a database may choose, and their messages as they cross nodes.
//!
//! Nothing else in this crate names a protocol: another one is one more line in the list below, and
//! its [`ProtocolKind`].

use catalog::ProtocolKind;
use serde::{Deserialize, Serialize};
use txn::contract::ProtocolMessage;
use txn::{Op, Protocol};

/// Hands the list of protocols to a macro: the crate of each, and its type, which has the name of
/// its [`ProtocolKind`] and is made for a shard.
macro_rules! protocols {
    ($make:ident) => {
        $make! {
            two_phase::TwoPhase;
            leap::Leap;
            formula::Formula;
        }
    };
}
pub(crate) use protocols;

macro_rules! words {
    ($($lane:ident :: $kind:ident;)*) => {
        /// A message of a protocol, as it crosses nodes.
        #[derive(Clone, Debug, Serialize, Deserialize)]
        pub enum ProtocolWord {
            $(
                #[doc = concat!("Of `", stringify!($lane), "`.")]
                $kind($lane::Message),
            )*
        }

        impl ProtocolWord {
            /// Protocol of the message.
            pub fn protocol(&self) -> ProtocolKind {
                match self { $(ProtocolWord::$kind(_) => ProtocolKind::$kind,)* }
            }
        }

        impl ProtocolMessage for ProtocolWord {
            fn catalog(&self) -> u64 {
                match self { $(ProtocolWord::$kind(message) => message.catalog(),)* }
            }
            fn op_mut(&mut self) -> Option<&mut Op> {
                match self { $(ProtocolWord::$kind(message) => message.op_mut(),)* }
            }
        }

        impl ProtocolWord {
            /// Kind of the message, as `protocol.kind`.
            pub fn kind(&self) -> &'static str {
                match self {
                    $(ProtocolWord::$kind(message) => <$lane::$kind as Protocol>::kind(message),)*
                }
            }
        }

    };
}

protocols!(words);

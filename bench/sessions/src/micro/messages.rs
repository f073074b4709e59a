//! Messages from one user to another.
//!
//! A session is one user, drawn from its pool when it first has to do with messages, and kept.

use super::Micro;
use crate::interaction::{Changes, Plan, Session};
use crate::state::Datum;
use entity::Entity;

/// What a session calls its user, and the messages that it saw last in its inbox.
const USER: &str = "user";
const INBOX: &str = "inbox";

/// A message, in the group of its receiver.
#[derive(Clone, Debug, PartialEq, Entity)]
#[entity(index(sender_id))]
pub struct MessageItem {
    /// Who gets it.
    #[id]
    #[group]
    pub receiver_id: i64,
    /// Given by the store.
    #[id]
    #[generated]
    pub message_no: i64,
    /// Who sent it.
    pub sender_id: i64,
    /// How often the receiver marked it.
    pub changes: i64,
    /// Letters.
    pub content: String,
}

fn user_of(micro: &Micro, session: &mut Session) -> i64 {
    if let Some(user) = session.state.int(USER) {
        return user;
    }
    let user = micro.own_user(session);
    session.state.set(USER, Datum::Int(user));
    user
}

/// Creates a message: its number is generated, and the index of its sender is out of its group.
#[derive(Clone, Copy, Debug)]
pub struct SendMessage<'a> {
    /// Sizes.
    pub micro: &'a Micro,
}

impl Plan for SendMessage<'_> {
    type Param = MessageItem;
    type Answer = ();

    fn prepare(&self, session: &mut Session) -> Option<MessageItem> {
        let sender_id = user_of(self.micro, session);
        Some(MessageItem {
            receiver_id: self.micro.users.draw(&mut session.draws) as i64,
            message_no: 0,
            sender_id,
            changes: 0,
            content: self.micro.content(&mut session.draws),
        })
    }

    fn complete(&self, _: &MessageItem, (): (), _: &mut Session) -> &'static str {
        ""
    }

    fn note(&self, param: &MessageItem, answer: Option<&()>, changes: &mut Changes) {
        changes.note(
            "message_item",
            param.receiver_id as u64,
            1,
            answer.is_some(),
        );
    }
}

/// Lists the messages that the user has received, or sent.
#[derive(Clone, Copy, Debug)]
pub struct ListMessages<'a> {
    /// Sizes.
    pub micro: &'a Micro,
    /// Those that the user has sent: by the index.
    pub is_sent: bool,
}

impl Plan for ListMessages<'_> {
    /// The user.
    type Param = i64;
    /// Numbers of the messages.
    type Answer = Vec<i64>;

    fn prepare(&self, session: &mut Session) -> Option<i64> {
        Some(user_of(self.micro, session))
    }

    fn complete(&self, _: &i64, answer: Vec<i64>, session: &mut Session) -> &'static str {
        let is_empty = answer.is_empty();
        if !self.is_sent {
            let numbers = answer.into_iter().map(Datum::Int).collect();
            session.state.set(INBOX, Datum::List(numbers));
        }
        match is_empty {
            true => "EMPTY",
            false => "",
        }
    }
}

/// One message of the inbox that the user has seen. `None`: there is none, or it was not looked at.
fn seen_message(micro: &Micro, session: &mut Session) -> Option<(i64, i64)> {
    let user = user_of(micro, session);
    let count = session.state.list(INBOX).len() as u64;
    if count == 0 {
        return None;
    }
    let place = session.draws.below(count) as usize;
    let number = session.state.list(INBOX)[place].int()?;
    Some((user, number))
}

fn forget_message(number: i64, session: &mut Session) {
    let left = session.state.list(INBOX).iter();
    let left = left.filter(|message| message.int() != Some(number));
    let left = left.cloned().collect();
    session.state.set(INBOX, Datum::List(left));
}

/// Marks a message that the user has seen.
#[derive(Clone, Copy, Debug)]
pub struct UpdateMessage<'a> {
    /// Sizes.
    pub micro: &'a Micro,
}

impl Plan for UpdateMessage<'_> {
    /// Receiver and number.
    type Param = (i64, i64);
    /// Whether it was there.
    type Answer = bool;

    fn prepare(&self, session: &mut Session) -> Option<(i64, i64)> {
        seen_message(self.micro, session)
    }

    fn complete(&self, param: &(i64, i64), answer: bool, session: &mut Session) -> &'static str {
        if answer {
            return "";
        }
        forget_message(param.1, session);
        "GONE"
    }
}

/// Deletes a message that the user has seen.
#[derive(Clone, Copy, Debug)]
pub struct DeleteMessage<'a> {
    /// Sizes.
    pub micro: &'a Micro,
}

impl Plan for DeleteMessage<'_> {
    /// Receiver and number.
    type Param = (i64, i64);
    /// Whether it was there.
    type Answer = bool;

    fn prepare(&self, session: &mut Session) -> Option<(i64, i64)> {
        seen_message(self.micro, session)
    }

    fn complete(&self, param: &(i64, i64), answer: bool, session: &mut Session) -> &'static str {
        forget_message(param.1, session);
        match answer {
            true => "",
            false => "GONE",
        }
    }

    fn note(&self, param: &(i64, i64), answer: Option<&bool>, changes: &mut Changes) {
        if answer != Some(&false) {
            changes.note("message_item", param.0 as u64, -1, answer.is_some());
        }
    }
}

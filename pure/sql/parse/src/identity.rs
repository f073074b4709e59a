//! ALTER TABLE .. ALTER COLUMN of identity columns, of which the library knows ADD GENERATED alone.
//!
//! The tree has DROP DEFAULT in the place of each such action.

use super::constraints::is_word;
use super::relations::{SequenceWords, sequence_option};
use super::source::Source;
use super::words::Words;
use base::SqlError;
use sqlparser::tokenizer::{Location, Token, TokenWithSpan};

/// What an action does with an identity column.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs)]
pub enum IdentityAction {
    Drop {
        if_exists: bool,
    },
    /// SET and RESTART, together.
    Change {
        /// SET GENERATED: ALWAYS, not BY DEFAULT.
        always: Option<bool>,
        sequence: SequenceWords,
    },
}

/// The tokens of an ALTER TABLE with DROP DEFAULT for actions on identity columns; and these, with
/// the places of the columns' names.
pub(super) type Simplified = (Vec<TokenWithSpan>, Vec<(Location, IdentityAction)>);

/// Words behind SET that begin an option of the sequence of an identity.
const OPTIONS: [&str; 8] = [
    "INCREMENT",
    "START",
    "RESTART",
    "CACHE",
    "MINVALUE",
    "MAXVALUE",
    "NO",
    "CYCLE",
];

/// # Errors
/// 42601 and 0A000 as for ALTER SEQUENCE.
pub(super) fn without_identity(
    source: &Source,
    tokens: &[TokenWithSpan],
) -> Result<Simplified, SqlError> {
    let mut kept = Vec::with_capacity(tokens.len());
    let mut actions = Vec::new();
    let (mut at, mut depth) = (0, 0usize);
    while at < tokens.len() {
        let found = match depth == 0 && at > 0 && is_word(tokens, at, "ALTER") {
            true => action(&Words { tokens, at, source })?,
            false => None,
        };
        let Some((column, action, end)) = found else {
            match &tokens[at].token {
                Token::LParen => depth += 1,
                Token::RParen => depth = depth.saturating_sub(1),
                _ => {}
            }
            kept.push(tokens[at].clone());
            at += 1;
            continue;
        };
        kept.extend_from_slice(&tokens[at..=column]);
        let span = tokens[column].span;
        let words = ["DROP", "DEFAULT"].map(super::word);
        kept.extend(words.map(|word| TokenWithSpan::new(word, span)));
        actions.push((span.start, action));
        at = end;
    }
    Ok((kept, actions))
}

/// The action that begins with ALTER, the place of its column and its end; `None`: it is another
/// one.
fn action(words: &Words<'_>) -> Result<Option<(usize, IdentityAction, usize)>, SqlError> {
    let mut words = Words { ..*words };
    words.expect(&["ALTER"])?;
    words.take(&["COLUMN"]);
    let column = words.at;
    if words.identifier().is_err() {
        return Ok(None);
    }
    if words.take(&["DROP", "IDENTITY"]) {
        let if_exists = words.take(&["IF", "EXISTS"]);
        return Ok(Some((column, IdentityAction::Drop { if_exists }, words.at)));
    }
    let (mut always, mut sequence) = (None, SequenceWords::default());
    let begins = words.at;
    loop {
        let sets_option = words.is(&["SET"]) && OPTIONS.iter().any(|word| words.is_at(1, word));
        if words.is(&["RESTART"]) {
            sequence_option(&mut words, &mut sequence)?;
        } else if words.take(&["SET", "GENERATED"]) {
            let is_always = words.take(&["ALWAYS"]);
            if !is_always {
                words.expect(&["BY", "DEFAULT"])?;
            }
            super::relations::once(&mut always, is_always)?;
        } else if sets_option {
            words.expect(&["SET"])?;
            sequence_option(&mut words, &mut sequence)?;
        } else {
            break;
        }
    }
    let change = IdentityAction::Change { always, sequence };
    Ok((words.at > begins).then_some((column, change, words.at)))
}

//! DECLARE, FETCH, MOVE and CLOSE.

use super::words::Words;
use super::{Kind, nested};
use crate::session::{Declaration, Direction, SessionCommand};
use base::{SqlError, SqlState};
use sqlparser::tokenizer::Token;

/// Parses a statement of cursors; the caller has seen its first word.
pub(super) fn parse(words: &mut Words<'_>) -> Result<SessionCommand, SqlError> {
    if words.take(&["DECLARE"]) {
        return declare(words);
    }
    if words.take(&["CLOSE"]) {
        let named = !words.is(&["ALL"]);
        let name = named.then(|| words.identifier()).transpose()?;
        words.at += usize::from(!named);
        words.expect_end()?;
        return Ok(SessionCommand::Close(name));
    }
    let moves = words.is(&["MOVE"]);
    words.at += 1;
    let direction = direction(words)?;
    let name = words.identifier()?;
    words.expect_end()?;
    Ok(SessionCommand::Fetch {
        name,
        direction,
        moves,
    })
}

fn declare(words: &mut Words<'_>) -> Result<SessionCommand, SqlError> {
    let name = words.identifier()?;
    let (mut scroll, mut no_scroll, mut insensitive, mut asensitive) = (false, false, false, false);
    loop {
        if words.is(&["BINARY"]) {
            return Err(words.unsupported("a BINARY cursor"));
        } else if words.take(&["NO", "SCROLL"]) {
            no_scroll = true;
        } else if words.take(&["SCROLL"]) {
            scroll = true;
        } else if words.take(&["INSENSITIVE"]) {
            insensitive = true;
        } else if words.take(&["ASENSITIVE"]) {
            asensitive = true;
        } else {
            break;
        }
    }
    words.expect(&["CURSOR"])?;
    let holds = words.take(&["WITH", "HOLD"]);
    if !holds {
        words.take(&["WITHOUT", "HOLD"]);
    }
    words.expect(&["FOR"])?;
    let begins = ["SELECT", "VALUES", "WITH", "TABLE"];
    if !begins.iter().any(|word| words.is(&[word])) && words.peek() != &Token::LParen {
        return Err(words.unexpected());
    }
    let both = |text: &str| SqlError::new(SqlState::INVALID_CURSOR_DEFINITION, text);
    if scroll && no_scroll {
        return Err(both("cannot specify both SCROLL and NO SCROLL"));
    }
    if insensitive && asensitive {
        return Err(both("cannot specify both INSENSITIVE and ASENSITIVE"));
    }
    let query = &words.tokens[words.at.min(words.tokens.len())..];
    // The parameters would be those of DECLARE itself.
    if let Some(at) = query
        .iter()
        .position(|token| matches!(token.token, Token::Placeholder(_)))
    {
        words.at += at;
        return Err(words.unsupported("a parameter in DECLARE"));
    }
    let statement = nested(words.source, query)?;
    if matches!(statement.kind(), Kind::With(_)) {
        let message = "DECLARE CURSOR must not contain data-modifying statements in WITH";
        return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
    }
    Ok(SessionCommand::Declare(Declaration {
        name,
        backward: !no_scroll,
        holds,
        statement,
    }))
}

/// What stands between FETCH and the cursor's name.
fn direction(words: &mut Words<'_>) -> Result<Direction, SqlError> {
    // A cursor may be named like a direction.
    if words.tokens.len() == words.at + 1 {
        return Ok(Direction::Forward(1));
    }
    let direction = if words.take(&["NEXT"]) {
        Direction::Forward(1)
    } else if words.take(&["PRIOR"]) {
        Direction::Forward(-1)
    } else if words.take(&["FIRST"]) {
        Direction::Absolute(1)
    } else if words.take(&["LAST"]) {
        Direction::Absolute(-1)
    } else if words.take(&["ABSOLUTE"]) {
        Direction::Absolute(count(words)?.ok_or_else(|| words.unexpected())?)
    } else if words.take(&["RELATIVE"]) {
        Direction::Relative(count(words)?.ok_or_else(|| words.unexpected())?)
    } else if words.take(&["FORWARD"]) {
        Direction::Forward(count_or_all(words)?)
    } else if words.take(&["BACKWARD"]) {
        Direction::Forward(-count_or_all(words)?)
    } else {
        Direction::Forward(count_or_all(words)?)
    };
    let _ = words.take_any(&["FROM", "IN"]);
    Ok(direction)
}

fn count_or_all(words: &mut Words<'_>) -> Result<i64, SqlError> {
    if words.take(&["ALL"]) {
        return Ok(i64::MAX);
    }
    Ok(count(words)?.unwrap_or(1))
}

/// A number with or without a sign, if there is one. As in PostgreSQL it has 32 bits.
fn count(words: &mut Words<'_>) -> Result<Option<i64>, SqlError> {
    if !matches!(words.peek(), Token::Number(..) | Token::Minus | Token::Plus) {
        return Ok(None);
    }
    let signed = usize::from(!matches!(words.peek(), Token::Number(..)));
    let wrong = words.unexpected_at(signed);
    let number = words.value()?.parse::<i32>().map_err(|_| wrong)?;
    Ok(Some(number.into()))
}

//! Text to normal form, and the check of a text that is kept as it is.

use crate::build::{ObjectBuilder, write_string};
use crate::lexer::{Lexer, Token, Wanted};
use crate::{DEPTH_MAX, JsonError, number};
use alloc::string::String;

/// Whether the text is JSON.
///
/// # Errors
/// 22P02, and 54001 if it nests deeper than [`DEPTH_MAX`].
pub fn check(text: &str) -> Result<(), JsonError> {
    let mut lexer = Lexer::new(text, false);
    lexer.advance()?;
    check_value(&mut lexer, 0)?;
    end(&lexer)
}

/// The normal form of a JSON text.
///
/// # Errors
/// As [`check`]; 22P05 for `\u0000`, 22003 for a number of too many digits.
pub fn normalise(text: &str) -> Result<String, JsonError> {
    let mut lexer = Lexer::new(text, true);
    lexer.advance()?;
    let mut out = String::with_capacity(text.len());
    write_value(&mut lexer, &mut out, 0)?;
    end(&lexer)?;
    Ok(out)
}

fn end(lexer: &Lexer<'_>) -> Result<(), JsonError> {
    match lexer.token {
        Token::End => Ok(()),
        _ => Err(lexer.unexpected(Wanted::End)),
    }
}

/// One level further down.
fn deeper(lexer: &Lexer<'_>, depth: usize) -> Result<usize, JsonError> {
    match depth < DEPTH_MAX {
        true => Ok(depth + 1),
        false => Err(lexer.too_deep()),
    }
}

fn check_value(lexer: &mut Lexer<'_>, depth: usize) -> Result<(), JsonError> {
    match lexer.token {
        Token::ObjectStart => {
            let depth = deeper(lexer, depth)?;
            lexer.advance()?;
            if lexer.token == Token::ObjectEnd {
                return lexer.advance();
            }
            let mut wanted = Wanted::StringOrEnd;
            loop {
                key(lexer, wanted)?;
                check_value(lexer, depth)?;
                if !goes_on(lexer, Token::ObjectEnd)? {
                    return Ok(());
                }
                wanted = Wanted::String;
            }
        }
        Token::ArrayStart => {
            let depth = deeper(lexer, depth)?;
            lexer.advance()?;
            if lexer.token == Token::ArrayEnd {
                return lexer.advance();
            }
            loop {
                check_value(lexer, depth)?;
                if !goes_on(lexer, Token::ArrayEnd)? {
                    return Ok(());
                }
            }
        }
        Token::String | Token::Number | Token::True | Token::False | Token::Null => lexer.advance(),
        _ => Err(lexer.unexpected(Wanted::Value)),
    }
}

/// The key of a member and its colon.
fn key(lexer: &mut Lexer<'_>, wanted: Wanted) -> Result<String, JsonError> {
    if lexer.token != Token::String {
        return Err(lexer.unexpected(wanted));
    }
    let key = core::mem::take(&mut lexer.string);
    lexer.advance()?;
    if lexer.token != Token::Colon {
        return Err(lexer.unexpected(Wanted::Colon));
    }
    lexer.advance()?;
    Ok(key)
}

/// Behind an element: whether another one follows.
fn goes_on(lexer: &mut Lexer<'_>, last: Token) -> Result<bool, JsonError> {
    let more = lexer.token == Token::Comma;
    if !more && lexer.token != last {
        return Err(lexer.unexpected(match last {
            Token::ObjectEnd => Wanted::CommaOrObjectEnd,
            _ => Wanted::CommaOrArrayEnd,
        }));
    }
    lexer.advance()?;
    Ok(more)
}

fn write_value(lexer: &mut Lexer<'_>, out: &mut String, depth: usize) -> Result<(), JsonError> {
    match lexer.token {
        Token::ObjectStart => return write_object(lexer, out, deeper(lexer, depth)?),
        Token::ArrayStart => {
            let depth = deeper(lexer, depth)?;
            lexer.advance()?;
            out.push('[');
            if lexer.token == Token::ArrayEnd {
                lexer.advance()?;
            } else {
                loop {
                    write_value(lexer, out, depth)?;
                    if !goes_on(lexer, Token::ArrayEnd)? {
                        break;
                    }
                    out.push_str(", ");
                }
            }
            out.push(']');
            return Ok(());
        }
        Token::String => write_string(&lexer.string, out),
        Token::Number => number::normalise(lexer.word(), out)?,
        Token::True | Token::False | Token::Null => out.push_str(lexer.word()),
        _ => return Err(lexer.unexpected(Wanted::Value)),
    }
    lexer.advance()
}

fn write_object(lexer: &mut Lexer<'_>, out: &mut String, depth: usize) -> Result<(), JsonError> {
    lexer.advance()?;
    let mut members = ObjectBuilder::default();
    if lexer.token == Token::ObjectEnd {
        lexer.advance()?;
    } else {
        let mut wanted = Wanted::StringOrEnd;
        loop {
            let key = key(lexer, wanted)?;
            // Values gather behind one another, and are put in order when all are there.
            let start = out.len();
            write_value(lexer, out, depth)?;
            members.push_owned(key, &out[start..]);
            out.truncate(start);
            if !goes_on(lexer, Token::ObjectEnd)? {
                break;
            }
            wanted = Wanted::String;
        }
    }
    members.write(out);
    Ok(())
}

//! Row security: CREATE, ALTER and DROP POLICY, and ALTER TABLE .. ROW LEVEL SECURITY.

use super::Kind;
use super::comment::name;
use super::rights::role;
use super::source::Walk;
use super::words::Words;
use base::{SqlError, SqlState};
use catalog::PolicyCommand;
use rights::RoleName;
use sqlparser::tokenizer::Token;

/// A statement about the row security of a table.
#[derive(Debug)]
pub struct PolicyStatement {
    /// Its command tag.
    pub tag: &'static str,
    /// The parts of the table's name.
    pub table: Vec<String>,
    /// A table that is not there is passed over.
    pub if_exists: bool,
    /// What it changes, in order.
    pub changes: Vec<PolicyWords>,
}

/// One change.
#[derive(Debug)]
#[allow(missing_docs)]
pub enum PolicyWords {
    Enable(bool),
    Force(bool),
    /// ENABLE or DISABLE TRIGGER ALL.
    Triggers(bool),
    Create {
        name: String,
        permissive: bool,
        command: PolicyCommand,
        parts: PolicyParts,
    },
    Alter {
        name: String,
        parts: PolicyParts,
    },
    Rename {
        name: String,
        to: String,
    },
    Drop {
        name: String,
        if_exists: bool,
    },
}

/// What CREATE POLICY and ALTER POLICY say of roles and rows.
#[derive(Debug, Default)]
pub struct PolicyParts {
    /// TO.
    pub roles: Option<Vec<RoleName>>,
    /// The text of USING.
    pub using: Option<String>,
    /// The text of WITH CHECK.
    pub check: Option<String>,
}

/// Parses the statement if it is one about row security.
pub(super) fn parse(words: &mut Words<'_>) -> Result<Option<Kind>, SqlError> {
    let (tag, table, change) = if words.take(&["CREATE", "POLICY"]) {
        let (name, table) = policy_of(words)?;
        ("CREATE POLICY", table, create(words, name)?)
    } else if words.take(&["ALTER", "POLICY"]) {
        let if_exists = words.is(&["IF", "EXISTS"]);
        if if_exists {
            return Err(words.unexpected());
        }
        let (name, table) = policy_of(words)?;
        let change = match words.take(&["RENAME", "TO"]) {
            true => PolicyWords::Rename {
                name,
                to: words.identifier()?,
            },
            false => PolicyWords::Alter {
                name,
                parts: parts(words)?,
            },
        };
        ("ALTER POLICY", table, change)
    } else if words.take(&["DROP", "POLICY"]) {
        let if_exists = words.take(&["IF", "EXISTS"]);
        let (name, table) = policy_of(words)?;
        words.take_any(&["CASCADE", "RESTRICT"]);
        let change = PolicyWords::Drop { name, if_exists };
        ("DROP POLICY", table, change)
    } else if words.is(&["ALTER", "TABLE"]) {
        return switch(words);
    } else {
        return Ok(None);
    };
    words.expect_end()?;
    Ok(Some(kind(tag, table, vec![change])))
}

fn kind(tag: &'static str, table: Vec<String>, changes: Vec<PolicyWords>) -> Kind {
    Kind::Policy(Box::new(PolicyStatement {
        tag,
        table,
        if_exists: false,
        changes,
    }))
}

/// `policy ON table`
fn policy_of(words: &mut Words<'_>) -> Result<(String, Vec<String>), SqlError> {
    let policy = words.identifier()?;
    words.expect(&["ON"])?;
    Ok((policy, name(words)?))
}

fn create(words: &mut Words<'_>, name: String) -> Result<PolicyWords, SqlError> {
    let mut permissive = true;
    if words.take(&["AS"]) {
        let at = words.at;
        let word = words.identifier()?;
        permissive = match word.as_str() {
            "permissive" => true,
            "restrictive" => false,
            other => {
                let message = format!("unrecognized row security option \"{other}\"");
                let place = words.source.position(words.tokens[at].span.start);
                return Err(SqlError::new(SqlState::SYNTAX, message)
                    .at(place)
                    .hint("Only PERMISSIVE or RESTRICTIVE policies are supported currently."));
            }
        };
    }
    let mut command = PolicyCommand::All;
    if words.take(&["FOR"]) {
        let word = words.take_any(&["ALL", "SELECT", "INSERT", "UPDATE", "DELETE"]);
        command = match word {
            Some("ALL") => PolicyCommand::All,
            Some("SELECT") => PolicyCommand::Select,
            Some("INSERT") => PolicyCommand::Insert,
            Some("UPDATE") => PolicyCommand::Update,
            Some(_) => PolicyCommand::Delete,
            None => return Err(words.unexpected()),
        };
    }
    let parts = parts(words)?;
    Ok(PolicyWords::Create {
        name,
        permissive,
        command,
        parts,
    })
}

/// `[TO roles] [USING (..)] [WITH CHECK (..)]`
fn parts(words: &mut Words<'_>) -> Result<PolicyParts, SqlError> {
    let mut parts = PolicyParts::default();
    if words.take(&["TO"]) {
        let mut roles = vec![role(words)?];
        while words.take_token(&Token::Comma) {
            roles.push(role(words)?);
        }
        parts.roles = Some(roles);
    }
    if words.take(&["USING"]) {
        parts.using = Some(condition(words)?);
    }
    if words.take(&["WITH", "CHECK"]) {
        parts.check = Some(condition(words)?);
    }
    Ok(parts)
}

/// The text between parentheses.
fn condition(words: &mut Words<'_>) -> Result<String, SqlError> {
    let group = words.group()?;
    let (Some(first), Some(last)) = (group.first(), group.last()) else {
        return Err(words.unexpected());
    };
    let mut walk = Walk::new(&words.source.0);
    walk.to(first.span.start);
    let start = walk.byte;
    walk.to(last.span.end);
    Ok(words.source.0[start..walk.byte].to_string())
}

/// ALTER TABLE with nothing but ENABLE and DISABLE TRIGGER ALL; `None`: it has other actions.
fn all_triggers(words: &mut Words<'_>) -> Result<Option<Kind>, SqlError> {
    let begins = words.at;
    if !words.take(&["ALTER", "TABLE"]) {
        return Ok(None);
    }
    let if_exists = words.take(&["IF", "EXISTS"]);
    words.take(&["ONLY"]);
    let mut changes = Vec::new();
    let table = name(words);
    words.take_token(&Token::Mul);
    loop {
        let enables = words.take(&["ENABLE", "TRIGGER", "ALL"]);
        if !enables && !words.take(&["DISABLE", "TRIGGER", "ALL"]) {
            break;
        }
        changes.push(PolicyWords::Triggers(enables));
        if !words.take_token(&Token::Comma) {
            break;
        }
    }
    if changes.is_empty() || words.expect_end().is_err() {
        words.at = begins;
        return Ok(None);
    }
    Ok(Some(Kind::Policy(Box::new(PolicyStatement {
        tag: "ALTER TABLE",
        table: table?,
        if_exists,
        changes,
    }))))
}

/// ALTER TABLE with nothing but actions about row security; `None`: it has none.
fn switch(words: &mut Words<'_>) -> Result<Option<Kind>, SqlError> {
    let is_word = |at: usize, word: &str| {
        matches!(words.tokens.get(at).map(|token| &token.token), Some(Token::Word(found))
            if found.quote_style.is_none() && found.value.eq_ignore_ascii_case(word))
    };
    let all = words.at..words.tokens.len();
    let mut places = all.filter(|at| {
        is_word(*at, "ROW") && is_word(at + 1, "LEVEL") && is_word(at + 2, "SECURITY")
    });
    if places.next().is_none() {
        return all_triggers(words);
    }
    words.expect(&["ALTER", "TABLE"])?;
    let if_exists = words.take(&["IF", "EXISTS"]);
    words.take(&["ONLY"]);
    let table = name(words)?;
    let mut changes = Vec::new();
    loop {
        let word = words.take_any(&["ENABLE", "DISABLE", "FORCE", "NO"]);
        changes.push(match word {
            Some("ENABLE") => PolicyWords::Enable(true),
            Some("DISABLE") => PolicyWords::Enable(false),
            Some("FORCE") => PolicyWords::Force(true),
            Some(_) => {
                words.expect(&["FORCE"])?;
                PolicyWords::Force(false)
            }
            None => {
                let error = words.unsupported("ROW LEVEL SECURITY among other actions");
                return Err(error.hint("Write a statement of its own for it."));
            }
        });
        words.expect(&["ROW", "LEVEL", "SECURITY"])?;
        if !words.take_token(&Token::Comma) {
            break;
        }
    }
    words.expect_end()?;
    Ok(Some(Kind::Policy(Box::new(PolicyStatement {
        tag: "ALTER TABLE",
        table,
        if_exists,
        changes,
    }))))
}

//! Trees to instructions.

use super::parse::{Assertion, Node};
use super::{Regex, invalid};
use base::SqlError;

/// Largest program: bounded repetitions of repetitions multiply.
const INSTRUCTIONS_MAX: usize = 20_000;

/// One instruction. Those that take no character are followed at once.
pub(super) enum Inst {
    Char(char),
    Any,
    /// Number of a set in [`Regex`].
    Set(usize),
    Assert(Assertion),
    Jump(usize),
    /// Both ways, the first preferred.
    Split(usize, usize),
    /// Notes the position as a group's start (even) or end (odd).
    Save(usize),
    /// What a group took, once more.
    Back(usize),
    Match,
}

/// Fills the program of `regex`.
pub(super) fn compile(root: &Node, regex: &mut Regex) -> Result<(), SqlError> {
    emit(root, regex)?;
    push(regex, Inst::Match)?;
    Ok(())
}

fn push(regex: &mut Regex, inst: Inst) -> Result<usize, SqlError> {
    if regex.program.len() >= INSTRUCTIONS_MAX {
        return Err(invalid("regular expression is too complex"));
    }
    regex.program.push(inst);
    Ok(regex.program.len() - 1)
}

fn emit(node: &Node, regex: &mut Regex) -> Result<(), SqlError> {
    match node {
        Node::Empty => {}
        Node::Char(c) => {
            push(regex, Inst::Char(*c))?;
        }
        Node::Any => {
            push(regex, Inst::Any)?;
        }
        Node::Set(set) => {
            regex.sets.push(set.clone());
            let number = regex.sets.len() - 1;
            push(regex, Inst::Set(number))?;
        }
        Node::Assert(assertion) => {
            push(regex, Inst::Assert(*assertion))?;
        }
        Node::Back(group) => {
            push(regex, Inst::Back(*group))?;
        }
        Node::Concat(parts) => parts.iter().try_for_each(|part| emit(part, regex))?,
        Node::Alternatives(branches) => alternatives(branches, regex)?,
        Node::Group(inner, number) => {
            push(regex, Inst::Save(number * 2))?;
            emit(inner, regex)?;
            push(regex, Inst::Save(number * 2 + 1))?;
        }
        Node::Repeat {
            node,
            low,
            high,
            greedy,
        } => repeat(node, *low, *high, *greedy, regex)?,
    }
    Ok(())
}

fn alternatives(branches: &[Node], regex: &mut Regex) -> Result<(), SqlError> {
    let mut ends = Vec::new();
    for (i, branch) in branches.iter().enumerate() {
        if i + 1 == branches.len() {
            emit(branch, regex)?;
            break;
        }
        let split = push(regex, Inst::Match)?;
        emit(branch, regex)?;
        ends.push(push(regex, Inst::Match)?);
        regex.program[split] = Inst::Split(split + 1, regex.program.len());
    }
    let end = regex.program.len();
    for at in ends {
        regex.program[at] = Inst::Jump(end);
    }
    Ok(())
}

fn repeat(
    node: &Node,
    low: u32,
    high: Option<u32>,
    greedy: bool,
    regex: &mut Regex,
) -> Result<(), SqlError> {
    let split = |enter, leave| {
        if greedy {
            Inst::Split(enter, leave)
        } else {
            Inst::Split(leave, enter)
        }
    };
    for _ in 0..low {
        emit(node, regex)?;
    }
    let Some(high) = high else {
        let start = push(regex, Inst::Match)?;
        emit(node, regex)?;
        push(regex, Inst::Jump(start))?;
        regex.program[start] = split(start + 1, regex.program.len());
        return Ok(());
    };
    let mut skips = Vec::new();
    for _ in low..high {
        skips.push(push(regex, Inst::Match)?);
        emit(node, regex)?;
    }
    let end = regex.program.len();
    for at in skips {
        regex.program[at] = split(at + 1, end);
    }
    Ok(())
}

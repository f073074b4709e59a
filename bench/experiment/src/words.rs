//! What the evaluator says, in the words of this crate, and where keys stand in a text of Jsonnet.

use crate::jsonnet::WrittenKey;
use crate::tree::join;
use rsjsonnet_lang::arena::Arena;
use rsjsonnet_lang::ast::BinaryOp;
use rsjsonnet_lang::interner::StrInterner;
use rsjsonnet_lang::lexer::{LexError, Lexer};
use rsjsonnet_lang::parser::{ActualToken, ExpectedToken, ParseError};
use rsjsonnet_lang::program::{
    AnalyzeError, EvalErrorKind, EvalErrorValueType, EvalStackTraceItem, LoadError,
};
use rsjsonnet_lang::span::{SpanId, SpanManager};
use rsjsonnet_lang::token::{STokenKind, TokenKind};

/// Why a text was not loaded, and where.
pub(crate) fn not_loaded(error: &LoadError) -> (Option<SpanId>, String) {
    match error {
        LoadError::Lex(error) => not_read(error),
        LoadError::Parse(ParseError::Expected {
            span,
            expected,
            instead,
        }) => {
            let is_comma = |it: &ExpectedToken| *it == ExpectedToken::Simple(STokenKind::Comma);
            let has_comma = expected.iter().any(is_comma);
            let expected: Vec<String> = expected.iter().map(expected_token).collect();
            let expected = match expected.len() > 4 {
                true if has_comma => String::from("a comma"),
                true => String::from("something else"),
                false => expected.join(" or "),
            };
            let text = format!(
                "{} stands where {expected} is expected",
                actual_token(instead)
            );
            (Some(*span), text)
        }
        LoadError::Analyze(error) => not_analyzed(error),
    }
}

fn not_read(error: &LexError) -> (Option<SpanId>, String) {
    let (span, text) = match error {
        LexError::InvalidChar { span, chr } => (span, format!("{chr:?} means nothing here")),
        LexError::InvalidUtf8 { span, .. } => (span, String::from("this is no UTF-8")),
        LexError::UnfinishedMultilineComment { span } => {
            (span, String::from("the comment has no end (*/)"))
        }
        LexError::LeadingZeroInNumber { span } => (span, String::from("a number begins with 0")),
        LexError::MissingFracDigits { span }
        | LexError::MissingExpDigits { span }
        | LexError::MissingDigitAfterUnderscore { span } => {
            (span, String::from("digits are missing in a number"))
        }
        LexError::ExpOverflow { span } => (span, String::from("the number is too large")),
        LexError::InvalidEscapeInString { span, chr } => {
            (span, format!("\\{chr} is no escape of a text"))
        }
        LexError::IncompleteUnicodeEscape { span }
        | LexError::InvalidUtf16EscapeSequence { span, .. } => (
            span,
            String::from("\\u needs four digits that are a character"),
        ),
        LexError::UnfinishedString { span } => (span, String::from("the text has no end")),
        LexError::MissingLineBreakAfterTextBlockStart { span }
        | LexError::MissingWhitespaceTextBlockStart { span }
        | LexError::InvalidTextBlockTermination { span } => (
            span,
            String::from("a block of text needs indented lines between two lines with |||"),
        ),
    };
    (Some(*span), text)
}

fn not_analyzed(error: &AnalyzeError) -> (Option<SpanId>, String) {
    let (span, text) = match error {
        AnalyzeError::UnknownVariable { span, name } => (
            span,
            format!("there is no variable {name}; `local {name} = ..;` makes one"),
        ),
        AnalyzeError::SelfOutsideObject { self_span: span } => {
            (span, String::from("self stands outside of an object"))
        }
        AnalyzeError::SuperOutsideObject { super_span: span } => {
            (span, String::from("super stands outside of an object"))
        }
        AnalyzeError::DollarOutsideObject { dollar_span: span } => {
            (span, String::from("$ stands outside of an object"))
        }
        AnalyzeError::RepeatedLocalName {
            repeated_span: span,
            name,
            original_span: _,
        }
        | AnalyzeError::RepeatedFieldName {
            repeated_span: span,
            name,
            original_span: _,
        }
        | AnalyzeError::RepeatedParamName {
            repeated_span: span,
            name,
            original_span: _,
        } => (span, format!("{name} stands twice")),
        AnalyzeError::PositionalArgAfterNamed { arg_span: span } => (
            span,
            String::from("an argument without a name stands behind one with a name"),
        ),
        AnalyzeError::TextBlockAsImportPath { span }
        | AnalyzeError::ComputedImportPath { span } => (
            span,
            String::from("the name of an import must be a plain text"),
        ),
    };
    (Some(*span), text)
}

fn expected_token(token: &ExpectedToken) -> String {
    String::from(match token {
        ExpectedToken::EndOfFile => "the end of the file",
        ExpectedToken::Simple(kind) => return format!("`{}`", symbol(*kind)),
        ExpectedToken::Ident => "a name",
        ExpectedToken::Number => "a number",
        ExpectedToken::String => "a text",
        ExpectedToken::TextBlock => "a block of text",
        ExpectedToken::Expr => "a value",
        ExpectedToken::BinaryOp => "an operator",
    })
}

fn actual_token(token: &ActualToken) -> String {
    match token {
        ActualToken::EndOfFile => String::from("the end of the file"),
        ActualToken::Simple(kind) => format!("`{}`", symbol(*kind)),
        ActualToken::OtherOp(text) => format!("`{text}`"),
        ActualToken::Ident(name) => format!("the name {name}"),
        ActualToken::Number => String::from("a number"),
        ActualToken::String => String::from("a text"),
        ActualToken::TextBlock => String::from("a block of text"),
    }
}

fn symbol(kind: STokenKind) -> &'static str {
    match kind {
        STokenKind::Assert => "assert",
        STokenKind::Else => "else",
        STokenKind::Error => "error",
        STokenKind::False => "false",
        STokenKind::For => "for",
        STokenKind::Function => "function",
        STokenKind::If => "if",
        STokenKind::Import => "import",
        STokenKind::Importstr => "importstr",
        STokenKind::Importbin => "importbin",
        STokenKind::In => "in",
        STokenKind::Local => "local",
        STokenKind::Null => "null",
        STokenKind::Tailstrict => "tailstrict",
        STokenKind::Then => "then",
        STokenKind::Self_ => "self",
        STokenKind::Super => "super",
        STokenKind::True => "true",
        STokenKind::Exclam => "!",
        STokenKind::ExclamEq => "!=",
        STokenKind::Dollar => "$",
        STokenKind::Percent => "%",
        STokenKind::Amp => "&",
        STokenKind::AmpAmp => "&&",
        STokenKind::LeftParen => "(",
        STokenKind::RightParen => ")",
        STokenKind::Asterisk => "*",
        STokenKind::Plus => "+",
        STokenKind::PlusColon => "+:",
        STokenKind::PlusColonColon => "+::",
        STokenKind::PlusColonColonColon => "+:::",
        STokenKind::Comma => ",",
        STokenKind::Minus => "-",
        STokenKind::Dot => ".",
        STokenKind::Slash => "/",
        STokenKind::Colon => ":",
        STokenKind::ColonColon => "::",
        STokenKind::ColonColonColon => ":::",
        STokenKind::Semicolon => ";",
        STokenKind::Lt => "<",
        STokenKind::LtLt => "<<",
        STokenKind::LtEq => "<=",
        STokenKind::Eq => "=",
        STokenKind::EqEq => "==",
        STokenKind::Gt => ">",
        STokenKind::GtEq => ">=",
        STokenKind::GtGt => ">>",
        STokenKind::LeftBracket => "[",
        STokenKind::RightBracket => "]",
        STokenKind::Hat => "^",
        STokenKind::LeftBrace => "{",
        STokenKind::Pipe => "|",
        STokenKind::PipePipe => "||",
        STokenKind::RightBrace => "}",
        STokenKind::Tilde => "~",
    }
}

/// Why a text was not evaluated, and where.
pub(crate) fn not_evaluated(kind: &EvalErrorKind) -> (Option<SpanId>, String) {
    use EvalErrorKind as Kind;
    let some = |span: &SpanId, text: String| (Some(*span), text);
    match kind {
        Kind::StackOverflow => (None, String::from("calls are nested more than 500 deep")),
        Kind::InfiniteRecursion => (None, String::from("the value needs itself to be known")),
        Kind::InvalidIndexedType { .. }
        | Kind::InvalidSlicedType { .. }
        | Kind::SliceIndexOrStepIsNotNumber { .. }
        | Kind::StringIndexIsNotNumber { .. }
        | Kind::ArrayIndexIsNotNumber { .. }
        | Kind::NumericIndexIsNotValid { .. }
        | Kind::NumericIndexOutOfRange { .. }
        | Kind::ObjectIndexIsNotString { .. } => not_indexed(kind),
        Kind::RepeatedFieldName { .. }
        | Kind::FieldNameIsNotString { .. }
        | Kind::UnknownObjectField { .. }
        | Kind::FieldOfNonObject { .. }
        | Kind::SuperWithoutSuperObject { .. } => not_of_object(kind),
        Kind::ForSpecValueIsNotArray { span, got_type } => some(
            span,
            format!("`for` goes over a list, and this is {}", name(*got_type)),
        ),
        Kind::CondIsNotBool { span, got_type } => some(
            span,
            format!("a condition is {} and not true or false", name(*got_type)),
        ),
        Kind::AssertFailed { span, message } => {
            let message = message.as_deref().unwrap_or("an assert does not hold");
            some(span, message.to_owned())
        }
        Kind::ExplicitError { span, message } => some(span, message.clone()),
        Kind::ImportFailed { span, path } => some(span, format!("{path:?} cannot be imported")),
        Kind::Other { span, message } => (*span, message.clone()),
        Kind::UnknownExtVar { name } => (
            None,
            format!("std.extVar({name:?}): there are no external variables; use `local`"),
        ),
        Kind::NativeCallFailed => (None, String::from("there are no native functions")),
        Kind::ManifestFunction => (
            None,
            String::from("a field is a function: `::` instead of `:` keeps it out"),
        ),
        Kind::AssertEqualFailed { lhs, rhs } => {
            (None, format!("std.assertEqual: {lhs} is not {rhs}"))
        }
        Kind::CalleeIsNotFunction { .. }
        | Kind::TooManyCallArgs { .. }
        | Kind::UnknownCallParam { .. }
        | Kind::RepeatedCallParam { .. }
        | Kind::CallParamNotBound { .. } => not_called(kind),
        Kind::InvalidUnaryOpType { .. }
        | Kind::InvalidBinaryOpTypes { .. }
        | Kind::NumberNotBitwiseSafe { .. }
        | Kind::NumberOverflow { .. }
        | Kind::NumberNan { .. }
        | Kind::DivByZero { .. }
        | Kind::ShiftByNegative { .. }
        | Kind::InvalidStdFuncArgType { .. }
        | Kind::CompareNullInequality
        | Kind::CompareBooleanInequality
        | Kind::CompareObjectInequality
        | Kind::CompareFunctions
        | Kind::CompareDifferentTypesInequality { .. }
        | Kind::PrimitiveEqualsNonPrimitive { .. } => not_computed(kind),
    }
}

/// A field that is not there or cannot be.
fn not_of_object(kind: &EvalErrorKind) -> (Option<SpanId>, String) {
    use EvalErrorKind as Kind;
    let some = |span: &SpanId, text: String| (Some(*span), text);
    match kind {
        Kind::RepeatedFieldName { span, name } => some(span, format!("{name} stands twice")),
        Kind::FieldNameIsNotString { span, got_type } => some(
            span,
            format!("the name of a field is {} and not a text", name(*got_type)),
        ),
        Kind::UnknownObjectField { span, field_name } => {
            some(span, format!("the object has no field {field_name}"))
        }
        Kind::FieldOfNonObject { span } => some(span, String::from("only an object has fields")),
        Kind::SuperWithoutSuperObject { span } => some(
            span,
            String::from("there is no object to inherit from (super)"),
        ),
        _ => (None, format!("{kind:?}")),
    }
}

/// A part that cannot be taken.
fn not_indexed(kind: &EvalErrorKind) -> (Option<SpanId>, String) {
    use EvalErrorKind as Kind;
    let some = |span: &SpanId, text: String| (Some(*span), text);
    match kind {
        Kind::InvalidIndexedType { span, got_type } => some(
            span,
            format!("{} has no elements or fields", name(*got_type)),
        ),
        Kind::InvalidSlicedType { span, got_type } => {
            some(span, format!("{} has no parts", name(*got_type)))
        }
        Kind::SliceIndexOrStepIsNotNumber { span, got_type }
        | Kind::StringIndexIsNotNumber { span, got_type }
        | Kind::ArrayIndexIsNotNumber { span, got_type } => some(
            span,
            format!("the index is {} and not a number", name(*got_type)),
        ),
        Kind::NumericIndexIsNotValid { span, index } => some(span, format!("{index} is no index")),
        Kind::NumericIndexOutOfRange {
            span,
            index,
            length,
        } => some(span, format!("there is no element {index} among {length}")),
        Kind::ObjectIndexIsNotString { span, got_type } => some(
            span,
            format!(
                "the index of an object is {} and not a text",
                name(*got_type)
            ),
        ),
        _ => (None, format!("{kind:?}")),
    }
}

/// A call that cannot be.
fn not_called(kind: &EvalErrorKind) -> (Option<SpanId>, String) {
    use EvalErrorKind as Kind;
    match kind {
        Kind::CalleeIsNotFunction { span, got_type } => (
            *span,
            format!("{} is called, which is no function", name(*got_type)),
        ),
        Kind::TooManyCallArgs { span, num_params } => (
            *span,
            format!("the function has {num_params} parameters and got more"),
        ),
        Kind::UnknownCallParam { span, param_name } => {
            (*span, format!("the function has no parameter {param_name}"))
        }
        Kind::RepeatedCallParam { span, param_name } => {
            (*span, format!("the parameter {param_name} is given twice"))
        }
        Kind::CallParamNotBound { span, param_name } => {
            (*span, format!("the parameter {param_name} is missing"))
        }
        _ => (None, format!("{kind:?}")),
    }
}

/// An operator or a function of the library that cannot have these values.
fn not_computed(kind: &EvalErrorKind) -> (Option<SpanId>, String) {
    use EvalErrorKind as Kind;
    match kind {
        Kind::InvalidUnaryOpType { span, rhs_type, .. } => (
            Some(*span),
            format!("the operator cannot have {}", name(*rhs_type)),
        ),
        Kind::InvalidBinaryOpTypes {
            span,
            op,
            lhs_type,
            rhs_type,
        } => {
            let (left, right) = (name(*lhs_type), name(*rhs_type));
            (
                *span,
                format!("{} of {left} and {right} is nothing", operator(*op)),
            )
        }
        Kind::NumberNotBitwiseSafe { span } => (
            *span,
            String::from("the number is too large for operations on bits"),
        ),
        Kind::NumberOverflow { span } => (*span, String::from("the number is too large")),
        Kind::NumberNan { span } => (*span, String::from("the result is no number")),
        Kind::DivByZero { span } => (*span, String::from("division by zero")),
        Kind::ShiftByNegative { span } => (*span, String::from("a shift by less than zero")),
        Kind::InvalidStdFuncArgType {
            func_name,
            arg_index,
            expected_types,
            got_type,
        } => {
            let expected: Vec<&str> = expected_types.iter().map(|it| name(*it)).collect();
            let (expected, got) = (expected.join(" or "), name(*got_type));
            let text = format!(
                "std.{func_name}: argument {} is {got} and not {expected}",
                arg_index + 1
            );
            (None, text)
        }
        _ => (
            None,
            String::from("values of these kinds cannot be compared"),
        ),
    }
}

fn name(kind: EvalErrorValueType) -> &'static str {
    match kind {
        EvalErrorValueType::Null => "null",
        EvalErrorValueType::Bool => "true or false",
        EvalErrorValueType::Number => "a number",
        EvalErrorValueType::String => "a text",
        EvalErrorValueType::Array => "a list",
        EvalErrorValueType::Object => "an object",
        EvalErrorValueType::Function => "a function",
    }
}

fn operator(op: BinaryOp) -> &'static str {
    match op {
        BinaryOp::Add => "+",
        BinaryOp::Sub => "-",
        BinaryOp::Mul => "*",
        BinaryOp::Div => "/",
        BinaryOp::Rem => "%",
        BinaryOp::Shl => "<<",
        BinaryOp::Shr => ">>",
        BinaryOp::Lt => "<",
        BinaryOp::Le => "<=",
        BinaryOp::Gt => ">",
        BinaryOp::Ge => ">=",
        BinaryOp::Eq => "==",
        BinaryOp::Ne => "!=",
        BinaryOp::In => "in",
        BinaryOp::BitwiseAnd => "&",
        BinaryOp::BitwiseOr => "|",
        BinaryOp::BitwiseXor => "^",
        BinaryOp::LogicAnd => "&&",
        BinaryOp::LogicOr => "||",
    }
}

/// Where a step of the evaluation was asked for.
pub(crate) fn span_of(item: &EvalStackTraceItem) -> Option<SpanId> {
    match item {
        EvalStackTraceItem::Expr { span }
        | EvalStackTraceItem::Variable { span, name: _ }
        | EvalStackTraceItem::Import { span } => Some(*span),
        EvalStackTraceItem::Call { span, name: _ }
        | EvalStackTraceItem::ArrayItem { span, index: _ }
        | EvalStackTraceItem::ObjectField { span, name: _ } => *span,
        EvalStackTraceItem::CompareArrayItem { .. }
        | EvalStackTraceItem::CompareObjectField { .. }
        | EvalStackTraceItem::ManifestArrayItem { .. }
        | EvalStackTraceItem::ManifestObjectField { .. } => None,
    }
}

/// The key whose value was being computed, as far as the trace has it.
pub(crate) fn key_of(trace: &[EvalStackTraceItem]) -> String {
    let mut path = String::new();
    for item in trace {
        match item {
            EvalStackTraceItem::ObjectField { name, .. }
            | EvalStackTraceItem::ManifestObjectField { name } => path = join(&path, name),
            EvalStackTraceItem::ArrayItem { index, .. }
            | EvalStackTraceItem::ManifestArrayItem { index } => {
                path = join(&path, &index.to_string());
            }
            _ => break,
        }
        if path.len() > 200 {
            return String::new();
        }
    }
    path
}

/// Something that is open in a text.
struct Level {
    is_object: bool,
    /// The key whose value comes.
    key: Option<String>,
    /// A name or text that is a key if a colon follows.
    candidate: Option<(String, usize)>,
}

/// All keys of objects in a text, with their lines. A text that is not well formed has fewer.
pub(crate) fn written_keys(file: &str, text: &str) -> Vec<WrittenKey> {
    let (arena, tokens) = (Arena::new(), Arena::new());
    let interner = StrInterner::new();
    let mut spans = SpanManager::new();
    let (context, _) = spans.insert_source_context(text.len());
    let lexer = Lexer::new(
        &arena,
        &tokens,
        &interner,
        &mut spans,
        context,
        text.as_bytes(),
    );
    let Ok(all) = lexer.lex_to_eof(false) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    let mut open: Vec<Level> = Vec::new();
    let (mut line, mut counted) = (1, 0);
    for token in all {
        let (_, start, _) = spans.get_span(token.span);
        line += text
            .get(counted..start)
            .unwrap_or_default()
            .matches('\n')
            .count();
        counted = start;
        let candidate = match token.kind {
            TokenKind::Ident(name) => Some((name.value().to_owned(), line)),
            TokenKind::String(text) => Some((text.to_owned(), line)),
            _ => None,
        };
        match token.kind {
            TokenKind::Simple(STokenKind::LeftBrace) => open.push(Level {
                is_object: true,
                key: None,
                candidate: None,
            }),
            TokenKind::Simple(STokenKind::LeftBracket | STokenKind::LeftParen) => {
                open.push(Level {
                    is_object: false,
                    key: None,
                    candidate: None,
                });
            }
            TokenKind::Simple(
                STokenKind::RightBrace | STokenKind::RightBracket | STokenKind::RightParen,
            ) => {
                open.pop();
            }
            TokenKind::Simple(STokenKind::Comma | STokenKind::Local) => {
                if let Some(level) = open.last_mut().filter(|level| level.is_object) {
                    (level.key, level.candidate) = (None, None);
                }
            }
            TokenKind::Simple(kind) if is_colon(kind) => found.extend(key(file, &mut open)),
            _ => {
                if let Some(level) = open
                    .last_mut()
                    .filter(|it| it.is_object && it.key.is_none())
                {
                    level.candidate = candidate;
                }
            }
        }
    }
    found
}

fn is_colon(kind: STokenKind) -> bool {
    matches!(
        kind,
        STokenKind::Colon
            | STokenKind::ColonColon
            | STokenKind::ColonColonColon
            | STokenKind::PlusColon
            | STokenKind::PlusColonColon
            | STokenKind::PlusColonColonColon
    )
}

/// The key in front of a colon.
fn key(file: &str, open: &mut [Level]) -> Option<WrittenKey> {
    let level = open.last_mut().filter(|level| level.is_object)?;
    let (name, line) = level.candidate.take()?;
    level.key = Some(name);
    let path = open.iter().filter_map(|level| level.key.clone());
    Some(WrittenKey {
        path: path.collect(),
        file: file.to_owned(),
        line,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_a_text_have_their_lines() {
        let text = "// an experiment\nlocal t = { sizes:: [1, { small: 2 }] };\n[\n  t {\n    \
                    extends: 'micro',\n    population+: {\n      \
                    threads: if true then 1 else 2,\n      \
                    'think time': { kind: 'none' },\n    },\n    \
                    local x = { y: 1 },\n    z: x.y,\n  }\n\
                    for s in t.sizes\n]";
        let keys = written_keys("f", text);
        let shown = keys
            .iter()
            .map(|key| format!("{}:{}", key.path.join("."), key.line));
        assert_eq!(
            shown.collect::<Vec<_>>(),
            [
                "sizes:2",
                "sizes.small:2",
                "extends:5",
                "population:6",
                "population.threads:7",
                "population.think time:8",
                "population.think time.kind:8",
                "y:10",
                "z:11",
            ]
        );
    }
}

//! Functions of text, bytes and arrays.

use super::*;
use functions::{ArrayFunc, TextFunc};

/// Functions of this family.
pub(super) static TABLE: &[Function] = table! {
    "concat": Func::Text(TextFunc::ConcatAll) => (; OUTPUT) TXT;
    "concat_ws": Func::Text(TextFunc::ConcatWs) => (TXT; OUTPUT) TXT;
    "length": Func::Text(TextFunc::Length) => (TXT) I4, (CHAR) I4, (BYTEA) I4;
    "char_length" "character_length": Func::Text(TextFunc::Length) => (TXT) I4, (CHAR) I4;
    "octet_length": Func::Text(TextFunc::OctetLength) => (TXT) I4, (PADDED) I4, (BYTEA) I4;
    "bit_length": Func::Text(TextFunc::BitLength) => (TXT) I4, (BYTEA) I4;
    "lower": Func::Text(TextFunc::Lower) => (TXT) TXT;
    "upper": Func::Text(TextFunc::Upper) => (TXT) TXT;
    "initcap": Func::Text(TextFunc::InitCap) => (TXT) TXT;
    "ltrim": Func::Text(TextFunc::TrimLeft) => (TXT) TXT, (TXT, TXT) TXT, (BYTEA, BYTEA) BYTEA;
    "rtrim": Func::Text(TextFunc::TrimRight) => (TXT) TXT, (TXT, TXT) TXT, (BYTEA, BYTEA) BYTEA;
    "btrim": Func::Text(TextFunc::TrimBoth) => (TXT) TXT, (TXT, TXT) TXT, (BYTEA, BYTEA) BYTEA;
    "substring": Func::Text(TextFunc::Substring) => (TXT, I4) TXT, (TXT, I4, I4) TXT;
    "substring": Func::Text(TextFunc::SubstringRegex) => (TXT, TXT) TXT;
    "substring": Func::Text(TextFunc::Substring) => (BYTEA, I4) BYTEA, (BYTEA, I4, I4) BYTEA;
    "substr": Func::Text(TextFunc::Substring) => (TXT, I4) TXT, (TXT, I4, I4) TXT,
        (BYTEA, I4) BYTEA, (BYTEA, I4, I4) BYTEA;
    "overlay": Func::Text(TextFunc::Overlay) => (TXT, TXT, I4) TXT, (TXT, TXT, I4, I4) TXT;
    "position": Func::Text(TextFunc::Position) => (TXT, TXT) I4, (BYTEA, BYTEA) I4;
    "strpos": Func::Text(TextFunc::Position) => (TXT, TXT) I4;
    "left": Func::Text(TextFunc::Left) => (TXT, I4) TXT;
    "right": Func::Text(TextFunc::Right) => (TXT, I4) TXT;
    "lpad": Func::Text(TextFunc::PadLeft) => (TXT, I4) TXT, (TXT, I4, TXT) TXT;
    "rpad": Func::Text(TextFunc::PadRight) => (TXT, I4) TXT, (TXT, I4, TXT) TXT;
    "repeat": Func::Text(TextFunc::Repeat) => (TXT, I4) TXT;
    "replace": Func::Text(TextFunc::Replace) => (TXT, TXT, TXT) TXT;
    "reverse": Func::Text(TextFunc::Reverse) => (TXT) TXT;
    "split_part": Func::Text(TextFunc::SplitPart) => (TXT, TXT, I4) TXT;
    "ascii": Func::Text(TextFunc::Ascii) => (TXT) I4;
    "chr": Func::Text(TextFunc::Chr) => (I4) TXT;
    "md5": Func::Text(TextFunc::Md5) => (TXT) TXT, (BYTEA) TXT;
    "translate": Func::Text(TextFunc::Translate) => (TXT, TXT, TXT) TXT;
    "starts_with": Func::Text(TextFunc::StartsWith) => (TXT, TXT) BOOL;
    "to_hex": Func::Text(TextFunc::ToHex4) => (I4) TXT;
    "to_hex": Func::Text(TextFunc::ToHex8) => (I8) TXT;
    "encode": Func::Text(TextFunc::Encode) => (BYTEA, TXT) TXT;
    "decode": Func::Text(TextFunc::Decode) => (TXT, TXT) BYTEA;
    "convert_from": Func::Text(TextFunc::ConvertFrom) => (BYTEA, NAME) TXT;
    "convert_to": Func::Text(TextFunc::ConvertTo) => (TXT, NAME) BYTEA;
    "get_byte": Func::Text(TextFunc::GetByte) => (BYTEA, I4) I4;
    "set_byte": Func::Text(TextFunc::SetByte) => (BYTEA, I4, I4) BYTEA;
    "get_bit": Func::Text(TextFunc::GetBit) => (BYTEA, I8) I4;
    "set_bit": Func::Text(TextFunc::SetBit) => (BYTEA, I8, I4) BYTEA;
    "bit_count": Func::Text(TextFunc::BitCount) => (BYTEA) I8;
    "sha224": Func::Text(TextFunc::Sha224) => (BYTEA) BYTEA;
    "sha256": Func::Text(TextFunc::Sha256) => (BYTEA) BYTEA;
    "sha384": Func::Text(TextFunc::Sha384) => (BYTEA) BYTEA;
    "sha512": Func::Text(TextFunc::Sha512) => (BYTEA) BYTEA;
    "digest": Func::Text(TextFunc::Digest) => (TXT, TXT) BYTEA, (BYTEA, TXT) BYTEA;
    "hmac": Func::Text(TextFunc::Hmac) => (TXT, TXT, TXT) BYTEA, (BYTEA, BYTEA, TXT) BYTEA;
    "quote_ident": Func::Text(TextFunc::QuoteIdent) => (TXT) TXT;
    "quote_literal": Func::Text(TextFunc::QuoteLiteral) => (TXT) TXT, (OUTPUT) TXT;
    "quote_nullable": Func::Text(TextFunc::QuoteNullable) => (TXT) TXT, (OUTPUT) TXT;
    "format": Func::Text(TextFunc::Format) => (TXT) TXT, (TXT; OUTPUT) TXT;
    "regexp_replace": Func::Text(TextFunc::RegexpReplace) => (TXT, TXT, TXT) TXT,
        (TXT, TXT, TXT, TXT) TXT, (TXT, TXT, TXT, I4) TXT, (TXT, TXT, TXT, I4, I4) TXT,
        (TXT, TXT, TXT, I4, I4, TXT) TXT;
    "regexp_match": Func::Text(TextFunc::RegexpMatch) => (TXT, TXT) TEXTS, (TXT, TXT, TXT) TEXTS;
    "regexp_like": Func::Text(TextFunc::RegexpLike) => (TXT, TXT) BOOL, (TXT, TXT, TXT) BOOL;
    "regexp_count": Func::Text(TextFunc::RegexpCount) => (TXT, TXT) I4, (TXT, TXT, I4) I4,
        (TXT, TXT, I4, TXT) I4;
    "regexp_substr": Func::Text(TextFunc::RegexpSubstr) => (TXT, TXT) TXT, (TXT, TXT, I4) TXT,
        (TXT, TXT, I4, I4) TXT, (TXT, TXT, I4, I4, TXT) TXT, (TXT, TXT, I4, I4, TXT, I4) TXT;
    "regexp_instr": Func::Text(TextFunc::RegexpInstr) => (TXT, TXT) I4, (TXT, TXT, I4) I4,
        (TXT, TXT, I4, I4) I4, (TXT, TXT, I4, I4, I4) I4, (TXT, TXT, I4, I4, I4, TXT) I4,
        (TXT, TXT, I4, I4, I4, TXT, I4) I4;
    "regexp_split_to_array": Func::Text(TextFunc::RegexpSplitToArray) => (TXT, TXT) TEXTS,
        (TXT, TXT, TXT) TEXTS;
    "string_to_array": Func::Text(TextFunc::StringToArray) => (TXT, TXT) TEXTS,
        (TXT, TXT, TXT) TEXTS;
    "parse_ident": Func::Text(TextFunc::ParseIdent) => (TXT) TEXTS, (TXT, BOOL) TEXTS;
    "like_escape": Func::Text(TextFunc::LikeEscape) => (TXT, TXT) TXT;
    "similar_to_escape": Func::Text(TextFunc::SimilarToEscape) => (TXT) TXT, (TXT, TXT) TXT;
    "to_number": Func::Text(TextFunc::ToNumber) => (TXT, TXT) NUM;
    "array_to_string": Func::ArrayToString(Type::Text) => (ARRAY, TXT) TXT, (ARRAY, TXT, TXT) TXT;
    "array_length": Func::Array(ArrayFunc::Length) => (ARRAY, I4) I4;
    "array_lower": Func::Array(ArrayFunc::Lower) => (ARRAY, I4) I4;
    "array_upper": Func::Array(ArrayFunc::Upper) => (ARRAY, I4) I4;
    "array_ndims": Func::Array(ArrayFunc::NDims) => (ARRAY) I4;
    "array_dims": Func::Array(ArrayFunc::Dims) => (ARRAY) TXT;
    "cardinality": Func::Array(ArrayFunc::Cardinality) => (ARRAY) I4;
    "array_append": Func::Array(ArrayFunc::Append) => (ARRAY, ELEM) ARRAY;
    "array_prepend": Func::Array(ArrayFunc::Prepend) => (ELEM, ARRAY) ARRAY;
    "array_cat": Func::Array(ArrayFunc::Cat) => (ARRAY, ARRAY) ARRAY;
    "array_positions": Func::Array(ArrayFunc::Positions) => (ARRAY, ELEM) INTS;
    "trim_array": Func::Array(ArrayFunc::Trim) => (ARRAY, I4) ARRAY;
    "array_position": Func::Array(ArrayFunc::Position) => (ARRAY, ELEM) I4, (ARRAY, ELEM, I4) I4;
    "array_remove": Func::Array(ArrayFunc::Remove) => (ARRAY, ELEM) ARRAY;
    "array_fill": Func::Array(ArrayFunc::Fill) => (ELEM, INTS) ARRAY, (ELEM, INTS, INTS) ARRAY;
    "array_replace": Func::Array(ArrayFunc::Replace) => (ARRAY, ELEM, ELEM) ARRAY;
};

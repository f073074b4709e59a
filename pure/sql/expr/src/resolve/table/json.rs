//! Functions of `json` and `jsonb`, but those that take values of any type.

use super::*;
use functions::JsonFunc;

const JSON: Arg = Arg::Is(Type::Json);

/// Functions of this family.
pub(super) static TABLE: &[Function] = table! {
    "json_extract_path": Func::Json(JsonFunc::Extract) => (JSON; TXT) JSON;
    "jsonb_extract_path": Func::Json(JsonFunc::Extract) => (JSONB; TXT) JSONB;
    "json_extract_path_text": Func::Json(JsonFunc::ExtractText) => (JSON; TXT) TXT;
    "jsonb_extract_path_text": Func::Json(JsonFunc::ExtractText) => (JSONB; TXT) TXT;
    "json_object": Func::Json(JsonFunc::Object) => (TEXTS) JSON, (TEXTS, TEXTS) JSON;
    "jsonb_object": Func::Json(JsonFunc::Object) => (TEXTS) JSONB, (TEXTS, TEXTS) JSONB;
    "json_array_length": Func::Json(JsonFunc::ArrayLength) => (JSON) I4;
    "jsonb_array_length": Func::Json(JsonFunc::ArrayLength) => (JSONB) I4;
    "json_typeof": Func::Json(JsonFunc::TypeOf) => (JSON) TXT;
    "jsonb_typeof": Func::Json(JsonFunc::TypeOf) => (JSONB) TXT;
    "json_strip_nulls": Func::Json(JsonFunc::StripNulls) => (JSON) JSON;
    "jsonb_strip_nulls": Func::Json(JsonFunc::StripNulls) => (JSONB) JSONB;
    "jsonb_set": Func::Json(JsonFunc::Set) => (JSONB, TEXTS, JSONB) JSONB,
        (JSONB, TEXTS, JSONB, BOOL) JSONB;
    "jsonb_set_lax": Func::Json(JsonFunc::SetLax) => (JSONB, TEXTS, JSONB) JSONB,
        (JSONB, TEXTS, JSONB, BOOL) JSONB, (JSONB, TEXTS, JSONB, BOOL, TXT) JSONB;
    "jsonb_insert": Func::Json(JsonFunc::Insert) => (JSONB, TEXTS, JSONB) JSONB,
        (JSONB, TEXTS, JSONB, BOOL) JSONB;
    "jsonb_pretty": Func::Json(JsonFunc::Pretty) => (JSONB) TXT;
};

/// Operators of this family.
pub(super) static INFIX: &[Function] = table! {
    "->": Func::Json(JsonFunc::Get) => (JSON, TXT) JSON, (JSON, I4) JSON, (JSONB, TXT) JSONB,
        (JSONB, I4) JSONB;
    "->>": Func::Json(JsonFunc::GetText) => (JSON, TXT) TXT, (JSON, I4) TXT, (JSONB, TXT) TXT,
        (JSONB, I4) TXT;
    "#>": Func::Json(JsonFunc::Path) => (JSON, TEXTS) JSON, (JSONB, TEXTS) JSONB;
    "#>>": Func::Json(JsonFunc::PathText) => (JSON, TEXTS) TXT, (JSONB, TEXTS) TXT;
    "@>": Func::Json(JsonFunc::Contains) => (JSONB, JSONB) BOOL;
    "<@": Func::Json(JsonFunc::ContainedBy) => (JSONB, JSONB) BOOL;
    "?": Func::Json(JsonFunc::HasKey) => (JSONB, TXT) BOOL;
    "?|": Func::Json(JsonFunc::HasAny) => (JSONB, TEXTS) BOOL;
    "?&": Func::Json(JsonFunc::HasAll) => (JSONB, TEXTS) BOOL;
    "||": Func::Json(JsonFunc::Concat) => (JSONB, JSONB) JSONB;
    "-": Func::Json(JsonFunc::DeleteKey) => (JSONB, TXT) JSONB, (JSONB, TEXTS) JSONB;
    "-": Func::Json(JsonFunc::DeleteIndex) => (JSONB, I4) JSONB;
    "#-": Func::Json(JsonFunc::DeletePath) => (JSONB, TEXTS) JSONB;
};

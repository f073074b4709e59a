//! Functions of `json` and `jsonb`, but those that take values of any type.

use super::*;
use functions::JsonFunc;
use functions::json::PathUse;

const JSON: Arg = Arg::Is(Type::Json);
const PATH: Arg = Arg::Is(Type::JsonPath);

/// What a path leads to; `zoned`: moments are compared by the session's zone.
const fn query(usage: PathUse, zoned: bool) -> Func {
    Func::Json(JsonFunc::Query { usage, zoned })
}

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
    "jsonb_path_exists": query(PathUse::Exists, false) => (JSONB, PATH) BOOL,
        (JSONB, PATH, JSONB) BOOL, (JSONB, PATH, JSONB, BOOL) BOOL;
    "jsonb_path_exists_tz": query(PathUse::Exists, true) => (JSONB, PATH) BOOL,
        (JSONB, PATH, JSONB) BOOL, (JSONB, PATH, JSONB, BOOL) BOOL;
    "jsonb_path_match": query(PathUse::Match, false) => (JSONB, PATH) BOOL,
        (JSONB, PATH, JSONB) BOOL, (JSONB, PATH, JSONB, BOOL) BOOL;
    "jsonb_path_match_tz": query(PathUse::Match, true) => (JSONB, PATH) BOOL,
        (JSONB, PATH, JSONB) BOOL, (JSONB, PATH, JSONB, BOOL) BOOL;
    "jsonb_path_query_array": query(PathUse::Array, false) => (JSONB, PATH) JSONB,
        (JSONB, PATH, JSONB) JSONB, (JSONB, PATH, JSONB, BOOL) JSONB;
    "jsonb_path_query_array_tz": query(PathUse::Array, true) => (JSONB, PATH) JSONB,
        (JSONB, PATH, JSONB) JSONB, (JSONB, PATH, JSONB, BOOL) JSONB;
    "jsonb_path_query_first": query(PathUse::First, false) => (JSONB, PATH) JSONB,
        (JSONB, PATH, JSONB) JSONB, (JSONB, PATH, JSONB, BOOL) JSONB;
    "jsonb_path_query_first_tz": query(PathUse::First, true) => (JSONB, PATH) JSONB,
        (JSONB, PATH, JSONB) JSONB, (JSONB, PATH, JSONB, BOOL) JSONB;
    "jsonb_path_exists_opr": query(PathUse::HasAny, false) => (JSONB, PATH) BOOL;
    "jsonb_path_match_opr": query(PathUse::IsTrue, false) => (JSONB, PATH) BOOL;
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
    "@?": query(PathUse::HasAny, false) => (JSONB, PATH) BOOL;
    "@@": query(PathUse::IsTrue, false) => (JSONB, PATH) BOOL;
    "#-": Func::Json(JsonFunc::DeletePath) => (JSONB, TEXTS) JSONB;
};

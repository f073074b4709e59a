//! Functions and procedures in SQL: their rows of pg_proc, and their definitions.

use super::*;
use ::functions::keywords::quote_ident;
use base::full_name::schema_of;
use catalog::{Argument, Body, Function, Lasts, Mode, Parallel, Returns};

/// Numbers of the types `void` and `record`, and of the language SQL.
const VOID: u32 = 2278;
const RECORD: u32 = 2249;
const SQL: u32 = 14;

/// Numbers of the tables that functions and relations are in.
pub(super) const PG_PROC: u32 = 1255;
const PG_CLASS: u32 = 1259;

impl<'a> CatalogCx<'a> {
    /// The function of users of this number.
    pub(super) fn routine(&self, id: u32) -> Option<&'a Function> {
        self.database.function(id).map(|found| &**found)
    }

    fn type_of(&self, ty: Type) -> String {
        enums::type_name(self, ty.oid(), None)
    }
}

fn result_oid(function: &Function) -> u32 {
    let outputs = function.outputs().count();
    if function.row_of.is_some() {
        return RECORD;
    }
    match function.returns {
        Returns::Void if function.is_procedure && outputs > 0 => RECORD,
        Returns::Void => VOID,
        Returns::One(ty) | Returns::Each(ty) => ty.oid(),
        Returns::Row | Returns::Rows => RECORD,
    }
}

fn letter_of(mode: Mode) -> char {
    match mode {
        Mode::In => 'i',
        Mode::Out => 'o',
        Mode::InOut => 'b',
        Mode::Table => 't',
        Mode::Variadic => 'v',
    }
}

fn lasts_letter(lasts: Lasts) -> char {
    match lasts {
        Lasts::Immutable => 'i',
        Lasts::Stable => 's',
        Lasts::Volatile => 'v',
    }
}

fn parallel_letter(parallel: Parallel) -> char {
    match parallel {
        Parallel::Safe => 's',
        Parallel::Restricted => 'r',
        Parallel::Unsafe => 'u',
    }
}

/// `proargdefaults`: the defaults of its arguments.
fn defaults_text(cx: &CatalogCx<'_>, function: &Function) -> Datum {
    let defaults = function.inputs().filter_map(|one| one.default.as_ref());
    let texts: Vec<String> = defaults.map(|default| cx.kept_text(default)).collect();
    optional((!texts.is_empty()).then(|| texts.join(", ")))
}

/// Adds the rows of pg_proc.
pub(super) fn rows(cx: &CatalogCx<'_>, out: &mut RowBatch) {
    for function in cx.database.all_functions() {
        let target = ::rights::Target::Relation(function.id);
        let owner = cx.catalog.rights.owner(&target);
        let inputs = function.input_types();
        let all = function.arguments.iter();
        let defaults = function.inputs().filter(|input| input.default.is_some());
        let variadic = function.inputs().find(|one| one.mode == Mode::Variadic);
        let variadic = variadic.and_then(|one| one.ty.element());
        let plain = function.outputs().next().is_none() && variadic.is_none();
        let settings = function.settings.iter();
        let settings = array(settings.map(|(name, value)| text(format!("{name}={value}"))));
        let named = all.clone().any(|argument| !argument.name.is_empty());
        let set = function.gives_rows();
        let kind = if function.is_procedure { 'p' } else { 'f' };
        let when = |there: bool, value: Datum| if there { value } else { Datum::Null };
        out.push([
            oid(function.id),
            text(own(&function.name)),
            oid(schema_of(&function.name)),
            oid(owner.0),
            oid(SQL),
            Datum::Float(function.cost.unwrap_or(100.0)),
            Datum::Float(function.rows.unwrap_or(if set { 1000.0 } else { 0.0 })),
            oid(variadic.map_or(0, |ty| ty.oid())),
            oid(0),
            letter(kind),
            flag(function.definer),
            flag(function.leakproof),
            flag(function.strict),
            flag(set),
            letter(lasts_letter(function.lasts)),
            letter(parallel_letter(function.parallel)),
            int(inputs.len() as i64),
            int(defaults.count() as i64),
            oid(result_oid(function)),
            array(inputs.iter().map(|ty| oid(ty.oid()))),
            when(!plain, array(all.clone().map(|one| oid(one.ty.oid())))),
            when(
                !plain,
                array(all.clone().map(|one| letter(letter_of(one.mode)))),
            ),
            when(named, array(all.clone().map(|one| text(one.name.as_str())))),
            defaults_text(cx, function),
            Datum::Null,
            match &function.body {
                Body::Text(body) => text(body.as_str()),
                Body::Parsed { .. } => text(""),
            },
            Datum::Null,
            match &function.body {
                Body::Text(_) => Datum::Null,
                Body::Parsed { .. } => text(parsed_body(cx, function)),
            },
            when(!function.settings.is_empty(), settings),
            cx.acl(&target),
        ]);
    }
}

/// `RETURN ...` or `BEGIN ATOMIC ... END`.
fn parsed_body(cx: &CatalogCx<'_>, function: &Function) -> String {
    let Body::Parsed {
        returns,
        shown: statements,
        ..
    } = &function.body
    else {
        return String::new();
    };
    if *returns {
        let value = statements.first().map(|text| cx.kept_text(text));
        let value = value.unwrap_or_default();
        return format!("RETURN {}", value.strip_prefix("SELECT ").unwrap_or(&value));
    }
    let mut body = "BEGIN ATOMIC\n".to_string();
    for statement in statements {
        body.push_str(&format!(" {};\n", cx.kept_text(statement)));
    }
    body + "END"
}

/// An argument as a definition has it.
fn declared(cx: &CatalogCx<'_>, argument: &Argument, with_default: bool) -> String {
    let mut words = Vec::new();
    match argument.mode {
        Mode::Out => words.push("OUT".to_string()),
        Mode::InOut => words.push("INOUT".to_string()),
        Mode::Variadic => words.push("VARIADIC".to_string()),
        Mode::In | Mode::Table => {}
    }
    if !argument.name.is_empty() {
        words.push(quote_ident(&argument.name).into_owned());
    }
    words.push(cx.type_of(argument.ty));
    if let Some(default) = argument.default.as_ref().filter(|_| with_default) {
        words.push(format!("DEFAULT {}", cx.kept_text(default)));
    }
    words.join(" ")
}

fn arguments(cx: &CatalogCx<'_>, function: &Function, identity: bool) -> String {
    let all = function.arguments.iter();
    let shown = all.filter(|one| match one.mode {
        Mode::In | Mode::InOut | Mode::Variadic | Mode::Out => true,
        Mode::Table => false,
    });
    let in_words = |one: &Argument| {
        let text = declared(cx, one, !identity);
        // PostgreSQL writes IN where other arguments have a mode.
        match function.is_procedure && one.mode == Mode::In {
            true => format!("IN {text}"),
            false => text,
        }
    };
    shown.map(in_words).collect::<Vec<_>>().join(", ")
}

fn result(cx: &CatalogCx<'_>, function: &Function) -> String {
    let is_table = function.outputs().any(|one| one.mode == Mode::Table);
    if is_table {
        let columns = function.outputs().map(|one| declared(cx, one, false));
        return format!("TABLE({})", columns.collect::<Vec<_>>().join(", "));
    }
    if let Some(row) = function.row_of {
        let mut relations = cx.database.relations();
        let row = relations.find(|(_, _, id)| *id == row);
        let has = |database: &Database, full: &str| database.has_relation(full);
        let row = row.map_or_else(|| "-".into(), |(name, ..)| cx.shown_name(name, has));
        return match function.gives_rows() {
            true => format!("SETOF {row}"),
            false => row,
        };
    }
    match function.returns {
        Returns::Void => "void".into(),
        Returns::One(ty) => cx.type_of(ty),
        Returns::Each(ty) => format!("SETOF {}", cx.type_of(ty)),
        Returns::Row => "record".into(),
        Returns::Rows => "SETOF record".into(),
    }
}

/// What `pg_get_function_result` and its like tell; `None`: there is no such function of users.
pub(super) fn told(cx: &CatalogCx<'_>, name: &str, id: u32) -> Option<Datum> {
    let function = cx.routine(id)?;
    Some(match name {
        "pg_get_function_result" if function.is_procedure => Datum::Null,
        "pg_get_function_result" => text(result(cx, function)),
        "pg_get_function_arguments" => text(arguments(cx, function, false)),
        "pg_get_functiondef" => text(definition(cx, function)),
        "pg_get_function_sqlbody" if matches!(function.body, Body::Text(_)) => Datum::Null,
        "pg_get_function_sqlbody" => text(parsed_body(cx, function)),
        _ => text(arguments(cx, function, true)),
    })
}

/// `pg_get_functiondef`: the statement that makes it again.
fn definition(cx: &CatalogCx<'_>, function: &Function) -> String {
    let word = function.noun().to_uppercase();
    let name = cx.qualified(&function.name);
    let arguments = arguments(cx, function, false);
    let mut made = format!("CREATE OR REPLACE {word} {name}({arguments})\n");
    if !function.is_procedure {
        made.push_str(&format!(" RETURNS {}\n", result(cx, function)));
    }
    made.push_str(" LANGUAGE sql\n");
    let mut words: Vec<String> = Vec::new();
    match function.lasts {
        Lasts::Immutable => words.push("IMMUTABLE".into()),
        Lasts::Stable => words.push("STABLE".into()),
        Lasts::Volatile => {}
    }
    match function.parallel {
        Parallel::Safe => words.push("PARALLEL SAFE".into()),
        Parallel::Restricted => words.push("PARALLEL RESTRICTED".into()),
        Parallel::Unsafe => {}
    }
    if function.strict {
        words.push("STRICT".into());
    }
    if function.definer {
        words.push("SECURITY DEFINER".into());
    }
    if function.leakproof {
        words.push("LEAKPROOF".into());
    }
    words.extend(function.cost.map(|cost| format!("COST {cost}")));
    words.extend(function.rows.map(|rows| format!("ROWS {rows}")));
    if !words.is_empty() {
        made.push_str(&format!(" {}\n", words.join(" ")));
    }
    for (name, value) in &function.settings {
        let value = match name.as_str() {
            "search_path" => path_literals(value),
            _ => format!("'{}'", value.replace('\'', "''")),
        };
        made.push_str(&format!(" SET {name} TO {value}\n"));
    }
    match &function.body {
        Body::Text(body) => {
            let mut tag = format!("${}$", function.noun());
            while body.contains(&tag) {
                tag.insert(1, 'x');
            }
            made.push_str(&format!("AS {tag}{body}{tag}\n"));
        }
        Body::Parsed { .. } => made.push_str(&format!("{}\n", parsed_body(cx, function))),
    }
    made
}

/// A path as a list of literals.
fn path_literals(setting: &str) -> String {
    let names = path::listed(setting).unwrap_or_default().into_iter();
    let names = names.map(|name| format!("'{}'", name.replace('\'', "''")));
    match names.collect::<Vec<_>>().join(", ") {
        empty if empty.is_empty() => "''".into(),
        list => list,
    }
}

/// `oid::regproc` and `oid::regprocedure` of a function of users.
pub(super) fn shown(cx: &CatalogCx<'_>, id: u32, with_types: bool) -> Option<String> {
    let function = cx.routine(id)?;
    let has = |database: &Database, full: &str| !database.functions_named(full).is_empty();
    let name = cx.shown_name(&function.name, has);
    if !with_types {
        return Some(name);
    }
    let types = function.input_types().into_iter().map(|ty| cx.type_of(ty));
    Some(format!("{name}({})", types.collect::<Vec<_>>().join(",")))
}

/// The function of users that a text names, with or without the types of its arguments; without
/// them only if it is the only one.
pub(super) fn find(cx: &CatalogCx<'_>, text: &str) -> Option<u32> {
    let (name, types) = match text.split_once('(') {
        Some((name, types)) => (name, Some(types.trim_end().strip_suffix(')')?)),
        None => (text, None),
    };
    let parts = names::parts(name).ok()?;
    let path = cx.path();
    let schemas = match parts.as_slice() {
        [_] => path,
        [schema, _] => vec![cx.database.schema(schema)?],
        _ => return None,
    };
    let name = parts.last()?;
    let fits = |function: &Function| {
        let Some(types) = types else { return true };
        let given = types.split(',').map(str::trim).filter(|ty| !ty.is_empty());
        let own = function.input_types();
        let same = |(ty, given): (&Type, &str)| {
            let oid = enums::find(cx, given).or_else(|| names::find_type(given));
            oid == Some(ty.oid()) || cx.type_of(*ty) == given
        };
        given.clone().count() == own.len() && own.iter().zip(given).all(same)
    };
    let named = schemas.iter().flat_map(|schema| {
        let full = base::full_name::full(*schema, name);
        cx.database.functions_named(&full)
    });
    let mut found = named.filter(|function| fits(function));
    match (found.next(), found.next(), types) {
        (Some(found), None, _) | (Some(found), _, Some(_)) => Some(found.id),
        _ => None,
    }
}

/// Schema and name by which `information_schema` tells functions of one name apart.
pub(super) fn specific(cx: &CatalogCx<'_>, function: &Function) -> [Datum; 3] {
    [
        text(cx.database.name.as_str()),
        cx.schema(&function.name),
        text(format!("{}_{}", own(&function.name), function.id)),
    ]
}

/// `information_schema.routines`, of functions of users.
pub(super) fn routines(cx: &CatalogCx<'_>, out: &mut RowBatch) {
    for function in cx.database.all_functions() {
        let mut row = vec![Datum::Null; 82];
        let mut set = |at: usize, values: Vec<Datum>| {
            for (place, value) in row[at..].iter_mut().zip(values) {
                *place = value;
            }
        };
        let [database, schema, name] = specific(cx, function);
        let named = [database.clone(), schema.clone(), text(own(&function.name))];
        set(0, vec![database.clone(), schema, name]);
        set(3, named.into());
        set(6, vec![text(function.noun().to_uppercase())]);
        let returned = match function.returns {
            Returns::One(ty) | Returns::Each(ty) => {
                let (of, udt) = schema::udt(cx, ty);
                Some((schema::type_word(ty), of.to_owned(), udt))
            }
            Returns::Void if function.is_procedure => None,
            Returns::Void => Some(("void".into(), "pg_catalog".into(), "void".into())),
            Returns::Row | Returns::Rows => {
                Some(("record".into(), "pg_catalog".into(), "record".into()))
            }
        };
        if let Some((word, of, udt)) = returned {
            set(13, vec![text(word)]);
            set(28, vec![database, text(of), text(udt)]);
            set(35, vec![text("0")]);
        }
        let body = match &function.body {
            Body::Text(body) => text(body.as_str()),
            Body::Parsed { .. } => text(parsed_body(cx, function)),
        };
        let nulls = match function.is_procedure {
            true => Datum::Null,
            false => yes_no(function.strict),
        };
        set(36, vec![text("SQL"), body, Datum::Null, text("SQL")]);
        set(
            40,
            vec![text("GENERAL"), yes_no(function.lasts == Lasts::Immutable)],
        );
        set(42, vec![text("MODIFIES"), nulls]);
        set(45, vec![yes_no(true), int(0)]);
        set(
            49,
            vec![text(if function.definer {
                "DEFINER"
            } else {
                "INVOKER"
            })],
        );
        set(53, vec![yes_no(false)]);
        set(57, vec![yes_no(false)]);
        out.push(row);
    }
}

/// `information_schema.parameters`, of functions of users.
pub(super) fn parameters(cx: &CatalogCx<'_>, out: &mut RowBatch) {
    for function in cx.database.all_functions() {
        for (at, argument) in function.arguments.iter().enumerate() {
            let (of, udt) = schema::udt(cx, argument.ty);
            let mut row = Vec::from(specific(cx, function));
            row.extend([
                int(at + 1),
                text(match argument.mode {
                    Mode::In | Mode::Variadic => "IN",
                    Mode::InOut => "INOUT",
                    Mode::Out | Mode::Table => "OUT",
                }),
                yes_no(false),
                yes_no(false),
                match argument.name.as_str() {
                    "" => Datum::Null,
                    name => text(name),
                },
                text(schema::type_word(argument.ty)),
            ]);
            row.resize(23, Datum::Null);
            row.extend([text(cx.database.name.as_str()), text(of), text(udt)]);
            row.resize(30, Datum::Null);
            let default = argument.default.as_ref();
            row.push(text((at + 1).to_string()));
            row.push(optional(default.map(|default| cx.kept_text(default))));
            out.push(row);
        }
    }
}

/// Rows of pg_depend: what bodies of the SQL standard use.
pub(super) fn depend(cx: &CatalogCx<'_>, out: &mut RowBatch) {
    for function in cx.database.all_functions() {
        for used in function.uses().iter().chain(&function.row_of) {
            let class = match cx.routine(*used) {
                Some(_) => PG_PROC,
                None => PG_CLASS,
            };
            out.push([
                oid(PG_PROC),
                oid(function.id),
                int(0),
                oid(class),
                oid(*used),
                int(0),
                letter('n'),
            ]);
        }
    }
}

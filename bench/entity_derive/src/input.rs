//! Reads a struct with its attributes, and refuses what is no entity.

use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{Attribute, Data, DeriveInput, Error, Fields, Ident, LitStr, Path, Result, Token, Type};

/// As `entity::model::NAME_BYTES_MAX`.
const NAME_BYTES_MAX: usize = 40;

/// As `entity::model::COLUMNS_MAX`.
const COLUMNS_MAX: usize = 100;

/// A struct that is an entity.
pub(crate) struct Input {
    pub(crate) ident: Ident,
    pub(crate) name: String,
    pub(crate) parent: Option<Path>,
    pub(crate) fields: Vec<Field>,
    pub(crate) indexes: Vec<Index>,
}

/// A field, which is a column.
pub(crate) struct Field {
    pub(crate) ident: Ident,
    pub(crate) name: String,
    pub(crate) ty: Type,
    pub(crate) id: bool,
    pub(crate) group: bool,
    pub(crate) generated: bool,
    pub(crate) immutable: bool,
}

/// An index by the positions of its fields.
pub(crate) struct Index {
    pub(crate) name: String,
    pub(crate) columns: Vec<usize>,
}

/// What `#[entity(..)]` says.
#[derive(Default)]
struct Said {
    name: Option<LitStr>,
    parent: Option<Path>,
    indexes: Vec<(proc_macro2::Span, Vec<Ident>)>,
}

impl Input {
    pub(crate) fn read(input: &DeriveInput) -> Result<Input> {
        let Data::Struct(data) = &input.data else {
            return Err(Error::new(input.ident.span(), "an entity is a struct"));
        };
        let Fields::Named(named) = &data.fields else {
            let words = "the fields of an entity have names";
            return Err(Error::new(input.ident.span(), words));
        };
        if !input.generics.params.is_empty() {
            let words = "an entity has no type parameters and no lifetimes";
            return Err(Error::new(input.generics.span(), words));
        }
        let said = Said::read(&input.attrs)?;
        let mut fields = Vec::new();
        for field in &named.named {
            fields.push(Field::read(field)?);
        }
        check_ids(&input.ident, &mut fields, said.parent.as_ref())?;
        let indexes = indexes(&said.indexes, &mut fields)?;
        let name = match &said.name {
            Some(name) => {
                check_name(name.span(), &name.value())?;
                name.value()
            }
            None => {
                let name = snake_case(&input.ident.unraw().to_string());
                check_name(input.ident.span(), &name)?;
                name
            }
        };
        Ok(Input {
            ident: input.ident.clone(),
            name,
            parent: said.parent,
            fields,
            indexes,
        })
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = &Field> {
        self.fields.iter().filter(|field| field.id)
    }

    /// The positions of the ids that name the group.
    pub(crate) fn group(&self) -> Vec<usize> {
        let all = self.fields.iter().enumerate();
        all.filter(|(_, f)| f.group).map(|(n, _)| n).collect()
    }

    pub(crate) fn generated(&self) -> Option<usize> {
        self.fields.iter().position(|field| field.generated)
    }
}

impl Said {
    fn read(attributes: &[Attribute]) -> Result<Said> {
        let mut said = Said::default();
        for attribute in attributes {
            if !attribute.path().is_ident("entity") {
                for own in ["id", "group", "generated", "immutable"] {
                    if attribute.path().is_ident(own) {
                        let words = format!("#[{own}] belongs to a field");
                        return Err(Error::new(attribute.span(), words));
                    }
                }
                continue;
            }
            attribute.parse_nested_meta(|meta| {
                if meta.path.is_ident("name") {
                    once(&meta, said.name.is_some())?;
                    said.name = Some(meta.value()?.parse()?);
                } else if meta.path.is_ident("parent") {
                    once(&meta, said.parent.is_some())?;
                    said.parent = Some(meta.value()?.parse()?);
                } else if meta.path.is_ident("index") {
                    let content;
                    syn::parenthesized!(content in meta.input);
                    let columns = content.parse_terminated(Ident::parse_any, Token![,])?;
                    said.indexes
                        .push((meta.path.span(), columns.into_iter().collect()));
                } else {
                    return Err(
                        meta.error("expected `name = \"..\"`, `parent = Type` or `index(..)`")
                    );
                }
                Ok(())
            })?;
        }
        Ok(said)
    }
}

fn once(meta: &syn::meta::ParseNestedMeta<'_>, is_said: bool) -> Result<()> {
    if is_said {
        return Err(meta.error("said twice"));
    }
    Ok(())
}

impl Field {
    fn read(field: &syn::Field) -> Result<Field> {
        let ident = field.ident.clone().expect("the fields have names");
        let name = ident.unraw().to_string();
        check_name(ident.span(), &name)?;
        let mut read = Field {
            name,
            ty: field.ty.clone(),
            id: false,
            group: false,
            generated: false,
            immutable: false,
            ident,
        };
        for attribute in &field.attrs {
            let path = attribute.path();
            let flag = if path.is_ident("id") {
                &mut read.id
            } else if path.is_ident("group") {
                &mut read.group
            } else if path.is_ident("generated") {
                &mut read.generated
            } else if path.is_ident("immutable") {
                &mut read.immutable
            } else if path.is_ident("entity") {
                let words = "#[entity(..)] belongs to the struct; fields have #[id], #[group], \
                             #[generated] and #[immutable]";
                return Err(Error::new(attribute.span(), words));
            } else {
                continue;
            };
            attribute.meta.require_path_only()?;
            if *flag {
                return Err(Error::new(attribute.span(), "said twice"));
            }
            *flag = true;
        }
        Ok(read)
    }
}

fn check_ids(ident: &Ident, fields: &mut [Field], parent: Option<&Path>) -> Result<()> {
    if fields.len() > COLUMNS_MAX {
        let words = format!("an entity has at most {COLUMNS_MAX} fields");
        return Err(Error::new(ident.span(), words));
    }
    if !fields.iter().any(|field| field.id) {
        let words = "an entity has an id: mark its fields by #[id]";
        return Err(Error::new(ident.span(), words));
    }
    let mut is_past = false;
    let mut is_generated = false;
    for field in fields.iter() {
        let error = |words: &str| Err(Error::new(field.ident.span(), words));
        if field.id && is_past {
            return error("ids come first: move this field before those without #[id]");
        }
        is_past = !field.id;
        if field.group && !field.id {
            return error("a #[group] field is part of the id, too: mark it by #[id]");
        }
        if field.generated && !field.id {
            return error("only an id is generated: mark the field by #[id], too");
        }
        if field.generated && is_generated {
            return error("only one id of an entity is generated");
        }
        is_generated |= field.generated;
    }
    if !fields.iter().any(|field| field.group) {
        if let Some(parent) = parent {
            let words = "mark the ids that name the parent's group by #[group]";
            return Err(Error::new(parent.span(), words));
        }
        for field in fields.iter_mut() {
            field.group = field.id;
        }
    }
    for field in fields.iter_mut() {
        field.immutable |= field.id;
    }
    Ok(())
}

fn indexes(said: &[(proc_macro2::Span, Vec<Ident>)], fields: &mut [Field]) -> Result<Vec<Index>> {
    let mut indexes: Vec<Index> = Vec::new();
    for (span, idents) in said {
        if idents.is_empty() {
            return Err(Error::new(*span, "an index has columns: index(a, b)"));
        }
        let mut columns = Vec::new();
        for ident in idents {
            let Some(column) = fields.iter().position(|field| field.ident == *ident) else {
                return Err(Error::new(ident.span(), format!("no field `{ident}`")));
            };
            if columns.contains(&column) {
                return Err(Error::new(ident.span(), "a column is in an index once"));
            }
            columns.push(column);
            fields[column].immutable = true;
        }
        let names: Vec<&str> = columns.iter().map(|&n| fields[n].name.as_str()).collect();
        let name = names.join("_");
        check_name(*span, &name)?;
        if indexes.iter().any(|index| index.name == name) {
            return Err(Error::new(*span, format!("two indexes are named `{name}`")));
        }
        indexes.push(Index { name, columns });
    }
    Ok(indexes)
}

fn check_name(span: proc_macro2::Span, name: &str) -> Result<()> {
    let mut bytes = name.bytes();
    let starts = bytes.next().is_some_and(|b| b.is_ascii_lowercase());
    let fits = bytes.all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
    if starts && fits && name.len() <= NAME_BYTES_MAX {
        return Ok(());
    }
    let words = format!(
        "`{name}` cannot be a name in a store: a lower-case letter, then lower-case letters, \
         digits and _, at most {NAME_BYTES_MAX} bytes"
    );
    Err(Error::new(span, words))
}

fn snake_case(name: &str) -> String {
    let mut out = String::new();
    let mut was_lower = false;
    for c in name.chars() {
        if c.is_uppercase() && was_lower {
            out.push('_');
        }
        was_lower = !c.is_uppercase();
        out.extend(c.to_lowercase());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(text: &str) -> String {
        let input = syn::parse_str(text).expect("the struct is Rust");
        match Input::read(&input) {
            Ok(_) => "none".to_owned(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn names_follow_the_struct() {
        assert_eq!(snake_case("AuctionItem"), "auction_item");
        assert_eq!(snake_case("Item2D"), "item2_d");
        assert_eq!(snake_case("HTTPLog"), "httplog");
    }

    #[test]
    fn what_is_no_entity_is_refused_in_words() {
        let cases = [
            ("struct A { #[id] a: i64 }", "none"),
            ("enum A { B }", "an entity is a struct"),
            ("struct A(i64);", "the fields of an entity have names"),
            ("struct A<T> { #[id] a: T }", "no type parameters"),
            ("struct A {}", "an entity has an id"),
            ("struct A { a: i64 }", "an entity has an id"),
            ("struct A { a: i64, #[id] b: i64 }", "ids come first"),
            (
                "struct A { #[id] a: i64, #[group] b: i64 }",
                "part of the id",
            ),
            (
                "struct A { #[id] a: i64, #[generated] b: i64 }",
                "only an id",
            ),
            (
                "struct A { #[id] #[generated] a: i64, #[id] #[generated] b: i64 }",
                "only one id",
            ),
            ("struct A { #[id] #[id] a: i64 }", "said twice"),
            ("struct A { #[id(x)] a: i64 }", "expected"),
            ("#[id] struct A { a: i64 }", "#[id] belongs to a field"),
            ("struct A { #[entity(id)] a: i64 }", "belongs to the struct"),
            ("#[entity(x)] struct A { #[id] a: i64 }", "expected `name"),
            (
                "#[entity(index())] struct A { #[id] a: i64 }",
                "has columns",
            ),
            (
                "#[entity(index(b))] struct A { #[id] a: i64 }",
                "no field `b`",
            ),
            ("#[entity(index(a, a))] struct A { #[id] a: i64 }", "once"),
            (
                "#[entity(index(a), index(a))] struct A { #[id] a: i64 }",
                "two indexes",
            ),
            (
                "#[entity(name = \"a\", name = \"b\")] struct A { #[id] a: i64 }",
                "said twice",
            ),
            (
                "#[entity(parent = B)] struct A { #[id] a: i64 }",
                "by #[group]",
            ),
            (
                "#[entity(name = \"A b\")] struct A { #[id] a: i64 }",
                "cannot be a name",
            ),
            ("struct A { #[id] größe: i64 }", "cannot be a name"),
            ("struct Ä { #[id] a: i64 }", "cannot be a name"),
        ];
        for (text, words) in cases {
            let found = problem(text);
            assert!(found.contains(words), "{text}: {found}");
        }
    }

    #[test]
    fn groups_and_immutable_columns_follow_from_ids_and_indexes() {
        let text = "#[entity(index(c))] struct A { #[id] a: i64, #[id] b: i64, c: i64, d: i64 }";
        let input = syn::parse_str(text).expect("the struct is Rust");
        let input = Input::read(&input).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(input.group(), [0, 1]);
        let immutable: Vec<bool> = input.fields.iter().map(|field| field.immutable).collect();
        assert_eq!(immutable, [true, true, true, false]);
    }
}

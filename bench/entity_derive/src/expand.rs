//! Writes the implementation of `entity::Entity`.

use crate::input::{Field, Input};
use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;

/// The implementation, and the checks that only the compiler can make.
pub(crate) fn expand(input: &Input) -> TokenStream {
    let ident = &input.ident;
    let kind = entity_type(input);
    let ids: Vec<&Field> = input.ids().collect();
    let groups: Vec<&Field> = input.fields.iter().filter(|field| field.group).collect();
    let (id_type, id_row) = key(&ids);
    let (group_type, group_row) = key(&groups);
    let rows = rows(input);
    let checks = checks(input);
    quote! {
        const _: () = {
            #kind
            #checks

            impl ::entity::Entity for #ident {
                const TYPE: &'static ::entity::EntityType = &KIND;
                type Id = #id_type;
                type Group = #group_type;

                fn id_values(
                    id: &Self::Id,
                ) -> impl ::core::convert::AsRef<[::entity::Value]> {
                    [#(#id_row),*]
                }

                fn group_values(
                    id: &Self::Group,
                ) -> impl ::core::convert::AsRef<[::entity::Value]> {
                    [#(#group_row),*]
                }

                #rows
            }
        };
    }
}

/// The functions between fields and rows.
fn rows(input: &Input) -> TokenStream {
    let ident = &input.ident;
    let writes = input.fields.iter().enumerate().map(|(n, field)| {
        let Field { ident, ty, .. } = field;
        quote!(<#ty as ::entity::Field>::write(&self.#ident, &mut row[#n]))
    });
    let from_values = input.fields.iter().map(|field| {
        let Field { ident, .. } = field;
        let value = from_value(input, field, quote!(values.next()));
        quote!(#ident: #value)
    });
    let entity_name = &input.name;
    let count = input.fields.len();
    let take = input.generated().map(|position| {
        let field = &input.fields[position];
        let ident = &field.ident;
        let value = from_value(input, field, quote!(row.get(#position).cloned()));
        quote!(self.#ident = #value;)
    });
    quote! {
        fn write(&self, row: &mut ::entity::Row) {
            row.resize(#count, ::entity::Value::Null);
            #(#writes;)*
        }

        fn from_row(
            row: ::entity::Row,
        ) -> ::core::result::Result<Self, ::entity::Mismatch> {
            if row.len() != #count {
                return ::core::result::Result::Err(::entity::Mismatch {
                    entity: #entity_name,
                    column: ::core::option::Option::None,
                });
            }
            let mut values = row.into_iter();
            ::core::result::Result::Ok(#ident { #(#from_values),* })
        }

        fn take_generated(
            &mut self,
            row: &[::entity::Value],
        ) -> ::core::result::Result<(), ::entity::Mismatch> {
            let _ = row;
            #take
            ::core::result::Result::Ok(())
        }
    }
}

/// The type of a key, and its values from `id`.
fn key(fields: &[&Field]) -> (TokenStream, Vec<TokenStream>) {
    if let [field] = fields {
        let ty = &field.ty;
        return (
            quote!(#ty),
            vec![quote!(<#ty as ::entity::Field>::to_value(id))],
        );
    }
    let types = fields.iter().map(|field| &field.ty);
    let values = fields.iter().enumerate().map(|(n, field)| {
        let ty = &field.ty;
        let n = syn::Index::from(n);
        quote!(<#ty as ::entity::Field>::to_value(&id.#n))
    });
    let values = values.collect();
    (quote!((#(#types),*)), values)
}

/// The field from an optional value, or an early return.
fn from_value(input: &Input, field: &Field, value: TokenStream) -> TokenStream {
    let Field { name, ty, .. } = field;
    let entity_name = &input.name;
    quote! {
        match #value.and_then(<#ty as ::entity::Field>::from_value) {
            ::core::option::Option::Some(value) => value,
            ::core::option::Option::None => {
                return ::core::result::Result::Err(::entity::Mismatch {
                    entity: #entity_name,
                    column: ::core::option::Option::Some(#name),
                });
            }
        }
    }
}

fn entity_type(input: &Input) -> TokenStream {
    let name = &input.name;
    let columns = input.fields.iter().map(|field| {
        let Field {
            name,
            ty,
            immutable,
            ..
        } = field;
        quote_spanned! {ty.span()=>
            ::entity::Column {
                name: ::entity::model::Cow::Borrowed(#name),
                kind: <#ty as ::entity::Field>::KIND,
                nullable: <#ty as ::entity::Field>::NULLABLE,
                immutable: #immutable,
            }
        }
    });
    let id_count = input.ids().count();
    let group = input.group();
    let generated = match input.generated() {
        Some(position) => quote!(::core::option::Option::Some(#position)),
        None => quote!(::core::option::Option::None),
    };
    let index_names = input.indexes.iter().map(|index| &index.name);
    let index_columns = input.indexes.iter().map(|index| &index.columns);
    let group_name = match &input.parent {
        Some(parent) => {
            quote!(::entity::model::static_group_name(<#parent as ::entity::Entity>::TYPE))
        }
        None => quote!(#name),
    };
    quote! {
        const COLUMNS: &[::entity::Column] = &[#(#columns),*];
        const INDEXES: &[::entity::Index] = &[#(::entity::Index {
            name: ::entity::model::Cow::Borrowed(#index_names),
            columns: ::entity::model::Cow::Borrowed(&[#(#index_columns),*]),
        }),*];
        static KIND: ::entity::EntityType = ::entity::EntityType {
            name: ::entity::model::Cow::Borrowed(#name),
            group_name: ::entity::model::Cow::Borrowed(#group_name),
            columns: ::entity::model::Cow::Borrowed(COLUMNS),
            id_count: #id_count,
            group: ::entity::model::Cow::Borrowed(&[#(#group),*]),
            generated: #generated,
            indexes: ::entity::model::Cow::Borrowed(INDEXES),
        };
    }
}

/// Checks of types, each at the place of its field.
fn checks(input: &Input) -> TokenStream {
    let in_index = |n: usize| input.indexes.iter().any(|index| index.columns.contains(&n));
    let keys = input.fields.iter().enumerate().filter_map(|(n, field)| {
        let ty = &field.ty;
        (field.id || in_index(n))
            .then(|| quote_spanned!(ty.span()=> const _: () = ::entity::value::is_key::<#ty>();))
    });
    let generated = input.generated().map(|position| {
        let ty = &input.fields[position].ty;
        quote_spanned!(ty.span()=> const _: () = ::entity::value::is_generated::<#ty>();)
    });
    let parent = input.parent.as_ref().map(|parent| {
        let words = format!(
            "the #[group] ids of `{}` must be as many as those of its parent, and of the same \
             kinds",
            input.ident
        );
        quote_spanned! {parent.span()=>
            const _: () = ::core::assert!(
                ::entity::model::shares_static_group(
                    &KIND,
                    <#parent as ::entity::Entity>::TYPE,
                ),
                #words
            );
        }
    });
    quote! {
        #(#keys)*
        #generated
        #parent
    }
}

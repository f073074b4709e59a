//! `#[derive(Entity)]`: the type of an entity, and its rows, from a struct.
//!
//! ```text
//! #[derive(Entity)]
//! #[entity(name = "bid", parent = AuctionItem, index(user_id))]
//! struct Bid {
//!     #[id] #[group]     seller_id: i64,
//!     #[id] #[group]     item_no: i64,
//!     #[id] #[generated] bid_no: i64,
//!     #[immutable]       placed_us: i64,
//!                        amount: f64,
//!                        user_id: i64,
//! }
//! ```
//!
//! | attribute | meaning |
//! |---|---|
//! | `#[id]` | part of the primary key; ids are the first fields |
//! | `#[group]` | part of the group's key; without any, each entity is a group of its own |
//! | `#[generated]` | the store gives this id its value; an integer |
//! | `#[immutable]` | set at creation and never changed; ids and columns of indexes are, anyway |
//! | `name = ".."` | the type's name; else the struct's, as `auction_item` for `AuctionItem` |
//! | `parent = T` | the entity belongs to the groups of `T`, whose key has the same kinds |
//! | `index(a, b)` | entities are found by these columns; the index is named `a_b` |
//!
//! What is wrong in a struct is an error of the compiler, at its place.

#![warn(missing_docs)]

mod expand;
mod input;

/// Derives `entity::Entity` for a struct. See the documentation of this crate.
#[proc_macro_derive(Entity, attributes(entity, id, group, generated, immutable))]
pub fn derive_entity(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let input = syn::parse_macro_input!(input as syn::DeriveInput);
    input::Input::read(&input)
        .map_or_else(
            |error| error.to_compile_error(),
            |input| expand::expand(&input),
        )
        .into()
}

//! Histories as text: the format of Jepsen and Elle, in EDN and in JSON.
//!
//! Two operations per transaction, `invoke` and then `ok`, `fail` or `info`, one per line or all in
//! one vector (array):
//!
//! ```text
//! {:type :invoke, :process 3, :time 17, :index 4, :f :txn, :value [[:append 3 2] [:r 3 nil]]}
//! {:type :ok, :process 3, :time 25, :index 7, :f :txn, :value [[:append 3 2] [:r 3 [1 2]]]}
//! ```
//!
//! | micro-operation | is |
//! |---|---|
//! | `[:append k v]`, `[:r k [v ...]]` | list-append |
//! | `[:w k v]`, `[:r k v]` | rw-register |
//! | `[:delete k]` | a delete of a register |
//! | `[:range low high [[k v] ...]]`, `[:lists low high [[k [v ...]] ...]]` | predicate reads |
//! | `[:add k d]`, `[:count k v]` | increment and read of a counter |
//! | `[:compare k b :at-least]`, `[:compare k b :below]` | on which side of a bound a counter was |
//! | `[:table [[k v] ...]]` | a read of a whole table |
//!
//! The first two rows are Elle's, the others ours. `nil` for what was read means nothing was there,
//! or in `invoke`, `fail` and `info` that no answer came. Keys may be numbers, keywords or strings;
//! values are whole numbers, not negative. Operations of processes that are no numbers (such as
//! `:nemesis`) and with an `:f` other than `:txn` are skipped. If every operation has a `:time`
//! that is what counts, otherwise the order of the text.

mod edn;
mod form;
mod json;
mod reader;
mod writer;

pub use form::{ReadError, Wrong};
pub use reader::read;
pub use writer::write;

/// How a history is written down.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// Extensible data notation, Clojure's own.
    Edn,
    /// JSON, names as strings without colons.
    Json,
}

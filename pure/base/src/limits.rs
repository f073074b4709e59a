//! Sizes that several crates must agree on, each with the reason for its value.

/// Largest frame between nodes, in bytes. A peer that announces more is disconnected before
/// anything is reserved for it. Larger records are cut into chunks.
pub const FRAME_BYTES_MAX: usize = 18 << 20;

/// Most columns of a table that a client may name, as in PostgreSQL. Row headers count them in 16
/// bits.
pub const COLUMNS_MAX: usize = 1600;

/// Most columns of a result, as in PostgreSQL.
pub const RESULT_COLUMNS_MAX: usize = 1664;

/// Most columns of one index, as in PostgreSQL.
pub const INDEX_COLUMNS_MAX: usize = 32;

/// Longest identifier in bytes; longer ones are truncated as PostgreSQL does.
pub const NAME_BYTES_MAX: usize = 63;

/// Longest encoded key in bytes. Keys travel in lock requests and abort messages, so a long one
/// would cost on every path; PostgreSQL's own limit is about 2,700 bytes.
pub const KEY_BYTES_MAX: usize = 4096;

/// Longest encoded row in bytes: a row, its key and its record header fit into one frame.
pub const ROW_BYTES_MAX: usize = 8 << 20;

/// Longest program in bytes, and longest row that one emits: the rest of a frame is for the
/// operation around it, or for the rows before it in its batch.
pub const PROGRAM_BYTES_MAX: usize = FRAME_BYTES_MAX - (2 << 20);

/// Most parameters of a prepared statement: the wire counts them in 16 bits.
pub const PARAMETERS_MAX: usize = 65_535;

/// Longest statement text in bytes. Parsing is linear, but a plan of a larger text would not be.
pub const STATEMENT_BYTES_MAX: usize = 8 << 20;

/// Most words, numbers, strings and signs of a statement: parsing and planning are steps in which a
/// shard does nothing else.
pub const STATEMENT_WORDS_MAX: usize = 1_000_000;

/// Most significant decimal digits of a `numeric`: what 128 bits hold.
pub const NUMERIC_DIGITS_MAX: u8 = 38;

/// Largest precision of PostgreSQL's `numeric(precision, scale)`; larger ones than 255 are refused.
pub const NUMERIC_PRECISION_MAX: u64 = 1_000;

/// Longest comment on an object in bytes: comments are part of the catalog, and every change sends
/// all of it to all nodes.
pub const COMMENT_BYTES_MAX: usize = 8 << 10;

/// Bytes of a catalog, encoded, from which on nothing is added to it: each change sends and
/// journals all of it in one piece.
pub const CATALOG_BYTES_MAX: usize = 8 << 20;

/// Longest query of a view in bytes: views are part of the catalog, too.
pub const VIEW_BYTES_MAX: usize = 32 << 10;

/// Most views of a statement, with the views in them, and what their queries may have together in
/// bytes: each is parsed and bound where it is named, in a step of the shard.
pub const VIEW_USES_MAX: usize = 1000;
/// See [`VIEW_USES_MAX`].
pub const VIEWS_BYTES_MAX: usize = 256 << 10;

/// Longest `varchar(n)` and `char(n)` in characters, as in PostgreSQL.
pub const CHARACTERS_MAX: u32 = 10_485_760;

const _: () = assert!(2 * CATALOG_BYTES_MAX < FRAME_BYTES_MAX);
const _: () = assert!(ROW_BYTES_MAX + KEY_BYTES_MAX < FRAME_BYTES_MAX);
const _: () = assert!(COLUMNS_MAX <= u16::MAX as usize);
const _: () = assert!(STATEMENT_BYTES_MAX < FRAME_BYTES_MAX);

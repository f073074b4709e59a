//! Deep recursion on stacks that grow: statements may nest deeper than a thread's stack is.

/// Stack that must be left before a call that may recurse: more than the library's parser takes
/// between two of our own calls.
const RESERVE_BYTES: usize = if cfg!(debug_assertions) {
    512 << 10
} else {
    160 << 10
};
/// Size of a piece of new stack.
const PIECE_BYTES: usize = 4 << 20;

/// Runs `run`, on a new piece of stack if little of this one is left.
pub fn grown<T>(run: impl FnOnce() -> T) -> T {
    stacker::maybe_grow(RESERVE_BYTES, PIECE_BYTES, run)
}

/// Runs `run` with at least `bytes` of stack, besides the reserve.
pub fn with<T>(bytes: usize, run: impl FnOnce() -> T) -> T {
    let bytes = bytes + RESERVE_BYTES;
    stacker::maybe_grow(bytes, bytes + PIECE_BYTES, run)
}

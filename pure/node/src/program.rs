//! Decoding of programs that came from other nodes.

use base::codec::CodecError;
use std::sync::Arc;
use txn::RowProgram;

/// Makes a row program from its encoded form; all programs are `sql`'s.
///
/// # Errors
/// If the bytes are not a program.
pub(crate) fn decode(bytes: &[u8]) -> Result<Arc<dyn RowProgram>, CodecError> {
    expr::program::decode_program(bytes)
}

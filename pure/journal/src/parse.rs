//! Reading little-endian fields from a byte slice.

use crate::fault::Fault;

/// The rest of a byte slice.
pub(crate) struct Parser<'a>(pub(crate) &'a [u8]);

impl<'a> Parser<'a> {
    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], Fault> {
        let (array, rest) = self.0.split_first_chunk::<N>().ok_or(Fault::Truncated)?;
        self.0 = rest;
        Ok(*array)
    }
    pub(crate) fn u16(&mut self) -> Result<u16, Fault> {
        self.array().map(u16::from_le_bytes)
    }
    pub(crate) fn u32(&mut self) -> Result<u32, Fault> {
        self.array().map(u32::from_le_bytes)
    }
    pub(crate) fn u64(&mut self) -> Result<u64, Fault> {
        self.array().map(u64::from_le_bytes)
    }
    pub(crate) fn bytes(&mut self, len: usize) -> Result<&'a [u8], Fault> {
        let (bytes, rest) = self.0.split_at_checked(len).ok_or(Fault::Truncated)?;
        self.0 = rest;
        Ok(bytes)
    }
}

//! Functions of bit strings.

use super::*;
use functions::BitFunc;

pub(super) static TABLE: &[Function] = table! {
    "length" "bit_length": Func::Bits(BitFunc::Length) => (BIT) I4;
    "octet_length": Func::Bits(BitFunc::OctetLength) => (BIT) I4;
    "get_bit": Func::Bits(BitFunc::GetBit) => (BIT, I4) I4;
    "set_bit": Func::Bits(BitFunc::SetBit) => (BIT, I4, I4) BIT;
    "bit_count": Func::Bits(BitFunc::Count) => (BIT) I8;
    "substring": Func::Bits(BitFunc::Substring) => (BIT, I4) BIT, (BIT, I4, I4) BIT;
    "position": Func::Bits(BitFunc::Position) => (BIT, BIT) I4;
    "overlay": Func::Bits(BitFunc::Overlay) => (BIT, BIT, I4) BIT, (BIT, BIT, I4, I4) BIT;
};

/// Operators with two operands.
pub(super) static INFIX: &[Function] = table! {
    "&": Func::Bits(BitFunc::And) => (BIT, BIT) BIT;
    "|": Func::Bits(BitFunc::Or) => (BIT, BIT) BIT;
    "#": Func::Bits(BitFunc::Xor) => (BIT, BIT) BIT;
    "<<": Func::Bits(BitFunc::ShiftLeft) => (BIT, I4) BIT;
    ">>": Func::Bits(BitFunc::ShiftRight) => (BIT, I4) BIT;
    "||": Func::Bits(BitFunc::Concat) => (VARBIT, VARBIT) VARBIT;
};

/// Operators with one operand.
pub(super) static PREFIX: &[Function] = table! {
    "~": Func::Bits(BitFunc::Not) => (BIT) BIT;
};

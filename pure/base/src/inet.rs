//! Addresses of networks and hosts: `inet` and `cidr`.
//!
//! A value is an address of IPv4 or IPv6 and the number of its first bits that name the network. A
//! `cidr` has no other bits that are set; what else tells the two apart is the type of a column.

use crate::error::{SqlError, SqlState};
use alloc::vec::Vec;
use core::cmp::Ordering;
use serde::{Deserialize, Serialize};

/// Bits of an address of IPv4.
const BITS_V4: u8 = 32;
/// Bits of an address of IPv6.
const BITS_V6: u8 = 128;

/// An address with the length of its network part.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(try_from = "Parts", into = "Parts")]
pub struct Inet {
    is_v6: bool,
    bits: u8,
    /// Of IPv4 the first four; the others are 0.
    address: [u8; 16],
}

/// The form between nodes: whether it is IPv6, length of the network part, address.
type Parts = (bool, u8, [u8; 16]);

impl From<Inet> for Parts {
    fn from(value: Inet) -> Parts {
        (value.is_v6, value.bits, value.address)
    }
}

impl TryFrom<Parts> for Inet {
    type Error = &'static str;

    fn try_from((is_v6, bits, address): Parts) -> Result<Inet, &'static str> {
        let length = if is_v6 { 16 } else { 4 };
        let is_whole = address[length..].iter().all(|byte| *byte == 0);
        Inet::new(&address[..length], bits)
            .filter(|_| is_whole)
            .ok_or("a malformed address")
    }
}

impl Inet {
    /// The address of 4 or 16 bytes whose first `bits` bits are the network.
    pub fn new(bytes: &[u8], bits: u8) -> Option<Inet> {
        let is_v6 = match bytes.len() {
            4 => false,
            16 => true,
            _ => return None,
        };
        let mut address = [0; 16];
        address[..bytes.len()].copy_from_slice(bytes);
        let value = Inet {
            is_v6,
            bits,
            address,
        };
        (bits <= value.bits_max()).then_some(value)
    }

    /// Whether it is an address of IPv6.
    pub fn is_v6(&self) -> bool {
        self.is_v6
    }

    /// The length of the network part in bits.
    pub fn bits(&self) -> u8 {
        self.bits
    }

    /// Bits of the address.
    pub fn bits_max(&self) -> u8 {
        if self.is_v6 { BITS_V6 } else { BITS_V4 }
    }

    /// The address.
    pub fn bytes(&self) -> &[u8] {
        &self.address[..usize::from(self.bits_max() / 8)]
    }

    /// The address as a number.
    pub fn number(&self) -> u128 {
        let wide = u128::from_be_bytes(self.address);
        wide >> (u32::from(BITS_V6 - self.bits_max()))
    }

    /// The address of the same family that this number is, in a network of `bits` bits; higher bits
    /// of the number are dropped.
    #[must_use]
    pub fn with_number(&self, number: u128, bits: u8) -> Inet {
        let unused = u32::from(BITS_V6 - self.bits_max());
        Inet {
            is_v6: self.is_v6,
            bits: bits.min(self.bits_max()),
            address: (number << unused).to_be_bytes(),
        }
    }

    /// The number with all bits of an address of this family.
    pub fn all(&self) -> u128 {
        u128::MAX >> u32::from(BITS_V6 - self.bits_max())
    }

    /// The number whose bits are those of the network part.
    pub fn mask(&self) -> u128 {
        let host = u32::from(self.bits_max() - self.bits);
        let of_host = 1u128.checked_shl(host).map_or(u128::MAX, |end| end - 1);
        self.all() ^ (of_host & self.all())
    }

    /// The network: without the bits of the host.
    #[must_use]
    pub fn network(&self) -> Inet {
        self.with_number(self.number() & self.mask(), self.bits)
    }

    /// Whether no bit beyond the network part is set.
    pub fn is_network(&self) -> bool {
        self.network() == *self
    }

    /// How many of the first bits both have in common, at most those of both networks.
    fn common_bits(&self, other: &Inet) -> u8 {
        let different = (self.number() ^ other.number()) << (BITS_V6 - self.bits_max());
        let same = different.leading_zeros() as u8;
        same.min(self.bits).min(other.bits)
    }

    /// The smallest network that has both; `None` of different families.
    pub fn merged(&self, other: &Inet) -> Option<Inet> {
        let bits = self.common_bits(other);
        (self.is_v6 == other.is_v6).then(|| self.with_number(self.number(), bits).network())
    }

    /// Whether the network of `self` has that of `other`, or one of them the other if `either`.
    pub fn contains(&self, other: &Inet, equal: bool, either: bool) -> bool {
        if self.is_v6 != other.is_v6 {
            return false;
        }
        let common = self.common_bits(other);
        match (either, equal) {
            (true, _) => common == self.bits.min(other.bits),
            (_, true) => common == self.bits,
            (_, false) => common == self.bits && self.bits < other.bits,
        }
    }

    /// The order: IPv4 before IPv6, by the bits that both networks have, by the length of the
    /// network part, by the address.
    pub fn compare(&self, other: &Inet) -> Ordering {
        let both = self.bits.min(other.bits);
        let head = |one: &Inet| one.with_number(one.number(), both).network().address;
        self.is_v6
            .cmp(&other.is_v6)
            .then_with(|| head(self).cmp(&head(other)))
            .then_with(|| self.bits.cmp(&other.bits))
            .then_with(|| self.address.cmp(&other.address))
    }

    /// Bytes of [`Inet::write`].
    pub(crate) fn encoded_len(&self) -> usize {
        1 + self.bytes().len()
    }

    /// Appends the form that it has in a row: length of the network part, address.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        out.push(self.bits);
        out.extend_from_slice(self.bytes());
    }

    /// Reads what [`Inet::write`] has written.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Inet> {
        let (bits, address) = bytes.split_first()?;
        Inet::new(address, *bits)
    }
}

/// Families in the binary form of clients.
const WIRE_V4: u8 = 2;
const WIRE_V6: u8 = 3;

impl Inet {
    /// The binary form that clients know: family, length of the network part, whether it is a
    /// `cidr`, length of the address, address.
    pub(crate) fn to_wire(self, is_cidr: bool, out: &mut Vec<u8>) {
        let family = if self.is_v6 { WIRE_V6 } else { WIRE_V4 };
        let length = self.bytes().len() as u8;
        out.extend_from_slice(&[family, self.bits, u8::from(is_cidr), length]);
        out.extend_from_slice(self.bytes());
    }

    /// Reads what clients send.
    ///
    /// # Errors
    /// 22P03.
    pub(crate) fn from_wire(is_cidr: bool, bytes: &[u8]) -> Result<Inet, SqlError> {
        let name = if is_cidr { "cidr" } else { "inet" };
        let wrong = |what: &str| {
            let message = alloc::format!("invalid {what} in external \"{name}\" value");
            SqlError::new(SqlState::INVALID_BINARY, message)
        };
        let [family, bits, _, length, address @ ..] = bytes else {
            let message = "insufficient data left in message";
            return Err(SqlError::new(SqlState::PROTOCOL_VIOLATION, message));
        };
        let (bits_max, wanted) = match *family {
            WIRE_V4 => (BITS_V4, 4),
            WIRE_V6 => (BITS_V6, 16),
            _ => return Err(wrong("address family")),
        };
        if *bits > bits_max {
            return Err(wrong("bits"));
        }
        if *length != wanted {
            return Err(wrong("length"));
        }
        let value = Inet::new(address, *bits).filter(|_| address.len() == usize::from(wanted));
        let value = value.ok_or_else(|| wrong("length"))?;
        if is_cidr && !value.is_network() {
            let message = alloc::format!("invalid external \"{name}\" value");
            let error = SqlError::new(SqlState::INVALID_BINARY, message);
            return Err(error.detail("Value has bits set to right of mask."));
        }
        Ok(value)
    }
}

/// First bytes of key columns.
const KEY_V4: u8 = 0x02;
const KEY_V6: u8 = 0x03;

impl Inet {
    /// Appends bytes whose order is that of the addresses: family; for each eight bits of the
    /// network those bits and their count, as long as that is eight and there may be more; the
    /// whole address if the network is shorter than that.
    pub(crate) fn write_key(&self, out: &mut Vec<u8>) {
        out.push(if self.is_v6 { KEY_V6 } else { KEY_V4 });
        let network = self.network();
        for (at, byte) in network.bytes().iter().enumerate() {
            let left = self.bits.saturating_sub(at as u8 * 8).min(8);
            out.extend_from_slice(&[*byte, left]);
            if left < 8 {
                break;
            }
        }
        if self.bits < self.bits_max() {
            out.extend_from_slice(self.bytes());
        }
    }

    /// Reads what [`Inet::write_key`] has written, byte by byte; `first` was read already.
    pub(crate) fn read_key(first: u8, next: &mut dyn FnMut() -> Option<u8>) -> Option<Inet> {
        let length = match first {
            KEY_V4 => 4,
            KEY_V6 => 16,
            _ => return None,
        };
        let (mut address, mut bits) = ([0; 16], 0);
        for byte in &mut address[..length] {
            *byte = next()?;
            let more = next().filter(|more| *more <= 8)?;
            bits += more;
            if more < 8 {
                break;
            }
        }
        if usize::from(bits) < length * 8 {
            for byte in &mut address[..length] {
                *byte = next()?;
            }
        }
        Inet::new(&address[..length], bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Datum;
    use crate::text::{parse, to_string};
    use crate::types::Type;
    use alloc::string::ToString;

    fn read(text: &str) -> Inet {
        match parse(Type::Inet, text) {
            Ok(Datum::Inet(value)) => value,
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn keys_have_the_order_of_the_addresses() {
        let texts = [
            "0.0.0.0/0",
            "1.2.3.4/0",
            "10.0.0.0/8",
            "10.1.2.3/8",
            "10.0.0.0/9",
            "10.0.0.0/16",
            "10.0.0.1/16",
            "10.0.0.0/30",
            "10.0.0.0",
            "10.0.0.1",
            "10.128.0.0/9",
            "11.0.0.0/8",
            "255.255.255.255",
            "::/0",
            "::1/0",
            "::",
            "::1",
            "fe80::/10",
            "fe80::1/64",
            "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
        ];
        let values: Vec<Inet> = texts.iter().map(|text| read(text)).collect();
        for (i, a) in values.iter().enumerate() {
            for (j, b) in values.iter().enumerate() {
                let key = |value: &Inet| {
                    let mut out = Vec::new();
                    value.write_key(&mut out);
                    out
                };
                assert_eq!(a.compare(b), i.cmp(&j), "{a:?} {b:?}");
                assert_eq!(key(a).cmp(&key(b)), i.cmp(&j), "{a:?} {b:?}");
            }
            let mut out = Vec::new();
            a.write_key(&mut out);
            let mut rest = out.iter().copied();
            let first = rest.next().expect("a key has a first byte");
            assert_eq!(Inet::read_key(first, &mut || rest.next()), Some(*a));
            assert_eq!(rest.next(), None);
            assert_eq!(
                to_string(Type::Inet, &Datum::Inet(*a)),
                texts[i].to_string()
            );
        }
    }

    #[test]
    fn networks_have_hosts_and_networks() {
        let net = read("10.1.2.3/8");
        assert_eq!(net.network(), read("10.0.0.0/8"));
        assert_eq!(read("1.2.3.4/0").network(), read("0.0.0.0/0"));
        assert!(read("10.0.0.0/8").contains(&read("10.9.9.9"), false, false));
        assert!(!read("10.0.0.0/8").contains(&read("10.0.0.0/8"), false, false));
        assert!(read("10.0.0.0/8").contains(&read("10.0.0.0/8"), true, false));
        assert!(read("::/0").contains(&read("::1"), false, false));
        assert!(!read("::/0").contains(&read("1.2.3.4"), true, true));
        assert_eq!(
            read("192.168.1.5/24").merged(&read("192.168.2.5/24")),
            Some(read("192.168.0.0/22"))
        );
        assert_eq!(read("::1").merged(&read("::2")), Some(read("::/126")));
    }
}

//! Functions of network addresses.

use super::*;
use functions::NetFunc;

pub(super) static TABLE: &[Function] = table! {
    "abbrev": Func::Net(NetFunc::Abbrev) => (INET) TXT;
    "abbrev": Func::Net(NetFunc::AbbrevCidr) => (CIDR) TXT;
    "broadcast": Func::Net(NetFunc::Broadcast) => (INET) INET;
    "family": Func::Net(NetFunc::Family) => (INET) I4;
    "host": Func::Net(NetFunc::Host) => (INET) TXT;
    "hostmask": Func::Net(NetFunc::HostMask) => (INET) INET;
    "inet_merge": Func::Net(NetFunc::Merge) => (INET, INET) CIDR;
    "inet_same_family": Func::Net(NetFunc::SameFamily) => (INET, INET) BOOL;
    "masklen": Func::Net(NetFunc::MaskLen) => (INET) I4;
    "netmask": Func::Net(NetFunc::NetMask) => (INET) INET;
    "network": Func::Net(NetFunc::Network) => (INET) CIDR;
    "trunc": Func::Net(NetFunc::Maker) => (MAC) MAC;
    "set_masklen": Func::Net(NetFunc::SetMaskLen) => (INET, I4) INET;
    "set_masklen": Func::Net(NetFunc::SetCidrMaskLen) => (CIDR, I4) CIDR;
};

/// Operators with two operands.
pub(super) static INFIX: &[Function] = table! {
    "<<": Func::Net(NetFunc::Inside) => (INET, INET) BOOL;
    "<<=": Func::Net(NetFunc::InsideOrEqual) => (INET, INET) BOOL;
    ">>": Func::Net(NetFunc::Contains) => (INET, INET) BOOL;
    ">>=": Func::Net(NetFunc::ContainsOrEqual) => (INET, INET) BOOL;
    "&&": Func::Net(NetFunc::Overlaps) => (INET, INET) BOOL;
    "&": Func::Net(NetFunc::And) => (INET, INET) INET, (MAC, MAC) MAC;
    "|": Func::Net(NetFunc::Or) => (INET, INET) INET, (MAC, MAC) MAC;
    "+": Func::Net(NetFunc::Add) => (INET, I8) INET, (I8, INET) INET;
    "-": Func::Net(NetFunc::Sub) => (INET, I8) INET, (INET, INET) I8;
};

/// Operators with one operand.
pub(super) static PREFIX: &[Function] = table! {
    "~": Func::Net(NetFunc::Not) => (INET) INET, (MAC) MAC;
};

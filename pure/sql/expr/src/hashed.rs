//! Rows in memory that are found by the values of some columns: the right side of a hash join,
//! groups, values that count once.
//!
//! Rows lie flat in pieces, so that none has an allocation of its own. A table of many keys is one
//! of 256 smaller ones, so that no step makes room for all of them at once.

mod groups;
mod table;

pub use groups::Groups;
pub use table::{KeyTable, Linking};

use crate::rows::heap_bytes;
use base::key::encode_datum;
use base::{Datum, Decimal, RowBatch, Type};

/// Rows of a piece.
pub const PIECE_ROWS: usize = 1024;

/// Lists of equal width; their numbers count from 0.
#[derive(Clone, Debug)]
pub struct Flat<T> {
    width: usize,
    len: usize,
    pieces: Vec<Vec<T>>,
}

/// Rows of values.
pub type RowStore = Flat<Datum>;

impl<T> Default for Flat<T> {
    fn default() -> Flat<T> {
        Flat::new(0)
    }
}

impl<T> Flat<T> {
    /// No lists of this width.
    pub fn new(width: usize) -> Flat<T> {
        Flat {
            width,
            len: 0,
            pieces: Vec::new(),
        }
    }

    /// Number of lists.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// List `i`; empty if it has been freed.
    #[inline]
    pub fn row(&self, i: usize) -> &[T] {
        if self.width == 0 {
            return &[];
        }
        let start = i % PIECE_ROWS * self.width;
        let piece = &self.pieces[i / PIECE_ROWS];
        piece.get(start..start + self.width).unwrap_or_default()
    }

    /// As [`Flat::row`], to be changed.
    #[inline]
    pub fn row_mut(&mut self, i: usize) -> &mut [T] {
        if self.width == 0 {
            return &mut [];
        }
        let start = i % PIECE_ROWS * self.width;
        let piece = &mut self.pieces[i / PIECE_ROWS];
        let row = piece.get_mut(start..start + self.width);
        row.unwrap_or_default()
    }

    /// Appends `count` lists, whose items follow each other. Gives the memory that is taken for
    /// them beside what the items hold, in bytes.
    pub fn extend(&mut self, count: usize, mut items: impl Iterator<Item = T>) -> usize {
        let mut rest = count;
        let mut grown = 0;
        while rest > 0 {
            let free = PIECE_ROWS - self.len % PIECE_ROWS;
            let some = rest.min(free);
            if free == PIECE_ROWS {
                // The first piece grows as it must: most stores have few rows.
                let capacity = if self.len > 0 { PIECE_ROWS } else { some };
                self.pieces.push(Vec::with_capacity(capacity * self.width));
            }
            let piece = self.pieces.last_mut().expect("just made, or not full");
            let before = if free == PIECE_ROWS {
                0
            } else {
                piece_bytes(piece)
            };
            piece.extend(items.by_ref().take(some * self.width));
            grown += piece_bytes(piece) - before;
            self.len += some;
            rest -= some;
        }
        grown
    }

    /// Appends one list. Gives what [`Flat::extend`] does.
    #[inline]
    pub fn push(&mut self, items: impl IntoIterator<Item = T>) -> usize {
        if !self.len.is_multiple_of(PIECE_ROWS)
            && let Some(piece) = self.pieces.last_mut()
            && piece.capacity() - piece.len() >= self.width
        {
            piece.extend(items.into_iter().take(self.width));
            self.len += 1;
            return 0;
        }
        self.extend(1, items.into_iter())
    }

    /// Takes the last piece of lists out. Gives how many there are, and their items.
    pub fn pop_piece(&mut self) -> Option<(usize, Vec<T>)> {
        let piece = self.pieces.pop()?;
        let count = match self.len % PIECE_ROWS {
            0 => PIECE_ROWS,
            some => some,
        };
        self.len -= count;
        Some((count, piece))
    }

    /// Drops the last list.
    pub fn pop(&mut self) {
        if self.len == 0 {
            return;
        }
        self.len -= 1;
        let piece = self.pieces.last_mut().expect("it has the last list");
        piece.truncate(self.len % PIECE_ROWS * self.width);
        if self.len.is_multiple_of(PIECE_ROWS) {
            self.pieces.pop();
        }
    }

    /// Drops `most` lists at the end or some more.
    pub fn shrink(&mut self, most: usize) {
        let pieces = self.pieces.len();
        let gone = most.div_ceil(PIECE_ROWS).min(pieces);
        self.pieces.truncate(pieces - gone);
        self.len = self.len.min((pieces - gone) * PIECE_ROWS);
    }

    /// Frees the items of the lists in the piece that ends before list `end`, which are not read
    /// any more. Gives the bytes that they took.
    pub fn free_piece(&mut self, end: usize) -> usize {
        match end.checked_sub(1).map(|last| last / PIECE_ROWS) {
            Some(number) if self.width > 0 => {
                piece_bytes(&core::mem::take(&mut self.pieces[number]))
            }
            _ => 0,
        }
    }

    /// Memory of the pieces, in bytes.
    pub fn bytes(&self) -> usize {
        self.pieces.iter().map(piece_bytes).sum()
    }
}

impl RowStore {
    /// Appends the rows of a batch. Gives what [`Flat::extend`] does.
    pub fn append(&mut self, batch: RowBatch) -> usize {
        self.extend(batch.rows as usize, batch.datums.into_iter())
    }
}

fn piece_bytes<T>(piece: &Vec<T>) -> usize {
    heap_bytes(piece.capacity() * size_of::<T>())
}

/// How values of two types become numbers, so that equal ones become the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hashing {
    /// Integers with integers.
    Ints,
    /// Numerics with numerics or integers.
    Numerics,
    /// Values of one type.
    Exact,
    /// Others: all numbers by the float next to them, moments by their day.
    Mixed,
}

impl Hashing {
    /// For the values of these types, which are compared with each other.
    pub fn of(left: Type, right: Type) -> Hashing {
        use Type::{Enum, Int2, Int4, Int8, Numeric, Oid};
        let is_int = |ty| matches!(ty, Int2 | Int4 | Int8 | Oid | Enum(_));
        let is_numeric = |ty| is_int(ty) || matches!(ty, Numeric(_));
        if is_int(left) && is_int(right) {
            return Hashing::Ints;
        }
        if is_numeric(left) && is_numeric(right) {
            return Hashing::Numerics;
        }
        let is_same = match (left, right) {
            (Type::Array(a), Type::Array(b)) => a == b,
            _ => core::mem::discriminant(&left) == core::mem::discriminant(&right),
        };
        if is_same {
            Hashing::Exact
        } else {
            Hashing::Mixed
        }
    }

    /// The number of a value that is not NULL, made from that of the values before it.
    #[inline]
    pub fn add(self, before: u64, datum: &Datum, buffer: &mut Vec<u8>) -> u64 {
        match (self, datum) {
            (Hashing::Ints | Hashing::Exact, Datum::Int(value)) => mix(before ^ *value as u64),
            (Hashing::Exact | Hashing::Mixed, Datum::Text(text)) => bytes(before, text.as_bytes()),
            _ => self.add_other(before, datum, buffer),
        }
    }

    /// The number of a list of values, in which NULL is like any other value.
    #[inline]
    pub fn group(all: &[Hashing], values: &[Datum], buffer: &mut Vec<u8>) -> u32 {
        let mut sum = 0;
        for (datum, hashing) in values.iter().zip(all) {
            sum = match datum {
                Datum::Null => mix(sum ^ 1 << 63),
                datum => hashing.add(sum, datum, buffer),
            };
        }
        (sum >> 32) as u32
    }

    fn add_other(self, before: u64, datum: &Datum, buffer: &mut Vec<u8>) -> u64 {
        let decimal;
        let datum = match (self, datum) {
            (Hashing::Numerics, Datum::Int(value)) => {
                decimal = Datum::Decimal(Decimal::from(*value));
                &decimal
            }
            (Hashing::Mixed, _) => match number(datum) {
                Some(number) => return mix(before ^ number),
                None => datum,
            },
            _ => datum,
        };
        if self == Hashing::Mixed
            && let Some(items) = datum.as_array()
        {
            let items = items.iter().filter(|item| !item.is_null());
            return items.fold(mix(before), |sum, item| self.add(sum, item, buffer));
        }
        buffer.clear();
        encode_datum(buffer, datum, false);
        bytes(before, buffer)
    }
}

/// Numbers that are equal have the same float next to them, and equal moments are of one day.
fn number(datum: &Datum) -> Option<u64> {
    const DAY_US: i64 = 86_400_000_000;
    let float = match datum {
        Datum::Int(value) => *value as f64,
        Datum::Float(value) => *value,
        Datum::Decimal(value) => value.to_f64(),
        Datum::Large(value) => value.to_f64(),
        Datum::Timestamp(us @ (i64::MIN | i64::MAX)) => return Some(*us as u64),
        Datum::Timestamp(us) => return Some(us.div_euclid(DAY_US) as u64),
        Datum::Date(i32::MIN) => return Some(i64::MIN as u64),
        Datum::Date(i32::MAX) => return Some(i64::MAX as u64),
        Datum::Date(day) => return Some(i64::from(*day) as u64),
        _ => return None,
    };
    Some(match float {
        0.0 => 0,
        nan if nan.is_nan() => u64::MAX,
        value => value.to_bits(),
    })
}

#[inline]
fn mix(value: u64) -> u64 {
    let wide = u128::from(value ^ 0x9e37_79b9_7f4a_7c15) * 0xd6e8_feb8_6659_fd93_u128;
    wide as u64 ^ (wide >> 64) as u64
}

fn bytes(before: u64, all: &[u8]) -> u64 {
    let mut sum = mix(before ^ all.len() as u64);
    for chunk in all.chunks(8) {
        let mut eight = [0; 8];
        eight[..chunk.len()].copy_from_slice(chunk);
        sum = mix(sum ^ u64::from_le_bytes(eight));
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::datum::Interval;

    fn hash(how: Hashing, datum: &Datum) -> u64 {
        how.add(0, datum, &mut Vec::new())
    }

    #[test]
    fn what_is_equal_has_one_hash() {
        let decimal = |text: &str| Datum::Decimal(text.parse().unwrap());
        let numbers = [
            Datum::Int(3),
            Datum::Float(3.0),
            decimal("3"),
            decimal("3.000"),
            Datum::Int(0),
            Datum::Float(-0.0),
            decimal("0.00"),
            Datum::Int(i64::MAX),
            Datum::Float(9_223_372_036_854_775_808.0),
            decimal("9223372036854775807.0"),
            decimal("0.1"),
            Datum::Float(0.1),
            Datum::Float(f64::NAN),
            Datum::Date(7),
            Datum::Timestamp(7 * 86_400_000_000),
            Datum::Date(-1),
            Datum::Timestamp(-86_400_000_000),
            Datum::Date(i32::MAX),
            Datum::Timestamp(i64::MAX),
            Datum::Date(i32::MIN),
            Datum::Timestamp(i64::MIN),
        ];
        let array = |datum: &Datum| Datum::Array(Box::new([datum.clone()]));
        let mut equal = 0;
        for (i, a) in numbers.iter().enumerate() {
            for b in &numbers[..i] {
                if a.compare(b).is_eq() {
                    equal += 1;
                    assert_eq!(
                        hash(Hashing::Mixed, a),
                        hash(Hashing::Mixed, b),
                        "{a:?} {b:?}"
                    );
                    let (a, b) = (array(a), array(b));
                    assert_eq!(hash(Hashing::Mixed, &a), hash(Hashing::Mixed, &b));
                }
            }
        }
        assert_eq!(equal, 6 + 3 + 3 + 1 + 4);
        for (a, b) in [("1.10", "1.1"), ("0", "0.00"), ("-7", "-7.0")] {
            let (a, b) = (decimal(a), decimal(b));
            assert_eq!(hash(Hashing::Numerics, &a), hash(Hashing::Numerics, &b));
            assert_eq!(hash(Hashing::Exact, &a), hash(Hashing::Exact, &b));
        }
        let (int, numeric) = (Datum::Int(-7), decimal("-7.00"));
        assert_eq!(
            hash(Hashing::Numerics, &int),
            hash(Hashing::Numerics, &numeric)
        );
    }

    #[test]
    fn equal_values_of_one_type_have_one_hash() {
        let decimal = |text: &str| Datum::Decimal(text.parse().unwrap());
        let span = |months, days| {
            let micros = 0;
            Datum::Interval(Interval {
                months,
                days,
                micros,
            })
        };
        let equal = [
            (Datum::Float(0.0), Datum::Float(-0.0)),
            (Datum::Float(f64::NAN), Datum::Float(-f64::NAN)),
            (decimal("2.50"), decimal("2.5")),
            (span(1, 0), span(0, 30)),
        ];
        for (a, b) in equal {
            assert!(a.compare(&b).is_eq());
            assert_eq!(hash(Hashing::Exact, &a), hash(Hashing::Exact, &b), "{a:?}");
        }
    }

    #[test]
    fn types_say_how_values_are_compared() {
        let pairs = [
            (Type::Int4, Type::Int8, Hashing::Ints),
            (Type::Int4, Type::Numeric(None), Hashing::Numerics),
            (Type::Float8, Type::Numeric(None), Hashing::Mixed),
            (Type::Date, Type::Timestamp(None), Hashing::Mixed),
            (Type::Text, Type::Varchar(Some(3)), Hashing::Mixed),
            (Type::Text, Type::Text, Hashing::Exact),
        ];
        for (left, right, expected) in pairs {
            assert_eq!(Hashing::of(left, right), expected, "{left:?} {right:?}");
        }
    }

    #[test]
    fn rows_lie_in_pieces() {
        let mut store = RowStore::new(2);
        let mut grown = 0;
        for batch in 0..7_i64 {
            let mut rows = RowBatch::new(2);
            (0..700).for_each(|i| rows.push([Datum::Int(batch), Datum::Int(i)]));
            grown += store.append(rows);
        }
        grown += store.push(vec![Datum::Null, Datum::Null]);
        assert_eq!(store.len(), 4_901);
        assert_eq!(store.row(1_399), [Datum::Int(1), Datum::Int(699)]);
        assert!(store.row(4_900)[0].is_null());
        assert_eq!(grown, store.bytes());
        store.pop();
        assert_eq!(store.len(), 4_900);
        store.shrink(1);
        assert_eq!(store.len(), 4_096);
        let (count, items) = store.pop_piece().unwrap();
        assert_eq!((count, items.len(), store.len()), (1_024, 2_048, 3_072));
        let freed = store.free_piece(2_048);
        assert_eq!(freed, heap_bytes(2_048 * size_of::<Datum>()));
        assert_eq!(store.row(700), [Datum::Int(1), Datum::Int(0)]);
        assert!(store.row(1_024).is_empty() && store.row_mut(2_047).is_empty());
        let mut nothing = RowStore::new(0);
        nothing.append(RowBatch {
            width: 0,
            rows: 5_000,
            datums: Vec::new(),
        });
        assert_eq!((nothing.len(), nothing.row(4_999).len()), (5_000, 0));
        nothing.shrink(5_000);
        assert!(nothing.is_empty());
    }
}

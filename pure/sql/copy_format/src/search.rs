//! Byte search, eight bytes at a time: what loading spends its time on.

const LOW: u64 = 0x0101_0101_0101_0101;
const HIGH: u64 = 0x8080_8080_8080_8080;

/// Position of the first byte of `data` that is one of `needles`.
#[inline]
pub(super) fn find<const N: usize>(data: &[u8], needles: [u8; N]) -> Option<usize> {
    let words = needles.map(|needle| LOW * u64::from(needle));
    let (chunks, rest) = data.as_chunks::<8>();
    for (index, chunk) in chunks.iter().enumerate() {
        let bytes = u64::from_le_bytes(*chunk);
        // A byte equal to the needle becomes 0, and subtracting 1 from it borrows into its high
        // bit. A borrow may also mark bytes above a match, never below, so the lowest mark counts.
        let marks = words.iter().fold(0, |marks, word| {
            let zero = bytes ^ word;
            marks | (zero.wrapping_sub(LOW) & !zero & HIGH)
        });
        if marks != 0 {
            return Some(index * 8 + marks.trailing_zeros() as usize / 8);
        }
    }
    let tail = rest.iter().position(|byte| needles.contains(byte))?;
    Some(data.len() - rest.len() + tail)
}

#[cfg(test)]
mod tests {
    use super::find;
    use base::Prng;

    #[test]
    fn finds_what_a_plain_search_finds() {
        const BYTES: [u8; 8] = [0, 1, 0x7f, 0x80, 0xff, b'\n', b'\t', b'x'];
        for seed in 0..5_000 {
            let mut prng = Prng::new(seed);
            let length = prng.below(30);
            let data: Vec<u8> = (0..length).map(|_| BYTES[prng.below(8) as usize]).collect();
            let needles = [BYTES[prng.below(8) as usize], BYTES[prng.below(8) as usize]];
            let expected = data.iter().position(|byte| needles.contains(byte));
            assert_eq!(find(&data, needles), expected, "{needles:?} in {data:?}");
        }
    }
}

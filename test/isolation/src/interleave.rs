//! All orders in which the steps of sessions can be begun, each written as a word: one letter per
//! step, the name of its session. `aab` is the first two steps of `a`, then the first of `b`.

/// All words with `counts[i]` letters of session `i`, in the order of the sessions.
///
/// Their number is the multinomial coefficient of the counts; the caller keeps it small.
pub fn words(counts: &[usize]) -> Vec<Vec<usize>> {
    fn extend(left: &mut [usize], word: &mut Vec<usize>, all: &mut Vec<Vec<usize>>) {
        if left.iter().all(|count| *count == 0) {
            all.push(word.clone());
            return;
        }
        for session in 0..left.len() {
            if left[session] > 0 {
                left[session] -= 1;
                word.push(session);
                extend(left, word, all);
                word.pop();
                left[session] += 1;
            }
        }
    }
    let mut all = Vec::new();
    extend(&mut counts.to_vec(), &mut Vec::new(), &mut all);
    all
}

/// Number of words with these counts; saturates.
pub fn count(counts: &[usize]) -> u64 {
    let mut total = 0u64;
    let mut product = 1u64;
    for &count in counts {
        for chosen in 1..=count as u64 {
            total += 1;
            // Exact at every step: a binomial coefficient grows by one factor and one divisor.
            product = product.saturating_mul(total) / chosen;
        }
    }
    product
}

/// Skips the words that begin with an impossible beginning, in order.
pub struct Pruned<'a> {
    words: &'a [Vec<usize>],
    next: usize,
    impossible: Option<Vec<usize>>,
}

impl<'a> Pruned<'a> {
    /// All `words` so far.
    pub fn new(words: &'a [Vec<usize>]) -> Pruned<'a> {
        Pruned {
            words,
            next: 0,
            impossible: None,
        }
    }

    /// No word that begins like this will do: its last step cannot be begun.
    pub fn exclude(&mut self, beginning: &[usize]) {
        self.impossible = Some(beginning.to_vec());
    }
}

impl<'a> Iterator for Pruned<'a> {
    type Item = &'a [usize];

    fn next(&mut self) -> Option<&'a [usize]> {
        loop {
            let word = self.words.get(self.next)?;
            self.next += 1;
            match &self.impossible {
                // Words that begin alike stand together, so the last exclusion is all to remember.
                Some(beginning) if word.starts_with(beginning) => {}
                _ => return Some(word),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_words_are_given_once() {
        assert_eq!(words(&[2, 1]), [[0, 0, 1], [0, 1, 0], [1, 0, 0]]);
        for counts in [&[3, 3][..], &[4, 4], &[2, 2, 2], &[1, 0, 3], &[3, 3, 2]] {
            let all = words(counts);
            assert_eq!(all.len() as u64, count(counts), "{counts:?}");
            let mut sorted = all.clone();
            sorted.sort();
            sorted.dedup();
            assert_eq!(sorted, all, "in order, and none twice");
        }
    }

    #[test]
    fn impossible_beginnings_are_passed_over() {
        let all = words(&[2, 2]);
        let mut pruned = Pruned::new(&all);
        assert_eq!(pruned.next(), Some(&[0, 0, 1, 1][..]));
        assert_eq!(pruned.next(), Some(&[0, 1, 0, 1][..]));
        pruned.exclude(&[0, 1]);
        assert_eq!(pruned.next(), Some(&[1, 0, 0, 1][..]));
    }
}

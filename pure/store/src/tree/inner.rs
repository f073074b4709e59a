//! Inner pages: children and the separators between them.

use super::Page;
use super::head::{head_of, heads_below};
use super::leaf::Leaf;
use alloc::boxed::Box;
use alloc::vec::Vec;

/// Largest number of children of an inner page. With two levels a slot holds some 8,000 rows, so
/// five million rows over all slots need no third level and one cache miss less.
const CHILDREN_MAX: usize = 128;
/// Rows of a leaf below which it is joined with a neighbour.
const LEAF_ROWS_MIN: usize = 16;

/// Children in key order. All keys of child `i` lie below separator `i`, all keys of child `i + 1`
/// at or above it.
pub(crate) struct Inner<S> {
    heads: [u64; CHILDREN_MAX],
    separators: Vec<Box<[u8]>>,
    children: Vec<Page<S>>,
}

/// The shortest byte string above `low` and not above `high`.
pub(crate) fn separator(low: &[u8], high: &[u8]) -> Box<[u8]> {
    debug_assert!(low < high);
    let common = low.iter().zip(high).take_while(|(a, b)| a == b).count();
    high[..=common].into()
}

impl<S: Default> Inner<S> {
    /// A page without children, to be given two by [`Inner::start`].
    pub(crate) fn new() -> Inner<S> {
        Inner {
            heads: [u64::MAX; CHILDREN_MAX],
            separators: Vec::new(),
            children: Vec::new(),
        }
    }

    pub(crate) fn start(&mut self, left: Page<S>, separator: Box<[u8]>, right: Page<S>) {
        assert!(self.children.is_empty());
        self.heads[0] = head_of(&separator);
        self.separators.push(separator);
        self.children.push(left);
        self.children.push(right);
    }

    /// The child that holds `key` if any does; `head` is its [`head_of`].
    #[inline]
    pub(crate) fn child_of(&self, head: u64, key: &[u8]) -> usize {
        let mut i = heads_below(&self.heads, head).min(self.separators.len());
        while i < self.separators.len() && self.heads[i] == head && *self.separators[i] <= *key {
            i += 1;
        }
        i
    }

    #[inline]
    pub(crate) fn child(&self, i: usize) -> &Page<S> {
        &self.children[i]
    }

    #[inline]
    pub(crate) fn child_mut(&mut self, i: usize) -> &mut Page<S> {
        &mut self.children[i]
    }

    pub(crate) fn children(&self) -> &[Page<S>] {
        &self.children
    }

    /// Takes the children out. The page must not be used afterwards.
    pub(crate) fn take_children(&mut self) -> Vec<Page<S>> {
        core::mem::take(&mut self.children)
    }

    pub(crate) fn last_child(&self) -> usize {
        self.children.len() - 1
    }

    pub(crate) fn separator(&self, i: usize) -> &[u8] {
        &self.separators[i]
    }

    /// Inserts `right`, split from child `i` at `separator`. Splits this page if it was full.
    pub(crate) fn insert(
        &mut self,
        i: usize,
        separator: Box<[u8]>,
        right: Page<S>,
    ) -> Option<(Box<[u8]>, Page<S>)> {
        if self.children.len() < CHILDREN_MAX {
            self.insert_child(i, separator, right);
            return None;
        }
        // Children that arrive in order leave full pages behind, but each half needs a separator.
        let at = if i == self.last_child() {
            i - 1
        } else {
            self.separators.len() / 2
        };
        let mut other = Box::new(Inner::new());
        other.separators = self.separators.split_off(at + 1);
        other.children = self.children.split_off(at + 1);
        let middle = self.separators.pop().expect("the page was full");
        self.reset_heads();
        other.reset_heads();
        if i <= at {
            self.insert_child(i, separator, right);
        } else {
            other.insert_child(i - at - 1, separator, right);
        }
        Some((middle, Page::Inner(other)))
    }

    fn insert_child(&mut self, i: usize, separator: Box<[u8]>, right: Page<S>) {
        self.heads.copy_within(i..self.separators.len(), i + 1);
        self.heads[i] = head_of(&separator);
        self.separators.insert(i, separator);
        self.children.insert(i + 1, right);
    }

    fn reset_heads(&mut self) {
        self.heads = [u64::MAX; CHILDREN_MAX];
        for (head, separator) in self.heads.iter_mut().zip(&self.separators) {
            *head = head_of(separator);
        }
    }

    /// Removes child `i` and one separator beside it.
    fn remove_child(&mut self, i: usize) -> Page<S> {
        let separator = i.saturating_sub(1);
        if separator < self.separators.len() {
            self.separators.remove(separator);
            self.reset_heads();
        }
        self.children.remove(i)
    }

    /// After a removal in child `i`: drops it if it is empty, joins it with a neighbour if both
    /// are small leaves. A page left without children is dropped by its parent in turn.
    pub(crate) fn rebalance(&mut self, i: usize) {
        let (small, empty) = match &self.children[i] {
            Page::Leaf(leaf) => (leaf.count() < LEAF_ROWS_MIN, leaf.count() == 0),
            Page::Inner(inner) => (false, inner.children.is_empty()),
        };
        if empty && self.children.len() > 1 {
            self.remove_child(i);
        } else if empty {
            // The last child of this page: the page goes with it, one level up.
            self.children.clear();
        } else if small && !(i > 0 && self.join(i - 1)) {
            self.join(i);
        }
    }

    /// Joins the leaves `i` and `i + 1` if they fit into one.
    fn join(&mut self, i: usize) -> bool {
        let fits = match (self.children.get(i), self.children.get(i + 1)) {
            (Some(Page::Leaf(left)), Some(Page::Leaf(right))) => left.fits_with(right),
            _ => false,
        };
        if fits {
            let Page::Leaf(right) = self.remove_child(i + 1) else {
                unreachable!("matched above")
            };
            let Page::Leaf(left) = &mut self.children[i] else {
                unreachable!("matched above")
            };
            left.append(right);
        }
        fits
    }

    /// For the root: the page that replaces it, if it has at most one child.
    pub(crate) fn take_only_child(&mut self) -> Option<Page<S>> {
        match self.children.len() {
            0 => Some(Page::Leaf(Box::new(Leaf::new()))),
            1 => self.children.pop(),
            _ => None,
        }
    }

    /// Checks sizes and separators of this page.
    pub(crate) fn validate(&self) {
        assert!(!self.children.is_empty() && self.children.len() <= CHILDREN_MAX);
        assert_eq!(
            self.separators.len() + 1,
            self.children.len(),
            "one separator between two"
        );
        assert!(
            self.separators.windows(2).all(|pair| pair[0] < pair[1]),
            "separators ascend"
        );
        for (i, head) in self.heads.iter().enumerate() {
            let expected = self.separators.get(i).map_or(u64::MAX, |s| head_of(s));
            assert_eq!(*head, expected, "heads match separators");
        }
    }
}

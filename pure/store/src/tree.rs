//! The ordered rows of one (index, slot): a B+tree.

mod chain;
mod head;
mod inner;
mod leaf;

pub(crate) use leaf::Leaf;

use alloc::boxed::Box;
use base::Ts;
use core::ops::ControlFlow;
use head::head_of;
use inner::Inner;

/// A page of the tree.
pub(crate) enum Page<S> {
    Leaf(Box<Leaf<S>>),
    Inner(Box<Inner<S>>),
}

impl<S: Default> Page<S> {
    /// Calls `f` for every leaf in it, in order.
    pub(crate) fn each_leaf(&self, f: &mut dyn FnMut(&Leaf<S>)) {
        match self {
            Page::Leaf(leaf) => f(leaf),
            Page::Inner(inner) => {
                let children = inner.children().iter();
                children.for_each(|child| child.each_leaf(f));
            }
        }
    }
}

/// A B+tree; never without a page.
pub(crate) struct Tree<S> {
    root: Page<S>,
    rows: usize,
    /// Timestamp at or above every version in the tree.
    newest: Ts,
}

/// Where a walk over keys begins and ends: `low` (excluded if `after`) up to `high`, excluded.
#[derive(Clone, Copy)]
pub(crate) struct Bounds<'a> {
    pub(crate) low: &'a [u8],
    pub(crate) after: bool,
    pub(crate) high: Option<&'a [u8]>,
}

/// Called by a walk for each row: with its leaf and its position there.
pub(crate) type Visit<'v, S> = dyn FnMut(&Leaf<S>, usize) -> ControlFlow<()> + 'v;

impl<S: Default> Tree<S> {
    pub(crate) fn new() -> Tree<S> {
        Tree {
            root: Page::Leaf(Box::new(Leaf::new())),
            rows: 0,
            newest: Ts::ZERO,
        }
    }

    /// A timestamp at or above all versions that were ever written here.
    #[inline]
    pub(crate) fn newest(&self) -> Ts {
        self.newest
    }

    /// Number of rows, tombstones included.
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// The leaf and position of `key`.
    #[inline]
    pub(crate) fn locate(&self, key: &[u8]) -> Option<(&Leaf<S>, usize)> {
        let head = head_of(key);
        let mut page = &self.root;
        loop {
            match page {
                Page::Leaf(leaf) => return leaf.search(head, key).ok().map(|i| (&**leaf, i)),
                Page::Inner(inner) => page = inner.child(inner.child_of(head, key)),
            }
        }
    }

    /// As [`Tree::locate`], mutable.
    #[inline]
    pub(crate) fn locate_mut(&mut self, key: &[u8]) -> Option<(&mut Leaf<S>, usize)> {
        let head = head_of(key);
        let mut page = &mut self.root;
        loop {
            match page {
                Page::Leaf(leaf) => {
                    let i = leaf.search(head, key).ok()?;
                    return Some((leaf, i));
                }
                Page::Inner(inner) => {
                    let child = inner.child_of(head, key);
                    page = inner.child_mut(child);
                }
            }
        }
    }

    /// The leaf that has `key`, or would get it. `head` is its [`head_of`].
    #[inline]
    fn leaf_mut(&mut self, head: u64, key: &[u8]) -> &mut Leaf<S> {
        let mut page = &mut self.root;
        loop {
            match page {
                Page::Leaf(leaf) => return leaf,
                Page::Inner(inner) => {
                    let child = inner.child_of(head, key);
                    page = inner.child_mut(child);
                }
            }
        }
    }

    /// Writes over the row of `key` with `over`, which gets its leaf and position, or inserts the
    /// row if the key is absent. In one walk, unless a leaf splits.
    pub(crate) fn write<R>(
        &mut self,
        key: &[u8],
        commit_ts: Ts,
        value: Option<&[u8]>,
        over: impl FnOnce(&mut Leaf<S>, usize) -> R,
    ) -> Option<R> {
        self.newest = self.newest.max(commit_ts);
        let head = head_of(key);
        let leaf = self.leaf_mut(head, key);
        match leaf.search(head, key) {
            Ok(i) => return Some(over(leaf, i)),
            Err(i) if !leaf.is_full(key.len() + value.map_or(0, <[u8]>::len)) => {
                leaf.insert(i, key, commit_ts, value);
                self.rows += 1;
            }
            Err(_) => self.insert(key, commit_ts, value),
        }
        None
    }

    /// Inserts a row whose key is absent.
    fn insert(&mut self, key: &[u8], commit_ts: Ts, value: Option<&[u8]>) {
        if let Some((separator, right)) = insert_into(&mut self.root, key, commit_ts, value) {
            let placeholder = Page::Inner(Box::new(Inner::new()));
            let left = core::mem::replace(&mut self.root, placeholder);
            let Page::Inner(root) = &mut self.root else {
                unreachable!("the page just placed")
            };
            root.start(left, separator, right);
        }
        self.rows += 1;
    }

    /// Removes a row that is present.
    pub(crate) fn remove(&mut self, key: &[u8]) {
        remove_from(&mut self.root, key);
        self.rows -= 1;
        while let Page::Inner(inner) = &mut self.root {
            match inner.take_only_child() {
                Some(child) => self.root = child,
                None => break,
            }
        }
    }

    /// Calls `visit` for the rows inside `bounds` in key order (backwards if `reverse`), until it
    /// breaks.
    pub(crate) fn walk(
        &self,
        bounds: Bounds<'_>,
        reverse: bool,
        visit: &mut Visit<'_, S>,
    ) -> ControlFlow<()> {
        if bounds.high.is_some_and(|high| high <= bounds.low) {
            return ControlFlow::Continue(());
        }
        walk_page(&self.root, bounds, reverse, visit)
    }

    /// Calls `f` for every leaf, in order.
    pub(crate) fn each_leaf(&self, f: &mut dyn FnMut(&Leaf<S>)) {
        self.root.each_leaf(f);
    }

    /// The page above all others.
    pub(crate) fn into_root(self) -> Page<S> {
        self.root
    }

    /// Checks order, separators and counters of all pages.
    pub(crate) fn validate(&self) {
        let mut rows = 0;
        validate_page(&self.root, None, None, &mut rows);
        assert_eq!(rows, self.rows, "rows are counted");
    }
}

type Split<S> = (Box<[u8]>, Page<S>);

fn insert_into<S: Default>(
    page: &mut Page<S>,
    key: &[u8],
    commit_ts: Ts,
    value: Option<&[u8]>,
) -> Option<Split<S>> {
    match page {
        Page::Leaf(leaf) => insert_into_leaf(leaf, key, commit_ts, value),
        Page::Inner(inner) => {
            let i = inner.child_of(head_of(key), key);
            let (separator, right) = insert_into(inner.child_mut(i), key, commit_ts, value)?;
            inner.insert(i, separator, right)
        }
    }
}

fn insert_into_leaf<S: Default>(
    leaf: &mut Leaf<S>,
    key: &[u8],
    commit_ts: Ts,
    value: Option<&[u8]>,
) -> Option<Split<S>> {
    let Err(i) = leaf.search(head_of(key), key) else {
        panic!("the inserted key is present")
    };
    if !leaf.is_full(key.len() + value.map_or(0, <[u8]>::len)) {
        leaf.insert(i, key, commit_ts, value);
        return None;
    }
    // Keys that arrive in order leave full leaves behind.
    let at = if i == leaf.count() {
        i
    } else {
        leaf.count() / 2
    };
    let mut right = leaf.split_off(at);
    if i < at {
        leaf.insert(i, key, commit_ts, value);
    } else {
        right.insert(i - at, key, commit_ts, value);
    }
    let mut scratch = ([0; 8], [0; 8]);
    let low = leaf.key(leaf.count() - 1, &mut scratch.0);
    let separator = inner::separator(low, right.key(0, &mut scratch.1));
    Some((separator, Page::Leaf(right)))
}

fn remove_from<S: Default>(page: &mut Page<S>, key: &[u8]) {
    match page {
        Page::Leaf(leaf) => {
            let i = leaf
                .search(head_of(key), key)
                .expect("the removed key is present");
            leaf.remove(i);
        }
        Page::Inner(inner) => {
            let i = inner.child_of(head_of(key), key);
            remove_from(inner.child_mut(i), key);
            inner.rebalance(i);
        }
    }
}

fn walk_page<S: Default>(
    page: &Page<S>,
    bounds: Bounds<'_>,
    reverse: bool,
    visit: &mut Visit<'_, S>,
) -> ControlFlow<()> {
    match page {
        Page::Leaf(leaf) => walk_leaf(leaf, bounds, reverse, visit),
        Page::Inner(inner) => {
            let first = inner.child_of(head_of(bounds.low), bounds.low);
            let last = match bounds.high {
                Some(high) => inner.child_of(head_of(high), high),
                None => inner.last_child(),
            };
            for step in 0..=last - first {
                let i = if reverse { last - step } else { first + step };
                walk_page(inner.child(i), bounds, reverse, visit)?;
            }
            ControlFlow::Continue(())
        }
    }
}

fn walk_leaf<S: Default>(
    leaf: &Leaf<S>,
    bounds: Bounds<'_>,
    reverse: bool,
    visit: &mut Visit<'_, S>,
) -> ControlFlow<()> {
    let start = match leaf.search(head_of(bounds.low), bounds.low) {
        Ok(i) if bounds.after => i + 1,
        Ok(i) | Err(i) => i,
    };
    let end = match bounds.high {
        Some(high) => leaf.search(head_of(high), high).unwrap_or_else(|i| i),
        None => leaf.count(),
    };
    for step in 0..end.saturating_sub(start) {
        visit(
            leaf,
            if reverse {
                end - 1 - step
            } else {
                start + step
            },
        )?;
    }
    ControlFlow::Continue(())
}

fn validate_page<S: Default>(
    page: &Page<S>,
    low: Option<&[u8]>,
    high: Option<&[u8]>,
    rows: &mut usize,
) {
    match page {
        Page::Leaf(leaf) => {
            leaf.validate();
            let mut scratch = [0; 8];
            for i in 0..leaf.count() {
                let key = leaf.key(i, &mut scratch);
                assert!(
                    low.is_none_or(|low| low <= key),
                    "keys respect the separator below"
                );
                assert!(
                    high.is_none_or(|high| key < high),
                    "keys respect the separator above"
                );
            }
            *rows += leaf.count();
        }
        Page::Inner(inner) => {
            inner.validate();
            for (i, child) in inner.children().iter().enumerate() {
                let child_low = if i == 0 {
                    low
                } else {
                    Some(inner.separator(i - 1))
                };
                let child_high = if i == inner.last_child() {
                    high
                } else {
                    Some(inner.separator(i))
                };
                validate_page(child, child_low, child_high, rows);
            }
        }
    }
}

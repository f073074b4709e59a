//! Several clients in one thread, in an order that is drawn from a seed.

use crate::policy::Pace;
use alloc::boxed::Box;
use alloc::vec::Vec;
use base::Prng;
use core::future::{Future, poll_fn};
use core::pin::Pin;
use core::task::Poll;

/// Runs futures together until all have ended: polls one of those that are left, drawn from `seed`,
/// again and again. Returns their results in the order of the futures.
pub async fn interleave<'a, T>(
    seed: u64,
    futures: Vec<Pin<Box<dyn Future<Output = T> + 'a>>>,
) -> Vec<T> {
    let mut prng = Prng::new(seed);
    let mut results: Vec<Option<T>> = futures.iter().map(|_| None).collect();
    let mut left: Vec<_> = futures.into_iter().enumerate().collect();
    poll_fn(|context| {
        if left.is_empty() {
            return Poll::Ready(());
        }
        let drawn = prng.below(left.len() as u64) as usize;
        let (position, future) = &mut left[drawn];
        if let Poll::Ready(result) = future.as_mut().poll(context) {
            results[*position] = Some(result);
            drop(left.swap_remove(drawn));
        }
        if left.is_empty() {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
    let results: Option<Vec<T>> = results.into_iter().collect();
    results.expect("all have ended")
}

/// A pace whose every sleep lets others go first, and takes no time.
#[derive(Clone, Copy, Debug, Default)]
pub struct OthersFirst;

impl Pace for OthersFirst {
    fn now_us(&self) -> u64 {
        0
    }

    async fn sleep_us(&mut self, _: u64) {
        let mut is_second = false;
        poll_fn(|context| {
            if core::mem::replace(&mut is_second, true) {
                return Poll::Ready(());
            }
            context.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
    }
}

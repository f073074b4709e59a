//! The checker against hand-made histories, against exhaustive search, and its formats.

mod anomalies;
mod brute;
mod counters;
mod formats;
mod support;

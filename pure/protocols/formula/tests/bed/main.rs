//! Tests of the protocol on the test bed.

mod golden;
mod random;
mod world;

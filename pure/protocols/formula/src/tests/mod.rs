//! Tests of the protocol on the test bed.

mod random;
mod world;

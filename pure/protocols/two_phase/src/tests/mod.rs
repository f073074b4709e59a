//! Tests of the protocol: golden scripts, counted costs, and random runs with faults.

mod bounds;
mod bulk;
mod called_off;
mod costs;
mod golden;
mod local;
mod planted;
mod random;
mod recent;
mod world;

//! How fast this machine is, so that a limit of time is one of work.
//!
//! Machines that run CI differ by a factor of two and more, the same machine from one day to the
//! next. What CI does is mostly compiling, so the measure is the time in which the compiler
//! translates a program of fixed text. Limits are those of a machine of [`REFERENCE`]; a slower
//! one gets more time in proportion, a faster one gets no less.

use crate::{repo, shell};
use anyhow::Result;
use std::fmt::Write;
use std::process::Command;
use std::time::{Duration, Instant};

/// How long the program takes on the machine that the limits are for.
const REFERENCE: Duration = Duration::from_millis(5_000);
/// Functions of the program, each with a map of its own type.
const FUNCTIONS: usize = 12;

/// The time that the compiler needs for the program, as a multiple of [`REFERENCE`].
///
/// # Errors
/// There is no compiler, or no room for a file.
pub(crate) fn slowness() -> Result<f64> {
    let folder = repo::cache_dir()?;
    let source = folder.join("speed.rs");
    std::fs::write(&source, program())?;
    let begin = Instant::now();
    let mut rustc = Command::new("rustc");
    rustc.args(["--edition", "2024", "--crate-type", "lib", "--emit", "obj"]);
    rustc.arg("-O").arg("-o").arg(folder.join("speed.o"));
    shell::run(rustc.arg(source))?;
    Ok(begin.elapsed().div_duration_f64(REFERENCE))
}

/// A limit for the reference machine, as it is on one of this slowness.
pub(crate) fn scaled(limit: Duration, slowness: f64) -> Duration {
    limit.mul_f64(slowness.max(1.0))
}

fn program() -> String {
    let mut text = "use std::collections::BTreeMap;\n".to_owned();
    for size in 1..=FUNCTIONS {
        let key = format!("[u16; {size}]");
        let _ = write!(
            text,
            "pub fn f{size}(map: &mut BTreeMap<{key}, (String, u64)>, key: {key}) -> u64 {{
                 let mut sum = 0;
                 for (found, value) in map.range(key..) {{ sum += u64::from(found[0]) ^ value.1; }}
                 map.entry(key).or_insert_with(|| (format!(\"{{key:?}}\"), sum)).1 += 1;
                 map.retain(|found, value| found[0] != 7 || value.1 < sum);
                 map.remove(&key).map_or(sum, |value| value.1)
             }}\n"
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_machines_get_more_time_and_fast_ones_no_less() {
        let limit = Duration::from_secs(10);
        assert_eq!(scaled(limit, 1.5), Duration::from_secs(15));
        assert_eq!(scaled(limit, 0.5), limit);
    }

    #[test]
    fn the_program_is_one() {
        assert!(slowness().unwrap() > 0.0);
    }
}

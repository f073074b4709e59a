//! Compiles the library that shifts a server's clock, which the program holds and writes out.

use std::path::Path;
use std::process::Command;

const SOURCE: &str = "src/clock/shim.c";
const LIBRARY: &str = "libtrellis_clock.so";

fn main() {
    println!("cargo::rerun-if-changed={SOURCE}");
    println!("cargo::rerun-if-env-changed=CC");
    let folder = std::env::var("OUT_DIR").expect("cargo names the folder");
    let library = Path::new(&folder).join(LIBRARY);
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() != Ok("linux") {
        // Faults of clocks are refused there: nothing has the library loaded.
        std::fs::write(&library, []).expect("the folder for what is built can be written");
        return;
    }
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".into());
    let mut command = Command::new(&compiler);
    command.args(["-O2", "-Wall", "-Wextra", "-fPIC", "-shared"]);
    command.args(["-o".as_ref(), library.as_os_str(), SOURCE.as_ref()]);
    command.arg("-ldl");
    match command.status() {
        Ok(status) if status.success() => {}
        Ok(status) => panic!("{compiler} cannot compile {SOURCE}: {status}"),
        Err(error) => panic!("no C compiler: {compiler}: {error}"),
    }
}

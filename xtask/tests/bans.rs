//! The ban list of `pure/` bites: a crate that does everything that it forbids, and clippy's
//! complaints about each of them.

use std::path::Path;
use std::process::Command;

/// What the planted crate does, and the word by which clippy's complaint is known.
const PLANTED: &[(&str, &str)] = &[
    (
        "std::collections::HashMap::<u8, u8>::new()",
        "std::collections::HashMap",
    ),
    (
        "std::collections::HashSet::<u8>::new()",
        "std::collections::HashSet",
    ),
    ("std::time::Instant::now()", "std::time::Instant::now"),
    ("std::time::SystemTime::now()", "std::time::SystemTime::now"),
    ("std::thread::spawn(|| ())", "std::thread::spawn"),
    (
        "std::thread::sleep(core::time::Duration::ZERO)",
        "std::thread::sleep",
    ),
    ("std::env::var(\"SEED\")", "std::env::var"),
    ("std::fs::read(\"journal\")", "std::fs::read"),
    (
        "std::net::TcpListener::bind(\"127.0.0.1:0\")",
        "std::net::TcpListener",
    ),
    ("std::process::id()", "std::process::id"),
    ("std::sync::Mutex::new(0)", "std::sync::Mutex"),
    ("println!()", "std::println"),
];

#[test]
fn every_ban_of_the_pure_crates_is_reported() {
    // Tests run in the folder of their package.
    let root = Path::new("..");
    let folder = std::env::temp_dir().join(format!("trellis-bans-{}", std::process::id()));
    std::fs::create_dir_all(folder.join("src")).expect("a folder for the planted crate");
    std::fs::copy(root.join("pure/clippy.toml"), folder.join("clippy.toml")).expect("the list");
    let manifest = "[package]\nname = \"planted\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\
                    [workspace]\n";
    std::fs::write(folder.join("Cargo.toml"), manifest).expect("a manifest");
    let lines = PLANTED
        .iter()
        .map(|(call, _)| format!("    let _ = {call};\n"));
    let code = format!(
        "//! Planted.\npub fn act() {{\n{}}}\n",
        lines.collect::<String>()
    );
    std::fs::write(folder.join("src/lib.rs"), code).expect("the planted crate");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["clippy", "--quiet", "--offline", "--", "-D", "warnings"])
        .current_dir(&folder)
        .env("CARGO_TARGET_DIR", folder.join("target"))
        .env_remove("CLIPPY_CONF_DIR")
        .output()
        .expect("cargo clippy starts");
    let complaints = String::from_utf8_lossy(&output.stderr).into_owned();
    let _ = std::fs::remove_dir_all(&folder);
    assert!(!output.status.success(), "clippy says nothing");
    for (call, word) in PLANTED {
        assert!(
            complaints.contains(&format!("`{word}`")),
            "{call} passes:\n{complaints}"
        );
    }
}

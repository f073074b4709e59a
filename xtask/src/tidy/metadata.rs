//! What `cargo metadata` knows about our crates and the ones that they use.

use crate::{repo, shell};
use anyhow::{Context, Result};
use serde_json::Value;
use std::collections::BTreeMap;
use std::process::Command;

/// One of our crates.
#[derive(Clone, Default, Debug)]
pub(crate) struct Member {
    /// Folder from the root of the checkout.
    pub(crate) folder: String,
    /// Our crates and others that it names: name, and whether only its tests use it.
    pub(crate) uses: Vec<(String, bool)>,
}

/// A crate of others that some crate of ours reaches, directly or not.
#[derive(Clone, Debug)]
pub(crate) struct External {
    pub(crate) name: String,
    pub(crate) licence: String,
    pub(crate) source: String,
}

/// All crates.
#[derive(Clone, Default, Debug)]
pub(crate) struct Workspace {
    pub(crate) members: BTreeMap<String, Member>,
    pub(crate) externals: Vec<External>,
}

impl Workspace {
    /// Asks cargo.
    pub(crate) fn load() -> Result<Workspace> {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new(cargo);
        command
            .args(["metadata", "--format-version", "1"])
            .current_dir(repo::root());
        let text = shell::output(&mut command)?;
        let value = serde_json::from_str(&text).context("cargo metadata is not JSON")?;
        Workspace::from_json(&value).context("cargo metadata has another form than expected")
    }

    fn from_json(value: &Value) -> Option<Workspace> {
        let mut workspace = Workspace::default();
        let root = value["workspace_root"].as_str()?;
        let members = value["workspace_members"].as_array()?;
        for package in value["packages"].as_array()? {
            let name = package["name"].as_str()?.to_string();
            if members.contains(&package["id"]) {
                let manifest = package["manifest_path"].as_str()?;
                let folder = manifest.strip_prefix(root)?.strip_suffix("/Cargo.toml")?;
                let mut uses = Vec::new();
                for dependency in package["dependencies"].as_array()? {
                    let only_tests = dependency["kind"].as_str() == Some("dev");
                    uses.push((dependency["name"].as_str()?.to_string(), only_tests));
                }
                let folder = folder.trim_start_matches('/').to_string();
                workspace.members.insert(name, Member { folder, uses });
            } else {
                workspace.externals.push(External {
                    name,
                    licence: package["license"].as_str().unwrap_or("").to_string(),
                    source: package["source"].as_str().unwrap_or("").to_string(),
                });
            }
        }
        Some(workspace)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_workspace_can_be_read() {
        let workspace = Workspace::load().unwrap();
        let xtask = &workspace.members["xtask"];
        assert_eq!(xtask.folder, "xtask");
        assert!(xtask.uses.contains(&("anyhow".to_string(), false)));
        let anyhow = workspace
            .externals
            .iter()
            .find(|external| external.name == "anyhow");
        assert_eq!(anyhow.unwrap().licence, "MIT OR Apache-2.0");
    }
}

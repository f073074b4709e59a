//! The first role of a new local cluster: its password is made with the cluster, and kept where
//! only the owner of the files can read it.

use anyhow::{Context, Result};
use runtime::ClusterFile;
use runtime::access::{AccessEntry, Loopback, Roles, random_bytes, write_secret};
use std::path::Path;

/// The role that [`crate::connect`] and [`crate::url`] log in as.
pub const FIRST_ROLE: &str = "trellis";
/// Name of the file of its password, in the form of PostgreSQL's password files (`.pgpass`).
pub const PASSWORD_FILE: &str = "pgpass";
/// Name of the file of the roles.
const ROLES_FILE: &str = "roles";

/// Characters of a password that is made up: without those that look alike.
const CHARACTERS: &[u8] = b"abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789";
/// Its length: 143 bits.
const PASSWORD_LENGTH: usize = 25;

/// A password that nobody can guess.
///
/// # Errors
/// The system has no random bytes.
pub fn generated() -> Result<String> {
    let mut password = String::new();
    while password.len() < PASSWORD_LENGTH {
        // Bytes above the last whole multiple would make some characters likelier.
        let limit = 256 / CHARACTERS.len() * CHARACTERS.len();
        let fits = random_bytes::<32>()?.into_iter().map(usize::from);
        let fits = fits.filter(|byte| *byte < limit);
        let drawn = fits.map(|byte| char::from(CHARACTERS[byte % CHARACTERS.len()]));
        password.extend(drawn.take(PASSWORD_LENGTH - password.len()));
    }
    Ok(password)
}

/// Makes the first role of a cluster that does not exist yet, and has its file name the roles.
pub(crate) fn make(dir: &Path, file: &mut ClusterFile, loopback: Loopback) -> Result<()> {
    let password = generated()?;
    let path = dir.join(ROLES_FILE);
    let mut roles = match path.exists() {
        true => Roles::read(&path)?,
        false => Roles::default(),
    };
    roles.set_password(FIRST_ROLE, &password)?;
    roles.write(&path)?;
    let mut lines = String::new();
    for node in &file.nodes {
        for host in ["127.0.0.1", "localhost"] {
            let port = node.sql.port();
            lines.push_str(&format!("{host}:{port}:*:{FIRST_ROLE}:{password}\n"));
        }
    }
    // Clients of PostgreSQL pass over a file that others may read.
    let path = dir.join(PASSWORD_FILE);
    write_secret(&path, lines.as_bytes())
        .with_context(|| format!("cannot write {}", path.display()))?;
    file.access = Some(AccessEntry {
        roles: ROLES_FILE.into(),
        loopback,
        ..AccessEntry::default()
    });
    Ok(())
}

/// The password of the first role, as the directory keeps it.
pub fn password(dir: &Path) -> Option<String> {
    let text = std::fs::read_to_string(dir.join(PASSWORD_FILE)).ok()?;
    let mut fields = text.lines().next()?.splitn(5, ':');
    fields.nth(4).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dir::{self, Shape};

    #[test]
    fn a_new_cluster_keeps_the_password_of_its_first_role() {
        let folder = std::env::temp_dir().join(format!("trellis-login-{:x}", dir::random()));
        let shape = |password| Shape {
            nodes: Some(2),
            shards: Some(1),
            port: Some(7_100),
            password,
        };
        let (_, file) = dir::open(&folder, &shape(true)).expect("a new cluster");
        let first = password(&folder).expect("it was made");
        let lines = std::fs::read_to_string(folder.join(PASSWORD_FILE)).expect("a file");
        let roles = std::fs::read_to_string(folder.join(ROLES_FILE)).expect("a file");
        let again = dir::open(&folder, &shape(false));
        let kept = password(&folder);
        std::fs::remove_dir_all(&folder).expect("the folder was just made");
        assert_eq!(first.len(), PASSWORD_LENGTH);
        assert_eq!(lines.lines().count(), 4);
        assert!(lines.contains(&format!("localhost:7101:*:trellis:{first}\n")));
        assert!(roles.contains("trellis SCRAM-SHA-256$") && !roles.contains(&first));
        assert_eq!(
            file.access.map(|access| access.loopback),
            Some(Loopback::Password)
        );
        assert!(again.is_ok());
        assert_eq!(kept, Some(first));
    }

    #[test]
    fn a_cluster_that_trusts_is_not_made_strict_by_a_flag() {
        let folder = std::env::temp_dir().join(format!("trellis-login-{:x}", dir::random()));
        let shape = |password| Shape {
            nodes: None,
            shards: None,
            port: Some(7_200),
            password,
        };
        dir::open(&folder, &shape(false)).expect("a new cluster");
        let error = dir::open(&folder, &shape(true))
            .err()
            .map(|error| error.to_string());
        std::fs::remove_dir_all(&folder).expect("the folder was just made");
        assert!(error.is_some_and(|error| error.contains("`loopback`")));
    }

    #[test]
    fn passwords_are_long_and_differ() {
        let made = [generated(), generated()].map(|made| made.expect("random bytes"));
        assert_ne!(made[0], made[1]);
        assert!(
            made.iter()
                .all(|made| made.bytes().all(|byte| CHARACTERS.contains(&byte)))
        );
    }
}

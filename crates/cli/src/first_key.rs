//! The first administrator's key of a new store: on a terminal or in a file, never in a log.

use std::fs::OpenOptions;
use std::io::{self, IsTerminal, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use segno_stores::StoreUrl;

use crate::exit::Failure;

/// Mode of the file: only its owner may read it.
const FILE_MODE: u32 = 0o600;

/// Hands the key over: into `file` if there is one, else on stderr if that is a terminal, else into
/// a file of its own.
///
/// # Errors
/// When the file cannot be written, or is there already.
pub fn hand_over(key: &str, file: Option<&Path>, store: &StoreUrl) -> Result<(), Failure> {
    if file.is_none() && io::stderr().is_terminal() {
        eprintln!("This store had no API key. The administrator's key, shown only once:\n\n  {key}\n");
        return Ok(());
    }
    let path = file.map_or_else(|| default_path(key, store), Path::to_owned);
    write(key, &path).map_err(|error| {
        let path = path.display();
        Failure::Serving(format!(
            "the administrator's key cannot be written to {path}: {error}; name another file with --first-key-file"
        ))
    })?;
    let path = path.display();
    eprintln!("This store had no API key. The administrator's key is in {path}; move it to a safe place.");
    Ok(())
}

/// In the directory of the store, which only its owner may enter; else in the current directory.
fn default_path(key: &str, store: &StoreUrl) -> PathBuf {
    let id = key.split('_').nth(1).unwrap_or("first");
    let name = format!("segno-admin-{id}.key");
    match store {
        StoreUrl::Embedded(directory) => directory.join(name),
        StoreUrl::Memory | StoreUrl::Postgres(_) => PathBuf::from(name),
    }
}

fn write(key: &str, path: &Path) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(FILE_MODE).open(path)?;
    writeln!(file, "{key}")?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn the_file_is_new_and_only_its_owner_may_read_it() {
        let directory = tempfile::tempdir().unwrap();
        let store = StoreUrl::Embedded(directory.path().to_owned());
        let path = default_path("segno_0123_secret", &store);
        assert_eq!(path, directory.path().join("segno-admin-0123.key"));
        hand_over("segno_0123_secret", Some(&path), &store).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "segno_0123_secret\n");
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let refused = hand_over("segno_0123_other", Some(&path), &store).unwrap_err().to_string();
        assert!(refused.contains("--first-key-file"), "{refused}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "segno_0123_secret\n");
    }
}

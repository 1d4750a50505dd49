//! Who else may read the files of a store: no other user, whatever the umask is.
//!
//! They hold payloads and the key that signs leases. A directory is made with mode 0700 and a file
//! with 0600; what an earlier build left wider is tightened when the store is opened, and reported
//! by a check.

use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::log::first_sequence_of;
use crate::operate::fill_marker::{MARKER_NAME, foreign_in};

/// Mode of a store's directory.
const DIRECTORY_MODE: u32 = 0o700;

/// Mode of a store's files.
pub(crate) const FILE_MODE: u32 = 0o600;

/// What the group and all other users may do.
const OTHERS: u32 = 0o077;

/// Names of a store's files, but for the segments of its log.
const OWN_NAMES: [&str; 8] =
    ["lock", "log.tmp", "spare.tmp", "state.redb", "state.tmp", "control.sock", "control.tmp", MARKER_NAME];

/// Whether a file is one of a store, by its name.
pub(crate) fn is_own(name: &str) -> bool {
    OWN_NAMES.contains(&name) || first_sequence_of(name).is_some()
}

/// A file or directory of a store that other users may read or change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExposedFile {
    /// Where it is.
    pub path: PathBuf,
    /// Its mode, as in `0o644`.
    pub mode: u32,
}

/// Makes a directory that only its owner may enter; its parents as usual.
pub(crate) fn make_directory(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    if path.exists() {
        let what = "it is a file, and a store is a directory; name another one as in segno:DIR";
        return Err(io::Error::new(io::ErrorKind::NotADirectory, what));
    }
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    DirBuilder::new().recursive(true).mode(DIRECTORY_MODE).create(path)
}

/// What of a store in a directory other users may read or change. Files that are not a store's are
/// left out, and so is a directory that has files of others and no store.
///
/// # Errors
/// When the directory cannot be read.
pub fn exposed_files(directory: &Path) -> io::Result<Vec<ExposedFile>> {
    let entries = fs::read_dir(directory)?.collect::<io::Result<Vec<_>>>()?;
    let names: Vec<String> =
        entries.iter().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    if foreign_in(names.iter().map(String::as_str)).is_some() {
        return Ok(Vec::new());
    }
    let mut exposed = Vec::new();
    for (entry, _) in entries.iter().zip(&names).filter(|(_, name)| is_own(name)) {
        // A file that is gone meanwhile exposes nothing.
        let Ok(metadata) = entry.metadata() else { continue };
        let mode = metadata.permissions().mode() & 0o777;
        if mode & OTHERS != 0 {
            exposed.push(ExposedFile { path: entry.path(), mode });
        }
    }
    let mode = fs::metadata(directory)?.permissions().mode() & 0o777;
    if mode & OTHERS != 0 {
        exposed.push(ExposedFile { path: directory.to_owned(), mode });
    }
    exposed.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(exposed)
}

/// Takes the rights of other users away. What cannot be changed, because another user owns it, is
/// logged.
pub(crate) fn tighten(directory: &Path) -> io::Result<()> {
    for ExposedFile { path, mode } in exposed_files(directory)? {
        match fs::set_permissions(&path, Permissions::from_mode(mode & !OTHERS)) {
            Ok(()) => tracing::info!(path = %path.display(), "rights of other users were taken away"),
            Err(error) => {
                tracing::warn!(path = %path.display(), mode = format!("{mode:o}"), %error, "other users may read the store");
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::EmbeddedStore;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn only_the_owner_may_read_a_store() {
        let parent = tempfile::tempdir().unwrap();
        let directory = parent.path().join("a/b");
        let store = EmbeddedStore::open(&directory).unwrap();
        assert_eq!(mode(&directory), 0o700);
        let names: Vec<PathBuf> =
            fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert!(names.len() >= 3, "{names:?}");
        for name in &names {
            assert_eq!(mode(name) & 0o077, 0, "{}", name.display());
        }
        assert_eq!(exposed_files(&directory).unwrap(), []);
        drop(store);
    }

    #[test]
    fn what_is_wider_is_reported_and_tightened_by_the_next_open() {
        let parent = tempfile::tempdir().unwrap();
        let directory = parent.path().join("store");
        drop(EmbeddedStore::open(&directory).unwrap());
        let (file, foreign) = (directory.join("state.redb"), directory.join("notes.txt"));
        fs::write(&foreign, "mine").unwrap();
        fs::set_permissions(&foreign, Permissions::from_mode(0o644)).unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
        fs::set_permissions(&directory, Permissions::from_mode(0o755)).unwrap();
        let expected = [
            ExposedFile { path: directory.clone(), mode: 0o755 },
            ExposedFile { path: file.clone(), mode: 0o644 },
        ];
        assert_eq!(exposed_files(&directory).unwrap(), expected);
        drop(EmbeddedStore::open(&directory).unwrap());
        assert_eq!((mode(&directory), mode(&file), mode(&foreign)), (0o700, 0o600, 0o644));
    }

    #[test]
    fn a_directory_that_exists_is_closed_to_others_before_the_store_is_in_it() {
        let parent = tempfile::tempdir().unwrap();
        for leftover in [None, Some("lost+found")] {
            let directory = parent.path().join(leftover.unwrap_or("empty"));
            fs::create_dir(&directory).unwrap();
            if let Some(name) = leftover {
                fs::create_dir(directory.join(name)).unwrap();
            }
            fs::set_permissions(&directory, Permissions::from_mode(0o755)).unwrap();
            let store = EmbeddedStore::open(&directory).unwrap();
            assert_eq!(mode(&directory), 0o700, "{leftover:?}");
            drop(store);
        }
    }

    #[test]
    fn no_store_is_made_among_files_of_others() {
        let parent = tempfile::tempdir().unwrap();
        let directory = parent.path().join("home");
        fs::create_dir(&directory).unwrap();
        fs::set_permissions(&directory, Permissions::from_mode(0o755)).unwrap();
        fs::write(directory.join("notes.txt"), "mine").unwrap();
        // A file that happens to have a name of ours makes it no store.
        fs::write(directory.join("lock"), "theirs").unwrap();
        let error = EmbeddedStore::open(&directory).unwrap_err();
        assert!(
            matches!(&error, crate::OpenError::NotEmpty { file } if file.ends_with("home/notes.txt")),
            "{error}"
        );
        assert_eq!(mode(&directory), 0o755, "its mode is left alone");
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 2, "nothing was made");
        assert_eq!(exposed_files(&directory).unwrap(), []);
    }
}

//! The marker of a directory that a command is filling. It is written and synced before anything else, and removed last. With it the
//! directory is no store, whatever it has: opening it is refused, and the same command may begin again from nothing.
//!
//! An existing empty store gets no marker: a row marks that it is being filled (see `import`).

use std::fmt;
use std::io;
use std::sync::Arc;

use crate::disk::files::Files;
use crate::disk::permissions;
use crate::error::OpenError;
use crate::log::first_sequence_of;
use crate::rows::base::BASE_NAME;

/// Name of the marker.
pub(crate) const MARKER_NAME: &str = "unfinished";

/// What the marker starts with: its format. The word of the command follows.
const FORMAT: &str = "segno-unfinished-1 ";

/// Longest marker that is read, in bytes.
const MAX_MARKER_BYTES: u64 = 64;

/// Files that are no content of a directory: of the process that has it open, and of a file system.
const IGNORED: [&str; 4] = ["lock", "control.sock", "control.tmp", "lost+found"];

/// Folder of the ledger that belongs to the store, which is not this crate's.
const LEDGER_FOLDER: &str = "ledger";

/// What fills a new store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FilledBy {
    /// A program, with `Transfer::import`.
    Import,
    /// `segno store copy`.
    Copy,
    /// `segno store restore`.
    Restore,
    /// `segno store salvage`.
    Salvage,
}

impl FilledBy {
    const ALL: [FilledBy; 4] = [FilledBy::Import, FilledBy::Copy, FilledBy::Restore, FilledBy::Salvage];

    /// The word in the marker. It is never used for another command.
    fn word(self) -> &'static str {
        match self {
            FilledBy::Import => "import",
            FilledBy::Copy => "copy",
            FilledBy::Restore => "restore",
            FilledBy::Salvage => "salvage",
        }
    }
}

impl fmt::Display for FilledBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FilledBy::Import => f.write_str("an import"),
            command => write!(f, "`segno store {}`", command.word()),
        }
    }
}

/// What a directory is to a command that wants to fill it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum FillTarget {
    /// It has nothing but these files, which hold nothing.
    New(Vec<String>),
    /// It is marked for the same command, which has left these files.
    Again(Vec<String>),
    /// It has a store, which may be empty.
    Store,
}

/// Files by which a directory is a store, whole or not.
pub(crate) fn is_of_store(name: &str) -> bool {
    name == BASE_NAME || name == MARKER_NAME || first_sequence_of(name).is_some()
}

/// A file of others in a directory that is no store, if there is one.
pub(crate) fn foreign_in<'n>(mut names: impl Iterator<Item = &'n str> + Clone) -> Option<&'n str> {
    if names.clone().any(is_of_store) {
        return None;
    }
    names.find(|name| !IGNORED.contains(name) && !permissions::is_own(name))
}

/// Fails when a store would be made among files of others. Changes nothing.
pub(crate) fn refuse_foreign(files: &dyn Files) -> Result<(), OpenError> {
    let names = files.list()?;
    match foreign_in(names.iter().map(String::as_str)) {
        Some(foreign) => Err(OpenError::NotEmpty { file: foreign.to_owned() }),
        None => Ok(()),
    }
}

/// Fails when a command has not finished filling the directory.
pub(crate) fn refuse_unfinished(files: &dyn Files) -> Result<(), OpenError> {
    let is_marked = files.list()?.iter().any(|name| name == MARKER_NAME);
    if is_marked { Err(OpenError::Unfinished { by: marker(files)? }) } else { Ok(()) }
}

/// Which command has not finished, if that is known.
fn marker(files: &dyn Files) -> io::Result<Option<FilledBy>> {
    let file = files.open(MARKER_NAME)?;
    let len = file.len()?.min(MAX_MARKER_BYTES);
    let mut bytes = vec![0; usize::try_from(len).unwrap_or(0)];
    file.read_at(0, &mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    let word = text.strip_prefix(FORMAT).map(str::trim_end);
    Ok(FilledBy::ALL.into_iter().find(|by| word == Some(by.word())))
}

/// Whether a command may fill the directory. Changes nothing.
///
/// # Errors
/// When it has files of others, a store that a salvage must not touch, or another command has not finished.
pub(crate) fn target(files: &dyn Files, by: FilledBy) -> Result<FillTarget, OpenError> {
    let mut names = files.list()?;
    names.retain(|name| !IGNORED.contains(&name.as_str()));
    names.sort();
    let is_marked = names.iter().any(|name| name == MARKER_NAME);
    // A server has made it, or the command that was interrupted.
    let has_store = names.iter().any(|name| is_of_store(name));
    names.retain(|name| name != MARKER_NAME && !(has_store && name == LEDGER_FOLDER));
    if let Some(foreign) = names.iter().find(|name| !permissions::is_own(name)) {
        return Err(OpenError::NotEmpty { file: foreign.clone() });
    }
    if is_marked {
        return match marker(files)? {
            Some(before) if before == by => Ok(FillTarget::Again(names)),
            // It was cut off before its text was on the disk, so before anything else was made.
            None if names.is_empty() => Ok(FillTarget::New(names)),
            before => Err(OpenError::Unfinished { by: before }),
        };
    }
    // A state that is being made, and segments of a log that no state names, hold nothing.
    let of_store = names.iter().find(|name| is_of_store(name));
    match of_store {
        None => Ok(FillTarget::New(names)),
        Some(file) if by == FilledBy::Salvage => Err(OpenError::NotEmpty { file: file.clone() }),
        Some(_) => Ok(FillTarget::Store),
    }
}

/// Marks a directory that a command is going to fill and removes what an interrupted one has left.
///
/// # Errors
/// As of [`target`], and when the disk refuses.
pub(crate) fn begin(files: &Arc<dyn Files>, by: FilledBy) -> Result<Marker, OpenError> {
    let (leftover, is_marked) = match target(&**files, by)? {
        FillTarget::New(leftover) => (leftover, false),
        FillTarget::Again(leftover) => (leftover, true),
        FillTarget::Store => return Ok(Marker(None)),
    };
    for name in &leftover {
        files.remove(name)?;
    }
    files.sync_dir()?;
    // One that is there stays as it is: written again, it could be torn.
    if !is_marked {
        let marker = files.create(MARKER_NAME)?;
        marker.write_at(0, format!("{FORMAT}{}\n", by.word()).as_bytes())?;
        marker.sync()?;
        files.sync_dir()?;
    }
    Ok(Marker(Some(Arc::clone(files))))
}

/// That a directory is marked; or not, because it has a store.
#[derive(Debug)]
pub(crate) struct Marker(Option<Arc<dyn Files>>);

impl Marker {
    /// A directory that is not marked.
    pub(crate) fn none() -> Self {
        Marker(None)
    }

    /// Whether the directory is marked.
    pub(crate) fn is_there(&self) -> bool {
        self.0.is_some()
    }

    /// The directory has a whole store, and everything of it is durable.
    ///
    /// # Errors
    /// The directory may be marked still.
    pub(crate) fn remove(&mut self) -> io::Result<()> {
        let Some(files) = &self.0 else { return Ok(()) };
        files.remove(MARKER_NAME)?;
        files.sync_dir()?;
        self.0 = None;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::directory::Directory;

    fn with(names: &[(&str, &str)]) -> (tempfile::TempDir, Arc<dyn Files>) {
        let directory = tempfile::tempdir().expect("a directory");
        for (name, text) in names {
            std::fs::write(directory.path().join(name), text).expect("a file");
        }
        let files = Arc::new(Directory::new(directory.path()).expect("the directory"));
        (directory, files)
    }

    /// What each command makes of a directory: `new`, `store`, or why it is refused.
    fn targets(names: &[(&str, &str)]) -> [String; 2] {
        let (_directory, files) = with(names);
        [FilledBy::Restore, FilledBy::Salvage].map(|by| match target(&*files, by) {
            Ok(FillTarget::New(leftover)) => format!("new {}", leftover.join(" ")).trim_end().to_owned(),
            Ok(FillTarget::Again(leftover)) => format!("again {}", leftover.join(" ")),
            Ok(FillTarget::Store) => "store".to_owned(),
            Err(error) => error.to_string(),
        })
    }

    #[test]
    fn a_directory_is_new_or_a_store_or_refused() {
        let segment = "log-00000000000000000001";
        let salvage = ("unfinished", "segno-unfinished-1 salvage\n");
        assert_eq!(targets(&[]), ["new", "new"]);
        assert_eq!(targets(&[("lock", "1"), ("state.tmp", "")]), ["new state.tmp", "new state.tmp"]);
        let [restore, refused] = targets(&[("state.redb", ""), (segment, "")]);
        assert_eq!(restore, "store");
        assert!(refused.contains("it has log-00000000000000000001"), "{refused}");
        for refused in targets(&[("notes.txt", "mine")]) {
            assert!(refused.contains("it has notes.txt"), "{refused}");
        }
        let [other, same] = targets(&[salvage, ("state.tmp", ""), ("lock", "")]);
        assert!(other.contains("`segno store salvage`"), "{other}");
        assert_eq!(same, "again state.tmp");
        let restore = ("unfinished", "segno-unfinished-1 restore\n");
        assert_eq!(targets(&[restore, ("ledger", "")])[0], "again ");
        assert_eq!(targets(&[("state.redb", ""), ("ledger", "")])[0], "store");
        let [refused, _] = targets(&[("ledger", "")]);
        assert!(refused.contains("it has ledger"), "{refused}");
        // Torn by a power cut.
        assert_eq!(targets(&[("unfinished", "")]), ["new", "new"]);
        for refused in targets(&[("unfinished", "segno-unfinished-2 x\n"), ("state.redb", "")]) {
            assert!(refused.contains("filling it was interrupted"), "{refused}");
        }
    }

    #[test]
    fn the_marker_has_these_bytes() {
        for (by, text) in [
            (FilledBy::Import, "segno-unfinished-1 import\n"),
            (FilledBy::Copy, "segno-unfinished-1 copy\n"),
            (FilledBy::Restore, "segno-unfinished-1 restore\n"),
            (FilledBy::Salvage, "segno-unfinished-1 salvage\n"),
        ] {
            let (directory, files) = with(&[]);
            let mut marker = begin(&files, by).expect("an empty directory");
            let written = std::fs::read_to_string(directory.path().join("unfinished")).expect("the marker");
            assert_eq!(written, text);
            let refused = refuse_unfinished(&*files).expect_err("it is marked").to_string();
            assert!(refused.contains(&by.to_string()), "{refused}");
            marker.remove().expect("it is there");
            refuse_unfinished(&*files).expect("it is gone");
        }
    }
}

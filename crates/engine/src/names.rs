//! Which ids and names are allowed. Checked where they enter, before anything is stored.

use std::collections::BTreeMap;

use crate::error::{Code, Error};
use crate::limits::{MAX_INSTANCE_ID_BYTES, MAX_LABEL_VALUE_BYTES, MAX_LABELS, MAX_NAME_BYTES};

/// An instance id: any printable text without leading or trailing white space, up to [`MAX_INSTANCE_ID_BYTES`].
pub(crate) fn check_instance_id(id: &str) -> Result<(), Error> {
    check_text(Code::InvalidInstanceId, "instance id", id, MAX_INSTANCE_ID_BYTES)
}

/// A name of something in code: any printable text up to [`MAX_NAME_BYTES`].
pub(crate) fn check_name(what: &str, name: &str) -> Result<(), Error> {
    check_text(Code::InvalidName, what, name, MAX_NAME_BYTES)
}

/// A semver version such as `1.2.0`, up to [`MAX_NAME_BYTES`].
pub(crate) fn check_version(version: &str) -> Result<semver::Version, Error> {
    if version.len() > MAX_NAME_BYTES {
        let message = format!("the version has {} bytes, the limit is {MAX_NAME_BYTES}", version.len());
        return Err(Error::new(Code::InvalidVersion, message));
    }
    semver::Version::parse(version).map_err(|error| {
        Error::new(Code::InvalidVersion, format!("{version:?} is not a version such as 1.2.0: {error}"))
    })
}

/// What the labels begin with that Segno itself puts on instances, such as the function that a call runs. Code and callers
/// cannot set them.
pub const RESERVED_LABEL_PREFIX: &str = "segno.";

/// Label of an instance whose start lies ahead: when that is, in Unix milliseconds. The queue has the start itself, which nothing
/// but its turn reads.
pub(crate) const START_AT_LABEL: &str = "segno.start_at";

/// Whether a label is one that only Segno itself sets.
pub fn is_reserved_label(key: &str) -> bool {
    key.starts_with(RESERVED_LABEL_PREFIX)
}

/// A label that code or a caller sets.
pub(crate) fn check_unreserved_label(key: &str) -> Result<(), Error> {
    if !is_reserved_label(key) {
        return Ok(());
    }
    let shown: String = key.chars().take(80).collect();
    let message = format!(
        "the label {shown:?} begins with {RESERVED_LABEL_PREFIX:?}, which is reserved for Segno; choose another name"
    );
    Err(Error::new(Code::InvalidLabel, message))
}

/// A label that Segno sets.
pub(crate) fn check_reserved_label(key: &str) -> Result<(), Error> {
    if is_reserved_label(key) {
        return Ok(());
    }
    let message =
        format!("the label {key:?} is not reserved: it does not begin with {RESERVED_LABEL_PREFIX:?}");
    Err(Error::new(Code::InvalidLabel, message))
}

/// The labels of one instance. Those of Segno do not count.
pub(crate) fn check_labels(labels: &BTreeMap<String, String>) -> Result<(), Error> {
    let count = labels.keys().filter(|key| !is_reserved_label(key)).count();
    if count > MAX_LABELS {
        return Err(Error::new(
            Code::InvalidLabel,
            format!("{count} labels are too many, the limit is {MAX_LABELS}"),
        ));
    }
    for (key, value) in labels {
        check_text(Code::InvalidLabel, "label", key, MAX_NAME_BYTES)?;
        if value.len() > MAX_LABEL_VALUE_BYTES || value.chars().any(char::is_control) {
            return Err(Error::new(
                Code::InvalidLabel,
                format!(
                    "the value of label {key:?} must be printable and at most {MAX_LABEL_VALUE_BYTES} bytes"
                ),
            ));
        }
    }
    Ok(())
}

fn check_text(code: Code, what: &str, text: &str, max_bytes: usize) -> Result<(), Error> {
    let problem = if text.is_empty() {
        "is empty".to_owned()
    } else if text.len() > max_bytes {
        format!("has {} bytes, the limit is {max_bytes}", text.len())
    } else if let Some(bad) = text.chars().find(|c| c.is_control()) {
        format!("contains the control character {:?}; use printable characters", bad)
    } else if text.trim() != text {
        "starts or ends with white space".to_owned()
    } else {
        return Ok(());
    };
    let shown: String = text.chars().take(80).collect();
    Err(Error::new(code, format!("the {what} {shown:?} {problem}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_and_names_are_printable_bounded_text() {
        let long = "x".repeat(MAX_INSTANCE_ID_BYTES + 1);
        for (id, ok) in [
            ("order-1", true),
            ("team/eu/Bestellung Nr. 7 ✓", true),
            ("a:b::c", true),
            ("", false),
            (" x", false),
            ("x\n", false),
            ("nul\0", false),
            (long.as_str(), false),
        ] {
            assert_eq!(check_instance_id(id).is_ok(), ok, "{id:?}");
        }
        assert!(check_name("activity name", &"n".repeat(MAX_NAME_BYTES)).is_ok());
        assert!(check_name("activity name", &"n".repeat(MAX_NAME_BYTES + 1)).is_err());
    }

    #[test]
    fn reserved_labels_are_not_callers_and_do_not_count() {
        let mut labels: BTreeMap<String, String> =
            (0..MAX_LABELS).map(|n| (format!("k{n}"), String::new())).collect();
        labels.insert("segno.function".to_owned(), "x".to_owned());
        check_labels(&labels).unwrap();
        labels.insert("one more".to_owned(), String::new());
        assert_eq!(check_labels(&labels).unwrap_err().code(), Code::InvalidLabel);
        assert_eq!(check_unreserved_label("segno.function").unwrap_err().code(), Code::InvalidLabel);
        check_unreserved_label("segno").unwrap();
        assert_eq!(check_reserved_label("team").unwrap_err().code(), Code::InvalidLabel);
        check_reserved_label("segno.function").unwrap();
    }

    #[test]
    fn versions_are_semver() {
        assert!(check_version("1.2.0").is_ok());
        assert_eq!(check_version("1.2").unwrap_err().code(), Code::InvalidVersion);
        let long = format!("1.0.0-{}", "a".repeat(MAX_NAME_BYTES - 6));
        assert!(check_version(&long).is_ok());
        assert_eq!(check_version(&format!("{long}a")).unwrap_err().code(), Code::InvalidVersion);
    }
}

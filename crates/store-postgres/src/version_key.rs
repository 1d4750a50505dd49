//! Versions as text that sorts byte by byte as versions do, so that the database can compare pins with ranges.

use semver::Version;

/// Digits of the longest number in a version.
const MAX_DIGITS: usize = 20;

/// Ends an identifier; sorts before everything that an identifier can contain.
const END: char = '!';

/// Stands for "no pre-release"; sorts after every pre-release.
const RELEASE: char = '~';

/// The text of a version that sorts like it. Never empty.
pub(crate) fn version_key(version: &Version) -> String {
    let mut key =
        format!("{:0MAX_DIGITS$}{:0MAX_DIGITS$}{:0MAX_DIGITS$}", version.major, version.minor, version.patch);
    if version.pre.is_empty() {
        key.push(RELEASE);
    } else {
        push_identifiers(&mut key, version.pre.as_str());
    }
    key.push(END);
    if !version.build.is_empty() {
        push_identifiers(&mut key, version.build.as_str());
    }
    key
}

fn push_identifiers(key: &mut String, identifiers: &str) {
    for identifier in identifiers.split('.') {
        if identifier.bytes().all(|byte| byte.is_ascii_digit()) {
            // Numbers come before words and sort by their length first.
            let digits = identifier.trim_start_matches('0');
            key.push_str(&format!("0{:03}{digits}", digits.len()));
        } else {
            key.push('1');
            key.push_str(identifier);
        }
        key.push(END);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_sort_like_versions() {
        let ordered = [
            "0.0.0",
            "0.1.0-alpha",
            "0.1.0-alpha.1",
            "0.1.0-alpha.2",
            "0.1.0-alpha.10",
            "0.1.0-alpha.beta",
            "0.1.0-alpha-x",
            "0.1.0-beta",
            "0.1.0-rc.1",
            "0.1.0",
            "0.1.0+build",
            "0.1.9",
            "0.1.10",
            "0.2.0",
            "1.0.0-1",
            "1.0.0-a",
            "1.0.0",
            "1.0.0+1",
            "1.0.0+2",
            "10.0.0",
            "18446744073709551615.0.0",
        ]
        .map(|text| Version::parse(text).unwrap());
        assert!(ordered.is_sorted(), "the table is in order");
        let keys: Vec<String> = ordered.iter().map(version_key).collect();
        assert!(keys.is_sorted_by(|one, next| one < next), "{keys:#?}");
    }
}

//! Where traces of instances are shown: `server.trace_url`.

use axum::http::Uri;

use super::SettingsError;

/// The setting.
const NAME: &str = "server.trace_url";

/// Longest URL in bytes.
const MAX_BYTES: usize = 1_024;

/// What stands for the ids of an instance.
const PLACES: [&str; 2] = ["{trace}", "{instance}"];

/// Checks the setting. The UI makes a link of it, so that only `http` and `https` are taken.
///
/// # Errors
/// Names what is wrong with it.
pub fn check(text: &str) -> Result<(), SettingsError> {
    let wrong = |problem: &str| {
        let reason = format!(
            "{text:?} {problem}; write an address with {{trace}} or {{instance}}, as in https://traces.example/trace/{{trace}}"
        );
        SettingsError::value(NAME, reason)
    };
    if text.len() > MAX_BYTES {
        return Err(SettingsError::value(NAME, format!("is longer than {MAX_BYTES} bytes")));
    }
    if !PLACES.iter().any(|place| text.contains(place)) {
        return Err(wrong("names neither {trace} nor {instance}"));
    }
    let filled = PLACES.iter().fold(text.to_owned(), |text, place| text.replace(place, "x"));
    let uri: Uri = filled.parse().map_err(|_| wrong("is no URL"))?;
    if !matches!(uri.scheme_str(), Some("http" | "https")) {
        return Err(wrong("does not begin with http:// or https://"));
    }
    // An id that a user chose must not become the host.
    let authority = text.split("://").nth(1).and_then(|rest| rest.split(['/', '?', '#']).next());
    if authority.is_none_or(|authority| authority.contains(['{', '@'])) {
        return Err(wrong("has an id or a user name in its host"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_with_an_id_in_their_path_are_taken_and_others_refused() {
        for (text, is_good) in [
            ("https://traces.example/trace/{trace}", true),
            ("http://localhost:16686/search?tags={instance}&trace={trace}", true),
            ("https://traces.example/trace", false),
            ("javascript:alert('{trace}')", false),
            ("https://{instance}.example/{trace}", false),
            ("https://me@traces.example/{trace}", false),
            ("/traces/{trace}", false),
            ("https://traces example/{trace}", false),
        ] {
            assert_eq!(check(text).is_ok(), is_good, "{text}");
        }
        assert!(check(&format!("https://traces.example/{{trace}}/{}", "a".repeat(1_024))).is_err());
    }
}

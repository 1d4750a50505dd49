//! Under which address people reach a server that is behind a proxy: `server.public_url`.

use axum::http::Uri;

use super::SettingsError;

/// The setting.
const NAME: &str = "server.public_url";

/// Longest URL in bytes.
const MAX_BYTES: usize = 1_024;

/// Where browsers find the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicUrl {
    /// Scheme, host and port, as browsers write them in `Origin`; lowercase.
    pub origin: String,
    /// Whether browsers reach it over TLS.
    pub is_https: bool,
    /// The path, with a slash at both ends.
    pub base: String,
}

impl PublicUrl {
    /// Reads the setting.
    ///
    /// # Errors
    /// Names what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, SettingsError> {
        let wrong = |problem: &str| {
            let reason =
                format!("{text:?} {problem}; write the address of the UI, as in https://ops.example/segno/");
            SettingsError::value(NAME, reason)
        };
        if text.len() > MAX_BYTES {
            return Err(SettingsError::value(NAME, format!("is longer than {MAX_BYTES} bytes")));
        }
        let uri: Uri = text.parse().map_err(|_| wrong("is no URL"))?;
        let scheme = uri.scheme_str().unwrap_or_default();
        if !matches!(scheme, "http" | "https") {
            return Err(wrong("does not begin with http:// or https://"));
        }
        let authority = uri.authority().map(|authority| authority.as_str().to_ascii_lowercase());
        let authority = authority.ok_or_else(|| wrong("names no host"))?;
        if authority.contains('@') {
            return Err(wrong("has a user name in it"));
        }
        if uri.query().is_some() || text.contains('#') {
            return Err(wrong("has a query or fragment"));
        }
        // Written into the page, and compared with the paths of requests as they are.
        let is_plain =
            |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'-' | b'_' | b'.' | b'~');
        let path = uri.path();
        let segments = path.trim_matches('/');
        let is_odd = |segment: &str| matches!(segment, "" | "." | "..");
        if !path.bytes().all(is_plain) || (!segments.is_empty() && segments.split('/').any(is_odd)) {
            return Err(wrong(
                "has a path with other characters than letters, digits, '-', '_', '.', '~' and single slashes",
            ));
        }
        let default_port = if scheme == "https" { ":443" } else { ":80" };
        let host = authority.strip_suffix(default_port).unwrap_or(&authority);
        Ok(PublicUrl {
            origin: format!("{scheme}://{host}"),
            is_https: scheme == "https",
            base: if segments.is_empty() { "/".to_owned() } else { format!("/{segments}/") },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_pages_are_read_and_others_refused() {
        for (text, origin, is_https, base) in [
            ("https://ops.example/segno/", "https://ops.example", true, "/segno/"),
            ("https://OPS.example:443/a/segno", "https://ops.example", true, "/a/segno/"),
            ("http://[::1]:8080", "http://[::1]:8080", false, "/"),
            ("http://ops.example:80/", "http://ops.example", false, "/"),
        ] {
            let read = PublicUrl::parse(text).unwrap();
            assert_eq!(
                (read.origin.as_str(), read.is_https, read.base.as_str()),
                (origin, is_https, base),
                "{text}"
            );
        }
        for (text, problem) in [
            ("ops.example/segno", "no URL"),
            ("ftp://ops.example/", "http://"),
            ("https://me@ops.example/", "user name"),
            ("https://ops.example/?a=b", "query"),
            ("https://ops.example/#a", "query"),
            ("https://ops.example/a\"b/", "characters"),
            ("https://ops.example/a%22b/", "characters"),
            ("https://ops.example/a//b/", "characters"),
            ("https://ops.example/../b/", "characters"),
            ("", "no URL"),
        ] {
            let error = PublicUrl::parse(text).unwrap_err().to_string();
            assert!(error.starts_with(NAME) && error.contains(problem), "{text}: {error}");
        }
    }
}

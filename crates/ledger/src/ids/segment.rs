//! Segments of ids. An id joins its segments with colons; a colon or percent sign inside a segment
//! is escaped, so plain keys look as they are written and an id is divided in one way only.

use std::borrow::Cow;

/// A text as a segment: `%` becomes `%25`, `:` becomes `%3A`.
pub fn escape(text: &str) -> Cow<'_, str> {
    if !text.contains(['%', ':']) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.replace('%', "%25").replace(':', "%3A"))
}

/// The text of a segment; nothing for what [`escape`] cannot have produced.
pub fn unescape(segment: &str) -> Option<String> {
    let mut text = String::with_capacity(segment.len());
    let mut rest = segment;
    while let Some(at) = rest.find(['%', ':']) {
        text.push_str(&rest[..at]);
        rest = match rest.get(at..at + 3)? {
            "%25" => {
                text.push('%');
                &rest[at + 3..]
            }
            "%3A" => {
                text.push(':');
                &rest[at + 3..]
            }
            _ => return None,
        };
    }
    text.push_str(rest);
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_are_read_back() {
        for (text, segment) in
            [("plain", "plain"), ("a:b", "a%3Ab"), ("%3A", "%253A"), ("", ""), ("é:", "é%3A")]
        {
            assert_eq!(escape(text), segment);
            assert_eq!(unescape(segment).as_deref(), Some(text));
        }
        for bad in ["a:b", "%", "%4", "%41", "%é"] {
            assert_eq!(unescape(bad), None, "{bad}");
        }
    }
}

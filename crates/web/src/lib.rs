//! The web UI's built files. They are committed in `dist` (sources: `web/` at the root of the repository) and become part
//! of the binary: `build.rs` compresses them and makes the table.
//!
//! **Invariant.** This crate serves nothing and knows no route: it has files by path. The server decides about headers.

/// The page that every address of the UI opens with.
pub const INDEX: &str = "index.html";

/// What of the page names its place; [`index`] replaces it.
const BASE: &str = "<base href=\"/\">";

/// Files below this directory have a hash of their content in their name.
const HASHED: &str = "assets/";

/// A file of the UI.
#[derive(Debug, Clone, Copy)]
pub struct File {
    /// Its path below `dist`.
    pub path: &'static str,
    /// Differs between two versions of the file.
    pub tag: &'static str,
    /// Its bytes.
    pub content: &'static [u8],
    /// The same, compressed by gzip.
    pub gzip: &'static [u8],
}

/// All files, in order of their paths.
pub const FILES: &[File] = include!(concat!(env!("OUT_DIR"), "/files.rs"));

impl File {
    /// The file at a path, without a slash before it.
    pub fn at(path: &str) -> Option<&'static File> {
        let found = FILES.binary_search_by(|file| file.path.cmp(path));
        found.ok().and_then(|place| FILES.get(place))
    }

    /// Whether its name changes with its content, so that a browser may keep it for good.
    pub fn is_immutable(&self) -> bool {
        self.path.starts_with(HASHED)
    }

    /// Its media type, by the end of its name.
    pub fn media_type(&self) -> &'static str {
        match self.path.rsplit_once('.').map_or("", |(_, extension)| extension) {
            "html" => "text/html; charset=utf-8",
            "js" => "text/javascript; charset=utf-8",
            "css" => "text/css; charset=utf-8",
            "svg" => "image/svg+xml",
            "json" => "application/json",
            "woff2" => "font/woff2",
            "png" => "image/png",
            _ => "application/octet-stream",
        }
    }
}

/// The page with the path that it is served under: `/`, or the path of a proxy, with a slash at both ends. Of the
/// characters in it, none may have a meaning in HTML.
pub fn index(base: &str) -> String {
    let page = File::at(INDEX).map_or(&[][..], |file| file.content);
    String::from_utf8_lossy(page).replacen(BASE, &format!("<base href=\"{base}\">"), 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Most bytes of the files that the page names itself, compressed.
    const MAX_FIRST_LOAD_BYTES: usize = 200_000;

    #[test]
    fn files_are_found_by_their_paths_and_nothing_else_is() {
        for file in FILES {
            assert_eq!(File::at(file.path).map(|found| found.tag), Some(file.tag), "{}", file.path);
            assert_ne!(file.media_type(), "application/octet-stream", "{}", file.path);
            assert!(!file.content.is_empty() && file.gzip.starts_with(&[0x1f, 0x8b]), "{}", file.path);
        }
        for path in ["", "/index.html", "assets", "assets/", "../Cargo.toml"] {
            assert!(File::at(path).is_none(), "{path:?}");
        }
    }

    #[test]
    fn the_page_has_its_place_and_no_script_in_itself() {
        let page = index("/ops/segno/");
        assert!(page.contains("<base href=\"/ops/segno/\">") && !page.contains(BASE), "{page}");
        for script in page.split("<script").skip(1) {
            let (attributes, rest) = script.split_once('>').unwrap();
            assert!(attributes.contains("src=\"./") && rest.starts_with("</script>"), "{script}");
        }
        assert!(!page.contains("style=") && !page.contains("http"), "{page}");
    }

    #[test]
    fn the_first_load_is_small() {
        let page = index("/");
        let named = page.split('"').filter_map(|part| File::at(part.strip_prefix("./")?));
        let files: Vec<_> = named.collect();
        assert!(files.len() > 5, "the page names {} files", files.len());
        let bytes =
            File::at(INDEX).unwrap().gzip.len() + files.iter().map(|file| file.gzip.len()).sum::<usize>();
        assert!(bytes <= MAX_FIRST_LOAD_BYTES, "{bytes} bytes are loaded before the page shows something");
    }
}

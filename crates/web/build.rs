//! Makes a table of the files in `dist`, each as it is and compressed, so that `cargo build` needs neither Node nor a
//! file beside the binary.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

use flate2::Compression;
use flate2::write::GzEncoder;

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=dist");
    let dist = Path::new(&variable("CARGO_MANIFEST_DIR")?).join("dist");
    let out = PathBuf::from(variable("OUT_DIR")?);
    let mut table = String::from("&[\n");
    for (number, path) in files(&dist)?.into_iter().enumerate() {
        let content = fs::read(dist.join(&path))?;
        let compressed = compress(&content)?;
        let packed = out.join(format!("{number}.gz"));
        fs::write(&packed, &compressed)?;
        let tag = fingerprint(&content);
        let whole = dist.join(&path);
        writeln!(
            table,
            "    File {{ path: {path:?}, tag: \"{tag:016x}\", content: include_bytes!({whole:?}), \
             gzip: include_bytes!({packed:?}) }},"
        )
        .map_err(io::Error::other)?;
    }
    table.push(']');
    fs::write(out.join("files.rs"), table)
}

fn variable(name: &str) -> io::Result<String> {
    env::var(name).map_err(io::Error::other)
}

/// The paths of all files below a directory, sorted, with slashes.
fn files(directory: &Path) -> io::Result<Vec<String>> {
    let mut found = Vec::new();
    let mut open = vec![PathBuf::new()];
    while let Some(inner) = open.pop() {
        for entry in fs::read_dir(directory.join(&inner))? {
            let entry = entry?;
            let path = inner.join(entry.file_name());
            if entry.file_type()?.is_dir() {
                open.push(path);
            } else {
                let parts: Vec<_> = path.iter().map(|part| part.to_string_lossy()).collect();
                found.push(parts.join("/"));
            }
        }
    }
    found.sort();
    Ok(found)
}

fn compress(content: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(content)?;
    encoder.finish()
}

/// FNV-1a: tells versions of one file apart; nothing depends on it being hard to forge.
fn fingerprint(content: &[u8]) -> u64 {
    content.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

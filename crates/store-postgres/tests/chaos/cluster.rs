//! A private server that can be crashed and started again.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A server in a directory of its own, with its durable defaults.
pub struct Cluster {
    directory: PathBuf,
    pub url: String,
}

fn script(verb: &str, directory: &Path) -> String {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/postgres.sh");
    let output = Command::new(script).arg(verb).arg(directory).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    assert!(output.status.success(), "{verb}: {text} {}", String::from_utf8_lossy(&output.stderr));
    text
}

impl Cluster {
    /// A new one.
    pub fn start(name: &str) -> Cluster {
        // Short, because the path of a socket must be.
        let directory = PathBuf::from(format!("/tmp/segno-chaos-{name}-{}", std::process::id()));
        let url = script("start", &directory);
        Cluster { directory, url }
    }

    /// Where it listens.
    pub fn socket(&self) -> PathBuf {
        self.directory.join(".s.PGSQL.5432")
    }

    /// Ends it without a checkpoint and starts it again.
    pub fn crash(&self) {
        script("crash", &self.directory);
        assert_eq!(script("start", &self.directory), self.url);
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        script("crash", &self.directory);
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

//! A private server that can be crashed and started again.

#![allow(dead_code, reason = "every test binary uses a part of it")]

use std::path::{Path, PathBuf};
use std::process::Command;

/// A server in a directory of its own, with its durable defaults.
pub struct Cluster {
    pub directory: PathBuf,
    pub url: String,
}

fn run(verb: &str, directory: &Path, settings: &[String]) -> std::process::Output {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/postgres.sh");
    Command::new(script).arg(verb).arg(directory).args(settings).output().unwrap()
}

fn script(verb: &str, directory: &Path, settings: &[String]) -> String {
    let output = run(verb, directory, settings);
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    assert!(output.status.success(), "{verb}: {text} {}", String::from_utf8_lossy(&output.stderr));
    text
}

/// Short, because the path of a socket must be.
fn directory(name: &str) -> PathBuf {
    PathBuf::from(format!("/tmp/segno-{name}-{}", std::process::id()))
}

impl Cluster {
    /// A new one.
    pub fn start(name: &str) -> Cluster {
        let directory = directory(name);
        let url = script("start", &directory, &[]);
        Cluster { directory, url }
    }

    /// A new one with a certificate for localhost, which speaks at this port.
    pub fn start_with_certificate(name: &str, port: u16) -> Cluster {
        let directory = directory(name);
        script("certify", &directory, &[]);
        let at = directory.display();
        let settings = [
            "listen_addresses=127.0.0.1".to_owned(),
            format!("port={port}"),
            "ssl=on".to_owned(),
            format!("ssl_cert_file={at}/server.crt"),
            format!("ssl_key_file={at}/server.key"),
        ];
        script("start", &directory, &settings);
        Cluster { directory, url: format!("postgres://segno@localhost:{port}/postgres") }
    }

    /// Starts a PgBouncer in transaction mode before it, and says where that is.
    pub fn pool(&self) -> String {
        script("pool", &self.directory, &[])
    }

    /// Where it listens.
    pub fn socket(&self) -> PathBuf {
        self.directory.join(".s.PGSQL.5432")
    }

    /// Ends it without a checkpoint and starts it again.
    pub fn crash(&self) {
        script("crash", &self.directory, &[]);
        assert_eq!(script("start", &self.directory, &[]), self.url);
    }
}

/// A primary and its synchronous standby.
pub struct Pair {
    /// Names both servers.
    pub url: String,
    primary: Cluster,
    standby: Cluster,
}

impl Pair {
    /// Starts both.
    pub fn start(name: &str) -> Pair {
        let primary = Cluster::start(&format!("{name}-a"));
        let directory = directory(&format!("{name}-b"));
        let url = script("standby", &directory, &[primary.directory.display().to_string()]);
        let standby = Cluster { directory, url };
        let host = |cluster: &Cluster| cluster.directory.display().to_string().replace('/', "%2F");
        let url = format!("postgres://segno@{},{}/postgres", host(&primary), host(&standby));
        Pair { url, primary, standby }
    }

    /// Ends the primary without a checkpoint and promotes the standby.
    pub fn fail_over(&mut self) {
        script("crash", &self.primary.directory, &[]);
        script("promote", &self.standby.directory, &[]);
        std::mem::swap(&mut self.primary, &mut self.standby);
    }

    /// Makes the server that was lost a standby of the one that took over.
    pub fn repair(&self) {
        script("standby", &self.standby.directory, &[self.primary.directory.display().to_string()]);
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // A server that is down already stays so: the test may have failed between a crash and what follows.
        let _ = run("stop", &self.directory, &[]);
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

//! A server as a process of its own.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use segno::clock::{self, SystemClock};
use serde_json::Value;

/// The pause before a test looks again for what it waits for: a test that does not pause takes the processor from the
/// processes that it watches.
pub async fn look_again() {
    clock::sleep(&SystemClock, Duration::from_millis(2)).await;
}

/// The binary, with nothing of the machine that runs the tests.
pub fn segno() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_segno"));
    for name in [
        "SEGNO_SERVER",
        "SEGNO_KEY",
        "SEGNO_PROFILE",
        "SEGNO_NAMESPACE",
        "SEGNO_TENANT",
        "SEGNO_UTC",
        "NO_COLOR",
        "SEGNO_LOG",
        "RUST_LOG",
        "OTEL_EXPORTER_OTLP_ENDPOINT",
        "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
        "OTEL_RESOURCE_ATTRIBUTES",
        "OTEL_SERVICE_NAME",
        "OTEL_TRACES_SAMPLER",
    ] {
        command.env_remove(name);
    }
    command.env("XDG_CONFIG_HOME", "/nonexistent").env("TZ", "UTC").env_remove("RUST_BACKTRACE");
    command
}

/// A running server, killed when it is dropped.
pub struct Process {
    /// The process.
    pub child: Child,
    /// Where it listens.
    pub address: String,
    /// What it said until it listened.
    pub said: Vec<String>,
    /// What it logged from then on.
    pub log: Arc<Mutex<Vec<String>>>,
}

impl Process {
    /// Starts a server and waits until it says where it listens.
    pub fn start(arguments: &[&str]) -> Self {
        Self::start_by(segno(), arguments)
    }

    /// The same with a command of one's own.
    pub fn start_by(command: Command, arguments: &[&str]) -> Self {
        let process = Self::try_start_by(command, arguments);
        process.unwrap_or_else(|said| panic!("{arguments:?} said only {said:?}"))
    }

    /// The same; what it said if it ends instead.
    pub fn try_start_by(mut command: Command, arguments: &[&str]) -> Result<Self, Vec<String>> {
        if arguments.first() == Some(&"dev") {
            // Its instances would be counted.
            command.args(["dev", "--without-demo"]).args(&arguments[1..]);
        } else {
            command.args(arguments);
        }
        let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        // From here on it is killed whatever happens.
        let mut process = Process { child, address: String::new(), said: Vec::new(), log: Arc::default() };
        let mut lines = BufReader::new(process.child.stderr.take().unwrap()).lines();
        while process.address.is_empty() {
            let Some(line) = lines.next() else { return Err(std::mem::take(&mut process.said)) };
            let line = line.unwrap();
            let port = ["http://127.0.0.1:", "\"address\":\"127.0.0.1:"].iter().find_map(|mark| {
                let rest = line.split(mark).nth(1)?;
                Some(rest.chars().take_while(char::is_ascii_digit).collect::<String>())
            });
            process.said.push(line);
            process.address = port.map_or_else(String::new, |port| format!("http://127.0.0.1:{port}"));
        }
        // The rest is read all the time, so that the server never waits for us.
        let log = Arc::clone(&process.log);
        std::thread::spawn(move || lines.for_each(|line| log.lock().unwrap().extend(line)));
        Ok(process)
    }

    /// A server to play with, on a free port.
    pub fn dev(data: &Path) -> Self {
        Self::dev_by(segno(), data)
    }

    /// The same with a command of one's own.
    pub fn dev_by(command: Command, data: &Path) -> Self {
        Self::start_by(command, &["dev", "--listen", "127.0.0.1:0", "--data", data.to_str().unwrap()])
    }

    /// A server to play with; what it said if it does not start.
    pub fn try_dev(data: &Path) -> Result<Self, Vec<String>> {
        let arguments = ["dev", "--listen", "127.0.0.1:0", "--data", data.to_str().unwrap()];
        Self::try_start_by(segno(), &arguments)
    }

    /// Runs a verb against it.
    pub fn run(&self, arguments: &[&str]) -> Output {
        segno().args(arguments).args(["--server", &self.address]).output().unwrap()
    }

    /// What a command prints that must succeed.
    pub fn said(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// The same as JSON.
    pub fn json(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.said(&[arguments, &["-o", "json"]].concat())).unwrap()
    }

    /// The items of a list.
    pub fn items(&self, arguments: &[&str]) -> Vec<Value> {
        self.json(arguments)["items"].as_array().unwrap().clone()
    }

    /// Kills it and waits until it is gone.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Sends it a signal.
    pub fn signal(&self, name: &str) {
        let killed = Command::new("kill").args(["-s", name, &self.child.id().to_string()]).status().unwrap();
        assert!(killed.success());
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

//! The walk of `docs/guide/your-server.md`: the program serves its own orchestration and function, and is their client.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

fn shop() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_shop"));
    for name in ["SEGNO_SERVER", "SEGNO_KEY", "SEGNO_PROFILE", "SEGNO_NAMESPACE", "SEGNO_TENANT"] {
        command.env_remove(name);
    }
    command
}

/// A server, killed when it is dropped.
struct Server {
    child: Child,
    address: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Server {
    fn start(data: &str) -> Server {
        let arguments = ["dev", "--listen", "127.0.0.1:0", "--data", data];
        let child = shop().args(arguments).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut server = Server { child, address: String::new() };
        let mut lines = BufReader::new(server.child.stderr.take().unwrap()).lines().map(Result::unwrap);
        let ready = lines.find(|line| line.contains("is ready on")).expect("the server starts");
        let address = ready.split_whitespace().find(|word| word.starts_with("http://"));
        address.expect("the server prints its address").clone_into(&mut server.address);
        // The rest is read and dropped, so that the server never waits for a reader.
        std::thread::spawn(move || lines.for_each(drop));
        server
    }

    fn run(&self, arguments: &[&str]) -> String {
        let output = shop().args(arguments).args(["--server", &self.address]).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {errors}");
        String::from_utf8(output.stdout).unwrap()
    }
}

#[test]
fn a_program_of_its_own_serves_and_operates_its_workflows() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(data.path().to_str().unwrap());
    let shown = server.run(&["start", "order", "--id", "o-1", "--input", "1250", "--wait"]);
    assert!(shown.contains("charged 1250 cents, shipped"), "{shown}");
    let shown = server.run(&["invoke", "total", "--input", "[250, 1000]"]);
    assert_eq!(shown.trim(), "1250");
    let shown = server.run(&["show", "o-1"]);
    assert!(shown.contains("order") && shown.to_lowercase().contains("completed"), "{shown}");
    // The samples of `segno dev` are not in the way of what the program has.
    let output = shop().args(["invoke", "greet", "--server", &server.address]).output().unwrap();
    assert!(!output.status.success());
}

#[test]
fn help_messages_and_settings_are_those_of_the_program() {
    let output = shop().args(["config", "print"]).output().unwrap();
    let shown = String::from_utf8(output.stdout).unwrap();
    let line = shown.lines().find(|line| line.trim_start().starts_with("retention.finished_hours"));
    let line = line.unwrap_or_else(|| panic!("{shown}"));
    assert!(line.contains("720") && line.contains("(program)"), "{line}");
    let output = shop().arg("--help").output().unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).contains("Usage: shop "));
    let output = shop().args(["wait", "x", "--server", "http://127.0.0.1:1"]).output().unwrap();
    assert!(String::from_utf8_lossy(&output.stderr).starts_with("shop: "));
}

#[test]
fn the_guide_shows_this_program_and_it_is_short() {
    let program = include_str!("../src/main.rs");
    let guide = include_str!("../../../docs/guide/your-server.md");
    assert!(guide.contains(program), "docs/guide/your-server.md shows another program");
    assert!(program.lines().count() < 40);
}

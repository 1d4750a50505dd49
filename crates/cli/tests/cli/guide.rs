//! Every command of the guide is run, and what it prints is compared with the page.
//!
//! A command is a line `$ …` in a block that is marked `console`; what follows it, up to the next one, is its output. The commands of a page
//! are run in one shell, from top to bottom, against a server of their own. `segno dev` is that server. A line `…` in an output
//! stands for any lines. Ids, times and durations differ from run to run and are not compared, unless the page is compared exactly.
//!
//! `UPDATE_EXPECT=1 cargo nextest run --workspace --test cli guide` writes what is printed now into the pages; read the difference.

use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use crate::process::{Process, segno};
use segno::clock::{Clock as _, SystemClock};
use tempfile::TempDir;

/// How outputs are compared.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    /// Word for word.
    Exact,
    /// Without ids, times and durations.
    Settled,
}

/// Where servers listen in the guide.
const ADDRESS: &str = "127.0.0.1:7070";

/// Pages with commands that others run, or that nothing here can run, and what they begin with.
const RUN_ELSEWHERE: &[(&str, &str, &str)] = &[
    ("install.md", "cargo install", "builds everything anew"),
    ("install.md", "scripts/release.sh", "crates/cli/tests/cli/service.rs"),
    ("install.md", "install -m", "needs root"),
    ("install.md", "systemctl", "needs systemd"),
    ("install.md", "podman", "needs a container engine"),
    ("kill.md", "$ cargo run", "examples/tests/examples.rs"),
    ("kill.md", "$ kill", "examples/tests/examples.rs"),
    ("your-server.md", "cargo run", "examples/shop/tests/shop.rs"),
    ("observability.md", "segno serve", "crates/cli/tests/cli/otlp.rs"),
    ("pipeline.md", "$ ", "crates/cli/tests/cli/pipeline.rs"),
    ("pipeline.md", "    segno functions put", "crates/cli/tests/cli/pipeline.rs"),
    ("ui.md", "segno dev", "web/tests"),
];

fn guide() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide")
}

/// A command of a page and where its output is.
struct Step {
    command: String,
    /// Lines of the page, the first and the one behind the last.
    output: std::ops::Range<usize>,
}

/// The commands of a page.
fn steps(lines: &[&str]) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut number = 0;
    let mut is_console = false;
    while number < lines.len() {
        let line = lines[number];
        number += 1;
        if line.starts_with("```") {
            is_console = line == "```console";
        } else if let Some(first) = line.strip_prefix("$ ").filter(|_| is_console) {
            let mut command = first.to_owned();
            while command.ends_with('\\') {
                write!(command, "\n{}", lines[number]).unwrap();
                number += 1;
            }
            let length = lines[number..].iter().take_while(|line| !is_end(line)).count();
            steps.push(Step { command, output: number..number + length });
            number += length;
        }
    }
    steps
}

fn is_end(line: &str) -> bool {
    line.starts_with("$ ") || line.starts_with("```")
}

/// Whether a command starts the server of the page: `segno dev`, with variables before it.
fn starts_server(command: &str) -> bool {
    command == "segno dev" || command.ends_with(" segno dev")
}

/// Commands that only look, and are run again until what they look at has happened: a reader types slower than this test.
const LOOKS: &[&str] = &[
    "segno show",
    "segno batch show",
    "segno member show",
    "segno pool list",
    "segno pool show",
    "segno runbook show",
    "segno recurring list",
    "segno hook payloads",
    "segno action show",
    "segno backfill list",
    "segno asset show",
    "segno task show",
    "segno task output",
    "segno bus dead-letters",
    "segno dead-letters list",
];

/// How long such a command is run again at most.
const LOOK_FOR_MS: u64 = 20_000;

/// What separates the outputs of two commands.
const MARK: &str = "the-next-command-of-the-page";

/// A shell that runs the commands of a page, one after the other.
struct Shell {
    child: Child,
    printed: BufReader<ChildStdout>,
    /// Where the server of the page listens.
    address: String,
}

impl Shell {
    fn start(server: &Process, directory: &Path) -> Self {
        let programs = directory.join("programs");
        fs::create_dir(&programs).unwrap();
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_segno"), programs.join("segno")).unwrap();
        // Commands of the guide are typed in the directory of the sources.
        let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
        std::os::unix::fs::symlink(examples, directory.join("examples")).unwrap();
        let path = std::env::var_os("PATH").unwrap_or_default();
        let path = std::env::join_paths(std::iter::once(programs).chain(std::env::split_paths(&path)));
        let mut command = Command::new("bash");
        // With nothing of the machine that runs the tests.
        let clean = segno();
        for (name, _) in clean.get_envs().filter(|(_, value)| value.is_none()) {
            command.env_remove(name);
        }
        let mut child = command
            .current_dir(directory)
            .env("XDG_CONFIG_HOME", "/nonexistent")
            .env("PATH", path.unwrap())
            .env("SEGNO_SERVER", &server.address)
            .env("NO_COLOR", "1")
            .env("TZ", "UTC")
            .env("NO_PROXY", "*")
            .env("PYTHONDONTWRITEBYTECODE", "1")
            // A group of its own, with which workers that a page starts in the background end as well.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let printed = BufReader::new(child.stdout.take().unwrap());
        let address = server.address.strip_prefix("http://").unwrap().to_owned();
        let mut shell = Shell { child, printed, address };
        assert_eq!(shell.run("exec 2>&1"), "");
        shell
    }

    /// Runs a command and returns what it printed.
    fn run(&mut self, command: &str) -> String {
        let command = command.replace(ADDRESS, &self.address).replace("localhost:7070", &self.address);
        let input = self.child.stdin.as_mut().unwrap();
        writeln!(input, "{{ {command}\n}} </dev/null\nprintf '\\n%s\\n' {MARK}").unwrap();
        let mut output = String::new();
        while !output.ends_with(&format!("\n{MARK}\n")) {
            let length = self.printed.read_line(&mut output).unwrap();
            assert!(length > 0, "{command} ended the shell: {output}");
        }
        let output = output.strip_suffix(&format!("\n{MARK}\n")).unwrap_or_default();
        output.trim_end().replace(&self.address, ADDRESS)
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        let group = format!("-{}", self.child.id());
        let _ = Command::new("kill").args(["-s", "KILL", "--", &group]).status();
        let _ = self.child.wait();
    }
}

/// What is compared of a line.
fn settle(line: &str, comparison: Comparison) -> String {
    let line = match comparison {
        // Which one is newer depends on the machine.
        Comparison::Exact if line.starts_with("Time zone database ") => "Time zone database".to_owned(),
        Comparison::Exact => line.to_owned(),
        Comparison::Settled => without_times(line),
    };
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The longest start of a text that looks like a pattern: `9` is a digit, `f` a hexadecimal one, all else is itself.
fn looks_like(text: &str, pattern: &str) -> bool {
    text.len() >= pattern.len()
        && text.bytes().zip(pattern.bytes()).all(|(found, wanted)| match wanted {
            b'9' => found.is_ascii_digit(),
            b'f' => found.is_ascii_hexdigit(),
            wanted => found == wanted,
        })
}

fn digits(text: &str) -> usize {
    text.bytes().take_while(u8::is_ascii_digit).count()
}

/// How many bytes of the start of a text differ from run to run, and what stands for them.
fn passing(text: &str) -> Option<(usize, &'static str)> {
    let digits_of_id = text.bytes().take_while(|byte| byte.is_ascii_hexdigit() || *byte == b'-').count();
    if digits_of_id >= 32 {
        return Some((digits_of_id, "ID"));
    }
    // Ids of runs and backfills.
    for kind in ["run_", "bf_"] {
        let id = text.strip_prefix(kind).map_or("", |rest| rest);
        if id.bytes().take_while(u8::is_ascii_alphanumeric).count() == 26 {
            return Some((kind.len() + 26, "ID"));
        }
    }
    for pattern in ["9999-99-99T99:99:99", "9999-99-99 99:99:99", "99:99:99", "9999-99-99"] {
        if looks_like(text, pattern) {
            let mut length = pattern.len();
            if text[length..].starts_with('.') {
                length += 1 + digits(&text[length + 1..]);
            }
            if text[length..].starts_with('Z') {
                length += 1;
            }
            return Some((length, "TIME"));
        }
    }
    let whole = digits(text);
    if whole == 0 {
        return None;
    }
    let mut length = whole;
    if text[length..].starts_with('.') {
        length += 1 + digits(&text[length + 1..]);
    }
    for unit in [" ms", " s", " µs", "ms", "s", "µs"] {
        let Some(rest) = text[length..].strip_prefix(unit) else { continue };
        if !rest.starts_with(|next: char| next.is_alphanumeric()) {
            return Some((length + unit.len(), "DURATION"));
        }
    }
    None
}

fn without_times(line: &str) -> String {
    let mut settled = String::new();
    let mut rest = line;
    // Bars of a timeline are as long as things took.
    if let [before, _, after] = line.split('│').collect::<Vec<_>>()[..] {
        return format!("{}│BAR│{}", without_times(before), without_times(after));
    }
    let mut is_inside = false;
    while let Some(first) = rest.chars().next() {
        match passing(rest).filter(|_| !is_inside) {
            Some((length, name)) => {
                settled += name;
                rest = &rest[length..];
                is_inside = false;
            }
            None => {
                settled.push(first);
                rest = &rest[first.len_utf8()..];
                is_inside = first.is_alphanumeric();
            }
        }
    }
    settled
}

/// Whether an output is what the page shows, where a line `…` stands for any lines.
fn is_as_shown(shown: &[String], printed: &[String]) -> bool {
    match shown.split_first() {
        None => printed.is_empty(),
        Some((first, rest)) if first == "…" => {
            (0..=printed.len()).any(|skipped| is_as_shown(rest, &printed[skipped..]))
        }
        Some((first, rest)) => printed.first() == Some(first) && is_as_shown(rest, &printed[1..]),
    }
}

/// Runs the commands of a page against a server of its own.
fn check(page: &str, comparison: Comparison, environment: &[(&str, &str)]) {
    let directory = TempDir::new().unwrap();
    let mut command = segno();
    command.envs(environment.iter().copied()).current_dir(directory.path());
    // Where `segno dev` puts its store.
    let server = Process::dev_by(command, &directory.path().join(".segno"));
    compare(page, comparison, &server, directory.path());
}

/// Runs the commands of a page, and compares what they print with what it shows.
pub fn compare(page: &str, comparison: Comparison, server: &Process, directory: &Path) {
    let path = guide().join(page);
    let text = fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let steps = steps(&lines);
    assert!(!steps.is_empty(), "{page} has no commands: mark its blocks as console");
    let mut shell = Shell::start(server, directory);
    let mut wrong = String::new();
    let mut updated: Vec<String> = Vec::new();
    let mut copied = 0;
    for step in steps.iter().filter(|step| !starts_server(&step.command)) {
        let settled = |text: &str| text.lines().map(|line| settle(line, comparison)).collect::<Vec<_>>();
        let shown = lines[step.output.clone()].join("\n");
        let expected = settled(shown.trim_end());
        let looks = LOOKS.iter().any(|look| step.command.starts_with(look));
        let mut printed = shell.run(&step.command);
        let until_ms = SystemClock.now_ms() + LOOK_FOR_MS;
        while looks && SystemClock.now_ms() < until_ms && !is_as_shown(&expected, &settled(&printed)) {
            printed = shell.run(&step.command);
        }
        if !is_as_shown(&expected, &settled(&printed)) {
            write!(wrong, "\n$ {}\nshown:\n{shown}\nprinted:\n{printed}\n", step.command).unwrap();
            updated.extend(lines[copied..step.output.start].iter().map(|line| (*line).to_owned()));
            updated.extend(printed.lines().map(|line| line.trim_end().to_owned()));
            copied = step.output.end;
        }
    }
    if wrong.is_empty() {
        return;
    }
    assert!(
        std::env::var_os("UPDATE_EXPECT").is_some(),
        "docs/guide/{page} shows what is not printed; UPDATE_EXPECT=1 writes what is:\n{wrong}"
    );
    updated.extend(lines[copied..].iter().map(|line| (*line).to_owned()));
    fs::write(path, updated.join("\n") + "\n").unwrap();
}

/// A page shows a file of the examples as it is.
fn shows_whole(page: &str, example: &str) {
    let text = fs::read_to_string(guide().join(page)).unwrap();
    let example_text = fs::read_to_string(guide().join("../../examples").join(example)).unwrap();
    assert!(text.contains(&example_text), "{page} does not show examples/{example} as it is");
}

#[test]
fn commands_of_the_page_on_the_server() {
    check("server.md", Comparison::Settled, &[]);
}

#[test]
fn commands_of_the_page_on_functions() {
    check("functions.md", Comparison::Settled, &[]);
}

#[test]
fn commands_of_the_page_on_actions() {
    check("actions.md", Comparison::Settled, &[]);
}

#[test]
fn commands_of_the_page_on_dags() {
    check("dags.md", Comparison::Exact, &[]);
}

#[test]
fn commands_of_the_page_on_runs_of_dags() {
    check("dag-runs.md", Comparison::Settled, &[]);
    shows_whole("dag-runs.md", "dags/outside.yaml");
}

#[test]
fn commands_of_the_page_on_runbooks() {
    // Times of plans are compared in `runbook.rs`.
    check("runbooks.md", Comparison::Settled, &[("SEGNO_BUS__URL", "built-in")]);
}

#[test]
fn commands_of_the_page_on_a_migration() {
    check("migration.md", Comparison::Settled, &[]);
    shows_whole("migration.md", "runbooks/mailboxes.yaml");
}

#[test]
fn commands_of_the_page_on_schedules() {
    check("schedules.md", Comparison::Exact, &[]);
}

#[test]
fn commands_of_the_page_on_webhooks() {
    let secret = [
        ("HOOK_SECRET", "It's a Secret to Everybody"),
        ("SEGNO_STORED_FUNCTIONS__SECRET_VARIABLES", "HOOK_"),
    ];
    check("webhooks.md", Comparison::Settled, &secret);
}

#[test]
fn commands_of_the_page_on_sql() {
    check("sql.md", Comparison::Settled, &[]);
}

#[test]
fn commands_of_the_page_on_the_archive() {
    let archive = [("SEGNO_ARCHIVE__ENABLED", "true"), ("SEGNO_RETENTION__FINISHED_HOURS", "168")];
    check("archive.md", Comparison::Settled, &archive);
}

#[test]
fn commands_of_the_page_on_dead_letters() {
    check("dead-letters.md", Comparison::Settled, &[("SEGNO_RUNTIME__MAX_DELIVERIES", "1")]);
}

#[test]
fn commands_of_the_page_on_operations() {
    check("operations.md", Comparison::Settled, &[]);
}

#[test]
fn commands_of_the_page_on_remote_workers() {
    check("workers.md", Comparison::Settled, &[]);
}

/// Pages as names and texts.
fn pages() -> Vec<(String, String)> {
    let files = fs::read_dir(guide()).unwrap().map(|entry| entry.unwrap().path());
    let pages = files.filter(|path| path.is_file()).map(|file| {
        let name = file.file_name().unwrap().to_str().unwrap().to_owned();
        (name, fs::read_to_string(&file).unwrap())
    });
    pages.collect()
}

#[test]
fn no_command_of_the_guide_is_left_out() {
    let begins = ["$ ", "segno ", "curl ", "cargo run", "python3 ", "node ", "systemctl", "podman", "kill "];
    let mut pages_with_commands = Vec::new();
    let mut named = Vec::new();
    for (page, text) in pages() {
        let mut language = None;
        for line in text.lines() {
            if let Some(name) = line.strip_prefix("```") {
                language = if language.is_some() { None } else { Some(name.to_owned()) };
                continue;
            }
            let Some(language) = &language else { continue };
            if language == "console" {
                pages_with_commands.push(page.clone());
                continue;
            }
            let is_command = begins.iter().any(|begin| line.starts_with(begin));
            let elsewhere =
                RUN_ELSEWHERE.iter().find(|(at, begin, _)| *at == page && line.starts_with(begin));
            named.extend(elsewhere);
            let is_code = ["rust", "toml", "sql"].iter().any(|name| language.starts_with(name));
            assert!(
                !is_command || elsewhere.is_some() || is_code,
                "{page}: {line:?} is run by no test: mark its block as console, or name its test in RUN_ELSEWHERE"
            );
        }
    }
    for entry in RUN_ELSEWHERE {
        assert!(named.contains(&entry), "{}: no command begins with {:?} any more", entry.0, entry.1);
    }
    pages_with_commands.dedup();
    pages_with_commands.sort();
    let checked = [
        "actions.md",
        "archive.md",
        "dag-runs.md",
        "dags.md",
        "dead-letters.md",
        "functions.md",
        "migration.md",
        "operations.md",
        "pipeline.md",
        "runbooks.md",
        "schedules.md",
        "server.md",
        "sql.md",
        "webhooks.md",
        "workers.md",
    ];
    assert_eq!(pages_with_commands, checked, "each has a test above");
}

#[test]
fn every_verb_that_the_guide_names_exists() {
    let help = include_str!("snapshots/help.txt");
    for (page, text) in pages() {
        for code in text.split('`').skip(1).step_by(2) {
            let Some(rest) = code.strip_prefix("segno ").filter(|_| !code.contains('\n')) else { continue };
            let is_verb = |word: &&str| word.chars().all(|sign| sign.is_ascii_lowercase() || sign == '-');
            let verbs: Vec<&str> =
                rest.split(' ').take_while(is_verb).filter(|word| !word.starts_with('-')).take(2).collect();
            let Some(first) = verbs.first() else { continue };
            let has_page = |verbs: &str| help.contains(&format!("\n$ segno {verbs} --help\n"));
            let has_verbs = help.contains(&format!("\n$ segno {first} --help\n"))
                && help.contains(&format!("\nUsage: segno {first} [OPTIONS] <COMMAND>"));
            let known =
                if has_verbs && verbs.len() > 1 { has_page(&verbs.join(" ")) } else { has_page(first) };
            assert!(known || *first == "help", "{page} names `{code}`, which is no verb");
        }
    }
}

#[test]
fn what_passes_is_not_compared_and_the_rest_is() {
    for (line, settled) in [
        ("at 2026-11-17T10:00:00.5Z  took 12 ms", "at TIME took DURATION"),
        ("{\"id\":\"019aa0b2-1234-7abc-8def-0123456789ab\"}", "{\"id\":\"ID\"}"),
        ("HTTP/1.1 202 Accepted", "HTTP/1.1 202 Accepted"),
        ("10:00:00  3 of 7 steps", "TIME 3 of 7 steps"),
        ("hello  │███   │ 5 ms", "hello │BAR│ DURATION"),
    ] {
        assert_eq!(settle(line, Comparison::Settled), settled);
    }
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    assert!(is_as_shown(&lines("a\n…\nd"), &lines("a\nb\nc\nd")));
    assert!(!is_as_shown(&lines("a\n…\nd"), &lines("a\nb\nc")));
    assert!(!is_as_shown(&lines("a"), &lines("a\nb")));
}

//! Tools: well-behaved ones and hostile ones.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use segno::Category;
use segno_actions::functions::LogKey;
use segno_testkit::clock::VirtualClock;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::support::{Node, declaration, logs_of, name, secret_file, within_reason};

/// A tool that is a shell script, with more settings.
pub fn script(text: &str, settings: &str) -> String {
    let command = toml::Value::from(vec!["sh", "-c", text]);
    format!("executor = \"process\"\ncommand = {command}\n{settings}")
}

async fn run(text: &str, settings: &str) -> Result<Value, segno::Failure> {
    Node::with(&script(text, settings)).await.call(json!({ "n": 1 })).await
}

/// A pipe that the processes of a tool hold open. It says how far they are, and its end says that all of them are dead.
struct Lifeline {
    directory: TempDir,
}

impl Lifeline {
    fn new() -> Self {
        let directory = TempDir::new().unwrap();
        let made = Command::new("mkfifo").arg(directory.path().join("pipe")).status().unwrap();
        assert!(made.success());
        Lifeline { directory }
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("pipe")
    }

    /// A setting that tells the tool where the pipe is.
    fn setting(&self) -> String {
        format!("environment = {{ LIFELINE = {:?} }}", self.path())
    }

    /// Reads the pipe: the first answer comes when so many lines were said, the second when everybody is dead.
    fn listen(&self, lines: usize) -> (oneshot::Receiver<()>, JoinHandle<()>) {
        let (all_there, ready) = oneshot::channel();
        let path = self.path();
        let all_dead = tokio::task::spawn_blocking(move || {
            let mut reader = BufReader::new(std::fs::File::open(path).unwrap());
            for _ in 0..lines {
                let mut line = String::new();
                assert!(reader.read_line(&mut line).unwrap() > 0, "the tool died before it was ready");
            }
            let _ = all_there.send(());
            let mut rest = Vec::new();
            reader.read_to_end(&mut rest).unwrap();
        });
        (ready, all_dead)
    }
}

/// Ignores SIGTERM, has a child in its group and a grandchild in a session of its own, and ends by itself only after an hour.
const STUBBORN: &str = r#"
    exec 9>"$LIFELINE"
    trap "" TERM
    (setsid sh -c 'echo stray >&9; exec sleep 3600' &)
    (echo child >&9; exec sleep 3600) &
    echo "so far so good" >&2
    echo leader >&9
    while :; do sleep 3600; done
"#;

#[tokio::test(flavor = "multi_thread")]
async fn input_and_output_are_json() {
    for (text, output) in [
        ("cat", json!({ "n": 1 })),
        ("echo '  [1, \"ü\"] '", json!([1, "ü"])),
        ("true", Value::Null),
        ("echo", Value::Null),
        ("echo 1; echo noise >&2", json!(1)),
    ] {
        assert_eq!(run(text, "").await.unwrap(), output, "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn output_that_is_no_json_is_shown() {
    let failure = run("echo Hello; echo '{}'", "").await.unwrap_err();
    assert!(failure.has_code("output-not-json") && !failure.retryable, "{failure:?}");
    assert!(failure.message.contains("Hello"), "{failure}");
    let failure = run("printf '\"\\377\"'", "").await.unwrap_err();
    assert!(failure.has_code("output-not-json") && failure.message.contains("utf-8"), "{failure:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_exit_code_is_a_failure_with_the_end_of_the_log() {
    let node = Node::with(&script("echo one >&2; echo two >&2; exit 3", "")).await;
    let instance = node.begin("k", json!(null)).await;
    let failure = node.end(&instance).await.unwrap_err();
    assert_eq!(failure.category, Category::Application);
    assert!(failure.has_code("tool-failed") && failure.retryable);
    assert_eq!(failure.message, "\"sh\" ended with exit code 3: two");
    let details: Value = failure.details.unwrap().decode().unwrap();
    assert_eq!(details, json!({ "exit_code": 3, "signal": null, "log": "one\ntwo\n" }));
    let logs = logs_of(&node.functions, &instance).await;
    assert_eq!(logs.len(), 1);
    let key = LogKey { attempt: 1, instance: instance.clone(), call: logs[0].key.call.clone() };
    let log = node.functions.read_log(&key).await.unwrap().unwrap();
    assert_eq!((log.text.as_str(), log.total_bytes, log.is_cut), ("one\ntwo\n", 8, false));
    let other = logs_of(&node.functions, "default/default/invoke:").await;
    assert_eq!(other, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_tool_is_tried_again_and_each_attempt_has_its_log() {
    let settings = "retry = { attempts = 3, initial_delay = \"1ms\" }";
    let text = "echo attempt $SEGNO_ATTEMPT >&2; test $SEGNO_ATTEMPT = 3 && echo $SEGNO_ATTEMPT";
    let node = Node::with(&script(text, settings)).await;
    let instance = node.begin("k", json!(null)).await;
    assert_eq!(node.end(&instance).await.unwrap(), json!(3));
    let logs = logs_of(&node.functions, &instance).await;
    let texts: Vec<&str> = logs.iter().map(|log| log.text.trim()).collect();
    assert_eq!(texts, ["attempt 1", "attempt 2", "attempt 3"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_exit_code_can_be_a_result() {
    let settings = "exit_codes = \"report\"";
    for (text, report) in [
        (
            "echo '{\"a\":1}'; exit 7",
            json!({ "exit_code": 7, "signal": null, "output": { "a": 1 }, "log": "" }),
        ),
        ("echo text", json!({ "exit_code": 0, "signal": null, "output": "text\n", "log": "" })),
        ("echo x >&2; kill -9 $$", json!({ "exit_code": null, "signal": 9, "output": null, "log": "x\n" })),
    ] {
        assert_eq!(run(text, settings).await.unwrap(), report, "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_cannot_be_started_is_a_matter_of_configuration() {
    for toml in [
        "executor = \"process\"\ncommand = [\"/no/such/program\"]",
        "executor = \"process\"\ncommand = [\"true\"]\ndirectory = \"/no/such/directory\"",
        "executor = \"process\"\ncommand = [\"/etc/passwd\"]",
    ] {
        let failure = Node::with(toml).await.call(json!(1)).await.unwrap_err();
        assert_eq!(failure.category, Category::Configuration, "{failure}");
        assert!(failure.has_code("tool-not-started"), "{failure}");
    }
}

/// A node that is killed between the start of a tool and the end of its input would leave the tool with a part of it, and a pipe that
/// is closed looks like the end. So all of it must be there before the first instruction of the tool, however large it is.
#[tokio::test(flavor = "multi_thread")]
async fn all_of_the_input_is_there_before_the_tool_starts() {
    for size in [0, 1_000, 1_000_000] {
        let node = Node::with(&script("stat -L -c %s /dev/stdin; cat > /dev/null", "")).await;
        let input = json!("x".repeat(size));
        assert_eq!(
            node.call(input).await.unwrap(),
            json!(size + 2),
            "bytes of the input when the tool starts"
        );
    }
    let node = Node::with(&script("stat -L -c '\"%a %h\"' /dev/stdin", "")).await;
    assert_eq!(
        node.call(json!(1)).await.unwrap(),
        json!("600 0"),
        "only its owner can read it, and it has no name"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_never_reads_its_input_does_not_hang() {
    let large = json!("x".repeat(1_500_000));
    let quick = Node::with(&script("echo 1", "")).await;
    assert_eq!(quick.call(large.clone()).await.unwrap(), json!(1));
    let slow = Node::with(&script("sleep 3600", "timeout = \"200ms\"\nstop_grace = \"1s\"")).await;
    assert!(slow.call(large).await.unwrap_err().has_code("attempt-timeout"));
}

/// Memory of this process in bytes.
fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_prints_a_gigabyte_is_killed_at_the_limit() {
    let lifeline = Lifeline::new();
    let (_, all_dead) = lifeline.listen(0);
    let text = "exec 9>\"$LIFELINE\"; yes | head -c 1000000000; sleep 3600";
    let before = resident_bytes();
    let failure = run(text, &format!("output_limit = 100000\n{}", lifeline.setting())).await.unwrap_err();
    assert!(failure.has_code("output-too-large") && !failure.retryable, "{failure:?}");
    assert!(failure.message.contains("more than 100000 bytes"), "{failure}");
    within_reason("the end of the tool", all_dead).await.unwrap();
    let grown = resident_bytes().saturating_sub(before);
    assert!(grown < 64 * 1024 * 1024, "{grown} bytes more than before");
}

#[tokio::test(flavor = "multi_thread")]
async fn of_a_long_log_the_end_is_kept() {
    let text = "yes noise | head -c 50000000 >&2; echo last words >&2; echo 1";
    let node = Node::with(&script(text, "log_limit = 1000")).await;
    let before = resident_bytes();
    let instance = node.begin("k", json!(null)).await;
    assert_eq!(node.end(&instance).await.unwrap(), json!(1));
    let log = logs_of(&node.functions, &instance).await.remove(0);
    assert_eq!((log.total_bytes, log.is_cut), (50_000_011, true));
    assert!((900..=1_000).contains(&log.text.len()), "{}", log.text.len());
    assert!(log.text.starts_with("noise\n") && log.text.ends_with("last words\n"), "{}", log.text);
    assert!(resident_bytes().saturating_sub(before) < 32 * 1024 * 1024);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_sees_only_what_it_is_given() {
    let (_file, reference) = secret_file("canary-in-the-mine\n");
    let toml = format!(
        "executor = \"process\"\ncommand = [\"env\"]\nexit_codes = \"report\"\npass_environment = [\"HOME\", \"NO_SUCH\"]\n\
         [environment]\nMODE = \"fast\"\nTOKEN = {reference}"
    );
    let report = Node::with(&toml).await.call(json!(null)).await.unwrap();
    let output = report["output"].as_str().unwrap();
    let mut names: Vec<&str> = output.lines().filter_map(|line| line.split('=').next()).collect();
    names.sort_unstable();
    let expected = ["HOME", "MODE", "PATH", "SEGNO_ATTEMPT", "SEGNO_IDEMPOTENCY_KEY", "SEGNO_RUN", "TOKEN"];
    assert_eq!(names, expected, "{output}");
    assert!(output.contains("MODE=fast") && output.contains("TOKEN=[redacted]"), "{output}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_has_no_files_of_the_node_open() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let toml =
        "executor = \"process\"\ncommand = [\"ls\", \"-l\", \"/proc/self/fd\"]\nexit_codes = \"report\"";
    let report = Node::with(toml).await.call(json!(null)).await.unwrap();
    let open = report["output"].as_str().unwrap();
    assert!(open.lines().any(|line| line.contains(" 0 -> ") && line.ends_with("(deleted)")), "{open}");
    assert!(!open.contains(file.path().to_str().unwrap()), "{open}");
    assert!(!open.contains("socket:") && !open.contains("eventpoll"), "{open}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_works_in_a_directory_of_its_own_that_goes_with_it() {
    let mode = run("printf '\"%s\"' \"$(stat -c %a .)\"", "").await.unwrap();
    assert_eq!(mode, "700", "only the node's user may look into it");
    let output = run("touch file; printf '\"%s\"' \"$(pwd)\"", "").await.unwrap();
    let directory = Path::new(output.as_str().unwrap()).to_owned();
    assert!(directory.starts_with(std::env::temp_dir()), "{directory:?}");
    assert!(!directory.exists(), "{directory:?} was left behind");
    let given = TempDir::new().unwrap();
    let settings = format!("directory = {:?}", given.path());
    run("touch file", &settings).await.unwrap();
    assert!(given.path().join("file").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_that_is_not_there_fails_before_the_tool_starts() {
    let settings = "environment = { TOKEN = { file = \"/no/such/secret\" } }";
    let failure = run("echo 1", settings).await.unwrap_err();
    assert!(failure.has_code("secret-unavailable"), "{failure}");
    assert!(failure.message.contains("/no/such/secret"), "{failure}");
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelling_kills_a_stubborn_tool_with_all_its_descendants() {
    let lifeline = Lifeline::new();
    let settings = format!("stop_grace = \"200ms\"\n{}", lifeline.setting());
    let node = Node::with(&script(STUBBORN, &settings)).await;
    let (ready, all_dead) = lifeline.listen(3);
    let instance = node.begin("k", json!(null)).await;
    within_reason("the start of the tool", ready).await.unwrap();
    node.client.cancel(&instance, "not needed").await.unwrap();
    within_reason("the end of the tool", all_dead).await.unwrap();
    assert!(node.end(&instance).await.unwrap_err().is_cancelled());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_timeout_kills_a_stubborn_tool_with_all_its_descendants() {
    let lifeline = Lifeline::new();
    let settings = format!("timeout = \"2s\"\nstop_grace = \"0s\"\n{}", lifeline.setting());
    let (function, clock) = (declaration(&script(STUBBORN, &settings)), VirtualClock::new());
    let node = Node::start(|builder| builder.clock(clock.clone()).declare(name("it"), function)).await;
    let (ready, all_dead) = lifeline.listen(3);
    let instance = node.begin("k", json!(null)).await;
    within_reason("the start of the tool", ready).await.unwrap();
    clock.advance(Duration::from_secs(2));
    within_reason("the end of the tool", all_dead).await.unwrap();
    let failure = node.end(&instance).await.unwrap_err();
    assert!(failure.is_timeout() && failure.has_code("attempt-timeout"), "{failure:?}");
    assert_eq!(failure.message, "\"sh\" took longer than 2000 ms: so far so good");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_goes_away_takes_its_tools_with_it() {
    let lifeline = Lifeline::new();
    let node = Node::with(&script(STUBBORN, &lifeline.setting())).await;
    let (ready, all_dead) = lifeline.listen(3);
    node.begin("k", json!(null)).await;
    within_reason("the start of the tool", ready).await.unwrap();
    drop(node.runtime);
    within_reason("the end of the tool", all_dead).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_tool_leaves_behind_in_its_group_is_killed_when_it_ends() {
    let lifeline = Lifeline::new();
    let (_, all_dead) = lifeline.listen(0);
    let text = "exec 9>\"$LIFELINE\"; sleep 3600 & echo 1";
    assert_eq!(run(text, &lifeline.setting()).await.unwrap(), json!(1));
    within_reason("the end of what was left", all_dead).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_is_asked_to_end_can_clean_up() {
    let lifeline = Lifeline::new();
    let text =
        "exec 9>\"$LIFELINE\"; trap 'echo cleaned up >&2; exit 0' TERM; echo ready >&9; sleep 3600 & wait";
    let node = Node::with(&script(text, &lifeline.setting())).await;
    let (ready, all_dead) = lifeline.listen(1);
    let instance = node.begin("k", json!(null)).await;
    within_reason("the start of the tool", ready).await.unwrap();
    node.client.cancel(&instance, "not needed").await.unwrap();
    within_reason("the end of the tool", all_dead).await.unwrap();
    // The node is done with the attempt when it has shut down.
    let Node { functions, runtime, .. } = node;
    runtime.shutdown(Duration::from_secs(60)).await;
    let logs = logs_of(&functions, &instance).await;
    assert_eq!(logs[0].text, "cleaned up\n");
}

use super::*;
use serde_json::json;

fn parse(toml: &str) -> Result<Function, String> {
    toml::from_str::<Function>(toml).map_err(|error| error.to_string())
}

/// A declaration from TOML, checked, and then the same through JSON.
fn check(toml: &str) -> Result<Function, String> {
    let function = parse(toml)?;
    function.check().map_err(|error| error.to_string())?;
    let json = serde_json::to_string(&function).unwrap();
    assert_eq!(serde_json::from_str::<Function>(&json).unwrap(), function, "{json}");
    let again = toml::to_string(&function).unwrap();
    assert_eq!(parse(&again).unwrap(), function, "{again}");
    Ok(function)
}

#[test]
fn declarations_are_the_same_in_toml_and_json() {
    let tool = check(
        r#"
        description = "Makes thumbnails"
        executor = "process"
        command = ["convert", "-resize", "100"]
        directory = "/srv"
        pass_environment = ["LANG"]
        output_limit = 1000
        exit_codes = "report"
        stop_grace = "2s"
        timeout = "1m30s"
        deadline = "1h"
        tag = "images"
        retry = { attempts = 5, initial_delay = "500ms", factor = 3, max_delay = "1m" }
        [environment]
        MODE = "fast"
        TOKEN = { env = "THUMB_TOKEN" }
        [input_schema]
        type = "object"
        required = ["path"]
        "#,
    )
    .unwrap();
    assert_eq!(tool.effective_timeout().unwrap().as_ms(), 90_000);
    let retry = tool.retry.as_ref().unwrap();
    assert_eq!((retry.attempts, retry.initial_delay.as_ms(), retry.factor), (5, 500, 3.0));
    let secrets: Vec<String> = tool.secrets().into_iter().map(|(field, _)| field).collect();
    assert_eq!(secrets, ["environment.TOKEN"]);
    let hook = check(
        r#"
        executor = "http"
        url = "https://example.org/hook?x=1"
        method = "PUT"
        redirects = 2
        signing_secret = { file = "/run/secrets/hook" }
        headers = { Authorization = { env = "TOKEN" }, "X-Plain" = "text" }
        "#,
    )
    .unwrap();
    assert_eq!(hook.effective_timeout(), Some(DEFAULT_HTTP_TIMEOUT));
    assert_eq!(hook.secrets().len(), 2);
    check(r#"executor = "rust""#).unwrap();
    check("executor = \"remote\"\nheartbeat_timeout = \"30s\"").unwrap();
    check("executor = \"remote\"\npush = { url = \"https://w.example/x\", secret = { env = \"S\" } }")
        .unwrap();
}

#[test]
fn mistakes_are_named_with_what_to_do() {
    let process = |more: &str| format!("executor = \"process\"\ncommand = [\"true\"]\n{more}");
    let http = |more: &str| format!("executor = \"http\"\nurl = \"https://example.org\"\n{more}");
    for (toml, says) in [
        ("command = [\"true\"]".to_owned(), "executor"),
        ("executor = \"shell\"".to_owned(), "unknown variant `shell`"),
        (process("comand = 1"), "unknown field `comand`"),
        (http("alow_private = true"), "unknown field `alow_private`"),
        ("executor = \"remote\"\ncommand = []".to_owned(), "unknown field `command`"),
        ("executor = \"remote\"\ncommand = []".to_owned(), "or of every function: `description`"),
        ("executor = \"rust\"\nurl = \"x\"".to_owned(), "unknown field `url`"),
        ("executor = \"process\"\ncommand = []".to_owned(), "command: it names no program"),
        (process("timeout = 30"), "expected a string"),
        (process("timeout = \"30\""), "write a number and a unit"),
        (process("timeout = \"0s\""), "timeout: nothing is done in no time"),
        (process("retry = { attempts = 0 }"), "retry.attempts: 0 is out of range; write 1 to 1000"),
        (process("retry = { attempts = 2, factor = 0.5 }"), "retry.factor: 0.5 is out of range"),
        (process("retry = { attempts = 2, factor = nan }"), "retry.factor: NaN is out of range"),
        (process("retry = { attempts = 2, max_delay = \"1ms\" }"), "retry.max_delay: 1ms is shorter than"),
        (process("heartbeat_timeout = \"5s\""), "heartbeat_timeout: the executor \"process\" gives no"),
        (process("directory = \"here\""), "directory: here is not an absolute path"),
        (process("output_limit = 99999999"), "output_limit: 99999999 is out of range"),
        (process("log_limit = 0"), "log_limit: 0 is out of range"),
        (process("stop_grace = \"2m\""), "stop_grace: 2m is too long; write at most \"1m\""),
        (process("environment = { \"A=B\" = \"x\" }"), "\"A=B\" is no name of an environment variable"),
        (process("environment = { SEGNO_RUN = \"x\" }"), "SEGNO_RUN: names that begin with SEGNO_"),
        (process("pass_environment = [\"\"]"), "pass_environment: \"\" is no name"),
        (process("environment = { A = { env = \"1\" } }"), "environment.A: \"1\" is no name"),
        (process("environment = { A = 1 }"), "expected a text, { env = \"NAME\" }"),
        (process("tag = \"GPU\""), "cannot be a tag"),
        (process("input_schema = { type = \"objct\" }"), "input_schema: this is not a usable JSON Schema"),
        (http("method = \"post\""), "unknown variant `post`"),
        (http("redirects = 4"), "redirects: 4 is out of range; write 0 to 3"),
        (http("response_limit = 0"), "response_limit: 0 is out of range"),
        (http("headers = { Host = \"x\" }"), "headers.Host: this header is set by the call itself"),
        (http("headers = { \"a b\" = \"x\" }"), "headers.a b: this is no name of an HTTP header"),
        (http("headers = { X = \"a\\nb\" }"), "headers.X: the value has characters that no header may have"),
        (http("allow_hosts = [\"http://x\"]"), "allow_hosts: \"http://x\" is no host name"),
        ("executor = \"http\"\nurl = \"example.org\"".to_owned(), "url: this is not a URL such as"),
        ("executor = \"http\"\nurl = \"file:///etc/passwd\"".to_owned(), "url: the scheme \"file\""),
        (
            "executor = \"http\"\nurl = \"https://u:p@example.org\"".to_owned(),
            "url: it has credentials in it",
        ),
        ("executor = \"http\"\nurl = \"http://127.1/\"".to_owned(), "127.0.0.1 is not a public address"),
    ] {
        let error = check(&toml).unwrap_err();
        assert!(error.contains(says), "{toml}\n{error}\ndoes not say {says:?}");
    }
}

#[test]
fn a_retry_policy_is_that_of_the_engine() {
    let policy: RetryPolicy = serde_json::from_value(json!({ "attempts": 3 })).unwrap();
    assert_eq!(policy, RetryPolicy::attempts(3));
    let retry = serde_json::to_value(policy.to_retry()).unwrap();
    let expected = json!({ "max": 3, "first": 1000, "factor": 2.0, "cap": 300_000, "jitter": 0.2 });
    assert_eq!(retry, expected);
}

//! `segno run start` and `segno run rerun`.

use segno_api::run::{RerunFrom, RerunRun, StartRun, StartedRun};
use segno_api::{Client, Json};
use serde_json::{Map, Value};

use super::{arguments, watch};
use crate::exit::Failure;
use crate::output::{Output, Table};
use crate::remote::start::{json, pairs};

/// Starts a run.
pub async fn start(client: &Client, arguments: arguments::StartRun, output: &Output) -> Result<(), Failure> {
    let request = StartRun {
        dag: arguments.dag,
        version: arguments.version,
        params: params(&arguments.params, arguments.params_json.as_deref())?,
        partition: arguments.partition,
        select: arguments.select,
        run_key: arguments.run_key,
        labels: pairs("--label", &arguments.labels)?,
    };
    let started = client.start_run(&request, arguments.idempotency_key.as_deref()).await?;
    follow(client, &started, arguments.watch, output).await
}

/// Repeats a run.
pub async fn rerun(client: &Client, arguments: arguments::Rerun, output: &Output) -> Result<(), Failure> {
    let from = if arguments.tasks.is_empty() { RerunFrom::Failure } else { RerunFrom::Subset };
    let request = RerunRun { from, tasks: arguments.tasks, downstream: arguments.downstream };
    let started = client.rerun_run(&arguments.run.id, &request).await?;
    follow(client, &started, arguments.watch, output).await
}

/// Shows a run that was started, and follows it if that was requested.
async fn follow(
    client: &Client,
    started: &StartedRun,
    is_watched: bool,
    output: &Output,
) -> Result<(), Failure> {
    let what = if started.created { "started" } else { "exists already" };
    if is_watched {
        output.hint(&format!("run {} {what}", started.id));
        return watch::run(client, &started.id, output).await;
    }
    if !started.is_visible {
        output.hint(
            "the run is stored, and reads do not show it yet; see the warnings of GET /readyz if this lasts",
        );
    }
    output.print(started, Table::default().line(&started.id, what))
}

/// Parameters, each on its own or all as one object.
fn params(given: &[String], all: Option<&str>) -> Result<Map<String, Value>, Failure> {
    if let Some(text) = all {
        let json: Json = json("--params", text)?;
        return serde_json::from_str(json.text()).map_err(|_| {
            Failure::Refused("--params is no JSON object, as in '{\"region\":\"eu\"}'".to_owned())
        });
    }
    Ok(pairs("--param", given)?.into_iter().map(parameter).collect())
}

/// A parameter whose value is JSON, or else text.
pub fn parameter((name, text): (String, String)) -> (String, Value) {
    let value = serde_json::from_str(&text).unwrap_or(Value::String(text));
    (name, value)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_of_parameters_are_json_or_else_text() {
        let given = ["region=eu", "limit=7", "deep={\"a\":[1]}", "text=\"7\"", "sum=a=b"].map(str::to_owned);
        let read = Value::Object(params(&given, None).unwrap());
        let wanted = json!({"region": "eu", "limit": 7, "deep": {"a": [1]}, "text": "7", "sum": "a=b"});
        assert_eq!(read, wanted);
        assert_eq!(Value::Object(params(&[], Some("{\"a\":1}")).unwrap()), json!({"a": 1}));
        assert!(params(&[], Some("[1]")).is_err() && params(&["x".to_owned()], None).is_err());
    }
}

//! `segno dag publish|list|show|versions|delete|pause|resume`: DAGs on a server.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use segno_api::Client;
use segno_api::dag::{Dag, DagDetails, DagVersion, PublishDag};
use segno_ledger::plan::limits::MAX_DAG_BYTES;
use serde_json::json;

use crate::documents::read;
use crate::exit::Failure;
use crate::output::{Output, Page, Paging, Rows, Table, target};
use crate::remote::history::shortened;
use crate::run::graph;

/// Code of a document that is no DAG.
const INVALID_DAG: &str = "invalid-dag";

/// What to do with published DAGs.
#[derive(Debug, Subcommand)]
pub enum PublishedVerb {
    /// Publish a DAG: a new version, which is active at once. Runs that have begun keep theirs.
    #[command(after_help = "Example:\n  segno dag publish daily-sales.yaml")]
    Publish {
        /// The document, YAML or JSON; `-` reads standard input.
        file: PathBuf,
    },
    /// List published DAGs by name.
    #[command(after_help = "Example:\n  segno dag list")]
    List {
        /// How many.
        #[command(flatten)]
        paging: Paging,
    },
    /// Show a published DAG and the graph of its tasks, or one version.
    #[command(
        after_help = "Examples:\n  segno dag show daily-sales\n  segno dag show daily-sales --version 2 --source"
    )]
    Show(Show),
    /// List the versions of a DAG, oldest first.
    #[command(after_help = "Example:\n  segno dag versions daily-sales")]
    Versions {
        /// Name of the DAG.
        name: String,
        /// How many.
        #[command(flatten)]
        paging: Paging,
    },
    /// Delete a DAG with all its versions. Its runs stay.
    #[command(after_help = "Example:\n  segno dag delete daily-sales")]
    Delete {
        /// Name of the DAG.
        name: String,
    },
    /// Pause a DAG: its schedule, sensors and backfills start no runs.
    #[command(after_help = "Example:\n  segno dag pause daily-sales")]
    Pause {
        /// Name of the DAG.
        name: String,
    },
    /// Resume a paused DAG.
    #[command(after_help = "Example:\n  segno dag resume daily-sales")]
    Resume {
        /// Name of the DAG.
        name: String,
    },
}

/// What to show.
#[derive(Debug, Args)]
pub struct Show {
    /// Name of the DAG.
    pub name: String,
    /// Show this version.
    #[arg(long, value_name = "NUMBER")]
    pub version: Option<u32>,
    /// Print the document as it was published.
    #[arg(long)]
    pub source: bool,
}

/// Runs a verb.
pub async fn run(client: &Client, verb: PublishedVerb, output: &Output) -> Result<(), Failure> {
    match verb {
        PublishedVerb::Publish { file } => publish(client, &file, output).await,
        PublishedVerb::List { paging } => list(client, &paging, output).await,
        PublishedVerb::Show(arguments) => show(client, arguments, output).await,
        PublishedVerb::Versions { name, paging } => versions(client, &name, &paging, output).await,
        PublishedVerb::Delete { name } => {
            client.delete_dag(&name).await?;
            output.print(&json!({ "deleted": name }), Table::default().line(format!("DAG {name}"), "deleted"))
        }
        PublishedVerb::Pause { name } => {
            let dag = client.pause_dag(&name).await?;
            output.print(&dag, facts(&dag, output))
        }
        PublishedVerb::Resume { name } => {
            let dag = client.resume_dag(&name).await?;
            output.print(&dag, facts(&dag, output))
        }
    }
}

async fn publish(client: &Client, file: &Path, output: &Output) -> Result<(), Failure> {
    let bytes = read(file, MAX_DAG_BYTES)?;
    let document = String::from_utf8(bytes).map_err(|error| {
        let (file, place) = (file.display(), error.utf8_error().valid_up_to());
        Failure::invalid(INVALID_DAG, format!("{file} is not UTF-8 at byte {place}; save it as UTF-8"))
    })?;
    let published = client.publish_dag(&PublishDag { document }).await?;
    let mut table = version_facts(&published, output);
    if published.is_new == Some(false) {
        table = table.line("changed", "nothing; this document is the active version already");
    }
    let mut text = table.to_text(output.colours);
    if !published.warnings.is_empty() {
        let mut rows = Rows::new(["warning"]);
        published.warnings.iter().for_each(|warning| rows.add([warning.clone()]));
        text = format!("{text}\n{}", rows.to_text(output.colours));
    }
    output.text(&published, &text)
}

async fn list(client: &Client, paging: &Paging, output: &Output) -> Result<(), Failure> {
    let page = paging.gather(|request| async move {
        let page = client.dags(request).await?;
        Ok(Page::of(page.dags, page.unreadable, page.next_cursor))
    });
    let page = page.await?;
    let mut rows = Rows::new(["dag", "version", "published", "status", "description"]);
    for dag in &page.items {
        rows.add([
            dag.name.clone(),
            dag.active_version.to_string(),
            output.time(dag.updated_at),
            status(dag).to_owned(),
            dag.description.clone().unwrap_or_default(),
        ]);
    }
    output.list(&page, &rows)
}

async fn versions(client: &Client, name: &str, paging: &Paging, output: &Output) -> Result<(), Failure> {
    let page = paging.gather(|request| async move {
        let page = client.dag_versions(name, request).await?;
        Ok(Page::of(page.versions, page.unreadable, page.next_cursor))
    });
    let page = page.await?;
    let mut rows = Rows::new(["version", "published", "by", "active"]);
    for version in &page.items {
        rows.add([
            version.version.to_string(),
            output.time(version.created_at),
            version.created_by.clone().unwrap_or_default(),
            if version.is_active { "yes" } else { "no" }.to_owned(),
        ]);
    }
    output.list(&page, &rows)
}

async fn show(client: &Client, arguments: Show, output: &Output) -> Result<(), Failure> {
    let Show { name, version, source } = arguments;
    let version = match (version, source) {
        (None, true) => Some(client.dag(&name).await?.dag.active_version),
        (version, _) => version,
    };
    if let Some(version) = version {
        let version = client.dag_version(&name, version).await?;
        return match source {
            true => output.text(&version, version.document.as_deref().unwrap_or_default()),
            false => output.print(&version, version_facts(&version, output)),
        };
    }
    let details = client.dag(&name).await?;
    let text = shown(&details, output);
    output.text(&details, &text)
}

/// Why the last poll of a sensor failed, cut to fit a row.
fn told(error: &str, failures: u32) -> String {
    let error = shortened(error.lines().next().unwrap_or_default());
    match failures {
        0 | 1 => format!("error: {error}"),
        several => format!("error, {several} in a row: {error}"),
    }
}

/// A DAG with its parameters and the graph of its tasks.
fn shown(details: &DagDetails, output: &Output) -> String {
    let mut table = facts(&details.dag, output);
    if let Some(schedule) = &details.schedule {
        table = table.line("schedule", schedule);
    }
    if let Some(partitions) = &details.partitioned_by {
        table = table.line("partitioned by", partitions);
    }
    if let Some(runs) = details.max_concurrent_runs {
        table = table.line("runs at a time", runs.to_string());
    }
    let mut text = table.to_text(output.colours);
    if !details.sensors.is_empty() {
        let mut rows = Rows::new(["sensor", "function", "every", "polled", "came to", "cursor", "next"]);
        for sensor in &details.sensors {
            let time = |at: Option<_>| at.map(|at| output.time(at)).unwrap_or_default();
            let status = sensor.last_status.as_deref().unwrap_or_default().replace('_', " ");
            rows.add([
                sensor.name.clone(),
                sensor.function.clone(),
                sensor.interval.clone(),
                time(sensor.last_polled_at),
                sensor.last_error.as_ref().map_or(status, |error| told(error, sensor.failures)),
                sensor.cursor.clone().unwrap_or_default(),
                time(sensor.next_poll_at),
            ]);
        }
        text = format!("{text}\n{}", rows.to_text(output.colours));
    }
    if !details.params.is_empty() {
        let mut rows = Rows::new(["parameter", "default", "description"]);
        for param in &details.params {
            rows.add([
                param.name.clone(),
                param.default.as_ref().map_or_else(|| "(required)".to_owned(), |json| json.text().to_owned()),
                param.description.clone().unwrap_or_default(),
            ]);
        }
        text = format!("{text}\n{}", rows.to_text(output.colours));
    }
    let edges: Vec<_> =
        details.tasks.iter().map(|task| (task.key.as_str(), task.depends_on.as_slice())).collect();
    let mut rows = Rows::new(["", "task", "calls", "after"]);
    for line in graph::draw(&edges, |_| '○') {
        let Some(task) = line.node.and_then(|place| details.tasks.get(place)) else {
            rows.add([line.rails, String::new(), String::new(), String::new()]);
            continue;
        };
        rows.add([
            line.rails,
            task.key.clone(),
            target(task.orchestration.as_deref(), task.function.as_deref().unwrap_or_default()),
            task.depends_on.join(", "),
        ]);
    }
    let shown = u32::try_from(details.tasks.len()).unwrap_or(u32::MAX);
    let more = match details.tasks_total.saturating_sub(shown) {
        0 => String::new(),
        more => format!("and {more} more tasks; `dag show {} --source` prints them\n", details.dag.name),
    };
    format!("{text}\n{}{more}", rows.to_text(output.colours))
}

fn status(dag: &Dag) -> &'static str {
    if dag.is_paused { "paused" } else { "active" }
}

fn facts(dag: &Dag, output: &Output) -> Table {
    let mut table = Table::default().line("dag", &dag.name);
    if let Some(description) = &dag.description {
        table = table.line("description", description);
    }
    table
        .line("active version", dag.active_version.to_string())
        .line("status", status(dag))
        .line("first published", output.time(dag.created_at))
        .line("changed", output.time(dag.updated_at))
}

fn version_facts(version: &DagVersion, output: &Output) -> Table {
    let mut table = Table::default()
        .line("dag", &version.name)
        .line("version", version.version.to_string())
        .line("active", if version.is_active { "yes" } else { "no" });
    if let Some(tasks) = version.tasks {
        table = table.line("tasks", tasks.to_string());
    }
    table.line("published", output.time(version.created_at))
}

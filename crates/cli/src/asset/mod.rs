//! `segno asset …`: assets of published DAGs, and what is made of what.

pub mod arguments;

use segno_api::Client;
use segno_api::asset::{Asset, AssetTask, LineageAsset, LineagePartition};
use segno_api::client::LineageOf;

use crate::exit::Failure;
use crate::output::{Output, Page, Paging, Rows, Table};
use arguments::{AssetArguments, AssetVerb};

/// Partitions that one line of a lineage names.
const NAMED_PARTITIONS: usize = 3;

/// Runs a verb.
pub async fn run(arguments: AssetArguments, output: &Output) -> Result<(), Failure> {
    let client = &arguments.connection.client(output)?;
    match arguments.verb {
        AssetVerb::List { paging } => list(client, &paging, output).await,
        AssetVerb::Show { asset } => show(client, &asset, output).await,
        AssetVerb::Lineage { asset, partition, depth } => {
            lineage(client, &asset, &LineageOf { partition, depth }, output).await
        }
    }
}

async fn list(client: &Client, paging: &Paging, output: &Output) -> Result<(), Failure> {
    let page = paging.gather(|request| async move {
        let page = client.assets(request).await?;
        Ok(Page::of(page.assets, page.unreadable, page.next_cursor))
    });
    let page = page.await?;
    let mut rows = Rows::new(["asset", "made by", "partitions", "failed", "last made", "run"]);
    for asset in &page.items {
        let last = asset.last_materialization.as_ref();
        rows.add([
            asset.asset.clone(),
            tasks(&asset.producers),
            asset.partitions_materialized.to_string(),
            asset.partitions_failed.to_string(),
            last.and_then(|last| last.last_materialization_at).map(|at| output.time(at)).unwrap_or_default(),
            last.and_then(|last| last.last_materialization_run.clone()).unwrap_or_default(),
        ]);
    }
    output.list(&page, &rows)
}

async fn show(client: &Client, key: &str, output: &Output) -> Result<(), Failure> {
    let asset = client.asset(key).await?;
    output.print(&asset, facts(&asset, output))
}

fn facts(asset: &Asset, output: &Output) -> Table {
    let mut table = Table::default().line("asset", &asset.asset);
    let last = asset.last_materialization.as_ref();
    let partition = last.map(|last| last.partition.clone()).filter(|partition| !partition.is_empty());
    for (name, value) in [
        ("description", asset.description.clone()),
        ("partitioned by", asset.partitioned_by.clone()),
        ("freshness", asset.freshness.clone()),
        ("made by", Some(tasks(&asset.producers))),
        ("read by", Some(tasks(&asset.consumers))),
        ("upstream", Some(asset.upstream.join(", "))),
        ("downstream", Some(asset.downstream.join(", "))),
        (
            "partitions",
            Some(format!("{} made, {} failed", asset.partitions_materialized, asset.partitions_failed)),
        ),
        ("last made", last.and_then(|last| last.last_materialization_at).map(|at| output.time(at))),
        ("last partition", partition),
        ("last run", last.and_then(|last| last.last_materialization_run.clone())),
    ] {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            table = table.line(name, value);
        }
    }
    table
}

async fn lineage(client: &Client, asset: &str, of: &LineageOf, output: &Output) -> Result<(), Failure> {
    let lineage = client.asset_lineage(asset, of).await?;
    let has_partition = of.partition.is_some();
    let mut headings = vec!["DIRECTION", "ASSET", "AWAY", "VIA", "MAPPING", "MADE BY"];
    if has_partition {
        headings.extend(["PARTITIONS", "RUNS"]);
    }
    let mut rows = Rows::named(headings.into_iter().map(str::to_owned).collect());
    for (way, assets) in [("upstream", &lineage.upstream), ("downstream", &lineage.downstream)] {
        for asset in assets {
            let mut cells = row(way, asset);
            if has_partition {
                let runs = asset.partitions.iter().filter_map(run_of);
                cells.extend([named(asset.partitions.iter().map(|it| it.partition.as_str())), named(runs)]);
            }
            rows.push(cells);
        }
    }
    let mut text = String::new();
    if let Some(partition) = &lineage.partition {
        let run = run_of(partition).unwrap_or("no run");
        text = format!("partition {} was made by {run}{}\n\n", partition.partition, stale(partition, output));
    }
    text.push_str(&rows.to_text(output.colours));
    if !lineage.is_complete {
        text.push_str("\nFurther assets or partitions are left out; --depth shows the nearest ones.\n");
    }
    output.text(&lineage, &text)
}

/// That a partition is stale, and why.
fn stale(partition: &LineagePartition, output: &Output) -> String {
    let Some(state) = &partition.state else { return String::new() };
    let since = state.stale_since.map(|at| format!(" since {}", output.time(at))).unwrap_or_default();
    match &state.stale_reason {
        Some(reason) => format!("; it is stale{since}: {}", reason.replace('_', " ")),
        None => String::new(),
    }
}

fn row(way: &str, asset: &LineageAsset) -> Vec<String> {
    let mapping = if asset.is_declared { asset.mapping.clone() } else { "tasks".to_owned() };
    let producers = tasks(&asset.producers);
    vec![
        way.to_owned(),
        asset.asset.clone(),
        asset.distance.to_string(),
        asset.via.clone(),
        mapping,
        producers,
    ]
}

/// The run that has made a partition.
fn run_of(partition: &LineagePartition) -> Option<&str> {
    partition.state.as_ref()?.last_materialization_run.as_deref()
}

/// Some names, and how many more there are.
fn named<'n>(names: impl Iterator<Item = &'n str>) -> String {
    let mut unique: Vec<&str> = Vec::new();
    for name in names.filter(|name| !name.is_empty()) {
        if !unique.contains(&name) {
            unique.push(name);
        }
    }
    let more = unique.len().saturating_sub(NAMED_PARTITIONS);
    let shown = unique[..unique.len() - more].join(", ");
    if more == 0 { shown } else { format!("{shown} and {more} more") }
}

fn tasks(tasks: &[AssetTask]) -> String {
    let names: Vec<String> = tasks.iter().map(|task| format!("{}.{}", task.dag, task.task)).collect();
    named(names.iter().map(String::as_str))
}

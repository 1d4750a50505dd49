//! Assets of DAGs: who makes them, what was made last, and what is made of what.

use segno_api::Client;
use segno_api::asset::{AssetTask, LineageAsset};
use segno_api::client::LineageOf;
use segno_api::run::StartRun;

use crate::dags::{ended, of, publish};
use crate::stand::Stand;

const RAW: &str = "name: raw
partitions: {day: {window: daily, first: 2026-01-01}}
partitioned_by: day
assets: {raw/sales: {partitions: day, freshness: 26h, description: As delivered.}}
tasks:
  - {key: load, function: echo, asset: raw/sales}
  - {key: clean, function: echo, depends_on: [load], asset: clean/sales}
";

const REPORT: &str = "name: report
partitions: {day: {window: daily, first: 2026-01-01}, month: {window: monthly, first: 2026-01}}
partitioned_by: month
assets:
  clean/sales: {partitions: day}
  report: {partitions: month, upstream: [{asset: clean/sales, mapping: window}]}
tasks: [{key: write, function: echo, asset: report}]
";

/// The same DAG without its asset.
const NO_REPORT: &str = "name: report
partitions: {month: {window: monthly, first: 2026-01}}
partitioned_by: month
tasks: [{key: write, function: echo}]
";

async fn run(client: &Client, dag: &str, partition: &str) -> String {
    let start = StartRun { partition: Some(partition.to_owned()), ..of(dag) };
    let run = client.start_run(&start, None).await.unwrap().id;
    ended(client, &run).await;
    run
}

fn task(dag: &str, task: &str) -> AssetTask {
    AssetTask { dag: dag.to_owned(), task: task.to_owned() }
}

fn names(assets: &[LineageAsset]) -> Vec<(&str, u32, bool)> {
    assets.iter().map(|asset| (asset.asset.as_str(), asset.distance, asset.is_declared)).collect()
}

#[tokio::test]
async fn assets_are_listed_with_their_tasks_and_traced_by_partition_across_dags() {
    let stand = Stand::open().await;
    let client = stand.client();
    assert!(client.assets(None).await.unwrap().assets.is_empty());
    publish(&client, RAW).await;
    publish(&client, REPORT).await;
    let first = run(&client, "raw", "2026-01-05").await;
    let second = run(&client, "raw", "2026-02-01").await;
    let report = run(&client, "report", "2026-01").await;

    let page = client.assets(None).await.unwrap();
    let keys: Vec<&str> = page.assets.iter().map(|asset| asset.asset.as_str()).collect();
    assert_eq!((keys, page.is_complete), (vec!["clean/sales", "raw/sales", "report"], true));
    let clean = client.asset("clean/sales").await.unwrap();
    assert_eq!(clean, page.assets[0]);
    assert_eq!(
        (clean.producers.as_slice(), clean.consumers.as_slice()),
        (&[task("raw", "clean")][..], &[task("report", "write")][..])
    );
    assert_eq!((clean.upstream, clean.downstream), (vec!["raw/sales".to_owned()], vec!["report".to_owned()]));
    assert_eq!((clean.partitions_known, clean.partitions_materialized, clean.partitions_failed), (2, 2, 0));
    let last = clean.last_materialization.unwrap();
    assert_eq!(
        (last.partition.as_str(), last.last_materialization_run.as_deref()),
        ("2026-02-01", Some(second.as_str()))
    );
    let raw = client.asset("raw/sales").await.unwrap();
    assert_eq!((raw.description.as_deref(), raw.freshness.as_deref()), (Some("As delivered."), Some("1d2h")));

    let lineage = client.asset_lineage("report", &LineageOf::default()).await.unwrap();
    assert_eq!(names(&lineage.upstream), [("clean/sales", 1, true), ("raw/sales", 2, false)]);
    assert!(lineage.downstream.is_empty() && lineage.partition.is_none() && lineage.is_complete);
    let of_month = LineageOf { partition: Some("2026-01".to_owned()), depth: None };
    let lineage = client.asset_lineage("report", &of_month).await.unwrap();
    let made_by = |asset: &LineageAsset| -> Vec<(String, String)> {
        let made = asset.partitions.iter().filter_map(|partition| {
            let run = partition.state.as_ref()?.last_materialization_run.clone()?;
            Some((partition.partition.clone(), run))
        });
        made.collect()
    };
    assert_eq!(lineage.upstream[0].partitions.len(), 31, "the days of the month");
    for asset in &lineage.upstream {
        assert_eq!(made_by(asset), [("2026-01-05".to_owned(), first.clone())], "{}", asset.asset);
    }
    let made = lineage.partition.unwrap().state.unwrap();
    assert_eq!(made.last_materialization_run, Some(report.clone()));
    let of_day = LineageOf { partition: Some("2026-01-05".to_owned()), depth: Some(1) };
    let lineage = client.asset_lineage("raw/sales", &of_day).await.unwrap();
    assert_eq!(names(&lineage.downstream), [("clean/sales", 1, false)], "one edge away");
    let of_day = LineageOf { depth: None, ..of_day };
    let lineage = client.asset_lineage("raw/sales", &of_day).await.unwrap();
    assert_eq!(names(&lineage.downstream), [("clean/sales", 1, false), ("report", 2, true)]);
    assert_eq!(made_by(&lineage.downstream[1]), [("2026-01".to_owned(), report)]);

    // The report is as new as what it is made of, until a day of its month is made again.
    let report_of = async || client.asset_partitions("report", None).await.unwrap().partitions.remove(0);
    assert_eq!((report_of().await.stale_reason, report_of().await.stale_since), (None, None));
    run(&client, "raw", "2026-01-05").await;
    let stale = report_of().await;
    let days = client.asset_partitions("clean/sales", None).await.unwrap().partitions;
    assert_eq!(stale.stale_reason.as_deref(), Some("upstream_newer"));
    assert_eq!((stale.stale_since, days[0].stale_reason.as_deref()), (days[0].last_materialization_at, None));
    let lineage = client.asset_lineage("report", &of_month).await.unwrap();
    assert_eq!(lineage.partition.unwrap().state, Some(stale));
    publish(&client, &RAW.replace("As delivered.", "As it came.")).await;
    let days = client.asset_partitions("clean/sales", None).await.unwrap().partitions;
    assert_eq!(days[0].stale_reason.as_deref(), Some("code_changed"));

    for (request, code) in [
        (client.asset("nothing").await.err(), "unknown-asset"),
        (client.asset_lineage("nothing", &LineageOf::default()).await.err(), "unknown-asset"),
        (
            client
                .asset_lineage("report", &LineageOf { partition: Some("x".to_owned()), depth: None })
                .await
                .err(),
            "invalid-run",
        ),
        (
            client.asset_lineage("report", &LineageOf { partition: None, depth: Some(0) }).await.err(),
            "invalid-request",
        ),
    ] {
        assert_eq!(request.unwrap().code(), Some(code));
    }
    // Another version without the asset: it is what runs have made, and no part of the graph.
    publish(&client, NO_REPORT).await;
    let report = client.asset("report").await.unwrap();
    assert_eq!((report.producers.len(), report.partitions_materialized), (0, 1));
    assert_eq!(client.assets(None).await.unwrap().assets.len(), 2);
}

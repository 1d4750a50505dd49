//! Definitions are written down and read again, and built in Rust they are the same as in YAML.

use std::collections::BTreeMap;

use segno_actions::functions::HumanDuration;
use segno_actions::schedule::{ScheduleSpec, Zones};
use segno_ledger::plan::definition::{
    Asset, NotifyEvent, Parameter, PartitionMapping, Partitions, Retry, UpstreamAsset, WindowSize,
};
use segno_ledger::plan::{Dag, Function, TaskBuilder};
use segno_ledger::tables::TriggerRule;
use serde_json::json;

use crate::{DAILY_SALES, EVERYTHING, SMALLEST, parsed, problems};

#[test]
fn a_definition_is_the_same_when_it_is_written_down_and_read_again() {
    for text in [DAILY_SALES, EVERYTHING, SMALLEST] {
        let first = parsed(text);
        assert_eq!(problems(text), "", "{text}");
        assert_eq!(parsed(&first.dag.to_json()).dag, first.dag, "{}", first.dag.to_json());
        let yaml = serde_saphyr::to_string(&first.dag).unwrap();
        assert_eq!(parsed(&yaml).dag, first.dag, "{yaml}");
        assert_eq!(first.dag.checked(&Zones::bundled()).unwrap().dag, first.dag);
    }
}

#[test]
fn json_is_read_like_yaml() {
    let json = "{\r\n\t\"name\": \"smallest\",\n\t\"tasks\": [\n\t\t{\"key\": \"only\", \"function\": \"work\"}\n\t]\n}\n";
    assert_eq!(parsed(json).dag, parsed(SMALLEST).dag);
    let escapes = r#"{"name": "x", "description": "a\/b ü 😀", "tasks": [{"key": "a", "function": "f"}]}"#;
    assert_eq!(parsed(escapes).dag.description.as_deref(), Some("a/b ü 😀"));
}

fn task(key: &str, function: &str) -> TaskBuilder {
    TaskBuilder::new(key, Function::new(function))
        .retry(Retry { attempts: 4, initial_delay: HumanDuration::from_secs(10), ..Retry::default() })
        .timeout(HumanDuration::from_secs(15 * 60))
}

#[test]
fn a_dag_that_is_built_is_the_same_as_in_yaml() {
    let windows = |window, first: &str| Partitions::Windows {
        window,
        timezone: "Europe/Berlin".to_owned(),
        first: first.to_owned(),
        last: None,
    };
    let asset = |partitions: &str, hours: Option<u64>, upstream: &[(&str, PartitionMapping)]| Asset {
        description: None,
        partitions: Some(partitions.to_owned()),
        freshness: hours.map(|hours| HumanDuration::from_secs(hours * 3_600)),
        upstream: upstream
            .iter()
            .map(|(asset, mapping)| UpstreamAsset { asset: (*asset).to_owned(), mapping: *mapping })
            .collect(),
    };
    let max_shops = Parameter {
        description: None,
        default: Some(json!(100)),
        schema: Some(json!({ "type": "integer", "minimum": 1 })),
    };
    let built = Dag::builder("daily-sales")
        .description("Sales of one day, from the files of each shop to one report.")
        .param("currency", "EUR")
        .parameter("max_shops", max_shops)
        .partitions("day", windows(WindowSize::Daily, "2026-01-01"))
        .partitions("month", windows(WindowSize::Monthly, "2026-01"))
        .partitioned_by("day")
        .asset("raw/sales", asset("day", Some(26), &[]))
        .asset("report/sales", asset("day", Some(30), &[("raw/sales", PartitionMapping::Same)]))
        .asset("report/month", asset("month", None, &[("report/sales", PartitionMapping::Window)]))
        .pool("warehouse", 4)
        .schedule(ScheduleSpec::cron("0 6 * * *").timezone("Europe/Berlin"))
        .notify("tell-operators", [NotifyEvent::RunFailed, NotifyEvent::AssetStale])
        .max_concurrent_runs(3)
        .task(
            task("list", "list-shops")
                .input(json!({ "day": "{{ partition.key }}", "limit": "{{ params.max_shops }}" })),
        )
        .task(
            task("extract", "extract-sales").depends_on(["list"]).for_each("{{ tasks.list.output.shops }}").input(
                json!({ "shop": "{{ item.id }}", "from": "{{ partition.start }}", "to": "{{ partition.end }}" }),
            ),
        )
        .task(
            task("load", "load-sales").depends_on(["extract"]).pool("warehouse").asset("raw/sales").input(
                json!({ "files": "{{ tasks.extract.output }}", "currency": "{{ params.currency }}" }),
            ),
        )
        .task(
            task("check", "check-sales")
                .depends_on(["load"])
                .retry(Retry { attempts: 1, ..Retry::default() })
                .input(json!({ "rows": "{{ tasks.load.output.rows }}" })),
        )
        .task(task("report", "write-report").depends_on(["load", "check"]).asset("report/sales").input(json!({
            "title": "Sales of {{ partition.key }} (run {{ run.id }})", "rows": "{{ tasks.load.output.rows }}",
        })))
        .task(
            task("clean-up", "remove-files")
                .depends_on(["extract", "load"])
                .trigger_rule(TriggerRule::AllDone)
                .input(json!({ "files": "{{ tasks.extract.output | default('none') }}" })),
        )
        .build()
        .unwrap();
    assert_eq!(built.dag, parsed(DAILY_SALES).dag);
}

#[test]
fn what_is_built_wrongly_has_paths_and_no_lines() {
    let error = Dag::builder("d").task(task("a", "f").depends_on(["b"])).build().unwrap_err();
    assert_eq!(error.to_string(), "tasks[0].depends_on[0]: there is no task \"b\" [invalid-dag]");
    let partitions =
        BTreeMap::from([("region".to_owned(), Partitions::Keys { values: vec!["a|b".to_owned()] })]);
    let dag = Dag { name: "d".to_owned(), partitions, ..Dag::default() };
    let error = dag.checked(&Zones::bundled()).unwrap_err().to_string();
    assert!(error.contains("partitions.region: \"a|b\" cannot be a partition key"), "{error}");
}

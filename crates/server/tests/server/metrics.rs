//! `/metrics` and the page that describes it, compared both ways.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use reqwest::{Method, StatusCode};
use segno::clock::{self, SystemClock};
use segno::telemetry::{Metric, MetricKind};
use segno_server::settings::Authentication;
use segno_server::{Server, samples, telemetry};

use crate::stand::{Ground, PATIENCE, greet, listener, settings};

const PAGE: &str = include_str!("../../../../docs/guide/observability.md");

/// One metric: its kind, and its labels with their values, none where they are not listed.
type Described = (String, BTreeMap<String, BTreeSet<String>>);

/// Words in backquotes.
fn quoted(text: &str) -> Vec<String> {
    text.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// The metrics of the page's tables.
fn documented() -> BTreeMap<String, Described> {
    let mut found = BTreeMap::new();
    for row in PAGE.lines().filter(|line| line.starts_with("| `segno_")) {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let labels = cells[3].split(';').filter(|label| !label.is_empty()).map(|label| {
            let mut words = quoted(label).into_iter();
            (words.next().unwrap(), words.collect())
        });
        let described = (cells[2].to_owned(), labels.collect());
        assert!(!cells[4].is_empty(), "{row}");
        assert_eq!(found.insert(quoted(cells[1]).remove(0), described), None, "{row} stands there twice");
    }
    found
}

/// What the code knows of a metric, as the page has it.
fn known(metric: &Metric) -> Described {
    let kind = match metric.kind {
        MetricKind::Counter => "counter",
        MetricKind::Gauge => "gauge",
        MetricKind::Histogram { .. } => "histogram",
    };
    let labels = metric
        .labels
        .iter()
        .map(|label| (label.name.to_owned(), label.values.iter().map(|value| (*value).to_owned()).collect()));
    (kind.to_owned(), labels.collect())
}

/// A scrape: type and help of each metric, and the labels of its series.
#[derive(Default)]
struct Scrape {
    types: BTreeMap<String, String>,
    helps: BTreeSet<String>,
    series: Vec<(String, BTreeMap<String, String>, f64)>,
}

impl Scrape {
    fn parse(text: &str) -> Self {
        let mut scrape = Scrape::default();
        for line in text.lines().filter(|line| !line.is_empty()) {
            if let Some(kind) = line.strip_prefix("# TYPE ") {
                let (name, kind) = kind.split_once(' ').unwrap();
                scrape.types.insert(name.to_owned(), kind.to_owned());
            } else if let Some(help) = line.strip_prefix("# HELP ") {
                scrape.helps.insert(help.split_once(' ').unwrap().0.to_owned());
            } else {
                let (series, value) = line.rsplit_once(' ').unwrap();
                let (name, labels) = series.trim_end_matches('}').split_once('{').unwrap_or((series, ""));
                let labels = labels.split("\",").filter(|label| !label.is_empty()).map(|label| {
                    let (name, value) = label.split_once("=\"").unwrap();
                    (name.to_owned(), value.trim_end_matches('"').to_owned())
                });
                scrape.series.push((name.to_owned(), labels.collect(), value.parse().unwrap()));
            }
        }
        scrape
    }

    fn value(&self, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        let wanted: BTreeMap<String, String> =
            labels.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        self.series.iter().find(|(found, has, _)| found == name && *has == wanted).map(|(_, _, value)| *value)
    }
}

/// The metric that a series belongs to: histograms have three kinds of series.
fn metric_of<'a>(series: &'a str, types: &BTreeMap<String, String>) -> &'a str {
    let ends = ["_bucket", "_sum", "_count"].into_iter().filter_map(|end| series.strip_suffix(end));
    ends.into_iter().find(|name| types.contains_key(*name)).unwrap_or(series)
}

#[test]
fn the_page_describes_what_the_code_measures_and_nothing_else() {
    let known: BTreeMap<String, Described> =
        telemetry::all().map(|metric| (metric.name.to_owned(), known(metric))).collect();
    assert_eq!(documented(), known);
}

// On one thread, because the recorder is that of a thread.
#[tokio::test]
async fn what_is_scraped_is_what_the_page_describes() {
    let recorder = telemetry::recorder().unwrap();
    let _guard = metrics::set_default_local_recorder(&recorder);
    telemetry::all().for_each(Metric::announce);
    let ground = Ground::new().await;
    let mut settings = settings(Authentication::None);
    settings.bus = serde_json::from_value(serde_json::json!({ "url": "built-in" })).unwrap();
    let server = Server::builder(Arc::clone(&ground.store), settings)
        .registry(samples::registry())
        .functions(samples::functions)
        .metrics(recorder.handle())
        .start(listener().await)
        .await
        .unwrap();
    let url = format!("http://{}", server.address());
    let client = segno_api::Client::new(&url).unwrap();
    client.start(&greet("one", r#"{"name":"Ada"}"#), None, PATIENCE).await.unwrap();
    let http = crate::stand::http();
    for (method, path, status) in [
        (Method::GET, "/v1/instances/one", StatusCode::OK),
        (Method::GET, "/v1/instances/two", StatusCode::NOT_FOUND),
        (Method::POST, "/v1/hooks/default/none", StatusCode::NOT_FOUND),
        (Method::from_bytes(b"BREW").unwrap(), "/v1/instances/one", StatusCode::METHOD_NOT_ALLOWED),
        (Method::GET, "/no/such/page", StatusCode::NOT_FOUND),
        (Method::GET, "/no/such/page/either", StatusCode::NOT_FOUND),
    ] {
        let answer = http.request(method, format!("{url}{path}")).send().await.unwrap();
        assert_eq!(answer.status(), status, "{path}");
    }
    let scrape = async {
        // Gauges come with the first look of the scheduler, and at the bus.
        let looked = ["segno_recurring_active", "segno_actions_overdue", "segno_bus_oldest_waiting_seconds"];
        loop {
            let answer = http.get(format!("{url}/metrics")).send().await.unwrap();
            let scrape = Scrape::parse(&answer.text().await.unwrap());
            if looked.iter().all(|name| scrape.types.contains_key(*name)) {
                break scrape;
            }
            crate::stand::look_again().await;
        }
    };
    let scrape = clock::timeout(&SystemClock, PATIENCE, scrape).await.expect("they look");
    compare(&scrape);
    let get = |route, status| [("method", "GET"), ("route", route), ("status", status)];
    for (labels, count) in [
        (get("/v1/instances/{id}", "2xx"), 1.0),
        (get("/v1/instances/{id}", "4xx"), 1.0),
        ([("method", "other"), ("route", "/v1/instances/{id}"), ("status", "4xx")], 1.0),
        ([("method", "other"), ("route", "unmatched"), ("status", "4xx")], 2.0),
    ] {
        assert_eq!(scrape.value("segno_http_requests_total", &labels), Some(count), "{labels:?}");
    }
    assert_eq!(scrape.value("segno_http_requests_in_flight", &[]), Some(1.0), "the scrape itself");
    assert_eq!(scrape.value("segno_instances_ended_total", &[("outcome", "completed")]), Some(1.0));
    assert_eq!(scrape.value("segno_poisoned_total", &[("what", "turn")]), Some(0.0));
    assert_eq!(scrape.value("segno_hooks_refused_total", &[("reason", "no_route")]), Some(1.0));
    server.shutdown().await;
}

fn compare(scrape: &Scrape) {
    let documented = documented();
    for (name, kind) in &scrape.types {
        let (described, _) = documented.get(name).unwrap_or_else(|| panic!("{name} is not on the page"));
        assert_eq!(kind, described, "{name}");
        assert!(scrape.helps.contains(name), "{name} has no line of help");
    }
    for (name, (_, labels)) in &documented {
        // A series whose labels are open comes with its first event; store errors have none here.
        let may_be_missing = name == "segno_store_errors_total";
        assert!(may_be_missing || scrape.types.contains_key(name), "{name} is not scraped");
        let series: Vec<_> =
            scrape.series.iter().filter(|(series, _, _)| metric_of(series, &scrape.types) == name).collect();
        assert!(may_be_missing || !series.is_empty(), "{name} has no series");
        for (_, found, _) in series {
            let found: BTreeMap<&String, &String> =
                found.iter().filter(|(label, _)| *label != "le").collect();
            assert!(found.keys().copied().eq(labels.keys()), "{name}: {found:?}");
            for (label, value) in found {
                assert!(
                    labels[label].is_empty() || labels[label].contains(value),
                    "{name}: {label} is {value}"
                );
            }
        }
    }
}

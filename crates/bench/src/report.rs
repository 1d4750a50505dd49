//! What is printed about a workload.

use hdrhistogram::Histogram;
use serde::Serialize;

use crate::nodes::Traffic;
use crate::workload::Measured;

/// The figures of one workload. The field names are the JSON that scripts read.
#[derive(Debug, Serialize)]
pub struct Report {
    workload: &'static str,
    store: String,
    concurrency: u32,
    runs_per_s: f64,
    steps_per_s: f64,
    p50_ms: f64,
    p99_ms: f64,
    cpu_s: f64,
    rss_mb: f64,
    errors: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    commits_per_run: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    round_trips_per_run: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes_per_run: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cost_ratio: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lateness_p50_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lateness_p99_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    early: Option<u64>,
}

impl Report {
    /// Figures from what was measured.
    pub fn new(workload: &'static str, store: String, measured: Measured, rss_mb: f64) -> Self {
        let seconds = measured.elapsed.as_secs_f64();
        let lateness = measured.lateness.as_ref();
        let per_run = |count: fn(Traffic) -> u64| {
            let traffic = measured.spent.traffic.filter(|_| measured.runs > 0)?;
            Some(round(count(traffic) as f64 / measured.runs as f64))
        };
        Report {
            workload,
            store,
            concurrency: measured.concurrency,
            runs_per_s: round(measured.runs as f64 / seconds),
            steps_per_s: round(measured.steps as f64 / seconds),
            p50_ms: percentile_ms(&measured.latency_us, 50.0),
            p99_ms: percentile_ms(&measured.latency_us, 99.0),
            cpu_s: round(measured.spent.cpu_s),
            rss_mb: round(rss_mb),
            errors: measured.errors,
            commits_per_run: per_run(|traffic| traffic.commits),
            round_trips_per_run: per_run(|traffic| traffic.round_trips),
            bytes_per_run: per_run(|traffic| traffic.bytes),
            cost_ratio: measured.cost_ratio.map(round),
            lateness_p50_ms: lateness.map(|lateness| percentile_ms(&lateness.late_us, 50.0)),
            lateness_p99_ms: lateness.map(|lateness| percentile_ms(&lateness.late_us, 99.0)),
            early: lateness.map(|lateness| lateness.early),
        }
    }

    /// One line of JSON.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("numbers and texts have a JSON form")
    }

    /// One line of the table.
    pub fn to_table_row(&self) -> String {
        let mut row = format!(
            "{:<9} {:>7} {:>11.0} {:>11.0} {:>9.2} {:>9.2} {:>7.1} {:>8.0} {:>6}",
            self.workload,
            self.concurrency,
            self.runs_per_s,
            self.steps_per_s,
            self.p50_ms,
            self.p99_ms,
            self.cpu_s,
            self.rss_mb,
            self.errors,
        );
        if let (Some(commits), Some(round_trips), Some(bytes)) =
            (self.commits_per_run, self.round_trips_per_run, self.bytes_per_run)
        {
            row.push_str(&format!(
                "  a run: {commits:.3} commits, {round_trips:.3} round trips, {bytes:.0} bytes"
            ));
        }
        if let Some(ratio) = self.cost_ratio {
            row.push_str(&format!("  cost ratio {ratio:.2}"));
        }
        if let (Some(p50_ms), Some(p99_ms), Some(early)) =
            (self.lateness_p50_ms, self.lateness_p99_ms, self.early)
        {
            row.push_str(&format!("  late by p50 {p50_ms:.1} ms, p99 {p99_ms:.1} ms; {early} early"));
        }
        row
    }
}

/// The first line of the table.
pub fn table_header() -> String {
    format!(
        "{:<9} {:>7} {:>11} {:>11} {:>9} {:>9} {:>7} {:>8} {:>6}",
        "workload", "clients", "runs/s", "steps/s", "p50 ms", "p99 ms", "cpu s", "rss MB", "errors"
    )
}

/// A percentile of a histogram of microseconds, in milliseconds.
pub fn percentile_ms(histogram_us: &Histogram<u64>, percentile: f64) -> f64 {
    round(histogram_us.value_at_percentile(percentile) as f64 / 1_000.0)
}

/// Three digits after the point are more than any of these figures is good for.
fn round(figure: f64) -> f64 {
    (figure * 1_000.0).round() / 1_000.0
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::nodes::Spent;
    use crate::workload::{Lateness, new_histogram};

    fn measured() -> Measured {
        let mut latency_us = new_histogram();
        for us in 1..=1_000 {
            latency_us.record(us).unwrap();
        }
        Measured {
            concurrency: 8,
            runs: 30,
            steps: 150,
            elapsed: Duration::from_secs(2),
            latency_us,
            errors: 0,
            spent: Spent { cpu_s: 1.5, traffic: None },
            cost_ratio: None,
            lateness: None,
        }
    }

    #[test]
    fn rates_are_per_second_and_percentiles_in_milliseconds() {
        let json = Report::new("sequence", "memory:".to_owned(), measured(), 12.0).to_json();
        assert_eq!(
            json,
            r#"{"workload":"sequence","store":"memory:","concurrency":8,"runs_per_s":15.0,"steps_per_s":75.0,"p50_ms":0.5,"p99_ms":0.99,"cpu_s":1.5,"rss_mb":12.0,"errors":0}"#
        );
    }

    #[test]
    fn a_database_shows_what_a_run_costs_it() {
        let traffic = Traffic { commits: 60, round_trips: 75, bytes: 30_000 };
        let measured = Measured { spent: Spent { cpu_s: 1.5, traffic: Some(traffic) }, ..measured() };
        let report = Report::new("hello", "postgres://".to_owned(), measured, 12.0);
        let json = report.to_json();
        assert!(
            json.ends_with(r#""commits_per_run":2.0,"round_trips_per_run":2.5,"bytes_per_run":1000.0}"#),
            "{json}"
        );
        let row = report.to_table_row();
        assert!(row.ends_with("  a run: 2.000 commits, 2.500 round trips, 1000 bytes"), "{row}");
    }

    #[test]
    fn what_only_some_workloads_have_comes_last() {
        let mut late_us = new_histogram();
        late_us.record(2_000).unwrap();
        let measured =
            Measured { cost_ratio: Some(1.2), lateness: Some(Lateness { late_us, early: 0 }), ..measured() };
        let report = Report::new("timers", "memory:".to_owned(), measured, 12.0);
        let json = report.to_json();
        assert!(json.contains(r#""cost_ratio":1.2,"lateness_p50_ms":2.0"#), "{json}");
        let row = report.to_table_row();
        assert!(row.ends_with("cost ratio 1.20  late by p50 2.0 ms, p99 2.0 ms; 0 early"), "{row}");
    }
}

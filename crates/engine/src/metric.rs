//! What is known of a metric besides its numbers: its kind, labels, buckets and a line of help, for exporters.

/// One metric. Every crate that measures has a list of them; [`telemetry::METRICS`](crate::telemetry::METRICS) is that of
/// this one.
#[derive(Debug, Clone, Copy)]
pub struct Metric {
    /// Its name.
    pub name: &'static str,
    /// What kind of numbers it has.
    pub kind: MetricKind,
    /// Its labels. The number of their values is bounded, always.
    pub labels: &'static [MetricLabel],
    /// What it counts or measures, in one line.
    pub help: &'static str,
}

/// What kind of numbers a metric has.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum MetricKind {
    /// A number that only grows.
    Counter,
    /// A number that goes up and down.
    Gauge,
    /// Numbers that are counted by size.
    Histogram {
        /// Upper bounds for exporters that need them: histograms of several nodes can be added up only if all have the same.
        buckets: &'static [f64],
    },
}

/// A label of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MetricLabel {
    /// Its name.
    pub name: &'static str,
    /// All values that it can have; empty where they depend on the program, such as names of routes.
    pub values: &'static [&'static str],
}

impl Metric {
    /// A counter.
    pub const fn counter(name: &'static str, labels: &'static [MetricLabel], help: &'static str) -> Self {
        Metric { name, kind: MetricKind::Counter, labels, help }
    }

    /// A gauge.
    pub const fn gauge(name: &'static str, labels: &'static [MetricLabel], help: &'static str) -> Self {
        Metric { name, kind: MetricKind::Gauge, labels, help }
    }

    /// A histogram.
    pub const fn histogram(name: &'static str, buckets: &'static [f64], help: &'static str) -> Self {
        Metric { name, kind: MetricKind::Histogram { buckets }, labels: &[], help }
    }

    /// The same with labels.
    #[must_use]
    pub const fn labelled(self, labels: &'static [MetricLabel]) -> Self {
        Metric { labels, ..self }
    }

    /// Gives the current recorder the line of help, and zeros for counters and histograms whose labels are known: a
    /// series that begins with its first event hides that event from rates. Gauges begin when something is known.
    pub fn announce(&self) {
        match self.kind {
            MetricKind::Counter => {
                metrics::describe_counter!(self.name, self.help);
                self.series()
                    .into_iter()
                    .for_each(|labels| metrics::counter!(self.name, labels).increment(0));
            }
            MetricKind::Gauge => metrics::describe_gauge!(self.name, self.help),
            MetricKind::Histogram { .. } => {
                metrics::describe_histogram!(self.name, self.help);
                self.series().into_iter().for_each(|labels| drop(metrics::histogram!(self.name, labels)));
            }
        }
    }

    /// The labels of every series that is known before anything happens.
    fn series(&self) -> Vec<Vec<metrics::Label>> {
        self.labels.iter().fold(vec![Vec::new()], |series, label| {
            let with = |labels: &Vec<metrics::Label>, value: &'static str| {
                let mut labels = labels.clone();
                labels.push(metrics::Label::from_static_parts(label.name, value));
                labels
            };
            series
                .iter()
                .flat_map(|labels| label.values.iter().map(move |value| with(labels, value)))
                .collect()
        })
    }
}

impl MetricLabel {
    /// A label with all of its values.
    pub const fn new(name: &'static str, values: &'static [&'static str]) -> Self {
        MetricLabel { name, values }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn series_are_all_combinations_of_labels_that_are_known() {
        const A: MetricLabel = MetricLabel::new("a", &["1", "2"]);
        const B: MetricLabel = MetricLabel::new("b", &["x", "y", "z"]);
        const OPEN: MetricLabel = MetricLabel::new("open", &[]);
        for (labels, count) in [(&[] as &'static [MetricLabel], 1), (&[A], 2), (&[A, B], 6), (&[A, OPEN], 0)]
        {
            assert_eq!(Metric::counter("n", labels, "help").series().len(), count);
        }
    }
}

//! The guide as doctests: what it shows compiles and runs, or the tests fail. The README uses the embedded store, so the
//! examples have it.

macro_rules! pages {
    ($($name:ident = $path:literal;)+) => { $(#[doc = include_str!($path)] struct $name;)+ };
}

pages! {
    FirstWorkflow = "../../../docs/guide/first-workflow.md";
    Orchestrations = "../../../docs/guide/orchestrations.md";
    Running = "../../../docs/guide/running.md";
    Workers = "../../../docs/guide/workers.md";
    Clients = "../../../docs/guide/client.md";
    Testing = "../../../docs/guide/testing.md";
    Observability = "../../../docs/guide/observability.md";
    HistoryFormat = "../../../docs/guide/history-format.md";
    ComingFrom = "../../../docs/guide/coming-from.md";
}

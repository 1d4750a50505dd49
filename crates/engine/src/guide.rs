//! The README and the guide as doctests: what they show compiles and runs, or the tests fail.

macro_rules! pages {
    ($($name:ident = $path:literal;)+) => { $(#[doc = include_str!($path)] struct $name;)+ };
}

pages! {
    Readme = "../../../README.md";
    FirstWorkflow = "../../../docs/guide/first-workflow.md";
    Orchestrations = "../../../docs/guide/orchestrations.md";
    Running = "../../../docs/guide/running.md";
    Clients = "../../../docs/guide/client.md";
    Testing = "../../../docs/guide/testing.md";
    Observability = "../../../docs/guide/observability.md";
    HistoryFormat = "../../../docs/guide/history-format.md";
    ComingFrom = "../../../docs/guide/coming-from.md";
}

//! Workloads that measure Segno.
fn main() {}

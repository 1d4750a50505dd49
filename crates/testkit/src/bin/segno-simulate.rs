//! Runs simulated worlds by seed: `segno-simulate --seeds 100000 [--from 0]`. A failure names its seed, which repeats it.

use std::process::ExitCode;

fn main() -> ExitCode {
    let (mut seeds, mut from) = (1_000_u64, 0_u64);
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        let value = arguments.next().and_then(|value| value.parse().ok());
        match (name.as_str(), value) {
            ("--seeds", Some(value)) => seeds = value,
            ("--from", Some(value)) => from = value,
            _ => {
                eprintln!("usage: segno-simulate [--seeds N] [--from SEED]");
                return ExitCode::from(2);
            }
        }
    }
    let (mut failed, mut events) = (0_u64, 0_usize);
    for seed in from..from.saturating_add(seeds) {
        match segno_testkit::simulation::simulate(seed) {
            Ok(report) => events += report.events,
            Err(problem) => {
                failed += 1;
                println!("{problem}");
            }
        }
    }
    eprintln!("{seeds} seeds from {from}: {failed} failed, {events} events");
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

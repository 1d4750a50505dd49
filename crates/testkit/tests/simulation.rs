//! Random programs on random nodes with random faults. A failure names its seed; `segno-simulate` repeats it.

use segno_testkit::simulation::simulate;

/// Worlds in the normal test run; `segno-simulate` makes more.
const SEEDS: u64 = 300;

#[test]
fn random_programs_end_as_the_oracle_says_whatever_happens_to_their_nodes() {
    let problems: Vec<String> = (0..SEEDS).filter_map(|seed| simulate(seed).err()).collect();
    let seeds: Vec<&str> = problems.iter().filter_map(|problem| problem.lines().next()).collect();
    assert!(problems.is_empty(), "{seeds:#?}\n{}", problems[0]);
}

#[test]
fn a_seed_gives_the_same_world_every_time() {
    for seed in [3, 11, 42, 77] {
        assert_eq!(simulate(seed), simulate(seed), "seed {seed}");
    }
}

#[test]
fn the_worlds_are_worth_simulating() {
    let events: usize = (0..20).filter_map(|seed| simulate(seed).ok()).map(|report| report.events).sum();
    assert!(events > 20 * 10, "only {events} events in 20 worlds");
}

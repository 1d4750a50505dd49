use super::*;

fn definitions() -> BTreeMap<String, Partitions> {
    let windows = |window, timezone: &str, first: &str, last: Option<&str>| Partitions::Windows {
        window,
        timezone: timezone.to_owned(),
        first: first.to_owned(),
        last: last.map(str::to_owned),
    };
    let keys = |keys: &[&str]| Partitions::Keys { values: keys.iter().map(|&key| key.to_owned()).collect() };
    let grid =
        |first: &str, second: &str| Partitions::Grid { dimensions: [first, second].map(str::to_owned) };
    BTreeMap::from([
        ("day".to_owned(), windows(WindowSize::Daily, "Europe/Berlin", "2026-01-15", None)),
        ("hour".to_owned(), windows(WindowSize::Hourly, "Europe/Berlin", "2026-01-01T00:00+01:00", None)),
        ("quarter".to_owned(), windows(WindowSize::Monthly, "UTC", "2026-01", Some("2026-03"))),
        ("region".to_owned(), keys(&["eu", "us", "ap"])),
        ("day-region".to_owned(), grid("day", "region")),
    ])
}

fn set(name: &str) -> PartitionSet {
    PartitionSet::compile(&definitions()[name], &definitions(), &Zones::bundled()).unwrap()
}

fn problem<T: std::fmt::Debug>(outcome: Result<T, PartitionError>) -> String {
    outcome.unwrap_err().problem().to_owned()
}

#[test]
fn ranges_have_both_their_ends() {
    for (name, range, count, first, last) in [
        ("day", "2026-01-15..2026-01-30", 16, "2026-01-15", "2026-01-30"),
        ("day", "2026-03-28..2026-03-31", 4, "2026-03-28", "2026-03-31"),
        ("day", "2026-02-01", 1, "2026-02-01", "2026-02-01"),
        // A longer window as an end; what is before the first partition is left out.
        ("day", "2026-01..2026-02", 17 + 28, "2026-01-15", "2026-02-28"),
        ("day", "2026-W05", 7, "2026-01-26", "2026-02-01"),
        ("hour", "2026-03-29", 23, "2026-03-29T00:00+01:00", "2026-03-29T23:00+02:00"),
        ("hour", "2026-10-25", 25, "2026-10-25T00:00+02:00", "2026-10-25T23:00+01:00"),
        (
            "hour",
            "2026-10-25T02:00+02:00..2026-10-25T02:00+01:00",
            2,
            "2026-10-25T02:00+02:00",
            "2026-10-25T02:00+01:00",
        ),
        ("quarter", "*", 3, "2026-01", "2026-03"),
        ("region", "*", 3, "eu", "ap"),
        ("region", "us..ap", 2, "us", "ap"),
        ("day-region", "2026-01-15..2026-01-16|*", 6, "2026-01-15|eu", "2026-01-16|ap"),
        ("day-region", "2026-01-15|us", 1, "2026-01-15|us", "2026-01-15|us"),
    ] {
        let keys = set(name).range(range).unwrap();
        assert_eq!(
            (keys.len(), keys[0].as_str(), keys[count - 1].as_str()),
            (count, first, last),
            "{name} {range}"
        );
        keys.iter().for_each(|key| set(name).check(key).unwrap());
    }
}

#[test]
fn ranges_that_are_none_are_refused() {
    for (name, range, says) in [
        ("day", "2026-01-20..2026-01-16", "ends before it begins"),
        ("day", "2026-01-01..2026-01-20", "before the first, \"2026-01-15\""),
        ("day", "2025-01..2025-02", "no partition in"),
        ("day", "*", "no last one"),
        ("day", "2026-01-20T00:00+01:00", "is not a partition key"),
        ("day", "", "is not a partition key"),
        ("day", "2026-01-20..9999-12-31", "the calendar, whose last year is 9999"),
        ("quarter", "2026-03..2026-04", "after the last"),
        ("region", "ap..eu", "ends before it begins"),
        ("region", "ue", "did you mean \"eu\" or \"us\"?"),
        ("region", "antarctica", "the first is \"eu\" and the last \"ap\""),
        ("day-region", "2026-01-15", "has not two dimensions; write the keys of day and region"),
        ("day-region", "2026-01-15|eu|us", "has not two dimensions"),
        ("hour", "2026-01..2040-01", "more than 100000 partitions"),
    ] {
        let problem = problem(set(name).range(range));
        assert!(problem.contains(says), "{name} {range}: {problem}");
    }
}

#[test]
fn the_latest_complete_window_has_ended() {
    for (name, at, key) in [
        ("day", "2026-03-29T21:59:59Z", Some("2026-03-28")),
        ("day", "2026-03-29T22:00:00Z", Some("2026-03-29")),
        ("day", "2026-01-15T22:59:59Z", None),
        ("day", "2026-01-15T23:00:00Z", Some("2026-01-15")),
        ("quarter", "2030-01-01T00:00:00Z", Some("2026-03")),
        ("region", "2030-01-01T00:00:00Z", None),
    ] {
        assert_eq!(set(name).latest_complete(at.parse().unwrap()).as_deref(), key, "{name} {at}");
    }
}

#[test]
fn templates_know_the_key_and_its_window() {
    let names = set("day-region").names("2026-03-29|us").unwrap();
    let expected = json!({
        "key": "2026-03-29|us", "start": "2026-03-28T23:00:00Z", "end": "2026-03-29T22:00:00Z",
        "keys": { "day": "2026-03-29", "region": "us" },
    });
    assert_eq!(names, expected);
    assert_eq!(set("region").names("us").unwrap(), json!({ "key": "us" }));
}

#[test]
fn definitions_that_cannot_be_used_are_refused() {
    let compile = |definition: Partitions| {
        problem(PartitionSet::compile(&definition, &definitions(), &Zones::bundled()))
    };
    let windows = |timezone: &str, first: &str, last: Option<&str>| Partitions::Windows {
        window: WindowSize::Daily,
        timezone: timezone.to_owned(),
        first: first.to_owned(),
        last: last.map(str::to_owned),
    };
    let keys = |keys: &[&str]| Partitions::Keys { values: keys.iter().map(|&key| key.to_owned()).collect() };
    let grid =
        |first: &str, second: &str| Partitions::Grid { dimensions: [first, second].map(str::to_owned) };
    for (definition, says) in [
        (windows("Europe/Berln", "2026-01-01", None), "did you mean \"Europe/Berlin\"?"),
        (windows("UTC", "January", None), "write it as 2026-03-29"),
        (windows("UTC", "2026-01-02", Some("2026-01-01")), "is before the first"),
        (keys(&[]), "expected 1 to 10000 partition keys, found 0"),
        (keys(&["a|b"]), "cannot be a partition key"),
        (keys(&["a..b"]), "cannot be a partition key"),
        (keys(&["*"]), "cannot be a partition key"),
        (keys(&[" a"]), "cannot be a partition key"),
        (keys(&["a", "a"]), "given twice"),
        (grid("day", "regoin"), "there are no partitions \"regoin\"; did you mean \"region\"?"),
        (grid("day", "day"), "the two dimensions are the same"),
        (grid("day", "day-region"), "has two dimensions itself"),
    ] {
        let problem = compile(definition.clone());
        assert!(problem.contains(says), "{definition:?}: {problem}");
    }
}

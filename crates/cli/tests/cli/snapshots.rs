//! What people see: the help of every verb, and a session with a server, word for word.
//!
//! `UPDATE_EXPECT=1 cargo nextest run -p segno-cli --test cli snapshots` takes over what is printed now; read the difference
//! before you commit it.

use std::fmt::Write;

use crate::process::{Process, segno};
use expect_test::expect_file;
use tempfile::TempDir;

/// The help of a verb and of all verbs below it.
fn help(verb: &[String], page: &mut String) {
    let output = segno().args(verb).arg("--help").env("COLUMNS", "100").output().unwrap();
    assert!(output.status.success(), "{verb:?}: {}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    writeln!(page, "$ segno {}\n{text}", [verb, &["--help".to_owned()]].concat().join(" ")).unwrap();
    let commands = text.lines().skip_while(|line| *line != "Commands:").skip(1);
    let names = commands.take_while(|line| !line.is_empty()).filter_map(|line| {
        let name = line.strip_prefix("  ").filter(|rest| !rest.starts_with(' '))?;
        name.split_whitespace().next().filter(|name| *name != "help")
    });
    for name in names {
        help(&[verb, &[name.to_owned()]].concat(), page);
    }
}

#[test]
fn the_help_of_every_verb() {
    let mut page = String::new();
    help(&[], &mut page);
    expect_file!["snapshots/help.txt"].assert_eq(&page);
}

#[test]
fn the_guide_lists_every_verb() {
    let guide = include_str!("../../../../docs/guide/cli.md");
    let mut listed = Vec::new();
    for row in guide.lines().filter_map(|line| line.strip_prefix("| `")) {
        let mut group = "";
        for name in row.split(" |").next().unwrap().split(',') {
            let name = name.trim().trim_matches('`');
            // `keys create`, `list` are two verbs of one group.
            let verb = match name.split_once(' ') {
                Some((first, verb)) => {
                    group = first;
                    verb
                }
                None => name,
            };
            listed.push(format!("{group} {verb}").trim().to_owned());
        }
    }
    let all = include_str!("snapshots/help.txt").lines().filter_map(|line| line.strip_prefix("$ segno "));
    let all: Vec<&str> = all.filter_map(|line| line.strip_suffix(" --help")).collect();
    assert!(all.len() > 150, "{all:?}");
    for verb in &all {
        let is_group = all.iter().any(|other| other.starts_with(&format!("{verb} ")));
        let is_listed = listed.iter().any(|known| {
            known == verb || known.strip_suffix(" …").is_some_and(|group| verb.starts_with(group))
        });
        // Verbs of three words are those of `bench sql`.
        assert!(is_group || is_listed || verb.split(' ').count() > 2, "`segno {verb}` is not in cli.md");
    }
}

/// Replaces what differs from run to run: ids, times and addresses, each by as many signs.
fn settled(text: &str, address: &str) -> String {
    let mut settled = String::new();
    for line in text.replace(address, "http://SERVER").lines() {
        let words: Vec<String> = line.split(' ').map(settle_word).collect();
        writeln!(settled, "{}", words.join(" ").trim_end()).unwrap();
    }
    settled
}

fn settle_word(word: &str) -> String {
    let is_digit = |place: usize| word.as_bytes().get(place).is_some_and(u8::is_ascii_digit);
    let has = |place: usize, sign: u8| word.as_bytes().get(place) == Some(&sign);
    let is_id = word.len() == 36 && [8, 13, 18, 23].iter().all(|place| has(*place, b'-'));
    let is_date = word.len() == 10 && is_digit(0) && has(4, b'-') && has(7, b'-');
    let is_time = word.len() >= 8 && is_digit(0) && has(2, b':') && has(5, b':');
    let is_both = word.len() >= 20 && is_digit(0) && has(4, b'-') && has(10, b'T');
    if is_id || is_date || is_time || is_both {
        return word.chars().map(|sign| if sign.is_ascii_alphanumeric() { 'x' } else { sign }).collect();
    }
    word.to_owned()
}

#[test]
fn a_session() {
    let directory = TempDir::new().unwrap();
    let server = Process::dev(directory.path());
    let mut page = String::new();
    for line in [
        "start greet --id ada --input {\"name\":\"Ada\"} --wait",
        "list",
        "list --status failed",
        "show nobody",
        "start nothing --id x --on-conflict maybe",
        "functions list",
        "functions show echo",
        "functions put Notify {}",
        "functions put notify {\"executor\":\"http\",\"url\":\"http://127.0.0.1\"}",
        "invoke echo --input [1] --call-key k",
        "invoke echo --input [1",
        "invoke nothing",
        "workers",
        "queues",
        "hook create demo --function echo --verify none",
        "hook create demo --function echo --verify none",
        "hook list",
        "hook create other --function echo",
        "action add later --function echo --input 1 --at 2100-01-01T00:00:00Z",
        "action list --status pending",
        "action add bad --function echo --at yesterday",
        "recurring create --cron 0,9 --function echo",
        "recurring create --cron 0_0_30_2_* --function echo",
        "recurring create --every 1h --function nothing",
        "bulk cancel --status running --dry-run",
        "sql SELECT_id,_status,_labels_FROM_instances_WHERE_orchestration_=_'greet'",
        "sql SELECT_1_AS_one,_'a,b'_AS_two,_NULL_AS_three --csv",
        "sql SELECT_1_AS_one,_'a'_AS_two -o json",
        "sql SELECT_1_AS_one -o jsonl",
        "sql DELETE_FROM_instances",
        "sql SELECT_nope_FROM_instances",
        "sql --query nothing",
        "sql --query busiest-tenants",
        "sql WITH_RECURSIVE_n(i)_AS_(SELECT_1_UNION_ALL_SELECT_i_+_1_FROM_n)_SELECT_count(*)_FROM_n --timeout 1s",
    ] {
        // Words that have spaces in them are written with underscores.
        let words: Vec<String> = line.split(' ').map(|word| word.replace('_', " ")).collect();
        let output = server.run(&words.iter().map(String::as_str).collect::<Vec<_>>());
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        writeln!(page, "$ segno {}", words.join(" ")).unwrap();
        page.push_str(&settled(&out, &server.address));
        for line in settled(&err, &server.address).lines() {
            writeln!(page, "{}", format!("! {line}").trim_end()).unwrap();
        }
        if let Some(code) = output.status.code().filter(|code| *code != 0) {
            writeln!(page, "= {code}").unwrap();
        }
        page.push('\n');
    }
    expect_file!["snapshots/session.txt"].assert_eq(&page);
}

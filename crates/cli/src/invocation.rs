//! The arguments of the process, read: global flags at any place, and mistakes told in the format that was asked for.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{ArgMatches, Args as _, CommandFactory, FromArgMatches};

use crate::arguments::Arguments;
use crate::exit::Failure;
use crate::output::{CommandLine, Format, Output};
use crate::remote::connection::Connection;
use crate::wording::Wording;

/// Verbs that talk to no server, and the flags of servers that they know all the same.
const WITHOUT_SERVER: &[(&str, &[&str])] = &[
    ("dev", &[]),
    ("serve", &[]),
    ("config", &[]),
    ("runbook check", &[]),
    ("runbook plan", &[]),
    ("dag check", &[]),
    ("dag plan", &[]),
    ("dag test", &[]),
    ("ledger", &[]),
    ("store", &[]),
    ("selftest", &[]),
    ("version", &[]),
    ("completions", &[]),
    ("bench http", &["server", "key"]),
    ("bench sql query", &["server", "key"]),
    ("bench", &[]),
];

/// What the process was told to do.
pub struct Invocation {
    /// The arguments.
    pub arguments: Arguments,
    /// How to print.
    pub output: Output,
    /// The words of the verb.
    pub wording: Wording,
}

/// All verbs and flags.
pub fn command(program: &'static str) -> clap::Command {
    let mut command = Arguments::command().name(program);
    // Global flags are known to every verb; those that talk to no server do not show them, and refuse them below.
    for (verbs, _) in WITHOUT_SERVER.iter().filter(|(_, known)| known.is_empty()) {
        command = hide_flags(command, &verbs.split(' ').collect::<Vec<_>>());
    }
    command
}

/// Hides the flags of servers in the help of a verb.
fn hide_flags(command: clap::Command, verbs: &[&str]) -> clap::Command {
    match verbs.split_first() {
        Some((verb, rest)) => command.mut_subcommand(verb, |command| hide_flags(command, rest)),
        None => {
            let flags = Connection::augment_args(clap::Command::new("flags"));
            command.args(flags.get_arguments().map(|flag| flag.clone().hide(true)).collect::<Vec<_>>())
        }
    }
}

impl Invocation {
    /// Reads the arguments; help and mistakes are printed, and give an exit code.
    pub fn read(program: &'static str, arguments: Vec<OsString>) -> Result<Self, ExitCode> {
        let given: Vec<String> =
            arguments.iter().skip(1).map(|argument| argument.to_string_lossy().into_owned()).collect();
        let format = Format::of_unparsed(&given);
        let mut command = command(program);
        let wrong = |error: clap::Error| {
            let wording = Wording { program: program.to_owned(), ..Wording::default() };
            if !(error.use_stderr() && format.is_for_programs()) {
                error.exit();
            }
            let failure = Failure::Refused(sentence(&error));
            eprintln!("{}", failure.report(&wording, format));
            ExitCode::from(failure.exit_code())
        };
        let matches = command
            .try_get_matches_from_mut(arguments.clone())
            .map_err(|error| wrong(as_typed(error, program, arguments)))?;
        let wording = words(program, &command, &matches);
        let arguments = Arguments::from_arg_matches(&matches).map_err(wrong)?;
        if let Err(failure) = without_server(&wording, &matches).and_then(|()| one_place(&wording)) {
            eprintln!("{}", failure.report(&wording, format));
            return Err(ExitCode::from(failure.exit_code()));
        }
        let output = arguments.printing.output(CommandLine::new(program, given));
        Ok(Invocation { arguments, output, wording })
    }
}

/// The same mistake without what the environment sets, because a usage line shows that as something to be typed.
fn as_typed(error: clap::Error, program: &'static str, arguments: Vec<OsString>) -> clap::Error {
    if !error.use_stderr() {
        return error;
    }
    // A verb that needs another one shows its help, which the environment would prevent.
    let is_same = |typed: &clap::Error| {
        [error.kind(), ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand].contains(&typed.kind())
    };
    let typed = without_environment(command(program)).try_get_matches_from(arguments).err();
    typed.filter(is_same).unwrap_or(error)
}

fn without_environment(command: clap::Command) -> clap::Command {
    let without = |flag: clap::Arg| flag.env(None::<&'static str>);
    command.mut_args(without).mut_subcommands(without_environment)
}

/// A mistake in one sentence, without the advice to look at the help.
fn sentence(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let text = text.split("\n\nUsage:").next().unwrap_or_default();
    let text = text.split("\n\nFor more information").next().unwrap_or_default();
    let text = text.strip_prefix("error: ").unwrap_or(text);
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The verb, its flags, and those that were given.
fn words(program: &str, command: &clap::Command, matches: &ArgMatches) -> Wording {
    let (mut command, mut matches) = (command, matches);
    let mut verbs = Vec::new();
    while let Some((verb, below)) = matches.subcommand() {
        verbs.push(verb.to_owned());
        let Some(found) = command.find_subcommand(verb) else { break };
        (command, matches) = (found, below);
    }
    let long = |flag: &clap::Arg| flag.get_long().map(str::to_owned);
    let is_given = |flag: &&clap::Arg| was_given(matches, flag.get_id().as_str());
    let flags: BTreeSet<String> = command.get_arguments().filter_map(long).collect();
    let given = command.get_arguments().filter(is_given).filter_map(long).collect();
    Wording { program: program.to_owned(), verbs: verbs.join(" "), flags, given }
}

fn was_given(matches: &ArgMatches, id: &str) -> bool {
    let is_known = matches.try_contains_id(id).is_ok();
    is_known && matches.value_source(id) == Some(ValueSource::CommandLine)
}

/// Refuses flags of servers where they would do nothing.
fn without_server(wording: &Wording, matches: &ArgMatches) -> Result<(), Failure> {
    let verbs = &wording.verbs;
    let is_it = |verb: &str| verbs == verb || verbs.starts_with(&format!("{verb} "));
    let Some((_, known)) = WITHOUT_SERVER.iter().find(|(verb, _)| is_it(verb)) else { return Ok(()) };
    let flags = Connection::augment_args(clap::Command::new("flags"));
    let mut given = flags.get_arguments().filter(|flag| was_given(matches, flag.get_id().as_str()));
    match given.find(|flag| !known.contains(&flag.get_id().as_str())) {
        Some(flag) => {
            let (program, flag) = (&wording.program, flag.get_id());
            Err(Failure::Refused(format!("`{program} {verbs}` talks to no server; leave --{flag} out")))
        }
        None => Ok(()),
    }
}

/// Keys are on a server or in a store. A flag wins over the environment, so only flags are in conflict.
fn one_place(wording: &Wording) -> Result<(), Failure> {
    let has_both = ["server", "store"].iter().all(|flag| wording.given.contains(*flag));
    if wording.verbs.starts_with("keys") && has_both {
        let problem = "--store and --server cannot be used together: keys are on one or the other";
        return Err(Failure::Refused(problem.to_owned()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Words that need a noun before them, and within how many first words they have none.
    const PRONOUNS: &[(&str, usize)] = &[("it", 4), ("them", 4), ("they", 4), ("its", 2), ("their", 2)];

    /// Every verb with the verbs before it, by all its names.
    fn paths(command: &clap::Command, before: &[String], found: &mut Vec<Vec<String>>) {
        for verb in command.get_subcommands().filter(|verb| verb.get_name() != "help") {
            for name in std::iter::once(verb.get_name()).chain(verb.get_visible_aliases()) {
                let path = [before, &[name.to_owned()]].concat();
                found.push(path.clone());
                paths(verb, &path, found);
            }
        }
    }

    /// A flag of a verb that has the name of a global one would take its value, also from the environment.
    fn check_names(command: &clap::Command, path: &str, global: &BTreeSet<String>) {
        let mut global = global.clone();
        let names = |flag: &clap::Arg| [Some(flag.get_id().to_string()), flag.get_long().map(str::to_owned)];
        let (of_all, own): (Vec<_>, Vec<_>) = command.get_arguments().partition(|flag| flag.is_global_set());
        global.extend(of_all.into_iter().flat_map(names).flatten());
        // Benchmarks have those of the server that they measure, which mean the same.
        let own = own.into_iter().filter(|_| !path.starts_with("segno bench"));
        for name in own.flat_map(names).flatten() {
            assert!(!global.contains(&name), "{path} --{name} is a flag of all verbs as well");
        }
        for verb in command.get_subcommands() {
            check_names(verb, &format!("{path} {}", verb.get_name()), &global);
        }
    }

    #[test]
    fn no_flag_of_a_verb_hides_one_of_all_verbs() {
        check_names(&command("segno"), "segno", &BTreeSet::new());
    }

    #[test]
    fn the_help_of_every_verb_is_found() {
        let mut found = Vec::new();
        paths(&command("segno"), &[], &mut found);
        assert!(found.iter().any(|path| path.join(" ") == "bulk cancel"));
        for path in found {
            let words = ["segno", "help"].into_iter().map(str::to_owned).chain(path.iter().cloned());
            let error = command("segno").try_get_matches_from(words).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::DisplayHelp, "help {}", path.join(" "));
        }
    }

    #[test]
    fn only_verbs_that_talk_to_a_server_take_its_address() {
        let read = |words: &str| {
            let mut command = command("segno");
            let words =
                ["segno"].into_iter().chain(words.split(' ')).chain(["--server", "http://127.0.0.1:1"]);
            let matches = command.try_get_matches_from_mut(words).unwrap();
            without_server(&self::words("segno", &command, &matches), &matches).is_ok()
        };
        for (words, is_taken) in [
            ("list", true),
            ("bench http get", true),
            ("bench sql query", true),
            ("bench sql fill --store memory:", false),
            ("bench run hello", false),
            ("version", false),
        ] {
            assert_eq!(read(words), is_taken, "{words}");
        }
    }

    /// The texts about a verb, its flags and their values.
    fn texts(command: &clap::Command, found: &mut Vec<(String, String)>) {
        let name = command.get_name().to_owned();
        found.extend(command.get_about().map(|about| (name.clone(), about.to_string())));
        for flag in command.get_arguments() {
            let place = format!("{name} {}", flag.get_id());
            found.extend(flag.get_help().map(|help| (place.clone(), help.to_string())));
            for value in flag.get_possible_values() {
                let place = format!("{place} {}", value.get_name());
                found.extend(value.get_help().map(|help| (place, help.to_string())));
            }
        }
        command.get_subcommands().for_each(|verb| texts(verb, found));
    }

    #[test]
    fn help_texts_name_what_they_are_about() {
        let mut found = Vec::new();
        texts(&command("segno"), &mut found);
        assert!(found.len() > 300, "found only {}", found.len());
        let is_vague = |text: &str| {
            let clause = text.split(['.', ';', ':', ',']).next().unwrap_or_default().to_lowercase();
            let words: Vec<&str> = clause.split_whitespace().collect();
            let is_early =
                |(pronoun, within): &(&str, usize)| words.iter().take(*within).any(|word| word == pronoun);
            text == "For people" || PRONOUNS.iter().any(is_early)
        };
        let vague: Vec<&(String, String)> = found.iter().filter(|(_, text)| is_vague(text)).collect();
        assert!(vague.is_empty(), "these need a noun: {vague:#?}");
    }
}

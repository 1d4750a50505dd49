//! The house rules that a compiler does not check: who may use whom, pages for codes, lengths of files, links.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests; clippy knows only the tests themselves"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Longest file in lines, up to its tests.
const MAX_FILE_LINES: usize = 600;

/// Files that are longer for a reason, with a length of their own.
const LONGER_FILES: &[(&str, usize)] = &[
    // One list of all cases.
    ("crates/testkit/src/conformance/list.rs", 900),
];

/// Our packages and which of ours each may use. Tests of any may use the testkit as well; tests of rooms may
/// open whole stores.
const MAY_USE: &[(&str, &[&str])] = &[
    ("segno", &[]),
    ("segno-api", &[]),
    ("segno-embedded", &["segno"]),
    ("segno-postgres", &["segno"]),
    ("segno-actions", &["segno"]),
    ("segno-runbook", &["segno", "segno-actions"]),
    ("segno-bus-amqp", &["segno", "segno-runbook"]),
    ("segno-ledger", &["segno", "segno-actions"]),
    (
        "segno-server",
        &[
            "segno",
            "segno-actions",
            "segno-api",
            "segno-embedded",
            "segno-ledger",
            "segno-postgres",
            "segno-runbook",
            "segno-stores",
            "segno-web",
        ],
    ),
    ("segno-web", &[]),
    ("segno-stores", &["segno", "segno-embedded", "segno-postgres"]),
    // Runbooks and DAGs are checked and planned without a server.
    (
        "segno-cli",
        &[
            "segno",
            "segno-api",
            "segno-bench",
            "segno-bus-amqp",
            "segno-ledger",
            "segno-runbook",
            "segno-server",
            "segno-stores",
        ],
    ),
    ("segno-testkit", &["segno"]),
    (
        "segno-bench",
        &[
            "segno",
            "segno-actions",
            "segno-embedded",
            "segno-ledger",
            "segno-postgres",
            "segno-runbook",
            "segno-stores",
            "segno-testkit",
        ],
    ),
    ("segno-examples", &["segno", "segno-embedded", "segno-testkit"]),
    ("segno-shop", &["segno", "segno-cli"]),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the examples live in the workspace").to_owned()
}

fn read(path: impl AsRef<Path>) -> String {
    let path = root().join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Files with an extension below a directory, as paths from the root, sorted.
fn files(directory: &str, extension: &str) -> Vec<String> {
    fn walk(directory: &Path, extension: &str, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if path.is_dir() && name != "target" && name != "node_modules" && !name.starts_with('.') {
                walk(&path, extension, found);
            } else if path.extension().is_some_and(|found| found == extension) {
                found.push(path);
            }
        }
    }
    let mut found = Vec::new();
    walk(&root().join(directory), extension, &mut found);
    found.sort();
    found.iter().map(|path| path.strip_prefix(root()).unwrap().to_string_lossy().into_owned()).collect()
}

fn sources() -> Vec<String> {
    ["crates", "examples"].into_iter().flat_map(|directory| files(directory, "rs")).collect()
}

/// The part of a file that comes before its tests.
fn before_tests(text: &str) -> &str {
    text.split("\n#[cfg(test)]").next().unwrap_or(text)
}

/// Texts between a needle and the next double quote, as in `const NAME: &str = "…"`.
fn quoted_after<'a>(text: &'a str, needle: &str) -> Vec<&'a str> {
    let parts = text.split(needle).skip(1);
    parts.filter_map(|part| part.trim_start().strip_prefix('"')?.split('"').next()).collect()
}

/// The dependencies of a manifest: the section they are in, and their package.
fn dependencies(manifest: &str) -> Vec<(String, String)> {
    let mut section = String::new();
    let mut found = Vec::new();
    for line in manifest.lines().map(str::trim) {
        if let Some(heading) = line.strip_prefix('[') {
            section = heading.trim_end_matches(']').to_owned();
            if let Some((kind, package)) = section.split_once("dependencies.") {
                found.push((format!("{kind}dependencies"), package.to_owned()));
            }
        } else if section.ends_with("dependencies") && !line.is_empty() && !line.starts_with('#') {
            let key = line.split(['.', ' ', '=']).next().unwrap_or_default();
            let package = quoted_after(line, "package =").first().copied().unwrap_or(key);
            found.push((section.clone(), package.to_owned()));
        }
    }
    found
}

#[test]
fn crates_use_only_what_the_design_allows() {
    let allowed: BTreeMap<&str, &[&str]> = MAY_USE.iter().copied().collect();
    let manifests: Vec<String> =
        files("", "toml").into_iter().filter(|file| file.ends_with("/Cargo.toml")).collect();
    assert!(manifests.len() >= 4, "found only {manifests:?}");
    for manifest in manifests {
        let text = read(&manifest);
        let name = quoted_after(&text, "name =").first().copied().unwrap_or_default();
        let may_use = allowed.get(name).unwrap_or_else(|| {
            panic!("{name} is new: say in MAY_USE and in ARCHITECTURE.md what it may use")
        });
        for (section, used) in dependencies(&text) {
            let opens_stores = used == "segno-stores" && name == "segno-runbook";
            let for_tests =
                section.ends_with("dev-dependencies") && (used == "segno-testkit" || opens_stores);
            let ours = allowed.contains_key(used.as_str());
            assert!(!ours || for_tests || may_use.contains(&used.as_str()), "{name} may not use {used}");
        }
    }
}

#[test]
fn a_forbidden_dependency_is_found_in_whatever_form() {
    let manifest = "[package]\nname = \"x\"\n[dependencies]\na.workspace = true\nb = \"1\"\n\n[dev-dependencies]\n\
                    c = { package = \"d\", version = \"1\" }\n[target.'cfg(unix)'.dependencies.e]\npath = \"e\"\n";
    let packages: Vec<String> = dependencies(manifest).into_iter().map(|(_, package)| package).collect();
    assert_eq!(packages, ["a", "b", "d", "e"]);
}

#[test]
fn every_code_has_a_page_and_every_page_a_code() {
    let mut codes: BTreeSet<String> = segno::Code::ALL.iter().map(|code| code.as_str().to_owned()).collect();
    let with_errors = ["crates/actions/src", "crates/ledger/src", "crates/runbook/src"];
    let sources = with_errors.into_iter().flat_map(|directory| files(directory, "rs"));
    for file in sources.filter(|file| file.ends_with("/error.rs")) {
        let text = read(&file);
        for before in ["=>", ": &str ="] {
            codes.extend(quoted_after(&text, before).into_iter().map(str::to_owned));
        }
    }
    let of_the_server = read("crates/server/src/problem.rs");
    let of_the_server = of_the_server.split("codes! {").nth(1).and_then(|rest| rest.split("\n}\n").next());
    for line in of_the_server.expect("the server has a list of codes").lines() {
        codes.extend(quoted_after(line, " =").first().map(|code| (*code).to_owned()));
    }
    let of_the_command_line = read("crates/cli/src/code.rs");
    let of_the_command_line = quoted_after(&of_the_command_line, "=>");
    assert!(of_the_command_line.contains(&"invalid-arguments"), "the command line has a list of codes");
    codes.extend(of_the_command_line.into_iter().map(str::to_owned));
    for file in files("crates/engine/src", "rs").into_iter().chain(files("crates/actions/src", "rs")) {
        let text = read(&file);
        for needle in ["Failure::configuration(", "Failure::timeout(", ".code("] {
            codes.extend(quoted_after(before_tests(&text), needle).into_iter().map(str::to_owned));
        }
    }
    let index = read("docs/errors/README.md");
    for code in &codes {
        assert!(root().join(format!("docs/errors/{code}.md")).exists(), "docs/errors/{code}.md is missing");
        assert!(
            index.contains(&format!("[`{code}`]({code}.md)")),
            "docs/errors/README.md does not list {code}"
        );
    }
    for page in files("docs/errors", "md") {
        let code = Path::new(&page).file_stem().unwrap().to_string_lossy().into_owned();
        assert!(code == "README" || codes.contains(&code), "{page} explains a code that nothing gives");
    }
}

/// Methods of the store traits that are made of others, and so are the same for every store.
const DERIVED_STORE_METHODS: [&str; 5] =
    ["delete_instance", "fetch_orchestration_item", "fetch_work_item", "get_instance_tree", "read_history"];

/// Names of the methods with a default body in the traits of a file.
fn methods_with_body(text: &str) -> Vec<String> {
    let (mut in_trait, mut method) = (false, String::new());
    let mut found = Vec::new();
    for line in before_tests(text).lines() {
        in_trait = (in_trait || line.starts_with("pub trait ")) && line != "}";
        let Some(line) = line.strip_prefix("    ").filter(|line| in_trait && !line.starts_with(' ')) else {
            continue;
        };
        if let Some(signature) = line.trim_start_matches("async ").strip_prefix("fn ") {
            method = signature.split(['(', '<']).next().unwrap_or_default().to_owned();
        }
        if line.ends_with('{') {
            found.push(method.clone());
        }
    }
    found
}

#[test]
fn stores_that_stand_before_others_hand_every_method_on() {
    // The compiler misses a method in `TrackedStore` or `FaultStore` only if that has a default body.
    let contract =
        files("crates/engine/src/store", "rs").into_iter().filter(|file| !file.contains("/memory/"));
    let mut found: Vec<String> = contract.flat_map(|file| methods_with_body(&read(file))).collect();
    found.sort();
    assert_eq!(found, DERIVED_STORE_METHODS, "give a method no default body unless it is made of others");
    for file in sources().iter().filter(|file| !file.starts_with("crates/engine/src/store/")) {
        let text = read(file);
        for method in DERIVED_STORE_METHODS {
            let is_own = ["\n        &self,", "&self"]
                .iter()
                .any(|rest| text.contains(&format!("    async fn {method}({rest}")));
            assert!(!is_own, "{file}: stores do not do {method} in their own way");
        }
    }
}

#[test]
fn methods_with_a_default_body_are_found_however_long_their_signature() {
    let text = "pub trait A: Send {\n    fn a(&self) -> u8;\n    fn b(&self) {\n        if true {}\n    }\n    \
                async fn c<T>(\n        &self,\n    ) -> u8 {\n    }\n    async fn d(\n        &self,\n    ) -> u8;\n}\n\
                fn e() {\n    match 1 {\n";
    assert_eq!(methods_with_body(text), ["b", "c"]);
}

#[test]
fn files_are_short() {
    let is_test = |file: &String| file.ends_with("_tests.rs") || file.contains("/tests/");
    let lengths: BTreeMap<String, usize> = sources()
        .into_iter()
        .filter(|file| !is_test(file))
        .map(|file| (file.clone(), before_tests(&read(&file)).lines().count()))
        .collect();
    let exceptions: BTreeMap<&str, usize> = LONGER_FILES.iter().copied().collect();
    for (file, lines) in &lengths {
        let limit = exceptions.get(file.as_str()).copied().unwrap_or(MAX_FILE_LINES);
        assert!(*lines <= limit, "{file} has {lines} lines before its tests, the limit is {limit}: split it");
    }
    for file in exceptions.keys() {
        let lines = lengths.get(*file).copied().unwrap_or_default();
        assert!(lines > MAX_FILE_LINES, "{file} is short enough now: take it out of LONGER_FILES");
    }
}

#[test]
fn nothing_is_left_unwritten() {
    // Put together here, so that this file does not find itself.
    let needles = [["to", "do!("].concat(), ["unimpl", "emented!("].concat()];
    for file in sources() {
        let text = read(&file);
        for needle in &needles {
            assert!(!text.contains(needle), "{file} has {needle}…)");
        }
    }
}

#[test]
fn metrics_limits_and_event_kinds_are_in_the_guide() {
    let metrics = read("docs/guide/observability.md");
    for name in quoted_after(&read("crates/engine/src/telemetry.rs"), ": &str =") {
        assert!(
            metrics.contains(&format!("`{name}`")),
            "docs/guide/observability.md does not describe {name}"
        );
    }
    let running = read("docs/guide/running.md");
    let limits = read("crates/engine/src/limits.rs");
    for part in limits.split("pub const ").skip(1) {
        let name = part.split(':').next().unwrap_or_default();
        assert!(running.contains(&format!("`{name}`")), "docs/guide/running.md does not list {name}");
    }
    let format = read("docs/guide/history-format.md");
    let events = read("crates/engine/src/event.rs");
    let kinds: Vec<&str> = events
        .lines()
        .filter(|line| line.trim().starts_with("EventKind::"))
        .flat_map(|line| quoted_after(line, "=>"))
        .collect();
    assert!(kinds.len() > 20, "found only {kinds:?}");
    for kind in kinds {
        assert!(
            format.contains(&format!("| `{kind}` |")),
            "docs/guide/history-format.md does not list {kind}"
        );
    }
}

#[test]
fn links_between_documents_lead_somewhere() {
    for file in files("", "md") {
        let text = read(&file);
        let directory = root().join(&file).parent().unwrap().to_owned();
        for target in text.split("](").skip(1).filter_map(|part| part.split(')').next()) {
            let path = target.split('#').next().unwrap_or_default();
            if path.is_empty() || path.contains("://") || path.contains(char::is_whitespace) {
                continue;
            }
            assert!(directory.join(path).exists(), "{file} links to {target}, which is not there");
        }
    }
}

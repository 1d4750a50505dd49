//! What a server says, in the words of the command line: flags in place of fields of requests, and verbs in place of routes.
//!
//! The server speaks to whatever calls its API. Its sentences are translated here and nowhere else.

use std::collections::BTreeSet;

use segno_api::{ClientError, Problem};

/// A sentence about requests, and what to type instead.
struct Sentence {
    said: &'static str,
    /// `{program}` is what the program is called.
    meant: &'static str,
    /// The verbs that it is for, by their beginning; empty for all.
    verbs: &'static str,
}

const fn sentence(said: &'static str, meant: &'static str) -> Sentence {
    Sentence { said, meant, verbs: "" }
}

const SENTENCES: &[Sentence] = &[
    sentence("call a function by POST /v1/invocations", "call a function with `{program} invoke`"),
    sentence(
        "set on_conflict to use_existing or replace",
        "pass --on-conflict use-existing or --on-conflict replace",
    ),
    sentence(
        "it is read with GET /v1/instances/{id}, its /history and /executions, and queries",
        "`{program} show`, `{program} history` and `{program} sql` read it",
    ),
    sentence("exists already; choose another new_id", "exists already; choose another one"),
    sentence("cancel it first, or use force", "cancel it first, or pass --force"),
    sentence("cancel it, or use force", "cancel it, or pass --force"),
    sentence(
        "repeat it with the same Idempotency-Key, or read its resource before you repeat it without one",
        "look whether it was done before you repeat it",
    ),
    sentence(
        "send the API key as \"Authorization: Bearer segno_…\"",
        "pass the API key with SEGNO_KEY, --key or a profile",
    ),
    sentence("; GET /docs lists them", "; the server may be of another version than this program"),
    sentence("`GET /v1/sql` lists tables", "`.tables` in `{program} sql` lists tables"),
    sentence("by POST /v1/batches/{id}/requests", "with `{program} batch` or `{program} member`"),
    sentence("take next_cursor of the page before", "take next_cursor of the list before"),
    sentence("as in [{\"env\": \"NAME\"}]", "as in --secret env:NAME"),
    sentence("or use function and input", "or use --function and --input"),
    sentence(
        "filter: is empty, and so are the ids; say which instances are meant, for all of them prefix \"\"",
        "no filter and no ids are given; pass --status, --label, --id or another one, for all instances --prefix ''",
    ),
    Sentence {
        said: "exists already; replace it, or choose another name",
        meant: "exists already; change it with `{program} hook update`, or choose another name",
        verbs: "hook",
    },
    // Here nothing is to be created.
    Sentence {
        said: "exists already in the configuration, which cannot be changed from here; choose another name",
        meant: "is declared in the settings or the code of the server; remove it there",
        verbs: "functions delete",
    },
];

/// Fields of requests whose flags have other names. The first flag that was given counts, else the first one.
const FIELDS: &[(&str, &[&str])] = &[
    ("cron_expr", &["cron"]),
    ("timezone", &["tz"]),
    ("next_tick_at", &["at"]),
    ("start_at", &["at"]),
    ("recurrence_secs", &["every"]),
    ("recurrence", &["every"]),
    ("provider", &["function", "provider"]),
    ("action_template.provider", &["function", "provider"]),
    ("payload", &["input", "payload"]),
    ("action_template.payload", &["input", "payload"]),
    ("labels", &["label"]),
    ("grants", &["grant"]),
    ("resumes_at", &["until"]),
    ("verification", &["verify"]),
    ("verification.secrets", &["secret"]),
    ("verification.header", &["secret-header"]),
    ("verification.tolerance", &["tolerance"]),
    ("dedup", &["dedup-header", "dedup-key"]),
    ("dedup.header", &["dedup-header"]),
    ("dedup.key", &["dedup-key"]),
    ("dedup.window", &["dedup-window"]),
    ("headers", &["keep-header"]),
    ("retry.attempts", &["attempts"]),
    ("timeout", &["attempt-timeout"]),
    ("key", &["call-key"]),
    ("batch_start_time", &["start"]),
    ("shipped", &["query"]),
    ("timeout_seconds", &["timeout"]),
];

/// Codes of problems whose `errors` are a list for people: the detail has the first one only.
const LISTED: &[&str] = &["invalid-dag", "invalid-members", "invalid-runbook"];

/// The words of one command.
#[derive(Debug, Clone, Default)]
pub struct Wording {
    /// What the program is called.
    pub program: String,
    /// The verbs, as in `functions delete`.
    pub verbs: String,
    /// The flags of the verb, without hyphens.
    pub flags: BTreeSet<String>,
    /// The flags that were given, without hyphens.
    pub given: BTreeSet<String>,
}

/// The code of a refusal: that of the innermost reason, which the detail ends with if it is not the problem's own.
pub fn code(error: &ClientError) -> Option<&str> {
    match error {
        ClientError::Problem(problem) => {
            Some(inner(&problem.detail).map_or(&*problem.code, |(_, code)| code))
        }
        _ => None,
    }
}

/// Address of the page about the code.
pub fn page(problem: &Problem) -> String {
    match (inner(&problem.detail), problem.page.rsplit_once('/')) {
        (Some((_, code)), Some((pages, _))) => format!("{pages}/{code}"),
        _ => problem.page.clone(),
    }
}

/// A text that ends with a code: the text and the code.
fn inner(detail: &str) -> Option<(&str, &str)> {
    let (text, code) = detail.strip_suffix(']')?.rsplit_once(" [")?;
    let is_code = !code.is_empty() && code.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-');
    is_code.then_some((text, code))
}

impl Wording {
    /// What went wrong and what to do about it, without the code.
    pub fn message(&self, error: &ClientError) -> String {
        match error {
            ClientError::Problem(problem) => self.problem(problem),
            error if error.is_certificate() => error.to_string(),
            error if error.is_connect() => format!(
                "{error}; is `{} dev` running? Name another server with --server or SEGNO_SERVER",
                self.program
            ),
            error => error.to_string(),
        }
    }

    fn problem(&self, problem: &Problem) -> String {
        if LISTED.contains(&&*problem.code) && problem.errors.len() > 1 {
            let lines: Vec<&str> = problem.errors.iter().map(|wrong| wrong.detail.as_str()).collect();
            let counted = problem.detail.split_once(": ").map_or("", |(counted, _)| counted);
            return format!("{counted}\n{}", lines.join("\n"));
        }
        let mut text = inner(&problem.detail).map_or(&*problem.detail, |(text, _)| text).to_owned();
        for wrong in &problem.errors {
            if let Some(rest) = text.strip_prefix(&format!("{}: ", wrong.field))
                && let Some(flag) = self.flag(&wrong.field)
            {
                text = format!("--{flag}: {rest}");
            }
        }
        for sentence in SENTENCES.iter().filter(|sentence| self.verbs.starts_with(sentence.verbs)) {
            text = text.replace(sentence.said, &sentence.meant.replace("{program}", &self.program));
        }
        if problem.code == "unauthorized" && !text.contains("SEGNO_KEY") {
            text.push_str("; pass another key with SEGNO_KEY, --key or a profile");
        }
        self.unknown_name(&text, code_of(problem))
    }

    /// The flag that sets a field.
    fn flag(&self, field: &str) -> Option<String> {
        let names = FIELDS.iter().find(|(name, _)| *name == field).map(|(_, flags)| *flags);
        let same = field.replace('_', "-");
        let candidates = names.unwrap_or_default().iter().copied().chain([same.as_str()]);
        let known: Vec<&str> = candidates.filter(|flag| self.flags.contains(*flag)).collect();
        let given = known.iter().find(|flag| self.given.contains(**flag));
        given.or(known.first()).map(|flag| (*flag).to_owned())
    }

    /// A name that nothing has: verbs that only read or remove it do not advise to make it.
    fn unknown_name(&self, text: &str, code: &str) -> String {
        let (group, create) = match code {
            "unknown-function" => ("functions", "functions put"),
            "unknown-hook" => ("hook", "hook create"),
            _ => return text.to_owned(),
        };
        let program = &self.program;
        let advice = if self.verbs.starts_with(group) {
            format!("check the name with `{program} {group} list`")
        } else {
            format!("declare it with `{program} {create}`, or check the name with `{program} {group} list`")
        };
        text.replace("declare it, or check the name", &advice)
    }
}

fn code_of(problem: &Problem) -> &str {
    inner(&problem.detail).map_or(&problem.code, |(_, code)| code)
}

#[cfg(test)]
mod tests {
    use segno_api::FieldProblem;

    use super::*;

    fn problem(code: &str, detail: &str, field: Option<&str>) -> ClientError {
        let errors = field.map(|field| FieldProblem { field: field.to_owned(), detail: String::new() });
        ClientError::Problem(Box::new(Problem {
            page: format!("https://segno.dev/errors/{code}"),
            title: String::new(),
            status: 400,
            code: code.to_owned(),
            detail: detail.to_owned(),
            error: None,
            errors: errors.into_iter().collect(),
            request_id: None,
        }))
    }

    fn told(line: &str, flags: &str, error: &ClientError) -> String {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<BTreeSet<String>>();
        let given = line.split(' ').filter_map(|word| word.strip_prefix("--")).map(str::to_owned).collect();
        let verbs = line.split(' ').take_while(|word| !word.starts_with("--")).collect::<Vec<_>>().join(" ");
        let wording = Wording { program: "shop".to_owned(), verbs, flags: words(flags), given };
        format!("{} [{}]", wording.message(error), code(error).unwrap_or_default())
    }

    #[test]
    fn fields_are_flags_and_routes_are_verbs() {
        let unknown = "there is no function \"x\"; declare it, or check the name";
        for (line, flags, error, said) in [
            (
                "recurring create --cron",
                "cron every",
                problem("invalid-action", "cron_expr: it never happens", Some("cron_expr")),
                "--cron: it never happens [invalid-action]",
            ),
            (
                "recurring create --provider",
                "function provider",
                problem("invalid-action", "provider: is empty", Some("provider")),
                "--provider: is empty [invalid-action]",
            ),
            (
                "action add --function",
                "function at",
                problem(
                    "invalid-request",
                    &format!("function: {unknown} [unknown-function]"),
                    Some("function"),
                ),
                "--function: there is no function \"x\"; declare it with `shop functions put`, or check the name with `shop functions list` [unknown-function]",
            ),
            (
                "functions delete",
                "version",
                problem("unknown-function", unknown, None),
                "there is no function \"x\"; check the name with `shop functions list` [unknown-function]",
            ),
            (
                "functions put",
                "version",
                problem("invalid-function", "url: is empty", Some("url")),
                "url: is empty [invalid-function]",
            ),
            (
                "start",
                "id",
                problem("instance-exists", "it exists; set on_conflict to use_existing or replace", None),
                "it exists; pass --on-conflict use-existing or --on-conflict replace [instance-exists]",
            ),
            (
                "list",
                "prefix",
                problem("unauthorized", "the key was revoked or has expired", None),
                "the key was revoked or has expired; pass another key with SEGNO_KEY, --key or a profile [unauthorized]",
            ),
            (
                "start",
                "id",
                problem("invalid-request", "max_rows: a [bracket] stays", None),
                "max_rows: a [bracket] stays [invalid-request]",
            ),
        ] {
            assert_eq!(told(line, flags, &error), said);
        }
    }

    #[test]
    fn the_page_is_that_of_the_code_that_is_shown() {
        let ClientError::Problem(inner) = problem("precondition-failed", "it is there [hook-exists]", None)
        else {
            unreachable!("it is a problem")
        };
        assert_eq!(page(&inner), "https://segno.dev/errors/hook-exists");
    }
}

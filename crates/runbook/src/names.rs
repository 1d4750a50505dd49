//! Which names are allowed, and which variables are reserved.

use segno_actions::document::shown;

use crate::limits::MAX_NAME_BYTES;

/// Variables that the system sets for every member; columns and output parameters cannot have these
/// names.
pub const RESERVED_VARIABLES: [&str; 8] = [
    BATCH_ID,
    BATCH_START_TIME,
    MEMBER_KEY,
    "_batch_time",
    "_first_seen_at",
    "_is_current",
    "_last_seen_at",
    "_row_id",
];

/// What stands before the number at the end of the id of a repeated job. The id of a rollback's job
/// has the name of the rollback and the number of the step behind it: step 2 of a rollback
/// `undo-0-run` would have the id of the second run of step 0 of a rollback `undo`.
const JOB_ID_ENDINGS: [&str; 3] = ["-run", "-retry", "-poll"];

/// Variable with the id of the batch.
pub const BATCH_ID: &str = "_batch_id";

/// Variable with the start of the batch.
pub const BATCH_START_TIME: &str = "_batch_start_time";

/// Variable with the key of the member.
pub const MEMBER_KEY: &str = "_member_key";

/// What a name is for; decides which characters it may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameKind {
    /// A runbook. It stands in paths and table names.
    Runbook,
    /// A rollback. It stands in job ids.
    Rollback,
    /// A worker pool (`worker_id`). It stands in routing tags.
    Pool,
    /// A function.
    Function,
    /// A phase.
    Phase,
    /// A step.
    Step,
    /// A column of the data source.
    Column,
    /// A variable that `output_params` sets.
    Variable,
}

impl NameKind {
    /// The characters that names of this kind may have, for errors and the guide.
    pub fn allowed(self) -> &'static str {
        match self {
            NameKind::Runbook | NameKind::Rollback | NameKind::Pool | NameKind::Function => {
                "letters, digits, '.', '_' and '-', beginning with a letter or digit"
            }
            NameKind::Variable => "letters, digits and '_'",
            NameKind::Phase | NameKind::Step | NameKind::Column => {
                "printable characters, without white space at the ends"
            }
        }
    }

    fn allows(self, name: &str) -> bool {
        match self {
            NameKind::Runbook | NameKind::Rollback | NameKind::Pool | NameKind::Function => {
                name.starts_with(|c: char| c.is_ascii_alphanumeric())
                    && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'))
            }
            NameKind::Variable => name.chars().all(|c| c.is_alphanumeric() || c == '_'),
            NameKind::Phase | NameKind::Step | NameKind::Column => {
                name.trim() == name && !name.chars().any(char::is_control)
            }
        }
    }

    /// Checks a name.
    ///
    /// # Errors
    /// What is wrong and what is allowed.
    pub fn check(self, name: &str) -> Result<(), String> {
        if name.is_empty() {
            return Err("the name is empty".to_owned());
        }
        if name.len() > MAX_NAME_BYTES {
            return Err(format!("the name has {} bytes, the limit is {MAX_NAME_BYTES}", name.len()));
        }
        if !self.allows(name) {
            return Err(format!("{:?} is not allowed; use {}", shown(name), self.allowed()));
        }
        if self == NameKind::Rollback && ends_as_job_id(name) {
            let problem = format!("{name:?} ends as the ids of repeated jobs do, in -run, -retry or -poll");
            return Err(format!("{problem}, with or without a number; use another name"));
        }
        if matches!(self, NameKind::Column | NameKind::Variable) && is_reserved(name) {
            return Err(format!("{name:?} is a variable of the system; use another name"));
        }
        Ok(())
    }
}

/// Whether the system sets a variable of this name, compared case-insensitively.
pub fn is_reserved(name: &str) -> bool {
    RESERVED_VARIABLES.iter().any(|reserved| reserved.eq_ignore_ascii_case(name))
}

/// Whether a name ends as ids of repeated jobs do, with or without the number.
fn ends_as_job_id(name: &str) -> bool {
    let without_number = name.trim_end_matches(|sign: char| sign.is_ascii_digit());
    let base = without_number.strip_suffix('-').filter(|_| without_number != name).unwrap_or(name);
    JOB_ID_ENDINGS.iter().any(|ending| base.ends_with(ending))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_its_characters() {
        let long = "x".repeat(MAX_NAME_BYTES);
        let longer = "x".repeat(MAX_NAME_BYTES + 1);
        for (kind, good, bad) in [
            (
                NameKind::Runbook,
                &["wave-1", "Contoso_2.0", &long][..],
                &["", "-a", "a b", "ä", "a/b", &longer][..],
            ),
            (NameKind::Pool, &["cloud-01"], &["{{pool}}", "a:b"]),
            (NameKind::Function, &["New-EntraUser", "7zip"], &["New EntraUser", "Get-Größe"]),
            (
                NameKind::Rollback,
                &["undo-user", "run", "re-run-all", "undo-2", "poller", "undo-run2"],
                &["undo user", "undo-run", "undo-0-run", "undo-run-2", "undo-0-retry", "undo-1-poll-37"],
            ),
            (NameKind::Phase, &["Prepare the move", "Übergabe"], &[" a", "a ", "a\nb", ""]),
            (NameKind::Column, &["First Name", "E-Mail"], &["_batch_id", "_Member_Key", "\u{7}"]),
            (
                NameKind::Variable,
                &["TargetId", "Größe", "_own", "2nd"],
                &["a-b", "a.b", "_batch_start_time", ""],
            ),
        ] {
            for name in good {
                assert_eq!(kind.check(name), Ok(()), "{kind:?} {name}");
            }
            for name in bad {
                assert!(kind.check(name).is_err(), "{kind:?} {name}");
            }
        }
        let error = NameKind::Pool.check("cloud 01").unwrap_err();
        assert_eq!(
            error,
            "\"cloud 01\" is not allowed; use letters, digits, '.', '_' and '-', beginning with a letter or digit"
        );
    }
}
